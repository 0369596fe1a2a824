"""The positive control: a task is `bundle` functions of MBPP (Austin et al. 2021, arXiv:2108.07732).

Train, validation and test split, 964 functions with three asserts each. Of each function the first assert is
shown and visible, the others are hidden, so the fitness counts functions that are done: a hill by construction.
Which functions share a bundle is drawn by the seed; no two of them share a name.
Left out and counted: functions that cannot be used, and functions left over.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any, NamedTuple

from faults import TaskError
from tasksets.hub import fetch, parquet_cells, splits_of
from tasksets.task import About, Options, Task, Test, parse, seeded, unseen

MBPP = "google-research-datasets/mbpp"
MBPP_REVISION = "4bb6404fdc6cacfda99d4ac4205087b89d32030c"


class _Function(NamedTuple):
    """One MBPP problem."""

    mbpp_id: int
    name: str  # that its reference defines and its asserts call
    text: str
    code: str
    asserts: list[str]
    setup: str
    classes: list[str]  # that its tests use and its reference defines
    binds: set[str]  # top-level names of its reference
    uses: set[str]  # builtins and imported names that its reference uses

    def claims(self, bound: set[str]) -> set[str]:
        """What no other function of its bundle may claim, if all of them bind `bound` between them: what it binds,
        and what it uses and somebody else binds (MBPP has a function named sum)."""
        return self.binds | self.uses & bound

    def test(self, index: int, source: str) -> Test:
        """An assert behind the function's own set-up code, which thus runs for this test alone."""
        return Test("\n".join(filter(None, [self.setup, self.asserts[index]])), source=source)

    def describe(self, number: int) -> str:
        lines = [f"{number}. {self.name}", " ".join(self.text.split())]
        if self.classes:
            lines.append(f"The tests also use the class {' and '.join(self.classes)}: define it as well.")
        if self.setup:
            lines.append("Run before each of its tests:\n" + "\n".join(x.rstrip() for x in self.setup.splitlines()))
        return "\n".join([*lines, f"Example: {self.asserts[0]}"])


def mbpp_bundle(options: Options, about: About) -> Iterator[Task]:
    """A task a bundle that has a hidden test."""
    about.licence = "CC BY 4.0"
    if options.bundle < 1:
        raise TaskError(f"--bundle {options.bundle}: give the number of functions a task, 1 or more")
    splits = splits_of(options, ("train", "validation", "test", "prompt"), ("train", "validation", "test"))
    patterns = tuple(f"full/{split}-*" for split in splits)
    named = "-".join(["mbpp", *options.splits, str(options.seed)])  # other splits, other bundles
    functions: list[_Function] = []
    for path in fetch(MBPP, MBPP_REVISION, patterns, options, about):
        columns = ("task_id", "text", "code", "test_list", "test_setup_code")
        for cells in parquet_cells(path, columns, batch_rows=100):
            function = _function({name: cell.as_py() for name, cell in cells.items()})
            if isinstance(function, str):
                about.left_out[function] += 1
            else:
                functions.append(function)

    # Families: functions tied by a common name. Laid one behind the other and dealt out like cards, the members of a
    # family come to lie in different bundles, whatever the seed, as long as no family is larger than a round.
    families = _families(sorted(functions, key=lambda function: seeded(options.seed, str(function.mbpp_id))))
    order = [function for family in families for function in family]
    number = len(order) // options.bundle
    largest = max(map(len, families), default=0)
    if largest > number:
        most = len(order) // max(largest, 1)
        raise TaskError(
            f"--bundle {options.bundle}: {largest} of {len(order)} functions share names and {number} bundles cannot "
            f"keep them apart; the most is {most}"
        )
    if rest := len(order) - number * options.bundle:
        about.notes.append(f"{rest} functions are left over when {len(order)} are put in bundles of {options.bundle}")
    for k in range(number):
        task = _bundle(f"{named}-{k}", order[k::number][: options.bundle], options, about)
        if task.hidden:
            yield task
        else:  # some MBPP functions have one assert three times
            about.left_out["bundles without a hidden test"] += 1


def _bundle(task_id: str, functions: list[_Function], options: Options, about: About) -> Task:
    names = tuple(function.name for function in functions)
    visible = tuple(function.test(0, "public") for function in functions)
    hidden = tuple(f.test(i, "private") for f in functions for i in range(1, len(f.asserts)))
    many = len(functions) > 1
    head = (
        f"Write {'these functions' if many else 'this function'}, {'all in one program' if many else 'as a program'}."
    )
    reference = "\n\n".join(function.code for function in functions) + "\n"
    return Task(
        id=task_id,
        title="MBPP " + ", ".join(str(function.mbpp_id) for function in functions),
        statement="\n\n".join([head] + [function.describe(n) for n, function in enumerate(functions, 1)]),
        kind="assert",
        visible=visible,
        hidden=unseen(visible, hidden, options, about),
        functions=names,
        reference=reference,
        references=(reference,),
    )


def _function(row: dict[str, Any]) -> _Function | str:
    """One row of MBPP, or the reason to leave it out."""
    asserts, setup = row["test_list"] or [], row["test_setup_code"] or ""
    if len(asserts) < 2:
        return "functions with fewer than two asserts"
    reference = parse(row["code"])
    tests = [parse(text) for text in (setup, *asserts)]
    if reference is None or None in tests:
        return "functions that do not parse"
    used = [{node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} for tree in tests if tree]
    defined = [node.name for node in reference.body if isinstance(node, ast.FunctionDef)]
    called = [name for name in dict.fromkeys(defined) if all(name in names for names in used[1:])]
    if len(called) != 1:
        return "functions whose name is not plain"
    classes = [node.name for node in reference.body if isinstance(node, ast.ClassDef)]
    return _Function(
        mbpp_id=row["task_id"],
        name=called[0],
        text=row["text"],
        code=row["code"],
        asserts=asserts,
        setup=setup,
        classes=[name for name in classes if any(name in names for names in used)],
        binds=_bound(reference),
        uses=_used(reference),
    )


def _bound(program: ast.Module) -> set[str]:
    """Names that a program binds at top level, imports aside: those mean the same to everybody."""
    names = set()
    for statement in program.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            stores = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            names |= {node.id for node in stores if isinstance(node.ctx, ast.Store)}
    return names


def _used(program: ast.Module) -> set[str]:
    """Builtins and imported names that a program uses."""
    nodes = list(ast.walk(program))
    imported = (alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names & set(dir(builtins)) | {(alias.asname or alias.name).split(".")[0] for alias in imported}


def _families(functions: list[_Function]) -> list[list[_Function]]:
    """Functions tied by a common name, directly or through others; families and members in the given order."""
    bound = set().union(*(function.binds for function in functions))
    family_of: dict[str, list[_Function]] = {}
    for function in functions:
        claims = function.claims(bound)
        tied = {id(family): family for name in claims if (family := family_of.get(name))}
        merged = [*(member for family in tied.values() for member in family), function]
        for name in set().union(*(member.claims(bound) for member in merged)):
            family_of[name] = merged
    place = {function.mbpp_id: place for place, function in enumerate(functions)}
    families = {id(family): sorted(family, key=lambda f: place[f.mbpp_id]) for family in family_of.values()}
    return sorted(families.values(), key=lambda family: place[family[0].mbpp_id])
