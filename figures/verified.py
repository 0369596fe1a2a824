"""Rescued programs on the tests that decided nothing, as checks.jsonl holds them: verified, failed, or marked.

    found = verified(checks)                a Verified for each (task, program) that was looked at
    counts(found.values())                  the key `verified` of results.json

A program is verified if it passes every spare test of its task, of which there is at least one. One that fails a spare
test is kept apart, and so is one that is marked where no spare test speaks for it: where it passes none whose input is
new, of no visible or hidden test. A spare test that the reference of the task fails is disputed, counting for nobody.

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
    passed_unseen: int = 0  # spare tests that it passes, whose input is that of no visible or hidden test

    @property
    def is_apart(self) -> bool:
        return self.failed is not None or (bool(self.flags) and not self.passed_unseen)

    @property
    def is_cleared(self) -> bool:
        """Marked, and a row all the same."""
        return bool(self.flags) and not self.is_apart

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
                counted, row["disputed"], row["failed"], tuple(row["flags"]), row.get("passed_unseen", 0)
            )
    return found


def counts(found: Iterable[Verified]) -> VerifiedRows:
    found = list(found)
    return {
        "programs": len(found),
        "verified": sum(one.is_verified for one in found),
        "without_spare_tests": sum(not one.spare and not one.is_apart for one in found),
        "failed": sum(one.failed is not None for one in found),
        "marked": sum(bool(one.flags) and one.is_apart for one in found),
        "cleared": sum(one.is_cleared for one in found),
        "disputed_tests": sum(one.disputed for one in found),
    }
