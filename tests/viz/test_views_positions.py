"""The page Positions: the model's own encodings, the comparison, and what is said of them."""

import base64
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.trace.types import Array
from tests.pages import MadeUpEngine, figures, open_view, plain_words, scenes
from viz import canvas
from viz.figures.positions import sinusoids
from viz.i18n import translate

PAINTED = canvas.painted


@pytest.fixture(autouse=True)
def painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws what follows when the browser has painted the table."""
    monkeypatch.setattr(canvas, "painted", lambda _key: True)


def curve(figure: dict[str, Any]) -> Array:
    """The first curve of a figure, out of the base64 that the browser gets."""
    packed = figure["data"][0]["y"]
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])


def tables(app: AppTest) -> dict[str, Array]:
    """The numbers of the drawn tables."""
    return {key: blobs["exact"] for key, (_header, blobs) in scenes(app).items()}


def test_the_tables_come_before_what_needs_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "painted", PAINTED)
    app = open_view("positions", MadeUpEngine())
    assert list(tables(app)) == ["table-own", "table-paper", "alike-own", "alike-paper"]
    headers = {key: header for key, (header, _blobs) in scenes(app).items()}
    assert [key for key, header in headers.items() if header["first"]] == ["table-own"], "the rest follows when it is painted"
    assert headers["table-own"]["used"] == 12, "a line after the positions of the sentence"
    assert [header["square"] for header in headers.values()] == [False, False, True, True]
    assert headers["alike-own"]["bar"]["title"] == "dot product"
    assert headers["table-own"]["description"].startswith("Learned: this model.")
    assert not figures(app)
    assert not app.multiselect


def test_learned_positions_stand_beside_sinusoids_of_the_same_size() -> None:
    table = np.random.default_rng(5).normal(size=(30, 16)).astype(np.float32)
    app = open_view("positions", MadeUpEngine(tables={"positions/encoder": table}))
    drawn, shown = figures(app), tables(app)
    assert (len(drawn), len(shown)) == (3, 4)
    assert np.array_equal(shown["table-own"], table)
    assert shown["table-paper"] == pytest.approx(sinusoids(30, 16).astype(np.float32))
    assert [curve["name"] for curve in drawn[0]["data"]] == ["dimension 1", "dimension 3", "dimension 5"]
    assert curve(drawn[0]) == pytest.approx(table[:, 0])
    assert shown["alike-own"][3, 7] == pytest.approx(float(table[3].astype(float) @ table[7]), rel=1e-5)
    assert "30 vectors of 16 numbers" in plain_words(app)
    assert "for comparison, not part of this model" in plain_words(app)
    assert "the first 12 positions" in plain_words(app)


def test_sinusoidal_positions_stand_alone_with_their_formula() -> None:
    spec = {"encoder": {"positions": "sinusoidal"}, "decoder": {"positions": "sinusoidal"}}
    app = open_view("positions", MadeUpEngine(spec=spec))
    assert (len(figures(app)), len(tables(app))) == (2, 2)
    assert "comparison" not in plain_words(app)
    assert "The formula of these sinusoids" in plain_words(app)
    assert "Wavelengths range from 6.3 positions (dimension 1) to 19,869 (dimension 16)." in plain_words(app)
    assert [r"10000^{\,2i/d_{model}}" in formula.value for formula in app.latex] == [True] * 3


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("sinusoidal-column", "Sinusoidal, exponent counted by column"),
        ("sinusoidal-halves", "Sinusoidal, all sines before all cosines"),
    ],
)
def test_waves_of_another_formula_are_not_called_learned(kind: str, title: str) -> None:
    spec = {"encoder": {"positions": kind}, "decoder": {"positions": kind}}
    app = open_view("positions", MadeUpEngine(spec=spec))
    assert title in plain_words(app)
    assert "Learned" not in plain_words(app)
    assert "The formula of the sinusoids shown for comparison" in plain_words(app)


def test_a_model_without_positions_says_so() -> None:
    app = open_view("positions", MadeUpEngine(spec={"encoder": None, "decoder": {"positions": "none"}}))
    assert not figures(app)
    assert "adds no positional information to its embeddings" in plain_words(app)


def test_one_stack_needs_no_choice_and_two_have_one() -> None:
    alone = MadeUpEngine(spec={"encoder": None, "decoder": {"positions": "learned"}})
    assert not open_view("positions", alone).get("button_group")
    app = open_view("positions", MadeUpEngine(), site="encoder.0.0.self")
    choice: Any = app.get("button_group")[0]
    assert choice.options == ["Encoder", "Decoder"]


def test_the_encoder_has_its_own_table() -> None:
    own = {"positions/encoder": np.full((20, 8), 2, np.float32), "positions/decoder": np.zeros((30, 16), np.float32)}
    app = open_view("positions", MadeUpEngine(tables=own))
    assert np.array_equal(tables(app)["table-own"], own["positions/encoder"])


def test_dimensions_and_cosine_can_be_chosen() -> None:
    table = np.random.default_rng(5).normal(size=(30, 16)).astype(np.float32)
    app = open_view("positions", MadeUpEngine(tables={"positions/encoder": table}))
    app.multiselect[0].set_value([16]).run()
    app.toggle[0].set_value(True).run()
    assert not app.exception
    drawn = figures(app)
    assert [curve["name"] for curve in drawn[0]["data"]] == ["dimension 16"]
    assert curve(drawn[0]) == pytest.approx(table[:, 15])
    assert np.diag(tables(app)["alike-own"]) == pytest.approx(1)


def test_a_long_table_is_cut_and_said_to_be() -> None:
    app = open_view("positions", MadeUpEngine(tables={"positions/encoder": np.ones((300, 4), np.float32)}))
    assert tables(app)["table-own"].shape == (256, 4)
    assert "Only the first 256 positions are shown." in plain_words(app)


def test_the_positions_had_no_table_that_the_keyboard_reaches() -> None:
    table = np.random.default_rng(5).normal(size=(30, 16)).astype(np.float32)
    app = open_view("positions", MadeUpEngine(tables={"positions/encoder": table}))
    assert not app.dataframe
    app.session_state["part-positions"] = True
    app.run()
    own, paper = (frame.value for frame in app.dataframe)
    np.testing.assert_array_equal(own.to_numpy(), table.astype(np.float64).round(4))
    assert own.index[0] == 1
    np.testing.assert_array_equal(paper.to_numpy(), sinusoids(30, 16).round(4))


@pytest.mark.parametrize(
    ("picture", "first"), [("heads", "values"), ("values", "values"), ("curves", "curves"), ("similarity", "similarity")]
)
def test_big_mode_draws_one_picture_of_both_encodings(picture: str, first: str) -> None:
    table = np.random.default_rng(5).normal(size=(30, 16)).astype(np.float32)
    app = open_view("positions", MadeUpEngine(tables={"positions/encoder": table}), big="1", picture=picture)
    drawn, shown = figures(app), list(tables(app).values())
    assert len(drawn) + len(shown) == 2
    if first == "values":
        assert np.array_equal(shown[0], table)
    elif first == "curves":
        assert curve(drawn[0]) == pytest.approx(table[:, 0])
    else:
        assert shown[0][3, 7] == pytest.approx(float(table[3].astype(float) @ table[7]), rel=1e-5)


def test_an_open_table_and_what_was_chosen_were_lost_when_the_language_changed() -> None:
    app = open_view("positions", MadeUpEngine())
    app.session_state["part-positions"] = True
    app.run()
    app.segmented_control[0].set_value("decoder")
    app.toggle[0].set_value(True)
    app.run()
    assert len(app.dataframe) == 2
    app.query_params["lang"] = "de"
    with translate.speaking("de"):  # AppTest calls format functions outside of the session
        app.run()
        assert not app.exception, app.exception
        assert "Zeile" in plain_words(app)
        assert len(app.dataframe) == 2
        assert app.toggle[0].value
        assert app.segmented_control[0].value == "decoder"
