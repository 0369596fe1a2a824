"""The folder: what a crash, a full disk, a second process or another experiment does to it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from faults import DiskFault, RecordsError
from records import ATTEMPTS, CARDS, CHECKS, CONFIG, EVENTS, OWED, PLAN, Folder, Log, dumps
from swarm import Attempt, Slot

ROOT = Path(__file__).parent.parent
STRANGE = "```python\nprint(1)\n```\u2028note\u0085more\u000c\ud800 \x00"


def attempt(particle: int, reply: str = STRANGE) -> Attempt:
    return Attempt(
        "t", "base", 0, 0, particle, reply=reply, code="print(1)\n", outcome="pass", task_sha="a", prompt_sha="b"
    )


def filled(path: Path, n: int = 6) -> bytes:
    with Log(path) as log:
        for i in range(n):
            log.add(attempt(i))
    return (path / ATTEMPTS).read_bytes()


def held(path: Path) -> list[int]:
    """The particles on disk after an opening to write, every line of the file parsed."""
    with Log(path) as log:
        slots = [a.particle for a in log.attempts()]
        assert len(log) == len(slots)
        assert all(log.get(Slot("t", "base", 0, 0, i)) == attempt(i) for i in slots)
    for line in (path / ATTEMPTS).read_bytes().split(b"\n")[:-1]:
        json.loads(line)
    return slots


def test_strange_characters_come_back_as_they_were(tmp_path):
    filled(tmp_path)
    assert [a.reply for a in Folder(tmp_path).attempts()] == [STRANGE] * 6
    assert (tmp_path / ATTEMPTS).read_bytes().isascii()


@pytest.mark.parametrize("cut", [1, 2, 25, 300, "half"])
def test_a_torn_last_line_is_owed_and_nothing_else(tmp_path, cut):
    whole = filled(tmp_path)
    last = len(whole.split(b"\n")[-2]) + 1
    cut = last // 2 if cut == "half" else cut
    (tmp_path / ATTEMPTS).write_bytes(whole[:-cut])
    kept = [0, 1, 2, 3, 4, 5] if cut == 1 else [0, 1, 2, 3, 4]  # a line that lacks only its end is whole
    assert [a.particle for a in Folder(tmp_path).attempts()] == kept
    assert held(tmp_path) == kept
    with Log(tmp_path) as log:
        log.mended = []
        log.add(attempt(5))
    assert sorted(set(held(tmp_path))) == [0, 1, 2, 3, 4, 5]


def test_a_torn_line_before_a_blank_one(tmp_path):
    whole = filled(tmp_path)
    (tmp_path / ATTEMPTS).write_bytes(whole[:-25] + b"\n\n")
    assert held(tmp_path) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("garbage", [b"\x00" * 40, b"{}", b"12", b'{"task_id": "t"}', b"\xff\xfe", b"[" * 100_000])
def test_garbage_is_named_and_moved_aside(tmp_path, garbage):
    lines = filled(tmp_path).split(b"\n")
    lines[2] = garbage
    (tmp_path / ATTEMPTS).write_bytes(b"\n".join(lines))
    folder = Folder(tmp_path)
    assert [a.particle for a in folder.attempts()] == [0, 1, 3, 4, 5]
    assert len(folder.unreadable) == 1
    with Log(tmp_path) as log:
        assert "attempts.jsonl line 3" in log.mended[0]
    assert held(tmp_path) == [0, 1, 3, 4, 5]
    assert garbage in (tmp_path / f"{ATTEMPTS}.aside").read_bytes()


def test_an_attempt_is_read_once(tmp_path):
    whole = filled(tmp_path)
    (tmp_path / ATTEMPTS).write_bytes(whole + whole)
    assert [a.particle for a in Folder(tmp_path).attempts()] == list(range(6))


def test_keys_of_another_version_are_refused_and_left_alone(tmp_path):
    whole = filled(tmp_path)
    row = {**json.loads(whole.split(b"\n")[0]), "novel": 1}
    (tmp_path / ATTEMPTS).write_bytes(whole + dumps(row).encode() + b"\n")
    with pytest.raises(RecordsError, match="another version"), Log(tmp_path):
        pass
    assert (tmp_path / ATTEMPTS).read_bytes().startswith(whole)
    (tmp_path / ATTEMPTS).write_bytes(whole)
    with Log(tmp_path):  # the lock is free again
        pass


def test_nan_never_reaches_a_file(tmp_path):
    with Log(tmp_path) as log, pytest.raises(ValueError):
        log.append(EVENTS, {"event": float("nan")})


def test_one_process_writes(tmp_path):
    script = "import sys; from records import Log\nwith Log(sys.argv[1]): print('in', flush=True); input()"
    first = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert first.stdout and first.stdout.readline() == b"in\n"
        with pytest.raises(RecordsError, match="another process"), Log(tmp_path):
            pass
        first.kill()
        first.wait()
        with Log(tmp_path):  # a lock dies with its process
            pass
    finally:
        first.communicate()


def test_a_full_disk_takes_no_part_of_a_line(tmp_path):
    whole = filled(tmp_path)
    with Log(tmp_path) as log:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 50, hard))
        try:
            with pytest.raises(DiskFault, match="make room"):
                log.add(attempt(6))
            with pytest.raises(DiskFault, match="make room"):
                log.write("results.json", "x" * (len(whole) + 100))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (tmp_path / ATTEMPTS).read_bytes() == whole
        assert log.get(Slot("t", "base", 0, 0, 6)) is None
        assert not (tmp_path / "results.json").exists()
        log.add(attempt(6))
    assert held(tmp_path) == list(range(7))


def test_whole_files_are_put_in_place_at_once(tmp_path):
    folder = Folder(tmp_path)
    folder.write("rescued.jsonl", "old\n")
    folder.write("rescued.jsonl", "new\n")
    assert [p.name for p in tmp_path.iterdir()] == ["rescued.jsonl"]
    assert (tmp_path / "rescued.jsonl").read_text() == "new\n"


def test_owed_replies_of_filed_slots_are_gone(tmp_path):
    filled(tmp_path, 2)
    with Log(tmp_path) as log:
        log.rewrite(OWED, [{"slot": ["t", "base", 0, 0, i], "reply": {}} for i in range(4)])
        assert [slot.particle for slot in log.owed()] == [2, 3]


def test_replies_that_wait_for_a_grade_belong_to_their_settings(tmp_path):
    with Log(tmp_path) as log:
        log.write_json("config.json", {"identity": {"model": "A"}, "plan": {}})
        assert log.settle({"model": "B"}, {}) == []  # nothing was paid under A
        log.rewrite(OWED, [{"slot": ["t", "base", 0, 0, 0], "reply": {}}])
        with pytest.raises(RecordsError, match="--model A -> B"):
            log.settle({"model": "B"}, {})


IDENTITY = {"model": "A", "temperature": 1.0, "max_tokens": 2048, "seed": 0}
PLANNED = {"limit": 20, "base_samples": 8, "band": "near-miss", "arms": ["resample", "ring"], "rounds": 3,
           "noise_runs": 1, "full_budget": False, "margin": None}  # fmt: skip


@pytest.fixture
def begun(tmp_path):
    filled(tmp_path)
    with Log(tmp_path) as log:
        log.write_json("config.json", {"identity": IDENTITY, "plan": PLANNED})
        yield log


@pytest.mark.parametrize(("key", "value"), [("model", "B"), ("temperature", 0.2), ("max_tokens", 8192), ("seed", 1)])
def test_another_identity_is_refused_by_name(begun, key, value):
    assert begun.settle(IDENTITY, PLANNED) == []
    with pytest.raises(RecordsError, match=f"--{key.replace('_', '-')} {IDENTITY[key]} -> {value}"):
        begun.settle({**IDENTITY, key: value}, PLANNED)
    assert begun.settle(IDENTITY, PLANNED) == []


@pytest.mark.parametrize(
    ("key", "more", "less"),
    [
        ("limit", 30, 10),
        ("limit", None, 19),
        ("base_samples", 16, 4),
        ("arms", ["resample", "ring", "star"], ["ring"]),
        ("rounds", 4, 2),
        ("noise_runs", 2, 0),
        ("full_budget", True, None),
        ("band", "all", None),
    ],
)
def test_a_plan_grows_and_does_not_shrink(begun, key, more, less):
    assert len(begun.settle(IDENTITY, {**PLANNED, key: more})) == 1
    if less is not None:
        with pytest.raises(RecordsError, match="may grow, not shrink"):
            begun.settle(IDENTITY, {**PLANNED, key: less})


def test_a_margin_may_change_either_way(begun):
    assert begun.settle(IDENTITY, {**PLANNED, "margin": 3.0}) == ["--margin none -> 3.0"]


def test_a_card_is_filed_once_and_its_task_may_not_change(tmp_path):
    card = {"id": "t", "title": "", "statement": "s", "kind": "stdio", "visible": [["1", "2", "public"]], "setup": "",
            "functions": [], "tags": {}, "digest": "d", "hidden_total": 1}  # fmt: skip
    for _ in range(2):
        with Log(tmp_path) as log:
            log.append(EVENTS, {"event": "start"})
            log.add_card(card)
            log.add_card(card)
            with pytest.raises(RecordsError, match="task t has changed"):
                log.add_card({**card, "digest": "e"})
    assert [task.id for task in Folder(tmp_path).cards()] == ["t"]


def test_a_line_without_its_end_leaves_nothing_aside(tmp_path):
    (tmp_path / EVENTS).write_text('{"event": "start"}')
    with Log(tmp_path) as log:
        assert log.mended == [] and list(log.events()) == [{"event": "start"}]
    assert not (tmp_path / f"{EVENTS}.aside").exists()


def test_attempts_without_their_settings_are_no_empty_folder(tmp_path):
    (tmp_path / ATTEMPTS).write_text("")
    with pytest.raises(RecordsError, match="has lost its config"):
        assert Folder(tmp_path).config


def test_no_run_says_so(tmp_path):
    with pytest.raises(RecordsError, match="holds no run"):
        _ = Folder(tmp_path / "none").config
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RecordsError, match="cannot be read"):
        _ = Folder(tmp_path).config


@pytest.mark.parametrize("name", [CONFIG, PLAN])
@pytest.mark.parametrize("damage", ["gone", b"", b"{", b"\x00" * 300, "half", b"[" * 100_000, b"\xff\xfe"])
def test_a_torn_file_of_settings_is_written_again_as_it_was(tmp_path, name, damage):
    filled(tmp_path)
    with Log(tmp_path) as log:
        log.keep(PLAN, {"rule": "before"})
        log.keep(CONFIG, {"identity": IDENTITY, "plan": {**PLANNED, "limit": 3}})
        log.keep(PLAN, {"rule": "caf\u00e9", "amendments": []})
        log.keep(CONFIG, {"identity": IDENTITY, "plan": PLANNED, "started": 0.1 + 0.2})
    path = tmp_path / name
    whole, kept = path.read_bytes(), json.loads(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[: len(whole) // 2] if damage == "half" else damage)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    folder = Folder(tmp_path)
    assert (
        folder.is_settled
        and (folder.config if name == CONFIG else folder.plan) == kept
        and set(folder.restored) == {name}
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files  # who reads writes nothing
    with Log(tmp_path) as log:
        assert log.mended == [f"{name} was torn or gone: written again as it was, from {EVENTS}"]
        assert log.settle(IDENTITY, PLANNED) == []
        with pytest.raises(RecordsError, match="--model A -> B"):
            log.settle({**IDENTITY, "model": "B"}, PLANNED)
    assert path.read_bytes() == whole
    with Log(tmp_path) as log:
        assert log.mended == []


@pytest.mark.parametrize("damage", [None, b"", b"\x00" * 9])
def test_settings_that_nobody_knows_any_more_lead_to_advice_that_helps(tmp_path, damage):
    """As older versions left a folder: without a copy."""
    filled(tmp_path)
    if damage is not None:
        (tmp_path / CONFIG).write_bytes(damage)
    with Log(tmp_path) as log:
        for ask in (lambda: Folder(tmp_path).config, lambda: log.settle(IDENTITY, PLANNED)):
            with pytest.raises(RecordsError, match="put a copy of it back, or move the folder aside with --fresh"):
                ask()


@pytest.mark.parametrize("name", [CARDS, CHECKS, EVENTS, OWED])
@pytest.mark.parametrize(
    "garbage", [b"\x00" * 40, b"{}", b"12", b"null", b"[]", b'"text"', b'{"id": "t", "di', b"[" * 100_000]
)
def test_a_line_of_no_file_is_moved_aside(tmp_path, name, garbage):
    rows = {
        CARDS: {"id": "t", "digest": "d"},
        CHECKS: {"task_id": "t", "program": "p", "tests": "x", "rules": "r", "letters": "P"},
        EVENTS: {"event": "start"},
        OWED: {"slot": ["t", "base", 0, 0, 9], "reply": {}},
    }
    filled(tmp_path)
    right = dumps(rows[name]).encode()
    (tmp_path / name).write_bytes(right + b"\n" + garbage + b"\n" + right + b"\n" + garbage)
    folder = Folder(tmp_path)
    assert list(folder.rows(name)) == [rows[name]] * 2 and len(folder.unreadable) == 2
    list(folder.cards())
    with Log(tmp_path) as log:
        assert [line.split(" is ")[0] for line in log.mended] == [f"{name} line 2", f"{name} line 4"]
        assert list(log.rows(name)) == [rows[name]] * 2 and log.begun
    assert (tmp_path / f"{name}.aside").read_bytes() == (garbage + b"\n") * 2


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    ours = {"tasks.jsonl": b"# a note\n{}\r\n\n", "user.jsonl": b"not json\n"}
    for name, content in ours.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordsError, match="holds files, and no run"), Log(tmp_path):
        pass
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ours
    filled(tmp_path / "run")
    (tmp_path / "run" / "user.jsonl").write_bytes(b"not json\n")
    assert held(tmp_path / "run") == list(range(6))
    assert (tmp_path / "run" / "user.jsonl").read_bytes() == b"not json\n"
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match="is a file"), Log(tmp_path / "file"):
        pass


@pytest.mark.parametrize("content", ["[1]", '{"x": 1}', '{"identity": 1, "plan": {}}'])
def test_a_config_of_something_else_is_said_so(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RecordsError, match="is not a run's"):
        _ = Folder(tmp_path).config
