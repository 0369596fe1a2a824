"""Asserts of every shape: what the program is told, what is decided without it, and what it cannot forge."""

from __future__ import annotations

import asyncio
import builtins
import sys
import time

import pytest

import grader
from faults import TaskError
from grading import asserts, dialogue, plain, sandbox
from tests.support.thin import chosen, thinned


def told(text: str, setup: str = "") -> str:
    """All that goes into the program's process, whatever it answers."""
    part = asserts.take_apart(text, setup)
    asks = [(number, False) for number in range(len(part.leaves))]
    return part.questions(asks) + (part.question() if part.is_one_question else "")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("assert round(f(12), 2) == 98765", "f(12)"),
        ("assert all(f(x) == y for x, y in [(1, 98765)])", "lambda x: f(x)"),
        ("wanted = 98765\nassert f(3) == wanted", "f(3)"),
        ("limit = 3\nwanted = [98765]\nassert f(limit) == wanted", "limit = 3"),
        ("def right(n): return n * 98765\nassert f(3) == right(3)", "f(3)"),
        ("cases = [(3, 98765)]\nassert all(f(a) == b for a, b in cases)", "f(a)"),
        ("given, wanted = 3, 98765\nassert f(given) == wanted", "given = 3"),
        ("xs = [3, 1]\nwanted = [98765]\nsort(xs)\nassert xs == wanted", "sort(xs)"),
        ("assert [f(x) for x in (1, 2)] == [98765, 2]", "f(x)"),
        ("from math import *\nwanted = 98765\nassert floor(f(3)) == wanted", "f(3)"),
        ("assert all(f(x).startswith(p) for x, p in [(1, '98765')])", "f(x)"),
    ],
)
def test_what_the_program_is_told(text: str, asked: str):
    assert asked in told(text) and "98765" not in told(text)


def test_what_is_asked_in_one_question():
    part = asserts.take_apart("assert f(1)[0] == [1, {2: (3,)}]")
    assert part.is_one_question and part.other == "[1, {2: (3,)}]" and part.question() == "__value__ = f(1)[0]"
    assert asserts.take_apart("assert f(1) == g(1)").other is None
    assert not asserts.take_apart("assert all(f(x) for x in (1, 2))").is_one_question


