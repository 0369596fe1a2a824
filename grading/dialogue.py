"""How asserts are decided: questions to the program, its answers to the judge, in turns, until each has a verdict.

    taken_apart   the tests of a task as questions and remainders (asserts.py does it)
    decide        a result for each of them, from one worker
    exchange      inputs out, results in

Nearly every assert is one value that equals a literal, and such a one needs no judge, unless its value holds something
that hostile contents could make slow to compare. The judge (judge.py) runs in a process of the sandbox that has never
seen the program; nothing but plain data passes between the two, and all of it through here.

Left out: what may be asked beside the program (asserts.py), how bytes travel (sandbox.py).
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import struct
import time
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from pathlib import Path

from faults import TaskError
from grading import asserts, plain, protocol, sandbox
from grading.compare import clip_start
from grading.grade import TestResult, clip
from grading.outline import outline_of
from grading.raised import NOTHING, Raised
from tasksets.task import Test

_ASKS = 10_000  # the most questions that one assert may put to a program
_ROUNDS = 200  # turns of judge and program, for one assert
_LIMITS = 3  # so many times the limit of a test, for all the processes in which one assert is decided
_TIRED = 0.05  # the share of the sleep limit that is left to an assert then
_WHOLE = 1 << 40  # bytes that what comes from this side may take, encoded: as many as it likes
_NO_NAMES = plain.encode({})
_NO_LITERAL = object()
# What is above the line is for those who read and check it.
_TEXT = Path(__file__).with_name("judge.py").read_text(encoding="utf-8")
JUDGE = _TEXT.partition("\n# -- sent to the sandbox --\n")[2].encode()

_Question = tuple[int, bytes, bytes]  # a leaf's number; bound names that it reads, and that its whole reads, encoded
_Known = tuple[_Question, bool, bytes | str]  # was the whole asked; the value encoded, or the name of an error


def taken_apart(
    tests: Sequence[Test], setup: str, functions: Sequence[str] = (), program: str = ""
) -> list[asserts.Apart]:
    """functions: names that the task requires; where it names none, the program's own go before built-in ones.

    Raises TaskError.
    """
    parts = []
    for test in tests:
        part = _apart(test.input, setup, frozenset(functions))
        if not functions and not part.leaves:
            own = {name for name in asserts.BUILTINS & outline_of(program).named if name in test.input}
            with contextlib.suppress(TaskError):  # a program decides no test's worth
                part = _apart(test.input, setup, frozenset(own))
        parts.append(part)
    return parts


def _apart(text: str, setup: str, required: frozenset[str]) -> asserts.Apart:
    try:
        return asserts.take_apart(text, setup, required)
    except asserts.NotATest as why:
        raise TaskError(f"a test cannot be used: {why}: {clip(text)!r}; mend or leave out this test") from None


async def decide(
    worker: sandbox.WorkerProcess, program: bytes, limits: sandbox.Limits, parts: Sequence[asserts.Apart]
) -> list[TestResult]:
    """Put questions to the program and answers to the judge, in turns, until all asserts are decided."""
    undecided = [_Undecided(part) for part in parts]
    of_program = limits._replace(output_bytes=4 * plain.VALUE_BYTES)
    if quick := [one for one in undecided if one.part.is_one_question]:
        worker.begin(program, protocol.MODULE, of_program)
        asked = iter(quick)
        async for output in exchange(worker, [_piece(one.part.question(), b"") for one in quick], last=True):
            next(asked).take_value(output)
    while waiting := [one for one in undecided if one.result is None]:
        late = [one.result for one in undecided if one.result and one.result.outcome == "timeout"]
        if limits.timeouts and len(late) >= limits.timeouts:
            for one in waiting:
                one.result = TestResult(False, "not_run", "not_run", one.cpu)
            break
        worker.begin(JUDGE, protocol.MODULE, limits)
        inputs = [_piece(one.part.judge, one.known()) for one in waiting]
        outputs = [output async for output in exchange(worker, inputs, last=True)]
        for one, output in zip(waiting, outputs, strict=True):
            one.take_verdict(output)
        asking = [one for one in waiting if one.result is None and one.asks]
        tired = [one for one in asking if one.idle > (_LIMITS - 1) * limits.asleep_seconds]
        fresh = [one for one in asking if one not in tired]
        for some, asleep in ((fresh, limits.asleep_seconds), (tired, _TIRED * limits.asleep_seconds)):
            if some:
                worker.begin(program, protocol.MODULE, of_program._replace(asleep_seconds=asleep))
                started = time.monotonic()
                inputs = [one.question() for one in some]
                outputs = [output async for output in exchange(worker, inputs, last=True)]
                idle = time.monotonic() - started - sum(output.cpu_seconds for output in outputs)
                for one, output in zip(some, outputs, strict=True):
                    one.take_answers(output)
                    one.idle += max(0.0, idle) / len(some)  # results come together
        for one in waiting:
            if one.result is None and one.cpu > _LIMITS * limits.cpu_seconds:
                one.fail("timeout")
    return [one.result for one in undecided if one.result is not None]


class _Undecided:
    """An assert that is being decided: what has been answered, and what is asked."""

    def __init__(self, part: asserts.Apart) -> None:
        self.part = part
        self.beside = set(part.at_once)  # groups that are asked in place of the leaves in them
        self.given: list[_Known] = []
        self.asks: list[_Question] = []  # all questions so far, those answered included
        self.many = _ASKS  # new questions put at once: fewer, where one of them went wrong
        self.whole: set[int] = set()  # leaves of which the program's value so far is an object of its own
        self.guess = False
        self.rounds = 0
        self.changed = False  # a question has been answered in two ways
        self.idle = 0.0  # seconds that have passed without computing: asleep, or waiting for a processor
        self.checked = False  # the judge has run without an answer
        self.cpu = 0.0
        self.result: TestResult | None = None

    def fail(self, outcome: str, got: str = "", raised: Raised = NOTHING) -> None:
        """raised: by the program; what the judge raises is for nobody to see."""
        self.result = TestResult(False, outcome, got or outcome, self.cpu, 0, *raised)

    def settle(self, equal: bool, shown: str, start: int = 0) -> None:
        if equal:
            self.result = TestResult(True, "pass", "", self.cpu)
        else:
            self.result = TestResult(False, "wrong_answer", shown, self.cpu, start)

    def take_value(self, output: sandbox.Output) -> None:
        """The answer to the only question there is."""
        self.cpu += output.cpu_seconds
        data, text = _halves(output.stdout)
        if output.outcome == "bad_value" and self.part.leaves and self.widen(0):
            return
        if output.outcome != "ended":
            self.fail(output.outcome, f"bad_value: {text}" if output.outcome == "bad_value" else "", output.raised)
        elif not data:  # it left with status 0 before there was a value
            self.fail("runtime_error")
        elif len(data) > plain.VALUE_BYTES:
            self.fail("bad_value", "bad_value: too much of it")
        else:
            other = self.part.other
            literal = _NO_LITERAL if other is None else _literal(other)
            start = clip_start(text, repr(literal)) if literal is not _NO_LITERAL else 0
            equal = equals(data, literal)
            if equal is not None:
                self.settle(equal, clip(text, start), start)
            elif self.part.leaves:
                self.given = [((0, _NO_NAMES, _NO_NAMES), False, data)]

    def widen(self, number: int) -> bool:
        """Ask for more at once than this leaf or group, which is an object of its own. False: there is no more."""
        asked = self.part.asked(number)
        if asked.whole and number not in self.whole:
            self.whole.add(number)
        elif asked.outer:
            self.beside.add(asked.outer)
            self.given, self.asks = [], []
        else:
            return False
        return True

    def known(self) -> bytes:
        """What the judge is given. It guesses in turns: one guess ends an `all` at once, and the other an `any`."""
        self.guess = not self.guess
        return plain.encode((self.guess, self.given, sorted(self.beside)), _WHOLE)

    def take_verdict(self, output: sandbox.Output) -> None:
        """What the judge says: passed or not, or what it wants to know."""
        if output.outcome == "not_run":  # others have used up the time
            self.asks = []
            return
        self.cpu += output.cpu_seconds
        without, self.checked = not self.given, self.checked or not self.given
        said = _said(_halves(output.stdout)[0])
        if said == "":
            if without:  # nothing of the program is in it
                why = f"the set-up code of a test does not run by itself ({output.outcome})"
                raise TaskError(f"{why}: {clip(self.part.judge)!r}; mend or leave out this test") from None
            if not self.checked:  # does it fail by itself?
                self.given, self.asks = [], []
            elif output.outcome == "timeout":  # a value that takes that long to compare
                self.fail("timeout")
            else:
                self.fail("wrong_answer", "a value that cannot be compared")
        elif isinstance(said, tuple):
            passed, text = said
            self.settle(passed, clip(text))
        elif isinstance(said, list) and all(self.part.is_asked(leaf) for leaf, *_ in said):
            self.rounds += 1
            met = next((at for at, (one, known) in enumerate(zip(said, self.given, strict=False)) if one != known[0]),
                       min(len(said), len(self.given)))  # fmt: skip
            if len(said) > _ASKS or self.rounds > _ROUNDS:
                self.fail("bad_value", "bad_value: too many questions")
            elif self.changed:
                self.fail("bad_value", "bad_value: another answer to the same question")
            elif met == len(said):  # nothing new: whoever has said that is not the judge
                self.fail("wrong_answer", "a value that cannot be compared")
            self.asks = said
            self.given = self.given[:met]
        elif said is None and without:
            why = "a test hands the program, out of a variable, what is no plain data; make it in the call"
            raise TaskError(f"{why}: {clip(self.part.judge)!r}; mend or leave out this test")
        else:  # whoever has said that is not the judge
            self.fail("wrong_answer", "a value that cannot be compared")

    def question(self) -> bytes:
        """All questions so far and the next new ones, for one process: the program may keep what it was asked."""
        asks = self.asks[: len(self.given) + self.many]
        hows = [(leaf, leaf in self.whole) for leaf, _, _ in asks]
        return _piece(self.part.questions(hows), plain.encode([names for _, *names in asks], _WHOLE))

    def take_answers(self, output: sandbox.Output) -> None:
        """The answers to question(). Where it went wrong, half as many are asked next; a single one has failed."""
        if output.outcome == "not_run":
            return
        self.cpu += output.cpu_seconds
        asks = self.asks[: len(self.given) + self.many]
        data, text = _halves(output.stdout)
        if output.outcome == "ended" and data:
            answers = _answers(data, len(asks))
            if len(answers) == len(asks):
                before = self.given
                self.given = [(ask, ask[0] in self.whole, answer) for ask, answer in zip(asks, answers, strict=True)]
                self.changed = self.changed or any(
                    old[1] == new[1] and old[2] != new[2] for old, new in zip(before, self.given, strict=False)
                )
                self.many = min(_ASKS, 2 * self.many)
            else:
                self.fail("runtime_error")
            return
        new = len(asks) - len(self.given)
        if new > 1:
            self.many = new // 2
        elif output.outcome == "bad_value":
            if not self.widen(asks[-1][0]):
                self.fail("bad_value", f"bad_value: {text}")
        else:
            self.fail("runtime_error" if output.outcome == "ended" else output.outcome, "", output.raised)


# ── what others have sent: as many parts as were asked for, and none is looked into here ─────────────────────────────


def _parts(data: bytes, at: int, tags: str) -> tuple[list[bytes], int]:
    """The payloads of so many values that stand one after another, each of a tag of its own, and where they end."""
    found = []
    for tag in tags:
        if data[at : at + 1] != tag.encode():
            raise ValueError(f"no {tag} at byte {at}")
        (size,) = plain.COUNT.unpack_from(data, at + 1)
        found.append(data[at + 5 : at + 5 + size])
        at += 5 + size
        if at > len(data):
            raise ValueError("cut off")
    return found, at


def _answers(data: bytes, many: int) -> list[bytes | str]:
    """The list of so many answers that a program's process has sent; empty where it is no such list."""
    answers: list[bytes | str] = []
    if data[:5] != b"l" + plain.COUNT.pack(many):
        return []
    try:
        at = 5
        for _ in range(many):
            tag = "b" if data[at : at + 1] == b"b" else "s"
            (answer,), at = _parts(data, at, tag)
            answers.append(answer if tag == "b" else answer.decode("utf-8", "surrogatepass"))
    except (ValueError, struct.error):
        return []
    return answers if at == len(data) else []


