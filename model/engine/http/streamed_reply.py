"""Streamed reply: the server's side of a progress stream (progress_stream.py)."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from model.engine.http.progress_stream import MEDIA, PARTIAL_HEADER, progress_line, status_line, trace_block
from model.engine.http.protocol import WIRE_VERSION, WIRE_VERSION_HEADER
from model.trace.progress import LISTENER, ProgressFeed

SHARE = 4
"""After a trace that took so long to make and to send, the next one waits this many times as long."""

Answer = Callable[[Request], Awaitable[Response]]

_replies: set[asyncio.Task[Response]] = set()
"""Replies on their way: asyncio itself holds tasks weakly."""


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
