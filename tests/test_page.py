"""report.html: what it holds, what it can never run or fetch, and how it behaves in a real browser.

The browser is Debian's Chromium; where it is missing those tests are skipped, and say so. What models write is hostile
here: every text that comes from outside carries markup that would show itself if it ever became markup.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from base64 import b64encode, b85decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

import measure
import report
from commands.settings import Settings
from figures.regraded import graded
from figures.replayed import rebuilt
from records import Folder
from swarm import Attempt
from tasksets.task import Task, Test
from telling import browse, page
from telling.text import text as report_text
from tests.support import planted_run
from tests.support.browser import Browser, Page, found
from tests.support.lay_out import ARMS, attempt, base, config, names, run

HOSTILE = (
    "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
    "<style>body{display:none}</style>{{data}} &lt; \u2028 \udcff <!--"
)


def filled(attempts: list[Attempt], cards: list[Task] = [], calibration: Any = None, **changes: Any) -> str:  # noqa: B006
    conf = config(**changes)
    return page.page(measure.measure(attempts, conf, cards), iter(attempts), cards, conf, calibration)


def told(attempts: list[Attempt], cards: list[Task] = [], **changes: Any) -> dict[str, Any]:  # noqa: B006
    """The data block alone, without the cost of the plots."""
    return browse.browsable(measure.measure(attempts, config(**changes), cards), iter(attempts), cards)


def block(text: str, name: str) -> str:
    (inside,) = re.findall(rf'<script type="[^"]*" id="{name}">(.*?)</script>', text, re.DOTALL)
    return inside


def data_of(text: str) -> dict[str, Any]:
    return json.loads(block(text, "data"))


def opened(chunk: str) -> Any:
    """As the browser opens it: base 85, raw deflate, JSON."""
    return json.loads(zlib.decompress(b85decode(chunk.replace(",", "<")), -15))


def attempts_of(text: str, task: str) -> dict[str, dict[str, Any]]:
    """The attempts of a task by slot, with their texts and the prompt as sent put together."""
    chunk = opened(json.loads(block(text, "chunks"))[task])
    columns, texts, last, by_slot = chunk["columns"], chunk["texts"], 0, {}
    for values in zip(*columns.values(), strict=True):
        a = dict(zip(columns, values, strict=True))
        if a["code"] is not None:
            a["code"] = last = last + a["code"]
        for name in ("code", "input", "expected", "got"):
            a[name] = None if a[name] is None else texts[a[name]]
        a["score"] = f"{a['visible'].count('P')} of {a['visible_total']}"
        by_slot[a["slot"]] = a
    for a in by_slot.values():
        if a["prompt"] is None:
            continue
        held = {"own": by_slot.get(a["parent"]), "other": by_slot.get(a["social"])}

        def part(one: int | str, held: dict[str, Any] = held) -> str:
            if one == "problem":
                return texts[chunk["problem"]]
            who, _, what = str(one).partition(".")
            return held[who][what] if what else texts[one]

        a["sent"] = [
            {"role": role, "content": "".join(map(part, parts))} for role, parts in chunk["prompts"][a["prompt"]]
        ]
    return by_slot


def card(task: str, **changes: Any) -> Task:
    given: dict[str, Any] = {
        "title": f"Title of {task}",
        "statement": "Add two numbers.",
        "kind": "stdio",
        "visible": tuple(Test(f"{i} {i}\n", f"{2 * i}\n") for i in range(5)),
        "tags": {"rating": "800", "split": "test"},
    }
    return Task(id=task, **(given | changes))


def hostile_run() -> tuple[list[Attempt], list[Task]]:
    attempts = run(names(3), {arm: {"t0001": 1} for arm in ARMS}, [{"t0002": 0}])
    attempts = [
        replace(a, code=f"# {HOSTILE}\nprint(1)\n", reply=HOSTILE, got=HOSTILE, got_start=0, reasoning=HOSTILE)
        for a in attempts
    ]
    cards = [
        card(t, title=HOSTILE, statement=HOSTILE, visible=(Test(HOSTILE, HOSTILE),) * 5, tags={HOSTILE: HOSTILE})
        for t in names(3)
    ]
    return attempts, cards


def well_formed(text: str) -> None:
    """No value that nobody can read, no address of anything, no id twice, nothing left to fill in."""
    static = re.sub(r'<script type="(application/json|text/plain)".*?</script>', "", text, flags=re.DOTALL)
    words = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", static, flags=re.DOTALL)
    assert not re.search(r"\b(nan|None|NaN|inf|undefined|null)\b", words), words
    assert not re.search(r"\{\{\w+\}\}(?! &amp;lt;)", static)  # HOSTILE holds one, which nobody may fill in
    assert set(re.findall(r"https?://[^\s\"'<>)]+", static)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    ids = Counter(re.findall(r'\sid="([^"]+)"', static))
    assert max(ids.values()) == 1, ids.most_common(3)
    used = set(re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", static))
    assert {a or b for a, b in used} <= set(ids)


# ── without a browser ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_only_the_frames_own_script_may_run_and_nothing_may_be_fetched() -> None:
    attempts, cards = hostile_run()
    text = filled(attempts, cards, noise_runs=1)
    well_formed(text)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1 and text.count("<script") == 4
    right = "'sha256-" + b64encode(sha256(scripts[0].encode()).digest()).decode() + "'"
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {right}",
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "innerHTML" not in text and "document.write" not in text and "insertAdjacentHTML" not in text
    assert all(task["title"] == HOSTILE for task in data_of(text)["tasks"])
    assert all(HOSTILE in a["code"] for a in attempts_of(text, "t0001").values())
    text.encode()  # no lone surrogate is left in it


@pytest.mark.slow
def test_each_task_opens_to_all_its_attempts() -> None:
    """And they alone are in its chunk, with what each was shown."""
    attempts = [
        *base("t", near=True),
        attempt("t", "ring", 0, 0, 0, visible="PWWWW", got="1\n"),
        attempt("t", "ring", 0, 1, 0, visible="PPWWW", got="3\n", parent="ring/0/0/0", social="ring/0/0/1"),
        attempt("t", "ring", 0, 1, 1, visible="WWWWW"),
        attempt("t", "ring", 0, 2, 0, visible="NNNNN", code=None, outcome="context_overflow"),
        *base("u", 3),
    ]
    index = told(attempts, [card("t"), card("u")], arms=["resample", "ring"])
    t, u = index["tasks"]
    assert index["arms"] == ["base", "ring"] and index["letters"]["W"] == "wrong_answer"
    assert (t["base"], t["fail"], t["given"], t["open"]) == (0, True, True, True)
    assert (u["base"], u["fail"], u["given"], u["open"]) == (3, False, False, False)
    assert t["arms"]["ring"] == {"drawn": 4, "passes": 0, "first": None, "fitness": 0.4, "outcome": "wrong_answer"}
    assert u["arms"] == {"base": {"drawn": 8, "passes": 3, "first": 0, "fitness": 1.0, "outcome": "pass"}}
    text = filled(attempts, [card("t"), card("u")], arms=["resample", "ring"])
    inside = attempts_of(text, "t")
    assert len(inside) == 12 and len(attempts_of(text, "u")) == 8
    ring = inside["ring/0/1/0"]
    assert (ring["parent"], ring["social"], ring["visible"], ring["hidden_total"]) == (
        "ring/0/0/0",
        "ring/0/0/1",
        "PPWWW",
        4,
    )
    assert (ring["input"], ring["expected"], ring["got"]) == ("2 2\n", "4\n", "3\n")
    assert ring["code"] == "print('ring', 0, 1, 0)\n" and ring["outcome"] is None  # its letters say it
    assert inside["ring/0/2/0"]["outcome"] == "context_overflow" and inside["ring/0/2/0"]["code"] is None
    assert ring["prompt"] is None  # made up: no prompt has the digest ""


def test_the_most_telling_task_comes_first() -> None:
    """One that a single arm rescued, then one that several did, all, none; nearer ones before."""
    rescued = {"resample": {"t0002": 0, "t0003": 0}, "ring": {"t0002": 0}, "star": {"t0002": 1, "t0003": 1, "t0004": 2}}
    attempts = [*base("t0000", 1), *run(names(6)[1:], rescued)]
    near = attempt("t0005", "star", 0, 2, 0, visible="PPPWW")
    attempts = [near if a.slot == near.slot else a for a in attempts]
    ids = [task["id"] for task in told(attempts, arms=["resample", "ring", "star"])["tasks"]]
    assert ids == ["t0004", "t0003", "t0002", "t0005", "t0001", "t0000"]


def test_a_disputed_task_says_why() -> None:
    attempts, cards = [*base("t"), *base("u")], [card("t"), card("u")]
    audit = {"by_task": {"t": {"verdict": "disputed", "reason": "several_answers", "digest": cards[0].digest}}}
    results = measure.measure(attempts, config(), cards, audit=audit)
    rows_ = browse.browsable(results, attempts, cards)["tasks"]
    assert {row["id"]: row["disputed"] for row in rows_} == {"t": "several_answers", "u": None}
    unaudited = measure.measure(attempts, config(), cards)
    assert not any(row["disputed"] for row in browse.browsable(unaudited, attempts, cards)["tasks"])


@pytest.mark.slow
def test_every_prompt_of_a_run_is_in_the_page_as_it_was_sent(tmp_path: Path) -> None:
    planted_run.make(tmp_path, 3, noise_runs=1, seed=4)
    folder = Folder(tmp_path)
    cards = list(folder.cards())
    results = measure.measure(folder.attempts(), folder.config, cards)
    text = page.page(results, folder.attempts(), cards, folder.config)
    inside = {one.id: attempts_of(text, one.id) for one in cards}
    attempts = list(folder.attempts())
    assert len(attempts) > 100 and sum(a.social is not None for a in attempts) > 20
    for a in attempts:
        row = inside[a.task_id][a.slot.within_task()]
        assert row["code"] == a.code
        assert sha256(json.dumps(row["sent"]).encode()).hexdigest() == a.prompt_sha


def test_a_task_whose_re_run_owes_attempts_is_open() -> None:
    attempts = run(names(2), {"resample": {"t0001": 0}}, [{}])
    cut = [a for a in attempts if (a.task_id, a.rerun, a.round) != ("t0001", 1, 2)]
    changes = {"arms": ["resample"], "noise_runs": 1}
    assert not any(t["open"] for t in told(attempts, **changes)["tasks"])
    assert [t["id"] for t in told(cut, **changes)["tasks"] if t["open"]] == ["t0001"]


def test_a_pass_beats_any_fitness_and_its_first_round_is_told() -> None:
    attempts = run(["t"], {"ring": {"t": 1}}, stop=False)
    (t,) = told(attempts, arms=["ring"])["tasks"]
    ring = t["arms"]["ring"]
    assert (ring["outcome"], ring["first"], ring["drawn"]) == ("pass", 1, 24)


def test_a_shared_round_belongs_to_every_arm() -> None:
    attempts = [*base("t"), *(attempt("t", "round0", 0, 0, i, passed=i == 3) for i in range(8))]
    (t,) = told(attempts, share_round0=True)["tasks"]
    assert list(t["arms"]) == ["base", *ARMS]
    assert all(t["arms"][arm]["first"] == 0 and t["arms"][arm]["drawn"] == 8 for arm in ARMS)


@pytest.mark.slow
def test_a_regraded_run_shows_its_new_grades_beside_the_prompts_of_their_time(tmp_path: Path) -> None:
    planted_run.make(tmp_path, 1, seed=5)
    folder = Folder(tmp_path)
    cards, attempts, conf = list(folder.cards()), list(folder.attempts()), folder.config
    programs = {sha256(a.code.encode()).hexdigest() for a in attempts if a.code is not None}
    checks = [
        {"task_id": cards[0].id, "program": program, "tests": "r/visible", "rules": "", "letters": "R" * 10}
        for program in programs
    ]
    conf["grades"] = "r"
    results = measure.measure(graded(attempts, checks, conf), conf, cards)
    inside = attempts_of(page.page(results, attempts, cards, conf, None, checks), cards[0].id)
    assert sum(a.parent is not None for a in attempts) > 10
    for a in attempts:
        row = inside[a.slot.within_task()]
        assert row["visible"] == ("R" * 10 if a.code is not None else a.visible_tests)
        assert sha256(json.dumps(row["sent"]).encode()).hexdigest() == a.prompt_sha


def test_texts_are_cut_until_the_chunks_fit_and_then_tasks_go_without() -> None:
    sizes = {20_000: 900, 6_000: 500, 2_500: 300}
    asked: list[tuple[str, int]] = []

    def pack(task: str, cut: int) -> str:
        asked.append((task, cut))
        return "x" * sizes[cut]

    ids = names(10)
    each = len('"t0000":"",')
    whole, said = browse.fit(ids, pack, 10 * (900 + each) + 2)
    assert list(whole) == ids and said == "" and {cut for _, cut in asked} == {20_000}
    cut, said = browse.fit(ids, pack, 10 * (900 + each) + 1)
    assert list(cut) == ids and said.startswith("Programs and prompts are cut after 6,000 characters")
    assert len(browse.written(cut)) <= 10 * (900 + each) + 1
    few, said = browse.fit(ids, pack, 4 * (300 + each) + 2)
    assert list(few) == ids[:4] and "first 4 tasks" in said and len(browse.written(few)) <= 4 * (300 + each) + 2


@pytest.mark.slow
def test_a_page_of_long_programs_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    attempts = [replace(a, code=f"x = '{rng.randbytes(4_500).hex()}'\n") for task in names(20) for a in base(task)]
    whole = filled(attempts)
    monkeypatch.setattr(page, "PAGE_BYTES", 900_000)
    text = filled(attempts)
    assert len(text.encode()) <= 900_000 < len(whole.encode())
    chunk = opened(json.loads(block(text, "chunks"))["t0000"])
    assert max(map(len, chunk["texts"])) == 6_000 and set(chunk["cut"].values()) == {
        len(a.code or "") for a in attempts[:8]
    }
    assert "Programs and prompts are cut after 6,000 characters" in text and "are cut after" not in whole


@pytest.mark.slow
def test_equal_runs_give_equal_bytes() -> None:
    attempts, cards = hostile_run()
    assert filled(attempts, cards) == filled(attempts, cards)


DEGENERATE: dict[str, tuple[list[Attempt], dict[str, Any]]] = {
    "nothing": ([], {}),
    "one attempt": ([attempt("t")], {}),
    "no task is all-fail": ([*base("a", 3), *base("b", 8)], {}),
    "one task": (run(["t"], {arm: {"t": 1} for arm in ARMS}, [{}]), {"noise_runs": 1}),
    "rescued all": (
        run(names(6), {"resample": {}, "star": dict.fromkeys(names(6), 0)}),
        {"arms": ["resample", "star"]},
    ),
    "no control": (run(["a", "b"], {"ring": {"a": 0}}), {"arms": ["ring"]}),
    "full budgets": (
        run(names(5), {"resample": {}, "star": {"t0001": 1}}, stop=False),
        {"arms": ["resample", "star"], "tasks": "mbpp-bundle", "full_budget": True, "bundle": 5},
    ),
    "interrupted": (run(names(4), {"resample": {"t0001": 1}, "ring": {}})[:77], {"arms": ["resample", "ring"]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_runs_make_a_page(name: str) -> None:
    attempts, changes = DEGENERATE[name]
    text = filled(attempts, **changes)
    well_formed(text)
    assert data_of(text)["tasks"] is not None


CALIBRATION = {
    "tests": "40 generated tests against 20 more",
    "counts": {"chosen": 1776, "tasks": 74},
    "left_out": {"fewer than 40 generated tests": 3},
    "fitness": {
        "verdict": "cliff",
        "why": "from a half to three quarters of the tests 1 of 83 pass",
        "table": [
            {"bucket": "0", "n": 900, "passed": 0, "rate": 0.0, "lo": 0.0, "hi": 0.004},
            {"bucket": "(0, 0.25)", "n": 0, "passed": 0, "rate": None, "lo": None, "hi": None},
            {"bucket": "1", "n": 22, "passed": 12, "rate": 12 / 22, "lo": 0.35, "hi": 0.73},
        ],
        "auc": {"within": {"auc": None, "interval": [None, None], "n_pos": 1, "n_neg": 2, "n_groups": 0}},
    },
}


@pytest.mark.slow
def test_a_calibration_has_its_section() -> None:
    text = filled(list(base("t")), calibration=CALIBRATION)
    well_formed(text)
    assert '<span class="word">cliff</span>' in text and "no program here" in text
    assert "Left out: 3 tasks, fewer than 40 generated tests." in text
    assert "calibrate.py" not in text


def test_of_many_tasks_less_of_each_statement_is_searched() -> None:
    long = card("t0", statement="x" * 5_000)
    for n, most in ((275, browse.STATEMENT), (1_000, browse.STATEMENT), (11_700, browse.STATEMENTS // 11_700)):
        found = browse.statements({"tasks": [{"id": "t0"}] * n}, {"t0": long})
        assert {len(text) for text in found} == {most}
    assert browse.statements({"tasks": []}, {}) == []


def test_every_section_has_a_link() -> None:
    attempts = run(names(3), {arm: {"t0001": 1} for arm in ARMS})
    text = filled(attempts, calibration=CALIBRATION)
    sections = re.findall(r'<section id="(\w+)"', text)
    assert re.findall(r'<a href="#(\w+)">', text.partition("<nav")[2].partition("</nav>")[0]) == sections
    assert set(sections) == set(page.LINKS)


class Watched(Mapping[str, Any]):
    """Results that note which of their leaves are read. A leaf is a figure, a word, or a list of them."""

    def __init__(self, value: Mapping[str, Any], read: set[tuple[str, ...]], path: tuple[str, ...] = ()) -> None:
        self.value, self.read, self.path = value, read, path

    def __getitem__(self, key: str) -> Any:
        value, path = self.value[key], (*self.path, key)
        if isinstance(value, dict):
            return Watched(value, self.read, path)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [Watched(each, self.read, path) for each in value]
        self.read.add(path)
        return value

    def __contains__(self, key: object) -> bool:  # to ask whether there is a key is not to tell what it says
        return key in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from leaves(inner, path)
    else:
        yield path


# Leaves that nothing prints, and where what they say is printed.
TOLD_OTHERWISE = {
    "schema_version": "of the file, for who reads it",
    "seconds": "cost.wall_seconds, rounded as published",
    "incomplete.duplicate_lines": "a warning",
    "by_task": "for pooling; the page's table of tasks counts the same from the attempts",
}


@pytest.mark.slow
def test_every_key_of_the_results_is_told(tmp_path: Path) -> None:
    """In the text, on the page, or side by side: every leaf, for some arm or task of some run."""
    there, read = set(), set()
    for name, changes in {
        "stopped": {"price": [1.0, 2.0], "predict": {"ring": 3.0, "star": -3.0}},
        "full": {"full_budget": True, "tasks": "mbpp-bundle"},
        "one base attempt short": {"base_samples": 9},
        "as published": {"full_budget": True, "tasks": "mbpp-bundle", "as_published": True},
        "no re-runs": {"noise_runs": 0},
    }.items():
        at = tmp_path / name
        planted_run.make(at, 12, noise_runs=2, seed=3)
        folder, cards = Folder(at), list(Folder(at).cards())
        conf = config(**(folder.config["identity"] | folder.config["plan"] | changes))
        if name == "stopped":
            conf["apart"] = {"star": {"needs": ["reference"], "file": None, "sha256": None}}
            conf["data"] = {"without_reference": [cards[0].id, cards[1].id]}
        uncounted = name == "full"
        attempts = [replace(a, prompt_tokens=None) if uncounted else a for a in folder.attempts()]
        if name == "full":  # two passes of one task, in rounds behind each other
            task = next(a.task_id for a in attempts if a.arm == "star" and a.round == 1)
            twice = [("star", 0, 0, 0), ("star", 0, 1, 0)]
            attempts = [
                replace(a, passed=True, outcome="pass") if a.task_id == task and a.slot[1:] in twice else a
                for a in attempts
            ]
        rows = {one.id: {"verdict": "disputed", "reason": "time", "digest": one.digest} for one in cards[:6]}
        results = measure.measure(attempts, conf, cards, (), folder.events(), audit={"by_task": rows})
        results["verified"] = dict.fromkeys(results["verified"], 2) | {"without_spare_tests": 1}
        results["unrescued"]["at_zero"] = 1  # its share is told where there is one
        seen: set[tuple[str, ...]] = set()
        watched = Watched(results, seen)
        report_text(watched)
        report.side_by_side({"a": watched, "b": Watched({**results, "seed": 9}, seen)})
        page.page(watched, attempts, cards, conf)

        def named(paths: Iterable[tuple[str, ...]], many: set[str]) -> set[str]:
            return {".".join("*" if part in many else part for part in path) for path in paths}

        many = {*results["intervals"], *results["by_task"]}
        there |= named(leaves(results), many)
        read |= named(seen, many)

    def under(leaf: str, known: Iterable[str]) -> bool:
        return any(leaf.startswith(f"{key}.") for key in known)

    whole = {leaf for leaf in there if not any(under(other, [leaf]) for other in there)}  # null in some run
    assert not {leaf for leaf in whole - read - TOLD_OTHERWISE.keys() if not under(leaf, TOLD_OTHERWISE)}


def light(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_counts_on_bars_can_be_read_in_both_schemes() -> None:
    frame = page.FRAME.read_text()
    blocks = re.findall(r":root \{(.*?)\}", frame, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        colours = dict(re.findall(r"--(\w+): (#\w{6})", block))
        for bar in (colours[f"s{i}"] for i in range(5)):
            a, b = sorted((light(colours["ink"]), light(bar)))
            assert (b + 0.05) / (a + 0.05) >= 4.5, bar


# ── in a browser ─────────────────────────────────────────────────────────────────────────────────────────

browser_only = [
    pytest.mark.slow,
    pytest.mark.skipif(
        found() is None, reason="NO BROWSER: report.html was not tried in one; apt-get install chromium"
    ),
]


def in_browser(test: Any) -> Any:
    for mark in browser_only:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as open_:
        yield open_


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of 40 planted tasks with two noise runs."""
    at = tmp_path_factory.mktemp("planted")
    planted_run.make(at, 40, noise_runs=2, seed=3)
    folder, cards = Folder(at), list(Folder(at).cards())
    results = measure.measure(folder.attempts(), folder.config, cards, (), folder.events())
    (at / "report.html").write_text(page.page(results, folder.attempts(), cards, folder.config, CALIBRATION))
    (at / "results.json").write_text(json.dumps(results))
    return at / "report.html"


