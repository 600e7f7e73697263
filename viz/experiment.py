"""Altered runs, in words: the sentence of the banner above every page, and the names of silenced heads.

This is the one place that reads the edits of a request for the screen: a new kind of edit gets its words here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from model.spec.edits import Silence
from model.spec.request import RunRequest
from model.trace.types import Attention, Site, Step, Trace
from viz import labels
from viz.edit_words import words
from viz.texts import _, _n, clauses

UNALTERED: Mapping[str, Any] = {"silence": "", "edits": "", "off": ""}
"""The fields of `viz.links.View` that alter a run, at their defaults: what the button of the banner sets."""

MOST_NAMED = 3
"""Most heads that the banner names; of more it gives the number."""


def sentence(request: Mapping[str, Any]) -> str:
    """What was altered in a run: "Experiment: 3 heads silenced"; empty where nothing was.

    Args:
        request: the run's RunRequest as JSON values: `Trace.request`.
    """
    edits = RunRequest.edits_in(request)
    heads = [(one.site, head) for one in edits if isinstance(one, Silence) and one.site and one.by == "zeros" for head in one.head]
    if not edits:
        return ""
    if any(not isinstance(one, Silence) or one.by != "zeros" or not (one.site and one.head) for one in edits):
        if len(edits) > MOST_NAMED:
            return _n("Experiment: {count} edit", "Experiment: {count} edits", len(edits), count=len(edits))
        return _("Experiment: {edits}", edits=clauses(map(words, edits)))
    if len(heads) > MOST_NAMED:
        return _("Experiment: {count} heads silenced", count=len(heads))
    return _("Experiment: {heads} silenced", heads=clauses(labels.site(Site.parse(site), head) for site, head in heads))


def by_hand(trace: Trace) -> tuple[Step, ...]:
    """The steps whose tokens the request chose, not the model."""
    return trace.steps[: len(trace.request.get("begin", ()))]


def continued(trace: Trace) -> str:
    """Which token a decode was continued from: "Continued from “dog”"; empty where the model chose all tokens."""
    chosen = by_hand(trace)
    return _("Continued from “{token}”", token=labels.word(chosen[-1].chosen.text)) if chosen else ""


def heads(silence: str) -> str:
    """The names of the heads that `viz.links.View.silence` lists."""
    pairs = (entry.rpartition(":") for entry in silence.split())
    return clauses(labels.site(Site.parse(site), int(head)) for site, _colon, head in pairs)


def silenced(trace: Trace) -> frozenset[tuple[str, int]]:
    """The heads that were silenced in a run: text form of the Site, and head counted from 0."""
    if not (silences := _silences(trace)):
        return frozenset()
    places = ((str(site), head) for site, own in trace.attention.items() for head in range(own.heads))
    return frozenset(place for place in places if _is_silenced(silences, *place))


def head_name(trace: Trace, site: Site, head: int) -> str:
    """The name of a head, with its module in a recorded program. It says so if the head was silenced in this run."""
    return _head_name(trace, site, head, _silences(trace))


def head_names(trace: Trace, attention: Attention) -> list[str]:
    """The names of all heads of a site."""
    silences = _silences(trace)
    return [_head_name(trace, attention.site, head, silences) for head in range(attention.heads)]


def _head_name(trace: Trace, site: Site, head: int, silences: Sequence[Silence]) -> str:
    name = labels.site(site, head) + (f" · {module}" if (module := trace.module(site)) else "")
    return _("{head} (silenced)", head=name) if _is_silenced(silences, str(site), head) else name


def _silences(trace: Trace) -> list[Silence]:
    return [edit for edit in RunRequest.edits_in(trace.request) if isinstance(edit, Silence)]


def _is_silenced(silences: Sequence[Silence], site: str, head: int) -> bool:
    return any(edit.covers(site, head) for edit in silences)
