"""build(spec): every choice of a spec becomes a part, and nothing else does."""

from dataclasses import fields, replace

import pytest
import torch
from torch import nn

from model.requests.network import ModelSpec, StackSpec, to_json
from model.transformer.build import build
from model.transformer.stacks import CausalLM, EncoderDecoder
from tests.networks import VARIANTS, network


def test_the_reference_architecture_has_its_number_of_parameters() -> None:
    attention = replace(VARIANTS["paper"].writer.attention, heads=8, head_dim=32)
    stack = StackSpec(vocab=7853, d_model=256, layers=3, attention=attention, hidden=512, max_positions=100)
    with torch.device("meta"):
        built = build(ModelSpec(encoder=stack, decoder=replace(stack, vocab=5893)))
    assert sum(p.numel() for p in built.parameters()) == 9_038_341


@pytest.mark.parametrize("name", VARIANTS)
def test_a_spec_with_an_encoder_translates_and_one_without_continues(name: str) -> None:
    assert isinstance(build(VARIANTS[name]), CausalLM if VARIANTS[name].encoder is None else EncoderDecoder)


def test_the_variants_of_these_tests_hold_every_choice() -> None:
    stacks = [stack for spec in VARIANTS.values() for stack in (spec.encoder, spec.decoder) if stack is not None]
    for choice, values in {
        "activation": {"relu", "gelu", "silu"},
        "norm_order": {"post", "pre"},
        "positions": {"learned", "sinusoidal", "none", "rotary", "rotary-pairs"},
        "gated": {True, False},
        "norm": {"standard", "rms"},
        "embed_scale": {"sqrt", "none"},
        "final_norm": {True, False},
        "bias": {True, False},
        "passes": {1, 2},
    }.items():
        assert {getattr(stack, choice) for stack in stacks} == values
    assert {stack.attention.empty_rows for stack in stacks} == {"uniform", "zeros"}
    assert {stack.attention.bias for stack in stacks} == {True, False}
    outputs = [spec.output for spec in VARIANTS.values() if spec.output is not None]
    assert {output.tied for output in outputs} == {output.bias for output in outputs} == {True, False}
    assert any(stack.attention.heads * stack.attention.head_dim != stack.d_model for stack in stacks)


def test_a_tied_output_is_the_decoders_embedding_itself() -> None:
    built = build(VARIANTS["modern, tied"])
    assert isinstance(built, EncoderDecoder)
    tied = built.get_parameter("decoder.embedding.token.weight")
    assert built.get_parameter("output.weight") is tied
    assert built.get_parameter("encoder.embedding.token.weight") is not tied


def test_a_missing_bias_is_absent() -> None:
    names = {name for name, _ in build(VARIANTS["uneven"]).named_parameters() if name.endswith("bias")}
    assert not any("attention." in name or "encoder.layers.0.feed_forward." in name for name in names)
    assert "decoder.layers.0.feed_forward.expand.bias" in names


def test_a_stack_applied_twice_has_its_weights_once() -> None:
    spec = VARIANTS["two passes"]
    assert spec.encoder is not None
    once = replace(spec, encoder=replace(spec.encoder, passes=1), decoder=replace(spec.writer, passes=1))
    assert build(spec).state_dict().keys() == build(once).state_dict().keys()


def test_fresh_matrices_are_xavier_uniform() -> None:
    torch.manual_seed(0)
    for parameter in build(VARIANTS["modern, tied"]).parameters():
        if parameter.dim() > 1:
            assert parameter.abs().max() <= (6 / sum(parameter.shape)) ** 0.5
            assert parameter.std() > 0


def test_dropout_stands_everywhere_alike_and_does_nothing_when_running() -> None:
    built = build(replace(VARIANTS["paper"], dropout=0.37))
    assert {module.p for module in built.modules() if isinstance(module, nn.Dropout)} == {0.37}
    assert not network(VARIANTS["paper"]).training


def test_the_spec_has_no_choice_that_these_tests_do_not_know() -> None:
    known = "vocab d_model layers attention hidden passes activation bias norm_order final_norm positions max_positions embed_scale"
    rotary = "gated rotary_base"
    odd = "norm norm_epsilon wiring causal decode_positions"  # in the networks of tests/model/checkpoints/layouts
    assert {f.name for f in fields(StackSpec)} == {*known.split(), *rotary.split(), *odd.split()}
    assert set(to_json(VARIANTS["paper"])["decoder"]["attention"]) == {
        "heads",
        "head_dim",
        "bias",
        "empty_rows",
        "projections",
        "key_heads",
    }
