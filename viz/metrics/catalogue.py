"""Descriptions of a site's readings: title, formula, what each is, and what it is not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from model.trace.types import Site
from viz.i18n.translate import N_, translated


@dataclass(frozen=True)
class Reading:
    """One reading, in words.

    Attributes:
        name: one of links.READINGS.
        title: what it is called.
        quantity: what its numbers are, in a word or two: the name of its color scale.
        formula: LaTeX, lines one below the other.
        meaning: one sentence on what it is.
        caution: one sentence on what it is not.
        of_head: whether it is of the selected head; else of all heads together.
    """

    name: str
    title: str
    quantity: str
    formula: tuple[str, ...]
    meaning: str
    caution: str
    of_head: bool


_READINGS = (
    Reading(
        "head",
        N_("This head"),
        N_("weight"),
        (r"A_{ij} = \operatorname{softmax}_j\left(\text{score}_{ij} + \text{mask}_{ij}\right)",),
        N_("The attention weights of the selected head, exactly as computed. Each row sums to 1."),
        N_("They show what the head attended to, but neither what it read there nor why the model chose a word."),
        of_head=True,
    ),
    Reading(
        "mean",
        N_("Mean over heads"),
        N_("mean weight"),
        (r"\bar A_{ij} = \frac{1}{H} \sum_{h=1}^{H} A^h_{ij}",),
        N_("Each cell is the mean over all heads of this layer."),
        N_(
            "No single head has these weights: heads that attend to different words blend into one that seems to "
            "attend to all of them."
        ),
        of_head=False,
    ),
    Reading(
        "max",
        N_("Maximum over heads"),
        N_("largest weight"),
        (r"M_{ij} = \max_{h} A^h_{ij}",),
        N_("Each cell is the largest weight that any head of this layer gives it."),
        N_("A row mixes several heads, so it does not sum to 1, and it does not say how many heads attend there."),
        of_head=False,
    ),
    Reading(
        "value",
        N_("Weight × value"),
        N_("contribution length"),
        (r"N_{ij} = \left\lVert A_{ij}\, v_j\, W_O^{h} \right\rVert_2",),
        N_(
            "The length of the vector that the selected head adds to the residual stream of query i from key j, after "
            "its part of the output projection."
        ),
        N_("It is not a share: the vectors in a row may cancel one another, and the residual stream may be much longer."),
        of_head=True,
    ),
    Reading(
        "writes",
        N_("What it writes"),
        N_("weight"),
        (r"z_t \mathrel{+}= W_t \cdot D\, C\, W_O^{h} A_{ij}\, v_j \quad \text{for each token } t",),
        N_(
            "The weights of the selected head and, for a cell, the five tokens whose logits this value (weight × value, led "
            "through the output matrix and the output layer) raises and lowers most, compared with the mean of all tokens."
        ),
        N_(
            "It is the direct way alone, with each normalization scaled as in this run: later layers also read what the head "
            "wrote, and the word that is chosen is the sum of everything that was written."
        ),
        of_head=True,
    ),
    Reading(
        "rollout",
        N_("Rollout"),
        N_("rollout"),
        (),  # of the site: _ROLLOUT
        N_(
            "The attention of all layers up to this one, multiplied through to the input tokens. Each residual "
            "connection counts as one half."
        ),
        N_(
            "It is not a weight of the model and not a measure of influence: all heads count equally, and values, "
            "feed-forward networks and normalization are ignored."
        ),
        of_head=False,
    ),
    Reading(
        "entropy",
        N_("Entropy of each row"),
        N_("entropy (nats)"),
        (r"H_i = -\sum_j A_{ij} \ln A_{ij}",),
        N_(
            "How widely each row of the selected head spreads its attention: 0 for a single key, ln m for m keys with "
            "equal weights."
        ),
        N_(
            "It does not say how confident the model is, nor how much the head matters: a head that rests on one token "
            "also has low entropy."
        ),
        of_head=True,
    ),
)

_UNPROJECTED: dict[str, Any] = {
    "meaning": N_("The length of the vector that the selected head carries from key j to query i, before the output projection."),
    "formula": (r"N_{ij} = \left\lVert A_{ij}\, v_j \right\rVert_2",),
}
"""Of the reading `value`, where the output projection is not known."""

_ROLLOUT = {
    "encoder": (
        r"R_\ell = \tfrac12\left(\bar A_\ell + I\right) R_{\ell-1}, \quad R_0 = I",
        r"\bar A_\ell = \tfrac1H \textstyle\sum_h A^h_\ell",
    ),
    "self": (
        r"\text{self: } T \leftarrow \tfrac12\left(\bar A + I\right) T, \quad T_0 = I",
        r"\text{cross: } T \leftarrow \tfrac12\, T",
    ),
    "cross": (
        r"\text{self: } S \leftarrow \tfrac12\left(\bar A + I\right) S, \quad S_0 = 0",
        r"\text{cross: } S \leftarrow \tfrac12\left(\bar C R + S\right)",
        r"R: \text{the encoder's rollout}",
    ),
}
_ROLLOUT |= {"memory": _ROLLOUT["encoder"], "unknown": _ROLLOUT["encoder"]}


def catalogue(site: Site, projected: bool = True) -> Mapping[str, Reading]:
    """Every reading in the current language, by the name that links.READINGS has for it.

    Args:
        site: the selected one, which decides the formula of rollout.
        projected: whether values are measured after the output projection.
    """
    changes: dict[str, dict[str, Any]] = {"rollout": {"formula": _ROLLOUT["encoder" if site.stack == "encoder" else site.kind]}}
    changes |= {} if projected else {"value": _UNPROJECTED}
    readings = (replace(reading, **changes.get(reading.name, {})) for reading in _READINGS)
    return {
        reading.name: replace(
            reading,
            title=translated(reading.title),
            quantity=translated(reading.quantity),
            meaning=translated(reading.meaning),
            caution=translated(reading.caution),
        )
        for reading in readings
    }
