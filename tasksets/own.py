"""Task sets of your own: a .jsonl or .parquet file, read row by row and checked field by field.

A wrong row is an error that names its place, its field and what to do. The fields: see `own`.
Left out: running a reference program, or trying whether a test can be passed (audit.py does).
"""

from __future__ import annotations

import ast
import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from faults import TaskError
from grading import asserts
from tasksets.hub import not_on_a_hub, parquet_cells
from tasksets.task import SECONDS, About, Options, Task, Test, in_words, parse, unseen

_NAMED = 10  # wrong rows, beside their number
REQUIRED = ("id", "statement", "kind", "visible", "hidden")
FIELDS = (*REQUIRED, "title", "setup", "tags", "functions", "reference", "spare", "timeout", "prelude")


def own(path: Path, sets: Iterable[str], options: Options, about: About) -> Iterator[Task]:
    """Tasks of your own: a .jsonl file with one object a line, or a .parquet file with the same columns.

    field       required  what
    id          yes       text, different in every row
    statement   yes       the problem as the model reads it
    kind        yes       "stdio": a program that reads stdin and writes stdout; "assert": functions
    visible     yes       tests whose results may be shown; at least one
    hidden      yes       tests that decide a pass and are never shown; at least one. One whose input is also visible
                          is dropped and counted
    title                 short name, otherwise the id
    functions             kind assert: names the program must define
    prelude               code run before the program, in its namespace, and shown to the model as given. What is in it
                          the program can replace: it is no place for expected values, nor for what decides
    setup                 kind assert: code run after the program and before each assert
    spare                 further tests, for calibrate.py
    reference             a program known to be right, or a list of them; never shown, and run by audit.py
    tags                  object of text to text, by which the report can be broken down
    timeout               CPU seconds a test, instead of the rule's 6

    A test of kind stdio is [input, output] or {"input": ..., "output": ...}. A test of kind assert is a text that
    ends with its one assert statement; what stands before it is set-up for that test alone. Texts are used
    character for character. null is the same as leaving a field out; a field of another name is an error. sets: the
    names that the path may have been meant for.
    """
    not_on_a_hub(options, path)
    readers = {".jsonl": jsonl_rows, ".parquet": parquet_rows}
    if path.suffix not in readers:
        near = difflib.get_close_matches(str(path), sets, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose {', '.join(sets)} or a .jsonl or .parquet file"
        raise TaskError(f"there is no task set {path}; {hint}")
    if not path.is_file():
        raise TaskError(f"there is no file {path}; give the path of a .jsonl or .parquet file of tasks")
    seen: dict[str, str] = {}

    def checked(row: object, where: str) -> Task:
        task = _task(row, f"{path}, {where}", options)
        if task.id in seen:
            raise TaskError(f"{path}, {where}: id: {task.id!r} is also {seen[task.id]}; ids must differ")
        seen[task.id] = where
        return task

    for task in all_right(readers[path.suffix](path), checked):
        hidden = unseen(task.visible, task.hidden, options, about)
        if hidden:
            yield replace(task, hidden=hidden)
        else:
            about.left_out["whose every hidden test is also visible"] += 1


def places(path: Path) -> dict[str, str]:
    """Where the row of each id stands: "line 3"."""
    readers = {".jsonl": jsonl_rows, ".parquet": parquet_rows}
    found = {}
    for where, row in readers[path.suffix](path) if path.suffix in readers else ():
        if isinstance(row, dict) and isinstance(row.get("id"), str | int):
            found[str(row["id"])] = where
    return found


def all_right(rows: Iterator[tuple[str, object]], made: Callable[[object, str], Task]) -> Iterator[Task]:
    """The task that is made of each row; after the last a TaskError for all that are wrong, the first of them named."""
    said: list[str] = []
    more = 0
    for where, row in rows:
        try:
            if isinstance(row, TaskError):
                raise row
            yield made(row, where)
        except TaskError as why:
            said, more = (said, more + 1) if len(said) == _NAMED else ([*said, str(why)], 0)
    if said:
        raise TaskError("\n".join(said + [f"and {more:,} more wrong row{'s' * (more > 1)}"] * (more > 0)))


def jsonl_rows(path: Path) -> Iterator[tuple[str, object]]:
    """(where, row); in place of a row that cannot be read the TaskError that says so."""

    def object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
            raise ValueError(f"{twice!r} is there twice")
        return dict(pairs)

    try:
        lines = path.open("rb")  # bytes: lines end at \n alone, whatever else a statement holds
    except OSError as error:
        raise TaskError(f"cannot read {path}: {in_words(error)}; check its permissions") from error
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield f"line {number}", json.loads(text, object_pairs_hook=object_of)
            except (ValueError, RecursionError) as error:
                yield f"line {number}", TaskError(f"{path}, line {number}: not JSON in UTF-8 ({in_words(error)})")


def parquet_rows(path: Path) -> Iterator[tuple[str, object]]:
    for number, cells in enumerate(parquet_cells(path, None, batch_rows=16), 1):
        try:
            yield f"row {number}", {name: cell.as_py() for name, cell in cells.items()}
        except UnicodeDecodeError as error:
            why = f"{path}, row {number}: not UTF-8: {in_words(error)}; write the file again"
            yield f"row {number}", TaskError(why)


def _task(row: object, where: str, options: Options) -> Task:
    """One row, checked field by field. `where` says which row it is."""

    def wrong(field: str, what: str) -> NoReturn:
        raise TaskError(f"{where}: {field}: {what}")

    if not isinstance(row, dict):
        raise TaskError(f"{where}: a row is an object with the fields {', '.join(REQUIRED)}, not {_shown(row)}")
    row = {name: value for name, value in row.items() if value is not None}
    for name in row:
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(FIELDS)}"
            wrong(name, f"no such field; {hint}")
    for name in REQUIRED:
        if name not in row:
            wrong(name, "is missing; every row needs it")

    def text(name: str) -> str:
        value = row.get(name, "")
        if not isinstance(value, str):
            wrong(name, f"must be text, not {_shown(value)}")
        if name in REQUIRED and not value.strip():
            wrong(name, "is empty; every row needs it")
        return value

    if isinstance(row["id"], int) and not isinstance(row["id"], bool):
        row["id"] = str(row["id"])
    if not text("id").isprintable():
        wrong("id", f"must be printable, not {_shown(row['id'])}")
    kind = text("kind")
    if kind not in ("stdio", "assert"):
        wrong("kind", f'must be "stdio" or "assert", not {_shown(kind)}')
    functions = row.get("functions", [])
    if not isinstance(functions, list) or not all(isinstance(f, str) and f.isidentifier() for f in functions):
        wrong("functions", f"must be a list of function names, not {_shown(functions)}")
    for name in ("functions", "setup"):
        if kind == "stdio" and row.get(name):
            wrong(name, 'is for kind "assert" alone; leave it out')
    for name in ("setup", "prelude"):
        if parse(text(name)) is None:
            wrong(name, "is not Python; mend it or leave it out")
    given = row.get("reference", [])
    references = [given] if isinstance(given, str) else given
    if not isinstance(references, list) or not all(isinstance(one, str) for one in references):
        wrong("reference", f"must be a program as text, or a list of them, not {_shown(given)}")
    references = [one for one in references if one.strip()]
    tags = row.get("tags", {})
    if not isinstance(tags, dict) or not all(isinstance(value, str | None) for value in tags.values()):
        wrong("tags", f"must be an object of text to text, not {_shown(tags)}")
    timeout = row.get("timeout")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not SECONDS[0] <= timeout <= SECONDS[1]
    ):
        wrong("timeout", f"must be CPU seconds, 0.01 or more and a day at most, not {_shown(timeout)}")

    def tests(name: str, source: str) -> tuple[Test, ...]:
        value = row.get(name, [])
        if not isinstance(value, list):
            wrong(name, f"must be a list of tests, not {_shown(value)}")
        if name in REQUIRED and not value:
            wrong(name, "holds no test; a task needs at least one visible and one hidden test")
        made = []
        for number, one in enumerate(value, 1):
            try:
                made.append(_test(one, kind, source, text("setup"), frozenset(functions), text("prelude")))
            except asserts.NotATest as why:
                wrong(name, f"test {number}: {why}")
        return tuple(made)

    return Task(
        id=text("id"),
        title=text("title") or text("id"),
        statement=text("statement"),
        kind=kind,
        visible=tests("visible", "public"),
        hidden=tests("hidden", "private"),
        spare=tests("spare", "generated") if options.spare else (),
        setup=text("setup"),
        tags={name: value for name, value in tags.items() if value is not None},  # parquet has all or none
        functions=tuple(functions),
        reference=references[0] if references else "",
        references=tuple(references),
        timeout=None if timeout is None else float(timeout),
        prelude=text("prelude"),
    )


