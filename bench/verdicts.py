"""What the plan's rule says of runs whose truth is known: verdicts by truth, and the coverage of intervals.

    python bench/verdicts.py [--runs 2000] [--sizes 60,220] [--noise-runs 0,2] [--only PART,...]

parts: table      better, worse, equivalent, inconclusive of star, and how often any arm is better or worse
       seeds      the same of two planned seeds, pooled
       copies     full budgets where later programs repeat a pass, by rescues and by passes per sample
       coverage   intervals by enumeration

Runs are drawn as `Table`s (bench/truths.py has the chances; the base group too, which fixes the margin), and judged by
the functions of figures/compared.py and figures/pool.py. Some are laid out as attempts and measured whole, which must
say the same. Left out: noise of a server, tasks that end early, budgets other than 8 x 3.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import stats
from bench import truths
from commands.settings import Config
from figures import compared
from figures.table import Play, Table
from swarm import Attempt
from tests.support.lay_out import ARMS, base, config, names, play

Bools = NDArray[np.bool_]
OTHERS = ARMS[1:]
GROUP = 8
REST = 275 / 221.5 - 1  # tasks with a pass in their base group, for each that has none


def memoized() -> None:
    """Comparisons of 0/1 data depend on counts alone, and a bench meets the same counts many times."""
    exact, alike = stats.compare_paired, stats.equivalent

    @functools.lru_cache(None)
    def by_counts(b_only: int, a_only: int, n: int) -> stats.Comparison:
        a, b = np.zeros(n), np.zeros(n)
        a[:a_only], b[a_only : a_only + b_only] = 1, 1
        return exact(a, b)

    @functools.lru_cache(None)
    def alike_by_counts(b_only: int, a_only: int, n: int, margin: float) -> stats.Equivalence:
        a, b = np.zeros(n), np.zeros(n)
        a[:a_only], b[a_only : a_only + b_only] = 1, 1
        return alike(a, b, margin)

    def binary(a: Any, b: Any) -> bool:
        return bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())

    def compare(a: Any, b: Any, **how: Any) -> stats.Comparison:
        if not binary(a, b):
            return exact(a, b, **how)
        return by_counts(int((b > a).sum()), int((a > b).sum()), len(a))

    def equal(a: Any, b: Any, margin: float, **how: Any) -> stats.Equivalence:
        if not binary(a, b):
            return alike(a, b, margin, **how)
        return alike_by_counts(int((b > a).sum()), int((a > b).sum()), len(a), margin)

    stats.compare_paired, stats.equivalent = compare, equal  # type: ignore[assignment]


# ── drawn runs ───────────────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def passes_of_the_rest() -> NDArray[np.float64]:
    """Chances of 1 to 8 passes of a base group that does not fail as a whole."""
    from scipy.stats import betabinom

    chance = betabinom.pmf(np.arange(1, GROUP + 1), GROUP, truths.A, truths.B)
    return np.asarray(chance / chance.sum())


def played(rescued: Bools, rest: int) -> Play:
    """A play that stops at its first pass, in round 0 where there is one: verdicts ask for no more."""
    hit = np.concatenate([rescued, np.zeros(rest, dtype=bool)])
    none = np.zeros((len(hit), 3), dtype=np.int64)
    done, never = np.ones(len(hit), dtype=bool), np.zeros(len(hit), dtype=bool)
    return Play(
        row=none, passes=none, drawn=none, done=done, refused=never, owed=none[:, 0], rescued=hit,
        first=np.where(hit, 0, 3), full=never,
    )  # fmt: skip


def drawn(rng: np.random.Generator, rescues: Sequence[Bools], reruns: Sequence[Bools]) -> Table:
    """A finished run as the sections see it. rescues: of resample, solo, ring, star; reruns: of resample."""
    n = len(rescues[0])
    rest = rng.binomial(round(n * (1 + REST)), REST / (1 + REST))
    passes = np.concatenate([np.zeros(n, dtype=np.int64), 1 + rng.choice(GROUP, size=rest, p=passes_of_the_rest())])
    table = object.__new__(Table)
    table.config, table.plan = cast(Config, config(noise_runs=len(reruns))), None
    table.base_samples, table.particles, table.rounds = GROUP, 8, 3
    table.arms, table.others = list(ARMS), list(OTHERS)
    table.controlled, table.share_round0 = True, False
    table.base = played(np.zeros(n, dtype=bool), rest)._replace(passes=passes[:, None])
    table.given = table.all_fail = passes == 0
    table.plays = {arm: played(rescued, rest) for arm, rescued in zip(ARMS, rescues, strict=True)}
    table.reruns = [played(rescued, rest) for rescued in reruns]
    return table


def judged(table: Table) -> dict[str, str]:
    """The words of the plan's rule, by the functions that measure calls."""
    if table.reruns:
        _, runs = table.rescues_of_runs()
        pairs = {arm: (runs, table.rescues(arm)[1]) for arm in table.others}
    else:
        pairs = {arm: table.rescues(arm) for arm in table.others}
    rows = compared._family_of_tests(pairs, compared.margin_of(table, "rescue_rate"))
    return {arm: row["verdict"] for arm, (row, _) in rows.items()}