PROGRAM = """
import sys, collections
def add(a, b): return a + b
def same(x): return x
def nine(x): return x * x
def sort_it(xs): xs.sort()
def sorted_copy(xs): return sorted(xs)
def fib():
    a, b = 0, 1
    for _ in range(50):
        yield a
        a, b = b, a + b
def checked(x):
    if x < 0: raise ValueError("negative")
    return x
class Queue:
    def __init__(self): self.items = []
    def put(self, x): self.items.append(x)
    def get(self): return self.items.pop(0)
    def size(self): return len(self.items)
class Stack(Queue):
    def push(self, x): self.items.append(x)
    def pop(self): return self.items.pop()
count = 0
def once():
    global count
    count += 1
    return count
def length(node): return 0 if node is None else 1 + length(node.next)
def turned(node, after=None):
    while node: node.next, after, node = after, node, node.next
    return after
def total(xs): return sum(xs)
def words(path):
    with open(path) as file: return len(file.read().split())
def reads(): return sum(map(int, sys.stdin.read().split()))
def asks(): return int(input()) + int(input())
def each(xs, call):
    for x in xs: call(x)
def inverse(x): return 1 / x
class Checker:
    def isnumeric(self, text): return text.isdigit()
Point = collections.namedtuple("Point", "x y")
def point(): return Point(1, 2)
"""
RAISES = """
def raises(call, kind=Exception):
    try:
        call()
    except kind:
        return True
    return False
"""
LIST = """
class ListNode:
    def __init__(self, val, next=None): self.val, self.next = val, next
def build(xs): return ListNode(xs[0], build(xs[1:])) if xs else None
def to_list(node): return [node.val, *to_list(node.next)] if node is not None else []
def is_sorted(node): return to_list(node) == sorted(to_list(node))
"""
RIGHT = [
    ("wanted = 9\nassert nine(3) == wanted", ""),
    ("a = [3, 1, 2]\nsort_it(a)\nassert a == [1, 2, 3]", ""),
    ("a = [3, 1, 2]\nb = a\nsort_it(b)\nassert a == [1, 2, 3]", ""),
    ("a = [3, 1, 2]\nb = sorted_copy(a)\nassert a == [3, 1, 2] and b == [1, 2, 3]", ""),
    ("out = []\nfor x in (1, 2):\n    out.append(nine(x))\nassert out == [1, 4]", ""),
    ("d = {}\nd['a'] = nine(2)\nassert d == {'a': 4}", ""),
    ("queue = Queue()\nqueue.put(1)\nassert queue.get() == 1", ""),
    ("list = Queue()\nlist.put(1)\nassert list.size() == 1", ""),
    ("sum = add(1, 2)\nassert sum == 3", ""),
    ("import functools\nnine = functools.lru_cache(nine)\nassert nine(3) == 9", ""),
    ("s = Stack()\nassert s.push(1) is None and s.pop() == 1", ""),
    ("s = Stack()\nassert (s.push(1), s.push(2), s.pop()) == (None, None, 2)", ""),
    ("assert once() == 1 and once() == 2", ""),
    ("assert [once() for _ in range(3)] == [1, 2, 3]", ""),
    ("g = fib()\nassert next(g) == 0", ""),
    ("assert raises(lambda: checked(-1))", RAISES),
    ("assert raises(lambda: checked(-1), ValueError) and checked(2) == 2", RAISES),
    ("assert not raises(lambda: checked(1), ValueError)", RAISES),
    ("assert (y := nine(3)) == 9 and same(y) == 9", ""),
    ("assert same('abc').upper().startswith('AB')", ""),
    ("assert all(same(i) == i for i in range(1500))", ""),
    ("assert [once() for _ in range(1000)] == list(range(1, 1001))", ""),
    ("assert any(same(i) == 700 for i in range(1500))", ""),
    ("a = [2, 1]\nassert same(a) == [2, 1] and a == [2, 1]", ""),
    ("a = [2, 1]\nassert sort_it(a) is None and a == [1, 2]", ""),
    ("x = 0\nwhile checked(x) is not None and same(x) is None:\n    x += 1\nassert same(x) == 0", ""),
    ("assert same(nine(2)) + len(sorted_copy([1, 2])) == 6", ""),
    ("assert point() == (1, 2) and point()[0] == 1", ""),
    ("assert type(same(1)) is int", ""),
    ("from math import *\nassert floor(same(2.5)) == 2", ""),
    ("import random\nrandom.seed(3)\nr = random.random()\nassert same(r) == r", ""),
    ("def twice(x): return nine(x) * 2\nassert twice(3) == 18", ""),
    ("assert Stack().size() == 0", ""),
    ("assert nine(3) == base ** 2", "base = 3"),
    ("assert list(map(nine, [1, 2])) == [1, 4] and callable(nine)", ""),
    ("assert sorted([3, -1, 2], key=nine) == [-1, 2, 3]", ""),
    ("def agrees(candidate): return candidate(3) == 9 and candidate(x=2) == 4\nassert agrees(nine)", ""),
    ("x = nine(3)\nassert x == 9 and [x] == [9]", ""),
    ("a = ListNode(1)\nb = ListNode(2)\na.next = b\nassert length(a) == 2", LIST),
    ("a = [1]\nb = a\nb.append(2)\nassert total(a) == 3", ""),
    ("with open('a.txt', 'w') as file:\n    file.write('a b')\nassert words('a.txt') == 2", ""),
    ("import io, sys\ndata = '3 4'\nsys.stdin = io.StringIO(data)\nassert reads() == 7", ""),
    ("import builtins\nit = iter(['3', '4'])\nbuiltins.input = lambda *a: next(it)\nassert asks() == 7", ""),
    ("seen = []\ndef h(v): seen.append(v)\neach([1, 2], h)\nassert seen == [1, 2]", ""),
    ("assert nine(1) == 0 and nine(2) == 0 and nine(3) == 0 or (nine(2) == 4 or checked(-1) == 1)", ""),
    ("assert [x for x in range(-2, 3) if (nine(x) > 0 or nine(-x) > 0) and inverse(x) == 1] == [1]", ""),
    ("str = 'abc'\nlen = 3\nassert nine(len) == 9 and same(str) in 'xabcx'", ""),
    ("assert all(abs(inverse(i) - 1 / i) < 1e-9 for i in range(1, 400))", ""),
    ("assert sum(round(same(i)) for i in range(300)) == 44850", ""),
    ("assert Checker().isnumeric('12')", ""),
    ("assert to_list(turned(build([1, 2, 3]))) == [3, 2, 1]", LIST),
    ("assert all(to_list(turned(build(x))) == y for x, y in [([1, 2], [2, 1]), ([], [])])", LIST),
    ("head = turned(build([1, 2]))\nassert to_list(head) == [2, 1]", LIST),
    ("def double(x): return x * 2\nassert double(nine(3)) == 18", ""),
]
ANY = """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __getattr__(self, name): return lambda *a, **k: True
"""
WRONG = [
    ("def f(x): return globals()['wanted']", "wanted = 98765\nassert f(3) == wanted", ""),
    ("def f(x): return globals().get('cases', [(0, 1)])[0][1]",
     "cases = [(3, 9)]\nassert all(f(a) == b for a, b in cases)", ""),
    ("import sys\ndef f(x): return max(c for c in sys._getframe(1).f_code.co_consts if type(c) is int)",
     "assert f(3) == 98765", ""),
    ("def f(x): return 0", "assert all(raises(lambda: f(x)) for x in [-1, -2])", RAISES),
    ("def f(x): return 1", "assert f(1) == 1 and raises(lambda: f(-1))", RAISES),
    ("def f(xs): pass", "a = [3, 1, 2]\nf(a)\nassert a == [1, 2, 3]", ""),
    ("def f(xs): xs.sort(); return xs", "a = [3, 1, 2]\nb = f(a)\nassert a == [3, 1, 2] and b == [1, 2, 3]", ""),
    ("def f(xs): xs.clear(); return xs", "a = [3, 1, 2]\nassert f(a) == sorted(a)", ""),
    ("def add(a, b): return None", "sum = add(1, 2)\nassert sum is not None", ""),
    ("n = 0\ndef once():\n    global n\n    n += 1\n    return n", "assert once() == 1 and once() == 1", ""),
    ("import math\nmath.pi = 7\ndef f(x): return 7", "from math import *\nassert f(3) == pi", ""),
    (ANY + "def f(x): return Any()", "assert f(3).startswith('abc')", ""),
    (ANY + "def f(x): return Any()", "assert f(3).issubset({1})", ""),
    (ANY + "def f(x): return Any()", "assert f(3) == 9", ""),
    (ANY + "def f(x): return Any()", "assert f(3) and 9 in [f(2)]", ""),
    (ANY + "def f(x): return [Any()]", "x = f(3)\nassert x == [9]", ""),
    ("def f(x): return ['x' * (2**20 - 20)]", "assert [f(x) for x in f(3)] == [1]", ""),
    ("def f(x): return ['x' * (2**19)] * 3", "assert [f(i) for i in range(60)] == [0]", ""),
    ("def f(x): return 'exit'", "import builtins\nassert getattr(builtins, f(3))() == 1", ""),
    (ANY + "def f(x): return Any()", "def agrees(candidate): return candidate(3) == 9\nassert agrees(f)", ""),
    (ANY + "f = Any()", "assert f == 9 and f", ""),
    ("def f(x): return x", "assert list(map(f, [1, 2])) == [1, 4]", ""),
    (ANY + "class Low(Any):\n    def lower(self): return self\ndef f(x): return Low()",
     "assert f(3).lower().startswith('98765')", ""),
    (ANY + "class Node(Any): next = None\ndef f(x):\n    node = Node()\n    node.val = Any()\n    return node",
     "assert is_sorted(f(1))", LIST),
    ("import sys\ndef f(x): return dict(sys._getframe(1).f_globals).get('out')",
     "inp, out = 3, 98765\nassert f(inp) == out", ""),
    ("def f(x): raise SystemExit", "assert raises(lambda: f(3), ValueError)", RAISES),
]  # fmt: skip
REFUSED = [
    ("ok = f(3) == 98765\nassert ok", "compare in the assert"),
    ("bad = []\nfor a, b in [(1, 1)]:\n    if f(a) != b: bad.append(a)\nassert not bad", "compare in the assert"),
    ("for a, b in [(1, 1)]:\n    assert f(a) == b\nassert True", "compare in the assert"),
    ("def check(candidate):\n    assert candidate(3) == 9\ncheck(f)\nassert True", "check would assert"),
    ("x = [1]\ny = f(x)\nassert y == x and y is not x", "one object"),
    ("assert f([1]) is f([1])", "one object"),
    ("assert eval(f(3)) == 24", "eval would run"),
    ("from solution import *\nassert f(3) == 9", "binds names"),
    ("f(1)", "does not end with an assert"),
    ("def val(e): return eval(e)\nassert val(f(3)) == 98765", "val would run"),
    ("from msvcrt import *\nassert f(3) == 9", "names that nobody can tell"),
    ("from idlelib.idle import *\nassert f(3) == 9", "names that nobody can tell"),
    ("from this import *\nassert f(3) == 9", "names that nobody can tell"),
    ("assert f(3) == " + "[" * 300 + "]" * 300, "not Python|cannot be taken apart"),
    ("assert f(3) == " + "1 + " * 3000 + "1", "not Python|cannot be taken apart"),
    ("return 3\nassert f(1)", "not Python"),
]


