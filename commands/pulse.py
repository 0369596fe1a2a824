"""A clock on the terminal while a command says nothing, from its first import to its end: nobody thinks it hangs.

    pulse.begin()                   before the imports, of commands/interrupt.py
    with pulse.Rests(): ...         while something else moves there: a bar, a clock with words of its own
    pulse.spoke()                   before something is said: the clock makes room, and begins anew

It needs only what every interpreter has at hand. Left out: a log, where a line now and then is enough (console.busy).
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from time import monotonic, sleep

PATIENCE = 1.2  # seconds of silence before it is drawn
BEAT = 0.5  # seconds between two looks
_LOCK = allocate_lock()
_SINCE = [0.0]  # monotonic seconds: when something was said last
_OTHERS = [0]  # that move
_DRAWN = [0]  # characters


def begin() -> None:
    """Only on a terminal that can take a line back."""
    if os.isatty(2) and os.environ.get("TERM") != "dumb":
        _SINCE[0] = monotonic()
        start_new_thread(_beat, ())


def _beat() -> None:
    while True:
        sleep(BEAT)
        with _LOCK:
            quiet = monotonic() - _SINCE[0]
            if quiet > PATIENCE and not _OTHERS[0]:
                _DRAWN[0] = os.write(2, f"\r\033[K... {quiet:.0f} s".encode())


def spoke() -> None:
    with _LOCK:
        if _DRAWN[0]:
            os.write(2, b"\r\033[K")
        _DRAWN[0], _SINCE[0] = 0, monotonic()


class Rests:
    """As long as it is entered."""

    def __enter__(self) -> None:
        spoke()
        with _LOCK:
            _OTHERS[0] += 1

    def __exit__(self, *raised: object) -> None:
        spoke()
        with _LOCK:
            _OTHERS[0] -= 1
