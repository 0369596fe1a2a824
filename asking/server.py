"""One server: its connections, and how it is doing.

Several may serve a run, and each has its own gate (it said 429: nobody asks before it opens), its own rest (it fails:
it is the last choice for a while, and then gets one request at a time until it answers) and its own end (it refuses the
key, has no such model, its quota is used up: it is retired, and the others go on).

Left out: which one is asked (endpoint.py), what an answer means (failed.py, reply.py).
"""

from __future__ import annotations

import asyncio
import importlib
import json
import ssl
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.request import getproxies

from asking.address import is_loopback
from asking.body import Body, body_of
from asking.failed import Failed, Scrub, error_within, judged, one_line, root
from asking.fields import Payload
from asking.sockets import BENT, over_aiohttp
from faults import EndpointFault

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport
    from openai import DefaultAsyncHttpxClient

Backoff = tuple[float, float]  # seconds: the longest first wait, and the longest wait at all
POOL = 16  # slots that share a pool of the library's, since a request costs it time for each connection that it holds
KEEP = 4.0  # seconds that an idle connection is held: common servers hang up after 5, so be first
MOST_BYTES = 32 * 2**20  # of an answer: a reply of a million tokens has 5 MB
MOST_WORDS = 2**16  # bytes of an error


class Wire:
    """What the connections to all servers share: the client library, one TLS context, how to ask."""

    def __init__(self, key: str, scrub: Scrub, request_timeout: float, patience: float, slots: int) -> None:
        import openai  # half a second: only where it is needed

        self.openai, self.key, self.scrub = openai, key, scrub
        self.timeout, self.patience, self.slots = request_timeout, patience, slots
        self.library: ModuleType = importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__)
        self.tls: ssl.SSLContext = self.library.create_ssl_context()  # 20 ms, so not one for every pool

    def pools(self, url: str, plain: bool = False) -> list[DefaultAsyncHttpxClient]:
        """Connections to a server. plain: over the library's own sockets, as through a proxy or without aiohttp."""
        if plain or not find_spec("aiohttp") or (getproxies() and not is_loopback(url)):
            return [self._pool(url, None) for _ in range(0, self.slots, POOL)]
        return [self._pool(url, over_aiohttp(self.library, self.tls, self.slots + 2, KEEP, self._connect))]

    @property
    def _connect(self) -> float:
        """Seconds to make a connection. A whole try has its own time limit."""
        return min(15.0, self.timeout)

    def _pool(self, url: str, sockets: AsyncBaseTransport | None) -> DefaultAsyncHttpxClient:
        limits = type(self.openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=self.slots + 2, max_keepalive_connections=self.slots + 2, keepalive_expiry=KEEP
        )
        return self.openai.DefaultAsyncHttpxClient(
            limits=limits,
            timeout=self.openai.Timeout(None, connect=self._connect),
            verify=self.tls,
            trust_env=not is_loopback(url),  # no proxy leads to this machine
            transport=sockets,
            headers={
                "Authorization": f"Bearer {self.key or 'none'}",
                "Accept": "application/json",
                "User-Agent": "swarm-rescue",
            },
        )


