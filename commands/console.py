"""What a command prints, and where: reports on stdout, its log on stderr.

    say(report)                     whatever stdout is
    note(line)                      of the log
    with busy("reading out"): ...   a clock on a terminal while something takes long, so that nobody thinks it hangs
    point_at(path, what)            where something is, said at the end, as a link where the terminal knows links
    at_last(line)                   what is to be read last, whatever else is said: how to continue
    leave_off()                     the end of a command: both
    return complain(why, code)      the one line that ends a command which cannot go on

Left out: the words themselves (telling/), the bar of attempts (commands/sampling.py).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from commands import pulse

PATIENCE = 2.0  # seconds of silence that nobody minds
AGAIN = 30.0  # seconds between two lines of a log
_PLACES: dict[Path, str] = {}
_LAST: list[str] = []


def say(text: str) -> None:
    """Print a report: to a stdout that is not UTF-8, is closed, or is a pipe that nobody reads to its end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    pulse.spoke()
    try:
        print(text, flush=True)
    except BrokenPipeError:  # `| head` has seen enough, which is no fault; at exit Python would flush once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """A line of the log; above the bar where one is drawn."""
    pulse.spoke()
    if "tqdm" in sys.modules and sys.stderr.isatty():
        sys.modules["tqdm"].tqdm.write(text, file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def busy(what: str) -> Iterator[None]:
    """What a command does while it has nothing to say: on a terminal with a clock, gone when it is done; elsewhere a
    line where it lasts, and then now and again."""
    over = threading.Event()

    def tick() -> None:
        if not sys.stderr.isatty():
            began, pause = time.monotonic(), PATIENCE
            while not over.wait(pause):
                so_far = "" if pause == PATIENCE else f" {time.monotonic() - began:.0f} s"
                note(f"{what} ...{so_far}")
                pause = AGAIN
            return
        from tqdm import tqdm

        with tqdm(desc=what, bar_format="{desc} ... {elapsed}", leave=False, file=sys.stderr) as clock:
            while not over.wait(1):
                clock.refresh()

    clock = threading.Thread(target=tick, daemon=True)
    with pulse.Rests():
        clock.start()
        try:
            yield
        finally:
            over.set()
            clock.join()


def point_at(path: Path, what: str) -> None:
    """Where something is, to be said when the command ends."""
    _PLACES[path] = what


def at_last(line: str) -> None:
    """A line that is said when all else is."""
    _LAST.append(line)


def leave_off() -> None:
    """The end of a command: what was kept for it. A path stands by itself, so that an editor's terminal opens it, and
    is a link where links are known."""
    links = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    wide = max((len(str(path)) for path in _PLACES), default=0)
    for path, what in _PLACES.items():
        shown = f"\033]8;;{path.resolve().as_uri()}\033\\{path}\033]8;;\033\\" if links else str(path)
        note(f"{shown}{' ' * (wide - len(str(path)))}  {what}")
    _PLACES.clear()
    while _LAST:
        note(_LAST.pop(0))


def complain(why: object, code: int) -> int:
    """One line that names the command, and the exit code back."""
    note(f"{sys.argv[0].rsplit('/')[-1]}: {why}")
    return code


def without_login(word: str) -> str:
    """A base URL as it may be written down: a name and a password in it are not for a file or a log."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", word)


def wants_colour() -> bool:
    """Whether stdout is a terminal and nobody asked for no colour (NO_COLOR)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
