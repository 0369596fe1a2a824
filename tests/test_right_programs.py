# ruff: noqa: E501  a program reads best on the line it was written on
"""Nothing right fails: programs that break naive graders, and programs whose verdict is known from elsewhere.

The samples in tests/data run everywhere. The full sets run where SWARM_RESCUE_DATA names a folder that holds them
(mbpp/mbpp.jsonl, code_contests/*.parquet and *.jsonl): `SWARM_RESCUE_DATA=… pytest -m slow tests/test_right_programs.py -s`.
"""

import asyncio
import collections
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults import GraderFault
from grader import Grader, extract_code
from grading import sandbox
from tests.support.thin import chosen, thinned

DATA = Path(__file__).parent / "data"
FULL = Path(os.environ.get("SWARM_RESCUE_DATA", "/nonexistent"))
TIERS = ("full", "strict", "limits")
SHORT = sandbox.Limits(cpu_seconds=1.0, asleep_seconds=1.2)  # where a test waits for a limit, and which is no matter
WAITING = 6  # workers, where most programs wait for a limit
QUICK_THEN_ALL = pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def run(jobs: list[tuple], tier: str | None = None, workers: int | None = None, **options) -> list[list]:
    """Each job is the arguments of Grader.run; all in one grader, in flight together."""

    async def work() -> list[list]:
        async with Grader(workers=workers, tier=tier, **options) as judge:
            return list(await asyncio.gather(*(judge.run(*job) for job in jobs)))

    return asyncio.run(work())


@functools.cache
def missing(tier: str) -> str:
    """Why this machine does not offer the tier, or nothing."""

    async def enter() -> None:
        async with Grader(workers=1, tier=tier):
            pass

    try:
        asyncio.run(enter())
    except GraderFault as fault:
        if "self-test" in str(fault):
            raise
        return str(fault)
    return ""


def skip_unless(tier: str) -> None:
    if missing(tier):
        pytest.skip(missing(tier))


