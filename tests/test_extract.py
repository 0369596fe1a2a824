"""The program in a reply: every shape met in practice, and text that was made to break the search for it."""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asking.reply import split_reasoning
from grader import extract_code
from grading.extract import extract_sql, probability
from grading.reasoning import answer

DATA = Path(__file__).parent / "data"


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").split("\n") if line]


def same(got: str | None, wanted: str | None) -> bool:
    """Same program: as a syntax tree where both are Python, else line by line without trailing blanks."""
    if got is None or wanted is None:
        return got is wanted
    try:
        return ast.dump(ast.parse(got)) == ast.dump(ast.parse(wanted))
    except SyntaxError:
        return [line.rstrip() for line in got.split("\n")] == [line.rstrip() for line in wanted.split("\n")]


@pytest.mark.parametrize("case", rows("cases_extract.jsonl") + rows("replies.jsonl"), ids=lambda case: case["id"])
def test_recorded_reply(case):
    got = extract_code(case["reply"], tuple(case["functions"]))
    assert any(same(got, wanted) for wanted in case["accept"]), got


FINAL = "print(sum(map(int, input().split())))"
DRAFT = "print(0)"


@pytest.mark.parametrize(
    "tag",
    [
        "python",
        "Python",
        "PYTHON",
        "py",
        "PY",
        "python3",
        "Python3.11",
        "ipython",
        "{.python}",
        "py3",
        "language-python",
        "lang=python",
        "Python代码",
    ],
)
def test_every_python_tag(tag):
    assert extract_code(f"```{tag}\n{FINAL}\n```") == FINAL
    assert extract_code(f"```\n3\n```\n```{tag} title=main.py\n{FINAL}\n```\n```text\nprint(9)\n```") == FINAL


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{FINAL}",  # never closed
        f"```python\n{FINAL}\n",
        f"```python\r\n{FINAL}\r\n```\r\n",
        f"```python\r{FINAL}\r```",
        f"\ufeff```python\n{FINAL}\n```",
        f"   ```python\n   {FINAL}\n   ```",
        f"1. Do this:\n     ```python\n     {FINAL}\n     ```\n2. Done.",
        f"- ```python\n  {FINAL}\n  ```",
        f"1. ```python\n   {FINAL}\n   ```",
        f"> ```python\n> {FINAL}\n> ```",
        f">```python\n>{FINAL}\n>```",
        f"````python\n{FINAL}\n````",
        f"````markdown\n```python\n{FINAL}\n```\n````",
        f"```markdown\n```python\n{FINAL}\n```\n```",
        f"~~~\n{FINAL}\n~~~",
        f"~~~python\n{FINAL}\n```\n~~~\n".replace("```\n", ""),
        f"```python\n{FINAL}```\nAs asked.",  # the closing fence at the end of the last line
        f"```python {FINAL}```",
        f"```python {FINAL}\n```",
        f"```{FINAL}\n```",
        f"```\npython\n{FINAL}\n```",
        f"python\n{FINAL}\n```",  # the opening fence was pre-filled
        f"{FINAL}\n```\nIt adds the numbers.\n",
        f"{FINAL}\n```\nOutput:\n```\n3\n```\n",
        f"```python\n    {FINAL}\n```",
        FINAL,
        f"\n\n{FINAL}\n\nThis reads one line and adds.",
        f"The program:\n\n{FINAL}\n",
        f"The program:\n\n    {FINAL}\n\nDone.",  # an indented block of Markdown
        f"<answer>\n{FINAL}\n</answer>",
        f"[BEGIN]\n{FINAL}\n[DONE]",
        f"{FINAL}\n\nExample:\n```\n1 2\n```\nprints\n```\n3\n```",
        f"```text\n{FINAL}\n```",
        f"```cpp\nint main() {{ print(1); }}\n```\n```\n{FINAL}\n```",
        f"```python\n```\n```python\n{FINAL}\n```",
        f"```python\n\n\n{FINAL}\n\n\n```",
    ],
)
def test_one_program_in_many_wrappings(reply):
    assert extract_code(reply) == FINAL


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>\n```python\n{DRAFT}\n```\n</think>\n```python\n{FINAL}\n```",
        f"<think>```python\n{DRAFT}\n```</think>```python\n{FINAL}\n```",
        f"<think>\n\n</think>\n\n```python\n{FINAL}\n```",
        f"<THINKING>\n```python\n{DRAFT}\n</THINKING>\n```python\n{FINAL}\n```",  # the draft's fence was never closed
        f"```python\n{DRAFT}\n</think>\n```python\n{FINAL}\n```",
        f"So the answer is 3</think>\n{FINAL}",
        f'It prints "3"</think>\n{FINAL}'.replace('"</', '" </'),
        f"```python\n{DRAFT}\n```\nno.</thinking>\n{FINAL}\n```",
        f"[THINK]```python\n{DRAFT}\n```[/THINK]```python\n{FINAL}\n```",
        f"<|channel|>analysis<|message|>```python\n{DRAFT}\n```<|end|><|start|>assistant<|channel|>final<|message|>"
        f"```python\n{FINAL}\n```",
        f"<think>a</think>\n```python\n{DRAFT}\n```\n<reasoning>\nno\n</reasoning>\n```python\n{FINAL}\n```",
        f"<think>the tag `</think>` ends it\n```python\n{DRAFT}\n```\n</think>\n{FINAL}",
        f"<think lang='en'>\n```python\n{DRAFT}\n```\n</think>\n{FINAL}",
        f"Okay. <think>\n```python\n{DRAFT}\n```\n</think>\n{FINAL}",
        f"```python\n{DRAFT}\n```\nno, it fails. </think> The program:\n```python\n{FINAL}\n```",
        f"```python\n{FINAL}\n```\nNote: I left out the </think> tag of the input.",
    ],
)
def test_reasoning_is_no_answer(reply):
    assert extract_code(reply) == FINAL


