"""The policy: a prompt in, one complete reply out, from any OpenAI-compatible server; and the dry run's fake policy.

Three outcomes, never two. `Policy.draw` returns a complete reply; or a reply with finish_reason
"context_overflow", where the server refuses the prompt as too long; or it raises an `EndpointFault`. Half an answer,
an error inside a 200, a time-out or a used-up quota is never a reply.

- One request a sample. Retries are ours alone (the library's are switched off): exponential, with full jitter, never
  where they cannot help. `Retry-After` is a lower bound; after a 429 all requests wait at one gate.
- A try has `request_timeout` seconds from its start, however slowly a server drips. The policy gives up when nothing
  at all has been answered for `give_up_after` seconds; both on the monotonic clock.
- `probe` sends the request that `draw` will send, with a tiny prompt, and learns from the server's own words: which
  form of the URL, which model, which fields it takes.
- The key is in the Authorization header and nowhere else: it is scrubbed from every text that came from outside.

Left out: streaming, n > 1 and batches (usage would not be exact, and a failure would cost more than one sample).
"""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import json
import logging
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

Messages = list[dict[str, str]]

BACKOFF = (0.5, 30.0)  # seconds: the longest first wait and the longest wait at all
MAX_STRIKES = 20  # failures of one draw, each while others were being answered, before it is given up
STRIKES_OF_A_TIMEOUT = 5  # a time-out costs the server whole minutes of work, so few are enough
REFUSALS_IN_A_ROW = 8  # prompts refused with nothing answered in between: then it is not the prompts
CONNECT_PATIENCE = 5.0  # seconds the probe waits for a port that refuses: a typo must not look like a slow start
PROBE = "Reply with the single word: ready"
# Set by flags of their own, so not by extra_body.
RESERVED = {"model", "messages", "seed", "n", "stream", "temperature", "top_p", "max_tokens"} | {
    "max_completion_tokens"
}


class Reply(NamedTuple):
    """One complete answer. Tokens are None where the server did not count them."""

    text: str
    finish_reason: str  # stop | length | context_overflow (refused, text empty) | what else the server says
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning: str = ""  # kept apart from the text, in whatever shape it came
    tries: int = 1
    latency_seconds: float = 0.0  # of the try that was answered


