"""Whether two results hold the same rows, and how many of their cells are the same.

    matches(answer, rows)    exact match: the same rows; where the gold query orders them, tie by tie in the same places
    same_rows(gold, rows)    the same rows, in whatever order
    cell_f1(gold, rows)      2 x shared / all cells, wherever they stand
    paired(gold, rows)       which cells those are, for a reader
    tied(up, down)           the stretches of rows that tie

NULL equals NULL alone, and text is never a number. Two numbers are one when they are close, which is not passed on: 0
is close to 0.9e-6, and that to 1.8e-6. Rows and cells are paired in sorted order, and every pair must be close, so that
what is called the same is the same. What is given up: another pairing may exist, where numbers that are linked and not
close stand in several columns of like rows, or beside integers so large that a float is close to several.

Left out: running queries, and what a gold query leaves open (sql.py).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeGuard

TOLERANCE = 1e-6  # between two numbers that are not both integers
ROUNDING = 1e-12  # relative: what the order of a sum may change in a large float

Cell = None | int | float | str | bytes  # what SQLite knows
Row = tuple[Cell, ...]


class Answer(NamedTuple):
    """The result of one gold query. blocks: where the order counts, the stretches (start, end) of rows that tie."""

    rows: list[Row]
    blocks: list[tuple[int, int]] | None
    query: str = ""


def tied(up: list[Row], down: list[Row]) -> list[tuple[int, int]]:
    """The stretches of rows that tie, from the same rows with ties decided one way and the other.

    A stretch ends wherever both have shown the same rows so far: within a tie of rows that differ, the first few one
    way are never the first few the other way.
    """
    blocks, start = [], 0
    lead: Counter[Row] = Counter()
    for i, (one, other) in enumerate(zip(up, down, strict=False)):
        for row, step in ((one, 1), (other, -1)):
            lead[row] += step
            if not lead[row]:
                del lead[row]
        if not lead:
            blocks.append((start, i + 1))
            start = i + 1
    return blocks if not lead else [*blocks, (start, len(up))]


def close(a: float, b: float) -> bool:
    """Whether two numbers are one: integers exactly, others within 1e-6, or what rounding does to a large sum."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return _is_near(a, b)


def _is_near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= max(TOLERANCE, ROUNDING * max(abs(a), abs(b))) < math.inf


def _is_number(value: Cell) -> TypeGuard[float]:
    return isinstance(value, int | float)


def _is_same(a: Cell, b: Cell) -> bool:
    return close(a, b) if _is_number(a) and _is_number(b) else a == b


def _ranks(column: Iterable[Cell]) -> dict[Cell, tuple[int, float]]:
    """Where to sort every value: the first says what may be one with it, the second where in that it stands.

    Numbers that are close, or that a chain of close ones links, share the first, and the second where all are close.
    Integers equal themselves alone, and only what is no integer can link them.
    """
    values = list(column)
    stretches: list[list[float]] = []
    for value in sorted({value for value in values if _is_number(value)}):
        if not stretches or not _is_near(stretches[-1][-1], value):
            stretches.append([])
        stretches[-1].append(value)
    floats = {value for value in values if isinstance(value, float)}
    ranks: dict[Cell, tuple[int, float]] = {}
    for stretch in stretches:
        start, one_each = len(ranks), floats.isdisjoint(stretch)
        all_close = _is_near(stretch[0], stretch[-1]) and all(isinstance(value, float) for value in stretch)
        for i, value in enumerate(stretch):
            ranks[value] = (start + i, 0) if one_each else (start, 0 if all_close else value)
    for other in values:
        ranks.setdefault(other, (len(ranks), 0))
    return ranks


