"""Tasks and task sets: read from files these tests write, from a hub on loopback, and from nowhere else."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import io
import json
import os
import random
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tasks
from faults import TaskError
from grading.grade import CLIP, LETTERS, OUTCOMES, clip
from tasks import load
from tasksets import code_contests, own
from tasksets.code_contests import CODE_CONTESTS_REVISION
from tasksets.mbpp import MBPP, MBPP_REVISION
from tasksets.task import About, Task, Test, card, from_card
from tests.support import hub

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parent.parent
MBPP_ROWS = [json.loads(line) for line in (DATA / "mbpp_sample.jsonl").read_text().splitlines()]
CASES = {
    row["id"]: row for row in map(json.loads, (DATA / "cases_data.jsonl").read_text(encoding="utf-8").splitlines())
}

TESTS = pa.struct([("input", pa.list_(pa.string())), ("output", pa.list_(pa.string()))])
SOLUTIONS = pa.struct([("language", pa.list_(pa.int64())), ("solution", pa.list_(pa.string()))])
CONTEST = pa.schema(
    [
        ("name", pa.string()),
        ("description", pa.string()),
        ("public_tests", TESTS),
        ("private_tests", TESTS),
        ("generated_tests", TESTS),
        ("solutions", SOLUTIONS),
        ("cf_rating", pa.int32()),
        ("input_file", pa.string()),
        ("output_file", pa.string()),
        ("time_limit", pa.struct([("seconds", pa.int64()), ("nanos", pa.int64())])),
    ]
)


def pairs(prefix: str, n: int) -> dict[str, list[str]]:
    return {"input": [f"{prefix}{i}\n" for i in range(n)], "output": [f"{prefix}{i}!\n" for i in range(n)]}


def problem(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A row in the shape of the data set's."""
    row = {
        "name": f"{number}_A. Problem {number}",
        "description": "Print what you read and an exclamation mark.",
        "public_tests": pairs("a", 2),
        "private_tests": pairs("p", 3),
        "generated_tests": pairs("g", 70),
        "solutions": {"language": [2, 3, 3], "solution": ["int main() {}", "print(input() + '!')", "second"]},
        "cf_rating": 1900,
        "input_file": "",
        "output_file": "",
        "time_limit": {"seconds": 1, "nanos": 0},
    }
    return row | changes


@pytest.fixture
def contest(tmp_path, monkeypatch):
    """Write rows as the two splits' files; the loader finds them as if fetched."""

    def write(test: Sequence[dict[str, Any]], valid: Sequence[dict[str, Any]] = ()) -> None:
        paths = []
        for split, rows in (("test", test), ("valid", valid)):
            paths.append(tmp_path / f"{split}-00000-of-00001.parquet")
            pq.write_table(pa.Table.from_pylist(list(rows), CONTEST), paths[-1])
        monkeypatch.setattr("tasksets.code_contests.fetch", lambda *_: paths)

    return write


def write_mbpp(folder: Path) -> dict[str, Path]:
    """The sample as the data set's files, under their names in the repository."""
    files = {}
    for k, split in enumerate(("train", "validation", "test")):
        files[f"full/{split}-00000-of-00001.parquet"] = path = folder / f"{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(MBPP_ROWS[k::3]), path)
    return files


@pytest.fixture
def mbpp(tmp_path, monkeypatch):
    paths = list(write_mbpp(tmp_path).values())
    monkeypatch.setattr("tasksets.mbpp.fetch", lambda *_: paths)


