"""The attempts of a run: columns of all, and each read back where it is asked for.

    stored = folder.stored(config)
    stored.gathered             columns under the grades that config.json names
    stored.of("1500_A")         the attempts of a task, as they stand in the log
    stored.at(rows)             those of these rows of the columns

A page of a million lays out a few thousand; a run's rows are those few that passed.

Left out: an order within a task (telling/page.py), grading what was read back (figures/regraded.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from commands.settings import Config, Row
from figures.gathered import Gathered, Ints
from figures.regraded import gathered
from reading.kept import Walk, another, columns
from reading.lines import parse_attempt
from swarm import Attempt, Slot

PART = 1 << 48  # of several files an offset says which one, above its place in it


class Stored:
    """Those of a log, or of several that are one. RecordsError where one was mended or moved since it was read."""

    def __init__(self, gathered: Gathered, logs: Sequence[Path]) -> None:
        self.gathered, self._logs = gathered, logs
        self._tasks, self._runs = list(gathered.tasks), list(gathered.runs)

    @cached_property
    def _rows(self) -> dict[str, Ints]:
        task = self.gathered.whole("task")
        order = np.argsort(task, kind="stable")
        bounds = np.searchsorted(task[order], np.arange(1, len(self._tasks)))
        return dict(zip(self._tasks, np.split(order, bounds), strict=True)) if self._tasks else {}

    def of(self, task_id: str) -> list[Attempt]:
        return list(self.at(self._rows.get(task_id, ())))

    def at(self, rows: Iterable[int]) -> Iterator[Attempt]:
        ints = self.gathered.ints
        task, run, nth, particle, at, length = (
            ints[name] for name in ("task", "run", "round", "particle", "at", "length")
        )
        with contextlib.ExitStack() as held:
            file, here = None, -1  # one at a time: there may be more parts than a process may open files
            for row in rows:
                part, offset = divmod(at[row], PART)
                slot = Slot(self._tasks[task[row]], *self._runs[run[row]], nth[row], particle[row])
                try:
                    if file is None or part != here:
                        held.close()
                        file, here = held.enter_context(self._logs[part].open("rb", buffering=0)), part
                    file.seek(offset)
                    attempt = parse_attempt(file.read(length[row]))
                except (ValueError, FileNotFoundError):
                    attempt = None
                if attempt is None or attempt.slot != slot:
                    raise another(self._logs[part])
                yield attempt


def stored(
    logs: Sequence[Path], placed: Walk, unreadable: set[tuple[str, int]], checks: Iterable[Row], config: Config
) -> Stored:
    """logs: of one run. placed, unreadable: as in reading/kept.py."""
    is_own = (config.get("grades") or "attempts") == "attempts"
    if is_own and len(logs) == 1:
        return Stored(columns(logs[0], placed, unreadable), logs)
    return Stored(gathered(placed(), checks, config), logs)


class InMemory:
    """Those of any list."""

    def __init__(self, attempts: Iterable[Attempt], checks: Iterable[Row], config: Config) -> None:
        told = list(attempts)
        self.gathered = gathered(((0, 0, attempt) for attempt in told), checks, config)
        self._told: dict[str, list[Attempt]] = {}
        for attempt in told:
            self._told.setdefault(attempt.task_id, []).append(attempt)

    def of(self, task_id: str) -> list[Attempt]:
        return self._told.get(task_id, [])
