"""A server that speaks the OpenAI protocol on loopback, answers as it is told, and remembers what was asked.

    with serving(reply=knows(tasks, (0.1, 0.3, 0.6)), faults=at_random(0.3)) as mock:
        ... mock.url, mock.requests, mock.occupancy(64)

    python tests/support/mock_endpoint.py --port 8099 --tasks toy --right 0.1,0.3,0.6 --fail 0.3 --latency 4,1

A reply is a function of the request (by default of its messages and seed alone), a fault is taken from a script. One
thread with an event loop of its own, the standard library alone, several thousand requests a second. Requests beyond
`slots` queue, first come first served, as real servers do it; a request whose client has gone is worked on all the
same. GET /mock/stats and /mock/requests tell another process what was seen.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path
from typing import Any

PROBE = "Reply with the single word: ready"  # what endpoint.Policy.probe says; a test holds the two together


@dataclass(slots=True)
class Request:
    """One request as it came in, and what was done with it."""

    number: int  # of all requests to this server, from 0
    time: float  # monotonic seconds of its arrival
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    did: str = ""  # "200", "429", "hang", ...; "" while it is open
    started: float | None = None  # monotonic seconds: it got a slot
    ended: float | None = None
    gone: bool = False  # the client had hung up when it ended

    @property
    def messages(self) -> list[dict[str, str]]:
        return list(self.body.get("messages", []))

    @property
    def prompt(self) -> str:
        return "\n".join(message["content"] for message in self.messages)

    @property
    def seed(self) -> int:
        return int(self.body.get("seed", -1))

    @property
    def probe(self) -> bool:
        return bool(self.messages) and self.messages[-1]["content"] == PROBE

    def dice(self, salt: str = "") -> random.Random:
        """Random numbers that depend on messages and seed alone."""
        return random.Random(sha256(json.dumps([self.messages, self.seed, salt]).encode()).digest())


@dataclass(frozen=True)
class Fault:
    """What goes wrong.

    kind: status (an error answer) | hang | drip (a byte now and then, for ever) | close (no answer) | reset | cut (half
    the body, then the end) | cut_chunks | garbage | html | list | null_choices | no_choices | empty_choices |
    null_message | error_in_200 | no_finish | finish_error | late (a right answer, after `seconds`) | last (a right
    answer, then the connection is closed)."""

    kind: str = "status"
    status: int = 500
    code: str | int | None = None
    message: str = "mock fault"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.05  # of a drip's pause, of `late`
    body: dict[str, Any] | None = None  # in place of the usual error object


EVERY_FAULT = (
    *(Fault(status=status) for status in (408, 409, 425, 500, 502, 503, 504)),
    Fault(status=429),
    Fault(status=429, headers={"Retry-After": "0"}),
    Fault(status=503, headers={"retry-after-ms": "20"}),
    *(Fault(kind) for kind in ("close", "reset", "cut", "cut_chunks", "garbage", "html", "list", "last")),
    *(Fault(kind) for kind in ("null_choices", "no_choices", "empty_choices", "null_message", "no_finish")),
    Fault("error_in_200", code=429),
    Fault("error_in_200", code="502"),
    Fault("error_in_200", code=None),
    Fault("finish_error"),
    Fault("late", seconds=0.05),
)
Faults = Callable[[Request], Fault | None]


def at_random(share: float, kinds: Iterable[Fault] = EVERY_FAULT, seed: int = 0) -> Faults:
    """This share of the requests fails, probes too, by the number of the request."""
    kinds = tuple(kinds)

    def pick(request: Request) -> Fault | None:
        dice = random.Random(f"{seed}|{request.number}")
        return dice.choice(kinds) if dice.random() < share else None

    return pick


def in_turn(*faults: Fault | None) -> Faults:
    """The first chat requests (probes apart) meet these, one each; all later ones are answered."""
    left = deque(faults)
    return lambda request: left.popleft() if left and not request.probe else None


def always(fault: Fault, after: int = 0, probes: bool = False) -> Faults:
    """Every chat request fails so, once `after` of them have been answered; probes only if asked."""
    seen = [0]

    def pick(request: Request) -> Fault | None:
        if request.probe:
            return fault if probes else None
        seen[0] += 1
        return fault if seen[0] > after else None

    return pick


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Replies = Callable[[Request], "str | dict[str, Any]"]


def echo(request: Request) -> str:
    """A text that depends on messages and seed alone."""
    return f"```python\nprint({request.dice().randrange(10**9)})\n```"


def knows(references: dict[str, str], right: tuple[float, float, float], nearly: float = 0.6) -> Replies:
    """A policy that knows the right program for statements (a piece of the prompt -> program).

    right: how often it writes it when the prompt shows no program, one, or more. Otherwise it writes one that answers
    wrongly on a share 1 - nearly of the inputs, drawn by messages and seed."""

    def reply(request: Request) -> str:
        dice, prompt = request.dice(), request.prompt
        program = next((code for statement, code in references.items() if statement in prompt), None)
        if program is None:
            return "ready" if request.probe else "I do not know this one."
        if dice.random() >= right[min(2, prompt.count("`python\n"))]:
            program = spoiled(program, 1 - nearly, dice.randrange(10**6))
        return f"Here it is.\n\n```python\n{program.rstrip()}\n# {dice.randrange(10**9)}\n```\n"  # no two are equal

    return reply


def spoiled(program: str, share: float, salt: int) -> str:
    """The program, made to answer wrongly on a share of its inputs: of stdin, or of its functions' arguments."""
    if "def " in program and "input()" not in program and "stdin" not in program:
        return (
            f"{program}\n\nimport zlib as _z\n\n\ndef _spoil(f):\n    def g(*args):\n"
            f"        bad = _z.crc32(repr(({salt}, args)).encode()) % 1000 < {round(1000 * share)}\n"
            "        return None if bad else f(*args)\n    return g\n\n\n"
            "for _name, _f in list(globals().items()):\n"
            "    if callable(_f) and getattr(_f, '__module__', '') == __name__ and not _name.startswith('_'):\n"
            "        globals()[_name] = _spoil(_f)\n"
        )
    return (
        "import io as _io, sys as _s, zlib as _z\n_data = _s.stdin.read()\n"
        f"if _z.crc32(({str(salt)!r} + _data).encode()) % 1000 < {round(1000 * share)}:\n"
        f"    print('wrong')\n    _s.exit()\n_s.stdin = _io.StringIO(_data)\n{program}"
    )