def write_rows(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def own_row(**changes: Any) -> dict[str, Any]:
    row = {
        "id": "t1",
        "statement": "Add two numbers.",
        "kind": "stdio",
        "visible": [["1 2\n", "3\n"]],
        "hidden": [["4 5\n", "9\n"]],
    }
    return row | changes


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────
def test_letters_are_one_to_one_and_in_the_order_of_the_outcomes():
    assert "".join(LETTERS.values()) == "PWRTMO.NSIFVCX"
    assert {OUTCOMES[letter]: letter for letter in OUTCOMES} == LETTERS


def test_clip_marks_each_side_that_was_cut():
    text = "".join(chr(65 + i % 26) for i in range(1000))
    assert clip("short") == "short"
    assert clip(text[:CLIP]) == text[:CLIP]
    assert clip(text) == text[:300] + "…"
    assert clip(text, 100) == "…" + text[100:400] + "…"
    assert clip(text, 700) == "…" + text[700:]


def test_the_digest_covers_what_decides_a_prompt_or_a_pass_and_nothing_else():
    one = Task("a", "A", "Do.", "stdio", (Test("1", "2"),), (Test("3", "4", "private"),))
    covered: dict[str, Any] = {
        "statement": "Do it.",
        "kind": "assert",
        "setup": "import re",
        "functions": ("f",),
        "visible": (Test("1", "3"),),
        "hidden": (Test("3", "4 ", "private"),),
        "timeout": 1.0,
        "prelude": "import re",
    }
    free: dict[str, Any] = {
        "id": "b",
        "title": "B",
        "spare": (Test("5", "6"),),
        "tags": {"x": "y"},
        "reference": "pass",
    }
    assert len({one.digest} | {replace(one, **{name: value}).digest for name, value in covered.items()}) == 9
    assert {replace(one, **{name: value}).digest for name, value in free.items()} == {one.digest}
    content = {
        "statement": "Do.", "kind": "stdio", "setup": "", "functions": [],
        "visible": [["1", "2", "public"]], "hidden": [["3", "4", "private"]],
    }  # fmt: skip
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert one.digest == hashlib.sha256(canonical.encode()).hexdigest()


@given(st.text(st.characters(categories=["L", "Cs", "Cc", "P"])), st.text(st.characters()))
def test_a_card_is_a_line_of_json_that_brings_the_shown_task_back(statement, text):
    task = Task("a", "A", statement, "assert", (Test(text),), (Test("hidden"),), functions=("f",), tags={"k": text})
    line = json.dumps(card(task))
    back = from_card(json.loads(line))
    if "\ud800" <= max(statement + text, default="") <= "\udfff":
        return  # two lone surrogates side by side become one character in JSON: no text anybody stores
    assert replace(back, reference="") == task.shown()
    assert back.digest == task.digest == task.shown().digest
    assert card(back)["digest"] == card(task)["digest"]


def test_a_card_of_a_task_without_a_prelude_is_as_it_was_and_one_with_it_brings_it_back():
    task = Task("a", "A", "Do.", "assert", (Test("assert f(1) == 2"),), (Test("assert f(2) == 3"),))
    assert "prelude" not in card(task) and from_card(card(task)).prelude == ""
    given = replace(task, prelude="class Node: pass")
    back = from_card(json.loads(json.dumps(card(given))))
    assert back == given.shown() and back.digest == given.digest != task.digest


def test_neither_card_nor_shown_task_holds_anything_hidden():
    task = Task("a", "A", "Do.", "stdio", (Test("1", "2"),), (Test("SECRET", "SECRET"),), (Test("SECRET"),))
    task = replace(task, reference="SECRET")
    assert "SECRET" not in json.dumps(card(task)) + repr(task.shown())
    assert card(task)["hidden_total"] == 1
    assert hash(task) != hash(task.shown())


# ── toy ──────────────────────────────────────────────────────────────────────────────────────────────────────
def passes(program: str, test: Test, kind: str) -> bool:
    """Ten lines of grader for programs written in this file."""
    space: dict[str, Any] = {"__name__": "program"}
    out = io.StringIO()
    lines = iter(test.input.split("\n"))
    space["input"] = lambda: next(lines)
    try:
        with contextlib.redirect_stdout(out):
            exec(program, space)
            if kind == "assert":
                exec(test.input, space)
    except Exception:
        return False
    return kind == "assert" or out.getvalue().split() == test.output.split()


NEARLY_RIGHT = {
    "toy-paint": [
        "print(sum(abs(b - a) for a, b in (map(int, input().split()) for _ in range(int(input())))))",
        "n = int(input())\ns = [sorted(map(int, input().split())) for _ in range(n)]\n"
        "print(len({x for a, b in s for x in range(a, min(b, a + 100))}))",
        "n = int(input())\ns = [sorted(map(int, input().split())) for _ in range(n)]\n"
        "print(max(b for a, b in s) - min(a for a, b in s))",
    ],
    "toy-brackets": [
        "t = input()\nprint(0 if t.count('(') == t.count(')') and t.count('[') == t.count(']') else -1)",
        "d = 0\nfor i, c in enumerate(input(), 1):\n    d += (c in '([{') - (c in ')]}')\n"
        "    if d < 0:\n        print(i)\n        break\nelse:\n    print(-1 if d else 0)",
        "s = []\nfor i, c in enumerate(input()):\n    if c in '([{':\n        s.append(c)\n"
        "    elif c in ')]}' and (not s or s.pop() + c not in '()[]{}'):\n        print(i)\n        break\n"
        "else:\n    print(-1 if s else 0)",
    ],
    "toy-lists": [
        "def rotate(items, k):\n    return items[-k:] + items[:-k]\n"
        "def runs(text):\n    return [(c, text.count(c)) for c in dict.fromkeys(text)]",
        "def rotate(items, k):\n    k %= len(items)\n    return items[-k:] + items[:-k]\n"
        "import itertools\ndef runs(text):\n    return [(c, len(list(g))) for c, g in itertools.groupby(text)]",
    ],
}


def test_toy_tests_tell_right_from_nearly_right():
    toys = {task.id: task for task in load("toy")}
    assert toys.keys() == NEARLY_RIGHT.keys()
    for task in toys.values():
        every = task.visible + task.hidden
        assert all(passes(task.reference, test, task.kind) for test in every)
        for program in NEARLY_RIGHT[task.id]:
            shown = sum(passes(program, test, task.kind) for test in task.visible)
            assert shown > 0, program
            assert not all(passes(program, test, task.kind) for test in every), program
    # one that only hidden tests find out, so that the fitness is not the pass
    program = NEARLY_RIGHT["toy-lists"][1]
    assert all(passes(program, test, "assert") for test in toys["toy-lists"].visible)


# ── load ─────────────────────────────────────────────────────────────────────────────────────────────────────
def test_limit_is_the_first_n_of_the_seeded_order(tmp_path):
    path = write_rows(tmp_path / "t.jsonl", *(own_row(id=f"t{i}") for i in range(40)))
    full = [task.id for task in load(path, seed=3)]
    assert sorted(full) == sorted(f"t{i}" for i in range(40))
    assert [task.id for task in load(path, limit=7, seed=3)] == full[:7]
    assert [task.id for task in load(path, limit=99, seed=3)] == full
    assert [task.id for task in load(path, seed=4)] != full != sorted(full)
    fewer = write_rows(tmp_path / "u.jsonl", *(own_row(id=f"t{i}") for i in reversed(range(0, 40, 2))))
    assert [task.id for task in load(fewer, seed=3)] == [name for name in full if int(name[1:]) % 2 == 0]


def test_the_order_is_the_same_on_every_machine_and_version():
    assert [task.id for task in load("toy", seed=0)] == ["toy-lists", "toy-paint", "toy-brackets"]


@pytest.mark.slow
def test_tasks_come_one_at_a_time_and_about_is_there_with_the_first(contest):
    contest([problem(i) for i in range(5)])
    stream = load("code_contests")
    assert stream.about == About("code_contests")  # nothing is read before it is asked for
    next(stream)
    assert stream.about.tasks == 5 and stream.about.median_rating == 1900
    stream.close()
    assert list(stream) == []


def test_what_config_json_holds_of_a_set():
    stream = load("toy")
    next(stream)
    assert json.loads(json.dumps(stream.about.row())) == {
        "source": "toy", "revision": None, "licence": "Apache-2.0", "tasks": 3, "left_out": {}, "notes": [],
        "overlap": {"tests": 0, "tasks": 0}, "repaired_statements": 0, "median_rating": None, "without_reference": [],
    }  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(monkeypatch):
    monkeypatch.setattr(tasks.tempfile, "TemporaryFile", lambda: os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", 0))
    with pytest.raises(TaskError, match=r"No space left on device.*set TMPDIR to a folder with room"):
        next(load("toy"))


def test_a_set_of_your_own_is_one_function_and_its_name(monkeypatch):
    def mine(options, about):
        yield Task("m1", "M", "Say hi.", "stdio", (Test("", "hi"),), (Test(str(options.seed), "hi"),))

    monkeypatch.setitem(tasks.SETS, "mine", mine)
    assert next(load("mine", seed=7)).hidden[0].input == "7"


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("toys", {}, "did you mean toy?"),
        ("code-contests", {}, "did you mean code_contests?"),
        ("somewhere", {}, "choose toy, code_contests, mbpp-bundle or a .jsonl or .parquet file"),
        ("missing.jsonl", {}, "there is no file missing.jsonl"),
        ("missing.parquet", {}, "there is no file missing.parquet"),
        ("toy", {"limit": 0}, "--limit 0"),
        ("toy", {"limit": -1}, "--limit -1"),
        ("toy", {"revision": "main"}, "--revision main is for data sets on a hub"),
        ("mine.jsonl", {"revision": "main"}, "--revision main is for data sets on a hub"),
        ("mbpp-bundle", {"bundle": 0}, "--bundle 0"),
        ("mbpp-bundle", {"revision": " "}, "--revision is empty"),
    ],
)
def test_what_cannot_be_loaded_gets_one_line(source, options, says):
    with pytest.raises(TaskError) as error:
        next(load(source, **options))
    assert says in str(error.value) and "\n" not in str(error.value)


