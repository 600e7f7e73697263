"""The overview in a notebook: one frame that holds the whole run, asks for nothing, and whose content cannot break out."""

import base64
import re
import zlib
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.errors import UnknownSite, WireError
from model.trace import serialization
from model.trace.types import Array
from tests import opened
from viz.canvas.wire.transport import unpack
from viz.features.notebook.show import Picture, save, show

RUN = serialization.from_bytes(opened.GREEDY.read_bytes())
SITE = "decoder.0.1.cross"
rng = np.random.default_rng(0)


def maps(*shape: int) -> Array:
    """Rows that sum to 1, of any axes whose last is the keys."""
    return rng.dirichlet(np.full(shape[-1], 0.3), shape[:-1]).astype(np.float32)


class Elements(HTMLParser):
    """The elements of a text with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def held(picture: Picture) -> dict[str, Any]:
    """What the page of a picture holds, read from the bytes of its frame: blobs by name."""
    page = unescape(re.search(r'srcdoc="([^"]*)"', picture._repr_html_())[1])  # type: ignore[index]
    packed = re.search(r'<script type="application/octet-stream" id="run">([^<]*)</script>', page)
    assert packed
    return unpack(zlib.decompress(base64.b64decode(packed[1])))[1]


def drawn(picture: Picture) -> dict[str, Array]:
    """The maps that a page holds exactly, by SITE/HEAD, and those of its overview, by SITE."""
    blobs = held(picture)
    atlas = unpack(blobs["atlas"].tobytes())[0]
    exact = {head: unpack(blobs[f"{at['name']}/whole"].tobytes())[1]["exact"] for head, at in atlas["places"].items()}
    overview = unpack(blobs[f"{atlas['parts']['overview']['name']}/whole"].tobytes())[1]
    codes = {name.removeprefix("weights/"): (own / 255.0) ** 2 for name, own in overview.items() if name.startswith("weights/")}
    return exact | codes


def test_every_map_is_what_was_given() -> None:
    weights = maps(3, 2, 5, 5)
    page = drawn(show(list(weights[:, None]), list("abcde")))
    for layer in range(3):
        for head in range(2):
            np.testing.assert_array_equal(page[f"program.0.{layer}.unknown/{head}"], weights[layer, head])
        np.testing.assert_allclose(page[f"program.0.{layer}.unknown"], weights[layer], atol=4e-3)


def test_two_pictures_of_one_shape_do_not_share_their_maps() -> None:
    for weights in (maps(1, 2, 4, 4), maps(1, 2, 4, 4)):
        np.testing.assert_array_equal(drawn(show(weights))["program.0.0.unknown/1"], weights[0, 1])


def test_of_many_heads_the_selected_one_is_exact() -> None:
    weights = maps(12, 12, 64, 64)
    page = drawn(show(weights, layer=3, head=7))
    assert [name for name in page if "/" in name] == ["program.0.3.unknown/7"]
    np.testing.assert_array_equal(page["program.0.3.unknown/7"], weights[3, 7])
    np.testing.assert_allclose(page["program.0.11.unknown"], weights[11], atol=4e-3)


def test_a_cell_shows_one_frame_and_a_file_is_the_same_page(tmp_path: Path) -> None:
    picture = show(opened.GREEDY, site=SITE, head=1)
    ((tag, attributes),) = Elements(picture._repr_html_()).elements
    assert (tag, attributes["title"]) == ("iframe", "Tiny")
    assert "src" not in attributes
    assert repr(picture) == "<Tiny: 6 layers of attention, 12 heads; .open() shows them>"
    page = picture.write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page


def test_a_trace_is_shown_and_what_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vit.trace.safetensors").write_bytes(opened.file(opened.program()))
    assert repr(show(tmp_path / "vit.trace.safetensors")).startswith("<A ViT: 2 layers")
    with pytest.raises(WireError):
        show(Path(__file__))
    with pytest.raises(UnknownSite):
        show(RUN, site="encoder.0.9.self")
    with pytest.raises(ValueError, match=r"^head=9: there are 2 heads, which count from 0\.$"):
        show(RUN, head=9)


def test_no_text_of_a_run_ends_the_frame() -> None:
    hostile = '"></iframe></script><script>alert(1)</script>' + "x" * 10_000
    strip = replace(RUN.tokens["source"], texts=(hostile,) * len(RUN.tokens["source"]))
    trace = replace(RUN, model={**RUN.model, "title": hostile}, tokens={**RUN.tokens, "source": strip})
    ((tag, attributes),) = Elements(show(trace)._repr_html_()).elements
    assert tag == "iframe"
    inside = [tag for tag, _attributes in Elements(str(attributes["srcdoc"])).elements if tag in ("script", "img", "iframe")]
    assert inside == ["script", "script"], "the run and the one script that its policy names by its hash"


def test_what_is_saved_is_what_is_shown(tmp_path: Path) -> None:
    weights = maps(2, 3, 4, 6)
    path = save(weights, tmp_path / "mine.trace.safetensors", list("abcdef"), list("wxyz"))
    trace = serialization.from_bytes(path.read_bytes())
    assert [strip.texts for strip in trace.tokens.values()] == [tuple("abcdef"), tuple("wxyz")]
    for layer, attention in enumerate(trace.attention.values()):
        np.testing.assert_array_equal(attention.weights, weights[layer])
        assert (attention.query_tokens, attention.key_tokens) == ("target", "source")


def test_nan_is_shown_as_it_is() -> None:
    weights = maps(1, 2, 3, 3)
    weights[0, 1, 2] = np.nan
    np.testing.assert_array_equal(drawn(show(weights))["program.0.0.unknown/1"], weights[0, 1])
