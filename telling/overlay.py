"""Calibrations of several runs side by side: one table, one picture, each run named by its model.

    named = by_model([("Qwen/Qwen3-4B", "code_contests", "out"), ...])     names that tell the runs apart
    side_by_side({name: calibration.json})                                 lines of text
    picture({name: calibration.json})                                      calibrations.svg and calibrations.png

The buckets of a curve are the same in every run: none, up to a quarter, ... of the tests, or of the cells of a query's
result. What was measured on which tests is said for each run, since that may differ.

Left out: making a calibration (calibrate.py, sql_calibrate.py), reading the folders (commands/calibrations.py).
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, NamedTuple, cast

from figures.hill import Area, Curve
from telling.curves import area
from telling.tables import Column, Head, Table, table
from telling.text import Paper
from telling.words import CONFIDENCE, estimate, plural

PANELS = {  # the curves of calibration.json, in this order; all but the first only where two runs have them
    "fitness": "by fitness",
    "mixed": "by fitness, tasks with both outcomes",
    "by_parent": "by the parent's fitness",
    "judge": "by the judge's answer",
}
NEUTRAL = ("none", "up to a quarter", "to a half", "to three quarters", "to 90%", "below all", "all")
AREAS = {
    "pooled": "all tasks pooled",
    "within": "within a task",
    "pooled_partial": "pooled, partial alone",
    "within_partial": "within, partial alone",
}
COLOURS = ("#1f3a5f", "#c2571a", "#2e7d4f", "#8a3b8f", "#7a6a00", "#b3243f", "#11808c", "#555555")
MARKERS = "osD^vP*X"
Calibration = Mapping[str, Any]  # calibration.json


def by_model(runs: Sequence[tuple[str, str, str]]) -> list[str]:
    """A name for each run: its model, where need be with the task set, and with the folder. runs: those three."""
    short = [(model.rsplit("/", 1)[-1], tasks.rsplit("/", 1)[-1], folder) for model, tasks, folder in runs]
    models = [model for model, _, _ in short]
    on = [f"{model} on {tasks}" for model, tasks, _ in short]
    for names in (models, on):
        if len(set(names)) == len(names):
            return names
    return [f"{name}, {folder}" for name, (_, _, folder) in zip(on, short, strict=True)]


class Panel(NamedTuple):
    title: str
    curves: dict[str, Curve]  # by run
    buckets: list[str]


def panels(made: Mapping[str, Calibration]) -> list[Panel]:
    """The curves that are shown beside each other."""
    out = []
    for name, title in PANELS.items():
        curves = {run: cast(Curve, one[name]) for run, one in made.items() if name in one and one[name]["n"]}
        if len(curves) < (1 if name == "fitness" else 2):
            continue
        labels = {tuple(row["bucket"] for row in curve["table"]) for curve in curves.values()}
        out.append(Panel(title, curves, list(labels.pop() if len(labels) == 1 else NEUTRAL)))
    return out


def side_by_side(made: Mapping[str, Calibration], width: int = 80) -> str:
    """What each run was measured on, the buckets of every curve with the runs below each other, and the AUCs."""
    paper, key = Paper(width, False), dict(zip(made, letters(), strict=False))
    blocks = [[f"Does partial credit predict a pass: {plural(len(made), 'run')} side by side"]]
    for run, one in made.items():
        if curve := one.get("fitness"):
            said = f"{key[run]} {run}: {curve['n']:,} answers to {plural(curve['tasks'], 'task')}; {one['tests']}."
            blocks.append(paper.wrap(said, f"{curve['verdict'].replace('_', ' ')}: {curve['why']}."))
        else:
            blocks.append(paper.wrap(f"{key[run]} {run}: no curve of the fitness, a judge alone."))
    for panel in panels(made):
        blocks += [paper.table(_buckets(panel, key)), paper.table(_areas(panel, key))]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def letters() -> Iterator[str]:
    """What a narrow table calls the runs: A, B, ... Z, AA, ..."""
    for size in itertools.count(1):
        yield from map("".join, itertools.product(ascii_uppercase, repeat=size))


def _buckets(panel: Panel, key: Mapping[str, str]) -> Table | None:
    rows = []
    for at, bucket in enumerate(panel.buckets):
        first = bucket
        for run, curve in panel.curves.items():
            row = curve["table"][at]
            rate = estimate(row["rate"], [row["lo"], row["hi"]]) if row["n"] else ""
            rows.append([first, key[run], row["n"], row["passed"], rate])
            first = ""
    passing = Column(f"% that pass [{CONFIDENCE}]", "estimate")
    head: Head = [panel.title, Column("run", "words"), "answers", "passes", passing]
    return table("", head, rows)


def _areas(panel: Panel, key: Mapping[str, str]) -> Table | None:
    rows = []
    for name, title in AREAS.items():
        first = title
        for run, curve in panel.curves.items():
            rows.append([first, key[run], area(cast(Mapping[str, Area], curve["auc"])[name])])
            first = ""
    head: Head = [f"AUC {panel.title} [{CONFIDENCE}]", Column("run", "words"), Column("", "words")]
    return table("", head, rows)


def picture(made: Mapping[str, Calibration]) -> dict[str, bytes]:
    """calibrations.svg and .png: a panel a curve, the runs in it beside each other; empty where there is no curve."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = panels(made)
    if not shown:
        return {}
    looks = {run: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, run in enumerate(made)}
    with matplotlib.rc_context({"svg.hashsalt": "calibrations", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(5.4 * len(shown), 3.8), layout="constrained")
        for axis, panel in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
            step = 0.5 / max(len(panel.curves), 1)
            for i, (run, curve) in enumerate(panel.curves.items()):
                colour, marker = looks[run]
                aside = step * (i - (len(panel.curves) - 1) / 2)
                at = [(k + aside, row) for k, row in enumerate(curve["table"]) if row["n"]]
                for x, row in at:
                    axis.plot([x, x], [100 * (row[end] or 0) for end in ("lo", "hi")], color=colour, alpha=0.5)
                rates = [100 * (row["rate"] or 0) for _, row in at]
                label = f"{run}: {curve['verdict'].replace('_', ' ')}"
                axis.plot(
                    [x for x, _ in at], rates, marker=marker, color=colour, linewidth=1, label=label, clip_on=False
                )
            axis.set_xticks(range(len(panel.buckets)), panel.buckets, rotation=35, ha="right", fontsize=8)
            axis.set_ylim(bottom=0)
            axis.set_ylabel(f"% that pass, {CONFIDENCE} interval")
            axis.set_title(panel.title, fontsize=10)
            axis.legend(frameon=False, fontsize=8)
            axis.spines[["top", "right"]].set_visible(False)
        files = {}
        for kind in ("svg", "png"):
            out = io.BytesIO()
            dated = {"Date": None} if kind == "svg" else {}
            figure.savefig(out, format=kind, dpi=150, facecolor="white", metadata=dated)
            files[f"calibrations.{kind}"] = out.getvalue()
    return files
