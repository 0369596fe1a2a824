"""The grader as its callers see it: grades, values of asserts, faults, repetition, cancelling, and standing aside."""

import asyncio
import errno
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import grader
from faults import GraderFault, TaskError
from grader import Grader
from grading import plain, sandbox, stateless, walls
from grading.compare import clip_start
from grading.dialogue import equals
from grading.grade import CLIP, LETTERS, TestResult, clip
from tasksets.task import Task, Test
from tests.support.thin import thinned

ROOT = Path(__file__).parent.parent
ADD = "a, b = map(int, input().split())\nprint(a + b)\n"
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def graded(work, **options):
    """Run `await work(grader)` with a grader of its own, two workers strong."""

    async def main():
        async with Grader(**{"workers": 2, **options}) as judge:
            return await work(judge)

    return asyncio.run(main())


@pytest.fixture(scope="module")
def shared():
    """The same with one grader for all tests that leave it as it was; it lives in a thread."""
    loop, started, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    judges = []

    async def live():
        async with Grader(workers=2) as judge:
            judges.append(judge)
            started.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(live(),))
    thread.start()
    assert started.wait(60)
    yield lambda work: asyncio.run_coroutine_threadsafe(work(judges[0]), loop).result(120)
    loop.call_soon_threadsafe(over.set)
    thread.join()
    loop.close()


def stdio(visible, hidden=(), **more):
    tests = [tuple(Test(*pair) for pair in pairs) for pairs in (visible, hidden)]
    return Task("t/1", "t", "add", "stdio", *tests, **more)


def reply(program):
    return f"Here it is:\n```python\n{program}\n```\n"


# ── grades ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_what_a_reply_is_worth(shared):
    hidden = [("5 5\n", "10\n"), ("-1 1\n", "0\n")]
    task = stdio([("1 2\n", "3\n"), ("2 2\n", "4\n")], hidden)
    replies = {
        "right": reply(ADD),
        "half": reply("a, b = map(int, input().split())\nprint(a + b if a < b else 7)"),
        "hidden": reply("a, b = map(int, input().split())\nprint(a + b if a > 0 and b < 5 else 1)"),
        "none": "I cannot do this.",
        "broken": reply("print("),
        "crash": reply("a, b = map(int, input().split())\nprint(a + b)\n1 // (a - 2)"),
    }

    async def work(judge):
        return dict(zip(replies, await asyncio.gather(*(judge.grade(r, task) for r in replies.values())), strict=True))

    grades = shared(work)
    short = {n: (g.fitness, g.passed, g.outcome, g.visible, g.hidden, g.got, g.got_start) for n, g in grades.items()}
    assert short == {
        "right": (1.0, True, "pass", "PP", "PP", "", 0),
        "half": (0.5, False, "wrong_answer", "PW", "", "7\n", 0),
        "hidden": (1.0, False, "wrong_answer", "PP", "WW", "", 0),
        "none": (0.0, False, "no_code", "NN", "", "", 0),
        "broken": (0.0, False, "syntax_error", "SS", "", "syntax_error", 0),
        "crash": (0.5, False, "runtime_error", "PR", "", "runtime_error", 0),
    }
    assert grades["none"].code is None and grades["none"].cpu_seconds == 0.0
    assert grades["right"].code == ADD.rstrip("\n") and grades["right"].cpu_seconds > 0
    assert {LETTERS[g.outcome] for g in grades.values()} == set("PWNSR")


def test_no_tests_no_pass(shared):
    async def work(judge):
        return await judge.grade(reply(ADD), stdio([])), await judge.run(ADD, [])

    grade, results = shared(work)
    assert (grade.passed, grade.fitness, grade.outcome, results) == (False, 0.0, "not_run", [])


def test_a_hidden_test_is_never_run_before_the_visible_ones_pass(shared):
    """Told by the CPU time: the hidden test of this task spins."""
    program = "n = int(input())\nwhile n == 9: pass\nprint(n)"
    task = stdio([("1\n", "2\n")], [("9\n", "9\n")])
    grade = shared(lambda judge: judge.grade(reply(program), task))
    assert (grade.visible, grade.hidden) == ("W", "") and grade.cpu_seconds < 1


@pytest.mark.slow
def test_a_tasks_own_timeout_goes_before_the_rule(shared):
    program = "import time\nwhile time.process_time() < 0.4: pass\nprint(input())"

    async def work(judge):
        short = await judge.grade(reply(program), stdio([("1\n", "1\n")], timeout=0.2))
        long = await judge.grade(reply(program), stdio([("1\n", "1\n")]))
        return short.outcome, long.outcome, (await judge.run(program, [("1", "1")], timeout=0.2))[0].outcome

    assert shared(work) == ("timeout", "pass", "timeout")


