"""What happened: attempts in, the whole of results.json out. Pure: no clock, no disk, no network, no global random.

    results = measure(attempts, config, cards, checks, events, plan)      everything that the report prints
    curve = hill(score, passed, task, edges)                              does a score predict the pass it needs

One `Table` (table.py) is built in a single walk over the attempts. Each key of results.json is one function of it and
its name in SECTIONS. The keys of the published files are made by `published`, in points; all else are fractions,
intervals are [lo, hi], and what cannot be estimated is null beside its n.

Tasks are the unit. A task whose base group lacks an attempt is not all-fail; a task on which an arm still owes attempts
stays out of that arm's rates. Both are counted under `incomplete`. Every bootstrap and Monte Carlo draw starts from a
fresh generator of one fixed seed, so the same folder gives the same bytes and two arms that are swapped swap figures.

Left out here: the estimators (stats.py), which attempts are due and what will be concluded (plan.py), words and
pictures (report.py, page.py), reading the folder (records.py).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple, cast

import numpy as np

import stats
from figures.plan import (
    ALPHA,
    CONTROL,
    LEVEL,
    METRICS,
    POSITIVE_CONTROL,
    SCHEMA_VERSION,
    in_points,
    margins,
    plan_digest,
    primary_metric,
)
from figures.results import Results
from figures.table import GRADINGS, SLOT_SECONDS, Play, Table, tabulate
from grading.grade import LETTERS, OUTCOMES
from swarm import Attempt
from tasksets.task import Task
from telling.words import listed, of, plural, share

PASS = LETTERS["pass"]
TRUNCATED_WARNING = 0.10  # share of replies cut at max_tokens above which the figures describe the cap
RATING_BAND = 400  # rating points a band, in by_tag
TAG_VALUES = 12  # a tag with more values than that is told in bands, or not at all


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ── the published keys: points, rounded as published ─────────────────────────────────────────────────────────────


def _points(fraction: float, digits: int = 1) -> float | None:
    return None if fraction is None or math.isnan(fraction) else round(100 * fraction, digits)


def _published_verdict(n: int, lo: float, hi: float) -> str:
    """The published word, from the interval alone."""
    if n < 2 or math.isnan(lo):
        return "insufficient_data"
    return "b_better" if lo > 0 else "a_better" if hi < 0 else "no_difference_detected"


def published(t: Table) -> dict[str, Any]:
    """The keys of the published results files, with their meaning, units and rounding."""
    base = t.base
    identity = t.config["identity"]
    passes = base.passes.sum(axis=1)[base.done]
    arms: dict[str, Any] = {}
    for arm in t.arms:
        play = t.play(arm)
        use = t.given & play.done
        n = int(use.sum())
        rescued = play.rescued[use].astype(float)
        lo, hi = stats.bootstrap_ci(rescued, level=LEVEL, rng=_rng())
        first = play.first[use]
        drawn = int(play.drawn[use].sum())
        arms[arm] = {
            "rescue_rate": _points(rescued.mean() if n else math.nan),
            "ci": _points((hi - lo) / 2),
            "n": n,
            "by_round": [_points((first <= r).mean() if n else math.nan) for r in range(t.rounds)],
            "samples": drawn,
            "samples_per_task": round(drawn / n, 1) if n else None,
        }
    deltas: dict[str, Any] = {}
    for arm in t.others if CONTROL in t.arms else []:
        a, b = _rescues(t, arm)
        got = stats.compare_paired(a, b, level=LEVEL, method="bootstrap", rng=_rng())
        exact = stats.compare_paired(a, b, level=LEVEL, rng=_rng())
        deltas[arm] = {
            "vs": CONTROL,
            "delta": _points(got.delta),
            "ci95": [_points(got.lo), _points(got.hi)],
            "p_value": exact.p_value,
            "verdict": _published_verdict(got.n, got.lo, got.hi),
            "n_paired": got.n,
        }
    use, runs = _noise_runs(t)
    noise = None
    if runs is not None:
        band = stats.noise_band(runs, level=LEVEL)
        noise = {
            "runs": len(runs),
            "means": [_points(round(float(mean), 4)) if use.any() else None for mean in band.run_means],
            "run_std": _points(band.std_between, 2),
            "band": _points(band.band_t),
        }
    answered = t.columns["outcome"] != "context_overflow"
    return {
        "tasks": len(t.tasks),
        "all_fail": int(t.all_fail.sum()),
        "p0_histogram": np.bincount(passes, minlength=t.base_samples + 1).tolist(),
        "budget": {
            "G": t.base_samples,
            "N": t.particles,
            "R": t.rounds,
            "B": t.particles * t.rounds,
        },
        "arms": arms,
        "deltas": deltas,
        "noise": noise,
        "model": identity["model"],
        "seed": identity["seed"],
        "thinking": {"off": False, "on": True}.get(identity["thinking"], identity["thinking"]),
        "max_tokens": identity["max_tokens"],
        "no_comments": identity["no_comments"],
        "band": t.band,
        "family": identity["tasks"],
        "bundle": identity["bundle"] if identity["tasks"] == POSITIVE_CONTROL else None,
        "calls": int(answered.sum()),
        "truncated": int(t.columns["truncated"].sum()),
        "tokens": {
            "prompt": int(np.nansum(t.columns["prompt_tokens"])),
            "completion": int(np.nansum(t.columns["completion_tokens"])),
        },
        "seconds": None if t.seconds is None else round(t.seconds),
        "rescued_rows": len(_exported(t)),
    }


def _rescues(t: Table, arm: str) -> tuple[Any, Any]:
    """0/1 rescues of the control and of the arm, on the tasks where neither owes anything."""
    both = t.both(arm)
    return t.play(CONTROL).rescued[both].astype(float), t.play(arm).rescued[both].astype(float)


def _noise_runs(t: Table) -> tuple[Any, Any]:
    """The tasks that every noise run has finished, and their rescues (runs, tasks); None without a control."""
    if not t.reruns:
        return t.given, None
    use = t.given & np.logical_and.reduce([play.done for play in t.reruns])
    return use, np.array([play.rescued[use] for play in t.reruns], dtype=float)


def _exported(t: Table) -> set[tuple[int, int]]:
    """(task, program) of the distinct passing programs of the arms on all-fail tasks: what export writes."""
    found: set[tuple[int, int]] = set()
    for arm in t.arms:
        row = t.play(arm).row[t.all_fail]
        hits = row[t.of("passed", row, False).astype(bool)]
        found.update(zip(t.columns["task"][hits].tolist(), t.columns["program"][hits].tolist(), strict=True))
    return found


# ── sections: one function a key ─────────────────────────────────────────────────────────────────────────────────


def incomplete(t: Table) -> dict[str, Any]:
    """What an interrupted run still owes, and how many tasks stay out of each figure for it."""
    return {
        "base_tasks": int((~t.base.done).sum()),
        "base_owed": int(t.base.owed.sum()),
        "arms": {
            arm: {
                "tasks": int((t.given & ~t.play(arm).done).sum()),
                "owed_at_most": int(t.play(arm).owed[t.given].sum()),
            }
            for arm in t.arms
        },
        "noise_runs": [
            {"tasks": int((t.given & ~play.done).sum()), "owed_at_most": int(play.owed[t.given].sum())}
            for play in t.reruns[1:]
        ],
        "given": int(t.given.sum()),
        "duplicate_lines": t.duplicates,
    }


def intervals(t: Table) -> dict[str, Any]:
    """Rescue rate of each arm, as counts and fractions."""
    out = {}
    for arm in t.arms:
        play = t.play(arm)
        use = t.given & play.done
        rescued = play.rescued[use].astype(float)
        n, k = int(use.sum()), int(rescued.sum())
        out[arm] = {
            "n": n,
            "rescued": k,
            "rate": k / n if n else math.nan,
            "wilson": list(stats.proportion_ci(k, n, level=LEVEL)),
            "bootstrap": list(stats.bootstrap_ci(rescued, level=LEVEL, rng=_rng())),
            "first_pass_in_round": [int((play.first[use] == r).sum()) for r in range(t.rounds)],
        }
    return out


def _family_of_tests(t: Table, pairs: Mapping[str, tuple[Any, Any]], margin: float) -> dict[str, Any]:
    """Each arm against the control, Holm-adjusted over the arms. pairs: arm -> (control, arm), values a task."""
    compared = {arm: stats.compare_paired(a, b, level=LEVEL, rng=_rng()) for arm, (a, b) in pairs.items()}
    tested = [arm for arm, got in compared.items() if not math.isnan(got.p_value)]
    adjusted = dict(zip(tested, stats.holm([compared[arm].p_value for arm in tested]), strict=True))
    out = {}
    for arm, got in compared.items():
        a, b = pairs[arm]
        same = stats.equivalent(a, b, margin, alpha=ALPHA, rng=_rng())
        p_holm = float(adjusted.get(arm, math.nan))
        out[arm] = {
            "delta": got.delta,
            "interval": [got.lo, got.hi],
            "p": got.p_value,
            "p_holm": p_holm,
            "n": got.n,
            "margin": margin,
            "equivalence_interval": [same.lo, same.hi],
            "verdict": stats.verdict(got, p_holm, same.equivalent),
            "n_arm_only": got.n_b_only,
            "n_resample_only": got.n_a_only,
        }
    return out


def paired(t: Table) -> dict[str, Any]:
    """Rescue rate of each arm against the control on the same tasks: exact test, Holm, verdict at the margin."""
    if CONTROL not in t.arms:
        return {}
    margin = margins(t.config)["rescue_rate"]
    out = _family_of_tests(t, {arm: _rescues(t, arm) for arm in t.others}, margin)
    for row in out.values():
        row["equivalent_up_to"] = stats.equivalence_reach(row["n"], margin, ALPHA)
    finished, runs = _noise_runs(t)
    for arm in t.others:
        out[arm]["vs_all_resample"] = None
        if len(runs) > 1:
            use = finished & t.play(arm).done
            control = np.mean([play.rescued[use] for play in t.reruns], axis=0)
            got = stats.compare_paired(control, t.play(arm).rescued[use].astype(float), level=LEVEL, rng=_rng())
            out[arm]["vs_all_resample"] = {
                "runs": len(runs),
                "delta": got.delta,
                "interval": [got.lo, got.hi],
                "p": got.p_value,
                "n": got.n,
            }
    return out


def _rate_per_draw(play: Play, use: Any) -> Any:
    return play.passes[use].sum(axis=1) / np.maximum(play.drawn[use].sum(axis=1), 1)


def _ran_full(t: Table, arm: str) -> bool:
    """Whether the arm drew every round on every finished task, by the plan or because nothing stopped it."""
    play = t.play(arm)
    return bool(play.full[t.given & play.done].all())


def per_sample(t: Table) -> dict[str, Any]:
    """Passes per sample over full budgets, paired by task. Where an arm stopped early there is no such rate."""
    full = {arm: _ran_full(t, arm) for arm in t.arms}
    fair = [arm for arm in t.others if CONTROL in t.arms and full[arm] and full[CONTROL]]
    pairs = {
        arm: (_rate_per_draw(t.play(CONTROL), t.both(arm)), _rate_per_draw(t.play(arm), t.both(arm))) for arm in fair
    }
    tests = _family_of_tests(t, pairs, margins(t.config)["per_sample"])
    out: dict[str, Any] = {}
    for arm in t.arms:
        if not full[arm]:
            out[arm] = {"rate": None, "reason": "the arm stopped at its first pass; --full-budget gives this rate"}
            continue
        play, use = t.play(arm), t.given & t.play(arm).done
        rate = _rate_per_draw(play, use)
        out[arm] = {
            "rate": rate.mean() if len(rate) else math.nan,
            "interval": list(_rate_interval(rate)),
            "passes": int(play.passes[use].sum()),
            "samples": int(play.drawn[use].sum()),
            "n": int(use.sum()),
            "reason": None,
        }
        if arm in tests:
            paired_keys = {k: v for k, v in tests[arm].items() if not k.startswith("n_")}
            out[arm]["paired"] = paired_keys
        elif arm != CONTROL:
            out[arm]["paired"] = None
            out[arm]["reason"] = "the control stopped at its first pass" if CONTROL in t.arms else "no control"
    return out


def _rate_interval(rate: Any) -> stats.Interval:
    """Of the mean of a pass rate, one number a task. Tasks that are all 0 or all 1 count as so many draws of one share:
    their bootstrap would have no width, which is not knowledge."""
    if len(set(rate.tolist())) > 1:
        return stats.bootstrap_ci(rate, level=LEVEL, rng=_rng())
    if len(rate) and rate[0] in (0, 1):
        return stats.proportion_ci(int(rate.sum()), len(rate), level=LEVEL)
    return stats.Interval(math.nan, math.nan)


def per_draw_stopped(t: Table) -> dict[str, Any] | None:
    """Passes per draw as published, where arms stopped early: stopping at a pass inflates it."""
    if all(_ran_full(t, arm) for arm in t.arms):
        return None
    out: dict[str, Any] = {"label": "inflated: an arm that stops at its first pass draws less where it passes"}
    for arm in t.arms:
        play, use = t.play(arm), t.given & t.play(arm).done
        rate = _rate_per_draw(play, use)
        out[arm] = {
            "rate": rate.mean() if len(rate) else math.nan,
            "n": int(use.sum()),
            "stopped_tasks": int((~play.full[use]).sum()),
        }
        if arm != CONTROL and CONTROL in t.arms:
            both = t.both(arm)
            got = stats.compare_paired(
                _rate_per_draw(t.play(CONTROL), both), _rate_per_draw(play, both), level=LEVEL, rng=_rng()
            )
            out[arm] |= {"delta": got.delta, "interval": [got.lo, got.hi], "p": got.p_value}
    return out


def noise(t: Table) -> dict[str, Any]:
    """Beside the published keys: the band from replicate variance, and which deltas clear which band."""
    use, runs = _noise_runs(t)
    if runs is None or len(runs) < 2:
        return {"n": int(use.sum()), "runs": 0 if runs is None else len(runs), "clears": {}}
    band = stats.noise_band(runs, level=LEVEL)
    clears = {}
    for arm in t.others:
        delta = abs(stats.compare_paired(*_rescues(t, arm), level=LEVEL, rng=_rng()).delta)
        clears[arm] = {
            name: bool(delta > width) if width > 0 and not math.isnan(delta) else None  # runs alike span no band
            for name, width in (("band_t", band.band_t), ("band_within", band.band_within))
        }
    return {
        "n": int(use.sum()),
        "rescued": runs.sum(axis=1).astype(int).tolist(),
        "band_t": band.band_t,
        "std_between": band.std_between,
        "band_within": band.band_within,
        "std_within": band.std_within,
        "q": band.q,
        "q_df": band.q_df,
        "q_p": band.q_p,
        "clears": clears,
    }


def pooled(t: Table) -> dict[str, Any]:
    """Tasks that at least one run rescued. A pass counts although its arm still owes attempts."""
    arms = np.logical_or.reduce([t.play(arm).rescued for arm in t.arms]) & t.given
    runs = np.logical_or.reduce([arms, *(play.rescued & t.given for play in t.reruns)])
    n = int(t.given.sum())
    owing = ~np.logical_and.reduce([play.done for play in [*map(t.play, t.arms), *t.reruns]])

    def found(rescued: Any) -> dict[str, Any]:
        k = int(rescued.sum())
        return {"rescued": k, "share": k / n if n else math.nan, "wilson": list(stats.proportion_ci(k, n))}

    rows = _exported(t)
    return {
        "n": n,
        "runs": len(t.arms) + max(len(t.reruns) - 1, 0),
        "all_runs": found(runs),
        "arms_alone": found(arms),
        "rows": len(rows),
        "rows_tasks": len({task for task, _ in rows}),
        "incomplete_tasks": int((owing & t.given).sum()),
    }


PASS_SHARES = ("none", "under_20", "20_to_80", "over_80", "all")


def _spread(passes: Any, drawn: Any) -> dict[str, int]:
    """Tasks by share of passes; the band from 20 to 80% includes its ends."""
    passes, drawn = passes[drawn > 0], drawn[drawn > 0]
    place = np.select([passes == 0, passes == drawn, 5 * passes < drawn, 5 * passes > 4 * drawn], [0, 4, 1, 3], 2)
    return dict(zip(PASS_SHARES, np.bincount(place, minlength=5).tolist(), strict=True))


def training_set(t: Table) -> dict[str, Any]:
    """How the set that a selector keeps moves with the extra samples.

    On-policy is what answers the bare prompt of the base group; refined attempts are not, and stand apart.
    """
    c = t.columns
    rows = t.base.row[:, 0]
    bare = np.where(rows >= 0, t.of("prompt", rows, -1), -1).max(axis=1, initial=-1)  # (tasks,)
    unled = np.array([parent is None for parent in c["parent"]], dtype=bool)
    fresh = unled & (c["prompt"] == bare[c["task"]])
    done = t.base.done
    count = len(t.tasks)

    def spread(rows: Any) -> dict[str, int]:
        drawn = np.bincount(c["task"][rows], minlength=count)[done]
        passes = np.bincount(c["task"][rows], weights=c["passed"][rows], minlength=count).astype(int)[done]
        return _spread(passes, drawn)

    base = t.base
    first_two = t.of("passed", base.row[done, 0, :2], False)
    pairs = len(first_two) if t.base_samples > 1 else 0
    disagree = int((first_two[:, 0] != first_two[:, 1]).sum()) if pairs else 0
    return {
        "n": int(done.sum()),
        "base": _spread(base.passes.sum(axis=1)[done], base.drawn.sum(axis=1)[done]),
        "on_policy": spread(fresh),
        "with_refined": spread(np.ones(len(fresh), dtype=bool)),
        "first_two_disagree": {
            "n": pairs,
            "count": disagree,
            "share": disagree / pairs if pairs else math.nan,
            "wilson": list(stats.proportion_ci(disagree, pairs)),
        },
    }


def outcomes(t: Table) -> dict[str, Any]:
    """How attempts ended, by arm: names that add up to the attempts, and replies that say something is off."""
    c = t.columns
    out = {}
    groups: dict[str, list[int]] = {}
    for code, (arm, rerun) in enumerate(t.runs):
        groups.setdefault(f"{arm} re-runs" if rerun else arm, []).append(code)
    for name in _arms_first(t, groups):
        rows = np.flatnonzero(np.isin(c["run"], groups[name]))
        n = len(rows)
        by_name = Counter(c["outcome"][rows].tolist())
        ranked = sorted(
            by_name, key=lambda outcome: (list(LETTERS).index(outcome) if outcome in LETTERS else 99, outcome)
        )
        cut = int(c["truncated"][rows].sum())
        drawn = rows[c["outcome"][rows] != "context_overflow"]
        distinct = len(set(zip(c["task"][drawn].tolist(), c["reply"][drawn].tolist(), strict=True)))
        out[name] = {
            "n": n,
            "counts": {outcome: by_name[outcome] for outcome in ranked},
            "truncated": cut,
            "truncated_share": cut / n if n else math.nan,
            "cut_while_thinking": int(c["thinking"][rows].sum()),
            "empty": int(c["empty"][rows].sum()),
            "identical": len(drawn) - distinct,  # replies that repeat another one on the same task
        }
    return out


def _arms_first(t: Table, names: Iterable[str]) -> list[str]:
    """base, round0, the arms in the plan's order, then everything else by name."""
    order = ["base", "round0", *t.arms]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def coverage(t: Table) -> dict[str, Any]:
    """Share of tasks with a pass after 1..B samples.

    `pass_at_k`: the unbiased estimate from all B draws, where those are exchangeable (resample on full budgets).
    `by_round`: k samples are spent as the arm spends them, whole rounds first and then any j of the next one; right for
    arms that refine, and where arms stop. Wilson intervals around the mean share, widened to whole tasks.
    """
    out = {}
    for arm in t.arms:
        play, use = t.play(arm), t.given & t.play(arm).done
        n, full = int(use.sum()), _ran_full(t, arm)
        if arm == CONTROL and full:
            drawn, passes = play.drawn[use].sum(axis=1), play.passes[use].sum(axis=1)
            curves = [stats.pass_at_k(drawn, passes, k) for k in range(1, t.particles * t.rounds + 1)]
        else:
            before = np.zeros(n, dtype=bool)
            curves = []
            for r in range(t.rounds):
                passes = play.passes[use, r]
                curves += [
                    np.where(before, 1.0, stats.pass_at_k(np.full(n, t.particles), passes, j))
                    for j in range(1, t.particles + 1)
                ]
                before = before | (passes > 0)
        count = np.array([curve.sum() for curve in curves]) if n else np.zeros(len(curves))
        lo = stats.proportion_ci(np.floor(count + 1e-9), n, level=LEVEL).lo
        hi = stats.proportion_ci(np.ceil(count - 1e-9), n, level=LEVEL).hi
        out[arm] = {
            "n": n,
            "method": "pass_at_k" if arm == CONTROL and full else "by_round",
            "share": (count / n).tolist() if n else [math.nan] * len(curves),
            "interval": [list(pair) for pair in zip(lo.tolist(), hi.tolist(), strict=True)],
        }
    return out


