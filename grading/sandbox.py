"""The sandbox: a program and bytes go in; bytes, a status and CPU seconds come out. Both ends of the one protocol.

    host       Worker: starts a worker process, sends programs and inputs, receives outputs      (asyncio)
      worker   serve: one per core, warm, walled in once, never sees a program or an input       (blocking)
        program process   _ProgramProcess: compiles one program, once, and forks for each input
          test process    _run_main or _run_calls: behind the inner walls, runs the program, untrusted

There is no answer to be found in here: what a test wants is known to the caller alone, who compares outside. A
program runs in one of two ways. As main: it reads the input from stdin (a regular file) and prints to stdout. As a
module: it is loaded under another name, then the input, a piece of Python, is run in its namespace, and the value that
this leaves in `__value__` comes back as plain data (encode, decode). Of a module that can keep nothing from one call
to the next (stateless.py), one test process makes several calls; if anything but values and plain errors comes of that,
each call is made again in a process of its own.

The worker hands its socket to the program process and reads nothing itself, so that nothing of one program is ever in
the memory of another. All that travels has a fixed header and raw bytes; what comes from a test process is bytes that
the program process copies without looking inside (of several values, it reads how long each is). A compile bomb kills
the program process only, and the worker then answers in its place.

A test process is a copy of the program process, freed memory included, and a program can read all of its own. So what
goes in and out passes through memory that a fork leaves out, and nothing else holds a byte of it: a test finds no
input, output or call of an earlier one. Lengths, outcomes and times it may find. A module that keeps nothing cannot
read memory either, and its calls are looked at before the fork.

Left out: which walls there are (walls.py), comparing, extracting, grading (grader.py).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal itself would bring in half the library
import builtins
import errno
import gc
import mmap
import os
import resource
import select
import struct
import sys
import time
from collections import OrderedDict, deque, namedtuple
from collections.abc import Iterable, Sequence

from grading import stateless, walls

TYPE_CHECKING = False
if TYPE_CHECKING:  # the worker does without these
    import asyncio
    import subprocess
    from typing import Any

# Limits of one test. asleep: neither computing nor waiting for a processor. wall: a far backstop; 0 stands for ten
# times the CPU seconds. memory: address space. output: stdout. timeouts: after so many of them the rest of a program's
# tests is not run (0: always run).
Limits = namedtuple(
    "Limits",
    "cpu_seconds asleep_seconds wall_seconds memory_bytes output_bytes timeouts",
    defaults=(6.0, 2.0, 0.0, 1 << 30, 16 << 20, 3),
)

# stdout: bytes. status: as Python reports it (negative: the signal that ended it), None if it never ran. outcome:
# "ended" (by itself, with status 0), or why it did not. cpu_seconds: float.
Output = namedtuple("Output", "stdout status outcome cpu_seconds")
OUTCOMES = (
    "ended", "runtime_error", "timeout", "memory_limit", "output_limit", "not_run", "syntax_error", "missing_module",
    "forbidden", "bad_value", "fault",
)  # fmt: skip
(ENDED, RUNTIME_ERROR, TIMEOUT, MEMORY_LIMIT, OUTPUT_LIMIT, NOT_RUN, SYNTAX_ERROR, MISSING_MODULE,
 FORBIDDEN, BAD_VALUE, FAULT) = range(len(OUTCOMES))  # fmt: skip

MAIN, MODULE = 0, 1  # how a program runs
VALUE_BYTES = 1 << 20  # the most that a value may take, encoded
_JOB = struct.Struct("<4sBdddQQII")  # host to worker: magic, mode, limits, length of the program; then the program
_TEST = struct.Struct("<I")  # then for each test: length of the input, and the input
_END = 0xFFFFFFFF  # in place of a length: no more tests, the next is another program
_RESULT = struct.Struct("<4sBiBdI")  # worker to host: magic, outcome, status, ran, CPU seconds, length; then stdout
_MAGIC_JOB, _MAGIC_RESULT, _HELLO = b"JOB1", b"RES1", b"UP01"
_HELD_BYTES = 1 << 18  # results that wait to be sent together
_COMING_BYTES = 1 << 16  # of an input on its way to the file that a test reads it from
# The most calls that one test process makes, of so many bytes or one more, and the CPU seconds that it may take; how
# much earlier than by itself a call runs out of stack: what has run before lets the interpreter go a few levels deeper.
_SHARED, _SHARED_BYTES, _SHARED_SECONDS, _SHARED_DEPTH = 64, 1 << 18, 0.5, 200
_LOOK_SECONDS = 0.05  # how soon, and in tiers that need it how often, a running program is looked at


# ── plain data: values as bytes ──────────────────────────────────────────────────────────────────────────────────────
# One tag byte, then the payload. Equal bytes mean equal values (not always the other way round). Exact types only: a
# subclass may lie in ==, so it never leaves the process it was made in.
class BadValue(Exception):
    """The value is not plain data; the text names its type, or says what is wrong with it."""


_DEPTH = 200
_VIEWS = {type(getattr(kind(), view)()): tag for kind in (dict, OrderedDict)
          for view, tag in (("keys", b"k"), ("items", b"m"), ("values", b"v"))}  # fmt: skip
_COUNT = struct.Struct("<I")
_NOTHING: Any = ()
_EMPTY: Any = {}
_ITERATORS = {
    *(type(iter(kind(_NOTHING))) for kind in (list, tuple, dict, set, bytes, bytearray, deque, OrderedDict)),
    *(type(reversed(kind(_NOTHING))) for kind in (list, tuple, dict, deque)),
    *(type(turn(view)) for turn in (iter, reversed) for view in (_EMPTY.values(), _EMPTY.items())),
    *map(type, (iter(""), iter("\xe9"), iter(range(0)), iter(range(1 << 99)), iter(list, []))),
    *map(type, ((none for none in _NOTHING), map(id, _NOTHING), filter(id, _NOTHING), zip(), enumerate(_NOTHING))),
}


def encode(value: Any, most: int = VALUE_BYTES) -> bytes:
    """A value of exact built-in types, or of the standard collections, as bytes, `most` of them at most.

    Raises BadValue for any other type, and for more.
    """
    out: list[bytes] = []
    _encode(value, out, _DEPTH)
    data = b"".join(out)
    if len(data) > most:
        raise BadValue(f"a {type(value).__name__} of more than {most >> 20} MiB")
    return data


def _sized(tag: bytes, payload: bytes) -> bytes:
    return tag + _COUNT.pack(len(payload)) + payload


def _encode(value: Any, out: list[bytes], depth: int) -> None:
    if depth < 0:
        raise BadValue(f"nested more than {_DEPTH} deep")
    kind = type(value)
    if value is None:
        out.append(b"N")
    elif kind is bool:
        out.append(b"T" if value else b"F")
    elif kind is int:
        out.append(_sized(b"i", b"%x" % value if value >= 0 else b"-%x" % -value))
    elif kind is float:
        out.append(_sized(b"f", repr(value).encode()))
    elif kind is str:
        out.append(_sized(b"s", value.encode("utf-8", "surrogatepass")))
    elif kind is bytes or kind is bytearray:
        out.append(_sized(b"b" if kind is bytes else b"B", bytes(value)))
    elif kind is list or kind is tuple:
        _encode_items(b"l" if kind is list else b"t", value, out, depth)
    elif kind is dict:
        _encode_items(b"d", _flat(value.items()), out, depth)
    elif kind is set or kind is frozenset:
        out.append((b"e" if kind is set else b"z") + _COUNT.pack(len(value)))
        items = []
        for item in value:
            one: list[bytes] = []
            _encode(item, one, depth - 1)
            items.append(b"".join(one))
        out += sorted(items)
    elif kind is complex:
        _encode_items(b"j", (value.real, value.imag), out, depth)
    elif kind is range:
        _encode_items(b"r", (value.start, value.stop, value.step), out, depth)
    elif kind in _VIEWS:
        tag = _VIEWS[kind]
        _encode_items(tag, _flat(value) if tag == b"m" else value, out, depth)
    elif kind in _ITERATORS:
        _encode_items(b"I", _drained(value), out, depth)
    else:
        _encode_library_type(value, kind, out, depth)


def _encode_items(tag: bytes, items: Any, out: list[bytes], depth: int) -> None:
    out.append(tag + _COUNT.pack(len(items)))
    if len(out) > VALUE_BYTES:  # a small value can hold itself many times
        raise BadValue(f"more than {VALUE_BYTES >> 20} MiB")
    for item in items:
        _encode(item, out, depth - 1)


def _flat(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    return [part for pair in pairs for part in pair]


def _drained(iterator: Any) -> list[Any]:
    items = []
    for item in iterator:
        items.append(item)
        if len(items) > VALUE_BYTES:
            raise BadValue(f"an iterator of more than {VALUE_BYTES} items")
    return items


def _library_name(kind: type) -> str:
    """Module and name of a type of the library; "" for any other."""
    # a class may claim any name, so it must be the very class that the library holds under it
    home = sys.modules.get(kind.__module__)
    return f"{kind.__module__}.{kind.__qualname__}" if getattr(home, kind.__qualname__, None) is kind else ""


def _encode_library_type(value: Any, kind: type, out: list[bytes], depth: int) -> None:
    name = _library_name(kind)
    if name == "collections.Counter":
        _encode_items(b"c", _flat(dict.items(value)), out, depth)
    elif name == "collections.defaultdict":
        _encode_items(b"d", _flat(dict.items(value)), out, depth)
    elif name == "collections.OrderedDict":
        _encode_items(b"o", _flat(value.items()), out, depth)
    elif name == "collections.ChainMap":
        _encode_items(b"d", _flat(dict(value).items()), out, depth)
    elif name == "collections.deque":
        _encode_items(b"q", [value.maxlen, *value], out, depth)
    elif name == "decimal.Decimal":
        out.append(_sized(b"D", str(value).encode()))
    elif name == "fractions.Fraction":
        _encode_items(b"Q", (value.numerator, value.denominator), out, depth)
    elif name in ("datetime.date", "datetime.time", "datetime.datetime"):
        if getattr(value, "tzinfo", None) is not None and type(value.tzinfo).__module__ not in ("datetime", "zoneinfo"):
            raise BadValue(f"{kind.__name__} with a time zone of its own")
        tag = {"date": b"Y", "time": b"h", "datetime": b"y"}[kind.__name__]
        out.append(_sized(tag, value.isoformat().encode()))
    elif name == "datetime.timedelta":
        _encode_items(b"u", (value.days, value.seconds, value.microseconds), out, depth)
    elif name == "datetime.timezone":
        _encode_items(b"Z", value.__getinitargs__(), out, depth)
    elif name.startswith("itertools."):
        _encode_items(b"I", _drained(value), out, depth)
    elif type(kind) is type and issubclass(kind, tuple) and hasattr(kind, "_fields") and kind.__eq__ is tuple.__eq__:
        _encode_items(b"t", tuple.__getitem__(value, slice(None)), out, depth)  # a named tuple equals a plain one
    else:
        raise BadValue(kind.__name__)


_PLAIN = b"NTFifsbBlt"  # what decodes in linear time whoever wrote it: no hashing, no arithmetic


def decode(data: bytes, plain_only: bool = False) -> Any:
    """What encode was given. Raises ValueError for bytes that encode cannot have written.

    plain_only: refuse (ValueError) every type that hostile contents could make slow to build or to compare.
    """
    value, end = _decode(data, 0, plain_only, _DEPTH)
    if end != len(data):
        raise ValueError("more bytes than one value")
    return value


def _decode(data: bytes, at: int, plain_only: bool, depth: int) -> tuple[Any, int]:
    tag = data[at : at + 1]
    if not tag or depth < 0 or (plain_only and tag not in _PLAIN):
        raise ValueError(f"no value at byte {at}")
    at += 1
    if tag in b"NTF":
        return {b"N": None, b"T": True, b"F": False}[tag], at
    if at + 4 > len(data):
        raise ValueError("cut off")
    (count,) = _COUNT.unpack_from(data, at)
    at += 4
    if tag in b"ifsbBDYhy":
        payload = data[at : at + count]
        if len(payload) != count:
            raise ValueError("cut off")
        return _decode_scalar(tag, payload), at + count
    items = []
    for _ in range(count):
        item, at = _decode(data, at, plain_only, depth - 1)
        items.append(item)
    return _decode_items(tag, items), at


def _decode_scalar(tag: bytes, payload: bytes) -> Any:
    if tag == b"i":
        return int(payload, 16)
    if tag == b"f":
        return float(payload)
    if tag == b"s":
        return payload.decode("utf-8", "surrogatepass")
    if tag == b"b":
        return payload
    if tag == b"B":
        return bytearray(payload)
    if tag == b"D":
        import decimal

        return decimal.Decimal(payload.decode())
    import datetime

    kind: Any = {b"Y": datetime.date, b"h": datetime.time, b"y": datetime.datetime}[tag]
    return kind.fromisoformat(payload.decode())


def _decode_items(tag: bytes, items: list[Any]) -> Any:
    import collections

    if tag == b"l":
        return items
    if tag == b"t":
        return tuple(items)
    if tag == b"e":
        return set(items)
    if tag == b"z":
        return frozenset(items)
    if tag == b"I":
        return iter(items)
    if tag == b"q":
        return deque(items[1:], items[0])
    if tag == b"k":
        return dict.fromkeys(items).keys()
    if tag == b"v":
        return dict(enumerate(items)).values()
    if tag in (b"d", b"c", b"o", b"m"):
        pairs = dict(zip(items[::2], items[1::2], strict=True))
        if tag == b"c":
            return collections.Counter(pairs)
        return collections.OrderedDict(pairs) if tag == b"o" else pairs.items() if tag == b"m" else pairs
    if tag == b"j":
        return complex(*items)
    if tag == b"r":
        return range(*items)
    if tag == b"Q":
        import fractions

        return fractions.Fraction(*items)
    if tag in (b"u", b"Z"):
        import datetime

        return (datetime.timedelta if tag == b"u" else datetime.timezone)(*items)
    raise ValueError(f"no such tag: {tag!r}")


# ── test process: untrusted from the first line of the program on ────────────────────────────────────────────────────
_HINT = 1  # where in the shared page a test process says why it failed; a lie there can only rename a failure
_EMPTY_PAGE = bytes(4096)  # not compiled yet
_CLEAN_PAGE = b"\1" + bytes(4095)  # compiled, and no failure yet


def _hint_for(error: BaseException) -> int:
    if isinstance(error, MemoryError):
        return MEMORY_LIMIT
    if isinstance(error, ModuleNotFoundError):
        return MISSING_MODULE
    if isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EACCES, errno.EROFS):
        return FORBIDDEN
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return FAULT
    if isinstance(error, BadValue):
        return BAD_VALUE
    return RUNTIME_ERROR


def _guarded(page: mmap.mmap, work: Any, *args: Any) -> int:
    """Run it as an interpreter runs a script, up to the exit status."""
    try:
        work(*args)
        return 0
    except SystemExit as leave:
        if leave.code is None:
            return 0
        return leave.code & 0xFF if isinstance(leave.code, int) else 1
    except BaseException as error:
        page[_HINT] = _hint_for(error)
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, error.__traceback__)
        return 1


def _leave(page: mmap.mmap, status: int, last_words: bool = False) -> None:
    """End by hand, in the order of a normal exit: threads, atexit, stdout, files left open; and nothing else."""
    if "threading" in sys.modules:
        _guarded(page, sys.modules["threading"]._shutdown)
    if "atexit" in sys.modules:
        _guarded(page, sys.modules["atexit"]._run_exitfuncs)
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


def _run_main(page: mmap.mmap, code: Any, last_words: bool) -> None:
    sys.path.append(os.getcwd())  # a script finds modules beside it: those that it has written
    _leave(page, _guarded(page, exec, code, _scope("__main__")), last_words)


def _run_call(page: mmap.mmap, code: Any, data: bytes) -> None:
    call, given = _taken_apart(data)
    if isinstance(call, int):
        page[_HINT] = call
        os._exit(1)
    _leave(page, _guarded(page, _one_call, code, call, given, _scope("program")))


def _run_calls(page: mmap.mmap, code: Any, calls: list[tuple[Any, bytes]]) -> None:
    _leave(page, _guarded(page, _calls, code, calls, _scope("program")))


def _one_call(code: Any, call: Any, given: bytes, scope: dict[str, Any]) -> None:
    exec(code, scope)
    try:
        _write_all(_VALUE_FD, _value(call, given, scope))
    except BadValue as error:
        _write_all(_VALUE_FD, _named(error))
        raise


def _calls(code: Any, calls: list[tuple[Any, bytes]], scope: dict[str, Any]) -> None:
    """Write a record for each call. What is no plain error ends it all, and each will be made by itself."""
    exec(code, scope)
    sys.setrecursionlimit(sys.getrecursionlimit() - _SHARED_DEPTH)
    for number, (call, given) in enumerate(calls):
        if number:
            stateless.forget()
        outcome, data = ENDED, b""
        try:
            data = _value(call, given, scope)
        except BadValue as error:
            outcome, data = BAD_VALUE, _named(error)
        except Exception as error:
            outcome = _hint_for(error)
            if outcome != RUNTIME_ERROR or isinstance(error, RecursionError):
                raise
        scope.pop("__value__", None)
        _write_all(_VALUE_FD, _RECORD.pack(outcome, len(data)) + data)


def _value(call: Any, given: bytes, scope: dict[str, Any]) -> bytes:
    """What a call leaves: the size of the value encoded, the value encoded, its repr. Raises what the call raises."""
    scope.update(__encode__=encode, __decode__=decode, __given__=decode(given) if given else None)
    exec(call, scope)
    value = scope["__value__"]
    if type(value) in _ITERATORS or _library_name(type(value)).startswith("itertools."):
        kind, value = type(value).__name__, _drained(value)
        data, text = encode(iter(value)), f"<{kind}> {value!r}"
    else:
        data, text = encode(value), repr(value)
    return _COUNT.pack(len(data)) + data + text[:VALUE_BYTES].encode("utf-8", "replace")


def _named(error: BadValue) -> bytes:
    return str(error).encode("utf-8", "replace")[:200]


_VALUE_FD = walls.DESCRIPTORS - 1
_RECORD = struct.Struct("<BI")  # in a file of several values: outcome, length; then the value


# ── program process: trusted, compiles and supervises ────────────────────────────────────────────────────────────────
# Standard modules that are loaded before the fork when the program names them, so that its tests share the work.
_ALWAYS_WARM = ("bisect", "collections", "functools", "heapq", "itertools", "math", "operator")  # more would cost more
_WARM = frozenset(
    "abc array ast bisect calendar cmath collections contextlib copy dataclasses datetime decimal enum fractions "
    "functools hashlib heapq io itertools json math numbers operator os queue random re statistics string struct sys "
    "textwrap threading time traceback types typing unicodedata".split()
)


def _warm_up(names: set[str]) -> None:
    """Import without the after-fork hooks: a fork runs all of them, and none matters to a process with one thread."""
    real, os.register_at_fork = os.register_at_fork, lambda **hooks: None
    try:
        for name in names:
            if name not in sys.modules:
                __import__(name)
    finally:
        os.register_at_fork = real
    if "random" in sys.modules:
        sys.modules["random"].seed(0)  # the same program draws the same numbers whenever it is graded


def _compile(source: bytes) -> Any:
    """A code object, or the outcome that stands in its place."""
    try:
        return compile(source.decode("utf-8").removeprefix("\ufeff"), "program.py", "exec", 0, True, 0)
    except MemoryError:
        return MEMORY_LIMIT
    except (SyntaxError, ValueError, RecursionError, OverflowError):
        return SYNTAX_ERROR


class _Unless:
    """contextlib.suppress, which the worker would have to import."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self.errors = errors

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        return kind is not None and issubclass(kind, self.errors)


