# ruff: noqa: E501  a program reads best on the line it was written on
"""Several calls in one process: nobody can tell, and whoever could gets a process for each."""

import ast
import importlib
import json
import operator
import sys
from pathlib import Path

import pytest

from grading import protocol, stateless
from tests.test_sandbox import BEST, TIERS, call, outputs, worker_in

ROOT = Path(__file__).parent.parent
F = ["__value__ = f()"] * 3


def together_and_alone(programs_and_pieces, tier=BEST, **limits):
    """For each program: [(outcome, status, stdout, cpu_seconds)] of its calls, asked at once, and asked one at a time."""

    async def work(worker):
        found = []
        for program, pieces in programs_and_pieces:
            inputs = [call(piece) for piece in pieces]
            together = await outputs(worker, program, inputs, protocol.MODULE, **limits)
            alone = [(await outputs(worker, program, [one], protocol.MODULE, **limits))[0] for one in inputs]
            found.append((together, alone))
        return found

    return worker_in(tier, work)


def verdicts(results):
    return [(r.outcome, r.status, r.stdout) for r in results]


def shared(results):
    """Was it one process? Then its time is split evenly, to the last digit."""
    if not stateless.is_known():
        pytest.skip("nothing shares a process under a Python that has not been looked at")
    return len(results) > 1 and len({r.cpu_seconds for r in results}) == 1 and results[0].cpu_seconds > 0