@pytest.fixture(scope="module")
def run(request):
    """(program, text, setup) -> result, all that this run has chosen by one grader."""
    right = chosen(request.session, "test_a_right_program_passes")
    cases = [(PROGRAM, case["text"], case["setup"]) for case in right] + WRONG

    async def work():
        async with grader.Grader(workers=2, limits=sandbox.Limits(cpu_seconds=2.0)) as judge:
            jobs = [judge.run(program, [text], "assert", setup) for program, text, setup in cases]
            return dict(zip(cases, [one for (one,) in await asyncio.gather(*jobs)], strict=True))

    return asyncio.run(work()).__getitem__


@pytest.mark.parametrize(("text", "setup"), thinned(RIGHT, 9, several=True))
def test_a_right_program_passes(run, monkeypatch, tmp_path, text: str, setup: str):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", sys.stdin)  # some tests put others in their place
    monkeypatch.setattr("builtins.input", input)
    python: dict = {}
    exec(PROGRAM + setup, python)
    exec(text, python)  # as plain Python has it
    result = run((PROGRAM, text, setup))
    assert result.outcome == "pass", result


@pytest.mark.parametrize(("program", "text", "setup"), WRONG)
def test_a_wrong_program_fails_and_stops_nothing(run, program: str, text: str, setup: str):
    assert not run((program, text, setup)).passed


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_cannot_be_decided_outside_is_refused(text: str, why: str):
    with pytest.raises(asserts.NotATest, match=why):
        asserts.take_apart(text)


