"""Which programs and tasks become training rows: of one run or of several, with no trace of the swarm in a prompt.

    rescued(passing, cards, config, results)    rescued.jsonl, as text
    Run.read(folder)                            a run as rows are made of it
    Choice(runs, also, per_task, held_back)     what was asked for: .programs, .tasks(), .rejected()

Two programs are the same when they differ only in line ends, blanks at the ends of lines and blank lines; another
comment makes another program. Of equal programs of a task one is kept: the first whose model saw the bare prompt alone,
else the first whose model was shown no reference, or else the first.

The text is the program in a fence, never the reply as it was sampled (attempts.jsonl holds that, under the same slot):
rows are for supervised fine-tuning and distillation, on_policy or not.

Left out: the columns (rows/columns.py) and how they are filled (rows/formats.py); what is not asked for with `also`,
which are base passes, and passes of re-runs that no arm found.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from commands.settings import Config, Row, flag, shown_a_reference
from faults import BadInput, RecordsError
from figures.regraded import graded
from figures.verified import Verified, program_of, verified
from measure import measure
from reading.stored import Stored
from records import AUDIT, Folder, dumps
from rows.columns import SCHEMA_VERSION, Origin, Rescue
from rows.overlap import Benchmarks
from swarm import PLAIN, Attempt, Prompt, Style, bare, fenced, same_program
from tasksets.source import source_ids, splits_of
from tasksets.task import Task

UNSEEN = Verified(0, 0, None, ())
ALSO = ("base", "reruns")  # passes that are no rows unless they are asked for
# Settings that decide which tasks and draws there are, and not what an attempt at a task is.
NO_MATTER = ("tasks", "bundle", "task_seed", "seed", "particles", "share_round0")


def passed(stored: Stored, checks: Iterable[Row], config: Config, base: bool) -> list[Attempt]:
    """The attempts that passed, without their replies, which no row has. base: also those of base groups."""
    ours = graded(stored.at(stored.gathered.passing(base)), checks, config)
    return [replace(attempt, reply="", reasoning="") for attempt in ours]


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(eq=False)
class Run:
    """A run as rows are made of it. passing: at least its attempts that passed; results: what measure made of it."""

    config: Config
    cards: dict[str, Task]
    passing: list[Attempt]
    results: Mapping[str, Any]
    checked: Mapping[tuple[str, str], Verified]  # programs on the spare tests of their task
    folder: Folder | None = None

    @classmethod
    def read(cls, folder: Folder) -> Self:
        """RecordsError where the folder holds no run."""
        config, cards = folder.config_of("run.py"), list(folder.cards())
        stored = folder.stored(config)
        results = measure(
            stored.gathered, config, cards, folder.checks(), folder.events(), folder.plan, folder.read(AUDIT)
        )
        passing = passed(stored, folder.checks(), config, base=True)
        return cls(config, {task.id: task for task in cards}, passing, results, verified(folder.checks()), folder)

    @property
    def attempts(self) -> Iterator[Attempt]:
        assert self.folder is not None
        return graded(self.folder.attempts(), self.folder.checks(), self.config)

    @property
    def identity(self) -> Row:
        return self.config["identity"]

    @property
    def style(self) -> Style:
        system = self.identity["system"]
        return Style(PLAIN.system if system is None else system, self.identity["no_comments"])

    language = "python"  # of its fences

    def prompt(self, task: Task) -> Prompt:
        """The bare one: as a row has it."""
        return bare(task.shown(), self.style)

    @property
    def about(self) -> tuple[str, str, str, str]:
        """Task set, revision, licence, model; empty for what is not known. Of a set of your own the name of its file,
        whose folder is nobody's business."""
        identity = self.identity
        name = Path(identity["tasks"])
        source = name.stem if name.suffix else str(name)
        return source, identity["revision"] or "", self.config["data"]["licence"] or "", identity["model"] or ""

    def card(self, task_id: str) -> Task:
        if task_id not in self.cards:
            raise RecordsError(f"the card of {task_id} cannot be read: repeat the run, which writes it anew")
        return self.cards[task_id]

    def programs(self, also: Iterable[str] = (), apart: bool = False) -> list[Program]:
        """The passing programs of the arms on tasks whose whole base group failed, by task, arm, round, particle.

        Which tasks those are the results say (`by_task`): a group that lacks an attempt shows nothing among what
        passed. also: of ALSO. apart: those that are kept apart (figures/verified.py), in place of all others.
        """
        arms = {*self.config["plan"]["arms"], *(["round0"] if self.identity["share_round0"] else [])}
        failed = {task for task, row in self.results["by_task"].items() if row["base"] == 0}  # None: it is not whole
        ours = [
            attempt
            for attempt in self.passing
            if (attempt.arm in arms and attempt.task_id in failed and (attempt.rerun == 0 or "reruns" in also))
            or (attempt.arm == "base" and "base" in also and attempt.code is not None)  # None: counted, not replied
        ]
        found = [Program(self, attempt) for attempt in sorted(ours, key=lambda attempt: attempt.slot)]
        return [program for program in found if program.checked.is_apart == apart]