def test_three_timeouts_end_a_program_visible_and_hidden_together(shared):
    program = "n = int(input())\nwhile n == 0: pass\nprint(n)"
    zero, one = ("0\n", "0\n"), ("1\n", "1\n")

    async def work(judge):
        return await judge.grade(reply(program), stdio([zero, one, zero, one, zero, one, zero], [one], timeout=0.05))

    grade = shared(work)
    assert grade.visible == "TPTPT.." and grade.hidden == "" and grade.outcome == "timeout"
    assert grade.fitness == pytest.approx(2 / 7)


def test_stop_at_first_spares_the_rest(shared):
    async def work(judge):
        tests = [("1 1", "2"), ("1 1", "3"), ("1 1", "2")]
        asserts = ["assert f(1) == 1", "assert f(1) == 2", "assert f(1) == 1"]
        first = await judge.run(ADD, tests, stop_at_first=True)
        second = await judge.run("f = lambda x: x", asserts, "assert", stop_at_first=True)
        return [[r.outcome for r in results] for results in (first, second)]

    assert shared(work) == [["pass", "wrong_answer", "not_run"]] * 2


def test_execute_gives_bytes_status_outcome_and_time(shared):
    async def work(judge):
        right = await judge.execute("import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read() * 2)", b"\xffx")
        wrong = await judge.execute("import sys\nsys.exit('no')")
        slow = await judge.execute("while True: pass", limits=sandbox.Limits(cpu_seconds=0.1))
        half = await judge.execute("print('\ud800')")
        return right, wrong, slow, half

    right, wrong, slow, half = shared(work)
    assert right[:3] == (b"\xffx\xffx", 0, "ended") and 0 < right.cpu_seconds < 1
    assert wrong[:3] == (b"", 1, "runtime_error")
    assert slow.outcome == "timeout" and slow.cpu_seconds == pytest.approx(0.1, abs=0.09)
    assert half == (b"", None, "syntax_error", 0.0)


# ── what is shown of a wrong output ──────────────────────────────────────────────────────────────────────────────────
def test_clips_centre_on_the_first_difference(shared):
    lines = [str(k) for k in range(1000)]
    wanted = "\n".join(lines)
    lines[700] = "oops"
    program = "print(input(), end='')\n" + f"print({chr(10).join(lines)[1:]!r})"
    (result,) = shared(lambda judge: judge.run(program, [("0\n", wanted)]))
    text = "\n".join(lines) + "\n"
    at = text.index("oops")
    assert result.got_start == at - CLIP // 2
    assert result.got == clip(text, result.got_start) and "oops" in result.got
    assert result.got.startswith("…") and result.got.endswith("…")