# ── code_contests ────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_visible_hidden_and_spare_by_index(contest):
    contest([problem(7)], [problem(7)])
    for spare in (False, True):
        for task in load("code_contests", spare=spare):
            split = task.id.split("-")[1]
            assert task.id == f"cc-{split}-7_A" and task.title == "Problem 7" and task.kind == "stdio"
            assert task.tags == {"rating": "1500-2199", "split": split}
            names = [[(test.input.strip(), test.source) for test in side] for side in (task.visible, task.hidden)]
            assert names[0] == [(f"a{i}", "public") for i in range(2)] + [(f"g{i}", "generated") for i in range(8)]
            assert names[1] == [(f"p{i}", "private") for i in range(3)] + [(f"g{i}", "generated") for i in range(8, 40)]
            assert [test.input for test in task.spare] == ([f"g{i}\n" for i in range(40, 70)] if spare else [])
            assert task.reference == ("print(input() + '!')" if spare else "")
            assert task.timeout is None  # not the data set's, which are for C++
            assert all(test.output == test.input.strip() + "!\n" for test in task.visible + task.hidden + task.spare)


def test_spare_changes_no_digest(contest):
    contest([problem(i) for i in range(4)])
    assert [t.digest for t in load("code_contests")] == [t.digest for t in load("code_contests", spare=True)]


def test_what_cannot_be_judged_is_left_out_and_counted(contest):
    none: dict[str, list[str]] = {"input": [], "output": []}
    uneven = {"input": ["1\n", "2\n"], "output": ["1\n"]}
    contest(
        [
            problem(1),
            problem(2, description="This is an interactive problem. Guess."),
            problem(3, input_file="sum.in"),
            problem(4, output_file="sum.out"),
            problem(5, public_tests=none, generated_tests=none),
            problem(6, private_tests=none, generated_tests=pairs("g", 8)),
            problem(7, generated_tests=uneven),
            problem(8, private_tests=none, generated_tests=pairs("g", 9)),
            problem(9, public_tests=none),
            problem(10, input_file="stdin", output_file="stdout", cf_rating=0),
            problem(11, public_tests=None, cf_rating=2200),
            problem(12, private_tests={"input": ["a0\n", "a1\n"], "output": ["x", "y"]}, generated_tests=none),
        ],
        [problem(13, cf_rating=800)],
    )
    stream = load("code_contests")
    kept = {task.id: task for task in stream}
    assert sorted(kept) == sorted(
        ["cc-test-1_A", "cc-test-8_A", "cc-test-9_A", "cc-test-10_A", "cc-test-11_A", "cc-valid-13_A"]
    )
    assert stream.about.left_out == {
        "interactive": 1,
        "with a named input or output file": 2,
        "without a visible test": 1,
        "without a hidden test": 2,
        "with inputs and outputs of unequal number": 1,
    }
    assert stream.about.tasks == 6 and stream.about.licence == "CC BY 4.0"
    assert stream.about.median_rating == 1900  # 1900 1900 1900 2200 800, and one that has none
    assert {task_id: task.tags["rating"] for task_id, task in kept.items() if task.tags["rating"] != "1500-2199"} == {
        "cc-test-10_A": "unrated",
        "cc-test-11_A": "2200+",
        "cc-valid-13_A": "<1500",
    }
    notes = "\n".join(stream.about.notes)
    assert "cc-test-7_A (7_A. Problem 7) has inputs and outputs of unequal number" in notes
    assert "6 of 13 problems can be used; the published run used 275" in notes


def test_nothing_left_is_an_error(contest):
    contest([problem(1, input_file="sum.in")])
    with pytest.raises(TaskError, match="no task that can be used: 1 with a named input or output file"):
        next(load("code_contests"))


def test_a_hidden_test_whose_input_is_visible_is_dropped_and_counted(contest):
    generated = pairs("g", 60)
    generated["input"][20] = "a0\n"  # public
    generated["input"][21] = "g3\n"  # generated and shown
    generated["input"][45] = "a1\n"  # spare: decides nothing
    private = {"input": ["p0\n", "a1\n"], "output": ["p0!\n", "something else\n"]}
    contest([problem(1, generated_tests=generated, private_tests=private), problem(2)])
    stream = load("code_contests")
    one = next(t for t in stream if t.id == "cc-test-1_A")
    assert len(one.hidden) == 2 + 32 - 3
    assert not {test.input for test in one.visible} & {test.input for test in one.hidden}
    assert stream.about.overlap == {"tests": 3, "tasks": 1}
    assert "dropped 3 hidden tests of 1 tasks, since their input is also visible" in stream.about.notes
    as_published = load("code_contests", keep_overlap=True)
    published = {t.id: t for t in as_published}
    assert len(published["cc-test-1_A"].hidden) == 34 and as_published.about.overlap == {"tests": 0, "tasks": 0}
    assert published["cc-test-1_A"].digest != one.digest


