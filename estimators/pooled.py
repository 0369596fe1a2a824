"""Several runs of one experiment as one: an arm against the control over tasks that runs share, or share parts of.

    compare_pooled(task, arm, passes, runs, linked)     a cell for each task of each run
    mean_ci(values, linked)                             the interval alone, of any differences
    heterogeneity(deltas, errors)                       do runs differ by more than their tasks and draws explain

A task counts once, by its mean over the runs that have it. Where the arm is no different, any of the k + 1 plays of a
cell might have been the arm's, whatever the other cells of its task did: so the test deals them out anew cell by cell,
and is exact for tasks in common too. The interval is of the difference on other tasks of the kind, and so takes tasks
as they come together: a task that runs share is one, and two tasks that share a part (functions of a bundle, dealt out
anew by another seed) lean the same way, which is allowed for.

Pure. Left out: which runs may be pooled, and what is said of them (figures/pool.py); a comparison within one run
(estimators/reruns.py, of which this is the general case).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.parts import (
    RELATIVE_TIE,
    Array,
    Comparison,
    Interval,
    inside,
    is_binary,
    normal_quantile,
    settled,
    vector,
    whole,
)
from estimators.reruns import binomial


class Heterogeneity(NamedTuple):
    """Cochran's Q of the runs' differences, with its degrees of freedom and p; nan under two runs."""

    q: float
    df: int
    p: float


def compare_pooled(
    task: ArrayLike,
    arm: ArrayLike,
    passes: ArrayLike,
    runs: ArrayLike,
    linked: Sequence[tuple[int, int]] = (),
    level: float = 0.95,
) -> Comparison:
    """The arm less the mean of the control's runs, mean over tasks. A cell is a task in one run of the experiment.

    task: (n_cells,) whole numbers from 0, each at least once; arm: (n_cells,) 0/1; passes: (n_cells,) how many of the
    control's `runs` (n_cells,) passed; linked: pairs of tasks that share a part.

    Two-sided p: twice the smaller tail of the weighted count, exact (steps of one over the cells of a task). Interval:
    Wald's with two tasks added, one at either end (Bonett and Price 2012), and the products of linked tasks' residuals
    added to the variance where they add to it (Aronow, Samii and Assenova 2015, Polit. Anal. 23:564).
    One task: no interval. No task: all nan. Raises ValueError for other than 0/1, passes over runs, or unequal lengths.
    """
    place, x, passed, k = (
        whole(task, "task").astype(int),
        vector(arm, "arm"),
        whole(passes, "passes"),
        whole(runs, "runs"),
    )
    if len({place.size, x.size, passed.size, k.size}) > 1:
        raise ValueError("task, arm, passes and runs must have one entry a cell")
    if not is_binary(x) or np.any(passed > k) or np.any(k < 1):
        raise ValueError("arm must be 0 or 1, and passes at most the runs, of which there is at least one")
    inside(level, "level")
    if not x.size:
        return Comparison(np.nan, np.nan, np.nan, np.nan, 0, 0, 0)
    cells = np.bincount(place)
    d = settled(np.bincount(place, weights=x - passed / k) / cells, scale=1.0)
    n, delta = d.size, float(settled([d.mean()], scale=1.0)[0])
    lo, hi = mean_ci(d, linked, level)
    p = _p_value(x, passed, k, cells[place])
    return Comparison(delta, lo, hi, p, n, int(np.sum(d < 0)), int(np.sum(d > 0)))


def mean_ci(
    values: ArrayLike, linked: Sequence[tuple[int, int]] = (), level: float = 0.95, end: float = 1.0
) -> Interval:
    """Of a mean over tasks that are linked in pairs: `compare_pooled`'s interval, cut at -1 and 1; nan under two tasks.

    values: (n_tasks,) differences; end: how far from 0 the two added tasks lie, the largest difference there can be.
    """
    d = vector(values, "values")
    z, n = normal_quantile(1 - (1 - inside(level, "level")) / 2), d.size
    if n < 2:
        return Interval(np.nan, np.nan)
    middle, apart = d.sum() / (n + 2), d - d.mean()
    spread = (d @ d + 2 * end**2) / (n + 2) - middle**2
    together = 2 * sum(float(apart[i] * apart[j]) for i, j in linked) / (n + 2)
    half = z * np.sqrt((spread + max(together, 0.0)) / (n + 2))
    lo, hi = settled([max(middle - half, -1.0), min(middle + half, 1.0)], scale=1.0)
    return Interval(float(lo), float(hi))


def heterogeneity(deltas: ArrayLike, errors: ArrayLike) -> Heterogeneity:
    """Cochran's Q over runs. deltas, errors: (n_runs,) each run's difference and its standard error.

    Runs on the same tasks have those in common, and differ by less than their errors say: the p is then too large.
    """
    from scipy.special import chdtrc

    d, se = vector(deltas, "deltas"), vector(errors, "errors")
    if d.size < 2:
        return Heterogeneity(math.nan, 0, math.nan)
    weight = 1 / se**2
    q = float(weight @ (d - weight @ d / weight.sum()) ** 2)
    return Heterogeneity(q, d.size - 1, float(chdtrc(d.size - 1, q)))


def _p_value(x: Array, passed: Array, k: Array, cells: NDArray[np.int64]) -> float:
    """Of the arm's count, each cell worth one over the cells of its task, its plays dealt out anew."""
    unit = math.lcm(*map(int, np.unique(cells)))
    steps, among = unit // cells, (passed + x).astype(int)
    chance = np.ones(1)
    sure = 0.0
    for step, s, runs in sorted(set(zip(steps.tolist(), among.tolist(), k.astype(int).tolist(), strict=True))):
        alike = int(np.sum((steps == step) & (among == s) & (k == runs)))
        if s == runs + 1:
            sure += step * alike
        elif s:
            spread = np.zeros(step * alike + 1)
            spread[::step] = binomial(alike, s / (runs + 1))
            chance = np.convolve(chance, spread)
    seen = round(float(steps @ x) - sure)
    return float(min(1.0, 2 * min(chance[: seen + 1].sum(), chance[seen:].sum()) * (1 + RELATIVE_TIE)))
