"""Can these tasks be passed at all? Known right and wrong programs on the tests that decide. No model call.

    python audit.py --tasks my_tasks.jsonl           your own rows: `reference`, and the tests themselves
    python audit.py --limit 50                       code_contests: 5 accepted and 5 rejected programs a task
    python audit.py --tasks mbpp-bundle --bundle 1   MBPP, function by function
    python run.py --audit out/audit.json ...         a run that tells rates with and without the disputed tasks

A task is passable if one of its references passes every test, disputed if none does or its tests contradict each other,
unknown if it has no reference in Python. The reason of a dispute is told where it can be: several answers, float
format, letter case, order, time, memory, crash, set-up, contradiction, wrong test. What can be seen without a
reference is told as well: set-up code that does not run, functions that no assert calls, tests that any program passes.

What comes out stands in the folder --out: audit.json, and checks.jsonl with every program on every task, from which the
same command goes on where it was stopped. A run in that folder finds audit.json by itself.

Exit codes: 0 done, 2 bad input, 5 the grader or the disk, 130 interrupted.
Left out: mending a task, special judges, programs in other languages.
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands import interrupt

    interrupt.at_once()  # Ctrl-C is one line from here on: the imports below take a second

import ast
import asyncio
import builtins
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from commands.checks import Checks
from commands.console import point_at, say
from commands.flags import Flags
from commands.folder import note_remarks, opened
from commands.graders import grader_for
from commands.sampling import Watch, conduct, guarded
from commands.settings import Row, TaskSet, count, on_nodes, setting
from faults import DONE
from figures.audited import (
    Audit,
    Contradiction,
    Failure,
    Ran,
    called,
    contradictions,
    counts,
    expected_of,
    how,
    how_value,
    judge,
    of_outcome,
    row_of,
    same_answer,
    uncalled,
)
from grader import Grader
from grading.grade import LETTERS, TestResult, clip
from grading.prelude import behind
from records import AUDIT, CHECKS, Folder, Log, dumps
from tasks import SETS, Tasks, load
from tasksets.own import places
from tasksets.task import Task, Test, parse
from telling.audited import text

COMMAND = "audit.py"
AT_ONCE = 16  # tasks under way, or twice as many as there are workers
TOLD = 5  # tests that a program fails of which it is found out why
PASS, WRONG_ANSWER = LETTERS["pass"], "wrong_answer"
STUBS = (
    "None",
    "17.25",
    "'neither'",
)  # what a function returns that does nothing: a test that all of these pass asks nothing
FORM = "1"  # of what is kept in checks.jsonl beside the letters; another one is worked out anew


@dataclass(kw_only=True)
class Args(TaskSet):
    """The flags: whose tasks, and how many programs of each."""

    limit: int | None = setting(None, "tasks, the first of the seeded order (default: all)", count(1))
    task_seed: int = setting(0, "of the order of tasks, and of bundles (default: 0)", count(0))
    as_published: bool = setting(False, "grade as published; hidden tests that are also visible stay")
    references: int = setting(5, "programs known to be right, a task at most, and as many wrong ones (default: 5)",
                              count(1))  # fmt: skip
    workers: int | None = setting(None, "grader processes (default: one a core)", count(1))
    ray: str | None = on_nodes("grade")
    out: Path = setting(Path("out"), "the folder (default: out)", Path)
    json: bool = setting(False, "print audit.json instead of the tables")


def flags() -> Flags[Args]:
    return Flags(COMMAND, __doc__, Args, rest="how, and where it lies", tasks=TaskSet)


def tasks_of(args: Args, keep_overlap: bool, references: int) -> Tasks:
    return load(args.tasks, args.limit, args.task_seed, bundle=args.bundle, revision=args.revision,
                keep_overlap=keep_overlap, references=references, splits=args.splits)  # fmt: skip


# ── one program ──────────────────────────────────────────────────────────────────────────────────────────────────────


def named(task: Task) -> list[tuple[str, Test]]:
    """The tests that a pass takes, under the names that a report has for them."""
    return [(f"{side} {k}", test) for side in ("visible", "hidden") for k, test in enumerate(getattr(task, side), 1)]


class Bench:
    """Where programs of tasks are run: each once, what became of it in checks.jsonl."""

    def __init__(self, grader: Grader, checks: Checks) -> None:
        self.grader, self.checks = grader, checks

    async def ran(self, task: Task, code: str, stop: bool = False) -> Ran:
        """A program on all its task's tests. stop: not beyond the first that it fails."""
        tests = named(task)

        async def work() -> Row:
            results = await self._results(task, code, [test for _, test in tests], stop)
            failed = [(*test, result) for test, result in zip(tests, results, strict=True) if not result.passed]
            # What is wrong says more than what was slow, and nothing at all what was not run.
            failed.sort(key=lambda each: (each[2].outcome != WRONG_ANSWER, each[2].outcome == "not_run"))
            why = [] if stop else [await self._failure(task, code, *each) for each in failed[:TOLD]]
            return {
                **_letters(results),
                "failures": [failure._asdict() for failure in why],
                "remark": "" if failed or stop else await self._remark(task, code),
            }

        row = await self.checks.once(task, code, f"{'first' if stop else 'all'}-{FORM}", [t for _, t in tests],
                                     self.grader.rules, work)  # fmt: skip
        return Ran(row["letters"], [Failure(**each) for each in row["failures"]], row["remark"])

    async def _results(self, task: Task, code: str, tests: Sequence[Test], stop: bool = False) -> list[TestResult]:
        return await self.grader.run(
            code, tests, task.kind, task.setup, stop, task.timeout, task.functions, task.prelude
        )

    async def _printed(self, task: Task, code: str, stdin: str) -> str:
        limits = self.grader.limits._replace(cpu_seconds=task.timeout) if task.timeout else None
        output = await self.grader.execute(behind(task.prelude, code), stdin.encode("utf-8", "surrogatepass"), limits)
        return output.stdout.decode("utf-8", "replace")

    async def _failure(self, task: Task, code: str, name: str, test: Test, result: TestResult) -> Failure:
        if result.outcome != WRONG_ANSWER:
            return Failure(name, result.outcome, *of_outcome(result.outcome))
        got, expected = result.got, test.output
        if task.kind == "stdio":
            if result.got_start or got.endswith("…"):
                got = await self._printed(task, code, test.input)
            reason, why = how(got, expected, task.statement)
        else:
            expected = expected_of(test)
            reason, why = how_value(got, expected)
        digest = sha256(got.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        start = result.got_start
        return Failure(name, result.outcome, reason, why, clip(got, start), clip(expected, start), digest)

    async def _remark(self, task: Task, code: str) -> str:
        """Whether a program passes only because numbers are compared as numbers."""
        if task.kind != "stdio":
            return ""
        test = task.visible[0]
        is_same = (await self._printed(task, code, test.input)).split() == test.output.split()
        return "" if is_same else "its numbers written otherwise than the tests' (float format)"

    # what can be seen without a program
    async def setup_fault(self, task: Task) -> str:
        """Why the code around a program cannot run, whatever the program; empty where it can, or needs the program."""
        pieces = {"prelude": task.prelude, "set-up": f"{task.prelude}\n{task.setup}" if task.setup else ""}
        for name, test in named(task) if task.kind == "assert" else ():
            if head := _head(test.input):
                pieces[f"set-up of {name}"] = f"{task.prelude}\n{task.setup}\n{head}"
        for what, code in pieces.items():
            if not code.strip():
                continue
            probe = PROBE.format(code=code)

            async def work(probe: str = probe) -> Row:
                output = await self.grader.execute(probe)
                said = output.stdout.decode("utf-8", "replace").strip()
                return {
                    "letters": PASS,
                    "said": said or "error the process ends in it",
                    "cpu_seconds": round(output.cpu_seconds, 6),
                }

            row = await self.checks.once(task, probe, f"set-up-{FORM}", (), self.grader.rules, work)
            kind, _, rest = row["said"].partition(" ")
            if kind == "name" and (not task.functions or rest in task.functions or rest not in task.setup):
                return ""  # it waits for the program
            if kind != "ran":
                return f"{what} does not run: {'NameError: ' + rest if kind == 'name' else rest}"
        return ""

    async def empty_tests(self, task: Task) -> list[str]:
        """Tests that a program passes which does nothing."""
        tests = named(task)
        if task.kind == "stdio":
            return [f"{name} expects no output" for name, test in tests if not test.output.split()]
        names = task.functions or _asked(task)
        passed = {name for name, _ in tests}
        for constant in STUBS:
            stub = "".join(f"def {name}(*_, **__):\n    return {constant}\n" for name in names)

            async def work(stub: str = stub) -> Row:
                return _letters(await self._results(task, stub, [test for _, test in tests]))

            row = await self.checks.once(task, stub, f"stub-{FORM}", [t for _, t in tests], self.grader.rules, work)
            passed &= {name for (name, _), letter in zip(tests, row["letters"], strict=True) if letter == PASS}
            if not passed:
                break
        return [f"{name} is passed by any program" for name, _ in tests if name in passed]


# What is known by its own words: printed as "ran", "name NAME" of a NameError, or "error" and what the error says.
PROBE = """\
import builtins
try:
    exec({code!r}, {{"__name__": "__main__"}})
except NameError as why:
    builtins.print("name", why.name)
except BaseException as why:
    builtins.print("error", builtins.type(why).__name__ + ": " + " ".join(builtins.str(why).split())[:200])
else:
    builtins.print("ran")
"""


def _letters(results: Sequence[TestResult]) -> Row:
    seconds = round(sum(result.cpu_seconds for result in results), 6)
    return {"letters": "".join(LETTERS[result.outcome] for result in results), "cpu_seconds": seconds}


def _head(text: str) -> str:
    """What stands before the assert of a test."""
    program = parse(text)
    return "\n".join(map(ast.unparse, program.body[:-1])) if program else ""


def _asked(task: Task) -> tuple[str, ...]:
    """Names that the tests use and nobody has made: the program's, where the task does not list them."""
    around = parse("\n".join([task.prelude, task.setup, *(_head(test.input) for _, test in named(task))]))
    made = set(dir(builtins))
    for node in ast.walk(around) if around else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            made |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            made.add(node.name)
    return tuple(sorted(called(task) - made))


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def audit_one(task: Task, bench: Bench, references: int = 5, against: Sequence[Contradiction] = ()) -> Audit:
    """All that is known of one task. against: tests of it that contradict each other, beside those it holds now."""
    rule_out = list(dict.fromkeys([*against, *contradictions(named(task), task.kind, task.statement)]))
    setup = await bench.setup_fault(task)
    notes = [f"no assert calls {name}" for name in uncalled(task)]
    notes += ["every test expects the same answer"] if same_answer(task) else []
    notes += [] if setup else await bench.empty_tests(task)
    right = await asyncio.gather(*(bench.ran(task, code) for code in dict.fromkeys(task.references[:references])))
    wrong = await asyncio.gather(
        *(bench.ran(task, code, stop=True) for code in dict.fromkeys(task.incorrect[:references]))
    )
    return judge(task, right, wrong, rule_out, setup, notes)


async def audit(
    tasks: Iterator[Task],
    bench: Bench,
    references: int = 5,
    against: Mapping[str, Sequence[Contradiction]] | None = None,
) -> AsyncGenerator[Audit, None]:
    """An Audit of each task, in their order, several tasks at once. against: as in audit_one, by task."""
    flying: deque[asyncio.Task[Audit]] = deque()
    at_once = max(AT_ONCE, 2 * bench.grader.workers)
    try:
        while True:
            while len(flying) < at_once and (task := await asyncio.to_thread(next, tasks, None)):
                flying.append(asyncio.create_task(audit_one(task, bench, references, (against or {}).get(task.id, ()))))
            if not flying:
                return
            yield await flying.popleft()
    finally:
        for one in flying:
            one.cancel()
        await asyncio.gather(*flying, return_exceptions=True)


def look(args: Args) -> tuple[int, dict[str, list[Contradiction]]]:
    """A first walk, that keeps no task: how many there are, and which hold tests that contradict each other.

    With the hidden tests that are also visible: where two of those expect different answers, one is dropped for good.
    """
    number = 0
    against: dict[str, list[Contradiction]] = {}
    for task in tasks_of(args, keep_overlap=True, references=0):
        number += 1
        if found := contradictions(named(task), task.kind, task.statement):
            against[task.id] = found
    return number, against


async def audit_all(log: Log, args: Args) -> None:
    """Every task; fills audit.json."""
    number, against = await asyncio.to_thread(look, args)
    tasks = tasks_of(args, args.as_published, args.references)
    where = {} if args.tasks in SETS else places(Path(args.tasks))
    async with grader_for(args.ray, args.workers, args.as_published) as grader:
        note_remarks(grader.remarks)
        checks = Checks(log, "audit")
        found: list[Audit] = []
        with Watch(number, unit="task") as watch:
            async with aclosing(audit(tasks, Bench(grader, checks), args.references, against)) as walk:
                async for one in walk:
                    found.append(one._replace(where=where.get(one.task_id, "")))
                    watch.step()
        if where:  # in the order of the file
            at = {task_id: place for place, task_id in enumerate(where)}
            found.sort(key=lambda one: at[one.task_id])
        log.write_json(AUDIT, file_of(args, tasks, found, grader))


def file_of(args: Args, tasks: Tasks, found: list[Audit], grader: Grader) -> Row:
    """audit.json."""
    asked = {
        name: getattr(args, name)
        for name in ("tasks", "splits", "bundle", "task_seed", "limit", "as_published", "references")
    }
    return {
        "schema_version": 1,
        "asked": {**asked, "revision": tasks.about.revision},
        "licence": tasks.about.licence,
        "left_out": dict(tasks.about.left_out),
        "rules": grader.rules,
        "tier": grader.tier,
        **counts(found),
        "by_task": {one.task_id: row_of(one) for one in found},
    }


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def main(argv: list[str] | None = None) -> int:
    args = flags().read(argv)

    def work() -> int:
        with opened(args.out, fresh=False) as log:
            code = conduct(audit_all(log, args), log, reports=False)
        if code == DONE:
            made = Folder(args.out).read(AUDIT) or {}
            say(dumps(made, indent=1) if args.json else text(made))
            point_at(args.out / AUDIT, "what was found, task by task")
            point_at(args.out / CHECKS, "every program on every task")
        return code

    return guarded(work)


if __name__ == "__main__":
    interrupt.leave(main)
