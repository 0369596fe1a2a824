"""The run folder: what is on disk, how it is appended to, and how a run finds its way back into it.

    config.json      the flags in their three classes, versions, data set, model, tier, start and end
    plan.json        what was going to be concluded, and how, before the first sample; amendments appended
    tasks.jsonl      the cards of the tasks asked: all that a bare prompt is made of, no hidden test
    attempts.jsonl   what was paid: one attempt a line, appended as soon as it is graded, never rewritten
    checks.jsonl     what was computed: a saved program run on named tests, a letter a test
    events.jsonl     requests sent, answered, retried, refused; faults, budgets, starts and ends; what config.json and
                     plan.json were to hold, from which they are written again where a crash has torn or lost them
    owed.jsonl       replies paid and not yet graded: used first at the next start. A journal: rows of slots that are
                     filed by now are done with, and leave at the end of a start
    results.json, rescued.jsonl, report.html, report.txt, calibration.json
                     made from the files above, whole or not at all; so is columns.cache, to read a large log faster

The contract. A line ends at `\\n` and nowhere else. A line is appended in one piece or taken back. One process writes
(`flock`). A torn last line and a line of garbage are named and moved aside, and what they held is owed; no complete
attempt is ever dropped, and none is read twice. The key of an attempt is its slot, never its place in the
file. Settings are of three classes: another *identity* needs another folder, the *plan* may grow, the rest is free.

Telling (measure, report, export) needs `Folder`; doing needs `Log`, which holds the lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

from asking.events import Event
from commands.settings import DEFAULTS, Config, Row, flag, said, shrinks
from faults import DiskFault, RecordsError
from reading.lines import loads, parse_attempt
from reading.stored import Stored, stored
from swarm import Attempt, Slot
from tasksets.task import Task, from_card

ATTEMPTS, CARDS, CHECKS, EVENTS, OWED = (f"{name}.jsonl" for name in ("attempts", "tasks", "checks", "events", "owed"))
AUDIT = "audit.json"
CONFIG, PLAN = "config.json", "plan.json"  # their content is among the events as well


def dumps(row: object, **how: Any) -> str:
    """JSON in plain ASCII, so that a lone surrogate or U+2028 in a reply survives; NaN raises ValueError."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, **how)


_HOLDS: dict[str, tuple[tuple[str, type], ...]] = {  # without which a line of a file is garbage
    CARDS: (("id", str), ("digest", str)),
    CHECKS: (("task_id", str), ("program", str), ("tests", str), ("rules", str), ("letters", str)),
    EVENTS: (("event", str),),
    OWED: (("slot", list), ("reply", dict)),
}


def parse_row(name: str, line: bytes) -> Row:
    """A line of any other file. ValueError where it is none of that file."""
    row = loads(line)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    wrong = [key for key, kind in _HOLDS[name] if not isinstance(row.get(key), kind)]
    if wrong:
        raise ValueError(f"its field {wrong[0]} is missing or of another type")
    return row


# ── telling: everything that reads a folder ──────────────────────────────────────────────────────────────────────


_ANEW = "put a copy of it back, or move the folder aside with --fresh of the command that made it, and begin anew"


def _a_file(path: Path) -> str:
    return f"{path} is a file, not a folder: name the folder of a run with --out"


