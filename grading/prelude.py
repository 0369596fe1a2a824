"""What a task gives before the program: one text of the two, that compiles as they would one after the other.

    behind(prelude, program)   the program behind its prelude

A line of its own between the two keeps them apart: no first line of a program goes on in a block of the prelude. Only
`from __future__` must come before all else, so that is taken out and put first. Nothing is parsed, since the program
comes from a model: time linear in its length. Left out: whether either is Python (tasksets/own.py, the sandbox).
"""

from __future__ import annotations
import __future__

import re

_NOTHING = re.compile(r"(?:[ \t\f\r]*+(?:#[^\n]*+)?(?:\n|\\\n|;|\Z))*+")
_STRING = re.compile(
    r"[rRuU]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+')", re.S
)
_FUTURE = re.compile(r"([ \t]*+)from[ \t]++__future__[ \t]++import[ \t]*+(?:\(([^()]*+)\)|([\w, \t]++))")


def behind(prelude: str, program: str) -> str:
    """The program behind its prelude, as one text; the program alone where there is none."""
    if not prelude:
        return program
    features: dict[str, None] = {}
    given, after = (_without_features(text.removeprefix("\ufeff"), features) for text in (prelude, program))
    first = f"from __future__ import {', '.join(features)}\n" if features else ""
    return f"{first}{given}\npass\n{after}"


def _without_features(text: str, features: dict[str, None]) -> str:
    """The text without its future statements, which go into features; those of no known feature stay, and are wrong."""
    at, seen, kept, parts = 0, False, 0, []
    while True:
        if (nothing := _NOTHING.match(text, at)) and nothing.end() > at:
            at = nothing.end()
        elif not seen and (string := _STRING.match(text, at)):
            at, seen = string.end(), True
        elif found := _FUTURE.match(text, at):
            names = [name.strip() for name in (found[2] or found[3]).split(",") if name.strip()]
            if not names or not set(names) <= set(__future__.all_feature_names):
                break
            features |= dict.fromkeys(names)
            parts += [text[kept:at], found[1], "pass", "\n" * found[0].count("\n")]
            at = kept = found.end()
            seen = True
        else:
            break
    return "".join(parts) + text[kept:]
