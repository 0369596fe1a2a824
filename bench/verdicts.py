"""What the plan's rule says of runs whose truth is known: verdicts by truth, and the coverage of intervals.

    python bench/verdicts.py [--runs 2000] [--sizes 60,220] [--noise-runs 0,2] [--rows TEXT] [--only PART,...]

parts: table      better, worse, equivalent, inconclusive of star, and how often any arm is better or worse
       seeds      the same of two planned seeds, pooled
       copies     full budgets where later programs repeat a pass, by rescues and by passes per sample
       coverage   intervals by enumeration

Runs are drawn as `Table`s (bench/truths.py has the chances; the base group too, which fixes the margin), and judged by
their counts, many at once; some of each row by the functions of figures/compared.py as well, and one of each of the
smallest size laid out as attempts and measured whole: all must say the same. Seeds are judged by figures/pool.py. Left
out: noise of a server, tasks that end early, budgets other than 8 x 3.
"""

from __future__ import annotations

import argparse
import functools
import math
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
from estimators.equivalence import quantile, score
from estimators.parts import RELATIVE_TIE, normal_quantile
from estimators.reruns import binomial
from figures import compared, plan, pool
from figures.table import Play, Table
from swarm import Attempt
from tests.support.lay_out import ARMS, base, config, names, play

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]
OTHERS = ARMS[1:]
GROUP = 8
CHECKED = 20  # runs of a row that are judged one by one as well
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
        row=none, passes=none, drawn=none, done=done, refused=never, refused_later=none[:, 0],
        owed=none[:, 0], rescued=hit, first=np.where(hit, 0, 3), full=never,
    )  # fmt: skip


def beside(rng: np.random.Generator, n: int) -> Counts:
    """Passes in their base group of the tasks that are not all-fail, where n are."""
    rest = rng.binomial(round(n * (1 + REST)), REST / (1 + REST))
    return 1 + rng.choice(GROUP, size=rest, p=passes_of_the_rest())


def margin_by(passes: Counts, n: int) -> float:
    """The margin in force, from the base group alone."""
    histogram = [n, *np.bincount(passes, minlength=GROUP + 1)[1:].tolist()]
    return plan.margin_in_force(plan.MARGIN["rescue_rate"], plan.foretold(histogram, truths.DRAWS))


def drawn(rescues: Sequence[Bools], reruns: Sequence[Bools], others: Counts) -> Table:
    """A finished run as the sections see it. rescues: of resample, solo, ring, star; reruns: of resample; others: base
    passes of the tasks that are not all-fail."""
    n, rest = len(rescues[0]), len(others)
    passes = np.concatenate([np.zeros(n, dtype=np.int64), others])
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


