"""swarm-rescue: what the prompts that a GRPO group throws away are worth, in four ways of spending the same samples.

    python run.py --dry-run                          three toy tasks, a fake policy, no key, no network
    python run.py --base-url URL --limit 20          twenty tasks on your endpoint
    python run.py --noise-runs 2                     every task, four arms, the noise band
    python run.py --tasks mbpp-bundle --noise-runs 2 the positive control
    python run.py --tasks my_tasks.jsonl             your own tasks
    python run.py --plan ...                         what it would ask and cost, probe included, then stop
    python run.py --reuse                            the report again from out/, no calls
    python run.py --show TASK [SLOT]                 one task or attempt: prompt as sent, program, tests
    python run.py --shard 1/4 --out out-1            every fourth task; report.py --merge puts the parts together
    python run.py --ray auto ...                     the same run on the nodes of a Ray cluster
    python run.py --watch                            from a second terminal: how the run in out/ is doing

A base group of 8 samples a task finds the tasks that a group throws away. Each of them gets 24 more samples in every
arm: resample (fresh draws), solo (particles that refine their own best), ring (and see the better of two neighbours),
star (and see the best of all). Programs run in a sandbox; a pass is every visible and every hidden test. What comes
out stands in the folder --out: the report, results.json, and rescued.jsonl, the passing programs as training rows.

A run that was stopped, by a fault or Ctrl-C, goes on with the same command, and after a limit with the one that is
printed then. Exit codes: 0 done, 2 bad input, 3 a limit was reached, 4 the endpoint, 5 the grader or the disk, 130
interrupted.

Left out: programs in other languages, tasks with a special judge, training itself.
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands import interrupt

    interrupt.at_once()  # Ctrl-C is one line from here on: the imports below take a second

import asyncio
import shlex
from functools import partial
from typing import cast

from arms.known import arm_of, hold, needs, playable
from cluster import Cluster
from commands.arguments import Args, settings
from commands.console import busy, note, say, wants_colour
from commands.flags import ASKED_ANEW, Flags, hold_against
from commands.folder import (
    config_of,
    ended,
    held,
    is_telling,
    note_remarks,
    note_unreadable,
    opened,
    show_report,
    write_down,  # fmt: skip
)
from commands.player import Play
from commands.regrade import regrade
from commands.rollouts import Given, known, unknown
from commands.sampling import Budget, Watch, conduct, guarded, nothing_left, policy_of, probed, sampling
from commands.settings import Config, Data, Identity, Plan, Row, Spread, task_seed, values_of
from commands.show import show
from commands.track import tracked, tracker
from commands.verify import verify
from commands.watch import watching
from endpoint import Policy, Probe, Record
from faults import DONE, RecordsError, TaskError
from figures.plan import make_plan
from measure import measure
from records import Folder, Log, dumps
from rows.found import passed, rescued
from session import Session, Worker, each
from swarm import ARMS, Attempt, bare, swarm
from tasks import Tasks, of_identity
from tasksets.task import Task, card
from tasksets.toy import FakePolicy
from telling.page import page
from telling.text import plan_text, text

COMMAND = "run.py"


def flags() -> Flags[Args]:
    return Flags(COMMAND, __doc__, Args, identity=Identity, plan=Plan, free=Spread)


# ── the experiment ───────────────────────────────────────────────────────────────────────────────────────────────────


def in_band(base: list[Attempt], band: str) -> bool:
    """Whether a task is given to the arms: its whole base group failed and, for near-miss, not without a trace. Of a
    group that the server refused in part nothing is known."""
    return not any(attempt.passed or attempt.outcome == "refused" for attempt in base) and (
        band == "all" or any(attempt.visible_passed for attempt in base)
    )


def arm_calls(args: Args) -> int:
    """The most attempts that the arms and re-runs make on one task."""
    shared = args.particles * (len(args.arms) - 1) if args.share_round0 else 0
    return (len(args.arms) + args.noise_runs) * args.particles * args.rounds - shared


async def rescue(task: Task, session: Session, args: Args, watch: Watch) -> None:
    """The experiment on one task: the base group; then, where it is in the band, every arm and re-run at once."""
    shown, style, seed = task.shown(), args.style, args.seed
    group = swarm(shown, ARMS["resample"], "base", args.base_samples, 1, seed=seed, style=style)
    base = await session.play(task, group)
    if len(base) < args.base_samples:  # an attempt stays owed, and a group with a gap is no group
        return
    if not in_band(base, args.band) or not args.audited.gives(task, args.only_passable):
        return watch.not_needed(arm_calls(args))
    plays = [(arm, 0) for arm in playable(args.arms, task)] + [("resample", k) for k in range(1, args.noise_runs + 1)]
    flows = [
        swarm(task.shown(needs(arm)), arm_of(arm), arm, args.particles, args.rounds, seed=seed, rerun=rerun,
              stop=not args.full_budget, first="round0" if args.share_round0 and not rerun else "", style=style)
        for arm, rerun in plays
    ]  # fmt: skip
    async with asyncio.TaskGroup() as together:
        playing = [together.create_task(session.play(task, flow)) for flow in flows]
    seen = {attempt.slot: attempt for play in playing for attempt in play.result()}
    if any(attempt.passed for attempt in seen.values()):
        watch.rescued.add(task.id)
    if task.id not in session.left:
        watch.not_needed(arm_calls(args) - len(seen))


async def experiment(log: Log, args: Args, session: Session, watch: Watch, play: Play = rescue) -> None:
    """Every task, so many at once that the slots stay full and the tests in memory few. play: here, or elsewhere."""

    async def one(task: Task) -> None:
        log.add_card(card(task))
        await play(task, session, args, watch)

    await each(args.part.of(tasks_of(args)), one, at_once=max(8, args.concurrency))


def tasks_of(args: Args) -> Tasks:
    references = int(any(map(needs, args.arms)))
    return of_identity(vars(args), args.limit, only=known(args.rollouts), references=references)


# ── before it: what is asked for, and what is known ──────────────────────────────────────────────────────────────────


def survey(args: Args) -> Data:
    """A first walk over the tasks, that keeps none: how many, what was left out, how long the prompts are."""
    tasks = tasks_of(args)
    with busy(f"reading the tasks of {args.tasks}"):
        walk = args.part.noting(args.audited.counting(tasks))
        lengths = [len(bare(task.shown(), args.style).messages[-1]["content"]) for task in walk]
    if not lengths:
        raise TaskError(f"{args.tasks} holds no task that can be used: name another with --tasks")
    return cast(Data, {**tasks.about.row(), "asked": len(lengths), "prompt_characters": sum(lengths),
                       "notes": [*tasks.about.notes, *unknown(args.rollouts)],
                       "audit": args.audited.counts(args.only_passable)})  # fmt: skip


def identity_of(args: Args, model: str | None, data: Data) -> Row:
    """With the model and the revision that were found."""
    return {**values_of(args, Identity), "model": model, "revision": data["revision"]}


def planned(args: Args, data: Data, server: Probe) -> tuple[Config, Row]:
    """config.json and plan.json of a run with these settings."""
    config = args.part.within(config_of(args, COMMAND, identity_of(args, server.model, data), values_of(args, Plan),
                                        data, server, args.dry_run))  # fmt: skip
    return config, make_plan(config, data["asked"], data["median_rating"])


# ── doing ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def sample(log: Log, args: Args, data: Data) -> None:
    """Everything that costs: probe, plan, then the experiment. It fills the folder; the report is told from there."""
    from grader import Grader

    budget = Budget(args, log, args.verbose)
    async with policy(args, budget.record) as asked:
        server = await probed(asked)
        changed = log.settle(identity_of(args, server.model, data), values_of(args, Plan))
        cluster = Cluster(args, log, budget, server.model, rescue, policy) if args.ray else None
        async with cluster or Grader(workers=args.workers, as_published=args.as_published) as grader:
            config, plan = planned(args, data, server)
            config |= {"tier": grader.tier, "rules": grader.rules}
            write_down(log, config, plan, changed, cure="--regrade brings all under one")
            note(plan_text(config, plan))
            note_remarks(grader.remarks)
            watch = Watch(args.part.most(plan["calls"]), args.concurrency, there=len(log))
            over = (grader.sampling(args.seed, watch) if isinstance(grader, Cluster) else sampling(
                log, Given.of(Worker(asked, grader), args.rollouts, args.seed), args.seed, budget, watch))  # fmt: skip
            async with over as session:
                await experiment(log, args, session, watch, cluster.play if cluster else rescue)
    ended(log)


def policy(args: Args, log: Record) -> FakePolicy | Policy:
    """To be entered: the endpoint's, or the fake one of a dry run."""
    return FakePolicy(log=log) if args.dry_run else policy_of(args, log, args.as_published)


