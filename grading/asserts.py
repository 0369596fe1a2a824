"""One assert, taken apart: what the program is asked, and what is decided without it.

`assert f(1)[0] == 2` is taken apart where no program runs. Its *leaves*, the largest expressions that start at a name
of the program (`f(1)[0]`), are evaluated beside the program, and their values come back as plain data. What is left
(`… == 2`, the *remainder*) is decided outside, or in a clean process that has never run the program (the *judge*).

Statements before the assert run beside the program as far as a leaf depends on them, and in the judge where they need
nothing of the program. A variable that the program is handed may be another afterwards, so from there on it is a leaf
itself; what a statement compares beside the program, the program could forge, so such a test is refused. The set-up
code of a task runs in both places, as a whole: expected values do not belong there.

The judge finds out what to ask by deciding: a leaf that is not known yet stands for anything, and the questions met on
the way are put to the program all at once, in their order, in one process. Then it decides again.

What is still beside the program, and could be forged there: what a statement computes of its values without a
comparison (`err = abs(f(3) - 9)` before `assert err < 1`), what else a variable holds that a call needs (the answer in
`case["out"]` beside `f(case["in"])`), and methods of objects of the program's own. A test that must not trust a program
keeps call and answer in the assert.

A leaf that is an object of the program's own stays where it is: what is larger and holds no expected value, a *group*
(`len(s)`, `s < t`), is asked in its place. What that may be: beside.py.

Left out: identity of two values of the program (`f(x) is x` is refused). Standard library only; no program is run here.
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from grading.beside import MIXED, READ, TEST, asks_yes_or_no, first_value, links_of
from grading.names import BUILTINS as BUILTINS
from grading.names import RUNNING, NotATest, Scope, loaded_in, source_of, stored_in

# Around what the judge (judge.py) decides: what it is given, and what it leaves.
_UNPACK = "__guess__, __given__, __beside__ = __given__\n"
_VERDICT = """
try:
    __value__ = not not ({remainder})
except BaseException:
    __value__ = False
if __unsendable__:
    __value__ = None
elif __asks__:
    __value__ = [known for known, *_ in __given__[:__met__]] + __asks__
else:
    __value__ = (__value__, __got__() if __met__ else "")