def _active(t: Table, arm: str, r: int) -> Any:
    """(tasks,) bool: given to the arms, and round r drawn by the arm and the control alike.

    Where either of them stops at its first pass, only tasks that neither had solved before: what one arm's luck takes
    away is taken from both.
    """
    one, two = t.play(arm), t.play(CONTROL) if CONTROL in t.arms else t.play(arm)
    drawn = (one.drawn[:, : r + 1] == t.particles) & (two.drawn[:, : r + 1] == t.particles)
    use = t.given & one.done & two.done & drawn.all(axis=1)
    if not (_ran_full(t, arm) and (CONTROL not in t.arms or _ran_full(t, CONTROL))):
        use = use & ~one.passes[:, :r].any(axis=1) & ~two.passes[:, :r].any(axis=1)
    return use


class _Round(NamedTuple):
    """A round on some tasks, a number a task: means over its programs."""

    best: Any  # best-so-far fitness of a particle
    shown: Any  # programs that pass every visible test
    hidden: Any  # hidden tests passed, none for a program that fails a visible test
    programs: int  # all of the round
    shown_programs: int
    passed: int
    among: list[float]  # share of hidden tests passed, of each program that passes every visible test


def _round(t: Table, play: Play, use: Any, r: int) -> _Round:
    row = play.row[use]
    best = t.of("fitness", row[:, : r + 1], 0.0).max(axis=1, initial=0.0)
    shown = t.of("shown", row[:, r], False).astype(bool)
    hidden = np.where(shown, t.of("hidden", row[:, r], math.nan), 0.0)
    return _Round(
        best.mean(axis=1),
        shown.mean(axis=1),
        np.nan_to_num(hidden).mean(axis=1),
        int((row[:, r] >= 0).sum()),
        int(shown.sum()),
        int(t.of("passed", row[:, r], False).sum()),
        hidden[shown & ~np.isnan(hidden)].tolist(),
    )


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _mean_interval(values: Any) -> dict[str, Any]:
    """Mean over tasks and its bootstrap interval; none where every task says the same."""
    values = stats.settled(values, scale=1.0)  # differences of shares
    lo, hi = stats.bootstrap_ci(values, level=LEVEL, rng=_rng())
    same = len(values) > 0 and bool(np.all(values == values[0]))
    return {"mean": _mean(values), "interval": [math.nan, math.nan] if same else [lo, hi]}


