"""Where an attempt is born, and what the commands that sample have in common.

`Worker.answer` draws a reply and grades it: the unit of work, and the seam for many machines. `Session.ask` is the
one way an attempt comes into being: it is taken from disk where the folder holds it under the same prompt, awaited
where it is in flight, and made otherwise. `Session.play` drives a swarm to its end; a resume is the same walk,
answered from disk.

All tasks, arms and re-runs are in flight together, bounded three times over: tasks (their tests are in memory),
requests (the slots of the endpoint), and replies drawn but not yet graded. Faults and limits stop a run, and never
become grades.

Left out: what is asked (swarm.py), how a server is spoken to (endpoint.py), what a program is worth (grader.py).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from endpoint import EndpointFault, Policy, Reply, default_base_urls
from flags import BAD_INPUT, BadInput
from records import EVENTS, OWED, DiskFault, Log, RecordsError, dumps
from swarm import Attempt, Flow, Prompt, Slot
from tasks import LETTERS, Task, TaskError

if TYPE_CHECKING:  # imported where it is used, so that telling can do without
    from grader import Grade

VERSION = "0.1.0"
DONE, LIMIT, ENDPOINT, GRADER, INTERRUPTED = 0, 3, 4, 5, 130  # exit codes, beside flags.BAD_INPUT


class LimitReached(Exception):
    """--stop-after: everything is saved, and something is left to ask."""


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
        keep(reply)
        if reply.finish_reason == "context_overflow":
            from grader import Grade

            letters = LETTERS["context_overflow"] * len(task.visible)
            return reply, Grade(None, 0.0, False, "context_overflow", letters, got="context_overflow")
        return reply, await self.grader.grade(reply.text, task)


class Budget:
    """What requests cost, and how full the slots were: told by every event of the policy, before it is written down.

    --stop-after is held here. Calls, tokens and usd count from the folder's events, over all starts.
    """

    def __init__(self, a: argparse.Namespace, log: Log) -> None:
        self.log, self.limits, self.price, self.verbose = (
            log,
            a.stop_after,
            a.price or (0.0, 0.0),
            getattr(a, "verbose", False),
        )
        self.spent = dict.fromkeys(("calls", "tokens", "usd"), 0.0)
        self.slots, self.busy, self.open = a.concurrency, 0, 0  # requests at the server; draws begun and not ended
        self.slot_seconds = dict.fromkeys(("busy", "retrying", "grading", "work"), 0.0)  # idle ones by what was missing
        self.missing: Callable[[], str] = lambda: "work"
        self._start = self._since = time.monotonic()
        for event in log.events():
            self._pay(event)

    def record(self, event: dict[str, Any]) -> None:
        """The policy's log. LimitReached before a first request that is one too many."""
        name = event["event"]
        if name == "probe" and event["completion_tokens"] is None and {"tokens", "usd"} & set(self.limits):
            raise BadInput("the server counts no tokens, so --stop-after cannot hold tokens= or usd=: use calls=")
        self.clock()
        if name == "sent":
            if event["tries"] == 1:
                self._allow()
                self.open += 1
            self.busy += 1
        elif name in ("answered", "retry", "refused", "fault"):
            self.busy -= 1
            self.open -= name != "retry"
        self._pay(event)
        self.log.append(EVENTS, {**event, "time": round(time.time(), 3)})
        if self.verbose:
            note(dumps(event))

    def begin(self, missing: Callable[[], str]) -> None:
        """Sampling begins: slots count from here. missing: what a free one waits for."""
        self.missing, self._since = missing, time.monotonic()

    def clock(self) -> None:
        """Book the slot-seconds since the last change."""
        now = time.monotonic()
        passed, self._since = now - self._since, now
        self.slot_seconds["busy"] += self.busy * passed
        self.slot_seconds[self.missing()] += (self.slots - self.busy) * passed

    def _pay(self, event: dict[str, Any]) -> None:
        if event.get("event") == "answered":
            given, made = event.get("prompt_tokens") or 0, event.get("completion_tokens") or 0
            self.spent["calls"] += 1
            self.spent["tokens"] += given + made
            self.spent["usd"] += (given * self.price[0] + made * self.price[1]) / 1e6

    def _allow(self) -> None:
        now = {**self.spent, "minutes": (time.monotonic() - self._start) / 60}
        now["calls"] += self.open
        for name, most in self.limits.items():
            if now[name] >= most:
                raise LimitReached(f"--stop-after {name}={most:g} is reached; everything is saved")


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
        self._in_hand: dict[Slot, dict[str, Any]] = {}  # paid, not yet graded
        self._drawing: set[Slot] = set()
        self._owed = log.owed()
        self.left: list[str] = []  # why slots were left owed: the server refuses this very prompt

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
                f"is no answer to this one: use another --out, or --fresh to move the folder aside"
            )

    async def _make(self, worker: Worker, task: Task, slot: Slot, prompt: Prompt) -> Attempt:
        def keep(reply: Reply) -> None:
            self._drawing.discard(slot)
            shas = {"task_sha": task.digest, "prompt_sha": prompt.sha()}
            self._in_hand[slot] = {"slot": list(slot), **shas, "reply": reply._asdict()}
            if paid is None:  # what is paid is on disk before it waits for its grade
                self.log.append(OWED, self._in_hand[slot])

        try:
            paid = None
            if row := self._owed.pop(slot, None):
                self._in_hand[slot] = row
                self._same(task, slot, prompt, row["task_sha"], row["prompt_sha"])
                paid = Reply(**row["reply"])
            async with self._room:
                seed = slot.seed(self.seed)
                self._drawing.add(slot)
                reply, grade = await worker.answer(task, prompt.messages, seed, paid, keep)
            attempt = _attempt(task, slot, prompt, seed, reply, grade)
            self.log.add(attempt)
            self._in_hand.pop(slot, None)
            self.watch(attempt)
            return attempt
        finally:
            self._drawing.discard(slot)
            del self._flying[slot], self._asked[slot]

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
            if why.kind != "attempt":
                raise
            self.left.append(f"{task.id}: {why}")
            return seen

    def owes(self, task: Task) -> bool:
        """Whether a slot of this task had to be left owed."""
        return any(said.startswith(f"{task.id}: ") for said in self.left)

    async def close(self, land: Literal["all", "paid", "nothing"]) -> None:
        """End what is in flight: let it land, or drop it. Replies in hand go to owed.jsonl, to be used first."""
        flights = dict(self._flying)
        for slot, flight in flights.items():
            if land == "nothing" or (land == "paid" and slot not in self._in_hand):
                flight.cancel()
        await asyncio.gather(*flights.values(), return_exceptions=True)
        self.log.rewrite(OWED, [*self._in_hand.values(), *self._owed.values()])


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
        visible_tests=grade.visible,
        hidden_tests=grade.hidden,
        got=grade.got,
        got_start=grade.got_start,
        cpu_seconds=round(grade.cpu_seconds, 6),
        latency_seconds=round(reply.latency_seconds, 3),
        tries=reply.tries,
        time=round(time.time(), 3),
    )


