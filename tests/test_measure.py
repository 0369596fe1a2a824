"""measure.py against the published runs, hand-made runs, planted stories, and runs that ended badly."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import measure as m
from figures import climbed, compared, plan
from figures.hill import EDGES
from figures.plan import make_plan, plan_digest, wants_full_budget
from figures.table import Table, tabulate
from measure import measure
from records import Folder
from rows.found import rescued as rescued_rows
from swarm import Attempt, same_program
from tasksets.task import Task, Test, card
from telling.tables import climb_in_short
from telling.words import noise_words
from tests.support import describe, planted_run
from tests.support.lay_out import ARMS, COUNTS, attempt, base, config, hits, lay_out, names, play, published, run
from tests.support.thin import thinned


def dumped(results: dict[str, Any]) -> str:
    """results.json as text; raises where a nan is in it."""
    return json.dumps(results, allow_nan=False, sort_keys=True)


# ── the published runs ───────────────────────────────────────────────────────────────────────────────────────────


@cache
def laid_out(name: str) -> tuple[Table, dict[str, Any]]:
    """A published run's table, and all that is measured from it."""
    attempts, conf = lay_out(name)
    return tabulate(attempts, conf), measure(iter(attempts), conf)


SLOW = (
    "results.json",
    "results-seed1.json",
    "results-mbpp-s1.json",
    "results-27b.json",
)  # nothing in them that the others do not show


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in COUNTS])
def test_a_published_run_measures_to_its_published_file(name: str) -> None:
    _, results = laid_out(name)
    want = published(name)
    for key in ("tasks", "all_fail", "p0_histogram", "budget", "model", "seed"):
        assert results[key] == want[key], key
    for key in ("thinking", "max_tokens", "no_comments", "band", "family", "bundle"):
        assert key not in want or results[key] == want[key], key
    step = 100 / COUNTS[name]["n_arm_tasks"] + 0.1  # a lattice step, and both sides are rounded
    assert list(results["arms"]) == list(want["arms"])
    for arm, row in want["arms"].items():
        got = results["arms"][arm]
        assert {k: v for k, v in got.items() if k != "ci"} == {k: v for k, v in row.items() if k != "ci"}
        assert got["ci"] == pytest.approx(row["ci"], abs=step)
    assert list(results["deltas"]) == list(want["deltas"])
    for arm, row in want["deltas"].items():
        got = results["deltas"][arm]
        assert got.keys() == row.keys()
        for key in ("vs", "delta", "verdict", "n_paired"):
            assert got[key] == row[key], (arm, key)
        assert got["ci95"] == pytest.approx(row["ci95"], abs=step)
        assert got["p_value"] == pytest.approx(row["p_value"], abs=0.02)
    assert {key: results["noise"][key] for key in want["noise"]} == want["noise"]
    assert set(want) - set(results) <= {"note"}, "a published key is missing"
    dumped(results)


def test_seven_tasks_can_be_enough() -> None:
    """All seven above the control, by passes a sample: p is 2 of 128, and three times that under Holm."""
    tasks = names(7)
    attempts = run(tasks, {arm: {t: 0 for t in tasks if arm == "ring"} for arm in ARMS}, stop=False)
    got = measure(attempts, config(tasks="mbpp-bundle", full_budget=True, as_published=True))
    told = got["per_sample"]["ring"]["paired"]
    assert told["p_holm"] == pytest.approx(3 * 2 / 128) and told["p"] == pytest.approx(2 / 128)
    assert got["paired"]["ring"]["n_arm_only"] == 7 and got["paired"]["ring"]["verdict"] == "better"


def test_a_mean_is_rounded_twice_and_a_rate_once() -> None:
    _, results = laid_out("results-mbpp.json")
    assert results["noise"]["means"][0] == 8.1  # .080459 -> .0805 -> 8.05 -> 8.1
    assert results["arms"]["resample"]["rescue_rate"] == 8.0


def test_where_one_arm_ran_full_and_the_others_stopped_no_per_sample_rate_is_compared() -> None:
    _, results = laid_out("results-mbpp.json")
    assert results["per_sample"]["resample"]["rate"] == pytest.approx(14 / 4176)
    for arm in ("solo", "ring", "star"):
        assert results["per_sample"][arm]["rate"] is None and "stopped" in results["per_sample"][arm]["reason"]
        assert results["per_draw_stopped"][arm]["delta"] > results["intervals"][arm]["rate"] / 24 - 14 / 4176
    assert "inflated" in results["per_draw_stopped"]["label"]


@pytest.mark.slow
def test_the_four_shown_shares_print_as_published() -> None:
    """117 of 1392, 110 of 1288, 171 of 1296, 230 of 1296 programs of the last round pass every visible test."""
    counts = {"resample": (117, 174), "solo": (110, 161), "ring": (171, 162), "star": (230, 162)}
    tasks = names(174)
    attempts = [a for task in tasks for a in base(task)]
    for arm, (shown, active) in counts.items():
        early = hits(tasks, [8, 174 - 8 - active]) if active < 174 else {}
        left = shown
        for task in tasks:
            for a in play(task, arm, early.get(task)):
                if a.round == 2 and left:
                    a, left = (
                        replace(a, visible_passed=5, fitness=1.0, visible_tests="PPPPP", hidden_passed=1),
                        left - 1,
                    )
                attempts.append(a)
    climb = measure(attempts, config(full_budget=False))["climb"]
    last = {arm: climb[arm]["rounds"][2] for arm in counts}
    assert {arm: (row["all_visible"], row["programs"]) for arm, row in last.items()} == {
        arm: (shown, 8 * active) for arm, (shown, active) in counts.items()
    }
    assert [f"{100 * last[arm]['all_visible_share']:.1f}" for arm in counts] == ["8.4", "8.5", "13.2", "17.7"]
    assert all(row["passed"] == 0 for row in last.values())


@pytest.mark.slow
def test_six_runs_pool_to_43_of_223_and_rows_on_37_tasks() -> None:
    tasks = names(223)
    spans = {"resample": (0, 16), "solo": (5, 20), "ring": (12, 34), "star": (15, 37)}
    rescued = {arm: dict.fromkeys(tasks[lo:hi], 1) for arm, (lo, hi) in spans.items()}
    noise = [dict.fromkeys(tasks[10:30], 0), dict.fromkeys(tasks[19:43], 2)]
    results = measure(run(tasks, rescued, noise, particles=2), config(noise_runs=2, particles=2))
    pooled = results["pooled"]
    assert (pooled["all_runs"]["rescued"], pooled["n"], pooled["runs"]) == (43, 223, 6)
    assert pooled["arms_alone"]["rescued"] == pooled["rows_tasks"] == 37
    assert results["rescued_rows"] == pooled["rows"] == 16 + 15 + 22 + 22  # every laid-out program is its own
    assert [results["intervals"][arm]["rescued"] for arm in ARMS] == [16, 15, 22, 22]
    assert results["noise"]["rescued"] == [16, 20, 24]


# ── every section against arithmetic by hand or another route ────────────────────────────────────────────────────


def test_rescued_rows_are_distinct_programs_of_the_arms_alone() -> None:
    tasks = names(2)
    attempts = run(tasks, {"resample": {"t0000": 0}, "ring": {"t0000": 0, "t0001": 2}}, [{"t0001": 0}])
    same = [replace(a, code="print(1)\n") if a.passed else a for a in attempts]
    conf = config(arms=["resample", "ring"], noise_runs=1)
    assert measure(attempts, conf)["rescued_rows"] == 3
    results = measure(same, conf)
    assert results["rescued_rows"] == 2  # the same program on two tasks is two rows, on one task one
    assert results["pooled"]["rows_tasks"] == 2


