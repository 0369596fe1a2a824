"""export.py: which programs and tasks become rows, in which columns and files; nothing hidden, nothing of a swarm."""

from __future__ import annotations

import json
import shutil
import typing
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import export
from figures.verified import program_of
from records import Folder
from rows import columns, files, formats
from rows.columns import SCHEMA_VERSION
from rows.found import Choice, Run
from swarm import PLAIN, Attempt, Prompt, bare
from tasks import load
from tasksets.task import Task, card
from tasksets.truth import loads
from tests.support import describe, hub
from tests.support.lay_out import attempt, config
from tests.support.thin import thinned

PROGRAMS = [name for name in formats.FORMATS if not formats.of_tasks(name)]
SWARM = "Your best program so far"


def task_row(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "statement": f"Print {name}.",
        "kind": "stdio",
        "visible": [[f"shown {name}\n", f"{i}\n"] for i in range(5)],
        "hidden": [[f"HIDDEN {name} {i}\n", f"SECRET {name} {i}\n"] for i in range(4)],
        "reference": "REFERENCE",
        "spare": [["SPARE\n", "SPARE\n"]],
    }


class Laid:
    """A run folder laid out by hand: a task file, its cards, its attempts."""

    def __init__(self, folder: Path, tasks: Path, **changes: Any) -> None:
        self.folder, self.config = folder, config(tasks=str(tasks), revision=None, base_samples=4, **changes)
        self.config["data"] = {"licence": None}
        self.tasks = {task.id: task for task in load(str(tasks))}
        self.attempts: list[Attempt] = []

    def add(self, name: str, arm: str, passed: bool = False, fresh: bool = True, **more: Any) -> None:
        task: Task = self.tasks[name]
        prompt = bare(task, PLAIN) if fresh else Prompt([{"role": "user", "content": SWARM}])
        made = attempt(name, arm, passed=passed, **more)
        self.attempts.append(replace(made, prompt_sha=prompt.sha(), task_sha=task.digest))

    def base(self, name: str, passes: int = 0, whole: bool = True) -> None:
        for i in range(4 if whole else 3):
            self.add(name, "base", i < passes, particle=i, code=f"base {i}\n")

    def write(self) -> Path:
        self.folder.mkdir(parents=True)
        cards = [card(task) for task in self.tasks.values()]
        for name, rows in (("tasks", cards), ("attempts", map(asdict, self.attempts))):
            (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.folder / "config.json").write_text(json.dumps(self.config))
        return self.folder


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "somebody" / "t.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(task_row(name)) + "\n" for name in ("a", "b", "c", "d")))
    return path


@pytest.fixture
def two(tmp_path: Path, tasks: Path) -> list[Path]:
    """Two runs of four tasks. a and b are all-fail in both; c passes 1 of 4, then none; the group of d is not whole."""
    one = Laid(tmp_path / "one", tasks, seed=0, noise_runs=1, model="m")
    for name, passes in (("a", 0), ("b", 0), ("c", 1)):
        one.base(name, passes)
    one.base("d", whole=False)
    one.add("a", "ring", True, fresh=False, code="x = 1\n")
    one.add("a", "ring", True, fresh=False, code="x = 2\n", round=1)
    one.add("a", "star", True, fresh=True, code="x = 1  \n\n")  # the first again, but for blanks: and on-policy
    one.add("a", "resample", True, rerun=1, code="x = 3\n")
    one.add("a", "solo", visible="PPPPW")
    one.add("a", "solo", outcome="refused", particle=1)
    one.add("b", "ring")
    one.add("d", "ring", True, code="of a group that is not whole\n")
    other = Laid(tmp_path / "two", tasks, seed=1, model="m")
    for name in ("a", "b", "c"):
        other.base(name)
    other.add("a", "ring", True, fresh=False, code="x = 2\r\n")
    other.add("b", "star", True, fresh=False, code="y = 1\n")
    other.add("c", "resample", True, code="z = 1\n")
    return [one.write(), other.write()]


