"""sql_calibrate's page and its rows: results side by side, in short, and queries that match as training rows.

A run is laid out by the real grader on databases whose results are known by hand; the page is read as the browser does.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import zlib
from base64 import b85decode
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import export
import sql_calibrate
from arms.question import asked
from commands.checks import Checks
from grader import Grader
from grading.sql import Bench
from grading.sql_compare import Answer, cell_f1, paired
from grading.sql_shown import CHARACTERS, COLUMNS, ROWS, beside, shown
from records import CHECKS, Log
from rows.columns import SCHEMA_VERSION, Passing, Trl
from rows.formats import FORMATS, of_tasks
from sql_calibrate import SqlGrader, calibration, facts
from swarm import Attempt, Slot
from tasksets.task import Task, Test, card
from telling.queries import queries_page
from tests.support.browser import Browser, found

HOSTILE = "</script><img src=x onerror=alert(1)>{{data}}<!--"
SCRIPT = f"CREATE TABLE pen(name TEXT, n); INSERT INTO pen VALUES ('a', 1), ('b', NULL), ('{HOSTILE}', x'00ff');"
GOLD = "SELECT name, n FROM pen WHERE n IS NOT 7"
# A reply, how many samples give it, whether it matches.
REPLIES = [
    ("```sql\nSELECT name, n FROM pen -- all\n```", 2, True),
    ("```sql\nSELECT name FROM pen\n```", 2, False),
    ("```sql\nSELECT n, name FROM pen\n```", 1, False),
    ("```sql\nSELECT colour FROM pen\n```", 1, False),
    (f"```sql\nSELECT '{HOSTILE}'\n```", 1, False),
    (f"I cannot. {HOSTILE}", 1, False),
]

# ── what is marked, and how much is kept ─────────────────────────────────────────────────────────────────────────────

CELLS = st.sampled_from([None, "a", "b", 1, 2, 2.0, 2.0000005, 2.000001, b"x", 1.5, -3, "1"])


def tables(most: int = 4) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), max_size=most))


@given(tables(), tables())
def test_marked_is_what_the_fitness_does_not_count(gold: list[Any], rows: list[Any]) -> None:
    theirs, mine = paired(gold, rows)
    assert (len(theirs), len(mine)) == (sum(map(len, gold)), sum(map(len, rows)))
    assert sum(theirs) == sum(mine)
    if theirs or mine:
        assert cell_f1(gold, rows) == pytest.approx(2 * sum(mine) / (len(theirs) + len(mine)))


def test_of_equal_cells_the_one_in_its_place_is_the_partner() -> None:
    assert [bytes(side) for side in paired([("a", 1), ("a", 2)], [("b", 2), ("a", 2)])] == [b"\0\0\1\1", b"\0\0\1\1"]


def test_a_large_result_is_told_in_a_few_rows_and_those_that_differ_are_among_them() -> None:
    rows = [(i, "x" * 10_000_000 if i == 2 else "y") for i in range(20_000)]
    gold = [(i + 0.5 if i == 17_777 else i, "y") for i in range(20_000)]
    told = beside([Answer([(1,)], None), Answer(gold, None)], rows)
    assert told["gold"] == 1 and len(json.dumps(told)) < 3000
    for side in ("mine", "theirs"):
        assert told[side]["rows"] == 20_000 and len(told[side]["at"]) == ROWS and 17_777 in told[side]["at"]
    assert told["mine"]["marked"] == 2 and told["theirs"]["marked"] == 2
    cells = told["mine"]["cells"][2]
    assert cells[1] == "t" + "x" * CHARACTERS + "… (10,000,000 characters)"
    off = dict(zip(told["mine"]["at"], told["mine"]["off"], strict=True))
    assert (off[2], off[17_777], off[0]) == (".x", "x.", "..")
    wide = shown([tuple(range(2000))] * 50)
    assert wide["width"] == 2000 and {len(row) for row in wide["cells"]} == {COLUMNS} and "off" not in wide


def test_a_cell_keeps_what_it_was() -> None:
    row = (None, "", "7", 7, -(2**63), 1e300, float("inf"), b"\0\xff", "\ud800")
    cells = shown([row])["cells"][0]
    assert cells == [None, "t", "t7", "n7", f"n{-(2**63)}", "n1e+300", "ninf", "b00ff", "t\ud800"]
    assert shown([]) == {"rows": 0, "width": 0, "at": [], "cells": []} and json.dumps(cells, allow_nan=False)


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sql_calibrate.py with one question, graded by the grader."""
    at = tmp_path_factory.mktemp("sql") / "out"
    row = Task("pens", "Pens?", f"Which pens? {HOSTILE}", "sql", (), (Test(GOLD, source="private"),), setup=SCRIPT)

    async def lay_out(log: Log) -> None:
        async with Grader(workers=1) as inner:
            grader = SqlGrader(Bench(inner), Checks(log, "sql"), inner.rules)
            task = await grader.prepare(row)
            assert isinstance(task, Task)
            log.add_card(card(task))
            replies = [reply for reply, n, _ in REPLIES for _ in range(n)]
            grades = await asyncio.gather(*(grader.grade(reply, task) for reply in replies))
            for i, (reply, grade) in enumerate(zip(replies, grades, strict=True)):
                slot = Slot("pens", "base", 0, 0, i)
                log.add(Attempt(*slot, task_sha=task.digest, prompt_sha=asked(task).sha(), reply=reply, code=grade.code,
                                fitness=grade.fitness, passed=grade.passed, outcome=grade.outcome, hidden_total=1,
                                hidden_tests=grade.hidden, got=grade.got))  # fmt: skip

    config = {
        "identity": {"model": "a/model", "max_tokens": 512, "tasks": "my/pens.jsonl", "revision": None, "seed": 0},
        "plan": {"base_samples": 8, "limit": 1},
        "data": {"asked": 1, "looked_at": 1, "left_out": {}, "source": "my/pens.jsonl", "licence": None, "notes": []},
        "command": "sql_calibrate.py", "grades": "attempts", "dry_run": False, "apart": {},
    }  # fmt: skip
    with Log(at) as log:
        log.keep("config.json", config)
        asyncio.run(lay_out(log))
    return at


