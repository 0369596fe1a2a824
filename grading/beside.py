"""What of an assert may be asked beside the program as a whole, where a value in it is an object of its own.

`len(s)`, `[x for x in s]`, `asyncio.run(f(1))`: no expected value is in there, and what comes of it is plain data that
is compared outside, so the program gains nothing by what its own `__len__` says. Where a value of the test goes in, or
two values are compared, an object could answer as it likes. So an operator of a program's own class is asked like a
method call, of that class's objects alone: those that the test makes by calling a name with a capital letter, as in
`s = Stack()`. `3 in s`, `s < t`, `v * 3`: asked. `s == [1, 2]`, `f(2) == g(2)`, `9 in f(2)`: never; what is no plain
data fails there.

    Kinds   says of an expression what it is made of, and how to write it beside the program

Left out: taking an assert apart (asserts.py). Standard library only; no program is run here.
"""

from __future__ import annotations

import ast
import builtins
import copy
import statistics
from collections.abc import Iterable
from typing import Protocol

_BUILTINS = frozenset(dir(builtins))
TEST = "test"  # nothing of the program in it
THEIRS = "theirs"  # what the program gives, and no value of the test that it could answer to
OWN = "own"  # the same, and an object of a class of the program's, as the test has it
READ = "read"  # what a function of the test makes of such
MIXED = "mixed"  # not to be asked as a whole
_PROGRAM = (THEIRS, OWN)

# Questions that the built-in types answer with yes or no: another object could answer as it likes.
_YES_OR_NO = {
    name
    for kind in (str, bytes, list, tuple, dict, set, int, float)
    for name in dir(kind)
    if name.startswith(("is", "starts", "ends", "__"))
}

_PLAIN_CALLS = set(
    "abs all any ascii bin bool bytearray bytes callable chr complex dict dir enumerate filter float frozenset hash "
    "hex int iter len list map max min next oct ord range repr reversed round set sorted str sum tuple type vars zip "
    "asyncio.gather asyncio.run collections.Counter collections.OrderedDict collections.deque copy.copy copy.deepcopy "
    "dataclasses.asdict dataclasses.astuple dataclasses.is_dataclass itertools.accumulate itertools.chain "
    "itertools.chain.from_iterable itertools.cycle itertools.islice itertools.pairwise itertools.zip_longest "
    "inspect.isabstract inspect.isasyncgenfunction inspect.iscoroutinefunction inspect.isfunction "
    "inspect.isgeneratorfunction inspect.signature asyncio.iscoroutinefunction inspect.isasyncgen inspect.isclass "
    "inspect.iscoroutine inspect.isgenerator json.dumps math.ceil math.floor "
    "math.sqrt math.trunc operator.index operator.length_hint os.fspath".split()
) | {f"statistics.{name}" for name in statistics.__all__ if name[0].islower()}
# What takes, besides, what a test writes there: how many, how long, which name.
_TOLD = set(
    "enumerate format getattr hasattr int next round asyncio.wait_for itertools.batched itertools.islice "
    "itertools.repeat".split()
)
_SEVERAL = {"zip", "map", "filter", "asyncio.gather", "itertools.chain", "itertools.zip_longest"}
_OPERATORS = {"divmod", "pow", "max", "min", "sum"}  # of several: as the operators that they use
_NAMED = set("reverse default strict sort_keys indent debug timeout".split())  # arguments that say how
_KEPT = {"copy.copy", "copy.deepcopy", "max", "min", "sum", "abs"}  # what gives an object of the class it is given
# Of what may have no end.
_LAZY = set(
    "next itertools.islice itertools.batched inspect.isasyncgen inspect.iscoroutine inspect.isgenerator".split()
)
_RUNS = {"asyncio.run", "asyncio.wait_for", "run_until_complete"}  # what gives a coroutine's value
_ITERATING = {"all", "any", "enumerate", "filter", "list", "map", "max", "min", "set", "sorted", "sum", "tuple", "zip"}


_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Names(Protocol):
    """What is known of the names of a test."""

    def is_theirs(self, name: str) -> bool:
        """It stands for something of the program, or perhaps changed by it."""

    def is_own(self, name: str) -> bool:
        """It stands for a class of the program's own, or an object of one."""

    def is_variable(self, name: str) -> bool:
        """The test has bound it."""

    def home(self, name: str) -> str:
        """What of the library it stands for: `len`, `itertools.islice`; "" where it is anything else."""

    def is_reading(self, name: str) -> bool:
        """It is a function of the test that needs nothing of the program."""


def links_of(node: ast.expr) -> list[ast.expr]:
    """A chain of attributes, items and calls, from its root outwards: f, f(1), f(1)[0]."""
    links = [node]
    while isinstance(links[-1], ast.Attribute | ast.Subscript | ast.Call):
        links.append(links[-1].func if isinstance(links[-1], ast.Call) else links[-1].value)
    return links[::-1]


