"""`run.py --watch` and `--track`: figures of a run under way, its folder only read, its end seen, whatever it is."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import termios
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import records
from commands import console, track, watch
from commands.interrupt import INTERRUPTED
from commands.track import Tracking, about
from commands.watch import KILLED, LOCKS, Course, Followed, Look, Tail, owner
from faults import RecordsError
from figures.plan import make_plan, plan_digest
from figures.underway import Seen, underway
from measure import measure
from records import ATTEMPTS, CONFIG, EVENTS, Folder, Log
from swarm import Attempt
from telling.text import Paper
from telling.underway import State, lines, phase, short
from tests.support.lay_out import attempt, base, config, names, play, run
from tests.support.mock_endpoint import serving
from tests.support.until import until
from tests.test_chaos import MODEL, task_file

ROOT = Path(__file__).parent.parent
LINUX = pytest.mark.skipif(not LOCKS.exists(), reason="no list of locks here")


def settings(n: int, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """config.json and plan.json that fit each other."""
    held = config(data={"asked": n}, **changes)
    plan = {**make_plan(held, n), "written": 1.0}
    return {**held, "plan_digest": plan_digest(plan)}, plan


def read(held: tuple[dict[str, Any], dict[str, Any]], attempts: Iterable[Attempt], n: int, **events: Any) -> Seen:
    seen = Seen()
    seen.settle(*held)
    for each in attempts:
        seen.attempt(each)
    for task in names(n):
        seen.card({"id": task, "tags": {}, "statement": "s", "digest": task})
    return seen


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def left(attempts: Iterable[Attempt], n: int, plays: list[tuple[str, int]], *, group: int, particles: int, rounds: int,
         shared: bool) -> int:  # fmt: skip
    """Attempts at most that are left, counted slot by slot as the arms go through them."""
    there: dict[tuple[str, str, int, int], dict[int, bool]] = defaultdict(dict)
    for a in attempts:
        there[a.task_id, a.arm, a.rerun, a.round][a.particle] = a.passed
    owed = 0
    for task in names(n):
        drawn = there[task, "base", 0, 0]
        owed += group - len(drawn)
        if len(drawn) == group and any(drawn.values()):
            continue  # nothing that is asked of it is left
        slots = set()
        for arm, rerun in plays:
            for nth in range(rounds):
                name = "round0" if shared and not nth and not rerun else arm
                made = there[task, name, rerun, nth]
                slots |= {(name, rerun, nth, i) for i in range(particles) if i not in made}
                if len(made) == particles and any(made.values()):
                    break
        owed += len(slots)
    return owed


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_at_every_moment_the_figures_are_those_of_the_report_and_what_is_left_is_counted(shared: bool) -> None:
    n, dice = 6, random.Random(3)
    tasks, size = names(n), {"particles": 2, "rounds": 3}
    hit = {arm: {t: dice.randrange(3) for t in tasks if dice.random() < 0.5} for arm in ("resample", "ring", "star")}
    made = [a for t in tasks for a in base(t, passes=int(t == tasks[4]), group=2)]
    for arm, rounds in hit.items():
        made += [a for t in tasks if t != tasks[4] for a in play(t, arm, rounds.get(t), **size)]
    if not shared:
        made += [a for t in tasks if t != tasks[4] for a in play(t, "resample", None, 1, **size)]
    else:  # one round 0, in which nothing passes
        made = [a for a in made if a.arm == "base" or (a.round and hit[a.arm].get(a.task_id) != 0)]
        made += [attempt(t, "round0", 0, 0, i) for t in tasks if t != tasks[4] for i in range(2)]
    held = settings(n, arms=list(hit), base_samples=2, noise_runs=int(not shared), share_round0=shared, **size)
    plays = [(arm, 0) for arm in hit] + [("resample", 1)] * (not shared)
    dice.shuffle(made)
    made.sort(key=lambda a: (a.arm != "base", a.round))  # no round before the one that it is made of
    for k in range(0, len(made) + 1, 7):
        now = underway(read(held, made[:k], n))
        assert now.most - k == left(made[:k], n, plays, group=2, shared=shared, **size)
        if k not in (7 * (len(made) // 14), 7 * (len(made) // 9)):
            continue  # a report takes its time
        cards = [{"id": task, "tags": {}, "digest": task} for task in tasks]
        told = measure(made[:k], held[0], cards, plan=held[1])
        assert now.arms == {arm: (row["n"], row["rescued"]) for arm, row in told["intervals"].items()}
        assert {"prompt": now.prompt_tokens, "completion": now.completion_tokens} == told["tokens"]
        assert (now.watched, now.all_fail, now.given) == (
            told["watched"],
            told["all_fail"],
            told["incomplete"]["given"],
        )
        assert now.most - k == left(made[:k], n, plays, group=2, shared=shared, **size)
    assert (now.most, now.owes) == (len(made), False) or k < len(made)


def test_at_the_start_what_is_left_is_the_plan() -> None:
    held = settings(20, noise_runs=2, share_round0=True)
    seen = Seen()
    seen.settle(*held)
    assert underway(seen).most == held[1]["calls"]["largest"]


def test_of_a_shard_its_own_tasks_are_left_and_there_is_no_verdict_by_the_plan() -> None:
    held, plan = settings(7)
    made = [a for task in names(2) for a in base(task, passes=1)]
    seen = read(({**held, "shard": {"number": 1, "of": 3, "tasks": 2, "order": ""}}, plan), made, 2)
    now = underway(seen)
    assert (now.asked, now.most, now.owes, now.is_late) == (2, 16, False, True)


def test_of_an_audit_only_passable_tasks_are_left_to_the_arms() -> None:
    audit = {"passable": 1, "disputed": 2, "unknown": 0, "unaudited": 0}
    held = config(data={"asked": 3, "audit": audit}, only_passable=True)
    seen = Seen()
    seen.settle(held, make_plan(held, 3))
    assert underway(seen).most == make_plan(held, 3)["calls"]["largest"] == 3 * 8 + 4 * 24


def test_the_speed_is_by_the_folders_clock_and_of_the_last_minutes() -> None:
    held = settings(2)
    made = [attempt("t0000", particle=i, time=1e6 + 100 * i) for i in range(7)]
    seen = read(held, made, 2)
    assert underway(seen).pace is None  # nothing was asked by this start
    seen.event({"event": "start", "time": 1e6 - 50})
    seen.event({"event": "sent", "time": 1e6 - 40})
    assert (underway(seen).pace, underway(seen).over) == (3 / 300, 300)  # of seven the last three
    seen.event({"event": "retry", "time": 1e6 + 800, "error": "HTTP 503"})  # it stands still, and time goes on
    assert (underway(seen).pace, underway(seen).over) == (1 / 300, 300)
    seen.event({"event": "start", "time": 1e6 + 900})
    seen.event({"event": "sent", "time": 1e6 + 1000})
    assert underway(seen).pace is None


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

GOES_ON = State("here", 1.0)


def told(seen: Seen, state: State = GOES_ON, width: int = 100) -> str:
    return "\n".join(lines("out", seen, underway(seen), state, Paper(width, False)))


def test_each_phase_has_its_words() -> None:
    seen = read(settings(3), [], 3)
    now = underway(seen)
    said = [phase(seen, now, GOES_ON)]
    for event in (
        {"event": "start", "time": 10.0},
        {"event": "waiting", "error": "HTTP 503: loading", "time": 12.0},
        {"event": "probe", "time": 20.0},
        {"event": "sent", "time": 20.0},
        {"event": "retry", "error": "HTTP 429", "time": 80.0},
    ):
        seen.event(event)
        said.append(phase(seen, now, GOES_ON))
    assert said == [
        "reading what the folder holds, or making the report",
        "asking the server for one token",
        "waiting for the server: HTTP 503: loading",
        *["sampling"] * 3,
    ]
    text = told(seen)
    assert "0 open, 0 answered, 1 sent again" in text and "since: HTTP 429" in text
    assert "now       sampling for 70 s; the last line is 1 s old" in text
    seen.event({"event": "answered", "time": 90.0})
    assert "HTTP 429" not in told(seen)
    for code, words in {
        0: "done",
        3: "a limit was reached",
        4: "the endpoint",
        130: "interrupted",
        9: "code 9",
    }.items():
        seen.event({"event": "end", "code": code, "time": 95.0})
        assert words in phase(seen, now, State("nobody", 1.0, "ended"))
    seen.event({"event": "start", "time": 100.0})
    seen.check({"task_id": "t", "program": "p", "tests": "spare-2/x", "rules": "r", "letters": "P"})
    assert phase(seen, now, GOES_ON) == "running saved programs again"
    assert "earlier starts" not in told(seen)  # nothing was asked since
    seen.event({"event": "sent", "time": 110.0})
    assert "requests  1 open, 0 answered; 1 sent at earlier starts" in told(seen)


def test_counts_of_what_is_not_finished_are_called_no_rates_and_the_verdict_is_the_one_for_any_look() -> None:
    tasks = names(40)
    rescued = {"resample": {}, "star": dict.fromkeys(tasks[:20], 0)}
    size = {"particles": 1, "rounds": 2}
    made = [a for a in run(tasks, rescued, group=1, **size) if (a.task_id, a.arm) != (tasks[-1], "star")]
    changes = {"arms": ["resample", "star"], "base_samples": 1, **size}
    text = told(read(settings(40, **changes), made, 40))
    assert "so these counts are no rates yet" in text
    assert re.search(r"star +39 +20 +39 +20 : 0 +better", text)
    assert "However often it was looked at" in text and "star finds more than resample" in text
    whole = run(tasks, rescued, group=1, **size)
    text = told(read(settings(40, **changes), whole, 40))
    assert "no rates" not in text and "However often" not in text  # it is finished: the plan's own verdict holds
    held, plan = settings(40, **changes)
    text = told(read((held, {**plan, "margin": 0.2}), made, 40))
    assert "However often" not in text and "the verdicts are exploratory" in text


def test_what_a_model_is_called_reaches_the_terminal_as_letters_and_no_line_is_too_wide() -> None:
    seen = read(settings(3, model="\033]0;evil\007"), [], 3)
    seen.event({"event": "start", "time": 1.0})
    seen.event({"event": "waiting", "error": "x" * 30 + " \033[2J " + "y " * 200, "time": 2.0})
    text = told(seen, width=80)
    assert "\033" not in text and "\007" not in text and max(map(len, text.split("\n"))) <= 80
    assert "\033" not in short(seen, underway(seen), GOES_ON)


# ── files that grow ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tail_reads_whole_lines_once_and_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert list(tail.lines()) == [] and not tail.is_another()
    path.write_bytes(b"one\n\ntwo\nthr")
    assert list(tail.lines()) == [b"one\n", b"two\n"]
    with path.open("r+b") as file:  # what was read is not looked at again
        file.write(b"XXX")
        file.seek(0, os.SEEK_END)
        file.write("ee \u2028\n".encode())
    assert not tail.is_another() and list(tail.lines()) == ["three \u2028\n".encode()]
    assert list(tail.lines()) == []
    path.write_bytes(b"one\n")
    assert tail.is_another()  # cut
    tail = Tail(path)
    assert list(tail.lines()) == [b"one\n"]
    (tmp_path / "new").write_bytes(b"one\nmore\n")
    os.replace(tmp_path / "new", path)
    assert tail.is_another()  # another file under its name
    path.unlink()
    assert tail.is_another()


def lay(path: Path, attempts: Iterable[Attempt], *events: dict[str, Any], n: int = 3, **changes: Any) -> Path:
    """A run folder."""
    path.mkdir(parents=True, exist_ok=True)
    held, plan = settings(n, **changes)
    (path / CONFIG).write_text(json.dumps({**held, "command": "run.py"}))
    (path / "plan.json").write_text(json.dumps(plan))
    (path / ATTEMPTS).write_text("".join(records.dumps(asdict(a)) + "\n" for a in attempts))
    cards = [{"id": t, "digest": t, "tags": {}, "title": t, "statement": "s"} for t in names(n)]
    (path / "tasks.jsonl").write_text("".join(json.dumps(card) + "\n" for card in cards))
    (path / EVENTS).write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


STARTED = ({"event": "start", "time": 1.0}, {"event": "probe", "time": 2.0}, {"event": "sent", "time": 3.0})
DONE = {"event": "end", "time": 9.0, "code": 0}


def test_a_folder_is_followed_over_torn_lines_garbage_and_a_move_aside(tmp_path: Path) -> None:
    made = list(base("t0000"))
    out = lay(tmp_path / "out", made[:2], *STARTED)
    followed = Followed(Folder(out))
    assert followed.look() and len(followed.seen.attempts) == 2 and followed.seen.start.open == 1
    assert not followed.look()
    line = records.dumps(asdict(made[2])) + "\n"
    with (out / ATTEMPTS).open("a") as file:
        file.write(line[:50])
        file.flush()
        assert not followed.look()
        file.write(line[50:] + "{}\n" + records.dumps(asdict(made[1])) + "\n")  # garbage, and one that is there already
    assert followed.look() and len(followed.seen.attempts) == 3 and followed.unreadable == 1
    out.rename(tmp_path / "out.1")
    lay(out, made[:1])
    assert followed.look() and len(followed.seen.attempts) == 1 and followed.unreadable == 0
    (out / CONFIG).write_text((out / CONFIG).read_text().replace('"grades": "attempts"', '"grades": "regrade-1"'))
    assert followed.look() and followed.seen.regraded
    (out / ATTEMPTS).write_text(json.dumps({**asdict(made[0]), "of_a_later_version": 1}) + "\n")
    with pytest.raises(RecordsError, match="another version"):
        Followed(Folder(out)).look()


def test_before_there_is_a_config_its_events_are_told(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_text('{"event": "start", "time": 1}\n{"event": "waiting", "error": "HTTP 503"}\n')
    followed = Followed(Folder(tmp_path))
    assert followed.look() and followed.seen.config is None
    assert lines("out", followed.seen, None, GOES_ON, Paper(80, False))[1].startswith(
        "now       waiting for the server"
    )


# ── does it go on ────────────────────────────────────────────────────────────────────────────────────────────────────


@LINUX
def test_whoever_writes_is_seen_and_no_lock_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert owner(tmp_path / "none") == "unknown"
    with Log(tmp_path):
        assert owner(tmp_path) == "here"
    assert owner(tmp_path) == "nobody"
    monkeypatch.setattr(watch, "LOCKS", tmp_path / "no list")
    with Log(tmp_path):
        assert owner(tmp_path) == "unknown"


def seen_of(*events: dict[str, Any]) -> Seen:
    seen = Seen()
    for event in events:
        seen.event(event)
    return seen


@pytest.mark.parametrize(
    "first, then, events, quiet, told, over",
    [
        ("here", "nobody", STARTED, 0, False, "killed"),
        ("nobody", "nobody", STARTED, 80, False, ""),  # of another machine, perhaps
        ("nobody", "nobody", STARTED, 100, False, "silent"),
        ("unknown", "unknown", STARTED, 80, False, ""),
        ("unknown", "unknown", STARTED, 100, False, "silent"),
        ("here", "here", STARTED, 1000, False, ""),
        ("here", "here", (*STARTED, DONE), 0, True, ""),  # what it found is looked at once more
        ("here", "nobody", (*STARTED, DONE), 0, True, ""),  # not at once, since that comes after a moment
        ("nobody", "nobody", (*STARTED, DONE), 0, True, "ended"),
        ("nobody", "nobody", (), 0, False, ""),
    ],
)
def test_when_it_is_over(first: Any, then: Any, events: Any, quiet: float, told: bool, over: str) -> None:
    course, seen = Course(), seen_of(*events)
    before = course.state(first, seen, quiet, told)
    assert (before.over or course.state(then, seen, quiet, told).over) == over


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C stays with the tests."""
    monkeypatch.setattr(watch.interrupt, "at_once", lambda says: None)


