"""The pages show what a model of today does otherwise: rotary positions, and weights in tiles."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from model.engine.local import CHECKPOINTS
from tests import folders, pictures, recorded_folders
from tests.app.visiting import Visitor
from viz import canvas

MODEL = {"model": "captions-lm", "text": "a man in a blue shirt is", "decode": "greedy", "max": "6"}


RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def small(text: str) -> float:
    """The number that the page writes as 4·10⁻⁷."""
    return float(text.translate(RAISED).replace("·10", "e"))


def told(visitor: Visitor) -> str:
    return " ".join(part.value for part in (*visitor.app.markdown, *visitor.app.caption)).replace("\\", "")


def test_positions_show_the_score_of_this_run_and_that_only_the_distance_counts() -> None:
    visitor = Visitor("positions", **MODEL, site="decoder.0.1.self", head="2", query="6", key="1")
    assert visitor.problems == []
    assert "Each head rotates 16 columns of its queries and keys in pairs: the first pair once in 6.3 positions" in told(visitor)
    assert "The dot is this run: 5 positions apart" in told(visitor)
    moved = re.search(r"the score stays the same: largest difference ([^.]+)\.", told(visitor))
    assert moved is not None
    assert small(moved[1]) < 1e-12
    visitor.choose("key", 6)
    assert visitor.url["key"] == "6"
    assert "The dot is this run: 0 positions apart" in told(visitor)


@pytest.mark.parametrize("model", [MODEL, {"model": "multi30k-de-en", "text": "Zwei Hunde spielen im Schnee."}])
def test_a_head_in_tiles_is_the_head_that_ran(model: dict[str, str]) -> None:
    visitor = Visitor("step", **model, clock="computation", stage="decoder.0.0.self/weights")
    assert "In tiles" not in told(visitor)
    visitor.app.session_state["tiles"] = True
    visitor.go("step")
    assert visitor.problems == []
    found = re.search(r"Largest difference between these contexts and those of the run: ([^.]+)\.", told(visitor))
    assert found is not None
    assert small(found[1]) < 1e-5
    assert "skipped: all of" in told(visitor)


@pytest.mark.parametrize("stage", ["keys", "values"])
def test_inside_the_network_shared_keys_are_said_to_be_shared(stage: str) -> None:
    visitor = Visitor("step", **MODEL, clock="computation", stage=f"decoder.0.2.self/{stage}")
    assert "Every 3 heads share theirs: heads 1 to 3 have the same ones" in told(visitor)
    visitor = Visitor("step", model="wikitext2-lm", text="The film", clock="computation", stage=f"decoder.0.1.self/{stage}")
    assert "share theirs" not in told(visitor)


@pytest.mark.parametrize("model", [MODEL, {"model": "multi30k-de-en", "text": "Zwei Hunde spielen im Schnee."}])
def test_the_cache_grows_and_saves(model: dict[str, str]) -> None:
    visitor = Visitor("step", **model, clock="token")
    assert "A later token needs the keys" not in told(visitor)
    visitor.app.session_state["cache"] = True
    visitor.app.session_state["cache-measured"] = True
    visitor.go("step")
    assert visitor.problems == []
    assert ("query heads share key" in told(visitor)) == (model is MODEL)
    assert ("offer-shared" in [button.key for button in visitor.app.button]) == (model is not MODEL)
    assert "The maps are the same" in told(visitor)
    found = re.search(r"largest difference of a weight ([^,]+),", told(visitor))
    assert found is not None
    assert small(found[1]) < 1e-5
    ways = visitor.app.dataframe[0].value["numbers"]
    widths = (64, 192, 32, 72) if model is MODEL else (ways.iloc[0],) * 2
    assert tuple(ways.iloc[: len(widths)]) == widths
    table = visitor.app.dataframe[1].value
    each, all_ = table["bytes of each"], table["bytes"]
    assert (each * table["key and value heads"] == all_).all()
    if model is not MODEL:
        visitor.press("offer-shared")
        assert visitor.url["model"] == "captions-lm"


@pytest.mark.parametrize(("page", "part"), [("step", "ways"), ("step", "linear"), ("masks", "sinks")])
def test_a_link_opens_a_part_of_a_page(page: str, part: str) -> None:
    said = told(Visitor(page, **MODEL, site="decoder.0.1.self", open=part))
    titles = {"ways": "A later token needs the keys", "linear": "another map for the same queries", "sinks": "layer by layer"}
    assert [name for name, title in titles.items() if title in said] == [part]


def test_cost_over_length_and_linear_attention() -> None:
    visitor = Visitor("step", **MODEL, clock="token", site="decoder.0.1.self", head="2")
    visitor.app.session_state["length"] = True
    visitor.go("step")
    assert visitor.problems == []
    even = re.search(r"From token ([\d,]+) on, attention costs more", told(visitor))
    assert even is not None
    counts = next(frame.value for frame in visitor.app.dataframe if "all other operations" in frame.value)
    assert list(counts["all other operations"])[:2] == ["1,165,824,000", "11,658,240,000"]
    folder = CHECKPOINTS / "captions-lm"
    stack = json.loads((folder / "spec.json").read_text())["spec"]["decoder"]
    stored = load_file(folder / "model.safetensors")
    weights = [array for name, array in stored.items() if array.ndim == 2 and "embedding" not in name]
    tokens, width = int(even[1].replace(",", "")), stack["attention"]["heads"] * stack["attention"]["head_dim"]
    attention = 4 * width * stack["layers"] * tokens * (tokens + 1) / 2
    assert attention == pytest.approx(2 * tokens * sum(array.size for array in weights), rel=1e-3)
    maps = [
        chart
        for chart in visitor.app.get("bidi_component")
        if "length-linear" in chart.proto.id or "length-softmax" in chart.proto.id
    ]
    assert len(maps) == 2


def test_a_closed_token_changes_nothing_that_it_cannot_reach() -> None:
    visitor = Visitor("masks", **MODEL, site="decoder.0.1.self")
    visitor.app.session_state["mask-kinds"] = True
    visitor.go("masks")
    kinds = next(frame.value for frame in visitor.app.dataframe if "keys per query, at most" in frame.value)
    assert set(kinds["mask"]) == {"causal: itself and all before it"}
    count = int(kinds["keys per query, at most"].iloc[0])
    visitor.app.selectbox(key="mask-made").set_value("window")
    visitor.app.slider(key=f"mask-size-{count}").set_value(3)
    visitor.go("masks")
    visitor.press("mask-run")
    kinds = next(frame.value for frame in visitor.app.dataframe if "keys per query, at most" in frame.value)
    assert set(kinds["mask"]) == {"sliding window of width 3: itself and the 2 before it"}
    assert "already has edits" in told(visitor)
    visitor.app.session_state["mask-proved"] = True
    visitor.go("masks")
    assert visitor.problems == []
    found = re.search(r"cannot reach, according to the masks: (\d+) of (\d+)", told(visitor))
    assert found is not None
    layers = len(kinds)
    assert int(found[2]) == layers * count
    assert int(found[1]) == sum(max(0, count - 1 - 2 * layer) for layer in range(1, layers + 1)), "two tokens more in each layer"
    assert "Largest change there: exactly 0." in told(visitor)


def test_the_first_token_can_be_closed() -> None:
    visitor = Visitor("masks", **MODEL, site="decoder.0.1.self")
    assert "The first token’s share" not in told(visitor)
    visitor.app.session_state["sinks"] = True
    visitor.go("masks")
    assert "The first token’s share" in told(visitor)
    assert "Learned sinks" not in told(visitor)
    visitor.press("sink-closed")
    assert visitor.problems == []
    assert visitor.url["edit"].startswith("forbid")


@pytest.mark.parametrize("name", ["mistral", "gemma2", "gpt_oss"])
def test_windows_and_sinks_of_folders(shelf: Path, name: str) -> None:
    if name in folders.SETTINGS:
        folders.save(shelf / name, name)
    else:
        recorded_folders.saved(shelf / name, name)
    visitor = Visitor("masks", model=name, text="4 6 5 7 8 9", max="4")
    visitor.app.session_state["mask-kinds"] = visitor.app.session_state["sinks"] = True
    visitor.go("masks")
    assert visitor.problems == []
    kinds = next(frame.value for frame in visitor.app.dataframe if "keys per query, at most" in frame.value)
    assert any("sliding window of width 4" in kind for kind in kinds["mask"]), list(kinds["mask"])
    assert ("Learned sinks" in told(visitor)) == (name == "gpt_oss")
    visitor.app.session_state["mask-proved"] = True
    visitor.go("masks")
    assert visitor.problems == []
    assert "exactly 0." in told(visitor)
    visitor.go("step")
    visitor.app.session_state["cache"] = True
    visitor.go("step")
    assert visitor.problems == []
    assert "a window of 4 tokens" in told(visitor)


def test_latents_are_what_deepseek_keeps(shelf: Path) -> None:
    own: Any = recorded_folders.saved(shelf / "deepseek_v3", "deepseek_v3")[0]
    visitor = Visitor("step", model="deepseek_v3", text="4 6 5", max="4")
    visitor.app.session_state["cache"] = visitor.app.session_state["length"] = True
    visitor.go("step")
    assert visitor.problems == []
    width = own.config.kv_lora_rank + own.config.qk_rope_head_dim
    assert f"one latent of width {width}," in told(visitor)
    ways = visitor.app.dataframe[0].value["numbers"]
    assert ways.iloc[0] == width
    assert len(ways) == 3, "it keeps a latent already"
    table = visitor.app.dataframe[1].value
    assert (table["bytes of each"] == 4 * width * table["tokens kept"]).all()
    assert "offer-latents" not in {button.key for button in visitor.app.button}
    visitor.app.session_state["cache"] = visitor.app.session_state["length"] = False
    visitor.app.session_state["latents"] = True
    visitor.go("step")
    assert visitor.problems == []
    assert f"{width} numbers of each token are kept in this layer." in told(visitor)
    visitor = Visitor("step", model="deepseek_v3", text="4 6 5", max="4", clock="computation", stage="decoder.0.0.self/latents")
    assert visitor.problems == []
    assert "The keys and values of all heads are made from this latent" in told(visitor)


def test_the_slopes_of_alibi_and_what_deberta_adds_without_words_are_curves(shelf: Path) -> None:
    recorded_folders.saved(shelf / "bloom", "bloom")
    visitor = Visitor("positions", model="bloom", text="4 6 5", max="2")
    assert visitor.problems == []
    assert "its slope, which is fixed, times the distance between query and key (ALiBi)" in told(visitor)
    recorded_folders.saved_deberta(shelf / "deberta")
    visitor = Visitor("positions", model="deberta", text="4 6 5")
    assert visitor.problems == []
    assert "These curves are the part that is the same for all words" in told(visitor)


@pytest.mark.parametrize(
    ("page", "part", "key", "model"),
    [
        ("positions", "", "rotary", "captions-lm"),
        ("masks", "mask-kinds", "window", "sinks.trace.safetensors"),
        ("masks", "sinks", "sinks", "sinks.trace.safetensors"),
        ("step", "cache", "shared", "captions-lm"),
    ],
)
def test_a_page_opens_what_has_the_mechanism_that_the_model_lacks(
    page: str, part: str, key: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canvas, "painted", lambda _key: True)  # the offer of Positions comes after its table
    visitor = Visitor(page, model="wikitext2-lm", text="The film was", decode="greedy", max="2", **({"open": part} if part else {}))
    visitor.press(f"offer-{key}")
    assert visitor.problems == []
    assert (visitor.url["model"], visitor.url.get("open", "")) == (model, part)
    assert f"offer-{key}" not in {button.key for button in visitor.app.button}


def test_the_share_of_registers_is_that_of_their_columns(shelf: Path) -> None:
    pictures.saved_with_processor(shelf / "dinov2_with_registers", "dinov2_with_registers")
    visitor = Visitor("masks", model="dinov2_with_registers", open="sinks")
    assert visitor.problems == []
    assert "Registers are learned tokens without a patch (4 here)." in told(visitor)


def test_a_model_without_latents_offers_a_recorded_run_that_has_some() -> None:
    visitor = Visitor("step", **MODEL, open="cache")
    visitor.press("offer-latents")
    assert (visitor.url["model"], visitor.url["open"]) == ("latents.trace.safetensors", "latents")
    assert visitor.problems == []
    assert "12 numbers of each token are kept in this layer. The last 4 of them are rotated" in told(visitor)
    assert "would be 80, more by a factor of 6.7." in told(visitor)


def test_pages_of_a_run_without_cache_or_tiles_offer_a_model_that_has_them() -> None:
    recorded = {"model": "latents.trace.safetensors"}
    visitor = Visitor("step", **recorded)
    assert "offer-cache" in [button.key for button in visitor.app.button]
    visitor.app.button("offer-cache").click().run()
    assert visitor.problems == []
    assert "A later token needs the keys" in told(visitor)
    visitor = Visitor("step", **recorded, clock="computation", stage="decoder.0.0.self/weights")
    visitor.app.button("offer-tiles").click().run()
    assert visitor.problems == []
    assert "A fused kernel never stores all weights" in told(visitor)