REMEMBERS = {  # each would answer differently the second time, if the first call could still be felt
    "global": "n = 0\ndef f():\n    global n\n    n += 1\n    return n",
    "deleted global": "n = 0\ndef f():\n    global n\n    del n",
    "list": "seen = []\ndef f():\n    seen.append(1)\n    return len(seen)",
    "list in a tuple": "seen = ([], 1)\ndef f():\n    seen[0].append(1)\n    return len(seen[0])",
    "memo": "memo = {}\ndef f():\n    memo[len(memo)] = 1\n    return len(memo)",
    "default": "def f(seen=[]):\n    seen.append(1)\n    return len(seen)",
    "default of a lambda": "f = lambda seen=[]: (seen.append(1), len(seen))[1]",
    "default of an inner function": "def f(*, seen={}):\n    seen[len(seen)] = 1\n    return len(seen)",
    "attribute": "def f():\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n",
    "attribute, written": "def f():\n    try:\n        return f.n\n    except AttributeError:\n        f.n = 1\n        return 0",
    "setattr": "def f():\n    try:\n        return f.n\n    except AttributeError:\n        setattr(f, 'n', 1)\n        return 0",
    "dict of a function": "def f():\n    f.__dict__['n'] = f.__dict__.get('n', 0) + 1\n    return f.__dict__['n']",
    "defaults": "def f(n=0):\n    f.__defaults__ = (n + 1,)\n    return n",
    "code": "def g():\n    return 1\ndef h():\n    return 2\ndef f():\n    n = g()\n    g.__code__ = h.__code__\n    return n",
    "class": "class C:\n    n = 0\ndef f():\n    C.n += 1\n    return C.n",
    "iterator": "numbers = iter(range(9))\ndef f():\n    return next(numbers)",
    "count": "import itertools\nnumbers = itertools.count()\ndef f():\n    return next(numbers)",
    "generator": "numbers = (k for k in range(9))\ndef f():\n    return next(numbers)",
    "closure": "def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n        return n\n    return f\nf = make()",
    "decorator": "from functools import lru_cache\n@lru_cache\ndef g():\n    return 1\ndef f():\n    g()\n    return g.cache_info().hits",
    "globals": "def f():\n    globals()['n'] = globals().get('n', 0) + 1\n    return globals()['n']",
    "vars": "import math\ndef f():\n    vars(math)['n'] = vars(math).get('n', 0) + 1\n    return vars(math)['n']",
    "module": "import math\ndef f():\n    try:\n        return math.n\n    except AttributeError:\n        math.n = 1\n        return 0",
    "builtins": "def f():\n    n = __builtins__.__dict__.get('n', 0)\n    __builtins__.n = n + 1\n    return n",
    "attrgetter": "import operator\ndef f():\n    d = operator.attrgetter('__dict__')(f)\n    d['n'] = d.get('n', 0) + 1\n    return d['n']",
    "wraps": "from functools import update_wrapper\ndef g(): pass\ndef f():\n    update_wrapper(f, g)\n    return f.__name__",
    "by way of a module": "import copy\ndef f():\n    copy.copyreg.dispatch_table[len(copy.copyreg.dispatch_table)] = 1\n    return len(copy.copyreg.dispatch_table)",
    "exec": "def f():\n    exec('global n\\ntry:\\n  n += 1\\nexcept NameError:\\n  n = 0')\n    return n",
    "random": "import random\ndef f():\n    return random.random()",
    "sys": "import sys\ndef f():\n    sys.setrecursionlimit(sys.getrecursionlimit() + 1)\n    return sys.getrecursionlimit()",
    "file": "def f():\n    with open('n', 'a') as file:\n        return file.write('x') + file.tell()",
    "decimal": "from decimal import getcontext\ndef f():\n    getcontext().prec += 1\n    return getcontext().prec",
    "bound to a name": "keep = [].append, []\ndef f():\n    keep[1].append(1)\n    return len(keep[1])",
    "walrus": "[(seen := [])]\ndef f():\n    seen.append(1)\n    return len(seen)",
    "unpacked": "first, *seen = 1, 2\ndef f():\n    seen.append(1)\n    return len(seen)",
    "in an if": "if True:\n    seen = []\ndef f():\n    seen.append(1)\n    return len(seen)",
    "in a loop": "for seen in ([],):\n    pass\ndef f():\n    seen.append(1)\n    return len(seen)",
    "matched": "match [1, 2]:\n    case [*seen]:\n        pass\ndef f():\n    seen.append(1)\n    return len(seen)",
    "annotated": "seen: list = list()\ndef f():\n    seen.append(1)\n    return len(seen)",
    "annotate": "def f(x: [1].append(1) = 0):\n    d = f.__annotate__.__defaults__ or ((),)\n    f.__annotate__.__defaults__ = ((*d[0], 1),)\n    return len(d[0])",
    "annotate, of its own making": "from typing import List, Union\ndef f(*x):\n    def __annotate__(x=(1,)):\n        return List[Union[int, str]]\n    return __annotate__() is __annotate__()",
    "annotate, by call": "import typing\ndef f(x: typing.overload(lambda: 0) = 0):\n    n = len(typing.get_overloads(f))\n    f.__annotate__(1)\n    return n",
    "annotations": "def f(x: [] = 0):\n    f.__annotations__['x'].append(1)\n    return len(f.__annotations__['x'])",
    "caught error": "def g():\n    return 1\ntry:\n    raise ValueError([])\nexcept ValueError as error:\n    seen = error.args[0]\ndef f():\n    seen.append(1)\n    return len(seen)",
    # by way of frames and code, whose names do not begin with an underscore
    "generator's frame": "def f():\n    d = (x for x in ()).gi_frame.f_globals\n    d['n'] = d.get('n', 0) + 1\n    return d['n']",
    "frame's builtins": "def f():\n    d = (x for x in ()).gi_frame.f_builtins\n    d['n'] = d.get('n', 0) + 1\n    return d['n']",
    "coroutine's frame": "async def c(): yield\ndef f():\n    d = c().ag_frame.f_globals\n    d['n'] = d.get('n', 0) + 1\n    return d['n']",
    "traceback's frame": "def f():\n    def leave(s, kind, error, tb):\n        d = tb.tb_frame.f_globals\n        d['n'] = d.get('n', 0) + 1\n        s.out.append(d['n'])\n        return True\n    c = type('C', (), {'__enter__': lambda s: s, '__exit__': leave, 'out': []})()\n    with c:\n        1 / 0\n    return c.out",
    "own code": "def f():\n    g = compile('import math\\nmath.n = getattr(math, \"n\", 0) + 1', 'x', 'exec')\n    d = {}\n    type(f)(g, d)()\n    return d['math'].n",
    "another's code": "def f():\n    def g2():\n        yield x.n\n    c = g2().gi_code\n    d = next(type(f)(c.replace(co_names=('x', '__dict__')), {'x': f})())\n    d['n'] = d.get('n', 0) + 1\n    return d['n']",
    # by names that stand in constants
    "class pattern": "def f():\n    match f:\n        case object(__globals__=d):\n            d['n'] = d.get('n', 0) + 1\n            return d['n']",
    "get_field": "import string\ndef f():\n    d = string.Formatter().get_field('0.__globals__', (f,), {})[0]\n    d['n'] = d.get('n', 0) + 1\n    return d['n']",
    "type hints": "import typing\ndef g(x: \"globals().__setitem__('n', globals().get('n', 0) + 1) or int\"): pass\ndef f():\n    typing.get_type_hints(g)\n    return n",
    "format": "import math\ndef f():\n    n = '__annotations__' in '{0.__dict__}'.format(math)\n    '{0.__annotations__}'.format(math)\n    return n",
    "format and a warning": "def f():\n    n = '__warningregistry__' in '{0.__globals__}'.format(f)\n    bool(NotImplemented)\n    return n",
    # what harmless modules hold, and what they do to what they are given
    "dispatch table": "import copy\ndef f():\n    copy.dispatch_table[len(copy.dispatch_table)] = 1\n    return len(copy.dispatch_table)",
    "excluded attributes": "import typing\ndef f():\n    typing.EXCLUDED_ATTRIBUTES.append(1)\n    return len(typing.EXCLUDED_ATTRIBUTES)",
    "part of a module": "from re._constants import OPCODES\ndef f():\n    OPCODES.append(1)\n    return len(OPCODES)",
    "renamed on import": "from typing import EXCLUDED_ATTRIBUTES as seen\ndef f():\n    seen.append(1)\n    return len(seen)",
    "renamed module": "import typing as t\ndef f():\n    t.EXCLUDED_ATTRIBUTES.append(1)\n    return len(t.EXCLUDED_ATTRIBUTES)",
    "no_type_check": "import typing\ndef g(x: int): pass\ndef f():\n    n = len(typing.get_type_hints(g))\n    typing.no_type_check(g)\n    return n",
    "overload": "import typing\ndef f():\n    def g(x: int): pass\n    n = len(typing.get_overloads(g))\n    typing.overload(g)\n    return n",
    "final": "import typing\ndef f():\n    n = len(dir(f))\n    typing.final(f)\n    return n",
    "copied": "import copy\ndef f():\n    n = hasattr(f, 'n')\n    copy.copy(type('C', (), {'__reduce_ex__': lambda s, v: (lambda: f, (), {'n': 1})})())\n    return n",
    "generic alias": "from collections import Counter\ndef f():\n    n = len(dir(Counter))\n    type[int](Counter())\n    return n",
    "generic alias of the module": "from collections import Counter\nT = type[int]\ndef f():\n    n = len(dir(Counter))\n    T(Counter())\n    return n",
    "registered": "from collections.abc import Sequence\ndef f():\n    n = isinstance(1, Sequence)\n    Sequence.register(int)\n    return n",
    "cache token": "import functools\nfrom collections.abc import Sized\ndef f():\n    n = functools.get_cache_token()\n    Sized.register(type('C', (), {}))\n    return n",
    "made lazily": "import math\ndef f():\n    n = len(dir(math))\n    hasattr(math, '__annotations__')\n    return n",
    "interned": "from collections import namedtuple\ndef f():\n    name = ''.join(['ab', 'cd'])\n    t = namedtuple(name, 'x')\n    match t:\n        case object(__name__=s):\n            return s is name",
    # what a module runs besides
    "bound by a call": "seen = list()\nprint(1)\ndef f():\n    seen.append(1)\n    return len(seen)",
    "default by a call": "print(1)\ndef f(seen=list()):\n    seen.append(1)\n    return len(seen)",
    "default of a list beside a call": "print([1])\ndef f(seen=[]):\n    seen.append(1)\n    return len(seen)",
    "sum of lists": "print(1)\nseen = [] + []\ndef f():\n    seen.append(1)\n    return len(seen)",
    "unpacked call": "a, b = map(list, '12')\ndef f():\n    a.append(1)\n    return len(a)",
    "bound in passing": "print(seen := [])\ndef f():\n    seen.append(1)\n    return len(seen)",
    "decorated": "def keep(g):\n    return g()\n@keep\ndef seen():\n    return []\ndef f():\n    seen.append(1)\n    return len(seen)",
    "its own globals under a harmless name": "def index():\n    pass\ndef f():\n    try:\n        return index.count\n    except AttributeError:\n        index.count = 1\n        return 0",
}  # fmt: skip


