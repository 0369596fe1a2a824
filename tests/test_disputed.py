"""What an audit means for a run: a third of the tasks are disputed, by plan, and every figure is known beforehand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import audit
import run
from commands.audited import Audited
from faults import BadInput
from figures.plan import make_plan
from measure import measure
from records import Folder
from tasks import load
from tasksets.task import Task, Test, card
from telling.text import text
from tests.support.lay_out import attempt, base, config, names
from tests.support.lay_out import run as played
from tests.support.mock_endpoint import serving

TASKS = names(12)
DISPUTED = TASKS[::3]  # 4 of 12, none of which anything rescues
RESCUED = {"resample": dict.fromkeys(TASKS[1:3], 0), "ring": dict.fromkeys([*TASKS[1:3], *TASKS[4:6]], 1)}


def cards() -> list[Task]:
    return [Task(name, name, "s", "stdio", (Test("1", "2"),), (Test(name, "3"),)) for name in TASKS]


def audited(**changes: str) -> dict[str, Any]:
    """An audit.json: four disputed, seven passable, one unknown; the last is of another task of that name."""
    rows = {}
    for task in cards():
        verdict = "disputed" if task.id in DISPUTED else "unknown" if task.id == TASKS[1] else "passable"
        reason = {TASKS[0]: "time", "disputed": "several answers"}.get(task.id if verdict == "disputed" else "", "")
        reason = reason or ("several answers" if verdict == "disputed" else "")
        rows[task.id] = {"verdict": verdict, "reason": reason, "digest": changes.get(task.id, task.digest)}
    return {"by_task": rows}


def figures(file: dict[str, Any] | None, **changes: Any) -> Any:
    settings = config(arms=["resample", "ring"], **changes)
    settings["plan"]["only_passable"] = changes.pop("only_passable", False)
    return measure(played(TASKS, RESCUED), settings, cards(), audit=file)


def test_every_rate_is_told_with_and_without_the_disputed_tasks():
    found = figures(audited())["audit"]
    assert found["tasks"] == {"passable": 7, "disputed": 4, "unknown": 1, "unaudited": 0} == found["all_fail"]
    assert found["reasons"] == {"several answers": 3, "time": 1} and list(found["disputed"]) == DISPUTED
    both = found["with_disputed"], found["without_disputed"]
    assert [(side["tasks"], side["all_fail"], side["given"], side["rescued"]) for side in both] == [
        (12, 12, 12, 4), (8, 8, 8, 4)]  # fmt: skip
    assert [side["arms"]["ring"]["rate"] for side in both] == [4 / 12, 4 / 8]
    assert [side["arms"]["resample"]["rate"] for side in both] == [2 / 12, 2 / 8]
    assert [side["arms"]["ring"]["delta"] for side in both] == pytest.approx([2 / 12, 2 / 8])
    assert both[0]["arms"]["resample"]["delta"] is None and not found["passed_all_the_same"]


def test_against_the_control_is_one_figure_in_both_tables():
    settings = config(arms=["resample", "ring"], noise_runs=1)
    settings["plan"]["only_passable"] = False
    again = [attempt(name, "resample", rerun=1, particle=p, round=k, passed=name in TASKS[1:8] and not k)
             for name in TASKS for k in range(settings["plan"]["rounds"])
             for p in range(settings["identity"]["particles"])]  # fmt: skip
    found: Any = measure([*played(TASKS, RESCUED), *again], settings, cards(), audit=audited())
    above = found["paired"]["ring"]["vs_all_resample"]["delta"]
    assert above == pytest.approx((4 - (2 + 7) / 2) / 12) and found["verdict"]["against_runs"] == 2
    sides = [found["audit"][side]["arms"]["ring"] for side in ("with_disputed", "without_disputed")]
    assert sides[0]["delta"] == pytest.approx(above)
    assert sides[0]["interval"] == found["paired"]["ring"]["vs_all_resample"]["interval"]
    kept = [name for name in TASKS if name not in DISPUTED]
    assert sides[1]["delta"] == pytest.approx((4 - (2 + sum(name in TASKS[1:8] for name in kept)) / 2) / len(kept))


def test_without_an_audit_nothing_is_said_and_with_one_nothing_else_changes():
    plain, told = figures(None), figures(audited())
    assert plain["audit"] is None
    assert {**told, "audit": None} == plain
    assert "Audit:" not in text(plain)
    said = " ".join(text(told).split())
    assert "Audit: 4 of 12 all-fail tasks fail their own reference" in said and "(several answers 3, time 1)" in said
    assert "Of 1 of 12 it is not known. Of all tasks asked: 7 passable, 4 disputed, 1 unknown." in said
    assert "ring 4 of 12 4 of 8" in said
    for name in DISPUTED:
        assert name in said
    assert max(map(len, text(told).splitlines())) <= 80


def test_a_verdict_counts_for_the_very_task_alone():
    found = figures(audited(**{DISPUTED[0]: "another", TASKS[1]: "another"}))["audit"]
    assert found["tasks"] == {"passable": 7, "disputed": 3, "unknown": 0, "unaudited": 2}


def test_only_passable_changes_the_population():
    settings = config(arms=["resample", "ring"])
    settings["plan"]["only_passable"] = True
    results = measure(played(TASKS, RESCUED), settings, cards(), audit=audited())
    assert results["intervals"]["ring"]["n"] == 7 and results["intervals"]["ring"]["rescued"] == 3
    assert results["paired"]["ring"]["n"] == 7 and results["pooled"]["n"] == 7
    assert results["all_fail"] == 12  # what the group throws away is what it is
    gone = measure(played(TASKS, RESCUED), settings, cards())
    assert any("audit.json is gone" in said for said in gone["warnings"])


def test_a_disputed_task_that_is_passed_all_the_same_is_told():
    attempts = [*base(TASKS[0]), attempt(TASKS[0], "resample", passed=True), *base(TASKS[1])]
    results = measure(attempts, config(arms=["resample"]), cards(), audit=audited())
    assert results["audit"]["passed_all_the_same"] == 1
    assert "some attempt passes all the same" in " ".join(text(results).split())


def test_the_plan_counts_on_passable_tasks_alone_where_it_is_to():
    settings = config()
    settings["plan"]["only_passable"] = True
    settings["data"] = {"audit": {"passable": 7, "disputed": 4, "unknown": 1, "unaudited": 0}}
    plan = make_plan(settings, 12)
    assert plan["calls"]["base"] == 12 * 8 and plan["calls"]["arms_if_all_fail"] == 7 * 24 * 4
    assert plan["power"]["all"]["tasks"] == 7 and "a reference passes" in plan["population"]["text"]


def test_the_audit_is_found_where_it_lies_and_refused_where_it_is_none(tmp_path):
    out, tasks = tmp_path / "out", tmp_path / "t.jsonl"
    out.mkdir()
    assert Audited.found(None, out, str(tasks)).file is None
    (tmp_path / "audit.json").write_text(json.dumps({"by_task": {}, "beside": True}))
    assert Audited.found(None, out, str(tasks)).file["beside"]
    assert Audited.found(None, out, "toy").file is None  # that set is no file
    (out / "audit.json").write_text(json.dumps({"by_task": {}}))
    assert Audited.found(None, out, str(tasks)).file == {"by_task": {}}
    assert Audited.found(tmp_path / "audit.json", out, "toy").file["beside"]
    (tmp_path / "other.json").write_text("[]")
    for path in (tmp_path / "other.json", tmp_path / "none.json"):
        with pytest.raises(BadInput, match=r"audit\.py"):
            Audited.found(path, out, "toy")


# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────────────

SMALL = ["--base-samples", "2", "--particles", "2", "--rounds", "2", "--concurrency", "4", "--workers", "1",
         "--arms", "resample,solo"]  # fmt: skip


@pytest.mark.slow
def test_a_run_with_a_third_of_its_tasks_disputed(tmp_path, monkeypatch, capsys):
    """Six tasks; two have a wrong reference. A refined prompt is answered right, a bare one never."""
    rows: list[dict[str, Any]] = [
        {"id": f"t{k}", "statement": f"Print {k} times n.", "kind": "stdio", "visible": [["1\n", f"{k}\n"]],
         "hidden": [["5\n", f"{5 * k}\n"]], "reference": f"print({k} * int(input()))"}
        for k in range(2, 8)
    ]  # fmt: skip
    for disputed in rows[:2]:
        disputed["hidden"] = [["5\n", "0\n"]]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert audit.main(["--tasks", str(path), "--out", str(tmp_path / "audited"), "--workers", "1"]) == 0
    monkeypatch.setattr(run, "page", lambda *parts: "")

    def reply(request: Any) -> str:
        asked = "\n".join(message["content"] for message in request.body["messages"])
        k = next(k for k in range(2, 8) if f"Print {k} times n." in asked)
        factor = k if "* int(input())" in asked else request.dice().randrange(10**6) + 100
        return f"```python\nprint({factor} * int(input()))\n```"

    with serving(reply=reply) as mock:
        monkeypatch.setenv("OPENAI_BASE_URL", mock.url)

        def go(out: str, *more: str) -> tuple[int, str, str]:
            monkeypatch.setattr("sys.argv", ["run.py"])
            capsys.readouterr()
            code = run.main(["--tasks", str(path), "--out", str(tmp_path / out), *SMALL, *more])
            said = capsys.readouterr()
            return code, " ".join(said.out.split()), " ".join(said.err.split())

        given = ["--audit", str(tmp_path / "audited" / "audit.json")]
        code, out, err = go("out", *given)
        assert code == 0 and "audit: 4 passable, 2 disputed" in err and "given passable" not in err
        assert "Audit: 2 of 6 all-fail tasks fail their own reference" in out, out
        results = json.loads((tmp_path / "out" / "results.json").read_text())
        sides = results["audit"]["with_disputed"]["arms"], results["audit"]["without_disputed"]["arms"]
        assert [(side["solo"]["rescued"], side["solo"]["n"]) for side in sides] == [(4, 6), (4, 4)]
        assert results["intervals"]["solo"]["n"] == 6
        assert go("out", "--reuse")[1] == out  # the folder holds the audit

        code, out, err = go("out", "--reuse", "--only-passable")
        assert code == 0 and "Exploratory: changed since the plan was written: only_passable" in out
        assert json.loads((tmp_path / "out" / "results.json").read_text())["intervals"]["solo"]["n"] == 4
        code, out, err = go("out", *given, "--only-passable")
        assert code == 2 and "--only-passable" in err

        assert go("none", "--only-passable")[0] == 2
        code, out, err = go("passable", *given, "--only-passable")
        assert code == 0 and "the arms are given passable ones alone" in err
        plan = json.loads((tmp_path / "passable" / "plan.json").read_text())
        assert plan["population"]["audit"]["passable"] == 4 and plan["settings"]["only_passable"]
        results = json.loads((tmp_path / "passable" / "results.json").read_text())
        assert results["verdict"]["planned"] and results["intervals"]["solo"]["n"] == 4
        assert results["audit"]["with_disputed"]["share"] == 1.0
        asked = {(one.task_id, one.arm) for one in Folder(tmp_path / "passable").attempts()}
        assert {task for task, arm in asked if arm != "base"} == {"t4", "t5", "t6", "t7"} and len(asked) == 6 + 4 * 2
        before = len(mock.requests)
        assert "nothing is left to ask" in go("passable", *given, "--only-passable")[2]
        assert go("passable", "--only-passable")[0] == 0  # the folder holds the audit
        assert len(mock.requests) == before

        # who asks for more is given more, and it is said that the plan was another one
        code, out, err = go("passable")
        assert code == 0 and "changed since the plan was written: only_passable" in out
        assert json.loads((tmp_path / "passable" / "results.json").read_text())["intervals"]["solo"]["n"] == 6


def test_a_folder_from_before_there_was_an_audit_goes_on(tmp_path):
    """Its plan has no such setting, which is the same as the default."""
    made = config(arms=["resample", "ring"])
    del made["plan"]["only_passable"]
    results = measure(played(TASKS, RESCUED), made, cards())
    assert results["intervals"]["ring"]["n"] == 12


def test_the_card_of_a_task_is_what_an_audit_is_held_against(tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps({"id": "a", "statement": "s", "kind": "stdio", "visible": [["1", "2"]],
                                                  "hidden": [["2", "3"]]}))  # fmt: skip
    (task,) = load(str(tmp_path / "t.jsonl"))
    file = {"by_task": {"a": {"verdict": "disputed", "reason": "time", "digest": card(task)["digest"]}}}
    found = Audited(file, "t", Path("out"))
    assert found.of(task) == "disputed" and found.of(task.shown()) == "disputed"
    assert found.of(replace(task, hidden=(Test("9", "9"),))) == "unaudited"