@pytest.mark.parametrize(
    "program",
    [
        'print(input().replace("</think>", ""))',
        'text = """\n</think>\n"""\nprint(text)',
        "print(input().split('<think>')[0])  # </think> and more",
        'text = """\n<think>\n"""\nprint(text)',
    ],
)
def test_a_reasoning_tag_in_a_program_is_text(program):
    assert extract_code(f"Here:\n```python\n{program}\n```\n") == program


@pytest.mark.parametrize(
    "reply",
    [
        "",
        None,
        " \n\t\n",
        "I cannot solve this, sorry.",
        "<think>\n```python\nprint(0)\n```\nbut that",
        "<think>Let me print(1) it",
        "print(0)\n</think>\nI give up.",
        "```python\nprint(0)\n```\nno.\n</think>\nI give up.",
        "<think lang='en'>\n```python\nprint(0)\n```\n",
        "Okay. <think>\n```python\nprint(0)\n```\nbut",
        "<|start|>assistant<|channel|>analysis<|message|>So\n```python\nprint(0)\n```\n",
        "```",
        "```python",
        "```python\n\n```",
        "```\n3\n6\n```",
        "```cpp\n#include <iostream>\nint main() { std::cout << 1; }\n```",
        "```bash\npython3 main.py\n```",
        "The answer is 42. For example, if n is 5 then we print 3.\n\nfor example: this.\nO(n log n)",
        "# Solution\n\nWe import the module and print the result, from the start.\n\n- first\n- second\n",
        "To be or not to be (that is the question).",
        "n = 5 gives 3",
    ],
)
def test_no_program(reply):
    assert extract_code(reply) is None


