"""The Dockerfile and what it copies: every file and command that it names is there, and nothing private goes along.

No engine runs here. What its steps come to was tried by hand (docs/running.md).
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

from tests.test_house import ROOMS

ROOT = Path(__file__).parent.parent
STEPS = [
    line.split(maxsplit=1)
    for line in (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]


def steps(word: str) -> list[str]:
    return [rest for name, rest in STEPS if name == word]


def goes_along(path: str) -> bool:
    """By the rules of .dockerignore: a pattern is of a path from the root, ** of any folder; none is taken back."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        for pattern in IGNORED:
            names = pattern.removeprefix("**/").split("/")
            start = depth - len(names) if pattern.startswith("**/") else 0
            if start >= 0 and len(parts[start:depth]) == len(names) and all(map(fnmatchcase, parts[start:], names)):
                return False
    return True


def test_what_it_names_is_there() -> None:
    copied = [name for rest in steps("COPY") for name in shlex.split(rest)[:-1]]
    assert "." in copied and all((ROOT / name).exists() and (name == "." or goes_along(name)) for name in copied)
    (command,), (entry,) = map(json.loads, steps("CMD")), map(json.loads, steps("ENTRYPOINT"))
    assert (ROOT / command[0]).is_file() and goes_along(command[0])
    # The entry, with echo in place of Python: $0 and the rest reach it as they were given.
    said = subprocess.run([*entry[:2], entry[2].replace("exec python", "printf '%s|'"), *command, "two words", "*"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert said.stdout == "/app/run.py|--dry-run|two words|*|"
    assert steps("WORKDIR")[0] == "/app"
    named = re.findall(r"(?<=swarm-rescue )\w+\.py", (ROOT / "Dockerfile").read_text())
    assert named and all((ROOT / name).is_file() for name in named)


def test_it_starts_from_a_small_python_that_the_project_supports_and_ends_as_nobody_in_particular() -> None:
    (base,) = steps("FROM")
    version = re.fullmatch(r"python:3\.(\d+)-slim", base)
    assert version and 11 <= int(version[1]) <= 14
    (user,) = steps("USER")
    assert user not in ("root", "0") and any(f" {user}" in rest and "useradd" in rest for rest in steps("RUN"))
    order = [name for name, _ in STEPS]
    assert order.index("USER") > max(i for i, name in enumerate(order) if name in ("RUN", "COPY"))


def test_the_whole_program_goes_along_and_nothing_else() -> None:
    ours = [room.replace(".", "/") + ".py" for room in ROOMS]
    frames = [str(path.relative_to(ROOT)) for kind in ("html", "js") for path in ROOT.glob(f"telling/*.{kind}")]
    assert frames
    assert [path for path in (*ours, *frames, "pyproject.toml") if not goes_along(path)] == []
    away = (
        ".git/config .git .ci/run out/attempts.jsonl out-seed1/config.json out.1/owed.jsonl out-dry/report.html "
        ".venv/bin/python venv/x grading/__pycache__/x.pyc .mypy_cache/x tests/test_run.py my_tasks.jsonl .env "
        "swarm_rescue.egg-info/PKG-INFO"
    )
    assert [path for path in away.split() if goes_along(path)] == []
