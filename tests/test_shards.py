"""Shards of a run put together are the run: measured, reported, exported and gone on with. What is no part of it is
refused. The oracle is the run that was never in parts: a made-up one dealt out here, and a real one asked both ways.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import export
import report
from commands.settings import shard
from commands.shards import Part, Shards, merge, together
from faults import RecordsError, TaskError
from figures.plan import make_plan, plan_digest
from measure import measure
from records import ATTEMPTS, AUDIT, CARDS, CHECKS, CONFIG, EVENTS, OWED, PLAN, Folder, Log
from rows.found import rescued
from tasks import load
from tasksets.task import from_card, seeded
from tests.support import planted_run
from tests.support.mock_endpoint import serving
from tests.test_run import SMALL, go, results, stdio_row, task_file, wrong

OF = 3
COSTS = {"seconds", "cost"}  # of which times are a part
__all__ = ["go"]  # a fixture


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole run in `whole`, and the same in shards `1`, `2`, `3`."""
    at = tmp_path_factory.mktemp("planted")
    planted_run.make(at / "whole", 7, noise_runs=1)
    config = json.loads((at / "whole" / CONFIG).read_text())
    config["data"] |= {"asked": 7, "notes": []}
    plan = make_plan(config, 7) | {"written": 1.0}
    config |= {"plan_digest": plan_digest(plan), "graded_under": ["one"], "command": "run.py"}
    cards = sorted(read_lines(at / "whole" / CARDS), key=lambda card: seeded(0, card["id"]))
    write_lines(at / "whole" / CARDS, cards)
    checks = [{"task_id": card["id"], "program": "p", "tests": "spare/1/x", "rules": "", "letters": "P", "flags": []}
              for card in cards]  # fmt: skip
    write_lines(at / "whole" / CHECKS, checks)
    part = Part((1, OF))
    list(part.noting([from_card(card) for card in cards]))
    for number in range(OF + 1):
        folder, made = at / (str(number) or "0"), dict(config)
        if number:
            folder.mkdir()
            part.shard = (number, OF)
            made = part.within({**config})
            own = {card["id"] for card in cards[number - 1 :: OF]}
            for name, key in ((CARDS, "id"), (ATTEMPTS, "task_id"), (CHECKS, "task_id")):
                write_lines(folder / name, [row for row in read_lines(at / "whole" / name) if row[key] in own])
            shutil.copy(at / "whole" / EVENTS, folder / EVENTS)
        else:
            folder = at / "whole"
        (folder / PLAN).write_text(json.dumps(plan | {"written": 1.0 + number}))
        digest = plan_digest(plan | {"written": 1.0 + number})
        (folder / CONFIG).write_text(json.dumps({**made, "plan_digest": digest}))
    return at


@pytest.fixture
def parts(planted: Path, tmp_path: Path) -> list[Path]:
    """Copies to be spoiled."""
    for number in range(1, OF + 1):
        shutil.copytree(planted / str(number), tmp_path / str(number))
    return [tmp_path / str(number) for number in range(1, OF + 1)]


def measured(folder: Folder) -> dict[str, Any]:
    made = measure(folder.attempts(), folder.config, folder.cards(), folder.checks(), folder.events(), folder.plan)
    return {key: value for key, value in made.items() if key not in COSTS}


def change(folder: Path, edit: Callable[[dict[str, Any]], object], name: str = CONFIG) -> None:
    held = json.loads((folder / name).read_text())
    edit(held)
    (folder / name).write_text(json.dumps(held))


