"""What a decoder keeps and computes, in numbers: its cache in several ways, its steps, and texts of many lengths."""

from collections.abc import Sequence

from model.features.modern_attention.costs import LayerSizes, Sizes
from model.trace.types import Trace
from viz.features.modern_attention import linear_attention
from viz.figures.costs import Line
from viz.i18n.translate import _
from viz.session.state import Page

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number in each precision."""

LENGTHS = tuple(round(1000 * 10 ** (number / 4)) for number in range(13))
"""1,000 to 1,000,000, four for each power of ten."""


def bytes_of(trace: Trace) -> int:
    """Bytes of a number of a run."""
    return BYTES[str(trace.model["dtype"])]


def kept_lines(sizes: Sizes, size: int, across: Sequence[int], source: int) -> list[Line]:
    """Bytes that are kept after so many tokens, by this model and by others that it is compared with.

    Args:
        size: bytes of a number.
        across: numbers of tokens.
        source: tokens of the source.
    """
    drawn = [Line(_("kept by this model"), [size * sizes.kept(count, source) for count in across])]
    if any(layer.latent or layer.key_heads < layer.heads for layer in sizes.layers):
        own_keys = [size * sizes.kept(count, source, "heads") for count in across]
        drawn.append(Line(_("if each query head had its own"), own_keys, "other"))
    if any(layer.window for layer in sizes.layers):
        reached = [size * sizes.kept(count, source, "window") for count in across]
        drawn.append(Line(_("only what the windows still reach"), reached, "third"))
    return drawn


def ways(layer: LayerSizes) -> list[tuple[str, int]]:
    """Names of the ways to keep a token, and how many numbers each keeps in one layer; that of the model comes first.

    The latent is that of a model which would have one: 4 widths of a head, and half a width for a rotary key (DeepSeek-AI 2024,
    "DeepSeek-V2", section 2.1.4 and table 1).
    """
    kept = [(_("this model"), layer.kept(1)), (_("each head has its own keys and values"), layer.kept(1, "heads"))]
    kept.append((_("one key and value head for all (multi-query)"), layer.key_width + layer.value_width))
    if not layer.latent:
        kept.append((_("a latent, as in DeepSeek-V2"), layer.key_width * 9 // 2))
    return kept


def decoded(page: Page, sizes: Sizes) -> tuple[list[int], list[int], list[int]]:
    """Tokens read after each pass of the page's run, and the operations of each pass with a cache and without."""
    source = len(page.trace.tokens["source"]) if sizes.cross else 0
    total = page.trace.of("decoder", "self")[0].mask.shape[0]
    lengths = list(range(min(page.trace.steps[0].computed[1], total), total + 1))
    return lengths, *sizes.decode(lengths, source)


def step_lines(cached: Sequence[float], whole: Sequence[float]) -> list[Line]:
    """The costs of each pass with a cache, and without."""
    return [Line(_("with the cache"), cached), Line(_("without"), whole, "other")]


def equal_at(sizes: Sizes) -> int | None:
    """The length at which the attention of a text costs as much as all other products; None: it never does up to 1,000,000."""
    others = 2 * (sizes.maps + sizes.output + sizes.latent_maps)
    low, high = 1, LENGTHS[-1]
    if sum(layer.reading(high) for layer in sizes.layers) < others * high:
        return None
    while low < high:
        middle = (low + high) // 2
        enough = sum(layer.reading(middle) for layer in sizes.layers) >= others * middle
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def length_lines(sizes: Sizes) -> list[Line]:
    """Operations to read texts of all LENGTHS: in attention, elsewhere, and with linear attention instead."""
    others = [2 * count * (sizes.maps + sizes.output + sizes.latent_maps) for count in LENGTHS]
    attention = [sum(layer.reading(count) for layer in sizes.layers) for count in LENGTHS]
    linear = [
        sum(linear_attention.operations(count, layer.heads, layer.key_width, layer.value_width) for layer in sizes.layers)
        for count in LENGTHS
    ]
    return [
        Line(_("scores and weighted values"), attention),
        Line(_("all other products"), others, "other"),
        Line(_("linear attention instead"), linear, "third"),
    ]


def byte_lines(sizes: Sizes, size: int) -> list[Line]:
    """Bytes for texts of all LENGTHS, with `size` bytes for a number: the cache, and all weights."""
    kept = [size * sizes.kept(count, way="window") for count in LENGTHS]
    weights = [size * sum(layer.heads for layer in sizes.layers) * count**2 for count in LENGTHS]
    return [Line(_("cache"), kept), Line(_("all weights, if they were stored"), weights, "other")]


def about(sizes: Sizes) -> str:
    """From which length on attention costs more than everything else, in words."""
    even = equal_at(sizes)
    if even is None:
        return _("Up to 1,000,000 tokens attention costs less than everything else.")
    return _("From token {tokens:,} on, attention costs more than everything else.", tokens=even)
