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
What is left out: regression models, Bayesian intervals, sequential tests. scipy is imported where it is used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

N_RESAMPLES = 9_999  # bootstrap and sign-flip draws; with the observed value itself, 10,000
DISTINCT_SUMS = 1 << 18  # up to so many different sums, a sign-flip distribution is worked out exactly
CHUNK = 1 << 22  # numbers held at once by a resampling loop (32 MB of floats)
RELATIVE_TIE = 1e-9  # two results of the same arithmetic closer than this share of their scale are one number
FIRST_VOTE = 0.5  # of a passing program, that all of its task pass: what is believed before any pass is seen

VERDICTS = ("better", "worse", "equivalent", "inconclusive")


class Interval(NamedTuple):
    """Lower and upper limit, as fractions; nan where nothing can be said."""

    lo: Any
    hi: Any


class Comparison(NamedTuple):
    """Arm b against arm a on the same tasks. delta = mean of b - a."""

    delta: float
    lo: float
    hi: float
    p_value: float  # two-sided
    n: int  # tasks
    n_a_only: int  # tasks where a is above b (0/1 data: passed by a alone)
    n_b_only: int


class Equivalence(NamedTuple):
    """Whether the (1 - 2 alpha) interval of the difference lies inside the margin on both sides, and that interval."""

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


class Auc(NamedTuple):
    """Area under the ROC curve: the chance that a pass scores above a fail, a tie counting one half."""

    auc: float
    se: float  # over groups; equals the ordinary (DeLong) standard error when every sample is its own group
    lo: float
    hi: float
    n_pos: int
    n_neg: int
    n_pairs: int  # (pass, fail) pairs compared
    n_groups: int  # groups with any sample; `within`: groups that hold both a pass and a fail


class Bucket(NamedTuple):
    """One row of a calibration table: the pass rate among programs whose fitness lies in the bucket."""

    bucket: str
    n: int
    passed: int
    rate: float
    lo: float
    hi: float


# ── One arm ─────────────────────────────────────────────────────────────────────────────────────────────────
def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> Any:
    """The chance that k of a task's n attempts, drawn without replacement, hold at least one of its c passes.

    n, c: (n_tasks,) whole numbers, 0 <= c <= n; k: a whole number >= 1. They broadcast. Returns (n_tasks,)
    probabilities, or one float for scalars; nan where n < k, since fewer than k attempts cannot tell (the common
    shortcut returns 1 there, even for a task that never passed). Mean over tasks = pass@k.

    Unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374, section 2.1), as a running
    product, so that no factorial overflows. Raises ValueError for k < 1, c outside [0, n], or a broken number.
    """
    n_, c_, k_ = np.broadcast_arrays(_whole(n, "n"), _whole(c, "c"), _whole(k, "k"))
    if np.any(k_ < 1):
        raise ValueError("k must be >= 1: pass@k looks at at least one attempt")
    if np.any((c_ < 0) | (c_ > n_)):
        raise ValueError("c must be in [0, n]: a task cannot have more passes than attempts")
    miss = np.ones(n_.shape)
    for i in range(int(k_.max(initial=0))):
        step = np.clip(n_ - c_ - i, 0, None) / np.maximum(n_ - i, 1)
        miss = np.where(i < k_, miss * step, miss)
    return np.where(k_ > n_, np.nan, 1.0 - miss)[()]


