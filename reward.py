"""The grader as a trainer's reward: one file, standard library only, for Python 3.9 and newer. Point at it, or copy it.

    compute_score(data_source, solution_str, ground_truth, extra_info)     verl: custom_reward_function
    compute_scores(data_sources, solution_strs, ground_truths, ...)        verl's batched reward manager
    reward(completions, ground_truth=..., **columns)                       TRL: GRPOTrainer(reward_funcs=reward)
    score(reply, tests)                                                    by hand: 1.0, or 0.0
    grades(replies, ground_truths)                                         all that there is to know of each reply

A reward is 1.0 or 0.0; with `partial=True` the share of the visible tests passed. A fault raises and is never a 0.0:
RewardFault where the machinery failed, BadInput where a ground truth (a column that `export.py` writes) is none.

It starts `python grader.py --serve` as a process of its own and talks to it over a pipe, so that no name of the
project meets one of the trainer, and nothing is forked from a process that holds a GPU. All that it is told at once is
graded at once, on all cores; threads may call it together; a forked process gets a grader of its own. A grader that
dies is started again, which is logged, and what it had in hand is asked again, three times a call at most. It ends with
the process that started it.

    SWARM_RESCUE_GRADER     grader.py                                 (else the one beside this file)
    SWARM_RESCUE_PYTHON     Python 3.11 or newer, without libraries   (else the one that runs this)
    SWARM_RESCUE_WORKERS    processes that grade                      (else one a core)

Left out: what a reply is worth (grader.py), the other end of the pipe (grading/serve.py), other languages than Python.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import IO, Union

__all__ = ["BadInput", "RewardFault", "close", "compute_score", "compute_scores", "configure", "grades", "reward",
           "score"]  # fmt: skip

_DEATHS = 3  # of a grader, that one call bears; one more is a fault
_LOG = logging.getLogger("swarm_rescue.reward")
_Row = dict[str, object]
Truth = Union[str, _Row]  # noqa: UP007  a ground truth: its text, or the object that the text is of
Tests = Union[Truth, Sequence[str], Sequence[Sequence[str]]]  # noqa: UP007  (Python 3.9 has no |)


class RewardFault(RuntimeError):
    """The machinery failed, and no reply is to blame. One line that ends with what to do."""


class BadInput(ValueError):
    """A ground truth, a test or a column that nothing can be graded by."""


class _Lost(Exception):
    """The grader died with this in hand."""


# ── one served grader ────────────────────────────────────────────────────────────────────────────────────────────────


def _lines(descriptor: int) -> Iterator[bytes]:
    """Lines, read without a lock that the end of this process would have to wait for."""
    rest = b""
    while True:
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        yield from whole


class _Grader:
    """A process that grades, for threads together. RewardFault where it cannot be started, _Lost where it has died."""

    def __init__(self, command: list[str]) -> None:
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, bufsize=0,
                start_new_session=True,  # Ctrl-C is for the trainer; this ends when the pipe does
            )  # fmt: skip
        except (OSError, ValueError) as why:
            self.said.close()
            raise RewardFault(f"{command[0]} cannot be started ({why}): name a Python in {_PYTHON}") from None
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.about: object = None  # what it says of itself
        self.fault = ""  # what it says when the machinery gives out
        self.ending = ""  # how it ended, once it is over
        self.over = False
        self._state = threading.Lock()  # held for moments, never while writing
        self._writing = threading.Lock()
        self._asked: dict[int, Future[_Row]] = {}
        self._number = 0
        self._told: set[str] = set()  # ground truths that it has had
        self._lines = _lines(self.stdout.fileno())
        try:
            self._greet(next(self._lines, b""))
        except BaseException:
            self.process.kill()
            self._end()
            self.stdin.close()
            raise
        threading.Thread(target=self._listen, name="reward", daemon=True).start()

    def _greet(self, line: bytes) -> None:
        try:
            said = json.loads(line or b"{}")
            self.about = said.get("ready")
        except (ValueError, AttributeError):
            raise RewardFault(f"no grader answers, but one that says {line[:80]!r}: see {_GRADER}") from None
        if self.about is None:
            if "fault" in said:
                raise RewardFault(str(said["fault"]))
            died = self.process.wait() < 0
            end = self._end()
            if died:
                raise _Lost(end)
            must = f"{_PYTHON} must be Python 3.11 or newer, {_GRADER} the project's grader.py"
            raise RewardFault(f"no grader starts ({end}): {must}")

    def _end(self) -> str:
        """Wait for it: how it ended, and its last word on stderr."""
        if not self.ending:
            status = self.process.wait()
            self.said.seek(max(0, self.said.seek(0, os.SEEK_END) - 2000))
            words = self.said.read().decode("utf-8", "replace").strip().splitlines()
            how = f"signal {-status}" if status < 0 else f"exit {status}"
            self.ending = f"{how}: {words[-1].strip()}" if words else how
            self.said.close()
            self.stdout.close()
        return self.ending

    def _listen(self) -> None:
        """In a thread of its own: answers to whoever waits for them, until there are no more."""
        try:
            for line in self._lines:
                answer = json.loads(line)
                if "fault" in answer:
                    self.fault = str(answer["fault"])
                    break
                with self._state:
                    waiting = self._asked.pop(answer["id"], None)
                if waiting:
                    waiting.set_result(answer)
        except (OSError, ValueError, KeyError) as why:
            _LOG.warning("the grader speaks out of turn: %r", why)
            self.process.kill()
        try:
            self.process.wait(5.0)  # it clears away what its programs have left
        except subprocess.TimeoutExpired:
            self.process.kill()
        end = self._end()
        with self._state:
            self.over, left = True, list(self._asked.values())
            self._asked.clear()
        for waiting in left:
            waiting.set_exception(RewardFault(self.fault) if self.fault else _Lost(end))

    def ask(self, reply: str, truth: str, again: bool = False) -> Future[_Row]:
        """A reply to be graded. again: with the ground truth, since the grader has it no more."""
        name = hashlib.sha256(truth.encode("utf-8", "surrogatepass")).hexdigest()
        waiting: Future[_Row] = Future()
        with self._state:
            if self.over:
                raise _Lost(self.ending)
            self._number += 1
            number = self._number
            self._asked[number] = waiting
        row: _Row = {"id": number, "reply": reply, "truth": name}
        with self._writing:
            if again or name not in self._told:
                row["text"] = truth
                self._told.add(name)
            data = memoryview(json.dumps(row).encode() + b"\n")
            try:
                while data:
                    data = data[os.write(self.stdin.fileno(), data) :]
            except (OSError, ValueError):
                self.process.kill()  # it has died, and whoever listens tells all that wait
            except BaseException:
                self.process.kill()  # half a line is on its way
                raise
        return waiting

    def close(self) -> None:
        """It ends when its input does. Whoever is writing to it is let finish, and told if that takes long."""
        if not self._writing.acquire(timeout=1.0):
            self.process.kill()
            self._writing.acquire()
        self.stdin.close()
        self._writing.release()
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def disown(self) -> None:
        """In a forked child: it is the parent's."""
        self.process.returncode = 0
        for file in (self.stdin, self.stdout, self.said):
            file.close()


