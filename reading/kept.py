"""The columns of a log, kept beside it so that its lines are decoded once.

    gathered = columns(log, placed, unreadable)     every attempt of attempts.jsonl, in columns

Decoding a log and counting its programs' lines is most of what a report takes. So what came of it is kept in
columns.cache, with how many bytes it covers and their SHA-256, and the next reading decodes what has come since. It is
believed for the very file that it was made of (device and inode), by the code that would make it again, and where both
digests fit: a folder that was copied, mended or unpacked is read anew. Whoever deletes it loses time and nothing else.

Left out: what the columns mean (figures/gathered.py); logs of less than 8 MB, which are read as fast without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Protocol

from commands.settings import Row
from faults import RecordsError
from figures.gathered import Gathered, Placed
from swarm import Slot

NAME = "columns.cache"
WORTH = 8_000_000  # bytes of a log that are worth a file, or another one
BLOCK = 1 << 20
HOUSE = Path(__file__).parent.parent
# Which lines are attempts, and what becomes of one in columns, is decided in these files, and by what this Python calls
# a blank.
MADE_IN = (
    "records.py",
    "reading/lines.py",
    "reading/kept.py",
    "figures/gathered.py",
    "grading/reasoning.py",
    "swarm.py",
)


class Walk(Protocol):
    def __call__(self, since: int = 0, until: float = ..., seen: Iterable[Slot] = ()) -> Iterator[Placed]: ...


def columns(log: Path, placed: Walk, unreadable: set[tuple[str, int]]) -> Gathered:
    """Of all its attempts. placed: walks its lines from one offset in bytes to another, but for slots seen before;
    unreadable: gets (file, offset) of lines that are none."""
    if not log.exists() or log.stat().st_size < WORTH:
        made = Gathered()
        made.extend(placed())
        return made
    beside = log.with_name(NAME)
    with log.open("rb") as file:
        end = _whole(file)
        made, covered, passed_over = _kept(beside, file)
        unreadable |= {(log.name, at) for at in passed_over}
        if covered < end:
            made.extend(placed(covered, end, made.slots()))
        _same(log, file)
        if end - covered >= WORTH:
            passed_over = [at for name, at in unreadable if name == log.name and at < end]
            head = {"covered": end, "sha256": _sha(file, 0, end), "unreadable": passed_over}
            _keep(beside, _maker(file) | head, made)
        if log.stat().st_size > end:  # a last line without its end, or lines that came meanwhile
            made.extend(placed(end, seen=made.slots()))
        _same(log, file)
    return made


def _same(log: Path, file: IO[bytes]) -> None:
    """RecordsError where the log was mended or moved since it was opened: its offsets are another file's."""
    if not log.exists() or not os.path.samestat(os.fstat(file.fileno()), log.stat()):
        raise another(log)


def another(log: Path) -> RecordsError:
    return RecordsError(f"{log} was mended or moved by another process while it was read: run again")


def _whole(file: IO[bytes]) -> int:
    """Where its last whole line ends."""
    at = file.seek(0, os.SEEK_END)
    while at:
        first = max(0, at - BLOCK)
        file.seek(first)
        if (found := file.read(at - first).rfind(b"\n")) >= 0:
            return first + found + 1
        at = first
    return 0


def _sha(file: IO[bytes], since: int, until: int) -> str:
    """Of these bytes."""
    sha = sha256()
    file.seek(since)
    while since < until and (block := file.read(min(BLOCK, until - since))):
        sha.update(block)
        since += len(block)
    return sha.hexdigest()


def _code() -> str:
    sha = sha256(sys.version.encode())
    for name in MADE_IN:
        sha.update((HOUSE / name).read_bytes())
    return sha.hexdigest()


MADE_BY = _code()  # as it was loaded: a run lasts days, and its files may be others by its end


def _maker(file: IO[bytes]) -> Row:
    """What kept columns have to be of, and made by."""
    there = os.fstat(file.fileno())
    return {"file": [there.st_dev, there.st_ino], "made_by": MADE_BY}


def _keep(beside: Path, head: Row, made: Gathered) -> None:
    """A line with the digest of all that follows, a line of JSON, the arrays."""
    head["words"] = {name: list(words) for name, words in made.words().items()}
    head["runs"] = list(made.runs)
    head["arrays"] = {name: len(column) for name, column in made.arrays().items()}
    line, sha = json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n", sha256()
    for part in (line, *made.arrays().values()):
        sha.update(part)
    new = beside.with_name(f".{NAME}.new")
    try:
        new.unlink(missing_ok=True)  # whatever is there: a link in a folder from elsewhere leads to somebody's file
        with new.open("xb") as file:
            file.writelines((sha.hexdigest().encode() + b"\n", line, *made.arrays().values()))
        os.replace(new, beside)
    except OSError:  # a folder that can only be read, or a full disk: it is read as before
        pass
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def _kept(beside: Path, log: IO[bytes]) -> tuple[Gathered, int, list[int]]:
    """What is kept of this log, how many bytes of it that covers, and offsets of lines in them that are no attempts;
    nothing where it is not to be believed."""
    made, none = Gathered(), (Gathered(), 0, list[int]())
    try:
        file = beside.open("rb") if beside.is_file() else None
    except OSError:
        file = None
    if file is None:
        return none
    with file:
        own, first = file.readline().strip(), file.tell()
        if _sha(file, first, os.fstat(file.fileno()).st_size).encode() != own:
            return none
        file.seek(first)
        try:
            head = json.loads(file.readline())
        except (ValueError, RecursionError):
            return none
        if not isinstance(head, dict) or {**head, **_maker(log)} != head:
            return none
        if _sha(log, 0, head["covered"]) != head["sha256"]:
            return none
        for name, column in made.arrays().items():
            column.fromfile(file, head["arrays"][name])
        for name, words in made.words().items():
            words.update((word, n) for n, word in enumerate(head["words"][name]))
        made.runs.update(((arm, rerun), n) for n, (arm, rerun) in enumerate(head["runs"]))
        return made, head["covered"], head["unreadable"]