# name -> program, stdin, expected stdout
RIGHT: dict[str, tuple[str, str, str]] = {
    "readline_of_bytes_twice": (
        "import sys\nr = sys.stdin.buffer.readline\na = int(r()); b = int(r())\nprint(a + b)",
        "1\n2\n",
        "3",
    ),
    "lines_of_stdin": ("import sys\nprint(sum(int(line) for line in sys.stdin))", "1\n2\n3", "6"),
    "open_0": ("print(sum(map(int, open(0).read().split())))", "1 2\n3\n", "6"),
    "open_0_twice": ("a = open(0, closefd=False).readline()\nprint(a.strip())", "1 2\n3\n", "1 2"),
    "read_0": ("import os\nprint(len(os.read(0, 10 ** 6)))", "x" * 70_000, "70000"),
    "read_sized_by_fstat": (
        "import os, io\nb = io.BytesIO(os.read(0, os.fstat(0).st_size))\nprint(b.readline().strip().decode(), len(b.read()))",
        "12\n345\n",
        "12 4",
    ),
    "fast_io": (
        "import os, sys\nfrom io import BytesIO, IOBase\nclass FastIO(IOBase):\n    newlines = 0\n    def __init__(self, file):\n"
        "        self._fd = file.fileno(); self.buffer = BytesIO()\n        self.writable = 'x' in file.mode or 'r' not in file.mode\n"
        "        self.write = self.buffer.write if self.writable else None\n    def read(self):\n        while True:\n"
        "            b = os.read(self._fd, max(os.fstat(self._fd).st_size, 8192))\n            if not b: break\n"
        "            ptr = self.buffer.tell(); self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)\n"
        "        return self.buffer.read()\n    def flush(self):\n        if self.writable:\n"
        "            os.write(self._fd, self.buffer.getvalue()); self.buffer.truncate(0), self.buffer.seek(0)\n"
        "sys.stdin = FastIO(sys.stdin); out = FastIO(sys.stdout)\nout.write(str(sum(map(int, sys.stdin.read().split()))).encode())\nout.flush()",
        "1 2 3\n4\n",
        "10",
    ),
    "writer_flushed_when_freed": (
        "import os, sys\nfrom io import BytesIO, IOBase\nclass Out(IOBase):\n    def __init__(self): self.buffer = BytesIO()\n"
        "    def write(self, text): self.buffer.write(text.encode())\n    def flush(self):\n        os.write(1, self.buffer.getvalue())\n"
        "        self.buffer.truncate(0); self.buffer.seek(0)\nout = Out()\nprint(1, flush=True)\nprint(2, file=out)",
        "",
        "1 2",
    ),
    "last_words": ("class D:\n    def __del__(self): print(2, flush=True)\nd = D()\nprint(1)", "", "1 2"),
    "mapped_stdin": (
        "import mmap\nm = mmap.mmap(0, 0, prot=mmap.PROT_READ)\nprint(m.readline().strip().decode())",
        "12\n3\n",
        "12",
    ),
    "seek_in_stdin": (
        "import sys\na = sys.stdin.read()\nsys.stdin.seek(0)\nprint(a == sys.stdin.read())",
        "12\n3\n",
        "True",
    ),
    "fileinput": ("import fileinput\nprint(sum(int(x) for x in fileinput.input()))", "1\n2\n", "3"),
    "end_of_input": (
        "n = 0\ntry:\n    while True:\n        input(); n += 1\nexcept EOFError:\n    print(n)",
        "1\n2\n\n3",
        "4",
    ),
    "prompt": ("n = int(input(''))\nprint(n)", "5\n", "5"),
    "write_1": ("import os\nos.write(1, b'4\\n')\nos.write(1, b'2\\n')", "", "4 2"),
    "buffer_of_stdout": ("import sys\nsys.stdout.buffer.write(b'\\n'.join([b'1', b'2']))", "", "1 2"),
    "both_buffers": ("import sys\nprint(1)\nsys.stdout.flush()\nsys.stdout.buffer.write(b'2\\n')", "", "1 2"),
    "stdout_reopened": ("import sys\nsys.stdout = open(1, 'w', closefd=False)\nprint(42)", "", "42"),
    "stdout_wrapped": (
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, write_through=True)\nprint(42)",
        "",
        "42",
    ),
    "stdout_collected": (
        "import io, sys\nreal, sys.stdout = sys.stdout, io.StringIO()\nprint(42)\nreal.write(sys.stdout.getvalue())",
        "",
        "42",
    ),
    "stdout_closed_after": ("import sys\nprint(42)\nsys.stdout.close()", "", "42"),
    "guard_in_the_middle": (
        "def main():\n    print(x)\nx = 1\nif __name__ == '__main__':\n    main()\nx = 2\nprint(x)\n",
        "",
        "1 2",
    ),
    "global": ("n = 0\ndef f():\n    global n\n    n += int(input())\nf(); f()\nprint(n)", "1\n2\n", "3"),
    "exit": ("print(42)\nexit()\nprint(43)", "", "42"),
    "exit_0": ("print(42)\nexit(0)", "", "42"),
    "quit": ("print(42)\nquit()", "", "42"),
    "sys_exit": ("import sys\nprint(42)\nsys.exit()", "", "42"),
    "system_exit": ("print(42)\nraise SystemExit", "", "42"),
    "system_exit_in_function": ("def f():\n    try:\n        exit(0)\n    finally:\n        print(42)\nf()", "", "42"),
    "os_exit_after_flush": ("import os, sys\nprint(42)\nsys.stdout.flush()\nos._exit(0)", "", "42"),
    "atexit": ("import atexit\natexit.register(print, 2)\nprint(1)", "", "1 2"),
    "atexit_write": ("import atexit, os\natexit.register(lambda: os.write(1, b'2'))\nprint(1, flush=True)", "", "1 2"),
    "failing_atexit": ("import atexit\natexit.register(lambda: 1 // 0)\nprint(42)", "", "42"),
    "thread_prints_last": (
        "import threading, time\ndef f():\n    time.sleep(0.05)\n    print(2)\nthreading.Thread(target=f).start()\nprint(1)",
        "",
        "1 2",
    ),
    "daemon_thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\nprint(42)",
        "",
        "42",
    ),
    "failing_thread": (
        "import threading\nt = threading.Thread(target=lambda: 1 // 0)\nt.start(); t.join()\nprint(42)",
        "",
        "42",
    ),
    "thread_256_mb": (
        "import sys, threading\nsys.setrecursionlimit(10 ** 6)\nthreading.stack_size(1 << 28)\n"
        "def depth(n): return 0 if n == 0 else 1 + depth(n - 1)\n"
        "t = threading.Thread(target=lambda: print(depth(100_000)))\nt.start()\nt.join()",
        "",
        "100000",
    ),
    "thread_512_mb": (
        "import sys, threading\nthreading.stack_size(1 << 29)\nsys.setrecursionlimit(1 << 29)\nt = threading.Thread(target=lambda: print(42))\n"
        "t.start()\nt.join()",
        "",
        "42",
    ),
    "sixty_threads": (
        "import threading\nb = threading.Barrier(60)\nout = []\ndef f(i):\n    b.wait()\n    out.append(i)\n"
        "ts = [threading.Thread(target=f, args=(i,)) for i in range(60)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(len(out))",
        "",
        "60",
    ),
    "thread_pool": (
        "from concurrent.futures import ThreadPoolExecutor as P\nwith P(8) as p:\n    print(sum(p.map(lambda x: x * x, range(10))))",
        "",
        "285",
    ),
    "asyncio": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    print(42)\nasyncio.run(f())",
        "",
        "42",
    ),
    "asyncio_over_a_pair_of_sockets": (
        "import asyncio, socket\nasync def talk():\n    a, b = socket.socketpair()\n    reader, writer = await asyncio.open_connection(sock=a)\n"
        "    other, back = await asyncio.open_connection(sock=b)\n    writer.write(b'4'); writer.write(b'2\\n'); await writer.drain()\n"
        "    back.write(await other.readline()); await back.drain()\n    print(int(await reader.readline()))\n"
        "    print(await asyncio.to_thread(pow, 2, 5))\nasyncio.run(talk())",
        "",
        "42\n32",
    ),
    "descriptors_of_every_sort": (
        "import fcntl, mmap, os, select, shutil, socket, sqlite3, struct, sys, tempfile, termios\n"
        "print(sys.stdin.isatty(), os.isatty(1), shutil.get_terminal_size((7, 8)).columns)\n"
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendall(b'abc'); a.send(b'de')\n"
        "print(struct.unpack('i', fcntl.ioctl(b, termios.FIONREAD, bytes(4)))[0], b.recv(9), b.recvmsg(9)[0])\n"
        "r, w = os.pipe()\nos.set_blocking(r, False); os.set_inheritable(r, True); os.dup2(r, 40); fcntl.fcntl(w, fcntl.F_SETFD, fcntl.FD_CLOEXEC)\n"
        "print(fcntl.fcntl(r, fcntl.F_GETFL) & os.O_NONBLOCK > 0, os.get_inheritable(r), fcntl.fcntl(r, fcntl.F_DUPFD_CLOEXEC, 50), fcntl.fcntl(w, fcntl.F_GETPIPE_SZ))\n"
        "with tempfile.TemporaryFile() as f, tempfile.NamedTemporaryFile() as g, tempfile.TemporaryDirectory() as d:\n"
        "    os.posix_fallocate(f.fileno(), 0, 1 << 20); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(g, fcntl.LOCK_EX); g.truncate(4096)\n"
        "    m = mmap.mmap(g.fileno(), 4096); m[:3] = b'xyz'; m.flush(); shutil.copyfile(g.name, d + '/copy'); print(os.fstat(f.fileno()).st_size, open(d + '/copy', 'rb').read(3))\n"
        "db = sqlite3.connect('file.db'); db.execute('create table t(x)'); db.execute('insert into t values (42)'); db.commit(); print(db.execute('select x from t').fetchall())\n"
        "p = select.epoll(); p.register(r, select.EPOLLIN); os.write(w, b'1'); print(len(p.poll(1)))\n"
        "os.closerange(40, 60)",
        "",
        "False False 7\n3 b'abc' b'de'\nTrue True 50 65536\n1048576 b'xyz'\n[(42,)]\n1",
    ),
    "timer": ("import threading\nthreading.Timer(0.02, print, args=(42,)).start()", "", "42"),
    "alarm": (
        "import signal\ndef f(*a):\n    print(42)\n    raise SystemExit\nsignal.signal(signal.SIGALRM, f)\nsignal.setitimer(signal.ITIMER_REAL, 0.02)\n"
        "while True: signal.pause()",
        "",
        "42",
    ),
    "recursion_90000": (
        "import sys\nsys.setrecursionlimit(10 ** 6)\ndef depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)\nprint(depth(90_000))",
        "",
        "90000",
    ),
    "recursion_30000_through_cache": (
        "import sys\nfrom functools import lru_cache\nsys.setrecursionlimit(10 ** 6)\n@lru_cache(maxsize=None)\ndef depth(n):\n"
        "    return 0 if n == 0 else 1 + depth(n - 1)\nprint(depth(30_000))",
        "",
        "30000",
    ),
    "recursion_by_default": (
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\ntry:\n    f(10 ** 4)\nexcept RecursionError:\n    print(f(900))",
        "",
        "900",
    ),
    "crlf": ("a = int(input())\nb = input().split()\nprint(a, b)", "1\r\n3 4\r\n", "1 ['3', '4']"),
    "crlf_of_bytes": ("import sys\nprint([int(x) for x in sys.stdin.buffer])", "1\r\n2\r\n", "[1, 2]"),
    "unread_10_mb": ("print(42)", "1234567\n" * 1_250_000, "42"),
    "stderr_20_mb": ("import sys\nfor _ in range(20): sys.stderr.write('x' * (1 << 20))\nprint(42)", "", "42"),
    "sleep_1_s": ("import time\ntime.sleep(1)\nprint(42)", "", "42"),
    "print_10_to_the_5000": ("print(10 ** 5000)", "", "1" + "0" * 5000),
    "read_a_long_integer": (
        "n = int(input())\nprint(n % 97, len(str(n)))",
        "9" * 10_000 + "\n",
        f"{(10**10_000 - 1) % 97} 10000",
    ),
    "scratch_file": ("with open('x.txt', 'w') as f: f.write('42')\nprint(open('x.txt').read())", "", "42"),
    "temporary_file": (
        "import tempfile\nf = tempfile.TemporaryFile()\nf.write(b'42'); f.seek(0)\nprint(f.read().decode())",
        "",
        "42",
    ),
    "shelve_and_sqlite": (
        "import sqlite3\nc = sqlite3.connect('x.db')\nc.execute('create table t (x)'); c.execute('insert into t values (42)'); c.commit()\n"
        "print(c.execute('select x from t').fetchone()[0])",
        "",
        "42",
    ),
    "output_10_mb": ("print('12345678 ' * (1 << 20))", "", "12345678 " * (1 << 20)),
    "memory_700_mb": ("x = bytearray(700 << 20)\nprint(len(x) >> 20)", "", "700"),
    "unicode": ("s = input()\nprint(s[::-1], len(s), '≥ é 漢 \\U0001f600')", "äöü漢\n", "漢üöä 4 ≥ é 漢 😀"),
    "bytes_out_of_utf8": ("import sys\nd = sys.stdin.buffer.read()\nprint(len(d))", "é\n", "3"),
    "bom_in_program": ("\ufeffprint(42)", "", "42"),
    "coding_line": ("#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint(len('é'))", "", "1"),
    "tabs": ("if 1:\n\tprint(42)\n", "", "42"),
    "crlf_in_program": ("x = '''a\r\nb'''\r\nprint(len(x))\r\n", "", "3"),
    "no_newline_at_end": ("if 1:\n    print(42)\n    # end", "", "42"),
    "future": ("from __future__ import annotations\ndef f(x: Undefined) -> Nothing: return 42\nprint(f(1))", "", "42"),
    "data_class": (
        "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass P:\n    x: int\n    y: list = field(default_factory=list, compare=False)\n"
        "print(min(P(3), P(1)).x, P(1))",
        "",
        "1 P(x=1, y=[])",
    ),
    "named_tuple_enum_pickle": (
        "import copy, enum, pickle, typing\nclass P(typing.NamedTuple):\n    x: int = 1\nclass E(enum.Enum):\n    A = 1\nclass C: pass\n"
        "print(pickle.loads(pickle.dumps(P(2))), E.A, copy.deepcopy([P()]), pickle.loads(pickle.dumps(C())).__class__.__name__)",
        "",
        "P(x=2) E.A [P(x=1)] C",
    ),
    "type_hints": (
        "import typing\nclass A:\n    b: 'A'\nprint(typing.get_type_hints(A)['b'] is A, A.__module__, __name__)",
        "",
        "True __main__ __main__",
    ),
    "main_module": (
        "import __main__, sys\nx = 42\nprint(__main__.x, sys.modules['__main__'].x, globals()['x'], vars()['x'])",
        "",
        "42 42 42 42",
    ),
    "arguments": ("import sys\nprint(len(sys.argv), sys.argv[1:], sys.flags.optimize, __debug__)", "", "1 [] 0 True"),
    "no_interactive_traces": (
        "import sys\nprint(hasattr(sys, 'ps1'), sys.gettrace(), sys.getrecursionlimit())",
        "",
        "False None 1000",
    ),
    "evaluation": ("exec('y = 40')\nprint(eval('y + 2'), [eval('y') for _ in range(1)])", "", "42 [40]"),
    "class_scope": (
        "x = 1\nclass A:\n    x = 2\n    def f(self): return x\nprint(A().f(), [A.x for _ in '1'])",
        "",
        "1 [2]",
    ),
    "docstring_and_annotations": (
        "'''Doc.'''\nx: int = 42\nprint(__doc__, __annotations__)",
        "",
        "Doc. {'x': <class 'int'>}",
    ),
    "closing_order": ("class D:\n    def __del__(self): print(2)\nd = D()\nprint(1)\ndel d\nprint(3)", "", "1 2 3"),
    "generator_left_open": (
        "def g():\n    try:\n        yield 1\n    finally:\n        pass\nx = g()\nprint(next(x))",
        "",
        "1",
    ),
    "caught_interrupt": ("try:\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    print(42)", "", "42"),
    "caught_memory_error": ("try:\n    x = [0] * (1 << 50)\nexcept MemoryError:\n    print(42)", "", "42"),
    "limits_set_by_itself": (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK))\nprint(42)",
        "",
        "42",
    ),
    "raises_its_stack_limit": (
        "import resource\ntry:\n    resource.setrlimit(resource.RLIMIT_STACK, (1 << 28, -1))\nexcept (ValueError, OSError):\n    pass\nprint(42)",
        "",
        "42",
    ),
    "no_collector": ("import gc\ngc.disable()\nx = [[] for _ in range(10 ** 5)]\nprint(len(x))", "", "100000"),
    "random_seeded": (
        "import random\nrandom.seed(1)\nprint(random.randint(1, 100), random.random() < 1)",
        "",
        "18 True",
    ),
    "random_unseeded": ("import random\nprint(0 <= random.random() < 1)", "", "True"),
    "clocks": (
        "import time, datetime\nprint(time.time() > 1.6e9, time.perf_counter() > 0, datetime.datetime.now().year > 2023)",
        "",
        "True True True",
    ),
    "process_facts": (
        "import os, platform\nprint(os.cpu_count() > 0, os.getpid() > 0, platform.python_implementation())",
        "",
        "True True CPython",
    ),
    "environment": (
        "import os\nprint(os.environ.get('ONLINE_JUDGE', 'no'), os.path.exists('input.txt'))",
        "",
        "no False",
    ),
    "input_file_if_there": (
        "import os, sys\nif os.path.exists('input.txt'):\n    sys.stdin = open('input.txt')\nprint(input())",
        "42\n",
        "42",
    ),
    "null_device": (
        "import os, sys\nsys.stderr = open(os.devnull, 'w')\nprint('x', file=sys.stderr)\nprint(42)",
        "",
        "42",
    ),
    "random_device": (
        "import os, secrets, uuid\nprint(len(os.urandom(8)), len(secrets.token_hex(4)), len(str(uuid.uuid4())))",
        "",
        "8 8 36",
    ),
    "warnings_on_stderr": ("import warnings\nwarnings.warn('x')\nx = '\\d'\nprint(1 is 1)", "", "True"),
    "logging": ("import logging\nlogging.basicConfig(level=0)\nlogging.info('x')\nprint(42)", "", "42"),
    "traceback_printed": (
        "import traceback\ntry:\n    1 // 0\nexcept Exception:\n    traceback.print_exc()\nprint(42)",
        "",
        "42",
    ),
    "imports_only": (
        "import subprocess, multiprocessing, socket, ssl, urllib.request, http.client, ctypes\nprint(42)",
        "",
        "42",
    ),
    "standard_library": (
        "import array, bisect, cmath, collections, copy, decimal, fractions, functools, hashlib, heapq, io, itertools, json, math, numbers\n"
        "import operator, queue, random, re, statistics, string, struct, sys, textwrap, time, typing, zlib\nfrom collections import *\n"
        "print(math.comb(5, 2), Counter('aab')['a'], decimal.Decimal('1.1') + 1, fractions.Fraction(1, 3), statistics.mean([1, 2]))",
        "",
        "10 2 2.1 1/3 1.5",
    ),
    "time_zone": (
        "import datetime\nprint(datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc).isoformat())",
        "",
        "2020-01-01T00:00:00+00:00",
    ),
    "locale": ("import locale\nlocale.setlocale(locale.LC_ALL, '')\nprint(f'{1234:n}')", "", "1234"),
    "doctest": (
        "def f(x):\n    '''\n    >>> f(1)\n    1\n    '''\n    return x\nimport doctest\nprint(doctest.testmod())",
        "",
        "TestResults(failed=0, attempted=1)",
    ),
    "unit_test": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\nif __name__ == '__main__':\n    unittest.main(exit=False)\n    print(42)",
        "",
        "42",
    ),
    "cmd_loop": (
        "import cmd\nclass S(cmd.Cmd):\n    prompt = ''\n    use_rawinput = False\n    def do_a(self, x): print(x)\n    def do_EOF(self, x): return True\nS().cmdloop()",
        "a 42\n",
        "42",
    ),
    "last_line_unterminated": ("import sys\nsys.stdout.write('42')", "", "42"),
    "nothing_expected": ("pass", "", ""),
    "hash_order": ("print(*set('abcdef') ^ set(), hash('a') == hash('a'))", "", "*"),
    "name_error_swallowed": (
        "try:\n    raw_input\nexcept NameError:\n    raw_input = input\nprint(raw_input())",
        "42\n",
        "42",
    ),
    "nested_scopes": (
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x += 1\n        return x\n    return g\ng = f()\ng()\nprint(g())",
        "",
        "3",
    ),
    "match_statement": ("match input().split():\n    case [a, b]: print(int(a) + int(b))", "40 2\n", "42"),
    "star_expressions": ("a, *b = map(int, input().split())\nprint(a, b, *b, sep='|')", "1 2 3\n", "1|[2, 3]|2|3"),
    "print_to_stderr": ("import sys\nprint('debug', file=sys.stderr)\nprint(42)", "", "42"),
    "exit_status_of_thread": (
        "import sys, threading\nt = threading.Thread(target=sys.exit, args=(3,))\nt.start(); t.join()\nprint(42)",
        "",
        "42",
    ),
    "private_names": (
        "class A:\n    def __init__(self): self.__x = 42\n    def f(self): return self.__x\nprint(A().f())",
        "",
        "42",
    ),
    "reads_its_own_source": (
        "import inspect\ndef f():\n    return 42\nprint(len(inspect.getsource(f).split('\\n')))",
        "",
        "3",
    ),
    "printed_by_the_c_library": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint(4, end='', flush=True)\nlibc.puts(b'2')",
        "",
        "42",
    ),
    "generator_ends_with_the_program": (
        "def g():\n    try:\n        yield 4\n    finally:\n        print(2)\nx = g()\nprint(next(x), end='')",
        "",
        "42",
    ),
    "help_is_there": ("print(callable(help))", "", "True"),
    "module_of_its_own_making": ("open('mine.py', 'w').write('x = 42')\nimport mine\nprint(mine.x)", "", "42"),
    "pool_of_threads": (
        "from multiprocessing.pool import ThreadPool\nfrom multiprocessing.dummy import Pool\n"
        "for kind in (ThreadPool, Pool):\n    with kind(2) as pool:\n        print(sum(pool.map(abs, [-1, -2])))",
        "",
        "3 3",
    ),
    "streams_detached": (
        "import io, sys\nsys.stdin = io.TextIOWrapper(sys.stdin.detach(), encoding='latin1')\n"
        "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')\n"
        "sys.stderr = io.TextIOWrapper(sys.stderr.detach(), encoding='utf-8')\nprint(input())",
        "é\n",
        "Ã©",
    ),
    "stdout_deleted": ("import sys\nprint(42)\ndel sys.stdout", "", "42"),
    "stdout_beside_the_first": (
        "import io, sys\nprint(4, end='')\nsys.stdout = io.StringIO()\nprint('lost')\nsys.__stdout__.write('2')",
        "",
        "42",
    ),
    "faults_left_on": ("import faulthandler\nfaulthandler.enable()\nprint(42)", "", "42"),
}
# What a test of these cannot say in an expected output: any answer counts that ends well.
ANY_ANSWER = {"hash_order"}


