"""Does an output match: the rule of the grader against exact fractions, and against outputs made to be slow."""

import asyncio
import re
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader import outputs_match
from grading.compare import _long_numbers_match, difference, first_difference

BOUND = Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (b"", b""),
        (b"", b" \n"),
        (b"1 2\n", b"1\n2"),
        (b"1\t2\x0b3\x0c4\r\n", b"1 2 3 4"),
        (b"+7 7.0 7e0 7. 0.7e1 70e-1 007", b"7 7 7 7 7 7 7"),
        (b"-0 0.0 +0 0e5", b"0 0 0 0"),
        (b"1e18", b"1000000000000000000"),
        (b"+1000000000000000001", b"1000000000000000001"),
        (b"+5 -0 007 -08 0011", b"+5 -0 007 -08 0011"),  # the same text
        (b"1.01e3 10100e-1 +1010.0", b"1010 1010 1010"),  # exactly that integer
        (b"5 5.0 -0.0 7", b"+5.0 05.0 0e3 +07."),  # with a point or an exponent a number is a number
        (b"0.3333333", b"0.333333333333"),
        (b"1.234e+06", b"1234000.0"),
        (b"1000000.9", b"1000000.0"),
        (b"0.000001", b"0.0"),
        (b"1.000001", b"1.0"),
        (b".5 5e-1 0.5", b"0.5 0.5 0.5"),
        (b"1e99999999999999999", b"1.0e99999999999999999"),
        (b"1e-99999999999999999", b"0.0"),
        (b"\xff\xfe caf\xc3\xa9", b"\xff\xfe  caf\xc3\xa9"),
        (b"nan inf 1_000 0x10", b"nan  inf 1_000 0x10"),
        ("\u00e9", b"\xc3\xa9"),
        (b"1e0000000000000000000000000001", b"10"),
    ],
)
def test_matches(got, expected):
    assert outputs_match(got, expected)
    assert outputs_match(got, expected, as_published=True)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (b"", b"1"),
        (b"1", b""),
        (b"1 2 3 4", b"1 2 3"),
        (b"1 2", b"2 1"),
        (b"12", b"1 2"),
        (b"YES", b"Yes"),
        (b"7.5", b"7"),
        (b"1.00000100001", b"1.0"),
        (b"nan", b"1.0"),
        (b"inf", b"1e999"),
        (b"nan", b"NaN"),
        (b"NaN", b"0"),
        (b"-inf", b"-1.0"),
        (b"infinity", b"inf"),
        (b"1_000", b"1000"),
        (b"1_000.0", b"1000.0"),
        (b"0x10", b"16"),
        (b"1,000", b"1000"),
        ("\u0663", b"3"),  # an Arabic digit
        ("\uff17", b"7"),  # a full-width digit
        ("1\u00a02", b"1 2"),  # a no-break space is no ASCII whitespace
        ("1\u20282", b"1 2"),
        (b"1\x1c2", b"1 2"),
        (b"1\x002", b"1 2"),
        (b"1\x00", b"1"),
        (b"1.0f", b"1.0"),
        (b"1e", b"1"),
        (b"1e+", b"1"),
        (b"e1", b"1.0"),
        (b".", b"0"),
        (b"+", b"0"),
        (b"--1", b"1"),
        (b"1.2.3", b"1.2"),
        (b"True", b"1"),
        (b"1j", b"1"),
        (b"1e99999999999999999", b"1.0"),
        (b"1e999999999999999999999999", b"1.0"),
        (b"1.0", b"yes"),
        (b"0.0000011", b"0.0"),
        (b"1e-999", b"1"),
    ],
)
def test_does_not_match(got, expected):
    assert not outputs_match(got, expected)
    assert not outputs_match(got, expected, as_published=True)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (b"10000001", b"10000000"),
        (b"1000000000000000001", b"1000000000000000000"),
        (b"1e18", b"1000000000000000001"),
        (b"7.0000001", b"7"),
        (b"1e-7", b"0"),
        (b"1e-999999", b"0"),
        (b"9007199254740993", b"9007199254740992"),  # one float for both
        (b"7.000000000000000000000000000000000000001", b"7"),
    ],
)
def test_integers_are_exact_unless_as_published(got, expected):
    assert not outputs_match(got, expected)
    assert outputs_match(got, expected, as_published=True)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (b"11", b"0011"),
        (b"101", b"0101"),
        (b"0", b"0000"),
        (b"00", b"0000"),
        (b"100", b"0100"),
        (b"21", b"021"),
        (b"-1", b"-01"),
        (b"011", b"0011"),
        (b"+0011", b"0011"),
        (b"11.0", b"0011"),
        (b"1.1e1", b"0011"),
        (b"5", b"+5"),
        (b"5.0", b"+5"),
        (b"0", b"-0"),
        (b"0", b"+0"),
        (b"-0", b"+0"),
        (b"1 0 11", b"1 0 011"),
        (b"1" * 20_000, b"0" + b"1" * 20_000),
        (b"1" + b"0" * 20_000, b"+1" + b"0" * 20_000),
    ],
)
def test_digits_that_no_number_is_written_with_are_text_unless_as_published(got, expected):
    assert not outputs_match(got, expected)
    assert outputs_match(expected, expected)
    assert outputs_match(got, expected, as_published=True)


