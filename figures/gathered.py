"""Attempts as columns in the order in which they come: what is kept of a reply and a program in place of them. Pure.

    gathered = Gathered.of(attempts)        one walk over them
    gathered.extend(placed)                 more of them, each with where its line begins and how long it is
    for gist in gathered.gists(): ...       what an index tells of each

Nothing of a text is kept but numbers that say which are equal: of a million attempts half a GB, most of it the numbers
of programs' lines. Equal slots stay, all of them.

Left out: sorting, and what is due (table.py); files (reading/stored.py).
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from grading.reasoning import ENDS, OPENS
from swarm import Attempt, Slot, same_program

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Texts = NDArray[np.object_]
Placed = tuple[int, int, Attempt]  # offset and length of its line in bytes, attempt

WHOLE = ("task", "run", "round", "particle", "has_code", "outcome", "signature", "parent", "social", "start", "end",
         "at", "length")  # fmt: skip
BITS = ("passed", "shown", "half", "truncated", "thinking", "empty")
REAL = (
    "fitness",
    "hidden",
    "hidden_passed",
    "prompt_tokens",
    "completion_tokens",
    "cpu_seconds",
    "latency_seconds",
    "time",
)
TEXTS = ("program", "reply", "prompt")

Word = TypeVar("Word")


class Words(dict[Word, int]):
    """Values by number, in the order in which they come."""

    def __missing__(self, word: Word) -> int:
        self[word] = number = len(self)
        return number

    def all(self, numbers: Ints) -> Texts:
        words = np.empty(len(self), dtype=object)
        words[:] = list(self)
        return words[numbers]


class _Lines(dict[str, int]):
    """Lines of programs by number: what is left of a line's bytes, divided by a prime. It is the same wherever a line
    stands, so that no line has to be kept for good: `numbers` forgets all of them now and then."""

    PRIME, MOST = 2**63 - 25, 1 << 17

    def __missing__(self, line: str) -> int:
        self[line] = number = int.from_bytes(line.encode("utf-8", "surrogatepass"), "little") % self.PRIME
        return number

    def numbers(self, program: str) -> list[int]:
        """A program (as `same_program` has it, without blank lines) as a set: its stripped lines, the k-th occurrence
        of a line apart from the first."""
        if len(self) > self.MOST:
            self.clear()
        lines = [*map(str.strip, program.split("\n"))] if program else []
        once = dict.fromkeys(lines)
        numbers = [*map(self.__getitem__, once)]
        if len(once) < len(lines):
            numbers += [self[f"{k}\n{line}"] for line, n in Counter(lines).items() if n > 1 for k in range(1, n)]
        return numbers


class Gist(NamedTuple):
    """What an index tells of an attempt."""

    task_id: str
    arm: str
    rerun: int
    round: int
    particle: int
    passed: bool
    fitness: float
    hidden_passed: float
    outcome: str


class Gathered:
    """The columns, an array each, an entry an attempt. Numpy looks at them in place: none grows once a figure is made.

    ints: `task`, `run`, `outcome`, `signature`, `parent` and `social` are numbers of words, `start` and `end` bound a
    program's lines among `lines`, `at` and `length` say where in its log an attempt stands (bytes). floats: nan is
    unknown. digests: eight bytes a text, of programs only where there is one; of a million texts two look alike in one
    run of 3e7.
    """

    def __init__(self) -> None:
        self.ints = {name: array(kind) for kind, names in (("q", WHOLE), ("b", BITS)) for name in names}
        self.floats = {name: array("d") for name in REAL}
        self.lines = array("q")
        self.digests = {name: array("q") for name in TEXTS}
        self.tasks, self.outcomes, self.signatures = Words[str](), Words[str](), Words[str]()
        self.runs, self.shown = Words[tuple[str, int]](), Words[str | None]()
        self.left: list[str] = []  # tasks of attempts that a regrade has left as they were, one an attempt

    @classmethod
    def of(cls, attempts: Iterable[Attempt]) -> Self:
        made = cls()
        made.extend((0, 0, attempt) for attempt in attempts)
        return made

    def __len__(self) -> int:
        return len(self.ints["task"])

    def extend(self, placed: Iterable[Placed]) -> None:
        """Take more of them, in one walk."""
        add: dict[str, Callable[..., None]] = {name: column.append for name, column in self.ints.items()}
        add |= {name: column.append for name, column in self.floats.items()}
        digest = {name: column.frombytes for name, column in self.digests.items()}
        tasks, outcomes, signatures, runs, slots = self.tasks, self.outcomes, self.signatures, self.runs, self.shown
        lines, numbers_of = self.lines, _Lines().numbers
        for at, length, a in placed:
            text = None if a.code is None else same_program(a.code)
            shown = text is not None and a.visible_passed == a.visible_total
            empty = not a.reply.strip()
            truncated = a.finish_reason == "length"
            add["task"](tasks[a.task_id])
            add["run"](runs[a.arm, a.rerun])
            add["round"](a.round)
            add["particle"](a.particle)
            add["passed"](bool(a.passed))
            add["outcome"](outcomes[a.outcome])
            add["fitness"](a.fitness)
            add["shown"](shown)
            add["hidden"](a.hidden_passed / a.hidden_total if shown and a.hidden_total else math.nan)
            add["hidden_passed"](a.hidden_passed or 0)
            add["half"](2 * a.visible_passed >= a.visible_total > 0)
            add["signature"](signatures[a.visible_tests])
            add["has_code"](text is not None)
            add["truncated"](truncated)
            add["thinking"](
                truncated
                and ((empty and bool(a.reasoning)) or bool(OPENS.search(a.reply) and not ENDS.search(a.reply)))
            )
            add["empty"](empty)
            add["prompt_tokens"](math.nan if a.prompt_tokens is None else a.prompt_tokens)
            add["completion_tokens"](math.nan if a.completion_tokens is None else a.completion_tokens)
            add["cpu_seconds"](a.cpu_seconds)
            add["latency_seconds"](a.latency_seconds)
            add["time"](a.time)
            add["parent"](slots[a.parent])
            add["social"](slots[a.social])
            add["at"](at)
            add["length"](length)
            digest["reply"](_digest(a.reply))
            digest["prompt"](_digest(a.prompt_sha))
            add["start"](len(lines))
            if text is not None:
                digest["program"](_digest(text))
                if a.arm != "base" and a.rerun == 0:  # the re-runs and the base group are not compared text by text
                    lines.extend(numbers_of(text))
            add["end"](len(lines))

    def whole(self, name: str) -> Ints:
        return np.frombuffer(self.ints[name], dtype=np.int64)

    def bits(self, name: str) -> Bools:
        return np.frombuffer(self.ints[name], dtype=bool)

    def real(self, name: str) -> Floats:
        return np.frombuffer(self.floats[name], dtype=float)

    def equal(self, name: str) -> Ints:
        """A text of each by number, equal ones alike, in the order in which they came first; -1 without a program."""
        _, first, which = np.unique(
            np.frombuffer(self.digests[name], dtype=np.int64), return_index=True, return_inverse=True
        )
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        if name != "program":
            return rank[which]
        numbers = np.full(len(self), -1, dtype=np.int64)
        numbers[self.whole("has_code") == 1] = rank[which]
        return numbers

    def passing(self, base: bool) -> Ints:
        """Rows that passed; base: also those of a base group."""
        arms = np.array([arm != "base" or base for arm, _ in self.runs], dtype=bool)
        passed = np.flatnonzero(self.bits("passed"))
        return passed[arms[self.whole("run")[passed]]]

    def slots(self) -> Iterator[Slot]:
        tasks, runs, i = list(self.tasks), list(self.runs), self.ints
        where = zip(i["task"], i["run"], i["round"], i["particle"], strict=True)
        return (Slot(tasks[task], *runs[run], nth, particle) for task, run, nth, particle in where)

    def gists(self) -> Iterator[Gist]:
        outcomes, i, f = list(self.outcomes), self.ints, self.floats
        rest = zip(i["passed"], f["fitness"], f["hidden_passed"], i["outcome"], strict=True)
        for slot, (passed, fitness, hidden_passed, outcome) in zip(self.slots(), rest, strict=True):
            yield Gist(*slot, bool(passed), fitness, hidden_passed, outcomes[outcome])

    def arrays(self) -> dict[str, array[int] | array[float]]:
        """All that is a number: with `words` and `runs` all there is."""
        digests = {f"{name} digests": column for name, column in self.digests.items()}
        return {**self.ints, **self.floats, **digests, "lines": self.lines}

    def words(self) -> dict[str, Words[str] | Words[str | None]]:
        return {"task": self.tasks, "outcome": self.outcomes, "signature": self.signatures, "shown": self.shown}


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