@pytest.mark.slow
def test_no_call_can_feel_the_one_before():
    work = [(program, ["__value__ = f()"] * 3) for program in REMEMBERS.values()]
    for name, (together, alone) in zip(REMEMBERS, together_and_alone(work), strict=True):
        assert verdicts(together) == verdicts(alone), name
        assert len(set(verdicts(together))) == 1, name  # the same answer three times


DIFFER = {  # program, pieces, and what the second would answer if it could feel the first
    "equal keys of a cache": ("import re\ndef f(x):\n    return bool(re.match('a', 'A', x))", ["__value__ = f(2)", "__value__ = f(2.0)"]),
    "kept patterns": ("import re\ndef f(k):\n    p = re.compile('x')\n    for i in range(600):\n        re.compile('%d_%d' % (k, i))\n    return re.compile('x') is p", ["__value__ = f(1)", "__value__ = f(2)"]),
    "kept types": ("from typing import List, Union\ndef f(x, y):\n    return str(List[Union[x, y]])", ["__value__ = f(int, str)", "__value__ = f(str, int)"]),
    "kept types by another name": ("from typing import List, Union\nL = List\nU = Union\ndef f(x, y):\n    return str(L[U[x, y]])", ["__value__ = f(int, str)", "__value__ = f(str, int)"]),
    **{
        f"kept types of {name}, {how}": (f"{program}\ndef f(x):\n    return str({use}[x])", ["__value__ = f(1)", "__value__ = f(True)"])
        for name in ("Counter", "OrderedDict")
        for how, program, use in (
            ("by attribute", "import typing", f"typing.{name}"),
            ("by name", f"from typing import {name}", name),
            ("by another name", "import typing as string", f"string.{name}"),
            ("beside the other", f"from collections import {name}\nimport typing", f"typing.{name}"),
            ("after the other", f"from collections import {name}\nfrom typing import {name}", name),
        )
    },
    "kept types, imported inside": ("def f(x):\n    from typing import Counter\n    return str(Counter[x])", ["__value__ = f(1)", "__value__ = f(True)"]),
    "kept types, in the module inside": ("def f(x):\n    import typing\n    return str(typing.Counter[x])", ["__value__ = f(1)", "__value__ = f(True)"]),
    "kept types, in a call": ("import typing\ndef f(x): return x", ["__value__ = str(typing.Counter[f(1)])", "__value__ = str(typing.Counter[f(True)])"]),
    "pseudo-members": ("import re\ndef f(x):\n    return int(re.RegexFlag(x))", ["__value__ = f(1 << 20)", "__value__ = f(float(1 << 20))"]),
    "subclass hook": ("from collections.abc import Sequence\ndef f(x):\n    if x:\n        type(Sequence)('C', (Sequence,), {'__subclasshook__': classmethod(lambda c, x: True)})\n    return isinstance(1, Sequence)", ["__value__ = f(1)", "__value__ = f(0)"]),
    "depth after a warm-up": ("def f(n):\n    return 1 + sum(map(f, [n - 1])) if n else 0", ["__value__ = f(200)", *(f"__value__ = f({n})" for n in range(979, 992))]),
    "depth, caught": ("def d(n):\n    try:\n        return d(n + 1)\n    except RecursionError:\n        return n\ndef f():\n    return d(0)", F),
    "garbage in cycles": ("def f():\n    a = []\n    a.append(a)\n    a.append(bytes(300 << 20))\n    return len(a)\ndef g():\n    return len(bytes(800 << 20))", ["__value__ = f()", "__value__ = g()"]),
    "out of memory, caught": ("def f():\n    a = []\n    a.append(a)\n    try:\n        a.append(bytes(300 << 20))\n    except MemoryError:\n        return 0\n    return 1", F * 2),
    "annotated": ("def f(x): return x", ["__value__: int = 3", "__value__ = len(__annotations__)"]),
    "behind many names": ("def f(x): return x", [f"[] and (__value__, {', '.join(f'n{i}' for i in range(1, 256))})\nx = 3", "__value__ = x"]),
    "globals of a call": ("def f(x): return x", ["__value__ = globals().setdefault('n', 5)", "__value__ = n"]),
    "replaced by a call": ("def f(x): return x", ["globals()['f'] = len\n__value__ = f('abc')", "__value__ = f('ab')"]),
    "exec in a call": ("def f(x): return x", ["__value__ = exec('global z; z = 3')", "__value__ = z"]),
    "setattr in a call": ("def f(x): return x", ["__value__ = setattr(f, 'n', 1)", "__value__ = f.n"]),
    "dict of a function in a call": ("def f(x): return x", ["__value__ = f.__dict__.setdefault('n', 1)", "__value__ = f.n"]),
    "bound in a comprehension": ("def f(x): return x", ["__value__ = [z := 3 for _ in (1,)]", "__value__ = z"]),
    "bound by a pattern": ("def f(x): return x", ["match {1: f(2)}:\n    case {1: __value__, **rest}: pass", "__value__ = rest"]),
    "left from the one before": ("def f(): return 1", ["__value__ = f()", "f()", "__value__"]),
    "nothing at all": ("def f(): return 1", ["", "pass", "__value__ = f()", "__value__ = f"]),
}  # fmt: skip


