"""run.py --watch: a run folder followed from a second terminal, without disturbing the run.

    code = watching(folder)             until the run ends: its exit code, or 137 where it was killed
    for look in follow(folder): ...     the same for whoever shows nothing (commands/track.py)

It takes no lock and writes nothing into the folder, and of a file that grows it reads what is new. Who writes there is
read from /proc/locks, where there is one; elsewhere, and of a run on another machine, a folder in which nothing was
written for a minute and a half counts as left: a run writes down what it has counted once a minute. A folder that is
not there yet is waited for. On a terminal the text is drawn anew every second, elsewhere there is a line a minute.

Left out: the figures (figures/underway.py), the words (telling/underway.py), starting or stopping a run.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from commands import interrupt, pulse
from commands.console import busy, note, point_at, say, wants_colour
from commands.sampling import TOLL, Watch
from commands.settings import Config, Row
from faults import DONE, RecordsError
from figures.numbers import plural
from figures.underway import Seen, Underway, underway
from records import ATTEMPTS, AUDIT, CARDS, CHECKS, CONFIG, EVENTS, Folder, parse_attempt, parse_row
from telling.text import Paper
from telling.underway import Over, Owner, State, lines, phase, short

EVERY = 1.0  # seconds between two looks
SHARE = 0.1  # of the time that figures may take: of many attempts they are made more rarely
PATIENCE = 1.5 * TOLL  # seconds without a line, after which a folder whose owner cannot be seen counts as left
SETTLES = 2.0  # seconds after the end of a start in which another step may begin
AFTER = 20.0  # seconds after the end of a run in which its report may come
KILLED = 137  # as a shell says it of what was killed
LOCKS = Path("/proc/locks")
REPORT = "results.json"


class Tail:
    """The whole lines of a file that is appended to, each once. A last line without its end is left for later."""

    def __init__(self, path: Path) -> None:
        self.path, self.at = path, 0
        self._file: tuple[int, int] | None = None  # device and inode

    def is_another(self) -> bool:
        """Whether the file under this name is not the one that was read: moved aside, replaced, or cut."""
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return self._file is not None
        return self._file not in (None, (there.st_dev, there.st_ino)) or there.st_size < self.at

    def lines(self) -> Iterator[bytes]:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            there = os.fstat(file.fileno())
            self._file = there.st_dev, there.st_ino
            file.seek(self.at)
            for line in file:  # a binary file ends its lines at \n alone
                if not line.endswith(b"\n"):
                    return
                self.at += len(line)
                if line.strip():
                    yield line


class Followed:
    """A run folder, as far as it was read."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._begin()

    def _begin(self) -> None:
        self.seen = Seen()
        self.unreadable = 0  # lines that were passed over
        self._tails = {name: Tail(self.folder.path / name) for name in (EVENTS, ATTEMPTS, CARDS, CHECKS)}
        self._written: tuple[int, int] | None = None  # of config.json: when, and its inode

    def look(self) -> bool:
        """Read what is new: whether anything is. All of it again where the folder or a file of it is another one."""
        if any(tail.is_another() for tail in self._tails.values()):
            self._begin()
        is_new = self._settle()
        read: dict[str, Callable[[bytes], None]] = {  # attempts before cards, so that each finds its task's
            EVENTS: lambda line: self.seen.event(parse_row(EVENTS, line)),
            ATTEMPTS: lambda line: self.seen.attempt(parse_attempt(line)),
            CARDS: lambda line: self.seen.card(parse_row(CARDS, line)),
            CHECKS: lambda line: self.seen.check(parse_row(CHECKS, line)),
        }
        for name, take in read.items():
            for line in self._tails[name].lines() if self.seen.config or name == EVENTS else ():
                is_new = True
                try:
                    take(line)
                except (ValueError, TypeError, KeyError):  # garbage: moved aside when a run opens the folder to write
                    self.unreadable += 1
        return is_new

    def _settle(self) -> bool:
        """Take config.json, where it is another one than before."""
        try:
            there = (self.folder.path / CONFIG).stat()
            written = there.st_mtime_ns, there.st_ino
        except FileNotFoundError:
            written = None
            if self.seen.config or not (self.folder.path / ATTEMPTS).exists():
                return False
        except NotADirectoryError:
            self.folder.read(CONFIG)  # says so
            return False
        if self.seen.config and written == self._written:
            return False
        config = self.folder.config_of("run.py")
        if self.seen.config and _another(self.seen.config, config):
            self._begin()
        self._written = written
        self.seen.settle(config, self.folder.plan, self.folder.read(AUDIT))
        return True

    @property
    def quiet(self) -> float:
        """Seconds since a line was written, by this machine's clock."""
        times = [path.stat().st_mtime for tail in self._tails.values() if (path := tail.path).exists()]
        return max(0.0, time.time() - max(times)) if times else 0.0


