"""What will be concluded from a run, and how, before its first sample: plan.json.

    plan = make_plan(config, n_tasks)       plan.json, before the first sample
    plan_digest(plan)                       what config.json keeps of it

The primary metric is the rescue rate, on the positive control (mbpp-bundle) too: a particle that is shown a program
that passes and writes it again gains nothing by it. Passes per sample count it again, and are told beside, where full
budgets give them; with --as-published they are what full budgets of that set are judged by.

Pure. Left out: applying the rule (measure.py), the tests it names (stats.py), when a plan is written (run.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from hashlib import sha256
from statistics import NormalDist

import stats
from commands.settings import CONTROL, Config, Row, Settings
from estimators.betabinomial import at_bound, chance, fit
from figures.numbers import in_points, listed, plural

SCHEMA_VERSION = 3  # of results.json, calibration.json and plan.json: goes up when a key is added or changes
POSITIVE_CONTROL = "mbpp-bundle"  # the task set on which refining must find more, if it ever does
LEVEL = 0.95  # of every interval, unless its key says otherwise
ALPHA = 0.05
EQUIVALENCE_LEVEL = 1 - 2 * ALPHA  # of the interval that must lie inside the margin (two one-sided tests)
METRICS = {
    "rescue_rate": "rescue rate: the share of tasks on which at least one program passes",
    "per_sample": "per-sample pass rate: passes over samples on each task, over full budgets",
}
MARGIN = {"rescue_rate": 0.05, "per_sample": 0.01}  # smallest difference worth acting on, as a fraction
FIRST_RUN, ALL_RUNS = "the first run", "all runs"  # of the control, that the arms are compared with
OF_CONTROL = 0.5  # the most that a margin may be of what the base group foretells of the control
# What the power of a plan assumes, from the published runs: the share of all-fail tasks on which two arms disagree (.07
# to .10), and the deviation of the per-sample difference from task to task ([.24, 1.63] points at 174 tasks).
PLAN_DISCORDANCE = 0.09
PLAN_SAMPLE_SD = 0.047


def wants_full_budget(tasks: str, as_published: bool) -> bool:
    """Whether arms go on after their first pass where --full-budget does not say: where the climb is looked at."""
    return tasks == POSITIVE_CONTROL and not as_published


def primary_metric(config: Config) -> str:
    """`per_sample` where the positive control runs its full budget as published, `rescue_rate` everywhere else."""
    identity = config["identity"]
    full = identity["tasks"] == POSITIVE_CONTROL and config["plan"]["full_budget"]
    return "per_sample" if full and identity.get("as_published") else "rescue_rate"


def margins(config: Config) -> dict[str, float]:
    """The margins that are asked for, as fractions: --margin speaks of the primary metric."""
    said = config["plan"]["margin"]
    return MARGIN if said is None else {**MARGIN, primary_metric(config): float(said) / 100}


def against(config: Config) -> str:
    """Which runs of the control the arms are compared with: all, where its re-runs are no less than the first one."""
    due = Settings.of(config)
    several = due.noise_runs and CONTROL in due.arms and not due.share_round0
    return ALL_RUNS if several and primary_metric(config) == "rescue_rate" else FIRST_RUN


def runs_compared(config: Config, plan: Row | None) -> int:
    """How many runs of the control the arms are compared with: all where the plan says so, which older ones do not."""
    says_all = plan is None or plan.get("against") == ALL_RUNS
    return Settings.of(config).noise_runs + 1 if says_all and against(config) == ALL_RUNS else 1


def foretold(histogram: Sequence[int], draws: int) -> float:
    """What a fresh arm is expected to find on the all-fail tasks: the share with a pass in so many draws.

    histogram: tasks by passes of their base group. 0 where no base attempt passed: of the control nothing is known
    then, so no margin is half of it; nan without a task, where groups pass as a whole or not at all, and where some
    group of one has a pass: of how chances spread it shows nothing, and taken for all alike they foretell too much.
    """
    found, group = fit(histogram), len(histogram) - 1
    passes = sum(k * n for k, n in enumerate(histogram))
    blind = (group < 2 and passes > 0) or (0 < passes < group * sum(histogram) and at_bound(found))
    return math.nan if blind else float(chance(found, draws, failed=group))


def margin_in_force(asked: float, control: float) -> float:
    """The smaller of the margin asked for and half of what is foretold of the control, down to a hundredth of a point.

    It follows from the base group alone, so it is fixed before the first attempt of an arm, by a rule that is fixed
    before the first sample. A margin as wide as all that the control finds would call an arm that finds nothing alike.
    """
    half = 0.0 if math.isnan(control) else math.floor(OF_CONTROL * control * 1e4 + 1e-6) / 1e4
    return min(asked, half)


def make_plan(config: Config, n_tasks: int, median_rating: float | None = None) -> Row:
    """What is going to be concluded, and how, as plan.json says it before the first sample.

    n_tasks: tasks asked. Tokens are those of completions, since the length of a prompt is not known yet. `written` is
    left for the caller, who has a clock; `plan_digest` of the result belongs into config.json.
    """
    identity = config["identity"]
    due = Settings.of(config)
    audited = config["data"].get("audit")
    n_given = (audited or {}).get("passable", 0) if due.only_passable else n_tasks  # at most
    metric = primary_metric(config)
    margin = margins(config)[metric]
    stop = not due.full_budget
    a_play = due.particles * due.rounds
    base = n_tasks * due.base_samples
    stages = {
        "base": 0 if due.rollouts else base,
        "arms_if_all_fail": n_given * a_play * len(due.arms),
        "noise_runs_if_all_fail": n_given * a_play * (due.noise_runs if CONTROL in due.arms else 0),
    }
    if due.share_round0:
        stages["arms_if_all_fail"] -= n_given * due.particles * (len(due.arms) - 1)
    largest = sum(stages.values())
    compared = due.compared
    family = len(compared)
    exact, several = metric == "rescue_rate", against(config) == ALL_RUNS
    return {
        "schema_version": SCHEMA_VERSION,
        "written": None,
        "population": {
            "tasks": n_tasks,
            "task_set": identity["tasks"],
            "revision": identity["revision"],
            "median_rating": median_rating,
            "base_samples": due.base_samples,
            "band": due.band,
            "text": f"tasks on which all {due.base_samples} base attempts fail"
            + (", and one of them passed a visible test" if due.band == "near-miss" else "")
            + (", of the tasks that a reference passes (audit.json)" if due.only_passable else ""),
            "audit": audited,
            "only_passable": due.only_passable,
        },
        "primary_metric": metric,
        "metric_text": METRICS[metric],
        "margin": margin,
        "control": CONTROL if CONTROL in due.arms else None,
        "against": against(config),
        "seeds": due.seeds or 1,
        "arms": list(due.arms),
        "apart": {name: dict(arm) for name, arm in (config.get("apart") or {}).items()},
        "family": compared,
        "rule": {
            "unit": "task",
            "level": LEVEL,
            "alpha": ALPHA,
            "test": f"exact permutation, within a task, of which of {due.noise_runs + 2} runs is the arm's"
            if several
            else "exact McNemar"
            if exact
            else "sign flip",
            "interval": ("Bonett-Price" + (", carried over to several runs" if several else ""))
            if exact
            else "percentile bootstrap over tasks",
            "adjust": "holm",
            "better": "interval above 0 and Holm-adjusted p under alpha",
            "worse": "interval below 0 and Holm-adjusted p under alpha",
            "equivalent": "neither, the interval of equivalence lies inside the margin on both sides, and the other "
            "one holds 0 and lies above an arm that finds nothing",
            "equivalence": "Tango's score, at a quantile that keeps the error under alpha for every discordance"
            + (
                f", against the first run of {CONTROL}; and the {EQUIVALENCE_LEVEL:.0%} interval of the difference "
                "from the mean of its runs inside the margin too"
                if several
                else ""
            )
            if exact
            else "percentile bootstrap over tasks and two more, one at either extreme",
            "margin": f"the smaller of {in_points(margin)} and half of what the base group foretells of {CONTROL}: its "
            "passes by task as a beta-binomial, by maximum likelihood",
            "inconclusive": "everything else",
            "watched": "beside it, for a run that is not finished or that grew by --limit: bets on the tasks that one "
            "of two alone rescued, in the order of asking; a verdict takes 2 x arms / alpha times the stake, and holds "
            "however often it is looked at",
            "text": (
                f"Each of {', '.join(compared)} against {_runs_text(due.noise_runs + 1 if several else 1)} finished, "
                f"by {METRICS[metric].split(':')[0]}. Better or worse: the {LEVEL:.0%} interval of the paired "
                f"difference excludes 0 and its p-value, Holm-adjusted over {plural(family, 'comparison')}, "
                f"is under {ALPHA:g}. Else equivalent: the interval of the test of equivalence lies within the margin "
                "either way, and the other one holds 0 and leaves no room for an arm that finds nothing. The margin is "
                f"{in_points(margin)}, or half of what the base group foretells of {CONTROL} if that is less. "
                "Else inconclusive, which is not a claim of no difference."
                + (f" {_seeds_text(due.seed, due.seeds)}" if due.seeds and due.seeds > 1 else "")
            )
            if compared
            else f"Nothing is compared: that takes {CONTROL} and another arm.",
        },
        "predictions": {arm: points / 100 for arm, points in (due.predict or {}).items()},  # differences from it
        "budget": {
            "base_samples": due.base_samples,
            "particles": due.particles,
            "rounds": due.rounds,
            "samples_a_task_and_arm": a_play,
            "stop_at_first_pass": stop,
            "noise_runs": due.noise_runs,
            "share_round0": due.share_round0,
        },
        "calls": {**stages, "largest": largest} | ({"given": base} if due.rollouts else {}),
        "tokens": {"completion_largest": largest * identity["max_tokens"]},
        "power": {
            name: _planned_power(metric, int(n_given * all_fail), margin, max(family, 1), runs_compared(config, None))
            for name, all_fail in (("all", 1.0), ("half", 0.5), ("quarter", 0.25))
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


def one_of(seeds: int) -> str:
    """Why a run of several planned ones has no verdict by itself."""
    return f"one of {seeds} planned runs, whose verdict is drawn from all together"


def planned_seeds(seed: int, seeds: int) -> list[int]:
    """The seeds of so many planned runs, of which this is one: of two, 0 and 1, or 2 and 3. A seed has one such set
    alone, so that after a look at some runs there is no choice left of those that go with them."""
    first = seed - seed % seeds
    return list(range(first, first + seeds))


def _seeds_text(seed: int, seeds: int) -> str:
    named = listed([str(each) for each in planned_seeds(seed, seeds)])
    return (
        f"The verdict is drawn from {seeds} runs that differ in their seed alone, those of seeds {named}, together "
        "(report.py of all), and from none by itself: a task is one, whichever runs have it, and its plays are dealt "
        "out anew within each run. Nothing is better or worse where one run by itself says better and another one "
        f"worse. Equivalent takes a {EQUIVALENCE_LEVEL:.0%} interval of the difference over all of them within the "
        "margin, too."
    )


def _runs_text(runs: int) -> str:
    return (
        f"{CONTROL} on the tasks that both"
        if runs == 1
        else f"the mean of {runs} runs of {CONTROL} on the tasks that all"
    )


def _planned_power(metric: str, n: int, effect: float, family: int, runs: int) -> dict[str, float]:
    """The chance to see a true difference of the margin on n all-fail tasks: alone, and at Holm's first step."""
    out: dict[str, float] = {"tasks": n}
    for name, alpha in (("power", ALPHA), ("power_holm", ALPHA / family)):
        if metric == "rescue_rate":
            worth = int(n * stats.worth(runs))
            out[name] = stats.power_paired(worth, effect, max(PLAN_DISCORDANCE, effect), alpha=alpha)
        else:  # normal approximation: what spreads is a rate in steps of one sample, not a coin
            shift = effect * math.sqrt(n) / PLAN_SAMPLE_SD
            reach = NormalDist().inv_cdf(1 - alpha / 2)
            out[name] = NormalDist().cdf(shift - reach) + NormalDist().cdf(-shift - reach) if n else 0.0
    return out


def plan_digest(plan: Row) -> str:
    """SHA-256 of the plan as it was first written: everything but its amendments."""
    first = {key: value for key, value in plan.items() if key != "amendments"}
    return sha256(json.dumps(first, sort_keys=True, allow_nan=False).encode()).hexdigest()
