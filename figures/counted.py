"""What can be counted: rescues, passes, ends of attempts, what is owed and what was paid, a section each.

    intervals(table)        the rescue rate of each arm
    cost(table)             what was paid, by stage and by arm

Every function takes the table and gives the value of the key of results.json that has its name; what is in it says
results.py. Nothing here sets one arm against another.

Left out: comparisons (compared.py), how programs change from round to round (climbed.py).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

import stats
from estimators.parts import mean_share_ci, normal_quantile
from figures.numbers import mean, ratio
from figures.plan import CONTROL, LEVEL
from figures.results import (
    ArmBill,
    Bill,
    ByTag,
    ByTask,
    Cost,
    Coverage,
    Found,
    Hinted,
    Incomplete,
    NearMiss,
    OutcomeRow,
    Owing,
    Played,
    Pooled,
    Rescues,
    Slots,
    TrainingSet,
    Unrescued,
)
from figures.table import SLOT_SECONDS, Bools, Ints, Play, Table, at
from grading.grade import LETTERS, UNANSWERED

RATING_BAND = 400  # rating points a band, in by_tag
TAG_VALUES = 12  # a tag with more values than that is told in bands, or not at all
PASS_SHARES = ("none", "under_20", "20_to_80", "over_80", "all")


def incomplete(table: Table) -> Incomplete:
    """What an interrupted run still owes and what a server refused: how many tasks stay out of each figure for it."""

    def owing(play: Play) -> Owing:
        owed = play.owed[table.given]
        refused = play.refused[table.given] & (owed == 0)
        return {"tasks": int((owed > 0).sum()), "owed_at_most": int(owed.sum()), "refused": int(refused.sum())}

    return {
        "base_tasks": int((table.base.owed > 0).sum()),
        "base_owed": int(table.base.owed.sum()),
        "base_refused": int((table.base.refused & (table.base.owed == 0)).sum()),
        "arms": {arm: owing(play) for arm, play in table.plays.items()},
        "noise_runs": [owing(play) for play in table.reruns],
        "given": int(table.given.sum()),
        "duplicate_lines": table.duplicates,
    }


def not_begun(table: Table) -> int:
    """Tasks of the plan of which not even the card is there: a limit came first, or they are another shard's."""
    return max(0, (table.config.get("data") or {}).get("asked", 0) - len(table.tasks))


def unfinished(owing: Incomplete) -> bool:
    """Whether the base group or an arm still owes an attempt, re-runs of the control apart."""
    return bool(owing["base_tasks"] + sum(row["tasks"] for row in owing["arms"].values()))


def intervals(table: Table) -> dict[str, Rescues]:
    """Rescue rate of each arm, as counts and fractions."""
    out: dict[str, Rescues] = {}
    for arm, play in table.plays.items():
        use = table.finished(arm)
        rescued = play.rescued[use].astype(float)
        n, k = int(use.sum()), int(rescued.sum())
        out[arm] = {
            "n": n,
            "rescued": k,
            "rate": ratio(k, n),
            "wilson": list(stats.proportion_ci(k, n, level=LEVEL)),
            "bootstrap": list(stats.bootstrap_ci(rescued, level=LEVEL)),
            "first_pass_in_round": [int((play.first[use] == nth).sum()) for nth in range(table.rounds)],
        }
    return out


def coverage(table: Table) -> dict[str, Coverage]:
    """Share of tasks with a pass after 1..B samples.

    `pass_at_k`: the unbiased estimate from all B draws, where those are exchangeable (resample on full budgets).
    `by_round`: k samples are spent as the arm spends them, whole rounds first and then any j of the next one; right for
    arms that refine, and where arms stop. Wilson's intervals, for as many tasks as the shares' spread is worth.
    """
    out: dict[str, Coverage] = {}
    for arm, play in table.plays.items():
        use, full = table.finished(arm), table.ran_full(arm)
        n = int(use.sum())
        if arm == CONTROL and full:
            drawn, passes = play.drawn[use].sum(axis=1), play.passes[use].sum(axis=1)
            curves = [stats.pass_at_k(drawn, passes, k) for k in range(1, table.particles * table.rounds + 1)]
        else:
            before = np.zeros(n, dtype=bool)
            curves = []
            for nth in range(table.rounds):
                passes = play.passes[use, nth]
                curves += [
                    np.where(before, 1.0, stats.pass_at_k(np.full(n, table.particles), passes, j))
                    for j in range(1, table.particles + 1)
                ]
                before = before | (passes > 0)
        values = np.array(curves)  # (samples, tasks)
        found = values.mean(axis=1) if n else np.full(len(curves), math.nan)
        spread = values.var(axis=1) if n else found
        ends = np.stack(mean_share_ci(found, spread, n, normal_quantile((1 + LEVEL) / 2)), axis=1)
        out[arm] = {
            "n": n,
            "method": "pass_at_k" if arm == CONTROL and full else "by_round",
            "share": found.tolist(),
            "interval": ends.tolist(),
        }
    return out


