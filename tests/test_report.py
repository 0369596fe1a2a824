"""The report's text, and several runs side by side: what must be in it, and what never may."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import measure
import report
from figures import numbers, plan
from swarm import Attempt
from telling import short, tables, words
from telling.text import Paper, plan_text
from telling.text import text as report_text
from tests.support.lay_out import ARMS, attempt, base, config, lay_out, names, play, run
from tests.support.thin import thinned

ROOT = Path(__file__).parent.parent


@cache
def published(name: str = "results.json") -> dict[str, Any]:
    attempts, conf = lay_out(name)
    return measure.measure(attempts, conf)


def told(attempts, width: int = 80, **changes) -> str:
    return report_text(measure.measure(attempts, config(**changes)), width)


def well_formed(text: str, width: int = 80) -> None:
    assert all(len(line) <= width for line in text.split("\n")), max(text.split("\n"), key=len)
    assert not re.search(r"\b(nan|None|null|inf)\b|\bTrue\b|\bFalse\b|\{|\}", text), text
    assert not re.search(r"\s$|\n\n\n|\033", text)


# ── a whole run ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_histogram_comes_first_and_one_line_an_arm() -> None:
    text = report_text(published())
    well_formed(text)
    lines = text.split("\n")
    assert "Qwen/Qwen3-4B on code_contests, seed 0" in lines[0]
    bars = lines[3:12]
    assert [line.split()[0] for line in bars] == [str(k) for k in range(9)]
    counts = [int(line.split()[-2]) for line in bars]
    assert counts == [223, 17, 14, 4, 3, 1, 3, 4, 6]
    drawn = [line.count("█") for line in bars]
    assert drawn[0] > 50 and drawn[1] == round(drawn[0] * 17 / 223)
    ring = next(line for line in lines if line.startswith("ring "))
    mean = published()["paired"]["ring"]["vs_all_resample"]
    assert mean["delta"] == pytest.approx(22 / 223 - 20 / 223)  # against 16, 20 and 24
    told_as = f"+0.9 {words.within(mean['interval'], sign=True)}"
    for said in ("22 of 223", "9.9 [6.6, 14.5]", told_as, "14:8", "inconclusive"):
        assert said in ring
    assert "Minus resample: the mean of its 3 runs, where a verdict is drawn; its own" in " ".join(lines)
    solo = next(line for line in lines if line.startswith("solo "))
    assert "15 of 223" in solo and "7:8" in solo


def test_everything_stands_in_its_order() -> None:
    text = report_text(published())
    order = [
        "Tasks by passes in their base group",
        "24 more attempts on each of 223 all-fail tasks",
        "Exploratory: no plan was written before the first sample.",
        "resample ran 3 times and rescued 16, 20 and 24 of 223",
        "10.9 points (from the run means)",
        "Rescued by at least one of 6 runs",
        "tasks by pass share",
        "Do the hidden tests follow the shown ones",
        "Rescues a million tokens",
        "calibrate.py",
    ]
    places = [text.replace("\n", " ").find(said) for said in order]
    assert -1 not in places and places == sorted(places)


def test_inconclusive_is_never_told_as_no_difference() -> None:
    text = report_text(published())
    assert "no difference" not in text.lower() and "flat" not in text.lower()
    margin = published()["verdict"]["margin"]
    assert 0 < margin < 0.05
    assert f"nor that there is none worth acting on ({numbers.in_points(margin)})" in text.replace("\n", " ")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_it_keeps_its_width(width: int) -> None:
    for results in (published(), {**published(), "band": "near-miss"}):
        assert max(map(len, report_text(results, width).split("\n"))) <= max(width, 80)


@pytest.mark.slow
def test_colour_only_when_asked_for_and_only_paint() -> None:
    plain, painted = report_text(published()), report_text(published(), colour=True)
    assert "\033" not in plain and "\033[" in painted
    assert re.sub(r"\033\[[\d;]*m", "", painted) == plain


def test_the_positive_control_as_published_is_told_by_its_per_sample_rate() -> None:
    tasks = names(30)
    attempts = run(tasks, {arm: {"t0001": 0} for arm in ARMS}, stop=False)
    text = told(attempts, tasks="mbpp-bundle", full_budget=True, as_published=True)
    well_formed(text)
    assert "1 of 720" in text and "secondary: no verdict is drawn from them" in text
    rows = [line for line in text.split("\n") if line.startswith("ring ")]
    assert "0.14" in rows[0] and rows[0].split()[-1] in words.MEANING and rows[1].split()[-1] not in words.MEANING


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        ("WWWW", "climbs the shown tests and whether the hidden ones follow is not shown"),
        # Programs that know the shown tests by heart pass one hidden test in four or three whatever they do.
        ("PWWW", "climbs the shown tests and whether the hidden ones follow is not shown"),
        ("PPPW", "climbs the shown tests and whether the hidden ones follow is not shown"),
        ("PPPP", "and the hidden ones follow, not all the way"),
    ],
)
def test_a_climb_that_the_hidden_tests_do_not_follow_is_said(hidden: str, said: str) -> None:
    luck = random.Random(5)
    attempts = [a for task in names(60) for a in base(task)]
    for arm in ("resample", "solo"):
        for task in names(60):
            for r in range(3):
                for i in range(8):
                    shown = luck.random() < 0.04 + (0.2 * r if arm == "solo" else 0)
                    end = hidden if hidden != "PPPP" or luck.random() < 0.5 else "WWWW"
                    letters = (
                        {"visible": "PPPPP", "hidden": end, "passed": end == "PPPP"} if shown else {"visible": "WWWWW"}
                    )
                    attempts.append(attempt(task, arm, 0, r, i, **letters))
    text = told(attempts, arms=["resample", "solo"], full_budget=True)
    well_formed(text)
    assert said in text.replace("\n", " ")
    assert "resample climbs" not in text
    at = text.index("Do the hidden tests follow the shown ones")
    shares = next(line for line in text[at:].split("\n") if line.startswith("solo ")).split()[1:]
    assert float(shares[2]) > float(shares[0]) + 30 and (shares[3:] == ["0.0"] * 3) == (hidden != "PPPP")


def test_a_calibration_ends_the_report() -> None:
    curve = {"verdict": "cliff", "why": "from a half to three quarters 1 of 83 pass", "table": []}
    text = report_text(published(), calibration={"fitness": curve})
    last = "Is the fitness a hill? cliff: from a half to three quarters 1 of 83 pass."
    assert text.replace("\n", " ").endswith(last)
    assert "calibrate.py" not in text


# ── runs that hold next to nothing ───────────────────────────────────────────────────────────────────────

one = {arm: {"t": 1} for arm in ARMS}
DEGENERATE: dict[str, tuple[list[Attempt], dict[str, Any], str]] = {
    "nothing": ([], {}, "No task has its 8 base attempts yet"),
    "no card but one attempt": ([attempt("t")], {}, "1 task whose base group is incomplete (7 attempts owed)"),
    "no task is all-fail": ([*base("a", 3), *base("b", 8)], {}, "the group throws nothing away"),
    "one task": (run(["t"], one), {}, "an interval is not meaningful with 1 task"),
    "one task that nobody rescues": (run(["t"], {arm: {} for arm in ARMS}), {}, "0 of 1"),
    "an arm that rescued all": (
        run(names(12), {"resample": {}, "star": dict.fromkeys(names(12), 0)}),
        {"arms": ["resample", "star"]},
        "Star found more than resample",
    ),
    "no noise runs": (run(names(9), one), {}, "--noise-runs 2 tells"),
    "equal noise runs": (run(names(5), {"resample": {}}, [{}]), {"arms": ["resample"], "noise_runs": 1}, "no evidence"),
    "noise runs that never came": (
        run(names(3), {"resample": {"t0001": 0}}),
        {"arms": ["resample"], "noise_runs": 2},
        "No task is finished in all 3 runs of resample",
    ),
    "no control": (run(["a", "b"], {"ring": {"a": 0}}), {"arms": ["ring"]}, "nothing to compare with"),
    "the control alone": (run(["a", "b"], {"resample": {}}), {"arms": ["resample"]}, "nothing to compare"),
    "an empty band": (list(base("a")), {"band": "near-miss"}, "No all-fail task is in the near-miss band"),
    "the arms have not begun": (
        [a for t in names(4) for a in base(t)],
        {},
        "(resample, solo, ring and star on 4 of 4 tasks)",
    ),
    "one arm is half done": (
        run(names(4), {"resample": {}}) + list(play("t0001", "ring", None))[:11],
        {"arms": ["resample", "ring"]},
        "ring still owes attempts on 4 of 4 tasks",
    ),
    "full budgets, and no arm is finished": (
        [a for t in names(4) for a in base(t)] + list(play("t0001", "ring", None))[:11],
        {"arms": ["resample", "ring"], "tasks": "mbpp-bundle", "full_budget": True},
        "No task is finished by resample and another arm",
    ),
    "one round": (run(names(4), one, rounds=1), {"rounds": 1}, "8 particles, 1 round"),
    "arms of your own": (
        run(names(6), {"resample": {}, "a_hint_in_every_single_round_and_more": {"t0001": 0}}),
        {"arms": ["resample", "a_hint_in_every_single_round_and_more"]},
        "a_hint_",
    ),
    "a dry run": (run(["t"], one), {"dry_run": True}, "DRY RUN: toy tasks and a fake policy. These figures say"),
    "unknown tokens": (
        [attempt("t", particle=i, prompt_tokens=None, completion_tokens=None) for i in range(8)],
        {},
        "no token counts for 8 replies",
    ),
    "as published": (
        run(["t"], one),
        {"as_published": True},
        "starred departures in docs/published.md",
    ),
    "a weaker sandbox": (run(["t"], one), {"tier": "limits"}, "Graded in tier limits"),
    "replies cut at the cap": (
        [attempt("t", particle=i, finish_reason="length") for i in range(8)],
        {},
        "A larger --max-tokens makes another experiment, so it needs another --out.",
    ),
}


@pytest.mark.parametrize("name", thinned(DEGENERATE, 3))
def test_degenerate_runs_end_with_words(name: str) -> None:
    attempts, changes, said = DEGENERATE[name]
    text = told(attempts, **changes)
    well_formed(text)
    assert said in re.sub(r"\s+", " ", text)


@pytest.mark.slow
def test_a_run_cut_off_anywhere_still_reports() -> None:
    attempts = run(names(2), {arm: {"t0001": 1} for arm in ("resample", "ring")}, [{"t0002": 0}])
    for end in range(0, len(attempts), 13):
        well_formed(told(attempts[:end], noise_runs=1, arms=["resample", "ring"]))


def test_slots_are_told_of_an_endpoint_and_not_of_a_dry_run() -> None:
    slots = {"busy": 0.9, "retrying": 0.0, "grader": 0.04, "nothing_to_ask": 0.06}
    results = published()
    results = {**results, "cost": {**results["cost"], "slots": slots}}
    said = "Slots busy 90.0% of the time (6.0% with nothing to ask, 4.0% waiting for the grader)."
    assert said in words.cost_words(results)
    assert "lots" not in words.cost_words({**results, "dry_run": True})


def test_requests_add_up_to_those_that_were_sent() -> None:
    asked = {"sent": 418, "answered": 368, "retries": 42, "refused": 0, "possibly_billed": 16, "faults": 0}
    results = published()
    said = words.cost_words({**results, "cost": {**results["cost"], "requests": asked}})
    assert "Requests: 368 answered, 42 failed and sent again, 8 cut off (16 possibly billed)." in said


def test_the_interval_that_decides_equivalence_is_told() -> None:
    lo, hi = published()["paired"]["solo"]["equivalence_interval"]
    said = f"solo [{words.points(lo, sign=True)}, {words.points(hi, sign=True)}]"
    margin = numbers.in_points(published()["verdict"]["margin"])
    told = words.equivalence_words(published())
    assert told.startswith(f"Equivalent needs the interval of an exact test within {margin} either way, and ")
    assert said in told


def test_a_plan_says_what_it_may_ask_and_cost() -> None:
    data = {"asked": 2, "tasks": 9, "source": "mine", "revision": None, "median_rating": None, "left_out": {}}
    conf = config(arms=["resample"], rounds=1, system="", price=[1.0, 2.0], server={"facts": [], "warnings": []})
    conf["data"] = {**data, "notes": [], "prompt_characters": 600}
    conf["server"]["model"] = "a/model"
    lines = plan_text(conf, plan.make_plan(conf, 2)).split("\n")
    # 32 calls of 300 characters, three to a token; 2,048 tokens each come back.
    assert "tokens: at most 65,536 out, about 3,200 in; about 0.13 usd" in lines
    powers = next(line for line in lines if line.startswith("power"))
    assert powers.endswith("9% of the tasks, if all / half / a quarter of the tasks are all-fail: 0.0% / 0.0% / 0.0%")


def test_a_bar_is_drawn_for_a_single_task_among_thousands() -> None:
    results = {**published(), "p0_histogram": [9000, 1, 0, 0, 0, 0, 0, 0, 0]}
    bars = report_text(results).split("\n")[3:12]
    assert "▏" in bars[1] and bars[2].split()[1] == "0"


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_column_that_says_nothing_is_left_out_and_a_table_without_rows_too() -> None:
    made = tables.table("c", ["arm", "one", "two"], [["a", "", "1"], ["b"]])
    assert made and [column.name for column in made.head] == ["arm", "two"] and made.rows == [["a", "1"], ["b", ""]]
    assert tables.table("c", ["arm", "one"], []) is None and Paper(80, False).table(None) == []


def test_the_text_leaves_out_what_the_page_alone_has_room_for() -> None:
    head = ["", tables.Column("minus", "estimate", "against"), "p", tables.Column("said", "verdict")]
    rows = [["arm", tables.Short("1 : 2", "1:2"), ".5", "better"], ["together", "3", ".5", "worse"]]
    made = tables.table("c", head, rows, ["A note."], ["p", "together"])
    assert Paper(80, False).table(made) == ["     against  said", "arm  1:2      better", "A note."]
    assert Paper(80, True).table(made)[1].endswith("\033[1;32mbetter\033[0m")


# ── figures for people ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "right"),
    [
        (words.points(0.0269), "2.7"),
        (words.points(-0.0004, sign=True), "0.0"),
        (words.points(0.0269, sign=True), "+2.7"),
        (words.points(None), "–"),
        (words.within([None, None]), ""),
        (words.within([-0.0159, 0.0692], sign=True), "[-1.6, +6.9]"),
        (words.big(15_750_198), "15.8M"),
        (words.big(9_999), "9,999"),
        (words.big(12_345), "12.3k"),
        (words.big(999_999), "1.0M"),
        (words.span(5705), "1.6 h"),
        (words.span(59), "59 s"),
        (words.span(200_000), "2.3 days"),
        (words.span(None), "–"),
        (words.listed(["a", "b", "c"]), "a, b and c"),
        (words.listed(["a"]), "a"),
        (words.p_text(0.28628), ".286"),
        (words.p_text(1e-9), "<.001"),
        (words.p_text(1), "1"),
        (words.plural(1, "retry", "retries"), "1 retry"),
        (words.plural(1200, "retry", "retries"), "1,200 retries"),
    ],
)
def test_figures(said: str, right: str) -> None:
    assert said == right


# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────


def seed_of(seed: int, n: int, better: bool, **changes) -> dict[str, Any]:
    """A run of `n` tasks in which star rescues 20 tasks more than resample, or exactly the same ones."""
    tasks = names(n)
    same = dict.fromkeys(tasks[:5], 0)
    star = same | (dict.fromkeys(tasks[5:25], 1) if better else {})
    attempts = run(tasks, {"resample": same, "star": star}, rounds=2, particles=2, group=2)
    small = {"rounds": 2, "particles": 2, "base_samples": 2}
    return measure.measure(attempts, config(seed=seed, arms=["resample", "star"], **small, **changes))


def test_better_on_both_seeds_is_better() -> None:
    pooled = report.pool({"a": seed_of(0, 60, True), "b": seed_of(1, 60, True)})
    assert pooled["arms"]["star"]["verdict"] == "better"
    assert pooled["arms"]["star"]["delta"] == pytest.approx(20 / 60) and pooled["arms"]["star"]["n"] == 60
    assert (pooled["given_in_some"], pooled["given_in_every"], pooled["rescued_in_some"]) == (60, 60, 25)


def test_better_on_one_seed_alone_is_not_called_better() -> None:
    runs = {"out": seed_of(0, 60, True), "out-seed1": seed_of(1, 60, False)}
    star = report.pool(runs)["arms"]["star"]
    assert runs["out"]["verdict"]["arms"]["star"] == "better" and star["by_run"][1] != "better"
    assert star["p_holm"] < 0.05 and star["interval"][0] > 0  # the pooled figures alone would have said so
    assert star["verdict"] == "inconclusive"
    text = report.side_by_side(runs)
    well_formed(text)
    assert "star is better in out alone, so it is not called better" in text.replace("\n", " ")


def test_runs_that_contradict_each_other_are_not_equivalent_together() -> None:
    """Star rescues 18 tasks of 400 more than resample in one run, and 18 fewer in the other: their mean is 0."""
    tasks, small = names(400), {"rounds": 1, "particles": 1, "base_samples": 1}

    def rescued(first: int, last: int) -> dict[str, dict[str, int]]:
        return {"resample": dict.fromkeys(tasks[:first], 0), "star": dict.fromkeys(tasks[-last:], 0)}

    runs = {
        name: measure.measure(
            run(tasks, rescued(*counts), rounds=1, particles=1, group=1),
            config(seed=seed, arms=["resample", "star"], **small),
        )
        for name, seed, counts in (("out0", 0, (2, 20)), ("out1", 1, (20, 2)))
    }
    star = report.pool(runs)["arms"]["star"]
    assert star["by_run"] == ["better", "worse"] and star["delta"] == 0
    assert star["interval"][0] > -0.05 and star["interval"][1] < 0.05  # the pooled figures alone say equivalent
    assert star["verdict"] == "inconclusive"
    text = report.side_by_side(runs)
    well_formed(text)
    said = " ".join(text.split())
    assert "star is better in out0 and worse in out1: these runs contradict each other" in said
    assert "alone, so it is not called" not in said and "equivalent" not in said


def test_pooling_takes_a_task_once_and_leaves_out_what_is_unfinished() -> None:
    runs = {"a": seed_of(0, 40, False), "b": seed_of(1, 60, False)}
    pooled = report.pool(runs)
    assert pooled["arms"]["star"]["n"] == 60 and pooled["given_in_every"] == 40
    runs["b"]["by_task"]["t0050"]["arms"]["star"]["done"] = False
    assert report.pool(runs)["arms"]["star"]["n"] == 59


def test_the_order_of_runs_does_not_matter() -> None:
    one, two = seed_of(0, 60, True), seed_of(1, 60, False)
    there, back = report.pool({"a": one, "b": two}), report.pool({"b": two, "a": one})
    turned = {key: back["arms"]["star"][key][::-1] for key in ("by_run", "deltas")}
    assert there["arms"]["star"] == {**back["arms"]["star"], **turned}


@pytest.mark.parametrize(
    "change", thinned([{"model": "another/model"}, {"temperature": 0.6}, {"band": "near-miss"}, {"margin": 3}], 4)
)
def test_runs_that_differ_in_more_than_their_seed_are_not_pooled(change: dict[str, Any]) -> None:
    runs = {"a": seed_of(0, 30, True), "b": seed_of(1, 30, True, **change)}
    assert report.pool(runs)["differ"] and not report.pool(runs)["arms"]
    text = report.side_by_side(runs)
    well_formed(text)
    assert "Not pooled: these runs differ in" in text and "together" not in text


def test_one_seed_twice_is_no_repetition() -> None:
    runs = {"a": seed_of(0, 30, True), "b": seed_of(0, 30, True)}
    assert not report.pool(runs)["arms"] and "same seed" in report.side_by_side(runs)


def test_empty_runs_side_by_side() -> None:
    empty = {"a": measure.measure([], config(seed=0)), "b": measure.measure([], config(seed=1))}
    text = report.side_by_side(empty)
    well_formed(text)
    assert "No run has a task that was given to the arms" in text.replace("\n", " ")


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────


def folder(at: Path, seed: int = 0, n: int = 4) -> Path:
    at.mkdir()
    attempts = run(names(n), {arm: {"t0001": 0} for arm in ARMS})
    (at / "config.json").write_text(json.dumps(config(seed=seed)))
    (at / "attempts.jsonl").write_text("".join(json.dumps(asdict(a)) + "\n" for a in attempts))
    return at


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "report.py", *map(str, arguments)],
        capture_output=True, text=True, timeout=60, env={"PYTHONIOENCODING": "utf-8", **environment},
    )  # fmt: skip


def test_one_run_is_told_as_run_py_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder(tmp_path / "out")
    assert report.main([str(out)]) == 0
    said = capsys.readouterr().out
    attempts = run(names(4), {arm: {"t0001": 0} for arm in ARMS})
    assert said == report_text(measure.measure(attempts, config(seed=0)), folder=str(out)) + "\n"


@pytest.mark.slow
def test_json_is_the_results_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = folder(tmp_path / "out"), folder(tmp_path / "out-seed1", seed=1)
    assert report.main(["--json", str(one)]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["all_fail"] == 4
    (tmp_path / "alone.json").write_text(json.dumps(results))
    assert report.main([str(tmp_path / "alone.json"), str(two)]) == 0
    assert "2 runs" in capsys.readouterr().out
    assert report.main(["--json", str(one), str(two)]) == 0
    assert json.loads(capsys.readouterr().out)["given_in_every"] == 4


def test_published_files_are_told_as_far_as_they_go(capsys: pytest.CaptureFixture[str]) -> None:
    files = [ROOT / "tests/data" / f"published_results{name}.json" for name in ("", "-seed1", "-mbpp", "-27b")]
    for file in [*files, ROOT / "results.json"]:
        assert report.main([str(file)]) == 0
        well_formed(said := capsys.readouterr().out[:-1])
        assert f"{json.loads(file.read_text())['all_fail']} of " in said
        assert report.main(["--json", str(file)]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads(file.read_text())
    assert report.main(list(map(str, files))) == 0
    well_formed(said := capsys.readouterr().out[:-1])
    assert "223 (81.1%)" in said and "Not pooled" in said


def test_a_published_file_is_told_with_its_own_figures(capsys: pytest.CaptureFixture[str]) -> None:
    name = str(ROOT / "tests/data/published_results.json")
    assert report.main([name]) == 0
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines()]
    assert ["ring", "9.9", "±", "3.8", "223", "5,176", "23.2", "2.2", "7.6", "9.9"] in rows
    assert "ring minus resample  +2.7 [-1.3, +6.7]    223  .275  no difference detected" in said
    assert "No task was given" not in said and "Published figures alone: there is no verdict by a plan." in said
    both = [name, str(ROOT / "tests/data/published_results-seed1.json")]
    assert report.main(both) == 0
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines()]
    # .099 of 223 and .101 of 228 tasks
    assert ["ring", "published_results.json", "22", "of", "223", "+2.7", "[-1.3,", "+6.7]"] in rows
    assert ["published_results-seed1.json", "23", "of", "228", "-1.3", "[-4.8,", "+2.2]"] in rows
    assert "not what each task brought" in said


def test_runs_are_named_with_their_models_and_each_metric_has_its_table() -> None:
    small = {"rounds": 1, "particles": 2, "base_samples": 2, "arms": ["resample", "star"], "full_budget": True}
    small["as_published"] = True  # by rates a sample
    attempts = run(names(40), {"resample": {}, "star": dict.fromkeys(names(9), 0)}, rounds=1, particles=2, group=2)
    small |= {"tasks": "mbpp-bundle", "as_published": True}
    conf = [config(seed=seed, model=f"a/model{seed}", **small) for seed in (0, 1)]
    runs = {f"out{seed}": measure.measure(attempts, conf[seed]) for seed in (0, 1)}
    text = report.side_by_side(runs)
    well_formed(text)
    lines = text.splitlines()
    assert lines[0] == "2 runs" and "out1: a/model1 on mbpp-bundle, seed 1; 2 samples a task and arm" in lines
    assert "model: a/model0 in out0; a/model1 in out1" in lines
    rates, samples = (text.partition(name)[2] for name in ("Rescue rate: tasks", "Per-sample pass rate: samples"))
    of_rates = [line.split() for line in rates.partition("\n\n")[0].splitlines()]
    assert ["star", "out0", "9", "of", "40", "+22.5"] in [row[:6] for row in of_rates]
    assert not any(row[-1:] == ["better"] for row in of_rates)  # which the plan does not draw from rates of tasks
    assert ["star", "out0", "9", "of", "80", "+11.25"] in [line.split()[:6] for line in samples.splitlines()]


@pytest.mark.slow
def test_several_runs_have_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(folder(tmp_path / f"<out{seed}>", seed=seed)) for seed in (0, 1)]
    assert report.main([*runs, "--html", str(tmp_path / "both.html")]) == 0
    capsys.readouterr()
    page = (tmp_path / "both.html").read_text()
    assert (
        '<p class="answer">Exploratory (not planned as 2 runs to be pooled (--seeds 2)). Together, ' in page
        and "<svg" in page
        and "<script" not in page
    )
    assert "&lt;out1&gt;: a/model on code_contests, seed 1" in page and "<out" not in page
    assert page.count("<table>") == 2 and "minus resample" in page
    with pytest.raises(SystemExit) as end:
        report.main([runs[0], "--html", str(tmp_path / "one.html")])
    assert end.value.code == 2 and "--html is the page of several runs" in capsys.readouterr().err
    assert report.main([*runs, "--html", str(tmp_path / "none" / "x.html")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "name another --html" in said.err


def test_a_run_is_not_pooled_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = folder(tmp_path / "out"), folder(tmp_path / "out-seed1", seed=1)
    with pytest.raises(SystemExit) as end:
        report.main([str(one), str(two), f"{tmp_path}/./out"])
    said = capsys.readouterr()
    assert end.value.code == 2 and said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith(f"report.py: {tmp_path}/./out is named twice: name each run once (")


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        report.main(["--version"])
    version = capsys.readouterr().out.removeprefix("swarm-rescue ").strip()
    assert end.value.code == 0 and f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("bad", ["missing", "empty", "garbage", "other", "of another command"])
def test_what_is_no_run_is_refused_in_one_line(bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = tmp_path / bad
    if bad == "empty":
        at.mkdir()
    elif bad == "garbage":
        at.mkdir()
        (at / "attempts.jsonl").write_text("{}\n")
        (at / "config.json").write_text("{")
    elif bad == "of another command":
        folder(at)
        (at / "config.json").write_text(json.dumps({"command": "sql_calibrate.py", "identity": {}, "plan": {}}))
    elif bad == "other":
        at.write_text('{"a": 1}')
    assert report.main([str(at)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and str(at) in said.err


@pytest.mark.slow
def test_the_command_prints_no_colour_into_a_pipe_and_survives_a_narrow_encoding(tmp_path: Path) -> None:
    out = folder(tmp_path / "out")
    for encoding in ("utf-8", "ascii"):
        got = command(out, PYTHONIOENCODING=encoding, TERM="xterm")
        assert got.returncode == 0 and not got.stderr and "\033" not in got.stdout
        assert "of 4" in got.stdout


def test_no_color_wins_over_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert report.wants_colour()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not report.wants_colour()


def test_a_gap_where_the_shown_tests_fall_too_is_no_climb():
    def part(mean, lo, hi):
        return {"mean": mean, "interval": [lo, hi]}

    moved = {
        "n": 60,
        "shown": part(-0.016, -0.028, -0.003),
        "hidden": part(-0.083, -0.1, -0.06),
        "gap": part(0.067, 0.05, 0.09),
    }
    row = {"moved": moved, "against_resample": None}
    assert short.climb_words({"climb": {"star": row}}) == []
    rising = {**moved, "shown": part(0.05, 0.01, 0.09)}
    (said,) = short.climb_words({"climb": {"star": {"moved": rising, "against_resample": None}}})
    assert "climbs" in said and "not shown" in said


def test_a_verdict_that_no_plan_foretold_says_so_before_anything_else():
    results = measure.measure(run(names(30), {arm: {} for arm in ARMS}), config())
    assert not results["verdict"]["planned"] and results["verdict"]["sentence"].startswith("Exploratory: ")


def test_the_effect_is_told_in_rescues_and_the_margin_beside_what_the_control_finds():
    row = {"n": 223, "interval": [-0.013, 0.067], "margin": 0.05, "control_rate": 0.0717, "verdict": "inconclusive"}
    results = {"verdict": {"primary_metric": "rescue_rate"}, "paired": {"ring": row}}
    said = words.effect_words(results)
    assert said.startswith("In rescues, 95%: ring 3 fewer to 15 more of 223.")
    assert said.endswith("The margin of 5 points is 70% of what resample finds.")
    dead = words.effect_words({**results, "paired": {"ring": {**row, "control_rate": 0.02}}})
    assert dead.endswith(
        "more than resample finds at all, so equivalent also takes a 95% interval that leaves out an arm that finds "
        "nothing."
    )
    base = {"primary_metric": "rescue_rate", "margin_asked": 0.05, "control_foretold": 0.0867}
    half = words.effect_words({"verdict": base, "paired": {"ring": {**row, "margin": 0.0433}}})
    assert half.endswith(
        "The margin of 4.33 points, half of the 8.7% that the base group foretells of resample, is 60% of what "
        "resample finds."
    )
    none = words.effect_words({"verdict": base, "paired": {"ring": {**row, "margin": 0.0}}})
    assert none.endswith(
        "No base attempt passed, which foretells nothing of resample, so no arm can be called equivalent."
    )
    split = words.effect_words(
        {"verdict": base, "paired": {"ring": {**row, "margin": 0.0}}, "p0_histogram": [60] + [0] * 7 + [40]}
    )
    assert "No base attempt passed" not in split and split.endswith("so no arm can be called equivalent.")