@pytest.mark.slow
def test_no_call_can_feel_another_one_before() -> None:
    for name, (together, alone) in zip(DIFFER, together_and_alone(DIFFER.values()), strict=True):
        assert verdicts(together) == verdicts(alone), name


@pytest.mark.slow
def test_memory_and_timeouts_are_told_as_of_calls_made_alone() -> None:
    much = "def f():\n    a = b'x' * (480 << 20)\n    raise ValueError\ndef g(): return 1"
    ((together, alone),) = together_and_alone(
        [(much, [f"__value__ = {one}()" for one in "gfg"])], memory_bytes=540 << 20
    )
    assert [r.outcome for r in together] == [r.outcome for r in alone] == ["ended", "memory_limit", "ended"]

    async def work(worker):
        program = "def spin():\n    while 1: pass\ndef f(x):\n    return x\n"
        inputs = [call("__value__ = spin()")] * 3 + [call(f"__value__ = f({k})") for k in range(80)]
        return await outputs(worker, program, inputs, protocol.MODULE, cpu_seconds=0.1)

    assert [r.outcome for r in worker_in(BEST, work)] == ["timeout"] * 3 + ["not_run"] * 80


SHARES = {  # ways to write a function that a model has
    "typing beside collections": "from typing import List, Dict\nfrom collections import Counter, OrderedDict\ndef f(x: List[int] = ()) -> Dict[str, int]:\n    return dict(Counter('aab')), list(OrderedDict())",
    "docstring": '"""Doubles."""\ndef f(x: int = 2) -> int:\n    """Twice."""\n    return x * 2',
    "optional": "def f(x: int | None = None) -> list[int] | None:\n    return [x] if x else None",
    "typing": "import typing\nfrom typing import List, Optional\ndef f(x: Optional[List[int]] = None) -> typing.List[int]:\n    return x or []",
    "many annotations": "from typing import Any, Dict, List, Tuple\nfrom collections.abc import Iterable\ndef g(x: Iterable[Any], y: 'later' = 1, *more: Dict[str, Tuple[int, ...]]) -> List[int]:\n    return [y]\ndef f(x: list[int] = ()) -> Any:\n    return g(x)",
    "future": "from __future__ import annotations\ndef f(x: nothing_of_the_kind = 1) -> int:\n    return x",
    "constants": "MOD = 10**9 + 7\nA, B = 1, 2\nBIG = MOD * 2\ndef f():\n    return (A + B) * BIG % MOD",
    "helpers": "import math\nfrom collections import Counter, defaultdict, deque\ndef _gcd(a, b):\n    return math.gcd(a, b)\ndef f():\n    seen = defaultdict(list)\n    seen[_gcd(4, 6)].append(Counter('aab').most_common(1))\n    return dict(seen), list(deque([1, 2], maxlen=1))",
    "imports inside": "def f():\n    import heapq\n    from itertools import accumulate\n    h = [3, 1, 2]\n    heapq.heapify(h)\n    return heapq.heappop(h), list(accumulate(h))",
    "closures": "def f():\n    memo = {}\n    def fib(n):\n        if n not in memo:\n            memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)\n        return memo[n]\n    return fib(50)",
    "nonlocal": "def f():\n    n = 0\n    def more():\n        nonlocal n\n        n += 1\n    more()\n    return n",
    "patterns": "import re\ndef f():\n    return re.sub(r'[aeiou]', '', 'education'), bool(re.search('a+', 'baa'))",
    "raises": "def f():\n    raise ValueError('no')",
    "examples": "def f(*x):\n    return sorted([*x, 1])\nprint(f())\nprint(f'{f(2)}', [f(1)], {1: f()}, max(f()) == 3)",
    "yields": "def f():\n    yield from (x for x in range(3) if x)",
    "match": "def f(x=(1, 2)):\n    match x:\n        case [1, *rest]:\n            return rest\n        case {'a': y} | (y,):\n            return y",
}  # fmt: skip