def told_of_many(hits: Bools, again: Bools, margins: Chances) -> list[dict[str, str]]:
    """`judged` of many runs at once, by their counts. hits: (4, runs, tasks) of resample, solo, ring, star; again:
    (re-runs, runs, tasks) of resample; margins: (runs,)."""
    first, n = hits[0], hits.shape[2]
    k = 1 + len(again)
    passes = first + again.sum(axis=0)
    control = passes.mean(axis=1) / k
    z = np.array([quantile(n, float(margin)) if margin else math.inf for margin in margins])
    p = np.empty((len(margins), len(OTHERS)))
    ends, alike = np.empty((2, *p.shape)), np.empty(p.shape, dtype=bool)
    for i, own in enumerate(hits[1:]):
        up, down = (own & ~first).sum(axis=1), (first & ~own).sum(axis=1)
        alike[:, i] = np.maximum(score(up, down, n, margins), score(down, up, n, margins)) <= -z
        if k == 1:
            p[:, i] = [_mcnemar(int(a), int(b)) for a, b in zip(up, down, strict=True)]
            ends[:, :, i] = stats.bonett_price(up, down, n)
            continue
        among = passes + own
        dealt = np.stack([(among == s).sum(axis=1) for s in range(1, k + 1)], axis=1)
        seen = own.sum(axis=1) - (among == k + 1).sum(axis=1)
        p[:, i] = [_dealt_out(tuple(map(int, of)), int(x)) for of, x in zip(dealt, seen, strict=True)]
        d = own - passes / k
        middle = d.sum(axis=1) / (n + 2)
        half = np.sqrt((((d * d).sum(axis=1) + 1 + 1 / k) / (n + 2) - middle**2) / (n + 2))
        ends[:, :, i] = middle - normal_quantile(0.975) * half, middle + normal_quantile(0.975) * half
        alike[:, i] &= np.abs(middle) + normal_quantile(0.95) * half < margins
    order = np.argsort(p, axis=1)
    steps = np.take_along_axis(p, order, axis=1) * np.arange(len(OTHERS), 0, -1)
    adjusted = np.empty(p.shape)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(steps, axis=1), 1), axis=1)
    lo, hi = ends
    room = (-control[:, None] < lo) & (lo <= 0) & (hi >= 0)
    sure = adjusted < plan.ALPHA
    word = np.select([sure & (lo > 0), sure & (hi < 0), alike & room], stats.VERDICTS[:3], stats.VERDICTS[3])
    return [dict(zip(OTHERS, map(str, row), strict=True)) for row in word]


@functools.cache
def _mcnemar(up: int, down: int) -> float:
    return float(stats._mcnemar(down, up))


@functools.cache
def _dealt_out(dealt: tuple[int, ...], seen: int) -> float:
    """p of the arm's count; dealt: tasks on which 1, 2, ... of the k + 1 runs passed."""
    chance = np.ones(1)
    for s, tasks in enumerate(dealt, 1):
        chance = np.convolve(chance, binomial(tasks, s / (len(dealt) + 1)))
    return float(min(1.0, 2 * min(chance[: seen + 1].sum(), chance[seen:].sum()) * (1 + RELATIVE_TIE)))


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
# Chances of a draw, and each run's margin -> chances of a rescue, of each other arm.
Truth = Callable[[np.random.Generator, Chances, NDArray[np.float64]], list[Chances]]


def _same(p: Chances) -> Chances:
    return np.asarray(truths.rescue(p))


def _suited(rng: np.random.Generator, p: Chances, points: float = 0.0) -> Chances:
    return _same(truths.suited(rng, p, points))


@functools.cache
def _ladder() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of rescues, and the logarithm of what odds are multiplied with for them."""
    from scipy.special import betaincinv

    p = betaincinv(truths.A, truths.B + GROUP, (np.arange(20_000) + 0.5) / 20_000)
    logs = np.linspace(0.0, 1.5, 61)
    return np.array([np.mean(_same(truths.odds(p, np.exp(each))) - _same(p)) for each in logs]), logs


def _at(p: Chances, margins: NDArray[np.float64]) -> Chances:
    """Better by each run's own margin."""
    return _same(truths.odds(p, np.exp(np.interp(margins, *_ladder()))[:, None]))


TRUTHS: dict[str, Truth] = {
    "equal": lambda rng, p, margins: [_same(p)] * 3,
    "equal, each suits other tasks": lambda rng, p, margins: [_suited(rng, p) for _ in range(3)],
    "star at the margin": lambda rng, p, margins: [_same(p), _same(p), _at(p, margins)],
    "star at the margin, one-sided": lambda rng, p, margins: [
        _same(p),
        _same(p),
        truths.one_sided(p, margins[:, None]),
    ],
    "star +5": lambda rng, p, margins: [_same(p), _same(p), _same(truths.better(p, 0.05))],
    "all +5": lambda rng, p, margins: [_same(truths.better(p, 0.05))] * 3,
    "all +5, one-sided": lambda rng, p, margins: [truths.one_sided(p, 0.05)] * 3,
    "star +10": lambda rng, p, margins: [_same(p), _same(p), _same(truths.better(p, 0.10))],
    "star finds nothing": lambda rng, p, margins: [_same(p), _same(p), np.zeros(p.shape)],
}
HARD = (0.02, 0.03)  # rates of the control at which a dead arm was once called equivalent


