"""Texts of the feature What if: the help of its panels."""

from viz.i18n.translate import N_

PANELS: dict[str, tuple[str, str, str]] = {
    "edits": (
        N_("Edits"),
        N_("Each edit changes one value inside the run, and the network continues from there. All pages then show that run."),
        "what-if.md",
    ),
    "writes-now": (
        N_("What the model generates with the edits"),
        N_("The output without and with your edits, token by token. Marked tokens differ."),
        "what-if.md",
    ),
    "likelihood": (
        N_("How likely the output without the edits is with them"),
        N_(
            "The edited model reads the output without the edits and gives the probability of each token. Where that "
            "changes, the edit matters."
        ),
        "what-if.md",
    ),
    "matters": (
        N_("What matters"),
        N_("Each part is removed on its own, and the output is scored again. What changes the output most comes first."),
        "what-if.md",
    ),
}
"""As `viz.feature.Feature.help`."""
