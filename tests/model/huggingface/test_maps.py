"""Every family, run in place: each map, state and logit is compared with what the library itself hands out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from model.checkpoints import loader
from model.huggingface.families import FAMILIES
from model.huggingface.loaded import Foreign
from model.inference.run import run
from model.requests.edits import Silence
from model.requests.request import Decoding, Keep, RunRequest
from model.trace.types import Array, Site, Trace
from tests import folders

CPU = torch.device("cpu")
SOURCE, TARGET = (4, 6, 5, 8, 9), (2, 7, 10, 11)
KEPT: tuple[Keep, ...] = ("qkv", "context", "output", "hidden")
TRANSLATORS = [name for name, family in FAMILIES.items() if family.kind == "both"]
WRITERS = [name for name, family in FAMILIES.items() if family.kind == "decoder"]
READERS = [name for name, family in FAMILIES.items() if family.kind == "encoder"]


def opened(tmp_path: Path, family: str, **changes: Any) -> tuple[Foreign, nn.Module]:
    """A saved folder as we open it, and the library's own network of the same weights."""
    own = folders.save(tmp_path / family, family, **changes)
    found = loader.load(tmp_path / family, {}, CPU)
    assert isinstance(found, Foreign)
    return found, own


def traced(found: Foreign, *, source: tuple[int, ...] = SOURCE, **asked: Any) -> Trace:
    return run(found, RunRequest(model="tiny", source=source, keep=KEPT, **asked), CPU, "CPU")


def assert_close(found: Array | None, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=0, atol=2e-5)


def assert_maps(trace: Trace, stack: str, kind: str, maps: tuple[torch.Tensor, ...]) -> None:
    """The maps of a stack, layer by layer, against the library's `output_attentions`."""
    sites = trace.of(stack, kind)  # type: ignore[arg-type]
    assert [attention.site.layer for attention in sites] == list(range(len(maps)))
    for attention, own in zip(sites, maps, strict=True):
        assert_close(attention.weights, own[0].numpy())
        np.testing.assert_array_equal(attention.weights[:, ~attention.mask], 0)
        assert_close(attention.weights @ attention.v, attention.context)


@pytest.mark.parametrize("family", READERS)
def test_an_encoder(tmp_path: Path, family: str) -> None:
    found, own = opened(tmp_path, family)
    padded = (*SOURCE, found.info.spec.pad_id or 0)
    trace = traced(found, source=padded, source_valid=5)
    valid = torch.tensor([[1] * 5 + [0]])
    with torch.inference_mode():
        expected = own(torch.tensor([padded]), attention_mask=valid, output_attentions=True, output_hidden_states=True)
    assert_maps(trace, "encoder", "self", expected.attentions)
    np.testing.assert_array_equal(trace.at("encoder.0.1.self").mask, np.tile([1, 1, 1, 1, 1, 0], (6, 1)).astype(bool))
    assert_close(trace.embedded["encoder"], expected.hidden_states[0][0])
    for layer, states in enumerate(expected.hidden_states[1:]):
        assert_close(trace.hidden[f"encoder.0.{layer}"], states[0])
    assert trace.logits is None
    assert trace.tokens.keys() == {"source"}


@pytest.mark.parametrize("family", WRITERS)
def test_a_language_model_reads_its_prompt(tmp_path: Path, family: str) -> None:
    found, own = opened(tmp_path, family)
    trace = traced(found, decoding=Decoding(max_length=0))
    with torch.inference_mode():
        expected = own(torch.tensor([SOURCE]), output_attentions=True, output_hidden_states=True)
    assert_maps(trace, "decoder", "self", expected.attentions)
    assert_close(trace.logits, expected.logits[0])
    assert_close(trace.hidden["decoder.0.0"], expected.hidden_states[1][0])
    assert trace.at("decoder.0.0.self").heads == own.config.num_attention_heads  # type: ignore[union-attr]


@pytest.mark.parametrize("family", WRITERS)
def test_a_language_model_writes_as_the_library_does(tmp_path: Path, family: str) -> None:
    found, own = opened(tmp_path, family)
    trace = traced(found, decoding=Decoding(max_length=6))
    with torch.inference_mode():
        written = own.generate(  # type: ignore[operator]
            torch.tensor([SOURCE]), attention_mask=torch.ones(1, 5), max_new_tokens=6, do_sample=False, pad_token_id=0
        )
        whole = own(written[:, :-1], output_attentions=True)
    assert trace.tokens["source"].ids == tuple(written[0].tolist())
    assert_maps(trace, "decoder", "self", whole.attentions)
    assert_close(trace.logits, whole.logits[0])
    assert [step.computed for step in trace.steps][:2] == [(0, 5), (5, 6)]


@pytest.mark.parametrize("family", TRANSLATORS)
def test_an_encoder_and_a_decoder_with_a_given_target(tmp_path: Path, family: str) -> None:
    found, own = opened(tmp_path, family)
    padded = (*SOURCE, found.info.spec.pad_id or 0)
    trace = traced(found, source=padded, target=TARGET)
    valid = torch.tensor([[1] * 5 + [0]])
    with torch.inference_mode():
        expected = own(
            torch.tensor([padded]),
            attention_mask=valid,
            decoder_input_ids=torch.tensor([TARGET]),
            output_attentions=True,
            output_hidden_states=True,
        )
    assert_maps(trace, "encoder", "self", expected.encoder_attentions)
    assert_maps(trace, "decoder", "self", expected.decoder_attentions)
    assert_maps(trace, "decoder", "cross", expected.cross_attentions)
    assert len(expected.encoder_attentions) != len(expected.decoder_attentions)
    assert_close(trace.logits, expected.logits[0])
    assert_close(trace.embedded["encoder"], expected.encoder_hidden_states[0][0])
    assert_close(trace.embedded["decoder"], expected.decoder_hidden_states[0][0])


