"""report.html: one self-contained page, filled into the frame page.html.

Static parts (words, tables, plots) are written here and escaped here. What models and data sets wrote goes into a JSON
data block and reaches the screen through textContent; the policy in the page's head lets no script run but the
frame's own, and lets nothing be fetched. It reads aloud: plots have their numbers in tables, rows open with a key.

Left out: figures (measure.py), how they are rounded and worded (words.py), how they are drawn (plots.py).
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from figures.counted import tag_values
from figures.plan import CONTROL, EQUIVALENCE_LEVEL, METRICS
from grading.grade import LETTERS, clip
from swarm import Attempt
from tasksets.task import Task
from telling import plots
from telling.words import (
    CONFIDENCE,
    CURVES,
    MEANING,
    SHARES,
    SPARSE,
    STAGES,
    Results,
    auc,
    base_words,
    big,
    budget_words,
    climb_words,
    cost_words,
    equivalence_words,
    estimate,
    hill_curves,
    kind_words,
    listed,
    noise_words,
    of,
    p_text,
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
    within,
)

FRAME = Path(__file__).with_name("page.html")
PAGE_BYTES = 4_700_000  # what the page may weigh; programs are cut to fit
CUTS = (20_000, 8_000, 4_000, 2_500, 1_500, 800, 300, 0)  # characters of a program or statement, tried in this order
TAG_COLUMNS = 2
LINKS = {
    "all_fail": "Thrown away",
    "arms": "Arms",
    "climb": "Climb",
    "hidden": "Shown and hidden",
    "training_set": "Training set",
    "hill": "Hill",
    "outcomes": "Outcomes",
    "cost": "Cost",
    "tasks": "Tasks",
}


def page(
    results: Results,
    attempts: Iterable[Attempt],
    cards: Iterable[Task],
    config: Mapping[str, Any],
    calibration: Mapping[str, Any] | None = None,
) -> str:
    """report.html: one page that needs nothing else and asks nobody for anything.

    attempts: walked once; of each task and arm only the best is kept, so a run of any size fits in memory. The page
    stays under 5 MB for a run of the published size: where it would not, texts are cut, and it says so.
    """
    tasks = browsable(results, attempts, list(cards))
    parts = [make(results) for make in PAGE]
    parts += [_hill_section(results, calibration), _outcomes_section(results), _cost_section(results)]
    sections = "\n".join(filter(None, parts))
    frame = FRAME.read_text(encoding="utf-8")
    script = frame[frame.rindex("<script>") + len("<script>") : frame.rindex("</script>")]
    fill = {
        "csp": f"default-src 'none'; script-src '{_csp_hash(script)}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'",
        "title": html.escape(title(results)),
        "header": _header(results) + _nav(sections),
        "sections": sections,
        "footer": _footer(results, config),
    }
    # A name may hold half of a character (a lone surrogate), which no encoding of the page could hold.
    fill = {name: part.encode("utf-8", "replace").decode() for name, part in fill.items()}
    room = PAGE_BYTES - len(frame) - sum(len(part.encode()) for part in fill.values())
    fill["data"], cut = _fit(tasks, room)
    fill["cut"] = (
        "" if cut is None else f"Programs and statements are cut after {cut:,} characters, to keep the page small."
    )
    return re.sub(r"\{\{(\w+)\}\}", lambda name: fill[name[1]], frame)


def _csp_hash(script: str) -> str:
    return "sha256-" + b64encode(sha256(script.encode()).digest()).decode()


class _Best:
    """The best attempt of one arm on one task, and what the arm did there beside it."""

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        self.drawn = self.passes = 0
        self.first: int | None = None

    def see(self, a: Attempt) -> None:
        self.drawn += 1
        self.passes += a.passed
        if a.passed:
            self.first = a.round if self.first is None else min(self.first, a.round)
        key = (a.passed, a.fitness, a.hidden_passed)
        old = self.attempt
        if old is None or key > (old.passed, old.fitness, old.hidden_passed):
            self.attempt = a


def browsable(results: Results, attempts: Iterable[Attempt], cards: Sequence[Task]) -> dict[str, Any]:
    """The data block: every task with its best attempt of the base group and of each arm."""
    arms = list(results.get("intervals") or results.get("arms") or {})
    reruns = f"{CONTROL} re-runs"
    best: dict[str, dict[str, _Best]] = {}
    fitness: dict[tuple[str, str], float] = {}
    for a in attempts:
        of_task = best.setdefault(a.task_id, {})
        fitness[a.task_id, a.slot.within_task()] = a.fitness
        # Round 0 that the arms share was drawn once and belongs to each of them.
        names = arms if a.arm == "round0" and not a.rerun else [reruns if a.rerun else a.arm]
        for name in names:
            of_task.setdefault(name, _Best()).see(a)
    extra = sorted({name for of_task in best.values() for name in of_task} - {"base", *arms})
    order = ["base", *arms, *extra]
    known = {card.id: card for card in cards}
    rows = []
    labels, columns = _labels(cards)
    for task_id in [*known, *sorted(best.keys() - known.keys())]:
        card, of_task = known.get(task_id), best.get(task_id, {})
        counted = results["by_task"][task_id]
        rows.append(
            {
                "id": task_id,
                "title": (card.title or task_id) if card else task_id,
                "statement": card.statement if card else "",
                "tags": dict(card.tags) if card else {},
                "labels": labels.get(task_id, []),
                "base": counted["base"],
                "fail": counted["base"] == 0,
                "given": any(name in of_task for name in arms),
                "open": _is_open(counted),
                "best": [_told(name, of_task[name], card, fitness) for name in order if of_task.get(name)],
            }
        )
    return {
        "arms": [name for name in order if name == "base" or any(name in of_task for of_task in best.values())],
        "group": results["budget"]["G"],
        "letters": {letter: name for name, letter in LETTERS.items()},
        "tags": sorted({label for of_task in labels.values() for label in of_task}),
        "tag_columns": columns,
        "tasks": rows,
    }


def _is_open(row: Mapping[str, Any]) -> bool:
    """Whether the task still owes attempts: of its base group, of an arm, or of a re-run."""
    plays = [*row.get("arms", {}).values(), *row.get("reruns", [])]
    return row["base"] is None or any(not play["done"] for play in plays)


def _told(name: str, found: _Best, card: Task | None, fitness: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    """One attempt as the page tells it."""
    a = found.attempt
    assert a is not None
    failed = next((i for i, letter in enumerate(a.visible_tests) if letter != LETTERS["pass"]), None)
    first = None
    if failed is not None and a.code is not None:
        first = {"got": a.got}
        if card and failed < len(card.visible):
            test = card.visible[failed]
            first["input"] = clip(test.input)
            if card.kind != "assert":
                first["expected"] = clip(test.output, a.got_start)

    def shown(slot: str | None) -> list[Any] | None:
        return [slot, fitness.get((a.task_id, slot))] if slot else None

    return {
        "arm": name,
        "slot": a.slot.within_task(),
        "round": a.round,
        "first": found.first,
        "drawn": found.drawn,
        "passes": found.passes,
        "outcome": a.outcome,
        "fitness": a.fitness,
        "visible": a.visible_tests,
        "visible_total": a.visible_total,
        "hidden": a.hidden_tests,
        "hidden_total": a.hidden_total,
        "failed": first,
        "parent": shown(a.parent),
        "social": shown(a.social),
        "code": a.code,
        "cut": 0,
    }


def _labels(cards: Sequence[Task]) -> tuple[dict[str, list[str]], list[str]]:
    """For each task the tags that a filter offers, and the tags worth a column."""
    told = tag_values({card.id: card.tags for card in cards})
    labels: dict[str, list[str]] = {}
    for name, of_task in told.items():
        for task_id, value in of_task.items():
            labels.setdefault(task_id, []).append(f"{name}: {value}")
    return labels, [name for name, of_task in told.items() if len(set(of_task.values())) > 1][:TAG_COLUMNS]


def _fit(data: dict[str, Any], room: int) -> tuple[str, int | None]:
    """The data block within `room` bytes, and after how many characters texts had to be cut (None: no text was)."""
    written, cut = "", None
    for limit in CUTS:
        for task in data["tasks"]:
            if len(task["statement"]) > limit:
                task["statement"], cut = task["statement"][:limit], limit
            for a in task["best"]:
                if a["code"] is not None and len(a["code"]) > limit:
                    a["cut"], a["code"], cut = a["cut"] or len(a["code"]), a["code"][:limit], limit
        # Escaped `<` cannot end the script element; ASCII keeps lone surrogates out of the file's encoding.
        written = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        if len(written) <= room:
            break
    return written, cut


# ── parts of the page ────────────────────────────────────────────────────────────────────────────────────


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numeric: bool = True) -> str:
    """A table whose first column names its rows; the rest are numbers unless said otherwise."""
    kind = ' class="n"' if numeric else ""
    top = "".join(f'<th scope="col"{kind if i else ""}>{html.escape(name)}</th>' for i, name in enumerate(head))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{html.escape(cell)}</td>" if i else f'<th scope="row">{html.escape(cell)}</th>'
            for i, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><caption>{html.escape(caption)}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _numbers(*tables: str) -> str:
    inside = "".join(filter(None, tables))
    return f'<details class="numbers"><summary>The numbers</summary>{inside}</details>' if inside else ""


def _section(name: str, heading: str, *parts: str) -> str:
    inside = "\n".join(filter(None, parts))
    return f'<section id="{name}" aria-labelledby="h-{name}">\n<h2 id="h-{name}">{heading}</h2>\n{inside}\n</section>'


def _under(heading: str, plot: str) -> str:
    return f"<h3>{heading}</h3>\n{plot}" if plot else ""


def _p(said: str, quiet: bool = False) -> str:
    return f"<p{' class=quiet' if quiet else ''}>{html.escape(said)}</p>" if said else ""


def _header(r: Results) -> str:
    verdict, whole = r.get("verdict") or {}, sum(r["p0_histogram"])
    parts = [f"<h1>{html.escape(title(r))}</h1>"]
    parts.append(f'<p class="answer">{html.escape(verdict.get("sentence") or "Nothing can be said yet.")}</p>')
    if verdict.get("arms"):
        parts.append(_p(plan_words(r), quiet=True))
    parts += map(_p, kind_words(r))
    pool = r.get("pooled") or {}
    tiles = [("Tasks", f"{r['tasks']:,}", "" if whole == r["tasks"] else f"{whole:,} with a whole base group")]
    if whole:
        tiles.append(("All-fail", f"{r['all_fail']:,}", f"{share(r['all_fail'] / whole)} of the tasks"))
    if pool.get("n"):
        rescued = pool["all_runs"]
        note = f"{share(rescued['share'])} {within(rescued['wilson'])}, by {plural(pool['runs'], 'run')}"
        tiles.append(("Rescued", f"{rescued['rescued']:,}", note))
        tiles.append(("Training rows", f"{r['rescued_rows']:,}", f"on {plural(pool['rows_tasks'], 'task')}"))
    tiles.append(("Calls", f"{r['calls']:,}", f"{big(r['tokens']['prompt'] + r['tokens']['completion'])} tokens"))
    parts.append(
        '<dl class="tiles">'
        + "".join(
            f"<div><dt>{name}</dt><dd>{value}<small>{html.escape(note)}</small></dd></div>"
            for name, value, note in tiles
        )
        + "</dl>"
    )
    if r.get("warnings"):
        items = "".join(f"<li>{html.escape(said)}</li>" for said in r["warnings"])
        parts.append(
            f'<section class="callout" aria-labelledby="h-warn"><h2 id="h-warn">Before you trust a figure</h2>'
            f"<ul>{items}</ul></section>"
        )
    return "\n".join(filter(None, parts))


def _nav(sections: str) -> str:
    """Links to the sections that there are."""
    there = [*re.findall(r'<section id="(\w+)"', sections), "tasks"]
    items = "".join(f'<li><a href="#{name}">{label}</a></li>' for name, label in LINKS.items() if name in there)
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def _all_fail_section(r: Results) -> str:
    counts, whole, group = r["p0_histogram"], sum(r["p0_histogram"]), r["budget"]["G"]
    said, heading = _p(" ".join(base_words(r))), "What the group throws away"
    if not whole:
        return _section("all_fail", heading, said)
    near = r.get("near_miss") or {}
    more = ""
    if near.get("near_miss"):
        more = (
            f"On {near['near_miss']:,} of those {near['all_fail']:,} ({share(near['share'])}) some base attempt passed "
            f"a visible test (near-miss); there the best attempt passes {share(near['mean_best_fitness'])} of the "
            f"visible tests on average, and at least half of them on {near['at_least_half']:,} "
            f"({share(near['at_least_half_share'])})."
        )
    rows = [[str(k), f"{n:,}", share(n / whole)] for k, n in enumerate(counts)]
    table = _table(f"Tasks by passes among {group} base attempts", ["passes", "tasks", "share"], rows)
    return _section("all_fail", heading, said, plots.base(r), _p(more, True), _numbers(table))


def _arms_section(r: Results) -> str:
    given, verdict = (r.get("incomplete") or {}).get("given", 0), r.get("verdict") or {}
    if not given:
        return _section("arms", "Which way finds more", _p(verdict.get("sentence") or "No task was given to the arms."))
    primary = verdict.get("primary_metric", "rescue_rate")
    tables = {"rescue_rate": _rescue_table(r, primary), "per_sample": _per_sample_table(r, primary)}
    given_to_each, *notes = budget_words(r)
    said = (
        f"{given_to_each}, paired by task. The column “only : only” holds the tasks that this arm alone, and {CONTROL} "
        f"alone, rescued. {' '.join(notes)}"
    )
    rounds = _table(
        "Tasks first rescued in each round",
        ["arm", *(f"round {k}" for k in range(r["budget"]["R"]))],
        [[arm, *(f"{k:,}" for k in row["first_pass_in_round"])] for arm, row in (r.get("intervals") or {}).items()],
    )
    more = [table(r) for table in (_owed_table, _verdict_table, _coverage_table, _stopped_table, _all_resample_table,
                                   _noise_table, _power_table, _published_tables)]  # fmt: skip
    return _section(
        "arms",
        "Which way finds more",
        _p(said),
        tables.pop(primary),
        *tables.values(),
        plots.forest(r),
        _p(equivalence_words(r), True),
        _p(noise_words(r), True),
        _p(power_words(r), True),
        _under("Rescues by round", plots.rounds(r)),
        _under("With every further sample", plots.coverage(r)),
        _numbers(rounds, *more),
    )


def _rescue_table(r: Results, primary: str) -> str:
    rows = []
    for arm, row in (r.get("intervals") or {}).items():
        line = [arm, of(row["rescued"], row["n"]), estimate(row["rate"], row["wilson"]).strip()]
        pair = (r.get("paired") or {}).get(arm) or {}
        if pair.get("n"):
            line.append(estimate(pair["delta"], pair["interval"], sign=True).strip())
            line += [f"{pair['n_arm_only']} : {pair['n_resample_only']}", p_text(pair["p_holm"]), pair["verdict"]]
        rows.append(line + [""] * (7 - len(line)))
    head = ["arm", "rescued", "rate", f"minus {CONTROL}", "only : only", "Holm p", "verdict"]
    if primary != "rescue_rate":  # the plan draws its verdict from the other metric
        head, rows = head[:-1], [row[:-1] for row in rows]
    return _verdicts(_table(f"Rescue rate, points [{CONFIDENCE} interval]", head, rows))


def _per_sample_table(r: Results, primary: str) -> str:
    """Passes over samples, where full budgets give such a rate: of every arm, unless the verdict is drawn from it."""
    rates = r.get("per_sample") or {}
    if primary != "per_sample" and any(row["reason"] for row in rates.values()):
        return ""
    rows = []
    for arm, row in rates.items():
        if row["rate"] is None and row["reason"]:
            rows.append([arm, row["reason"], "", "", "", ""])
            continue
        line = [arm, of(row["passes"], row["samples"]), estimate(row["rate"], row.get("interval"), 2).strip()]
        if row["n"] and (pair := row.get("paired")):
            line.append(estimate(pair["delta"], pair["interval"], 2, sign=True).strip())
            line += [p_text(pair["p_holm"]), pair["verdict"]]
        rows.append(line + [""] * (6 - len(line)))
    if primary != "per_sample":
        rows = [row[:-1] for row in rows]
    head = ["arm", "passes", "a sample", f"minus {CONTROL}", "Holm p", *["verdict"] * (primary == "per_sample")]
    return _verdicts(_table(f"Per-sample pass rate, points [{CONFIDENCE} interval]", head, rows)) + _p(SPARSE, True)


def _verdict_table(r: Results) -> str:
    """All that the plan's rule looks at, by either metric."""
    rows = [
        [
            f"{arm}, {METRICS[metric].split(':')[0]}",
            f"{pair['n']:,}",
            p_text(pair["p"]),
            p_text(pair["p_holm"]),
            within(pair["equivalence_interval"], 2, sign=True),
            points(pair["margin"]),
        ]
        for metric, arms in (
            ("rescue_rate", r.get("paired") or {}),
            ("per_sample", {arm: row.get("paired") or {} for arm, row in (r.get("per_sample") or {}).items()}),
        )
        for arm, pair in arms.items()
        if pair.get("n")
    ]
    head = ["", "tasks", "p", "Holm p", f"{share(EQUIVALENCE_LEVEL, 0)} interval, for equivalent", "margin"]
    return _table("What decides a verdict, points", head, rows) if rows else ""


