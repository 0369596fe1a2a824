"""The policy: a prompt in, one complete reply out, from any OpenAI-compatible server.

Three outcomes, never two. `Policy.draw` returns a complete reply; or one whose finish_reason is "context_overflow",
where the server refuses the prompt as too long; or it raises an `EndpointFault`. Half an answer, an error inside a
200, a time-out or a used-up quota is never a reply.

- One request a sample. The retries are all here: exponential with full jitter, and never where they cannot help.
  `Retry-After` is a lower bound; after a 429 every request to that server waits at one gate.
- A try has `request_timeout` seconds from its start, however slowly a server drips. When nothing has been answered
  for `give_up_after` seconds, and more than one try shows it, the run ends. Both are monotonic: a clock that jumps
  changes nothing.
- What concerns one prompt ends no run: one that is refused is tried again a few times, one that fails again and again
  while others are answered is given up. Both stay owed.
- What concerns one of several servers ends no run either: that server is retired, and the others go on.
- `probe` sends what `draw` will send, with a tiny prompt, and learns from the server's own words which form of the
  URL, which model and which fields it takes.
- The key stands in the Authorization header and nowhere else: it is taken out of every text that comes from outside.

Left out: streaming (a server that streams all the same is read), n > 1 and batches (usage would not be exact, and a
failure would cost more than one sample).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

from asking.address import base_url, is_local, url_forms
from asking.body import Body
from asking.context import Counts
from asking.events import Event
from asking.failed import Failed, scrubber
from asking.fields import Fields, Messages, Payload, sendable
from asking.reply import Reply as Reply  # handed on: with Probe and EndpointFault, what a caller has to know by name
from asking.reply import Unsure, count, read, tokens
from asking.server import Server, Wire
from asking.told import Probe as Probe  # handed on, with State and Record
from asking.told import Record as Record
from asking.told import State as State
from faults import EndpointFault as EndpointFault
from grading.reasoning import ENDS, OPENS

T = TypeVar("T")

BACKOFF = (0.5, 30.0)  # seconds: the longest first wait, and the longest wait at all
MAX_STRIKES = 20  # failures of one draw while others were being answered; then it is given up
STRIKES_OF_A_TIMEOUT = 5  # a time-out costs the server minutes of work, so few are enough
REFUSALS = 3  # of one draw in one start: the provider behind a gateway may have had a bad moment
REFUSALS_IN_A_ROW = 8  # different prompts refused with nothing answered in between: then it is not the prompts
UNSURE_PROBES = 3  # with the same unknown finish_reason: then it is how this server ends its answers
CONNECT_PATIENCE = 5.0  # seconds that the probe waits for a port that refuses: a typo must not look like a slow start
LATE = 15.0  # seconds that the probe waits for the other servers once one has answered
SILENCE = 1.0  # seconds without an answer to the probe, after which somebody may wonder; then every minute
CONTEXT_NAMES = ("max_model_len", "context_length", "context_window")  # in a list of models
PROBE = "Reply with the single word: ready"
AGAIN = "everything answered is saved; repeat the command to continue"


class Policy:
    """A model behind one or more base URLs, of which the least loaded is asked. An async context manager.

    `log` gets each event: sent, answered, retry, refused, fault, warned; probe and waiting before the first draw. A
    `sent` that no row of the same `request` and `tries` follows may have been billed for nothing.
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
        self._servers = [Server(url) for url in dict.fromkeys(map(base_url, base_urls))]
        self.urls = [server.url for server in self._servers]
        self._key = (os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip()
        self._scrub = scrubber(self._key)
        # Replies and names are data: they are searched only for a key that cannot be an ordinary word.
        self._scrub_data = scrubber(self._key if len(self._key) >= 20 else "")
        self._fields, self._log = fields or Fields(), log
        self._timeout, self._give_up_after, self._concurrency = request_timeout, give_up_after, concurrency
        self.model, self.state = model, State()
        self._served: list[str] = []
        self._implied_tag = False  # replies close a <think> that the server's template had opened
        self._slots = asyncio.Semaphore(concurrency)
        self._counts = Counts(self._fields.max_tokens)
        self._last_answer = 0.0  # monotonic seconds
        self._failing_since: float | None = None  # monotonic seconds; None: the last try brought something
        self._failed_tries = 0  # since then
        self._refused: set[int] = set()  # prompts refused since the last answer
        self.known_refusals = 0  # prompts that were refused in earlier starts: they may be all that is left to ask
        self._fault: EndpointFault | None = None  # it has ended: nothing more is sent
        self._numbers = itertools.count(1)
        self._random = random.Random()  # for jitter alone: no sample depends on it

    async def __aenter__(self) -> Self:
        for server in self._servers:
            if not self._key and not is_local(server.url):
                hint = "set OPENAI_API_KEY, or name a server of your own, like --base-url http://localhost:8000/v1"
                raise EndpointFault("key", f"{server.url} needs a key: {hint}")
        if not (self._key.isascii() and self._key.isprintable()):
            raise EndpointFault("key", "OPENAI_API_KEY holds characters that no key has: set it to a valid one")
        for name in ("openai", "httpx2", "httpcore2", "httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)  # their debug lines hold headers
        wire = Wire(self._key, self._scrub, self._timeout, self._give_up_after, self._concurrency)
        for server in self._servers:
            server.open(wire)
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            await server.close()

    @property
    def _living(self) -> list[Server]:
        return [server for server in self._servers if not server.retired]

    # ── one reply ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def draw(self, messages: Messages, seed: int) -> Reply:
        """One complete reply. seed: 0 to 2^31 - 1, a wish that a server may ignore."""
        messages = [{name: sendable(text) for name, text in message.items()} for message in messages]
        request, tries = next(self._numbers), 0
        against: Counter[str] = Counter()  # what speaks against this prompt: strikes, refusals
        short: set[Server] = set()  # whose context is too short for it
        while True:
            tries += 1
            async with self._slots:
                server = await self._choose(short)
                payload = self._fields.payload(self.model, messages, seed)
                sent: Event = {"event": "sent", "request": request, "seed": seed, "tries": tries}
                self._log(sent)
                answered_before, began = server.answered, time.monotonic()
                self.state.in_flight += 1
                try:
                    reply = self._read(server, await server.complete(payload))
                except Failed as failed:
                    failure = failed
                else:
                    reply = reply._replace(tries=tries, latency_seconds=time.monotonic() - began)
                    return self._answered(server, sent, messages, reply)
                finally:
                    self.state.in_flight -= 1
            if failure.kind == "overflow":
                self._alive()  # a server that says so is
                short.add(server)
                if not short.issuperset(self._living):
                    self._log({**sent, "event": "retry", "status": failure.status, "error": failure.error})
                    continue
                self._log({**sent, "event": "refused", "status": failure.status, "error": failure.error})
                return Reply("", "context_overflow", None, None, "", tries, time.monotonic() - began)
            if server.answered > answered_before and failure.kind != "throttled":
                against["strikes"] += STRIKES_OF_A_TIMEOUT if failure.kind == "timed_out" else 1
            wait = self._after(failure, sent, server, payload, against, began)
            self.state.waiting += 1
            try:
                await asyncio.sleep(wait)
            finally:
                self.state.waiting -= 1

    async def _choose(self, short: set[Server]) -> Server:
        """The server to ask now, of those whose context is not too short. Waits where all have their gates closed;
        raises where the run has ended."""
        while True:
            if self._fault:
                raise EndpointFault(self._fault.kind, str(self._fault))
            now = time.monotonic()
            able = [server for server in self._living if server not in short] or self._living
            server = min(able, key=lambda s: s.reluctance(now))
            left = min(other.gate_opens for other in able) - now
            if left <= 0:
                return server
            self.state.waiting += 1
            try:
                await asyncio.sleep(left + self._random.uniform(0, min(1.0, left / 4)))  # not all at the same moment
            finally:
                self.state.waiting -= 1

    def _read(self, server: Server, body: Body) -> Reply:
        reply = read(body, self._implied_tag, server.ends, self._fields.max_tokens)
        return reply._replace(text=self._scrub_data(reply.text), reasoning=self._scrub_data(reply.reasoning))

    def _answered(self, server: Server, sent: Event, messages: Messages, reply: Reply) -> Reply:
        self.state.answered += 1
        server.recovered()
        self._alive()
        self._refused.clear()
        self._log({**sent, "event": "answered", **tokens(reply), "latency_seconds": round(reply.latency_seconds, 3)})
        if odd := self._counts.odd(server.url, server.context, messages, reply):
            self._log({"event": "warned", "url": server.url, "error": odd})
        return reply

    def _alive(self) -> None:
        self._last_answer, self._failing_since, self._failed_tries = time.monotonic(), None, 0

    # ── when it fails ────────────────────────────────────────────────────────────────────────────────────────────────

    def _after(
        self, failure: Failed, sent: Event, server: Server, payload: Payload, against: Counter[str], began: float
    ) -> float:
        """Seconds to wait before the next try. Raises EndpointFault where there is none."""
        now, wait = time.monotonic(), 0.0
        fault: EndpointFault | None = None
        self.state.last_error = failure.error
        if server.settled:
            if failure.kind == "forbidden":
                failure.kind = "refused"  # the key was good, so it is about the prompt
            elif failure.kind == "absent":
                failure.kind = "again"  # the URL was good: a gateway whose server restarts
        if failure.may_pass:
            fault, wait = self._bide(failure, sent["tries"], server, against["strikes"], began, now)
        elif failure.kind != "refused":
            fault = self._end(failure, server.url)
            if any(other is not server for other in self._living):
                self._retire(server, fault)
                fault = None
        elif server.settled or not self._fields.learn(failure.say, payload):
            against["refusals"] += 1
            self._refused.add(hash(str(payload["messages"])))
            if not server.settled or len(self._refused) >= REFUSALS_IN_A_ROW + self.known_refusals:
                fault = self._end(failure, server.url)
            elif against["refusals"] >= REFUSALS:
                words = f"one prompt was refused {against['refusals']} times ({failure.error})"
                words += f": it stays owed; {AGAIN}, and what is refused then as well is filed as refused"
                fault = EndpointFault("refused", words)
            else:
                wait = max(failure.wait or 0.0, self._backoff(failure, sent["tries"]))
                if len(self._living) > 1:
                    server.rest(now, BACKOFF)  # it may be this server's word alone: another one is asked first
        what: Event = {**sent, "status": failure.status, "error": failure.error}
        what["possibly_billed"] = failure.possibly_billed
        if fault:
            self._fault = self._fault if fault.kind in ("attempt", "refused") else fault
            self._log({**what, "event": "fault", "kind": fault.kind})
            raise fault
        self.state.retries += 1
        self._log({**what, "event": "retry", "wait_seconds": round(wait, 3)})
        return 0.0 if failure.kind == "throttled" else wait  # the gate does the waiting, for all

    def _bide(
        self, failure: Failed, tries: int, server: Server, strikes: int, began: float, now: float
    ) -> tuple[EndpointFault | None, float]:
        """After what may pass: the end of the run or of this prompt, or the seconds to wait."""
        # What timed out has been failing since it was sent, but for as long as others were answered it was alone.
        since = max(began, self._last_answer) if failure.kind == "timed_out" else now
        self._failing_since = since if self._failing_since is None else min(self._failing_since, since)
        self._failed_tries += 1
        wait = 0.0
        if failure.kind == "throttled":
            wait = server.close_gate(failure.wait, now, BACKOFF)
        else:
            server.rest(now, BACKOFF)
        left = max(0.0, self._failing_since + self._give_up_after - now)
        # One request that hangs is no sign of a dead server, nor is a server that fails beside one that does not.
        dead = all(other.failures or other.throttled for other in self._living)
        if not left and self._failed_tries > 1 and dead:
            return self._end(failure, ", ".join(other.url for other in self._living)), 0.0
        if strikes >= MAX_STRIKES:
            words = f"one prompt failed again and again while others were answered (last: {failure.error})"
            return EndpointFault("attempt", f"{words}: it stays owed; {AGAIN}"), 0.0
        if any(other is not server and other.is_ready(now) for other in self._living):
            wait = 0.0  # it is asked instead
        elif failure.kind != "throttled":
            wait = max(failure.wait or 0.0, min(self._backoff(failure, tries), left))
        return None, wait

    def _backoff(self, failure: Failed, tries: int) -> float:
        if "disconnected" in failure.error and tries == 1:
            return 0.0  # most likely an idle connection that the server had closed: resend at once, once
        first, longest = BACKOFF
        return self._random.uniform(0, min(longest, first * 2 ** min(tries - 1, 10)))

    def _end(self, failure: Failed, where: str) -> EndpointFault:
        """The fault that ends a run, or a server: its own words, and the way on."""
        error = failure.error
        serves = f"; it serves {', '.join(self._served[:10])}" if self._served else ""
        key = ("key", f"{where} refuses the key ({error}): set OPENAI_API_KEY to a valid one")
        kind, text = {
            "key": key,
            "forbidden": key,
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
        if failure.status == 403 and failure.kind == "refused":  # of many prompts in a row
            kind, text = key
        return EndpointFault(kind, f"{text}; {AGAIN}")

    def _retire(self, server: Server, fault: EndpointFault) -> None:
        """Ask it no more: the other servers go on."""
        if server.retired is None:
            server.retired = fault
            words = f"{str(fault).removesuffix(f'; {AGAIN}')}; it is left out of this start, the others go on"
            self._log({"event": "warned", "url": server.url, "error": words})

    # ── before anything is spent ─────────────────────────────────────────────────────────────────────────────────────

    async def probe(self) -> Probe:
        """Ask every server for its models and for one word. Raises EndpointFault in the server's own words where none
        can be used; of several, those that cannot are left out with a warning."""
        lists = await self._all(self._list_models)
        for server in lists:
            self._served += [name for row in lists[server] if (name := self._name(row)) not in self._served]
        if self.model is None:
            server, rows = next(iter(lists.items()))
            if len(rows) != 1:
                serves = f"serves {', '.join(map(self._name, rows[:10]))}" if rows else "lists no models"
                mend = "choose one with --model" if rows else "check --base-url, or choose one with --model"
                raise EndpointFault("model", f"{server.url} {serves}: {mend}")
            self.model = self._name(rows[0])
        words = await self._all(self._first_word)
        facts: list[str] = []
        warnings = [f"left out of this start: {server.retired}" for server in self._servers if server.retired]
        makers = []
        for server, (body, reply) in words.items():
            rows = lists[server]
            makers += [self._scrub_data(str(row["owned_by"])) for row in rows[:1] if row.get("owned_by")]
            for listed, more in zip((facts, warnings), self._about(server, rows, body, reply), strict=True):
                listed += more
        facts += [f"the server takes {new} in place of {old}" for old, new in self._fields.renamed.items()]
        return Probe(
            model=self.model,
            served=self._served,
            server=", ".join(dict.fromkeys(makers)) or "unknown",
            urls=[server.url for server in words],
            facts=facts,
            warnings=[*warnings, *self._fields.dropped.values()],
            seconds=round(max(reply.latency_seconds for _, reply in words.values()), 3),
        )

    def _name(self, row: Body) -> str:
        return self._scrub_data(row["id"])

    def _about(self, server: Server, rows: list[Body], body: Body, reply: Reply) -> tuple[list[str], list[str]]:
        """Facts and warnings of a server that answered the probe."""
        facts: list[str] = []
        warnings: list[str] = []
        url, here = server.url, [self._name(row) for row in rows]
        reported = self._scrub_data(str(body.get("model") or self.model))
        if here and self.model not in here:
            warnings.append(f"{url} lists {', '.join(here[:10])}, not {self.model}, and answers all the same, as "
                            f"{reported}: make sure that it is the model you mean")  # fmt: skip
        elif reported != self.model:
            facts.append(f"{url} reports its model as {reported}")
        for row in rows:
            if row["id"] == self.model:
                server.context = next(filter(None, (count(row, name) for name in CONTEXT_NAMES)), None)
        if server.context:
            facts.append(f"{url} has a context of {server.context} tokens")
        if server.ends:
            says = ", ".join(f"finish_reason {word!r}" if word else "no finish_reason" for word in server.ends)
            warnings.append(f"{url} gives {says} with every answer, so one that was cut cannot be told from a whole "
                            "one but by its length")  # fmt: skip
        if self._fields.thinking == "off" and reply.reasoning:
            warnings.append(f"{url} thinks in spite of --thinking off; its reasoning is kept apart from the replies")
        if odd := self._counts.odd(url, server.context, [{"role": "user", "content": PROBE}], reply):
            warnings.append(odd)
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            facts.append(f"{url} does not count tokens: totals will say unknown")
        return facts, warnings

    async def _all(self, ask: Callable[[Server], Awaitable[T]]) -> dict[Server, T]:
        """What each server that still counts has to say, in their order. When one has answered, the others have LATE
        seconds. EndpointFault where none answers."""
        meetings = {asyncio.create_task(self._patiently(ask, server)): server for server in self._living}
        told: dict[Server, T] = {}
        pending = set(meetings)
        fault: EndpointFault | None = None
        try:
            while pending:
                done, pending = await asyncio.wait(
                    pending, timeout=LATE if told else None, return_when=asyncio.FIRST_COMPLETED
                )
                for meeting in done:
                    try:
                        told[meetings[meeting]] = meeting.result()
                    except EndpointFault as why:
                        fault = why
                        if len(self._servers) > 1:
                            self._retire(meetings[meeting], fault)
                for meeting in pending if not done else ():
                    words = f"no answer from {meetings[meeting].url} within {LATE:g} s of another's"
                    self._retire(meetings[meeting], EndpointFault("unreachable", f"{words}: look what it does"))
                if not done:
                    break
        finally:
            for meeting in pending:
                meeting.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        if not told and fault:
            raise fault
        return {server: told[server] for server in meetings.values() if server in told}

    async def _list_models(self, server: Server) -> list[Body]:
        """What is served, at the first form of the URL that has a list; [] where none has."""
        given, page = server.url, None
        for server.url in url_forms(given):
            try:
                body = await server.models()
            except Failed as failure:
                if failure.kind in ("quota", "stop") or (failure.may_pass and failure.status != 200):
                    raise
                if failure.kind in ("key", "forbidden") and self.model is None:
                    raise  # else the key may still be good for all but lists
                page = failure if failure.page else page
                continue
            if isinstance(body.get("data"), list):
                rows = [row for row in body["data"] if isinstance(row, dict)]
                return [row for row in rows if isinstance(row.get("id"), str)]
        server.url = given
        if page and self.model is None:
            raise page
        return []

    async def _first_word(self, server: Server) -> tuple[Body, Reply]:
        """One tiny reply, at the form of the URL that has the list of models, else at the first that has completions.
        Learns, refusal by refusal, which fields to leave out."""
        forms = list(dict.fromkeys([*([server.url] if self._served else []), *url_forms(server.url)]))
        page: Failed | None = None  # a form that answers with a web page may be served in a moment
        unsure: Counter[str | None] = Counter()
        for server.url in forms:
            while True:
                payload = self._fields.payload(self.model, [{"role": "user", "content": PROBE}], 0)
                began = time.monotonic()
                try:
                    body = await server.complete(payload)
                    reply = self._read(server, body)
                except Unsure as failed:
                    failure: Failed = failed
                    unsure[failed.word] += 1
                    if unsure[failed.word] >= UNSURE_PROBES:
                        server.ends.add(failed.word)
                    if unsure.total() <= len(unsure) * UNSURE_PROBES:
                        await asyncio.sleep(BACKOFF[0])
                        continue  # the next one is taken; or this one was cut, and the next is whole
                    raise
                except Failed as failed:
                    failure = failed
                else:
                    content = str(body["choices"][0]["message"].get("content"))
                    self._implied_tag |= bool(ENDS.search(content)) and not OPENS.search(content)
                    server.settled = True
                    self._log({"event": "probe", "url": server.url, **tokens(reply)})
                    return body, reply._replace(latency_seconds=time.monotonic() - began)
                if failure.kind != "refused" or not self._fields.learn(failure.say, payload):
                    break  # else each round learns a field more
            if failure.kind != "absent" and not failure.page:
                break
            page = failure if failure.page else page
        if failure.kind == "absent" and page:
            failure = page
        if failure.kind == "absent":
            failure.error += f"; tried {' and '.join(forms)}"
        raise failure

    async def _patiently(self, ask: Callable[[Server], Awaitable[T]], server: Server) -> T:
        """A server that loads refuses connections for a moment, then answers 503 for minutes."""
        began, tries, last = time.monotonic(), 0, "no answer yet"

        async def wonder() -> None:
            await asyncio.sleep(SILENCE)
            while True:
                waited = round(time.monotonic() - began, 3)
                self._log({"event": "waiting", "url": server.url, "error": last, "wait_seconds": waited})
                await asyncio.sleep(60)

        aloud = asyncio.create_task(wonder())
        aloud.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            while True:
                tries += 1
                try:
                    return await ask(server)
                except Failed as failed:
                    failure = failed
                if not failure.may_pass:
                    raise self._end(failure, server.url)
                brief = failure.kind == "unsent" or failure.page
                patience = min(self._give_up_after, CONNECT_PATIENCE if brief else self._give_up_after)
                left = began + patience - time.monotonic()
                if left <= 0 or (failure.wait or 0.0) > left:
                    what = "what answers there is no such server:" if failure.page else "start the server, or"
                    what = "it does not speak the protocol:" if failure.status == 200 and not failure.page else what
                    words = f"no answer from {server.url} that can be used ({failure.error})"
                    raise EndpointFault("unreachable", f"{words}: {what} check --base-url")
                wait = max(failure.wait or 0.0, min(left, BACKOFF[0] * 2 ** min(tries - 1, 5)))
                last = failure.error
                self._log({"event": "waiting", "url": server.url, "error": last, "wait_seconds": round(wait, 3)})
                await asyncio.sleep(wait)
        finally:
            aloud.cancel()
