"""Arms against the control: what copies of a pass are worth, and the exact test with all runs of the control."""

from __future__ import annotations

from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest

import stats
from estimators.reruns import compare_with_runs
from figures.plan import make_plan, plan_digest
from figures.pool import pool
from measure import measure
from report import side_by_side
from swarm import Attempt
from telling.runs import arms
from telling.tables import verdicts
from telling.text import text
from telling.words import p_text
from tests.support.lay_out import attempt, base, config, names, run

# ── a program that passes, written again ─────────────────────────────────────────────────────────────────────────────


def copying_run(found: int, n: int, repeats: float) -> list[Attempt]:
    """Both arms rescue the same tasks in round 0, by one program; of star's later ones a share is that one again."""
    attempts = []
    for i, task in enumerate(names(n)):
        attempts += base(task)
        for arm in ("resample", "star"):
            for k in range(24):
                first, copy = k == 0, arm == "star" and k >= 8 and (k - 8) < 16 * repeats
                passed = i < found and (first or copy)
                code = "print('right')\n" if passed else f"print({arm!r}, {k})\n"
                attempts.append(attempt(task, arm, 0, k // 8, k % 8, passed=passed, code=code))
    return attempts


@pytest.mark.slow
def test_a_program_written_again_is_worth_nothing() -> None:
    """14 of 174 tasks rescued by both. By passes per sample star is far ahead, and so it is as published."""
    attempts = copying_run(14, 174, 0.7)
    whole = config(tasks="mbpp-bundle", full_budget=True, arms=["resample", "star"])
    results = measure(attempts, whole)
    assert results["verdict"]["primary_metric"] == "rescue_rate"
    assert results["verdict"]["arms"]["star"] != "better" and results["paired"]["star"]["delta"] == 0
    rates = results["per_sample"]["star"]
    assert rates["paired"]["p_holm"] < 0.001 and rates["paired"]["interval"][0] > 0
    assert (rates["passes"], rates["passes_after_first"], rates["repeats"]) == (14 * 13, 14 * 12, 14 * 12)
    assert results["per_sample"]["resample"]["passes_after_first"] == 0
    whole["identity"]["as_published"] = True
    assert measure(attempts, whole)["verdict"]["arms"] == {"star": "better"}


def test_passes_after_one_of_their_task_are_counted_by_round_and_the_same_program_apart() -> None:
    attempts = list(base("t"))
    codes = {(0, 0): "a", (0, 1): "a", (1, 0): "a", (1, 1): "b", (2, 0): "b", (2, 1): "c"}
    for arm in ("resample", "star"):
        for r, i in product(range(3), range(2)):
            attempts.append(attempt("t", arm, 0, r, i, passed=True, code=codes[r, i]))
    conf = config(arms=["resample", "star"], particles=2, full_budget=True)
    got = measure(attempts, conf)["per_sample"]["star"]
    assert (got["passes"], got["passes_after_first"], got["repeats"]) == (6, 4, 2)


# ── all runs of the control ──────────────────────────────────────────────────────────────────────────────────────────


def by_every_exchange(runs: list[list[int]], arm: list[int]) -> float:
    """Twice the smaller tail of the arm's count, over every choice of which run of each task is the arm's."""
    tasks = list(zip(*runs, arm, strict=True))
    counts = [sum(picked) for picked in product(*tasks)]
    seen = sum(arm)
    tails = [sum(sign * (c - seen) >= 0 for c in counts) / len(counts) for sign in (1, -1)]
    return min(1.0, 2 * min(tails))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_p_value_is_that_of_every_exchange_of_a_tasks_runs(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(20):
        runs, arm = rng.integers(0, 2, (k, 6)).tolist(), rng.integers(0, 2, 6).tolist()
        assert compare_with_runs(runs, arm).p_value == pytest.approx(by_every_exchange(runs, arm))


def test_with_one_run_it_is_the_paired_comparison() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 60):
        a, b = rng.integers(0, 2, (2, n)).astype(float)
        assert compare_with_runs([a], b) == pytest.approx(stats.compare_paired(a, b), nan_ok=True)


def test_exchange_refuses_what_it_cannot_count_and_says_nothing_of_nothing() -> None:
    got = compare_with_runs([[], []], [])
    assert got.n == 0 and np.isnan(got.p_value) and np.isnan(got.lo)
    assert np.isnan(compare_with_runs([[1], [0]], [1]).lo)
    for runs, arm in (([[1, 0]], [1]), ([1, 0], [1, 0]), ([[0.5, 1]], [1, 0]), ([[1, 0]], [np.nan, 0]), ([], [])):
        with pytest.raises(ValueError):
            compare_with_runs(runs, arm)


def sizes(n: int, k: int, rate: float) -> tuple[float, float]:
    """Exact chance that equal arms come out under .05, by either side: tasks of one rate, counted by how many pass."""
    from scipy.stats import binom

    of = binom.pmf(np.arange(k + 2), k + 1, rate)
    above = below = 0.0
    likely = [range(n + 1) if n < 8 else range(int(binom.ppf(1e-7, n, q)), int(binom.isf(1e-7, n, q)) + 1) for q in of]
    for counts in product(*likely[1:-1]):
        rest = n - sum(counts)
        if rest < 0:
            continue
        ways, left, weight = 1, n, 1.0
        for s, count in enumerate(counts, 1):
            ways *= comb(left, count)
            left -= count
            weight *= of[s] ** count
        weight *= ways * (of[0] + of[-1]) ** rest
        if weight < 1e-8:
            continue
        chance = np.ones(1)
        for s, count in enumerate(counts, 1):
            chance = np.convolve(chance, binom.pmf(np.arange(count + 1), count, s / (k + 1)))
        for seen, p in enumerate(chance):
            tails = chance[: seen + 1].sum(), chance[seen:].sum()
            if 2 * min(tails) < 0.05:
                above += weight * p * (tails[1] < tails[0])
                below += weight * p * (tails[0] < tails[1])
    return above, below


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.01, 0.03, 0.07, 0.2, 0.5])
def test_equal_arms_are_told_apart_in_one_run_of_20_at_most(rate: float) -> None:
    above, below = sizes(60, 2, rate)
    assert above <= 0.025 and below <= 0.025