class EndpointFault(Exception):
    """The endpoint failed; its text is one line that ends with what to do.

    kind: unreachable | key | model | fields | quota | gave_up end a run. `attempt` concerns this one prompt only
    (the server refuses it, or fails on it again and again while it answers others): the attempt stays owed.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class _Failed(Exception):
    """One try that brought no reply. kind: again | throttled | overflow | refused | key | model | quota | absent."""

    def __init__(
        self,
        kind: str,
        error: str,
        *,
        status: int | None = None,
        wait: float | None = None,  # seconds that the server named
        possibly_billed: bool = False,
        never_sent: bool = False,
        timed_out: bool = False,
        say: str = "",  # the answer's body, where refused fields are looked for
    ) -> None:
        super().__init__(error)
        self.kind, self.error, self.status, self.wait, self.say = kind, error, status, wait, say
        self.possibly_billed, self.never_sent, self.timed_out = possibly_billed, never_sent, timed_out


@dataclass
class State:
    """What the progress bar shows."""

    in_flight: int = 0
    waiting: int = 0  # draws between two tries, or at the gate
    retries: int = 0
    answered: int = 0
    last_error: str = ""


@dataclass
class _Server:
    given: str
    client: Any = None
    in_flight: int = 0
    sent: int = 0
    resting_until: float = 0.0  # monotonic seconds; a server that just failed is the last choice


class Policy:
    """A model behind one or more base URLs (the least loaded one is asked). An async context manager.

    `log` is called with one dict for each event (sent, answered, retry, refused, fault, waiting, probe): a `sent`
    without a later row of the same `request` and `tries` is a request that may have been billed for nothing.
    Raises ValueError for arguments that cannot be used, EndpointFault for everything that the network does.
    """

    def __init__(
        self,
        base_urls: list[str],
        model: str | None,
        *,
        api_key: str | None = None,  # None: from OPENAI_API_KEY
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 2048,
        thinking: str = "off",  # off | on | server (says nothing)
        extra_body: dict[str, Any] | None = None,
        request_timeout: float = 600.0,  # seconds, queueing at the server included
        give_up_after: float = 600.0,  # seconds without any answer
        concurrency: int = 64,  # requests in flight
        log: Callable[[dict[str, Any]], object] = lambda row: None,
    ) -> None:
        if not base_urls:
            raise ValueError("no endpoint: give --base-url, for example --base-url http://localhost:8000/v1")
        if taken := RESERVED & set(extra_body or {}):
            raise ValueError(f"--extra-body may not set {', '.join(sorted(taken))}: use the flags made for it")
        self._servers = [_Server(_with_scheme(url)) for url in base_urls]
        self._key = (os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip()
        self.scrub = scrubber([self._key, *(urlsplit(server.given).password or "" for server in self._servers)])
        # A reply is data, so only a key that cannot be an ordinary word is looked for there.
        self._scrub_reply = scrubber([self._key] if len(self._key) >= 20 else [])
        self.model, self.state = model, State()
        self._max_tokens_field = "max_tokens"
        self._body: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        extra = dict(extra_body or {})
        if thinking != "server":
            extra["chat_template_kwargs"] = {
                "enable_thinking": thinking == "on",
                **extra.get("chat_template_kwargs", {}),
            }
        self._thinking, self._extra, self._log = thinking, extra, log
        self._dropped: dict[str, str] = {}  # field -> the warning
        self._settled = False  # an answer has come: fields are no longer guessed at
        self._tag_is_implied = False  # replies close a <think> that the server's template opened
        self._timeout, self._give_up_after, self._concurrency = request_timeout, give_up_after, concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._gate_opens = 0.0  # monotonic seconds
        self._throttled_in_a_row = self._refused_in_a_row = 0
        self._failing_since: float | None = None  # monotonic seconds; None after an answer
        self._fault: EndpointFault | None = None
        self._numbers = itertools.count(1)
        self._random = random.Random()  # jitter only: no sample depends on it

    async def __aenter__(self) -> Self:
        import openai  # half a second: not where it is not needed

        self._openai = openai
        for name in ("openai", "httpx2", "httpcore2", "httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)  # their debug lines hold headers and addresses
        for server in self._servers:
            if not self._key and not is_local(server.given):
                raise EndpointFault(
                    "key",
                    f"{shown(server.given)} needs a key: set OPENAI_API_KEY, or name a server of your own with "
                    "--base-url http://localhost:8000/v1",
                )
            limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
                max_connections=self._concurrency + 2,
                max_keepalive_connections=self._concurrency + 2,
                keepalive_expiry=4.0,  # common servers hang up after 5 s idle: be first
            )
            server.client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=candidates(server.given)[0],
                max_retries=0,
                timeout=openai.Timeout(None, connect=min(15.0, self._timeout)),  # the whole try has its own limit
                http_client=openai.DefaultAsyncHttpxClient(
                    limits=limits,
                    trust_env=not is_loopback(server.given),  # no proxy leads to this machine
                ),
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            if server.client is not None:
                await server.client.close()

    # ── one reply ────────────────────────────────────────────────────────────────────────────────────────────

    async def draw(self, messages: Messages, seed: int) -> Reply:
        """One complete reply to the messages. seed: 0..2^31-1, a wish that the server may ignore."""
        messages = [{key: _sendable(value) for key, value in message.items()} for message in messages]
        request, strikes = next(self._numbers), 0
        for tries in itertools.count(1):
            async with self._slots:
                await self._wait_at_gate()
                answered_before, began = self.state.answered, time.monotonic()
                row = {"request": request, "seed": seed, "tries": tries}
                self._log({"event": "sent", **row})
                server = self._pick_server()
                payload = self._payload(messages, seed)
                server.in_flight, server.sent = server.in_flight + 1, server.sent + 1
                self.state.in_flight += 1
                try:
                    reply = self._read(await self._post(server, payload))
                except _Failed as failed:
                    failure = failed
                else:
                    return self._answered(row, reply._replace(tries=tries, latency_seconds=time.monotonic() - began))
                finally:
                    server.in_flight -= 1
                    self.state.in_flight -= 1
            if failure.kind == "overflow":
                self._failing_since = None  # a server that says so is alive
                self._log({"event": "refused", **row, "status": failure.status, "error": failure.error})
                return Reply("", "context_overflow", None, None, tries=tries, latency_seconds=time.monotonic() - began)
            if self.state.answered > answered_before and failure.kind != "throttled":
                strikes += STRIKES_OF_A_TIMEOUT if failure.timed_out else 1
            wait = self._after_failure(failure, server, row, payload, strikes, began)
            self.state.waiting += 1
            try:
                await asyncio.sleep(wait)
            finally:
                self.state.waiting -= 1
        raise AssertionError("unreachable")

    def _payload(self, messages: Messages, seed: int) -> dict[str, Any]:
        body = {"model": self.model, "messages": messages, **self._body, "seed": seed, **self._extra}
        if self._max_tokens_field != "max_tokens":
            body[self._max_tokens_field] = body.pop("max_tokens")
        return {name: value for name, value in body.items() if name not in self._dropped}

    async def _post(self, server: _Server, payload: dict[str, Any]) -> dict[str, Any]:
        rest = dict(payload)
        model, messages = rest.pop("model"), rest.pop("messages")
        create = server.client.chat.completions.with_raw_response.create  # raw: servers' own shapes come through
        return await self._call(create(model=model or "", messages=messages, extra_body=rest))

    async def _call(self, coroutine: Any) -> dict[str, Any]:
        """The body of a 200, or _Failed, raised outside of every except block: what the library raises holds the
        request with its headers, so it must not hang on an exception that somebody may print."""
        body: Any = None
        failure: _Failed | None = None
        try:
            async with asyncio.timeout(self._timeout):
                raw = await coroutine
            body = json.loads(raw.content)
            if not isinstance(body, dict):
                raise ValueError
        except TimeoutError:
            words = f"no complete answer within {self._timeout:g} s"
            failure = _Failed("again", words, possibly_billed=True, timed_out=True)
        except self._openai.APIStatusError as error:
            failure = self._judge(error.status_code, dict(error.response.headers), error.response.text)
        except self._openai.APIConnectionError as error:
            cause = error.__cause__ or error
            never_sent = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
            words = self.scrub(_first_line(f"{type(cause).__name__}: {_root(cause)}"))
            failure = _Failed("again", words, possibly_billed=not never_sent, never_sent=never_sent)
        except (ValueError, RecursionError):
            failure = _Failed("again", "HTTP 200: the body is not JSON", status=200, possibly_billed=True)
        if failure is None and body.get("error"):
            said = body["error"] if isinstance(body["error"], dict) else {}
            code = str(said.get("code") or said.get("status"))
            failure = self._judge(int(code) if re.fullmatch("[45][0-9][0-9]", code) else 502, {}, json.dumps(body))
        if failure is not None:
            raise failure
        return dict(body)

    def _judge(self, status: int, headers: dict[str, str], text: str) -> _Failed:
        """What an error answer means."""
        error = f"HTTP {status}: {_first_line(_server_words(self.scrub(text)))}"
        codes, wait = _codes(text), _named_wait({name.lower(): value for name, value in headers.items()})
        say = self.scrub(text)[:4000]
        if status == 402 or codes & {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"}:
            kind = "quota"
        elif wait is not None and wait > self._give_up_after:
            kind = "quota"  # to be told to come back tomorrow is a stop sign
        elif status == 429:
            kind = "throttled"
        elif codes & {"context_length_exceeded", "exceed_context_size_error"} or (
            status in (400, 413, 422) and (status == 413 or _TOO_LONG.search(say))
        ):
            kind = "overflow"
        elif status in (401, 403):
            kind = "key"
        elif status == 404:
            kind = "model" if "model" in say.lower() else "absent"
        elif status in (408, 409, 425) or (status >= 500 and status != 501):
            kind = "again"
        else:
            kind = "refused"
        possibly_billed = status in (408, 502, 504, 524)  # a gateway gave up on a server that may have worked on
        return _Failed(kind, error, status=status, wait=wait, possibly_billed=possibly_billed, say=say)

    def _read(self, body: dict[str, Any]) -> Reply:
        """The reply in the body of a 200."""
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise _Failed("again", "the answer holds no choice", status=200, possibly_billed=True)
        finish = choice.get("finish_reason")
        if not isinstance(finish, str) or finish in ("", "error", "abort", "insufficient_system_resource"):
            error = f"the answer was cut off by the server (finish_reason {finish!r})"
            raise _Failed("again", error, status=200, possibly_billed=True)
        text, reasoning = split_reasoning(message, self._tag_is_implied and finish == "length")
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        prompt, completion = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
        return Reply(self._scrub_reply(text), finish, prompt, completion, self._scrub_reply(reasoning))

    def _answered(self, row: dict[str, Any], reply: Reply) -> Reply:
        self.state.answered += 1
        self._settled, self._failing_since = True, None
        self._throttled_in_a_row = self._refused_in_a_row = 0
        tokens = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
        self._log({"event": "answered", **row, **tokens, "latency_seconds": round(reply.latency_seconds, 3)})
        return reply

    # ── when it fails ────────────────────────────────────────────────────────────────────────────────────────

    def _after_failure(
        self,
        failure: _Failed,
        server: _Server,
        row: dict[str, Any],
        payload: dict[str, Any],
        strikes: int,
        began: float,
    ) -> float:
        """Seconds to wait before the next try; raises EndpointFault where there is none."""
        now = time.monotonic()
        self.state.last_error = failure.error
        fault: EndpointFault | None = None
        wait = 0.0
        if failure.kind in ("key", "model", "quota", "absent"):
            fault = self._end(failure)
        elif failure.kind == "refused" and not (not self._settled and self._learn(failure, payload)):
            self._refused_in_a_row += 1
            if self._refused_in_a_row >= REFUSALS_IN_A_ROW or not self._settled:
                fault = self._end(failure)
            else:
                fault = EndpointFault("attempt", f"the server refuses one prompt ({failure.error}): it stays owed")
        elif failure.kind in ("again", "throttled"):
            # What timed out has been failing since it was sent; anything else fails now.
            since = began if failure.timed_out else now
            self._failing_since = since if self._failing_since is None else min(self._failing_since, since)
            left = self._failing_since + self._give_up_after - now
            if left <= 0:
                fault = self._end(failure)
            elif strikes >= MAX_STRIKES:
                fault = EndpointFault(
                    "attempt",
                    f"one prompt failed {row['tries']} times while others were answered (last: {failure.error}): "
                    "it stays owed; repeat the command to try it again",
                )
            wait = (
                self._close_gate(failure, now) if failure.kind == "throttled" else self._backoff(failure, row["tries"])
            )
            wait = max(failure.wait or 0.0, min(wait, max(left, 0.0)))
            if failure.kind == "again":
                server.resting_until = now + wait
        common = {**row, "status": failure.status, "error": failure.error}
        if fault:
            self._log({"event": "fault", **common, "kind": fault.kind, "possibly_billed": failure.possibly_billed})
            if fault.kind != "attempt":
                self._fault = fault
            raise fault
        self.state.retries += 1
        billed = failure.possibly_billed
        self._log({"event": "retry", **common, "wait_seconds": round(wait, 3), "possibly_billed": billed})
        return wait if failure.kind == "again" else 0.0  # a refused field: at once; a 429: at the gate

    def _backoff(self, failure: _Failed, tries: int) -> float:
        if "disconnected" in failure.error and tries == 1:
            return 0.0  # an idle connection that the server had closed: resend at once, once
        first, longest = BACKOFF
        return self._random.uniform(0, min(longest, first * 2 ** min(tries - 1, 10)))

    def _close_gate(self, failure: _Failed, now: float) -> float:
        """Nobody sends before the gate opens. Many answers of 429 to what was in flight are one event."""
        first, longest = BACKOFF
        if failure.wait is not None:
            self._gate_opens = max(self._gate_opens, now + failure.wait)
        elif now >= self._gate_opens:
            self._gate_opens = now + min(longest, first * 2 ** min(self._throttled_in_a_row, 10))
            self._throttled_in_a_row += 1
        return max(0.0, self._gate_opens - now)

    async def _wait_at_gate(self) -> None:
        """After a 429 everybody waits, and comes back spread over a little time."""
        self.state.waiting += 1
        try:
            while (left := self._gate_opens - time.monotonic()) > 0:
                await asyncio.sleep(left + self._random.uniform(0, min(1.0, left / 4)))
        finally:
            self.state.waiting -= 1
        if self._fault:
            raise self._fault

    def _pick_server(self) -> _Server:
        now = time.monotonic()
        return min(self._servers, key=lambda server: (server.resting_until > now, server.in_flight, server.sent))

    def _end(self, failure: _Failed) -> EndpointFault:
        """The fault that ends the run, with the server's own words and the way on."""
        error, again = failure.error, "everything answered is saved; repeat the command to continue"
        where = ", ".join(shown(server.given) for server in self._servers)
        if failure.kind == "key":
            return EndpointFault(
                "key", f"{where} refuses the key ({error}): set OPENAI_API_KEY to a valid one; {again}"
            )
        if failure.kind == "model":
            return EndpointFault("model", f"no model {self.model!r} at {where} ({error}): give --model; {again}")
        if failure.kind == "quota":
            return EndpointFault("quota", f"the quota at {where} is used up ({error}): raise it or wait; {again}")
        if failure.kind == "absent":
            return EndpointFault("unreachable", f"no chat completions at {where} ({error}): check --base-url; {again}")
        if failure.kind == "refused":
            return EndpointFault("fields", f"{where} refuses the request ({error}): change the flag it names; {again}")
        minutes = f"{self._give_up_after / 60:g} minutes"
        return EndpointFault("gave_up", f"nothing answered at {where} for {minutes} (last error: {error}): {again}")

    def _learn(self, failure: _Failed, payload: dict[str, Any]) -> bool:
        """Leave out or rename the fields that a 400 names, where that changes no sample. True: worth another try."""
        say = failure.say
        if not _REFUSAL.search(say):
            return False
        if "max_tokens" in payload and "max_completion_tokens" in say:
            self._max_tokens_field = "max_completion_tokens"
            return True
        named = [name for name in _OPTIONAL if name in payload and re.search(rf"\b{name}\b", say)]
        for name in named:
            if name in ("temperature", "top_p") and payload[name] != 1:
                return False  # asked for, and refused: only the user can decide
            why = {"chat_template_kwargs": "so --thinking is up to the server", "seed": "so samples cannot be repeated"}
            self._dropped.setdefault(name, f"the server refuses {name}: left out, {why.get(name, 'its default is 1')}")
        return bool(named)

    # ── before anything is spent ─────────────────────────────────────────────────────────────────────────────

    async def probe(self) -> dict[str, Any]:
        """Ask every server once, with the request that draw will send and a tiny prompt.

        Returns {model, served, server, urls, facts, warnings}. Raises EndpointFault in the server's own words."""
        served: list[str] = []
        facts: list[str] = []
        warnings: list[str] = []
        names: list[str] = []
        for server in self._servers:
            listing = await self._patiently(lambda server=server: self._find(server))  # type: ignore[misc]
            rows = [row for row in listing if isinstance(row, dict) and isinstance(row.get("id"), str)]
            here = [self.scrub(row["id"]) for row in rows]
            served += [name for name in here if name not in served]
            names += [self.scrub(str(row["owned_by"])) for row in rows[:1] if row.get("owned_by")]
            if self.model is None:
                if len(here) != 1:
                    which = f"serves {', '.join(here[:10])}" if here else "does not list its models"
                    raise EndpointFault("model", f"{shown(server.given)} {which}: choose one with --model")
                self.model = here[0]
            lengths = {row["max_model_len"] for row in rows if row["id"] == self.model and row.get("max_model_len")}
            facts += [f"context of {length} tokens at {shown(server.given)}" for length in lengths]
            body, reply = await self._patiently(lambda server=server: self._first_words(server))  # type: ignore[misc]
            reported = self.scrub(str(body.get("model") or self.model))
            if here and self.model not in here:
                warnings.append(
                    f"{shown(server.given)} does not list {self.model} (it lists {', '.join(here[:10])}) and answers "
                    f"all the same, as {reported}: make sure that it is the model you mean"
                )
            elif reported != self.model:
                facts.append(f"{shown(server.given)} reports its model as {reported}")
            if self._thinking == "off" and reply.reasoning:
                warnings.append(f"{shown(server.given)} thinks in spite of --thinking off; its reasoning is kept apart")
            if reply.prompt_tokens is None or reply.completion_tokens is None:
                facts.append(f"{shown(server.given)} does not count tokens: totals will say unknown")
            tokens = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
            self._log({"event": "probe", "url": shown(str(server.client.base_url)), **tokens})
        if self._max_tokens_field != "max_tokens":
            facts.append(f"the length limit is sent as {self._max_tokens_field}")
        warnings += self._dropped.values()
        return {
            "model": self.model,
            "served": served,
            "server": ", ".join(dict.fromkeys(names)) or "unknown",
            "urls": [shown(str(server.client.base_url)).rstrip("/") for server in self._servers],
            "facts": facts,
            "warnings": warnings,
        }

    async def _find(self, server: _Server) -> list[Any]:
        """Settle the form of the base URL by its list of models; [] where no form has one."""
        for url in candidates(server.given):
            server.client.base_url = url
            try:
                body = await self._call(server.client.models.with_raw_response.list())
            except _Failed as failed:
                if failed.kind in ("quota", "throttled") or (failed.kind == "again" and failed.status != 200):
                    raise
                if failed.kind == "key" and self.model is None:
                    raise  # with a model given, the key may still be good for all but lists
                continue
            if isinstance(body.get("data"), list):
                return list(body["data"])
        server.client.base_url = candidates(server.given)[0]
        return []

    async def _first_words(self, server: _Server) -> tuple[dict[str, Any], Reply]:
        """One tiny reply, at the first form of the URL that has chat completions."""
        settled, tried = str(server.client.base_url), []
        for url in dict.fromkeys([settled.rstrip("/"), *candidates(server.given)]):
            server.client.base_url = url
            tried.append(shown(url))
            for _ in range(6):  # at most one refusal for each field that can be learned
                payload = self._payload([{"role": "user", "content": PROBE}], 0)
                try:
                    body = await self._post(server, payload)
                    reply = self._read(body)
                except _Failed as failed:
                    failure = failed
                else:
                    self._settled = True
                    self._tag_is_implied |= "</think>" in str(body["choices"][0]["message"].get("content")) and (
                        "<think>" not in str(body["choices"][0]["message"].get("content"))
                    )
                    return body, reply
                if failure.kind != "refused" or not self._learn(failure, payload):
                    break
            if failure.kind != "absent":
                break
        if failure.kind == "absent":
            fault = EndpointFault("unreachable", f"no chat completions at {' or '.join(tried)}: check --base-url")
        elif failure.kind == "overflow":
            fault = EndpointFault("fields", f"{failure.error}: too long even for a tiny prompt; lower --max-tokens")
        elif failure.kind in ("again", "throttled"):
            raise failure
        else:
            fault = self._end(failure)
        raise fault

    async def _patiently(self, act: Callable[[], Any]) -> Any:
        """Until it works: a loading server refuses connections for a moment, then answers 503 for minutes."""
        began = time.monotonic()
        for tries in itertools.count(1):
            try:
                return await act()
            except _Failed as failed:
                failure = failed
            patience = min(CONNECT_PATIENCE, self._give_up_after) if failure.never_sent else self._give_up_after
            left = began + patience - time.monotonic()
            if failure.kind not in ("again", "throttled"):
                raise self._end(failure)
            if left <= 0 or (failure.wait or 0) > left or "gaierror" in failure.error:
                where = ", ".join(shown(server.given) for server in self._servers)
                raise EndpointFault(
                    "unreachable", f"no answer from {where} ({failure.error}): start it, or check --base-url"
                )
            wait = max(failure.wait or 0.0, min(left, 0.5 * 2 ** min(tries - 1, 5)))
            self._log({"event": "waiting", "error": failure.error, "wait_seconds": round(wait, 3)})
            await asyncio.sleep(wait)


