"""Results into words and pictures: the text on the terminal, the page report.html, and several runs side by side.

    python report.py out                     the report of one run again
    python report.py out out-seed1           runs side by side, pooled by task

    text(results)                            80 columns, the histogram first
    page(results, attempts, cards, config)   one self-contained page (its frame: page.html)
    pool(runs)                               what several runs say together

Every figure comes from the results (results.json, made by measure.py); here they are only rounded and worded. Points
(percent) exist here alone. What could not be estimated is said in words, never as nan. Replies and programs are text:
in the page they live in a data block and reach the screen through textContent.

Left out: estimating anything about one run (measure.py), reading or writing what a run is made of (records.py).
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from console import say, wants_colour
from page import page as page
from words import (
    CONTROL,
    MEANING,
    SHARES,
    STAGES,
    Results,
    big,
    estimate,
    hill_curves,
    hill_line,
    listed,
    noise_words,
    of,
    plural,
    points,
    power_words,
    share,
    span,
    title,
    within,
)

PAINT = {"bold": "1", "dim": "2", "better": "1;32", "worse": "1;31", "equivalent": "36", "inconclusive": "33"}


# ── the text ─────────────────────────────────────────────────────────────────────────────────────────────


class Paper:
    """Lines of text of a given width, with colour or without."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour = max(width, 80), colour  # the tables need eighty columns

    def paint(self, text: str, how: str) -> str:
        return f"\033[{PAINT[how]}m{text}\033[0m" if self.colour and how in PAINT and text else text

    def head(self, text: str) -> str:
        return self.paint(text, "bold")

    def wrap(self, text: str, indent: str = "") -> list[str]:
        return textwrap.wrap(
            text, self.width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        ) or [""]

    def table(self, rows: Sequence[Sequence[str]], left: str = "") -> list[str]:
        """Columns under a first row of names; those whose index is in `left` start at the left, as the first does.

        A table that is too wide takes it from the names in its first column.
        """
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        spare = self.width - sum(widths) - 2 * (len(widths) - 1)
        if spare < 0:
            widths[0] = max(widths[0] + spare, min(8, widths[0]))
        lines = []
        for r, row in enumerate(rows):
            cells = []
            for i, (cell, size) in enumerate(zip(row, widths, strict=True)):
                cell = cell if len(cell) <= size else cell[: size - 1] + "…"
                space = " " * (size - len(cell))
                painted = self.paint(cell, "dim" if not r else cell if cell in MEANING else "")
                cells.append(painted + space if i == 0 or str(i) in left else space + painted)
            lines.append("  ".join(cells).rstrip())
        return lines

    def bars(self, rows: Sequence[tuple[str, int]], whole: int) -> list[str]:
        """Horizontal bars with counts and shares of `whole`; the longest fills the line."""
        most = max((count for _, count in rows), default=0)
        name = max((len(label) for label, _ in rows), default=0)
        room = self.width - name - 22
        lines = []
        for label, count in rows:
            eighths = round(8 * room * count / most) if most else 0
            bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
            if count and not bar:
                bar = "▏"
            part = share(count / whole) if whole else ""
            lines.append(f"  {label:>{name}}  {bar:<{room}}  {count:>6,}  {part:>6}".rstrip())
        return lines


