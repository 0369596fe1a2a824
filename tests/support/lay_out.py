"""Lays runs out as attempts: the published ones from their counts, and hand-made ones from a few words.

A laid-out run holds what the counts decide (who passed, in which round, who drew how much) and made-up programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swarm import Attempt

DATA = Path(__file__).parents[1] / "data"
COUNTS: dict[str, Any] = json.loads((DATA / "published_counts.json").read_text())
ARMS = ("resample", "solo", "ring", "star")


def published(name: str) -> dict[str, Any]:
    """A published results file, by the name it has in the counts."""
    return json.loads((DATA / f"published_{name}").read_text())


def config(**changes: Any) -> dict[str, Any]:
    """A config.json. A keyword lands in the class of settings that has its name, else at the top."""
    made: dict[str, Any] = {
        "identity": {
            "tasks": "code_contests", "revision": "main", "bundle": 5, "model": "a/model", "temperature": 1.0,
            "top_p": 1.0, "max_tokens": 2048, "thinking": "off", "no_comments": False, "system": None,
            "extra_body": None, "particles": 8, "share_round0": False, "seed": 0, "as_published": False,
        },
        "plan": {
            "limit": None, "base_samples": 8, "band": "all", "arms": list(ARMS), "rounds": 3, "noise_runs": 0,
            "full_budget": False, "margin": None, "predict": None, "only_passable": False,
            "seeds": None,
        },
        "free": {}, "versions": {}, "data": {}, "server": {}, "tier": "full", "rules": "", "grades": "attempts",
        "plan_digest": None, "started": 0.0, "ended": 0.0, "price": None, "dry_run": False,
    }  # fmt: skip
    for key, value in changes.items():
        place = next((made[part] for part in ("identity", "plan") if key in made[part]), made)
        assert key in place, f"config.json has no {key}"
        place[key] = value
    return made


def attempt(
    task: str,
    arm: str = "base",
    rerun: int = 0,
    round: int = 0,
    particle: int = 0,
    passed: bool = False,
    **changes: Any,
) -> Attempt:
    """One attempt whose fields agree with each other: five visible tests, four hidden."""
    visible = changes.pop("visible", "PPPPP" if passed else "WWWWW")
    whole = set(visible) == {"P"}
    hidden = changes.pop("hidden", ("PPPP" if passed else "PWWW") if whole else "")
    code = changes.pop("code", f"print({arm!r}, {rerun}, {round}, {particle})\n")
    right = whole and set(hidden) <= {"P"}
    assert passed is right, "the letters and `passed` disagree"
    row: dict[str, Any] = {
        "code": code,
        "reply": f"```python\n{code}```" if code is not None else "no program",
        "finish_reason": "stop",
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "fitness": visible.count("P") / len(visible) if code is not None else 0.0,
        "visible_passed": visible.count("P"),
        "visible_total": len(visible),
        "hidden_passed": hidden.count("P"),
        "hidden_total": 4,
        "passed": right,
        "outcome": "pass" if right else "wrong_answer" if code is not None else "no_code",
        "visible_tests": visible,
        "hidden_tests": hidden,
        "cpu_seconds": 0.25,
        "latency_seconds": 2.0,
        "time": 1000.0,
    } | changes
    return Attempt(task, arm, rerun, round, particle, **row)


def base(task: str, passes: int = 0, group: int = 8, near: bool = False) -> Iterator[Attempt]:
    """A base group of which the first `passes` pass; near: one fails with three of five visible tests passed."""
    for i in range(group):
        visible = "PWPWP" if near and i == group - 1 else "PPPPP" if i < passes else "WWWWW"
        yield attempt(task, particle=i, passed=i < passes, visible=visible)


def play(
    task: str, arm: str, hit: int | None, rerun: int = 0, rounds: int = 3, particles: int = 8, stop: bool = True
) -> Iterator[Attempt]:
    """An arm on a task, whose particle 0 passes in round `hit`."""
    for r in range(rounds):
        for i in range(particles):
            refined = r > 0 and arm != "resample"
            yield attempt(
                task, arm, rerun, r, i, passed=r == hit and i == 0, parent=f"{arm}/{rerun}/0/{i}" if refined else None
            )
        if stop and r == hit:
            return


def names(n: int) -> list[str]:
    return [f"t{i:04}" for i in range(n)]


def hits(tasks: Sequence[str], by_round: Sequence[int]) -> dict[str, int]:
    """Which round rescues which task: the first by_round[0] of them in round 0, the next in round 1, ..."""
    rounds = [r for r, count in enumerate(by_round) for _ in range(count)]
    return dict(zip(tasks, rounds, strict=False))


def lay_out(name: str) -> tuple[list[Attempt], dict[str, Any]]:
    """A published run as attempts, with the config.json it would have had."""
    counts, file = COUNTS[name], published(name)
    tasks = names(counts["n_tasks"])
    given = tasks[: counts["n_arm_tasks"]]
    near = counts["n_arm_tasks"] < counts["n_all_fail"]
    passes = [k for k, count in enumerate(counts["histogram"]) for _ in range(count)]
    attempts = [a for i, task in enumerate(tasks) for a in base(task, passes[i], near=near and task in given)]
    stops: bool | Mapping[str, bool] = counts["stop_at_first"]
    for arm in ARMS:
        this = counts["arms"][arm]
        total = sum(this["rescued_in_round"])
        order = given
        if this["both_with_resample"]:
            both = this["both_with_resample"][0]
            control = sum(counts["arms"]["resample"]["rescued_in_round"])
            order = [*given[:both], *given[control:]]
        hit = hits(order, this["rescued_in_round"])
        assert len(hit) == total
        stop = stops if isinstance(stops, bool) else stops[arm]
        for task in given:
            attempts += play(task, arm, hit.get(task), stop=stop)
    for rerun, count in enumerate(counts["noise_counts"][1:], 1):
        hit = hits(given[rerun:], [count])
        for task in given:
            attempts += play(task, "resample", hit.get(task), rerun)
    return attempts, config(
        tasks=file.get("family", "code_contests"),
        model=file["model"],
        seed=file["seed"],
        max_tokens=file.get("max_tokens", 2048),
        no_comments=file.get("no_comments", False),
        band=file.get("band", "all"),
        noise_runs=len(counts["noise_counts"]) - 1,
    )


def run(
    tasks: Sequence[str],
    rescued: Mapping[str, Mapping[str, int]],
    noise: Sequence[Mapping[str, int]] = (),
    stop: bool = True,
    particles: int = 8,
    rounds: int = 3,
    group: int = 8,
) -> list[Attempt]:
    """A run whose tasks are all all-fail. rescued: arm -> {task: round of its pass}; noise: the same a re-run."""
    attempts = [a for task in tasks for a in base(task, group=group)]
    for arm, hit in rescued.items():
        for task in tasks:
            attempts += play(task, arm, hit.get(task), 0, rounds, particles, stop)
    for rerun, hit in enumerate(noise, 1):
        for task in tasks:
            attempts += play(task, "resample", hit.get(task), rerun, rounds, particles, stop)
    return attempts
