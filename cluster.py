"""Ray: the same run on a cluster. Whole tasks are played on its nodes; this process alone writes the folder.

    python run.py --ray auto ...             on the cluster that this machine is part of (`ray start`)
    python run.py --ray 10.0.0.1:6379 ...    on the one whose head is there

    async with Cluster(args, log, ..., rescue, policy) as cluster:    stands where a grader does: tier, rules, remarks
        async with cluster.sampling(seed, watch) as session:
            await cluster.play(task, session, args, watch)              in place of rescue

A player (commands/player.py) on each node has a client and a grader of its own; --concurrency is divided among them.
It sends home what a local run would append, and here it is appended, so resume, identity, limits and reports are those
of any run. A task that has its attempts on disk goes nowhere. Where a node dies, its tasks begin again on another one,
from what is on disk: what was in flight is lost, and no more. Ctrl-C ends the draws that are under way elsewhere.

Left out: what only grades (commands/graders.py); nodes that join later; Ray's client (ray://).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from arms.known import OWN
from asking.address import default_base_urls
from asking.events import Event
from asking.told import State
from commands.arguments import Args
from commands.console import busy, note
from commands.nodes import begun_on, cause, first_of, joined
from commands.player import Kit, Play, Played, Player, Silent, as_fault
from commands.sampling import Budget, Watch, all_asked, aloud
from commands.settings import Row
from endpoint import Policy, Record
from faults import BadInput, DiskFault, EndpointFault, Fault, GraderFault, LimitReached, gravest
from figures.numbers import plural
from records import ATTEMPTS, EVENTS, OWED, Log
from session import Owing, Session, each
from swarm import Attempt, Slot
from tasksets.task import Task
from tasksets.toy import FakePolicy

if TYPE_CHECKING:
    from ray import ObjectRef as Ref  # what Ray's own objects are: of types that hold it has none

PATIENCE = 10.0  # seconds that a player has to be stopped


@dataclass(eq=False)
class Hand:
    """A player, as it is known here."""

    actor: Ref
    node: str
    tasks: int = 0  # that it plays
    is_alive: bool = True
    open: int = 0  # of the budget's draws begun and not ended, and requests under way: its own
    busy: int = 0
    requests: dict[int, int] = field(default_factory=dict)  # by its numbers those of this run
    hire: Callable[[], None] | None = None  # another one in its place


class Cluster:
    """Players on the nodes of a cluster. BadInput where there is none; GraderFault where no node can play."""

    def __init__(
        self,
        args: Args,
        log: Log,
        budget: Budget,
        model: str,
        play: Play,
        policy: Callable[[Args, Record], Policy | FakePolicy],
    ) -> None:
        if args.rollouts is not None:
            raise BadInput("--ray does not carry rollouts to its nodes: leave --ray or --rollouts out")
        self.args, self.log, self.budget, self._play = args, log, budget, play
        mine = copy.copy(args)
        mine.__dict__.pop("part", None)
        mine.model, mine.stop_after, mine.verbose = model, {}, False
        mine.base_url = args.base_url or (None if args.dry_run else default_base_urls())
        arms = [(name, own.file, own.source) for name, own in OWN.items() if name in args.arms]
        key = os.environ.get("OPENAI_API_KEY", "")
        self._kit = Kit(mine, play, policy, key, arms, args.out, budget.declined, len(log), bool(args.stop_after))
        self._hands: list[Hand] = []
        self._hiring: set[asyncio.Task[Fault | None]] = set()
        self._following: set[asyncio.Task[None]] = set()
        self._came = asyncio.Event()  # another hand, since somebody looked
        self._record = aloud(budget.record)
        self._numbers = itertools.count(1)
        self._state = State()
        self._held: dict[str, list[Slot]] = defaultdict(list)  # by task: what is on disk
        self._owing: dict[Slot, Row] = {}
        self._over: asyncio.Future[Ref] | None = None  # of a run under way; an exception in it ends that
        self.tier = self.rules = ""
        self.remarks: list[str] = []

    # ── the nodes ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        with busy(f"joining the cluster at {self.args.ray}"):
            nodes = joined(str(self.args.ray))[: self.args.concurrency]
            for k, node in enumerate(nodes):
                slots = self.args.concurrency // len(nodes) + (k < self.args.concurrency % len(nodes))
                self._hire(node, slots, is_elsewhere=False)
            faults = await first_of(self._hiring, self.args.workers, lambda: bool(self._hands))
        if not self._hands:
            await self.__aexit__()
            raise gravest(faults)
        some = f"{len(self._hands)} of " if len(self._hands) < len(nodes) else ""
        note(f"{some}{plural(len(nodes), 'node')} play; --concurrency {self.args.concurrency} is divided among them")
        return self

    async def __aexit__(self, *raised: object) -> None:
        import ray

        for hiring in self._hiring:
            hiring.cancel()
        await asyncio.gather(*self._hiring, return_exceptions=True)
        with contextlib.suppress(Exception):  # whatever it finds wrong now, all is on disk
            ray.shutdown()

    def _hire(self, node: Row, slots: int, is_elsewhere: bool) -> None:
        """Start a player on a node, or on whichever has room. It plays as soon as it can."""
        hiring = asyncio.create_task(self._begin(node, slots, is_elsewhere))
        self._hiring.add(hiring)
        hiring.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _begin(self, node: Row, slots: int, is_elsewhere: bool) -> Fault | None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name = str(node["NodeName"])
        where = "SPREAD" if is_elsewhere else NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)

        def hire(cores: int) -> Ref:
            made = ray.remote(Player).options(num_cpus=cores, scheduling_strategy=where, max_concurrency=100_000)
            return made.remote(self._kit, slots, cores)

        there = await begun_on(node, self.args.workers, "play", hire)
        if isinstance(there, Fault):
            return there
        actor, _, begun = there
        if self.tier and (begun.tier, begun.rules) != (self.tier, self.rules):
            note(f"warning: the node {name} grades under tier {begun.tier}, {begun.rules}; others under {self.tier}")
        self.tier, self.rules = self.tier or begun.tier, self.rules or begun.rules
        self.remarks = list(dict.fromkeys([*self.remarks, *begun.remarks]))
        hand = Hand(actor, name, hire=lambda: self._hire(node, slots, is_elsewhere=True))
        self._hands.append(hand)
        self._came.set()
        if self._over is not None:
            self._follow(hand)
        return None

    # ── from start to stop, as commands/sampling.py does it here ─────────────────────────────────────────────────────

    @contextlib.asynccontextmanager
    async def sampling(self, seed: int, watch: Watch) -> AsyncIterator[Session]:
        """A session that reads; what it lacks, `play` has made. On the way out nothing that was paid is lost."""
        log, budget = self.log, self.budget
        for slot in log.slots():
            self._held[slot.task_id].append(slot)
        self._owing = log.owed()
        self._over = asyncio.get_running_loop().create_future()
        self._over.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._watch, watch.state, budget.asked_elsewhere = watch, self._state, True
        session = Session(log, None, seed=seed, room=asyncio.Semaphore(1), watch=watch)
        for hand in self._hands:
            self._follow(hand)
        land: Literal["all", "paid", "nothing"] = "all"
        why: BaseException | None = None
        with watch:
            try:
                yield session
            except BaseException as raised:
                why = raised
                if not isinstance(why, LimitReached):
                    land = "paid" if isinstance(why, EndpointFault) else "nothing"
                raise
            finally:
                try:
                    await self._stop(why if isinstance(why, Fault) else None, land)
                finally:
                    log.rewrite(OWED, list(self._owing.values()))
        all_asked(session)

    async def _stop(self, why: Fault | None, land: Literal["all", "paid", "nothing"]) -> None:
        """Let land what is to land, then end every player. Raises the gravest fault of that, as a session does."""
        import ray

        for hiring in self._hiring:
            hiring.cancel()
        hands = [hand for hand in self._hands if hand.is_alive]

        async def stopped(hand: Hand) -> Fault | None:
            try:
                fault: Fault | None = await hand.actor.stop.remote(why, land)
            except ray.exceptions.RayError:  # it died, and its tasks stay owed
                return None
            return fault

        try:
            patience = PATIENCE if land == "nothing" else None
            ends = await asyncio.wait_for(asyncio.gather(*map(stopped, hands)), patience)
            await asyncio.wait_for(asyncio.gather(*self._following), PATIENCE if hands else 0.1)
        except TimeoutError:
            ends = []
        finally:
            for following in self._following:
                following.cancel()
            await asyncio.gather(*self._following, return_exceptions=True)
            for hand in self._hands:
                ray.kill(hand.actor)
        if faults := [fault for fault in ends if fault]:
            raise gravest(faults)

    async def play(self, task: Task, session: Session, args: Args, watch: Watch) -> None:
        """A task from end to end: from disk where that holds all of it, else on the hand that has least to do."""
        import ray

        if self._held.get(task.id) and await self._is_there(task, session, args, watch):
            return
        assert self._over is not None
        ref = ray.put(task)  # its tests travel once, whoever plays it
        while True:
            hand = await self._free()
            hand.tasks += 1
            held = [vars(attempt) for slot in self._held.get(task.id, ()) if (attempt := self.log.get(slot))]
            owed = [row for slot, row in self._owing.items() if slot.task_id == task.id]
            playing: asyncio.Future[Ref] = asyncio.ensure_future(_result(hand.actor.play.remote(ref, held, owed)))
            try:
                await asyncio.wait((playing, self._over), return_when=asyncio.FIRST_COMPLETED)
                if self._over.done():
                    await self._over
                played: Played = await playing
            except ray.exceptions.RayError as why:
                self._failed(hand, why)
                continue
            finally:
                playing.cancel()
                hand.tasks -= 1
            break
        self._held.pop(task.id, None)
        watch.not_needed(played.spared)
        if played.is_rescued:
            watch.rescued.add(task.id)
        if played.left:
            session.left[task.id] = played.left
        if played.fault:
            raise played.fault

    async def _is_there(self, task: Task, session: Session, args: Args, watch: Watch) -> bool:
        """Whether all of a task is on disk: the walk of a resume, without anybody to ask."""
        silent = Silent()

        async def one(task: Task) -> None:
            await self._play(task, session, args, silent)

        try:
            await each(iter([task]), one, at_once=1)
        except Owing:
            return False
        watch.not_needed(-silent.most)
        watch.rescued |= silent.rescued
        return True

    async def _free(self) -> Hand:
        """The living hand with the fewest tasks; GraderFault where there is none for as long as --give-up-after."""
        until = time.monotonic() + 60 * self.args.give_up_after
        while not (living := [hand for hand in self._hands if hand.is_alive]):
            assert self._over is not None
            if self._over.done():
                await self._over
            if time.monotonic() > until:
                minutes = f"{self.args.give_up_after:g} minutes"
                raise GraderFault(f"no node of the cluster has been left for {minutes}: start one, then run again")
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), 1.0)
        return min(living, key=lambda hand: hand.tasks)

    # ── what a player sends ──────────────────────────────────────────────────────────────────────────────────────────

    def _follow(self, hand: Hand) -> None:
        following = asyncio.create_task(self._hear(hand))
        self._following.add(following)
        following.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _hear(self, hand: Hand) -> None:
        """Write down what it sends, and tell it so, until nothing follows."""
        import ray

        kept, wanted, granted = 0, 0, 0
        while True:
            try:
                news = await hand.actor.take.remote(kept, granted)
            except ray.exceptions.RayError as why:
                return self._failed(hand, why)
            before = self.budget.open, self.budget.busy
            try:
                for name, row in news.lines:
                    self._write(hand, name, row)
                kept, wanted = kept + len(news.lines), wanted + news.wanted
                granted = self._allowed(wanted)
                wanted -= granted
            except Fault as why:
                return self._end(why)  # what is not kept is not acknowledged
            finally:
                hand.open += self.budget.open - before[0]
                hand.busy += self.budget.busy - before[1]
            if news.is_over:
                return

    def _write(self, hand: Hand, name: str, row: Row) -> None:
        if name == EVENTS:
            self._count(hand, row)
        elif name == ATTEMPTS:
            attempt = Attempt(**row)
            self.log.add(attempt)
            self._held[attempt.task_id].append(attempt.slot)
            self._owing.pop(attempt.slot, None)
            self._watch(attempt)
        else:
            self.log.append(name, row)
            self._owing[Slot(*row["slot"])] = row

    def _count(self, hand: Hand, row: Row) -> None:
        """An event of a player, under a number of its own among those of all."""
        event: Event = row  # type: ignore[assignment]
        kind = event["event"]
        if "request" in event:
            own = event["request"]
            if own not in hand.requests:
                hand.requests[own] = next(self._numbers)
            event["request"] = hand.requests[own]
            if kind in ("answered", "refused", "fault"):
                del hand.requests[own]
        if kind == "sent":
            self._state.in_flight += 1
        elif kind in ("answered", "retry", "refused", "fault"):
            self._state.in_flight -= 1
        if kind == "retry":
            self._state.retries += 1
            self._state.last_error = event["error"]
        self._record(event)

    def _allowed(self, wanted: int) -> int:
        """How many of so many draws may be made; a limit ends the run, and lets those land."""
        granted = 0
        assert self._over is not None
        while granted < wanted and not self._over.done():
            try:
                self.budget.allow()
            except LimitReached as why:
                self._end(why)
            else:
                granted += 1
        return granted

    def _end(self, why: Fault) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_exception(why)

    def _failed(self, hand: Hand, why: Exception) -> None:
        """A call of a player failed: it is gone, and another one may come in its place; or its program has a fault."""
        import ray

        if isinstance(why, ray.exceptions.RayTaskError):
            return self._end(as_fault(cause(why)))
        if not hand.is_alive:
            return None
        hand.is_alive = False
        self.budget.open -= hand.open
        self.budget.busy -= hand.busy
        self._state.in_flight -= hand.busy
        words = f"the node {hand.node} is gone: its tasks begin again elsewhere, from what is on disk"
        with contextlib.suppress(DiskFault):  # the next line says so
            self._record({"event": "warned", "url": f"ray {hand.node}", "error": words})
        if self._over is not None and not self._over.done() and hand.hire:
            hand.hire()
        return None


async def _result(ref: Ref) -> Played:
    played: Played = await ref
    return played
