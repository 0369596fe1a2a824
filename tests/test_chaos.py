"""Left alone overnight: the real command, killed and starved and lied to, against the same command in peace.

Everything here runs `run.py` as a process of its own against a mock endpoint on loopback. CHAOS_KILLS (10) sets how
often the chaos run is killed, CHAOS_SEED (0) at which moments.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from records import ATTEMPTS, EVENTS, OWED
from swarm import Slot
from tests.support.mock_endpoint import EVERY_FAULT, Fault, MockEndpoint, Request, always, at_random, knows, serving

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
KILLS = int(os.environ.get("CHAOS_KILLS", "10"))
SEED = int(os.environ.get("CHAOS_SEED", "0"))
CONCURRENCY = 24
SMALL = ("--base-samples", "4", "--particles", "4", "--rounds", "2", "--noise-runs", "1", "--workers", "2")
KEY = "sk-canary-7d1e9a4c5b2f8036"


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for each test, so that a mock does not count what a stray process asks of a port that is used again."""
    monkeypatch.setenv("OPENAI_API_KEY", uuid.uuid4().hex)


def mocking(*args: Any, **kwargs: Any) -> Any:
    return serving(*args, **{"key": os.environ["OPENAI_API_KEY"], **kwargs})


# ── a run that can be judged ─────────────────────────────────────────────────────────────────────────────────────────


def statement(k: int) -> str:
    return f"Read the number n and print n plus {1000 + k}."


REFERENCES = {statement(k): f"n = int(input())\nprint(n + {1000 + k})\n" for k in range(100)}
MODEL = knows(REFERENCES, right=(0.03, 0.08, 0.2), nearly=0.6)


def task_file(folder: Path, n: int) -> str:
    def tests(k: int, numbers: tuple[int, ...]) -> list[list[str]]:
        return [[f"{number}\n", f"{number + 1000 + k}\n"] for number in numbers]

    rows = [
        {"id": f"plus-{k}", "statement": statement(k), "kind": "stdio", "visible": tests(k, (1, 2, 3, 4)),
         "hidden": tests(k, (-5, 60, 7000))}
        for k in range(n)
    ]  # fmt: skip
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def command(tasks: str, out: Path, url: str, *more: str) -> list[str]:
    flags = ["--tasks", tasks, "--out", str(out), "--base-url", url, "--concurrency", str(CONCURRENCY), *SMALL, *more]
    return [sys.executable, str(ROOT / "run.py"), *flags]


def finish(argv: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=300, env={**os.environ, **env}, start_new_session=True
    )


def lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a log; each of them parses, or the test ends here."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


# What a run that was disturbed may have otherwise: times and costs, and the tier that a start's self-test chose.
FREE = {"seconds", "cost", "tier", "graded_under"}


def numbers(results: Any) -> Any:
    """Results without times and costs."""
    if isinstance(results, dict):
        return {key: numbers(value) for key, value in results.items() if key not in FREE}
    return [numbers(value) for value in results] if isinstance(results, list) else results


def rows(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines())


def owed_seeds(out: Path) -> set[int]:
    """The seeds of replies that were paid and wait for their grade."""
    return {Slot(*row["slot"]).seed(0) for row in lines(out / OWED)}


def told(out: Path) -> tuple[Any, list[str]]:
    return numbers(json.loads((out / "results.json").read_text())), rows(out / "rescued.jsonl")


# ── kill -9, at any moment, with thirty percent of all requests failing ──────────────────────────────────────────────


