"""The walls around a program: namespaces, Landlock, seccomp, limits, and which of them this machine offers.

Three tiers, best first; grader.py asks for one, and a self-test attacks it before anything is graded:

    full     own process, network, mount, IPC and host-name spaces; a root folder with nothing in it but the Python
             library, an empty scratch folder and /dev/null; another user where we are root; and all of strict
    strict   Landlock, a system-call filter, no privileges, limits: what an ordinary container still allows
    limits   resource limits and process groups, with POSIX alone: macOS, and kernels without Landlock; started by
             root, it becomes another user first or refuses

What full and strict promise about a program: it reads the Python installation and its own scratch folder and no other
file; it writes into that folder alone; it starts no process, opens no socket to anywhere, signals nobody but itself,
reads no other process's memory; its memory, output, threads and descriptors are bounded; nothing of it is left
behind. Refusals come back as EPERM or EACCES, so that a program which can live with a no goes on.

What they do not promise: a hole in the kernel is a hole in these walls; timing, CPU caches and the page cache are
visible; numbers that the kernel hands out count on from test to test, in full too: process ids tell a program how many
threads the tests before it have started, inodes (st_ino) how many files, so that one test can tell the next a number.
Calls 335 and 336 of x86-64 pass any filter (they end in SIGILL). The names and sizes (not the
contents) of files can be probed in strict. There the scratch folder lies on the host's disk and is watched every 50 ms
instead of being bounded by the kernel: between two looks a program can write what it can write in that time, and files
without a name are found out only once the disk has 256 MiB less, or half of what was free. As an ordinary user, strict
shares the count of threads with all else of that user: a program with too many is found after 5 ms, and what has
found none left meanwhile is tried again.
They also refuse some harmless things: modes and times of files cannot be changed, not even of one's own (no filter can
see whose they are), which shutil.copy and shelve do; sendmsg, by which descriptors are handed over and kept alive after
their owner's end (asyncio's writelines wants it from Python 3.12 on); and what needs a semaphore with a name, such as
multiprocessing.pool.ThreadPool, works in full (before Python 3.14, which starts a process for it) and limits only.
limits promises much less: time, memory (where the system enforces it), output and a clean verdict, but a program there
can read files and start processes. No tier knows an expected answer, so even a program that climbs every wall finds
none.

Standard library only. Nothing here knows what a test is.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal itself would bring in half the library
import ctypes
import errno
import os
import resource
import struct
import sys
import time
from resource import RLIMIT_AS, RLIMIT_FSIZE, setrlimit

TYPE_CHECKING = False
if TYPE_CHECKING:  # a worker does without
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

PATIENCE = 5.0  # seconds
THREADS = 64
DESCRIPTORS = 64
TIERS = ("full", "strict", "limits")
MACHINE = {"x86_64": ("x86_64", 0xC000003E), "aarch64": ("aarch64", 0xC00000B7), "arm64": ("aarch64", 0xC00000B7)}

# System calls by name, with their numbers on x86-64 and on aarch64 (- where the machine has none of that name).
# What a program may call with any arguments:
ALLOWED = """
    read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69,
    pwritev 296 70, preadv2 327 286, pwritev2 328 287, lseek 8 62, open 2 -, openat 257 56, openat2 437 437,
    creat 85 -, close 3 57, dup 32 23, dup2 33 -, dup3 292 24,
    flock 73 32, fsync 74 82, fdatasync 75 83, ftruncate 77 46, fadvise64 221 223,
    sendfile 40 71, copy_file_range 326 285, splice 275 76, tee 276 77, stat 4 -, fstat 5 80, lstat 6 -,
    newfstatat 262 79, statx 332 291, access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -,
    readlinkat 267 78, getcwd 79 17, chdir 80 49, fchdir 81 50, getdents 78 -, getdents64 217 61, mkdir 83 -,
    mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38,
    renameat2 316 276, link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36, umask 95 166, statfs 137 43,
    fstatfs 138 44, pipe 22 -, pipe2 293 59, poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72,
    epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22,
    epoll_pwait2 441 441, eventfd 284 -, eventfd2 290 19, timerfd_create 283 85, timerfd_settime 286 86,
    timerfd_gettime 287 87, signalfd 282 -, signalfd4 289 74, recvfrom 45 207, recvmsg 47 212, shutdown 48 210,
    getsockopt 55 209, setsockopt 54 208, getsockname 51 204,
    getpeername 52 205, mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233,
    msync 26 227, mincore 27 232, brk 12 214, mlock 149 228, munlock 150 229, membarrier 324 283,
    rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136,
    rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -, alarm 37 -,
    setitimer 38 103, getitimer 36 102, timer_create 222 107, timer_settime 223 110, timer_gettime 224 108,
    timer_getoverrun 225 109, timer_delete 226 111, wait4 61 260, waitid 247 95, exit 60 93,
    exit_group 231 94, futex 202 98, set_robust_list 273 99, rseq 334 293, set_tid_address 218 96,
    arch_prctl 158 -, restart_syscall 219 128, sched_yield 24 124, sched_getaffinity 204 123,
    sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125,
    sched_get_priority_min 147 126, getcpu 309 168, getpriority 140 141, getpid 39 172, gettid 186 178,
    getppid 110 173, getpgid 121 155, getpgrp 111 -, getsid 124 156, getuid 102 174, geteuid 107 175,
    getgid 104 176, getegid 108 177, getresuid 118 148, getresgid 120 150, getgroups 115 158, capget 125 90,
    uname 63 160, sysinfo 99 179, times 100 153, getrusage 98 165, getrlimit 97 163,
    getrandom 318 278, nanosleep 35 101, clock_nanosleep 230 115, clock_gettime 228 113,
    clock_getres 229 114, gettimeofday 96 169, time 201 -"""
# What a program may call with some arguments: clone for a thread, signals to itself, its own limits, its own pairs,
# which it may write to and not send to; sendmsg, which can send a descriptor, is not among them.
JUDGED = """
    clone 56 220, kill 62 129, tkill 200 130, tgkill 234 131, setrlimit 160 164, prlimit64 302 261, prctl 157 167,
    socketpair 53 199, sendto 44 206, fcntl 72 25, ioctl 16 29, close_range 436 436, fallocate 285 47"""
# What the trusted parent of a program calls as well:
TRUSTED = """
    fork 57 -, vfork 58 -, memfd_create 319 279, pidfd_open 434 434, landlock_restrict_self 446 446,
    seccomp 317 277, chmod 90 -, fchmod 91 52, fchmodat 268 53"""
# What is called only while the walls go up, and clone3, whose flags no filter can see:
SETTING_UP = """
    clone3 435 435, landlock_create_ruleset 444 444, landlock_add_rule 445 445, unshare 272 97, mount 165 40,
    umount2 166 39, pivot_root 155 41, capset 126 91"""
_NEWER = 448  # calls newer than the tables: "not there" (ENOSYS) lets libraries fall back, "not allowed" would not


def numbers(table: str, machine: str) -> dict[str, int]:
    """{name: number} of a table above on "x86_64" or "aarch64"."""
    column = 1 if machine == "x86_64" else 2
    rows = [entry.split() for entry in table.split(",")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def trim() -> None:
    """Give memory that is free inside this process back to the system: each page left is copied a fork at a time."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def flush_c() -> None:
    """Write what was printed through the C library and is still held there."""
    _libc.fflush(None)