@pytest.fixture(scope="module")
def verdicts(request):
    """tier -> name -> outcome of the programs of RIGHT that this run has chosen, each tier graded once."""
    ours = {case["name"]: RIGHT[case["name"]] for case in chosen(request.session, "test_right_program")}
    found: dict[str, dict[str, str]] = {}

    def of(tier: str) -> dict[str, str]:
        if tier not in found:
            skip_unless(tier)
            done = run([(code, [(given, wanted)]) for code, given, wanted in ours.values()], tier)
            found[tier] = {
                name: f"{r.outcome}: {r.got[:300]!r}" if not r.passed else "pass"
                for name, (r,) in zip(ours, done, strict=True)
            }
        return found[tier]

    return of


@pytest.mark.parametrize("name", thinned(RIGHT, 3))
@pytest.mark.parametrize("tier", [pytest.param("full"), *(pytest.param(t, marks=pytest.mark.slow) for t in TIERS[1:])])
def test_right_program(verdicts, tier, name):
    if name == "recursion_30000_through_cache" and (3, 12) <= sys.version_info < (3, 14):
        pytest.skip("these Pythons bound recursion through C by themselves, at a few thousand, whatever the limit")
    if name == "pool_of_threads" and tier == "strict":
        pytest.skip("semaphores with a name lie in a folder that everybody shares")
    if name == "pool_of_threads" and tier == "full" and sys.version_info >= (3, 14):
        pytest.skip("from 3.14 on a lock of multiprocessing starts a process")
    if name == "docstring_and_annotations" and sys.version_info >= (3, 14):
        pytest.skip("from 3.14 on a module binds no __annotations__")
    outcome = verdicts(tier)[name]
    assert outcome == "pass" or (name in ANY_ANSWER and outcome.startswith("wrong_answer"))


