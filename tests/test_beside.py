# ruff: noqa: E501  a test reads best on the line it was written on
"""Asserts on objects of the program's own: a right program passes, a wrong one fails, or the row is refused."""

from __future__ import annotations

import asyncio
import random
import re

import pytest

import grader
from grading import asserts, sandbox
from tests.support.thin import chosen, thinned

STACK = """
class Stack:
    def __init__(self, items=()): self.a = list(items)
    def push(self, x):
        self.a.append(x)
        return self
    def __len__(self): return len(self.a)
    def __iter__(self): return iter(self.a)
    def __contains__(self, x): return x in self.a
    def __getitem__(self, i): return Stack(self.a[i]) if isinstance(i, slice) else self.a[i]
    def __eq__(self, other): return isinstance(other, Stack) and self.a == other.a
    def __lt__(self, other): return self.a < other.a
    def __le__(self, other): return self.a <= other.a
    def __gt__(self, other): return self.a > other.a
    def __add__(self, other): return Stack(self.a + other.a)
    def __mul__(self, n): return Stack(self.a * n)
    def __neg__(self): return Stack(self.a[::-1])
    def __abs__(self): return sum(self.a)
    def __bool__(self): return bool(self.a)
    def __str__(self): return "Stack" + str(self.a)
    def __repr__(self): return f"Stack({self.a})"
    def __hash__(self): return hash(tuple(self.a))
    def __float__(self): return float(len(self.a))
    def __int__(self): return len(self.a)
    def __format__(self, spec): return format(len(self.a), spec)
    def __reversed__(self): return iter(self.a[::-1])
    def __call__(self, x): return x in self.a
    def copy(self): return Stack(self.a)
    @property
    def top(self): return self.a[-1]
    @classmethod
    def from_text(cls, text): return cls(map(int, text.split()))
class Node:
    def __init__(self, val, next=None): self.val, self.next = val, next
    def __iter__(self):
        while self:
            yield self.val
            self = self.next
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if not self.n: raise StopIteration
        self.n -= 1
        return self.n + 1
def chain(xs):
    return Node(xs[0], chain(xs[1:])) if xs else None
def stacked(xs): return Stack(xs)
def naturals():
    n = 0
    while True:
        yield n
        n += 1
def fibs():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
"""
S = "s = Stack()\ns.push(1)\ns.push(2)\n"
T = S + "t = Stack()\nt.push(1)\nt.push(3)\n"
ORDINARY = [  # (text, what a wrong program has in place of what)
    (S + "assert len(s) == 2", ("return len(self.a)", "return 3")),
    (S + "assert 2 in s", ("return x in self.a", "return False")),
    (S + "assert 9 not in s", ("return x in self.a", "return True")),
    (S + "assert list(s) == [1, 2]", ("iter(self.a)", "iter(self.a[::-1])")),
    (S + "assert sorted(s) == [1, 2]", ("iter(self.a)", "iter(self.a[1:])")),
    (S + "assert sum(s) == 3", ("iter(self.a)", "iter(self.a[1:])")),
    (S + "assert str(s) == 'Stack[1, 2]'", ("Stack\" + ", "stack\" + ")),
    (S + "assert repr(s) == 'Stack([1, 2])'", ('f"Stack(', 'f"stack(')),
    (S + "assert f'{s!s} of {s:03}' == 'Stack[1, 2] of 002'", ("format(len", "format(1 + len")),
    (S + "assert f'{s!r}' == 'Stack([1, 2])'", ('f"Stack(', 'f"stack(')),
    (S + "assert '%s' % s == 'Stack[1, 2]'", ("Stack\" + ", "stack\" + ")),
    (S + "assert '{} {}'.format(s, s) == '2 2'", ("format(len", "format(1 + len")),
    (S + "u = Stack([1, 2])\nassert s == u", ("and self.a == other.a", "and False")),
    (T + "assert s != t", ("and self.a == other.a", "")),
    (T + "assert s < t and not t < s", ("self.a < other.a", "True")),
    (T + "assert s < t and s <= t and t > s", ("self.a > other.a", "False")),
    (T + "assert list(s + t) == [1, 2, 1, 3]", ("self.a + other.a", "other.a + self.a")),
    (T + "assert s + t == Stack([1, 2, 1, 3])", ("self.a + other.a", "other.a + self.a")),
    (S + "assert (s * 2).a == [1, 2, 1, 2]", ("self.a * n", "self.a")),
    (S + "assert (-s).top == 1", ("self.a[::-1])\n    def __abs__", "self.a)\n    def __abs__")),
    (S + "assert abs(s) == 3", ("sum(self.a)", "0")),
    ("s = Stack()\nassert not s", ("bool(self.a)", "True")),
    (S + "assert s", ("bool(self.a)", "False")),
    (S + "assert bool(s) is True", ("bool(self.a)", "False")),
    (T + "assert s and t and (1 if s else 2) == 1", ("bool(self.a)", "self.a[-1] != 3")),
    (S + "assert hash(s) == hash((1, 2))", ("hash(tuple(self.a))", "7")),
    (S + "assert hash(s) == hash(Stack([1, 2]))", ("hash(tuple(self.a))", "id(self)")),
    (S + "assert float(s) == 2.0 and int(s) == 2", ("float(len(self.a))", "1.0")),
    (S + "assert isinstance(s, Stack)", ("class Stack:", "class Heap: pass\nclass Stack:\n    __new__ = lambda c, *a: Heap()")),
    (S + "assert hasattr(s, 'push') and not hasattr(s, 'pull')", ("def copy", "def pull")),
    (S + "assert max(s) == 2 and min(s) == 1", ("iter(self.a)", "iter(self.a[1:])")),
    (S + "assert [x for x in s] == [1, 2]", ("iter(self.a)", "iter(self.a[1:])")),
    (S + "assert [x * 2 for x in s if x > 1] == [4]", ("iter(self.a)", "iter([3])")),
    (S + "assert {x: x for x in s} == {1: 1, 2: 2}", ("iter(self.a)", "iter([3])")),
    (S + "assert any(x == 2 for x in s) and all(x > 0 for x in s)", ("iter(self.a)", "iter([3])")),
    (S + "assert sum(1 for _ in s) == 2", ("iter(self.a)", "iter([3])")),
    (S + "assert tuple(s) == (1, 2) and set(s) == {1, 2}", ("iter(self.a)", "iter([2, 1])")),
    (S + "assert [*s] == [1, 2] and [*s, 3] == [1, 2, 3]", ("iter(self.a)", "iter([2, 1])")),
    (S + "assert type(s).__name__ == 'Stack'", ("class Stack:", "class Heap: pass\nclass Stack:\n    __new__ = lambda c, *a: Heap()")),
    (S + "assert type(s) is Stack", ("class Stack:", "class Heap: pass\nclass Stack:\n    __new__ = lambda c, *a: Heap()")),
    (S + "assert list(reversed(s)) == [2, 1]", ("iter(self.a[::-1])", "iter(self.a)")),
    (S + "assert list(enumerate(s, 1)) == [(1, 1), (2, 2)]", ("iter(self.a)", "iter([2, 1])")),
    (T + "assert list(zip(s, t)) == [(1, 1), (2, 3)]", ("iter(self.a)", "iter([2, 1])")),
    (S + "assert list(zip(s, 'ab')) == [(1, 'a'), (2, 'b')]", ("iter(self.a)", "iter([2, 1])")),
    (S + "assert list(map(str, s)) == ['1', '2']", ("iter(self.a)", "iter([2, 1])")),
    (S + "assert ' '.join(map(str, s)) == '1 2'", ("iter(self.a)", "iter([2, 1])")),
    (S + "assert ' '.join(str(x) for x in s) == '1 2'", ("iter(self.a)", "iter([2, 1])")),
    (S + "assert len(s[1:]) == 1 and list(s[:1]) == [1]", ("Stack(self.a[i])", "Stack()")),
    (S + "assert s.copy() == s", ("return Stack(self.a)\n", "return 3\n")),
    (S + "assert vars(s) == {'a': [1, 2]}", ("self.a = list(items)", "self.a = list(items); self.b = 3")),
    (S + "import copy\nassert copy.deepcopy(s) == s and len(copy.copy(s)) == 2", ("return len(self.a)", "return 3")),
    (T + "assert max(s, t) == t and max(s, t).top == 3", ("self.a > other.a", "False")),
    (T + "assert sorted([t, s]) == [s, t]", ("self.a < other.a", "False")),
    (T + "assert sorted([t, s], key=lambda x: x.top)[0].top == 2", ("self.a[-1]", "-self.a[-1]")),
    (T + "assert [x.top for x in (s, t)] == [2, 3]", ("self.a[-1]", "0")),
    (T + "assert s in [t, s] and s not in [t]", ("and self.a == other.a", "")),
    (S + "assert callable(s) and s(2) and not s(3)", ("return x in self.a", "return True")),
    (S + "assert getattr(s, 'top') == 2", ("self.a[-1]", "0")),
    ("assert len(Stack([1, 2])) == 2", ("return len(self.a)", "return 3")),
    ("assert 2 in Stack([1, 2])", ("return x in self.a", "return False")),
    ("assert all(x in Stack([1, 2]) for x in (1, 2)) and not any(x in Stack([1]) for x in (2, 3))",
     ("return x in self.a", "return True")),
    ("assert [len(Stack(range(n))) for n in (1, 2)] == [1, 2]", ("return len(self.a)", "return 1")),
    ("assert Stack([1]) + Stack([2]) == Stack([1, 2])", ("self.a + other.a", "other.a + self.a")),
    ("assert Stack.from_text('1 2') == Stack([1, 2])", ("map(int, text.split())", "text")),
    ("assert len(stacked([1, 2])) == 2 and list(stacked([3])) == [3]", ("return len(self.a)", "return 3")),
    ("assert str(stacked([1])) == 'Stack[1]' and not stacked([])", ("Stack\" + ", "stack\" + ")),
    ("assert stacked([1]) is not None", ("def stacked(xs): return Stack(xs)", "def stacked(xs): pass")),
    ("assert list(chain([1, 2, 3])) == [1, 2, 3]", ("self = self.next", "self = None")),
    ("assert [x for x in chain([1, 2, 3])] == [1, 2, 3]", ("self = self.next", "self = None")),
    ("assert list(Countdown(3)) == [3, 2, 1]", ("return self.n + 1", "return self.n")),
    ("c = Countdown(3)\nassert next(c) == 3 and next(c) == 2", ("return self.n + 1", "return self.n")),
    ("assert next(naturals()) == 0", ("n = 0", "n = 1")),
    ("g = naturals()\nassert (next(g), next(g)) == (0, 1)", ("n += 1", "n += 2")),
    ("g = fibs()\nassert [next(g) for _ in range(6)] == [0, 1, 1, 2, 3, 5]", ("a + b", "b")),
    ("import itertools\nassert list(itertools.islice(fibs(), 6)) == [0, 1, 1, 2, 3, 5]", ("a + b", "b")),
    ("from itertools import islice\nassert sum(islice(naturals(), 5)) == 10", ("n += 1", "n += 2")),
    ("assert list(itertools.islice(naturals(), 3)) == [0, 1, 2]", ("n += 1", "n += 2")),
]  # fmt: skip
COROUTINES = """
import asyncio
async def f(x):
    await asyncio.sleep(0)
    return x + 1
async def numbers(n):
    for i in range(n):
        yield i
"""
AWAITED = [
    ("assert asyncio.run(f(1)) == 2", "import asyncio"),
    ("import asyncio\nassert asyncio.run(f(1)) == 2", ""),
    ("from asyncio import run\nassert run(f(1)) == 2", ""),
    ("assert asyncio.run(f(1)) == 2", ""),
    ("import asyncio\nassert asyncio.new_event_loop().run_until_complete(f(1)) == 2", ""),
    ("import asyncio\nloop = asyncio.new_event_loop()\nassert loop.run_until_complete(f(1)) == 2", ""),
    ("import asyncio\nasync def main(): return await f(1)\nassert asyncio.run(main()) == 2", ""),
    ("import asyncio\nasync def main(): return await asyncio.gather(f(1), f(2))\nassert asyncio.run(main()) == [2, 3]", ""),
    ("assert asyncio.run(listed(numbers(3))) == [0, 1, 2] and asyncio.run(f(1)) == 2",
     "import asyncio\nasync def listed(a): return [x async for x in a]"),
    ("import asyncio\nasync def main(): return [x async for x in numbers(3)] + [await f(1)]\nassert asyncio.run(main()) == [0, 1, 2, 2]", ""),
    ("import asyncio\nr = asyncio.run(f(1))\nassert r == 2", ""),
    ("import asyncio\nassert [asyncio.run(f(x)) for x in (1, 2)] == [2, 3]", ""),
    ("c = f(1)\ntry:\n    while True: c.send(None)\nexcept StopIteration as done:\n    r = done.value\nassert r == 2", ""),
    ("import asyncio\nassert asyncio.run(asyncio.wait_for(f(1), 2)) == 2", ""),
]  # fmt: skip
LIBRARY = """
import array, collections, dataclasses, datetime, decimal, enum, fractions, ipaddress, pathlib, re, types, uuid
def path(a): return pathlib.Path(a) / "b"
def found(text): return re.search(r"(\\d+)", text)
def packed(xs): return array.array("i", xs)
def address(text): return ipaddress.ip_address(text)
def space(**named): return types.SimpleNamespace(**named)
def half(n): return fractions.Fraction(n, 2)
def exactly(text): return decimal.Decimal(text)
def unique(n): return uuid.UUID(int=n)
@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0
def origin(): return Point(0, 0)
class Color(enum.Enum):
    RED = 1
    BLUE = 2
def lazily(xs): return map(str, xs)
"""
OBJECTS = [
    ("assert str(path('a')) == 'a/b' and path('a').name == 'b'", ('"b"', '"c"')),
    ("from pathlib import Path\nassert path('a') == Path('a/b')", ('"b"', '"c"')),
    ("assert found('a12').group(1) == '12' and found('a') is None", ("\\d+", "\\w+")),
    ("assert found('a12') and not found('a')", ("\\d+", "\\w+")),
    ("assert found('a12') is not None", ("return re", "re")),
    ("assert list(packed([1, 2])) == [1, 2] and packed([1]).tolist() == [1]", ("xs)", "xs[::-1])")),
    ("from array import array\nassert packed([1, 2]) == array('i', [1, 2])", ("xs)", "xs[::-1])")),
    ("assert str(address('::1')) == '::1' and address('127.0.0.1').is_loopback", ("ip_address(text)", "ip_address(3)")),
    ("import ipaddress\nassert address('::1') == ipaddress.ip_address('::1')", ("ip_address(text)", "ip_address(3)")),
    ("assert vars(space(a=1)) == {'a': 1} and space(b=2).b == 2", ("**named)", "a=3)")),
    ("from types import SimpleNamespace\nassert space(a=1) == SimpleNamespace(a=1)", ("Namespace(**named)", "Namespace(a=3)")),
    ("from fractions import Fraction\nassert half(3) == Fraction(3, 2) and half(2) == 1 and float(half(1)) == 0.5",
     ("Fraction(n, 2)", "Fraction(n, 3)")),
    ("from decimal import Decimal\nassert exactly('1.50') == Decimal('1.5') and str(exactly('1.50')) == '1.50'",
     ("Decimal(text)", "Decimal(1)")),
    ("import uuid\nassert unique(3) == uuid.UUID(int=3) and unique(4).int == 4", ("int=n", "int=5")),
    ("import dataclasses\nassert dataclasses.asdict(Point(1, 2)) == {'x': 1, 'y': 2}", ("y: int", "z: int")),
    ("assert Point(1, 2) == Point(1, 2) and Point(1, 2) != Point(2, 1) and Point(1) < Point(2)", ("(order=True)", "(eq=False)")),
    ("assert str(Point(1, 2)) == 'Point(x=1, y=2)'", ("y: int", "z: int")),
    ("p = Point(1, 2)\nassert (p.x, p.y) == (1, 2)", ("y: int", "z: int")),
    ("assert origin() == Point(0, 0)", ("return Point(0, 0)", "return Point(0, 1)")),
    ("assert Color.RED == Color(1) and Color.RED != Color.BLUE and len(Color) == 2", ("BLUE = 2", "BLUE = 1")),
    ("assert [c.name for c in Color] == ['RED', 'BLUE'] and Color.RED in Color", ("BLUE = 2", "GREEN = 2")),
    ("assert next(lazily([1, 2])) == '1' and list(lazily([1])) == ['1']", ("str, xs", "str, xs[::-1]")),
]  # fmt: skip
CASES = (
    [(STACK, text, "", change) for text, change in ORDINARY]
    + [(COROUTINES, text, setup, ("x + 1", "x + 2")) for text, setup in AWAITED]
    + [(LIBRARY, text, "", change) for text, change in OBJECTS]
)
# What it says of itself is what it is asked: none of these is the right answer.
LIAR = """
class Liar(int):
    __eq__ = __contains__ = __le__ = __ge__ = lambda *a: True
    __ne__ = lambda *a: False
    __lt__ = __gt__ = lambda *a: True
    __sub__ = __rsub__ = __add__ = __radd__ = __mul__ = __xor__ = __abs__ = __round__ = lambda *a: Liar()
    __bool__ = lambda *a: True
    __hash__ = lambda *a: 7
    __iter__ = lambda *a: iter([Liar(), Liar()])
    __len__ = lambda *a: Liar(2)
    __getitem__ = lambda *a: Liar()
    __str__ = __repr__ = __format__ = lambda *a: Text("Liar")
    __float__ = lambda *a: 0.5
    __getattr__ = lambda *a: Liar()
    __call__ = lambda *a, **k: Liar()
class Text(str):
    __eq__ = lambda *a: True
    __hash__ = lambda *a: 7
def f(*x): return Liar()
g = h = f
"""
FORGED = [  # (text, setup): the program gives liars and knows nothing
    ("assert f(3) == 98765", ""),
    ("assert 98765 == f(3)", ""),
    ("assert not f(3) != 98765", ""),
    ("assert 98765 in f(3)", ""),
    ("assert f(3) in [98765]", ""),
    ("assert f(3) < 98765 and f(3) > 98764", ""),
    ("assert f(30) == g(29) + h(28) and f(30) > 0", ""),
    ("assert f(1) == g(1)", ""),
    ("assert f(1) < g(1)", ""),
    ("assert f(1) in g(1)", ""),
    ("s = f(3)\nassert s == 98765", ""),
    ("s = f(3)\nt = g(3)\nassert s == t", ""),
    ("s = f(3)\nassert 98765 in s", ""),
    ("assert abs(f(3) - 98765) < 1e-6", ""),
    ("assert round(f(3) - 98765, 2) == 0", ""),
    ("import math\nassert math.isclose(f(3), 98765)", ""),
    ("assert max(f(3), 98765) == 98765 and min(f(3), 98765) == 98765", ""),
    ("assert len(f(3)) == 98765", ""),
    ("assert len(f(3)) == len(g(3)) == 98765", ""),
    ("assert str(f(3)) == '98765'", ""),
    ("assert f'{f(3)}' == '98765'", ""),
    ("assert sum(f(3)) == 98765", ""),
    ("assert sum(f(3), -98765) == 0", ""),
    ("assert sorted(f(3)) == [98765]", ""),
    ("assert [x for x in f(3)] == [98765]", ""),
    ("assert all(x == 98765 for x in f(3))", ""),
    ("assert any(x == 98765 for x in f(3))", ""),
    ("assert all(x.val == y for x, y in zip(f(3), [98765]))", ""),
    ("assert all(map(lambda x: x == 98765, f(3)))", ""),
    ("assert next(x for x in f(3) if x == 98765) == 98765", ""),
    ("import operator\nassert operator.eq(f(3), 98765)", ""),
    ("import operator\nassert all(map(operator.eq, f(3), [98765]))", ""),
    ("assert isinstance(f(3), str)", ""),
    ("assert f(3).startswith('98765')", ""),
    ("assert bool(f(3).startswith('98765'))", ""),
    ("assert not not f(3).isupper()", ""),
    ("assert f(3).__eq__(98765)", ""),
    ("assert str(f(3)).startswith('98765')", ""),
    ("assert sorted(f(3)).count(98765) == 1", ""),
    ("assert same(f(3))", "def same(x): return x == 98765"),
    ("assert bool(same(f(3)))", "def same(x): return x == 98765"),
    ("assert not differs(f(3))", "def differs(x): return x != 98765"),
    ("assert all([same(f(3))])", "def same(x): return x == 98765"),
    ("assert (same(f(3)) and 1) == 1", "def same(x): return x == 98765"),
    ("assert [same(x) for x in f(3)] == [True]", "def same(x): return x == 98765"),
    ("import asyncio\nassert asyncio.run(f(3)) == 98765", ""),
    ("import asyncio\nassert asyncio.run(same(f(3)))", "async def same(x): return await x == 98765"),
    ("assert (98765 if f(3) else 0) == f(3)", ""),
    ("assert {f(3): 1} == {98765: 1}", ""),
    ("assert {f(3), 98765} == {98765}", ""),
    ("assert f(3) ** 2 == 98765 ** 2", ""),
    ("wanted = [98765]\nassert list(f(3)) == wanted", ""),
    ("wanted = [98765]\nassert f(3) == wanted", ""),
]
REFUSED = [
    (S + "assert s == [1, 2]", "compare what is in s"),
    (S + "assert [1, 2] == s", "compare what is in s"),
    (S + "assert s != 3 or s < 5", "compare what is in s"),
    (S + "assert s in [1, 2]", "compare what is in s"),
    (S + "assert s.a == [1, 2] and s == (1, 2)", "compare what is in s"),
    (S + "e = s == Stack()\nassert e", "compare in the assert"),
    ("async def main(): return await f(1)\nassert main() == 2", "asyncio.run"),
]


