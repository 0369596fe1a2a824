"""Attempts as columns: one walk over them, and what is due set against what is there. Pure.

    table = tabulate(attempts, config, cards, events, plan)
    table.play("ring").done         (tasks,) bool: nothing is owed
    table.of("passed", rows, False) a column's values at these rows

Nothing of a reply or a program is kept but numbers that say which are equal: 25,000 attempts are some 20 MB. Rows are
sorted by slot, so no figure depends on the order in which attempts were made.

Left out: what is told of them (measure.py), which of them are due (plan.py), the folder they come from (records.py).
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from figures.plan import CONTROL, Settings
from grading.reasoning import ENDS, OPENS
from swarm import Attempt, same_program
from tasksets.task import Task

# Slot-seconds of the endpoint in the events: busy, and idle by what was missing.
SLOT_SECONDS = tuple(f"{name}_slot_seconds" for name in ("busy", "retrying", "grading", "work"))
GRADINGS = ("graded", "repeated")  # programs run, and equal ones that took the verdict of an earlier one
Columns = dict[str, Any]  # name -> array, one entry an attempt


@dataclass(frozen=True)
class Play:
    """One arm's one pass over the tasks. `row` is (tasks, rounds, particles): the row in the columns, or -1."""

    row: Any
    passes: Any  # (tasks, rounds) programs that passed
    drawn: Any  # (tasks, rounds) attempts there are
    done: Any  # (tasks,) nothing is owed
    owed: Any  # (tasks,) attempts owed at most; an arm that stops at its first pass may need fewer

    @property
    def rescued(self) -> Any:
        """(tasks,) bool: some program passed."""
        return self.passes.any(axis=1)

    @property
    def first(self) -> Any:
        """(tasks,) the round of the first pass; the number of rounds where there is none."""
        hit = self.passes > 0
        return np.where(hit.any(axis=1), hit.argmax(axis=1), hit.shape[1])

    @property
    def full(self) -> Any:
        """(tasks,) bool: every round was drawn, as if nothing had stopped."""
        return (self.drawn == self.row.shape[2]).all(axis=1)


@dataclass
class Table:
    """All attempts as columns sorted by slot, and the settings that say which of them were due."""

    config: Mapping[str, Any]
    plan: Mapping[str, Any] | None
    events: Counter[str]  # events by name, and "possibly_billed"; the slot-seconds of the sampling, by name
    seconds: float | None  # wall time over all processes, None = unknown
    tags: dict[str, Mapping[str, str]]  # of the tasks that have a card
    tasks: list[str]
    columns: Columns
    lines: list[Any]  # row -> numbers of the program's (line, how often before) within its task, None without a program
    runs: list[tuple[str, int]]  # code of a run -> (arm, rerun)
    shown: dict[tuple[int, str], int]  # (task, "arm/rerun/round/particle") -> row
    duplicates: int
    _plays: dict[tuple[str, int], Play] = field(default_factory=dict)

    def __post_init__(self) -> None:
        due = Settings.of(self.config)
        self.base_samples, self.particles, self.rounds = due.base_samples, due.particles, due.rounds
        self.arms, self.others, self.noise_runs = due.arms, due.others, due.noise_runs
        self.full_budget, self.band, self.shared = due.full_budget, due.band, due.shared
        base = self.base
        best = self.of("fitness", base.row, 0.0).max(axis=(1, 2), initial=0.0)
        self.all_fail = base.done & ~base.rescued
        self.near_miss = self.all_fail & (best > 0)
        self.given = self.near_miss if self.band == "near-miss" else self.all_fail
        self.best_base = best

    def of(self, name: str, row: Any, missing: Any) -> Any:
        """The column's values at these rows, `missing` where there is no attempt."""
        column = self.columns[name]
        if not len(column):
            return np.full(row.shape, missing)
        return np.where(row >= 0, column[np.maximum(row, 0)], missing)

    @property
    def base(self) -> Play:
        return self.play("base", 0, rounds=1, particles=self.base_samples, stop=False)

    def play(self, arm: str, rerun: int = 0, rounds: int = 0, particles: int = 0, stop: bool | None = None) -> Play:
        """The arm's attempts as a grid, with what it still owes by the plan."""
        if (arm, rerun) in self._plays:
            return self._plays[arm, rerun]
        rounds, particles = rounds or self.rounds, particles or self.particles
        stop = not self.full_budget if stop is None else stop
        row = np.full((len(self.tasks), rounds, particles), -1, dtype=np.int64)
        self._fill(row, arm, rerun)
        if self.shared and arm != "base" and not rerun:  # a re-run is there to differ: it draws its own round 0
            row[:, 0] = -1
            self._fill(row[:, :1], "round0", 0)
        passes = self.of("passed", row, False).sum(axis=2)
        drawn = (row >= 0).sum(axis=2)
        whole = np.cumprod(drawn == particles, axis=1).astype(bool)  # rounds complete up to here
        done = whole[:, -1] | ((whole & (passes > 0)).any(axis=1) & stop)
        owed = np.where(done, 0, (particles - drawn).sum(axis=1))
        play = Play(row, passes, drawn, done, owed)
        self._plays[arm, rerun] = play
        return play

    def _fill(self, row: Any, arm: str, rerun: int) -> None:
        if (arm, rerun) not in self.runs:
            return
        c = self.columns
        here = np.flatnonzero(
            (c["run"] == self.runs.index((arm, rerun))) & (c["round"] < row.shape[1]) & (c["particle"] < row.shape[2])
        )
        row[c["task"][here], c["round"][here], c["particle"][here]] = here

    # who is compared with whom
    def both(self, arm: str) -> Any:
        """(tasks,) bool: tasks given to the arms on which neither this arm nor the control owes anything."""
        return self.given & self.play(arm).done & self.play(CONTROL).done

    @property
    def reruns(self) -> list[Play]:
        """The control and its noise runs, in order."""
        return [self.play(CONTROL, k) for k in range(self.noise_runs + 1)] if CONTROL in self.arms else []


