"""The same run on a cluster of three nodes on loopback, against the run of one process: as calm, and as disturbed.

It needs a Python with Ray beside the project: RAY_PYTHON names one; with RAY=1 a virtual environment is made for this
file from the package index that pip uses, and goes with it. Left out: real machines, and a network between them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from records import ATTEMPTS, CARDS, CHECKS, EVENTS, OWED
from tests.support.mock_endpoint import Fault, MockEndpoint, Request, always, at_random, serving
from tests.test_chaos import MODEL, SMALL, lines, owed_seeds, task_file, told

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
NODES = ROOT / "tests" / "support" / "ray_nodes.py"
# Ray puts a machine's own address in the place of a loopback one, unless it is told that clusters are not for this one.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
CONCURRENCY = 24
TASKS = 12
TORN = re.compile(r"Traceback|ray::|\x1b\[|Task exception|never retrieved")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    if there := os.environ.get("RAY_PYTHON"):
        return there
    if importlib.util.find_spec("ray"):
        return sys.executable
    if "RAY" not in os.environ:
        pytest.skip("RAY=1 makes an environment with Ray for this, RAY_PYTHON names a Python that has it")
    made = tmp_path_factory.mktemp("ray") / "venv"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    subprocess.run([made / "bin" / "pip", "install", "--quiet", "--editable", f"{ROOT}[ray]"], check=True, timeout=1500)
    return str(made / "bin" / "python")


class Nodes:
    """Three, each with one CPU."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, str(NODES), "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, **LOOPBACK},
        )  # fmt: skip
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("127.0.0.1:")

    def tell(self, word: str) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(120)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def nodes(python: str) -> Iterator[Nodes]:
    made = Nodes(python)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", uuid.uuid4().hex)


def mocking(*args: Any, **kwargs: Any) -> Any:
    return serving(*args, **{"key": os.environ["OPENAI_API_KEY"], **kwargs})


class Runs:
    """The command, here or on the nodes."""

    def __init__(self, python: str, nodes: Nodes, folder: Path, tasks: str) -> None:
        self.python, self.nodes, self.folder, self.tasks = python, nodes, folder, tasks

    def start(self, out: str, mock: MockEndpoint, *more: str, ray: bool = True) -> subprocess.Popen[str]:
        where = ["--ray", self.nodes.address] if ray else []
        flags = ["--tasks", self.tasks, "--out", str(self.folder / out), "--base-url", mock.url, "--concurrency",
                 str(CONCURRENCY), *SMALL[:-2], "--workers", "1", *where, *more]  # fmt: skip
        return subprocess.Popen([self.python, str(ROOT / "run.py"), *flags], stdout=subprocess.PIPE, cwd=self.folder,
                                stderr=subprocess.PIPE, text=True, start_new_session=True,
                                env={**os.environ, **LOOPBACK})  # fmt: skip

    def whole(self, out: str, mock: MockEndpoint, *more: str, ray: bool = True) -> tuple[int, str]:
        process = self.start(out, mock, *more, ray=ray)
        try:
            _, said = process.communicate(timeout=300)
        finally:
            process.kill()
        assert not TORN.search(said), said
        return process.returncode, said


@pytest.fixture
def runs(python: str, nodes: Nodes, tmp_path: Path, tasks: str) -> Runs:
    return Runs(python, nodes, tmp_path, tasks)


def slow(request: Request) -> float:
    return 0.05


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> str:
    return task_file(tmp_path_factory.mktemp("tasks"), TASKS)


