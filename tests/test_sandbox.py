"""The sandbox from below: the protocol, values as bytes, the filters, the walls, and how a worker ends.

What programs try in there is in test_attacks.py, what they may do in test_right_programs.py.
"""

import ast
import asyncio
import collections
import datetime
import decimal
import errno
import fractions
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import types
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading import plain, protocol, sandbox, supervise, walls

ROOT = Path(__file__).parent.parent
BEST = "best"  # of the tiers that this machine offers
TIERS = [pytest.param("full"), *(pytest.param(tier, marks=pytest.mark.slow) for tier in walls.TIERS[1:])]


def worker_in(tier, work):
    """Run `await work(worker)` with a worker of that tier; skip where the machine does not offer it."""

    async def main():
        refused = []
        for one in walls.TIERS if tier == BEST else (tier,):
            folder = tempfile.mkdtemp(prefix="sandbox-test-")
            os.chmod(folder, 0o711)
            worker = sandbox.WorkerProcess(one, f"{folder}/0")
            try:
                try:
                    await worker.start()
                except sandbox.SandboxFault as why:
                    refused.append(f"tier {one}: {why}")
                    continue
                return await asyncio.wait_for(work(worker), 60)
            finally:
                worker.kill()
                await asyncio.to_thread(worker.wait)
                shutil.rmtree(folder, ignore_errors=True)
        pytest.skip("; ".join(refused))

    return asyncio.run(main())


async def outputs(worker, program, inputs, mode=protocol.MAIN, **limits):
    worker.begin(program.encode(), mode, sandbox.Limits(**limits))
    await worker.send(inputs)
    results = [await worker.receive() for _ in inputs]
    await worker.send([], last=True)
    return results


def call(piece, given=b""):
    text = piece.encode()
    return struct.pack("<I", len(text)) + text + given


# ── values as bytes ──────────────────────────────────────────────────────────────────────────────────────────────────
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.timedeltas()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(SCALARS, inner, max_size=4)
        | st.sets(SCALARS, max_size=4)
        | st.frozensets(SCALARS, max_size=4)
        | st.lists(inner, max_size=4).map(collections.deque)
        | st.dictionaries(SCALARS, inner, max_size=4).map(collections.OrderedDict)
        | st.dictionaries(SCALARS, st.integers(), max_size=4).map(collections.Counter)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_a_value_comes_back_as_it_went(value):
    again = plain.decode(plain.encode(value))
    assert again == value and type(again) is type(value)
    assert plain.encode(again) == plain.encode(value)


def test_values_of_other_shapes():
    def back(value):
        return plain.decode(plain.encode(value))

    point = collections.namedtuple("point", "x y")
    assert back(point(1, 2)) == (1, 2) == point(1, 2)
    assert back(PointOfMyOwn(1, 2)) == (1, 2) == PointOfMyOwn(1, 2)
    assert back(collections.defaultdict(list, a=[1])) == {"a": [1]}
    assert back(range(3, 9, 2)) == range(3, 9, 2)
    assert back({1: 2}.keys()) == {1} and back({1: 2}.items()) == {(1, 2)} and list(back({1: 2}.values())) == [2]
    ordered = collections.OrderedDict({1: 2})
    assert back(ordered.keys()) == {1} and back(ordered.items()) == {(1, 2)} and list(back(ordered.values())) == [2]
    assert back(collections.ChainMap({1: 2}, {1: 3, 4: 5})) == {1: 2, 4: 5}
    numbers = {1: 2, 2: 1}
    for iterator in (
        iter([1, 2]), (x for x in (1, 2)), map(int, "12"), filter(None, [1, 2]), reversed([2, 1]), reversed((2, 1)),
        iter(bytearray(b"\1\2")), iter(collections.deque([1, 2])), reversed(collections.deque([2, 1])),
        iter([0, 2, 1].pop, 0), iter(collections.OrderedDict(numbers)), reversed(collections.OrderedDict({2: 1, 1: 2})),
        iter(numbers.keys()), reversed({2: 1, 1: 2}.keys()), reversed(numbers.values()),
        iter(collections.OrderedDict({1: 1, 2: 2}).values()), reversed(collections.OrderedDict({1: 2, 2: 1}).values()),
    ):  # fmt: skip
        again = back(iterator)
        assert again != [1, 2] and list(again) == [1, 2]  # as Python has it: an iterator equals no list
    assert back(bytearray(b"x")) == b"x" and back(collections.deque([1, 2, 3], 2)).maxlen == 2
    assert list(back(iter("\u20ac\xe9"))) == ["\u20ac", "\xe9"]
    assert list(back(iter(range(1 << 99, 1 + (1 << 99))))) == [1 << 99]
    assert list(back(reversed(ordered.items()))) == list(back(reversed({1: 2}.items()))) == [(1, 2)]
    for zone in (
        datetime.UTC,
        datetime.timezone(datetime.timedelta(seconds=-3661)),
        datetime.timezone(datetime.UTC.utcoffset(None), "here"),
    ):
        assert back(zone) == zone and repr(back(zone)) == repr(zone)
    nan = back(float("nan"))
    assert nan != nan and str(back(decimal.Decimal("sNaN"))) == "sNaN"
    assert back(-0.0) == 0.0 and back(10**5000) == 10**5000
    assert back("\ud800\x00") == "\ud800\x00"
    assert back(fractions.Fraction(1, 3)) == fractions.Fraction(1, 3)
    assert back(datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)).tzinfo is not None