def make(args: Args, folder: Folder) -> int:
    """Sample what the folder lacks: the exit code."""
    old = folder.config_of(COMMAND) if not args.fresh and folder.is_settled else None
    if old and old["dry_run"] != args.dry_run:
        kind = "a dry run" if old["dry_run"] else "a real run"
        raise RecordsError(f"{args.out} holds {kind}: use another --out, or --fresh")
    # Said before another data set is fetched.
    if not args.plan and old and old["identity"]["tasks"] != args.tasks and any(folder.attempts()):
        was = f"--tasks {old['identity']['tasks']} -> {args.tasks}"
        raise RecordsError(f"{args.out} holds another experiment ({was}): use another --out, or --fresh")
    args.task_seed = task_seed(args.task_seed, args.seed, old, args.as_published)
    if not (old or args.dry_run):
        policy_of(args, lambda event: None)  # that no endpoint is named is said before a data set is fetched
    data = survey(args)
    if args.plan:
        return plan_only(args, data, folder)
    with opened(args.out, args.fresh) as log, tracked(args.out, args.track):
        args.audited.keep(log)
        if old and log.begun:
            hold(args.arms, old, log.path, log.attempts())
            args.model = args.model or old["identity"]["model"]
            args.predict = args.predict or old["plan"].get("predict")
            changed = log.settle(identity_of(args, args.model, data), values_of(args, Plan))
            args.part.hold(old, log.path)
            asks_the_same = all(line.startswith(("--margin ", "--predict ")) for line in changed)
            if asks_the_same and asyncio.run(nothing_left(log, args.seed, partial(experiment, log, args))):
                note("nothing is left to ask")
                return DONE
        return conduct(sample(log, args, data), log)