MARKERS = [
    ("<think>", "</think>"),
    ("<Thinking>", "</Thinking>"),
    ("<thought kind='draft'>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<think_fast>", "</think_fast>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>text<|message|>",
    ),
    ("<|channel|>commentary to=functions.python<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>\n<|START_TEXT|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("[unused16]", "[unused17]"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>\n\n<|begin_of_solution|>"),
    ("<|think|>", "<|/think|>"),
    ("<|begin|>assistant<|think|>", "<|end|><|begin|>assistant<|content|>"),
    ("<|im_start|>think\n", "<|im_start|>answer\n"),
    ("Here is my thought process:", "\nHere is my response:"),
    ("Here's my thought process:", "\nHere's my response:"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
]


@pytest.mark.parametrize(("opening", "closing"), MARKERS)
def test_all_readers_of_a_reply_know_the_same_markers(opening, closing):
    """Coder, SQL, judge and client: what is thought is no answer, nor is what was cut while thinking."""
    for read, draft, final in (
        (extract_code, f"```python\n{DRAFT}\n```", f"```python\n{FINAL}\n```"),
        (extract_sql, "```sql\nSELECT 1\n```", "```sql\nSELECT 2\n```"),
        (probability, "maybe 20", "85"),
    ):
        wanted = read(final)
        assert wanted is not None
        assert read(f"{opening}{draft}{closing}\n{final}") == wanted
        assert read(f"{draft}\n{closing}\n{final}") == wanted  # a server's template has opened it
        assert read(f"{opening}\n{draft}") is None
    assert split_reasoning({"content": f"{opening}hm{closing}\nhi"}) == ("hi", "hm")
    assert split_reasoning({"content": f"hm\n{closing}\nhi"}) == ("hi", "hm")
    assert split_reasoning({"content": f"\n{opening}hm, and then"}) == ("", "hm, and then")
    quoted = f"print('{opening}'.join('{closing}'))"
    assert split_reasoning({"content": quoted}) == (quoted, "") and answer(quoted) == quoted


# How a reply holds a program, and what a server leaves behind the last of it.
WRAPPINGS = [
    "{}",
    "Sure:\n\n{}",
    "```python\n{}\n```",
    "```python\n{}",
    "```python\n{}\n",
    "```python\n{}```",
    "{}\n```",
    "```\n{}\n```",
    "```\npython\n{}\n```",
    "````python\n{}\n```",
    "````python\n{}\n```\nThat is all, friends.",
    "`````python\n{}\n```",
    "```python\n{}\n````",
    "```python\n{}\n``",
    "~~~python\n{}\n```",
    "```python\n{}\n~~~",
    "~~~\n```python\n{}\n```\n~~~",
    "````markdown\n```python\n{}\n```\n````",
    "1. So:\n```py\n{}\n```\n2. Done.",
    "<answer>\n{}\n</answer>",
    "<answer>{}</answer>",
    "<answer>\n```python\n{}\n```\n</answer>",
    "[PYTHON]{}[/PYTHON]",
    "[PYTHON]\n{}\n[/PYTHON]",
    "<|python_tag|>{}",
    "<s>{}",
    "<|im_start|>assistant\n{}",
]
TOKENS = """</s> <|im_end|> <|endoftext|> <end_of_turn> <eos> <eod> <turn|> <|eot_id|> <|eom_id|> <|end_of_text|>
    <|EOT|> <|end▁of▁sentence|> <｜end▁of▁sentence｜> <|return|> <|end|> <|call|> <|END_RESPONSE|> <|END_OF_TURN_TOKEN|>
    <|user|> <|observation|> <|role_end|> [|endofturn|] <seed:eos> [e~[ <SPECIAL_12> <|end_of_solution|> </s></s>
    <|END_RESPONSE|><|END_OF_TURN_TOKEN|>""".split()
ENDINGS = [
    "",
    *TOKENS,
    *(f"\n{token}\n" for token in TOKENS),
    " </s>  ",
    "[END FINAL RESPONSE]\n<|end|>",
    "<|im_end|>\n<|im_start|>user\nMore?<|im_end|>\n<|im_start|>assistant\n```python\nprint(input())\n```",
]
DRAFTS = ["hm", "hm\n```python\nprint('no')\n```\nno, wait\n", "```python\nprint('no')\n", "\nhm\nprint('no')\n"]
TWO_LINES = "n = int(input())\nprint(n + 1)"


def every_reply(markers, wrappings, endings, drafts=DRAFTS):
    for opening, closing in markers:
        for wrapping in wrappings:
            for ending in endings:
                for draft in drafts if opening else [""]:
                    for gap in ("", "\n"):
                        yield f"{opening}{draft}{closing}{gap}{wrapping.format(TWO_LINES)}{ending}"


@pytest.mark.slow
def test_a_right_program_in_any_wrapping_behind_any_marker_before_any_token():
    """Each two of the three tables; the slow test has all three."""
    bare = [("", "")]
    for replies in (
        every_reply(bare, WRAPPINGS, ENDINGS),
        every_reply(MARKERS, WRAPPINGS, [""], DRAFTS[1:2]),
        every_reply(MARKERS, WRAPPINGS[:3], ["</s>", ENDINGS[-1]], DRAFTS[:2]),
        every_reply(MARKERS, WRAPPINGS[:1], TOKENS, DRAFTS[3:]),
    ):
        assert [reply for reply in replies if extract_code(reply) != TWO_LINES] == []


@pytest.mark.slow
def test_every_wrapping_behind_every_marker_before_every_token():
    replies = every_reply([("", ""), *MARKERS], WRAPPINGS, ENDINGS)
    assert [reply for reply in replies if extract_code(reply) != TWO_LINES] == []
    program = "def double(x):\n    return 2 * x"
    for reply in every_reply([("", ""), *MARKERS], WRAPPINGS, [""]):
        assert extract_code(reply.replace(TWO_LINES, program), ("double",)) == program


@pytest.mark.parametrize(("opening", "closing"), MARKERS)
def test_a_draft_is_no_answer(opening, closing):
    """Cut while thinking, nothing behind it, words behind it: no program; and what stands behind it is the program."""
    for draft in [*DRAFTS[1:], "```python\nprint('no')\n```", "\nprint('no')\n```\n"]:
        for before in ("", "\n", "  "):
            thought = f"{before}{opening}{draft}"
            for reply in (thought, f"{thought}<|im_end|>", f"{thought}\n</s>", f"{thought}{closing}",
                          f"{thought}{closing}\n\nSorry, no.", f"{thought}{closing}<|im_end|>"):  # fmt: skip
                assert extract_code(reply) is None, reply
                assert extract_code(reply, ("no",)) is None, reply
            assert extract_code(f"{thought}{closing}\n{TWO_LINES}") == TWO_LINES
        assert extract_code(f"{draft}{closing}\n{TWO_LINES}") == TWO_LINES  # opened by the server's template
        if not opening.startswith("Here"):  # a phrase counts where a reply begins with it
            assert extract_code(f"Let me see.\n{opening}{draft}{closing}\n{TWO_LINES}") == TWO_LINES
            assert extract_code(f"Let me see.\n{opening}{draft}") is None


def test_harmony_whose_tokens_were_left_out():
    draft = "analysisWe need to print. ```python\nprint('no')\n```"
    assert extract_code(draft) is None
    assert extract_code(f"{draft}assistantfinal```python\n{FINAL}\n```") == FINAL
    assert extract_code(f"{draft}assistantfinal{FINAL}") == FINAL
    assert split_reasoning({"content": f"{draft}assistantfinalhi"}) == ("hi", draft.removeprefix("analysis"))
    assert extract_code("analysisResult = input()\nprint(analysisResult)") is not None


@pytest.mark.parametrize(
    "program",
    [
        'print("</s>")\nprint(input())',
        'text = """<s>\nhello </s>\n"""\nprint(input())',
        "print(input())  # ends with </s>\nprint(1)",
        "end = '<|im_end|>'\nprint(input() + end)",
        "x = input()\nprint('<answer>', x, '</answer>')",
        "tokens = [x for x in input()]\nprint(tokens + [DONE])",
        "text = '''\n<|python_tag|>x\n<|im_end|>\n'''\nprint(text, input())",
        "x = (1 <int(input())> 0,\n  2)\nprint(x)",
        'import os\n"""A docstring.\n</s>\n<|im_end|>\n"""\nprint(input())',
        'import os\ntext = """\n<|im_end|>\n"""\nprint(text, input())',
        "print(input())\nprint(3 >2\n  , ~ ~ ~1)",
    ],
)
def test_a_token_in_a_program_is_text(program):
    for reply in (program, f"```python\n{program}\n```", f"```python\n{program}", f"<think>a</think>{program}"):
        assert extract_code(reply) == program


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_ends_a_query_and_a_number_too(token):
    for end in (token, f"\n{token}\n", f" {token}{token}"):
        assert extract_sql(f"SELECT a FROM t{end}") == "SELECT a FROM t"
        assert extract_sql(f"```sql\nSELECT a FROM t{end}") == "SELECT a FROM t"
        assert extract_sql(f"```sql\nSELECT a FROM t\n```{end}") == "SELECT a FROM t"
        assert extract_sql(f"SELECT a FROM t{end}\n<|im_start|>user\nAnd b?") == "SELECT a FROM t"
        assert probability(f"85{end}") == 0.85


FUTURE = "from __future__ import annotations"


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (  # of several functions
            [f"{FUTURE}\ndef a(x):\n    return x", f"{FUTURE}\ndef b(x):\n    return x"],
            f"{FUTURE}\n\ndef a(x):\n    return x\n\ndef b(x):\n    return x",
        ),
        (  # of a helper, an import before the one that is meant
            ["import math\ndef helper(x):\n    return math.sqrt(x)", f"{FUTURE}\ndef a(x): return helper(x)\nb = a"],
            f"{FUTURE}\n\nimport math\ndef helper(x):\n    return math.sqrt(x)\n\ndef a(x): return helper(x)\nb = a",
        ),
        (  # in brackets, with other names, beside another statement, behind a docstring
            [
                '"""Helps."""\nfrom __future__ import (\n    annotations,  # a\n    division,\n)\ndef a(x): return x',
                f'"""\n{FUTURE}\n"""\n{FUTURE}; import math\ndef b(x): return x',
            ],
            f'from __future__ import annotations, division\n\n"""Helps."""\ndef a(x): return x\n\n'
            f'"""\n{FUTURE}\n"""\nimport math\ndef b(x): return x',
        ),
        (  # where it stands first already, nothing moves
            [f'"""Doc."""\n{FUTURE}\ndef a(x): return x', "def b(x): return x"],
            f'"""Doc."""\n{FUTURE}\ndef a(x): return x\n\ndef b(x): return x',
        ),
    ],
)
def test_what_blocks_import_from_the_future_stands_first_and_once(parts, whole):
    code = extract_code(fenced(*parts), ("a", "b"))
    assert code == whole
    compile(code, "joined", "exec", dont_inherit=True)


