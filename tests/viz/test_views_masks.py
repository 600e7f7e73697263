"""The page Masks: what it draws and says for each kind of site, and the padding experiment."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from model.trace.types import Site
from tests.pages import MadeUpEngine, open_view, plain_words, scenes
from tests.traces import translation
from viz.views import mask_panels


def drawn(app: AppTest) -> dict[str, dict[str, Any]]:
    """What is drawn, by the name of the mask: the header of its scene, and which cells are allowed."""
    assert not app.get("plotly_chart"), "Plotly keeps the browser busy for seconds"
    found = {key.removeprefix("mask-"): header | {"open": blobs["there"]} for key, (header, blobs) in scenes(app).items()}
    for key, (_header, blobs) in scenes(app).items():
        assert np.array_equal(blobs["exact"], np.where(blobs["there"], 0.0, -np.inf)), key
    return found


def allowed(scene: dict[str, Any]) -> list[list[bool]]:
    return [list(map(bool, row)) for row in scene["open"]]


def signs(scene: dict[str, Any]) -> list[str]:
    return [sign for sign, _said in scene["signs"]]


LOWER = [[key <= query for key in range(12)] for query in range(12)]


def test_the_page_opens_on_decoder_self_attention_with_a_causal_mask_and_padding_that_shows_something() -> None:
    app = open_view("masks", MadeUpEngine(), site=str(mask_panels.opens_on(MadeUpEngine().trace).site))
    found = drawn(app)
    assert list(found) == ["causal", "both", "padding"], "the causal mask comes first, the combination beside it"
    assert allowed(found["causal"]) == allowed(found["both"]) == LOWER
    assert all(row == [True] * 12 + [False] * 4 for row in allowed(found["padding"]))
    assert "never to later ones" in plain_words(app)
    assert "The padding mask of the attention that reads the source: Cross-attention, layer 1." in plain_words(app)
    both = drawn(open_view("masks", MadeUpEngine(), site="decoder.0.0.cross"))["both"]
    assert both["axes"].replace("\u00a0", " ") == "query: decoder (English) ↓ · key: encoder (German) →"
    assert both["queries"][0].startswith("<sos>"), "the first query is on top"
    assert both["description"].startswith("Both combined: the mask of this layer.")
    assert not both.get("opens"), "no cell opens a calculation"
    assert app.metric[0].value == "exactly 0"


def test_the_same_masks_are_written_as_signs_or_as_what_is_added() -> None:
    app = open_view("masks", MadeUpEngine(), site="decoder.0.0.self")
    assert signs(drawn(app)["causal"]) == ["✗", "✓"]
    app.button_group(key="mask-form").set_value("additive").run()
    assert signs(drawn(app)["causal"]) == ["−∞", "0"]
    assert allowed(drawn(app)["causal"]) == LOWER


@pytest.mark.parametrize(
    ("site", "reason"),
    [("encoder.0.0.self", "the whole source is known"), ("decoder.0.0.cross", "nothing in it lies in the future")],
)
def test_a_site_without_causal_mask_says_why(site: str, reason: str) -> None:
    app = open_view("masks", MadeUpEngine(), site=site)
    assert set(drawn(app)) == {"both", "padding"}
    assert "Not used here" in plain_words(app)
    assert reason in plain_words(app)


def test_a_decoder_whose_library_combines_the_masks_is_not_said_to_use_none() -> None:
    site = Site("decoder", 0, 0, "self")
    combined = replace(translation().at(site), mask_causal=None)
    assert mask_panels.about_causal(combined).startswith("This run has no causal mask of its own here.")


def test_the_padding_mask_of_a_language_model_is_not_said_to_be_of_generated_keys() -> None:
    app = open_view("masks", MadeUpEngine(spec={"encoder": None, "decoder": {"positions": "learned"}}), site="decoder.0.0.self")
    assert "generated one by one" not in plain_words(app)
    assert "This text has no padding" in plain_words(app)
    assert not app.slider


def test_padding_is_run_beside_and_compared_in_numbers() -> None:
    engine = MadeUpEngine(wobble=2.0**-20)
    app = open_view("masks", engine, site="encoder.0.0.self")
    app.slider[0].set_value(20).run()
    assert not app.exception
    assert engine.asked[-1].source_pad_to == 20
    assert app.query_params["pad"] == "20"
    assert app.metric[0].value == "exactly 0"
    assert app.metric[1].value == "9.5·10⁻⁷", "2 to the power of -20"
    assert app.metric[2].value == "12 of 12"
    assert "no head that reads the source gives any weight to the padding" in plain_words(app)
    assert "rounding" in plain_words(app)
    assert all(row == [True] * 12 + [False] * 8 for row in allowed(drawn(app)["padding"]))
    assert len(allowed(drawn(app)["padding"])) == 20, "the masks are those of the padded run"


def test_the_lower_end_of_the_slider_takes_the_padding_away() -> None:
    app = open_view("masks", MadeUpEngine(), site="encoder.0.0.self", pad="20")
    assert app.slider[0].value == 20
    app.slider[0].set_value(12).run()
    assert app.query_params["pad"] == "12"
    assert not app.metric
    assert "Here nothing is padded, so every key is allowed" in plain_words(app)


def test_a_difference_beyond_rounding_is_not_called_rounding() -> None:
    app = open_view("masks", MadeUpEngine(wobble=0.5), pad="15")
    assert app.metric[1].value == "5.0·10⁻¹"
    assert "larger than rounding can explain" in plain_words(app)


def test_no_difference_at_all_is_not_called_rounding() -> None:
    app = open_view("masks", MadeUpEngine(wobble=0.0), pad="15")
    assert app.metric[1].value == "exactly 0"
    assert "down to the last digit of every logit" in plain_words(app)
    assert "rounding" not in plain_words(app)


def test_a_link_that_pads_too_far_is_answered_in_words() -> None:
    app = open_view("masks", MadeUpEngine(), pad="99")
    assert "source_pad_to: “99” is not accepted. Allowed: from 12 to 30" in plain_words(app)
    assert not app.metric
    assert app.slider[0].value == 30


def test_without_room_or_encoder_there_is_no_slider() -> None:
    full = open_view("masks", MadeUpEngine(max_source=12))
    assert not full.slider
    assert "no room for padding" in plain_words(full)
    alone = open_view("masks", MadeUpEngine(spec={"encoder": None, "decoder": {"positions": "learned"}}), site="decoder.0.0.self")
    assert not alone.slider
    assert "A language model continues right after its prompt" in plain_words(alone)


def test_the_site_can_be_chosen_and_the_link_follows() -> None:
    app = open_view("masks", MadeUpEngine(), site="encoder.0.0.self")
    assert app.selectbox[0].value == "encoder.0.0.self"
    assert [option.partition(",")[0] for option in app.selectbox[0].options] == [
        "Encoder self-attention",
        "Decoder self-attention",
        "Cross-attention",
    ]
    app.selectbox[0].set_value("decoder.0.0.self").run()
    assert app.query_params["site"] == "decoder.0.0.self"
    assert len(drawn(app)) == 3


def test_the_masks_had_no_tables_that_the_keyboard_reaches() -> None:
    app = open_view("masks", MadeUpEngine(), site="decoder.0.0.self")
    assert not app.dataframe, "a closed part costs nothing"
    app.session_state["part-masks"] = True
    app.run()
    causal, padding, both = (frame.value for frame in app.dataframe)
    assert (causal == both).all(axis=None)
    assert [[sign == "✓" for sign in row] for row in causal.to_numpy()] == LOWER
    assert (padding == "✓").all(axis=None)
    assert causal.index[1].startswith("2 ")


def blocks(block: Block) -> Iterator[Block]:
    """A block and all blocks in it."""
    yield block
    for child in block.children.values():
        if isinstance(child, Block):
            yield from blocks(child)


def test_a_card_without_a_mask_is_as_high_as_its_words() -> None:
    made = MadeUpEngine(max_source=12)
    bare = {site: replace(own, mask_padding=None) for site, own in made.trace.attention.items()}
    found = {}
    for name, engine in {"with": made, "without": replace(made, trace=replace(made.trace, attention=bare))}.items():
        app = open_view("masks", engine, site="encoder.0.0.self")
        named = [each.proto for each in blocks(app.main) if "-card-" in getattr(each.proto, "id", "")]
        boxes = {proto.id.split("-", 2)[2]: proto.height_config for proto in named}
        found[name] = "padding" in drawn(app), boxes["card-mask-padding"].use_stretch, boxes["card-mask-causal"].use_stretch
    assert found == {"with": (True, True, False), "without": (False, False, False)}