def climb(t: Table) -> dict[str, Any]:
    """Do programs climb the tests they are shown, and do the hidden tests follow.

    `moved` is the last round that still has active tasks against round 0, a number a task: the share of programs that
    pass every visible test (shown), and the mean share of hidden tests passed, nothing for a program that fails a
    visible test (hidden). A pass moves both alike, so gap = shown - hidden is the climb that the hidden tests do not
    follow. `against_resample` takes the control's movement on the same tasks off: what the arm adds to fresh draws.
    """
    out: dict[str, dict[str, Any]] = {}
    for arm in t.arms:
        play = t.play(arm)
        control = t.play(CONTROL) if CONTROL in t.arms else None
        rounds, last = [], 0
        for r in range(t.rounds):
            use = _active(t, arm, r)
            raw, mine = _round(t, play, t.given & play.done, r), _round(t, play, use, r)
            if use.any():
                last = r
            against = control is not None and arm != CONTROL
            active = {
                "tasks": int(use.sum()),
                "arm": _climbed(mine),
                "resample": _climbed(_round(t, control, use, r)) if control is not None and against else None,
            }
            rounds.append(
                {
                    "round": r,
                    "programs": raw.programs,
                    "all_visible": raw.shown_programs,
                    "all_visible_share": raw.shown_programs / raw.programs if raw.programs else math.nan,
                    "passed": raw.passed,
                    "active": active,
                }
            )
        out[arm] = {"rounds": rounds, "moved": None, "against_resample": None}
        if not last:
            continue
        use = _active(t, arm, last)
        own = _movement(t, play, use, last)
        out[arm]["moved"] = {"from_round": 0, "to_round": last, "n": int(use.sum())} | {
            name: _mean_interval(values) for name, values in own.items()
        }
        if control is not None and arm != CONTROL:
            theirs = _movement(t, control, use, last)
            out[arm]["against_resample"] = {name: _mean_interval(own[name] - theirs[name]) for name in own}
    return out


