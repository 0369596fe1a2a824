"""What is asked: a Task, and the task sets it comes from.

A task set is one generator function and its name in SETS; `load` cuts it to the first n of the seeded order.
`toy` lives in this file, everything else is read from a data hub or from your own file when it is asked for.

Left out here: how tests are compared and programs run (grader.py, sandbox.py), what a prompt says (swarm.py).
This file imports nothing of the project, so that everything else may import it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

KINDS = ("stdio", "assert", "sql")

# What became of one test, and the letter it is kept under.
LETTERS = {
    "pass": "P",
    "wrong_answer": "W",
    "runtime_error": "R",
    "timeout": "T",
    "memory_limit": "M",
    "output_limit": "O",
    "not_run": ".",
    "no_code": "N",
    "syntax_error": "S",
    "missing_module": "I",
    "forbidden": "F",
    "bad_value": "V",
    "context_overflow": "C",
}
OUTCOMES = {letter: outcome for outcome, letter in LETTERS.items()}

CLIP = 300  # characters of an input or output that a prompt or a line of attempts.jsonl holds


def clip(text: str, start: int = 0) -> str:
    """CLIP characters of text from offset `start`, with an ellipsis where something was cut off."""
    return ("…" if start > 0 else "") + text[start : start + CLIP] + ("…" if len(text) > start + CLIP else "")


class TaskError(Exception):
    """Bad input: a task set, file or row that cannot be used. One clear line that ends with what to do."""


class Test(NamedTuple):
    """One test. stdio: stdin and the expected stdout. assert: `input` is Python whose last statement is one
    `assert`, and may begin with set-up statements for that test alone. sql: `input` is a gold query."""

    input: str
    output: str = ""
    source: str = "public"  # public | private | generated


@dataclass(frozen=True)
class Task:
    """One problem. `hidden` decides a pass; `spare` are all further tests of the set, read only on demand."""

    id: str
    title: str
    statement: str
    kind: str  # one of KINDS
    visible: tuple[Test, ...]
    hidden: tuple[Test, ...] = ()
    spare: tuple[Test, ...] = ()
    setup: str = ""  # code run after the program, before each assert
    tags: dict[str, str] = field(default_factory=dict, hash=False)
    functions: tuple[str, ...] = ()  # names that a program must define
    reference: str = ""  # a program known to be right, where there is one; never shown
    timeout: float | None = None  # CPU seconds a test; None = the grader's rule

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over everything that decides a prompt or a pass: not title, tags, spare, reference.
        `shown()` and `from_card` keep it, since a view of a task is still that task."""
        content: dict[str, Any] = {
            "statement": self.statement,
            "kind": self.kind,
            "setup": self.setup,
            "functions": self.functions,
            "visible": self.visible,
            "hidden": self.hidden,
        }
        if self.timeout is not None:
            content["timeout"] = self.timeout
        # ASCII escapes, since a statement or test may hold a lone surrogate, which has no UTF-8 form.
        return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def shown(self) -> Task:
        """All that a prompt can be made of: who writes prompts is never handed a hidden test to leak."""
        return _under_digest(replace(self, hidden=(), spare=(), reference=""), self.digest)


def _under_digest(task: Task, digest: str) -> Task:
    task.__dict__["digest"] = digest  # where cached_property looks first
    return task


def card(task: Task) -> dict[str, Any]:
    """A line of tasks.jsonl: all that a bare prompt is made of, and no hidden test."""
    return {
        "id": task.id,
        "title": task.title,
        "statement": task.statement,
        "kind": task.kind,
        "visible": [list(test) for test in task.visible],
        "setup": task.setup,
        "functions": list(task.functions),
        "tags": dict(task.tags),
        "digest": task.digest,
        "hidden_total": len(task.hidden),
    }


def from_card(row: dict[str, Any]) -> Task:
    """The task behind a line of tasks.jsonl, without its hidden tests, with the digest it was asked under."""
    task = Task(
        id=row["id"],
        title=row["title"],
        statement=row["statement"],
        kind=row["kind"],
        visible=tuple(Test(*test) for test in row["visible"]),
        setup=row["setup"],
        tags=dict(row["tags"]),
        functions=tuple(row["functions"]),
    )
    return _under_digest(task, row["digest"])


