"""The names of Meta's Llama models, which llama2.c and others share: `layers.0.attention.wq`, `feed_forward.w1`, `tok_embeddings`.

A causal language model with rotary positions (neighboring columns), RMSNorm before its sublayers, gated feed-forward networks and
grouped queries.
"""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, requires
from model.checkpoints.layouts.llama_like import NO_HEADS, LlamaNames, asked, described, head_widths
from model.checkpoints.layouts.questions import Answers, Question
from model.errors import phrase
from model.spec.network import ModelSpec

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


def _names(shapes: Shapes) -> LlamaNames:
    return LlamaNames(_WORDS, "layers.#.attention.wq", "layers.#.feed_forward.w1", "output", _columns(shapes))


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    return asked(shapes, _names(shapes), told, "silu")


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    return described(shapes, _names(shapes), answers, "rotary-pairs")


LLAMA = Layout(
    name="llama",
    title=phrase("Llama by Meta’s names, as in llama2.c"),
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    starts=("source",),
    recomputed=("rope.freqs",),
)
