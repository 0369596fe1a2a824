"""report.html: one self-contained page, filled into the frame page.html.

Static parts (words, tables, plots) are written here and escaped here. What models and data sets wrote goes into a JSON
data block and reaches the screen through textContent; the policy in the page's head lets no script run but the
frame's own, and lets nothing be fetched. It reads aloud: plots have their numbers in tables, rows open with a key.

Left out: figures (measure.py), the tables they stand in (tables.py), how they are rounded and worded (words.py) and
drawn (plots.py), the data blocks (browse.py, packed.py), what their script makes of them (page.js).
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from commands.settings import Config, Row, Settings
from figures.hill import Curve
from figures.plan import CONTROL
from figures.regraded import graded
from figures.replayed import rebuilt
from figures.results import Results
from reading.stored import InMemory, Stored
from swarm import Attempt
from tasksets.task import Task
from telling import beside, plots, published, short, tables, words
from telling.browse import browsable, fit, in_turn, statements, written
from telling.packed import measured, squeezed
from telling.words import plural, share, within

FRAME = Path(__file__).with_name("page.html")
SCRIPT = Path(__file__).with_name("page.js")
CHUNKS = Path(__file__).with_name("chunks.js")  # before every script
PAGE_BYTES = 7_900_000  # what the page may weigh; texts are cut to fit
# The sections in their order: the link to each, and its heading; the frame holds that of the tasks.
LINKS = {
    "all_fail": ("Thrown away", "What the group throws away"),
    "arms": ("Arms", "Which way finds more"),
    "climb": ("Climb", "Does the swarm climb"),
    "hidden": ("Shown and hidden", "Do the hidden tests follow"),
    "training_set": ("Training set", "How the training set moved"),
    "hill": ("Hill", "Is the fitness a hill"),
    "outcomes": ("Outcomes", "How attempts ended"),
    "cost": ("Cost", "What it cost"),
    "tasks": ("Tasks", ""),
}


def page(
    results: Results,
    attempts: Iterable[Attempt] | Stored,
    cards: Iterable[Task],
    config: Config,
    calibration: Mapping[str, Any] | None = None,
    checks: Iterable[Row] = (),
) -> str:
    """report.html: one page that needs nothing else and asks nobody for anything.

    attempts: any list, or those of a log, of which the page reads back what it has room for. checks: the grades of a
    regrade, where config.json names one. The page stays under 8 MB: where it would not, texts are cut, then attempts
    left out, and it says so.
    """
    cards, checks = list(cards), list(checks)
    told = attempts if isinstance(attempts, Stored) else InMemory(attempts, checks, config)
    index = browsable(results, told.gathered.gists(), cards)
    parts = {
        "all_fail": _all_fail(results),
        "arms": _arms(results),
        "climb": _climb(results),
        "hidden": _hidden(results),
        "training_set": _training_set(results),
        "hill": _hill(calibration),
        "outcomes": _outcomes(results),
        "cost": _cost(results),
    }
    there = {name: "\n".join(filter(None, inside)) for name, inside in parts.items() if inside}
    frame, script = FRAME.read_text(encoding="utf-8"), script_of(SCRIPT)
    fill = {
        "csp": _policy(script),
        "title": html.escape(words.title(results)),
        "header": _header(results),
        "nav": _nav([*there, "tasks"]),
        "sections": "\n".join(_section(name, inside) for name, inside in there.items()),
        "footer": _footer(results, config),
        "script": script,
    }
    # A name may hold half of a character (a lone surrogate), which no encoding of the page could hold.
    fill = {name: part.encode("utf-8", "replace").decode() for name, part in fill.items()}
    by_id, due = {card.id: card for card in cards}, Settings.of(config)
    fill |= {"data": written(index), "statements": squeezed(statements(index, by_id))}
    room = PAGE_BYTES - len(frame) - sum(len(part.encode()) for part in fill.values())

    checks_of: dict[str, list[Row]] = {}
    for check in checks:
        checks_of.setdefault(check["task_id"], []).append(check)
    made: dict[str, tuple[str, int]] = {}

    def pack(task_id: str, cut: int) -> str:
        if task_id not in made or made[task_id][1] > cut:
            card, sent = by_id.get(task_id), sorted(told.of(task_id), key=in_turn)
            now = list(graded(sent, checks_of.get(task_id, ()), config))
            made[task_id] = measured(card, now, rebuilt(card, sent, due) if card else {}, cut)
        return made[task_id][0]

    chunks, fill["cut"] = fit([task["id"] for task in index["tasks"] if task["arms"]], pack, room)
    fill["chunks"] = written(chunks)
    return re.sub(r"\{\{(\w+)\}\}", lambda name: fill[name[1]], frame)


def simple_page(
    title: str,
    said: Sequence[str],
    about: Sequence[str],
    drawn: Sequence[str],
    told: Sequence[tables.Table | None],
    below: str = "",
    script: str = "",
    style: str = "",
) -> str:
    """A page in the same dress, without tasks: an answer, plots, tables.

    said: paragraphs, the first of them the answer; about: quiet lines under it. below: HTML at the end; script: the
    only one that may run; style: beside that of the frame.
    """
    frame = FRAME.read_text(encoding="utf-8")
    dress = frame[frame.index("<style>") : frame.index("</style>")] + style + "</style>"
    answer, *rest = [*said, ""]
    body = [
        f'<header class="top"><h1>{html.escape(title)}</h1><p class="answer">{html.escape(answer)}</p>',
        *(_p(line, True) for line in about),
        "</header><main>",
        *map(_p, rest),
        *drawn,
        *map(_table, told),
        below,
        "</main>",
        f"<script>{script}</script>" if script else "",
    ]
    made = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n{dress}\n</head>\n<body>\n"
    )
    return (made + "\n".join(filter(None, body)) + "\n</body>\n</html>\n").encode("utf-8", "replace").decode()


def script_of(path: Path) -> str:
    """A page's script behind what all of them stand on."""
    return CHUNKS.read_text(encoding="utf-8") + path.read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """What a page may do: run its own script, and fetch nothing."""
    runs = f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'; " if script else ""
    return f"default-src 'none'; {runs}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _table(told: tables.Table | None) -> str:
    """A table whose first column names its rows, and its notes."""
    if not told:
        return ""
    top = "".join(
        f'<th scope="col"{_N if i else ""}>{html.escape(x.name)}</th>' if x.name else "<td></td>"
        for i, x in enumerate(told.head)
    )
    body = "".join(
        f'<tr><th scope="row">{_said(row[0])}</th>{"".join(map(_cell, row[1:], told.head[1:]))}</tr>'
        for row in told.rows
    )
    return (
        f'<div class="scroll"><table><caption>{html.escape(told.caption)}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{''.join(_p(note, True) for note in told.notes)}"
    )


