"""What a test process does: runs a program as main, or loads it and makes calls, up to its exit status.

Untrusted from the first line of the program on, which can read and change all that this process holds: there is no
answer in here to be found, and what is written here is bytes that nobody in the sandbox looks into.

As main it reads the input from stdin (a regular file) and prints to stdout. As a module it is loaded under another
name, then a call, a piece of Python, is run in its namespace, and the value that this leaves in `__value__` comes back
as plain data (plain.py). Left out: limits and walls, which stand before anything here is called (supervise.py).
"""

from __future__ import annotations

import builtins
import errno
import gc
import os
import struct
import sys

from grading import plain, stateless, walls
from grading.protocol import (
    BAD_VALUE,
    ENDED,
    FAULT,
    FORBIDDEN,
    MEMORY_LIMIT,
    MISSING_MODULE,
    NOT_RUN,
    NOTE,
    RUNTIME_ERROR,
    SYNTAX_ERROR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # a worker does without
    import mmap
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

# The slate: a page of memory that a test process shares with its parents. It says there why it failed, and a lie can
# only rename a failure.
HINT = 1  # where on it; at 0 stands whether the program has been compiled
NOTE_AT = 2  # and where its note is: the length, then NOTE and names
NO_NOTE = 255  # in place of the length: none is asked for, since a program's first tells enough and each has its price
_NAME_BYTES = 90  # of each of the two
_DEEPEST = 100_000  # frames, of which the innermost ones of the program are looked for
_LINES = NOTE.size // 4
# As the interpreter knows them, whatever a class says of itself.
_name_of, _bases_of, _flags_of = (type.__dict__[name].__get__ for name in ("__name__", "__mro__", "__flags__"))
_traceback_of = BaseException.__dict__["__traceback__"].__get__
_MADE_BY_A_STATEMENT = 1 << 9  # a flag of classes; those built in lack it
VALUE_FD = walls.DESCRIPTORS - 1  # where the values of calls go
RECORD = struct.Struct("<BI")  # of a call that shares its process: outcome, length; then the value
# How much earlier than by itself such a call runs out of stack: what has run before lets the interpreter go a few
# levels deeper.
_SHARED_DEPTH = 200


def compiled(source: bytes) -> tuple[CodeType | int, bytes]:
    """A code object, or the outcome that stands in its place and a note of why."""
    try:
        code: CodeType = compile(source.decode("utf-8").removeprefix("\ufeff"), "program.py", "exec", 0, True, 0)
        return code, b""
    except MemoryError as error:
        return MEMORY_LIMIT, note_of(error)
    except (SyntaxError, ValueError, RecursionError, OverflowError) as error:
        return SYNTAX_ERROR, note_of(error, line=getattr(error, "lineno", 0) or 0)


def taken_apart(data: bytes) -> tuple[CodeType | int, bytes]:
    """The input of a call: the piece of Python, compiled or the outcome in its place, and what is given to it."""
    (size,) = plain.COUNT.unpack_from(data)
    return compiled(data[4 : 4 + size])[0], data[4 + size :]


def write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


# ── three ways to run; none returns ──────────────────────────────────────────────────────────────────────────────────


def run_main(slate: mmap.mmap, code: CodeType, last_words: bool) -> None:
    sys.path.append(os.getcwd())  # a script finds modules beside it: those that it has written
    _leave(slate, _guarded(slate, exec, code, _scope("__main__")), last_words)


def run_call(slate: mmap.mmap, code: CodeType, data: bytes) -> None:
    call, given = taken_apart(data)
    if isinstance(call, int):
        slate[HINT] = call
        os._exit(1)
    _leave(slate, _guarded(slate, _one_call, code, call, given, _scope("program"), beside=call))


def run_calls(slate: mmap.mmap, code: CodeType, calls: list[tuple[CodeType, bytes]]) -> None:
    _leave(slate, _guarded(slate, _calls, code, calls, _scope("program")))


def _one_call(code: CodeType, call: CodeType, given: bytes, scope: dict[str, Any]) -> None:
    exec(code, scope)
    try:
        write_all(VALUE_FD, _value(call, given, scope))
    except plain.BadValue as error:
        write_all(VALUE_FD, _named(error))
        raise


def _calls(code: CodeType, calls: list[tuple[CodeType, bytes]], scope: dict[str, Any]) -> None:
    """Write a record for each call. What is no plain error ends it all, and each will be made by itself."""
    exec(code, scope)
    sys.setrecursionlimit(sys.getrecursionlimit() - _SHARED_DEPTH)
    noted = False
    for number, (call, given) in enumerate(calls):
        if number:
            stateless.forget()
        outcome, data = ENDED, b""
        try:
            data = _value(call, given, scope)
        except plain.BadValue as error:
            outcome, data = BAD_VALUE, _named(error)
        except Exception as error:
            outcome = _hint_for(error)
            if outcome != RUNTIME_ERROR or isinstance(error, RecursionError):
                raise
            data = b"" if noted else note_of(error, call)
            noted = True
        scope.pop("__value__", None)
        write_all(VALUE_FD, RECORD.pack(outcome, len(data)) + data)


def _value(call: CodeType, given: bytes, scope: dict[str, Any]) -> bytes:
    """What a call leaves: the size of the value encoded, the value encoded, its repr. Raises what the call raises."""
    scope.update(__encode__=plain.encode, __decode__=plain.decode, __given__=plain.decode(given) if given else None)
    exec(call, scope)
    value = scope["__value__"]
    if plain.is_iterator(value):
        kind, value = type(value).__name__, plain.drained(value)
        data, text = (
            plain.encode((item for item in value) if kind == "generator" else iter(value)),
            f"<{kind}> {value!r}",
        )
    else:
        data, text = plain.encode(value), repr(value)
    return plain.COUNT.pack(len(data)) + data + text[: plain.VALUE_BYTES].encode("utf-8", "replace")


def _named(error: plain.BadValue) -> bytes:
    return str(error).encode("utf-8", "replace")[:200]


# ── up to the exit status ─────────────────────────────────────────────────────────────────────────────────────────────
def _hint_for(error: BaseException) -> int:
    if isinstance(error, MemoryError):
        return MEMORY_LIMIT
    if isinstance(error, ModuleNotFoundError):
        return MISSING_MODULE
    if isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EACCES, errno.EROFS):
        return FORBIDDEN
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return FAULT
    if isinstance(error, plain.BadValue):
        return BAD_VALUE
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return NOT_RUN
    return RUNTIME_ERROR


