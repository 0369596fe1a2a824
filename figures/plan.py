"""What is due, and what will be concluded from it: the settings of a run as the figures need them, and plan.json.

    due = Settings.of(config)               which attempts the settings ask for
    plan = make_plan(config, n_tasks)       plan.json, before the first sample
    plan_digest(plan)                       what config.json keeps of it

The primary metric is the rescue rate; for the positive control (mbpp-bundle), which runs its full budget, the passes
per sample. Stopping at the first pass inflates passes per draw, so where arms stop there is no per-sample rate.

Pure. Left out: applying the rule (measure.py), the tests it names (stats.py), when a plan is written (run.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from statistics import NormalDist
from typing import Any, NamedTuple

import stats

SCHEMA_VERSION = 2  # of results.json, calibration.json and plan.json: goes up when a key is added or changes
CONTROL = "resample"  # the arm that every other one is compared with
POSITIVE_CONTROL = "mbpp-bundle"  # the task set on which refining must find more, if it ever does
LEVEL = 0.95  # of every interval, unless its key says otherwise
ALPHA = 0.05
EQUIVALENCE_LEVEL = 1 - 2 * ALPHA  # of the interval that must lie inside the margin (two one-sided tests)
METRICS = {
    "rescue_rate": "rescue rate: the share of tasks on which at least one program passes",
    "per_sample": "per-sample pass rate: passes over samples on each task, over full budgets",
}
MARGIN = {"rescue_rate": 0.05, "per_sample": 0.01}  # smallest difference worth acting on, as a fraction
# What the power of a plan assumes, from the published runs: the share of all-fail tasks on which two arms disagree (.07
# to .10), and the deviation of the per-sample difference from task to task ([.24, 1.63] points at 174 tasks).
PLAN_DISCORDANCE = 0.09
PLAN_SAMPLE_SD = 0.047


class Settings(NamedTuple):
    """The settings that say which attempts are due."""

    base_samples: int  # G
    particles: int  # N
    rounds: int  # R
    noise_runs: int  # re-runs of the control, beside its first run
    arms: list[str]
    full_budget: bool
    band: str
    shared: bool  # the arms share one round 0

    @property
    def others(self) -> list[str]:
        """The arms that are compared with the control: the family of tests."""
        return [arm for arm in self.arms if arm != CONTROL]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """As run.py's config.json holds them."""
        identity, plan = config["identity"], config["plan"]
        return cls(
            base_samples=plan["base_samples"],
            particles=identity["particles"],
            rounds=plan["rounds"],
            noise_runs=plan["noise_runs"],
            arms=list(plan["arms"]),
            full_budget=plan["full_budget"],
            band=plan["band"],
            shared=identity["share_round0"],
        )


def wants_full_budget(tasks: str, as_published: bool) -> bool:
    """Whether arms go on after their first pass where --full-budget does not say: where the metric needs it."""
    return tasks == POSITIVE_CONTROL and not as_published


def primary_metric(config: Mapping[str, Any]) -> str:
    """`per_sample` where the positive control runs its full budget, `rescue_rate` everywhere else."""
    full = config["identity"]["tasks"] == POSITIVE_CONTROL and config["plan"]["full_budget"]
    return "per_sample" if full else "rescue_rate"


def margins(config: Mapping[str, Any]) -> dict[str, float]:
    """The margins in force, as fractions: --margin speaks of the primary metric."""
    said = config["plan"]["margin"]
    return MARGIN if said is None else {**MARGIN, primary_metric(config): float(said) / 100}


