"""Scenes: the bytes that the browser draws hold the numbers of the trace."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model.errors import UnknownHead, UnknownSite
from model.trace.steps import Candidate
from model.trace.types import Array, Site, Trace
from tests import traces
from viz.canvas.scenes import attention as scene
from viz.canvas.wire.transport import encode, pack, unpack

CROSS = Site("decoder", 0, 2, "cross")


def part(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a part that travels in its scene."""
    return unpack(unpack(data)[1][name].tobytes())


def chips(data: bytes, strip: int) -> list[dict[str, object]]:
    header, _blobs = unpack(data)
    found: list[dict[str, object]] = header["strips"][strip]["tokens"]
    return found


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "äöü", "你好 👩‍👩‍👧"])
def test_a_scene_comes_back_as_it_was_packed(text: str) -> None:
    blobs: dict[str, Array] = {
        "codes": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "one": np.array([7], np.uint8),
        "exact": np.array([[0.1, 0.9]], np.float32),
    }
    data = pack({"text": text}, blobs)
    header, found = unpack(data)
    assert header["text"] == text
    for name, array in blobs.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_every_blob_starts_at_a_multiple_of_four_of_the_file() -> None:
    data = pack({"text": "x"}, {"a": np.array([1, 2, 3], np.uint8), "b": np.array([0.5], np.float32)})
    header, _blobs = unpack(data)
    start = 4 + int.from_bytes(data[:4], "little")
    assert [(start + -start % 4 + place["at"]) % 4 for place in header["blobs"].values()] == [0, 0]


def test_the_code_of_a_weight_keeps_small_weights_apart_from_zero() -> None:
    weights = np.linspace(0, 1, 10_001)
    code = encode(weights)
    assert code.dtype == np.uint8
    assert np.abs((code / 255.0) ** 2 - weights).max() < 0.004
    assert (code[0], code[-1]) == (0, 255)
    assert encode(np.array([1e-5]))[0] > 0


def test_the_atlas_holds_every_head_of_every_site() -> None:
    trace = traces.translation()
    data = scene.atlas(trace, CROSS, 4, 3)
    header, blobs = part(data, "overview")
    for site, attention in trace.attention.items():
        decoded = (blobs[f"weights/{site}"] / 255.0) ** 2
        np.testing.assert_allclose(decoded, attention.weights, atol=0.004)
    drawn = [(s["site"], len(s["names"])) for group in header["groups"] for s in group["sites"]]
    assert sorted(drawn) == sorted((str(site), attention.heads) for site, attention in trace.attention.items())
    np.testing.assert_array_equal(part(data, "exact")[1]["exact"], trace.at(CROSS).head(4))
    assert unpack(data)[0]["selection"] == {"site": str(CROSS), "head": 4, "query": 3}


def test_the_atlas_holds_masks_and_equal_ones_once() -> None:
    trace = traces.translation(["<sos>", "hunde", "spielen", "<eos>"])
    header, blobs = part(scene.atlas(trace, CROSS, 0, -1), "overview")
    for group in header["groups"]:
        for site in group["sites"]:
            np.testing.assert_array_equal(blobs[site["mask"]].astype(bool), trace.at(site["site"]).mask)
    assert sum(name.startswith("mask/") for name in blobs) == 3


def test_the_atlas_names_axes_rows_and_passes() -> None:
    header, _blobs = part(scene.atlas(traces.twice(), Site("decoder", 1, 0, "cross"), 0, -1), "overview")
    encoder, decoder, cross = header["groups"]
    assert (cross["queryAxis"], cross["keyAxis"]) == ("query: decoder (English)", "key: encoder (German)")
    assert cross["queries"][2] == "young → dogs"
    assert [site["label"] for site in encoder["sites"]] == ["L1", "L2"]
    assert [site["label"] for site in decoder["sites"]] == ["P1 L1", "P1 L2", "P2 L1", "P2 L2"]


def test_a_written_chip_stands_for_the_row_that_wrote_it() -> None:
    trace = traces.translation()
    source, target = (chips(scene.strips(trace, CROSS, 2), i) for i in (0, 1))
    assert [chip["row"] for chip in source] == list(range(len(source)))
    assert [chip["row"] for chip in target] == list(range(-1, len(target) - 1))
    header, _blobs = unpack(scene.strips(trace, CROSS, 2))
    assert header["queryStrip"] == "target"
    assert [strip["title"] for strip in header["strips"]] == ["Source (German)", "Generated (English)"]
    assert target[header["query"] + 1]["label"] == "dogs"