def proportion_ci(count: ArrayLike, nobs: ArrayLike, level: float = 0.95, method: str = "wilson") -> Interval:
    """Confidence interval for a share: count successes in nobs independent tries.

    count, nobs: whole numbers or arrays that broadcast; returns (lo, hi) of the same shape; nan where nobs = 0.
    method "wilson": the score interval (Wilson 1927), the default of every rate in the report. "exact": Clopper and
    Pearson (1934), never under its level, and wider than needed.

    Real coverage of the 95% Wilson interval, worked out exactly: for rates from 2% to 98% never under .927 at 60 and
    .933 at 220 observations, .951 on average. Nearer to 0 and 1 it falls, down to .838 where the expected count is
    about .18: a rate seen as 0 or as one task is a bound more than an estimate.

    Raises ValueError for a count outside [0, nobs], a level outside (0, 1), or another method.
    """
    k, n = np.broadcast_arrays(_whole(count, "count"), _whole(nobs, "nobs"))
    if np.any((k < 0) | (k > n)):
        raise ValueError("count must be in [0, nobs]")
    if method == "wilson":
        z = _z(1 - (1 - _inside(level, "level")) / 2)
        lo, hi = _wilson(k, n, z)
    elif method == "exact":
        lo, hi = _clopper_pearson(k, n, (1 - _inside(level, "level")) / 2)
    else:
        raise ValueError(f"method must be 'wilson' or 'exact', not {method!r}")
    empty = n == 0
    return Interval(np.where(empty, np.nan, lo)[()], np.where(empty, np.nan, hi)[()])


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
    x = _vector(values, "values")
    tail = (1 - _inside(level, "level")) / 2
    if n_resamples < 1:
        raise ValueError("n_resamples must be >= 1")
    if x.size < 2:
        return Interval(np.nan, np.nan)
    limits = np.quantile(_resampled_means(x, n_resamples, _generator(rng)), [tail, 1 - tail])
    # A limit that is 0 comes out as 1e-17 on one side of it, and a verdict asks on which.
    lo, hi = settled(limits, scale=float(np.abs(x).max()))
    return Interval(float(lo), float(hi))