_N = ' class="n"'


def _said(cell: tables.Cell) -> str:
    return html.escape(cell if isinstance(cell, str) else cell.whole)


def _cell(cell: tables.Cell, column: tables.Column) -> str:
    """Verdicts in their colours; the word itself says it too."""
    said = _said(cell)
    if column.kind == "verdict" and said in words.MEANING:
        return f'<td class="n word {said}">{said}</td>'
    return f"<td{_N}>{said.strip() if column.kind == 'estimate' else said}</td>"  # padded for the text


def _numbers(*told: tables.Table | None) -> str:
    inside = "".join(map(_table, told))
    return f'<details class="numbers"><summary>The numbers</summary>{inside}</details>' if inside else ""


def _section(name: str, inside: str) -> str:
    heading = f'<h2 id="h-{name}">{LINKS[name][1]}</h2>'
    return f'<section id="{name}" aria-labelledby="h-{name}">\n{heading}\n{inside}\n</section>'


def _under(heading: str, plot: str) -> str:
    return f"<h3>{heading}</h3>\n{plot}" if plot else ""


def _p(said: str, quiet: bool = False) -> str:
    return f"<p{' class=quiet' if quiet else ''}>{html.escape(said)}</p>" if said else ""


# ── the head of the page, and its foot ───────────────────────────────────────────────────────────────────────────────


