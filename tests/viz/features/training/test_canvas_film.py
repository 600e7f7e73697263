"""The scene of the film: the bytes that the browser draws hold the numbers of every snapshot's run."""

import math
from typing import Any

import numpy as np
import pytest

from model.errors import UnknownHead
from model.trace.types import Array, Site
from tests.viz.features.training.films import STEPS, WHOLE, frames, measured
from viz.canvas import fields_of
from viz.canvas.wire.transport import encode, unpack
from viz.features.training.film_scene import scene as film
from viz.features.training.view import MEASURES
from viz.metrics.teacher_forcing import fed, surprise

CROSS = Site("decoder", 0, 1, "cross")


def told(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """A scene's header with that of its overview, and the arrays of both parts."""
    header, blobs = unpack(data)
    (overview, arrays), (_header, exact) = (unpack(blobs[name].tobytes()) for name in ("overview", "exact"))
    return overview | header, arrays | {"exact": exact["exact"], "mask": exact["mask"]}


def test_the_scene_holds_every_head_of_every_snapshot() -> None:
    header, blobs = told(film(frames(), WHOLE, measured(), CROSS, 2, 4, 3))
    for number, frame in enumerate(frames()):
        for site, attention in frame.fed.attention.items():
            np.testing.assert_array_equal(blobs[f"weights/{site}"][number], encode(attention.weights))
        np.testing.assert_array_equal(blobs["exact"][number], frame.fed.at(CROSS).head(2))
        np.testing.assert_allclose(blobs["probability"][number], np.exp(-surprise(frame.fed, fed(WHOLE).ids)), rtol=1e-6)
    assert header["steps"] == list(STEPS)
    assert (header["frame"], header["selection"]) == (3, {"site": str(CROSS), "head": 2, "query": 4})


def test_the_scene_holds_the_measures_of_the_selected_head() -> None:
    found = measured()
    header, blobs = told(film(frames(), WHOLE, found, CROSS, 2, -1, 0))
    column = found.heads.index((CROSS, 2))
    for number, name in enumerate(MEASURES):
        np.testing.assert_allclose(blobs["measures"][:, number], found.values[name], rtol=1e-6)
    assert header["column"] == column


def test_each_frame_says_what_it_wrote_and_lost() -> None:
    header, _blobs = told(film(frames(), WHOLE, measured(), CROSS, 0, -1, 0))
    assert [frame["name"] for frame in header["frames"]][:2] == ["Before the first step", "After 3 steps"]
    for frame, said in zip(frames(), header["frames"], strict=True):
        assert said["loss"] == pytest.approx(surprise(frame.fed, fed(WHOLE).ids).mean())
        assert said["perplexity"] == pytest.approx(math.exp(said["loss"]))
        assert frame.own is not None
        assert [token["text"] for token in said["own"]] == list(frame.own.tokens["target"].texts[1:])
        assert [token["probability"] for token in said["own"]] == [math.exp(s.chosen.log_probability) for s in frame.own.steps]
    assert [token["text"] for token in header["fed"]] == list(WHOLE.tokens["target"].texts)


def test_rows_are_called_after_the_tokens_that_all_were_fed() -> None:
    header, _blobs = told(film(frames(), WHOLE, measured(), CROSS, 0, -1, 0))
    cross = next(group for group in header["groups"] if group["title"] == "Cross-attention")
    assert (cross["queries"][0], cross["queries"][-1]) == ("<sos> → two", ". → <eos>")


def test_the_same_film_is_known_again_whatever_is_selected() -> None:
    def name(head: int, at: int) -> str:
        return str(told(film(frames(), WHOLE, measured(), CROSS, head, -1, at))[0]["film"])

    assert name(0, 0) == name(2, 3)
    assert name(0, 0) != told(film(frames()[1:], WHOLE, measured(), CROSS, 0, -1, 0))[0]["film"]


def test_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownHead):
        film(frames(), WHOLE, measured(), CROSS, 7, -1, 0)


def test_a_snapshot_that_was_chosen_arrives() -> None:
    assert fields_of({"snapshot": 40, "at": 1.5}) == {"snapshot": 40}
    assert fields_of({"snapshot": "40", "head": -7}) == {}
