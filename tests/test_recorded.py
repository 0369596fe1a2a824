"""results/: real runs with a real model, which say the same again from their own attempts, byte for byte."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import run
import sql_calibrate

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "results"
RUNS = ["control", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sql", "tuned"))]
MADE = {  # by command; a calibration is what run.py reads and sql_calibrate.py makes
    "run.py": ("results.json", "report.txt", "rescued.jsonl", "rescued-unverified.jsonl"),
    "sql_calibrate.py": ("report.txt", "passing.jsonl", "calibration.json"),
}


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
def test_the_pass_shares_before_and_after_come_of_both_runs():
    folders = [RECORDED / name for name in ("control", "tuned")]
    told = out_of("examples/train.py", "compare", *folders, "--rows", RECORDED / "rows")
    assert told == (RECORDED / "tuned" / "compared.txt").read_text()
