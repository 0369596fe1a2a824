"""What a base group foretells: against integrals, against the estimates it must agree with, and told without luck."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binomtest

import stats
from bench import truths, yields
from commands.folder import held
from estimators.prospect import prospect
from estimators.ratios import per_unit
from figures import plan
from figures.foretold import chances, so_far
from figures.plan import make_plan
from measure import measure
from records import Folder
from telling import ahead, beside, plots, tables, words
from telling.text import plan_text, text
from tests.support import planted_run
from tests.support.lay_out import base, config, names, play, run

HISTOGRAM = [223, 17, 14, 4, 3, 1, 3, 4, 6]


def test_shares_are_those_of_the_estimator_and_of_the_integral() -> None:
    got = prospect(HISTOGRAM, 24)
    passes = np.repeat(np.arange(9), HISTOGRAM)
    assert got.base == pytest.approx([stats.pass_at_k(8, passes, k).mean() for k in range(1, 9)])
    a, b = got.chances

    def mean(value: Any, failed: int) -> float:
        spread = beta_distribution(a, b + failed)
        return float(quad(lambda p: value(p) * spread.pdf(p), 1e-12, 1, limit=500)[0])

    assert got.rescue[23] == pytest.approx(mean(lambda p: 1 - (1 - p) ** 24, 8), abs=1e-6)
    assert got.beyond[0] == pytest.approx(mean(lambda p: 1 - (1 - p) ** 9, 0), abs=1e-6)
    assert got.apart == pytest.approx(mean(lambda p: 2 * (1 - p) ** 24 * (1 - (1 - p) ** 24), 8), abs=1e-6)
    assert np.all(np.diff([*got.base, *got.beyond]) > -0.02)  # the fit takes over where the counts end
    for value, ends in ((got.rescue, got.rescue_interval), (got.base, got.base_interval)):
        assert np.all(ends[0] <= value) and np.all(value <= ends[1])


def test_of_groups_as_counted_the_last_share_has_wilsons_interval() -> None:
    got = prospect(HISTOGRAM, 24)
    assert got.base_interval[:, -1] == pytest.approx(stats.proportion_ci(275 - 223, 275))


@pytest.mark.parametrize(
    "histogram",
    [[9, 0, 0, 0], [0, 0, 0, 4], [0, 0, 0, 0], [6, 1], [60, 0, 0, 0, 0, 0, 0, 0, 40], [50, 0, 0, 10]],
)
def test_nothing_is_foretold_where_nothing_is_seen(histogram: list[int]) -> None:
    got = prospect(histogram, 24)
    assert math.isnan(got.rescue[-1]) and math.isnan(got.apart) and math.isnan(got.fits)
    assert np.isnan(got.rescue_interval).all()


def test_no_margin_is_half_of_what_a_fit_at_its_bounds_foretells() -> None:
    for histogram in ([60, 0, 0, 0, 0, 0, 0, 0, 40], [50, 0, 0, 10], [60, 0, 1]):
        assert (
            math.isnan(plan.foretold(histogram, 24)) and plan.margin_in_force(0.05, plan.foretold(histogram, 24)) == 0
        )
    assert plan.foretold([60, 0, 0, 0], 24) == 0.0 and plan.foretold(HISTOGRAM, 24) > 0.05


def test_groups_of_one_foretell_no_margin_and_groups_of_two_do() -> None:
    """Taken for all alike, 10 in 100 of one attempt would foretell 92%: half of it is more than any margin."""
    assert np.isnan(plan.foretold([90, 10], 24)) and np.isnan(plan.foretold([90, 10], 1))
    assert plan.foretold([90, 0], 24) == 0  # nothing is known, and nothing is foretold
    assert 0 < plan.foretold([84, 12, 4], 24) < 1
    assert plan.margin_in_force(0.05, plan.foretold([90, 10], 24)) == 0
    tasks = names(130)
    attempts = [a for t in tasks[:20] for a in base(t, 1, 1)]
    attempts += run(tasks[20:], {arm: dict.fromkeys(tasks[20:50], 0) for arm in ("resample", "star")}, group=1)
    got = measure(attempts, config(arms=["resample", "star"], base_samples=1))
    assert got["verdict"]["margin"] == 0 and got["verdict"]["arms"] == {"star": "inconclusive"}
    assert got["verdict"]["control_foretold"] is None
    assert "Base groups of one do not show how chances spread" in " ".join(text(got).split())


def test_a_spread_of_another_kind_is_seen_and_one_of_this_kind_is_not() -> None:
    fine = np.round(400 * betabinom(8, 0.3, 2).pmf(np.arange(9))).astype(int)
    assert prospect(fine, 24).fits > 0.3
    split = [300, 0, 0, 0, 100, 0, 0, 0, 0]  # a quarter of the tasks pass every second time, exactly
    assert prospect(split, 24).fits < 0.01


# ── power ────────────────────────────────────────────────────────────────────────────────────────────────────────


def rescued(n_ring: int) -> dict[str, Any]:
    """60 all-fail tasks and 20 that are not, the base group always the same; ring rescues so many."""
    tasks = names(80)
    attempts = [a for i, task in enumerate(tasks) for a in base(task, passes=0 if i < 60 else 1 + i % 7)]
    for i, task in enumerate(tasks[:60]):
        attempts += [
            *play(task, "resample", 0 if i < 3 else None),
            *play(task, "ring", 0 if 60 - i <= n_ring else None),
        ]
    return measure(attempts, config(arms=["resample", "ring"]))


@pytest.mark.slow
def test_power_does_not_lean_on_what_the_arms_happened_to_disagree_on() -> None:
    few, many = rescued(0)["power"]["ring"], rescued(12)["power"]["ring"]
    assert (few["discordant"], many["discordant"]) == (3, 15)
    assert few["foretold_by"] == many["foretold_by"] == "base group"
    assert few["power_holm"] == many["power_holm"] and few["tasks_needed"] == many["tasks_needed"]


def test_a_range_of_power_goes_from_one_end_of_the_discordance_to_the_other() -> None:
    got = chances(220, 0.05, (0.06, 0.09), family=3)
    assert got.discordance == pytest.approx((0.06, 0.14))
    assert got.power == pytest.approx((stats.power_paired(220, 0.05, 0.14), stats.power_paired(220, 0.05, 0.06)))
    assert got.power_holm[0] == pytest.approx(stats.power_paired(220, 0.05, 0.14, alpha=0.05 / 3))
    assert got.needed == (stats.tasks_needed(0.05, 0.06), stats.tasks_needed(0.05, 0.14))
    assert chances(220, 0.05, (0.0, 0.0), family=1).discordance == (0.05, 0.05)  # they differ by so much at least


def test_without_a_base_pass_the_arms_own_disagreement_is_taken_and_said_to_be_luck() -> None:
    tasks = names(60)
    results = measure(
        run(tasks, {"resample": {}, "ring": dict.fromkeys(tasks[:3], 0)}), config(arms=["resample", "ring"])
    )
    row = results["power"]["ring"]
    assert row["foretold_by"] == "these tasks" and row["discordance_equal"] is None
    assert row["discordance_assumed"] == pytest.approx([0.05, 0.1])
    assert "which is luck too" in words.power_words(results) and beside.fresh_words(results) == ""


def test_groups_that_pass_as_a_whole_or_not_at_all_foretell_nothing_and_it_is_said() -> None:
    tasks = names(20)  # 0.0% [0.0, 0.0] was foretold of the fourteen here, of which resample solves three
    attempts = [a for i, task in enumerate(tasks) for a in base(task, passes=0 if i < 14 else 8)]
    attempts += [a for i, task in enumerate(tasks[:14]) for arm in ("resample", "ring")
                 for a in play(task, arm, 0 if i < 3 else None)]  # fmt: skip
    results = measure(attempts, config(arms=["resample", "ring"]))
    assert results["fresh"]["rescue"][-1] is None and results["power"]["ring"]["foretold_by"] == "these tasks"
    assert "24 more fresh draws would find cannot be told from this base group." in beside.fresh_words(results)
    assert results["verdict"]["arms"]["ring"] == "inconclusive"  # no margin is half of what nobody can tell


def test_what_an_arm_must_beat_is_told_in_shares_and_tasks() -> None:
    results = rescued(5)
    found = results["fresh"]
    lo, hi = found["rescue_interval"][-1]
    said = beside.fresh_words(results)
    assert f"on {words.share(found['rescue'][-1])} {words.within([lo, hi])} of the all-fail tasks" in said
    assert f"({found['rescue'][-1] * 60:.0f} [{lo * 60:.0f}, {hi * 60:.0f}] of 60)" in said
    rows = [row[0] for row in tables.fresh(results).rows]
    assert {"all tasks, drawn", "all-fail tasks, expected", "all-fail tasks, ring"} <= set(rows)
    assert beside.fresh_words({**results, "band": "near-miss"}) == ""


def test_two_base_groups_foretell_nothing_and_nothing_is_said_of_it() -> None:
    tasks = names(2)
    attempts = [*base(tasks[0]), *base(tasks[1], passes=1)]
    for arm in ("resample", "ring"):
        attempts += play(tasks[0], arm, None)
    conf = conf_of_a_plan()
    assert beside.fresh_words(measure(attempts, conf)) == ""
    text = plan_text(conf, make_plan(conf, 160), so_far(attempts, conf, 160))
    assert "assuming the two arms disagreeing on 9% of the tasks" in text


# ── before the arms ──────────────────────────────────────────────────────────────────────────────────────────────


def conf_of_a_plan(**changes: Any) -> dict[str, Any]:
    conf = config(**{"arms": ["resample", "ring"], "system": "", "server": {"facts": [], "warnings": []}, **changes})
    conf["data"] = {"asked": 160, "tasks": 900, "source": "mine", "revision": None, "median_rating": None,
                    "left_out": {}, "notes": [], "prompt_characters": 600}  # fmt: skip
    conf["server"] |= {"model": "a/model"}
    conf["free"] = {"concurrency": 10}
    return conf


def test_a_plan_draws_power_and_time_from_the_base_group_that_is_there() -> None:
    tasks = names(80)
    attempts = [a for i, task in enumerate(tasks) for a in base(task, passes=0 if i < 60 else 1 + i % 7)]
    conf = conf_of_a_plan()
    plan = make_plan(conf, 160)
    got = so_far(attempts, conf, 160)
    assert got.found is not None and (got.found.n, got.found.failed, got.all_fail) == (80, 60, 120)
    assert got.seconds == 2.0 and got.chances is not None
    text = plan_text(conf, plan, got)
    power = next(line for line in text.split("\n") if line.startswith("power"))
    assert "by the base group so far (60 of 80 tasks all-fail" in power and "on 120 all-fail tasks" in power
    # 160 x 8 base attempts, three quarters of 160 x 2 x 24 for the arms, 640 there: 6,400 calls of 2 s, ten at once.
    assert "time: about 21.3 min for 6,400 more calls, by the 640 so far: 2.0 s a reply, 10 at once" in text


def test_at_the_start_a_plan_says_what_it_assumes_and_what_would_tell_the_time() -> None:
    conf = conf_of_a_plan()
    text = plan_text(conf, make_plan(conf, 160))
    assert "assuming the two arms disagreeing on 9% of the tasks" in text
    assert "time: how long real replies take is not known: --limit 5 without --plan, then --plan tells" in text
    conf["server"]["seconds"] = 0.5
    line = ahead.time_line(conf, make_plan(conf, 160), None)
    # 160 x 8 + 160 x 48 calls of half a second, ten at once.
    assert line.startswith("time: at least 7.5 min for all calls, if each took 0.5 s as the probe's one word did; ")


@pytest.mark.slow
def test_a_base_group_of_another_experiment_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted_run.make(tmp_path / "run", n_tasks=12)
    folder = Folder(tmp_path / "run")
    conf = folder.config
    assert held(folder, conf, 12) is not None
    other: Any = {**conf, "identity": {**conf["identity"], "temperature": 0.5}}
    assert held(folder, other, 12) is None
    assert "another experiment (--temperature)" in capsys.readouterr().err
    assert held(Folder(tmp_path / "none"), conf, 12) is None


# ── what rescues cost ────────────────────────────────────────────────────────────────────────────────────────────


def test_of_equal_costs_a_rate_has_wilsons_interval_and_none_at_all_has_a_width() -> None:
    rate, ends = per_unit([1, 0, 0, 1, 0, 0, 0, 0, 0, 0], np.full(10, 4.0))
    lo, hi = stats.proportion_ci(2, 10)
    assert rate == pytest.approx(2 / 40)
    # Equal costs leave the spread of the share itself, with n - 1: worth 9 tasks in place of 10.
    nine = wilson_of(0.2 * 9, 9)
    assert ends == pytest.approx((nine[0] / 4, nine[1] / 4)) and ends.lo < lo / 4 and ends.hi > hi / 4
    rate, ends = per_unit(np.zeros(60), np.full(60, 2.0))
    assert rate == 0 and ends == pytest.approx((0, stats.proportion_ci(0, 60).hi / 2))
    assert math.isnan(per_unit([], [])[0]) and math.isnan(per_unit([0, 0], [0, 0])[1].hi)


def wilson_of(k: float, n: float) -> tuple[float, float]:
    z, p = 1.959963984540054, k / n
    middle, half = p + z * z / 2 / n, z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


@pytest.mark.parametrize("bad", [([0.5], [1.0]), ([1], [-1.0]), ([1, 0], [1.0]), ([1], [np.nan])])
def test_a_rate_for_what_was_spent_refuses_what_it_cannot_read(bad: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError):
        per_unit(*bad)


def dear(n: int, refined: int) -> dict[str, Any]:
    """Fresh draws cost 150 tokens, refined ones `refined` more; ring rescues 4 tasks in round 0 and 4 in round 2."""
    tasks = names(n)
    hit = {task: 0 if i < 4 else 2 for i, task in enumerate(tasks[:8])}
    attempts = [
        replace(a, prompt_tokens=a.prompt_tokens + refined) if a.parent else a
        for a in run(tasks, {"resample": dict.fromkeys(tasks[8:10], 2), "ring": hit})
    ]
    return measure(attempts, config(arms=["resample", "ring"], price=[2.0, 4.0]))


@pytest.mark.slow
def test_a_rescue_counts_at_equal_tokens_where_its_reply_ends_within_those_of_fresh_draws() -> None:
    """24 fresh draws cost 3,600 tokens. Ring's pass in round 2 is its 17th attempt, 9 of them refined."""
    for refined, within_budget in ((116, 8), (117, 4)):  # 17 x 150 + 9 x 116 = 3,594; 9 x 117 more = 3,603
        same = dear(40, refined)["efficiency"]["ring"]["equal_tokens"]
        assert (same["rescued"], same["rescued_resample"], same["tokens"], same["n"]) == (within_budget, 2, 3600, 40)
        assert (same["n_arm_only"], same["n_resample_only"]) == (within_budget, 2)
        assert same["p"] == same["p_holm"] == pytest.approx(float(binomtest(2, within_budget + 2).pvalue))