class Liar(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Counter(collections.Counter):  # the name alone is not enough
    __module__ = "collections"


class PointOfMyOwn(collections.namedtuple("PointOfMyOwn", "x y")):
    def __getitem__(self, at):
        return 7


class PointLiar(collections.namedtuple("PointLiar", "x")):
    def __eq__(self, other):
        return True

    __hash__ = tuple.__hash__


@pytest.mark.parametrize(
    "value",
    [
        Liar(3), [Liar(3)], {Liar(3): 1}, {1: Liar(3)}, (Liar(3),), Counter("aa"), PointLiar(1), object(), int, len,
        ..., collections.deque([Liar(3)]), collections.Counter({"a": Liar(3)}), collections.OrderedDict(a=Liar(3)),
        type("str", (str,), {})("x"), slice(1), memoryview(b"x"), re.compile("x"), sys, ValueError("x"),
    ],
)  # fmt: skip
def test_what_is_not_plain_stays_where_it_is(value):
    with pytest.raises(plain.BadValue):
        plain.encode(value)


def test_too_deep_too_large_and_endless(monkeypatch):
    monkeypatch.setattr(plain, "VALUE_BYTES", 1 << 14)  # the same with less of everything
    deep = []
    for _ in range(5000):
        deep = [deep]
    loop = []
    loop.append(loop)
    wide = []
    for _ in range(60):
        wide = [wide, wide]
    for value in (deep, loop, wide, "x" * (1 << 20), (x for x in iter(int, 1))):
        with pytest.raises(plain.BadValue):
            plain.encode(value)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(VALUES, st.data())
def test_broken_bytes_are_an_error_and_nothing_worse(value, data):
    whole = bytearray(plain.encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    whole = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        plain.decode(whole, plain_only=True)
    except ValueError:
        return
    assert set(whole[:1]) <= set(b"NTFifsbBlt")


def test_plain_only_leaves_out_what_can_be_made_slow():
    for value in ({1}, {1: 2}, frozenset(), decimal.Decimal(1), fractions.Fraction(1, 2), [{1}], iter([])):
        with pytest.raises(ValueError, match="no value"):
            plain.decode(plain.encode(value), plain_only=True)
    many = b"l" + struct.pack("<I", 0xFFFFFFFF)
    with pytest.raises(ValueError, match=r"no value|cut off"):
        plain.decode(many, plain_only=True)


# ── the filters, read by an interpreter of their own ─────────────────────────────────────────────────────────────────
def judge(steps, number, arch, args=(0,) * 6):
    """What the kernel would do: run a filter's program on one system call, as its manual describes the machine."""
    call = struct.pack("=iIQ6Q", number, arch, 0, *args)
    at, a = 0, 0
    for _ in range(1000):
        operation, if_true, if_false, operand = struct.unpack_from("=HBBI", steps, at * 8)
        at += 1
        if operation == 0x20:
            (a,) = struct.unpack_from("=I", call, operand)
        elif operation == 0x06:
            return operand
        else:
            if operation == 0x54:
                a &= operand
                continue
            truth = {0x15: a == operand, 0x35: a >= operand, 0x45: bool(a & operand)}[operation]
            at += if_true if truth else if_false
    raise AssertionError("a filter has no end")


ALLOW, REFUSE, KILL, NOT_THERE, NOT_SUPPORTED = 0x7FFF0000, 0x50001, 0x80000000, 0x50026, 0x5005F
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request):
    return request.param


def both_filters(machine, disk_is_shared=True):
    outer = walls._outer_filter(machine, ARCH[machine]).code.raw
    inner = walls._inner_filter(machine, disk_is_shared).code.raw
    return outer, inner


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine not in walls.MACHINE, reason="filters are Linux's")
def test_what_the_filters_allow(machine):
    outer, inner = both_filters(machine)
    arch = ARCH[machine]
    allowed, judged, trusted = (walls.numbers(t, machine) for t in (walls.ALLOWED, walls.JUDGED, walls.TRUSTED))
    setting_up = walls.numbers(walls.SETTING_UP, machine)
    for number in range(walls._NEWER):
        wanted = ALLOW if number in {*allowed.values(), *judged.values(), *trusted.values()} else REFUSE
        if number == setting_up["clone3"]:
            wanted = NOT_THERE
        assert judge(outer, number, arch) == wanted, number
        if number not in judged.values():
            assert judge(inner, number, arch) == (REFUSE if number in trusted.values() else ALLOW), number
    assert judge(outer, 0, 0x40000003) == KILL  # another machine's numbers (32-bit calls on x86-64)
    for number in (walls._NEWER, 500, 0x40000000, 0x40000001, 0xFFFFFFFF):
        assert judge(outer, struct.unpack("=i", struct.pack("=I", number))[0], arch) == NOT_THERE
    for name in (
        "ptrace",
        "execve",
        "socket",
        "process_vm_readv",
        "chown",
        "setxattr",
        "shmget",
        "mq_open",
        "io_uring_setup",
        "sendmsg",
        "sendmmsg",
        "connect",
        "bind",
    ):
        assert name not in {*allowed, *judged, *trusted}


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine not in walls.MACHINE, reason="filters are Linux's")
def test_what_the_inner_filter_judges_by_arguments(machine):
    _, inner = both_filters(machine)
    arch, number, me = ARCH[machine], walls.numbers(walls.JUDGED, machine), walls._PID

    def verdict(name, *args):
        return judge(inner, number[name], arch, (*args, *(0,) * (6 - len(args))))

    thread = 0x3D0F00
    assert verdict("clone", thread) == ALLOW
    for flags in (17, 0, 0x4011, 0x10000000, thread & ~0x10000, thread & ~0x400):  # fork, vfork, a namespace, own files
        assert verdict("clone", flags) == REFUSE
    for name, at in (("kill", 1), ("tkill", 1), ("tgkill", 2)):
        for target in (me, 1, 0, me + 1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, (-me) % 2**64):
            for sent in (signal.SIGTERM, signal.SIGKILL, signal.SIGALRM):
                args = [target, 0, 0]
                args[at] = sent
                wanted = ALLOW if target == me and sent != signal.SIGKILL else REFUSE
                assert verdict(name, *args) == wanted, (name, target, sent)
    some, high, none = 0x7FFF12345678, 0x7FFF00000000, 0
    assert verdict("prlimit64", 0, 7, some) == verdict("prlimit64", me, 7, some) == ALLOW
    assert verdict("prlimit64", 0, 0, none) == verdict("prlimit64", me, 0, none, some) == ALLOW
    for new in (some, high, 1):
        assert verdict("prlimit64", 0, 0, new) == verdict("prlimit64", me, 0, new) == REFUSE
    assert verdict("setrlimit", 0, some) == REFUSE and verdict("setrlimit", 3, some) == ALLOW
    assert verdict("prlimit64", 1, 7) == verdict("prlimit64", me + 1, 7) == REFUSE
    assert verdict("prctl", 15) == ALLOW
    for option in (1, 4, 22, 24, 36, 38, 59):  # parent-death signal, dumpable, seccomp, capabilities, subreaper …
        assert verdict("prctl", option) == REFUSE
    assert verdict("socketpair", 1) == ALLOW
    assert verdict("socketpair", 2) == verdict("socketpair", 16) == REFUSE
    assert verdict("sendto", 5, some, 9, 0, 0, 0) == verdict("sendto", 5, some, 9, 0x4000, 0, 110) == ALLOW
    assert {verdict("sendto", 5, some, 9, 0, there, 110) for there in (some, high, 1)} == {REFUSE}
    assert {verdict("close_range", 3, 60, flags) for flags in (0, 4)} == {ALLOW}  # 4: mark them to be closed at an exec
    assert {verdict("close_range", 3, 60, flags) for flags in (2, 6, 2 | 1 << 32)} == {REFUSE}
    assert verdict("fallocate", 5, 0, 0, 1 << 20) == NOT_SUPPORTED
    assert judge(both_filters(machine, False)[1], number["fallocate"], arch, (5, 0, 0, 1 << 20, 0, 0)) == ALLOW
    for request in (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032, 1033, 1034):  # F_DUPFD … F_GET_SEALS
        assert verdict("fcntl", 5, request) == verdict("fcntl", 5, request | 7 << 32) == ALLOW
    assert {
        verdict("fcntl", 5, request) for request in (8, 10, 15, 1024, 1026, 1029, 1039, 1040, 2000, 1024 | 1 << 32)
    } == {REFUSE}
    kinds = {
        name: getattr(termios, name) for name in ("TCGETS", "TIOCGWINSZ", "FIONREAD", "FIONBIO", "FIOCLEX", "TIOCOUTQ")
    }
    for request in (*kinds.values(), 0x802C542A, 0x40049409, 0x4020940D):  # TCGETS2, FICLONE, FICLONERANGE
        assert verdict("ioctl", 5, request) == verdict("ioctl", 5, request | 7 << 32) == ALLOW
    for request in (0x8901, 0x8902, 0x8910, 0x8912, 0x8927, 0x89FF, 0x8B01, 0x40086602, 0x6609, 0):
        assert verdict("ioctl", 5, request) == REFUSE


