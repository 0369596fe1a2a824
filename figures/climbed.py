"""How programs change from round to round: do they climb the shown tests, how far do they move, what were they shown.

    climb(table)["ring"]["moved"]["gap"]    the climb that the hidden tests do not follow
    anchoring(table)["ring"][2]             how alike the programs of a round are, and how alike to the first

Every function takes the table and gives the value of the key of results.json that has its name; what is in it says
results.py. Left out: rescues and rates (counted.py), the verdict on an arm (compared.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

import stats
from figures.numbers import mean, ratio
from figures.plan import CONTROL, LEVEL
from figures.results import Climb, Climbed, ClimbRound, Gained, Likeness, MeanInterval, Signal
from figures.table import Bools, Floats, Lines, Play, Table, at


def _active(table: Table, arm: str, nth: int) -> Bools:
    """(tasks,) bool: given to the arms, and every round up to this one drawn by the arm and the control alike.

    Where either of them stops at its first pass, only tasks that neither had solved before: what one arm's luck takes
    away is taken from both.
    """
    use = table.given
    sides = {arm, CONTROL} & table.plays.keys()
    full = all(table.ran_full(side) for side in sides)
    for play in (table.plays[side] for side in sides):
        use = use & play.done & (play.drawn[:, : nth + 1] == table.particles).all(axis=1)
        if not full:
            use = use & ~play.passes[:, :nth].any(axis=1)
    return use


def _together(table: Table, nth: int) -> Bools:
    """(tasks,) bool: every arm has finished the task, and drew this round of it with no pass of any arm before."""
    use = table.given
    full = all(table.ran_full(arm) for arm in table.plays)
    for play in table.plays.values():
        use = use & play.done & (play.drawn[:, : nth + 1] == table.particles).all(axis=1)
        if not full:
            use = use & ~play.passes[:, :nth].any(axis=1)
    return use


class _Round(NamedTuple):
    """A round on some tasks, a number a task: means over its programs."""

    best: Floats  # best-so-far fitness of a particle
    shown: Floats  # programs that pass every visible test
    hidden: Floats  # hidden tests passed, none for a program that fails a visible test
    whole: Floats  # programs that pass every test, hidden ones too
    programs: int  # all of the round
    shown_programs: int
    passed: int
    among: Floats  # share of hidden tests passed, of each program that passes every visible test


def _round(table: Table, play: Play, use: Bools, nth: int) -> _Round:
    row = play.row[use]
    best = at(table.columns.fitness, row[:, : nth + 1], 0.0).max(axis=1, initial=0.0)
    shown = at(table.columns.shown, row[:, nth], False)
    hidden = np.where(shown, at(table.columns.hidden, row[:, nth], math.nan), 0.0)
    return _Round(
        best.mean(axis=1),
        shown.mean(axis=1),
        np.nan_to_num(hidden).mean(axis=1),
        at(table.columns.passed, row[:, nth], False).mean(axis=1),
        int((row[:, nth] >= 0).sum()),
        int(shown.sum()),
        int(at(table.columns.passed, row[:, nth], False).sum()),
        hidden[shown & ~np.isnan(hidden)],
    )


def mean_interval(values: Floats) -> MeanInterval:
    """Mean over tasks and its bootstrap interval; none where every task says the same."""
    values = stats.settled(values, scale=1.0)  # differences of shares
    lo, hi = stats.bootstrap_ci(values, level=LEVEL)
    same = len(values) > 0 and bool(np.all(values == values[0]))
    return {"mean": mean(values), "interval": [math.nan, math.nan] if same else [lo, hi]}


def climb(table: Table) -> dict[str, Climb]:
    """Do programs climb the tests they are shown, and do the hidden tests follow.

    `moved` is the last round that still has active tasks against round 0, a number a task: the share of programs that
    pass every visible test (shown), and the mean share of hidden tests passed, nothing for a program that fails a
    visible test (hidden). A pass moves both alike, so gap = shown - hidden is the climb that the hidden tests do not
    follow. Whoever passes the visible tests passes some hidden ones as well, by heart too, so whether those follow is
    told by `passed`, programs that pass every test. `against_resample` takes the control's movement on the same tasks
    off: what the arm adds to fresh draws.
    """
    out: dict[str, Climb] = {}
    for arm, play in table.plays.items():
        control = table.control if arm != CONTROL else None
        rounds: list[ClimbRound] = []
        last = 0
        for nth in range(table.rounds):
            use = _active(table, arm, nth)
            raw = _round(table, play, table.finished(arm), nth)
            same = _together(table, nth)
            together = _round(table, play, same, nth)
            if use.any():
                last = nth
            rounds.append(
                {
                    "round": nth,
                    "programs": raw.programs,
                    "all_visible": raw.shown_programs,
                    "all_visible_share": ratio(raw.shown_programs, raw.programs),
                    "passed": raw.passed,
                    "active": {
                        "tasks": int(use.sum()),
                        "arm": _climbed(_round(table, play, use, nth)),
                        "resample": _climbed(_round(table, control, use, nth)) if control else None,
                    },
                    "together": {
                        "tasks": int(same.sum()),
                        "all_visible_share": ratio(together.shown_programs, together.programs),
                        "passed_share": ratio(together.passed, together.programs),
                    },
                }
            )
        out[arm] = {"rounds": rounds, "moved": None, "against_resample": None}
        if last:
            use = _active(table, arm, last)
            own = _movement(table, play, use, last)
            out[arm]["moved"] = {"from_round": 0, "to_round": last, "n": int(use.sum()), **_gained(*own)}
            if control:
                theirs = _movement(table, control, use, last)
                out[arm]["against_resample"] = _gained(*(mine - its for mine, its in zip(own, theirs, strict=True)))
    return out


def _climbed(this: _Round) -> Climbed:
    return {
        "best_fitness": mean(this.best),
        "shown": mean(this.shown),
        "hidden": mean(this.hidden),
        "hidden_among_shown": mean(this.among),
        "shown_programs": this.shown_programs,
    }


def _movement(table: Table, play: Play, use: Bools, last: int) -> tuple[Floats, Floats, Floats, Floats]:
    """From round 0 to the last one, a number a task: shown, hidden, how far they come apart, and every test passed."""
    start, end = _round(table, play, use, 0), _round(table, play, use, last)
    shown, hidden = end.shown - start.shown, end.hidden - start.hidden
    return shown, hidden, shown - hidden, end.whole - start.whole


def _gained(shown: Floats, hidden: Floats, gap: Floats, passed: Floats) -> Gained:
    return {
        "shown": mean_interval(shown),
        "hidden": mean_interval(hidden),
        "gap": mean_interval(gap),
        "passed": mean_interval(passed),
    }


def signal(table: Table) -> dict[str, Signal]:
    """What a refine prompt had to offer: how often the own best was at zero, and how often the other's was higher."""
    out: dict[str, Signal] = {}
    c = table.columns
    for arm, play in table.plays.items():
        rows = play.row[table.given].ravel()
        prompts = zero = paired_prompts = better = 0
        for row in rows[rows >= 0].tolist():
            task, parent, social = int(c.task[row]), c.parent[row], c.social[row]
            own = table.shown.get((task, parent)) if parent else None
            if own is None:
                continue
            prompts += 1
            zero += bool(c.fitness[own] == 0)
            other = table.shown.get((task, social)) if social else None
            if other is not None:
                paired_prompts += 1
                better += bool(c.fitness[other] > c.fitness[own])
        out[arm] = {
            "refine_prompts": prompts,
            "own_zero": zero,
            "own_zero_share": ratio(zero, prompts),
            "with_neighbour": paired_prompts,
            "neighbour_better": better,
            "neighbour_better_share": ratio(better, paired_prompts),
        }
    return out