def run(*argv: str | Path) -> int:
    return export.main([str(word) for word in argv])


def outs(folders: list[Path]) -> list[str | Path]:
    return [word for folder in folders for word in ("--out", folder)]


def read(folder: Path, part: str = "train") -> list[dict[str, Any]]:
    path = folder / f"{part}.parquet"
    if path.exists():
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in (folder / f"{part}.jsonl").read_text().splitlines()]


def exported(to: Path, *argv: str | Path) -> list[dict[str, Any]]:
    assert run(*argv, "--to", to) == 0
    return read(to)


# ── which rows ───────────────────────────────────────────────────────────────────────────────────────────────────────
def program(row: dict[str, Any]) -> tuple[str, str]:
    return row["task_id"], " ".join(row["completion"].removeprefix("```python\n").removesuffix("```").split())


A, B, C = "abc"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "first_only", "both"),
    [
        ([], [(A, "x = 2"), (A, "x = 1")], [(A, "x = 2"), (A, "x = 1"), (B, "y = 1"), (C, "z = 1")]),
        (["--per-task", "1"], [(A, "x = 1")], [(A, "x = 1"), (B, "y = 1"), (C, "z = 1")]),
        (["--also", "reruns"], [(A, "x = 2"), (A, "x = 1"), (A, "x = 3")], None),
        (["--also", "base"], [(A, "x = 2"), (A, "x = 1"), (C, "base 0")], None),
        (["--also", "base,reruns", "--per-task", "1"], [(A, "x = 3"), (C, "base 0")], None),
    ],
)
def test_distinct_rescues_of_whole_groups_and_more_on_request(two, tmp_path, flags, first_only, both):
    rows = exported(tmp_path / "x", "--out", two[0], "--format", "rows", *flags)
    assert sorted(map(program, rows)) == sorted(first_only)
    if both is not None:
        for order in (two, two[::-1]):
            rows = exported(tmp_path / "x", *outs(order), "--format", "rows", *flags)
            assert sorted(map(program, rows)) == sorted(both)


def test_of_equal_programs_the_one_on_the_bare_prompt_is_kept(two, tmp_path):
    rows = {program(row): row for row in exported(tmp_path / "x", *outs(two[::-1]), "--format", "rows")}
    assert rows[A, "x = 1"]["source"] == "star" and rows[A, "x = 1"]["on_policy"]
    assert not rows[A, "x = 2"]["on_policy"]


def test_what_run_writes_and_the_format_rows_are_the_same(two, tmp_path):
    from rows.found import rescued

    of = Run.read(Folder(two[0]))
    exported(tmp_path / "x", "--out", two[0], "--format", "rows")
    assert (tmp_path / "x" / "train.jsonl").read_text() == rescued(of.passing, of.cards.values(), of.config, of.results)


def test_a_pair_is_a_pass_and_a_failure_of_one_task_the_models_own_first(two, tmp_path):
    rows = exported(tmp_path / "x", *outs(two), "--format", "pairs")
    assert [row["task_id"] for row in rows] == ["a", "a", "b", "c"]
    assert [row["rejected"][0]["content"] for row in rows] == [f"```python\nbase {i}\n```" for i in (0, 1, 0, 1)]
    for row in rows:
        assert row["chosen"] != row["rejected"] and row["prompt"][-1]["role"] == "user"
        assert (row["rejected_source"], row["rejected_outcome"], row["rejected_on_policy"]) == (
            "base", "wrong_answer", True
        )  # fmt: skip


