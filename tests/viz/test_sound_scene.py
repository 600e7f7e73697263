"""The scene of a sound: what travels is what was heard and what the head did, and not more than is shown."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import soundfile

from model.trace.types import Array, Site, Trace
from tests import traces
from viz.canvas.scenes import attention, sound
from viz.canvas.wire.transport import PART_CACHE, WHOLE, unpack
from viz.labels.sounds import hearing
from viz.labels.tokens import listens
from viz.metrics import word_times

CROSS = Site("decoder", 0, 1, "cross")


@pytest.fixture(scope="module")
def heard() -> Trace:
    return traces.heard()


def part(header: dict[str, Any], name: str) -> dict[str, Array]:
    """A part of a scene, wherever it travels."""
    piece = PART_CACHE.piece(header["parts"][name]["name"], WHOLE)
    assert piece is not None
    return unpack(piece)[1]


def scene(trace: Trace, site: Site = CROSS, head: int = 2, query: int = -1) -> dict[str, Any]:
    return unpack(sound.scene(trace, site, head, query))[0]


def test_the_map_is_the_head_up_to_the_end_of_the_sound_and_the_rest_is_told(heard: Trace) -> None:
    header, weights = scene(heard), heard.at(CROSS).head(2)
    np.testing.assert_array_equal(part(header, "map")["weights"], weights[:, :65])
    np.testing.assert_allclose(header["beyond"], weights[:, 65:].sum(axis=1), atol=5e-5)
    assert header["block"] == [1, 1]
    assert header["seconds"] == pytest.approx(1.3)
    assert len(header["rows"]) == len(weights)


def test_the_spectrogram_is_the_one_that_was_read(heard: Trace) -> None:
    codes = part(scene(heard), "spectrogram")["codes"]
    assert heard.spectrogram is not None
    both = np.maximum(heard.spectrogram[:, 0:130:2], heard.spectrogram[:, 1:130:2])
    scaled = (both - both.min()) / (both.max() - both.min())
    np.testing.assert_allclose(codes / 255, scaled, atol=0.5 / 255 + 1e-6)


def test_the_sound_that_plays_is_the_one_that_was_heard(heard: Trace) -> None:
    samples, rate = soundfile.read(io.BytesIO(part(scene(heard), "wav")["bytes"].tobytes()))
    assert rate == 16_000
    assert heard.sound is not None
    np.testing.assert_allclose(samples, heard.sound, atol=1 / 32767)


def test_words_are_those_of_the_heads_that_the_folder_names(heard: Trace) -> None:
    wanted = word_times.words(heard, ((0, 1), (1, 2)), 65, 0.02, 3)
    told = scene(heard)["words"]
    assert [word["text"] for word in told] == ["and", "so,", "my", "friends,", "ask"]
    assert [word["start"] for word in told] == pytest.approx([one.start for one in wanted])
    assert [word["end"] for word in told] == pytest.approx([one.end for one in wanted])
    found = hearing(heard)
    assert found is not None
    assert sound.timed(heard, found, CROSS, 0).named


def test_without_named_heads_the_selected_one_tells_them(heard: Trace) -> None:
    trace = replace(heard, model={**heard.model, "spec": {**heard.model["spec"], "alignment": []}})
    found = hearing(trace)
    assert found is not None
    one, other = (sound.timed(trace, found, CROSS, head) for head in (0, 3))
    assert (one.heads, other.heads, one.named) == (((1, 0),), ((1, 3),), False)
    assert one.words == word_times.words(trace, ((1, 0),), 65, 0.02, 3)
    assert sound.timed(trace, found, Site("encoder", 0, 0, "self"), 0).words == ()


def test_a_site_that_looks_elsewhere_is_replaced_and_one_of_the_encoder_is_shown(heard: Trace) -> None:
    assert scene(heard, Site("decoder", 0, 0, "self"))["site"] == str(CROSS)
    encoder = scene(heard, Site("encoder", 0, 1, "self"))
    assert encoder["site"] == "encoder.0.1.self"
    assert part(encoder, "map")["weights"].shape == (65, 65)


def test_of_a_large_map_the_largest_weights_of_blocks_travel(heard: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    PART_CACHE.clear()
    monkeypatch.setattr(sound, "MOST_ROWS", 5)
    monkeypatch.setattr(sound, "MOST_COLUMNS", 20)
    header, weights = scene(heard), heard.at(CROSS).head(2)[:, :65]
    down, across = header["block"]
    pooled = part(header, "map")["weights"]
    assert pooled.shape == (-(-len(weights) // down), -(-65 // across))
    assert len(pooled) <= 5
    assert pooled.shape[1] <= 20
    assert pooled[1, 2] == weights[down : 2 * down, 2 * across : 3 * across].max()
    PART_CACHE.clear()


def test_moments_are_no_chips(heard: Trace) -> None:
    header, _blobs = unpack(attention.strips(heard, CROSS, -1))
    assert [strip["name"] for strip in header["strips"]] == ["target"]
    assert listens(heard)
    assert not listens(traces.translation())
    assert hearing(replace(heard, sound=None)) is None