def _climbed(this: _Round) -> dict[str, Any]:
    return {
        "best_fitness": _mean(this.best),
        "shown": _mean(this.shown),
        "hidden": _mean(this.hidden),
        "hidden_among_shown": _mean(this.among),
        "shown_programs": this.shown_programs,
    }


def _movement(t: Table, play: Play, use: Any, last: int) -> dict[str, Any]:
    start, end = _round(t, play, use, 0), _round(t, play, use, last)
    shown, hidden = end.shown - start.shown, end.hidden - start.hidden
    return {"shown": shown, "hidden": hidden, "gap": shown - hidden}


def signal(t: Table) -> dict[str, Any]:
    """What a refine prompt had to offer: how often the own best was at zero, and how often the other's was higher."""
    out = {}
    fitness = t.columns["fitness"]
    for arm in t.arms:
        rows = t.play(arm).row[t.given].ravel()
        prompts = zero = paired_prompts = better = 0
        for row in rows[rows >= 0].tolist():
            parent, social = t.columns["parent"][row], t.columns["social"][row]
            own = t.shown.get((int(t.columns["task"][row]), parent)) if parent else None
            if own is None:
                continue
            prompts += 1
            zero += fitness[own] == 0
            other = t.shown.get((int(t.columns["task"][row]), social)) if social else None
            if other is not None:
                paired_prompts += 1
                better += fitness[other] > fitness[own]
        out[arm] = {
            "refine_prompts": prompts,
            "own_zero": int(zero),
            "own_zero_share": zero / prompts if prompts else math.nan,
            "with_neighbour": paired_prompts,
            "neighbour_better": int(better),
            "neighbour_better_share": better / paired_prompts if paired_prompts else math.nan,
        }
    return out


