"""The names of Meta's Llama models, which llama2.c and others share: `layers.0.attention.wq`, `feed_forward.w1`, `tok_embeddings`.

A causal language model with rotary positions (neighboring columns), RMSNorm before its sublayers, gated feed-forward networks and
grouped queries.
"""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, grouped_attention, model_spec, requires
from model.checkpoints.layouts.llama_questions import grouped_heads, head_widths, max_positions, norm_epsilon, rotary_base, variant
from model.checkpoints.layouts.questions import Answers, Question, activation, decoding_ids, vocabularies
from model.spec.network import ModelSpec, OutputSpec, StackSpec

LONGEST = 4096
"""Positions at most where nothing bounds them."""

NO_HEADS = "has queries and keys of sizes that no number of heads gives"
"""Evidence against a layout with grouped queries."""

_WORDS = "tok_embeddings.weight"
_FIRST = "layers.0."
_needs = requires(_WORDS, "layers.#.attention.wq.weight", "layers.#.attention_norm.weight", "layers.#.feed_forward.w3.weight")


def _match(shapes: Shapes) -> Match:
    found = _needs(shapes)
    sizes = [(shapes.of.get(f"{_FIRST}attention.{name}.weight") or (0,))[0] for name in ("wq", "wk")]
    if not found or head_widths(*sizes):
        return found
    return Match(found.in_favour, (NO_HEADS,))


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    layer = "layers.#."
    return {
        _WORDS: "embedding.token.weight",
        **{f"{layer}attention.w{their}.@": f"{layer}attention.{our}.@" for their, our in zip("qkvo", _PARTS, strict=True)},
        f"{layer}feed_forward.w1.@": f"{layer}feed_forward.expand.@",
        f"{layer}feed_forward.w2.@": f"{layer}feed_forward.contract.@",
        f"{layer}feed_forward.w3.@": f"{layer}feed_forward.gate.@",
        f"{layer}attention_norm.weight": f"{layer}attention_residual.norm.weight",
        f"{layer}ffn_norm.weight": f"{layer}feed_forward_residual.norm.weight",
        "norm.weight": "final_norm.weight",
        "output.weight": "output.weight",
    }


_PARTS = ("query", "key", "value", "output")


def _columns(shapes: Shapes) -> tuple[int, int]:
    """Columns of all heads' queries, and of all heads' keys."""
    return shapes.size(f"{_FIRST}attention.wq.weight", 0), shapes.size(f"{_FIRST}attention.wk.weight", 0)


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    return (
        *grouped_heads(*_columns(shapes), told),
        activation("silu"),
        rotary_base(),
        variant(),
        norm_epsilon(),
        max_positions(LONGEST),
        *decoding_ids(shapes.size(_WORDS, 0)),
        *vocabularies("source_vocab"),
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    stack = StackSpec(
        vocab=shapes.size(_WORDS, 0),
        d_model=shapes.size(_WORDS, 1),
        layers=shapes.layers("layers.#.attention.wq.weight"),
        attention=grouped_attention(answers, *_columns(shapes), shapes.has(f"{_FIRST}attention.wq.bias")),
        hidden=shapes.size(f"{_FIRST}feed_forward.w1.weight", 0),
        activation=answers.activation,
        bias=shapes.has(f"{_FIRST}feed_forward.w1.bias"),
        gated=True,
        norm_order="pre",
        norm="rms",
        norm_epsilon=float(answers.text("norm_epsilon")),
        final_norm=True,
        positions="rotary-pairs",
        rotary_base=answers.number("rotary_base"),
        max_positions=answers.number("max_positions"),
        embed_scale="none",
    )
    return model_spec(answers, None, stack, OutputSpec(tied=not shapes.has("output.weight"), bias=False))


LLAMA = Layout(
    name="llama",
    title="Llama by Meta's names, as in llama2.c",
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    starts=("source",),
    recomputed=("rope.freqs",),
)
