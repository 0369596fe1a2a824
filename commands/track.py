"""run.py --track PROJECT: a run's figures for trackio, which keeps them on this machine and needs no account.

    with tracked(out, project): ...     beside a run
    watching(folder, tracker(project))  beside --watch, for a run that began without
    trackio show --project PROJECT      what a user types to see them

A tracker has threads, a database and sometimes a network behind it, so it is never loaded into a run: a process of its
own follows the folder as --watch does, without the endpoint's key. What it does there, a crash included, no run feels;
of what goes wrong there is one line. pip install '.[track]' brings it.

Left out: what is tracked of a run that nobody watches; system metrics, which trackio adds by itself.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from commands import interrupt
from commands.console import note
from commands.watch import Look, follow
from faults import DONE, Fault
from figures.underway import Seen, Underway
from records import Folder

LIBRARY = "trackio"
GENTLE = 30.0  # seconds between two rows
PATIENT = 120.0  # seconds that a call into it may take
ROOT = Path(__file__).resolve().parent.parent
_BESIDE: list[subprocess.Popen[bytes]] = []  # they end by themselves, after the run


def is_there() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec(LIBRARY) is not None


@contextlib.contextmanager
def tracked(out: Path, project: str | None) -> Iterator[None]:
    """While a run goes on in its folder, and for the moments after it: a process beside it."""
    if project:
        env = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH")]))
        command = [sys.executable, "-P", "-m", "commands.track", str(out), project]
        nowhere = subprocess.DEVNULL
        try:  # in a session of its own, so that Ctrl-C leaves it to see how the run ends
            beside = subprocess.Popen(command, env=env, stdin=nowhere, stdout=nowhere, start_new_session=True)
            _BESIDE.append(beside)
        except OSError as why:
            note(f"not tracked ({why.strerror}); the run goes on")
    yield


def tracker(project: str | None) -> Callable[[Path, Look], None] | None:
    return Tracking(project).log if project else None


class Tracking:
    """One run in a project. It is begun with its first figures; what it raises ends the tracking alone."""

    def __init__(self, project: str) -> None:
        self.project = project
        self._library: ModuleType | None = None
        self._logged = (0.0, -1)  # monotonic seconds, attempts
        self._is_over = False

    def log(self, path: Path, look: Look) -> None:
        """Write a row where it is time for one, and the last one."""
        seen, now, is_last = look.followed.seen, look.now, bool(look.state.over)
        since, attempts = self._logged
        if self._is_over or now is None or not (is_last or time.monotonic() - since >= GENTLE):
            return
        try:
            with _in_time(), contextlib.redirect_stdout(io.StringIO()):  # it greets
                self._write(path, seen, now, now.attempts != attempts, is_last)
        except (Exception, SystemExit) as why:
            self._is_over = True
            note(f"no longer tracked ({type(why).__name__}: {' '.join(str(why).split()):.200}); the run goes on")
        self._logged = time.monotonic(), now.attempts

    def _write(self, path: Path, seen: Seen, now: Underway, is_new: bool, is_last: bool) -> None:
        if self._library is None:
            warnings.showwarning = lambda message, *more: note(f"{LIBRARY}: {message}")
            self._library = importlib.import_module(LIBRARY)
            self._library.init(**about(path, seen, self.project))
            note(f"tracked: trackio show --project {self.project}")
        if is_new:
            self._library.log(figures(seen, now), step=now.attempts)
        if is_last:
            self._library.finish()


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """TimeoutError where it takes longer than anybody waits."""

    def end(number: int, frame: object) -> None:
        raise TimeoutError(f"no answer in {PATIENT:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, PATIENT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def about(path: Path, seen: Seen, project: str) -> dict[str, object]:
    """What a run is called and what it was asked: the same name at every start of the same run."""
    config = seen.config
    begun = time.strftime("%Y%m%d-%H%M%S", time.localtime(config["started"] if config else 0.0))
    asked = {**config["identity"], **config["plan"]} if config else {}
    return {"project": project, "name": f"{path.resolve().name}-{begun}", "config": asked, "resume": "allow",
            "embed": False}  # fmt: skip


def figures(seen: Seen, now: Underway) -> dict[str, float]:
    """A row: figures by name; before a slash stands what they are drawn together with."""
    row: dict[str, float] = {
        "attempts/done": now.attempts,
        "attempts/left at most": now.most - now.attempts,
        "tokens/prompt": now.prompt_tokens,
        "tokens/completion": now.completion_tokens,
        "tasks/whole base group": now.whole,
        "tasks/all-fail": now.all_fail,
        "tasks/given to the arms": now.given,
        "requests/sent again": seen.counts["retry"],
        "requests/faults": seen.counts["fault"] + seen.counts["declined"],
    }
    for arm, so_far in now.arms.items():
        row |= {f"rescued/{arm}": so_far.rescued, f"finished/{arm}": so_far.finished}
    return row


def main() -> int:
    """The process beside a run: python -m commands.track OUT PROJECT."""
    out, project = sys.argv[1:]
    tracking = Tracking(project)
    try:
        for look in follow(Folder(out)):
            tracking.log(Path(out), look)
    except Fault as why:
        note(f"no longer tracked ({why})")
    return DONE


if __name__ == "__main__":
    interrupt.leave(main)
