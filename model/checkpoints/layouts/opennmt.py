"""OpenNMT-py's Transformer for translation: `transformer.0.self_attn.linear_query`, `transformer_layers.0.context_attn`.

Norms come before sublayers and add 10⁻⁶ to the variance. The output layer is saved in a table of its own, `generator`.
Its vocabularies fix the ids of special tokens: 0 is unknown, 1 pads, 2 begins a target, and 3 ends it.
"""

from collections.abc import Mapping
from dataclasses import replace

from model.checkpoints.layouts.base import Layout, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import Answers, Question, translator
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec

LONGEST = 5000
"""Positions at most where no table bounds them: the length of the program's own tables."""

_EPSILON = 1e-6
_SPECIALS = {"source_pad_id": "1", "target_pad_id": "1", "bos_id": "2", "eos_id": "3", "unk_id": "0"}
_LAYERS = {"encoder": "encoder.transformer.#.", "decoder": "decoder.transformer_layers.#."}
_WORDS = {stack: f"{stack}.embeddings.make_embedding.emb_luts.0.weight" for stack in _LAYERS}
_TABLES = {stack: f"{stack}.embeddings.make_embedding.pe.pe" for stack in _LAYERS}
_MAPS = {"linear_query": "query", "linear_keys": "key", "linear_values": "value", "final_linear": "output"}
_ATTENTIONS = {"encoder": {"self_attn": "attention"}, "decoder": {"self_attn": "self_attention", "context_attn": "cross_attention"}}
_NORMS = {
    "encoder": {"layer_norm": "attention_residual"},
    "decoder": {"layer_norm_1": "self_residual", "layer_norm_2": "cross_residual"},
}
_FEED_FORWARD = {
    "feed_forward.w_1": "feed_forward.expand",
    "feed_forward.w_2": "feed_forward.contract",
    "feed_forward.layer_norm": "feed_forward_residual.norm",
}
_OUTPUTS = ("generator.0", "generator")
"""The output layer: with its softmax in a sequence, from version 3 on alone."""


def _stack_rules(stack: str) -> Rules:
    parts = _FEED_FORWARD | {theirs: f"{ours}.norm" for theirs, ours in _NORMS[stack].items()}
    for attention_, name in _ATTENTIONS[stack].items():
        parts |= {f"{attention_}.{theirs}": f"{name}.{ours}" for theirs, ours in _MAPS.items()}
    return {
        **{f"{_LAYERS[stack]}{theirs}.@": f"{stack}.layers.#.{ours}.@" for theirs, ours in parts.items()},
        _WORDS[stack]: f"{stack}.embedding.token.weight",
        _TABLES[stack]: f"{stack}.embedding.positions.table",
        f"{stack}.layer_norm.@": f"{stack}.final_norm.@",
    }


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    outputs = {f"{name}.@": "output.@" for name in _OUTPUTS}
    return {**outputs, **_stack_rules("encoder"), **_stack_rules("decoder")}


def _query(stack: str) -> str:
    return f"{_LAYERS[stack]}self_attn.linear_query"


def _first(stack: str) -> str:
    return _query(stack).replace("#", "0")


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    vocab = {stack: shapes.size(name, 0) for stack, name in _WORDS.items()}
    columns = {stack: shapes.size(f"{_first(stack)}.weight", 0) for stack in _LAYERS}
    scaled = "sqrt" if any(map(shapes.has, _TABLES.values())) else None  # its positional encoding scales the embeddings
    asked = translator(vocab, columns, told, norms="pre", between="relu", scale=scaled)
    return tuple(replace(question, default=_SPECIALS.get(question.name, question.default)) for question in asked)


def _stack(shapes: Shapes, stack: str, answers: Answers) -> StackSpec:
    table = shapes.has(_TABLES[stack])
    return StackSpec(
        vocab=shapes.size(_WORDS[stack], 0),
        d_model=shapes.size(_WORDS[stack], 1),
        layers=shapes.layers(f"{_query(stack)}.weight"),
        attention=attention(
            answers, f"{stack}_heads", shapes.size(f"{_first(stack)}.weight", 0), shapes.has(f"{_first(stack)}.bias")
        ),
        hidden=shapes.size(f"{_LAYERS[stack]}feed_forward.w_1.weight".replace("#", "0"), 0),
        activation=answers.activation,
        bias=shapes.has(f"{_LAYERS[stack]}feed_forward.w_1.bias"),
        norm_order=answers.norm_order,
        norm_epsilon=_EPSILON,
        final_norm=True,
        positions="sinusoidal" if table else "none",
        max_positions=max(shapes.of[_TABLES[stack]][:2]) if table else LONGEST,
        embed_scale=answers.embed_scale,
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    encoder, decoder = (_stack(shapes, stack, answers) for stack in _LAYERS)
    biased = any(shapes.has(f"{name}.bias") for name in _OUTPUTS)
    return model_spec(answers, encoder, decoder, OutputSpec(bias=biased))


OPENNMT = Layout(
    name="opennmt",
    title="OpenNMT-py",
    match=requires(f"{_query('encoder')}.weight", f"{_LAYERS['decoder']}context_attn.linear_query.weight", *_WORDS.values()),
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(
        phrase(
            "A file without tables of positions was trained without positions, or with relative ones. Headlight does "
            "not run relative positions."
        ),
    ),
    starts=("target",),
    ends=("target",),
)
