"""What a command shows while it works: a clock on a terminal, a line elsewhere, links, the bar."""

from __future__ import annotations

import asyncio
import os
import pty
import queue
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from commands import console, sampling

ROOT = Path(__file__).parent.parent


def on_a_terminal(program: str, columns: int = 80) -> str:
    """All that a program writes to a terminal of so many columns."""
    try:
        ours, theirs = pty.openpty()
    except OSError as why:
        pytest.skip(f"no terminal to be had here: {why}")
    termios.tcsetwinsize(theirs, (24, columns))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | {"TERM": "xterm"}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=theirs, stdout=theirs, env=env) as child:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            said += piece
        assert child.wait() == 0, said
    os.close(ours)
    return said.decode()


BUSY = """
import sys, time
from commands.console import busy, note
with busy("asking nobody"):
    time.sleep(3.5)
    note("a line of the log")
note("over")
"""


@pytest.mark.slow
def test_on_a_terminal_a_clock_runs_and_is_gone_at_the_end():
    said = on_a_terminal(BUSY)
    assert re.search(r"asking nobody ... 00:0[1-3]", said)
    assert [line.split("\r")[-1] for line in said.split("\r\n")][-3:] == ["a line of the log", "over", ""]


PULSE = """
import sys, time
from commands import pulse
pulse.PATIENCE, pulse.BEAT = 0.02, 0.01
pulse.begin()
while not pulse._DRAWN[0]:
    time.sleep(0.01)
from commands.console import busy, note, say
note("a line of the log")
while not pulse._DRAWN[0]:
    time.sleep(0.01)
say("a report")
with pulse.Rests():
    with pulse.Rests():
        pass
    assert not pulse._DRAWN[0]
    time.sleep(0.1)
    assert not pulse._DRAWN[0]
"""


def test_a_silence_has_a_clock_that_makes_room_for_what_is_said():
    said = on_a_terminal(PULSE)
    shown = r"(\r\x1b\[K\.\.\. \d+ s)+\r\x1b\[K"
    assert re.fullmatch(rf"{shown}a line of the log\r\n{shown}a report\r\n({shown})?", said), said


def test_in_a_log_there_is_no_such_clock():
    program = PULSE.split("while")[0] + "time.sleep(0.1)\nassert not pulse._DRAWN[0]\n"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE, check=True)


def test_elsewhere_a_line_where_it_lasts(monkeypatch):
    said: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(console, "note", said.put)
    with console.busy("reading"):
        pass
    assert said.empty()
    monkeypatch.setattr(console, "PATIENCE", 0.01)
    with console.busy("reading"):
        assert said.get(timeout=60) == "reading ..."
    assert said.empty()
    monkeypatch.setattr(console, "AGAIN", 0.02)
    with console.busy("reading"):
        assert [said.get(timeout=60) for _ in range(3)] == ["reading ...", "reading ... 0 s", "reading ... 0 s"]


def test_what_goes_wrong_meanwhile_is_not_swallowed():
    with pytest.raises(KeyError), console.busy("reading"):
        raise KeyError


BAR = """
import asyncio
from commands.sampling import Watch
async def work():
    watch = Watch(944, 8, there=25)
    watch.tokens = 4771
    with watch:
        watch.rescued.add("t")
        await asyncio.sleep(3.2)
asyncio.run(work())
"""


@pytest.mark.slow
def test_the_bar_is_there_at_once_and_whole_in_eighty_columns():
    said = on_a_terminal(BAR)
    assert "continuing: 25 of at most 944 attempts are there" in said
    drawn = [line for line in said.replace("\r", "\n").split("\n") if "25/944" in line]
    assert any(re.search(r"00:0[1-3]", line) for line in drawn)
    assert all(len(line) <= 80 and line.rstrip().endswith("rescued 1, tokens 4,771") for line in drawn[1:])


def test_in_a_log_the_first_line_comes_soon(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(sampling, "note", said.append)
    monkeypatch.setattr(sampling, "FIRST", 0.01)

    async def work() -> None:
        with sampling.Watch(10):
            while not said:
                await asyncio.sleep(0.01)

    asyncio.run(work())
    assert said == ["0 of at most 10 attempts, 0/min, nothing yet", "0 attempts done, at most 10 left"]