def outcomes(jobs: list[tuple[str, str, str]]) -> dict:
    """(program, text, setup) -> result; some texts of one program are asked together, so that all workers have work."""
    together: dict = {}
    for number, (program, text, setup) in enumerate(jobs):
        together.setdefault((program, setup, number // 50), []).append(text)

    async def work():
        async with grader.Grader(workers=2, limits=sandbox.Limits(cpu_seconds=2.0)) as judge:
            results = await asyncio.gather(*(judge.run(p, texts, "assert", s) for (p, s, _), texts in together.items()))
            named = zip(together.items(), results, strict=True)
            return {
                (p, text, s): one for ((p, s, _), texts), got in named for text, one in zip(texts, got, strict=True)
            }

    return asyncio.run(work())


@pytest.fixture(scope="module")
def run(request):
    """(program, text, setup) -> result; all that this run has chosen by one grader."""
    right = chosen(request.session, "test_a_right_program_passes")
    jobs = [(case["program"], case["text"], case["setup"]) for case in right if "program" in case]
    forged = chosen(request.session, "test_who_knows_nothing_wins_nothing")
    return outcomes(jobs + [(LIAR, case["text"], case["setup"]) for case in forged]).__getitem__


@pytest.mark.parametrize(("program", "text", "setup"), thinned([case[:3] for case in CASES], 15, several=True),
                         ids=[case[1] for case in CASES])  # fmt: skip
def test_a_right_program_passes(run, program, text, setup):
    result = run((program, text, setup))
    assert result.outcome == "pass", result


@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.slow)])
def test_a_wrong_program_fails(every):
    jobs = []
    for program, text, setup, change in CASES[::every]:
        assert program.count(change[0]), f"of {text!r} the wrong program is the right one"
        jobs.append((program.replace(*change), text, setup))
    assert [job[1:] for job, result in outcomes(jobs).items() if result.passed] == []


