"""A run that goes on, in figures: how far it is, how fast, what is left, what each arm has rescued so far. Pure.

    seen = Seen()                       then each line once, as it is read: seen.attempt(...), seen.event(...)
    now = underway(seen)                its figures at this moment, once there is a config.json

Rescues, tokens and what is owed are those of results.json, by the same table; the clock is the folder's own, the latest
time that any line holds, so that a machine whose clock is off reads the same.

Left out: reading the folder (commands/watch.py), words (telling/underway.py).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from commands.settings import Config, Row, Settings
from figures.audited import PASSABLE
from figures.compared import is_late
from figures.counted import incomplete, unfinished
from figures.regraded import graded
from figures.results import Watch
from figures.table import Floats, Play, Table, tabulate
from figures.watched import watched
from swarm import Attempt, Slot

WINDOW = 300.0  # seconds over which the speed is taken
TROUBLES = ("retry", "refused", "fault", "declined")


@dataclass
class Start:
    """One start of a command, as its events tell it."""

    began: float = 0.0  # seconds since 1970
    code: int | None = None  # it ended with; None while it has not
    probed: bool = False
    waits: str = ""  # what it waits for before the first draw
    first: float | None = None  # seconds since 1970, of the first request
    answer: float | None = None  # of the last answer
    trouble: str = ""  # what went wrong last, and nothing was answered since
    checks: int = 0  # saved programs run again
    counts: Counter[str] = field(default_factory=Counter)  # events by name

    @property
    def open(self) -> int:
        """Requests that are at the server."""
        return self.counts["sent"] - self.counts["answered"] - sum(self.counts[name] for name in TROUBLES[:3])


class Seen:
    """What was read of a folder so far. Of an attempt nothing of its texts is kept, but for a regrade its program."""

    def __init__(self) -> None:
        self.config: Config | None = None  # None: it is not written yet, and attempts have to wait for it
        self.plan: Row | None = None
        self.audit: Row | None = None
        self.regraded = False
        self.attempts: dict[Slot, Attempt] = {}
        self.cards: dict[str, Row] = {}
        self.checks: list[Row] = []
        self.start: Start | None = None  # the last one
        self.asking: Start | None = None  # the last one that sent a request
        self.counts: Counter[str] = Counter()  # events by name, of all starts
        self.clock = 0.0  # seconds since 1970: the latest that a line holds

    def settle(self, config: Config, plan: Row | None = None, audit: Row | None = None) -> None:
        """Before the first attempt; again where the plan has grown."""
        self.config, self.plan, self.audit = config, plan, audit
        self.regraded = (config.get("grades") or "attempts") != "attempts"

    def attempt(self, a: Attempt) -> None:
        code = a.code if self.regraded or a.code is None else ""
        lean = replace(a, reply="", reasoning="", got="", prompt_sha="", task_sha="", code=code)
        self.attempts.setdefault(a.slot, lean)
        self.clock = max(self.clock, a.time)

    def card(self, row: Row) -> None:
        kept = ("id", "digest", "tags", "title")
        self.cards.setdefault(str(row["id"]), {"tags": {}, **{key: row[key] for key in kept if key in row}})

    def check(self, row: Row) -> None:
        if self.regraded:
            self.checks.append(row)
        if self.start:
            self.start.checks += 1

    def event(self, row: Row) -> None:
        name, time = str(row["event"]), float(row.get("time") or 0.0)
        self.clock = max(self.clock, time)
        self.counts[name] += 1
        if name == "start":
            self.start = Start(time)
        start = self.start = self.start or Start(time)
        start.counts[name] += 1
        if name == "end":
            start.code = int(row.get("code") or 0)
        elif name == "probe":
            start.probed, start.waits = True, ""
        elif name == "waiting":
            start.waits = str(row.get("error") or "")
        elif name == "sent":
            self.asking = start
            start.probed, start.first = True, start.first or time
        elif name == "answered":
            start.answer, start.trouble = time, ""
        elif name in TROUBLES:
            start.trouble = str(row.get("error") or "")


class SoFar(NamedTuple):
    """One run of an arm."""

    finished: int  # tasks on which it owes nothing
    rescued: int  # of those


@dataclass(frozen=True)
class Underway:
    """The figures of one moment."""

    attempts: int
    most: int  # attempts at most, those that are there included
    pace: float | None  # attempts a second over the last WINDOW seconds at most; None before the second one
    over: float  # seconds that it was taken over
    prompt_tokens: int
    completion_tokens: int
    asked: int  # tasks
    whole: int  # tasks that have their whole base group
    all_fail: int
    given: int  # tasks given to the arms
    arms: dict[str, SoFar]
    reruns: list[SoFar]  # of the control
    watched: Watch
    owes: bool  # whether the base group or an arm owes an attempt
    is_late: bool  # whether the plan has no verdict: something is owed, by another shard too
    stops: bool  # whether an arm stops at its first pass

    @property
    def left(self) -> float | None:
        """Seconds at most, at this speed; None where it is not known."""
        return (self.most - self.attempts) / self.pace if self.pace else None


def underway(seen: Seen) -> Underway:
    """All of them, by one walk over the attempts. ValueError before there is a config.json."""
    if seen.config is None:
        raise ValueError("of a run without settings there are no figures")
    attempts = graded(seen.attempts.values(), seen.checks, seen.config)
    table = tabulate(attempts, seen.config, seen.cards.values(), plan=seen.plan, audit=seen.audit)
    due, c = Settings.of(seen.config), table.columns
    shard = seen.config.get("shard")  # of a run in parts its own tasks alone
    planned = shard["tasks"] if shard else (seen.config.get("data") or {}).get("asked") or 0
    asked = max(planned, len(table.tasks))
    pace, over = _pace(seen, c.time)
    return Underway(
        attempts=len(seen.attempts),
        most=len(seen.attempts) + _owed(table, due, asked),
        pace=pace,
        over=over,
        prompt_tokens=int(np.nansum(c.prompt_tokens)),
        completion_tokens=int(np.nansum(c.completion_tokens)),
        asked=asked,
        whole=int(table.base.done.sum()),
        all_fail=int(table.all_fail.sum()),
        given=int(table.given.sum()),
        arms={arm: _so_far(table, play) for arm, play in table.plays.items()},
        reruns=[_so_far(table, play) for play in table.reruns],
        watched=watched(table),
        owes=unfinished(incomplete(table)) or len(table.tasks) < asked,
        is_late=is_late(table),
        stops=not due.full_budget,
    )


def _so_far(table: Table, play: Play) -> SoFar:
    use = table.given & play.done
    return SoFar(int(use.sum()), int(play.rescued[use].sum()))


def _pace(seen: Seen, times: Floats) -> tuple[float | None, float]:
    """Attempts a second until the folder's clock, and the seconds: of the last start, and of it the last minutes."""
    first = seen.start.first if seen.start else None
    if first is None:
        return None, 0.0
    since = max(first, seen.clock - WINDOW)
    made, over = int((times > since).sum()), seen.clock - since
    return (made / over if made and over > 0 else None), over


