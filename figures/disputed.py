"""What an audit means for a run: which all-fail tasks nothing may be able to rescue, and each rate without them.

    audit(table)["without_disputed"]["arms"]["ring"]["rate"]

Left out: the verdict on a task (audited.py), how a rate comes about (counted.py, compared.py), its words (telling/).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from figures.audited import DISPUTED, UNAUDITED, VERDICTS
from figures.compared import by_primary_metric, paired, per_sample
from figures.counted import intervals, pooled
from figures.numbers import ratio
from figures.plan import primary_metric
from figures.results import Against, Audited, AuditedArm, AuditedSide
from figures.table import Bools, Table


def audit(table: Table) -> Audited | None:
    """Of the tasks as audit.json has them; a task that it does not know, or knows with other tests, is unaudited."""
    if not table.is_audited:
        return None
    disputed = table.verdicts == DISPUTED
    named = [table.tasks[i] for i in np.flatnonzero(disputed & table.all_fail)]
    passes = np.bincount(table.columns.task, weights=table.columns.passed, minlength=len(table.tasks)) > 0
    reasons = {task: str(table.audits[task]["reason"]) for task in named}
    return {
        "tasks": _verdicts(table, np.ones(len(table.tasks), dtype=bool)),
        "all_fail": _verdicts(table, table.all_fail),
        "reasons": dict(Counter(reasons.values()).most_common()),
        "disputed": reasons,
        "passed_all_the_same": int((disputed & passes).sum()),
        "only_passable": table.only_passable,
        "with_disputed": _side(table, np.ones(len(table.tasks), dtype=bool)),
        "without_disputed": _side(table, ~disputed),
    }


def _verdicts(table: Table, mask: Bools) -> dict[str, int]:
    found = Counter(table.verdicts[mask].tolist())
    return {verdict: found[verdict] for verdict in (*VERDICTS, UNAUDITED)}


def _side(table: Table, mask: Bools) -> AuditedSide:
    part = table.among(mask)
    rates, samples = intervals(part), per_sample(part)
    against: dict[str, Against] = {**paired(part)}
    if primary_metric(part.config) == "rescue_rate":  # as the table of the verdicts has it: of all runs of the control
        against |= by_primary_metric(part)
    arms: dict[str, AuditedArm] = {}
    for arm, row in rates.items():
        pair = against.get(arm)
        arms[arm] = {
            "n": row["n"],
            "rescued": row["rescued"],
            "rate": row["rate"],
            "wilson": row["wilson"],
            "delta": pair["delta"] if pair else None,
            "interval": pair["interval"] if pair else [None, None],
            "per_sample": samples[arm]["rate"],
        }
    whole, failed = int((table.base.done & mask).sum()), int(part.all_fail.sum())
    found = pooled(part)
    return {
        "tasks": whole,
        "all_fail": failed,
        "share": ratio(failed, whole),
        "given": found["n"],
        "rescued": found["all_runs"]["rescued"],
        "arms": arms,
    }
