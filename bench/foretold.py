"""How often the intervals of what a base group foretells hold the truth.

    python bench/foretold.py [--runs 400]
    python bench/foretold.py --power [--runs 400]     how often the range of power holds the true chance

Draws base groups of 8 of tasks whose chances are Beta distributed (the first line: as in the published runs), and
counts how often each interval of estimators/prospect.py holds the true share: pass@1, pass@4 and pass@8 of all tasks, a
pass in 24 more draws on a failed task, and (nominal 80%) how often two arms of 24 disagree there. The last lines are of
chances that are no Beta distribution: a mixture of tasks that never pass and tasks of one chance.

--power: of 275 tasks as in the published runs, an arm better by the margin in force, its odds multiplied
(bench/truths.py) or all of it on tasks that resample leaves; by the base group, and by what two equal arms happened to
disagree on (the observed discordance, at least the margin).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import stats
from bench import truths
from estimators.prospect import prospect
from figures.foretold import chances
from figures.plan import margin_in_force

GROUP, DRAWS = 8, 24
SHAPES = ((0.072, 0.795), (0.03, 0.5), (0.3, 2.0), (1.0, 3.0))
MIXTURES = ((0.25, 0.3), (0.3, 0.08))  # share of tasks that can pass, and their chance
WIDTHS = (6, 8, 8, 8, 9, 13, 8)
TASKS = (40, 80, 160, 275)


def covered(chances: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> list[float]:
    """chances: (runs, tasks); truth: many chances of the same kind."""
    missed = truth[rng.random(truth.size) < (1 - truth) ** GROUP]  # failed tasks
    found = 1 - (1 - missed) ** DRAWS
    true = [*(float(np.mean(1 - (1 - truth) ** k)) for k in (1, 4, 8)), found.mean(), np.mean(2 * found * (1 - found))]
    hits = np.zeros(len(true))
    for row in rng.binomial(GROUP, chances):
        got = prospect(np.bincount(row, minlength=GROUP + 1), DRAWS)
        ends = [*(got.base_interval[:, k - 1] for k in (1, 4, 8)), got.rescue_interval[:, -1], got.apart_interval]
        hits += [lo <= x <= hi for x, (lo, hi) in zip(true, ends, strict=True)]
    return [*(hits / len(chances)).tolist(), float(true[3])]


def power(runs: int) -> None:
    """Of each mechanism: the mean true chance at Holm's first step, the mean range, how often it holds the truth."""
    rng = np.random.default_rng(3)
    many = truths.all_fail(rng, 1, 200_000)[0]
    found = truths.rescue(many)
    for name in ("odds multiplied", "on tasks that resample leaves"):
        rows, by_luck = [], []
        for _ in range(runs):
            p = rng.beta(truths.A, truths.B, size=275)
            passes = rng.binomial(GROUP, p)
            got = prospect(np.bincount(passes, minlength=GROUP + 1), DRAWS)
            effect = margin_in_force(0.05, float(got.rescue[-1]))
            low, high = got.apart_interval.tolist()
            ends = chances(got.failed, effect, (low, high), 3).power_holm
            effect = max(round(effect, 3), 0.005)
            arm = (
                truths.rescue(truths.better(many, effect))
                if name.startswith("odds")
                else truths.one_sided(many, effect)
            )
            apart = float(np.mean(found * (1 - arm) + arm * (1 - found)))
            rows.append((stats.power_paired(got.failed, effect, max(apart, effect), alpha=0.05 / 3), *ends))
            left = p[passes == 0]
            mine, theirs = (rng.random(left.size) < truths.rescue(left) for _ in range(2))
            luck = max(float(np.mean(mine != theirs)), effect)
            by_luck.append(stats.power_paired(got.failed, effect, luck, alpha=0.05 / 3))
        true, low_, high_ = np.array(rows).T
        held = np.mean((low_ <= true) & (true <= high_))
        told = f"true {true.mean():.0%}, told {low_.mean():.0%} to {high_.mean():.0%}, holds it in {held:.0%} of runs"
        print(f"{name}: {told}; by luck {np.min(by_luck):.0%} to {np.max(by_luck):.0%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--power", action="store_true")
    args = parser.parse_args()
    runs = args.runs
    if args.power:
        return power(runs)
    names = ("tasks", "pass@1", "pass@4", "pass@8", "24 more", "apart (80%)", "truth")
    print(f"{'chances':<24}" + "".join(f"{name:>{w}}" for name, w in zip(names, WIDTHS, strict=True)))
    for a, b in SHAPES:
        for n in TASKS:
            rng = np.random.default_rng(n)
            got = covered(rng.beta(a, b, size=(runs, n)), rng.beta(a, b, size=1_000_000), rng)
            show(f"Beta({a:g}, {b:g})", n, got)
    for some, chance in MIXTURES:
        for n in TASKS:
            rng = np.random.default_rng(n)
            got = covered(chance * (rng.random((runs, n)) < some), chance * (rng.random(1_000_000) < some), rng)
            show(f"{some:.0%} of {chance:g}, else 0", n, got)


def show(name: str, n: int, got: list[float]) -> None:
    print(
        f"{name:<24}{n:>6}" + "".join(f"{x:>{w}.1%}" for x, w in zip(got, (8, 8, 8, 9, 13, 8), strict=True)), flush=True
    )


if __name__ == "__main__":
    main()
