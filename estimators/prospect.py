"""What a base group foretells, with intervals over its tasks: further draws, and how often two fresh arms disagree.

    found = prospect(histogram, draws=24)       histogram: tasks by passes of their group, 0 to G
    found.rescue[23], found.rescue_interval[23] a pass in 24 more draws on a task whose group has failed
    found.apart, found.apart_interval           two fresh arms of 24 draws there: one of them alone has a pass

The unbiased pass@k reaches as far as the group, its interval is Wilson's for as many tasks as its spread is worth;
beyond it a beta-binomial reaches (estimators/betabinomial.py), its interval is of a bootstrap over tasks on the scale
of log odds: share -+ z * sd there. Coverage of the nominal 95%, 40 to 275 tasks of four spreads: 92 to 98%
of pass@k, 94 to 98% of what is foretold (docs/statistics.md).

Conventions as in stats.py. Left out: what an arm does that is no fresh draw; whether the chances are Beta distributed
(`fits` is the p-value of a test that they are, on the group itself).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from estimators.betabinomial import BetaBinomial, at_bound, fit
from estimators.parts import Array, inside, mean_share_ci, normal_quantile, whole

RESAMPLES = 499
LEAST = 1e-4  # a share is taken for no less, and 1 less it, on the scale of log odds
APART_LEVEL = 0.8  # of apart_interval: what a plan should reckon with, not what is all but impossible


class Prospect(NamedTuple):
    """Shares as fractions; an interval is (2,) or (2, draws). nan where nothing can be said."""

    n: int  # tasks
    failed: int  # tasks whose whole group failed
    chances: BetaBinomial
    fits: float  # p-value: are the passes of the group beta-binomial
    base: Array  # (G,) share of tasks with a pass among the first 1..G draws: unbiased
    base_interval: Array
    beyond: Array  # (draws,) the same among G + 1..G + draws: by the fit
    beyond_interval: Array
    rescue: Array  # (draws,) share of the failed ones with a pass among 1..draws more: by the fit
    rescue_interval: Array
    apart: float  # share of the failed ones on which one of two arms of `draws` alone has a pass: by the fit
    apart_interval: Array  # at APART_LEVEL


def prospect(histogram: ArrayLike, draws: int, level: float = 0.95) -> Prospect:
    """What so many more draws are expected to give, from tasks by passes of their group of G.

    Without any pass in the groups, without any failure, with a group of one, of which no spread can be seen, or where
    the fit lies at its least (groups that pass as a whole or not at all), nothing is foretold: all that is extrapolated
    is nan. Raises ValueError for counts that are no whole numbers, no group, no draw, or a level outside (0, 1).
    """
    h = whole(histogram, "histogram")
    if h.ndim != 1 or h.size < 2 or draws < 1:
        raise ValueError("histogram must hold the tasks by passes, 0 to G, of one draw or more; draws must be >= 1")
    return _prospect(tuple(h.tolist()), draws, inside(level, "level"))


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _prospect(histogram: tuple[float, ...], draws: int, level: float) -> Prospect:
    h = np.array(histogram)
    group, n = h.size - 1, int(h.sum())
    base, base_interval = _observed(h, normal_quantile(1 - (1 - level) / 2))
    z, z_apart = (normal_quantile(1 - (1 - each) / 2) for each in (level, APART_LEVEL))
    found = fit(h)
    known = group >= 2 and 0 < h @ np.arange(group + 1) < n * group and not at_bound(found)
    if known:
        many = fit(np.random.default_rng(0).multinomial(n, h / n, size=RESAMPLES))
    else:
        found, many = BetaBinomial(np.nan, np.nan), BetaBinomial(np.full(1, np.nan), np.full(1, np.nan))
    of_all, of_all_drawn = _curve(found, group + draws, 0)[0], _curve(many, group + draws, 0)
    rescue, rescue_drawn = _curve(found, 2 * draws, group)[0], _curve(many, 2 * draws, group)
    # 2 E[q (1 - q)], q a failed task's chance of a pass: 1 - q is (1 - p)^draws.
    apart, apart_drawn = (2 * (each[..., -1:] - each[..., draws - 1 : draws]) for each in (rescue, rescue_drawn))
    return Prospect(
        n=n,
        failed=int(h[0]),
        chances=found,
        fits=_fits(h, found) if known else np.nan,
        base=base,
        base_interval=base_interval,
        beyond=of_all[group:],
        beyond_interval=_around(of_all[group:], of_all_drawn[:, group:], z),
        rescue=rescue[:draws],
        rescue_interval=_around(rescue[:draws], rescue_drawn[:, :draws], z),
        apart=float(apart[0]),
        apart_interval=_around(apart, apart_drawn, z_apart)[:, 0],
    )


def _observed(h: Array, z: float) -> tuple[Array, Array]:
    """pass@1 to pass@G, and their interval (2, G)."""
    group, n = h.size - 1, h.sum()
    c, k = np.arange(group + 1)[:, None, None], np.arange(1, group + 1)[None, :, None]
    nth = np.arange(group)[None, None, :]
    found = 1 - np.prod(np.where(nth < k, np.clip(group - c - nth, 0, None) / (group - nth), 1.0), axis=-1)
    if not n:
        return np.full(group, np.nan), np.full((2, group), np.nan)
    share = h @ found / n
    spread = h @ (found - share) ** 2 / n
    return share, np.stack(mean_share_ci(share, spread, n, z))


def _curve(found: BetaBinomial, draws: int, failed: int) -> Array:
    """(m, draws): the chance of a pass in 1..draws, see `betabinomial.chance`."""
    a, b = (np.atleast_1d(np.asarray(side, dtype=float))[:, None] for side in found)
    nth = np.arange(draws) + failed
    return 1 - np.cumprod((b + nth) / (a + b + nth), axis=-1)


def _around(value: Array, drawn: Array, z: float) -> Array:
    """(2, m) around m values, from (resamples, m)."""

    def log_odds(share: Array) -> Array:
        cut = np.clip(share, LEAST, 1 - LEAST)
        return np.log(cut) - np.log1p(-cut)

    middle, half = log_odds(value), z * np.std(log_odds(drawn), axis=0)
    low, high = (1 / (1 + np.exp(-end)) for end in (middle - half, middle + half))
    return np.stack((np.minimum(low, value), np.maximum(high, value)))


def _fits(h: Array, found: BetaBinomial) -> float:
    """p-value of the likelihood ratio of the histogram against its own fit, by histograms drawn from that fit."""
    group, n = h.size - 1, int(h.sum())
    expected = _mass(found, group)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n, expected[0] / expected.sum(), size=RESAMPLES).astype(float)
    seen = _off(h[None, :], expected)[0]
    hits = int(np.sum(_off(drawn, _mass(fit(drawn), group)) >= seen * (1 - 1e-9)))
    return (hits + 1) / (RESAMPLES + 1)


def _mass(found: BetaBinomial, group: int) -> Array:
    """(m, G + 1) chances of 0 to G passes."""
    from scipy.special import betaln, gammaln

    c = np.arange(group + 1)
    choose = gammaln(group + 1) - gammaln(c + 1) - gammaln(group - c + 1)
    # A fit of 0 stands for "no pass at all", or "no failure".
    a, b = (np.maximum(np.atleast_1d(np.asarray(side, dtype=float)), 1e-9)[:, None] for side in found)
    return np.exp(choose + betaln(a + c, b + group - c) - betaln(a, b))


def _off(h: Array, expected: Array) -> Array:
    """Twice the log likelihood ratio of histograms against the shares expected, (m,)."""
    from scipy.special import xlogy

    n = h.sum(axis=-1, keepdims=True)
    return 2 * (xlogy(h, h / n) - xlogy(h, np.maximum(expected, 1e-300))).sum(axis=-1)
