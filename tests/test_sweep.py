"""Folders of graders that were killed are swept, and no other folder ever is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from grading import sweep

ROOT = Path(__file__).parent.parent
GRADER = """
import asyncio, sys, grader
grader.SELF_TEST = ()
async def main():
    async with grader.Grader(workers=1) as it:
        await it.execute("print(1)")
        print(it._base, flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A temporary folder of one's own, here and in what is started."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def started() -> tuple[subprocess.Popen[str], Path]:
    grader = subprocess.Popen([sys.executable, "-c", GRADER], cwd=ROOT, stdin=-1, stdout=-1, text=True)
    return grader, Path(grader.stdout.readline().strip())


@pytest.mark.slow
def test_the_next_start_sweeps_what_a_killed_grader_left_and_not_what_a_living_one_has(place):
    killed, left = started()
    alive, held = started()
    assert left.is_dir() and held.is_dir() and left != held
    killed.kill()
    killed.communicate()
    deep = left
    for _ in range(50):
        deep = deep / "d"
        deep.mkdir()
    deep.chmod(0)
    third, own = started()
    assert not left.exists() and held.is_dir() and own.is_dir()
    for grader in (third, alive):
        grader.communicate("\n")
    assert list(place.iterdir()) == []


def test_nothing_else_is_swept(place):
    mine, lock = sweep.made()
    (place / "precious").mkdir()
    names = [f"{sweep._prefix()}link", "swarm-rescue-abcd_123", f"swarm-rescue-elsewhere-{os.geteuid()}-abcdefgh"]
    (place / names[0]).symlink_to(place / "precious")
    for name in names[1:]:  # of an older version, which holds no lock; of another machine
        (place / name).mkdir()
    (place / f"{sweep._prefix()}file").write_text("")
    if os.geteuid() == 0:
        names.append(f"{sweep._prefix()}ofothers")
        (place / names[-1]).mkdir()
        os.chown(place / names[-1], 1234, 1234)
    before = sorted(place.iterdir())
    assert sweep.swept() == 0 and sorted(place.iterdir()) == before
    os.close(lock)
    assert sweep.swept() == 1 and sorted(place.iterdir()) == [path for path in before if str(path) != mine]


def test_who_makes_one_while_another_sweeps_has_one_that_lasts(place):
    wrong: list[str] = []
    done = threading.Event()

    def sweeping() -> None:
        while not done.is_set():
            sweep.swept()

    def making() -> None:
        for _ in range(60):
            folder, lock = sweep.made()
            for _ in range(20):
                if not os.path.isdir(folder):
                    wrong.append(folder)
            os.close(lock)

    sweepers = [threading.Thread(target=sweeping) for _ in range(2)]
    makers = [threading.Thread(target=making) for _ in range(3)]
    for thread in (*sweepers, *makers):
        thread.start()
    for thread in makers:
        thread.join()
    done.set()
    for thread in sweepers:
        thread.join()
    assert wrong == []
    sweep.swept()
    assert list(place.iterdir()) == []
