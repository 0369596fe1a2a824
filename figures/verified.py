"""Rescued programs on the tests that decided nothing, as checks.jsonl holds them: verified, failed, or marked.

    found = verified(checks)                a Verified for each (task, program) that was looked at
    counts(found.values())                  the key `verified` of results.json

A program is verified if it passes every spare test of its task, of which there is at least one, and nothing in its text
marks it. One that fails a spare test, or is marked, is kept apart. A spare test that the task's own reference fails is
disputed and counts against nobody.

Pure. Left out: running them (commands/verify.py), what marks a program (grading/byheart.py), rows (rows/found.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from commands.settings import Row
from figures.results import VerifiedRows

KIND = "verify"  # what the names of these tests begin with in checks.jsonl


class Verified(NamedTuple):
    """What became of a program."""

    spare: int  # tests that count
    disputed: int  # spare tests that the task's reference fails
    failed: Row | None  # the first that it fails: test, outcome, expected, got; clipped
    flags: tuple[str, ...]  # what marks it

    @property
    def is_apart(self) -> bool:
        return self.failed is not None or bool(self.flags)

    @property
    def is_verified(self) -> bool:
        return self.spare > 0 and not self.is_apart


def program_of(code: str) -> str:
    """A program as checks.jsonl names it."""
    return sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def verified(checks: Iterable[Row]) -> dict[tuple[str, str], Verified]:
    """By task and program; of several looks the last."""
    found: dict[tuple[str, str], Verified] = {}
    for row in checks:
        if row["tests"].startswith(f"{KIND}/"):
            counted = len(row["letters"]) - row["disputed"]
            found[row["task_id"], row["program"]] = Verified(
                counted, row["disputed"], row["failed"], tuple(row["flags"])
            )
    return found


def counts(found: Iterable[Verified]) -> VerifiedRows:
    found = list(found)
    return {
        "programs": len(found),
        "verified": sum(one.is_verified for one in found),
        "without_spare_tests": sum(not one.spare and not one.is_apart for one in found),
        "failed": sum(one.failed is not None for one in found),
        "marked": sum(bool(one.flags) for one in found),
        "disputed_tests": sum(one.disputed for one in found),
    }