@pytest.fixture(scope="module")
def calm(python: str, nodes: Nodes, tasks: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    runs = Runs(python, nodes, tmp_path_factory.mktemp("calm"), tasks)
    with serving(MODEL, key=os.environ.get("OPENAI_API_KEY")) as mock:
        code, said = runs.whole("out", mock, ray=False)
    assert code == 0, said
    return runs.folder / "out"


def essence(out: Path) -> list[str]:
    """Attempts without what time has a part in."""
    rows = [{k: v for k, v in row.items() if k not in ("time", "cpu_seconds", "latency_seconds", "tries")}
            for row in lines(out / ATTEMPTS)]  # fmt: skip
    return sorted(json.dumps(row) for row in rows)


def on_disk(out: Path) -> set[int]:
    return {row["seed"] for row in lines(out / ATTEMPTS)} | owed_seeds(out)


def wait(until: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not until() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert process.poll() is None and until()


def equal(out: Path, calm: Path) -> None:
    assert essence(out) == essence(calm)
    assert told(out) == told(calm)
    assert (out / "rescued.jsonl").read_bytes() == (calm / "rescued.jsonl").read_bytes()
    assert (out / CARDS).read_bytes() == (calm / CARDS).read_bytes()


def test_a_run_on_three_nodes_is_the_run_of_one_process(runs: Runs, calm: Path) -> None:
    with mocking(MODEL, faults=at_random(0.1, seed=3)) as mock:
        code, said = runs.whole("out", mock)
        assert code == 0 and "3 nodes play" in said, said
        assert max(Counter(request.seed for request in mock.answered).values()) == 1
        out, n = runs.folder / "out", len(mock.requests)
        equal(out, calm)
        # Each request has a number of its own, and each one that was sent came to an end.
        log = lines(out / EVENTS)
        sent = [(row["request"], row["tries"]) for row in log if row["event"] == "sent"]
        assert len(set(sent)) == len(sent) == sum(row["event"] in ("answered", "retry") for row in log)
        assert not (out / OWED).read_text()
        grader = [row for row in log if row["event"] == "grader"]
        assert sum(row["graded"] + row["repeated"] for row in grader) >= len(lines(out / ATTEMPTS)) * 0.9
        code, said = runs.whole("out", mock)
        assert code == 0 and "nothing is left to ask" in said and len(mock.requests) == n


def test_a_node_that_dies_costs_what_was_in_flight(runs: Runs, calm: Path) -> None:
    out = runs.folder / "out"
    with mocking(MODEL, latency=slow) as mock:
        process = runs.start("out", mock)
        wait(lambda: len(lines(out / ATTEMPTS)) > 100, process)
        before = on_disk(out)
        n = len(mock.requests)
        runs.nodes.tell("kill")
        try:
            _, said = process.communicate(timeout=300)
        finally:
            runs.nodes.tell("add")
        assert process.returncode == 0 and not TORN.search(said), said
        assert "is gone: its tasks begin again elsewhere" in said
        again = {request.seed for request in mock.requests[n:] if not request.probe}
        assert not again & before, "asked what was on disk"
        twice = [seed for seed, k in Counter(request.seed for request in mock.answered).items() if k > 1]
        assert len(twice) <= CONCURRENCY / 3 + 1
    equal(out, calm)
    attempts = lines(out / ATTEMPTS)
    assert len({row["seed"] for row in attempts}) == len(attempts)


@pytest.mark.parametrize("then_ray", [True, False])
def test_the_process_that_writes_is_killed_and_started_again(runs: Runs, calm: Path, then_ray: bool) -> None:
    out = runs.folder / "out"
    with mocking(MODEL, latency=slow) as mock:
        lost = 0
        for most in (60, 200):
            process = runs.start("out", mock)
            wait(lambda most=most: len(lines(out / ATTEMPTS)) > most, process)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            time.sleep(1)  # the players end with it
            n = len(mock.requests)
            time.sleep(0.5)
            assert len(mock.requests) == n, "somebody still asks"
            kept = on_disk(out)
            lost += len({request.seed for request in mock.answered if not request.probe} - kept)
        code, said = runs.whole("out", mock, ray=then_ray)
        assert code == 0, said
        assert not {request.seed for request in mock.requests[n:] if not request.probe} & kept, "asked what was on disk"
        answered = [request for request in mock.answered if not request.probe]
        assert len(answered) == len(lines(out / ATTEMPTS)) + len(answered) - len({r.seed for r in answered})
        assert lost <= 2 * CONCURRENCY * 2
    equal(out, calm)


ENDS = {
    "it dies": (Fault("close"), "nothing answered at"),
    "the key": (Fault(status=401, message="This key was revoked."), "This key was revoked."),
    "the quota": (Fault(status=429, code="insufficient_quota", message="You have run out of credits."), "quota"),
}


@pytest.mark.parametrize("how", ENDS)
def test_an_endpoint_that_ends_the_run_ends_it_as_locally(runs: Runs, calm: Path, how: str) -> None:
    fault, says = ENDS[how]
    ends = {}
    for name, ray in (("near", False), ("far", True)):
        with mocking(MODEL, faults=always(fault, after=150), latency=lambda request: 0.02) as mock:
            code, said = runs.whole(name, mock, "--give-up-after", "0.05", ray=ray)
            assert code == 4 and says in said and "to continue: python" in said, said
            ends[name] = re.sub(r"\d+", "N", next(line for line in said.splitlines() if line.startswith("run.py: ")))
            paid = {request.seed for request in mock.answered if not request.probe}
            lost = paid - on_disk(runs.folder / name)  # answered, and not yet read when the run was ended
            assert len(lost) <= (0 if how == "it dies" else CONCURRENCY), "something paid is lost"
    assert ends["near"].split("(")[0] == ends["far"].split("(")[0]
    with mocking(MODEL) as mock:
        assert runs.whole("far", mock)[0] == 0
        assert not {request.seed for request in mock.requests if not request.probe} & (paid - lost)
    equal(runs.folder / "far", calm)


@pytest.mark.parametrize("limit", ["calls=150", "tokens=20000"])
def test_a_limit_holds_for_all_nodes_together(runs: Runs, calm: Path, limit: str) -> None:
    spent = {}
    for name, ray in (("near", False), ("far", True)):
        with mocking(MODEL) as mock:
            code, said = runs.whole(name, mock, "--stop-after", limit, ray=ray)
            assert code == 3 and f"--stop-after {limit} is reached; everything is saved" in said, said
            assert "to continue: python" in said
            asked = [request for request in mock.answered if not request.probe]
            spent[name] = len(asked)
            assert len(asked) == len(lines(runs.folder / name / ATTEMPTS)) and not owed_seeds(runs.folder / name)
    if limit.startswith("calls"):
        assert spent == {"near": 150, "far": 150}
    assert abs(spent["near"] - spent["far"]) <= 2 * CONCURRENCY
    with mocking(MODEL) as mock:
        assert runs.whole("far", mock)[0] == 0
    equal(runs.folder / "far", calm)


def test_ctrl_c_ends_the_draws_elsewhere(runs: Runs, calm: Path) -> None:
    out = runs.folder / "out"
    with mocking(
        MODEL, latency=lambda request: 0.0 if request.probe else 3.0 if request.number > 150 else 0.01
    ) as mock:
        process = runs.start("out", mock)
        wait(lambda: len(mock.requests) > 170, process)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130 and "run.py: interrupted; everything is saved" in said, said
        assert "to continue: python" in said and not TORN.search(said), said
        assert time.monotonic() - began < 15
        n = len(mock.requests)
        time.sleep(3.5)
        assert len(mock.requests) == n and any(request.gone for request in mock.requests[-CONCURRENCY:])
        kept = on_disk(out)
        mock.latency = lambda request: 0.0
        assert runs.whole("out", mock)[0] == 0
        assert not {request.seed for request in mock.requests[n:] if not request.probe} & kept
    equal(out, calm)


def told_of(out: Path) -> tuple[Any, ...]:
    """What grading wrote: each row once, in whatever order, but for the seconds; and what follows from it."""
    rows = sorted(json.dumps({**row, "cpu_seconds": 0}, sort_keys=True) for row in lines(out / CHECKS))
    files = [
        json.loads((out / name).read_text()) for name in ("calibration.json", "audit.json") if (out / name).exists()
    ]
    return rows, files, told(out)


GRADING = [("run.py", "--regrade"), ("calibrate.py", "--population", "all"), ("audit.py",)]


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("command", GRADING)
def test_what_grades_alone_does_so_on_the_nodes(runs: Runs, calm: Path, command: tuple[str, ...], dies: bool) -> None:
    script, *flags = command
    flags += ["--tasks", runs.tasks] if script == "audit.py" else []
    said, found = {}, {}
    for name, where in (("near", []), ("far", ["--ray", runs.nodes.address])):
        out = runs.folder / name
        shutil.copytree(calm, out)
        held = len(lines(out / CHECKS))
        process = subprocess.Popen(
            [runs.python, str(ROOT / script), *flags, "--out", str(out), "--workers", "1", *where], text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **LOOPBACK},
        )  # fmt: skip
        killed = dies and name == "far"
        try:
            if killed:
                while process.poll() is None and len(lines(out / CHECKS)) <= held:
                    time.sleep(0.01)
                runs.nodes.tell("kill")
            _, said[name] = process.communicate(timeout=300)
        finally:
            if killed:
                runs.nodes.tell("add")
        assert process.returncode == 0 and not TORN.search(said[name]), said[name]
        found[name] = told_of(out)
    gone = said["far"].count("does not grade")  # one that was killed before is known a while
    grading = f"3 of {3 + gone} nodes grade" if gone else "3 nodes grade"
    assert gone <= 1 and re.search(rf"{grading}, with [23] workers", said["far"]), said["far"]
    assert found["far"] == found["near"] and len(found["far"][0]) >= TASKS


def test_more_workers_than_a_node_has(runs: Runs, calm: Path) -> None:
    out = ("--out", str(runs.folder / "out"), "--ray", runs.nodes.address, "--workers", "2")
    for script, says in (("run.py", "does not play"), ("audit.py", "does not grade")):
        dry = ("--dry-run",) if script == "run.py" else ("--tasks", runs.tasks)
        done = subprocess.run([runs.python, str(ROOT / script), *dry, *out], capture_output=True, text=True,
                              timeout=120, env={**os.environ, **LOOPBACK})  # fmt: skip
        said = done.stderr.splitlines()
        nodes = sum(line.startswith("warning: the node") for line in said)  # one that was killed is known a while
        assert done.returncode == 5 and sum(says in line for line in said) == nodes in (3, 4), done.stderr
        assert any("has 1 CPU and --workers asks for 2: give fewer" in line for line in said[-3:]), done.stderr


def test_where_there_is_no_cluster(runs: Runs) -> None:
    with mocking(MODEL) as mock:
        for address, says in (("127.0.0.1:9", "no cluster at --ray 127.0.0.1:9"), ("ray://127.0.0.1:10001", "ray://")):
            runs.nodes, old = type("No", (), {"address": address})(), runs.nodes  # type: ignore[assignment]
            code, said = runs.whole("out", mock)
            runs.nodes = old
            assert code == 2 and says in said and len(said.splitlines()) < 25, said


def test_an_arm_of_a_file_travels(runs: Runs) -> None:
    (runs.folder / "mine.py").write_text(
        "from swarm import bare\n\n\ndef plain(seat):\n    return bare(seat.task, seat.style)\n"
    )
    with mocking(MODEL) as mock:
        code, said = runs.whole("out", mock, "--arms", "resample,mine.py:plain", "--limit", "3")
    assert code == 0, said
    assert {row["arm"] for row in lines(runs.folder / "out" / ATTEMPTS)} == {"base", "resample", "plain"}