# ── driving many tasks, and watching it ──────────────────────────────────────────────────────────────────────────────


async def each(tasks: Iterator[Task], do: Callable[[Task], Coroutine[Any, Any, None]], at_once: int) -> None:
    """Do something to every task, so many at once. The first exception ends it; tasks are read off the event loop."""
    room, reading = asyncio.Semaphore(at_once), asyncio.Lock()

    async def following() -> Task | None:
        async with reading:
            return await asyncio.to_thread(next, tasks, None)

    try:
        async with asyncio.TaskGroup() as group:
            while await room.acquire() and (task := await asyncio.shield(following())):
                group.create_task(do(task)).add_done_callback(lambda done: room.release())
    except BaseExceptionGroup as several:
        why: BaseException = several
        while isinstance(why, BaseExceptionGroup):
            why = why.exceptions[0]
        raise why from None
    finally:
        async with reading:  # a thread may be in the middle of a task
            if isinstance(tasks, Generator):
                tasks.close()


class Watch:
    """The bar on a terminal, or a line a minute elsewhere: attempts, rate, slots, retries, rescued, time left."""

    def __init__(self, most: int, slots: int, counted: str = "rescued") -> None:
        from tqdm import tqdm

        self.most, self.slots, self.made, self.on_disk = most, slots, 0, 0
        self.counted = counted  # what has become of the tasks in `rescued`, in a word; none where there is no such
        self.rescued: set[str] = set()
        self.tokens = 0
        self.state: Any = None  # endpoint.Policy.state: in_flight, retries, waiting, last_error
        self.start = time.monotonic()
        self.bar = tqdm(
            total=most, unit="attempt", file=sys.stderr, disable=not sys.stderr.isatty(), dynamic_ncols=True
        )

    def __call__(self, attempt: Attempt) -> None:
        """An attempt was made."""
        self.made += 1
        self.tokens += (attempt.prompt_tokens or 0) + (attempt.completion_tokens or 0)
        self.bar.set_postfix_str(self.words(), refresh=False)
        self.bar.update()

    def not_needed(self, attempts: int) -> None:
        """So many attempts of the plan's largest number need not be made, or stood on disk."""
        self.most -= attempts
        self.bar.total = self.most

    def words(self) -> str:
        parts = [f"{self.counted} {len(self.rescued)}"] if self.counted else []
        parts.append(f"tokens {self.tokens:,}")
        if self.state is not None:
            parts.append(f"slots {self.state.in_flight}/{self.slots}")
            if self.state.retries:
                parts.append(f"retries {self.state.retries} (last: {self.state.last_error})")
            if self.state.waiting:
                parts.append(f"{self.state.waiting} waiting")
        return ", ".join(parts)

    async def beat(self, every: float = 60.0) -> None:
        """A line a minute where there is no terminal."""
        while self.bar.disable:
            await asyncio.sleep(every)
            rate = self.made / (time.monotonic() - self.start) * 60
            left = f"at most {(self.most - self.made) / rate:,.0f} min left" if rate else "nothing yet"
            note(f"{self.made:,} of at most {self.most:,} attempts, {rate:,.0f}/min, {self.words()}, {left}")


