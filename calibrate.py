"""Is the fitness a hill? Whether partial credit predicts a pass, on a finished run, before anybody searches over it.

    python calibrate.py --out out                              no model calls: saved programs run on more tests
    python calibrate.py --out out --records                    no grading either: what the records alone can say
    python calibrate.py --out out --judge --base-url URL       how well does a model judge rank the same programs
    python calibrate.py --out out --out out/sql                the curves of several runs in one table and one picture

Fitness is the share of 40 generated tests that a program passes, every test run. The target is one that this fitness
never saw: the private tests and 20 more generated ones, all or nothing. Both come from the tests that no prompt has
shown. Where a task set has no generated tests (bundles, your own), fitness is the visible share as recorded and the
target the hidden tests, which are run where the records lack them: for programs that fail a visible test.
A second curve needs nothing but the records: the chance that a child passes, given the fitness of its parent.

Everything lands in the run folder: checks.jsonl (continues where it stopped; a second call only prints, unless the
grader's rules have changed), calibration.json, .txt, .svg and .png, and with --judge the folder judge/ and
judge.jsonl.

{rule}

Exit codes: 0 done, 2 bad input, 3 a limit was reached, 4 the endpoint, 5 the grader or the disk, 130 interrupted.
Left out: training a better score; text-to-SQL (sql_calibrate.py).
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands import interrupt

    interrupt.at_once()  # Ctrl-C is one line from here on: the imports below take a second

import asyncio
import itertools
import json
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from commands.calibrations import show
from commands.console import note, say
from commands.flags import Flags
from commands.folder import config_of, ended, is_telling, note_remarks, show_curves
from commands.graders import grader_for
from commands.sampling import Budget, Walk, Watch, conduct, guarded, nothing_left, policy_of, probed, sampling
from commands.settings import Asked, Asking, Free, Row, count, names, number, on_nodes, setting, values_of
from faults import DONE, BadInput
from figures.hill import RULE, Curve
from figures.regraded import graded
from figures.table import tabulate
from grader import Grader
from grading.extract import probability
from grading.grade import LETTERS, Grade, rules_of
from records import CHECKS, CONFIG, Folder, Log, dumps
from session import Session, Worker, each
from swarm import Attempt, Flow, Prompt, Slot, fenced, problem, same_program
from tasks import of_identity
from tasksets.task import Task, Test, card
from telling.curves import area, areas, bucket_table, curve, plot
from telling.words import hill_curves, hill_line, plural
from telling.words import number as shown

FITNESS_TESTS = 40  # generated tests whose passed share is the fitness
TARGET_GENERATED = 20  # further generated tests, beside the private ones, that make the target
PASS = LETTERS["pass"]
JUDGE_EDGES = (0.1, 0.3, 0.5, 0.7, 0.9)
PANELS = {"fitness": "by fitness", "by_parent": "by the parent's fitness", "judge": "by the judge's answer"}
JUDGE_BUCKETS = ("0-9", "10-29", "30-49", "50-69", "70-89", "90-100")


@dataclass(kw_only=True)
class Judge(Asked):
    """a model that is asked for the chance that a program passes"""

    judge: bool = setting(False, "ask a model for the chance that a program passes")
    limit: int | None = setting(None, "programs shown to the judge, a seeded choice (default: all)", count(1))
    max_tokens: int = setting(256, "tokens a reply (default: 256)", count(1))
    temperature: float = setting(0.0, "(default: 0)", number(0))


@dataclass(kw_only=True)
class Args(Judge, Asking):
    """The flags: whose programs are calibrated, and how."""

    out: list[Path] = setting([], "a run folder (default: out); of several the curves", Path, action="append")
    population: str = setting(
        "all-fail", "tasks (default: all-fail, whose base programs do not count)", choices=("all-fail", "all")
    )
    arms: list[str] | None = setting(None, "programs of these alone, base and round0 among them (default: all there "
                                     "are)", names, metavar="LIST")  # fmt: skip
    per_task: int = setting(24, "programs a task at most (default: 24)", count(1))
    min_fitness_tests: int = setting(FITNESS_TESTS, "generated tests a task must have for the fitness (default and "
                                     f"most: {FITNESS_TESTS})", count(1))  # fmt: skip
    min_target_tests: int = setting(5, "private and further generated tests a task must have for the target "
                                    "(default: 5)", count(1))  # fmt: skip
    seed: int = setting(0, "of the choice of programs (default: 0)", count(0))
    ray: str | None = on_nodes("grade")
    records: bool = setting(False, "run nothing: fitness and passes as recorded")
    json: bool = setting(False, "print calibration.json instead of the tables")

    @property
    def folder(self) -> Path:
        return self.out[0] if self.out else Path("out")


def flags() -> Flags[Args]:
    rule = textwrap.fill(f"The one line at the end follows this rule. {RULE}", 110)
    about = (__doc__ or "").replace("{rule}", rule)
    return Flags("calibrate.py", about, Args, rest="what is calibrated, and what is told", judge=Judge, free=Free)


# ── which programs ───────────────────────────────────────────────────────────────────────────────────────────────────


class Saved(NamedTuple):
    """A distinct program of a task: the first attempt that wrote it, and what the records say of it."""

    slot: Slot
    program: str  # SHA-256 of the code as checks.jsonl names it
    fitness: float  # share of the visible tests
    passed: bool
    shown: bool  # it passes every visible test, so its hidden tests were run
    hidden: bool  # of these it passes every one


class Choice(NamedTuple):
    """The programs that are calibrated, and what else the records say at once."""

    programs: dict[str, list[Saved]]  # by task
    children: list[tuple[float, bool, str]]  # parent's fitness, did the child pass, task
    counts: dict[str, int]


def choose(folder: Folder, args: Args) -> Choice:
    """At most --per-task distinct programs of each task of the population, by a seeded choice."""
    out, config = args.folder, folder.config
    if "bundle" not in config["identity"]:
        raise BadInput(f"{out} holds no programs but queries: python sql_calibrate.py --reuse --out {out}")
    if config.get("command", "run.py") != "run.py":
        raise BadInput(f"{out} holds the answers of a judge: name the folder of its run, --out {out.parent}")

    def attempts() -> Iterator[Attempt]:
        return graded(folder.attempts(), folder.checks(), config)

    table = tabulate((attempt for attempt in attempts() if attempt.arm == "base"), config, folder.cards())
    wanted = table.base.done if args.population == "all" else table.all_fail
    tasks = {task for task, use in zip(table.tasks, wanted, strict=True) if use}
    known: set[str] = set()

    found: dict[str, dict[str, Saved]] = defaultdict(dict)
    bests: dict[tuple[str, str], tuple[float, bool]] = {}
    links: list[tuple[str, str, bool]] = []  # task, parent, did the child pass
    seen = 0
    for attempt in attempts():
        known.add(attempt.arm)
        if attempt.task_id not in tasks or attempt.outcome == "refused":
            continue
        bests[attempt.task_id, attempt.slot.within_task()] = attempt.fitness, attempt.passed
        if args.arms and attempt.arm not in args.arms:
            continue
        if attempt.arm == "base" and args.population == "all-fail":  # it fails by selection, whatever its fitness
            continue
        if attempt.parent:
            links.append((attempt.task_id, attempt.parent, attempt.passed))
        if attempt.code is None:
            continue
        seen += 1
        key = same_program(attempt.code)
        old = found[attempt.task_id].get(key)
        if old is None or attempt.slot < old.slot:
            found[attempt.task_id][key] = Saved(
                attempt.slot,
                sha256(attempt.code.encode("utf-8", "surrogatepass")).hexdigest(),
                attempt.fitness,
                attempt.passed,
                attempt.visible_passed == attempt.visible_total,
                attempt.hidden_passed == attempt.hidden_total,
            )
    if odd := set(args.arms or ()) - known:
        names = ", ".join(sorted(known))
        raise BadInput(f"{out} has no attempts of {', '.join(sorted(odd))}; --arms may name {names}")
    programs = {
        task: sorted(those.values(), key=lambda one: _lot(args.seed, task, one.program))[: args.per_task]
        for task, those in sorted(found.items())
    }
    # A parent that passes has nothing left to search for.
    children = [
        (bests[task, parent][0], passed, task)
        for task, parent, passed in links
        if (task, parent) in bests and not bests[task, parent][1]
    ]
    counts = {
        "tasks": len(tasks),
        "attempts_with_a_program": seen,
        "distinct_programs": sum(map(len, found.values())),
        "chosen": sum(map(len, programs.values())),
        "children": len(children),
    }
    return Choice(programs, children, counts)


def _digest(value: object) -> str:
    return sha256(dumps(value, sort_keys=True).encode()).hexdigest()


def _lot(seed: int, *names: str) -> bytes:
    """What to sort by for a seeded choice."""
    return sha256("|".join((str(seed), "calibrate", *names)).encode()).digest()


# ── which tests ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Split(NamedTuple):
    """The tests that make a program's fitness, and those of the target; no input is in both."""

    fitness: tuple[Test, ...]  # empty: the recorded share of the visible tests
    target: tuple[Test, ...]

    def name(self, part: str) -> str:
        """What checks.jsonl calls these tests: other tests, another name."""
        tests = getattr(self, part)
        return f"calibrate/{part}/{_digest([list(test) for test in tests])[:12]}"