class Program(NamedTuple):
    """A program that may become a row."""

    run: Run
    attempt: Attempt

    @property
    def task(self) -> Task:
        return self.run.card(self.attempt.task_id)

    @property
    def prompt(self) -> Prompt:
        return self.run.prompt(self.task)

    @property
    def on_policy(self) -> bool:
        return self.attempt.prompt_sha == self.prompt.sha()

    @property
    def hinted(self) -> bool:
        return self.attempt.arm in shown_a_reference(self.run.config)

    @property
    def worth(self) -> tuple[bool, bool]:
        """Of equal programs the one that is worth most is kept."""
        return self.on_policy, not self.hinted

    @property
    def code(self) -> str:
        assert self.attempt.code is not None
        return self.attempt.code

    @property
    def text(self) -> str:
        return fenced(self.code, self.run.language)

    @property
    def checked(self) -> Verified:
        """On the spare tests of its task; of a program that nobody has looked at nothing is known."""
        return self.run.checked.get((self.attempt.task_id, program_of(self.code)), UNSEEN)

    def origin(self) -> Origin:
        attempt = self.attempt
        _, revision, licence, model = self.run.about
        return {
            "source": attempt.arm,
            "round": attempt.round,
            "rerun": attempt.rerun,
            "particle": attempt.particle,
            "seed": attempt.seed,
            "model": model,
            "on_policy": self.on_policy,
            "hinted": self.hinted,
            "verified": self.checked.is_verified,
            "flags": "; ".join(self.checked.flags),
            "source_split": ",".join(splits_of(self.task)),
            "source_ids": ",".join(source_ids(self.task)),
            "revision": revision,
            "licence": licence,
            "schema_version": SCHEMA_VERSION,
        }


def distinct(programs: Iterable[Program]) -> list[Program]:
    """Of equal programs of a task one, in the order in which they come."""
    found: dict[tuple[str, str], Program] = {}
    for program in programs:
        key = program.task.digest, same_program(program.code)
        if key not in found or program.worth > found[key].worth:
            found.pop(key, None)  # the rows stay in the order of their slots
            found[key] = program
    return list(found.values())


def rescued(
    passing: Iterable[Attempt],
    cards: Iterable[Task],
    config: Config,
    results: Mapping[str, Any],
    checks: Iterable[Row] = (),
    apart: bool = False,
) -> str:
    """rescued.jsonl: a line for each distinct passing program of the arms, by task, arm, round, particle.

    apart: rescued-unverified.jsonl, those that fail a spare test of their task, with the test, or are marked and
    pass no spare test of a new input.
    """
    run = Run(config, {task.id: task for task in cards}, list(passing), results, verified(checks))
    rows = []
    for program in distinct(run.programs(apart=apart)):
        rows.append({**rescue(program), **({"failed_test": program.checked.failed} if apart else {})})
    return "".join(dumps(row) + "\n" for row in rows)


def rescue(program: Program) -> Rescue:
    return {
        "task_id": program.task.id,
        "prompt": program.prompt.messages[-1]["content"],
        "final_text": program.text,
        "reward": 1,
        **program.origin(),
        "completion": program.text,
        "system": program.run.style.system,
    }


# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Asked:
    """A task, and what came of it in all runs that asked it in one way."""

    run: Run  # the first of them
    task: Task
    runs: int = 0
    whole: bool = False  # its base group, in some run
    base_passes: int = 0
    base_attempts: int = 0
    arm_passes: int = 0
    arm_attempts: int = 0
    best_fitness: float = 0.0
    by: set[str] = field(default_factory=set)  # arms that passed

    @property
    def all_fail(self) -> bool:
        return self.whole and not self.base_passes

    @property
    def rescued(self) -> bool:
        return self.all_fail and self.arm_passes > 0

    def add(self, attempt: Attempt) -> None:
        if attempt.outcome == "refused":  # nothing is known of it
            return
        part = "base" if attempt.arm == "base" else "arm"
        setattr(self, f"{part}_attempts", getattr(self, f"{part}_attempts") + 1)
        setattr(self, f"{part}_passes", getattr(self, f"{part}_passes") + attempt.passed)
        self.best_fitness = max(self.best_fitness, attempt.fitness)
        if attempt.passed and part == "arm":
            self.by.add(attempt.arm)


POPULATIONS = {
    "all": lambda asked: True,
    "all-fail": lambda asked: asked.all_fail,
    "rescued": lambda asked: asked.rescued,
    "mixed": lambda asked: 0 < asked.base_passes < asked.base_attempts,
}


