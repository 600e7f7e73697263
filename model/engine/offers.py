"""Models that are not in the list: those of this machine's Hub cache, those of the catalogue, and how they get here."""

import time
from collections.abc import Callable

from model import known_models
from model.checkpoints.hub import cache, fetching
from model.checkpoints.hub.names import HubName, mode, parsed
from model.checkpoints.hub.plans import Plan
from model.engine.api import Meaning, Offer, Offers
from model.engine.scheduling.queue import on_cancel
from model.errors import HubOff, NotFetched, UnknownModel
from model.trace.progress import LISTENER, Progress


def offered() -> Offers:
    """What can be opened or downloaded. Networks are neither loaded nor downloaded for it."""
    fetched = known_models.fetched()
    return Offers(
        mode(),
        tuple(
            Offer(
                name=str(model.name),
                title=model.name.repo,
                about=", ".join(model.refs),
                layers=model.shape.layers,
                heads=model.shape.heads,
                bytes=model.bytes,
                dtype=model.shape.dtype,
            )
            for model in cache.models()
        ),
        tuple(
            Offer(known.name, known.title, known.about, known.layers, known.heads, known.bytes, license=known.license)
            for name, known in known_models.catalogue().items()
            if name not in fetched
        ),
    )


def find(text: str, holds: Callable[[str], bool]) -> Meaning:
    """What a typed text means.

    Args:
        holds: whether a name is one of the list of models.

    Raises:
        UnknownModel: it is no name.
        HeadlightError: the Hub has no such model, or does not give it.
    """
    text = text.strip()
    # From the nearest to the farthest: a model of the list, one of the catalogue, one in the Hub's cache, and only
    # then a question to the Hub, which takes a connection.
    if holds(text):
        return Meaning(model=text)
    if text in known_models.catalogue():
        return Meaning(known=text)
    if (name := parsed(text)) is None:
        raise UnknownModel(asked=text, there=", ".join([*known_models.catalogue(), *cache.repos()]))
    if mode() == "off":
        raise HubOff(model=name.typed)
    if (path := cache.find(name)) is not None:
        return Meaning(model=cache.pinned(str(name), path))
    plan = fetching.plan(name, on_cancel)
    fetched = cache.find(HubName(plan.title, plan.commit))  # under a newer name, or by another branch
    return Meaning(plan=plan) if fetched is None else Meaning(model=plan.name)


def fetch(what: str | Plan) -> str:
    """Downloads a model and returns its name.

    Raises:
        UnknownModel: the catalogue has no such name.
        FetchFailed: it was not downloaded.
        HeadlightError: the Hub does not give it.
    """
    began, listener = time.perf_counter(), LISTENER.get()

    def count(done: int, of: int) -> None:
        if listener is not None and done:
            listener(Progress((), (), of, time.perf_counter() - began, fetched=done))

    # The visitor has seen the plan, with its commit and its bytes: exactly that is downloaded. It may be here by
    # now, where somebody else asked for it, too.
    if isinstance(what, Plan):
        if cache.find(HubName(what.title, what.commit)) is None:
            fetching.fetch(what, count, on_cancel)
        return what.name
    if mode() != "ask":
        raise NotFetched(model=what, near=", ".join(known_models.fetched()) or "–")
    known_models.fetch(what, count, on_cancel)
    return what
