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

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from itertools import islice
from typing import NamedTuple

# ── extract: the program in a reply ──────────────────────────────────────────────────────────────────────────────────
# Chat models answer in Markdown, more or less. What is met in practice, and what is made of it:
#   several blocks        the last one tagged Python that defines every required function; where none does, all joined;
#                         without required functions the last that reads its input, else the last
#   no Python tag         untagged blocks that look like a program, then unfenced lines that do, then text/plain blocks
#   fence never closed    the block runs to the end; it gives way to a finished one when it stops in mid-statement
#   only a closing fence  chat servers may pre-fill the opening one: what stands before it is the program
#   fence in a docstring  does not close the block
#   reasoning             whatever comes before the last closing tag is no answer, nor what follows an opening tag
#                         that is never closed
# Line ends become \n; apart from that the text of the program is handed on as it stands.

_REASONING = r"think|thinking|thought|thoughts|reasoning"
_OPENS_REASONING = re.compile(rf"[ \t]*(?:<(?:{_REASONING})>|\[THINK\]|◁think▷|<\|channel\|>analysis)", re.I)
_ENDS_REASONING = re.compile(
    rf"(?:</(?:{_REASONING})>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>)(?![\"']|`(?!``))", re.I
)
_FENCE = re.compile(r"((?:[ \t]*+>)*+[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?+)(`{3,}+|~{3,}+)[ \t]*+(.*)", re.S)
_QUOTED = re.compile(r"[ \t]*>[ ]?")  # a block inside a Markdown quotation
_PYTHON_TAG = re.compile(r"\{?\.?(?:i?python|py|pycon)[\d.]*(?![\w+#-])", re.I)
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
    r"\binput[ \t]*\(|\bstdin\b|\bopen[ \t]*\([ \t]*(?:0\b|[\"']/dev/stdin)|\bfileinput\b|\bos\.read\b"
)
_DEFINES_SOMETHING = re.compile(r"^(?:async[ \t]+def|def|class|import|from)\b", re.M)
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
    if functions:
        loners = [block.code for block in reversed(python)] + [block.code for block in reversed(untagged)]
        alone = next((code for code in [*loners, loose or ""] if _defined(code, functions) == len(functions)), None)
        if alone is not None:
            return alone
        best = max(
            (_joined(python, functions), _joined(usable, functions), loose or ""), key=lambda c: _defined(c, functions)
        )
        if _defined(best, functions):
            return best
    for group in (python, untagged):
        if group:
            return _whole_program(group)
    if loose is not None:
        return loose
    plain = [block for block in blocks if block.tag == "plain" and _is_program(block.code)]
    weak = [block for block in blocks if block.tag == "" and any(map(_STATEMENT.match, block.code[:300].split("\n")))]
    group = plain or weak
    return _whole_program(group) if group else None


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

    def held_by_string(at: int) -> bool:
        """Does the string we are in go on past this line, rather than being left open by a broken program?"""
        later = ends[lexer.string]
        nearest = bisect_right(later, at)
        if nearest == len(later):
            return False
        fence_after = bisect_right(tagged, at)
        return fence_after == len(tagged) or later[nearest] < tagged[fence_after] or nested > 0

    for at, line in enumerate(lines):
        in_string = bool(opener and lexer.string and tag in ("python", "")) and held_by_string(at)
        if not in_string:
            if opener is None and _OPENS_REASONING.match(line):
                reasoning = True
            if opener is None or reasoning:
                tags = list(_ENDS_REASONING.finditer(line))
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
            if fence[3].strip():
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
            ended = not in_string and "#" not in line and line.rstrip().endswith(opener[2]) and tag in ("python", "")
            body.append(line.rstrip()[: -len(opener[2])] if ended else line)
            if ended:
                close(True)
            elif tag in ("python", ""):
                lexer.read(line)
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
    indent = len(prefix.expandtabs(4))
    lines = [_without_indent(line, indent) for line in body] if indent else body
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[first:]
    if lines and lines[0][0] in " \t":  # the whole block is indented: no program begins so
        indent = len(lines[0]) - len(lines[0].lstrip(" \t"))
        lines = [_without_indent(line, indent) for line in lines]
    if len(lines) > 1 and _PYTHON_TAG.fullmatch(lines[0].strip()):  # the tag stands one line too low
        lines = lines[1:]
    if lines and lines[0].startswith(">>> "):
        lines = [line[4:] for line in lines if line.startswith((">>>", "..."))]
    return "\n".join(lines).strip("\n").rstrip()


def _without_indent(line: str, columns: int) -> str:
    blank = len(line) - len(line.lstrip(" \t"))
    return line[min(blank, columns) :]


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


def _defines(code: str, name: str) -> bool:
    """Does a line at the left margin bind the name?"""
    word = re.escape(name)
    return bool(re.search(rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{word}\b|^{word}[ \t]*[:=](?!=)", code, re.M)) or bool(
        re.search(rf"^(?:from|import)\b.*\b{word}[ \t]*(?:,|$|#|;)", code, re.M)
    )


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


def _defined(code: str, functions: Sequence[str]) -> int:
    return sum(_defines(code, name) for name in functions)


def _joined(blocks: list[_Block], functions: Sequence[str]) -> str:
    """All blocks in one program, without those that only show how to use it."""
    useful = [b for b in _finished(blocks) if _DEFINES_SOMETHING.search(b.code) or _defined(b.code, functions)]
    return "\n\n".join(block.code for block in useful)


def _whole_program(blocks: list[_Block]) -> str:
    blocks = _finished(blocks)
    return next((b for b in reversed(blocks) if _READS_INPUT.search(b.code)), blocks[-1]).code


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