def _read_exact(fd: int, size: int) -> bytes:
    data = os.read(fd, size) if size else b""
    if len(data) == size:
        return data
    parts, have = [data], len(data)
    while have < size:
        if not parts[-1]:
            os._exit(0)  # the host has gone
        parts.append(os.read(fd, min(size - have, 1 << 20)))
        have += len(parts[-1])
    return b"".join(parts)


def _write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _taken_apart(data: bytes) -> tuple[Any, bytes]:
    """The input of a call: the piece of Python, compiled or the outcome in its place, and what is given to it."""
    (size,) = _COUNT.unpack_from(data)
    return _compile(data[4 : 4 + size]), data[4 + size :]


class _Killed(Exception):
    """The test process or its folder is gone: the machine's doing, or its own; a second try tells."""


_LAST_WORDS = (b"open", b"Writer", b"Wrapper", b"IO", b"__del__", b"finally", b"ctypes")  # what may print at the end


class _ProgramProcess:
    """One program from its compilation to its last test."""

    def __init__(self, fd: int, house: walls.Walls, page: mmap.mmap) -> None:
        self.fd, self.house, self.page = fd, house, page
        # Inputs pass through here, and results wait here to be sent together. What one test has read and printed is
        # not for the next to find, so this memory stays with the parent at a fork; where that cannot be had, nothing
        # waits, and what has gone through is overwritten.
        apart = mmap.mmap(-1, _COMING_BYTES + _HELD_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.may_wait = hasattr(mmap, "MADV_DONTFORK")
        if self.may_wait:
            apart.madvise(mmap.MADV_DONTFORK)
        self.coming, self.held = memoryview(apart)[:_COMING_BYTES], memoryview(apart)[_COMING_BYTES:]
        self.held_bytes = 0
        self.folder = -1  # the scratch folder, where a program may shut it
        self.timeouts = 0
        self.names: frozenset[str] | None = None  # of a module that lets several calls share a test process
        self.running = 0  # the process id of the test process, while there is one
        self.fork = os.fork if house.tier == "limits" else walls.fork
        self.input_ready = select.poll()
        self.input_ready.register(fd, select.POLLIN)

    def run(self) -> None:
        magic, self.mode, *limits, size = _JOB.unpack(_read_exact(self.fd, _JOB.size))
        if magic != _MAGIC_JOB:
            os._exit(1)
        self.limits = Limits(*limits)
        source = _read_exact(self.fd, size)
        for name in [name for name in sys.modules if name.split(".")[0] == "grading"]:  # a program imports its own
            del sys.modules[name]
        # The tests inherit the hard limit: should all else fail to stop one, the kernel does. It counts what this
        # process takes too, which is less than a millisecond for a test.
        soft = max(1, int(self.limits.cpu_seconds) + 1)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 60))
        _limit_softly(self.limits.memory_bytes)
        self.code = _compile(source)
        resource.setrlimit(resource.RLIMIT_CPU, (soft + 60, soft + 60))
        _limit_softly(resource.RLIM_INFINITY)
        self.last_words = self.mode == MAIN and any(word in source for word in _LAST_WORDS)
        self.own_source = source if any(word in source for word in (b"__file__", b"argv", b"getsource")) else b""
        del source
        if not isinstance(self.code, int):
            codes = stateless.codes_in(self.code)
            _warm_up(stateless.imported(codes) & _WARM)
            if self.mode == MODULE:
                self.names = stateless.names_of(codes)
        gc.freeze()
        self.page[0] = 1  # compiled: from here on a death is not the program's doing
        if self.house.tier == "limits":
            _signal.signal(_signal.SIGTERM, self.give_up)
        else:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _CHILD_ENDED)
        self.clean_scratch()
        self.serve()

    def give_up(self, *_: object) -> None:
        """The host has hung up: take the test process along, and leave no orphan for others to collect."""
        if self.running:
            with _Unless(ProcessLookupError, ChildProcessError):
                os.kill(self.running, 9)
                os.waitpid(self.running, 0)
        os._exit(1)

    def serve(self) -> None:
        """Answer each test with a result, until the host says that there are no more."""
        inputs: list[bytes] = []  # that have come and are not answered
        more = True
        while more or inputs:
            try:
                while more and (not inputs or (self.has_room_beside(inputs) and self.input_ready.poll(0))):
                    (size,) = _TEST.unpack(_read_exact(self.fd, _TEST.size))
                    more = size != _END
                    if more:
                        inputs.append(self.take(size))
                enough = self.limits.timeouts and self.timeouts >= self.limits.timeouts
                if len(inputs) < 2 or enough or not self.share(inputs):
                    for data in inputs:
                        if isinstance(self.code, int):
                            self.answer(self.code)
                        elif self.limits.timeouts and self.timeouts >= self.limits.timeouts:
                            self.answer(NOT_RUN)
                        else:
                            self.test(data)
            except (OSError, _Killed) as why:
                self.answer(FAULT, status=int(isinstance(why, _Killed)), ran=1, stdout=f"{why}".encode())
                self.flush()
                os._exit(1)
            inputs.clear()
            if not self.may_wait or not more or not self.input_ready.poll(0):
                self.flush()

    def take(self, size: int) -> bytes:
        """An input that has come: of calls that may share a process its bytes, else b"", and it is in descriptor 0."""
        if self.names is not None:
            return _read_exact(self.fd, size)
        runs = not isinstance(self.code, int)
        if runs:
            self.file(0)
        while size:
            have = os.readv(self.fd, [self.coming[:size]])
            if not have:
                os._exit(0)  # the host has gone
            if runs:
                _write_all(0, self.coming[:have])
            if not self.may_wait:
                self.coming[:have] = bytes(have)
            size -= have
        if runs:
            os.lseek(0, 0, 0)
        return b""

    def has_room_beside(self, inputs: list[bytes]) -> bool:
        """May one more call share a process with these?"""
        return self.names is not None and len(inputs) < _SHARED and sum(map(len, inputs)) < _SHARED_BYTES

    def answer(self, outcome: int, status: int = 0, ran: int = 0, cpu: float = 0.0, stdout: bytes = b"") -> None:
        self.begin_answer(outcome, status, ran, cpu, len(stdout))
        view = memoryview(stdout)
        while view:
            size = min(len(view), len(self.room()))
            self.room()[:size] = view[:size]
            self.held_bytes += size
            view = view[size:]

    def answer_with_file(self, outcome: int, status: int, cpu: float, out: int, size: int) -> None:
        """The same with the first so many bytes of a file, which go through no other memory."""
        self.begin_answer(outcome, status, 1, cpu, size)
        os.lseek(out, 0, 0)
        while size:
            have = os.readv(out, [self.room()[:size]])
            if not have:
                os._exit(1)  # somebody has shortened it meanwhile
            self.held_bytes += have
            size -= have

    def begin_answer(self, outcome: int, status: int, ran: int, cpu: float, size: int) -> None:
        self.timeouts += outcome == TIMEOUT
        if self.held_bytes + _RESULT.size + size > _HELD_BYTES:
            self.flush()
        _RESULT.pack_into(self.held, self.held_bytes, _MAGIC_RESULT, outcome, status, ran, cpu, size)
        self.held_bytes += _RESULT.size

    def room(self) -> memoryview:
        """Where more of an answer may be put: never empty."""
        if self.held_bytes == _HELD_BYTES:
            self.flush()
        return self.held[self.held_bytes :]

    def flush(self) -> None:
        _write_all(self.fd, self.held[: self.held_bytes])
        if not self.may_wait:
            self.held[: self.held_bytes] = bytes(self.held_bytes)
        self.held_bytes = 0

    def test(self, data: bytes) -> None:
        """Run the program once on this input, or on that in descriptor 0.

        Raises OSError when the machine cannot give what that takes.
        """
        if self.names is not None:
            self.file(0, data)
        if self.own_source:  # a script finds itself beside it
            with open("program.py", "wb") as file:
                file.write(self.own_source)
        out = self.file(_VALUE_FD if self.mode == MODULE else 1)
        self.judge(*self.wait(self.start([], out), self.limits), out)
        self.clean_scratch()

    def share(self, inputs: list[bytes]) -> bool:
        """Make all these calls in one process, and answer them. False: nothing is answered, make them one by one."""
        names = self.names
        calls = [_taken_apart(data) for data in inputs]
        if names is None or any(isinstance(call, int) for call, _ in calls):
            return False
        if not all(stateless.leaves_only_its_value(call, names) for call, _ in calls):
            return False
        cpu, asleep, *others = self.limits
        limits = Limits(min(cpu, _SHARED_SECONDS), min(asleep, _SHARED_SECONDS), *others)
        out = self.file(_VALUE_FD)
        killed_for, status, usage = self.wait(self.start(calls, out), limits)  # it has no name for a file
        cpu = usage.ru_utime + usage.ru_stime
        # By itself, a call that takes much memory or fails may be told for it.
        if killed_for or status or cpu > limits.cpu_seconds or usage.ru_maxrss * _RSS_UNIT > limits.memory_bytes // 4:
            return False
        records, at, data = [], 0, os.pread(out, min(os.fstat(out).st_size, limits.output_bytes), 0)
        while at + _RECORD.size <= len(data):
            outcome, size = _RECORD.unpack_from(data, at)
            at += _RECORD.size
            records.append((outcome, data[at : at + size]))
            at += size
        if (
            at != len(data)
            or len(records) != len(inputs)
            or {o for o, _ in records} - {ENDED, RUNTIME_ERROR, BAD_VALUE}
        ):
            return False
        for outcome, value in records:
            self.answer(outcome, int(outcome != ENDED), 1, cpu / len(records), value)
        return True

    def start(self, calls: list[tuple[Any, bytes]], out: int) -> int:
        """Fork a test process, which runs the program or makes the calls and writes to descriptor out: its id.

        Without calls, the input is in descriptor 0; a single call is compiled where no later test can find it.
        """
        self.page[:] = _CLEAN_PAGE
        self.running = pid = self.fork()
        if pid == 0:
            try:
                self.house.follow_parent()
                if self.house.tier == "limits":
                    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
                # flags, locks and owners belong to what was opened: a shared one would tell of an earlier test
                null = os.open("/dev/null", os.O_RDWR)
                given = b"" if calls or self.mode == MAIN else _read_exact(0, os.fstat(0).st_size)
                for number in (0, 1, 2) if self.mode == MODULE else (2,):
                    os.dup2(null, number)
                self.house.shut(max(2, out), self.limits.memory_bytes, self.limits.output_bytes + 1)
                if self.mode == MAIN:
                    _run_main(self.page, self.code, self.last_words)
                elif calls:
                    _run_calls(self.page, self.code, calls)
                else:
                    _run_call(self.page, self.code, given)
            finally:
                os._exit(99)
        return pid

    def file(self, number: int, data: bytes = b"") -> int:
        """A new file under this descriptor, read from its start: in memory, else nameless in the scratch folder.

        Each test has files of its own: a descriptor that two share has one offset.
        """
        if self.house.tier != "limits":
            fd = os.memfd_create("file", 0)
        else:
            fd = os.open("file", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.unlink("file")
        if data:
            _write_all(fd, data)
            os.lseek(fd, 0, 0)
        os.dup2(fd, number)
        os.close(fd)
        return number

    def wait(self, pid: int, limits: Limits) -> tuple[int, int, Any]:
        """Until the test process has ended, or has had its time: (why it was killed or 0, exit status, usage)."""
        house, started = self.house, time.monotonic()
        posix_only = house.tier == "limits"
        pause = min(_LOOK_SECONDS, limits.cpu_seconds, limits.asleep_seconds, limits.wall_seconds)
        killed_for, watch = 0, None
        while True:
            ended = _asked_again(pid, pause) if posix_only else _signal.sigtimedwait(_CHILD_ENDED, pause)
            if ended:
                done, status, usage = os.wait4(pid, os.WNOHANG)
                if done:
                    break
            wall = time.monotonic() - started
            watch = watch or walls.Watch(pid, posix_only)
            watch.look(wall)
            left = min(limits.cpu_seconds - watch.computed, limits.asleep_seconds - watch.asleep)
            left = min(left, limits.wall_seconds - wall)
            if left <= 0:
                killed_for = TIMEOUT
            elif watch.threads > walls.THREADS + 1:
                killed_for = FORBIDDEN
            elif house.disk_is_shared and not self.scratch_is_small():
                killed_for = OUTPUT_LIMIT
            if killed_for:
                os.kill(pid, 9)
                _, status, usage = os.wait4(pid, 0)
                break
            pause = _LOOK_SECONDS if house.disk_is_shared else min(max(left, 0.005), 0.25)
        self.running = 0
        if posix_only:
            with _Unless(ProcessLookupError, PermissionError):  # that nothing is left of it
                os.killpg(pid, 9)
        return killed_for, os.waitstatus_to_exitcode(status), usage

    def judge(self, killed_for: int, status: int, usage: Any, out: int) -> None:
        limits = self.limits
        cpu = usage.ru_utime + usage.ru_stime
        size = os.fstat(out).st_size
        hint = self.page[_HINT]
        if killed_for:
            outcome = killed_for
        elif cpu > limits.cpu_seconds:
            outcome = TIMEOUT
        elif size > limits.output_bytes:
            outcome = OUTPUT_LIMIT
        elif status == -9 and self.house.tier != "limits":  # it cannot send itself this, so somebody else has
            raise _Killed("a test process was killed from outside (is the machine out of memory?)")
        elif status == 0:
            outcome = ENDED
        elif hint == FAULT:  # no space: its own folder is full, or the disk of the machine
            if self.house.disk_is_shared and os.statvfs(".").f_bavail * os.statvfs(".").f_bsize < walls.SCRATCH_BYTES:
                raise OSError(errno.ENOSPC, "the disk that holds the scratch folder is full")
            outcome = OUTPUT_LIMIT
        elif hint in (MEMORY_LIMIT, MISSING_MODULE, FORBIDDEN, BAD_VALUE, SYNTAX_ERROR):
            outcome = hint
        elif usage.ru_maxrss * _RSS_UNIT > 0.9 * limits.memory_bytes:
            outcome = MEMORY_LIMIT
        else:
            outcome = RUNTIME_ERROR
        self.answer_with_file(outcome, status, cpu, out, min(size, limits.output_bytes))

    def scratch_is_small(self) -> bool:
        """Is all that the program has written there within what it may write, as far as one can see in passing?"""
        size, count, top = 0, 0, os.open(".", os.O_RDONLY)
        levels = [["."]]  # folders not looked at yet; down and back again, since a path may be too long to be said
        try:
            while levels and count <= walls.SCRATCH_FILES and size <= walls.SCRATCH_BYTES:
                if not levels[-1]:
                    levels.pop()
                    with _Unless(OSError):  # all this is being changed under our eyes
                        os.chdir("..")
                    continue
                below: list[str] = []
                with _Unless(OSError):
                    os.chdir(levels[-1].pop())
                    levels.append(below)
                    with os.scandir(".") as entries:
                        for entry in entries:
                            count += 1
                            if entry.is_dir(follow_symlinks=False):
                                below.append(entry.name)
                            else:
                                size += entry.stat(follow_symlinks=False).st_blocks * 512
        finally:
            os.fchdir(top)
            os.close(top)
        return count <= walls.SCRATCH_FILES and size <= walls.SCRATCH_BYTES

    def clean_scratch(self) -> None:
        """Empty the folder, whatever depth and whatever rights were given to what is in it."""
        if self.house.tier == "limits":  # where a program may do this to the folder itself
            if self.folder < 0:
                self.folder = os.open(".", os.O_RDONLY)
            os.fchmod(self.folder, 0o700)
            if os.fstat(self.folder).st_nlink == 0:
                raise _Killed("its scratch folder is gone")  # a fresh worker has a fresh one
        if not os.listdir("."):
            return
        top = os.open(".", os.O_RDONLY)
        try:  # one folder at a time, downwards and back: no path grows long, and no level is looked at twice
            levels = [_emptied_of_files()]
            while levels:
                if levels[-1]:
                    os.chmod(levels[-1][-1], 0o700)
                    os.chdir(levels[-1][-1])
                    levels.append(_emptied_of_files())
                else:
                    levels.pop()
                    if levels:
                        os.chdir("..")
                        os.rmdir(levels[-1].pop())
        finally:
            os.fchdir(top)
            os.close(top)


def _emptied_of_files() -> list[str]:
    """Remove all files of the current folder; what is left are the names of folders."""
    folders = []
    with os.scandir(".") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name)
    return folders


