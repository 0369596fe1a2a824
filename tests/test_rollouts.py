"""--rollouts: a base group from elsewhere is not asked for, says the same, and is told as what it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import run
from commands.rollouts import Rollouts, rollouts, unknown
from faults import BadInput
from records import Folder
from swarm import PLAIN, bare
from tasks import load
from tasksets.truth import dumps as truth_of
from tests.support.mock_endpoint import serving
from tests.test_run import SMALL, stdio_row, task_file

G = 4
FLAGS = [*SMALL, "--base-samples", str(G), "--full-budget", "--arms", "resample,star"]


def reply(request):
    """Right on task t0 half of the time, on t1 never at first sight; refined programs are right."""
    factor = int(request.prompt.split("print ")[1].split()[0])
    is_right = "shown test" in request.prompt or (factor == 2 and request.dice().random() < 0.5)
    return f"```python\nprint(int(input()) * {factor if is_right else 1000 + request.dice().randrange(10**6)})\n```"


@pytest.fixture
def go(tmp_path, monkeypatch, capsys):
    """run.py in this process: (exit code, stdout, stderr)."""

    def command(*argv: str, url: str, out: str = "out") -> tuple[int, str, str]:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setattr(run, "page", lambda *parts: "")  # has its own tests, and costs a second
        monkeypatch.setattr(sys, "argv", ["run.py", *argv, "--out", str(tmp_path / out)])
        capsys.readouterr()
        code = run.main(sys.argv[1:])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def two(tmp_path: Path) -> str:
    return task_file(tmp_path / "two.jsonl", [stdio_row(f"t{k}", k + 2) for k in range(2)])


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def attempts(folder: Path) -> list:
    return sorted(Folder(folder).attempts(), key=lambda attempt: attempt.slot)


def rows_file(path: Path, rows: list[dict]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.slow
def test_a_run_from_anothers_rollouts_asks_for_no_base_attempt_and_says_the_same(go, tmp_path, two):
    with serving(reply=reply) as first:
        assert go("--tasks", two, *FLAGS, url=first.url)[0] == 0
    there = str(tmp_path / "out" / "attempts.jsonl")
    with serving(reply=reply) as second:
        code, out, err = go("--tasks", two, *FLAGS, "--rollouts", there, url=second.url, out="again")
        assert code == 0, err
        err_of_the_first = err
        asked = len(second.chats)
        code, _, err = go("--tasks", two, *FLAGS, "--rollouts", there, url=second.url, out="again")
        assert code == 0 and "nothing is left to ask" in err and len(second.chats) == asked
    old, new = results(tmp_path / "out"), results(tmp_path / "again")
    arms = new["budget"]["B"] * len(new["arms"]) * new["all_fail"]
    assert len(first.chats) == 2 * G + arms and asked == arms == new["calls"] == new["cost"]["total"]["calls"]
    assert new["p0_histogram"] == old["p0_histogram"] and sum(old["p0_histogram"]) == 2
    assert new["cost"]["stages"]["base"]["calls"] == 0
    # a reply of each slot, graded here to the same letters
    graded = [[(a.task_id, a.reply, a.visible_tests, a.passed) for a in attempts(tmp_path / folder) if a.arm == "base"]
              for folder in ("out", "again")]  # fmt: skip
    assert sorted(graded[0]) == sorted(graded[1])
    told = new["identity"]["rollouts"]
    assert told.startswith("attempts.jsonl, sha256 ") and told.endswith(", graded here") and str(tmp_path) not in told
    assert f"The base group was not asked here: rollouts from {told}." in " ".join(out.split())
    assert f"base group: {told}; none is asked for" in err_of_the_first


@pytest.mark.slow
def test_counts_are_taken_as_given_and_said_so(go, tmp_path, two):
    counts = rows_file(tmp_path / "c.jsonl", [{"task_id": f"t{k}", "n": G, "passes": p} for k, p in ((0, 3), (1, 0))])
    with serving(reply=reply) as mock:
        code, out, err = go("--tasks", two, *FLAGS, "--rollouts", counts, url=mock.url)
        assert code == 0, err
        assert "t0" not in {request.prompt.split("Task ")[1][:2] for request in mock.chats}
    found = results(tmp_path / "out")
    assert found["p0_histogram"] == [1, 0, 0, 1, 0] and found["identity"]["rollouts"].endswith(", taken as given")
    assert "taken as given." in " ".join(out.split()) and not [w for w in found["warnings"] if "repeat" in w]
    assert found["near_miss"]["all_fail"] == 0  # nobody knows how near a counted failure came
    given = [attempt for attempt in attempts(tmp_path / "out") if attempt.arm == "base"]
    assert {(a.code, a.finish_reason, a.outcome) for a in given} == {
        (None, "given", "pass"),
        (None, "given", "not_run"),
    }
    assert "base" not in (tmp_path / "out" / "rescued.jsonl").read_text()


@pytest.mark.slow
def test_a_limit_in_the_middle_and_another_file(go, tmp_path, two):
    groups = rows_file(tmp_path / "r.jsonl", [{"task_id": t, "reply": "no"} for t in ("t0", "t1") for _ in range(G)])
    with serving(reply=reply) as mock:
        code, *_ = go("--tasks", two, *FLAGS, "--rollouts", groups, "--stop-after", "calls=3", url=mock.url)
        assert code == 3
        code, _, err = go("--tasks", two, *FLAGS, url=mock.url)
        assert code == 2 and "another experiment (--rollouts r.jsonl, sha256" in err
        rows_file(tmp_path / "r.jsonl", [{"task_id": t, "reply": "other"} for t in ("t0", "t1") for _ in range(G)])
        code, _, err = go("--tasks", two, *FLAGS, "--rollouts", groups, url=mock.url)
        assert code == 2 and "another experiment" in err
        rows_file(tmp_path / "r.jsonl", [{"task_id": t, "reply": "no"} for t in ("t0", "t1") for _ in range(G)])
        assert go("--tasks", two, *FLAGS, "--rollouts", groups, url=mock.url)[0] == 0
        found = results(tmp_path / "out")
        assert len(mock.chats) == 2 * len(found["arms"]) * found["budget"]["B"] == found["calls"]
        assert go("--reuse", "--tasks", two, url=mock.url)[0] == 0
        code, _, err = go("--reuse", "--rollouts", groups, url=mock.url)
        assert code == 2 and "leave --rollouts out" in err


# ── the files of trainers ────────────────────────────────────────────────────────────────────────────────────────────
def read(path: Path | str, size: int = 2, band: str = "all") -> Rollouts:
    return rollouts(str(path), size, band, PLAIN)


def replies(found: Rollouts, task) -> list[str]:
    name = found.of(task)
    return [found.reply(name, i).text for i in range(found.size)] if name else []


def test_dumps_are_read_by_their_column_names(tmp_path, two):
    tasks = list(load(two))
    prompts = {task.id: bare(task, PLAIN).messages for task in tasks}
    chat = lambda task: f"<|im_start|>user\n{prompts[task.id][-1]['content']}<|im_end|>\n<|im_start|>assistant\n"  # noqa: E731
    verl = tmp_path / "verl"
    verl.mkdir()
    for step in (9, 10):  # by name 10 stands before 9
        rows = [
            {"input": chat(task), "output": f"{task.id} {step} {i}", "gts": truth_of(task), "score": 1.0, "step": step}
            for task in tasks for i in range(2)
        ]  # fmt: skip
        rows_file(verl / f"{step}.jsonl", rows)
    trl = tmp_path / "completions_00003.parquet"
    pq.write_table(pa.Table.from_pylist([
        {"step": 3, "prompt": chat(task), "completion": f"{task.id} 10 {i}", "reward": 0.0, "advantage": 0.0}
        for i in range(2) for task in tasks
    ]), trl)  # fmt: skip
    talk = rows_file(tmp_path / "talk.jsonl", [
        {"prompt": prompts[task.id], "completion": [{"role": "assistant", "content": f"{task.id} 10 {i}"}]}
        for task in tasks for i in range(2)
    ])  # fmt: skip
    lists = rows_file(tmp_path / "lists.jsonl", [
        {"extra_info": {"task_id": task.id}, "response": [f"{task.id} 10 {i}" for i in range(2)]} for task in tasks
    ])  # fmt: skip
    for path in (verl, trl, talk, lists):
        found = read(path)
        for task in tasks:
            assert replies(found, task) == [f"{task.id} 10 {i}" for i in range(2)], path


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "holds no base rollout: a row has task_id with one of reply"),
        ([{"arm": "star", "task_id": "t0", "reply": "x"}], "holds no base rollout"),
        ([{"task_id": "t0", "text": "x"}], "line 1: holds no reply (it has task_id, text)"),
        ([{"reply": "x"}], "line 1: names no task (it has reply)"),
        ([{"task_id": "t0", "reply": 3}], "line 1: reply: must be text or messages, not 3"),
        ([{"task_id": "t0", "n": 2, "passes": 3}], "line 1: passes: 3 of n = 2 cannot be"),
        ([{"task_id": "t0", "n": 2, "passes": True}], "line 1: n and passes: must be whole numbers"),
        ([{"task_id": "t0", "n": 2, "passes": 0}] * 2, "line 2: task_id: t0 is there twice"),
        ([{"task_id": "t0", "n": 2, "passes": 0}, {"task_id": "t1", "reply": "x"}], "holds both replies and counts"),
        ([[]], "line 1: not an object"),
    ],
)
def test_a_file_that_is_no_groups_is_one_line(tmp_path, rows, says):
    with pytest.raises(ValueError) as told:
        read(rows_file(tmp_path / "r.jsonl", rows))
    assert says in str(told.value)


def test_a_group_of_another_size_and_counts_for_a_near_miss_are_told(tmp_path, two):
    tasks = {task.id: task for task in load(two)}
    found = read(rows_file(tmp_path / "r.jsonl", [{"task_id": "t0", "reply": "x"}]))
    assert found.of(tasks["t1"]) == ""
    with pytest.raises(BadInput, match="t0 has 1 and --base-samples is 2"):
        found.of(tasks["t0"])
    counted = rows_file(tmp_path / "c.jsonl", [{"task_id": "t0", "n": 4, "passes": 0}])
    with pytest.raises(BadInput, match="t0 has 4 and --base-samples is 2"):
        read(counted).of(tasks["t0"])
    with pytest.raises(ValueError, match="near-miss needs to know"):
        read(counted, 4, "near-miss")
    for path in ("none.jsonl", "two.txt", str(tmp_path / "nowhere")):
        with pytest.raises(ValueError, match="is no .jsonl or .parquet file".replace(".", "[.]")):
            read(path)


@pytest.mark.slow
def test_tasks_without_a_group_are_left_out_and_counted(go, tmp_path, two):
    one = rows_file(tmp_path / "r.jsonl", [{"task_id": "t1", "reply": "x"}] * G)
    with serving(reply=reply) as mock:
        code, _, err = go("--tasks", two, *FLAGS, "--rollouts", one, url=mock.url)
        assert code == 0 and "1 without rollouts" in err
        assert results(tmp_path / "out")["tasks"] == 1
        none = rows_file(tmp_path / "n.jsonl", [{"task_id": "elsewhere", "reply": "x"}] * G)
        code, _, err = go("--tasks", two, *FLAGS, "--rollouts", none, url=mock.url, out="none")
        assert code == 2 and "has no task that can be used: 2 without rollouts" in err


def test_groups_of_no_task_are_named(tmp_path, two):
    rows = [{"task_id": name, "reply": "x"} for name in ("t0", "t1", "t9", "odd\033[2J") for _ in range(G)]
    rows.append({"prompt": "of another set", "reply": "x"})
    found = read(rows_file(tmp_path / "r.jsonl", rows))
    for task in load(two):
        found.of(task)
    assert unknown(found) == [
        "2 ids of the rollouts are of no task here: t9, odd\\x1b[2J",
        "1 prompt of the rollouts is of no task here: of another set",
    ]
    every = read(rows_file(tmp_path / "e.jsonl", rows[: 2 * G]))
    for task in load(two):
        every.of(task)
    assert unknown(every) == [] == unknown(None)
    many = read(rows_file(tmp_path / "m.jsonl", [{"task_id": f"u{k}", "n": G, "passes": 0} for k in range(8)]))
    assert unknown(many) == ["8 ids of the rollouts are of no task here: u0, u1, u2, u3, u4 and 3 more"]


def test_a_run_says_which_groups_are_of_no_task(go, tmp_path, two):
    rows = [{"task_id": name, "n": G, "passes": G} for name in ("t0", "t1", "t9")]
    with serving(reply=reply) as mock:
        code, _, err = go("--tasks", two, *FLAGS, "--rollouts", rows_file(tmp_path / "r.jsonl", rows), url=mock.url)
    line = "1 id of the rollouts is of no task here: t9"
    assert code == 0 and line in err
    assert line in json.loads((tmp_path / "out" / "config.json").read_text())["data"]["notes"]
