"""A try that brought no reply, and what that means: by status, by the words of the body, by the headers.

Every text that comes from outside goes through a scrubber first. Left out: what is done about it (endpoint.py).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, get_args

Scrub = Callable[[str], str]
MayPass = Literal["again", "timed_out", "unsent", "throttled"]  # unsent: no connection
# overflow: the prompt is too long; refused: 400, 422; absent: 404; stop: asked to wait too long
Lasts = Literal["overflow", "refused", "key", "model", "absent", "quota", "stop"]


@dataclass(eq=False)
class Failed(Exception):
    """One try that brought no reply."""

    kind: MayPass | Lasts
    error: str  # one line
    status: int | None = None
    possibly_billed: bool = False
    wait: float | None = None  # seconds that the server asks for
    say: str = ""  # its answer, where refused fields are named

    @property
    def may_pass(self) -> bool:
        """Whether waiting may help."""
        return self.kind in get_args(MayPass)


_CODE = re.compile(r'"(?:code|type)"\s*:\s*"([^"]{1,80})"')  # in an error body of whatever shape
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|maximum.{0,20}(context|model|prompt|input).{0,20}length|max_model_len|"
    r"(prompt|input|request|messages).{0,20} (is|are) too long|longer than the (model|maximum)|"
    r"too many (input )?tokens",
    re.I,
)


def judged(status: int, headers: Mapping[str, str], text: str, scrub: Scrub, patience: float) -> Failed:
    """What an error answer means. patience: seconds; who asks to wait longer ends the run."""
    kind: MayPass | Lasts
    say, wait, codes = scrub(text)[:4000], named_wait(headers), set(_CODE.findall(text))
    if status == 402 or codes & {"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached"}:
        kind = "quota"
    elif wait is not None and wait > patience:
        kind = "stop"  # to be told to come back tomorrow is a stop sign, not a wait
    elif status == 429:
        kind = "throttled"
    elif (
        codes & {"context_length_exceeded", "exceed_context_size_error"}
        or status == 413
        or (status in (400, 422) and _TOO_LONG.search(say))
    ):
        kind = "overflow"
    elif status in (408, 409, 425) or (status >= 500 and status != 501):
        kind = "again"
    elif status == 404:
        kind = "model" if "model" in say.lower() else "absent"
    else:
        kind = "key" if status in (401, 403) else "refused"
    billed = status in (408, 502, 504, 524)  # a gateway gave up on a server that may have worked on
    return Failed(kind, f"HTTP {status}: {one_line(scrub(_words(say)))}", status, billed, wait, say)


def _words(text: str) -> str:
    """The message in an error body and the field it names; else the body itself."""
    try:
        error = json.loads(text)
        error = error.get("error") or error.get("detail") or error
    except (ValueError, AttributeError, RecursionError):
        return text
    if not isinstance(error, dict):
        return error if isinstance(error, str) else json.dumps(error)
    words, field = str(error.get("message") or json.dumps(error)), str(error.get("param") or "")
    return words if field in words else f"{words} [{field}]"


def one_line(text: str) -> str:
    """At most 300 characters on one line, fit for a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    return (line if len(line) <= 300 else line[:299] + "…") or "no words"


def root(error: BaseException) -> BaseException:
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return error


def named_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that retry-after-ms or Retry-After asks for: a number, or a date by the server's own clock."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{0,9})?", value):
            return float(value) / unit
    try:
        until = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
        now = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
        return max(0.0, until - now)
    except (ValueError, OverflowError):
        return None


def scrubber(secret: str) -> Scrub:
    """Takes a secret out of a text, and each word that begins with its first eight characters: servers like to echo a
    key with its middle starred out."""
    if not secret:
        return lambda text: text
    pattern = re.escape(secret[:8]) + r"[^\s\"',;<>(){}\[\]]*" if len(secret) >= 8 else rf"\b{re.escape(secret)}\b"
    return lambda text: re.sub(pattern, "[key]", text)