def test_rescues_for_tokens_and_dollars_add_up_with_the_bill() -> None:
    results = dear(40, 0)
    row, bill = results["efficiency"]["ring"], results["cost"]["arms"]["ring"]
    assert row["per_million_tokens"] == pytest.approx(bill["rescues_per_million_tokens"])
    assert row["per_usd"] == pytest.approx(8 / bill["usd"])
    assert row["interval"][0] < row["per_million_tokens"] < row["interval"][1]
    assert results["efficiency"]["resample"]["equal_tokens"] is None
    said = beside.efficiency_words(results)
    assert "At equal tokens, those of 24 fresh draws on each task, points minus resample: ring +15.0" in said
    assert "no verdict is drawn from it" in said


def test_while_an_arm_owes_attempts_no_rate_for_its_cost_is_told() -> None:
    """Stopped early, ring is done where it passed; one round-0 attempt of every other task is owed."""
    tasks = names(6)
    attempts = run(tasks, {"resample": {}, "ring": dict.fromkeys(tasks[:2], 0)})
    late = [a for a in attempts if not (a.arm == "ring" and a.task_id in tasks[2:] and a.particle == 7)]
    results = measure(late, config(arms=["resample", "ring"]))
    assert beside.efficiency_words(results) == ""
    assert "lean towards tasks rescued early" in tables.efficiency(results).caption
    nobody = [a for a in late if a.arm != "ring" or a.particle]
    empty = measure(nobody, config(arms=["resample", "ring"]))
    assert tables.climb_in_short(empty) is None and plots.hidden(tables.climbers(empty)) == ""


