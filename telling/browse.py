"""The page's table of tasks: each with the best program of its base group and of every arm, as a JSON data block.

    data = browsable(results, attempts, cards)       what page.html's script lays out
    block, cut = fit(data, 4_000_000)                as text within so many bytes; cut: after how many characters

What models and data sets wrote stands in here alone, and reaches the screen through textContent.

Left out: the figures (tables.py), the page around the block (page.py), how a task looks once it is opened (page.html).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures.counted import tag_values
from figures.plan import CONTROL
from figures.results import ByTask, Results
from grading.grade import LETTERS, clip
from swarm import Attempt
from tasksets.task import Task

CUTS = (20_000, 8_000, 4_000, 2_500, 1_500, 800, 300, 0)  # characters of a program or statement, tried in this order
TAG_COLUMNS = 2


class _Best:
    """The best attempt of one arm on one task, and what the arm did there beside it."""

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        self.drawn = self.passes = 0
        self.first: int | None = None

    def see(self, a: Attempt) -> None:
        self.drawn += 1
        self.passes += a.passed
        if a.passed:
            self.first = a.round if self.first is None else min(self.first, a.round)
        key = (a.passed, a.fitness, a.hidden_passed)
        old = self.attempt
        if old is None or key > (old.passed, old.fitness, old.hidden_passed):
            self.attempt = a


def browsable(results: Results, attempts: Iterable[Attempt], cards: Sequence[Task]) -> dict[str, Any]:
    """The data block: every task with its best attempt of the base group and of each arm."""
    arms = list(results["intervals"])
    reruns = f"{CONTROL} re-runs"
    best: dict[str, dict[str, _Best]] = {}
    fitness: dict[tuple[str, str], float] = {}
    for a in attempts:
        of_task = best.setdefault(a.task_id, {})
        fitness[a.task_id, a.slot.within_task()] = a.fitness
        # Round 0 that the arms share was drawn once and belongs to each of them.
        names = arms if a.arm == "round0" and not a.rerun else [reruns if a.rerun else a.arm]
        for name in names:
            of_task.setdefault(name, _Best()).see(a)
    extra = sorted({name for of_task in best.values() for name in of_task} - {"base", *arms})
    order = ["base", *arms, *extra]
    known = {card.id: card for card in cards}
    rows = []
    labels, columns = _labels(cards)
    for task_id in [*known, *sorted(best.keys() - known.keys())]:
        card, of_task = known.get(task_id), best.get(task_id, {})
        counted = results["by_task"][task_id]
        rows.append(
            {
                "id": task_id,
                "title": (card.title or task_id) if card else task_id,
                "statement": card.statement if card else "",
                "tags": dict(card.tags) if card else {},
                "labels": labels.get(task_id, []),
                "base": counted["base"],
                "fail": counted["base"] == 0,
                "given": any(name in of_task for name in arms),
                "open": _is_open(counted),
                "best": [_told(name, of_task[name], card, fitness) for name in order if of_task.get(name)],
            }
        )
    return {
        "arms": [name for name in order if name == "base" or any(name in of_task for of_task in best.values())],
        "group": results["budget"]["G"],
        "letters": {letter: name for name, letter in LETTERS.items()},
        "tags": sorted({label for of_task in labels.values() for label in of_task}),
        "tag_columns": columns,
        "tasks": rows,
    }


def _is_open(row: ByTask) -> bool:
    """Whether the task still owes attempts: of its base group, of an arm, or of a re-run."""
    plays = [*row.get("arms", {}).values(), *row.get("reruns", [])]
    return row["base"] is None or any(not play["done"] for play in plays)


def _told(name: str, found: _Best, card: Task | None, fitness: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    """One attempt as the page tells it."""
    a = found.attempt
    assert a is not None
    failed = next((i for i, letter in enumerate(a.visible_tests) if letter != LETTERS["pass"]), None)
    first = None
    if failed is not None and a.code is not None:
        first = {"got": a.got}
        if card and failed < len(card.visible):
            test = card.visible[failed]
            first["input"] = clip(test.input)
            if card.kind != "assert":
                first["expected"] = clip(test.output, a.got_start)

    def shown(slot: str | None) -> list[Any] | None:
        return [slot, fitness.get((a.task_id, slot))] if slot else None

    return {
        "arm": name,
        "slot": a.slot.within_task(),
        "round": a.round,
        "first": found.first,
        "drawn": found.drawn,
        "passes": found.passes,
        "outcome": a.outcome,
        "fitness": a.fitness,
        "visible": a.visible_tests,
        "visible_total": a.visible_total,
        "hidden": a.hidden_tests,
        "hidden_total": a.hidden_total,
        "failed": first,
        "parent": shown(a.parent),
        "social": shown(a.social),
        "code": a.code,
        "cut": 0,
    }


def _labels(cards: Sequence[Task]) -> tuple[dict[str, list[str]], list[str]]:
    """For each task the tags that a filter offers, and the tags worth a column."""
    told = tag_values({card.id: card.tags for card in cards})
    labels: dict[str, list[str]] = {}
    for name, of_task in told.items():
        for task_id, value in of_task.items():
            labels.setdefault(task_id, []).append(f"{name}: {value}")
    return labels, [name for name, of_task in told.items() if len(set(of_task.values())) > 1][:TAG_COLUMNS]


def fit(data: dict[str, Any], size: int) -> tuple[str, int | None]:
    """The data block within `size` bytes, and after how many characters texts had to be cut (None: no text was)."""
    written, cut = "", None
    for limit in CUTS:
        for task in data["tasks"]:
            if len(task["statement"]) > limit:
                task["statement"], cut = task["statement"][:limit], limit
            for a in task["best"]:
                if a["code"] is not None and len(a["code"]) > limit:
                    a["cut"], a["code"], cut = a["cut"] or len(a["code"]), a["code"][:limit], limit
        # Escaped `<` cannot end the script element; ASCII keeps lone surrogates out of the file's encoding.
        written = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        if len(written) <= size:
            break
    return written, cut
