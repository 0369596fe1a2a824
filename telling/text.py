"""A report as text for the terminal: of one run, and of its plan before it.

    text(results)                            80 columns, the histogram first
    plan_text(config, plan)                  what is going to be asked, before the first sample
    Paper(width, colour)                     lines, tables and bars of a given width

Every figure comes from the results (measure.py); here they are only laid out. What could not be estimated is said in
words, never as nan.

Left out: what stands in a table (tables.py), how a figure is rounded and worded (words.py), several runs (report.py).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from figures.foretold import SoFar
from figures.plan import CONTROL
from figures.results import Results
from swarm import PLAIN
from telling import ahead, beside, published, short, tables, words

PAINT = {"bold": "1", "dim": "2", "better": "1;32", "worse": "1;31", "equivalent": "36", "inconclusive": "33"}


class Paper:
    """Lines of text of a given width, with colour or without."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour = max(width, 80), colour  # the tables need eighty columns

    def paint(self, text: str, how: str) -> str:
        return f"\033[{PAINT[how]}m{text}\033[0m" if self.colour and how in PAINT and text else text

    def head(self, text: str) -> str:
        return self.paint(text, "bold")

    def wrap(self, *sentences: str) -> list[str]:
        """Each on lines of its own; empty ones take none."""
        return [line for said in sentences for line in textwrap.wrap(said, self.width, break_on_hyphens=False)]

    def bullet(self, said: str) -> list[str]:
        first, *rest = textwrap.wrap(said, self.width - 4, break_on_hyphens=False)
        return [f"  - {first}", *(f"    {line}" for line in rest)]

    def table(self, told: tables.Table | None) -> list[str]:
        """Columns under a line of their names, then the notes.

        A table that is too wide takes it from the names in its first column.
        """
        if not told:
            return []
        keep = [i for i, column in enumerate(told.head) if column.name not in told.page_only]
        columns = [told.head[i] for i in keep]
        rows = [
            [cell if isinstance(cell := row[i], str) else cell.short for i in keep]
            for row in told.rows
            if row[0] not in told.page_only
        ]
        rows.insert(0, [column.short or column.name for column in columns])
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        spare = self.width - sum(widths) - 2 * (len(widths) - 1)
        if spare < 0:
            widths[0] = max(widths[0] + spare, min(8, widths[0]))
        lines = []
        for at, row in enumerate(rows):
            cells = []
            for i, (cell, size, column) in enumerate(zip(row, widths, columns, strict=True)):
                cell = cell if len(cell) <= size else cell[: size - 1] + "…"
                space = " " * (size - len(cell))
                painted = self.paint(cell, "dim" if not at else cell if column.kind == "verdict" else "")
                cells.append(space + painted if i and column.kind == "figure" else painted + space)
            lines.append("  ".join(cells).rstrip())
        return lines + self.wrap(*told.notes)

    def bars(self, rows: Sequence[tuple[str, int]], whole: int) -> list[str]:
        """Horizontal bars with counts and shares of `whole`; the longest fills the line."""
        most = max(count for _, count in rows)
        name = max(len(label) for label, _ in rows)
        longest = self.width - name - 22  # columns
        lines = []
        for label, count in rows:
            eighths = round(8 * longest * count / most)
            bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
            if count and not bar:
                bar = "▏"
            lines.append(f"  {label:>{name}}  {bar:<{longest}}  {count:>6,}  {words.share(count / whole):>6}".rstrip())
        return lines


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def text(
    results: Results,
    width: int = 80,
    colour: bool = False,
    calibration: Mapping[str, Any] | None = None,
    folder: str = "out",
) -> str:
    """The report of one run: `width` columns (80 at least), ANSI colours only if asked for. Ends without a newline.

    folder: of the run, as a command line names it; empty where there is none.
    """
    paper = Paper(width, colour)
    blocks = [section(results, paper) for section in TEXT]
    blocks.append(_hill_text(results, calibration, paper, folder))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _base_text(r: Results, paper: Paper) -> list[str]:
    """What the group throws away: the first thing anybody sees."""
    whole, group = sum(r["p0_histogram"]), r["budget"]["G"]
    lines = [paper.head(words.title(r)), *paper.wrap(*words.kind_words(r)), ""]
    if whole:
        lines.append(f"Tasks by passes in their base group of {group} ({words.plural(whole, 'task')})")
        lines += paper.bars(short.histogram(r), whole)
    return lines + paper.wrap(*words.base_words(r), words.near_miss_words(r))