# ── programs that must not pass, and why ─────────────────────────────────────────────────────────────────────────────

OUTCOMES = {
    "wrong_answer": ("print(41)", "42"),
    "no_output": ("pass", "42"),
    "class_never_called": ("class Solution:\n    def add(self, a, b):\n        return a + b\n", "3"),
    "runtime_error": ("print(42)\n1 // 0", "42"),
    "exit_status": ("import sys\nprint(42)\nsys.exit(1)", "42"),
    "stdout_cannot_be_flushed": (
        "import sys\nprint(42, flush=True)\nclass O:\n    def flush(self): raise RuntimeError\nsys.stdout = O()",
        "42",
    ),
    "stderr_cannot_be_flushed": ("import sys\nprint(42)\nsys.stderr = object()", "42"),
    "exit_text": ("import sys\nprint(42)\nsys.exit('no')", "42"),
    "missing_module": ("import no_such_module_anywhere\nprint(42)", "42"),
    "missing_module_late": ("print(42)\nimport numpyy.linalg", "42"),
    "syntax_error": ("print(42", "42"),
    "indentation": ("if 1:\nprint(42)", "42"),
    "surrogate": ("print('\ud800')", "42"),
    "nul": ("print(42)\x00", "42"),
    "python_2": ("print 42", "42"),
    "memory_error_uncaught": ("x = [0] * (1 << 50)", "42"),
    "memory_by_steps": ("x = []\nwhile True: x.append(bytearray(1 << 26))", "42"),
    "output": ("print('x' * (17 << 20))", "42"),
    "output_by_steps": ("while True: print('x' * 10_000)", "42"),
    "process": ("import os\nos.fork()\nprint(42)", "42"),
    "process_by_pool": ("import multiprocessing\nmultiprocessing.Pool(2)\nprint(42)", "42"),
    "process_by_shell": ("import subprocess\nsubprocess.run(['echo', '42'])\nprint(42)", "42"),
    "network": ("import socket\nsocket.create_connection(('127.0.0.1', 9))\nprint(42)", "42"),
    "asleep": ("import time\ntime.sleep(60)\nprint(42)", "42"),
}
EXPECTED_OUTCOMES = {
    "wrong_answer": "wrong_answer",
    "no_output": "wrong_answer",
    "class_never_called": "wrong_answer",
    "missing_module": "missing_module",
    "missing_module_late": "missing_module",
    "syntax_error": "syntax_error",
    "indentation": "syntax_error",
    "surrogate": "syntax_error",
    "nul": "syntax_error",
    "python_2": "syntax_error",
    "memory_error_uncaught": "memory_limit",
    "memory_by_steps": "memory_limit",
    "output": "output_limit",
    "output_by_steps": "output_limit",
    "process": "forbidden",
    "process_by_pool": "forbidden",
    "process_by_shell": "forbidden",
    "network": "forbidden",
    "asleep": "timeout",
}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_outcomes_have_their_names(tier):
    skip_unless(tier)
    unwalled = ("process", "process_by_pool", "process_by_shell", "network") if tier == "limits" else ()
    names = [name for name in OUTCOMES if name not in unwalled]
    # who fills a gigabyte needs most of a second for it, and must not meet that limit first
    names.sort(key=lambda name: name.startswith("memory"))
    first = [name.startswith("memory") for name in names].index(True)
    jobs = [(OUTCOMES[name][0], [("", OUTCOMES[name][1])]) for name in names]
    done = run(jobs[:first], tier, WAITING, limits=SHORT)
    done += run(jobs[first:], tier, limits=SHORT._replace(cpu_seconds=6.0))
    got = {name: result.outcome for name, (result,) in zip(names, done, strict=True)}
    assert not any(result.passed for (result,) in done)
    assert got == {name: EXPECTED_OUTCOMES.get(name, "runtime_error") for name in names}


