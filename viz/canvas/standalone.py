"""The atlas of a run as a page of its own: one HTML file that a browser opens from a disk, without a server and without a network.

It is painted by the files that paint it in the app, and given the same scenes; `page.js` alone stands where Streamlit stands in the
app. What it is given is compressed and stands in the page as base64, so that no text of a token is ever part of the markup.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from model.trace.types import Attention, Site, Trace
from viz import labels
from viz.canvas.assets import BASE, OF_AN_ATLAS, OF_STRIPS, read
from viz.canvas.scenes import attention as scene
from viz.canvas.wire import parts, strings
from viz.canvas.wire.packing import pack, unpack
from viz.canvas.wire.part_cache import WHOLE
from viz.canvas.wire.pooling import Pyramid
from viz.texts import _
from viz.theme import DARK, FONT, LIGHT, Scheme

ALL_WEIGHTS = 2**19
"""Weights of a run that come along as they ran, all together: 2 MB. Of a run with more the selected head alone does."""

LARGE_BYTES = 2**23
"""Bytes of a selected head that is too large to travel whole: up to about 1,150 tokens as it ran, else as finely as they allow."""

LONGEST = 64
"""Tokens of a strip above which the strips are made only when somebody unfolds them, and words of a text that the page quotes."""


def page(trace: Trace, site: Site, head: int, query: int) -> bytes:
    """The page, UTF-8: strips, atlas, any head large; hover, keyboard, light and dark as in the app.

    Args:
        site, head, query: what is selected when it opens; query -1: no row.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    script = read(*BASE, *OF_STRIPS, *OF_AN_ATLAS, "page.js")
    gaps = {
        "title": escape(str(trace.model.get("title", trace.model.get("name", "Headlight")))),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_fingerprint(script)}'",
        "style": _schemes() + read("common.css", "chips.css", "atlas.css", "page.css"),
        "patience": escape(_("The picture is painted by this page's own script, in a browser of 2023 or later.")),
        "tokens": escape(_("Tokens")),
        "folded": "" if max(map(len, trace.tokens.values())) > LONGEST else "open",
        "about": "\n".join(_about(trace, site)),
        "run": compressed(_held(trace, site, head, query)),
        "script": script,
    }
    return (
        Template((Path(__file__).parent / "frontend" / "page.html").read_text(encoding="utf-8"))
        .substitute(gaps)
        .encode("utf-8", "replace")
    )


def compressed(data: bytes) -> str:
    """zlib as base64. Weights hardly repeat, so only runs of one byte are looked for: that leaves 1.4 MB of 12 × 12 × 128 in 20 ms,
    where level 1 leaves 1.6 MB in 34 ms and level 6 1.5 MB in 104 ms.
    """
    made = zlib.compressobj(1, strategy=zlib.Z_RLE)
    return base64.b64encode(made.compress(data) + made.flush()).decode("ascii")


def _fingerprint(script: str) -> str:
    """What a content security policy knows a script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"


def _held(trace: Trace, site: Site, head: int, query: int) -> bytes:
    """All that the page is given, as blobs: the scenes `strips` and `atlas`, and the parts that they name, as the shelf would serve
    them (`HASH/PIECE`).
    """
    header, _blobs = unpack(scene.atlas(trace, site, head, query))
    overview = parts.overview(trace)
    pieces, places = {f"{overview.name}/{WHOLE}": overview.data}, {}
    for one, index in _exact_heads(trace, site, head):
        place, found = _carried(trace, one, index)
        places[f"{one}/{index}"] = place
        pieces |= found
    atlas = header | {"texts": strings.atlas_alone(), "parts": {"overview": header["parts"]["overview"]}, "places": places}
    scenes = {"strips": scene.strips(trace, site, query), "atlas": pack(atlas, {})}
    return pack({}, {name: np.frombuffer(data, np.uint8) for name, data in (scenes | pieces).items()})


def _exact_heads(trace: Trace, site: Site, head: int) -> list[tuple[Site, int]]:
    """The heads that come along as they ran."""
    everything = trace.attention.items()
    if sum(attention.heads * attention.mask.size for _site, attention in everything) > ALL_WEIGHTS:
        return [(site, head)]
    return [(one, index) for one, attention in everything for index in range(attention.heads)]


def _carried(trace: Trace, site: Site, head: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a scene says of where a head is, and its pieces by address."""
    found = parts.exact(trace, site, head)
    if not isinstance(found, Pyramid):
        return {"name": found.name}, {f"{found.name}/{WHOLE}": found.data}
    finest = _finest(trace.at(site))
    place = {"name": found.name, **found.facts, "finest": finest}
    return place, {f"{found.name}/{path}": data for path in _paths(found, finest) if (data := found.piece(path))}


