"""calibrate.py: the real command on small planted runs, a mock judge, interruption, and what the records can say."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tqdm

import calibrate
from commands import regrade
from commands.sampling import Watch
from grading import grade
from records import Log
from swarm import Attempt
from tasks import load
from tasksets.task import Task, Test, card
from telling import words
from tests.support.lay_out import attempt, base, config
from tests.support.mock_endpoint import MockEndpoint, Request, serving

ROOT = Path(calibrate.__file__).parent
PLOT = calibrate.plot
Go = Any  # the command in this process: (exit code, stdout, stderr)


def row(name: str, spare: int = 60, private: int = 5) -> dict[str, Any]:
    """Double a number: visible 900 and up, private tests from 500, generated ones 0, 1, 2, ..."""

    def test(n: int) -> list[str]:
        return [f"{n}\n", f"{2 * n}\n"]

    return {
        "id": name,
        "statement": f"Read a number and print its double. ({name})",
        "kind": "stdio",
        "visible": [test(900 + i) for i in range(4)],
        "hidden": [test(500 + i) for i in range(private)],
        "spare": [test(i) for i in range(spare)],
    }


def right_below(limit: int, private: bool = True) -> str:
    """A program that is right on the generated tests under a limit, and on the private ones if so wished."""
    return f"n = int(input())\nprint(2 * n if n < {limit} or {private} and 500 <= n < 900 else 'no')\n"


def lay(tmp_path: Path, rows: list[dict[str, Any]], programs: dict[str, list[Any]], **changes: Any) -> Path:
    """A finished run folder. programs: task -> codes of `resample`, or ready attempts; every base group fails."""
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))
    out = tmp_path / "out"
    tasks = list(load(str(file)))
    with Log(out) as log:
        log.write_json("config.json", config(tasks=str(file), revision=None, **changes))
        for task in tasks:
            log.add_card(card(task))
            for a in base(task.id):
                log.add(replace(a, code=None, task_sha=task.digest))
            for i, one in enumerate(programs.get(task.id, [])):
                if isinstance(one, Attempt):
                    log.add(replace(one, task_sha=task.digest))
                else:
                    log.add(attempt(task.id, "resample", 0, i // 8, i % 8, code=one, task_sha=task.digest))
    return out


@pytest.fixture
def go(tmp_path, monkeypatch, capsys) -> Go:
    monkeypatch.setattr(calibrate, "plot", lambda *what: {})  # drawing takes longer than all the rest

    def command(*argv: str, url: str = "", out: str = "out") -> tuple[int, str, str]:
        monkeypatch.setenv("OPENAI_BASE_URL", url or "http://127.0.0.1:9/v1")
        full = ["calibrate.py", "--out", str(tmp_path / out), "--workers", "1", *argv]
        monkeypatch.setattr(sys, "argv", full)
        capsys.readouterr()
        try:
            code = calibrate.main(full[1:])
        except SystemExit as end:
            code = int(str(end.code))
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def made(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "out" / "calibration.json").read_text())


def checks(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "out" / "checks.jsonl").read_text().splitlines()]


# ── the tests that are asked ─────────────────────────────────────────────────────────────────────────────────────────


def a_task(hidden: list[Test], spare: list[Test], visible: list[Test] | None = None) -> Task:
    return Task("t", "t", "?", "stdio", tuple(visible or [Test("v", "v")]), tuple(hidden), tuple(spare))


def test_no_test_of_the_fitness_is_in_the_target_and_none_was_shown() -> None:
    private = [Test(f"p{i}", "x", "private") for i in range(7)]
    generated = [Test(f"g{i}", "x", "generated") for i in range(70)]
    again = Test("g3", "x", "private")  # the same input twice, under another source
    tests = calibrate.split(
        a_task([*private, again, *generated[:32]], [*generated[32:], Test("v", "v", "generated")], [Test("v", "v")])
    )
    assert len(tests.fitness) == 40 and {test.source for test in tests.fitness} == {"generated"}
    inputs = [test.input for test in (*tests.fitness, *tests.target)]
    assert len(set(inputs)) == len(inputs) and "v" not in inputs
    assert [test.input for test in tests.target] == [
        *(f"p{i}" for i in range(7)), "g3", *(f"g{i}" for i in range(41, 61))
    ]  # fmt: skip
    assert tests.name("fitness") != tests.name("target")
    fewer = calibrate.split(a_task([*private, *generated[:32]], generated[32:50]))
    assert fewer.name("fitness") != tests.name("fitness") and len(fewer.target) == 7 + 10


@pytest.mark.slow
def test_programs_right_on_the_40_and_wrong_on_the_20_do_not_pass(tmp_path: Path, go: Go) -> None:
    lay(
        tmp_path, [row("t")], {"t": [right_below(40), right_below(59), right_below(60), right_below(30, private=False)]}
    )
    code, out, _ = go("--json")
    fitness = json.loads(out)["fitness"]
    assert code == 0 and (fitness["n"], fitness["passes"]) == (4, 1)
    top, partial = fitness["table"][-1], fitness["table"][4]
    assert (top["bucket"], top["n"], top["passed"]) == ("every test", 3, 1)
    assert (partial["bucket"], partial["n"], partial["passed"]) == ("to 90%", 1, 0)
    letters = {(r["program"], r["tests"].split("/")[1]): r["letters"] for r in checks(tmp_path)}
    assert all(len(said) == 40 for (_, part), said in letters.items() if part == "fitness")
    targets = sorted(said for (_, part), said in letters.items() if part == "target")
    # All-or-nothing: it stops at the first failure.
    assert targets == sorted(["W" + "." * 24, "PPPPPW" + "." * 19, "P" * 24 + "W", "P" * 25])


# ── the population ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_task_with_too_few_tests_is_left_out_and_counted(tmp_path: Path, go: Go) -> None:
    rows = [row("good"), row("few", spare=39), row("bare", spare=42, private=1)]
    lay(tmp_path, rows, {name: [right_below(60)] for name in ("good", "few", "bare")})
    code, out, _ = go()
    assert code == 0 and made(tmp_path)["fitness"]["n"] == 1
    assert made(tmp_path)["left_out"] == {
        "under 40 generated tests for the fitness": 1,
        "under 5 tests for the target": 1,
    }
    assert "left out: 1 task, under 40 generated tests" in out
    go("--min-target-tests", "3", "--min-fitness-tests", "30")
    assert made(tmp_path)["fitness"]["n"] == 3 and made(tmp_path)["left_out"] == {}


def test_the_choice_is_seeded_of_distinct_programs_and_of_all_fail_tasks(tmp_path: Path, go: Go) -> None:
    codes = [f"{right_below(60)}# {i // 2}\n" for i in range(24)]  # each program twice
    out = lay(tmp_path, [row("t"), row("solved")], {"t": codes, "solved": [right_below(1)]})
    with Log(out) as log:
        log.rewrite("attempts.jsonl", [
            {**vars(a), "passed": True} if (a.task_id, a.arm, a.particle) == ("solved", "base", 0) else vars(a)
            for a in log.attempts()
        ])  # fmt: skip
    go("--records", "--per-task", "5")
    assert made(tmp_path)["counts"] == {
        "tasks": 1, "attempts_with_a_program": 24, "distinct_programs": 12, "chosen": 5, "children": 0,
    }  # fmt: skip

    def chosen(**how: Any) -> list[str]:
        a = calibrate.flags().read(["--out", str(out), *(f"--{k.replace('_', '-')}={v}" for k, v in how.items())])
        return [one.program for those in calibrate.choose(calibrate.Folder(out), a).programs.values() for one in those]

    assert chosen(per_task=5) == chosen(per_task=24)[:5] != chosen(per_task=5, seed=1)
    assert len(chosen(population="all")) == 13
    assert chosen(arms="base") == []
    with pytest.raises(calibrate.BadInput, match="may name base, resample"):
        chosen(arms="star")


def test_base_programs_of_all_fail_tasks_do_not_count_since_they_were_chosen_by_failing(tmp_path: Path, go: Go) -> None:
    """All of them pass every visible test, as the eight of resample do, half of which pass: a top bucket of 50%."""
    one = [attempt("t", "resample", 0, 0, i, passed=i < 4, visible="PPPPP", code=f"print({i})") for i in range(8)]
    out = lay(tmp_path, [row("t")], {"t": one})
    with Log(out) as log:
        shown = {"visible_tests": "PPPPP", "visible_passed": 5, "fitness": 1.0, "hidden_tests": "WWWW"}
        log.rewrite("attempts.jsonl", [
            {**vars(a), **shown, "code": f"print({a.particle}, 1)"} if a.arm == "base" else vars(a)
            for a in log.attempts()
        ])  # fmt: skip
    go("--records")
    found = made(tmp_path)
    assert found["counts"]["chosen"] == 8 and found["fitness"]["table"][-1]["rate"] == 0.5
    go("--records", "--population", "all")
    assert made(tmp_path)["counts"]["chosen"] == 16
    assert "no program on all-fail tasks" in go("--records", "--arms", "base")[2]


# ── again, interrupted, without generated tests ──────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_second_call_prints_the_same_and_runs_nothing(tmp_path: Path, go: Go, monkeypatch) -> None:
    monkeypatch.setattr(calibrate, "plot", PLOT)
    lay(tmp_path, [row("t")], {"t": [right_below(40), right_below(60)]})
    first = go()
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("cal*")}
    assert set(before) == {"calibration.json", "calibration.txt", "calibration.svg", "calibration.png"}
    assert before["calibration.txt"].decode() == first[1]
    (tmp_path / "tasks.jsonl").unlink()  # not even the tasks are read
    second = go()
    assert first[0] == second[0] == 0 and first[1] == second[1]
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "out").glob("cal*")}


@pytest.mark.slow
def test_other_rules_or_other_tests_make_it_anew(tmp_path: Path, go: Go, monkeypatch) -> None:
    """Under other rules every program runs again; where only the target grew, what made the fitness stays."""
    lay(tmp_path, [row("t")], {"t": [right_below(40), right_below(60)]})
    go()
    assert len(checks(tmp_path)) == 4
    go()
    assert len(checks(tmp_path)) == 4
    monkeypatch.setattr(grade, "RULES", grade.RULES + 1)
    go()
    rules = [r["rules"] for r in checks(tmp_path)]
    assert len(rules) == 8 and len(set(rules[:4])) == len(set(rules[4:])) == 1 and rules[0] != rules[4]
    monkeypatch.setattr(calibrate, "TARGET_GENERATED", 10)
    assert "10 more generated" in go()[1]
    assert [r["tests"].split("/")[1] for r in checks(tmp_path)[8:]] == ["target", "target"]
    go("--records")
    monkeypatch.setattr(grade, "RULES", grade.RULES + 1)
    before = made(tmp_path)
    go("--records")
    assert made(tmp_path) == before and len(checks(tmp_path)) == 10  # the records know of no grader


def test_a_lost_card_is_written_whole(tmp_path: Path, go: Go) -> None:
    out = lay(tmp_path, [row("t")], {"t": [right_below(60)]})
    cards = (out / "tasks.jsonl").read_bytes()
    (out / "tasks.jsonl").write_bytes(cards[: len(cards) // 2])  # torn, and cut off when the folder is opened
    assert go()[0] == 0
    assert (out / "tasks.jsonl").read_bytes() == cards
    assert go("--per-task", "1")[0] == 0


@pytest.mark.slow
def test_it_continues_where_it_stopped(tmp_path: Path, go: Go) -> None:
    lay(tmp_path, [row("a"), row("b")], {name: [right_below(k) for k in (10, 20, 60)] for name in ("a", "b")})
    go()
    whole, lines = made(tmp_path), (tmp_path / "out" / "checks.jsonl").read_text().splitlines()
    assert len(lines) == 2 * 3 * 2
    (tmp_path / "out" / "checks.jsonl").write_text("\n".join([*lines[:5], lines[5][:40]]))  # killed in mid-line
    (tmp_path / "out" / "calibration.json").unlink()
    assert go()[0] == 0
    assert made(tmp_path) == whole
    again = checks(tmp_path)
    assert len(again) == 12 and [json.dumps(r) for r in again[:5]] == lines[:5]


def test_a_changed_task_is_refused(tmp_path: Path, go: Go) -> None:
    lay(tmp_path, [row("t")], {"t": [right_below(60)]})
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row("t", private=6)) + "\n")
    code, _, err = go()
    assert code == 2 and "task t has changed" in err
    (tmp_path / "tasks.jsonl").unlink()
    code, _, err = go()
    assert code == 2 and "there is no file" in err


def test_where_nothing_is_generated_the_hidden_tests_are_run_for_what_failed_a_visible_one(
    tmp_path: Path, go: Go
) -> None:
    """Fitness is the recorded visible share; a program that fails a visible test may pass every hidden one."""
    rows = [row("t", spare=0)]
    near = attempt("t", "resample", 0, 0, 0, code=right_below(0), visible="PPPPW")  # all private ones right
    far = attempt("t", "resample", 0, 0, 1, code="print(0)\n", visible="PWWWW")
    seen = attempt("t", "resample", 0, 0, 2, code="print(1)\n", visible="PPPPP", hidden="PWWW")
    lay(tmp_path, rows, {"t": [near, far, seen]})
    code, out, _ = go()
    got = made(tmp_path)
    assert code == 0 and got["mode"] == "hidden" and "target: hidden tests" in out
    assert [(r["bucket"], r["n"], r["passed"]) for r in got["fitness"]["table"] if r["n"]] == [
        ("up to a quarter", 1, 0), ("to 90%", 1, 1), ("every test", 1, 0),
    ]  # fmt: skip
    assert sorted(r["letters"] for r in checks(tmp_path)) == ["PPPPP", "W...."]  # `seen` has its result in the records


def test_the_records_alone_say_what_they_can(tmp_path: Path, go: Go) -> None:
    lay(tmp_path, [row("t", spare=0)], {"t": [attempt("t", "resample", passed=True), right_below(0)]})
    (tmp_path / "tasks.jsonl").unlink()
    code, out, _ = go("--records")
    got = made(tmp_path)
    assert code == 0 and got["fitness"]["verdict"] == "not_estimable" and "by definition" in got["fitness"]["why"]
    assert "Is the fitness a hill? not estimable" in " ".join(out.split())
    assert not (tmp_path / "out" / "checks.jsonl").exists()


def test_children_by_the_fitness_of_their_parent(tmp_path: Path, go: Go) -> None:
    links = [("PWWWW", False), ("PWWWW", True), ("PPPWW", True), ("PPPPP", False)]
    attempts: list[Any] = []
    for i, (visible, passes) in enumerate(links):
        attempts.append(attempt("t", "solo", 0, 0, i, visible=visible, hidden="WWWW" if visible == "PPPPP" else ""))
        attempts.append(attempt("t", "solo", 0, 1, i, passed=passes, parent=f"solo/0/0/{i}"))
    attempts.append(attempt("t", "solo", 0, 2, 1, passed=True, parent="solo/0/1/1"))  # its parent passes already
    lay(tmp_path, [row("t")], {"t": attempts}, full_budget=True)
    go("--records")
    table = made(tmp_path)["by_parent"]["table"]
    assert [(r["bucket"], r["n"], r["passed"]) for r in table if r["n"]] == [
        ("up to a quarter", 2, 1), ("to three quarters", 1, 1), ("every test", 1, 0),
    ]  # fmt: skip
    assert made(tmp_path)["counts"]["children"] == 4


def test_every_verdict_is_told_in_the_words_of_the_report(tmp_path: Path, go: Go) -> None:
    parent = attempt("t", "solo", 0, 0, 0, visible="PWWWW")
    child = attempt("t", "solo", 0, 1, 0, visible="PPWWW", parent="solo/0/0/0")
    lay(tmp_path, [row("t")], {"t": [parent, child]})
    said = " ".join(go("--records")[1].split())
    curves = words.hill_curves(made(tmp_path))
    assert set(curves) == {"fitness", "by_parent"}
    assert all(words.hill_line(name, told) in said for name, told in curves.items())


def test_a_pipe_that_nobody_reads_to_its_end_is_no_fault(tmp_path: Path, go: Go, monkeypatch) -> None:
    lay(tmp_path, [row("t")], {"t": [right_below(60)]})
    to_read, to_write = os.pipe()
    os.close(to_read)
    with open(to_write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        code = calibrate.main(["--out", str(tmp_path / "out"), "--records"])
        monkeypatch.undo()
    assert code == 0 and made(tmp_path)["fitness"]["n"] == 1


@pytest.mark.slow
def test_an_empty_bucket_says_so_and_zero_stands_with_its_interval(tmp_path: Path, go: Go) -> None:
    lay(tmp_path, [row("t")], {"t": [right_below(1, False), right_below(2, False)]})
    out = go()[1]
    assert "no program here" in out and "0.000 [0.000, 0.793]" in out  # of one task, however many its programs
    assert max(map(len, out.splitlines())) <= 80


def test_nothing_to_calibrate_is_no_error(tmp_path: Path, go: Go) -> None:
    lay(tmp_path, [row("t")], {})
    code, _, err = go()
    assert code == 0 and "nothing to calibrate" in err
    code, _, err = go(out="none")
    assert code == 2 and "holds no run" in err


@pytest.mark.parametrize(
    "argv, says",
    [
        (["--per-task", "0"], "whole number from 1 up"),
        (["--min-fitness-tests", "41"], "no more than 40 are used"),
        (["--limit", "3"], "give it with --judge"),
        (["--judge", "--stop-after", "usd=1"], "needs --price"),
        (["--populatio", "all"], "unrecognized arguments"),
        (["--arms", "star"], "--arms may name"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path: Path, go: Go, argv: list[str], says: str) -> None:
    lay(tmp_path, [row("t")], {"t": [right_below(1)]})
    code, out, err = go(*argv)
    assert code == 2 and says in err and out == "" and err.count("\n") == 1


# ── what is told of it ───────────────────────────────────────────────────────────────────────────────────────────────


def again(out: Path) -> int:
    return regrade.regrade(out, 1)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["calibrate", "regrade"])
def test_off_a_terminal_saved_programs_are_counted_aloud(
    tmp_path: Path, go: Go, monkeypatch, capsys, command: str
) -> None:
    out = lay(tmp_path, [row("t")], {"t": [right_below(k) for k in (10, 20, 30)]})
    monkeypatch.setattr(Watch, "every", 0.01)
    err = go()[2] if command == "calibrate" else capsys.readouterr().err if not again(out) else ""
    assert re.search(r"^[0-3] of at most 3 programs, [\d,]+/min, (nothing yet|at most [\d,]+ min left)$", err, re.M)
    assert "3 programs done" in err


@pytest.mark.slow
def test_what_stood_on_disk_hurries_no_rate(tmp_path: Path, go: Go) -> None:
    lay(tmp_path, [row("t")], {"t": [right_below(k) for k in (10, 20, 30)]})
    assert "3 programs done" in go()[2]
    lines = (tmp_path / "out" / "checks.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out" / "checks.jsonl").write_text("".join(lines[:-1]))
    (tmp_path / "out" / "calibration.json").unlink()
    assert "1 program done" in go()[2]


@pytest.mark.parametrize("command", ["calibrate", "regrade"])
def test_a_fault_closes_the_bar(tmp_path: Path, go: Go, monkeypatch, command: str) -> None:
    out = lay(tmp_path, [row("t")], {"t": [right_below(60)]})
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row("t", private=6)) + "\n")
    bars: list[Any] = []

    class Bar(tqdm.tqdm):
        def __init__(self, **how: Any) -> None:
            super().__init__(**{**how, "disable": False, "file": io.StringIO()})
            bars.append(self)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    assert (go()[0] if command == "calibrate" else again(out)) == 2
    (bar,) = bars
    assert bar.disable and bar not in Bar._instances  # as tqdm leaves a bar that is closed


# ── the judge ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "reply, said",
    [
        ("85", 0.85),
        ("85%", 0.85),
        ("0.85", 0.85),
        (" **85** ", 0.85),
        ("85 percent.", 0.85),
        ("85/100", 0.85),
        ("I would say 85 out of 100.", 0.85),
        ("Probability: 85", 0.85),
        ("The loop runs 3 times over 10 rows.\n\n85", 0.85),
        ("12%\n\nIt fails for n = 1 and for 3 of 4 rows.", 0.12),
        ("<think>maybe 20, no, 30</think>\n85", 0.85),
        ("0", 0.0),
        ("100", 1.0),
        ("1", 0.01),
        ("1.0", 1.0),
        ("0.5%", 0.005),
        ("99.5", 0.995),
        ("", None),
        ("I cannot tell.", None),
        ("It is likely right.", None),
        ("between 70 and 80", None),
        ("150", None),
        ("-5", None),
        ("1,000", None),
        ("x1 and v2", None),
    ],
)
def test_a_probability_is_read_or_it_is_not_one(reply: str, said: float | None) -> None:
    got = calibrate.probability(reply)
    assert got == (None if said is None else pytest.approx(said))


def auc_by_pairs(score: list[float], passed: list[bool]) -> float:
    """The definition: over all pairs of a pass and a fail, ties one half."""
    pairs = [(a > b) + 0.5 * (a == b) for a, p in zip(score, passed, strict=True) if p
             for b, q in zip(score, passed, strict=True) if not q]  # fmt: skip
    return sum(pairs) / len(pairs)


def answers(mock: MockEndpoint) -> list[Request]:
    """The requests that asked for a judgement."""
    return [request for request in mock.requests if request.method == "POST" and not request.probe]


SAID = {0: "10", 1: "85%", 2: "0.35", 3: "I give it 60.", 4: "", 5: "who knows", 6: "90", 7: "10"}


def judging(request: Request) -> str:
    """What the judge says of program k."""
    return "ready" if request.probe else SAID[int(request.prompt.split("# program ")[1][0])]


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Eight programs of which 1, 3 and 7 pass, on two tasks."""
    programs: dict[str, list[Any]] = {"a": [], "b": []}
    for k in SAID:
        task, passes = "ab"[k % 2], k in (1, 3, 7)
        visible = "PPPPP" if passes else "PPWWW" if k == 6 else "WWWWW"
        one = attempt(task, "resample", 0, 0, k, passed=passes, visible=visible, code=f"# program {k}\n")
        programs[task].append(one)
    return lay(tmp_path, [row("a"), row("b")], programs)