def same_rows(gold: Sequence[Row], rows: Sequence[Row]) -> bool:
    """Whether two results hold the same rows, in whatever order: each row has a partner of its own that is close."""
    if len(gold) != len(rows) or (gold and len(gold[0]) != len(rows[0])):
        return False
    both = zip(zip(*gold, strict=True), zip(*rows, strict=True), strict=True)
    columns = [_ranks(itertools.chain(*sides)) for sides in both]

    def rank(row: Row) -> tuple[list[int], list[float]]:
        found = [ranks[value] for ranks, value in zip(columns, row, strict=True)]
        return [first for first, _ in found], [second for _, second in found]

    pairs = zip(sorted(gold, key=rank), sorted(rows, key=rank), strict=True)
    return all(_is_same(a, b) for one, other in pairs for a, b in zip(one, other, strict=True))


def matches(answer: Answer, rows: list[Row]) -> bool:
    """Exact match: the same rows; where the gold query orders them, tie by tie in the same places."""
    if answer.blocks is None:
        return same_rows(answer.rows, rows)
    if len(rows) != len(answer.rows):
        return False
    places = [k for k, (start, end) in enumerate(answer.blocks) for _ in range(start, end)]
    ours, theirs = ([(k, *row) for k, row in zip(places, side, strict=True)] for side in (answer.rows, rows))
    return same_rows(ours, theirs)


def cell_f1(gold: Sequence[Row], rows: Sequence[Row]) -> float:
    """2 x shared / (gold cells + predicted cells), over the multisets of cell values, wherever they stand."""
    sides = [[value for row in side for value in row] for side in (gold, rows)]
    if not sides[0] and not sides[1]:
        return 1.0
    ours, theirs = (sorted(filter(_is_number, side)) for side in sides)
    others = [Counter(value for value in side if not _is_number(value)) for side in sides]
    shared = (others[0] & others[1]).total() + _pairs(ours, theirs)
    return 2 * shared / (len(sides[0]) + len(sides[1]))


def paired(gold: Sequence[Row], rows: Sequence[Row]) -> tuple[bytearray, bytearray]:
    """For each side a byte a cell, row by row: 1 where cell_f1 has found it a partner.

    Of equal cells those that stand in the same place on both sides come first.
    """
    sides = [[value for row in side for value in row] for side in (gold, rows)]
    found = bytearray(len(sides[0])), bytearray(len(sides[1]))
    alike = bytes(_is_same(a, b) for a, b in zip(*sides, strict=False))  # a place is one, where the rows are as wide
    if not gold or not rows or len(gold[0]) != len(rows[0]):
        alike = b""

    def first(i: int) -> bool:
        return not (i < len(alike) and alike[i])

    orders: list[list[int]] = []
    for side in sides:
        places = [i for i, value in enumerate(side) if _is_number(value)]
        orders.append(sorted(places, key=lambda i, side=side: (side[i], first(i))))  # type: ignore[misc]
    i = j = 0
    while i < len(orders[0]) and j < len(orders[1]):
        a, b = sides[0][orders[0][i]], sides[1][orders[1][j]]
        if _is_same(a, b):
            found[0][orders[0][i]] = found[1][orders[1][j]] = 1
            i, j = i + 1, j + 1
        elif a < b:  # type: ignore[operator]
            i += 1
        else:
            j += 1
    counts = [Counter(value for value in side if not _is_number(value)) for side in sides]
    for side, marks in zip(sides, found, strict=True):
        left = counts[0] & counts[1]
        for at in sorted((at for at, value in enumerate(side) if not _is_number(value)), key=first):
            if left[side[at]] > 0:
                left[side[at]] -= 1
                marks[at] = 1
    return found


def _pairs(ours: list[float], theirs: list[float]) -> int:
    """How many of two sorted lists pair up: on a line, taking the first that is close is best."""
    i = j = pairs = 0
    while i < len(ours) and j < len(theirs):
        if close(ours[i], theirs[j]):
            i, j, pairs = i + 1, j + 1, pairs + 1
        elif ours[i] < theirs[j]:
            i += 1
        else:
            j += 1
    return pairs
