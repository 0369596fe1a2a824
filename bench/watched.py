"""How often a run that is watched is told something false, and how early something true.

    python bench/watched.py [--runs 2000] [--tasks 220] [--every 20]

Draws runs of four arms on all-fail tasks of a known truth (bench/truths.py) and looks at each after every 20 tasks: by
the bets of estimators/watched.py, and by the rule for finished runs (exact test, Holm, 95% interval), which was not
made for that. The last row takes tasks in the order in which they finish, all of them in flight at once, where the
other arms need half as long again for a round as resample: why the order is fixed beforehand.
A row: the share of runs in which some arm that equals resample was ever called better or worse, and for star how often
it was called better, and after how many tasks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import stats
from bench import truths
from estimators.watched import wealth

ALPHA, FAMILY, ROUNDS, PARTICLES = 0.05, 3, 3, 8
SLOWER = 1.5  # times as long as a round of resample
Counts = NDArray[Any]


def looks(control: Counts, arm: Counts, every: int) -> tuple[Counts, Counts]:
    """(runs, looks): tasks that the arm, and the control, alone rescued so far."""
    won, lost = np.cumsum(arm & ~control, axis=1), np.cumsum(control & ~arm, axis=1)
    return won[:, every - 1 :: every], lost[:, every - 1 :: every]


def by_bets(won: Counts, lost: Counts) -> tuple[Counts, Counts]:
    bar = 2 * FAMILY / ALPHA
    return wealth(won, lost) >= bar, wealth(lost, won) >= bar


def by_the_fixed_rule(won: list[Counts], lost: list[Counts], every: int) -> list[tuple[Counts, Counts]]:
    """Of each arm: better, worse, at each look, by Holm-adjusted exact p and interval."""
    from scipy.special import bdtr

    n = every * (np.arange(won[0].shape[1]) + 1)
    p = []
    for up, down in zip(won, lost, strict=True):
        less, m = np.minimum(up, down), up + down
        p.append(np.where(2 * less + 1 >= m, 1.0, 2 * bdtr(less, m, 0.5)))
    stacked = np.stack(p)
    order = np.argsort(stacked, axis=0)
    steps = np.maximum.accumulate(
        np.take_along_axis(stacked, order, 0) * np.arange(len(p), 0, -1)[:, None, None], axis=0
    )
    adjusted = np.empty_like(stacked)
    np.put_along_axis(adjusted, order, steps, 0)
    found = []
    for up, down, held in zip(won, lost, adjusted, strict=True):
        ends = stats.bonett_price(up, down, np.broadcast_to(n, up.shape))
        found.append(((held < ALPHA) & (ends.lo > 0), (held < ALPHA) & (ends.hi < 0)))
    return found


def finishing(rng: np.random.Generator, p: Counts, speed: float) -> tuple[Counts, Counts]:
    """Rescues, and when the arm is done with each task."""
    hit: Counts = rng.random((ROUNDS, *p.shape)) < 1 - (1 - p) ** PARTICLES
    rescued: Counts = np.logical_or.reduce(hit)
    return rescued, speed * np.where(rescued, hit.argmax(axis=0) + 1, ROUNDS)


def show(name: str, found: list[tuple[Counts, Counts]], every: int, star_is_equal: bool) -> None:
    false = found if star_is_equal else found[:-1]
    ever = np.logical_or.reduce([(up | down).any(axis=1) for up, down in false])
    up, down = found[-1]
    seen = up.any(axis=1)
    after = every * (up.argmax(axis=1) + 1)[seen].mean() if seen.any() else float("nan")
    told = (
        ""
        if star_is_equal
        else f"   star better {seen.mean():6.1%} after {after:3.0f}, worse {down.any(axis=1).mean():.1%}"
    )
    print(f"{name:<58} false {ever.mean():6.2%}{told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=220)
    parser.add_argument("--every", type=int, default=20)
    args = parser.parse_args()
    rng = np.random.default_rng(7)
    p = truths.all_fail(rng, args.runs, args.tasks)

    def drawn(chance: Counts) -> Counts:
        return rng.random(chance.shape) < chance

    alike = truths.rescue(p)
    cases: dict[str, tuple[list[Counts], bool]] = {
        "all equal": ([alike] * 3, True),
        "all equal, each suits other tasks": ([truths.rescue(truths.suited(rng, p)) for _ in range(3)], True),
        "star +5": ([alike, alike, truths.rescue(truths.better(p, 0.05))], False),
        "star +10": ([alike, alike, truths.rescue(truths.better(p, 0.10))], False),
        "star +10, each suits other tasks": (
            [*(truths.rescue(truths.suited(rng, p)) for _ in range(2)), truths.rescue(truths.suited(rng, p, 0.10))],
            False,
        ),
        "star +10, all on tasks that resample leaves": ([alike, alike, truths.one_sided(p, 0.10)], False),
    }
    print(f"{args.runs} runs of {args.tasks} tasks, a look every {args.every}")
    for name, (chances, equal) in cases.items():
        control = drawn(alike)
        pairs = [looks(control, drawn(chance), args.every) for chance in chances]
        show(f"{name}: bets", [by_bets(*pair) for pair in pairs], args.every, equal)
        won, lost = ([pair[side] for pair in pairs] for side in (0, 1))
        show(f"{name}: the rule for finished runs", by_the_fixed_rule(won, lost, args.every), args.every, equal)
    control, done = finishing(rng, p, 1.0)
    late = []
    for _ in range(3):
        arm, when = finishing(rng, p, SLOWER)
        order = np.argsort(np.maximum(done, when) + 1e-6 * rng.random(p.shape), axis=1)
        pair = looks(np.take_along_axis(control, order, 1), np.take_along_axis(arm, order, 1), args.every)
        late.append(by_bets(*pair))
    show("all equal, in the order of finishing: bets", late, args.every, True)


if __name__ == "__main__":
    main()
