"""The verdict that holds at any look: its bets against an integral and an enumeration, its order against a trap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from bench import truths
from estimators.watched import watch, wealth
from figures.plan import make_plan, plan_digest
from measure import measure
from swarm import Attempt
from telling.beside import watched_words
from tests.support.lay_out import base, config, names, play, run


@pytest.mark.parametrize("wins, losses", [(0, 0), (1, 0), (0, 1), (5, 2), (30, 8), (2, 9), (8, 30)])
def test_wealth_is_the_mean_over_the_bets(wins: int, losses: int) -> None:
    spread, _ = quad(lambda t: (2 * t) ** wins * (2 - 2 * t) ** losses, 0.5, 1)
    assert wealth(wins, losses) == pytest.approx(2 * spread, rel=1e-9)


def test_wealth_never_leaves_the_numbers() -> None:
    assert np.isfinite(wealth(10**6, 3)) and wealth(3, 10**6) == 0


@pytest.mark.parametrize("chance", [0.5, 0.4, 0.1])
def test_on_average_it_never_grows_where_the_other_side_is_no_worse(chance: float) -> None:
    for m in (1, 2, 7, 60):
        k = np.arange(m + 1)
        mean = binom.pmf(k, m, chance) @ wealth(k, m - k)
        assert mean <= 1 + 1e-9
        assert chance < 0.5 or mean == pytest.approx(1)


@pytest.mark.parametrize("family", [1, 3])
def test_the_chance_that_a_fair_coin_ever_reaches_the_bar_is_enumerated(family: int) -> None:
    """Walk over (wins, losses): what reaches the bar is taken off, after every one of 200 discordant tasks."""
    bar, alive, ever = 2 * family / 0.05, np.array([1.0]), 0.0
    for m in range(1, 201):
        alive = (np.append(alive, 0) + np.append(0, alive)) / 2
        k = np.arange(m + 1)
        there = (wealth(k, m - k) >= bar) | (wealth(m - k, k) >= bar)
        ever += alive[there].sum()
        alive[there] = 0
    assert 0.2 * 0.05 / family < ever < 0.05 / family


def test_the_bar_is_reached_by_the_task_that_does() -> None:
    """Three arms: 2 x 3 / .05 = 120. Straight wins are worth (2^(k+1) - 1) / (k + 1): 102.3 for 9, 186.1 for 10."""
    nothing = np.zeros(40)
    nine, ten = nothing.copy(), nothing.copy()
    nine[2:29:3] = 1
    ten[2:30:3] = 1
    assert watch(nothing, nine, family=3).verdict == "inconclusive"
    assert watch(nothing, nine, family=3).p_value == pytest.approx(6 / 102.3)
    got = watch(nothing, ten, family=3)
    assert (got.verdict, got.at, got.bar, got.n, got.n_b_only) == ("better", 30, 120, 40, 10)
    mirrored = watch(ten, nothing, family=3)
    assert (mirrored.verdict, mirrored.at, mirrored.p_value) == ("worse", 30, got.p_value)
    assert watch(nothing, nine, family=2).verdict == "better"


def test_a_verdict_once_reached_stands_whatever_follows() -> None:
    a, b = np.zeros(60), np.zeros(60)
    b[:10] = 1
    a[10:20] = 1
    got = watch(a, b, family=3)
    assert got.verdict == "better" and got.at == 10 and got.wealth_b < got.bar


def test_where_both_reach_the_bar_neither_is_believed_and_p_is_1() -> None:
    first, then = np.r_[np.ones(10), np.zeros(60)], np.r_[np.zeros(10), np.ones(60)]
    got = watch(then, first, family=3)
    assert (got.verdict, got.at, got.p_value) == ("inconclusive", None, 1.0)
    assert got.wealth_a > got.bar


@pytest.mark.parametrize("bad", [{"a": [0, 0.5]}, {"a": [0]}, {"family": 0}, {"alpha": 0.0}, {"a": [0, np.nan]}])
def test_it_refuses_what_it_cannot_bet_on(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        watch(**{"a": [0, 1], "b": [1, 0], **bad})


@pytest.mark.slow
@pytest.mark.parametrize("suited", [False, True], ids=["alike", "each suits other tasks"])
def test_looked_at_every_twenty_tasks_it_errs_in_one_run_of_a_hundred_and_finds_ten_points(suited: bool) -> None:
    rng = np.random.default_rng(11)
    p = truths.all_fail(rng, 2000, 220)

    def arm(points: float) -> Any:
        own = truths.suited(rng, p, points) if suited else truths.better(p, points) if points else p
        return rng.random(p.shape) < truths.rescue(own)

    def ever(control: Any, arm: Any) -> tuple[Any, Any]:
        won, lost = (np.cumsum(x & ~y, axis=1)[:, 19::20] for x, y in ((arm, control), (control, arm)))
        return (wealth(won, lost) >= 120).any(axis=1), (wealth(lost, won) >= 120).any(axis=1)

    control = rng.random(p.shape) < truths.rescue(p)
    false = np.logical_or.reduce([side for _ in range(3) for side in ever(control, arm(0.0))])
    assert false.mean() <= 0.014  # at most 1%, and three standard errors
    assert ever(control, arm(0.10))[0].mean() >= 0.90


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────────


def planned(n: int, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    conf = config(**{"arms": ["resample", "ring"], **changes})
    plan = make_plan(conf, n) | {"written": 500.0}
    return conf | {"plan_digest": plan_digest(plan)}, plan


def cards(order: list[str]) -> list[dict[str, Any]]:
    return [{"id": task, "tags": {}} for task in order]


def lacking(attempts: list[Attempt], task: str, arm: str) -> list[Attempt]:
    """Without the last particle of the arm's last round there."""
    return [a for a in attempts if (a.task_id, a.arm, a.round, a.particle) != (task, arm, 2, 7)]


