"""The house keeps its rules, read from the source: who imports whom, what pure rooms touch, what costs at start."""

from __future__ import annotations

import ast
import functools
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = [*ROOT.glob("*.py"), *(path for folder in ROOT.glob("*/__init__.py") for path in folder.parent.glob("*.py"))]
ROOMS = sorted(
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
    for path in SOURCES
    if path.name != "__init__.py" and path.parent.name not in ("tests", "bench")
)


def tree() -> list[str]:
    """The rooms in the order of the tree in docs/house.md: from the top of the house to the cellar."""
    text = (ROOT / "docs/house.md").read_text(encoding="utf-8")
    rooms, folder = [], ""
    for indent, name in re.findall(r"^ {4}( *)([\w/]+(?:\.py|/)) {2,}\S", text, re.M):
        if name.endswith("/"):
            folder = name
        else:
            rooms.append(((folder if indent else "") + name).removesuffix(".py").replace("/", "."))
    return rooms


TREE = tree()
OPEN_TO_ALL = {
    "tasksets.task",
    "tasksets.truth",
    "grading.grade",
    "commands.settings",
}  # a leaf that says what a word means, and needs at most another one of them, and faults

DOING = {"session", "commands.sampling", "endpoint", "grader", "grading.sandbox", "grading.walls", "grading.sql"}
TELLING = [room for room in TREE if room.startswith(("telling.", "rows."))] + ["measure", "stats", "report", "export"]

PURE = [room for room in TREE if room.startswith(("figures.", "estimators."))] + [
    "swarm",
    "stats",
    "measure",
    "commands.settings",
]
# What a pure room may use: nothing in here knows of a network, a clock, a disk, a process or a global random state.
PURE_MODULES = set(
    "__future__ abc array ast bisect collections copy dataclasses decimal enum fractions functools hashlib heapq "
    "itertools json math operator re statistics string typing numpy scipy".split()
)
IMPURE_CALLS = {"open", "input", "print", "exec", "eval", "hash", "__import__"}
NUMPY_RANDOM = {"Generator", "SeedSequence", "default_rng"}  # all of them take their seed from the caller
NUMPY_DISK = {"load", "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt", "fromfile", "memmap"}

# Imported where they are used, so that --help and --reuse are instant.
SLOW = {"openai", "pyarrow", "huggingface_hub", "scipy", "matplotlib", "sqlglot", "ray"}


@functools.cache
def source(room: str) -> ast.Module:
    return ast.parse((ROOT / (room.replace(".", "/") + ".py")).read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    """Full names of the modules that one node imports; of the house, those of its rooms."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "no relative imports: a name is the same wherever it is read"
        within = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name for name in within if name in ROOMS] or [node.module or ""]
    return []


@functools.cache
def imports(room: str) -> set[str]:
    """All modules that a room imports, wherever in the file."""
    return {name for node in ast.walk(source(room)) for name in imported(node)}


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


@functools.cache
def reaches(room: str) -> set[str]:
    """Every room that is imported when this one is, however indirectly."""
    seen: set[str] = set()
    todo = [room]
    while todo:
        for name in imports(todo.pop()) & set(ROOMS) - seen:
            seen.add(name)
            todo.append(name)
    return seen


def test_the_tree_of_the_readme_is_the_house():
    assert sorted(TREE) == ROOMS, "give the new file its line in the tree of docs/house.md"


@pytest.mark.parametrize("room", TREE)
def test_imports_go_down_only(room):
    for other in imports(room) & set(TREE) - OPEN_TO_ALL:
        assert TREE.index(other) > TREE.index(room), (
            f"{room} imports {other}, which stands above it in the tree of docs/house.md"
        )


@pytest.mark.parametrize("room", TELLING)
def test_telling_never_imports_doing(room):
    assert not reaches(room) & DOING


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_touch_nothing_outside(room):
    assert {name.split(".")[0] for name in imports(room) - set(ROOMS)} <= PURE_MODULES
    for node in ast.walk(source(room)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IMPURE_CALLS, f"{room}:{node.lineno}"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            assert node.attr in NUMPY_RANDOM, f"{room}:{node.lineno}"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np", "numpy"):
            assert node.attr not in NUMPY_DISK, f"{room}:{node.lineno}"
        if isinstance(node, ast.Global):
            raise AssertionError(f"{room}:{node.lineno}: a pure room keeps no state")


def test_the_walls_need_the_standard_library_alone():
    assert imports("grading.walls") <= sys.stdlib_module_names | {"__future__", "collections.abc"}


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


# ── ratchets: what may shrink and not grow ───────────────────────────────────────────────────────────────────────────

MOST_LINES = 600
LONGER: dict[str, str] = {}  # room -> why it is one idea all the same

RECIPE = ("run", "swarm", "session", "records")


def code_lines(room: str) -> int:
    """Lines that hold more than a comment, a docstring or nothing."""
    text = (ROOT / (room.replace(".", "/") + ".py")).read_text(encoding="utf-8")
    told: set[int] = set()
    for node in ast.walk(source(room)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            told |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - told)


def test_no_file_is_longer_than_one_idea():
    lines = {room: len((ROOT / (room.replace(".", "/") + ".py")).read_text().splitlines()) for room in ROOMS}
    assert {room for room, n in lines.items() if n > MOST_LINES} == set(LONGER)


def test_the_root_holds_what_a_user_starts_or_first_reads():
    assert len([room for room in ROOMS if "." not in room]) <= 17


def test_the_recipe_reads_as_one_text():
    assert sum(map(code_lines, RECIPE)) < 900


def test_any_is_rare():
    """Where a type is not said, a reader has to find it out, and so has the next change."""
    words = [node.id for room in ROOMS for node in ast.walk(source(room)) if isinstance(node, ast.Name)]
    assert words.count("Any") < 200
