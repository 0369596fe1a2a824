"""The self-test: what must come out of the sandbox before anything is graded.

    SELF_TEST   programs of every sort, attacks on the walls among them, and what must become of each

Each grader runs it in the tier that it is about to use, and again when a program has killed two workers. Left out:
running it (grader.py), and attacks in earnest (the tests).
"""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """A program, and what the sandbox must make of it. stdouts: () for any."""

    name: str
    program: str
    outcomes: tuple[str, ...]
    stdouts: tuple[bytes, ...] = (b"",)
    stdin: bytes = b""
    tiers: tuple[str, ...] = ("full", "strict", "limits")
    cpu_seconds: float = 1.0
    asleep_seconds: float = 1.0


_WALLED = ("full", "strict")
_TRY = """
try:
    {attack}
except OSError:
    print("refused")
else:
    print("DONE")
"""


def _refused(name: str, attack: str, before: str = "import os") -> Check:
    return Check(name, before + _TRY.format(attack=attack), ("ended",), (b"refused",), tiers=_WALLED)


SELF_TEST = (
    Check("a right program", "print(sum(map(int, input().split())))", ("ended",), (b"5",), b"2 3\n"),
    Check("a wrong program", "print(1 // 0)", ("runtime_error",)),
    Check("a hanging program", "while True:\n    pass", ("timeout",), cpu_seconds=0.1),
    Check("a sleeping program", "import time\ntime.sleep(9)", ("timeout",), asleep_seconds=0.15),
    Check("a greedy program", "held = [b'x' * (1 << 20) for _ in range(256)]", ("memory_limit",)),
    Check("a talkative program", "while True:\n    print('x' * 4096)", ("output_limit",), ()),
    _refused("reading a file", "open('/etc/passwd').read()"),
    _refused("listing the root", "os.listdir('/root' if os.path.isdir('/root') else '/home')"),
    _refused("writing outside", "open('/tmp/swarm-rescue-escape', 'w')"),
    _refused("a new process", "os.fork()"),
    _refused("another program", "os.execv('/bin/sh', ['sh', '-c', 'echo DONE'])"),
    _refused("a signal to the parent", "os.kill(os.getppid(), 9)"),
    _refused("a signal to everybody", "os.kill(-1, 9)"),
    _refused("a network socket", "_socket.socket(_socket.AF_INET, 1)", "import _socket"),
    _refused("a lease on the library", "fcntl.fcntl(os.open(os.__file__, 0), 1024, 1)", "import fcntl, os"),
    _refused("another's memory", "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
)
