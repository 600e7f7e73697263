"""Texts of the feature Circuit: the help of its panels, and what its drawing says."""

from viz.i18n.translate import N_, _

PANELS: dict[str, tuple[str, str, str]] = {
    "writes": (
        N_("Why this token"),
        N_(
            "Breaks the logit of a token down into what each head, layer and bias added to it directly. The sum "
            "is compared with the run."
        ),
        "why.md",
    ),
    "circuit": (
        N_("Which heads a head used"),
        N_(
            "Breaks the queries, keys and values of every head down into what earlier heads wrote. The sums are "
            "compared with the run."
        ),
        "circuit.md",
    ),
    "composition": (
        N_("Composition and copying"),
        N_(
            "Shows what the weights alone tell, without a run. Some heads could read others, and some make what "
            "they read more likely."
        ),
        "circuit.md",
    ),
    "paths": (
        N_("Path by path"),
        N_("Lets one head read another as in a corrupted run, and measures what that changes. An estimate is shown beside it."),
        "circuit.md",
    ),
    "why": (
        N_("Why this score"),
        N_(
            "Breaks the score down into what wrote the query times what wrote the key: embedding, position, each "
            "earlier head. The sum is compared with the run."
        ),
        "why.md",
    ),
}
"""As `viz.feature.Feature.help`."""


def graph() -> dict[str, str]:
    """Texts of the graph of a circuit."""
    return {
        "graphLabel": _(
            "Graph of all heads. Arrow keys go from head to head, up is a later layer; Enter selects the head. The table below has "
            "every edge."
        ),
        "hint": _("Hover over a head to see only its edges. Click it (or press Enter) to select it."),
        "hintTouch": _("Tap a head to see its edges and to select it."),
        "query": _("to its queries"),
        "key": _("to its keys"),
        "value": _("to its values"),
        "ofHead": _("{head}: {edges}"),
        "alone": _("{head}: none of the edges shown."),
        "failed": _("The graph could not be loaded. The table below has every edge."),
    }