def anchoring(t: Table) -> dict[str, Any]:
    """How far programs move from where their particle began, and how far they lie apart from each other.

    Similarity is the Dice overlap of two programs' stripped lines as multisets: 1 for the same lines, 0 for none in
    common. Means over tasks of means over programs; attempts without a program are left out.
    """
    return {arm: [_apart(t, t.play(arm), r) for r in range(t.rounds)] for arm in t.arms}


def _overlaps(lines: list[Any]) -> Any:
    """(n, n) Dice overlaps of n programs as sets of numbered lines: one product of 0/1 rows."""
    sizes = np.array([len(one) for one in lines])
    place = np.concatenate([np.asarray(one, dtype=np.int64) for one in lines])
    marks = np.zeros((len(lines), int(place.max(initial=-1)) + 1), dtype=np.float32)
    marks[np.repeat(np.arange(len(lines)), sizes), place] = 1
    total = sizes[:, None] + sizes[None, :]
    return np.where(total > 0, 2 * (marks @ marks.T) / np.maximum(total, 1), 1.0)


def _apart(t: Table, play: Play, r: int) -> dict[str, Any]:
    to_own, among, distinct, signatures, share_repeats = [], [], [], [], []
    programs = repeats = 0
    program = t.columns["program"]
    for task in np.flatnonzero(t.given & (play.drawn[:, r] > 0)):
        here, first = play.row[task, r], play.row[task, 0]
        now = [i for i, row in enumerate(here) if row >= 0 and program[row] >= 0]
        if not now:
            continue
        own = [i for i in now if r and first[i] >= 0 and program[first[i]] >= 0]
        both = _overlaps([t.lines[here[i]] for i in now] + [t.lines[first[i]] for i in own])
        if own:
            to_own.append(np.mean([both[now.index(i), len(now) + j] for j, i in enumerate(own)]))
        if len(now) > 1:
            upper = np.triu_indices(len(now), 1)
            among.append(both[: len(now), : len(now)][upper].mean())
        earlier = play.row[task, :r].ravel()
        known = set(program[earlier[earlier >= 0]].tolist())
        repeated = sum(int(program[here[i]]) in known for i in now)
        programs, repeats = programs + len(now), repeats + repeated
        share_repeats.append(repeated / len(now))
        distinct.append(len({int(program[here[i]]) for i in now}))
        signatures.append(len({t.columns["signature"][here[i]] for i in now}))
    return {
        "round": r,
        "tasks": len(distinct),
        "programs": programs,
        "to_own_first": _mean(to_own),
        "exact_repeats": repeats,  # programs that the arm wrote on this task in an earlier round already
        "exact_repeats_share": _mean(share_repeats),
        "diversity": 1 - _mean(among),
        "distinct_programs": _mean(distinct),
        "distinct_signatures": _mean(signatures),
    }


def near_miss(t: Table) -> dict[str, Any]:
    """All-fail tasks on which some base attempt passed a visible test: where fitness has a slope to offer."""
    best = t.best_base[t.near_miss]
    n, whole = len(best), int(t.all_fail.sum())
    half = int(t.of("half", t.base.row[t.near_miss], False).any(axis=(1, 2)).sum())
    return {
        "all_fail": whole,
        "near_miss": n,
        "share": n / whole if whole else math.nan,
        "mean_best_fitness": _mean(best),
        "at_least_half": half,
        "at_least_half_share": half / n if n else math.nan,
    }


def unrescued(t: Table) -> dict[str, Any]:
    """How close the tasks came that no arm rescued: the best fitness of any attempt, base group and arms together."""
    plays = [t.base, *(t.play(arm) for arm in t.arms)]
    done = np.logical_and.reduce([play.done for play in plays])
    none = t.given & done & ~np.logical_or.reduce([play.rescued for play in plays])
    best = np.maximum.reduce([t.of("fitness", play.row[none], 0.0).max(axis=(1, 2), initial=0.0) for play in plays])
    zero = int((best == 0).sum())
    return {
        "n": len(best),
        "mean_best_fitness": _mean(best),
        "at_zero": zero,
        "at_zero_share": zero / len(best) if len(best) else math.nan,
    }


