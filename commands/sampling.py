"""Sampling, from its first request to how it stops: limits, the bar, the exit code.

`sampling` opens a session over an entered policy and grader; on the way out nothing that was paid is lost. `conduct`
runs a command's sampling to its end, and `guarded` all of a command: whatever stops it, the last lines say why and how
to go on, and the exit code says which kind it was.

Left out: the attempts themselves (session.py), the folder (commands/folder.py), the flags (commands/flags.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Literal, Protocol

from asking.address import default_base_urls
from asking.events import Event, told_apart
from asking.fields import Fields
from commands import interrupt, pulse
from commands.console import at_last, busy, complain, leave_off, note, point_at, without_login
from commands.settings import Asking, Free
from endpoint import Policy, Probe, Record
from faults import (
    DONE,
    ENDPOINT,
    GRADER,
    INTERRUPTED,
    BadInput,
    DiskFault,
    EndpointFault,
    Fault,
    LimitReached,
)
from figures.numbers import plural
from records import ATTEMPTS, EVENTS, Log, dumps
from session import Owing, Session, Worker
from swarm import Attempt

FIRST = 10.0  # seconds until a log hears of the first attempts
TOLL = 60.0  # seconds between two lines of what was counted

# ── limits, and what is seen of a run ─────────────────────────────────────────────────────────────────────────────────


class Budget:
    """What requests cost, and how full the slots were: told by every event of the policy, before it is written down.

    --stop-after is held here. Calls, tokens and usd count from the folder's events, over all starts.
    """

    def __init__(self, args: Free, log: Log, verbose: bool = False) -> None:
        self.log, self.limits, self.price, self.verbose = log, args.stop_after, args.price or (0.0, 0.0), verbose
        self.spent = dict.fromkeys(("calls", "tokens", "usd"), 0.0)
        self.slots, self.busy, self.open = args.concurrency, 0, 0  # requests at the server; draws begun and not ended
        self.slot_seconds = dict.fromkeys(("busy", "retrying", "grading", "work"), 0.0)  # idle ones by what was missing
        self.missing: Callable[[], str] = lambda: "work"
        self._start = self._since = time.monotonic()
        self.asked_elsewhere = False  # whoever sends a first request has called `allow` itself
        self.declined = told_apart(log.events())  # prompts that were refused in earlier starts
        for event in log.events():
            self._pay(event)

    def record(self, event: Event) -> None:
        """The policy's log. LimitReached before a first request that is one too many."""
        name = event["event"]
        if name == "probe" and event["completion_tokens"] is None and {"tokens", "usd"} & set(self.limits):
            raise BadInput("the server counts no tokens, so --stop-after cannot hold tokens= or usd=: use calls=")
        self.clock()
        if name == "sent":
            if event["tries"] == 1 and not self.asked_elsewhere:
                self.allow()
            self.busy += 1
        elif name in ("answered", "retry", "refused", "fault"):
            self.busy -= 1
            self.open -= name != "retry"
        self._pay(event)
        self.log.append(EVENTS, {**event, "time": event.get("time", round(time.time(), 3))})
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

    def _pay(self, event: Event) -> None:
        if event.get("event") == "answered":
            given, made = event.get("prompt_tokens") or 0, event.get("completion_tokens") or 0
            self.spent["calls"] += 1
            self.spent["tokens"] += given + made
            self.spent["usd"] += (given * self.price[0] + made * self.price[1]) / 1e6

    def allow(self) -> None:
        """A first request is about to be sent. LimitReached where it is one too many."""
        now = {**self.spent, "minutes": (time.monotonic() - self._start) / 60}
        now["calls"] += self.open
        for name, most in self.limits.items():
            if now[name] >= most:
                raise LimitReached(name, most)
        self.open += 1


class Probing(Protocol):
    """endpoint.Policy, or the fake policy of a dry run."""

    async def probe(self) -> Probe: ...