def _unwritable(path: Path, why: OSError) -> str:
    mend = "make room" if why.errno in (0, errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "see who may write there"
    return f"{path} cannot be written ({why.strerror}): {mend}, then run again"


class Folder:
    """A run folder, read only: a large log's columns.cache is all that a reading may leave there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.unreadable: set[tuple[str, int]] = set()  # (file, offset) of lines that were passed over
        self.restored: dict[str, Row] = {}  # files that were torn or gone: what they held
        self.logs = [self.path / ATTEMPTS]

    def read(self, name: str) -> Row | None:
        """A JSON file of the folder; None where there is none. RecordsError where it cannot be read."""
        path = self.path / name
        try:
            return loads(path.read_bytes())
        except FileNotFoundError:
            torn = None
        except ValueError as why:
            torn = why
        except NotADirectoryError:
            raise RecordsError(_a_file(self.path)) from None
        except OSError as why:
            raise RecordsError(f"{path} cannot be read ({why.strerror}): see who may read it") from None
        for row in self.rows(EVENTS) if name in (CONFIG, PLAN) else ():
            if row["event"] == "written" and row["name"] == name:
                self.restored[name] = row["content"]
        if torn and name not in self.restored:
            mend = _ANEW if name == CONFIG else "move it aside, then run again"
            raise RecordsError(f"{path} cannot be read ({torn}): {mend}")
        return self.restored.get(name)

    @property
    def config(self) -> Config:
        config = self.read(CONFIG)
        if config is None:
            if (self.path / ATTEMPTS).exists():
                raise RecordsError(f"{self.path} has lost its config.json: {_ANEW}")
            raise RecordsError(f"{self.path} holds no run: make one first, or name its folder with --out")
        if not isinstance(config, dict) or not all(isinstance(config.get(key), dict) for key in ("identity", "plan")):
            raise RecordsError(f"{self.path / CONFIG} is not a run's: use another --out")
        return cast(Config, config)

    def config_of(self, command: str) -> Config:
        """config.json of a folder that this command made. RecordsError where another one did."""
        config = self.config
        made_by = config.get("command", "run.py" if "dry_run" in config else "another command")
        if made_by != command:
            instead = f"name another folder, or use {made_by} for this one"
            raise RecordsError(f"{self.path} was made by {made_by}, not by {command}: {instead}")
        return config

    @property
    def is_run(self) -> bool:
        return any((self.path / name).exists() for name in (CONFIG, ATTEMPTS, EVENTS))

    @property
    def is_settled(self) -> bool:
        """Whether the settings of a run are known, or ought to be."""
        return (self.path / ATTEMPTS).exists() or self.read(CONFIG) is not None

    @property
    def plan(self) -> Row | None:
        return self.read(PLAN)

    def lines(self, name: str, since: int = 0, until: float = inf) -> Iterator[tuple[int, bytes]]:
        """(offset in bytes, line) of every line of a file that is not blank, from one offset on and before another;
        nothing where there is no file."""
        path, at = self.path / name, since
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(since)
            for line in file:  # a binary file ends its lines at \n alone
                if at >= until:
                    return
                if line.strip():
                    yield at, line
                at += len(line)

    def rows(self, name: str) -> Iterator[Row]:
        for at, line in self.lines(name):
            try:
                yield parse_row(name, line)
            except ValueError:  # moved aside when a run opens the folder to write
                self.unreadable.add((name, at))

    def placed(
        self, since: int = 0, until: float = inf, seen: Iterable[Slot] = ()
    ) -> Iterator[tuple[int, int, Attempt]]:
        """(offset and length in bytes, attempt) of every attempt once, in the order of the file. seen: slots before."""
        seen = set(seen)
        for at, line in self.lines(ATTEMPTS, since, until):
            try:
                attempt = parse_attempt(line)
            except ValueError:
                self.unreadable.add((ATTEMPTS, at))
                continue
            if attempt.slot not in seen:
                seen.add(attempt.slot)
                yield at, len(line), attempt

    def attempts(self) -> Iterator[Attempt]:
        return (attempt for _, _, attempt in self.placed())

    def stored(self, config: Config) -> Stored:
        """The attempts as columns, under the grades that config.json names, and one by one."""
        return stored(self.logs, self.placed, self.unreadable, self.checks(), config)

    def cards(self) -> Iterator[Task]:
        seen: set[str] = set()
        for row in self.rows(CARDS):
            if row["id"] not in seen and "statement" in row:
                seen.add(row["id"])
                yield from_card(row)

    def checks(self) -> Iterator[Row]:
        return self.rows(CHECKS)

    def events(self) -> Iterator[Event]:
        return cast("Iterator[Event]", self.rows(EVENTS))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes here meanwhile. RecordsError where somebody does, or where files are that are no run's."""
        try:
            import fcntl
        except ImportError:
            raise RecordsError("sampling needs Linux or macOS: use a container or WSL") from None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_RDONLY)
        except FileExistsError:
            raise RecordsError(_a_file(self.path)) from None
        except OSError as why:
            raise RecordsError(f"{self.path} cannot be opened ({why.strerror}): use another --out") from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RecordsError(f"another process is writing to {self.path}: wait for it, or use --out") from None
            if not self.path.exists() or not os.path.samestat(os.fstat(lock), os.stat(self.path)):
                raise RecordsError(f"{self.path} was moved aside by another process: run again")
            if not self.is_run and any(path.is_file() for path in self.path.iterdir()):
                raise RecordsError(f"{self.path} holds files, and no run: use another --out")
            yield
        finally:
            os.close(lock)

    def write(self, name: str, text: str) -> None:
        """Put a whole file in place, or leave the old one."""
        path = self.path / name
        new = path.with_name(f".{name}.new")
        try:
            with new.open("wb") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
                _to_disk(file)
            os.replace(new, path)
        except OSError as why:
            new.unlink(missing_ok=True)
            raise DiskFault(_unwritable(path, why)) from None

    def write_json(self, name: str, value: object) -> None:
        self.write(name, dumps(value, indent=1) + "\n")