# ── which tasks ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("of", [1, 2, 3])
def test_every_task_is_in_one_shard(of: int) -> None:
    every = [task.id for task in load("toy")]
    asked = [[task.id for task in Part((number, of)).of(load("toy"))] for number in range(1, of + 1)]
    assert sorted(name for names in asked for name in names) == sorted(every)
    assert max(map(len, asked)) - min(map(len, asked)) <= 1
    assert [
        asked[k % of][k // of] for k in range(len(every))
    ] == every  # by its place, so that a larger limit only adds
    assert list(Part(None).of(load("toy", 2))) == list(load("toy", 2))


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "1/2/3", "a/b", "-1/2", "1.0/2"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(ValueError, match="give I/N"):
        shard(text)
    assert shard("2/2") == (2, 2) and shard("1/1") == (1, 1)


def test_a_shard_without_a_task_is_refused() -> None:
    part = Part((4, 4))
    list(part.noting(load("toy")))
    with pytest.raises(TaskError, match="--shard 4/4: 3 tasks leave none for it: use fewer shards"):
        part.within({})  # type: ignore[typeddict-item]
    part.shard = (3, 4)
    assert part.within({})["shard"]["tasks"] == 1 and part.most({"largest": 300}) == 100  # type: ignore[typeddict-item]
    part.shard = None
    assert part.within({}) == {} and part.most({"largest": 200, "given": 100}) == 300  # type: ignore[typeddict-item, comparison-overlap]


# ── together they are the run ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_shards_measure_as_the_run_and_so_does_what_they_merge_into(planted: Path, parts: list[Path]) -> None:
    whole = Folder(planted / "whole")
    [shards] = together(reversed(parts))
    assert isinstance(shards, Shards) and not shards.missing
    assert measured(shards) == measured(whole)
    assert measured(shards)["verdict"]["planned"]
    merge(shards, parts[0].parent / "merged")
    merged = Folder(parts[0].parent / "merged")
    assert measured(merged) == measured(whole) and "shard" not in merged.config
    passing = [[a for a in folder.attempts() if a.passed] for folder in (whole, merged)]
    rows = [rescued(p, list(f.cards()), f.config, measured(f)) for p, f in zip(passing, (whole, merged), strict=True)]
    assert rows[0] == rows[1] and rows[0].count("\n") == measured(whole)["rescued_rows"] > 0
    assert [card.id for card in merged.cards()] == [card.id for card in whole.cards()]
    # A crash that loses the settings of the merged run finds them again: not those of a shard.
    (merged.path / CONFIG).unlink()
    assert Folder(merged.path).config == merged.config or "shard" not in Folder(merged.path).config


@pytest.mark.slow
def test_a_shard_alone_and_one_that_is_missing_have_no_verdict_by_the_plan(parts: list[Path], capsys: Any) -> None:
    for some in (parts[:1], parts[::2]):
        [shards] = together(some)
        assert isinstance(shards, Shards)
        made = measured(shards)
        n = len(made["by_task"])
        assert "the run is not finished" in made["verdict"]["exploratory"] and not made["verdict"]["planned"]
        assert f"Not begun: {7 - n} of 7 tasks of the plan, which no figure counts." in made["warnings"]
    assert report.main([str(path) for path in parts[::2]]) == 0
    said = capsys.readouterr()
    assert "warning: shard 2/3 is not among these" in said.err and "Not begun: 2 of 7 tasks" in said.out
    assert report.main([str(parts[0])]) == 0
    assert "shards 2/3, 3/3 are not among these" in capsys.readouterr().err


def test_of_more_shards_than_tasks_the_empty_ones_are_not_missing(parts: list[Path]) -> None:
    for number, path in enumerate(parts, 1):
        change(path, lambda config, number=number: config["shard"].update(of=9, number=number))
    [shards] = together(parts)
    assert isinstance(shards, Shards) and shards.missing == ["4/9", "5/9", "6/9", "7/9"]


def test_what_was_paid_in_a_shard_and_not_graded_is_kept(parts: list[Path]) -> None:
    row = {"slot": ["t", "base", 0, 0, 0], "task_sha": "", "prompt_sha": "", "reply": {"text": ""}}
    write_lines(parts[1] / OWED, [row])
    whole = (parts[2] / ATTEMPTS).read_bytes()
    (parts[2] / ATTEMPTS).write_bytes(whole[:-30])  # torn: what it held is owed, and no other line is
    merge(together(parts)[0], parts[0].parent / "merged")  # type: ignore[arg-type]
    with Log(parts[0].parent / "merged") as log:
        assert len(log.owed()) == 1 and any("torn" in line or "not readable" in line for line in log.mended)
        assert len(log) == sum(len(list(Folder(path).attempts())) for path in parts)


@pytest.mark.slow
def test_export_takes_shards_as_one_run(planted: Path, parts: list[Path], capsys: Any) -> None:
    at = parts[0].parent
    for kind in ("rows", "difficulty"):
        assert export.main(["--out", str(planted / "whole"), "--format", kind, "--to", str(at / "a")]) == 0
        assert export.main([f"--out={path}" for path in parts] + ["--format", kind, "--to", str(at / "b")]) == 0
        assert "missing" not in capsys.readouterr().err
        assert (at / "a" / "train.jsonl").read_bytes() == (at / "b" / "train.jsonl").read_bytes()
        shutil.rmtree(at / "a")
        shutil.rmtree(at / "b")
    assert export.main([f"--out={path}" for path in parts[:2]] + ["--to", str(at / "c")]) == 0
    assert "shard 3/3 is not among these" in capsys.readouterr().err
    (parts[2] / ATTEMPTS).unlink()  # one that has asked nothing yet
    assert export.main([f"--out={path}" for path in parts] + ["--to", str(at / "d")]) == 0
    assert (at / "c" / "train.jsonl").read_bytes() == (at / "d" / "train.jsonl").read_bytes()


# ── what is no part of it ────────────────────────────────────────────────────────────────────────────────────────────

OTHERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another seed": (lambda c: c["identity"].update(seed=1), "different runs (--seed)"),
    "another model": (lambda c: c["identity"].update(model="b"), "different runs (--model)"),
    "a larger plan": (lambda c: c["plan"].update(limit=9), "different plans (--limit all -> 9): go on"),
    "other tasks": (lambda c: c["shard"].update(order="0"), "different tasks: begin them anew"),
    "another number of shards": (lambda c: c["shard"].update(of=4), "shards 1/3 and 2/4, and no parts of one run"),
    "the same shard again": (lambda c: c["shard"].update(number=1), "shard 1/3 is named twice"),
    "a regrade": (lambda c: c.update(grades="regrade-1"), "different runs (--regrade)"),
    "a dry run": (lambda c: c.update(dry_run=True), "different runs (--dry-run)"),
    "another file of arms": (lambda c: c.update(apart={"x": {"sha256": "1"}}), "different runs (--arms)"),
    "another command": (lambda c: c.update(command="calibrate.py"), "was made by calibrate.py"),
    "a whole run": (lambda c: c.pop("shard"), "put the shards of each run together first"),
}


