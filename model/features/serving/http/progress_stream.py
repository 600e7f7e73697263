"""Progress stream: a reply that says how far its run has come while it is computed. The format and both sides; no torch.

A client asks for it with `Accept: application/x-headlight-progress`. The body is a JSON line for each progress, then the line
`{"status": 200}`, then the reply itself, as it would have come without the stream. If the client sends `X-Headlight-Partial: 1`,
the line `{"trace": 1234}` may come before that of a progress, followed by the 1234 bytes of the trace so far.
"""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, on_cancel
from model.errors import HeadlightError, WireError, phrase
from model.features.serving.http.protocol import WIRE_VERSION, WIRE_VERSION_HEADER
from model.requests.endpoints import pack
from model.requests.validation import read
from model.trace import serialization
from model.trace.progress import LISTENER, PARTIAL, Listener, Progress, ProgressFeed
from model.trace.types import Trace

MEDIA = "application/x-headlight-progress"
PARTIAL_HEADER = "x-headlight-partial"

SHARE = 4
"""After a trace that took so long to make and to send, the next one waits this many times as long."""

Answer = Callable[[Request], Awaitable[Response]]

_replies: set[asyncio.Task[Response]] = set()
"""Replies on their way: asyncio itself holds tasks weakly."""


def is_wanted() -> bool:
    """Whether this thread's caller listens, or may leave before the answer is there."""
    return LISTENER.get() is not None or CANCEL_TOKEN.get() is not None


def progress_line(progress: Progress) -> bytes:
    """The line of one progress."""
    names = ("ids", "texts", "most", "seconds", "measured")
    return pack({name: getattr(progress, name) for name in names}) + b"\n"


def trace_block(so_far: Callable[[], Trace]) -> bytes:
    """The line and the bytes of a trace so far."""
    data = serialization.to_bytes(so_far())
    return pack({"trace": len(data)}) + b"\n" + data


def status_line(status: int) -> bytes:
    """The line before the reply itself."""
    return pack({"status": status}) + b"\n"


def too_long(most: int) -> HeadlightError:
    """The error of a reply that has more bytes than are read into memory."""
    detail = phrase("The engine’s reply has more than {most:,} bytes. No engine of this version sends so much.", most=most)
    return HeadlightError(detail=detail)


def whole(response: httpx.Response, most: int) -> httpx.Response:
    """A streamed response with its reply.

    Raises:
        HeadlightError: the reply has more than `most` bytes.
    """
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > most:
            raise too_long(most)
    headers = {name: value for name, value in response.headers.items() if name not in ("content-encoding", "content-length")}
    return httpx.Response(response.status_code, headers=headers, content=bytes(content))


def post(client: httpx.Client, path: str, data: bytes, headers: dict[str, str], most: int) -> httpx.Response:
    """Posts a request, tells LISTENER its progress, and closes the connection when the caller leaves: the host then ends the run.

    Args:
        most: bytes of the reply, and of a trace of the run so far.

    Raises:
        CallerGone: the caller has left.
        WireError: the stream is of another form.
        HeadlightError: it has more than `most` bytes.
        httpx.TransportError: the connection failed or broke.
    """
    headers = headers | {"accept": MEDIA} | ({PARTIAL_HEADER: "1"} if PARTIAL.get() else {})
    with client.stream("POST", path, content=data, headers=headers) as response:
        try:
            with on_cancel(lambda: _disconnect(response)):
                if response.headers.get("content-type") != MEDIA:
                    return whole(response, most)
                status, reply = _unpack(response.iter_bytes(), LISTENER.get(), most)  # decoded: a proxy may compress
        except httpx.TransportError:
            if _caller_left():
                raise CallerGone from None
            raise
        except httpx.DecodingError as error:
            raise WireError(detail=phrase("its compression is damaged: {error}", error=error)) from error
    if _caller_left():  # after the whole reply had come
        raise CallerGone
    version = response.headers.get(WIRE_VERSION_HEADER, "")
    return httpx.Response(status, headers={WIRE_VERSION_HEADER: version}, content=reply)


