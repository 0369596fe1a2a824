"""Which arms there are: the four of swarm.py, the ones told apart, and those of a file of yours (docs/arms.md).

    read(["star", "my_arms.py:worst"], False)   their names; ValueError where a file has no such arm
    arm_of("worst")                             the function, once its file has been read
    needs("hint")                               what of a task it is shown that others are not: reference, or nothing
    playable(names, task)                       those that the task has enough for
    about(names, data)                          what config.json holds of the arms that are not swarm.py's
    hold(names, config, path, attempts)         RecordsError where a folder's arm was that of another file

An arm of yours is run in this process and trusted like the code around it. What it cannot see by accident: hidden
tests, and whether an attempt passes them; a reference, unless its function has `needs = {"reference"}`. What it raises,
or gives in place of a Prompt, is one line that names it. Left out: what an arm is (swarm.py), playing it (run.py).
"""

from __future__ import annotations

import functools
import sys
import traceback
import types
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from arms.hint import APART
from commands.settings import Apart, Config, Data
from faults import BadInput, RecordsError, TaskError
from grading.grade import tally
from swarm import ARMS, Attempt, Prompt, Seat
from tasksets.task import Task

Arm = Callable[[Seat], Prompt]
NEEDS = {"reference"}  # what an arm may ask for
TAKEN = ("base", "round0")  # names under which other attempts are filed


class Own(NamedTuple):
    """An arm of a file of the user's."""

    function: Arm
    file: str
    sha256: str
    source: bytes  # of the file


OWN: dict[str, Own] = {}  # read so far


def read(words: Iterable[str], share_round0: bool) -> list[str]:
    """The names of these arms, each once, those of a file read. ValueError where one cannot be had."""
    names = list(dict.fromkeys(_read_own(word) if ":" in word else word for word in words))
    if share_round0 and (apart := [name for name in names if needs(name)]):
        raise ValueError(f"--share-round0: {apart[0]} begins with a prompt of its own: leave one of the two out")
    return names


def arm_of(name: str) -> Arm:
    """BadInput where it is one of a file that was not named."""
    if name in OWN:
        return OWN[name].function
    if name not in ARMS and name not in APART:
        raise BadInput(f"the arm {name} is not one of this program: name its file, --arms FILE.py:{name}")
    return ARMS.get(name) or APART[name]


def needs(name: str) -> frozenset[str]:
    return frozenset(getattr(arm_of(name), "needs", ()))


def playable(names: Iterable[str], task: Task) -> list[str]:
    """Those whose needs the task can meet."""
    return [name for name in names if all(getattr(task, need) for need in needs(name))]


def about(names: Iterable[str], data: Data) -> dict[str, Apart]:
    """Of the arms that are not swarm.py's, by name: what they are shown, and the file and digest of one of yours.

    TaskError where one is to be shown references and no task has any.
    """
    told: dict[str, Apart] = {}
    for name in names:
        own = OWN.get(name)
        if needs(name) and len(data.get("without_reference", ())) == data["asked"]:
            raise TaskError(
                f"no task of {data['source']} has a reference, which {name} is shown: leave it out of --arms"
            )
        if own or needs(name):
            told[name] = {
                "needs": sorted(needs(name)),
                "file": own.file if own else None,
                "sha256": own.sha256 if own else None,
            }
    return told


def hold(names: Iterable[str], config: Config, path: Path, attempts: Iterable[Attempt]) -> None:
    """RecordsError where an arm that has an attempt in the folder is another one now: its file has changed."""
    before = {name: arm["sha256"] for name, arm in (config.get("apart") or {}).items()}
    now = {name: own.sha256 for name, own in OWN.items()}
    changed = {name for name in names if name in config["plan"]["arms"] and before.get(name) != now.get(name)}
    if changed and (played := next((a.arm for a in attempts if a.arm in changed), None)):
        then, is_ = (f"of a file with SHA-256 {sha[:12]}" if sha else "no file's" for sha in
                     (before.get(played), now.get(played)))  # fmt: skip
        raise RecordsError(
            f"{path} holds another experiment (the arm {played} was {then}, and is {is_} now): use another --out, "
            f"or --fresh to move it aside"
        )


