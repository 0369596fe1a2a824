"""Another server on loopback, that answers as odd servers do: each test has a room of its own at it, under its own URL.

    with standing() as server:
        room = server.room(Odd(status=403, body="no"), when=on("poison"))
        ... room.url, room.prompts, room.good

Where mock_endpoint.py is a sound server with faults, this one is a table of answers, byte for byte as they come: error
bodies of vendors, streams that nobody asked for, web pages, bodies without end. A room answers well unless its
condition says otherwise. Standard library alone, one thread for all rooms.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

PROBE = "Reply with the single word: ready"
Good = dict[str, Any]  # the body of a sound answer
When = Callable[[int, str], bool]  # how many chats came before it, apart from probes; the prompt


@dataclass(frozen=True)
class Odd:
    """An answer. how: whole | hang (none at all) | endless (a 200 without end) | dead (the connection is closed)."""

    status: int = 200
    body: str | bytes | dict[str, Any] | Callable[[Good], Any] = ""
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    how: str = "whole"

    def bytes_of(self, good: Good) -> bytes:
        body = self.body(good) if callable(self.body) else self.body
        return body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()


def finish(word: str | None, text: str | None = None) -> Odd:
    """A 200 with this finish_reason, and perhaps with another text."""

    def body(good: Good) -> Good:
        choice = {**good["choices"][0], "finish_reason": word}
        if text is not None:
            choice["message"] = {"role": "assistant", "content": text}
        return {**good, "choices": [choice]}

    return Odd(body=body)


def error(status: int, message: str, code: object = None, **more: Any) -> Odd:
    return Odd(status, {"error": {"message": message, "type": None, "code": code, **more}})


def streamed(good: Good, finish: str | None = "stop", done: bool = True, comment: bool = False) -> str:
    """The answer as server-sent events, a few letters each."""
    text = good["choices"][0]["message"]["content"]
    deltas: list[Good] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[k : k + 7]} for k in range(0, len(text), 7)]
    rows = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "model": good["model"]} for delta in deltas
    ]
    rows += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": good["usage"]}]
    parts = [f"data: {json.dumps(row)}\n\n" for row in rows] + ["data: [DONE]\n\n"] * done
    return (": PROCESSING\n\n" if comment else "") + "".join(parts)


# ── when ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def always(n: int, prompt: str) -> bool:
    return True


def but_probes(n: int, prompt: str) -> bool:
    return prompt != PROBE


def first(most: int) -> When:
    """The first chats."""
    return lambda n, prompt: prompt != PROBE and n < most


def after(least: int) -> When:
    return lambda n, prompt: prompt != PROBE and n >= least


def every(n_th: int) -> When:
    return lambda n, prompt: prompt != PROBE and n % n_th == n_th - 1


def on(word: str) -> When:
    """Chats whose prompt holds a word."""
    return lambda n, prompt: word in prompt


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Room:
    """What one test sees of the server."""

    url: str
    odd: Odd
    when: When
    say: Callable[[str], str]
    model: str = "odd-model"
    more: dict[str, Any] = field(default_factory=dict)  # of the model's row in the list
    prompts: list[str] = field(default_factory=list)  # of the chats, probes apart
    bodies: list[dict[str, Any]] = field(default_factory=list)  # of all chats
    good: int = 0  # chats answered well
    usage: Callable[[str], dict[str, Any] | None] = lambda prompt: {"prompt_tokens": 7, "completion_tokens": 5}

    def answer(self, path: str, body: dict[str, Any]) -> Odd:
        if path.endswith("/models"):
            odd = self.odd if self.when is always else Odd(body={"data": [{"id": self.model, **self.more}]})
            return odd
        prompt = body["messages"][-1]["content"]
        self.bodies.append(body)
        n = len(self.prompts)
        if prompt != PROBE:
            self.prompts.append(prompt)
        text = "ready" if prompt == PROBE else self.say(prompt)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        good: Good = {"object": "chat.completion", "model": self.model, "choices": [choice]}
        if usage := self.usage(prompt):
            good["usage"] = usage
        if self.when(n, prompt):
            return Odd(self.odd.status, self.odd.bytes_of(good), self.odd.kind, self.odd.headers, self.odd.how)
        self.good += prompt != PROBE
        return Odd(body=good)


class OddEndpoint:
    """All rooms, on one port."""

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.port = 0

    def room(
        self, odd: Odd, when: When = but_probes, say: Callable[[str], str] = lambda prompt: prompt, **how: Any
    ) -> Room:
        name = f"r{len(self.rooms)}"
        self.rooms[name] = Room(f"http://127.0.0.1:{self.port}/{name}/v1", odd, when, say, **how)
        return self.rooms[name]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError),
            contextlib.closing(writer),
        ):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = next(
                    (int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length")), 0
                )
                body = json.loads(await reader.readexactly(length) or b"{}")
                path = head.split(" ", 2)[1]
                await self.write(writer, self.rooms[path.split("/")[1]].answer(path, body))

    async def write(self, writer: asyncio.StreamWriter, odd: Odd) -> None:
        payload = odd.bytes_of({})
        length = 2**40 if odd.how == "endless" else len(payload)
        lines = {"Content-Type": odd.kind, "Content-Length": str(length), **odd.headers}
        head = f"HTTP/1.1 {odd.status} odd\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        if odd.how == "hang":
            await asyncio.sleep(3600)
        if odd.how == "dead":
            raise ConnectionError
        writer.write(head.encode() + b"\r\n" + payload)
        await writer.drain()
        while odd.how == "endless":
            writer.write(b" " * 2**20)
            await writer.drain()


@contextlib.contextmanager
def standing() -> Iterator[OddEndpoint]:
    """The server in a thread of its own."""
    server, ready, loop = OddEndpoint(), threading.Event(), asyncio.new_event_loop()

    async def main() -> None:
        server.listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**24)
        server.port = server.listening.sockets[0].getsockname()[1]
        ready.set()

    def run() -> None:
        loop.run_until_complete(main())
        loop.run_forever()
        server.listening.close()
        if left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