def text(
    results: Results,
    width: int = 80,
    colour: bool = False,
    calibration: Mapping[str, Any] | None = None,
    folder: str = "out",
) -> str:
    """The report of one run: `width` columns (80 at least), ANSI colours only if asked for. Ends without a newline.

    folder: of the run, as a command line names it.
    """
    paper = Paper(width, colour)
    blocks = [section(results, paper) for section in TEXT]
    blocks.append(_hill_text(results, calibration, paper, folder))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _base_text(r: Results, paper: Paper) -> list[str]:
    """What the group throws away: the first thing anybody sees."""
    counts, group = r["p0_histogram"], r["budget"]["G"]
    whole = sum(counts)
    lines = [paper.head(title(r))]
    if r.get("dry_run"):
        lines += paper.wrap("DRY RUN: toy tasks and a fake policy. These figures say nothing about any model.")
    if (r.get("identity") or {}).get("as_published"):
        lines += paper.wrap("As published: the starred departures of the README are taken back.")
    if r.get("grades", "attempts") != "attempts":
        lines += paper.wrap(f"Grades: every saved reply graded again ({r['grades']}).")
    lines.append("")
    if whole:
        lines.append(f"Tasks by passes in their base group of {group} ({plural(whole, 'task')})")
        lines += paper.bars([(str(k), count) for k, count in enumerate(counts)], whole)
        fail = r["all_fail"]
        lines += paper.wrap(
            f"All-fail: {of(fail, whole)} tasks ({share(fail / whole)}). A group of {group} has nothing to learn from "
            f"them and drops them."
            if fail
            else "No task is all-fail: the group throws nothing away."
        )
    else:
        lines += paper.wrap(f"No task has its {group} base attempts yet: nothing can be said so far.")
    owing = r.get("incomplete") or {}
    if owing.get("base_tasks"):
        lines += paper.wrap(
            f"Not counted: {plural(owing['base_tasks'], 'task')} whose base group is incomplete "
            f"({plural(owing['base_owed'], 'attempt')} owed)."
        )
    return lines


def _arms_text(r: Results, paper: Paper) -> list[str]:
    """One line an arm, by the primary metric; the other metric below it."""
    ranges, verdict, budget = r.get("intervals") or {}, r.get("verdict") or {}, r["budget"]
    given = (r.get("incomplete") or {}).get("given", 0)
    if not given:
        return paper.wrap(verdict.get("sentence") or "No task was given to the arms.")
    band = " in the near-miss band" if r.get("band") == "near-miss" else ""
    lines = paper.wrap(
        f"{plural(budget['B'], 'more attempt')} on each of {plural(given, 'all-fail task')}{band}: "
        f"{plural(budget['N'], 'particle')}, {plural(budget['R'], 'round')}"
    )
    if budget["R"] == 1:
        lines += paper.wrap("With one round nothing is refined: every arm is so many fresh draws.")
    if (r.get("identity") or {}).get("share_round0"):
        lines += paper.wrap(
            "Round 0 was drawn once and counts in every arm: what the arms found there is the same, so they differ by "
            "their later rounds alone, and no two of them are independent."
        )
    primary = verdict.get("primary_metric", "rescue_rate")
    if primary == "per_sample":
        lines += _per_sample_table(r, paper)
        lines += ["", "Rescues on the same tasks (secondary: no verdict is drawn from them)"]
    lines += _rescue_table(r, ranges, paper, with_verdict=primary == "rescue_rate")
    if any(arm != CONTROL for arm in ranges) and CONTROL in ranges:
        lines += paper.wrap(f"Points [95% interval]. only: rescued by this arm alone : by {CONTROL} alone.")
    return lines


def _rescue_table(r: Results, ranges: Mapping[str, Any], paper: Paper, with_verdict: bool) -> list[str]:
    paired = r.get("paired") or {}
    rows = [["arm", "rescued", "rate", f"against {CONTROL}", "only", "verdict"]]
    for arm, row in ranges.items():
        line = [arm, of(row["rescued"], row["n"]), estimate(row["rate"], row["wilson"])]
        pair = paired.get(arm)
        if pair and pair["n"]:
            line += [
                estimate(pair["delta"], pair["interval"], sign=True),
                f"{pair['n_arm_only']}:{pair['n_resample_only']}",
                pair["verdict"] if with_verdict else "",
            ]
        else:
            line += ["", "", ""]
        rows.append(line)
    keep = [i for i in range(6) if any(row[i] for row in rows[1:])]
    return paper.table([[row[i] for i in keep] for row in rows], left="235")