def _header(r: Results) -> str:
    verdict, whole, pool = r["verdict"], sum(r["p0_histogram"]), r["pooled"]
    parts = [f"<h1>{html.escape(words.title(r))}</h1>", f'<p class="answer">{html.escape(short.headline(r))}</p>']
    if verdict["arms"]:
        parts += [_p(words.plan_words(r), quiet=True), _p(beside.watched_words(r), quiet=True)]
    parts += map(_p, words.kind_words(r))
    tiles = [("Tasks", f"{r['tasks']:,}", "" if whole == r["tasks"] else f"{whole:,} with a whole base group")]
    if whole:
        tiles.append(("All-fail", f"{r['all_fail']:,}", f"{share(r['all_fail'] / whole)} of the tasks"))
    if pool["n"]:
        rescued = pool["all_runs"]
        note = f"{share(rescued['share'])} {within(rescued['wilson'])}, by {plural(pool['runs'], 'run')}"
        tiles.append(("Rescued", f"{rescued['rescued']:,}", note))
        tiles.append(("Training rows", f"{r['rescued_rows']:,}", words.rows_words(r)))
    tiles.append(("Calls", f"{r['calls']:,}", f"{words.big(r['tokens']['prompt'] + r['tokens']['completion'])} tokens"))
    parts.append(
        '<dl class="tiles">'
        + "".join(
            f"<div><dt>{name}</dt><dd>{value}<small>{html.escape(note)}</small></dd></div>"
            for name, value, note in tiles
        )
        + "</dl>"
    )
    if warnings := short.warnings(r):
        items = "".join(f"<li>{html.escape(said)}</li>" for said in warnings)
        parts.append(
            f'<section class="callout" aria-labelledby="h-warn"><h2 id="h-warn">Before you trust a figure</h2>'
            f"<ul>{items}</ul></section>"
        )
    return "\n".join(filter(None, parts))


def _nav(names: Iterable[str]) -> str:
    """Links to the sections that there are."""
    items = "".join(f'<li><a href="#{name}">{LINKS[name][0]}</a></li>' for name in names)
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def _footer(r: Results, config: Mapping[str, Any]) -> str:
    said = [f"{key.replace('_', ' ')} {_value(x)}" for key, x in r["identity"].items() if x not in (None, False, "")]
    parts = [_p("What an attempt was: " + "; ".join(said) + ".")] if said else []
    if config.get("tier"):
        parts.append(_p(f"{' '.join(words.tier_words(r))} Rules: {config.get('rules') or 'unnamed'}."))
    data = config.get("data") or {}
    left = "; ".join(f"{n:,} {why}" for why, n in (data.get("left_out") or {}).items())
    if data.get("source"):
        licence = f", licence {data['licence']}" if data.get("licence") else ""
        parts.append(_p(f"Tasks: {data['source']}{licence}. Left out: {left or 'none'}."))
    if versions := config.get("versions"):
        parts.append(_p("Made with " + ", ".join(f"{k} {v}" for k, v in versions.items() if v) + "."))
    return "\n".join(parts)


def _value(value: object) -> str:
    return "yes" if value is True else value if isinstance(value, str) else json.dumps(value)


# ── the sections: the parts of each, none where there is nothing to show ─────────────────────────────────────────────


def _all_fail(r: Results) -> list[str]:
    said = _p(" ".join(words.base_words(r)))
    if not sum(r["p0_histogram"]):
        return [said]
    return [said, plots.base(r), _p(words.near_miss_words(r), True), _numbers(tables.base(r))]


def _arms(r: Results) -> list[str]:
    if not r["incomplete"]["given"]:
        return [_p(r["verdict"]["sentence"])]
    audited = [*map(_p, words.audit_words(r)), _table(tables.audited(r))]
    both = [_table(tables.rescues(r)), _table(tables.per_sample(r))]
    if r["verdict"]["primary_metric"] == "per_sample":
        both.reverse()
    given_to_each, *notes = words.budget_words(r)
    paired = (
        f", paired by task. “It alone” counts the tasks that this arm rescued and {CONTROL} did not, then the other "
        "way round"
    )
    paired = paired if any(pair["n"] for pair in r["paired"].values()) else ""
    mean = f"Against {mean} " if (mean := words.runs_words(r)) else ""
    said = f"{given_to_each}{paired}. {mean}{' '.join(notes)}"
    numbers = _numbers(
        tables.first_passes(r),
        tables.owed(r),
        tables.verdicts(r),
        tables.watched(r),
        tables.coverage(r),
        tables.stopped(r),
        tables.all_resample(r),
        tables.noise(r),
        tables.power(r),
        tables.fresh(r),
        published.rates(r),
        published.differences(r),
        published.noise(r),
    )
    return [
        _p(said),
        *both,
        _p(words.hinted_words(r), True),
        plots.forest(r),
        *audited,
        _p(beside.fresh_words(r), True),
        _p(words.effect_words(r), True),
        _p(words.prediction_words(r), True),
        _p(words.equivalence_words(r), True),
        _p(words.noise_words(r), True),
        _p(words.power_words(r), True),
        _p(words.luck_words(r), True),
        _under("Rescues by round", plots.rounds(r)),
        _under("With every further sample", plots.coverage(r)),
        _under("Base group and arms on one axis", plots.one_axis(r)),
        numbers,
    ]


