"""Figures for print: every number that is drawn is the run's, at the size and in the colors that were asked for."""

import io
import math
import re
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pypdf
import pytest
from PIL import Image

from model.errors import BadSetting, UnknownHead
from model.trace.beam_tree import Node
from model.trace.types import Trace
from tests.traces import translation
from tests.viz.features.print.sheets import Box, Drawn, colour_of, grid_of
from tests.viz.features.training.films import STEPS, measured
from viz.features.compare.dumbbells import dumbbells
from viz.features.compare.figures import difference
from viz.features.print import fonts, writers
from viz.features.print.catalogue import Choice, caption, figure_called, standard_figures
from viz.features.print.options import SMALLEST_FONT, TWO_COLUMNS, Options
from viz.features.print.plotly_chart import chart
from viz.features.print.shapes import MM, Circle, Drawing, Polygon
from viz.features.survey import heads_figure as heads
from viz.features.training import figures as training
from viz.figures import arithmetic, positions
from viz.figures.importance import curves, scatter
from viz.figures.lens import lens
from viz.figures.row_entropy import entropy
from viz.figures.stages import vectors
from viz.figures.theme import LIGHT
from viz.figures.weights import matrix, singular
from viz.labels import tokens

RUN = translation()
SITE = RUN.of("decoder", "cross")[-1]
CAUSAL = RUN.of("decoder", "self")[0]
LONG = translation(
    ["<sos>", *(f"wort{index}" for index in range(38)), "<eos>"], ["<sos>", *(f"token{index}" for index in range(38)), "<eos>"]
)
ARABIC = translation(["<sos>", "أحب", "الكتاب", "<eos>"], ["<sos>", "我", "喜欢", "书", "<eos>"])
BEAM = replace(
    RUN,
    tree=(
        Node(0, -1, 5, "two", -0.25, -0.25, "kept"),
        Node(0, -1, 6, "three", -1.5, -1.5, "pruned"),
        Node(1, 0, 7, "dogs", -0.5, -0.75, "finished", 0),
        Node(1, 0, 8, "cats", -1.25, -1.5, "finished", 1),
    ),
)


def drawn(name: str, trace: Trace = RUN, choice: Choice | None = None, **options: object) -> Drawing:
    """One of the standard figures."""
    chosen = choice or Choice(trace.of("decoder", "cross")[-1], 1)
    return figure_called(trace, chosen, name).draw(Options(**options))  # type: ignore[arg-type]  # any option


def cells(sheet: Drawing, count: int) -> list[list[Box]]:
    """The cells of a map, which come after its color bar."""
    return grid_of(Drawn(sheet).boxes[-count:])


@pytest.mark.parametrize("colours", ["light", "dark", "grayscale"])
def test_every_cell_of_a_head_has_the_color_of_its_weight(colours: str) -> None:
    weights = SITE.head(1)
    found = cells(drawn("head", colours=colours), weights.size)
    expected = colour_of(weights, colours)  # type: ignore[arg-type]  # a scheme
    assert [[box.fill for box in row] for row in found] == expected.tolist()


def test_every_number_in_a_cell_is_the_weight_of_that_cell() -> None:
    sheet, weights = drawn("head"), SITE.head(1)
    boxes = cells(sheet, weights.size)
    numbers = {(word.x, word.y): word.text for word in Drawn(sheet).words if re.fullmatch(r"\d\.\d\d", word.text)}
    found = {
        (row, column): text
        for (x, y), text in numbers.items()
        for row, line in enumerate(boxes)
        for column, box in enumerate(line)
        if box.x < x < box.x + box.width and box.y < y < box.y + box.height
    }
    shown = {(int(row), int(column)): f"{weights[row, column]:.2f}" for row, column in np.argwhere(weights >= 0.045)}
    assert found == shown


def test_masked_cells_have_their_own_color_and_no_number() -> None:
    sheet = drawn("head", choice=Choice(CAUSAL, 2))
    masked = int((~CAUSAL.mask).sum())
    assert [box.fill for box in Drawn(sheet).boxes[-masked:]] == [LIGHT.masked] * masked