@pytest.mark.slow
def test_every_test_runs_until_the_third_timeout():
    program = (
        "n = int(input())\nif n == 2: raise SystemExit(3)\nif n in (3, 5, 6): __import__('time').sleep(60)\nprint(n)"
    )
    (results,) = run([(program, [(f"{n}\n", str(n)) for n in range(1, 9)])], limits=SHORT._replace(asleep_seconds=0.4))
    assert [r.outcome for r in results] == [
        "pass",
        "runtime_error",
        "timeout",
        "pass",
        "timeout",
        "timeout",
        "not_run",
        "not_run",
    ]


def test_no_test_is_no_pass():
    (results,) = run([("print('anything')", [])])
    assert results == []


# ── values of asserts ────────────────────────────────────────────────────────────────────────────────────────────────

VALUES = """
import collections, datetime, decimal, enum, fractions, itertools, math, typing
P = collections.namedtuple("P", "x y")
def same(x): return x
def counter(): return collections.Counter("aab")
def default(): return collections.defaultdict(list, {1: [2]})
def ordered(): return collections.OrderedDict([(1, 2), (3, 4)])
def deque(): return collections.deque([1, 2], maxlen=5)
def dec(): return decimal.Decimal("1.50")
def frac(): return fractions.Fraction(2, 4)
def day(): return datetime.date(2020, 2, 29)
def moment(): return datetime.datetime(2020, 2, 29, 12, 30, 1, 5)
def span(): return datetime.timedelta(days=1, seconds=3)
def point(): return P(1, 2)
def squares(n): return map(lambda x: x * x, range(n))
def gen(n):
    for i in range(n): yield i
def nested(): return {"a": [(1, 2.5, None), {3, 4}, frozenset([5])], (1, 2): b"x"}
def keys(): return {"a": 1, "b": 2}.keys()
def nothing(): pass
def big(): return 10 ** 5000
def infinite(): return float("inf")
def third(): return 1 / 3
def fail(): raise ValueError("x")
def z(): return 3 + 4j
def span_of(n): return range(n)
"""
TRUE_ASSERTS = [
    "assert same(1) == 1",
    "assert same(True) == 1",
    "assert same(1.0) == 1",
    "assert same('é\\n') == 'é\\n'",
    "assert same([1, (2, 3), {4: {5}}]) == [1, (2, 3), {4: {5}}]",
    "assert same(x=3) == 3",
    "assert same(*[1]) == 1",
    "assert (same(2)) == 2",
    "assert 2 == same(2)",
    "assert same(2) == same(2)",
    "assert same(-1.5e300) == -1.5e300",
    "assert same(b'\\xff') == b'\\xff'",
    "assert same(bytearray(b'a')) == b'a'",
    "assert counter() == {'a': 2, 'b': 1}",
    "assert counter().most_common(1) == [('a', 2)]",
    "assert counter()['zzz'] == 0",
    "assert default() == {1: [2]}",
    "assert ordered() == {3: 4, 1: 2}",
    "assert list(ordered()) == [1, 3]",
    "assert list(deque()) == [1, 2]",
    "assert dec() == 1.5",
    "assert str(dec()) == '1.50'",
    "assert frac() == 0.5",
    "assert day().year == 2020",
    "assert str(moment()) == '2020-02-29 12:30:01.000005'",
    "assert span().total_seconds() == 86403",
    "assert point() == (1, 2)",
    "assert point().x == 1",
    "assert list(squares(4)) == [0, 1, 4, 9]",
    "assert sorted(gen(3)) == [0, 1, 2]",
    "assert sum(gen(4)) == 6",
    "assert list(span_of(3)) == [0, 1, 2]",
    "assert nested() == {'a': [(1, 2.5, None), {3, 4}, frozenset([5])], (1, 2): b'x'}",
    "assert set(keys()) == {'a', 'b'}",
    "assert sorted(keys()) == ['a', 'b']",
    "assert nothing() is None",
    "assert nothing() == None",
    "assert not nothing()",
    "assert big() == 10 ** 5000",
    "assert infinite() == float('inf')",
    "assert abs(third() - 0.333333) < 1e-3",
    "assert round(third(), 3) == 0.333",
    "assert math.isclose(third(), 0.33333333, rel_tol=1e-3)",
    "assert same(3) > 2",
    "assert 1 < same(2) <= 2",
    "assert same(3) in (1, 2, 3)",
    "assert same([1, 2])[1] == 2",
    "assert len(same('abc')) == 3",
    "assert same(1) == 1 and same(2) == 2",
    "assert all(same(i) == i for i in range(3))",
    "assert isinstance(same([1]), list)",
    "assert same({}) == dict()",
    "assert same(set()) == set()",
    "assert z() == 3 + 4j",
    "assert same(1) == 1, 'a message'",
    "x = same(2)\nassert x == 2",
    "import math\nassert same(math.pi) == math.pi",
    "values = [1, 2]\nassert same(values) == [1, 2]",
]
FALSE_ASSERTS = [
    "assert same(1) == 2",
    "assert same(1) != 1",
    "assert same('1') == 1",
    "assert same([1]) == (1,)",
    "assert squares(3) == [0, 1, 5]",
    "assert not same(1)",
    "assert nothing() == 0",
    "assert same(float('nan')) == float('nan')",
    "assert counter() == {'a': 1, 'b': 1}",
    "assert point() == (2, 1)",
    "assert fail() == 1",
    "assert missing(1) == 1",
    "assert same(1, 2) == 1",
    "assert same(undefined) == 1",
    "assert same(1) == undefined",
    "assert same(third()) == 0.3333",
    "assert False",
    "assert same(1) is None",
    "assert third() > 1",
]


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_values_compare_as_a_user_would_expect(tier):
    skip_unless(tier)
    right, wrong = run([(VALUES, TRUE_ASSERTS, "assert"), (VALUES, FALSE_ASSERTS, "assert")], tier)
    assert [(text, r.outcome, r.got) for text, r in zip(TRUE_ASSERTS, right, strict=True) if not r.passed] == []
    assert [text for text, r in zip(FALSE_ASSERTS, wrong, strict=True) if r.passed] == []