_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


_MEMORY_AT_START = resource.getrlimit(resource.RLIMIT_AS)[1]


def _limit_softly(memory: int) -> None:
    """Bound this process for a while: a hard limit could not be lifted again."""
    with _Unless(ValueError, OSError):  # a system that does not bound address space; the self-test has found that out
        resource.setrlimit(resource.RLIMIT_AS, (memory, _MEMORY_AT_START))


_CHILD_ENDED = {_signal.SIGCHLD}


def _asked_again(pid: int, seconds: float) -> bool:
    """Has the child ended? Asked again and again, which works everywhere."""
    until, pause = time.monotonic() + seconds, 0.0005
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)
    return True


# ── worker: warm, walled in, and without a memory ────────────────────────────────────────────────────────────────────
def serve(fd: int, tier: str, scratch: str) -> None:
    """The life of a worker process. It ends when the host's end of the socket does."""
    try:
        house = walls.Walls(tier, scratch, fd)
    except (walls.Denied, OSError) as why:
        text = f"{why}".encode()
        _write_all(fd, _RESULT.pack(_MAGIC_RESULT, FAULT, 0, 0, 0.0, len(text)) + text)
        return
    stateless.learn()
    for name in _ALWAYS_WARM:
        __import__(name)
    import _thread

    _thread.stack_size(8 << 20)  # else every thread gets as much as the main one, address space for three
    sys.set_int_max_str_digits(0)
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    builtins.help = __import__("_sitebuiltins")._Helper()
    sys.argv = ["program.py"]
    page = mmap.mmap(-1, 4096)
    gc.collect()
    gc.freeze()
    walls.trim()
    _write_all(fd, _HELLO)
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    hung_up = select.poll()
    hung_up.register(fd, 0)
    while True:
        if ready.poll()[0][1] & select.POLLHUP:
            os._exit(0)  # the host has gone; what else comes is for the program process alone to read
        page[:] = _EMPTY_PAGE
        try:
            pid = (os.fork if house.tier == "limits" else walls.fork)()
        except OSError as why:
            text = f"no process for a program: {why}".encode()
            _write_all(fd, _RESULT.pack(_MAGIC_RESULT, FAULT, 0, 0, 0.0, len(text)) + text)
            os._exit(1)
        if pid == 0:
            try:
                house.follow_parent()
                _ProgramProcess(fd, house, page).run()
            except BaseException:
                os._exit(1)
            os._exit(0)
        status = _wait_or_hang_up(pid, hung_up, house)
        if status == 0:
            continue
        if page[0]:
            os._exit(1)
        _answer_for_the_dead(fd, house, page, status)