def clustered_ci(passed: ArrayLike, groups: ArrayLike, level: float = 0.95) -> Interval:
    """Confidence interval for the pass rate of programs that come in tasks, where passes are rare.

    passed: (n,) 0/1; groups: (n,) the task of each. Returns (lo, hi); nan for no program. Wilson's interval with n
    replaced by n / (1 + (s - 1) c): s is the size of the task that a program sees, sum of squared sizes over n, and c
    how alike a task's programs are. For a passing program it is the share of its task's others that pass too; c is the
    mean over the passing programs and half a vote for 1. So while nothing passes a task of equal ones counts as one
    program, and after a few passes of many tasks programs count nearly one by one. c is not reduced by what chance
    alone would give: where passes are common, the interval is wider than it need be.

    Design effect with unequal sizes: Kish 1965 (Survey Sampling). By simulation, 5 to 74 tasks of 1 to 15 programs,
    rates from 2 to 50%, from independent programs to tasks that pass or fail as a whole: the upper limit of the nominal
    95% lies under the true rate in 5.5% of runs at most (mostly under 2.5%), that of Wilson's interval of the programs
    in up to 54%; the lower limit lies above it in 8% at most, where the expected passes are few.

    Raises ValueError for passed other than 0/1, NaN, unequal lengths, or a level outside (0, 1).
    """
    y = _vector(passed, "passed")
    if not _is_binary(y):
        raise ValueError("passed must be 0 or 1")
    g = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if g.size != y.size:
        raise ValueError("groups must have one entry a program")
    z = _z(1 - (1 - _inside(level, "level")) / 2)
    if y.size == 0:
        return Interval(np.nan, np.nan)
    n, k = np.bincount(g), np.bincount(g, weights=y)
    size = float(n @ n / y.size)
    several = n > 1  # a program alone in its task says nothing of how alike they are
    votes = float(k[several].sum()) + FIRST_VOTE
    alike = (float((k * (k - 1) / np.maximum(n - 1, 1))[several].sum()) + FIRST_VOTE) / votes
    worth = np.array(y.size / (1 + (size - 1) * alike))
    lo, hi = _wilson(y.mean() * worth, worth, z)
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
    b, a, total = (_whole(v, name) for v, name in ((n_b_only, "n_b_only"), (n_a_only, "n_a_only"), (n, "n")))
    if np.any(b + a > total):
        raise ValueError("n_b_only + n_a_only must be at most n")
    p_b, p_a = (b + 1) / (total + 2), (a + 1) / (total + 2)
    middle = p_b - p_a
    half = _z(1 - (1 - _inside(level, "level")) / 2) * np.sqrt((p_b + p_a - middle**2) / (total + 2))
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
    _inside(level, "level")
    d = _differences(x, y)
    a_only, b_only = int(np.sum(d < 0)), int(np.sum(d > 0))
    if d.size == 0:
        return Comparison(np.nan, np.nan, np.nan, np.nan, 0, 0, 0)
    generator = _generator(rng)
    binary = _is_binary(x) and _is_binary(y)
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

    a, b: (n_tasks,) each; margin in the unit of the data (0.05 = five points of a rate). Returns whether the
    (1 - 2 alpha) interval lies strictly inside (-margin, margin), and that interval. Nothing is equivalent on fewer
    than two tasks, or where the interval is nan.

    0/1 data: the Bonett-Price interval. Exact rate of false "equivalent" at the margin's edge, 220 tasks, margin 5
    points, nominal 5%: at most 6% for discordances of .06 to .2, and 7.3% where all discordance lies on one side. At 60
    tasks and 5 points it can only be declared where not one task is discordant.
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
    if _is_binary(x) and _is_binary(y):
        interval = _difference_ci(x, y, level, generator)
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

    def shown(either_way: int) -> bool:
        a, b = np.zeros(n), np.zeros(n)
        a[:either_way], b[either_way : 2 * either_way] = 1, 1
        return equivalent(a, b, margin, alpha).equivalent

    if n < 2 or not shown(0):
        return None
    return 2 * bisect_left(range(1, n // 2 + 1), True, key=lambda either_way: not shown(either_way))


def verdict(comparison: Comparison, p_adjusted: float, equivalent: Equivalence | bool, alpha: float = 0.05) -> str:
    """One of `VERDICTS` for arm b of a comparison.

    better / worse: the interval excludes 0 and the p-value, adjusted over the arms of one metric (`holm`), is under
    alpha. Otherwise equivalent, if `equivalent` said so at the plan's margin; otherwise inconclusive, which also
    covers everything that could not be estimated. "No difference was found" is never turned into "no difference".
    """
    if p_adjusted < alpha:  # False for nan
        if comparison.lo > 0:
            return "better"
        if comparison.hi < 0:
            return "worse"
    return "equivalent" if equivalent else "inconclusive"


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
    _finite(x, "runs")
    tail = 1 - (1 - _inside(level, "level")) / 2
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
    band_within = _z(tail) * np.sqrt(2) * within
    return NoiseBand(run_means, between, float(band_t), within, float(band_within), float(q), n_runs - 1, q_p)


# ── Planning ────────────────────────────────────────────────────────────────────────────────────────────────
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
    one asked for. Raises ValueError where the numbers contradict each other (no effect, a rate outside [0, 1], an
    effect larger than the discordance).
    """
    if not (np.isfinite(effect) and 0 < abs(effect) < 1):
        raise ValueError("effect must be a difference of rates in (-1, 1) other than 0")
    if (base is None) == (discordance is None):
        raise ValueError("give either base (independent arms) or discordance (paired arms)")
    if k < 1:
        raise ValueError("k must be >= 1 attempt a task")
    z_alpha = _z(1 - _inside(alpha, "alpha") / 2)
    z_power = _z(_inside(power, "power"))
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
    m = np.arange(int(n) + 1)
    most = _mcnemar_most(m, _inside(alpha, "alpha"))
    if psi == 0 or not np.any(most >= 0):
        return 0.0
    from scipy.special import bdtr

    share = min(max((psi + effect) / (2 * psi), 0.0), 1.0)  # of the discordant tasks, those that b passes
    region = np.maximum(most, 0)
    reject = np.where(most >= 0, bdtr(region, m, share) + bdtr(region, m, 1 - share), 0.0)
    return float(np.clip(_binomial_pmf(m, int(n), psi) @ reject, 0.0, 1.0))


# ── A score against a pass ──────────────────────────────────────────────────────────────────────────────────
def auc(
    score: ArrayLike,
    label: ArrayLike,
    groups: ArrayLike | None = None,
    within: bool = False,
    level: float = 0.95,
) -> Auc:
    """How well a score ranks passes above fails: .5 is a coin, 1 perfect order; a tie counts one half.

    score: (n_samples,) finite numbers; label: (n_samples,) 0/1; groups: (n_samples,) the task of each sample.
    Samples of a task resemble each other, so the standard error is taken over groups (Obuchowski 1997, Biometrics
    53:567); without groups each sample is its own, which is DeLong's. within=True compares only samples of the same
    group: easy tasks having both higher scores and more passes then counts for nothing. Its pairs are pooled, and its
    error is that of a ratio of sums over groups.

    The interval is auc -+ t * se with n_groups - 1 degrees of freedom, cut at 0 and 1: with a handful of groups a
    standard error is itself hardly known. Where all groups agree to the last pair (se = 0), it is Wilson's for as
    many observations as there are groups, since a perfect order in five tasks is no proof of one.

    nan where there are not both classes (within: no group with both), and for the interval under two groups.
    Raises ValueError for NaN scores (drop unparsed replies and report how many), labels other than 0/1, unequal
    lengths, or within without groups.
    """
    s, y = _vector(score, "score"), _vector(label, "label")
    if s.size != y.size:
        raise ValueError("score and label must have the same length")
    if not _is_binary(y):
        raise ValueError("label must be 0 or 1")
    _inside(level, "level")
    if groups is None:
        if within:
            raise ValueError("within needs groups: the task of each sample")
        g = np.arange(s.size)
    else:
        g = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
        if g.size != s.size:
            raise ValueError("groups must have one entry a sample")
    n_groups = int(g.max(initial=-1)) + 1
    passed = y == 1
    n_pos, n_neg = int(passed.sum()), int((~passed).sum())
    found = (_auc_within if within else _auc_between)(s, passed, g, n_groups)
    lo, hi = _auc_ci(found.auc, found.se, found.n_groups, level)
    return Auc(found.auc, found.se, lo, hi, n_pos, n_neg, found.n_pairs, found.n_groups)


def calibration_table(
    fitness: ArrayLike, passed: ArrayLike, edges: ArrayLike, level: float = 0.95, ends: bool = True
) -> list[Bucket]:
    """Pass rate by bucket of fitness, each with its Wilson interval.

    fitness: (n_samples,) in [0, 1]; passed: (n_samples,) 0/1; edges: rising numbers in [0, 1] (0 and 1 are added).
    Buckets: exactly 0; then [lo, hi) between the edges; exactly 1. ends=False folds the two end values into their
    neighbours (probabilities from a judge, where 0 and 100 are just two more numbers). An empty bucket has n = 0 and
    rate nan. The intervals take samples as independent, which samples of one task are not: read them together with
    the within-task AUC.

    Raises ValueError for fitness outside [0, 1], unequal lengths, NaN, passed other than 0/1, or edges that do not
    rise.
    """
    f, y = _vector(fitness, "fitness"), _vector(passed, "passed")
    if f.size != y.size:
        raise ValueError("fitness and passed must have the same length")
    if np.any((f < 0) | (f > 1)):
        raise ValueError("fitness must be in [0, 1]")
    if not _is_binary(y):
        raise ValueError("passed must be 0 or 1")
    cuts = _vector(edges, "edges")
    if np.any((cuts < 0) | (cuts > 1)) or np.any(np.diff(cuts) <= 0):
        raise ValueError("edges must rise within [0, 1]")
    cuts = np.union1d(cuts, [0.0, 1.0])
    place = np.searchsorted(cuts[1:-1], f, side="right") + 1  # 1.. for the buckets between the edges
    names = [f"[{lo:g}, {hi:g})" for lo, hi in pairwise(cuts.tolist())]
    if ends:
        place = np.where(f == 0, 0, np.where(f == 1, len(names) + 1, place))
        names = ["0", names[0].replace("[", "(", 1), *names[1:], "1"]
    else:
        place = place - 1
        names[-1] = names[-1].replace(")", "]")
    n = np.bincount(place, minlength=len(names))
    k = np.bincount(place, weights=y, minlength=len(names)).astype(int)
    lo, hi = proportion_ci(k, n, level)
    rate = np.where(n > 0, k / np.maximum(n, 1), np.nan)
    columns = (names, n.tolist(), k.tolist(), rate.tolist(), lo.tolist(), hi.tolist())
    return [Bucket(*row) for row in zip(*columns, strict=True)]


# ── Rounding ────────────────────────────────────────────────────────────────────────────────────────────────
def settled(values: ArrayLike, scale: float | None = None) -> Array:
    """Numbers that are equal but for rounding made equal, and those that are 0 but for rounding made 0.

    values: numbers of any shape, which is kept; scale: the largest number they were computed from (without one, the
    largest among them). Neighbours closer than RELATIVE_TIE of it become the middle of the first and the last of them.

    3/24 - 2/24 and 2/24 - 1/24 differ in their last digit. Where "all tasks differ alike" means that nothing can be
    estimated, that digit would pass for a spread, and give an interval of no width.
    """
    x = np.asarray(values, dtype=float)
    if not x.size:
        return x
    near = RELATIVE_TIE * (float(np.abs(x).max()) if scale is None else scale)
    order = np.argsort(x, axis=None)
    ranked = x.reshape(-1)[order]
    new = np.diff(ranked) > near
    first, last = ranked[np.append(True, new)], ranked[np.append(new, True)]
    middle = (first + last) / 2
    middle[np.abs(middle) <= near] = 0.0
    out = np.empty_like(ranked)
    out[order] = middle[np.append(0, np.cumsum(new))]
    return out.reshape(x.shape)


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────
def _finite(x: Array, name: str) -> None:
    if not np.all(np.isfinite(x)):
        raise ValueError(f"{name} holds NaN or infinity: drop what was not graded first, and report n")


def _vector(values: ArrayLike, name: str) -> Array:
    x = np.asarray(values, dtype=float)
    if x.ndim != 1:
        raise ValueError(f"{name} must have one axis, not shape {x.shape}")
    _finite(x, name)
    return x


def _whole(values: ArrayLike, name: str) -> Array:
    """Counts, kept as floats: exact up to 2^53, and a quotient of them never overflows."""
    x = np.asarray(values, dtype=float)
    _finite(x, name)
    if np.any(x != np.floor(x)) or np.any(x < 0):
        raise ValueError(f"{name} must be whole numbers >= 0")
    return x


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    x, y = _vector(a, "a"), _vector(b, "b")
    if x.size != y.size:
        raise ValueError(f"a and b must be the same tasks: {x.size} against {y.size}")
    return x, y


def _differences(x: Array, y: Array) -> Array:
    """y - x. Rounding leaves as much behind as the larger of the two, however small their difference."""
    return settled(y - x, scale=float(max(np.abs(x).max(initial=0), np.abs(y).max(initial=0))))


def _inside(x: float, name: str) -> float:
    if not 0 < x < 1:
        raise ValueError(f"{name} must be in (0, 1)")
    return float(x)


def _discordance(discordance: float | None, effect: float) -> float:
    if discordance is None or not (np.isfinite(effect) and abs(effect) <= discordance <= 1):
        raise ValueError("discordance must be in [|effect|, 1]: arms that differ by effect disagree at least so often")
    return float(discordance)


def _generator(rng: np.random.Generator | None) -> np.random.Generator:
    return np.random.default_rng(0) if rng is None else rng


def _is_binary(x: Array) -> bool:
    return bool(np.all((x == 0) | (x == 1)))


def _z(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))


def _wilson(k: Array, n: Array, z: float) -> tuple[Array, Array]:
    n_ = np.maximum(n, 1)
    p = k / n_
    middle = (p + z**2 / (2 * n_)) / (1 + z**2 / n_)
    half = z / (1 + z**2 / n_) * np.sqrt(p * (1 - p) / n_ + z**2 / (4 * n_**2))
    # The limits at 0 and n successes are 0 and 1 by algebra; rounding would leave 1e-18 there.
    return np.where(k == 0, 0.0, np.maximum(middle - half, 0)), np.where(k == n, 1.0, np.minimum(middle + half, 1))


def _clopper_pearson(k: Array, n: Array, tail: float) -> tuple[Array, Array]:
    from scipy.special import betaincinv

    lo = np.where(k == 0, 0.0, betaincinv(np.maximum(k, 1), n - k + 1, tail))
    hi = np.where(k == n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail))
    return lo, hi


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
    if _is_binary(x) and _is_binary(y):
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

    most = np.full(m.shape, -1)
    open_ = np.ones(m.shape, dtype=bool)
    while open_.any():
        trial = most + 1
        open_ &= (2 * trial < m) & (2 * bdtr(np.minimum(trial, m), m, 0.5) <= alpha)
        most = np.where(open_, trial, most)
    return most


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


class _Area(NamedTuple):
    auc: float
    se: float
    n_pairs: int
    n_groups: int


def _wins(score: Array, passed: NDArray[np.bool_], group: NDArray[Any]) -> tuple[Array, Array]:
    """Fails beaten by each pass (pos,) and passes that beat each fail (neg,), within one group; ties one half."""
    rank = np.unique(score, return_inverse=True)[1].reshape(-1)
    key = group * (int(rank.max(initial=0)) + 1) + rank  # groups one after the other, each in the order of its scores
    start = group * (int(rank.max(initial=0)) + 1)
    pos, neg = np.sort(key[passed]), np.sort(key[~passed])

    def below(sorted_keys: NDArray[Any], keys: NDArray[Any], starts: NDArray[Any]) -> Array:
        left, right = (np.searchsorted(sorted_keys, keys, side=side) for side in ("left", "right"))
        return (left + right) / 2 - np.searchsorted(sorted_keys, starts)

    beaten = below(neg, key[passed], start[passed])
    in_group = np.bincount(group[passed], minlength=int(group.max(initial=0)) + 1)
    beats = in_group[group[~passed]] - below(pos, key[~passed], start[~passed])
    return beaten, beats


def _auc_between(s: Array, passed: NDArray[np.bool_], g: NDArray[Any], n_groups: int) -> _Area:
    n_pos, n_neg = int(passed.sum()), int((~passed).sum())
    if n_pos == 0 or n_neg == 0:
        return _Area(np.nan, np.nan, 0, n_groups)
    beaten, beats = _wins(s, passed, np.zeros_like(g))
    pairs, wins = n_pos * n_neg, beaten.sum()
    area = float(wins / pairs)
    pos_in, neg_in = (np.bincount(g[side], minlength=n_groups) for side in (passed, ~passed))
    # Halves and whole numbers until the last division: groups that agree leave exactly 0.
    v10 = (np.bincount(g[passed], weights=beaten, minlength=n_groups) * n_pos - pos_in * wins) / pairs
    v01 = (np.bincount(g[~passed], weights=beats, minlength=n_groups) * n_neg - neg_in * wins) / pairs
    i10, i01 = int(np.sum(pos_in > 0)), int(np.sum(neg_in > 0))
    if n_groups < 2 or i10 < 2 or i01 < 2:
        return _Area(area, np.nan, pairs, n_groups)
    s10 = i10 / ((i10 - 1) * n_pos) * (v10 @ v10)
    s01 = i01 / ((i01 - 1) * n_neg) * (v01 @ v01)
    s11 = n_groups / (n_groups - 1) * (v10 @ v01)
    apart = s10 / n_pos + s01 / n_neg
    (variance,) = settled([apart + 2 * s11 / pairs], scale=apart)  # what one side adds the other may take off
    return _Area(area, float(np.sqrt(np.maximum(variance, 0))), pairs, n_groups)


def _auc_within(s: Array, passed: NDArray[np.bool_], g: NDArray[Any], n_groups: int) -> _Area:
    pos_in, neg_in = (np.bincount(g[side], minlength=n_groups) for side in (passed, ~passed))
    pairs = pos_in * neg_in
    mixed = pairs > 0
    n = int(mixed.sum())
    total = int(pairs.sum())
    if n == 0:
        return _Area(np.nan, np.nan, 0, 0)
    beaten, _ = _wins(s, passed, g)
    wins = np.bincount(g[passed], weights=beaten, minlength=n_groups)
    area = float(wins.sum() / total)
    if n < 2:
        return _Area(area, np.nan, total, n)
    residual = (wins * total - wins.sum() * pairs)[mixed] / total  # exactly 0 where every group has the same area
    return _Area(area, float(np.sqrt(n / (n - 1) * (residual @ residual)) / total), total, n)


def _auc_ci(area: float, se: float, n_groups: int, level: float) -> Interval:
    if not np.isfinite(se):
        return Interval(np.nan, np.nan)
    tail = 1 - (1 - level) / 2
    if se == 0:
        lo, hi = _wilson(np.array(area * n_groups), np.array(float(n_groups)), _z(tail))
        return Interval(float(lo), float(hi))
    from scipy.special import stdtrit

    half = float(stdtrit(n_groups - 1, tail)) * se
    return Interval(max(area - half, 0.0), min(area + half, 1.0))
