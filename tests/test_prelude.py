# ruff: noqa: E501  a program reads best on the line it was written on
"""What a task gives before the program: used by right programs, shown to the model, and of no use to wrong ones."""

from __future__ import annotations

import asyncio

import pytest

import grader
from grading.prelude import behind
from swarm import PLAIN, Attempt, bare, refine
from tasksets.task import Task, Test

LIST = """from typing import Optional
class ListNode:
    def __init__(self, val=0, next=None): self.val, self.next = val, next
def build(xs): return ListNode(xs[0], build(xs[1:])) if xs else None
LIMIT = 3"""
READ = "def to_list(node): return [node.val, *to_list(node.next)] if node is not None else []"
TURNED = """
def turned(head: Optional[ListNode], most: int = LIMIT) -> Optional[ListNode]:
    after = None
    while head: head.next, after, head = after, head, head.next
    return after
"""
CLASS = "class Longer(ListNode):\n    def size(self) -> 'Longer': return 1 + (self.next.size() if self.next else 0)\n"
ASSERT = "assert to_list(turned(build([1, 2, 3]))) == [3, 2, 1]"
RIGHT = {
    "annotations": TURNED,
    "future": "from __future__ import annotations\n" + TURNED,
    "docstring and future": '"""Turns a list."""\n\n# so that\nfrom __future__ import (annotations,\n    division)\n'
    + TURNED,
    "byte order mark": "\ufeff" + TURNED,
    "given again": LIST + TURNED,
    "indented": "if True:\n    pass" + TURNED,
}
WRONG = {
    "goes on in the prelude": "    turned = lambda self: 3\n" + TURNED,
    "else": "else:\n    pass\n" + TURNED,
    "another class": TURNED + "class ListNode:\n    def __eq__(self, other): return True\n    val, next = 98765, None\n    __init__ = lambda self, *a: None\ndef turned(x): return ListNode()",
    "another reader": "def to_list(x): return type('Any', (), {'__eq__': lambda *a: True})()\n" + TURNED.replace("return after", "return head"),
    "reads the prelude": "import inspect, sys\ndef turned(x): return sys._getframe().f_code.co_consts",
    "nothing": "",
    "not Python": "def turned(",
    "braces": "from __future__ import braces\n" + TURNED,
}  # fmt: skip


@pytest.mark.slow
def test_what_is_given_is_there_for_right_programs_and_gives_wrong_ones_nothing():
    async def work():
        async with grader.Grader(workers=2) as judge:

            async def verdict(program: str) -> str:
                return (await judge.run(program, [ASSERT], "assert", READ, prelude=LIST))[0].outcome

            sums = await judge.run(
                "from __future__ import annotations\nprint(add(*map(int, input().split())), LIMIT)",
                [("1 2", "3 3")],
                prelude="def add(a, b): return a + b\nLIMIT = 3",
            )
            size = await judge.run(CLASS, ["assert Longer(1, Longer(2)).size() == 2"], "assert", prelude=LIST)
            without = (await judge.run(TURNED, [ASSERT], "assert", LIST + "\n" + READ))[0].outcome
            return [
                {name: await verdict(program) for name, program in programs.items()} for programs in (RIGHT, WRONG)
            ], (sums[0].outcome, size[0].outcome, without)

    (right, wrong), others = asyncio.run(work())
    assert set(right.values()) == {"pass"}, right
    assert "pass" not in wrong.values(), wrong
    assert [wrong[name] for name in ("goes on in the prelude", "else", "not Python", "braces")] == ["syntax_error"] * 4
    assert others == ("pass", "pass", "runtime_error")  # after the program is too late for its annotations


@pytest.mark.parametrize(
    "program", [*RIGHT.values(), "'a'; from __future__ import annotations; x: y = 1", "", "#", "\n\n"]
)
def test_a_program_that_compiles_does_so_behind_its_prelude(program):
    compile(behind(LIST, program), "program.py", "exec", dont_inherit=True)
    assert behind("", program) == program


def test_long_heads_are_read_in_linear_time():
    for head in (
        "\n" * 1_000_000,
        "#\n" * 500_000,
        "'''" * 300_001,
        "from __future__ import annotations\n" * 3_000,
        "'" + "\\a" * 500_000,
    ):
        behind(LIST, head)


def test_the_model_is_shown_what_is_given():
    task = Task("a", "A", "Turn it.", "assert", (Test(ASSERT),), (Test(ASSERT),), prelude=LIST, functions=("turned",))
    own = Attempt("a", "solo", 0, 0, 0, code="def turned(x): return x", visible_tests="W", got="[1]", visible_total=1)
    for prompt in (bare(task, PLAIN), refine(task, own, None, PLAIN)):
        assert f"```python\n{LIST}\n```" in prompt.messages[-1]["content"]
    plain = Task("a", "A", "Turn it.", "assert", (Test(ASSERT),))
    assert bare(plain, PLAIN).messages[-1]["content"].startswith("Turn it.\n\nWrite one Python 3 program")