def test_a_program_of_stdin_with_a_helper_from_the_future():
    code = extract_code(fenced("def helper(x):\n    return x", f"{FUTURE}\nprint(helper(input()))"))
    assert code == f"{FUTURE}\n\ndef helper(x):\n    return x\n\nprint(helper(input()))"


DOUBLE = "def double(x):\n    return 2 * x"
TRIPLE = "def triple(x):\n    return 3 * x"
BOTH = ("double", "triple")


def test_blocks_join_when_no_single_one_defines_everything():
    usage = "```python\nprint(double(2))\n```"
    joined = extract_code(f"```python\n{DOUBLE}\n```\n{usage}\n```py\n{TRIPLE}\n```\n{usage}", BOTH)
    assert joined == f"{DOUBLE}\n\n{TRIPLE}"
    helper = "import math\n\nclass Box:\n    pass"
    joined = extract_code(f"```\n{helper}\n```\n```\n{DOUBLE}\n```\n```\n{TRIPLE}\n```", BOTH)
    assert joined == f"{helper}\n\n{DOUBLE}\n\n{TRIPLE}"


def test_a_block_that_defines_everything_stands_alone():
    whole = f"{DOUBLE}\n\n{TRIPLE}"
    assert (
        extract_code(f"```python\n{DOUBLE}\n```\n```python\n{whole}\n```\n```python\nprint(triple(1))\n```", BOTH)
        == whole
    )
    assert extract_code(f"```\n{whole}\n```\n```python\nprint(triple(1))\n```", BOTH) == whole
    assert extract_code(f"{whole}\n\nUsage:\n```python\nprint(triple(1))\n```", BOTH) == whole
    lambdas = "double = lambda x: 2 * x\nfrom box import (triple)\ntriple: object = 3"
    assert extract_code(f"```python\n{lambdas}\n```\n```python\nprint(double(1))\n```", BOTH) == lambdas