@pytest.mark.slow
def test_an_assert_runs_as_the_data_set_means_it():
    guarded = "def f(x):\n    return x\nif __name__ == '__main__':\n    print(input())\n    raise ValueError\n"
    noisy = "print('hello')\ndef f(x):\n    print('noise')\n    return x\n"
    circle = "def f(r):\n    import math\n    return math.pi * r * r\n"
    own_class = "class Node:\n    def __init__(self, v):\n        self.v = v\ndef f(node):\n    return node.v\n"
    loops = "def f(n):\n    while n != 0: n -= 1\n    return 1\n"
    results = run(
        [
            (guarded, ["assert f(1) == 1"], "assert"),
            (noisy, ["assert f(1) == 1"], "assert"),
            (circle, ["assert math.floor(f(2)) == 12"], "assert", "import math"),
            (own_class, ["assert f(root) == 7", "assert f(Node(8)) == 8"], "assert", "root = Node(7)"),
            (loops, ["assert f(3) == 1", "assert f(-1) == 1", "assert f(5) == 1"], "assert"),
        ],
        limits=SHORT,
    )
    assert [[r.outcome for r in each] for each in results] == [
        ["pass"], ["pass"], ["pass"], ["pass", "pass"], ["pass", "timeout", "pass"],
    ]  # fmt: skip


