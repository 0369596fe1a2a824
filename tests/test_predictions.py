"""--predict: what can be said, what is refused, and how it is told beside what came out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commands.predictions import predictions
from commands.settings import said, shrinks
from figures.plan import make_plan, plan_digest
from measure import measure
from telling import words
from telling.page import page
from telling.text import text
from tests.support.lay_out import config, names, run

ARMS = ["solo", "ring", "star"]


def test_pairs_and_a_file_say_the_same(tmp_path):
    file = tmp_path / "expected.json"
    file.write_text('{"ring": 3, "star": -4.5}')
    assert predictions(str(file), ARMS) == predictions(" ring=3, star=-4.5", ARMS) == {"ring": 3.0, "star": -4.5}
    assert predictions("solo=-100,star=100", ARMS) == {"solo": -100.0, "star": 100.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rong=3", "'rong' is not compared with resample here; there are solo, ring, star; did you mean ring?"),
        ("resample=3", "'resample' is not compared"),
        ("ring=3,ring=4", "ring is there twice: say once"),
        ("ring=many", "ring 'many' is no number of points"),
        ("ring=", "ring '' is no number of points"),
        ("ring=nan", "is no number of points"),
        ("ring=100.1", "from -100 to 100: say how many points"),
        ("ring=-inf", "is no number of points"),
        ("ring", "there is no file 'ring'; name one, or say arm=points"),
        ("none.json", "there is no file 'none.json'"),
        ('{"ring": true}', "ring True is no number of points"),
        ('{"ring": null}', "is no number of points"),
        ('{"ring": [3]}', "is no number of points"),
        ('{"ring": 1, "ring": 2}', "ring is there twice"),
        ('{"ring": %s}' % ("9" * 400), "is no number of points"),
        ("{}", "no arm is in it"),
        ("[3]", "is not a JSON object: write"),
        ('[["ring", 3]]', "is not a JSON object"),
        ("{", "is not a JSON object"),
        ("[" * 100_000, "is not a JSON object"),
    ],
)
def test_what_is_no_prediction_is_said(tmp_path, text, said):
    if text[0] in "[{":
        file = tmp_path / "p.json"
        file.write_text(text)
        text = str(file)
    with pytest.raises(ValueError, match="--predict") as why:
        predictions(text, ARMS)
    assert said in str(why.value) and "\n" not in str(why.value)


def test_nothing_can_be_predicted_where_nothing_is_compared():
    with pytest.raises(ValueError, match="nothing is compared with resample here: leave it out"):
        predictions("ring=3", [])


def planned(predict: dict[str, float] | None, now: Any = "as planned", written: float = 1.0, n: int = 60):
    """star finds 6 of 60 more than resample, and the plan was written at `written`; attempts are of second 1,000."""
    conf = config(arms=["resample", "star"], particles=2, rounds=1, base_samples=2)
    conf["plan"]["predict"] = predict
    plan = make_plan(conf, n) | {"written": written}
    conf["plan_digest"] = plan_digest(plan)
    if now != "as planned":
        conf["plan"]["predict"] = now
    rescued = {"resample": {"t0001": 0}, "star": dict.fromkeys(names(7), 0)}
    return measure(run(names(60), rescued, particles=2, rounds=1, group=2), conf, plan=plan), plan, conf


@pytest.mark.slow
def test_an_interval_rules_out_what_lies_beside_it_and_nothing_at_its_ends():
    found, _, _ = planned(None)
    lo, hi = found["paired"]["star"]["interval"]
    assert found["predictions"] == {} and words.prediction_words(found) == ""
    for points, out in [(100 * lo, False), (100 * hi, False), (100 * lo - 0.01, True), (100 * hi + 0.01, True)]:
        row = planned({"star": points})[0]["predictions"]["star"]
        assert row["delta"] == found["paired"]["star"]["delta"] == pytest.approx(6 / 60)
        assert row["interval"] == [lo, hi] and row["before"] is True
        assert row["ruled_out"] is out, points


@pytest.mark.slow
def test_it_is_told_beside_the_result_and_stands_in_the_plan():
    found, plan, conf = planned({"star": 12.0})
    assert plan["predictions"] == {"star": 0.12} and found["verdict"]["planned"]
    said = "Predicted before the first sample: star +12 points (found +10.0 [+1.1, +18.3], not ruled out)."
    assert words.prediction_words(found) == said
    assert said in text(found).replace("\n", " ") and said in page(found, [], [], conf)


@pytest.mark.parametrize(
    ("predict", "now", "written", "before"),
    [
        ({"star": 3.0}, "as planned", 1000.0, True),  # at the second of the first sample
        ({"star": 3.0}, "as planned", 1000.1, False),
        (None, {"star": 3.0}, 1.0, False),
        ({"star": 4.0}, {"star": 3.0}, 1.0, False),
    ],
)
def test_what_was_written_after_a_sample_is_no_prediction(predict, now, written, before):
    found, _, _ = planned(predict, now, written)
    assert found["predictions"]["star"]["before"] is before
    assert f"Predicted {'before' if before else 'after'} the first sample: star +3" in words.prediction_words(found)
    assert found["verdict"]["planned"] is before
    if now != "as planned":
        assert "changed since the plan was written: predict" in found["verdict"]["exploratory"]


def test_before_the_end_of_a_run_nothing_is_ruled_out():
    conf = config(arms=["resample", "star"], particles=2, rounds=1, base_samples=2)
    conf["plan"]["predict"] = {"star": 90.0}
    attempts = run(names(60), {"resample": {}, "star": {"t0001": 0}}, particles=2, rounds=1, group=2)
    whole, cut = measure(attempts, conf), measure(attempts[:-1], conf)
    assert whole["predictions"]["star"]["ruled_out"] is True
    assert cut["predictions"]["star"]["ruled_out"] is None and "so far +1.7" in words.prediction_words(cut)
    nothing = measure([], conf)["predictions"]["star"]
    assert nothing["delta"] is None and nothing["ruled_out"] is None


def test_a_prediction_may_change_in_a_folder_and_says_so():
    assert not shrinks("predict", {"ring": 3.0}, {"ring": 2.0}) and not shrinks("predict", None, {"ring": 2.0})
    assert said("predict", None, {"ring": 2.5, "star": -1.0}) == "--predict none -> ring=2.5,star=-1"
    assert json.dumps(said("limit", None, 20)) == '"--limit all -> 20"'