def test_blocks_with_and_without_a_tag_join():
    assert extract_code(f"```python\n{DOUBLE}\n```\n```\n{TRIPLE}\n```", BOTH) == f"{DOUBLE}\n\n{TRIPLE}"
    assert extract_code(f"```python\n{DOUBLE}\n```\n```\nprint(double(1))\n```", BOTH) == DOUBLE
    assert extract_code("```python\nprint(1)\n```", BOTH) == "print(1)"


def test_a_torn_last_function_does_not_take_the_others_with_it():
    reply = f"```python\n{DOUBLE}\n```\n```python\n{TRIPLE}\n```\n```python\ndef half(x):\n    return ("
    assert extract_code(reply, (*BOTH, "half")) == f"{DOUBLE}\n\n{TRIPLE}"
    assert extract_code(f"```python\n{FINAL}\n```\nShorter:\n```python\nprint(sum(int(x) for") == FINAL


def test_the_last_program_that_reads_its_input_wins_over_a_usage_example():
    assert extract_code(f"```python\n{FINAL}\n```\nFor example:\n```python\nprint(1 + 2)\n```") == FINAL
    for usage in (
        "# it reads its input() from stdin\nprint('2')",
        "print('#')  # input()",
        "import io, sys\nsys.stdin = io.StringIO('1 2')\nmain()",
    ):
        assert extract_code(f"```python\n{FINAL}\n```\nFor example:\n```python\n{usage}\n```") == FINAL
    hashed = "print(input('#'))"
    assert extract_code(f"```python\n{FINAL}\n```\nBetter:\n```python\n{hashed}\n```") == hashed
    assert extract_code(f"```python\nprint(input())\n```\nBetter:\n```python\n{FINAL}\n```") == FINAL


