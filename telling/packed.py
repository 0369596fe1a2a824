"""The attempts of one task as a chunk of the page: small, and opened by the browser when somebody opens the task.

    chunk = packed(card, attempts, prompts, cut=20_000)      JSON, deflated, in base 85

A text stands once in it, whoever holds it. A prompt is a pattern: words, and holes for the problem,
programs and results that stand there anyway; filled in, it is what was sent, character for character.

Left out: which prompts are known to be those sent (figures/replayed.py), the list of tasks (browse.py).
"""

from __future__ import annotations

import json
import zlib
from base64 import b85encode
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from grading.grade import LETTERS, clip, tally
from swarm import Attempt, Prompt, Slot, problem
from tasksets.task import Task

Value = str | int | float | None
Pattern = tuple[tuple[str, tuple[int | str, ...]], ...]  # role and parts: the number of a text, or the name of a hole
COLUMNS = (
    "slot", "outcome", "visible", "visible_total", "hidden", "hidden_total", "code", "input", "expected", "got",
    "parent", "social", "prompt", "sha", "error", "line",
)  # fmt: skip
HELD = ("score", "code", "input", "expected", "got")  # of an attempt shown, in the order in which a prompt tells it


class Texts:
    """Texts by number, each once, cut after so many characters."""

    def __init__(self, cut: int) -> None:
        self.cut = cut
        self.all: list[str] = []
        self.cut_from: dict[int, int] = {}  # number of a text -> its length before it was cut
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            at = self._numbers[text] = len(self.all)
            self.all.append(text[: self.cut])
            if len(text) > self.cut:
                self.cut_from[at] = len(text)
        return self._numbers[text]


def packed(card: Task | None, attempts: Sequence[Attempt], prompts: Mapping[Slot, Prompt], cut: int) -> str:
    """A chunk. attempts: in an order in which a program stands near those it came from, for the sake of size."""
    return measured(card, attempts, prompts, cut)[0]


def measured(
    card: Task | None, attempts: Sequence[Attempt], prompts: Mapping[Slot, Prompt], cut: int
) -> tuple[str, int]:
    """A chunk, and the length of its longest text before it was cut: any cut beyond that comes to the same chunk."""
    texts = Texts(cut)
    held = {a.slot.within_task(): _held(card, a) for a in attempts}
    whole = problem(card) if card else ""
    patterns: dict[Pattern, int] = {}  # by number
    rows: list[list[Value]] = []
    if whole:
        texts.number(whole)
    for a in attempts:  # programs side by side, where one is most of the other
        if a.code is not None:
            texts.number(a.code)
    last = 0
    for a in attempts:
        mine, number = held[a.slot.within_task()], None
        if sent := prompts.get(a.slot):
            known = [("problem", whole)]
            for who, slot in (("own", a.parent), ("other", a.social)):
                known += [(f"{who}.{name}", text) for name in HELD if slot and (text := held.get(slot, {}).get(name))]
            pattern: Pattern = tuple(
                (
                    message["role"],
                    tuple(
                        part[1:] if part[0] == "=" else texts.number(part[1:])
                        for part in split(message["content"], known)
                    ),
                )
                for message in sent.messages
            )
            number = patterns.setdefault(pattern, len(patterns))
        told = [None if (text := mine.get(name)) is None else texts.number(text) for name in HELD[1:]]
        if told[0] is not None:  # numbers that mostly go up by one
            told[0], last = told[0] - last, told[0]
        follows = tally(a.visible_tests, a.hidden_tests).outcome == a.outcome
        rows.append([a.slot.within_task(), None if follows else a.outcome, a.visible_tests, a.visible_total,
                     a.hidden_tests, a.hidden_total, *told, a.parent, a.social, number,
                     None if sent else a.prompt_sha[:12], a.error or None, a.error_line])  # fmt: skip
    columns = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    longest = max([*map(len, texts.all), *texts.cut_from.values()], default=0)
    return squeezed({"columns": columns, "texts": texts.all, "cut": texts.cut_from, "prompts": list(patterns),
                     "problem": 0 if whole else None}), longest  # fmt: skip


def squeezed(value: object) -> str:
    """JSON as raw deflate, in base 85 with a comma for the letter that could begin a tag."""
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)  # 9 takes twice as long for 3% less
    data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()  # ASCII: lone surrogates survive
    return in_base85(squeeze.compress(data) + squeeze.flush()).replace("<", ",")


ALPHABET = np.frombuffer(b"".join(b85encode(bytes([0, 0, 0, n]))[-1:] for n in range(85)), dtype=np.uint8)


def in_base85(data: bytes) -> str:
    """What base64.b85encode makes of it, thirty times as fast: that one takes four bytes at a time."""
    words = np.frombuffer(data + bytes(-len(data) % 4), dtype=">u4").astype(np.uint32)
    digits = np.empty((len(words), 5), dtype=np.uint8)
    for place in range(4, -1, -1):
        words, digits[:, place] = np.divmod(words, 85)
    whole = ALPHABET[digits].tobytes().decode("ascii")
    return whole[: len(whole) - -len(data) % 4]


def split(text: str, known: Iterable[tuple[str, str]]) -> list[str]:
    """A text in parts: "+words", and "=name" for a text of that name, which are looked for in their order."""
    parts, at = [], 0
    for name, piece in known:
        if piece and (found := text.find(piece, at)) >= 0:
            if found > at:
                parts.append("+" + text[at:found])
            parts.append("=" + name)
            at = found + len(piece)
    return [*parts, "+" + text[at:]] if at < len(text) or not parts else parts


def _held(card: Task | None, a: Attempt) -> dict[str, str | None]:
    """What a prompt can show of an attempt."""
    given, wanted, got = _first_failed(card, a)
    score = f"{a.visible_tests.count(LETTERS['pass'])} of {a.visible_total}"
    return {"score": score, "code": a.code, "input": given, "expected": wanted, "got": got}


def _first_failed(card: Task | None, a: Attempt) -> tuple[str | None, str | None, str | None]:
    """Input, expected output and what came, of the first visible test that a program failed."""
    failed = next((i for i, letter in enumerate(a.visible_tests) if letter != LETTERS["pass"]), None)
    if failed is None or a.code is None:
        return None, None, None
    if card is None or failed >= len(card.visible):
        return None, None, a.got
    test = card.visible[failed]
    return clip(test.input), None if card.kind == "assert" else clip(test.output, a.got_start), a.got
