"""Programs run on named tests, each once: what checks.jsonl holds, and what is added to it.

    checks = Checks(log, "audit")
    row = await checks.once(task, code, "tests", tests, grader.rules, work)     from disk, or worked out and filed

A row is filed under task, program, tests and rules; where any of them is another one, it is worked out anew. What a
command finds out beside the letters stands in further keys of its own.

Left out: what is run, and what it means (audit.py, commands/verify.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256

from commands.settings import Row
from figures.verified import program_of
from records import CHECKS, Log, dumps
from tasksets.task import Task, Test


class Checks:
    """The checks of one kind. made: how many were worked out just now."""

    def __init__(self, log: Log, kind: str) -> None:
        self.log, self.kind, self.made = log, kind, 0
        self._rows: dict[tuple[str, ...], Row] = {}
        for row in log.checks():
            if row["tests"].startswith(f"{kind}/"):
                self._rows[self._key(row)] = row

    @staticmethod
    def _key(row: Row) -> tuple[str, ...]:
        return row["task_id"], row.get("task_sha", ""), row["program"], row["tests"], row["rules"]

    async def once(
        self, task: Task, code: str, part: str, tests: Sequence[Test], rules: str, work: Callable[[], Awaitable[Row]]
    ) -> Row:
        """The row of a program on these tests. work: its letters, and whatever else is to be kept of it."""
        asked = sha256(dumps([list(test) for test in tests]).encode()).hexdigest()[:12]
        names = {"task_id": task.id, "task_sha": task.digest, "program": program_of(code)}
        row = {**names, "tests": f"{self.kind}/{part}/{asked}", "rules": rules}
        if (held := self._rows.get(self._key(row))) is None:
            made = await work()
            if (held := self._rows.get(self._key(row))) is None:  # nobody else was at it meanwhile
                held = {**row, **made}
                self.log.append(CHECKS, held)
                self._rows[self._key(row)] = held
                self.made += 1
        return held
