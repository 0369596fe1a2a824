"""results/: real runs with a real model, which say the same again from their own attempts, byte for byte."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from math import sqrt
from pathlib import Path
from statistics import NormalDist

import pytest

import run
import sql_calibrate

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "results"
RUNS = ["control", *(pytest.param(name, marks=pytest.mark.slow) for name in ("control-seed1", "sql", "tuned"))]
MADE = {  # by command; a calibration is what run.py reads and sql_calibrate.py makes
    "run.py": ("results.json", "report.txt", "rescued.jsonl", "rescued-unverified.jsonl"),
    "sql_calibrate.py": ("report.txt", "calibration.json"),
}
PASSING = (
    "14bc1fe72ff7570f20125ac85ae5420a18ceb9b32874e54528dc01d1c7909c6b"  # SHA-256 of the rows of `sql`, as they came
)


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_is_told_again_byte_for_byte(tmp_path, monkeypatch, name):
    was, out = RECORDED / name, tmp_path / "results" / name
    shutil.copytree(was, out)
    monkeypatch.chdir(tmp_path)
    made_by = json.loads((was / "config.json").read_text())["command"]
    command = {"run.py": run, "sql_calibrate.py": sql_calibrate}[made_by]
    there = [file for file in MADE[made_by] if (was / file).exists()]
    assert len(there) >= 2
    for file in there:
        (out / file).unlink()
    monkeypatch.setattr(run, "page", lambda *parts: "")  # its pictures cost more than all that is held here
    assert command.main(["--reuse", "--out", f"results/{name}"]) == 0  # the report may name the folder
    for file in there:
        assert (out / file).read_bytes() == (was / file).read_bytes(), file
    if command is sql_calibrate:  # too large to be kept beside what they are made of
        assert sha256((out / "passing.jsonl").read_bytes()).hexdigest() == PASSING


def wilson(hits: int, n: int) -> list[float]:
    """By the textbook's formula."""
    z, p = NormalDist().inv_cdf(0.975), hits / n
    middle, half = p + z * z / (2 * n), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [(middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)]


def bonett_price(arm_only: int, control_only: int, n: int) -> list[float]:
    """Of a paired difference: as if one task more had fallen on each side (Bonett and Price 2012)."""
    arm, control = (arm_only + 1) / (n + 2), (control_only + 1) / (n + 2)
    half = NormalDist().inv_cdf(0.975) * sqrt((arm + control - (arm - control) ** 2) / (n + 2))
    return [arm - control - half, arm - control + half]


@pytest.mark.parametrize("name", ["control", "control-seed1"])
def test_its_figures_are_those_of_a_plain_count(name):
    """By nothing of this program but the keys of a line."""
    lines = (RECORDED / name / "attempts.jsonl").read_text().splitlines()
    results = json.loads((RECORDED / name / "results.json").read_text())
    passed: dict[tuple[str, int], set[str]] = {}
    drawn: dict[tuple[str, int], Counter[str]] = {}
    for line in map(json.loads, lines):
        run = line["arm"], line["rerun"]
        drawn.setdefault(run, Counter())[line["task_id"]] += 1
        passed.setdefault(run, set()).update([line["task_id"]] * line["passed"])
    failed = drawn["base", 0].keys() - passed["base", 0]
    n = len(failed)
    assert set(drawn["base", 0].values()) == {8} and results["all_fail"] == n
    del drawn["base", 0], passed["base", 0]
    assert all(counts == dict.fromkeys(failed, 12) for counts in drawn.values())
    for arm, row in results["intervals"].items():
        hits = passed[arm, 0]
        assert (row["rescued"], row["n"]) == (len(hits), n)
        assert row["wilson"] == pytest.approx(wilson(len(hits), n))
        if arm != "resample":
            only, others = len(hits - passed["resample", 0]), len(passed["resample", 0] - hits)
            paired = results["paired"][arm]
            assert (paired["n_arm_only"], paired["n_resample_only"]) == (only, others)
            assert paired["delta"] == pytest.approx((only - others) / n)
            assert paired["interval"] == pytest.approx(bonett_price(only, others, n))
    some = set[str]().union(*passed.values())
    assert results["pooled"]["all_runs"] == {
        "rescued": len(some), "share": len(some) / n, "wilson": pytest.approx(wilson(len(some), n))
    }  # fmt: skip


def test_the_results_at_the_top_are_those_of_the_recorded_run():
    assert (ROOT / "results.json").read_bytes() == (RECORDED / "control" / "results.json").read_bytes()


def test_they_are_small_and_hold_no_path_of_a_machine():
    files = [path for path in RECORDED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 5 << 20
    for path in files:
        found = re.search(rb"(?<![\w.~/])/(home|root|work|tmp|Users)/", path.read_bytes())
        assert not found, path


def out_of(*words: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_rows_that_were_trained_on_come_of_the_recorded_run(tmp_path):
    words = ["--also", "base,reruns", "--per-task", "4", "--held-back", "20", "--to", tmp_path / "rows"]
    assert "No task is held back" in out_of("export.py", "--out", RECORDED / "control", *words)
    for name in ("train.jsonl", "README.md"):
        assert (tmp_path / "rows" / name).read_bytes() == (RECORDED / "rows" / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize(("after", "said"), [("tuned", "compared.txt"), ("control-seed1", "untuned.txt")])
def test_the_pass_shares_before_and_after_come_of_both_runs(after, said):
    folders = [RECORDED / name for name in ("control", after)]
    told = out_of("examples/train.py", "compare", *folders, "--rows", RECORDED / "rows")
    assert told == (RECORDED / "tuned" / said).read_text()


def test_what_both_seeds_say_together_is_told_again_byte_for_byte():
    assert out_of("report.py", "results/control", "results/control-seed1") == (RECORDED / "pooled.txt").read_text()
