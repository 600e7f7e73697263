"""Weights over an image: what lies over a patch is the cell of the map, and the scene names the patches that an edit hides."""

import json
import zipfile
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

from model.requests.edits import Forbid, read_edits
from model.trace.serialization import from_bytes
from model.trace.stages import find
from model.trace.trace_files import ARCHIVE
from model.trace.types import Site
from tests import traces
from tests.viz.features.print.sheets import Drawn
from viz.canvas import fields_of
from viz.canvas.edit_events import Gesture, gesture
from viz.canvas.scenes import overlay
from viz.canvas.scenes.attention import ReadingScene, strips
from viz.canvas.wire.transport import PART_CACHE, unpack
from viz.features.print import run_archive
from viz.features.print.catalogue import Choice, caption, figure_called
from viz.features.print.image_overlay import painted
from viz.features.print.options import Options
from viz.features.print.run_archive import ArchivedCell
from viz.features.what_if import drawn_edits
from viz.features.what_if.edit_list import EditList
from viz.figures.theme import LIGHT
from viz.labels.images import hidden_positions, name_of
from viz.url import links
from viz.views.step.sentences import sentence

SITE = Site("encoder", 0, 1, "self")


def test_a_patch_has_the_weight_of_its_token() -> None:
    trace = traces.of_an_image()
    weights, names = trace.at(SITE).head(2), trace.tokens["source"].texts
    row, column = (overlay.over_patches(trace, weights, names.index("3,2"), column) for column in (False, True))
    assert row.shape == column.shape == (4, 5)
    for down in range(4):
        for across in range(5):
            patch = names.index(f"{down + 1},{across + 1}")
            assert row[down, across] == weights[names.index("3,2"), patch]
            assert column[down, across] == weights[patch, names.index("3,2")]


def test_the_scene_holds_the_image_and_the_weights_as_they_were_recorded() -> None:
    trace = traces.of_an_image()
    header, blobs = unpack(overlay.scene(trace, SITE, 2, 7, "smooth"))
    assert header["patches"] == {"rows": 4, "columns": 5, "added": 2}
    assert (header["query"], header["overlay"], header["hidden"], header["hides"]) == (7, "smooth", [], False)
    assert trace.image is not None
    np.testing.assert_array_equal(unpack(blobs["image"].tobytes())[1]["image"], trace.image)
    np.testing.assert_array_equal(unpack(blobs["exact"].tobytes())[1]["exact"], trace.at(SITE).head(2))
    assert header["description"].startswith("Encoder self-attention, layer 2, head 3. Row “2,1”: ")


def test_without_a_selected_row_it_is_that_of_the_first_token() -> None:
    trace = traces.of_an_image()
    assert unpack(overlay.scene(trace, SITE, 0, -1))[0]["query"] == 0
    assert unpack(overlay.scene(trace, SITE, 0, 99))[0]["query"] == 0


def test_a_reading_lies_over_the_image_in_place_of_the_weights() -> None:
    trace, values = traces.of_an_image(), np.random.default_rng(1).random((22, 22))
    header, blobs = unpack(overlay.scene(trace, SITE, 0, 3, "", ReadingScene("rollout", "Rollout", values)))
    assert header["name"] == "Rollout"
    np.testing.assert_array_equal(unpack(blobs["exact"].tobytes())[1]["exact"], values.astype(np.float32))


CROSS = Site("decoder", 0, 1, "cross")


def test_a_written_word_has_the_row_that_wrote_it() -> None:
    trace = traces.of_a_caption()
    assert overlay.fits(trace, CROSS)
    assert not overlay.fits(trace, Site("decoder", 0, 1, "self"))
    header, blobs = unpack(overlay.scene(trace, CROSS, 2, 3, "column smooth"))
    assert header["words"] == [{"text": text, "special": text == "<eos>"} for text in trace.tokens["target"].texts[1:]]
    assert (header["queryStrip"], header["keyStrip"], header["query"]) == ("target", "source", 3)
    np.testing.assert_array_equal(unpack(blobs["exact"].tobytes())[1]["exact"], trace.at(CROSS).head(2))
    assert "Row “under → trees”: " in header["description"]
    row = overlay.over_patches(trace, trace.at(CROSS).head(2), 3, column=False)
    for (down, across), weight in np.ndenumerate(row):
        assert weight == trace.at(CROSS).weights[2, 3, trace.tokens["source"].texts.index(f"{down + 1},{across + 1}")]


def test_the_row_after_the_last_token_that_was_fed_wrote_something_unknown() -> None:
    trace = traces.of_a_caption()
    fed = traces.strip("target", list(trace.tokens["target"].texts[:5]))
    trace = replace(trace, tokens={**trace.tokens, "target": fed})
    assert [word["text"] for word in overlay.written(trace, trace.at(CROSS))] == ["a", "house", "under", "trees", "trees → ?"]


