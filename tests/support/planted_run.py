"""A made-up run folder of any size that looks like a real one: the real arms ask, a planted policy answers.

Every task has an ease, so passes of the base group are spread as in the published run; a refined program keeps most
lines of its parent and drifts up in fitness. Nothing is executed: letters are drawn. Used by the tests of the page and
by bench/report.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import records
from swarm import ARMS, PLAIN, Attempt, Prompt, Slot, resample, swarm
from tasksets.task import Task, Test, card

WORDS = "left right total count best node edge prefix suffix index value limit answer current queue stack".split()
PROSE = (
    "given an array of integers find how many pairs satisfy the condition that their sum is divisible by the "
    "number of operations performed before the robot reaches the last cell of the grid along a shortest path"
).split()
FAILURES = ["W"] * 14 + ["R"] * 4 + ["T"] * 3 + ["M"]


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(PROSE) for _ in range(words)).capitalize() + "."


def make_tasks(n: int, rng: random.Random) -> Iterator[Task]:
    for i in range(n):
        rating = rng.choice(range(800, 3500, 100))
        statement = "\n\n".join(sentence(rng, 60) for _ in range(4))
        tests = [Test(f"{rng.randrange(9)} {rng.randrange(99)}\n", f"{rng.randrange(999)}\n") for _ in range(40)]
        yield Task(
            id=f"{1500 + i}_{'ABCDEF'[i % 6]}",
            title=f"{1500 + i}_{'ABCDEF'[i % 6]}. {rng.choice(WORDS).title()} and {rng.choice(WORDS).title()}",
            statement=statement,
            kind="stdio",
            visible=tuple(tests[:10]),
            hidden=tuple(tests[10:]),
            tags={"rating": str(rating), "split": rng.choice(["test", "valid"])},
        )


def line(rng: random.Random) -> str:
    a, b, c = (rng.choice(WORDS) for _ in range(3))
    return rng.choice(
        [
            f"{a} = {b} + {rng.randrange(100)}",
            f"for {a} in range({b}):",
            f"    if {a} > {b}: {c} = max({c}, {a})",
            f"    {a}.append(({b}, {c} - {rng.randrange(10)}))  # {b} before {c}",
            f"print({a} * {b} % {rng.randrange(2, 10**9)})",
        ]
    )


def write_program(rng: random.Random, old: str | None) -> str:
    """About 1.2 kB; a refined one keeps four lines in five."""
    if old is None:
        return "import sys\n\n" + "\n".join(line(rng) for _ in range(38)) + "\n"
    return "\n".join(text if rng.random() < 0.8 else line(rng) for text in old.splitlines()) + "\n"


class Planted:
    """Answers a round of one task."""

    def __init__(self, task: Task, ease: float, lift: float, rng: random.Random) -> None:
        self.task, self.ease, self.lift, self.rng = task, ease, lift, rng
        self.seen: dict[str, Attempt] = {}
        self.clock = 1_780_000_000.0

    def answer(self, slot: Slot, prompt: Prompt) -> Attempt:
        rng, task = self.rng, self.task
        parent = self.seen.get(prompt.parent.within_task()) if prompt.parent else None
        social = self.seen.get(prompt.social.within_task()) if prompt.social else None
        passed = rng.random() < self.ease * (1 + self.lift * bool(parent))
        shown = passed or rng.random() < 0.01 + 0.06 * bool(parent) + 0.08 * bool(social)
        code: str | None = write_program(rng, parent.code if parent else None)
        if rng.random() < 0.02:
            code = None
        visible, hidden, got, outcome = "N" * len(task.visible), "", "no_code", "no_code"
        if code is not None:
            best = max((a.fitness for a in (parent, social) if a), default=0.0)
            chance = 1.0 if shown else min(0.9, max(0.0, rng.gauss(0.5 * best + 0.03, 0.12)))
            visible = "".join("P" if rng.random() < chance else rng.choice(FAILURES) for _ in task.visible)
            got, outcome = "", "pass"
            if set(visible) == {"P"}:
                passed = passed or rng.random() < self.ease
                miss = 0.0 if passed else rng.uniform(0.1, 0.9)
                hidden = "".join("W" if rng.random() < miss else "P" for _ in task.hidden)
                hidden = hidden if passed or "W" in hidden else "W" + hidden[1:]
            passed = set(visible) == {"P"} and set(hidden) == {"P"}
            failed = next((letter for letter in visible + hidden if letter != "P"), None)
            if failed:
                outcome = {"W": "wrong_answer", "R": "runtime_error", "T": "timeout", "M": "memory_limit"}[failed]
                got = f"{rng.randrange(999)}\n" if failed == "W" else outcome
        else:
            passed = False
        fence = f"```python\n{code}```" if code is not None else "I would begin with a greedy argument."
        self.clock += 0.11
        attempt = Attempt(
            *slot,
            seed=slot.seed(0),
            task_sha=task.digest,
            prompt_sha=prompt.sha(),
            parent=prompt.parent.within_task() if prompt.parent else None,
            social=prompt.social.within_task() if prompt.social else None,
            reply=f"{sentence(rng, 30)}\n\n{fence}",
            code=code,
            finish_reason="length" if code is None else "stop",
            prompt_tokens=len(prompt.messages[-1]["content"]) // 4,
            completion_tokens=400 + rng.randrange(500),
            fitness=visible.count("P") / len(visible),
            visible_passed=visible.count("P"),
            visible_total=len(visible),
            hidden_passed=hidden.count("P"),
            hidden_total=len(task.hidden),
            passed=passed,
            outcome=outcome,
            visible_tests=visible,
            hidden_tests=hidden,
            got=got,
            cpu_seconds=round(rng.uniform(0.2, 3), 3),
            latency_seconds=round(rng.uniform(2, 20), 3),
            time=round(self.clock, 3),
        )
        self.seen[slot.within_task()] = attempt
        return attempt

    def play(self, arm: str, n: int, rounds: int, rerun: int = 0) -> Iterator[Attempt]:
        rule = ARMS.get(arm, resample)
        flow = swarm(self.task.shown(), rule, arm, n, rounds, rerun=rerun, style=PLAIN)
        answers: Any = None
        try:
            while True:
                answers = [self.answer(*ask) for ask in flow.send(answers)]
                yield from answers
        except StopIteration:
            return


def make(folder: Path, n_tasks: int = 275, noise_runs: int = 0, seed: int = 0, lift: float = 0.3) -> None:
    """Write config.json, tasks.jsonl, attempts.jsonl and events.jsonl of a run over `n_tasks` tasks."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    plan = {
        "limit": None, "base_samples": 8, "band": "all", "arms": list(ARMS), "rounds": 3, "noise_runs": noise_runs,
        "full_budget": False, "margin": None,
    }  # fmt: skip
    identity = {
        "tasks": "code_contests", "revision": "main", "bundle": 5, "model": "planted/model", "temperature": 1.0,
        "top_p": 1.0, "max_tokens": 2048, "thinking": "off", "no_comments": False, "system": None, "extra_body": None,
        "particles": 8, "share_round0": False, "seed": seed, "as_published": False,
    }  # fmt: skip
    config = {
        "identity": identity, "plan": plan, "free": {"concurrency": 64}, "versions": {"python": "3.11"},
        "data": {"source": "planted", "revision": "main", "licence": "none", "tasks": n_tasks, "left_out": {}},
        "server": {}, "tier": "full", "rules": "planted", "grades": "attempts", "plan_digest": None,
        "started": 1_780_000_000.0, "ended": 1_780_010_000.0, "price": None, "dry_run": False,
    }  # fmt: skip
    tasks = list(make_tasks(n_tasks, rng))
    request = 0
    with (
        (folder / "tasks.jsonl").open("w") as cards,
        (folder / "attempts.jsonl").open("w") as attempts,
        (folder / "events.jsonl").open("w") as events,
    ):

        def put(file: Any, row: dict[str, Any]) -> None:
            file.write(records.dumps(row) + "\n")

        put(events, {"event": "start", "time": config["started"]})
        for task in tasks:
            put(cards, card(task))
            hard = rng.random() < 0.8
            ease = rng.choice([0, 0, 0, 0.002, 0.01]) if hard else rng.betavariate(0.7, 1)
            policy = Planted(task, ease, lift, rng)
            made = list(policy.play("base", 8, 1))
            if not any(attempt.passed for attempt in made):
                for arm in ARMS:
                    made += policy.play(arm, 8, 3)
                for rerun in range(1, noise_runs + 1):
                    made += policy.play("resample", 8, 3, rerun)
            for attempt in made:
                request += 1
                put(attempts, asdict(attempt))
                put(
                    events,
                    {"event": "sent", "request": request, "seed": attempt.seed, "tries": 1, "time": attempt.time},
                )
        put(events, {"event": "end", "code": 0, "time": config["ended"]})
    (folder / "config.json").write_text(records.dumps(config, indent=1))