class Watch:
    """What gets done, seen: a bar on a terminal, elsewhere a line soon and then one a minute. A context manager, inside
    an event loop.

    The units done, their rate, the time left; where an endpoint is asked also tokens, slots, retries, rescued.
    most: of what there was before and what is to be done; there: what the folder holds of it.
    """

    every = 60.0  # seconds between two lines

    def __init__(
        self, most: int, slots: int = 0, counted: str = "rescued", unit: str = "attempt", there: int = 0
    ) -> None:
        self.most, self.slots, self.unit, self.there, self.made = most, slots, unit, there, 0
        self.counted = counted  # the word for the tasks in `rescued`; empty where none are counted
        self.rescued: set[str] = set()
        self.tokens = 0
        self.state: Any = None  # endpoint.Policy.state: in_flight, retries, waiting, last_error

    def __enter__(self) -> Watch:
        from tqdm import tqdm

        how = {"file": sys.stderr, "disable": not sys.stderr.isatty(), "dynamic_ncols": True, "unit": self.unit}
        narrow = shutil.get_terminal_size().columns < 120  # there the words are worth more than a bar
        shape = "{n_fmt}/{total_fmt} {elapsed}<{remaining}{postfix}" if narrow else None
        if self.there:
            note(f"continuing: {self.there:,} of at most {self.most:,} {self.unit}s are there")
        self._rests = pulse.Rests()
        self._rests.__enter__()
        self.bar = tqdm(total=self.most, initial=self.there, bar_format=shape, **how)
        self.start = time.monotonic()
        self._heart = asyncio.create_task(self._beat())
        return self

    def __exit__(self, *raised: object) -> None:
        self._heart.cancel()
        self.bar.total = self.most
        self.bar.close()
        self._rests.__exit__()
        more = " more" if self.there else ""
        done = f"{self.made:,}{more} {self.unit}{'s' * (self.made != 1)} done"
        left = self.most - self.there - self.made
        note(f"{done}, at most {left:,} left" if left > 0 else done)

    def __call__(self, attempt: Attempt) -> None:
        """An attempt was made."""
        self.tokens += (attempt.prompt_tokens or 0) + (attempt.completion_tokens or 0)
        self.step()

    def step(self) -> None:
        """One more is done."""
        self.made += 1
        self.bar.total = self.most
        self.bar.set_postfix_str(self.words(), refresh=False)
        self.bar.update()

    def not_needed(self, number: int) -> None:
        """So many of the largest number need not be done, or stood on disk."""
        self.most -= number

    def words(self) -> str:
        """What the endpoint has given and how it does; empty where none is asked, without slots."""
        if not self.slots:
            return ""
        parts = [f"{self.counted} {len(self.rescued)}"] if self.counted else []
        parts.append(f"tokens {self.tokens:,}")
        if self.state is not None:
            parts.append(f"slots {self.state.in_flight}/{self.slots}")
            if self.state.retries:
                parts.append(f"retries {self.state.retries} (last: {self.state.last_error})")
            if self.state.waiting:
                parts.append(f"{self.state.waiting} waiting")
        return ", ".join(parts)

    async def _beat(self) -> None:
        """The bar's clock, every second; where there is no terminal, a line soon and then one a minute."""
        while not self.bar.disable:
            self.bar.set_postfix_str(self.words())
            await asyncio.sleep(1)
        pause = min(FIRST, self.every)
        while True:
            await asyncio.sleep(pause)
            pause = self.every
            rate = self.made / (time.monotonic() - self.start) * 60
            done = self.there + self.made
            left = f"at most {(self.most - done) / rate:,.0f} min left" if rate else "nothing yet"
            parts = [f"{done:,} of at most {self.most:,} {self.unit}s", f"{rate:,.0f}/min", self.words(), left]
            note(", ".join(part for part in parts if part))


Walk = Callable[[Session, Watch], Coroutine[object, object, None]]  # all that a command asks, over a session


# ── from start to stop ────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def sampling(log: Log, worker: Worker, seed: int, budget: Budget, watch: Watch) -> AsyncIterator[Session]:
    """A session over an entered policy and grader; on the way out nothing that was paid is lost."""
    # Beside those at the server four times as many may wait for their grade, so that a slow grader starves no slot.
    session = Session(log, worker, seed=seed, room=asyncio.Semaphore(5 * budget.slots), watch=watch)
    budget.begin(lambda: session.missing(budget.slots))
    tolls = asyncio.create_task(_tolls(log, budget, worker))
    watch.state = getattr(worker.policy, "state", None)
    if isinstance(worker.policy, Policy):
        worker.policy.known_refusals = len(budget.declined)
    land: Literal["all", "paid", "nothing"] = "all"
    with watch:
        try:
            yield session
        except BaseException as why:
            if not isinstance(why, LimitReached):
                land = "paid" if isinstance(why, EndpointFault) else "nothing"
            raise
        finally:
            try:
                await session.close(land)
            finally:
                tolls.cancel()
                _toll(log, budget, worker)
    all_asked(session)


def all_asked(session: Session) -> None:
    """EndpointFault where a task had to be left with an attempt owed."""
    if session.left:
        *_, (task_id, last) = session.left.items()
        many = f"{len(session.left)} tasks are" if len(session.left) > 1 else "1 task is"
        raise EndpointFault("attempt", f"{many} incomplete; {task_id}: {last}")


async def _tolls(log: Log, budget: Budget, worker: Worker) -> None:
    """What a killed process has counted is on disk, but for its last minute."""
    while True:
        await asyncio.sleep(TOLL)
        with contextlib.suppress(DiskFault):  # the next attempt says so
            _toll(log, budget, worker)


def _toll(log: Log, budget: Budget, worker: Worker) -> None:
    """Write down what was counted since the last time: slot-seconds, and programs graded."""
    budget.clock()
    now, seconds, counts = time.time(), budget.slot_seconds, getattr(worker.grader, "counts", {})
    spent = {f"{name}_slot_seconds": round(value, 3) for name, value in seconds.items()}
    log.append(EVENTS, {"event": "slots", "slots": budget.slots, "time": now, **spent})
    seconds.update(dict.fromkeys(seconds, 0.0))
    if counts:
        log.append(EVENTS, {"event": "grader", "time": round(now, 3), **counts})
        counts.update(dict.fromkeys(counts, 0))


