"""The moving picture of a token: its numbers are the run's, and its shapes compute each other, in float64, without the network."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from model.trace import stages
from model.trace.types import Array, Trace
from tests import traces
from tests.runs import SPECS, checkpoint, request, traced
from viz.canvas.scenes import motion
from viz.canvas.scenes.motion import Followed
from viz.canvas.wire.transport import unpack

HEAD = 1


@cache
def made(name: str) -> Trace:
    return traced(checkpoint(SPECS[name]), request(SPECS[name]))


def pictured(trace: Trace, stack: str = "", query: int = -1, head: int = HEAD) -> tuple[dict[str, Any], dict[str, Array], Followed]:
    """Header and numbers of the picture of a run."""
    walk = stages.walk(trace)
    rows = motion.rows(trace, stack, query)
    candidates = tuple((id_, f"w{id_}") for id_ in range(3)) if trace.logits is not None else ()
    follow = Followed(rows, head, candidates, (), -1, tuple((each.name, "") for each in walk))
    header, blobs = unpack(motion.part(trace, walk, follow).data)
    assert set(header) == {"blobs"}
    return motion.header(trace, walk, follow), {name: blob.astype(np.float64) for name, blob in blobs.items()}, follow


def named(trace: Trace, group: dict[str, Any]) -> dict[str, str]:
    """The blobs of a group of stages by the names of the stages."""
    walk = stages.walk(trace)
    return {walk[at].name: str(at) for at in group["stages"]}


@pytest.mark.parametrize("name", [name for name in SPECS if name != "memory"])
def test_every_stage_belongs_to_one_group_and_its_numbers_are_those_of_the_followed_row(name: str) -> None:
    trace = made(name)
    walk = stages.walk(trace)
    header, blobs, follow = pictured(trace)
    assert [at for group in header["groups"] for at in group["stages"]] == list(range(len(walk)))
    for at, stage in enumerate(walk):
        recorded, row = stages.recorded(trace, stage), follow.rows[motion.stack_of(trace, stage)]
        if stage.name in ("tokens", "ids", "chosen"):
            assert str(at) not in blobs
        elif stage.name not in (*stages.ATTENTION, *stages.OUTPUT):
            assert recorded is not None
            np.testing.assert_array_equal(blobs[str(at)][0], recorded[row].astype(np.float64), err_msg=str(stage))
        else:
            assert str(at) in blobs, stage


@pytest.mark.parametrize("name", [name for name in SPECS if name != "memory"])
def test_the_shapes_of_a_sublayer_compute_each_other(name: str) -> None:
    trace = made(name)
    header, blobs, _follow = pictured(trace)
    met = 0
    for group in header["groups"]:
        at = named(trace, group)
        if group["kind"] == "attention":
            keys, values, scores, weights = (blobs[at[each]] for each in ("keys", "values", "scores", "weights"))
            masked = np.isneginf(blobs[at["mask"]])
            assert group["others"] == "", "a short text has few keys: all are shown"
            exponentials = np.where(masked, 0.0, np.exp(np.where(masked, 0.0, scores)))
            np.testing.assert_allclose(weights, exponentials / exponentials.sum(), atol=1e-5)
            np.testing.assert_allclose(blobs[at["context"]][group["head"]], weights @ values, atol=1e-5)
            spec = trace.model["spec"][group["stack"]]
            if spec["positions"] != "relative":  # T5 adds learned numbers to the products
                products = keys @ blobs[at["queries"]][0]
                scale = np.linalg.lstsq(products[~masked, None], scores[~masked], rcond=None)[0][0]
                np.testing.assert_allclose(products[~masked] * scale, scores[~masked], atol=1e-4)
                met += 1
        if "residual" in at and group["into"] in blobs:
            added = blobs[at["output" if group["kind"] == "attention" else "contracted"]]
            np.testing.assert_allclose(blobs[group["into"]] + added, blobs[at["residual"]], atol=1e-4)
            met += 1
    assert met


def test_the_input_is_the_embedding_and_its_position() -> None:
    trace = made("paper")
    header, blobs, _follow = pictured(trace)
    for group in [group for group in header["groups"] if group["kind"] == "input"]:
        at = named(trace, group)
        before = at.get("scaled", at["embedding"])
        np.testing.assert_allclose(blobs[before] + blobs[f"{at['positioned']}+"], blobs[at["positioned"]], atol=1e-6)
        strip = trace.tokens["source" if group["stack"] == "encoder" else "target"]
        assert group["ids"] == list(strip.ids), "a short text is shown whole"


def test_the_prediction_is_the_softmax_of_all_logits_or_what_the_step_chose_among() -> None:
    trace = made("paper")
    assert trace.logits is not None
    _header, blobs, follow = pictured(trace)
    walk = [str(stage) for stage in stages.walk(trace)]
    row = follow.rows["decoder"]
    shares = np.exp(trace.logits[row].astype(np.float64))
    np.testing.assert_allclose(blobs[str(walk.index("output/probabilities"))], (shares / shares.sum())[:3], atol=1e-6)
    np.testing.assert_array_equal(blobs[str(walk.index("output/logits"))], trace.logits[row][:3].astype(np.float64))
    at = stages.walk(trace)
    chosen = Followed(follow.rows, HEAD, follow.candidates, (0.5, 0.25, 0.125), 0, follow.captions)
    given = unpack(motion.part(trace, at, chosen).data)[1]
    assert given[str(walk.index("output/probabilities"))].tolist() == [0.5, 0.25, 0.125]


def test_the_stream_of_a_network_that_is_not_described_is_what_left_the_layer_before() -> None:
    known = made("language model")
    trace = replace(known, model={name: fact for name, fact in known.model.items() if name != "spec"})
    header, blobs, follow = pictured(trace)
    into = [group["into"] for group in header["groups"] if group["kind"] == "attention"]
    layers = [str(site).rpartition(".")[0] for site in trace.attention]
    assert into == ["decoder", *layers[:-1]]
    for name in into[1:]:
        np.testing.assert_array_equal(blobs[name][0], trace.hidden[name][follow.rows["decoder"]].astype(np.float64))
    assert header["groups"][-1]["into"] == layers[-1], "the output reads what left the last layer"
    bare, _blobs, _follow = pictured(replace(trace, hidden={}))
    assert [group["into"] for group in bare["groups"] if group["kind"] == "attention"] == ["decoder", *("" for _ in layers[1:])]


def test_of_many_keys_the_heaviest_are_shown_and_the_rest_is_counted() -> None:
    trace = traces.encoder(1, 2, 60)
    (site,) = trace.attention
    header, blobs, follow = pictured(trace, "encoder", 20)
    (group,) = [group for group in header["groups"] if group["kind"] == "attention"]
    weights = trace.at(site).weights[HEAD, 20].astype(np.float64)
    others = np.delete(weights, group["places"])
    assert follow.rows == {"encoder": 20}
    assert len(group["places"]) == motion.MOST_KEYS
    assert group["places"] == sorted(group["places"])
    assert group["places"][group["own"]] == 20, "the token itself is always shown"
    assert others.max() <= np.sort(weights[group["places"]])[1]
    assert group["others"] == f"other keys ({60 - motion.MOST_KEYS}): {others.sum():.4f}"
    np.testing.assert_allclose(blobs[named(trace, group)["weights"]], weights[group["places"]], atol=1e-7)


def test_the_followed_rows_are_the_selected_one_or_those_that_say_most() -> None:
    trace = traces.translation()
    assert motion.rows(trace, "encoder", 3) == {"encoder": 3, "decoder": 0}
    assert motion.rows(trace, "decoder", 2) == {"encoder": 1, "decoder": 2}, "the first word of the encoder, not its start token"
    assert motion.rows(trace, "decoder", 99) == {"encoder": 1, "decoder": 0}, "a row that the run does not have"
    assert motion.rows(traces.language_model(), "decoder", -1) == {"decoder": 3}, "the row that generated the first token"


def test_a_decoder_behind_memory_attention_is_not_followed() -> None:
    assert [name for name in SPECS if not motion.can_follow(made(name))] == ["memory"]
    read, rows = made("memory").tokens["target"], made("memory").at("decoder.0.0.memory").weights.shape[1]
    assert len(read) - 1 != rows, "its rows are the positions of the source"
