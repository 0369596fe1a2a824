"""How long a command says nothing: the longest time without a byte on a terminal, in the cases in which it waits most.

    python bench/silence.py                     every case (some ten minutes)
    python bench/silence.py hub latency         these alone
    python bench/silence.py resume --log        into a pipe, where a line is to come now and then

hub       a first run whose data set comes from a hub that answers after 4 s and sends 50 kB/s
busy      a server that answers 503 for a minute, as one does that loads its model
latency   one that takes 15 s for every reply
resume    25,000 attempts on disk, the last task's still owed
reuse     --reuse of 25,000 attempts
report    report.py of two such folders
watch     --watch of one

A case ends by itself or after its seconds. On a terminal the promise is 2 s, which a bar's clock and `busy` keep; the
first line is what an interpreter takes to start. Left out: what is said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.harness import write_tasks  # noqa: E402
from tests.support import hub, planted_run  # noqa: E402
from tests.support.mock_endpoint import Fault, Request, echo, serving  # noqa: E402

PROMISE = 2.0  # seconds
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b\]8;;.*?\x1b\\\\")


class Heard(NamedTuple):
    silences: list[tuple[float, float, str]]  # s without a byte, over a second or the first; s after the start; after
    whole: float  # s that the command took
    cpu: float  # s of it, with all that it waited for
    code: int | None  # it ended with; None: it was stopped after its seconds


def listen(argv: list[str], seconds: float, env: dict[str, str] | None = None, terminal: bool = True) -> Heard:
    """Run a command and hear when it says something: on a terminal of 80 columns, or into a pipe."""
    if terminal:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
    else:
        ours, theirs = os.pipe()
    full = {**os.environ, "TERM": "xterm", **(env or {})}
    silences: list[tuple[float, float, str]] = []
    said, began, before = "", time.monotonic(), os.times()
    last = began
    process = subprocess.Popen(
        [sys.executable, *argv], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=full, cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    while time.monotonic() - began < seconds:
        piece = b""
        if select.select([ours], [], [], 0.02)[0]:
            with contextlib.suppress(OSError):  # the other end of a terminal is closed
                piece = os.read(ours, 1 << 16)
        is_over = not piece and process.poll() is not None
        now = time.monotonic()
        if piece or is_over:
            if now - last > 1 or not silences:
                silences.append((now - last, last - began, " ".join(said.split())[-60:]))
            said, last = (said + ANSI.sub("", piece.decode(errors="replace")))[-500:], now
        if is_over:
            break
    silences.append((time.monotonic() - last, last - began, " ".join(said.split())[-60:]))
    code, whole = process.poll(), time.monotonic() - began
    if code is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(ours)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Heard(silences, whole, cpu, code)


# ── the cases ────────────────────────────────────────────────────────────────────────────────────────────────────────

SMALL = ["--base-samples", "2", "--particles", "2", "--rounds", "2", "--concurrency", "4", "--workers", "1"]


def slow_hub(work: Path, terminal: bool) -> Heard:
    """Nothing in the cache, and a hub that takes its time: three files of the size that MBPP's are, of made-up rows."""
    import pyarrow
    from pyarrow import parquet

    from tasksets.mbpp import MBPP, MBPP_REVISION

    files: dict[str, Path] = {}
    for split, ids in {"train": range(601, 975), "test": range(11, 511), "validation": range(511, 601)}.items():
        rows = [{"task_id": k, "text": f"Write a function to add {k}.", "code": f"def f{k}(x):\n    return x + {k}\n",
                 "test_list": [f"assert f{k}({x}) == {x + k}" for x in range(3)], "test_setup_code": "",
                 "challenge_test_list": [], "note": f"{os.urandom(300).hex()}"} for k in ids]  # fmt: skip
        path = files[f"full/{split}-00000-of-00001.parquet"] = work / f"{split}.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    with hub.serve({MBPP: hub.Repo(MBPP_REVISION, files)}) as server, serving(echo) as mock:
        server.pause, server.speed = 4.0, 50_000
        env = {"HF_ENDPOINT": server.url, "HF_HOME": str(work / "cache")}
        argv = ["run.py", "--tasks", "mbpp-bundle", "--limit", "2", "--out", str(work / "out"), "--base-url", mock.url]
        return listen([*argv, *SMALL], 300, env, terminal)


