"""Which exception ended a program, and on which of its lines: what a reader wants to know, and nobody else.

    Raised(error, line)                   "ZeroDivisionError", 7
    told(note, program, status, above)    from what the test process has noted (running.py) and its exit status

A note is written by a process that a program can do with as it likes, so it is believed no further than it can harm:
no grade depends on it, the line is one that the program has, and the name is a word of Python or one that stands in the
program itself. So an input that a test gives, or an answer, cannot come back under the name of an exception. A class
of any other name is told as the built-in one that it derives from.

Left out: an exception's message, which a program can fill with what it was given. Host's end; nothing runs here.
"""

from __future__ import annotations

import builtins
import re
import signal
from typing import NamedTuple

from grading.protocol import NOTE

_BUILT_IN = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)
# Of the library, and of what programs like to import besides.
_LIBRARY = frozenset(
    "error Error Empty Full JSONDecodeError InvalidOperation DivisionByZero StatisticsError FrozenInstanceError "
    "PatternError CancelledError InvalidStateError QueueEmpty QueueFull IncompleteReadError BrokenBarrierError "
    "CycleError UnsupportedOperation LinAlgError AxisError".split()
)
# An outcome of a test that an exception can have brought about.
RAISING = frozenset("runtime_error memory_limit output_limit syntax_error missing_module forbidden".split())


class Raised(NamedTuple):
    """What ended a program. error: the class of the exception, or the name of the signal; "" where neither is known."""

    error: str = ""
    line: int | None = None  # of the program, from 1; None where none of its lines is to blame, or known


NOTHING = Raised()


def told(note: bytes, program: bytes, status: int, above: int = 0) -> Raised:
    """What a note amounts to, beside the program and how its process has ended.

    above: lines of the program that are what its task gives: one of those is passed over for the one that led to it.
    """
    if len(note) < NOTE.size:
        return Raised(_signal(status)) if status < 0 else NOTHING
    noted = NOTE.unpack_from(note)
    own, _, built_in = note[NOTE.size :].decode("utf-8", "replace").partition("\0")
    if not _is_known(own, program):
        own = built_in if built_in in _BUILT_IN else ""
    lines = 1 + program.count(b"\n") + program.count(b"\r")
    return Raised(own, next((line - above for line in noted if own and above < line <= lines), None))


def syntax_of(program: str, above: int = 0) -> Raised:
    """Of a program that no file could hold, for half a surrogate pair in it. above: as in told."""
    try:
        program.encode()
    except UnicodeEncodeError as why:
        line = 1 + program.count("\n", 0, why.start) - above
        return Raised(type(why).__name__, line if line > 0 else None)
    return NOTHING


def _is_known(name: str, program: bytes) -> bool:
    if name in _BUILT_IN or name in _LIBRARY:
        return True
    word = re.escape(name.encode()) if name.isidentifier() else b"(?!)"
    return re.search(rb"(?<![\w\x80-\xff])" + word + rb"(?![\w\x80-\xff])", program) is not None


def _signal(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return ""