def _stopped_table(r: Results) -> str:
    stopped = r.get("per_draw_stopped")
    if not stopped:
        return ""
    return _table(
        f"Passes per draw where arms stopped, as published ({stopped.get('label', '')})",
        ["arm", "rate", "tasks", "of them stopped", f"minus {CONTROL}", "p"],
        [
            [
                arm,
                points(row["rate"], 2),
                f"{row['n']:,}",
                f"{row['stopped_tasks']:,}",
                estimate(row["delta"], row["interval"], 2, sign=True).strip() if "delta" in row else "",
                p_text(row["p"]) if "p" in row else "",
            ]
            for arm, row in stopped.items()
            if isinstance(row, Mapping)
        ],
    )


def _noise_table(r: Results) -> str:
    noise = r.get("noise") or {}
    if noise.get("band_t") is None:
        return ""
    clears = noise.get("clears") or {}
    rows = [
        [
            name,
            points(noise[sd]),
            points(noise[band] or None),
            listed([arm for arm, row in clears.items() if row[band]]) or "none",
        ]
        for name, sd, band in (
            ("run means", "std_between", "band_t"),
            ("replicates of each task", "std_within", "band_within"),
        )
    ]
    q = "not estimable"
    if noise.get("q_p") is not None:
        q = f"Cochran's Q {noise['q']:.2f} on {noise['q_df']} degrees of freedom, p {p_text(noise['q_p'])}"
    said = f"How far {noise['runs']} runs of {CONTROL} lie apart, points. More than their tasks explain: {q}"
    return _table(said, ["from", "sd of a run", "band", "cleared by"], rows)


