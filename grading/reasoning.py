"""Where a reply stops thinking aloud and starts to answer: the one list of the markers that models use for it.

    OPENS    a marker that opens reasoning, wherever it stands
    BEGINS   a reply that begins with one: match, never search
    ENDS     a marker that ends it
    answer   what stands behind it

Whoever reads a reply takes them from here: the client that keeps reasoning apart, what finds a program, a query or a
number in a reply, and the table that counts what was cut while thinking. Left out: what an answer holds (extract.py).
"""

from __future__ import annotations

import re

_NAMES = r"think|thinking|thought|thoughts|reasoning"
OPENS = re.compile(
    rf"(?:<(?:{_NAMES})(?:[ \t][^<>\n]{{0,100}}+)?>|\[THINK\]|◁think▷"
    r"|(?:<\|start\|>\w*+)?<\|channel\|>analysis(?:<\|message\|>)?)",
    re.I,
)
BEGINS = re.compile(rf"\s*{OPENS.pattern}", re.I)
ENDS = re.compile(  # before a quote or an escape it is a string in a program
    rf"(?:</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>)(?![\"'\\]|`(?!``))", re.I
)


def answer(reply: str) -> str | None:
    """What stands behind the reasoning of a reply; None where that is opened and never ends."""
    text = ENDS.split(reply)[-1]
    return None if BEGINS.match(text) else text