def coverage(chances: dict[tuple[int, int], float], n: int, k: int) -> float:
    """Exact coverage of the interval over n tasks; chances: (arm passes, runs that pass) -> of a task."""
    true = sum(p * (x - s / k) for (x, s), p in chances.items())
    width, height = 2 * n * k + 1, n * k * k + 1
    steps = np.zeros((width, height))  # by the sum of k d, and of its squares
    for (x, s), p in chances.items():
        d = k * x - s
        steps[d % width, d * d] += p
    spread = np.fft.irfft2(np.fft.rfft2(steps) ** n, s=steps.shape)
    d = np.arange(width)
    middle = np.where(d > n * k, d - width, d)[:, None] / k / (n + 2)
    square = (np.arange(height)[None, :] / k**2 + 1 + 1 / k) / (n + 2)
    half = 1.959964 * np.sqrt(np.maximum(square - middle**2, 0) / (n + 2))
    return float(spread[np.abs(middle - true) <= half].sum())


def of_a_task(k: int, times: float, draws: int = 24) -> dict[tuple[int, int], float]:
    """As the published runs have them: chances Beta(.072, .795) given 0 of 8; the arm's odds so many times higher."""
    from scipy.special import betaincinv

    p = betaincinv(0.072, 8.795, (np.arange(1000) + 0.5) / 1000)
    control, arm = 1 - (1 - p) ** draws, 1 - (1 + times * p / (1 - p)) ** -float(draws)
    return {
        (x, s): float(np.mean((arm if x else 1 - arm) * comb(k, s) * control**s * (1 - control) ** (k - s)))
        for x in (0, 1)
        for s in range(k + 1)
    }