def _verdicts(table: str) -> str:
    """Verdicts in their colours; the word itself says it too."""
    return re.sub(rf'<td class="n">({"|".join(MEANING)})</td>', r'<td class="n word \1">\1</td>', table)


def _coverage_table(r: Results) -> str:
    curves = r.get("coverage") or {}
    budget = r["budget"]["B"]
    at = [k for k in (1, 2, 4, 8, 12, 16, 24, 32, 48) if k < budget] + [budget]
    rows = [
        [
            arm,
            *(points(row["share"][k - 1]) if k <= len(row["share"]) else "–" for k in at),
            {"pass_at_k": "any of the draws", "by_round": "round after round"}[row["method"]],
        ]
        for arm, row in curves.items()
        if row.get("n")
    ]
    head = ["arm", *map(str, at), "samples taken as"]
    return _table("Tasks with a pass after so many samples, points", head, rows) if rows else ""


def _all_resample_table(r: Results) -> str:
    rows = [
        [
            arm,
            str(row["runs"]),
            f"{row['n']:,}",
            estimate(row["delta"], row["interval"], sign=True).strip(),
            p_text(row["p"]),
        ]
        for arm, pair in (r.get("paired") or {}).items()
        if (row := pair.get("vs_all_resample"))
    ]
    head = ["arm", "runs", "tasks", "difference", "p"]
    return _table(f"Against the mean of every run of {CONTROL}, points", head, rows) if rows else ""