@pytest.mark.slow
def test_what_is_harmless_shares() -> None:
    found = together_and_alone([(program, F) for program in SHARES.values()])
    for (name, program), (together, alone) in zip(SHARES.items(), found, strict=True):
        assert shared(together), (name, program)
        assert verdicts(together) == verdicts(alone) and together[0].outcome in ("ended", "runtime_error"), name


@pytest.mark.slow
def test_a_module_behind_65536_names_is_not_taken_for_another() -> None:
    names = ", ".join(f"n{i}" for i in range(1, 65536))
    program = (
        f"def g(x):\n    if x:\n        (math, {names})\n    from email.charset import CHARSETS\n    return CHARSETS\n"
    )
    program += "def f():\n    d = g(0)\n    d[len(d)] = 1\n    return len(d)"
    ((together, alone),) = together_and_alone([(program, F)])
    assert verdicts(together) == verdicts(alone) and len(set(verdicts(together))) == 1


def test_nothing_listed_leads_out() -> None:
    """Every public attribute of the types whose methods are listed, and every listed member, by what it gives."""
    stateless.learn()
    for name in ("globals", "vars", "getattr", "setattr", "delattr", "hasattr", "dir", "type", "eval", "exec", "format",
                 "open", "input", "attrgetter", "methodcaller", "update_wrapper", "Formatter", "register", "mro",
                 "gi_frame", "f_globals", "tb_frame", "cr_frame", "ag_frame", "gi_code", "get_field", "RegexFlag"):  # fmt: skip
        assert name not in stateless._known.names, name
    assert {"gi_frame", "f_globals", "tb_frame", "co_consts", "mro", "format"} <= stateless._known.attributes