@pytest.mark.parametrize(
    ("got", "wanted", "start"),
    [
        ("a", "b", 0),
        ("x" * 300, "y" * 300, 0),
        ("a " * 400 + "b", "a " * 400 + "c", 800 - CLIP // 2),
        ("a " * 400, "a\n" * 400 + "c", 800 - CLIP // 2),  # it stops too early: the end of it
        ("a \n" * 400 + "b", "a\n" * 400 + "c", 1200 - CLIP // 2),  # spaces are no difference
        ("1.0 " * 400 + "b", "1.00 " * 400 + "c", 1600 - CLIP // 2),  # nor is another way to write a number
        ("a " * 400 + "b", "a " * 400, 800 - CLIP // 2),
        ("x" * 1000, "x" * 700 + "y" * 300, 0),  # one long token
    ],
)
def test_where_a_clip_begins(got, wanted, start):
    assert clip_start(got, wanted) == start


def test_bytes_that_are_no_text_are_shown_as_well_as_can_be(shared):
    (result,) = shared(lambda judge: judge.run("import sys\nsys.stdout.buffer.write(b'\\xff1\\n')", [("", "1")]))
    assert result == TestResult(False, "wrong_answer", "�1\n", result.cpu_seconds)


@pytest.mark.slow
def test_a_huge_output_does_not_stop_the_world(shared):
    """16 MiB of numbers, right and wrong at the very end, while another task wants to run every 5 ms."""
    n = 2_000_000
    program = f"import sys\nsys.stdout.write('1234567 ' * {n} + input())"
    wanted = "1234567\n" * n

    async def work(judge):
        longest, over = 0.0, False

        async def pulse():
            nonlocal longest
            while not over:
                before = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - before)

        beat = asyncio.ensure_future(pulse())
        results = await judge.run(program, [("8", wanted + "8"), ("8", wanted + "9")])
        over = True
        await beat
        return [r.outcome for r in results], longest

    outcomes, longest = shared(work)
    assert outcomes == ["pass", "wrong_answer"]
    assert longest < 2.0, longest  # a plain comparison would take several seconds on a machine as busy as this


def test_half_an_emoji_in_a_comment_of_a_right_program_passes(shared):
    task = Task("t", "t", "t", "stdio", (Test("1\n", "2\n"),), (Test("2\n", "4\n"),))
    grade = shared(lambda judge: judge.grade("```python\nprint(int(input()) * 2)  # \ud83d\n```", task))
    assert (grade.outcome, grade.code) == ("pass", "print(int(input()) * 2)  # \ufffd")


@pytest.mark.slow
def test_a_long_reply_is_read_beside_other_work(shared):
    """A reply that takes long to read, and one that is too long to be read; others go on meanwhile."""
    task = Task("t", "t", "t", "stdio", (Test("", "1\n"),), (Test("", "1\n"),))

    async def work(judge):
        beats, over = 0, False

        async def pulse():
            nonlocal beats
            while not over:
                beats += 1
                await asyncio.sleep(0.005)

        beat = asyncio.ensure_future(pulse())
        grades = [await judge.grade(text, task) for text in ("x = 1\n" * 100_000 + "[", "x = 1\n" * 3_000_000)]
        over = True
        await beat
        return [grade.outcome for grade in grades], beats

    outcomes, beats = shared(work)
    assert outcomes == ["no_code", "no_code"]
    assert beats > 5


# ── asserts by value ─────────────────────────────────────────────────────────────────────────────────────────────────
VALUES = """
import collections, math, sys
def same(x): return x
def pair(x): return (x, [x])
def gen(n):
    for i in range(n): yield i
def boom(): raise ValueError
def leave(): sys.exit(0)
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x); return self
    def peek(self): return self.items[-1]
class Node:
    def __init__(self, v): self.v, self.left = v, None
def depth(n): return 0 if n is None else 1 + depth(n.left)
def sum(a, b): return a + b
def calls(log=[]):
    log.append(1)
    return len(log)
class Yes:
    def __eq__(self, o): return True
    def __bool__(self): return True
    def __iter__(self): return iter([self])
def yes(*a): return Yes()
"""


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("assert same(3) == 3", "pass"),
        ("assert 3 == same(3)", "pass"),
        ("assert same(3) == 4, 'a message'", "wrong_answer"),
        ("assert same(1) == 1.0 == same(True)", "pass"),
        ("assert same({1, 2}) == {2, 1}", "pass"),
        ("assert same({1: 2, 3: 4}) == {3: 4, 1: 2}", "pass"),
        ("assert same({1: 2}) == {1: 3}", "wrong_answer"),
        ("assert same([1]) == (1,)", "wrong_answer"),
        ("assert pair(2)[1][0] == 2", "pass"),
        ("assert pair(2) == (2, [2])", "pass"),
        ("assert set(pair(2)[1]) == {2}", "pass"),
        ("assert sorted(gen(3)) == [0, 1, 2]", "pass"),
        ("assert gen(3) == [0, 1, 2]", "wrong_answer"),
        ("assert list(gen(3)) == [0, 1, 2] and same(0) == 0", "pass"),
        ("assert same(None) is None", "pass"),
        ("assert same(5)", "pass"),
        ("assert not same([])", "pass"),
        ("assert same(0.1) + same(0.2) == same(0.3)", "wrong_answer"),
        ("assert abs(same(0.1) + same(0.2) - 0.3) < 1e-9", "pass"),
        ("assert math.isclose(same(0.1), 0.1000000001, rel_tol=1e-6)", "pass"),
        ("import math as m\nassert m.floor(same(2.5)) == 2", "pass"),
        ("from math import isclose\nassert isclose(same(2.5), 2.6)", "wrong_answer"),
        ("assert all(same(i) == i for i in range(5))", "pass"),
        ("assert all(same(i) == i * (i < 4) for i in range(5))", "wrong_answer"),
        ("assert [same(a) + b for a, b in [(1, 2), (3, 4)]] == [3, 7]", "pass"),
        ("assert list(map(lambda x: same(x) + 1, [1, 2])) == [2, 3]", "pass"),
        ("assert Stack().push(4).push(5).peek() == 5", "pass"),
        ("root = Node(1)\nroot.left = Node(2)\nassert depth(root) == 2", "pass"),
        ("wanted = [1, 2]\nassert same([1, 2]) == wanted", "pass"),
        ("def close(a, b): return abs(a - b) < 0.1\nassert close(same(1.0), 1.05)", "pass"),
        ("def close(a, b): return abs(a - b) < 0.01\nassert close(same(1.0), 1.05)", "wrong_answer"),
        ("def twice(x): return same(x) * 2\nassert twice(3) == 6", "pass"),
        ("assert sum(1, 2) == 3", "pass"),
        ("assert collections.Counter('aab') == same(collections.Counter(a=2, b=1))", "pass"),
        ("assert type(same(1)) == int and isinstance(same('x'), str)", "pass"),
        ("assert calls() == 1", "pass"),
        ("assert same(x=[1, 2, 3])[-1] == 3", "pass"),
        ("assert same(1) == 1 or boom()", "pass"),
        ("assert same(1) == 2 and boom()", "wrong_answer"),
        ("assert boom() == 1", "runtime_error"),
        ("assert leave() == None", "runtime_error"),
        ("assert nothing(1) == 1", "runtime_error"),
        ("assert same(Node) == Node", "pass"),
        ("assert same(len) == len", "bad_value"),
        ("assert len(same(3)) == 3", "wrong_answer"),
        ("assert True", "pass"),
        ("assert yes() == 3", "bad_value"),
        ("assert yes()", "pass"),
        ("assert not yes()", "wrong_answer"),
        ("assert all(yes(i) == i for i in range(3))", "bad_value"),
        ("assert 3 in yes()", "bad_value"),
        ("assert same(float('nan')) != same(float('nan'))", "pass"),
        ("assert same(range(3)) == range(3)", "pass"),
        ("assert same(b'x') == b'x' and same('é\\ud800') == 'é\\ud800'", "pass"),
        ("assert same(10**30) == 10**30", "pass"),
    ],
)
def test_an_assert_means_what_it_says(asserts, text, outcome):
    assert asserts(text) == outcome


@pytest.fixture(scope="module")
def asserts(request, shared):
    """text -> outcome; all texts of the test above graded together, each also on its own functions."""
    texts = [
        case.callspec.params["text"]
        for case in request.session.items
        if getattr(case, "originalname", "") == "test_an_assert_means_what_it_says"
    ]
    known = {}

    async def work(judge):
        return await judge.run(VALUES, texts, "assert")

    if texts:
        known.update(zip(texts, (r.outcome for r in shared(work)), strict=True))
    return known.__getitem__


def test_literals_need_no_clean_process():
    assert equals(plain.encode(1.0), 1) is True
    assert equals(plain.encode([1, "a"]), [1, "b"]) is False
    assert equals(plain.encode({2, 1}), {1, 2}) is True
    assert equals(plain.encode({2, 1}), [1, 2]) is None  # for the clean process
    assert equals(b"d\xff\xff\xff\xff", {1: 2}) is None


@pytest.mark.slow
def test_a_value_made_to_be_slow_to_compare_costs_the_program_alone():
    """A set of numbers that all have one hash: the judge runs out of time, which counts as the program's."""
    step = sys.hash_info.modulus
    program = f"def f(n): return [{{k * {step} for k in range(60)}}] * 2\nclass Slow: pass\n"
    program += f"def g(n): return [k * {step} for k in range(40000)]"
    limits = sandbox.Limits(cpu_seconds=0.5)

    async def work(judge):
        return await judge.run(program, ["assert set(g(1)) == {1}", "assert f(1) == [{1}]"], "assert")

    results = graded(work, limits=limits)
    assert [r.outcome for r in results] == ["timeout", "wrong_answer"]


@pytest.mark.parametrize(
    ("test", "setup"),
    thinned(
        [("assert f(1) ==", ""), ("f(1)", ""), ("assert f(1) == 1", "import ("), ("", ""), ("assert \0", "")], 5, True
    ),
)
def test_a_test_that_is_no_assert_is_bad_input(test, setup, shared):
    with pytest.raises(TaskError, match="mend or leave out this test"):
        shared(lambda judge: judge.run("f = 1", [test], "assert", setup))


def test_tests_of_another_kind_are_refused(shared):
    with pytest.raises(TaskError, match="sql"):
        shared(lambda judge: judge.run("f = 1", [("a", "b")], "sql"))


def test_what_an_assert_got(shared):
    async def work(judge):
        long = "f = lambda n: list(range(n))"
        return await judge.run(
            long, ["assert f(3) == [0, 1]", f"assert f(1000) == {[*range(500), 0, *range(501, 1000)]}"], "assert"
        )

    short, long = shared(work)
    assert short.got == "[0, 1, 2]" and short.got_start == 0
    text = repr(list(range(1000)))
    assert long.got_start == text.index(" 500,") + 1 - CLIP // 2 and long.got == clip(text, long.got_start)


@pytest.mark.slow
# ── as published ─────────────────────────────────────────────────────────────────────────────────────────────────────
def test_as_published_and_the_rules_differ_where_they_say():
    sleepy = "import time\ntime.sleep(0.7)\nprint(1)"
    near = "print(10000001)"
    spin = "n = int(input())\nwhile n: pass\nprint(0)"
    limits = sandbox.Limits(cpu_seconds=0.4, asleep_seconds=5.0)

    async def work(judge):
        results = [(await judge.run(p, [("", w)]))[0].outcome for p, w in ((sleepy, "1"), (near, "10000000"))]
        loop = [r.outcome for r in await judge.run(spin, [("1", "0")] * 4 + [("0", "0")], timeout=0.05)]
        return results, loop, judge.rules

    ours, theirs = graded(work, limits=limits), graded(work, limits=limits, as_published=True)
    assert ours[:2] == (["pass", "wrong_answer"], ["timeout"] * 3 + ["not_run"] * 2)
    assert theirs[:2] == (["timeout", "pass"], ["timeout"] * 4 + ["pass"])
    assert ours[2] != theirs[2] and all(
        r.endswith(f"py{sys.version_info[0]}.{sys.version_info[1]}") for r in (ours[2], theirs[2])
    )


# ── equal work is done once ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_equal_program_and_tests_are_graded_once():
    task = stdio([("1 2\n", "3\n")], [("1 1\n", "2\n")])

    async def work(judge):
        grades = await asyncio.gather(*(judge.grade(reply(ADD), task) for _ in range(50)))
        grades += [await judge.grade("Once more:\n" + reply(ADD), task)]
        other = await judge.grade(reply(ADD), stdio([("1 2\n", "4\n")]))
        await judge.run(ADD, [("1 2", "3")])
        await judge.run(ADD, [("1 2", "3")], timeout=1)
        await judge.run(ADD, [("1 2", "3")])
        return grades, other, judge.counts

    grades, other, counts = graded(work)
    assert len(set(grades)) == 1 and grades[0].passed and not other.passed
    assert counts == {"graded": 4, "repeated": 51}


@pytest.mark.slow
def test_one_who_waits_for_equal_work_survives_the_cancelling_of_another():
    task = stdio([("1 2\n", "3\n")])
    slow = reply("import time\ntime.sleep(0.5)\n" + ADD)

    async def work(judge):
        first = asyncio.ensure_future(judge.grade(slow, task))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(judge.grade(slow, task))
        await asyncio.sleep(0.1)
        first.cancel()
        assert (await second).passed
        with pytest.raises(asyncio.CancelledError):
            await first
        return judge.counts

    assert graded(work) == {"graded": 1, "repeated": 0}


@pytest.mark.slow
def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(grader, "_KEPT", 5)

    async def work(judge):
        for k in range(12):
            await judge.run(f"print({k})", [("", str(k))])
        return len(judge._known), judge.counts["graded"]

    assert graded(work) == (5, 12)


# ── cancelling and ending ────────────────────────────────────────────────────────────────────────────────────────────
def tree(pid):
    try:
        found = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return found + [below for one in found for below in tree(one)]


def gone(pids, seconds=5.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(os.path.exists(f"/proc/{p}") for p in pids):
        time.sleep(0.02)
    return not any(os.path.exists(f"/proc/{p}") for p in pids)


@pytest.mark.slow
@linux
def test_cancelling_leaves_no_survivor_and_a_working_pool():
    async def work(judge):
        spinning = [asyncio.ensure_future(judge.run(f"# {k}\nwhile True: pass", [("", "")])) for k in range(5)]
        await asyncio.sleep(0.3)
        before = [p for w in judge._all for p in (w.process.pid, *tree(w.process.pid))]
        for one in spinning:
            one.cancel()
        ended = await asyncio.gather(*spinning, return_exceptions=True)
        assert all(isinstance(e, asyncio.CancelledError) for e in ended)
        results = await asyncio.gather(*(judge.run(f"{ADD}# {k}", [("1 2", "3")]) for k in range(6)))
        assert all(r.passed for one in results for r in one)
        return before

    before = graded(work)
    assert len(before) >= 4 and gone(before)


@pytest.mark.slow
@linux
def test_an_interrupted_run_leaves_nobody_and_nothing(tmp_path):
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(ROOT)!r})
from grader import Grader
async def main():
    async with Grader(workers=2) as judge:
        print("up", flush=True)
        await asyncio.gather(*(judge.run(f"# {{k}}\\nwhile True: pass", [("", "")]) for k in range(9)))
asyncio.run(main())
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    tmp_path.chmod(0o755)
    host = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert host.stdout.readline() == b"up\n"
    time.sleep(0.5)
    pids = tree(host.pid)
    host.send_signal(signal.SIGINT)
    _, errors = host.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors and host.returncode != 0
    assert len(pids) >= 4 and gone(pids) and list(tmp_path.iterdir()) == []


# ── faults are no verdicts ───────────────────────────────────────────────────────────────────────────────────────────
def test_a_process_that_cannot_be_started_is_a_fault(monkeypatch):
    def refuse(*args, **kwargs):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(walls, "PATIENCE", 0.05)
    with pytest.raises(GraderFault, match="cannot be started"):
        graded(lambda judge: judge.run(ADD, [("1 2", "3")]))


@pytest.mark.slow
@linux
@pytest.mark.parametrize("which", ["worker", "program"])
def test_a_refused_fork_is_a_fault(monkeypatch, which):
    """No process is left: for a program process after the self-test, or for the third test of a program."""
    most = len(grader.SELF_TEST) + 1 if which == "worker" else 2
    refusing = f"""
import os, sys
sys.path.insert(0, sys.argv[1])
from grading import walls
real, counts, walls.PATIENCE = walls.fork, {{}}, 0.05
def fork():
    counts[os.getpid()] = counts.get(os.getpid(), 0) + 1
    if (os.getpid() == 1) == {which == "worker"} and counts[os.getpid()] > {most}:
        raise OSError(11, "Resource temporarily unavailable")
    return real()
walls.fork = fork
del sys.path[0]
"""
    monkeypatch.setattr(sandbox, "_START", refusing + sandbox._START)

    async def work(judge):
        assert [r.outcome for r in await judge.run(ADD, [("1 2", "3")] * 2)] == ["pass"] * 2
        with pytest.raises(GraderFault, match=r"Resource temporarily unavailable.*make room"):
            await judge.run(ADD + "#", [("1 2", "3")] * 3)
        assert judge.counts["graded"] == 1

    try:
        graded(work, workers=1, tier="full")
    except GraderFault as why:
        pytest.skip(str(why))


def test_no_folder_for_the_sandbox_is_a_fault(monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(GraderFault, match="TMPDIR"):
        graded(lambda judge: judge.run(ADD, [("1 2", "3")]))


@pytest.mark.slow
@linux
@pytest.mark.parametrize("tier", ["strict", "full"])
def test_a_full_disk_is_a_fault_where_programs_write_to_it(tier, tmp_path):
    """A file system of 64 kB under TMPDIR. In full a program has files of its own in memory and does not notice."""
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(ROOT)!r})
from grader import Grader, GraderFault
async def main():
    async with Grader(workers=1, tier={tier!r}) as judge:
        print([r.outcome for r in await judge.run("print(1)", [("", "1")])], flush=True)
        print([r.outcome for r in await judge.run("open('x', 'w').write('x' * 100000)\\nprint(1)", [("", "1")])])