DIGITS = st.text("0123456789", min_size=1, max_size=25)
EXPONENT = st.integers(-40, 40).map("e{:+d}".format)
PLAIN = st.builds("{}{}".format, st.sampled_from(["", "+", "-"]), DIGITS)
DECIMAL = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "+", "-"]),
    st.one_of(
        st.builds("{}.{}".format, DIGITS, DIGITS), st.builds("{}.".format, DIGITS), st.builds(".{}".format, DIGITS)
    ),
    st.one_of(st.just(""), EXPONENT),
)
NUMBER = st.one_of(PLAIN, DECIMAL, st.builds("{}{}".format, PLAIN, EXPONENT))


def rule(got: str, expected: str, as_published: bool) -> bool:
    """The same rule with exact fractions."""
    a, b = Fraction(got), Fraction(expected)
    if expected.lstrip("+-").isdigit() and not as_published:
        return got == expected or (a == b and str(int(expected)) == expected)
    return abs(a - b) <= BOUND * max(1, abs(b))


def spelled(value: Fraction, places: int) -> str:
    """An exact decimal of a fraction whose denominator divides 10 ** places."""
    scaled = value * 10**places
    assert scaled.denominator == 1
    digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
    return ("-" if scaled < 0 else "") + digits[:-places] + "." + digits[-places:]


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(NUMBER, NUMBER, st.booleans())
def test_numbers_against_fractions(got, expected, as_published):
    assert outputs_match(got, expected, as_published) is rule(got, expected, as_published)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(DECIMAL, st.sampled_from([-1, 1]), st.integers(-2, 2), st.integers(0, 50), st.booleans())
def test_the_edge_of_the_tolerance_against_fractions(expected, sign, steps, places, as_published):
    """Numbers that lie on the bound, or beside it by a few units of a far digit."""
    wanted = Fraction(expected)
    got = wanted + sign * BOUND * max(1, abs(wanted)) + Fraction(steps, 10**places)
    text = spelled(got, 150)
    assert outputs_match(text, expected, as_published) is rule(text, expected, as_published)


@settings(max_examples=150, deadline=None)
@given(PLAIN, st.integers(-1, 1), st.integers(0, 30))
def test_integers_spelled_as_decimals_against_fractions(expected, steps, places):
    text = spelled(Fraction(expected) + Fraction(steps, 10**places), 30)
    assert outputs_match(text, str(int(expected))) is (steps == 0)
    assert outputs_match(text, expected) is (steps == 0 and str(int(expected)) == expected)
    assert outputs_match(expected, expected + "." + "0" * places)


