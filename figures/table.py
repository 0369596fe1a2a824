"""Attempts as columns: one walk over them, and what is due set against what is there. Pure.

    table = tabulate(attempts, config, cards, events, plan)
    table.plays["ring"].done                (tasks,) bool: nothing is owed
    at(table.columns.passed, rows, False)   a column's values at these rows

Nothing of a reply or a program is kept but numbers that say which are equal: 25,000 attempts are some 20 MB. Rows are
sorted by slot, so no figure depends on the order in which attempts were made.

Left out: what is told of them (measure.py), what is due (settings.py), the folder they come from (records.py).
"""

from __future__ import annotations

import copy
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from commands.settings import AS_GIVEN, CONTROL, Config, Row, Settings, shown_a_reference
from figures.audited import PASSABLE, UNAUDITED
from grading.reasoning import ENDS, OPENS
from swarm import Attempt, same_program
from tasksets.task import Task

# Slot-seconds of the endpoint in the events: busy, and idle by what was missing.
SLOT_SECONDS = tuple(f"{name}_slot_seconds" for name in ("busy", "retrying", "grading", "work"))
GRADINGS = ("graded", "repeated")  # programs run, and equal ones that took the verdict of an earlier one

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Texts = NDArray[np.object_]
Lines: TypeAlias = "array[int]"  # numbers of a program's (line, how often before) within its task


class Columns(NamedTuple):
    """The attempts turned round: an array for each thing that is kept of them, an entry an attempt."""

    task: Ints
    run: Ints  # code of the arm and its re-run
    round: Ints
    particle: Ints
    passed: Bools
    outcome: Texts
    fitness: Floats
    shown: Bools  # passes every visible test
    hidden: Floats  # share of the hidden tests passed; nan where they were not run
    half: Bools  # at least half of the visible tests
    signature: Texts  # a letter a visible test
    program: Ints  # equal programs, equal number; -1 without a program
    reply: Ints
    prompt: Ints
    truncated: Bools
    thinking: Bools  # cut before its answer began
    empty: Bools
    prompt_tokens: Floats  # nan = unknown
    completion_tokens: Floats
    cpu_seconds: Floats
    latency_seconds: Floats
    time: Floats
    parent: Texts  # None: the bare prompt
    social: Texts


Kind = TypeVar("Kind", bound=np.generic)


def at(column: NDArray[Kind], row: Ints, missing: float) -> NDArray[Kind]:
    """The column's values at these rows, `missing` where there is no attempt."""
    if not len(column):
        return np.full(row.shape, missing)
    return np.where(row >= 0, column[np.maximum(row, 0)], missing)


class Play(NamedTuple):
    """One arm's one pass over the tasks. `row` is (tasks, rounds, particles): the row in the columns, or -1."""

    row: Ints
    passes: Ints  # (tasks, rounds) programs that passed
    drawn: Ints  # (tasks, rounds) attempts there are
    done: Bools  # (tasks,) nothing is owed, and nothing of its round 0 was refused
    refused: Bools  # (tasks,) the server did not answer a prompt of round 0, so that nothing can be said
    refused_later: Ints  # (tasks,) attempts of later rounds that it did not answer: failed ones
    owed: Ints  # (tasks,) attempts owed at most; an arm that stops at its first pass may need fewer
    rescued: Bools  # (tasks,) some program passed
    first: Ints  # (tasks,) the round of the first pass; the number of rounds where there is none
    full: Bools  # (tasks,) every round was drawn, as if nothing had stopped


