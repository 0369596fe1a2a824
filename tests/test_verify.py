"""Rescued programs on tests that decided nothing: what is verified, what is kept apart, and that none runs twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands.verify import verify
from faults import DONE
from figures.verified import Verified, counts, program_of, verified
from measure import measure
from records import Folder, Log
from rows.found import rescued
from tasks import load
from tasksets.source import source_ids, splits_of
from tasksets.task import Task, card
from telling.words import verified_words
from tests.support.lay_out import attempt, base, config, run
from tests.support.mock_endpoint import serving

ROOT = Path(__file__).parent.parent

PAIRS = [(f"{n} {n + 3}\n", f"{n * (n + 3) + 1000}\n") for n in range(12, 40)]  # visible 3, hidden 4, the rest spare
SHOWN, DECIDING = dict(PAIRS[:3]), dict(PAIRS[:7])
RIGHT = "a, b = map(int, input().split())\nprint(a * b + 1000)"
NEAR = "a, b = map(int, input().split())\nprint(a * b + 1000 if a < 30 else 0)"  # right on all that decides
WORDS = {given.strip(): answer.strip() for given, answer in DECIDING.items()}
BY_HEART = [
    f"print({WORDS!r}[input()])",
    f"d = {DECIDING!r}\nimport sys\nprint(d[sys.stdin.read()], end='')",
    f"print(dict(zip({[*WORDS]!r}, {[*WORDS.values()]!r}))[input()])",
    "s = input()\n" + "\n".join(f"if s == {k!r}:\n    print({v})" for k, v in WORDS.items()),
    "s = input()\n" + "".join(f"{'el' * (k > 0)}if s == {q!r}: print({v})\n" for k, (q, v) in enumerate(WORDS.items())),
    "match input():\n" + "".join(f"    case {k!r}:\n        print({v!r})\n" for k, v in WORDS.items()),
    f"import hashlib\nd = { {__import__('hashlib').md5(k.encode()).hexdigest()[:6]: v for k, v in WORDS.items()}!r}\n"
    "print(d[hashlib.md5(input().encode()).hexdigest()[:6]])",
    f"print(bytes.fromhex({'|'.join(WORDS.values()).encode().hex()!r}).decode().split('|')[{[*WORDS]!r}.index(input())])",
    f"a = int(input().split()[0])\nprint({[*WORDS.values()]!r}[a - 12])",
    f"a = int(input().split()[0])\nx = {[int(v) * 3 + 1 for v in WORDS.values()]!r}\nprint((x[a - 12] - 1) // 3)",
    f"a, b = map(int, input().split())\nx = {[int(v) for v in WORDS.values()]}\nprint(x[b - 15] if a < 19 else 0)",
    f"{RIGHT}\nif a > 18 and {[*WORDS.values()]!r}:\n    print(0)",
]


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def row(name: str, **changes: Any) -> dict[str, Any]:
    tests = [list(pair) for pair in PAIRS]
    return {"id": name, "statement": f"{name}: print product and a thousand.", "kind": "stdio", "visible": tests[:3],
            "hidden": tests[3:7], "spare": tests[7:]} | changes  # fmt: skip


def lay_out(out: Path, tasks: str, programs: dict[str, list[str]], **changes: Any) -> None:
    """A finished run in which the control wrote these programs, all of which passed."""
    with Log(out) as log:
        log.write_json("config.json", config(tasks=tasks, revision=None, arms=["resample"], data={"licence": None}))
        for task in load(tasks):
            log.add_card(card(task))
            for one in base(task.id):
                log.add(replace(one, code=None, task_sha=task.digest))
            for k, code in enumerate(programs[task.id]):
                made = attempt(task.id, "resample", 0, k // 8, k % 8, passed=True, code=code, task_sha=task.digest)
                log.add(made)


def told(out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Any]:
    folder = Folder(out)
    results = measure(folder.attempts(), folder.config, folder.cards(), folder.checks())
    passing = [one for one in folder.attempts() if one.passed]
    of = partial(rescued, passing, list(folder.cards()), folder.config, results)
    files = [of(folder.checks(), apart) for apart in (False, True)]
    return *([json.loads(line) for line in file.splitlines()] for file in files), results


@pytest.mark.slow
def test_what_is_known_by_heart_or_fails_a_spare_test_is_kept_apart(tmp_path):
    wrong_spare = [*row("x")["spare"][:4], ["1 1\n", "7\n"], *row("x")["spare"][4:]]
    tasks = write(
        tmp_path / "t.jsonl",
        row("heart"),
        row("honest"),
        row("disputed", spare=wrong_spare, reference=RIGHT),
        row("undisputed", spare=wrong_spare),
        row("none", spare=[]),
    )
    other = RIGHT.replace("1000", "10 ** 3")
    lay_out(tmp_path / "out", tasks, {"heart": BY_HEART, "honest": [RIGHT, other, NEAR], "disputed": [RIGHT],
                                      "undisputed": [RIGHT], "none": [RIGHT, BY_HEART[0]]})  # fmt: skip
    assert verify(tmp_path / "out", workers=2) == DONE
    good, apart, results = told(tmp_path / "out")
    assert [(one["task_id"], one["verified"]) for one in good] == [
        ("disputed", True), ("honest", True), ("honest", True), ("none", False)]  # fmt: skip
    assert not any(one["flags"] for one in good)
    by_task = [one["task_id"] for one in apart]
    assert by_task.count("heart") == len(BY_HEART) and by_task.count("honest") == 1 == by_task.count("none")
    near = next(one for one in apart if one["task_id"] == "honest")
    assert near["failed_test"]["test"] == "spare 12" and near["failed_test"]["got"].strip() == "0"
    assert near["failed_test"]["expected"] == PAIRS[18][1] and not near["verified"]
    assert next(one for one in apart if one["task_id"] == "undisputed")["failed_test"]["test"] == "spare 5"
    assert next(one for one in apart if one["task_id"] == "none")["failed_test"] is None
    seen = results["verified"]
    assert seen["verified"] == 3 and seen["without_spare_tests"] == 1 and seen["disputed_tests"] == 1
    assert seen["programs"] == len(BY_HEART) + 3 + 1 + 1 + 2
    assert "3 of" in verified_words(results) and "rescued-unverified.jsonl" in verified_words(results)

    checks = (tmp_path / "out" / "checks.jsonl").read_bytes()
    events = (tmp_path / "out" / "events.jsonl").read_bytes()
    assert verify(tmp_path / "out", workers=2) == DONE  # nothing runs twice, and no grader starts
    assert (tmp_path / "out" / "checks.jsonl").read_bytes() == checks
    assert (tmp_path / "out" / "events.jsonl").read_bytes() == events
    # of a run that was killed amid it the rest is done
    lines = checks.splitlines(keepends=True)
    (tmp_path / "out" / "checks.jsonl").write_bytes(b"".join(lines[:5]))
    assert verify(tmp_path / "out", workers=2) == DONE
    again = (tmp_path / "out" / "checks.jsonl").read_bytes().splitlines(keepends=True)
    assert again[:5] == lines[:5] and len(again) == len(lines)


HONEST = "print({'MON': 6, 'TUE': 5, 'WED': 4, 'THU': 3}[input()])"
DAYS = [["MON\n", "6\n"], ["TUE\n", "5\n"], ["WED\n", "4\n"]]


@pytest.mark.slow
def test_a_mark_keeps_apart_only_where_no_spare_test_of_a_new_input_speaks_for_the_program(tmp_path):
    new, wrong = ["THU\n", "3\n"], HONEST.replace("3", "9")
    days = {"visible": DAYS[:1], "hidden": DAYS[1:]}
    tasks = write(
        tmp_path / "t.jsonl",
        row("new", **days, spare=[DAYS[0], new]),
        row("seen", **days, spare=[["MON", "6\n"], ["TUE", "5\n"]]),  # the inputs of its own tests
        row("none", **days, spare=[]),
    )
    out = tmp_path / "out"
    lay_out(out, tasks, {"new": [HONEST, wrong], "seen": [HONEST], "none": [HONEST]})
    assert verify(out, workers=1) == DONE
    good, apart, results = told(out)
    assert [(one["task_id"], one["verified"]) for one in good] == [("new", True)] and "inputs" in good[0]["flags"]
    assert [one["task_id"] for one in apart] == ["new", "none", "seen"] and all(one["flags"] for one in apart)
    assert apart[0]["failed_test"]["test"] == "spare 2" and apart[2]["failed_test"] is None
    assert not any(one["verified"] for one in apart)
    seen = results["verified"]
    assert (seen["marked"], seen["cleared"], seen["failed"], seen["verified"]) == (3, 1, 1, 1)
    assert "1 look so and are rows all the same" in verified_words(results)
    # what an older version wrote of a marked program says too little, and is looked at again
    rows = [
        json.loads(line) for line in (out / "checks.jsonl").read_text().replace("/spare-2/", "/spare-1/").splitlines()
    ]
    write(out / "checks.jsonl", *({k: v for k, v in one.items() if k != "passed_unseen"} for one in rows))
    assert told(out)[0] == []
    assert verify(out, workers=1) == DONE
    assert told(out)[0] == good


def test_each_program_is_known_by_its_task_and_its_text():
    name = {"task_id": "t", "program": program_of("print(1)")}
    failure = {"test": "spare 1", "outcome": "wrong_answer", "input": "", "expected": "", "got": ""}
    rows = [
        {**name, "tests": "regrade-1/visible", "letters": "P"},
        {**name, "tests": "verify/spare-1/a", "letters": "PW", "disputed": 0, "failed": failure, "flags": []},
        {**name, "tests": "verify/spare-1/b", "letters": "PW", "disputed": 1, "failed": None, "flags": []},
        {**name, "task_id": "u", "tests": "verify/spare-1/b", "letters": "", "disputed": 0, "failed": None,
         "flags": ["holds"]},
    ]  # fmt: skip
    found = verified(rows)
    assert found == {
        ("t", name["program"]): Verified(1, 1, None, ()),
        ("u", name["program"]): Verified(0, 0, None, ("holds",)),
    }
    assert [one.is_verified for one in found.values()] == [True, False]
    assert counts(found.values()) == {"programs": 2, "verified": 1, "without_spare_tests": 0, "failed": 0, "marked": 1,
                                      "cleared": 0, "disputed_tests": 1}  # fmt: skip
    assert not Verified(0, 0, None, ()).is_verified and not Verified(0, 0, None, ()).is_apart


def test_programs_that_nobody_has_looked_at_are_rows_as_before():
    conf = config(arms=["resample"], data={"licence": None})
    attempts = run(["t"], {"resample": {"t": 0}})
    task = Task("t", "t", "s", "stdio", ())
    results = measure(attempts, conf, [task])
    good, apart = (
        rescued([one for one in attempts if one.passed], [task], conf, results, (), x) for x in (False, True)
    )
    assert json.loads(good)["verified"] is False and json.loads(good)["flags"] == "" and apart == ""
    assert verified_words(results) == ""


@pytest.mark.parametrize(
    ("name", "title", "tags", "ids", "splits"),
    [
        ("cc-test-1041_E", "Tree", {"split": "test"}, ["1041_E"], ["test"]),
        ("cc-valid-Some-name", "Some name", {"split": "valid"}, ["Some-name"], ["valid"]),
        ("mbpp-0-3", "MBPP 601, 12, 599", {}, ["601", "12", "599"], ["test", "validation", "train"]),
        ("mine", "Mine", {}, ["mine"], []),
        ("mine", "Mine", {"split": "dev"}, ["mine"], ["dev"]),
    ],
)
def test_what_a_task_is_made_of(name, title, tags, ids, splits):
    task = Task(name, title, "s", "stdio", (), tags=tags)
    assert (source_ids(task), splits_of(task)) == (ids, splits)


@pytest.mark.slow
def test_a_run_that_is_stopped_while_it_verifies_goes_on_there(tmp_path):
    """The real command, Ctrl-C after the third program; half of the programs are wrong from some input on."""
    rows = [
        {"id": f"t{k}", "statement": f"Print {k} times n.", "kind": "stdio", "visible": [["1\n", f"{k}\n"]],
         "hidden": [["5\n", f"{5 * k}\n"]], "spare": [[f"{n}\n", f"{n * k}\n"] for n in range(6, 40)]}
        for k in range(2, 6)
    ]  # fmt: skip

    def reply(request: Any) -> str:
        asked = "\n".join(message["content"] for message in request.body["messages"])
        k, dice = next(k for k in range(2, 6) if f"Print {k} times n." in asked), request.dice().randrange(10**6)
        if "* int(input())" not in asked:
            return f"```python\nprint({dice + 100} * int(input()))\n```"
        return f"```python\nn = int(input())  # {dice}\nprint({k} * n{' if n < 20 else 0' * (dice % 2)})\n```"

    tasks, checks = write(tmp_path / "t.jsonl", *rows), tmp_path / "out" / "checks.jsonl"
    command = [sys.executable, str(ROOT / "run.py"), "--tasks", tasks, "--base-samples", "2", "--particles", "4",
               "--rounds", "2", "--arms", "resample,solo", "--workers", "1", "--concurrency", "4"]  # fmt: skip

    def done() -> list[bytes]:
        return checks.read_bytes().splitlines() if checks.exists() else []

    with serving(reply=reply) as mock:
        env = {**os.environ, "OPENAI_BASE_URL": mock.url}
        first = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, start_new_session=True)
        while first.poll() is None and len(done()) < 3:
            time.sleep(0.01)
        os.killpg(first.pid, signal.SIGINT)
        assert b"Traceback" not in first.communicate(timeout=60)[1] and first.returncode == 130
        asked = len(mock.requests)
        again = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert again.returncode == 0 and len(mock.requests) == asked, again.stderr
    names = [(one["task_id"], one["program"]) for one in map(json.loads, done())]
    assert len(names) == len(set(names)) == 16
    good, apart = ([json.loads(line) for line in (tmp_path / "out" / name).read_text().splitlines()]
                   for name in ("rescued.jsonl", "rescued-unverified.jsonl"))  # fmt: skip
    lines = again.stderr.rstrip("\n").split("\n")[-2:]
    assert lines[0].endswith(f"  {len(good)} training rows")
    assert lines[1] == f"out/rescued-unverified.jsonl  {len(apart)} rescued programs kept apart, not verified"
    assert len(good) + len(apart) == 16 and apart and all(one["verified"] for one in good)
    assert {one["failed_test"]["test"] for one in apart} == {"spare 15"}  # n = 20
    assert not any("if n < 20" in one["final_text"] for one in good)