def _owed(table: Table, due: Settings, asked: int) -> int:
    """Attempts that are left at most, as if every task whose base group is not whole were given to the arms."""
    plays = [*table.plays.values(), *table.reruns]
    owed = np.array([play.owed for play in plays]).reshape(len(plays), len(table.tasks))
    if due.share_round0:  # one round 0 for all arms: what it lacks is owed once
        own = owed[: len(table.plays)]
        lacking = due.particles - table.plays[due.arms[0]].drawn[:, 0]
        owed[: len(table.plays)] = np.where((own > 0) & (np.cumsum(own > 0, axis=0) > 1), own - lacking, own)
    open_ = ~(table.base.done | table.base.refused)
    unseen = may_be_given = asked - len(table.tasks)  # tasks that have no attempt yet, and no card
    if due.only_passable:
        passable = table.verdicts == PASSABLE
        audited = (table.config["data"].get("audit") or {}).get(PASSABLE, 0)
        open_, may_be_given = open_ & passable, min(unseen, max(0, audited - int(passable.sum())))
    shared = due.particles * (len(due.arms) - 1) if due.share_round0 else 0
    a_task = len(plays) * due.particles * due.rounds - shared
    in_arms = int(owed[:, table.given | open_].sum()) + may_be_given * a_task
    return int(table.base.owed.sum()) + unseen * due.base_samples + in_arms
