"""The README against the commands: each flag that one names the other has, and what it says to paste runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import audit
import calibrate
import export
import report
import run
import sql_calibrate
from tasks import SETS

ROOT = Path(__file__).parent.parent
FIRST = (ROOT / "README.md").read_text()
# Pages that a person wrote; those made from types have tests of their own.
PAGES = ["running", "statistics", "audit", "tasks", "arms", "training", "reward", "grader", "sql", "servers", "cost"]
OTHERS = [*(ROOT / "docs" / f"{name}.md" for name in [*PAGES, "published"]), ROOT / "results" / "README.md"]
README = "\n".join([FIRST, *(page.read_text() for page in OTHERS)])
PASTE = [line.split("  #")[0].strip() for line in README.splitlines() if line.startswith("    ")]


COMMANDS = {each.__name__: each for each in (audit, calibrate, export, report, run, sql_calibrate)}
FLAG = r"(?<![\w-])--[a-z][\w-]*"


def flags_of(script: str) -> set[str]:
    """Every flag in a script's help; what it prints for a command that has its parser at hand."""
    if script.removesuffix(".py") in COMMANDS:
        return set(re.findall(FLAG, COMMANDS[script.removesuffix(".py")].flags().format_help()))
    said = subprocess.run(
        [sys.executable, script, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    return set(re.findall(FLAG, said))


def test_each_flag_of_the_readme_is_one_of_the_command_that_it_stands_with():
    """In a line to paste or in backticks: `python FILE --flag`. A flag by itself is one of the commands'."""
    named = [line for line in PASTE if "python " in line] + re.findall(r"`(python [^`]+)`", README)
    calls = [call for line in named for call in re.findall(r"python ([\w/]+\.py)([^&]*)", line)]
    assert len(calls) >= 15
    asked = {script for script, rest in calls if re.search(FLAG, rest)}
    has = {script: flags_of(script) for script in asked | {"report.py", "export.py"}}
    for script, rest in calls:
        assert set(re.findall(FLAG, rest)) <= has.get(script, set()), (script, rest)
    ours = re.sub(r"docker run[^\n]*? swarm-rescue", "", README)  # what stands behind it is a command of ours
    ours = re.sub(r"llama-server[^`\n]*", "", ours)
    alone = set(re.findall(FLAG, re.sub(r"python [\w/]+\.py[^`&\n]*", "", ours)))
    assert alone <= set().union(*has.values())
    assert {flag for flag in run.flags()._option_string_actions if flag.startswith("--")} <= alone | {"--help"}


def test_the_readme_begins_with_the_two_commands():
    assert PASTE[:2] == ["pip install -e . && python run.py --dry-run", "pip install -e '.[test]' && pytest"]


def test_the_commands_of_the_readme_parse(capsys):
    commands = [shlex.split(line) for line in PASTE if re.match(r"python [\w/]+\.py", line)]
    assert len(commands) >= 20
    parsers = {"run.py": run.flags(), "calibrate.py": calibrate.flags(), "sql_calibrate.py": sql_calibrate.flags()}
    parsers |= {"audit.py": audit.flags(), "export.py": export.flags()}
    for _, script, *argv in commands:
        if script in parsers:
            parsers[script].parse_args([word for word in argv if word != "worst"])
        else:
            assert (ROOT / script).is_file(), script


def test_the_readme_names_every_task_set_and_every_file_it_shows():
    assert all(f"`{name}`" in README for name in SETS)
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "results" / "README.md",
        *(ROOT / "docs").glob("*.md"),
    ):
        for name in re.findall(r"\]\(([\w/.]+)\)", page.read_text()):
            assert (page.parent / name).is_file(), (page.name, name)
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= set(re.findall(r"\]\(([\w/.]+)\)", FIRST))


def test_the_readme_is_read_in_a_few_minutes():
    assert len(FIRST.split()) <= 1_600


@pytest.mark.slow
def test_what_needs_no_endpoint_runs_as_pasted(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def paste(line: str) -> str:
        words = [sys.executable if word == "python" else word for word in shlex.split(line)]
        words = [str(ROOT / word) if (ROOT / word).suffix == ".py" else word for word in words]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    assert "python run.py --dry-run" in PASTE[0]
    first = paste("python run.py --dry-run")
    (tmp_path / "out-dry").rename(tmp_path / "out")
    paste("python run.py --dry-run --seed 1 --out out-seed1")
    both = "python report.py out out-seed1 --html both.html"
    for line in ("python run.py --reuse", both, "python calibrate.py --out out"):
        assert line in PASTE
        said = paste(line)
        if "--reuse" in line:
            assert said.splitlines()[:20] == first.splitlines()[:20]
    assert report.__doc__ and "side by side" in report.__doc__