def _is_class(root: ast.expr) -> bool:
    name = getattr(root, "id", "")
    return bool(name[:1].isupper() and "_" not in name)


def first_value(links: list[ast.expr]) -> int:
    """Where a chain is cut: after its first call, with what follows that up to what the second one calls."""
    calls = [at for at, link in enumerate(links) if isinstance(link, ast.Call)]
    if _is_class(links[0]):
        calls = calls[1:] or calls
    if len(calls) < 2:
        return len(links) - 1
    if getattr(links[calls[1] - 1], "attr", "") in ("_asdict", "_replace"):  # a named tuple comes back as a plain one
        return calls[1]
    return calls[1] - 1 - isinstance(links[calls[1] - 1], ast.Attribute)


def asks_yes_or_no(links: list[ast.expr]) -> bool:
    """Does what follows the first value of a chain ask it what another object could answer as it likes?"""
    first, calls, own = first_value(links), 0, _is_class(links[0])
    for at, link in enumerate(links):
        if at > first and isinstance(link, ast.Attribute) and link.attr in _YES_OR_NO and not (own and calls < 2):
            return True  # but an object of a class of the program's answers as it should
        calls += isinstance(link, ast.Call)
    return False


def _stored(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


class Kinds:
    """What the expressions of a test are made of."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def of(self, node: ast.AST, inner: frozenset[str] = frozenset()) -> str:
        """inner: names that a comprehension in it binds to what the program gives."""
        match node:
            case ast.Constant():
                return TEST
            case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
                return self._of_chain(node, inner)
            case ast.UnaryOp():
                kind = self.of(node.operand, inner)
                if not isinstance(node.op, ast.Not) or kind == TEST:
                    return kind
                # What a function gives could look at who asks, and be true of `f(1)` and false of `not f(1)`.
                return THEIRS if kind == OWN else MIXED
            case ast.BinOp():
                return self._of_operator(node, inner)
            case ast.Compare():
                return self._of_comparison(node, inner)
            case ast.List() | ast.Tuple() | ast.Set():
                return _together([self.of(part, inner) for part in node.elts])
            case ast.Starred():
                return self.of(node.value, inner)
            case ast.Dict():
                parts = [part for part in (*node.keys, *node.values) if part]
                return _together([self.of(part, inner) for part in parts])
            case ast.Slice():
                parts = [part for part in (node.lower, node.upper, node.step) if part]
                return _together([self.of(part, inner) for part in parts])
            case ast.JoinedStr():
                kinds = {self.of(part.value, inner) for part in node.values if isinstance(part, ast.FormattedValue)}
                return THEIRS if kinds and kinds <= {*_PROGRAM} else MIXED if kinds - {TEST} else TEST
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._of_comprehension(node, [node.elt], inner)
            case ast.DictComp():
                return self._of_comprehension(node, [node.key, node.value], inner)
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        plain = isinstance(node, ast.IfExp | ast.BoolOp) and all(self.of(part, inner) == TEST for part in parts
                                                                if isinstance(part, ast.expr))  # fmt: skip
        return TEST if plain else MIXED

    def is_lazy(self, node: ast.expr) -> bool:
        """Does it take only a part of what may have no end?"""
        return any(isinstance(one, ast.Call) and self._home(one.func) in _LAZY for one in ast.walk(node))

    def iterated(self, node: ast.Call) -> list[ast.expr]:
        """The arguments that a call of a built-in function goes through."""
        home = self._home(node.func)
        if home not in _ITERATING or (home in ("max", "min") and len(node.args) > 1):
            return []
        return node.args[1:] if home in ("map", "filter") else node.args if home == "zip" else node.args[:1]

    def text(self, node: ast.expr) -> str:
        """The expression in the namespace of a program, which may have built-in names for other things."""
        stored = _stored(node)
        kinds = self

        class Aloof(ast.NodeTransformer):
            def visit_Attribute(self, attribute: ast.Attribute) -> ast.expr:
                module = attribute.value.id if isinstance(attribute.value, ast.Name) else ""
                if module and module not in stored and kinds.names.home(module) == f"import {module}":  # by nobody
                    attribute.value = ast.parse(f"__builtins__.__import__({module!r})", mode="eval").body
                    return attribute
                return self.generic_visit(attribute)  # type: ignore[return-value]

            def visit_Name(self, name: ast.Name) -> ast.expr:
                home = "" if name.id in stored else kinds.names.home(name.id)
                if home == name.id and home in _BUILTINS:
                    return ast.parse(f"__builtins__.{home}", mode="eval").body
                return name

        return ast.unparse(Aloof().visit(copy.deepcopy(node)))

    # ── each form ────────────────────────────────────────────────────────────────────────────────────────────────────
    def _of_chain(self, node: ast.expr, inner: frozenset[str]) -> str:
        links = links_of(node)
        root = links[0]
        if isinstance(root, ast.Name):
            if root.id in inner:
                asks = any(isinstance(link, ast.Attribute) and link.attr in _YES_OR_NO for link in links)
                return MIXED if asks else THEIRS
            if self.is_leaf(links):
                return MIXED if asks_yes_or_no(links) else OWN if self._makes_own(links) else THEIRS
        if isinstance(node, ast.Name):
            return TEST
        if isinstance(node, ast.Call):
            return self._of_call(node, inner)
        base = self.of(node.value, inner)  # type: ignore[attr-defined]
        item = self.of(node.slice, inner) if isinstance(node, ast.Subscript) else TEST
        if base == TEST:
            return item if item == TEST else MIXED
        if base == OWN and item != MIXED and _of_its_kind(node):
            return OWN
        return THEIRS if base in _PROGRAM and item != MIXED else MIXED

    def is_leaf(self, links: list[ast.expr]) -> bool:
        """Does the chain start at a name of the program?"""
        root = links[0]
        if not isinstance(root, ast.Name) or not isinstance(root.ctx, ast.Load) or not self.names.is_theirs(root.id):
            return False
        return not (self.names.home(root.id) and len(links) > 1 and isinstance(links[1], ast.Attribute))

    def _makes_own(self, links: list[ast.expr]) -> bool:
        root = links[0]
        if not isinstance(root, ast.Name) or not self.names.is_own(root.id):
            return False
        while more := _of_its_kind(links[-1]):
            links = links[:-more]
        if not root.id[:1].isupper():
            return len(links) == 1  # the object itself
        if len(links) == 1 or (len(links) == 2 and isinstance(links[1], ast.Call)):
            return True  # the class, and a call of it
        name = links[1].attr if isinstance(links[1], ast.Attribute) else ""
        made = len(links) == 3 and isinstance(links[2], ast.Call) and name.startswith("from")
        return made or (len(links) == 2 and name.isupper())  # Vector.from_polar(1, 2), Color.RED

    def _of_call(self, node: ast.Call, inner: frozenset[str]) -> str:
        args = [self.of(arg, inner) for arg in node.args]
        named = [(word.arg, self.of(word.value, inner), word.value) for word in node.keywords]
        if all(kind == TEST for kind in (*args, *(kind for _, kind, _ in named))):
            of_test = self.of(node.func, inner)
            if of_test == TEST:
                return TEST
        home = self._home(node.func)
        if home:
            return self._of_library(home, node, args, named, inner)
        if isinstance(node.func, ast.Name):
            name = node.func.id
            alone = len(node.args) == 1 and not node.keywords and name not in inner and self.names.is_reading(name)
            if not alone or args[0] not in _PROGRAM:
                return MIXED
            bare = isinstance(node.args[0], ast.Name) and not self.names.is_variable(node.args[0].id)
            return MIXED if bare else READ  # most likely it is handed a function of the program
        if not isinstance(node.func, ast.Attribute):  # `(s + t)(1)`
            kinds = {*args, *(kind for _, kind, _ in named)}
            return THEIRS if self.of(node.func, inner) == OWN and not kinds & {MIXED, READ} else MIXED
        base, method = self.of(node.func.value, inner), node.func.attr
        if base == TEST:
            text = isinstance(node.func.value, ast.Constant) and isinstance(node.func.value.value, str)
            if text and method in ("join", "format") and not named:
                return THEIRS if args and all(kind in _PROGRAM for kind in args) else MIXED
            runs = method == "run_until_complete" and len(args) == 1 and not named
            return args[0] if runs and args[0] in (*_PROGRAM, READ) else MIXED
        kinds = {*args, *(kind for _, kind, _ in named)}
        if base == OWN and _of_its_kind(node):
            return OWN
        if base == OWN:
            return THEIRS if not kinds & {MIXED, READ} else MIXED
        return THEIRS if base == THEIRS and kinds <= {*_PROGRAM} and method not in _YES_OR_NO else MIXED

    def _of_library(
        self,
        home: str,
        node: ast.Call,
        args: list[str],
        named: list[tuple[str | None, str, ast.expr]],
        inner: frozenset[str],
    ) -> str:
        for word, kind, value in named:
            told = word in _NAMED and kind == TEST
            key = word == "key" and home in ("sorted", "max", "min") and self._is_reading_key(value, inner)
            changed = home == "dataclasses.replace" and kind != MIXED and args == [OWN]
            if not (told or key or changed or (word is None and kind in _PROGRAM)):
                return MIXED
        if home in ("map", "filter") and len(args) > 1:
            if not self._is_reading_key(node.args[0], inner):
                return MIXED
            args = args[1:]
        if not args or any(kind in (MIXED, READ) for kind in args):
            return READ if home in _RUNS and args[:1] == [READ] and set(args[1:]) <= {TEST} else MIXED
        if home == "isinstance" or home == "issubclass":
            return THEIRS if len(args) == 2 and args[0] in _PROGRAM and (OWN in args) else MIXED
        if home == "dataclasses.replace":
            return OWN if args == [OWN] else MIXED
        if len(args) > 1 and home in _OPERATORS:
            neutral = home == "sum" and isinstance(node.args[1], ast.Constant) and not node.args[1].value
            neutral = neutral or (home == "sum" and isinstance(node.args[1], ast.List) and not node.args[1].elts)
            both = OWN in args and (TEST not in args or home in ("divmod", "pow"))
            return (OWN if OWN in args else THEIRS) if both or neutral else MIXED
        if home not in _PLAIN_CALLS | _TOLD | {"divmod", "pow"} or args[0] not in _PROGRAM:
            return MIXED
        several = home in _SEVERAL and set(args) <= {*_PROGRAM}
        if len(args) > 1 and not several and not (home in _TOLD and set(args[1:]) == {TEST}):
            return MIXED
        return args[0] if home in _KEPT else THEIRS

    def _is_reading_key(self, node: ast.expr, inner: frozenset[str]) -> bool:
        """A function that reads its argument: `lambda x: x.val`, `len`, one of the program's."""
        if isinstance(node, ast.Lambda):
            names = frozenset(arg.arg for arg in node.args.args)
            return self.of(node.body, inner | names) in _PROGRAM
        if isinstance(node, ast.Constant):
            return node.value is None
        return self._home(node) in _PLAIN_CALLS or self.of(node, inner) in _PROGRAM

    def _of_operator(self, node: ast.BinOp, inner: frozenset[str]) -> str:
        left, right = self.of(node.left, inner), self.of(node.right, inner)
        if left == TEST and right == TEST:
            return TEST
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return THEIRS if right in _PROGRAM else MIXED
        if OWN not in (left, right) or {left, right} & {MIXED, READ}:
            return MIXED
        # the difference to a value of the test is a comparison with it
        return MIXED if TEST in (left, right) and isinstance(node.op, ast.Sub | ast.BitXor) else OWN

    def _of_comparison(self, node: ast.Compare, inner: frozenset[str]) -> str:
        sides = [node.left, *node.comparators]
        kinds = [self.of(side, inner) for side in sides]
        if all(kind == TEST for kind in kinds):
            return TEST
        if set(kinds) & {MIXED, READ}:
            return MIXED
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
            types = any(isinstance(side, ast.Call) and self._home(side.func) == "type" for side in sides)
            return THEIRS if len(sides) == 2 and (none or (types and TEST not in kinds)) else MIXED
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) or OWN not in kinds:
            return MIXED
        if len(sides) == 2 and isinstance(node.ops[0], ast.In | ast.NotIn):
            holds_it = isinstance(sides[1], ast.List | ast.Tuple | ast.Set)  # which compares with what it holds
            return THEIRS if TEST not in kinds or (kinds[1] == OWN and not holds_it) else MIXED
        return THEIRS if TEST not in kinds else MIXED

    def _of_comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        made: list[ast.expr],
        inner: frozenset[str],
    ) -> str:
        within = inner
        for generator in node.generators:
            if self.of(generator.iter, within) not in _PROGRAM:
                kinds = [self.of(part, inner) for part in (*made, *(one.iter for one in node.generators))]
                return TEST if all(kind == TEST for kind in kinds) else MIXED
            within |= _stored(generator.target)
            if any(self.of(test, within) not in _PROGRAM for test in generator.ifs):
                return MIXED
        kinds = [self.of(part, within) for part in made]
        constant = all(
            kind in _PROGRAM or isinstance(part, ast.Constant) for kind, part in zip(kinds, made, strict=True)
        )
        return THEIRS if constant else MIXED

    def _home(self, node: ast.expr) -> str:
        """What of the library an expression names: `len`, `itertools.chain.from_iterable`."""
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or (self.names.is_theirs(node.id) and not path):
            return ""
        home = self.names.home(node.id).removeprefix("import ")
        return ".".join([home, *path]) if home else ""


def _of_its_kind(link: ast.expr) -> int:
    """How many last links of a chain give another object of the same class: a slice, `.copy()`."""
    if isinstance(link, ast.Subscript):
        return int(isinstance(link.slice, ast.Slice))
    copies = isinstance(link, ast.Call) and isinstance(link.func, ast.Attribute) and link.func.attr == "copy"
    return 2 if copies and not link.args and not link.keywords else 0  # type: ignore[attr-defined]


def _together(kinds: Iterable[str]) -> str:
    found = set(kinds)
    if found <= {TEST}:
        return TEST
    if found <= {*_PROGRAM}:
        return OWN if OWN in found else THEIRS
    return MIXED
