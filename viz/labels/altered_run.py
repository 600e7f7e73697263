"""Altered runs, in words: the sentence of the banner above every page.

This is the one place that reads the edits of a request for the screen: a new kind of edit gets its words here.
"""

from collections.abc import Mapping
from typing import Any

from model.spec.edits import Silence
from model.spec.request import RunRequest
from model.trace.types import Site, Trace
from viz.i18n.translate import _, _n, join_clauses
from viz.labels import tokens
from viz.labels.edits import words

UNALTERED: Mapping[str, Any] = {"silence": "", "edits": "", "off": ""}
"""The fields of `viz.url.view_state.ViewState` that alter a run, at their defaults: what the button of the banner sets."""

MOST_NAMED = 3
"""Most heads that the banner names; of more it gives the number."""


def sentence(request: Mapping[str, Any]) -> str:
    """The sentence on what was altered in a run: "Experiment: 3 heads silenced"; empty where nothing was.

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
        return _("Experiment: {edits}", edits=join_clauses(map(words, edits)))
    if len(heads) > MOST_NAMED:
        return _("Experiment: heads silenced: {count}", count=len(heads))
    return _("Experiment: silenced: {heads}", heads=join_clauses(tokens.site(Site.parse(site), head) for site, head in heads))


def continued(trace: Trace) -> str:
    """Which token a decode was continued from: "Continued from “dog”"; empty where the model chose all tokens."""
    chosen = tokens.by_hand(trace)
    return _("Continued from “{token}”", token=tokens.word(chosen[-1].chosen.text)) if chosen else ""


def heads(silence: str) -> str:
    """The names of the heads that `viz.url.view_state.ViewState.silence` lists."""
    pairs = (entry.rpartition(":") for entry in silence.split())
    return join_clauses(tokens.site(Site.parse(site), int(head)) for site, _colon, head in pairs)
