"""Arms beside the four: the hint, and those of a file of the user's: what they are shown, refused and told apart by."""

from __future__ import annotations

import gc
import json
import re
import textwrap
import types
from dataclasses import replace
from pathlib import Path

import pytest

import export
import run
from arms import hint as hints
from arms import known
from commands.settings import arms as named
from faults import BadInput, TaskError
from measure import measure
from records import Folder
from rows import found
from swarm import ARMS, PLAIN, Attempt, Seat, Slot, bare, swarm
from tasks import load
from tasksets.task import Task, Test
from tests.support.mock_endpoint import serving
from tests.test_measure import base, config, names, play
from tests.test_run import SMALL, go, kept_rows, results, stdio_row, task_file, wrong  # noqa: F401  go: a fixture

ROOT = Path(__file__).parent.parent
LINES = "".join(f"line_{k} = {k}\n" for k in range(8))
TASK = Task(
    "t", "T", "Say it.", "stdio", (Test("1", "shown"),), (Test("HIDDEN-IN", "HIDDEN-OUT"),), (Test("SPARE", "SPARE"),),
    reference=LINES, references=(LINES, "SECOND"), incorrect=("INCORRECT",),
)  # fmt: skip


def seat(round_=0, task=None, best=None):
    return Seat(task or TASK.shown({"reference"}), Slot("t", "hint", 0, round_, 0), best or [None] * 2, 0)


@pytest.fixture(autouse=True)
def nothing_read_before(monkeypatch):
    monkeypatch.setattr(known, "OWN", {})


@pytest.fixture
def arm_file(tmp_path, monkeypatch):
    """Writes my_arms.py, and gives what --arms would be told."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="worst"):
        (tmp_path / "my_arms.py").write_text(text)
        return f"my_arms.py:{name}"

    return write


BARE = "from swarm import *\ndef worst(seat): return bare(seat.task, seat.style)\n"


# ── the hint ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_quarter_more_each_round_and_never_the_last():
    shown = [hints.hint(seat(k)).messages[-1]["content"] for k in range(5)]
    held = [[k for k in range(8) if f"line_{k} = {k}" in text] for text in shown]
    assert held == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
    assert all(text.startswith(bare(TASK, PLAIN).messages[-1]["content"]) for text in shown)
    first = hints.hint(seat())
    assert first.messages[0] == bare(TASK, PLAIN).messages[0] and (first.parent, first.social) == (None, None)


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        ("a = 1\nb = 2\nc = 3\nd = 4", ["a = 1\n", "a = 1\nb = 2\n", "a = 1\nb = 2\nc = 3\n"]),
        ("print(max(input()))\n", ["print", "print(max(", "print(max(input"]),
        ("\n\na\nbb\n\n", ["a", "a\n", "a\n"]),
        ("", ["", "", ""]),
    ],
)
def test_whole_lines_where_there_are_any(program, parts):
    found = [hints.part_of(program, share) for share in (0.25, 0.5, 0.75)]
    assert found == parts
    assert all(program.strip("\n").startswith(part) and (not part or part != program.strip("\n")) for part in found)


def test_backticks_in_a_reference_do_not_end_its_fence():
    text = hints.hint(seat(0, replace(TASK, reference="```\n" * 9))).messages[-1]["content"]
    assert "````python\n```\n```\n````" in text


# ── who sees what ────────────────────────────────────────────────────────────────────────────────────────────────────

SECRETS = ("HIDDEN-IN", "HIDDEN-OUT", "SPARE", "SECOND", "INCORRECT")


def reachable(thing):
    """Every text that can be reached from an object without leaving for modules, classes or functions."""
    seen, todo, texts = set(), [thing], []
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
            continue
        seen.add(id(one))
        if isinstance(one, str):
            texts.append(one)
        todo += gc.get_referents(one)
    return texts


def attempts(asks, outcome="wrong_answer"):
    return [Attempt(*slot, code="print(1)", fitness=1.0, visible_passed=1, visible_total=1, visible_tests="P",
                    hidden_tests="W", hidden_passed=0, hidden_total=1, passed=False, outcome=outcome, reply="r")
            for slot, _ in asks]  # fmt: skip


SPY = """
SEEN = []
def worst(seat):
    from swarm import refine
    SEEN.append(seat)
    return refine(seat.task, seat.own, None, seat.style)