def fingerprint(out: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(out.iterdir())}


def test_a_finished_run_is_told_and_its_folder_only_read(
    tmp_path: Path, at_once: None, capsys: pytest.CaptureFixture[str]
) -> None:
    made = run(names(3), {arm: {"t0001": 0} for arm in ("resample", "solo", "ring", "star")})
    out = lay(tmp_path / "out", made, *STARTED, DONE)
    before = fingerprint(out)
    assert watch.watching(Folder(out)) == 0
    said = capsys.readouterr()
    assert "ended: done" in said.out and "--reuse" in said.err and "of at most" in said.out
    results = measure(made, Folder(out).config, Folder(out).rows("tasks.jsonl"), plan=Folder(out).plan)
    (out / "results.json").write_text(json.dumps(results))
    before = fingerprint(out)
    os.chmod(out, 0o500)
    assert watch.watching(Folder(out)) == 0
    os.chmod(out, 0o700)
    console.leave_off()
    said = capsys.readouterr()
    assert " ".join(results["verdict"]["sentence"].split()) in " ".join(said.out.split())
    assert "report.html" in said.err and fingerprint(out) == before
    results["tokens"]["prompt"] += 1  # a report of other attempts is not this one's
    (out / "results.json").write_text(json.dumps(results))
    watch.watching(Folder(out))
    assert results["verdict"]["sentence"][:40] not in capsys.readouterr().out


