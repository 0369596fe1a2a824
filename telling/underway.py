"""A run that goes on, as text: what `run.py --watch` shows.

    lines(name, seen, now, state, paper)        all of it, for a terminal
    short(seen, now, state)                     one line, for a log
    phase(seen, now, state)                     what is being done, or how it ended

Counts of a run that is not finished are no rates, and the verdict is the one that holds at any look; both are said.

Left out: reading the folder (commands/watch.py), the figures (figures/underway.py), the report (text.py).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from faults import BAD_INPUT, DONE, ENDPOINT, GRADER, INTERRUPTED, LIMIT
from figures.numbers import plural
from figures.plan import CONTROL
from figures.results import Results
from figures.underway import Seen, Underway
from telling import beside
from telling.shown import printable
from telling.tables import VERDICT, Table, table
from telling.text import Paper
from telling.words import span

ENDS = {
    DONE: "done",
    BAD_INPUT: "a flag or the folder could not be used",
    LIMIT: "a limit was reached (--stop-after)",
    ENDPOINT: "the endpoint",
    GRADER: "the grader or the disk",
    INTERRUPTED: "interrupted",
}
TROUBLE = {"retry": "sent again", "refused": "too long", "declined": "refused", "fault": "given up"}
DRY_RUN = "DRY RUN: toy tasks and a fake policy."
NO_RATES = "A task on which an arm passes early is finished early, so these counts are no rates yet."
EXPLORATORY = "What is done is not what the plan says, so the verdicts are exploratory: docs/statistics.md."


Owner = Literal["here", "nobody", "unknown"]  # who writes: a process of this machine, none that is seen, who knows

Over = Literal["", "ended", "killed", "silent"]


@dataclass(frozen=True)
class State:
    """What the folder shows beside its lines."""

    owner: Owner
    quiet: float  # seconds since a line was written
    over: Over = ""  # whether nothing more is to come, as far as can be told


def phase(seen: Seen, now: Underway | None, state: State) -> str:
    """What is being done, in a few words that stay while it is."""
    start = seen.start
    if state.over:
        return ended(seen, state)
    if start is None or start.code is not None:
        return "reading what the folder holds, or making the report"
    if start.probed:
        return "sampling"
    if start.waits:
        return f"waiting for the server: {start.waits}"
    if start.checks or (now and not now.owes):
        return "running saved programs again"
    return "asking the server for one token"


def ended(seen: Seen, state: State) -> str:
    """How it ended, where it has."""
    start = seen.start
    if state.over == "killed":
        return f"killed, with its last line {span(state.quiet)} ago: nothing paid is lost, the same command goes on"
    if state.over == "silent":
        return (
            f"no line for {span(state.quiet)}, and no process of this machine writes here: it was killed (then the "
            "same command goes on), or it runs on another machine and hangs"
        )
    code = start.code if start and start.code is not None else DONE
    why = f": {start.trouble}" if start and start.trouble and code == ENDPOINT else ""
    return f"ended: {ENDS.get(code, f'exit code {code}')}{why}"


def lines(name: str, seen: Seen, now: Underway | None, state: State, paper: Paper, verdict: str = "") -> list[str]:
    """Title, phase, what is asked and paid, the arms, what may be concluded. now: None before there is a config.json;
    verdict: of the report, once there is one of these very attempts."""
    doing = phase(seen, now, state)
    if not state.over and seen.start:
        done = f" ({plural(seen.start.checks, 'check')})" if seen.start.checks and not seen.start.probed else ""
        doing += f"{done} for {span(max(0.0, seen.clock - seen.start.began))}; the last line is {span(state.quiet)} old"
        doing += ", and no process of this machine writes here" * (state.owner == "nobody")
    if now is None or seen.config is None:
        return [paper.head(printable(name)), *_beside("now", printable(doing), paper.width)]
    identity = seen.config["identity"]
    title = f"{name}: {identity['model']} on {identity['tasks']}, {plural(now.asked, 'task')}"
    facts = {"now": doing, **_facts(seen, now, state)}
    told = [line for label, said in facts.items() for line in _beside(label, printable(said), paper.width)]
    arms = paper.table(_arms(now)) if now.given else []
    said = [NO_RATES] if arms and now.owes and now.stops else []
    bets = any(row["n"] for row in now.watched["arms"].values()) and not verdict
    said += [EXPLORATORY] if bets and not now.watched["planned"] else []
    told += [""] * bool(arms) + arms + paper.wrap(*said, verdict or beside.watched_words(_as_results(now)))
    return [paper.head(printable(title)), *([DRY_RUN] if seen.config.get("dry_run") else []), *told]


def short(seen: Seen, now: Underway | None, state: State) -> str:
    """The same in one line."""
    parts = [phase(seen, now, state)]
    if now:
        arms = ", ".join(f"{arm} {row.rescued} of {row.finished}" for arm, row in now.arms.items() if row.finished)
        facts = _facts(seen, now, state)
        parts += [f"attempts {facts['attempts']}", f"tokens {facts['tokens']}"]
        parts += [f"rescued by {arms}"] if arms else []
    return printable("; ".join(parts))


def _facts(seen: Seen, now: Underway, state: State) -> dict[str, str]:
    """Labels and what stands beside them."""
    start = seen.asking
    goes_on = start is not None and start is seen.start and start.code is None and not state.over
    made = f"{now.attempts:,} of at most {now.most:,}"
    if goes_on and now.pace:
        made += f", {60 * now.pace:,.3g}/min over {span(now.over)}"
        made += f", at most {span(now.left)} left" if now.left else ""
    facts = {"attempts": made}
    if start:
        parts = [f"{start.open:,} open"] * goes_on + [f"{start.counts['answered']:,} answered"]
        parts += [f"{start.counts[name]:,} {word}" for name, word in TROUBLE.items() if start.counts[name]]
        if start.trouble and goes_on:
            since = f" for {span(seen.clock - start.answer)}" if start.answer else ""
            parts.append(f"nothing answered{since} since: {start.trouble}")
        before = seen.counts["sent"] - start.counts["sent"]
        facts["requests"] = ", ".join(parts) + f"; {before:,} sent at earlier starts" * bool(before)
    facts["tokens"] = f"{now.prompt_tokens:,} in, {now.completion_tokens:,} out"
    whole = f"{now.whole:,} with a whole base group"
    facts["tasks"] = f"{whole}, {now.all_fail:,} all-fail, {now.given:,} given to the arms"
    return facts


def _beside(label: str, said: str, width: int) -> list[str]:
    return textwrap.wrap(said, width, initial_indent=f"{label:<10}", subsequent_indent=" " * 10, break_on_hyphens=False)


def _arms(now: Underway) -> Table | None:
    rows: list[Sequence[object]] = []
    for arm, row in now.arms.items():
        bets = now.watched["arms"].get(arm)
        only = f"{bets['n_arm_only']} : {bets['n_resample_only']}" if bets else ""
        told = [bets["n"], only, bets["verdict"]] if bets and bets["n"] else []
        rows.append([arm, row.finished, row.rescued, *told])
    rows += [[f"{CONTROL} again", row.finished, row.rescued] for row in now.reruns]
    return table("", ["", "tasks finished", "rescued", "counted", "only : only", VERDICT], rows)


def _as_results(now: Underway) -> Results:
    """As much of results.json as the sentence needs."""
    return cast(Results, {"watched": now.watched, "verdict": {"planned": not now.is_late}})