@pytest.fixture(scope="module")
def told(folder: Path) -> tuple[str, str]:
    """What --reuse says of the folder, on stdout and on stderr, once it has made all its files."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
        patched.setattr(sql_calibrate, "plot", lambda made, panels: {})  # which takes longer than all the rest
        assert sql_calibrate.main(["--out", str(folder), "--reuse"]) == 0
    return out.getvalue(), err.getvalue()


def drawn_again(folder: Path, attempts: list[Attempt], checks: list[dict[str, Any]]) -> str:
    """The page of other attempts at the folder's question, without curves."""
    with Log(folder) as log:
        cards, made = list(log.cards()), calibration(log.config, iter(attempts))
    return queries_page(made, {}, facts(made), cards, attempts, checks)


def block(text: str, name: str) -> Any:
    return json.loads(text.partition(f'id="{name}">')[2].partition("</script>")[0])


def chunk_of(text: str, task: str) -> Any:
    return json.loads(zlib.decompress(b85decode(block(text, "chunks")[task].replace(",", "<")), -15))


def test_the_end_names_page_report_and_rows(folder: Path, told: tuple[str, str]) -> None:
    out, err = told
    ends = [line.split()[0] for line in err.splitlines()[-4:]]
    assert [Path(end).name for end in ends] == ["report.html", "report.txt", "passing.jsonl", "calibration.json"]
    assert all(Path(end).is_file() for end in ends) and err.splitlines()[-2].endswith("1 training row")
    assert (folder / "report.txt").read_text() == out


def test_each_query_once_with_its_result_beside_the_gold_one(folder: Path, told: tuple[str, str]) -> None:
    text = (folder / "report.html").read_text()
    (line,) = block(text, "data")
    assert (line["id"], line["passes"], line["n"], line["kind"], line["best"]) == ("pens", 2, 8, "mixed", 1.0)
    chunk = chunk_of(text, "pens")
    assert [(gold["query"], gold["ordered"], gold["result"]["rows"]) for gold in chunk["golds"]] == [(GOLD, False, 3)]
    assert chunk["golds"][0]["result"]["cells"] == [["ta", "n1"], ["tb", None], ["t" + HOSTILE, "b00ff"]]
    ones = {one["query"]: one for one in chunk["predictions"]}
    assert [one["n"] for one in chunk["predictions"]] == [1, 2, 1, 1, 1, 2] and chunk["predictions"][-1]["passed"]
    swapped = ones["SELECT n, name FROM pen"]
    assert swapped["f1"] == 1.0 and swapped["mine"]["marked"] == swapped["theirs"]["marked"] == 0
    names = ones["SELECT name FROM pen"]
    assert names["mine"]["off"] == [".", ".", "."] and names["theirs"]["off"] == [".x", ".x", ".x"]
    assert names["f1"] == pytest.approx(2 * 3 / 9)
    failed = ones["SELECT colour FROM pen"]
    assert failed["error"] == "no such column: colour" and "mine" not in failed
    assert ones[None]["reply"].startswith("I cannot.") and ones[None]["outcome"] == "no_code"
    assert "CREATE TABLE pen" in chunk["tables"] and chunk["question"].startswith("Which pens?")


