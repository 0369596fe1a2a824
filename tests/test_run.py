"""The real command against a mock endpoint: what it asks, what it keeps, what it says."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import run
from commands import settings
from commands.flags import VERSION, nearest
from commands.settings import Free, Identity, Plan, Spread, json_object, ordered, task_order, task_seed
from grading import grade
from records import ATTEMPTS, Folder, Log
from session import each
from swarm import PLAIN, Slot, bare
from tasks import load
from tests.support.mock_endpoint import Fault, always, serving
from tests.support.thin import thinned

ROOT = Path(__file__).parent.parent


def stdio_row(name: str, factor: int) -> dict:
    tests = lambda numbers: [[f"{n}\n", f"{factor * n}\n"] for n in numbers]  # noqa: E731
    statement = f"Task {name}: read n and print {factor} times n."
    return {"id": name, "statement": statement, "kind": "stdio", "visible": tests([1, 2]), "hidden": tests([5, 70])}


def task_file(path: Path, rows: list[dict]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def three(tmp_path):
    return task_file(tmp_path / "three.jsonl", [stdio_row(f"t{k}", k + 2) for k in range(3)])


SMALL = ["--base-samples", "2", "--particles", "2", "--rounds", "2", "--concurrency", "4", "--workers", "1"]


@pytest.fixture
def go(tmp_path, monkeypatch, capsys):
    """The command in this process: (exit code, stdout, stderr)."""

    def command(*argv: str, url: str = "", out: str = "out") -> tuple[int, str, str]:
        monkeypatch.setenv("OPENAI_BASE_URL", url or "http://127.0.0.1:9/v1")
        full = ["run.py", *argv, "--out", str(tmp_path / out)]
        monkeypatch.setattr(sys, "argv", full)
        capsys.readouterr()
        # Pictures have their own tests, and cost a second a run.
        monkeypatch.setattr(run, "page", lambda *parts: "")
        try:
            code = run.main(full[1:])
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def wrong(request):
    """A program that answers the first visible test of every task and no other; another one by seed."""
    dice = request.dice().randrange(10**9)
    return f"```python\nn = int(input())\nprint(n + {dice})\n```"


def kept_rows(path: Path) -> list[dict]:
    """What is paid and on disk: attempts, and replies that wait for their grade."""
    with Log(path) as log:
        return [*(attempt.slot._asdict() for attempt in log.attempts()), *(slot._asdict() for slot in log.owed())]


def results(path: Path) -> dict:
    return json.loads((path / "results.json").read_text())


# ── resume ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "asked"), thinned([("tail", 1), ("newline", 0), ("blank", 1)], 3, several=True))
def test_a_torn_line_is_asked_again_and_no_other(go, three, tmp_path, cut, asked):
    with serving(reply=wrong) as mock:
        args = ["--tasks", three, "--arms", "resample", "--rounds", "1", *SMALL[:2], "--particles", "1"]
        assert go(*args, url=mock.url)[0] == 0
        whole, n = (tmp_path / "out" / ATTEMPTS).read_bytes(), len(mock.chats)
        assert whole.count(b"\n") == n == 9
        (tmp_path / "out" / ATTEMPTS).write_bytes(whole[: -1 if cut == "newline" else -25] + b"\n\n" * (cut == "blank"))
        assert go(*args, url=mock.url)[0] == 0
        assert len(mock.chats) == n + asked
        rows = [json.loads(line) for line in (tmp_path / "out" / ATTEMPTS).read_bytes().split(b"\n")[:-1]]
        assert len({(r["task_id"], r["arm"], r["particle"]) for r in rows}) == len(rows) == n
        code, _, err = go(*args, url=mock.url)
        assert code == 0 and "nothing is left to ask" in err
        assert len(mock.chats) == n + asked


@pytest.mark.slow
def test_strange_characters_in_replies_survive(go, three, tmp_path):
    text = "```python\nprint(1)\n```\u2028note\u0085more\u000c\ud800"
    with serving(reply=lambda request: text) as mock:
        args = ["--tasks", three, "--limit", "1", "--arms", "resample", *SMALL]
        assert go(*args, url=mock.url)[0] == 0
        assert {a.reply for a in Folder(tmp_path / "out").attempts()} == {text}
        n = len(mock.chats)
        assert go(*args, url=mock.url)[0] == 0
        assert len(mock.chats) == n


def test_another_identity_is_refused_and_the_first_one_goes_on(go, three, tmp_path):
    with serving(reply=wrong, models=("A", "B")) as mock:
        args = ["--tasks", three, "--limit", "1", "--arms", "resample", *SMALL]
        assert go(*args, "--model", "A", url=mock.url)[0] == 0
        before, n = (tmp_path / "out" / ATTEMPTS).read_bytes(), len(mock.chats)
        for other in ("--model B", "--temperature 0.2", "--max-tokens 8192", "--no-comments", "--seed 1"):
            code, _, err = go(*args, "--model", "A", *other.split(), url=mock.url)
            assert code == 2
            assert other.split()[0] in err
            assert err.count("\n") == 1 and "--out" in err
        assert go(*args, "--model", "A", url=mock.url)[0] == 0
        assert len(mock.chats) == n
        assert (tmp_path / "out" / ATTEMPTS).read_bytes() == before


def test_a_folder_of_other_tasks_is_told_before_those_that_were_asked_for_are_fetched(go, tmp_path, monkeypatch):
    """The default set is meant where --tasks is forgotten, and takes minutes from the hub."""
    shutil.copytree(ROOT / "results" / "tuned", tmp_path / "out")

    def fetch(*parts, **named):
        raise AssertionError("fetched")

    monkeypatch.setattr(run, "tasks_of", fetch)
    code, _, err = go()
    assert code == 2 and "holds another experiment (--tasks mbpp-bundle -> code_contests)" in err
    for other in ("--fresh", "--plan"):  # neither goes on there
        with pytest.raises(AssertionError, match="fetched"):
            go(other)


@pytest.mark.slow
def test_another_seed_draws_again_on_the_same_tasks_and_an_old_folder_keeps_its_own(go, tmp_path):
    rows = [stdio_row(f"t{k}", k + 2) for k in range(9)]
    path = task_file(tmp_path / "nine.jsonl", rows)
    args = ["--tasks", path, "--arms", "resample", "--rounds", "1", "--base-samples", "1", "--particles", "1"]
    order = {seed: [task.id for task in load(path, seed=seed)] for seed in (0, 1)}
    assert set(order[0][:3]) != set(order[1][:3])

    def asked(out: str) -> list[str]:
        return list(dict.fromkeys(attempt.task_id for attempt in Folder(tmp_path / out).attempts()))

    with serving(reply=wrong) as mock:
        for seed in ("0", "1"):
            assert go(*args, "--limit", "3", "--seed", seed, url=mock.url, out=f"out{seed}")[0] == 0
        assert set(asked("out0")) == set(asked("out1")) == set(order[0][:3])
        assert len({chat.seed for chat in mock.chats}) == len(mock.chats) == 12

        old = [*args, "--seed", "1"]  # as a folder was written that knew of one seed alone
        assert go(*old, "--limit", "3", "--task-seed", "1", url=mock.url)[0] == 0
        config = json.loads((tmp_path / "out" / "config.json").read_text())
        assert config["identity"].pop("task_seed") == 1
        (tmp_path / "out" / "config.json").write_text(json.dumps(config))
        n = len(mock.chats)
        for same in ([], ["--task-seed", "1"]):
            code, _, err = go(*old, *same, "--limit", "3", url=mock.url)
            assert code == 0 and "nothing is left to ask" in err and len(mock.chats) == n
        assert go(*old, "--limit", "4", url=mock.url)[0] == 0
        assert set(asked("out")) == set(order[1][:4]) and len(mock.chats) == n + 2
        code, _, err = go(*old, "--task-seed", "0", "--limit", "4", url=mock.url)
        assert code == 2 and "--task-seed" in err and len(mock.chats) == n + 2
    kept = [json.loads((tmp_path / out / "config.json").read_text())["identity"] for out in ("out", "out1")]
    assert [task_order(one) for one in kept] == [1, 0]


def test_as_published_the_seed_of_the_draws_orders_the_tasks():
    for given, old, published, order in [
        (None, None, False, 0),
        (3, None, False, 3),
        (None, None, True, 7),
        (3, None, True, 3),
        (None, {"seed": 7}, False, 7),
        (0, {"seed": 7}, False, 0),
        (None, {"seed": 7, "task_seed": 3}, False, 0),  # another identity, which is refused like any other
        (None, {"seed": 7, "task_seed": None}, True, 7),
    ]:
        seed = task_seed(given, 7, old and {"identity": old}, published)
        assert task_order({"seed": 7, "task_seed": seed}) == order, (given, old, published)


@pytest.mark.slow
def test_a_prediction_is_of_the_plan_and_another_one_later_is_exploratory(go, tmp_path):
    plan = lambda: json.loads((tmp_path / "out" / "plan.json").read_text())  # noqa: E731
    args = ["--dry-run", "--arms", "resample,ring", "--limit", "2", *SMALL]
    code, _, err = go(*args, "--predict", "star=3")
    assert code == 2 and err.count("\n") == 1 and "there are ring" in err and not (tmp_path / "out").exists()
    code, out, err = go(*args, "--predict", "ring=3")
    assert (
        code == 0
        and plan()["predictions"] == {"ring": 0.03}
        and "predicted, in points against resample: ring +3" in err
    )
    assert "Predicted before the first sample: ring +3 points" in out
    for again in (args, ["--reuse"], [*args, "--predict", "ring=3"]):  # who leaves it out does not take it back
        assert go(*again)[1] == out
    code, _, err = go("--reuse", "--predict", "ring=9")
    assert code == 2 and "leave --predict out" in err
    code, out, _ = go(*args, "--predict", "ring=9")
    assert code == 0 and "Predicted after the first sample: ring +9 points" in " ".join(out.split())
    assert "Exploratory" in out and plan()["settings"]["predict"] == {"ring": 3.0}
    code, out, _ = go("--dry-run", "--arms", "resample,ring", *SMALL, "--predict", "ring=9")  # a third task
    assert "changed since the plan was written: limit, predict" in " ".join(out.split())
    assert plan()["settings"]["predict"] == {"ring": 3.0} and len(plan()["amendments"]) == 1


def test_a_changed_prompt_gets_no_old_reply(go, three, tmp_path, monkeypatch):
    with serving(reply=wrong) as mock:
        args = ["--tasks", three, "--limit", "2", "--arms", "resample", *SMALL]
        assert go(*args, url=mock.url)[0] == 0
        n = len(mock.chats)
        monkeypatch.setattr("swarm._request", lambda task, style, wish: f"{wish}, please.")
        code, _, err = go(*args, url=mock.url)
        assert code == 2 and "under another prompt" in err
        assert len(mock.chats) == n
        assert all(len(a.prompt_sha) == 64 for a in Folder(tmp_path / "out").attempts())


@pytest.mark.slow
def test_a_task_is_known_by_its_id_and_its_words_not_its_place(go, tmp_path):
    rows = [stdio_row(f"t{k}", k + 2) for k in range(5)]
    path = tmp_path / "own.jsonl"
    args = ["--arms", "resample", *SMALL]
    with serving(reply=wrong) as mock:
        assert go("--tasks", task_file(path, rows), "--limit", "3", *args, url=mock.url)[0] == 0
        first = {a.task_id for a in Folder(tmp_path / "out").attempts()}
        n = len(mock.chats)
        task_file(path, rows[::-1])
        assert go("--tasks", str(path), "--limit", "5", *args, url=mock.url)[0] == 0
        asked = Counter(next(r["id"] for r in rows if f"Task {r['id']}:" in c.prompt) for c in mock.chats[n:])
        assert set(asked) == {r["id"] for r in rows} - first
        n = len(mock.chats)
        rows[0]["statement"] += " Quickly."
        code, _, err = go("--tasks", task_file(path, rows), "--limit", "5", *args, url=mock.url)
        assert code == 2 and "t0" in err and len(mock.chats) == n


@pytest.mark.slow
def test_every_request_for_one_prompt_has_its_own_seed_and_a_resume_repeats_them(go, three, tmp_path):
    args = ["--tasks", three, "--limit", "1", "--arms", "resample", "--noise-runs", "2"]
    with serving(reply=wrong) as mock:
        assert go(*args, url=mock.url)[0] == 0
        seeds = [c.seed for c in mock.chats]
        assert len(seeds) == len(set(seeds)) == 8 + 24 + 2 * 24
        (tmp_path / "out" / ATTEMPTS).write_bytes(b"")
        assert go(*args, url=mock.url)[0] == 0
        assert sorted(c.seed for c in mock.chats[80:]) == sorted(seeds)


@pytest.mark.slow
def test_two_processes_on_one_folder(three, tmp_path):
    with serving(reply=wrong, latency=lambda request: 0.1) as mock:
        command = [sys.executable, str(ROOT / "run.py"), "--tasks", three, *SMALL, "--out", str(tmp_path / "out")]
        env = {**os.environ, "OPENAI_BASE_URL": mock.url}
        both = [subprocess.Popen(command, env=env, stdout=-1, stderr=-1, text=True) for _ in range(2)]
        said = [process.communicate(timeout=120) for process in both]
        codes = sorted(process.returncode for process in both)
        slots = [a.slot for a in Folder(tmp_path / "out").attempts()]
        assert codes in ([0, 2], [0, 0])
        assert len(slots) == len(set(slots)) == len(mock.chats)
        if codes == [0, 2]:
            assert any("another process" in err for _, err in said)


# ── what it finds ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_planted_counts_give_the_exact_histogram_and_near_miss_set(go, tmp_path):
    rows = [stdio_row(f"t{k}", k + 2) for k in range(12)]
    passes = {f"t{k}": max(0, k - 3) for k in range(12)}  # four all-fail tasks, then 1 to 8 passes
    near = {"t1", "t2"}
    right = {Slot(t, "base", 0, 0, i).seed(0): t for t, n in passes.items() for i in range(n)}

    def reply(request):
        row = next(row for row in rows if f"Task {row['id']}:" in request.prompt)
        factor = int(row["id"][1:]) + 2
        if right.get(request.seed) == row["id"]:
            return f"```python\nprint({factor} * int(input()))\n```"
        if row["id"] in near and request.seed == Slot(row["id"], "base", 0, 0, 5).seed(0):
            return f"```python\nprint({factor})\n```"  # right on the first visible test alone
        return "I give up."

    with serving(reply=reply) as mock:
        args = ["--tasks", task_file(tmp_path / "own.jsonl", rows), "--arms", "resample", "--rounds", "1"]
        assert go(*args, "--band", "near-miss", url=mock.url)[0] == 0
    found = results(tmp_path / "out")
    assert found["p0_histogram"] == [4, 1, 1, 1, 1, 1, 1, 1, 1]
    assert found["all_fail"] == 4
    assert found["near_miss"]["near_miss"] == 2
    given = {a.task_id for a in Folder(tmp_path / "out").attempts() if a.arm == "resample"}
    assert given == near


NAMES = ("alpha", "beta", "gamma", "delta")


def bundle_rows(n: int) -> list[dict]:
    rows = []
    for k in range(n):
        names = [f"{name}_{k}" for name in NAMES]
        says = " ".join(f"`{name}(x)` adds {i + k} to x." for i, name in enumerate(names))
        asserts = lambda x: [f"assert {name}({x}) == {x + i + k}" for i, name in enumerate(names)]  # noqa: E731, B023
        rows.append({"id": f"b{k}", "statement": f"Bundle {k}. {says}", "kind": "assert", "functions": names,
                     "visible": asserts(1), "hidden": asserts(10)})  # fmt: skip
    return rows


def spreading(reads_the_prompt: bool):
    """On the bare problem each function is there by chance; then only what a program shown in the prompt has."""

    def reply(request):
        k = int(request.prompt.split("Bundle ")[1].split(".")[0])
        shown = request.prompt.split("shown tests", 1)[1] if "shown tests" in request.prompt else ""
        dice = request.dice()
        have = [
            i
            for i, name in enumerate(NAMES)
            if (f"def {name}_{k}" in shown if shown and reads_the_prompt else dice.random() < 0.3)
        ]
        lines = [f"def {NAMES[i]}_{k}(x):\n    return x + {i + k}\n" for i in have]
        return "```python\n" + "".join([f"# {dice.random()}\n", *lines]) + "\n```"

    return reply


@pytest.mark.slow
@pytest.mark.parametrize("reads_the_prompt", [True, False])
def test_a_policy_that_uses_what_it_is_shown_makes_star_win_and_no_other_does(go, tmp_path, reads_the_prompt):
    rows = bundle_rows(30)
    with serving(reply=spreading(reads_the_prompt)) as mock:
        code, out, err = go("--tasks", task_file(tmp_path / "b.jsonl", rows), url=mock.url)
    assert code == 0, err
    found = results(tmp_path / "out")
    assert found["all_fail"] >= 20
    if reads_the_prompt:
        assert found["paired"]["star"]["interval"][0] > 0
        assert found["paired"]["star"]["verdict"] == "better"
    else:
        assert {row["verdict"] for row in found["paired"].values()} <= {"inconclusive", "equivalent"}
    check_rows(tmp_path / "out", {row["id"]: row for row in rows}, str(tmp_path / "b.jsonl"))


def check_rows(folder: Path, by_id: dict[str, dict], tasks: str) -> None:
    """Every exported row: the bare prompt byte for byte, and a program that passes an independent grader."""
    lines = (folder / "rescued.jsonl").read_text().splitlines()
    prompts = {task.id: bare(task, PLAIN).messages[-1]["content"] for task in load(tasks)}
    assert len(lines) == results(folder)["rescued_rows"] > 0
    for row in map(json.loads, lines):
        assert row["prompt"] == prompts[row["task_id"]]
        assert row["completion"] == row["final_text"]
        program = row["final_text"].removeprefix("```python\n").removesuffix("```")
        source = by_id[row["task_id"]]
        tests = source["visible"] + source["hidden"]
        of_asserts = source["kind"] == "assert"
        each = (
            f"for text in {[f'{program}{chr(10)}{test}' for test in tests]!r}: exec(text, {{'__name__': '__main__'}})"
        )
        runs = [(each, "", "")] if of_asserts else [(program, *test) for test in tests]
        for text, stdin, wanted in runs:
            ran = subprocess.run([sys.executable, "-c", text], input=stdin, capture_output=True, text=True, timeout=20)
            assert ran.returncode == 0
            assert of_asserts or ran.stdout.split() == wanted.split()


@pytest.mark.slow
def test_rows_are_distinct_and_bare(go, tmp_path, three):
    """Equal programs up to blanks and line ends are one row, another comment is another; none holds the swarm."""
    shapes = ["print({f} * int(input()))\n", "print({f} * int(input()))  \r\n\r\n", "# so\nprint({f} * int(input()))\n"]

    def reply(request):
        if "shown tests" not in request.prompt:
            return wrong(request)
        factor = int(request.prompt.split("print ")[1].split()[0])
        return f"```python\n{request.dice().choice(shapes).format(f=factor)}```"

    with serving(reply=reply) as mock:
        assert go("--tasks", three, "--limit", "2", "--full-budget", url=mock.url)[0] == 0
    folder = tmp_path / "out"
    check_rows(folder, {f"t{k}": stdio_row(f"t{k}", k + 2) for k in range(3)}, three)
    rows = [json.loads(line) for line in (folder / "rescued.jsonl").read_text().splitlines()]
    assert len(rows) == 2 * 2
    assert not any(row["on_policy"] for row in rows)
    assert {row["source"] for row in rows} <= {"solo", "ring", "star"}


@pytest.mark.slow
def test_every_outcome_has_its_name_and_the_counts_add_up(go, tmp_path, three):
    replies = [
        "no program at all",
        "```python\nimport numpyy\n```",
        "```python\nprint(\n```",
        "```python\nprint(-1)\n```",
        "```python\n1 / 0\n```",
        "```python\nx = 'a' * 3_000_000_000\n```",
        "```python\nwhile True: print('x' * 100000)\n```",
        "```python\nwhile True: pass\n```",
    ]
    order = iter(replies)
    rows = [stdio_row("t0", 2) | {"timeout": 0.5}]
    with serving(reply=lambda request: next(order)) as mock:
        args = [
            "--tasks",
            task_file(tmp_path / "one.jsonl", rows),
            "--base-samples",
            "8",
            "--arms",
            "solo",
            "--rounds",
            "1",
        ]
        code, out, err = go(*args, "--particles", "1", "--stop-after", "calls=8", url=mock.url)
    assert code == 3 and "to continue:" in err
    counts = results(tmp_path / "out")["outcomes"]["base"]["counts"]
    assert {name: n for name, n in counts.items() if n} == dict.fromkeys(
        ["no_code", "missing_module", "syntax_error", "wrong_answer", "runtime_error", "memory_limit", "output_limit",
         "timeout"], 1)  # fmt: skip
    assert all(f"{n} {name.replace('_', ' ')}" in " ".join(out.split()) for name, n in counts.items() if n), out


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_limits_hold_across_restarts(go, three, tmp_path):
    with serving(reply=wrong) as mock:
        for calls in (7, 11):
            for _ in range(2):
                code, _, err = go("--tasks", three, *SMALL, "--stop-after", f"calls={calls}", url=mock.url)
                assert code == 3 and f"calls={calls} is reached" in err and "to continue: python" in err
                assert len(mock.chats) == calls
                assert len(list(Folder(tmp_path / "out").attempts())) == calls
        code, _, err = go("--tasks", three, *SMALL, "--stop-after", "usd=0.0001", "--price", "1,10", url=mock.url)
        assert code == 3 and "usd=0.0001 is reached" in err
        assert go("--tasks", three, *SMALL, url=mock.url)[0] == 0


@pytest.mark.slow
def test_the_command_that_continues_after_a_limit_does_continue(go, three, tmp_path):
    argv = ["--tasks", three, *SMALL, "--stop-after", "minutes=9,calls=4"]
    with serving(reply=wrong) as mock:
        for calls in (4, 8, 16):
            code, _, err = go(*argv, url=mock.url)
            assert code == 3 and len(mock.chats) == calls
            again = shlex.split(err.strip().split("\n")[-1].removeprefix("to continue: python run.py "))
            argv = again[: again.index("--out")]
            assert argv[-1] == f"minutes=9,calls={2 * calls}"


def last(err: str, lines: int) -> list[str]:
    return err.rstrip("\n").split("\n")[-lines:]


def test_the_last_lines_say_where_things_are_and_how_to_go_on(go, three, tmp_path):
    folder = tmp_path / "out"

    def told(lines: list[str], rows: int) -> None:
        assert [line.split("  ")[0].rstrip() for line in lines] == [
            str(folder / name) for name in ("report.html", "report.txt", "rescued.jsonl")
        ]
        assert lines[-1].endswith(f"  {rows} training row{'s' * (rows != 1)}")
        assert len({line.rindex("  ") for line in lines}) == 1  # one column

    with serving(reply=wrong) as mock:
        code, _, err = go("--tasks", three, *SMALL, "--stop-after", "calls=5", url=mock.url)
        assert code == 3 and last(err, 1)[0].startswith("to continue: python run.py ")
        told(last(err, 4)[:3], 0)
        go_on = (
            f"--config {folder / 'config.json'} --out {folder} --stop-after calls=10"  # the same limit would stop it
        )
        code, out, err = go("--reuse")
        assert code == 0 and last(err, 1)[0].endswith(f"it is not finished: python run.py {go_on}")
        told(last(err, 4)[:3], 0)
        code, _, err = go(*go_on.split()[:2], url=mock.url)
        assert code == 3 and last(err, 1)[0] == f"to continue: python run.py {go_on}" and len(mock.chats) == 5
        code, out, err = go("--tasks", three, *SMALL, url=mock.url)
        assert code == 0 and "continuing: 5 of at most 54 attempts are there" in err
        assert "more attempts done" in err
        told(last(err, 3), 0)
    assert (folder / "report.txt").read_text() == out
    for how in ("--reuse", "--regrade"):
        code, out, err = go(how)
        assert code == 0 and last(err, 3)[0].startswith(str(folder)) and (folder / "report.txt").read_text() == out
    assert go("--reuse", "--json")[1] == (folder / "results.json").read_text()


def test_the_flags_of_another_run(tmp_path, three, capsys):
    (tmp_path / "words.txt").write_text("Be brief.")
    parser = run.flags()
    first = run.settings(parser, ["--tasks", three, "--system", str(tmp_path / "words.txt"), "--temperature", "0.5",
                                  "--arms", "resample,star", "--base-url", "http://127.0.0.1:1", "--price", "1,2",
                                  "--predict", "star=3", "--out", "one"])  # fmt: skip
    classes = {"identity": Identity, "plan": Plan, "free": Free}
    kept = {name: settings.values_of(first, kind) for name, kind in classes.items()}
    (tmp_path / "config.json").write_text(json.dumps(kept))
    again = run.settings(parser, ["--config", str(tmp_path / "config.json"), "--temperature", "1", "--out", "two",
                                  "--base-url=http://127.0.0.1:2"])  # fmt: skip
    differ = {name for name in vars(first) if getattr(first, name) != getattr(again, name)}
    assert differ == {"config", "out", "temperature", "base_url"}
    assert again.temperature == 1 and again.base_url == ["http://127.0.0.1:2"] and again.system == "Be brief."
    for what, text in (("nothing", None), ("no run", "{}"), ("no JSON", "x"), ("a list", "[]")):
        at = tmp_path / f"{what}.json"
        if text is not None:
            at.write_text(text)
        with pytest.raises(SystemExit) as end:
            run.settings(parser, ["--config", str(at)])
        said = capsys.readouterr().err
        assert end.value.code == 2 and "name one" in said and said.count("\n") == 1


def test_a_plan_as_json(go, three, tmp_path):
    with serving(reply=wrong) as mock:
        code, out, _ = go("--tasks", three, "--plan", "--json", url=mock.url)
    plan = json.loads(out)
    assert code == 0 and plan["population"]["tasks"] == 3 and plan["calls"]["largest"] == 3 * (8 + 96)
    assert not (tmp_path / "out").exists()


def test_without_an_endpoint_one_is_asked_for(go, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-of-mine")
    assert run.main(["--tasks", "code_contests", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "give --base-url" in said and said.count("\n") == 1 and not (tmp_path / "out").exists()


def refusing(what: str):
    """A server with a filter: it refuses what holds these words and answers all else."""
    return lambda request: Fault("status", 400, message="content filter") if what in request.prompt else None


@pytest.mark.slow
def test_a_refused_prompt_costs_no_other_attempt_and_not_the_report(go, three, tmp_path):
    with serving(reply=wrong, faults=refusing("Task t1"), latency=lambda request: 0.05) as mock:
        code, out, err = go("--tasks", three, *SMALL, url=mock.url)
        assert code == 4 and "1 task is incomplete; t1: " in err and "content filter" in err
        assert "to continue: python" in err
        assert len(mock.answered) == len(kept_rows(tmp_path / "out")) == len({c.seed for c in mock.answered})
        assert {row["task_id"] for row in kept_rows(tmp_path / "out")} == {"t0", "t2"}
        assert results(tmp_path / "out")["all_fail"] == 2 and "All-fail" in out
        n = len(mock.answered)
        mock.faults = lambda request: None
        assert go("--tasks", three, *SMALL, url=mock.url)[0] == 0
        assert results(tmp_path / "out")["all_fail"] == 3
        assert len(mock.answered) == len({c.seed for c in mock.answered}) == n * 3 // 2


def test_a_limit_hides_no_fault_of_the_grader(go, three, tmp_path, monkeypatch):
    import grader

    async def failing(self, reply, task):
        await asyncio.sleep(0.3)  # the limit comes first
        raise grader.GraderFault("no process can be started: free some, then run again")

    with serving(reply=wrong) as mock, monkeypatch.context() as patch:
        patch.setattr(grader.Grader, "grade", failing)
        code, _, err = go("--tasks", three, *SMALL, "--stop-after", "calls=3", url=mock.url)
    assert code == 5 and "free some" in err
    assert len(list(Folder(tmp_path / "out").rows("owed.jsonl"))) == 3


def test_of_several_ends_the_gravest_is_told():
    from faults import EndpointFault, GraderFault, LimitReached

    ends = [LimitReached("calls", 3), EndpointFault("gave_up", "gone"), GraderFault("no process")]
    for several in itertools.permutations(ends):
        for n in (2, 3):
            told, met = iter(several[:n]), asyncio.Barrier(n)

            async def end(task: object, told: Iterator[Exception] = told, met: asyncio.Barrier = met) -> None:
                await met.wait()  # they end together, so that none is cancelled for another
                raise next(told)

            with pytest.raises(type(max(several[:n], key=ends.index))):
                asyncio.run(each(iter([object()] * n), end, at_once=n))  # type: ignore[list-item]


@pytest.mark.slow
def test_owed_replies_stay_few_while_running_and_none_is_lost(go, three, tmp_path, monkeypatch):
    import grader
    import session

    grade, lines, seen = grader.Grader.grade, [], []
    monkeypatch.setattr(session, "LONG", 4)

    async def watched(self, reply, task):
        lines.append(sum(1 for _ in Folder(tmp_path / "out").rows("owed.jsonl")))
        seen.append(1)
        if len(seen) == 25:
            raise grader.GraderFault("no process can be started: free some, then run again")
        return await grade(self, reply, task)

    monkeypatch.setattr(grader.Grader, "grade", watched)
    with serving(reply=wrong) as mock:
        assert go("--tasks", three, *SMALL, "--concurrency", "2", url=mock.url)[0] == 5
        folder = Folder(tmp_path / "out")
        filed = {attempt.slot for attempt in folder.attempts()}
        owed = {Slot(*row["slot"]) for row in folder.rows("owed.jsonl")} - filed
        # Two may have been answered and not been read yet.
        assert len(filed) + len(owed) >= len(mock.answered) - 2 and len(filed) > 12
        assert max(lines) <= 4 + 2 * 5  # of a start that filed more than that
        assert go("--tasks", three, *SMALL, url=mock.url)[0] == 0
        assert len(list(folder.attempts())) <= len(mock.answered) <= len(list(folder.attempts())) + 2


@pytest.mark.slow
def test_what_was_graded_in_another_tier_or_by_other_rules_is_remembered(go, three, tmp_path, monkeypatch):
    with serving(reply=wrong) as mock:
        for rules in ("rules-1", "rules-2", "rules-2"):
            monkeypatch.setattr(grade, "RULES", rules)
            calls = len(mock.chats) + 3
            code, _, err = go("--tasks", three, *SMALL, "--stop-after", f"calls={calls}", url=mock.url)
            assert code == 3
            assert ("graded under" in err and "--regrade" in err) == (rules == "rules-2")
    under = Folder(tmp_path / "out").config["graded_under"]
    assert len(under) == 2 and all(line.startswith("tier ") for line in under)


@pytest.mark.slow
def test_an_endpoint_that_dies_leaves_a_run_that_goes_on(go, three, tmp_path):
    with serving(reply=wrong, faults=always(Fault("status", 401, message="key gone"), after=5)) as mock:
        code, _, err = go("--tasks", three, *SMALL, url=mock.url)
        assert code == 4 and "key gone" in err and "to continue: python" in err
        kept = [row["arm"] for row in kept_rows(tmp_path / "out")]
        assert len(kept) == 5
        mock.faults = lambda request: None
        assert go("--tasks", three, *SMALL, url=mock.url)[0] == 0
        folder = Folder(tmp_path / "out")
        assert len(mock.answered) == len(list(folder.attempts()))


@pytest.mark.slow
def test_a_grader_fault_keeps_what_was_paid(go, three, tmp_path, monkeypatch):
    import grader

    grade, seen = grader.Grader.grade, []

    async def failing(self, reply, task):
        seen.append(1)
        if len(seen) > 4:
            raise grader.GraderFault("no process can be started: free some, then run again")
        return await grade(self, reply, task)

    with serving(reply=wrong) as mock:
        with monkeypatch.context() as patch:
            patch.setattr(grader.Grader, "grade", failing)
            code, _, err = go("--tasks", three, *SMALL, url=mock.url)
        assert code == 5 and "free some" in err and "to continue" in err
        folder = Folder(tmp_path / "out")
        filed, owed = len(list(folder.attempts())), len(list(folder.rows("owed.jsonl")))
        assert filed <= 4 and filed + owed >= 5
        paid = len(mock.answered)
        assert go("--tasks", three, *SMALL, url=mock.url)[0] == 0
        seeds = [c.seed for c in mock.answered]
        assert len(seeds[:paid]) >= filed + owed
        assert len(list(folder.attempts())) == len(set(seeds))
        assert (tmp_path / "out" / "owed.jsonl").read_text() == ""


def test_a_prompt_that_is_too_long_is_an_attempt_and_no_fault(go, three, tmp_path):
    with serving(reply=wrong, context=200) as mock:
        code, out, err = go(
            "--tasks", three, "--limit", "1", *SMALL, "--max-tokens", "100", "--arms", "solo", url=mock.url
        )
    assert code == 0, err
    overflowed = [a for a in Folder(tmp_path / "out").attempts() if a.outcome == "context_overflow"]
    assert overflowed and all(a.fitness == 0 and a.code is None and a.reply == "" for a in overflowed)


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(three, tmp_path):
    with serving(reply=wrong, latency=lambda request: 0.1) as mock:
        command = [sys.executable, str(ROOT / "run.py"), "--tasks", three, *SMALL, "--out", str(tmp_path / "out")]
        env = {**os.environ, "OPENAI_BASE_URL": mock.url}
        process = subprocess.Popen(command, env=env, stdout=-1, stderr=-1, text=True)
        while len(mock.answered) < 5 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(2)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "interrupted" in err and "Traceback" not in err
        what, report, on = last(err, 3)
        assert what.startswith(str(tmp_path / "out" / "attempts.jsonl")) and " attempts, all that" in what
        assert (
            report.startswith("for a report of them: python ") and on == f"to continue: python {' '.join(command[1:])}"
        )
        again = subprocess.run([sys.executable, *report.split()[6:]], env=env, capture_output=True, text=True)
        assert again.returncode == 0 and "report.html" in again.stderr
        folder = Folder(tmp_path / "out")
        assert len(kept_rows(tmp_path / "out")) >= 5
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert len(list(folder.attempts())) == len({c.seed for c in mock.chats})


@pytest.mark.slow
def test_a_shared_round_0_is_paid_once(go, three, tmp_path):
    with serving(reply=wrong) as mock:
        assert go("--tasks", three, "--limit", "1", "--share-round0", *SMALL, url=mock.url)[0] == 0
        assert len(mock.chats) == 2 + 2 + 4 * 2
        arms = Counter(a.arm for a in Folder(tmp_path / "out").attempts())
        assert arms == {"base": 2, "round0": 2, "resample": 2, "solo": 2, "ring": 2, "star": 2}
        assert go("--tasks", three, "--limit", "1", "--share-round0", *SMALL, url=mock.url)[0] == 0
        assert len(mock.chats) == 12


# ── regrade ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_regrade_names_what_changes_makes_no_call_and_keeps_the_old_grades(go, three, tmp_path, monkeypatch):
    import grader

    grade = grader.Grader.grade

    async def faulty(self, reply, task):  # calls every right program of one task wrong
        got = await grade(self, reply, task)
        if got.passed and task.id == "t1":
            return got._replace(passed=False, fitness=0.0, outcome="runtime_error", visible="RR", hidden="")
        return got

    def reply(request):
        if request.seed % 3 or "Task t1" not in request.prompt:
            return wrong(request)
        return "```python\nprint(3 * int(input()))\n```"

    with serving(reply=reply) as mock:
        with monkeypatch.context() as patch:
            patch.setattr(grader.Grader, "grade", faulty)
            assert go("--tasks", three, url=mock.url)[0] == 0
        before, old, n = (tmp_path / "out" / ATTEMPTS).read_bytes(), results(tmp_path / "out"), len(mock.chats)
        code, out, err = go("--tasks", three, "--regrade")
    assert code == 0 and len(mock.chats) == n
    assert old["all_fail"] == 3
    assert "changed: all-fail tasks: 3 -> 2" in err and "steered by the grades of their time" in err
    assert (tmp_path / "out" / ATTEMPTS).read_bytes() == before
    assert results(tmp_path / "out")["all_fail"] == 2
    assert go("--reuse")[0] == 0
    assert results(tmp_path / "out")["all_fail"] == 2
    assert Folder(tmp_path / "out").config["grades"] == "regrade-1"


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag ("),
        (["--lim", "3"], "unrecognized arguments: --lim 3; did you mean --limit?"),
        (["--concurency", "3"], "did you mean --concurrency?"),
        (["--Limit=3"], "unrecognized arguments: --Limit=3; did you mean --limit?"),
        (["--url", "http://x"], "did you mean --base-url?"),
        (["3"], "unrecognized arguments: 3 ("),
        (["--band", "nearmiss"], "'nearmiss' (choose from all, near-miss); did you mean near-miss?"),
        (["--thinking", "ON"], "did you mean on?"),
        (["--arms", "resample,swirl"], "no arm 'swirl'"),
        (["--limit", "-1"], "'-1' is not a whole number"),
        (["--base-samples", "0"], "'0' is not a whole number"),
        (["--temperature", "nan"], "not a number"),
        (["--stop-after", "hours=3"], "none of calls=N"),
        (["--stop-after", "usd=3"], "--price"),
        (["--price", "3"], "IN,OUT"),
        (["--extra-body", "[1]"], "not a JSON object"),
        (["--extra-body", '{"x": "sk-SECRET"}'], "'x' looks like a credential"),
        (["--tasks", "missing.jsonl"], "missing.jsonl"),
        (["--tasks", "nonsense"], "nonsense"),
        (["--system", "missing.txt"], "missing.txt"),
        (["--noise-runs", "1", "--arms", "solo"], "--arms"),
        (["--reuse"], "holds no run"),
        (["--regrade"], "holds no run"),
        (["--dry-run", "--tasks", "toy"], "--dry-run"),
        (["--reuse", "--plan"], "--reuse and --plan exclude each other"),
        (["--regrade", "--fresh"], "--regrade and --fresh exclude each other"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(go, argv, says):
    code, out, err = go(*argv)
    assert code == 2
    assert says in err and err.count("\n") == 1 and out == ""


@pytest.mark.parametrize(
    "content",
    ["", '{"id": "a"}\n', "not json\n", '{"id":"a","statement":"s","kind":"stdio","visible":[],"hidden":[]}\n'],
)
def test_a_task_file_that_cannot_be_used(go, tmp_path, content):
    (tmp_path / "bad.jsonl").write_text(content)
    code, _, err = go("--tasks", str(tmp_path / "bad.jsonl"))
    assert code == 2 and "bad.jsonl" in err and err.count("\n") == 1


def test_an_unreadable_parquet(go, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    code, _, err = go("--tasks", str(tmp_path / "bad.parquet"))
    assert code == 2 and "bad.parquet" in err and err.count("\n") == 1


def test_a_plan_writes_nothing(go, three, tmp_path):
    with serving(reply=wrong) as mock:
        code, out, _ = go("--tasks", three, "--plan", "--price", "1,2", url=mock.url)
        assert mock.chats == []
    assert code == 0 and "calls: at most 312" in out and "usd" in out and "mock-model" in out
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_fresh_moves_the_old_folder_aside(go, tmp_path):
    assert go("--dry-run", *SMALL)[0] == 0
    old = (tmp_path / "out" / ATTEMPTS).read_bytes()
    assert go("--dry-run", "--fresh", "--seed", "1", *SMALL)[0] == 0
    assert (tmp_path / "out.1" / ATTEMPTS).read_bytes() == old
    with Log(tmp_path / "out"):  # somebody writes to it
        code, _, err = go("--dry-run", "--fresh")
    assert code == 2 and "another process" in err and not (tmp_path / "out.2").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    code, _, err = go("--dry-run", "--fresh", out="mine")
    assert code == 2 and "no run" in err and (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.slow
def test_fresh_takes_a_folder_that_no_run_can_use_and_what_lies_in_it(go, tmp_path):
    out = tmp_path / "out"
    for k, (name, content) in enumerate([("config.json", "{"), (ATTEMPTS, '{"from": "another version"}\n')], 1):
        out.mkdir(exist_ok=True)
        (out / name).write_text(content)
        (out / "sql").mkdir()
        (out / "sql" / ATTEMPTS).write_text("")
        with Log(out / "sql"):
            code, _, err = go("--dry-run", "--fresh", *SMALL)
            assert code == 2 and "another process" in err and (out / name).read_text() == content
        code, _, err = go("--dry-run", "--fresh", *SMALL)
        assert code == 0 and f"out.{k} now, with sql in it" in err
        assert (tmp_path / f"out.{k}" / name).read_text() == content
        assert not (out / "sql").exists()
        shutil.rmtree(out)


@pytest.mark.slow
def test_reuse_and_regrade_refuse_flags_that_ask_for_something_else(go, three, tmp_path):
    with serving(reply=wrong) as mock:
        args = ["--tasks", three, "--limit", "2", "--arms", "resample,star", *SMALL]
        assert go(*args, url=mock.url)[0] == 0
    assert go(*args, "--reuse")[0] == 0
    assert go("--reuse", "--margin", "3")[0] == 0
    for mode in ("--reuse", "--regrade"):
        for other in (
            "--seed 7",
            "--arms star",
            "--limit 1",
            "--tasks mbpp-bundle",
            "--band near-miss",
            "--full-budget",
        ):
            code, out, err = go(mode, *other.split())
            assert code == 2 and out == "" and err.count("\n") == 1
            assert f"leave {other.split()[0]} out" in err
    code, _, err = go(*args, "--margin", "3")  # nothing is asked, so nobody need be there to answer
    assert code == 0 and "nothing is left to ask" in err


@pytest.mark.slow
def test_a_folder_of_another_command_is_refused(go, tmp_path):
    assert go("--dry-run", *SMALL)[0] == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    (tmp_path / "out" / "config.json").write_text(json.dumps({**config, "command": "sql_calibrate.py"}))
    for mode in ("--reuse", "--regrade", "--limit=3"):
        code, out, err = go("--dry-run", mode, *SMALL)
        assert code == 2 and out == "" and "made by sql_calibrate.py, not by run.py" in err and err.count("\n") == 1


def test_a_file_is_no_folder(go, tmp_path):
    (tmp_path / "out").write_text("")
    for argv in (["--reuse"], ["--regrade"], ["--dry-run"]):
        code, _, err = go(*argv)
        assert code == 2 and "out is a file, not a folder: name" in err and err.count("\n") == 1


@pytest.mark.slow
def test_a_start_that_paid_for_nothing_leaves_no_tasks_behind(go, tmp_path):
    first = task_file(tmp_path / "first.jsonl", [stdio_row(f"t{k}", 2) for k in range(3)])
    other = task_file(tmp_path / "other.jsonl", [stdio_row("t0", 3)])
    with serving(reply=wrong, faults=always(Fault("status", 401, message="no such key"), after=0)) as mock:
        assert go("--tasks", first, *SMALL, url=mock.url)[0] == 4
        mock.faults = lambda request: None
        assert go("--tasks", other, *SMALL, url=mock.url)[0] == 0
    assert results(tmp_path / "out")["tasks"] == 1 and len(list(Folder(tmp_path / "out").cards())) == 1


@pytest.mark.slow
def test_lost_cards_are_written_anew(go, three, tmp_path):
    with serving(reply=wrong) as mock:
        assert go("--tasks", three, *SMALL, url=mock.url)[0] == 0
    cards = tmp_path / "out" / "tasks.jsonl"
    whole = sorted(cards.read_text().splitlines())
    cards.write_text('{"id": "t1", "digest": "of an earlier version"}\n' + whole[0] + "\n")
    assert go("--tasks", three, "--regrade")[0] == 0
    assert go("--reuse")[0] == 0
    assert set(whole) <= set(cards.read_text().splitlines())


@pytest.mark.slow
def test_a_run_whose_settings_were_torn_is_told_as_before_and_goes_on(go, three, tmp_path):
    out = tmp_path / "out"
    with serving(reply=wrong) as mock:
        assert go("--tasks", three, "--limit", "2", *SMALL, url=mock.url)[0] == 0
        told, asked = go("--reuse")[1], len(mock.chats)
        for name in ("config.json", "plan.json"):
            whole = (out / name).read_bytes()
            for damage in (b"", whole[:100], None):
                (out / name).write_bytes(damage) if damage is not None else (out / name).unlink()
                code, said, err = go("--reuse")
                assert (code, said) == (0, told) and err.count(f"{name} is torn or gone") == 1
            code, _, err = go("--tasks", three, "--limit", "2", "--seed", "1", *SMALL, url=mock.url)
            assert code == 2 and "--seed 0 -> 1" in err
            assert (out / name).read_bytes() == whole
        (out / "config.json").write_bytes(b"")
        code, said, err = go("--tasks", three, "--limit", "2", *SMALL, url=mock.url)
        assert code == 0 and said == told and "nothing is left to ask" in err and len(mock.chats) == asked
        (out / "config.json").unlink()
        assert go("--tasks", three, *SMALL, url=mock.url)[0] == 0 and len(mock.chats) > asked


@pytest.mark.slow
def test_settings_that_are_lost_for_good_lead_to_fresh(go, tmp_path):
    """As a folder of an older version lost them: with no copy among its events."""
    assert go("--dry-run", *SMALL)[0] == 0
    (tmp_path / "out" / "events.jsonl").unlink()
    for damage in (b"", b"\0" * 200, None):
        config = tmp_path / "out" / "config.json"
        config.write_bytes(damage) if damage is not None else config.unlink()
        for argv in (["--reuse"], ["--regrade"], ["--dry-run", *SMALL]):
            code, _, err = go(*argv)
            assert code == 2 and "with --fresh" in err and err.count("\n") == 1
    code, _, err = go("--dry-run", "--fresh", *SMALL)
    assert code == 0 and (tmp_path / "out.1" / ATTEMPTS).exists()


@pytest.mark.slow
def test_the_dry_run_is_the_same_in_every_folder_asks_nothing_twice_and_stays_off_a_real_run(go, tmp_path, three):
    first, second = go("--dry-run", "--json"), go("--dry-run", "--json", out="second")
    assert first[0] == second[0] == 0
    timeless = [json.loads(said) for _, said, _ in (first, second)]
    for found in timeless:
        for key in ("seconds", "cost", "verdict", "slots"):
            found.pop(key, None)
    assert timeless[0] == timeless[1]
    assert timeless[0]["all_fail"] >= 2 and timeless[0]["rescued_rows"] >= 1
    sent = sum(row["event"] == "sent" for row in Folder(tmp_path / "out").events())
    code, out, err = go("--dry-run")
    assert code == 0 and "nothing is left to ask" in err
    assert sum(row["event"] == "sent" for row in Folder(tmp_path / "out").events()) == sent
    with serving(reply=wrong) as mock:
        assert go("--tasks", three, *SMALL, url=mock.url, out="real")[0] == 0
    code, _, err = go("--dry-run", out="real")
    assert code == 2 and "real run" in err


@pytest.mark.slow
def test_reuse_needs_neither_endpoint_library_nor_grader(go, tmp_path):
    code, said, _ = go("--dry-run")
    assert code == 0
    script = (
        "import sys\n"
        "for name in ('openai', 'grader', 'sandbox', 'walls', 'pyarrow', 'huggingface_hub'): sys.modules[name] = None\n"
        f"import run; sys.exit(run.main(['--reuse', '--out', {str(tmp_path / 'out')!r}]))"
    )
    again = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert again.stdout == said


def test_any_flag_with_a_slip_in_it_is_named():
    names = [name for name in run.flags()._option_string_actions if len(name) > 4]
    for name in names:
        for k in range(3, len(name)):
            gone, twice = name[:k] + name[k + 1 :], name[:k] + name[k] + name[k:]
            swapped = name[: k - 1] + name[k] + name[k - 1] + name[k + 1 :]
            for slip in {gone, twice, swapped if len(name) > 7 else twice} - {*names}:
                assert nearest(slip, names).startswith("; did you mean --")
        for slip in {name.upper(), name.replace("-", "_"), name[:-1]} - {*names}:
            assert nearest(slip, names) == f"; did you mean {name}?"


def test_each_flag_is_of_one_class():
    parser = run.flags()
    groups = {group.title: [a.dest for a in group._group_actions] for group in parser._action_groups if group.title}
    assert sorted(groups["identity"]) == sorted(ordered(Identity))
    assert sorted(groups["plan"]) == sorted(ordered(Plan))
    assert sorted(groups["free"]) == sorted(ordered(Spread))
    everywhere = Counter(dest for name in ("identity", "plan", "free", "folder") for dest in groups[name])
    assert set(everywhere.values()) == {1}
    assert set(everywhere) == {a.dest for a in parser._actions} - {"help"}
    assert parser.format_help().index("python run.py --dry-run") < parser.format_help().index("--tasks NAME")


KEY = "canary-1234567890"


FAULTS = (Fault("status", 401), Fault("close"), Fault("status", 500, message=f"sent {KEY}"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_the_key_goes_nowhere(tmp_path, three, fault):
    program = "import os\nprint([k for k, v in os.environ.items() if 'canary' in v])\n"
    with serving(reply=lambda request: f"```python\n{program}```", key=None if fault else KEY) as mock:
        if fault:
            mock.faults = always(fault, after=3)
        more = ["--verbose", "--give-up-after", "0.005", "--out", str(tmp_path / "out")]
        command = [sys.executable, str(ROOT / "run.py"), "--tasks", three, *SMALL, *more]
        env = {**os.environ, "OPENAI_BASE_URL": mock.url, "OPENAI_API_KEY": KEY}
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == (4 if fault else 0), ran.stderr
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(
        KEY[:8].encode() in text.replace(b"'canary' in v", b"").replace(b"'canary'", b"") for text in written
    )
    assert KEY[:8] not in ran.stdout + ran.stderr
    if not fault:
        assert {a.got.strip() for a in Folder(tmp_path / "out").attempts()} == {"[]"}


@pytest.mark.slow
def test_version():
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "--version"], capture_output=True, text=True, timeout=20
    )
    assert done.stdout == f"swarm-rescue {VERSION}\n"
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    "body",
    [
        {"x": "sk-SECRET"},
        {"": "sk-proj-abcdefgh"},
        {"api_key": "abc"},
        {"apiKey": "abc"},
        {"X-API-Key": "abc"},
        {"Authorization": "abc"},
        {"extra": {"headers": ["a", {"auth_token": "abc"}]}},
        {"note": "Bearer abcdefghijk"},
        {"url": "http://h/?token=abcdef123"},
        {"url": "http://me:word@h/"},
        {"password": "abc"},
        {"client_secret": "abc"},
        {"x": ["hf_abcdefghijklmnopqrst"]},
    ],
)
def test_what_looks_like_a_key_is_not_written_into_a_folder(body):
    with pytest.raises(ValueError, match=r"looks like a credential.*OPENAI_API_KEY") as why:
        json_object(json.dumps(body))
    assert "SECRET" not in str(why.value) and "abc" not in str(why.value)


@pytest.mark.parametrize(
    "body",
    [
        {"top_k": 20, "min_p": 0.05, "max_tokens": 5, "min_tokens": 1, "stop_token_ids": [1, 2], "seed": 3},
        {"chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "low"}, "skip_special_tokens": False},
        {"guided_json": {"properties": {"password": {"type": "string"}, "token": {"type": "string"}}}},
        {"guided_regex": "token=\\d+", "guided_choice": ["task-based", "risk-averse", "sk-learn"]},
        {"stop": ["</s>", "Bearer of news"], "prompt_cache_key": "run-1", "cache_salt": "abc", "user": "me"},
        {"return_token_ids": True, "include_stop_str_in_output": True, "bad_words": ["secret", "password"]},
        {"provider": {"order": ["a"], "allow_fallbacks": False}, "tokenizer": "x/y", "truncate_prompt_tokens": 5},
        {"response_format": {"type": "json_object"}, "logit_bias": {"50256": -100}, "stop_token": "<|end|>"},
    ],
)
def test_fields_of_a_request_that_are_no_keys_pass(body):
    assert json_object(json.dumps(body)) == body