# ── verdicts known from elsewhere ────────────────────────────────────────────────────────────────────────────────────


def case_job(case: dict) -> tuple:
    if "asserts" in case:
        return case["code"], case["asserts"], "assert", case.get("setup", "")
    return case["code"], [(t["input"] * t.get("times", 1), t["output"]) for t in case["tests"]]


@pytest.mark.slow
@pytest.mark.parametrize("tier", [pytest.param("full"), *(pytest.param(t, marks=pytest.mark.slow) for t in TIERS[1:])])
def test_public_faults_of_graders(tier):
    skip_unless(tier)
    cases = rows(DATA / "cases_program.jsonl") + rows(DATA / "cases_assert.jsonl")
    if tier == "limits":  # nothing there refuses a new process
        cases = [case for case in cases if case["id"] != "PG28"]
    wrong = []
    for case, results in zip(cases, run([case_job(case) for case in cases], tier, WAITING, limits=SHORT), strict=True):
        passed, wanted = sum(r.passed for r in results), case["expected"]
        if case["id"] == "AS02":
            ok = passed == 0
        elif case["id"] == "AS06":
            ok = passed == 1
        else:
            ok = passed == wanted.get("visible_passed", wanted.get("passed"))
        if "correct" in wanted:
            ok = ok and (bool(results) and all(r.passed for r in results)) is wanted["correct"]
        if "outcome" in wanted:
            ok = ok and results[0].outcome == wanted["outcome"]
        if not ok and case["id"] != "PG33":
            wrong.append((case["id"], passed, [(r.outcome, r.got[:200]) for r in results]))
    assert wrong == []


def test_the_hash_seed_never_changes():
    case = next(case for case in rows(DATA / "cases_program.jsonl") if case["id"] == "PG33")
    got = {
        results[0].got + results[0].outcome
        for results in run([case_job(case)] * 1 + [(case["code"] + f"#{n}", case_job(case)[1]) for n in range(9)])
    }
    assert len(got) == 1


def mbpp_jobs(path: Path) -> list[tuple]:
    return [
        (row["code"], row["test_list"] + row["challenge_test_list"], "assert", row["test_setup_code"])
        for row in rows(path)
        if row["task_id"] > 10
    ]


def failures(jobs: list[tuple], results: list[list]) -> list[tuple]:
    return [
        (job[0][:60], str(test)[:200], r.outcome, r.got[:200])
        for job, each in zip(jobs, results, strict=True)
        for test, r in zip(job[1], each, strict=True)
        if not r.passed
    ]


@QUICK_THEN_ALL
def test_references_of_mbpp_pass_their_asserts(every):
    jobs = mbpp_jobs(DATA / "mbpp_references.jsonl")[::every]
    assert failures(jobs, run(jobs)) == []