"""
# Where the judge's statements catch errors, an error of the program is an answer too.
_ANSWER = """
def __answer__(ask):
    try:
        return __encode__(ask())
    except Exception as error:
        if type(error).__name__ == "BadValue":
            raise
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
"""


# What a function of the test makes of an object of the program's own may be data, and no yes or no.
_NO_VERDICT = "(lambda __v__: object() if __v__ is True or __v__ is False else __v__)({})"


class Leaf(NamedTuple):
    """An expression of the program. text: up to its first call, with what follows that up to the next one.

    whole: with everything that hangs on it, for a program whose value so far is an object of its own; "" where nothing
    does, or where what does is a question (`f(3).startswith("a")`) that such an object could answer as it likes. Of a
    name alone, as in `map(f, xs)`: that it can be called; the leaf after it is the call.
    """

    text: str
    whole: str
    bound: tuple[str, ...]  # names of comprehensions and lambdas around it that it reads
    more: tuple[str, ...]  # and those that only the whole of it reads
    needs: frozenset[str]  # other names that it reads
    needs_whole: frozenset[str]
    alone: bool  # nothing hangs on it
    outer: int = 0  # the number of the group around it; 0: there is none


class _Before(NamedTuple):
    """A statement before the assert. Its names: see Reading."""

    text: str
    reads: frozenset[str]
    changes: frozenset[str]
    only_binds: bool


class Apart(NamedTuple):
    """One test, taken apart.

    groups: larger expressions, each of leaves and of what may be asked together with them (beside.py); asked in their
    place where one of these is no plain data, or from the start. Their numbers are -1, -2 and so on.
    """

    leaves: tuple[Leaf, ...]
    groups: tuple[Leaf, ...]
    at_once: frozenset[int]  # groups that are asked from the start
    setup: str  # runs beside the program, always
    statements: tuple[_Before, ...]
    judge: str  # a piece of Python that leaves (verdict, what was got) or the questions, all in their order
    other: str | None  # what the one leaf is to equal, where that is all; else None
    catches: bool  # the judge catches errors, so those of the program are answers

    @property
    def is_one_question(self) -> bool:
        """Whether the first question can be put without asking the judge which it is."""
        several = self.catches or self.at_once or len(self.leaves) > 1
        return not several and not any(leaf.bound for leaf in self.leaves)

    def asked(self, number: int) -> Leaf:
        """The leaf or group of this number."""
        return self.leaves[number] if number >= 0 else self.groups[~number]

    def is_asked(self, number: int) -> bool:
        """Whether there is a leaf or group of this number."""
        return -len(self.groups) <= number < len(self.leaves)

    def question(self) -> str:
        """A piece that leaves the value of the only leaf in __value__; None where the assert asks nothing."""
        if not self.leaves:
            return f"{self._beside(frozenset())}__value__ = None"
        return f"{self._beside(self.leaves[0].needs)}__value__ = {self.leaves[0].text}"

    def questions(self, asks: Sequence[tuple[int, bool]]) -> str:
        """A piece that leaves the answers to (leaf, whole), encoded, in a list.

        __given__: for each the bound names that it reads, and those that only the whole of it does, encoded.
        """
        functions, calls = {}, []
        for at, (number, whole) in enumerate(asks):
            kind = "leaf" if number >= 0 else "group"
            leaf, name = self.asked(number), f"__{kind}{abs(number)}{'_whole' * whole}__"
            bound = leaf.bound + leaf.more * whole
            functions[name] = f"{name} = lambda {', '.join(bound)}: {leaf.whole if whole else leaf.text}\n"
            parts = enumerate((leaf.bound, leaf.more * whole))
            given = [f"**__decode__(__given__[{at}][{part}])" for part, names in parts if names]
            call = f"{name}({', '.join(given)})"
            calls.append(f"__answer__(lambda: {call})" if self.catches else f"__encode__({call})")
        needs = [self.asked(leaf).needs_whole if whole else self.asked(leaf).needs for leaf, whole in asks]
        before = self._beside(frozenset().union(*needs)) + _ANSWER * self.catches
        return f"{before}{''.join(functions.values())}__value__ = [{', '.join(calls)}]"

    def _beside(self, names: frozenset[str]) -> str:
        """What runs beside the program before a leaf that reads these names."""
        needed, kept = set(names), []
        for one in reversed(self.statements):
            if not one.only_binds or one.changes & needed:
                kept.append(one.text)
                needed |= one.reads
        return self.setup + "".join(reversed(kept))


@lru_cache(maxsize=4096)
def take_apart(text: str, setup: str = "", required: frozenset[str] = frozenset()) -> Apart:
    """A test, text that ends with an assert, and the set-up code of its task. Raises NotATest.

    required: names that the program is to define, whatever else has that name.
    """
    try:
        return _parts_of(text, setup, required)
    except (RecursionError, MemoryError, ImportError, ValueError) as why:
        if isinstance(why, NotATest):
            raise
        raise NotATest(f"it cannot be taken apart ({why})") from None


def refuse_deciding(text: str, prelude: str) -> None:
    """Raises NotATest for a test that calls a function of the prelude which compares or asserts."""
    called, seen = loaded_in(ast.Module(_parsed(text, "a test"), [])), set[str]()
    given = {name: node for node in _parsed(prelude, "the prelude") if not isinstance(node, ast.ClassDef)
             for name in ({node.name} if hasattr(node, "name") else stored_in(node))}  # fmt: skip
    while names := (called & given.keys()) - seen:
        seen |= names
        for name in sorted(names):
            if any(isinstance(one, ast.Compare | ast.Assert) for one in ast.walk(given[name])):
                raise NotATest(f"{name} of the prelude would decide beside the program: put it into `setup`")
            called |= loaded_in(given[name])


def _parts_of(text: str, setup: str, required: frozenset[str]) -> Apart:
    *before, last = _parsed(text, "a test") or [ast.Pass()]
    if not isinstance(last, ast.Assert):
        raise NotATest("it does not end with an assert")
    scope = Scope(required)
    for statement in _parsed(setup, "the set-up code"):
        scope.take(statement)
    always = "".join(f"{ast.unparse(statement)}\n" for statement, _ in scope.statements)
    first = len(scope.statements)
    for statement in before:
        for one in _split(statement):
            scope.take(one)
    finder = _LeafFinder(scope)
    remainder = finder.visit_at(copy.deepcopy(last.test), "bool")
    imports = "".join(f"import {name}\n" for name in sorted(finder.modules))
    cleanly = [statement for statement, reading in scope.statements if reading.clean]
    return Apart(
        tuple(finder.leaves),
        tuple(finder.groups),
        frozenset(finder.at_once),
        always,
        tuple(
            _Before(f"{ast.unparse(statement)}\n", frozenset(it.reads), frozenset(it.changes), it.only_binds)
            for statement, it in scope.statements[first:]
        ),
        f"{_UNPACK}{imports}{source_of(cleanly)}{_VERDICT.format(remainder=ast.unparse(remainder))}",
        _beside_the_leaf(remainder, finder),
        any(isinstance(node, ast.Try) for statement in cleanly for node in ast.walk(statement)),
    )


def _parsed(text: str, what: str) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's test is not our warning
            compile(text, what, "exec", dont_inherit=True)  # more is wrong Python than a parser sees
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        raise NotATest(f"{what} is not Python ({why})") from None


def _split(statement: ast.stmt) -> list[ast.stmt]:
    """`given, wanted = 3, 4` as two statements, where that is the same: the program needs one of them alone."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return [statement]
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
        return [statement]
    names = [part.id for part in target.elts if isinstance(part, ast.Name)]
    if len(names) != len(target.elts) or len(names) != len(value.elts) or set(names) & loaded_in(value):
        return [statement]
    if any(isinstance(part, ast.Starred) for part in value.elts):
        return [statement]
    parts = zip(target.elts, value.elts, strict=True)
    return [ast.copy_location(ast.Assign([name], part), statement) for name, part in parts]