def lognormal(mean: float, sigma: float) -> Callable[[Request], float]:
    """Latencies in seconds with this mean; sigma of the logarithm, so 1 is a long tail. By messages and seed."""
    return lambda request: request.dice("latency").lognormvariate(math.log(mean) - sigma**2 / 2, sigma)


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


class MockEndpoint:
    """The server. Its settings may be changed while it runs."""

    def __init__(
        self,
        reply: Replies = echo,
        faults: Faults = lambda request: None,
        latency: Callable[[Request], float] = lambda request: 0.0,
        *,
        slots: int = 10**9,
        models: tuple[str, ...] = ("mock-model",),
        any_model: bool = False,  # answers to every name, as llama.cpp does
        key: str | None = None,  # asked for
        prefix: str = "/v1",  # chat completions and models are served there, and nowhere else
        lists_models: bool = True,
        refuses: tuple[str, ...] = (),  # fields answered with 400
        context: int | None = None,  # tokens, of four characters, for prompt and reply together
        usage: str = "full",  # full | partly | none
        loading: float = 0.0,  # seconds of 503 after the start
    ) -> None:
        self.reply, self.faults, self.latency = reply, faults, latency
        self.slots, self.models, self.any_model, self.key, self.prefix = slots, models, any_model, key, prefix
        self.lists_models, self.refuses, self.context, self.usage, self.loading = (
            lists_models, refuses, context, usage, loading)  # fmt: skip
        self.says_ready = True  # to a probe, whatever `reply` would say
        self.requests: list[Request] = []
        self.changes: list[tuple[float, int]] = []  # monotonic seconds, slots in use from then on
        self.connections: set[_Connection] = set()
        self.opened = 0  # connections ever
        self.busy = 0
        self._queue: deque[tuple[Request, _Connection]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    @property
    def chats(self) -> list[Request]:
        """The requests for an attempt: chat completions without the probes."""
        return [r for r in list(self.requests) if r.path.endswith("/chat/completions") and not r.probe]

    @property
    def answered(self) -> list[Request]:
        """The attempts' requests that were answered in full."""
        return [request for request in self.chats if request.did == "200"]

    def occupancy(self, slots: int, start: float | None = None, end: float | None = None) -> float:
        """Share of the slots in use, time-weighted, between two monotonic times (first to last change)."""
        changes = list(self.changes)
        start, end = start or changes[0][0], end or changes[-1][0]
        total = 0.0
        for (t, busy), (later, _) in zip(changes, [*changes[1:], (end, 0)], strict=True):
            total += busy * max(0.0, min(later, end) - max(t, start))
        return total / (slots * (end - start))

    def stats(self) -> dict[str, Any]:
        did: dict[str, int] = {}
        for request in list(self.requests):
            did[request.did or "open"] = did.get(request.did or "open", 0) + 1
        return {
            "requests": len(self.requests),
            "chats": len(self.chats),
            "answered": len(self.answered),
            "did": did,
            "busy": self.busy,
            "connections": len(self.connections),
            "opened": self.opened,
            "occupancy": self.occupancy(self.slots) if len(self.changes) > 2 and self.slots < 10**9 else None,
        }

    async def start(self, port: int = 0) -> None:
        self.started = time.monotonic()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=2048)
        self.port = self._server.sockets[0].getsockname()[1]
        self._loop = loop

    def die(self) -> None:
        """From another thread: nobody listens any more."""
        asyncio.run_coroutine_threadsafe(self.stop(), self._loop).result()

    async def stop(self) -> None:
        """Hang up, as a server that dies."""
        self._server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ── one request ──────────────────────────────────────────────────────────────────────────────────────────

    def receive(self, request: Request, connection: _Connection) -> None:
        self.requests.append(request)
        if request.path == "/mock/stats":
            return connection.answer(request, 200, self.stats())
        if request.path == "/mock/requests":
            seen = [[r.time, r.path, r.seed, r.did, r.started, r.ended] for r in self.requests]
            return connection.answer(request, 200, seen)
        if refusal := self._refusal(request):
            return connection.fail(request, refusal)
        if request.path == f"{self.prefix}/models":
            rows = [{"id": name, "object": "model", "owned_by": "mock"} for name in self.models]
            return connection.answer(request, 200, {"object": "list", "data": rows})
        if self.busy >= self.slots:
            return self._queue.append((request, connection))
        self._serve(request, connection)

    def _refusal(self, request: Request) -> Fault | None:
        """What a server finds wrong before it begins to work."""
        paths = [f"{self.prefix}/chat/completions"] + [f"{self.prefix}/models"] * self.lists_models
        if request.path not in paths:
            return Fault(status=404, body={"detail": "Not Found"})
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            sent = request.headers.get("authorization", "nothing")
            return Fault(status=401, code="invalid_api_key", message=f"Incorrect API key provided: {sent}")
        if time.monotonic() < self.started + self.loading:
            return Fault(status=503, code="unavailable_error", message="Loading model")
        if request.path.endswith("/models"):
            return None
        if request.body.get("model") not in self.models and not self.any_model:
            name = request.body.get("model")
            return Fault(status=404, code="model_not_found", message=f"The model `{name}` does not exist.")
        for name in self.refuses:
            if name == "max_tokens" and name in request.body:
                say = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
                return Fault(status=400, code="unsupported_parameter", message=say)
            if name in request.body:
                return Fault(status=400, message=f"Unrecognized request argument supplied: {name}")
        if self.context is not None:
            length = request.body.get("max_tokens") or request.body.get("max_completion_tokens") or 0
            if len(request.prompt) // 4 + length > self.context:
                say = f"This model's maximum context length is {self.context} tokens; your request asks for more."
                return Fault(status=400, code="context_length_exceeded", message=say)
        return None

    def _serve(self, request: Request, connection: _Connection) -> None:
        self.busy += 1
        request.started = time.monotonic()
        self.changes.append((request.started, self.busy))
        fault = self.faults(request)
        if fault is None or fault.kind in ("late", "last"):
            seconds = self.latency(request) + (fault.seconds if fault and fault.kind == "late" else 0.0)
            if seconds > 0:
                asyncio.get_running_loop().call_later(seconds, self._finish, request, connection, fault)
                return
        self._finish(request, connection, fault)

    def _finish(self, request: Request, connection: _Connection, fault: Fault | None) -> None:
        try:
            if fault is None or fault.kind in ("late", "last"):
                close = fault is not None and fault.kind == "last"
                connection.answer(request, 200, self._completion(request), close=close)
            elif fault.kind in ("hang", "drip"):
                task = asyncio.get_running_loop().create_task(connection.torment(request, fault))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                connection.fail(request, fault, self._completion(request))
        finally:
            self.busy -= 1
            self.changes.append((time.monotonic(), self.busy))
        while self._queue and self.busy < self.slots:
            self._serve(*self._queue.popleft())

    def _completion(self, request: Request) -> dict[str, Any]:
        said = "ready" if request.probe and self.says_ready else self.reply(request)
        choice = said if isinstance(said, dict) else {"message": {"role": "assistant", "content": said}}
        choice = {"index": 0, "finish_reason": "stop", **choice}
        prompt, made = len(request.prompt) // 4, len(str(choice["message"].get("content"))) // 4
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}
        if self.usage == "partly":
            usage["completion_tokens"] = None
        body = {"id": f"mock-{request.number}", "object": "chat.completion", "model": request.body.get("model")}
        return {**body, "choices": [choice], **({"usage": usage} if self.usage != "none" else {})}


