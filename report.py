"""Results into text for the terminal: a run, its plan before it, and several runs side by side.

    python report.py out                     the report of one run again
    python report.py out out-seed1           runs side by side, pooled by task

    text(results)                            80 columns, the histogram first
    plan_text(config, plan)                  what is going to be asked, before the first sample
    pool(runs)                               what several runs say together

Every figure comes from the results (results.json, made by measure.py); here they are only laid out. What could not be
estimated is said in words, never as nan.

Left out: estimating anything about one run (measure.py), how a figure is rounded and worded (words.py), the page
report.html (page.py), reading or writing what a run is made of (records.py).
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands import interrupt

    interrupt.at_once()  # Ctrl-C is one line from here on: the imports below take a second

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.console import complain, say, wants_colour
from commands.flags import Flags
from faults import BAD_INPUT
from figures.plan import CONTROL
from figures.settings import setting
from swarm import PLAIN
from telling.words import (
    CONFIDENCE,
    MEANING,
    SHARES,
    SPARSE,
    STAGES,
    Results,
    base_words,
    big,
    budget_words,
    climb_words,
    cost_words,
    equivalence_words,
    estimate,
    hill_curves,
    hill_line,
    kind_words,
    listed,
    noise_words,
    of,
    plan_words,
    plural,
    points,
    pooled_words,
    power_words,
    selector_words,
    share,
    span,
    tier_words,
    title,
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

    def wrap_each(self, sentences: Sequence[str]) -> list[str]:
        """Each on lines of its own; empty ones take none."""
        return [line for said in sentences if said for line in self.wrap(said)]

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
    lines = [paper.head(title(r)), *paper.wrap_each(kind_words(r)), ""]
    if whole:
        lines.append(f"Tasks by passes in their base group of {group} ({plural(whole, 'task')})")
        lines += paper.bars([(str(k), count) for k, count in enumerate(counts)], whole)
    return lines + paper.wrap_each(base_words(r))


def _arms_text(r: Results, paper: Paper) -> list[str]:
    """One line an arm, by the primary metric; the other metric below it."""
    ranges, verdict = r.get("intervals") or {}, r.get("verdict") or {}
    if not (r.get("incomplete") or {}).get("given", 0):
        return paper.wrap(verdict.get("sentence") or "No task was given to the arms.")
    lines = paper.wrap_each(budget_words(r))
    primary = verdict.get("primary_metric", "rescue_rate")
    if primary == "per_sample":
        lines += _per_sample_table(r, paper) + paper.wrap(SPARSE)
        lines += ["", "Rescues on the same tasks (secondary: no verdict is drawn from them)"]
    lines += _rescue_table(r, ranges, paper, with_verdict=primary == "rescue_rate")
    if ranges:
        paired = any(row and row["n"] for row in (r.get("paired") or {}).values())
        only = f" only: rescued by this arm alone : by {CONTROL} alone." * paired
        lines += paper.wrap(f"Points [{CONFIDENCE} interval].{only}")
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
        return paper.wrap_each([verdict.get("sentence") or "", noise_words(r)])
    lines = [paper.head(line) for line in paper.wrap(verdict["sentence"])]
    return lines + paper.wrap_each([plan_words(r), equivalence_words(r), noise_words(r), power_words(r)])


def _pooled_text(r: Results, paper: Paper) -> list[str]:
    """What the extra samples brought back, however they were structured, and how the training set moved."""
    lines = paper.wrap_each([pooled_words(r)])
    moved = r.get("training_set") or {}
    if moved.get("n"):
        rows = [["tasks by pass share", *(name for _, name in SHARES)]]
        for key, name in STAGES:
            if key in moved:
                rows.append([name, *(f"{moved[key][k]:,}" for k, _ in SHARES)])
        lines += paper.table(rows)
        lines += paper.wrap_each([selector_words(r)])
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
    return lines + paper.wrap_each(climb_words(r))


def _outcome_text(r: Results, paper: Paper) -> list[str]:
    """What became of every attempt, by name: where the faults of a task set or a cap show first."""
    lines = []
    for name, row in (r.get("outcomes") or {}).items():
        said = ", ".join(f"{n:,} {outcome.replace('_', ' ')}" for outcome, n in row["counts"].items())
        lines += paper.wrap(f"{'base group' if name == 'base' else name}: {said}.")
    return [paper.head("How the attempts ended"), *lines, *paper.wrap_each(tier_words(r))] if lines else []


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
    return [*paper.table(rows), *paper.wrap_each([cost_words(r)])]


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


CHARACTERS_A_TOKEN = 3  # of prompts; a little low for English, so that the estimate is a little high
SHOWN_TEST_TOKENS = 400  # of a refine prompt, for each program in it: a failed test, its three texts clipped


def plan_text(config: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """What is going to be asked, and of whom. Calls and tokens out are the largest, as if all tasks were all-fail.

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
    powers = " / ".join(share(plan["power"][key]["power_holm"]) for key in ("all", "half", "quarter"))
    lines = [
        f"tasks: {data['asked']:,} of {data['tasks']:,} in {data['source']}{revision}{median}; left out: {out}",
        *data["notes"],
        f"calls: at most {calls['largest']:,}: "
        + ", ".join(f"{calls[key]:,} {name}" for key, name in stages.items() if calls[key]),
        f"tokens: at most {made:,} out, about {given:,} in{usd}",
        f"power to see {plan['power_assumes'].split(';')[0]}, if all / half / a quarter of the tasks are all-fail: "
        f"{powers}",
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
    for name, r in zip(names, runs.values(), strict=True):
        if "the run is not finished" in ((r.get("verdict") or {}).get("exploratory") or []):
            said.append(f"{name} is not finished: what it says is so far, and no verdict by its plan.")
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
    from faults import RecordsError
    from measure import measure
    from records import ATTEMPTS, Folder

    if Path(path).is_file():
        at = Path(path)
        results = Folder(at.parent).read(at.name)
        if not isinstance(results, dict) or "p0_histogram" not in results:
            raise RecordsError(f"{path} is no results.json: name a run folder, or its results.json")
        return results, None
    folder = Folder(path)
    calibration = folder.read("calibration.json")
    if (folder.path / ATTEMPTS).exists():
        config, cards = folder.config_of("run.py"), folder.cards()
        results = measure(folder.attempts(), config, cards, folder.checks(), folder.events(), folder.plan)
        return results, calibration
    results = folder.read("results.json")
    if results is None:
        raise RecordsError(f"{path} holds no run: name the folder that run.py wrote (--out)")
    return results, calibration


@dataclass(kw_only=True)
class Args:
    runs: list[str] = setting([], "a run folder, or a results.json", positional=True, nargs="+", metavar="RUN")
    json: bool = setting(False, "print the figures as JSON: results, or the pooled figures")


def flags() -> Flags[Args]:
    what = "The report of a run again; of several runs side by side, pooled by task."
    return Flags("report.py", what, Args, rest="flags", usage=" RUN [RUN ...]")


def main(argv: Sequence[str] | None = None) -> int:
    """0, or 2 where a folder cannot be read."""
    from faults import RecordsError
    from records import dumps

    parser = flags()
    args = parser.read(argv)
    paths = [Path(run).resolve() for run in args.runs]
    twice = [run for n, run in enumerate(args.runs) if paths[n] in paths[:n]]
    if twice:
        parser.error(f"{twice[0]} is named twice: name each run once")
    try:
        found = {path: read(path) for path in args.runs}
    except RecordsError as why:
        return complain(why, BAD_INPUT)
    if len(found) == 1:
        (results, calibration), *_ = found.values()
        say(dumps(results, indent=1) if args.json else text(results, colour=wants_colour(), calibration=calibration))
    else:
        runs = {path: results for path, (results, _) in found.items()}
        say(dumps(pool(runs), indent=1) if args.json else side_by_side(runs, colour=wants_colour()))
    return 0


if __name__ == "__main__":
    interrupt.leave(main)
