"""How often each interval that is printed holds the truth: a line a kind, by enumeration where outcomes can be told.

    python bench/coverage.py [--runs 2000] [--only PART,...]

parts: rates differences reruns seeds bundles samples climb after band fresh cost buckets areas correlation published
Lines are rows of the table of docs/statistics.md: the interval, the truth behind it, and for each number of tasks the
share of runs in which it holds that truth; over a grid least and most, or least and mean. Nominal is 95% but where a
line says another. Every part has a stream of its own, so that one alone says what it says among all.

Truths: tasks as published (bench/truths.py: Beta(.072, .795), failed by a group of 8), others as named. Left out: the
interval of the test of equivalence, which is none of 95% and not called one (bench/verdicts.py --only coverage), ranges
of power (bench/foretold.py --power), and figures without an interval.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import stats
from bench import aucs, foretold, truths, yields
from estimators.parts import mean_share_ci, normal_quantile
from estimators.pooled import compare_pooled, mean_ci
from estimators.ratios import per_unit

Floats = NDArray[np.float64]
Line = tuple[str, str, dict[int, str]]  # the interval, the truth, and what it does at so many tasks

Z = normal_quantile(0.975)
SIZES = (20, 60, 220)
MANY = 1_000_000  # draws that a truth is taken from, where it has no closed form


def held(ends: Any, truth: Any) -> str:
    """Share of runs whose interval holds the truth; of those that have an interval."""
    lo, hi = np.asarray(ends, dtype=float).T
    known = np.isfinite(lo)
    share = np.mean((lo[known] <= truth + 1e-12) & (truth - 1e-12 <= hi[known]))
    none = f" ({np.mean(~known):.0%} have none)" if np.mean(~known) >= 0.005 else ""
    return f"{100 * share:.1f}{none}"


def least_and_mean(shares: Iterable[float]) -> str:
    found = np.array(list(shares))
    return f"{100 * found.min():.1f} to {100 * found.max():.1f}, mean {100 * found.mean():.1f}"


# ── by enumeration ───────────────────────────────────────────────────────────────────────────────────────────────────


def binomial(n: int, rates: Floats) -> Floats:
    """(n + 1, rates) chances of 0 to n."""
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(n + 1)[:, None]
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, rates) + xlog1py(n - k, -rates)))


def rates(runs: int) -> Iterator[Line]:
    """Counts of tasks: whatever their chances, tasks of a population pass as often as so many coins."""
    for name, grid in (("rates of 2 to 98%", np.arange(0.02, 0.9801, 0.001)), ("5 to 50%", np.arange(0.05, 0.5, 0.001)),
                       (".5 to 2%", np.arange(0.005, 0.0201, 0.0005))):  # fmt: skip
        found = {}
        for n in (*SIZES, 400):
            lo, hi = (end[:, None] for end in stats.proportion_ci(np.arange(n + 1), np.full(n + 1, n)))
            inside = (lo <= grid + 1e-12) & (grid - 1e-12 <= hi)
            found[n] = least_and_mean((binomial(n, grid) * inside).sum(axis=0))
        yield "a rate of tasks: of an arm, of all runs, disagreement (Wilson)", name, found


def trinomial(n: int, most: int) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    from scipy.special import gammaln

    b, a = (x.ravel() for x in np.meshgrid(np.arange(most + 1), np.arange(most + 1), indexing="ij"))
    b, a = b[b + a <= most], a[b + a <= most]
    return b, a, gammaln(n + 1) - gammaln(b + 1) - gammaln(a + 1) - gammaln(n - a - b + 1)


def differences(runs: int) -> Iterator[Line]:
    """Every pair of counts of tasks that one of two arms alone rescued."""
    from scipy.special import xlogy

    cases: dict[str, Callable[[float], Floats]] = {
        "equal arms, disagreement to .3": lambda psi: np.zeros(1),
        "every difference, disagreement to .3": lambda psi: np.linspace(0, psi, 11),
        "all of it on one side": lambda psi: np.array([psi]),
    }
    found: dict[str, dict[int, str]] = {name: {} for name in cases}
    for n in (8, *SIZES):
        b, a, ways = trinomial(n, min(n, int(0.3 * n + 6 * np.sqrt(0.21 * n)) + 1))
        lo, hi = stats.bonett_price(b, a, n)
        for name, deltas in cases.items():
            shares = []
            for psi in np.arange(0.01, 0.301, 0.01):
                for delta in deltas(psi):
                    up, down = (psi + delta) / 2, max((psi - delta) / 2, 0.0)
                    chance = np.exp(ways + xlogy(b, up) + xlogy(a, down) + xlogy(n - a - b, 1 - psi))
                    shares.append(float(chance[(lo <= delta + 1e-12) & (delta - 1e-12 <= hi)].sum()))
            found[name][n] = least_and_mean(shares)
    for name in cases:
        yield "a difference, in points, in rescues, at equal tokens (Bonett and Price)", name, found[name]


def published(runs: int) -> Iterator[Line]:
    """The published rates' interval: percentiles of a bootstrap of 0 and 1, which are those of a binomial."""
    from scipy.stats import binom

    for rate in (0.02, 0.03, 0.093, 0.3):
        found = {}
        for n in SIZES:
            k = np.arange(n + 1)
            lo, hi = (binom.ppf(q, n, k / n) / n for q in (0.025, 0.975))
            lo, hi = np.where(k == 0, 0, lo), np.where(k == 0, 0, hi)
            inside = (lo <= rate + 1e-12) & (rate - 1e-12 <= hi)
            found[n] = f"{100 * float((binomial(n, np.array([rate]))[:, 0] * inside).sum()):.1f}"
        yield "rates as published (bootstrap)", f"a rate of {rate:.1%}", found


