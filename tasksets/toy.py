"""The task set `toy`, and the fake policy that a dry run asks for it: three small tasks, no model, no network.

Each task has a first idea that passes some of the tests and is wrong. The fake policy mostly has that one on the bare
prompt; it does better when shown a program of its own, better still with a neighbour's.
Left out: being like a model. Its figures say nothing about any.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Self

from asking.events import Event
from asking.fields import Messages
from asking.reply import Reply, tokens
from asking.told import Probe, Record, State
from tasksets.hub import not_on_a_hub
from tasksets.task import About, Options, Task, Test


class Toy(NamedTuple):
    """A task, and how the fake policy does on it."""

    task: Task
    dice: str  # what its replies are drawn from, beside the seed
    rates: tuple[float, float, float]  # how often one is right when the prompt shows no program, one, or two
    program: str  # that is right, RESULT standing for any name
    slips: tuple[tuple[str, str], ...]  # what makes it wrong, from very to nearly


def toy(options: Options, about: About) -> Iterator[Task]:
    """The three tasks, each with the fake policy's right program as its reference."""
    not_on_a_hub(options, "toy")
    about.licence = "Apache-2.0"
    for each in TOYS:
        right = each.program.replace("RESULT", "answer")
        wrong = tuple(each.program.replace(*slip).replace("RESULT", "answer") for slip in each.slips)
        yield replace(each.task, reference=right, references=(right,), incorrect=wrong[: options.references])


