"""No reply holds the host: whatever reads one, a program or its output takes time linear in its size, for any shape.

CPU seconds of this process at n and at 4n, over shapes that a reader could stumble over. Left out: what a reader makes
of a reply, which is test_extract.py.
"""

import time
from collections.abc import Callable

import pytest

from asking.reply import split_reasoning
from grader import extract_code, outputs_match
from grading.compare import clip_start
from grading.extract import extract_sql, probability
from grading.outline import outline_of
from grading.reasoning import BEGINS, ENDS, OPENS
from swarm import fenced as fence_of
from swarm import same_program
from tests.support.thin import thinned
from tests.test_extract import PIECES

FINAL = "print(sum(map(int, input().split())))"


@pytest.mark.slow
@pytest.mark.parametrize("text", thinned([" ", "<think ", "<|start|>", "◁think", "</think", "</think>`", "[THINK"], 4))
def test_markers_are_found_in_linear_time(text):
    began = time.process_time()
    for pattern in (OPENS, BEGINS, ENDS):
        pattern.search(text * 5), pattern.match(text * 100_000)
    OPENS.search(text * 100_000), ENDS.split(text * 100_000)
    assert time.process_time() - began < 2


# What a reader could stumble over, to be repeated: fences, quotes, tags, brackets, blanks, comments, tokens, nests.
SHAPES = [
    *PIECES,
    *("`", "`\n", "```\n", "```python\n", "``` ```", "~~~python\n", "> ", "> ```\n", "- ```\n", "\t", " \n", "1. "),
    *("x = 1\n```\n```\n", "```\nx = 1\n```\n```\n", "# x\nx = 1\n", "print(1)```\n", "```python print(1)```\n"),
    *("'''\n```\n", '"""\n```\n```python\n', "'", "'a", '"', "''", "\\\n", "[", "(", "x = [\n", "x[", "x[]=", "f, f, "),
    *(
        "a=b=",
        "a,",
        "lambda:",
        "input(",
        "input('",
        "class A\n    ",
        "    x\n",
        "import a, ",
        "import a\n",
        "for x in ",
    ),
    *("```python\ninput(#\n```\n", "```python\nx1 = y1\n```\n", "```python\ndef f(): ...\n```\n"),
    *("```python\nfrom a import f\n```\n", "```python\nfrom __future__ import a\n```\n", "from __future__ import (\n"),
    *("def f(x):\n", "def f(", "if x:", "case ", "a.b.", "@", "1", "1 ", "1.", "0.5\n", "-1%", "1e9 ", "\u2028", "é"),
    *(
        "<think <thinking>",
        " </think> a",
        "</think>\n",
        "<think>\n",
        "<|start|>a",
        "<|channel|>",
        "[THINK]",
        "[/THINK]\n",
    ),
    *(
        "<|END_THINKING|>\n",
        "Here is my response:\n",
        "assistantfinal",
        "analysisWe need ",
        "</s>",
        "</s>\n",
        "<|x|>\n",
    ),
    *("print(1)</s>\n", "x = 1<|im_end|>\n", "<answer>", "<answer></answer>", "<|", "<s>", "[e~["),
    *(
        "/*",
        "; /*",
        "/**/",
        "--",
        "--\n",
        ";",
        "\n\n(",
        "SELECT 1\n\n",
        "SELECT 1;",
        "WITH a (\n",
        'WITH "\n',
        "WITH [\n",
    ),
    *("WITH a(b) AS (\n", "WITH\n", "(SELECT ", "\n\n\n\nSELECT 1"),
]


def outline(code: str) -> None:
    outline_of.cache_clear()
    outline_of(code)