def make_plan(config: Mapping[str, Any], n_tasks: int, median_rating: float | None = None) -> dict[str, Any]:
    """What is going to be concluded, and how, as plan.json says it before the first sample.

    n_tasks: tasks asked. Tokens are those of completions, since the length of a prompt is not known yet. `written` is
    left for the caller, who has a clock; `plan_digest` of the result belongs into config.json.
    """
    identity = config["identity"]
    t = Settings.of(config)
    metric = primary_metric(config)
    margin = margins(config)[metric]
    stop = not t.full_budget
    a_play = t.particles * t.rounds
    stages = {
        "base": n_tasks * t.base_samples,
        "arms_if_all_fail": n_tasks * a_play * len(t.arms),
        "noise_runs_if_all_fail": n_tasks * a_play * (t.noise_runs if CONTROL in t.arms else 0),
    }
    if t.shared:
        stages["arms_if_all_fail"] -= n_tasks * t.particles * (len(t.arms) - 1)
    largest = sum(stages.values())
    compared = t.others if CONTROL in t.arms else []
    family = len(compared)
    exact = metric == "rescue_rate"
    return {
        "schema_version": SCHEMA_VERSION,
        "written": None,
        "population": {
            "tasks": n_tasks,
            "task_set": identity["tasks"],
            "revision": identity["revision"],
            "median_rating": median_rating,
            "base_samples": t.base_samples,
            "band": t.band,
            "text": f"tasks on which all {t.base_samples} base attempts fail"
            + (", and one of them passed a visible test" if t.band == "near-miss" else ""),
        },
        "primary_metric": metric,
        "metric_text": METRICS[metric],
        "margin": margin,
        "control": CONTROL if CONTROL in t.arms else None,
        "arms": list(t.arms),
        "family": compared,
        "rule": {
            "unit": "task",
            "level": LEVEL,
            "alpha": ALPHA,
            "test": "exact McNemar" if exact else "sign flip",
            "interval": "Bonett-Price" if exact else "percentile bootstrap over tasks",
            "adjust": "holm",
            "better": "interval above 0 and Holm-adjusted p under alpha",
            "worse": "interval below 0 and Holm-adjusted p under alpha",
            "equivalent": "neither, and the interval at level 1 - 2 alpha lies inside the margin on both sides",
            "inconclusive": "everything else",
            "text": (
                f"Each of {', '.join(compared)} against {CONTROL} on the tasks that both finished, by "
                f"{METRICS[metric].split(':')[0]}. Better or worse: the {LEVEL:.0%} interval of the paired difference "
                f"excludes 0 and its p-value, Holm-adjusted over {family} comparison{'s' * (family != 1)}, "
                f"is under {ALPHA:g}. Else equivalent: the {EQUIVALENCE_LEVEL:.0%} interval lies within "
                f"{in_points(margin)} either way. Else inconclusive, which is not a claim of no difference."
            )
            if compared
            else f"Nothing is compared: that takes {CONTROL} and another arm.",
        },
        "budget": {
            "base_samples": t.base_samples,
            "particles": t.particles,
            "rounds": t.rounds,
            "samples_a_task_and_arm": a_play,
            "stop_at_first_pass": stop,
            "noise_runs": t.noise_runs,
            "share_round0": t.shared,
        },
        "calls": {**stages, "largest": largest},
        "tokens": {"completion_largest": largest * identity["max_tokens"]},
        "power": {
            name: _planned_power(metric, int(n_tasks * share), margin, max(family, 1))
            for name, share in (("all", 1.0), ("half", 0.5), ("quarter", 0.25))
        },
        "power_assumes": f"a true difference of the margin, {in_points(margin)}; "
        + (
            f"the two arms disagreeing on {max(PLAN_DISCORDANCE, margin):.0%} of the tasks"
            if exact
            else f"a deviation of {in_points(PLAN_SAMPLE_SD)} of the difference from task to task"
        )
        + "; share of the tasks that are all-fail: all, half, a quarter",
        "settings": dict(config["plan"]),
        "amendments": [],
    }


def in_points(fraction: float) -> str:
    """A margin in words: .05 -> "5 points"."""
    said = f"{100 * fraction:.6g}"
    return f"{said} point{'s' * (said != '1')}"


def _planned_power(metric: str, n: int, effect: float, family: int) -> dict[str, Any]:
    """The chance to see a true difference of the margin on n all-fail tasks: alone, and at Holm's first step."""
    out: dict[str, Any] = {"tasks": n}
    for name, alpha in (("power", ALPHA), ("power_holm", ALPHA / family)):
        if metric == "rescue_rate":
            out[name] = stats.power_paired(n, effect, max(PLAN_DISCORDANCE, effect), alpha=alpha)
        else:  # normal approximation: what spreads is a rate in steps of one sample, not a coin
            shift = effect * math.sqrt(n) / PLAN_SAMPLE_SD
            reach = NormalDist().inv_cdf(1 - alpha / 2)
            out[name] = NormalDist().cdf(shift - reach) + NormalDist().cdf(-shift - reach) if n else 0.0
    return out


def plan_digest(plan: Mapping[str, Any]) -> str:
    """SHA-256 of the plan as it was first written: everything but its amendments."""
    first = {key: value for key, value in plan.items() if key != "amendments"}
    return sha256(json.dumps(first, sort_keys=True, allow_nan=False).encode()).hexdigest()
