"""A reply: one complete answer, read from the body of a 200.

Its reasoning is kept apart from its text, in whatever shape a server sends it. Half an answer is never a reply but a
try that failed, so an answer counts as whole only where its finish_reason is a word that says so; a new word is
looked up and added. Left out: what an error answer means (failed.py).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from asking.body import Body
from asking.events import Tokens
from asking.failed import Failed
from grading.reasoning import BEGINS, ENDS, LONGEST, OPENS

# finish_reason, in small letters, less what follows a colon. OpenAI, vLLM, SGLang, llama.cpp and Ollama say stop and
# length; the other words are TGI's, Together's, Anthropic's, Gemini's, Cohere's, Mistral's, Zhipu's and old gateways'.
WHOLE = set(
    "stop eos eos_token eos_found end end_turn end_of_turn stop_sequence stop_token stop_str complete completed "
    "finished done tool_calls tool_call tool_use function_call".split()
)
CUT = set("length max_tokens max_length max_new_tokens max_output_tokens model_length context_length "
          "model_context_window_exceeded repetition".split())  # fmt: skip
WITHHELD = set("content_filter content_filtered sensitive safety recitation prohibited_content blocklist spii refusal "
               "guardrail_intervened error_toxic moderation".split())  # fmt: skip
BROKEN = set("error abort aborted cancelled canceled timeout network_error engine_overloaded unknown load unload other "
             "insufficient_system_resource malformed_function_call error_limit not_finished".split())  # fmt: skip


class Reply(NamedTuple):
    """One complete answer. Tokens are None where the server did not count them."""

    text: str
    # stop; length (cut at max_tokens or by the context); context_overflow, refused (of the prompt: text is ""); unknown
    # (the server never says); else the server's own word for stop
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning: str = ""  # kept apart from the text, in whatever shape it came
    tries: int = 1
    latency_seconds: float = 0.0  # of the try that was answered


class Unsure(Failed):
    """Whole by all but its finish_reason, a word that is not known (None: there is none)."""

    def __init__(self, word: str | None) -> None:
        words = f"HTTP 200: nothing says that the answer is whole (finish_reason {word!r})"
        super().__init__("again", words, 200, possibly_billed=True)
        self.word = word


def read(body: Body, implied_tag: bool = False, taken: Collection[str | None] = (), most: int = 0) -> Reply:
    """The reply in the body of a 200, or Failed.

    implied_tag: replies close a <think> that the server's template had opened. taken: words that this server ends all
    its replies with. most: max_tokens, by which a cut is told where no word does."""
    choices = body.get("choices")
    several = [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
    choice = next((one for one in several if one.get("index") == 0), several[0] if several else {})
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Failed("again", "HTTP 200: the answer holds no choice", 200, possibly_billed=True)
    usage = body.get("usage")
    given, made = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    said = choice.get("finish_reason")
    finish = said if isinstance(said, str) and said else None
    word = (finish or "").lower().partition(":")[0].strip().rpartition(".")[2]
    if word in WITHHELD:
        raise Failed("refused", f"HTTP 200: the answer was withheld (finish_reason {finish!r})", 200, True)
    if word in BROKEN:
        raise Failed("again", f"HTTP 200: the answer was cut off (finish_reason {finish!r})", 200, True)
    if word in CUT:
        finish = "length"
    elif word not in WHOLE:
        if finish not in taken:
            raise Unsure(finish)
        finish = "length" if made and most and made >= most else finish or "unknown"
    text, reasoning = split_reasoning(message, implied_tag and finish == "length")
    return Reply(text, finish or "", given, made, reasoning)


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
    """A number of tokens; None where the server says none. Some say it in quotes, or with a point."""
    value = row.get(name) if isinstance(row, dict) else None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return None
    return int(value)


def tokens(reply: Reply) -> Tokens:
    return {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