def test_interactive_problems_are_told_from_those_that_only_sound_so():
    rows = [json.loads(line) for line in (DATA / "interactive.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {row["name"].split(".")[0] for row in rows if code_contests._INTERACTIVE.search(row["text"])}
    assert found == {"1586_D", "1599_H", "1617_D2", "680_C", "1534_E"}
    assert found == {row["name"].split(".")[0] for row in rows if row["interactive"]}


@pytest.mark.parametrize(
    ("statement", "interactive"),
    [
        ("Your program talks to the interactor.", True),
        ("Note that this problem is interactive.", True),
        ("Output\n\nPrint n.\n\nInteraction\n\nAsk away.", True),
        ("After each query call fflush(stdout).", True),
        ("Do not forget to flush the output.", True),
        ("Flushing stdout after each line is needed.", True),
        ("This is not an interactive problem.", False),
        ("This isn't an interactive problem.", False),
        ("The non-interactive problem is this one.", False),
        ("The interaction of two genes is a number.", False),
        ("An interactive map shows n cities.", False),
        ("He got a royal flush, the output of luck.", False),
        ("std::endl flushes, which is slow.", False),
    ],
)
def test_what_counts_as_interactive(statement, interactive):
    assert bool(code_contests._INTERACTIVE.search(statement)) is interactive


def case(name: str) -> dict[str, Any]:
    """A case's task in the shape of the data set's row."""
    given = CASES[name]["task"]
    row = problem(1, generated_tests=pairs("g", 9))
    for key, value in given.items():
        if key == "solutions_python3":
            row["solutions"] = {"language": [3] * len(value), "solution": value}
        elif key == "statement":
            row["description"] = value
        elif key != "name":
            row[key] = value
    return row


def test_DA02_named_files_are_left_out_and_counted(contest):
    contest([case("DA02"), problem(2)])
    stream = load("code_contests")
    assert [task.id for task in stream] == ["cc-test-2_A"]
    assert stream.about.left_out == {"with a named input or output file": 1}


def test_DA03_an_invalid_generated_test_reaches_whoever_checks_it_beside_a_stored_solution(contest):
    contest([case("DA03") | {"public_tests": {"input": [], "output": []}}])
    task = next(load("code_contests", spare=True))
    assert task.reference == "print(int(input()) * 2)"
    assert task.visible == (Test("5\n", "10\n", "generated"), Test("x\n", "0\n", "generated"))
    assert task.hidden == (Test("4\n", "8\n", "private"),)
    assert [passes(task.reference, test, "stdio") for test in task.visible + task.hidden] == [True, False, True]


def test_DA07_statements_are_repaired_and_tests_are_not(contest):
    contest([case("DA07"), problem(2, description="1 ≤ n, café"), problem(3, description="naïve Ã")])
    stream = load("code_contests")
    by_id = {task.id: task for task in stream}
    assert by_id["cc-test-1_A"].statement == "Print n. 1 ≤ n ≤ 10"
    assert by_id["cc-test-1_A"].hidden[0] == Test("cafÃ©\n", "cafÃ©\n", "private")
    assert by_id["cc-test-2_A"].statement == "1 ≤ n, café"
    assert by_id["cc-test-3_A"].statement == "naïve Ã"
    assert stream.about.repaired_statements == 1 and "repaired 1 statements" in stream.about.notes[-1]


@pytest.mark.slow
@given(st.text())
def test_repair_undoes_the_wrong_decoding_of_any_text(text):
    wrong = "".join(bytes([b]).decode("cp1252") if b not in b"\x81\x8d\x8f\x90\x9d" else chr(b) for b in text.encode())
    assert code_contests._repaired(wrong) == text


@given(st.lists(st.text(), min_size=1), st.lists(st.text(), min_size=1))
def test_tests_pass_character_for_character(tmp_path_factory, visible, hidden):
    folder = tmp_path_factory.mktemp("rows")
    apart = [f"{i}|{text}" for i, text in enumerate(hidden)]
    shown = [f"v{i}|{text}" for i, text in enumerate(visible)]
    row = own_row(visible=[[t, t] for t in shown], hidden=[[t, t] for t in apart])
    write_rows(folder / "t.jsonl", row)
    pq.write_table(pa.Table.from_pylist([row]), folder / "t.parquet")
    for name in ("t.jsonl", "t.parquet"):
        task = next(load(str(folder / name)))
        assert [test.input for test in task.visible] == [test.output for test in task.visible] == shown
        assert [test.output for test in task.hidden] == apart


BIG = """
import sys
from pathlib import Path
import tasks
from tasksets import code_contests
code_contests.fetch = lambda *_: sorted(Path(sys.argv[1]).glob("*.parquet"))
number = 0
for task in tasks.load("code_contests", spare=sys.argv[2] == "spare"):
    number += 1
    assert len(task.visible) == 10 and len(task.hidden) == 20 + 32
    assert len(task.spare) == (160 if sys.argv[2] == "spare" else 0)
# Not getrusage: what it calls the peak outlives exec, and so counts the process that this one was started from.
print(number, next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_files_of_the_real_size_are_read_in_bounded_memory(tmp_path):
    """282 problems, 222 tests each, 700 MB of text in one row group a file, as the data set is laid out."""
    rng = random.Random(1)
    digits = "".join(rng.choices("0123456789 \n", k=3_000_000))

    def tests(n: int) -> dict[str, list[str]]:
        sizes = [int(rng.expovariate(1 / 10_000)) for _ in range(n)]
        starts = [rng.randrange(len(digits) - size) for size in sizes]
        texts = [f"{i} {digits[at : at + size]}" for i, (at, size) in enumerate(zip(starts, sizes, strict=True))]
        return {"input": texts, "output": [text[:100] for text in texts]}

    for split, number in (("test", 165), ("valid", 117)):
        rows = [
            problem(
                i,
                public_tests={"input": ["one", "two"], "output": ["1", "2"]},
                private_tests={side: [f"p{text}" for text in texts] for side, texts in tests(20).items()},
                generated_tests={side: [f"g{text}" for text in texts] for side, texts in tests(200).items()},
            )
            for i in range(number)
        ]
        path = tmp_path / f"{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(rows, CONTEST), path)
        assert pq.ParquetFile(path).metadata.num_row_groups == 1
    size = sum(path.stat().st_size for path in tmp_path.glob("*.parquet")) // 2**20
    assert size > 250  # MB, compressed
    for spare in ("", "spare"):
        done = run_python(BIG, str(tmp_path), spare)
        number, peak = map(int, done.stdout.split())
        assert number == 282
        assert peak < 400  # MB, of the 1 GB that is promised


OWN_PEAK = """
import sys, pyarrow, tasks
number = sum(len(task.hidden) == 222 for task in tasks.load(sys.argv[1]))
peak = next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(number, pyarrow.default_memory_pool().max_memory() >> 20, peak)
"""
OWN_WRITE = """
import random, sys
import pyarrow as pa, pyarrow.parquet as pq
rows, size = map(int, sys.argv[2:])
digits = random.Random(1).randbytes(1 << 21).hex()
pair = pa.list_(pa.string())
schema = pa.schema([*((name, pa.string()) for name in ("id", "statement", "kind")),
                    ("visible", pa.list_(pair)), ("hidden", pa.list_(pair))])
def batch(k):
    starts = [random.randrange(len(digits) - size) for _ in range(222)]
    hidden = [[digits[at : at + size], str(at)] for at in starts]
    row = {"id": f"t{k}", "statement": "s", "kind": "stdio", "visible": [["1", "2"]], "hidden": hidden}
    return pa.RecordBatch.from_pylist([row], schema)
pq.write_table(pa.Table.from_batches([batch(k) for k in range(rows)]), sys.argv[1], row_group_size=rows)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("rows", "size", "megabytes", "most"),
    [(18, 12_000, 40, 30), (400, 30_000, 2500, 100)],
)
def test_a_parquet_of_your_own_in_one_row_group_is_read_in_bounded_memory(tmp_path, rows, size, megabytes, most):
    path = tmp_path / "own.parquet"
    run_python(OWN_WRITE, str(path), str(rows), str(size))
    try:
        assert pq.ParquetFile(path).metadata.num_row_groups == 1
        assert path.stat().st_size >> 20 >= megabytes
        done = run_python(OWN_PEAK, str(path), TMPDIR=str(tmp_path))
    finally:
        path.unlink()
    number, arrow, peak = map(int, done.stdout.split())
    assert number == rows and arrow < most and peak < 400  # MB, of the 1 GB that is promised


# ── the hub ──────────────────────────────────────────────────────────────────────────────────────────────────
LOAD = """
import json, sys
from tasks import TaskError, load
tasks = load(sys.argv[1], revision=sys.argv[2] or None)
try:
    ids = [task.id for task in tasks]
except TaskError as error:
    print(json.dumps({"error": str(error)}))
else:
    print(json.dumps({"ids": ids, "revision": tasks.about.revision}))
"""


def run_python(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A fresh Python, since huggingface_hub reads the environment once, when it is imported."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *args],
        cwd=ROOT,
        env=clean | env,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )


def ask(source: str, revision: str = "", **env: str) -> dict[str, Any]:
    done = run_python(LOAD, source, revision, **env)
    assert "Retrying" in done.stderr or done.stderr == ""  # no bars where nobody watches
    return json.loads(done.stdout)


@pytest.mark.slow
def test_one_pinned_download_then_the_cache_then_no_network_at_all(tmp_path):
    home = {"HF_HOME": str(tmp_path / "home")}
    repos = {MBPP: hub.Repo(MBPP_REVISION, write_mbpp(tmp_path))}
    repos[MBPP].files["full/prompt-00000-of-00001.parquet"] = tmp_path / "train-00000-of-00001.parquet"
    with hub.serve(repos) as server:
        first = ask("mbpp-bundle", HF_ENDPOINT=server.url, **home)
        fetched = [line for line in server.requests if line.startswith("GET") and "/resolve/" in line]
        assert first["revision"] == MBPP_REVISION and len(first["ids"]) == 8
        assert all(MBPP_REVISION in line for line in server.requests if MBPP in line)
        assert sorted(line.rsplit("/", 1)[1].split("-")[0] for line in fetched) == ["test", "train", "validation"]
        server.requests.clear()
        assert ask("mbpp-bundle", HF_ENDPOINT=server.url, **home) == first
        assert not [line for line in server.requests if line.startswith("GET") and "/resolve/" in line]
    assert ask("mbpp-bundle", HF_HUB_OFFLINE="1", **home) == first


@pytest.mark.slow
def test_a_mirror_without_the_pin_names_the_flag_and_another_revision_is_recorded(tmp_path):
    other = "1" * 40
    with hub.serve({MBPP: hub.Repo(other, write_mbpp(tmp_path))}) as server:
        env = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "home")}
        said = ask("mbpp-bundle", **env)["error"]
        assert MBPP_REVISION in said and said.endswith("name one that it has with --revision")
        assert ask("mbpp-bundle", "main", **env)["revision"] == other
        said = ask("code_contests", **env)["error"]
        assert "no data set deepmind/code_contests" in said and "HF_ENDPOINT" in said and "HF_TOKEN" in said


