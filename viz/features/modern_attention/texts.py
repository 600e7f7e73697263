"""Texts about attention as it is built today: the help of its panels."""

from viz.i18n.translate import N_

PANELS: dict[str, tuple[str, str, str]] = {
    "cache": (
        N_("The cache"),
        N_(
            "What a program has to keep of each token to generate the next one, counted from the sizes of this model. The bytes "
            "are those that are needed, not those that this app uses."
        ),
        "today.md#the-cache",
    ),
    "length": (
        N_("Cost over length"),
        N_(
            "The curves follow from the sizes of the model; only the times are measured, on this machine. Below, linear attention "
            "is computed for the same queries and keys, in a model that was not trained with it."
        ),
        "today.md#cost-over-length",
    ),
    "latents": (
        N_("Latents"),
        N_(
            "Above, what this layer keeps of each token; below, the keys and values that its heads make of it. Both are numbers of "
            "this run."
        ),
        "today.md#the-cache",
    ),
    "tiles": (
        N_("In tiles"),
        N_(
            "The scores of this run, taken tile by tile; cells without a color were not reached yet. It shows the order of the "
            "computation, which changes no result and is not how this run was computed."
        ),
        "readings.md#tiles",
    ),
    "mask-kinds": (
        N_("Windows, prefixes and packed documents"),
        N_(
            "Names the mask of each layer by its allowed cells in this text, and tries another mask. Replacing a token must not "
            "change any state that cannot reach it."
        ),
        "today.md#windows-prefixes-packed-documents",
    ),
    "sinks": (
        N_("Attention sinks"),
        N_(
            "Each cell is a head, each row a layer: the mean weight on the first token, on registers, or on a learned sink. A "
            "large share does not mean that the token matters, since its value vector is often short."
        ),
        "today.md#attention-sinks",
    ),
}
"""As `viz.feature.Feature.help`."""