def exported(table: Table) -> set[tuple[int, int]]:
    """(task, program) of the distinct passing programs of the arms on all-fail tasks: what export writes."""
    found: set[tuple[int, int]] = set()
    for play in table.plays.values():
        row = play.row[table.all_fail]
        hits = row[at(table.columns.passed, row, False)]
        found.update(zip(table.columns.task[hits].tolist(), table.columns.program[hits].tolist(), strict=True))
    return found


def pooled(table: Table) -> Pooled:
    """Tasks that at least one run rescued. A pass counts although its arm still owes attempts; one of an arm that is
    shown a reference does not."""
    plays = [*table.searches, *table.reruns]
    n = int(table.given.sum())
    owing = np.logical_or.reduce([play.owed > 0 for play in plays])

    def found(by: Iterable[Play]) -> Found:
        k = int((np.logical_or.reduce([play.rescued for play in by]) & table.given).sum())
        return {"rescued": k, "share": ratio(k, n), "wilson": list(stats.proportion_ci(k, n))}

    rows = exported(table)
    return {
        "n": n,
        "runs": len(plays),
        "all_runs": found(plays),
        "arms_alone": found(table.searches),
        "rows": len(rows),
        "rows_tasks": len({task for task, _ in rows}),
        "incomplete_tasks": int((owing & table.given).sum()),
    }


def _spread(passes: Ints, drawn: Ints) -> dict[str, int]:
    """Tasks by share of passes; the band from 20 to 80% includes its ends."""
    passes, drawn = passes[drawn > 0], drawn[drawn > 0]
    place = np.select([passes == 0, passes == drawn, 5 * passes < drawn, 5 * passes > 4 * drawn], [0, 4, 1, 3], 2)
    return dict(zip(PASS_SHARES, np.bincount(place, minlength=5).tolist(), strict=True))


def training_set(table: Table) -> TrainingSet:
    """How the set that a selector keeps moves with the extra samples.

    On-policy is what answers the bare prompt of the base group; refined attempts are not, and stand apart.
    """
    c, base = table.columns, table.base
    bare = at(c.prompt, base.row[:, 0], -1).max(axis=1, initial=-1)  # (tasks,)
    unled = np.array([parent is None for parent in c.parent], dtype=bool)
    led = [code for code, (arm, _) in enumerate(table.runs) if arm in table.hinted]
    drawn_at_all = (c.outcome != "refused") & ~np.isin(c.run, led)
    fresh = unled & (c.prompt == bare[c.task]) & drawn_at_all
    done = base.done
    count = len(table.tasks)

    def spread(rows: Bools) -> dict[str, int]:
        drawn = np.bincount(c.task[rows], minlength=count)[done]
        passes = np.bincount(c.task[rows], weights=c.passed[rows], minlength=count).astype(int)[done]
        return _spread(passes, drawn)

    first_two = at(c.passed, base.row[done, 0, :2], False)
    pairs = len(first_two) if table.base_samples > 1 else 0
    disagree = int((first_two[:, 0] != first_two[:, 1]).sum()) if pairs else 0
    return {
        "n": int(done.sum()),
        "base": _spread(base.passes.sum(axis=1)[done], base.drawn.sum(axis=1)[done]),
        "on_policy": spread(fresh),
        "with_refined": spread(drawn_at_all),
        "first_two_disagree": {
            "n": pairs,
            "count": disagree,
            "share": ratio(disagree, pairs),
            "wilson": list(stats.proportion_ci(disagree, pairs)),
        },
    }


def hinted(table: Table) -> dict[str, Hinted]:
    """What stands apart: the arms that were shown a part of the answer."""
    out: dict[str, Hinted] = {}
    searched = np.logical_or.reduce([play.rescued for play in [*table.searches, *table.reruns]] or [table.base.rescued])
    for arm in table.hinted:
        alone = table.given & table.plays[arm].rescued & ~searched
        out[arm] = {
            "without_reference": int((table.given & table.without_reference).sum()),
            "alone": int(alone.sum()),
        }
    return out


