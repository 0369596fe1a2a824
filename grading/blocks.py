"""The fenced blocks of a reply, and the lines outside of them: Markdown, as models write it.

    read_markdown   all blocks that are not empty, and the lines outside; reasoning removed
    loose_program   a program in lines without a fence
    is_program      do lines look like a program
    Lexer           how far a line-by-line reading of Python has come

What is made of each shape stands at the top of extract.py. Left out: which of several programs is meant (extract.py),
which markers there are (reasoning.py).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from grading.reasoning import BEGINS, ENDS, OPENS_AT_END, OPENS_LINE, after_start, before_end, ends_turn

_ASKED = 8  # times: each reads all lines outside of blocks
_MENTIONED = re.compile(r"[ \t]</\w+>[ \t]+[a-z]")  # amid a sentence: about the tag, and no end of anything
_FENCE = re.compile(r"((?:[ \t]*+>)*+[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?+)(`{3,}+|~{3,}+)[ \t]*+(.*)", re.S)
_BARE_FENCE = re.compile(r"(?:[ \t]*>)*[ \t]*(?:`{2,}|~{3,})[ \t]*")  # of any length: it closes a program
_QUOTED = re.compile(r"[ \t]*>[ ]?")  # a block inside a Markdown quotation
_PYTHON_TAG = re.compile(r"\{?\.?(?:lang(?:uage)?[-=])?(?:i?python|py|pycon)[\d.]*(?![A-Za-z0-9_+#-])", re.I)
_PLAIN_TAG = re.compile(r"(?:text|txt|plain|plaintext|code|solution|answer)\b", re.I)
_LEXEME = re.compile(r"#.*|\"\"\"|'''|\"(?:[^\"\\]|\\.)*+\"?|'(?:[^'\\]|\\.)*+'?|[()\[\]{}]", re.S)
_STRING_END = {'"""': re.compile(r'\\.|"""', re.S), "'''": re.compile(r"\\.|'''", re.S)}

# A line at the left margin that can only be Python, or at least can be. Looked at: its first 300 characters.
_TARGET = r"\*?[A-Za-z_][\w.]*+(?:\[[^\]]*+\])*+"
STATEMENT = re.compile(
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


class Block(NamedTuple):
    """One fenced block. Tag: python, plain, "" (none) or other."""

    tag: str
    code: str
    closed: bool


class Lexer:
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


def read_markdown(text: str) -> tuple[list[Block], list[str]]:
    """All fenced blocks that are not empty, and the lines outside of them; reasoning removed."""
    lines = text.split("\n")
    ends = {quote: [i for i, line in enumerate(lines) if quote in line] for quote in _STRING_END}
    tagged = [i for i, line in enumerate(lines) if (m := _fence(line)) and _PYTHON_TAG.match(m[3])]
    blocks: list[Block] = []
    outside: list[str] = []
    body: list[str] = []
    opener: re.Match[str] | None = None  # of the block we are in
    tag = ""
    lexer = Lexer()
    nested = 0  # fences opened inside the docstring we are in
    reasoning = False
    asked = 0  # how often it has been looked whether what stands outside is a program
    last_end: int | None = None  # the last line that ends reasoning, once anybody has asked

    def close(closed: bool) -> None:
        nonlocal opener
        if opener is not None and (code := _tidy(body, opener[1])):
            blocks.append(Block(tag, code, closed))
        opener = None

    def open_at(fence: re.Match[str]) -> None:
        nonlocal opener, tag, lexer, nested
        opener, lexer, nested = fence, Lexer(), 0
        body.clear()
        info = fence[3].strip()
        tag, rest = "other", ""
        if python := _PYTHON_TAG.match(info):
            tag, rest = "python", info[python.end() :].strip(" \t}")
        elif not info or is_program(info):
            tag, rest = "", info  # the code begins on the line of the fence
        elif _PLAIN_TAG.match(info):
            tag = "plain"
        if rest and is_program(rest):
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
        if not line:
            if not reasoning:
                (outside if opener is None else body).append(line)
            continue
        in_code = opener is not None and tag in ("python", "")
        in_string = bool(in_code and lexer.string) and held_by_string(at, at)
        if not in_string:
            if opener is None and not reasoning:
                first = not blocks and not any(outside[:9])
                reasoning = bool(
                    OPENS_LINE.match(line)
                    or (first and BEGINS.match(line))
                    or (not blocks and OPENS_AT_END.search(line))
                )
            if opener is None or reasoning:
                tags = list(ENDS.finditer(line))
                if blocks and not reasoning:
                    tags = [tag for tag in tags if not _MENTIONED.match(line, tag.start() - 1)]
            else:
                tags = [m for m in [ENDS.match(line.strip(" \t`~"))] if m]  # a draft whose fence was left open
            if tags:
                blocks.clear()
                outside.clear()
                opener, in_code, asked = None, False, 0
                line = tags[-1].string[tags[-1].end() :]
                reasoning = OPENS_LINE.match(line) is not None
            if reasoning:
                continue
            if in_code and not body:
                line = _after_edge(line)
        whole = line
        if opener is None:
            line = _after_edge(line)
        end = _before_edge(line) if not in_string and (in_code or opener is None) else len(line)
        over = ends_turn(line[end:])
        uncut, line = line, line[:end]
        fence = _fence(line)
        one_line = fence and fence[2] in fence[3] and _one_line_block(fence)
        if opener is None:
            if one_line:
                blocks.append(one_line)
            elif fence is None:
                outside.append(whole)
                if over and not blocks:
                    asked += 1
                    over = asked <= _ASKED and _loose(outside)[1]
            else:
                asked += 1
                bare = not fence[3].strip() and not blocks and asked <= _ASKED
                if bare and _starts_as_program(outside):
                    blocks.append(Block("python", loose_program(outside) or "", True))  # its opening fence is not here
                    outside.clear()
                else:
                    open_at(fence)
        elif in_string and fence and fence[2][0] == opener[2][0]:
            if lexer.string in fence[3]:
                nested = 0  # the string ends beside the fence
            elif fence[3].strip():
                nested += 1
            elif nested:
                nested -= 1
            body.append(line)
            lexer.read(line)
        elif (fence and fence[2].startswith(opener[2]) and not fence[3].strip()) or (
            in_code and not in_string and _BARE_FENCE.fullmatch(line)
        ):
            close(True)
        elif (
            fence
            and fence[3].strip()
            and not one_line
            and (fence[2][0] == opener[2][0] or (in_code and not in_string and _PYTHON_TAG.match(fence[3])))
        ):
            close(True)
            open_at(fence)
        else:
            ended = "#" not in line and line.rstrip().endswith(opener[2]) and in_code
            if in_code:
                lexer.read(line)
            if end < len(uncut) and ("#" in line or lexer.string or lexer.depth):
                line, over = uncut, False  # the tokens are part of a comment or a string
            if ended and lexer.string and held_by_string(at, at + 1):
                ended = False  # the fence is part of the string
            body.append(line.rstrip()[: -len(opener[2])] if ended else line)
            if ended or over:
                close(True)
        if over:  # unless all of this was reasoning
            if last_end is None:
                last_end = next((i for i in range(len(lines) - 1, -1, -1) if ENDS.search(lines[i])), -1)
            if last_end <= at:
                break
    close(False)
    return blocks, outside


def _after_edge(line: str) -> str:
    return line[after_start(line) :] if line.lstrip()[:1] in ("<", "[") else line


def _before_edge(line: str) -> int:
    return before_end(line) if line.rstrip().endswith((">", "]", "[")) else len(line)


def _fence(line: str) -> re.Match[str] | None:
    return _FENCE.match(line) if "```" in line or "~~~" in line else None


def _one_line_block(fence: re.Match[str]) -> Block | None:
    """```python print(1)``` on one line, which Markdown calls inline code."""
    inside, _, after = fence[3].rpartition(fence[2])
    python = _PYTHON_TAG.match(inside)
    code = inside[python.end() :].strip() if python else inside.strip()
    return Block("python" if python else "", code, True) if code and not after.strip() else None


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


def is_program(code: str) -> bool:
    return any(_PROGRAM.match(line[:300]) for line in code.split("\n") if STATEMENT.match(line[:300].rstrip()))


def _starts_as_program(lines: list[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    known = _PYTHON_TAG.fullmatch(first.strip()) or first.startswith("#") or STATEMENT.match(first[:300].rstrip())
    return bool(known) and loose_program(lines) is not None


def loose_program(lines: list[str]) -> str | None:
    """A program that stands in the reply without a fence: from its first statement to its last, whatever is between."""
    return _loose(lines)[0]


def _loose(lines: list[str]) -> tuple[str | None, bool]:
    """That, and whether the model's turn ended with it."""
    for text in ([*lines], [line[4:] for line in lines if line.startswith("    ") or not line.strip()]):
        first, last, program, lexer = -1, -1, False, Lexer()
        prose = True  # is the line above neither a statement nor part of one
        over = False
        for at, line in enumerate(text):
            inside = first >= 0 and (lexer.string or lexer.depth)
            if not inside:
                line = text[at] = _after_edge(line)
            end = len(line) if lexer.string else _before_edge(line)
            short = line[: min(end, 300)].rstrip()
            if inside:
                last = at
            elif not short or short[0] == "#":
                over = program and ends_turn(line[end:])
                if over:
                    break
                continue
            elif short[0] in " \t":
                if prose:
                    continue
                last = at
            elif STATEMENT.match(short) or (first >= 0 and short[0] in "\"'"):
                first, last, prose = (at if first < 0 else first), at, False
                program = program or bool(_PROGRAM.match(short))
            else:
                prose = True
                continue
            lexer.read(line[:end])
            if end < len(line) and not ("#" in line[:end] or lexer.string or lexer.depth):
                text[at] = line[:end]
                over = program and ends_turn(line[end:])
                if over:
                    break
        if program:
            return "\n".join(text[first : last + 1]).strip("\n").rstrip(), over
    return None, False
