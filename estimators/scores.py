"""A score against a pass: how well it ranks, and the pass rate by bucket. Samples come in tasks, which are the unit.

    auc(score, passed, task, within=True)       the chance that a pass scores above a fail of its own task
    calibration_table(score, passed, edges)     pass rates by bucket
    clustered_ci(passed, task)                  an interval of a rate where a task's programs are alike
    correlation_ci(x, y)                        an interval of a correlation, of pairs that are not normal

Conventions as in stats.py, which hands these on. Left out: the word that they lead to (figures/hill.py).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.parts import (
    RELATIVE_TIE,
    Array,
    Interval,
    inside,
    is_binary,
    normal_quantile,
    proportion_ci,
    settled,
    vector,
    wilson,
)

FIRST_VOTE = 0.5  # of a passing program, that all of its task pass: what is believed before any pass is seen


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
    y = vector(passed, "passed")
    if not is_binary(y):
        raise ValueError("passed must be 0 or 1")
    g = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if g.size != y.size:
        raise ValueError("groups must have one entry a program")
    z = normal_quantile(1 - (1 - inside(level, "level")) / 2)
    if y.size == 0:
        return Interval(np.nan, np.nan)
    n, k = np.bincount(g), np.bincount(g, weights=y)
    size = float(n @ n / y.size)
    several = n > 1  # a program alone in its task says nothing of how alike they are
    votes = float(k[several].sum()) + FIRST_VOTE
    alike = (float((k * (k - 1) / np.maximum(n - 1, 1))[several].sum()) + FIRST_VOTE) / votes
    worth = np.array(y.size / (1 + (size - 1) * alike))
    lo, hi = wilson(y.mean() * worth, worth, z)
    return Interval(float(lo), float(hi))


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

    The interval leaves one group out at a time, on the scale of log odds, with t for as many as hold both a pass and a
    fail, or over all pairs for the fewer of those that hold a pass and those that hold a fail: where a few tasks hold
    the pairs, se is too small and itself hardly known. Coverage of the nominal 95%, from 15 tasks on: 93 to 97% within
    tasks and 94 to 99% over all pairs (of auc -+ t * se 91 to 94 and 80 to 98%), in docs/statistics.md. Without groups
    it is auc -+ t * se, cut at 0 and 1.
    Where all groups agree to the last pair (se = 0), it is Wilson's for as many observations as there are groups, since
    a perfect order in five tasks is no proof of one.

    nan where there are not both classes (within: no group with both), and for the interval under two groups.
    Raises ValueError for NaN scores (drop unparsed replies and report how many), labels other than 0/1, unequal
    lengths, or within without groups.
    """
    s, y = vector(score, "score"), vector(label, "label")
    if s.size != y.size:
        raise ValueError("score and label must have the same length")
    if not is_binary(y):
        raise ValueError("label must be 0 or 1")
    inside(level, "level")
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
    if groups is not None and found.se > 0:
        lo, hi = (_within_ci if within else _pooled_ci)(s, passed, g, found, level)
    else:
        lo, hi = _auc_ci(found.auc, found.se, found.n_groups, level)
    return Auc(found.auc, found.se, lo, hi, n_pos, n_neg, found.n_pairs, found.n_groups)


