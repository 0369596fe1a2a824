"""A calibration, told: its buckets by name, its tables and areas as text, and its plot.

    made = curve(rows)                  measure.hill of (score, passed, task) rows, with the buckets named
    bucket_table("fitness", made)       lines of text; areas(made) its AUCs
    plot({"fitness": made}, titles)     calibration.svg and calibration.png

Shared by everything that asks whether a score predicts a pass. Left out: the estimates and the rule of the verdict
(measure.py), where scores and passes come from (calibrate.py, sql_calibrate.py), the page (page.py, plots.py).
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, cast

from figures.hill import EDGES, Area, Curve, hill
from telling import plots, short
from telling.words import auc, number, plural

BUCKETS = ("none", "up to a quarter", "to a half", "to three quarters", "to 90%", "to all but one", "every test")


def curve(rows: Iterable[tuple[float, bool, str]], buckets: tuple[str, ...] = BUCKETS, **how: Any) -> Curve:
    """`measure.hill` of (score, passed, task) rows, its buckets named as people read them."""
    ordered = sorted(rows)
    score, passed, task = zip(*ordered, strict=True) if ordered else ((), (), ())
    made = hill(score, passed, task, **{"edges": EDGES, **how})
    for row, name in zip(made["table"], buckets, strict=True):
        row["bucket"] = name
    return made


def bucket_table(title: str, curve_: Curve, what: str = "programs that pass", noun: str = "program") -> list[str]:
    """The buckets of a curve, a line each; those that hold nothing together."""
    rows = [f"{title:<20}{'n':>8}{'pass':>8}   {what}"]
    for row in curve_["table"]:
        if row["n"]:
            said = f"{number(row['rate'])} [{number(row['lo'])}, {number(row['hi'])}]"
            rows.append(f"{row['bucket']:<20}{row['n']:>8,}{row['passed']:>8,}   {said}")
    empty = [row["bucket"] for row in curve_["table"] if not row["n"]]
    return rows + [line for said in short.nothing_in(empty, noun) for line in textwrap.wrap(said, 80)]


def areas(curve_: Curve) -> list[str]:
    """The four AUCs of a curve, a line each; one line where none can be told."""
    names = {
        "pooled": "AUC, all tasks pooled",
        "within": "AUC within a task",
        "pooled_partial": "the same, partial fitness only",
        "within_partial": "within, partial fitness only",
    }
    found = cast(Mapping[str, Area], curve_["auc"])
    if all(one["auc"] is None for one in found.values()):
        return [f"AUC, of all tasks pooled or within one: {area(found['pooled'])}"]
    return [f"{title:<32}{area(found[name])}" for name, title in names.items()]


def area(found: Area) -> str:
    """One AUC with its interval, or why there is none."""
    if found["auc"] is None:
        return f"not estimable ({found['n_pos']} passes, {found['n_neg']} fails)"
    without = "" if found["interval"][0] is not None else " (no interval)"
    return f"{auc(found)}{without} over {plural(found['n_groups'], 'task')}"


def plot(made: Mapping[str, Curve], titles: Mapping[str, str]) -> dict[str, bytes]:
    """calibration.svg and calibration.png: one panel for each of the titled curves that holds anything."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = [name for name in titles if name in made and made[name]["n"]]
    if not shown:
        return {}
    with matplotlib.rc_context({"svg.hashsalt": "calibration", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.4 * len(shown), 3.4), layout="constrained")
        for axis, name in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
            plots.buckets(axis, made[name]["table"], "#1f3a5f", "#888888")
            for label in axis.get_xticklabels():
                label.set(rotation=35, ha="right", fontsize=8)
            axis.set_title(f"{titles[name]}: {made[name]['verdict'].replace('_', ' ')}", fontsize=10)
            axis.spines[["top", "right"]].set_visible(False)
        files = {}
        for kind in ("svg", "png"):
            out = io.BytesIO()
            figure.savefig(
                out, format=kind, dpi=150, facecolor="white", metadata={"Date": None} if kind == "svg" else {}
            )
            files[f"calibration.{kind}"] = out.getvalue()
    return files