def _another(old: Config, new: Config) -> bool:
    """Whether lines that were read have to be read in another way."""
    return any(old.get(key) != new.get(key) for key in ("identity", "started", "grades"))


def owner(path: Path) -> Owner:
    """Who holds the lock of a run folder, without asking for it: a process of this machine, none that can be seen."""
    try:
        folder, held = path.stat(), LOCKS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return "unknown"
    name = f"{os.major(folder.st_dev):02x}:{os.minor(folder.st_dev):02x}:{folder.st_ino}"
    rows = (line.split() for line in held.splitlines())
    return "here" if any(row[1] == "FLOCK" and name in row for row in rows if len(row) > 5) else "nobody"


class Course:
    """From look to look: whether the run still goes on. owner: as it was before the lines were read, so that none that
    it wrote is missing."""

    def __init__(self) -> None:
        self.seen_here = False  # whether a process of this machine was seen to write
        self.closed = 0.0  # monotonic seconds since when nothing is open; 0 while something is
        self.first = True

    def is_gone(self, owner: Owner, quiet: float) -> Over:
        """Whether the owner of a start that has no end is not there any more."""
        self.seen_here |= owner == "here"
        return "" if owner == "here" else "killed" if self.seen_here else "silent" if quiet > PATIENCE else ""

    def state(self, owner: Owner, seen: Seen, quiet: float, is_told: bool) -> State:
        """is_told: whether there is a report of these very attempts."""
        gone = self.is_gone(owner, quiet)
        first, self.first = self.first, False
        if seen.start is not None and seen.start.code is None:
            return State(owner, quiet, gone)
        if owner == "here" or not (seen.config or seen.start):
            self.closed = 0.0
            return State(owner, quiet)
        self.closed = self.closed or time.monotonic()
        waited = time.monotonic() - self.closed  # a check of rescued programs may follow, and then the report
        is_over = first or (waited >= SETTLES and is_told) or waited > AFTER
        return State(owner, quiet, "ended" if is_over else "")


