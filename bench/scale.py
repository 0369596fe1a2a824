"""What a run folder of a million attempts costs to go on with and to report, and how full an endpoint's slots are.

    python bench/scale.py                               10,000, 100,000 and 1,000,000 attempts, a row each (an hour;
                                                        5 GB where temporary files go)
    python bench/scale.py --attempts 10000 100000       only these
    python bench/scale.py --slots 64 256 1024           slots in use at the server, a row each, in place of the folders

A folder is a made-up run (tests/support/planted_run.py), beyond 100,000 attempts copies of one under other names. Each
step is a process of its own, of which CPU seconds and the peak of memory are told:

    start      the folder is opened to be written, and every task walked to its end: what a resume does before it asks
    report     report.py: results and text, while nothing is kept of the attempts (reading/kept.py)
    again      the same once more
    whole      run.py --reuse: the same, and the rows, and the page

Left out: what several nodes do (bench/nodes.py), the grader (bench/grading.py).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PART = 100_000  # attempts that are planted at once
A_TASK = 85  # attempts of a planted task, on average


# ── a folder ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def lay_out(folder: Path, attempts: int) -> None:
    """A made-up run of about so many attempts."""
    from tests.support import planted_run

    part = min(attempts, PART)
    planted_run.make(folder, part // A_TASK)
    for name, key in (("attempts.jsonl", b'{"task_id": "'), ("tasks.jsonl", b'{"id": "'), ("events.jsonl", b"")):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        with (folder / name).open("ab") as file:
            for copy in range(1, attempts // part):
                new = key + f"{copy}-".encode()
                file.writelines(new + line.removeprefix(key) if key else line for line in lines)


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def start(folder: Path) -> None:
    """Open a folder and walk every task to its end, as a run that goes on does: base group and arms that look at nobody
    are played; of the others, whose lots fall by a task's name and so otherwise for a copy, each attempt is read."""
    from records import Log
    from session import Session, each
    from swarm import ARMS, Slot, Style, swarm
    from tasksets.task import Task

    walked: list[int] = []
    with Log(folder) as log:
        rounds = log.config["plan"]["rounds"]
        session = Session(log, None, seed=0, room=asyncio.Semaphore(1), watch=lambda attempt: None)

        async def walk(task: Task) -> None:
            base = await session.play(task, swarm(task.shown(), ARMS["resample"], "base", 8, 1, style=Style()))
            walked.append(len(base))
            for arm in () if any(attempt.passed for attempt in base) else ARMS:
                if arm in ("resample", "solo"):
                    seen = await session.play(task, swarm(task.shown(), ARMS[arm], arm, 8, rounds, style=Style()))
                else:
                    slots = (Slot(task.id, arm, 0, nth, particle) for nth in range(rounds) for particle in range(8))
                    seen = [attempt for slot in slots if (attempt := log.get(slot))]
                walked.append(len(seen))

        await each(iter(log.cards()), walk, at_once=8)
        assert sum(walked) == len(log), f"{sum(walked)} of {len(log)} attempts were walked"


class Cost(NamedTuple):
    cpu: float  # s
    memory: float  # MB at the peak


def cost(*command: str) -> Cost:
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said.decode()
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10))


def row(attempts: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as away:
        folder = Path(away) / "out"
        subprocess.run([sys.executable, __file__, "--lay-out", str(folder), "--attempts", str(attempts)], check=True)
        with (folder / "attempts.jsonl").open("rb") as file:
            lines = sum(1 for _ in file)
        yield f"{lines:,}"
        yield f"{sum(path.stat().st_size for path in folder.iterdir()) / 1e6:,.0f} MB"
        steps = {
            "start": cost(__file__, "--start", str(folder)),
            "report": cost(str(ROOT / "report.py"), str(folder)),
            "again": cost(str(ROOT / "report.py"), str(folder)),
            "whole": cost(str(ROOT / "run.py"), "--reuse", "--out", str(folder)),
        }
        for spent in steps.values():
            yield f"{spent.cpu:,.1f} s"
            yield f"{spent.memory:,.0f} MB"
        yield f"{(folder / 'report.html').stat().st_size / 1e6:.1f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--slots", type=int, nargs="+")
    parser.add_argument("--lay-out", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--start", type=Path, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.lay_out:
        return lay_out(a.lay_out, a.attempts[0])
    if a.start:
        return asyncio.run(start(a.start))
    if a.slots:
        from bench.harness import slots

        for n in a.slots:
            with tempfile.TemporaryDirectory() as away:
                slots(n, Path(away))
        return None
    print("| attempts | on disk | start | peak | report | peak | again | peak | with the page | peak | page |")
    print("|" + "---|" * 11)
    for attempts in a.attempts:
        print("| " + " | ".join(row(attempts)) + " |", flush=True)
    return None


if __name__ == "__main__":
    main()
