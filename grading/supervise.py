"""The life of a program process: one program from its compilation to its last test, each in a process forked for it.

Trusted: it holds the program compiled, watches over the test process, says how that ended, and copies what it left
without looking inside (of several values, it reads how long each is).

A test process is a copy of this one, freed memory included, and a program can read all of its own. So what goes in and
out passes through memory that a fork leaves out, and nothing else holds a byte of it: a test finds no input, output or
call of an earlier one. Lengths, outcomes and times it may find. Of a module that can keep nothing from one call to the
next (stateless.py) one test process makes several calls: such a module cannot read memory either, and its calls are
looked at before the fork. If anything but values and plain errors comes of that, each is made again by itself.

Left out: how the program runs (running.py), what encloses it (walls.py), what is right (nobody here knows).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal itself would bring in half the library
import errno
import gc
import mmap
import os
import resource
import select
import sys
import time
from collections import namedtuple

from grading import running, stateless, walls
from grading.protocol import (
    BAD_VALUE,
    END,
    ENDED,
    FAULT,
    FORBIDDEN,
    JOB,
    JOB_MAGIC,
    MAIN,
    MEMORY_LIMIT,
    MISSING_MODULE,
    MODULE,
    NOT_RUN,
    NOTE_BYTES,
    OUTPUT_LIMIT,
    RESULT,
    RESULT_MAGIC,
    RUNTIME_ERROR,
    SYNTAX_ERROR,
    TEST,
    TIMEOUT,
)
from grading.running import compiled, taken_apart, write_all
from grading.scratch import Gone, Scratch

TYPE_CHECKING = False
if TYPE_CHECKING:  # a worker does without
    from types import CodeType

_Limits = namedtuple("_Limits", "cpu_seconds asleep_seconds wall_seconds memory_bytes output_bytes timeouts")
EMPTY_SLATE = bytes(4096)  # not compiled yet
CLEAN_SLATE = b"\1" + bytes(4095)  # compiled, and no failure yet
HELD_BYTES = 1 << 18  # results that wait to be sent together
COMING_BYTES = 1 << 16  # of an input on its way to the file that a test reads it from
# The most calls that one test process makes, of so many bytes or one more, and the CPU seconds that it may take.
_SHARED, _SHARED_BYTES, _SHARED_SECONDS = 64, 1 << 18, 0.5
_PLAIN_ENDS = {ENDED, RUNTIME_ERROR, BAD_VALUE}  # of calls that share a process
_BELIEVED = {MEMORY_LIMIT, MISSING_MODULE, FORBIDDEN, BAD_VALUE,
             SYNTAX_ERROR}  # of what stands on the slate  # fmt: skip
_LOOK_SECONDS = 0.05  # how soon at the latest, and in tiers that need it how often, a running program is looked at
_COUNT_SECONDS = 0.005  # how often its threads are counted, where they are taken from others
# What waits before another try of a test for which the machine had no thread or no disk left: another program may have
# had them all, and is found out meanwhile.
_PAUSES = (0.2, 1.0, None)
_UNFIT = -1  # in place of an outcome: such a try
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_MEMORY_AT_START = resource.getrlimit(resource.RLIMIT_AS)[1]
_CHILD_ENDED = {_signal.SIGCHLD}

# Standard modules that are loaded before the fork when the program names them, so that its tests share the work.
_WARM = frozenset(
    "abc array ast bisect calendar cmath collections contextlib copy dataclasses datetime decimal enum fractions "
    "functools hashlib heapq io itertools json math numbers operator os queue random re statistics string struct sys "
    "textwrap threading time traceback types typing unicodedata".split()
)


def _warm_up(names: set[str]) -> None:
    """Import without the after-fork hooks: a fork runs all of them, and none matters to a process with one thread."""
    real, os.register_at_fork = os.register_at_fork, lambda **hooks: None
    try:
        for name in names:
            if name not in sys.modules:
                __import__(name)
    finally:
        os.register_at_fork = real
    if "random" in sys.modules:
        sys.modules["random"].seed(0)  # the same program draws the same numbers whenever it is graded


def _read_exact(fd: int, size: int) -> bytes:
    data = os.read(fd, size) if size else b""
    if len(data) == size:
        return data
    parts, have = [data], len(data)
    while have < size:
        if not parts[-1]:
            os._exit(0)  # the host has gone
        parts.append(os.read(fd, min(size - have, 1 << 20)))
        have += len(parts[-1])
    return b"".join(parts)


_LAST_WORDS = (b"open", b"Writer", b"Wrapper", b"IO", b"__del__", b"finally", b"ctypes")  # what may print at the end


class Outbox:
    """Results, until they are sent together. Where they may not wait, what has gone is overwritten."""

    def __init__(self, fd: int, held: memoryview, may_wait: bool) -> None:
        self.fd, self.held, self.may_wait = fd, held, may_wait
        self.used = 0

    def put(self, outcome: int, status: int, ran: int, cpu: float, stdout: bytes, note: bytes = b"") -> None:
        self._begin(outcome, status, ran, cpu, len(stdout), note)
        view = memoryview(stdout)
        while view:
            size = min(len(view), len(self._free()))
            self._free()[:size] = view[:size]
            self.used += size
            view = view[size:]

    def put_file(self, outcome: int, status: int, cpu: float, out: int, size: int, note: bytes = b"") -> None:
        """The same with the first so many bytes of a file, which go through no other memory."""
        self._begin(outcome, status, 1, cpu, size, note)
        os.lseek(out, 0, 0)
        while size:
            have = os.readv(out, [self._free()[:size]])
            if not have:
                os._exit(1)  # somebody has shortened it meanwhile
            self.used += have
            size -= have

    def _begin(self, outcome: int, status: int, ran: int, cpu: float, size: int, note: bytes) -> None:
        if self.used + RESULT.size + len(note) + size > HELD_BYTES:
            self.flush()
        head = RESULT_MAGIC, outcome, status, ran, cpu, len(note), size
        RESULT.pack_into(self.held, self.used, *head)
        self.used += RESULT.size
        if note:
            self.held[self.used : self.used + len(note)] = note
            self.used += len(note)

    def _free(self) -> memoryview:
        """Where more of an answer may be put: never empty."""
        if self.used == HELD_BYTES:
            self.flush()
        return self.held[self.used :]

    def flush(self) -> None:
        write_all(self.fd, self.held[: self.used])
        if not self.may_wait:
            self.held[: self.used] = bytes(self.used)
        self.used = 0


class ProgramProcess:
    """One program from its compilation to its last test."""

    def __init__(self, fd: int, enclosure: walls.Walls, slate: mmap.mmap) -> None:
        self.fd, self.enclosure, self.slate = fd, enclosure, slate
        # Inputs pass through here, and results wait here to be sent together. What one test has read and printed is
        # not for the next to find, so this memory stays with the parent at a fork; where that cannot be had, nothing
        # waits, and what has gone through is overwritten.
        apart = mmap.mmap(-1, COMING_BYTES + HELD_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.may_wait = hasattr(mmap, "MADV_DONTFORK")
        if self.may_wait:
            apart.madvise(mmap.MADV_DONTFORK)
        self.coming = memoryview(apart)[:COMING_BYTES]
        self.outbox = Outbox(fd, memoryview(apart)[COMING_BYTES:], self.may_wait)
        self.scratch = Scratch(may_be_shut=enclosure.tier == "limits")
        self.code: CodeType | int = SYNTAX_ERROR  # or the outcome that stands in its place
        self.why = b""  # and a note of why
        self.has_noted = False  # a test has said what ended it
        self.mode = MAIN
        self.limits = _Limits(0.0, 0.0, 0.0, 0, 0, 0)
        self.timeouts = 0
        self.names: frozenset[str] | None = None  # of a module that lets several calls share a test process
        self.test_pid = 0  # the process id of the test process, while there is one
        self.fork = os.fork if enclosure.tier == "limits" else walls.fork
        self.input_ready = select.poll()
        self.input_ready.register(fd, select.POLLIN)

    def run(self) -> None:
        magic, self.mode, *limits, size = JOB.unpack(_read_exact(self.fd, JOB.size))
        if magic != JOB_MAGIC:
            os._exit(1)
        self.limits = _Limits(*limits)
        source = _read_exact(self.fd, size)
        # The tests inherit the hard limit: should all else fail to stop one, the kernel does. It counts what this
        # process takes too, which is less than a millisecond for a test.
        soft = max(1, int(self.limits.cpu_seconds) + 1)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 60))
        _limit_softly(self.limits.memory_bytes)
        self.code, self.why = compiled(source)
        resource.setrlimit(resource.RLIMIT_CPU, (soft + 60, soft + 60))
        _limit_softly(resource.RLIM_INFINITY)
        self.last_words = self.mode == MAIN and any(word in source for word in _LAST_WORDS)
        self.own_source = source if any(word in source for word in (b"__file__", b"argv", b"getsource")) else b""
        del source
        if not isinstance(self.code, int):
            codes = stateless.codes_in(self.code)
            _warm_up(stateless.imported(codes) & _WARM)
            if self.mode == MODULE:
                self.names = stateless.names_of(codes)
        gc.freeze()
        self.slate[0] = 1  # compiled: from here on a death is not the program's doing
        if self.enclosure.tier == "limits":
            _signal.signal(_signal.SIGTERM, self.give_up)
        else:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _CHILD_ENDED)
        self.scratch.empty()
        self.serve()

    def give_up(self, *_: object) -> None:
        """The host has hung up: take the test process along, and leave no orphan for others to collect."""
        try:
            if self.test_pid:
                os.kill(self.test_pid, 9)
                os.waitpid(self.test_pid, 0)
        finally:
            os._exit(1)

    def serve(self) -> None:
        """Answer each test with a result, until the host says that there are no more."""
        inputs: list[bytes] = []  # that have come and are not answered
        code, more = self.code, True
        while more or inputs:
            try:
                while more and (not inputs or (self.has_room_beside(inputs) and self.input_ready.poll(0))):
                    (size,) = TEST.unpack(_read_exact(self.fd, TEST.size))
                    more = size != END
                    if more:
                        inputs.append(self.take(size))
                if isinstance(code, int):
                    for _ in inputs:
                        self.answer(code, note=self.why)
                elif len(inputs) < 2 or self.has_timed_out() or not self.share(code, inputs):
                    for data in inputs:
                        if self.has_timed_out():
                            self.answer(NOT_RUN)
                        else:
                            self.test(code, data)
            except (OSError, Gone) as why:
                self.answer(FAULT, status=int(isinstance(why, Gone)), ran=1, stdout=f"{why}".encode())
                self.outbox.flush()
                os._exit(1)
            inputs.clear()
            if not self.may_wait or not more or not self.input_ready.poll(0):
                self.outbox.flush()

    def take(self, size: int) -> bytes:
        """An input that has come: of calls that may share a process its bytes, else b"", and it is in descriptor 0."""
        if self.names is not None:
            return _read_exact(self.fd, size)
        runs = not isinstance(self.code, int)
        if runs:
            self.file(0)
        while size:
            have = os.readv(self.fd, [self.coming[:size]])
            if not have:
                os._exit(0)  # the host has gone
            if runs:
                write_all(0, self.coming[:have])
            if not self.may_wait:
                self.coming[:have] = bytes(have)
            size -= have
        if runs:
            os.lseek(0, 0, 0)
        return b""

    def has_room_beside(self, inputs: list[bytes]) -> bool:
        """May one more call share a process with these?"""
        return self.names is not None and len(inputs) < _SHARED and sum(map(len, inputs)) < _SHARED_BYTES

    def answer(
        self, outcome: int, status: int = 0, ran: int = 0, cpu: float = 0.0, stdout: bytes = b"", note: bytes = b""
    ) -> None:
        self.timeouts += outcome == TIMEOUT
        self.outbox.put(outcome, status, ran, cpu, stdout, note[:NOTE_BYTES])

    def has_timed_out(self) -> bool:
        """So often that nothing more of it is run."""
        return bool(self.limits.timeouts) and self.timeouts >= self.limits.timeouts

    def test(self, code: CodeType, data: bytes) -> None:
        """Run the program once on this input, or on that in descriptor 0.

        Raises OSError when the machine cannot give what that takes.
        """
        for pause in _PAUSES:
            if self.names is not None:
                self.file(0, data)
            else:
                os.lseek(0, 0, 0)
            if self.own_source:
                walls.patiently(self.lay_down_its_source)
            out = self.file(running.VALUE_FD if self.mode == MODULE else 1)
            ended = self.wait(self.start(code, [], out), self.limits, suspicious=pause is not None)
            fit = self.conclude(*ended, out, pause is None)
            self.scratch.empty()
            if fit or pause is None:
                break
            time.sleep(pause)

    def lay_down_its_source(self) -> None:
        """A script finds itself beside it."""
        with open("program.py", "wb") as file:
            file.write(self.own_source)

    def share(self, code: CodeType, inputs: list[bytes]) -> bool:
        """Make all these calls in one process, and answer them. False: nothing is answered, make them one by one."""
        calls = []
        for data in inputs:
            call, given = taken_apart(data)
            if self.names is None or isinstance(call, int) or not stateless.leaves_only_its_value(call, self.names):
                return False
            calls.append((call, given))
        cpu, asleep, *others = self.limits
        limits = _Limits(min(cpu, _SHARED_SECONDS), min(asleep, _SHARED_SECONDS), *others)
        out = self.file(running.VALUE_FD)
        killed_for, status, usage = self.wait(self.start(code, calls, out), limits)  # it has no name for a file
        cpu = usage.ru_utime + usage.ru_stime
        # By itself, a call that takes much memory or fails may be told for it.
        if killed_for or status or cpu > limits.cpu_seconds or usage.ru_maxrss * _RSS_UNIT > limits.memory_bytes // 4:
            return False
        records, at, data = [], 0, os.pread(out, min(os.fstat(out).st_size, limits.output_bytes), 0)
        while at + running.RECORD.size <= len(data):
            outcome, size = running.RECORD.unpack_from(data, at)
            at += running.RECORD.size
            records.append((outcome, data[at : at + size]))
            at += size
        whole = at == len(data) and len(records) == len(inputs)
        if not whole or {outcome for outcome, _ in records} - _PLAIN_ENDS:
            return False
        for outcome, value in records:
            value, note = (b"", value) if outcome == RUNTIME_ERROR else (value, b"")
            self.answer(outcome, int(outcome != ENDED), 1, cpu / len(records), value, note)
        return True

    def start(self, code: CodeType, calls: list[tuple[CodeType, bytes]], out: int) -> int:
        """Fork a test process, which runs the program or makes the calls and writes to descriptor out: its id.

        Without calls, the input is in descriptor 0; a single call is compiled where no later test can find it.
        """
        self.slate[:] = CLEAN_SLATE
        if self.has_noted:
            self.slate[running.NOTE_AT] = running.NO_NOTE
        if self.enclosure.disk_is_shared:
            self.scratch.note_free_disk()
        self.test_pid = pid = walls.patiently(self.fork)
        if pid == 0:
            try:
                self.enclosure.follow_parent()
                if self.enclosure.tier == "limits":
                    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
                # flags, locks and owners belong to what was opened: a shared one would tell of an earlier test
                null = os.open("/dev/null", os.O_RDWR)
                given = b"" if calls or self.mode == MAIN else _read_exact(0, os.fstat(0).st_size)
                for number in (0, 1, 2) if self.mode == MODULE else (2,):
                    os.dup2(null, number)
                self.enclosure.shut(max(2, out), self.limits.memory_bytes, self.limits.output_bytes + 1)
                if self.mode == MAIN:
                    running.run_main(self.slate, code, self.last_words)
                elif calls:
                    running.run_calls(self.slate, code, calls)
                else:
                    running.run_call(self.slate, code, given)
            finally:
                os._exit(99)
        return pid

    def file(self, number: int, data: bytes = b"") -> int:
        """A new file under this descriptor, read from its start: in memory, else nameless in the scratch folder.

        Each test has files of its own: a descriptor that two share has one offset.
        """
        if self.enclosure.tier != "limits":
            fd = os.memfd_create("file", 0)
        else:
            fd = os.open("file", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.unlink("file")
        if data:
            write_all(fd, data)
            os.lseek(fd, 0, 0)
        os.dup2(fd, number)
        os.close(fd)
        return number

    def wait(self, pid: int, limits: _Limits, suspicious: bool = False) -> tuple[int, int, resource.struct_rusage]:
        """Until the test process has ended, or has had its time: (why it was killed or 0, exit status, usage).

        It is looked at when a lot says so, which a program that sleeps in between cannot foresee: os.urandom, since
        the test process has a copy of all that is in memory here. suspicious: FAULT says that the disk has shrunk
        while nothing in the scratch folder tells why.
        """
        enclosure, started = self.enclosure, time.monotonic()
        pause = min(_LOOK_SECONDS, limits.cpu_seconds, limits.asleep_seconds, limits.wall_seconds)
        killed_for, watch = 0, None
        while True:
            ended = self.has_ended_within(pid, pause * (0.5 + os.urandom(1)[0] / 512))
            if ended:
                status, usage = ended
                break
            wall = time.monotonic() - started
            watch = watch or walls.Watch(pid)
            watch.look(wall)
            left = min(limits.cpu_seconds - watch.computed, limits.asleep_seconds - watch.asleep)
            left = min(left, limits.wall_seconds - wall)
            if left <= 0:
                killed_for = TIMEOUT
            elif watch.threads > walls.THREADS + 1:
                killed_for = FORBIDDEN
            elif enclosure.disk_is_shared and not self.scratch.is_small():
                killed_for = OUTPUT_LIMIT
            elif enclosure.disk_is_shared and suspicious and self.scratch.disk_has_shrunk():
                killed_for = FAULT
            if killed_for:
                os.kill(pid, 9)
                _, status, usage = os.wait4(pid, 0)
                break
            pause = _LOOK_SECONDS if enclosure.disk_is_shared else min(max(left, 0.005), 0.25)
        self.test_pid = 0
        if enclosure.tier == "limits":
            _end_group(pid)
        return killed_for, os.waitstatus_to_exitcode(status), usage

    def has_ended_within(self, pid: int, seconds: float) -> tuple[int, resource.struct_rusage] | None:
        """(status, usage) of the test process, or None after so long, or when it has too many threads."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.enclosure.tier == "limits":
                ended: object = has_ended(pid, left)
            else:
                shared = self.enclosure.threads_are_shared
                ended = _signal.sigtimedwait(_CHILD_ENDED, min(left, _COUNT_SECONDS) if shared else left)
                if not ended and shared and os.stat(f"/proc/{pid}/task").st_nlink - 2 > walls.THREADS + 1:
                    return None
            if ended:
                done, status, usage = os.wait4(pid, os.WNOHANG)
                if done:
                    return status, usage
        return None

    def conclude(self, killed_for: int, status: int, usage: resource.struct_rusage, out: int, is_last: bool) -> bool:
        """Answer with what has become of a test; False: nothing is answered, it deserves another try."""
        outcome = self.outcome(killed_for, status, usage, os.fstat(out).st_size)
        if outcome == _UNFIT:
            if not is_last:
                return False
            if self.slate[running.HINT] == FAULT and self.scratch.disk_is_full():
                raise OSError(errno.ENOSPC, "the disk that holds the scratch folder is full")
            outcome = OUTPUT_LIMIT if self.slate[running.HINT] == FAULT else RUNTIME_ERROR
        self.timeouts += outcome == TIMEOUT
        size = min(os.fstat(out).st_size, self.limits.output_bytes)
        note = b"" if outcome == ENDED else self.noted()
        self.outbox.put_file(outcome, status, usage.ru_utime + usage.ru_stime, out, size, note)
        return True

    def noted(self) -> bytes:
        """What the test process has noted of its end: no more than a note may hold, and not looked into."""
        size = self.slate[running.NOTE_AT]
        if size > NOTE_BYTES:
            return b""
        self.has_noted = self.has_noted or size > 0
        return self.slate[running.NOTE_AT + 1 : running.NOTE_AT + 1 + size]

    def outcome(self, killed_for: int, status: int, usage: resource.struct_rusage, size: int) -> int:
        """Of a test that has ended with so many bytes of output, or _UNFIT."""
        limits, hint = self.limits, self.slate[running.HINT]
        if killed_for == FAULT:  # was it this one? The kernel counts what each has written, in blocks of 512
            return OUTPUT_LIMIT if usage.ru_oublock * 512 > walls.SCRATCH_BYTES else _UNFIT
        if killed_for:
            return killed_for
        if usage.ru_utime + usage.ru_stime > limits.cpu_seconds:
            return TIMEOUT
        if size > limits.output_bytes:
            return OUTPUT_LIMIT
        if status == -9 and self.enclosure.tier != "limits":  # it cannot send itself this, so somebody else has
            raise Gone("a test process was killed from outside (is the machine out of memory?)")
        if status == 0:
            return ENDED
        if hint == FAULT:  # no space: its own folder is full, or the disk of the machine
            return _UNFIT if self.enclosure.disk_is_shared and self.scratch.is_small() else OUTPUT_LIMIT
        if hint == NOT_RUN:  # no thread
            return _UNFIT if self.enclosure.threads_are_shared else RUNTIME_ERROR
        if hint in _BELIEVED:
            return hint
        if usage.ru_maxrss * _RSS_UNIT > 0.9 * limits.memory_bytes:
            return MEMORY_LIMIT
        return RUNTIME_ERROR


def _limit_softly(memory: int) -> None:
    """Bound this process for a while: a hard limit could not be lifted again."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (memory, _MEMORY_AT_START))
    except (ValueError, OSError):
        return  # a system that does not bound address space; the self-test has found that out


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, 9)
    except (ProcessLookupError, PermissionError):
        return  # nothing is left of it


def has_ended(pid: int, seconds: float) -> bool:
    """Has the child ended? Asked again and again, which works everywhere."""
    until, pause = time.monotonic() + seconds, 0.0005
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)
    return True
