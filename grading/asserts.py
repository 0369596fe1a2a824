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

Left out: identity of two values of the program (`f(x) is x` is refused), and types of its own: what comes back is
plain data. Standard library only; no program is run here.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import symtable
import sys
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

BUILTINS = frozenset(dir(builtins))

# Around what the judge (judge.py) decides: what it is given, and what it leaves.
_UNPACK = "__guess__, __given__ = __given__\n"
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


class NotATest(ValueError):
    """The text cannot be used as an assert; the message says why."""


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


class _Before(NamedTuple):
    """A statement before the assert. Its names: see _Reading."""

    text: str
    reads: frozenset[str]
    changes: frozenset[str]
    only_binds: bool


class Apart(NamedTuple):
    """One test, taken apart."""

    leaves: tuple[Leaf, ...]
    setup: str  # runs beside the program, always
    statements: tuple[_Before, ...]
    judge: str  # a piece of Python that leaves (verdict, what was got) or the questions, all in their order
    other: str | None  # what the one leaf is to equal, where that is all; else None
    catches: bool  # the judge catches errors, so those of the program are answers

    @property
    def is_one_question(self) -> bool:
        """Whether the first question can be put without asking the judge which it is."""
        return not self.catches and len(self.leaves) <= 1 and not any(leaf.bound for leaf in self.leaves)

    def question(self) -> str:
        """A piece that leaves the value of the only leaf in __value__; None where the assert asks nothing."""
        if not self.leaves:
            return f"{self._beside(frozenset())}__value__ = None"
        return f"{self._beside(self.leaves[0].needs)}__value__ = {self.leaves[0].text}"

    def questions(self, asks: Sequence[tuple[int, bool]]) -> str:
        """A piece that leaves the answers to (leaf, whole), encoded, in a list; __given__: the bound names of each."""
        functions, calls = {}, []
        for at, (number, whole) in enumerate(asks):
            leaf, name = self.leaves[number], f"__leaf{number}{'_whole' * whole}__"
            bound = leaf.bound + leaf.more * whole
            functions[name] = f"{name} = lambda {', '.join(bound)}: {leaf.whole if whole else leaf.text}\n"
            call = f"{name}({f'**__given__[{at}]' * bool(bound)})"
            calls.append(f"__answer__(lambda: {call})" if self.catches else f"__encode__({call})")
        needs = [self.leaves[leaf].needs_whole if whole else self.leaves[leaf].needs for leaf, whole in asks]
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


