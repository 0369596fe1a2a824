"""Both kinds of sockets under the client library: the same answers, and the same words for what goes wrong.

A server on loopback answers each row's bytes as they stand, and hangs up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from asking import server as asking_server
from asking.failed import Failed
from asking.server import Server, Wire

HEAD = b"HTTP/1.1 200 OK\r\n"
BODY = b'{"data": []}'
LENGTH = b"Content-Length: 12\r\n\r\n" + BODY
FINE = {
    "plain": HEAD + LENGTH,
    "HTTP/1.0, ended by the connection": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + BODY[:5] + b"\r\n7\r\n" + BODY[5:] + b"\r\n0\r\n\r\n",
    "a header of 20 kB": HEAD + b"X-A: " + b"x" * 20_000 + b"\r\n" + LENGTH,
    "a thousand headers": HEAD + b"X-A: x\r\n" * 1000 + LENGTH,
    "a header that is not ASCII": HEAD + "X-A: é\r\n".encode("latin-1") + LENGTH,
    "a status that is not ASCII": "HTTP/1.1 200 Größe\r\n".encode("latin-1") + LENGTH,
    "a status without words": b"HTTP/1.1 200\r\n" + LENGTH,
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + HEAD + LENGTH,
    "lines that end in \\n alone": (HEAD + LENGTH).replace(b"\r\n", b"\n"),
}
BENT = {  # what aiohttp does not take, and the library itself does
    "the length twice": HEAD + b"Content-Length: 12\r\n" + LENGTH,
    "a length beside chunks": HEAD
    + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n"
    + BODY
    + b"\r\n0\r\n\r\n",
}
BAD = {
    "nothing": b"",
    "half a body": HEAD + LENGTH[:-5],
    "half a head": HEAD[:9],
    "half a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nc\r\n" + BODY[:5],
    "no chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + BODY,
    "no HTTP": b"hello\r\n\r\n",
    "gzip that is none": HEAD + b"Content-Encoding: gzip\r\n" + LENGTH,
    "a length that is none": HEAD + b"Content-Length: -1\r\n\r\n" + BODY,
}


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)  # most of a test's time


@contextlib.contextmanager
def sockets(kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Under the policy from here on: aiohttp's, or the library's own."""
    if kind == "aiohttp":
        pytest.importorskip("aiohttp")
    else:
        monkeypatch.setattr(asking_server, "find_spec", lambda name: None)
    yield


def asked(raw: bytes, tries: int = 1) -> tuple[Any, int]:
    """What the last try brought from a server that says this, and how many connections it saw."""
    seen = 0

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(raw)
            await writer.drain()
        writer.close()

    async def main() -> Any:
        listening = await asyncio.start_server(say, "127.0.0.1", 0)
        server = Server(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
        server.open(Wire("", str, 10.0, 10.0, 4))
        told: Any = None
        try:
            for _ in range(tries):
                try:
                    told = await server.models()
                except Failed as why:
                    told = why
        finally:
            await server.close()
            listening.close()
        return told

    return asyncio.run(main()), seen


@pytest.mark.parametrize("kind", ["aiohttp", "library"])
@pytest.mark.parametrize("way", FINE)
def test_an_answer_that_is_whole_is_read(way: str, kind: str, monkeypatch: pytest.MonkeyPatch):
    with sockets(kind, monkeypatch):
        assert asked(FINE[way]) == ({"data": []}, 1)


@pytest.mark.parametrize("kind", ["aiohttp", "library"])
@pytest.mark.parametrize("way", BAD)
def test_what_is_broken_is_a_try_that_failed_and_may_have_been_billed(way: str, kind: str, monkeypatch: Any):
    with sockets(kind, monkeypatch):
        told, _ = asked(BAD[way], tries=2)
    assert isinstance(told, Failed) and told.kind == "again" and told.possibly_billed, told
    assert "\n" not in told.error and (way != "nothing" or "disconnected" in told.error)


@pytest.mark.parametrize("way", BENT)
def test_a_server_that_bends_the_rules_is_asked_by_the_library_from_its_second_request_on(way: str):
    told, seen = asked(BENT[way], tries=3)
    assert (told, seen) == ({"data": []}, 3)


@pytest.mark.parametrize("kind", ["aiohttp", "library"])
def test_what_never_left_was_not_billed(kind: str, monkeypatch: pytest.MonkeyPatch):
    async def main() -> Failed:
        server = Server("http://127.0.0.1:1/v1")  # nobody listens there
        server.open(Wire("", str, 10.0, 10.0, 4))
        try:
            await server.models()
        except Failed as why:
            return why
        finally:
            await server.close()
        raise AssertionError

    with sockets(kind, monkeypatch):
        told = asyncio.run(main())
    assert told.kind == "unsent" and not told.possibly_billed and "ConnectError" in told.error, told


@pytest.mark.parametrize("kind", ["aiohttp", "library"])
@pytest.mark.parametrize(("name", "through"), [("HTTP_PROXY", True), ("ALL_PROXY", True), ("NO_PROXY", False)])
def test_a_proxy_of_the_environment_is_asked_unless_it_is_told_not_to(
    name: str, through: bool, kind: str, monkeypatch: pytest.MonkeyPatch
):
    for one in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(one, raising=False)
        monkeypatch.delenv(one.upper(), raising=False)
    heads: list[bytes] = []

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HEAD + LENGTH)
        await writer.drain()
        writer.close()

    async def main() -> Any:
        listening = await asyncio.start_server(say, "127.0.0.1", 0)
        at = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        monkeypatch.setenv("HTTP_PROXY" if name == "NO_PROXY" else name, f"http://{at}")
        if name == "NO_PROXY":
            monkeypatch.setenv("NO_PROXY", "no.such.host.invalid")
        server = Server("http://no.such.host.invalid/v1")
        server.open(Wire("", str, 5.0, 5.0, 4))
        try:
            return await server.models()
        except Failed as why:
            return why
        finally:
            await server.close()
            listening.close()

    with sockets(kind, monkeypatch):
        told = asyncio.run(main())
    if through:
        assert told == {"data": []} and heads[0].startswith(b"GET http://no.such.host.invalid/v1/models"), (told, heads)
    else:
        assert isinstance(told, Failed) and told.kind == "unsent" and not heads