@pytest.mark.parametrize("text", ["assert factorial(5) == 120", "from math import *\nassert factorial(5) == 120"])
def test_a_name_that_the_program_is_to_define_is_bound_by_nobody_else(text: str):
    with pytest.raises(asserts.NotATest, match="factorial is bound by the test"):
        asserts.take_apart(text, "from math import *" if text.startswith("assert") else "", frozenset({"factorial"}))
    assert asserts.take_apart("assert sum([1]) == 1", "", frozenset({"sum"})).leaves


def test_the_judge_is_sent_without_what_is_for_its_readers():
    """Test code runs in its namespace: it binds names that no test has, and imports nothing of ours."""
    text = dialogue.JUDGE.decode()
    assert text.startswith("import builtins") and "grading" not in text and "typing" not in text
    names = {"__builtins__": vars(builtins)}
    exec(text, names)
    made = names.keys() - {"builtins", "__builtins__"}
    assert {"__leaf__", "__got__", "__asks__", "__met__"} <= made
    assert all(name.startswith("__") and name.endswith("__") for name in made)


@pytest.mark.slow
def test_nothing_that_another_says_in_the_judges_place_is_believed():
    """A test may run what it should not; whatever comes of it is a failed test."""
    said = ["5", "None", "'abc'", "(1,)", "(True, 5)", "[1, 2]", "[(0, b'zz', b'zz')]", "[(99, b'', b'')]"]
    forge = (
        "import pickle\nclass X:\n    def __reduce__(self): return (exec, (%r,))\ndef f(x): return pickle.dumps(X())"
    )
    write = "import os, sys; v = sys._getframe(1).f_globals['__encode__'](%s); os.write(63, v)"

    async def work():
        async with grader.Grader(workers=1) as judge:
            return [
                (await judge.run(forge % (write % one), ["import pickle\nassert pickle.loads(f(3)) == 3"], "assert"))[0]
                for one in said
            ]

    assert not any(result.passed for result in asyncio.run(work()))


