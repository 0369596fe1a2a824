"""Where the CPU of one test goes, as milliseconds of a process that is forked for it and of its parent.

    python bench/fork.py                 the table in docs/decisions.md (about a minute)
    python bench/fork.py --collapse      the same with the heap in huge pages, as far as it fills them

A process that has loaded what a worker loads, and no more, forks children that do one part of a test each and end:

    fork         nothing: the fork, the end, and taking leave of it
    walls        what is installed for each test: the system call filter, limits, descriptors that are shut
    files        the two files in memory that a test reads from and writes to
    program      a program that reads two numbers and prints their sum
    tiny         fork, of a process of C that holds next to nothing; where there is a C compiler

A cost is what the child and its parent used, beyond that of `fork` where it is a part of a test; the median over rounds
in which all take turns. Left out: what a whole test costs through the grader (grading.py).
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from grading import walls, worker  # and nothing more up here: whatever is loaded is what a fork has to copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = compile("a, b = map(int, input().split())\nprint(a + b)\n", "program.py", "exec")
HUGE, MADV_COLLAPSE = 2 << 20, 25
TINY = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int n, char **argv) {
    for (int i = atoi(argv[1]); i; i--) {
        if (!fork()) _exit(0);
        wait(0);
    }
}
"""


def used() -> float:
    """CPU milliseconds of this process and its dead children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in both) * 1e3


def mappings() -> list[str]:
    with open("/proc/self/maps") as file:
        return file.read().splitlines()


def collapse() -> int:
    """Ask for huge pages wherever the heap fills one; how many were given."""
    given = 0
    walls._libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in mappings():
        place, rights, _, _, _, *name = line.split()
        if rights.startswith("rw") and name in ([], ["[heap]"]):
            start, end = (int(word, 16) for word in place.split("-"))
            for at in range(-(-start // HUGE) * HUGE, end // HUGE * HUGE, HUGE):
                given += walls._libc.madvise(at, HUGE, MADV_COLLAPSE) == 0
    return given


def forked(part: Callable[[], object], times: int) -> float:
    before = used()
    for _ in range(times):
        pid = walls.fork()
        if pid == 0:
            try:
                part()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    return (used() - before) / times


def measure(rounds: int, huge: bool, tiny: str) -> None:
    """As a worker would: print a line for each part of each round, and what there was to copy."""
    for name in worker._ALWAYS_WARM:
        __import__(name)
    machine, _ = walls.MACHINE[os.uname().machine]
    inner = walls._inner_filter(machine, disk_is_shared=False)
    walls._libc.prctl(walls._NO_NEW_PRIVS, 1, 0, 0, 0)
    given, out = os.memfd_create("given"), os.memfd_create("out")
    os.write(given, b"1 2\n")

    def shut() -> None:
        walls.setrlimit(walls.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        walls.limit_memory(1 << 30)
        os.closerange(3, walls.DESCRIPTORS)
        inner.install()

    def files() -> None:
        for number in (0, 1):
            fd = os.memfd_create("file", 0)
            os.write(fd, b"1 2\n")
            os.dup2(fd, number)
            os.close(fd)

    def program() -> None:
        os.lseek(given, 0, 0)
        os.dup2(given, 0), os.dup2(out, 1)
        exec(PROGRAM, {"__name__": "__main__", "__builtins__": builtins})
        sys.stdout.flush()

    parts: dict[str, Callable[[], object]] = {"fork": lambda: None, "walls": shut, "files": files, "program": program}
    gc.collect()
    gc.freeze()
    walls.trim()
    pages = collapse() if huge else 0
    with open("/proc/self/status") as status:
        kilobytes = status.read().split("RssAnon:")[1].split()[0]
    print(f"# {len(mappings())} mappings, {int(kilobytes) / 1024:.1f} MB of its own, {pages} huge pages", flush=True)
    for _ in range(rounds):
        for name, part in parts.items():
            print(name, forked(part, 100), flush=True)
        if tiny:
            before = used()
            os.waitpid(os.posix_spawn(tiny, [tiny, "200"], {}), 0)
            print("tiny", (used() - before) / 200, flush=True)


def main() -> None:
    import argparse
    import shutil
    import statistics
    import subprocess
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collapse", action="store_true", help="the heap in huge pages")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tiny = f"{folder}/tiny" if shutil.which("cc") else ""
        if tiny:
            subprocess.run(["cc", "-O2", "-static", "-x", "c", "-", "-o", tiny], input=TINY, text=True, check=True)
        command = [sys.executable, "-S", "-s", "-P", "-B", __file__, str(args.rounds), "yes"[: 3 * args.collapse], tiny]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in said[1:]]
    cost = {name: statistics.median(float(value) for one, value in rows if one == name) for name, _ in rows}
    for name, value in cost.items():
        print(f"{name:<8} {value if name in ('fork', 'tiny') else value - cost['fork']:.2f} ms")
    print(said[0])


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1].isdigit():
        measure(int(sys.argv[1]), bool(sys.argv[2]), sys.argv[3])
    else:
        main()
