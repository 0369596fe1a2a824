"""How long the report of a run of the published size takes, by the real command.

    python bench/report.py [--tasks 275] [--noise-runs 0] [--keep FOLDER]

Lays out a made-up run (275 tasks, four arms, about 23,000 attempts, 80 MB of records) and calls `run.py --reuse` on it
four times: once while nothing is kept of its attempts (reading/kept.py), and then three times. The promise, held
against the first and against the median of the others: text under 3 s, page under 15 s and 8 MB, memory under 600 MB.
Exits 1 where it is broken.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support import planted_run  # noqa: E402

REPEATS = 3


class Cost(NamedTuple):
    text: float  # s until the last line of the report is printed
    whole: float  # s until results.json, rescued.jsonl and report.html are written too
    cpu: float  # s
    memory: float  # MB at the peak


def reuse(folder: Path) -> Cost:
    """One call of `run.py --reuse`."""
    began = last = time.perf_counter()
    command = [sys.executable, "-u", str(ROOT / "run.py"), "--reuse", "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for _ in process.stdout:
            last = time.perf_counter()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"run.py --reuse ended with {process.returncode}"
    whole = time.perf_counter() - began
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Cost(last - began, whole, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=275)
    parser.add_argument("--noise-runs", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="lay the run out here, and leave it there")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as away:
        folder = a.keep or Path(away) / "out"
        planted_run.make(folder, a.tasks, a.noise_runs)
        attempts = folder / "attempts.jsonl"
        with attempts.open("rb") as file:
            lines = sum(1 for _ in file)
        print(f"{lines:,} attempts on {a.tasks} tasks, {attempts.stat().st_size / 1e6:.0f} MB of attempts")
        first, costs = reuse(folder), [reuse(folder) for _ in range(REPEATS)]
        page = (folder / "report.html").stat().st_size / 1e6
    later = Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))
    rows = [
        ("text report", first.text, later.text, "s", 3),
        ("page beside it", first.whole - first.text, later.whole - later.text, "s", 15),
        ("CPU of both", first.cpu, later.cpu, "s", None),
        ("peak memory", first.memory, later.memory, "MB", 600),
        ("report.html", page, page, "MB", 8),
    ]
    print(f"{'':<16}{'first':>8}{'later':>8}")
    for name, *values, unit, limit in rows:
        promised = f" (promised: under {limit})" if limit else ""
        print(f"{name:<16}{values[0]:>8.1f}{values[1]:>8.1f} {unit:<3}{promised}")
    return int(any(limit is not None and max(values) >= limit for _, *values, _, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
