"""How pass rates spread over tasks, fitted to a base group, and what that foretells of more draws of the same kind.

    found = fit([223, 17, 14, 4, 3, 1, 3, 4, 6])     tasks by passes of 8: Beta(.067, .75)
    chance(found, 24, failed=8)                      a pass among 24 more, where 8 have failed: 9%
    2 * (chance(found, 48, 8) - chance(found, 24, 8))       how often two fresh arms of 24 disagree there

A task passes each draw with a chance of its own, and these chances are taken for a Beta distribution; the passes of a
group are then beta-binomial (Griffiths 1973, Biometrics 29:637). Every function also takes many histograms at once,
along the last axis, so that a bootstrap over tasks is one call.

Conventions as in stats.py. Left out: arms that are no fresh draws, and tasks whose chances are shaped otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from estimators.parts import Array, whole

ROUNDS = 200  # of the search at most; five to twenty are usual
NEAR = 1e-10  # a gain of the log likelihood a task that is none
LEAST, MOST = 1e-6, 1e6  # of a and b
ROOM = 100  # times the least: so near to it the likelihood is flat, and where the search ends says nothing


class BetaBinomial(NamedTuple):
    """Chances of tasks: mean a / (a + b), the more alike the larger a + b. nan without a task."""

    a: Any
    b: Any


def fit(histogram: ArrayLike) -> BetaBinomial:
    """Beta distribution of the tasks' chances, by maximum likelihood.

    histogram: (..., G + 1) tasks by passes of their group of G. Where no group has a pass, a is 0, and the same with b
    where every draw passed: the likeliest is then that nothing (everything) ever passes, of which a histogram of few
    tasks is weak evidence. Under G = 2 the spread cannot be seen, and chances come out as all alike.

    Newton's steps in log a and log b; where one would lose, Minka's fixed point (2000, Estimating a Dirichlet
    distribution, eq. 55), which never does. a and b are cut at 1e-6 and 1e6, where groups pass as a whole or not at
    all, or all alike. Raises ValueError for counts that are no whole numbers >= 0, or no group.
    """
    h = whole(histogram, "histogram").astype(float)
    if h.ndim < 1 or h.shape[-1] < 2:
        raise ValueError("histogram must hold the tasks by passes, 0 to G, of groups of one draw or more")
    flat = h.reshape(-1, h.shape[-1])
    a, b = _fit(flat)
    return BetaBinomial(*(side.reshape(h.shape[:-1])[()] for side in (a, b)))


def chance(found: BetaBinomial, draws: int, failed: int = 0) -> Any:
    """The chance of at least one pass in so many draws, on a task of which `failed` draws have failed and none passed.

    With failed = 0 it is pass@draws of a task taken at random: 1 - chance(found, G) are the all-fail tasks.
    """
    if draws < 0 or failed < 0:
        raise ValueError("draws and failed must be whole numbers >= 0")
    a, b = (np.asarray(side, dtype=float)[..., None] for side in found)
    nth = np.arange(draws) + failed
    with np.errstate(invalid="ignore", divide="ignore"):
        return (1 - np.prod((b + nth) / (a + b + nth), axis=-1))[()]


def at_bound(found: BetaBinomial) -> bool:
    """Whether one fit lies at the least that is searched: groups that pass as a whole or not at all. What it foretells
    of a failed group, that it never passes, is then the bound's word and no task's."""
    return not min(map(float, found)) > ROOM * LEAST


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────


def _fit(h: Array) -> tuple[Array, Array]:
    """(m, G + 1) histograms -> a and b, (m,) each."""
    group = h.shape[-1] - 1
    nth, n = np.arange(group), h.sum(axis=-1)
    # log likelihood = sum over j of over_j log(a + j) + under_j log(b + j) - n log(a + b + j): tasks with more than j
    # passes, and with more than j failures.
    over = n[:, None] - np.cumsum(h, axis=-1)[:, :-1]
    under = n[:, None] - np.cumsum(h[:, ::-1], axis=-1)[:, :-1]
    passes = over.sum(axis=-1)

    def likelihood(a: Array, b: Array) -> Array:
        a_, b_ = a[:, None] + nth, b[:, None] + nth
        logs = over * np.log(a_) + under * np.log(b_) - n[:, None] * np.log(a_ + b[:, None])
        return logs.sum(axis=-1)

    rate = np.clip(passes / np.maximum(n * group, 1), 1e-9, 1 - 1e-9)
    a, b = rate.copy(), 1 - rate
    best = likelihood(a, b)
    for _ in range(ROUNDS):
        a_, b_ = a[:, None] + nth, b[:, None] + nth
        both = a_ + b[:, None]
        of_a, of_b, of_both = ((x / y).sum(axis=-1) for x, y in ((over, a_), (under, b_), (n[:, None], both)))
        minka = [
            np.clip(side * x / np.maximum(of_both, LEAST / MOST), LEAST, MOST) for side, x in ((a, of_a), (b, of_b))
        ]
        # Slopes and curvatures in log a and log b.
        slope_a, slope_b = a * (of_a - of_both), b * (of_b - of_both)
        bend = (n[:, None] / both**2).sum(axis=-1)
        aa = slope_a + a**2 * (bend - (over / a_**2).sum(axis=-1))
        bb = slope_b + b**2 * (bend - (under / b_**2).sum(axis=-1))
        ab = a * b * bend
        det = aa * bb - ab**2
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            step_a, step_b = -(bb * slope_a - ab * slope_b) / det, -(aa * slope_b - ab * slope_a) / det
            newton = [
                np.clip(np.where(det > 0, side * np.exp(np.clip(step, -3, 3)), side), LEAST, MOST)
                for side, step in ((a, step_a), (b, step_b))
            ]
        found = [(likelihood(*to), *to) for to in (newton, minka)]
        better = found[0][0] > found[1][0]
        reached, a, b = (np.where(better, x, y) for x, y in zip(*found, strict=True))
        if np.all(reached - best <= NEAR * np.maximum(n, 1)):
            break
        best = reached
    some, every = passes > 0, passes < n * group
    a, b = np.where(some, np.where(every, a, 1.0), 0.0), np.where(every, np.where(some, b, 1.0), 0.0)
    return np.where(n > 0, a, np.nan), np.where(n > 0, b, np.nan)