# ── the assert itself ────────────────────────────────────────────────────────────────────────────────────────────────


class _LeafFinder(ast.NodeTransformer):
    """Replaces each leaf of an expression by a question: __leaf__(number, bound, more, what else hangs on it).

    And each group around leaves by __group__(number, bound, the same without it).
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.kinds = scope.kinds
        self.leaves: list[Leaf] = []
        self.groups: list[Leaf] = []
        self.at_once: set[int] = set()
        self.outer = 0  # the group that is being taken apart
        self.modules: set[str] = set()

    def visit(self, node: ast.AST) -> ast.expr:
        if not isinstance(node, ast.expr):
            return super().visit(node)
        links = links_of(node)
        if self.kinds.is_leaf(links) and links[0].id not in self.modules:  # type: ignore[attr-defined]
            return self._leaf(node, links)
        root = links[0]
        above = links[1] if len(links) > 1 else None
        if (
            isinstance(above, ast.Attribute)
            and isinstance(root, ast.Name)
            and (self.scope.home(root.id) == f"import {root.id}")
        ):
            self.modules.add(root.id)  # nobody imports it here, and the program cannot be trusted to be it
        if isinstance(node, ast.Starred):
            node.value = self.visit_at(node.value, "list")
            return node
        kind = MIXED if isinstance(node, ast.Slice | ast.FormattedValue) else self.kinds.of(node)
        if kind not in (TEST, MIXED):
            return self._group(node, _NO_VERDICT if kind == READ else "{}", lambda: self._within(node))
        return self._within(node)

    def visit_at(self, node: ast.expr, use: str) -> ast.expr:
        """An expression of which no more is asked than whether it is true (bool), or what is in it (list)."""
        if use == "bool" and isinstance(node, ast.BoolOp):
            return self._operands(node, use)
        if use == "bool" and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.visit_at(node.operand, use)
            return node
        if self.kinds.of(node) in (TEST, MIXED, READ):
            return self.visit(node)
        return self._group(node, f"__builtins__.{use}({{}})", lambda: self.visit(node))

    def _within(self, node: ast.expr) -> ast.expr:
        """What is no leaf: the leaves in it."""
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            names = set[str]().union(*(stored_in(generator.target) for generator in node.generators))
            return self._inside(node, names)
        if isinstance(node, ast.Lambda):
            return self._inside(node, {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)})
        if isinstance(node, ast.NamedExpr):
            node.value = self.visit(node.value)
            self.scope.bound.append(node.target.id)  # from here on it is the judge's own
            return node
        if isinstance(node, ast.BoolOp):
            return self._operands(node, "")
        if isinstance(node, ast.IfExp):
            node.test = self.visit_at(node.test, "bool")
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
            return node
        if isinstance(node, ast.Compare):
            self._refuse_identity(node)
            self._refuse_objects(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def _operands(self, node: ast.BoolOp, use: str) -> ast.expr:
        for at, operand in enumerate(node.values):
            before = len(self.leaves)
            node.values[at] = self.visit_at(operand, use) if use else self.visit(operand)
            self.scope.handed |= {name for leaf in self.leaves[before:] if "(" in leaf.text for name in leaf.needs}
        return node

    def _call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        before, through = len(self.leaves), self.kinds.iterated(node)
        node.func = self.visit(node.func)
        node.args = [self.visit_at(arg, "list") if arg in through else self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if name in RUNNING | self.scope.running and len(self.leaves) > before:
            raise NotATest(f"{name} would run what the program gives beside the verdict: leave it out")
        return node

    def _inside(self, node: ast.expr, names: set[str]) -> ast.expr:
        bound = self.scope.bound
        before = len(bound)
        bound += sorted(names)
        for generator in getattr(node, "generators", []):
            generator.iter = self.visit_at(generator.iter, "list")
            generator.ifs = [self.visit_at(test, "bool") for test in generator.ifs]
        for field in ("key", "value", "elt", "body", "args"):
            if isinstance(part := getattr(node, field, None), ast.expr):
                setattr(node, field, self.visit(part))
            elif isinstance(part, ast.arguments):
                self.generic_visit(part)
        del bound[before : before + len(names)]
        return node

    def _group(self, node: ast.expr, form: str, inner: Callable[[], ast.expr]) -> ast.expr:
        """form: what is asked of the expression."""
        around = set(self.scope.bound)
        reads = loaded_in(node) - stored_in(node)
        bound = sorted(reads & around)
        number = ~len(self.groups)
        text = form.format(self.kinds.text(node))
        needs = frozenset(reads - around)
        self.groups.append(Leaf(text, "", tuple(bound), (), needs, needs, True, self.outer))
        if self.kinds.is_lazy(node):
            self.at_once.add(number)
        outer, self.outer = self.outer, number
        taken_apart = ast.unparse(inner())
        self.outer = outer
        return ast.parse(f"__group__({number}, {_names(bound)}, lambda: {taken_apart})", mode="eval").body

    def _leaf(self, node: ast.expr, links: list[ast.expr]) -> ast.expr:
        end = first_value(links)
        short, rest = links[end], links[end + 1 :]
        around = set(self.scope.bound)
        reads, reads_whole = loaded_in(short), loaded_in(node)
        bound, more = sorted(reads & around), sorted((reads_whole - reads) & around)
        number = len(self.leaves)
        whole = ast.unparse(node) if rest and not asks_yes_or_no(links) else ""
        coroutine = getattr(links[0], "id", "") if len(links) == 2 and isinstance(links[1], ast.Call) else ""
        if coroutine in self.scope.coroutines and not self.outer:
            raise NotATest(f"{ast.unparse(node)!r} is a coroutine and no value: asyncio.run({ast.unparse(node)})")
        self.leaves.append(
            Leaf(
                ast.unparse(short),
                whole,
                tuple(bound),
                tuple(more),
                frozenset(reads - around),
                frozenset(reads_whole - around),
                not rest,
                self.outer,
            )
        )
        if rest:  # what hangs on it, decided in the judge: the value so far goes in place of the leaf
            value = ast.Name("__so_far__", ast.Load())
            inner = rest[0]
            if isinstance(inner, ast.Call):
                inner.func = value
            else:
                inner.value = value  # type: ignore[attr-defined]
            for link in rest:
                self._visit_arguments(link)
            after = f"lambda __so_far__: {ast.unparse(node)}"
        else:
            after = "lambda __so_far__: __so_far__"
            if isinstance(node, ast.Name) and not self.outer:
                after += self._function(node.id)
        return ast.parse(f"__leaf__({number}, {_names(bound)}, {_names(more)}, {after})", mode="eval").body

    def _function(self, name: str) -> str:
        """What a name of the program is for the judge if it proves to be a function: one that asks for each call."""
        number = len(self.leaves)
        self.leaves[-1] = self.leaves[-1]._replace(whole=f"callable({name}) or {name}")
        needs = frozenset({name})
        self.leaves.append(Leaf(f"{name}(*__a__, **__k__)", "", ("__a__", "__k__"), (), needs, needs, True))
        given = "{'__a__': __a__, '__k__': __k__}"
        return f", lambda *__a__, **__k__: __leaf__({number}, {given}, {{}}, lambda __so_far__: __so_far__)"

    def _visit_arguments(self, link: ast.expr) -> None:
        if isinstance(link, ast.Call):
            link.args = [self.visit(arg) for arg in link.args]
            for keyword in link.keywords:
                keyword.value = self.visit(keyword.value)
        elif isinstance(link, ast.Subscript):
            link.slice = self.visit(link.slice)

    def _refuse_objects(self, node: ast.Compare) -> None:
        """What can be seen never to be plain data, beside what the program must not see."""
        for side in (node.left, *node.comparators):
            if isinstance(side, ast.Name) and side.id in self.scope.surely & self.scope.own and not self.outer:
                raise NotATest(
                    f"{ast.unparse(node)!r} would hand a value of the test to an operator of the program's own class: "
                    f"compare what is in {side.id}, as in list({side.id}) == [1] or {side.id}.x == 1"
                )

    def _refuse_identity(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        if self.kinds.of(node) != MIXED:
            return
        for op, *pair in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(op, ast.Is | ast.IsNot) and all(self._is_a_value(side) for side in pair):
                raise NotATest(
                    f"{ast.unparse(node)!r} asks whether two values are one object, which they no longer are when they "
                    "come out of the program: compare with =="
                )

    def _is_a_value(self, side: ast.expr) -> bool:
        if isinstance(side, ast.Name):
            return side.id not in self.scope.fixed and side.id not in self.scope.builtins
        return self.kinds.is_leaf(links_of(side))


def _names(names: Sequence[str]) -> str:
    """As a dictionary, in Python."""
    return "{" + ", ".join(f"{name!r}: {name}" for name in names) + "}"


def _beside_the_leaf(remainder: ast.expr, finder: _LeafFinder) -> str | None:
    """The other side of `leaf == other`, whichever stands first, where that is the whole assert."""
    if len(finder.leaves) != 1 or finder.leaves[0].bound or not finder.leaves[0].alone:
        return None
    if isinstance(remainder, ast.Compare) and len(remainder.ops) == 1 and isinstance(remainder.ops[0], ast.Eq):
        sides = (remainder.left, remainder.comparators[0])
        for asked, other in (sides, sides[::-1]):
            if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Name) and asked.func.id == "__leaf__":
                return ast.unparse(other)
    return None
