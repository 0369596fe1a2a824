"""A reply: one complete answer, read from the body of a 200.

Its reasoning is kept apart from its text, in whatever shape a server sends it. Half an answer is never a reply but a
try that failed. Left out: what an error answer means (failed.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from asking.events import Tokens
from asking.failed import Failed
from grading.reasoning import BEGINS, ENDS, LONGEST, OPENS

Body = dict[str, Any]  # a JSON object as it came: nothing in it is sure to be what it should


class Reply(NamedTuple):
    """One complete answer. Tokens are None where the server did not count them."""

    text: str
    finish_reason: str  # stop | length | context_overflow (the prompt was refused, text is "") | the server's own
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning: str = ""  # kept apart from the text, in whatever shape it came
    tries: int = 1
    latency_seconds: float = 0.0  # of the try that was answered


def read(body: Body, implied_tag: bool) -> Reply:
    """The reply in the body of a 200, or Failed. implied_tag: replies close a <think> that the server's template had
    opened."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Failed("again", "HTTP 200: the answer holds no choice", 200, possibly_billed=True)
    finish = choice.get("finish_reason")
    if not isinstance(finish, str) or finish in ("", "error", "abort", "insufficient_system_resource"):
        words = f"HTTP 200: the answer was cut off (finish_reason {finish!r})"
        raise Failed("again", words, 200, possibly_billed=True)
    text, reasoning = split_reasoning(message, implied_tag and finish == "length")
    usage = body.get("usage")
    return Reply(text, finish, count(usage, "prompt_tokens"), count(usage, "completion_tokens"), reasoning)


def split_reasoning(message: Body, cut_while_thinking: bool = False) -> tuple[str, str]:
    """(text, reasoning): from fields of their own, from parts, or by markers in the text, of which the first may be
    missing. What was cut off while thinking has no text."""
    content = message.get("content")
    reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
    if isinstance(content, list):
        reasoning = reasoning or _text([part.get("thinking") for part in content if isinstance(part, dict)])
    text = _text(content)
    if len(text) > LONGEST:  # nobody finds an answer in it
        return text, reasoning
    opened = BEGINS.match(text)
    start = opened.end() if opened else 0
    closed = ENDS.search(text)
    if closed and (opened or not OPENS.search(text, 0, closed.start())):
        return text[closed.end() :].lstrip("\r\n"), reasoning + text[start : closed.start()].strip()
    if opened or (cut_while_thinking and not reasoning):
        return "", reasoning + text[start:]
    return text, reasoning


def _text(value: object) -> str:
    """The text in a string, in a part, or in a list of parts."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    return _text(value.get("text")) if isinstance(value, dict) else value if isinstance(value, str) else ""


def count(row: object, name: str) -> int | None:
    value = row.get(name) if isinstance(row, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def tokens(reply: Reply) -> Tokens:
    return {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
