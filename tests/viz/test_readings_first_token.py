"""The reading without the first token, against loops over Python's own numbers, and where pages open with it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from model.measures.catalogue import MEASURES
from model.trace.types import Site
from tests import traces
from tests.plain_measures import by_loop
from viz.canvas import standalone
from viz.canvas.scenes import attention as scenes
from viz.canvas.wire import overviews, parts
from viz.canvas.wire.parts import Pyramid
from viz.canvas.wire.transport import Blob, unpack
from viz.labels import alt_text
from viz.metrics import heads
from viz.metrics.aggregation import without_first

RUN = traces.at_first()
SITE = Site("decoder", 0, 1, "self")


def rest_by_hand(rows: list[list[float]]) -> list[list[float]]:
    """Each row without its first key, divided by what is left."""
    kept = [[0.0, *row[1:]] for row in rows]
    return [[value / (whole or 1.0) for value in row] for row, whole in zip(kept, map(math.fsum, kept), strict=True)]


@pytest.mark.parametrize("head", range(4))
def test_rows_are_brought_to_the_sum_1_without_their_first_key(head: int) -> None:
    weights = RUN.at(SITE).head(head)
    found = without_first(weights)
    np.testing.assert_allclose(found, rest_by_hand(weights.astype(float).tolist()), rtol=1e-12, atol=1e-15)
    whole = found.sum(axis=-1)
    assert np.isclose(whole, 1, atol=1e-12).tolist() == (weights[:, 1:].sum(axis=-1) > 0).tolist()


def test_a_row_whose_whole_weight_is_on_the_first_token_is_empty() -> None:
    found = without_first(RUN.at(SITE).head(3))
    assert found[3].tolist() == [0.0] * found.shape[1]
    assert np.isfinite(found).all()


def test_pages_open_without_it_where_most_heads_have_most_of_their_weight_there() -> None:
    assert overviews.opens_without_first(RUN)
    assert not overviews.opens_without_first(traces.at_first(share=0.3))
    assert not overviews.opens_without_first(traces.translation())
    assert [overviews.leaves_out(asked, RUN) for asked in ("", "none", "special")] == ["first", "none", "special"]
    assert overviews.leaves_out("first", traces.translation()) == "first"
    assert heads.heads_at_first(np.array([0.9, 0.1, 0.6, np.nan])) == pytest.approx(2 / 3)
    assert heads.heads_at_first(np.array([np.nan])) == 0


def test_the_overview_holds_the_rest_of_every_head_and_what_was_left_out() -> None:
    header, blobs = unpack(overviews.part(RUN, rest=True).data)
    (group,) = header["groups"]
    for row in group["sites"]:
        attention, mask = RUN.at(row["site"]), blobs[row["mask"]].astype(bool)
        assert not mask[:, 0].any()
        assert (mask[:, 1:] == attention.mask[:, 1:]).all()
        for head, codes in enumerate(blobs[f"weights/{row['site']}"]):
            by_hand = np.array(rest_by_hand(attention.head(head).astype(float).tolist()))
            np.testing.assert_allclose((codes[:, 1:] / 255.0) ** 2, by_hand[:, 1:], atol=0.004)
            np.testing.assert_allclose((codes[:, 0] / 255.0) ** 2, attention.head(head)[:, 0], atol=0.004)
    assert header["description"].startswith("Without the first token, “<sos>”: ")
    assert "in 100% of the heads more than half" in header["description"]


@pytest.mark.parametrize("tokens", [130, 300])
def test_pooled_blocks_hold_the_largest_weight_of_the_rest(tokens: int) -> None:
    trace = traces.encoder(1, 2, tokens)
    header, blobs = unpack(overviews.part(trace, rest=True).data)
    (group,) = header["groups"]
    down, across = group["blocks"]
    for head, codes in enumerate(blobs["weights/encoder.0.0.self"]):
        by_hand = np.array(rest_by_hand(trace.at("encoder.0.0.self").head(head).astype(float).tolist()))
        block = by_hand[:down, :across].max()
        assert (codes[0, 0] / 255) ** 2 == pytest.approx(block, abs=0.004)
        block = by_hand[down * 3 : down * 4, across * 5 : across * 6].max()
        assert (codes[3, 5] / 255) ** 2 == pytest.approx(block, abs=0.004)


def test_a_head_travels_exactly_with_what_was_left_out() -> None:
    part = parts.exact(RUN, SITE, 1, rest=True)
    assert isinstance(part, Blob)
    blobs = unpack(part.data)[1]
    weights = RUN.at(SITE).head(1)
    np.testing.assert_allclose(blobs["exact"], rest_by_hand(weights.astype(float).tolist()), rtol=1e-6)
    np.testing.assert_array_equal(blobs["left"], weights[:, 0])
    assert not blobs["mask"][:, 0].any()


def test_a_large_head_is_tiled_without_its_first_key() -> None:
    trace = traces.encoder(1, 1, 600)
    pyramid = parts.exact(trace, Site("encoder", 0, 0, "self"), 0, rest=True)
    assert isinstance(pyramid, Pyramid)
    tile = unpack(pyramid.piece("exact/0/1/0") or b"")[1]
    weights = trace.at("encoder.0.0.self").head(0)
    np.testing.assert_allclose(
        tile["exact"][:, 1:], np.array(rest_by_hand(weights.astype(float).tolist()))[256:512, 1:256], rtol=1e-6
    )
    np.testing.assert_array_equal(tile["exact"][:, 0], weights[256:512, 0])
    assert not tile["mask"][:, 0].any()


def test_an_atlas_says_which_of_the_two_readings_it_is() -> None:
    header = unpack(scenes.atlas(RUN, SITE, 1, 5, rest=True))[0]
    weights = np.array(rest_by_hand(RUN.at(SITE).head(1).astype(float).tolist()))
    assert (header["first"]["left"], header["first"]["hide"]) == (True, "none")
    assert alt_text.percent(weights[5].max()) in header["announce"]
    header = unpack(scenes.atlas(RUN, SITE, 1, -1))[0]
    assert (header["first"]["left"], header["first"]["hide"]) == (False, "first")
    assert "first" not in unpack(scenes.atlas(traces.translation(), Site("decoder", 0, 0, "cross"), 1, -1))[0]


def test_a_page_of_its_own_opens_as_the_app_and_holds_both_readings() -> None:
    page, plain = standalone.page(RUN, SITE, 0, -1), standalone.page(traces.at_first(share=0.3), SITE, 0, -1)
    assert len(page) > len(plain)
    scene, pieces = standalone.atlas_with_parts(RUN, SITE, 0, -1, rest=True)
    assert unpack(scene)[0]["parts"]["overview"]["name"] == overviews.part(RUN, rest=True).name
    assert f"{parts.exact(RUN, SITE, 0, rest=True).name}/whole" in pieces


def test_the_measures_that_sort_heads_are_those_of_the_catalogue() -> None:
    for trace in (RUN, traces.translation(), traces.encoder_only()):
        readings = unpack(overviews.part(trace).data)[1]["readings"]
        places = [(site, head) for site, own in trace.attention.items() for head in range(own.heads)]
        order = {kind: at for at, kind in enumerate(dict.fromkeys((site.stack, site.kind) for site, _head in places))}
        places.sort(key=lambda place: order[place[0].stack, place[0].kind])
        assert readings.shape == (len(heads.READINGS), len(places))
        for at, (site, head) in enumerate(places):
            own = dict(zip(heads.READINGS, readings[:, at].tolist(), strict=True))
            for name, value in own.items():
                expected = by_loop(name, trace, trace.at(site), head) if MEASURES[name].exists_in(site.kind) else math.nan
                assert value == pytest.approx(expected, rel=1e-5, nan_ok=True), (site, head, name)


def test_kinds_of_heads() -> None:
    names = [*heads.KINDS, "other"]
    readings = np.full((len(heads.READINGS), 5), 0.1)
    for head, own in enumerate(
        ({}, {"first": 0.7}, {"previous": 0.6, "first": 0.7}, {"previous": np.nan, "same": 0.51}, {"next": 0.9})
    ):
        for name, value in own.items():
            readings[heads.READINGS.index(name), head] = value
    assert [names[kind] for kind in heads.kinds(readings)] == ["other", "first", "previous", "same", "next"]
    assert len(heads.TITLES) == len(names)
    assert set(heads.ORDERS) <= set(heads.READINGS)


def test_heads_that_share_a_key_head_are_named_in_the_overview_and_its_description() -> None:
    spec = {"decoder": {"attention": {"heads": 4, "key_heads": 2}}}
    grouped = replace(RUN, model={**RUN.model, "spec": spec, "fingerprint": "grouped"})
    header = unpack(overviews.part(grouped).data)[0]
    assert [row["shared"] for row in header["groups"][0]["sites"]] == [2, 2]
    assert header["description"].endswith("Heads share their keys and values in groups of 2: 1 to 2, and so on.")
    alone = replace(RUN, model={**RUN.model, "spec": {"decoder": {"attention": {"heads": 4, "key_heads": None}}}})
    for other in (RUN, alone):
        assert "shared" not in unpack(overviews.part(other).data)[0]["groups"][0]["sites"][0]
        assert "share their keys" not in alt_text.overview(other)