def test_a_mock_judge_gives_its_auc(tmp_path: Path, go: Go, judged: Path) -> None:
    with serving(reply=judging) as mock:
        code, out, _ = go("--judge", url=mock.url)
    assert json.loads((judged / "judge" / "config.json").read_text())["command"] == "calibrate.py --judge"
    got = made(tmp_path)["judge"]
    score, passed = [0.1, 0.85, 0.35, 0.6, 0.9, 0.1], [False, True, False, True, False, True]
    assert code == 0 and (got["asked"], got["n"], got["unparsed"], got["passes"]) == (8, 6, 2, 3)
    assert got["auc"]["pooled"]["auc"] == pytest.approx(auc_by_pairs(score, passed), abs=1e-9)
    assert got["brier"] == pytest.approx(sum((s - p) ** 2 for s, p in zip(score, passed, strict=True)) / 6, abs=1e-9)
    assert got["visible_fitness_auc"]["auc"] == pytest.approx(auc_by_pairs([0, 1, 0, 1, 0.4, 1], passed), abs=1e-9)
    assert [(r["bucket"], r["n"], r["passed"]) for r in got["table"]] == [
        ("0-9", 0, 0), ("10-29", 2, 1), ("30-49", 1, 0), ("50-69", 1, 1), ("70-89", 1, 1), ("90-100", 1, 0),
    ]  # fmt: skip
    assert "2 replies without a number, left out" in out and "Brier score" in out
    rows = [json.loads(line) for line in (judged / "judge.jsonl").read_text().splitlines()]
    assert len(rows) == 8 and sum(r["probability"] is None for r in rows) == 2
    assert {(r["task_id"], r["arm"], r["particle"]): r["probability"] for r in rows}["b", "resample", 3] == 0.6


