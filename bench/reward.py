"""What the pipe costs: completions graded through reward.py, against the same ones given to the grader itself.

    python bench/reward.py [--repetitions 9] [--completions 200]

Both ways have the same number of workers, started beforehand; every completion is another program, on a ground truth
of the size that code_contests has (50 tests, 100 kB). Repetitions take turns; the ratio is that of the medians of wall
time. Left out: the start of a grader, which is a second, once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import reward
from grader import Grader
from tasksets.truth import loads

PROGRAM = "numbers = list(map(int, input().split()))\nprint(sum(numbers))"


def truths(tasks: int, tests: int) -> list[str]:
    def test(task: int, k: int) -> list[str]:
        numbers = [task + k + i for i in range(400)]
        return [" ".join(map(str, numbers)) + "\n", f"{sum(numbers)}\n"]

    every = [[test(task, k) for k in range(tests)] for task in range(tasks)]
    return [json.dumps({"kind": "stdio", "visible": found[:10], "hidden": found[10:]}) for found in every]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--completions", type=int, default=200)
    parser.add_argument("--tests", type=int, default=50, help="a task")
    a = parser.parse_args()
    texts = truths(max(1, a.completions // 8), a.tests)  # a group of eight on each

    def work(tag: str) -> tuple[list[str], list[str]]:
        pairs = [(f"```python\n{PROGRAM}\n# {tag} {k}\n```", texts[k // 8 % len(texts)]) for k in range(a.completions)]
        return [reply for reply, _ in pairs], [text for _, text in pairs]

    async def interleaved() -> tuple[list[float], list[float]]:
        here: list[float] = []
        there: list[float] = []
        async with Grader() as grader:
            reward.score("```python\n```", texts[0])
            for repetition in range(a.repetitions):
                replies, given = work(f"here {repetition}")
                started = time.monotonic()
                tasks = {text: loads(text) for text in given}
                found = await asyncio.gather(*(grader.grade(r, tasks[t]) for r, t in zip(replies, given, strict=True)))
                here.append(time.monotonic() - started)
                assert all(grade.passed for grade in found), "a right program failed"
                replies, given = work(f"there {repetition}")
                started = time.monotonic()
                scores = await asyncio.to_thread(reward.compute_scores, [], replies, given)
                there.append(time.monotonic() - started)
                assert scores == [1.0] * len(replies), "a right program failed"
        return here, there

    here, there = asyncio.run(interleaved())
    own, piped = statistics.median(here), statistics.median(there)
    print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print(
        f"{a.completions} completions of {a.tests} tests, {a.repetitions} repetitions: the grader itself {own:.2f} s, "
        f"through reward.py {piped:.2f} s, ratio {piped / own:.3f}"
    )


if __name__ == "__main__":
    main()