# ── the grader of this process ───────────────────────────────────────────────────────────────────────────────────────

_GRADER, _PYTHON, _WORKERS = "SWARM_RESCUE_GRADER", "SWARM_RESCUE_PYTHON", "SWARM_RESCUE_WORKERS"
_OLDEST = (3, 11)  # Python that the grader runs on


class _Home:
    """Where the grader of this process is. A forked child gets an empty one: locks of other threads stay behind."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.pid = os.getpid()
        self.settings = settings
        self.starting = threading.Lock()
        self.grader: _Grader | None = None

    def command(self) -> list[str]:
        """RewardFault where it can be seen that no grader will start."""
        beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grader.py")
        script, python, workers = (
            self.settings.get(name) or os.environ.get(name) for name in (_GRADER, _PYTHON, _WORKERS)
        )
        script = script or beside
        if not os.path.isfile(script):
            raise RewardFault(f"there is no grader at {script}: name the project's grader.py in {_GRADER}")
        if not python and sys.version_info[:2] < _OLDEST:
            mine = ".".join(map(str, sys.version_info[:2]))
            raise RewardFault(f"the grader needs Python 3.11 or newer, and this is {mine}: name one in {_PYTHON}")
        # -E and -s: what the trainer's environment says of modules is not for it
        command = [python or sys.executable, "-E", "-s", os.path.abspath(script), "--serve"]
        return [*command, "--workers", workers] if workers else command

    def started(self) -> _Grader:
        with self.starting:
            if self.grader is None or self.grader.over:
                if self.grader is not None:
                    self.grader.close()
                    _LOG.warning("the grader died (%s) and is started again", self.grader.fault or self.grader.ending)
                    self.grader = None
                self.grader = _Grader(self.command())
                _LOG.info("a grader is ready: %s", self.grader.about)
            return self.grader


_home = _Home({})


def _mine() -> _Home:
    """A fork that Python was not told of is seen by its number."""
    if _home.pid != os.getpid():
        _forked()
    return _home


def _forked() -> None:
    global _home
    if _home.grader:
        _home.grader.disown()
    _home = _Home(_home.settings)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@atexit.register
def close() -> None:
    """End the grader of this process; the next call starts another one."""
    home = _mine()
    with home.starting:
        if home.grader:
            home.grader.close()
            home.grader = None


def configure(grader: str | None = None, python: str | None = None, workers: int | None = None) -> None:
    """In place of the variables. None: as it was. A grader that runs is ended."""
    given = {_GRADER: grader, _PYTHON: python, _WORKERS: workers}
    close()
    _home.settings = {**_home.settings, **{name: str(value) for name, value in given.items() if value is not None}}


# ── grading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(truth: Truth) -> str:
    if isinstance(truth, str):
        return truth
    if isinstance(truth, dict):
        return json.dumps(truth)
    raise BadInput(f"a ground truth must be the text that export.py writes, not {type(truth).__name__}")


def grades(replies: Sequence[str], ground_truths: Sequence[Truth]) -> list[_Row]:
    """What each reply is worth: passed, fitness (share of the visible tests), outcome, visible and hidden (a letter a
    test), cpu_seconds. All are graded at once."""
    if len(replies) != len(ground_truths):
        raise BadInput(f"{len(replies)} replies and {len(ground_truths)} ground truths: give one of each")
    for reply in replies:
        if not isinstance(reply, str):
            raise BadInput(f"a reply must be text, not {type(reply).__name__}")
    truths = [_text(truth) for truth in ground_truths]
    found: dict[int, _Row] = {}
    lacking: dict[int, bool] = {}
    deaths = 0
    while len(found) < len(replies):
        lost = None
        asked: list[tuple[int, Future[_Row]]] = []
        try:
            grader = _mine().started()
            for i, reply in enumerate(replies):
                if i not in found:
                    asked.append((i, grader.ask(reply, truths[i], i in lacking)))
        except _Lost as why:
            lost = why
        for i, waiting in asked:
            try:
                answer = waiting.result()
            except _Lost as why:
                lost = why
                continue
            if "bad" in answer:
                raise BadInput(f"{answer['bad']} (reply {i + 1} of {len(replies)})")
            if "lacks" in answer:
                lacking[i] = True
            else:
                found[i] = {name: value for name, value in answer.items() if name != "id"}
        if lost is not None:
            deaths += 1
            if deaths > _DEATHS:
                raise RewardFault(
                    f"the grader died {deaths} times in one call ({lost}): see what ends it, memory first"
                )
    return [found[i] for i in range(len(replies))]


def _worth(grade: _Row, partial: bool) -> float:
    if not partial:
        return float(bool(grade["passed"]))
    if not grade["visible"]:
        raise BadInput("partial: this ground truth has no visible tests, of which a share could be given")
    return float(grade["fitness"])  # type: ignore[arg-type]


def _scores(replies: Sequence[str], truths: Sequence[Truth], partial: bool) -> list[float]:
    if not isinstance(partial, bool):
        raise BadInput(f"partial must be true or false, not {partial!r}")
    return [_worth(grade, partial) for grade in grades(replies, truths)]


def score(
    reply: str,
    tests: Tests,
    *,
    partial: bool = False,
    functions: Sequence[str] = (),
    setup: str = "",
    prelude: str = "",
    timeout: float | None = None,
) -> float:
    """One reply: 1.0 if its program passes every test, else 0.0; with partial the share of the visible tests.

    tests: a ground truth, or a list of [input, output] pairs, or of asserts. For a list, the rest is as in a row of
    your own tasks: functions that the program must define, setup and prelude as code, timeout in CPU seconds a test.
    """
    if not isinstance(tests, (str, dict)):
        kind = "assert" if all(isinstance(test, str) for test in tests) else "stdio"
        plain = [test if isinstance(test, str) else list(test) for test in tests]
        tests = {"kind": kind, "tests": plain, "functions": list(functions), "setup": setup, "prelude": prelude,
                 "timeout": timeout}  # fmt: skip
    elif functions or setup or prelude or timeout is not None:
        raise BadInput("a ground truth says itself what its functions, setup, prelude and timeout are: leave them out")
    return _scores([reply], [tests], partial)[0]


# ── verl ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Truth,
    extra_info: dict[str, object] | None = None,
    partial: bool = False,
) -> float:
    """verl's custom_reward_function. partial: through its reward_kwargs."""
    return _scores([solution_str], [ground_truth], partial)[0]


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Truth],
    extra_infos: Sequence[dict[str, object]] | None = None,
    partial: bool = False,
) -> list[float]:
    """The same for a reward manager that hands over a whole batch."""
    return _scores(list(solution_strs), list(ground_truths), partial)


# ── TRL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _said(completion: object) -> str:
    """The text of a completion: as it is, or of its last message by the assistant."""
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, (list, tuple)) or not all(isinstance(message, dict) for message in completion):
        raise BadInput(f"a completion must be text or a list of messages, not {type(completion).__name__}")
    said = [message.get("content") for message in completion if message.get("role") == "assistant"]
    parts = said[-1] if said else None
    if isinstance(parts, list):  # text beside images
        parts = "".join(str(part.get("text") or "") for part in parts)
    return parts or ""


def reward(
    completions: Sequence[object],
    ground_truth: Sequence[Truth] | None = None,
    partial: bool = False,
    **columns: object,
) -> list[float]:
    """TRL's GRPOTrainer: `reward_funcs=reward`; for shares `functools.partial(reward, partial=True)`."""
    if ground_truth is None:
        raise BadInput(f"the data set has no column ground_truth (it has {', '.join(columns)}): export it as grpo")
    return _scores([_said(completion) for completion in completions], ground_truth, partial)
