"""The audit that a run goes by: found, held against the run's tasks, and kept in its folder.

    audited = Audited.found(args.audit, args.out, args.tasks)      --audit FILE, or the folder's, or beside the tasks
    audited.of(task)                                               passable, disputed, unknown, unaudited

A verdict counts for the very task that was audited: of another statement or other tests under the same id nothing is
known. Left out: making an audit (audit.py), what it means for the figures (figures/disputed.py).
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from commands.settings import Row
from faults import BadInput
from figures.audited import PASSABLE, UNAUDITED, VERDICTS
from records import AUDIT, Folder
from tasksets.task import Task


class Audited:
    """What audit.json says, by task; without a file every task is unaudited."""

    def __init__(self, file: Row | None, tasks: str, out: Path) -> None:
        self.file, self._make = file, f"python audit.py --tasks {shlex.quote(tasks)} --out {shlex.quote(str(out))}"
        rows = file["by_task"] if file else {}
        self._verdicts = {(name, row["digest"]): row["verdict"] for name, row in rows.items()}

    @classmethod
    def found(cls, given: Path | None, out: Path, tasks: str) -> Audited:
        """given: --audit. BadInput where that is no audit."""
        beside = Path(tasks).parent / AUDIT if Path(tasks).suffix in (".jsonl", ".parquet") else out / AUDIT
        file = None
        for path in (given,) if given else (out / AUDIT, beside):
            if path.is_file() and file is None:
                file = Folder(path.parent).read(path.name)
                if not isinstance(file, dict) or not isinstance(file.get("by_task"), dict):
                    raise BadInput(f"{path} is no audit: name the audit.json that audit.py wrote")
            elif given:
                raise BadInput(f"there is no file {given}: name the audit.json that audit.py wrote")
        return cls(file, tasks, out)

    def of(self, task: Task) -> str:
        return self._verdicts.get((task.id, task.digest), UNAUDITED)

    def gives(self, task: Task, only_passable: bool) -> bool:
        """Whether the arms are given a task of the band."""
        return not only_passable or self.of(task) == PASSABLE

    def counting(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The same tasks, counted by verdict on the way."""
        self._counted = Counter[str]()
        for task in tasks:
            self._counted[self.of(task)] += 1
            yield task

    def counts(self, only_passable: bool) -> dict[str, int] | None:
        """The tasks walked over by verdict; None without an audit. BadInput where --only-passable leaves no task."""
        verdicts = self._counted
        if only_passable and not verdicts[PASSABLE]:
            why = "the audit finds none of these tasks passable" if self.file else "there is no audit of these tasks"
            raise BadInput(f"--only-passable: {why}: {self._make}, or leave --only-passable out")
        return {name: verdicts[name] for name in (*VERDICTS, UNAUDITED)} if self.file else None

    def keep(self, folder: Folder) -> Row | None:
        """Put it into the run's folder, where its report finds it."""
        if self.file and folder.read(AUDIT) != self.file:
            folder.write_json(AUDIT, self.file)
        return self.file