@pytest.mark.slow
def test_offline_with_an_empty_cache_is_one_line(tmp_path):
    said = ask("code_contests", HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))["error"]
    assert "HF_HUB_OFFLINE is set" in said and "HF_HOME" in said and "\n" not in said


@pytest.mark.slow
def test_an_unreachable_hub_is_one_line_and_a_cached_set_does_without_it(tmp_path):
    home = {"HF_HOME": str(tmp_path / "home")}
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    said = ask("mbpp-bundle", **nowhere, **home)["error"]
    assert "http://127.0.0.1:9" in said and "HF_ENDPOINT" in said and "\n" not in said
    with hub.serve({MBPP: hub.Repo(MBPP_REVISION, write_mbpp(tmp_path))}) as server:
        first = ask("mbpp-bundle", HF_ENDPOINT=server.url, **home)
    assert ask("mbpp-bundle", **nowhere, **home) == first


@pytest.mark.slow
def test_a_split_that_is_not_whole_is_not_taken_for_the_data_set(tmp_path):
    files = write_mbpp(tmp_path)
    files["full/test-00000-of-00002.parquet"] = files.pop("full/test-00000-of-00001.parquet")
    with hub.serve({MBPP: hub.Repo(MBPP_REVISION, files)}) as server:
        said = ask("mbpp-bundle", HF_ENDPOINT=server.url, HF_HOME=str(tmp_path / "home"))["error"]
    assert "has 1 files like full/test-*, not all it should" in said


def test_a_download_that_is_no_parquet_file_is_one_line(tmp_path, monkeypatch):
    broken = tmp_path / "test-00000-of-00001.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    for name, module in (("code_contests", "code_contests"), ("mbpp-bundle", "mbpp")):
        monkeypatch.setattr(f"tasksets.{module}.fetch", lambda *_: [broken])
        with pytest.raises(TaskError, match="is it a whole parquet file"):
            next(load(name))
    pq.write_table(pa.table({"name": ["x"]}), broken)
    with pytest.raises(TaskError, match="has no column description, public_tests"):
        next(load("code_contests"))