class Server:
    """A base URL, of which the probe finds out the form that is served."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.in_flight = self.sent = self.answered = 0
        self.failures = 0  # in a row
        self.throttled = 0  # in a row
        self.gate_opens = 0.0  # monotonic seconds
        self.resting_until = 0.0
        self.settled = False  # something was answered: the key and the fields are good, so a refusal is the prompt's
        self.retired: EndpointFault | None = None  # it is asked no more in this start
        self.context: int | None = None  # tokens, where it says so
        self.ends: set[str | None] = set()  # unknown words that it ends all its replies with
        self._pools: list[DefaultAsyncHttpxClient] = []

    def open(self, wire: Wire) -> None:
        self._wire = wire
        self._pools = wire.pools(self.url)
        self._left: list[DefaultAsyncHttpxClient] = []  # of another make, asked no more

    async def close(self) -> None:
        for pool in self._pools + self._left:
            await pool.aclose()

    def _bend(self) -> None:
        """It breaks HTTP's rules further than aiohttp takes: ask it as the library itself does."""
        if not self._left:
            self._left, self._pools = self._pools, self._wire.pools(self.url, plain=True)

    # ── whether to ask it ────────────────────────────────────────────────────────────────────────────────────────────

    def reluctance(self, now: float) -> tuple[int, ...]:
        """The smallest is asked."""
        on_trial = bool(self.failures or self.throttled) and self.in_flight > 0
        return self.gate_opens > now, self.resting_until > now, on_trial, self.in_flight, self.sent

    def is_ready(self, now: float) -> bool:
        return max(self.gate_opens, self.resting_until) <= now

    def recovered(self) -> None:
        """It has answered."""
        self.answered += 1
        self.settled, self.failures, self.throttled = True, 0, 0

    def rest(self, now: float, backoff: Backoff) -> None:
        """After a failure: longer, the more there were."""
        self.failures += 1
        self.resting_until = now + min(backoff[1], backoff[0] * 2 ** min(self.failures - 1, 10))

    def close_gate(self, wait: float | None, now: float, backoff: Backoff) -> float:
        """Nobody asks before the gate opens: the seconds until then. Many 429s to what was in flight together are one
        event. wait: seconds that the server asks for."""
        first, longest = backoff
        if wait is not None:
            self.gate_opens = max(self.gate_opens, now + wait)
            self.throttled += 1
        elif now >= self.gate_opens:
            self.gate_opens = now + min(longest, first * 2 ** min(self.throttled, 10))
            self.throttled += 1
        return max(0.0, self.gate_opens - now)

    # ── asking it ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def models(self) -> Body:
        return await self._call("GET", "/models")

    async def complete(self, payload: Payload) -> Body:
        return await self._call("POST", "/chat/completions", payload)

    async def _call(self, method: str, path: str, payload: Payload | None = None) -> Body:
        """The body of a 200, or Failed; raised outside of every except block, since what the library raises holds
        the request with its headers and must not hang on an exception that somebody may print."""
        wire, library = self._wire, self._wire.library
        failure: Failed | None = None
        pool = self._pools[self.sent % len(self._pools)]
        self.sent += 1
        self.in_flight += 1
        try:
            async with asyncio.timeout(wire.timeout), pool.stream(method, self.url + path, json=payload) as answer:
                pieces, room = [], MOST_BYTES if answer.is_success else MOST_WORDS
                async for piece in answer.aiter_bytes():
                    pieces.append(piece)
                    room -= len(piece)
                    if room < 0:
                        break
        except TimeoutError:
            words = f"no complete answer within {wire.timeout:g} s"
            failure = Failed("timed_out", words, possibly_billed=True)
        except (library.HTTPError, library.StreamError, library.InvalidURL, OSError) as error:
            never_sent = type(error).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
            words = wire.scrub(one_line(f"{type(error).__name__}: {root(error)}"))
            if BENT in str(error):
                self._bend()
            failure = Failed("unsent" if never_sent else "again", words, possibly_billed=not never_sent)
        finally:
            self.in_flight -= 1
        if failure is not None:
            raise failure
        raw = b"".join(pieces)  # of one piece that piece
        if not answer.is_success:
            text = raw.decode("utf-8", "replace")
            raise judged(answer.status_code, answer.headers, text, wire.scrub, wire.patience)
        return self._body(raw, answer.headers.get("content-type", ""))

    def _body(self, raw: bytes, kind: str) -> Body:
        scrub, body = self._wire.scrub, Body()
        words = f"an answer of more than {MOST_BYTES >> 20} MB" if len(raw) > MOST_BYTES else ""
        try:
            body = {} if words else body_of(raw, kind)
        except ValueError as why:
            words = str(why)
        if words:
            page = "html" in kind.lower() or raw[:200].lstrip().lower().startswith((b"<!doctype html", b"<html"))
            failure = Failed("again", f"HTTP 200: {one_line(scrub(words))}", 200, possibly_billed=True, page=page)
            raise failure
        if within := error_within(body):
            status, said = within
            raise judged(status, {}, json.dumps({"error": said}), scrub, self._wire.patience)
        return body
