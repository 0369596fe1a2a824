"""A task's tests as one text: what a grader needs comes back, nothing else does, and a wrong text is an error."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import TaskError
from grader import Grader
from tasks import load
from tasksets import mbpp
from tasksets.task import About, Options, Task, Test
from tasksets.truth import dumps, loads

SAMPLE = Path(__file__).parent / "data" / "mbpp_sample.jsonl"
MBPP_ROWS = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
DECIDES = ("id", "kind", "setup", "functions", "prelude", "timeout")


def decides(task: Task) -> tuple[object, ...]:
    """All that a grader reads of a task: whatever is added to Task is here, or named as of no concern to it."""
    of_no_concern = {"title", "statement", "spare", "tags", "reference", "references", "incorrect"}
    assert {each.name for each in fields(Task)} == {*DECIDES, "visible", "hidden"} | of_no_concern
    tests = [[(test.input, test.output) for test in side] for side in (task.visible, task.hidden)]
    return (*(getattr(task, name) for name in DECIDES), *tests)


def bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist(MBPP_ROWS), path)
    monkeypatch.setattr("tasksets.mbpp.fetch", lambda *_: [path])
    return list(mbpp.mbpp_bundle(Options(bundle=2), About("mbpp")))


def test_every_task_comes_back_as_a_grader_needs_it(tmp_path, monkeypatch):
    sets = [*load("toy"), *bundles(tmp_path, monkeypatch)]
    assert len(sets) > 20 and any(test.input.count("\n") for task in sets for test in task.visible)
    for task in sets:
        text = dumps(task)
        assert text.isascii() and decides(loads(text)) == decides(task)
        assert task.statement not in text and (not task.reference or task.reference not in text)


TEXT = st.text(st.characters(exclude_categories=[]), max_size=8)


@given(
    st.sampled_from(["stdio", "assert"]),
    st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3),
    st.lists(st.tuples(TEXT, TEXT), max_size=3),
    TEXT,
    st.none() | st.floats(0.01, 60),
)
def test_no_character_or_limit_is_lost(kind, visible, hidden, text, timeout):
    shown, secret = (
        tuple(Test(a, "" if kind == "assert" else b) for a, b in side) for side in (visible, hidden)
    )  # fmt: skip
    task = Task("a" + text, "A", "Do.", kind, shown, secret, (Test("spare"),), text, {}, (text,), "ref", timeout, text)
    if "\ud800" <= max(json.dumps([visible, hidden, text], ensure_ascii=False)) <= "\udfff":
        return  # two lone surrogates side by side become one character in JSON: no text anybody stores
    assert decides(loads(dumps(task))) == decides(task)


def test_tests_that_decide_and_nothing_more_are_in_it():
    task = Task("a", "TITLE", "STATEMENT", "stdio", (Test("1", "2"),), (Test("3", "4"),), (Test("SPARE"),))
    task = replace(task, reference="REFERENCE", tags={"k": "TAG"})
    assert json.loads(dumps(task)) == {
        "version": 1, "id": "a", "kind": "stdio", "visible": [["1", "2"]], "hidden": [["3", "4"]],
    }  # fmt: skip


def test_one_written_by_hand_needs_a_kind_and_tests():
    task = loads('{"kind": "assert", "tests": ["assert f(1) == 2", "assert f(2) == 3"]}')
    assert [test.input for test in task.visible] == ["assert f(1) == 2", "assert f(2) == 3"] and not task.hidden
    assert loads('{"kind": "stdio", "hidden": [["1", "2"]]}').hidden == (Test("1", "2", "private"),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (None, "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"kind": "sql", "tests": []}', "kind: must be stdio or assert, not 'sql'"),
        ('{"tests": []}', "kind: must be stdio or assert, not None"),
        ('{"kind": "stdio", "tests": []}', "holds no test"),
        ('{"kind": "stdio", "hidn": []}', "hidn: no such field"),
        ('{"kind": "stdio", "tests": [["1", "2"]], "visible": []}', "in place of visible and hidden"),
        ('{"kind": "stdio", "tests": [["1"]]}', "tests: test 1 must be [input, output]"),
        ('{"kind": "stdio", "hidden": [["1", "2"], ["1", 2]]}', "hidden: test 2 must be [input, output]"),
        ('{"kind": "assert", "visible": [["assert f(1) == 2", ""]]}', "visible: test 1 must be a text"),
        ('{"kind": "assert", "visible": "assert f(1) == 2"}', "visible: must be a list of tests"),
        ('{"kind": "assert", "tests": ["assert f(1)"], "functions": "f"}', "functions: must be a list of names"),
        ('{"kind": "assert", "tests": ["assert f(1)"], "timeout": 0}', "timeout: must be CPU seconds"),
        ('{"kind": "assert", "tests": ["assert f(1)"], "timeout": true}', "timeout: must be CPU seconds"),
        ('{"kind": "assert", "tests": ["assert f(1)"], "timeout": NaN}', "timeout: must be CPU seconds"),
        ('{"kind": "assert", "tests": ["assert f(1)"], "setup": null}', "setup: must be text"),
        ('{"version": 2, "kind": "assert", "tests": ["assert f(1)"]}', "is of version 2, and this reads 1"),
    ],
)
def test_a_text_that_is_none_is_an_error_and_never_a_task_without_tests(text, says):
    with pytest.raises(TaskError) as told:
        loads(text)
    assert says in str(told.value) and str(told.value).startswith("ground truth: ")


def test_a_query_has_no_ground_truth_of_this_form():
    with pytest.raises(TaskError, match="kind 'sql' cannot be a ground truth"):
        dumps(Task("q", "q", "How many?", "sql", (), (Test("SELECT 1"),)))


@pytest.mark.slow
def test_a_grade_is_the_same_from_the_text():
    """Limits, functions, set-up, prelude and hidden tests: what would change the verdict does so on both sides."""
    task = Task(
        "t", "T", "S", "assert", (Test("assert f(1) == K"),), (Test("assert f(2) == K + 1"),),
        setup="K = 4", prelude="BASE = 3", functions=("f",), timeout=0.2,
    )  # fmt: skip
    programs = {
        "def f(n): return n + BASE": "pass",
        "def f(n): return 4": "wrong_answer",
        "def f(n):\n    while True: pass": "timeout",
        "def g(n): return n + BASE": "runtime_error",
    }

    async def both() -> None:
        async with Grader(workers=1) as grader:
            for program, outcome in programs.items():
                reply = f"```python\n{program}\n```"
                grade, again = await grader.grade(reply, task), await grader.grade(reply, loads(dumps(task)))
                assert grade._replace(cpu_seconds=0.0) == again._replace(cpu_seconds=0.0)
                assert grade.outcome == outcome, program

    asyncio.run(both())