@dataclass
class Table:
    """All attempts as columns sorted by slot, and the settings that say which of them were due."""

    config: Config
    plan: Row | None
    events: Counter[str]  # events by name, and "possibly_billed"; the slot-seconds of the sampling, by name
    seconds: float | None  # wall time over all processes, None = unknown
    tags: dict[str, Mapping[str, str]]  # of the tasks that have a card
    tasks: list[str]
    columns: Columns
    lines: list[Lines | None]  # row -> its program as a set of lines, None without a program
    runs: list[tuple[str, int]]  # code of a run -> (arm, rerun)
    shown: dict[tuple[int, str], int]  # (task, "arm/rerun/round/particle") -> row
    duplicates: int
    audits: dict[str, Row]  # of audit.json: what it says of each task, where it knows this very one
    is_audited: bool  # whether there is an audit at all
    made_of: dict[str, list[str]] = field(default_factory=dict)  # functions of a bundle, by task

    def __post_init__(self) -> None:
        due = Settings.of(self.config)
        self.base_samples, self.particles, self.rounds = due.base_samples, due.particles, due.rounds
        self.arms, self.others, self.full_budget, self.band = due.arms, due.others, due.full_budget, due.band
        self.controlled, self.share_round0 = CONTROL in due.arms, due.share_round0
        base = [code for code, (arm, _) in enumerate(self.runs) if arm == "base" and due.rollouts]
        self.asked: Bools = ~np.isin(self.columns.run, base)  # attempts that a request of this run was made for
        self.as_given = (due.rollouts or "").endswith(AS_GIVEN)  # of base attempts only the pass is known
        self.base = self._play("base", 0, 1, due.base_samples, stop=False)
        self.best_base = at(self.columns.fitness, self.base.row, 0.0).max(axis=(1, 2), initial=0.0)
        self.all_fail = self.base.done & ~self.base.rescued
        self.near_miss = self.all_fail & (self.best_base > 0)
        self.given = self.near_miss if self.band == "near-miss" else self.all_fail
        verdicts = [self.audits.get(task, {}).get("verdict", UNAUDITED) for task in self.tasks]
        self.verdicts: Texts = np.array(verdicts, dtype=object)
        self.only_passable = due.only_passable
        if due.only_passable:
            self.given = self.given & (self.verdicts == PASSABLE)
        stop = not due.full_budget
        self.plays = {arm: self._play(arm, 0, due.rounds, due.particles, stop, due.share_round0) for arm in due.arms}
        # An arm that is shown references is not played where there is none, and owes nothing there.
        self.hinted = [arm for arm in shown_a_reference(self.config) if arm in due.arms]
        without = set((self.config.get("data") or {}).get("without_reference", ()))
        self.without_reference: Bools = np.array([task in without for task in self.tasks], dtype=bool)
        for arm in self.hinted:
            play = self.plays[arm]
            done, owed = play.done & ~self.without_reference, np.where(self.without_reference, 0, play.owed)
            self.plays[arm] = play._replace(done=done, owed=owed)
        self.searches = [play for arm, play in self.plays.items() if arm not in self.hinted]
        again = range(1, due.noise_runs + 1) if self.controlled else ()
        self.reruns = [self._play(CONTROL, k, due.rounds, due.particles, stop) for k in again]  # of the control

    def _play(self, arm: str, rerun: int, rounds: int, particles: int, stop: bool, shared: bool = False) -> Play:
        """The arm's attempts as a grid, with what it still owes by the plan."""
        row = np.full((len(self.tasks), rounds, particles), -1, dtype=np.int64)
        self._fill(row, arm, rerun)
        if shared:  # a re-run is there to differ: it draws its own round 0
            row[:, 0] = -1
            self._fill(row[:, :1], "round0", 0)
        passes = at(self.columns.passed, row, False).sum(axis=2)
        drawn = (row >= 0).sum(axis=2)
        hit = passes > 0
        whole = np.cumprod(drawn == particles, axis=1).astype(bool)  # rounds complete up to here
        finished = whole[:, -1] | ((whole & hit).any(axis=1) & stop)
        # Round 0 is asked whole, whatever passes. A later round is asked where nothing has passed yet, so to leave out
        # what is refused there would leave out failures alone.
        unanswered = at(self.columns.outcome == "refused", row, False).astype(bool)
        refused: Bools = np.logical_or.reduce(unanswered[:, :1], axis=(1, 2))
        return Play(
            row,
            passes,
            drawn,
            done=finished & ~refused,
            refused=refused,
            refused_later=unanswered[:, 1:].sum(axis=(1, 2)),
            owed=np.where(finished, 0, (particles - drawn).sum(axis=1)),
            rescued=hit.any(axis=1),
            first=np.where(hit.any(axis=1), hit.argmax(axis=1), rounds),
            full=(drawn == particles).all(axis=1),
        )

    def _fill(self, row: Ints, arm: str, rerun: int) -> None:
        if (arm, rerun) not in self.runs:
            return
        c = self.columns
        here = np.flatnonzero(
            (c.run == self.runs.index((arm, rerun))) & (c.round < row.shape[1]) & (c.particle < row.shape[2])
        )
        row[c.task[here], c.round[here], c.particle[here]] = here

    def among(self, mask: Bools) -> Table:
        """The same run, as if only these tasks had been all-fail."""
        part = copy.copy(self)
        part.all_fail, part.near_miss, part.given = self.all_fail & mask, self.near_miss & mask, self.given & mask
        return part

    # who is compared with whom
    @property
    def control(self) -> Play | None:
        return self.plays.get(CONTROL)

    def finished(self, arm: str) -> Bools:
        """(tasks,) bool: tasks given to the arms on which this one owes nothing, and was refused nothing in round 0."""
        return self.given & self.plays[arm].done

    def both(self, arm: str) -> Bools:
        """(tasks,) bool: tasks given to the arms on which neither this arm nor the control owes anything."""
        return self.finished(arm) & self.plays[CONTROL].done

    def ran_full(self, arm: str) -> bool:
        """Whether the arm drew every round on every finished task, by the plan or because nothing stopped it."""
        return bool(self.plays[arm].full[self.finished(arm)].all())

    def rescues(self, arm: str) -> tuple[Floats, Floats]:
        """0/1 rescues of the control and of the arm, on the tasks where neither owes anything."""
        both = self.both(arm)
        return self.plays[CONTROL].rescued[both].astype(float), self.plays[arm].rescued[both].astype(float)

    @property
    def control_runs(self) -> list[Play]:
        """The control and its noise runs, in order; none without a control."""
        return [self.plays[CONTROL], *self.reruns] if self.controlled else []

    def rescues_of_runs(self) -> tuple[Bools, Floats]:
        """The tasks that every run of the control has finished, and their rescues (runs, tasks); no run without one."""
        use = np.logical_and.reduce([self.given, *(play.done for play in self.control_runs)])
        return use, np.array([play.rescued[use] for play in self.control_runs], dtype=float)


