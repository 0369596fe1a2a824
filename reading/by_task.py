"""Attempts task by task, of however many: what a page lays out of a few tasks, after it has counted all.

    attempts = folder.by_task()
    for attempt in attempts: ...      all of them, once
    attempts.of("1500_A")             those of a task, from then on

Of the file nothing is held but where each attempt begins. Left out: an order within a task (telling/page.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from faults import RecordsError
from reading.lines import parse_attempt
from swarm import Attempt


class ByTask(Protocol):
    def __iter__(self) -> Iterator[Attempt]: ...

    def of(self, task_id: str) -> list[Attempt]: ...


class OnDisk:
    """Those of a log. placed: (offset and length in bytes, attempt)."""

    def __init__(self, path: Path, placed: Iterable[tuple[int, int, Attempt]]) -> None:
        self._path, self._placed = path, placed
        self._where: dict[str, array[int]] = {}

    def __iter__(self) -> Iterator[Attempt]:
        for at, length, attempt in self._placed:
            self._where.setdefault(attempt.task_id, array("q")).extend((at, length))
            yield attempt

    def of(self, task_id: str) -> list[Attempt]:
        if task_id not in self._where:
            return []
        where = self._where[task_id]
        try:
            with self._path.open("rb", buffering=0) as file:
                found = []
                for at, length in zip(where[::2], where[1::2], strict=True):
                    file.seek(at)
                    found.append(parse_attempt(file.read(length)))
        except ValueError:
            found = []
        if {attempt.task_id for attempt in found} != {task_id}:
            raise RecordsError(f"{self._path} was mended by another process while it was read: run again")
        return found


class InMemory:
    """Those of any list."""

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self._told: dict[str, list[Attempt]] = {}
        for attempt in attempts:
            self._told.setdefault(attempt.task_id, []).append(attempt)

    def __iter__(self) -> Iterator[Attempt]:
        return (attempt for of_task in self._told.values() for attempt in of_task)

    def of(self, task_id: str) -> list[Attempt]:
        return self._told.get(task_id, [])
