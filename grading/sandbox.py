"""The sandbox: a program and bytes go in; bytes, a status and CPU seconds come out. The host's end of it.

    host       WorkerProcess: starts a worker process, sends programs and inputs, receives outputs     sandbox.py
      worker   one per core, warm, walled in once, never sees a program or an input                    worker.py
        program process   compiles one program, once, and forks for each input                         supervise.py
          test process    behind the inner walls, runs the program, untrusted                          running.py

There is no answer to be found in there: what a test wants is known to the caller alone, who compares outside. All that
travels has a fixed header and raw bytes (protocol.py). Left out: which walls there are (walls.py), comparing,
extracting, grading (grader.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from grading import walls, worker
from grading.protocol import END, HELLO, JOB, JOB_MAGIC, OUTCOMES, RESULT, RESULT_MAGIC, TEST
from grading.raised import NOTHING, RAISING, Raised, told


class Limits(NamedTuple):
    """Of one test."""

    cpu_seconds: float = 6.0
    asleep_seconds: float = 2.0  # neither computing nor waiting for a processor
    wall_seconds: float = 0.0  # a far backstop; 0: ten times the CPU seconds
    memory_bytes: int = 1 << 30  # address space
    output_bytes: int = 16 << 20  # stdout
    timeouts: int = 3  # after so many of them the rest of a program's tests is not run; 0: always run


class _Output(NamedTuple):
    stdout: bytes
    status: int | None  # as Python reports it (negative: the signal that ended it); None if it never ran
    outcome: str  # "ended" (by itself, with status 0), or of protocol.OUTCOMES why it did not
    cpu_seconds: float


class Output(_Output):
    """What has become of one test: a tuple of four. raised: what ended it, which is for a reader alone."""

    raised: Raised = NOTHING


class WorkerLost(Exception):
    """The worker died or spoke out of turn. Its program may be tried once more on a fresh one."""


class KilledOutside(WorkerLost):
    """What runs under the worker was killed by somebody else, most likely for want of memory."""


class SandboxFault(Exception):
    """The machine could not run the program: no process, no memory, no disk, no walls. The text says which."""


_START = """
import sys
sys.path.insert(0, sys.argv[1])
from grading import worker
del sys.path[0]
worker.serve(int(sys.argv[2]), *sys.argv[3:])
"""
# A deep recursion needs a deep stack, and how deep it can get is settled when a process starts. (KiB, command)
_DEEP_STACK = 'ulimit -S -s "$0"; exec "$@"'


class WorkerProcess(asyncio.Protocol):
    """One worker process and the host's end of its socket. Use from one task at a time."""

    def __init__(self, tier: str, scratch: str) -> None:
        self.tier, self.scratch = tier, scratch
        self.process: subprocess.Popen[bytes] | None = None
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.begun = b""  # a program that has not gone out yet
        self.program = b""  # whose results come in
        self.above = 0  # lines of it that are not its own (raised.told); whoever begins a program sets it
        self.results: deque[Output] = deque()
        self.up = self.lost = False
        self.why = ""
        self.waiter: asyncio.Future[None] | None = None
        self.writable: asyncio.Future[None] | None = None
        self.held_bytes = 0

    async def start(self) -> None:
        """Raises SandboxFault when the process cannot be started or the tier is denied."""
        ours, theirs = socket.socketpair()
        python = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
        home = os.path.dirname(os.path.dirname(os.path.abspath(worker.__file__)))
        command = [python, "-S", "-s", "-P", "-B", "-c", _START, home, str(theirs.fileno()), self.tier, self.scratch]
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        stack = 1_000_000 if hard == resource.RLIM_INFINITY else min(1_000_000, hard >> 10)
        until = time.monotonic() + walls.PATIENCE
        try:
            os.makedirs(self.scratch, mode=0o700, exist_ok=True)
            while not self.process:
                try:
                    self.process = subprocess.Popen(
                        ["/bin/sh", "-c", _DEEP_STACK, str(stack), *command],
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()], start_new_session=True, cwd="/",
                        env={"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "1", "LD_BIND_NOW": "1"},
                    )  # fmt: skip
                except BlockingIOError:  # no process left: a program may have them all, for as long as it lives
                    if time.monotonic() > until:
                        raise
                    await asyncio.sleep(0.01)
        except OSError as why:
            ours.close()
            raise SandboxFault(f"a worker process cannot be started: {why}") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=ours)
        while not self.up:
            if self.results:
                raise SandboxFault(self.results.popleft().stdout.decode("utf-8", "replace"))
            if self.lost:
                raise SandboxFault("a worker process ended before it was ready")
            await self._news()

    # what asyncio calls
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self._take()
        self._wake()
        if self.held_bytes > 64 << 20 and self.transport:
            self.transport.pause_reading()  # until the caller has caught up

    def eof_received(self) -> None:
        self.lost = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._wake()

    def pause_writing(self) -> None:
        self.writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self.writable and not self.writable.done():
            self.writable.set_result(None)
        self.writable = None

    def _wake(self) -> None:
        if self.waiter and not self.waiter.done():
            self.waiter.set_result(None)
        if self.lost:
            self.resume_writing()

    def _take(self) -> None:
        """Cut the bytes that have arrived into results."""
        at, buffer = 0, self.buffer
        if not self.up and bytes(buffer[:4]) == HELLO:
            self.up, at = True, 4
        while len(buffer) - at >= RESULT.size:
            magic, outcome, status, ran, cpu, noted, size = RESULT.unpack_from(buffer, at)
            if magic != RESULT_MAGIC or outcome >= len(OUTCOMES):
                self.lost, self.why = True, "it spoke out of turn"
                break
            if len(buffer) - at - RESULT.size < noted + size:
                break
            at += RESULT.size + noted
            note = bytes(buffer[at - noted : at])
            stdout = bytes(memoryview(buffer)[at : at + size])
            at += size
            result = Output(stdout, status if ran else None, OUTCOMES[outcome], cpu)
            if result.outcome in RAISING:
                result.raised = told(note, self.program, status, self.above)
            self.results.append(result)
            self.held_bytes += size
        if at:
            del buffer[:at]

    async def _news(self) -> None:
        self.waiter = asyncio.get_running_loop().create_future()
        try:
            await self.waiter
        finally:
            self.waiter = None

    # what the grader calls
    def begin(self, program: bytes, mode: int, limits: Limits) -> None:
        """Take a program, which goes out with what follows: send() any number of times, the last one with last."""
        limits = limits._replace(wall_seconds=limits.wall_seconds or 10 * limits.cpu_seconds)
        self.program = program
        self.begun = JOB.pack(JOB_MAGIC, mode, *limits, len(program)) + program

    def _write(self, data: bytes) -> None:
        if self.lost or self.transport is None:
            raise WorkerLost(self.why or "the worker has died")
        self.transport.write(data)

    async def send(self, inputs: Sequence[bytes], last: bool = False) -> None:
        """Send inputs, one test each, as fast as the worker takes them. last: the next will be another program."""
        small, self.begun = [self.begun], b""
        size = 0
        for data in inputs:
            small += (TEST.pack(len(data)), data)
            size += len(data)
            if size > 1 << 16:
                self._write(b"".join(small))
                small, size = [], 0
                if self.writable:
                    await self.writable
        if last:
            small.append(TEST.pack(END))
        self._write(b"".join(small))

    async def receive(self) -> Output:
        """The next result. Raises WorkerLost, or SandboxFault when the worker says that the machine gave out."""
        while not self.results:
            if self.lost:
                raise WorkerLost(self.why or "the worker has died")
            await self._news()
        output = self.results.popleft()
        self.held_bytes -= len(output.stdout)
        if self.transport and self.held_bytes < 1 << 20 and not self.transport.is_reading() and not self.lost:
            self.transport.resume_reading()
        if output.outcome == "fault":
            raise (KilledOutside if output.status else SandboxFault)(output.stdout.decode("utf-8", "replace"))
        return output

    def kill(self) -> None:
        """End the worker and all that runs under it, from the leaves up: it does so when its socket closes."""
        self.lost = True
        if self.transport:
            self.transport.abort()

    def wait(self) -> None:
        """After kill(): until the process is gone. Blocks for milliseconds."""
        if self.process:
            try:
                self.process.wait(3.0)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, 9)
                self.process.kill()
                self.process.wait()
