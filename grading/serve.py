"""A grader that another program talks to: JSON lines in, JSON lines out, for as long as somebody is there to read them.

    serve(make, stdin, stdout)      until the input ends, the reader is gone or the machinery gives out: an exit code

    in     {"id": 7, "reply": "…", "truth": NAME, "text": "…"}     text: the ground truth (tasksets/truth.py), which is
                                                                   kept under NAME and may be left out from then on
    out    {"ready": {"tier": …, "rules": …, "workers": …, "remarks": […]}}                           once, at first
           {"id": 7, "passed": …, "fitness": …, "outcome": …, "visible": …, "hidden": …, "cpu_seconds": …}
           {"id": 7, "lacks": NAME}     it is not kept here (any more): send the request again, with its text
           {"id": 7, "bad": "…"}        nothing to grade by: the ground truth or the line is wrong, and says where
           {"fault": "…"}               the machinery failed, and no reply is to blame: the last line

Answers come in the order in which they are ready. Whatever is printed in here goes to stderr: stdout holds answers
alone. After the end of its input it answers what it has taken; when nobody reads any more, or the process that started
it is gone, it ends at once.

Left out: the other end of the pipe (reward.py), what a reply is worth (grader.py), any network.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from faults import DONE, GRADER, Fault, GraderFault, TaskError
from grading.grade import Grade
from tasksets.task import Task
from tasksets.truth import loads

_KEPT = 64_000_000  # characters of ground truth; the one last used stays, whatever its size
_LOOK = 0.2  # seconds between two looks at whether anybody is there
_ANSWER = ("passed", "fitness", "outcome", "visible", "hidden", "cpu_seconds")


class Served(Protocol):
    """What is served: a grader.Grader."""

    workers: int
    tier: str

    @property
    def rules(self) -> str: ...
    @property
    def remarks(self) -> list[str]: ...
    async def grade(self, reply: str, task: Task) -> Grade: ...


Make = Callable[[], AbstractAsyncContextManager[Served]]


def lines_of(descriptor: int) -> Iterator[bytes]:
    """Lines, read without a lock that the end of this process would have to wait for."""
    parts: list[bytes] = []
    while data := os.read(descriptor, 1 << 20):
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield b"".join([*parts, line])
            parts = []
        parts.append(rest)
    if any(parts):
        yield b"".join(parts)


def standard_streams() -> tuple[int, int]:
    """Descriptors of stdin and stdout that no child inherits and no stray print reaches."""
    taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return taken


class _Kept:
    """Ground truths by name, those least lately used given up first."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, tuple[Task, int]] = OrderedDict()
        self._size = 0

    def get(self, name: str) -> Task | None:
        if name not in self._tasks:
            return None
        self._tasks.move_to_end(name)
        return self._tasks[name][0]

    def put(self, name: str, text: str) -> Task:
        """TaskError where the text is none."""
        task = loads(text)
        self._size += len(text) - self._tasks.pop(name, (task, 0))[1]
        self._tasks[name] = task, len(text)
        while self._size > _KEPT and len(self._tasks) > 1:
            self._size -= self._tasks.popitem(last=False)[1][1]
        return task