def known_to(seat):
    SEEN.append(seat)
    return worst(seat)
known_to.needs = {"reference"}
"""


def test_no_arm_reaches_what_it_has_not_asked_for(arm_file):
    known.read([arm_file(SPY), arm_file(SPY, "known_to")], False)
    for name in (*ARMS, "hint", "worst", "known_to"):
        function = known.arm_of(name)
        flow = swarm(TASK.shown(known.needs(name)), function, name, 2, 3, stop=False)
        asks = next(flow)
        prompts = []
        for _ in range(2):
            prompts += [prompt.messages for _, prompt in asks]
            asks = flow.send(attempts(asks))
        told = json.dumps(prompts)
        assert not [secret for secret in SECRETS if secret in told], name
        assert ("line_1" in told) == (name == "hint"), name
        assert "line_6" not in told
    for name, own in known.OWN.items():
        texts = reachable(own.function.__wrapped__.__globals__["SEEN"])
        assert "Say it." in texts
        assert not [secret for secret in SECRETS if any(secret in text for text in texts)], name
        assert any("line_7" in text for text in texts) == (name == "known_to")


def test_an_arm_of_yours_sees_attempts_as_their_visible_tests_tell_of_them(arm_file):
    """Whatever the hidden tests say: the same bests, to the last field."""
    (name,) = known.read([arm_file(SPY)], False)
    slot = Slot("t", name, 0, 0, 0)
    one = Attempt(*slot, code="c", fitness=1.0, visible_passed=1, visible_total=1, visible_tests="P", hidden_total=1)
    ends = [replace(one, passed=True, hidden_tests="P", hidden_passed=1, outcome="pass", cpu_seconds=2.0),
            replace(one, passed=False, hidden_tests="T", outcome="timeout", cpu_seconds=8.0)]  # fmt: skip
    for end in ends:
        known.arm_of(name)(seat(1, TASK.shown(), [end, None]))
    first, second = known.OWN[name].function.__wrapped__.__globals__["SEEN"]
    assert first == second and first.own.outcome == "pass" and first.own.code == "c"
    failed = known.blind(replace(one, visible_tests="PW", outcome="wrong_answer"))
    assert (failed.outcome, failed.fitness) == ("wrong_answer", 1.0)


# ── a file of yours ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_file_may_be_wrong_in_is_one_line(arm_file, tmp_path):
    for text, name, says in (
        ("x = 1", "worst", "no function 'worst'; there are none"),
        ("def other(seat): ...", "worst", "there are other"),
        ("worst = 5", "worst", "no function 'worst'"),
        ("def worst(seat)", "worst", "SyntaxError: .*line 1"),
        ("x = 1\nraise KeyError('k')", "worst", "KeyError: 'k', line 2"),
        ("import sys\nsys.exit(0)", "worst", "SystemExit"),
        ("import nowhere_at_all", "worst", "ModuleNotFoundError"),
        ("\0", "worst", "my_arms.py cannot be run"),
        (
            "def worst(seat): ...\nworst.needs = {'hidden'}",
            "worst",
            "needs {'hidden'}; an arm may",
        ),
        ("def worst(seat): ...\nworst.needs = 'reference'", "worst", "needs 'reference'; an arm may"),
        ("def star(seat): ...", "star", "name of another arm"),
        ("def base(seat): ...", "base", "name of another arm"),
        ("def hint(seat): ...", "hint", "name of another arm"),
    ):
        with pytest.raises(ValueError, match=says) as why:
            known.read([arm_file(text, name)], False)
        assert "\n" not in str(why.value) and "my_arms.py" in str(why.value)
    for word, says in (
        ("nowhere.py:worst", "cannot be read"),
        (f"{tmp_path}:worst", "cannot be read"),
        (":worst", "cannot be read"),
    ):
        with pytest.raises(ValueError, match=says):
            known.read([word], False)
    with pytest.raises(ValueError, match="no arm 'nope'; there are resample, solo, ring, star, hint"):
        named("nope")
    assert named("star, x.py:worst,star") == ["star", "x.py:worst"]


def test_what_an_arm_raises_or_gives_is_one_line(arm_file):
    for body, says in (
        ("    x = 1\n    return seat.nothing", "AttributeError: .*line 3: mend it"),
        ("    return None", "gave None: give a Prompt"),
        ("    from swarm import Prompt\n    return Prompt('text')", "gave Prompt"),
        ("    from swarm import Prompt\n    return Prompt([{'role': 'user', 'content': 5}])", "gave Prompt"),
        ("    from swarm import Prompt\n    return Prompt([])", "gave Prompt"),
        ("    raise SystemExit", "SystemExit"),
    ):
        (name,) = known.read([arm_file(f"def worst(seat):\n{body}\n")], False)
        with pytest.raises(BadInput, match=says) as why:
            known.arm_of(name)(seat())
        assert "worst of my_arms.py" in str(why.value) and "\n" not in str(why.value)
    with pytest.raises(BadInput, match=r"name its file, --arms FILE\.py:elsewhere"):
        known.arm_of("elsewhere")


def test_a_file_may_hold_dataclasses_and_helpers(arm_file):
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
    text += (
        "def helper(seat): return bare(seat.task, seat.style)\ndef worst(seat): return helper(seat) if A(1) else None\n"
    )
    (name,) = known.read([arm_file("from __future__ import annotations\nfrom swarm import bare\n" + text[35:])], False)
    assert known.arm_of(name)(seat()).messages == bare(TASK, PLAIN).messages


# ── told apart ───────────────────────────────────────────────────────────────────────────────────────────────────────


def hinted_run(without=()):
    tasks = names(4)
    rescued = {"resample": [0], "star": [], "hint": [0, 1, 2]}
    kept = [a for k, task in enumerate(tasks) for a in base(task)]
    for arm, which in rescued.items():
        for k, task in enumerate(tasks):
            if arm != "hint" or task not in without:
                kept += play(task, arm, 0 if k in which else None)
    settings = config(arms=list(rescued))
    settings["apart"] = {"hint": {"needs": ["reference"], "file": None, "sha256": None}}
    settings["data"] = {**(settings.get("data") or {}), "without_reference": list(without)}
    return measure(kept, settings, [{"id": task, "tags": {}} for task in tasks])


def test_what_a_hint_rescues_counts_in_nothing_that_was_searched_for():
    r = hinted_run()
    assert r["hinted"] == {"hint": {"without_reference": 0, "alone": 2}}
    assert r["intervals"]["hint"]["rescued"] == 3 and r["paired"]["hint"]["n"] == 4
    assert r["pooled"]["arms_alone"]["rescued"] == r["pooled"]["all_runs"]["rescued"] == 1
    assert r["pooled"]["runs"] == 2
    assert r["unrescued"]["n"] == 3
    assert r["training_set"]["with_refined"]["none"] == 3
    assert "hint was shown a program known to be right" in r["verdict"]["sentence"].replace("Hint", "hint")


def test_tasks_without_a_reference_are_left_out_and_counted():
    tasks = names(4)
    r = hinted_run(without=tasks[:1])
    assert r["hinted"] == {"hint": {"without_reference": 1, "alone": 2}}
    assert r["intervals"]["hint"]["n"] == 3 and r["intervals"]["star"]["n"] == 4
    assert r["paired"]["hint"]["n"] == 3 and r["paired"]["star"]["n"] == 4
    assert r["incomplete"]["arms"]["hint"] == {"tasks": 0, "owed_at_most": 0, "refused": 0}
    assert "So far" not in r["verdict"]["sentence"]
    assert r["watched"]["arms"]["hint"]["n"] == 3
    assert sorted(r["by_task"][tasks[0]]["arms"]) == ["resample", "star"]
    assert r["unrescued"]["n"] == 3
    owing = hinted_run(without=())["incomplete"]["arms"]["hint"]
    assert owing["tasks"] == 0


def test_of_equal_programs_the_one_that_was_searched_for_is_kept_and_a_hinted_row_says_so():
    settings = config(arms=["resample", "hint", "star"])
    settings["apart"] = {"hint": {"needs": ["reference"], "file": None, "sha256": None}}
    settings["data"] = {"licence": None}
    passing = [
        Attempt("t", arm, 0, 1, k, code=code, passed=True, prompt_sha="refined")
        for arm, programs in (("hint", ("x = 1", "x = 2")), ("star", ("x = 1",)))
        for k, code in enumerate(programs)
    ]
    rows = found.rescued(passing, [TASK], settings, {"by_task": {"t": {"base": 0}}}).splitlines()
    told = {row["completion"].split("\n")[1]: (row["source"], row["hinted"]) for row in map(json.loads, rows)}
    assert told == {"x = 1": ("star", False), "x = 2": ("hint", True)}


# ── the real command ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_run_with_a_hint_and_an_arm_of_yours(go, arm_file, tmp_path):  # noqa: F811
    """One task has no reference: the hint leaves it out. Only its prompts hold a part of one; rows and plan say so."""
    rows = [stdio_row(f"t{k}", k + 2) for k in range(3)]
    for row in rows[1:]:
        row["reference"] = "# REF-BEGINS\n" + "x = 1\n" * 9 + "# REF-ENDS"
    tasks = task_file(tmp_path / "three.jsonl", rows)
    arm = arm_file(BARE)

    def reply(request):
        text = json.dumps(request.body["messages"])
        if "REF-BEGINS" in text:
            k = next(k for k in range(3) if f"Task t{k}" in text)
            return f"```python\nprint({k + 2} * int(input()))\n```"
        return wrong(request)

    args = ["--tasks", tasks, "--arms", f"resample,{arm},hint", *SMALL]
    with serving(reply=reply) as mock:
        code, out, err = go(*args, url=mock.url)
        assert code == 0, err
        said = [json.dumps(chat.body["messages"]) for chat in mock.chats]
        assert sum("REF-BEGINS" in text for text in said) == 2 * 2  # two tasks, one round of two, which passes
        assert not any("REF-ENDS" in text for text in said)
        assert {a.task_id for a in Folder(tmp_path / "out").attempts() if a.arm == "hint"} == {"t1", "t2"}
        r = results(tmp_path / "out")
        assert r["hinted"] == {"hint": {"without_reference": 1, "alone": 2}} and r["pooled"]["all_runs"]["rescued"] == 0
        assert "leaves out 1 of 3 tasks" in " ".join(out.split()) and "leaves out 1 of 3 tasks" in err
        written = [json.loads(line) for line in (tmp_path / "out" / "rescued.jsonl").read_text().splitlines()]
        assert {(row["task_id"], row["source"], row["hinted"]) for row in written} == {
            (task, "hint", True) for task in ("t1", "t2")
        }
        assert (
            export.main(["--out", str(tmp_path / "out"), "--to", str(tmp_path / "to"), "--format", "difficulty"]) == 0
        )
        difficulty = [json.loads(line) for line in (tmp_path / "to" / "train.jsonl").read_text().splitlines()]
        assert [(row["arm_passes"], row["rescued"], row["rescued_by"]) for row in difficulty] == [(0, False, "")] * 3
        assert "REF-BEGINS" not in (tmp_path / "out" / "tasks.jsonl").read_text()
        held = json.loads((tmp_path / "out" / "config.json").read_text())
        assert held["plan"]["arms"] == ["resample", "worst", "hint"] and held["apart"]["worst"]["file"] == "my_arms.py"
        assert json.loads((tmp_path / "out" / "plan.json").read_text())["apart"] == held["apart"]
        n = len(mock.chats)

        code, _, err = go(*args, url=mock.url)
        assert code == 0 and "nothing is left to ask" in err and len(mock.chats) == n
        assert go("--reuse", url=mock.url)[0] == 0
        code, _, err = go(*args[:-2], "--workers", "1", "--arms", f"resample,star,{arm},hint", url=mock.url)
        assert code == 0 and len(mock.chats) > n  # the plan may grow

        arm_file(BARE + "# changed\n")
        before = (tmp_path / "out" / "attempts.jsonl").read_bytes()
        code, _, err = go(*args, "--arms", f"resample,star,{arm},hint", url=mock.url)
        assert code == 2 and "the arm worst" in err and err.count("\n") == 1 and "--out" in err
        assert (tmp_path / "out" / "attempts.jsonl").read_bytes() == before
        arm_file("def worst(seat): return seat.nothing\n")
        code, _, err = go(*args, url=mock.url, out="other")
        assert code == 2 and "worst of my_arms.py raised AttributeError" in err and "line 1" in err
        arm_file(BARE)  # mended before it has an attempt: what was paid for the others stays
        n, paid = len(mock.chats), len(kept_rows(tmp_path / "other"))
        code, _, err = go(*args, url=mock.url, out="other")
        assert code == 0 and paid
        assert len(mock.chats) - n == len(kept_rows(tmp_path / "other")) - paid


def test_what_is_known_before_anything_is_asked(go, arm_file, tmp_path):  # noqa: F811
    tasks = task_file(tmp_path / "three.jsonl", [stdio_row("t0", 2)])
    for argv, says in (
        (["--arms", "resample,hint", "--share-round0"], "--share-round0"),
        (["--arms", "resample,nope"], "no arm 'nope'"),
        (["--arms", "resample,nowhere.py:worst"], "nowhere.py cannot be read"),
    ):
        code, _, err = go("--tasks", tasks, *argv)
        assert code == 2 and re.search(says, err), err
        assert not (tmp_path / "out").exists()


def test_the_page_on_arms_shows_two_that_play(arm_file):
    page = (ROOT / "docs" / "arms.md").read_text()
    code = textwrap.dedent(page.split("\n\n    # my_arms.py\n")[1].split("\n    python ")[0])
    assert len(code.strip().splitlines()) <= 15
    known.read([arm_file(code), arm_file(code, "by_lot")], False)
    for name in ("worst", "by_lot"):
        flow = swarm(TASK.shown(), known.arm_of(name), name, 8, 2, stop=False)
        asks = next(flow)
        sent = [replace(a, fitness=k / 8) for k, a in enumerate(attempts(asks))]
        later = [prompt for _, prompt in flow.send(sent)]
        if name == "worst":
            assert [prompt.social.particle for prompt in later] == [1] + [0] * 7
        else:
            assert 0 < sum(prompt.parent is None for prompt in later) < 8


def test_where_no_task_has_a_reference_an_arm_that_is_shown_one_cannot_play():
    data = {"source": "three.jsonl", "asked": 2, "without_reference": ["a", "b"]}
    with pytest.raises(TaskError, match=r"no task of three.jsonl has a reference, which hint is shown: leave it out"):
        known.about(["resample", "hint"], data)
    assert known.about(["resample", "star"], data) == {}
    assert list(known.about(["hint"], {**data, "asked": 3})) == ["hint"]


def test_references_are_read_only_where_they_are_shown(tmp_path):
    row = {**stdio_row("t0", 2), "reference": "REF"}
    path = task_file(tmp_path / "one.jsonl", [row, stdio_row("t1", 3)])
    tasks = load(path, references=1)
    assert {task.id: task.reference for task in tasks} == {"t0": "REF", "t1": ""}
    assert tasks.about.without_reference == ["t1"]
    tasks = load(path)
    assert {task.shown().reference for task in tasks} == {""} and tasks.about.without_reference == []
    assert run.flags().read([]).arms == list(ARMS)  # off unless it is named


def test_what_an_arm_raises_cannot_steer_a_terminal(tmp_path):
    file = tmp_path / "loud.py"
    file.write_text("def loud(seat):\n    raise ValueError('a\\x1b[2J\\x07\\nb\\u202e\\x9b31m')\n")
    known.read([f"{file}:loud"], False)
    with pytest.raises(BadInput) as why:
        known.arm_of("loud")(seat())
    assert str(why.value).isprintable() and "raised ValueError: a [2J b 31m, line 2" in str(why.value)
    file.write_text("raise ValueError('\\x1b]0;x\\x07')\n")
    with pytest.raises(ValueError, match="cannot be run") as early:
        known.read([f"{file}:other"], False)
    assert str(early.value).isprintable()