# ── mbpp-bundle ──────────────────────────────────────────────────────────────────────────────────────────────
def test_a_bundle_shows_the_first_assert_of_each_function_and_hides_the_others(mbpp):
    rows = {row["task_id"]: row for row in MBPP_ROWS}
    seen: Counter[int] = Counter()
    for task in load("mbpp-bundle", seed=5, keep_overlap=True):
        ids = [int(number) for number in task.title.removeprefix("MBPP ").split(", ")]
        seen.update(ids)
        assert task.id.startswith("mbpp-5-") and task.kind == "assert" and len(task.functions) == 5
        assert len(task.visible) == 5 and len(task.hidden) == 10
        for i, mbpp_id in enumerate(ids):
            row = rows[mbpp_id]
            first, *others = row["test_list"]
            name = task.functions[i]
            assert f"def {name}" in row["code"] and all(f"{name}(" in text for text in row["test_list"])
            assert task.visible[i].input.endswith(first)
            assert [
                test.input.removeprefix(row["test_setup_code"]).removeprefix("\n")
                for test in task.hidden[2 * i : 2 * i + 2]
            ] == others
            assert f"{i + 1}. {name}\n{row['text']}" in task.statement and first in task.statement
            assert not any(text in task.statement for text in others if text not in first)
    assert set(seen.values()) == {1} and seen.total() == 40


@pytest.mark.slow
def test_functions_of_one_name_never_share_a_bundle_whatever_the_seed(mbpp):
    names = Counter(name for task in load("mbpp-bundle", bundle=1, keep_overlap=True) for name in task.functions)
    assert names.total() == 41 and names["text_match"] == names["Check_Solution"] == 4  # else this shows nothing
    drawn = set()
    for seed in range(12):
        for task in load("mbpp-bundle", seed=seed):
            assert len(set(task.functions)) == 5
            bound = ast_names(task.reference)
            assert len(bound) == len(set(bound))
            if "sum" in task.functions:  # nobody beside it needs the builtin that it replaces
                others = "\n".join(row["code"] for row in MBPP_ROWS if f"{row['task_id']}," in task.title + ",")
                assert others.count("sum(") == others.count("def sum(") == 1
        drawn.add(tuple(sorted(task.title for task in load("mbpp-bundle", seed=seed))))
    assert len(drawn) == 12


