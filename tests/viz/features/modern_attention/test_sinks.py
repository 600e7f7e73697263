"""Sinks against a softmax with one more score, and the library's own gpt-oss."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.checkpoints import loader
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from tests import recorded_folders
from tests.runs import CPU
from viz.figures.annotated_heatmap import grid
from viz.figures.theme import LIGHT
from viz.metrics.heads import sink_shares, without_sink


def test_a_sink_takes_what_its_exponential_adds_to_the_sum() -> None:
    rng = np.random.default_rng(2)
    scores, sinks = rng.normal(size=(3, 5, 5)), np.array([-np.inf, 0.3, 2.0])
    mask = np.tril(np.ones((5, 5), bool))
    exponentials = np.where(mask, np.exp(scores), 0.0)
    sums = exponentials.sum(axis=-1)
    weights = exponentials / (sums + np.exp(sinks)[:, None])[:, :, None]
    np.testing.assert_allclose(sink_shares(weights, mask), np.exp(sinks)[:, None] / (sums + np.exp(sinks)[:, None]))
    for head in range(3):
        np.testing.assert_allclose(without_sink(weights[head]), exponentials[head] / sums[head][:, None])


def test_rounding_and_empty_rows_are_no_sink() -> None:
    weights = np.array([[[1.0, 0.0], [0.0, 0.0]]], np.float32) - 1e-6
    assert not sink_shares(weights, np.array([[True, False], [False, False]])).any()


@pytest.mark.slow
def test_the_sinks_of_gpt_oss_are_the_column_that_the_library_drops(tmp_path: Path) -> None:
    own: Any = recorded_folders.saved(tmp_path, "gpt_oss")[0]
    with torch.no_grad():
        for layer in own.model.layers:
            layer.self_attn.sinks.add_(torch.linspace(-1, 2, len(layer.self_attn.sinks)))
    own.save_pretrained(tmp_path)
    found = loader.load(tmp_path, {}, CPU)
    trace = run(found, RunRequest("tiny", (4, 6, 5, 8, 9, 11), decoding=Decoding(max_length=0), keep=("qkv",)), CPU, "cpu")
    for layer, site in zip(own.model.layers, trace.attention.values(), strict=True):
        assert site.q is not None
        assert site.k is not None
        scores = (site.q.astype(np.float64) @ site.k.astype(np.float64).transpose(0, 2, 1)) * layer.self_attn.scaling
        exponentials = np.where(site.mask, np.exp(scores), 0.0)
        sink = np.exp(layer.self_attn.sinks.detach().double().numpy())[:, None]
        np.testing.assert_allclose(sink_shares(site.weights, site.mask), sink / (exponentials.sum(axis=-1) + sink), atol=1e-5)


def test_a_share_was_drawn_on_a_scale_from_minus_one() -> None:
    drawn = grid(["1"], ["1", "2"], np.array([[0.2, 0.9]]), [["", ""]], dark=False, quantity="share", shares=True).data[0]
    assert (drawn.zmin, drawn.zmax) == (0, 1)
    assert drawn.colorscale[0][1] == LIGHT.weights[0]