try:
    asyncio.run(main())
except GraderFault as why:
    print("FAULT", why)
"""
    mount = 'mount -t tmpfs -o size=64k,mode=755 none "$1" && TMPDIR="$1" exec "$2" -c "$3"'
    inside = ["sh", "-c", mount, "sh", str(tmp_path), sys.executable, script]
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    ran = subprocess.run([*namespace, *inside], capture_output=True, text=True, timeout=60)
    lines = ran.stdout.splitlines()
    if not lines or "no tier" in lines[0]:
        pytest.skip(f"{ran.stdout} {ran.stderr[-300:]}")
    assert lines[0] == "['pass']"
    assert lines[1] == "['pass']" if tier == "full" else ("FAULT" in lines[1] and "full" in lines[1]), lines


@pytest.mark.slow
def test_walls_that_do_not_hold_are_a_fault(monkeypatch):
    """A self-test that disagrees: nothing runs, whatever the tier. Of a tier that is not offered it is told why."""
    odd = grader.Check("two and two", "print(2 + 2)", ("ended",), (b"5",))
    monkeypatch.setattr(grader, "SELF_TEST", (*grader.SELF_TEST, odd))
    offered, real = [], Grader._self_test

    async def noted(judge):
        offered.append(judge.tier)
        await real(judge)

    monkeypatch.setattr(Grader, "_self_test", noted)
    with pytest.raises(GraderFault, match=r"full: .+; strict: .+; limits: .+") as why:
        graded(lambda judge: judge.run(ADD, [("1 2", "3")]))
    assert offered
    for tier in offered:
        assert re.search(rf"\b{tier}: the self-test came out wrong: [^;]*two and two", str(why.value))


@pytest.mark.slow
def test_the_next_tier_is_taken_where_one_does_not_hold(monkeypatch):
    odd = grader.Check("two and two", "print(2 + 2)", ("ended",), (b"5",), tiers=("full",))
    monkeypatch.setattr(grader, "SELF_TEST", (*grader.SELF_TEST, odd))

    async def work(judge):
        return judge.tier, (await judge.run(ADD, [("1 2", "3")]))[0].passed

    assert graded(work) in (("strict", True), ("limits", True))


@pytest.mark.slow
def test_every_check_of_the_self_test_can_fail():
    """None is content with whatever comes."""
    for check in grader.SELF_TEST:
        assert check.outcomes != ("ended",) or check.stdouts not in ((), (b"",))


@pytest.mark.slow
def test_a_program_that_kills_two_workers_has_failed_if_a_third_is_well(monkeypatch):
    async def work(judge):
        real = sandbox.WorkerProcess.begin
        deaths = 0

        def begin(worker, program, mode, limits):
            nonlocal deaths
            if b"deadly" in program:
                deaths += 1
                os.kill(worker.process.pid, signal.SIGKILL)
            real(worker, program, mode, limits)

        monkeypatch.setattr(sandbox.WorkerProcess, "begin", begin)
        grade = await judge.grade(reply("print('deadly')"), stdio([("", "deadly")] * 2, [("", "deadly")]))
        well = await judge.run(ADD, [("1 2", "3")])
        return grade.outcome, grade.visible, grade.hidden, deaths, well[0].passed

    assert graded(work) == ("runtime_error", "RR", "", 2, True)


@pytest.mark.slow
def test_a_program_that_kills_two_workers_is_a_fault_if_the_third_is_ill(monkeypatch):
    async def work(judge):
        real = sandbox.WorkerProcess.begin

        def begin(worker, program, mode, limits):
            if b"deadly" in program:
                os.kill(worker.process.pid, signal.SIGKILL)
                odd = grader.Check("two and two", "print(2 + 2)", ("ended",), (b"5",))
                monkeypatch.setattr(grader, "SELF_TEST", (*grader.SELF_TEST, odd))
            real(worker, program, mode, limits)

        monkeypatch.setattr(sandbox.WorkerProcess, "begin", begin)
        with pytest.raises(GraderFault, match="self-test"):
            await judge.run("print('deadly')", [("", "deadly")])
        with pytest.raises(GraderFault, match="self-test"):  # and nothing was remembered as a verdict
            await judge.run("print('deadly')", [("", "deadly")])

    graded(work)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("for_want_of_memory", [True, False])
def test_test_processes_killed_from_outside(monkeypatch, for_want_of_memory):
    """Once is forgiven. Twice is a fault where the kernel counts kills for want of memory, else the program's doing."""
    if for_want_of_memory:
        monkeypatch.setattr("grader._kills_for_want_of_memory", itertools.count().__next__)

    async def work(judge):
        async def killer(times):
            killed = set()
            while len(killed) < times:
                for worker in judge._all:
                    below = tree(worker.process.pid)
                    if len(below) >= 2 and below[-1] not in killed:
                        await asyncio.sleep(0.15)
                        if os.path.exists(f"/proc/{below[-1]}"):
                            os.kill(below[-1], signal.SIGKILL)
                            killed.add(below[-1])
                await asyncio.sleep(0.01)

        sleepy = "import time\ntime.sleep(0.6)\nprint(1)"
        once = asyncio.ensure_future(killer(1))
        assert (await judge.run(sleepy, [("", "1")]))[0].passed
        await once
        twice = asyncio.ensure_future(killer(2))
        if for_want_of_memory:
            with pytest.raises(GraderFault, match="killed from outside"):
                await judge.run(sleepy + "#", [("", "1")])
        else:
            assert not (await judge.run(sleepy + "#", [("", "1")]))[0].passed
        twice.cancel()

    graded(work, workers=1, tier="strict")