def test_the_inner_filter_knows_the_process_it_is_put_around():
    """The stand-in for the program's own id must occur at no other place of the filter, and be found at all three."""
    if sys.platform != "linux" or os.uname().machine not in walls.MACHINE:
        pytest.skip("filters are Linux's")
    words = memoryview(walls._inner_filter("x86_64", True).code)[:-1].cast("B").cast("I")
    assert sum(word == walls._PID for word in words) == 4  # kill, tkill, tgkill, prlimit64


@pytest.mark.parametrize(
    ("machine", "header"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_numbers_of_system_calls_are_the_kernels(machine, header):
    if not os.path.exists(header):
        pytest.skip(f"no {header}")
    text = Path(header).read_text()
    known = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", text)}
    # calls that differ between 32 and 64 bits carry another name in the generic table
    known.update({name: int(number) for name, number in re.findall(r"#define __NR3264_(\w+) (\d+)", text)})
    known.setdefault("newfstatat", known.get("fstatat", -1))
    for table in (walls.ALLOWED, walls.JUDGED, walls.TRUSTED, walls.SETTING_UP):
        ours = walls.numbers(table, machine)
        assert ours == {name: known.get(name) for name in ours}
    both = [set(walls.numbers(t, machine)) for t in (walls.ALLOWED, walls.JUDGED, walls.TRUSTED, walls.SETTING_UP)]
    assert sum(map(len, both)) == len(set.union(*both))


# ── what the files promise about themselves ──────────────────────────────────────────────────────────────────────────
def test_nothing_in_the_sandbox_is_called_expected():
    for room in ("sandbox", *INSIDE):
        tree = ast.parse((ROOT / f"grading/{room}.py").read_text())
        names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not {name for name in names if "expect" in name.lower()}


INSIDE = ("worker", "supervise", "running", "scratch", "stateless", "plain", "protocol", "walls")


def test_a_worker_needs_the_inside_and_the_standard_library_alone():
    """And few modules of that: every test is a copy of what is in a worker's memory."""
    script = "import sys\nbefore = set(sys.modules)\nfrom grading import worker\nprint(*set(sys.modules) - before)"
    ran = subprocess.run([sys.executable, "-S", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    ours = {name for name in loaded if name.partition(".")[0] == "grading"}
    assert ours == {"grading", *(f"grading.{room}" for room in INSIDE)}
    assert {name.partition(".")[0] for name in loaded - ours} <= sys.stdlib_module_names
    assert not loaded & {"typing", "re", "enum", "asyncio", "contextlib", "signal", "subprocess", "socket", "inspect"}


# ── programs and inputs, outputs and outcomes ────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("tier", TIERS)
def test_bytes_in_bytes_out(tier):
    async def work(worker):
        echo = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
        big = random.Random(0).randbytes(3 << 20)
        return await outputs(worker, echo, [b"", b"abc\xff", big, b"z"]), big

    results, big = worker_in(tier, work)
    assert [r.stdout for r in results] == [b"", b"\xffcba", big[::-1], b"z"]
    assert {(r.outcome, r.status) for r in results} == {("ended", 0)}
    assert all(0 < r.cpu_seconds < 5 for r in results)


def test_one_program_after_another_and_what_each_is_called():
    async def work(worker):
        results = []
        for program, inputs in [
            ("print(1)", [b""]),
            ("print(", [b"", b""]),
            ("x = '\0'", [b""]),
            ("(" * 5000, [b""]),
            ("import sys; sys.exit(7)", [b""]),
            ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", [b""]),
            ("import numpy_is_not_here", [b""]),
            ("raise MemoryError", [b""]),
            ("open('/etc/passwd')", [b""]),
            ("import os; os.fork()", [b""]),
            ("print(__name__, input())", [b"2\n"]),
        ]:
            results.append([(r.outcome, r.status, r.stdout) for r in await outputs(worker, program, inputs)])
        return results

    results = worker_in("strict", work)
    assert results == [
        [("ended", 0, b"1\n")],
        [("syntax_error", None, b"")] * 2,
        [("syntax_error", None, b"")],
        [(results[3][0][0], None, b"")],
        [("runtime_error", 7, b"")],
        [("runtime_error", -15, b"")],
        [("missing_module", 1, b"")],
        [("memory_limit", 1, b"")],
        [("forbidden", 1, b"")],
        [("forbidden", 1, b"")],
        [("ended", 0, b"__main__ 2\n")],
    ]
    assert results[3][0][0] in ("syntax_error", "memory_limit")


@pytest.mark.parametrize("tier", TIERS)
def test_limits(tier):
    small = {
        "cpu_seconds": 0.2,
        "asleep_seconds": 0.3,
        "memory_bytes": 128 << 20,
        "output_bytes": 1 << 16,
        "timeouts": 0,
    }

    async def work(worker):
        names = {}
        for name, program in {
            "spin": "while True: pass",
            "sleep": "import time\ntime.sleep(5)",
            "stop": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
            "greedy": "x = []\nwhile True: x.append(bytearray(1 << 22))",
            "talk": "while True: print('x' * 1000)",
            "right": "print('x' * 60000)",
            "join": "import threading, time\nt = threading.Thread(target=time.sleep, args=(9,))\nt.start()",
        }.items():
            limits = {**small, "cpu_seconds": 5.0} if name == "greedy" else small  # pages take time
            names[name] = (await outputs(worker, program, [b""], **limits))[0]
        return names

    results = worker_in(tier, work)
    assert {name: r.outcome for name, r in results.items()} == {
        "spin": "timeout", "sleep": "timeout", "stop": "timeout", "greedy": "memory_limit", "talk": "output_limit",
        "right": "ended", "join": "timeout",
    }  # fmt: skip
    assert len(results["talk"].stdout) == 1 << 16
    assert results["spin"].cpu_seconds >= 0.19
    assert results["sleep"].cpu_seconds < 0.2


@pytest.mark.slow
def test_after_three_timeouts_nothing_more_is_run():
    async def work(worker):
        spin = "n = int(input())\nwhile n: pass\nprint(n)"
        inputs = [b"0", b"1", b"0", b"1", b"1", b"0", b"1"]
        few = await outputs(worker, spin, inputs, cpu_seconds=0.05)
        all_ = await outputs(worker, spin, inputs, cpu_seconds=0.05, timeouts=0)
        return [[r.outcome for r in run] for run in (few, all_)]

    e, t, n = "ended", "timeout", "not_run"
    assert worker_in("strict", work) == [[e, t, e, t, t, n, n], [e, t, e, t, t, e, t]]


@pytest.mark.parametrize("tier", TIERS)
def test_every_test_starts_clean(tier):
    program = """
import os, sys, random
print(sorted(os.listdir(".")), len(sys.modules), random.random(), hash("a"), os.getcwd() == os.path.realpath("."))
os.makedirs("a/b/c")
open("a/b/c/file", "w").write("x")
os.symlink("/etc", "link")
os.environ["LEFT"] = "1"
sys.left = 1
"""

    async def work(worker):
        first = await outputs(worker, program, [b""] * 3)
        return first + await outputs(worker, program + "#", [b""])

    results = worker_in(tier, work)
    assert len({r.stdout for r in results}) == 1 and results[0].stdout.startswith(b"[]")
    assert {r.outcome for r in results} == {"ended"}


def test_where_memory_cannot_be_kept_from_a_fork_it_is_overwritten(monkeypatch, tmp_path):
    monkeypatch.delattr("mmap.MADV_DONTFORK", raising=False)
    monkeypatch.chdir(tmp_path)
    ours, theirs = socket.socketpair()
    with ours, theirs, open("out", "w+b") as out:
        out.write(b"private" * 10)
        out.flush()
        enclosure = types.SimpleNamespace(tier="limits", disk_is_shared=True)
        process = supervise.ProgramProcess(theirs.fileno(), enclosure, bytearray(4096))
        ours.send(b"private" * 10)
        process.take(70)
        process.outbox.put_file(protocol.ENDED, 0, 0.0, out.fileno(), 70)
        process.answer(protocol.RUNTIME_ERROR, stdout=b"private")
        process.outbox.flush()
        assert ours.recv(1000).count(b"private") == 11
        assert not any(process.coming) and not any(process.outbox.held)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, supervise.COMING_BYTES, supervise.HELD_BYTES - protocol.RESULT.size, 1 << 20])
def test_inputs_and_outputs_of_any_size_come_through_whole(size):
    texts = [bytes(random.Random(size + extra).randbytes(size + extra)) for extra in range(3)]
    echo = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())"

    async def work(worker):
        return await outputs(worker, echo, [*texts, b"end"])

    assert [r.stdout for r in worker_in("strict", work)] == [*texts, b"end"]


@pytest.mark.slow
@pytest.mark.parametrize("tier", walls.TIERS)
def test_a_scratch_folder_of_any_shape_is_emptied(tier):
    """Deeper than any path may be long, without rights, with odd names."""
    program = """
import os
for _ in range(200):
    os.mkdir("d" * 50)
    os.chdir("d" * 50)
open("deep", "w").close()
"""
    second = "import os\nprint(os.listdir('.'))\nos.mkdir('no', 0)\nos.mkdir('\\n')\nopen('.hidden', 'w').close()"

    async def work(worker):
        one = await outputs(worker, program, [b""])
        return one + await outputs(worker, second, [b""] * 2)

    results = worker_in(tier, work)
    assert [(r.outcome, r.stdout) for r in results] == [("ended", b""), ("ended", b"[]\n"), ("ended", b"[]\n")]


def test_calls_leave_values_and_what_is_no_value_is_named():
    async def work(worker):
        program = (
            "calls = 0\ndef f(x):\n    global calls\n    calls += 1\n    return [x, calls]\nclass Foo: pass\nprint(1)"
        )
        pieces = [
            call("__value__ = f(1)"),
            call("__value__ = f(2)"),
            call("__value__ = Foo()"),
            call("__value__ = f()"),
        ]
        pieces += [call("import os\nos._exit(0)"), call("syntax error"), call("__value__ = __name__")]
        pieces += [call("__value__ = __given__['k']", plain.encode({"k": (1, 2)})), call("__value__ = input()")]
        return await outputs(worker, program, pieces, protocol.MODULE)

    results = worker_in("strict", work)

    def value(output):
        size = int.from_bytes(output.stdout[:4], "little")
        return plain.decode(output.stdout[4 : 4 + size]), output.stdout[4 + size :].decode()

    assert value(results[0]) == ([1, 1], "[1, 1]") and value(results[1]) == ([2, 1], "[2, 1]")
    assert (results[2].outcome, results[2].stdout) == ("bad_value", b"Foo")
    assert [r.outcome for r in results[3:6]] == ["runtime_error", "ended", "syntax_error"]
    assert results[4].stdout == b""
    assert value(results[6])[0] == "program" and value(results[7])[0] == (1, 2)
    assert results[8].outcome == "runtime_error"  # stdin is empty


def test_a_program_may_call_its_modules_as_ours_are_called():
    names = ("grading", "protocol", "walls", "worker")
    program = "".join(f"open('{name}.py', 'w').write('x = 42')\nimport {name}\nprint({name}.x)\n" for name in names)
    (result,) = worker_in(BEST, lambda worker: outputs(worker, program, [b""]))
    assert (result.outcome, result.stdout) == ("ended", b"42\n" * len(names))


# ── how workers end ──────────────────────────────────────────────────────────────────────────────────────────────────
def tree(pid):
    """All living descendants of a process."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(p) for p in children.read_text().split()]
    except OSError:
        return []
    return found + [below for one in found for below in tree(one)]


def gone(pids, seconds=5.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.02)
    return False


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
SPIN = "import signal\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\nwhile True: pass"


@linux
@pytest.mark.parametrize("tier", TIERS)
def test_hanging_up_in_the_middle_leaves_nobody(tier):
    async def work(worker):
        worker.begin(SPIN.encode(), protocol.MAIN, sandbox.Limits())
        await worker.send([b""])
        for _ in range(200):
            await asyncio.sleep(0.02)
            if len(tree(worker.process.pid)) >= (3 if tier == "full" else 2):
                break
        pids = [worker.process.pid, *tree(worker.process.pid)]
        worker.kill()
        await asyncio.to_thread(worker.wait)
        return pids

    pids = worker_in(tier, work)
    assert len(pids) >= (4 if tier == "full" else 3) and gone(pids)


@linux
@pytest.mark.parametrize("tier", TIERS[:2])
@pytest.mark.parametrize("which", ["worker", "host"])
def test_killing_any_of_them_leaves_nobody(tier, which):
    """The worker dies by SIGKILL, or the host does: whatever runs below goes too."""
    script = f"""
import asyncio, os, sys, tempfile
sys.path[:0] = [{str(ROOT)!r}]
from grading import protocol, sandbox
async def main():
    folder = tempfile.mkdtemp(prefix="sandbox-test-")
    os.chmod(folder, 0o711)
    worker = sandbox.WorkerProcess({tier!r}, folder + "/0")
    await worker.start()
    worker.begin({SPIN.encode()!r}, protocol.MAIN, sandbox.Limits(cpu_seconds=30))
    await worker.send([b""])
    await asyncio.sleep(0.3)
    print(worker.process.pid, folder, flush=True)
    try:
        await worker.receive()
    except sandbox.WorkerLost:
        print("lost", flush=True)
asyncio.run(main())
"""
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = host.stdout.readline().split()
        if not said:
            why = host.stderr.read()[-200:]
            assert "SandboxFault" in why, why
            pytest.skip(why)
        top = int(said[0])
        pids = [top, *tree(top)]
        assert len(pids) >= 3
        os.kill(host.pid if which == "host" else pids[1 if tier == "full" else 0], signal.SIGKILL)
        if which == "worker":
            assert host.stdout.readline() == "lost\n"
        assert gone(pids[1:])
    finally:
        host.kill()
        host.communicate()
        shutil.rmtree(said[1] if said else "/nonexistent", ignore_errors=True)


def test_a_worker_that_speaks_out_of_turn_is_given_up():
    for nonsense in (
        b"x" * 100,
        protocol.RESULT.pack(b"RES1", 99, 0, 0, 0.0, 0, 0),
        protocol.RESULT.pack(b"RES2", 0, 0, 0, 0.0, 0, 0),
    ):
        worker = sandbox.WorkerProcess("strict", "/nowhere")
        worker.up = True

        async def work(worker=worker, nonsense=nonsense):
            worker.data_received(protocol.RESULT.pack(b"RES1", 0, 0, 1, 0.5, 0, 2) + b"ok" + nonsense)
            assert (await worker.receive()).stdout == b"ok"
            with pytest.raises(sandbox.WorkerLost, match="out of turn"):
                await worker.receive()

        asyncio.run(work())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_results_are_the_same_however_the_bytes_arrive(stdouts, data):
    note = protocol.NOTE.pack(*[0] * 8) + b"KeyError\0KeyError"  # of every second one
    parts = [(o, note * (k % 2)) for k, o in enumerate(stdouts)]
    wire = b"UP01" + b"".join(
        protocol.RESULT.pack(b"RES1", len(n) and 1, 1, 1, 0.5, len(n), len(o)) + n + o for o, n in parts
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    worker = sandbox.WorkerProcess("strict", "/nowhere")
    for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        worker.data_received(wire[start:end])
    assert worker.up and [r.stdout for r in worker.results] == stdouts
    assert [r.raised.error for r in worker.results] == ["KeyError" if n else "" for _, n in parts]


def test_no_tier_but_the_named_ones_and_denials_are_faults(monkeypatch, tmp_path):
    async def start(tier):
        worker = sandbox.WorkerProcess(tier, str(tmp_path / "scratch"))
        try:
            await worker.start()
        finally:
            worker.kill()
            await asyncio.to_thread(worker.wait)

    def refuse(*args, **kwargs):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(walls, "PATIENCE", 0.05)
    with pytest.raises(sandbox.SandboxFault, match="cannot be started"):
        asyncio.run(start("strict"))


@linux
def test_where_namespaces_are_denied_full_says_so():
    """An ordinary user whose kernel allows no user namespaces gets a reason, not a weaker tier under the same name."""
    if os.geteuid() != 0:
        pytest.skip("needs root to take the right away")
    found = (os.path.realpath(p) for p in ("/usr/bin/python3", sys.executable) if os.path.exists(p))
    python = next((p for p in found if walls._can_be_read_by_anyone(p)), None)
    if python is None or subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode:
        pytest.skip("no Python of 3.11 or newer outside of private folders")
    folder = tempfile.mkdtemp(prefix="sandbox-test-")
    try:
        os.chmod(folder, 0o777)
        shutil.copytree(ROOT / "grading", f"{folder}/grading", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        script = (
            "import asyncio, os, sys\n"
            "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
            "os.setgroups([]); os.setresgid(54321, 54321, 54321); os.setresuid(54321, 54321, 54321)\n"
            f"sys.path.insert(0, {folder!r})\n"
            "from grading import sandbox\n"
            "async def main():\n"
            "    for tier in ('full', 'strict'):\n"
            f"        worker = sandbox.WorkerProcess(tier, {folder!r} + '/' + tier)\n"
            "        try:\n"
            "            await worker.start()\n"
            "            print(tier, 'up')\n"
            "        except sandbox.SandboxFault as why:\n"
            "            print(tier, why)\n"
            "        worker.kill()\n"
            "        await asyncio.to_thread(worker.wait)\n"
            "asyncio.run(main())\n"
        )  # fmt: skip
        # the count that is set to nought is that of a user namespace made for the purpose
        ran = subprocess.run(
            ["unshare", "--user", "--map-auto", "--map-root-user", python, "-c", script], capture_output=True, text=True
        )
        if ran.returncode:
            pytest.skip(f"no user namespace with several users here: {ran.stderr[-200:]}")
        full, strict = ran.stdout.splitlines()
        assert full.startswith("full namespaces:") and strict == "strict up"
    finally:
        shutil.rmtree(folder)


def test_limits_do_not_hold_root_and_say_so():
    if os.geteuid() != 0 or walls._can_be_read_by_anyone(os.path.realpath(os.__file__)):
        pytest.skip("another user can run this Python, so limits takes another user")

    async def start():
        folder = tempfile.mkdtemp(prefix="sandbox-test-")
        worker = sandbox.WorkerProcess("limits", folder)
        try:
            await worker.start()
        finally:
            worker.kill()
            await asyncio.to_thread(worker.wait)
            shutil.rmtree(folder, ignore_errors=True)

    with pytest.raises(sandbox.SandboxFault, match="ordinary user"):
        asyncio.run(start())


# ── a machine that is short of something, for a moment ───────────────────────────────────────────────────────────────
def test_what_the_machine_has_no_room_for_is_tried_again(monkeypatch):
    tries = []

    def work(code):
        tries.append(code)
        if len(tries) < 4:
            raise OSError(code, os.strerror(code))
        return "done"

    for code in (errno.EAGAIN, errno.ENOSPC):
        tries.clear()
        assert walls.patiently(lambda code=code: work(code)) == "done"
    for code, patience in ((errno.EPERM, 5.0), (errno.EAGAIN, 0.0)):
        tries.clear()
        monkeypatch.setattr(walls, "PATIENCE", patience)
        with pytest.raises(OSError, match=r"permitted|unavailable"):
            walls.patiently(lambda code=code: work(code))
        assert len(tries) < 3


def test_a_worker_is_started_once_there_is_a_process_for_it(monkeypatch):
    real, refused = subprocess.Popen, []

    def first_refuse(*args, **kwargs):
        if len(refused) < 3:
            refused.append(1)
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return real(*args, **kwargs)

    monkeypatch.setattr(subprocess, "Popen", first_refuse)
    (result,) = worker_in("strict", lambda worker: outputs(worker, "print(input())", [b"1\n"]))
    assert result.stdout == b"1\n" and len(refused) == 3


NO_ROOM = {  # what a program says that another has left nothing for, and what it is called when it is its own fault
    "thread": ('raise RuntimeError("can\'t start new thread")', "threads_are_shared", "runtime_error"),
    "disk": ("raise OSError(28, 'No space left on device')", "disk_is_shared", "output_limit"),
}


@pytest.mark.parametrize("what", NO_ROOM)
@pytest.mark.parametrize("shared", [True, False])
def test_a_program_without_room_is_run_again_where_others_could_have_taken_it(monkeypatch, what, shared):
    """It says so at first; its input is all there again, and what it has left behind is not."""
    says, which, otherwise = NO_ROOM[what]
    tell = f"walls.Walls.{which} = property(lambda self: {shared}, lambda self, value: None)\n"
    tell += "from grading import supervise\nsupervise._PAUSES = (0.01, 0.02, None)\n"
    monkeypatch.setattr(
        sandbox, "_START", sandbox._START.replace("worker.serve", f"from grading import walls\n{tell}worker.serve")
    )
    # a lie that counts: the file is the one in which the input came, and outlives a try
    program = f"""
import os, sys
text = os.pread(0, 100, 0).decode()
tries = text.count("again") + 1
print(os.listdir("."), sys.stdin.read().count("\\n"), tries)
open("left", "w").close()
if tries < int(text.split()[0]):
    os.pwrite(0, b"again\\n", len(text))
    {says}
"""

    async def work(worker):
        return await outputs(worker, program, [b"3 \n", b"9 \n", b"1 \n"])

    results = worker_in("strict", work)
    right = ("ended", b"[] 3 3\n") if shared else (otherwise, b"[] 1 1\n")
    assert [(r.outcome, r.stdout) for r in results] == [
        right, (otherwise, b"[] 3 3\n" if shared else b"[] 1 1\n"), ("ended", b"[] 1 1\n")
    ]  # fmt: skip


@linux
def test_a_stop_tells_the_parent_nothing():
    """Else a program could choose when it is looked at, and sleep in between."""
    script = """
import os, signal, time
from grading import walls
walls.tell_only_of_deaths()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
child = os.fork()
if child == 0:
    for _ in range(5):
        os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(7)
for _ in range(5):
    os.waitpid(child, os.WUNTRACED)
    assert signal.sigtimedwait({signal.SIGCHLD}, 0.02) is None
    os.kill(child, signal.SIGCONT)
assert signal.sigtimedwait({signal.SIGCHLD}, 5)
assert os.waitpid(child, 0) == (child, 7 << 8)
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=20)


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def spinning(core):
    program = f"import os\nos.sched_setaffinity(0, [{core}])\nwhile 1: pass"
    return subprocess.Popen([sys.executable, "-S", "-c", program])


