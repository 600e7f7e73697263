"""Progress stream: a reply that says how far its run has come while it is computed. The format and the client's side; no torch.

A client asks for it with `Accept: application/x-headlight-progress`. The body is a JSON line for each progress, then the line
`{"status": 200}`, then the reply itself, as it would have come without the stream.
"""

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict

import httpx

from model.engine.http.protocol import WIRE_VERSION_HEADER, pack
from model.engine.progress import LISTENER
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, on_cancel
from model.errors import WireError
from model.spec.validation import read
from model.trace.progress import Listener, Progress

MEDIA = "application/x-headlight-progress"


def is_wanted() -> bool:
    """Whether this thread's caller listens, or may leave before the answer is there."""
    return LISTENER.get() is not None or CANCEL_TOKEN.get() is not None


def progress_line(progress: Progress) -> bytes:
    """The line of one progress."""
    fields = asdict(progress)
    if not progress.measured:  # older clients do not know this field
        del fields["measured"]
    return pack(fields) + b"\n"


def status_line(status: int) -> bytes:
    """The line before the reply itself."""
    return pack({"status": status}) + b"\n"


def post(client: httpx.Client, path: str, data: bytes, headers: dict[str, str]) -> httpx.Response:
    """Posts a request, tells LISTENER its progress, and closes the connection when the caller leaves: the host then ends the run.

    Raises:
        CallerGone: the caller has left.
        WireError: the stream is of another form.
        httpx.TransportError: the connection failed or broke.
    """
    with client.stream("POST", path, content=data, headers=headers | {"accept": MEDIA}) as response:
        try:
            with on_cancel(lambda: _disconnect(response)):
                if response.headers.get("content-type") != MEDIA:
                    response.read()
                    return response
                status, reply = _unpack(response.iter_bytes(), LISTENER.get())  # decoded: a proxy may compress
        except httpx.TransportError:
            if _caller_left():
                raise CallerGone from None
            raise
        except httpx.DecodingError as error:
            raise WireError(detail=f"its compression is damaged: {error}") from error
    if _caller_left():  # after the whole reply had come
        raise CallerGone
    version = response.headers.get(WIRE_VERSION_HEADER, "")
    return httpx.Response(status, headers={WIRE_VERSION_HEADER: version}, content=reply)


def _unpack(chunks: Iterable[bytes], listener: Listener | None) -> tuple[int, bytes]:
    """The status and the reply of a stream; each progress goes to `listener`.

    Raises:
        WireError: the stream is of another form.
    """
    received, status = bytearray(), 0
    for chunk in chunks:
        received += chunk
        while not status and b"\n" in received:
            line, _, received = received.partition(b"\n")
            try:
                values = json.loads(line)
                status = int(values.get("status", 0))
            except (ValueError, TypeError, AttributeError) as error:
                raise WireError(detail=f"{type(error).__name__}: {error}") from error
            if not status and listener is not None:
                listener(read(Progress, values, "the progress"))
    if not status:
        raise WireError(detail="the progress stream ended before its reply")
    return status, bytes(received)


def _caller_left() -> bool:
    return (cancel_token := CANCEL_TOKEN.get()) is not None and cancel_token.cancelled


def _disconnect(response: httpx.Response) -> None:
    """Ends a connection that another thread reads from; that thread gets an httpx.TransportError."""
    if (stream := response.extensions.get("network_stream")) is not None:
        with suppress(OSError):  # it has ended already
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
