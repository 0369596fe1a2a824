"""The client library over aiohttp's sockets: half the CPU a request of its own ones.

The library stays what is spoken to; it hands a request down here once it is put together, and gets an answer's head and
its pieces back. What goes wrong has the library's names, by whether the request can have reached the server.

The library brings such a transport itself (`openai.DefaultAioHttpClient`); it is not used since it calls a connection
that was cut after the request one that was never made, ends in a UnicodeEncodeError where a status line has words that
are not ASCII, and takes no header of more than 8 kB.

Left out: proxies, of which the library knows more kinds, and servers that bend HTTP further than aiohttp takes:
server.py asks those through the library's own sockets.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from httpx2 import AsyncBaseTransport, Request, Response

MOST_HEAD = 1 << 16  # bytes of a line of an answer's head, and so many lines at most
BENT = "aiohttp cannot read the answer"  # begins the words on one that breaks HTTP's rules


def over_aiohttp(
    library: ModuleType, tls: ssl.SSLContext, slots: int, keep: float, connect: float
) -> AsyncBaseTransport:
    """A transport of the library. keep: seconds that an idle connection is held; connect: seconds to make one."""
    import aiohttp
    from multidict import CIMultiDict
    from yarl import URL

    if TYPE_CHECKING:
        from httpx2 import AsyncBaseTransport, AsyncByteStream
    else:
        AsyncBaseTransport, AsyncByteStream = library.AsyncBaseTransport, library.AsyncByteStream

    @contextlib.contextmanager
    def named() -> Iterator[None]:
        """aiohttp's errors by the library's names; raised outside of the except block, as in server.py."""
        try:
            yield
            return
        except aiohttp.ConnectionTimeoutError:
            failure = library.ConnectTimeout(f"no connection within {connect:g} s")
        except aiohttp.ClientConnectorError as why:
            failure = library.ConnectError(str(why.os_error) or type(why.os_error).__name__)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError):
            failure = library.RemoteProtocolError("Server disconnected without sending a response.")
        except aiohttp.ClientPayloadError as why:
            failure = library.RemoteProtocolError(f"the answer ended before its end ({why})")
        except aiohttp.ClientResponseError as why:
            failure = library.RemoteProtocolError(f"{BENT} ({why.message})")
        except (aiohttp.ClientError, UnicodeError, ValueError) as why:
            failure = library.ReadError(f"{type(why).__name__}: {why}")
        raise failure

    class Pieces(AsyncByteStream):
        def __init__(self, answer: ClientResponse) -> None:
            self.answer = answer

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with named():
                async for piece in self.answer.content.iter_any():
                    yield piece

        async def aclose(self) -> None:
            self.answer.release()  # for the next request, or closed where it was not read to its end

    class Sockets(AsyncBaseTransport):
        def __init__(self) -> None:
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=slots, keepalive_timeout=keep, ssl=tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect),
                auto_decompress=False,
                max_line_size=MOST_HEAD,
                max_field_size=MOST_HEAD,
                max_headers=MOST_HEAD,
            )

        async def handle_async_request(self, request: Request) -> Response:
            heads = ((name.decode("ascii"), value.decode("latin-1")) for name, value in request.headers.raw)
            with named():
                answer = await self.session.request(
                    request.method,
                    URL(str(request.url), encoded=True),
                    headers=CIMultiDict(heads),
                    data=request.content or None,
                    allow_redirects=False,
                )
            return library.Response(answer.status, headers=answer.raw_headers, stream=Pieces(answer), request=request)

        async def aclose(self) -> None:
            await self.session.close()

    return Sockets()