def _test(value: object, kind: str, source: str, setup: str, functions: frozenset[str], prelude: str) -> Test:
    """One test of a row. Raises NotATest, which says what is wrong with it."""
    if kind == "assert":
        if isinstance(value, dict) and set(value) <= {"input", "output"} and not value.get("output"):
            value = value.get("input")  # a parquet column has one shape, whatever the kinds of its rows
        if not isinstance(value, str):
            raise asserts.NotATest(f'must be a text like "assert f(2) == 4", not {_shown(value)}')
        program = parse(value)
        if program is None:
            raise asserts.NotATest(f"is not Python: {_shown(value)}")
        if [number for number, one in enumerate(program.body, 1) if isinstance(one, ast.Assert)] != [len(program.body)]:
            raise asserts.NotATest(f"must end with its one assert statement: {_shown(value)}")
        asserts.refuse_deciding(value, prelude)
        if not asserts.take_apart(value, setup, functions).leaves:
            raise asserts.NotATest(
                "asks nothing of the program (a function named like a built-in one is to stand in `functions`)"
            )
        return Test(value, source=source)
    if isinstance(value, dict) and set(value) == {"input", "output"}:
        value = [value["input"], value["output"]]
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(side, str) for side in value):
        what = f'must be [input, output] or {{"input": ..., "output": ...}}, both text, not {_shown(value)}'
        raise asserts.NotATest(what)
    return Test(value[0], value[1], source)


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
