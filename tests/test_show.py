"""Prompts rebuilt from a folder, and `run.py --show`: each equals the one sent, by its digest, or is not shown.

What was sent is known here since the attempts are made by playing the real arms; their answers are made up.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import records
import run
from arms import known
from arms.known import arm_of, read
from commands.settings import Settings
from figures.replayed import rebuilt
from swarm import ARMS, Attempt, Prompt, Seat, Slot, swarm
from tasksets.task import Task, Test, card, from_card
from tests.support.lay_out import attempt, config

TASK = Task(
    id="t",
    title="Two numbers",
    statement="Add ```two``` numbers.\n",
    kind="stdio",
    visible=tuple(Test(f"{i} {i}\n", f"{2 * i}\n") for i in range(5)),
    hidden=(Test("9 9\n", "18\n"),),
    prelude="import math\n",
)


def own_words(seat: Seat) -> Prompt:
    """An arm that says what no other does, of all that it can see."""
    told = [f"{i}: {other.code}" for i, other in enumerate(seat.best) if other]
    return Prompt([{"role": "user", "content": "\n".join([seat.task.statement, str(seat.lot), *told])}])


def played(due: Settings, arms: dict[str, Any], full: bool) -> Iterator[tuple[Attempt, Prompt]]:
    """A run on one task, and each prompt as it was sent."""
    rng, seen = random.Random(7), {}

    def answer(slot: Slot, prompt: Prompt) -> Attempt:
        if slot not in seen:
            code = rng.choice([None, f"print({rng.random()})\n", "print(1)\n```"])
            visible = "NNNNN" if code is None else "".join(rng.choice("PPWRT") for _ in range(5))
            visible = "PPPPP" if code and rng.random() < 0.15 else visible
            passed = visible == "PPPPP" and rng.random() < 0.3
            made = attempt(*slot, passed=passed, visible=visible, code=code, got="7\n" if "W" in visible else "timeout")
            names = {"parent": prompt.parent, "social": prompt.social}
            shown = {key: value and value.within_task() for key, value in names.items()}
            seen[slot] = replace(made, prompt_sha=prompt.sha(), **shown), prompt
        return seen[slot][0]

    plays = [
        ("base", ARMS["resample"], 0, 8, 1),
        *((name, arm, 0, due.particles, due.rounds) for name, arm in arms.items()),
    ]
    plays += [("resample", ARMS["resample"], k, due.particles, due.rounds) for k in range(1, due.noise_runs + 1)]
    for name, arm, rerun, n, rounds in plays:
        first = "round0" if due.share_round0 and not rerun and name != "base" else ""
        flow = swarm(TASK.shown(), arm, name, n, rounds, seed=due.seed, rerun=rerun, stop=not full, first=first,
                     style=due.style)  # fmt: skip
        try:
            asks = next(flow)
            while True:
                asks = flow.send([answer(*ask) for ask in asks])
        except StopIteration:
            continue
    yield from seen.values()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"noise_runs": 2, "seed": 5},
        {"share_round0": True},
        {"system": "Be brief.", "no_comments": True},
        {"system": "", "particles": 3, "rounds": 5, "noise_runs": 1, "share_round0": True},
    ],
    ids=str,
)
def test_every_prompt_is_the_one_that_was_sent(changes: dict[str, Any], full: bool) -> None:
    due = Settings(**changes)
    sent = list(played(due, ARMS, full))
    got = rebuilt(from_card(card(TASK)), [a for a, _ in sent], due)
    assert len(sent) > 60 and any(prompt.social for _, prompt in sent)
    assert got == {a.slot: prompt for a, prompt in sent}  # messages, parent and social
    assert all(got[a.slot].sha() == a.prompt_sha for a, _ in sent)


def test_an_arm_with_words_of_its_own_is_played_again() -> None:
    due, arms = Settings(seed=3), {**ARMS, "own_words": own_words}
    sent = list(played(due, arms, True))
    attempts = [a for a, _ in sent]
    assert rebuilt(TASK.shown(), attempts, due, arms) == {a.slot: prompt for a, prompt in sent}
    without = rebuilt(TASK.shown(), attempts, due)  # the arm is gone since: its prompts are not made up
    assert without == {a.slot: prompt for a, prompt in sent if a.arm != "own_words"}


def test_what_does_not_follow_is_not_shown() -> None:
    due = Settings()
    sent = list(played(due, ARMS, True))
    refined = next(a for a, _ in sent if a.social)
    lost = [a for a, _ in sent if a.slot.within_task() != refined.parent]  # its line was garbage
    got = rebuilt(TASK.shown(), lost, due)
    assert refined.slot not in got and len(got) > 50
    assert rebuilt(TASK.shown(), [a for a, _ in sent], Settings(no_comments=True)) == {}
    other = replace(TASK, statement="Subtract them.")
    assert rebuilt(other, [a for a, _ in sent], due) == {}
    assert rebuilt(TASK.shown(), [], due) == {}


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    due = Settings(seed=5)
    at = tmp_path / "out"
    at.mkdir()
    rows = [asdict(a) for a, _ in played(due, ARMS, True)]
    rows[0]["reply"] = "\033]0;owned\007\033[31mred\u202e"
    (at / "config.json").write_text(records.dumps(config(seed=5)))
    (at / "tasks.jsonl").write_text(records.dumps(card(TASK)) + "\n")
    (at / "attempts.jsonl").write_text("".join(records.dumps(row) + "\n" for row in rows))
    return at


def shown(capsys: Any, folder: Path, *words: str) -> tuple[int, str, str]:
    code = run.main(["--out", str(folder), "--show", *words])
    return code, *capsys.readouterr()


def test_an_attempt_is_shown_with_its_prompt_as_sent(folder: Path, capsys: Any) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with records.Folder(folder).locked():  # as while a run goes on
        code, out, _ = shown(capsys, folder, "t", "star/0/2/5")
    rows = [json.loads(line) for line in (folder / "attempts.jsonl").read_text().splitlines()]
    by_name = {f"{r['arm']}/{r['rerun']}/{r['round']}/{r['particle']}": r for r in rows}
    row = by_name["star/0/2/5"]
    (prompt,) = [p for a, p in played(Settings(seed=5), ARMS, True) if a.slot == ("t", "star", 0, 2, 5)]
    assert code == 0
    for message in prompt.messages:
        assert message["content"].rstrip("\n") in out
    assert row["reply"] in out and row["visible_tests"] in out and row["prompt_sha"][:16] in out
    assert row["parent"] in out and row["social"] in out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_task_is_shown_as_a_grid_with_addresses(folder: Path, capsys: Any) -> None:
    code, out, _ = shown(capsys, folder, "t")
    lines = out.splitlines()
    rows = [line.split() for line in lines if line.startswith(("base/", "solo/", "star/", "ring/", "resample/"))]
    assert code == 0 and [row[0] for row in rows][:4] == [
        "base/0/0/",
        "resample/0/0/",
        "resample/0/1/",
        "resample/0/2/",
    ]
    assert all(len(row) == 9 for row in rows) and len(rows) == 13
    command = lines[-1].partition("python ")[2].split()
    assert run.main(command[1:]) == 0
    assert "── program" in capsys.readouterr().out


OWN = """from swarm import Prompt


