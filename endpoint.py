"""The policy: a prompt in, one complete reply out, from any OpenAI-compatible server.

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
import itertools
import json
import logging
import os
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeVar

from asking.address import base_url, is_local, is_loopback, url_forms
from asking.events import Event
from asking.failed import Failed, judged, one_line, root, scrubber
from asking.fields import Fields, Messages, Payload, sendable
from asking.reply import Body, count, read, tokens
from asking.reply import Reply as Reply  # handed on: with Probe and EndpointFault, what a caller has to know by name
from faults import EndpointFault as EndpointFault
from grading.reasoning import ENDS, OPENS

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
Record = Callable[[Event], object]

BACKOFF = (0.5, 30.0)  # seconds: the longest first wait, and the longest wait at all
MAX_STRIKES = 20  # failures of one draw while others were being answered; then it is given up
STRIKES_OF_A_TIMEOUT = 5  # a time-out costs the server minutes of work, so few are enough
REFUSALS_IN_A_ROW = 8  # different prompts refused with nothing answered in between: then it is not the prompts
POOL = 16  # slots that share a connection pool, since a request costs a pool time for each connection that it holds
CONNECT_PATIENCE = 5.0  # seconds that the probe waits for a port that refuses: a typo must not look like a slow start
PROBE = "Reply with the single word: ready"
AGAIN = "everything answered is saved; repeat the command to continue"


@dataclass(frozen=True)
class Probe:
    """What is known of the servers before anything is spent; config.json holds it under "server"."""

    model: str
    served: list[str]  # all models that the servers list
    server: str  # who made it, in its own words
    urls: list[str]  # in the form that is served
    facts: list[str]
    warnings: list[str]


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
    clients: list[AsyncOpenAI] = field(default_factory=list)
    in_flight: int = 0
    sent: int = 0
    failures: int = 0  # in a row
    resting_until: float = 0.0  # monotonic seconds; a server that fails is the last choice for a while


class Policy:
    """A model behind one or more base URLs, of which the least loaded is asked. An async context manager.

    `log` gets each event: sent, answered, retry, refused, fault; probe and waiting before the first draw. A `sent` that
    no row of the same `request` and `tries` follows may have been billed for nothing.
    What `log` raises at a `sent` (a budget, a full disk) goes through, and that request is not made.
    Raises ValueError for arguments that cannot be used, EndpointFault for all that the network does.
    """

    def __init__(
        self,
        base_urls: list[str],
        model: str | None,  # None: the one that is served
        fields: Fields | None = None,  # of every request; None: all at their defaults
        *,
        api_key: str | None = None,  # None: OPENAI_API_KEY
        request_timeout: float = 600.0,  # seconds, the server's queue included
        give_up_after: float = 600.0,  # seconds without any answer
        concurrency: int = 64,  # requests in flight
        log: Record = lambda row: None,
    ) -> None:
        if not base_urls:
            raise ValueError("no endpoint: give --base-url, for example --base-url http://localhost:8000/v1")
        self._servers = [_Server(base_url(url)) for url in base_urls]
        self._where = ", ".join(server.url for server in self._servers)
        self._key = (os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip()
        self._scrub = scrubber(self._key)
        # Replies and names are data: they are searched only for a key that cannot be an ordinary word.
        self._scrub_data = scrubber(self._key if len(self._key) >= 20 else "")
        self._fields, self._log = fields or Fields(), log
        self._timeout, self._give_up_after, self._concurrency = request_timeout, give_up_after, concurrency
        self.model, self.state = model, State()
        self._served: list[str] = []
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
        request, tries, strikes = next(self._numbers), 0, 0
        while True:
            tries += 1
            async with self._slots:
                await self._pass_gate()
                sent: Event = {"event": "sent", "request": request, "seed": seed, "tries": tries}
                answered_before, began = self.state.answered, time.monotonic()
                server = min(self._servers, key=lambda s: (s.resting_until > began, s.in_flight, s.sent))
                payload = self._fields.payload(self.model, messages, seed)
                self._log(sent)
                server.sent += 1
                server.in_flight += 1
                self.state.in_flight += 1
                try:
                    reply = self._read(await self._post(server, payload))
                except Failed as failed:
                    failure = failed
                else:
                    server.failures = 0
                    return self._answered(sent, reply._replace(tries=tries, latency_seconds=time.monotonic() - began))
                finally:
                    server.in_flight -= 1
                    self.state.in_flight -= 1
            if failure.kind == "overflow":
                self._failing_since = None  # a server that says so is alive
                self._log({**sent, "event": "refused", "status": failure.status, "error": failure.error})
                return Reply("", "context_overflow", None, None, "", tries, time.monotonic() - began)
            if self.state.answered > answered_before and failure.kind != "throttled":
                strikes += STRIKES_OF_A_TIMEOUT if failure.kind == "timed_out" else 1
            wait = self._after(failure, sent, server, payload, strikes, began)
            self.state.waiting += 1
            try:
                await asyncio.sleep(wait)
            finally:
                self.state.waiting -= 1

    async def _post(self, server: _Server, payload: Payload) -> Body:
        client = server.clients[server.sent % len(server.clients)]
        # As bytes: every server's own shape comes through, and nothing is spent on types.
        return await self._call(client.post(f"{server.url}/chat/completions", cast_to=bytes, body=payload))

    async def _call(self, sending: Awaitable[bytes]) -> Body:
        """The body of a 200, or Failed; raised outside of every except block, since what the library raises holds
        the request with its headers and must not hang on an exception that somebody may print."""
        from openai import APIConnectionError, APIStatusError

        body: Body = {}
        failure: Failed | None = None
        try:
            async with asyncio.timeout(self._timeout):
                body = json.loads(await sending)
            if not isinstance(body, dict):
                raise ValueError
        except TimeoutError:
            words = f"no complete answer within {self._timeout:g} s"
            failure = Failed("timed_out", words, possibly_billed=True)
        except APIStatusError as error:
            answer = error.response
            failure = judged(answer.status_code, answer.headers, answer.text, self._scrub, self._give_up_after)
        except APIConnectionError as error:
            cause = error.__cause__ or error
            never_sent = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
            words = self._scrub(one_line(f"{type(cause).__name__}: {root(cause)}"))
            failure = Failed("unsent" if never_sent else "again", words, possibly_billed=not never_sent)
        except (ValueError, RecursionError):
            failure = Failed("again", "HTTP 200: the body is not a JSON object", 200, possibly_billed=True)
        if failure is None and (error_in_200 := body.get("error")):
            said = error_in_200 if isinstance(error_in_200, dict) else {}
            code = str(said.get("code") or said.get("status"))
            status = int(code) if re.fullmatch("[45][0-9][0-9]", code) else 502
            failure = judged(status, {}, json.dumps(body), self._scrub, self._give_up_after)
        if failure is not None:
            raise failure
        return body

    def _read(self, body: Body) -> Reply:
        reply = read(body, self._implied_tag)
        return reply._replace(text=self._scrub_data(reply.text), reasoning=self._scrub_data(reply.reasoning))

    def _answered(self, sent: Event, reply: Reply) -> Reply:
        self.state.answered += 1
        self._settled, self._failing_since = True, None
        self._throttled_in_a_row = 0
        self._refused.clear()
        self._log({**sent, "event": "answered", **tokens(reply), "latency_seconds": round(reply.latency_seconds, 3)})
        return reply

    # ── when it fails ────────────────────────────────────────────────────────────────────────────────────────────────

    def _after(
        self, failure: Failed, sent: Event, server: _Server, payload: Payload, strikes: int, began: float
    ) -> float:
        """Seconds to wait before the next try. Raises EndpointFault where there is none."""
        now, wait = time.monotonic(), 0.0
        fault: EndpointFault | None = None
        self.state.last_error = failure.error
        if failure.may_pass:
            # What timed out has been failing since it was sent; anything else fails now.
            since = began if failure.kind == "timed_out" else now
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
                wait = max(failure.wait or 0.0, min(self._backoff(failure, sent["tries"]), left))
                server.failures += 1
                server.resting_until = now + min(BACKOFF[1], BACKOFF[0] * 2 ** min(server.failures - 1, 10))
        elif failure.kind != "refused":
            fault = self._end(failure)
        elif self._settled or not self._fields.learn(failure.say, payload):
            self._refused.add(hash(str(payload["messages"])))
            if self._settled and len(self._refused) < REFUSALS_IN_A_ROW:
                fault = EndpointFault("attempt", f"one prompt was refused ({failure.error}): it stays owed; {AGAIN}")
            else:
                fault = self._end(failure)
        what: Event = {**sent, "status": failure.status, "error": failure.error}
        what["possibly_billed"] = failure.possibly_billed
        if fault:
            self._fault = self._fault if fault.kind == "attempt" else fault
            self._log({**what, "event": "fault", "kind": fault.kind})
            raise fault
        self.state.retries += 1
        self._log({**what, "event": "retry", "wait_seconds": round(wait, 3)})
        return 0.0 if failure.kind == "throttled" else wait  # the gate does the waiting, for all

    def _backoff(self, failure: Failed, tries: int) -> float:
        if "disconnected" in failure.error and tries == 1:
            return 0.0  # most likely an idle connection that the server had closed: resend at once, once
        first, longest = BACKOFF
        return self._random.uniform(0, min(longest, first * 2 ** min(tries - 1, 10)))

    def _close_gate(self, failure: Failed, now: float) -> float:
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

    def _end(self, failure: Failed) -> EndpointFault:
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
            self._log({"event": "probe", "url": url, **tokens(reply)})
            reported = self._scrub_data(str(body.get("model") or self.model))
            if here and self.model not in here:
                warnings.append(f"{url} lists {', '.join(here[:10])}, not {self.model}, and answers all the same, as "
                                f"{reported}: make sure that it is the model you mean")  # fmt: skip
            elif reported != self.model:
                facts.append(f"{url} reports its model as {reported}")
            for row in rows:
                if row["id"] == self.model and count(row, "max_model_len"):
                    facts.append(f"{url} has a context of {row['max_model_len']} tokens")
            if self._fields.thinking == "off" and reply.reasoning:
                warnings.append(
                    f"{url} thinks in spite of --thinking off; its reasoning is kept apart from the replies"
                )
            if reply.prompt_tokens is None or reply.completion_tokens is None:
                facts.append(f"{url} does not count tokens: totals will say unknown")
        facts += [f"the server takes {new} in place of {old}" for old, new in self._fields.renamed.items()]
        return Probe(
            model=self.model or "",
            served=self._served,
            server=", ".join(dict.fromkeys(makers)) or "unknown",
            urls=[server.url for server in self._servers],
            facts=facts,
            warnings=[*warnings, *self._fields.dropped.values()],
        )

    async def _list_models(self, server: _Server) -> list[Body]:
        """What is served, at the first form of the URL that has a list; [] where none has."""
        given = server.url
        for server.url in url_forms(given):
            try:
                body = await self._call(server.clients[0].get(f"{server.url}/models", cast_to=bytes))
            except Failed as failure:
                if failure.kind in ("quota", "stop") or (failure.may_pass and failure.status != 200):
                    raise
                if failure.kind == "key" and self.model is None:
                    raise  # else the key may still be good for all but lists
                continue
            if isinstance(body.get("data"), list):
                rows = [row for row in body["data"] if isinstance(row, dict)]
                return [row for row in rows if isinstance(row.get("id"), str)]
        server.url = given
        return []

    async def _first_word(self, server: _Server) -> tuple[Body, Reply]:
        """One tiny reply, at the form of the URL that has the list of models, else at the first that has completions.
        Learns, refusal by refusal, which fields to leave out."""
        forms = list(dict.fromkeys([*([server.url] if self._served else []), *url_forms(server.url)]))
        for server.url in forms:
            while True:
                payload = self._fields.payload(self.model, [{"role": "user", "content": PROBE}], 0)
                try:
                    body = await self._post(server, payload)
                    reply = self._read(body)
                except Failed as failed:
                    failure = failed
                else:
                    content = str(body["choices"][0]["message"].get("content"))
                    self._implied_tag |= bool(ENDS.search(content)) and not OPENS.search(content)
                    self._settled = True
                    return body, reply
                if failure.kind != "refused" or not self._fields.learn(failure.say, payload):
                    break  # else each round learns a field more
            if failure.kind != "absent":
                break
        if failure.kind == "absent":
            failure.error += f"; tried {' and '.join(forms)}"
        raise failure

    async def _patiently(self, ask: Callable[[_Server], Awaitable[T]], server: _Server) -> T:
        """A server that loads refuses connections for a moment, then answers 503 for minutes."""
        began, tries = time.monotonic(), 0
        while True:
            tries += 1
            try:
                return await ask(server)
            except Failed as failed:
                failure = failed
            if not failure.may_pass:
                raise self._end(failure)
            patience = min(self._give_up_after, CONNECT_PATIENCE if failure.kind == "unsent" else self._give_up_after)
            left = began + patience - time.monotonic()
            if left <= 0 or (failure.wait or 0.0) > left:
                words = f"no answer from {server.url} ({failure.error})"
                raise EndpointFault("unreachable", f"{words}: start the server, or check --base-url")
            wait = max(failure.wait or 0.0, min(left, BACKOFF[0] * 2 ** min(tries - 1, 5)))
            self._log({"event": "waiting", "error": failure.error, "wait_seconds": round(wait, 3)})
            await asyncio.sleep(wait)