def test_a_large_image_is_a_part_that_the_browser_fetches() -> None:
    trace = traces.of_an_image()
    large = np.random.default_rng(0).integers(0, 256, (320, 400, 3), np.uint8)
    spec = {"encoder": {"image": {**trace.model["spec"]["encoder"]["image"], "side": 80}}, "decoder": None}
    trace = type(trace)(**{**vars(trace), "image": large, "model": {**trace.model, "spec": spec}})
    header, blobs = unpack(overlay.scene(trace, SITE, 0, 0))
    assert "image" not in blobs
    sent = PART_CACHE.piece(header["parts"]["image"]["name"], "whole")
    assert sent is not None
    np.testing.assert_array_equal(unpack(sent)[1]["image"], large)


@pytest.mark.parametrize(
    ("edits", "hidden"),
    [
        ("", ()),
        ("forbid key=2..5,21", (2, 3, 4, 5, 21)),
        ('forbid key="2,3"', (9,)),
        ("forbid key=4; forbid key=99", (4,)),
        ("forbid site=encoder.0.1.self key=4; forbid query=3 key=5; silence site=encoder.0.1.self", ()),
    ],
)
def test_hidden_patches_are_those_that_no_head_may_read(edits: str, hidden: tuple[int, ...]) -> None:
    assert hidden_positions(read_edits(edits), traces.of_an_image().tokens) == hidden


def test_a_brush_makes_one_edit_of_all_patches_that_it_hides() -> None:
    strips, made = dict(traces.of_an_image().tokens), [EditList(read_edits("silence site=encoder.0.1.self head=1"))]
    for positions in ((7, 8, 9, 10), (12, 11), (8, 9)):
        made.append(drawn_edits.drawn(made[-1], Gesture("hide", strip="source", positions=positions), strips, (0, 0)))
    silenced = "silence site=encoder.0.1.self head=1"
    assert [edits.fields()["edits"] for edits in made[1:]] == [
        f"{silenced}; forbid key=7..10",
        f"{silenced}; forbid key=7..12",
        f"{silenced}; forbid key=7,10,11,12",
    ]
    rest = Gesture("hide", strip="source", positions=(7, 10, 11, 12))
    assert drawn_edits.drawn(made[-1], rest, strips, (0, 0)).fields()["edits"] == silenced
    named = EditList(read_edits('forbid key="2,3"'))
    assert drawn_edits.drawn(named, Gesture("hide", strip="source", positions=(3,)), strips, (0, 0)).edits == (Forbid(key=(3, 9)),)


def test_a_brush_hides_patches_of_a_captioner_from_both_stacks() -> None:
    strips = dict(traces.of_a_caption().tokens)
    first = drawn_edits.drawn(EditList(()), Gesture("hide", strip="source", positions=(7, 8)), strips, (0, 0))
    assert first.edits == (Forbid(stack="encoder", key=(7, 8)), Forbid(kind="cross", key=(7, 8)))
    assert hidden_positions(first.edits, strips) == (7, 8)
    assert hidden_positions(first.edits[:1], strips) == (), "the decoder still reads them"
    assert hidden_positions((Forbid(key=(7,)),), strips) == (), "in its self-attention the decoder’s own words have these numbers"
    again = drawn_edits.drawn(first, Gesture("hide", strip="source", positions=(8,)), strips, (0, 0))
    assert hidden_positions(again.edits, strips) == (7,)
    assert not drawn_edits.drawn(again, Gesture("hide", strip="source", positions=(7,)), strips, (0, 0)).edits


def test_a_captioner_offers_its_written_words_and_no_patch_as_chips() -> None:
    trace = traces.of_a_caption()
    edits = drawn_edits.drawn(EditList(()), Gesture("hide", strip="target", position=2), dict(trace.tokens), (0, 0)).edits
    assert edits == (Forbid(stack="decoder", kind="self", key=(2,)),)
    hidden = drawn_edits.hidden_tokens((*edits, *read_edits("forbid stack=encoder key=3; forbid kind=cross key=3")), trace)
    assert hidden == {"source": [3], "target": [2]}
    header, _parts = unpack(strips(trace, Site("decoder", 0, 1, "self"), -1, hidden))
    assert [strip["name"] for strip in header["strips"]] == ["target"]


def test_what_a_browser_says_of_a_brush_is_checked() -> None:
    said = {"act": "hide", "strip": "source", "positions": [4, 2]}
    assert gesture(said) == Gesture("hide", strip="source", positions=(4, 2))
    for bad in ([], [-1], [True], ["2"], "23", {"a": 1}, [1] * 20_000):
        assert gesture(said | {"positions": bad}) is None
    assert gesture(said | {"strip": "target"}) is None


def test_inside_the_network_an_image_is_cut_and_no_text_is_split() -> None:
    for trace, begins in ((traces.of_an_image(), "The image is cut"), (traces.translation(), "The text is split")):
        assert sentence(trace, find(trace, "encoder/tokens")).startswith(begins)