def test_every_listed_name_is_the_same_on_every_harmless_module() -> None:
    """What has a listed name and is something else may be named by no function of a module that can reach it."""
    stateless.learn()
    strange = {}
    for home in stateless.HARMLESS:
        attributes = vars(importlib.import_module(home))
        strange[home] = stateless.strange_in(home)
        for name in stateless._known.names & attributes.keys() - strange[home]:
            value = attributes[name]
            assert not hasattr(value, "cache_clear") and not isinstance(value, list | dict | set), (home, name)
            if home != "typing" and not isinstance(value, type(sys)) and name not in ("functools", "copy", "bisect"):
                assert not hasattr(type(value), "__getitem__") or isinstance(value, str), (home, name)
        assert "typing" not in attributes, "by way of which what typing keeps could be had"
    assert {"Counter", "OrderedDict"} <= strange["typing"]
    for home in strange.keys() - {"typing", "copy"}:  # copy.replace, from 3.13 on
        attributes = vars(importlib.import_module(home))  # functools has operator.itemgetter for itself, from 3.14 on
        assert all(attributes[name] is getattr(operator, name, None) for name in strange[home]), strange
    for home, name in [(one, name) for one in ("typing", "copy") for name in strange[one]]:
        for program in (
            f"import {home}\ndef f():\n    return {home}.{name}",
            f"from {home} import {name}\ndef f():\n    return {name}",
        ):
            assert stateless.names_of(stateless.codes_in(compile(program, "x", "exec"))) is None, program