def _per_sample_table(r: Results, paper: Paper) -> list[str]:
    rows = [["arm", "passes", "a sample", f"against {CONTROL}", "verdict"]]
    for arm, row in (r.get("per_sample") or {}).items():
        if row["rate"] is None and row.get("reason"):
            rows.append([arm, row["reason"], "", "", ""])
            continue
        line = [arm, of(row["passes"], row["samples"]), estimate(row["rate"], row["interval"], 2)]
        pair = row.get("paired") if row["n"] else None
        line += [estimate(pair["delta"], pair["interval"], 2, sign=True), pair["verdict"]] if pair else ["", ""]
        rows.append(line)
    return paper.table(rows, left="234")


def _verdict_text(r: Results, paper: Paper) -> list[str]:
    """What the plan's rule allows to be said, whether the plan came first, and what chance alone would do."""
    verdict = r.get("verdict") or {}
    if not (r.get("incomplete") or {}).get("given", 0):
        return []  # said in the place of the arms
    if not verdict.get("arms"):
        return [*paper.wrap(verdict.get("sentence") or ""), *paper.wrap(noise_words(r))]
    said = [verdict["sentence"]]
    if verdict.get("planned"):
        said.append("The plan was written before the first sample, and this is its rule.")
    else:
        said.append(f"Exploratory: {'; '.join(verdict.get('exploratory') or ['there is no plan'])}.")
    lines = [paper.head(line) for line in paper.wrap(said[0])] + paper.wrap(said[1])
    lines += paper.wrap(noise_words(r))
    chance = power_words(r)
    return lines + (paper.wrap(chance) if chance else [])


def _pooled_text(r: Results, paper: Paper) -> list[str]:
    """What the extra samples brought back, however they were structured, and how the training set moved."""
    lines: list[str] = []
    pool = r.get("pooled") or {}
    if pool.get("n"):
        every, alone = pool["all_runs"], pool["arms_alone"]
        words = (
            f"Rescued by at least one of {plural(pool['runs'], 'run')}: {of(every['rescued'], pool['n'])} "
            f"({share(every['share'])} {within(every['wilson'])})"
        )
        words += f"; by the arms alone {alone['rescued']}" if alone["rescued"] != every["rescued"] else ""
        words += f". Training rows: {plural(pool['rows'], 'passing program')} on {plural(pool['rows_tasks'], 'task')}."
        if pool.get("incomplete_tasks"):
            words += f" On {plural(pool['incomplete_tasks'], 'task')} some run still owes attempts."
        lines += paper.wrap(words)
    moved = r.get("training_set") or {}
    if moved.get("n"):
        rows = [["tasks by pass share", *(name for _, name in SHARES)]]
        for key, name in STAGES:
            if key in moved:
                rows.append([name, *(f"{moved[key][k]:,}" for k, _ in SHARES)])
        lines += paper.table(rows)
        two = moved.get("first_two_disagree") or {}
        if two.get("n"):
            lines += paper.wrap(
                f"A selector keeps 20 to 80%. The first two base attempts disagree on {of(two['count'], two['n'])} "
                f"tasks ({share(two['share'])}).",
            )
    return lines


