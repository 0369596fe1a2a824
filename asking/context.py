"""Whether prompts arrive whole, and replies have room: what a server's own counts of tokens say.

Some servers cut a prompt that does not fit and answer all the same (Ollama does), so that a sample is of another prompt
than the one on disk. It shows in their counts: of one prompt they differ, or they are fewer than it has words. Each is
a warning, once a server. Left out: what is cut with a word about it (finish_reason, context_overflow).
"""

from __future__ import annotations

from asking.fields import Messages
from asking.reply import Reply

SAME = 8  # tokens that the counts of one prompt may differ by: a template may hold the date
FEWEST = 0.75  # tokens a word: no tokenizer in use needs fewer, and most need more than one
ENOUGH = 200  # words, below which nothing is said: a template adds some, an odd text has few


class Counts:
    """The tokens that servers counted, by prompt."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._counted: dict[tuple[str, int], int] = {}
        self._said: set[tuple[str, str]] = set()

    def odd(self, url: str, context: int | None, messages: Messages, reply: Reply) -> str | None:
        """A warning that was not given yet, in words; None where the counts are as they should be."""
        given, made = reply.prompt_tokens, reply.completion_tokens
        if given is None:
            return None
        first = self._counted.setdefault((url, hash(str(messages))), given)
        length = sum(len(message["content"].split()) for message in messages)
        whole = "make sure that it serves a context for the prompt and --max-tokens together"
        if abs(first - given) > SAME:
            return self._once(url, "differ", f"counts {first:,} and {given:,} tokens of one prompt: it may cut prompts "
                              f"without a word, or not count what it had cached; {whole}")  # fmt: skip
        if length >= ENOUGH and given < FEWEST * length:
            return self._once(url, "few", f"counts {given:,} tokens of a prompt of {length:,} words: it seems to cut "
                              f"prompts without a word; {whole}")  # fmt: skip
        if context and given + self._max_tokens > context:
            return self._once(url, "room", f"has a context of {context:,} tokens, too few for a prompt of {given:,} "
                              f"and --max-tokens {self._max_tokens:,}: replies may be cut")  # fmt: skip
        if reply.finish_reason == "length" and made is not None and made < self._max_tokens - SAME:
            return self._once(url, "cut", f"cut a reply after {made:,} tokens, before --max-tokens "
                              f"{self._max_tokens:,}: its context is full; {whole}")  # fmt: skip
        return None

    def _once(self, url: str, what: str, words: str) -> str | None:
        if (url, what) in self._said:
            return None
        self._said.add((url, what))
        return f"{url} {words}"