@pytest.mark.parametrize(
    "usage",
    [
        "from solution import double\n\nwhile True:\n    assert double(1) == 2",
        "# test_solution.py\nimport unittest\nfrom solution import double\n\n"
        "class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(double(1), 2)\n"
        "\nif __name__ == '__main__':\n    unittest.main()",
        "from timeit import timeit\nfrom __main__ import double\nprint(timeit('double(1)', globals=globals()))",
        "from .solution import (\n    double,\n)\nprint(double(1))",
        "import solution\ndouble = solution.double\nprint(double(1))",
        "import solution as s, sys\ndouble, size = s.double, 3\nprint(double(1))",
        "def double(x): ...",
        'def double(x: int) -> int:\n    """Two times x."""\n    ...',
        "def double(x):\n    raise NotImplementedError",
    ],
)
def test_what_only_imports_or_sketches_a_function_takes_the_place_of_none(usage):
    assert extract_code(f"```python\n{DOUBLE}\n```\n\nTo try it:\n```python\n{usage}\n```\n", ("double",)) == DOUBLE
    both = f"```python\n{DOUBLE}\n```\n```python\n{TRIPLE}\n```\n```python\n{usage}\n```"
    assert extract_code(both, BOTH) == f"{DOUBLE}\n\n{TRIPLE}"
    assert extract_code(f"```python\n{usage}\n```", ("double",)) == usage


@pytest.mark.parametrize(
    "making",
    [
        "from math import gcd",
        "from math import (\n    lcm,\n    gcd,\n)",
        "import math as gcd",
        "lcm, gcd = 1, lambda a, b: a",
        "try:\n    from fast import gcd\nexcept ImportError:\n    def gcd(a, b):\n        return a",
        "if True:\n    def gcd(a, b): return a",
        "class Solution:\n    def gcd(self, a, b): return a\ngcd = Solution().gcd",
        "gcd: object = print",
        "async def gcd(a, b):\n    return a",
    ],
)
def test_every_way_to_make_a_function(making):
    assert extract_code(f"```python\n{making}\n```\n```python\nprint(gcd(1, 2))\n```", ("gcd",)) == making


