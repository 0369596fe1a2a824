"""Is the fitness a hill on text-to-SQL too? One prompt, a group of samples a question, partial credit against a match.

    python sql_calibrate.py --base-url URL --limit 20     twenty questions on your endpoint
    python sql_calibrate.py --limit 600                   the published size: 600 questions, 8 samples each
    python sql_calibrate.py --tasks my_questions.jsonl    your own: {"id", "db", "question", "gold_sql"} a line
    python sql_calibrate.py --plan ...                    what it would ask, probe included, then stop
    python sql_calibrate.py --reuse                       the report again from out/sql, no calls

Exact match: the query's rows are the gold query's, as a multiset, columns in order; NULL equals NULL alone, text never
a number, numbers agree within 1e-6; where the gold query orders its rows they come in the same sequence, up to ties
that the data leave open. Fitness: F1 over the multiset of cell values, whatever their place; a query that fails has 0.

Queries run in the grader's sandbox on a private copy of the database, under an authorizer: one statement, a query,
and nothing that attaches, writes, loads or sets. Whoever asks is never told a gold query or its result.

A gold query that fails, finds nothing, or is not determined by the data (a tie that a LIMIT, a window, a column beside
a sum or a concatenation decides, at any depth; the clock; chance), or is too costly to be tried in other orders, can
tell no right query from a wrong one. Such questions are flagged, counted, not asked, and in no curve.

{rule}

Exit codes: 0 done, 2 bad input, 3 a limit was reached, 4 the endpoint, 5 the grader or the disk, 130 interrupted.
Left out: other databases than SQLite, arms and rounds (where no curve rises there is nothing to climb).
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands import interrupt

    interrupt.at_once()  # Ctrl-C is one line from here on: the imports below take a second

import asyncio
import math
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from arms.question import REQUEST, question
from commands.checks import Checks
from commands.console import at_last, busy, note, point_at, say
from commands.flags import Flags
from commands.folder import config_of, ended, is_telling, note_unreadable, opened, show_curves, write_down
from commands.sampling import Budget, Watch, conduct, guarded, nothing_left, policy_of, probed, sampling
from commands.settings import Asked, Asking, Config, Data, Free, Row, count, setting, task_order, task_seed, values_of
from endpoint import Probe
from faults import DONE, TaskError
from figures.hill import RULE, Curve
from figures.plan import SCHEMA_VERSION
from grader import Grader
from grading.extract import extract_sql
from grading.grade import LETTERS, Grade, clip
from grading.sql import Bench, Gold, Result, Shown, worth
from grading.sql import SqlGrade as SqlGrade
from grading.sql import score as score
from grading.sql_compare import Answer, Cell
from grading.sql_form import is_query
from grading.sql_shown import beside, shown
from records import Folder, Log, dumps
from rows.queries import passing
from session import Session, Worker, each
from swarm import Attempt, swarm
from tasks import Tasks
from tasksets.sql import GRETEL, SETS, SqlTask, own_rows
from tasksets.task import About, Options, Task, Test, card
from telling.curves import areas, bucket_table, curve, plot
from telling.queries import queries_page
from telling.words import hill_line, plural

COMMAND = "sql_calibrate.py"
QUERY = 20_000  # characters of a gold query that are kept for the page
BUCKETS = ("no cell", "up to a quarter", "to a half", "to three quarters", "to 90%", "below every cell", "every cell")
PANELS = {"fitness": "all samples", "mixed": "tasks with both outcomes"}


# ── the flags, in their three classes ────────────────────────────────────────────────────────────────────────────────


@dataclass(kw_only=True)
class SqlIdentity(Asked):
    """what an attempt is: another value needs another folder"""

    tasks: str = setting(GRETEL, f"{GRETEL}, or your own .jsonl (default: {GRETEL})", metavar="NAME|FILE")
    revision: str | None = setting(None, "of the data set on the hub (default: the folder's, else the newest)")
    max_tokens: int = setting(512, "tokens a reply (default: 512)", count(1))
    seed: int = setting(0, "of the draws: requests (default: 0)", count(0))
    task_seed: int | None = setting(None, "of the order of questions (default: 0)", count(0))


@dataclass(kw_only=True)
class SqlPlan:
    """which attempts are made; may grow in a folder"""

    limit: int = setting(600, "questions, the first of the seeded order that can be used (default: 600)", count(1))
    base_samples: int = setting(8, "samples a question (default: 8)", count(1))


@dataclass(kw_only=True)
class Args(SqlIdentity, SqlPlan, Asking):
    """The flags, and where the run lies."""

    out: Path = setting(Path("out/sql"), "the run folder (default: out/sql)", Path)
    fresh: bool = setting(False, "move an old folder aside (sql.1) and begin anew")
    reuse: bool = setting(False, "report from the folder, no calls")
    plan: bool = setting(False, "print what would be asked, write nothing, stop")
    json: bool = setting(False, "print calibration.json instead of the report")
    verbose: bool = setting(False, "requests on stderr, never a header")


def flags() -> Flags[Args]:
    rule = textwrap.fill(f"The one line at the end follows this rule, cells for tests. {RULE}", 110)
    about = (__doc__ or "").replace("{rule}", rule)
    return Flags(COMMAND, about, Args, identity=SqlIdentity, plan=SqlPlan, free=Free)


# ── one prompt ───────────────────────────────────────────────────────────────────────────────────────────────────────


def described(tables: list[Shown]) -> str:
    """A database as the prompt shows it: its CREATE statements, each with the first rows of the table."""
    parts = []
    for create, rows in tables:
        lines = [create.strip().rstrip(";") + ";"]
        if len(rows) > 1:
            lines.append("-- first rows: " + " | ".join(map(str, rows[0])))
            lines += ["-- " + " | ".join(_short(value) for value in row) for row in rows[1:]]
        parts.append("\n".join(lines))
    # Bytes that are no UTF-8 came as lone surrogates, which no request can carry.
    return "\n\n".join(parts).encode("utf-8", "replace").decode()


def _short(value: Cell) -> str:
    text = "NULL" if value is None else f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:39] + "…"


# ── from a row to a task, and from a reply to a grade ────────────────────────────────────────────────────────────────


class Unusable(NamedTuple):
    """Why a question is not asked."""

    reason: str


class SqlGrader:
    """Stands where the grader stands: a reply's fitness is its cell F1, and a pass is an exact match.

    checks: where the results are kept, in short, for the page; they are not kept without.
    """

    def __init__(self, bench: Bench, checks: Checks | None = None, rules: str = "") -> None:
        self.bench, self.checks, self.rules = bench, checks, rules

    async def prepare(self, row: Task) -> SqlTask | Unusable:
        """The task that is asked, of a row as it was loaded."""
        database, golds = row.setup, tuple(test.input for test in row.hidden)
        made = await self.bench.database(database)
        if isinstance(made, Result):
            return Unusable("database cannot be made")
        if not any(is_query(gold) is not False for gold in golds):
            return Unusable("gold is no query")
        gold = await self.bench.gold(database, golds)
        if gold.flag:
            return Unusable(gold.flag)
        tables = await self.bench.show(database)
        if not tables:
            return Unusable("database cannot be shown")
        statement = f"A SQLite database:\n\n{described(tables)}\n\nQuestion: {row.statement.strip()}"
        hidden = Test(golds[0] if len(golds) == 1 else dumps(golds), made.digest, "private")
        return SqlTask(
            row.id, row.title, statement, "sql", (), (hidden,), tags=row.tags, database=database, golds=golds
        )

    async def grade(self, reply: str, task: Task) -> Grade:
        assert isinstance(task, SqlTask), "tasks to be asked come from prepare"
        gold = await self.bench.gold(task.database, task.golds)
        code = extract_sql(reply)
        result = Result(None, "no_code") if code is None else await self.bench.ask(task.database, code)
        found = worth(gold, result)
        passed = found.exact_match is True
        outcome = result.outcome if not found.executes else "pass" if passed else "wrong_answer"
        letter, cpu = LETTERS[outcome], round(result.cpu_seconds, 6)
        if self.checks and code is not None:
            await self.keep(self.checks, task, gold, code, result, letter)
        return Grade(code, found.cell_f1 or 0.0, passed, outcome, "", letter, clip(result.error), cpu_seconds=cpu)

    async def keep(self, checks: Checks, task: SqlTask, gold: Gold, code: str, result: Result, letter: str) -> None:
        """The results of a query and of its gold queries, in short, once for each distinct one."""

        async def of_gold(answer: Answer) -> Row:
            known: Row = {
                "letters": LETTERS["pass"],
                "query": answer.query[:QUERY],
                "ordered": answer.blocks is not None,
            }
            return {**known, "result": shown(answer.rows)}

        async def of_query() -> Row:
            row: Row = {"letters": letter, "cpu_seconds": round(result.cpu_seconds, 6)}
            if result.rows is None or letter == LETTERS["pass"]:  # of a match the gold query's rows tell all
                return row
            return {**row, **await asyncio.to_thread(beside, gold.answers, result.rows)}

        for answer in gold.answers:
            await checks.once(task, answer.query, "gold", task.hidden, self.rules, partial(of_gold, answer))
        await checks.once(task, code, "query", task.hidden, self.rules, of_query)


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def loaded(args: Args) -> tuple[list[Task], About]:
    """All rows of the task set in the seeded order, and what is known about them."""
    read = SETS.get(args.tasks) or partial(own_rows, Path(args.tasks))
    tasks = Tasks(args.tasks, read, Options(task_order(vars(args)), revision=args.revision))
    return list(tasks), tasks.about


async def survey(args: Args, grader: SqlGrader, rows: list[Task], about: About) -> tuple[list[Task], Data]:
    """The questions that are asked: the first --limit of the rows whose gold query tells right from wrong."""
    left_out, tasks, looked_at = Counter(about.left_out), list[Task](), 0
    room = asyncio.Semaphore(16)
    note(f"running the gold queries of {min(args.limit, len(rows)):,} questions or more")

    async def prepare(row: Task) -> Task | Unusable:
        async with room:
            return await grader.prepare(row)

    for start in range(0, len(rows), 64):
        for found in await asyncio.gather(*map(prepare, rows[start : start + 64])):
            if len(tasks) == args.limit:
                break
            looked_at += 1
            if isinstance(found, Unusable):
                left_out[found.reason] += 1
            else:
                tasks.append(found)
        if len(tasks) == args.limit:
            break
        if looked_at % 512 == 0:
            note(f"{looked_at:,} of {len(rows):,} questions looked at, {len(tasks):,} can be used")
    if not tasks:
        reasons = ", ".join(f"{n} {reason}" for reason, n in left_out.items())
        raise TaskError(f"{args.tasks} has no question that can be used ({reasons}): name another with --tasks")
    length = sum(len(task.statement) + len(REQUEST) for task in tasks)
    facts = {"left_out": dict(left_out), "asked": len(tasks), "looked_at": looked_at, "prompt_characters": length}
    return tasks, cast(Data, {**about.row(), **facts})


async def experiment(tasks: list[Task], log: Log, args: Args, session: Session, watch: Watch) -> None:
    """A base group on every question, and nothing else."""

    async def one(task: Task) -> None:
        log.add_card(card(task))
        group = swarm(task.shown(), question, "base", args.base_samples, 1, seed=args.seed)
        if any(attempt.passed for attempt in await session.play(task, group)):
            watch.rescued.add(task.id)

    await each(iter(tasks), one, at_once=max(8, args.concurrency))


def identity_of(args: Args, model: str | None, revision: str | None) -> Row:
    return {**values_of(args, SqlIdentity), "model": model, "revision": revision}


async def sample(log: Log, args: Args) -> None:
    """Everything that costs: gold queries, probe, plan, then the samples. It fills the folder; `tell` reads it."""
    old, changed, plan = log.config_of(COMMAND) if log.begun else None, list[str](), values_of(args, SqlPlan)
    if old and old["identity"]["tasks"] == args.tasks:
        args.revision = args.revision or old["identity"]["revision"]
    args.task_seed = task_seed(args.task_seed, args.seed, old)
    rows, about = await asyncio.to_thread(loaded, args)
    if old:
        args.model = args.model or old["identity"]["model"]
        changed = log.settle(identity_of(args, args.model, about.revision), plan)
    budget = Budget(args, log, args.verbose)
    async with Grader(workers=args.workers) as inner:
        grader = SqlGrader(Bench(inner), Checks(log, "sql"), inner.rules)
        await grader.bench.check()
        tasks, data = await survey(args, grader, rows, about)
        walk = partial(experiment, tasks, log, args)
        if old and not changed and await nothing_left(log, args.seed, walk):
            return note("nothing is left to ask")
        async with policy_of(args, budget.record) as policy:
            server = await probed(policy)
            identity = identity_of(args, server.model, data["revision"])
            changed = log.settle(identity, plan)
            config = config_of(args, COMMAND, identity, plan, data, server)
            config |= {"tier": inner.tier, "rules": inner.rules}
            write_down(log, config, make_plan(args, data), changed, cure="the report counts both")
            note(say_plan(args, data, server))
            watch = Watch(data["asked"] * args.base_samples, args.concurrency, "matched", there=len(log))
            async with sampling(log, Worker(policy, grader), args.seed, budget, watch) as session:
                await walk(session, watch)
    ended(log)


def make_plan(args: Args, data: Data) -> Row:
    """plan.json: what is going to be concluded, and how."""
    calls = data["asked"] * args.base_samples
    return {
        "schema_version": SCHEMA_VERSION,
        "population": {"tasks": data["asked"], "task_set": args.tasks, "revision": data["revision"],
                       "base_samples": args.base_samples},
        "primary_metric": "does cell F1 predict an exact match within a task",
        "rule": {"text": RULE},
        "calls": {"largest": calls},
        "tokens": {"completion_largest": calls * args.max_tokens},
        "settings": values_of(args, SqlPlan),
        "amendments": [],
    }  # fmt: skip


def say_plan(args: Args, data: Data, server: Probe) -> str:
    """What is going to be asked, and of whom."""
    calls = data["asked"] * args.base_samples
    given, made = (
        args.base_samples * data["prompt_characters"] // 3,
        calls * args.max_tokens,
    )  # three characters a token
    usd = f", about {(given * args.price[0] + made * args.price[1]) / 1e6:,.2f} usd" if args.price else ""
    revision = f", revision {data['revision']}" if data["revision"] else ""
    return "\n".join(
        [
            f"questions: {data['asked']:,} of {data['tasks']:,} in {data['source']}{revision}",
            *textwrap.wrap(left_out_line(data), 80),
            *data["notes"],
            f"calls: {calls:,} ({args.base_samples} a question)",
            f"tokens: at most {made:,} out, about {given:,} in{usd}",
            f"policy: {server.model}, temperature {args.temperature:g}, top_p {args.top_p:g}, {args.max_tokens:,} "
            f"tokens a reply, thinking {args.thinking}",
            *(f"server: {line}" for line in server.facts),
            *(f"warning: {line}" for line in server.warnings),
        ]
    )


def left_out_line(data: Data) -> str:
    """What was looked at and not asked, by reason."""
    reasons = "; ".join(f"{reason} {number:,}" for reason, number in sorted(data["left_out"].items()))
    return f"left out of {data['looked_at']:,} looked at: {reasons or 'none'}"


def make(args: Args) -> int:
    """Sample what the folder lacks: the exit code."""
    if args.plan:
        return plan_only(args)
    with opened(args.out, args.fresh) as log:
        return conduct(sample(log, args), log)


def plan_only(args: Args) -> int:
    """--plan: what it would ask, gold queries and probe included, and nothing written."""

    async def ask() -> str:
        async with Grader(workers=args.workers) as inner:
            grader = SqlGrader(Bench(inner))
            await grader.bench.check()
            _, data = await survey(args, grader, rows, about)
        async with policy_of(args, lambda event: None) as policy:
            return say_plan(args, data, await probed(policy))

    folder = Folder(args.out)
    old = folder.config_of(COMMAND) if folder.is_settled and not args.fresh else None
    args.task_seed = task_seed(args.task_seed, args.seed, old)
    rows, about = loaded(args)
    say(asyncio.run(ask()))
    return DONE


# ── telling: from the folder, and nothing else ───────────────────────────────────────────────────────────────────────


def calibration(config: Config, attempts: Iterator[Attempt]) -> Row:
    """All of calibration.json: counts, the curves over all samples and over tasks with both outcomes, the correlation.

    Over the tasks whose group is whole.
    """
    samples = config["plan"]["base_samples"]
    by_task: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if attempt.particle < samples:
            by_task[attempt.task_id].append(attempt)
    refused = {task for task, those in by_task.items() if any(attempt.outcome == "refused" for attempt in those)}
    whole = {t: those for t, those in sorted(by_task.items()) if len(those) == samples and t not in refused}
    every = [attempt for those in whole.values() for attempt in those]
    failed = [those for those in whole.values() if not any(attempt.passed for attempt in those)]
    mixed = {t: those for t, those in whole.items() if 0 < sum(attempt.passed for attempt in those) < samples}
    counts = {
        "tasks": len(whole),
        "unfinished": config["data"]["asked"] - len(whole) - len(refused),
        "refused": len(refused),
        "attempts": len(every),
        "passes": sum(attempt.passed for attempt in every),
        "all_fail": len(failed),
        "near_miss": sum(any(attempt.fitness > 0 for attempt in those) for those in failed),
        "mixed": len(mixed),
        "all_pass": len(whole) - len(failed) - len(mixed),
        "truncated": sum(attempt.finish_reason == "length" for attempt in every),
        "outcomes": dict(Counter(attempt.outcome for attempt in every).most_common()),
        "tokens": {"prompt": sum(attempt.prompt_tokens or 0 for attempt in every),
                   "completion": sum(attempt.completion_tokens or 0 for attempt in every)},
    }  # fmt: skip
    return {
        "schema_version": SCHEMA_VERSION,
        "graded_under": config.get("graded_under"),
        "settings": {**config["identity"], **config["plan"]},
        "counts": counts,
        "data": config["data"],
        "tests": "fitness: F1 over cell values; target: exact match of the rows",
        "fitness": cells_curve(every),
        "mixed": cells_curve(attempt for those in mixed.values() for attempt in those),
        "correlation": correlation((attempt.fitness, attempt.passed, attempt.task_id) for attempt in every),
    }


def cells_curve(attempts: Iterable[Attempt]) -> Curve:
    """The curve of cell F1 against exact matches."""
    rows = ((attempt.fitness, attempt.passed, attempt.task_id) for attempt in attempts)
    return curve(rows, BUCKETS, scored="of cell F1", noun="sample")


def correlation(rows: Iterable[tuple[float, bool, str]]) -> Row:
    """Pearson's r over tasks, between the mean fitness of a task's wrong attempts and its pass rate.

    rows: (fitness, passed, task). Tasks with a wrong attempt count. The interval, at 95%, leaves each task out in turn,
    on Fisher's scale, with Student's t: neither side is normal, and Fisher's own interval covers 88 to 92%, from 30
    tasks on this one 93 to 96% (docs/statistics.md). Not estimable, all None: under four tasks; one value on a side, or
    all points on one line (two distinct points always are), of all tasks or of all but one, up to what rounding does to
    a mean, since such points have no spread to measure.
    """
    by_task: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for fitness, passed, task in rows:
        by_task[task].append((fitness, passed))
    pairs = []
    for those in by_task.values():
        wrong = [fitness for fitness, passed in those if not passed]
        if wrong:
            pairs.append((sum(wrong) / len(wrong), 1 - len(wrong) / len(those)))
    found: Row = {"n": len(pairs), "r": None, "interval": None, "p_value": None}
    if len(pairs) > 3 and all(max(side) - min(side) > 1e-9 for side in zip(*pairs, strict=True)):
        from scipy.stats import pearsonr

        from estimators.scores import correlation_ci

        x, y = zip(*pairs, strict=True)
        result, ends = pearsonr(x, y), list(correlation_ci(x, y))
        if abs(result.statistic) < 1 - 1e-6 and not math.isnan(ends[0]):
            found |= {"r": float(result.statistic), "interval": ends, "p_value": float(result.pvalue)}
    return found


def facts(made: Row) -> list[str]:
    """What was asked and what came of it, a line each."""
    counts, data, settings = made["counts"], made["data"], made["settings"]
    under = made.get("graded_under") or []
    outcomes = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in counts["outcomes"].items())
    return [
        f"text-to-SQL, {settings['model']}: {plural(counts['tasks'], 'question')} of {data['source']}, "
        f"{plural(settings['base_samples'], 'sample')} each",
        *([f"{counts['unfinished']:,} more are not finished and not counted"] if counts["unfinished"] else []),
        *([f"{counts['refused']:,} are not counted, since the server refuses them"] if counts["refused"] else []),
        left_out_line(data),
        *([f"attempts were graded under {' and under '.join(under)}"] if len(under) > 1 else []),
        f"{counts['all_fail']:,} all-fail ({counts['near_miss']:,} of them near-miss: some sample has a right cell), "
        f"{counts['mixed']:,} with both outcomes, {counts['all_pass']:,} all-pass",
        f"{plural(counts['attempts'], 'sample')}: {outcomes}; {counts['truncated']:,} cut off at "
        f"{settings['max_tokens']:,} tokens",
    ]


def correlated(found: Row) -> str:
    """The correlation in a sentence."""
    r, over = found["r"], plural(found["n"], "task")
    said = (
        f"{r:+.2f} [{found['interval'][0]:+.2f}, {found['interval'][1]:+.2f}] over {over} (published: -0.19 over 371)"
        if r is not None
        else f"not estimable ({over} with a wrong attempt, or one value for all, or on one line, all but one)"
    )
    return f"mean cell F1 of a task's wrong samples against its pass rate, r {said}"


def text(made: Row) -> str:
    """The report, within 80 columns."""
    out = [line for one in facts(made) for line in textwrap.wrap(one, 80)]
    for name, title in (("fitness", "cell F1, all samples"), ("mixed", "tasks with both")):
        out += ["", *bucket_table(title, made[name], "samples that match", "sample")]
    out += ["", *areas(made["fitness"]), ""]
    out += textwrap.wrap(correlated(made["correlation"]), 80)
    return "\n".join([*out, "", *textwrap.wrap(hill_line("fitness", made["fitness"]), 80)])


def tell(args: Args, folder: Folder, stopped: bool = False) -> None:
    """calibration.json, its plot, the report, the page and the rows, from what is on disk and nothing else."""
    config = folder.config_of(COMMAND)
    made, cards = calibration(config, folder.attempts()), list(folder.cards())
    folder.write_json("calibration.json", made)
    told = text(made)
    say(dumps(made, indent=1) if args.json else told)
    rows = passing(config, cards, folder.attempts())
    folder.write("passing.jsonl", rows)
    with busy("making the page"):
        said = [*facts(made), correlated(made["correlation"])]
        folder.write("report.html", queries_page(made, PANELS, said, cards, folder.attempts(), folder.checks()))
    note_unreadable(folder)
    point_at(folder.path / "report.html", "the report as a page")
    point_at(folder.path / "report.txt", "the report as it stands above")
    point_at(folder.path / "passing.jsonl", plural(rows.count("\n"), "training row"))
    show_curves(folder, plot(made, PANELS), told, is_report=True)
    if made["counts"]["unfinished"] and not stopped:
        at_last("to continue, since it is not finished: the command that made it goes on")


def main(argv: list[str] | None = None) -> int:
    args = flags().read(argv)

    def work() -> int:
        code = DONE if args.reuse else make(args)
        if is_telling(code, args.out) and (args.reuse or not args.plan):
            tell(args, Folder(args.out), stopped=code != DONE)
        return code

    return guarded(work)


if __name__ == "__main__":
    interrupt.leave(main)