@dataclass
class Choice:
    """What was asked for, of which runs."""

    runs: list[Run]
    also: tuple[str, ...] = ()
    per_task: int | None = None
    population: str = "all"
    held_back: float = 0.0  # share of the tasks
    tasks_from: str | None = None  # a file of your own tasks, where it lies now
    benchmarks: Benchmarks | None = None  # tasks that share a run of words with them are left out
    dropped: dict[str, str] = field(default_factory=dict)  # task -> the words shared, of those that were left out

    @cached_property
    def found(self) -> list[Program]:
        """The passing programs of all runs, equal ones too, by task."""
        every = [program for run in self.runs for program in run.programs(self.also) if self.is_clean(program.task)]
        return sorted(every, key=lambda program: (program.attempt.task_id, program.task.digest))

    @cached_property
    def programs(self) -> list[Program]:
        """The distinct ones, at most so many a task: on-policy ones before others, hinted ones last."""
        kept: list[Program] = []
        by_task: dict[str, list[Program]] = defaultdict(list)
        for program in distinct(self.found):
            by_task[program.task.digest].append(program)
        for programs in by_task.values():
            first = sorted(programs, key=lambda program: program.worth, reverse=True)[: self.per_task]
            kept += [program for program in programs if program in first]
        return kept

    @cached_property
    def unseen(self) -> int:
        """Programs of rows that nobody has looked at: of arms and re-runs, since the base group's never are."""
        return sum(program.checked is UNSEEN and program.attempt.arm != "base" for program in self.programs)

    def rejected(self) -> dict[str, list[Program]]:
        """Distinct failed programs by the digest of their task, of the tasks that have a row: those of the base group,
        which are the model's own on the bare prompt, and of the arms where those are fewer than the rows."""
        wanted = Counter(program.task.digest for program in self.programs)
        failed: dict[str, list[Program]] = defaultdict(list)
        for run in self.runs:
            for attempt in run.attempts:  # of each task its base group first
                if attempt.code is None or attempt.passed or attempt.task_id not in run.cards:
                    continue
                program = Program(run, attempt)
                of = failed[program.task.digest]
                if wanted[program.task.digest] and (attempt.arm == "base" or len(of) < wanted[program.task.digest]):
                    of.append(program)
        return {digest: distinct(sorted(of, key=lambda p: p.attempt.arm != "base")) for digest, of in failed.items()}

    def tasks(self) -> list[Asked]:
        """Every task of the population, once for each way of asking it, by id."""
        found: dict[tuple[str, str], Asked] = {}
        for run in self.runs:
            settings = settings_of(run)
            seen, hinted = set(), shown_a_reference(run.config)
            for attempt in run.attempts:
                task = run.card(attempt.task_id)
                if not self.is_clean(task):
                    continue
                asked = found.setdefault((task.digest, settings), Asked(run, task))
                if attempt.arm not in hinted:  # what was found with the answer at hand says little of how hard it is
                    asked.add(attempt)
                if attempt.task_id not in seen:
                    seen.add(attempt.task_id)
                    asked.runs += 1
                    row = run.results["by_task"].get(attempt.task_id)
                    asked.whole |= row is not None and row["base"] is not None
        ours = filter(POPULATIONS[self.population], found.values())
        return sorted(ours, key=lambda asked: (asked.task.id, asked.task.digest))

    def is_clean(self, task: Task) -> bool:
        """Whether a task shares no long run of words with a benchmark; those that do are noted in `dropped`."""
        if self.benchmarks is None:
            return True
        if task.digest not in self._shared:
            self._shared[task.digest] = self.benchmarks.shared(f"{task.title}\n{task.statement}")
        if words := self._shared[task.digest]:
            self.dropped[task.id] = words
        return not words

    @cached_property
    def _shared(self) -> dict[str, str]:
        return {}

    def split(self, task_id: str) -> str:
        """train, or test for a task that is held back. By the id alone: the same in every run and every format."""
        lot = int.from_bytes(sha256(f"held back|{task_id}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
        return "test" if lot / 2**64 < self.held_back else "train"

    def once(self) -> None:
        """BadInput where two runs hold the same draws, a copy for one: what is counted would be counted twice. Draws
        are the same where one seed asked one task in one way, whatever else the runs asked."""
        seen: dict[tuple[str, int, str], Run] = {}
        for run in self.runs:
            for task in run.cards.values():
                first = seen.setdefault((settings_of(run), run.identity["seed"], task.digest + task.id), run)
                if first is not run:
                    names = " and ".join(str(each.folder.path) for each in (first, run) if each.folder)
                    raise BadInput(
                        f"{names} hold the same draws ({task.id} asked alike, with --seed {run.identity['seed']}): "
                        "leave one of them out, or export them apart"
                    )

    def alike(self) -> None:
        """BadInput where the runs asked in several ways: passes of several models are no one task's difficulty."""
        ways = [{key: dumps(value) for key, value in run.identity.items()} for run in self.runs]
        names = dict.fromkeys(name for way in ways for name in way if name not in NO_MATTER)
        if differ := [flag(name) for name in names if len({way.get(name) for way in ways}) > 1]:
            raise BadInput(
                f"these runs differ in {', '.join(differ)}, so one row cannot tell of all: export them apart"
            )


def settings_of(run: Run) -> str:
    """All that decides what an attempt at a task is, but the draws."""
    return dumps({name: value for name, value in run.identity.items() if name not in NO_MATTER}, sort_keys=True)
