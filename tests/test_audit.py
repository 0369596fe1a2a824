"""The audit: which tasks can be passed, and what is told of those that cannot. Each task here was made of one kind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import audit
from figures.audited import (
    CASE,
    CONTRADICTION,
    CRASH,
    DISPUTED,
    FLOATS,
    ORDER,
    PASSABLE,
    SEVERAL,
    TIME,
    UNKNOWN,
    WRONG,
    Contradiction,
    Failure,
    Ran,
    audits_of,
    contradictions,
    how,
    how_value,
    judge,
    row_of,
    same_answer,
    uncalled,
)
from tasks import load
from tasksets.task import Task, Test
from telling.audited import text

ROOT = Path(__file__).parent.parent
ANY = "Print the two numbers. If there are several answers, print any of them."
PLAIN = "Print the number of ways to do it, modulo 7."
MADE = "Paint the edges such that no two of a colour meet."


@pytest.mark.parametrize(
    ("got", "expected", "statement", "reason"),
    [
        ("Yes\nno", "YES\nNO", PLAIN, CASE),
        ("2.0000001", "2", PLAIN, FLOATS),
        ("0.3333", "0.33329", PLAIN, FLOATS),
        ("1.5 Yes", "1.50000000001 YES", PLAIN, CASE),
        ("0.3333", "0.5", PLAIN, WRONG),
        ("100001", "100000", PLAIN, WRONG),  # of whole numbers none is near another
        ("3\n1\n2", "1\n2\n3", PLAIN, ORDER),
        ("2 1", "1 2", "Print the divisors in any order.", ORDER),
        ("2 1", "1 2", ANY, SEVERAL),
        ("0\n1", "1\n0", MADE, SEVERAL),
        ("4 5", "3 6", ANY, SEVERAL),
        ("1 2 1", "2 1 2", MADE, SEVERAL),
        ("7", "6", PLAIN, WRONG),
        ("7", "6", MADE, WRONG),  # one number is no painting
        ("", "6", PLAIN, WRONG),
        ("4 5", "3 6", PLAIN, WRONG),
        ("1", "0", "Correct if the absolute error is under 1.", WRONG),
    ],
)
def test_why_an_output_is_not_the_expected_one(got, expected, statement, reason):
    assert how(got, expected, statement)[0] == reason


@pytest.mark.parametrize(
    "says",
    [
        "Print any of them.",
        "If there are multiple solutions, print any.",
        "You may output any valid sequence.",
        "If there is more than one answer, print any one of these.",
        "You can output any suitable sequence of operations.",
        "you are allowed to print any of them",
        "If there are many possible answers, choose one.",
        "In case there are several such paths, print one.",
        "Print an arbitrary one.",
        "Your solution will be considered correct if your tree produces the same pairs.",
    ],
)
def test_a_statement_that_leaves_a_choice(says):
    assert how("1 2", "3 4", says)[0] == SEVERAL


@pytest.mark.parametrize(
    "says",
    [
        "For any number of edges, print how many there are.",
        "In how many ways can it be done?",
        "It does not hold any water.",
        "The answer is considered correct if its absolute or relative error is small.",
        "There are several cities. Print the length of the shortest way.",
    ],
)
def test_a_statement_that_leaves_none(says):
    assert how("7", "6", says)[0] == WRONG


@pytest.mark.parametrize(
    ("got", "expected", "reason"),
    [
        ("'Yes'", "'yes'", CASE),
        ("[1.0000000001, 'a']", "[1, 'a']", FLOATS),
        ("[2, 1]", "[1, 2]", ORDER),
        ("(1, 2)", "[2, 1]", ORDER),
        ("True", "1.5", WRONG),
        ("3", "4", WRONG),
        ("<object>", "4", WRONG),
    ],
)
def test_why_a_value_is_not_the_expected_one(got, expected, reason):
    assert how_value(got, expected)[0] == reason


def stdio(**changes: Any) -> Task:
    row = {"id": "t", "title": "t", "statement": PLAIN, "kind": "stdio", "visible": (Test("1\n", "2\n"),),
           "hidden": (Test("2\n", "3\n"),)} | changes  # fmt: skip
    return Task(**row)


def failed(test: str, reason: str = WRONG, digest: str = "a", outcome: str = "wrong_answer") -> Failure:
    return Failure(test, outcome, reason, "why", digest=digest)


def test_one_reference_that_passes_is_enough_and_wrong_programs_that_pass_are_counted():
    found = judge(stdio(), [Ran("PW", [failed("hidden 1")]), Ran("PP")], [Ran("PP"), Ran("W."), Ran("PP")])
    assert (found.verdict, found.reason, found.passed, found.tried) == (PASSABLE, "", 1, 2)
    assert (found.false_accepts, found.incorrect) == (2, 3)
    assert judge(stdio(), [], []).verdict == UNKNOWN
    assert judge(stdio(), [], [], against=[Contradiction("a and b", CONTRADICTION)]).reason == CONTRADICTION
    assert judge(stdio(), [Ran("PP")], [], against=[Contradiction("a and b", CONTRADICTION)]).notes == ("a and b",)


def test_the_reason_is_that_of_the_best_reference_and_the_hardest_to_forgive():
    mixed = Ran("WWP", [failed("visible 1", CASE), failed("visible 2", SEVERAL)])
    found = judge(stdio(), [mixed, Ran("RRR", [failed("visible 1", CRASH, outcome="runtime_error")])], [])
    assert (found.verdict, found.reason) == (DISPUTED, SEVERAL)
    slow = Ran("PTT..", [failed("visible 2", TIME, outcome="timeout")])
    assert judge(stdio(), [slow], []).reason == TIME
    assert judge(stdio(), [Ran("PPPT", [failed("hidden 1", TIME, outcome="timeout")])], []).reason == TIME


def test_references_that_differ_show_several_answers_and_those_that_agree_a_wrong_test():
    one, same, other = (Ran("WP", [failed("visible 1", WRONG, digest)]) for digest in "aab")
    assert judge(stdio(), [one, same], []).reason == WRONG
    assert "2 references agree" in judge(stdio(), [one, same], []).why
    assert judge(stdio(), [one, other], []).reason == SEVERAL


def test_an_audit_comes_back_from_its_file_as_it_was():
    found = judge(stdio(), [Ran("WP", [failed("visible 1")])], [Ran("PP")], notes=["a note"])
    assert audits_of({"by_task": json.loads(json.dumps({"t": row_of(found)}))}) == [found]


def test_tests_that_contradict_each_other():
    def pairs(*tests: tuple[str, str]) -> list[tuple[str, Test]]:
        return [(f"visible {k}", Test(*test)) for k, test in enumerate(tests, 1)]

    said = "visible 1 and visible 3 ask the same and expect different answers"
    tests = pairs(("1\n", "2"), ("2\n", "3"), (" 1", "4"))
    assert contradictions(tests, "stdio") == [(said, CONTRADICTION)]
    assert contradictions(tests, "stdio", ANY) == [(said, SEVERAL)]  # two answers, and the statement takes any
    assert not contradictions(pairs(("1\n", "2"), ("1", "2\n"), ("1", "2.0")), "stdio")

    def asserts(*texts: str) -> list[Contradiction]:
        return contradictions(pairs(*((text, "") for text in texts)), "assert")

    assert asserts("assert f(1) == 2", "assert  f( 1 )==3")
    assert asserts("assert f(1) == [2]", "assert [3] == f(1)")
    assert not asserts("assert f(1) == 2", "assert f(1) == 2.0", "assert f(2) == 3", "assert f(1) != 3", "assert f(1)")
    assert not asserts("x = [1]\nassert f(x) == 2", "x = [2]\nassert f(x) == 3")  # part of the question
    assert not asserts("assert f(1) == g(1)", "assert f(1) == g(2)")


def test_functions_that_no_assert_calls_and_tests_that_all_expect_the_same():
    task = stdio(kind="assert", visible=(Test("assert f(1) == 2"),), hidden=(Test("assert h.g(2) == 2"),),
                 functions=("f", "g", "h"))  # fmt: skip
    assert uncalled(task) == ["g"]  # an attribute of that name is not the function
    assert same_answer(stdio(hidden=(Test("5", "2"),))) and not same_answer(stdio())
    assert same_answer(stdio(kind="assert", visible=(Test("assert f(1) == 2"),), hidden=(Test("assert f(3) == 2"),)))


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def row(name: str, kind: str = "stdio", **changes: Any) -> dict[str, Any]:
    tests = {"stdio": ([["1\n", "2\n"]], [["5\n", "10\n"]]), "assert": (["assert f(1) == 2"], ["assert f(2) == 3"])}
    visible, hidden = tests[kind]
    more = {"functions": ["f"]} if kind == "assert" else {}
    return {"id": name, "statement": PLAIN, "kind": kind, "visible": visible, "hidden": hidden} | more | changes


DOUBLE, PLUS = "print(2 * int(input()))", "def f(x):\n    return x + 1\n"
ROWS = {  # name -> (row, verdict, reason, what is noted)
    "good": (row("good", reference=DOUBLE), PASSABLE, "", ""),
    "second": (row("second", reference=["1 / 0", DOUBLE]), PASSABLE, "", ""),
    "none": (row("none"), UNKNOWN, "", ""),
    "wrong-reference": (row("wrong-reference", reference="print(3 * int(input()))"), DISPUTED, WRONG, ""),
    "set-up": (row("set-up", "assert", setup="import no_such_module"), DISPUTED, "set-up", ""),
    "set-up-name": (row("set-up-name", "assert", setup="x = g(1)", reference=PLUS), DISPUTED, "set-up", ""),
    "set-up-waits": (row("set-up-waits", "assert", setup="x = f(1)", reference=PLUS), PASSABLE, "", ""),
    "uncalled": (row("uncalled", "assert", functions=["f", "g"], reference=PLUS + "def g(): ..."), PASSABLE, "",
                 "no assert calls g"),
    "any-program": (row("any-program", "assert", visible=["assert f(1) or True"], reference=PLUS), PASSABLE, "",
                    "visible 1 is passed by any program"),
    "contradiction": (row("contradiction", hidden=[["1\n", "3\n"], ["5\n", "10\n"]]), DISPUTED, CONTRADICTION, ""),
    "also-visible": (row("also-visible", hidden=[["1\n", "3\n"], ["5\n", "10\n"]], reference=DOUBLE), PASSABLE, "",
                     "visible 1 and hidden 1 ask the same and expect different answers"),
    "no-output": (row("no-output", visible=[["1\n", ""]], hidden=[["2\n", ""]], reference="pass"), PASSABLE, "",
                  "visible 1 expects no output"),
    "case": (row("case", visible=[["1\n", "YES\n"]], reference="print('yes' if input() == '1' else 10)"), DISPUTED,
             CASE, ""),
    "time": (row("time", reference="while True: pass", timeout=0.05), DISPUTED, TIME, ""),
    "memory": (row("memory", reference="x = bytearray(4 << 30)"), DISPUTED, "memory", ""),
    "crash": (row("crash", reference="1 / 0"), DISPUTED, CRASH, ""),
}  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return str(path)


@pytest.mark.slow
def test_own_rows_of_every_kind_are_told_with_their_line(tmp_path, capsys):
    path = write(tmp_path / "own.jsonl", [one for one, *_ in ROWS.values()])
    argv = ["--tasks", path, "--out", str(tmp_path / "out"), "--workers", "2"]
    assert audit.main(argv) == 0
    said, err = capsys.readouterr()
    assert "audit.json" in err and "checks.jsonl" in err and "Left out" not in said
    made = json.loads((tmp_path / "out" / "audit.json").read_text())
    digests = {task.id: task.digest for task in load(path)}
    assert list(made["by_task"]) == list(ROWS)  # in the order of the file
    for line, (name, (_, verdict, reason, noted)) in enumerate(ROWS.items(), 1):
        one = made["by_task"][name]
        assert (one["verdict"], one["reason"]) == (verdict, reason), (name, one)
        assert one["where"] == f"line {line}" and one["digest"] == digests[name]
        assert noted in "; ".join(one["notes"]) and (noted or not one["notes"]), one
        if verdict == DISPUTED or noted:
            assert f"line {line}, {name}:" in said
    assert made["disputed"] == sum(verdict == DISPUTED for _, verdict, *_ in ROWS.values())
    checks = (tmp_path / "out" / "checks.jsonl").read_bytes()
    assert audit.main(argv) == 0 and capsys.readouterr().out == said
    assert (tmp_path / "out" / "checks.jsonl").read_bytes() == checks  # nothing was run again
    assert audit.main([*argv, "--json"]) == 0 and json.loads(capsys.readouterr().out) == made
    assert max(map(len, text(made).splitlines())) <= 80
    some = text({**made, "left_out": {"whose every hidden test is also visible": 1, "without a test": 12}})
    assert "Left out: 1 whose every hidden test is also visible; 12 without a test." in " ".join(some.split())


@pytest.mark.slow
def test_every_toy_task_can_be_passed_and_no_slip_of_it_is_accepted(tmp_path, capsys):
    assert audit.main(["--tasks", "toy", "--out", str(tmp_path / "out")]) == 0
    made = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert (made["passable"], made["incorrect_tried"], made["false_accepts"]) == (3, 7, 0)


@pytest.mark.slow
def test_a_killed_audit_goes_on_where_it_was(tmp_path):
    rows = [row(f"t{k}", reference=f"x = {k}\nfor _ in range(10**6): pass\n{DOUBLE}") for k in range(40)]
    path = write(tmp_path / "own.jsonl", rows)
    command = [
        sys.executable,
        str(ROOT / "audit.py"),
        "--tasks",
        path,
        "--out",
        str(tmp_path / "out"),
        "--workers",
        "1",
    ]
    checks = tmp_path / "out" / "checks.jsonl"
    for end in (signal.SIGKILL, signal.SIGINT):
        before = len(checks.read_bytes().splitlines()) if checks.exists() else 0
        process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
        while process.poll() is None and (not checks.exists() or len(checks.read_bytes().splitlines()) < before + 5):
            time.sleep(0.01)
        os.killpg(process.pid, end)
        _, err = process.communicate(timeout=60)
        assert b"Traceback" not in err and process.returncode == (130 if end == signal.SIGINT else -end), err
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    names = [(one["task_id"], one["program"]) for one in map(json.loads, checks.read_text().splitlines())]
    assert len(names) == len(set(names)) == 40
