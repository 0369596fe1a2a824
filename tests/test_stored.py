"""A log as columns: what was kept of it says what its lines say, and is believed only where it fits."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import records
from commands.settings import Config
from commands.shards import together
from faults import RecordsError
from figures.gathered import Gathered
from measure import measure
from reading import kept
from reading.stored import InMemory
from records import ATTEMPTS, Folder, dumps
from swarm import Attempt
from tests.support.planted_run import make

ATTEMPT = Attempt("1500_A", "ring", 0, 1, 2, prompt_tokens=7, fitness=0.25, reply="so", code="print(1)", outcome="pass")
OWN: Config = {"grades": "attempts"}  # type: ignore[typeddict-item]
LINES = st.tuples(
    st.integers(0, 3), st.integers(0, 5), st.sampled_from(["", "torn", "blank", "twice", "\ud800 é\u2028"])
)


def line_of(task: int, particle: int, odd: str) -> bytes:
    attempt = replace(
        ATTEMPT, task_id=f"t{task}\ud800", particle=particle, reply=odd, code=f"{odd}\nprint({particle % 2})",
        arm="base" if particle == 0 else "ring", passed=particle == 2, parent=f"ring/0/0/{task}" if task else None,
    )  # fmt: skip
    line = dumps(asdict(attempt)).encode() + b"\n"
    return {"torn": line[:40] + b"\n", "blank": b"\n", "twice": line + line}.get(odd, line)


def state(gathered: Gathered) -> dict[str, Any]:
    """All there is, in a form that can be compared: nan is not nan."""
    arrays = {name: column.tobytes() for name, column in gathered.arrays().items()}
    return arrays | {name: list(words) for name, words in gathered.words().items()} | {"runs": list(gathered.runs)}


def walked(folder: Folder) -> dict[str, Any]:
    """The same, by its lines and nothing else."""
    made = Gathered()
    made.extend(folder.placed())
    return state(made)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every line that is decoded as an attempt; however short a log is, its columns are kept."""
    lines: list[bytes] = []
    monkeypatch.setattr(kept, "WORTH", 1)
    monkeypatch.setattr(records, "parse_attempt", lambda line: lines.append(line) or parse(line))
    return lines


parse = records.parse_attempt


def reading(at: Path) -> tuple[dict[str, Any], set[tuple[str, int]]]:
    folder = Folder(at)
    return state(folder.stored(OWN).gathered), folder.unreadable


def told(at: Path) -> tuple[dict[str, Any], set[tuple[str, int]]]:
    folder = Folder(at)
    return walked(folder), folder.unreadable


# ── attempts one by one ──────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(LINES, max_size=25))
def test_those_of_a_task_on_disk_are_those_of_a_list(tmp_path_factory: pytest.TempPathFactory, rows: Any):
    folder = Folder(tmp_path_factory.mktemp("run"))
    (folder.path / ATTEMPTS).write_bytes(b"".join(line_of(*row) for row in rows) + b'{"torn at the end')
    plain, stored = list(folder.attempts()), folder.stored(OWN)
    held = InMemory(plain, (), OWN)
    for task in range(5):
        there = [attempt for attempt in plain if attempt.task_id == f"t{task}\ud800"]
        assert stored.of(f"t{task}\ud800") == held.of(f"t{task}\ud800") == there
    assert list(stored.at(stored.gathered.passing(base=True))) == [attempt for attempt in plain if attempt.passed]
    gists = [(*a.slot, a.passed, a.fitness, a.hidden_passed, a.outcome) for a in plain]
    assert [*stored.gathered.gists()] == [*held.gathered.gists()] == gists