# ── an arm of yours ──────────────────────────────────────────────────────────────────────────────────────────────────


def _read_own(word: str) -> str:
    """FILE:NAME -> NAME; its function is known from then on. ValueError where there is none."""
    file, _, name = word.rpartition(":")
    try:
        source = Path(file).read_bytes()
    except OSError as why:
        raise ValueError(f"{file} cannot be read ({why.strerror}): name a file, FILE.py:NAME") from None
    return take(name, file, source)


def take(name: str, file: str, source: bytes) -> str:
    """An arm of a file that was read here or elsewhere; its name. ValueError where there is none."""
    if name in ARMS or name in APART or name in TAKEN:
        raise ValueError(f"{name} is the name of another arm: give the function of {file} one of its own")
    known = OWN.get(name)
    digest = sha256(source).hexdigest()
    if known and (known.file, known.sha256) == (file, digest):
        return name
    module = types.ModuleType(f"arms_of_{digest[:12]}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # where a dataclass looks for its own
    try:
        exec(compile(source, file, "exec"), module.__dict__)
    except (Exception, SystemExit) as why:
        raise ValueError(f"{file} cannot be run ({_told(why, file)}): mend it") from None
    function = getattr(module, name, None)
    if not callable(function):
        there = [n for n, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        raise ValueError(f"{file} has no function {name!r}; there are {', '.join(there) or 'none'}")
    asked: object = getattr(function, "needs", set())
    if not isinstance(asked, set | frozenset) or asked - NEEDS:
        raise ValueError(f"{file}: {name} needs {asked!r:.60}; an arm may ask for {NEEDS!r}")
    OWN[name] = Own(_careful(function, name, file), file, digest, source)
    return name


def _told(why: BaseException, file: str) -> str:
    """What was raised, and on which line of the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(why.__traceback__) if frame.filename == file]
    line = getattr(why, "lineno", None) if isinstance(why, SyntaxError) else lines[-1] if lines else None
    return _line(f"{type(why).__name__}: {str(why)[:2000]}")[:220] + (f", line {line}" if line else "")


def _line(text: str) -> str:
    """As a terminal may be shown it: an arm may raise what a model wrote, and that may steer a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _careful(function: Arm, name: str, file: str) -> Arm:
    """The arm, shown nothing of a hidden test, with whatever goes wrong as one line."""

    @functools.wraps(function)
    def arm(seat: Seat) -> Prompt:
        best = [attempt and blind(attempt) for attempt in seat.best]
        try:
            prompt = function(replace(seat, best=best))
        except (Exception, SystemExit) as why:
            raise BadInput(f"the arm {name} of {file} raised {_told(why, file)}: mend it, then run again") from None
        if not isinstance(prompt, Prompt) or not _are_messages(prompt.messages):
            raise BadInput(
                f"the arm {name} of {file} gave {_line(repr(prompt)):.80}: "
                "give a Prompt, of messages with role and content"
            )
        return prompt

    return arm


def _are_messages(messages: object) -> bool:
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(
            isinstance(message, dict)
            and set(message) == {"role", "content"}
            and all(isinstance(text, str) for text in message.values())
            for message in messages
        )
    )


def blind(attempt: Attempt) -> Attempt:
    """An attempt as its visible tests tell of it."""
    seen = tally(attempt.visible_tests, "")
    error, line = (attempt.error, attempt.error_line) if seen.fitness < 1 else ("", None)  # else a hidden test's
    return replace(attempt, passed=False, hidden_passed=0, hidden_total=0, hidden_tests="", outcome=seen.outcome,
                   error=error, error_line=line, cpu_seconds=0.0, time=0.0, latency_seconds=0.0)  # fmt: skip
