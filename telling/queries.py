"""sql_calibrate's page: the verdict and its curves, then each question with its queries and what they give.

    queries_page(made, titles, facts, cards, attempts, checks)      report.html, as text

Results stand beside the gold query's as they were kept when they were graded (grading/sql_shown.py), each distinct
query of a question once, in a chunk that the browser opens when somebody opens the question. Whatever models, questions
and databases hold is in the data blocks and reaches the screen through textContent.

Left out: figures (sql_calibrate.py), curves and tables (plots.py, tables.py), what the script does (queries.js).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from commands.settings import Row
from figures.hill import Curve
from figures.verified import program_of
from swarm import Attempt
from tasksets.task import Task
from telling import tables
from telling.browse import fit, written
from telling.packed import squeezed
from telling.page import PAGE_BYTES, curve_parts, script_of, simple_page
from telling.words import hill_line

SCRIPT = Path(__file__).with_name("queries.js")
STYLE = """
#questions { list-style: none; padding: 0; margin: 0; }
details.question { border-bottom: 1px solid var(--rule); scroll-margin-top: 1rem; }
details.question > summary { cursor: pointer; padding: .35rem 0; display: flex; flex-wrap: wrap; gap: 0 1rem; }
details.question > summary::before { content: "▸"; color: var(--muted); }
details.question[open] > summary::before { content: "▾"; }
details.question .title { font-weight: 600; flex: 1 1 16rem; overflow-wrap: anywhere; }
.box h3 { margin: 1rem 0 .2rem; font-size: .95rem; }
.asked { white-space: pre-wrap; overflow-wrap: anywhere; }
.box code { overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: .2rem 1.2rem; }
.box .scroll { background: none; }
table.result caption { white-space: nowrap; }
table.result td { max-width: 18rem; white-space: pre-wrap; overflow-wrap: anywhere; }
table.result tbody th { color: var(--muted); font-weight: 400; width: 1%; }
td.off { background: var(--soft); box-shadow: inset 0 -2px var(--bad); }
td .ne { color: var(--bad); font-weight: 600; }
main { max-width: 64rem; }
main > #all { max-width: none; padding: 0; }
main figure { max-width: 53.5rem; }
@media print { #filters, #more { display: none; } }
"""
QUESTION = "\n\nQuestion: "  # before it in a statement stand the tables
HINT = "\n\nHint: "  # and behind it, where there is one, a hint
TITLE = 160  # characters of a question in the list
SEARCHED = 300  # characters of a question that a filter looks in
OF_QUERY, OF_GOLD = "sql/query/", "sql/gold/"  # names of checks


def queries_page(
    made: Mapping[str, Any],
    titles: Mapping[str, str],
    facts: Sequence[str],
    cards: Iterable[Task],
    attempts: Iterable[Attempt],
    checks: Iterable[Row],
) -> str:
    """The page. made: calibration.json; titles: of its curves; facts: lines of what was asked and came of it."""
    by_task: dict[str, list[Attempt]] = defaultdict(list)
    samples = made["settings"]["base_samples"]
    for attempt in attempts:
        if attempt.particle < samples:
            by_task[attempt.task_id].append(attempt)
    known, kept = {card.id: card for card in cards}, _Kept(checks)
    index = sorted((_line(known[task], those, samples) for task, those in by_task.items() if task in known), key=_first)
    drawn = [part for name in titles if made[name]["n"] for part in _curve(titles[name], made[name])]
    script = script_of(SCRIPT)
    data = written(index)
    room = PAGE_BYTES - len(data) - len(script) - sum(map(len, drawn)) - 100_000

    def pack(task_id: str, cut: int) -> str:
        return squeezed(_chunk(known[task_id], by_task[task_id], kept, cut))

    chunks, cut = fit(
        [row["id"] for row in index], pack, room, "Queries, tables and results", "the others are in the folder's files"
    )
    below = (
        '<section id="all" aria-labelledby="h-all"><h2 id="h-all">The questions</h2>'
        '<p class="quiet">Open a question to see its queries, what they give, and the gold query beside them. '
        f"≠ marks a cell that has no partner in the other result. {cut}</p>"
        "<noscript><p>The questions need JavaScript; everything above does not.</p></noscript>"
        '<form id="filters" role="search" aria-label="Filter the questions"></form>'
        '<p id="found" role="status" class="quiet"></p><ul id="questions"></ul>'
        '<p><button type="button" id="more" class="plain" hidden>Show more</button></p></section>'
        f'<script type="application/json" id="data">{data}</script>'
        f'<script type="application/json" id="chunks">{written(chunks)}</script>'
    )
    title = f"Text-to-SQL, {made['settings']['model']}"
    said = [hill_line("fitness", made["fitness"])]
    told = [_questions(made["counts"]), _ends(made["counts"])]
    return simple_page(title, said, facts, drawn, told, below, script, STYLE)


def _curve(title: str, curve: Curve) -> list[str]:
    return curve_parts(f"Cell F1 against a match, {title}", "cell F1", curve, "sample", level=2)


def _questions(counts: Mapping[str, int]) -> tables.Table | None:
    """A calibration on text-to-SQL: its questions by how their samples ended."""
    none = counts["all_fail"] - counts["near_miss"]
    rows = [
        ["every sample matches", counts["all_pass"]],
        ["some samples match", counts["mixed"]],
        ["none matches, some cells are right", counts["near_miss"]],
        ["none has a right cell", none],
    ]
    return tables.table("Questions whose samples are all there", ["", "questions"], rows)


def _ends(counts: Mapping[str, Mapping[str, int]]) -> tables.Table | None:
    """How its samples ended."""
    rows = [[name.replace("_", " "), n] for name, n in counts["outcomes"].items()]
    return tables.table("Samples by outcome", ["", "samples"], rows)


class _Kept:
    """The results that were kept, by question and query."""

    def __init__(self, checks: Iterable[Row]) -> None:
        self.of_query: dict[tuple[str, str, str], Row] = {}
        self.of_gold: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
        for row in checks:
            where = row["task_id"], row.get("task_sha", "")
            if row["tests"].startswith(OF_QUERY):
                self.of_query[*where, row["program"]] = row
            elif row["tests"].startswith(OF_GOLD):
                self.of_gold[where][row["program"]] = row


def _line(card: Task, attempts: Sequence[Attempt], samples: int) -> dict[str, Any]:
    """A question in the list. kind: how its samples ended."""
    passes, best = sum(a.passed for a in attempts), max((a.fitness for a in attempts if not a.passed), default=0.0)
    said = " ".join(_question(card).partition(HINT)[0].split()) or card.id
    kind = "mixed" if 0 < passes < samples else "pass" if passes else "near" if best else "fail"
    whole = len(attempts) == samples and not any(a.outcome == "refused" for a in attempts)
    return {
        "id": card.id,
        "title": said if len(said) <= TITLE else f"{said[:TITLE]}…",
        "said": _question(card)[:SEARCHED],
        "n": len(attempts),
        "passes": passes,
        "best": best,
        "kind": kind if whole else "open",
    }


def _first(line: Mapping[str, Any]) -> tuple[int, float, str]:
    """What a reader wants to see first: samples that disagree, then near ones."""
    return ["mixed", "near", "fail", "pass", "open"].index(line["kind"]), -line["best"], line["id"]


def _chunk(card: Task, attempts: Sequence[Attempt], kept: _Kept, cut: int) -> dict[str, Any]:
    """A question opened: each distinct query once, the nearest misses first and those that match last."""

    def short(text: str) -> str:
        return text if len(text) <= cut else f"{text[:cut]}… ({len(text):,} characters)"

    golds = list(kept.of_gold[card.id, card.digest].values())
    by_code: dict[str | None, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_code[attempt.code].append(attempt)
    told = []
    for code, those in sorted(by_code.items(), key=lambda pair: (pair[1][0].passed, -pair[1][0].fitness)):
        first, row = those[0], {}
        if code is not None:
            row = kept.of_query.get((card.id, card.digest, program_of(code)), {})
        one: dict[str, Any] = {
            "query": None if code is None else short(code),
            "n": len(those),
            "passed": first.passed,
            "outcome": first.outcome,
            "f1": first.fitness,
            "error": first.got,
            "reply": short(first.reply[:600]) if code is None else "",
        }
        if "mine" in row:
            one |= {name: row[name] for name in ("mine", "theirs", "gold")}
        told.append(one)
    return {
        "question": short(_question(card)),
        "tables": short(card.statement.rpartition(QUESTION)[0]),
        "golds": [
            {"query": short(gold["query"]), "ordered": gold["ordered"], "result": gold["result"]} for gold in golds
        ],
        "predictions": told,
    }


def _question(card: Task) -> str:
    return card.statement.rpartition(QUESTION)[2]