def _power_table(r: Results) -> str:
    rows = [
        [
            arm,
            f"{of(row['discordant'], row['n'])} ({share(row['discordance'])} {within(row['wilson'])})",
            share(row["discordance_assumed"]),
            points(row["effect"]),
            share(row.get("power"), 0),
            share(row.get("power_holm"), 0),
            f"{row['tasks_needed']:,}" if row.get("tasks_needed") else "–",
        ]
        for arm, row in (r.get("power") or {}).items()
        if row.get("n")
    ]
    head = ["arm", "tasks that disagree", "assumed", "difference", "power", "at Holm's first step", "tasks for 80%"]
    return _table("What these tasks can show", head, rows) if rows else ""


def _owed_table(r: Results) -> str:
    owing = r["incomplete"]
    rows = [[arm, f"{row['tasks']:,}", f"{row['owed_at_most']:,}"] for arm, row in owing["arms"].items()]
    for k, row in enumerate(owing["noise_runs"], 1):
        rows.append([f"{CONTROL}, re-run {k}", f"{row['tasks']:,}", f"{row['owed_at_most']:,}"])
    owed = [row for row in rows if row[1] != "0"]
    return _table("Still owed", ["", "tasks", "attempts at most"], owed) if owed else ""


def _published_tables(r: Results) -> str:
    """The keys that the published files have too: points, intervals by bootstrap, and the published verdicts."""
    rows, pairs, noise = [], [], r.get("noise") or {}
    for arm, row in r["arms"].items():
        spread = f" ± {row['ci']:.1f}" if row["ci"] is not None else ""
        rate = "–" if row["rescue_rate"] is None else f"{row['rescue_rate']:.1f}{spread}"
        line = [arm, rate, within(r["intervals"][arm]["bootstrap"]), f"{row['n']:,}", f"{row['samples']:,}"]
        line.append("–" if row["samples_per_task"] is None else f"{row['samples_per_task']:.1f}")
        line.append(" ".join("–" if rate is None else f"{rate:.1f}" for rate in row["by_round"]))
        rows.append(line)
    for arm, row in r["deltas"].items():
        if row["n_paired"]:
            lo, hi = row["ci95"]
            between = f" [{lo:+.1f}, {hi:+.1f}]" if lo is not None else ""
            line = [f"{arm} minus {row['vs']}", f"{row['delta']:+.1f}{between}", f"{row['n_paired']:,}"]
            pairs.append([*line, p_text(row["p_value"]), row["verdict"].replace("_", " ")])
    head = ["arm", "rescue rate", "interval", "tasks", "samples", "a task", "by round"]
    tables = [_table("Rates, as published: points, intervals by bootstrap", head, rows)]
    if pairs:
        tables.append(_table("Differences, as published", ["", "points", "tasks", "p", "verdict"], pairs))
    if noise.get("means"):
        told = ["–" if x is None else f"{x:g}" for x in (noise["run_std"], noise["band"])]
        means = " ".join("–" if mean is None else f"{mean:.1f}" for mean in noise["means"])
        head = ["runs", "rescue rates", "sd of a run", "band"]
        tables.append(_table("Noise, as published, points", head, [[str(noise["runs"]), means, *told]]))
    return "".join(tables)