def _climb_text(r: Results, paper: Paper) -> list[str]:
    """Shown tests against hidden ones, by round."""
    climb = {arm: row for arm, row in (r.get("climb") or {}).items() if any(x["programs"] for x in row["rounds"])}
    if not climb:
        return []
    most = max(len(row["rounds"]) for row in climb.values())
    rounds = list(range(most)) if most <= 4 else [0, 1, most - 2, most - 1]
    rows = [["% of programs", *(f"shown r{k}" for k in rounds), *(f"hidden r{k}" for k in rounds)]]
    for arm, row in climb.items():
        at = {x["round"]: x for x in row["rounds"]}
        shown = [points(at[k]["all_visible_share"]) if k in at else "–" for k in rounds]
        passed = [points(at[k]["passed"] / at[k]["programs"]) if k in at and at[k]["programs"] else "–" for k in rounds]
        rows.append([arm, *shown, *passed])
    lines = ["Do the hidden tests follow the shown ones"]
    lines += paper.table(rows)
    lines += paper.wrap("shown: passes every visible test. hidden: and every hidden one. r0: round 0.")
    for arm, row in climb.items():
        gap = ((row.get("against_resample") or row.get("moved")) or {}).get("gap") or {}
        lo, hi = gap.get("interval") or (None, None)
        if arm != CONTROL and lo is not None and hi is not None and lo > 0:  # fresh draws cannot climb
            beside = f" beyond {CONTROL}'s" if row.get("against_resample") else ""
            on = f" on {plural(row['moved']['n'], 'task')}" if row.get("moved") else ""
            lines += paper.wrap(
                f"{arm} climbs the shown tests without the hidden ones: from the first to the last round{on} its share "
                f"of programs that pass every shown test moved {points(gap['mean'])} points {within([lo, hi])} further "
                f"than its mean share of hidden tests passed{beside}.",
            )
    return lines


def _outcome_text(r: Results, paper: Paper) -> list[str]:
    """What became of every attempt, by name: where the faults of a task set or a cap show first."""
    lines = []
    for name, row in (r.get("outcomes") or {}).items():
        said = ", ".join(f"{n:,} {outcome.replace('_', ' ')}" for outcome, n in row["counts"].items())
        lines += paper.wrap(f"{'base group' if name == 'base' else name}: {said}.")
    tier = f"Graded in tier {r['tier']}: what it stops, and what not, stands in walls.py." if r.get("tier") else ""
    return [paper.head("How the attempts ended"), *lines, *(paper.wrap(tier) if tier else [])] if lines else []


def _warning_text(r: Results, paper: Paper) -> list[str]:
    lines = [line for said in r.get("warnings") or [] for line in _bullet(paper, said)]
    return [paper.head("Before you trust a figure"), *lines] if lines else []


def _bullet(paper: Paper, said: str) -> list[str]:
    first, *rest = textwrap.wrap(said, paper.width - 4, break_on_hyphens=False) or [""]
    return [f"  - {first}", *(f"    {line}" for line in rest)]


IDLE = {
    "nothing_to_ask": "with nothing to ask",
    "grader": "waiting for the grader",
    "retrying": "waiting before a retry",
}


def _cost_text(r: Results, paper: Paper) -> list[str]:
    """Equal samples are not equal cost: a refined prompt carries programs."""
    cost = r.get("cost") or {}
    total = cost.get("total") or {}
    if not total.get("calls"):
        return []
    priced = total.get("usd") is not None
    rows = [["cost", "calls", "tokens in", "out", "grading CPU", *(["usd"] if priced else []), "rescues per M tokens"]]

    def bill(name: str, b: Mapping[str, Any], yields: str = "") -> list[str]:
        usd = [f"{b['usd']:,.2f}"] if priced else []
        known = b["calls"] > b["tokens_unknown"]
        mark = "≥" if b["tokens_unknown"] else ""
        tokens = [f"{mark}{big(b[key])}" if known else "–" for key in ("prompt_tokens", "completion_tokens")]
        counted = [f"{b['calls']:,}", *tokens, span(b["cpu_seconds"])]
        return [name, *counted, *usd, yields]

    for name, stage in (cost.get("stages") or {}).items():
        if name == "base":
            rows.append(bill("base group", stage))
        elif name == "noise_runs" and stage["calls"]:
            rows.append(bill("noise runs", stage))
    at = 2 if len(rows) > 1 else 1
    for arm, b in (cost.get("arms") or {}).items():
        if not b["calls"]:
            continue
        per = b.get("rescues_per_million_tokens")
        rows.insert(at, bill(arm, b, "–" if per is None else f"{per:.2f}"))
        at += 1
    rows.append(bill("in all", total))
    lines = paper.table(rows)
    words = [f"wall time {span(cost['wall_seconds'])}"] if cost.get("wall_seconds") else []
    asked = cost.get("requests") or {}
    if asked.get("retries"):
        words.append(
            f"{plural(asked['retries'], 'retry', 'retries')} ({asked.get('possibly_billed', 0)} possibly billed)"
        )
    if (gradings := cost.get("gradings")) and gradings["repeated"]:
        words.append(f"{of(gradings['repeated'], sum(gradings.values()))} gradings were of a program graded before")
    if total.get("tokens_unknown"):
        words.append(f"the server gave no token counts for {plural(total['tokens_unknown'], 'reply', 'replies')}")
    if slots := cost.get("slots"):
        idle = [f"{share(slots[key])} {why}" for key, why in IDLE.items() if slots[key] >= 0.0005]
        words.append(f"slots busy {share(slots['busy'])} of the time{' (' + ', '.join(idle) + ')' if idle else ''}")
    said = "; ".join(words)
    return lines + (paper.wrap(f"{said[0].upper()}{said[1:]}.") if said else [])