# ── reading what servers say ─────────────────────────────────────────────────────────────────────────────────────────

_OPTIONAL = ("chat_template_kwargs", "seed", "top_p", "temperature")  # a sample is a sample without them
_REFUSAL = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|forbidden|invalid", re.I
)
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|maximum.{0,20}(context|model|prompt|input).{0,20}length|max_model_len|"
    r"(prompt|input|request|messages).{0,20} (is|are) too long|longer than the (model|maximum)|"
    r"too many (input )?tokens",
    re.I,
)


def split_reasoning(message: dict[str, Any], cut_while_thinking: bool = False) -> tuple[str, str]:
    """(text, reasoning) of a message: from fields of their own, from parts, from <think> tags with or without the
    opening one. A reply that was cut while thinking has no text."""
    content = message.get("content")
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        reasoning = reasoning or "".join(_text(part.get("thinking")) for part in parts)
        content = "".join(_text(part.get("text")) for part in parts)
    text, reasoning = content if isinstance(content, str) else "", _text(reasoning)
    opened = re.match(r"\s*<think>", text)
    # A tag right before a quote is a program's own string; servers never quote theirs.
    closing = re.search(r"</think>(?![\"'`\\])", text)
    if closing and (opened or "<think>" not in text[: closing.start()]):
        thought = text[opened.end() if opened else 0 : closing.start()]
        return text[closing.end() :].lstrip("\r\n"), reasoning + thought.strip()
    if opened or (cut_while_thinking and not reasoning):
        return "", reasoning + (text[opened.end() :] if opened else text)
    return text, reasoning