def row(name: str, words: Sequence[dict[str, str]]) -> None:
    told = Counter(each["star"] for each in words)
    n = len(words)
    some = [sum(word in each.values() for each in words) / n for word in ("better", "worse")]
    cells = " ".join(f"{told[word] / n:6.3f}" for word in stats.VERDICTS)
    print(f"{name:<52} {cells}   {some[0]:6.3f} {some[1]:6.3f}", flush=True)


def stream(*what: object) -> np.random.Generator:
    """Draws of a row alone, so that it says the same by itself as among all rows."""
    return np.random.default_rng([11, *repr(what).encode()])


def checked(
    words: list[dict[str, str]], hits: list[Bools], again: list[Bools], others: list[Counts], whole: bool
) -> None:
    """What was said of many runs at once must be what the functions say that measure calls, on the first ones; whole:
    and what measure says of one of them, laid out as attempts."""
    for k in range(min(len(words), CHECKED)):
        table = drawn([hit[k] for hit in hits], [more[k] for more in again], others[k])
        assert judged(table) == words[k], (judged(table), words[k])
        assert not whole or k or laid_out(table) == words[k], (laid_out(table), words[k])


def table(runs: int, sizes: Sequence[int], noise_runs: Sequence[int], rows: str) -> None:
    for n in sizes:
        for noise in noise_runs:
            print(f"\n{n} all-fail tasks, {noise} noise runs: star {', '.join(stats.VERDICTS)}; any better, any worse")
            for name, truth in TRUTHS.items():
                if rows not in name:
                    continue
                rng = stream("table", name, n, noise)
                p = truths.all_fail(rng, runs, n)
                others = [beside(rng, n) for _ in range(runs)]
                margins = np.array([margin_by(each, n) for each in others])
                chances = [_same(p), *truth(rng, p, margins)]
                hits = [rng.random(p.shape) < chance for chance in chances]
                again = [rng.random(p.shape) < chances[0] for _ in range(noise)]
                words = told_of_many(np.array(hits), np.array(again).reshape(noise, *p.shape).astype(bool), margins)
                checked(words, hits, again, others, n == min(sizes))
                row(name, words)
            for rate in HARD if rows in "star finds nothing" else ():
                rng = stream("hard", rate, n, noise)
                others = [beside(rng, n) for _ in range(runs)]
                margins = np.array([margin_by(each, n) for each in others])
                hits = [rng.random((runs, n)) < chance for chance in (rate, rate, rate, 0.0)]
                again = [rng.random((runs, n)) < rate for _ in range(noise)]
                words = told_of_many(np.array(hits), np.array(again).reshape(noise, runs, n).astype(bool), margins)
                checked(words, hits, again, others, False)
                row(f"star finds nothing, resample {rate:.0%}", words)


