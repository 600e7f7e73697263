"""The page of its own: it holds what ran, its text cannot become markup, and it reaches nothing."""

import base64
import hashlib
import html
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from model.errors import UnknownHead
from model.trace.types import Array, Site, Trace
from tests import traces
from viz.canvas import standalone
from viz.canvas.wire.transport import unpack

CROSS = Site("decoder", 0, 2, "cross")
HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--", "<script>", "]]>", "\x00", "&amp;", "$title", "\ud800"]


class Markup(HTMLParser):
    """Tags of a page, and the text of its scripts by id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._script = str(dict(attrs).get("id", "module")) if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._script = None


def held(page: bytes) -> dict[str, Array]:
    """The blobs that a page holds."""
    text = Markup(page.decode()).scripts["run"]
    return unpack(zlib.decompress(base64.b64decode(text)))[1]


def exact(page: bytes) -> dict[str, Array]:
    """The heads that a page knows as they ran, by SITE/HEAD."""
    blobs = held(page)
    places = unpack(blobs["atlas"].tobytes())[0]["places"]
    return {name: unpack(blobs[f"{place['name']}/whole"].tobytes())[1]["exact"] for name, place in places.items()}


def test_of_a_short_sentence_every_weight_is_there_as_it_ran() -> None:
    trace = traces.translation()
    page = standalone.page(trace, CROSS, 3, 4)
    found = exact(page)
    assert found.keys() == {f"{site}/{head}" for site, attention in trace.attention.items() for head in range(attention.heads)}
    for name, weights in found.items():
        site, head = name.split("/")
        np.testing.assert_array_equal(weights, trace.at(site).head(int(head)))
    assert "Contains every weight exactly as computed." in page.decode()
    assert unpack(held(page)["atlas"].tobytes())[0]["selection"] == {"site": str(CROSS), "head": 3, "query": 4}
    assert len(page) < 510_000, "half of it is the typeface"


def test_of_many_weights_the_selected_head_is_there_as_it_ran() -> None:
    trace = traces.encoder(4, 4, 256)
    page = standalone.page(trace, Site("encoder", 0, 2, "self"), 1, -1)
    (name, weights), *others = exact(page).items()
    assert (name, others) == ("encoder.0.2.self/1", [])
    np.testing.assert_array_equal(weights, trace.at("encoder.0.2.self").head(1))
    assert "Contains every weight of the head that was selected" in page.decode()


@pytest.mark.parametrize(("tokens", "finest"), [(1000, 0), (1300, 1), (2600, 2)])
def test_a_large_head_is_there_as_finely_as_there_is_room(tokens: int, finest: int) -> None:
    trace = traces.encoder(1, 1, tokens)
    page = standalone.page(trace, Site("encoder", 0, 0, "self"), 0, -1)
    blobs = held(page)
    (place,) = unpack(blobs["atlas"].tobytes())[0]["places"].values()
    assert place["finest"] == finest
    tiles = {name.removeprefix(place["name"] + "/") for name in blobs if name.startswith(place["name"])}
    assert {int(path.split("/")[1]) for path in tiles} == set(range(finest, place["levels"]))
    assert sum(blobs[f"{place['name']}/{path}"].nbytes for path in tiles) <= standalone.LARGE_BYTES * 1.02
    size = 2**finest
    tile = unpack(blobs[f"{place['name']}/{'max' if finest else 'exact'}/{finest}/1/0"].tobytes())[1]
    true = trace.at("encoder.0.0.self").head(0)[256 * size : 512 * size, : 256 * size]
    rows, columns = tile["mask"].shape
    pooled = true[: rows * size, : columns * size].reshape(rows, size, columns, size).max(axis=(1, 3))
    shown = (tile["codes"] / 255.0) ** 2 if finest else tile["exact"]
    np.testing.assert_allclose(shown, pooled, atol=0.004 if finest else 0)
    assert ("for each block of cells" in page.decode()) == (finest > 0)


def hostile() -> Trace:
    trace = traces.translation(["<sos>", *HOSTILE, "<eos>"], ["<sos>", *HOSTILE[::-1], "<eos>"])
    return replace(trace, model={**trace.model, "title": HOSTILE[0] + HOSTILE[1], "name": HOSTILE[2]})


def test_hostile_text_stays_text() -> None:
    plain, page = (Markup(standalone.page(trace, CROSS, 0, -1).decode()) for trace in (traces.translation(), hostile()))
    assert page.tags == plain.tags
    assert page.scripts["module"] == plain.scripts["module"]
    assert "img" not in page.tags


def test_the_lines_below_say_what_ran() -> None:
    trace = traces.translation()
    page = html.unescape(standalone.page(trace, CROSS, 0, -1).decode())
    source = trace.tokens["source"]
    words = " ".join(text for text, special in zip(source.texts, source.special, strict=True) if not special)
    caution = "Attention shows what a head attends to, not why the model chooses a word."
    said = [str(trace.model["title"]), words, *map(str, trace.attention), caution, "Headlight"]
    assert [text for text in said if text not in page] == []


def test_nothing_but_the_page_s_own_script_may_run_and_nothing_may_be_fetched() -> None:
    page = standalone.page(traces.translation(), CROSS, 0, -1).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    script = Markup(page).scripts["module"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'unsafe-inline'; font-src data:; script-src 'sha256-{digest}'"
    assert "</script" not in script
    assert re.findall(r"""(?:src|href)\s*=\s*["']?\s*\w+:""", page) == []


def test_what_is_not_there_cannot_be_selected() -> None:
    with pytest.raises(UnknownHead):
        standalone.page(traces.translation(), CROSS, 99, -1)