def correlation_ci(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Interval:
    """Confidence interval of Pearson's r of pairs that are not normal: each is left out in turn, on Fisher's scale.

    x, y: (n,) numbers. With Student's t of n - 1 degrees. Fisher's own interval, for normal pairs, covers 88 to 92% of
    the nominal 95% where many values are alike, as fitness and pass rates are; this one 93 to 96% from 30 pairs on
    (docs/statistics.md). nan where the pairs, or all of them but one, have one value on a side or lie on a line: there
    is no spread to measure. Raises ValueError for NaN or unequal lengths.
    """
    a, b = vector(x, "x"), vector(y, "y")
    if a.size != b.size:
        raise ValueError("x and y must have the same length")
    tail, nothing = 1 - (1 - inside(level, "level")) / 2, Interval(np.nan, np.nan)
    n, m = a.size, a.size - 1
    if n < 4:
        return nothing
    from scipy.special import stdtrit

    a, b = a - a.mean(), b - b.mean()  # squares of centred numbers lose no digits

    def products(one: Array, other: Array) -> Array:
        """Sums of products around their means: of all, then with each pair left out."""
        left = (one @ other - one * other) - (one.sum() - one) * (other.sum() - other) / m
        return np.append(one @ other, left)

    of_a, of_b = products(a, a), products(b, b)
    if min(of_a[0], of_b[0]) <= 0 or min(of_a.min() / of_a[0], of_b.min() / of_b[0]) < RELATIVE_TIE:
        return nothing
    r = products(a, b) / np.sqrt(of_a * of_b)
    if np.abs(r).max() >= 1 - 1e-6:
        return nothing
    z = np.arctanh(r)
    half = float(stdtrit(m, tail) * np.sqrt(m / n * ((z[1:] - z[1:].mean()) ** 2).sum()))
    return Interval(float(np.tanh(z[0] - half)), float(np.tanh(z[0] + half)))


def calibration_table(
    fitness: ArrayLike,
    passed: ArrayLike,
    edges: ArrayLike,
    level: float = 0.95,
    ends: bool = True,
    groups: ArrayLike | None = None,
) -> list[Bucket]:
    """Pass rate by bucket of fitness, each with its interval: `clustered_ci` where groups are given, else Wilson's.

    fitness: (n_samples,) in [0, 1]; passed: (n_samples,) 0/1; edges: rising numbers in [0, 1] (0 and 1 are added).
    Buckets: exactly 0; then [lo, hi) between the edges; exactly 1. ends=False folds the two end values into their
    neighbours (probabilities from a judge, where 0 and 100 are just two more numbers). An empty bucket has n = 0 and
    rate nan. groups: (n_samples,) the task of each. Without them samples count as independent, which those of one task
    are not. Coverage of the nominal 95%, by the test of these intervals: 20 tasks of 5 at rate .5, 40 of 10 at .55 and
    74 of 24 at .02 (where few passes are expected), as alike as .5, .6 and .3: Wilson's interval of the programs 74, 58
    and 52%, that of the groups 97, 98 and 91%.

    Raises ValueError for fitness outside [0, 1], unequal lengths, NaN, passed other than 0/1, or edges that do not
    rise.
    """
    f, y = vector(fitness, "fitness"), vector(passed, "passed")
    if f.size != y.size:
        raise ValueError("fitness and passed must have the same length")
    if np.any((f < 0) | (f > 1)):
        raise ValueError("fitness must be in [0, 1]")
    if not is_binary(y):
        raise ValueError("passed must be 0 or 1")
    cuts = vector(edges, "edges")
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
    if groups is None:
        lo, hi = proportion_ci(k, n, level)
    else:
        group = np.asarray(groups)
        inside_of = [clustered_ci(y[place == at], group[place == at], level) for at in range(len(names))]
        lo, hi = (np.array(side) for side in zip(*inside_of, strict=True))
    rate = np.where(n > 0, k / np.maximum(n, 1), np.nan)
    columns = (names, n.tolist(), k.tolist(), rate.tolist(), lo.tolist(), hi.tolist())
    return [Bucket(*row) for row in zip(*columns, strict=True)]


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
        lo, hi = wilson(np.array(area * n_groups), np.array(float(n_groups)), normal_quantile(tail))
        return Interval(float(lo), float(hi))
    from scipy.special import stdtrit

    half = float(stdtrit(n_groups - 1, tail)) * se
    return Interval(max(area - half, 0.0), min(area + half, 1.0))


def _pooled_ci(s: Array, passed: NDArray[np.bool_], g: NDArray[Any], found: _Area, level: float) -> Interval:
    """By leaving out one group at a time; groups whose leaving leaves one class alone tell nothing."""
    n_groups = int(g.max()) + 1

    def by_group(values: Array, side: NDArray[np.bool_]) -> NDArray[Any]:
        return np.bincount(g[side], weights=values, minlength=n_groups)

    beaten, beats = _wins(s, passed, np.zeros_like(g))
    inside_group, _ = _wins(s, passed, g)
    pos, neg = (np.bincount(g[side], minlength=n_groups) for side in (passed, ~passed))
    pairs = (pos.sum() - pos) * (neg.sum() - neg)
    wins = beaten.sum() - by_group(beaten, passed) - by_group(beats, ~passed) + by_group(inside_group, passed)
    several = min(int(np.sum(pos > 0)), int(np.sum(neg > 0)))
    return _left_out_ci(wins[pairs > 0] / pairs[pairs > 0], several, found, level)


def _within_ci(s: Array, passed: NDArray[np.bool_], g: NDArray[Any], found: _Area, level: float) -> Interval:
    n_groups = int(g.max()) + 1
    pairs = np.bincount(g[passed], minlength=n_groups) * np.bincount(g[~passed], minlength=n_groups)
    wins = np.bincount(g[passed], weights=_wins(s, passed, g)[0], minlength=n_groups)
    mixed = pairs > 0
    left = (wins.sum() - wins[mixed]) / (pairs.sum() - pairs[mixed])
    return _left_out_ci(left, found.n_groups, found, level)


def _left_out_ci(areas: Array, several: int, found: _Area, level: float) -> Interval:
    """Jackknife of the log odds of the area. areas: each with a group left out; several: groups that tell something."""
    from scipy.special import stdtrit

    cut = 0.5 / found.n_pairs  # half a pair: an area of 0 or 1 has no log odds

    def log_odds(share: Any) -> Any:
        held = np.clip(share, cut, 1 - cut)
        return np.log(held) - np.log1p(-held)

    left = log_odds(areas)
    if len(left) < 2 or several < 2:
        return Interval(np.nan, np.nan)
    spread = np.sqrt((len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum())
    if spread < RELATIVE_TIE:  # few groups, of which each leaves the same behind: no width, which is not knowledge
        return _auc_ci(found.auc, found.se, several, level)
    half = float(stdtrit(several - 1, 1 - (1 - level) / 2) * spread)
    middle = float(log_odds(found.auc))
    lo, hi = (float(1 / (1 + np.exp(-end))) for end in (middle - half, middle + half))
    return Interval(min(lo, found.auc), max(hi, found.auc))