def ast_names(code: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" in the data's programs
        body = ast.parse(code).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


@pytest.mark.slow
def test_joined_references_pass_every_test_with_set_up_for_each_test_alone(mbpp):
    bundles = [
        {"program": task.reference, "tests": [test.input for test in task.visible + task.hidden]}
        for seed in range(3)
        for bundle in (1, 2, 5)
        for task in load("mbpp-bundle", seed=seed, bundle=bundle)
    ]
    assert sum(text.startswith("root = Node(1)") for b in bundles for text in b["tests"]) >= 3 * 3 * 2 * 2
    runner = """
        import json, sys
        for bundle in json.load(sys.stdin):
            for test in bundle["tests"]:
                space = {"__name__": "program"}
                exec(bundle["program"], space)
                exec(test, space)
        print("all right")
    """
    done = subprocess.run(
        [
            "sh",
            "-c",
            'ulimit -v 2000000 -t 60; exec "$0" -I -W ignore -c "$1"',
            sys.executable,
            textwrap.dedent(runner),
        ],
        input=json.dumps(bundles),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "all right\n", done.stderr


def test_classes_and_set_up_that_tests_need_are_told(mbpp):
    singles = {task.title.removeprefix("MBPP "): task for task in load("mbpp-bundle", bundle=1)}
    assert singles["601"].functions == ("max_chain_length",)
    assert "The tests also use the class Pair: define it as well." in singles["601"].statement
    assert "use the class Node" in singles["927"].statement
    assert "Run before each of its tests:\nroot = Node(1)\nroot.left = Node(2)" in singles["927"].statement
    assert singles["927"].setup == "" and singles["927"].visible[0].input.startswith("root = Node(1) \r\n")
    assert "Run before" not in singles["601"].statement


def test_bundles_of_other_sizes_and_what_is_left_over(mbpp):
    for bundle, number, rest in ((1, 41, 0), (2, 20, 1), (5, 8, 1)):
        stream = load("mbpp-bundle", bundle=bundle, keep_overlap=True)
        sizes = [len(task.functions) for task in stream]
        assert sizes == [bundle] * number
        assert ("left over" in " ".join(stream.about.notes)) == bool(rest)
        assert stream.about.licence == "CC BY 4.0"
    with pytest.raises(TaskError, match=r"--bundle 12: .* the most is \d+"):
        next(load("mbpp-bundle", bundle=12))


def test_an_assert_that_is_shown_is_not_hidden_as_well(mbpp):
    stream = load("mbpp-bundle", bundle=1)
    singles = {task.title: task for task in stream}
    assert len(singles) == stream.about.tasks == 40 and "MBPP 37" not in singles  # its three asserts are one
    assert stream.about.left_out == {"bundles without a hidden test": 1}
    assert len(singles["MBPP 862"].hidden) == 1 and stream.about.overlap == {"tests": 1, "tasks": 1}


def test_functions_that_cannot_be_used_are_counted(tmp_path, monkeypatch):
    good = MBPP_ROWS[0]
    rows = [
        good,
        good | {"task_id": 2001, "test_list": good["test_list"][:1]},
        good | {"task_id": 2002, "code": "def f(:"},
        good | {"task_id": 2003, "code": "def something_else(x):\n    return x"},
    ]
    path = tmp_path / "train-00000-of-00001.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    monkeypatch.setattr("tasksets.mbpp.fetch", lambda *_: [path])
    stream = load("mbpp-bundle", bundle=1)
    assert len(list(stream)) == 1
    assert stream.about.left_out == {
        "functions with fewer than two asserts": 1,
        "functions that do not parse": 1,
        "functions whose name is not plain": 1,
    }


# ── your own file ────────────────────────────────────────────────────────────────────────────────────────────
def test_every_field_of_a_row_and_both_forms_of_a_test(tmp_path):
    row = own_row(
        id=17,
        kind="assert",
        title="T",
        visible=["assert f(1) == 2", 'x = [1]\nassert f(len(x)) == 2, "msg"'],
        hidden=[{"input": "assert f(2) == 3", "output": None}],
        spare=["assert f(3) == 4"],
        setup="import re\n",
        tags={"level": "easy"},
        functions=["f"],
        reference="def f(x): return x + 1",
        timeout=2,
        prelude="class Node: pass",
    )
    path = write_rows(tmp_path / "t.jsonl", row)
    task = next(load(path, spare=True))
    assert task == Task(
        id="17",
        title="T",
        statement="Add two numbers.",
        kind="assert",
        visible=(Test("assert f(1) == 2"), Test('x = [1]\nassert f(len(x)) == 2, "msg"')),
        hidden=(Test("assert f(2) == 3", source="private"),),
        spare=(Test("assert f(3) == 4", source="generated"),),
        setup="import re\n",
        tags={"level": "easy"},
        functions=("f",),
        reference="def f(x): return x + 1",
        references=("def f(x): return x + 1",),
        timeout=2.0,
        prelude="class Node: pass",
    )
    assert next(load(path)).spare == ()
    plain = next(load(write_rows(tmp_path / "u.jsonl", own_row(hidden=[{"input": "4 5\n", "output": "9\n"}]))))
    assert plain.title == "t1" and plain.hidden == (Test("4 5\n", "9\n", "private"),)


def test_parquet_rows_of_your_own(tmp_path):
    rows = [own_row(id=f"r{i}", tags={"a": "x"} if i else {"b": "y"}, timeout=None) for i in range(3)]
    rows[1]["visible"] = rows[1]["hidden"]  # that is: every hidden test is shown
    for side in ("visible", "hidden"):
        for row in rows:
            row[side] = [{"input": a, "output": b} for a, b in row[side]]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    stream = load(str(tmp_path / "t.parquet"))
    kept = {task.id: task for task in stream}
    assert sorted(kept) == ["r0", "r2"] and kept["r0"].tags == {"b": "y"} and kept["r2"].tags == {"a": "x"}
    assert stream.about.left_out == {"whose every hidden test is also visible": 1}
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")
    with pytest.raises(TaskError, match=r"cannot read .*bad\.parquet"):
        next(load(str(tmp_path / "bad.parquet")))
    pq.write_table(pa.Table.from_pylist([own_row(), own_row(id="t2", kind="sql")]), tmp_path / "k.parquet")
    with pytest.raises(TaskError, match=r"k\.parquet, row 2: kind: "):
        next(load(str(tmp_path / "k.parquet")))


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"id": None}, "id", "is missing"),
        ({"id": ""}, "id", "is empty"),
        ({"id": "a\nb"}, "id", "printable"),
        ({"id": True}, "id", "must be text"),
        ({"id": 1.5}, "id", "must be text"),
        ({"id": "t1"}, "id", "is also line 1"),
        ({"statement": " "}, "statement", "is empty"),
        ({"statement": ["x"]}, "statement", "must be text"),
        ({"kind": None}, "kind", "is missing"),
        ({"kind": "stdin"}, "kind", 'must be "stdio" or "assert"'),
        ({"kind": "sql"}, "kind", 'must be "stdio" or "assert"'),
        ({"visible": []}, "visible", "holds no test"),
        ({"hidden": []}, "hidden", "holds no test"),
        ({"hidden": None}, "hidden", "is missing"),
        ({"hidden": "1 2"}, "hidden", "must be a list of tests"),
        ({"hidden": [["1", "2"], ["1"]]}, "hidden", "test 2: must be [input, output]"),
        ({"hidden": [["1", 2]]}, "hidden", "test 1: must be [input, output]"),
        ({"hidden": [{"input": "1"}]}, "hidden", "test 1: must be [input, output]"),
        ({"hidden": [{"input": "1", "output": "2", "more": 3}]}, "hidden", "test 1"),
        ({"hidden": ["assert f(1) == 2"]}, "hidden", "test 1: must be [input, output]"),
        ({"kind": "assert"}, "visible", 'must be a text like "assert f(2) == 4"'),
        ({"kind": "assert", "visible": ["assert f("]}, "visible", "test 1: is not Python"),
        ({"kind": "assert", "visible": ["f(1)"]}, "visible", "test 1: must end with its one assert"),
        ({"kind": "assert", "visible": ["assert a\nb"]}, "visible", "test 1: must end with its one assert"),
        ({"kind": "assert", "visible": ["assert a\nassert b"]}, "visible", "test 1: must end with its one assert"),
        ({"kind": "assert", "visible": [""]}, "visible", "test 1: must end with its one assert"),
        ({"functions": ["f"]}, "functions", 'kind "assert" alone'),
        ({"setup": "x = 1"}, "setup", 'kind "assert" alone'),
        ({"kind": "assert", "setup": "x ="}, "setup", "is not Python"),
        ({"prelude": "x ="}, "prelude", "is not Python"),
        ({"prelude": 3}, "prelude", "must be text"),
        (
            {"kind": "assert", "visible": ["assert ok(f(1), 2)"], "prelude": "def ok(a, b): return a == b"},
            "visible",
            "put it into `setup`",
        ),
        (
            {"kind": "assert", "visible": ["s = Stack()\ns.push(1)\nassert s == [1]"]},
            "visible",
            "test 1: 's == [1]' would hand",
        ),
        (
            {"kind": "assert", "visible": ["async def g(): return await f(1)\nassert g() == 2"]},
            "visible",
            "test 1: 'g()' is a coroutine",
        ),
        ({"kind": "assert", "functions": "f"}, "functions", "must be a list of function names"),
        ({"kind": "assert", "functions": ["f()"]}, "functions", "must be a list of function names"),
        ({"tags": ["a"]}, "tags", "must be an object"),
        ({"tags": {"a": 1}}, "tags", "must be an object"),
        ({"timeout": 0}, "timeout", "CPU seconds, 0.01 or more"),
        ({"timeout": 1e-9}, "timeout", "CPU seconds, 0.01 or more"),
        ({"timeout": True}, "timeout", "CPU seconds, 0.01 or more"),
        ({"timeout": 1e20}, "timeout", "a day at most"),
        ({"timeout": "6"}, "timeout", "CPU seconds, 0.01 or more"),
        ({"timeout": float("nan")}, "timeout", "CPU seconds, 0.01 or more"),
        ({"timeout": float("inf")}, "timeout", "CPU seconds, 0.01 or more"),
        ({"spare": [1]}, "spare", "test 1"),
        ({"hiden": []}, "hiden", "did you mean hidden?"),
        ({"test_list": []}, "test_list", "no such field; there are id, statement"),
    ],
)
def test_a_bad_row_is_an_error_that_names_line_and_field(tmp_path, changes, field, says):
    path = write_rows(tmp_path / "t.jsonl", own_row(), own_row(id="t2") | changes)
    with pytest.raises(TaskError) as error:
        list(load(path, spare=True))
    said = str(error.value)
    assert said.startswith(f"{path}, line 2: {field}: ") and says in said and "\n" not in said and len(said) < 300


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "not JSON in UTF-8"),
        (b"\xff\xfe{}", "not JSON in UTF-8"),
        (b'["a"]', 'a row is an object with the fields id, statement, kind, visible, hidden, not ["a"]'),
        (b"null", "a row is an object"),
        (b"[" * 100_000, "not JSON in UTF-8"),
        (b'{"id": "x", "hidden": [], "hidden": []}', "'hidden' is there twice"),
    ],
)
def test_a_line_that_is_no_row_is_an_error_that_names_it(tmp_path, line, says):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(own_row()).encode() + b"\r\n\n" + line + b"\n")
    with pytest.raises(TaskError) as error:
        next(load(str(path)))
    assert "line 3: " in str(error.value) and says in str(error.value)


