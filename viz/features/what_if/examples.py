"""Experiments that are made in one click: those of a model, with their sentences, and those that fit any run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from model.requests.edits import (
    Allow,
    Edit,
    Embed,
    Forbid,
    NoPositions,
    Patch,
    SetRow,
    Sharpen,
    Silence,
    SkipSublayer,
    Stack,
    SwapLayers,
    SwapPositions,
)
from model.requests.network import TABLELESS
from model.trace.types import Trace, chat_of
from viz.features.what_if.edit_effect import most_looked_at
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session.state import Page

PARK = "Im Park spielt ein alter Mann Gitarre."
DOGS = "Zwei junge Hunde spielen mit einem Ball im Schnee."
DIGITS = "3141592653"
LAST = "decoder.0.2.cross"


@dataclass(frozen=True)
class Experiment:
    """Edits of one sentence.

    Attributes:
        title: what is asked, in a few words.
        edits: in their order.
        text: the sentence; empty: the one at hand.
    """

    title: str
    edits: tuple[Edit, ...]
    text: str = ""

    def fields(self) -> dict[str, Any]:
        """The fields of ViewState that this experiment needs, without its edits."""
        return {"text": self.text, "target": "", "query": -1, "key": -1, "step": -1, "hypothesis": 0} if self.text else {}


def of_model(name: str) -> tuple[Experiment, ...]:
    """The experiments that were made for a model, with sentences of their own."""
    return {
        "multi30k-de-en": _translation,
        "tatoeba-en-zh": _chinese,
        "reverse-digits": _digits,
    }.get(name, lambda: ())()


def _translation() -> tuple[Experiment, ...]:
    return (*_edges(), *_words(), *_positions(), *_other_runs(), *_heads())


def _edges() -> tuple[Experiment, ...]:
    return (
        Experiment(_("Cut one edge: does “an” survive?"), (Forbid(site=LAST, head=(4,), query=(0,), key=("alter",)),), PARK),
        Experiment(_("Three heads that attend to “alter”, silenced"), (Silence(site=LAST, head=(0, 4, 6)),), PARK),
        Experiment(_("The other five heads silenced instead"), (Silence(site=LAST, head=(1, 2, 3, 5, 7)),), PARK),
    )


def _words() -> tuple[Experiment, ...]:
    girl = "Ein Mann repariert das Fahrrad eines kleinen Mädchens."
    fence, bag = "Ein Hund springt über einen Zaun.", "Eine Frau trägt eine Ledertasche."
    child, hat = (
        "Ein Kind trägt einen Hut.",
        (Forbid(stack="encoder", query=("trägt",), key=("hut",)), Forbid(kind="cross", key=("hut",))),
    )
    return (
        Experiment(_("Hide “gitarre” from cross-attention"), (Forbid(kind="cross", key=("gitarre",)),), PARK),
        Experiment(_("Hide “hunde” from cross-attention"), (Forbid(kind="cross", key=("hunde",)),), DOGS),
        Experiment(_("Hide “zaun” from cross-attention"), (Forbid(kind="cross", key=("zaun",)),), fence),
        Experiment(
            _("Hide “schnee” from cross-attention: its neighbor still carries it"), (Forbid(kind="cross", key=("schnee",)),), DOGS
        ),
        Experiment(
            _("Hide “park” from cross-attention: its neighbor still carries it"), (Forbid(kind="cross", key=("park",)),), PARK
        ),
        Experiment(
            _("Hide “mädchens” from cross-attention: its neighbor still carries it"),
            (Forbid(kind="cross", key=("mädchens",)),),
            girl,
        ),
        Experiment(
            _("Hide “##tasche” from cross-attention: its neighbor still carries it"),
            (Forbid(kind="cross", key=("##tasche",)),),
            bag,
        ),
        Experiment(_("Hide “hut” from “trägt” and from cross-attention: “wearing” or “carrying”?"), hat, child),
        Experiment(_("Hide “schnee” from everything"), (Forbid(key=("schnee",)),), DOGS),
        Experiment(_("Hide “park” from everything"), (Forbid(key=("park",)),), PARK),
        Experiment(_("Hide “mädchens” from everything"), (Forbid(key=("mädchens",)),), girl),
        Experiment(_("Hide a piece of a word: “##tasche”"), (Forbid(key=("##tasche",)),), bag),
    )


def _positions() -> tuple[Experiment, ...]:
    cat, push = "Eine Katze jagt einen Hund.", "Ein Mann schiebt eine Frau."
    hats = "Ein Mann mit einem roten Hut sitzt neben einer Frau mit einem blauen Hut."
    return (
        Experiment(_("No positions: who chases whom?"), (NoPositions(stack="encoder"),), cat),
        Experiment(_("A decoder without positions"), (NoPositions(stack="decoder"),), cat),
        Experiment(_("Swap two positions: who pushes whom?"), (SwapPositions(stack="encoder", a="mann", b="frau"),), push),
        Experiment(_("Swap two positions: whose hat is red?"), (SwapPositions(stack="encoder", a="roten", b="blauen"),), hats),
    )


def _other_runs() -> tuple[Experiment, ...]:
    fence = "Ein Hund springt über einen Zaun."
    red, blue = (f"Eine Frau mit einem {colour} Hut sitzt auf einer Bank." for colour in ("roten", "blauen"))

    def taken(at: str, take: str, source: str) -> tuple[Edit, ...]:
        return (Patch(value="hidden", stack="encoder", at=(at,), take=(take,), source=source),)

    return (
        Experiment(_("Put a horse in the dog’s place"), taken("hund", "pferd", "Ein Pferd springt über einen Zaun."), fence),
        Experiment(
            _("Put drums in the guitar’s place"), taken("gitarre", "schlagzeug", "Ein alter Mann spielt im Park Schlagzeug."), PARK
        ),
        Experiment(_("Put the beach in the snow’s place"), taken("schnee", "strand", "Ein Mann sitzt am Strand."), DOGS),
        Experiment(_("Take one color from another sentence"), taken("roten", "blauen", blue), red),
        Experiment(_("Another word’s embedding: a piano"), (Embed(stack="encoder", at="gitarre", word="klavier"),), PARK),
    )


def _heads() -> tuple[Experiment, ...]:
    return (
        Experiment(_("All cross-attention silenced: the bare language model"), (Silence(kind="cross"),), PARK),
        Experiment(_("All decoder self-attention silenced"), (Silence(stack="decoder", kind="self"),), PARK),
        Experiment(_("All encoder self-attention silenced"), (Silence(stack="encoder"),), PARK),
        Experiment(_("Only one head of the last cross-attention"), (Silence(site=LAST, head=(1, 2, 3, 4, 5, 6, 7)),), PARK),
        Experiment(_("Cross-attention attends to everything equally"), (SetRow(kind="cross"),), PARK),
        Experiment(_("Each row of cross-attention attends to one word"), (Sharpen(kind="cross", factor=20.0),), PARK),
        Experiment(_("The last cross-attention skipped"), (SkipSublayer(at=LAST),), PARK),
        Experiment(_("The first two encoder layers swapped"), (SwapLayers(stack="encoder", a=0, b=1),), PARK),
    )


def _chinese() -> tuple[Experiment, ...]:
    tall = "He is taller than me."
    return (
        Experiment(_("Swap two positions: who is taller?"), (SwapPositions(stack="encoder", a="he", b="me"),), tall),
        Experiment(_("No positions in the encoder"), (NoPositions(stack="encoder"),), tall),
    )


def _digits() -> tuple[Experiment, ...]:
    return (
        Experiment(_("Hide one digit"), (Forbid(key=("4",)),), DIGITS),
        Experiment(_("Swap the positions of two digits"), (SwapPositions(stack="encoder", a=1, b=4),), DIGITS),
        Experiment(_("A head of cross-attention silenced"), (Silence(site="decoder.0.0.cross", head=(0,)),), DIGITS),
        Experiment(_("Cross-attention attends to everything equally"), (SetRow(kind="cross"),), DIGITS),
        Experiment(_("The encoder without positions"), (NoPositions(stack="encoder"),), DIGITS),
    )


def of_any(page: Page) -> tuple[Experiment, ...]:
    """Experiments with the sentence at hand, for any model."""
    return tuple(_any(page))


def _any(page: Page) -> Iterator[Experiment]:
    site, trace = str(page.attention.site), page.trace
    yield Experiment(
        _("{head} silenced", head=tokens.site(page.attention.site, page.head)), (Silence(site=site, head=(page.head,)),)
    )
    yield Experiment(_("{place} silenced, all heads", place=tokens.site(page.attention.site)), (Silence(site=site),))
    if (word := striking_word(trace)) is not None:
        kind, text = word
        places = {"cross": _("cross-attention"), "self": _("self-attention")}
        fields = {"word": tokens.word(text), "place": places.get(kind, tokens.kind(page.attention.site.stack, kind))}
        yield Experiment(_("“{word}” hidden from: {place}", **fields), (Forbid(kind=kind, key=(text,)),))
        yield Experiment(_("“{word}” hidden from everything", **fields), (Forbid(key=(text,)),))
    stacks: dict[Stack, str] = {"encoder": _("encoder"), "decoder": _("decoder")}
    for stack, name in stacks.items():
        positions = (page.info.spec.get(stack) or {}).get("positions", "none")
        if positions not in TABLELESS and any(attention.stack == stack for attention in trace.attention):
            yield Experiment(_("No positions: {stack}", stack=name), (NoPositions(stack=stack),))
    if any(attention.mask_causal is not None for attention in trace.attention.values()):
        yield Experiment(_("No causal mask: every token may attend to later ones"), (Allow(stack="decoder", kind="self"),))
    yield Experiment(_("{place} skipped", place=tokens.site(page.attention.site)), (SkipSublayer(at=site),))


def first(page: Page) -> Experiment:
    """The experiment that the page begins with: one of the model's if the sentence fits, else a word is hidden."""
    fitting = [experiment for experiment in of_model(page.info.name) if experiment.text == page.view.text]
    if fitting:
        return fitting[0]
    return next((experiment for experiment in of_any(page) if isinstance(experiment.edits[0], Forbid)), of_any(page)[1])


def striking_word(trace: Trace) -> tuple[Any, str] | None:
    """A word whose hiding should show: the one that the last cross-attention, or the last site, looks at most; with its kind.

    In a conversation it is a word of the newest turn, not one that the chat template wrote. None if there is no such word.
    """
    attention = trace.last_cross()
    strip = trace.tokens[attention.key_tokens]
    places = range(attention.weights.shape[2])
    words = [position for position in places if not strip.special[position] and strip.texts[position].strip().isalnum()]
    if (chat := chat_of(trace)) is not None and len(chat.starts) > 1:
        typed = trace.request["source"]["turns"][-1]["text"]
        first, end = chat.starts[-2:]
        words = [position for position in words if first <= position < end and strip.texts[position].strip() in typed] or words
    if not words:
        return None
    return attention.site.kind, strip.texts[most_looked_at(attention.weights, words)]