def _unpack(chunks: Iterable[bytes], listener: Listener | None, most: int) -> tuple[int, bytes]:
    """The status and the reply of a stream; each progress goes to `listener`, with the trace that came before it.

    Raises:
        WireError: the stream is of another form.
        HeadlightError: a trace or the reply has more than `most` bytes.
    """
    received, status, length, partial = bytearray(), 0, 0, b""
    for chunk in chunks:
        received += chunk
        if len(received) > most:
            raise too_long(most)
        # Chunks end anywhere, in the middle of a line or of a trace. As much as is whole is read, and the rest
        # waits for the next chunk. After the status line, all that comes is the reply.
        while not status and (len(received) >= length if length else b"\n" in received):
            if length:
                partial, received, length = bytes(received[:length]), received[length:], 0
                continue
            line, _, received = received.partition(b"\n")
            values, status, length = _line(line)
            if not status and not length and listener is not None:
                so_far = (lambda data=partial: serialization.from_bytes(data)) if partial else None
                listener(replace(read(Progress, values, "the progress"), so_far=so_far))
                partial = b""
    if not status:
        raise WireError(detail=phrase("the progress stream ended before its reply"))
    return status, bytes(received)


def _line(line: bytes | bytearray) -> tuple[dict[str, Any], int, int]:
    """The values of one line, its status and the length of the trace that follows it; 0: none.

    Raises:
        WireError: the line is of another form.
    """
    try:
        values = json.loads(line)
        values.pop("so_far", None)
        return values, int(values.get("status", 0)), max(0, int(values.get("trace", 0)))
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


def _caller_left() -> bool:
    return (cancel_token := CANCEL_TOKEN.get()) is not None and cancel_token.cancelled


def _disconnect(response: httpx.Response) -> None:
    """Ends a connection that another thread reads from; that thread gets an httpx.TransportError."""
    if (stream := response.extensions.get("network_stream")) is not None:
        with suppress(OSError):  # it has ended already
            # Closing it would not wake the other thread, which waits for bytes in the system; a shutdown does.
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


def with_progress(answer: Answer) -> Answer:
    """Streams the progress to clients that accept it, from the time when a request is admitted: refusals come without a stream."""

    async def answered(request: Request) -> Response:
        if MEDIA not in request.headers.get("accept", ""):
            return await answer(request)
        feed, admitted = ProgressFeed(), asyncio.Event()
        request.state.admitted = admitted

        async def reply() -> Response:
            LISTENER.set(feed.put)  # for this task and the thread that it starts
            return await answer(request)

        # Either the request is refused, which is an ordinary reply with its own status, or it is admitted, and the
        # status 200 of the stream can be sent before anybody knows how the run ends.
        replying, admission = asyncio.create_task(reply()), asyncio.create_task(admitted.wait())
        _replies.add(replying)
        replying.add_done_callback(_replies.discard)
        await asyncio.wait({replying, admission}, return_when=asyncio.FIRST_COMPLETED)
        admission.cancel()
        if replying.done() and feed.newest is None:
            return await replying
        headers = {WIRE_VERSION_HEADER: WIRE_VERSION, "cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(
            _lines(replying, feed, request.headers.get(PARTIAL_HEADER) == "1"), headers=headers, media_type=MEDIA
        )

    return answered


async def _lines(replying: asyncio.Task[Response], feed: ProgressFeed, partial: bool) -> AsyncIterator[bytes]:
    """The progress so far, whenever there is more, then the reply. A slow client misses what comes while it reads.

    Args:
        partial: whether traces of the run so far are sent, too. They take at most a fifth of a core.
    """
    seen, sent, ended = 0, None, False
    while not ended:
        either: set[asyncio.Future[Any]] = {replying, asyncio.wrap_future(feed.after(seen))}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        ended, seen, newest = replying.done(), feed.count, feed.newest  # read in this order: the last progress is sent, too
        if newest is None or newest is sent:
            continue
        sent, began = newest, time.monotonic()
        block = await asyncio.to_thread(trace_block, newest.so_far) if partial and newest.so_far and not ended else b""
        yield block + progress_line(newest)
        if block:
            await asyncio.wait({replying}, timeout=SHARE * (time.monotonic() - began))
    response = await replying
    yield status_line(response.status_code)
    yield bytes(response.body)
