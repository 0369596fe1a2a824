"""Where an attempt is born.

`Worker.answer` draws a reply and grades it: the unit of work, and the seam for many machines. `Session.ask` is the
one way an attempt comes into being: it is taken from disk where the folder holds it under the same prompt, awaited
where it is in flight, and made otherwise. `Session.play` drives a swarm to its end; a resume is the same walk,
answered from disk.

All tasks, arms and re-runs are in flight together, bounded three times over: tasks (their tests are in memory),
requests (the slots of the endpoint), and replies drawn but not yet graded. Faults and limits stop a run, and never
become grades.

Left out: what is asked (swarm.py), how a server is spoken to (endpoint.py), what a program is worth (grader.py),
limits and stops (commands/shared.py).
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Literal, NamedTuple, Protocol

from asking.events import told_apart
from commands.settings import Row
from endpoint import Reply
from faults import BadInput, EndpointFault, LimitReached, RecordsError, gravest
from grading.grade import LETTERS, UNANSWERED, Grade
from records import EVENTS, OWED, Log
from swarm import Attempt, Flow, Prompt, Slot
from tasksets.task import Task

LONG = 5000  # lines of owed.jsonl, some 20 MB, after which it is written anew


class Owing(Exception):
    """An attempt is not on disk, and nobody is there to make it."""


# ── the unit of work ─────────────────────────────────────────────────────────────────────────────────────────────────


class Draws(Protocol):
    """endpoint.Policy, or the fake policy of a dry run."""

    async def draw(self, messages: list[dict[str, str]], seed: int) -> Reply: ...


class Grades(Protocol):
    """grader.Grader, or what stands in its place for SQL and for a judge."""

    async def grade(self, reply: str, task: Task) -> Grade: ...


class Worker(NamedTuple):
    """A policy and a grader, side by side."""

    policy: Draws
    grader: Grades

    async def answer(
        self,
        task: Task,
        messages: list[dict[str, str]],
        seed: int,
        paid: Reply | None = None,
        keep: Callable[[Reply], None] = lambda reply: None,
    ) -> tuple[Reply, Grade]:
        """Draw and grade. `paid` is a reply from an earlier start; `keep` is told of a reply before it is graded."""
        reply = paid or await self.policy.draw(messages, seed)
        if reply.finish_reason in UNANSWERED:
            outcome = reply.finish_reason
            return reply, Grade(None, 0.0, False, outcome, LETTERS[outcome] * len(task.visible), got=outcome)
        keep(reply)
        return reply, await self.grader.grade(reply.text, task)


# ── the only way an attempt comes into being ─────────────────────────────────────────────────────────────────────────


class Session:
    """Attempts by slot: from disk, in flight, or made now. Without a worker it only reads, and raises Owing."""

    def __init__(
        self, log: Log, worker: Worker | None, *, seed: int, room: asyncio.Semaphore, watch: Callable[[Attempt], None]
    ) -> None:
        self.log, self.worker, self.seed, self.watch = log, worker, seed, watch
        self._room = room  # for requests in flight and replies that wait for their grade, together
        self._flying: dict[Slot, asyncio.Task[Attempt]] = {}
        self._asked: dict[Slot, str] = {}  # the prompt of each slot in flight, as its sha
        self._in_hand: dict[Slot, Row] = {}  # paid, not yet graded
        self._drawing: set[Slot] = set()
        self._owed = log.owed()
        self._journal = 0  # lines of owed.jsonl since it held nothing but what is owed
        self.left: dict[str, str] = {}  # tasks of which a slot was left owed, and why: the server refuses this prompt

    async def ask(self, task: Task, slot: Slot, prompt: Prompt) -> Attempt:
        """The attempt of a slot. RecordsError where the folder holds it under another prompt or task."""
        if slot not in self._flying:
            if attempt := self.log.get(slot):
                self._same(task, slot, prompt, attempt.task_sha, attempt.prompt_sha)
                return attempt
            if self.worker is None:
                raise Owing
            flight = asyncio.create_task(self._make(self.worker, task, slot, prompt))
            flight.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._flying[slot], self._asked[slot] = flight, prompt.sha()
        elif self._asked[slot] != prompt.sha():
            raise BadInput(f"--share-round0: an arm begins with another prompt than {slot.arm}'s; leave it out")
        return await asyncio.shield(self._flying[slot])  # others may wait for it too, and a limit lets it land

    def _same(self, task: Task, slot: Slot, prompt: Prompt, task_sha: str, prompt_sha: str) -> None:
        if (task_sha, prompt_sha) != (task.digest, prompt.sha()):
            what = "task" if task_sha != task.digest else "prompt"
            raise RecordsError(
                f"{self.log.path} holds {slot.within_task()} of {slot.task_id} under another {what}, so its reply "
                f"is no answer to this one: {self.log.instead}"
            )

    async def _make(self, worker: Worker, task: Task, slot: Slot, prompt: Prompt) -> Attempt:
        def keep(reply: Reply) -> None:
            self._drawing.discard(slot)
            shas = {"task_sha": task.digest, "prompt_sha": prompt.sha()}
            self._in_hand[slot] = {"slot": list(slot), **shas, "reply": reply._asdict()}
            if paid is None:  # what is paid is on disk before it waits for its grade
                self.log.append(OWED, self._in_hand[slot])
                self._journal += 1
                if self._journal >= LONG:  # of which most is filed by now
                    self._keep_owed()

        try:
            paid = None
            if row := self._owed.pop(slot, None):
                self._in_hand[slot] = row
                self._same(task, slot, prompt, row["task_sha"], row["prompt_sha"])
                paid = Reply(**row["reply"])
            async with self._room:
                seed = slot.seed(self.seed)
                self._drawing.add(slot)
                try:
                    reply, grade = await worker.answer(task, prompt.messages, seed, paid, keep)
                except EndpointFault as why:
                    if why.kind != "refused" or not self._is_final(prompt, why):
                        raise
                    reply, grade = await worker.answer(task, [], seed, Reply("", "refused", None, None))
            attempt = _attempt(task, slot, prompt, seed, reply, grade)
            self.log.add(attempt)
            self._in_hand.pop(slot, None)
            self.watch(attempt)
            return attempt
        finally:
            self._drawing.discard(slot)
            del self._flying[slot], self._asked[slot]

    @functools.cached_property
    def _declined(self) -> set[str]:
        """The prompts that were refused in earlier starts: read at the first refusal of this one."""
        return told_apart(self.log.events())

    def _is_final(self, prompt: Prompt, why: EndpointFault) -> bool:
        """Whether a refusal is the last word on a prompt: an earlier start refused it as well, and answered others."""
        is_final = prompt.sha() in self._declined and len(self.log) > 0
        self.log.append(EVENTS, {"event": "declined", "prompt_sha": prompt.sha(), "error": str(why)})
        return is_final

    def missing(self, slots: int) -> str:
        """What a free slot waits for: the end of a pause before a retry, the grader, or something to ask."""
        drawing = len(self._drawing)
        return "retrying" if drawing >= slots else "grading" if len(self._in_hand) >= slots - drawing else "work"

    async def play(self, task: Task, flow: Flow) -> list[Attempt]:
        """Drive one swarm to its end: all its attempts, round by round; fewer where one had to be left owed."""
        seen: list[Attempt] = []
        try:
            asks = next(flow)
            while True:
                answers = await asyncio.gather(*(self.ask(task, *ask) for ask in asks))
                seen += answers
                asks = flow.send(answers)
        except StopIteration:
            return seen
        except EndpointFault as why:
            if why.kind not in ("attempt", "refused"):
                raise
            self.left[task.id] = str(why)
            return seen

    async def close(self, land: Literal["all", "paid", "nothing"]) -> None:
        """End what is in flight: let it land, or drop it. Replies in hand go to owed.jsonl, to be used first.

        Raises the gravest fault of what landed, other than the endpoint's.
        """
        flights = dict(self._flying)
        for slot, flight in flights.items():
            if land == "nothing" or (land == "paid" and slot not in self._in_hand):
                flight.cancel()
        ends = await asyncio.gather(*flights.values(), return_exceptions=True)
        self._keep_owed()
        faults = [why for why in ends if isinstance(why, Exception)]
        if faults and not isinstance(why := gravest(faults), LimitReached | EndpointFault):
            raise why

    def _keep_owed(self) -> None:
        """Leave in owed.jsonl what is owed: else it would hold every reply of a start, and be as long as the log."""
        self.log.rewrite(OWED, [*self._in_hand.values(), *self._owed.values()])
        self._journal = 0


def _attempt(task: Task, slot: Slot, prompt: Prompt, seed: int, reply: Reply, grade: Grade) -> Attempt:
    passes = LETTERS["pass"]
    return Attempt(
        *slot,
        seed=seed,
        task_sha=task.digest,
        prompt_sha=prompt.sha(),
        parent=prompt.parent and prompt.parent.within_task(),
        social=prompt.social and prompt.social.within_task(),
        reply=reply.text,
        reasoning=reply.reasoning,
        code=grade.code,
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        fitness=grade.fitness,
        visible_passed=grade.visible.count(passes),
        visible_total=len(task.visible),
        hidden_passed=grade.hidden.count(passes),
        hidden_total=len(task.hidden),
        passed=grade.passed,
        outcome=grade.outcome,
        error=grade.error,
        error_line=grade.error_line,
        visible_tests=grade.visible,
        hidden_tests=grade.hidden,
        got=grade.got,
        got_start=grade.got_start,
        cpu_seconds=round(grade.cpu_seconds, 6),
        latency_seconds=round(reply.latency_seconds, 3),
        tries=reply.tries,
        time=round(time.time(), 3),
    )


# ── driving many tasks ──────────────────────────────────────────────────────────────────────────────


def _leaves(why: BaseException) -> list[BaseException]:
    if isinstance(why, BaseExceptionGroup):
        return [leaf for part in why.exceptions for leaf in _leaves(part)]
    return [why]


async def each(tasks: Iterator[Task], do: Callable[[Task], Coroutine[object, object, None]], at_once: int) -> None:
    """Do something to every task, so many at once. An exception ends it, of several the gravest; tasks are read off the
    event loop."""
    room, reading = asyncio.Semaphore(at_once), asyncio.Lock()

    async def following() -> Task | None:
        async with reading:
            return await asyncio.to_thread(next, tasks, None)

    try:
        async with asyncio.TaskGroup() as group:
            while await room.acquire() and (task := await asyncio.shield(following())):
                group.create_task(do(task)).add_done_callback(lambda done: room.release())
    except BaseExceptionGroup as several:
        raise gravest(_leaves(several)) from None
    finally:
        async with reading:  # a thread may be in the middle of a task
            if hasattr(tasks, "close"):
                tasks.close()