def _wait_or_hang_up(pid: int, hung_up: select.poll, house: walls.Walls) -> int:
    """The exit status of the program process; or, when the host hangs up, the end of it all."""
    ended = -1
    if house.tier != "limits":
        ended = os.pidfd_open(pid)
        hung_up.register(ended, select.POLLIN)
    while True:
        news = hung_up.poll(None if ended >= 0 else 2)
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if any(which != ended for which, _ in news):
            os.kill(pid, _signal.SIGTERM)
            if not _asked_again(pid, 1.0):
                os.kill(pid, _signal.SIGKILL)
            with _Unless(ChildProcessError, ProcessLookupError):
                if house.tier == "full":
                    os.kill(-1, _signal.SIGKILL)  # all that is left in our process space
                while True:  # in strict a test process dies with its parent, and comes to us
                    os.waitpid(-1, 0)
            os._exit(0)
    if ended >= 0:
        hung_up.unregister(ended)
        os.close(ended)
    return os.waitstatus_to_exitcode(status)


def _answer_for_the_dead(fd: int, house: walls.Walls, page: mmap.mmap, status: int) -> None:
    """The program did not survive being compiled: say so for each of its tests."""
    stand_in = _ProgramProcess(fd, house, page)
    stand_in.code = {-_signal.SIGXCPU: TIMEOUT, -_signal.SIGKILL: FAULT}.get(status, SYNTAX_ERROR)
    if stand_in.code == FAULT:
        os._exit(1)
    stand_in.limits = Limits()
    stand_in.serve()