def _climb_section(r: Results) -> str:
    climb = {arm: row for arm, row in (r.get("climb") or {}).items() if any(x["programs"] for x in row["rounds"])}
    if not climb:
        return ""
    lost, tables = r.get("unrescued") or {}, []
    said = "The best program so far of each particle, on the tasks where neither side has stopped."
    if lost.get("n"):
        said += (
            f" On the {plural(lost['n'], 'task')} that no arm rescued the best program passes "
            f"{share(lost['mean_best_fitness'])} of the visible tests on average, and none on "
            f"{lost['at_zero']:,} ({share(lost['at_zero_share'])})."
        )
    told = r.get("signal") or {}
    rows = [
        [
            arm,
            f"{row['refine_prompts']:,}",
            f"{row['own_zero']:,} ({share(row['own_zero_share'])})",
            f"{row['with_neighbour']:,}",
            f"{row['neighbour_better']:,} ({share(row['neighbour_better_share'])})" if row["with_neighbour"] else "",
        ]
        for arm, row in told.items()
        if row.get("refine_prompts")
    ]
    if rows:
        head = ["arm", "refine prompts", "own best at 0", "with a neighbour", "neighbour better"]
        tables.append(_table("What the prompts had to offer", head, rows))
    tables.append(_active_table(climb))
    rows = [
        [
            f"{arm}, round {x['round']}",
            f"{x['tasks']:,}",
            f"{x['programs']:,}",
            points(x["to_own_first"]),
            f"{x['exact_repeats']:,} ({share(x['exact_repeats_share'])})",
            points(x["diversity"]),
            "–" if x["distinct_programs"] is None else f"{x['distinct_programs']:.1f}",
            "–" if x["distinct_signatures"] is None else f"{x['distinct_signatures']:.1f}",
        ]
        for arm, by_round in (r.get("anchoring") or {}).items()
        for x in by_round
        if x["programs"]
    ]
    if rows:
        head = ["", "tasks", "programs", "like own first", "repeats", "diversity", "distinct", "results"]
        caption = (
            "Anchoring. like own first: % of lines as in the particle's first program. repeats: of an earlier program. "
            "diversity: % of lines that two programs of a round do not share. distinct, results: distinct programs and "
            "results on the visible tests, a task."
        )
        tables.append(_table(caption, head, rows))
    return _section("climb", "Does the swarm climb", _p(said), plots.climb(climb), _numbers(*tables))


