"""fairseq's Transformer for translation: `self_attn.q_proj`, `encoder_attn_layer_norm`, `embed_tokens`.

Its dictionary fixes the ids of special tokens: 1 pads, 2 ends a sentence, 3 is unknown. Decoding begins with the token that ends.
"""

from collections.abc import Mapping
from dataclasses import replace

from model.checkpoints.layouts.base import Layout, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import Answers, Question, translator
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec
from model.transformer.positions import FAIRSEQ_FIRST

LONGEST = 1024
"""Positions at most where no table bounds them: fairseq's own limit."""

_SPECIALS = {"source_pad_id": "1", "target_pad_id": "1", "bos_id": "2", "eos_id": "2", "unk_id": "3"}
_STACKS = ("encoder", "decoder")
_OUTPUTS = ("decoder.output_projection.weight", "decoder.embed_out")
_ATTENTIONS = {"encoder": {"self_attn": "attention"}, "decoder": {"self_attn": "self_attention", "encoder_attn": "cross_attention"}}
_MAPS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
_OTHERS = {
    "encoder": {"self_attn_layer_norm": "attention_residual.norm"},
    "decoder": {"self_attn_layer_norm": "self_residual.norm", "encoder_attn_layer_norm": "cross_residual.norm"},
}
_FEED_FORWARD = {
    "fc1": "feed_forward.expand",
    "fc2": "feed_forward.contract",
    "final_layer_norm": "feed_forward_residual.norm",
}


def _stack_rules(stack: str) -> Rules:
    parts = _OTHERS[stack] | _FEED_FORWARD
    for theirs, ours in _ATTENTIONS[stack].items():
        parts = parts | {f"{theirs}.{one}": f"{ours}.{other}" for one, other in _MAPS.items()}
    rules = {f"{stack}.layers.#.{theirs}.@": f"{stack}.layers.#.{ours}.@" for theirs, ours in parts.items()}
    return {
        **rules,
        f"{stack}.embed_tokens.weight": f"{stack}.embedding.token.weight",
        f"{stack}.embed_positions.weight": f"{stack}.embedding.positions.weight",
        f"{stack}.layer_norm.@": f"{stack}.final_norm.@",
    }


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    return {**dict.fromkeys(_OUTPUTS, "output.weight"), **_stack_rules("encoder"), **_stack_rules("decoder")}


def _query(stack: str, layer: str = "#") -> str:
    return f"{stack}.layers.{layer}.self_attn.q_proj.weight"


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    vocab = {stack: shapes.size(f"{stack}.embed_tokens.weight", 0) for stack in _STACKS}
    columns = {stack: shapes.size(_query(stack, "0"), 0) for stack in _STACKS}
    norms = "pre" if shapes.has("encoder.layer_norm.weight") else "post"  # there is such a norm only in pre-norm stacks
    asked = translator(vocab, columns, told, norms=norms)
    return tuple(replace(question, default=_SPECIALS.get(question.name, question.default)) for question in asked)


def _stack(shapes: Shapes, stack: str, answers: Answers) -> StackSpec:
    table = f"{stack}.embed_positions.weight"
    learned = shapes.has(table)
    return StackSpec(
        vocab=shapes.size(f"{stack}.embed_tokens.weight", 0),
        d_model=shapes.size(f"{stack}.embed_tokens.weight", 1),
        layers=shapes.layers(_query(stack)),
        attention=attention(answers, f"{stack}_heads", shapes.size(_query(stack, "0"), 0), bias=True),
        hidden=shapes.size(f"{stack}.layers.0.fc1.weight", 0),
        activation=answers.activation,
        norm_order=answers.norm_order,
        final_norm=shapes.has(f"{stack}.layer_norm.weight"),
        positions="learned-from-2" if learned else "sinusoidal-from-2",
        max_positions=shapes.size(table, 0) - FAIRSEQ_FIRST if learned else LONGEST,
        embed_scale=answers.embed_scale,
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    encoder, decoder = (_stack(shapes, stack, answers) for stack in _STACKS)
    return model_spec(answers, encoder, decoder, OutputSpec(tied=not any(map(shapes.has, _OUTPUTS)), bias=False))


FAIRSEQ = Layout(
    name="fairseq",
    title="fairseq",
    match=requires(_query("encoder"), "decoder.layers.#.encoder_attn.q_proj.weight", "encoder.embed_tokens.weight"),
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(phrase("fairseq begins a target with the end token, and counts positions from 2."),),
    starts=("target",),
    ends=("source",),
)