def test_every_head_of_the_atlas_has_its_weights() -> None:
    sheet = drawn("atlas")
    boxes = Drawn(sheet).boxes[64:]  # after the color bar
    at = 0
    for kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross")):
        for attention in RUN.of(*kind):
            for head in range(attention.heads):
                count = int(attention.mask.sum())
                own = [box.fill for box in boxes[at + 1 : at + 1 + count]]
                assert own == colour_of(attention.head(head))[attention.mask].tolist(), f"{attention.site} head {head}"
                at += 1 + count
    assert at == len(boxes)


@pytest.mark.parametrize("picture", ["head", "atlas"])
def test_a_lossless_image_has_the_same_colors_as_the_cells(picture: str) -> None:
    images = Drawn(drawn(picture, maps="image")).images
    image = images[0] if picture == "head" else images[-8 + 1]
    weights = SITE.head(1)
    times = [size // count for size, count in zip(image.shape, weights.shape, strict=False)]
    pixels = image[:: times[0], :: times[1]]
    assert [["#{:02x}{:02x}{:02x}".format(*pixel[:3]) for pixel in row] for row in pixels] == colour_of(weights).tolist()
    assert (pixels[..., 3] == 255).all()


def test_lines_lead_from_each_query_to_the_keys_of_its_weights() -> None:
    drawing = Drawn(drawn("lines"))
    weights = SITE.head(1)
    queries, keys = tokens.queries(RUN, SITE), tokens.keys(RUN, SITE)
    height = {word.text: word.y - 0.36 * word.size for word in drawing.words}
    expected = sorted(
        (round(0.12 + 1.3 * float(weights[row, column]), 3), queries[row], keys[column])
        for row, column in np.argwhere(weights >= 0.004)
    )

    def near(names: list[str], y: float) -> str:
        return min(names, key=lambda name: abs(height[name] - y))

    found = sorted(
        (float(look["stroke-width"]), near(queries, points[0, 1]), near(keys, points[-1, 1])) for points, look in drawing.paths
    )
    assert [line[1:] for line in found] == [line[1:] for line in expected]
    assert [line[0] for line in found] == pytest.approx([line[0] for line in expected], abs=0.0011)


def test_the_cells_of_a_mask_say_what_is_allowed() -> None:
    sheet = drawn("mask-causal", choice=Choice(CAUSAL, 0))
    boxes = cells(sheet, CAUSAL.mask.size)
    allowed = [[box.fill != LIGHT.masked for box in row] for row in boxes]
    assert allowed == CAUSAL.mask.tolist()
    assert Drawn(sheet).texts.count("✗") == int((~CAUSAL.mask).sum())


def curve(drawing: Drawn, ticks: dict[str, list[float]], line: int) -> np.ndarray:
    """The numbers of a line, from its places and those of the labels of the axes."""
    words = {word.text.replace("−", "-").replace(",", ""): word for word in drawing.words}
    points, _look = drawing.paths[line]
    across, down = ([words[f"{value:g}"] for value in ticks[axis]] for axis in ("x", "y"))
    scale = [(word.x, word.y - 0.36 * word.size) for word in (*across, *down)]
    x = np.interp(points[:, 0], [scale[0][0], scale[1][0]], ticks["x"], left=np.nan, right=np.nan)
    slope = (ticks["y"][1] - ticks["y"][0]) / (scale[3][1] - scale[2][1])
    y = ticks["y"][0] + (points[:, 1] - scale[2][1]) * slope
    return np.stack([x, y], axis=1)


def test_a_curve_of_positions_has_every_number_of_the_table() -> None:
    table = positions.sinusoids(41, 16)
    drawing = Drawn(chart(positions.curves(table, [2], dark=False), Options()))
    lines = [index for index, (points, _look) in enumerate(drawing.paths) if len(points) == 41]
    found = curve(drawing, {"x": [10, 40], "y": [-0.5, 0.5]}, lines[0])
    inside = ~np.isnan(found[:, 0])
    assert np.allclose(found[inside, 0], np.arange(1, 42)[inside], atol=0.05)
    assert np.allclose(found[:, 1], table[:, 2], atol=0.01)


def test_training_curves_stand_at_their_steps_on_the_logarithmic_axis() -> None:
    sentence = measured().losses
    figure = training.losses([50, 100, 200], np.array([3.0, 2, 1]), np.array([2.5, 2, 1.5]), STEPS, sentence, 0, dark=False)
    drawing = Drawn(chart(figure, Options()))
    words = {word.text: word for word in drawing.words}
    decade = words["100"].x - words["10"].x
    (validation,) = [points for points, look in drawing.paths if look["stroke"] == LIGHT.second and len(points) == 3]
    found = 10 ** (1 + (validation[:, 0] - words["10"].x) / decade)
    assert np.allclose(found, [50, 100, 200], rtol=0.01)
    assert {"training", "validation", "this sentence"} <= set(drawing.texts)


def test_bars_are_as_long_as_the_products_of_query_and_key() -> None:
    q, k = np.array([1.0, -2, 0.5, 3]), np.array([2.0, 1, -4, 0.25])
    boxes = Drawn(chart(arithmetic.products(q, k, dark=False), Options())).boxes
    for values, own in zip((q, k, q * k), np.array_split(np.array(boxes, object), 3), strict=True):
        heights = np.array([box.height for box in own])
        assert np.allclose(heights / heights.max(), np.abs(values) / np.abs(values).max(), atol=0.002)


def test_bars_that_say_how_wide_they_are_stand_beside_each_other() -> None:
    """Those of a histogram were one block: each was drawn as wide as a unit of the axis."""
    middles = np.arange(0.025, 1, 0.05)
    bars = go.Figure(go.Bar(x=middles, y=np.arange(1, 21), width=0.05))
    boxes = Drawn(chart(bars.update_xaxes(range=[0, 1]), Options())).boxes
    lefts, widths = np.array([box.x for box in boxes]), np.array([box.width for box in boxes])
    assert len(boxes) == 20
    assert np.allclose(lefts[1:], (lefts + widths)[:-1], atol=0.01)


def test_a_beam_tree_has_every_node_with_its_log_probability() -> None:
    sheet = drawn("tree", BEAM)
    texts = Drawn(sheet).texts
    assert {"two", "three", "dogs", "cats", "−0.25", "−1.50", "−0.75 · 1", "−1.50 · 2"} <= set(texts)
    edges = [look for _points, look in Drawn(sheet).paths]
    assert len(edges) == 2
    assert [look["stroke"] == LIGHT.accent for look in edges] == [False, True], "the shown hypothesis stands out"


@pytest.mark.parametrize("picture", ["head", "lines", "atlas", "mask", "tree", "positions-encoder"])
@pytest.mark.parametrize(("width", "size"), [(85.0, 7.0), (TWO_COLUMNS, 9.0), (60.0, 5.0)])
def test_a_figure_is_as_wide_and_its_text_as_large_as_asked_for(picture: str, width: float, size: float) -> None:
    sheet = drawn(picture, BEAM, width=width, font_size=size)
    drawing = Drawn(sheet)
    assert drawing.root.get("width") == f"{width:g}mm"
    sizes = {round(word.size / MM, 2) for word in drawing.words}
    assert min(sizes) >= SMALLEST_FONT - 0.01
    assert max(sizes) <= size + 1.01
    assert sheet.height < 260
    right = [word.x for word in drawing.words if not word.turned]
    assert min(right) >= 0
    assert max(right) <= width


def test_title_and_labels_are_left_out_where_nobody_wants_them() -> None:
    whole, bare = Drawn(drawn("head")).texts, Drawn(drawn("head", title=False, labels=False)).texts
    assert "Cross-attention, layer 3, head 2" in whole
    assert "zwei" in whole
    assert "young → dogs" in whole
    assert not {"Cross-attention, layer 3, head 2", "zwei", "young → dogs"} & set(bare)
    assert "key: encoder (German)" in bare


@pytest.mark.parametrize("picture", ["head", "lines", "atlas", "mask", "tree", "positions-encoder", "positions-encoder-curves"])
def test_grayscale_has_no_color_and_dark_none_of_the_light_scheme(picture: str) -> None:
    for colour in Drawn(drawn(picture, BEAM, colours="grayscale")).colours:
        assert len({colour[1:3], colour[3:5], colour[5:7]}) == 1, colour
    dark = Drawn(drawn(picture, BEAM, colours="dark")).colours
    assert not dark & {LIGHT.text, LIGHT.accent, LIGHT.background, LIGHT.masked, *LIGHT.weights}


def test_a_figure_of_a_dark_page_is_light_on_paper() -> None:
    first, second = (chart(positions.whole_table(positions.sinusoids(8, 8), dark), Options()) for dark in (False, True))
    assert Drawn(first).data == Drawn(second).data


def test_forty_tokens_in_one_column_are_as_small_as_may_be_and_the_figure_says_what_it_leaves_out() -> None:
    narrow, wide = drawn("head", LONG), drawn("head", LONG, width=TWO_COLUMNS)
    keys = [word for word in Drawn(narrow).words if re.fullmatch(r"wort\d+|<\w+>", word.text)]
    assert {round(key.size / MM, 2) for key in keys} == {SMALLEST_FONT}
    places = sorted(key.x for key in keys)
    assert min(np.diff(places)) >= SMALLEST_FONT * MM * 0.99, "no label covers the next"
    assert any("one token in 2 is labeled" in note for note in narrow.notes)
    assert not any("is labeled" in note for note in wide.notes)
    assert {f"wort{index}" for index in range(38)} <= set(Drawn(wide).texts)


def test_a_long_label_is_shortened_and_the_figure_says_so() -> None:
    trace = translation(["<sos>", "donaudampfschiff" * 3, "<eos>"], ["<sos>", "danube", "<eos>"])
    sheet = drawn("mask", trace, Choice(trace.of("encoder", "self")[0]), width=40.0)
    assert any("shortened" in note for note in sheet.notes)


def test_a_pdf_has_its_text_as_text_and_its_fonts_inside() -> None:
    data = writers.pdf(drawn("head"))
    (page,) = pypdf.PdfReader(io.BytesIO(data)).pages
    text = page.extract_text()
    for word in ("Cross-attention, layer 3, head 2", "spielen", "young → dogs", "key: encoder (German)", "0.96"):
        assert word in text, word
    assert float(page.mediabox.width) == pytest.approx(85 / MM, abs=0.01)
    for font in page["/Resources"]["/Font"].values():  # type: ignore[index]  # a dictionary of PDF
        (inner,) = font.get_object()["/DescendantFonts"]
        assert {"/FontFile2", "/FontFile3"} & inner.get_object()["/FontDescriptor"].get_object().keys()
    assert data == writers.pdf(drawn("head")), "the same figure always gives the same file"


def test_arabic_and_chinese_stay_text_and_what_no_font_has_is_said() -> None:
    sheet = drawn("head", ARABIC)
    svg = Drawn(sheet)
    assert any("الكتاب" in text for text in svg.texts)
    assert "喜欢 → 书" in svg.texts
    joined, apart = fonts.width("الكتاب", 7), sum(fonts.width(letter, 7) for letter in "الكتاب")
    assert joined < 0.95 * apart, "Arabic letters join"
    text = (pypdf.PdfReader(io.BytesIO(writers.pdf(sheet))).pages)[0].extract_text()
    assert set("الكتاب") <= set(text)
    if lost := fonts.missing("喜欢我书"):
        assert any(lost[0] in note for note in sheet.notes)
    else:
        assert "喜欢 → 书" in text
        assert sheet.notes == ()
    private = translation(["<sos>", "\U000e1234", "<eos>"], ["<sos>", "a", "<eos>"])
    assert drawn("head", private).notes == (), "what cannot be seen is written as U+XXXX"


def test_a_character_that_no_font_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_family", lambda character: fonts.BUNDLED if character < "\u0370" or character in "→−" else None)
    rare = translation(["<sos>", "字", "<eos>"], ["<sos>", "a", "<eos>"])
    (note,) = drawn("lines", rare).notes
    assert note == "No font on this computer has the character 字: install one, such as Noto Sans."


def test_a_png_has_twice_the_dots_that_printers_ask_for() -> None:
    sheet = drawn("lines")
    image = Image.open(io.BytesIO(writers.png(sheet)))
    assert image.width == pytest.approx(85 / 25.4 * 600, abs=1)
    assert image.height == pytest.approx(sheet.height / 25.4 * 600, abs=2)


SHADE = heads.Shade(np.array([0.5, np.nan, 2.0]), "entropy of heads")
HEADS = heads.dots(["a", "b", "c"], ["k", "l", "k"], np.arange(3.0), np.arange(3.0), ["", "first", ""], SHADE)


def of_every_page() -> dict[str, go.Figure]:
    """Plotly figures of the pages that are in no list of standard figures."""
    some = np.random.default_rng(0).normal(size=(12, 8))
    words = np.array([[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]], object)
    other = translation(seed=1)
    site = other.of("decoder", "cross")[-1]
    return {
        "difference": difference((RUN, SITE), (other, site), 0, np.arange(4), 5, dark=False),
        "dumbbells": dumbbells(["a", "b"], np.array([0.1, 0.9]), np.array([0.3, 0.2]), ("A", "B"), dark=False),
        "lens": lens(["x", "y"], ["1", "2"], words, np.full((2, 2, 2), 0.4), dark=False, title="position", query=1),
        "scatter": scatter(some[0], some[1], ["n"] * 8, ["k"] * 4 + ["l"] * 4, dark=False, titles=("sharp", "matters")),
        "heads": heads.scatter(HEADS, ["k", "l"], ("x", "y"), 1, dark=False, shade=SHADE),
        "prune": curves({"least": some[0], "most": some[1]}, 2, dark=False),
        "entropy": entropy(RUN, SITE, np.ones(12), np.full(12, 2.5), dark=False, query=3),
        "vectors": vectors(some, [f"t{row}" for row in range(12)], "position", "model", dark=False),
        "matrix": matrix(some, "down", "across", dark=False),
        "singular": singular(np.abs(some), 2, "product", dark=False),
        "wavelengths": positions.wavelength_curve(positions.wavelengths(32), dark=False, positions=50, counted="dimension"),
        "similarity": positions.similarity(positions.sinusoids(9, 8), dark=False),
        "row": arithmetic.row(np.ones(5) / 5, np.ones(5), list("abcde"), 2, dark=False),
    }


@pytest.mark.parametrize(("name", "figure"), of_every_page().items(), ids=of_every_page())
def test_every_figure_of_every_page_can_be_printed(name: str, figure: go.Figure) -> None:
    sheet = chart(figure, Options(), name)
    drawing = Drawn(sheet)
    titles = [axis.title.text for axis in figure.select_xaxes()] + [axis.title.text for axis in figure.select_yaxes()]
    titles.append(figure.layout.title.text)  # of its color bar
    assert {title for title in titles if title} | {name} <= set(drawing.texts)
    marks = sum(np.isfinite(np.asarray(each.z, float)).sum() for each in figure.data if each.type == "heatmap")
    assert len(drawing.boxes) >= marks
    assert math.isfinite(sheet.height)


def test_the_dots_of_heads_are_printed_in_the_colors_of_their_scale() -> None:
    sheet = chart(heads.scatter(HEADS, ["k", "l"], ("x", "y"), -1, dark=False, shade=SHADE), Options(), "heads")
    filled = [shape.fill for shape in sheet.shapes if isinstance(shape, Circle | Polygon)]
    assert filled[:2] == [LIGHT.card, LIGHT.card]  # of the legend: a color says how large the number is, not which kind it is
    assert filled[2:] == [LIGHT.weights[1], LIGHT.weights[-1], LIGHT.card]


def test_the_outline_of_the_selected_row_is_drawn() -> None:
    with_row = drawn("head", choice=Choice(SITE, 1, query=3))
    assert len(with_row.shapes) == len(drawn("head").shapes) + 1


@pytest.mark.parametrize(
    "wrong", [{"width": 3.0}, {"width": math.nan}, {"font_size": 4.0}, {"colours": "pink"}, {"maps": "fuzzy"}], ids=str
)
def test_options_that_nobody_can_meet_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadSetting):
        Options(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_a_figure_that_the_run_has_not_is_refused_with_the_names_of_those_it_has() -> None:
    with pytest.raises(BadSetting, match="head, lines, atlas, strips, candidates, network, mask"):
        figure_called(RUN, Choice(SITE), "tree")
    with pytest.raises(UnknownHead):
        standard_figures(RUN, Choice(SITE, 99))


def test_a_caption_names_model_sentence_site_head_and_link() -> None:
    figure = figure_called(RUN, Choice(SITE, 4), "head")
    said = caption(RUN, figure.title, "https://example.org/?model=x")
    for part in (
        "Cross-attention, layer 3, head 5",
        "German → English",
        "zwei junge hunde",
        "two young dogs",
        "https://example.org",
    ):
        assert part in said, part
    edited = replace(RUN, request={**RUN.request, "silence": ()})
    assert caption(edited, figure.title) in said