def test_killed_at_random_moments_and_continued_it_comes_to_the_same(tmp_path: Path):
    tasks, dice = task_file(tmp_path, 9), random.Random(SEED)
    with mocking(MODEL, latency=lambda request: 0.01) as mock:
        calm = finish(command(tasks, tmp_path / "calm", mock.url))
        assert calm.returncode == 0, calm.stderr
        expected = len(mock.answered)
    out = tmp_path / "chaos"
    with mocking(MODEL, faults=at_random(0.3, seed=SEED), latency=lambda request: 0.01) as mock:
        url = f"http://127.0.0.1:{mock.port}"
        on_disk: set[int] = set()  # seeds; each slot has its own
        open_at_kills: Counter[int] = Counter()
        kills = ended = 0
        for start in range(KILLS + 5):
            before, asked_before = len(mock.answered), len(mock.requests)
            process = subprocess.Popen(
                command(tasks, out, url, "--give-up-after", "2"),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
            if start < KILLS:
                target = before + dice.randrange(2 * expected // KILLS)  # so that most kills come before its end
                pause = dice.random() * 0.3
                while process.poll() is None and len(mock.answered) < target:
                    time.sleep(0.002)
                if start % 3 == 0:  # also before the first request of a start
                    time.sleep(pause)
                kills += process.poll() is None
                process.send_signal(signal.SIGKILL)
            _, said = process.communicate(timeout=300)
            assert process.returncode in (0, -signal.SIGKILL), said
            # Every line that is on disk parses, except that the last one may be torn.
            asked = [request for request in mock.requests[asked_before:] if request.path.endswith("completions")]
            seeds = Counter(request.seed for request in mock.answered[before:])
            assert not on_disk & {request.seed for request in asked if not request.probe}, "asked what was on disk"
            assert max(seeds.values(), default=0) <= 1, "answered twice within one start"
            on_disk = {row["seed"] for row in lines(out / ATTEMPTS)} | owed_seeds(out)
            lost = set(seeds) - on_disk
            open_at_kills.update(lost)
            assert len(lost) <= CONCURRENCY and (process.returncode or not lost)  # answers that nobody had read yet
            ended += process.returncode == 0
            if start >= KILLS and process.returncode == 0:
                break
        answered = len(mock.answered)
    assert kills >= KILLS // 2 and ended
    attempts = lines(out / ATTEMPTS)
    assert answered == len(attempts) + sum(open_at_kills.values())
    assert len({row["seed"] for row in attempts}) == len(attempts) == len(lines(tmp_path / "calm" / ATTEMPTS))
    assert told(out) == told(tmp_path / "calm")
    # What was sent and never came back is counted, and nothing else is.
    log = lines(out / EVENTS)
    sent = sum(row["event"] == "sent" for row in log)
    closed = sum(row["event"] in ("answered", "retry", "refused", "fault") for row in log)
    assert 0 <= sent - closed <= kills * CONCURRENCY
    assert sum(row["event"] == "answered" for row in log) <= answered


def test_faults_alone_change_nothing(tmp_path: Path):
    tasks = task_file(tmp_path, 6)
    for name, faults in (("calm", lambda request: None), ("rough", at_random(0.3, seed=SEED + 1))):
        with mocking(MODEL, faults=faults) as mock:
            ran = finish(command(tasks, tmp_path / name, mock.url))
            assert ran.returncode == 0, ran.stderr
            attempts = lines(tmp_path / name / ATTEMPTS)
            assert sorted(request.seed for request in mock.answered) == sorted(row["seed"] for row in attempts)
    assert told(tmp_path / "rough") == told(tmp_path / "calm")
    again = finish(command(tasks, tmp_path / "rough", "http://127.0.0.1:9"))
    assert again.returncode == 0 and "nothing is left to ask" in again.stderr


# ── endpoints that end a run ─────────────────────────────────────────────────────────────────────────────────────────

FINAL = {
    "dies": (None, "nothing answered"),
    "hangs": (Fault("hang"), "no complete answer within 1 s"),
    "drips": (Fault("drip", seconds=0.05), "no complete answer within 1 s"),
    "quota": (Fault(status=429, code="insufficient_quota", message="You have run out of credits."), "quota"),
    "come back tomorrow": (Fault(status=429, headers={"Retry-After": "86400"}), "86,400 s"),
    "key": (Fault(status=401, message="This key was revoked."), "This key was revoked."),
    "model": (Fault(status=404, code="model_not_found", message="The model was unloaded."), "The model was unloaded."),
    "overloaded": (Fault(status=503, message="No capacity."), "No capacity."),
}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run in peace: a folder with its tasks and what came out."""
    folder = tmp_path_factory.mktemp("calm")
    with serving(MODEL) as mock:
        ran = finish(command(task_file(folder, 2), folder / "out", mock.url))
        assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.parametrize("how", FINAL)
def test_an_endpoint_that_ends_in_the_middle_of_a_run(how: str, tmp_path: Path, calm: Path):
    """Exit code 4, one clear line, the command that continues; then that command, to the same numbers."""
    fault, words = FINAL[how]
    tasks, out = str(calm / "tasks.jsonl"), tmp_path / "out"
    with mocking(MODEL, faults=always(fault, after=20) if fault else always(Fault("reset"), after=20)) as mock:
        argv = command(tasks, out, mock.url, "--give-up-after", "0.05", "--request-timeout", "1")
        ended = finish(argv)
        assert ended.returncode == 4, ended.stderr
        *_, way_on = said = ended.stderr.strip().split("\n")
        (complaint,) = [line for line in said if line.startswith("run.py: ")]
        assert words in complaint and "Traceback" not in ended.stderr
        assert way_on == "to continue: python " + " ".join(argv[1:])
        kept = {row["seed"] for row in lines(out / ATTEMPTS)} | {
            Slot(*row["slot"]).seed(0) for row in lines(out / OWED)
        }
        assert kept and kept <= {request.seed for request in mock.answered}
        assert not (out / "results.json").exists() or json.loads((out / "results.json").read_text())["incomplete"]
    with mocking(MODEL) as mock:
        argv[argv.index("--base-url") + 1] = mock.url
        continued = finish(argv)
        assert continued.returncode == 0, continued.stderr
        asked = {request.seed for request in mock.answered}
        assert not kept & asked and kept | asked == {row["seed"] for row in lines(calm / "out" / ATTEMPTS)}
        assert len(asked) == len(mock.answered)
    assert told(out) == told(calm / "out")


def test_what_is_wrong_from_the_start_costs_nothing(tmp_path: Path):
    tasks = task_file(tmp_path, 2)
    with mocking(MODEL, key=KEY) as mock:
        for more, env, words in (
            ([], {"OPENAI_API_KEY": "sk-not-that-one"}, "Incorrect API key"),
            (["--model", "mock-modle"], {"OPENAI_API_KEY": KEY}, "The model `mock-modle` does not exist."),
        ):
            ended = finish(command(tasks, tmp_path / "out", mock.url, *more), **env)
            assert ended.returncode == 4 and words in ended.stderr and "Traceback" not in ended.stderr
        assert mock.chats == []
    ended = finish(command(tasks, tmp_path / "out", "http://127.0.0.1:9/v1"))
    assert ended.returncode == 4 and "http://127.0.0.1:9/v1" in ended.stderr
    ended = finish(command(tasks, tmp_path / "out", "http://me:sesame@127.0.0.1:9/v1"))
    assert ended.returncode == 2 and "OPENAI_API_KEY" in ended.stderr
    assert "sesame" not in ended.stderr.replace(" ".join(command("", tmp_path, "http://me:sesame@")), "")
    assert not list((tmp_path / "out").glob(ATTEMPTS)) or lines(tmp_path / "out" / ATTEMPTS) == []


# ── the cases of the endpoint, with the real command ─────────────────────────────────────────────────────────────────


def two_by_two(tmp_path: Path, mock: MockEndpoint, n: int = 2, samples: int = 2, *more: str) -> tuple[Any, list[Any]]:
    """n tasks, so many base samples, no arm that has anything to do: (the process, the attempts)."""
    flags = ["--base-samples", str(samples), "--particles", "1", "--rounds", "1", "--noise-runs", "0", "--arms", "solo"]
    argv = command(task_file(tmp_path, n), tmp_path / "out", mock.url, *flags, "--concurrency", "1", *more)
    ran = finish(argv)
    return ran, lines(tmp_path / "out" / ATTEMPTS)


def all_right(request: Request) -> str:
    return next((f"```python\n{code}```" for words, code in REFERENCES.items() if words in request.prompt), "ready")


def test_ep01_429s_are_waited_out_and_are_no_samples(tmp_path: Path):
    said = iter([{"Retry-After": "1"}, {"retry-after-ms": "200"}, {"Retry-After": "0.5"}])

    def busy(request: Request) -> Fault | None:
        return None if request.probe or (wait := next(said, None)) is None else Fault(status=429, headers=wait)

    with mocking(all_right, faults=busy) as mock:
        ran, attempts = two_by_two(tmp_path, mock)
        assert ran.returncode == 0, ran.stderr
        times = [request.time for request in mock.chats]
        assert [b - a >= least for a, b, least in zip(times, times[1:], (1.0, 0.2, 0.5), strict=False)] == [True] * 3
        assert len(mock.chats) == 7 and len(mock.answered) == len(attempts) == 4
    assert len({row["seed"] for row in attempts}) == 4 and all(row["passed"] for row in attempts)


def test_ep02_no_rate_for_samples_that_never_were(tmp_path: Path):
    with mocking(all_right, faults=always(Fault(status=429, code="insufficient_quota"), after=3)) as mock:
        ran, attempts = two_by_two(tmp_path, mock, 10, 2)
        assert ran.returncode == 4 and "quota" in ran.stderr and len(mock.chats) == 4
    owed = lines(tmp_path / "out" / OWED)  # answered, and not graded when the run ended
    assert len(attempts) + len(owed) == 3 and all(row["passed"] for row in attempts)
    reuse = finish([sys.executable, str(ROOT / "run.py"), "--reuse", "--json", "--out", str(tmp_path / "out")])
    results = json.loads(reuse.stdout)
    assert reuse.returncode == 0 and sum(results["p0_histogram"]) <= 1 and results["all_fail"] == 0
    assert results["incomplete"]["base_tasks"] >= 1


def test_ep05_ep09_a_bad_body_is_never_a_sample(tmp_path: Path):
    """Each sample first meets another one."""
    bad = [fault for fault in EVERY_FAULT if fault.kind not in ("status", "late", "last")]
    met: dict[int, Fault] = {}

    def first_time(request: Request) -> Fault | None:
        if request.probe or request.seed in met:
            return None
        return met.setdefault(request.seed, bad[len(met)])

    with mocking(all_right, faults=first_time) as mock:
        ran, attempts = two_by_two(tmp_path, mock, 1, len(bad), "--concurrency", "16")
        assert ran.returncode == 0 and "Traceback" not in ran.stderr, ran.stderr
        assert len(mock.chats) == 2 * len(bad) and len(attempts) == len(bad) == len(met)
    assert all(row["passed"] and row["tries"] == 2 for row in attempts)


def test_ep13_a_base_url_as_people_paste_it(tmp_path: Path):
    with mocking(all_right, lists_models=False) as mock:
        for k, form in enumerate(("", "/v1/")):
            folder = tmp_path / str(k)
            folder.mkdir()
            pasted = MockEndpoint(prefix=form)
            pasted.port = mock.port
            ran, attempts = two_by_two(folder, pasted, 1, 2, "--model", "mock-model")
            assert ran.returncode == 0 and len(attempts) == 2, ran.stderr


# ── the key ──────────────────────────────────────────────────────────────────────────────────────────────────────────

NOSY = """\
import os, glob
print(sorted(os.environ.items()))
for path in ["/proc/self/environ", *glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")]:
    try:
        print(open(path).read())
    except OSError as why:
        print(type(why).__name__)
"""


@pytest.mark.parametrize("status", [None, 400, 401, 429, 500])
def test_the_key_is_found_nowhere(status: int | None, tmp_path: Path):
    """Every log on, a server that echoes what it was sent in headers, errors and replies, and a program that looks for
    it: not the key, not its first eight characters, on disk, on the terminal, or in a command line."""

    def echoing(request: Request) -> str:
        return f"You sent {request.headers}.\n\n```python\n{NOSY}```\n"

    fault = Fault(status=status or 500, message=f"you sent Authorization: Bearer {KEY}, masked {KEY[:12]}***")
    every = Counter[str]()
    with mocking(echoing, key=KEY, faults=always(fault, after=2) if status else lambda request: None) as mock:
        argv = command(task_file(tmp_path, 2), tmp_path / "out", mock.url, "--verbose", "--give-up-after", "0.01")
        env = {"OPENAI_API_KEY": KEY, "OPENAI_LOG": "debug", "PYTHONASYNCIODEBUG": "1"}
        process = subprocess.Popen(
            argv, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while process.poll() is None and len(mock.answered) < 2:
            every.update(command_lines())
            time.sleep(0.01)
        every.update(command_lines())
        written = list(process.communicate(timeout=300))
        assert mock.answered[0].headers["authorization"] == f"Bearer {KEY}"
    assert process.returncode == (4 if status else 0) or (status == 400 and process.returncode in (0, 4)), written[1]
    written += [path.read_text(errors="replace") for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any("Bearer [key]" in text for text in written)
    for text in [*written, *every]:
        assert KEY[:8] not in text and KEY[-8:] not in text


def command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return found


def test_the_faults_of_the_suite_are_those_that_servers_have():
    """The list that the chaos run draws from holds each kind at least once."""
    kinds = {fault.kind for fault in EVERY_FAULT}
    documented = re.findall(r"([a-z_0-9]+)(?= \(| \|)", str(Fault.__doc__).split("kind: ")[1])
    assert kinds | {"hang", "drip"} >= {kind for kind in documented if "_" in kind or kind in ("close", "reset", "cut")}
    statuses = {fault.status for fault in EVERY_FAULT if fault.kind == "status"}
    assert statuses == {408, 409, 425, 429, 500, 502, 503, 504}