# ── toy: three tasks whose tests tell right from nearly right ───────────────────────────────────────────────
def toy(about: dict[str, Any], **_: Any) -> Iterator[Task]:
    """Three small tasks. Each has a first idea that passes some of the tests and is wrong."""
    about.update(source="toy", licence="Apache-2.0")

    def stdio(*pairs: tuple[str, str], source: str = "public") -> tuple[Test, ...]:
        return tuple(Test(stdin, stdout, source) for stdin, stdout in pairs)

    yield Task(
        id="toy-paint",
        title="Painted fence",
        kind="stdio",
        statement=(
            "A fence is painted in strokes. A stroke from a to b covers the fence between the points a and b. "
            "Fence under several strokes counts once.\n\n"
            "Input: the first line holds n, the number of strokes (0 <= n <= 1000). Each of the next n lines "
            "holds two integers a and b (-10^9 <= a, b <= 10^9), in either order.\n\n"
            "Output: one integer, the length of fence that is painted."
        ),
        visible=stdio(
            ("2\n0 3\n5 9\n", "7\n"),
            ("1\n4 4\n", "0\n"),
            ("2\n0 5\n3 8\n", "8\n"),
            ("3\n1 10\n2 3\n4 5\n", "9\n"),
            ("2\n9 2\n-4 3\n", "13\n"),
        ),
        hidden=stdio(
            ("0\n", "0\n"),
            ("3\n0 1\n1 2\n2 3\n", "3\n"),
            ("4\n7 1\n2 6\n8 9\n20 8\n", "18\n"),
            ("2\n-1000000000 1000000000\n5 -5\n", "2000000000\n"),
            ("3\n5 6\n0 10\n9 12\n", "12\n"),
            ("5\n3 1\n3 1\n-3 -1\n0 0\n10 11\n", "5\n"),
            source="private",
        ),
        reference=(
            "n = int(input())\n"
            "strokes = sorted(sorted(map(int, input().split())) for _ in range(n))\n"
            "total, end = 0, -10**10\n"
            "for a, b in strokes:\n"
            "    total += max(0, b - max(a, end))\n"
            "    end = max(end, b)\n"
            "print(total)\n"
        ),
        tags={"level": "toy"},
    )
    yield Task(
        id="toy-brackets",
        title="First bad bracket",
        kind="stdio",
        statement=(
            "A line of text holds brackets of three kinds, (), [] and {}, among other characters. Read from the "
            "left and stop at the first closing bracket that does not close the bracket opened last.\n\n"
            "Input: one line of at most 1000 characters, possibly empty.\n\n"
            "Output: the position of that closing bracket, counting from 1. If there is none, print 0 when "
            "every bracket is closed, and -1 when some bracket is still open at the end of the line."
        ),
        visible=stdio(
            ("f(x[1], {y})\n", "0\n"),
            ("())(\n", "3\n"),
            ("(a[b)c]\n", "5\n"),
            ("{[()\n", "-1\n"),
        ),
        hidden=stdio(
            ("\n", "0\n"),
            ("]\n", "1\n"),
            ("([{}]){\n", "-1\n"),
            ("({)}\n", "3\n"),
            ("no brackets here\n", "0\n"),
            ("((([[[{{{}}}]]])))\n", "0\n"),
            ("(]\n", "2\n"),
            source="private",
        ),
        reference=(
            "line = input()\n"
            "partner = {')': '(', ']': '[', '}': '{'}\n"
            "stack = []\n"
            "answer = None\n"
            "for place, c in enumerate(line, 1):\n"
            "    if c in '([{':\n"
            "        stack.append(c)\n"
            "    elif c in partner and (not stack or stack.pop() != partner[c]):\n"
            "        answer = place\n"
            "        break\n"
            "if answer is None:\n"
            "    answer = -1 if stack else 0\n"
            "print(answer)\n"
        ),
        tags={"level": "toy"},
    )
    yield Task(
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
        reference=(
            "def rotate(items, k):\n"
            "    k = k % len(items) if items else 0\n"
            "    return items[len(items) - k:] + items[:len(items) - k]\n"
            "\n\n"
            "def runs(text):\n"
            "    pairs = []\n"
            "    for c in text:\n"
            "        if pairs and pairs[-1][0] == c:\n"
            "            pairs[-1] = (c, pairs[-1][1] + 1)\n"
            "        else:\n"
            "            pairs.append((c, 1))\n"
            "    return pairs\n"
        ),
        tags={"level": "toy"},
    )


# ── load ────────────────────────────────────────────────────────────────────────────────────────────────────
SETS: dict[str, Callable[..., Iterator[Task]]] = {"toy": toy}  # yours: one function, one name


def load(
    source: str,
    limit: int | None = None,
    seed: int = 0,
    spare: bool = False,
    bundle: int = 5,
    revision: str | None = None,
    about: dict[str, Any] | None = None,
    keep_overlap: bool = False,
) -> Iterator[Task]:
    """Tasks of a set of SETS, or of your own .jsonl or .parquet file: the first `limit` of the seeded order.

    spare: also the further tests. bundle: functions a task (mbpp-bundle). revision: of a data set on the hub, None =
    the pinned one. keep_overlap: keep hidden tests whose input is also visible, as published.
    about: filled before the first task comes: source, revision, licence, tasks (in all), left_out {reason: count},
    median_rating, notes.

    Raises TaskError."""
    about = about if about is not None else {}
    about.update(
        source=source, revision=None, licence=None, tasks=0, left_out={}, median_rating=None, notes=[]
    )
    tasks = list(SETS[source](about))
    about["tasks"] = len(tasks)
    tasks.sort(key=lambda task: sha256(f"{seed}|{task.id}".encode()).digest())
    yield from tasks[:limit]
