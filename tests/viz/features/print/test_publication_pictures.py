"""Figures of what moves on the screen: strips, steps of a decode, the map of a network, a film. Every number is the run's."""

import io
import math
import re
from dataclasses import replace

import numpy as np
import pypdf
import pytest

from model.trace.types import Site, Trace
from tests import traces
from tests.viz.features.print.sheets import Drawn, colour_of
from tests.viz.features.training.films import STEPS, WHOLE, frames
from viz.features.print import writers
from viz.features.print.catalogue import Choice, figure_called, standard_figures
from viz.features.print.network_map import network
from viz.features.print.notes import TALLEST
from viz.features.print.options import Options
from viz.features.print.shapes import Drawing
from viz.features.training.filmstrip import Snapshot, filmstrip
from viz.figures.theme import LIGHT
from viz.labels import tokens

RUN = traces.translation()
LONG = traces.translation([f"wort{index}" for index in range(200)], [f"token{index}" for index in range(200)], layers=1, heads=1)


def drawn(name: str, trace: Trace = RUN, **options: object) -> Drawing:
    site = next(iter(trace.attention.values()))
    return figure_called(trace, Choice(site), name).draw(Options(**options))  # type: ignore[arg-type]  # any option


def test_every_token_of_a_strip_is_drawn_and_each_generated_one_with_its_probability() -> None:
    drawing = Drawn(drawn("strips", width=174.0))
    for strip in RUN.tokens.values():
        assert [text for text in drawing.texts if text in strip.texts][: len(strip)], strip.name
    expected = [f"{math.exp(step.chosen.log_probability):.0%}" for step in RUN.steps]
    assert [text for text in drawing.texts if re.fullmatch(r"\d+%", text)] == expected
    bars = [box.width for box in drawing.boxes if box.height == 0.5]
    texts = [word for word in drawing.words if word.text.endswith("%")]
    assert len(bars) == len(texts) == len(RUN.steps)


def test_the_strips_of_a_run_whose_target_was_given_have_no_probabilities() -> None:
    assert not [text for text in Drawn(drawn("strips", replace(RUN, steps=()))).texts if text.endswith("%")]


def test_every_step_has_its_likeliest_tokens_with_the_color_of_their_probabilities() -> None:
    drawing = Drawn(drawn("candidates", width=174.0, title=False))
    cells = [each for each in drawing.root.iter("{http://www.w3.org/2000/svg}rect") if float(each.attrib["height"]) > 3][1:]
    found = [each.attrib["fill"] for each in cells]
    expected = [[math.exp(one.log_probability) for one in step.candidates] for step in RUN.steps]
    assert found == colour_of(np.array(expected)).ravel().tolist()
    assert [text for text in drawing.texts if re.fullmatch(r"\d+\.\d%", text)] == [f"{p:.1%}" for row in expected for p in row]
    assert len([each for each in cells if each.get("stroke")]) == len(RUN.steps), "the chosen token of each step is framed"


def test_a_narrow_figure_lists_fewer_tokens_and_always_the_chosen_one() -> None:
    unlikely = replace(RUN.steps[0].candidates[4], id=9, text="rare", log_probability=-9.0)
    trace = replace(RUN, steps=(replace(RUN.steps[0], chosen=unlikely), *RUN.steps[1:]))
    texts = Drawn(drawn("candidates", trace, width=40.0)).texts
    assert "rare" in texts
    assert "word4" not in texts


@pytest.mark.parametrize("picture", ["strips", "candidates"])
def test_what_has_no_room_on_a_page_is_counted(picture: str) -> None:
    sheet = drawn(picture, LONG)
    assert sheet.height <= TALLEST + 2
    (note,) = [note for note in sheet.notes if "fit on the page" in note]
    count = int(note.split()[0])
    drawing = [text for text in Drawn(sheet).texts if text.startswith("token" if picture == "candidates" else ("wort", "token"))]
    assert count + len(drawing) == (199 if picture == "candidates" else 400)


