"""Each arm against the control on the same tasks, and whether the difference is more than the control's own noise.

    paired(table)["ring"]       rescue rate: exact test, Holm over the arms, a word at the plan's margin
    verdict(table)              the plan's rule applied, by the primary metric

Every function takes the table and gives the value of the key of results.json that has its name; what is in it says
results.py. The draws of every bootstrap start from one fixed seed, so two arms that are swapped swap figures.

Left out: the tests and intervals themselves (stats.py), the words of a verdict (said.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

import numpy as np

import stats
from estimators.parts import mean_share_ci, normal_quantile
from figures.counted import incomplete, not_begun, unfinished
from figures.numbers import mean, rounded
from figures.plan import (
    ALPHA,
    CONTROL,
    EQUIVALENCE_LEVEL,
    LEVEL,
    foretold,
    margin_in_force,
    margins,
    one_of,
    primary_metric,
    runs_compared,
)
from figures.results import Against, Clears, Noise, Paired, PerSample, StoppedRate, Verdict
from figures.said import UNFINISHED, departures, sentence
from figures.table import Bools, Floats, Play, Table


def control_foretold(table: Table, metric: str) -> float:
    """What the base group foretells of the control on the all-fail tasks, in the unit of the metric."""
    passes = table.base.passes.sum(axis=1)[table.base.done]
    histogram = np.bincount(passes, minlength=table.base_samples + 1)
    return foretold(histogram.tolist(), table.particles * table.rounds if metric == "rescue_rate" else 1)


def margin_of(table: Table, metric: str) -> float:
    """The margin in force: what was asked for, or half of what is foretold of the control if that is less."""
    return margin_in_force(margins(table.config)[metric], control_foretold(table, metric))


def _same(pair: tuple[Floats, Floats], margin: float) -> stats.Equivalence:
    """Whether the two are alike within the margin; nothing is within none."""
    if margin > 0:
        return stats.equivalent(*pair, margin, alpha=ALPHA)
    return stats.Equivalence(False, stats.Interval(math.nan, math.nan))


def _mean_within(runs: Floats, own: Floats, margin: float) -> bool:
    """Whether the difference from the mean of several runs lies within the margin either way: a first run that was
    lucky, or unlucky, can be like an arm that their mean is not like."""
    got = stats.compare_with_runs(runs, own, level=EQUIVALENCE_LEVEL)
    return -margin < got.lo and got.hi < margin


Pairs = Mapping[str, tuple[Floats, Floats]]  # arm -> values a task of the control (also of its runs) and of the arm


def _family_of_tests(pairs: Pairs, margin: float) -> dict[str, tuple[Against, stats.Comparison]]:
    """Each arm against the control, Holm-adjusted over the arms. Against several runs of it (k, n_tasks) the exact test
    of what is equivalent is against the first one, since it knows two arms; the difference from their mean must lie
    within the margin too, by its own interval at the level of that test."""
    compared = {
        arm: stats.compare_with_runs(control, own, level=LEVEL)
        if control.ndim > 1
        else stats.compare_paired(control, own, level=LEVEL)
        for arm, (control, own) in pairs.items()
    }
    tested = [arm for arm, got in compared.items() if not math.isnan(got.p_value)]
    adjusted = dict(zip(tested, stats.holm([compared[arm].p_value for arm in tested]), strict=True))
    out: dict[str, tuple[Against, stats.Comparison]] = {}
    for arm, got in compared.items():
        found, own = pairs[arm]
        same = _same((found[0] if found.ndim > 1 else found, own), margin)
        alike = same.equivalent and (found.ndim == 1 or _mean_within(found, own, margin))
        p_holm = float(adjusted.get(arm, math.nan))
        control = float(np.mean(found)) if got.n else math.nan
        row: Against = {
            "delta": got.delta,
            "interval": [got.lo, got.hi],
            "p": got.p_value,
            "p_holm": p_holm,
            "n": got.n,
            "margin": margin,
            "equivalence_interval": [same.lo, same.hi],
            "control_rate": control,
            "verdict": stats.verdict(got, p_holm, alike, control=control),
        }
        out[arm] = row, got
    return out


def paired(table: Table) -> dict[str, Paired]:
    """Rescue rate of each arm against the control on the same tasks: exact test, Holm, verdict at the margin. Beside it
    the same against all runs of the control, where there are re-runs that might as well have been the arm's."""
    if not table.controlled:
        return {}
    margin = margin_of(table, "rescue_rate")
    finished, runs = table.rescues_of_runs()
    sharper: dict[str, tuple[Against, stats.Comparison]] = {}
    if len(runs) > 1 and not table.share_round0:  # a round that the arm shares with one run makes that one no other
        use = {arm: finished & table.plays[arm].done for arm in table.others}
        sharper = _family_of_tests(
            {
                arm: (
                    np.array([play.rescued[use[arm]] for play in table.control_runs], dtype=float),
                    table.plays[arm].rescued[use[arm]].astype(float),
                )
                for arm in table.others
            },
            margin,
        )
    out: dict[str, Paired] = {}
    for arm, (row, got) in _family_of_tests({arm: table.rescues(arm) for arm in table.others}, margin).items():
        reach = stats.equivalence_reach(row["n"], margin, ALPHA)
        out[arm] = {
            **row,
            "n_arm_only": got.n_b_only,
            "n_resample_only": got.n_a_only,
            "equivalent_up_to": reach,
            "vs_all_resample": None,
        }
        if arm in sharper:
            against, _ = sharper[arm]
            out[arm]["vs_all_resample"] = {**against, "runs": len(runs), "equivalent_up_to": reach}
    return out


