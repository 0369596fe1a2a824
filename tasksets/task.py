"""What a task is: a statement, tests that may be shown, tests that decide, and all the rest.

    Test, Task          one test; one problem
    card, from_card     a line of tasks.jsonl, and the task behind it
    Options             what a task set may be asked for
    About               what it says of itself
    unseen, seeded      hidden tests that no prompt shows, the order of a seed

Needs nothing of the project, so that everything else may import it. Left out: where tasks come from (tasks.py).
"""

from __future__ import annotations

import ast
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

KINDS = ("stdio", "assert", "sql")
SECONDS = (0.01, 86_400.0)  # least and most CPU seconds that a test may be given: a clock tick, a day


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
    prelude: str = ""  # Python that runs before the program, in its namespace; the model is shown it
    references: tuple[str, ...] = ()  # programs known to be right, `reference` the first; for an audit alone
    incorrect: tuple[str, ...] = ()  # programs known to be wrong; for an audit alone

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over everything that decides a prompt or a pass: not title, tags, spare, known programs.
        `shown()` and `from_card` keep it, since a view of a task is still that task."""
        content: dict[str, object] = {
            "statement": self.statement,
            "kind": self.kind,
            "setup": self.setup,
            "functions": self.functions,
            "visible": self.visible,
            "hidden": self.hidden,
        }
        if self.timeout is not None:
            content["timeout"] = self.timeout
        if self.prelude:
            content["prelude"] = self.prelude
        # ASCII escapes, since a statement or test may hold a lone surrogate, which has no UTF-8 form.
        return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def shown(self, needs: Iterable[str] = ()) -> Task:
        """All that a prompt can be made of: who writes prompts is never handed a hidden test to leak. needs: reference,
        for an arm that is shown one."""
        known = self.reference if "reference" in needs else ""
        view = replace(self, hidden=(), spare=(), reference=known, references=(), incorrect=())
        return _under_digest(view, self.digest)


def _under_digest(task: Task, digest: str) -> Task:
    task.__dict__["digest"] = digest  # where cached_property looks first
    return task


def card(task: Task) -> dict[str, Any]:
    """A line of tasks.jsonl: all that a bare prompt is made of, and no hidden test."""
    prelude = {"prelude": task.prelude} if task.prelude else {}
    return {
        "id": task.id,
        "title": task.title,
        "statement": task.statement,
        **prelude,
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
        prelude=row.get("prelude", ""),
    )
    return _under_digest(task, row["digest"])


@dataclass(frozen=True)
class Options:
    """What a task set may be asked for; a set reads what concerns it."""

    seed: int = 0  # of the order of tasks, and of which functions share a bundle
    spare: bool = False  # also the spare tests, and a reference program where the data has one
    bundle: int = 5  # functions a task, for mbpp-bundle
    revision: str | None = None  # of a data set on a hub; None = the pinned one
    keep_overlap: bool = False  # keep hidden tests whose input is also visible, as published
    splits: tuple[str, ...] = ()  # of a data set on a hub, by its own names; none: those of the published run
    references: int = 0  # programs a task known to be right, at most, and as many known to be wrong


@dataclass
class About:
    """What is known of a task set, filled while it is read."""

    source: str
    revision: str | None = None  # of a data set on a hub: the commit
    licence: str | None = None
    tasks: int = 0  # in all
    left_out: Counter[str] = field(default_factory=Counter)  # by reason
    notes: list[str] = field(default_factory=list)  # lines for the log
    overlap: dict[str, int] = field(default_factory=lambda: {"tests": 0, "tasks": 0})  # dropped, being visible too
    repaired_statements: int = 0
    median_rating: float | None = None
    without_reference: list[str] = field(default_factory=list)  # of the tasks that were asked for, where any was wanted

    def row(self) -> dict[str, Any]:
        """As config.json holds it under "data"."""
        return vars(self) | {"left_out": dict(self.left_out)}


# ── what task sets share ─────────────────────────────────────────────────────────────────────────────────────────────


def _spelled(test: Test) -> str:
    program = None if test.output else parse(test.input)
    return ast.dump(program) if program else test.input.strip()


def unseen(visible: tuple[Test, ...], hidden: tuple[Test, ...], options: Options, about: About) -> tuple[Test, ...]:
    """The hidden tests without those whose input is also visible: a prompt may show those with their answer.

    Blanks around an input and the spelling of an assert make no other test.
    """
    seen = {_spelled(test) for test in visible}
    apart = tuple(test for test in hidden if _spelled(test) not in seen)
    if options.keep_overlap or len(apart) == len(hidden):
        return hidden
    if apart:
        about.overlap["tests"] += len(hidden) - len(apart)
        about.overlap["tasks"] += 1
    return apart


def parse(code: str) -> ast.Module | None:
    """A program as a tree; None where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's code is not our warning
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def seeded(seed: int, name: str) -> bytes:
    """What to sort by for a seeded order that no other name and no version of Python changes."""
    return sha256(f"{seed}|{name}".encode()).digest()


def in_words(error: BaseException) -> str:
    """What an exception says, for the middle of a message."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


Reader = Callable[[Options, About], Iterator[Task]]  # a task set: yields its tasks, and fills in what is known of it
