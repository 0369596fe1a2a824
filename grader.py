"""What a reply is worth: find the program in it, run it on the tests, compare outside, file the grade.

    extract_code    the program in a model's reply, or None
    outputs_match   does what a program printed match what the test expects
    Grader          runs programs in the sandbox (sandbox.py) and keeps every expected value on this side of it

The promise: an expected output never enters the process that runs the program. A program sends back bytes, or
for an assert a value as plain data, and everything that judges them runs here or in a clean process that has never
seen the program. A fault of the machinery is a GraderFault and never a failed test.

Left out: how a program is kept in (walls.py), how bytes go in and out (sandbox.py), where tasks come from (tasks.py),
special judges, and any language but Python. Nothing in this file parses, compiles or evaluates the text of a reply:
the program is found by its lines alone, since a parser is one more thing that hostile text can crash.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import itertools
import keyword
import os
import re
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from faults import GraderFault, TaskError
from grading import asserts
from grading.grade import CLIP, LETTERS, Grade, TestResult, clip, rules_of
from tasksets.task import Task, Test

if sys.platform != "win32":  # there, all but the grader itself still works
    from grading import plain, protocol, sandbox, walls

# ── extract: the program in a reply ──────────────────────────────────────────────────────────────────────────────────
# Chat models answer in Markdown, more or less. What is met in practice, and what is made of it:
#   several blocks        the last one tagged Python that makes every required function; where none does, all joined;
#                         without required functions the last that reads its input, else the last; what the chosen one
#                         uses and never binds comes from the others: an import, a helper
#   test file, stub       `from solution import f` makes no f, nor does `def f(x): ...`: such a block is the last choice
#   no Python tag         untagged blocks that look like a program, then unfenced lines that do, then text/plain blocks
#   fence never closed    the block runs to the end; it gives way to a finished one when it stops in mid-statement
#   only a closing fence  chat servers may pre-fill the opening one: what stands before it is the program
#   fence in a docstring  does not close the block
#   reasoning             whatever comes before the last closing tag is no answer, nor what follows an opening tag
#                         that is never closed; a sentence after the program may speak of a tag
# Line ends become \n; apart from that the text of the program is handed on as it stands.

_REASONING = r"think|thinking|thought|thoughts|reasoning"
_OPENING = rf"(?:<(?:{_REASONING})(?:[ \t][^<>\n]{{0,100}}+)?>|\[THINK\]|◁think▷)"
_OPENS_REASONING = re.compile(rf"[ \t]*(?:{_OPENING}|(?:<\|start\|>\w*)?<\|channel\|>analysis)", re.I)
_OPENS_AT_END = re.compile(rf"{_OPENING}[ \t]*$", re.I)
_ENDS_REASONING = re.compile(
    rf"(?:</(?:{_REASONING})>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>)(?![\"']|`(?!``))", re.I
)
_MENTIONED = re.compile(r"[ \t]</\w+>[ \t]+[a-z]")  # amid a sentence: about the tag, and no end of anything
_FENCE = re.compile(r"((?:[ \t]*+>)*+[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?+)(`{3,}+|~{3,}+)[ \t]*+(.*)", re.S)
_QUOTED = re.compile(r"[ \t]*>[ ]?")  # a block inside a Markdown quotation
_PYTHON_TAG = re.compile(r"\{?\.?(?:lang(?:uage)?[-=])?(?:i?python|py|pycon)[\d.]*(?![A-Za-z0-9_+#-])", re.I)
_PLAIN_TAG = re.compile(r"(?:text|txt|plain|plaintext|code|solution|answer)\b", re.I)
_LEXEME = re.compile(r"#.*|\"\"\"|'''|\"(?:[^\"\\]|\\.)*+\"?|'(?:[^'\\]|\\.)*+'?|[()\[\]{}]", re.S)
_STRING_END = {'"""': re.compile(r'\\.|"""', re.S), "'''": re.compile(r"\\.|'''", re.S)}

# A line at the left margin that can only be Python, or at least can be. Looked at: its first 300 characters.
_TARGET = r"\*?[A-Za-z_][\w.]*+(?:\[[^\]]*+\])*+"
_STATEMENT = re.compile(
    r"from[ \t]+[\w.]+[ \t]+import\b"
    r"|import[ \t]+[\w.]++(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w.]+(?:[ \t]+as[ \t]+\w+)?)*[ \t]*(?:[;#]|$)"
    r"|(?:async[ \t]+)?def[ \t]+\w+[ \t]*[(\[]|class[ \t]+\w+[ \t]*[(:\[]|@[A-Za-z_]"
    r"|(?:if|elif|while|with|except|match|for[ \t]+[^:]+[ \t]in)\b.*:|(?:try|else|finally)[ \t]*:"
    rf"|[(\[]?{_TARGET}(?:[ \t]*,[ \t]*{_TARGET})*+,?[)\]]?[ \t]*(?::[^=]*)?(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
    r"|(?!O\()[A-Za-z_][\w.]*\(.*[)(\[{,;\\]$|[A-Za-z_][\w.]*\(.*#|print\b|assert\b|raise\b|del\b|pass$"
)
_PROGRAM = re.compile(  # a statement of which one is enough to call the lines a program
    r"(?:from|import|async|def|class|@)\b|.*(?:\b(?:print|input|exec)[ \t]*\(|\bstdin\b|\bstdout\b|\blambda\b)"
)
_READS_INPUT = re.compile(
    r"\binput[ \t]*\(|\bstdin\b(?![ \t]*=[^=])|\bopen[ \t]*\([ \t]*(?:0\b|[\"']/dev/stdin)|\bfileinput\b|\bos\.read\b"
)
_DEFINES_SOMETHING = re.compile(r"^(?:async[ \t]+def|def|class|import|from)\b", re.M)
_TOKEN = re.compile(
    r"#[^\n]*|(?i:[rbuf]{0,2})(?:\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z)"
    r"|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?)"
    r"|\\\n|\n[ \t]*+|\d[\w.]*+|\w++|:=|->|\.\.\.|[=!<>]=|(?:[-+%&|^@]|//?|\*\*?|<<|>>)=|[^\s\w]",
    re.S,
)
_COMMENTED = re.compile(r"((?:[^\"'#]|\"(?:\\.|[^\"\\])*+\"?|'(?:\\.|[^'\\])*+'?)*+)#.*")
_COMPOUND = frozenset("if elif else for while try except finally with def class match case async".split())
_DOES_NOTHING = (["..."], ["pass"], ["''"])
_UNFINISHED = re.compile(r"(?:.*[:,=+*/%&|^(\[{\\-]|[ \t]*(?:if|elif|for|while|def|class|with|except)\b[^:]*+)$")


class _Block(NamedTuple):
    """One fenced block. Tag: python, plain, "" (none) or other."""

    tag: str
    code: str
    closed: bool


class _Lexer:
    """How far a line-by-line reading of Python has come: inside which triple-quoted string, how many brackets deep."""

    __slots__ = ("depth", "string", "torn")

    def __init__(self) -> None:
        self.string = ""  # the delimiter that will end the string we are in
        self.depth = 0
        self.torn = False  # the last line read ended inside a one-line string

    def read(self, line: str) -> None:
        at, end = 0, len(line)
        self.torn = False
        while at < end:
            if self.string:
                found = next((m for m in _STRING_END[self.string].finditer(line, at) if m[0] == self.string), None)
                if found is None:
                    return
                self.string, at = "", found.end()
            lexeme = _LEXEME.search(line, at)
            if lexeme is None:
                return
            text, at = lexeme[0], lexeme.end()
            if text in _STRING_END:
                self.string = text
            elif text in "([{":
                self.depth += 1
            elif text in ")]}":
                self.depth = max(0, self.depth - 1)
            elif text[0] in "\"'":
                self.torn = len(text) < 2 or text[-1] != text[0]


def extract_code(reply: str | None, functions: Sequence[str] = ()) -> str | None:
    """The Python program in a model's reply, or None where there is none.

    functions: the names that the task requires, which tell a solution from a usage example.
    Total: any text gives an answer, in time linear in its length, and nothing is parsed or run.
    """
    blocks, outside = _read_markdown((reply or "").lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    usable = [block for block in blocks if block.tag == "python" or (block.tag == "" and _is_program(block.code))]
    python = [block for block in usable if block.tag == "python"]
    untagged = [block for block in usable if block.tag == ""]
    loose = _loose_program(outside)
    if len(usable) == 1 and loose is None:
        return usable[0].code
    if functions and (usable or loose):
        return _program_with(frozenset(functions), usable, loose or "")
    for group in (python, untagged):
        if group:
            return _completed(_whole_program(group), group)
    if loose is not None:
        return loose
    plain = [block for block in blocks if block.tag == "plain" and _is_program(block.code)]
    weak = [block for block in blocks if block.tag == "" and any(map(_STATEMENT.match, block.code[:300].split("\n")))]
    group = plain or weak
    return _whole_program(group).code if group else None


def _read_markdown(text: str) -> tuple[list[_Block], list[str]]:
    """All fenced blocks that are not empty, and the lines outside of them; reasoning removed."""
    lines = text.split("\n")
    ends = {quote: [i for i, line in enumerate(lines) if quote in line] for quote in _STRING_END}
    tagged = [i for i, line in enumerate(lines) if (m := _fence(line)) and _PYTHON_TAG.match(m[3])]
    blocks: list[_Block] = []
    outside: list[str] = []
    body: list[str] = []
    opener: re.Match[str] | None = None  # of the block we are in
    tag = ""
    lexer = _Lexer()
    nested = 0  # fences opened inside the docstring we are in
    reasoning = False

    def close(closed: bool) -> None:
        nonlocal opener
        if opener is not None and (code := _tidy(body, opener[1])):
            blocks.append(_Block(tag, code, closed))
        opener = None

    def open_at(fence: re.Match[str]) -> None:
        nonlocal opener, tag, lexer, nested
        opener, lexer, nested = fence, _Lexer(), 0
        body.clear()
        info = fence[3].strip()
        tag, rest = "other", ""
        if python := _PYTHON_TAG.match(info):
            tag, rest = "python", info[python.end() :].strip(" \t}")
        elif not info or _is_program(info):
            tag, rest = "", info  # the code begins on the line of the fence
        elif _PLAIN_TAG.match(info):
            tag = "plain"
        if rest and _is_program(rest):
            body.append(fence[1] + rest)

    def held_by_string(at: int, end_from: int) -> bool:
        """Does the string we are in end, on that line or later, rather than being left open by a broken program?"""
        later = ends[lexer.string]
        nearest = bisect_left(later, end_from)
        if nearest == len(later):
            return False
        fence_after = bisect_right(tagged, at)
        return fence_after == len(tagged) or later[nearest] < tagged[fence_after] or nested > 0

    for at, line in enumerate(lines):
        in_string = bool(opener and lexer.string and tag in ("python", "")) and held_by_string(at, at)
        if not in_string:
            if opener is None and (_OPENS_REASONING.match(line) or (not blocks and _OPENS_AT_END.search(line))):
                reasoning = True
            if opener is None or reasoning:
                tags = list(_ENDS_REASONING.finditer(line))
                if blocks and not reasoning:
                    tags = [tag for tag in tags if not _MENTIONED.match(line, tag.start() - 1)]
            else:
                tags = [m for m in [_ENDS_REASONING.match(line.strip())] if m]  # a draft whose fence was left open
            if tags:
                blocks.clear()
                outside.clear()
                opener, reasoning = None, False
                line = (line if tags[-1].string is line else line.strip())[tags[-1].end() :]
            elif reasoning:
                continue
        fence = _fence(line)
        one_line = fence and fence[2] in fence[3] and _one_line_block(fence)
        if opener is None:
            if one_line:
                blocks.append(one_line)
            elif fence is None:
                outside.append(line)
            elif not fence[3].strip() and not blocks and _starts_as_program(outside):
                blocks.append(_Block("python", _loose_program(outside) or "", True))  # its opening fence is not here
                outside.clear()
            else:
                open_at(fence)
        elif fence and fence[2][0] == opener[2][0] and in_string:
            if lexer.string in fence[3]:
                nested = 0  # the string ends beside the fence
            elif fence[3].strip():
                nested += 1
            elif nested:
                nested -= 1
            body.append(line)
            lexer.read(line)
        elif fence and fence[2].startswith(opener[2]) and not fence[3].strip():
            close(True)
        elif fence and fence[2][0] == opener[2][0] and fence[3].strip() and not one_line:
            close(True)
            open_at(fence)
        else:
            ended = "#" not in line and line.rstrip().endswith(opener[2]) and tag in ("python", "")
            if tag in ("python", ""):
                lexer.read(line)
            if ended and lexer.string and held_by_string(at, at + 1):
                ended = False  # the fence is part of the string
            body.append(line.rstrip()[: -len(opener[2])] if ended else line)
            if ended:
                close(True)
    close(False)
    return blocks, outside


def _fence(line: str) -> re.Match[str] | None:
    return _FENCE.match(line) if "```" in line or "~~~" in line else None


def _one_line_block(fence: re.Match[str]) -> _Block | None:
    """```python print(1)``` on one line, which Markdown calls inline code."""
    inside, _, after = fence[3].rpartition(fence[2])
    python = _PYTHON_TAG.match(inside)
    code = inside[python.end() :].strip() if python else inside.strip()
    return _Block("python" if python else "", code, True) if code and not after.strip() else None


def _tidy(body: list[str], prefix: str) -> str:
    """The lines of a block without the indent of its fence, its console prompts, and blank lines around it."""
    if ">" in prefix:
        body = [line[m.end() :] if (m := _QUOTED.match(line)) else line for line in body]
        prefix = prefix.rpartition(">")[2].removeprefix(" ")
    indent = _columns(prefix)
    lines = [_without_indent(line, indent) for line in body] if indent else body
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[first:]
    if lines and lines[0][0] in " \t":  # the whole block is indented: no program begins so
        indent = _columns(lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))])
        lines = [_without_indent(line, indent) for line in lines]
    if len(lines) > 1 and _PYTHON_TAG.fullmatch(lines[0].strip()):  # the tag stands one line too low
        lines = lines[1:]
    if lines and lines[0].startswith(">>> "):
        lines = [line[4:] for line in lines if line.startswith((">>>", "..."))]
    return "\n".join(lines).strip("\n").rstrip()


def _columns(text: str) -> int:
    return len(text.expandtabs(4))


def _without_indent(line: str, columns: int) -> str:
    """Without so many columns of blanks; of a tab that is wider, what is left."""
    column = 0
    for at, letter in enumerate(line):
        if column >= columns or letter not in " \t":
            return " " * (column - columns) + line[at:]
        column += 4 - column % 4 if letter == "\t" else 1
    return ""


def _is_program(code: str) -> bool:
    return any(_PROGRAM.match(line[:300]) for line in code.split("\n") if _STATEMENT.match(line[:300].rstrip()))


def _starts_as_program(lines: list[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    known = _PYTHON_TAG.fullmatch(first.strip()) or first.startswith("#") or _STATEMENT.match(first[:300].rstrip())
    return bool(known) and _loose_program(lines) is not None


def _loose_program(lines: list[str]) -> str | None:
    """A program that stands in the reply without a fence: from its first statement to its last, whatever is between."""
    for text in (lines, [line[4:] for line in lines if line.startswith("    ") or not line.strip()]):
        first, last, program, lexer = -1, -1, False, _Lexer()
        prose = True  # is the line above neither a statement nor part of one
        for at, line in enumerate(text):
            short = line[:300].rstrip()
            if first >= 0 and (lexer.string or lexer.depth):
                last = at
            elif not short or short[0] == "#":
                continue
            elif short[0] in " \t":
                if prose:
                    continue
                last = at
            elif _STATEMENT.match(short) or (first >= 0 and short[0] in "\"'"):
                first, last, prose = (at if first < 0 else first), at, False
                program = program or bool(_PROGRAM.match(short))
            else:
                prose = True
                continue
            lexer.read(line)
        if program:
            return "\n".join(text[first : last + 1]).strip("\n").rstrip()
    return None


class _Outline(NamedTuple):
    """What can be told of a program by its names."""

    made: frozenset[str]  # what the module binds by itself: def, class, assignment, import of the standard library
    named: frozenset[str]  # that, and what it only imports from elsewhere or sketches (`def f(x): ...`)
    missing: frozenset[str]  # what it uses and, as far as one can see, binds nowhere
    foreign: bool  # it imports what is not in the standard library


def _defines(code: str, name: str) -> bool:
    """Does the module bind the name?"""
    return name in _outline(code).named


def _statements(code: str) -> Iterator[tuple[int, list[str]]]:
    """Each statement as its indent and its tokens; what follows the colon of a compound one is a statement too."""
    indent = depth = 0
    tokens: list[str] = []
    margin = False
    for token in _TOKEN.findall("\n" + code + "\n"):
        if token[0] == "\n":
            if not depth:
                yield from _split_at_colon(indent, tokens)
                tokens, indent = [], len(token.expandtabs(8)) - 1
            margin = token == "\n"
            continue
        if depth and margin and token in ("def", "class", "import"):  # the bracket is never closed: a broken program
            yield indent, tokens
            tokens, indent, depth = [], 0, 0
        margin = False
        if token[0] == "#" or token == "\\\n":
            continue
        depth = max(0, depth + (token in "([{") - (token in ")]}"))
        if token == ";" and not depth:
            yield from _split_at_colon(indent, tokens)
            tokens = []
        else:
            tokens.append("''" if "'" in token or '"' in token else token)
    yield from _split_at_colon(indent, tokens)


def _split_at_colon(indent: int, tokens: list[str]) -> Iterator[tuple[int, list[str]]]:
    depth, end, lambdas = 0, len(tokens), 0
    if tokens and tokens[0] in _COMPOUND:
        for at, token in enumerate(tokens):
            depth += (token in "([{") - (token in ")]}")
            lambdas += token == "lambda"
            if token == ":" and depth == 0:
                if not lambdas:
                    end = at + 1
                    break
                lambdas -= 1
    if tokens:
        yield indent, tokens[:end]
    if tokens[end:]:
        yield indent + 1, tokens[end:]


@lru_cache(maxsize=16)
def _outline(code: str) -> _Outline:
    """Read by its tokens alone. In doubt a name is bound, so that nothing is missing which is not."""
    made: set[str] = set()
    named: set[str] = set()
    bound: set[str] = set()
    used: set[str] = set()
    foreign: set[str] = set()  # names that stand for what another file would have to hold
    inside: int | None = None  # the indent of the function or class that we are in
    sketch = ""  # a function that does nothing so far
    every_name = outside_library = False
    for indent, tokens in _statements(code):
        if inside is not None and indent <= inside:
            inside, sketch = None, ""
        first = tokens[tokens[0] == "async" and len(tokens) > 1]
        if first in ("import", "from"):
            names, every, library = _imported(tokens)
            bound |= names
            every_name |= every
            outside_library |= not library
            if inside is None:
                named |= names
                made |= names if library else set()
            if not library:
                foreign |= names
        else:
            targets = _read_names(tokens, first, bound, used)
            if inside is None:
                if first in ("def", "class") and len(targets) == 1:
                    inside = indent
                    sketch = targets[0] if first == "def" else ""
                    made |= set() if sketch else set(targets)
                elif targets and foreign and foreign.intersection(_roots(tokens)):
                    named.update(targets)
                else:
                    made.update(targets)
                named.update(targets)
        if (
            sketch
            and indent > (inside or 0)
            and tokens not in _DOES_NOTHING
            and "NotImplementedError" not in tokens[:2]
        ):
            made.add(sketch)
            sketch = ""
    missing = set() if every_name else used - bound - _ALWAYS_BOUND
    return _Outline(frozenset(made), frozenset(named), frozenset(missing), outside_library)


_ALWAYS_BOUND = frozenset((*asserts.BUILTINS, *keyword.kwlist, *keyword.softkwlist, "__file__", "__builtins__"))


def _imported(tokens: list[str]) -> tuple[set[str], bool, bool]:
    """The names that an import binds; whether it binds all there are; whether it is one of the standard library."""
    if tokens[0] == "import":
        modules = [tokens[at + 1] for at, token in enumerate(tokens[:-1]) if token in ("import", ",")]
        parts, library = tokens[1:], all(module in sys.stdlib_module_names for module in modules)
    else:
        at = tokens.index("import") if "import" in tokens else len(tokens)
        library = tokens[1:2] != [] and tokens[1] in sys.stdlib_module_names
        parts = tokens[at + 1 :]
    names = set()
    for at, token in enumerate(parts):
        before, after = parts[at - 1] if at else "", parts[at + 1] if at + 1 < len(parts) else ""
        if token.isidentifier() and token != "as" and before != "." and after != "as":
            names.add(token)
    return names, "*" in parts, library


def _read_names(tokens: list[str], first: str, bound: set[str], used: set[str]) -> list[str]:
    """Sort the names of a statement into bound and used: those that a definition or an assignment binds."""
    targets: list[str] = []
    depth = last = 0  # last: where the assignment's right side begins
    compound = tokens[0] in _COMPOUND
    if not compound:
        for at, token in enumerate(tokens):
            depth += (token in "([{") - (token in ")]}")
            if depth == 0 and token[-1] == "=" and token not in ("==", "!=", "<=", ">=", ":="):
                last = at
    depth, binds_until = 0, ""
    for at, token in enumerate(tokens):
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == binds_until:
            binds_until = ""
        elif token in ("for", "lambda"):
            binds_until = "in" if token == "for" else ":"
        if not token.isidentifier():
            continue
        before = tokens[at - 1] if at else ""
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        if before == ".":
            continue
        if before in ("def", "class") and at < 3:
            targets.append(token)
        elif at < last and after not in ("(", "[", "."):
            bound.add(token)
            if depth == 0 or after in (",", ")", "]"):
                targets.append(token)
        elif (
            before == "as"
            or after in ("=", ":=")
            or binds_until
            or first in ("global", "nonlocal", "case")
            or (first == "def" and depth == 1 and before in ("(", ",", "*", "**"))
            or (at == 0 and after == ":")
        ):
            bound.add(token)
        else:
            used.add(token)
    bound.update(targets)
    return targets


def _roots(tokens: list[str]) -> set[str]:
    """What stands before a dot in a statement, first of all."""
    return {
        token for at, token in enumerate(tokens[:-1]) if tokens[at + 1] == "." and (at == 0 or tokens[at - 1] != ".")
    }


def _program_with(functions: frozenset[str], usable: list[_Block], loose: str) -> str:
    """The program that defines the functions: one block, or the lines outside of blocks, or all blocks joined."""
    python = [block for block in usable if block.tag == "python"]
    ordered = [*reversed(python), *(block for block in reversed(usable) if block.tag == "")]
    outlines = {block: _outline(block.code) for block in usable}
    joined = [_joined(python, functions, outlines), _joined(usable, functions, outlines), loose]
    of_joined = {code: _outline(code) for code in joined}
    for has in (lambda outline: outline.made, lambda outline: outline.named):
        for block in ordered:
            if functions <= has(outlines[block]):
                return _completed(block, usable, functions)
        best = max(joined, key=lambda code: len(functions & has(of_joined[code])))
        if functions <= has(of_joined[best]):
            return best
    best = max(joined, key=lambda code: [len(functions & names) for names in of_joined[code][:2]])
    if functions & of_joined[best].named:
        return best
    group = python or usable
    return _completed(_whole_program(group), group) if group else loose


def _completed(chosen: _Block, blocks: list[_Block], functions: frozenset[str] = frozenset()) -> str:
    """The block, with those that bind what it uses and binds nowhere, in the order of the reply."""
    outlines = [_outline(block.code) for block in blocks]
    place = next(at for at, block in enumerate(blocks) if block is chosen)
    sources: dict[str, list[int]] = {}
    for at, outline in enumerate(outlines):
        # a later block must not put another function in the place of the chosen one's
        if not outline.foreign and (at < place or not functions & outline.named):
            for name in outline.made:
                sources.setdefault(name, []).append(at)
    taken, missing = {place}, set(outlines[place].missing)
    while missing:
        found = sources.pop(missing.pop(), [])
        if found and not taken.intersection(found):
            at = next((at for at in reversed(found) if at < place), found[0])
            taken.add(at)
            missing |= outlines[at].missing
    return "\n\n".join(blocks[at].code for at in sorted(taken))


def _is_cut_off(block: _Block) -> bool:
    """Did the reply end in the middle of a statement?"""
    if block.closed:
        return False
    lexer, line = _Lexer(), ""
    for line in block.code.split("\n"):
        lexer.read(line)
    return bool(lexer.string or lexer.depth or lexer.torn or _UNFINISHED.match(line))


def _finished(blocks: list[_Block]) -> list[_Block]:
    return [block for block in blocks if not _is_cut_off(block)] or blocks


def _joined(blocks: list[_Block], functions: frozenset[str], outlines: dict[_Block, _Outline]) -> str:
    """All blocks in one program, without those that only show how to use it."""
    makers = Counter(name for block in set(blocks) for name in outlines[block].made & functions)

    def only_shows(outline: _Outline) -> bool:
        """Does it make nothing of what is wanted, and name what others make or need another file?"""
        wanted = outline.named & functions
        return not outline.made & functions and (outline.foreign or any(makers[name] for name in wanted))

    useful = [b for b in _finished(blocks) if _DEFINES_SOMETHING.search(b.code) or outlines[b].named & functions]
    return "\n\n".join(block.code for block in useful if not only_shows(outlines[block]))


def _whole_program(blocks: list[_Block]) -> _Block:
    blocks = _finished(blocks)
    return next((b for b in reversed(blocks) if _reads_input(b.code)), blocks[-1])


def _reads_input(code: str) -> bool:
    """A comment about it is no reading, nor is putting something else in the place of stdin."""
    for line in code.split("\n"):
        if _READS_INPUT.search(line):
            commented = _COMMENTED.match(line)
            if commented is None or _READS_INPUT.search(commented[1]):
                return True
    return False


# ── compare: what was printed, and what was expected ─────────────────────────────────────────────────────────────────
# The expected token decides. Text is met byte for byte; an integer exactly, as a number; another decimal number within
# 1e-6, absolutely or relative to it. Only ASCII counts: no nan, inf, 1_000, hex or digits of other scripts. An exponent
# of more than 17 digits makes a token text. Decimal never expands an exponent, and rounding the difference up makes the
# comparison exact: the bound always lies on the grid of digits that the difference is rounded to.

_NUMBER = re.compile(rb"[+-]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?0*+\d{0,17}+(?<=\d))?")
_INTEGER = re.compile(rb"[+-]?\d++")
_SPACE = re.compile(rb"\s")  # of bytes: space, \t \n \r \v \f
_TOLERANCE = Decimal("1e-6")
_PIECE = 1 << 16  # bytes split at a time: a hostile 16 MiB of short tokens must not become 300 MB of objects


def outputs_match(got: bytes | str, expected: bytes | str, as_published: bool = False) -> bool:
    """Does the output of a program match the expected one? Split on ASCII whitespace, token by token, in order.

    as_published: integers too are compared within 1e-6, as the published recipe does.
    Text is read as UTF-8. The first difference ends it, and no list of all tokens is ever made.
    """
    got = got.encode("utf-8", "surrogatepass") if isinstance(got, str) else got
    expected = expected.encode("utf-8", "surrogatepass") if isinstance(expected, str) else expected
    if got == expected:
        return True
    ours, theirs = _tokens(got), _tokens(expected)
    while True:
        mine, wanted = list(islice(ours, 4096)), list(islice(theirs, 4096))
        if mine != wanted:
            if len(mine) != len(wanted):
                return False
            if not all(a == b or _numbers_match(a, b, as_published) for a, b in zip(mine, wanted, strict=True)):
                return False
        if not wanted:
            return True


def _tokens(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + _PIECE
        if end < len(data):
            space = _SPACE.search(data, end)
            end = space.start() if space else len(data)
        yield from data[at:end].split()
        at = end


def _numbers_match(got: bytes, expected: bytes, as_published: bool) -> bool:
    if not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(got)):
        return False
    exactly = not as_published and _INTEGER.fullmatch(expected) is not None
    if len(got) < 40 and len(expected) < 40:  # floats are ten times faster and decide all but the closest calls
        mine, wanted = float(got), float(expected)
        if abs(wanted) < 1e300:
            share = abs(mine - wanted) / max(1.0, abs(wanted))
            if share > 1.001e-6:
                return False
            if share < 0.999e-6 and not exactly:
                return True
            if exactly and len(got) < 16 and len(expected) < 16 and b"e" not in got.lower():
                return mine == wanted  # up to 15 digits no two decimals share a float
    number, bound = Decimal(got.decode()), Decimal(expected.decode())
    if exactly:
        return number == bound
    exact = Context(prec=len(expected) + 20, rounding=ROUND_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    difference = exact.abs(exact.subtract(number, bound))
    return difference <= _TOLERANCE or difference <= exact.multiply(exact.abs(bound), _TOLERANCE)


# ── asserts: the value comes out, the comparison stays outside ───────────────────────────────────────────────────────
# Nearly every assert is one leaf that equals a literal, and such a one needs no judge (asserts.py) unless its value
# holds something that hostile contents could make slow to compare.

_LITERAL = object()  # no literal
_ASKS = 10_000  # the most questions that one assert may put to a program
_ROUNDS = 200  # turns of judge and program, for one assert
_LIMITS = 3  # so many times the CPU limit of a test, for all the processes in which one assert is decided
_NOTHING = plain.encode({})


def _apart(text: str, job: _Job, required: frozenset[str]) -> asserts.Apart:
    """Raises TaskError."""
    try:
        return asserts.take_apart(text, job.setup, required)
    except asserts.NotATest as why:
        raise TaskError(f"a test cannot be used: {why}: {clip(text)!r}; mend or leave out this test") from None


@lru_cache(maxsize=4096)
def _literal(text: str) -> Any:
    """The value of a literal that can be compared on this side; _LITERAL where it is anything else."""
    try:
        value = ast.literal_eval(text)
        plain.encode(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, plain.BadValue):
        return _LITERAL
    return value


def _equal(data: bytes, literal: Any) -> bool | None:
    """Is the encoded value equal to the literal? None: not to be decided on this side."""
    if literal is _LITERAL or len(data) > 1 << 16:  # more would keep other work waiting
        return None
    if data == plain.encode(literal):
        return True
    try:
        plain.decode(plain.encode(literal), plain_only=True)
        return bool(plain.decode(data, plain_only=True) == literal)
    except ValueError:
        return None


# ── grade ────────────────────────────────────────────────────────────────────────────────────────────────────────────


_KEPT = 8192  # verdicts remembered
_LARGE = 1 << 18  # bytes from which on an output is compared piece by piece, between other work


class Grader:
    """Runs programs in a pool of sandboxed workers. Async context manager; safe to use from many tasks at once.

    workers: processes, None = one per core. as_published: grade as the published recipe does (wall time, 1e-6 on
    all numbers, no stop after three timeouts). tier: None = the best this machine offers, else of walls.TIERS.
    limits: of one test, for every program; a task's own timeout goes before it.
    Raises GraderFault when it cannot start or the machine gives out.
    """

    def __init__(
        self,
        workers: int | None = None,
        as_published: bool = False,
        tier: str | None = None,
        limits: sandbox.Limits | None = None,
    ) -> None:
        if sys.platform == "win32":
            raise GraderFault("programs cannot be walled in on Windows: run this in a Linux container or in WSL")
        affinity = getattr(os, "sched_getaffinity", None)
        self.workers = workers or (len(affinity(0)) if affinity else os.cpu_count() or 1)
        self.as_published = as_published
        self.wanted_tier = tier
        self.tier = ""
        self.limits = limits or sandbox.Limits()
        self.counts = {"graded": 0, "repeated": 0}
        self._base = ""
        self._closed = False
        self._numbers = itertools.count()
        self._idle: asyncio.Queue[sandbox.WorkerProcess] = asyncio.Queue()
        self._all: list[sandbox.WorkerProcess] = []
        self._known: dict[Any, asyncio.Future[Any]] = {}

    @property
    def rules(self) -> str:
        return rules_of(self.as_published)

    async def __aenter__(self) -> Grader:
        try:
            self._base = tempfile.mkdtemp(prefix="swarm-rescue-")
            os.chmod(self._base, 0o711)
        except OSError as why:
            raise GraderFault(f"no temporary folder for the sandbox: {why}; set TMPDIR to a disk with room") from None
        try:
            await self._settle()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._closed = True  # whoever is still at work now gets no new worker
        for worker in self._all:
            worker.kill()
        while self._all:
            await asyncio.shield(asyncio.to_thread(self._all.pop().wait))
        _remove(self._base)

    # ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _settle(self) -> None:
        """Take the best tier whose walls can be built and hold against the self-test."""
        reasons = []
        for tier in walls.TIERS if self.wanted_tier is None else (self.wanted_tier,):
            self.tier = tier
            try:
                workers = await asyncio.gather(*(self._start() for _ in range(self.workers)))
                for worker in workers:
                    self._idle.put_nowait(worker)
                await self._self_test()
                return
            except GraderFault as why:
                reasons.append(f"{tier}: {why}")
            while not self._idle.empty():
                self._idle.get_nowait().kill()
        self.tier = ""
        raise GraderFault(f"no tier of the sandbox works here ({'; '.join(reasons)})")

    async def _start(self) -> sandbox.WorkerProcess:
        if self._closed:
            raise GraderFault("the grader has been closed; grade inside its `async with`")
        worker = sandbox.WorkerProcess(self.tier, f"{self._base}/{next(self._numbers)}")
        self._all.append(worker)
        try:
            await worker.start()
        except sandbox.SandboxFault as why:
            worker.kill()
            raise GraderFault(str(why)) from None
        return worker

    async def _self_test(self) -> None:
        wrong = [name for name, right in await asyncio.gather(*map(self._check, SELF_TEST)) if not right]
        if wrong:
            raise GraderFault(f"the self-test came out wrong: {', '.join(wrong)}")

    async def _check(self, check: Check) -> tuple[str, bool]:
        if self.tier not in check.tiers:
            return check.name, True
        limits = sandbox.Limits(check.cpu_seconds, check.asleep_seconds, 20.0, 64 << 20, 1 << 16, 0)
        output = (await self._outputs(check.program, [check.stdin], limits, retry=False))[0]
        return check.name, output.outcome in check.outcomes and (
            not check.stdouts or output.stdout.strip() in check.stdouts
        )

    # ── the verbs ────────────────────────────────────────────────────────────────────────────────────────────────────
    async def execute(self, program: str, stdin: bytes = b"", limits: sandbox.Limits | None = None) -> sandbox.Output:
        """Run a program once: Output(stdout, status, outcome, cpu_seconds); outcome is "ended" when all went well."""
        return (await self._outputs(program, [stdin], limits or self.limits))[0]

    async def run(
        self,
        program: str,
        tests: Sequence[Any],
        kind: str = "stdio",
        setup: str = "",
        stop_at_first: bool = False,
        timeout: float | None = None,
        functions: Sequence[str] = (),
    ) -> list[TestResult]:
        """A program on tests: a result for each, in order.

        tests: Test, or plain (input, output) pairs; for asserts also plain strings. stop_at_first: tests after the
        first that is not passed are not_run. timeout: CPU seconds a test. functions: names that the task requires.
        """
        wanted = tuple(Test(t) if isinstance(t, str) else Test(*t[:2]) for t in tests)
        job = _Job(program, kind, setup, self._limits(timeout), stop_at_first, tuple(functions))
        key = hashlib.sha256(repr((job, wanted)).encode("utf-8", "surrogatepass")).digest()
        return list(await self.once(key, lambda: self._run(job, [wanted])))

    async def grade(self, reply: str, task: Task) -> Grade:
        """Find the program in a reply, run every visible test and, if it passes them all, every hidden one."""
        code = extract_code(reply, task.functions)
        if code is None:
            return Grade(None, 0.0, False, "no_code", LETTERS["no_code"] * len(task.visible))
        job = _Job(code, task.kind, task.setup, self._limits(task.timeout), False, task.functions)
        results = await self.once((task.digest, job), lambda: self._run(job, [task.visible, task.hidden]))
        visible, hidden = results[: len(task.visible)], results[len(task.visible) :]
        failed = next((r for r in results if not r.passed), None)
        shown = next((r for r in visible if not r.passed), None)
        return Grade(
            code=code,
            fitness=sum(r.passed for r in visible) / len(visible) if visible else 0.0,
            passed=failed is None and len(results) == len(task.visible) + len(task.hidden) > 0,
            outcome=failed.outcome if failed else "pass" if results else "not_run",
            visible="".join(LETTERS[r.outcome] for r in visible),
            hidden="".join(LETTERS[r.outcome] for r in hidden),
            got=shown.got if shown else "",
            got_start=shown.got_start if shown else 0,
            cpu_seconds=round(sum(r.cpu_seconds for r in results), 6),
        )

    def _limits(self, timeout: float | None) -> sandbox.Limits:
        seconds = self.limits.cpu_seconds if timeout is None else float(timeout)
        limits = self.limits._replace(cpu_seconds=seconds)
        if self.as_published:
            limits = limits._replace(asleep_seconds=seconds, wall_seconds=seconds, timeouts=0)
        return limits

    async def once(self, key: Any, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Equal (program, tests, rules) are worked out once, those in flight at this moment included."""
        while (known := self._known.get(key)) is not None:
            try:
                result = await asyncio.shield(known)
            except asyncio.CancelledError:
                if not known.cancelled():
                    raise  # it is us who are cancelled
                continue  # whoever worked on it was: take it over
            self.counts["repeated"] += 1
            return result
        while len(self._known) >= _KEPT and (oldest := next(iter(self._known))) and self._known[oldest].done():
            del self._known[oldest]
        future = self._known[key] = asyncio.get_running_loop().create_future()
        try:
            result = await work()
        except BaseException as why:
            del self._known[key]
            if isinstance(why, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(why)
                future.exception()  # it has been looked at, even if nobody else waits
            raise
        self.counts["graded"] += 1
        future.set_result(result)
        return result

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _run(self, job: _Job, groups: Sequence[Sequence[Test]]) -> list[TestResult]:
        """Groups of tests, each run if all before were passed."""
        if job.kind not in ("stdio", "assert"):
            raise TaskError(f"tests of kind {job.kind!r} are not for this grader; use stdio or assert")
        try:
            source = job.program.encode()
        except UnicodeEncodeError:  # half a surrogate pair: no file could hold it
            return [TestResult(False, "syntax_error", "syntax_error") for _ in groups[0]]
        run = self._run_stdio if job.kind == "stdio" else self._run_asserts
        failed = [TestResult(False, "runtime_error", "runtime_error") for _ in groups[0]]
        return await self._on_worker(lambda worker: run(worker, source, job, groups), failed)

    async def _on_worker(self, work: Callable[[sandbox.WorkerProcess], Coroutine[Any, Any, Any]], failed: Any) -> Any:
        """Do it on a worker; if that dies, once more on a fresh one; if that dies too, a third tells whose fault it is.

        failed: the result when a program has killed two workers while a third passes the self-test.
        """
        lost, kills = None, [0]
        for _ in range(2):
            worker = await self._idle.get()
            try:
                if worker.lost:
                    worker = await self._replace(worker)
                return await work(worker)
            except sandbox.WorkerLost as why:
                worker.kill()
                lost = why
                kills.append(_kills_for_want_of_memory())
            except sandbox.SandboxFault as why:
                worker.kill()
                raise GraderFault(f"{why}; make room on this machine, then start again to continue") from None
            except BaseException:
                worker.kill()  # half-way through a program: not to be used again
                raise
            finally:
                self._idle.put_nowait(worker)
        await self._self_test()
        if isinstance(lost, sandbox.KilledOutside) and kills[-1] > kills[-2]:  # else it was the program's own doing
            raise GraderFault(f"twice {lost}; use fewer --workers or another machine, then start again to continue")
        return failed

    async def _replace(self, worker: sandbox.WorkerProcess) -> sandbox.WorkerProcess:
        worker.kill()
        await asyncio.to_thread(worker.wait)
        if worker in self._all:
            self._all.remove(worker)
        _remove(worker.scratch)
        return await self._start()

    async def _outputs(
        self, program: str, inputs: list[bytes], limits: sandbox.Limits, retry: bool = True
    ) -> list[sandbox.Output]:
        try:
            source = program.encode()
        except UnicodeEncodeError:
            return [sandbox.Output(b"", None, "syntax_error", 0.0) for _ in inputs]

        async def work(worker: sandbox.WorkerProcess) -> list[sandbox.Output]:
            worker.begin(source, protocol.MAIN, limits)
            return [output async for output in _exchange(worker, inputs, last=True)]

        if retry:
            return await self._on_worker(work, [sandbox.Output(b"", None, "runtime_error", 0.0) for _ in inputs])
        worker = await self._idle.get()
        try:
            if worker.lost:
                worker = await self._replace(worker)
            return await work(worker)
        except (sandbox.WorkerLost, sandbox.SandboxFault) as why:
            worker.kill()
            raise GraderFault(str(why)) from None
        finally:
            self._idle.put_nowait(worker)

    async def _run_stdio(
        self, worker: sandbox.WorkerProcess, source: bytes, job: _Job, groups: Sequence[Sequence[Test]]
    ) -> list[TestResult]:
        results: list[TestResult] = []
        worker.begin(source, protocol.MAIN, job.limits)
        ended = False
        for number, tests in enumerate(groups, 1):
            if not all(r.passed for r in results):
                break
            for few in [[test] for test in tests] if job.stop_at_first else [tests]:
                if job.stop_at_first and not all(r.passed for r in results):
                    results += [TestResult(False, "not_run", "not_run") for _ in few]
                    continue
                ended = number == len(groups) and not job.stop_at_first
                inputs = [test.input.encode("utf-8", "surrogatepass") for test in few]
                at = 0
                async for output in _exchange(worker, inputs, ended):
                    results.append(await self._judge(output, few[at].output))
                    at += 1
        if not ended:
            await worker.send([], last=True)
        return results

    async def _judge(self, output: sandbox.Output, expected: str) -> TestResult:
        if output.outcome != "ended":
            return TestResult(False, output.outcome, output.outcome, output.cpu_seconds)
        got, wanted = output.stdout, expected.encode("utf-8", "surrogatepass")
        if len(got) + len(wanted) < _LARGE:
            right = outputs_match(got, wanted, self.as_published)
        else:
            right = await self._match_large(got, wanted)
        if right:
            return TestResult(True, "pass", "", output.cpu_seconds)
        text = got.decode("utf-8", "replace")
        start = _clip_start(text, expected)
        return TestResult(False, "wrong_answer", clip(text, start), output.cpu_seconds, start)

    async def _match_large(self, got: bytes, expected: bytes) -> bool:
        """outputs_match, giving way to other work after every few thousand tokens."""
        if got == expected:
            return True
        ours, theirs = _tokens(got), _tokens(expected)
        while True:
            mine, wanted = b" ".join(islice(ours, 4096)), b" ".join(islice(theirs, 4096))
            if not outputs_match(mine, wanted, self.as_published):
                return False
            if not wanted:
                return True
            await asyncio.sleep(0)

    async def _run_asserts(
        self, worker: sandbox.WorkerProcess, source: bytes, job: _Job, groups: Sequence[Sequence[Test]]
    ) -> list[TestResult]:
        results: list[TestResult] = []
        required = frozenset(job.functions)
        for tests in groups:
            if not all(r.passed for r in results):
                break
            parts = []
            for test in tests:
                part = _apart(test.input, job, required)
                if not job.functions and not part.leaves:
                    own = {name for name in asserts.BUILTINS if name in test.input and _defines(job.program, name)}
                    with contextlib.suppress(TaskError):  # a program decides no test's worth
                        part = _apart(test.input, job, frozenset(own))
                parts.append(part)
            for few in [[part] for part in parts] if job.stop_at_first else [parts]:
                if job.stop_at_first and not all(r.passed for r in results):
                    results += [TestResult(False, "not_run", "not_run") for _ in few]
                    continue
                results += await self._values(worker, source, job, few)
        return results

    async def _values(
        self, worker: sandbox.WorkerProcess, source: bytes, job: _Job, parts: list[asserts.Apart]
    ) -> list[TestResult]:
        """Put questions to the program and answers to the judge, in turns, until all asserts are decided."""
        open_ = [_Open(part) for part in parts]
        limits = job.limits._replace(output_bytes=4 * plain.VALUE_BYTES)
        if quick := [one for one in open_ if one.part.is_one_question]:
            worker.begin(source, protocol.MODULE, limits)
            inputs = [_snippet(one.part.question(), b"") for one in quick]
            at = 0
            async for output in _exchange(worker, inputs, last=True):
                quick[at].take_value(output)
                at += 1
        while waiting := [one for one in open_ if one.result is None]:
            late = [one.result for one in open_ if one.result and one.result.outcome == "timeout"]
            if job.limits.timeouts and len(late) >= job.limits.timeouts:
                for one in waiting:
                    one.result = TestResult(False, "not_run", "not_run", one.cpu)
                break
            worker.begin(asserts.JUDGE.encode(), protocol.MODULE, job.limits)
            inputs = [_snippet(one.part.judge, one.known()) for one in waiting]
            outputs = [output async for output in _exchange(worker, inputs, last=True)]
            for one, output in zip(waiting, outputs, strict=True):
                one.take_verdict(output)
            if asking := [one for one in waiting if one.result is None and one.asks]:
                worker.begin(source, protocol.MODULE, limits)
                inputs = [one.question() for one in asking]
                outputs = [output async for output in _exchange(worker, inputs, last=True)]
                for one, output in zip(asking, outputs, strict=True):
                    one.take_answers(output)
            for one in waiting:
                if one.result is None and one.cpu > _LIMITS * job.limits.cpu_seconds:
                    one.result = TestResult(False, "timeout", "timeout", one.cpu)
        return [one.result for one in open_ if one.result is not None]


class _Open:
    """An assert that is being decided: what has been answered, and what is asked."""

    def __init__(self, part: asserts.Apart) -> None:
        self.part = part
        self.given: list[tuple[tuple[int, bytes, bytes], bool, bytes | str]] = []  # question, whole, answer
        self.asks: list[tuple[int, bytes, bytes]] = []  # all questions so far, those answered included
        self.many = _ASKS  # new questions put at once: fewer, where one of them went wrong
        self.whole: set[int] = set()  # leaves of which the program's value so far is an object of its own
        self.guess = False
        self.rounds = 0
        self.checked = False  # the judge has run without an answer
        self.cpu = 0.0
        self.result: TestResult | None = None

    def fail(self, outcome: str, got: str = "") -> None:
        self.result = TestResult(False, outcome, got or outcome, self.cpu)

    def take_value(self, output: sandbox.Output) -> None:
        """The answer to the only question there is."""
        self.cpu += output.cpu_seconds
        data, text = _value(output.stdout)
        if output.outcome == "bad_value" and self.part.leaves and self.part.leaves[0].whole:
            self.whole.add(0)
        elif output.outcome != "ended":
            self.fail(output.outcome, f"bad_value: {text}" if output.outcome == "bad_value" else "")
        elif not data:  # it left with status 0 before there was a value
            self.fail("runtime_error")
        elif len(data) > plain.VALUE_BYTES:
            self.fail("bad_value", "bad_value: too much of it")
        else:
            other = self.part.other
            literal = _LITERAL if other is None else _literal(other)
            start = _clip_start(text, repr(literal)) if literal is not _LITERAL else 0
            equal = _equal(data, literal)
            if equal is not None:
                self.result = _assert_result(equal, (clip(text, start), start), self.cpu)
            elif self.part.leaves:
                self.given = [((0, _NOTHING, _NOTHING), False, data)]

    def known(self) -> bytes:
        """What the judge is given. It guesses in turns: one guess ends an `all` at once, and the other an `any`."""
        self.guess = not self.guess
        return plain.encode((self.guess, self.given), 1 << 40)

    def take_verdict(self, output: sandbox.Output) -> None:
        """What the judge says: passed or not, or what it wants to know."""
        if output.outcome == "not_run":  # others have used up the time
            self.asks = []
            return
        self.cpu += output.cpu_seconds
        without, self.checked = not self.given, self.checked or not self.given
        try:
            said: Any = plain.decode(_value(output.stdout)[0], plain_only=True)
        except ValueError:
            if without:  # nothing of the program is in it
                why = f"the set-up code of a test does not run by itself ({output.outcome})"
                raise TaskError(f"{why}: {clip(self.part.judge)!r}; mend or leave out this test") from None
            if not self.checked:  # does it fail by itself?
                self.given, self.asks = [], []
            elif output.outcome == "timeout":  # a value that takes that long to compare
                self.fail("timeout")
            else:
                self.fail("wrong_answer", "a value that cannot be compared")
            return
        if isinstance(said, tuple) and [type(part) for part in said] == [bool, str]:
            passed, text = said
            self.result = _assert_result(passed, (clip(text), 0), self.cpu)
        elif isinstance(said, list) and all(map(self._is_question, said)):
            self.rounds += 1
            if len(said) > _ASKS or self.rounds > _ROUNDS:
                self.fail("bad_value", "bad_value: too many questions")
            self.asks = said
            met = next((at for at, (one, known) in enumerate(zip(said, self.given, strict=False)) if one != known[0]),
                       min(len(said), len(self.given)))  # fmt: skip
            self.given = self.given[:met]
        elif said is None and without:
            why = "a test hands the program, out of a variable, what is no plain data; make it in the call"
            raise TaskError(f"{why}: {clip(self.part.judge)!r}; mend or leave out this test")
        else:  # whoever has said that is not the judge
            self.fail("wrong_answer", "a value that cannot be compared")

    def _is_question(self, said: Any) -> bool:
        if not isinstance(said, tuple) or [type(part) for part in said] != [int, bytes, bytes]:
            return False
        try:
            names = [plain.decode(part) for part in said[1:]]
        except (ValueError, TypeError):
            return False
        return 0 <= said[0] < len(self.part.leaves) and all(isinstance(one, dict) for one in names)

    def question(self) -> bytes:
        """All questions so far and the next new ones, for one process: the program may keep what it was asked."""
        asks = self.asks[: len(self.given) + self.many]
        hows = [(leaf, leaf in self.whole) for leaf, _, _ in asks]
        bound = [
            {**plain.decode(first), **(plain.decode(more) if leaf in self.whole else {})} for leaf, first, more in asks
        ]
        return _snippet(self.part.questions(hows), plain.encode(bound, 1 << 40))

    def take_answers(self, output: sandbox.Output) -> None:
        """The answers to question(). Where it went wrong, half as many are asked next; a single one has failed."""
        if output.outcome == "not_run":
            return
        self.cpu += output.cpu_seconds
        asks = self.asks[: len(self.given) + self.many]
        data, text = _value(output.stdout)
        if output.outcome == "ended" and data:
            answers = _answers(data)
            if len(answers) == len(asks):
                self.given = [(ask, ask[0] in self.whole, answer) for ask, answer in zip(asks, answers, strict=True)]
                self.many = min(_ASKS, 2 * self.many)
            else:
                self.fail("runtime_error")
            return
        new = len(asks) - len(self.given)
        if new > 1:
            self.many = new // 2
        elif output.outcome == "bad_value" and self.part.leaves[asks[-1][0]].whole and asks[-1][0] not in self.whole:
            self.whole.add(asks[-1][0])
        elif output.outcome == "bad_value":
            self.fail("bad_value", f"bad_value: {text}")
        else:
            self.fail("runtime_error" if output.outcome == "ended" else output.outcome)


def _answers(data: bytes) -> list[bytes | str]:
    """The list of answers that a program's process has sent; empty where it is none."""
    try:
        answers = plain.decode(data, plain_only=True)
    except ValueError:
        return []
    if not isinstance(answers, list) or not all(isinstance(answer, bytes | str) for answer in answers):
        return []
    return answers


class _Job(NamedTuple):
    """A program and how it is run: with the tests, all that a verdict depends on."""

    program: str
    kind: str
    setup: str
    limits: sandbox.Limits
    stop_at_first: bool
    functions: tuple[str, ...]


async def _exchange(worker: sandbox.WorkerProcess, inputs: list[bytes], last: bool) -> AsyncIterator[sandbox.Output]:
    """Inputs out, results in, both at once where there is much of them."""
    if sum(map(len, inputs)) < 1 << 16:
        await worker.send(inputs, last)
        for _ in inputs:
            yield await worker.receive()
        return
    sending = asyncio.ensure_future(worker.send(inputs, last))
    try:
        for _ in inputs:
            yield await worker.receive()
        await sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def _snippet(piece: str, given: bytes) -> bytes:
    text = piece.encode("utf-8", "surrogatepass")
    return len(text).to_bytes(4, "little") + text + given


def _kills_for_want_of_memory() -> int:
    """How many processes the kernel has killed so far because memory ran out; 0 where it does not say."""
    try:
        with open("/proc/vmstat") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


def _remove(folder: str) -> None:
    """Remove a scratch folder, whatever depth and whatever rights were given to what is in it."""
    try:
        for path, inner, _ in os.walk(folder):
            for name in inner:
                if not os.path.islink(f"{path}/{name}"):
                    os.chmod(f"{path}/{name}", 0o700)
        shutil.rmtree(folder, ignore_errors=True)
    except (OSError, RecursionError):
        subprocess.run(["rm", "-rf", folder], stderr=subprocess.DEVNULL, check=False)


def _value(stdout: bytes) -> tuple[bytes, str]:
    """The two halves of what a call sends back: the value encoded, and its repr; for a bad value, b"" and its name."""
    size = int.from_bytes(stdout[:4], "little")
    if len(stdout) < 4 + size:
        return b"", stdout.decode("utf-8", "replace")
    return stdout[4 : 4 + size], stdout[4 + size :].decode("utf-8", "replace")


def _assert_result(equal: bool, shown: tuple[str, int], cpu: float) -> TestResult:
    return TestResult(True, "pass", "", cpu) if equal else TestResult(False, "wrong_answer", shown[0], cpu, shown[1])


def _clip_start(got: str, expected: str) -> int:
    """Where a clip of a wrong output begins: at the start if all of it fits, else with the first difference amid it."""
    if len(got) <= CLIP and len(expected) <= CLIP:
        return 0
    return max(0, _first_difference(got, expected) - CLIP // 2)


def _first_difference(got: str, expected: str) -> int:
    """The offset in got of the first token that is not the expected one's twin."""
    at, step = 0, 1 << 16
    while step:  # the longest common beginning, by halves
        if got[at : at + step] == expected[at : at + step] and at + step <= min(len(got), len(expected)):
            at += step
        else:
            step >>= 1
    space = max(got.rfind(" ", 0, at), got.rfind("\n", 0, at)) + 1
    ours, theirs = re.compile(r"\S+").finditer(got, space), re.compile(r"\S+").finditer(expected, space)
    for mine, wanted in islice(zip_longest(ours, theirs), 100_000):
        if mine is None:
            return len(got)
        if wanted is None or (mine[0] != wanted[0] and not outputs_match(mine[0], wanted[0])):
            return mine.start()
    return at


# ── self-test: what must come out before anything is graded ──────────────────────────────────────────────────────────


class Check(NamedTuple):
    """A program, and what the sandbox must make of it. stdouts: () for any."""

    name: str
    program: str
    outcomes: tuple[str, ...]
    stdouts: tuple[bytes, ...] = (b"",)
    stdin: bytes = b""
    tiers: tuple[str, ...] = ("full", "strict", "limits")
    cpu_seconds: float = 1.0
    asleep_seconds: float = 1.0


_WALLED = ("full", "strict")
_TRY = """
try:
    {attack}
except OSError:
    print("refused")
else:
    print("DONE")
"""


def _refused(name: str, attack: str, before: str = "import os") -> Check:
    return Check(name, before + _TRY.format(attack=attack), ("ended",), (b"refused",), tiers=_WALLED)


SELF_TEST = (
    Check("a right program", "print(sum(map(int, input().split())))", ("ended",), (b"5",), b"2 3\n"),
    Check("a wrong program", "print(1 // 0)", ("runtime_error",)),
    Check("a hanging program", "while True:\n    pass", ("timeout",), cpu_seconds=0.1),
    Check("a sleeping program", "import time\ntime.sleep(9)", ("timeout",), asleep_seconds=0.15),
    Check("a greedy program", "held = [b'x' * (1 << 20) for _ in range(256)]", ("memory_limit",)),
    Check("a talkative program", "while True:\n    print('x' * 4096)", ("output_limit",), ()),
    _refused("reading a file", "open('/etc/passwd').read()"),
    _refused("listing the root", "os.listdir('/root' if os.path.isdir('/root') else '/home')"),
    _refused("writing outside", "open('/tmp/swarm-rescue-escape', 'w')"),
    _refused("a new process", "os.fork()"),
    _refused("another program", "os.execv('/bin/sh', ['sh', '-c', 'echo DONE'])"),
    _refused("a signal to the parent", "os.kill(os.getppid(), 9)"),
    _refused("a signal to everybody", "os.kill(-1, 9)"),
    _refused("a network socket", "_socket.socket(_socket.AF_INET, 1)", "import _socket"),
    _refused("another's memory", "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
)