@pytest.mark.parametrize("how", OTHERS)
def test_what_is_no_part_of_the_run_is_refused_by_both_commands(how: str, parts: list[Path], capsys: Any) -> None:
    edit, says = OTHERS[how]
    change(parts[1], edit)
    assert report.main([*map(str, parts), "--merge", str(parts[0].parent / "merged")]) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and not said.out
    assert export.main([f"--out={path}" for path in parts]) == 2
    assert says in capsys.readouterr().err
    assert not (parts[0].parent / "merged").exists()


def test_two_audits_are_refused_and_a_task_in_two_shards(parts: list[Path]) -> None:
    (parts[1] / AUDIT).write_text(json.dumps({"by_task": {}}))
    with pytest.raises(RecordsError, match="different audits: copy the one that counts"):
        together(parts)
    (parts[1] / AUDIT).unlink()
    write_lines(parts[1] / CARDS, read_lines(parts[0] / CARDS))
    with pytest.raises(RecordsError, match="both hold"):
        list(together(parts)[0].cards())


def test_a_plan_that_was_changed_in_one_shard_is_changed_in_the_run(parts: list[Path]) -> None:
    for path in parts:
        change(path, lambda config: config["plan"].update(margin=3.0))
    row = {"time": 5.0, "after_attempts": 3, "changed": ["--margin none -> 3"], "plan": {}}
    for path in parts[1:]:
        change(path, lambda plan: plan["amendments"].append(row), PLAN)
    change(parts[0], lambda plan: plan["settings"].update(margin=3.0), PLAN)  # begun later, under the new one
    plan = together(parts)[0].plan
    assert plan and plan["settings"]["margin"] is None and plan["amendments"] == [row, row] and plan["written"] == 2.0


@pytest.mark.slow
def test_merging_writes_over_nothing(parts: list[Path], capsys: Any) -> None:
    names = [*map(str, parts)]
    assert report.main([*names, "--merge", str(parts[0])]) == 2
    assert "exists: name another folder with --merge" in capsys.readouterr().err
    (parts[0].parent / "file").write_text("")
    assert report.main([*names, "--merge", str(parts[0].parent / "file" / "x")]) == 5
    assert "name another --merge" in capsys.readouterr().err
    change(parts[0], lambda config: config.pop("shard"))
    assert report.main([names[0], "--merge", str(parts[0].parent / "m")]) == 2
    assert "--merge is for the shards of a run" in capsys.readouterr().err


def test_prices_that_differ_are_no_price(parts: list[Path]) -> None:
    assert measure((), together(parts)[0].config)["cost"]["price"] is None
    for path in parts:
        change(path, lambda config: config.update(price=[1.0, 2.0]))
    assert together(parts)[0].config["price"] == [1.0, 2.0]
    change(parts[2], lambda config: config.update(price=None))
    assert together(parts)[0].config["price"] is None


# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--share-round0"], ["--noise-runs", "1", "--full-budget"]])
def test_shards_merged_are_byte_for_byte_the_run(go: Any, tmp_path: Path, more: list[str], capsys: Any) -> None:
    tasks = task_file(tmp_path / "seven.jsonl", [stdio_row(f"t{k}", k + 2) for k in range(7)])

    def reply(request: Any) -> str:
        """Some pass by chance of their seed."""
        factor = request.prompt.split("print ")[1].split()[0]
        return f"```python\nprint({factor} * int(input()))\n```" if request.seed % 9 == 0 else wrong(request)

    with serving(reply=reply) as mock:
        assert go("--tasks", tasks, *SMALL, *more, url=mock.url, out="whole")[0] == 0
        asked = sorted(request.seed for request in mock.chats)
        mock.requests.clear()
        for number in (1, 2, 3):
            code, out, err = go(
                "--tasks", tasks, *SMALL, *more, "--shard", f"{number}/3", url=mock.url, out=str(number)
            )
            assert code == 0 and f"this is shard {number}/3 of a run" in err and "Not begun" in out
            assert "to continue" not in err  # all that is its own is there
            assert f"shard {number}/3: {3 if number == 1 else 2} of 7 tasks are asked here" in err
        assert sorted(request.seed for request in mock.chats) == asked
        # A shard's folder goes on as that shard alone, and a whole run's as a whole.
        for flags, out, says in (([], "1", "give --shard 1/3"), (["--shard", "2/3"], "1", "holds shard 1/3"),
                                 (["--shard", "1/3"], "whole", "leave --shard out")):  # fmt: skip
            code, _, err = go("--tasks", tasks, *SMALL, *more, *flags, url=mock.url, out=out)
            assert code == 2 and says in err
        code, _, err = go("--tasks", tasks, *SMALL, *more, "--shard", "1/3", url=mock.url, out="1")
        assert code == 0 and "nothing is left to ask" in err
        names = [str(tmp_path / name) for name in "312"]
        assert report.main([*names, "--merge", str(tmp_path / "merged")]) == 0
        assert "not among these" not in capsys.readouterr().err
        code, out, err = go("--reuse", out="merged")
        assert code == 0 and "this is shard" not in err
        whole, merged = results(tmp_path / "whole"), results(tmp_path / "merged")
        for each in (whole, merged):
            del each["seconds"], each["cost"]["wall_seconds"], each["cost"]["slots"]
        for path in (whole, merged):
            for bill in (path["cost"]["total"], *path["cost"]["stages"].values(), *path["cost"]["arms"].values()):
                del bill["cpu_seconds"], bill["latency_seconds"]
        assert json.dumps(whole) == json.dumps(merged) and whole["rescued_rows"] > 0 and whole["verdict"]["planned"]
        for name in ("rescued.jsonl", "rescued-unverified.jsonl", CARDS):
            assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()
        n = len(mock.chats)
        code, _, err = go("--tasks", tasks, *SMALL, *more, url=mock.url, out="merged")
        assert code == 0 and "nothing is left to ask" in err and len(mock.chats) == n
        # Without one shard the run can be gone on with: only that shard's tasks are asked.
        assert report.main([*names[:2], "--merge", str(tmp_path / "two")]) == 0
        mock.requests.clear()
        assert go("--tasks", tasks, *SMALL, *more, url=mock.url, out="two")[0] == 0
        assert results(tmp_path / "two")["by_task"] == whole["by_task"]
        own = {a.seed for a in Folder(tmp_path / "2").attempts()}
        assert {request.seed for request in mock.chats} == own
        # Rows that appear between make other places: the shard refuses to ask another's tasks.
        task_file(tmp_path / "seven.jsonl", [stdio_row(f"t{k}", k + 2) for k in range(6)])
        code, _, err = go("--tasks", tasks, *SMALL, *more, "--shard", "1/3", url=mock.url, out="1")
        assert code == 2 and "so that this shard would ask those of another one" in err


def test_a_plan_of_a_shard_says_what_it_is(go: Any, tmp_path: Path) -> None:
    code, out, _ = go("--dry-run", "--plan", "--shard", "2/2")
    assert code == 0 and "shard 2/2: 1 of 3 tasks are asked here; what follows is of all shards together" in out
    assert not (tmp_path / "out").exists()
    code, _, err = go("--dry-run", "--plan", "--shard", "4/4")
    assert code == 2 and "use fewer shards" in err