def test_unknown_tokens_give_no_rate() -> None:
    attempts = run(names(4), {"resample": {}, "ring": {}})
    attempts[-1] = replace(attempts[-1], prompt_tokens=None)
    results = measure(attempts, config(arms=["resample", "ring"]))
    assert results["efficiency"]["ring"]["per_million_tokens"] is None
    assert results["efficiency"]["ring"]["equal_tokens"] is None
    assert results["efficiency"]["resample"]["per_million_tokens"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60, 220])
def test_the_interval_of_rescues_a_token_holds_the_truth_where_few_are_rescued(n: int) -> None:
    """3% rescued: percentiles of a bootstrap held it in 49, 83 and 93% of runs."""
    rng = np.random.default_rng(n)
    x, cost = yields.arm(rng, (1, 500_000), 0.03)
    truth = x.mean() / cost.mean()
    ends = np.array([per_unit(a, b)[1] for a, b in zip(*yields.arm(rng, (600, n), 0.03), strict=True)])
    assert np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) > 0.925


@pytest.mark.slow
def test_what_is_foretold_holds_the_truth() -> None:
    rng = np.random.default_rng(2)
    truth = truths.A_RESCUED
    hits = []
    for row in rng.binomial(8, rng.beta(truths.A, truths.B, size=(200, 80))):
        lo, hi = prospect(np.bincount(row, minlength=9), 24).rescue_interval[:, -1]
        hits.append(lo <= truth <= hi)
    assert np.mean(hits) > 0.91