def split(task: Task) -> Split:
    """By source, from the tests that no prompt has shown."""
    shown = {test.input for test in task.visible}
    unseen: dict[str, Test] = {}
    for test in (*task.hidden, *task.spare):
        if test.input not in shown:
            unseen.setdefault(test.input, test)
    generated = [test for test in unseen.values() if test.source == "generated"]
    private = [test for test in unseen.values() if test.source != "generated"]
    fitness = generated[:FITNESS_TESTS]
    return Split(tuple(fitness), (*private, *generated[FITNESS_TESTS : FITNESS_TESTS + TARGET_GENERATED]))


def has_generated(task: Task) -> bool:
    return any(test.source == "generated" for test in (*task.hidden, *task.spare))


# ── grading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Graded(NamedTuple):
    """What is calibrated of a program."""

    fitness: float
    passed: bool
    task: str


class Sheet:
    """Letters by (task, program, tests): what checks.jsonl holds, and what is added to it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.letters: dict[tuple[str, str, str], str] = {}
        self.rules: dict[tuple[str, str, str], str] = {}
        self.ran: set[tuple[str, str]] = set()  # (task, program) of which anything was run just now
        for row in log.checks():
            if row["tests"].startswith("calibrate/"):
                key = row["task_id"], row["program"], row["tests"]
                self.letters[key], self.rules[key] = row["letters"], row["rules"]

    async def run(self, grader: Grader, task: Task, one: Saved, name: str, tests: tuple[Test, ...], stop: bool) -> str:
        """A letter a test, from disk where these rules have run them."""
        key = task.id, one.program, name
        if self.rules.get(key) != grader.rules:
            attempt = self.log.get(one.slot)
            assert attempt is not None and attempt.code is not None
            results = await grader.run(
                attempt.code, tests, task.kind, task.setup, stop, task.timeout, task.functions, task.prelude
            )
            letters = "".join(LETTERS[result.outcome] for result in results)
            row = {"task_id": task.id, "task_sha": task.digest, "program": one.program, "tests": name}
            seconds = round(sum(result.cpu_seconds for result in results), 6)
            self.log.append(CHECKS, {**row, "rules": grader.rules, "letters": letters, "cpu_seconds": seconds})
            self.letters[key], self.rules[key] = letters, grader.rules
            self.ran.add((task.id, one.program))
        return self.letters[key]


async def grade(log: Log, choice: Choice, args: Args, graded: list[Graded], found: Row) -> None:
    """Run the chosen programs on their tests; fills `graded`, and `found` with the mode and what was left out."""
    identity = log.config["identity"]
    sheet, left_out = Sheet(log), Counter[str]()
    missing = set(choice.programs)
    tasks = of_identity(identity, spare=True)
    # The set has generated tests as soon as one task has; the tests of all tasks might not fit in memory.
    ours = (task for task in tasks if task.id in choice.programs)
    held: list[Task] = []
    for task in ours:
        held.append(task)
        if has_generated(task):
            break
    generated = bool(held) and has_generated(held[-1])

    async with grader_for(args.ray, args.workers, identity["as_published"]) as grader:
        room = asyncio.Semaphore(max(32, 2 * grader.workers))  # programs whose tests are under way
        note_remarks(grader.remarks)
        watch = Watch(choice.counts["chosen"], unit="program")

        async def one(task: Task) -> None:
            log.add_card(card(task))  # RecordsError where the task has changed
            missing.discard(task.id)
            programs = choice.programs[task.id]
            tests = split(task) if generated else Split((), task.hidden)
            if generated and len(tests.fitness) < args.min_fitness_tests:
                left_out[f"under {args.min_fitness_tests} generated tests for the fitness"] += 1
            elif generated and len(tests.target) < args.min_target_tests:
                left_out[f"under {args.min_target_tests} tests for the target"] += 1
            elif not tests.target:
                left_out["no hidden test"] += 1
            else:
                graded.extend(await asyncio.gather(*(grade_one(task, tests, saved) for saved in programs)))
                return
            watch.not_needed(len(programs))

        async def grade_one(task: Task, tests: Split, saved: Saved) -> Graded:
            async with room:
                fitness, passed = saved.fitness, saved.hidden
                if tests.fitness:
                    letters = await sheet.run(grader, task, saved, tests.name("fitness"), tests.fitness, stop=False)
                    fitness = letters.count(PASS) / len(tests.fitness)
                if tests.fitness or not saved.shown:
                    letters = await sheet.run(grader, task, saved, tests.name("target"), tests.target, stop=True)
                    passed = letters == PASS * len(tests.target)
                if (task.id, saved.program) in sheet.ran:
                    watch.step()
                else:
                    watch.not_needed(1)
                return Graded(fitness, passed, task.id)

        with watch:
            await each(itertools.chain(held, ours), one, at_once=8)
    if missing:
        left_out[f"not in {identity['tasks']} any more"] = len(missing)
    found.update(
        mode="graded" if generated else "hidden",
        tests=f"fitness: {FITNESS_TESTS} generated; target: private and {TARGET_GENERATED} more generated"
        if generated
        else "fitness: visible tests as recorded; target: hidden tests",
        left_out=dict(left_out),
    )


# ── what comes out ───────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(choice: Choice) -> Curve:
    """The curve of the records alone. A pass includes the visible tests, so it says nothing below the top."""
    made = curve((one.fitness, one.passed, task) for task, those in choice.programs.items() for one in those)
    made["verdict"] = "not_estimable"
    made["why"] = (
        "a recorded pass includes every visible test, so below the top nothing can pass by definition; the curve by "
        "parent is what the records can tell, and without --records the hidden tests are run"
    )
    return made


def key_of(choice: Choice, args: Args, as_published: bool) -> str:
    """What a calibration is of: the same key, the same figures."""
    chosen = {task: [[*one] for one in those] for task, those in choice.programs.items()}
    ran = None  # by what rules, and how many tests at most
    if not args.records:
        ran = [rules_of(as_published), FITNESS_TESTS, TARGET_GENERATED, args.min_fitness_tests, args.min_target_tests]
    return _digest([chosen, choice.counts, ran])


def settings_of(args: Args) -> Row:
    names = ("population", "arms", "per_task", "min_fitness_tests", "min_target_tests", "seed", "records")
    return {name: getattr(args, name) for name in names}


def calibrate(args: Args, choice: Choice) -> int:
    """The fitness against passes that it never saw: fills calibration.json, or leaves it where nothing has changed."""
    folder = Folder(args.folder)
    old = folder.read("calibration.json") or {}
    key = key_of(choice, args, folder.config["identity"]["as_published"])
    if old.get("key") == key:
        return DONE
    graded: list[Graded] = []
    found: Row = {"mode": "records", "tests": "fitness and passes as recorded", "left_out": {}}
    if not args.records:
        with Log(args.folder) as log:
            code = conduct(grade(log, choice, args, graded, found), log, reports=False)
        if code != DONE:
            return code
    new = {
        "schema_version": 1,
        "key": key,
        "settings": settings_of(args),
        "counts": choice.counts,
        **found,
        "fitness": recorded(choice) if args.records else curve(graded),
        "by_parent": curve(choice.children),
    }
    folder.write_json("calibration.json", {**new, **({"judge": old["judge"]} if "judge" in old else {})})
    return DONE


def text(made: Row) -> str:
    """The tables and the one line, within 80 columns."""
    out: list[str] = []
    if "fitness" in made:
        counts, fitness = made["counts"], made["fitness"]
        tasks = plural(counts["tasks"], f"{made['settings']['population']} task")
        out += [
            f"{plural(counts['chosen'], 'program')} of {tasks} "
            f"({counts['distinct_programs']:,} distinct ones among {counts['attempts_with_a_program']:,})",
            made["tests"],
            *(f"left out: {plural(number, 'task')}, {why}" for why, number in made["left_out"].items()),
            "",
            *bucket_table("fitness", fitness),
            "",
            *areas(fitness),
            "",
            *(
                bucket_table("parent's fitness", made["by_parent"], "children that pass, whose parent does not")
                if made["by_parent"]["n"]
                else ["no program here was refined from another, so there is no curve by parent"]
            ),
            "",
        ]
    if judge := made.get("judge"):
        out += [
            f"judge: {judge['model']}",
            f"{judge['n']:,} programs, {judge['passes']:,} of them pass; {judge['unparsed']} replies without a number, "
            "left out",
            "",
            *bucket_table("judge says", judge),
            "",
            *areas(judge),
            f"Brier score {shown(judge['brier'])} (a guess of the pass rate: {shown(judge['brier_of_the_rate'])})",
            f"visible fitness on the same programs: AUC {area(judge['visible_fitness_auc'])}",
            "",
        ]
    for name, told in hill_curves(made).items():
        if told["n"]:
            out += textwrap.wrap(hill_line(name, told), 80)
    return "\n".join(out)


# ── the judge ────────────────────────────────────────────────────────────────────────────────────────────────────────

JUDGE_SYSTEM = "You judge whether programs are right."
JUDGE_REQUEST = (
    "How likely is it that this program solves the problem: that it gives the right answer, in time, on every one of a "
    "set of tests that you do not see? Answer with one whole number from 0 (certainly not) to 100 (certainly), and "
    "nothing else."
)


def judge_prompt(task: Task, code: str) -> Prompt:
    """The problem and a program, and nothing of any test."""
    program = fenced(code.rstrip("\n"), "python")
    shown = f"Problem:\n\n{problem(task)}\n\nProgram:\n\n{program}\n\n{JUDGE_REQUEST}"
    return Prompt([{"role": "system", "content": JUDGE_SYSTEM}, {"role": "user", "content": shown}])


class JudgeGrader:
    """Stands where the grader stands: a reply's grade is the chance that it names."""

    async def grade(self, reply: str, task: Task) -> Grade:
        said = probability(reply)
        return Grade(None, 0.0 if said is None else said, False, "unparsed" if said is None else "judged")


