"""A line of a log read fast and read plainly: the same value, or the same words against it, whatever stands there."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import RecordsError
from reading import lines
from records import dumps
from swarm import Attempt

ATTEMPT = Attempt("1500_A", "ring", 0, 1, 2, prompt_tokens=7, fitness=0.25, reply="so", code="print(1)", outcome="pass")
fast = pytest.mark.skipif(lines.msgspec is None, reason="msgspec is not there")


def both(line: bytes, how: Any) -> tuple[object, object]:
    """What each way of reading says; repr, since nan is not itself and 1 is 1.0."""

    def said() -> str:
        try:
            return repr(how(line))
        except (ValueError, RecordsError) as why:
            return f"{type(why).__name__}: {why}"

    quick = said()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lines, "_FAST", None)
        return quick, said()


NUMBERS = ["0.0", "1e0", "-0", "-0.0", "00", "1e400", "NaN", "Infinity", "123456789012345678901234567890", "true",
           "null", '"1"', "[]", "{}", "0.1234567890123456789", "9223372036854775808"]  # fmt: skip
TEXTS = [
    r'"\ud800"',
    r'"\udc00\ud800"',
    r'"\ud83d\ude00"',
    r'"\u0000"',
    r'"\q"',
    '"\t"',
    '"é"',
    '"\x7f"',
    "1",
    "null",
    r'"\u2028"',
]


@fast
@pytest.mark.parametrize("value", NUMBERS + TEXTS)
def test_odd_values_read_alike_in_every_field(value: str):
    whole = json.loads(dumps(asdict(ATTEMPT)))
    for name in whole:
        line = dumps({**whole, name: "HERE"}).replace('"HERE"', value).encode()
        quick, plain = both(line, lines.parse_attempt)
        assert quick == plain, name
    quick, plain = both(f'{{"x": {value}}}'.encode(), lines.loads)
    assert quick == plain


@fast
@given(st.data())
def test_a_line_with_bytes_changed_cut_or_doubled_reads_alike(data: st.DataObject):
    line = dumps(asdict(replace(ATTEMPT, reply=data.draw(st.text(max_size=9))))).encode()
    at = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(at, min(len(line), at + 30)))
    line = line[:at] + data.draw(st.one_of(st.binary(max_size=4), st.just(line[at:end] * 2))) + line[end:]
    for how in (lines.parse_attempt, lines.loads):
        quick, plain = both(line, how)
        assert quick == plain


@fast
@pytest.mark.parametrize("line", [
    b"", b"\n", b"null", b"[]", b"{}", b'{"task_id": "a"}', b"\xef\xbb\xbf{}", '{"a": 1}'.encode("utf-16"),
    b"\xed\xa0\x80", b'{"a": 1, "a": 2}', b'{"a": 1} {"b": 2}', b" {}\r\n", b'"\xff"', b'{"a": "\xed\xa0\x80"}',
])  # fmt: skip
def test_what_is_no_attempt_is_said_alike(line: bytes):
    for how in (lines.parse_attempt, lines.loads):
        quick, plain = both(line, how)
        assert quick == plain


def test_nesting_without_end_is_a_line_that_cannot_be_read():
    with pytest.raises(ValueError, match="nested too deep"):
        lines.loads(b"[" * 100_000)


@fast
def test_what_was_written_comes_back_whole_with_defaults_where_an_older_version_wrote_less():
    line = dumps(asdict(ATTEMPT)).encode()
    assert lines._FAST and lines._FAST[1](line) == lines.parse_attempt(line) == ATTEMPT  # the fast way takes it
    row = {
        name: value for name, value in asdict(ATTEMPT).items() if name not in ("error", "error_line", "tries", "time")
    }
    old = lines._FAST[1](dumps(row).encode())
    assert old == ATTEMPT and old.tries == 1 and vars(old) == asdict(ATTEMPT) and hash(old) == hash(ATTEMPT)
    with pytest.raises(RecordsError, match="another version"):
        lines.parse_attempt(dumps({**row, "from_the_future": 1}).encode())
