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
from collections import Counter
from collections.abc import Sequence

from grading.blocks import STATEMENT, Block, Lexer, is_program, loose_program, read_markdown
from grading.outline import Outline, outline_of
from grading.reasoning import LONGEST, TURN_ENDS, answer, before_end

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
_READS_INPUT = re.compile(
    r"\binput[ \t]*\(|\bstdin\b(?![ \t]*=[^=])|\bopen[ \t]*\([ \t]*(?:0\b|[\"']/dev/stdin)|\bfileinput\b|\bos\.read\b"
)
_DEFINES_SOMETHING = re.compile(r"^(?:async[ \t]+def|def|class|import|from)\b", re.M)
_COMMENTED = re.compile(r"((?:[^\"'#]|\"(?:\\.|[^\"\\])*+\"?|'(?:\\.|[^'\\])*+'?)*+)#.*")
_FUTURE = re.compile(r"from[ \t]+__future__[ \t]+import\b")
_NAMES = re.compile(r"[A-Za-z_]\w*")
_UNFINISHED = re.compile(r"(?:.*[:,=+*/%&|^(\[{\\-]|[ \t]*(?:if|elif|for|while|def|class|with|except)\b[^:]*+)$")


def extract_code(reply: str | None, functions: Sequence[str] = ()) -> str | None:
    """The Python program in a model's reply, or None where there is none.

    functions: the names that the task requires, which tell a solution from a usage example.
    Total: any text gives an answer, in time linear in its length, and nothing is parsed or run.
    """
    if not reply or len(reply) > LONGEST:
        return None
    text = reply.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    code = _program_in(text[: before_end(text)], functions)
    return _storable(code) if code and len(code) <= _LONGEST_PROGRAM else None


def _storable(code: str) -> str:
    """With half an emoji replaced as a decoder would have: it is a server's slip, and Python and files refuse it."""
    try:
        code.encode()
    except UnicodeEncodeError:
        return code.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return code


def _program_in(text: str, functions: Sequence[str]) -> str | None:
    blocks, outside = read_markdown(text)
    usable = [block for block in blocks if block.tag == "python" or (block.tag == "" and is_program(block.code))]
    python = [block for block in usable if block.tag == "python"]
    untagged = [block for block in usable if block.tag == ""]
    loose = loose_program(outside)
    if len(usable) == 1 and loose is None:
        return usable[0].code
    if functions and (usable or loose):
        return _program_with(frozenset(functions), usable, loose or "")
    for group in (python, untagged):
        if group:
            return _completed(_whole_program(group), group)
    if loose is not None:
        return loose
    plain = [block for block in blocks if block.tag == "plain" and is_program(block.code)]
    weak = [block for block in blocks if block.tag == "" and any(map(STATEMENT.match, block.code[:300].split("\n")))]
    group = plain or weak
    return _whole_program(group).code if group else None


def _program_with(functions: frozenset[str], usable: list[Block], loose: str) -> str:
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


def _completed(chosen: Block, blocks: list[Block], functions: frozenset[str] = frozenset()) -> str:
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


def _is_cut_off(block: Block) -> bool:
    """Did the reply end in the middle of a statement?"""
    if block.closed:
        return False
    lexer, line = Lexer(), ""
    for line in block.code.split("\n"):
        lexer.read(line)
    return bool(lexer.string or lexer.depth or lexer.torn or _UNFINISHED.match(line))


def _finished(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if not _is_cut_off(block)] or blocks


def _joined(blocks: list[Block], functions: frozenset[str], outlines: dict[Block, Outline]) -> str:
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
        lexer, kept = Lexer(), []
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


def _whole_program(blocks: list[Block]) -> Block:
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