async def nothing_left(log: Log, seed: int, walk: Walk) -> bool:
    """Whether the folder holds every attempt that a walk asks for: the same walk, with nobody to make one."""
    watch = Watch(0)
    try:
        with busy("looking for what is left to ask"):
            await walk(Session(log, None, seed=seed, room=asyncio.Semaphore(1), watch=watch), watch)
    except Owing:
        return False
    return True


def conduct(work: Coroutine[object, object, None], log: Log, reports: bool = True) -> int:
    """Run a command's sampling to its end: the exit code, and one line where it did not come to it.

    reports: of a command that with --reuse reports what a folder holds. It takes no time for that by itself where it
    was interrupted, or where the machine is at fault.
    """
    began, code = time.time(), DONE
    log.append(EVENTS, {"event": "start", "time": began})
    # A scheduler's SIGTERM is to be as gentle as Ctrl-C.
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with interrupt.Gently():
            asyncio.run(work)
    except BadInput as why:
        code = complain(why, why.code)
    except LimitReached as why:
        code = stop(why.code, why, why, (log.read("config.json") or {}).get("free", {}).get("stop_after"))
    except Fault as why:
        if reports and why.code != ENDPOINT:
            _so_far(log)
        code = stop(why.code, why)
    except KeyboardInterrupt:
        if reports:
            _so_far(log)
        code = stop(INTERRUPTED, "interrupted; everything is saved")
    finally:
        signal.signal(signal.SIGTERM, before)
    with contextlib.suppress(DiskFault):
        ended = time.time()
        log.append(EVENTS, {"event": "end", "time": ended, "code": code, "seconds": round(ended - began, 3)})
    return code


def _so_far(log: Log) -> None:
    """What a folder holds of which no report follows, and how to get one."""
    if len(log) and log.read("config.json"):
        point_at(log.path / ATTEMPTS, f"{plural(len(log), 'attempt')}, all that were paid and graded")
        at_last(f"for a report of them: python {shlex.join([*sys.argv[:1], '--reuse', '--out', str(log.path)])}")


def guarded(work: Callable[[], int]) -> int:
    """A whole command: its exit code, and one line where it cannot go on."""
    try:
        return work()
    except Fault as why:
        return complain(why, why.code)
    except OSError as why:  # of a file that is no record: a plot, a picture, a page
        return complain(f"{why}: mend that, then the same command goes on", GRADER)
    except KeyboardInterrupt:  # before the first sample, or again while the run winds up
        return stop(INTERRUPTED, "interrupted; what was written stays")
    finally:
        leave_off()


def stop(code: int, why: object, reached: LimitReached | None = None, held: Mapping[str, float] | None = None) -> int:
    """Say why a run ended before its end and, when all else is said, the command that continues it.

    reached: a limit, which the continuing command is to have twice as high where it counts over all starts; held: all
    limits there were, since they may come from --config.
    """
    words = [without_login(word) for word in sys.argv if word != "--fresh"]
    if reached and reached.name != "minutes":  # they begin anew with every start
        most = f"{2 * reached.most:.15g}"
        if any(word.partition("=")[0] == "--stop-after" for word in words):
            words = [re.sub(rf"((?:^|[=,]){reached.name}=)[^,]*", rf"\g<1>{most}", word) for word in words]
        else:
            limits = {name: f"{x:.15g}" for name, x in (held or {}).items()} | {reached.name: most}
            words += ["--stop-after", ",".join(f"{name}={x}" for name, x in limits.items())]
    complain(why, code)
    at_last(f"to continue: python {shlex.join(words)}")
    return code


def aloud(log: Record) -> Record:
    """A log that also says at once what a user should see: warnings; what is waited for, first, then every minute."""
    silent_until = 0.0

    def record(event: Event) -> None:
        nonlocal silent_until
        if event["event"] == "warned":
            note(f"warning: {event['error']}")
        elif event["event"] == "waiting" and time.monotonic() >= silent_until:
            silent_until = time.monotonic() + Watch.every
            note(f"waiting for {event['url']}: {event['error']}")
        log(event)

    return record


async def probed(policy: Probing) -> Probe:
    """What the servers say before anything is spent on attempts."""
    urls = [without_login(url) for url in policy.urls] if isinstance(policy, Policy) else ["the fake policy"]
    with busy(f"asking {' and '.join(urls)} for one token"):
        return await policy.probe()


def policy_of(args: Asking, log: Record, as_published: bool = False) -> Policy:
    """The endpoint's policy as the flags describe it."""
    try:
        return Policy(
            args.base_url or default_base_urls(),
            args.model,
            Fields(
                temperature=args.temperature,
                top_p=None if as_published else args.top_p,
                max_tokens=args.max_tokens,
                thinking=args.thinking,
                extra_body=args.extra_body,
            ),
            api_key=os.environ.get("OPENAI_API_KEY"),
            request_timeout=args.request_timeout,
            give_up_after=60 * args.give_up_after,
            concurrency=args.concurrency,
            log=aloud(log),
        )
    except ValueError as why:
        raise BadInput(str(why)) from None