def _said(data: bytes) -> tuple[bool, str] | list[_Question] | str | None:
    """What the judge has said: a verdict, its questions, None for what cannot be sent; "" for anything else."""
    if data == b"N":
        return None
    try:
        if data[:6] in (b"t\2\0\0\0T", b"t\2\0\0\0F"):
            (text,), at = _parts(data, 6, "s")
            return (data[5:6] == b"T", text.decode("utf-8", "surrogatepass")) if at == len(data) else ""
        if data[:1] != b"l":
            return ""
        (many,), at, asks = plain.COUNT.unpack_from(data, 1), 5, []
        for _ in range(min(many, _ASKS + 1)):
            if data[at : at + 5] != b"t\3\0\0\0":
                return ""
            (leaf, bound, more), at = _parts(data, at + 5, "ibb")
            asks.append((int(leaf[:9], 16), bound, more))
    except (ValueError, struct.error):
        return ""
    return asks if len(asks) > _ASKS or at == len(data) else ""


@lru_cache(maxsize=4096)
def _literal(text: str) -> object:
    """The value of a literal that can be compared on this side; _NO_LITERAL where it is anything else."""
    try:
        value = ast.literal_eval(text)
        plain.encode(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, plain.BadValue):
        return _NO_LITERAL
    return value


def equals(data: bytes, literal: object) -> bool | None:
    """Is the encoded value equal to the literal? None: not to be decided on this side."""
    if literal is _NO_LITERAL or len(data) > 1 << 16:  # more would keep other work waiting
        return None
    if data == plain.encode(literal):
        return True
    try:
        plain.decode(plain.encode(literal), plain_only=True)
        return bool(plain.decode(data, plain_only=True) == literal)
    except ValueError:
        return None


# ── bytes out, bytes in ──────────────────────────────────────────────────────────────────────────────────────────────


async def exchange(worker: sandbox.WorkerProcess, inputs: list[bytes], last: bool) -> AsyncIterator[sandbox.Output]:
    """Inputs out, results in, both at once where there is much of them."""
    if sum(map(len, inputs)) < 1 << 16:
        await worker.send(inputs, last)
        for _ in inputs:
            yield await worker.receive()
        return
    sending = asyncio.ensure_future(worker.send(inputs, last))
    try:
        for _ in inputs:
            yield await worker.receive()
        await sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def _piece(text: str, given: bytes) -> bytes:
    """A piece of Python to run beside the program, and what it finds in __given__."""
    code = text.encode("utf-8", "surrogatepass")
    return len(code).to_bytes(4, "little") + code + given


def _halves(stdout: bytes) -> tuple[bytes, str]:
    """Of what a call sends back: the value encoded, and its repr; for a bad value, b"" and its name."""
    size = int.from_bytes(stdout[:4], "little")
    if len(stdout) < 4 + size:
        return b"", stdout.decode("utf-8", "replace")
    return stdout[4 : 4 + size], stdout[4 + size :].decode("utf-8", "replace")