def test_how_it_ended_is_the_exit_code(tmp_path: Path, at_once: None, capsys: pytest.CaptureFixture[str]) -> None:
    out = lay(tmp_path / "limit", base("t0000"), *STARTED, {**DONE, "code": 3})
    assert watch.watching(Folder(out)) == 3 and "a limit was reached" in capsys.readouterr().out
    out = lay(tmp_path / "killed", base("t0000"), *STARTED)
    for path in out.iterdir():
        os.utime(path, (time.time() - 1000,) * 2)
    assert watch.watching(Folder(out)) == KILLED
    assert "no line for 16.7 min" in " ".join(capsys.readouterr().out.split())


def test_a_folder_that_is_not_there_is_waited_for_and_one_of_something_else_is_not(
    tmp_path: Path, at_once: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(watch, "time", SimpleNamespace(
        sleep=lambda seconds: lay(out, base("t0000"), *STARTED, DONE), monotonic=time.monotonic, time=time.time
    ))  # fmt: skip
    assert watch.watching(Folder(out)) == 0
    assert f"no run has begun in {out} yet: waiting for one" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    with pytest.raises(RecordsError, match="holds files, and no run"):
        watch.watching(Folder(tmp_path / "other"))
    with pytest.raises(RecordsError, match="is a file, not a folder"):
        watch.watching(Folder(tmp_path / "other" / "notes.txt"))


# ── a tracker ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Library(ModuleType):
    """What it was told, in order; it may fail at any of it."""

    def __init__(self, fails_at: str = "") -> None:
        super().__init__("trackio")
        self.said: list[Any] = []

        def saying(name: str) -> Callable[..., None]:
            def call(*args: Any, **how: Any) -> None:
                print("greetings")
                self.said.append((name, args, how))
                if name == fails_at:
                    raise SystemExit("no\nspace") if name == "finish" else RuntimeError("no\nspace")

            return call

        self.init, self.log, self.finish = map(saying, ("init", "log", "finish"))


def look_at(seen: Seen, over: Any = "") -> Look:
    followed = SimpleNamespace(seen=seen)
    return Look(followed, underway(seen), State("here", 1.0, over), None)  # type: ignore[arg-type]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(track, "time", SimpleNamespace(monotonic=lambda: now[0], strftime=time.strftime,
                                                       localtime=time.localtime))  # fmt: skip
    monkeypatch.setattr(track.warnings, "showwarning", track.warnings.showwarning)
    return now


