"""What happened: attempts in, the whole of results.json out. Pure: no clock, no disk, no network, no global random.

    results = measure(attempts, config, cards, checks, events, plan)      everything that the report prints
    curve = hill(score, passed, task, edges)                              does a score predict the pass it needs

One `Table` (table.py) is built in a single walk over the attempts. Each key of results.json is one function of it and
its name in SECTIONS; what each holds says results.py. The keys of the published files are made by `published`, in
points; all else are fractions, intervals are [lo, hi], and what cannot be estimated is null beside its n.

Tasks are the unit. A task whose base group lacks an attempt is not all-fail; a task on which an arm still owes attempts
stays out of that arm's rates. Both are counted under `incomplete`. Every bootstrap and Monte Carlo draw starts from a
fresh generator of one fixed seed, so the same folder gives the same bytes and two arms that are swapped swap figures.

Left out here: the sections themselves (counted.py, compared.py, climbed.py), the estimators (stats.py), which attempts
are due and what will be concluded (plan.py), words and pictures (telling/), reading the folder (records.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np

import stats
from commands.settings import Config, Row
from figures.climbed import anchoring, climb, signal
from figures.compared import noise, paired, per_draw_stopped, per_sample, verdict
from figures.counted import (
    by_tag,
    by_task,
    cost,
    coverage,
    exported,
    hinted,
    incomplete,
    intervals,
    near_miss,
    outcomes,
    pooled,
    training_set,
    unrescued,
)
from figures.disputed import audit as audit_section
from figures.efficiency import efficiency
from figures.foretold import fresh, power
from figures.gathered import Gathered
from figures.hill import hill as hill
from figures.numbers import mean, plain, rounded
from figures.plan import CONTROL, LEVEL, POSITIVE_CONTROL, SCHEMA_VERSION
from figures.predicted import predictions
from figures.regraded import gathered
from figures.results import Delta, Published, PublishedArm, Results
from figures.said import kept_grades, warnings
from figures.table import Table, tabulate
from figures.verified import counts, verified
from figures.watched import watched
from grading.grade import UNANSWERED
from swarm import Attempt
from tasksets.task import Task

ON_OFF: dict[str, bool | str] = {"off": False, "on": True}


# ── the published keys: points, rounded as published ─────────────────────────────────────────────────────────────


def _published_verdict(n: int, lo: float, hi: float) -> str:
    """The published word, from the interval alone."""
    if n < 2 or math.isnan(lo):
        return "insufficient_data"
    return "b_better" if lo > 0 else "a_better" if hi < 0 else "no_difference_detected"


def published(table: Table) -> Published:
    """The keys of the published results files, with their meaning, units and rounding."""
    c, identity = table.columns, table.config["identity"]
    passes = table.base.passes.sum(axis=1)[table.base.done]
    arms: dict[str, PublishedArm] = {}
    for arm, play in table.plays.items():
        use = table.finished(arm)
        n = int(use.sum())
        rescued = play.rescued[use].astype(float)
        lo, hi = stats.bootstrap_ci(rescued, level=LEVEL)
        first = play.first[use]
        drawn = int(play.drawn[use].sum())
        arms[arm] = {
            "rescue_rate": rounded(mean(rescued)),
            "ci": rounded((hi - lo) / 2),
            "n": n,
            "by_round": [rounded(mean(first <= nth)) for nth in range(table.rounds)],
            "samples": drawn,
            "samples_per_task": round(drawn / n, 1) if n else None,
        }
    deltas: dict[str, Delta] = {}
    for arm in table.others if table.controlled else []:
        got = stats.compare_paired(*table.rescues(arm), level=LEVEL, method="bootstrap")
        deltas[arm] = {
            "vs": CONTROL,
            "delta": rounded(got.delta),
            "ci95": [rounded(got.lo), rounded(got.hi)],
            "p_value": got.p_value,
            "verdict": _published_verdict(got.n, got.lo, got.hi),
            "n_paired": got.n,
        }
    return {
        "tasks": len(table.tasks),
        "all_fail": int(table.all_fail.sum()),
        "p0_histogram": np.bincount(passes, minlength=table.base_samples + 1).tolist(),
        "budget": {
            "G": table.base_samples,
            "N": table.particles,
            "R": table.rounds,
            "B": table.particles * table.rounds,
        },
        "arms": arms,
        "deltas": deltas,
        "noise": noise(table),
        "model": identity["model"],
        "seed": identity["seed"],
        "thinking": thinking if (thinking := identity["thinking"]) not in ON_OFF else ON_OFF[thinking],
        "max_tokens": identity["max_tokens"],
        "no_comments": identity["no_comments"],
        "band": table.band,
        "family": identity["tasks"],
        "bundle": identity["bundle"] if identity["tasks"] == POSITIVE_CONTROL else None,
        "calls": int((table.asked & ~np.isin(c.outcome, UNANSWERED)).sum()),
        "truncated": int(c.truncated.sum()),
        "tokens": {
            "prompt": int(np.nansum(c.prompt_tokens)),
            "completion": int(np.nansum(c.completion_tokens)),
        },
        "seconds": None if table.seconds is None else round(table.seconds),
        "rescued_rows": len(exported(table)),
    }


# ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────────────

SECTIONS: dict[str, Callable[[Table], object]] = {
    "audit": audit_section,
    "verdict": verdict,
    "predictions": predictions,
    "incomplete": incomplete,
    "hinted": hinted,
    "intervals": intervals,
    "paired": paired,
    "watched": watched,
    "per_sample": per_sample,
    "per_draw_stopped": per_draw_stopped,
    "coverage": coverage,
    "climb": climb,
    "signal": signal,
    "anchoring": anchoring,
    "near_miss": near_miss,
    "unrescued": unrescued,
    "pooled": pooled,
    "training_set": training_set,
    "by_tag": by_tag,
    "by_task": by_task,
    "outcomes": outcomes,
    "fresh": fresh,
    "power": power,
    "cost": cost,
    "efficiency": efficiency,
    "warnings": warnings,
}


def measure(
    attempts: Iterable[Attempt] | Gathered,
    config: Config,
    cards: Iterable[Row | Task] = (),
    checks: Iterable[Row] = (),
    events: Iterable[Mapping[str, Any]] = (),
    plan: Row | None = None,
    audit: Row | None = None,
) -> Results:
    """All of results.json. `attempts` is walked once; `config["grades"]` may name a regrade, then `checks` decide.

    attempts: or their columns, under those grades. audit: audit.json, where there is one.
    """
    checks, grades = list(checks), str(config.get("grades") or "attempts")
    if not isinstance(attempts, Gathered):
        attempts = gathered(((0, 0, attempt) for attempt in attempts), checks, config)
    table = tabulate(attempts, config, cards, events, plan, audit)
    results = {
        "schema_version": SCHEMA_VERSION,
        **published(table),
        **{name: section(table) for name, section in SECTIONS.items()},
        "verified": counts(verified(checks).values()),
        "grades": grades,
        "tier": config.get("tier"),
        "graded_under": config.get("graded_under") if grades == "attempts" else None,
        "identity": dict(config.get("identity", {})),
        "dry_run": bool(config.get("dry_run")),
    }
    made = cast(Results, plain(results))
    if attempts.left:
        made["warnings"].append(kept_grades(grades, attempts.left))
    return made
