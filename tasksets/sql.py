"""Text-to-SQL: rows with a question, a database and gold queries, and the task that is asked of one.

    SETS        Gretel's synthetic questions; yours: one function, one name
    own_rows    questions of your own, a .jsonl file
    SqlTask     a question as it is asked

As it is loaded, a task of kind sql holds the question (statement), its database (setup: the path of a file, else a
script) and a hidden test for each gold query. sql_calibrate.SqlGrader makes of it the SqlTask that is asked.

Left out: what a query is worth (grading/sql.py), downloads (tasksets/hub.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faults import TaskError
from grading.sql import is_file
from tasksets.hub import fetch, not_on_a_hub, parquet_cells
from tasksets.own import all_right, jsonl_rows
from tasksets.task import About, Options, Reader, Task, Test

GRETEL = "gretelai/synthetic_text_to_sql"


@dataclass(frozen=True)
class SqlTask(Task):
    """A question as it is asked, with the tables in its statement. Its one hidden test holds the gold queries and the
    digest of the database, so that a change of either makes it another task."""

    database: str = ""  # the path of a SQLite file, else a script that makes one
    golds: tuple[str, ...] = ()  # queries of which each is right

    def shown(self, needs: Iterable[str] = ()) -> Task:
        return Task.shown(replace(self, database="", golds=()), needs)


def gretel(options: Options, about: About) -> Iterator[Task]:
    """The test split of Gretel's synthetic text-to-SQL: every row brings its own CREATE and INSERT statements."""
    about.licence = "Apache-2.0"
    columns = ("id", "domain", "sql_complexity", "sql_prompt", "sql_context", "sql")
    for path in fetch(GRETEL, "main", ("*test*.parquet",), options, about):
        for cells in parquet_cells(path, columns, batch_rows=64):
            row = {name: cell.as_py() for name, cell in cells.items()}
            if not all(isinstance(row[name], str) and row[name].strip() for name in columns[3:]):
                about.left_out["without a question, a database or a gold query"] += 1
                continue
            tags = {"domain": row["domain"] or "", "complexity": row["sql_complexity"] or ""}
            yield _task(f"gretel-{row['id']}", row["sql_prompt"], [row["sql"]], row["sql_context"], tags)


ROW = ("id", "db", "question", "gold_sql")


def own_rows(path: Path, options: Options, about: About) -> Iterator[Task]:
    """Questions of your own: a .jsonl file with one object a line.

    field     required  what
    id        yes       text or number, different in every row
    db        yes       a SQLite file (its path, from the folder of this file or from here), or an SQL script that
                        makes the database
    question  yes       what is asked, as the model reads it
    gold_sql  yes       a query, or a list of queries of which each is right
    evidence            a hint that belongs to the question; the model reads it too
    """
    not_on_a_hub(options, path)
    if path.suffix != ".jsonl":
        raise TaskError(f"there is no task set {path}; choose {', '.join(SETS)} or a .jsonl file")
    if not path.is_file():
        raise TaskError(f"there is no file {path}; give the path of a .jsonl file of questions")
    yield from all_right(jsonl_rows(path), lambda row, where: _own_row(row, path.parent, f"{path}, {where}"))


def _own_row(row: Any, folder: Path, where: str) -> Task:
    if not isinstance(row, dict):
        raise TaskError(f"{where}: a row is an object with the fields {', '.join(ROW)}")
    for name in row:
        if name not in (*ROW, "evidence"):
            raise TaskError(f"{where}: {name}: no such field; there are {', '.join(ROW)} and evidence")
    golds = row.get("gold_sql")
    golds = [golds] if isinstance(golds, str) else golds
    if isinstance(row.get("id"), int):
        row["id"] = str(row["id"])
    for name in ROW[:3]:
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise TaskError(f"{where}: {name}: must be text; every row needs it")
    if not isinstance(golds, list) or not golds or not all(isinstance(gold, str) and gold.strip() for gold in golds):
        raise TaskError(f"{where}: gold_sql: must be a query or a list of queries; every row needs it")
    evidence = row.get("evidence") or ""
    if not isinstance(evidence, str):
        raise TaskError(f"{where}: evidence: must be text; mend it or leave it out")
    question = f"{row['question'].strip()}\n\nHint: {evidence.strip()}" if evidence.strip() else row["question"]
    for db in (str(folder / row["db"]), row["db"]):
        if is_file(db):
            return _task(row["id"], question, golds, db, {"db": Path(db).stem})
    if not re.search(r"\s", row["db"].strip()):
        raise TaskError(
            f"{where}: db: there is no file {row['db']}; give a path from {folder} or from here, or a script"
        )
    return _task(row["id"], question, golds, row["db"], {})


def _task(task_id: str, question: str, golds: list[str], database: str, tags: dict[str, str]) -> Task:
    hidden = tuple(Test(gold, source="private") for gold in golds)
    return Task(task_id, question.strip()[:80], question, "sql", (), hidden, setup=database, tags=tags)


SETS: dict[str, Reader] = {GRETEL: gretel}  # yours: one function, one name