def _text(value: Any) -> str:
    """The text in a string, in a part, or in a list of parts."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    return _text(value.get("text")) if isinstance(value, dict) else value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _codes(text: str) -> set[str]:
    """The values of code and type in an error body, in whichever shape it has."""
    return set(re.findall(r'"(?:code|type)"\s*:\s*"([^"]{1,80})"', text))


def _server_words(text: str) -> str:
    """The message inside an error body, and the field it names; else the body itself."""
    try:
        error = json.loads(text)
        error = error.get("error") or error.get("detail") or error
    except (ValueError, AttributeError, RecursionError):
        return text
    if not isinstance(error, dict):
        return error if isinstance(error, str) else json.dumps(error)
    message = error.get("message") or json.dumps(error)
    param = error.get("param")
    return f"{message} [{param}]" if param and str(param) not in str(message) else str(message)


def _first_line(text: str) -> str:
    """One line of at most 300 characters, fit for a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    return (line[:299] + "…" if len(line) > 300 else line) or "no words"


def _root(error: BaseException) -> BaseException:
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return error


def _named_wait(headers: dict[str, str]) -> float | None:
    """Seconds that retry-after-ms or Retry-After asks for (a number, or a date by the server's own clock)."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{0,9})?", value):
            return float(value) / unit
    try:
        until = parsedate_to_datetime(headers["retry-after"])
        now = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
        return max(0.0, until.timestamp() - now)
    except (KeyError, ValueError, OverflowError):
        return None


def scrubber(secrets: list[str]) -> Callable[[str], str]:
    """A function that takes the secrets out of a text, and every piece of one that begins with its first eight
    characters, up to the end of the word (servers echo keys with the middle starred out)."""
    patterns = [
        re.escape(secret[:8]) + r"[^\s\"',;<>(){}\[\]]*" if len(secret) >= 8 else rf"\b{re.escape(secret)}\b"
        for secret in secrets
        if secret
    ]
    if not patterns:
        return lambda text: text
    every = re.compile("|".join(patterns))
    return lambda text: every.sub("[key]", text)


def _sendable(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8 form, replaced (a reply may hold one, and be shown)."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# ── base URLs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def default_base_urls() -> list[str]:
    """Where to go when no --base-url is given: OPENAI_BASE_URL, else the address the library itself would use."""
    return [os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"]


def _with_scheme(url: str) -> str:
    url = url.strip()
    if "://" not in url:
        url = ("http://" if is_local(f"http://{url}") else "https://") + url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{shown(url)!r} is not a base URL: give one like http://localhost:8000/v1")
    path = re.sub(r"(/chat/completions|/completions|/models)?/*$", "", parts.path)
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def candidates(url: str) -> list[str]:
    """The forms that a pasted base URL may stand for, the likeliest first: with /v1, and without."""
    bare = url[: -len("/v1")] if url.endswith("/v1") else url
    if url != bare or urlsplit(url).path == "":
        return [f"{bare}/v1", bare]
    return [url, f"{url}/v1"]


def shown(url: str) -> str:
    """The URL without user, password and query: they may hold a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_local(url: str) -> bool:
    """This machine, a private address, or a name that no public server has: no key is asked for."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
    return address.is_private or address.is_loopback or address.is_link_local


# ── the fake policy of the dry run ───────────────────────────────────────────────────────────────────────────────────

# For each toy task, a phrase of its statement, how often a reply is right (nothing shown, own program shown, a
# neighbour's as well), and programs from nearly right to right.
_FAKES: list[tuple[str, tuple[float, float, float], list[str]]] = [
    (
        "painted in strokes",
        (0.01, 0.05, 0.25),
        [
            "n = int(input())\nRESULT = 0\nfor _ in range(n):\n    a, b = map(int, input().split())\n"
            "    RESULT += abs(b - a)\nprint(RESULT)\n",
            "n = int(input())\nRESULT, end = 0, -10**10\n"
            "for a, b in sorted(sorted(map(int, input().split())) for _ in range(n)):\n"
            "    RESULT += max(0, b - max(a, end))\n    end = b\nprint(RESULT)\n",
            "n = int(input())\nends = []\nfor _ in range(n):\n    ends += map(int, input().split())\n"
            "RESULT = max(ends, default=0) - min(ends, default=0)\nprint(RESULT)\n",
            "n = int(input())\nRESULT, end = 0, -10**10\n"
            "for a, b in sorted(sorted(map(int, input().split())) for _ in range(n)):\n"
            "    if b > end:\n        RESULT += b - max(a, end)\n        end = b\nprint(RESULT)\n",
        ],
    ),
    (
        "brackets of three kinds",
        (0.01, 0.05, 0.25),
        [
            "RESULT = input()\nprint(0 if RESULT.count('(') == RESULT.count(')') else -1)\n",
            "RESULT = 0\nfor place, c in enumerate(input(), 1):\n    RESULT += (c in '([{') - (c in ')]}')\n"
            "    if RESULT < 0:\n        print(place)\n        break\nelse:\n    print(-1 if RESULT else 0)\n",
            "RESULT = []\nfor place, c in enumerate(input(), 1):\n    if c in '([{':\n"
            "        RESULT.append(')]}'['([{'.index(c)])\n    elif c in ')]}' and (not RESULT or RESULT.pop() != c):\n"
            "        print(place)\n        break\nelse:\n    print(-1 if RESULT else 0)\n",
        ],
    ),
    (
        "rotate(items, k)",
        (0.25, 0.5, 0.75),
        [
            "def rotate(items, k):\n    return items[-k:] + items[:-k]\n\n\n"
            "def runs(text):\n    RESULT = {}\n    for c in text:\n        RESULT[c] = RESULT.get(c, 0) + 1\n"
            "    return list(RESULT.items())\n",
            "def rotate(items, k):\n    k %= len(items) or 1\n    return items[-k:] + items[:-k]\n\n\n"
            "def runs(text):\n    RESULT = {}\n    for c in text:\n        RESULT[c] = RESULT.get(c, 0) + 1\n"
            "    return list(RESULT.items())\n",
            "from itertools import groupby\n\n\ndef rotate(items, k):\n    k %= len(items) or 1\n"
            "    return items[-k:] + items[:-k]\n\n\ndef runs(text):\n"
            "    RESULT = [(c, len(list(run))) for c, run in groupby(text)]\n    return RESULT\n",
        ],
    ),
]


class FakePolicy:
    """Policy's verbs without a model: a deterministic function of messages and seed that knows the toy tasks.

    Mostly wrong on the bare prompt, better with its own program and a failed test before it, better still with a
    neighbour's program as well, so that a dry run has something to show."""

    model = "fake"

    def __init__(self, log: Callable[[dict[str, Any]], object] = lambda row: None) -> None:
        self.state = State()
        self._log, self._numbers = log, itertools.count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def probe(self) -> dict[str, Any]:
        facts = ["a fake policy: its numbers say nothing about any model"]
        return {
            "model": self.model,
            "served": [self.model],
            "server": "none",
            "urls": [],
            "facts": facts,
            "warnings": [],
        }

    async def draw(self, messages: Messages, seed: int) -> Reply:
        row = {"request": next(self._numbers), "seed": seed, "tries": 1}
        self._log({"event": "sent", **row})
        reply = self._reply(messages, seed)
        self.state.answered += 1
        tokens = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
        self._log({"event": "answered", **row, **tokens, "latency_seconds": 0.0})
        return reply

    def _reply(self, messages: Messages, seed: int) -> Reply:
        prompt = "\n".join(message["content"] for message in messages)
        rng = random.Random(sha256(json.dumps([messages, seed]).encode()).digest())
        programs_shown = min(prompt.count("`python\n"), 2)
        rates, programs = next(
            ((rates, programs) for phrase, rates, programs in _FAKES if phrase in prompt), ((0, 0, 0), ["print(0)\n"])
        )
        if rng.random() < rates[programs_shown]:
            program = programs[-1]
        else:  # the more is shown, the nearer
            program = programs[max(rng.randrange(max(1, len(programs) - 1)) for _ in range(1 + programs_shown))]
        program = program.replace("RESULT", rng.choice(["answer", "result", "found", "total", "value"]))
        text = f"Plan {rng.randrange(10**6)}: follow the statement.\n\n```python\n{program}```\n"
        if rng.random() < 0.04:
            text = f"I would first look at the examples ({rng.randrange(10**6)})."
        return Reply(text, "stop", len(prompt) // 4, len(text) // 4)
