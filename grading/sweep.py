"""The folder that a grader makes for its workers, and what becomes of one whose grader was killed.

    folder, lock = made()       a new folder, locked for as long as this process lives
    swept()                     those of graders that are gone are removed: how many

A folder belongs to whoever holds its lock (`flock`), which ends with its process however that ends. So one that can be
locked has lost its owner, and one that cannot is never touched. The name says whose it is, and on which machine, since
a lock on a shared disk may hold on one machine alone; folders without such a name are not ours to judge.

Left out: what a program leaves behind in its scratch folder between two tests (scratch.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path


def _prefix() -> str:
    machine = re.sub(r"[^0-9A-Za-z.]", ".", platform.node())
    return f"swarm-rescue-{machine}-{os.geteuid()}-"


def made() -> tuple[str, int]:
    """A folder of one's own, and the descriptor that holds it. OSError where there can be none."""
    while True:
        folder = tempfile.mkdtemp(prefix=_prefix())
        with contextlib.suppress(FileNotFoundError):  # swept before we had its lock
            lock = os.open(folder, os.O_RDONLY)
            if _locked(lock) and os.path.isdir(folder):
                os.chmod(folder, 0o711)
                return folder, lock
            os.close(lock)


def _locked(lock: int) -> bool:
    """Whether it is ours now. On a disk without locks it is too: nobody can take it from us there."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as why:
        return not isinstance(why, BlockingIOError)
    return True


def swept() -> int:
    """Remove the folders that a grader of this user has left on this machine; how many they were."""
    found = 0
    for path in Path(tempfile.gettempdir()).glob(f"{_prefix()}*"):
        with contextlib.suppress(OSError):  # another one sweeps too, or its owner lives
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove(str(path))
                    found += 1
            finally:
                os.close(lock)
    return found


def remove(folder: str) -> None:
    """Remove a folder, whatever depth and whatever rights were given to what is in it."""
    try:
        for path, inner, _ in os.walk(folder):
            for name in inner:
                if not os.path.islink(f"{path}/{name}"):
                    os.chmod(f"{path}/{name}", 0o700)
        shutil.rmtree(folder, ignore_errors=True)
    except (OSError, RecursionError):
        subprocess.run(["rm", "-rf", folder], stderr=subprocess.DEVNULL, check=False)