def _arms_text(r: Results, paper: Paper) -> list[str]:
    """One line an arm, by the primary metric; the other metric below it."""
    if not r["incomplete"]["given"]:
        return paper.wrap(r["verdict"]["sentence"])
    lines = paper.wrap(*words.budget_words(r))
    if not r["intervals"]:  # of a published file
        shown = (published.rates(r), published.differences(r), published.noise(r))
        return lines + [line for told in shown if told for line in ["", told.caption, *paper.table(told)]]
    if r["verdict"]["primary_metric"] == "per_sample":
        lines += paper.table(tables.per_sample(r))
        lines += ["", "Rescues on the same tasks (secondary: no verdict is drawn from them)"]
    notes = beside.fresh_words(r), words.hinted_words(r)
    mean = f" Minus {mean}" if (mean := words.runs_words(r)) else ""
    if none := short.barren(r):
        return lines + paper.wrap(f"{none}{mean}", *notes)
    if not (told := tables.rescues(r)):
        return lines + paper.wrap(*notes)
    lines += paper.table(told)
    paired = any(row["n"] for row in r["paired"].values())
    alone = f" alone: tasks that this arm rescued and {CONTROL} did not : the other way round." if paired else ""
    lines += paper.wrap(f"Points [{words.CONFIDENCE} interval].{alone}{mean}")
    if r["budget"]["R"] > 1:
        lines += paper.table(tables.first_passes(r))
    return lines + paper.wrap(*notes)


def _verdict_text(r: Results, paper: Paper) -> list[str]:
    """What the plan's rule allows to be said, whether the plan came first, and what chance alone would do."""
    verdict = r["verdict"]
    if not r["incomplete"]["given"]:
        return []  # said in the place of the arms
    if not verdict["arms"]:
        return paper.wrap(verdict["sentence"], words.noise_words(r))
    lines = [paper.head(line) for line in paper.wrap(short.headline(r))]
    return lines + paper.wrap(
        words.plan_words(r),
        beside.watched_words(r),
        words.effect_words(r),
        words.prediction_words(r),
        words.equivalence_words(r),
        words.noise_words(r),
        words.power_words(r),
        words.luck_words(r),
    )


def _audit_text(r: Results, paper: Paper) -> list[str]:
    """Which tasks can be passed at all, and what every rate is without the others."""
    told = tables.audited(r)
    return paper.wrap(*words.audit_words(r)) + (["", told.caption, *paper.table(told)] if told else [])


def _pooled_text(r: Results, paper: Paper) -> list[str]:
    """What the extra samples brought back, however they were structured, and how the training set moved."""
    lines = paper.wrap(words.pooled_words(r), words.verified_words(r), words.contamination_words(r))
    if r["training_set"]["n"]:
        shares = tables.training_set(r)
        if shares and len(shares.rows) > 1:  # else it says what the histogram says
            lines += paper.table(shares)
        lines += paper.wrap(words.selector_words(r))
    return lines


def _climb_text(r: Results, paper: Paper) -> list[str]:
    """Shown tests against hidden ones, by round."""
    told = tables.climb_in_short(r)
    if told and not any(row["together"]["all_visible_share"] for arm in r["climb"].values() for row in arm["rounds"]):
        return paper.wrap("No program of the arms passes every visible test, in any round that all of them drew.")
    return [told.caption, *paper.table(told), *paper.wrap(*short.climb_words(r))] if told else []


def _outcome_text(r: Results, paper: Paper) -> list[str]:
    """What became of every attempt, by name: where the faults of a task set or a cap show first."""
    told: dict[str, list[str]] = {}
    for name, row in r["outcomes"].items():
        said = ", ".join(f"{n:,} {outcome.replace('_', ' ')}" for outcome, n in row["counts"].items())
        told.setdefault(said, []).append(tables.group(name))
    lines = paper.wrap(*(f"{words.listed(names)}: {said}." for said, names in told.items()))
    return [paper.head("How the attempts ended"), *lines, *paper.wrap(*words.tier_words(r))] if lines else []


def _warning_text(r: Results, paper: Paper) -> list[str]:
    lines = [line for said in short.warnings(r) for line in paper.bullet(said)]
    return [paper.head("Before you trust a figure"), *lines] if lines else []


def _cost_text(r: Results, paper: Paper) -> list[str]:
    """Equal samples are not equal cost: a refined prompt carries programs."""
    return (
        paper.table(tables.cost(r)) + paper.wrap(words.cost_words(r), beside.efficiency_words(r))
        if r["cost"]["total"]["calls"]
        else []
    )


TEXT: tuple[Callable[[Results, Paper], list[str]], ...] = (
    _base_text,
    _arms_text,
    _verdict_text,
    _audit_text,
    _pooled_text,
    _climb_text,
    _outcome_text,
    _warning_text,
    _cost_text,
)


def _hill_text(r: Results, calibration: Mapping[str, Any] | None, paper: Paper, folder: str) -> list[str]:
    """Whether the fitness is a hill, or the command that tells."""
    if curves := words.hill_curves(calibration):
        return paper.wrap(*words.hill_lines(curves))
    if not folder or r["dry_run"] or not sum(r["p0_histogram"]) or not r["identity"]:  # nothing to calibrate
        return []
    return paper.wrap(f"Can a search climb this fitness? No calls needed to know: python calibrate.py --out {folder}")