def test_a_tracker_gets_rows_now_and_then_and_the_last_one(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    library, tracking, seen = Library(), Tracking("night"), read(settings(3), base("t0000"), 3)
    monkeypatch.setitem(sys.modules, "trackio", library)
    for _ in range(40):  # two seconds each
        tracking.log(tmp_path / "out", look_at(seen))
        clock[0] += 2
        seen.attempt(attempt("t0001", particle=len(seen.attempts)))
    tracking.log(tmp_path / "out", look_at(seen, "ended"))
    names_ = [name for name, *_ in library.said]
    assert names_ == ["init", "log", "log", "log", "log", "finish"]
    steps = [how["step"] for name, _, how in library.said if name == "log"]
    assert steps == [8, 23, 38, 48]
    (row,) = library.said[-2][1]
    assert row["attempts/done"] == 48 and row["rescued/star"] == 0 and row["tokens/prompt"] == 4800
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "trackio show --project night" in said.err
    how = library.said[0][2]
    assert how["project"] == "night" and how["resume"] == "allow" and how["config"]["particles"] == 8
    assert about(tmp_path / "out", seen, "night")["name"] == how["name"]  # at every start


@pytest.mark.parametrize("fails_at", ["init", "log", "finish"])
def test_a_tracker_that_fails_is_one_line_and_left_alone(
    clock: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    fails_at: str,
) -> None:
    library, tracking, seen = Library(fails_at), Tracking("night"), read(settings(3), base("t0000"), 3)
    monkeypatch.setitem(sys.modules, "trackio", library)
    for over in ("", "ended", "ended"):
        clock[0] += 100
        tracking.log(tmp_path, look_at(seen, over))
    assert capsys.readouterr().err.count("no longer tracked (") == 1
    assert [name for name, *_ in library.said][-1] == fails_at


def test_a_tracker_that_hangs_is_left(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    library = Library()
    library.log = lambda row, step: time.sleep(60)  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "trackio", library)
    monkeypatch.setattr(track, "PATIENT", 0.05)
    Tracking("night").log(tmp_path, look_at(read(settings(3), base("t0000"), 3)))
    assert "no longer tracked (TimeoutError: no answer in 0.05 s)" in capsys.readouterr().err
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_without_the_library_a_run_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import run as command

    for name, words in {"no_such_library": "pip install '.[track]'", "json": ""}.items():
        monkeypatch.setattr(track, "LIBRARY", name)
        argv = ["--dry-run", "--track", "night", "--out", str(tmp_path / "out"), *["--reuse"] * (not words)]
        with pytest.raises(SystemExit) as end:
            command.main(argv)
        assert end.value.code == 2 and (words or "makes nothing to track") in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# ── beside the real command ──────────────────────────────────────────────────────────────────────────────────────────


SMALL = ["--base-samples", "4", "--particles", "4", "--rounds", "2", "--noise-runs", "1", "--workers", "1",
         "--concurrency", "16"]  # fmt: skip
TIMES = ("time", "latency_seconds", "cpu_seconds", "tries")


def start(*argv: str, **how: Any) -> subprocess.Popen[str]:
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen([sys.executable, str(ROOT / "run.py"), *argv], text=True, **how)


def attempts_of(out: Path) -> list[str]:
    """Without what a clock says, in an order that is not that of their coming."""
    rows = [json.loads(line) for line in (out / ATTEMPTS).read_text().split("\n")[:-1]]
    return sorted(json.dumps({key: value for key, value in row.items() if key not in TIMES}) for row in rows)


@pytest.fixture
def flags(tmp_path: Path) -> Iterator[Callable[[str], list[str]]]:
    """A run of twelve tasks, some 450 attempts, against a server that takes its time."""
    tasks = task_file(tmp_path, 12)
    with serving(MODEL, latency=lambda request: 0.3 * request.dice("wait").random()) as mock:
        yield lambda out: ["--tasks", tasks, "--base-url", mock.url, "--out", str(tmp_path / out), *SMALL]


@pytest.mark.slow
def test_a_run_that_is_watched_is_the_run_that_is_not(tmp_path: Path, flags: Callable[[str], list[str]]) -> None:
    alone = start(*flags("alone"))
    alone.communicate(timeout=300)
    watcher = start("--watch", "--out", str(tmp_path / "watched"))  # before there is a folder
    assert watcher.stderr and "waiting for one" in watcher.stderr.readline()
    terminal, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 100))
    run_ = start(*flags("watched"))
    drawing = start("--watch", "--out", str(tmp_path / "watched"), stdout=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while piece := os.read(terminal, 1 << 16):
            drawn += piece
    os.close(terminal)
    run_.communicate(timeout=300)
    said, log = watcher.communicate(timeout=60)
    drawing.communicate(timeout=60)
    assert (alone.returncode, run_.returncode, watcher.returncode, drawing.returncode) == (0, 0, 0, 0), log
    assert attempts_of(tmp_path / "watched") == attempts_of(tmp_path / "alone")
    assert len(attempts_of(tmp_path / "alone")) > 300
    results = [json.loads((tmp_path / name / "results.json").read_text()) for name in ("alone", "watched")]
    free = ("seconds", "cost", "latency", "efficiency")
    first, second = ({key: value for key, value in one.items() if key not in free} for one in results)
    assert first == second
    last = drawn.decode().split("\033[J")[-1]
    assert drawn.decode().count("\033[J") > 3 and "sampling for" in drawn.decode()
    for text in (said, last):
        assert "ended: done" in text and f"{results[1]['tokens']['prompt']:,} in" in text
        for arm, row in results[1]["intervals"].items():
            assert re.search(rf"^{arm} +{row['n']} +{row['rescued']}\b", text.replace("\r", ""), re.M), (arm, text)
        assert results[1]["verdict"]["sentence"].split(".")[0] in " ".join(text.split())
    assert "sampling" in said


@pytest.mark.slow
@LINUX
def test_a_run_that_is_killed_is_said_to_be_and_ctrl_c_ends_the_watching_alone(
    tmp_path: Path, flags: Callable[[str], list[str]]
) -> None:
    run_, out = start(*flags("out")), tmp_path / "out"
    watcher, left = (start("--watch", "--out", str(out)) for _ in range(2))
    until(lambda: (out / ATTEMPTS).exists() and len((out / ATTEMPTS).read_bytes().split(b"\n")) >= 60)
    left.send_signal(signal.SIGINT)
    said = left.communicate(timeout=60)
    assert left.returncode == INTERRUPTED
    assert said[1].endswith("run.py: no longer watched; the run goes on as it was\n")
    assert said[1].count("\n") <= 2 and run_.poll() is None
    run_.kill()
    began = time.monotonic()
    said = watcher.communicate(timeout=60)
    assert watcher.returncode == KILLED and time.monotonic() - began < 30
    assert "killed, with its last line" in " ".join(said[0].split()) and "--reuse" in said[1]
    run_.communicate()


FAKE = """
import os, sys, time
from pathlib import Path
def _say(*words):
    with open(os.environ["SAID"], "a") as file:
        print(*words, os.getpid(), "OPENAI_API_KEY" in os.environ, file=file)
def init(**how):
    _say("init")
    {init}
def log(row, step):
    _say("log", step, row["attempts/done"])
def finish():
    _say("finish")
"""


@pytest.mark.slow
@pytest.mark.parametrize("init", ["pass", "raise OSError('no space')", "os._exit(3)", "os.abort()", "time.sleep(900)"])
def test_whatever_a_tracker_does_the_run_goes_on(tmp_path: Path, flags: Callable[[str], list[str]], init: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "trackio.py").write_text(FAKE.replace("{init}", init))
    said = tmp_path / "said"
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "lib"), "SAID": str(said), "OPENAI_API_KEY": "sk-x"}
    with (tmp_path / "log").open("w") as log:  # a pipe would stay open as long as the tracker
        run_ = start(*flags("out"), "--limit", "2", "--track", "night", env=env, stderr=log)
        run_.communicate(timeout=300)
    assert run_.returncode == 0 and (tmp_path / "out" / "report.txt").exists()
    until(lambda: said.exists() and ("finish" in said.read_text() or init != "pass"))
    rows = [line.split() for line in said.read_text().splitlines()]
    assert {row[-1] for row in rows} == {"False"}  # the key is not for a tracker
    assert {int(row[-2]) for row in rows}.isdisjoint({run_.pid})
    if init == "pass":
        assert [row[0] for row in rows if row[0] != "log"] == ["init", "finish"]
        assert int(rows[-2][1]) == len(attempts_of(tmp_path / "out"))
    elif "raise" in init:
        assert (tmp_path / "log").read_text().count("no longer tracked (OSError: no space); the run goes on") == 1
    elif "sleep" in init:
        os.kill(int(rows[0][-2]), signal.SIGKILL)
