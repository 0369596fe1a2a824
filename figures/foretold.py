"""What the base group foretells: of fresh draws, which an arm must beat, and of what the comparison can show.

    fresh(table)["rescue"][23]          a pass in 24 more fresh draws on an all-fail task
    power(table)["ring"]["power"]       the chance to see a difference of the margin: a range
    chances(SoFar, ...)                 the same before the arms are played

Power depends on how often two arms disagree, and what the arms happened to disagree on in this run is luck. The base
group tells how often two equal arms do; arms that differ by the margin do so as often if the one that is better passes
where the other does too, and by the margin more often if it passes where the other does not. So power is a range.

Left out: the fit and its intervals (estimators/prospect.py), the exact power (stats.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

import stats
from commands.settings import Config, Settings
from estimators.prospect import Prospect, prospect
from figures.numbers import ratio
from figures.plan import ALPHA, CONTROL, LEVEL, margin_in_force, margins, runs_compared
from figures.results import Fresh, Power
from figures.table import Table
from swarm import Attempt


def foretold(table: Table) -> Prospect:
    passes = table.base.passes.sum(axis=1)[table.base.done]
    return prospect(np.bincount(passes, minlength=table.base_samples + 1), table.particles * table.rounds, LEVEL)


def fresh(table: Table) -> Fresh:
    """The base group's own pass@k, and what further fresh draws are expected to add: by a beta-binomial fit."""
    found = foretold(table)
    a, b = found.chances
    return {
        "n": found.n,
        "all_fail": found.failed,
        "chances": [float(a), float(b)],
        "fits_p": found.fits,
        "base": found.base.tolist(),
        "base_interval": found.base_interval.T.tolist(),
        "beyond": found.beyond.tolist(),
        "beyond_interval": found.beyond_interval.T.tolist(),
        "rescue": found.rescue.tolist(),
        "rescue_interval": found.rescue_interval.T.tolist(),
    }


class Chances(NamedTuple):
    """Of seeing a true difference of `effect`; each a range from the worse case to the better one."""

    discordance: tuple[float, float]
    needed: tuple[int, int] | None
    power: tuple[float, float]
    power_holm: tuple[float, float]


def chances(n: int, effect: float, equal: tuple[float, float], family: int, runs: int = 1) -> Chances:
    """equal: how often two equal arms disagree, a range; runs: of the control, whose mean the arms are compared with.
    Nothing is seen on no task."""
    low, high = (min(max(x, effect), 1.0) for x in (equal[0], equal[1] + effect))

    def power(alpha: float) -> tuple[float, float]:
        seen = sorted(stats.power_paired(int(n * stats.worth(runs)), effect, x, alpha=alpha) for x in (low, high))
        return seen[0], seen[1]

    needed = sorted(math.ceil(stats.tasks_needed(effect, x) / stats.worth(runs)) for x in (low, high))
    return Chances((low, high), (needed[0], needed[1]), power(ALPHA), power(ALPHA / max(family, 1)))


def effect_of(config: Config, found: Prospect | None) -> float:
    """The difference that is asked about: the margin in force, or the one asked for where no base attempt passed."""
    asked = margins(config)["rescue_rate"]
    return margin_in_force(asked, float(found.rescue[-1]) if found else math.nan) or asked


def power(table: Table) -> dict[str, Power]:
    """What these tasks could have shown: a true difference of the margin in the rescue rate, as a range."""
    found = foretold(table) if table.band == "all" else None
    effect = effect_of(table.config, foretold(table))
    runs = runs_compared(table.config, table.plan)
    out: dict[str, Power] = {}
    for arm in table.others if table.controlled else []:
        control, own = table.rescues(arm)
        n, discordant = len(own), int((control != own).sum())
        observed = ratio(discordant, n)
        by_base = found is not None and not math.isnan(found.apart)
        equal = tuple(found.apart_interval.tolist()) if found is not None and by_base else (observed, observed)
        got = chances(n, effect, equal, len(table.others), runs) if n else None
        out[arm] = {
            "n": n,
            "discordant": discordant,
            "discordance": observed,
            "wilson": list(stats.proportion_ci(discordant, n, level=LEVEL)),
            "effect": effect,
            "foretold_by": "base group" if by_base else "these tasks",
            "discordance_equal": found.apart if found is not None and by_base else math.nan,
            "discordance_assumed": list(got.discordance) if got else [math.nan, math.nan],
            "tasks_needed": list(got.needed) if got and got.needed else None,
            "power": list(got.power) if got else [math.nan, math.nan],
            "power_holm": list(got.power_holm) if got else [math.nan, math.nan],
        }
    return out


# ── before the arms are played, or while they are ────────────────────────────────────────────────────────────────────


class SoFar(NamedTuple):
    """What the attempts of a folder say of those to come."""

    found: Prospect | None  # None where the arms are not given every all-fail task, or no group is whole
    attempts: int
    seconds: float  # an attempt waits for its reply, on average; nan without one
    chances: Chances | None  # on as many tasks as the plan has all-fail ones
    all_fail: int  # of the tasks of the plan, as many as the base groups so far let expect
    effect: float = math.nan  # the margin in force


def so_far(attempts: Iterable[Attempt], config: Config, asked: int) -> SoFar:
    """attempts: of a folder that was begun with these settings; asked: tasks of the plan."""
    due = Settings.of(config)
    passes: dict[str, dict[int, bool]] = {}
    count, seconds = 0, 0.0
    for attempt in attempts:
        count, seconds = count + 1, seconds + attempt.latency_seconds
        if attempt.arm == "base" and attempt.particle < due.base_samples and attempt.outcome != "refused":
            passes.setdefault(attempt.task_id, {})[attempt.particle] = attempt.passed
    whole = [sum(group.values()) for group in passes.values() if len(group) == due.base_samples]
    wait = ratio(seconds, count)
    if not whole:
        return SoFar(None, count, wait, None, asked)
    found = prospect(np.bincount(whole, minlength=due.base_samples + 1), due.particles * due.rounds, LEVEL)
    all_fail = round(asked * found.failed / found.n)
    if due.band != "all" or math.isnan(found.apart) or CONTROL not in due.arms or not due.others:
        return SoFar(found if due.band == "all" else None, count, wait, None, all_fail)
    low, high = found.apart_interval.tolist()
    effect = effect_of(config, found)
    told = chances(all_fail, effect, (low, high), len(due.others), runs_compared(config, None))
    return SoFar(found, count, wait, told, all_fail, effect)