def _climb(r: Results) -> list[str]:
    climb = tables.climbers(r)
    if not climb:
        return []
    said = "The best program so far of each particle, on the tasks where neither side has stopped. "
    said += words.unrescued_words(r)
    return [_p(said), plots.climb(climb), _numbers(tables.signal(r), tables.active(r), tables.anchoring(r))]


def _hidden(r: Results) -> list[str]:
    if not (climb := tables.climbers(r)):
        return []
    said = "The share of programs that pass every visible test, and the share that pass every hidden test too."
    said = f"{said} {tables.leaves(r)}".strip()
    numbers = _numbers(tables.programs(r), tables.gaps(r))
    return [_p(said), plots.hidden(climb), *map(_p, short.climb_words(r)), numbers]


def _training_set(r: Results) -> list[str]:
    if not r["training_set"]["n"]:
        return []
    said = f"Tasks by the share of their attempts that pass. {words.selector_words(r)}"
    numbers = _numbers(tables.training_set(r), *tables.by_tag(r))
    return [
        _p(said),
        plots.training_set(r),
        _p(words.pooled_words(r)),
        _p(words.verified_words(r)),
        _p(words.contamination_words(r), True),
        numbers,
    ]


def _hill(calibration: Mapping[str, Any] | None) -> list[str]:
    """Does the fitness predict a pass: every curve of calibration.json, or the command that makes one."""
    curves = words.hill_curves(calibration)
    if not calibration or not curves:
        return [
            "<p>Not known for this run. It takes grading time and no call: <code>python calibrate.py --out</code> with "
            "this run's folder runs the saved programs on more tests and says hill, cliff or noise.</p>"
        ]
    counts, parts = calibration.get("counts") or {}, []
    if counts.get("chosen"):
        left = "".join(
            f" Left out: {plural(n, 'task')}, {why}." for why, n in (calibration.get("left_out") or {}).items()
        )
        said = f"{counts['chosen']:,} programs of {plural(counts.get('tasks', 0), 'task')}: {calibration.get('tests')}."
        parts.append(_p(said + left, quiet=True))
    scores = {"by_parent": "the parent's fitness", "judge": "the judge's answer"}
    for name, curve in curves.items():
        heading = f"{words.CURVES[name]}?" if name != "fitness" else ""
        parts += curve_parts(heading, scores.get(name, "fitness"), curve)
    return parts


def curve_parts(heading: str, score: str, curve: Curve, noun: str = "program", level: int = 3) -> list[str]:
    """A calibration's curve: its verdict, its picture, its numbers.

    score, noun: what predicts a pass, and of what; level: of the heading.
    """
    word = html.escape(curve["verdict"].replace("_", " "))
    return [
        f"<h{level}>{html.escape(heading)}</h{level}>" if heading else "",
        f'<p><span class="word">{word}</span>: {html.escape(curve["why"])}.</p>',
        plots.hill(score, curve, noun, heading),
        _numbers(tables.buckets(curve, noun), tables.areas(curve)),
    ]


def _outcomes(r: Results) -> list[str]:
    cut = _p(f"Replies cut at max_tokens: {r['truncated']:,} in all.", quiet=True)
    told = _table(tables.outcomes(r))
    return [cut, told, _numbers(tables.replies(r))] if told else []


def _cost(r: Results) -> list[str]:
    if not r["cost"]["total"]["calls"]:
        return []
    said = f"Equal samples are not equal cost: a refine prompt carries programs. {words.cost_words(r)}"
    return [_p(said), _table(tables.cost(r)), _p(beside.efficiency_words(r), True), _numbers(tables.efficiency(r))]