def judge(args: Args, choice: Choice) -> int:
    """Ask the judge about the chosen programs, and add what it is worth to calibration.json."""
    wanted = [(task, one) for task, those in choice.programs.items() for one in those]
    wanted = sorted(wanted, key=lambda pair: _lot(args.seed, "judge", *map(str, pair[1].slot)))[: args.limit]
    asked: dict[str, list[Saved]] = defaultdict(list)
    for task, one in wanted:
        asked[task].append(one)
    folder = Folder(args.folder)
    cards = {task.id: task for task in folder.cards() if task.id in asked}
    codes = {
        (attempt.task_id, attempt.slot): attempt.code
        for attempt in folder.attempts()
        if any(one.slot == attempt.slot for one in asked.get(attempt.task_id, ()))
    }

    async def walk(session: Session, watch: Watch) -> None:
        async def one(task: Task) -> None:
            prompts = [(one.slot, judge_prompt(task, codes[task.id, one.slot] or "")) for one in asked[task.id]]
            # One step of a flow each, so that a prompt which the server refuses is left owed and stops nothing.
            await asyncio.gather(*(session.play(task, _once(slot, prompt)) for slot, prompt in prompts))

        await each(iter(cards.values()), one, at_once=max(8, args.concurrency))

    answers = Path(args.folder) / "judge"
    with Log(answers, instead=f"ask as before, or rename {answers} to ask this judge beside it") as log:
        code, old = DONE, log.read("config.json")
        if old and log.begun:  # answers of another judge are no answers of this one
            args.model = args.model or old["identity"]["model"]
            log.settle(_judge_identity(args, args.model), {})
        if not asyncio.run(nothing_left(log, args.seed, walk)):
            code = conduct(_ask_judge(log, args, len(wanted), walk), log, reports=False)
        if not is_telling(code, answers):
            return code
        said = {attempt.slot: attempt for attempt in log.attempts()}
        model = log.config["identity"]["model"]
    rows = [(one, said[one.slot]) for _, one in wanted if one.slot in said]
    old = folder.read("calibration.json") or {}
    folder.write_json("calibration.json", {"schema_version": 1, **old, "judge": judged(rows, model)})
    folder.write("judge.jsonl", "".join(dumps(_judged_row(*row)) + "\n" for row in rows))
    return code


