"""Does a score predict the pass it needs: the curve by bucket, the AUCs, and one word by a rule.

    curve = hill(score, passed, task, edges)        curve["verdict"]: hill, cliff, noise, inconclusive, not_estimable

The rule (`RULE`) and the reason for the word are part of what calibration.json holds, so they are worded here.
Left out: the estimators (stats.py), where scores come from (calibrate.py, sql_calibrate.py), how a curve is drawn
(telling/curves.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike

import stats
from figures.numbers import of, plain, plural, share
from figures.plan import LEVEL
from figures.results import Pair


class BucketRow(TypedDict):
    """A bucket of scores; rate and interval are null where it is empty. The interval takes tasks as its unit."""

    bucket: str
    n: int
    passed: int
    rate: float | None
    lo: float | None
    hi: float | None


class Area(TypedDict):
    """An AUC with its interval; null where there are not both classes."""

    auc: float | None
    interval: Pair
    se: float | None
    n_pos: int
    n_neg: int
    n_pairs: int
    n_groups: int


class Areas(TypedDict):
    """Over all programs and over those of partial fitness alone, each pooled and within tasks."""

    pooled: Area
    within: Area
    pooled_partial: Area
    within_partial: Area


class Middle(TypedDict):
    """The programs between MIDDLE and UPPER, among which a cliff shows."""

    n: int
    passed: int
    tasks: int
    upper: float | None  # limit of their pass rate


class Below(TypedDict):
    """The programs under UPPER, among which a hill shows."""

    passes: int
    tasks: int
    auc: float | None
    interval: Pair


class Grounds(TypedDict):
    """The rule and the numbers that it was applied to."""

    text: str
    middle: Middle
    top_rate: float | None
    top_counted: float | None
    level: float
    within: Pair
    below: Below


class Curve(TypedDict):
    """What `hill` finds."""

    verdict: str  # cliff, hill, noise, inconclusive, not_estimable
    why: str
    n: int
    passes: int
    tasks: int
    tasks_with_both: int
    table: list[BucketRow]
    auc: Areas
    rule: Grounds


EDGES = (0.25, 0.5, 0.75, 0.9)  # of fitness; exactly 0 and exactly 1 are buckets of their own
MIDDLE, UPPER = 0.5, 0.75  # between them a cliff is looked for; below the upper one a hill
CLIFF_SHARE = 0.2  # of the top bucket's rate
HILL_LEVEL = 0.99  # of the within-task AUC's interval, for hill and for noise
HILL_PASSES, HILL_TASKS = 10, 5  # passes below UPPER, and tasks they come from, before a hill may be told
NOISE_WITHIN = (0.4, 0.6)  # where the whole interval must lie to call a score noise
CHANCE = 0.5  # the AUC of a score that says nothing

RULE = (
    f"cliff: from {share(MIDDLE, 0)} to under {share(UPPER, 0)} of the tests the upper {share(LEVEL, 0)} limit of the "
    f"pass rate is under {share(CLIFF_SHARE, 0)} of the top bucket's rate. The limit takes tasks as its unit: the more "
    "alike the programs of a task end, the fewer they count for, and about one while none passes; a top rate above the "
    "middle of such an interval of its own counts as that middle. hill: not a cliff, and among programs under "
    f"{share(UPPER, 0)}, with at least {HILL_PASSES} passes in at least {HILL_TASKS} tasks, the lower "
    f"{share(HILL_LEVEL, 0)} limit of the within-task AUC is above {CHANCE:g}. noise: neither, and the "
    f"{share(HILL_LEVEL, 0)} interval of the within-task AUC over all programs holds {CHANCE:g} and lies inside "
    f"{NOISE_WITHIN[0]:g} to {NOISE_WITHIN[1]:g}. inconclusive: everything else; a wide interval is not noise. "
    "not_estimable: no task holds both a pass and a fail, so nothing can be compared within a task (a cliff can still "
    "be told, from other tasks)."
)


def hill(
    score: ArrayLike,
    passed: ArrayLike,
    task: ArrayLike,
    edges: Sequence[float] = EDGES,
    ends: bool = True,
    scored: str = "of the tests",
    noun: str = "program",
) -> Curve:
    """Does a score predict the pass it needs: the curve by bucket, the AUCs, and one word by RULE.

    score: (n,) in [0, 1]; passed: (n,) 0/1; task: (n,) whose program it is; edges, ends: as in
    `stats.calibration_table` (the top bucket is its last row); scored, noun: what a score is a share of, and of what.
    The word is one of `cliff`, `hill`, `noise`, `inconclusive`, `not_estimable`. Raises ValueError for a score outside
    [0, 1], NaN, or unequal lengths.
    """
    score, passed = np.asarray(score, dtype=float), np.asarray(passed, dtype=float)
    task = np.unique(np.asarray(task), return_inverse=True)[1]
    if not len(score) == len(passed) == len(task):
        raise ValueError("score, passed and task must have one entry a program")
    table = stats.calibration_table(score, passed, edges, level=LEVEL, ends=ends, groups=task)
    middle = (score >= MIDDLE) & (score < UPPER)
    middle_n, middle_passed = int(middle.sum()), int(passed[middle].sum())
    middle_tasks = len(set(task[middle].tolist()))
    limit = stats.clustered_ci(passed[middle], task[middle], level=LEVEL).hi
    peak = score == 1 if ends else score >= max((edge for edge in edges if edge < 1), default=0)
    top = table[-1].rate
    # One program that passes is no rate of 100%; an interval's middle is a rate with its own uncertainty taken off.
    counted = min(top, sum(stats.clustered_ci(passed[peak], task[peak], level=LEVEL)) / 2)
    below, partial = score < UPPER, (score > 0) & (score < 1)
    within = stats.auc(score, passed, task, within=True, level=HILL_LEVEL)
    low = stats.auc(score[below], passed[below], task[below], within=True, level=HILL_LEVEL)
    low_passes = int(passed[below].sum())
    low_tasks = len(set(task[below & (passed == 1)].tolist()))
    found_below = f"{plural(low_passes, 'pass', 'passes')} in {plural(low_tasks, 'task')} under {share(UPPER, 0)}"

    if limit < CLIFF_SHARE * counted:
        word = "cliff"
        less = f", which count as {share(counted)}" if counted < top else ""
        why = (
            f"from {share(MIDDLE, 0)} to under {share(UPPER, 0)} {scored} {of(middle_passed, middle_n, noun)} "
            f"in {plural(middle_tasks, 'task')} pass, at most {share(limit)}; that is under {share(CLIFF_SHARE, 0)} of "
            f"the {share(top)} at the top{less}"
        )
    elif not within.n_groups:
        word = "not_estimable"
        why = "no task holds both a pass and a fail"
    elif low_passes >= HILL_PASSES and low_tasks >= HILL_TASKS and low.lo > CHANCE:
        word = "hill"
        why = (
            f"under {share(UPPER, 0)} {scored} a pass outranks a fail of its own task with chance {low.auc:.2f}, "
            f"{share(HILL_LEVEL, 0)} interval [{low.lo:.2f}, {low.hi:.2f}]; {found_below}"
        )
    elif within.lo <= CHANCE <= within.hi and within.lo >= NOISE_WITHIN[0] and within.hi <= NOISE_WITHIN[1]:
        word = "noise"
        why = (
            f"within a task a pass outranks a fail with chance {within.auc:.2f}, {share(HILL_LEVEL, 0)} interval "
            f"[{within.lo:.2f}, {within.hi:.2f}]"
        )
    else:
        word = "inconclusive"
        seen = "not estimable" if math.isnan(within.lo) else f"[{within.lo:.2f}, {within.hi:.2f}]"
        why = (
            f"within a task a pass outranks a fail with chance {within.auc:.2f}, {share(HILL_LEVEL, 0)} interval "
            f"{seen}; {found_below}"
        )
    out = {
        "verdict": word,
        "why": why,
        "n": len(score),
        "passes": int(passed.sum()),
        "tasks": len(set(task.tolist())),
        "tasks_with_both": within.n_groups,
        "table": [row._asdict() for row in table],
        "auc": {
            "pooled": _area(stats.auc(score, passed, task, level=LEVEL)),
            "within": _area(stats.auc(score, passed, task, within=True, level=LEVEL)),
            "pooled_partial": _area(stats.auc(score[partial], passed[partial], task[partial], level=LEVEL)),
            "within_partial": _area(
                stats.auc(score[partial], passed[partial], task[partial], within=True, level=LEVEL)
            ),
        },
        "rule": {
            "text": RULE,
            "middle": {"n": middle_n, "passed": middle_passed, "tasks": middle_tasks, "upper": limit},
            "top_rate": top,
            "top_counted": counted,
            "level": HILL_LEVEL,
            "within": [within.lo, within.hi],
            "below": {"passes": low_passes, "tasks": low_tasks, "auc": low.auc, "interval": [low.lo, low.hi]},
        },
    }
    return cast(Curve, plain(out))


def _area(found: stats.Auc) -> dict[str, object]:
    row = found._asdict()
    return {"auc": row.pop("auc"), "interval": [row.pop("lo"), row.pop("hi")], **row}
