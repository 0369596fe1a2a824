"""What several runs of one experiment say together: pooled by task, never over runs that differ.

    pool({"out": results, "out-seed1": more})["arms"]["ring"]["verdict"]

The table of several runs (report.py) and its --json print what is estimated here.
Left out: what one run says by itself (measure.py), sentences and columns (report.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import numpy as np

import stats
from figures.numbers import plain
from figures.plan import CONTROL, foretold, margin_in_force
from figures.results import Pair, Results


class PooledArm(TypedDict):
    """An arm against the control over all runs; null where nothing can be estimated."""

    n: int  # tasks that both finished in some run
    delta: float | None  # fraction, or mean passes a sample
    interval: Pair
    p: float | None
    p_holm: float | None
    by_run: list[str | None]  # the verdict of each run by itself
    verdict: str


class Pool(TypedDict):
    """Arms are empty where runs differ or share a seed."""

    runs: list[str]
    differ: list[str]  # settings in which they differ, beside the seed
    one_seed: bool  # whether two runs have the same seed
    primary_metric: str | None
    margin: float | None
    given_in_some: int  # tasks
    given_in_every: int
    rescued_in_some: int
    arms: dict[str, PooledArm]


SAME = ("model", "family", "bundle", "thinking", "max_tokens", "no_comments", "band", "budget")  # beside the identity


def pool(runs: Mapping[str, Mapping[str, Any]]) -> Pool:
    """What several runs of one experiment say together. runs: name -> results.

    Pooled by task, since a task that two seeds share is one task: its value is the mean over the runs in which both the
    arm and the control finished it. An arm is called better or worse only where every run says so by itself and the
    pooled figures do too; equivalent, where the pooled interval lies inside the margin and the runs do not contradict
    each other, one saying better and one worse: the mean of a task over its runs hides how far they lie apart; else
    inconclusive. Runs that differ in more than their seed are not pooled, and `differ` names what they differ in; nor
    are runs of one seed, which asked the same requests and are no repetition.
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
        "primary_metric": next(iter(metrics)) if len(metrics) == 1 else None,
        "margin": _margin(all_runs, next(iter(margins))) if len(margins) == 1 and len(metrics) == 1 else None,
        "given_in_some": len(some),
        "given_in_every": len(every),
        "rescued_in_some": len(rescued & some),
        "arms": {},
    }
    if out["differ"] or out["one_seed"] or out["margin"] is None:
        return out
    per_sample = out["primary_metric"] == "per_sample"
    compared, same, control = {}, {}, {}
    for arm in dict.fromkeys(arm for results in all_runs for arm in results.get("intervals") or {} if arm != CONTROL):
        a, b = _by_task(all_runs, arm, per_sample)
        compared[arm] = stats.compare_paired(a, b)
        same[arm] = out["margin"] > 0 and stats.equivalent(a, b, out["margin"]).equivalent
        control[arm] = float(np.mean(a)) if len(a) else math.nan
    tested = [arm for arm, got in compared.items() if not math.isnan(got.p_value)]
    adjusted = dict(zip(tested, stats.holm([compared[arm].p_value for arm in tested]), strict=True))
    for arm, got in compared.items():
        said = [found and found["arms"].get(arm) for found in verdicts]
        word = stats.verdict(got, adjusted.get(arm, 1.0), same[arm], control=control[arm])
        if contradict(said) or (word in ("better", "worse") and any(other != word for other in said)):
            word = "inconclusive"
        out["arms"][arm] = {
            "n": got.n,
            "delta": got.delta,
            "interval": [got.lo, got.hi],
            "p": got.p_value,
            "p_holm": adjusted.get(arm, math.nan),
            "by_run": said,
            "verdict": word,
        }
    return cast(Pool, plain(out))


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


def _by_task(runs: Sequence[Results], arm: str, per_sample: bool) -> tuple[list[float], list[float]]:
    """The control's value and the arm's on each task: the mean over the runs in which both finished it."""
    values: dict[str, list[tuple[float, float]]] = {}
    for results in runs:
        for task, row in (results.get("by_task") or {}).items():
            plays = row.get("arms") or {}
            pair = [plays[name] for name in (CONTROL, arm) if name in plays and plays[name]["done"]]
            if len(pair) == 2:
                a, b = (play["passes"] / play["drawn"] if per_sample else float(play["passes"] > 0) for play in pair)
                values.setdefault(task, []).append((a, b))
    means = [[sum(side) / len(side) for side in zip(*of_task, strict=True)] for _, of_task in sorted(values.items())]
    return [a for a, _ in means], [b for _, b in means]