# ── the plan, before the first sample ────────────────────────────────────────────────────────────────────────────────


CHARACTERS_A_TOKEN = 3  # of prompts; a little low for English, so that the estimate is a little high
SHOWN_TEST_TOKENS = 400  # of a refine prompt, for each program in it: a failed test, its three texts clipped


def plan_text(config: Mapping[str, Any], plan: Mapping[str, Any], held: SoFar | None = None) -> str:
    """What is going to be asked, and of whom. Calls and tokens out are the largest, as if all tasks were all-fail.
    held: what the folder's attempts so far say of those to come.

    Tokens in are an estimate: the bare prompts by their length; in a refine prompt also two programs at the cap.
    """
    identity, data, server, settings = (config[key] for key in ("identity", "data", "server", "plan"))
    median = f", median rating {data['median_rating']:g}" if data["median_rating"] else ""
    revision = f", revision {data['revision']}" if data["revision"] else ""
    out = "; ".join(f"{number} {reason}" for reason, number in data["left_out"].items()) or "none"
    calls, stages = plan["calls"], {"base": "base", "arms_if_all_fail": "arms", "noise_runs_if_all_fail": "noise runs"}
    refining = sum(arm != CONTROL for arm in settings["arms"])
    refines = refining * data["asked"] * identity["particles"] * (settings["rounds"] - 1)
    system = PLAIN.system if identity["system"] is None else identity["system"]
    bare = (data["prompt_characters"] / data["asked"] + len(system)) / CHARACTERS_A_TOKEN
    given = round(calls["largest"] * bare + refines * 2 * (identity["max_tokens"] + SHOWN_TEST_TOKENS))
    made, price = plan["tokens"]["completion_largest"], config["price"]
    usd = f"; about {(given * price[0] + made * price[1]) / 1e6:,.2f} usd" if price else ""
    sent = "top_p not sent" if identity["as_published"] else f"top_p {identity['top_p']:g}"
    said = ", ".join(f"{arm} {100 * x:+g}" for arm, x in plan["predictions"].items())
    only = "; the arms are given passable ones alone" if settings.get("only_passable") else ""
    lines = [
        f"tasks: {data['asked']:,} of {data['tasks']:,} in {data['source']}{revision}{median}; left out: {out}",
        *data["notes"],
        *_shard_text(config),
        *([f"audit: {_verdicts(data['audit'])}{only}"] if data.get("audit") else []),
        f"calls: at most {calls['largest']:,}: "
        + ", ".join(f"{calls[key]:,} {name}" for key, name in stages.items() if calls[key]),
        f"tokens: at most {made:,} out, about {given:,} in{usd}",
        *([] if config["dry_run"] else [ahead.time_line(config, plan, held), ahead.power_line(plan, held)]),
        *([f"predicted, in points against {CONTROL}: {said}"] if said else []),
        f"policy: {server['model']}, temperature {identity['temperature']:g}, {sent}, thinking {identity['thinking']}, "
        f"{identity['max_tokens']:,} tokens a reply; what is not sent (top_k, min_p, penalties) the server decides",
        *_apart_text(config),
        *(f"server: {line}" for line in server["facts"]),
        *(f"warning: {line}" for line in server["warnings"]),
        *([f"base group: {identity['rollouts']}; none is asked for"] if identity.get("rollouts") else []),
        *(["as published: the departures that change a number are taken back"] if identity["as_published"] else []),
    ]
    return "\n".join(lines)


def _shard_text(config: Mapping[str, Any]) -> list[str]:
    if not (shard := config.get("shard")):
        return []
    own = words.of(shard["tasks"], config["data"]["asked"], "task")
    return [f"shard {shard['number']}/{shard['of']}: {own} are asked here; what follows is of all shards together, but "
            "limits hold for each one"]  # fmt: skip


def _verdicts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {verdict}" for verdict, number in counts.items() if number) or "no task"


def _apart_text(config: Mapping[str, Any]) -> list[str]:
    """The arms that are none of the four: where they come from, and what they are shown that others are not."""
    lines, without = [], len(config["data"].get("without_reference", ()))
    for name, arm in (config.get("apart") or {}).items():
        if arm["file"]:
            lines.append(f"arm {name}: of {arm['file']}, SHA-256 {arm['sha256'][:16]}")
        if "reference" in arm["needs"]:
            lines.append(
                f"arm {name}: is shown a program known to be right, or a part of one; told apart, its rows are marked "
                f"hinted. It leaves out {words.of(without, config['data']['asked'], 'task')}, for want of a reference"
            )
    return lines