def test_the_judge_is_blind_to_every_test(tmp_path: Path, go: Go, judged: Path) -> None:
    with serving(reply=judging) as mock:
        go("--judge", url=mock.url)
        asked = answers(mock)
    assert len(asked) == 8 and {request.body["temperature"] for request in asked} == {0.0}
    for request in asked:
        assert "Read a number and print its double." in request.prompt and "# program " in request.prompt
        for part in ("900", "1800", "500", "1000", "visible", "expected"):
            assert part not in request.prompt


@pytest.mark.slow
def test_a_judge_that_is_stopped_asks_nothing_twice(tmp_path: Path, go: Go, judged: Path) -> None:
    with serving(reply=judging) as mock:
        code, out, err = go("--judge", "--stop-after", "calls=3", "--concurrency", "1", url=mock.url)
        assert code == 3 and "to continue: python" in err and "judge: mock-model" in out
        assert go("--judge", url=mock.url)[0] == 0
        asked = [request.prompt for request in answers(mock)]
        assert len(asked) == len(set(asked)) == 8
        before = len(mock.requests)
        assert go("--judge", url=mock.url)[0] == 0
        assert len(mock.requests) == before  # not even a probe
    assert go("--judge")[0] == 0  # and no endpoint at all


def test_a_limit_is_a_seeded_choice_that_grows(tmp_path: Path, go: Go, judged: Path) -> None:
    with serving(reply=judging) as mock:
        go("--judge", "--limit", "3", url=mock.url)
        assert made(tmp_path)["judge"]["asked"] == 3
        go("--judge", "--limit", "5", url=mock.url)
        assert made(tmp_path)["judge"]["asked"] == 5
        assert len(answers(mock)) == 5