def decides(table: Table) -> int:
    """How many runs of the control the verdict compares with: all, where re-runs were planned for that, else one."""
    return runs_compared(table.config, table.plan)


def _rate_per_draw(play: Play, use: Bools) -> Floats:
    return play.passes[use].sum(axis=1) / np.maximum(play.drawn[use].sum(axis=1), 1)


def _rates(table: Table, arm: str) -> tuple[Floats, Floats]:
    """Passes a draw of the control and of the arm, on the tasks where neither owes anything."""
    both = table.both(arm)
    return _rate_per_draw(table.plays[CONTROL], both), _rate_per_draw(table.plays[arm], both)


def per_sample(table: Table) -> dict[str, PerSample]:
    """Passes per sample over full budgets, paired by task. Where an arm stopped early there is no such rate."""
    full = {arm: table.ran_full(arm) for arm in table.arms}
    fair = [arm for arm in table.others if table.controlled and full[arm] and full[CONTROL]]
    tests = _family_of_tests({arm: _rates(table, arm) for arm in fair}, margin_of(table, "per_sample"))
    out: dict[str, PerSample] = {}
    for arm, play in table.plays.items():
        if not full[arm]:
            out[arm] = {"rate": None, "reason": "the arm stopped at its first pass; --full-budget gives this rate"}
            continue
        use = table.finished(arm)
        rate = _rate_per_draw(play, use)
        out[arm] = {
            "rate": mean(rate),
            "interval": list(_rate_interval(rate)),
            "passes": int(play.passes[use].sum()),
            "samples": int(play.drawn[use].sum()),
            "n": int(use.sum()),
            "reason": None,
            **_passes_again(table, play, use),
        }
        if arm in tests:
            out[arm]["paired"] = tests[arm][0]
        elif arm != CONTROL:
            out[arm]["paired"] = None
            out[arm]["reason"] = "the control stopped at its first pass" if table.controlled else "no control"
    return out


class _Again(TypedDict):
    passes_after_first: int
    repeats: int


def _passes_again(table: Table, play: Play, use: Bools) -> _Again:
    """Passes that came when the task had one in an earlier round, which a particle may have been shown; and those of
    them that are the same program as such a one."""
    later = (
        use
        & (play.passes > 0).any(axis=1)
        & (
            play.passes.sum(axis=1)
            > np.take_along_axis(play.passes, np.minimum(play.first, table.rounds - 1)[:, None], axis=1)[:, 0]
        )
    )
    passes = repeats = 0
    for task in np.flatnonzero(later):
        seen: set[int] = set()
        for row in play.row[task]:
            hit = row[row >= 0]
            programs = table.columns.program[hit[table.columns.passed[hit]]].tolist()
            if seen:
                passes += len(programs)
                repeats += sum(program in seen for program in programs)
            seen.update(programs)
    return {"passes_after_first": passes, "repeats": repeats}


def _rate_interval(rate: Floats) -> stats.Interval:
    """Of the mean of a pass rate, one number a task. Of tasks with one rate between 0 and 1 no spread is seen."""
    if len(set(rate.tolist())) > 1 or (len(rate) and rate[0] in (0, 1)):
        lo, hi = mean_share_ci(rate.mean(), rate.var(), len(rate), normal_quantile((1 + LEVEL) / 2))
        return stats.Interval(float(lo), float(hi))
    return stats.Interval(math.nan, math.nan)