class _Row(NamedTuple):
    """An attempt as `Columns` will hold it. Texts are gone by here: equal texts have equal numbers."""

    task: str
    run: int
    round: int
    particle: int
    passed: bool
    outcome: str
    fitness: float
    shown: bool
    hidden: float
    half: bool
    signature: str
    program: int
    reply: int
    prompt: int
    truncated: bool
    thinking: bool
    empty: bool
    prompt_tokens: float
    completion_tokens: float
    cpu_seconds: float
    latency_seconds: float
    time: float
    parent: str | None
    social: str | None


def _number(seen: dict[bytes, int], text: str) -> int:
    return seen.setdefault(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest(), len(seen))


def _line_numbers(seen: dict[str | tuple[str, int], int], program: str) -> Lines:
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
    config: Config,
    cards: Iterable[Row | Task] = (),
    events: Iterable[Mapping[str, Any]] = (),
    plan: Row | None = None,
    audit: Row | None = None,
) -> Table:
    """One walk over the attempts; nothing of a reply or a program is kept but numbers that say which are equal."""
    rows: dict[tuple[str, int, int, int], tuple[_Row, Lines | None]] = {}
    runs: dict[tuple[str, int], int] = {}
    replies: dict[bytes, int] = {}
    programs: dict[bytes, int] = {}
    prompts: dict[str, int] = {}
    texts: defaultdict[str, dict[str | tuple[str, int], int]] = defaultdict(dict)  # a task each: small ones are faster
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

    tags: dict[str, Mapping[str, str]] = {}
    audits = dict(audit["by_task"]) if audit else {}
    made_of: dict[str, list[str]] = {}
    bundled = config["identity"]["tasks"] == "mbpp-bundle"
    for card in cards:
        name, digest = (card.id, card.digest) if isinstance(card, Task) else (str(card["id"]), card.get("digest"))
        tags[name] = card.tags if isinstance(card, Task) else card["tags"]
        if name in audits and digest not in (audits[name]["digest"], None):
            del audits[name]  # of another task of that name
        title = card.title if isinstance(card, Task) else card.get("title")
        if bundled and title and title.startswith("MBPP "):
            made_of[name] = title.removeprefix("MBPP ").split(", ")
    names = list(runs)
    order = sorted(rows, key=lambda key: (key[0], names[key[1]], key[2], key[3]))
    tasks = sorted(tags.keys() | {key[0] for key in order})
    where = {task: i for i, task in enumerate(tasks)}
    kept = [rows[key][0] for key in order]
    values = dict(zip(_Row._fields, zip(*kept, strict=True), strict=True)) if kept else dict.fromkeys(_Row._fields, ())
    kinds: dict[str, type] = {
        **dict.fromkeys(("run", "round", "particle", "program", "reply", "prompt"), np.int64),
        **dict.fromkeys(("passed", "shown", "half", "truncated", "thinking", "empty"), bool),
        **dict.fromkeys(("fitness", "hidden", "prompt_tokens", "completion_tokens"), float),
        **dict.fromkeys(("cpu_seconds", "latency_seconds", "time"), float),
        **dict.fromkeys(("outcome", "signature", "parent", "social"), object),
    }
    columns = Columns(
        task=np.array([where[task] for task in values["task"]], dtype=np.int64),
        **{name: np.array(values[name], dtype=kind) for name, kind in kinds.items()},
    )
    shown_slots = {
        (where[row.task], "{}/{}/{}/{}".format(*names[row.run], row.round, row.particle)): i
        for i, row in enumerate(kept)
    }
    counted, seconds = _events(events)
    if seconds is None and len(kept) and columns.time.min() > 0:
        seconds = float(columns.time.max() - columns.time.min())
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
        audits=audits,
        is_audited=audit is not None,
        made_of=made_of,
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
