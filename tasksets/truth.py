"""Ground truth: a task's tests as one text, for a trainer's column, and the task that a grader needs back from it.

    dumps(task) -> str      a JSON object, in ASCII
    loads(text) -> Task     what Grader.grade takes; TaskError says what is wrong with a text

    {"version": 1, "id": "…", "kind": "stdio", "visible": [["1\\n", "2\\n"]], "hidden": [["5\\n", "10\\n"]]}
    {"version": 1, "id": "…", "kind": "assert", "visible": ["assert f(1) == 2"], "hidden": ["assert f(5) == 10"],
     "functions": ["f"], "setup": "…", "prelude": "…", "timeout": 2.0}

All that a verdict depends on is in it, and what is not there has the task's default. Who writes one by hand may give
"tests" in place of visible and hidden, and leave version and id out. It holds hidden tests: it is for a grader, never
for a prompt.

Left out: the statement, reference, spare tests and tags; where each test came from; the rules of a grader
(`--as-published`), which are one for all tasks.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from faults import TaskError
from tasksets.task import SECONDS, Task, Test

VERSION = 1  # goes up when an older reader could read a text wrongly
KINDS = ("stdio", "assert")
FIELDS = ("version", "id", "kind", "visible", "hidden", "tests", "setup", "functions", "prelude", "timeout")


def dumps(task: Task) -> str:
    """The tests of a task, and how they are run."""
    if task.kind not in KINDS:
        raise TaskError(f"{task.id}: tests of kind {task.kind!r} cannot be a ground truth; use {' or '.join(KINDS)}")
    truth: dict[str, Any] = {"version": VERSION, "id": task.id, "kind": task.kind}
    for side in ("visible", "hidden"):
        tests: tuple[Test, ...] = getattr(task, side)
        truth[side] = [test.input if task.kind == "assert" else [test.input, test.output] for test in tests]
    more = {"setup": task.setup, "functions": list(task.functions), "prelude": task.prelude, "timeout": task.timeout}
    truth |= {name: value for name, value in more.items() if value or value == 0}
    return json.dumps(truth, ensure_ascii=True, allow_nan=False)


def loads(text: str) -> Task:
    """The task that a ground truth is of, for a grader: no statement, no spare tests."""
    try:
        truth = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        _wrong(f"is not JSON: {str(text)[:60]!r}")
    if not isinstance(truth, dict):
        _wrong(f"must be a JSON object, not {str(text)[:60]!r}")
    if unknown := [name for name in truth if name not in FIELDS]:
        _wrong(f"{unknown[0]}: no such field; there are {', '.join(FIELDS)}")
    if truth.get("version", VERSION) != VERSION:
        _wrong(f"is of version {truth['version']!r}, and this reads {VERSION}: export it again")
    kind = truth.get("kind")
    if kind not in KINDS:
        _wrong(f"kind: must be {' or '.join(KINDS)}, not {kind!r}")
    if "tests" in truth and ("visible" in truth or "hidden" in truth):
        _wrong("tests: stands in place of visible and hidden; leave it or them out")
    functions = truth.get("functions", [])
    if not isinstance(functions, list) or not all(isinstance(name, str) for name in functions):
        _wrong(f"functions: must be a list of names, not {functions!r:.60}")
    timeout = truth.get("timeout")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not SECONDS[0] <= timeout <= SECONDS[1]
    ):
        _wrong(f"timeout: must be CPU seconds, 0.01 or more and a day at most, not {timeout!r:.60}")
    for name in ("id", "setup", "prelude"):
        if not isinstance(truth.get(name, ""), str):
            _wrong(f"{name}: must be text, not {truth[name]!r:.60}")
    visible = _tests(truth, "tests" if "tests" in truth else "visible", kind, "public")
    hidden = _tests(truth, "hidden", kind, "private")
    if not visible + hidden:
        _wrong("holds no test: nothing could fail it")
    return Task(
        id=truth.get("id", ""),
        title="",
        statement="",
        kind=kind,
        visible=visible,
        hidden=hidden,
        setup=truth.get("setup", ""),
        functions=tuple(functions),
        timeout=None if timeout is None else float(timeout),
        prelude=truth.get("prelude", ""),
    )


def _tests(truth: dict[str, Any], name: str, kind: str, source: str) -> tuple[Test, ...]:
    found = truth.get(name, [])
    if not isinstance(found, list):
        _wrong(f"{name}: must be a list of tests, not {found!r:.60}")
    for number, test in enumerate(found, 1):
        if kind == "assert" and not isinstance(test, str):
            _wrong(f'{name}: test {number} must be a text like "assert f(2) == 4", not {test!r:.60}')
        if kind == "stdio" and not (
            isinstance(test, list) and len(test) == 2 and all(isinstance(side, str) for side in test)
        ):
            _wrong(f"{name}: test {number} must be [input, output], both text, not {test!r:.60}")
    return tuple(Test(test, source=source) if kind == "assert" else Test(test[0], test[1], source) for test in found)


def _wrong(what: str) -> NoReturn:
    raise TaskError(f"ground truth: {what}")
