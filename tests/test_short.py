"""What is said first, and what is alike said once: nothing that was counted is lost in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import measure
from figures.numbers import alike
from telling import short
from telling.text import text
from tests.support.lay_out import ARMS, attempt, base, config, names, play, run


def measured(attempts: list[Any], **changes: Any) -> Any:
    return measure.measure(attempts, config(**changes))


def hits(**rescued: int) -> dict[str, dict[str, int]]:
    return {arm: dict.fromkeys(names(40)[:k], 0) for arm, k in rescued.items()}


RUNS: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing is known": (
        lambda: measured(run(names(3), hits(resample=0, solo=1, ring=2, star=1))),
        "Exploratory: Of 3 tasks resample rescued 0, solo and star 1 each, and ring 2. Whether solo, ring and star",
    ),
    "one of each": (
        lambda: measured(run(names(40), hits(resample=12, solo=0, ring=30, star=12))),
        "Exploratory: Ring found more than resample (30 of 40 tasks against 12); solo found less than resample (0 of "
        "40 tasks against 12). Whether star differs from resample is not known",
    ),
    "two of a kind": (
        lambda: measured(run(names(40), hits(resample=0, solo=0, ring=30, star=20))),
        "Exploratory: Ring and star found more than resample (30 and 20 of 40 tasks against 0). Whether solo differs",
    ),
    "nothing was rescued": (
        lambda: measured(run(names(3), hits(resample=0, star=0)), arms=["resample", "star"]),
        "Exploratory: Of 3 tasks no arm rescued any. Whether star differs",
    ),
    "an arm is not finished": (
        lambda: measured(run(names(3), hits(resample=1, star=1))[:-10], arms=["resample", "star"]),
        "So far, and no verdict by the plan: Resample rescued 1 of 3 and star 1 of 2. Whether star differs",
    ),
    "several runs of the control": (
        lambda: measured(run(names(9), hits(resample=1, star=1), [{}]), arms=["resample", "star"], noise_runs=1),
        "Exploratory: Of 9 tasks resample rescued 1 and 0 in its 2 runs and star 1. Whether star differs",
    ),
    "more than any run of the control": (
        lambda: measured(run(names(40), hits(resample=1, star=30), [{}]), arms=["resample", "star"], noise_runs=1),
        "Exploratory: Star found more than resample (30 of 40 against 1 and 0 in its 2 runs).",
    ),
    "by samples": (
        lambda: measured(run(names(3), hits(resample=1, star=1), stop=False), arms=["resample", "star"],
                         tasks="mbpp-bundle", full_budget=True, as_published=True),
        "Exploratory: Of 72 samples resample and star passed 1 each. Whether star differs",
    ),
    "nothing to compare": (lambda: measured(list(base("t", 1))), "No task was given to the arms, so there is nothing"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_headline_says_what_was_found_then_what_is_not_known(name: str) -> None:
    made, begins = RUNS[name]
    said = short.headline(made())
    assert said.startswith(begins) and said.endswith(".")
    assert len(re.findall(r"[.](?: |$)", said)) <= 2


def test_a_warning_that_arms_share_is_said_once_with_the_number_of_each() -> None:
    same = [attempt(t, arm, 0, 0, i, reply="the same") for t in names(2) for arm in ARMS for i in range(8)]
    r = measured([a for t in names(2) for a in base(t)] + same, rounds=1)
    told, folded = [said for said in r["warnings"] if "repeat another" in said], short.warnings(r)
    assert len(told) == 4 and len(folded) == len(r["warnings"]) - 3
    assert [said for said in folded if "repeat another" in said] == [
        "Replies repeat another one on the same task; does the server act on temperature and seed? "
        "(resample, solo, ring and star 14 of 16)"
    ]
    assert set(folded) - set(r["warnings"]) == {said for said in folded if "repeat" in said}  # all else as it was


def test_arms_that_owe_different_numbers_are_told_apart() -> None:
    attempts = [a for t in names(3) for a in base(t)] + list(play("t0000", "solo", None))
    (said,) = [s for s in short.warnings(measured(attempts, arms=["resample", "solo", "ring"])) if "owed" in s]
    assert said.endswith("(resample and ring on 3 of 3 tasks; solo on 2 of 3 tasks)")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_no_task_of_the_histogram_is_lost(counts: list[int]) -> None:
    rows = short.histogram({"p0_histogram": counts})  # type: ignore[typeddict-item]
    spread = []
    for name, count in rows:
        first, _, last = name.partition("-")
        many = int(last or first) - int(first) + 1
        spread += [count] * many
        assert many == 1 or count == 0
    assert spread == counts
    assert all(a[1] or b[1] for a, b in pairwise(rows))  # nothing beside nothing is one row


@given(st.dictionaries(st.sampled_from(ARMS), st.sampled_from(["1 of 2", "2 of 2"]), min_size=1))
def test_alike_names_everyone_once(told: dict[str, str]) -> None:
    said = alike(told)
    assert sorted(re.findall("|".join(ARMS), said)) == sorted(told)
    assert said.count(" of 2") == len(set(told.values()))


def test_a_run_that_has_found_nothing_has_no_table_of_zeros() -> None:
    lines = text(measured(run(names(5), {arm: {} for arm in ARMS}))).split("\n")
    said = "No arm rescued any of 5 tasks: 0.0 [0.0, 43.4] each. Verdict of solo, ring and star: inconclusive."
    assert said in " ".join(lines)
    assert not [line for line in lines if re.match(r"(solo|ring|star) .*0\.0", line)]
    for absent in ("first rescued in", "tasks by pass share", "Training rows", "shown r0", "must not be measured"):
        assert not any(absent in line for line in lines), absent
    assert "  1-8" in [line[:5] for line in lines]
    assert len(lines) < 50


def test_a_run_that_has_just_begun_has_none_either() -> None:
    lines = text(measured([a for t in names(3) for a in base(t)])).split("\n")
    assert not [line for line in lines if "0 of 0" in line or line.count("–") > 1]
    assert len(lines) < 36


def test_near_misses_and_rescues_by_round_stand_in_the_text_too() -> None:
    attempts = [a for a in run(["a", "b"], {"resample": {}, "star": {"a": 2}}) if a.arm != "base"]
    said = text(measured([*base("a", near=True), *base("b"), *attempts], arms=["resample", "star"]))
    assert "Near-miss: on 1 of those 2 (50.0%) some base attempt passed a visible test." in said
    rows = [line.split() for line in said.split("\n")]
    at = rows.index(["first", "rescued", "in", "r0", "r1", "r2"])
    assert rows[at + 1] == ["star", "0", "0", "1"] and rows[at + 2][:1] != ["resample"]