def mixed_programs(n):
    """Programs with known verdicts of every sort, each of its own."""
    kinds = [
        (ADD, "pass"),
        ("print(3 if input() == '1 2' else 4)", "pass"),
        ("print(7)", "wrong_answer"),
        ("raise ValueError", "runtime_error"),
        ("print(", "syntax_error"),
        ("import numpy_is_not_here", "missing_module"),
        ("import os; os.fork()", "forbidden"),
        ("import collections, heapq, math\n" + ADD, "pass"),
        ("import time\ntime.sleep(0.05)\n" + ADD, "pass"),
        ("import sys\nsys.stdout.write('3\\n4\\n'); sys.exit(1)", "runtime_error"),
    ]
    return [(f"{kinds[k % len(kinds)][0]}\n# {k}", kinds[k % len(kinds)][1]) for k in range(n)]


@linux
@pytest.mark.slow
def test_killing_workers_at_random_changes_no_verdict():
    """500 programs while workers, and what runs below them, are killed: never during the second try of a program."""
    programs = mixed_programs(500)

    async def work(judge):
        lost, kills = asyncio.Event(), 0
        real = judge._replace

        async def replace(worker):
            fresh = await real(worker)
            lost.set()
            return fresh

        judge._replace = replace

        async def killer():
            nonlocal kills
            draw = random.Random(1)
            while True:
                await asyncio.sleep(0.25)
                worker = draw.choice(judge._all)
                pids = [worker.process.pid, *tree(worker.process.pid)]
                lost.clear()
                try:
                    os.kill(draw.choice(pids), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                kills += 1
                try:
                    await asyncio.wait_for(lost.wait(), 5)
                except TimeoutError:
                    continue
                await asyncio.sleep(1.0)  # the program that was lost is tried again, and left in peace

        hunting = asyncio.ensure_future(killer())
        results = await asyncio.gather(*(judge.run(p, [("1 2", "3")] * 4) for p, _ in programs))
        hunting.cancel()
        return [r[0].outcome for r in results], kills

    outcomes, kills = graded(work)
    assert outcomes == [wanted for _, wanted in programs]
    assert kills >= 3


@linux
@pytest.mark.slow
def test_verdicts_are_the_same_under_load():
    """200 programs, one of 4 s CPU and a sleeper among them, alone and with four busy loops beside them."""
    programs = [p for p, _ in mixed_programs(198)]
    programs += ["import time\nwhile time.process_time() < 4: pass\nprint(3)", "import time\ntime.sleep(60)\nprint(3)"]

    def verdicts():
        async def work(judge):
            return [
                [r.outcome for r in one]
                for one in await asyncio.gather(*(judge.run(p, [("1 2", "3")]) for p in programs))
            ]

        return graded(work)

    alone = verdicts()
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(4)]
    try:
        loaded = verdicts()
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert loaded == alone
    assert alone[-2:] == [["pass"], ["timeout"]]