@pytest.mark.parametrize(("text", "setup"), thinned(FORGED, 4, several=True))
def test_who_knows_nothing_wins_nothing(run, text, setup):
    result = run((LIAR, text, setup))
    assert not result.passed, result


@pytest.mark.parametrize(("text", "setup"), FORGED)
def test_no_expected_value_is_handed_to_an_operator(text, setup):
    part = asserts.take_apart(text, setup)
    assert not any("98765" in group.text for group in part.groups)


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_can_be_seen_never_to_pass_is_refused(text, why):
    with pytest.raises(asserts.NotATest, match=why):
        asserts.take_apart(text)


class Texts:
    """Random asserts on objects, generators and coroutines of a program's own."""

    def __init__(self, seed: int) -> None:
        self.lot = random.Random(seed)

    def one(self, *forms: str) -> str:
        """One of the forms, each capital word in it made: Own an object, It something to go through, Val a value."""
        form, made = self.lot.choice(forms), []
        for word in re.split(r"\b(OWN|IT|VAL|INT)\b", form):
            made.append(
                {"OWN": self.own, "IT": self.it, "VAL": self.value, "INT": self.number}.get(word, lambda w=word: w)()
            )
        return "".join(made) if len(made) == 1 else f"({''.join(made)})"

    def number(self) -> str:
        return str(self.lot.randrange(4))

    def own(self) -> str:
        return self.one("s", "t", "s", "t", "Stack([1, INT])", "OWN + OWN", "OWN * INT", "-OWN", "OWN[1:]", "OWN.copy()",
                        "copy.copy(OWN)", "max(s, t)", "stacked([INT])", "Stack.from_text('INT 1')")  # fmt: skip

    def it(self) -> str:
        return self.one("OWN", "OWN", "OWN", "chain([INT, 2])", "Countdown(3)", "reversed(OWN)", "[x for x in IT]", "sorted(IT)",
                        "itertools.islice(naturals(), INT)", "itertools.islice(fibs(), 2, 5)", "(x + 1 for x in IT)", "map(abs, IT)",
                        "list(IT)[:2]", "zip(OWN, OWN)", "enumerate(IT)", "[INT, INT]", "[*OWN, 3]")  # fmt: skip

    def value(self) -> str:
        return self.one("len(OWN)", "sum(OWN)", "list(IT)", "sorted(OWN)", "str(OWN)", "repr(OWN)", "f'{OWN}'", "f'{OWN!r:>9}'",
                        "float(OWN)", "abs(OWN)", "OWN.top", "list(IT)[0]", "next(iter(IT))", "max(OWN)", "any(x for x in OWN)",
                        "isinstance(OWN, Stack)", "OWN == OWN", "OWN != OWN", "OWN < OWN", "INT in OWN", "INT in list(IT)", "not OWN",
                        "bool(OWN)", "[x.top for x in [OWN, OWN]]", "(OWN + OWN).top", "tuple(IT)", "sum(1 for _ in IT)",
                        "OWN(INT)", "OWN[0]", "len(VAL) if isinstance(VAL, str) else VAL", "hash(OWN)", "hash(OWN) == hash(OWN)",
                        "' '.join(str(x) for x in IT)", "{x: INT for x in OWN}", "set(OWN) & {INT, 1}", "VAL if OWN else VAL", "type(OWN).__name__",
                        "OWN is None", "[VAL, VAL]", "len(list(IT)) + INT", "sorted([OWN, OWN])[0].top", "all(x > 0 for x in IT)",
                        "OWN in [OWN, OWN]", "callable(OWN)", "max(IT, default=INT)", "vars(OWN)['a']", "OWN <= OWN",
                        "[len(Stack(range(i))) for i in (1, INT)]", "[i in OWN for i in (1, INT)]", "' '.join(map(str, IT))")  # fmt: skip