def per_draw_stopped(table: Table) -> dict[str, StoppedRate | str] | None:
    """Passes per draw as published, where arms stopped early: stopping at a pass inflates it."""
    if all(table.ran_full(arm) for arm in table.arms):
        return None
    out: dict[str, StoppedRate | str] = {
        "label": "inflated: an arm that stops at its first pass draws less where it passes"
    }
    for arm, play in table.plays.items():
        use = table.finished(arm)
        row: StoppedRate = {
            "rate": mean(_rate_per_draw(play, use)),
            "n": int(use.sum()),
            "stopped_tasks": int((~play.full[use]).sum()),
        }
        if arm != CONTROL and table.controlled:
            got = stats.compare_paired(*_rates(table, arm), level=LEVEL)
            row |= {"delta": got.delta, "interval": [got.lo, got.hi], "p": got.p_value}
        out[arm] = row
    return out


def noise(table: Table) -> Noise:
    """How far runs of the control lie apart, by their means and by each task's replicates, and what clears it."""
    use, runs = table.rescues_of_runs()
    n = int(use.sum())
    if not table.controlled:
        return {"n": n, "runs": 0, "clears": {}}
    band = stats.noise_band(runs, level=LEVEL)
    published: Noise = {
        "runs": len(runs),
        "means": [rounded(round(of_run, 4)) for of_run in band.run_means],
        "run_std": rounded(band.std_between, 2),
        "band": rounded(band.band_t),
        "n": n,
    }
    if len(runs) < 2:
        return {**published, "clears": {}}

    def clears(delta: float, width: float) -> bool | None:
        return bool(delta > width) if width > 0 and not math.isnan(delta) else None  # runs alike span no band

    cleared: dict[str, Clears] = {}
    for arm in table.others:
        delta = abs(stats.compare_paired(*table.rescues(arm), level=LEVEL).delta)
        cleared[arm] = {"band_t": clears(delta, band.band_t), "band_within": clears(delta, band.band_within)}
    return {
        **published,
        "rescued": runs.sum(axis=1).astype(int).tolist(),
        "band_t": band.band_t,
        "std_between": band.std_between,
        "band_within": band.band_within,
        "std_within": band.std_within,
        "q": band.q,
        "q_df": band.q_df,
        "q_p": band.q_p,
        "clears": cleared,
    }


def is_late(table: Table) -> bool:
    """Whether something is owed that the verdict looks at."""
    owing = incomplete(table)
    noise = decides(table) > 1 and any(row["tasks"] for row in owing["noise_runs"])
    return not_begun(table) > 0 or unfinished(owing) or noise


def by_primary_metric(table: Table) -> dict[str, Against]:
    """The comparisons that the verdicts are drawn from."""
    if primary_metric(table.config) == "rescue_rate":
        rows = paired(table)
        if decides(table) > 1:
            return {arm: sharper for arm, row in rows.items() if (sharper := row["vs_all_resample"])}
        return dict(rows)
    return {arm: against for arm, row in per_sample(table).items() if (against := row.get("paired"))}


def verdict(table: Table) -> Verdict:
    """The plan's rule applied, and whether the plan came first. What was decided after a sample is exploratory."""
    metric = primary_metric(table.config)
    asked, margin = margins(table.config)[metric], margin_of(table, metric)
    rows = by_primary_metric(table)
    words = {arm: row["verdict"] for arm, row in rows.items()}
    why = departures(table, metric, asked)
    late = is_late(table)
    if late:  # what is finished first is no fair choice, and whoever may stop when it looks well will see it look well
        why.append(UNFINISHED)
    if (seeds := table.config["plan"].get("seeds") or 1) > 1:
        why.append(one_of(seeds))
    compared = any(row["n"] for row in rows.values())
    return {
        "primary_metric": metric,
        "margin": margin,
        "margin_asked": asked,
        "control_foretold": control_foretold(table, metric),
        "against_runs": decides(table),
        "seeds": seeds,
        "planned": table.plan is not None and not why,
        "exploratory": why,
        "arms": words,
        "sentence": sentence(table, metric, margin, rows if compared else {}, late, table.plan is not None and not why),
    }
