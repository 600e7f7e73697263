"""Connections that ask nothing: uvicorn itself lets one wait forever, and reads a header without an end."""

import asyncio
from typing import Any, cast

MOST_HEADER_BYTES = 2**16
"""Most bytes of the first line and the headers of a request. The parser takes time that grows with their square."""

REQUEST_SECONDS = 20.0
"""Time in which a connection must send a whole request line with its headers."""

MOST_WAITING = 256
"""Most connections that have sent no request yet. A browser sends its request at once, so only those that mean harm are many."""

TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def guarded(base: Any) -> Any:
    """A protocol of uvicorn that ends connections which cost something and ask nothing.

    Args:
        base: one of uvicorn's HTTP protocols: `H11Protocol`, `HttpToolsProtocol`.
    """
    waiting: dict[Any, None] = {}  # the oldest first, of all connections of this process

    class GuardedProtocol(base):  # type: ignore[misc]  # a class that is chosen when the server starts
        """Ends a connection after REQUEST_SECONDS or MOST_HEADER_BYTES without a request, and the oldest of too many."""

        def connection_made(self, transport: Any) -> None:
            """Begins to wait for the first request."""
            super().connection_made(transport)
            self.unread, self.timer = 0, cast("asyncio.TimerHandle | None", None)
            self.wait()

        def data_received(self, data: bytes) -> None:
            """Reads what came. A request has begun when uvicorn has made a new cycle for it, or another protocol took over."""
            known = self.cycle
            super().data_received(data)
            if self.cycle is not known or self.transport.is_closing() or self.transport.get_protocol() is not self:
                self.unread = 0
                self.end_wait()
            elif known is None or known.response_complete:
                self.unread += len(data)
                self.wait()
                if self.unread > MOST_HEADER_BYTES:
                    self.transport.write(TOO_LARGE)
                    self.give_up()

        def connection_lost(self, error: Exception | None) -> None:
            """Forgets the connection."""
            self.end_wait()
            super().connection_lost(error)

        def wait(self) -> None:
            """Counts the connection among those that have asked nothing yet."""
            if self.timer is None:
                self.timer = asyncio.get_running_loop().call_later(REQUEST_SECONDS, self.give_up)
                waiting[self] = None
                if len(waiting) > MOST_WAITING:
                    next(iter(waiting)).give_up()

        def end_wait(self) -> None:
            """Takes the connection out of the count."""
            waiting.pop(self, None)
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

        def give_up(self) -> None:
            """Closes the connection."""
            self.end_wait()
            self.transport.close()

    return GuardedProtocol