def _to_disk(file: IO[bytes]) -> None:
    """Or else a power cut leaves an empty file under the name of a whole one."""
    file.flush()
    os.fsync(file.fileno())


# ── doing: the one process that writes ───────────────────────────────────────────────────────────────────────────


class Log(Folder):
    """A run folder opened for writing: locked, mended, and indexed by slot. A context manager.

    Replies stay on disk; what is held of an attempt is where its line begins. `instead` ends the line that refuses a
    folder made under other settings: what to do about it.
    """

    def __init__(
        self, path: str | os.PathLike[str], instead: str = "use another --out, or --fresh to move it aside"
    ) -> None:
        super().__init__(path)
        self.instead = instead
        self.mended: list[str] = []  # what was moved aside on opening, in words
        self._where: dict[Slot, tuple[int, int]] = {}  # (offset, length) in bytes
        self._end = 0
        self._files: dict[str, int] = {}
        self._cards: dict[str, str] = {}

    def __enter__(self) -> Log:
        with contextlib.ExitStack() as held:
            held.enter_context(self.locked())
            for name in (ATTEMPTS, CARDS, CHECKS, EVENTS, OWED):
                if (self.path / name).exists():
                    self._mend(name, self._index if name == ATTEMPTS else partial(parse_row, name))
            for name in (CONFIG, PLAN):
                with contextlib.suppress(RecordsError):  # raised for whoever needs it
                    self.read(name)
            for name, content in self.restored.items():
                self.write_json(name, content)
                self.mended.append(f"{name} was torn or gone: written again as it was, from {EVENTS}")
            if not self.begun and (self.path / CARDS).exists():  # of a start that asked nothing: no run's tasks
                self.rewrite(CARDS, [])
            self._cards = {task.id: task.digest for task in self.cards()}
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            os.fsync(file)
            os.close(file)
        self._files.clear()
        self._held.close()

    def _index(self, line: bytes) -> None:
        """Note where the next line of attempts.jsonl lies, once those before it are whole."""
        self._where.setdefault(parse_attempt(line).slot, (self._end, len(line)))
        self._end += len(line)

    def _mend(self, name: str, see: Callable[[bytes], object]) -> None:
        """Leave only whole lines in a file: finish a last line that lacks its end, move what is torn or garbage.

        see: gets every line that stays, with its end, and raises ValueError at one that cannot."""
        path, bad, whole = self.path / name, set(), True
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                whole = line.endswith(b"\n")
                try:
                    see(line if whole else line + b"\n")
                except ValueError as why:
                    bad.add(number)
                    if line.strip():
                        what = f"not readable ({why})" if whole else "torn"
                        self.mended.append(f"{name} line {number} is {what}: moved to {name}.aside")
        if not bad and whole:
            return
        new = path.with_name(f".{name}.new")
        with (
            path.open("rb") as old,
            new.open("wb") as mended,
            open(path.with_name(f"{name}.aside") if bad else os.devnull, "ab") as aside,
        ):
            for number, line in enumerate(old, 1):
                (aside if number in bad else mended).write(line if line.endswith(b"\n") else line + b"\n")
            _to_disk(mended)
        os.replace(new, path)

    def append(self, name: str, row: Row) -> tuple[int, int]:
        """Add one line, whole or not at all; its offset and length in bytes. DiskFault where it cannot be written."""
        line = dumps(row).encode() + b"\n"
        if name not in self._files:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
            self._files[name] = os.open(self.path / name, flags, 0o644)
        file = self._files[name]
        at = os.fstat(file).st_size
        try:
            if os.write(file, line) != len(line):  # a disk that fills takes part of a line
                raise OSError(0, "the disk is full")
        except OSError as why:
            os.ftruncate(file, at)
            raise DiskFault(_unwritable(self.path / name, why)) from None
        return at, len(line)

    def keep(self, name: str, content: Row) -> None:
        """Write config.json or plan.json, so that it can be written again."""
        self.append(EVENTS, {"event": "written", "name": name, "content": content})
        self.write_json(name, content)

    def rewrite(self, name: str, rows: list[Row]) -> None:
        """Replace the lines of a file, all at once."""
        if name in self._files:
            os.close(self._files.pop(name))
        self.write(name, "".join(dumps(row) + "\n" for row in rows))

    def add(self, attempt: Attempt) -> None:
        """File an attempt."""
        self._where[attempt.slot] = self.append(ATTEMPTS, vars(attempt))

    def get(self, slot: Slot) -> Attempt | None:
        """The attempt filed under a slot, read back from disk."""
        if slot not in self._where:
            return None
        at, length = self._where[slot]
        if ATTEMPTS not in self._files:
            self._files[ATTEMPTS] = os.open(self.path / ATTEMPTS, os.O_RDWR | os.O_APPEND)
        return parse_attempt(os.pread(self._files[ATTEMPTS], length, at))

    def __len__(self) -> int:
        return len(self._where)

    def slots(self) -> Iterable[Slot]:
        """Those that have an attempt."""
        return self._where

    @property
    def begun(self) -> bool:
        """Whether anything was paid for under the folder's settings: attempts, or replies that wait for a grade."""
        return bool(self._where or self.owed())

    def add_card(self, card: Row) -> None:
        """File a task's card once. RecordsError where the folder knows the task with other words or tests."""
        if card["id"] not in self._cards:
            self.append(CARDS, card)
            self._cards[card["id"]] = card["digest"]
        elif self._cards[card["id"]] != card["digest"]:
            raise RecordsError(
                f"task {card['id']} has changed since {self.path} was begun (its statement or its tests): "
                f"use another --out for the new one"
            )

    def owed(self) -> dict[Slot, Row]:
        """Replies that were paid and not yet graded, by slot."""
        rows = ((Slot(*row["slot"]), row) for row in self.rows(OWED))
        return {slot: row for slot, row in rows if slot not in self._where}

    def settle(self, identity: Row, plan: Row) -> list[str]:
        """Hold the settings against the folder's: the plan settings that changed, as words.

        RecordsError where the identity differs or the plan shrinks.
        """
        if not self.begun:
            return []
        config = self.config
        old = config["identity"]
        other = [key for key in {**old, **identity} if old.get(key, DEFAULTS.get(key)) != identity.get(key)]
        if other:
            shown = "; ".join(f"{flag(key)} {old.get(key)} -> {identity.get(key)}" for key in other)
            raise RecordsError(f"{self.path} holds another experiment ({shown}): {self.instead}")
        changed = [(key, config["plan"].get(key, DEFAULTS.get(key)), value) for key, value in plan.items()]
        changed = [(key, was, now) for key, was, now in changed if was != now]
        for key, was, now in changed:
            if shrinks(key, was, now):
                raise RecordsError(
                    f"the plan of {self.path} may grow, not shrink ({said(key, was, now)}): "
                    f"give {flag(key)} as it was, or use another --out"
                )
        return [said(key, was, now) for key, was, now in changed]
