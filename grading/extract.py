"""What in a reply counts: the program, the query, the number. Any text gives an answer, in time linear in its length.

    extract_code(reply, functions)   the Python program in a reply, or None
    extract_sql(reply)               the query in a reply, or None
    probability(reply)               the chance that a judge's reply names, or None

Nothing in here parses, compiles or evaluates the text of a reply: what it holds is found by its lines alone, since a
parser is one more thing that hostile text can crash. Where reasoning ends is said in reasoning.py.

Left out: what a program binds and lacks (outline.py), and what any of them is worth (grader.py, sql.py).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from grading.outline import Outline, outline_of
from grading.reasoning import (
    BEGINS,
    ENDS,
    LONGEST,
    OPENS_AT_END,
    OPENS_LINE,
    TURN_ENDS,
    after_start,
    answer,
    before_end,
    ends_turn,
)

# ── the program in a reply ───────────────────────────────────────────────────────────────────────────────────────────
# Chat models answer in Markdown, more or less. What is met in practice, and what is made of it:
#   several blocks        the last one tagged Python that makes every required function; where none does, all joined;
#                         without required functions the last that reads its input, else the last; what the chosen one
#                         uses and never binds comes from the others: an import, a helper
#   test file, stub       `from solution import f` makes no f, nor does `def f(x): ...`: such a block is the last choice
#   no Python tag         untagged blocks that look like a program, then unfenced lines that do, then text/plain blocks
#   fence never closed    the block runs to the end; it gives way to a finished one when it stops in mid-statement
#   only a closing fence  chat servers may pre-fill the opening one: what stands before it is the program
#   another fence         closes a program too: no line of Python is a fence, whatever its length
#   fence in a docstring  does not close the block
#   reasoning             whatever comes before the last closing tag is no answer, nor what follows an opening tag
#                         that is never closed; a sentence after the program may speak of a tag
#   tokens at an end      </s>, <|im_end|> and their kin are no part of a program; what a model writes behind the end of
#                         its own turn is no answer
#   from __future__       of joined blocks stands first, and once
# Line ends become \n; apart from that the text of the program is handed on as it stands. What is longer than LONGEST is
# no reply, and what is longer than _LONGEST_PROGRAM no program: judges accept 64 KB, a few 512 KB.

_LONGEST_PROGRAM = 1 << 20
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
_COMMENTED = re.compile(r"((?:[^\"'#]|\"(?:\\.|[^\"\\])*+\"?|'(?:\\.|[^'\\])*+'?)*+)#.*")
_FUTURE = re.compile(r"from[ \t]+__future__[ \t]+import\b")
_NAMES = re.compile(r"[A-Za-z_]\w*")
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
    if not reply or len(reply) > LONGEST:
        return None
    text = reply.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    code = _program_in(text[: before_end(text)], functions)
    return code if code and len(code) <= _LONGEST_PROGRAM else None


def _program_in(text: str, functions: Sequence[str]) -> str | None:
    blocks, outside = _read_markdown(text)
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
    asked = 0  # how often it has been looked whether what stands outside is a program
    last_end: int | None = None  # the last line that ends reasoning, once anybody has asked

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
                    blocks.append(
                        _Block("python", _loose_program(outside) or "", True)
                    )  # its opening fence is not here
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
    return _loose(lines)[0]


def _loose(lines: list[str]) -> tuple[str | None, bool]:
    """That, and whether the model's turn ended with it."""
    for text in ([*lines], [line[4:] for line in lines if line.startswith("    ") or not line.strip()]):
        first, last, program, lexer = -1, -1, False, _Lexer()
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
            elif _STATEMENT.match(short) or (first >= 0 and short[0] in "\"'"):
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


def _program_with(functions: frozenset[str], usable: list[_Block], loose: str) -> str:
    """The program that defines the functions: one block, or the lines outside of blocks, or all blocks joined."""
    python = [block for block in usable if block.tag == "python"]
    ordered = [*reversed(python), *(block for block in reversed(usable) if block.tag == "")]
    outlines = {block: outline_of(block.code) for block in usable}
    joined = [_joined(python, functions, outlines), _joined(usable, functions, outlines), loose]
    of_joined = {code: outline_of(code) for code in joined}
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
    outlines = [outline_of(block.code) for block in blocks]
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
    return _together([blocks[at].code for at in sorted(taken)])


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


def _joined(blocks: list[_Block], functions: frozenset[str], outlines: dict[_Block, Outline]) -> str:
    """All blocks in one program, without those that only show how to use it."""
    makers = Counter(name for block in set(blocks) for name in outlines[block].made & functions)

    def only_shows(outline: Outline) -> bool:
        """Does it make nothing of what is wanted, and name what others make or need another file?"""
        wanted = outline.named & functions
        return not outline.made & functions and (outline.foreign or any(makers[name] for name in wanted))

    useful = [b for b in _finished(blocks) if _DEFINES_SOMETHING.search(b.code) or outlines[b].named & functions]
    return _together([block.code for block in useful if not only_shows(outlines[block])])


def _together(programs: list[str]) -> str:
    """Programs joined; what they import from __future__ stands first, and once."""
    if not any("__future__" in code for code in programs[1:]):
        return "\n\n".join(programs)
    names: dict[str, None] = {}
    rest = []
    for code in programs:
        lexer, kept = _Lexer(), []
        lines = iter(code.split("\n"))
        for line in lines:
            future = _FUTURE.match(line) if not lexer.string and not lexer.depth else None
            while future and "(" in line and ")" not in line and (more := next(lines, None)) is not None:
                line += more.partition("#")[0]
            if future:
                wanted, _, after = line[future.end() :].partition("#")[0].partition(";")
                names.update(dict.fromkeys(_NAMES.findall(wanted)))
                line = after.strip()
            lexer.read(line)
            if line or not future:
                kept.append(line)
        rest.append("\n".join(kept).strip("\n"))
    return "\n\n".join([f"from __future__ import {', '.join(names)}", *filter(None, rest)])


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


