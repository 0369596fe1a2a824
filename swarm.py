"""Who sees whom: the arms, the words around them, and the loop that plays one arm on one task.

Everything here is pure. `swarm` is a generator: it yields a round of (slot, prompt) pairs and is sent the attempts
that came back, so the same walk runs against a model, against a folder of finished attempts, or against a test's
script. It is handed `task.shown()`, which carries no hidden test, and no prompt depends on whether an attempt passed
them.

An arm is one function from what a particle can see (`Seat`) to what it is told (`Prompt`), and its name in `ARMS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from grading.grade import LETTERS, clip
from tasksets.task import Task, Test

# ── what travels ─────────────────────────────────────────────────────────────────────────────────────────────────


class Slot(NamedTuple):
    """Where an attempt belongs: the key of its line, and the source of its seed."""

    task_id: str
    arm: str
    rerun: int
    round: int
    particle: int

    def seed(self, run_seed: int | str) -> int:
        """31 bits of SHA-256, which no order of work, resume or machine can change."""
        text = f"{run_seed}|{self.arm}|{self.task_id}|{self.rerun}|{self.round}|{self.particle}"
        return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 1

    def within_task(self) -> str:
        """The slot as `parent` and `social` name it: "arm/rerun/round/particle"."""
        return f"{self.arm}/{self.rerun}/{self.round}/{self.particle}"


class Prompt(NamedTuple):
    """What the model is told, and which attempts it is shown."""

    messages: list[dict[str, str]]
    parent: Slot | None = None  # the particle's own best
    social: Slot | None = None  # the other's best

    def sha(self) -> str:
        """SHA-256 of the messages: what a resume compares before it takes a reply from disk."""
        return sha256(json.dumps(self.messages, ensure_ascii=True).encode()).hexdigest()


@dataclass(frozen=True)
class Attempt:
    """One reply in one slot, with its program and its grade: a line of attempts.jsonl, field for key."""

    task_id: str  # as the task set names it
    arm: str  # base, round0 (shared by all arms), or the arm
    rerun: int  # 0, or the number of the noise run
    round: int  # from 0
    particle: int  # from 0; of the base group, its attempts
    seed: int = 0  # that the request was sent with
    task_sha: str = ""  # SHA-256 of the task, tests included
    prompt_sha: str = ""  # SHA-256 of the messages
    parent: str | None = None  # "arm/rerun/round/particle" of the own best shown; null: the bare prompt
    social: str | None = None  # the same of the other's best shown; null: none was
    reply: str = ""  # what the server sent, without its reasoning
    reasoning: str = ""  # sent apart from the reply
    code: str | None = None  # the program; null: the reply holds none
    finish_reason: str = ""  # stop; length: cut at max_tokens; context_overflow: too long a prompt; or the server's
    prompt_tokens: int | None = None  # null: the server did not say
    completion_tokens: int | None = None  # as prompt_tokens
    fitness: float = 0.0  # fraction of the visible tests passed
    visible_passed: int = 0  # tests
    visible_total: int = 0  # tests
    hidden_passed: int = 0  # tests; 0 where they were not run
    hidden_total: int = 0  # tests, run or not
    passed: bool = False  # every visible and every hidden test
    outcome: str = ""  # of the first test failed, visible before hidden; else pass
    error: str = ""  # class of the exception that ended it; a signal's name; empty: none, or of an older folder
    error_line: int | None = None  # of the program, from 1; null: no line of it is known to be to blame
    visible_tests: str = ""  # a letter a test, see grading.grade.LETTERS
    hidden_tests: str = ""  # empty where the hidden tests were not run
    got: str = ""  # output on the first visible test failed, clipped, or the name of what ended it
    got_start: int = 0  # characters before `got` begins
    cpu_seconds: float = 0.0  # seconds of CPU, all tests together
    latency_seconds: float = 0.0  # seconds from the request to the reply
    tries: int = 1  # requests until there was a reply
    time: float = field(default=0.0, compare=False)  # seconds since 1970, when it was graded

    @property
    def slot(self) -> Slot:
        return Slot(self.task_id, self.arm, self.rerun, self.round, self.particle)


def same_program(code: str) -> str:
    """What two programs have in common that differ only in line ends, blanks at the end of lines and blank lines."""
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(filter(None, map(str.rstrip, lines)))


class Style(NamedTuple):
    """The words around every prompt that the flags --system and --no-comments decide."""

    system: str = "You write Python programs that solve programming problems."
    no_comments: bool = False


PLAIN = Style()


# ── the words ────────────────────────────────────────────────────────────────────────────────────────────────────


def fenced(text: str, language: str = "") -> str:
    """The text in a code fence that is longer than any run of backticks inside it."""
    longest = max(map(len, re.findall("`{3,}", text)), default=0) if "```" in text else 0
    fence = "`" * max(3, 1 + longest)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def _request(task: Task, style: Style, wish: str) -> str:
    """The closing lines of every prompt: what kind of program, and how to hand it in."""
    if task.functions:
        names = ", ".join(f"`{name}`" for name in task.functions)
        what = f"that defines {names}" if len(task.functions) > 1 else f"that defines the function {names}"
    elif task.kind == "assert":
        what = "that defines what the problem asks for"
    else:
        what = "that reads its input from stdin and writes its answer to stdout"
    lines = [f"{wish} {what}. Put the whole program in a single ```python block."]
    if style.no_comments:
        lines.append("Write no comments in the code.")
    return "\n".join(lines)


def problem(task: Task) -> str:
    """The statement, and what is given before the program."""
    if not task.prelude:
        return task.statement.rstrip()
    given = fenced(task.prelude, "python")
    return f"{task.statement.rstrip()}\n\nGiven, and run before your program, so that it need not repeat it:\n{given}"


def _messages(style: Style, text: str) -> list[dict[str, str]]:
    system = [{"role": "system", "content": style.system}] if style.system else []
    return [*system, {"role": "user", "content": text}]


def bare(task: Task, style: Style) -> Prompt:
    """The problem alone: what every fresh draw sees, and what a rescued row is filed under."""
    text = f"{problem(task)}\n\n{_request(task, style, 'Write one Python 3 program')}"
    return Prompt(_messages(style, text))


def _first_failed(test: Test, attempt: Attempt, kind: str, letter: str) -> list[str]:
    """The first visible test that the attempt failed: what went in, what was wanted, what came out."""
    answered = letter in (LETTERS["wrong_answer"], LETTERS["bad_value"])
    if not answered:
        came = f"It ended without an answer: {attempt.got.replace('_', ' ')}."
    elif not attempt.got:
        came = "It printed nothing."
    else:
        came = f"{'It gave' if kind == 'assert' else 'It printed'}:\n{fenced(attempt.got)}"
    if kind == "assert":
        return ["The first shown test that it fails:", fenced(clip(test.input)), came]
    return [
        "The first shown test that it fails has this input:",
        fenced(clip(test.input)),
        "The expected output is:",
        fenced(clip(test.output, attempt.got_start)),
        came,
    ]


def _described(task: Task, attempt: Attempt, whose: str) -> str:
    """An attempt as a prompt shows it: its score on the visible tests, its program, its first failed test."""
    if attempt.code is None:
        return f"{whose}: no program found."
    score = f"{attempt.visible_passed} of {len(task.visible)} shown tests"
    failed = [i for i, letter in enumerate(attempt.visible_tests) if letter != LETTERS["pass"]]
    if not failed:
        return f"{whose} passes every shown test ({score}):\n{fenced(attempt.code, 'python')}"
    parts = [f"{whose} passes {score}:", fenced(attempt.code, "python")]
    parts += _first_failed(task.visible[failed[0]], attempt, task.kind, attempt.visible_tests[failed[0]])
    return "\n".join(parts)


def refine(task: Task, own: Attempt | None, other: Attempt | None, style: Style) -> Prompt:
    """The problem, the particle's own best and another's best; the bare problem while it has none of its own.

    Blind to hidden tests: it reads the program and the visible results of an attempt, never `passed`.
    """
    if own is None:
        return bare(task, style)
    parts = [problem(task), _described(task, own, "Your best program so far")]
    if other is not None:
        parts.append(_described(task, other, "The best program of another attempt"))
    if own.code is not None and set(own.visible_tests) == {LETTERS["pass"]}:
        wish = "The tests shown are only examples. Write one Python 3 program, right on inputs not shown as well,"
    else:
        wish = "Find what is wrong, then write one improved Python 3 program"
    parts.append(_request(task, style, wish))
    return Prompt(_messages(style, "\n\n".join(parts)), own.slot, other.slot if other else None)


# ── the arms ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Seat:
    """What one particle can see before it writes: the problem, and the best of each particle (None before round 1)."""

    task: Task
    slot: Slot
    best: list[Attempt | None]
    lot: int  # a seeded draw, for ties among others
    style: Style = PLAIN

    @property
    def own(self) -> Attempt | None:
        return self.best[self.slot.particle]

    def near(self, *steps: int) -> Attempt | None:
        """The fittest best among the particles that many places round the ring; a tie falls by lot."""
        n = len(self.best)
        seats = {(self.slot.particle + step) % n for step in steps} - {self.slot.particle}
        seen = [attempt for seat in sorted(seats) if (attempt := self.best[seat])]
        top = [attempt for attempt in seen if attempt.fitness == max(other.fitness for other in seen)]
        return top[self.lot % len(top)] if top else None


def resample(seat: Seat) -> Prompt:
    """A fresh draw."""
    return bare(seat.task, seat.style)


def solo(seat: Seat) -> Prompt:
    """Its own best."""
    return refine(seat.task, seat.own, None, seat.style)


def ring(seat: Seat) -> Prompt:
    """Its own best, and the better best of its two neighbours."""
    return refine(seat.task, seat.own, seat.near(-1, +1), seat.style)


def star(seat: Seat) -> Prompt:
    """Its own best, and the best of all the others."""
    return refine(seat.task, seat.own, seat.near(*range(1, len(seat.best))), seat.style)


ARMS: dict[str, Callable[[Seat], Prompt]] = {arm.__name__: arm for arm in (resample, solo, ring, star)}


# ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────────

Flow = Generator[list[tuple[Slot, Prompt]], list[Attempt], None]


def swarm(
    task: Task,
    arm: Callable[[Seat], Prompt],
    name: str,
    n: int,
    rounds: int,
    *,
    seed: int = 0,
    rerun: int = 0,
    stop: bool = True,
    first: str = "",
    style: Style = PLAIN,
) -> Flow:
    """One arm on one task: ask n particles, keep each one's best, ask again.

    Yields a round as n pairs of slot and prompt, and is sent the n attempts in the same order. A particle's best is
    the attempt that passes the most visible tests, the newer one on a tie. With `stop` it ends after the round in
    which an attempt passed. `first` is the arm name that round 0 is filed under where arms share it. A prompt that the
    server refuses leaves its particle as it was.
    """
    best: list[Attempt | None] = [None] * n
    for r in range(rounds):
        slots = [Slot(task.id, name if r else first or name, rerun, r, i) for i in range(n)]
        attempts = yield [(slot, arm(Seat(task, slot, best, slot.seed(f"{seed}|lot"), style))) for slot in slots]
        best = [
            old if new.outcome == "refused" or (old and old.fitness > new.fitness) else new
            for old, new in zip(best, attempts, strict=True)
        ]
        if stop and any(attempt.passed for attempt in attempts):
            return