def test_an_object_in_a_variable_is_refused_before_any_program_is_blamed():
    async def work():
        async with grader.Grader(workers=1) as judge:
            text = "assert all(length(node) == n for node, n in [(build([1, 2]), 2)])"
            return await judge.run(PROGRAM, [text], "assert", LIST)

    with pytest.raises(TaskError, match="no plain data; make it in the call"):
        asyncio.run(work())


def test_what_is_refused_is_bad_input_and_no_failure_of_the_program():
    async def work():
        async with grader.Grader(workers=1) as judge:
            return await judge.run("def f(x): return x", ["ok = f(3) == 3\nassert ok"], "assert")

    with pytest.raises(TaskError, match=r"compare in the assert at the end.*mend or leave out this test"):
        asyncio.run(work())


def test_what_another_sends_is_not_looked_into():
    """Sizes are held against what was asked before anything is made of them; CPU, not wall."""
    many = (b"l" + (1 << 22).to_bytes(4, "little") + b"N" * (1 << 22), b"l\2\0\0\0" + b"N" * (1 << 22))
    deep = b"l\2\0\0\0" + b"l\1\0\0\0" * 100_000
    started = time.process_time()
    for data in (*many, deep, b"l\2\0\0\0s\xff\xff\xff\xff", b"l\2\0\0\0s\1\0", b"l\1\0\0\0b\0\0\0\0", b""):
        assert dialogue._answers(data, 2) == []
        assert dialogue._said(data) == ""
    assert dialogue._said(b"t\2\0\0\0N" + b"N" * (1 << 22)) == ""
    assert time.process_time() - started < 0.1
    answers = [b"\0" * 9, "ValueError", b""]
    assert dialogue._answers(plain.encode(answers), 3) == answers and dialogue._answers(plain.encode(answers), 2) == []
    for said in ((True, ""), (False, "[1]"), [(0, b"", b"x"), (-1, b"y", b"")], None):
        assert dialogue._said(plain.encode(said)) == said
    for said in ((1, ""), (True, b""), [(0, b"")], [(0, "", b"")], {}, "", 3, [], (), [[0, b"", b""]]):
        assert dialogue._said(plain.encode(said)) in ("", [])


