"""Frames: the answer to a question of a sentence box. While a run decodes, each frame holds the scenes of its trace so far.

A frame is its length, a uint32 (little endian), and a scene (viz/canvas/wire/packing.py) whose blobs are scenes of drawings. Its
header says the sentence (`text`), whether it is the last (`final`), what is written (`progress`), or an `error` in words.
"""

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from model.engine import log
from model.engine.scheduling.queue import CallerGone
from model.errors import HeadlightError, Superseded
from model.trace.progress import Progress
from model.trace.types import Trace
from viz import prepare
from viz.calls import Call
from viz.canvas.wire.packing import pack
from viz.links import View
from viz.live.changes import Question
from viz.live.sessions import LiveSession, Situation
from viz.texts import _, number, sentence

LOOK_SECONDS = 0.06
"""After this time it is looked at how fast a run writes. One that has written fewer than two tokens will take long."""

FIRST_SECONDS = 0.4
"""Another run that takes no longer is drawn once, at its end: making a frame takes processor time from the run."""

ENCODER_SECONDS = 0.25
"""The encoder's maps are drawn alone if the first token takes longer: the other maps leave the picture meanwhile."""

SHARE = 4
"""After a frame that took so long to make, the next one waits this many times as long: a fifth of a core for all sessions."""


class FrameBudget:
    """The processor time of frames of runs that still decode, of all sessions together.

    Attributes:
        due: time on the monotonic clock at which the next frame may be made.
    """

    def __init__(self) -> None:
        self.due = 0.0

    def begin(self) -> float:
        """Notes that a frame is being made, and returns the time; no other is made meanwhile."""
        began = time.monotonic()
        self.due = began + FIRST_SECONDS  # if the browser never reads it, others go on then
        return began

    def end(self, began: float) -> float:
        """Notes that the frame is made. Returns the time at which the next one may be."""
        self.due = time.monotonic() + SHARE * (time.monotonic() - began)
        return self.due


BUDGET = FrameBudget()
"""That of this process."""

_log = logging.getLogger(log.NAME)


async def frames(live: LiveSession, situation: Situation, question: Question, gone: Awaitable[None]) -> AsyncIterator[bytes]:
    """The frames of one question, until its run has ended or a newer question of the session replaces it.

    Args:
        question: what is to be drawn.
        gone: done when the browser has left.
    """
    call, left = live.ask(situation, situation.of(question)), asyncio.ensure_future(gone)
    try:
        async for progress in _progress(call, left):
            with suppress(HeadlightError):  # what another host sent so far is damaged: the end of the run says so
                yield await asyncio.to_thread(_partial, *live.now(situation, question), progress)
        if not left.done():
            yield await asyncio.to_thread(_last, *live.now(situation, question), call)
    finally:
        left.cancel()
        call.give_up()  # the browser has the answer, or has left


async def _progress(call: Call, left: "asyncio.Future[None]") -> AsyncIterator[Progress]:
    """How far a run has come that still decodes; what comes while a frame is made is left out, but for the newest."""
    began, seen = time.monotonic(), 0
    done = asyncio.wrap_future(call.done)

    async def wait(until: float, *others: "asyncio.Future[None]") -> None:
        seconds = None if until == math.inf else max(0.0, until - time.monotonic())
        await asyncio.wait({done, left, *others}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    await wait(due := began + LOOK_SECONDS)
    if call.feed.newest is not None and call.feed.newest.done > 1:
        due = began + FIRST_SECONDS
    while not (done.done() or left.done()):
        count, progress, now = call.feed.count, call.feed.newest, time.monotonic()
        if now < (due := max(due, BUDGET.due)):
            await wait(due)  # nobody listens until then: each token would wake this thread
        elif count == seen or progress is None or progress.so_far is None:
            await wait(math.inf, asyncio.wrap_future(call.feed.after(count)))
        elif not progress.done and now < began + ENCODER_SECONDS:
            await wait(began + ENCODER_SECONDS, asyncio.wrap_future(call.feed.after(count)))
        else:
            seen, made = count, BUDGET.begin()
            yield progress
            due = BUDGET.end(made)


def _partial(situation: Situation, view: View, progress: Progress) -> bytes:
    """A frame of a run that still decodes."""
    assert progress.so_far is not None
    written = {"written": progress.done, "most": progress.most, "rate": situation.context.copy().run(number, progress.rate, ".1f")}
    return _frame(situation, view, progress.so_far(), written)


def _last(situation: Situation, view: View, call: Call) -> bytes:
    """The last frame: the finished run, or why there is none. A stopped run ends with what it had written."""
    try:
        return _frame(situation, view, call.answer(), None)
    except (CallerGone, Superseded):
        return _packed({"text": view.text, "final": True, "stopped": True})
    except HeadlightError as error:
        return _packed({"text": view.text, "final": True, "error": situation.context.copy().run(sentence, error)})
    except Exception as error:
        incident = secrets.token_hex(3)
        _log.error({"event": "incident", "incident": incident}, exc_info=error)
        said = situation.context.copy().run(_failure, incident)
        return _packed({"text": view.text, "final": True, "error": said})


def _failure(incident: str) -> str:
    return _("Something went wrong inside Headlight (incident {incident}; details are in the server log).", incident=incident)


def _frame(situation: Situation, view: View, trace: Trace, written: Mapping[str, Any] | None) -> bytes:
    header = {"text": view.text, "final": written is None, "progress": written}
    if said := situation.context.copy().run(prepare.undrawable, trace):
        return _packed(header | {"error": said})
    return _packed(header, situation.scenes(view, trace, partial=written is not None))


def _packed(header: Mapping[str, Any], scenes: Mapping[str, bytes] | None = None) -> bytes:
    data = pack(header, {name: np.frombuffer(scene, np.uint8) for name, scene in (scenes or {}).items()})
    return len(data).to_bytes(4, "little") + data