class Denied(Exception):
    """This machine does not offer the tier; the text says which wall could not be built."""


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_fork = ctypes.PyDLL(None, use_errno=True).fork


def fork() -> int:
    """os.fork for a process with one thread, without what Python does around it: that costs a third of a short test.

    Nothing of it matters here: there is no other thread whose locks and state would have to be put right, and no
    after-fork hook to run (random and threading register some). The interpreter's lock is ours before and after.
    """
    pid = int(_fork())
    if pid < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return pid


def patiently(what: Callable[[], T]) -> T:
    """Do it. Where the machine has no room for it just now, be it processes or disk, try again for some seconds.

    A program that takes all of either is found out and ended within that time: it must not end the run.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return what()
        except OSError as why:
            if why.errno not in (errno.EAGAIN, errno.ENOSPC) or time.monotonic() > until:
                raise
        time.sleep(0.005)


def tell_only_of_deaths() -> None:
    """A child that stops or goes on shall send no SIGCHLD: by that, a program could choose when it is looked at."""
    _libc.sigaction(_signal.SIGCHLD, struct.pack("@P128xiP", 0, 1, 0), None)  # SIG_DFL, SA_NOCLDSTOP


def _call(what: str, function: Callable[..., int], *args: object) -> int:
    result = int(function(*args))
    if result < 0:
        code = ctypes.get_errno()
        raise Denied(f"{what}: {os.strerror(code)}")
    return result


def _syscall(name: str, *args: object) -> int:
    machine = MACHINE[os.uname().machine][0]
    number = numbers(",".join((ALLOWED, JUDGED, TRUSTED, SETTING_UP)), machine)[name]
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return _call(name, _libc.syscall, ctypes.c_long(number), *wide)


# ── namespaces and the empty root ────────────────────────────────────────────────────────────────────────────────────
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18
)  # fmt: skip
_PDEATHSIG, _SET_DUMPABLE, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _SIGKILL = 1, 4, 24, 36, 38, 9
_DEVICES = ("null", "zero", "full", "random", "urandom")
SCRATCH_BYTES = 64 << 20  # all files of one program together
SCRATCH_FILES = 2000


def readable() -> list[str]:
    """What a program may read: the standard library and the shared libraries that its extension modules need."""
    library = os.path.realpath(os.path.dirname(os.__file__))
    places = [os.path.dirname(library), library, "/lib", "/lib64", "/usr/lib", "/usr/lib64"]
    places += ["/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo"]
    return [p for p in dict.fromkeys(places) if os.path.exists(p)]


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    kind_, options_ = kind.encode() if kind else None, options.encode() if options else None
    _call(f"mount {target}", _libc.mount, source.encode(), target.encode(), kind_, ctypes.c_ulong(flags), options_)


def _unshare() -> bool:
    """Enter new namespaces, through a user namespace where we may not do it directly; True if that was needed."""
    spaces = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET
    if os.geteuid() == 0 and _libc.unshare(spaces) == 0:
        return False
    uid, gid = os.geteuid(), os.getegid()
    _call("namespaces", _libc.unshare, spaces | _NEWUSER)
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError as why:
        raise Denied(f"user namespace: {why}") from None
    return True


def _empty_root(base: str) -> None:
    """Make a root of nothing but what a program may read, and move into it. base: any folder to mount over."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", base, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    for place in readable():
        target = base + place
        if os.path.exists(target):
            continue  # inside a folder that is there already
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(place):  # /lib -> usr/lib
            os.symlink(os.readlink(place), target)
            continue
        _bind(place, target)
    os.makedirs(base + "/dev")
    os.symlink("/scratch", base + "/dev/shm")  # where the C library keeps semaphores: a pool of threads has some
    for device in _DEVICES:
        if os.path.exists("/dev/" + device):
            _bind("/dev/" + device, f"{base}/dev/{device}", read_only=False)
    for name, path in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{path}", f"{base}/dev/{name}")
    for name in ("proc", "scratch", "old"):
        os.mkdir(f"{base}/{name}")
    _mount("proc", base + "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    limits = f"size={SCRATCH_BYTES},nr_inodes={SCRATCH_FILES},mode=700"
    _mount("tmpfs", base + "/scratch", "tmpfs", _MS_NOSUID | _MS_NODEV, limits)
    _syscall("pivot_root", base.encode(), f"{base}/old".encode())
    os.chdir("/")
    _call("umount", _libc.umount2, b"/old", 2)  # 2: detach
    os.rmdir("/old")
    _mount("none", "/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _bind(place: str, target: str, read_only: bool = True) -> None:
    if os.path.isdir(place):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(place, target, None, _MS_BIND | _MS_REC)
    if read_only:  # flags that the place already has are locked in a user namespace and must be named again
        had = os.statvfs(target).f_flag & (_MS_NOSUID | _MS_NODEV | _MS_NOEXEC | 1024 | 2048)
        _mount("none", target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | had)


# ── privileges ───────────────────────────────────────────────────────────────────────────────────────────────────────
def _can_be_read_by_anyone(path: str) -> bool:
    if not os.stat(path).st_mode & 0o004:
        return False
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 0o001:
            return False
    return True


def _become_nobody_in_particular(scratch: str, by_name_alone: bool = False) -> None:
    """Take a user id that nobody else has, so that counts and signals stay among this worker's own.

    By lot: containers of one machine share its users, and process ids repeat from one to the next. by_name_alone: only
    the real one, which the kernel counts threads by; files are opened by the other, as before.
    """
    number = int.from_bytes(os.urandom(3), "little")
    for uid in (1_900_000_000 + number, 60_000 + number % 5000):  # containers may have 65,536 ids only
        try:
            if by_name_alone:
                os.setresuid(uid, -1, -1)
                return
            os.chown(scratch, uid, uid)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            return
        except OSError as why:
            reason = why
    raise Denied(f"another user id: {reason}")


def _check_library() -> None:
    try:
        open(os.__file__, "rb").close()
    except OSError as why:
        raise Denied(f"the Python library cannot be read from inside: {why}") from None


def _drop_capabilities() -> None:
    for capability in range(64):
        if _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # past the last one, or not ours to drop
    header = struct.pack("=Ii", 0x20080522, 0)
    _syscall("capset", ctypes.create_string_buffer(header), ctypes.create_string_buffer(24))


# ── Landlock ─────────────────────────────────────────────────────────────────────────────────────────────────────────
_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute (a library is mapped), read a file, list a folder
_FILE_ONLY = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_SCRATCH = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 13 | 1 << 14
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many rights over files each version of the interface knows; later: 16


def _ruleset(scratch: str) -> int:
    """A descriptor of the rules: read the library, use the scratch folder, and no network."""
    version = _syscall("landlock_create_ruleset", None, 0, 1)
    known = (1 << _RIGHTS.get(version, 16)) - 1
    attributes = struct.pack("=QQQ", known, 3, 3)  # files; bind and connect; abstract sockets and signals
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _syscall("landlock_create_ruleset", ctypes.create_string_buffer(attributes), size, 0)
    rules = [(place, _READ) for place in readable()] + [(scratch, _SCRATCH)]
    rules += [(f"/dev/{device}", 1 << 1 | 1 << 2 | 1 << 14) for device in _DEVICES if os.path.exists(f"/dev/{device}")]
    for place, rights in rules:
        try:
            opened = os.open(place, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
        except OSError:
            continue
        rights &= known if os.path.isdir(place) else known & _FILE_ONLY
        rule = struct.pack("=Qi", rights, opened)
        _syscall("landlock_add_rule", ruleset, 1, ctypes.create_string_buffer(rule), 0)
        os.close(opened)
    return ruleset


# ── seccomp: filters are programs of (operation, jump if true, jump if false, operand) ────────────────────────────────
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_REFUSE, _NOT_THERE, _NOT_SUPPORTED = (0x50000 | code for code in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP))
_NUMBER, _ARCH, _ARG = 0, 4, (16, 24, 32, 40, 48)  # offsets in what a filter sees; low halves of the first arguments
_HIGH = 4  # from there to the high half
_CLONE_FILES, _CLONE_THREAD = 0x400, 0x10000
_NAME_OPTIONS = (15, 16, 0x53564D41)  # prctl: thread names, names of mappings
# fcntl: copies of descriptors, their flags, record locks; copies to be closed at an exec, sizes of pipes, seals, hints.
# Not: a lease (who opens that file then waits), watching a folder, having signals sent, and what kernels may learn.
_FCNTL = (0, 8, 36, 39, 1030, 1039)  # from, and up to before
_TERMINAL, _CLONE_FILE = 0x5400, (0x40049409, 0x4020940D)  # ioctl: those of terminals and descriptors; FICLONE
_UNSHARE = 2  # close_range: in a table of descriptors of one's own
_Steps = list[tuple[int, int, int, int]]


class _Filter:
    """A program for the kernel, kept in memory of its own so that installing it is one call."""

    def __init__(self, steps: list[tuple[int, int, int, int]]) -> None:
        self.code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
        self.head = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(self.code)))
        self.number = numbers(TRUSTED, MACHINE[os.uname().machine][0])["seccomp"]
        self.args = (ctypes.c_long(self.number), ctypes.c_long(1), ctypes.c_long(4), self.head)  # 4: no slow mode

    def install(self) -> None:
        if _libc.syscall(*self.args) != 0:
            raise Denied(f"seccomp: {os.strerror(ctypes.get_errno())}")