def fenced(*programs: str) -> str:
    return "\nand\n".join(f"```python\n{program}\n```" for program in programs)


def test_what_the_chosen_block_lacks_comes_from_the_others():
    root = "def f(x: List[int]):\n    return [math.sqrt(helper(y)) for y in x]"
    imports, helper = "import math\nfrom typing import List", "def helper(x):\n    return deeper(x)"
    deeper, usage = "def deeper(x): return x", "print(f([1]))\nwhile True: pass"
    parts = (imports, deeper, usage, helper, root)
    assert extract_code(fenced(*parts), ("f",)) == "\n\n".join((imports, deeper, helper, root))
    parts = (root, usage, imports, helper, deeper)
    assert extract_code(fenced(*parts), ("f",)) == "\n\n".join((root, imports, helper, deeper))
    draft = "from functools import reduce\n\ndef f(x):\n    return 1"
    final = "def f(x):\n    return reduce(max, x)"
    assert extract_code(fenced(draft, final), ("f",)) == f"{draft}\n\n{final}"
    solve = "def solve(n):\n    return n * 2"
    assert extract_code(fenced(solve, "print(solve(int(input())))")) == f"{solve}\n\nprint(solve(int(input())))"
    foreign = "from helpers import helper, math\nfrom typing import List"
    assert extract_code(fenced(foreign, root), ("f",)) == root


@pytest.mark.parametrize(
    "whole",
    [
        "def f(helper):\n    return helper(1)",
        "def f(x, *, helper=None):\n    return helper(x)",
        "f = lambda *helper: helper(1)",
        "def f(x):\n    for a, (b, helper) in x:\n        return helper",
        "def f(x):\n    return [helper for helper in x if (n := helper)]",
        "def f(x):\n    with x as helper:\n        helper.read()",
        "def f(x):\n    a, helper = x\n    return helper",
        "def f(x):\n    return x.helper(helper=1)  # helper",
        "def f(x):\n    return 'helper', '''helper'''",
        "from math import *\ndef f(x):\n    return helper(x)",
        "import os.path as helper\ndef f(x):\n    return helper.join(x)",
        "def f(x):\n    match x:\n        case [helper, *_]: return helper",
        "def f(x):\n    return input(x), sum(x)",
    ],
)
def test_a_block_that_lacks_nothing_stands_alone(whole):
    other = "def helper(x):\n    return 1 // 0\ninput = sum = n = helper"
    assert extract_code(fenced(other, whole), ("f",)) == whole


@pytest.mark.parametrize("quote", ['"""', "'''"])
@pytest.mark.parametrize("indent", ["", "    "])
@pytest.mark.parametrize("tag", ["", "python"])
def test_fences_inside_a_docstring(quote, indent, tag):
    doc = f"{quote}Example\n{indent}```{tag}\n{indent}f(1)\n{indent}```\n{indent}{quote}"
    program = f"def f(x):\n    {doc}\n    return x\n\nprint(f(input()))" if indent else f"{doc}\nprint(input())"
    assert extract_code(f"```python\n{program}\n```\n\n```\n3\n```\n") == program


@pytest.mark.parametrize("quote", ['"""', "'''"])
@pytest.mark.parametrize("tag", ["", "python"])
def test_fences_beside_the_quotes_of_a_docstring(quote, tag):
    for program in (
        f"def f(x):\n    {quote}Doubles.\n\n    ```{tag}\n    f(1)\n    ```{quote}\n    return x",
        f"def f(x):\n    {quote}```{tag}\n    f(1)\n    ```\n    {quote}\n    return x",
        f"def f(x):\n    r{quote}```{tag}\n    f(1)\n    ```{quote}\n    return x",
        f"PROMPT = {quote}\n```{tag}\n{{code}}\n```{quote}\n\n\ndef f(x):\n    return PROMPT.format(code=x)",
        f"PROMPT = {quote}\n```{tag}\n{{code}}\n```{quote}.format\nprint(PROMPT(code=input()), {quote}```{quote})",
        f"x = {quote}```\n{quote}\nprint(f{quote}```{tag}\n{{input()}}\n```{quote})",
    ):
        assert (
            extract_code(f"```python\n{program}\n```\n\n```\n3\n```\n", ("f",) if "def" in program else ()) == program
        )