class _Server:
    def __init__(self, grader: Served, stdin: int, stdout: int) -> None:
        self.grader, self.stdin, self.stdout = grader, stdin, stdout
        self.parent = os.getppid()
        self.loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()  # nothing more will come
        self.stopped: asyncio.Future[int] = self.loop.create_future()
        self.room = threading.BoundedSemaphore(4 * grader.workers)  # what is taken and not answered: the rest waits
        self.work: set[asyncio.Task[None]] = set()
        self.kept = _Kept()

    # ── in the reading thread: a long ground truth is parsed beside the grading ──────────────────────────────────────
    def read(self) -> None:
        try:
            for line in lines_of(self.stdin):
                if line.strip():
                    self.room.acquire()
                    self.loop.call_soon_threadsafe(self.take, *self.understood(line))
            self.loop.call_soon_threadsafe(self.ended.set)
        except Exception as why:
            if not self.loop.is_closed():  # else it has ended, and nobody waits for this
                self.loop.call_soon_threadsafe(self.fail, f"the grader broke: {type(why).__name__}: {why}")

    def understood(self, line: bytes) -> tuple[object, str, Task | dict[str, str]]:
        """The id, the reply and its task, or what to answer instead."""
        number: object = None
        try:
            asked = json.loads(line)
            if not isinstance(asked, dict):
                raise TaskError("a line must be a JSON object")
            number, name, text = asked.get("id"), asked.get("truth"), asked.get("text")
            if not isinstance(asked.get("reply"), str) or not isinstance(name, str):
                raise TaskError('a line must hold "id", "reply" and "truth", the last two as text')
            task = self.kept.get(name) if text is None else self.kept.put(name, text)
            return number, asked["reply"], task or {"lacks": name}
        except TaskError as why:
            return number, "", {"bad": str(why)}
        except (ValueError, RecursionError) as why:
            return number, "", {"bad": f"a line is not JSON: {why}"}
        except (
            Exception
        ) as why:  # of all that a line may be, what nobody thought of: it is named, and the next one read
            return number, "", {"bad": f"a line cannot be read ({type(why).__name__}: {why})"}

    # ── in the event loop ────────────────────────────────────────────────────────────────────────────────────────────
    def take(self, number: object, reply: str, task: Task | dict[str, str]) -> None:
        flight = self.loop.create_task(self.answer(number, reply, task))
        self.work.add(flight)
        flight.add_done_callback(self.work.discard)

    async def answer(self, number: object, reply: str, task: Task | dict[str, str]) -> None:
        try:
            if isinstance(task, Task):
                try:
                    grade = await self.grader.grade(reply, task)
                    found: dict[str, Any] = {name: getattr(grade, name) for name in _ANSWER}
                except TaskError as why:
                    found = {"bad": str(why)}
            else:
                found = task
            self.say({"id": number, **found})
        except Fault as why:
            self.fail(str(why))
        except Exception as why:
            self.fail(f"the grader broke: {type(why).__name__}: {why}")
        finally:
            self.room.release()

    def say(self, row: dict[str, Any]) -> None:
        if self.stopped.done():
            return
        data = memoryview(json.dumps(row).encode() + b"\n")
        try:
            while data:
                data = data[os.write(self.stdout, data) :]
        except OSError as why:
            self.stop(DONE if isinstance(why, BrokenPipeError) else GRADER)

    def fail(self, why: str) -> None:
        self.say({"fault": why})
        self.stop(GRADER)

    def stop(self, code: int) -> None:
        if not self.stopped.done():
            self.stopped.set_result(code)

    def is_alone(self) -> bool:
        """Whether nobody reads the answers, or whoever has started this is gone."""
        reader = select.poll()
        reader.register(self.stdout, 0)
        return bool(reader.poll(0)) or os.getppid() != self.parent

    async def watch(self) -> None:
        while not self.stopped.done():
            if self.is_alone() or (self.ended.is_set() and not self.work):
                self.stop(DONE)
            await asyncio.sleep(0.01 if self.ended.is_set() else _LOOK)

    async def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, self.stop, DONE)
        grader = self.grader
        about = {"tier": grader.tier, "rules": grader.rules, "workers": grader.workers, "remarks": grader.remarks}
        self.say({"ready": about})
        threading.Thread(target=self.read, daemon=True).start()
        watching = self.loop.create_task(self.watch())
        code = await self.stopped
        for task in (watching, *self.work):
            task.cancel()
        await asyncio.gather(watching, *self.work, return_exceptions=True)
        return code


async def serve(make: Make, stdin: int, stdout: int) -> int:
    """make: the grader, to be entered. Whatever keeps it from starting is the one line that it says."""
    try:
        async with make() as grader:
            return await _Server(grader, stdin, stdout).run()
    except GraderFault as why:
        os.write(stdout, json.dumps({"fault": str(why)}).encode() + b"\n")
        print(f"grader.py: {why}", file=sys.stderr)
        return GRADER
