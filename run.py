"""swarm-rescue: what the prompts that a GRPO group throws away are worth, in four ways of spending the same samples.

    python run.py --dry-run                          three toy tasks, a fake policy, no key, no network
    python run.py --base-url URL --limit 20          twenty tasks on your endpoint
    python run.py --noise-runs 2                     every task, four arms, the noise band
    python run.py --tasks mbpp-bundle --noise-runs 2 the positive control
    python run.py --tasks my_tasks.jsonl             your own tasks
    python run.py --plan ...                         what it would ask and cost, probe included, then stop
    python run.py --reuse                            the report again from out/, no calls

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

import argparse
import asyncio
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import export
import report
from commands.console import complain, note, say, wants_colour
from commands.flags import VERSION, Flags, count, policy_flags
from commands.shared import (
    Budget,
    Watch,
    conduct,
    guarded,
    is_telling,
    move_aside,
    nothing_left,
    policy_of,
    sampling,
    versions,
    without_login,
)
from endpoint import Probe
from faults import DONE, ENDPOINT, BadInput, EndpointFault, RecordsError, TaskError
from figures.plan import make_plan, plan_digest, wants_full_budget
from measure import graded, measure
from records import EVENTS, Folder, Log, dumps, flag
from session import Session, each
from swarm import ARMS, PLAIN, Attempt, Style, bare, swarm
from tasks import Tasks, load
from tasksets.task import Task, card
from tasksets.toy import FakePolicy
from telling.page import page

# ── the flags, in their three classes ────────────────────────────────────────────────────────────────────────────────


def flags() -> Flags:
    parser = Flags(prog="run.py", usage="python run.py [flags]", description=__doc__)
    identity = parser.add_argument_group("identity", "what an attempt is: another value needs another folder")
    plan = parser.add_argument_group("plan", "which attempts are made, and what is concluded; may grow in a folder")
    free = parser.add_argument_group("free", "how fast, and how far")
    folder = parser.add_argument_group("folder")
    identity.add_argument("--tasks", default="code_contests", metavar="NAME|FILE", help="toy, code_contests, "
                          "mbpp-bundle, or your own .jsonl or .parquet (default: code_contests)")  # fmt: skip
    identity.add_argument("--revision", help="of the data set on the hub (default: the pinned one)")
    identity.add_argument("--bundle", type=count(1), default=5, help="functions a task of mbpp-bundle (default: 5)")
    policy_flags(identity, free)
    identity.add_argument("--no-comments", action="store_true", help="one more line in every prompt asks for that")
    identity.add_argument("--system", metavar="FILE", help="its text replaces the system prompt (empty: none)")
    identity.add_argument("--particles", type=count(1), default=8, help="N, attempts a round (default: 8)")
    identity.add_argument("--share-round0", action="store_true", help="ask round 0 once for all arms")
    identity.add_argument("--seed", type=count(0), default=0, help="of task order, requests and ties (default: 0)")
    identity.add_argument("--as-published", action="store_true", help="take back the departures that change numbers")
    plan.add_argument("--limit", type=count(1), help="tasks, the first of the seeded order (default: all)")
    plan.add_argument("--base-samples", type=count(1), default=8, help="G, the group (default: 8)")
    plan.add_argument("--band", choices=("all", "near-miss"), default="all", help="of the all-fail tasks; near-miss: "
                      "some base attempt passed a visible test (default: all)")  # fmt: skip
    plan.add_argument("--arms", type=_arms, default=list(ARMS), metavar="LIST", help=f"default: {','.join(ARMS)}")
    plan.add_argument("--rounds", type=count(1), default=3, help="R, rounds an arm (default: 3)")
    plan.add_argument("--noise-runs", type=count(0), default=0, help="re-runs of resample (default: 0)")
    plan.add_argument("--full-budget", action=argparse.BooleanOptionalAction, default=None, help="go on after a "
                      "rescue (default: only for mbpp-bundle)")  # fmt: skip
    plan.add_argument("--margin", type=_margin, metavar="POINTS", help="of equivalence (default: 5; 1 per sample)")
    folder.add_argument("--out", help="the run folder (default: out, or out-dry for a dry run)")
    folder.add_argument("--fresh", action="store_true", help="move an old folder aside (out.1) and begin anew")
    folder.add_argument("--reuse", action="store_true", help="report from the folder, no calls")
    folder.add_argument("--regrade", action="store_true", help="grade every saved reply again, no calls, and report")
    folder.add_argument("--dry-run", action="store_true", help="toy tasks and a fake policy")
    folder.add_argument("--plan", action="store_true", help="print what would be asked, write nothing, stop")
    folder.add_argument("--json", action="store_true", help="print results.json instead of the report")
    folder.add_argument("--verbose", action="store_true", help="requests on stderr, never a header")
    folder.add_argument("--version", action="version", version=f"swarm-rescue {VERSION}")
    return parser


IDENTITY = ("tasks revision bundle model temperature top_p max_tokens thinking no_comments system extra_body particles "
            "share_round0 seed as_published").split()  # fmt: skip
PLAN = "limit base_samples band arms rounds noise_runs full_budget margin".split()
FREE = "base_url concurrency workers request_timeout give_up_after stop_after price".split()


def _arms(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ARMS:
            raise argparse.ArgumentTypeError(f"there is no arm {name!r}; there are {', '.join(ARMS)}")
    return list(dict.fromkeys(names))


def _margin(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no margin: give points above 0 and under 100")
    return value


def settings(parser: Flags, argv: list[str] | None) -> argparse.Namespace:
    """The flags, checked against each other and filled in."""
    a = parser.parse_args(argv)
    if a.dry_run:
        if a.tasks != parser.get_default("tasks") or a.base_url or a.model:
            parser.error("--dry-run has its own tasks and policy: leave --tasks, --model and --base-url out")
        a.tasks, a.model = "toy", "fake"
    a.out = Path(a.out or ("out-dry" if a.dry_run else "out"))
    if a.full_budget is None and not (a.reuse or a.regrade):
        a.full_budget = wants_full_budget(a.tasks, a.as_published)
    chosen = [f"--{name}" for name in ("reuse", "regrade", "plan") if getattr(a, name)]
    if len(chosen) > 1 or (a.fresh and chosen):
        parser.error(f"{' and '.join(chosen + ['--fresh'] * a.fresh)} exclude each other: give one")
    if a.noise_runs and "resample" not in a.arms:
        parser.error("--noise-runs re-runs resample: put it into --arms")
    if a.system is not None:
        try:
            a.system = Path(a.system).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as why:
            parser.error(f"--system {a.system} cannot be read ({why}): name a text file")
    a.style = Style(PLAIN.system if a.system is None else a.system, a.no_comments)
    return a


# ── the experiment ───────────────────────────────────────────────────────────────────────────────────────────────────


def in_band(base: list[Attempt], band: str) -> bool:
    """Whether a task is given to the arms: its whole base group failed and, for near-miss, not without a trace."""
    return not any(attempt.passed for attempt in base) and (
        band == "all" or any(attempt.visible_passed for attempt in base)
    )


def arm_calls(a: argparse.Namespace) -> int:
    """The most attempts that the arms and re-runs make on one task."""
    shared = a.particles * (len(a.arms) - 1) if a.share_round0 else 0
    return (len(a.arms) + a.noise_runs) * a.particles * a.rounds - shared


async def rescue(task: Task, session: Session, a: argparse.Namespace, watch: Watch) -> None:
    """The experiment on one task: the base group; then, where it is in the band, every arm and re-run at once."""
    shown, style = task.shown(), a.style
    base = await session.play(task, swarm(shown, ARMS["resample"], "base", a.base_samples, 1, seed=a.seed, style=style))
    if len(base) < a.base_samples:  # an attempt stays owed, and a group with a gap is no group
        return
    if not in_band(base, a.band):
        return watch.not_needed(arm_calls(a))
    plays = [(arm, 0) for arm in a.arms] + [("resample", k) for k in range(1, a.noise_runs + 1)]
    flows = [
        swarm(shown, ARMS[arm], arm, a.particles, a.rounds, seed=a.seed, rerun=rerun, stop=not a.full_budget,
              first="round0" if a.share_round0 and not rerun else "", style=style)
        for arm, rerun in plays
    ]  # fmt: skip
    async with asyncio.TaskGroup() as group:
        playing = [group.create_task(session.play(task, flow)) for flow in flows]
    seen = {attempt.slot: attempt for play in playing for attempt in play.result()}
    if any(attempt.passed for attempt in seen.values()):
        watch.rescued.add(task.id)
    if task.id not in session.left:
        watch.not_needed(arm_calls(a) - len(seen))


async def experiment(log: Log, a: argparse.Namespace, session: Session, watch: Watch) -> None:
    """Every task, so many at once that the slots stay full and the tests in memory few."""

    async def one(task: Task) -> None:
        log.add_card(card(task))
        await rescue(task, session, a, watch)

    await each(tasks_of(a), one, at_once=max(8, a.concurrency))


def tasks_of(a: argparse.Namespace) -> Tasks:
    return load(a.tasks, a.limit, a.seed, bundle=a.bundle, revision=a.revision, keep_overlap=a.as_published)


# ── before it: what is asked for, and what is known ──────────────────────────────────────────────────────────────────


def survey(a: argparse.Namespace) -> dict[str, Any]:
    """A first walk over the tasks, that keeps none: how many, what was left out, how long the prompts are."""
    tasks = tasks_of(a)
    lengths = [len(bare(task.shown(), a.style).messages[-1]["content"]) for task in tasks]
    if not lengths:
        raise TaskError(f"{a.tasks} holds no task that can be used: name another with --tasks")
    return {**tasks.about.row(), "asked": len(lengths), "prompt_characters": sum(lengths)}


def identity_of(a: argparse.Namespace, model: str | None, data: dict[str, Any]) -> dict[str, Any]:
    identity = {name: getattr(a, name) for name in IDENTITY}
    return {**identity, "model": model, "revision": data["revision"]}


def plan_of(a: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(a, name) for name in PLAN}


def hold_against(config: dict[str, Any], a: argparse.Namespace, parser: Flags) -> None:
    """--reuse and --regrade tell what the folder holds: BadInput for a flag that asks for anything else."""
    held = {**config["identity"], **config["plan"], "margin": a.margin}  # another margin is another question
    for name in IDENTITY + PLAN:
        asked = getattr(a, name)
        if asked not in (parser.get_default(name), held.get(name)):
            was = (
                f"{a.out} was made with {flag(name)} {held.get(name)!r:.60}"  # a system prompt is a text of any length
            )
            raise BadInput(f"{was}, and no sample is asked for here: leave {flag(name)} out")


# ── doing ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def sample(log: Log, a: argparse.Namespace, data: dict[str, Any]) -> None:
    """Everything that costs: probe, plan, then the experiment. It fills the folder; the report is told from there."""
    from grader import Grader

    budget = Budget(a, log)
    async with FakePolicy(log=budget.record) if a.dry_run else policy_of(a, a.model, budget.record) as policy:
        server = await policy.probe()
        changed = log.settle(identity_of(a, server.model, data), plan_of(a))
        async with Grader(workers=a.workers, as_published=a.as_published) as grader:
            plan = write_down(log, a, data, server, grader, changed)
            note(report.plan_text(log.config, plan))
            watch = Watch(plan["calls"]["largest"] - len(log), a.concurrency)
            try:
                async with sampling(log, policy, grader, a, budget, watch) as session:
                    await experiment(log, a, session, watch)
            finally:
                log.append(EVENTS, {"event": "grader", "time": round(time.time(), 3), **grader.counts})
    log.write_json("config.json", {**log.config, "ended": time.time()})


def config_of(a: argparse.Namespace, data: dict[str, Any], server: Probe) -> dict[str, Any]:
    """config.json: the flags in their three classes, and all else that a number may depend on."""
    return {
        "identity": identity_of(a, server.model, data),
        "plan": plan_of(a),
        "free": {**{name: getattr(a, name) for name in FREE}, "base_url": [without_login(u) for u in a.base_url or ()]},
        "versions": versions(),
        "data": data,
        "server": asdict(server),
        "grades": "attempts",
        "price": a.price,
        "command": "run.py",
        "dry_run": a.dry_run,
        "started": time.time(),
        "ended": None,
    }


def write_down(
    log: Log, a: argparse.Namespace, data: dict[str, Any], server: Probe, grader: Any, changed: list[str]
) -> dict[str, Any]:
    """config.json and plan.json, before the first sample; later what has grown, as an amendment: the plan now."""
    old = log.config if log.begun else {}
    config = {**config_of(a, data, server), "tier": grader.tier, "rules": grader.rules}
    config |= {key: old[key] for key in ("grades", "started") if key in old}
    now = f"tier {grader.tier}, {grader.rules}"
    config["graded_under"] = list(dict.fromkeys([*old.get("graded_under", []), now]))
    if len(config["graded_under"]) > 1:
        note(f"warning: earlier attempts were graded under {config['graded_under'][0]}, now it is {now}: --regrade "
             "brings all under one")  # fmt: skip
    plan = make_plan(config, data["asked"], data["median_rating"]) | {"written": time.time()}
    if first := log.plan if old else None:
        if changed:
            amendment = {"time": plan["written"], "after_attempts": len(log), "changed": changed, "plan": plan}
            first["amendments"].append(amendment)
        log.write_json("plan.json", first)
    else:
        log.write_json("plan.json", first := plan)
    log.write_json("config.json", {**config, "plan_digest": plan_digest(first)})
    return plan


def make(a: argparse.Namespace, folder: Folder) -> int:
    """Sample what the folder lacks: the exit code."""
    old = folder.config_of("run.py") if not a.fresh and (a.out / "config.json").exists() else None
    if old and old["dry_run"] != a.dry_run:
        kind = "a dry run" if old["dry_run"] else "a real run"
        raise RecordsError(f"{a.out} holds {kind}: use another --out, or --fresh")
    data = survey(a)
    if a.plan:
        return plan_only(a, data)
    if a.fresh:
        move_aside(a.out)
    with Log(a.out) as log:
        for line in log.mended:
            note(line)
        if old and log.begun:
            a.model = a.model or old["identity"]["model"]
            changed = log.settle(identity_of(a, a.model, data), plan_of(a))
            walk = partial(experiment, log, a)
            if all(line.startswith("--margin ") for line in changed) and asyncio.run(nothing_left(log, a.seed, walk)):
                note("nothing is left to ask")
                return DONE
        return conduct(sample(log, a, data), log)


def plan_only(a: argparse.Namespace, data: dict[str, Any]) -> int:
    """--plan: what it would ask, probe included, and nothing written."""

    async def ask() -> Probe:
        async with FakePolicy() if a.dry_run else policy_of(a, a.model, lambda event: None) as policy:
            return await policy.probe()

    try:
        server = asyncio.run(ask())
    except EndpointFault as why:
        return complain(why, ENDPOINT)
    config = config_of(a, data, server)
    say(report.plan_text(config, make_plan(config, data["asked"], data["median_rating"])))
    return DONE


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def tell(a: argparse.Namespace, folder: Folder) -> None:
    """The report, results.json, rescued.jsonl and report.html, from what is on disk and nothing else."""
    config, cards, passing = folder.config, list(folder.cards()), []

    def attempts() -> Iterator[Attempt]:
        return graded(folder.attempts(), folder.checks(), config)

    def noting() -> Iterator[Attempt]:
        for attempt in attempts():
            if attempt.passed:
                passing.append(attempt)
            yield attempt

    if a.margin is not None:  # another one than the plan's is labelled exploratory
        config["plan"]["margin"] = a.margin
    results = measure(noting(), config, cards, folder.checks(), folder.events(), folder.plan)
    calibration = folder.read("calibration.json")
    where = shlex.quote(str(folder.path))
    say(
        dumps(results, indent=1)
        if a.json
        else report.text(results, colour=wants_colour(), calibration=calibration, folder=where)
    )
    folder.write_json("results.json", results)
    folder.write("rescued.jsonl", export.FORMATS["rows"](passing, cards, config, results))
    folder.write("report.html", page(results, attempts(), cards, config, calibration))
    for name, number in Counter(name for name, _ in folder.unreadable).items():
        note(f"{number} lines of {name} cannot be read; the next run moves them aside and asks again")


def main(argv: list[str] | None = None) -> int:
    parser = flags()
    a = settings(parser, argv)
    folder = Folder(a.out)

    def work() -> int:
        code = DONE
        if a.reuse or a.regrade:
            hold_against(folder.config_of("run.py"), a, parser)
        if a.regrade:
            from commands.regrade import regrade

            code = regrade(a)
        elif not a.reuse:
            code = make(a, folder)
        if is_telling(code, a.out) and not a.plan:
            tell(a, folder)
        return code

    return guarded(work)


if __name__ == "__main__":
    sys.exit(main())