# ── the query in a reply ─────────────────────────────────────────────────────────────────────────────────────────────

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|\Z))*+"
_NAME = r"(?:\w++|\"[^\"]{0,200}\"|`[^`]{0,200}`|\[[^\]]{0,200}\])"
_TABLES = rf"WITH\s+(?:RECURSIVE\s+)?{_NAME}\s*(?:\([^)]{{0,999}}\)\s*)?AS\s*(?:NOT\s+)?(?:MATERIALIZED\s*)?\("
_QUERY = rf"(?:SELECT\b|VALUES\s*\(|{_TABLES})"
_OTHER = (
    r"(?:(?:INSERT|REPLACE)\s+(?:OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|DROP\s+\w+|ALTER\s+TABLE|ATTACH\s|"
    r"DETACH\s|PRAGMA\s|VACUUM|REINDEX|ANALYZE|BEGIN\b|COMMIT\b|ROLLBACK\b|EXPLAIN\s|CREATE\s+(?:TEMP\w*\s+)?\w+)"
)
_SQL_QUERY = re.compile(rf"{_BLANK}(?:{_QUERY})", re.I | re.S)
_SQL_STATEMENT = re.compile(rf"{_BLANK}(?:{_QUERY}|{_OTHER})", re.I | re.S)
_LINE = [re.compile(rf"^[ \t>]*(?={_QUERY})", flag | re.M) for flag in (re.NOFLAG, re.I)]
_ANY_QUERY = re.compile(r"\b(?:SELECT|VALUES)\b", re.I)
_LABEL = re.compile(r"\s*(?:sqlite3?|sql|query|postgres(?:ql)?|mysql|text|plaintext)\b[ \t]*:?", re.I)
# Capitals alone: a sentence may begin with From, On or As.
_CLAUSE = re.compile(
    r"\s*(?:[()\-,]|(?:FROM|WHERE|JOIN|LEFT|RIGHT|FULL|INNER|CROSS|NATURAL|ON|AND|OR|GROUP|ORDER|HAVING|LIMIT|OFFSET|"
    r"UNION|EXCEPT|INTERSECT|WINDOW|WHEN|ELSE|END|AS)\b)"
)
_PAUSE = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?(?:\*/|\Z)|;|\n[ \t]*\n", re.S)


def extract_sql(reply: str) -> str | None:
    """The query in a reply, or None: the last fenced block that is one, else the text from its first line that is.

    A text that is a query, or any other statement, is handed on whole: what it may do is not decided here.
    """
    text = answer(reply)
    if text is None:
        return None
    if (over := TURN_ENDS.search(text)) and _ANY_QUERY.search(text, 0, over.start()):
        text = text[: over.start()]
    parts = re.split(r"```+|~~~+", text.replace("\r\n", "\n"))
    blocks = [_without_label(block) for block in parts[1::2]]
    for what in (_SQL_QUERY, _SQL_STATEMENT):
        if found := [block for block in blocks if what.match(block)]:
            return found[-1][: before_end(found[-1])].strip()
    loose = _without_label("\n".join(parts[::2]))
    capitals = _LINE[0].search(loose)
    sentence = re.match(r"\s*[A-Z][a-z]", loose) and capitals  # "Select the rows ...", and a query further down
    if _SQL_STATEMENT.match(loose) and not sentence:
        return _until_prose(loose)
    begins = capitals or _LINE[1].search(loose)
    return _until_prose(loose[begins.end() :]) if begins else None


def _without_label(block: str) -> str:
    label = _LABEL.match(block)
    return block[label.end() :] if label else block


def _until_prose(text: str) -> str:
    """The statement at the start of a text: to its semicolon, or to a paragraph that is no SQL."""
    read = 0
    for pause in _PAUSE.finditer(text):
        if pause[0][0] not in ";\n" or pause.start() < read:
            continue
        more = _SQL_STATEMENT.match(text, pause.end())
        if not more and pause[0] != ";":
            more = _CLAUSE.match(text, pause.end())
        if not more:
            return text[: pause.start()].strip()
        read = more.end()
    return text.strip()


# ── the number in a judge's reply ─────────────────────────────────────────────────────────────────────────────────────

_SAID = re.compile(
    r"(?<![\w.,])([-+]?\d+(?:\.\d+)?)(?!\d|\.\d|[\w,])[ \t]*(%|percent\b|/[ \t]*100\b|out of 100\b)?", re.I
)


def probability(reply: str) -> float | None:
    """The chance that a reply names, from 0 to 1; None where it names none, several, or one out of range.

    A whole number is percent. A number with a point, from 0.0 to 1.0 and without a sign of percent, is a fraction.
    """
    text = (answer(reply) or "").replace("*", " ").replace("_", " ").strip()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for part in (text, lines[-1] if lines else "", lines[0] if lines else ""):
        said = _SAID.findall(part)
        marked = [(number, unit) for number, unit in said if unit]
        found = {_share(number, unit) for number, unit in (marked or said)}
        if len(found) == 1:
            return found.pop()
    return None


def _share(number: str, unit: str) -> float | None:
    value = float(number)
    share = value if "." in number and not unit and 0 <= value <= 1 else value / 100
    return share if 0 <= share <= 1 else None
