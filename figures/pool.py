"""What several runs of one experiment say together: pooled by task, never over runs that differ.

    pool({"out": results, "out-seed1": more})["arms"]["ring"]["verdict"]

The table of several runs (report.py) and its --json print what is estimated here.
Left out: what one run says by itself (measure.py), sentences and columns (report.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, TypedDict, cast

import numpy as np

import stats
from estimators.pooled import compare_pooled, heterogeneity, mean_ci
from figures.numbers import listed, plain
from figures.plan import CONTROL, EQUIVALENCE_LEVEL, LEVEL, foretold, margin_in_force, one_of, planned_seeds
from figures.results import Pair, Played, Results


class PooledArm(TypedDict):
    """An arm against the control over all runs; null where nothing can be estimated."""

    n: int  # tasks that both finished in some run
    delta: float | None  # fraction, or mean passes a sample
    interval: Pair
    p: float | None
    p_holm: float | None
    by_run: list[str | None]  # the verdict of each run by itself
    deltas: list[float | None]  # fraction: the difference in each run
    q: float | None  # Cochran's Q of these: do the runs differ by more than their tasks and draws explain
    q_df: int
    q_p: float | None  # too large where runs share their tasks
    verdict: str


class Pool(TypedDict):
    """Arms are empty where runs differ or share a seed."""

    runs: list[str]
    differ: list[str]  # settings in which they differ, beside the seed
    one_seed: bool  # whether two runs have the same seed
    planned: bool  # whether each of them was planned as one of so many, and nothing in the plans has changed
    exploratory: list[str]  # sentences: why the verdict is exploratory; empty where planned
    primary_metric: str | None
    margin: float | None
    given_in_some: int  # tasks
    given_in_every: int
    linked: int  # pairs of tasks, of two runs, that share a function
    rescued_in_some: int
    arms: dict[str, PooledArm]


REACH = 1.959964  # standard errors from the middle of a 95% interval to its end
SAME = ("model", "family", "bundle", "thinking", "max_tokens", "no_comments", "band", "budget")  # beside the identity


def pool(runs: Mapping[str, Mapping[str, Any]]) -> Pool:
    """What several runs of one experiment say together. runs: name -> results.

    Pooled by task, since a task that two runs share is one task: its value is the mean over the runs in which both the
    arm and the control finished it. Where each run was planned as one of so many (--seeds) and they are those that the
    plan names, the verdict is that of the pooled comparison, unless one run by itself says better and another one
    worse. Equivalent is what the first runs of the control show by the exact test, and a 90% interval over all its runs
    that allows for linked tasks, each within the margin. Runs that
    nobody planned to pool are exploratory, and an arm is called better or worse only where every one of them says so by
    itself too. Runs that differ in more than their seed are not pooled, and `differ` names what they differ in; nor are
    runs of one seed, which asked the same requests and are no repetition.
    """
    all_runs = [cast(Results, results) for results in runs.values()]
    verdicts = [results.get("verdict") for results in all_runs]  # None: a published file
    differ = [key for key in SAME if any(results.get(key) != all_runs[0].get(key) for results in all_runs)]
    identities = [results.get("identity") or {} for results in all_runs]
    settings = dict.fromkeys(
        key for identity in identities for key in identity if key not in ("seed", "task_seed", "tasks", *differ)
    )
    differ += [key for key in settings if any(other.get(key) != identities[0].get(key) for other in identities)]
    metrics = {found and found["primary_metric"] for found in verdicts}
    margins = {found and found.get("margin_asked", found["margin"]) for found in verdicts}
    differ += [name for name, values in (("primary metric", metrics), ("margin", margins)) if len(values) > 1]
    given = [{task for task, row in (results.get("by_task") or {}).items() if row.get("arms")} for results in all_runs]
    some, every = set().union(*given), set.intersection(*given) if given else set()
    rescued = {
        task
        for results in all_runs
        for task, row in (results.get("by_task") or {}).items()
        if any(
            play["passes"]
            for play in [
                *(play for arm, play in (row.get("arms") or {}).items() if arm not in (results.get("hinted") or {})),
                *(row.get("reruns") or []),
            ]
        )
    }
    out: Pool = {
        "runs": list(runs),
        "differ": [key.replace("_", " ") for key in differ],
        "one_seed": len({results.get("seed") for results in all_runs}) < len(all_runs),
        "planned": False,
        "exploratory": _departures(all_runs),
        "primary_metric": next(iter(metrics)) if len(metrics) == 1 else None,
        "margin": _margin(all_runs, next(iter(margins))) if len(margins) == 1 and len(metrics) == 1 else None,
        "given_in_some": len(some),
        "given_in_every": len(every),
        "linked": len(_links(all_runs, some)),
        "rescued_in_some": len(rescued & some),
        "arms": {},
    }
    if out["differ"] or out["one_seed"] or out["margin"] is None:
        return out
    out["planned"] = not out["exploratory"]
    cells = _rates if out["primary_metric"] == "per_sample" else _rescues
    found, same, control, by_run = {}, {}, {}, {}
    for arm in dict.fromkeys(arm for results in all_runs for arm in results.get("intervals") or {} if arm != CONTROL):
        found[arm], (a, b) = cells(all_runs, arm)
        narrow, margin = cells(all_runs, arm, EQUIVALENCE_LEVEL)[0], out["margin"]
        alike = margin > 0 and -margin < narrow.lo and narrow.hi < margin
        same[arm] = alike and stats.equivalent(a, b, margin).equivalent
        control[arm] = float(np.mean(a)) if len(a) else math.nan
        by_run[arm] = [cells([results], arm)[0] for results in all_runs]
    tested = [arm for arm, got in found.items() if not math.isnan(got.p_value)]
    adjusted = dict(zip(tested, stats.holm([found[arm].p_value for arm in tested]), strict=True))
    for arm, got in found.items():
        said = [row and row["arms"].get(arm) for row in verdicts]
        word = stats.verdict(got, adjusted.get(arm, 1.0), same[arm], control=control[arm])
        alone = word in ("better", "worse") and any(other != word for other in said)
        if contradict(said) or (alone and not out["planned"]):
            word = "inconclusive"
        known = [each for each in by_run[arm] if each.n > 1 and each.hi > each.lo]
        apart = heterogeneity(*zip(*map(_middle_and_error, known), strict=True)) if known else heterogeneity([], [])
        out["arms"][arm] = {
            "n": got.n,
            "delta": got.delta,
            "interval": [got.lo, got.hi],
            "p": got.p_value,
            "p_holm": adjusted.get(arm, math.nan),
            "by_run": said,
            "deltas": [each.delta for each in by_run[arm]],
            "q": apart.q,
            "q_df": apart.df,
            "q_p": apart.p,
            "verdict": word,
        }
    return cast(Pool, plain(out))


def _middle_and_error(found: stats.Comparison) -> tuple[float, float]:
    """Of an interval with two tasks added, of which one end may be cut."""
    middle = found.delta * found.n / (found.n + 2)
    return middle, max(found.hi - middle, middle - found.lo) / REACH


def _departures(runs: Sequence[Results]) -> list[str]:
    """Why runs together say no more than exploratory: empty where each was planned as one of so many."""
    verdicts = [results.get("verdict") for results in runs]
    if any(found is None or (found.get("seeds") or 1) != len(runs) for found in verdicts):
        planned = {(found.get("seeds") or 1) if found else 1 for found in verdicts}
        if len(planned) == 1 and (most := max(planned)) > len(runs):
            return [f"{len(runs)} of the {most} planned runs"]
        return [f"not planned as {len(runs)} runs to be pooled (--seeds {len(runs)})"]
    seeds, due = sorted(results["seed"] for results in runs), planned_seeds(runs[0]["seed"], len(runs))
    if seeds != due:
        named, those = (listed([str(seed) for seed in each]) for each in (due, seeds))
        return [f"the plan names seeds {named}, and these are {those}"]
    expected = one_of(len(runs))
    return list(dict.fromkeys(why for found in verdicts if found for why in found["exploratory"] if why != expected))


def _margin(runs: Sequence[Results], asked: float | None) -> float | None:
    """The margin in force, by the base groups of all runs; None where one was never told."""
    if asked is None:
        return None
    histogram = np.sum([results["p0_histogram"] for results in runs], axis=0).tolist()
    per_sample = runs[0]["verdict"]["primary_metric"] == "per_sample"
    return margin_in_force(asked, foretold(histogram, 1 if per_sample else runs[0]["budget"]["B"]))


def contradict(said: Sequence[str | None]) -> bool:
    """Whether one run calls an arm better and another one worse."""
    return {"better", "worse"} <= set(said)


Values = tuple[list[float], list[float]]  # of the control and of the arm, a task each


def _finished(runs: Sequence[Results], arm: str) -> dict[str, list[tuple[Played, Played, list[Played]]]]:
    """Task -> in each run that has it, the control's play, the arm's, and the re-runs; where both are done."""
    out: dict[str, list[tuple[Played, Played, list[Played]]]] = {}
    for results in runs:
        for task, row in sorted((results.get("by_task") or {}).items()):
            plays = row.get("arms") or {}
            pair = [plays[name] for name in (CONTROL, arm) if name in plays and plays[name]["done"]]
            if len(pair) == 2:
                out.setdefault(task, []).append((*pair, row.get("reruns") or []))  # type: ignore[arg-type]
    return dict(sorted(out.items()))


def _rescues(runs: Sequence[Results], arm: str, level: float = LEVEL) -> tuple[stats.Comparison, Values]:
    """Against all runs of the control, where each verdict is; the values are of its first runs, which the exact test of
    what is equivalent knows alone."""
    several = all((results["verdict"].get("against_runs") or 1) > 1 for results in runs)
    task, own, passes, plays, a, b = [], [], [], [], [], []
    tasks = _finished(runs, arm)
    for place, (_, of_task) in enumerate(tasks.items()):
        for first, mine, again in of_task:
            control = [first, *(each for each in again if several and each["done"])]
            task.append(place)
            own.append(float(mine["passes"] > 0))
            passes.append(sum(each["passes"] > 0 for each in control))
            plays.append(len(control))
        a.append(sum(first["passes"] > 0 for first, _, _ in of_task) / len(of_task))
        b.append(sum(mine["passes"] > 0 for _, mine, _ in of_task) / len(of_task))
    return compare_pooled(task, own, passes, plays, _links(runs, list(tasks)), level), (a, b)


def _rates(runs: Sequence[Results], arm: str, level: float = LEVEL) -> tuple[stats.Comparison, Values]:
    """Passes a sample. Where tasks share a part the interval is no narrower than one that allows for it."""
    tasks = _finished(runs, arm)
    means = [
        [
            sum(play["passes"] / play["drawn"] for play in side) / len(of_task)
            for side in list(zip(*of_task, strict=True))[:2]
        ]
        for of_task in tasks.values()
    ]
    a, b = [mean[0] for mean in means], [mean[1] for mean in means]
    found = stats.compare_paired(a, b, level)
    if links := _links(runs, list(tasks)):
        wide = mean_ci(np.subtract(b, a), links, level, end=float(np.ptp([*a, *b])))
        found = found._replace(lo=min(found.lo, wide.lo), hi=max(found.hi, wide.hi))
    return found, (a, b)


def _links(runs: Sequence[Results], tasks: Collection[str]) -> list[tuple[int, int]]:
    """Pairs of these tasks, by their places among them in order, that share a function: bundles dealt out anew."""
    place = {task: i for i, task in enumerate(sorted(tasks))}
    holders: dict[str, set[int]] = {}
    for results in runs:
        for task, row in (results.get("by_task") or {}).items():
            for part in row.get("made_of") or [] if task in place else []:
                holders.setdefault(part, set()).add(place[task])
    return sorted({pair for held in holders.values() for pair in combinations(sorted(held), 2)})
