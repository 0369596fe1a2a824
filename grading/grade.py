"""What a reply is worth: the words of it, that everybody may use and that need nothing.

    LETTERS, OUTCOMES   what became of one test, and the letter it is kept under; and back
    UNANSWERED          outcomes of a prompt that brought no reply
    Grade, TestResult   of a reply, of one test
    tally               what the letters of a program's tests amount to
    clip                how much of an output a prompt or a line of attempts.jsonl holds
    rules_of            names all that a verdict depends on besides program and tests

Left out: how a grade comes about (grader.py).
"""

from __future__ import annotations

import sys
from typing import NamedTuple

# What became of one test, and the letter it is kept under.
LETTERS = {
    "pass": "P",
    "wrong_answer": "W",
    "runtime_error": "R",
    "timeout": "T",
    "memory_limit": "M",
    "output_limit": "O",
    "not_run": ".",
    "no_code": "N",
    "syntax_error": "S",
    "missing_module": "I",
    "forbidden": "F",
    "bad_value": "V",
    "context_overflow": "C",
    "refused": "X",
}
OUTCOMES = {letter: outcome for outcome, letter in LETTERS.items()}

# A prompt that brought no reply: too long for the server's context; or not answered, at two starts, for other reasons.
# The first is a failure of the run's settings and counts as one; of the second nothing is known, so it is in no rate.
UNANSWERED = ("context_overflow", "refused")

CLIP = 300  # characters of an input or output that a prompt or a line of attempts.jsonl holds


def clip(text: str, start: int = 0) -> str:
    """CLIP characters of text from offset `start`, with an ellipsis where something was cut off."""
    return ("…" if start > 0 else "") + text[start : start + CLIP] + ("…" if len(text) > start + CLIP else "")


class Grade(NamedTuple):
    """What a reply is worth. visible, hidden: a letter a test (LETTERS), "" where none was run.

    got: what the program printed on the first visible test it failed (asserts: the value), clipped, from character
    got_start on; where that test did not end by itself, the name of its outcome.
    """

    code: str | None
    fitness: float  # share of the visible tests passed
    passed: bool
    outcome: str  # of the first failed test, visible before hidden; else pass
    visible: str = ""
    hidden: str = ""
    got: str = ""
    got_start: int = 0
    cpu_seconds: float = 0.0  # all tests together
    error: str = ""  # of the first failed test: class of the exception that ended it, see raised.py; nothing goes by it
    error_line: int | None = None  # of the program, from 1


class Tally(NamedTuple):
    """What letters amount to, under the names that an attempt has for it."""

    fitness: float  # share of the visible tests passed
    visible_passed: int
    hidden_passed: int
    passed: bool  # every test, and there was one
    outcome: str  # of the first failed test, visible before hidden; else pass


def tally(visible: str, hidden: str) -> Tally:
    """What the letters of a program's tests amount to; hidden ones are "" where they were not run."""
    passes = LETTERS["pass"]
    failed = (visible + hidden).lstrip(passes)
    return Tally(
        fitness=visible.count(passes) / len(visible) if visible else 0.0,
        visible_passed=visible.count(passes),
        hidden_passed=hidden.count(passes),
        passed=not failed and bool(visible + hidden),
        outcome=OUTCOMES[failed[0]] if failed else "pass" if visible + hidden else "not_run",
    )


class TestResult(NamedTuple):
    """What became of one test. got, got_start, error, error_line: as in Grade, of a test that was not passed.

    cpu_seconds: of asserts that one process has answered, each its even share.
    """

    passed: bool
    outcome: str
    got: str = ""
    cpu_seconds: float = 0.0
    got_start: int = 0
    error: str = ""
    error_line: int | None = None


TestResult.__test__ = False  # type: ignore[attr-defined]  # for pytest, which takes the name for a test's


RULES = 3  # goes up whenever the same program on the same tests could get another verdict


def rules_of(as_published: bool) -> str:
    """Names all that a verdict depends on besides program and tests."""
    return f"{RULES}{'-as-published' if as_published else ''}-py{sys.version_info[0]}.{sys.version_info[1]}"