TEXT: tuple[Callable[[Results, Paper], list[str]], ...] = (
    _base_text,
    _arms_text,
    _verdict_text,
    _pooled_text,
    _climb_text,
    _outcome_text,
    _warning_text,
    _cost_text,
)


def _hill_text(r: Results, calibration: Mapping[str, Any] | None, paper: Paper, folder: str) -> list[str]:
    """Whether the fitness is a hill, or the command that tells."""
    if curves := hill_curves(calibration):
        return [line for name, curve in curves.items() for line in paper.wrap(hill_line(name, curve))]
    if r.get("dry_run") or not sum(r["p0_histogram"]):
        return []
    return paper.wrap(f"Can a search climb this fitness? No calls needed to know: python calibrate.py --out {folder}")


# ── the plan, before the first sample ────────────────────────────────────────────────────────────────────────────────


def plan_text(config: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """What is going to be asked, and of whom. Every number is the largest: as if all tasks were all-fail."""
    identity, data, server, settings = (config[key] for key in ("identity", "data", "server", "plan"))
    median = f", median rating {data['median_rating']:g}" if data["median_rating"] else ""
    revision = f", revision {data['revision']}" if data["revision"] else ""
    out = "; ".join(f"{number} {reason}" for reason, number in data["left_out"].items()) or "none"
    calls, stages = plan["calls"], {"base": "base", "arms_if_all_fail": "arms", "noise_runs_if_all_fail": "noise runs"}
    # An estimate: three characters a token; a refine prompt holds two programs at the cap, each with a clipped test.
    refining = sum(arm != CONTROL for arm in settings["arms"])
    refines = refining * data["asked"] * identity["particles"] * (settings["rounds"] - 1)
    bare = calls["largest"] * data["prompt_characters"] // data["asked"] // 3
    given, made = bare + refines * 2 * (identity["max_tokens"] + 400), calls["largest"] * identity["max_tokens"]
    price = config["price"]
    usd = f", at most {(given * price[0] + made * price[1]) / 1e6:,.2f} usd" if price else ""
    sent = "top_p not sent" if identity["as_published"] else f"top_p {identity['top_p']:g}"
    shares = {"all": "all tasks are", "half": "half are", "quarter": "a quarter is"}
    powers = ", ".join(f"{share(plan['power'][key]['power_holm'])} if {said}" for key, said in shares.items())
    lines = [
        f"tasks: {data['asked']:,} of {data['tasks']:,} in {data['source']}{revision}{median}; left out: {out}",
        *data["notes"],
        f"calls: at most {calls['largest']:,}: "
        + ", ".join(f"{calls[key]:,} {name}" for key, name in stages.items() if calls[key]),
        f"tokens: at most {made:,} out, about {given:,} in{usd}",
        f"chance to see {plan['power_assumes'].split(';')[0]}: {powers} all-fail",
        f"policy: {server['model']}, temperature {identity['temperature']:g}, {sent}, thinking {identity['thinking']}, "
        f"{identity['max_tokens']:,} tokens a reply; what is not sent (top_k, min_p, penalties) the server decides",
        *(f"server: {line}" for line in server["facts"]),
        *(f"warning: {line}" for line in server["warnings"]),
        *(["as published: the departures that change a number are taken back"] if identity["as_published"] else []),
    ]
    return "\n".join(lines)


# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────

SAME = ("model", "family", "bundle", "thinking", "max_tokens", "no_comments", "band", "budget")  # beside the identity


def pool(runs: Mapping[str, Results]) -> dict[str, Any]:
    """What several runs of one experiment say together. runs: name -> results.

    Pooled by task, since a task that two seeds share is one task: its value is the mean over the runs in which both the
    arm and the control finished it. An arm is called better or worse only where every run says so by itself and the
    pooled figures do too; equivalent, where the pooled interval lies inside the margin and the runs do not contradict
    each other, one saying better and one worse: the mean of a task over its runs hides how far they lie apart; else
    inconclusive. Runs that differ in more than their seed are not pooled, and `differ` names what they differ in; nor
    are runs of one seed, which asked the same requests and are no repetition.
    """
    import stats

    all_runs = list(runs.values())
    differ = [key for key in SAME if any(r.get(key) != all_runs[0].get(key) for r in all_runs)]
    identities = [r.get("identity") or {} for r in all_runs]
    settings = dict.fromkeys(
        key for identity in identities for key in identity if key not in ("seed", "tasks", *differ)
    )
    differ += [key for key in settings if any(other.get(key) != identities[0].get(key) for other in identities)]
    metrics = {(r.get("verdict") or {}).get("primary_metric") for r in all_runs}
    margins = {(r.get("verdict") or {}).get("margin") for r in all_runs}
    differ += [name for name, values in (("primary metric", metrics), ("margin", margins)) if len(values) > 1]
    given = [{task for task, row in (r.get("by_task") or {}).items() if row.get("arms")} for r in all_runs]
    some, every = set().union(*given), set.intersection(*given) if given else set()
    rescued = {
        task
        for r in all_runs
        for task, row in (r.get("by_task") or {}).items()
        if any(play["passes"] for play in [*(row.get("arms") or {}).values(), *(row.get("reruns") or [])])
    }
    out: dict[str, Any] = {
        "runs": list(runs),
        "differ": [key.replace("_", " ") for key in differ],
        "one_seed": len({r.get("seed") for r in all_runs}) < len(all_runs),
        "primary_metric": next(iter(metrics)) if len(metrics) == 1 else None,
        "margin": next(iter(margins)) if len(margins) == 1 else None,
        "given_in_some": len(some),
        "given_in_every": len(every),
        "rescued_in_some": len(rescued & some),
        "arms": {},
    }
    if out["differ"] or out["one_seed"]:
        return out
    per_sample = out["primary_metric"] == "per_sample"
    compared, same = {}, {}
    for arm in dict.fromkeys(arm for r in all_runs for arm in r.get("intervals") or {} if arm != CONTROL):
        a, b = _by_task(all_runs, arm, per_sample)
        compared[arm] = stats.compare_paired(a, b)
        same[arm] = stats.equivalent(a, b, out["margin"])
    tested = [arm for arm, got in compared.items() if got.p_value == got.p_value]
    adjusted = dict(zip(tested, stats.holm([compared[arm].p_value for arm in tested]), strict=True))
    for arm, got in compared.items():
        said = [(r.get("verdict") or {}).get("arms", {}).get(arm) for r in all_runs]
        word = stats.verdict(got, adjusted.get(arm, 1.0), same[arm])
        if _contradict(said) or (word in ("better", "worse") and any(other != word for other in said)):
            word = "inconclusive"
        out["arms"][arm] = {
            "n": got.n,
            "delta": _known(got.delta),
            "interval": [_known(got.lo), _known(got.hi)],
            "p": _known(got.p_value),
            "p_holm": _known(float(adjusted.get(arm, float("nan")))),
            "by_run": said,
            "verdict": word,
        }
    return out


def _contradict(said: Sequence[str | None]) -> bool:
    """Whether one run calls an arm better and another one worse."""
    return {"better", "worse"} <= set(said)


def _by_task(runs: Sequence[Results], arm: str, per_sample: bool) -> tuple[list[float], list[float]]:
    """The control's value and the arm's on each task: the mean over the runs in which both finished it."""
    values: dict[str, list[tuple[float, float]]] = {}
    for r in runs:
        for task, row in (r.get("by_task") or {}).items():
            plays = row.get("arms") or {}
            pair = [plays[name] for name in (CONTROL, arm) if name in plays and plays[name]["done"]]
            if len(pair) == 2:
                a, b = (play["passes"] / play["drawn"] if per_sample else float(play["passes"] > 0) for play in pair)
                values.setdefault(task, []).append((a, b))
    means = [[sum(side) / len(side) for side in zip(*of_task, strict=True)] for _, of_task in sorted(values.items())]
    return [a for a, _ in means], [b for _, b in means]


def _known(x: float) -> float | None:
    return x if x == x else None


def side_by_side(runs: Mapping[str, Results], width: int = 80, colour: bool = False) -> str:
    """Several runs in one table, an arm's runs below each other, and what they say together."""
    paper, together = Paper(width, colour), pool(runs)
    names = _short(list(runs))
    digits = 2 if together["primary_metric"] == "per_sample" else 1
    rows = [["run", "seed", "tasks", "all-fail", "rescued by some arm or re-run"]]
    for name, r in zip(names, runs.values(), strict=True):
        whole, pooled = sum(r["p0_histogram"]), r.get("pooled") or {}
        rate = f" ({share(r['all_fail'] / whole)})" if whole else ""
        found = f"{of(pooled['all_runs']['rescued'], pooled['n'])}" if pooled.get("n") else "–"
        rows.append([name, str(r.get("seed")), f"{r['tasks']:,}", f"{r['all_fail']:,}{rate}", found])
    blocks = [[paper.head(f"{plural(len(runs), 'run')}: {title(next(iter(runs.values()))).rsplit(', ', 1)[0]}")]]
    blocks.append(paper.table(rows))
    blocks.append(_runs_table(runs, names, together, digits, paper))
    said = []
    if together["differ"]:
        said.append(f"Not pooled: these runs differ in {listed(together['differ'])}.")
    elif together["one_seed"]:
        said.append("Not pooled: two of these runs have the same seed, so they are no repetition of each other.")
    elif together["given_in_some"]:
        said.append(
            f"All-fail and given to the arms: {together['given_in_some']:,} tasks in some run, "
            f"{together['given_in_every']:,} in every one. At least one run rescued {together['rescued_in_some']:,}."
        )
        said.append(_together(together))
    else:
        said.append("No run has a task that was given to the arms, or the results are too old to be pooled by task.")
    blocks.append([line for words in said for line in paper.wrap(words)])
    return "\n\n".join("\n".join(block) for block in blocks)


def _runs_table(
    runs: Mapping[str, Results], names: Sequence[str], together: Mapping[str, Any], digits: int, paper: Paper
) -> list[str]:
    rows = [["arm", "run", "rescued", f"against {CONTROL}", "verdict"]]
    for arm in dict.fromkeys(arm for r in runs.values() for arm in r.get("intervals") or {}):
        first = arm
        for name, r in zip(names, runs.values(), strict=True):
            row, verdict = (r.get("intervals") or {}).get(arm), r.get("verdict") or {}
            if not row:
                continue
            if verdict.get("primary_metric") == "per_sample":
                pair = ((r.get("per_sample") or {}).get(arm) or {}).get("paired")
            else:
                pair = (r.get("paired") or {}).get(arm)
            against = estimate(pair["delta"], pair["interval"], digits, sign=True) if pair else ""
            word = (verdict.get("arms") or {}).get(arm, "")
            rows.append([first, name, of(row["rescued"], row["n"]), against, word])
            first = ""
        if pair := together["arms"].get(arm):
            against = estimate(pair["delta"], pair["interval"], digits, sign=True)
            rows.append(["", "together", plural(pair["n"], "task"), against, pair["verdict"]])
    return paper.table(rows, left="134")


def _together(pooled: Mapping[str, Any]) -> str:
    """The verdicts of the pooled runs in words, and where the runs contradict each other."""
    said = []
    for word in ("better", "worse", "equivalent", "inconclusive"):
        arms = [arm for arm, row in pooled["arms"].items() if row["verdict"] == word]
        if arms:
            said.append(f"{word}: {listed(arms)}")
    words = f"Together, {'; '.join(said)}." if said else ""
    for arm, row in pooled["arms"].items():
        named = {
            word: listed([name for name, said in zip(pooled["runs"], row["by_run"], strict=True) if said == word])
            for word in ("better", "worse")
        }
        if _contradict(row["by_run"]):
            words += (
                f" {arm} is better in {named['better']} and worse in {named['worse']}: these runs contradict each "
                "other, so nothing is said of them together."
            )
            continue
        for word, runs in named.items():
            if runs and row["verdict"] != word:
                words += f" {arm} is {word} in {runs} alone, so it is not called {word}."
    return words + " Better or worse is said only where every run says so by itself."


def _short(names: Sequence[str]) -> list[str]:
    """Names of runs for a narrow column: their last parts where those tell them apart."""
    last = [name.rstrip("/").rsplit("/", 1)[-1] for name in names]
    return last if len(set(last)) == len(last) else list(names)


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────


def read(path: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Results and calibration of a run folder, or of a results file alone. A folder with attempts is measured anew."""
    from measure import measure
    from records import ATTEMPTS, Folder, RecordsError

    if Path(path).is_file():
        at = Path(path)
        results = Folder(at.parent).read(at.name)
        if not isinstance(results, dict) or "p0_histogram" not in results:
            raise RecordsError(f"{path} is no results.json: name a run folder, or its results.json")
        return results, None
    folder = Folder(path)
    calibration = folder.read("calibration.json")
    if (folder.path / ATTEMPTS).exists():
        config = folder.config
        plan = folder.plan
        return measure(folder.attempts(), config, folder.cards(), folder.checks(), folder.events(), plan), calibration
    results = folder.read("results.json")
    if results is None:
        raise RecordsError(f"{path} holds no run: name the folder that run.py wrote (--out)")
    return results, calibration


def main(argv: Sequence[str] | None = None) -> int:
    """0, or 2 where a folder cannot be read."""
    from records import RecordsError, dumps

    parser = argparse.ArgumentParser(
        prog="report.py",
        description="The report of a run again; of several runs side by side, pooled by task.",
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run folder, or a results.json")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON: results, or the pooled figures")
    a = parser.parse_args(argv)
    twice = [run for n, run in enumerate(a.runs) if Path(run).resolve() in {Path(r).resolve() for r in a.runs[:n]}]
    if twice:
        print(f"report.py: {twice[0]} is named twice; name each run once", file=sys.stderr)
        return 2
    try:
        found = {path: read(path) for path in a.runs}
    except RecordsError as why:
        print(f"report.py: {why}", file=sys.stderr)
        return 2
    if len(found) == 1:
        (results, calibration), *_ = found.values()
        say(dumps(results, indent=1) if a.json else text(results, colour=wants_colour(), calibration=calibration))
    else:
        runs = {path: results for path, (results, _) in found.items()}
        say(dumps(pool(runs), indent=1) if a.json else side_by_side(runs, colour=wants_colour()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
