"""After the arms: every rescued program on all the spare tests of its task, those of the data set that decided nothing.

    code = verify(out, workers)     the exit code; what is done already is not done again

Each distinct program goes into checks.jsonl once, with a letter for each spare test, the first that it fails, and what
marks it as known by heart. Whoever makes rows reads it there (figures/verified.py).

Left out: passes of the base group; tasks that are no longer in the set.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from commands.checks import Checks
from commands.console import busy, note
from commands.folder import note_remarks
from commands.sampling import Watch, conduct
from commands.settings import Config, Row
from faults import DONE
from figures.verified import KIND, program_of
from grading.byheart import given, marks
from grading.grade import CLIP, LETTERS, TestResult, rules_of
from records import Log
from session import each
from tasks import of_identity
from tasksets.task import Task, Test

if TYPE_CHECKING:
    from grader import Grader

FORM = "2"  # of what is kept beside the letters
ONLY_SHOWN = "passes no spare test"  # right on what was shown and on what decided, and nowhere else
PASS = LETTERS["pass"]


def verify(out: Path, workers: int | None) -> int:
    """Look at what the folder holds and nobody has looked at: the exit code."""
    with contextlib.ExitStack() as held:
        with busy("looking for rescued programs to be verified"):
            log = held.enter_context(Log(out))
            config = log.config
            due = _due(log, config)
        return conduct(_verify(log, config, due, workers), log) if due else DONE


def _due(log: Log, config: Config) -> dict[str, dict[str, str]]:
    """Programs of the arms and re-runs that pass a task whose whole base group failed, by task and name."""
    base: dict[str, list[bool]] = defaultdict(list)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for attempt in log.attempts():
        if attempt.arm == "base":
            base[attempt.task_id].append(attempt.passed or attempt.outcome == "refused")
        elif attempt.passed and attempt.code is not None:
            found[attempt.task_id][program_of(attempt.code)] = attempt.code
    rules = rules_of(config["identity"]["as_published"])
    for row in log.checks():
        if row["tests"].startswith(f"{KIND}/") and row["rules"] == rules and not _says_too_little(row):
            found.get(row["task_id"], {}).pop(row["program"], None)
    size = config["plan"]["base_samples"]
    return {task: those for task, those in found.items() if those and len(base[task]) >= size and not any(base[task])}


def _says_too_little(row: Row) -> bool:
    """Of an older version: marked, and not told whether it passes a test that it cannot know."""
    return bool(row["flags"]) and bool(row["letters"]) and "passed_unseen" not in row


async def _verify(log: Log, config: Config, due: dict[str, dict[str, str]], workers: int | None) -> None:
    as_published = config["identity"]["as_published"]
    checks, missing = Checks(log, KIND), set(due)
    tasks = (task for task in of_identity(config["identity"], spare=True) if task.id in due)
    async with contextlib.AsyncExitStack() as started:
        starting = asyncio.Lock()
        graders: list[Grader] = []

        async def grader() -> Grader:
            """Started for the first task that has a spare test: many sets have none."""
            from grader import Grader

            async with starting:
                if not graders:
                    made = Grader(workers=workers, as_published=as_published)
                    graders.append(await started.enter_async_context(made))
                    note_remarks(made.remarks)
            return graders[0]

        async def one(task: Task) -> None:
            missing.discard(task.id)
            for code in due[task.id].values():

                async def work(code: str = code) -> Row:
                    found = await _spare(await grader(), task, code) if task.spare else _none()
                    return {**found, "flags": [*found["flags"], *_marks(task, code)]}

                rules = rules_of(as_published)
                await checks.once(task, code, f"spare-{FORM}", task.spare, rules, work)
                watch.step()

        with Watch(sum(map(len, due.values())), unit="rescue check") as watch:
            await each(tasks, one, at_once=8)
    if missing:
        note(f"warning: {len(missing)} rescued tasks are no longer in {config['identity']['tasks']}: not verified")


def _none() -> Row:
    return {"letters": "", "cpu_seconds": 0.0, "disputed": 0, "failed": None, "flags": [], "passed_unseen": 0}


def _marks(task: Task, code: str) -> list[str]:
    return marks(code, (*task.visible, *task.hidden), task.kind, task.statement)


async def _spare(grader: Grader, task: Task, code: str) -> Row:
    """A program on every spare test; those that the reference fails too count against nobody."""
    results = await _run(grader, task, code, task.spare)
    letters = "".join(LETTERS[result.outcome] for result in results)
    failed = [k for k, result in enumerate(results) if not result.passed]
    disputed: set[int] = set()
    if failed and task.reference:
        again = await _run(grader, task, task.reference, [task.spare[k] for k in failed])
        disputed = {k for k, result in zip(failed, again, strict=True) if not result.passed}
    first = next((k for k in failed if k not in disputed), None)
    passed = letters.count(PASS)
    seen = {given(test, task.kind) for test in (*task.visible, *task.hidden)}
    unseen = [given(test, task.kind) not in seen for test in task.spare]
    return {
        "letters": letters,
        "cpu_seconds": round(sum(result.cpu_seconds for result in results), 6),
        "disputed": len(disputed),
        "failed": None if first is None else _failure(f"spare {first + 1}", task.spare[first], results[first]),
        "flags": [ONLY_SHOWN] if first is not None and not passed and len(letters) > 2 else [],
        "passed_unseen": sum(is_new and letter == PASS for is_new, letter in zip(unseen, letters, strict=True)),
    }


async def _run(grader: Grader, task: Task, code: str, tests: Sequence[Test]) -> list[TestResult]:
    return await grader.run(
        code, tests, task.kind, task.setup, timeout=task.timeout, functions=task.functions, prelude=task.prelude
    )


def _failure(name: str, test: Test, result: TestResult) -> Row:
    return {"test": name, "outcome": result.outcome, "input": test.input[:CLIP], "expected": test.output[:CLIP],
            "got": result.got}  # fmt: skip
