"""The worker: one process per core, warm, walled in once, that never sees a program or an input.

It hands its end of the socket to a program process (supervise.py) and reads nothing itself, so that nothing of one
program is ever in the memory of another. A compile bomb kills the program process only, and the worker then answers in
its place. This file and what it imports are all that a worker loads: the standard library, and few modules of it, since
every test is a copy of what is in memory here. The host imports it too, which leaves it compiled for the workers.

Left out: starting it (sandbox.py).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import builtins
import gc
import mmap
import os
import select
import sys

from grading import protocol, stateless, walls
from grading.running import write_all
from grading.supervise import EMPTY_SLATE, ProgramProcess, has_ended

# Loaded before anything else, since nearly every program names them; more would cost more.
_ALWAYS_WARM = ("bisect", "collections", "functools", "heapq", "itertools", "math", "operator")


def serve(fd: int, tier: str, scratch: str) -> None:
    """The life of a worker process. It ends when the host's end of the socket does."""
    try:
        enclosure = walls.Walls(tier, scratch, fd)
    except (walls.Denied, OSError) as why:
        _say(fd, f"{why}")
        return
    stateless.learn()
    for name in _ALWAYS_WARM:
        __import__(name)
    import _thread

    _thread.stack_size(8 << 20)  # else every thread gets as much as the main one, address space for three
    sys.set_int_max_str_digits(0)
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    builtins.help = __import__("_sitebuiltins")._Helper()
    sys.argv = ["program.py"]
    for name in [name for name in sys.modules if name.split(".")[0] == "grading"]:  # a program imports its own
        del sys.modules[name]
    slate = mmap.mmap(-1, 4096)
    gc.collect()
    gc.freeze()
    walls.trim()
    write_all(fd, protocol.HELLO)
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    hung_up = select.poll()
    hung_up.register(fd, 0)
    while True:
        if ready.poll()[0][1] & select.POLLHUP:
            os._exit(0)  # the host has gone; what else comes is for the program process alone to read
        slate[:] = EMPTY_SLATE
        try:
            pid = walls.patiently(os.fork if enclosure.tier == "limits" else walls.fork)
        except OSError as why:
            _say(fd, f"no process for a program: {why}")
            os._exit(1)
        if pid == 0:
            try:
                enclosure.follow_parent()
                ProgramProcess(fd, enclosure, slate).run()
            except BaseException:
                os._exit(1)
            os._exit(0)
        status = _wait_or_hang_up(pid, hung_up, enclosure)
        if status == 0:
            continue
        if slate[0]:
            os._exit(1)
        _answer_for_the_dead(fd, enclosure, slate, status)


def _say(fd: int, fault: str) -> None:
    text = fault.encode()
    write_all(fd, protocol.RESULT.pack(protocol.RESULT_MAGIC, protocol.FAULT, 0, 0, 0.0, 0, len(text)) + text)


def _wait_or_hang_up(pid: int, hung_up: select.poll, enclosure: walls.Walls) -> int:
    """The exit status of the program process; or, when the host hangs up, the end of it all."""
    ended = -1
    if enclosure.tier != "limits":
        ended = os.pidfd_open(pid)
        hung_up.register(ended, select.POLLIN)
    while True:
        news = hung_up.poll(None if ended >= 0 else 2)
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if any(which != ended for which, _ in news):
            os.kill(pid, _signal.SIGTERM)
            if not has_ended(pid, 1.0):
                os.kill(pid, _signal.SIGKILL)
            try:
                if enclosure.tier == "full":
                    os.kill(-1, _signal.SIGKILL)  # all that is left in our process space
                while True:  # in strict a test process dies with its parent, and comes to us
                    os.waitpid(-1, 0)
            finally:
                os._exit(0)
    if ended >= 0:
        hung_up.unregister(ended)
        os.close(ended)
    return os.waitstatus_to_exitcode(status)


def _answer_for_the_dead(fd: int, enclosure: walls.Walls, slate: mmap.mmap, status: int) -> None:
    """The program did not survive being compiled: say so for each of its tests."""
    if status == -_signal.SIGKILL:
        os._exit(1)
    stand_in = ProgramProcess(fd, enclosure, slate)
    stand_in.code = protocol.TIMEOUT if status == -_signal.SIGXCPU else protocol.SYNTAX_ERROR
    stand_in.serve()
