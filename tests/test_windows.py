"""On Windows nothing is sampled or graded; all that reads a run folder works there. A fresh interpreter each time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from records import Log
from tasks import load
from tasksets.task import card
from tests.support.lay_out import attempt, base, config

ROOT = Path(__file__).parent.parent
# Libraries find out what they run on when they are imported, and these ones were built for this machine: so they come
# first, and then there is nothing any more that Windows lacks.
WINDOWS = """
import asyncio, numpy, os, signal, subprocess, sys, tempfile
asyncio.new_event_loop().close()  # newer Pythons import their kind of loop only here
if "draws" in sys.argv:
    import matplotlib.backends.backend_agg, matplotlib.backends.backend_svg, matplotlib.figure, multiprocessing
    import scipy.special
sys.platform = "win32"
for name in "_posixshmem _posixsubprocess fcntl grp posix pty pwd readline resource syslog termios tty".split():
    sys.modules[name] = None
for name in "fork geteuid getuid killpg memfd_create pidfd_open sched_getaffinity setsid".split():
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGKILL, signal.SIGXCPU, signal.setitimer
"""
COMMAND = "import importlib\nsys.exit(importlib.import_module(sys.argv[2]).main(sys.argv[3:]))"


def there(code: str, *argv: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    full = [sys.executable, "-c", f"{WINDOWS}\nsys.path.insert(0, {str(ROOT)!r})\n{code}", *argv]
    return subprocess.run(full, capture_output=True, text=True, timeout=120, cwd=cwd)


SLOWER = [pytest.param(room, marks=pytest.mark.slow) for room in ("audit", "calibrate", "report", "sql_calibrate")]


@pytest.mark.parametrize("room", ["grader", "run", *SLOWER])
def test_it_can_be_imported(room: str) -> None:
    ran = there(f"import {room}")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_grader_says_what_to_do_instead() -> None:
    ran = there(
        "from grader import Grader, GraderFault\ntry:\n    Grader()\nexcept GraderFault as why:\n    print(why)"
    )
    assert "container" in ran.stdout and "WSL" in ran.stdout and ran.stderr == ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was finished and calibrated elsewhere."""
    place = tmp_path_factory.mktemp("windows")
    tests = [[f"{n}\n", f"{2 * n}\n"] for n in range(70)]
    row = {"id": "t", "statement": "Double it.", "kind": "stdio", "visible": tests[:4], "hidden": tests[4:9]}
    (place / "tasks.jsonl").write_text(json.dumps({**row, "spare": tests[9:]}) + "\n")
    (task,) = load(str(place / "tasks.jsonl"))
    with Log(place / "out") as log:
        log.write_json("config.json", config(tasks=str(place / "tasks.jsonl"), revision=None))
        log.add_card(card(task))
        for one in base(task.id):
            log.add(replace(one, code=None, task_sha=task.digest))
        for i, code in enumerate(("n = int(input())\nprint(2 * n)", "n = int(input())\nprint(2 * n if n < 20 else 0)")):
            log.add(attempt(task.id, "resample", 0, 0, i, code=code, task_sha=task.digest))
    command = [sys.executable, ROOT / "calibrate.py", "--out", "out", "--workers", "1"]
    here = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=place)
    assert here.returncode == 0, here.stderr
    (place / "calibrated.txt").write_text(here.stdout)
    return place


@pytest.mark.slow
def test_a_calibrated_folder_is_told(folder: Path) -> None:
    ran = there(COMMAND, "draws", "calibrate", "--out", "out", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (folder / "calibrated.txt").read_text() and "fitness" in ran.stdout


@pytest.mark.slow
def test_a_run_is_told(folder: Path) -> None:
    for argv in (("report", "out"), ("run", "--reuse", "--out", "out")):
        ran = there(COMMAND, "draws", *argv, cwd=folder)
        assert ran.returncode == 0 and ran.stdout, ran.stderr


@pytest.mark.slow
def test_what_samples_or_grades_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "out", tmp_path / "out")
    (tmp_path / "out" / "calibration.json").unlink()
    (tmp_path / "out" / "checks.jsonl").unlink()
    question = {"id": 1, "db": "CREATE TABLE t(x);", "question": "How many?", "gold_sql": "SELECT COUNT(*) FROM t"}
    (tmp_path / "q.jsonl").write_text(json.dumps(question) + "\n")
    for argv in (
        ("run", "--dry-run", "--out", "new"),
        ("calibrate", "--out", "out"),
        ("audit", "--tasks", "toy", "--out", "new"),
        ("sql_calibrate", "--plan", "--tasks", "q.jsonl"),
    ):
        ran = there(COMMAND, "refuses", *argv, cwd=tmp_path)
        assert ran.returncode in (2, 5) and "container" in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
