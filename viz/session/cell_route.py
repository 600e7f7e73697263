"""What a drawing asks about one cell by itself: `GET /headlight/cell/TOKEN?query=2&key=3`, without a script run.

A page offers a question about the cells of one head under a token that only it knows. The answer is JSON: what the page makes of
the engine's answer, or the sentence of an `error`. The engine call checks length and pace, as always.
"""

import asyncio
import secrets
import threading
from collections.abc import Callable, Hashable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from model.engine import log
from model.engine.api import Engine
from model.engine.scheduling.queue import CallerGone
from model.errors import HeadlightError
from model.requests.questions import Question
from model.requests.sent_text import whole_number
from viz.canvas.wire import transport
from viz.i18n import translate
from viz.i18n.translate import error_message
from viz.session.background_calls import Call
from viz.session.patient_engine import NonBlockingEngine

PATH = f"{transport.address()}/cell"
MOST_OFFERS = 2**12
"""Heads of runs whose cells can be asked about; the page of a forgotten one is loaded again."""

LARGEST = 2**31
"""Largest query and key that a browser may name."""

OfCell: TypeAlias = Callable[[int, int], Question[Any]]
"""Makes the question about a cell of its query and key, counted from 0."""

Said: TypeAlias = Callable[[Any], Mapping[str, Any]]
"""Makes JSON values of the engine's answer."""


@dataclass(eq=False)
class Offer:
    """A question that a page may ask about the cells of one head.

    Attributes:
        engine: answers for the session of the page; its runs never replace those of the page.
        of_cell: makes the question.
        said: makes what is shown.
        context: context variables of the script run, such as its language.
        token: names the offer in the route; 192 random bits.
        newest: the newest call, which ends when a newer one begins: a pointer asks for one cell after the other.
    """

    engine: NonBlockingEngine
    of_cell: OfCell
    said: Said
    context: Context
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    newest: Call | None = None

    def ask(self, query: int, key: int) -> Call:
        """Starts the answer for a cell."""
        question = self.of_cell(query, key)
        if self.newest is not None:
            self.newest.give_up()
        self.newest = Call(question, lambda: self.engine.ask(question), runs=False)
        return self.newest

    def answer(self, call: Call) -> Mapping[str, Any]:
        """The answer of a call that has ended, in words; nothing where a newer one took its place."""
        try:
            return self.context.copy().run(self.said, call.answer())
        except HeadlightError as error:
            return {"error": self.context.copy().run(error_message, error)}
        except CallerGone:
            return {}


_OFFERS: LRUCache[Hashable, Offer] = LRUCache(MOST_OFFERS)
_BY_TOKEN: WeakValueDictionary[str, Offer] = WeakValueDictionary()
_LOCK = threading.Lock()


def offered(engine: Engine, about: Hashable, of_cell: OfCell, said: Said) -> str | None:
    """The address at which a page's drawing may ask; equal for equal pages. None where no visitor's engine answers.

    Args:
        about: what the question is about: equal for equal questions.
    """
    if type(engine) is not NonBlockingEngine:  # a page that waits runs nothing
        return None
    known = engine.session, translate.current(), about
    with _LOCK:
        if (offer := _OFFERS.get(known)) is None:
            for_cells = replace(engine, session=replace(engine.session, id=f"{engine.session.page}/cell"))
            offer = _OFFERS[known] = Offer(for_cells, of_cell, said, copy_context())
            _BY_TOKEN[offer.token] = offer
    return f"{PATH}/{offer.token}"


async def _serve(request: Request) -> Response:
    """Answers about one cell."""
    with _LOCK:
        offer = _BY_TOKEN.get(request.path_params["token"])
    if offer is None:
        return PlainTextResponse("Nobody offers this: reload the page.", 404, headers=_HEADERS)
    query, key = (whole_number(request.query_params.get(name, ""), 0, LARGEST) for name in ("query", "key"))
    if query is None or key is None:
        return PlainTextResponse("A query and a key are needed, two whole numbers.", 400, headers=_HEADERS)
    call = offer.ask(query, key)
    await asyncio.wrap_future(call.done)
    try:
        return JSONResponse(dict(offer.answer(call)), headers=_HEADERS)
    except Exception as error:
        log.incident(error)
        return PlainTextResponse("Something went wrong inside Headlight.", 500, headers=_HEADERS)


_HEADERS = {"Cache-Control": "no-store"}

ROUTE = Route(f"{PATH}/{{token}}", _serve)
"""For `st.App(routes=…)`; must come before the route of parts."""