@pytest.mark.slow
def test_a_row_a_task_counts_all_runs_that_asked_alike(two, tmp_path):
    rows = {row["task_id"]: row for row in exported(tmp_path / "x", *outs(two), "--format", "difficulty")}
    kept = ("base_passes", "base_attempts", "arm_passes", "arm_attempts", "all_fail", "rescued", "rescued_by", "runs")
    assert {name: [row[key] for key in kept] for name, row in rows.items()} == {
        "a": [0, 8, 5, 6, True, True, "resample,ring,star", 2],
        "b": [0, 8, 1, 2, True, True, "star", 2],
        "c": [1, 8, 1, 1, False, False, "resample", 2],
        "d": [0, 3, 1, 1, False, False, "ring", 1],
    }
    assert rows["a"]["best_fitness"] == 1.0 and "somebody" not in json.dumps(rows)
    for population, names in (("all-fail", "ab"), ("rescued", "ab"), ("mixed", "c"), ("all", "abcd")):
        rows = exported(tmp_path / "x", *outs(two), "--format", "difficulty", "--population", population)
        assert "".join(row["task_id"] for row in rows) == names


def test_two_models_are_two_rows_a_task_and_no_row_of_a_reward(two, tmp_path, tasks, capsys):
    third = Laid(tmp_path / "three", tasks, model="another")
    third.base("a", 4)
    rows = exported(tmp_path / "x", *outs([*two, third.write()]), "--format", "difficulty")
    assert [(row["model"], row["base_passes"]) for row in rows if row["task_id"] == "a"] == [("m", 0), ("another", 4)]
    assert run(*outs([two[0], third.folder]), "--format", "grpo") == 2
    assert "these runs differ in --model, so one row cannot tell of all" in capsys.readouterr().err


# ── the columns ──────────────────────────────────────────────────────────────────────────────────────────────────────
def test_the_page_of_columns_is_made_from_the_types():
    page = describe.TARGET_OF_ROWS.read_text()
    assert page == describe.page_of_rows(), "python -m tests.support.describe rows > docs/rows.md"
    assert all(key.said for name in formats.FORMATS for key in describe.columns(name))


def check(value: Any, kind: Any, where: str) -> None:
    """A value has the type of its column, all the way down; and no list that could be empty, nor null."""
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind)
        assert value.keys() == hints.keys(), where
        for name, of in hints.items():
            check(value[name], of, f"{where}.{name}")
    elif typing.get_origin(kind) is list:
        assert value, where
        for each in value:
            check(each, typing.get_args(kind)[0], f"{where}[]")
    else:
        assert type(value) is kind, where


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(formats.FORMATS, 3))
def test_every_row_has_the_columns_of_its_type_and_loads_with_any_other(two, tmp_path, name):
    rows = exported(tmp_path / "x", *outs(two), "--format", name)
    assert rows
    for row in rows:
        check(row, formats.columns_of(name), name)
    if name.startswith("verl"):  # the same schema also where there is no row
        no_run = Laid(tmp_path / "none", Path(Run.read(Folder(two[0])).identity["tasks"]))
        exported(tmp_path / "y", "--out", no_run.write(), "--format", name)
        schemas = [pq.read_schema(tmp_path / at / "train.parquet") for at in "xy"]
        assert schemas[0] == schemas[1] == columns.schema(formats.columns_of(name))
    told = {row.get("schema_version", (row.get("extra_info") or {}).get("schema_version")) for row in rows}
    assert told == {SCHEMA_VERSION}