def _active_table(climb: Mapping[str, Any]) -> str:
    """Each arm beside the control, by round, on the tasks that neither has stopped on."""
    rows = []
    for arm, row in climb.items():
        for x in row["rounds"]:
            there = x["active"]
            for name, found in ((arm, there["arm"]), (f"{CONTROL} there", there["resample"])):
                if found and there["tasks"]:
                    cells = [points(found[key]) for key in ("best_fitness", "shown", "hidden", "hidden_among_shown")]
                    rows.append([f"{name}, round {x['round']}", f"{there['tasks']:,}", *cells[:2],
                                 f"{found['shown_programs']:,}", *cells[2:]])  # fmt: skip
    head = ["", "tasks", "best", "shown", "programs", "hidden", "of those"]
    caption = (
        "Where neither side has stopped, %. best: of the visible tests, best so far. shown: programs that pass every "
        "visible test, and how many. hidden: hidden tests passed, by all programs and by those."
    )
    return _table(caption, head, rows)


def _hidden_section(r: Results) -> str:
    climb = {arm: row for arm, row in (r.get("climb") or {}).items() if any(x["programs"] for x in row["rounds"])}
    if not climb:
        return ""
    rows, gaps = [], []
    for arm, row in climb.items():
        for x in row["rounds"]:
            if x["programs"]:
                cells = [
                    f"{x['programs']:,}",
                    f"{x['all_visible']:,}",
                    share(x["all_visible_share"]),
                    f"{x['passed']:,}",
                ]
                rows.append([f"{arm}, round {x['round']}", *cells])
        moved = row["moved"]
        for name, found in (("of its own", moved), (f"beyond {CONTROL}", row["against_resample"])):
            if moved and found:
                cells = [
                    estimate(found[part]["mean"], found[part]["interval"], sign=True).strip()
                    for part in ("shown", "hidden", "gap")
                ]
                rounds = f"{moved['from_round']} to {moved['to_round']}"
                gaps.append([f"{arm}, {name}", rounds, f"{moved['n']:,}", *cells])
    said = "The share of programs that pass every visible test, and the share that pass every hidden test too."
    counts = _table("Programs by round", ["", "programs", "pass all visible", "share", "and all hidden"], rows)
    moves = _table(
        f"How far shares moved, points [{CONFIDENCE} interval]",
        ["", "rounds", "tasks", "shown", "hidden", "gap"],
        gaps,
    )
    return _section(
        "hidden",
        "Do the hidden tests follow",
        _p(said),
        plots.hidden(climb),
        *map(_p, climb_words(r)),
        _numbers(counts, moves if gaps else ""),
    )