@linux
@pytest.mark.slow
def test_waiting_for_a_processor_is_not_sleep():
    """Eight spinning processes on one core: each waits most of the time, and none of them is called asleep."""
    core = min(os.sched_getaffinity(0))
    started = time.monotonic()
    pids = [
        subprocess.Popen([sys.executable, "-S", "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile 1: pass"])
        for _ in range(8)
    ]
    sleeper = subprocess.Popen([sys.executable, "-S", "-c", "import time\ntime.sleep(60)"])
    try:
        time.sleep(1.5)
        spinners = [walls.Watch(one.pid) for one in pids]
        asleep = walls.Watch(sleeper.pid)
        for _ in range(5):
            time.sleep(0.1)
            for watch in (*spinners, asleep):
                watch.look(time.monotonic() - started)
        assert all(watch.asleep == 0.0 and 0 < watch.computed < 1.5 for watch in spinners)
        assert sum(sum(watch.waited.values()) for watch in spinners) > sum(watch.computed for watch in spinners)
        assert asleep.asleep > 1.0
        if shutil.which("ps"):
            by_ps, spinner = walls.Watch(sleeper.pid), walls.Watch(pids[0].pid)
            by_ps.linux = spinner.linux = False
            for seconds in (1.0, 2.0):
                by_ps.look(seconds)
                spinner.look(seconds)
            assert by_ps.asleep == pytest.approx(2.0, abs=0.1) and spinner.asleep == 0.0
    finally:
        for one in [*pids, sleeper]:
            one.kill()
            one.wait()