def by_task(t: Table) -> dict[str, Any]:
    """What each task brought: all that is needed to pool several runs by task.

    base: passes of a whole base group, else null. arms and reruns only where the task was given to the arms; round is
    that of the first pass.
    """
    base = t.base

    def played(play: Play, i: int) -> dict[str, Any]:
        passes = int(play.passes[i].sum())
        return {
            "passes": passes,
            "drawn": int(play.drawn[i].sum()),
            "round": int(play.first[i]) if passes else None,
            "done": bool(play.done[i]),
        }

    plays = {arm: t.play(arm) for arm in t.arms}
    out: dict[str, Any] = {}
    for i, task in enumerate(t.tasks):
        row: dict[str, Any] = {
            "base": int(base.passes[i].sum()) if base.done[i] else None,
            "drawn": int(base.drawn[i].sum()),
        }
        if t.given[i]:
            row["arms"] = {arm: played(play, i) for arm, play in plays.items()}
            row["reruns"] = [played(play, i) for play in t.reruns[1:]]
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


def by_tag(t: Table) -> dict[str, Any]:
    """Rescues by tag (rating band, split, your own)."""
    out: dict[str, Any] = {}
    for name, of_task in tag_values(t.tags).items():
        rows = {}
        for value in sorted(set(of_task.values()), key=_natural):
            mine = np.array([of_task.get(task) == value for task in t.tasks])
            rows[value] = {
                "tasks": int(mine.sum()),
                "all_fail": int((mine & t.all_fail).sum()),
                "given": int((mine & t.given).sum()),
                "arms": {
                    arm: {
                        "n": int((mine & t.given & t.play(arm).done).sum()),
                        "rescued": int((mine & t.given & t.play(arm).done & t.play(arm).rescued).sum()),
                    }
                    for arm in t.arms
                },
            }
        out[name] = rows
    return out