def test_only_runs_of_images_and_their_own_patches_have_one() -> None:
    assert overlay.fits(traces.of_an_image(), SITE)
    assert not overlay.fits(traces.encoder_only(), SITE)


def test_the_image_is_called_like_its_file() -> None:
    trace = traces.of_an_image()
    assert name_of(trace) == "cat.png"
    told = {**trace.model, "image": {"name": "", "width": 320, "height": 240}}
    assert name_of(type(trace)(**{**vars(trace), "model": told})) == "A drawn scene"
    unknown = {name: value for name, value in trace.model.items() if name != "image"}
    assert name_of(type(trace)(**{**vars(trace), "model": unknown})) == "image-0123456789abcdef"


def test_how_weights_lie_over_an_image_is_in_the_link() -> None:
    view, problems = links.read({"overlay": "column smooth"})
    assert (view.overlay, problems) == ("smooth column", [])
    assert links.write(view) == {"overlay": "smooth column"}
    assert links.read({"overlay": "thermal"})[1] != []
    assert fields_of({"overlay": "smooth"}) == {"overlay": "smooth"}
    assert fields_of({"overlay": ""}) == {"overlay": ""}
    assert fields_of({"overlay": "thermal", "query": 3}) == {"query": 3}
    json.dumps(overlay.texts(True))


def test_for_print_each_patch_has_the_color_of_its_weight() -> None:
    trace = traces.of_an_image(gray=100)
    attention = trace.at(SITE)
    token = trace.tokens["source"].texts.index("3,2")
    for words, own in (("", attention.head(2)[token]), ("column", attention.head(2)[:, token])):
        choice = Choice(attention, 2, token, overlay=words)
        (pixels,) = Drawn(figure_called(trace, choice, "image").draw(Options())).images
        shares = own[2:].reshape(4, 5) / own[2:].max()
        tint = np.array([int(LIGHT.accent[at : at + 2], 16) for at in (1, 3, 5)])
        wanted = (28 + 78) + 0.88 * shares[..., None] * (tint - (28 + 78))
        np.testing.assert_allclose(pixels[4::8, 4::8, :3], wanted, atol=0.51)
        assert pixels.shape == (32, 40, 4)


def test_for_print_colors_between_the_middles_are_interpolated() -> None:
    trace = traces.of_an_image(gray=100)
    shares = np.random.default_rng(2).random((4, 5))
    smooth = painted(trace, shares, smooth=True, tint="#ffffff", grayscale=False)[..., 0].astype(float)
    opacity = (smooth - 106) / (255 - 106) / 0.88
    np.testing.assert_allclose(opacity[3, 3], shares[0, 0], atol=0.01)  # before the first middle it is continued
    between = (shares[1, 2] + shares[1, 3]) / 2 * 0.5 + (shares[2, 2] + shares[2, 3]) / 2 * 0.5
    np.testing.assert_allclose(opacity[15:17, 23:25].mean(), between, atol=0.01)


def test_the_figure_for_print_says_what_it_shows() -> None:
    trace = traces.of_an_image()
    attention = trace.at(SITE)
    told = " ".join(Drawn(figure_called(trace, Choice(attention, 0, 9), "image").draw(Options())).texts)
    assert "What “2,3” attends to" in told
    assert "[CLS]" in told
    assert "[REG1]" in told
    assert caption(trace, "A head").startswith("A head. Model: A reader of images. Image: cat.png.")
    gray = Drawn(figure_called(trace, Choice(attention, 0, 9), "image").draw(Options(colours="grayscale"))).images[0]
    assert (gray[..., 0] == gray[..., 1]).all()
    assert (gray[..., 1] == gray[..., 2]).all()


def test_for_print_a_word_has_the_color_of_its_row() -> None:
    trace = traces.of_a_caption(gray=100)
    figure = figure_called(trace, Choice(trace.at(CROSS), 2, 1, overlay="column"), "image")
    drawn = Drawn(figure.draw(Options()))
    tint = np.array([int(LIGHT.accent[at : at + 2], 16) for at in (1, 3, 5)])
    own = trace.at(CROSS).head(2)[1, 2:].reshape(4, 5)
    wanted = 106 + 0.88 * (own / own.max())[..., None] * (tint - 106)
    np.testing.assert_allclose(drawn.images[0][4::8, 4::8, :3], wanted, atol=0.51)
    assert "What “a → house” attends to" in " ".join(drawn.texts)
    assert "English: “a house under trees”." in caption(trace, "A head")


def test_an_archive_holds_the_image_and_the_figure() -> None:
    trace = traces.of_an_image()
    packed = zipfile.ZipFile(BytesIO(run_archive.archive(trace, ArchivedCell(SITE, 1, 9))))
    names = {name.partition("/")[2]: name for name in packed.namelist()}
    assert "figures/image.svg" in names
    again = from_bytes(packed.read(names[ARCHIVE]))
    assert again.image is not None
    assert trace.image is not None
    np.testing.assert_array_equal(again.image, trace.image)
