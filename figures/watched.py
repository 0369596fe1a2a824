"""The verdict that holds whenever somebody looks, beside the fixed one: for runs under way, and for runs that grew.

    watched(table)["arms"]["ring"]["verdict"]   better, worse, or inconclusive: not told yet

Tasks count in the order of tasks.jsonl, the seeded one in which they are asked, up to the first on which the arm or the
control still owes something. That order is fixed before any draw; the order in which tasks finish is not, since an arm
that stops at its first pass finishes early where it wins.

Left out: the bets (estimators/watched.py), the fixed verdict (compared.py).
"""

from __future__ import annotations

import numpy as np

from estimators.watched import watch
from figures.plan import ALPHA, CONTROL, margins, primary_metric
from figures.results import Watch, WatchedArm
from figures.said import changed, departures
from figures.table import Bools, Table

MAY_GROW = {"limit", "noise_runs"}  # what may change in a run that is watched: how many tasks, and what is not compared


def in_order(table: Table) -> list[int]:
    """The tasks, as their cards were filed; those without a card after them, by name."""
    where = {task: i for i, task in enumerate(table.tasks)}
    return [where[task] for task in dict.fromkeys([*table.tags, *table.tasks])]


def _reached(table: Table, arm: str) -> tuple[list[int], int]:
    """Tasks given to the arms that count so far, in order; and how many are finished that do not count yet."""
    known = table.base.done | table.base.refused
    sides = [table.plays[arm], table.plays[CONTROL]]
    owed: Bools = np.logical_or.reduce([side.owed > 0 for side in sides])
    both = table.both(arm)
    counted: list[int] = []
    for i in in_order(table):
        if not known[i] or (table.given[i] and owed[i]):
            break
        if both[i]:
            counted.append(i)
    return counted, int(both.sum()) - len(counted)


def watched(table: Table) -> Watch:
    """Each arm against the control by rescues, valid however often and whenever it is looked at."""
    metric = primary_metric(table.config)
    reasons = departures(table, metric, margins(table.config)[metric])
    grown = changed(table)
    arms: dict[str, WatchedArm] = {}
    for arm in table.others if table.controlled else []:
        use, waiting = _reached(table, arm)
        control, own = (table.plays[name].rescued[use].astype(float) for name in (CONTROL, arm))
        got = watch(control, own, ALPHA, family=len(table.others))
        arms[arm] = {
            "n": got.n,
            "waiting": waiting,
            "n_arm_only": got.n_b_only,
            "n_resample_only": got.n_a_only,
            "wealth": max(got.wealth_b, got.wealth_a),
            "bar": got.bar,
            "p": got.p_value,
            "verdict": got.verdict,
            "at": got.at,
        }
    return {"planned": not reasons or (len(reasons) == 1 and bool(grown) and set(grown) <= MAY_GROW), "arms": arms}