@pytest.mark.parametrize("name", thinned(formats.FORMATS, 3))
def test_nothing_hidden_and_nothing_of_a_swarm_is_in_a_row(two, tmp_path, name, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    exported(tmp_path / "x", *outs(two), "--format", name)
    for path in (tmp_path / "x").iterdir():
        held = json.dumps(read(tmp_path / "x")) if path.suffix == ".parquet" else path.read_text()
        for word in ("REFERENCE", "SPARE", SWARM, "sk-of-somebody", "somebody"):
            assert word not in held, (path, word)
        for word in ("HIDDEN", "SECRET", "shown a"):  # no bare prompt of these tasks shows a test
            assert (word in held) == (name in ("grpo", "verl-rl") and path.name != "README.md"), (path, word)


def test_the_ground_truth_is_the_tasks_tests(two, tmp_path, tasks):
    by_id = {task.id: task for task in load(str(tasks))}
    rows = exported(tmp_path / "x", *outs(two), "--format", "verl-rl")
    assert sorted(row["extra_info"]["task_id"] for row in rows) == list("abcd")
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2, 3]
    for row in rows:
        task = by_id[row["extra_info"]["task_id"]]
        truth = loads(row["reward_model"]["ground_truth"])
        assert (truth.visible, truth.hidden) == (task.visible, task.hidden)
        assert row["prompt"] == bare(task, PLAIN).messages and row["data_source"] == "t"


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(formats.FORMATS, 3))
def test_the_draws_of_a_run_count_once_whatever_the_format(two, tmp_path, name, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(two[0], copy)
    assert run(*outs([two[0], copy]), "--format", name, "--to", tmp_path / "to") == 2
    said = capsys.readouterr().err
    assert (
        f"{two[0]} and {copy} hold the same draws (" in said
        and "asked alike, with --seed 0)" in said
        and said.count("\n") == 1
    )
    assert not (tmp_path / "to").exists()


def test_runs_of_one_seed_that_share_no_task_are_other_draws(two, tmp_path, tasks):
    other = tasks.with_name("u.jsonl")
    other.write_text(json.dumps(task_row("e")) + "\n")
    made = Laid(tmp_path / "three", other, seed=0, noise_runs=1, model="m")
    made.base("e")
    assert len(exported(tmp_path / "to", *outs([two[0], made.write()]), "--format", "difficulty")) == 5


def test_a_run_without_a_pass_is_told_so_and_no_file_is_named_that_is_not_there(two, tmp_path, capsys):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "tasks.jsonl", "attempts.jsonl"):
        kept = (two[0] / name).read_text().splitlines(True)
        (bare / name).write_text("".join(line for line in kept if '"passed":true' not in line.replace(" ", "")))
    assert run("--out", bare) == 0
    said = capsys.readouterr()
    assert said.out.startswith("no row: ") and "train.jsonl" not in said.out + said.err


