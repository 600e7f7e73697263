"""Long inputs of the transformers library's networks: a fused kernel runs, and weights are computed from queries and keys.

Inputs count as long from five tokens on here. What is computed is compared with the library's own eager attention.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints import loader
from model.features.what_if.answers import answer
from model.features.what_if.example import forced_run
from model.features.what_if.questions import Heads
from model.features.what_if.results import HeadEffects
from model.huggingface import hooks
from model.huggingface.families import FAMILIES
from model.huggingface.loaded import Foreign
from model.inference import inputs
from model.inference.resources import Resources
from model.inference.run import run
from model.requests.edits import read_edits
from model.requests.request import Decoding, RunRequest
from model.trace.lazy_attention import LazyAttention
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import UNWRITTEN, Trace
from tests.recorded_folders import SOURCE, TARGET, _pairs, saved

pytestmark = pytest.mark.slow  # the transformers library

CPU = torch.device("cpu")
RELATIVE = ("t5", "mt5")
FUSED = (*(name for name in FAMILIES if name not in RELATIVE), "mixtral", "phi3", "deepseek_v3", "albert")
WRITTEN_OUT = (*RELATIVE, "gemma2", "gpt_oss")
"""Their scores are more than products: a number for each distance, a soft cap, a sink."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LONG", 4)
    monkeypatch.setattr("model.features.what_if.scoring.LONG", 4)


def traced(opened: Foreign, text: str = "") -> Trace:
    target = TARGET if opened.info.spec.encoder and opened.info.spec.decoder else None
    request = RunRequest("tiny", SOURCE, target, Decoding(max_length=0), edits=read_edits(text))
    return run(opened, request, CPU, "CPU")


@pytest.mark.parametrize("name", [*FUSED, *WRITTEN_OUT])
def test_maps_and_logits_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    own, kind = saved(tmp_path, name)
    opened = loader.load(tmp_path, {}, CPU)
    assert isinstance(opened, Foreign)
    trace = traced(opened)
    assert (UNWRITTEN in trace.missing) is (name in FUSED)
    given = {"input_ids": torch.tensor([SOURCE])} | ({"decoder_input_ids": torch.tensor([TARGET])} if kind == "both" else {})
    with torch.inference_mode():
        wanted = own(**given, output_attentions=True)
    for sites, maps in _pairs(trace, kind, wanted):
        for attention, weights in zip(sites, maps, strict=True):
            assert isinstance(attention.weights, LazyAttention) is (name in FUSED)
            np.testing.assert_allclose(np.asarray(attention.weights), weights[0].numpy(), atol=1e-6)
            assert attention.v is None, "nobody asked for values"
    if kind != "encoder":
        assert trace.logits is not None
        np.testing.assert_allclose(trace.logits, wanted.logits[0].numpy(), atol=2e-5)
    again = from_bytes(to_bytes(trace))
    for site, attention in trace.attention.items():
        np.testing.assert_array_equal(np.asarray(again.at(str(site)).weights), np.asarray(attention.weights))


def test_what_layers_left_is_given_back_before_the_logits_of_a_long_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, "llama")
    opened, given = loader.load(tmp_path, {}, CPU), list[str]()
    monkeypatch.setattr(hooks, "give_back", lambda: given.append("back"))
    for source, most in ((SOURCE[:4], 2), (SOURCE, 0), (SOURCE, 3)):
        run(opened, RunRequest("tiny", source, decoding=Decoding(max_length=most)), CPU, "CPU")
    assert given == ["back"] * 2, "once for each long input: not for a short one, nor for each token that is written"


@pytest.mark.parametrize("name", ["llama", "mixtral", "marian"])
def test_a_decode_and_a_silenced_head_are_those_of_a_short_input(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, name)
    opened = loader.load(tmp_path, {}, CPU)
    assert isinstance(opened, Foreign)
    edits = read_edits("silence site=decoder.0.1.self head=1")
    asked = [RunRequest("tiny", SOURCE, decoding=Decoding(max_length=5), edits=edit) for edit in ((), edits)]
    fused = [run(opened, request, CPU, "CPU") for request in asked]
    monkeypatch.setattr(inputs, "LONG", 256)
    for found, request in zip(fused, asked, strict=True):
        wanted = run(opened, request, CPU, "CPU")
        assert isinstance(next(iter(found.attention.values())).weights, LazyAttention)
        assert [step.chosen.id for step in found.steps] == [step.chosen.id for step in wanted.steps]
        assert found.logits is not None
        assert wanted.logits is not None
        np.testing.assert_allclose(found.logits, wanted.logits, atol=2e-5)
        for site, attention in wanted.attention.items():
            np.testing.assert_allclose(np.asarray(found.at(str(site)).weights), attention.weights, atol=1e-6)


def test_weights_that_are_changed_are_written_out(tmp_path: Path) -> None:
    saved(tmp_path, "llama")
    opened = loader.load(tmp_path, {}, CPU)
    assert isinstance(opened, Foreign)
    trace = traced(opened, "set-row site=decoder.0.1.self head=1 query=3 to=one-hot key=2")
    assert UNWRITTEN not in trace.missing
    assert trace.at("decoder.0.1.self").weights[1, 3, 2] == 1


def test_what_heads_matter_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, "llama")
    opened = loader.load(tmp_path, {}, CPU)
    assert isinstance(opened, Foreign)
    given, prompt = forced_run(opened, RunRequest("tiny", SOURCE, decoding=Decoding(max_length=0)), CPU, 64)

    def measured() -> HeadEffects:
        trace = run(opened, given, CPU, "CPU")
        found = answer(Heads(given, ("without",)), given, prompt, opened, trace, Resources(CPU))
        assert isinstance(found, HeadEffects)
        return found

    fused = measured()
    monkeypatch.setattr("model.features.what_if.scoring.LONG", 256)
    wanted = measured()
    assert fused.without is not None
    assert wanted.without is not None
    np.testing.assert_allclose(fused.without, wanted.without, atol=2e-5)
