"""Attempts as columns in the order of their slots, and what is due set against what is there. Pure.

    table = tabulate(attempts, config, cards, events, plan)
    table.plays["ring"].done                (tasks,) bool: nothing is owed
    at(table.columns.passed, rows, False)   a column's values at these rows

Rows are sorted by slot, so no figure depends on the order of the attempts.

Left out: what is kept of an attempt (gathered.py), what is told of them (measure.py), what is due (settings.py).
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from commands.settings import AS_GIVEN, CONTROL, Config, Row, Settings, shown_a_reference
from figures.audited import PASSABLE, UNAUDITED
from figures.gathered import BITS, REAL, TEXTS, WHOLE, Bools, Floats, Gathered, Ints, Texts
from swarm import Attempt
from tasksets.task import Task

# Slot-seconds of the endpoint in the events: busy, and idle by what was missing.
SLOT_SECONDS = tuple(f"{name}_slot_seconds" for name in ("busy", "retrying", "grading", "work"))
GRADINGS = ("graded", "repeated")  # programs run, and equal ones that took the verdict of an earlier one

Lines = Ints  # a program as a set: a number for each (line, how often before), equal lines equal numbers


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
    lines: LineSets  # row -> its program as a set of lines
    runs: list[tuple[str, int]]  # code of a run -> (arm, rerun)
    shown: Shown  # (task, "arm/rerun/round/particle") -> row
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


class LineSets:
    """Row -> its program's lines: one array behind all of them, since many small ones weigh far more."""

    def __init__(self, numbers: Ints, start: Ints, end: Ints) -> None:
        self._numbers, self._start, self._end = numbers, start, end

    def __getitem__(self, row: int) -> Lines:
        return self._numbers[self._start[row] : self._end[row]]


class Shown:
    """(task, "arm/rerun/round/particle") -> row, in the manner of a dict: the rows are sorted by just that."""

    def __init__(self, task: Ints, slot: Ints, names: dict[str, int]) -> None:
        self._names, self._most = names, len(names)  # names: in the order of the slots
        self._keys: list[int] = (task * self._most + slot).tolist()

    def get(self, key: tuple[int, str]) -> int | None:
        slot = self._names.get(key[1])
        if slot is None:
            return None
        wanted = key[0] * self._most + slot
        row = bisect_left(self._keys, wanted)
        return row if row < len(self._keys) and self._keys[row] == wanted else None


def tabulate(
    attempts: Iterable[Attempt] | Gathered,
    config: Config,
    cards: Iterable[Row | Task] = (),
    events: Iterable[Mapping[str, Any]] = (),
    plan: Row | None = None,
    audit: Row | None = None,
) -> Table:
    """What is due set against what is there."""
    gathered = attempts if isinstance(attempts, Gathered) else Gathered.of(attempts)
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
    names = list(gathered.runs)
    tasks = sorted(tags.keys() | gathered.tasks.keys())
    where = {task: i for i, task in enumerate(tasks)}
    of = {name: gathered.whole(name) for name in WHOLE}
    of["task"] = np.array([where[task] for task in gathered.tasks], dtype=np.int64)[of["task"]]
    place = np.empty(len(names), dtype=np.int64)  # of a run among the runs by name
    place[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    sorting = (of["task"], place[of["run"]], of["round"], of["particle"])
    order = np.lexsort(sorting[::-1])  # of equal slots the first one stays the first
    first = np.ones(len(order), dtype=bool)
    if len(order):
        first[1:] = np.logical_or.reduce([np.diff(key[order]) != 0 for key in sorting])
    duplicates, order = int((~first).sum()), order[first]
    of = {name: column[order] for name, column in of.items()}
    words = {"outcome": gathered.outcomes, "signature": gathered.signatures}
    kept = {
        **{name: of[name] for name in ("task", "run", "round", "particle")},
        **{name: gathered.equal(name)[order] for name in TEXTS},
        **{name: gathered.bits(name)[order] for name in BITS},
        **{name: gathered.real(name)[order] for name in REAL},
        **{name: known.all(of[name]) for name, known in words.items()},
        **{name: gathered.shown.all(of[name]) for name in ("parent", "social")},
    }
    columns = Columns._make(kept[name] for name in Columns._fields)
    rounds, particles = (int(column.max(initial=0)) + 1 for column in (columns.round, columns.particle))
    codes = (place[columns.run] * rounds + columns.round) * particles + columns.particle
    some, slot = np.unique(codes, return_inverse=True)
    by_place = [names[run] for run in np.argsort(place).tolist()]
    texts = {
        "{}/{}/{}/{}".format(*by_place[code // particles // rounds], code // particles % rounds, code % particles): i
        for i, code in enumerate(some.tolist())
    }
    counted, seconds = _events(events)
    if seconds is None and len(order) and columns.time.min() > 0:
        seconds = float(columns.time.max() - columns.time.min())
    return Table(
        config=config,
        plan=plan,
        events=counted,
        seconds=seconds,
        tags=tags,
        tasks=tasks,
        columns=columns,
        lines=LineSets(np.frombuffer(gathered.lines, dtype=np.int64), of["start"], of["end"]),
        runs=names,
        shown=Shown(columns.task, slot, texts),
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
