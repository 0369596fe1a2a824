"""What the whole loop costs, and whether it keeps an endpoint busy: `run.py` itself, against a mock endpoint.

    python bench/harness.py slots               share of 64 slots in use, measured at the server (4 minutes)
    python bench/harness.py slots --slots 256   the same at 256
    python bench/harness.py cpu                 CPU seconds a sample, beside a plain thread pool that calls the same
                                                endpoint and starts one Python process a test (2 minutes)
    python bench/harness.py client              CPU milliseconds a request of the policy alone, over aiohttp's sockets
                                                and over the client library's own, in turns (a minute)
    python bench/harness.py memory              resident memory of run.py over 25,000 attempts (10 minutes)

slots: latencies are log-normal with a mean of 4 s and a long tail (sigma 1), programs are trivial and have ten tests.
In use is time-weighted, from the first request until fewer tasks are left than there are slots; beyond that no client
can fill them. cpu: no latency at all. The mock endpoint is a process of its own and is not counted; everything that
run.py starts is. Left out: a real model's own speed, which none of this can change.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = 10  # a task: four visible, six hidden


def write_tasks(path: Path, n: int, tests: int = TESTS) -> None:
    """Trivial tasks; each statement names a number of its own, so that the mock knows which one is asked."""
    with path.open("w") as file:
        for k in range(n):
            pairs = [[f"{number}\n", f"{number + 10_000 + k}\n"] for number in range(tests)]
            visible = max(1, tests * 4 // 10)
            row: dict[str, Any] = {
                "id": f"plus-{k}",
                "statement": f"Read the number n and print n plus {10_000 + k}.",
                "kind": "stdio",
            }
            row |= {"visible": pairs[:visible], "hidden": pairs[visible:]}
            row |= {"reference": f"print(int(input()) + {10_000 + k})"}
            file.write(json.dumps(row) + "\n")


@contextlib.contextmanager
def mock(tasks: Path, *flags: str) -> Iterator[str]:
    """The mock endpoint as a process of its own: its URL."""
    command = [
        sys.executable,
        str(ROOT / "tests/support/mock_endpoint.py"),
        "--port",
        "0",
        "--tasks",
        str(tasks),
        *flags,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
    finally:
        process.kill()
        process.wait()


def seen(url: str, what: str) -> Any:
    with urllib.request.urlopen(url.removesuffix("/v1") + f"/mock/{what}", timeout=60) as answer:
        return json.load(answer)


def command(tasks: Path, out: Path, url: str, *flags: str) -> list[str]:
    return [sys.executable, str(ROOT / "run.py"), "--tasks", str(tasks), "--out", str(out), "--base-url", url, *flags]


def attempts(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "attempts.jsonl").read_bytes().split(b"\n")[:-1]]


# ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def slots(n_slots: int, work: Path) -> None:
    n_tasks, tasks, out = n_slots + 192, work / "tasks.jsonl", work / "out"
    write_tasks(tasks, n_tasks)
    flags = ["--base-samples", "4", "--particles", "4", "--rounds", "2", "--arms", "resample,ring"]
    with mock(tasks, "--latency", "4,1", "--right", "0,0.02,0.05", "--slots", str(n_slots)) as url:
        start = time.monotonic()
        to_unix = time.time() - start
        run = subprocess.run(
            command(tasks, out, url, "--concurrency", str(n_slots), *flags), capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        requests = [row for row in seen(url, "requests") if row[1].endswith("completions")][1:]  # without the probe
    done: dict[str, float] = {}
    for row in attempts(out):
        done[row["task_id"]] = max(done.get(row["task_id"], 0.0), row["time"] - to_unix)
    first, last = min(row[0] for row in requests), max(row[5] for row in requests)
    end = sorted(done.values())[n_tasks - n_slots]
    busy = sum(max(0.0, min(row[5], end) - row[4]) for row in requests)
    worked = sum(row[5] - row[4] for row in requests)
    print(f"{len(requests):,} requests, mean latency {worked / len(requests):.2f} s, {n_slots} slots")
    print(
        f"in use until fewer tasks than slots were left: {busy / (n_slots * (end - first)):.2%} of {end - first:.0f} s"
    )
    print(f"in use over all: {worked / (n_slots * (last - first)):.2%} of {last - first:.0f} s")
    print(*(line for line in run.stdout.split("\n") if "slots" in line.lower()), sep="\n")


# ── cpu ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def cpu(n_samples: int, work: Path) -> None:
    n_tasks, tasks = n_samples // 8, work / "tasks.jsonl"
    write_tasks(tasks, n_tasks)
    # Every program is right, so that both run every test of it, and no arm has anything to do.
    with mock(tasks, "--right", "1,1,1") as url:
        ours = measured(command(tasks, work / "out", url, "--base-samples", "8", "--arms", "resample", "--rounds", "1"))
        one = measured(command(tasks, work / "out", url, "--base-samples", "8", "--arms", "resample", "--rounds", "1"))
        theirs = measured([sys.executable, __file__, "plain", "--tasks", str(tasks), "--url", url])
    n = len(attempts(work / "out"))
    assert n == 8 * n_tasks and all(row["passed"] for row in attempts(work / "out"))
    loop = ours - one  # the second start finds all on disk: reading it, and the report
    print(f"run.py: {1000 * loop / n:.1f} ms of CPU a sample over {n:,} samples (and {one:.1f} s for start and report)")
    print(f"thread pool, a process a test: {1000 * theirs / n:.1f} ms")
    print(f"ratio {theirs / loop:.1f}; start and report included {theirs / ours:.1f}")


def measured(argv: list[str]) -> float:
    """CPU seconds of a command and of all that it started and waited for."""
    before = os.times()
    run = subprocess.run(argv, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def plain(tasks: Path, url: str) -> None:
    """What one writes in an afternoon: 64 threads, the client library, a Python process for each test."""
    import re

    import openai

    client = openai.OpenAI(base_url=url, api_key="none")
    rows = [json.loads(line) for line in tasks.read_text().splitlines()]

    def sample(row: dict[str, Any], seed: int) -> bool:
        messages: Any = [{"role": "user", "content": row["statement"]}]
        reply = client.chat.completions.create(model="mock-model", messages=messages, seed=seed)
        found = re.search(r"```python\n(.*?)```", reply.choices[0].message.content or "", re.S)
        for given, expected in row["visible"] + row["hidden"]:
            program = [sys.executable, "-c", found.group(1) if found else ""]
            ran = subprocess.run(program, input=given, capture_output=True, text=True, timeout=60)
            if ran.stdout.split() != expected.split():
                return False
        return True

    with ThreadPoolExecutor(64) as pool:
        passed = list(pool.map(sample, [row for row in rows for _ in range(8)], range(8 * len(rows))))
    assert all(passed)


# ── client ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def client(n_requests: int, work: Path) -> None:
    """Policy.draw at 64 slots, a prompt of 1.5 kB, nothing graded. Medians of five turns."""
    import asyncio
    import statistics
    from unittest.mock import patch

    sys.path.insert(0, str(ROOT))
    from asking import server
    from endpoint import Policy

    messages = [{"role": "user", "content": "Read the number n and print n plus 10000. " + "x" * 1500}]

    async def cost(url: str) -> float:
        async with Policy([url], "mock-model") as policy:
            await policy.probe()
            await asyncio.gather(*(policy.draw(messages, seed) for seed in range(200)))  # connections are made
            before = time.process_time()
            await asyncio.gather(*(policy.draw(messages, seed) for seed in range(n_requests)))
            return 1000 * (time.process_time() - before) / n_requests

    costs: dict[str, list[float]] = {"aiohttp's sockets": [], "the library's own": []}
    write_tasks(work / "tasks.jsonl", 10)
    with mock(work / "tasks.jsonl", "--right", "1,1,1") as url:
        for _ in range(5):
            for kind, ms in costs.items():
                found = server.find_spec("aiohttp") if kind.startswith("aiohttp") else None
                with patch.object(server, "find_spec", lambda name, found=found: found):
                    ms.append(asyncio.run(cost(url)))
    for kind, ms in costs.items():
        print(f"over {kind}: {statistics.median(ms):.2f} ms of CPU a request ({min(ms):.2f} to {max(ms):.2f})")


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def memory(n_attempts: int, work: Path) -> None:
    """Resident memory of the process that runs the loop, by the number of attempts on disk; two tests a task, so that
    it takes minutes."""
    tasks, out = work / "tasks.jsonl", work / "out"
    write_tasks(tasks, -(-n_attempts // 104), tests=2)
    points: list[tuple[int, float]] = []
    with mock(tasks, "--right", "0,0,0", "--nearly", "0") as url:  # nobody is ever rescued: 8 + 4 x 24 attempts a task
        log = (work / "log").open("w")
        process = subprocess.Popen(command(tasks, out, url), stdout=log, stderr=log)
        lines, size = 0, 0
        while process.poll() is None:
            with contextlib.suppress(OSError), (out / "attempts.jsonl").open("rb") as file:
                file.seek(size)
                new = file.read()
                lines, size = lines + new.count(b"\n"), size + len(new)
            points.append((lines, resident(process.pid)))
            time.sleep(0.25)
    assert process.returncode == 0, (work / "log").read_text()
    at = {
        mark: next((mb for n, mb in points if n >= mark), 0.0) for mark in (1000, 5000, 10_000, 15_000, 20_000, 25_000)
    }
    print("memory of run.py: " + ", ".join(f"{mb:.0f} MB at {mark:,}" for mark, mb in at.items() if mb))
    sampling = [mb for n, mb in points if 5000 <= n < lines]
    print(f"while sampling, from attempt 5,000 on: {min(sampling):.0f} to {max(sampling):.0f} MB; "
          f"at the very end, report included: {max(mb for _, mb in points):.0f} MB ({lines:,} attempts)")  # fmt: skip


def resident(pid: int) -> float:
    with contextlib.suppress(OSError, StopIteration, ValueError):
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("slots", "cpu", "client", "memory", "plain"))
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--samples", type=int, default=800, help="of cpu (default: 800)")
    parser.add_argument("--requests", type=int, default=1500, help="of client (default: 1,500)")
    parser.add_argument("--attempts", type=int, default=25_000, help="of memory (default: 25,000)")
    parser.add_argument("--tasks", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.what == "plain":
        return plain(a.tasks, a.url)
    with tempfile.TemporaryDirectory() as folder:
        sizes = {
            "slots": (slots, a.slots),
            "cpu": (cpu, a.samples),
            "client": (client, a.requests),
            "memory": (memory, a.attempts),
        }
        measure, size = sizes[a.what]
        measure(size, Path(folder))


if __name__ == "__main__":
    main()
