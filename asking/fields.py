"""The fields of every request: as they were asked for, less what a server refuses.

A field is left out or renamed only where no sample changes by it; what was asked for and is refused ends the run.
Left out: the sending (endpoint.py), and flags (commands/flags.py).
"""

from __future__ import annotations

import re
from typing import Any, Literal

Messages = list[dict[str, str]]
Payload = dict[str, Any]  # a JSON object, as it is sent

OURS = "model messages seed n stream temperature top_p max_tokens max_completion_tokens"  # not for --extra-body
OPTIONAL = ("chat_template_kwargs", "seed", "top_p", "temperature", "stream")  # left out where a server refuses them
_REFUSAL = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|forbidden|invalid", re.I
)


class Fields:
    """What is sent beside a prompt. ValueError for what cannot be used."""

    def __init__(
        self,
        temperature: float = 1.0,
        top_p: float | None = 1.0,  # None: not sent
        max_tokens: int = 2048,
        thinking: Literal["off", "on", "server"] = "off",  # server: nothing is said
        extra_body: Payload | None = None,
    ) -> None:
        extra = dict(extra_body or {})
        if taken := set(OURS.split()) & set(extra):
            instead = "leave it out" if taken <= {"messages", "n", "stream"} else "use the flag made for it"
            raise ValueError(f"--extra-body may not set {', '.join(sorted(taken))}: {instead}")
        if thinking != "server":
            switch = {"enable_thinking": thinking == "on"}
            extra["chat_template_kwargs"] = switch | extra.get("chat_template_kwargs", {})
        self._body: Payload = {"temperature": temperature, "max_tokens": max_tokens}
        self.max_tokens = max_tokens
        if top_p is not None:
            self._body["top_p"] = top_p
        self._extra, self.thinking = extra, thinking
        self.renamed: dict[str, str] = {}  # field -> the name this server has for it
        self.dropped: dict[str, str] = {}  # field -> a warning

    def payload(self, model: str | None, messages: Messages, seed: int) -> Payload:
        fields = {"model": model or "", "messages": messages, **self._body, "seed": seed} | self._extra
        fields["stream"] = False
        return {self.renamed.get(name, name): value for name, value in fields.items() if name not in self.dropped}

    def learn(self, refusal: str, payload: Payload) -> bool:
        """Rename or leave out the fields that a refusal names, where no sample changes by it. True: try again."""
        if not _REFUSAL.search(refusal):
            return False
        if "max_tokens" in payload and "max_completion_tokens" in refusal:
            self.renamed["max_tokens"] = "max_completion_tokens"
            return True
        named = [name for name in OPTIONAL if name in payload and re.search(rf"\b{name}\b", refusal)]
        harmless = {"chat_template_kwargs": {"enable_thinking": False}, "temperature": 1, "top_p": 1}
        if any(payload[name] != harmless.get(name, payload[name]) for name in named):
            return False  # asked for, and refused: that is for the user to decide
        for name in named:
            what = {"chat_template_kwargs": "--thinking is up to the server", "seed": "a sample cannot be repeated",
                    "stream": "an answer that comes in pieces is put together"}  # fmt: skip
            self.dropped[name] = f"the server refuses {name}, so it is left out: {what.get(name, 'its default is 1')}"
        return bool(named)


def sendable(text: str) -> str:
    """Without lone surrogates, which have no UTF-8 form: a reply may hold one, and may be shown in a prompt."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