def open_task(p: Page, i: int = 0) -> None:
    """Click on a task, and wait until its attempts are there."""
    p.run(f"document.querySelectorAll('.open-task')[{i}].click()")
    p.run(
        "(async () => { while (!document.querySelector('[role=tab]')) await new Promise((f) => setTimeout(f, 10)); })()"
    )


def at(p: Page) -> dict[str, str]:
    """What the address says."""
    pairs = [pair.split("=", 1) for pair in p.run("location.hash")[1:].split("&") if "=" in pair]
    return {key: unquote(value) for key, value in pairs}


def settled(p: Page) -> None:
    p.run("new Promise((done) => setTimeout(done, 60))")


def rows(p: Page) -> list[str]:
    return p.run("[...document.querySelectorAll('.open-task')].map((b) => b.textContent)")


def choose(p: Page, box: str, value: str) -> int:
    """Set a filter as a person does, and say how many tasks are left."""
    p.run(
        f"(() => {{ const b = document.getElementById('f-{box}'); b.value = {json.dumps(value)};"
        " b.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    settled(p)
    return len(rows(p))


@in_browser
def test_no_complaint_and_no_request(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    for button in range(3):
        open_task(p, button)
    settled(p)
    assert p.run("document.querySelectorAll('[role=tabpanel]').length") == 3
    assert p.complaints() == []
    assert len(rows(p)) == 40


@in_browser
def test_filters_show_what_they_say(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    results = json.loads(planted.with_name("results.json").read_text())
    assert choose(p, "group", "fail") == results["all_fail"]
    assert choose(p, "group", "rescued") == results["pooled"]["all_runs"]["rescued"]
    assert choose(p, "group", "lost") == results["all_fail"] - results["pooled"]["all_runs"]["rescued"]
    assert choose(p, "group", "given") == results["all_fail"]
    choose(p, "arm", "ring")
    assert choose(p, "outcome", "pass") == results["intervals"]["ring"]["rescued"]
    assert p.run("document.getElementById('found').textContent").startswith(f"{len(rows(p))} of 40")
    for box in ("group", "arm", "outcome"):
        choose(p, box, "")
    tags = results["by_tag"]["split"]
    assert choose(p, "tag", "split: test") == tags["test"]["tasks"]
    choose(p, "tag", "")
    one = rows(p)[7]
    assert choose(p, "word", one.upper()) == 1 and rows(p) == [one]
    p.run("document.querySelector('button[type=reset]').click()")
    settled(p)
    assert len(rows(p)) == 40
    by_task = results["by_task"]
    won = {t: [a for a, play in row.get("arms", {}).items() if play["passes"]] for t, row in by_task.items()}
    assert choose(p, "group", "disagree") == sum(0 < len(arms) < 4 for arms in won.values()) > 0
    choose(p, "group", "")
    assert choose(p, "only", "star") == sum(arms == ["star"] for arms in won.values()) > 0
    assert p.complaints() == []


@in_browser
def test_columns_sort_both_ways(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    telling = rows(p)
    p.run("document.querySelectorAll('#tasks-table thead button')[0].click()")
    first = rows(p)
    assert first == sorted(telling) != telling
    p.run("document.querySelectorAll('#tasks-table thead button')[0].click()")
    assert rows(p) == first[::-1]
    head = "document.querySelectorAll('#tasks-table thead th')"
    assert p.run(f"{head}[0].getAttribute('aria-sort')") == "descending"
    at = p.run(f"[...{head}].findIndex((th) => th.textContent === 'star')")
    p.run(f"{head}[{at}].firstChild.click()")
    cells = p.run(f"[...document.querySelectorAll('tr.task')].map((tr) => tr.children[{at}].textContent)")
    passes = [cell for cell in cells if cell.startswith("●")]
    assert passes and cells[: len(passes)] == sorted(passes)
    shares = [int(cell[:-1]) for cell in cells[len(passes) :] if cell]
    assert shares == sorted(shares, reverse=True)


@in_browser
def test_everything_is_within_reach_of_the_keyboard(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    p.press("Tab")
    assert p.run("document.activeElement.className") == "skip"
    p.run("document.querySelector('.open-task').focus()")
    p.press("Enter")
    settled(p)
    assert p.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert p.run("document.querySelectorAll('tr.inside').length") == 1
    stops = []
    for _ in range(12):
        p.press("Tab")
        stops.append(p.run("document.activeElement.closest('.swarms') ? 'grid' : document.activeElement.textContent"))
    assert stops[:4] == ["Copy link", "Copy id", "The problem", "grid"] and stops.count("grid") == 1  # one stop for all
    p.run("document.querySelector('.swarms button[tabindex=\"0\"]').focus()")
    here = p.run("document.activeElement.title")
    p.press("ArrowUp")
    above = p.run("document.activeElement.title")
    assert above != here
    p.press("Enter")
    assert at(p)["attempt"].split("/")[2] == re.findall(r"round (\d+)", above)[0]
    p.run("document.querySelector('[data-view=program]').focus()")
    p.press("ArrowLeft")
    assert p.run("document.activeElement.textContent") == "Prompt as sent" and at(p)["view"] == "prompt"
    p.run("document.querySelector('.open-task').focus()")
    p.press("Enter")
    assert p.run("document.querySelectorAll('tr.inside').length") == 0


@in_browser
def test_everything_has_a_name_for_a_screen_reader(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    for i in range(3):
        open_task(p, i)
    settled(p)
    p.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    browser.call("Accessibility.enable", p.session)
    nodes = browser.call("Accessibility.getFullAXTree", p.session)["nodes"]
    named = "button combobox searchbox img image table link region navigation search tab tabpanel tablist".split()
    roles: Counter[str] = Counter()
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in named and not node.get("ignored"):
            roles[role] += 1
            assert node.get("name", {}).get("value", "").strip(), (role, node)
    assert roles["combobox"] == 6 and roles["searchbox"] == 1 and roles["button"] > 40
    pictures = roles["img"] + roles["image"]
    assert pictures >= 8 and roles["table"] >= 5
    assert p.run("document.documentElement.lang") == "en" and p.run("document.title")
    levels = p.run("[...document.querySelectorAll('h1, h2, h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in pairwise(levels))


@in_browser
def test_what_models_write_stays_text(browser: Browser, tmp_path: Path) -> None:
    attempts, cards = hostile_run()
    at = tmp_path / "report.html"
    at.write_text(filled(attempts, cards, noise_runs=1, model=HOSTILE.replace("\udcff", "")))
    p = browser.open(at)
    for i in range(3):
        open_task(p, i)
    settled(p)
    p.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert p.run("window.broken") is None and p.complaints() == []
    assert p.run("document.querySelectorAll('img').length") == 0
    assert p.run("document.querySelectorAll('script').length") == 4
    assert p.run("getComputedStyle(document.body).display") == "block"
    shown = p.run("[...document.querySelectorAll('pre')].map((e) => e.textContent).join('\\n')")
    assert "<script>window.broken = 1</script>" in shown and "{{data}}" in shown
    assert "<script>window.broken" in p.run("document.querySelector('h1').textContent")


@in_browser
def test_even_a_page_that_was_tampered_with_runs_nothing_else(browser: Browser, planted: Path, tmp_path: Path) -> None:
    """The policy in the head, not the escaping alone, holds scripts, handlers and requests back."""
    more = "<script>window.broken = 1</script><img src='https://127.0.0.1:9/x' onerror='window.broken = 2'>"
    at = tmp_path / "report.html"
    at.write_text(planted.read_text().replace("<main>", "<main>" + more))
    p = browser.open(at)
    p.run("new Promise((done) => setTimeout(done, 200))")
    assert p.run("window.broken") is None
    assert any("Content Security Policy" in said for said in p.complaints())


@in_browser
@pytest.mark.parametrize("dark", [False, True])
def test_both_colour_schemes_can_be_read(browser: Browser, planted: Path, dark: bool, tmp_path: Path) -> None:
    p = browser.open(planted, dark=dark)
    open_task(p)
    p.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    weak = p.run(CONTRAST)
    assert weak == []
    assert p.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)"
    )
    assert len(p.picture(tmp_path / "page.png", whole=True)) > 50_000


# Every text on the page against what lies behind it: a ratio of at least 4.5 (WCAG AA).
CONTRAST = """(() => {
  const number = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => { const [r, g, b] = number(c).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; const n = number(c); if (n.length < 4 || n[3] > 0.99) return c; } return "rgb(255, 255, 255)"; };
  const weak = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(e.tagName)) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const a = light(svg ? style.fill : style.color), b = light(behind(svg ? e.closest("figure") : e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push([walk.currentNode.textContent.trim().slice(0, 40), ratio.toFixed(2), style.fill, style.color]);
  }
  return weak.slice(0, 10);
})()"""  # noqa: E501


@in_browser
def test_a_narrow_screen_scrolls_tables_and_plots_but_never_the_page(browser: Browser, planted: Path) -> None:
    p = browser.open(planted, width=390, height=800)
    assert p.run("document.documentElement.scrollHeight") < 6000
    open_task(p)
    settled(p)
    assert p.run("document.documentElement.scrollWidth") <= 390
    beyond = p.run(
        "[...document.querySelectorAll('#tasks *')].filter((e) => !e.closest('svg') && e.getClientRects().length"
        " && e.getBoundingClientRect().right > 391).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert beyond == []
    p.run("document.querySelector('nav a[href=\"#arms\"]').click()")  # what is folded opens when it is asked for
    settled(p)
    assert p.run("getComputedStyle(document.querySelector('#arms figure')).display") == "block"
    assert p.run("document.querySelector('#climb').classList.contains('folded')") is True


@in_browser
def test_an_address_opens_what_it_names_in_a_fresh_browser(browser: Browser, planted: Path) -> None:
    """An attempt of a task that no filter shows, with the part of it that was on screen; and the filters, the order."""
    attempts = [a for a in Folder(planted.parent).attempts() if a.social and a.code]
    a = attempts[len(attempts) // 2]
    slot = a.slot.within_task()
    p = browser.open(planted, fragment=f"group=open&task={quote(a.task_id)}&attempt={slot}&view=prompt")
    settled(p)
    assert at(p)["attempt"] == slot and at(p)["task"] == a.task_id and "group" not in at(p)
    assert p.run("document.querySelector('.swarms [aria-current]').title").startswith(f"{a.arm}, ")
    told = p.run("[...document.querySelectorAll('[role=tabpanel] pre')].map((e) => e.textContent)")
    cards = {one.id: one for one in Folder(planted.parent).cards()}
    everything = list(Folder(planted.parent).attempts())
    sent = rebuilt(cards[a.task_id], [b for b in everything if b.task_id == a.task_id], Settings())[a.slot]
    assert told == [message["content"] for message in sent.messages] and sent.sha() == a.prompt_sha
    p.run("document.querySelector('a.slot').click()")  # what it was shown, one click away
    settled(p)
    assert at(p)["attempt"] == a.parent
    p = browser.open(planted, fragment="group=given&order=-star&word=queue")
    settled(p)
    assert (
        at(p) == {"group": "given", "order": "-star", "word": "queue"}
        and p.run("document.getElementById('f-word').value") == "queue"
    )
    assert 0 < len(rows(p)) < 40
    p = browser.open(planted, fragment="task=no-such&attempt=star/0/0/0&order=nothing")
    settled(p)
    assert (
        "There is no task no-such here" in p.run("document.getElementById('found').textContent") and len(rows(p)) == 40
    )
    assert p.complaints() == []


@in_browser
def test_what_came_of_the_neighbour_is_marked(browser: Browser, tmp_path: Path) -> None:
    """One planted rescue: the pass keeps its own first line, takes one of the neighbour's and adds one of its own."""
    own, other = "import sys\nmine = 1\nprint(mine)\n", "import os\ntheirs = 2\nprint(0)\n"
    child = "import sys\n  theirs = 2\nprint(mine)\nnew = 3\n"
    attempts = [
        *base("t"),
        *(attempt("t", "ring", 0, 0, i, code=[own, other][i], visible=["PWWWW", "PPPWW"][i]) for i in range(2)),
        attempt("t", "ring", 0, 1, 0, passed=True, code=child, parent="ring/0/0/0", social="ring/0/0/1"),
        attempt("t", "ring", 0, 1, 1, parent="ring/0/0/1", social="ring/0/0/0"),
    ]
    at_ = tmp_path / "report.html"
    at_.write_text(filled(attempts, [card("t")], arms=["ring"], particles=2))
    p = browser.open(at_)
    open_task(p)
    said = p.run("document.querySelector('.one').textContent")
    assert (
        "ring · round 1, particle 0" in said and "its own best (round 0, particle 0, 20% of the visible tests)" in said
    )
    assert "another's best (round 0, particle 1, 60% of the visible tests)" in said
    told = "(e) => e.dataset.mark + e.dataset.n + ' ' + e.textContent"
    lines = p.run(f"[...document.querySelectorAll('pre.code > span')].map({told})")
    assert sorted(lines) == ["+4 new = 3", "1 import sys", "3 print(mine)", "− mine = 1", "◆2   theirs = 2"]
    assert "◆ 1 of those added stands letter by letter in the neighbour's program" in said
    paths = p.run("[...document.querySelectorAll('.swarms > svg path')].map((e) => e.getAttribute('class')).sort()")
    assert paths == ["parent", "social"]
    assert "It cannot be rebuilt" in p.run(
        "(document.querySelector('[data-view=prompt]').click(), document.querySelector('[role=tabpanel]').textContent)"
    )


@in_browser
def test_without_a_script_the_figures_stand(browser: Browser, planted: Path) -> None:
    p = browser.open(planted, width=390, scripts=False)
    assert p.run("document.querySelectorAll('figure svg').length") >= 5
    assert p.run("[...document.querySelectorAll('main figure')].every((e) => e.getClientRects().length)") is True
    assert p.run("document.querySelector('noscript').getClientRects().length") > 0
