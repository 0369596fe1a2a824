"""A try that brought no reply, and what that means: by status, by the words of the body, by the headers.

Every text that comes from outside goes through a scrubber first. Left out: what is done about it (endpoint.py).
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, get_args

from asking.body import Body

Scrub = Callable[[str], str]
MayPass = Literal["again", "timed_out", "unsent", "throttled"]  # unsent: no connection
# overflow: the prompt is too long; refused: this prompt, or these fields; forbidden: 403, the key or this prompt;
# absent: 404; stop: asked to wait too long
Lasts = Literal["overflow", "refused", "forbidden", "key", "model", "absent", "quota", "stop"]


@dataclass(eq=False)
class Failed(Exception):
    """One try that brought no reply."""

    kind: MayPass | Lasts
    error: str  # one line
    status: int | None = None
    possibly_billed: bool = False
    wait: float | None = None  # seconds that the server asks for
    say: str = ""  # its answer, where refused fields are named
    page: bool = False  # a web page with a 200, so perhaps no endpoint at all

    @property
    def may_pass(self) -> bool:
        """Whether waiting may help."""
        return self.kind in get_args(MayPass)


# In an error body of whatever shape, also in one that is quoted inside another's message.
_CODE = re.compile(r'\\*"(?:code|type)\\*"\s*:\s*(?:\\*"([^"\\]{1,80})\\*"|([0-9]{3,6})\b)')
_TOO_LONG = re.compile(
    r"context.?(length|size|window|limit)|context the overflows|max_model_len|too many (input )?tokens|"
    r"maximum.{0,20}(context|model|prompt|input).{0,20}length|exceeds the maximum number of (input )?tokens|"
    r"(prompt|input|request|messages).{0,20} (is|are) too long|longer than the (model|maximum)|"
    r"inputs`?( tokens)? .{0,40}must (be <=|have less than)",
    re.I,
)
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error"}
# Of rate limits: more than a minute's share at once, so that no wait helps.
_TOO_LARGE = re.compile(r"request too large|tokens must be reduced", re.I)
_SPENT_CODES = {"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached", "budget_exceeded",
                "exceeded_current_quota_error", "insufficient_credits", "not_enough_balance", "arrearage",
                "1113"}  # fmt: skip
_SPENT = re.compile(r"credit balance is too low|budget has been exceeded", re.I)
# These may stand in a prompt too, and a 400 may quote it.
_SPENT_BUT_400 = re.compile(
    r"account .{0,80}suspended|(in|not )sufficient (balance|credits)|balance is (in|not )sufficient|spending limit|"
    r"account is in good standing|any credits",
    re.I,
)
LONGEST = 1 << 20  # characters of an error body that are read
AGAIN = {408, 409, 421, 424, 425, 498, 499}  # beside those from 500 on


def judged(status: int, headers: Mapping[str, str], text: str, scrub: Scrub, patience: float) -> Failed:
    """What an error answer means. patience: seconds; who asks to wait longer ends the run."""
    kind: MayPass | Lasts
    say = scrub(text)[:4000]
    words = _words(scrub(text[:LONGEST]))
    codes = {(word or number).lower() for word, number in _CODE.findall(text[:20_000])}
    wait = named_wait(headers)
    if wait is None and status == 429:
        wait = reset_after(headers)
    if wait is None and (delay := re.search(r'"retryDelay"\s*:\s*"([0-9.]{1,12})s"', text[:20_000])):
        wait = float(delay[1].rstrip("."))
    spent = _SPENT.search(words[:400]) or (status in (403, 412, 429) and _SPENT_BUT_400.search(words[:400]))
    if status == 402 or codes & _SPENT_CODES or (spent and status < 500):
        kind = "quota"
    elif status in (413, 429) and _TOO_LARGE.search(words):
        kind = "refused"
    elif wait is not None and wait > patience:
        kind = "stop"  # to be told to come back tomorrow is a stop sign, not a wait
    elif status == 429:
        kind = "throttled"
    elif codes & _TOO_LONG_CODES or (status in (400, 413, 422) and _TOO_LONG.search(words[:4000])):
        kind = "overflow"
    elif status in AGAIN or (status >= 500 and status != 501):
        kind = "again"
    elif status == 404:
        kind = "model" if "model" in say.lower() else "absent"
    else:
        kind = "key" if status == 401 else "forbidden" if status == 403 else "refused"
    billed = status in (408, 499, 502, 504, 524)  # a gateway gave up on a server that may have worked on
    return Failed(kind, f"HTTP {status}: {one_line(scrub(words))}", status, billed, wait, say)


def error_within(body: Body) -> tuple[int, object] | None:
    """(status, what is said) of an error inside a 200: of the whole, of a choice, or in a field of another make."""
    choices = body.get("choices")
    beside = [one.get("error") for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
    base = body.get("base_resp")
    if isinstance(base, dict) and base.get("status_code"):
        beside.append({"message": base.get("status_msg"), "code": base["status_code"]})
    for error in (body.get("error"), *beside):
        if any(error.values()) if isinstance(error, dict) else error:  # some send an object of empty fields
            said = error if isinstance(error, dict) else {}
            code = str(said.get("code") or said.get("status"))
            return int(code) if re.fullmatch("[45][0-9][0-9]", code) else 502, error
    return None


def _words(text: str) -> str:
    """The message in an error body and the field it names; else the body itself. Of what FastAPI finds wrong with a
    field, not its `input`: that is our own prompt, which may hold any words."""
    try:
        error = json.loads(text)
        error = error.get("error") or error.get("detail") or error
    except (ValueError, AttributeError, RecursionError):
        return text
    if isinstance(error, list) and all(isinstance(part, dict) and "msg" in part for part in error):
        return "; ".join(f"{part['msg']} {part.get('loc', '')}" for part in error)
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
    now = time.time()
    with contextlib.suppress(ValueError, OverflowError, KeyError):
        now = parsedate_to_datetime(headers["date"]).timestamp()
    with contextlib.suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    return None


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until X-RateLimit-Reset: seconds or milliseconds since 1970, or seconds from now, by their size."""
    reset = headers.get("x-ratelimit-reset", "").strip()
    if not re.fullmatch(r"[0-9]{1,13}(\.[0-9]{0,9})?", reset):
        return None
    seconds = float(reset) / (1000 if len(reset.partition(".")[0]) == 13 else 1)
    return seconds if seconds < 1e9 else max(0.0, seconds - time.time())


def scrubber(secret: str) -> Scrub:
    """Takes a secret out of a text, and each word that begins with its first eight characters: servers like to echo a
    key with its middle starred out."""
    if not secret:
        return lambda text: text
    pattern = re.escape(secret[:8]) + r"[^\s\"',;<>(){}\[\]]*" if len(secret) >= 8 else rf"\b{re.escape(secret)}\b"
    return lambda text: re.sub(pattern, "[key]", text)
