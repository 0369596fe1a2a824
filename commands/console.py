"""What a command prints, and where: reports on stdout, its log on stderr.

`say` prints a report whatever stdout is, `note` is a line of the log, `complain` the one line that ends a command which
cannot go on. Left out: the words themselves (report.py, words.py).
"""

from __future__ import annotations

import io
import os
import re
import sys


def say(text: str) -> None:
    """Print a report: to a stdout that is not UTF-8, is closed, or is a pipe that nobody reads to its end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        print(text, flush=True)
    except BrokenPipeError:  # `| head` has seen enough, which is no fault; at exit Python would flush once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """A line of the log."""
    print(text, file=sys.stderr, flush=True)


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