@contextlib.asynccontextmanager
async def sampling(
    log: Log, policy: Any, grader: Grades, a: argparse.Namespace, budget: Budget, watch: Watch
) -> AsyncIterator[Session]:
    """A session over an entered policy and grader; on the way out nothing that was paid is lost."""
    session = Session(log, Worker(policy, grader), seed=a.seed, room=asyncio.Semaphore(5 * a.concurrency), watch=watch)
    budget.begin(lambda: session.missing(a.concurrency))
    watch.state = getattr(policy, "state", None)
    heart = asyncio.create_task(watch.beat())
    land: Literal["all", "paid", "nothing"] = "all"
    try:
        yield session
        if session.left:
            raise EndpointFault(
                "attempt", f"{len(session.left)} plays were left incomplete; the last, {session.left[-1]}"
            )
    except BaseException as why:
        if not isinstance(why, LimitReached):
            land = "paid" if isinstance(why, EndpointFault) else "nothing"
        raise
    finally:
        heart.cancel()
        await session.close(land)
        watch.bar.close()
        note(f"{watch.made:,} attempts made, at most {max(0, watch.most - watch.made):,} left")
        budget.clock()
        seconds = {f"{name}_slot_seconds": round(value, 3) for name, value in budget.slot_seconds.items()}
        log.append(EVENTS, {"event": "slots", "slots": a.concurrency, "time": time.time(), **seconds})


def conduct(work: Coroutine[Any, Any, None], log: Log) -> int:
    """Run a command's sampling to its end: the exit code, and one line where it did not come to it."""
    from grader import GraderFault

    began, code = time.time(), DONE
    log.append(EVENTS, {"event": "start", "time": began})
    # A scheduler's SIGTERM is to be as gentle as Ctrl-C.
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        asyncio.run(work)
    except LimitReached as why:
        code = stop(LIMIT, why)
    except EndpointFault as why:
        code = stop(ENDPOINT, why)
    except (GraderFault, DiskFault) as why:
        code = stop(GRADER, why)
    except (RecordsError, TaskError, BadInput) as why:
        code = complain(why)
    except KeyboardInterrupt:
        code = stop(INTERRUPTED, "interrupted; everything is saved")
    finally:
        signal.signal(signal.SIGTERM, before)
    with contextlib.suppress(DiskFault):
        ended = time.time()
        log.append(EVENTS, {"event": "end", "time": ended, "code": code, "seconds": round(ended - began, 3)})
    return code


def move_aside(out: Path) -> None:
    """--fresh: an old folder gets another name; nothing is ever deleted."""
    if not out.exists():
        return
    with Log(out) as log:  # nobody else is writing to it, and it is a run's or empty
        here = log.path.resolve()
        aside = next(path for k in itertools.count(1) if not (path := here.with_name(f"{here.name}.{k}")).exists())
        try:
            here.rename(aside)
        except OSError as why:
            raise RecordsError(f"{out} cannot be moved aside ({why.strerror}): use another --out") from None
    note(f"the old folder is {aside} now")


def versions() -> dict[str, str | None]:
    """What made the numbers: this program, its commit, Python, and the libraries it stands on."""
    import platform
    import subprocess
    from importlib.metadata import PackageNotFoundError, version

    here = Path(__file__).resolve().parent
    git = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12", "--match="]
    try:
        commit = subprocess.run(git, capture_output=True, text=True, timeout=10).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        commit = None
    found: dict[str, str | None] = {"swarm-rescue": VERSION, "commit": commit, "python": platform.python_version()}
    for name in ("openai", "pyarrow", "numpy", "scipy", "sqlglot"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def without_login(word: str) -> str:
    """A base URL as it may be written down: a name and a password in it are not for a file or a log."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", word)


def note(text: str) -> None:
    """A line of the log."""
    print(text, file=sys.stderr, flush=True)


def complain(why: object, code: int = BAD_INPUT) -> int:
    """One line, and the exit code."""
    note(f"{sys.argv[0].rsplit('/')[-1]}: {why}")
    return code


def stop(code: int, why: object) -> int:
    """Say why a run ended before its end, and the command that continues it."""
    words = [without_login(word) for word in sys.argv if word != "--fresh"]
    note(f"{sys.argv[0].rsplit('/')[-1]}: {why} (--reuse reports what there is)")
    note(f"to continue: python {shlex.join(words)}")
    return code


def policy_of(a: argparse.Namespace, model: str | None, log: Callable[[dict[str, Any]], None]) -> Policy:
    """The endpoint's policy as the flags describe it."""
    try:
        return Policy(
            a.base_url or default_base_urls(),
            model,
            api_key=os.environ.get("OPENAI_API_KEY"),
            temperature=a.temperature,
            top_p=None if getattr(a, "as_published", False) else a.top_p,
            max_tokens=a.max_tokens,
            thinking=a.thinking,
            extra_body=a.extra_body,
            request_timeout=a.request_timeout,
            give_up_after=60 * a.give_up_after,
            concurrency=a.concurrency,
            log=log,
        )
    except ValueError as why:
        raise BadInput(str(why)) from None