def seeds(runs: int, rows: str, tasks: int = 275) -> None:
    """Two runs of other draws on the same tasks, each with its own base group and so its own all-fail tasks."""

    def one(rng: np.random.Generator, seed: int, p: Chances, star: Chances) -> dict[str, Any]:
        passes = rng.binomial(GROUP, p)
        fail = np.flatnonzero(passes == 0)
        hits = [rng.random(len(fail)) < chance[fail] for chance in (_same(p), _same(p), _same(p), star)]
        words = judged(drawn(hits, [], passes[passes > 0]))
        by_task = {
            f"t{i}": {
                "arms": {
                    arm: {"passes": int(hit[k]), "drawn": 24, "done": True} for arm, hit in zip(ARMS, hits, strict=True)
                }
            }
            for k, i in enumerate(fail)
        }
        told = {"primary_metric": "rescue_rate", "margin": 0.05, "margin_asked": 0.05, "seeds": 2, "arms": words}
        return {
            "seed": seed, "intervals": dict.fromkeys(ARMS), "by_task": by_task, "budget": {"B": truths.DRAWS},
            "p0_histogram": np.bincount(passes, minlength=GROUP + 1).tolist(),
            "verdict": told | {"exploratory": [plan.one_of(2)], "against_runs": 1},
        }  # fmt: skip

    print(f"\n{tasks} tasks, two planned seeds pooled: star {', '.join(stats.VERDICTS)}; any better, any worse")
    for name, star in {
        "equal": _same,
        "star at 4.65 points": lambda p: _same(truths.better(p, 0.0465)),
        "star +5": lambda p: _same(truths.better(p, 0.05)),
        "star +10": lambda p: _same(truths.better(p, 0.10)),
    }.items():
        if rows not in name:
            continue
        rng = stream("seeds", name, tasks)
        words: list[dict[str, str]] = []
        alone: list[dict[str, str]] = []
        covered: list[bool] = []
        for _ in range(runs):
            p = rng.beta(truths.A, truths.B, size=tasks)
            pair = {str(seed): one(rng, seed, p, star(p)) for seed in (0, 1)}
            together = pool.pool(pair)
            assert together["planned"]
            words.append({arm: found["verdict"] for arm, found in together["arms"].items()})
            alone += [each["verdict"]["arms"] for each in pair.values()]
            lo, hi = together["arms"]["star"]["interval"]
            covered.append(lo is not None and hi is not None and lo <= 0 <= hi)
        row(f"{name}: together", words)
        row(f"{name}: each by itself", alone)
        if name == "equal":
            print(f"  the pooled interval holds 0 in {np.mean(covered):.3f}", flush=True)


def full_budgets(
    rng: np.random.Generator, p: Chances, times: float, repeat: float, altered: float
) -> dict[str, NDArray[np.float64]]:
    """Metric -> values a task of an arm on its full budget. From the second round on odds are multiplied; a program
    repeats a pass of its task, if there is one, with chance `repeat`, and alters its text as it does with `altered`."""
    n = len(p)
    passes, fresh = np.zeros((n, 3), dtype=int), np.zeros(n, dtype=int)
    for r in range(3):
        seen = passes.sum(axis=1) > 0
        own = rng.random((n, 8)) < truths.odds(p, times if r else 1.0)[:, None]
        again = (rng.random((n, 8)) < repeat) & seen[:, None]
        passes[:, r] = (own | again).sum(axis=1)
        fresh += np.where(again, rng.random((n, 8)) < altered, own).sum(axis=1)
    hit = passes > 0
    found, first = hit.any(axis=1), hit.argmax(axis=1)
    at_first = passes[np.arange(n), first]
    before = first * 8 + (8 - at_first) // (at_first + 1)  # whole draws that failed, over the order of a round
    return {
        "rescues": found.astype(float),
        "draws up to the first pass": np.where(found, 1 - before / 24, 0.0),
        "passes of the first round with one": np.where(found, at_first / 24, 0.0),
        "distinct programs that pass": fresh / 24,
        "passes per sample": passes.sum(axis=1) / 24,
    }


def copies(runs: int, n: int = 174) -> None:
    """What metrics make of copies and of a true advantage: star better, worse, at Holm's first step over three arms."""
    print(f"\n{n} all-fail tasks, full budgets: star better, worse at a level of .05 / 3")
    for name, how in {
        "equal": (1.0, 0.0, 0.0),
        "equal, repeats a pass with .7": (1.0, 0.7, 0.0),
        "equal, repeats with .7, half of them altered": (1.0, 0.7, 0.5),
        "odds x 3 from the second round on": (3.0, 0.0, 0.0),
    }.items():
        told: dict[str, list[int]] = {}
        rng = stream("copies", name, n)
        for p in truths.all_fail(rng, runs, n):
            control, star = full_budgets(rng, p, 1.0, 0.0, 0.0), full_budgets(rng, p, *how)
            for metric, a in control.items():
                got = stats.compare_paired(a, star[metric])
                seen = got.p_value < 0.05 / 3
                counts = told.setdefault(metric, [0, 0])
                counts[0] += seen and got.delta > 0
                counts[1] += seen and got.delta < 0
        for metric, (better, worse) in told.items():
            print(f"  {name:<46} {metric:<36} {better / runs:6.3f} {worse / runs:6.3f}", flush=True)


