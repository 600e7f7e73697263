"""Reference document 001 (docs/references.md): PyTorch's language-model tutorial (`pos_encoder.pe`).

An nn.TransformerEncoder with a causal mask.
"""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import (
    Answers,
    Question,
    activation,
    causal,
    decoding_ids,
    embed_scale,
    head_dim,
    heads,
    norm_order,
    vocabularies,
)
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec

_LAYERS = "transformer_encoder.layers.#."


ENCODER = {"self_attn": ("attention", "attention_residual")}
DECODER = {"self_attn": ("self_attention", "self_residual"), "multihead_attn": ("cross_attention", "cross_residual")}
"""The attentions of PyTorch's layers, in the order of their norms: their name -> our names of the attention and its residual."""


def layer_rules(theirs: str, ours: str, attentions: Mapping[str, tuple[str, str]]) -> Rules:
    """The names of an nn.TransformerEncoderLayer or an nn.TransformerDecoderLayer; both prefixes end in a dot."""
    rules: dict[str, str | tuple[str, ...]] = {
        f"{theirs}linear1.@": f"{ours}feed_forward.expand.@",
        f"{theirs}linear2.@": f"{ours}feed_forward.contract.@",
        f"{theirs}norm{len(attentions) + 1}.@": f"{ours}feed_forward_residual.norm.@",
    }
    for i, (their, (our, residual)) in enumerate(attentions.items()):
        rules[f"{theirs}{their}.in_proj_@"] = tuple(f"{ours}{our}.{part}.@" for part in ("query", "key", "value"))
        rules[f"{theirs}{their}.out_proj.@"] = f"{ours}{our}.output.@"
        rules[f"{theirs}norm{i + 1}.@"] = f"{ours}{residual}.norm.@"
    return rules


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    return {
        "encoder.weight": "embedding.token.weight",
        "pos_encoder.pe": "embedding.positions.table",
        "decoder.@": "output.@",
        "transformer_encoder.norm.@": "final_norm.@",
        **layer_rules(_LAYERS, "layers.#.", ENCODER),
    }


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    width = shapes.size("encoder.weight", 1)
    return (
        heads("n_heads", width, told),
        head_dim(width),
        causal(
            "true", phrase("Whether a position is prevented from attending to later ones (causal mask), as in a language model.")
        ),
        norm_order("post"),
        activation("relu"),
        embed_scale("sqrt"),
        *decoding_ids(shapes.size("encoder.weight", 0)),
        *vocabularies("source_vocab"),
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    width = shapes.size("encoder.weight", 1)
    stack = StackSpec(
        vocab=shapes.size("encoder.weight", 0),
        d_model=width,
        layers=shapes.layers(f"{_LAYERS}self_attn.in_proj_weight"),
        attention=attention(answers, "n_heads", width, shapes.has(f"{_LAYERS}self_attn.in_proj_bias")),
        hidden=shapes.size("transformer_encoder.layers.0.linear1.weight", 0),
        activation=answers.activation,
        norm_order=answers.norm_order,
        final_norm=shapes.has("transformer_encoder.norm.weight"),
        positions="sinusoidal",
        max_positions=shapes.size("pos_encoder.pe", 0),
        embed_scale=answers.embed_scale,
        causal=answers.flag("causal"),
    )
    return model_spec(answers, None, stack, OutputSpec(bias=shapes.has("decoder.bias")))


_needs = requires(f"{_LAYERS}self_attn.in_proj_weight", "pos_encoder.pe", "encoder.weight", "decoder.weight")


def _match(shapes: Shapes) -> Match:
    """A classifier of texts may have all of the names: its last layer has other rows than the vocabulary."""
    found = _needs(shapes)
    if not found or shapes.of["decoder.weight"][:1] == shapes.of["encoder.weight"][:1]:
        return found
    return Match(found.in_favour, (phrase("decoder.weight has a different number of rows from encoder.weight"),))


TORCH_LM = Layout(
    name="torch-lm",
    title=phrase("Language model of PyTorch’s tutorial (reference document 001)"),
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(phrase("Padding is not masked: this program has no padding mask."),),
)
