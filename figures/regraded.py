"""Attempts under the grades that config.json names: those of their time, or those of a regrade (checks.jsonl).

    graded(attempts, checks, config)            what every figure and every exported row starts from
    gathered(placed, checks, config)            the same as columns
    regraded(attempts, checks, "regrade-1")     the same replies with the letters that these checks hold

A check is found by task and SHA-256 of the program. Pure.
Left out: grading again (commands/regrade.py), what letters amount to (grading/grade.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from commands.settings import Config, Row
from figures.gathered import Gathered, Placed
from grading.grade import LETTERS, tally
from swarm import Attempt


def graded(
    attempts: Iterable[Attempt], checks: Iterable[Row], config: Config, kept: list[str] | None = None
) -> Iterator[Attempt]:
    """The attempts under the grades that config.json names: their own, or those of a regrade (see regraded)."""
    grades = config.get("grades") or "attempts"
    return iter(attempts) if grades == "attempts" else regraded(attempts, checks, grades, kept)


def gathered(placed: Iterable[Placed], checks: Iterable[Row], config: Config) -> Gathered:
    """The attempts as columns, under the grades that config.json names. placed: each with where its line stands."""
    made, places = Gathered(), deque[tuple[int, int]]()

    def attempts() -> Iterator[Attempt]:
        for at, length, attempt in placed:
            places.append((at, length))
            yield attempt

    made.extend((*places.popleft(), attempt) for attempt in graded(attempts(), checks, config, made.left))
    return made


def regraded(
    attempts: Iterable[Attempt], checks: Iterable[Row], name: str, kept: list[str] | None = None
) -> Iterator[Attempt]:
    """The attempts with the grades that the checks `name`/visible and `name`/hidden give their programs.

    An attempt without a program keeps its outcome. One whose program has no such check (made after the regrade, or its
    task is gone) keeps its own grade, and its task is appended to `kept`. Hidden letters count only where every visible
    test passed, as when grading.
    """
    parts = {f"{name}/visible": 0, f"{name}/hidden": 1}
    letters: dict[tuple[str, str], list[tuple[str, float] | None]] = {}
    raised: dict[tuple[str, str], Row] = {}
    for check in checks:
        if check["tests"] in parts:
            row = letters.setdefault((check["task_id"], check["program"]), [None, None])
            row[parts[check["tests"]]] = check["letters"], float(check.get("cpu_seconds") or 0.0)
            if "error" in check:
                raised[check["task_id"], check["program"]] = check
    for attempt in attempts:
        if attempt.code is None:
            yield attempt
            continue
        program = sha256(attempt.code.encode("utf-8", "surrogatepass")).hexdigest()
        seen, unseen = letters.get((attempt.task_id, program), [None, None])
        whole = seen is not None and set(seen[0]) <= {LETTERS["pass"]}
        if seen is None or (whole and attempt.hidden_total and unseen is None):
            if kept is not None:
                kept.append(attempt.task_id)
            yield attempt
            continue
        visible, seconds = seen
        why = raised.get((attempt.task_id, program), {})
        hidden, more = unseen if whole and unseen is not None else ("", 0.0)
        yield replace(
            attempt,
            **tally(visible, hidden)._asdict(),
            visible_total=len(visible),
            hidden_total=len(hidden) or attempt.hidden_total,
            visible_tests=visible,
            hidden_tests=hidden,
            cpu_seconds=seconds + more,
            error=why.get("error", ""),
            error_line=why.get("error_line"),
        )