def python_says(text: str) -> bool:
    names: dict = {}
    exec(STACK + COROUTINES, names)
    try:
        exec(text, names)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("many", [8, pytest.param(500, marks=pytest.mark.slow)])
def test_random_asserts_come_out_as_in_plain_python(many):
    texts, made, refused = Texts(many), [], 0
    while len(made) < many:
        value = texts.value()
        if texts.lot.random() < 0.03:
            value = texts.lot.choice(("asyncio.run(f(INT))", "[asyncio.run(f(i)) for i in (1, INT)]")).replace(
                "INT", "2"
            )
        before = T + "import copy, itertools\n"
        names: dict = {}
        exec(STACK + COROUTINES + before, names)
        before += "import asyncio\n" if "asyncio" in value else ""
        try:
            wanted = eval(value, names)
        except Exception:
            continue
        wrong = texts.lot.choice([wanted, wanted, not wanted, 7, [wanted]])
        other = texts.lot.choice((f"{value} == {wrong!r}", f"{wrong!r} == {value}", value, f"not {value}", f"{value} and {texts.value()}",
                                  f"{value} == {wanted!r} and {texts.value()} != {wrong!r}", f"({value}) == ({texts.value()})"))  # fmt: skip
        text = f"{before}assert {other}"
        try:
            asserts.take_apart(text)
        except asserts.NotATest:
            refused += 1
            continue
        made.append(text)
    assert refused < many / 10
    program = STACK + COROUTINES
    results = outcomes([(program if "asyncio" in text else STACK, text, "") for text in made])
    apart = []
    for text in made:
        right, result = python_says(text), results[program if "asyncio" in text else STACK, text, ""]
        if result.passed != right:
            apart.append((text.splitlines()[-1], right, result.outcome, result.got))
    # what a function of no capital letter gives is no object of a class as far as the test says
    apart = [one for one in apart if not ("stacked" in one[0] and one[1])]
    assert [one for one in apart if not one[1]] == [], "a wrong one passes"
    assert apart == []