def note_of(error: BaseException, beside: CodeType | None = None, line: int = 0) -> bytes:
    """What error that is, and which lines of the program led to it: of frames that are not of the code beside it."""
    try:
        lines = [line]
        kind, apart = type(error), {id(code) for code in stateless.codes_in(beside)} if beside else ()
        at, left = _traceback_of(error), _DEEPEST
        while at and left:
            code = at.tb_frame.f_code
            if code.co_filename == "program.py" and id(code) not in apart:
                lines.append(at.tb_lineno or 0)
                if len(lines) == 2000:
                    del lines[:-_LINES]
            at, left = at.tb_next, left - 1
        built_in = next(base for base in _bases_of(kind) if not _flags_of(base) & _MADE_BY_A_STATEMENT)
        names = [_name_of(one).encode("utf-8", "replace")[:_NAME_BYTES] for one in (kind, built_in)]
        last = [*reversed(lines[-_LINES:]), *[0] * _LINES][:_LINES]
        return NOTE.pack(*last) + b"\0".join(names)
    except Exception:  # out of memory, or out of stack: nothing is to be told then
        return b""


def _note(slate: mmap.mmap, error: BaseException, beside: CodeType | None) -> None:
    if slate[NOTE_AT] == NO_NOTE:
        return
    note = note_of(error, beside)
    slate[NOTE_AT : NOTE_AT + 1 + len(note)] = bytes((len(note),)) + note


def _guarded(slate: mmap.mmap, work: Callable[..., object], *args: object, beside: CodeType | None = None) -> int:
    """Run it as an interpreter runs a script, up to the exit status. beside: code that is none of the program's."""
    try:
        work(*args)
        return 0
    except SystemExit as leave:
        status = 0 if leave.code is None else leave.code & 0xFF if isinstance(leave.code, int) else 1
        if status:
            _note(slate, leave, beside)
        return status
    except BaseException as error:
        slate[HINT] = hint = _hint_for(error)
        if hint != BAD_VALUE:
            _note(slate, error, beside)
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, error.__traceback__)
        return 1


def _leave(slate: mmap.mmap, status: int, last_words: bool = False) -> None:
    """End by hand, in the order of a normal exit: threads, atexit, stdout, files left open; and nothing else."""
    if "threading" in sys.modules:
        _guarded(slate, sys.modules["threading"]._shutdown)
    if "atexit" in sys.modules:
        _guarded(slate, sys.modules["atexit"]._run_exitfuncs)
    for name in ("stdout", "stderr"):
        if not _flushed(getattr(sys, name, None)):
            status = status or 120  # what an interpreter exits with then
    _flushed(sys.__stdout__)  # which is flushed when it is freed, if it can be: it may have been taken apart
    if last_words:  # a writer that was never closed is flushed when it is freed, a generator runs its finally then
        sys.modules.pop("__main__", None)
        gc.collect()
        _flushed(getattr(sys, "stdout", None))
        _flushed(sys.__stdout__)
        walls.flush_c()
    os._exit(status)


def _flushed(stream: Any) -> bool:
    """False: it should have been and could not be."""
    try:
        closed = stream is None or bool(stream.closed)
    except BaseException:
        closed = False  # it was taken apart, or is of the program's own making
    try:
        if not closed:
            stream.flush()
    except BaseException:
        return False
    return True


def _scope(name: str) -> dict[str, Any]:
    """The namespace of a fresh module that nobody holds but sys.modules."""
    module = sys.modules[name] = type(sys)(name)
    module.__dict__.update(__builtins__=builtins, __file__="program.py")
    return module.__dict__