def test_no_two_things_share_an_id_and_headings_go_down_by_one(folder: Path, told: tuple[str, str]) -> None:
    text = (folder / "report.html").read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids)) and len(re.findall(r"<svg", text)) == 2
    levels = [int(level) for level in re.findall(r"<h([1-6])", text.partition('<script type="application/json"')[0])]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in pairwise(levels))


def test_nothing_of_a_database_is_markup_and_nothing_is_fetched(folder: Path, told: tuple[str, str]) -> None:
    text = (folder / "report.html").read_text()
    assert "<img" not in text and text.count("<script") == text.count("</script>") == 3
    assert "http:" not in text.replace("http://www.w3.org", "") and "https:" not in text
    assert "default-src 'none'; script-src 'sha256-" in text


def test_results_are_kept_once_and_the_prompt_holds_no_gold(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / CHECKS).read_text().splitlines()]
    assert sorted(row["tests"].split("/")[1] for row in rows) == ["gold"] + 5 * ["query"]
    assert GOLD not in (folder / "tasks.jsonl").read_text()


def test_a_folder_without_results_has_its_page(folder: Path) -> None:
    with Log(folder) as log:
        attempts = list(log.attempts())
    chunk = chunk_of(drawn_again(folder, attempts, []), "pens")
    assert chunk["golds"] == [] and not any("mine" in one for one in chunk["predictions"])


def test_a_page_of_large_texts_stays_small(folder: Path) -> None:
    with Log(folder) as log:
        attempts, checks = list(log.attempts()), list(log.checks())
    long = "SELECT " + "1 + " * 500_000 + "1"
    page = drawn_again(folder, [replace(a, code=a.code and long, got="x") for a in attempts], checks)
    assert len(page) < 80_000 and "… (2,000,008 characters)" in json.dumps(chunk_of(page, "pens"), ensure_ascii=False)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_passing_queries_are_rows_of_one_type(folder: Path, told: tuple[str, str]) -> None:
    (row,) = map(json.loads, (folder / "passing.jsonl").read_text().splitlines())
    kinds = get_type_hints(Passing)
    assert row.keys() == kinds.keys() and all(type(row[key]) is kind for key, kind in kinds.items())
    assert row["final_text"] == row["completion"] == "```sql\nSELECT name, n FROM pen -- all\n```"
    assert (row["passes"], row["samples"], row["reward"], row["source"]) == (2, 8, 1, "base")
    assert row["on_policy"] and not row["verified"] and row["schema_version"] == SCHEMA_VERSION
    with Log(folder) as log:
        (task,) = log.cards()
    system, user = (message["content"] for message in asked(task).messages)
    assert (row["system"], row["prompt"]) == (system, user) and GOLD not in row["prompt"]


@pytest.mark.parametrize("name", [name for name in FORMATS if not of_tasks(name)])
def test_they_are_exported_like_programs(folder: Path, tmp_path: Path, name: str, capsys: Any) -> None:
    assert export.main(["--out", str(folder), "--format", name, "--to", str(tmp_path / "to")]) == 0
    text = (tmp_path / "to" / "README.md").read_text()
    assert "- sql\n" in text and "rows of a gold query on one database" in text and "- python" not in text
    if name == "trl":
        (row,) = map(json.loads, (tmp_path / "to" / "train.jsonl").read_text().splitlines())
        assert row.keys() == get_type_hints(Trl).keys() and [m["role"] for m in row["prompt"]] == ["system", "user"]
        assert row["completion"][0]["content"].startswith("```sql\nSELECT name, n")


@pytest.mark.parametrize("name", [name for name in FORMATS if of_tasks(name)])
def test_rows_of_tasks_are_refused_in_a_line(folder: Path, tmp_path: Path, name: str, capsys: Any) -> None:
    assert export.main(["--out", str(folder), "--format", name, "--to", str(tmp_path / "to")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "give a format of a row a program" in said and not (tmp_path / "to").exists()


# ── in a browser ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not found():
        pytest.skip("no Chromium on this machine")
    with Browser() as one:
        yield one


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_the_page_opens_from_disk(browser: Browser, folder: Path, told: Any, width: int, dark: bool) -> None:
    page = browser.open(folder / "report.html", width, dark=dark)
    page.run("document.querySelector('details.question summary').focus()")
    page.press("Enter")
    page.run("new Promise((done) => setTimeout(done, 500))")
    said = page.run("document.querySelector('details.question .box').innerText")
    assert "no such column: colour" in said and "The same cells, in other places" in said and HOSTILE in said
    assert "3 gold cells have none in it" in said and page.run("document.querySelectorAll('td.off').length") == 8
    assert page.run("document.documentElement.scrollWidth") <= width and page.run("document.images.length") == 0
    assert page.run("location.hash") == "#task=pens" and page.complaints() == []
    linked = browser.open(folder / "report.html", width, fragment="task=pens")
    assert linked.run("document.activeElement.parentNode.open")
