"""The house keeps its rules, read from the source: who imports whom, what pure rooms touch, what costs at start."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = sorted(path.stem for path in ROOT.glob("*.py"))

# From the cellar up. A room imports from the floors below its own and from nowhere else in the house.
FLOORS = (
    ("walls", "stateless", "asserts", "endpoint", "stats", "flags", "console"),
    ("tasks",),
    ("swarm", "sandbox", "plan"),
    ("table", "words", "grader", "records"),
    ("measure", "plots", "sql"),
    ("session", "page", "export", "curves"),
    ("command", "report"),
    ("regrade",),
    ("run", "calibrate", "sql_calibrate"),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

DOING = {"session", "command", "endpoint", "grader", "sandbox", "walls", "sql"}
TELLING = ("measure", "stats", "words", "plots", "page", "report", "export", "curves", "console")

PURE = ("swarm", "stats", "plan", "table", "measure")
# What a pure room may use: nothing in here knows of a network, a clock, a disk, a process or a global random state.
PURE_MODULES = set(
    "__future__ abc array bisect collections dataclasses decimal enum fractions functools hashlib heapq itertools json "
    "math operator re statistics string typing numpy scipy".split()
)
IMPURE_CALLS = {"open", "input", "print", "exec", "eval", "hash", "__import__"}
NUMPY_RANDOM = {"Generator", "SeedSequence", "default_rng"}  # all of them take their seed from the caller
NUMPY_DISK = {"load", "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt", "fromfile", "memmap"}

# Imported where they are used, so that --help and --reuse are instant.
SLOW = {"openai", "pyarrow", "huggingface_hub", "scipy", "matplotlib", "sqlglot"}


@functools.cache
def source(room: str) -> ast.Module:
    return ast.parse((ROOT / f"{room}.py").read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    """Full names of the modules that one node imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "flat layout: no relative imports"
        return [node.module or ""]
    return []


def imports(room: str) -> set[str]:
    """First parts of all modules that a room imports, wherever in the file."""
    return {name.split(".")[0] for node in ast.walk(source(room)) for name in imported(node)}


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What runs when the file is imported, except under `if TYPE_CHECKING`."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from top_level(node.body)
            yield from top_level(getattr(node, "orelse", []))
            for handler in getattr(node, "handlers", []):
                yield from top_level(handler.body)


def reaches(room: str) -> set[str]:
    """Every room that is imported when this one is, however indirectly."""
    seen: set[str] = set()
    todo = [room]
    while todo:
        for name in imports(todo.pop()) & set(ROOMS) - seen:
            seen.add(name)
            todo.append(name)
    return seen


def test_every_room_is_on_a_floor():
    assert set(ROOMS) <= FLOOR.keys(), "give the new file its floor in this test and in the README"


@pytest.mark.parametrize("room", ROOMS)
def test_imports_go_down_only(room):
    for other in sorted(imports(room) & FLOOR.keys()):
        assert FLOOR[other] < FLOOR[room], f"{room} imports {other}"


@pytest.mark.parametrize("room", [room for room in TELLING if room in ROOMS])
def test_telling_never_imports_doing(room):
    assert not reaches(room) & DOING


@pytest.mark.parametrize("room", [room for room in PURE if room in ROOMS])
def test_pure_rooms_touch_nothing_outside(room):
    assert imports(room) - set(ROOMS) <= PURE_MODULES
    for node in ast.walk(source(room)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IMPURE_CALLS, f"{room}:{node.lineno}"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            assert node.attr in NUMPY_RANDOM, f"{room}:{node.lineno}"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np", "numpy"):
            assert node.attr not in NUMPY_DISK, f"{room}:{node.lineno}"
        if isinstance(node, ast.Global):
            raise AssertionError(f"{room}:{node.lineno}: a pure room keeps no state")


@pytest.mark.parametrize("room", [room for room in ("walls",) if room in ROOMS])
def test_the_walls_need_the_standard_library_alone(room):
    assert imports(room) <= set(sys.stdlib_module_names) | {"__future__"}


@pytest.mark.parametrize("room", ROOMS)
def test_slow_libraries_are_imported_where_they_are_used(room):
    for node in top_level(source(room).body):
        for name in imported(node):
            assert name.split(".")[0] not in SLOW, f"{room}:{node.lineno} imports {name} at start"


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_says_what_it_does_and_swallows_nothing(room):
    assert len((ast.get_docstring(source(room)) or "").splitlines()) >= 3, (
        "a docstring: what it does, what it leaves out"
    )
    for node in ast.walk(source(room)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        assert node.type is not None, f"{room}:{node.lineno}: a bare except"
        wide = {ast.unparse(name) for name in ast.walk(node.type) if isinstance(name, ast.Name)}
        silent = all(isinstance(step, ast.Pass) for step in node.body)
        assert not (silent and wide & {"Exception", "BaseException"}), f"{room}:{node.lineno}: a silent fallback"
