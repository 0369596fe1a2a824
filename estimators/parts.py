"""What every estimator needs: arrays that are checked on the way in, rounding taken off, the interval of a share.

    x = vector(values, "values")        one axis, finite, or a ValueError that names it
    settled(x)                          numbers that are equal but for rounding made equal

Pure. Left out: the estimators (stats.py, scores.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

A_LITTLE = 0.1  # of a task, by which spreads are told apart no further
RELATIVE_TIE = 1e-9  # two results of the same arithmetic closer than this share of their scale are one number


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


def finite(x: Array, name: str) -> None:
    if not np.all(np.isfinite(x)):
        raise ValueError(f"{name} holds NaN or infinity: drop what was not graded first, and report n")


def vector(values: ArrayLike, name: str) -> Array:
    x = np.asarray(values, dtype=float)
    if x.ndim != 1:
        raise ValueError(f"{name} must have one axis, not shape {x.shape}")
    finite(x, name)
    return x


def whole(values: ArrayLike, name: str) -> Array:
    """Counts, kept as floats: exact up to 2^53, and a quotient of them never overflows."""
    x = np.asarray(values, dtype=float)
    finite(x, name)
    if np.any(x != np.floor(x)) or np.any(x < 0):
        raise ValueError(f"{name} must be whole numbers >= 0")
    return x


def inside(x: float, name: str) -> float:
    if not 0 < x < 1:
        raise ValueError(f"{name} must be in (0, 1)")
    return float(x)


def is_binary(x: Array) -> bool:
    return bool(np.all((x == 0) | (x == 1)))


def normal_quantile(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))


def wilson(k: Array, n: Array, z: float) -> tuple[Array, Array]:
    n_ = np.maximum(n, 1)
    p = k / n_
    middle = (p + z**2 / (2 * n_)) / (1 + z**2 / n_)
    half = z / (1 + z**2 / n_) * np.sqrt(p * (1 - p) / n_ + z**2 / (4 * n_**2))
    # The limits at 0 and n successes are 0 and 1 by algebra; rounding would leave 1e-18 there.
    return np.where(k == 0, 0.0, np.maximum(middle - half, 0)), np.where(k == n, 1.0, np.minimum(middle + half, 1))


def mean_share_ci(share: Array, spread: Array, n: float, z: float) -> tuple[Array, Array]:
    """Of the mean over n tasks of shares, numbers in [0, 1] with this mean and variance (divided by n).

    Wilson's interval for as many tasks as would spread so if each were 0 or 1. To both what they spread and what they
    would a little is added: where a task or two hold all passes, nobody knows how the others would. Values of 0 and 1
    alone have Wilson's interval as it is. Coverage of the nominal 95%, of a pass in 1 to 20 of 24 draws: 94 to 98% from
    60 tasks on (docs/statistics.md; without that little 89%, with half a task 99.6% where one pass is expected).
    """
    most = n * share * (1 - share)
    worth = np.array(n * (most + A_LITTLE) / (np.minimum(n * spread, most) + A_LITTLE))
    return wilson(share * worth, worth, z)


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
    k, n = np.broadcast_arrays(whole(count, "count"), whole(nobs, "nobs"))
    if np.any((k < 0) | (k > n)):
        raise ValueError("count must be in [0, nobs]")
    if method == "wilson":
        z = normal_quantile(1 - (1 - inside(level, "level")) / 2)
        lo, hi = wilson(k, n, z)
    elif method == "exact":
        lo, hi = _clopper_pearson(k, n, (1 - inside(level, "level")) / 2)
    else:
        raise ValueError(f"method must be 'wilson' or 'exact', not {method!r}")
    empty = n == 0
    return Interval(np.where(empty, np.nan, lo)[()], np.where(empty, np.nan, hi)[()])


def _clopper_pearson(k: Array, n: Array, tail: float) -> tuple[Array, Array]:
    from scipy.special import betaincinv

    lo = np.where(k == 0, 0.0, betaincinv(np.maximum(k, 1), n - k + 1, tail))
    hi = np.where(k == n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail))
    return lo, hi
