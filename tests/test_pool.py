"""Several runs as one: the exact test over shared tasks, the interval, planned seeds, bundles that share functions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import stats
from estimators.pooled import compare_pooled, heterogeneity
from figures.plan import make_plan, one_of, plan_digest, planned_seeds
from figures.pool import _rates, pool
from measure import measure
from report import side_by_side
from tests.support.lay_out import base, config, names, run

# ── the estimator ────────────────────────────────────────────────────────────────────────────────────────────────────


def by_every_exchange(task: Any, arm: Any, passes: Any, runs: Any) -> float:
    """Twice the smaller tail of the tasks' mean, over every choice of which play of each cell is the arm's."""
    cells = np.bincount(task)[task]
    plays = [[1] * int(s + x) + [0] * int(k + 1 - s - x) for x, s, k in zip(arm, passes, runs, strict=True)]
    seen = float(np.sum(arm / cells))
    means = [sum(play / n for play, n in zip(picked, cells, strict=True)) for picked in product(*plays)]
    tails = [np.mean([sign * (mean - seen) > -1e-9 for mean in means]) for sign in (1, -1)]
    return min(1.0, 2 * float(min(tails)))


def test_the_p_value_is_that_of_every_exchange_within_the_cells() -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        task = np.r_[0, 1, 2, 0, 1, 0, 3]  # one task in three runs, one in two, two in one
        runs = rng.integers(1, 4, task.size)
        arm, passes = rng.integers(0, 2, task.size), rng.integers(0, runs + 1)
        got = compare_pooled(task, arm, passes, runs)
        assert got.p_value == pytest.approx(by_every_exchange(task, arm, passes, runs))


def test_one_run_pooled_is_that_run() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 30):
        a, b = rng.integers(0, 2, (2, n)).astype(float)
        got = compare_pooled(np.arange(n), b, a, np.ones(n))
        assert got == pytest.approx(stats.compare_paired(a, b), nan_ok=True)


def test_tasks_that_share_a_part_and_lean_the_same_way_widen_the_interval() -> None:
    task, arm, passes = np.arange(8), [1, 1, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 1, 0, 0, 0]
    alone = compare_pooled(task, arm, passes, np.ones(8))
    alike = compare_pooled(task, arm, passes, np.ones(8), [(0, 1), (5, 6)])
    against = compare_pooled(task, arm, passes, np.ones(8), [(0, 4)])
    assert alike.lo < alone.lo and alike.hi > alone.hi and alike.p_value == alone.p_value
    assert (against.lo, against.hi) == (alone.lo, alone.hi)  # never narrower
    d = np.array([1, 1, 0, 0, -1, 1, 1, 0])
    apart = d - d.mean()
    spread = (d @ d + 2) / 10 - (d.sum() / 10) ** 2 + 2 * (apart[0] * apart[1] + apart[5] * apart[6]) / 10
    assert alike.hi == pytest.approx(min(1, d.sum() / 10 + 1.959964 * (spread / 10) ** 0.5), abs=1e-6)


def test_pooled_refuses_what_is_no_count_and_says_nothing_of_nothing() -> None:
    got = compare_pooled([], [], [], [])
    assert got.n == 0 and np.isnan(got.p_value)
    for broken in (([0], [2], [0], [1]), ([0], [1], [2], [1]), ([0], [1], [0], [0]), ([0, 1], [1], [0], [1])):
        with pytest.raises(ValueError):
            compare_pooled(*broken)


def test_heterogeneity_is_cochrans_q() -> None:
    got = heterogeneity([0.05, -0.01, 0.02], [0.02, 0.02, 0.04])
    weight = np.array([2500, 2500, 625])
    mean = weight @ [0.05, -0.01, 0.02] / weight.sum()
    assert (got.q, got.df) == (pytest.approx(weight @ (np.array([0.05, -0.01, 0.02]) - mean) ** 2), 2)
    assert got.p == pytest.approx(np.exp(-got.q / 2))  # chi-square with two degrees of freedom
    assert np.isnan(heterogeneity([0.1], [0.1]).p) and np.isnan(heterogeneity([], []).q)


# ── planned seeds ────────────────────────────────────────────────────────────────────────────────────────────────────


def seeded(seed: int, found: dict[str, range], seeds: int | None = 2, n: int = 150, written: float = 500.0) -> Any:
    tasks = names(n + 20)
    rescued = {arm: {tasks[i]: 0 for i in which} for arm, which in found.items()}
    attempts = run(tasks[:n], rescued) + [a for task in tasks[n:] for a in base(task, passes=3)]
    conf = config(seed=seed, arms=["resample", "star"])
    conf["plan"]["seeds"] = seeds
    plan = make_plan(conf, n + 20) | {"written": written}
    conf["plan_digest"] = plan_digest(plan)
    return measure(attempts, conf, plan=plan)


SOME_OF_TWO = {"resample": range(0), "star": range(0)}
SOME = {"resample": range(0, 8), "star": range(3, 16)}  # 8 to star, 3 to resample: p .23 by itself
MORE = {"resample": range(20, 26), "star": range(22, 36)}  # 10 to 2: .039


@pytest.mark.slow
def test_of_planned_seeds_the_pooled_comparison_is_the_verdict() -> None:
    runs = {"a": seeded(0, SOME), "b": seeded(1, MORE)}
    assert [r["verdict"]["arms"]["star"] for r in runs.values()] == ["inconclusive", "better"]
    assert not any(r["verdict"]["planned"] for r in runs.values())
    assert all(r["verdict"]["sentence"].startswith("One of 2 planned runs, and no verdict by") for r in runs.values())
    together = pool(runs)
    assert together["planned"] and together["exploratory"] == []
    star = together["arms"]["star"]
    assert star["verdict"] == "better" and star["p_holm"] < 0.05 and star["n"] == 150
    assert star["q_df"] == 1 and star["q_p"] > 0.5
    few = pool({"a": seeded(0, {"resample": range(0), "star": range(2)}, n=2), "b": seeded(1, SOME_OF_TWO, n=2)})
    assert few["arms"]["star"]["q_p"] > 0.1  # 2 of 2 against 0 of 2: the upper end of the first is cut at 1
    said = " ".join(side_by_side(runs).split())
    assert "That is the verdict of the plan, which was to pool 2 runs." in said
    assert "Do the runs differ in an arm's advantage by more than chance explains? p star" in said


def test_a_plan_of_several_seeds_names_them() -> None:
    """So nobody chooses, after a look at more runs, those that go together."""
    assert [planned_seeds(seed, 2) for seed in (0, 1, 2, 5)] == [[0, 1], [0, 1], [2, 3], [4, 5]]
    assert planned_seeds(4, 3) == [3, 4, 5] and planned_seeds(7, 1) == [7]
    conf = config(seed=3, arms=["resample", "star"])
    conf["plan"]["seeds"] = 2
    assert "those of seeds 2 and 3, together" in make_plan(conf, 10)["rule"]["text"]
    runs = {str(seed): drawn(seed, False, 0, 0, None, 20) for seed in (1, 2, 3)}
    why = "the plan names seeds 0 and 1, and these are 1 and 2"
    assert pool({name: runs[name] for name in "12"})["exploratory"] == [why]
    assert pool({name: runs[name] for name in "32"})["planned"]


def drawn(seed: int, links: bool, arm_only: int, control_only: int, again: int | None = None, n: int = 120) -> Any:
    """Results of one of two planned runs as they are pooled, on tasks of its own. links: each shares a part with one of
    the other run; again: tasks that a second run of the control rescued."""
    by_task = {}
    for i in range(n):
        hit = {"resample": i < control_only or i >= n - 12, "star": 40 <= i < 40 + arm_only or i >= n - 12}
        plays = {arm: {"passes": int(found), "drawn": 24, "done": True} for arm, found in hit.items()}
        more = [] if again is None else [{"passes": int(i < again), "drawn": 24, "done": True}]
        by_task[f"{seed}-{i}"] = {"arms": plays, "reruns": more, "made_of": [f"f{i}"] if links else []}
    told = {"primary_metric": "rescue_rate", "margin": 0.05, "margin_asked": 0.05, "seeds": 2, "arms": {},
            "exploratory": [one_of(2)], "against_runs": 1 if again is None else 2}  # fmt: skip
    return {"seed": seed, "intervals": {"resample": 0, "star": 0}, "by_task": by_task, "budget": {"B": 24},
            "p0_histogram": [n, 30, 20, 10, 5, 5, 5, 5, 5], "verdict": told}  # fmt: skip


def alike(*how: Any) -> str:
    return pool({"a": drawn(0, *how), "b": drawn(1, *how)})["arms"]["star"]["verdict"]


def test_tasks_that_share_a_part_and_lean_the_same_way_are_not_called_equivalent() -> None:
    """8 to 8 of 120 in each run: on 240 tasks that is equivalent, on 120 that are there twice it is not."""
    assert alike(False, 8, 8) == "equivalent" and alike(True, 8, 8) == "inconclusive"
    assert alike(True, 6, 6) == "equivalent"


def test_what_is_like_the_first_runs_alone_is_not_equivalent_over_several_seeds() -> None:
    """12 of 120 in the control's first runs, and as many in its second ones; or none."""
    assert alike(False, 0, 0, 12) == "equivalent"
    assert alike(False, 0, 0, 0) != "equivalent"