def laid_out(table: Table) -> dict[str, str]:
    """The same run as attempts, measured whole."""
    from measure import measure

    tasks = names(len(table.given))
    attempts: list[Attempt] = []
    for i, task in enumerate(tasks):
        attempts += base(task, int(table.base.passes[i, 0]))
        if table.given[i]:
            plays = [(arm, 0, each) for arm, each in table.plays.items()]
            plays += [("resample", k, each) for k, each in enumerate(table.reruns, 1)]
            for arm, rerun, each in plays:
                attempts += play(task, arm, 0 if each.rescued[i] else None, rerun)
    return dict(measure(attempts, table.config)["verdict"]["arms"])


# ── truths ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Chances = NDArray[np.float64]
Truth = Callable[[np.random.Generator, Chances], list[Chances]]  # chances of a draw -> of a rescue, of each other arm


def _same(p: Chances) -> Chances:
    return np.asarray(truths.rescue(p))


def _suited(rng: np.random.Generator, p: Chances, points: float = 0.0) -> Chances:
    return _same(truths.suited(rng, p, points))


AT_MARGIN = 0.0465  # half of 9.3%: where the margin in force lies on average
TRUTHS: dict[str, Truth] = {
    "equal": lambda rng, p: [_same(p)] * 3,
    "equal, each suits other tasks": lambda rng, p: [_suited(rng, p) for _ in range(3)],
    "star at the margin": lambda rng, p: [_same(p), _same(p), _same(truths.better(p, AT_MARGIN))],
    "star +5": lambda rng, p: [_same(p), _same(p), _same(truths.better(p, 0.05))],
    "all +5": lambda rng, p: [_same(truths.better(p, 0.05))] * 3,
    "all +5, one-sided": lambda rng, p: [truths.one_sided(p, 0.05)] * 3,
    "star +10": lambda rng, p: [_same(p), _same(p), _same(truths.better(p, 0.10))],
    "star finds nothing": lambda rng, p: [_same(p), _same(p), np.zeros(p.shape)],
}
HARD = (0.02, 0.03)  # rates of the control at which a dead arm was once called equivalent


def row(name: str, words: Sequence[dict[str, str]]) -> None:
    told = Counter(each["star"] for each in words)
    n = len(words)
    some = [sum(word in each.values() for each in words) / n for word in ("better", "worse")]
    cells = " ".join(f"{told[word] / n:6.3f}" for word in stats.VERDICTS)
    print(f"{name:<52} {cells}   {some[0]:6.3f} {some[1]:6.3f}", flush=True)


def table(rng: np.random.Generator, runs: int, sizes: Sequence[int], noise_runs: Sequence[int]) -> None:
    for n in sizes:
        for noise in noise_runs:
            print(f"\n{n} all-fail tasks, {noise} noise runs: star {', '.join(stats.VERDICTS)}; any better, any worse")
            for name, truth in TRUTHS.items():
                p = truths.all_fail(rng, runs, n)
                chances = [_same(p), *truth(rng, p)]
                hits = [rng.random(p.shape) < chance for chance in chances]
                again = [rng.random(p.shape) < chances[0] for _ in range(noise)]
                tables = [drawn(rng, [hit[k] for hit in hits], [more[k] for more in again]) for k in range(runs)]
                words = [judged(each) for each in tables]
                for each, said in list(zip(tables, words, strict=True))[: 2 if n == min(sizes) else 0]:
                    assert laid_out(each) == said, (laid_out(each), said)
                row(name, words)
            for rate in HARD:
                tables = []
                for _ in range(runs):
                    hits = [rng.random(n) < chance for chance in (rate, rate, rate, 0.0)]
                    tables.append(drawn(rng, hits, [rng.random(n) < rate for _ in range(noise)]))
                row(f"star finds nothing, resample {rate:.0%}", [judged(each) for each in tables])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--sizes", default="60,220")
    parser.add_argument("--noise-runs", default="0,2")
    parser.add_argument("--only", default="table,seeds,copies,coverage")
    args = parser.parse_args()
    sizes, parts = [int(n) for n in args.sizes.split(",")], args.only.split(",")
    rng = np.random.default_rng(11)
    memoized()
    if "table" in parts:
        table(rng, args.runs, sizes, [int(n) for n in args.noise_runs.split(",")])


if __name__ == "__main__":
    main()