def _outer_filter(machine: str, arch: int) -> _Filter:
    """What the worker keeps for good: the calls of all three tables and no others."""
    allowed = [*numbers(ALLOWED, machine).values(), *numbers(JUDGED, machine).values()]
    allowed += numbers(TRUSTED, machine).values()
    steps = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    steps += [(_AT_LEAST, 0, 1, _NEWER), (_RETURN, 0, 0, _NOT_THERE)]
    steps += [(_EQUAL, 0, 1, numbers(SETTING_UP, machine)["clone3"]), (_RETURN, 0, 0, _NOT_THERE)]
    steps += [(_EQUAL, len(allowed) - i, 0, number) for i, number in enumerate(sorted(allowed))]
    return _Filter([*steps, (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)])


_PID = 0x7E57_91D0  # stands for the program's own id until it is known


def _inner_filter(machine: str, disk_is_shared: bool) -> _Filter:
    """What a program gets on top: no new process, no signal to others, and nothing of what its parent needs.

    disk_is_shared: what is written to it must take time, to be seen in time.
    """
    number = numbers(JUDGED, machine)
    allow, refuse = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)

    def signal(signal_at: int) -> _Steps:  # to itself; KILL would look like the host's own
        return [(_LOAD, 0, 0, _ARG[0]), (_EQUAL, 1, 0, _PID), refuse,
                (_LOAD, 0, 0, _ARG[signal_at]), (_EQUAL, 0, 1, _SIGKILL), refuse, allow]  # fmt: skip

    def one_of(values: tuple[int, ...]) -> _Steps:
        return [*((_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)), refuse, allow]

    judged: dict[str, _Steps] = {
        "clone": [(_LOAD, 0, 0, _ARG[0]), (_ANY_BIT, 0, 2, _CLONE_THREAD), (_ANY_BIT, 0, 1, _CLONE_FILES), allow,
                  refuse],
        "kill": signal(1),
        "tkill": signal(1),
        "tgkill": signal(2),
        # Its own limits, but not that of CPU time: death by that one would look like the host's own KILL too.
        "setrlimit": [(_LOAD, 0, 0, _ARG[0]), (_EQUAL, 0, 1, 0), refuse, allow],
        "prlimit64": [
            (_LOAD, 0, 0, _ARG[0]), (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, _PID), refuse,
            (_LOAD, 0, 0, _ARG[1]), (_EQUAL, 1, 0, 0), allow,
            (_LOAD, 0, 0, _ARG[2]), (_EQUAL, 0, 3, 0), (_LOAD, 0, 0, _ARG[2] + _HIGH), (_EQUAL, 0, 1, 0), allow,
            refuse,
        ],
        "prctl": [(_LOAD, 0, 0, _ARG[0]), *one_of(_NAME_OPTIONS)],
        "socketpair": [(_LOAD, 0, 0, _ARG[0]), *one_of((1,))],
        "sendto": [(_LOAD, 0, 0, _ARG[4]), (_EQUAL, 0, 3, 0), (_LOAD, 0, 0, _ARG[4] + _HIGH), (_EQUAL, 0, 1, 0), allow,
                   refuse],
        "fcntl": [(_LOAD, 0, 0, _ARG[1]), (_AT_LEAST, 5, 0, _FCNTL[5]), (_AT_LEAST, 5, 0, _FCNTL[4]),
                  (_AT_LEAST, 3, 0, _FCNTL[3]), (_AT_LEAST, 3, 0, _FCNTL[2]), (_AT_LEAST, 1, 0, _FCNTL[1]), allow,
                  refuse, allow],
        "ioctl": [(_LOAD, 0, 0, _ARG[1]), (_EQUAL, 4, 0, _CLONE_FILE[0]), (_EQUAL, 3, 0, _CLONE_FILE[1]),
                  (_MASK, 0, 0, 0xFF00), (_EQUAL, 1, 0, _TERMINAL), refuse, allow],
        "close_range": [(_LOAD, 0, 0, _ARG[2]), (_ANY_BIT, 0, 1, _UNSHARE), refuse, allow],
        "fallocate": [(_RETURN, 0, 0, _NOT_SUPPORTED) if disk_is_shared else allow],
    }  # fmt: skip
    rules = [(number[name], steps) for name, steps in judged.items()]
    rules += [(trusted, [refuse]) for trusted in numbers(TRUSTED, machine).values()]
    return _Filter([(_LOAD, 0, 0, _NUMBER), *_by_number(sorted(rules))])


