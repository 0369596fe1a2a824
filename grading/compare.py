"""Comparing what a program printed with what the test expects, and where a clip of a wrong output begins.

    outputs_match      does an output match the expected one
    first_difference   the byte of an output at which it ceases to; None if it matches
    difference         the same, giving way to other work after every few thousand tokens
    clip_start         where what is shown of a wrong output begins

The expected token decides. Text is met byte for byte. Digits alone, with a minus or without, are an integer and met
exactly, as a number; with a leading zero that no number has, or a sign that carries nothing (`+5`, `-0`), they are
text. Another decimal number is met within 1e-6, absolutely or relative to it. Only ASCII counts: no nan, inf, 1_000,
hex or digits of other scripts. An exponent of more than 17 digits makes a token text. Decimal never expands an
exponent, and rounding the difference up makes the comparison exact: the bound always lies on the grid of digits that
the difference is rounded to. Of a token of more than _LONG bytes the first _LONG digits decide whether it is near.

Left out: values of asserts (dialogue.py), rows of a query (sql.py), special judges.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator, Iterator
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from itertools import islice

from grading.grade import CLIP

_NUMBER = re.compile(rb"[+-]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?0*+\d{0,17}+(?<=\d))?")
_DIGITS = re.compile(rb"[+-]?\d++")
_TEXT = (b"0", b"+", b"-0")  # digits that begin so, other than 0 itself, are no number but text
_WORD_ENDS = re.compile(rb"\S*+")  # of bytes, a space is space, \t \n \r \v \f
_TOLERANCE = Decimal("1e-6")
_PIECE = 1 << 16  # bytes split at a time: a hostile 16 MiB of short tokens must not become 300 MB of objects
_LONG = 10_000


def outputs_match(got: bytes | str, expected: bytes | str, as_published: bool = False) -> bool:
    """Does the output of a program match the expected one? Split on ASCII whitespace, token by token, in order.

    as_published: any two decimal numbers within 1e-6 match, integers and digits with a leading zero too.
    Text is read as UTF-8. The first difference ends it, and no list of all tokens is ever made.
    """
    return first_difference(got, expected, as_published) is None


def first_difference(got: bytes | str, expected: bytes | str, as_published: bool = False) -> int | None:
    """The offset in `got`, in bytes, of the first token that is not as expected; None where there is none."""
    walk = _walk(got, expected, as_published)
    while True:
        try:
            next(walk)
        except StopIteration as end:
            return end.value


async def difference(got: bytes | str, expected: bytes | str, as_published: bool = False) -> int | None:
    """first_difference, giving way to other work after every few thousand tokens."""
    walk = _walk(got, expected, as_published)
    while True:
        try:
            next(walk)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)


def _walk(got: bytes | str, expected: bytes | str, as_published: bool) -> Generator[None, None, int | None]:
    """Through both, pausing now and then; returns what first_difference does."""
    got = got.encode("utf-8", "surrogatepass") if isinstance(got, str) else got
    expected = expected.encode("utf-8", "surrogatepass") if isinstance(expected, str) else expected
    if got == expected:
        return None
    ours, theirs = _Tokens(got), _Tokens(expected)
    mine_of, wanted_of = iter(ours), iter(theirs)
    done = 0
    while True:
        mine, wanted = list(islice(mine_of, 4096)), list(islice(wanted_of, 4096))
        if mine != wanted:
            work = 0
            for at, (a, b) in enumerate(zip(mine, wanted, strict=False), done):
                if a != b:
                    if not _numbers_match(a, b, as_published):
                        return ours.place(at)
                    work += len(a) + len(b)
                    if work > _PIECE:
                        work = 0
                        yield
            if len(mine) != len(wanted):
                return ours.place(done + min(len(mine), len(wanted)))
        if not mine:
            return None
        done += len(mine)
        yield


class _Tokens:
    """The tokens of an output, split piece by piece, and where the n-th of them stands."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pieces: list[tuple[int, int]] = []  # of each so far: number of its first token, its first byte

    def __iter__(self) -> Iterator[bytes]:
        at = number = 0
        while at < len(self.data):
            end = at + _PIECE
            if end < len(self.data):
                end = _WORD_ENDS.match(self.data, end).end()  # type: ignore[union-attr]
            tokens = self.data[at:end].split()
            self.pieces.append((number, at))
            yield from tokens
            at, number = end, number + len(tokens)

    def place(self, number: int) -> int:
        """Where that token begins; the end of the data, if there is none. It is in the last piece, or beyond it."""
        first, start = next((piece for piece in reversed(self.pieces) if piece[0] <= number), (0, 0))
        words = re.compile(rb"\S++").finditer(self.data, start)
        word = next(islice(words, number - first, None), None)
        return word.start() if word else len(self.data)


def _numbers_match(got: bytes, expected: bytes, as_published: bool) -> bool:
    if len(got) > _LONG or len(expected) > _LONG:
        return _long_numbers_match(got, expected, as_published)
    if not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(got)):
        return False
    exactly = not as_published and _DIGITS.fullmatch(expected) is not None
    if exactly and expected.startswith(_TEXT) and expected != b"0":
        return False
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
    if exactly:
        return Decimal(got.decode()) == Decimal(expected.decode())
    return _are_near(got, expected)


def _are_near(got: bytes, expected: bytes) -> bool:
    number, bound = Decimal(got.decode()), Decimal(expected.decode())
    exact = Context(prec=len(expected) + 20, rounding=ROUND_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    difference = exact.abs(exact.subtract(number, bound))
    return difference <= _TOLERANCE or difference <= exact.multiply(exact.abs(bound), _TOLERANCE)


def _long_numbers_match(got: bytes, expected: bytes, as_published: bool) -> bool:
    """The same for what may be as long as an output: a few passes at the speed of copying."""
    number, bound = _in_order(got), _in_order(expected)
    if number is None or bound is None:
        return False
    if not as_published and expected.removeprefix(b"-").removeprefix(b"+").isdigit():
        return number == bound and (expected == b"0" or not expected.startswith(_TEXT))
    near = [b"%s0.%se%d" % (sign, digits[:_LONG] or b"0", power) for sign, digits, power in (number, bound)]
    return number == bound or _are_near(near[0], near[1])


def _in_order(token: bytes) -> tuple[bytes, bytes, int] | None:
    """Of a number sign, digits and power: 0.DIGITS times ten to the power, no zero at either end of the digits."""
    sign = b"-" if token.startswith(b"-") else b""
    mantissa, e, power = token[token.startswith((b"+", b"-")) :].lower().partition(b"e")
    whole, _, part = mantissa.partition(b".")
    figures = power[power.startswith((b"+", b"-")) :]
    size = figures.lstrip(b"0")
    if not (whole + part).isdigit() or (e and not figures.isdigit()) or len(size) > 17:
        return None
    digits = (whole + part).lstrip(b"0")
    if not digits:
        return b"", b"", 0
    shift = int(size or b"0") * (-1 if power.startswith(b"-") else 1)
    return sign, digits.rstrip(b"0"), len(digits) - len(part) + shift


def clip_start(got: str, expected: str) -> int:
    """Where a clip of a wrong output begins: at the start if all of it fits, else with the first difference amid it."""
    if len(got) <= CLIP and len(expected) <= CLIP:
        return 0
    data = got.encode("utf-8", "surrogatepass")
    at = first_difference(data, expected)
    return clip_around(len(data[:at].decode("utf-8", "surrogatepass")))


def clip_around(difference: int) -> int:
    """The first character of a clip with that character in its middle."""
    return max(0, difference - CLIP // 2)
