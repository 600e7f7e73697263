"""Connections that ask nothing: uvicorn itself lets one wait forever, and reads a header without an end."""

import asyncio
from dataclasses import dataclass
from typing import Any

MOST_HEADER_BYTES = 2**16
"""Most bytes of the first line and the headers of a request. The parser takes time that grows with their square."""

REQUEST_SECONDS = 20.0
"""Time in which a connection must send a whole request line with its headers."""

MOST_WAITING = 256
"""Most connections that have sent no request yet. A browser sends its request at once, so only those that mean harm are many."""

TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass
class _Wait:
    """A connection that has asked nothing yet.

    Attributes:
        timer: closes it.
        unread: bytes that came and are no whole request.
    """

    timer: asyncio.TimerHandle
    unread: int = 0


def guard(protocol: Any) -> Any:
    """Lets a protocol of uvicorn end connections that cost something and ask nothing: after REQUEST_SECONDS or MOST_HEADER_BYTES
    without a request, and the oldest of more than MOST_WAITING.

    The class itself is changed: Streamlit starts uvicorn, and has chosen the class before it reads the app.

    Args:
        protocol: one of uvicorn's HTTP protocols: `H11Protocol`, `HttpToolsProtocol`.

    Returns:
        The same class.
    """
    waiting: dict[Any, _Wait] = {}  # the oldest first, of all connections of this process
    # The methods of uvicorn, which those below call and then replace. They all run in the event loop, in one
    # thread, so nothing here needs a lock.
    connection_made, data_received, connection_lost = protocol.connection_made, protocol.data_received, protocol.connection_lost

    def begin(self: Any) -> _Wait:
        if self not in waiting:
            # The one that has waited longest: a real browser has had its time by then.
            if len(waiting) >= MOST_WAITING:
                give_up(next(iter(waiting)))
            waiting[self] = _Wait(asyncio.get_running_loop().call_later(REQUEST_SECONDS, give_up, self))
        return waiting[self]

    def end(self: Any) -> None:
        if (wait := waiting.pop(self, None)) is not None:
            wait.timer.cancel()

    def give_up(self: Any) -> None:
        end(self)
        self.transport.close()

    def made(self: Any, transport: Any) -> None:
        connection_made(self, transport)
        begin(self)

    def received(self: Any, data: bytes) -> None:
        known = self.cycle  # what uvicorn makes for each request
        data_received(self, data)
        if self.cycle is not known or self.transport.is_closing() or self.transport.get_protocol() is not self:
            end(self)  # a request has begun, or another protocol has taken over, such as that of a socket
        # Still no whole request: these bytes belong to a header that has not ended. Bytes of a body do not come
        # here, since then the request has begun and is not yet answered.
        elif known is None or known.response_complete:
            wait = begin(self)
            wait.unread += len(data)
            if wait.unread > MOST_HEADER_BYTES:
                self.transport.write(TOO_LARGE)
                give_up(self)

    def lost(self: Any, error: Exception | None) -> None:
        end(self)
        connection_lost(self, error)

    protocol.connection_made, protocol.data_received, protocol.connection_lost = made, received, lost
    return protocol