def test_an_empty_file_is_an_error(tmp_path):
    (tmp_path / "t.jsonl").write_text("\n")
    with pytest.raises(TaskError, match="has no task that can be used: it is empty"):
        next(load(str(tmp_path / "t.jsonl")))


def test_lines_end_at_newlines_alone_and_odd_characters_survive(tmp_path):
    odd = "a\u2028b\u0085c\x0bd\x00e\ud800f\U0001f600"
    row = own_row(statement=odd, visible=[[odd, odd + "v"]], hidden=[[odd + "h", odd]])
    path = tmp_path / "t.jsonl"
    escaped = json.dumps(row, ensure_ascii=False).replace("\ud800", "\\ud800")
    path.write_text(escaped + "\n" + json.dumps(own_row(id="t2")) + "\n", encoding="utf-8")
    one = next(task for task in load(str(path)) if task.id == "t1")
    assert one.statement == odd and one.visible == (Test(odd, odd + "v"),)
    assert one.digest == next(task for task in load(str(path), seed=9) if task.id == "t1").digest
    assert from_card(json.loads(json.dumps(card(one)))).statement == odd


@pytest.mark.parametrize(
    ("wrong", "more"), [(2, ""), (10, ""), (11, "and 1 more wrong row"), (25, "and 15 more wrong rows")]
)
def test_all_wrong_rows_of_a_file_are_named_in_one_go(tmp_path, wrong, more):
    kinds = ["not json", '{"id": 1}', "12", json.dumps(own_row(id="right0")), json.dumps(own_row(hiden=[]))]
    lines = [json.dumps(own_row(id=f"right{k}")) for k in range(30)]
    where = [2 + k for k in range(wrong)]
    for k, number in enumerate(where):
        lines.insert(number - 1, kinds[k % len(kinds)])
    path = tmp_path / "own.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(TaskError) as why:
        list(load(str(path)))
    said = str(why.value).splitlines()
    assert [line.split(": ")[0] for line in said[:10]] == [f"{path}, line {number}" for number in where[:10]]
    assert said[10:] == ([more] if more else [])


def test_the_row_is_documented_field_by_field():
    lines = inspect.cleandoc(own.own.__doc__ or "").splitlines()
    documented = {line.split()[0] for line in lines if line[:1].strip()}
    assert set(own.FIELDS) <= documented


@pytest.mark.parametrize(
    ("kind", "visible", "hidden"),
    [("assert", ["assert f(1)==1"], ["assert f(1) == 1", "assert f(2) == 2"]),
     ("stdio", [["1\n", "2\n"]], [["1", "2"], ["5\n", "10\n"]])],
)  # fmt: skip
def test_a_hidden_test_that_is_visible_in_another_spelling_is_dropped(tmp_path, kind, visible, hidden):
    row = {"id": "a", "statement": "s", "kind": kind, "visible": visible, "hidden": hidden}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n")
    stream = tasks.load(str(tmp_path / "own.jsonl"))
    (task,) = stream
    assert len(task.hidden) == 1 and stream.about.overlap == {"tests": 1, "tasks": 1}


def test_an_assert_that_asks_nothing_of_the_program_is_a_wrong_row(tmp_path):
    row = {"id": "a", "statement": "s", "kind": "assert", "visible": ["assert f(1) == 1"], "hidden": ["assert True"]}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(tasks.TaskError, match=r"hidden.*asks nothing of the program"):
        list(tasks.load(str(tmp_path / "own.jsonl")))


# ── splits ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_splits_by_name_are_what_is_read_and_downloaded(tmp_path):
    files = {}
    for split, numbers in {"test": [1], "valid": [2, 3], "train": range(4, 40)}.items():
        parts = {"00000-of-00002": numbers[::2], "00001-of-00002": numbers[1::2]} if split == "train" else {
            "00000-of-00001": numbers}  # fmt: skip
        for part, some in parts.items():
            files[f"data/{split}-{part}.parquet"] = path = tmp_path / f"cc-{split}-{part}.parquet"
            pq.write_table(pa.Table.from_pylist([problem(k) for k in some], CONTEST), path)
    code = "import sys, json, tasks\n" + (
        "names = sys.argv[2].split(',') if sys.argv[2] else None\n"
        "s = tasks.load(sys.argv[1], int(sys.argv[3]) or None, splits=names)\n"
        "try: print(json.dumps([[t.id, t.tags, t.title] for t in s]))\nexcept tasks.TaskError as why: print(why)"
    )
    repos = {
        "deepmind/code_contests": hub.Repo(CODE_CONTESTS_REVISION, files),
        MBPP: hub.Repo(MBPP_REVISION, write_mbpp(tmp_path)),
    }
    with hub.serve(repos) as server:

        def ask_for(source: str, splits: str, limit: int = 0) -> Any:
            env = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "home")}
            said = run_python(code, source, splits, str(limit), **env).stdout
            return json.loads(said) if said.startswith("[") else said

        assert len(ask_for("code_contests", "")) == 3
        assert not any("train" in asked for asked in server.requests if asked.startswith("GET") and "resolve" in asked)
        train = ask_for("code_contests", "train")
        assert len(train) == 36 and all(
            tags["split"] == "train" and name.startswith("cc-train-") for name, tags, _ in train
        )
        assert ask_for("code_contests", "train", 5) == train[:5]  # the seeded order, of fewer put down
        assert len(ask_for("code_contests", "train,valid")) == 38
        assert "there are train, valid, test" in ask_for("code_contests", "dev")
        mine = ask_for("mbpp-bundle", "train")
        assert mine and all(name.startswith("mbpp-train-0-") for name, *_ in mine)
        assert "--splits is for data sets on a hub" in ask_for("toy", "train")