@pytest.mark.parametrize("family", TRANSLATORS)
def test_an_encoder_and_a_decoder_write_as_the_library_does(tmp_path: Path, family: str) -> None:
    shallow = {"num_decoder_layers": 1} if "t5" in family else {}  # the library's `generate` cannot write with a deeper decoder
    found, own = opened(tmp_path, family, **shallow)
    trace = traced(found, decoding=Decoding(max_length=6))
    forced = len(found.info.spec.forced)
    with torch.inference_mode():
        written = own.generate(  # type: ignore[operator]
            torch.tensor([SOURCE]), attention_mask=torch.ones(1, 5), max_new_tokens=6 + forced, do_sample=False, num_beams=1
        )
        whole = own(torch.tensor([SOURCE]), decoder_input_ids=written[:, :-1], output_attentions=True)
    assert trace.tokens["target"].ids == tuple(written[0].tolist())
    assert_maps(trace, "decoder", "self", whole.decoder_attentions)
    assert_maps(trace, "decoder", "cross", whole.cross_attentions)
    assert_close(trace.logits, whole.logits[0])


@pytest.mark.parametrize("family", ["marian", "t5", "gpt2", "llama"])
def test_beam_search_shows_the_rows_of_the_beginning_that_won(tmp_path: Path, family: str) -> None:
    found, own = opened(tmp_path, family)
    trace = traced(found, decoding=Decoding("beam", max_length=6, beam_size=3))
    writes = trace.tokens.get("target", trace.tokens["source"]).ids[:-1]
    with torch.inference_mode():
        if "target" in trace.tokens:
            whole = own(torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([writes]), output_attentions=True)
            assert_maps(trace, "decoder", "cross", whole.cross_attentions)
            assert_maps(trace, "decoder", "self", whole.decoder_attentions)
        else:
            whole = own(torch.tensor([writes]), output_attentions=True)
            assert_maps(trace, "decoder", "self", whole.attentions)
    assert_close(trace.logits, whole.logits[0])


@pytest.mark.parametrize("family", ["gpt2", "opt", "gemma", "qwen3", "mistral", "qwen2"])
@torch.inference_mode()
def test_a_token_that_was_written_or_typed_is_no_padding(tmp_path: Path, family: str) -> None:
    """The padding id of the folder is one that the network writes, and one that is typed."""
    plain = folders.save(tmp_path / "plain" / family, family, eos_token_id=None)
    prompt = torch.tensor([SOURCE])
    options = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 8, "do_sample": False, "eos_token_id": None}
    written: torch.Tensor = plain.generate(prompt, pad_token_id=0, **options)  # type: ignore[operator]
    for name, pad in (("written", int(written[0, 7])), ("typed first", SOURCE[0]), ("typed later", SOURCE[2])):
        found, own = opened(tmp_path / name, family, pad_token_id=pad, eos_token_id=None)
        own.load_state_dict(plain.state_dict())
        found.network.library.load_state_dict(plain.state_dict())
        trace = traced(found, decoding=Decoding(max_length=8))
        whole = own(written[:, :-1], attention_mask=torch.ones_like(written[:, :-1]), output_attentions=True)
        assert found.info.spec.pad_id == pad
        assert trace.tokens["source"].ids == tuple(written[0].tolist()), name
        assert_maps(trace, "decoder", "self", whole.attentions)
        assert_close(trace.logits, whole.logits[0])


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "opt", "marian", "m2m_100", "bart"])
def test_positions_are_the_rows_that_were_added(tmp_path: Path, family: str) -> None:
    found, _own = opened(tmp_path, family)
    target = {} if FAMILIES[family].kind != "both" else {"target": TARGET}
    trace = traced(found, decoding=Decoding(max_length=0), **target)
    for name, table in found.network.tables().items():
        used = trace.positions[name.removeprefix("positions/")]
        assert len(table) == 20
        assert_close(used, table[: len(used)].numpy())
    assert {f"positions/{name}" for name in trace.positions} == found.network.tables().keys()


def test_a_silenced_head_adds_nothing(tmp_path: Path) -> None:
    found, own = opened(tmp_path, "llama", num_hidden_layers=1)
    trace = traced(found, decoding=Decoding(max_length=0), edits=(Silence("decoder.0.0.self", (2,)),))
    with torch.inference_mode():
        own.get_parameter("model.layers.0.self_attn.o_proj.weight")[:, 16:24] = 0  # the columns of head 2
        expected = own(torch.tensor([SOURCE])).logits[0]
    assert_close(trace.logits, expected)


def test_what_is_not_recorded_says_why(tmp_path: Path) -> None:
    trace = traced(opened(tmp_path, "t5")[0], target=TARGET)
    assert {"attention/*/scores", "stages", "positions/encoder", "positions/decoder"} <= trace.missing.keys()
    assert "distance" in str(trace.missing["positions/decoder"])
    assert all(attention.scores is None for attention in trace.attention.values())
    assert list(trace.attention)[:3] == [
        Site("encoder", 0, 0, "self"),
        Site("encoder", 0, 1, "self"),
        Site("decoder", 0, 0, "self"),
    ]


def test_a_window_of_keys_is_the_mask_that_ran(tmp_path: Path) -> None:
    trace = traced(opened(tmp_path, "mistral")[0], decoding=Decoding(max_length=0))
    i, j = np.indices((5, 5))
    np.testing.assert_array_equal(trace.at("decoder.0.1.self").mask, (j <= i) & (i - j < 4))
    assert trace.at("decoder.0.1.self").mask_causal is None