def test_the_map_has_a_box_for_each_part_of_each_layer_and_an_arrow_to_each_that_reads_the_encoder() -> None:
    sheet = drawn("network", width=174.0)
    texts = Drawn(sheet).texts
    assert texts.count("Self-attention") == texts.count("Masked self-attention") == texts.count("Cross-attention") == 3
    assert texts.count("Layer 2") == 2
    arrows = list(Drawn(sheet).root.iter("{http://www.w3.org/2000/svg}polygon"))
    assert len(arrows) == 3
    points = [points for points, look in Drawn(sheet).paths if look["stroke"] == LIGHT.accent]
    (trunk,) = [each for each in points if each[0, 0] == each[1, 0]]
    branches = [each for each in points if each[0, 0] != each[1, 0]]
    assert len(branches) == 4, "from the encoder, and to each cross-attention"
    assert trunk[:, 1].min() <= min(each[0, 1] for each in branches)
    assert trunk[:, 1].max() >= max(each[0, 1] for each in branches)
    assert not sheet.notes


def test_equal_layers_of_a_deep_network_are_drawn_once_and_the_figure_says_so() -> None:
    deep = network(traces.translation(layers=40, heads=1), Options())
    assert deep.height <= TALLEST
    assert Drawn(deep).texts.count("Layer 1 – Layer 40") == 2
    assert any("drawn once" in note for note in deep.notes)


def test_the_map_of_a_network_with_one_stack_has_no_arrow() -> None:
    drawing = Drawn(drawn("network", traces.language_model()))
    assert not list(drawing.root.iter("{http://www.w3.org/2000/svg}polygon"))
    assert "Linear" in drawing.texts


def test_a_film_has_the_weights_of_the_head_at_every_snapshot() -> None:
    site = Site.parse("decoder.0.1.cross")
    shown = [Snapshot(f"step {frame.step}", frame.fed.at(site)) for frame in frames()]
    sheet = filmstrip(WHOLE, shown, 2, Options(width=174.0, title=False))
    boxes = Drawn(sheet).boxes[64:]  # after the color bar
    at = 0
    for one in shown:
        count = int(one.attention.mask.sum())
        fills = [box.fill for box in boxes[at + 1 : at + 1 + count]]
        assert fills == colour_of(one.attention.head(2))[one.attention.mask].tolist(), one.title
        at += 1 + count
    assert at == len(boxes)
    assert [text for text in Drawn(sheet).texts if text.startswith("step")] == [f"step {step}" for step in STEPS]


def test_a_film_of_many_snapshots_fits_on_a_page() -> None:
    one = WHOLE.at("decoder.0.1.cross")
    sheet = filmstrip(WHOLE, [Snapshot(f"After {step} steps", one) for step in range(120)], 0, Options())
    assert sheet.height <= TALLEST + 2


@pytest.mark.parametrize("picture", ["strips", "candidates", "network"])
@pytest.mark.parametrize("colours", ["grayscale", "dark"])
def test_the_colors_are_those_of_the_scheme(picture: str, colours: str) -> None:
    drawing = Drawn(drawn(picture, colours=colours))
    if colours == "grayscale":
        assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in drawing.colours)
    assert "#fcfbf9" not in drawing.colours


@pytest.mark.parametrize("picture", ["strips", "candidates", "network"])
def test_a_pdf_has_these_texts_as_text(picture: str) -> None:

    trace = traces.translation(["<sos>", "أحب", "<eos>"], ["<sos>", "Bücher", "<eos>"])
    text = pypdf.PdfReader(io.BytesIO(writers.pdf(drawn(picture, trace)))).pages[0].extract_text()
    assert {"strips": "Bücher", "candidates": "Bücher", "network": "Cross-attention"}[picture] in text


def test_a_run_without_a_decode_has_no_candidates() -> None:
    run = traces.encoder_only()
    assert "candidates" not in [figure.name for figure in standard_figures(run, Choice(run.at("encoder.0.0.self")))]
    assert tokens.stack("encoder") in Drawn(drawn("network", run)).texts
