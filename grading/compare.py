"""Comparing what a program printed with what the test expects, and where a clip of a wrong output begins.

    outputs_match         does an output match the expected one
    large_outputs_match   the same, giving way to other work between thousands of tokens
    clip_start            where what is shown of a wrong output begins

The expected token decides. Text is met byte for byte; an integer exactly, as a number; another decimal number within
1e-6, absolutely or relative to it. Only ASCII counts: no nan, inf, 1_000, hex or digits of other scripts. An exponent
of more than 17 digits makes a token text. Decimal never expands an exponent, and rounding the difference up makes the
comparison exact: the bound always lies on the grid of digits that the difference is rounded to.

Left out: values of asserts (dialogue.py), rows of a query (sql.py), special judges.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from itertools import islice, zip_longest

from grading.grade import CLIP

_NUMBER = re.compile(rb"[+-]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?0*+\d{0,17}+(?<=\d))?")
_INTEGER = re.compile(rb"[+-]?\d++")
_SPACE = re.compile(rb"\s")  # of bytes: space, \t \n \r \v \f
_TOLERANCE = Decimal("1e-6")
_PIECE = 1 << 16  # bytes split at a time: a hostile 16 MiB of short tokens must not become 300 MB of objects


def outputs_match(got: bytes | str, expected: bytes | str, as_published: bool = False) -> bool:
    """Does the output of a program match the expected one? Split on ASCII whitespace, token by token, in order.

    as_published: integers too are compared within 1e-6, as the published recipe does.
    Text is read as UTF-8. The first difference ends it, and no list of all tokens is ever made.
    """
    return all(_agreements(got, expected, as_published))


async def large_outputs_match(got: bytes | str, expected: bytes | str, as_published: bool = False) -> bool:
    """outputs_match, giving way to other work after every few thousand tokens."""
    for agree in _agreements(got, expected, as_published):
        if not agree:
            return False
        await asyncio.sleep(0)
    return True


def _agreements(got: bytes | str, expected: bytes | str, as_published: bool) -> Iterator[bool]:
    """Of every few thousand tokens: are they as expected?"""
    got = got.encode("utf-8", "surrogatepass") if isinstance(got, str) else got
    expected = expected.encode("utf-8", "surrogatepass") if isinstance(expected, str) else expected
    if got == expected:
        return
    ours, theirs = _tokens_of(got), _tokens_of(expected)
    mine, wanted = [b""], [b""]
    while mine or wanted:
        mine, wanted = list(islice(ours, 4096)), list(islice(theirs, 4096))
        yield mine == wanted or (
            len(mine) == len(wanted)
            and all(a == b or _numbers_match(a, b, as_published) for a, b in zip(mine, wanted, strict=True))
        )


def _tokens_of(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + _PIECE
        if end < len(data):
            space = _SPACE.search(data, end)
            end = space.start() if space else len(data)
        yield from data[at:end].split()
        at = end


def _numbers_match(got: bytes, expected: bytes, as_published: bool) -> bool:
    if not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(got)):
        return False
    exactly = not as_published and _INTEGER.fullmatch(expected) is not None
    if len(got) < 40 and len(expected) < 40:  # floats are ten times faster and decide all but the closest calls
        mine, wanted = float(got), float(expected)
        if abs(wanted) < 1e300:
            share = abs(mine - wanted) / max(1.0, abs(wanted))
            if share > 1.001e-6:
                return False
            if share < 0.999e-6 and not exactly:
                return True
            if exactly and len(got) < 16 and len(expected) < 16 and b"e" not in got.lower():
                return mine == wanted  # up to 15 digits no two decimals share a float
    number, bound = Decimal(got.decode()), Decimal(expected.decode())
    if exactly:
        return number == bound
    exact = Context(prec=len(expected) + 20, rounding=ROUND_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    difference = exact.abs(exact.subtract(number, bound))
    return difference <= _TOLERANCE or difference <= exact.multiply(exact.abs(bound), _TOLERANCE)


def clip_start(got: str, expected: str) -> int:
    """Where a clip of a wrong output begins: at the start if all of it fits, else with the first difference amid it."""
    if len(got) <= CLIP and len(expected) <= CLIP:
        return 0
    return max(0, _first_difference(got, expected) - CLIP // 2)


def _first_difference(got: str, expected: str) -> int:
    """The offset in got of the first token that is not the expected one's twin."""
    at, step = 0, 1 << 16
    while step:  # the longest common beginning, by halves
        if got[at : at + step] == expected[at : at + step] and at + step <= min(len(got), len(expected)):
            at += step
        else:
            step >>= 1
    space = max(got.rfind(" ", 0, at), got.rfind("\n", 0, at)) + 1
    ours, theirs = re.compile(r"\S+").finditer(got, space), re.compile(r"\S+").finditer(expected, space)
    for mine, wanted in islice(zip_longest(ours, theirs), 100_000):
        if mine is None:
            return len(got)
        if wanted is None or (mine[0] != wanted[0] and not outputs_match(mine[0], wanted[0])):
            return mine.start()
    return at
