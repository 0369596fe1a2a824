"""What a reply is worth: the program in it is run on the tests, what comes of it is compared outside and filed.

    Grader          runs programs in a pool of sandboxed workers and keeps every expected value on this side of it
    extract_code    the program in a model's reply, or None (extract.py)
    outputs_match   does what a program printed match what the test expects (compare.py)

The promise: an expected output never enters the process that runs the program. A program sends back bytes, or
for an assert a value as plain data, and everything that judges them runs here or in a clean process that has never
seen the program. A fault of the machinery is a GraderFault and never a failed test.

    python grader.py --serve      for another program: replies in, grades out, as JSON lines (grading/serve.py); what
                                  starts it and asks it from a trainer is reward.py

Left out: how an assert is decided (asserts.py, dialogue.py), how a program is kept in (walls.py), how bytes go in and
out (sandbox.py), where tasks come from (tasks.py), special judges, and any language but Python.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import sys
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from faults import GraderFault, TaskError
from grading.compare import clip_around, difference
from grading.compare import outputs_match as outputs_match
from grading.extract import extract_code as extract_code
from grading.grade import CLIP, LETTERS, Grade, TestResult, clip, rules_of, tally
from grading.prelude import behind
from grading.self_test import SELF_TEST, Check
from tasksets.task import Task, Test

if sys.platform != "win32":  # there, all but the grader itself still works
    from grading import dialogue, protocol, raised, sandbox, stateless, sweep, walls

_KEPT = 8192  # verdicts remembered
_LARGE = 1 << 13  # characters
_T = TypeVar("_T")


class Grader:
    """Runs programs in a pool of sandboxed workers. Async context manager; safe to use from many tasks at once.

    workers: processes, None = one per core. as_published: grade as the published recipe does (wall time, 1e-6 on
    all numbers, no stop after three timeouts). tier: None = the best this machine offers, else of walls.TIERS.
    limits: of one test, for every program; a task's own timeout goes before it.
    Raises GraderFault when it cannot start or the machine gives out.
    """

    def __init__(
        self,
        workers: int | None = None,
        as_published: bool = False,
        tier: str | None = None,
        limits: sandbox.Limits | None = None,
    ) -> None:
        if sys.platform == "win32":
            raise GraderFault("programs cannot be walled in on Windows: run this in a Linux container or in WSL")
        affinity = getattr(os, "sched_getaffinity", None)
        self.workers = workers or (len(affinity(0)) if affinity else os.cpu_count() or 1)
        self.as_published = as_published
        self.wanted_tier = tier
        self.tier = ""
        self.limits = limits or sandbox.Limits()
        self.counts = {"graded": 0, "repeated": 0}
        self._base, self._lock = "", -1
        self._closed = False
        self._numbers = itertools.count()
        self._idle: asyncio.Queue[sandbox.WorkerProcess] = asyncio.Queue()
        self._all: list[sandbox.WorkerProcess] = []
        self._known: dict[Hashable, asyncio.Future[Any]] = {}

    @property
    def remarks(self) -> list[str]:
        """What is different on this machine without being wrong, a line each."""
        python = ".".join(map(str, sys.version_info[:2]))
        slow = f"Python {python} is newer than this code, so asserts share no process: the same verdicts, twice the CPU"
        return [] if stateless.is_known() else [slow]

    @property
    def rules(self) -> str:
        return rules_of(self.as_published)

    async def __aenter__(self) -> Grader:
        try:
            await asyncio.to_thread(sweep.swept)
            self._base, self._lock = sweep.made()
        except OSError as why:
            raise GraderFault(f"no temporary folder for the sandbox: {why}; set TMPDIR to a disk with room") from None
        try:
            await self._settle()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._closed = True  # whoever is still at work now gets no new worker
        for worker in self._all:
            worker.kill()
        while self._all:
            await asyncio.shield(asyncio.to_thread(self._all.pop().wait))
        sweep.remove(self._base)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _settle(self) -> None:
        """Take the best tier whose walls can be built and hold against the self-test."""
        reasons = []
        for tier in walls.TIERS if self.wanted_tier is None else (self.wanted_tier,):
            self.tier = tier
            try:
                workers = await asyncio.gather(*(self._start() for _ in range(self.workers)))
                for worker in workers:
                    self._idle.put_nowait(worker)
                await self._self_test()
                return
            except GraderFault as why:
                reasons.append(f"{tier}: {why}")
            while not self._idle.empty():
                self._idle.get_nowait().kill()
        self.tier = ""
        raise GraderFault(f"no tier of the sandbox works here ({'; '.join(reasons)})")

    async def _start(self) -> sandbox.WorkerProcess:
        if self._closed:
            raise GraderFault("the grader has been closed; grade inside its `async with`")
        worker = sandbox.WorkerProcess(self.tier, f"{self._base}/{next(self._numbers)}")
        self._all.append(worker)
        try:
            await worker.start()
        except sandbox.SandboxFault as why:
            worker.kill()
            raise GraderFault(str(why)) from None
        return worker

    async def _self_test(self) -> None:
        wrong = [name for name, right in await asyncio.gather(*map(self._check, SELF_TEST)) if not right]
        if wrong:
            raise GraderFault(f"the self-test came out wrong: {', '.join(wrong)}")

    async def _check(self, check: Check) -> tuple[str, bool]:
        if self.tier not in check.tiers:
            return check.name, True
        limits = sandbox.Limits(check.cpu_seconds, check.asleep_seconds, 20.0, 64 << 20, 1 << 16, 0)
        output = (await self._outputs(check.program, [check.stdin], limits, retry=False))[0]
        return check.name, output.outcome in check.outcomes and (
            not check.stdouts or output.stdout.strip() in check.stdouts
        )

    # ── the verbs ────────────────────────────────────────────────────────────────────────────────────────────────────
    async def execute(self, program: str, stdin: bytes = b"", limits: sandbox.Limits | None = None) -> sandbox.Output:
        """Run a program once: Output(stdout, status, outcome, cpu_seconds); outcome is "ended" when all went well."""
        return (await self._outputs(program, [stdin], limits or self.limits))[0]

    async def run(
        self,
        program: str,
        tests: Sequence[Test | tuple[str, str] | str],
        kind: str = "stdio",
        setup: str = "",
        stop_at_first: bool = False,
        timeout: float | None = None,
        functions: Sequence[str] = (),
        prelude: str = "",
    ) -> list[TestResult]:
        """A program on tests: a result for each, in order.

        tests: Test, or plain (input, output) pairs; for asserts also plain strings. stop_at_first: tests after the
        first that is not passed are not_run. timeout: CPU seconds a test. functions: names that the task requires.
        prelude: runs before the program, in its namespace.
        """
        wanted = tuple(Test(t) if isinstance(t, str) else Test(*t[:2]) for t in tests)
        whole = behind(prelude, program)
        job = _Job(whole, kind, setup, self._limits(timeout), stop_at_first, tuple(functions), _above(whole, program))
        key = hashlib.sha256(whole.encode("utf-8", "surrogatepass"))
        key.update(repr((job._replace(program=""), wanted)).encode("utf-8", "surrogatepass"))
        return list(await self.once(key.digest(), lambda: self._run(job, [wanted])))

    async def grade(self, reply: str, task: Task) -> Grade:
        """Find the program in a reply, run every visible test and, if it passes them all, every hidden one."""
        code = await _aside(len(reply), extract_code, reply, task.functions)
        if code is None:
            return Grade(None, 0.0, False, "no_code", LETTERS["no_code"] * len(task.visible))
        program = behind(task.prelude, code)
        limits = self._limits(task.timeout)
        job = _Job(program, task.kind, task.setup, limits, False, task.functions, _above(program, code))
        results = await self.once((task.digest, job), lambda: self._run(job, [task.visible, task.hidden]))
        letters = "".join(LETTERS[result.outcome] for result in results)
        visible, hidden = letters[: len(task.visible)], letters[len(task.visible) :]
        found = tally(visible, hidden)
        shown = next((result for result in results[: len(task.visible)] if not result.passed), None)
        first = next((result for result in results if not result.passed), None)
        return Grade(
            code=code,
            fitness=found.fitness,
            passed=found.passed,
            outcome=found.outcome,
            visible=visible,
            hidden=hidden,
            got=shown.got if shown else "",
            got_start=shown.got_start if shown else 0,
            cpu_seconds=round(sum(result.cpu_seconds for result in results), 6),
            error=first.error if first else "",
            error_line=first.error_line if first else None,
        )

    def _limits(self, timeout: float | None) -> sandbox.Limits:
        seconds = self.limits.cpu_seconds if timeout is None else float(timeout)
        limits = self.limits._replace(cpu_seconds=seconds)
        if self.as_published:
            limits = limits._replace(asleep_seconds=seconds, wall_seconds=seconds, timeouts=0)
        return limits

    async def once(self, key: Hashable, work: Callable[[], Awaitable[_T]]) -> _T:
        """Equal (program, tests, rules) are worked out once, those in flight at this moment included."""
        while (known := self._known.get(key)) is not None:
            try:
                result = await asyncio.shield(known)
            except asyncio.CancelledError:
                if not known.cancelled():
                    raise  # it is us who are cancelled
                continue  # whoever worked on it was: take it over
            self.counts["repeated"] += 1
            return result
        while len(self._known) >= _KEPT and (oldest := next(iter(self._known))) and self._known[oldest].done():
            del self._known[oldest]
        future = self._known[key] = asyncio.get_running_loop().create_future()
        try:
            result = await work()
        except BaseException as why:
            del self._known[key]
            if isinstance(why, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(why)
                future.exception()  # it has been looked at, even if nobody else waits
            raise
        self.counts["graded"] += 1
        future.set_result(result)
        return result

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _run(self, job: _Job, groups: Sequence[Sequence[Test]]) -> list[TestResult]:
        """Groups of tests, each run if all before were passed."""
        if job.kind not in ("stdio", "assert"):
            raise TaskError(f"tests of kind {job.kind!r} are not for this grader; use stdio or assert")
        try:
            source = job.program.encode()
        except UnicodeEncodeError:  # half a surrogate pair: no file could hold it
            why = raised.syntax_of(job.program, job.above)
            return [TestResult(False, "syntax_error", "syntax_error", 0.0, 0, *why) for _ in groups[0]]
        run = self._run_stdio if job.kind == "stdio" else self._run_asserts
        failed = [TestResult(False, "runtime_error", "runtime_error") for _ in groups[0]]

        async def work(worker: sandbox.WorkerProcess) -> list[TestResult]:
            worker.above = job.above
            return await run(worker, source, job, groups)

        return await self._on_worker(work, failed)

    async def _on_worker(self, work: Callable[[sandbox.WorkerProcess], Awaitable[_T]], failed: _T) -> _T:
        """Do it on a worker; if that dies, once more on a fresh one; if that dies too, a third tells whose fault it is.

        failed: the result when a program has killed two workers while a third passes the self-test.
        """
        lost, kills = None, [0]
        for _ in range(2):
            worker = await self._idle.get()
            try:
                if worker.lost:
                    worker = await self._replace(worker)
                return await work(worker)
            except sandbox.WorkerLost as why:
                worker.kill()
                lost = why
                kills.append(_kills_for_want_of_memory())
            except sandbox.SandboxFault as why:
                worker.kill()
                raise GraderFault(f"{why}; make room on this machine, then start again to continue") from None
            except BaseException:
                worker.kill()  # half-way through a program: not to be used again
                raise
            finally:
                self._idle.put_nowait(worker)
        await self._self_test()
        if isinstance(lost, sandbox.KilledOutside) and kills[-1] > kills[-2]:  # else it was the program's own doing
            raise GraderFault(f"twice {lost}; use fewer --workers or another machine, then start again to continue")
        return failed

    async def _replace(self, worker: sandbox.WorkerProcess) -> sandbox.WorkerProcess:
        worker.kill()
        await asyncio.to_thread(worker.wait)
        if worker in self._all:
            self._all.remove(worker)
        sweep.remove(worker.scratch)
        return await self._start()

    async def _outputs(
        self, program: str, inputs: list[bytes], limits: sandbox.Limits, retry: bool = True
    ) -> list[sandbox.Output]:
        try:
            source = program.encode()
        except UnicodeEncodeError:
            return [sandbox.Output(b"", None, "syntax_error", 0.0) for _ in inputs]

        async def work(worker: sandbox.WorkerProcess) -> list[sandbox.Output]:
            worker.above = 0
            worker.begin(source, protocol.MAIN, limits)
            return [output async for output in dialogue.exchange(worker, inputs, last=True)]

        if retry:
            return await self._on_worker(work, [sandbox.Output(b"", None, "runtime_error", 0.0) for _ in inputs])
        worker = await self._idle.get()
        try:
            if worker.lost:
                worker = await self._replace(worker)
            return await work(worker)
        except (sandbox.WorkerLost, sandbox.SandboxFault) as why:
            worker.kill()
            raise GraderFault(str(why)) from None
        finally:
            self._idle.put_nowait(worker)

    async def _run_stdio(
        self, worker: sandbox.WorkerProcess, source: bytes, job: _Job, groups: Sequence[Sequence[Test]]
    ) -> list[TestResult]:
        results: list[TestResult] = []
        worker.begin(source, protocol.MAIN, job.limits)
        ended = False
        for number, tests in enumerate(_due(groups, job.stop_at_first, results), 1):
            ended = number == len(groups) and not job.stop_at_first
            expected = iter(tests)
            inputs = [test.input.encode("utf-8", "surrogatepass") for test in tests]
            async for output in dialogue.exchange(worker, inputs, ended):
                results.append(await self._verdict(output, next(expected).output))
        if not ended:
            await worker.send([], last=True)
        return results

    async def _verdict(self, output: sandbox.Output, expected: str) -> TestResult:
        if output.outcome != "ended":
            return TestResult(False, output.outcome, output.outcome, output.cpu_seconds, 0, *output.raised)
        got = output.stdout
        at = await difference(got, expected, self.as_published)
        if at is None:
            return TestResult(True, "pass", "", output.cpu_seconds)
        text = got.decode("utf-8", "replace")
        short = len(text) <= CLIP and len(expected) <= CLIP
        start = 0 if short else clip_around(len(got[:at].decode("utf-8", "replace")))
        return TestResult(False, "wrong_answer", clip(text, start), output.cpu_seconds, start)

    async def _run_asserts(
        self, worker: sandbox.WorkerProcess, source: bytes, job: _Job, groups: Sequence[Sequence[Test]]
    ) -> list[TestResult]:
        results: list[TestResult] = []
        for tests in _due(groups, job.stop_at_first, results):
            parts = await _aside(len(job.program), dialogue.taken_apart, tests, job.setup, job.functions, job.program)
            results += await dialogue.decide(worker, source, job.limits, parts)
        return results


async def _aside(size: int, work: Callable[..., _T], *parts: object) -> _T:
    """What reads a text of that size: beside the event loop where that takes more than a few milliseconds."""
    return await asyncio.to_thread(work, *parts) if size > _LARGE else work(*parts)


def _due(groups: Iterable[Sequence[_T]], stop_at_first: bool, results: list[TestResult]) -> Iterator[Sequence[_T]]:
    """What is to be run next, while the caller adds to the results: a group, if all before were passed.

    stop_at_first: one by one, and the rest of a group after the first that is not passed is not_run.
    """
    for group in groups:
        for few in [[one] for one in group] if stop_at_first else [group]:
            if stop_at_first and not all(r.passed for r in results):
                results.append(TestResult(False, "not_run", "not_run"))
            else:
                yield few
        if not all(r.passed for r in results):
            return


class _Job(NamedTuple):
    """A program and how it is run: with the tests, all that a verdict depends on."""

    program: str
    kind: str
    setup: str
    limits: sandbox.Limits
    stop_at_first: bool
    functions: tuple[str, ...]
    above: int = 0  # lines of what runs before it, and stands above it


def _above(whole: str, program: str) -> int:
    """Lines above a program in one text with its prelude."""
    return whole.count("\n") - program.count("\n") if len(whole) > len(program) else 0


def _kills_for_want_of_memory() -> int:
    """How many processes the kernel has killed so far because memory ran out; 0 where it does not say."""
    try:
        with open("/proc/vmstat") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The grader as a process of its own. The flags are few, since who starts it is another program."""
    import argparse

    from grading import serve

    parser = argparse.ArgumentParser(
        "grader.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--serve", action="store_true", required=True, help="JSON lines on stdin and stdout")
    parser.add_argument("--workers", type=int, help="processes (default: one a core)")
    parser.add_argument("--as-published", action="store_true", help="grade as the published recipe does")
    args = parser.parse_args(argv)
    if args.workers is not None and args.workers < 1:
        parser.error(f"--workers {args.workers}: give 1 or more")
    if sys.stdin is None or sys.stdout is None:
        parser.error("--serve talks over stdin and stdout, and one of them is closed: start it with both")
    streams = serve.standard_streams()
    return asyncio.run(serve.serve(lambda: Grader(args.workers, args.as_published), *streams))


if __name__ == "__main__":
    sys.exit(main())
