"""The policy: a prompt in, one complete reply out, from any OpenAI-compatible server; and the dry run's fake policy.

Three outcomes, never two. `Policy.draw` returns a complete reply; or one whose finish_reason is "context_overflow",
where the server refuses the prompt as too long; or it raises an `EndpointFault`. Half an answer, an error inside a
200, a time-out or a used-up quota is never a reply.

- One request a sample. The retries are all here (the library's are switched off): exponential with full jitter, and
  never where they cannot help. `Retry-After` is a lower bound; after a 429 every request waits at one gate.
- A try has `request_timeout` seconds from its start, however slowly a server drips. When nothing has been answered
  for `give_up_after` seconds, the first failure ends the run. Both are monotonic: a clock that jumps changes nothing.
- `probe` sends what `draw` will send, with a tiny prompt, and learns from the server's own words which form of the
  URL, which model and which fields it takes.
- The key stands in the Authorization header and nowhere else: it is taken out of every text that comes from outside.

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
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

from faults import EndpointFault
from grading.reasoning import BEGINS, ENDS, OPENS

Messages = list[dict[str, str]]
Record = Callable[[dict[str, Any]], object]

BACKOFF = (0.5, 30.0)  # seconds: the longest first wait, and the longest wait at all
MAX_STRIKES = 20  # failures of one draw while others were being answered; then it is given up
STRIKES_OF_A_TIMEOUT = 5  # a time-out costs the server minutes of work, so few are enough
REFUSALS_IN_A_ROW = 8  # different prompts refused with nothing answered in between: then it is not the prompts
POOL = 16  # slots that share a connection pool, since a request costs a pool time for each connection that it holds
CONNECT_PATIENCE = 5.0  # seconds that the probe waits for a port that refuses: a typo must not look like a slow start
PROBE = "Reply with the single word: ready"
OURS = "model messages seed n stream temperature top_p max_tokens max_completion_tokens"  # not for --extra-body
OPTIONAL = ("chat_template_kwargs", "seed", "top_p", "temperature")  # left out where a server refuses them
AGAIN = "everything answered is saved; repeat the command to continue"


class Reply(NamedTuple):
    """One complete answer. Tokens are None where the server did not count them."""

    text: str
    finish_reason: str  # stop | length | context_overflow (the prompt was refused, text is "") | the server's own
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning: str = ""  # kept apart from the text, in whatever shape it came
    tries: int = 1
    latency_seconds: float = 0.0  # of the try that was answered


@dataclass(frozen=True)
class Probe:
    """What is known of the servers before anything is spent; config.json holds it under "server"."""

    model: str
    served: list[str]  # all models that the servers list
    server: str  # who made it, in its own words
    urls: list[str]  # in the form that is served
    facts: list[str]
    warnings: list[str]


class _Failed(Exception):
    """One try that brought no reply.

    kind: again | throttled | overflow | refused (400, 422) | key | model | absent (404) | quota | stop (asked to wait
    too long)."""

    def __init__(
        self, kind: str, error: str, status: int | None = None, *, wait: float | None = None, say: str = "",
        possibly_billed: bool = False, never_sent: bool = False, timed_out: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(error)
        self.kind, self.error, self.status = kind, error, status
        self.wait, self.say = wait, say  # seconds that the server asks for; its answer, where refused fields are named
        self.possibly_billed, self.never_sent, self.timed_out = possibly_billed, never_sent, timed_out


@dataclass
class State:
    """What a progress bar shows."""

    in_flight: int = 0
    waiting: int = 0  # between two tries, or at the gate
    retries: int = 0
    answered: int = 0
    last_error: str = ""


@dataclass
class _Server:
    url: str  # the base URL; the probe finds out which form of it is served
    clients: list[Any] = field(default_factory=list)
    in_flight: int = 0
    sent: int = 0
    failures: int = 0  # in a row
    resting_until: float = 0.0  # monotonic seconds; a server that fails is the last choice for a while


class Policy:
    """A model behind one or more base URLs, of which the least loaded is asked. An async context manager.

    `log` gets a dict for each event: sent, answered, retry, refused, fault; probe and waiting before the first draw. A
    `sent` that no row of the same `request` and `tries` follows may have been billed for nothing.
    What `log` raises at a `sent` (a budget, a full disk) goes through, and that request is not made.
    Raises ValueError for arguments that cannot be used, EndpointFault for all that the network does.
    """

    def __init__(
        self,
        base_urls: list[str],
        model: str | None,  # None: the one that is served
        *,
        api_key: str | None = None,  # None: OPENAI_API_KEY
        temperature: float = 1.0,
        top_p: float | None = 1.0,  # None: not sent
        max_tokens: int = 2048,
        thinking: str = "off",  # off | on | server: nothing is said
        extra_body: dict[str, Any] | None = None,
        request_timeout: float = 600.0,  # seconds, the server's queue included
        give_up_after: float = 600.0,  # seconds without any answer
        concurrency: int = 64,  # requests in flight
        log: Record = lambda row: None,
    ) -> None:
        if not base_urls:
            raise ValueError("no endpoint: give --base-url, for example --base-url http://localhost:8000/v1")
        if taken := set(OURS.split()) & set(extra_body or {}):
            raise ValueError(f"--extra-body may not set {', '.join(sorted(taken))}: use the flag made for it")
        self._servers = [_Server(base_url(url)) for url in base_urls]
        self._where = ", ".join(server.url for server in self._servers)
        self._key = (os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip()
        self._scrub = scrubber(self._key)
        # Replies and names are data: they are searched only for a key that cannot be an ordinary word.
        self._scrub_data = scrubber(self._key if len(self._key) >= 20 else "")
        self._body: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
        if top_p is not None:
            self._body["top_p"] = top_p
        self._extra = dict(extra_body or {})
        if thinking != "server":
            switch = {"enable_thinking": thinking == "on"}
            self._extra["chat_template_kwargs"] = switch | self._extra.get("chat_template_kwargs", {})
        self._thinking, self._log = thinking, log
        self._timeout, self._give_up_after, self._concurrency = request_timeout, give_up_after, concurrency
        self.model, self.state = model, State()
        self._served: list[str] = []
        self._renamed: dict[str, str] = {}  # field -> the name this server has for it
        self._dropped: dict[str, str] = {}  # field -> a warning
        self._settled = False  # something was answered, so a refusal is about the prompt
        self._implied_tag = False  # replies close a <think> that the server's template had opened
        self._slots = asyncio.Semaphore(concurrency)
        self._gate_opens = 0.0  # monotonic seconds
        self._failing_since: float | None = None  # monotonic seconds
        self._throttled_in_a_row = 0
        self._refused: set[int] = set()  # prompts refused since the last answer
        self._fault: EndpointFault | None = None  # it has ended: nothing more is sent
        self._numbers = itertools.count(1)
        self._random = random.Random()  # for jitter alone: no sample depends on it

    async def __aenter__(self) -> Self:
        import openai  # half a second: only where it is needed

        self._openai = openai
        for name in ("openai", "httpx2", "httpcore2", "httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)  # their debug lines hold headers
        for server in self._servers:
            if not self._key and not is_local(server.url):
                hint = "set OPENAI_API_KEY, or name a server of your own, like --base-url http://localhost:8000/v1"
                raise EndpointFault("key", f"{server.url} needs a key: {hint}")
            limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
                max_connections=self._concurrency + 2,
                max_keepalive_connections=self._concurrency + 2,
                keepalive_expiry=4.0,  # common servers hang up after 5 idle seconds: be first
            )
            # A whole try has its own time limit; here only connecting has one.
            timeout = openai.Timeout(None, connect=min(15.0, self._timeout))
            for _ in range(0, self._concurrency, POOL):
                # No proxy leads to this machine.
                http = openai.DefaultAsyncHttpxClient(limits=limits, trust_env=not is_loopback(server.url))
                client = openai.AsyncOpenAI(
                    api_key=self._key or "none", base_url=server.url, max_retries=0, timeout=timeout, http_client=http
                )
                server.clients.append(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            for client in server.clients:
                await client.close()

    # ── one reply ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def draw(self, messages: Messages, seed: int) -> Reply:
        """One complete reply. seed: 0 to 2^31 - 1, a wish that a server may ignore."""
        messages = [{name: sendable(text) for name, text in message.items()} for message in messages]
        request, strikes = next(self._numbers), 0
        for tries in itertools.count(1):
            async with self._slots:
                await self._pass_gate()
                row = {"request": request, "seed": seed, "tries": tries}
                answered_before, began = self.state.answered, time.monotonic()
                server = min(self._servers, key=lambda s: (s.resting_until > began, s.in_flight, s.sent))
                payload = self._payload(messages, seed)
                self._log({"event": "sent", **row})
                server.sent += 1
                server.in_flight += 1
                self.state.in_flight += 1
                try:
                    reply = self._reply(await self._post(server, payload))
                except _Failed as failed:
                    failure = failed
                else:
                    server.failures = 0
                    return self._answered(row, reply._replace(tries=tries, latency_seconds=time.monotonic() - began))
                finally:
                    server.in_flight -= 1
                    self.state.in_flight -= 1
            if failure.kind == "overflow":
                self._failing_since = None  # a server that says so is alive
                self._log({"event": "refused", **row, "status": failure.status, "error": failure.error})
                return Reply("", "context_overflow", None, None, "", tries, time.monotonic() - began)
            if self.state.answered > answered_before and failure.kind != "throttled":
                strikes += STRIKES_OF_A_TIMEOUT if failure.timed_out else 1
            wait = self._after(failure, row, server, payload, strikes, began)
            self.state.waiting += 1
            try:
                await asyncio.sleep(wait)
            finally:
                self.state.waiting -= 1
        raise AssertionError("unreachable")

    def _payload(self, messages: Messages, seed: int) -> dict[str, Any]:
        fields = {"model": self.model or "", "messages": messages, **self._body, "seed": seed, **self._extra}
        return {self._renamed.get(name, name): value for name, value in fields.items() if name not in self._dropped}

    async def _post(self, server: _Server, payload: dict[str, Any]) -> dict[str, Any]:
        client = server.clients[server.sent % len(server.clients)]
        # As bytes: every server's own shape comes through, and nothing is spent on types.
        return await self._call(client.post(f"{server.url}/chat/completions", cast_to=bytes, body=payload))

    async def _call(self, sending: Awaitable[Any]) -> dict[str, Any]:
        """The body of a 200, or _Failed; raised outside of every except block, since what the library raises holds
        the request with its headers and must not hang on an exception that somebody may print."""
        body: Any = None
        failure: _Failed | None = None
        try:
            async with asyncio.timeout(self._timeout):
                body = json.loads(await sending)
            if not isinstance(body, dict):
                raise ValueError
        except TimeoutError:
            words = f"no complete answer within {self._timeout:g} s"
            failure = _Failed("again", words, possibly_billed=True, timed_out=True)
        except self._openai.APIStatusError as error:
            failure = self._judge(error.status_code, error.response.headers, error.response.text)
        except self._openai.APIConnectionError as error:
            cause = error.__cause__ or error
            never_sent = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
            words = self._scrub(one_line(f"{type(cause).__name__}: {_root(cause)}"))
            failure = _Failed("again", words, possibly_billed=not never_sent, never_sent=never_sent)
        except (ValueError, RecursionError):
            failure = _Failed("again", "HTTP 200: the body is not a JSON object", 200, possibly_billed=True)
        if failure is None and body.get("error"):
            said = body["error"] if isinstance(body["error"], dict) else {}
            code = str(said.get("code") or said.get("status"))
            failure = self._judge(int(code) if re.fullmatch("[45][0-9][0-9]", code) else 502, {}, json.dumps(body))
        if failure is not None:
            raise failure
        return dict(body)

    def _judge(self, status: int, headers: Any, text: str) -> _Failed:
        """What an error answer means."""
        say, wait, codes = self._scrub(text)[:4000], named_wait(headers), set(_CODE.findall(text))
        if status == 402 or codes & {"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached"}:
            kind = "quota"
        elif wait is not None and wait > self._give_up_after:
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
        error = f"HTTP {status}: {one_line(self._scrub(_words(say)))}"
        return _Failed(kind, error, status, wait=wait, say=say, possibly_billed=billed)

    def _reply(self, body: dict[str, Any]) -> Reply:
        """The reply in the body of a 200."""
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise _Failed("again", "HTTP 200: the answer holds no choice", 200, possibly_billed=True)
        finish = choice.get("finish_reason")
        if not isinstance(finish, str) or finish in ("", "error", "abort", "insufficient_system_resource"):
            words = f"HTTP 200: the answer was cut off (finish_reason {finish!r})"
            raise _Failed("again", words, 200, possibly_billed=True)
        text, reasoning = split_reasoning(message, self._implied_tag and finish == "length")
        usage = body.get("usage")
        prompt, made = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
        return Reply(self._scrub_data(text), finish, prompt, made, self._scrub_data(reasoning))

    def _answered(self, row: dict[str, Any], reply: Reply) -> Reply:
        self.state.answered += 1
        self._settled, self._failing_since = True, None
        self._throttled_in_a_row = 0
        self._refused.clear()
        self._log({"event": "answered", **row, **_tokens(reply), "latency_seconds": round(reply.latency_seconds, 3)})
        return reply

    # ── when it fails ────────────────────────────────────────────────────────────────────────────────────────────────

    def _after(
        self, failure: _Failed, row: dict[str, Any], server: _Server, payload: dict[str, Any], strikes: int,
        began: float,
    ) -> float:  # fmt: skip
        """Seconds to wait before the next try. Raises EndpointFault where there is none."""
        now, wait = time.monotonic(), 0.0
        fault: EndpointFault | None = None
        self.state.last_error = failure.error
        if failure.kind in ("again", "throttled"):
            # What timed out has been failing since it was sent; anything else fails now.
            since = began if failure.timed_out else now
            self._failing_since = since if self._failing_since is None else min(self._failing_since, since)
            left = self._failing_since + self._give_up_after - now
            if left <= 0:
                fault = self._end(failure)
            elif strikes >= MAX_STRIKES:
                words = f"one prompt failed again and again while others were answered (last: {failure.error})"
                fault = EndpointFault("attempt", f"{words}: it stays owed; {AGAIN}")
            elif failure.kind == "throttled":
                wait = self._close_gate(failure, now)
            else:
                wait = max(failure.wait or 0.0, min(self._backoff(failure, row["tries"]), left))
                server.failures += 1
                server.resting_until = now + min(BACKOFF[1], BACKOFF[0] * 2 ** min(server.failures - 1, 10))
        elif failure.kind != "refused":
            fault = self._end(failure)
        elif self._settled or not self._learn(failure, payload):
            self._refused.add(hash(str(payload["messages"])))
            if self._settled and len(self._refused) < REFUSALS_IN_A_ROW:
                fault = EndpointFault("attempt", f"one prompt was refused ({failure.error}): it stays owed; {AGAIN}")
            else:
                fault = self._end(failure)
        what = {**row, "status": failure.status, "error": failure.error, "possibly_billed": failure.possibly_billed}
        if fault:
            self._fault = self._fault if fault.kind == "attempt" else fault
            self._log({"event": "fault", **what, "kind": fault.kind})
            raise fault
        self.state.retries += 1
        self._log({"event": "retry", **what, "wait_seconds": round(wait, 3)})
        return 0.0 if failure.kind == "throttled" else wait  # the gate does the waiting, for all

    def _backoff(self, failure: _Failed, tries: int) -> float:
        if "disconnected" in failure.error and tries == 1:
            return 0.0  # most likely an idle connection that the server had closed: resend at once, once
        first, longest = BACKOFF
        return self._random.uniform(0, min(longest, first * 2 ** min(tries - 1, 10)))

    def _close_gate(self, failure: _Failed, now: float) -> float:
        """Nobody sends before the gate opens. Many 429s to what was in flight together are one event."""
        first, longest = BACKOFF
        if failure.wait is not None:
            self._gate_opens = max(self._gate_opens, now + failure.wait)
        elif now >= self._gate_opens:
            self._gate_opens = now + min(longest, first * 2 ** min(self._throttled_in_a_row, 10))
            self._throttled_in_a_row += 1
        return max(0.0, self._gate_opens - now)

    async def _pass_gate(self) -> None:
        self.state.waiting += 1
        try:
            while (left := self._gate_opens - time.monotonic()) > 0:
                await asyncio.sleep(left + self._random.uniform(0, min(1.0, left / 4)))  # not all at the same moment
        finally:
            self.state.waiting -= 1
        if self._fault:
            raise EndpointFault(self._fault.kind, str(self._fault))

    def _end(self, failure: _Failed) -> EndpointFault:
        """The fault that ends a run: the server's own words, and the way on."""
        where, error = self._where, failure.error
        serves = f"; it serves {', '.join(self._served[:10])}" if self._served else ""
        kind, text = {
            "key": ("key", f"{where} refuses the key ({error}): set OPENAI_API_KEY to a valid one"),
            "model": ("model", f"no model {self.model!r} at {where} ({error}){serves}: give another --model"),
            "absent": ("unreachable", f"no chat completions at {where} ({error}): check --base-url"),
            "quota": ("quota", f"the quota at {where} is used up ({error}): raise it, or continue later"),
            "stop": ("quota", f"a rate limit or quota at {where} asks to wait {failure.wait or 0:,.0f} s, longer than "
                              f"--give-up-after ({error}): continue later"),
            "refused": ("fields", f"{where} refuses the request ({error}): change the flag that says so "
                                  "(chat_template_kwargs is --thinking)"),
            "overflow": ("fields", f"{where} finds even a tiny prompt too long ({error}): lower --max-tokens"),
        }.get(failure.kind, ("gave_up", f"nothing answered at {where} for {self._give_up_after / 60:g} minutes "
                                        f"(last error: {error}): check the server"))  # fmt: skip
        return EndpointFault(kind, f"{text}; {AGAIN}")

    def _learn(self, failure: _Failed, payload: dict[str, Any]) -> bool:
        """Rename or leave out the fields that a refusal names, where no sample changes by it. True: try again."""
        if not _REFUSAL.search(failure.say):
            return False
        if "max_tokens" in payload and "max_completion_tokens" in failure.say:
            self._renamed["max_tokens"] = "max_completion_tokens"
            return True
        named = [name for name in OPTIONAL if name in payload and re.search(rf"\b{name}\b", failure.say)]
        harmless = {"chat_template_kwargs": {"enable_thinking": False}, "temperature": 1, "top_p": 1}
        if any(payload[name] != harmless.get(name, payload[name]) for name in named):
            return False  # asked for, and refused: that is for the user to decide
        for name in named:
            what = {"chat_template_kwargs": "--thinking is up to the server", "seed": "a sample cannot be repeated"}
            self._dropped[name] = f"the server refuses {name}, so it is left out: {what.get(name, 'its default is 1')}"
        return bool(named)

    # ── before anything is spent ─────────────────────────────────────────────────────────────────────────────────────

    async def probe(self) -> Probe:
        """Ask every server for its models and for one word. Raises EndpointFault in the server's own words."""
        facts: list[str] = []
        warnings: list[str] = []
        makers: list[str] = []
        for server in self._servers:
            rows = await self._patiently(self._list_models, server)
            here = [self._scrub_data(row["id"]) for row in rows]
            self._served += [name for name in here if name not in self._served]
            makers += [self._scrub_data(str(row["owned_by"])) for row in rows[:1] if row.get("owned_by")]
            if self.model is None:
                if len(here) != 1:
                    serves = f"serves {', '.join(here[:10])}" if here else "does not list its models"
                    raise EndpointFault("model", f"{server.url} {serves}: choose one with --model")
                self.model = here[0]
            body, reply = await self._patiently(self._first_word, server)
            url = server.url
            self._log({"event": "probe", "url": url, **_tokens(reply)})
            reported = self._scrub_data(str(body.get("model") or self.model))
            if here and self.model not in here:
                warnings.append(f"{url} lists {', '.join(here[:10])}, not {self.model}, and answers all the same, as "
                                f"{reported}: make sure that it is the model you mean")  # fmt: skip
            elif reported != self.model:
                facts.append(f"{url} reports its model as {reported}")
            for row in rows:
                if row["id"] == self.model and _count(row, "max_model_len"):
                    facts.append(f"{url} has a context of {row['max_model_len']} tokens")
            if self._thinking == "off" and reply.reasoning:
                warnings.append(
                    f"{url} thinks in spite of --thinking off; its reasoning is kept apart from the replies"
                )
            if reply.prompt_tokens is None or reply.completion_tokens is None:
                facts.append(f"{url} does not count tokens: totals will say unknown")
        facts += [f"the server takes {new} in place of {old}" for old, new in self._renamed.items()]
        return Probe(
            model=self.model or "",
            served=self._served,
            server=", ".join(dict.fromkeys(makers)) or "unknown",
            urls=[server.url for server in self._servers],
            facts=facts,
            warnings=[*warnings, *self._dropped.values()],
        )

    async def _list_models(self, server: _Server) -> list[dict[str, Any]]:
        """What is served, at the first form of the URL that has a list; [] where none has."""
        given = server.url
        for server.url in url_forms(given):
            try:
                body = await self._call(server.clients[0].get(f"{server.url}/models", cast_to=bytes))
            except _Failed as failure:
                if failure.kind in ("quota", "stop", "throttled") or (
                    failure.kind == "again" and failure.status != 200
                ):
                    raise
                if failure.kind == "key" and self.model is None:
                    raise  # else the key may still be good for all but lists
                continue
            if isinstance(body.get("data"), list):
                rows = [row for row in body["data"] if isinstance(row, dict)]
                return [row for row in rows if isinstance(row.get("id"), str)]
        server.url = given
        return []

    async def _first_word(self, server: _Server) -> tuple[dict[str, Any], Reply]:
        """One tiny reply, at the form of the URL that has the list of models, else at the first that has completions.
        Learns, refusal by refusal, which fields to leave out."""
        forms = list(dict.fromkeys([*([server.url] if self._served else []), *url_forms(server.url)]))
        for server.url in forms:
            while True:
                payload = self._payload([{"role": "user", "content": PROBE}], 0)
                try:
                    body = await self._post(server, payload)
                    reply = self._reply(body)
                except _Failed as failed:
                    failure = failed
                else:
                    content = str(body["choices"][0]["message"].get("content"))
                    self._implied_tag |= bool(ENDS.search(content)) and not OPENS.search(content)
                    self._settled = True
                    return body, reply
                if failure.kind != "refused" or not self._learn(failure, payload):  # each round learns a field more
                    break
            if failure.kind != "absent":
                break
        if failure.kind == "absent":
            failure.error += f"; tried {' and '.join(forms)}"
        raise failure

    async def _patiently(self, ask: Callable[[_Server], Awaitable[Any]], server: _Server) -> Any:
        """A server that loads refuses connections for a moment, then answers 503 for minutes."""
        began = time.monotonic()
        for tries in itertools.count(1):
            try:
                return await ask(server)
            except _Failed as failed:
                failure = failed
            if failure.kind not in ("again", "throttled"):
                raise self._end(failure)
            patience = min(self._give_up_after, CONNECT_PATIENCE if failure.never_sent else self._give_up_after)
            left = began + patience - time.monotonic()
            if left <= 0 or (failure.wait or 0.0) > left:
                words = f"no answer from {server.url} ({failure.error})"
                raise EndpointFault("unreachable", f"{words}: start the server, or check --base-url")
            wait = max(failure.wait or 0.0, min(left, BACKOFF[0] * 2 ** min(tries - 1, 5)))
            self._log({"event": "waiting", "error": failure.error, "wait_seconds": round(wait, 3)})
            await asyncio.sleep(wait)


