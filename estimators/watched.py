"""A verdict that holds whenever somebody looks: bets on the tasks that one of two arms alone rescued.

    watch(a, b, family=3)       0/1 rescues of both arms, in an order fixed before they were played
    wealth(wins, losses)        what a bet on "b wins more often" has made of 1

Where two arms are equally good, a task that one of them alone rescued is a fair coin, and no way of betting on fair
coins makes money: the chance that a stake of 1 is ever worth x is at most 1/x (Ville 1939), after however many looks
and whatever made somebody stop. So a wealth that once reached the bar is a verdict; one that did not says nothing.

Why the order matters: an arm that stops at its first pass is done sooner on a task that it rescued. Taken in the order
in which tasks finish, the first tasks are the faster arm's wins. In an order fixed beforehand, up to the first task
that either arm still owes, a task's place says nothing about who won it; how far that is may depend on anything.

Conventions as in stats.py. Left out: equivalence (a bet can show that two arms differ and never that they do not), and
rates that are not 0 or 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from estimators.parts import Array, inside, is_binary, vector, whole

MOST = 700.0  # log of a wealth: more is no number


class Watched(NamedTuple):
    """Arm b against arm a, task by task. Counts and wealth are those of the last task."""

    n: int  # tasks
    n_a_only: int
    n_b_only: int
    wealth_b: float  # of the bets that b wins more often
    wealth_a: float
    bar: float  # that either wealth must reach once
    p_value: float  # the bar's alpha at which this much wealth would just be a verdict; 1 at most, and where both did
    verdict: str  # better, worse: of b; inconclusive while neither has reached the bar
    at: int | None  # the task at which the bar was reached, from 1


def wealth(wins: ArrayLike, losses: ArrayLike) -> Any:
    """What a stake of 1 has become that was bet on wins being more frequent than losses.

    The stake is spread evenly over all chances t of a win between one half and one; the part on t is multiplied by 2t
    at a win and by 2 (1 - t) at a loss. It depends on the two counts alone, whatever their order. Where the true chance
    of a win is one half or less it is a supermartingale: on average it never grows.

    Method of mixtures: Robbins 1970 (Ann. Math. Stat. 41:1397); as testing by betting: Shafer 2021 (J. R. Stat. Soc. A
    184:407). Raises ValueError for counts that are no whole numbers >= 0.
    """
    from scipy.special import betaincc, betaln

    k, m = np.broadcast_arrays(whole(wins, "wins"), whole(losses, "losses"))
    with np.errstate(divide="ignore"):  # a stake that is as good as lost
        grown = (k + m + 1) * np.log(2) + betaln(k + 1, m + 1) + np.log(betaincc(k + 1, m + 1, 0.5))
    return np.exp(np.minimum(grown, MOST))[()]


def watch(a: ArrayLike, b: ArrayLike, alpha: float = 0.05, family: int = 1) -> Watched:
    """Arm b against arm a, looked at after every task.

    a, b: (n_tasks,) 0/1 rescues of the same tasks, in an order that was fixed before they were played. family: how many
    arms are watched at once. Each has two sides to bet on, so the bar is 2 * family / alpha (Bonferroni, Ville): the
    chance that any arm of the family is ever called better where it is not, or worse where it is not, is at most alpha.

    Raises ValueError for values other than 0 and 1, unequal lengths, alpha outside (0, 1), or no arm in the family.
    """
    x, y = vector(a, "a"), vector(b, "b")
    if x.size != y.size:
        raise ValueError(f"a and b must be the same tasks: {x.size} against {y.size}")
    if not (is_binary(x) and is_binary(y)):
        raise ValueError("a and b must be 0 or 1: bets are on who rescued a task alone")
    if family < 1 or family != int(family):
        raise ValueError("family must be a whole number of arms >= 1")
    bar = 2 * int(family) / inside(alpha, "alpha")
    won, lost = np.cumsum(y > x), np.cumsum(x > y)
    up, down = np.atleast_1d(wealth(won, lost)), np.atleast_1d(wealth(lost, won))
    reached = {"better": _first(up, bar), "worse": _first(down, bar)}
    said = [word for word, at in reached.items() if at is not None]
    # Both sides can only reach it one after the other; then neither is believed.
    word = said[0] if len(said) == 1 else "inconclusive"
    most = 1.0 if len(said) > 1 else max(float(up.max(initial=1.0)), float(down.max(initial=1.0)))
    return Watched(
        n=x.size,
        n_a_only=int(lost[-1]) if x.size else 0,
        n_b_only=int(won[-1]) if x.size else 0,
        wealth_b=float(up[-1]) if x.size else 1.0,
        wealth_a=float(down[-1]) if x.size else 1.0,
        bar=bar,
        p_value=min(1.0, 2 * int(family) / most),
        verdict=word,
        at=reached.get(word),
    )


def _first(worth: Array, bar: float) -> int | None:
    there = np.flatnonzero(worth >= bar)
    return int(there[0]) + 1 if there.size else None
