"""Made-up truths for the benches of the statistics: tasks whose chances are known, and arms that are so much better.

    p = all_fail(rng, 2000, 220)        (runs, tasks) chances of a draw, on tasks of which 8 draws have failed
    better(p, .10)                      the odds of a draw multiplied, so that rescues rise by 10 points on average
    one_sided(p, .10)                   rescue chances 10 points higher, by tasks that fresh draws leave

Chances are Beta(.072, .795), fitted to the base groups of both published code_contests seeds. An arm has 24 draws on a
task. Left out: what an arm does with them (a bench that needs rounds draws them itself).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

Chances = NDArray[np.float64]

A, B = 0.072, 0.795  # the Beta distribution of chances
GROUP, DRAWS = 8, 24
SPREAD = 1.0  # sd of what an arm is worth from task to task, in log odds, where arms suit tasks differently


def all_fail(rng: np.random.Generator, runs: int, tasks: int) -> Chances:
    """Chances of tasks that a group of 8 has failed."""
    return rng.beta(A, B + GROUP, size=(runs, tasks))


def rescue(p: Any) -> Any:
    """The chance of a pass in 24 draws."""
    return 1 - (1 - p) ** DRAWS


def odds(p: Any, times: Any) -> Any:
    return p * times / (1 - p + p * times)


@functools.cache
def _times(points: float, spread: float) -> float:
    """What odds are multiplied with for so many points of rescues more, on average over tasks."""
    rng = np.random.default_rng(0)
    p = rng.beta(A, B + GROUP, size=400_000)
    noise = np.exp(spread * rng.standard_normal(p.size))
    low, high = 0.05, 60.0
    for _ in range(50):
        middle = (low * high) ** 0.5
        few = rescue(odds(p, middle * noise)).mean() - rescue(p).mean() < points
        low, high = (middle, high) if few else (low, middle)
    return low


def better(p: Chances, points: float) -> Chances:
    return odds(p, _times(points, 0.0))


def suited(rng: np.random.Generator, p: Chances, points: float = 0.0) -> Chances:
    """An arm that suits some tasks and not others, better by so many points on average."""
    return odds(p, _times(points, SPREAD) * np.exp(SPREAD * rng.standard_normal(p.shape)))


def one_sided(p: Chances, points: Any) -> Chances:
    """Rescue chances (not those of a draw): `points` more, all on tasks that 24 draws of one's own would leave."""
    found = rescue(p)
    return found + (1 - found) * points / (1 - A_RESCUED)


A_RESCUED = float(1 - np.prod([(B + GROUP + i) / (A + B + GROUP + i) for i in range(DRAWS)]))  # 9.3%