def _parts_of(text: str, setup: str, required: frozenset[str]) -> Apart:
    *before, last = _parsed(text, "a test") or [ast.Pass()]
    if not isinstance(last, ast.Assert):
        raise NotATest("it does not end with an assert")
    scope = _Scope(required)
    for statement in _parsed(setup, "the set-up code"):
        scope.take(statement)
    always = "".join(f"{ast.unparse(statement)}\n" for statement, _ in scope.statements)
    first = len(scope.statements)
    for statement in before:
        for one in _split(statement):
            scope.take(one)
    finder = _LeafFinder(scope)
    remainder = finder.visit(copy.deepcopy(last.test))
    imports = "".join(f"import {name}\n" for name in sorted(finder.modules))
    cleanly = [statement for statement, reading in scope.statements if reading.clean]
    return Apart(
        tuple(finder.leaves),
        always,
        tuple(
            _Before(f"{ast.unparse(statement)}\n", frozenset(it.reads), frozenset(it.changes), it.only_binds)
            for statement, it in scope.statements[first:]
        ),
        f"{_UNPACK}{imports}{_source(cleanly)}{_VERDICT.format(remainder=ast.unparse(remainder))}",
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
    if len(names) != len(target.elts) or len(names) != len(value.elts) or set(names) & _loaded(value):
        return [statement]
    if any(isinstance(part, ast.Starred) for part in value.elts):
        return [statement]
    parts = zip(target.elts, value.elts, strict=True)
    return [ast.copy_location(ast.Assign([name], part), statement) for name, part in parts]


def _source(statements: list[ast.stmt]) -> str:
    return ast.unparse(ast.Module(statements, []))


# ── statements: who binds what, and who may have changed it ──────────────────────────────────────────────────────────


class _Reading(NamedTuple):
    reads: set[str]  # names of the test's own scope that it needs
    changes: set[str]  # names that it binds, and variables whose value may be another afterwards
    clean: bool  # it needs nothing of the program
    only_binds: bool  # and has no effect but to bind names


def _names_of(statement: ast.stmt) -> tuple[set[str], set[str], set[str]]:
    """What a statement reads at once, what it or functions in it may read later, and what it binds."""
    try:
        top = symtable.symtable(_source([statement]), "a test", "exec")
    except SyntaxError as why:
        raise NotATest(f"it is not Python ({why})") from None
    at_once = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    at_once |= {node.target.id for node in ast.walk(statement)
                if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}  # fmt: skip
    binds = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    later, inner = set(), list(top.get_children())
    for table in inner:
        inner += table.get_children()
        later |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return at_once, later, binds


class _Scope:
    """The names of a test, statement by statement."""

    def __init__(self, required: frozenset[str]) -> None:
        self.required = required
        self.builtins = BUILTINS - required
        self.clean: set[str] = set()  # bound without help of the program, and not changed by it
        self.fixed: set[str] = set()  # of these, what nobody changes: modules, functions, numbers and texts
        self.theirs: set[str] = set()  # bound with help of the program, or perhaps changed by it
        self.asserting: set[str] = set()  # functions that assert inside
        self.running: set[str] = set()  # functions that run a text
        self.inside: dict[str, set[str]] = {}  # what functions of the test read
        self.together: list[set[str]] = []  # variables that may hold parts of each other
        self.statements: list[tuple[ast.stmt, _Reading]] = []

    def is_clean(self, name: str) -> bool:
        if name in self.required and name in self.clean:
            raise NotATest(f"{name} is bound by the test or its set-up code, and the program is to define it")
        return name in self.clean or (name in self.builtins and name not in self.theirs)

    def take(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bound = _imported(statement)
            self._bind(bound, clean=True, fixed=True)
            self.statements.append((statement, _Reading(set(), bound, True, True)))
            return
        at_once, later, binds = _names_of(statement)
        if hasattr(statement, "body"):  # what a loop binds itself may be read in it; what came before it, too
            at_once = {name for name in at_once if name not in binds or name in self.clean | self.theirs}
        reads = at_once | (later - binds)
        clean = all(self.is_clean(name) for name in reads)
        if not clean:
            self._refuse_forgeable(statement, reads)
        changes = set(binds)
        if any(isinstance(node, ast.Call | ast.AugAssign | ast.Delete) or _stores_inside(node)
               for node in ast.walk(statement)):  # fmt: skip
            changes |= {name for name in reads if name in self.theirs or name in self.clean - self.fixed}
        is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if is_definition:
            self.inside |= dict.fromkeys(binds, reads)
            changes = set(binds)
            if any(isinstance(node, ast.Assert) for node in ast.walk(statement)):
                self.asserting |= binds
            if _loaded(statement) & (_RUNNING | self.running):
                self.running |= binds
        fixed = is_definition or (isinstance(statement, ast.Assign | ast.AnnAssign) and _is_constant(statement.value))
        if not fixed:
            self._join(binds | ((reads - self.builtins - self.fixed) & (self.clean | self.theirs)))
        self._bind(binds, clean, fixed)
        if not clean:
            handed = set(reads)  # a function that the program is handed may change what it reads
            while more := set().union(*(self.inside.get(name, set()) for name in handed)) - handed:
                handed |= more
            changes |= handed & (self.clean - self.fixed)
            self._bind(self._joined_with(changes), clean=False, fixed=False)
        only_binds = clean and (is_definition or _only_binds(statement))
        self.statements.append((statement, _Reading(reads, changes, clean, only_binds)))

    def _bind(self, names: set[str], clean: bool, fixed: bool) -> None:
        for into, does in ((self.clean, clean), (self.theirs, not clean), (self.fixed, fixed)):
            if does:
                into |= names
            else:
                into -= names

    def _join(self, names: set[str]) -> None:
        apart = [group for group in self.together if not group & names]
        self.together = [*apart, names.union(*(group for group in self.together if group & names))]

    def _joined_with(self, names: set[str]) -> set[str]:
        return names.union(*(group for group in self.together if group & names)) - self.fixed

    def _refuse_forgeable(self, statement: ast.stmt, reads: set[str]) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assert) or (isinstance(node, ast.Compare) and not _asks_for_none(node)):
                raise NotATest(
                    f"{ast.unparse(node)!r} would be decided beside the program, which could forge it: compare in the "
                    "assert at the end"
                )
        if called := sorted(reads & self.asserting):
            raise NotATest(f"{called[0]} would assert beside the program, which could forge it: assert at the end")


# Modules that may be imported here to see what `import *` of them binds: the text of a data set decides which, and some
# of the library do things when they are imported.
_STARRED = frozenset(
    "abc array bisect cmath collections copy dataclasses datetime decimal enum fractions functools heapq itertools "
    "json math numbers operator random re statistics string typing".split()
)


def _imported(statement: ast.Import | ast.ImportFrom) -> set[str]:
    """The names that an import binds."""
    if not any(alias.name == "*" for alias in statement.names):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    module = getattr(statement, "module", None) or ""
    if module not in _STARRED:
        raise NotATest(f"from {module} import * binds names that nobody can tell: name them")
    found = importlib.import_module(module)
    return set(getattr(found, "__all__", [name for name in dir(found) if not name.startswith("_")]))


_MAKING = {
    "abs", "bool", "bytes", "complex", "dict", "divmod", "enumerate", "float", "frozenset", "int", "len", "list", "max",
    "min", "pow", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip",
}  # fmt: skip


def _only_binds(statement: ast.stmt) -> bool:
    """An assignment to names, of what is written there or made of it: it can be left out where nobody reads them."""
    return isinstance(statement, ast.Assign | ast.AnnAssign) and not any(
        _stores_inside(node)
        or isinstance(node, ast.NamedExpr)
        or (isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _MAKING))
        for node in ast.walk(statement)
    )


