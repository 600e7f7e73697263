"""Standalone page of a run's atlas: one HTML file that a browser opens from disk, without a server or a network.

The app's own JavaScript draws it from the same scenes; `page.js` takes the place of Streamlit. The page holds the scenes compressed
and in base64, so that no token text is ever part of the markup.
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
from viz.canvas.assets import BASE, OF_AN_ATLAS, OF_LINES, OF_STRIPS, read
from viz.canvas.scenes import attention as scene
from viz.canvas.typeface import carried_face
from viz.canvas.wire import overviews, parts, strings
from viz.canvas.wire.parts import Pyramid
from viz.canvas.wire.transport import WHOLE, pack, unpack
from viz.figures.theme import DARK, LIGHT, Scheme, font
from viz.i18n.translate import _, join_list, translated
from viz.i18n.translate import current as current_language
from viz.labels import tokens as labels

ALL_WEIGHTS = 2**19
"""Most weights of a run that are all included exactly: 2 MB. Of a larger run only the selected head is exact."""

LARGE_BYTES = 2**23
"""Byte limit of a selected head that is stored as tiles: exact up to about 1,150 tokens, beyond that as fine as fits."""

LONGEST = 64
"""Tokens above which the strips start folded and are built on unfolding; also the most words of a text that the page quotes."""


def page(trace: Trace, site: Site, head: int, query: int, in_notebook: bool = False, hide: str = "") -> bytes:
    """HTML of the page in UTF-8: strips, atlas, any head large; hover, keyboard, light and dark as in the app.

    Args:
        site, head, query: the initial selection; query -1: no row.
        in_notebook: whether it is the content of a frame in a notebook, whose size and scheme it then takes.
        hide: as in a link: `first` opens it without the first token, `none` with all weights; else the run decides. Where the first
            token has most of the weight, the page holds both readings.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    script = read(*BASE, *OF_STRIPS, *OF_AN_ATLAS, *OF_LINES, "page.js", *(("notebook.js",) if in_notebook else ()))
    styles = ("common.css", "chips.css", "atlas.css", "page.css", *(("notebook.css",) if in_notebook else ()))
    fields = {
        "language": current_language(),
        "title": escape(translated(labels.model(trace)) or "Headlight"),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; font-src data:; script-src '{_fingerprint(script)}'",
        "style": (schemes() if in_notebook else carried_face() + schemes()) + read(*styles),
        "patience": escape(_("A script inside this page draws the picture; it needs a browser from 2023 or later.")),
        "tokens": escape(_("Tokens")),
        "folded": "" if max(map(len, trace.tokens.values())) > LONGEST else "open",
        "about": "\n".join(_about(trace, site)),
        "run": compressed(_held(trace, site, head, query, overviews.leaves_out(hide, trace) == "first")),
        "script": script,
    }
    return (
        Template((Path(__file__).parent / "frontend" / "page.html").read_text(encoding="utf-8"))
        .substitute(fields)
        .encode("utf-8", "replace")
    )


def compressed(data: bytes) -> str:
    """zlib data in base64. Weights hardly repeat, so zlib looks for runs of one byte only: 12 × 12 × 128 becomes 1.4 MB in 20 ms,
    compared to 1.6 MB in 34 ms at level 1 and 1.5 MB in 104 ms at level 6.
    """
    made = zlib.compressobj(1, strategy=zlib.Z_RLE)
    return base64.b64encode(made.compress(data) + made.flush()).decode("ascii")


def _fingerprint(script: str) -> str:
    """Hash of a script, as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"


def _held(trace: Trace, site: Site, head: int, query: int, rest: bool) -> bytes:
    """Everything the page holds, as blobs: the scenes `strips`, `atlas`, `lines` (texts alone) and, where a button shows the other
    reading, `other`; and their parts under the paths (`HASH/PIECE`) at which the app serves them.
    """
    atlas, pieces = atlas_with_parts(trace, site, head, query, rest)
    lines = {"texts": strings.lines_alone(), **strings.titles_of_lines()}
    scenes = {"strips": scene.strips(trace, site, query), "atlas": atlas, "lines": pack(lines, {})}
    if "first" in unpack(atlas)[0]:
        scenes["other"], more = atlas_with_parts(trace, site, head, query, not rest)
        pieces |= more
    return pack({}, {name: np.frombuffer(data, np.uint8) for name, data in (scenes | pieces).items()})


def atlas_with_parts(trace: Trace, site: Site, head: int, query: int, rest: bool = False) -> tuple[bytes, dict[str, bytes]]:
    """The scene of an atlas that asks no server for anything, and its parts by path: of a short run with every head exactly.

    Args:
        rest: whether it is the reading without the first token.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    header, _blobs = unpack(scene.atlas(trace, site, head, query, rest=rest))
    overview = overviews.part(trace, rest)
    pieces, places = {f"{overview.name}/{WHOLE}": overview.data}, {}
    for carried, index in _exact_heads(trace, site, head):
        places[f"{carried}/{index}"], of_head = _carried(trace, carried, index, rest)
        pieces |= of_head
    atlas = header | {"texts": strings.atlas_alone(), "parts": {"overview": header["parts"]["overview"]}, "places": places}
    return pack(atlas, {}), pieces