def test_a_log_that_was_mended_meanwhile_is_said(tmp_path: Path):
    folder = Folder(tmp_path)
    lines = [dumps(asdict(replace(ATTEMPT, task_id=name))) + "\n" for name in ("a", "b")]
    (tmp_path / ATTEMPTS).write_text("garbage\n" + "".join(lines))
    stored = folder.stored(OWN)
    assert [stored.of(name)[0].task_id for name in ("a", "b")] == ["a", "b"]
    (tmp_path / ATTEMPTS).write_text("".join(lines))
    with pytest.raises(RecordsError, match="run again"):
        stored.of("a")
    (tmp_path / ATTEMPTS).write_text("x" * 7 + "\n" + lines[1] * 2)  # another task's line in its place
    with pytest.raises(RecordsError, match="run again"):
        stored.of("a")
    (tmp_path / ATTEMPTS).unlink()  # moved aside by --fresh
    with pytest.raises(RecordsError, match="moved by another process"):
        stored.of("a")


def test_a_folder_that_has_no_attempts_yet_is_an_empty_one(tmp_path: Path):
    stored = Folder(tmp_path).stored(OWN)
    assert len(stored.gathered) == 0 == len(stored.of("a")) and not list(stored.at(stored.gathered.passing(base=True)))


# ── columns kept beside the log ──────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(LINES, max_size=25), st.lists(st.integers(0, 12_000), max_size=4))
def test_kept_columns_say_what_the_lines_say_wherever_a_reading_fell(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, cuts: list[int]
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "WORTH", 1)
        patch.setattr(kept, "BLOCK", 64)
        at = tmp_path_factory.mktemp("run")
        log, whole = at / ATTEMPTS, b"".join(line_of(*row) for row in rows)
        with log.open("ab") as file:
            for cut in [*sorted(cuts), len(whole)]:
                file.write(whole[file.tell() : cut])
                file.flush()
                assert reading(at) == told(at)
        before = (at / kept.NAME).stat().st_mtime_ns if whole else None
        assert reading(at) == told(at)
        assert before is None or (at / kept.NAME).stat().st_mtime_ns == before  # and it is written once


def test_only_what_has_come_since_is_decoded(tmp_path: Path, decoded: list[bytes]):
    log = tmp_path / ATTEMPTS
    first, more = line_of(0, 1, "") + line_of(0, 1, "torn"), line_of(0, 2, "") + line_of(0, 1, "")  # the last one twice
    log.write_bytes(first)
    assert reading(tmp_path) == reading(tmp_path)
    assert decoded == first.splitlines(keepends=True)
    with log.open("ab") as file:
        file.write(more + more[:50])
    decoded.clear()
    got = reading(tmp_path)
    assert decoded == [*more.splitlines(keepends=True), more[:50]]
    assert got == told(tmp_path)
    decoded.clear()
    reading(tmp_path)
    assert decoded == [more[:50]]  # which is no whole line, and may become one


def longer(at: Path) -> None:
    """Another program in place of the first, as long, in the same file."""
    log = at / ATTEMPTS
    text = log.read_bytes().replace(b"print(1)", b"print(7)", 1)
    with log.open("r+b") as file:
        file.write(text)


def shorter(at: Path) -> None:
    log = at / ATTEMPTS
    with log.open("r+b") as file:
        file.truncate(len(log.read_bytes().splitlines(keepends=True)[0]))


def replaced(at: Path) -> None:
    """The same bytes in another file, as of a folder that came from elsewhere."""
    shutil.copy(at / ATTEMPTS, at / "new")
    (at / "new").rename(at / ATTEMPTS)


def claimed(at: Path) -> None:
    """Columns of another log, that claim to be of this one."""
    beside, other = at / kept.NAME, at / "other"
    other.mkdir()
    (other / ATTEMPTS).write_bytes(line_of(3, 5, ""))
    reading(other)
    _, here, *_ = beside.read_bytes().split(b"\n", 2)
    _, there, rest = (other / kept.NAME).read_bytes().split(b"\n", 2)
    mine = {key: json.loads(here)[key] for key in ("covered", "sha256")}
    body = json.dumps({**json.loads(there), **mine}).encode() + b"\n" + rest
    beside.write_bytes(kept.sha256(body).hexdigest().encode() + b"\n" + body)