def _bands(of_task: Mapping[str, str]) -> dict[str, str]:
    """Numbers in bands of RATING_BAND; nothing where a value is no number."""
    try:
        low = {task: int(float(value)) // RATING_BAND * RATING_BAND for task, value in of_task.items()}
    except (ValueError, OverflowError):
        return {}
    return {task: f"{at}-{at + RATING_BAND - 1}" for task, at in low.items()}


def _natural(text: str) -> tuple[float, str]:
    """Sorts "800-1199" before "1200-1599", and words after numbers."""
    digits = re.match(r"-?\d+", text)
    return (float(digits.group()) if digits else math.inf, text)


def power(t: Table) -> dict[str, Any]:
    """What these tasks could have shown: a true difference of the margin in the rescue rate.

    Arms that differ by the margin disagree on at least so many tasks, so the discordance assumed is the observed one or
    the margin, whichever is larger.
    """
    margin, out = margins(t.config)["rescue_rate"], {}
    for arm in t.others if CONTROL in t.arms else []:
        a, b = _rescues(t, arm)
        n, apart = len(a), int((a != b).sum())
        psi = max(apart / n, margin) if n else math.nan
        out[arm] = {
            "n": n,
            "discordant": apart,
            "discordance": apart / n if n else math.nan,
            "wilson": list(stats.proportion_ci(apart, n, level=LEVEL)),
            "effect": margin,
            "discordance_assumed": psi,
            "tasks_needed": stats.sample_size(margin, discordance=psi) if n else None,
            "power": stats.power_paired(n, margin, psi, alpha=ALPHA) if n else math.nan,
            "power_holm": stats.power_paired(n, margin, psi, alpha=ALPHA / len(t.others)) if n else math.nan,
        }
    return out


def cost(t: Table) -> dict[str, Any]:
    """What was paid, by stage and by arm. Equal samples are not equal cost: refine prompts carry programs.

    An arm's row counts all that it was given, a shared round 0 included, since each arm would have paid for it; stages
    count every attempt once and add up to the total.
    """
    c = t.columns
    price = t.config.get("price")
    stage = np.array(["base" if a == "base" else "noise_runs" if k else "arms" for a, k in t.runs] or [""])[c["run"]]
    arms = {}
    for arm in t.arms:
        row = t.play(arm).row[t.given].ravel()
        bill = _bill(t, row[row >= 0], price)
        rescued = int((t.given & t.play(arm).rescued).sum())
        paid = bill["prompt_tokens"] + bill["completion_tokens"]
        bill["rescued"] = rescued
        bill["rescues_per_million_tokens"] = rescued / paid * 1e6 if paid and not bill["tokens_unknown"] else math.nan
        arms[arm] = bill
    stages = {name: _bill(t, np.flatnonzero(stage == name), price) for name in ("base", "arms", "noise_runs")}
    events = t.events
    # A request that nothing closes was under way when its process ended: who had it may have charged for it.
    unclosed = events["sent"] - sum(events[name] for name in ("answered", "retry", "refused", "fault"))
    return {
        "total": _bill(t, np.arange(len(c["run"])), price),
        "stages": stages,
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
        "gradings": {name: int(events[name]) for name in GRADINGS} if events["graded"] else None,
        "wall_seconds": t.seconds,
    }


def _slots(events: Counter[str]) -> dict[str, float] | None:
    """Shares of the endpoint's slot-time: busy; idle before a retry, for the grader's sake, with nothing to ask."""
    seconds = [events[name] for name in SLOT_SECONDS]
    if not sum(seconds):
        return None
    return dict(
        zip(("busy", "retrying", "grader", "nothing_to_ask"), (float(s / sum(seconds)) for s in seconds), strict=True)
    )


def _bill(t: Table, rows: Any, price: Any) -> dict[str, Any]:
    c = t.columns
    answered = rows[c["outcome"][rows] != "context_overflow"]  # a prompt refused as too long costs nothing
    given, made = c["prompt_tokens"][answered], c["completion_tokens"][answered]
    known = ~(np.isnan(given) | np.isnan(made))
    prompt, completion = int(np.nansum(given)), int(np.nansum(made))
    return {
        "calls": len(answered),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "tokens_unknown": int((~known).sum()),  # replies whose server did not say
        "usd": (prompt * price[0] + completion * price[1]) / 1e6 if price and known.all() else None,
        "cpu_seconds": float(c["cpu_seconds"][rows].sum()),
        "latency_seconds": float(c["latency_seconds"][rows].sum()),
    }


def warnings(t: Table) -> list[str]:
    """What a reader must know before any figure, in words; empty where nothing is off."""
    out = []
    if not t.tasks:
        return ["There is no task in this run."]
    owing = incomplete(t)
    if owing["base_tasks"]:
        lack, them = ("lacks", "it") if owing["base_tasks"] == 1 else ("lack", "them")
        lacking = f"{of(owing['base_tasks'], len(t.tasks), 'task')} {lack} base attempts"
        out.append(f"{lacking}: no rate and no exported row counts {them}.")
    for arm, row in owing["arms"].items():
        if row["tasks"]:
            lean = "" if t.full_budget else ": they lean towards tasks rescued early, and so finished early"
            left = f"{arm} still owes attempts on {of(row['tasks'], owing['given'], 'task')}"
            out.append(f"{left}, which its rates leave out{lean}.")
    for k, row in enumerate(owing["noise_runs"], 1):
        if row["tasks"]:
            left = plural(row["tasks"], "task")
            out.append(f"Noise run {k} still owes attempts on {left}, which the bands leave out.")
    if t.base.done.any() and not t.all_fail.any():
        out.append("No task is all-fail: every one has a pass in its base group, so there is nothing to rescue.")
    elif t.all_fail.any() and not t.given.any():
        out.append("No all-fail task is in the near-miss band, so the arms were given nothing.")
    elif int(t.given.sum()) == 1:
        out.append("Only 1 task was given to the arms: an interval is not meaningful with 1 task.")
    cut = []
    for arm, row in outcomes(t).items():
        name = "the base group" if arm == "base" else arm
        if overflowed := row["counts"].get("context_overflow"):
            out.append(
                f"{name}: {overflowed} of {row['n']} prompts did not fit the server's context and count as failures; "
                "serve a longer context, or lower --max-tokens in another --out."
            )
        if row["truncated"] > TRUNCATED_WARNING * row["n"]:
            cut.append(f"{of(row['truncated'], row['n'])} of {name}")
        if row["identical"] > row["n"] / 2:
            out.append(
                f"{name}: {row['identical']} of {row['n']} replies repeat another one on the same task; "
                "does the server act on temperature and seed?"
            )
    if cut:
        out.append(
            f"Replies were cut at max_tokens, {listed(cut)}: their figures tell of that limit as much as of the model. "
            "A larger --max-tokens makes another experiment, so it needs another --out."
        )
    if t.duplicates:
        twice = "attempt stands" if t.duplicates == 1 else "attempts stand"
        out.append(f"{t.duplicates} {twice} in the records twice; the first of each counts.")
    _, runs = _noise_runs(t)
    if runs is not None and len(runs) > 1 and runs.shape[1] and len(set(runs.sum(axis=1).tolist())) == 1:
        out.append(
            f"All {len(runs)} runs of {CONTROL} rescued as many tasks: a spread of zero is no evidence of a band of "
            "zero."
        )
    return out


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────


def verdict(t: Table) -> dict[str, Any]:
    """The plan's rule applied, and whether the plan came first. What was decided after a sample is exploratory."""
    metric = primary_metric(t.config)
    margin = margins(t.config)[metric]
    section = paired(t) if metric == "rescue_rate" else {a: row.get("paired") for a, row in per_sample(t).items()}
    rows = {arm: row for arm in t.others if (row := section.get(arm))}
    words = {arm: row["verdict"] for arm, row in rows.items()}
    why: list[str] = []
    times = t.columns["time"]
    first = float(times.min()) if len(times) else math.nan
    if t.plan is None:
        why.append("no plan was written before the first sample")
    else:
        written = t.plan.get("written")
        if written is None or (len(times) and float(written) > first):
            why.append("the plan was written after the first sample")
        if t.config.get("plan_digest") != plan_digest(t.plan):
            why.append("the plan is not the one whose digest stands in config.json")
        if t.plan["primary_metric"] != metric:
            why.append(f"the primary metric was {t.plan['primary_metric']} in the plan and is {metric} now")
        if t.plan["margin"] != margin:
            why.append(f"the margin was {in_points(t.plan['margin'])} in the plan and is {in_points(margin)} now")
        before, now = t.plan["settings"], t.config["plan"]
        moved = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if moved:
            why.append(f"changed since the plan was written: {', '.join(moved)}")
    owing = incomplete(t)
    late = owing["base_tasks"] + sum(row["tasks"] for row in owing["arms"].values())
    if late:  # what is finished first is no fair choice, and whoever may stop when it looks well will see it look well
        why.append("the run is not finished")
    n = {arm: row["n"] for arm, row in rows.items()}
    return {
        "primary_metric": metric,
        "margin": margin,
        "planned": t.plan is not None and not why,
        "exploratory": why,
        "arms": words,
        "sentence": "So far, and no verdict by the plan: " * bool(late and any(n.values()))
        + _sentence(t, metric, margin, words, n),
    }


def _sentence(t: Table, metric: str, margin: float, words: Mapping[str, str], n: Mapping[str, int]) -> str:
    """What the rule allows to be said, and nothing beyond it."""
    name = METRICS[metric].split(":")[0]
    if not t.given.any():
        return "No task was given to the arms, so there is nothing to compare."
    if CONTROL not in t.arms:
        return f"Without the {CONTROL} arm there is nothing to compare with."
    if not t.others:
        return f"Only {CONTROL} was played, so there is nothing to compare."
    if not words or not any(n.values()):
        return f"No task is finished by {CONTROL} and another arm, so nothing can be compared yet."
    said = {word: [arm for arm in words if words[arm] == word] for word in stats.VERDICTS}
    parts = []
    if said["better"]:
        parts.append(f"{listed(said['better'])} found more than {CONTROL} by {name}.")
    if said["worse"]:
        parts.append(f"{listed(said['worse'])} found less than {CONTROL} by {name}.")
    if said["equivalent"]:
        parts.append(f"{listed(said['equivalent'])} found as much as {CONTROL} within {in_points(margin)} by {name}.")
    if said["inconclusive"]:
        parts.append(
            f"{listed(said['inconclusive'])} against {CONTROL}: inconclusive by {name}. These tasks do not "
            f"show a difference, and do not rule out one as large as {in_points(margin)}."
        )
    return " ".join(part[0].upper() + part[1:] for part in parts)


# ── all of it ──────────────────────────────────────────────────────────────────────────────────────────────────────

SECTIONS: dict[str, Callable[[Table], Any]] = {
    "verdict": verdict,
    "incomplete": incomplete,
    "intervals": intervals,
    "paired": paired,
    "per_sample": per_sample,
    "per_draw_stopped": per_draw_stopped,
    "noise": noise,
    "coverage": coverage,
    "climb": climb,
    "signal": signal,
    "anchoring": anchoring,
    "near_miss": near_miss,
    "unrescued": unrescued,
    "pooled": pooled,
    "training_set": training_set,
    "by_tag": by_tag,
    "by_task": by_task,
    "outcomes": outcomes,
    "power": power,
    "cost": cost,
    "warnings": warnings,
}


def measure(
    attempts: Iterable[Attempt],
    config: Mapping[str, Any],
    cards: Iterable[Mapping[str, Any] | Task] = (),
    checks: Iterable[Mapping[str, Any]] = (),
    events: Iterable[Mapping[str, Any]] = (),
    plan: Mapping[str, Any] | None = None,
) -> Results:
    """All of results.json. `attempts` is walked once; `config["grades"]` may name a regrade, then `checks` decide."""
    grades, kept = str(config.get("grades") or "attempts"), list[str]()
    t = tabulate(graded(attempts, checks, config, kept), config, cards, events, plan)
    results: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **published(t)}
    for name, section in SECTIONS.items():
        value = section(t)
        results[name] = {**(results[name] or {}), **value} if name in results else value
    if kept:
        results["warnings"].append(
            f"Not in {grades}: {plural(len(kept), 'attempt')} on {plural(len(set(kept)), 'task')}, which count with "
            "the grade of their time; --regrade brings all under one."
        )
    results["grades"] = grades
    results["tier"] = config.get("tier")
    results["graded_under"] = config.get("graded_under") if grades == "attempts" else None
    results["identity"] = dict(config.get("identity", {}))
    results["dry_run"] = bool(config.get("dry_run"))
    return cast(Results, _plain(results))  # tests hold each key to its type