def _exact_heads(trace: Trace, site: Site, head: int) -> list[tuple[Site, int]]:
    """The heads whose exact weights are included."""
    everything = trace.attention.items()
    if sum(attention.heads * attention.mask.size for _site, attention in everything) > ALL_WEIGHTS:
        return [(site, head)]
    return [(carried, index) for carried, attention in everything for index in range(attention.heads)]


def _carried(trace: Trace, site: Site, head: int, rest: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A head's entry in the scene, and its pieces by path."""
    part = parts.exact(trace, site, head, rest)
    if not isinstance(part, Pyramid):
        return {"name": part.name}, {f"{part.name}/{WHOLE}": part.data}
    finest = _finest(trace.at(site))
    entry = {"name": part.name, **part.facts, "finest": finest}
    return entry, {f"{part.name}/{path}": data for path in _paths(part, finest) if (data := part.piece(path))}


def _finest(attention: Attention) -> int:
    """Finest level of a pyramid to include: with all coarser levels, a third more, it must fit into LARGE_BYTES."""
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


def schemes() -> str:
    """CSS variables with the colors of both schemes and the font: the system's scheme, or the one of `data-scheme`."""
    chosen = "".join(_variables(scheme, f':root[data-scheme="{name}"]') for name, scheme in (("light", LIGHT), ("dark", DARK)))
    return f"{_variables(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {_variables(DARK)} }}\n{chosen}\n"


def _variables(colours: Scheme, of: str = ":root") -> str:
    named = {name: value for name, value in asdict(colours).items() if isinstance(value, str)}
    variables = {"st-font": font(current_language()), "st-background-color": colours.background} | {
        f"page-{name}": named[name] for name in named
    }
    return f"{of} {{ {' '.join(f'--{name}: {value};' for name, value in variables.items())} }}"


def _about(trace: Trace, site: Site) -> Iterator[str]:
    """HTML below the picture."""
    note = _("Attention shows what a head attends to, not why the model chooses a word.")
    yield f"<p>{escape(note)} {escape(_known(trace, site))}</p>"
    yield "<dl>"
    for name, text in _facts(trace):
        yield f"<dt>{escape(name)}</dt><dd><bdi>{escape(text)}</bdi></dd>"
    yield "</dl>"
    made = _("Made with Headlight from the numbers that the model computed. This page makes no network requests.")
    yield f"<p>{escape(made)}</p>"


def _known(trace: Trace, site: Site) -> str:
    """Sentence on the precision of the weights that the page holds."""
    if len(_exact_heads(trace, site, 0)) > 1:
        return _("Contains every weight exactly as computed.")
    if trace.at(site).mask.size > parts.WHOLE_CELLS and _finest(trace.at(site)):
        return _("There are too many weights to include all of them: for each block of cells the page holds the largest.")
    return _(
        "Contains every weight of the head that was selected when the page was saved, and overview resolution for all other heads."
    )


def _facts(trace: Trace) -> Iterator[tuple[str, str]]:
    """Names and texts: the model, each strip, each kind of attention with its sites."""
    title, name = (str(trace.model.get(what, "")) for what in ("title", "name"))
    words = translated(title)
    yield _("Model"), words if title == name else _("{title} ({name})", title=words, name=name)
    steps = {strip: bool(trace.steps) and strip == labels.written_strip(trace) for strip in trace.tokens}
    for strip, tokens in trace.tokens.items():
        texts = [text for text, special in zip(tokens.texts, tokens.special, strict=True) if not special]
        yield strings.strip_title(trace, strip, steps[strip]), labels.line(texts[:LONGEST]) + (" …" if len(texts) > LONGEST else "")
    kinds: dict[str, list[str]] = {}
    for site in trace.attention:
        kinds.setdefault(labels.kind(site.stack, site.kind), []).append(str(site))
    yield from ((kind, join_list(sites)) for kind, sites in kinds.items())