def test_a_written_chip_carries_its_probability_and_the_alternatives() -> None:
    trace = traces.translation()
    target = chips(scene.strips(trace, CROSS, -1), 1)
    assert "probability" not in target[0]
    for step, chip in zip(trace.steps, target[1:], strict=True):
        assert chip["probability"] == pytest.approx(math.exp(step.chosen.log_probability))
        assert [c["probability"] for c in chip["candidates"]] == pytest.approx(  # type: ignore[attr-defined]
            [math.exp(c.log_probability) for c in step.candidates]
        )
        assert [c["chosen"] for c in chip["candidates"]] == [True, False, False, False, False]  # type: ignore[attr-defined]


def test_a_token_that_was_drawn_against_the_odds_is_listed_too() -> None:
    trace = traces.translation()
    unlikely = Candidate(999, "rare", -7.0)
    drawn = replace(trace, steps=(replace(trace.steps[0], chosen=unlikely), *trace.steps[1:]))
    candidates = chips(scene.strips(drawn, CROSS, -1), 1)[1]["candidates"]
    assert candidates[-1] == {"id": 999, "text": "rare", "probability": math.exp(-7.0), "chosen": True}  # type: ignore[index]
    assert sum(c["chosen"] for c in candidates) == 1  # type: ignore[attr-defined]


def test_a_language_model_has_one_strip_that_it_continues() -> None:
    trace = traces.language_model(prompt=4)
    site = Site("decoder", 0, 1, "self")
    header, _blobs = unpack(scene.strips(trace, site, 5))
    (strip,) = header["strips"]
    assert strip["title"] == "German: prompt and continuation"
    assert [chip.get("step") for chip in strip["tokens"]] == [None] * 4 + list(range(9))
    assert [chip["row"] for chip in strip["tokens"]] == list(range(-1, 12))


def test_an_encoder_has_nothing_written() -> None:
    trace = traces.encoder_only()
    header, _blobs = unpack(scene.player(trace, Site("encoder", 0, 0, "self"), 0, -1))
    assert not header["decodes"]
    assert not header["strips"][0]["written"]
    assert [chip["row"] for chip in header["strips"][0]["tokens"]] == list(range(12))


def test_a_given_target_is_called_so() -> None:
    trace = traces.translation()
    forced = replace(trace, request={**trace.request, "target": "two dogs"})
    header, _blobs = unpack(scene.strips(forced, CROSS, -1))
    assert header["strips"][1]["title"] == "Forced target (English)"


def test_lines_and_player_hold_exact_weights() -> None:
    trace = traces.translation()
    _header, line_blobs = part(scene.lines(trace, CROSS, 6, -1), "exact")
    np.testing.assert_array_equal(line_blobs["exact"], trace.at(CROSS).head(6))
    header, _blobs = unpack(scene.player(trace, CROSS, 6, 4))
    _header, blobs = part(scene.player(trace, CROSS, 6, 4), "heads")
    np.testing.assert_array_equal(blobs["exact"], trace.at(CROSS).weights)
    np.testing.assert_array_equal(blobs["mask"].astype(bool), trace.at(CROSS).mask)
    assert (header["head"], header["step"], header["decodes"]) == (6, 4, True)


@pytest.mark.parametrize("query", [-1, -5, 12, 900])
def test_a_row_that_is_not_there_is_no_selection(query: int) -> None:
    trace = traces.translation()
    assert unpack(scene.atlas(trace, CROSS, 0, query))[0]["selection"]["query"] == -1
    assert unpack(scene.lines(trace, CROSS, 0, query))[0]["query"] == -1
    assert unpack(scene.strips(trace, CROSS, query))[0]["query"] == -1


def test_what_is_not_there_is_refused_in_words() -> None:
    trace = traces.translation()
    with pytest.raises(UnknownHead, match=r"no head 8 at decoder\.0\.2\.cross: its heads are numbered from 0 to 7"):
        scene.atlas(trace, CROSS, 8, -1)
    with pytest.raises(UnknownHead, match="no head 9"):
        scene.lines(trace, CROSS, 9, -1)
    with pytest.raises(UnknownHead, match="no head -1"):
        scene.player(trace, CROSS, -1, -1)
    with pytest.raises(UnknownSite, match=r"no attention layer “decoder\.0\.9\.cross”"):
        scene.strips(trace, Site("decoder", 0, 9, "cross"), -1)


def test_hostile_text_travels_as_text() -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    trace = traces.translation(["<sos>", hostile, "a\x00b", "\ud800", "<eos>"])
    source = chips(scene.strips(trace, CROSS, -1), 0)
    assert source[1]["text"] == hostile.replace(" ", "␣")
    assert source[2]["text"] == "a␀b"
    assert source[3]["text"] == "U+D800"


def test_another_run_is_told_apart() -> None:
    def run(trace: Trace) -> str:
        header, _blobs = unpack(scene.player(trace, CROSS, 0, -1))
        return str(header["run"])

    trace = traces.translation()
    assert run(trace) == run(traces.translation())
    assert run(trace) != run(replace(trace, request={**trace.request, "seed": 1}))
    assert run(trace) != run(traces.translation(seed=1))
