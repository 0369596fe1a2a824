"""Ctrl-C at any moment: from the first import to the last picture it is exit 130, one line, and no traceback.

INTERRUPT_MOMENTS (10) sets how many moments of a report, a dry run and a real run the slow suite tries.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.mock_endpoint import serving

ROOT = Path(__file__).parent.parent
COMMANDS = sorted(
    path.name for path in ROOT.glob("*.py") if "\ndef main(" in path.read_text() and path.name != "grader.py"
)  # grader.py --serve is started by programs, and ends with them

# Runs a command as `python COMMAND ...` does, and says when Ctrl-C is in its hands.
START = """
import sys
from commands import interrupt
at_once = interrupt.at_once
def saying():
    at_once()
    print("READY", file=sys.stderr, flush=True)
interrupt.at_once = saying
sys.argv = sys.argv[1:]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
"""

TORN = re.compile(r"Traceback|Exception ignored|Fatal|[a-z]Error\b|never retrieved|core dumped")
SMALL = ["--base-samples", "2", "--particles", "2", "--rounds", "2", "--concurrency", "4", "--workers", "1"]


class Started:
    """A command in a session of its own, so that Ctrl-C reaches all its processes, as on a terminal."""

    def __init__(self, argv: list[str], url: str = "http://127.0.0.1:9/v1") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *argv], cwd=ROOT, env={**os.environ, "OPENAI_BASE_URL": url},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self.process.stderr
        for line in self.process.stderr:
            if line == "READY\n":
                break
        self.start = time.monotonic()

    def at_library(self, name: str) -> bool:
        """Ctrl-C as soon as a library is mapped, and has not yet been set up."""
        return self.interrupt(lambda: name in Path(f"/proc/{self.process.pid}/maps").read_text())

    def interrupt(self, when: Callable[[], bool], times: int = 1) -> bool:
        """Ctrl-C as soon as something holds; whether the command was still there. It must end as it is to."""
        while self.process.poll() is None and not when():
            time.sleep(0.001)
        alive = self.process.poll() is None
        for _ in range(times):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGINT)
                time.sleep(0.05 if times > 1 else 0)
        _, err = self.process.communicate(timeout=60)
        assert not TORN.search(err), err
        assert self.process.returncode == (130 if alive else 0), (self.process.returncode, err)
        assert err.count("interrupted") == alive, err
        return alive

    def after(self, seconds: float) -> bool:
        return self.interrupt(lambda: time.monotonic() - self.start > seconds)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished dry run, to be told."""
    out = tmp_path_factory.mktemp("finished") / "out"
    command = [sys.executable, "run.py", "--dry-run", *SMALL, "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return out


# ── what makes it so ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_looks_after_ctrl_c_before_anything_else(command):
    body = ast.parse((ROOT / command).read_text()).body
    first = next(node for node in body[1:] if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"))
    assert ast.unparse(first).split("\n") == [
        "if __name__ == '__main__':",
        "    from commands import interrupt",
        "    interrupt.at_once()",
    ]
    assert ast.unparse(body[-1]).endswith("interrupt.leave(main)")


def test_what_looks_after_it_imports_what_every_interpreter_has():
    for name, beside in {"interrupt.py": {"commands"}, "pulse.py": set()}.items():
        tree = ast.parse((ROOT / "commands" / name).read_text())
        at_start = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in at_start}
        assert names - {"__future__", "os"} - beside <= set(sys.builtin_module_names)


@pytest.mark.slow
def test_a_command_that_ends_by_itself_says_all_it_has_to_say():
    said = subprocess.run([sys.executable, "run.py", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout.endswith("show program's version number and exit\n")
    said = subprocess.run([sys.executable, "run.py", "--nonsense"], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 2 and said.stderr.count("\n") == 1


# ── at some moments, and at all ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_while_a_command_is_importing(command, tmp_path):
    argv = [command, str(tmp_path)] if command == "report.py" else [command, "--out", str(tmp_path)]
    assert Started(argv).interrupt(lambda: True)


def test_it_says_how_to_go_on_and_not_to_move_the_folder_aside_again(tmp_path):
    command = Started(["run.py", "--dry-run", "--fresh", "--out", str(tmp_path)])
    os.killpg(command.process.pid, signal.SIGINT)
    _, err = command.process.communicate(timeout=60)
    assert err == "run.py: interrupted; what was written stays, and the same command goes on, without --fresh\n"


def ten(part: int, start: Callable[[], Started]) -> None:
    """Ctrl-C at ten moments, others for each part, spread evenly over all that the command takes."""
    whole = start()
    whole.process.communicate(timeout=120)
    seconds, hit, tried = time.monotonic() - whole.start, 0, 10 * part
    while hit < 10:
        tried += 1
        assert tried < 10 * part + 30, f"{hit} of {tried - 10 * part} came before the end"
        hit += start().after(seconds * ((tried * 0.618034) % 1))


PARTS = pytest.mark.parametrize("part", range(int(os.environ.get("INTERRUPT_MOMENTS", "10")) // 10))


@pytest.mark.slow
@PARTS
def test_ctrl_c_at_any_moment_of_a_report(finished, part):
    ten(part, lambda: Started(["run.py", "--reuse", "--out", str(finished)]))


@pytest.mark.slow
@PARTS
def test_ctrl_c_at_any_moment_of_a_dry_run(tmp_path, part):
    outs = iter(range(1000))
    ten(part, lambda: Started(["run.py", "--dry-run", *SMALL, "--out", str(tmp_path / str(next(outs)))]))


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Callable[[str], Started]]:
    """Starts a run of three tasks against an endpoint that is always wrong, in a folder."""
    rows = [{"id": f"t{k}", "statement": f"Print {k} times n.", "kind": "stdio", "visible": [["1\n", f"{k}\n"]],
             "hidden": [["5\n", f"{5 * k}\n"]]} for k in range(2, 5)]  # fmt: skip
    (tmp_path / "three.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["run.py", "--tasks", str(tmp_path / "three.jsonl"), *SMALL]

    def wrong(request):
        return f"```python\nprint({request.dice().randrange(10**9)})\n```"

    with serving(reply=wrong, latency=lambda request: 0.1) as mock:
        yield lambda out: Started([*flags, "--out", str(tmp_path / out)], mock.url)


@pytest.mark.slow
@PARTS
def test_ctrl_c_at_any_moment_of_a_real_run(asked, part):
    """The odd parts in one folder, where each start goes on where the last one was stopped."""
    starts = iter(range(1000))
    ten(part, lambda: asked(f"out{next(starts) // (5 if part % 2 else 1)}"))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 2.0, 2.5, 3.0, 3.5])
def test_ctrl_c_three_times_is_no_traceback_either(asked, seconds):
    command = asked("out")
    command.interrupt(lambda: time.monotonic() - command.start > seconds, times=3)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what a process has mapped")
@pytest.mark.parametrize(
    "library", ["_multiarray_umath", "_ccallback_c", "ft2font", "_path.", "_imaging", "_backend_agg"]
)
def test_ctrl_c_while_a_library_starts(finished, library):
    for _ in range(3):
        assert Started(["run.py", "--reuse", "--out", str(finished)]).at_library(library)