def test_rates_a_sample_of_linked_tasks_have_an_interval_no_narrower_than_that_of_the_mean() -> None:
    def one(seed: int, links: bool) -> Any:
        by_task = {
            f"{seed}-{i}": {
                "arms": {
                    arm: {"passes": passes, "drawn": 24, "done": True}
                    for arm, passes in (("resample", i % 3), ("star", (i * 5) % 7))
                },
                "made_of": [f"f{i}"] if links else [],
            }
            for i in range(30)
        }
        return {"by_task": by_task}

    alone, linked = (_rates([one(0, links), one(1, links)], "star")[0] for links in (False, True))
    assert linked.lo < alone.lo and alone.hi < linked.hi and linked.p_value == alone.p_value


@pytest.mark.slow
def test_runs_that_nobody_planned_to_pool_are_exploratory_and_each_must_say_so() -> None:
    for seeds in (None, 3):
        runs = {"a": seeded(0, SOME, seeds), "b": seeded(1, MORE, seeds)}
        together = pool(runs)
        assert not together["planned"] and together["arms"]["star"]["verdict"] == "inconclusive"
        why = "2 of the 3 planned runs" if seeds else "not planned as 2 runs to be pooled (--seeds 2)"
        assert together["exploratory"] == [why]
        said = " ".join(side_by_side(runs).split())
        assert f"Exploratory ({why})." in said