@pytest.mark.slow
def test_tasks_count_in_the_order_of_asking_up_to_the_first_that_is_owed() -> None:
    """The trap: ring's wins are done, and the tasks that ring has not solved yet are owed. Names run the other way."""
    tasks = names(20)
    order = tasks[::-1]
    attempts = run(tasks, {"resample": {}, "ring": dict.fromkeys(order[5:], 0)})
    for task in order[3:5]:
        attempts = lacking(attempts, task, "ring")
    conf, plan = planned(20)
    got = measure(attempts, conf, cards(order), plan=plan)["watched"]["arms"]["ring"]
    assert (got["n"], got["waiting"], got["n_arm_only"], got["verdict"]) == (3, 15, 0, "inconclusive")
    whole = run(tasks, {"resample": {}, "ring": dict.fromkeys(order[5:], 0)})
    got = measure(whole, conf, cards(order), plan=plan)["watched"]["arms"]["ring"]
    # One arm: the bar is 40; 8 straight wins are worth 511 / 9 = 56.8, 7 are worth 31.9.
    assert (got["n"], got["waiting"], got["at"], got["verdict"]) == (20, 0, 13, "better")


def test_a_task_whose_base_group_is_open_ends_the_count_and_one_that_passed_or_was_refused_does_not() -> None:
    tasks = names(6)
    attempts = [a for task in tasks for a in base(task, passes=task == tasks[0])]
    for task in tasks[1:]:
        attempts += [*play(task, "resample", None), *play(task, "ring", 0)]
    refused = next(a for a in attempts if (a.task_id, a.arm, a.particle) == (tasks[1], "ring", 7))
    attempts.remove(refused)
    attempts.append(Attempt(tasks[1], "ring", 0, refused.round, refused.particle, outcome="refused"))
    open_ = [a for a in attempts if (a.task_id, a.arm, a.particle) != (tasks[4], "base", 7)]
    conf, plan = planned(6)
    got = measure(open_, conf, cards(tasks), plan=plan)["watched"]["arms"]["ring"]
    assert (got["n"], got["waiting"]) == (2, 1)  # tasks 2 and 3; 5 waits


def test_a_run_that_grew_is_told_by_the_bets_and_a_planned_one_by_its_plan() -> None:
    tasks = names(60)
    attempts = run(tasks, {"resample": {}, "ring": dict.fromkeys(tasks[:12], 0)})
    conf, plan = planned(20, limit=20)
    grown = conf | {"plan": conf["plan"] | {"limit": 60}}
    results = measure(attempts, grown, cards(tasks), plan=plan)
    assert not results["verdict"]["planned"] and results["watched"]["planned"]
    said = watched_words(results)
    assert (
        "ring finds more than resample, seen after 8 of 60 tasks counted (p .003)" in said
    )  # 12 wins in a row are worth 8191 / 13
    assert "never that there is none" in said
    conf, plan = planned(60)
    assert watched_words(measure(attempts, conf, cards(tasks), plan=plan)) == ""


@pytest.mark.parametrize("change", [{"rounds": 2}, {"arms": ["resample", "ring", "star"]}, {"base_samples": 7}])
def test_a_plan_that_changed_otherwise_is_no_watched_one(change: dict[str, Any]) -> None:
    tasks = names(12)
    conf, plan = planned(12)
    conf = conf | {"plan": conf["plan"] | change}
    results = measure(run(tasks, {"resample": {}, "ring": dict.fromkeys(tasks, 0)}), conf, cards(tasks), plan=plan)
    assert not results["watched"]["planned"] and watched_words(results) == ""


def test_without_a_plan_or_a_control_nothing_is_watched() -> None:
    attempts = run(names(12), {"resample": {}, "ring": dict.fromkeys(names(12), 0)})
    assert watched_words(measure(attempts, config(arms=["resample", "ring"]))) == ""
    assert measure(attempts, config(arms=["ring"]))["watched"]["arms"] == {}