def busy_server(work: Path, terminal: bool) -> Heard:
    tasks, until = work / "tasks.jsonl", time.monotonic() + 60
    write_tasks(tasks, 4)

    def faults(request: Request) -> Fault | None:
        return Fault(status=503) if time.monotonic() < until else None

    argv = ["run.py", "--tasks", str(tasks), "--out", str(work / "out"), *SMALL]
    with serving(echo, faults=faults) as mock:
        return listen([*argv, "--base-url", mock.url], 300, terminal=terminal)


def slow_server(work: Path, terminal: bool) -> Heard:
    tasks = work / "tasks.jsonl"
    write_tasks(tasks, 2)
    argv = ["run.py", "--tasks", str(tasks), "--out", str(work / "out"), *SMALL]
    with serving(echo, latency=lambda request: 15.0) as mock:
        return listen([*argv, "--base-url", mock.url], 600, terminal=terminal)


def resume(work: Path, terminal: bool) -> Heard:
    """All but the last task's attempts stand on disk, as a run of these very tasks would have made them."""
    from swarm import ARMS
    from tasks import load

    tasks, out = work / "tasks.jsonl", work / "out"
    rng = random.Random(0)
    with tasks.open("w") as file:
        for task in planted_run.make_tasks(275, rng):
            row: dict[str, Any] = {"id": task.id, "title": task.title, "statement": task.statement, "kind": "stdio"}
            row |= {"visible": [test[:2] for test in task.visible], "hidden": [test[:2] for test in task.hidden]}
            file.write(json.dumps(row) + "\n")
    argv = ["run.py", "--tasks", str(tasks), "--out", str(out), "--workers", "1", "--concurrency", "64"]
    with serving(echo) as mock:
        argv += ["--base-url", mock.url]
        subprocess.run([sys.executable, *argv, "--stop-after", "calls=1"], cwd=ROOT, capture_output=True, check=False)
        there = 0
        with (out / "attempts.jsonl").open("w") as file:
            for task in list(load(str(tasks)))[:-1]:
                policy = planted_run.Planted(task, 0.0005, 0.3, rng)
                for arm, *size in (("base", 8, 1), *((arm, 8, 3) for arm in ARMS)):
                    for attempt in policy.play(arm, *size):
                        there += 1
                        file.write(json.dumps(asdict(attempt)) + "\n")
        print(f"    {there:,} attempts are there")
        return listen(argv, 900, terminal=terminal)


def planted(work: Path, noise_runs: int = 0) -> Path:
    planted_run.make(work / "out", noise_runs=noise_runs)
    return work / "out"


def reuse(work: Path, terminal: bool) -> Heard:
    return listen(["run.py", "--reuse", "--out", str(planted(work))], 600, terminal=terminal)


def report(work: Path, terminal: bool) -> Heard:
    first = planted(work)
    shutil.copytree(first, work / "second")
    config = work / "second/config.json"
    config.write_text(config.read_text().replace('"seed": 0', '"seed": 1'))
    html = ["--html", str(work / "both.html")]
    return listen(["report.py", str(first), str(work / "second"), *html], 600, terminal=terminal)


def watch(work: Path, terminal: bool) -> Heard:
    return listen(["run.py", "--watch", "--out", str(planted(work))], 600, terminal=terminal)


CASES: dict[str, Callable[[Path, bool], Heard]] = {
    "hub": slow_hub,
    "busy": busy_server,
    "latency": slow_server,
    "resume": resume,
    "reuse": reuse,
    "report": report,
    "watch": watch,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--all", action="store_true", help="every silence of more than a second")
    parser.add_argument("--log", action="store_true", help="into a pipe, where there is no terminal")
    a = parser.parse_args()
    broken = False
    print(f"{'case':<9}{'longest':>8}{'at':>8}{'whole':>8}{'CPU':>8}{'code':>6}  after the words")
    for name in a.cases or CASES:
        with tempfile.TemporaryDirectory() as away:
            found = CASES[name](Path(away), not a.log)
        longest, *others = sorted(found.silences, reverse=True)
        broken |= longest[0] > PROMISE and not a.log
        took = f"{found.whole:>6.1f} s{found.cpu:>6.1f} s{found.code!s:>6}"
        print(f"{name:<9}{longest[0]:>6.1f} s{longest[1]:>6.1f} s{took}  {longest[2]}")
        for lasted, began, after in others if a.all else ():
            print(f"{'':<9}{lasted:>6.1f} s{began:>6.1f} s{'':>22}  {after}")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