class Screen:
    """Text that is drawn anew in its place; where there is no terminal, a line now and then, and all of it at last."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.drawn = 0  # lines on the terminal
        self.said, self.phase = 0.0, ""  # monotonic seconds of the last line, and its phase

    @property
    def paper(self) -> Paper:
        columns = shutil.get_terminal_size().columns
        return Paper(min(columns, 120), wants_colour() and columns >= 80)

    def show(self, whole: list[str], line: str, phase: str, is_last: bool) -> None:
        """phase: a line is said at once where it is another one than before."""
        if self.is_terminal:
            columns, rows = shutil.get_terminal_size()
            cut = [text[:columns] for text in whole] if columns < 80 else whole
            fitting = whole if is_last else cut[: max(1, rows - 1)]
            back = f"\033[{self.drawn}F" if self.drawn else ""
            say(back + "\033[J" + "\n".join(fitting))
            self.drawn = len(fitting)
        elif is_last:
            say("\n".join(whole))
        elif phase != self.phase or time.monotonic() - self.said >= Watch.every:
            say(line)
            self.said, self.phase = time.monotonic(), phase


class Look(NamedTuple):
    """What one look found."""

    followed: Followed
    now: Underway | None  # None before there is a config.json
    state: State
    results: Row | None  # results.json, once it is of these very attempts


def follow(folder: Folder) -> Iterator[Look]:
    """A look every second, until the run has ended. Figures are made anew where something is, and so often that they
    take no more than a tenth of the time."""
    followed, course, now = Followed(folder), Course(), None
    is_new, may = False, 0.0  # monotonic seconds from which on they may be made anew
    while True:
        held_by = owner(folder.path)
        is_new |= followed.look()
        seen, began = followed.seen, time.monotonic()
        is_open = seen.start is not None and seen.start.code is None
        gone = is_open and course.is_gone(held_by, followed.quiet)
        if is_new and (began >= may or gone or not is_open):
            now = underway(seen) if seen.config else None
            is_new, may = False, time.monotonic() + (time.monotonic() - began) * (1 / SHARE - 1)
        results = _report(folder, seen, now)
        state = course.state(held_by, seen, followed.quiet, results is not None)
        yield Look(followed, now, state, results)
        if state.over:
            return
        time.sleep(EVERY)


def watching(folder: Folder, also: Callable[[Path, Look], None] | None = None) -> int:
    """Show a run until it ends: its exit code. also: who else is told of each look."""
    interrupt.at_once("no longer watched; the run goes on as it was")
    _await(folder)
    screen, looks = Screen(), follow(folder)
    with busy(f"reading {folder.path}"):
        look = next(looks)
    with pulse.Rests():
        while True:
            seen, now, state = look.followed.seen, look.now, look.state
            verdict = look.results["verdict"]["sentence"] if look.results else ""
            whole = lines(str(folder.path), seen, now, state, screen.paper, verdict)
            screen.show(whole, short(seen, now, state), phase(seen, now, state), bool(state.over))
            if also:
                also(folder.path, look)
            if state.over:
                return _leave(folder, look)
            look = next(looks)


def _await(folder: Folder) -> None:
    """Until there is a run. RecordsError where there are files, and no run."""
    if folder.path.exists() and not folder.is_run:
        folder.read(CONFIG)  # says so of a file
        if any(path.is_file() for path in folder.path.iterdir()):
            raise RecordsError(f"{folder.path} holds files, and no run: name the folder of a run with --out")
    if not folder.is_run:
        note(f"no run has begun in {folder.path.resolve()} yet: waiting for one (Ctrl-C ends that)")
    while not folder.is_run:
        time.sleep(EVERY / 2)


def _report(folder: Folder, seen: Seen, now: Underway | None) -> Row | None:
    """results.json, once nothing is open, and where it is of these very attempts."""
    if now is None or (seen.start and seen.start.code is None):
        return None
    try:
        told = folder.read(REPORT) or {}
    except RecordsError:
        return None
    arms = {arm: (row["n"], row["rescued"]) for arm, row in told.get("intervals", {}).items()}
    tokens = {"prompt": now.prompt_tokens, "completion": now.completion_tokens}
    return told if (arms, told.get("tokens")) == (now.arms, tokens) else None


def _leave(folder: Folder, look: Look) -> int:
    """The last lines, and the exit code."""
    if look.followed.unreadable:
        lost = plural(look.followed.unreadable, "line")
        note(f"{lost} cannot be read; the next run moves them aside and asks again")
    if look.results:
        point_at(folder.path / "report.html", "the report as a page")
        point_at(folder.path / "report.txt", "the report as text")
    elif look.now and look.now.attempts:
        note(f"python run.py --reuse --out {shlex.quote(str(folder.path))} reports what there is")
    start = look.followed.seen.start
    code = start.code if start and start.code is not None else DONE
    return code if look.state.over == "ended" else KILLED