def _plain(value: Any) -> Any:
    """Plain Python for JSON: numpy scalars unwrapped, nan and infinities null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def graded(
    attempts: Iterable[Attempt],
    checks: Iterable[Mapping[str, Any]],
    config: Mapping[str, Any],
    kept: list[str] | None = None,
) -> Iterator[Attempt]:
    """The attempts under the grades that config.json names: their own, or those of a regrade (see regraded)."""
    grades = config.get("grades") or "attempts"
    return iter(attempts) if grades == "attempts" else regraded(attempts, checks, grades, kept)


def regraded(
    attempts: Iterable[Attempt], checks: Iterable[Mapping[str, Any]], name: str, kept: list[str] | None = None
) -> Iterator[Attempt]:
    """The attempts with the grades that the checks `name`/visible and `name`/hidden give their programs.

    A check is found by task and SHA-256 of the program. An attempt without a program keeps its outcome. One whose
    program has no such check (made after the regrade, or its task is gone) keeps its own grade, and its task is
    appended to `kept`. Hidden letters count only where every visible test passed, as when grading.
    """
    parts = {f"{name}/visible": 0, f"{name}/hidden": 1}
    letters: dict[tuple[str, str], list[tuple[str, float] | None]] = {}
    for check in checks:
        if check["tests"] in parts:
            row = letters.setdefault((check["task_id"], check["program"]), [None, None])
            row[parts[check["tests"]]] = check["letters"], float(check.get("cpu_seconds") or 0.0)
    for a in attempts:
        if a.code is None:
            yield a
            continue
        program = sha256(a.code.encode("utf-8", "surrogatepass")).hexdigest()
        seen, unseen = letters.get((a.task_id, program), [None, None])
        whole = seen is not None and set(seen[0]) <= {PASS}
        if seen is None or (whole and a.hidden_total and unseen is None):
            if kept is not None:
                kept.append(a.task_id)
            yield a
            continue
        visible, seconds = seen
        hidden, more = unseen if whole and unseen is not None else ("", 0.0)
        failed = [letter for letter in visible + hidden if letter != PASS]
        yield replace(
            a,
            fitness=visible.count(PASS) / len(visible) if visible else a.fitness,
            visible_passed=visible.count(PASS),
            visible_total=len(visible),
            hidden_passed=hidden.count(PASS),
            hidden_total=len(hidden) or a.hidden_total,
            passed=not failed,
            outcome=OUTCOMES[failed[0]] if failed else "pass",
            visible_tests=visible,
            hidden_tests=hidden,
            cpu_seconds=seconds + more,
        )


# ── is the fitness a hill ────────────────────────────────────────────────────────────────────────────────────────

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


def hill(score: Any, passed: Any, task: Any, edges: Any = EDGES, ends: bool = True) -> dict[str, Any]:
    """Does a score predict the pass it needs: the curve by bucket, the AUCs, and one word by RULE.

    score: (n,) in [0, 1]; passed: (n,) 0/1; task: (n,) whose program it is; edges, ends: as in
    `stats.calibration_table` (the top bucket is its last row). The word is one of `cliff`, `hill`, `noise`,
    `inconclusive`, `not_estimable`. Raises ValueError for a score outside [0, 1], NaN, or unequal lengths.
    """
    score, passed = np.asarray(score, dtype=float), np.asarray(passed, dtype=float)
    _, task = np.unique(np.asarray(task), return_inverse=True)
    if not len(score) == len(passed) == len(task):
        raise ValueError("score, passed and task must have one entry a program")
    table = stats.calibration_table(score, passed, edges, level=LEVEL, ends=ends)
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
            f"from {share(MIDDLE, 0)} to under {share(UPPER, 0)} of the tests {of(middle_passed, middle_n, 'program')} "
            f"in {plural(middle_tasks, 'task')} pass, at most {share(limit)}; that is under {share(CLIFF_SHARE, 0)} of "
            f"the {share(top)} at the top{less}"
        )
    elif not within.n_groups:
        word = "not_estimable"
        why = "no task holds both a pass and a fail"
    elif low_passes >= HILL_PASSES and low_tasks >= HILL_TASKS and low.lo > CHANCE:
        word = "hill"
        why = (
            f"under {share(UPPER, 0)} of the tests a pass outranks a fail of its own task with chance {low.auc:.2f}, "
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
        "table": [dict(row._asdict()) for row in table],
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
    return _plain(out)


def _area(found: stats.Auc) -> dict[str, Any]:
    row = found._asdict()
    return {"auc": row.pop("auc"), "interval": [row.pop("lo"), row.pop("hi")], **row}
