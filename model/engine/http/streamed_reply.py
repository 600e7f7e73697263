"""Streamed reply: the server's side of a progress stream (progress_stream.py)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from model.engine.http.progress_stream import MEDIA, PARTIAL_HEADER, progress_line, status_line, trace_block
from model.engine.http.protocol import WIRE_VERSION, WIRE_VERSION_HEADER
from model.engine.progress import LISTENER, ProgressFeed

Answer = Callable[[Request], Awaitable[Response]]

_replies: set[asyncio.Task[Response]] = set()
"""Replies on their way: asyncio itself holds tasks weakly."""


def with_progress(answer: Answer) -> Answer:
    """Streams the progress to clients that accept it, from the time when a request is admitted: refusals come without a stream."""

    async def answered(request: Request) -> Response:
        if MEDIA not in request.headers.get("accept", ""):
            return await answer(request)
        partial = request.headers.get(PARTIAL_HEADER) == "1"
        feed, admitted = ProgressFeed(0.0 if partial else None), asyncio.Event()
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
        return StreamingResponse(_lines(replying, feed), headers=headers, media_type=MEDIA)

    return answered


async def _lines(replying: asyncio.Task[Response], feed: ProgressFeed) -> AsyncIterator[bytes]:
    """The progress so far, whenever there is more, then the reply. A slow client misses what comes while it reads."""
    seen, sent, traced, ended = 0, None, None, False
    while not ended:
        either: set[asyncio.Future[Any]] = {replying, asyncio.wrap_future(feed.after(seen))}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        ended, seen, newest = replying.done(), feed.count, feed.newest  # read in this order: the last progress is sent, too
        if newest is not None and newest is not sent:
            sent, partial = newest, feed.trace
            if partial is not None and partial is not traced and not ended:
                traced = partial
                yield await asyncio.to_thread(trace_block, partial)
            yield progress_line(newest)
    response = await replying
    yield status_line(response.status_code)
    yield bytes(response.body)