# ── host: the other end ──────────────────────────────────────────────────────────────────────────────────────────────
class WorkerLost(Exception):
    """The worker died or spoke out of turn. Its program may be tried once more on a fresh one."""


class KilledOutside(WorkerLost):
    """What runs under the worker was killed by somebody else, most likely for want of memory."""


class SandboxFault(Exception):
    """The machine could not run the program: no process, no memory, no disk, no walls. The text says which."""


_START = """
import sys
sys.path.insert(0, sys.argv[1])
from grading import sandbox
del sys.path[0]
sandbox.serve(int(sys.argv[2]), *sys.argv[3:])
"""
# A deep recursion needs a deep stack, and how deep it can get is settled when a process starts.
_DEEP_STACK = 'ulimit -S -s 1000000 2>/dev/null || ulimit -S -s "$(ulimit -H -s)"; exec "$@"'


class Worker:
    """One worker process and the host's end of its socket. An asyncio protocol; use from one task at a time."""

    def __init__(self, tier: str, scratch: str) -> None:
        self.tier, self.scratch = tier, scratch
        self.process: subprocess.Popen[bytes] | None = None
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.begun = b""  # a program that has not gone out yet
        self.results: deque[Output] = deque()
        self.up = self.lost = False
        self.why = ""
        self.waiter: asyncio.Future[None] | None = None
        self.writable: asyncio.Future[None] | None = None
        self.held_bytes = 0

    async def start(self) -> None:
        """Raises SandboxFault when the process cannot be started or the tier is denied."""
        import asyncio
        import socket
        import subprocess

        ours, theirs = socket.socketpair()
        python = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
        home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        command = [python, "-S", "-s", "-P", "-B", "-c", _START, home, str(theirs.fileno()), self.tier, self.scratch]
        try:
            os.makedirs(self.scratch, mode=0o700, exist_ok=True)
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", _DEEP_STACK, "sh", *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], start_new_session=True, cwd="/",
                env={"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "1", "LD_BIND_NOW": "1"},
            )  # fmt: skip
        except OSError as why:
            ours.close()
            raise SandboxFault(f"a worker process cannot be started: {why}") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        protocol: Any = self  # by its methods, not by its class: the worker imports this file without asyncio
        await asyncio.get_running_loop().create_unix_connection(lambda: protocol, sock=ours)
        while not self.up:
            if self.results:
                raise SandboxFault(self.results.popleft().stdout.decode("utf-8", "replace"))
            if self.lost:
                raise SandboxFault("a worker process ended before it was ready")
            await self._news()

    # what asyncio calls
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self._take()
        self._wake()
        if self.held_bytes > 64 << 20 and self.transport:
            self.transport.pause_reading()  # until the caller has caught up

    def eof_received(self) -> None:
        self.lost = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._wake()

    def pause_writing(self) -> None:
        import asyncio

        self.writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self.writable and not self.writable.done():
            self.writable.set_result(None)
        self.writable = None

    def _wake(self) -> None:
        if self.waiter and not self.waiter.done():
            self.waiter.set_result(None)
        if self.lost:
            self.resume_writing()

    def _take(self) -> None:
        """Cut the bytes that have arrived into results."""
        at, buffer = 0, self.buffer
        if not self.up and bytes(buffer[:4]) == _HELLO:
            self.up, at = True, 4
        while len(buffer) - at >= _RESULT.size:
            magic, outcome, status, ran, cpu, size = _RESULT.unpack_from(buffer, at)
            if magic != _MAGIC_RESULT or outcome >= len(OUTCOMES):
                self.lost, self.why = True, "it spoke out of turn"
                break
            if len(buffer) - at - _RESULT.size < size:
                break
            at += _RESULT.size
            stdout = bytes(memoryview(buffer)[at : at + size])
            at += size
            self.results.append(Output(stdout, status if ran else None, OUTCOMES[outcome], cpu))
            self.held_bytes += size
        if at:
            del buffer[:at]

    async def _news(self) -> None:
        import asyncio

        self.waiter = asyncio.get_running_loop().create_future()
        try:
            await self.waiter
        finally:
            self.waiter = None

    # what the grader calls
    def begin(self, program: bytes, mode: int, limits: Limits) -> None:
        """Take a program, which goes out with what follows: send() any number of times, the last one with last."""
        limits = limits._replace(wall_seconds=limits.wall_seconds or 10 * limits.cpu_seconds)
        self.begun = _JOB.pack(_MAGIC_JOB, mode, *limits, len(program)) + program

    def _write(self, data: bytes) -> None:
        if self.lost or self.transport is None:
            raise WorkerLost(self.why or "the worker has died")
        self.transport.write(data)

    async def send(self, inputs: Sequence[bytes], last: bool = False) -> None:
        """Send inputs, one test each, as fast as the worker takes them. last: the next will be another program."""
        small, self.begun = [self.begun], b""
        size = 0
        for data in inputs:
            small += (_TEST.pack(len(data)), data)
            size += len(data)
            if size > 1 << 16:
                self._write(b"".join(small))
                small, size = [], 0
                if self.writable:
                    await self.writable
        if last:
            small.append(_TEST.pack(_END))
        self._write(b"".join(small))

    async def receive(self) -> Output:
        """The next result. Raises WorkerLost, or SandboxFault when the worker says that the machine gave out."""
        while not self.results:
            if self.lost:
                raise WorkerLost(self.why or "the worker has died")
            await self._news()
        output = self.results.popleft()
        self.held_bytes -= len(output.stdout)
        if self.transport and self.held_bytes < 1 << 20 and not self.transport.is_reading() and not self.lost:
            self.transport.resume_reading()
        if output.outcome == "fault":
            raise (KilledOutside if output.status else SandboxFault)(output.stdout.decode("utf-8", "replace"))
        return output

    def kill(self) -> None:
        """End the worker and all that runs under it, from the leaves up: it does so when its socket closes."""
        self.lost = True
        if self.transport:
            self.transport.abort()

    def wait(self) -> None:
        """After kill(): until the process is gone. Blocks for milliseconds."""
        import subprocess

        if self.process:
            try:
                self.process.wait(3.0)
            except subprocess.TimeoutExpired:
                with _Unless(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, 9)
                self.process.kill()
                self.process.wait()
