"""A run on a Ray cluster of this machine beside the run of one process: samples a second, and CPU of what writes it.

    python bench/nodes.py cores   ten tests a program, no latency: one process, and two nodes of one CPU (3 minutes)
    python bench/nodes.py grows   a second of latency in place of grading: 1, 2, 4, 8 nodes, 16 slots each (5 minutes)

It needs a Python that has Ray beside the project. Samples a second are counted from the first to the last tenth of the
attempts, so that no start counts. CPU is that of the process that was started, which on a cluster writes the folder and
nothing else, between the same two moments: of both, since a cluster of one machine shares it with the players. Left
out: real machines, and a network between them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.harness import write_tasks  # noqa: E402
from tests.support.mock_endpoint import Request, knows, serving  # noqa: E402

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}  # see tests/test_cluster.py
ATTEMPTS_A_TASK = 16


class Seen(NamedTuple):
    rate: float  # samples a second
    cpu: float  # seconds of the started process a sample


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(folder: Path, n: int, url: str, slots: int, *more: str) -> Seen:
    """One run over n tasks."""
    tasks, out = folder / f"tasks-{n}.jsonl", folder / f"out-{time.monotonic_ns()}"
    write_tasks(tasks, n)
    flags = ["--base-samples", "8", "--particles", "8", "--rounds", "1", "--arms", "resample", "--workers"]
    call = [sys.executable, str(ROOT / "run.py"), "--tasks", str(tasks), "--out", str(out), "--base-url", url]
    process = subprocess.Popen([*call, "--concurrency", str(slots), *flags, *more], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env={**os.environ, **LOOPBACK}, cwd=folder)  # fmt: skip
    due = n * ATTEMPTS_A_TASK
    first, last = due // 10, due * 9 // 10
    seen: list[tuple[float, float, int]] = []
    while process.poll() is None and (not seen or seen[-1][2] < last):
        time.sleep(0.05)
        there = (out / "attempts.jsonl").read_bytes().count(b"\n") if (out / "attempts.jsonl").exists() else 0
        if there >= first:
            seen.append((time.monotonic(), cpu_of(process.pid), there))
    process.wait()
    (began, before, some), (ended, after, most) = seen[0], seen[-1]
    return Seen((most - some) / (ended - began), (after - before) / (most - some))


def on_nodes(number: int, run: Callable[[str], Seen]) -> Seen:
    command = [sys.executable, str(ROOT / "tests/support/ray_nodes.py"), str(number)]
    nodes = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, env={**os.environ, **LOOPBACK})  # fmt: skip
    assert nodes.stdout and nodes.stdin
    try:
        return run(nodes.stdout.readline().strip())
    finally:
        nodes.stdin.close()
        nodes.wait(180)


def say(what: str, seen: Seen) -> None:
    row = {"what": what, "samples_a_second": round(seen.rate, 1), "cpu_ms_a_sample": round(1e3 * seen.cpu, 2)}
    print(json.dumps(row), flush=True)


def cores(folder: Path) -> None:
    references = {f"n plus {10_000 + k}.": f"print(int(input()) + {10_000 + k} + 1)" for k in range(40)}
    with serving(knows(references, right=(1.0, 1.0, 1.0))) as mock:
        for _ in range(3):
            say("one process, 2 workers", watched(folder, 40, mock.url, 64, "2"))
            say("two nodes of one CPU", on_nodes(2, lambda at: watched(folder, 40, mock.url, 64, "1", "--ray", at)))


def grows(folder: Path) -> None:
    def latency(request: Request) -> float:
        return 0.0 if request.probe else 1.0

    with serving(lambda request: f"I do not know {request.seed}.", latency=latency) as mock:
        for number in (1, 2, 4, 8):
            tasks, slots = 8 * number, 16 * number

            def run(at: str, n: int = tasks, s: int = slots) -> Seen:
                return watched(folder, n, mock.url, s, "1", "--ray", at)

            seen = on_nodes(number, run)
            say(f"{number} nodes, {slots} slots, one second a reply", seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cores", "grows"))
    what = parser.parse_args().what
    with tempfile.TemporaryDirectory() as made:
        (cores if what == "cores" else grows)(Path(made))


if __name__ == "__main__":
    main()
