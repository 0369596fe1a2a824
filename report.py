"""Results into words and pictures: the text on the terminal, the page report.html, and several runs side by side.

    python report.py out                     the report of one run again
    python report.py out out-seed1           runs side by side, pooled by task

    text(results)                            80 columns, the histogram first
    page(results, attempts, cards, config)   one self-contained page (its frame: page.html)
    pooled(runs)                             what several runs say together

Every figure comes from the results (results.json, made by measure.py); here they are only rounded and worded. Points
(percent) exist here alone. What could not be estimated is said in words, never as nan. Replies and programs are text:
in the page they live in a data block and reach the screen through textContent.

Left out: estimating anything about one run (measure.py), reading or writing what a run is made of (records.py).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from page import page as page
from words import (
    CONTROL,
    MEANING,
    SHARES,
    STAGES,
    Results,
    big,
    estimate,
    hill_line,
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
        self.width, self.colour = max(width, 40), colour

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
                aligned = cell.ljust(size) if i == 0 or str(i) in left else cell.rjust(size)
                cells.append(self.paint(aligned, "dim" if not r else cell if cell in MEANING else ""))
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


def text(results: Results, width: int = 80, colour: bool = False, calibration: Mapping[str, Any] | None = None) -> str:
    """The report of one run: `width` columns, ANSI colours only if asked for. Ends without a newline."""
    paper = Paper(width, colour)
    blocks = [section(results, paper) for section in TEXT]
    blocks.append(_hill_text(results, calibration, paper))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _base_text(r: Results, paper: Paper) -> list[str]:
    """What the group throws away: the first thing anybody sees."""
    counts, group = r["p0_histogram"], r["budget"]["G"]
    whole = sum(counts)
    lines = [paper.head(title(r))]
    if r.get("dry_run"):
        lines += paper.wrap("DRY RUN: toy tasks and a fake policy. These figures say nothing about any model.")
    if r.get("as_published"):
        lines += paper.wrap("As published: the starred departures of the README are taken back.")
    if r.get("grades", "attempts") != "attempts":
        lines += paper.wrap(f"Grades: every saved reply graded again ({r['grades']}).")
    if not whole:
        return [*lines, "", *paper.wrap(f"No task has its {group} base attempts yet: nothing can be said so far.")]
    lines += ["", f"Tasks by passes in their base group of {group} ({plural(whole, 'task')})"]
    lines += paper.bars([(str(k), count) for k, count in enumerate(counts)], whole)
    fail = r["all_fail"]
    lines += paper.wrap(
        f"All-fail: {of(fail, whole)} tasks ({share(fail / whole)}). A group of {group} has nothing to learn from "
        f"them and drops them."
        if fail
        else "No task is all-fail: the group throws nothing away."
    )
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
    lines = [
        f"{budget['B']} more attempts on each of {plural(given, 'all-fail task')}{band}: {budget['N']} particles, "
        f"{plural(budget['R'], 'round')}"
    ]
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
        if row["rate"] is None:
            rows.append([arm, row.get("reason") or "", "", "", ""])
            continue
        line = [arm, of(row["passes"], row["samples"]), estimate(row["rate"], row["interval"], 2)]
        pair = row.get("paired")
        line += [estimate(pair["delta"], pair["interval"], 2, sign=True), pair["verdict"]] if pair else ["", ""]
        rows.append(line)
    return paper.table(rows, left="234")


def _verdict_text(r: Results, paper: Paper) -> list[str]:
    """What the plan's rule allows to be said, whether the plan came first, and what chance alone would do."""
    verdict = r.get("verdict") or {}
    if not (r.get("incomplete") or {}).get("given", 0) or not verdict.get("arms"):
        return []
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
        if lo is not None and hi is not None and lo > 0:
            beside = f" beyond {CONTROL}'s" if row.get("against_resample") else ""
            lines += paper.wrap(
                f"{arm} climbs the shown tests without the hidden ones: its shown share moved "
                f"{points(gap['mean'])} points {within([lo, hi])} further than its hidden share{beside}.",
            )
    return lines


def _warning_text(r: Results, paper: Paper) -> list[str]:
    lines = [line for said in r.get("warnings") or [] for line in _bullet(paper, said)]
    return [paper.head("Before you trust a figure"), *lines] if lines else []


def _bullet(paper: Paper, said: str) -> list[str]:
    first, *rest = textwrap.wrap(said, paper.width - 4, break_on_hyphens=False) or [""]
    return [f"  - {first}", *(f"    {line}" for line in rest)]


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
        counted = [f"{b['calls']:,}", big(b["prompt_tokens"]), big(b["completion_tokens"]), span(b["cpu_seconds"])]
        return [name, *counted, *usd, yields]

    for name, stage in (cost.get("stages") or {}).items():
        if name == "base":
            rows.append(bill("base group", stage))
        elif name == "noise_runs" and stage["calls"]:
            rows.append(bill("noise runs", stage))
    at = 2 if len(rows) > 1 else 1
    for arm, b in (cost.get("arms") or {}).items():
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
    if total.get("tokens_unknown"):
        words.append(f"the server gave no token counts for {plural(total['tokens_unknown'], 'reply', 'replies')}")
    said = "; ".join(words)
    return lines + (paper.wrap(f"{said[0].upper()}{said[1:]}.") if said else [])


TEXT: tuple[Callable[[Results, Paper], list[str]], ...] = (
    _base_text,
    _arms_text,
    _verdict_text,
    _pooled_text,
    _climb_text,
    _warning_text,
    _cost_text,
)


def _hill_text(r: Results, calibration: Mapping[str, Any] | None, paper: Paper) -> list[str]:
    """Whether the fitness is a hill, or the command that tells."""
    if calibration and (line := hill_line(calibration)):
        return paper.wrap(line)
    if r.get("dry_run") or not sum(r["p0_histogram"]):
        return []
    return paper.wrap("Can a search climb this fitness? No calls needed to know: python calibrate.py --out FOLDER")