def _training_set_section(r: Results) -> str:
    moved = r.get("training_set") or {}
    if not moved.get("n"):
        return ""
    said = f"Tasks by the share of their attempts that pass. {selector_words(r)}"
    rows = [[name, *(f"{moved[key][k]:,}" for k, _ in SHARES)] for key, name in STAGES if key in moved]
    tables = [_table("Tasks by pass share", ["", *(name for _, name in SHARES)], rows)]
    for tag, values in (r.get("by_tag") or {}).items():
        arms = list(next(iter(values.values()))["arms"]) if values else []
        told = [
            [
                value,
                f"{row['tasks']:,}",
                f"{row['all_fail']:,}",
                f"{row['given']:,}",
                *(of(row["arms"][arm]["rescued"], row["arms"][arm]["n"]) for arm in arms),
            ]
            for value, row in values.items()
        ]
        tables.append(_table(f"Rescues by {tag}", [tag, "tasks", "all-fail", "given", *arms], told))
    return _section(
        "training_set",
        "How the training set moved",
        _p(said),
        plots.training_set(r),
        _p(pooled_words(r)),
        _numbers(*tables),
    )


def _hill_section(r: Results, calibration: Mapping[str, Any] | None) -> str:
    """Does the fitness predict a pass: every curve of calibration.json, or the command that makes one."""
    curves = hill_curves(calibration)
    if not curves:
        return _section(
            "hill",
            "Is the fitness a hill",
            "<p>Not known for this run. It takes grading time and no call: <code>python calibrate.py --out</code> with "
            "this run's folder runs the saved programs on more tests and says hill, cliff or noise.</p>",
        )
    assert calibration is not None
    counts, parts = calibration.get("counts") or {}, []
    if counts.get("chosen"):
        left = "".join(
            f" Left out: {plural(n, 'task')}, {why}." for why, n in (calibration.get("left_out") or {}).items()
        )
        said = f"{counts['chosen']:,} programs of {plural(counts.get('tasks', 0), 'task')}: {calibration.get('tests')}."
        parts.append(_p(said + left, quiet=True))
    for name, curve in curves.items():
        word = html.escape(str(curve["verdict"]).replace("_", " "))
        rows = [
            [
                row["bucket"],
                f"{row['n']:,}",
                f"{row['passed']:,}",
                estimate(row["rate"], [row["lo"], row["hi"]]).strip(),
            ]
            if row["n"]
            else [row["bucket"], "0", "", "no program here"]
            for row in curve["table"]
        ]
        areas = [
            [label.replace("_", ", "), auc(found), *(f"{found[key]:,}" for key in ("n_pos", "n_neg", "n_groups"))]
            for label, found in (curve.get("auc") or {}).items()
        ]
        head = ["", f"AUC [{CONFIDENCE}]", "passes", "fails", "tasks"]
        parts += [
            f"<h3>{html.escape(CURVES[name])}?</h3>" if name != "fitness" else "",
            f'<p><span class="word">{word}</span>: {html.escape(str(curve.get("why") or ""))}.</p>',
            plots.hill(name, curve),
            _numbers(
                _table(f"Pass rate, points [{CONFIDENCE} interval]", ["bucket", "programs", "passes", "rate"], rows),
                _table("Rank of passes above fails", head, areas) if areas else "",
            ),
        ]
    return _section("hill", "Is the fitness a hill", *parts)


