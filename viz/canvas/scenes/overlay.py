"""Scene of the image that a network read, with a row or a column of one head's weights over it, patch by patch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from model.trace.types import Array, Attention, Site, Trace
from viz.canvas.scenes.attention import ReadingScene, base
from viz.canvas.wire import parts, strings
from viz.canvas.wire.transport import PART_CACHE, Blob, pack
from viz.i18n.translate import _, titled
from viz.labels import alt_text
from viz.labels import tokens as labels


def fits(trace: Trace, site: Site) -> bool:
    """Whether a site's weights can lie over the image that its network read: its keys are the patches."""
    return trace.image is not None and (site.kind == "cross" or (site.stack == "encoder" and site.kind == "self"))


def patches(trace: Trace) -> tuple[int, int, int]:
    """Rows and columns of patches, and how many positions come before them."""
    image = trace.model["spec"]["encoder"]["image"]
    return int(image["rows"]), int(image["columns"]), len(image["added"])


def token_of(query: int, attention: Attention) -> int:
    """The token whose row or column is shown: the selected query, else the first: a class token, or the first of a caption."""
    return query if 0 <= query < len(attention.mask) else 0


def written(trace: Trace, attention: Attention) -> list[dict[str, Any]]:
    """What each row of cross-attention wrote, as words of a caption: `text`, and `special` where it stands for no text."""
    strip, names = trace.tokens[attention.query_tokens], labels.queries(trace, attention)
    texts = labels.strip(strip)[1 : len(names) + 1]
    items = [{"text": text, "special": is_special} for text, is_special in zip(texts, strip.special[1:], strict=False)]
    return [*items, *({"text": f"{name} → ?", "special": True} for name in names[len(items) :])]


def over_patches(trace: Trace, weights: Array, token: int, column: bool) -> Array:
    """What lies over the image, [row, column] of patches: the weights from a token to all patches, or from all patches to it.

    Args:
        weights: [query, key].
        token: a position, counted from 0; those before the patches included.
        column: whether it is the token's column, how much each patch attends to it; else its row.
    """
    rows, columns, added = patches(trace)
    rows_of_image: Array = (weights[:, token] if column else weights[token])[added:].reshape(rows, columns)
    return rows_of_image


def scene(
    trace: Trace,
    site: Site,
    head: int,
    query: int,
    overlay: str = "",
    read: ReadingScene | None = None,
    hidden: Sequence[int] = (),
    hides: bool = False,
) -> bytes:
    """One head over the image: parts `image` and `exact`, of which the drawing takes the token's row or column.

    Args:
        query: the selected row; -1: none, so that the first token's is shown.
        overlay: the parameter `overlay` of a link: `smooth`, `column`, which says nothing where the queries are words.
        read: what is shown instead of the head's weights.
        hidden: positions that an edit hides from every head.
        hides: whether a drag over patches hides them, or shows them again; else a click selects a patch.
    """
    attention = trace.at(site)
    rows, columns, added = patches(trace)
    part = parts.exact(trace, site, head) if read is None else parts.read(trace, site, head, read.name, read.values)
    title = labels.head_name(trace, site, head) if read is None else read.title
    writes = site.kind == "cross"
    header = {
        **base(trace),
        "texts": texts(hides, writes),
        "words": written(trace, attention) if writes else None,
        **parts.axes(trace, attention),
        "name": title,
        "site": str(site),
        "head": head,
        "query": token_of(query, attention),
        "patches": {"rows": rows, "columns": columns, "added": added},
        "overlay": overlay,
        "hidden": list(hidden),
        "hides": hides,
        "description": titled(title, _described(trace, attention, head, token_of(query, attention), read)),
    }
    return parts.scene(header, {"exact": part, "image": image(trace)})


def image(trace: Trace) -> Blob:
    """The image that was read: blob `image`, uint8 [row, column, color]."""
    assert trace.image is not None
    read = trace.image
    return PART_CACHE.get_or_make(f"{parts.run_key(trace)}/image", lambda: Blob(pack({}, {"image": read})))


def _described(trace: Trace, attention: Attention, head: int, token: int, read: ReadingScene | None) -> str:
    """The shown row in words."""
    values = attention.head(head)[token] if read is None else np.nan_to_num(read.values[token])
    name, keys = labels.queries(trace, attention, longest=None)[token], labels.keys(trace, attention, longest=None)
    return alt_text.row(name, keys, np.where(attention.mask[token], values, 0.0))


def texts(hides: bool = False, writes: bool = False) -> Mapping[str, Any]:
    """Texts of the drawing.

    Args:
        hides: whether it hides patches.
        writes: whether the queries are words that were written about the image.
    """
    entries = {
        **strings.lines(),
        "row": _("What it attends to"),
        "rowHelp": _("Colors each patch by the weight from the selected token to it: the token’s row of the map"),
        "column": _("What attends to it"),
        "columnHelp": _("Colors each patch by the weight from it to the selected token: the token’s column of the map"),
        "smooth": _("Smooth"),
        "smoothHelp": _("Colors fade from the middle of one patch to the next; the weights are those of the middles"),
        "sides": _("Row or column"),
        "added": _("Tokens without a patch"),
        "hiddenPatch": _("hidden"),
        "words": _("Generated tokens"),
        "label": _("{head} over the image. Arrow keys move between patches, Enter selects a patch.", head="{head}"),
        "hint": _("Hover over a patch to read its weight, click it to see what it attends to."),
        "hintTouch": _("Tap a patch to see what it attends to."),
    }
    if writes:
        entries |= {
            "label": _("{head} over the image. Arrow keys move between patches.", head="{head}"),
            "hint": _("Point at a generated token to see what the head attended to when it was generated; a click selects it."),
            "hintTouch": _("Tap a generated token to see what the head attended to when it was generated."),
        }
    if not hides:
        return entries
    help_ = _("{head} over the image. Arrow keys move between patches, Enter hides a patch or shows it again.", head="{head}")
    return entries | {
        "label": help_,
        "hint": _("Drag over patches to hide them from every head; drag over hidden ones to show them again."),
        "hintTouch": _("Draw over patches with a finger to hide them from every head; over hidden ones to show them again."),
    }
