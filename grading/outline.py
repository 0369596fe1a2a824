"""What can be told of a Python program by its names, read token by token: what it makes, what it lacks.

    outline_of(code)   names that the module makes, names that it binds, names that it uses and binds nowhere

Nothing is parsed, compiled or run, since the text comes from a model and a parser is one more thing that hostile text
can crash: any text gives an answer, in time linear in its length. In doubt a name is bound.

Left out: which of several programs in a reply is meant (extract.py).
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"#[^\n]*|(?i:[rbuf]{0,2})(?:\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z)"
    r"|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?)"
    r"|\\\n|\n[ \t]*+|\d[\w.]*+|\w++|:=|->|\.\.\.|[=!<>]=|(?:[-+%&|^@]|//?|\*\*?|<<|>>)=|[^\s\w]",
    re.S,
)
_LONGEST = 1 << 20
_COMPOUND = frozenset("if elif else for while try except finally with def class match case async".split())
_DOES_NOTHING = (["..."], ["pass"], ["''"])
_ALWAYS_BOUND = frozenset((*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "__file__", "__builtins__"))


class Outline(NamedTuple):
    """What can be told of a program by its names."""

    made: frozenset[str]  # what the module binds by itself: def, class, assignment, import of the standard library
    named: frozenset[str]  # that, and what it only imports from elsewhere or sketches (`def f(x): ...`)
    missing: frozenset[str]  # what it uses and, as far as one can see, binds nowhere
    foreign: bool  # it imports what is not in the standard library


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
def outline_of(code: str) -> Outline:
    """Read by its tokens alone, of a text of more than _LONGEST characters no more than those.

    In doubt a name is bound, so that nothing is missing which is not.
    """
    made: set[str] = set()
    named: set[str] = set()
    bound: set[str] = set()
    used: set[str] = set()
    foreign: set[str] = set()  # names that stand for what another file would have to hold
    inside: int | None = None  # the indent of the function or class that we are in
    sketch = ""  # a function that does nothing so far
    every_name = outside_library = False
    for indent, tokens in _statements(code[:_LONGEST]):
        if inside is not None and indent <= inside:
            inside, sketch = None, ""
        first = tokens[tokens[0] == "async" and len(tokens) > 1]
        if first in ("import", "from"):
            names, every, library = _names_imported(tokens)
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
    return Outline(frozenset(made), frozenset(named), frozenset(missing), outside_library)


def _names_imported(tokens: list[str]) -> tuple[set[str], bool, bool]:
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