def _finest(attention: Attention) -> int:
    """The finest level of a pyramid that comes along: with all above it, a third more, it is to take LARGE_BYTES at most."""
    level, size = 0, 5 * attention.mask.size
    while size * 4 / 3 > LARGE_BYTES:
        level += 1
        size = 4 * attention.mask.size // 4**level  # largest and mean weight, and a mask for each
    return level


def _paths(pyramid: Pyramid, finest: int) -> Iterator[str]:
    rows, columns, side, levels = (pyramid.facts[name] for name in ("rows", "columns", "side", "levels"))
    for level in range(finest, levels):
        for kind in ("max", "mean") if level else ("exact",):
            for row in range(-(-rows // (side << level))):
                yield from (f"{kind}/{level}/{row}/{column}" for column in range(-(-columns // (side << level))))


def _schemes() -> str:
    """The colours of both schemes and the font, as our drawings look for them."""
    return f"{_variables(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {_variables(DARK)} }}\n"


def _variables(colours: Scheme) -> str:
    named = {name: value for name, value in asdict(colours).items() if isinstance(value, str)}
    variables = {"st-font": FONT, "st-background-color": colours.background} | {f"page-{name}": named[name] for name in named}
    return f":root {{ {' '.join(f'--{name}: {value};' for name, value in variables.items())} }}"


def _about(trace: Trace, site: Site) -> Iterator[str]:
    """What stands below the picture, as HTML."""
    yield f"<p>{escape(_('Attention says where a head looked, not why the model chose.'))} {escape(_known(trace, site))}</p>"
    yield "<dl>"
    for name, text in _facts(trace):
        yield f"<dt>{escape(name)}</dt><dd><bdi>{escape(text)}</bdi></dd>"
    yield "</dl>"
    made = _("Made by Headlight from the numbers that the model computed. This page asks no network for anything.")
    yield f"<p>{escape(made)}</p>"


def _known(trace: Trace, site: Site) -> str:
    """How exactly the page knows its weights."""
    if len(_exact_heads(trace, site, 0)) > 1:
        return _("Every weight is here as it ran.")
    if trace.at(site).mask.size > parts.WHOLE_CELLS and _finest(trace.at(site)):
        return _("Of each block of cells the largest weight is here: there are too many to take them all along.")
    return _("Of the head that was selected at first every weight is here as it ran, of the others what the overview shows.")


def _facts(trace: Trace) -> Iterator[tuple[str, str]]:
    """Names and texts: the model, each strip, each kind of attention with its sites."""
    title, name = (str(trace.model.get(what, "")) for what in ("title", "name"))
    yield _("Model"), title if title == name else _("{title} ({name})", title=title, name=name)
    steps = {strip: bool(trace.steps) and strip == labels.written_strip(trace) for strip in trace.tokens}
    for strip, tokens in trace.tokens.items():
        texts = [labels.plain(text) for text, special in zip(tokens.texts, tokens.special, strict=True) if not special]
        yield strings.strip_title(trace, strip, steps[strip]), " ".join(texts[:LONGEST]) + (" …" if len(texts) > LONGEST else "")
    kinds: dict[str, list[str]] = {}
    for site in trace.attention:
        kinds.setdefault(labels.kind(site.stack, site.kind), []).append(str(site))
    yield from ((kind, ", ".join(sites)) for kind, sites in kinds.items())
