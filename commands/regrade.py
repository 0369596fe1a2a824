"""run.py --regrade: every saved reply graded again, without a call, when the grader had a fault or has changed.

The new grades go to checks.jsonl under a name of their own (regrade-1, regrade-2, ...); attempts.jsonl keeps the old
ones, and a replay keeps using those, since they wrote the prompts. config.json says which grades count from now on.
Interrupted, the same command goes on where it stopped.

Left out: asking again. Refined rounds were steered by the old grades, and stay so.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from commands.console import note
from commands.folder import note_remarks
from commands.sampling import Watch, conduct
from commands.settings import Config
from faults import DONE
from figures.results import Results
from measure import measure
from records import AUDIT, CHECKS, CONFIG, EVENTS, Log
from session import each
from swarm import Slot
from tasks import of_identity
from tasksets.task import Task, card


def regrade(out: Path, workers: int | None, ray: str | None = None) -> int:
    """Grade again what the folder holds, and say which conclusions change: the exit code. ray: as for `grader_for`."""
    with Log(out) as log:
        config = log.config
        before = config["grades"]
        name = f"regrade-{1 + int(before.removeprefix('attempts').removeprefix('regrade-') or 0)}"
        old = _results(log, config)
        code = conduct(_grade_all(log, config, name, workers, ray), log)
        if code == DONE:
            config = {**log.config, "grades": name}
            for line in changes(old, _results(log, config)):
                note(line)
            note("refined rounds were steered by the grades of their time: their prompts stand as they were asked")
            log.keep(CONFIG, {**config})
        return code


async def _grade_all(log: Log, config: Config, name: str, workers: int | None, ray: str | None) -> None:
    from commands.graders import grader_for  # which --reuse does without

    identity = config["identity"]
    saved: dict[str, list[Slot]] = defaultdict(list)
    for attempt in log.attempts():
        if attempt.code is not None:
            saved[attempt.task_id].append(attempt.slot)
    done = {(row["task_id"], row["program"]) for row in log.checks() if row["tests"] == f"{name}/visible"}
    tasks = of_identity(identity)
    missing = set(saved)

    async with grader_for(ray, workers, identity["as_published"]) as grader:
        note_remarks(grader.remarks)
        watch = Watch(sum(map(len, saved.values())), unit="program")

        async def one(task: Task) -> None:
            log.add_card(card(task))  # RecordsError where the task has changed
            missing.discard(task.id)
            for slot in saved[task.id]:
                attempt = log.get(slot)
                assert attempt is not None and attempt.code is not None
                program = sha256(attempt.code.encode("utf-8", "surrogatepass")).hexdigest()
                if (task.id, program) in done:
                    watch.not_needed(1)
                    continue
                done.add((task.id, program))
                grade = await grader.grade(attempt.reply, task)
                row = {"task_id": task.id, "task_sha": task.digest, "program": program, "rules": grader.rules}
                raised = {"error": grade.error, "error_line": grade.error_line}
                for part, letters in (("hidden", grade.hidden), ("visible", grade.visible)):
                    seconds = round(grade.cpu_seconds, 6) if part == "visible" else 0.0
                    said = {"tests": f"{name}/{part}", "letters": letters, "cpu_seconds": seconds}
                    log.append(CHECKS, {**row, **said, **(raised if grade.error and part == "visible" else {})})
                watch.step()

        ours: Iterator[Task] = (task for task in tasks if task.id in saved)
        with watch:
            await each(ours, one, at_once=max(16, 2 * grader.workers))
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        note(f"warning: {', '.join(sorted(missing)[:5])}{more} no longer in {identity['tasks']}: old grades kept")
    log.append(EVENTS, {"event": "regraded", "name": name, "programs": len(done), "time": time.time()})


def _results(log: Log, config: Config) -> Results:
    return measure(log.attempts(), config, log.cards(), log.checks(), log.events(), log.plan, log.read(AUDIT))


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What a reader of the report would conclude differently, a line each."""
    found = []
    if old["all_fail"] != new["all_fail"]:
        found.append(f"all-fail tasks: {old['all_fail']} -> {new['all_fail']}")
    for arm in new["arms"]:
        was, now = (results["intervals"].get(arm, {}) for results in (old, new))
        if (was.get("rescued"), was.get("n")) != (now.get("rescued"), now.get("n")):
            found.append(f"{arm} rescued {was.get('rescued')} of {was.get('n')} -> {now['rescued']} of {now['n']}")
        was, now = (results["paired"].get(arm, {}).get("verdict") for results in (old, new))
        if was != now:
            found.append(f"{arm} against resample: {was} -> {now}")
    if old["rescued_rows"] != new["rescued_rows"]:
        found.append(f"rescued rows: {old['rescued_rows']} -> {new['rescued_rows']}")
    return [f"changed: {line}" for line in found] or ["no conclusion changes"]
