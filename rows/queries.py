"""Passing queries as training rows: of a folder of sql_calibrate.py, in the columns that programs have.

    passing(config, cards, attempts)    passing.jsonl, as text: a line for each distinct query that matches
    read(folder)                        a folder as rows are made of it, whichever command made it

Every sample of a question saw the same prompt, which is the row's: on-policy, all of them. A match is the gold query's
rows on one database, which is not a proof.

Left out: the columns (rows/columns.py), what a match is (grading/sql.py), rows with tests: a reward for queries would
need the databases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Self

from arms.question import SYSTEM, asked
from commands.settings import Config
from faults import RecordsError
from records import Folder, dumps
from rows.columns import Passing
from rows.found import Program, Run, distinct, rescue
from swarm import PLAIN, Attempt, Prompt, Style
from tasksets.task import Task

COMMAND = "sql_calibrate.py"


class Queries(Run):
    """A folder of sql_calibrate.py as rows are made of it."""

    language = "sql"

    @classmethod
    def read(cls, folder: Folder) -> Self:
        config, cards = folder.config_of(COMMAND), {task.id: task for task in folder.cards()}
        made = cls.of(config, cards, folder.attempts())
        made.folder = folder
        return made

    @classmethod
    def of(cls, config: Config, cards: Mapping[str, Task], attempts: Iterable[Attempt]) -> Self:
        counted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        ours = []
        for attempt in attempts:
            if attempt.particle < config["plan"]["base_samples"] and attempt.outcome != "refused":
                counted[attempt.task_id][0] += attempt.passed
                counted[attempt.task_id][1] += 1
                if attempt.passed:
                    ours.append(attempt)
        by_task = {task_id: {"passes": passes, "samples": samples} for task_id, (passes, samples) in counted.items()}
        return cls(config, dict(cards), ours, {"by_task": by_task}, {})

    @property
    def style(self) -> Style:
        return Style(SYSTEM, PLAIN.no_comments)

    def prompt(self, task: Task) -> Prompt:
        return asked(task)

    def programs(self, also: Iterable[str] = (), apart: bool = False) -> list[Program]:
        """The queries that match, by question and sample. There is nothing beside them, and nothing is kept apart."""
        ours = sorted(self.passing, key=lambda attempt: attempt.slot)
        return [] if apart else [Program(self, attempt) for attempt in ours]


def passing(config: Config, cards: Iterable[Task], attempts: Iterable[Attempt]) -> str:
    """passing.jsonl: a line for each distinct query that matches, by question and sample."""
    run = Queries.of(config, {task.id: task for task in cards}, attempts)
    rows = list[Passing]()
    for program in distinct(run.programs()):
        counted = run.results["by_task"][program.task.id]
        rows.append({**rescue(program), "passes": counted["passes"], "samples": counted["samples"]})
    return "".join(dumps(row) + "\n" for row in rows)


def read(folder: Folder) -> Run:
    """A folder of either command. RecordsError where it is none of them."""
    return Queries.read(folder) if folder.config.get("command") == COMMAND else Run.read(folder)


def refuse_tests(runs: Iterable[Run], name: str) -> None:
    """RecordsError where a format of a row a task is asked of queries."""
    if any(isinstance(run, Queries) for run in runs):
        raise RecordsError(
            f"a folder of {COMMAND} has no rows of {name}: give a format of a row a program, trl for one"
        )
