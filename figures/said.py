"""The sentences that results.json holds as values: what warns of a run, and what its verdict allows to be said.

    warnings(table)         what a reader must know before any figure
    departures(table, ...)  why a verdict is exploratory
    sentence(table, ...)    what the plan's rule allows to be said, and nothing beyond it

They are part of the file, which a program may read without any telling, so they are made here, below telling/: no
report can leave them out. It may say one that several arms share once, and the verdict in two sentences
(telling/short.py). What a report says besides stands in telling/words.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import stats
from commands.settings import DEFAULTS, Row
from figures.counted import incomplete, not_begun, outcomes
from figures.numbers import in_points, listed, of, plural
from figures.plan import CONTROL, METRICS, plan_digest
from figures.results import Against
from figures.table import Play, Table

TRUNCATED_WARNING = 0.10  # share of replies cut at max_tokens above which the figures describe the cap
UNFINISHED = "the run is not finished"  # why a verdict is exploratory, of a run that owes attempts


def warnings(table: Table) -> list[str]:
    """What a reader must know before any figure, in words; empty where nothing is off."""
    out = []
    if not table.tasks:
        return ["There is no task in this run."]
    owing = incomplete(table)
    if unasked := not_begun(table):
        out.append(f"Not begun: {of(unasked, len(table.tasks) + unasked, 'task')} of the plan, which no figure counts.")
    if owing["base_tasks"]:
        lack, them = ("lacks", "it") if owing["base_tasks"] == 1 else ("lack", "them")
        lacking = f"{of(owing['base_tasks'], len(table.tasks), 'task')} {lack} base attempts"
        out.append(f"{lacking}: no rate and no exported row counts {them}.")
    for arm, owes in owing["arms"].items():
        if owes["tasks"]:
            lean = "" if table.full_budget else ": they lean towards tasks rescued early, and so finished early"
            left = f"{arm} still owes attempts on {of(owes['tasks'], owing['given'], 'task')}"
            out.append(f"{left}, which its rates leave out{lean}.")
    for k, rerun in enumerate(owing["noise_runs"], 1):
        if rerun["tasks"]:
            left = plural(rerun["tasks"], "task")
            out.append(f"Noise run {k} still owes attempts on {left}, which the bands leave out.")
    refused = [("the base group", owing["base_refused"], len(table.tasks))]
    refused += [(arm, owes["refused"], owing["given"]) for arm, owes in owing["arms"].items()]
    refused += [(f"noise run {k}", owes["refused"], owing["given"]) for k, owes in enumerate(owing["noise_runs"], 1)]
    if told := [f"{name} on {of(some, every, 'task')}" for name, some, every in refused if some]:
        out.append(
            f"The server refuses prompts: {listed(told)}. No rate counts those tasks, as a pass or as a failure."
        )
    plays: list[tuple[str, Play]] = [
        *table.plays.items(),
        *((f"noise run {k}", play) for k, play in enumerate(table.reruns, 1)),
    ]
    later = [(name, play.refused_later[table.given & (play.owed == 0)]) for name, play in plays]
    if told := [f"{name} {plural(int(n.sum()), 'prompt')} on {of(int((n > 0).sum()), len(n), 'task')}"
                for name, n in later if n.any()]:  # fmt: skip
        out.append(
            f"The server refuses prompts of rounds after the first: {listed(told)}. They count as failed attempts, so "
            "what those arms find may lie lower for it, and never higher."
        )
    if table.only_passable and not table.is_audited:
        out.append("The arms were given passable tasks alone, and audit.json is gone: put it back into the folder.")
    if table.base.done.any() and not table.all_fail.any():
        out.append("No task is all-fail: every one has a pass in its base group, so there is nothing to rescue.")
    elif table.all_fail.any() and not table.given.any():
        which = ["in the near-miss band"] * (table.band == "near-miss") + ["passable"] * table.only_passable
        out.append(f"No all-fail task is {' and '.join(which)}, so the arms were given nothing.")
    elif int(table.given.sum()) == 1:
        out.append("Only 1 task was given to the arms: an interval is not meaningful with 1 task.")
    cut = []
    for arm, row in outcomes(table).items():
        name = "the base group" if arm == "base" else arm
        if overflowed := row["counts"].get("context_overflow"):
            out.append(
                f"{name}: {overflowed} of {row['n']} prompts did not fit the server's context and count as failures; "
                "serve a longer context, or lower --max-tokens in another --out."
            )
        if row["truncated"] > TRUNCATED_WARNING * row["n"]:
            cut.append(f"{of(row['truncated'], row['n'])} of {name}")
        if row["identical"] > row["n"] / 2:
            out.append(
                f"{name}: {row['identical']} of {row['n']} replies repeat another one on the same task; "
                "does the server act on temperature and seed?"
            )
    if cut:
        out.append(
            f"Replies were cut at max_tokens, {listed(cut)}: their figures tell of that limit as much as of the model. "
            "A larger --max-tokens makes another experiment, so it needs another --out."
        )
    if table.duplicates:
        twice = "attempt stands" if table.duplicates == 1 else "attempts stand"
        out.append(f"{table.duplicates} {twice} in the records twice; the first of each counts.")
    _, runs = table.rescues_of_runs()
    if len(runs) > 1 and runs.shape[1] and len(set(runs.sum(axis=1).tolist())) == 1:
        every = "Both" if len(runs) == 2 else f"All {len(runs)}"
        out.append(
            f"{every} runs of {CONTROL} rescued as many tasks: a spread of zero is no evidence of a band of zero."
        )
    return out


def kept_grades(grades: str, kept: list[str]) -> str:
    """What is said of attempts that a regrade has no check for; kept: the task of each."""
    return (
        f"Not in {grades}: {plural(len(kept), 'attempt')} on {plural(len(set(kept)), 'task')}, which count with "
        "the grade of their time; --regrade brings all under one."
    )


def came_first(table: Table) -> bool:
    """Whether a plan was written before the first sample."""
    written, times = (table.plan or {}).get("written"), table.columns.time
    return written is not None and not (len(times) and float(written) > float(times.min()))


def departures(table: Table, metric: str, margin: float) -> list[str]:
    """Why the verdict is exploratory: no plan, a late one, or one that no longer says what is done."""
    if table.plan is None:
        return ["no plan was written before the first sample"]
    why: list[str] = []
    plan = table.plan
    if not came_first(table):
        why.append("the plan was written after the first sample")
    if table.config.get("plan_digest") != plan_digest(plan):
        why.append("the plan is not the one whose digest stands in config.json")
    if plan["primary_metric"] != metric:
        why.append(f"the primary metric was {plan['primary_metric']} in the plan and is {metric} now")
    if plan["margin"] != margin:
        why.append(f"the margin was {in_points(plan['margin'])} in the plan and is {in_points(margin)} now")
    if moved := changed(table):
        why.append(f"changed since the plan was written: {', '.join(moved)}")
    return why


def changed(table: Table) -> list[str]:
    """The settings that are no longer what the plan says."""

    def value(settings: Row, key: str) -> object:
        return settings.get(key, DEFAULTS.get(key))

    before, now = table.plan["settings"] if table.plan else {}, table.config["plan"]
    return sorted(key for key in before.keys() | now.keys() if value(before, key) != value(now, key)) if before else []


def sentence(table: Table, metric: str, margin: float, rows: Mapping[str, Against], late: bool, planned: bool) -> str:
    """What the rule allows to be said, and nothing beyond it. rows: of the arms, none where no task is compared."""
    name = METRICS[metric].split(":")[0]
    if not table.given.any():
        return "No task was given to the arms, so there is nothing to compare."
    if not table.controlled:
        return f"Without the {CONTROL} arm there is nothing to compare with."
    if not table.others:
        return f"Only {CONTROL} was played, so there is nothing to compare."
    if not rows:
        return f"No task is finished by {CONTROL} and another arm, so nothing can be compared yet."
    said = {word: listed([arm for arm in rows if rows[arm]["verdict"] == word]) for word in stats.VERDICTS}
    parts = []
    if arms := said["better"]:
        parts.append(f"{arms} found more than {CONTROL} by {name}.")
    if arms := said["worse"]:
        parts.append(f"{arms} found less than {CONTROL} by {name}.")
    if arms := said["equivalent"]:
        parts.append(f"{arms} found as much as {CONTROL} within {in_points(margin)} by {name}.")
    if arms := said["inconclusive"]:
        adjusted = ", adjusted for the number of arms" if seen_alone(rows) else ""
        open_question = "nor that there is none" + (f" worth acting on ({in_points(margin)})" if margin > 0 else "")
        parts.append(
            f"{arms} against {CONTROL}: inconclusive by {name}. These tasks do not show a difference{adjusted}, "
            f"{open_question}."
        )
    if arms := listed([arm for arm in rows if arm in table.hinted]):
        parts.append(f"{arms} was shown a program known to be right, or a part of one.")
    told = " ".join(part[0].upper() + part[1:] for part in parts)
    if late:
        return f"So far, and no verdict by the plan: {told}"
    if (seeds := table.config["plan"].get("seeds") or 1) > 1:
        return f"One of {seeds} planned runs, and no verdict by itself: {told}"
    return told if planned else f"Exploratory: {told}"


def seen_alone(rows: Mapping[str, Against]) -> bool:
    """Whether the 95% interval of some arm without a verdict excludes 0 by itself."""
    open_ = [row["interval"] for row in rows.values() if row["verdict"] == "inconclusive"]
    return any((lo is not None and lo > 0) or (hi is not None and hi < 0) for lo, hi in open_)
