"""An audit as text: how many tasks can be passed, why the others cannot, and each of those by name.

    text(file)      of an audit.json, 80 columns

Left out: how a verdict comes about (figures/audited.py), what it means for a run (tables.py, words.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from figures.audited import DISPUTED, VERDICTS, Audit, audits_of
from telling.tables import Column, table
from telling.text import Paper
from telling.words import plural, share

MOST = 100  # tasks named for each heading; audit.json has them all
MEANS = {
    "passable": "a reference passes every test",
    "disputed": "none does, or tests contradict each other",
    "unknown": "no reference in Python",
}


def text(file: Mapping[str, Any], width: int = 80) -> str:
    """The tables, then the lists."""
    paper, audits = Paper(width, colour=False), audits_of(file)
    asked, whole = file["asked"], max(file["tasks"], 1)
    title = (
        f"{plural(file['tasks'], 'task')} of {asked['tasks']}, up to {plural(asked['references'], 'reference')} each"
    )
    left = "; ".join(f"{number:,} {reason}" for reason, number in file.get("left_out", {}).items())
    rows = [[verdict, file[verdict], share(file[verdict] / whole), MEANS[verdict]] for verdict in VERDICTS]
    out = [
        *paper.wrap(title),
        *(paper.wrap(f"Left out: {left}.") if left else []),
        "",
        *paper.table(table("", ["verdict", "tasks", "share", Column("means", "words")], rows)),
    ]
    if file["reasons"]:
        out += ["", *paper.table(table("", ["disputed for", "tasks"], [[*pair] for pair in file["reasons"].items()]))]
    out += ["", *paper.wrap(_accepts(file))]
    out += _list(paper, "Disputed", [(audit, _why(audit)) for audit in audits if audit.verdict == DISPUTED])
    out += _list(paper, "To be looked at", [(audit, "; ".join(audit.notes)) for audit in audits if audit.notes])
    wrong = [(audit, f"{audit.false_accepts} of {audit.incorrect}") for audit in audits if audit.false_accepts]
    return "\n".join(out + _list(paper, "Incorrect programs that pass", wrong))


def _accepts(file: Mapping[str, Any]) -> str:
    if not file["incorrect_tried"]:
        return "No programs known to be wrong, so nothing is said of false accepts."
    tasks = plural(file["tasks_with_false_accepts"], "task")
    tried = plural(file["incorrect_tried"], "program")
    return f"False accepts: {file['false_accepts']:,} of {tried} known to be wrong pass, on {tasks}."


def _name(audit: Audit) -> str:
    title = f" ({audit.title})" if audit.title not in ("", audit.task_id) else ""
    return f"{f'{audit.where}, ' if audit.where else ''}{audit.task_id}{title}"


def _why(audit: Audit) -> str:
    said = f"{audit.reason}; {audit.why}"
    if (one := audit.failure) and one.outcome == "wrong_answer":
        said += f"; {one.test} expects {_shown(one.expected)}, the reference gives {_shown(one.got)}"
    elif one:
        said += f"; {one.test}: {one.outcome.replace('_', ' ')}"
    return said


def _shown(value: str) -> str:
    text = " ".join(value.split())
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _list(paper: Paper, head: str, items: list[tuple[Audit, str]]) -> list[str]:
    if not items:
        return []
    lines = ["", f"{head}: {plural(len(items), 'task')}"]
    for audit, said in items[:MOST]:
        lines += paper.bullet(f"{_name(audit)}: {said}")
    return lines + ([f"  and {len(items) - MOST:,} more, in audit.json"] if len(items) > MOST else [])