BYTES = st.lists(
    st.sampled_from([b"1", b"1.0", b"x", b" ", b"\n", b"\x0b", b"\xff", b"\x00", b"e", b"-", b"_", b"nan"]), max_size=30
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(BYTES.map(b"".join), BYTES.map(b"".join))
def test_any_bytes_against_a_plain_reading_of_the_rule(got, expected):
    def number(token: bytes) -> Fraction | None:
        mantissa, e, power = token.removeprefix(b"-").partition(b"e")
        whole, _, part = mantissa.partition(b".")
        if not (whole + part).isdigit() or (e and not power.removeprefix(b"-").isdigit()):
            return None
        value = Fraction(int(whole + part), 10 ** len(part)) * Fraction(10) ** int(power or b"0")
        return -value if token.startswith(b"-") else value

    def pair(mine: bytes, theirs: bytes) -> bool:
        a, b = number(mine), number(theirs)
        if mine == theirs or a is None or b is None:
            return mine == theirs
        if theirs.lstrip(b"-").isdigit():
            return a == b and b"%d" % int(theirs) == theirs
        return abs(a - b) <= BOUND * max(1, abs(b))

    mine, theirs = got.split(), expected.split()
    wanted = len(mine) == len(theirs) and all(map(pair, mine, theirs))
    assert outputs_match(got, expected) is wanted


@settings(max_examples=100, deadline=None)
@given(st.lists(DIGITS, max_size=30), st.sampled_from([b" ", b"\n", b"\r\n", b"\t  "]), st.integers(0, 30))
def test_only_tokens_count(tokens, blank, cut):
    plain = " ".join(tokens).encode()
    spread = blank + blank.join(token.encode() for token in tokens) + blank
    assert outputs_match(spread, plain)
    if cut < len(tokens):
        assert not outputs_match(spread, " ".join(tokens[:cut]))


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 4096 * 2 - 1, 4096 * 2, 4096 * 2 + 1])
def test_pieces_are_joined_without_a_seam(size):
    got, expected = b"1 " * (size // 2) + b"12345", b"1\n" * (size // 2) + b"12345"
    assert outputs_match(got, expected)
    assert not outputs_match(got + b" 1", expected)
    assert not outputs_match(got, expected + b"6")
    assert outputs_match(b" " * size + b"1", b"1" + b" " * size)
    assert outputs_match(b"1" * size + b".0", b"1" * size)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"1", b"1.0", b"x", b"\xc3\xa9", b"12345"]), max_size=12),
    st.sampled_from([b" ", b"\n", b" \n "]),
    st.integers(0, 12),
    st.sampled_from([b"", b"y"]),
    st.sampled_from([1, 1, 1, 3000]),
)
def test_the_first_difference_is_where_it_is(tokens, blank, at, other, many):
    """Against a plain search, over pieces too; what comes behind it does not count."""
    got = blank + blank.join(tokens * many)
    changed = (tokens * many)[: at * many] + ([other] if other else []) + [b"z"]
    expected = b"\t".join(changed)
    wanted = next((n for n, (a, b) in enumerate(zip(tokens * many, changed, strict=False)) if not outputs_match(a, b)),
                  min(len(changed), len(tokens) * many))  # fmt: skip
    places = [word.start() for word in re.finditer(rb"\S+", got)] + [len(got)]
    assert first_difference(got, expected) == places[wanted]
    assert first_difference(got, got.replace(blank, b"\t")) is None


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(NUMBER, NUMBER, st.integers(-3, 3), st.booleans())
def test_long_numbers_as_short_ones(got, expected, steps, as_published):
    """What decides of megabytes, on numbers that the exact rule can tell; and on texts that are none."""
    near = spelled(Fraction(expected) + Fraction(steps, 10**6), 60)
    for text in (got, near, expected):
        wanted = text == expected or rule(text, expected, as_published)
        assert (text == expected or _long_numbers_match(text.encode(), expected.encode(), as_published)) is wanted
    for broken in (
        b"",
        b"+",
        b".",
        b"e1",
        b"1e",
        b"1e+",
        b"--1",
        b"1.2.3",
        b"1_0",
        b"1e" + b"9" * 18,
        b"\xd9\xa3",
        b"nan",
    ):
        assert not _long_numbers_match(broken, expected.encode(), as_published)
        assert not _long_numbers_match(expected.encode(), broken, as_published)


def test_a_comparison_gives_way_to_other_work():
    """However long tokens and outputs are: here the pauses are counted, of as much work as 4,096 plain numbers are."""

    async def pauses(got: bytes, expected: bytes) -> int:
        seen = 0

        async def other_work() -> None:
            nonlocal seen
            while True:
                seen += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(other_work())
        assert await difference(got, expected) is None
        beside.cancel()
        return seen

    many = 1 << 15
    assert asyncio.run(pauses(b"1 " * 100, b"1\n" * 100)) <= 2
    assert asyncio.run(pauses(b"1 " * many, b"1\n" * many)) >= many // 4096
    assert asyncio.run(pauses(b"1.%0*d " % (1000, 0) * 3000, b"1\n" * 3000)) >= 3000 * 1000 // (1 << 17)


@pytest.mark.slow
def test_sixteen_megabytes_are_never_held_as_tokens():
    """What a hostile program prints must not become twenty times as much here."""
    size = 16 << 20
    tracemalloc.start()
    try:
        for got, expected in [(b"1 " * (size // 2), b"1\n" * 1000), (b"10 " * (1 << 18), b"10\n" * (1 << 18))]:
            base = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            outputs_match(got, expected)
            assert tracemalloc.get_traced_memory()[1] - base < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_numbers_of_megabytes():
    many = 4 << 20
    assert not outputs_match(b"1" * many, b"1" * (many - 1) + b"2")
    assert outputs_match(b"1" * many + b".0", b"1" * many)
    assert outputs_match(b"1" * many + b".2", b"1" * many + b".5")
    assert not outputs_match(b"1" * many + b"x", b"1" * many)
    assert outputs_match(b"1e%d" % many, b"1" + b"0" * many)
    assert not outputs_match(b"1e%d" % (many - 1), b"1" + b"0" * many)
    assert outputs_match(b"-1e%d" % many, b"-1" + b"0" * many)
    assert not outputs_match(b"-1e%d" % many, b"1" + b"0" * many)
    assert outputs_match(b"0." + b"0" * many + b"1e%d" % many, b"0.1")
    assert not outputs_match(b"0." + b"0" * many + b"1e%d" % many, b"0.2")
    assert outputs_match(b"0" * many + b"e5", b"0")
    assert outputs_match(b"-" + b"0" * many + b".5", b"-0.5000001")
    assert not outputs_match(b"0" * many + b".5", b"-0.5")
