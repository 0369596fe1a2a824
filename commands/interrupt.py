"""Ctrl-C in a command: at any moment, from the first import to the last picture, exit 130 and one line.

    if __name__ == "__main__":
        interrupt.at_once()             before the imports that follow, which take a second
    with interrupt.Gently(): ...        where something is to be saved first, it is a KeyboardInterrupt
    if __name__ == "__main__":
        interrupt.leave(main)           and nothing comes after the command

Elsewhere nothing is raised: a library in the middle of its start makes another exception of a KeyboardInterrupt, or
brings the interpreter down. What is on disk is whole at any moment, so the process may simply end.

It begins the clock of silences as well (commands/pulse.py). It needs only what every interpreter has at hand. Left out:
what is saved, and how (commands/sampling.py).
"""

from __future__ import annotations

import atexit
import os
import sys
from _signal import SIGINT, default_int_handler, signal  # type: ignore[import-not-found]  # `signal` takes 10 ms

from commands import pulse

TYPE_CHECKING = False  # typing takes 5
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

INTERRUPTED = 130  # as in faults.py, which takes 5 too


def at_once(says: str = "") -> None:
    """From here on Ctrl-C is one line and the end. says: in place of how to go on, of a command that writes nothing."""
    _SAYS[:] = [says] * bool(says)
    signal(SIGINT, _end)
    if not says:
        pulse.begin()


_SAYS: list[str] = []


def _end(number: int, frame: object) -> NoReturn:
    again = "the same command goes on" + (", without --fresh" if "--fresh" in sys.argv else "")
    says = _SAYS[0] if _SAYS else f"interrupted; what was written stays, and {again}"
    line = f"{sys.argv[0].rsplit('/')[-1]}: {says}\n"
    try:  # print may be under way; on a terminal a bar, or ^C
        os.write(2, ("\n" * os.isatty(2) + line).encode("utf-8", "replace"))
    finally:
        os._exit(INTERRUPTED)


class Gently:
    """Ctrl-C is a KeyboardInterrupt for a while, which asyncio hands to what it runs as a cancellation."""

    def __enter__(self) -> None:
        self.before = signal(SIGINT, default_int_handler)

    def __exit__(self, *raised: object) -> None:
        signal(SIGINT, self.before)


def leave(main: Callable[[], int]) -> NoReturn:
    """A whole command, and no more: an interpreter that takes itself apart can be hit by Ctrl-C too."""
    pulse.spoke()
    try:
        code = main()
    except SystemExit as end:
        code = int(end.code or 0)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # closed, or nobody reads it
            code = code or 1
    os._exit(code)