def _judge_identity(args: Args, model: str | None) -> Row:
    return {**values_of(args, Asked), "seed": args.seed, "model": model}


def _once(slot: Slot, prompt: Prompt) -> Flow:
    yield [(slot, prompt)]


async def _ask_judge(log: Log, args: Args, most: int, walk: Walk) -> None:
    budget = Budget(args, log)
    async with policy_of(args, budget.record) as policy:
        server = await probed(policy)
        identity = _judge_identity(args, server.model)
        log.settle(identity, {})
        judged_tasks = Folder(args.folder).config["data"]
        log.keep(CONFIG, {**config_of(args, "calibrate.py --judge", identity, {}, judged_tasks, server)})
        for line in (*server.facts, *server.warnings):
            note(f"server: {line}")
        watch = Watch(most, args.concurrency, "", there=len(log))
        async with sampling(log, Worker(policy, JudgeGrader()), args.seed, budget, watch) as session:
            await walk(session, watch)
    ended(log)


def judged(rows: list[tuple[Saved, Attempt]], model: str | None) -> Row:
    """The judge's curve, AUC and Brier score over the replies that name a number, the visible fitness's AUC beside."""
    good = [(one, answer) for one, answer in rows if answer.outcome == "judged"]
    scores = ((answer.fitness, one.passed, one.slot.task_id) for one, answer in good)
    made = curve(scores, JUDGE_BUCKETS, edges=JUDGE_EDGES, ends=False, scored="by the judge")
    visible = curve((one.fitness, one.passed, one.slot.task_id) for one, _ in good)
    errors = [(answer.fitness - one.passed) ** 2 for one, answer in good]
    rate = made["passes"] / len(good) if good else 0.0
    return {
        **made,
        "model": model,
        "asked": len(rows),
        "unparsed": len(rows) - len(good),
        "unparsed_by": dict(Counter(answer.outcome for _, answer in rows if answer.outcome != "judged")),
        "brier": sum(errors) / len(errors) if errors else None,
        "brier_of_the_rate": rate * (1 - rate) if good else None,
        "visible_fitness_auc": visible["auc"]["pooled"],
    }