LOOKS = """
import dis, sys
class Truth:
    def __bool__(self):
        return not any(one.opname == "UNARY_NOT" for one in dis.get_instructions(sys._getframe(1).f_code))
def is_valid(text): return Truth()
"""


@pytest.mark.slow
def test_an_object_that_looks_at_who_asks_is_not_true_of_one_and_false_of_the_other():
    """A program without an idea would pass `is_valid(good)` and `not is_valid(bad)` alike."""
    texts = [
        "assert not is_valid('b')",
        "assert is_valid('a') and not is_valid('b')",
        "assert (not is_valid('b')) == True",
        "assert [not is_valid(text) for text in 'bc'] == [True, True]",
        "assert all(not is_valid(text) for text in 'bc')",
    ]
    assert not any(result.passed for result in outcomes([(LOOKS, text, "") for text in texts]).values())


LIES = """
class Liar:
    startswith = issubset = __eq__ = __contains__ = lambda *given: True
    __sub__ = __mod__ = __truediv__ = lambda *given: 0
class Solution:
    def f(self, x): return Liar()
def f(x): return Liar()
def Find_It(x): return Liar()
"""


@pytest.mark.parametrize(
    "text",
    thinned(
        [
            "def err(x): return abs(x - 9)\nassert err(f(3)) < 1e-6",
            "def said(x): return 'ok' if x == 9 else 'bad'\nassert said(f(3)) == 'ok'",
            "def bad(x): return [] if x == [1, 2] else ['no']\nassert not bad(f(3))",
            "def same(x): return int(x == 9)\nassert same(f(3))",
            "assert Solution().f(3).startswith('ab')",
            "assert Solution().f(3).issubset({1, 2})",
            "assert Solution().f(3).__eq__(9)",
            "assert 9 in Find_It(3)",
            "assert Find_It(7) % 9 == 0",
        ],
        3,
    ),
)
def test_no_value_of_a_test_goes_where_an_object_answers_as_it_likes(text):
    (result,) = outcomes([(LIES, text, "")]).values()
    assert not result.passed, result


LISTS = "def to(h):\n    o = []\n    while h: o.append(h.val); h = h.next\n    return o"
NODES = """
class ListNode:
    def __init__(self, val=0, next=None): self.val, self.next = val, next
class Solution:
    def rev(self, head):
        last = None
        while head: head.next, last, head = last, head, head.next
        return last
"""


def test_a_reader_of_a_list_ends_where_nobody_knows_the_list_yet():
    setup = LISTS + "\ndef mk(xs):\n    h = None\n    for x in reversed(xs): h = ListNode(x, h)\n    return h"
    (result,) = outcomes([(NODES, "assert to(Solution().rev(mk([1, 2, 3]))) == [3, 2, 1]", setup)]).values()
    assert result.outcome == "pass", result
