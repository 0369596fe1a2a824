"""Are two paired shares alike within a margin: Tango's score, at a quantile that keeps the error under alpha.

    score(b_only, a_only, n, margin)        how far the data lie under a true difference of the margin, in deviations
    quantile(n, margin)                     how far is far enough, whatever the share of tasks that the arms disagree on
    score_ci(b_only, a_only, n, z)          the differences that the data do not lie so far from

The score (Tango 1998, Stat. Med. 17:891) takes its spread from what is likeliest at the margin, and so holds its level
where an interval around the estimate does not: where all disagreement is on one side. Over few tasks it is still off by
the steps of a count (n = 54, margin 5 points: no disagreement at all has a chance of .95^54, 6.3%). So the quantile is
not the normal one but the least at which the error, summed over all outcomes, is at most alpha for every share of
disagreement: an exact unconditional test in the order of the score, and an interval that says the same as the test.

Pure. Left out: the words (stats.verdict), data other than 0/1 (stats.equivalent), more than two arms at once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.parts import Array, Interval, normal_quantile

SHARES = 80  # of disagreement that are tried, the closer together the nearer to either end of what the margin allows
GUARD = 5e-4  # of the error, for what lies between them
HALVINGS = 48


def score(n_b_only: ArrayLike, n_a_only: ArrayLike, n: ArrayLike, difference: ArrayLike) -> Array:
    """Deviations by which b - a lies above a true `difference` (a fraction), under which it has mean 0 and spread 1.

    n_b_only, n_a_only: tasks passed by one arm alone; n: tasks. Arrays broadcast. 0 / 0 (no spread, no distance) is 0.
    """
    b, a, n_, d = (np.asarray(x, dtype=float) for x in (n_b_only, n_a_only, n, difference))
    # The likeliest share of tasks that a alone passes, at this difference: the root of a quadratic.
    half = a + b - (2 * n_ - b + a) * d
    share = (np.sqrt(np.maximum(half**2 + 8 * n_ * a * d * (1 - d), 0)) + half) / (4 * n_)
    spread = n_ * (2 * share + d * (1 - d))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (b - a - n_ * d) / np.sqrt(np.maximum(spread, 0))
    return np.where(np.isnan(z), 0.0, z)


def score_ci(n_b_only: int, n_a_only: int, n: int, z: float) -> Interval:
    """The differences b - a from which the data lie less than z deviations away, by `score`. nan without a task."""
    if n < 1:
        return Interval(np.nan, np.nan)

    def far(b: int, a: int, d: float) -> bool:  # `score` in plain numbers, which are fifty times as fast
        half = a + b - (2 * n - b + a) * d
        share = (math.sqrt(max(half**2 + 8 * n * a * d * (1 - d), 0.0)) + half) / (4 * n)
        spread = n * (2 * share + d * (1 - d))
        return b - a - n * d <= -z * math.sqrt(max(spread, 0.0)) < 0

    def most(b: int, a: int) -> float:
        lo, hi = (b - a) / n, 1.0
        for _ in range(HALVINGS):
            middle = (lo + hi) / 2
            lo, hi = (lo, middle) if far(b, a, middle) else (middle, hi)
        return hi

    return Interval(-most(n_a_only, n_b_only), most(n_b_only, n_a_only))


@lru_cache(maxsize=4096)
def quantile(n: int, margin: float, alpha: float = 0.05) -> float:
    """The deviations that make n tasks alike within a margin (`score` at it, seen from either arm, is at most -z).

    Never under the normal quantile, and at it for most n; where no outcome of n tasks can show it, beyond all of them.
    """
    least, most = normal_quantile(1 - alpha), math.sqrt(n * margin / (1 - margin))  # that of no disagreement at all
    beyond = most * (1 + 1e-9)
    if most <= least or error(n, margin, most * (1 - 1e-9)) > alpha - GUARD:
        return max(least, beyond)
    if error(n, margin, least) <= alpha - GUARD:
        return least
    too_low, enough = least, most * (1 - 1e-9)
    while enough - too_low > 1e-4:
        middle = (too_low + enough) / 2
        too_low, enough = (too_low, middle) if error(n, margin, middle) <= alpha - GUARD else (middle, enough)
    return enough


def error(n: int, margin: float, z: float, shares: int = SHARES) -> float:
    """The largest chance, over all shares of disagreement, to call arms alike that differ by the margin. Exact."""
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    b, lo, hi = _alike(n, margin, z)
    if not b.size:
        return 0.0
    near = 0.5 * np.linspace(0, 1, (shares + 1) // 2) ** 3  # cubic from either end: the error changes fastest there
    disagree = margin + (1 - margin) * np.unique(np.concatenate((near, 1 - near)))[:, None]
    b_alone, a_alone = (disagree + margin) / 2, (disagree - margin) / 2
    ways = gammaln(n + 1) - gammaln(b + 1) - gammaln(n - b + 1)
    of_b = np.exp(ways + xlogy(b, b_alone) + xlog1py(n - b, -b_alone))
    of_a = np.minimum(a_alone / np.maximum(1 - b_alone, 1e-300), 1.0)  # among the tasks that b does not pass alone
    inside = bdtr(hi, n - b, of_a) - np.where(lo > 0, bdtr(np.maximum(lo - 1, 0), n - b, of_a), 0.0)
    return float((of_b * inside).sum(axis=-1).max())


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────


def _alike(n: int, margin: float, z: float) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The outcomes that make n tasks alike: for each count of b alone, the least and the most of a alone."""
    b = np.arange(n + 1)
    too_few, enough = np.full(b.shape, -1), n - b + 1  # of a alone; the score falls as it rises
    while np.any(enough - too_few > 1):
        middle = (too_few + enough) // 2
        far = (middle > too_few) & (score(b, middle, n, margin) <= -z)
        too_few, enough = np.where(far, too_few, middle), np.where(far, middle, enough)
    lo = enough
    hi = np.minimum(np.searchsorted(np.maximum.accumulate(lo), b, side="right") - 1, n - b)  # the same from arm a
    use = (lo <= hi) & (lo <= n - b)
    return b[use], lo[use], hi[use]
