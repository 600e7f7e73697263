"""Descriptions of a site's readings: title, formula, what each is, and what it is not."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.trace.types import Site
from viz.texts import _


@dataclass(frozen=True)
class Reading:
    """One reading, in words.

    Attributes:
        name: one of links.READINGS.
        title: what it is called.
        quantity: what its numbers are, in a word or two: the name of its colour scale.
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


def catalogue(site: Site, projected: bool = True) -> Mapping[str, Reading]:
    """Every reading, by the name that links.READINGS has for it.

    Args:
        site: the selected one, which decides the formula of rollout.
        projected: whether values are measured after the output projection.
    """
    readings = (
        Reading(
            "head",
            _("This head"),
            _("weight"),
            (r"A_{ij} = \operatorname{softmax}_j\left(\text{score}_{ij} + \text{mask}_{ij}\right)",),
            _("The weights of the selected head as they ran: each row sums to 1."),
            _("It says where the head looked; it does not say what it took from there, nor why the model chose."),
            of_head=True,
        ),
        Reading(
            "mean",
            _("Mean over heads"),
            _("mean weight"),
            (r"\bar A_{ij} = \frac{1}{H} \sum_{h=1}^{H} A^h_{ij}",),
            _("In each cell the mean over all heads of this layer."),
            _("No head has these weights: heads that look at different words become one that looks at all of them."),
            of_head=False,
        ),
        Reading(
            "max",
            _("Largest over heads"),
            _("largest weight"),
            (r"M_{ij} = \max_{h} A^h_{ij}",),
            _("In each cell the largest weight that any head of this layer has there."),
            _("A row mixes heads, so it does not sum to 1, and it does not say how many heads look there."),
            of_head=False,
        ),
        _value_weighted(projected),
        Reading(
            "rollout",
            _("Rollout"),
            _("rollout share"),
            _ROLLOUT["encoder" if site.stack == "encoder" else site.kind],
            _(
                "The weights of all layers up to this one multiplied, back to the tokens that were put in; the residual connection "
                "counts as half of each step."
            ),
            _(
                "It is no weight of the model and no measure of influence: all heads count alike, and values, feed-forward "
                "networks and norms are left out."
            ),
            of_head=False,
        ),
        Reading(
            "entropy",
            _("Entropy of rows"),
            _("entropy (nats)"),
            (r"H_i = -\sum_j A_{ij} \ln A_{ij}",),
            _("How widely each row of the selected head spreads: 0 for a single key, ln m for m keys alike."),
            _("It does not say how sure the model is, nor how much the head matters: resting on one token is low entropy too."),
            of_head=True,
        ),
    )
    return {reading.name: reading for reading in readings}


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
_ROLLOUT |= {"memory": _ROLLOUT["encoder"]}


def _value_weighted(projected: bool) -> Reading:
    caution = _(
        "It is no share: the vectors of a row may point against each other, and the stream that they join may be far longer."
    )
    if projected:
        meaning = _(
            "How long the vector is that the selected head adds to the stream of query i from key j, after its part of the output "
            "projection."
        )
        formula = r"N_{ij} = \left\lVert A_{ij}\, v_j\, W_O^{h} \right\rVert_2"
    else:
        meaning = _("How long the vector is that the selected head takes from key j to query i, before the output projection.")
        formula = r"N_{ij} = \left\lVert A_{ij}\, v_j \right\rVert_2"
    return Reading("value", _("Weight × value"), _("length moved"), (formula,), meaning, caution, of_head=True)
