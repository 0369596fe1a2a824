"""report.html: what it holds, what it can never run or fetch, and how it behaves in a real browser.

The browser is Debian's Chromium; where it is missing those tests are skipped, and say so. What models write is hostile
here: every text that comes from outside carries markup that would show itself if it ever became markup.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import measure
import report
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


def data_of(text: str) -> dict[str, Any]:
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(block)


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
    static = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
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
    assert len(scripts) == 1 and text.count("<script") == 2
    right = "'sha256-" + b64encode(sha256(scripts[0].encode()).digest()).decode() + "'"
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {right}",
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "innerHTML" not in text and "document.write" not in text and "insertAdjacentHTML" not in text
    found_in_data = data_of(text)["tasks"][1]
    assert found_in_data["title"] == HOSTILE and HOSTILE in found_in_data["best"][0]["code"]
    text.encode()  # no lone surrogate is left in it


def test_each_task_opens_to_its_best_attempts() -> None:
    attempts = [
        *base("t", near=True),
        attempt("t", "ring", 0, 0, 0, visible="PWWWW", got="1\n"),
        attempt("t", "ring", 0, 1, 0, visible="PPWWW", got="3\n", parent="ring/0/0/0", social="ring/0/0/1"),
        attempt("t", "ring", 0, 1, 1, visible="WWWWW"),
        *base("u", 3),
    ]
    found_ = told(attempts, [card("t"), card("u")], arms=["resample", "ring"])
    t, u = found_["tasks"]
    assert found_["arms"] == ["base", "ring"] and found_["letters"]["W"] == "wrong_answer"
    assert (t["base"], t["fail"], t["given"], t["open"]) == (0, True, True, True)
    assert (u["base"], u["fail"], u["given"], u["open"]) == (3, False, False, False)
    group, ring = t["best"]
    assert group["visible"] == "PWPWP" and group["drawn"] == 8
    assert (ring["slot"], ring["drawn"], ring["passes"], ring["first"]) == ("ring/0/1/0", 3, 0, None)
    assert ring["parent"] == ["ring/0/0/0", 0.2] and ring["social"] == ["ring/0/0/1", None]
    assert ring["failed"] == {"input": "2 2\n", "expected": "4\n", "got": "3\n"}
    assert u["best"][0]["outcome"] == "pass" and u["best"][0]["failed"] is None


def test_a_task_whose_re_run_owes_attempts_is_open() -> None:
    attempts = run(names(2), {"resample": {"t0001": 0}}, [{}])
    cut = [a for a in attempts if (a.task_id, a.rerun, a.round) != ("t0001", 1, 2)]
    changes = {"arms": ["resample"], "noise_runs": 1}
    assert [t["open"] for t in told(attempts, **changes)["tasks"]] == [False, False]
    assert [t["open"] for t in told(cut, **changes)["tasks"]] == [False, True]


def test_a_pass_beats_any_fitness_and_its_first_round_is_told() -> None:
    attempts = run(["t"], {"ring": {"t": 1}}, stop=False)
    (t,) = told(attempts, arms=["ring"])["tasks"]
    assert (t["best"][1]["outcome"], t["best"][1]["first"], t["best"][1]["drawn"]) == ("pass", 1, 24)


def test_a_shared_round_belongs_to_every_arm() -> None:
    attempts = [*base("t"), *(attempt("t", "round0", 0, 0, i, passed=i == 3) for i in range(8))]
    (t,) = told(attempts, share_round0=True)["tasks"]
    assert [a["arm"] for a in t["best"]] == ["base", *ARMS]
    assert all(a["first"] == 0 and a["slot"] == "round0/0/0/3" for a in t["best"][1:])


@pytest.mark.slow
def test_programs_are_cut_until_the_page_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = [replace(a, code="x = 1\n" * 3000) for task in names(20) for a in base(task)]
    whole = filled(attempts)
    monkeypatch.setattr(page, "PAGE_BYTES", 260_000)
    text = filled(attempts)
    assert len(text.encode()) <= 260_000 < len(whole.encode())
    best = data_of(text)["tasks"][0]["best"][0]
    assert best["cut"] == 18_000 and best["code"] == ("x = 1\n" * 3000)[: len(best["code"])]
    assert f"Programs and statements are cut after {len(best['code']):,} characters" in text
    assert "are cut after" not in whole


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


def test_a_calibration_has_its_section() -> None:
    text = filled(list(base("t")), calibration=CALIBRATION)
    well_formed(text)
    assert '<span class="word">cliff</span>' in text and "no program here" in text
    assert "Left out: 3 tasks, fewer than 40 generated tests." in text
    assert "calibrate.py" not in text


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
    "by_task": "for pooling; the page's table of tasks counts the same from the attempts, best ones and all",
}


@pytest.mark.slow
def test_every_key_of_the_results_is_told(tmp_path: Path) -> None:
    """In the text, on the page, or side by side: every leaf, for some arm or task of some run."""
    there, read = set(), set()
    for name, changes in {
        "stopped": {"price": [1.0, 2.0], "predict": {"ring": 3.0, "star": -3.0}},
        "full": {"full_budget": True, "tasks": "mbpp-bundle"},
        "one base attempt short": {"base_samples": 9},
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
        rows = {one.id: {"verdict": "disputed", "reason": "time", "digest": one.digest} for one in cards[:6]}
        results = measure.measure(attempts, conf, cards, (), folder.events(), audit={"by_task": rows})
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


def rows(p: Page) -> list[str]:
    return p.run("[...document.querySelectorAll('.open-task')].map((b) => b.textContent)")


def choose(p: Page, box: str, value: str) -> int:
    """Set a filter as a person does, and say how many tasks are left."""
    p.run(
        f"(() => {{ const b = document.getElementById('f-{box}'); b.value = {json.dumps(value)};"
        " b.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    return len(rows(p))


@in_browser
def test_no_complaint_and_no_request(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    for button in range(3):
        p.run(f"document.querySelectorAll('.open-task')[{button}].click()")
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
    p.run("new Promise((done) => setTimeout(done, 50))")
    assert len(rows(p)) == 40
    assert p.complaints() == []


@in_browser
def test_columns_sort_both_ways(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    first = rows(p)
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
    assert p.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert p.run("document.querySelectorAll('tr.inside').length") == 1
    p.press("Tab")
    assert p.run("document.activeElement.textContent") == "The problem"
    p.press("Enter")
    assert p.run("document.activeElement.parentElement.open") is True
    p.run("document.querySelector('.open-task').focus()")
    p.press("Enter")
    assert p.run("document.querySelectorAll('tr.inside').length") == 0


@in_browser
def test_everything_has_a_name_for_a_screen_reader(browser: Browser, planted: Path) -> None:
    p = browser.open(planted)
    p.run("document.querySelectorAll('.open-task').forEach((b) => b.click())")
    p.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    browser.call("Accessibility.enable", p.session)
    nodes = browser.call("Accessibility.getFullAXTree", p.session)["nodes"]
    named = ("button", "combobox", "searchbox", "img", "image", "table", "link", "region", "navigation", "search")
    roles: Counter[str] = Counter()
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in named and not node.get("ignored"):
            roles[role] += 1
            assert node.get("name", {}).get("value", "").strip(), (role, node)
    assert roles["combobox"] == 4 and roles["searchbox"] == 1 and roles["button"] > 40
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
    p.run("document.querySelectorAll('.open-task').forEach((b) => b.click())")
    p.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert p.run("window.broken") is None and p.complaints() == []
    assert p.run("document.querySelectorAll('img').length") == 0
    assert p.run("document.querySelectorAll('script').length") == 2
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
    p.run("document.querySelector('.open-task').click()")
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
    p.run("document.querySelector('.open-task').click()")
    assert p.run("document.documentElement.scrollWidth") <= 390