class _Row(NamedTuple):
    """What is kept of an attempt. Texts are gone by here: equal texts have equal numbers."""

    task: str
    run: int
    round: int
    particle: int
    passed: bool
    outcome: str
    fitness: float
    shown: bool  # passes every visible test
    hidden: float  # share of the hidden tests passed; nan where they were not run
    half: bool  # at least half of the visible tests
    signature: str  # a letter a visible test
    program: int  # equal programs, equal number; -1 without a program
    reply: int
    prompt: int
    truncated: bool
    thinking: bool  # cut before its answer began
    empty: bool
    prompt_tokens: float  # nan = unknown
    completion_tokens: float
    cpu_seconds: float
    latency_seconds: float
    time: float
    parent: str | None
    social: str | None


def _number(seen: dict[bytes, int], text: str) -> int:
    return seen.setdefault(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest(), len(seen))


def _line_numbers(seen: dict[Any, int], program: str) -> Any:
    """A program as a set: its stripped lines, the k-th occurrence of a line apart from the first."""
    lines = [line for line in map(str.strip, program.split("\n")) if line]
    times = Counter(lines)
    numbers = [seen.setdefault(line, len(seen)) for line in times]
    if len(times) < len(lines):
        again = [(line, k) for line, count in times.items() if count > 1 for k in range(1, count)]
        numbers += [seen.setdefault(key, len(seen)) for key in again]
    return array("q", numbers)