def anchoring(table: Table) -> dict[str, list[Likeness]]:
    """How far programs move from where their particle began, and how far they lie apart from each other.

    Similarity is the Dice overlap of two programs' stripped lines as multisets: 1 for the same lines, 0 for none in
    common. Means over tasks of means over programs; attempts without a program are left out.
    """
    return {arm: _likeness(table, play) for arm, play in table.plays.items()}


def _bits(lines: Sequence[Lines]) -> list[tuple[int, int]]:
    """Programs as sets of numbered lines: each an integer with a bit for every line that it holds, and how many.

    Integers, and no product of 0/1 rows: a product wakes a library's threads, whose waiting costs more than it saves.
    """
    sizes = list(map(len, lines))
    _, place = np.unique(np.concatenate(lines) if lines else [], return_inverse=True)
    marks = np.zeros((len(lines), int(place.max(initial=-1)) + 1), dtype=np.uint8)
    marks[np.repeat(np.arange(len(lines)), sizes), place] = 1
    packed = [int.from_bytes(row) for row in map(bytes, np.packbits(marks, axis=1))]
    return list(zip(packed, sizes, strict=True))


def _mean_overlap(pairs: Iterable[tuple[tuple[int, int], tuple[int, int]]]) -> float:
    """Mean Dice overlap of pairs of programs."""
    return mean([2 * (one & other).bit_count() / (m + n) if m + n else 1.0 for (one, m), (other, n) in pairs])


class _Alike(NamedTuple):
    """A round of an arm: an entry a task with a program, but for the first two, which may lack some."""

    to_own: list[float]
    among: list[float]
    written: list[int]
    repeats: list[int]
    distinct: list[int]
    signatures: list[int]


def _likeness(table: Table, play: Play) -> list[Likeness]:
    """All rounds of an arm."""
    rounds = [_Alike([], [], [], [], [], []) for _ in range(table.rounds)]
    number, signature, lines = table.columns.program.tolist(), table.columns.signature, table.lines
    for task in np.flatnonzero(table.given):
        rows = [
            [(i, at_) for i, at_ in enumerate(row) if at_ >= 0 and number[at_] >= 0] for row in play.row[task].tolist()
        ]
        bits = iter(_bits([lines[at_] for row in rows for _, at_ in row]))
        own: dict[int, tuple[int, int]] = {}  # particle -> its program of round 0
        earlier: set[int] = set()
        for nth, (this, row) in enumerate(zip(rounds, rows, strict=True)):
            if not row:
                continue
            now = {i: next(bits) for i, _ in row}
            if not nth:
                own = now
            elif own.keys() & now.keys():
                this.to_own.append(_mean_overlap((program, own[i]) for i, program in now.items() if i in own))
            if len(now) > 1:
                this.among.append(_mean_overlap(combinations(now.values(), 2)))
            programs = [number[at_] for _, at_ in row]
            this.written.append(len(programs))
            this.repeats.append(sum(map(earlier.__contains__, programs)))
            this.distinct.append(len(set(programs)))
            this.signatures.append(len({signature[at_] for _, at_ in row}))
            earlier.update(programs)
    return [_told(nth, this) for nth, this in enumerate(rounds)]


def _told(nth: int, this: _Alike) -> Likeness:
    return {
        "round": nth,
        "tasks": len(this.distinct),
        "programs": sum(this.written),
        "to_own_first": mean(this.to_own),
        "exact_repeats": sum(this.repeats),  # programs that the arm wrote on this task in an earlier round already
        "exact_repeats_share": mean([some / every for some, every in zip(this.repeats, this.written, strict=True)]),
        "diversity": 1 - mean(this.among),
        "distinct_programs": mean(this.distinct),
        "distinct_signatures": mean(this.signatures),
    }
