"""Estimators: what a few hundred tasks can say, and no more than that.

Pure numpy and scipy: no file, no clock, no global random state. Every function takes arrays and returns a number or a
named tuple. Conventions that hold throughout:

- Fractions in [0, 1]; a point (one percent) exists only where a person reads.
- The task is the unit. An array of shape (n_tasks,) holds one value a task, and resampling draws whole tasks.
- NaN or infinity on the way in raises ValueError: drop what was not graded first, and report how many that were.
- What cannot be estimated (no task, one task, one class) is nan, with its n beside it: no crash, no confident number.
- Random draws come from the generator handed in; without one, from a fixed one, so equal input gives equal output.

The order is: one arm (rates, intervals), two arms (paired comparison, equivalence, verdict), many runs (noise band),
planning (sample size, power), a score against a pass (AUC, calibration table).
A score against a pass stands in estimators/scores.py and is handed on from here.
What is left out: regression models, Bayesian intervals, sequential tests. scipy is imported where it is used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.equivalence import quantile, score, score_ci
from estimators.parts import (
    RELATIVE_TIE,
    Array,
    finite,
    inside,
    is_binary,
    normal_quantile,
    vector,
    whole,
)
from estimators.parts import Comparison as Comparison
from estimators.parts import Interval as Interval
from estimators.parts import proportion_ci as proportion_ci
from estimators.parts import settled as settled
from estimators.reruns import compare_with_runs as compare_with_runs
from estimators.reruns import worth as worth
from estimators.scores import Auc as Auc
from estimators.scores import Bucket as Bucket
from estimators.scores import auc as auc
from estimators.scores import calibration_table as calibration_table
from estimators.scores import clustered_ci as clustered_ci

CHUNK = 1 << 22  # numbers held at once by a resampling loop (32 MB of floats)
N_RESAMPLES = 9_999  # bootstrap and sign-flip draws; with the observed value itself, 10,000
DISTINCT_SUMS = 1 << 18  # up to so many different sums, a sign-flip distribution is worked out exactly
FEW = 1 << 11  # discordant tasks, up to which the critical values of an exact test are kept

VERDICTS = ("better", "worse", "equivalent", "inconclusive")


class Equivalence(NamedTuple):
    """Whether the interval of the difference lies inside the margin on both sides, and that interval."""

    equivalent: bool
    interval: Interval

    @property
    def lo(self) -> float:
        return self.interval.lo

    @property
    def hi(self) -> float:
        return self.interval.hi

    def __bool__(self) -> bool:
        return self.equivalent


class NoiseBand(NamedTuple):
    """How far two runs of one and the same arm differ. A delta within the band is the run differing from itself."""

    run_means: tuple[float, ...]
    std_between: float  # sd of the run means
    band_t: float  # the published band, from the run means alone
    std_within: float  # sd of a run mean with the tasks held fixed, from each task's own replicates
    band_within: float
    q: float  # how much more the runs differ than their tasks explain: chi-square with q_df
    q_df: int
    q_p: float


# ── One arm ─────────────────────────────────────────────────────────────────────────────────────────────────
def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> Any:
    """The chance that k of a task's n attempts, drawn without replacement, hold at least one of its c passes.

    n, c: (n_tasks,) whole numbers, 0 <= c <= n; k: a whole number >= 1. They broadcast. Returns (n_tasks,)
    probabilities, or one float for scalars; nan where n < k, since fewer than k attempts cannot tell (the common
    shortcut returns 1 there, even for a task that never passed). Mean over tasks = pass@k.

    Unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374, section 2.1), as a running
    product, so that no factorial overflows. Raises ValueError for k < 1, c outside [0, n], or a broken number.
    """
    n_, c_, k_ = np.broadcast_arrays(whole(n, "n"), whole(c, "c"), whole(k, "k"))
    if np.any(k_ < 1):
        raise ValueError("k must be >= 1: pass@k looks at at least one attempt")
    if np.any((c_ < 0) | (c_ > n_)):
        raise ValueError("c must be in [0, n]: a task cannot have more passes than attempts")
    miss = np.ones(n_.shape)
    for i in range(int(k_.max(initial=0))):
        step = np.clip(n_ - c_ - i, 0, None) / np.maximum(n_ - i, 1)
        miss = np.where(i < k_, miss * step, miss)
    return np.where(k_ > n_, np.nan, 1.0 - miss)[()]


def bootstrap_ci(
    values: ArrayLike, level: float = 0.95, n_resamples: int = N_RESAMPLES, rng: np.random.Generator | None = None
) -> Interval:
    """Percentile bootstrap interval of the mean over tasks.

    values: (n_tasks,), one number a task. Returns (lo, hi) in the unit of the values; nan under two tasks. Resamples
    of up to three distinct values (shares, differences of shares) are drawn as how often each occurs, a multinomial:
    the same draw as picking n tasks with replacement, at a fraction of its cost.

    Efron and Tibshirani 1993, chapter 13. It serves the published keys, means that are not shares, and nothing else,
    because for rare events it promises too much. Exact coverage of the nominal 95% at 60 tasks: 83% at a rate of 3%,
    70% at 2%; at 220 tasks 84% at 1.5%. With no success at all it returns [0, 0], which is not knowledge: use
    `proportion_ci` for a share.

    Raises ValueError for NaN or infinity in the values, more than one axis, or n_resamples < 1.
    """
    x = vector(values, "values")
    tail = (1 - inside(level, "level")) / 2
    if n_resamples < 1:
        raise ValueError("n_resamples must be >= 1")
    if x.size < 2:
        return Interval(np.nan, np.nan)
    limits = np.quantile(_resampled_means(x, n_resamples, _generator(rng)), [tail, 1 - tail])
    # A limit that is 0 comes out as 1e-17 on one side of it, and a verdict asks on which.
    lo, hi = settled(limits, scale=float(np.abs(x).max()))
    return Interval(float(lo), float(hi))


# ── Two arms on the same tasks ──────────────────────────────────────────────────────────────────────────────
def bonett_price(n_b_only: ArrayLike, n_a_only: ArrayLike, n: ArrayLike, level: float = 0.95) -> Interval:
    """Adjusted Wald interval for the difference b - a of two paired shares (Bonett and Price 2012).

    n_b_only, n_a_only: tasks passed by one arm alone; n: tasks in all. Whole numbers or arrays that broadcast; (lo,
    hi) as fractions, cut at -1 and 1. One discordant task is added to each side, so that no discordance at all still
    leaves an interval with a width.

    J. Educ. Behav. Stat. 37:479. Exact coverage of the nominal 95%, for discordances up to .3 and every difference
    they allow, in steps of .001: never under .929 at 60 tasks and .933 at 220; where the arms are truly equal never
    under .95 at either.
    """
    b, a, total = (whole(v, name) for v, name in ((n_b_only, "n_b_only"), (n_a_only, "n_a_only"), (n, "n")))
    if np.any(b + a > total):
        raise ValueError("n_b_only + n_a_only must be at most n")
    p_b, p_a = (b + 1) / (total + 2), (a + 1) / (total + 2)
    middle = p_b - p_a
    half = normal_quantile(1 - (1 - inside(level, "level")) / 2) * np.sqrt((p_b + p_a - middle**2) / (total + 2))
    return Interval(np.maximum(middle - half, -1)[()], np.minimum(middle + half, 1)[()])


def compare_paired(
    a: ArrayLike,
    b: ArrayLike,
    level: float = 0.95,
    method: Literal["exact", "bootstrap"] | str = "exact",
    rng: np.random.Generator | None = None,
) -> Comparison:
    """Arm b against arm a, paired by task: mean difference b - a with interval and two-sided p-value.

    a, b: (n_tasks,) each, the same tasks in the same order; units are kept. Relabelling the arms mirrors the answer.

    0/1 data: exact McNemar test (binomial on the discordant tasks, 1 where there are none), interval of Bonett and
    Price (`bonett_price`).
    Other data: sign-flip test with ties counted, exact while the sums can be enumerated (which rates in steps of 1/24
    always allow), else Monte Carlo with the observed value counted in, (hits + 1) / (draws + 1), so that p is never
    0; interval by percentile bootstrap. For rates that are 0 on most tasks it is short of its level: with 24 samples a
    task, about one task in ten above 0, it covers 85 to 95% at 174 tasks and 71 to 89% at 60, so that the p-value
    decides. Where every task has the same difference it has no width to measure, and is nan. Differences that are
    equal, or 0, but for rounding are made so first (`settled`).
    method "bootstrap": the percentile interval for any data. It is what the published keys were made with.

    One task: the difference stands, its interval is nan. No task: all nan, n = 0.
    Raises ValueError for NaN (drop ungraded tasks from both arms and report n), unequal lengths, another method.
    """
    x, y = _pair(a, b)
    if method not in ("exact", "bootstrap"):
        raise ValueError(f"method must be 'exact' or 'bootstrap', not {method!r}")
    inside(level, "level")
    d = _differences(x, y)
    a_only, b_only = int(np.sum(d < 0)), int(np.sum(d > 0))
    if d.size == 0:
        return Comparison(np.nan, np.nan, np.nan, np.nan, 0, 0, 0)
    generator = _generator(rng)
    binary = is_binary(x) and is_binary(y)
    p_value = _mcnemar(a_only, b_only) if binary else _sign_flip(d, generator)
    if method == "bootstrap":
        lo, hi = bootstrap_ci(d, level, rng=generator)
    else:
        lo, hi = _difference_ci(x, y, level, generator)
    (delta,) = settled(d.mean(keepdims=True), scale=float(np.abs(d).max()))
    return Comparison(float(delta), float(lo), float(hi), p_value, d.size, a_only, b_only)


def equivalent(
    a: ArrayLike, b: ArrayLike, margin: float, alpha: float = 0.05, rng: np.random.Generator | None = None
) -> Equivalence:
    """Two one-sided tests: is the difference between two paired arms shown to be smaller than the margin?

    a, b: (n_tasks,) each; margin in the unit of the data (0.05 = five points of a rate). Returns whether an interval of
    about the level 1 - 2 alpha lies strictly inside (-margin, margin), and that interval. Nothing is equivalent on
    fewer than two tasks, or where the interval is nan.

    0/1 data: Tango's score interval, at a quantile that keeps the error under alpha for every share of discordant tasks
    (estimators/equivalence.py): false "equivalent" at the margin's edge in at most 5.0%, by enumeration, on 40 to 400
    tasks at margins of 1 to 10 points. The interval of Bonett and Price would say it in 7.3% on 220 tasks and in 10.3%
    on 104 where all discordance lies on one side. At 60 tasks and 5 points it can only be declared where not one task
    is discordant.
    Other data: percentile bootstrap over the tasks and two more, one at either end of what the data span: Bonett and
    Price's correction, for differences of any size. Rates that are 0 on most tasks need it: with 24 samples a task, 174
    tasks and a true difference of 1 point, all on one side, the plain bootstrap says "equivalent" at 1 point in 15% of
    runs (at 60 tasks in a quarter), this one in 4% (6%).

    Schuirmann 1987 (J. Pharmacokinet. Biopharm. 15:657). Raises ValueError for NaN, unequal lengths, a margin <= 0, or
    alpha outside (0, .5).
    """
    x, y = _pair(a, b)
    if not (np.isfinite(margin) and margin > 0):
        raise ValueError("margin must be a positive number, in the unit of the data (0.05 = five points)")
    if not 0 < alpha < 0.5:
        raise ValueError("alpha must be in (0, 0.5)")
    level, generator = 1 - 2 * alpha, _generator(rng)
    span = float(np.ptp(settled(np.concatenate((x, y))))) if x.size else 0.0
    if x.size > 1 and is_binary(x) and is_binary(y):
        z = quantile(x.size, margin, alpha) if margin < 1 else normal_quantile(1 - alpha)
        interval = score_ci(int(np.sum(y > x)), int(np.sum(x > y)), x.size, z)
    elif x.size < 2 or span == 0:
        interval = Interval(np.nan, np.nan)
    else:
        interval = bootstrap_ci(np.append(_differences(x, y), (-span, span)), level, rng=generator)
    edge = margin * (1 - RELATIVE_TIE)  # a limit that is the margin but for rounding is not inside it
    return Equivalence(bool(-edge < interval.lo and interval.hi < edge), interval)


def equivalence_reach(n: int, margin: float, alpha: float = 0.05) -> int | None:
    """On how many of n tasks two arms may disagree, half of them either way, and be shown equivalent by 0/1 data.

    None where no data of n tasks show it. At a margin of .05: None at 40 tasks, 0 at 60, 42 at 220.
    """

    if n < 2 or not margin > 0:
        return None
    if margin >= 1:
        return n
    either_way = np.arange(n // 2 + 1)
    enough = int(np.sum(score(either_way, either_way, n, margin) <= -quantile(n, margin, alpha)))
    return 2 * (enough - 1) if enough else None


def verdict(
    comparison: Comparison,
    p_adjusted: float,
    equivalent: Equivalence | bool,
    alpha: float = 0.05,
    control: float = np.inf,
) -> str:
    """One of `VERDICTS` for arm b of a comparison.

    better / worse: the interval excludes 0 and the p-value, adjusted over the arms of one metric (`holm`), is under
    alpha. Otherwise equivalent, if the margin holds the difference (`equivalent`), the interval holds 0, and it leaves
    no room for an arm that finds nothing at all: its lower end is above -control, the mean of arm a where it is known.
    A margin can be wider than all that the control finds, and then says nothing. Otherwise inconclusive, which also
    covers everything that could not be estimated. "No difference was found" is never turned into "no difference".
    """
    if p_adjusted < alpha:  # False for nan
        if comparison.lo > 0:
            return "better"
        if comparison.hi < 0:
            return "worse"
    means_something = -control < comparison.lo <= 0 <= comparison.hi
    return "equivalent" if equivalent and means_something else "inconclusive"


def holm(p: ArrayLike) -> Array:
    """Holm's step-down adjustment: p-values (m,) -> adjusted p-values (m,), in the same order.

    Keeps the chance of any false positive among the m under alpha, whatever their dependence (Holm 1979, Scand. J.
    Stat. 6:65). Raises ValueError unless every p is in [0, 1]; leave out what was not estimable before calling.
    """
    p_ = np.atleast_1d(np.asarray(p, dtype=float))
    if p_.ndim != 1 or not np.all((p_ >= 0) & (p_ <= 1)):
        raise ValueError("p must be a list of numbers in [0, 1]; leave out what was not estimable")
    order = np.argsort(p_, kind="stable")
    steps = np.maximum.accumulate(p_[order] * np.arange(p_.size, 0, -1))
    adjusted = np.empty_like(p_)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


# ── Many runs of one arm ────────────────────────────────────────────────────────────────────────────────────
def noise_band(runs: ArrayLike, level: float = 0.95) -> NoiseBand:
    """How far two runs of the same arm on the same tasks differ by their seeds alone.

    runs: (n_runs, n_tasks), one row a run, one column a task. Every band is a half width, in the unit of the data.
    - band_t = t(1 - (1-level)/2, n_runs-1) * sqrt(2) * sd(run means): the published band, from unrounded means. Two
      or three runs make it wide or, by luck, narrow: zero spread among three means is no evidence of a zero band.
    - band_within = z * sqrt(2) * sqrt(sum_i s_i^2) / n_tasks, s_i^2 = replicate variance of task i: the same quantity
      from n_tasks times as many numbers. nan with fewer than two tasks.
    - q = (n_runs - 1) * (std_between / std_within)^2 against chi-square with n_runs - 1 degrees of freedom: do the
      runs differ by more than their tasks explain (a drifting endpoint, say)? For 0/1 data this is Cochran's Q (1950).
    Fewer than two runs: nan throughout, with the run means. Raises ValueError for NaN or any other number of axes.
    """
    x = np.asarray(runs, dtype=float)
    if x.ndim != 2:
        raise ValueError("runs must have two axes: (n_runs, n_tasks)")
    finite(x, "runs")
    tail = 1 - (1 - inside(level, "level")) / 2
    n_runs, n_tasks = x.shape
    if n_tasks == 0:
        return NoiseBand((np.nan,) * n_runs, *(np.nan,) * 5, max(n_runs - 1, 0), np.nan)
    means = x.mean(axis=1)
    run_means = tuple(map(float, means))
    if n_runs < 2:
        return NoiseBand(run_means, *(np.nan,) * 5, 0, np.nan)
    from scipy.special import chdtrc, stdtrit

    # Taking the first run off first leaves equal runs with a spread of exactly 0.
    scale = float(np.abs(x).max())
    apart = settled(x - x[0], scale)
    between = float(np.std(settled(apart.mean(axis=1), scale), ddof=1))
    band_t = float(stdtrit(n_runs - 1, tail)) * np.sqrt(2) * between
    within = q = q_p = np.nan
    if n_tasks >= 2:
        within = float(np.sqrt(np.var(apart, axis=0, ddof=1).sum()) / n_tasks)
        if within > 0:
            q = (n_runs - 1) * (between / within) ** 2
            q_p = float(chdtrc(n_runs - 1, q))
    band_within = normal_quantile(tail) * np.sqrt(2) * within
    return NoiseBand(run_means, between, float(band_t), within, float(band_within), float(q), n_runs - 1, q_p)


# ── Planning ────────────────────────────────────────────────────────────────────────────────────────────────
def tasks_needed(effect: float, discordance: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Paired tasks on which the exact McNemar test finds `effect` with the given power; fractions as in `sample_size`.

    By bisection from what `sample_size` approximates: the power of an exact test falls a little wherever its critical
    value steps, so a few tasks more or less may do as well.
    """
    about = sample_size(effect, discordance=discordance, power=power, alpha=alpha)
    tasks = range(about // 2, 2 * about + 20)
    enough = bisect_left(tasks, True, key=lambda n: power_paired(n, effect, discordance, alpha=alpha) >= power)
    return tasks[enough]


def sample_size(
    effect: float,
    base: float | None = None,
    discordance: float | None = None,
    k: int = 1,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int:
    """Tasks needed to find a difference of `effect` with the given power in a two-sided test.

    Exactly one of the two must be given, as fractions:
    - base: the rate without the effect. Two independent arms, k attempts a task:
      ceil((z_{1-alpha/2} + z_power)^2 * (p q + p' q') / k / effect^2), p' = base + effect.
    - discordance: the share of tasks on which the paired arms disagree; k does not enter. McNemar's test:
      ceil((z_{1-alpha/2} sqrt(psi) + z_power sqrt(psi - effect^2))^2 / effect^2), Connor 1987 (Biometrics 43:207).

    Normal approximations: `power_paired` gives the exact power at the n found, usually two or three points under the
    one asked for; `tasks_needed` searches with that.

    Raises ValueError where the numbers contradict each other (no effect, a rate outside [0, 1], an
    effect larger than the discordance).
    """
    if not (np.isfinite(effect) and 0 < abs(effect) < 1):
        raise ValueError("effect must be a difference of rates in (-1, 1) other than 0")
    if (base is None) == (discordance is None):
        raise ValueError("give either base (independent arms) or discordance (paired arms)")
    if k < 1:
        raise ValueError("k must be >= 1 attempt a task")
    z_alpha = normal_quantile(1 - inside(alpha, "alpha") / 2)
    z_power = normal_quantile(inside(power, "power"))
    if base is not None:
        other = base + effect
        if not (0 <= base <= 1 and 0 <= other <= 1):
            raise ValueError("base and base + effect must be in [0, 1]")
        spread = base * (1 - base) + other * (1 - other)
        need = (z_alpha + z_power) ** 2 * spread / k / effect**2
    else:
        psi = _discordance(discordance, effect)
        need = (z_alpha * np.sqrt(psi) + z_power * np.sqrt(psi - effect**2)) ** 2 / effect**2
    return int(np.ceil(need))


def power_paired(n: int, effect: float, discordance: float, alpha: float = 0.05) -> float:
    """Exact power of the two-sided exact McNemar test on n tasks.

    effect: b's rate minus a's; discordance: share of tasks on which they disagree, at least |effect|. Sums over the
    binomial number of discordant tasks m, and within it over the rejection region of the exact test (p <= alpha).
    With effect 0 it is the test's true size, well under alpha: at 223 tasks and discordance .09, .029 for alpha .05.
    Returns a probability; 0 for n = 0. Raises ValueError for n < 0, an effect beyond the discordance, alpha
    outside (0, 1).
    """
    if n < 0 or n != int(n):
        raise ValueError("n must be a whole number of tasks, >= 0")
    psi = _discordance(discordance, effect)
    reach = 10 * np.sqrt(n * psi * (1 - psi)) + 50  # beyond it lies less than 1e-20, by Bernstein's inequality
    m = np.arange(max(int(n * psi - reach), 0), min(int(n * psi + reach), int(n)) + 1)
    inside(alpha, "alpha")
    most = _few_mcnemar_most(alpha)[m] if m[-1] < FEW else _mcnemar_most(m, alpha)
    if psi == 0 or not np.any(most >= 0):
        return 0.0
    from scipy.special import bdtr

    share = min(max((psi + effect) / (2 * psi), 0.0), 1.0)  # of the discordant tasks, those that b passes
    region = np.maximum(most, 0)
    reject = np.where(most >= 0, bdtr(region, m, share) + bdtr(region, m, 1 - share), 0.0)
    return float(np.clip(_binomial_pmf(m, int(n), psi) @ reject, 0.0, 1.0))


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    x, y = vector(a, "a"), vector(b, "b")
    if x.size != y.size:
        raise ValueError(f"a and b must be the same tasks: {x.size} against {y.size}")
    return x, y


def _differences(x: Array, y: Array) -> Array:
    """y - x. Rounding leaves as much behind as the larger of the two, however small their difference."""
    return settled(y - x, scale=float(max(np.abs(x).max(initial=0), np.abs(y).max(initial=0))))


def _discordance(discordance: float | None, effect: float) -> float:
    if discordance is None or not (np.isfinite(effect) and abs(effect) <= discordance <= 1):
        raise ValueError("discordance must be in [|effect|, 1]: arms that differ by effect disagree at least so often")
    return float(discordance)


def _generator(rng: np.random.Generator | None) -> np.random.Generator:
    return np.random.default_rng(0) if rng is None else rng


def _chunks(total: int, width: int) -> Iterator[int]:
    """Split `total` draws of `width` numbers each into pieces that fit in memory."""
    size = max(1, CHUNK // max(width, 1))
    for start in range(0, total, size):
        yield min(size, total - start)


def _resampled_means(x: Array, n_resamples: int, rng: np.random.Generator) -> Array:
    values, counts = np.unique(x, return_counts=True)
    # Means are taken of the distance to the lowest value, so that equal values give back exactly that value.
    if values.size <= 3:
        share, steps = counts / x.size, values - values[0]
        means = [rng.multinomial(x.size, share, size=m) @ steps / x.size for m in _chunks(n_resamples, values.size)]
    else:
        steps = np.sort(x) - values[0]  # sorted, so that the order of tasks cannot matter
        means = [
            steps.take(rng.integers(0, x.size, size=(m, x.size))).mean(axis=1) for m in _chunks(n_resamples, x.size)
        ]
    return values[0] + np.concatenate(means)


def _difference_ci(x: Array, y: Array, level: float, rng: np.random.Generator) -> Interval:
    d = _differences(x, y)
    if d.size < 2:
        return Interval(np.nan, np.nan)
    if is_binary(x) and is_binary(y):
        return bonett_price(int(np.sum(d > 0)), int(np.sum(d < 0)), d.size, level)
    if np.all(d == d[0]):
        return Interval(np.nan, np.nan)
    return bootstrap_ci(d, level, rng=rng)


def _mcnemar(a_only: int, b_only: int) -> float:
    from scipy.special import bdtr

    less, m = min(a_only, b_only), a_only + b_only
    if 2 * less + 1 >= m:  # as even as it can be: 1 by symmetry, which rounding would miss
        return 1.0
    return 2 * float(bdtr(less, m, 0.5))


def _mcnemar_most(m: NDArray[Any], alpha: float) -> NDArray[Any]:
    """For m discordant tasks, the most that the smaller side may hold with p <= alpha; -1 where no split is enough."""
    from scipy.special import bdtr

    most, over = np.full(m.shape, -1), (m + 1) // 2  # the largest that is few enough, and a number that is not
    while np.any(over - most > 1):
        trial = (most + over) // 2  # -1 where the two have met at 0: no side holds so few
        few = (trial < 0) | (2 * bdtr(np.maximum(trial, 0), m, 0.5) <= alpha)
        most, over = np.where(few, trial, most), np.where(few, over, trial)
    return most


@lru_cache(maxsize=16)
def _few_mcnemar_most(alpha: float) -> NDArray[np.int64]:
    """The same of each m below FEW: a search for a number of tasks asks for them dozens of times."""
    return _mcnemar_most(np.arange(FEW), alpha)


def _binomial_pmf(k: NDArray[Any], n: int, p: float) -> Array:
    from scipy.special import gammaln, xlog1py, xlogy

    return np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p))


def _sign_flip(d: Array, rng: np.random.Generator) -> float:
    """Two-sided p of the mean of d when each task's sign is a fair coin. Zero differences have no sign to flip."""
    steps = np.abs(d[d != 0])
    scale = float(steps.sum())
    if scale == 0:
        return 1.0
    steps = np.flip(np.sort(steps)) / scale
    seen = abs(float(d.sum())) / scale - RELATIVE_TIE  # sums that are equal but for rounding count as equal
    exact = _signed_sums(steps)
    if exact is not None:
        sums, weights = exact
        return float(min(1.0, weights[np.abs(sums) >= seen].sum()))
    hits = 0
    for m in _chunks(N_RESAMPLES, steps.size):
        signs = 2.0 * rng.integers(0, 2, size=(m, steps.size)) - 1
        hits += int(np.sum(np.abs(signs @ steps) >= seen))
    return (hits + 1) / (N_RESAMPLES + 1)


def _signed_sums(steps: Array) -> tuple[Array, Array] | None:
    """Every sum of +-steps with its probability; None where there are too many different ones.

    Sums that meet are merged as they appear, so a few hundred steps of common size stay a few thousand sums.
    """
    sums: NDArray[Any] = np.zeros(1)
    weights: NDArray[Any] = np.ones(1)
    for step in steps:
        if 2 * sums.size > DISTINCT_SUMS:
            return None
        both = np.concatenate((sums - step, sums + step))
        keys = np.round(both / RELATIVE_TIE)
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        weights = np.bincount(place.reshape(-1), weights=np.concatenate((weights, weights)) / 2)
        sums = both[first]
    return sums, weights