def _cost_section(r: Results) -> str:
    cost = r.get("cost") or {}
    total = cost.get("total") or {}
    if not total.get("calls"):
        return ""
    priced = total.get("usd") is not None
    unknown = total["tokens_unknown"] > 0
    head = ["", "calls", "tokens in", "tokens out", *(["without counts"] if unknown else []), "mean wait",
            "grading CPU", *(["usd"] if priced else []), "rescues", "per M tokens"]  # fmt: skip

    def bill(name: str, b: Mapping[str, Any]) -> list[str]:
        per = b.get("rescues_per_million_tokens")
        usd = [f"{b['usd']:,.2f}"] if priced else []
        tokens = [f"{b[key]:,}" for key in ("calls", "prompt_tokens", "completion_tokens")]
        tokens += [f"{b['tokens_unknown']:,}"] if unknown else []
        times = [f"{b['latency_seconds'] / b['calls']:.1f} s", span(b["cpu_seconds"])]
        yields = [f"{b['rescued']:,}", "–" if per is None else f"{per:.2f}"] if "rescued" in b else ["", ""]
        return [name, *tokens, *times, *usd, *yields]

    stages = cost["stages"]
    bills = {"base group": stages["base"], **cost["arms"], "arms together": stages["arms"],
             "noise runs": stages["noise_runs"], "in all": total}  # fmt: skip
    rows = [bill(name, b) for name, b in bills.items() if b["calls"]]
    said = f"Equal samples are not equal cost: a refine prompt carries programs. {cost_words(r)}"
    return _section("cost", "What it cost", _p(said), _table("By stage and arm", head, rows))


def _outcomes_section(r: Results) -> str:
    told = {
        "base group" if name == "base" else name: row for name, row in (r.get("outcomes") or {}).items() if row["n"]
    }
    if not told:
        return ""
    names = [name for name in LETTERS if any(name in row["counts"] for row in told.values())]
    names += sorted({name for row in told.values() for name in row["counts"]} - set(LETTERS))
    rows = [[arm, *(f"{row['counts'].get(name, 0):,}" for name in names), f"{row['n']:,}"] for arm, row in told.items()]
    more = [
        [
            arm,
            f"{row['truncated']:,} ({share(row['truncated_share'])})",
            *(f"{row[key]:,}" for key in ("cut_while_thinking", "empty", "identical")),
        ]
        for arm, row in told.items()
    ]
    return _section(
        "outcomes",
        "How attempts ended",
        _p(f"Replies cut at max_tokens: {r['truncated']:,} in all.", quiet=True),
        _table("By first failed test", ["", *(name.replace("_", " ") for name in names), "attempts"], rows),
        _numbers(_table("Replies", ["", "cut at max_tokens", "cut while thinking", "empty", "repeats another"], more)),
    )


def _footer(r: Results, config: Mapping[str, Any]) -> str:
    identity, versions = r.get("identity") or {}, config.get("versions") or {}
    said = [
        f"{key.replace('_', ' ')} {_value(value)}" for key, value in identity.items() if value not in (None, False, "")
    ]
    parts = [_p("What an attempt was: " + "; ".join(said) + ".")] if said else []
    if config.get("tier"):
        parts.append(_p(f"{' '.join(tier_words(r))} Rules: {config.get('rules') or 'unnamed'}."))
    data = config.get("data") or {}
    left = "; ".join(f"{n:,} {why}" for why, n in (data.get("left_out") or {}).items())
    if data.get("source"):
        licence = f", licence {data['licence']}" if data.get("licence") else ""
        parts.append(_p(f"Tasks: {data['source']}{licence}. Left out: {left or 'none'}."))
    if versions:
        parts.append(_p("Made with " + ", ".join(f"{k} {v}" for k, v in versions.items() if v) + "."))
    return "\n".join(parts)


def _value(value: Any) -> str:
    return "yes" if value is True else value if isinstance(value, str) else json.dumps(value)


PAGE: tuple[Callable[[Results], str], ...] = (
    _all_fail_section,
    _arms_section,
    _climb_section,
    _hidden_section,
    _training_set_section,
)