def tabulate(
    attempts: Iterable[Attempt],
    config: Mapping[str, Any],
    cards: Iterable[Mapping[str, Any] | Task] = (),
    events: Iterable[Mapping[str, Any]] = (),
    plan: Mapping[str, Any] | None = None,
) -> Table:
    """One walk over the attempts; nothing of a reply or a program is kept but numbers that say which are equal."""
    rows: dict[tuple[str, int, int, int], tuple[_Row, Any]] = {}
    runs: dict[tuple[str, int], int] = {}
    replies: dict[bytes, int] = {}
    programs: dict[bytes, int] = {}
    prompts: dict[str, int] = {}
    texts: defaultdict[str, dict[Any, int]] = defaultdict(dict)  # a task each: small ones are faster
    duplicates = 0
    for a in attempts:
        run = runs.setdefault((a.arm, a.rerun), len(runs))
        key = (a.task_id, run, a.round, a.particle)
        if key in rows:
            duplicates += 1
            continue
        text = None if a.code is None else same_program(a.code)
        shown = text is not None and a.visible_passed == a.visible_total
        empty = not a.reply.strip()
        truncated = a.finish_reason == "length"
        rows[key] = (
            _Row(
                task=a.task_id,
                run=run,
                round=a.round,
                particle=a.particle,
                passed=bool(a.passed),
                outcome=a.outcome,
                fitness=a.fitness,
                shown=shown,
                hidden=a.hidden_passed / a.hidden_total if shown and a.hidden_total else math.nan,
                half=2 * a.visible_passed >= a.visible_total > 0,
                signature=a.visible_tests,
                program=-1 if text is None else _number(programs, text),
                reply=_number(replies, a.reply),
                prompt=prompts.setdefault(a.prompt_sha, len(prompts)),
                truncated=truncated,
                thinking=truncated
                and ((empty and bool(a.reasoning)) or bool(OPENS.search(a.reply) and not ENDS.search(a.reply))),
                empty=empty,
                prompt_tokens=math.nan if a.prompt_tokens is None else a.prompt_tokens,
                completion_tokens=math.nan if a.completion_tokens is None else a.completion_tokens,
                cpu_seconds=a.cpu_seconds,
                latency_seconds=a.latency_seconds,
                time=a.time,
                parent=a.parent,
                social=a.social,
            ),
            # The re-runs and the base group are not compared text by text.
            _line_numbers(texts[a.task_id], text) if text is not None and a.arm != "base" and a.rerun == 0 else None,
        )
    del texts, replies, programs

    tags = {
        card.id if isinstance(card, Task) else str(card["id"]): card.tags if isinstance(card, Task) else card["tags"]
        for card in cards
    }
    names = list(runs)
    order = sorted(rows, key=lambda key: (key[0], names[key[1]], key[2], key[3]))
    tasks = sorted(tags.keys() | {key[0] for key in order})
    where = {task: i for i, task in enumerate(tasks)}
    kept = [rows[key][0] for key in order]
    values = dict(zip(_Row._fields, zip(*kept, strict=True), strict=True)) if kept else dict.fromkeys(_Row._fields, ())
    columns: Columns = {
        name: np.array(values[name], dtype=dtype)
        for name, dtype in {
            **dict.fromkeys(("run", "round", "particle", "program", "reply", "prompt"), np.int64),
            **dict.fromkeys(("passed", "shown", "half", "truncated", "thinking", "empty"), bool),
            **dict.fromkeys(("fitness", "hidden", "prompt_tokens", "completion_tokens"), float),
            **dict.fromkeys(("cpu_seconds", "latency_seconds", "time"), float),
            **dict.fromkeys(("outcome", "signature", "parent", "social"), object),
        }.items()
    }
    columns["task"] = np.array([where[task] for task in values["task"]], dtype=np.int64)
    shown_slots = {
        (where[row.task], "{}/{}/{}/{}".format(*names[row.run], row.round, row.particle)): i
        for i, row in enumerate(kept)
    }
    counted, seconds = _events(events)
    if seconds is None and len(kept) and columns["time"].min() > 0:
        seconds = float(columns["time"].max() - columns["time"].min())
    return Table(
        config=config,
        plan=plan,
        events=counted,
        seconds=seconds,
        tags=tags,
        tasks=tasks,
        columns=columns,
        lines=[rows[key][1] for key in order],
        runs=names,
        shown=shown_slots,
        duplicates=duplicates,
    )


def _events(events: Iterable[Mapping[str, Any]]) -> tuple[Counter[str], float | None]:
    """Events by name, and the wall seconds of all processes that asked: from a start to the last word before the next.

    A killed process counts up to its last word; one that asked nothing (a regrade, a calibration) does not count.
    """
    counted: Counter[str] = Counter()
    spans: list[list[float]] = []
    asked: list[bool] = []
    for event in events:
        name = str(event.get("event"))
        counted[name] += 1
        counted["possibly_billed"] += bool(event.get("possibly_billed"))
        if name == "slots":
            counted.update({key: event.get(key) or 0.0 for key in SLOT_SECONDS})
        elif name == "grader":
            counted.update({key: event[key] for key in GRADINGS})
        time = float(event.get("time") or 0.0)
        if name == "start":
            spans.append([time, time])
            asked.append(False)
        elif spans:
            spans[-1][1] = max(spans[-1][1], time)
            asked[-1] = asked[-1] or name in ("sent", "answered", "retry")
    if not spans:
        return counted, None
    return counted, sum(last - first for (first, last), sent in zip(spans, asked, strict=True) if sent)