def test_a_fence_at_the_end_of_the_last_line_ends_a_program_with_open_quotes():
    whole = f'{FINAL}\nprint("""a\nb""")'
    assert extract_code(f"```python\n{whole}```\nDone.") == whole
    open_quotes = 'x = """'
    assert extract_code(f"```python\n{FINAL}\n{open_quotes}```\nDone.") == f"{FINAL}\n{open_quotes}"


@pytest.mark.parametrize(
    "reply",
    [
        "- item\n\n\t```python\n\tfor x in input():\n\t\tprint(x)\n\t```",
        "1.\tDo:\n\t```python\n\tfor x in input():\n\t\tprint(x)\n\t```",
        "1. Do:\n   ```python\n\tfor x in input():\n\t\tprint(x)\n   ```",
        "```python\n\tfor x in input():\n\t\tprint(x)\n```",
        "> ```python\n> for x in input():\n> \tprint(x)\n> ```",
    ],
)
def test_a_tab_is_four_columns_of_indent(reply):
    assert extract_code(reply) == "for x in input():\n\tprint(x)"


def test_a_program_with_an_open_docstring_does_not_swallow_the_next():
    assert extract_code(f'```python\ndef f():\n    """Broken\n```\nAgain:\n```python\n{FINAL}\n```') == FINAL
    again = f'"""Right."""\n{FINAL}'
    assert extract_code(f'```python\n"""Broken\n```\nAgain:\n```python\n{again}\n```') == again


def test_text_of_a_program_comes_through_byte_for_byte():
    program = 'x = "\\t  \u00e9\u2028\x0c\x00"\nprint(x, """\n>>> a\n    ... \n""")  # it\'s "odd'
    assert extract_code(f"```python\n{program}\n```") == program


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("\ud83d", "\ufffd"),
        ("\ude00 a", "\ufffd a"),
        ("\ud83da", "\ufffda"),
        ("\ud83d\ude00", "\U0001f600"),
        ("é😀", "é😀"),
    ],
)
def test_half_an_emoji_is_replaced(text, stored):
    """Python refuses a source with half a surrogate pair in it, and so does every file that rows are written to."""
    for line in ("print(int(input()) * 2)  # ", "print(input(), '", "print(1)\n# "):
        end = "')" if line.endswith("'") else ""
        assert extract_code(f"```python\n{line}{text}{end}\n```") == f"{line}{stored}{end}"
        assert extract_code(f"{line}{text}{end}") == f"{line}{stored}{end}" or line.endswith("# ")


def test_console_session():
    assert extract_code("```python\n>>> n = int(input())\n>>> for i in range(n):\n...     print(i)\n...\n0\n```") == (
        "n = int(input())\nfor i in range(n):\n    print(i)"
    )


PIECES = [
    "```",
    "~~~",
    "python",
    "\n",
    " ",
    "    ",
    ">",
    '"""',
    "'''",
    "<think>",
    "</think>",
    "def f(x):",
    "x = 1",
    "print(1)",
    "1. ",
]
PIECES += ["\\", '"', "#", "\r\n", "\x00", "\ud800", "text", "import a", "(", "]", "word word"]


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(st.characters(), max_size=200), st.lists(st.sampled_from(PIECES), max_size=60).map("".join)))
def test_any_text_has_an_answer(reply):
    for functions in ((), ("f",), ("f", "x")):
        code = extract_code(reply, functions)
        assert code is None or (code.strip() and "\r" not in code)