# Every reader of a reply, a program, an output; and the CPU seconds that it may take for a megabyte of anything.
READERS: dict[str, tuple[Callable[[str], object], float]] = {
    "program": (extract_code, 20),
    "program fenced": (lambda text: extract_code("```python\n" + text), 20),
    "program loose": (lambda text: extract_code("x = input()\n" + text), 20),
    "functions": (lambda text: extract_code(text, ("f", "g")), 20),
    "program behind thoughts": (lambda text: extract_code(f"<think>{text}</think>\n{text}"), 40),
    "query": (extract_sql, 5),
    "query loose": (lambda text: extract_sql("SELECT 1 " + text), 5),
    "number": (probability, 5),
    "reasoning": (lambda text: split_reasoning({"content": text}), 2),
    "reasoning open": (lambda text: split_reasoning({"content": "<think>" + text}), 2),
    "outline": (outline, 10),
    "same program": (same_program, 1),
    "fence": (fence_of, 1),
    "clip": (lambda text: clip_start(text, text[1:]), 5),
    "match": (lambda text: outputs_match(text + "x", text), 5),
}


def seconds_of(reader: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    reader(text)
    return time.process_time() - began


def in_linear_time(name: str, size: int, times: int) -> list[str]:
    """The shapes for which that reader takes more than six times as long at four times the size, or too long at all."""
    reader, bound = READERS[name]
    slow = []
    for shape in SHAPES:
        small, large = shape * (size // len(shape)), shape * (4 * size // len(shape))
        for _ in range(times):  # a busy machine may take one of them for slow, and not each time
            first, second = min(seconds_of(reader, small) for _ in range(2)), seconds_of(reader, large)
            fast = second < 0.01 or (second < 6 * first and second < bound * len(large) / 1e6)
            if fast:
                break
        if not fast:
            slow.append(f"{shape!r}: {first:.3f} s, {second:.3f} s")
    return slow


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(READERS, 4))
def test_whatever_reads_a_reply_takes_linear_time(name):
    assert in_linear_time(name, 600, 6) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_megabyte_of_anything_is_read_in_linear_time(name):
    assert in_linear_time(name, 12_500, 6) == []
    reader, bound = READERS[name]
    for shape in SHAPES[::7]:
        assert seconds_of(reader, shape * (1_000_000 // len(shape))) < bound, shape


def test_a_few_kilobytes_do_not_hold_the_host_for_minutes():
    """Each bare fence outside of a block once read all that stood there."""
    n = 3000
    assert seconds_of(extract_code, "# x\n" + "x = 1\n" * n + "```\n```\n" * n) < 3
    assert seconds_of(extract_code, "# x\n" + "x = 1\n```\n```\n" * n) < 3
    assert seconds_of(extract_code, "prose\n" * n + "```\n```\n" * n) < 3


@pytest.mark.slow
def test_what_no_model_writes_is_not_read():
    program = "print(1)\n" + "x = 1\n" * 200_000
    assert extract_code(program) is None  # longer than any program that a judge takes
    thoughts = "hm, " * 300_000
    assert extract_code(f"<think>{thoughts}</think>\n{FINAL}") == FINAL
    assert extract_sql(f"<think>{thoughts}</think>\nSELECT 1") == "SELECT 1"
    endless = thoughts * 3
    for reader in (extract_code, extract_sql, probability):
        assert seconds_of(reader, f"<think>{endless}</think>\n```\nSELECT 85\n```") < 0.5
        assert reader(f"<think>{endless}</think>\n```\nSELECT 85\n```") is None
    assert seconds_of(lambda text: split_reasoning({"content": text}), endless) < 0.5


@pytest.mark.parametrize("shape", ["</think>", "<|end|><|start|>", "</s>"])
def test_a_run_of_markers_that_ends_nothing_is_read_once(shape):
    """CPU of n and of 4n such markers before a quote, in every reader."""

    def seconds(n: int) -> float:
        began = time.process_time()
        for read in (extract_code, extract_sql, probability):
            read(shape * n + '"')
        return time.process_time() - began

    seconds(10)
    assert seconds(8_000) < 8 * max(seconds(2_000), 0.005)
