"""The page's tasks: an index with what every arm did on each, and the attempts of each as a chunk beside it.

    index = browsable(results, attempts, cards)      what page.html's script lays out, the most telling task first
    chunks, cut = fit(index, pack, 4_000_000)        a chunk a task within so many bytes; cut: what had to give way

What models and data sets wrote stands in here alone, and reaches the screen through textContent.

Left out: what is in a chunk (packed.py), the figures (tables.py), the page around it (page.py), how a task looks once
it is opened (page.js).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from figures.counted import tag_values
from figures.gathered import Gist
from figures.plan import CONTROL
from figures.results import ByTask, Results
from grading.grade import LETTERS
from swarm import Attempt
from tasksets.task import Task

CUTS = (20_000, 6_000, 2_500)  # characters that a text may have, tried in this order
STATEMENT = 4_000  # characters of a statement that are searched,
STATEMENTS = 4_000_000  # and of all together: of many tasks, less of each
TAG_COLUMNS = 2


def in_turn(a: Attempt | Gist) -> tuple[bool, bool, str, int, int, int]:
    """The order of a task's attempts: round by round, so that a program follows its parent."""
    return a.arm != "base", a.arm != "round0", a.arm, a.rerun, a.round, a.particle


class _Play:
    """What one arm did on one task. Nothing is kept of an attempt but how it ended: there may be a million."""

    def __init__(self) -> None:
        self.drawn = self.passes = 0
        self.first: int | None = None  # round of the first pass
        self.best: tuple[bool, float, float] | None = None
        self.turn = (False, False, "", 0, 0, 0)  # of the best: of equals the first
        self.outcome = ""

    def see(self, a: Gist) -> None:
        self.drawn += 1
        self.passes += a.passed
        if a.passed:
            self.first = a.round if self.first is None else min(self.first, a.round)
        worth, turn = (a.passed, a.fitness, a.hidden_passed), in_turn(a)
        if self.best is None or worth > self.best or (worth == self.best and turn < self.turn):
            self.best, self.turn, self.outcome = worth, turn, a.outcome

    def told(self) -> dict[str, Any]:
        assert self.best is not None
        return {
            "drawn": self.drawn,
            "passes": self.passes,
            "first": self.first,
            "fitness": self.best[1],
            "outcome": self.outcome,
        }


def browsable(results: Results, attempts: Iterable[Gist], cards: Sequence[Task]) -> dict[str, Any]:
    """The index: every task with what its base group and each arm did."""
    arms = list(results["intervals"])
    reruns = f"{CONTROL} re-runs"
    plays: dict[str, dict[str, _Play]] = {}
    for a in attempts:
        of_task = plays.setdefault(a.task_id, {})
        # Round 0 that the arms share was drawn once and belongs to each of them.
        names = arms if a.arm == "round0" and not a.rerun else [reruns if a.rerun else a.arm]
        for name in names:
            of_task.setdefault(name, _Play()).see(a)
    extra = sorted({name for of_task in plays.values() for name in of_task} - {"base", *arms})
    order = ["base", *arms, *extra]
    known = {card.id: card for card in cards}
    audit = results.get("audit")
    disputed = audit["disputed"] if audit else {}
    rows = []
    labels, columns = _labels(cards)
    for task_id in [*known, *sorted(plays.keys() - known.keys())]:
        card, of_task = known.get(task_id), plays.get(task_id, {})
        counted = results["by_task"][task_id]
        rows.append(
            {
                "id": task_id,
                "title": (card.title or task_id) if card else task_id,
                "tags": dict(card.tags) if card else {},
                "labels": labels.get(task_id, []),
                "base": counted["base"],
                "fail": counted["base"] == 0,
                "given": any(name in of_task for name in arms),
                "open": _is_open(counted),
                "disputed": disputed.get(task_id),
                "arms": {name: of_task[name].told() for name in order if name in of_task},
            }
        )
    rows.sort(key=lambda row: _telling(row, arms))
    return {
        "arms": [name for name in order if name == "base" or any(name in of_task for of_task in plays.values())],
        "compared": [name for name in arms if any(name in of_task for of_task in plays.values())],
        "control": CONTROL,
        "group": results["budget"]["G"],
        "letters": {letter: name for name, letter in LETTERS.items()},
        "tags": sorted({label for of_task in labels.values() for label in of_task}),
        "tag_columns": columns,
        "tasks": rows,
    }


def statements(index: Mapping[str, Any], cards: Mapping[str, Task]) -> list[str]:
    """What the words of a filter are looked for in, in the order of the index."""
    known = [cards.get(task["id"]) for task in index["tasks"]]
    most = min(STATEMENT, STATEMENTS // max(len(known), 1))
    return [card.statement[:most] if card else "" for card in known]


def _telling(row: Mapping[str, Any], arms: Sequence[str]) -> tuple[float, ...]:
    """What a reader wants to see first: a task that few arms rescued, then one that all did, then the near ones."""
    played = [play for name, play in row["arms"].items() if name in arms]
    rescued = sum(play["passes"] > 0 for play in played)
    nearest = max((play["fitness"] for play in played), default=0.0)
    if rescued and rescued < len(played):
        return 0, rescued, -sum(play["first"] or 0 for play in played)
    return 1 if rescued else 2 if row["given"] else 3, -nearest, 0


def _is_open(row: ByTask) -> bool:
    """Whether the task still owes attempts: of its base group, of an arm, or of a re-run."""
    plays = [*row.get("arms", {}).values(), *row.get("reruns", [])]
    return row["base"] is None or any(not play["done"] for play in plays)


def _labels(cards: Sequence[Task]) -> tuple[dict[str, list[str]], list[str]]:
    """For each task the tags that a filter offers, and the tags worth a column."""
    told = tag_values({card.id: card.tags for card in cards})
    labels: dict[str, list[str]] = {}
    for name, of_task in told.items():
        for task_id, value in of_task.items():
            labels.setdefault(task_id, []).append(f"{name}: {value}")
    return labels, [name for name, of_task in told.items() if len(set(of_task.values())) > 1][:TAG_COLUMNS]


def written(value: object) -> str:
    """JSON that cannot end the script element it stands in; ASCII, since a lone surrogate has no other form."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def fit(
    ids: Sequence[str],
    pack: Callable[[str, int], str],
    size: int,
    texts: str = "Programs and prompts",
    others: str = "python run.py --show prints those of the others",
) -> tuple[dict[str, str], str]:
    """A chunk for each task within `size` bytes, and what had to give way, in words.

    pack: makes the chunk of a task with its texts cut after so many characters. Where the shortest cut is too long as
    well, the tasks at the end of `ids` have none. texts: what is cut; others: where the rest is found.
    """
    chunks: dict[str, str] = {}
    for cut in CUTS:
        chunks, left = {}, size - 2  # its braces
        for task_id in ids:
            chunk = pack(task_id, cut)
            left -= len(chunk) + len(written(task_id)) + 4
            if left < 0:
                break
            chunks[task_id] = chunk
        else:
            said = "" if cut == CUTS[0] else f"{texts} are cut after {cut:,} characters, to keep the page small."
            return chunks, said
    return chunks, (
        f"The attempts of the first {len(chunks):,} tasks are in the page, cut after {CUTS[-1]:,} characters, to keep "
        f"it small; {others}."
    )
