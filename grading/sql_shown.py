"""Results as a reader gets to see them: a prediction's beside the gold query's, a few rows of each, cells cut short.

    shown(rows)              {"rows", "width", "at", "cells"}: how many rows and columns, and those that are shown
    beside(answers, rows)    {"gold", "mine", "theirs"}: which gold query, and both results, each with "off", the cells
                             that have no partner on the other side, and "marked", how many there are in all

What a database holds is data, of any size: so many rows, columns and characters are kept and no more, and among the
rows those that differ. A cell is text behind a letter for what it was (n number, t text, b bytes); NULL is null.

From results that the sandbox has sent already: no database is opened here. Left out: what a query is worth (sql.py),
how it looks (telling/queries.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from grading.sql_compare import Answer, Cell, Row, cell_f1, paired

ROWS, COLUMNS, CHARACTERS = 12, 12, 60  # that are kept at most: of a result, of a row, of a cell
FIRST = 4  # rows that are kept whatever is in them; then those that differ, then those that follow


def shown(rows: Sequence[Row], marks: bytearray | None = None) -> dict[str, Any]:
    """A result in short. marks: a byte a cell, row by row, 0 for what is to be marked."""
    width = len(rows[0]) if rows else 0
    of_row = [marks[i * width : (i + 1) * width] for i in range(len(rows))] if marks is not None else []
    differ = (i for i, row in enumerate(of_row) if not all(row))
    order = dict.fromkeys(chain(range(FIRST), islice(differ, ROWS), range(ROWS)))
    at = sorted(islice((i for i in order if i < len(rows)), ROWS))
    told = {
        "rows": len(rows),
        "width": width,
        "at": at,
        "cells": [[_short(value) for value in rows[i][:COLUMNS]] for i in at],
    }
    if marks is not None:
        told["off"] = ["".join(".x"[not mark] for mark in of_row[i][:COLUMNS]) for i in at]
        told["marked"] = marks.count(0)
    return told


def beside(answers: Sequence[Answer], rows: Sequence[Row]) -> dict[str, Any]:
    """A result beside the gold one that it shares most with."""
    best = max(range(len(answers)), key=lambda k: cell_f1(answers[k].rows, rows))
    theirs, mine = paired(answers[best].rows, rows)
    return {"gold": best, "mine": shown(rows, mine), "theirs": shown(answers[best].rows, theirs)}


def _short(value: Cell) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return "t" + _cut(value, len(value), "characters")
    if isinstance(value, bytes):
        return "b" + _cut(value[:CHARACTERS].hex(), 2 * len(value), "digits")
    return f"n{value!r}"


def _cut(text: str, length: int, what: str) -> str:
    return text[:CHARACTERS] + (f"… ({length:,} {what})" if length > CHARACTERS else "")