# ── by simulation ────────────────────────────────────────────────────────────────────────────────────────────────────


def of_arms(times: float, k: int, n: int, runs: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """(runs, k, n) rescues of the control's runs, (runs, n) of the arm, and its true advantage. times: its odds."""
    p = truths.all_fail(rng, runs, n)
    many = truths.all_fail(rng, 1, MANY)[0]
    true = float(np.mean(truths.rescue(truths.odds(many, times)) - truths.rescue(many)))
    control = rng.random((runs, k, n)) < truths.rescue(p)[:, None]
    return control.astype(float), (rng.random(p.shape) < truths.rescue(truths.odds(p, times))).astype(float), true


def reruns(runs: int) -> Iterator[Line]:
    for k in (2, 3):
        for name, times in (("equal arms", 1.0), ("odds x 2", 2.0), ("odds x 4", 4.0), ("odds x .2", 0.2)):
            found = {}
            for n in SIZES:
                control, own, true = of_arms(times, k, n, runs, np.random.default_rng([1, k, n, int(10 * times)]))
                got = [stats.compare_with_runs(c, x) for c, x in zip(control, own, strict=True)]
                found[n] = held([(x.lo, x.hi) for x in got], true)
            yield f"a difference from the mean of {k} runs of resample", name, found


def seeds(runs: int) -> Iterator[Line]:
    """Two seeds of the same tasks: a task is in both, in one, or in neither, by its base groups."""
    for name, times in (("equal arms", 1.0), ("odds x 2", 2.0)):
        found = {}
        for tasks in (80, 275):
            rng = np.random.default_rng([2, tasks, int(times)])
            ends, deltas = [], []
            for _ in range(runs):
                p = rng.beta(truths.A, truths.B, size=tasks)
                given = rng.random((2, tasks)) < (1 - p) ** truths.GROUP
                cell = np.nonzero(given)[1]
                place = np.unique(cell, return_inverse=True)[1]
                chance = truths.rescue(p[cell]), truths.rescue(truths.odds(p[cell], times))
                control, own = (rng.random(cell.size) < each for each in chance)
                got = compare_pooled(place, own.astype(float), control.astype(int), np.ones(cell.size))
                ends.append((got.lo, got.hi))
                deltas.append(got.delta)
            true = 0.0 if times == 1 else float(np.mean(deltas))
            found[tasks] = held(ends, true)
        yield "a difference over two planned seeds (tasks asked)", name, found


def bundles(runs: int, size: int = 5) -> Iterator[Line]:
    """Two seeds of bundles, the second of the same functions dealt out anew; each arm suits functions of its own."""
    for name, spread in (("arms suit the same functions", 0.0), ("each suits others, sd 1", 1.0), ("sd 3", 3.0)):
        found, plain = {}, {}
        for n in (60, 192):
            rng = np.random.default_rng([3, n, int(spread)])
            ends, alone = [], []
            for _ in range(max(runs // 4, 200)):
                hard = rng.standard_normal(n * size)
                suits = spread * rng.standard_normal((2, n * size))
                made_of = [np.arange(n * size).reshape(n, size), rng.permutation(n * size).reshape(n, size)]
                parts = np.concatenate(made_of)
                odds = -4.0 - spread + (hard[parts] + suits[:, parts]).sum(axis=-1) / np.sqrt(size)
                control, own = rng.random((2, 2 * n)) < 1 / (1 + np.exp(-odds))
                holder = np.argsort(made_of[1].ravel()) // size  # function -> its bundle of the second seed
                links = [(i, n + int(j)) for i in range(n) for j in set(holder[made_of[0][i]].tolist())]
                d = own.astype(float) - control
                ends.append(mean_ci(d, links))
                alone.append(mean_ci(d))
            found[n], plain[n] = (held(each, 0.0) for each in (ends, alone))
        yield "a difference over two planned seeds of bundles (bundles a seed)", name, found
        yield "the same, were shared functions not allowed for", name, plain


def samples(runs: int) -> Iterator[Line]:
    """Passes a sample over full budgets: rates in steps of 1/24, of which most are 0."""
    runs = max(runs // 2, 200)
    for name, (a, b) in {"as published": (truths.A, truths.B + 8), "Beta(.3, 2)": (0.3, 2.0)}.items():
        rate, gap = {}, {}
        for n in (60, 174):
            rng = np.random.default_rng([4, n, int(100 * a)])
            p = rng.beta(a, b, size=(runs, n))
            x, y = (rng.binomial(24, p) / 24 for _ in range(2))
            rate[n] = held(np.transpose(mean_share_ci(x.mean(axis=1), x.var(axis=1), n, Z)), a / (a + b))
            ends = [stats.bootstrap_ci(row, n_resamples=1999) for row in y - x]
            gap[n] = held(ends, 0.0)
        yield "passes a sample", f"tasks {name}", rate
        yield "a difference in passes a sample (bootstrap)", f"equal arms, tasks {name}", gap


def climb(runs: int) -> Iterator[Line]:
    """How far shares of programs moved from the first round to the last: 8 programs a round, most tasks all 0."""
    runs = max(runs // 2, 200)
    for name, (a, b), times in (
        ("fresh draws, 2% of programs pass the shown tests", (0.1, 4.9), 1.0),
        ("fresh draws, 20%", (0.5, 2.0), 1.0),
        ("odds x 3 by the last round, 20%", (0.5, 2.0), 3.0),
    ):
        found = {}
        many = np.random.default_rng(5).beta(a, b, size=MANY)
        true = float(np.mean(truths.odds(many, times) - many))
        for n in SIZES:
            rng = np.random.default_rng([5, n, int(100 * a), int(times)])
            p = rng.beta(a, b, size=(runs, n))
            moved = (rng.binomial(8, truths.odds(p, times)) - rng.binomial(8, p)) / 8
            some = [row for row in moved if len(set(row.tolist())) > 1]  # where all tasks say the same there is none
            found[n] = held([stats.bootstrap_ci(row, n_resamples=1999) for row in some], true)
        yield "how far a share of programs moved (bootstrap)", name, found


def after(runs: int) -> Iterator[Line]:
    """A pass in the first k of 24 draws, the band of the picture."""
    for name, (a, b) in {"as published": (truths.A, truths.B + 8), "Beta(.3, 4)": (0.3, 4.0)}.items():
        for k in (1, 4, 12, 24):
            found = {}
            true = float(np.mean(1 - (1 - np.random.default_rng(6).beta(a, b, size=MANY)) ** k))
            for n in SIZES:
                rng = np.random.default_rng([6, n, int(100 * a), k])
                c = rng.binomial(24, rng.beta(a, b, size=(runs, n)))
                share = stats.pass_at_k(np.full(c.shape, 24), c, k)
                found[n] = held(np.transpose(mean_share_ci(share.mean(axis=1), share.var(axis=1), n, Z)), true)
            yield f"a pass in {k} of 24 draws", f"tasks {name}, {true:.1%}", found


def band(runs: int) -> Iterator[Line]:
    """Two more runs of the control lie so close to each other, by what some runs of it showed."""
    for k in (2, 3, 5):
        by_means: dict[int, str] = {}
        by_tasks: dict[int, str] = {}
        seen: dict[int, str] = {}
        for n in SIZES:
            rng = np.random.default_rng([7, k, n])
            p = truths.rescue(truths.all_fail(rng, runs, n))
            drawn = (rng.random((runs, k + 2, n)) < p[:, None]).astype(float)
            apart = np.abs(np.diff(drawn[:, k:].mean(axis=2), axis=1))[:, 0]
            found = [stats.noise_band(each[:k]) for each in drawn]
            widths = np.array([(each.band_t, each.band_within) for each in found])
            for told, width in zip((by_means, by_tasks), widths.T, strict=True):
                some = width > 0  # one without a width is not told
                told[n] = f"{100 * np.mean(apart[some] <= width[some] + 1e-12):.1f}"
            seen[n] = f"{100 * np.mean([each.q_p < 0.05 for each in found]):.1f}"
        yield f"two more runs within the band of the means of {k} runs", "same tasks", by_means
        yield "the same, within the band of each task's replicates", f"{k} runs", by_tasks
        yield "the endpoint drifts, said at p under .05, of runs that do not", f"{k} runs", seen


def fresh(runs: int) -> Iterator[Line]:
    """What bench/foretold.py measures, of tasks as published and of more even ones."""
    named = ("a pass in 1 base draw", "in 4", "in 8", "a pass in 24 more draws, expected",
             "how often two arms disagree, expected (80%)")  # fmt: skip
    for a, b in ((truths.A, truths.B), (0.3, 2.0), (1.0, 3.0)):
        found: list[dict[int, str]] = [{} for _ in named]
        for n in (40, 80, 275):
            rng = np.random.default_rng([8, n, int(100 * a)])
            shares = foretold.covered(rng.beta(a, b, size=(max(runs // 5, 200), n)), rng.beta(a, b, size=MANY), rng)
            for each, share in zip(found, shares, strict=False):
                each[n] = f"{100 * share:.1f}"
        for name, each in zip(named, found, strict=True):
            yield name, f"Beta({a:g}, {b:g})", each


def cost(runs: int) -> Iterator[Line]:
    for rate in (0.03, 0.093, 0.4):
        x, spent = yields.arm(np.random.default_rng(9), (1, MANY), rate)
        true = x.mean() / spent.mean()
        found = {}
        for n in SIZES:
            x, spent = yields.arm(np.random.default_rng([9, n, int(1000 * rate)]), (runs, n), rate)
            found[n] = held([per_unit(*pair)[1] for pair in zip(x, spent, strict=True)], true)
        yield "rescues a million tokens, or a dollar", f"{rate:.1%} rescued", found


ALIKE = (
    (20, 5, 0.5, 0.5),
    (40, 10, 0.55, 0.6),
    (74, 24, 0.02, 0.3),
    (92, 6, 0.3, 0.5),
    (74, 24, 0.1, 0.2),
    (60, 12, 0.93, 0.3),
)  # fmt: skip  tasks, programs of each, pass rate, how alike those of a task are


def buckets(runs: int) -> Iterator[Line]:
    """Programs of a bucket, so many a task, whose passes resemble each other."""
    for tasks, size, rate, alike in ALIKE:
        rng, worth = np.random.default_rng([10, tasks, size]), (1 - alike) / alike
        groups = np.repeat(np.arange(tasks), size)
        ends, plain = [], []
        for _ in range(runs):
            passed = rng.random(tasks * size) < np.repeat(rng.beta(rate * worth, (1 - rate) * worth, tasks), size)
            ends.append(stats.clustered_ci(passed.astype(float), groups))
            plain.append(stats.proportion_ci(int(passed.sum()), passed.size))
        truth = f"{size} programs a task, {rate:.0%} pass, alike {alike:g}"
        yield "pass rate of a bucket", truth, {tasks: held(ends, rate)}
        yield "the same, were programs the unit (Wilson)", truth, {tasks: held(plain, rate)}


def areas(runs: int) -> Iterator[Line]:
    """AUCs, of all pairs and within tasks; the latter also at the 99% that decides the word."""
    runs = max(runs // 2, 200)
    for a, b, programs in aucs.CASES:
        rng = np.random.default_rng([11, int(100 * a)])
        both = [aucs.drawn(rng, a, b, 3000, programs) for _ in range(4)]
        whole, inside = (np.mean([stats.auc(*x, within=within).auc for x in both]) for within in (False, True))
        told: list[dict[int, str]] = [{}, {}, {}]
        for n in aucs.TASKS:
            drawn = [aucs.drawn(rng, a, b, n, programs) for _ in range(runs)]
            how = (whole, False, 0.95), (inside, True, 0.95), (inside, True, 0.99)
            for each, (truth, within, level) in zip(told, how, strict=True):
                got = [stats.auc(*x, within=within, level=level) for x in drawn]
                each[n] = held([(x.lo, x.hi) for x in got], truth)
        names = "AUC over all pairs", "AUC within tasks", "AUC within tasks, 99%"
        for name, each in zip(names, told, strict=True):
            yield name, f"rates Beta({a:g}, {b:g}), {programs} programs", each


def correlation(runs: int) -> Iterator[Line]:
    """SQL: a task's pass rate against the mean fitness of its wrong attempts, six attempts a task."""
    import sql_calibrate

    for name, slope in (("unrelated", 0.0), ("related", 1.5)):
        found = {}

        def drawn(rng: np.random.Generator, n: int, slope: float = slope) -> list[tuple[float, bool, str]]:
            skill = rng.standard_normal(n)
            chance = 1 / (1 + np.exp(-(1.5 * skill - 0.5)))
            passed = rng.random((n, 6)) < chance[:, None]
            lift = slope * skill[:, None] + rng.standard_normal((n, 6))
            fitness = np.where(lift > 0.5, np.round(1 / (1 + np.exp(-lift)), 2), 0.0)
            return [
                (1.0 if passed[i, j] else float(fitness[i, j]), bool(passed[i, j]), str(i))
                for i in range(n)
                for j in range(6)
            ]

        rng = np.random.default_rng([12, int(slope)])
        true = sql_calibrate.correlation(drawn(rng, 40_000))["r"]
        for n in (30, 92, 371):
            got = [
                sql_calibrate.correlation(drawn(rng, n))["interval"] or [np.nan] * 2 for _ in range(max(runs // 4, 200))
            ]
            found[n] = held(got, true)
        yield "r of pass rate and wrong attempts' fitness, SQL", f"{name}, r {true:+.2f}", found


PARTS = (rates, differences, reruns, seeds, bundles, samples, climb, after, band, fresh, cost, buckets, areas,
         correlation, published)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", default=",".join(part.__name__ for part in PARTS))
    args = parser.parse_args()
    wanted = args.only.split(",")
    if unknown := set(wanted) - {part.__name__ for part in PARTS}:
        parser.error(f"no part {', '.join(sorted(unknown))}: they are {', '.join(part.__name__ for part in PARTS)}")
    print("| interval | truth | at so many tasks, % of runs |\n|---|---|---|")
    for part in PARTS:
        if part.__name__ in wanted:
            for name, truth, found in part(args.runs):
                print(f"| {name} | {truth} | {'; '.join(f'{n}: {said}' for n, said in found.items())} |", flush=True)


if __name__ == "__main__":
    main()