@pytest.mark.slow
def test_a_sleeper_is_ended_after_its_sleep_and_not_after_its_cpu_time(shared):
    async def work(judge):
        started = time.monotonic()
        (result,) = await judge.run("import time\ntime.sleep(600)", [("", "")])
        return result.outcome, result.cpu_seconds, time.monotonic() - started

    outcome, cpu, wall = shared(work)
    assert outcome == "timeout" and cpu < 1 and wall >= 2


@pytest.mark.slow
def test_work_that_outlives_the_grader_starts_nothing_new():
    """One of many fails and the rest is still at work when the grader closes."""

    async def main():
        async with Grader(workers=1) as judge:
            spinning = [asyncio.ensure_future(judge.run(f"# {k}\nwhile True: pass", [("", "")])) for k in range(3)]
            await asyncio.sleep(0.2)
        ended = await asyncio.gather(*spinning, return_exceptions=True)
        assert all(isinstance(e, GraderFault) and "closed" in str(e) for e in ended), ended
        assert judge._all == []

    asyncio.run(main())


@pytest.mark.slow
def test_more_callers_than_workers(shared):
    async def work(judge):
        return await asyncio.gather(
            *(judge.run(f"{ADD}# {k % 40}", [("1 2", "3"), (f"{k} 1", str(k + 1))]) for k in range(100))
        )

    results = shared(work)
    assert all(r.passed for one in results for r in one)


@pytest.mark.slow
def test_scratch_folders_are_gone_afterwards():
    async def work(judge):
        await judge.run("open('x', 'w').write('y')\nprint(1)", [("", "1")])
        return judge._base

    base = graded(work)
    assert not os.path.exists(base) and shutil.which("sh")


@pytest.mark.slow
def test_an_unknown_python_is_told(monkeypatch):
    assert Grader().remarks == []
    monkeypatch.setattr(stateless, "TRIED", (3, 10))
    (said,) = Grader().remarks
    assert "asserts share no process" in said
