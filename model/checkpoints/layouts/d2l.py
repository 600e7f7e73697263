"""Reference document 004 (docs/references.md), the course "Dive into Deep Learning" (`blks.block0.attention.W_q`).

Valid lengths of the source, and a cached decode.
"""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import (
    Answers,
    Question,
    activation,
    causal,
    decode_positions,
    decoding_ids,
    embed_scale,
    heads_of_both,
    id_,
    vocabularies,
)
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec

LONGEST = 1000
"""Positions of the table that the course's program works out."""

_FIRST = {"encoder": "attention", "decoder": "attention1"}


def _sublayer(theirs: str, ours: str) -> Rules:
    names = {"q": "query", "k": "key", "v": "value", "o": "output"}
    return {f"{theirs}.W_{their}.@": f"{ours}.{our}.@" for their, our in names.items()}


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    encoder, decoder = "encoder.blks.block#.", "decoder.blks.block#."
    norms = {
        f"{encoder}addnorm1": "encoder.layers.#.attention_residual",
        f"{encoder}addnorm2": "encoder.layers.#.feed_forward_residual",
        f"{decoder}addnorm1": "decoder.layers.#.self_residual",
        f"{decoder}addnorm2": "decoder.layers.#.cross_residual",
        f"{decoder}addnorm3": "decoder.layers.#.feed_forward_residual",
    }
    forward = {
        f"{stack}.blks.block#.ffn.dense{i}.@": f"{stack}.layers.#.feed_forward.{name}.@"
        for stack in ("encoder", "decoder")
        for i, name in ((1, "expand"), (2, "contract"))
    }
    return {
        "encoder.embedding.weight": "encoder.embedding.token.weight",
        "decoder.embedding.weight": "decoder.embedding.token.weight",
        "decoder.dense.@": "output.@",
        **{f"{theirs}.ln.@": f"{ours}.norm.@" for theirs, ours in norms.items()},
        **forward,
        **_sublayer(f"{encoder}attention", "encoder.layers.#.attention"),
        **_sublayer(f"{decoder}attention1", "decoder.layers.#.self_attention"),
        **_sublayer(f"{decoder}attention2", "decoder.layers.#.cross_attention"),
    }


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    columns = {stack: _columns(shapes, stack) for stack in _FIRST}
    future = phrase(
        "Whether positions of a given target are prevented from attending to later ones. The program does so only in training; "
        "what it generates itself does not change."
    )
    return (
        *heads_of_both(columns["encoder"], columns["decoder"], told),
        causal("false", future),
        decode_positions("zero"),
        id_(
            "source_pad_id",
            shapes.size("encoder.embedding.weight", 0),
            phrase("Source positions with this id are masked if no valid length is given."),
            also=("pad_id",),
        ),
        *decoding_ids(shapes.size("decoder.embedding.weight", 0)),
        activation("relu"),
        embed_scale("sqrt"),
        *vocabularies("source_vocab", "target_vocab"),
    )


def _columns(shapes: Shapes, stack: str) -> int:
    return shapes.size(f"{stack}.blks.block0.{_FIRST[stack]}.W_q.weight", 0)


def _stack(shapes: Shapes, name: str, answers: Answers) -> StackSpec:
    block = f"{name}.blks.block0."
    return StackSpec(
        vocab=shapes.size(f"{name}.embedding.weight", 0),
        d_model=shapes.size(f"{name}.embedding.weight", 1),
        layers=shapes.layers(f"{name}.blks.block#.{_FIRST[name]}.W_q.weight"),
        attention=attention(answers, f"{name}_heads", _columns(shapes, name), shapes.has(f"{block}{_FIRST[name]}.W_q.bias")),
        hidden=shapes.size(f"{block}ffn.dense1.weight", 0),
        activation=answers.activation,
        positions="sinusoidal",
        max_positions=LONGEST,
        embed_scale=answers.embed_scale,
        causal=answers.flag("causal"),
        decode_positions=answers.decode_positions if name == "decoder" else "running",
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    return model_spec(
        answers,
        _stack(shapes, "encoder", answers),
        _stack(shapes, "decoder", answers),
        OutputSpec(bias=shapes.has("decoder.dense.bias")),
    )


D2L = Layout(
    name="d2l",
    title=phrase('Translator of the course "Dive into Deep Learning" (reference document 004)'),
    match=requires("encoder.blks.block#.attention.W_q.weight", "decoder.blks.block#.attention1.W_q.weight", "decoder.dense.weight"),
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(phrase("Padding in a target is not masked: this program uses valid lengths for the source only."),),
    starts=("target",),
    ends=("source", "target"),
)
