"""Where each head has most of its weight, by measures that sort, filter and find a thousand heads of one run.

Computed with the overview, which reads each weight anyway. A role of a survey is something else: it is judged over many texts.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from model.trace.types import Array
from viz.i18n.translate import N_

READINGS = ("first", "largest", "distance", "previous", "same", "next")
"""The measures that are computed for it."""

KINDS = ("previous", "same", "next", "first")
"""Measures that name a kind: a head is of the first one of these that has more than MOST of its weight."""

TITLES = (
    N_("mostly on the previous token"),
    N_("mostly on the own token"),
    N_("mostly on the next token"),
    N_("mostly on the first token"),
    N_("other heads"),
)
"""KINDS in words, and last the heads of no kind."""

ORDERS: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "first": (N_("least on the first token"), False),
        "largest": (N_("sharpest"), True),
        "distance": (N_("farthest"), True),
        "previous": (N_("most on the previous token"), True),
        "same": (N_("most on the own token"), True),
    }
)
"""How heads can be sorted: by name of a measure its direction in words, and whether the largest come first."""

MOST = 0.5
"""Share of a head's weight above which it is called after where that lies."""


def kinds(found: Array) -> Array:
    """The kind of each head: [head], the place of the first one of KINDS that fits; len(KINDS) where none does.

    Args:
        found: [measure, head], the measures READINGS of the heads.
    """
    fits = np.nan_to_num(found[[READINGS.index(name) for name in KINDS]]) > MOST  # [kind, head]
    return np.asarray(np.where(fits.any(axis=0), fits.argmax(axis=0), len(KINDS)))


def heads_at_first(shares: Array) -> float:
    """The share of a run's heads that have more than MOST of their weight on the first token; 0 without a head that has a share.

    Args:
        shares: [head], the measure `first` of all heads of the run.
    """
    finite = shares[np.isfinite(shares)]
    return float((finite > MOST).mean()) if len(finite) else 0.0
