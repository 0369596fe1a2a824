"""What was predicted of the arms, beside what came out.

    predictions(table)["ring"]      the predicted difference, the found one, and whether its interval rules it out

A prediction is worth something where it was written down before the first sample, and `before` says whether it was.
An interval that holds a prediction does not show it: it holds other values too.

Pure. Left out: how predictions are read (commands/predictions.py), the sentence (telling/words.py).
"""

from __future__ import annotations

import math

from figures.compared import by_primary_metric, is_late
from figures.results import Prediction
from figures.said import came_first
from figures.table import Table


def predictions(table: Table) -> dict[str, Prediction]:
    """Of each arm of which something was predicted; the found difference is by the primary metric."""
    said: dict[str, float] = table.config["plan"].get("predict") or {}
    if not said:
        return {}
    first = (table.plan or {}).get("settings", {}).get("predict") or {} if came_first(table) else {}
    rows, late = by_primary_metric(table), is_late(table)
    out: dict[str, Prediction] = {}
    for arm, points in said.items():
        row = rows.get(arm)
        delta, interval = (row["delta"], row["interval"]) if row else (math.nan, [math.nan, math.nan])
        lo, hi = (math.nan if end is None else end for end in interval)
        predicted, known = points / 100, not math.isnan(lo)
        out[arm] = {
            "predicted": predicted,
            "before": first.get(arm) == points,
            "delta": delta,
            "interval": [lo, hi],
            "ruled_out": not lo <= predicted <= hi if known and not late else None,
        }
    return out