def test_rows_that_were_never_run_on_the_spare_tests_are_counted(two, tmp_path, capsys):
    assert run("--out", two[0], "--also", "base", "--to", tmp_path / "to") == 0
    said, card_ = capsys.readouterr().err, (tmp_path / "to" / "README.md").read_text()
    line = "2 rows are not verified yet: their programs were never run on the spare tests. Repeat the run's command"
    assert f"warning: {line}" in said and line in card_  # the third row is the base group's
    assert "README.md" in said and "the card" in said and "3 rows" in said
    seen = [{"task_id": "a", "program": program_of(code), "tests": "verify/spare-2/x", "letters": "P", "disputed": 0,
             "failed": None, "flags": [], "rules": "r", "passed_unseen": 1}
            for code in ("x = 1  \n\n", "x = 1\n", "x = 2\n")]  # fmt: skip
    (two[0] / "checks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in seen))
    assert run("--out", two[0], "--also", "base", "--to", tmp_path / "to") == 0
    assert "not verified yet" not in capsys.readouterr().err + (tmp_path / "to" / "README.md").read_text()
    assert run("--out", two[1], "--format", "difficulty", "--to", tmp_path / "tasks") == 0
    assert "not verified yet" not in capsys.readouterr().err


def test_tasks_that_have_moved_or_changed_are_told(two, tmp_path, tasks, capsys):
    there = tmp_path / "moved.jsonl"
    shutil.move(tasks, there)
    assert run("--out", two[0], "--format", "grpo") == 2
    assert "there is no file" in capsys.readouterr().err
    assert not (two[0] / "export" / "grpo").exists()  # not half of it either
    assert len(exported(tmp_path / "x", "--out", two[0], "--format", "grpo", "--tasks", there)) == 4
    changed = [task_row(name) | {"hidden": [["1", "other"]]} if name == "b" else task_row(name) for name in "abcd"]
    there.write_text("".join(json.dumps(row) + "\n" for row in changed))
    assert run("--out", two[0], "--format", "grpo", "--tasks", there) == 2
    assert "1 tasks of" in (said := capsys.readouterr().err) and "b among them" in said
    assert run("--out", two[0], "--format", "trl") == 0  # rows of programs need no test


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_tasks_are_held_back_by_their_id_alone(two, tmp_path):
    held = {}
    for name in ("trl", "verl-rl", "difficulty"):
        to = tmp_path / name
        assert run(*outs(two), "--format", name, "--held-back", "80", "--to", to) == 0
        train, test = ({row.get("task_id") or row["extra_info"]["task_id"] for row in read(to, p)} for p in files.PARTS)
        assert not train & test and train | test == set("abc" if name == "trl" else "abcd")
        held[name] = test
    assert held["trl"] == held["verl-rl"] - {"d"} and held["verl-rl"] == held["difficulty"] and held["trl"]
    assert {Choice([], held_back=0.0).split(f"task {i}") for i in range(2000)} == {"train"}
    lots = [Choice([], held_back=0.2).split(f"task {i}") for i in range(2000)]
    assert 330 < lots.count("test") < 470  # 400, and four standard deviations


def test_an_export_takes_the_place_of_an_older_one_and_of_nothing_else(two, tmp_path, capsys):
    to = two[0] / "export" / "trl"
    assert run("--out", two[0], "--held-back", "99") == 0 and (to / "test.jsonl").exists()
    assert run("--out", two[0]) == 0
    assert sorted(path.name for path in to.iterdir()) == ["README.md", "train.jsonl"]
    assert [path.name for path in to.parent.iterdir()] == ["trl"]
    assert run("--out", two[0], "--to", two[1]) == 2
    assert "holds other things than an export" in capsys.readouterr().err
    assert (two[1] / "attempts.jsonl").exists()


def test_half_a_character_becomes_a_mark_that_every_file_can_hold(tmp_path):
    tasks = tmp_path / "t.jsonl"
    tasks.write_text(json.dumps(task_row("a") | {"statement": "Print \ud800 and é."}) + "\n")
    laid = Laid(tmp_path / "one", tasks)
    laid.base("a")
    laid.add("a", "star", True)
    laid.write()
    for name in ("trl", "verl-sft"):
        row = exported(tmp_path / "x", "--out", laid.folder, "--format", name)[0]
        assert row["prompt"][-1]["content"].startswith("Print \ufffd and é.")


# ── the card, and the hub ────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("name", thinned(formats.FORMATS, 3))
def test_the_card_has_the_head_that_a_hub_reads(two, tmp_path, name):
    exported(tmp_path / "x", *outs(two), "--format", name)
    _, head, body = (tmp_path / "x" / "README.md").read_text().split("---\n", 2)
    told = yaml.safe_load(head)
    assert told["license"] == "unknown" and told["size_categories"] == ["n<1K"]
    (files,) = told["configs"][0]["data_files"]
    assert (tmp_path / "x" / files["path"]).exists() and files["split"] == "train"
    assert [each["name"] for each in told["dataset_info"]["features"]] == columns.schema(formats.columns_of(name)).names
    assert "The tasks are those of t." in body and "| 1 | t | not known | not known | m | 4 |" in body
    assert ("off-policy" in body) == (name in PROGRAMS)


def test_the_card_names_licence_and_splits(two, tmp_path):
    for folder, licence in zip(two, ("CC BY 4.0", "CC BY 4.0"), strict=True):
        held = json.loads((folder / "config.json").read_text())
        held["data"]["licence"] = licence
        (folder / "config.json").write_text(json.dumps(held))
    lines = (two[0] / "tasks.jsonl").read_text().splitlines()
    tagged = [
        json.loads(line) | {"tags": {"split": split}} for line, split in zip(lines, ("test", "valid"), strict=False)
    ]
    (two[0] / "tasks.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*tagged, *map(json.loads, lines[2:])])
    )
    exported(tmp_path / "x", *outs(two))
    text = (tmp_path / "x" / "README.md").read_text()
    assert "license: cc-by-4.0\n" in text and "t (splits test, valid)" in text
    assert "| ring | 1 | 0 |" in text and "| together | 4 | 2 |" in text  # by hand: x = 2; star's x = 1 and z = 1


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[hub.Hub]:
    from huggingface_hub import constants

    with hub.serve({}) as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
        yield server


@pytest.mark.slow
def test_push_makes_a_private_data_set_of_the_files(two, tmp_path, stand_in, capsys):
    assert run(*outs(two), "--push", "me/rows", "--to", tmp_path / "x") == 0
    assert stand_in.private == {"me/rows": True}
    here = {f"me/rows/{path.name}": path.read_bytes() for path in (tmp_path / "x").iterdir()}
    assert stand_in.pushed == here and stand_in.tokens == {"Bearer hf_of_somebody"}
    assert b"hf_of_somebody" not in b"".join(here.values())
    assert "/datasets/me/rows holds it now" in capsys.readouterr().err
    assert run(*outs(two), "--push", "me/rows", "--format", "verl-sft", "--to", tmp_path / "y") == 0
    assert sorted(stand_in.pushed) == ["me/rows/README.md", "me/rows/train.parquet"]
    assert run("--out", two[0], "--push", "me/open", "--public", "--to", tmp_path / "z") == 0
    assert stand_in.private == {"me/rows": True, "me/open": False}
    before = dict(stand_in.pushed)
    assert run("--out", two[0], "--push", "me/open", "--to", tmp_path / "z") == 2  # no --public, and it is open
    assert "everybody may read it: give --public" in capsys.readouterr().err and stand_in.pushed == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("me/rows", 403, "set HF_TOKEN to a token that may write there; the files are in"),
        ("me/rows", 401, "set HF_TOKEN to a token that may write there; the files are in"),
        ("a/b/c", None, "give NAME or OWNER/NAME"),
    ],
)
def test_a_push_that_is_refused_is_one_line(two, tmp_path, stand_in, capsys, name, status, says):
    stand_in.refuses = status
    assert run("--out", two[0], "--push", name, "--to", tmp_path / "x") == 2
    said = capsys.readouterr().err
    assert says in said.splitlines()[-1] and said.count("\n") == 2  # before it, that no row is verified
    assert read(tmp_path / "x")


def test_a_hub_that_is_not_there_is_one_line(two, tmp_path, stand_in, monkeypatch, capsys):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert run("--out", two[0], "--push", "me/rows", "--to", tmp_path / "x") == 2
    said = capsys.readouterr().err
    assert "cannot push to http://127.0.0.1:9" in said and "HF_ENDPOINT" in said and said.count("\n") == 2


# ── flags ────────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--format", "trll"], "did you mean trl?"),
        (["--also", "bases"], "'bases' is none of base, reruns"),
        (["--out", "a", "--out", "./a"], "a run is named twice"),
        (["--format", "grpo", "--per-task", "2"], "--per-task is for another format than grpo"),
        (["--population", "mixed"], "--population is for another format than trl"),
        (["--tasks", "t.jsonl"], "--tasks is for another format than trl"),
        (["--public"], "--public is for --push"),
        (["--held-back", "100"], "is not a number from 0 to 99"),
    ],
)
def test_a_flag_that_cannot_be_used_is_one_line(argv, says, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*argv)
    assert ended.value.code == 2 and says in capsys.readouterr().err


def test_a_folder_without_a_run_is_one_line(tmp_path, capsys):
    assert run("--out", tmp_path / "none") == 2
    assert "holds no run" in capsys.readouterr().err