@pytest.mark.slow
@given(st.lists(st.sampled_from(["z\ny", "z\ny  \n", "z", None]), min_size=6, max_size=6), st.booleans())
@settings(max_examples=8, deadline=None)
def test_rescued_rows_are_the_rows_that_export_writes(codes: list[str | None], torn: bool) -> None:
    attempts = [*base("a", group=2), *base("b", 1, group=2)][torn:]  # a base group that is not whole, or is
    for i, code in enumerate(codes):
        ok = code is not None
        for task in "ab":
            attempts.append(attempt(task, ["ring", "resample"][i % 2], i // 4, i // 2 % 2, 0, passed=ok, code=code))
    conf = config(arms=["resample", "ring"], particles=1, rounds=2, base_samples=2, noise_runs=1)
    conf["data"] = {"licence": None}
    cards = [Task(name, name, "?", "stdio", (Test("1", "1"),)) for name in "ab"]
    results = measure(attempts, conf)
    rows = rescued_rows([a for a in attempts if a.passed], cards, conf, results)
    assert results["rescued_rows"] == results["pooled"]["rows"] == rows.count("\n")


def test_a_base_group_that_is_not_whole_gives_no_row() -> None:
    """Three of four base attempts failed, the fourth is owed: nobody knows whether the group would have failed."""
    attempts = [*base("a", group=4), *list(base("b", group=4))[:3]]
    for task in "ab":
        for arm in ("resample", "star"):
            attempts += play(task, arm, 0 if (task, arm) == ("b", "star") else None, rounds=1)
    conf = config(arms=["resample", "star"], rounds=1, base_samples=4)
    conf["data"] = {"licence": None}
    results = measure(attempts, conf)
    pooled = results["pooled"]
    assert results["rescued_rows"] == pooled["rows"] == pooled["rows_tasks"] == pooled["all_runs"]["rescued"] == 0
    cards = [Task(name, name, "?", "stdio", (Test("1", "1"),)) for name in "ab"]
    assert rescued_rows([a for a in attempts if a.passed], cards, conf, results) == ""
    assert "1 of 2 tasks lacks base attempts: no rate and no exported row counts it." in results["warnings"]
    whole = [*attempts, attempt("b", particle=3)]
    results = measure(whole, conf)
    assert results["rescued_rows"] == results["pooled"]["all_runs"]["rescued"] == 1
    assert rescued_rows([a for a in whole if a.passed], cards, conf, results).count("\n") == 1


def test_paired_counts_and_the_sharper_control() -> None:
    tasks = names(40)
    rescued = {"resample": dict.fromkeys(tasks[:4], 0), "ring": dict.fromkeys(tasks[2:10], 1)}
    results = measure(
        run(tasks, rescued, [dict.fromkeys(tasks[4:8], 0)]), config(arms=["resample", "ring"], noise_runs=1)
    )
    got = results["paired"]["ring"]
    assert (got["n_arm_only"], got["n_resample_only"], got["n"]) == (6, 2, 40)
    assert got["delta"] == pytest.approx(0.1)
    assert got["p"] == pytest.approx(0.2890625)  # two-sided binomial, 2 of 8
    assert got["p_holm"] == got["p"]
    both = got["vs_all_resample"]
    assert both["runs"] == 2 and both["delta"] == pytest.approx(8 / 40 - (4 + 4) / 2 / 40)
    assert results["power"]["ring"]["discordant"] == 8
    assert results["power"]["ring"]["discordance_assumed"] == pytest.approx([0.2, 0.25])  # no base pass: as seen here


@pytest.mark.slow
def test_holm_is_taken_over_the_arms_of_the_metric() -> None:
    tasks = names(60)
    rescued = {
        "resample": {},
        "solo": dict.fromkeys(tasks[:6], 0),
        "ring": dict.fromkeys(tasks[:7], 0),
        "star": dict.fromkeys(tasks[:1], 0),
    }
    got = measure(run(tasks, rescued), config())["paired"]
    p = {arm: 2 * 0.5**k for arm, k in (("solo", 6), ("ring", 7))}
    assert got["ring"]["p"] == pytest.approx(p["ring"]) and got["ring"]["p_holm"] == pytest.approx(3 * p["ring"])
    assert got["solo"]["p"] == pytest.approx(p["solo"]) and got["solo"]["p_holm"] == pytest.approx(2 * p["solo"])
    assert got["star"]["p_holm"] == 1.0
    assert [got[arm]["verdict"] for arm in ("solo", "ring", "star")] == ["inconclusive", "better", "inconclusive"]


def test_full_budgets_give_passes_per_sample() -> None:
    tasks = names(3)
    attempts = run(tasks, {"resample": {}, "ring": {}}, stop=False, particles=2, rounds=2, group=2)
    lucky = {("ring", "t0000", 0, 0), ("ring", "t0000", 1, 1), ("ring", "t0001", 0, 1), ("resample", "t0000", 0, 0)}
    attempts = [
        attempt(a.task_id, a.arm, 0, a.round, a.particle, passed=True)
        if (a.arm, a.task_id, a.round, a.particle) in lucky
        else a
        for a in attempts
    ]
    conf = config(arms=["resample", "ring"], particles=2, rounds=2, base_samples=2, full_budget=True)
    results = measure(attempts, conf)
    ring = results["per_sample"]["ring"]
    assert (ring["passes"], ring["samples"], ring["n"]) == (3, 12, 3)
    assert ring["rate"] == pytest.approx(3 / 12) and results["per_sample"]["resample"]["rate"] == pytest.approx(1 / 12)
    assert ring["paired"]["delta"] == pytest.approx((1 / 4 + 1 / 4 + 0) / 3)
    assert ring["paired"]["margin"] == 0 and results["verdict"]["margin_asked"] == 0.05  # no base attempt passed
    assert results["per_draw_stopped"] is None
    # coverage by two routes: resample exchangeable, ring a round at a time
    assert results["coverage"]["resample"]["method"] == "pass_at_k"
    want = [np.mean([any(0 in pick for pick in [set(c)]) for c in combinations(range(4), k)]) / 3 for k in (1, 2, 3, 4)]
    assert results["coverage"]["resample"]["share"] == pytest.approx(want)
    assert results["coverage"]["ring"]["share"] == pytest.approx([(0.5 + 0.5) / 3, 2 / 3, 2 / 3, 2 / 3])
    assert results["arms"]["ring"]["by_round"] == [66.7, 66.7]
    assert results["arms"]["ring"]["samples"] == 12


@pytest.mark.slow
def test_coverage_after_the_whole_budget_is_the_rescue_rate() -> None:
    _, results = laid_out("results-27b.json")
    for arm in ARMS:
        curve = results["coverage"][arm]
        assert curve["method"] == "by_round" and len(curve["share"]) == 24
        assert curve["share"][-1] == pytest.approx(results["intervals"][arm]["rate"])
        assert curve["share"][7::8] == pytest.approx(np.cumsum(results["intervals"][arm]["first_pass_in_round"]) / 57)
        assert curve["share"] == sorted(curve["share"])
        assert curve["interval"][-1] == pytest.approx(results["intervals"][arm]["wilson"])
        assert all(lo <= share <= hi for share, (lo, hi) in zip(curve["share"], curve["interval"], strict=True))


def test_training_set_bands_hold_their_ends() -> None:
    passes = {"none": 0, "under": 1, "low end": 2, "high end": 8, "over": 9, "every": 10}
    attempts = [a for task, k in passes.items() for a in base(task, k, group=10)]
    results = measure(attempts, config(base_samples=10, arms=["resample"], rounds=1))
    assert results["training_set"]["base"] == {"none": 1, "under_20": 1, "20_to_80": 2, "over_80": 1, "all": 1}
    disagree = results["training_set"]["first_two_disagree"]
    assert (disagree["count"], disagree["n"]) == (1, 6)  # only the task with one pass differs in its first two


def test_training_set_keeps_refined_rounds_apart() -> None:
    tasks = names(4)
    rescued = {"resample": {"t0000": 2}, "ring": {"t0001": 0, "t0002": 1}}
    moved = measure(run(tasks, rescued), config(arms=["resample", "ring"]))["training_set"]
    assert [moved[key]["none"] for key in ("base", "on_policy", "with_refined")] == [4, 2, 1]
    assert moved["on_policy"]["under_20"] == 2


def test_an_arm_whose_round_0_is_not_the_bare_prompt_is_off_policy() -> None:
    hinted = [replace(a, prompt_sha="hint") for a in play("t", "hint", 0)]
    moved = measure([*base("t"), *hinted], config(arms=["hint"]))["training_set"]
    assert (moved["on_policy"]["none"], moved["with_refined"]["none"]) == (1, 0)


def test_near_miss_and_unrescued() -> None:
    attempts = [
        *base("half", near=True),  # its best passes 3 of 5
        *base("zero"),
        *(attempt("fifth", particle=i, visible="PWWWW" if i == 3 else "WWWWW") for i in range(8)),
        *base("solved", 2),
    ]
    for task in ("half", "zero", "fifth"):
        attempts += play(task, "resample", 1 if task == "half" else None)
    results = measure(attempts, config(arms=["resample"]))
    near = results["near_miss"]
    assert (near["all_fail"], near["near_miss"], near["at_least_half"]) == (3, 2, 1)
    assert near["mean_best_fitness"] == pytest.approx((0.6 + 0.2) / 2)
    left = results["unrescued"]
    assert (left["n"], left["at_zero"]) == (2, 1) and left["mean_best_fitness"] == pytest.approx(0.1)
    band = measure(
        [a for a in attempts if a.task_id != "zero" or a.arm == "base"], config(arms=["resample"], band="near-miss")
    )
    assert band["incomplete"]["given"] == band["arms"]["resample"]["n"] == 2
    assert band["incomplete"]["arms"]["resample"]["tasks"] == 0


def test_outcomes_add_up_to_the_attempts() -> None:
    tasks = names(3)
    attempts = run(tasks, {"resample": {}}, [{}])
    odd = [
        replace(attempts[0], code=None, reply="", outcome="no_code", finish_reason="length", reasoning="so"),
        replace(attempts[1], code=None, reply="[THINK] on and on", outcome="no_code", finish_reason="length"),
        replace(attempts[2], outcome="timeout", reply=attempts[3].reply),
        replace(
            attempts[4], code=None, reply="", outcome="context_overflow", prompt_tokens=None, completion_tokens=None
        ),
    ]
    attempts = [*odd, *attempts[3:4], *attempts[5:]]
    results = measure(attempts, config(arms=["resample"], noise_runs=1))
    rows = results["outcomes"]
    assert list(rows) == ["base", "resample", "resample re-runs"]
    assert sum(row["n"] for row in rows.values()) == len(attempts)
    assert all(sum(row["counts"].values()) == row["n"] for row in rows.values())
    assert rows["base"]["counts"] == {"wrong_answer": 20, "timeout": 1, "no_code": 2, "context_overflow": 1}
    assert (rows["base"]["truncated"], rows["base"]["cut_while_thinking"], rows["base"]["empty"]) == (2, 2, 2)
    assert rows["base"]["identical"] == 1  # the copied reply; a refused prompt has no reply that could repeat one
    assert any("1 of 24 prompts did not fit" in line for line in results["warnings"])
    assert not any("cut at max_tokens" in said for said in results["warnings"])
    assert results["calls"] == len(attempts) - 1 and results["truncated"] == 2
    assert results["tokens"]["prompt"] == 100 * (len(attempts) - 1)


def test_cost_adds_up_by_stage_and_counts_a_shared_round_once() -> None:
    tasks = names(2)
    shared = [replace(a, arm="round0") for task in tasks for a in play(task, "x", None, rounds=1)]
    shared[0] = attempt("t0000", "round0", passed=True)
    later = [a for arm in ("resample", "ring") for a in play("t0001", arm, None) if a.round]
    attempts = [*(a for task in tasks for a in base(task)), *shared, *later]
    conf = config(arms=["resample", "ring"], share_round0=True, price=[1.0, 2.0])
    results = measure(attempts, conf)
    assert results["arms"]["resample"]["n"] == results["arms"]["ring"]["n"] == 2
    assert results["arms"]["ring"]["samples"] == results["arms"]["resample"]["samples"] == 8 + 24
    assert results["arms"]["ring"]["by_round"] == [50.0, 50.0, 50.0]
    assert results["rescued_rows"] == 1
    cost = results["cost"]
    assert cost["total"]["calls"] == len(attempts) == 16 + 16 + 32
    assert {name: row["calls"] for name, row in cost["stages"].items()} == {"base": 16, "arms": 48, "noise_runs": 0}
    assert cost["arms"]["ring"]["calls"] == 32
    assert cost["total"]["usd"] == pytest.approx(64 * (100 * 1.0 + 50 * 2.0) / 1e6)
    assert cost["arms"]["ring"]["rescues_per_million_tokens"] == pytest.approx(1e6 / (32 * 150))
    assert cost["total"]["cpu_seconds"] == pytest.approx(64 * 0.25)


def test_a_noise_run_draws_its_own_round_0_where_the_arms_share_one() -> None:
    shared = [replace(a, arm="round0") for a in play("t", "x", 0, rounds=1)]
    again = list(play("t", "resample", None, rerun=1))
    results = measure([*base("t"), *shared, *again], config(arms=["resample"], share_round0=True, noise_runs=1))
    assert results["noise"]["rescued"] == [1, 0] and results["incomplete"]["noise_runs"][0]["tasks"] == 0
    torn = measure([*base("t"), *shared, *again[8:]], config(arms=["resample"], share_round0=True, noise_runs=1))
    assert torn["incomplete"]["noise_runs"][0] == {"tasks": 1, "owed_at_most": 8, "refused": 0}


def test_unknown_tokens_are_counted_and_give_no_price() -> None:
    attempts = [replace(a, prompt_tokens=None, completion_tokens=None) for a in base("t")]
    total = measure(attempts, config(price=[1.0, 1.0]))["cost"]["total"]
    assert total["tokens_unknown"] == 8 and total["usd"] is None


def test_wall_seconds_are_those_of_all_processes_and_a_killed_one_counts_to_its_last_word() -> None:
    events = [
        {"event": "start", "time": 100.0},
        {"event": "sent", "time": 101.0},
        {"event": "answered", "time": 130.0},
        {"event": "sent", "time": 130.0},  # killed here, with a request under way
        {"event": "start", "time": 1000.0},
        {"event": "sent", "time": 1000.5},
        {"event": "retry", "time": 1001.0, "possibly_billed": True},
        {"event": "sent", "time": 1002.0},
        {"event": "answered", "time": 1003.0},
        {"event": "end", "time": 1010.0, "code": 0},
        {"event": "start", "time": 2000.0},  # a regrade
        {"event": "end", "time": 2500.0, "code": 0},
    ]
    results = measure(base("t"), config(), events=events)
    assert results["seconds"] == 40 and results["cost"]["wall_seconds"] == 40.0
    assert results["cost"]["requests"] == {
        "sent": 4, "answered": 2, "retries": 1, "refused": 0, "possibly_billed": 2, "faults": 0,
    }  # fmt: skip


def test_by_tag_counts_rescues_and_leaves_out_tags_that_name_tasks_apart() -> None:
    tasks = names(16)
    cards = [
        Task(
            task, task, "?", "stdio", (Test("1", "1"),),
            tags={"split": "test" if i % 2 else "valid", "rating": str(800 + 100 * i), "author": f"author {i}"},
        )
        for i, task in enumerate(tasks)
    ]  # fmt: skip
    attempts = run(tasks, {"resample": {"t0001": 0, "t0003": 1, "t0004": 1}})
    got = measure(attempts, config(arms=["resample"]), cards=cards)["by_tag"]
    assert set(got) == {"split", "rating"}
    assert got["split"]["test"]["arms"]["resample"] == {"n": 8, "rescued": 2}
    assert list(got["rating"]) == ["800-1199", "1200-1599", "1600-1999", "2000-2399"]
    assert got["rating"]["800-1199"]["tasks"] == 4 and got["rating"]["1200-1599"]["arms"]["resample"]["rescued"] == 1
    rows = measure(attempts, config(arms=["resample"]), cards=map(card, cards))
    assert rows["by_tag"] == got


def test_signal_says_what_a_refine_prompt_had_to_offer() -> None:
    attempts = [*base("t")]
    fitness = [0, 0, 2, 1]  # visible tests that the four particles pass in round 0
    for i, k in enumerate(fitness):
        attempts.append(attempt("t", "ring", 0, 0, i, visible="P" * k + "W" * (5 - k)))
    for i in range(4):
        shown = f"ring/0/0/{(i + 1) % 4}" if i < 3 else None
        attempts.append(attempt("t", "ring", 0, 1, i, parent=f"ring/0/0/{i}", social=shown))
    got = measure(attempts, config(arms=["resample", "ring"], particles=4, rounds=2))["signal"]["ring"]
    assert (got["refine_prompts"], got["own_zero"]) == (4, 2)
    assert (got["with_neighbour"], got["neighbour_better"]) == (3, 1)  # 0 against 0, 0 against 2, 2 against 1
    assert got["own_zero_share"] == 0.5


LINES = st.lists(st.sampled_from(["a = 1", "  a = 1", "b", "", "   ", "pass"]), max_size=8).map("\n".join)


def dice(one: str, two: str) -> float:
    """The definition, by Counter: stripped lines as multisets."""
    a, b = (Counter(line.strip() for line in text.split("\n") if line.strip()) for text in (one, two))
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 1.0


def between(pairs: Iterable[tuple[str | None, str | None]]) -> float | None:
    """Mean overlap of the pairs of which both are programs."""
    both = [dice(a, b) for a, b in pairs if a is not None and b is not None]
    return pytest.approx(np.mean(both)) if both else None


@pytest.mark.slow
@given(st.lists(st.none() | LINES, min_size=8, max_size=8))
@settings(max_examples=20, deadline=None)
def test_anchoring_is_the_dice_overlap_of_lines(texts: list[str | None]) -> None:
    attempts = [*base("t")]
    attempts += [attempt("t", "ring", 0, i // 4, i % 4, code=text) for i, text in enumerate(texts)]
    got = measure(attempts, config(arms=["ring"], particles=4, rounds=2))["anchoring"]["ring"]
    first, second = texts[:4], texts[4:]
    assert got[0]["to_own_first"] is None and got[0]["exact_repeats"] == 0
    assert got[1]["to_own_first"] == between(zip(first, second, strict=True))
    for row, group in zip(got, (first, second), strict=True):
        there = [text for text in group if text is not None]
        like = None if row["diversity"] is None else 1 - row["diversity"]
        assert like == between(combinations(group, 2)) and row["programs"] == len(there)
        assert row["distinct_programs"] == (len(set(map(same_program, there))) or None)
    known = {same_program(text) for text in first if text is not None}
    assert got[1]["exact_repeats"] == sum(same_program(text) in known for text in second if text is not None)


def test_identical_programs_have_similarity_one_and_no_diversity() -> None:
    attempts = [*base("t"), *(replace(a, code="x = 1\nprint(x)\n") for a in play("t", "star", None))]
    for row in measure(attempts, config(arms=["star"]))["anchoring"]["star"]:
        assert row["diversity"] == 0.0
        assert row["distinct_programs"] == row["distinct_signatures"] == 1
        assert row["exact_repeats_share"] == (1.0 if row["round"] else 0.0)
        assert row["to_own_first"] == (1.0 if row["round"] else None)


# ── planted stories ──────────────────────────────────────────────────────────────────────────────────────────────


def hard_coder(tasks: list[str], stop: bool) -> list[Attempt]:
    """`solo` learns to print the shown outputs: by the last round a third of its programs do, and none is right."""
    luck = random.Random(5)
    attempts = [a for task in tasks for a in base(task)]
    for arm in ("resample", "solo"):
        for task in tasks:
            for r in range(3):
                rate = 0.04 + (0.15 * r if arm == "solo" else 0)
                row = []
                for i in range(8):
                    right = luck.random() < 0.004
                    shown = right or luck.random() < rate
                    visible = "PPPPP" if shown else "".join(luck.choice("PWWW") for _ in range(4)) + "W"
                    row.append(
                        attempt(
                            task,
                            arm,
                            0,
                            r,
                            i,
                            passed=right,
                            visible=visible,
                            hidden="PPPP"
                            if right
                            else "WWPW"
                            if shown and luck.random() < 0.2
                            else "WWWW"
                            if shown
                            else "",
                        )
                    )
                attempts += row
                if stop and any(a.passed for a in row):
                    break
    return attempts


@pytest.mark.slow
@pytest.mark.parametrize("stop", [True, False])
def test_a_policy_that_hard_codes_the_shown_tests_is_seen_doing_it(stop: bool) -> None:
    results = measure(hard_coder(names(120), stop), config(arms=["resample", "solo"], full_budget=not stop))
    solo, control = results["climb"]["solo"], results["climb"]["resample"]
    shares = [row["all_visible_share"] for row in solo["rounds"]]
    assert shares == sorted(shares) and shares[2] > shares[0] + 0.2
    for story in (solo["moved"], solo["against_resample"]):
        assert story["shown"]["interval"][0] > 0.15
        assert abs(story["hidden"]["mean"]) < 0.05
        assert story["gap"]["interval"][0] > 0.15
    lo, hi = control["moved"]["gap"]["interval"]
    assert lo < 0 < hi
    assert results["verdict"]["arms"]["solo"] != "better" and results["paired"]["solo"]["verdict"] != "better"
    active = [row["active"]["tasks"] for row in solo["rounds"]]
    assert active == [120] * 3 if not stop else active == sorted(active, reverse=True) and active[2] < 120


@pytest.mark.slow
def test_by_round_all_arms_stand_on_the_same_tasks_and_their_number_is_told() -> None:
    """Ring solves ten tasks at once and leaves; resample stays there, where every program passes the visible tests.
    Each arm's own programs of round 1 say "resample 25%, ring 0%": of tasks that ring has left."""
    tasks = names(40)
    attempts = run(tasks, {"resample": {}, "ring": dict.fromkeys(tasks[:10], 0)})
    shown = {"visible_tests": "PPPPP", "visible_passed": 5, "fitness": 1.0, "hidden_tests": "WWWW"}
    attempts = [
        replace(a, **shown) if a.arm == "resample" and a.task_id in tasks[:10] and a.round else a for a in attempts
    ]
    results = measure(attempts, config(arms=["resample", "ring"]))
    first, second, _ = results["climb"]["resample"]["rounds"]
    assert second["all_visible_share"] == 0.25  # of the arm's own programs, as published
    assert (first["together"]["tasks"], second["together"]["tasks"]) == (40, 30)
    assert [results["climb"][arm]["rounds"][1]["together"]["all_visible_share"] for arm in ("resample", "ring")] == [
        0,
        0,
    ]
    told = climb_in_short(results)
    assert told is not None and list(told.rows[-1]) == ["tasks", "40", "30", "30", "40", "30", "30"]
    assert [row[2] for row in told.rows[:-1]] == ["0.0", "0.0"]
    assert any("fewer and harder ones from round to round" in note for note in told.notes)
    full = measure(run(tasks, {"resample": {}, "ring": dict.fromkeys(tasks[:10], 0)}, stop=False),
                   config(arms=["resample", "ring"], full_budget=True))  # fmt: skip
    whole = climb_in_short(full)
    assert whole is not None and list(whole.rows[-1][1:4]) == ["40"] * 3 and "" in whole.notes


def test_a_true_climb_leaves_no_gap() -> None:
    """Programs that pass the shown tests pass the hidden ones: both move alike, and the gap is at zero."""
    luck = random.Random(2)
    tasks = names(60)
    attempts = [a for task in tasks for a in base(task)]
    for arm in ("resample", "ring"):
        for task in tasks:
            for r in range(3):
                rate = 0.02 + (0.2 * r if arm == "ring" else 0)
                attempts += [attempt(task, arm, 0, r, i, passed=luck.random() < rate) for i in range(8)]
    results = measure(attempts, config(arms=["resample", "ring"], full_budget=True))
    ring = results["climb"]["ring"]
    assert ring["moved"]["shown"] == ring["moved"]["hidden"] and ring["moved"]["shown"]["interval"][0] > 0.2
    assert ring["moved"]["gap"]["mean"] == 0.0
    assert results["paired"]["ring"]["verdict"] == results["per_sample"]["ring"]["paired"]["verdict"] == "better"


@pytest.mark.slow
def test_planted_run_means_give_the_band_and_who_clears_it() -> None:
    tasks = names(200)
    resample = [dict.fromkeys(tasks[:k], 0) for k in (20, 22, 18)]
    rescued = {"resample": resample[0], "ring": dict.fromkeys(tasks[:50], 0), "star": dict.fromkeys(tasks[:24], 0)}
    conf = config(arms=["resample", "ring", "star"], noise_runs=2, particles=2)
    got = measure(run(tasks, rescued, resample[1:], particles=2), conf)["noise"]
    assert got["means"] == [10.0, 11.0, 9.0] and got["run_std"] == 1.0
    assert got["band_t"] == pytest.approx(4.302652729911275 * math.sqrt(2) * 0.01)
    # Tasks 18 to 21 differ between the runs: two of them in one run of three, two in two.
    assert got["band_within"] == pytest.approx(1.959963984540054 * math.sqrt(2) * math.sqrt(4 / 3) / 200)
    assert got["clears"] == {
        "ring": {"band_t": True, "band_within": True},
        "star": {"band_t": False, "band_within": True},  # 2 points against 6.1 and 1.6
    }


@pytest.mark.slow
def test_runs_alike_span_no_band_and_nobody_clears_one() -> None:
    tasks = names(3)
    alike = {tasks[0]: 0}
    rescued = {"resample": alike, "ring": {}, "star": dict.fromkeys(tasks, 0)}
    results = measure(run(tasks, rescued, [alike]), config(arms=["resample", "ring", "star"], noise_runs=1))
    assert results["noise"]["band_t"] == results["noise"]["band_within"] == 0
    assert results["noise"]["clears"] == {arm: {"band_t": None, "band_within": None} for arm in ("ring", "star")}
    said = noise_words(results)
    assert "0.0 points" not in said and "clear" not in said and "do not tell" in said
    # Another task is rescued by each run: the means are alike, the replicates are not.
    results = measure(
        run(names(40), {"resample": {"t0000": 0}, "ring": dict.fromkeys(names(40), 0)}, [{"t0001": 0}]),
        config(arms=["resample", "ring"], noise_runs=1),
    )
    assert results["noise"]["clears"]["ring"] == {"band_t": None, "band_within": True}
    said = noise_words(results)
    assert "0.0 points" not in said and said.endswith("Ring clears it, which is no test.")


def test_a_rate_of_nothing_at_all_is_no_knowledge() -> None:
    attempts = run(names(3), {"resample": {"t0000": 0}, "ring": {}}, stop=False)
    got = measure(attempts, config(arms=["resample", "ring"], full_budget=True))["per_sample"]["ring"]
    assert got["rate"] == 0 and got["samples"] == 72
    # Wilson's limit for 0 of 3: z² / (n + z²). What three tasks can tell, however many samples each had.
    z2 = 1.959963984540054**2
    assert got["interval"] == pytest.approx([0, z2 / (3 + z2)])


# ── runs that ended badly, or hold next to nothing ───────────────────────────────────────────────────────────────


def test_no_attempt_at_all() -> None:
    results = measure([], config())
    dumped(results)
    assert results["tasks"] == 0 and results["p0_histogram"] == [0] * 9
    assert results["arms"]["ring"] == {
        "rescue_rate": None, "ci": None, "n": 0, "by_round": [None] * 3, "samples": 0, "samples_per_task": None,
    }  # fmt: skip
    assert results["deltas"]["ring"]["verdict"] == "insufficient_data"
    assert results["verdict"]["sentence"].startswith("No task was given")


def test_no_task_is_all_fail() -> None:
    results = measure([*base("a", 3), *base("b", 8)], config(noise_runs=2))
    dumped(results)
    assert results["all_fail"] == 0 and results["p0_histogram"] == [0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert any("No task is all-fail" in said for said in results["warnings"])
    assert results["near_miss"] == {
        "all_fail": 0, "near_miss": 0, "share": None, "mean_best_fitness": None, "at_least_half": 0,
        "at_least_half_share": None,
    }  # fmt: skip


def test_one_task_has_a_value_and_no_interval() -> None:
    results = measure(run(["t"], {arm: {"t": 1} for arm in ARMS}, [{}]), config(noise_runs=1))
    dumped(results)
    assert results["arms"]["ring"]["rescue_rate"] == 100.0 and results["arms"]["ring"]["ci"] is None
    assert results["paired"]["ring"]["interval"] == [None, None]
    assert results["paired"]["ring"]["verdict"] == "inconclusive"
    assert results["deltas"]["ring"]["verdict"] == "insufficient_data"
    assert any("not meaningful with 1 task" in said for said in results["warnings"])


def test_an_arm_that_rescued_everything() -> None:
    tasks = names(12)
    results = measure(run(tasks, {"resample": {}, "star": dict.fromkeys(tasks, 0)}), config(arms=["resample", "star"]))
    dumped(results)
    assert results["paired"]["star"]["verdict"] == "better"
    assert results["intervals"]["star"]["wilson"][1] == 1.0 and results["intervals"]["star"]["wilson"][0] < 0.8
    assert results["unrescued"] == {"n": 0, "mean_best_fitness": None, "at_zero": 0, "at_zero_share": None}
    assert results["climb"]["star"]["moved"] is None  # nothing was left to refine


def test_without_a_control_there_is_nothing_to_compare() -> None:
    results = measure(run(["a", "b"], {"ring": {"a": 0}}), config(arms=["ring"]))
    dumped(results)
    assert results["deltas"] == results["paired"] == results["power"] == {}
    assert results["noise"] == {"n": 2, "runs": 0, "clears": {}}
    assert "nothing to compare with" in results["verdict"]["sentence"]
    assert results["climb"]["ring"]["against_resample"] is None and results["climb"]["ring"]["moved"]["n"] == 1


def test_the_control_alone() -> None:
    results = measure(run(["a", "b"], {"resample": {"a": 0}}), config(arms=["resample"]))
    dumped(results)
    assert results["deltas"] == {} and "nothing to compare" in results["verdict"]["sentence"]


def test_zero_noise_runs_give_no_band() -> None:
    noise = measure(run(names(5), {"resample": {}}), config(arms=["resample"]))["noise"]
    assert noise["runs"] == 1 and noise["means"] == [0.0] and noise["band"] is None and noise["run_std"] is None


def test_equal_noise_runs_are_no_evidence_of_no_noise() -> None:
    tasks = names(5)
    results = measure(run(tasks, {"resample": {}}, [{}, {}]), config(arms=["resample"], noise_runs=2))
    assert results["noise"]["band"] == 0.0 and any("no evidence" in said for said in results["warnings"])


def test_a_task_with_a_missing_base_attempt_is_not_all_fail() -> None:
    attempts = [
        a for a in run(["a", "b"], {"resample": {}}) if not (a.task_id == "b" and a.arm == "base" and a.particle == 7)
    ]
    results = measure(attempts, config(arms=["resample"]))
    assert (results["tasks"], results["all_fail"], results["arms"]["resample"]["n"]) == (2, 1, 1)
    assert (results["incomplete"]["base_tasks"], results["incomplete"]["base_owed"]) == (1, 1)
    assert sum(results["p0_histogram"]) == 1
    assert any("1 of 2 tasks lacks base attempts" in said for said in results["warnings"])


def test_a_task_that_was_never_asked_is_owed_when_its_card_is_there() -> None:
    cards: list[dict[str, Any]] = [{"id": task, "tags": {}} for task in ("a", "b")]
    results = measure(base("a"), config(), cards=cards)
    assert results["tasks"] == 2 and results["incomplete"]["base_owed"] == 8


def test_what_an_arm_owes_follows_from_the_plan() -> None:
    whole = [*base("t"), *play("t", "resample", 1)]
    one = measure(whole, config(arms=["resample"]))
    assert one["incomplete"]["arms"]["resample"] == {"tasks": 0, "owed_at_most": 0, "refused": 0}
    assert one["arms"]["resample"]["samples"] == 16
    full = measure(whole, config(arms=["resample"], full_budget=True))
    assert full["incomplete"]["arms"]["resample"] == {"tasks": 1, "owed_at_most": 8, "refused": 0}
    assert full["arms"]["resample"]["n"] == 0 and full["arms"]["resample"]["rescue_rate"] is None
    assert full["pooled"]["all_runs"]["rescued"] == 1 and full["pooled"]["incomplete_tasks"] == 1
    torn = [a for a in whole if (a.arm, a.round, a.particle) != ("resample", 1, 5)]
    cut = measure(torn, config(arms=["resample"]))
    assert cut["incomplete"]["arms"]["resample"]["tasks"] == 1  # the pass came in a round that is not whole
    more = measure(whole, config(arms=["resample", "ring"], noise_runs=1))
    assert more["incomplete"]["arms"]["ring"] == {"tasks": 1, "owed_at_most": 24, "refused": 0}
    assert more["incomplete"]["noise_runs"] == [{"tasks": 1, "owed_at_most": 24, "refused": 0}]
    less = measure(whole, config(arms=["resample"], rounds=1))
    assert less["arms"]["resample"]["rescue_rate"] == 0.0 and less["arms"]["resample"]["samples"] == 8
    grown = measure(whole, config(arms=["resample"], base_samples=9))
    assert grown["all_fail"] == 0 and grown["incomplete"]["base_owed"] == 1


def test_what_a_re_run_alone_rescued_is_rescued_by_some_run_and_by_no_arm() -> None:
    attempts = run(names(5), {"resample": {"t0001": 0}, "ring": {}}, noise=[{"t0001": 0, "t0003": 1}])
    found = measure(attempts, config(arms=["resample", "ring"], noise_runs=1))["pooled"]
    assert (found["runs"], found["all_runs"]["rescued"], found["arms_alone"]["rescued"]) == (3, 2, 1)


@pytest.mark.parametrize("owing", ["resample", "ring"])
def test_a_task_on_which_either_owes_is_not_compared(owing: str) -> None:
    attempts = run(names(6), {"resample": {"t0001": 0}, "ring": {"t0002": 0}})
    short = [a for a in attempts if (a.task_id, a.arm, a.round, a.particle) != ("t0003", owing, 2, 7)]
    row = measure(short, config(arms=["resample", "ring"]))["paired"]["ring"]
    assert (row["n"], row["n_arm_only"], row["n_resample_only"]) == (5, 1, 1)
    assert row["control_rate"] == pytest.approx(1 / 5)


def refuse(a: Attempt) -> Attempt:
    marks = {"visible_tests": "X" * len(a.visible_tests), "hidden_tests": "", "outcome": "refused", "got": "refused"}
    return replace(
        a, code=None, reply="", fitness=0.0, passed=False, prompt_tokens=None, completion_tokens=None, **marks
    )


def test_a_task_of_which_a_prompt_is_refused_is_in_no_rate_and_the_run_is_finished() -> None:
    attempts = run(["a", "b", "c"], {"resample": {"a": 1}, "ring": {"b": 0}}, [{}])
    plan = {"arms": ["resample", "ring"], "noise_runs": 1}
    whole = measure(attempts, config(**plan))
    base = [refuse(a) if (a.task_id, a.arm, a.particle) == ("c", "base", 7) else a for a in attempts]
    base = [a for a in base if a.task_id != "c" or a.arm == "base"]  # such a task is not given to the arms
    results = measure(base, config(**plan))
    assert (results["tasks"], results["all_fail"], sum(results["p0_histogram"])) == (3, 2, 2)
    owing = results["incomplete"]
    assert (owing["base_tasks"], owing["base_owed"], owing["base_refused"]) == (0, 0, 1)
    assert results["verdict"]["exploratory"] == whole["verdict"]["exploratory"]
    assert any("The server refuses prompts: the base group on 1 of 3 tasks." in said for said in results["warnings"])
    assert results["calls"] == len(base) - 1 == results["cost"]["total"]["calls"]
    assert results["outcomes"]["base"]["counts"]["refused"] == 1

    arm = [refuse(a) if (a.task_id, a.arm, a.rerun, a.round, a.particle) == ("c", "ring", 0, 0, 2) else a
           for a in attempts]  # fmt: skip
    results = measure(arm, config(**plan))
    rows = results["incomplete"]["arms"]
    assert rows["ring"] == {"tasks": 0, "owed_at_most": 0, "refused": 1} and rows["resample"]["refused"] == 0
    assert (results["arms"]["ring"]["n"], results["arms"]["resample"]["n"]) == (2, 3)
    assert results["deltas"]["ring"]["n_paired"] == 2 and results["pooled"]["incomplete_tasks"] == 0
    assert results["verdict"]["exploratory"] == whole["verdict"]["exploratory"]
    assert "ring on 1 of 3 tasks" in " ".join(results["warnings"])


def test_what_is_refused_after_round_0_is_a_failed_attempt_and_lifts_no_rate() -> None:
    # Refusals of refined prompts fall where nothing has passed yet: left out, 1 of 4 tasks would be 1 of 2.
    attempts = run(names(4), {"resample": {"t0000": 0}, "ring": {"t0000": 0}}, [{}])
    plan = {"arms": ["resample", "ring"], "noise_runs": 1}
    late = [refuse(a) if a.task_id in ("t0001", "t0002") and a.arm == "ring" and a.round else a for a in attempts]
    whole, results = measure(attempts, config(**plan)), measure(late, config(**plan))
    assert results["incomplete"]["arms"]["ring"] == {"tasks": 0, "owed_at_most": 0, "refused": 0}
    assert (results["deltas"], results["verdict"]) == (whole["deltas"], whole["verdict"])
    assert (results["arms"]["ring"]["n"], results["arms"]["ring"]["rescue_rate"]) == (4, 25.0)
    assert results["watched"] == whole["watched"] and results["watched"]["arms"]["ring"]["n"] == 4
    assert any("after the first: ring 32 prompts on 2 of 4 tasks" in said for said in results["warnings"])
    again = [refuse(a) if a.task_id == "t0003" and a.rerun and a.round == 2 else a for a in attempts]
    assert any("noise run 1 8 prompts on 1 of 4 tasks" in said for said in measure(again, config(**plan))["warnings"])
    shut = measure([refuse(a) if a.task_id == "t0001" and a.arm == "ring" and not a.round else a
                    for a in attempts], config(**plan))  # fmt: skip
    assert shut["arms"]["ring"]["n"] == 3  # of what is asked whole, whatever passes, nothing is said


def test_a_line_that_stands_twice_counts_once() -> None:
    attempts = run(["a"], {"resample": {}})
    results = measure([*attempts, attempts[-1]], config(arms=["resample"]))
    assert results["calls"] == len(attempts) and results["incomplete"]["duplicate_lines"] == 1


SLOTS = [("base", 0, 0, i) for i in range(2)] + [
    (arm, k, r, i)
    for arm, k in (("resample", 0), ("resample", 1), ("solo", 0), ("ring", 0))
    for r in range(2)
    for i in range(2)
]  # fmt: skip
SMALL = {"arms": ["resample", "solo", "ring"], "particles": 2, "rounds": 2, "base_samples": 2, "noise_runs": 1}


@st.composite
def small_runs(draw: Any) -> list[Attempt]:
    """A few tasks, two particles, two rounds, three arms and a noise run, with any letters."""
    attempts = []
    for task in names(draw(st.integers(1, 5))):
        for arm, k, r, i in SLOTS:
            visible = (
                draw(st.sampled_from(["PP", "PW", "WW", ".."]))
                if arm != "base"
                else draw(st.sampled_from(["PW", "WW"]))
            )
            hidden = draw(st.sampled_from(["PP", "PW", "WW"])) if visible == "PP" else ""
            code = draw(st.sampled_from(["x", "x\ny", "y\ny", None])) if visible != "PP" else "z\ny"
            attempts.append(
                attempt(
                    task, arm, k, r, i, passed=hidden == "PP", visible=visible, hidden=hidden, code=code, hidden_total=2
                )
            )
    return attempts


few = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.slow
@given(small_runs(), st.booleans(), st.randoms())
@few
def test_the_order_of_rows_does_not_matter(attempts: list[Attempt], full: bool, luck: random.Random) -> None:
    conf = config(**SMALL, full_budget=full)
    before = dumped(measure(attempts, conf))
    luck.shuffle(attempts)
    assert dumped(measure(iter(attempts), conf)) == before


def renamed(attempts: list[Attempt], names_: dict[str, str]) -> list[Attempt]:
    return [replace(a, arm=names_.get(a.arm, a.arm)) if a.rerun == 0 else a for a in attempts]


@pytest.mark.slow
@given(small_runs(), st.booleans())
@few
def test_relabelling_two_arms_swaps_their_figures(attempts: list[Attempt], full: bool) -> None:
    conf = config(**SMALL, full_budget=full)
    one = measure(attempts, conf)
    two = measure(renamed(attempts, {"solo": "ring", "ring": "solo"}), conf)
    swap = {"solo": "ring", "ring": "solo"}
    for key, value in one.items():
        if key in ("arms", "deltas", "intervals", "paired", "per_sample", "coverage", "climb", "anchoring", "outcomes"):
            assert {swap.get(arm, arm): row for arm, row in value.items()} == two[key], key
    assert {swap[arm]: word for arm, word in one["verdict"]["arms"].items()} == two["verdict"]["arms"]
    assert one["pooled"] == two["pooled"] and one["training_set"] == two["training_set"]


@pytest.mark.slow
@given(small_runs())
@few
def test_swapping_an_arm_with_the_control_mirrors_the_answer(attempts: list[Attempt]) -> None:
    conf = config(**{**SMALL, "noise_runs": 0})
    attempts = [a for a in attempts if a.rerun == 0]
    one = measure(attempts, conf)["paired"]["ring"]
    two = measure(renamed(attempts, {"resample": "ring", "ring": "resample"}), conf)["paired"]["ring"]
    assert two["n_arm_only"] == one["n_resample_only"] and two["n_resample_only"] == one["n_arm_only"]
    assert two["p"] == one["p"] and two["n"] == one["n"]
    if one["delta"] is not None:
        assert two["delta"] == -one["delta"]
    if one["interval"][0] is not None:
        assert two["interval"] == pytest.approx([-one["interval"][1], -one["interval"][0]])
    mirror = {"better": "worse", "worse": "better"}
    assert two["verdict"] == mirror.get(one["verdict"], one["verdict"])


@pytest.mark.slow
@given(small_runs(), st.floats(0, 1), st.randoms(), st.booleans())
@few
def test_an_interrupted_run_tells_of_what_is_finished_and_counts_the_rest(
    attempts: list[Attempt], kept: float, luck: random.Random, full: bool
) -> None:
    conf = config(**SMALL, full_budget=full)
    whole = measure(attempts, conf)
    some = [a for a in attempts if luck.random() < kept]
    torn = measure(some, conf, cards=[{"id": task, "tags": {}} for task in {a.task_id for a in attempts}])
    dumped(torn)
    assert torn["tasks"] == whole["tasks"]
    assert sum(torn["p0_histogram"]) + torn["incomplete"]["base_tasks"] == torn["tasks"]
    assert sum(row["n"] for row in torn["outcomes"].values()) == len(some)
    for arm, row in torn["intervals"].items():
        assert row["n"] + torn["incomplete"]["arms"][arm]["tasks"] == torn["incomplete"]["given"]
        assert row["rescued"] <= whole["intervals"][arm]["rescued"]
        assert row["n"] - row["rescued"] <= whole["intervals"][arm]["n"] - whole["intervals"][arm]["rescued"]


# ── regrading ────────────────────────────────────────────────────────────────────────────────────────────────────


def check(a: Attempt, part: str, letters: str, name: str = "regrade") -> dict[str, Any]:
    program = sha256((a.code or "").encode()).hexdigest()
    return {
        "task_id": a.task_id, "task_sha": "", "program": program, "tests": f"{name}/{part}", "rules": "",
        "letters": letters, "cpu_seconds": 0.5,
    }  # fmt: skip


def test_checks_replace_the_grades_of_a_regraded_run() -> None:
    attempts = run(["a", "b"], {"resample": {"a": 0}})
    none = replace(attempts[0], code=None, outcome="no_code", visible_tests="NNNNN")
    attempts = [none, *attempts[1:]]
    checks = []
    for a in attempts:
        if a.code is None:
            continue
        if a.passed:
            checks += [check(a, "visible", "PPPPP"), check(a, "hidden", "PPTW")]
        elif (a.task_id, a.arm, a.particle, a.round) == ("b", "resample", 3, 2):
            checks += [check(a, "visible", "PPPPP"), check(a, "hidden", "PPPP")]
        else:
            checks += [check(a, "visible", "RWWWP"), check(a, "visible", "PPPPP", name="other")]
    conf = config(arms=["resample"], full_budget=False)
    assert measure(attempts, conf)["intervals"]["resample"]["rescued"] == 1
    got = measure(attempts, conf | {"grades": "regrade"}, checks=checks)
    assert got["grades"] == "regrade"
    # `a` lost the pass it stopped at and now owes its later rounds; `b` gained one.
    assert got["incomplete"]["arms"]["resample"]["tasks"] == 1
    assert got["intervals"]["resample"] | {"bootstrap": 0} == {
        "n": 1, "rescued": 1, "rate": 1.0, "wilson": pytest.approx([0.2065, 1.0], abs=1e-3), "bootstrap": 0,
        "first_pass_in_round": [0, 0, 1],
    }  # fmt: skip
    assert got["outcomes"]["base"]["counts"] == {"runtime_error": 15, "no_code": 1}
    assert got["outcomes"]["resample"]["counts"] == {"pass": 1, "timeout": 1, "runtime_error": 30}


def test_a_program_without_a_check_keeps_its_grade_and_is_counted() -> None:
    attempts = list(base("a", 2))
    one = measure(attempts, config(grades="regrade"), checks=[check(attempts[0], "visible", "WWWWW")])
    assert one["p0_histogram"][1] == 1 and "Not in regrade: 7 attempts on 1 task," in one["warnings"][-1]
    # Every visible test is passed now, and the hidden ones were not run: not known, so not a pass.
    two = measure(attempts, config(grades="regrade"), checks=[check(a, "visible", "PPPPP") for a in attempts])
    assert two["p0_histogram"][2] == 1 and "8 attempts" in two["warnings"][-1]


# ── the plan and its verdict ─────────────────────────────────────────────────────────────────────────────────────


def planned(conf: dict[str, Any], n_tasks: int, written: float = 500.0) -> tuple[dict[str, Any], dict[str, Any]]:
    plan = make_plan(conf, n_tasks) | {"written": written}
    return conf | {"plan_digest": plan_digest(plan)}, plan


def test_the_plan_says_what_will_be_concluded_and_with_what_power() -> None:
    plan = make_plan(config(noise_runs=2), 220, median_rating=1900.0)
    dumped(plan)
    assert (plan["primary_metric"], plan["margin"], plan["control"]) == ("rescue_rate", 0.05, "resample")
    assert plan["family"] == ["solo", "ring", "star"]
    assert plan["calls"] == {
        "base": 1760, "arms_if_all_fail": 21120, "noise_runs_if_all_fail": 10560, "largest": 33440,
    }  # fmt: skip
    assert [plan["power"][share]["tasks"] for share in ("all", "half", "quarter")] == [220, 110, 55]
    powers = [plan["power"][share]["power"] for share in ("all", "half", "quarter")]
    assert powers == sorted(powers, reverse=True)
    # By simulation: a true difference of 5 points at discordance .09 is found by the exact test this often; three runs
    # of the control are worth half as many tasks more.
    rng = np.random.default_rng(1)
    draws = rng.multinomial(330, [0.07, 0.02, 0.91], size=20000)
    from scipy.stats import binom

    low = draws[:, :2].min(axis=1)
    p = np.minimum(1, 2 * binom.cdf(low, draws[:, :2].sum(axis=1), 0.5))
    assert plan["power"]["all"]["power"] == pytest.approx((p <= 0.05).mean(), abs=0.012)
    assert plan["population"]["median_rating"] == 1900.0


def test_the_positive_control_is_judged_by_rescues_and_as_published_by_passes_per_sample() -> None:
    full = wants_full_budget("mbpp-bundle", as_published=False)
    plan = make_plan(config(tasks="mbpp-bundle", full_budget=full), 192)
    assert (plan["primary_metric"], plan["margin"]) == ("rescue_rate", 0.05)
    assert plan["budget"]["stop_at_first_pass"] is False
    plan = make_plan(config(tasks="mbpp-bundle", full_budget=True, as_published=True), 192)
    assert (plan["primary_metric"], plan["margin"]) == ("per_sample", 0.01)
    full = wants_full_budget("mbpp-bundle", as_published=True)
    as_published = make_plan(config(tasks="mbpp-bundle", full_budget=full, as_published=True), 192)
    assert (as_published["primary_metric"], as_published["budget"]["stop_at_first_pass"]) == ("rescue_rate", True)
    assert not wants_full_budget("code_contests", as_published=False)


def test_the_plans_rule_is_applied_and_said_to_be_planned() -> None:
    tasks = names(60)
    attempts = run(tasks, {"resample": {}, "ring": dict.fromkeys(tasks[:9], 0)})
    conf, plan = planned(config(arms=["resample", "ring"]), 60)
    got = measure(attempts, conf, plan=plan)["verdict"]
    assert got["planned"] and got["exploratory"] == [] and got["arms"] == {"ring": "better"}
    assert got["sentence"] == "Ring found more than resample by rescue rate."
    amended = plan | {"amendments": [{"time": 2000.0, "noise_runs": 2}]}
    assert measure(attempts, conf, plan=amended)["verdict"]["planned"]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"margin": 2.0}, "margin was 5 points in the plan and is 2 points now"),
        ({"arms": ["resample", "ring", "star"]}, "changed since the plan was written: arms"),
        ({"plan_digest": "else"}, "not the one whose digest"),
        ({"full_budget": True, "tasks": "mbpp-bundle", "as_published": True}, "primary metric was rescue_rate"),
    ],
)
def test_what_was_changed_after_the_plan_is_exploratory(change: dict[str, Any], said: str) -> None:
    conf, plan = planned(config(arms=["resample", "ring"]), 4)
    changed = config(**{"arms": ["resample", "ring"], "plan_digest": conf["plan_digest"], **change})
    got = measure(run(names(4), {"resample": {}, "ring": {}}, stop=False), changed, plan=plan)["verdict"]
    assert not got["planned"] and any(said in why for why in got["exploratory"])


def test_a_plan_after_the_first_sample_or_none_is_exploratory() -> None:
    attempts = run(names(4), {"resample": {}, "ring": {}})
    conf, plan = planned(config(arms=["resample", "ring"]), 4, written=1000.5)  # attempts are from 1000.0
    assert measure(attempts, conf, plan=plan)["verdict"]["exploratory"] == [
        "the plan was written after the first sample"
    ]
    assert measure(attempts, conf)["verdict"]["exploratory"] == ["no plan was written before the first sample"]


def test_a_margin_in_points_moves_the_equivalence_alone() -> None:
    table, results = laid_out("results-27b.json")
    narrow = results["paired"]
    assert [narrow[arm]["verdict"] for arm in ("solo", "ring", "star")] == ["inconclusive"] * 3
    wide = compared.paired(replace(table, config={**table.config, "plan": {**table.config["plan"], "margin": 20.0}}))
    assert [wide[arm]["verdict"] for arm in ("solo", "ring", "star")] == ["equivalent"] * 3
    assert [narrow[arm]["p"] for arm in narrow] == [wide[arm]["p"] for arm in wide]


def margin_of(histogram: list[int], asked: float = 0.05) -> float:
    return plan.margin_in_force(asked, plan.foretold(histogram, 24))


@pytest.mark.slow
def test_the_margin_is_at_most_half_of_what_the_base_group_foretells() -> None:
    assert margin_of([223, 17, 14, 4, 3, 1, 3, 4, 6]) == pytest.approx(0.0433)  # half of 8.67%
    assert margin_of([107, 33, 30, 26, 21, 14, 20, 13, 11]) == 0.05  # half of 40.8% is more
    assert margin_of([174, 4, 2, 2, 3, 0, 1, 1, 5]) == pytest.approx(0.0137)
    assert margin_of([60, *[0] * 8]) == 0  # nothing passed, nothing is foretold
    assert margin_of([0] * 9) == 0
    results = laid_out("results.json")[1]
    assert results["verdict"]["margin"] == results["paired"]["ring"]["margin"] == pytest.approx(0.0433)
    assert results["verdict"]["margin_asked"] == 0.05
    assert results["verdict"]["control_foretold"] == pytest.approx(0.0867, abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("control", "n"), thinned([(4, 220), (6, 220), (2, 104), (9, 220), (0, 60)], 5, True))
def test_an_arm_that_finds_nothing_is_never_equivalent(control: int, n: int) -> None:
    """The base group foretells 9% and the control finds far less: the margin alone would let a dead arm in."""
    tasks = names(n + n // 4)
    attempts = run(tasks[:n], {"resample": dict.fromkeys(tasks[:control], 0), "ring": {}})
    rest = [76, 17, 14, 4, 3, 1, 3, 4, 6][1:]
    attempts += [a for i, task in enumerate(tasks[n:]) for a in base(task, passes=1 + (i * 3) % len(rest))]
    got = measure(attempts, config(arms=["resample", "ring"]))
    assert got["verdict"]["margin"] > 0.02
    assert got["verdict"]["arms"] == {"ring": "worse" if control > 5 else "inconclusive"}


def test_one_pass_more_on_every_task_is_inconclusive_on_any_lattice() -> None:
    """Eight tasks, star one pass of 24 above resample on each: no spread, so no interval and no verdict."""
    attempts = []
    for i, task in enumerate(names(8)):
        attempts += base(task)
        for arm, passes in (("resample", i + 1), ("star", i + 2)):
            attempts += [attempt(task, arm, 0, k // 8, k % 8, passed=k < passes) for k in range(24)]
    conf = config(tasks="mbpp-bundle", full_budget=True, as_published=True, arms=["resample", "star"])
    results = measure(attempts, conf)
    got = results["per_sample"]["star"]["paired"]
    assert got["delta"] == pytest.approx(1 / 24) and got["interval"] == [None, None]
    assert results["verdict"]["arms"] == {"star": "inconclusive"}


def test_a_mean_of_equal_differences_has_no_interval() -> None:
    same = np.array([0.3, 0.1 + 0.2, 0.3]) - np.array([0.1, 0.1, 0.1])
    assert math.isnan(climbed.mean_interval(same)["interval"][0])
    none = climbed.mean_interval(np.array([0.1 + 0.2, 0.3, 0.6]) - np.array([0.3, 0.3, 0.6]))
    assert none["mean"] == 0 and math.isnan(none["interval"][0])


def test_every_key_is_made_by_one_function() -> None:
    results = measure([], config())
    assert set(m.SECTIONS) <= set(results)
    assert results["schema_version"] == 3


# ── is the fitness a hill ────────────────────────────────────────────────────────────────────────────────────────


def published_curve(upper: list[tuple[int, int]]) -> dict[str, Any]:
    """1,776 programs over 74 tasks, with these (passes, programs) in the five upper buckets and none below."""
    rows = [(score, *bucket) for score, bucket in zip((0.3, 0.6, 0.8, 0.95, 1.0), upper, strict=True)]
    rest = 1776 - sum(n for _, n in upper)
    rows = [(0.0, 0, rest - 200), (0.1, 0, 200), *rows]
    score = [s for s, _, n in rows for _ in range(n)]
    passed = [int(i < k) for _, k, n in rows for i in range(n)]
    return m.hill(score, passed, np.arange(1776) % 74, EDGES)


@pytest.mark.parametrize(
    "upper",
    [
        [(1, 143), (1, 83), (14, 41), (12, 41), (6, 11)],
        [(3, 428), (3, 250), (14, 41), (12, 41), (12, 22)],
    ],
)
def test_the_published_curve_reads_as_a_cliff(upper: list[tuple[int, int]]) -> None:
    got = published_curve(upper)
    assert got["verdict"] == "cliff"
    assert [f"{100 * row['rate']:.1f}" for row in got["table"]] == ["0.0", "0.0", "0.7", "1.2", "34.1", "29.3", "54.5"]
    assert got["n"] == 1776 and got["tasks"] == 74


def test_a_score_with_too_little_behind_it_is_inconclusive_not_noise() -> None:
    score = [0.2, 0.8, 0.3, 0.3]
    got = m.hill(score, [0, 1, 1, 0], ["a", "a", "b", "b"])
    assert got["verdict"] == "inconclusive" and got["tasks_with_both"] == 2
    dumped(got)


def test_without_a_task_of_both_outcomes_nothing_is_estimable_but_a_cliff() -> None:
    flat = m.hill([0.2, 0.6, 1.0], [0, 0, 0], ["a", "b", "c"])
    assert flat["verdict"] == "not_estimable" and flat["auc"]["within"]["auc"] is None
    steep = m.hill([0.6] * 100 + [1.0] * 20, [0] * 100 + [1] * 20, [*range(50)] * 2 + [50, 51, 52, 53] * 5)
    assert steep["verdict"] == "cliff"
    empty = m.hill([], [], [])
    assert empty["verdict"] == "not_estimable" and empty["n"] == 0
    dumped(empty)


@pytest.mark.parametrize(
    "score, passed, task",
    [
        ([0.6] * 16 + [1.0], [0] * 16 + [1], ["a"] * 16 + ["b"]),
        ([0.6] * 100 + [1.0] * 20, [0] * 100 + [1] * 20, ["a"] * 120),
        ([0.6] * 100 + [1.0] * 20, [0] * 100 + [1] * 20, ["a"] * 100 + ["b"] * 20),
        ([0.6] * 24 + [1.0], [0] * 24 + [1], range(25)),  # one program at the top is no rate of 100%
        ([0.6] * 24 + [1.0] * 20, [0] * 24 + [1] * 20, [*range(24)] + ["b"] * 20),  # nor is one task
    ],
)
def test_a_cliff_is_not_told_from_a_task_or_two(score: Any, passed: Any, task: Any) -> None:
    got = m.hill(score, passed, list(map(str, task)))
    assert got["verdict"] != "cliff" and got["rule"]["middle"]["tasks"] == len(set(task[: passed.count(0)]))
    assert got["rule"]["top_counted"] < 1 == got["rule"]["top_rate"]


def test_the_recorded_sql_predictions_read_as_a_cliff() -> None:
    """557 predictions on 87 BIRD questions: 0 of 48 match between a half and three quarters of the cells, in 25
    questions; 279 of 280 with every cell, in 72."""
    sizes = [1] * 13 + [2] * 7 + [3] * 3 + [6] * 2
    rest = 557 - 48 - 280
    score = [0.6] * 48 + [1.0] * 280 + [0.0] * rest
    passed = [0] * 48 + [1] * 279 + [0] * (280 + rest - 279)
    task = [i for i, n in enumerate(sizes) for _ in range(n)] + [i % 72 for i in range(280)] + [86] * rest
    got = m.hill(score, passed, task)
    assert got["verdict"] == "cliff" and (got["rule"]["middle"]["n"], got["rule"]["middle"]["tasks"]) == (48, 25)


def test_the_top_bucket_of_a_judge_begins_at_its_last_edge() -> None:
    """Without buckets of their own for 0 and 1, the rate at the top is that of everything from the last edge on."""
    score, passed = [0.6] * 60 + [0.9, 0.95, 1.0, 1.0] * 5, [0] * 60 + [1, 1, 1, 0] * 5
    got = m.hill(score, passed, range(80), edges=(0.1, 0.3, 0.5, 0.7, 0.9), ends=False)
    assert got["rule"]["top_rate"] == 0.75 and got["verdict"] == "cliff"
    assert got["rule"]["top_counted"] == pytest.approx((15 + 1.9208) / (20 + 3.8415), abs=1e-4)  # Wilson's middle


def test_five_tasks_that_agree_to_the_last_pair_make_no_hill() -> None:
    """51 wins of 84 pairs in each of five tasks: the last digit of .607 is no standard error."""
    rows = [(k / 20, 0) for k in range(1, 13)] + [(k / 40, 1) for k in (3, 13, 15, 16, 19, 21, 22)]
    score, passed, task = zip(*((s, y, t) for t in range(5) for s, y in rows), strict=True)
    got = m.hill(score, passed, task)
    assert got["auc"]["within"]["auc"] == pytest.approx(51 / 84) and got["verdict"] == "inconclusive"
    lo, hi = got["rule"]["within"]
    assert lo < 0.3 and hi > 0.9


def test_a_hill_needs_passes_below_three_quarters_from_several_tasks() -> None:
    """A perfect order within four tasks, ten passes each: one task short of a hill."""
    per_task = [(0.1, 0)] * 14 + [(0.7, 1)] * 10

    def curve(tasks: int) -> dict[str, Any]:
        rows = [(s, p, t) for t in range(tasks) for s, p in per_task]
        score, passed, task = zip(*rows, strict=True)
        return m.hill(score, passed, task)

    assert curve(4)["verdict"] == "inconclusive"
    assert curve(30)["verdict"] == "hill"


@pytest.mark.parametrize("bad", [{"score": [1.2]}, {"score": [math.nan]}, {"passed": [2]}, {"task": ["a", "b"]}])
def test_hill_refuses_what_is_no_score(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        m.hill(bad.get("score", [0.5]), bad.get("passed", [1]), bad.get("task", ["a"]))


def simulated(kind: str, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """74 tasks of 24 programs. hill: the chance of a pass rises with fitness; cliff: it jumps at three quarters;
    noise: it is the same everywhere; between: easy tasks have both higher fitness and more passes, nothing else."""
    task = np.repeat(np.arange(74), 24)
    if kind == "between":
        ability = rng.beta(2, 2, 74)[task]
        fitness = np.round((0.7 * ability + 0.3 * rng.random(len(task))) * 40) / 40
        chance = 0.6 * ability
    else:
        level = 0.5 * rng.beta(1, 2, 74)[task] + 0.7 * rng.beta(1, 1.6, len(task))
        fitness = np.round(np.clip(level, 0, 1) * 40) / 40
        jump = np.select([fitness < 0.25, fitness < 0.75, fitness < 1], [0.0, 0.006, 0.33], 0.55)
        chance = {"hill": 0.5 * fitness, "cliff": jump, "noise": np.full(len(task), 0.3)}[kind]
    return fitness, rng.random(len(task)) < chance, task


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, right", [("hill", "hill"), ("cliff", "cliff"), ("noise", "noise"), ("between", "noise")]
)
def test_the_verdict_is_right_on_simulated_truth(kind: str, right: str) -> None:
    words = Counter(m.hill(*simulated(kind, np.random.default_rng([7, i])))["verdict"] for i in range(300))
    assert words[right] >= 291
    if kind == "between":
        assert words["hill"] <= 3


@pytest.mark.slow
@pytest.mark.parametrize("top", ["forty tasks", "three tasks"])
@pytest.mark.parametrize("alike", [0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("n", [3, 5, 8])
def test_a_cliff_is_rarely_told_of_a_few_tasks_that_fail_together(n: int, alike: float, top: str) -> None:
    """24 programs each of n tasks from a half to three quarters, where 30% pass, against 80% at the top: no cliff."""
    rng = np.random.default_rng([29, n, int(10 * alike), len(top)])
    false = 0
    for _ in range(300):
        chance = rng.random(n) < 0.3 if alike == 1 else rng.beta(*np.array([0.3, 0.7]) * (1 - alike) / alike, n)
        best = [40 * [1]] if top == "forty tasks" else [rng.integers(1, 6, 3)]
        peak = np.repeat(np.arange(100, 100 + len(best[0])), best[0])
        passed = np.concatenate((rng.random(24 * n) < np.repeat(chance, 24), rng.random(len(peak)) < 0.8))
        score = [0.6] * 24 * n + [1.0] * len(peak)
        false += m.hill(score, passed, [*np.repeat(np.arange(n), 24), *peak])["verdict"] == "cliff"
    assert false <= 15


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0.0, 0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("n, top", [(15, 5), (15, 20), (30, 5), (30, 20), (74, 5), (74, 20)])
def test_a_cliff_is_rarely_told_at_its_very_edge(n: int, top: int, alike: float) -> None:
    """11% against 55% is a fifth, neither more nor less. Tasks of 1 to 15 programs, at the top of 1 to 3."""
    rng = np.random.default_rng([31, n, top, int(10 * alike)])

    def tasks(count: int, rate: float, most: int) -> tuple[Any, Any]:
        chance = np.full(count, rate)
        if alike == 1:
            chance = (rng.random(count) < rate).astype(float)
        elif alike:
            chance = rng.beta(*np.array([rate, 1 - rate]) * (1 - alike) / alike, count)
        task = np.repeat(np.arange(count), rng.integers(1, most + 1, count))
        return rng.random(len(task)) < chance[task], task

    false = 0
    for _ in range(300):
        (low, tasks_low), (high, tasks_high) = tasks(n, 0.11, 15), tasks(top, 0.55, 3)
        score = [0.6] * len(low) + [1.0] * len(high)
        got = m.hill(score, np.concatenate((low, high)), np.concatenate((tasks_low, 1000 + tasks_high)))
        false += got["verdict"] == "cliff"
    assert false <= 24  # 8%; at most 5.5% of long simulations


def test_an_unfinished_run_has_no_verdict_by_its_plan() -> None:
    names_ = names(40)
    attempts = run(names_, {"resample": {}, "star": dict.fromkeys(names_, 0)}, stop=False)
    late = [a for a in attempts if not (a.task_id == names_[-1] and a.arm == "resample" and a.particle == 7)]
    whole, early = (
        measure(those, config(arms=["resample", "star"], full_budget=True))["verdict"] for those in (attempts, late)
    )
    assert "the run is not finished" not in whole["exploratory"] and not whole["sentence"].startswith("So far")
    assert "the run is not finished" in early["exploratory"] and not early["planned"]
    assert early["sentence"].startswith("So far, and no verdict by the plan: ")


# ── docs/results.md ──────────────────────────────────────────────────────────────────────────────────────────────


def paths(value: Any, at: str = "") -> Iterator[str]:
    """Every key in a value, dotted; [] for an entry of a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            path = f"{at}.{key}" if at else key
            yield path
            yield from paths(inner, path)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, at + "[]")


def a_pattern(path: str) -> str:
    return "".join("[^.]+" if part.startswith("<") else re.escape(part) for part in re.split("(<[^>]+>)", path))


def test_the_page_of_keys_is_made_from_the_types() -> None:
    assert describe.TARGET.read_text() == describe.page(), "python -m tests.support.describe > docs/results.md"
    assert all(key.said for file in describe.FILES for key in describe.keys_of(file))


@pytest.mark.slow
def test_every_key_is_on_the_page_and_every_key_of_the_page_is_in_a_run(tmp_path: Path) -> None:
    tasks = names(12)
    rescued = {arm: hits(tasks[i:], [1, 1]) for i, arm in enumerate(ARMS)}
    full, stopped = (run(tasks, rescued, [hits(tasks[5:], [2])] * 2, stop=stop) for stop in (False, True))
    cards = [{"id": task, "tags": {"split": "test"}, "title": f"MBPP {i}"} for i, task in enumerate(tasks)]
    events = [
        {"event": "start", "time": 1.0}, {"event": "graded"}, {"event": "grader", "graded": 3, "repeated": 1},
        {"event": "slots", "busy_slot_seconds": 2.0},
    ]  # fmt: skip
    audit = {"by_task": {tasks[0]: {"verdict": "disputed", "reason": "time", "digest": ""}}}
    made = [
        measure(full, config(noise_runs=2, full_budget=True, price=[1.0, 2.0]), cards, (), events, audit=audit),
        measure(stopped, config(noise_runs=2, predict={"ring": 3.0}, tasks="mbpp-bundle"), cards, (), events),
        measure([], config(arms=["solo"])),
        measure(full, {**config(), "apart": {"star": {"needs": ["reference"], "file": None, "sha256": None}}}, cards),
    ]
    planted_run.make(tmp_path / "planted", n_tasks=8)
    folder = Folder(tmp_path / "planted")
    results = measure(folder.attempts(), folder.config, folder.cards(), (), folder.events())
    passing = [one for one in folder.attempts() if one.passed]
    there = {
        "results.json": {path for one in [*made, results] for path in paths(one)},
        "attempts.jsonl": {path for one in full for path in asdict(one)},
        "rescued.jsonl": set(json.loads(rescued_rows(passing, folder.cards(), folder.config, results).splitlines()[0])),
    }
    for file, found in there.items():
        page = {key.path: re.compile(a_pattern(key.path)) for key in describe.keys_of(file)}
        rows = [re.compile(a_pattern(path[: end.start()])) for path in page for end in re.finditer(r"(?<=>)[.[]", path)]
        assert [path for path, pattern in page.items() if not any(map(pattern.fullmatch, found))] == []
        assert [path for path in found if not any(each.fullmatch(path) for each in [*page.values(), *rows])] == []