class FakePolicy:
    """The verbs of endpoint.Policy without a model: a function of messages and seed alone, that knows the toy tasks."""

    model = "fake"

    def __init__(self, log: Record = lambda row: None) -> None:
        self.state, self._log, self._numbers = State(), log, itertools.count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def probe(self) -> Probe:
        facts = ["a fake policy: its numbers say nothing about any model"]
        return Probe(self.model, served=[self.model], server="none", urls=[], facts=facts, warnings=[])

    async def draw(self, messages: Messages, seed: int) -> Reply:
        sent: Event = {"event": "sent", "request": next(self._numbers), "seed": seed, "tries": 1}
        reply = self._reply("\n".join(message["content"] for message in messages), seed)
        self._log(sent)
        self._log({**sent, "event": "answered", **tokens(reply), "latency_seconds": 0.0})
        self.state.answered += 1
        return reply

    def _reply(self, prompt: str, seed: int) -> Reply:
        known = next((each for each in TOYS if each.task.statement in prompt), UNKNOWN)
        seen = min(prompt.count("`python\n"), 2)  # programs that the prompt shows
        dice = random.Random(f"{seed}|{known.dice}|{seen}")  # whatever the words around them
        program, slips = known.program, known.slips
        if dice.random() >= known.rates[seen]:
            program = program.replace(*slips[max(dice.randrange(len(slips)) for _ in range(1 + seen))])
        program = program.replace("RESULT", dice.choice(["answer", "result", "found", "total", "value"]))
        text = f"Idea {dice.randrange(10**6)}:\n\n```python\n{program}```\n"
        if dice.random() < 0.04:
            text = f"I would begin with the examples ({dice.randrange(10**6)})."
        return Reply(text, "stop", len(prompt) // 4, len(text) // 4)


def _stdio(*pairs: tuple[str, str], source: str = "public") -> tuple[Test, ...]:
    return tuple(Test(stdin, stdout, source) for stdin, stdout in pairs)


TOYS = (
    Toy(
        Task(
            id="toy-paint",
            title="Painted fence",
            kind="stdio",
            statement=(
                "A fence is painted in strokes. A stroke from a to b covers the fence between the points a and "
                "b; what lies under several strokes counts once.\n\n"
                "Input: the first line holds n, the number of strokes (0 <= n <= 1000). Each of the next n lines "
                "holds two integers a and b (-10^9 <= a, b <= 10^9), in either order.\n\n"
                "Output: one integer, the length of fence that is painted."
            ),
            visible=_stdio(
                ("2\n0 3\n5 9\n", "7\n"),
                ("1\n4 4\n", "0\n"),
                ("2\n0 5\n3 8\n", "8\n"),
                ("3\n1 10\n2 3\n4 5\n", "9\n"),
                ("2\n9 2\n-4 3\n", "13\n"),
            ),
            hidden=_stdio(
                ("0\n", "0\n"),
                ("3\n0 1\n1 2\n2 3\n", "3\n"),
                ("4\n7 1\n2 6\n8 9\n20 8\n", "18\n"),
                ("2\n-1000000000 1000000000\n5 -5\n", "2000000000\n"),
                ("3\n5 6\n0 10\n9 12\n", "12\n"),
                ("5\n3 1\n3 1\n-3 -1\n0 0\n10 11\n", "5\n"),
                source="private",
            ),
        ),
        dice="painted in strokes",
        rates=(0.01, 0.03, 0.16),
        program="""\
n = int(input())
RESULT, end = 0, -10**10
for a, b in sorted(sorted(map(int, input().split())) for _ in range(n)):
    RESULT += max(0, b - max(a, end))
    end = max(end, b)
print(RESULT)
""",
        slips=(("max(a, end)", "a"), ("max(end, b)", "b")),
    ),
    Toy(
        Task(
            id="toy-brackets",
            title="First bad bracket",
            kind="stdio",
            statement=(
                "A line of text holds brackets of three kinds, (), [] and {}, among other characters. Read from "
                "the left and stop at the first closing bracket that does not close the bracket opened last.\n\n"
                "Input: one line of at most 1000 characters, possibly empty.\n\n"
                "Output: the position of that closing bracket, counting from 1. If there is none, print 0 when "
                "every bracket is closed, and -1 when some bracket is still open at the end of the line."
            ),
            visible=_stdio(
                ("f(x[1], {y})\n", "0\n"),
                ("())(\n", "3\n"),
                ("(a[b)c]\n", "5\n"),
                ("{[()\n", "-1\n"),
            ),
            hidden=_stdio(
                ("\n", "0\n"),
                ("]\n", "1\n"),
                ("([{}]){\n", "-1\n"),
                ("({)}\n", "3\n"),
                ("no brackets here\n", "0\n"),
                ("((([[[{{{}}}]]])))\n", "0\n"),
                ("(]\n", "2\n"),
                source="private",
            ),
        ),
        dice="brackets of three kinds",
        rates=(0.01, 0.03, 0.16),
        program="""\
RESULT = []
for place, c in enumerate(input(), 1):
    if c in '([{':
        RESULT.append(')]}'['([{'.index(c)])
    elif c in ')]}' and (not RESULT or RESULT.pop() != c):
        print(place)
        break
else:
    print(-1 if RESULT else 0)
""",
        slips=(("(input(), 1)", "(input())"), ("RESULT.pop() != c", "not RESULT.pop()")),
    ),
    Toy(
        Task(
            id="toy-lists",
            title="Two list functions",
            kind="assert",
            statement=(
                "Write two functions.\n\n"
                "1. rotate(items, k): a new list in which every item has moved k places to the right, round the "
                "end. A negative k moves them to the left, and k may be larger than the list.\n"
                "2. runs(text): the lengths of the runs of equal characters of a string, as a list of pairs "
                "(character, length) in the order of the string."
            ),
            visible=(
                Test("assert rotate([1, 2, 3, 4], 1) == [4, 1, 2, 3]"),
                Test("assert rotate([1, 2, 3], -4) == [2, 3, 1]"),
                Test('assert runs("aab") == [("a", 2), ("b", 1)]'),
                Test('assert runs("") == []'),
            ),
            hidden=(
                Test("assert rotate([], 3) == []", source="private"),
                Test("assert rotate([1, 2, 3], 7) == [3, 1, 2]", source="private"),
                Test("assert rotate(['x', 'y'], 0) == ['x', 'y']", source="private"),
                Test('assert runs("abba") == [("a", 1), ("b", 2), ("a", 1)]', source="private"),
                Test('assert runs("zzzz") == [("z", 4)]', source="private"),
            ),
            functions=("rotate", "runs"),
        ),
        dice="rotate(items, k)",
        rates=(0.35, 0.5, 0.75),
        program="""\
from itertools import groupby


def rotate(items, k):
    k %= len(items) or 1
    return items[-k:] + items[:-k]


def runs(text):
    RESULT = [(c, len(list(run))) for c, run in groupby(text)]
    return RESULT
""",
        slips=(
            ("k %= len(items) or 1", "k = -k"),
            ("k %= len(items) or 1\n    ", ""),
            ("groupby(text)", "groupby(sorted(text))"),
        ),
    ),
)
UNKNOWN = Toy(Task("", "", "", "stdio", ()), "", (0.0, 0.0, 0.0), "print(0)\n", (("0", "1"), ("0", "2")))
