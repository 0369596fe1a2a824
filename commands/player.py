"""A player: the half of a cluster that plays tasks, on a node, with a client and a grader of its own.

    player = Player(kit, slots, workers)     made by cluster.py as an actor of Ray; without Ray it is a plain object
    begun = await player.begin()             what its grader is, or why it cannot begin
    played = await player.play(task, ...)    one task from end to end; what it makes leaves by `take` meanwhile
    news = await player.take(kept, granted)  what is to be written down, once there is something
    fault = await player.stop(why)           let land what a local run would, then close

It runs the session of any run, over a folder that is not here: `Home` answers what was on disk when a task came, and
sends home each line that it is given. A reply is written down at home before its grading begins, as it is locally, so
that a node that dies loses nothing that was paid but what was in flight. A fault is a value, with its kind and line.

Left out: everything that is Ray's (cluster.py); limits, which are held at home.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from arms import known
from asking.events import Event
from commands.arguments import Args
from commands.sampling import Budget, Watch, sampling
from commands.settings import Row
from endpoint import Policy, Record, Reply
from faults import EndpointFault, Fault, GraderFault, LimitReached
from grading.grade import Grade
from records import ATTEMPTS, Log
from session import Draws, Grades, Session, Worker, each
from swarm import Attempt, Slot
from tasksets.task import Task
from tasksets.toy import FakePolicy

GATHER = 0.1  # seconds that lines are gathered before they are sent home together: one call for many

Line = tuple[str, Row]  # the name of a file, and what is to be appended to it
Play = Callable[[Task, Session, Args, Watch], Coroutine[object, object, None]]  # a task from end to end


class Kit(NamedTuple):
    """What every player of a run is given."""

    args: Args
    play: Play
    policy: Callable[[Args, Record], Policy | FakePolicy]
    key: str  # of the endpoint
    arms: list[tuple[str, str, bytes]]  # of files of the user's: name, file, source
    path: Path  # of the folder at home, for what is said of it
    declined: set[str]  # prompts that were refused in earlier starts
    there: int  # attempts that the folder held then
    metered: bool  # a limit is to be held: each draw waits for leave from home


class Begun(NamedTuple):
    tier: str
    rules: str
    remarks: list[str]


class News(NamedTuple):
    lines: list[Line]
    wanted: int  # draws that ask for leave, since the last time
    is_over: bool  # nothing follows


class Played(NamedTuple):
    """What became of a task beside its attempts."""

    fault: Fault | None
    left: str  # why an attempt stays owed; empty where none does
    is_rescued: bool
    spared: int  # attempts of the largest number that need not be made


# ── the folder that is not here ──────────────────────────────────────────────────────────────────────────────────────


class Home(Log):
    """A run folder at the other end of a wire, as a session needs it."""

    def __init__(self, path: Path, declined: set[str], there: int) -> None:
        super().__init__(path)
        self.declined, self.there = declined, there
        self.stirred = asyncio.Event()  # there is something to send
        self._attempts: dict[str, dict[Slot, Attempt]] = {}  # by task: those at hand
        self._owing: dict[Slot, Row] = {}
        self._lines: list[Line] = []
        self._sent = self._kept = 0  # lines, since the start
        self._until: list[tuple[int, asyncio.Future[None]]] = []
        self._wanting: list[asyncio.Future[None]] = []
        self._wanted = 0  # of those, not yet told at home
        self._no_more: Fault | None = None  # leave is given to nobody

    # what a session asks of a folder
    def get(self, slot: Slot) -> Attempt | None:
        return self._attempts.get(slot.task_id, {}).get(slot)

    def append(self, name: str, row: Row) -> tuple[int, int]:
        self._lines.append((name, row))
        self.stirred.set()
        return 0, 0

    def add(self, attempt: Attempt) -> None:
        self._attempts.setdefault(attempt.task_id, {})[attempt.slot] = attempt
        self.append(ATTEMPTS, vars(attempt))

    def owed(self) -> dict[Slot, Row]:
        return self._owing  # the session takes from it what it uses, and tasks that come later add to it

    def rewrite(self, name: str, rows: list[Row]) -> None:
        """At home it is known what is owed."""

    def events(self) -> Iterator[Event]:
        """As much as tells which prompts were refused."""
        for sha in self.declined:
            yield {"event": "declined", "prompt_sha": sha}
        yield {"event": "answered"}

    def __len__(self) -> int:
        return self.there + bool(self._attempts)

    # what the player does with it
    def take_in(self, task_id: str, held: Iterable[Row], owed: Iterable[Row]) -> None:
        self._attempts[task_id] = {attempt.slot: attempt for attempt in (Attempt(**row) for row in held)}
        self._owing |= {Slot(*row["slot"]): row for row in owed}

    def forget(self, task_id: str) -> None:
        del self._attempts[task_id]
        for slot in [slot for slot in self._owing if slot.task_id == task_id]:
            del self._owing[slot]

    async def kept(self) -> None:
        """Once all that was given so far is on disk at home."""
        due = self._sent + len(self._lines)
        if due > self._kept:
            waiting = asyncio.get_running_loop().create_future()
            self._until.append((due, waiting))
            await waiting

    async def leave(self) -> None:
        """Once a draw may be made. Raises what has ended the run."""
        if self._no_more:
            raise self._no_more
        waiting = asyncio.get_running_loop().create_future()
        self._wanting.append(waiting)
        self._wanted += 1
        self.stirred.set()
        await waiting

    def heard(self, kept: int, granted: int) -> None:
        """So many lines are on disk at home, and so many more draws may be made."""
        self._kept = max(kept, self._kept)
        ready = [waiting for due, waiting in self._until if due <= kept]
        self._until = [(due, waiting) for due, waiting in self._until if due > kept]
        ready += self._wanting[:granted]
        del self._wanting[:granted]
        for waiting in ready:
            if not waiting.done():
                waiting.set_result(None)

    def refuse(self, why: Fault) -> None:
        self._no_more = why
        for waiting in self._wanting:
            if not waiting.done():
                waiting.set_exception(why)
        self._wanting.clear()

    def news(self, is_over: bool) -> News:
        lines, self._lines = self._lines, []
        wanted, self._wanted = self._wanted, 0
        self._sent += len(lines)
        if not is_over:
            self.stirred.clear()
        return News(lines, wanted, is_over)


class Silent(Watch):
    """Counts, and says nothing: the bar is at home."""

    def __init__(self) -> None:
        super().__init__(0)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *raised: object) -> None: ...

    def step(self) -> None: ...


class Metered:
    """A policy whose every draw waits for leave, when its turn has come and not before."""

    def __init__(self, policy: Draws, home: Home, slots: int) -> None:
        self.policy, self.home, self.slots = policy, home, asyncio.Semaphore(slots)

    async def draw(self, messages: list[dict[str, str]], seed: int) -> Reply:
        async with self.slots:
            await self.home.leave()
            return await self.policy.draw(messages, seed)


class Patient:
    """A grader that begins when what was paid is kept."""

    def __init__(self, grader: Grades, home: Home, counts: dict[str, int]) -> None:
        self.grader, self.home, self.counts = grader, home, counts

    async def grade(self, reply: str, task: Task) -> Grade:
        await self.home.kept()
        return await self.grader.grade(reply, task)


# ── the player ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Player:
    """slots: its share of --concurrency; workers: grader processes, None for one a core."""

    def __init__(self, kit: Kit, slots: int, workers: int | None) -> None:
        self.kit, self.workers = kit, workers
        kit.args.concurrency = slots
        self._stack = contextlib.AsyncExitStack()
        self._playing: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def begin(self) -> Begun | Fault:
        """Client, probe and grader, as in any start."""
        from grader import Grader

        kit, args = self.kit, self.kit.args
        self.home = Home(kit.path, kit.declined, kit.there)
        try:
            for name, file, source in kit.arms:
                known.take(name, file, source)
            budget = Budget(args, self.home)
            os.environ["OPENAI_API_KEY"] = kit.key
            try:
                policy = kit.policy(args, budget.record)
            finally:
                del os.environ["OPENAI_API_KEY"]  # no program that is graded has any business with it
            await self._stack.enter_async_context(policy)
            await policy.probe()  # this node reaches the endpoint, and learns what it takes
            if isinstance(policy, Policy):
                policy.known_refusals = len(kit.declined)
            made = Grader(workers=self.workers, as_published=args.as_published)
            grader = await self._stack.enter_async_context(made)
            worker = Worker(Metered(policy, self.home, args.concurrency) if kit.metered else policy,
                            Patient(grader, self.home, grader.counts))  # fmt: skip
            over = sampling(self.home, worker, args.seed, budget, Silent())
            self.session = await self._stack.enter_async_context(over)
        except Exception as why:
            await self._stack.aclose()
            return as_fault(why)
        return Begun(grader.tier, grader.rules, grader.remarks)

    async def play(self, task: Task, held: list[Row], owed: list[Row]) -> Played:
        """held, owed: what is on disk of this task."""
        self.home.take_in(task.id, held, owed)
        watch, fault = Silent(), None

        async def one(task: Task) -> None:
            await self.kit.play(task, self.session, self.kit.args, watch)

        playing = asyncio.create_task(each(iter([task]), one, at_once=1))
        self._playing.add(playing)
        try:
            await playing
            await self.home.kept()
        except Exception as why:
            fault = as_fault(why)
        finally:
            self._playing.discard(playing)
        if not self._is_over:
            self.home.forget(task.id)
        return Played(fault, self.session.left.get(task.id, ""), task.id in watch.rescued, -watch.most)

    async def take(self, kept: int, granted: int) -> News:
        self.home.heard(kept, granted)
        await self.home.stirred.wait()
        if not self._is_over:
            await asyncio.sleep(GATHER)
        return self.home.news(self._is_over)

    async def stop(self, why: Fault | None, land: Literal["all", "paid", "nothing"]) -> Fault | None:
        """Close. A limit lets all in flight land, a dead endpoint what is paid: `take` goes on until all of it is home.
        Back comes what went wrong on the way."""
        end = why or GraderFault("this player is being stopped")
        self.home.refuse(end)
        for playing in self._playing:
            playing.cancel()
        raised: dict[str, BaseException | None] = {"all": why and LimitReached("", 0), "paid": EndpointFault("", "")}
        error = raised.get(land, end)
        try:
            await self._stack.__aexit__(type(error) if error else None, error, None)
        except Exception as found:
            return None if isinstance(found, EndpointFault | LimitReached) else as_fault(found)
        finally:
            self._is_over = True
            self.home.stirred.set()
        return None


def as_fault(why: BaseException) -> Fault:
    """As it is told at home: a fault as it is, anything else as the machine's, in one line."""
    if isinstance(why, Fault):
        return why
    told = str(why).strip().splitlines() or [""]  # of a program that could not even start the last line says it
    line = " ".join(f"{type(why).__name__}: {told[-1]}".split())[:300]
    return GraderFault(f"a node of the cluster failed ({line}): the same command goes on; without --ray it runs here")