@pytest.mark.parametrize(("k", "n", "times"), [(2, 60, 4.0), (3, 60, 4.0), (2, 60, 1.0)])
def test_the_interval_covers_the_difference(k: int, n: int, times: float) -> None:
    assert coverage(of_a_task(k, times), n, k) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("times", [0.2, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("k", [2, 3])
def test_the_interval_covers_at_the_published_size(k: int, times: float) -> None:
    assert 0.95 <= coverage(of_a_task(k, times), 220, k) <= 0.97


def test_the_interval_of_the_exact_coverage_is_the_one_that_is_given() -> None:
    got = compare_with_runs([[1, 0, 0, 1], [0, 0, 1, 1]], [1, 1, 1, 0])
    d = np.array([0.5, 1, 0.5, -1])
    middle, square = d.sum() / 6, (d @ d + 1.5) / 6
    half = 1.959964 * np.sqrt((square - middle**2) / 6)
    assert (got.delta, got.lo, got.hi) == pytest.approx((0.25, middle - half, middle + half), abs=1e-6)
    assert (got.n_a_only, got.n_b_only) == (1, 3)


def noisy(rescued: dict[str, Any], reruns: list[Any], **changes: Any) -> Any:
    conf = config(arms=["resample", "ring"], noise_runs=len(reruns), **changes)
    return measure(run(names(120), rescued, reruns), conf)


@pytest.mark.slow
def test_re_runs_that_were_planned_sharpen_the_verdict() -> None:
    """Ring finds 16, resample 8, 2 and 2: the first run alone does not tell them apart, all three do."""
    tasks = names(120)
    found = {"resample": dict.fromkeys(tasks[:8], 0), "ring": dict.fromkeys(tasks[:16], 0)}
    again = [dict.fromkeys(tasks[:2], 0), dict.fromkeys(tasks[:2], 0)]
    got = noisy(found, again)
    first, every = got["paired"]["ring"], got["paired"]["ring"]["vs_all_resample"]
    assert got["verdict"]["against_runs"] == every["runs"] == 3
    # 2 tasks that all four runs pass, 6 of two passes of four, 8 of one.
    by_hand = np.convolve([comb(6, j) / 64 for j in range(7)], [comb(8, j) * 3 ** (8 - j) / 4**8 for j in range(9)])
    assert every["p"] == every["p_holm"] == pytest.approx(2 * by_hand[14:].sum())
    assert every["delta"] == pytest.approx((16 - 4) / 120) and every["control_rate"] == pytest.approx(4 / 120)
    assert every["verdict"] == got["verdict"]["arms"]["ring"] == "better"
    assert first["p"] == pytest.approx(2 / 2**8)


def test_a_table_says_which_of_its_figures_are_of_the_first_run_and_its_verdict_is_that_of_all() -> None:
    tasks, conf = names(40), config(arms=["resample", "ring"], noise_runs=2)
    found = {"resample": dict.fromkeys(tasks[:8], 0), "ring": dict.fromkeys(tasks[:13], 0)}
    passed = [a for k in range(10) for a in base(f"p{k}", passes=2)]
    one = measure([*passed, *run(tasks, found, [{}, {}])], conf)
    runs = {"a": one, "b": one | {"seed": 1}}
    every = runs["a"]["paired"]["ring"]["vs_all_resample"]
    assert runs["a"]["paired"]["ring"]["verdict"] != every["verdict"] == "better"
    label = "the mean of its 3 runs, where a verdict is drawn; its own line, and who alone rescued a task, are of its"
    for said in (text(runs["a"]), side_by_side(runs)):
        assert label in " ".join(said.split()) and "better" in said
    told = arms(runs, pool(runs))[0]
    shown = f"+{100 * every['delta']:.1f} "
    assert [(row[-2].strip().startswith(shown), row[-1]) for row in told.rows if row[1] in runs][2:] == [
        (True, "better")
    ] * 2
    deciding = verdicts(runs["a"])
    assert deciding and [column.name for column in deciding.head][4].endswith("against the first run")
    assert deciding.rows[0][2] == p_text(every["p"])


@pytest.mark.slow
def test_runs_that_share_a_round_with_the_arm_are_not_exchanged_for_it() -> None:
    got = noisy({"resample": {}, "ring": {}}, [{}], share_round0=True)
    assert got["paired"]["ring"]["vs_all_resample"] is None and got["verdict"]["against_runs"] == 1


def test_a_plan_that_names_the_first_run_is_kept() -> None:
    conf = config(arms=["resample", "ring"], noise_runs=1)
    attempts = run(names(20), {"resample": {}, "ring": {}}, [{}])
    plan = make_plan(conf, 20) | {"written": 500.0}
    conf["plan_digest"] = plan_digest(plan)
    assert measure(attempts, conf, plan=plan)["verdict"]["against_runs"] == 2
    del plan["against"]  # as older versions wrote it
    conf["plan_digest"] = plan_digest(plan)
    got = measure(attempts, conf, plan=plan)["verdict"]
    assert got["planned"] and got["against_runs"] == 1


def test_a_run_whose_re_runs_are_owed_has_no_verdict_by_a_plan_that_needs_them() -> None:
    conf = config(arms=["resample", "ring"], noise_runs=1)
    attempts = [a for a in run(names(20), {"resample": {}, "ring": {}}, [{}]) if (a.rerun, a.task_id) != (1, "t0003")]
    assert "the run is not finished" in measure(attempts, conf)["verdict"]["exploratory"]


@pytest.mark.slow
def test_re_runs_of_the_control_are_worth_tasks() -> None:
    assert [round(stats.worth(k), 3) for k in (1, 2, 3)] == [1, 1.333, 1.5]
    tasks = names(80)
    attempts = run(tasks[:60], {"resample": {}, "ring": {}}, [{}, {}]) + [
        a for t in tasks[60:] for a in base(t, passes=2)
    ]
    one, three = (measure(attempts, config(arms=["resample", "ring"], noise_runs=k)) for k in (0, 2))
    low, high = three["power"]["ring"]["discordance_assumed"]
    effect = three["power"]["ring"]["effect"]
    want = sorted(stats.power_paired(90, effect, psi) for psi in (low, high))
    assert three["power"]["ring"]["power"] == pytest.approx(want)
    assert max(three["power"]["ring"]["tasks_needed"]) < max(one["power"]["ring"]["tasks_needed"])


@pytest.mark.slow
def test_an_arm_like_a_lucky_first_run_is_not_equivalent_to_the_mean_of_all() -> None:
    tasks = names(60)
    first, again = dict.fromkeys(tasks[:8], 0), [dict.fromkeys(tasks[20:22], 0), dict.fromkeys(tasks[30:31], 0)]
    attempts = [a for k in range(30) for a in base(f"p{k:02}", passes=2)]
    attempts += run(tasks, {"resample": first, "ring": first}, again)
    got = measure(attempts, config(arms=["resample", "ring"], noise_runs=2))["paired"]["ring"]
    every = got["vs_all_resample"]
    assert every["margin"] == 0.05 and every["delta"] == pytest.approx(8 / 60 - 11 / 180)  # 7.2 points
    assert every["equivalence_interval"][1] < 0.05 and got["verdict"] == "equivalent"  # against the first run
    assert every["verdict"] == "inconclusive"