def test_another_judge_needs_its_own_answers(tmp_path: Path, go: Go, judged: Path) -> None:
    with serving(reply=judging) as mock:
        go("--judge", "--limit", "3", url=mock.url)
        code, _, err = go("--judge", "--limit", "5", "--temperature", "1", url=mock.url)
        assert code == 2 and "temperature 0.0 -> 1.0" in err and "--fresh" not in err and "judge to ask" in err
        code, _, err = go("--judge", "--limit", "3", "--temperature", "1")  # although nothing would be asked
        assert code == 2 and "temperature 0.0 -> 1.0" in err


def test_fitness_and_judge_stand_side_by_side(tmp_path: Path, go: Go, judged: Path) -> None:
    with serving(reply=judging) as mock:
        go("--judge", url=mock.url)
    go("--records")
    got = made(tmp_path)
    assert {"fitness", "by_parent", "judge"} <= set(got) and got["judge"]["asked"] == 8


@pytest.mark.slow
@pytest.mark.parametrize("how, code", [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_a_command_that_is_stopped_or_killed_goes_on(tmp_path: Path, how: signal.Signals, code: int) -> None:
    slow = "import time\ntime.sleep(0.01)\n"
    out = lay(tmp_path, [row("t")], {"t": [slow + right_below(k) for k in (10, 20, 30, 40, 50, 60)]})
    command = [sys.executable, "calibrate.py", "--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    written = out / "checks.jsonl"
    while process.poll() is None and (not written.exists() or written.read_bytes().count(b"\n") < 3):
        time.sleep(0.05)
    process.send_signal(how)
    said, err = process.communicate(timeout=60)
    assert process.returncode == code and said == "" and not (out / "calibration.json").exists()
    assert code == -9 or ("interrupted" in err and "to continue: python" in err)
    assert "Traceback" not in err
    kept = written.read_text().splitlines()
    assert 3 <= len(kept) < 12
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Is the fitness a hill?" in done.stdout
    lines = written.read_text().splitlines()
    assert lines[: len(kept)] == kept and len(lines) == 12
    assert len({(r["program"], r["tests"]) for r in checks(tmp_path)}) == 12