class _Connection(asyncio.Protocol):
    """One client connection: HTTP/1.1 with keep-alive, a request at a time."""

    def __init__(self, mock: MockEndpoint) -> None:
        self.mock, self.buffer = mock, bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.mock.connections.add(self)
        self.mock.opened += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.mock.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            length = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            body = json.loads(self.buffer[end + 4 : end + 4 + length] or b"{}")
            del self.buffer[: end + 4 + length]
            method, path, _ = first.split(" ", 2)
            number = len(self.mock.requests)
            self.mock.receive(Request(number, time.monotonic(), method, path, headers, body), self)

    def _end(self, request: Request, did: str) -> None:
        request.did, request.ended, request.gone = did, time.monotonic(), self.transport.is_closing()

    def _write(self, status: int, payload: bytes, headers: dict[str, str], kind: str = "application/json") -> None:
        lines = {"Content-Type": kind, "Content-Length": str(len(payload)), "Server": "mock", **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        if not self.transport.is_closing():
            self.transport.write(f"HTTP/1.1 {status} mock\r\n{head}\r\n".encode() + payload)

    def answer(self, request: Request, status: int, body: Any, *, close: bool = False, **headers: str) -> None:
        self._end(request, str(status))
        self._write(status, json.dumps(body).encode(), headers | ({"Connection": "close"} if close else {}))
        if close:
            self.transport.close()

    def fail(self, request: Request, fault: Fault, good: dict[str, Any] | None = None) -> None:
        self._end(request, str(fault.status) if fault.kind == "status" else fault.kind)
        good = good or {}
        broken = {
            "list": [good],
            "null_choices": {**good, "choices": None},
            "no_choices": {name: value for name, value in good.items() if name != "choices"},
            "empty_choices": {**good, "choices": []},
            "null_message": {**good, "choices": [{"index": 0, "finish_reason": "stop", "message": None}]},
            "error_in_200": {"choices": None, "error": {"code": fault.code, "message": fault.message}},
            "no_finish": {**good, "choices": [{**choice, "finish_reason": None} for choice in good.get("choices", [])]},
            "finish_error": {**good, "choices": [{**c, "finish_reason": "error"} for c in good.get("choices", [])]},
        }
        whole = json.dumps(good).encode()
        if fault.kind == "status":
            error = {"message": fault.message, "type": "mock_error", "param": None, "code": fault.code}
            echoed = {f"X-Echo-{name}": value for name, value in request.headers.items() if name == "authorization"}
            payload = json.dumps(fault.body or {"error": error}).encode()
            self._write(fault.status, payload, {**echoed, "Date": formatdate(usegmt=True), **fault.headers})
        elif fault.kind in broken:
            self._write(200, json.dumps(broken[fault.kind]).encode(), fault.headers)
        elif fault.kind == "garbage":
            self._write(200, b'{"choices": [{"message": {"content": "ha', fault.headers)
        elif fault.kind == "html":
            self._write(200, b"<html>Bad gateway</html>", fault.headers, "text/html")
        elif fault.kind == "reset":
            self.transport.abort()
        elif fault.kind == "close":
            self.transport.close()
        elif fault.kind == "cut":
            head = b"HTTP/1.1 200 mock\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            self.transport.write(head % len(whole) + whole[: len(whole) // 2])
            self.transport.close()
        elif fault.kind == "cut_chunks":
            head = b"HTTP/1.1 200 mock\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            self.transport.write(head + b"%x\r\n%s\r\n" % (len(whole), whole))
            self.transport.close()
        else:
            raise AssertionError(f"no fault {fault.kind!r}")

    async def torment(self, request: Request, fault: Fault) -> None:
        """Never a whole answer: silence, or a byte now and then."""
        self._end(request, fault.kind)
        if fault.kind == "drip":
            self.transport.write(
                b"HTTP/1.1 200 mock\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n"
            )
        while not self.transport.is_closing():
            await asyncio.sleep(fault.seconds)
            if fault.kind == "drip":
                self.transport.write(b" ")
        request.gone = True


@contextlib.contextmanager
def serving(*args: Any, **kwargs: Any) -> Iterator[MockEndpoint]:
    """A MockEndpoint in a thread of its own, so that the test may block."""
    mock, ready = MockEndpoint(*args, **kwargs), threading.Event()
    loop = asyncio.new_event_loop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(mock.start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(mock.stop())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield mock
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--slots", type=int, default=10**9)
    parser.add_argument("--latency", default="0,0", metavar="MEAN,SIGMA", help="log-normal, seconds (default: none)")
    parser.add_argument("--fail", type=float, default=0.0, help="share of the requests that fail, in every way")
    parser.add_argument("--tasks", default="toy", help="tasks that it knows the right programs of (default: toy)")
    parser.add_argument("--bundle", type=int, default=5)
    parser.add_argument("--right", default="0.1,0.3,0.6", help="how often it is right: bare, refined, with another's")
    parser.add_argument("--nearly", type=float, default=0.6, help="share of inputs that a wrong one gets right")
    parser.add_argument("--key", help="ask for this key")
    parser.add_argument("--context", type=int, help="tokens")
    a = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tasks import load

    known = {task.statement.rstrip(): task.reference for task in load(a.tasks, bundle=a.bundle) if task.reference}
    mean, sigma = map(float, a.latency.split(","))
    p, q, r = map(float, a.right.split(","))
    mock = MockEndpoint(
        knows(known, (p, q, r), a.nearly),
        at_random(a.fail),
        lognormal(mean, sigma) if mean else lambda request: 0.0,
        slots=a.slots,
        key=a.key,
        context=a.context,
    )

    async def serve() -> None:
        await mock.start(a.port)
        print(f"READY {mock.url} model={mock.models[0]} tasks={len(known)}", flush=True)
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


if __name__ == "__main__":
    main()