@pytest.mark.parametrize("change", [longer, shorter, replaced, claimed])
def test_columns_of_another_log_are_not_believed(tmp_path: Path, decoded: list[bytes], change: Callable[[Path], None]):
    (tmp_path / ATTEMPTS).write_bytes(line_of(0, 1, "") + line_of(1, 2, "") + line_of(2, 0, ""))
    reading(tmp_path)
    change(tmp_path)
    decoded.clear()
    assert reading(tmp_path) == told(tmp_path)
    assert len(decoded) == 2 * len((tmp_path / ATTEMPTS).read_bytes().splitlines())  # read anew, and told
    decoded.clear()
    reading(tmp_path)
    assert not decoded  # and kept anew


@given(st.integers(0, 10**6), st.integers(1, 255), st.sampled_from(["flip", "cut", "add"]))
def test_a_torn_or_rotten_file_of_columns_is_read_past(
    tmp_path_factory: pytest.TempPathFactory, place: int, bits: int, how: str
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "WORTH", 1)
        at = tmp_path_factory.mktemp("run")
        (at / ATTEMPTS).write_bytes(line_of(0, 1, "") + line_of(1, 2, "") + line_of(2, 0, ""))
        right = reading(at)
        held = bytearray((at / kept.NAME).read_bytes())
        place %= len(held)
        if how == "flip":
            held[place] ^= bits
        (at / kept.NAME).write_bytes(held[:place] if how == "cut" else held + b"\0" * bits if how == "add" else held)
        assert reading(at) == right


@pytest.mark.parametrize(
    "head", [b"", b"[]", b"{", b'"{}"', b"[" * 100_000, b"{}", b'{"file": 1, "made_by": 2}', b"\xff"]
)
def test_whatever_else_bears_its_name_is_read_past(tmp_path: Path, decoded: list[bytes], head: bytes):
    (tmp_path / ATTEMPTS).write_bytes(line_of(0, 1, ""))
    (tmp_path / kept.NAME).write_bytes(kept.sha256(head).hexdigest().encode() + b"\n" + head)
    assert reading(tmp_path) == told(tmp_path)
    os.mkfifo(tmp_path / "pipe")  # from which nothing ever comes
    (tmp_path / "pipe").rename(tmp_path / kept.NAME)
    assert reading(tmp_path) == told(tmp_path)


def test_another_version_of_what_makes_them_makes_them_anew(
    tmp_path: Path, decoded: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ATTEMPTS).write_bytes(line_of(0, 1, ""))
    reading(tmp_path)
    before = kept.MADE_BY
    for change in (lambda: monkeypatch.setattr(kept.sys, "version", "4.0"),
                   lambda: monkeypatch.setattr(kept, "MADE_IN", kept.MADE_IN[1:])):  # fmt: skip
        change()
        monkeypatch.setattr(kept, "MADE_BY", kept._code())
        assert before != kept.MADE_BY
        decoded.clear()
        reading(tmp_path)
        assert len(decoded) == 1


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_nothing_is_written_through_what_a_folder_brings_along(tmp_path: Path, decoded: list[bytes], kind: str):
    out, other = tmp_path / "out", tmp_path / "somebody's"
    out.mkdir()
    other.write_text("theirs")
    (out / ATTEMPTS).write_bytes(line_of(0, 1, ""))
    new = out / f".{kept.NAME}.new"
    new.symlink_to(other) if kind == "link" else os.mkfifo(new)
    assert reading(out) == told(out)
    assert other.read_text() == "theirs" and (out / kept.NAME).is_file() and not (out / kept.NAME).is_symlink()


@pytest.mark.parametrize("known", [False, True])
def test_a_log_that_is_mended_while_it_is_gathered_is_said(tmp_path: Path, decoded: list[bytes], known: bool):
    log, whole = tmp_path / ATTEMPTS, b"garbage\n" + line_of(0, 1, "") + line_of(1, 2, "")
    log.write_bytes(whole)
    if known:
        reading(tmp_path)
    folder, walk = Folder(tmp_path), Folder(tmp_path).placed
    with log.open("ab") as file:
        file.write(line_of(2, 0, ""))

    def mended(*where: Any, **how: Any) -> Any:
        (tmp_path / "new").write_bytes(log.read_bytes().removeprefix(b"garbage\n"))
        (tmp_path / "new").rename(log)
        return walk(*where, **how)

    folder.placed = mended  # type: ignore[method-assign]
    with pytest.raises(RecordsError, match="run again"):
        folder.stored(OWN)


