"""A player without a cluster: what it plays is what a local run plays, and nothing is graded before it is kept at home.

It is a plain object, so it is driven here as cluster.py drives it. With Ray: tests/test_cluster.py.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import run
from commands.player import Begun, Kit, Line, News, Played, Player, as_fault
from faults import BadInput, DiskFault, EndpointFault, Fault, GraderFault, LimitReached
from records import ATTEMPTS, EVENTS, OWED, Folder
from swarm import Attempt
from tasks import Task, load
from tests.test_run import go

__all__ = ["go"]  # a fixture
FLAGS = ["--dry-run", "--concurrency", "4", "--base-samples", "2", "--particles", "2", "--rounds", "2"]


def kit(out: Path, metered: bool = False, **changes: Any) -> Kit:
    """As it is on the other side of a wire."""
    args = run.settings(run.flags(), [*FLAGS, "--out", str(out)])
    made = Kit(args, run.rescue, run.policy, "", [], out, set(), 0, metered)._replace(**changes)
    return pickle.loads(pickle.dumps(made))


class Driver:
    """The other side: writes down what comes, and says so, unless it is told not to."""

    def __init__(self, player: Player) -> None:
        self.player, self.lines, self.acknowledges, self.grants, self.wanted = player, list[Line](), True, 10**9, 0

    async def hear(self) -> None:
        kept = granted = 0
        while True:
            news: News = pickle.loads(pickle.dumps(await self.player.take(kept, granted)))
            self.lines += news.lines
            kept += len(news.lines) * self.acknowledges
            self.wanted += news.wanted
            granted = min(self.wanted, self.grants)
            self.wanted -= granted
            self.grants -= granted
            if news.is_over:
                return

    def of(self, name: str) -> list[dict[str, Any]]:
        return [row for file, row in self.lines if file == name]


@asynccontextmanager
async def playing(made: Kit) -> AsyncIterator[tuple[Player, Driver]]:
    player = Player(made, 4, 1)
    begun = await player.begin()
    assert isinstance(begun, Begun) and begun.tier
    driver = Driver(player)
    hearing = asyncio.create_task(driver.hear())
    try:
        yield player, driver
    finally:
        await player.stop(None, "nothing")
        hearing.cancel()


async def played(player: Player, tasks: list[Task], held: Sequence[Any] = (), owed: Sequence[Any] = ()) -> list[Played]:
    of = lambda rows, task, key: [row for row in rows if key(row) == task.id]  # noqa: E731
    return await asyncio.gather(*(
        player.play(task, of(held, task, lambda row: row["task_id"]), of(owed, task, lambda row: row["slot"][0]))
        for task in tasks
    ))  # fmt: skip


def essence(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("time", "cpu_seconds", "latency_seconds")}


@pytest.mark.slow
def test_it_plays_what_a_local_run_plays_and_only_what_is_not_on_disk(go: Any, tmp_path: Path) -> None:
    code, _, err = go(*FLAGS)
    assert code == 0, err
    local = {attempt.slot: vars(attempt) for attempt in Folder(tmp_path / "out").attempts()}

    async def anew() -> None:
        async with playing(kit(tmp_path / "far")) as (player, driver):
            ends = await played(player, list(load("toy")))
            rows = driver.of(ATTEMPTS)
            assert all(end.fault is None and not end.left for end in ends)
            assert {Attempt(**row).slot: essence(row) for row in rows} == {s: essence(row) for s, row in local.items()}
            assert len(driver.of(OWED)) == len(rows) == len(local)
            rescued = {a.task_id for a in (Attempt(**row) for row in rows) if a.passed and a.arm != "base"}
            assert sum(end.is_rescued for end in ends) == len(rescued)
            asked = [event for event in driver.of(EVENTS) if event["event"] == "sent"]
            assert len(asked) == len(local)
            assert sum(end.spared for end in ends) == 3 * run.arm_calls(player.kit.args) - (len(rows) - 6)

    async def gone_on_with() -> None:
        rows = list(local.values())
        paid = rows[5]
        reply = {"text": paid["reply"], "finish_reason": "stop", "prompt_tokens": 1, "completion_tokens": 1}
        slot = list(Attempt(**paid).slot)
        owed = [{"slot": slot, "task_sha": paid["task_sha"], "prompt_sha": paid["prompt_sha"], "reply": reply}]
        held = [row for n, row in enumerate(rows) if n > 8]
        async with playing(kit(tmp_path / "far", there=len(held))) as (player, driver):
            await played(player, list(load("toy")), held, owed)
            made = [Attempt(**row).slot for row in driver.of(ATTEMPTS)]
            assert sorted(made) == sorted(Attempt(**row).slot for row in rows[:9])
            asked = [event["seed"] for event in driver.of(EVENTS) if event["event"] == "sent"]
            assert sorted(asked) == sorted(row["seed"] for row in rows[:9] if row is not paid)

    asyncio.run(anew())
    asyncio.run(gone_on_with())


def test_what_is_paid_is_kept_before_it_is_graded(tmp_path: Path) -> None:
    async def check() -> None:
        async with asyncio.timeout(120), playing(kit(tmp_path / "far")) as (player, driver):
            driver.acknowledges = False
            tasks = asyncio.create_task(played(player, list(load("toy", 1))))
            while len(driver.of(OWED)) < 2:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            assert not driver.of(ATTEMPTS) and not tasks.done()
            assert player._stack and not player.session.worker.grader.grader.counts["graded"]  # type: ignore[union-attr]
            player.home.heard(len(driver.lines), 0)
            while not driver.of(ATTEMPTS):
                await asyncio.sleep(0.01)
            tasks.cancel()

    asyncio.run(check())


@pytest.mark.parametrize("most", [1, 5])
def test_no_draw_is_made_without_leave(tmp_path: Path, most: int) -> None:
    async def check() -> None:
        async with playing(kit(tmp_path / "far", metered=True)) as (player, driver):
            driver.grants = most
            tasks = asyncio.create_task(played(player, list(load("toy"))))
            while len(driver.of(ATTEMPTS)) < most:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            why = LimitReached("calls", most)
            assert await player.stop(why, "all") is None
            await asyncio.sleep(0.1)
            sent = [event for event in driver.of(EVENTS) if event["event"] == "sent"]
            assert len(sent) == len(driver.of(ATTEMPTS)) == most
            tasks.cancel()

    asyncio.run(check())


@pytest.mark.parametrize(("flags", "says"), [
    (["--ray", "auto"], "--ray needs Ray: pip install"),
    (["--ray", "auto", "--rollouts", "ROLLOUTS"], "leave --ray or --rollouts out"),
])  # fmt: skip
def test_what_a_cluster_cannot_be_asked(
    go: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], says: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    rows = [{"task_id": task.id, "n": 8, "passes": 0} for task in load("toy")]
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = go(
        "--dry-run", *(str(tmp_path / "rollouts.jsonl") if word == "ROLLOUTS" else word for word in flags)
    )
    assert code == 2 and says in err and "Traceback" not in err
    assert not (tmp_path / "out" / ATTEMPTS).exists()


FAULTS: list[Fault] = [EndpointFault("quota", "is used up: raise it"), LimitReached("tokens", 1e6), GraderFault("g"),
                       DiskFault("d"), BadInput("b")]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_crosses_with_its_kind_and_its_line(fault: Fault, tmp_path: Path) -> None:
    there = pickle.loads(pickle.dumps(fault))
    assert type(there) is type(fault) and str(there) == str(fault) and vars(there) == vars(fault)
    assert as_fault(fault) is fault


@pytest.mark.slow
def test_what_fails_on_a_node_is_one_line(tmp_path: Path) -> None:
    async def raising(*_: object) -> None:
        raise ValueError("a\nb" + "x" * 1000)

    async def check(change: Callable[[Kit], Kit], says: str) -> None:
        player = Player(change(kit(tmp_path / "far")), 4, 1)
        begun = await player.begin()
        if isinstance(begun, Begun):
            hearing = asyncio.create_task(Driver(player).hear())
            [end] = await played(player, list(load("toy", 1)))
            begun = end.fault or begun
            await player.stop(None, "nothing")
            await hearing
        assert isinstance(begun, GraderFault | BadInput), begun
        assert says in str(begun) and "\n" not in str(begun) and len(str(begun)) < 500

    asyncio.run(check(lambda made: made._replace(play=raising), "a node of the cluster failed (ValueError: bxxx"))
    arm = ("mine", "mine.py", b"def mine(seat): return 1")
    made = kit(tmp_path / "far", arms=[arm])
    made.args.arms = ["mine"]
    asyncio.run(check(lambda _: made, "the arm mine of mine.py gave 1: give a Prompt"))