def _by_number(rules: list[tuple[int, _Steps]]) -> _Steps:
    """Steps that find the rule of a system call by halves: the kernel tries them on every number, a test at a time."""
    if len(rules) < 3:
        steps = [step for number, judge in rules for step in ((_EQUAL, 0, len(judge), number), *judge)]
        return [*steps, (_RETURN, 0, 0, _ALLOW)]
    half = len(rules) // 2
    below = _by_number(rules[:half])
    return [(_AT_LEAST, len(below), 0, rules[half][0]), *below, *_by_number(rules[half:])]


# ── the walls themselves ─────────────────────────────────────────────────────────────────────────────────────────────
class Walls:
    """Built once in a worker, which keeps the outer ones; shut() puts the inner ones around one program.

    tier: of TIERS. scratch: an empty folder on the host that this worker has for itself. keep: descriptors that stay
    open in the process that full leaves outside as a door-keeper. Raises Denied.
    """

    def __init__(self, tier: str, scratch: str, keep: int) -> None:
        self.tier, self.scratch = tier, scratch
        self.disk_is_shared = tier != "full"  # with the host, so that what is written must be watched
        self.threads_are_shared = True  # with all processes of the host's user, so that they must be counted here
        self.ruleset = -1
        for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, DESCRIPTORS)):
            resource.setrlimit(what, (most, most))
        if tier == "limits":
            if os.geteuid() == 0:
                if not _can_be_read_by_anyone(os.path.realpath(os.__file__)):
                    raise Denied(
                        "limits alone do not hold a program of root, and no other user can read this Python; "
                        "run as an ordinary user, or with a Python that is not in a private folder"
                    )
                _become_nobody_in_particular(scratch)
        else:
            if sys.platform != "linux" or os.uname().machine not in MACHINE:
                raise Denied(f"{sys.platform} on {os.uname().machine}: Landlock and seccomp filters are not there")
            self._build(keep)
        os.chdir(self.scratch)

    def _build(self, keep: int) -> None:
        machine, arch = MACHINE[os.uname().machine]
        own_user = is_root = os.geteuid() == 0
        if self.tier == "full":
            own_user = not _unshare() and own_user
            self._step_inside(keep)
            _empty_root(self.scratch)
            self.scratch = "/scratch"
        elif own_user:
            own_user = _can_be_read_by_anyone(os.path.realpath(os.__file__))
        _call("no_new_privs", _libc.prctl, _NO_NEW_PRIVS, 1, 0, 0, 0)
        self.ruleset = _ruleset(self.scratch)
        if own_user or (is_root and self.tier == "strict"):
            _become_nobody_in_particular(self.scratch, by_name_alone=not own_user)
        _drop_capabilities()
        _check_library()
        self.threads_are_shared = self.tier == "strict" and not is_root
        if not self.threads_are_shared:  # counted per user, so only where this worker has one to itself
            resource.setrlimit(resource.RLIMIT_NPROC, (THREADS + 3, THREADS + 3))
        _libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        _libc.prctl(_PDEATHSIG, _SIGKILL if self.tier == "full" else 0, 0, 0, 0)
        tell_only_of_deaths()
        _libc.prctl(_SUBREAPER, 1, 0, 0, 0)  # what a killed program process leaves is ours to collect
        self._restrict = (ctypes.c_long(numbers(TRUSTED, machine)["landlock_restrict_self"]),
                          ctypes.c_long(self.ruleset), ctypes.c_long(0))  # fmt: skip
        self.inner = _inner_filter(machine, self.disk_is_shared)
        self._words = memoryview(self.inner.code)[:-1].cast("B").cast("I")  # without the closing NUL
        self._pids = [at for at, word in enumerate(self._words) if word == _PID]
        _outer_filter(machine, arch).install()

    def _step_inside(self, keep: int) -> None:
        """Only a child enters a new process space. The parent waits at the door and dies with what is inside."""
        inside = patiently(fork)
        if inside == 0:
            return
        os.close(keep)
        _, status = os.waitpid(inside, 0)
        os._exit(min(255, abs(os.waitstatus_to_exitcode(status))))

    def follow_parent(self) -> None:
        """Die when the parent does. In full the worker's process space sees to it, in limits nothing can."""
        if self.tier == "strict":
            _libc.prctl(_PDEATHSIG, _SIGKILL, 0, 0, 0)

    def shut(self, keep: int, memory: int, file_size: int) -> None:
        """In the process that will run a program, as the last thing before it: one way, for good.

        keep: the highest descriptor that stays open, past 2 it alone. memory, file_size: bytes.
        """
        if self.tier == "limits":
            os.setpgid(0, 0)
        elif _libc.syscall(*self._restrict) != 0:
            raise Denied(f"landlock: {os.strerror(ctypes.get_errno())}")
        if keep > 2:
            os.closerange(3, keep)
        os.closerange(keep + 1, DESCRIPTORS)
        setrlimit(RLIMIT_FSIZE, (file_size, file_size))
        limit_memory(memory)
        if self.tier != "limits":
            pid = os.getpid()
            for at in self._pids:
                self._words[at] = pid
            self.inner.install()