def test_where_they_cannot_be_kept_a_log_is_read_all_the_same(tmp_path: Path, decoded: list[bytes]):
    (tmp_path / kept.NAME).mkdir()
    (tmp_path / ATTEMPTS).write_bytes(line_of(0, 1, ""))
    assert reading(tmp_path) == reading(tmp_path) == told(tmp_path)
    assert len(decoded) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ATTEMPTS, kept.NAME])


def test_a_small_log_has_no_file_beside_it(tmp_path: Path):
    make(tmp_path, 2)
    folder = Folder(tmp_path)
    folder.stored(folder.config)
    assert not (tmp_path / kept.NAME).exists()


def test_results_do_not_depend_on_where_columns_come_from(tmp_path: Path, decoded: list[bytes]):
    make(tmp_path, 12)
    folder = Folder(tmp_path)

    def results(attempts: Any) -> str:
        return dumps(measure(attempts, folder.config, folder.cards(), folder.checks(), folder.events(), folder.plan))

    plain = results(folder.attempts())
    assert results(folder.stored(folder.config).gathered) == plain
    decoded.clear()
    assert results(folder.stored(folder.config).gathered) == plain and not decoded


def test_two_halves_of_a_character_are_not_one(tmp_path: Path, decoded: list[bytes]):
    line = dumps(asdict(replace(ATTEMPT, task_id="\U0001f600"))).encode() + b"\n"
    halves = line.replace(rb"\ud83d\ude00", b"\xed\xa0\xbd\xed\xb8\x80")  # as raw bytes
    assert halves != line
    (tmp_path / ATTEMPTS).write_bytes(line + halves)
    assert reading(tmp_path) == reading(tmp_path) == told(tmp_path)


def test_a_log_from_elsewhere_with_other_numbers_is_read(tmp_path: Path, decoded: list[bytes]):
    for odd in (b"0.0", b"null", b"true"):
        (tmp_path / ATTEMPTS).write_bytes(line_of(0, 1, "").replace(b'"hidden_passed": 0', b'"hidden_passed": ' + odd))
        assert len(Folder(tmp_path).stored(OWN).gathered) == 1


def test_a_shard_by_itself_is_decoded_as_any_log(tmp_path: Path, decoded: list[bytes]):
    make(tmp_path, 1)
    config = json.loads((tmp_path / "config.json").read_text())
    shard = {"number": 1, "of": 2, "tasks": 1, "order": ""}
    (tmp_path / "config.json").write_text(
        json.dumps({**config, "command": "run.py", "data": {"asked": 2}, "shard": shard})
    )
    [alone] = together([tmp_path])
    assert state(alone.stored(OWN).gathered) == walked(Folder(tmp_path))
    with (tmp_path / ATTEMPTS).open("ab") as file:
        file.write(line_of(1, 2, ""))
    decoded.clear()
    [alone] = together([tmp_path])
    assert state(alone.stored(OWN).gathered) == walked(Folder(tmp_path))
    assert decoded[0] == line_of(1, 2, "") and len(decoded) == 1 + len(list(Folder(tmp_path).attempts()))
    assert alone.stored(OWN).of("t1\ud800")[0].particle == 2


def test_a_regrade_is_gathered_anew(tmp_path: Path, decoded: list[bytes]):
    (tmp_path / ATTEMPTS).write_bytes(line_of(0, 1, "") + line_of(1, 2, ""))
    reading(tmp_path)
    decoded.clear()
    config: Config = {"grades": "regrade-1"}  # type: ignore[typeddict-item]
    stored = Folder(tmp_path).stored(config)
    assert len(decoded) == 2 and stored.gathered.left == ["t0\ud800", "t1\ud800"]  # no letters are there for them
    assert [attempt.task_id for attempt in stored.at([1, 0])] == ["t1\ud800", "t0\ud800"]