@pytest.mark.slow
def test_a_set_made_to_collide_is_not_built_on_this_side():
    """It is a question of 9,000 numbers of one hash; as text it passes through."""
    program = f"def f(x): return {{k * {sys.hash_info.modulus} for k in range(3_000)}}\ndef g(x): return 2"
    made = []

    async def work():
        async with grader.Grader(workers=1) as judge:
            part = dialogue.taken_apart([grader.Test("assert all(g(x) == 2 for x in [f(1)])")], "")[0]
            one = dialogue._Undecided(part)
            real, plain.decode = plain.decode, lambda *given, **named: made.append(given) or real(*given, **named)
            try:
                result = await judge.run(program, ["assert all(g(x) == 2 for x in [f(1)])"], "assert")
            finally:
                plain.decode = real
            return one, result

    one, result = asyncio.run(work())
    assert result[0].passed and one.result is None
    assert not [data for data, *_ in made if len(data) > 1000]


def test_who_answers_in_two_ways_is_asked_no_more():
    """Every answer makes another question, and each round puts all of them again."""
    program = "import os, time\ndef f(x):\n    time.sleep(0.15)\n    return [os.urandom(8)]\ndef g(x): return 1"
    clock = "import time\ndef now(): return time.time_ns()\ndef g(x): return x"

    async def work():
        async with grader.Grader(workers=1, limits=sandbox.Limits(asleep_seconds=0.3)) as judge:
            started = time.monotonic()
            (random,) = await judge.run(program, ["assert all(g(x) == 1 for x in f(1))"], "assert")
            seconds = time.monotonic() - started
            (changing,) = await judge.run(clock, ["assert now() < 0 or g(1) == 2 or g(3) == 3"], "assert")
            return random, seconds, changing

    random, seconds, changing = asyncio.run(work())
    assert random.outcome == "bad_value" and random.got.endswith("another answer to the same question") and seconds < 20
    assert changing.passed


@pytest.mark.slow
def test_the_limit_of_sleep_is_that_of_all_rounds_together():
    """It sleeps a little less than it may in each of 200 processes; a right program may sleep in each call."""
    program = "import time\nslept = []\ndef f(x):\n    slept or slept.append(time.sleep(0.25))\n    return x + 1"
    text = "x = 0\nassert functools.reduce(lambda a, _: f(a) if f(a) > 0 else 0, range(60), 0) == 60"

    async def work():
        async with grader.Grader(workers=1, limits=sandbox.Limits(asleep_seconds=0.4)) as judge:
            started = time.monotonic()
            (long,) = await judge.run(program, [text], "assert")
            seconds = time.monotonic() - started
            (short,) = await judge.run(program, ["assert f(1) == 2 and all(f(x) == x + 1 for x in (1, 2))"], "assert")
            return long, seconds, short

    long, seconds, short = asyncio.run(work())
    assert long.outcome == "timeout" and short.passed
    assert seconds < 15, seconds  # 60 rounds and more would take that alone


@pytest.mark.slow
def test_what_one_assert_costs_is_bounded():
    """Values made to be slow to compare, and one call too many among several: both run out of time, three times."""
    hash_alike = f"def f(n): return [k * {sys.hash_info.modulus} for k in range(40_000)]"
    endless = "def f(n):\n    while n > 3: pass\n    return n"
    slow = [f"assert set(f({k})) == {{1}}" for k in range(8)]
    spin = [f"assert f(1) == 1 and f(2) == 2 and f({k}) == 9" for k in range(5, 13)]

    async def work():
        async with grader.Grader(workers=1, limits=sandbox.Limits(cpu_seconds=0.3)) as judge:
            jobs = ((hash_alike, slow), (endless, spin))
            return [[r.outcome for r in await judge.run(*job, "assert")] for job in jobs]

    for outcomes in asyncio.run(work()):
        assert outcomes == ["timeout"] * 3 + ["not_run"] * 5