def _judged_row(one: Saved, answer: Attempt) -> Row:
    """A line of judge.jsonl: the slot judged, what the judge said, and what was true."""
    said = answer.fitness if answer.outcome == "judged" else None
    return {**one.slot._asdict(), "program": one.program, "probability": said, "outcome": answer.outcome,
            "passed": one.passed, "fitness": one.fitness, "reply": answer.reply}  # fmt: skip


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def main(argv: list[str] | None = None) -> int:
    parser = flags()
    args = parser.read(argv)
    if args.min_fitness_tests > FITNESS_TESTS:
        parser.error(f"--min-fitness-tests {args.min_fitness_tests}: no more than {FITNESS_TESTS} are used")
    if args.limit is not None and not args.judge:
        parser.error("--limit is how many programs the judge is shown: give it with --judge")
    if len(args.out) > 1 and (args.judge or args.records):
        parser.error("several --out are shown side by side and nothing is run: leave --judge and --records out")
    folder = Folder(args.folder)

    def work() -> int:
        if len(args.out) > 1:
            return show(args.out, args.json)
        choice = choose(folder, args)
        if not choice.counts["chosen"]:
            note(f"{args.folder} has no program on {args.population} tasks, so there is nothing to calibrate")
            return DONE
        code = (judge if args.judge else calibrate)(args, choice)
        if code == DONE or (args.judge and is_telling(code, folder.path / "judge")):
            made = folder.read("calibration.json") or {}
            say(json.dumps(made, indent=1) if args.json else text(made))
            show_curves(folder, plot(made, PANELS), text(made))
        return code

    return guarded(work)


if __name__ == "__main__":
    interrupt.leave(main)