def plan_only(args: Args, data: Data, folder: Folder) -> int:
    """--plan: what it would ask, probe included, and nothing written."""

    async def ask() -> Probe:
        async with policy(args, lambda event: None) as asked:
            return await probed(asked)

    config, plan = planned(args, data, asyncio.run(ask()))
    if args.json:
        say(dumps(plan, indent=1))
    else:
        say(plan_text(config, plan, held(folder, config, data["asked"])))
    return DONE


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def tell(args: Args, folder: Folder, stopped: bool = False) -> None:
    """The report, results.json, rescued.jsonl and the pages, from what is on disk and nothing else."""
    config, cards = folder.config, list(folder.cards())
    # another one than the plan's is labelled exploratory
    config["plan"] |= {
        name: now for name in (*ASKED_ANEW, "predict") if (now := getattr(args, name)) not in (None, False)
    }
    audit = args.audited.keep(folder)
    with busy(f"reading {folder.path}"):
        stored = folder.stored(config)
        results = measure(stored.gathered, config, cards, folder.checks(), folder.events(), folder.plan, audit)
        passing = passed(stored, folder.checks(), config, base=False)
    calibration = folder.read("calibration.json")
    told = partial(text, results, calibration=calibration, folder=shlex.quote(str(folder.path)))
    say(dumps(results, indent=1) if args.json else told(colour=wants_colour()))
    folder.write_json("results.json", results)
    rows_of = partial(rescued, passing, cards, config, results)
    good, apart = rows_of(folder.checks()), rows_of(folder.checks(), apart=True)
    folder.write("rescued.jsonl", good)
    folder.write("rescued-unverified.jsonl", apart)
    folder.write("report.txt", told() + "\n")
    with busy("making the page"):
        folder.write("report.html", page(results, stored, cards, config, calibration, folder.checks()))
    note_unreadable(folder)
    show_report(folder, results, good, apart, stopped)


def main(argv: list[str] | None = None) -> int:
    parser = flags()
    args = settings(parser, argv)
    folder = Folder(args.out)

    def work() -> int:
        code = DONE
        if args.watch:
            return watching(folder, tracker(args.track))
        if args.show:
            show(folder, args.show)
            return code
        if args.reuse or args.regrade:
            hold_against(folder.config_of(COMMAND), args, parser)
        if args.regrade:
            code = regrade(args.out, args.workers, args.ray)
        elif not args.reuse:
            code = make(args, folder) or (DONE if args.plan else verify(args.out, args.workers))
        if is_telling(code, args.out) and not args.plan:
            tell(args, folder, stopped=code != DONE)
        return code

    return guarded(work)


if __name__ == "__main__":
    interrupt.leave(main)
