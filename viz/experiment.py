"""Altered runs, in words: the sentence of the banner above every page, and the names of silenced heads.

This is the one place that reads the interventions of a request for the screen: a new kind of intervention gets its words here.
"""

from collections.abc import Mapping
from typing import Any

from model.trace.types import Attention, Site, Trace
from viz import labels
from viz.texts import _

UNALTERED: Mapping[str, Any] = {"silence": ""}
"""The fields of `viz.links.View` that alter a run, at their defaults: what the button of the banner sets."""

MOST_NAMED = 3
"""Most heads that the banner names; of more it gives the number."""


def sentence(request: Mapping[str, Any]) -> str:
    """What was altered in a run: "Experiment: 3 heads silenced"; empty where nothing was.

    Args:
        request: the run's RunRequest as JSON values: `Trace.request`.
    """
    heads = _silenced(request)
    if not heads:
        return ""
    if len(heads) > MOST_NAMED:
        return _("Experiment: {count} heads silenced", count=len(heads))
    return _("Experiment: silenced {heads}", heads="; ".join(labels.site(Site.parse(site), head) for site, head in heads))


def silenced(trace: Trace) -> frozenset[tuple[str, int]]:
    """The heads that were silenced in a run: text form of the Site, and head counted from 0."""
    return frozenset(_silenced(trace.request))


def head_name(trace: Trace, site: Site, head: int) -> str:
    """The name of a head, which says so if the head was silenced in this run."""
    name = labels.site(site, head)
    return _("{head} (silenced)", head=name) if (str(site), head) in _silenced(trace.request) else name


def head_names(trace: Trace, attention: Attention) -> list[str]:
    """The names of all heads of a site."""
    return [head_name(trace, attention.site, head) for head in range(attention.heads)]


def _silenced(request: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(str(one["site"]), int(one["head"])) for one in request.get("interventions", ())]