def coverage() -> None:
    """By enumeration: every pair of counts of tasks that one of two arms alone rescued."""
    from scipy.special import gammaln, xlogy

    from estimators.equivalence import error, quantile, score_ci

    print("\ncoverage by enumeration, discordance to .3, every difference: least and mean; error at the margin, most")
    for n in (20, 60, 104, 220, 400):
        most = min(n, int(0.3 * n + 6 * np.sqrt(0.21 * n)) + 1)
        b, a = (x.ravel() for x in np.meshgrid(np.arange(most + 1), np.arange(most + 1), indexing="ij"))
        b, a = b[b + a <= most], a[b + a <= most]
        ways = gammaln(n + 1) - gammaln(b + 1) - gammaln(a + 1) - gammaln(n - a - b + 1)
        bonett = stats.bonett_price(b, a, n)
        tango = np.array([score_ci(int(x), int(y), n, quantile(n, 0.05)) for x, y in zip(b, a, strict=True)]).T
        seen: dict[str, list[float]] = {"Bonett-Price 95%": [], "of the test of equivalence": []}
        for disagree in np.arange(0.01, 0.301, 0.01):
            for delta in np.linspace(0, disagree, 11):
                up, down = (disagree + delta) / 2, (disagree - delta) / 2
                chance = np.exp(ways + xlogy(b, up) + xlogy(a, down) + xlogy(n - a - b, 1 - disagree))
                for name, ends in zip(seen, ((bonett.lo, bonett.hi), (tango[0], tango[1])), strict=True):
                    seen[name].append(float(chance[(ends[0] <= delta) & (delta <= ends[1])].sum()))
        wrong = max(error(n, margin, quantile(n, margin), 400) for margin in (0.01, 0.02, 0.03, 0.0433, 0.05, 0.1))
        shown = "; ".join(f"{name} {min(each):.3f}, {np.mean(each):.3f}" for name, each in seen.items())
        print(f"  n {n:>3}: {shown}; equivalent at the margin {wrong:.4f}", flush=True)
    print("Wilson, rates of 2% to 98%: least and mean")
    for n in (20, 60, 104, 220, 400):
        k = np.arange(n + 1)
        lo, hi = stats.proportion_ci(k, np.full(n + 1, n))
        rates = np.arange(0.02, 0.9801, 0.001)
        ways = (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))[:, None]
        chance = np.exp(ways + xlogy(k[:, None], rates) + xlogy(n - k[:, None], 1 - rates))
        held = (chance * ((lo[:, None] <= rates) & (rates <= hi[:, None]))).sum(axis=0)
        print(f"  n {n:>3}: {held.min():.3f}, {held.mean():.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--sizes", default="60,220")
    parser.add_argument("--noise-runs", default="0,2")
    parser.add_argument("--rows", default="", help="of table and seeds, those whose name holds this")
    parser.add_argument("--only", default="table,seeds,copies,coverage")
    args = parser.parse_args()
    sizes, parts = [int(n) for n in args.sizes.split(",")], args.only.split(",")
    memoized()
    if "table" in parts:
        table(args.runs, sizes, [int(n) for n in args.noise_runs.split(",")], args.rows)
    if "seeds" in parts:
        seeds(args.runs, args.rows)
    if "copies" in parts:
        copies(args.runs)
    if "coverage" in parts:
        coverage()


if __name__ == "__main__":
    main()