def near_miss(table: Table) -> NearMiss:
    """All-fail tasks on which some base attempt passed a visible test: where fitness has a slope to offer."""
    best = table.best_base[table.near_miss]
    n, whole = len(best), 0 if table.as_given else int(table.all_fail.sum())  # of counts, nobody knows how near
    half = int(at(table.columns.half, table.base.row[table.near_miss], False).any(axis=(1, 2)).sum())
    return {
        "all_fail": whole,
        "near_miss": n,
        "share": ratio(n, whole),
        "mean_best_fitness": mean(best),
        "at_least_half": half,
        "at_least_half_share": ratio(half, n),
    }


def unrescued(table: Table) -> Unrescued:
    """How close the tasks came that no arm rescued: the best fitness of any attempt, base group and arms together."""
    plays = [table.base, *table.searches]
    done = np.logical_and.reduce([play.done for play in plays])
    none = table.given & done & ~np.logical_or.reduce([play.rescued for play in plays])
    fitness = table.columns.fitness
    best = np.maximum.reduce([at(fitness, play.row[none], 0.0).max(axis=(1, 2), initial=0.0) for play in plays])
    zero = int((best == 0).sum())
    return {
        "n": len(best),
        "mean_best_fitness": mean(best),
        "at_zero": zero,
        "at_zero_share": ratio(zero, len(best)),
    }


def outcomes(table: Table) -> dict[str, OutcomeRow]:
    """How attempts ended, by arm: names that add up to the attempts, and replies that say something is off."""
    c = table.columns
    out: dict[str, OutcomeRow] = {}
    groups: dict[str, list[int]] = {}
    for code, (arm, rerun) in enumerate(table.runs):
        groups.setdefault(f"{arm} re-runs" if rerun else arm, []).append(code)
    for name in _in_order(["base", "round0", *table.arms], groups):
        rows = np.flatnonzero(np.isin(c.run, groups[name]))
        n = len(rows)
        by_name = Counter(c.outcome[rows].tolist())
        cut = int(c.truncated[rows].sum())
        drawn = rows[~np.isin(c.outcome[rows], UNANSWERED)]
        distinct = len(set(zip(c.task[drawn].tolist(), c.reply[drawn].tolist(), strict=True)))
        out[name] = {
            "n": n,
            "counts": {outcome: by_name[outcome] for outcome in _in_order(list(LETTERS), by_name)},
            "truncated": cut,
            "truncated_share": ratio(cut, n),
            "cut_while_thinking": int(c.thinking[rows].sum()),
            "empty": int(c.empty[rows].sum()),
            "identical": len(drawn) - distinct,  # replies that repeat another one on the same task
        }
    return out


def _in_order(known: Sequence[str], names: Iterable[str]) -> list[str]:
    """The names in the order in which they are known, then everything else by name."""
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def by_task(table: Table) -> dict[str, ByTask]:
    """What each task brought: all that is needed to pool several runs by task.

    base: passes of a whole base group, else null. arms and reruns only where the task was given to the arms; round is
    that of the first pass.
    """
    base = table.base

    def played(play: Play, i: int) -> Played:
        passes = int(play.passes[i].sum())
        return {
            "passes": passes,
            "drawn": int(play.drawn[i].sum()),
            "round": int(play.first[i]) if passes else None,
            "done": bool(play.done[i]),
        }

    out: dict[str, ByTask] = {}
    for i, task in enumerate(table.tasks):
        row: ByTask = {
            "base": int(base.passes[i].sum()) if base.done[i] else None,
            "drawn": int(base.drawn[i].sum()),
        }
        if parts := table.made_of.get(task):
            row["made_of"] = parts
        if table.given[i]:
            out_of = table.hinted if table.without_reference[i] else ()
            row["arms"] = {arm: played(play, i) for arm, play in table.plays.items() if arm not in out_of}
            row["reruns"] = [played(play, i) for play in table.reruns]
        out[task] = row
    return out