def test_set_up_code_is_not_felt_by_the_next_call():
    program = "def f(n):\n    return n\ndef g():\n    return x"
    pieces = ["x = 7\n__value__ = g()", "__value__ = g()", "import math as x\n__value__ = g() is x", "__value__ = f(x)"]
    ((together, alone),) = together_and_alone([(program, pieces)])
    assert verdicts(together) == verdicts(alone)
    assert [r.outcome for r in together] == ["ended", "runtime_error", "ended", "runtime_error"]
    pieces = ["__value__ = [x for x in range(3)]", "__value__ = (x := 3)", "__value__ = f(x)"]
    ((together, alone),) = together_and_alone([(program, pieces)])
    assert verdicts(together) == verdicts(alone) and together[2].outcome == "runtime_error"


@pytest.mark.slow
def test_calls_that_share_a_process_end_as_they_would_alone():
    program = """
import math, itertools
from typing import List

LIMIT = 3

def helper(x: List[int] = (), deep: int = 2) -> int:
    return len(x) + deep

def f(x):
    return [helper([x]), 12 // x, math.gcd(x, 12), x * LIMIT]

def g(x):
    yield from itertools.repeat(x, 3)

def down(x):
    return down(x + 1)

def leave(x):
    raise SystemExit(x)

def interrupt(x):
    raise KeyboardInterrupt

def spin(x):
    while x:
        pass

def much(x):
    return [0] * (1 << x)

def large(x):
    return "x" * x
"""
    plain = ["__value__ = f(3)", "__value__ = f(0)", "__value__ = g(2)", "__value__ = f", "__value__ = {1: f(2)}"]
    plain += ["__value__ = large(1 << 21)", "__value__ = f()", "__value__ = iter('ab')"]
    work = [(program, plain * 9)]  # more than share one process
    for other in ("leave(0)", "leave(3)", "interrupt(1)", "spin(1)", "much(40)", "syntax error", "down(0)"):
        work.append((program, [plain[0], f"__value__ = {other}", plain[0]]))
    (first, *others) = together_and_alone(work, cpu_seconds=0.3)
    together, alone = first
    assert verdicts(together) == verdicts(alone) and shared(together[:32]) and not shared(together)
    assert {r.outcome for r in together} == {"ended", "runtime_error", "bad_value"}
    for together, alone in others:
        assert verdicts(together) == verdicts(alone) and not shared(together)
    assert [together[1].outcome for together, _ in others] == [
        "ended", "runtime_error", "runtime_error", "timeout", "memory_limit", "syntax_error", "runtime_error",
    ]  # fmt: skip
    assert others[0][0][1].stdout == b""  # status 0 before there was a value


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_references_share_a_process_and_their_verdicts_are_those_of_calls_made_alone(tier):
    rows = [json.loads(line) for line in (ROOT / "tests/data/mbpp_references.jsonl").read_text().splitlines()]
    work = []
    for row in rows[:: 1 if tier != "full" else 4]:
        tests = [ast.parse(test).body[0].test for test in row["test_list"]]
        calls = [ast.unparse(test.left) for test in tests if isinstance(test, ast.Compare)]
        work.append((row["code"], [f"__value__ = {one}" for one in calls]))
        work.append((row["code"].replace("+", "-").replace("0", "1"), work[-1][1]))  # wrong, or broken
    found = together_and_alone(work, tier, cpu_seconds=1.0)
    for (program, _), (together, alone) in zip(work, found, strict=True):
        assert verdicts(together) == verdicts(alone), program
    assert sum(shared(together) for together, _ in found[::2]) > 0.8 * len(found) / 2