@linux
@pytest.mark.slow
def test_a_worker_grants_a_starved_program_its_cpu_time():
    """Half a second of work on a core shared with many others takes seconds, and is done within 0.8 s of CPU."""
    core = min(os.sched_getaffinity(0))
    program = "import time\nwhile time.process_time() < 0.5: pass\nprint('done')"

    async def work(worker):
        for pid in [worker.process.pid, *tree(worker.process.pid)]:
            os.sched_setaffinity(pid, [core])
        busy = [
            subprocess.Popen(
                [sys.executable, "-S", "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile 1: pass"]
            )
            for _ in range(5)
        ]
        try:
            return await outputs(worker, program, [b""], cpu_seconds=0.8, asleep_seconds=0.5, wall_seconds=30.0)
        finally:
            for one in busy:
                one.kill()
                one.wait()

    (result,) = worker_in("strict", work)
    assert (result.outcome, result.stdout) == ("ended", b"done\n")


def test_the_resource_limits_are_those_of_the_page():
    async def work(worker):
        names = "AS FSIZE CORE NOFILE STACK".split()
        program = "import resource\n" + "".join(f"print(resource.getrlimit(resource.RLIMIT_{n})[0])\n" for n in names)
        return await outputs(worker, program, [b""])

    (result,) = worker_in("strict", work)
    memory, file_size, core, descriptors, stack = map(int, result.stdout.split())
    assert (memory, file_size, core, descriptors) == (1 << 30, (16 << 20) + 1, 0, walls.DESCRIPTORS)
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    assert stack in (1000000 << 10, hard)


@linux
@pytest.mark.parametrize("tier", TIERS)
def test_nothing_needs_another_program_to_look_at_a_test(tier, monkeypatch):
    """A slim image has no `ps`."""
    refusing = "import subprocess\nsubprocess.run = subprocess.Popen = None\n"
    monkeypatch.setattr(sandbox, "_START", refusing + sandbox._START)
    program = "import time\ntime.sleep(0.3)\nprint(input())"  # long enough to be looked at
    results = worker_in(tier, lambda worker: outputs(worker, program, [b"1\n"]))
    assert [r.stdout for r in results] == [b"1\n"]