@pytest.mark.slow
def test_a_late_plan_of_one_seed_makes_all_of_them_exploratory() -> None:
    together = pool({"a": seeded(0, SOME), "b": seeded(1, MORE, written=5000.0)})
    assert not together["planned"] and together["exploratory"] == ["the plan was written after the first sample"]


@pytest.mark.slow
def test_planned_seeds_that_contradict_each_other_say_nothing() -> None:
    runs = {
        "a": seeded(0, {"resample": range(2), "star": range(40)}),
        "b": seeded(1, {"resample": range(60, 72), "star": range(2)}),
    }
    assert [r["verdict"]["arms"]["star"] for r in runs.values()] == ["better", "worse"]
    together = pool(runs)["arms"]["star"]
    assert together["p"] < 0.05 and together["verdict"] == "inconclusive" and together["q_p"] < 0.001


def test_bundles_dealt_out_anew_are_linked_by_their_functions() -> None:
    def bundled(seed: int, parts: list[str]) -> Any:
        tasks = [f"mbpp-{seed}-{i}" for i in range(len(parts))]
        cards = [{"id": task, "title": f"MBPP {part}", "tags": {}} for task, part in zip(tasks, parts, strict=True)]
        conf = config(tasks="mbpp-bundle", seed=seed, arms=["resample", "star"])
        return measure(run(tasks, {"resample": {}, "star": {tasks[0]: 0}}), conf, cards)

    runs = {"a": bundled(0, ["1, 2", "3, 4", "5, 6"]), "b": bundled(1, ["1, 3", "2, 4", "7, 8"])}
    assert runs["a"]["by_task"]["mbpp-0-0"]["made_of"] == ["1", "2"]
    together = pool(runs)
    assert together["linked"] == 4  # 1, 2, 3 and 4 lie in one bundle of each run
    assert "4 pairs of tasks share a function" in " ".join(side_by_side(runs).split())
    alone = measure(run(names(3), {"resample": {}, "star": {}}), config(arms=["resample", "star"]))
    assert "made_of" not in alone["by_task"]["t0000"]