def _stores_inside(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


def _is_constant(value: ast.expr | None) -> bool:
    """A number, a text, or a tuple of such: what nobody can change."""
    return value is not None and all(
        isinstance(node, ast.Constant | ast.Tuple | ast.UnaryOp | ast.unaryop | ast.BinOp | ast.operator | ast.Load)
        for node in ast.walk(value)
    )


def _asks_for_none(node: ast.Compare) -> bool:
    return all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) and any(
        isinstance(side, ast.Constant) and side.value is None for side in (node.left, *node.comparators)
    )


# ── the assert itself ────────────────────────────────────────────────────────────────────────────────────────────────
# Questions that the built-in types answer with yes or no: another object could answer as it likes.
_YES_OR_NO = {
    name
    for kind in (str, bytes, list, tuple, dict, set, int, float)
    for name in dir(kind)
    if name.startswith(("is", "starts", "ends", "__"))
}
_RUNNING = {"eval", "exec", "compile", "__import__"}  # would run the program's own text in the judge


class _LeafFinder(ast.NodeTransformer):
    """Replaces each leaf of an expression by a question: __leaf__(number, bound, more, what else hangs on it)."""

    def __init__(self, scope: _Scope) -> None:
        self.scope = scope
        self.bound: list[str] = []  # by comprehensions and lambdas on the way down
        self.leaves: list[Leaf] = []
        self.modules: set[str] = set()
        self.handed: set[str] = set()  # variables that an earlier operand of `and` or `or` has handed to the program

    def visit(self, node: ast.AST) -> ast.expr:
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) and self._of_the_program(node):
            return self._leaf(node)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            names = set[str]().union(*(_stored(generator.target) for generator in node.generators))
            return self._inside(node, names)
        if isinstance(node, ast.Lambda):
            return self._inside(node, {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)})
        if isinstance(node, ast.NamedExpr):
            node.value = self.visit(node.value)
            self.bound.append(node.target.id)  # from here on it is the judge's own
            return node
        if isinstance(node, ast.BoolOp):
            for at, operand in enumerate(node.values):
                before = len(self.leaves)
                node.values[at] = self.visit(operand)
                self.handed |= {name for leaf in self.leaves[before:] if "(" in leaf.text for name in leaf.needs}
            return node
        if isinstance(node, ast.Call) and self._is_a_reading(node):
            return self._leaf(node.args[0], within=node)
        if isinstance(node, ast.Compare):
            self._refuse_identity(node)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _RUNNING | self.scope.running
        ):
            before = len(self.leaves)
            self.generic_visit(node)
            if len(self.leaves) > before:
                raise NotATest(f"{node.func.id} would run what the program gives beside the verdict: leave it out")
            return node
        return self.generic_visit(node)  # type: ignore[return-value]

    def _inside(self, node: ast.expr, bound: set[str]) -> ast.expr:
        before = len(self.bound)
        self.bound += sorted(bound)
        self.generic_visit(node)
        del self.bound[before : before + len(bound)]
        return node

    def _is_theirs(self, name: str) -> bool:
        if name in self.bound:
            return False
        changed = name in self.handed and name in self.scope.clean - self.scope.fixed
        return name in self.scope.theirs or changed or not self.scope.is_clean(name)

    def _of_the_program(self, node: ast.expr) -> bool:
        root, above = node, None
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root, above = (root.func if isinstance(root, ast.Call) else root.value), root
        if not isinstance(root, ast.Name) or not isinstance(root.ctx, ast.Load) or not self._is_theirs(root.id):
            return False
        if root.id in self.modules:
            return False
        is_module = root.id in sys.stdlib_module_names and isinstance(above, ast.Attribute)
        if is_module and root.id not in self.scope.theirs:
            self.modules.add(root.id)  # nobody imports it here, and the program cannot be trusted to be it
            return False
        return True

    def _is_a_reading(self, node: ast.Call) -> bool:
        """`to_list(f(x))`: a function of the test that is given what the program gives, and nothing else."""
        if not isinstance(node.func, ast.Name) or len(node.args) != 1 or node.keywords:
            return False
        name, arg = node.func.id, node.args[0]
        known = name in self.scope.inside and name in self.scope.clean and name not in self.bound
        known = known and name not in self.scope.running
        if isinstance(arg, ast.Name) and arg.id not in self.scope.theirs:
            return False  # most likely a function of the program, see _function
        calls = sum(isinstance(link, ast.Call) for link in _links(arg))
        return known and calls <= 1 and self._of_the_program(arg)

    def _leaf(self, node: ast.expr, within: ast.Call | None = None) -> ast.expr:
        """within: what reads the leaf beside the program where it proves to be an object of the program's own."""
        links = _links(node)
        calls = [at for at, link in enumerate(links) if isinstance(link, ast.Call)]
        # up to what the second call calls, without the attribute or item that it is found by
        end = len(links) - 1
        if len(calls) > 1:
            end = calls[1] - 1
            end -= isinstance(links[end], ast.Attribute)
        short, rest = links[end], links[end + 1 :]
        asks = any(isinstance(link, ast.Attribute) and link.attr in _YES_OR_NO for link in rest)
        asks = asks and not getattr(links[0], "id", "")[:1].isupper()  # a class of the program answers as it should
        around = set(self.bound)
        reads, reads_whole = _loaded(short), _loaded(within or node)
        bound, more = sorted(reads & around), sorted((reads_whole - reads) & around)
        number = len(self.leaves)
        whole = ast.unparse(node) if rest and not asks else ""
        self.leaves.append(
            Leaf(
                ast.unparse(short),
                _NO_VERDICT.format(ast.unparse(within)) if within else whole,
                tuple(bound),
                tuple(more),
                frozenset(reads - around),
                frozenset(reads_whole - around),
                not rest and within is None,
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
        elif within:
            after = f"lambda __so_far__: {ast.unparse(within.func)}(__so_far__)"
        else:
            after = "lambda __so_far__: __so_far__"
            if isinstance(node, ast.Name):
                after += self._function(node.id)
        given, besides = ("{" + ", ".join(f"{name!r}: {name}" for name in names) + "}" for names in (bound, more))
        return ast.parse(f"__leaf__({number}, {given}, {besides}, {after})", mode="eval").body

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

    def _refuse_identity(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for op, *pair in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(op, ast.Is | ast.IsNot) and all(self._is_a_value(side) for side in pair):
                raise NotATest(
                    f"{ast.unparse(node)!r} asks whether two values are one object, which they no longer are when they "
                    "come out of the program: compare with =="
                )

    def _is_a_value(self, side: ast.expr) -> bool:
        if isinstance(side, ast.Name):
            return side.id not in self.scope.fixed and side.id not in self.scope.builtins
        return self._of_the_program(side)


def _links(node: ast.expr) -> list[ast.expr]:
    """A chain of attributes, items and calls, from its root outwards: f, f(1), f(1)[0]."""
    links = [node]
    while isinstance(links[-1], ast.Attribute | ast.Subscript | ast.Call):
        links.append(links[-1].func if isinstance(links[-1], ast.Call) else links[-1].value)
    return links[::-1]


def _stored(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _loaded(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


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
