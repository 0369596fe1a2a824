"""The names of a test, statement by statement: what binds them, and who may have changed what they hold.

    Scope   what is known of the names after the statements that it has taken

A name that needs nothing of the program is *clean*; one that the program has helped to bind, or may have changed, is
*theirs*. What is neither clean nor theirs, and no built-in name, the program is to define. A statement that compares
what the program gives is refused: the program could forge it.

Left out: the assert itself (asserts.py). Standard library only; no program is run here.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import symtable
import sys
from collections import Counter, OrderedDict, deque
from typing import NamedTuple

from grading.beside import OWN, Kinds, links_of

BUILTINS = frozenset(dir(builtins))
RUNNING = {"eval", "exec", "compile", "__import__"}  # would run the program's own text in the judge


class NotATest(ValueError):
    """The text cannot be used as an assert; the message says why."""


def source_of(statements: list[ast.stmt]) -> str:
    return ast.unparse(ast.Module(statements, []))


def stored_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def loaded_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


class Reading(NamedTuple):
    reads: set[str]  # names of the test's own scope that it needs
    changes: set[str]  # names that it binds, and variables whose value may be another afterwards
    clean: bool  # it needs nothing of the program
    only_binds: bool  # and has no effect but to bind names


def _names_of(statement: ast.stmt) -> tuple[set[str], set[str], set[str]]:
    """What a statement reads at once, what it or functions in it may read later, and what it binds."""
    try:
        top = symtable.symtable(source_of([statement]), "a test", "exec")
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


class Scope:
    """The names of a test, statement by statement."""

    def __init__(self, required: frozenset[str]) -> None:
        self.required = required
        self.builtins = BUILTINS - required
        self.clean: set[str] = set()  # bound without help of the program, and not changed by it
        self.fixed: set[str] = set()  # of these, what nobody changes: modules, functions, numbers and texts
        self.theirs: set[str] = set()  # bound with help of the program, or perhaps changed by it
        self.asserting: set[str] = set()  # functions that assert inside
        self.running: set[str] = set()  # functions that run a text
        self.deciding: set[str] = set()  # functions that may hold an expected value
        self.inside: dict[str, set[str]] = {}  # what functions of the test read
        self.coroutines: set[str] = set()  # functions of the test that are called to be awaited
        self.own: set[str] = set()  # variables that hold an object of a class of the program's
        self.surely: set[str] = set()  # of these, what no built-in type could have in its place
        self.homes: dict[str, str] = {}  # what of the library an imported name stands for
        self.bound: list[str] = []  # by comprehensions and lambdas on the way down an expression
        self.handed: set[str] = set()  # variables that an earlier operand of `and` or `or` has handed to the program
        self.kinds = Kinds(self)
        self.together: list[set[str]] = []  # variables that may hold parts of each other
        self.statements: list[tuple[ast.stmt, Reading]] = []

    def is_clean(self, name: str) -> bool:
        if name in self.required and name in self.clean:
            raise NotATest(f"{name} is bound by the test or its set-up code, and the program is to define it")
        return name in self.clean or (name in self.builtins and name not in self.theirs)

    def is_theirs(self, name: str) -> bool:
        if name in self.bound:
            return False
        changed = name in self.handed and name in self.clean - self.fixed
        return name in self.theirs or changed or not self.is_clean(name)

    def is_variable(self, name: str) -> bool:
        return name in self.theirs

    def is_own(self, name: str) -> bool:
        """A variable that holds an object of a class of the program's; or such a class, by its capital letter."""
        return name in self.own or (
            name[:1].isupper() and "_" not in name and name not in self.theirs and self.is_theirs(name)
        )

    def home(self, name: str) -> str:
        if name in self.clean:
            return self.homes.get(name, "")
        if name in self.theirs or name in self.bound:
            return ""
        return name if name in self.builtins else f"import {name}" if name in sys.stdlib_module_names else ""

    def is_reading(self, name: str) -> bool:
        return (
            name in self.inside
            and name in self.clean
            and name not in self.bound
            and name not in self.running | self.deciding
        )

    def take(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            homes = _imported(statement)
            bound = set(homes)
            self.homes |= homes
            self.own -= bound
            self._bind(bound, clean=True, fixed=True)
            self.statements.append((statement, Reading(set(), bound, True, True)))
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
        is_own = isinstance(statement, ast.Assign | ast.AnnAssign) and (
            statement.value is not None and self.kinds.of(statement.value) == OWN
        )
        self._learn_from(statement)
        for name in binds:
            self.homes.pop(name, None)
        self.coroutines -= binds
        if is_definition:
            self.coroutines |= binds if isinstance(statement, ast.AsyncFunctionDef) else set()
            self.inside |= dict.fromkeys(binds, reads)
            changes = set(binds)
            if any(isinstance(node, ast.Assert) for node in ast.walk(statement)):
                self.asserting |= binds
            data = (reads & self.clean) - set(self.inside) - set(self.homes)
            if data or _may_decide(statement) or reads & self.deciding:
                self.deciding |= binds
            if loaded_in(statement) & (RUNNING | self.running):
                self.running |= binds
        fixed = is_definition or (isinstance(statement, ast.Assign | ast.AnnAssign) and _is_constant(statement.value))
        if not fixed:
            self._join(binds | ((reads - self.builtins - self.fixed) & (self.clean | self.theirs)))
        self._bind(binds, clean, fixed)
        self.own = self.own | binds if is_own else self.own - binds
        self.surely -= binds
        if not clean:
            handed = set(reads)  # a function that the program is handed may change what it reads
            while more := set().union(*(self.inside.get(name, set()) for name in handed)) - handed:
                handed |= more
            changes |= handed & (self.clean - self.fixed)
            self._bind(self._joined_with(changes), clean=False, fixed=False)
        inside = [ast.unparse(node) for node in ast.walk(statement) if _stores_inside(node)]
        if {"sys.stdout", "sys.stderr"} & set(inside):  # the program prints there
            self._bind({"sys"} | (reads & (self.clean - self.fixed)), clean=False, fixed=False)
        only_binds = clean and (is_definition or _only_binds(statement))
        self.statements.append((statement, Reading(reads, changes, clean, only_binds)))

    def _bind(self, names: set[str], clean: bool, fixed: bool) -> None:
        for into, does in ((self.clean, clean), (self.theirs, not clean), (self.fixed, fixed)):
            if does:
                into |= names
            else:
                into -= names

    def _learn_from(self, statement: ast.stmt) -> None:
        """`s.push(1)`, by itself: s is of no built-in type, nor a named tuple, which is plain data."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            root, *rest = links_of(statement.value)
            if isinstance(root, ast.Name) and root.id in self.own and isinstance(rest[0], ast.Attribute):
                self.surely |= {root.id} - ({root.id} if rest[0].attr in _OF_BUILT_IN_TYPES else set())

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


_OF_BUILT_IN_TYPES = {
    name for kind in (str, bytes, list, tuple, dict, set, int, float, complex, range, deque, Counter, OrderedDict)
    for name in dir(kind)
}  # fmt: skip


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names that an import binds, and what of the library each stands for."""
    module = getattr(statement, "module", None) or ""
    if not any(alias.name == "*" for alias in statement.names):
        if isinstance(statement, ast.ImportFrom):
            return {alias.asname or alias.name: f"{module}.{alias.name}" for alias in statement.names}
        homes = {alias.asname: alias.name for alias in statement.names if alias.asname}
        return homes | {top: top for alias in statement.names if not alias.asname and (top := alias.name.split(".")[0])}
    if module not in _STARRED:
        raise NotATest(f"from {module} import * binds names that nobody can tell: name them")
    found = importlib.import_module(module)
    names = getattr(found, "__all__", [name for name in dir(found) if not name.startswith("_")])
    return {name: f"{module}.{name}" for name in names}


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


def _may_decide(function: ast.AST) -> bool:
    """Does it compare or subtract, or hold a value that could be the expected one, which no object may see?"""
    said = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Expr)}  # docstrings
    return any(
        (isinstance(node, ast.Compare) and not _asks_for_none(node))
        or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.BitXor))
        or (isinstance(node, ast.Constant) and id(node) not in said and node.value not in (None, 0, 1, ""))
        for node in ast.walk(function)
    )


def _asks_for_none(node: ast.Compare) -> bool:
    return all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) and any(
        isinstance(side, ast.Constant) and side.value is None for side in (node.left, *node.comparators)
    )