@QUICK_THEN_ALL
def test_published_rescues_pass(every):
    jobs = []
    for row in rows(DATA / "rescued_bundles.jsonl")[::every]:
        code = extract_code(row["reply"])
        assert code
        jobs.append((code, row["asserts"], "assert"))
    assert failures(jobs, run(jobs)) == []


@pytest.mark.slow
@QUICK_THEN_ALL
def test_accepted_programs_pass(every):
    jobs = [
        (row["program"], [tuple(t) for t in row["tests"]]) for row in rows(DATA / "accepted_programs.jsonl")[::every]
    ]
    assert failures(jobs, run(jobs)) == []


def label(results: list) -> tuple[str, int]:
    names = {"wrong_answer": "WA", "timeout": "TLE", "pass": "AC"}
    first = next((i for i, r in enumerate(results) if not r.passed), len(results))
    return (names.get(results[first].outcome, "RE"), first) if first < len(results) else ("AC", first)


@pytest.mark.slow
@QUICK_THEN_ALL
def test_labelled_programs_agree_with_their_labels(every):
    problems = rows(DATA / "labelled_programs.jsonl")[::every]
    labelled = [(p, [tuple(t) for t in problem["tests"]]) for problem in problems for p in problem["programs"]]
    results = run([(program, tests) for (_, _, program), tests in labelled])
    got = [label(each) for each in results]
    assert [(w[:2], g, w[2][:80]) for (w, _), g in zip(labelled, got, strict=True) if (w[0], w[1]) != g] == []


# ── under load ───────────────────────────────────────────────────────────────────────────────────────────────────────

FOUR_SECONDS = """
import time
while time.process_time() < 4: pass
print(42)
"""


@pytest.mark.slow
def test_verdicts_do_not_depend_on_what_else_the_machine_does():
    """Two hundred programs, one that computes for 4 s and one that sleeps among them, alone and beside four busy loops."""
    jobs: list[tuple] = [(FOUR_SECONDS, [("", "42")]), ("import time\ntime.sleep(60)", [("", "")])]
    jobs += [(row["program"], [tuple(t) for t in row["tests"][:4]]) for row in rows(DATA / "accepted_programs.jsonl")]
    jobs += [
        (program, [tuple(t) for t in row["tests"][:3]])
        for row in rows(DATA / "labelled_programs.jsonl")
        for _, _, program in row["programs"]
    ]
    jobs += [(code, [(given, wanted)]) for name, (code, given, wanted) in RIGHT.items() if name not in ANY_ANSWER]
    jobs = jobs[:200]
    assert len(jobs) == 200
    alone = [[r.outcome for r in each] for each in run(jobs)]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        beside = [[r.outcome for r in each] for each in run(jobs)]
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    assert alone[:2] == [["pass"], ["timeout"]]
    assert [(job[0][:60], a, b) for job, a, b in zip(jobs, alone, beside, strict=True) if a != b] == []


# ── the full sets ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.skipif(not FULL.is_dir(), reason="SWARM_RESCUE_DATA names no folder with the full sets")
def test_all_references_of_mbpp():
    jobs = mbpp_jobs(FULL / "mbpp" / "mbpp.jsonl")
    assert len(jobs) == 964
    assert failures(jobs, run(jobs)) == []


def problems(name: str) -> dict[str, tuple[list[tuple[str, str]], str]]:
    import pyarrow.parquet

    found = {}
    for row in pyarrow.parquet.read_table(FULL / "code_contests" / name).to_pylist():
        parts = [row[part] for part in ("public_tests", "private_tests", "generated_tests")]
        tests = [pair for part in parts for pair in zip(part["input"], part["output"], strict=True)]
        found[row["name"]] = (tests, next(iter(row["solutions"]["solution"]), ""))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not FULL.is_dir(), reason="SWARM_RESCUE_DATA names no folder with the full sets")
def test_all_labelled_programs():
    sets = problems("apps_stdin-00000-of-00001.parquet")
    labelled = rows(FULL / "code_contests" / "apps_stdin_programs.jsonl")
    results = run([(row["program"], sets["apps_" + row["apps_id"]][0]) for row in labelled])
    apart = []
    for row, each in zip(labelled, results, strict=True):
        got, first = label(each)
        if (got, first) != (row["our_verdict"], row["failed_at"]):
            cpu = each[min(first, len(each) - 1)].cpu_seconds
            apart.append(
                (row["apps_id"], row["system"], row["our_verdict"], row["failed_at"], got, first, round(cpu, 2))
            )
    print(f"\n{len(labelled)} labelled programs, {len(apart)} apart:", *apart, sep="\n")
    assert [a for a in apart if "TLE" not in (a[2], a[4])] == []


@pytest.mark.slow
@pytest.mark.skipif(not FULL.is_dir(), reason="SWARM_RESCUE_DATA names no folder with the full sets")
def test_all_accepted_programs():
    """Programs accepted elsewhere pass at least as many tests as they were seen to; the exceptions are printed by name."""
    sets = problems("train_subset-00000-of-00001.parquet")
    clean = [row for row in rows(FULL / "code_contests" / "accepted_check.jsonl") if row["clean"]]
    results = run([(sets[row["name"]][1], sets[row["name"]][0][: row["tests_run"]]) for row in clean])
    apart, counts = [], collections.Counter()
    for row, each in zip(clean, results, strict=True):
        counts.update(r.outcome for r in each)
        apart += [(row["name"], i, r.outcome, round(r.cpu_seconds, 2)) for i, r in enumerate(each) if not r.passed]
    print(f"\n{len(clean)} accepted programs, {dict(counts)}; apart:", *apart, sep="\n")
    # plain Python fails these two as well: a blank last line was stripped from the input, and several answers are right
    known = [("1056_D. Decorate Apple Tree", 5), ("862_C. Mahmoud and Ehab and the xor", 7)]
    assert [a for a in apart if a[2] not in ("timeout", "not_run") and a[:2] not in known] == []