def tag_values(tags: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Tags of tasks (task -> name -> value) turned around: name -> task -> value, names in order.

    Numbers of many values come in bands; tags that would still name nearly every task apart are left out.
    """
    values: dict[str, dict[str, str]] = {}
    for task, of_task in tags.items():
        for name, value in of_task.items():
            values.setdefault(name, {})[task] = str(value)
    told = {name: v if len(set(v.values())) <= TAG_VALUES else _bands(v) for name, v in sorted(values.items())}
    return {name: v for name, v in told.items() if v and len(set(v.values())) <= TAG_VALUES}


def by_tag(table: Table) -> dict[str, dict[str, ByTag]]:
    """Rescues by tag (rating band, split, your own)."""

    def told(mine: Bools) -> ByTag:
        done = {arm: mine & table.finished(arm) for arm in table.arms}
        return {
            "tasks": int(mine.sum()),
            "all_fail": int((mine & table.all_fail).sum()),
            "given": int((mine & table.given).sum()),
            "arms": {
                arm: {"n": int(use.sum()), "rescued": int((use & table.plays[arm].rescued).sum())}
                for arm, use in done.items()
            },
        }

    return {
        name: {
            value: told(np.array([of_task.get(task) == value for task in table.tasks]))
            for value in sorted(set(of_task.values()), key=_natural)
        }
        for name, of_task in tag_values(table.tags).items()
    }


def _bands(of_task: Mapping[str, str]) -> dict[str, str]:
    """Numbers in bands of RATING_BAND; nothing where a value is no number."""
    try:
        low = {task: int(float(value)) // RATING_BAND * RATING_BAND for task, value in of_task.items()}
    except (ValueError, OverflowError):
        return {}
    return {task: f"{start}-{start + RATING_BAND - 1}" for task, start in low.items()}


def _natural(text: str) -> tuple[float, str]:
    """Sorts "800-1199" before "1200-1599", and words after numbers."""
    digits = re.match(r"-?\d+", text)
    return (float(digits.group()) if digits else math.inf, text)


def cost(table: Table) -> Cost:
    """What was paid, by stage and by arm. Equal samples are not equal cost: refine prompts carry programs.

    An arm's row counts all that it was given, a shared round 0 included, since each arm would have paid for it; stages
    count every attempt once and add up to the total.
    """
    c = table.columns
    price = table.config.get("price")
    stage = np.array(["base" if arm == "base" else "noise_runs" if k else "arms" for arm, k in table.runs] or [""])[
        c.run
    ]
    arms: dict[str, ArmBill] = {}
    for arm, play in table.plays.items():
        row = play.row[table.given].ravel()
        bill = _bill(table, row[row >= 0], price)
        rescued = int((table.given & play.rescued).sum())
        paid = 0 if bill["tokens_unknown"] else bill["prompt_tokens"] + bill["completion_tokens"]
        arms[arm] = {**bill, "rescued": rescued, "rescues_per_million_tokens": ratio(rescued, paid) * 1e6}
    events = table.events
    # A request that nothing closes was under way when its process ended: who had it may have charged for it.
    unclosed = events["sent"] - sum(events[name] for name in ("answered", "retry", "refused", "fault"))
    return {
        "total": _bill(table, np.flatnonzero(table.asked), price),
        "stages": {
            "base": _bill(table, np.flatnonzero(table.asked & (stage == "base")), price),
            "arms": _bill(table, np.flatnonzero(stage == "arms"), price),
            "noise_runs": _bill(table, np.flatnonzero(stage == "noise_runs"), price),
        },
        "arms": arms,
        "price": price,
        "requests": {
            "sent": events["sent"],
            "answered": events["answered"],
            "retries": events["retry"],
            "refused": events["refused"],
            "possibly_billed": events["possibly_billed"] + max(unclosed, 0),
            "faults": events["fault"],
        }
        if events
        else None,
        "slots": _slots(events),
        "gradings": {"graded": int(events["graded"]), "repeated": int(events["repeated"])}
        if events["graded"]
        else None,
        "wall_seconds": table.seconds,
    }


def _slots(events: Counter[str]) -> Slots | None:
    """Shares of the endpoint's slot-time: busy; idle before a retry, for the grader's sake, with nothing to ask."""
    seconds = [events[name] for name in SLOT_SECONDS]
    if not sum(seconds):
        return None
    busy, retrying, grader, nothing_to_ask = (float(part / sum(seconds)) for part in seconds)
    return {"busy": busy, "retrying": retrying, "grader": grader, "nothing_to_ask": nothing_to_ask}


def _bill(table: Table, rows: Ints, price: Sequence[float] | None) -> Bill:
    c = table.columns
    answered = rows[~np.isin(c.outcome[rows], UNANSWERED)]  # such a prompt costs nothing
    given, made = c.prompt_tokens[answered], c.completion_tokens[answered]
    known = ~(np.isnan(given) | np.isnan(made))
    prompt, completion = int(np.nansum(given)), int(np.nansum(made))
    return {
        "calls": len(answered),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "tokens_unknown": int((~known).sum()),  # replies whose server did not say
        "usd": (prompt * price[0] + completion * price[1]) / 1e6 if price and known.all() else None,
        "cpu_seconds": float(c.cpu_seconds[rows].sum()),
        "latency_seconds": float(c.latency_seconds[rows].sum()),
    }