# ── what servers say ─────────────────────────────────────────────────────────────────────────────────────────────────

_CODE = re.compile(r'"(?:code|type)"\s*:\s*"([^"]{1,80})"')  # in an error body of whatever shape
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
    """(text, reasoning): from fields of their own, from parts, or by markers in the text, of which the first may be
    missing. What was cut off while thinking has no text."""
    content = message.get("content")
    reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
    if isinstance(content, list):
        reasoning = reasoning or _text([part.get("thinking") for part in content if isinstance(part, dict)])
    text = _text(content)
    opened = BEGINS.match(text)
    start = opened.end() if opened else 0
    closed = ENDS.search(text)
    if closed and (opened or not OPENS.search(text, 0, closed.start())):
        return text[closed.end() :].lstrip("\r\n"), reasoning + text[start : closed.start()].strip()
    if opened or (cut_while_thinking and not reasoning):
        return "", reasoning + text[start:]
    return text, reasoning


def _text(value: Any) -> str:
    """The text in a string, in a part, or in a list of parts."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    return _text(value.get("text")) if isinstance(value, dict) else value if isinstance(value, str) else ""


def _count(row: Any, name: str) -> int | None:
    value = row.get(name) if isinstance(row, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _tokens(reply: Reply) -> dict[str, int | None]:
    return {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}


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


def _root(error: BaseException) -> BaseException:
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return error


def named_wait(headers: Any) -> float | None:
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


def scrubber(secret: str) -> Callable[[str], str]:
    """Takes a secret out of a text, and each word that begins with its first eight characters: servers like to echo a
    key with its middle starred out."""
    if not secret:
        return lambda text: text
    pattern = re.escape(secret[:8]) + r"[^\s\"',;<>(){}\[\]]*" if len(secret) >= 8 else rf"\b{re.escape(secret)}\b"
    return lambda text: re.sub(pattern, "[key]", text)


def sendable(text: str) -> str:
    """Without lone surrogates, which have no UTF-8 form: a reply may hold one, and may be shown in a prompt."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# ── base URLs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def default_base_urls() -> list[str]:
    """Where to go when --base-url is not given: OPENAI_BASE_URL, else where the library itself would go."""
    return [os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"]


def base_url(text: str) -> str:
    """A base URL as people paste it, made whole. ValueError where it cannot be one."""
    text = text.strip()
    if "://" not in text:
        text = ("http://" if is_local(f"//{text}") else "https://") + text
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError("a --base-url is not a URL: give one like http://localhost:8000/v1")
    if parts.username is not None or parts.query or parts.fragment:  # not shown, since it may hold a key
        raise ValueError(f"the --base-url of {host} holds more than an address: put the key into OPENAI_API_KEY")
    return urlunsplit((parts.scheme, parts.netloc, re.sub(r"(/chat/completions|/models)?/*$", "", parts.path), "", ""))


def url_forms(url: str) -> list[str]:
    """What a pasted base URL may stand for, the likeliest first: with /v1, and without."""
    bare = url.removesuffix("/v1")
    return [f"{bare}/v1", bare] if bare != url or not urlsplit(url).path else [url, f"{url}/v1"]


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_local(url: str) -> bool:
    """This machine, a private address, or a name that no public server has: it may do without a key."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))


# ── the fake policy of the dry run ───────────────────────────────────────────────────────────────────────────────────

# For each toy task: a phrase of its statement; how often a reply is right when the prompt shows no program, one, or
# two; the right program; and what makes it wrong, from very to nearly.
_FAKES: list[tuple[str, tuple[float, float, float], str, list[tuple[str, str]]]] = [
    (
        "painted in strokes",
        (0.01, 0.03, 0.16),
        """\
n = int(input())
RESULT, end = 0, -10**10
for a, b in sorted(sorted(map(int, input().split())) for _ in range(n)):
    RESULT += max(0, b - max(a, end))
    end = max(end, b)
print(RESULT)
""",
        [("max(a, end)", "a"), ("max(end, b)", "b")],
    ),
    (
        "brackets of three kinds",
        (0.01, 0.03, 0.16),
        """\
RESULT = []
for place, c in enumerate(input(), 1):
    if c in '([{':
        RESULT.append(')]}'['([{'.index(c)])
    elif c in ')]}' and (not RESULT or RESULT.pop() != c):
        print(place)
        break
else:
    print(-1 if RESULT else 0)
""",
        [("(input(), 1)", "(input())"), ("RESULT.pop() != c", "not RESULT.pop()")],
    ),
    (
        "rotate(items, k)",
        (0.35, 0.5, 0.75),
        """\
from itertools import groupby


def rotate(items, k):
    k %= len(items) or 1
    return items[-k:] + items[:-k]


def runs(text):
    RESULT = [(c, len(list(run))) for c, run in groupby(text)]
    return RESULT
""",
        [
            ("k %= len(items) or 1", "k = -k"),
            ("k %= len(items) or 1\n    ", ""),
            ("groupby(text)", "groupby(sorted(text))"),
        ],
    ),
]


class FakePolicy:
    """Policy's verbs without a model: a function of messages and seed alone, that knows the toy tasks.

    It is mostly wrong on the bare prompt, better when shown a program of its own, better still with a neighbour's."""

    model = "fake"

    def __init__(self, log: Record = lambda row: None) -> None:
        self.state, self._log, self._numbers = State(), log, itertools.count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def probe(self) -> Probe:
        facts = ["a fake policy: its numbers say nothing about any model"]
        return Probe(self.model, served=[self.model], server="none", urls=[], facts=facts, warnings=[])

    async def draw(self, messages: Messages, seed: int) -> Reply:
        row = {"request": next(self._numbers), "seed": seed, "tries": 1}
        reply = self._reply(messages, seed)
        self._log({"event": "sent", **row})
        self._log({"event": "answered", **row, **_tokens(reply), "latency_seconds": 0.0})
        self.state.answered += 1
        return reply

    def _reply(self, messages: Messages, seed: int) -> Reply:
        prompt = "\n".join(message["content"] for message in messages)
        known = [fake for fake in _FAKES if fake[0] in prompt]
        phrase, rates, program, slips = (
            known[0] if known else ("", (0.0, 0.0, 0.0), "print(0)\n", [("0", "1"), ("0", "2")])
        )
        seen = min(prompt.count("`python\n"), 2)  # programs that the prompt shows
        dice = random.Random(f"{seed}|{phrase}|{seen}")  # whatever the words around them
        if dice.random() >= rates[seen]:
            program = program.replace(*slips[max(dice.randrange(len(slips)) for _ in range(1 + seen))])
        program = program.replace("RESULT", dice.choice(["answer", "result", "found", "total", "value"]))
        text = f"Idea {dice.randrange(10**6)}:\n\n```python\n{program}```\n"
        if dice.random() < 0.04:
            text = f"I would begin with the examples ({dice.randrange(10**6)})."
        return Reply(text, "stop", len(prompt) // 4, len(text) // 4)