def limit_memory(memory: int) -> None:
    """Bound the address space (bytes). Some systems refuse; the self-test finds out what that means."""
    try:
        setrlimit(RLIMIT_AS, (memory, memory))
    except (ValueError, OSError):
        if sys.platform == "linux":
            raise


# ── looking at a program from outside ────────────────────────────────────────────────────────────────────────────────
class Watch:
    """How long a process has computed, waited for a processor, and slept; looked at now and then, from its parent.

    A machine that is busy makes a program wait, which is not its fault; a program that sleeps does so by itself. Time
    counts as sleep when it was spent neither computing nor waiting for a processor (schedstat of every thread) and
    every thread is asleep at the moment: what a hypervisor takes away, or a wait that is not over yet, is in no
    counter, but leaves a thread ready to run. Elsewhere than on Linux `ps` tells as much.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.linux = os.path.isdir(f"/proc/{pid}/task")
        self.waited: dict[str, float] = {}  # seconds a thread has waited for a processor
        self.computed = self.asleep = self.seen_at = 0.0
        self.threads = 1

    def look(self, wall: float) -> None:
        """wall: seconds since the start of the process. Updates computed, asleep (seconds) and threads."""
        before, waited_before = self.computed, sum(self.waited.values())
        ready = self._look_at_threads() if self.linux else self._look_at_ps()
        if not ready:
            busy = self.computed - before + sum(self.waited.values()) - waited_before
            self.asleep += max(0.0, wall - self.seen_at - busy)
        self.seen_at = wall

    def _look_at_threads(self) -> bool:
        """Is any of them running or ready to?"""
        ready = False
        threads = os.listdir(f"/proc/{self.pid}/task")
        for thread in threads:
            try:
                with open(f"/proc/{self.pid}/task/{thread}/stat", "rb", 0) as file:
                    ready |= file.read().rpartition(b") ")[2].startswith(b"R")
                with open(f"/proc/{self.pid}/task/{thread}/schedstat", "rb", 0) as file:
                    self.waited[thread] = int(file.read().split()[1]) / 1e9
            except (OSError, ValueError, IndexError):
                continue  # it has just ended
        self.threads = len(threads)
        self.computed = time.clock_gettime(~self.pid << 3 | 2)  # the clock of a whole process, ended threads included
        return ready

    def _look_at_ps(self) -> bool:
        import subprocess

        shown = subprocess.run(["ps", "-o", "time=,state=", "-p", str(self.pid)], capture_output=True, text=True)
        used, _, state = shown.stdout.strip().rpartition(" ")
        computed = 0.0
        for part in used.strip().replace("-", ":").split(":"):
            computed = computed * 60 + float(part or 0)
        self.computed = max(self.computed, computed)
        return state[:1] not in ("S", "D", "I", "T", "U")
