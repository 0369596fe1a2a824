"""Which exception ended a program, and where: right for those that tell, harmless of those that lie.

What is expected of the honest ones is worked out by hand, and of real programs by Python itself: its own traceback.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import zlib
from base64 import b85decode
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import records
from arms.known import blind
from figures.regraded import regraded
from grader import Grader
from grading import protocol
from grading.raised import Raised, syntax_of, told
from swarm import ARMS, Attempt, swarm
from tasksets.task import Task, Test
from telling.packed import packed
from telling.shown import ended_by, whole
from telling.text import Paper
from tests.support.lay_out import attempt

Graded = Callable[[Callable[[Grader], Any]], Any]
SECRET = "Secret_of_the_test"


@pytest.fixture(scope="module")
def graded() -> Iterator[Graded]:
    """Runs `await work(grader)`, with one grader for all tests here."""
    loop, started, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    graders: list[Grader] = []

    async def live() -> None:
        async with Grader(workers=2) as grader:
            graders.append(grader)
            started.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(live(),))
    thread.start()
    assert started.wait(60)
    yield lambda work: asyncio.run_coroutine_threadsafe(work(graders[0]), loop).result(120)
    loop.call_soon_threadsafe(over.set)
    thread.join(60)
    loop.close()


def raised(graded: Graded, program: str, stdin: str = SECRET) -> tuple[str, str, int | None]:
    (result,) = graded(lambda grader: grader.run(program, [(stdin, "no such output")]))
    return result.outcome, result.error, result.error_line


HONEST = {
    "in a function": ("def f(x):\n    return 1 // x\n\nprint(f(0))\n", ("runtime_error", "ZeroDivisionError", 2)),
    "at import": ("import os\n\nraise KeyError('x')\n", ("runtime_error", "KeyError", 3)),
    "no Python": ("x = 1\nif x\n    print(1)\n", ("syntax_error", "SyntaxError", 2)),
    "indented": ("x = 1\n  y = 2\n", ("syntax_error", "IndentationError", 2)),
    "half a surrogate pair": ("x = 1\ny = '\ud800'\n", ("syntax_error", "UnicodeEncodeError", 2)),
    "without end": ("def f(n):\n    return f(n + 1)\nf(0)\n", ("runtime_error", "RecursionError", 2)),
    "a class of its own": ("class NoPath(Exception): pass\n\nraise NoPath\n", ("runtime_error", "NoPath", 3)),
    "of the library": ("import json\njson.loads('{')\n", ("runtime_error", "JSONDecodeError", 2)),
    "code made on the way": ("x = 3\nexec('\\n\\n1/0')\n", ("runtime_error", "ZeroDivisionError", 2)),
    "wrong code made on the way": ("\nexec('x = (')\n", ("runtime_error", "SyntaxError", 2)),
    "an exit status": ("import sys\nsys.exit(3)\n", ("runtime_error", "SystemExit", 2)),
    "an exit with words": ("import sys\n\nsys.exit('no')\n", ("runtime_error", "SystemExit", 3)),
    "words no file could hold": ("raise Exception('\\ud800')\n", ("runtime_error", "Exception", 1)),
    "several in one": ("raise ExceptionGroup('x', [ValueError(1)])\n", ("runtime_error", "ExceptionGroup", 1)),
    "no module": ("x = 1\nimport nothing_of_this_name\n", ("missing_module", "ModuleNotFoundError", 2)),
    "too much memory": ("x = [0] * (1 << 40)\n", ("memory_limit", "MemoryError", 1)),
    "a signal": ("import ctypes\nctypes.string_at(0)\n", ("runtime_error", "SIGSEGV", None)),
    "an end without a word": ("import os\nos._exit(4)\n", ("runtime_error", "", None)),
    "an end that is none": ("import sys\nsys.exit(0)\n", ("wrong_answer", "", None)),
    "caught": ("try:\n    1/0\nexcept ZeroDivisionError:\n    print(1)\n", ("wrong_answer", "", None)),
}


@pytest.mark.parametrize("name", HONEST)
def test_the_exception_and_its_line_are_kept(graded: Graded, name: str) -> None:
    program, wanted = HONEST[name]
    assert raised(graded, program) == wanted


CLASS = "class E({}):\n    {}\nraise E\n"
HOSTILE = {
    "named like the input": ("raise type(input(), (ValueError,), {})\n", ("ValueError", 1)),
    "named at length": ("raise type('A' * 10**6, (LookupError,), {})\n", ("LookupError", 1)),
    "named in markup": ("raise type('<script>alert(1)</script>', (Exception,), {})\n", ("Exception", 1)),
    "named in escapes": ("raise type('\\033[31m', (OSError,), {})\n", ("OSError", 1)),
    "renamed": ("class E(KeyError): pass\nE.__name__ = E.__qualname__ = input()\nraise E\n", ("KeyError", 3)),
    "says that it is another": (CLASS.format("ValueError", "__class__ = KeyError"), ("E", 3)),
    "cannot be printed": (CLASS.format("Exception", "__str__ = __repr__ = lambda self: 1 / 0"), ("E", 3)),
    "has no traceback": (CLASS.format("Exception", "__traceback__ = property(lambda self: 1 / 0)"), ("E", 3)),
    "a metaclass that leaves": (
        "class M(type):\n    __name__ = __mro__ = __flags__ = property(lambda c: exit(0))\n"
        "class E(Exception, metaclass=M): pass\nraise E\n",
        ("E", 4),
    ),
    "code without lines": (
        "c = compile('1/0', 'program.py', 'exec')\nexec(c.replace(co_linetable=b''))\n", ("ZeroDivisionError", 2)
    ),
    "lines that it does not have": (
        "c = compile('\\n' * 500 + '1/0', 'program.py', 'exec')\nexec(c)\n", ("ZeroDivisionError", 2)
    ),
    "a hook of its own": ("import sys\nsys.excepthook = lambda *a: sys.exit(input())\n1/0\n", ("ZeroDivisionError", 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_a_word_of_python_or_of_the_program_and_a_line_is_one_of_its_own(graded: Graded, name: str) -> None:
    program, wanted = HOSTILE[name]
    assert raised(graded, program) == ("runtime_error", *wanted)


ASSERTS = {
    "in a call, several of them in one process": (
        "def f(x):\n    y = 1\n    return y // x\n", ["assert f(0) == 1", "assert f(1) == 1", "assert f(0) == 2"],
        [("ZeroDivisionError", 3), ("", None), ("", None)],
    ),
    "in a call with a process of its own": (
        "x = []\ndef f(a):\n    x.append(a)\n    return x[9]\n", ["assert f(0) == 1"], [("IndexError", 4)]
    ),
    "at import": ("import os\n1/0\ndef f(): pass\n", ["assert f() == 1"], [("ZeroDivisionError", 2)]),
    "before any line of it": ("def g(): pass\n", ["assert f() == 1"], [("NameError", None)]),
    "where the judge asks": ("def f(a):\n    return a[9]\n", ["assert sorted(map(f, [[1]])) == 3"],
        [("IndexError", 2)]),
    "of the judge: not for anybody": (
        "def f():\n    return 1\n", [f"assert f() + {SECRET!r} == 2", f"assert {{'{SECRET}': 1}}[f()] == 1"],
        [("", None), ("", None)],
    ),
    "no plain value": ("class A: pass\ndef f():\n    return A()\n", ["assert f() == 1"], [("", None)]),
}  # fmt: skip


@pytest.mark.parametrize("name", ASSERTS)
def test_what_ends_a_call(graded: Graded, name: str) -> None:
    program, tests, wanted = ASSERTS[name]
    results = graded(lambda grader: grader.run(program, tests, "assert"))
    assert [(result.error, result.error_line) for result in results] == wanted


@pytest.mark.parametrize("prelude", ["import math\n", "import math", "from __future__ import annotations\nx = 1\n\n"])
def test_lines_are_the_programs_own_whatever_stands_above_it(graded: Graded, prelude: str) -> None:
    program = "from __future__ import division\n\ndef f(a):\n    return math.nothing if a else 1 / a\n"
    task = Task(
        "t", "t", "Say.", "assert", (Test("assert f(0) == 1", ""),), setup="", functions=("f",), prelude=prelude
    )
    grade = graded(lambda grader: grader.grade(f"```python\n{program}```", task))
    assert (grade.error, grade.error_line) == ("ZeroDivisionError", 4)


def test_of_an_error_in_what_the_task_gives_the_line_that_called_it_is_kept(graded: Graded) -> None:
    prelude, program = "def half(a):\n    return a / 0\n", "\ndef f(a):\n    b = half(a)\n    return b\n"
    for test, line in (("assert f(1) == 1", 3), ("assert half(1) == 1", None)):
        (result,) = graded(lambda grader, test=test: grader.run(program, [test], "assert", prelude=prelude))
        assert (result.error, result.error_line) == ("ZeroDivisionError", line)
    (result,) = graded(lambda grader: grader.run("\nprint(half(1))\n", [("", "1")], prelude=prelude))
    assert (result.error, result.error_line) == ("ZeroDivisionError", 2)


def test_a_grade_has_what_ended_its_first_failed_test(graded: Graded) -> None:
    program = "n = int(input())\nif n == 2:\n    raise LookupError\nif n > 8:\n    1 / 0\nprint(n)\n"
    visible = Test("1\n", "1\n"), Test("2\n", "2\n"), Test("x\n", "x\n")
    for tests, hidden, wanted in (
        (visible, (), ("LookupError", 3)),
        (visible[:1], (Test("9", "9"),), ("ZeroDivisionError", 5)),
        (visible[:1], (), ("", None)),
        ((Test("1", "2"), visible[1]), (), ("", None)),
    ):
        task = Task("t", "t", "Say.", "stdio", tests, hidden)
        grade = graded(lambda grader, task=task: grader.grade(f"```python\n{program}```", task))
        assert (grade.error, grade.error_line) == wanted


# ── notes, whoever wrote them ────────────────────────────────────────────────────────────────────────────────────────


@given(st.binary(max_size=255), st.binary(max_size=60), st.integers(-70, 255))
def test_whatever_is_noted_comes_to_a_word_of_the_program_or_of_python(
    note: bytes, program: bytes, status: int
) -> None:
    error, line = told(note, program, status)
    assert error == "" or error.isidentifier()
    assert line is None or 0 < line <= 1 + len(program)
    assert error.encode() in program or error in dir(__builtins__) or error.startswith("SIG") or len(error) < 23


def test_a_word_of_the_program_is_a_whole_one() -> None:
    def of(name: str, program: str, base: str = "Exception", line: int = 1) -> Raised:
        return told(protocol.NOTE.pack(line, *[0] * 7) + f"{name}\0{base}".encode(), program.encode(), 1)

    assert of("NoPath", "class NoPath(Exception): pass") == ("NoPath", 1)
    assert of("Path", "class NoPath(Exception): pass") == ("Exception", 1)
    assert of("NoPat", "class NoPath(Exception): pass") == ("Exception", 1)
    assert of("Pfad", "class Überpfad(Exception): pass") == ("Exception", 1)
    assert of("Überpfad", "class Überpfad(Exception): pass") == ("Überpfad", 1)
    assert of("a b", "a b") == ("Exception", 1) and of("", "x") == ("Exception", 1)
    assert of("nothing", "x", base="print") == ("", None)
    assert [of("KeyError", "a\nb\r\nc", line=n).line for n in (0, 1, 3, 5, 1 << 31)] == [None, 1, 3, None, None]
    assert (
        syntax_of("a\nb") == ("", None)
        and told(b"", b"", -11) == ("SIGSEGV", None)
        and told(b"", b"", -99) == ("", None)
    )


# ── where it is kept, and where it is not ────────────────────────────────────────────────────────────────────────────


def failed(visible: str = "RPPPP", **changes: Any) -> Attempt:
    return attempt("t", "star", visible=visible, code="1/0\n", outcome="runtime_error",
                   error="ZeroDivisionError", error_line=1, **changes)  # fmt: skip


def test_a_folder_of_an_older_version_stays_readable() -> None:
    row = asdict(failed())
    assert records.parse_attempt(records.dumps(row).encode()) == failed()
    del row["error"], row["error_line"]
    assert records.parse_attempt(records.dumps(row).encode()) == replace(failed(), error="", error_line=None)


def test_no_arm_learns_what_a_hidden_test_raised() -> None:
    assert (blind(failed()).error, blind(failed()).error_line) == ("ZeroDivisionError", 1)
    hidden = blind(failed("PPPPP", hidden="RPPP"))
    assert (hidden.error, hidden.error_line) == ("", None)


def test_no_prompt_knows_of_it() -> None:
    """The same walk with and without, over all arms: the same prompts, letter for letter."""
    task = Task("t", "t", "Say.", "stdio", tuple(Test(f"{n}\n", f"{n}\n") for n in range(5)), ())
    sent: dict[bool, list[str]] = {True: [], False: []}
    for keeps in sent:
        for name, arm in ARMS.items():
            flow, answers = swarm(task.shown(), arm, name, 4, 3, seed=1), None
            try:
                while True:
                    asks = flow.send(answers) if answers else next(flow)
                    sent[keeps] += [prompt.sha() for _, prompt in asks]
                    said = {"error": "ZeroDivisionError", "error_line": 2} if keeps else {}
                    answers = [attempt(*slot, visible="PRRRR", code=f"1/0 # {slot}", got="runtime_error", **said)
                               for slot, _ in asks]  # fmt: skip
            except StopIteration:
                continue
    assert sent[True] == sent[False] and len(set(sent[True])) > 10


def test_a_regrade_brings_its_own() -> None:
    program = sha256(b"1/0\n").hexdigest()
    check = {"task_id": "t", "program": program, "tests": "r/visible", "letters": "RPPPP", "rules": ""}
    (one,) = regraded([failed()], [{**check, "error": "KeyError", "error_line": 7}], "r")
    assert (one.error, one.error_line) == ("KeyError", 7)
    (one,) = regraded([failed()], [{**check, "letters": "WPPPP"}], "r")
    assert (one.error, one.error_line) == ("", None)


@pytest.mark.slow
def test_it_is_told_behind_the_outcome() -> None:
    assert ended_by(failed()) == " (ZeroDivisionError, line 1)"
    assert ended_by(replace(failed(), error_line=None)) == " (ZeroDivisionError)"
    assert ended_by(replace(failed(), error="")) == ""
    assert "\033" not in ended_by(replace(failed(), error="\033[31m"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, (_, (outcome, *_)) in HONEST.items() if outcome == "runtime_error"])
def test_python_itself_says_the_same(name: str, tmp_path: Path) -> None:
    """The traceback that an interpreter prints: its last line that is of the program, and the class at its end."""
    program, (_, error, line) = HONEST[name]
    (tmp_path / "program.py").write_text(program)
    run = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, input=SECRET)
    lines = re.findall(r'File "[^"]*program.py", line (\d+)', run.stderr)
    ends = re.findall(r"^(?:  [|] |  \+ )?([\w.]+)(?::|$)", run.stderr, re.M)
    if error in ("SystemExit", "SIGSEGV", ""):
        assert run.returncode != 0 and not lines
    else:
        assert int(lines[-1]) == line and any(end.split(".")[-1] == error for end in ends)


@pytest.mark.slow
def test_the_page_and_the_terminal_name_it() -> None:
    task = Task("t", "t", "Say.", "stdio", tuple(Test(f"{n}\n", f"{n}\n") for n in range(5)), ())
    chunk = packed(task, [failed(), failed("PPPPP", hidden="WPPP", passed=False)], {}, 1000)
    columns = json.loads(zlib.decompress(b85decode(chunk.replace(",", "<")), -15))["columns"]
    assert columns["error"][0] == "ZeroDivisionError" and columns["line"][0] == 1
    assert "runtime error (ZeroDivisionError, line 1), 80.0% of" in whole(task, failed(), None, Paper(80, False))