def mine(seat):
    told = [f"{i}: {other.code}" for i, other in enumerate(seat.best) if other]
    return Prompt([{"role": "user", "content": "\\n".join(["Mine.", str(seat.lot), *told])}])
"""


def test_an_arm_of_a_file_is_shown_where_its_file_is_named(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "my_arms.py"
    file.write_text(OWN)
    names = "resample", f"{file}:mine"
    assert read(names, False) == ["resample", "mine"]
    rows = [asdict(a) for a, _ in played(Settings(), {"mine": arm_of("mine")}, True)]
    at = tmp_path / "out"
    at.mkdir()
    (at / "config.json").write_text(records.dumps(config(arms=["resample", "mine"])))
    (at / "tasks.jsonl").write_text(records.dumps(card(TASK)) + "\n")
    (at / "attempts.jsonl").write_text("".join(records.dumps(row) + "\n" for row in rows))
    try:
        code = run.main(["--out", str(at), "--show", "t", "mine/0/2/3", "--arms", ",".join(names)])
        assert code == 0 and "\nMine.\n" in capsys.readouterr().out
    finally:
        del known.OWN["mine"]
    _, out, _ = shown(capsys, at, "t", "mine/0/2/3")
    assert "cannot be rebuilt" in out and "Mine." not in out


def test_a_reply_cannot_steer_the_terminal(folder: Path, capsys: Any) -> None:
    _, out, _ = shown(capsys, folder, "t", "base/0/0/0")
    assert "\033" not in out and "\007" not in out and "\u202e" not in out and "␛[31mred" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["u"], "holds no task 'u': there are t"),
        (["t", "star/0/2/55"], "did you mean star/0/2/5?"),
        (["t", "sola/0/0/0"], "did you mean solo/0/0/0?"),
    ],
)
def test_what_is_not_there_is_one_line_with_what_is(folder: Path, capsys: Any, words: list[str], said: str) -> None:
    code, out, err = shown(capsys, folder, *words)
    told = [line for line in err.splitlines() if not line.endswith("...")]
    assert (code, out, len(told)) == (2, "", 1) and said in told[0]


def test_a_regraded_attempt_keeps_the_prompt_of_its_time(folder: Path, capsys: Any) -> None:
    """A prompt holds the results as they were when it was sent, whatever a later regrade says of them."""
    from hashlib import sha256

    rows = [json.loads(line) for line in (folder / "attempts.jsonl").read_text().splitlines()]
    programs = {sha256(row["code"].encode()).hexdigest() for row in rows if row["code"]}
    checks = [{"task_id": "t", "program": p, "tests": "r/visible", "rules": "", "letters": "RRRRR"} for p in programs]
    (folder / "checks.jsonl").write_text("".join(records.dumps(check) + "\n" for check in checks))
    (folder / "config.json").write_text(records.dumps(config(seed=5, grades="r")))
    refined = next(r for r in rows if r["social"] and r["code"])
    slot = "{arm}/{rerun}/{round}/{particle}".format(**refined)
    _, out, _ = shown(capsys, folder, "t", slot)
    assert refined["prompt_sha"][:16] in out and "RRRRR" in out
