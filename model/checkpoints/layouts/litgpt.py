"""lit-gpt, a program for Llama-like models: `transformer.h.0.attn.qkv`, `mlp.fc_1`, `norm_1`.

A causal language model with rotary positions (columns half a head apart), RMSNorm before its sublayers, gated feed-forward networks
and grouped queries. Versions before 0.5.4 order their stacked projections by groups and call them `attn.attn`.
"""

from collections.abc import Mapping

from model.checkpoints.layouts.base import ByKeyHead, Layout, Match, Rules, Shapes, requires
from model.checkpoints.layouts.llama_like import NO_HEADS, LlamaNames, asked, described, head_widths
from model.checkpoints.layouts.questions import Answers, Question, embed_scale
from model.errors import phrase
from model.spec.network import ModelSpec

_WORDS = "transformer.wte.weight"
_FIRST = "transformer.h.0."
_STACKED = ("attn.qkv", "attn.attn")
_needs = requires(_WORDS, "transformer.h.#.norm_1.weight", "transformer.h.#.mlp.fc_1.weight", "transformer.h.#.mlp.fc_2.weight")


def _match(shapes: Shapes) -> Match:
    found = _needs(shapes)
    there = [name for name in _STACKED if shapes.has(f"transformer.h.#.{name}.weight")]
    several = phrase("it has both attn.qkv and attn.attn") if there else phrase("it lacks attn.qkv and attn.attn")
    against = () if len(there) == 1 else (several,)
    if there and not against and not head_widths(*_columns(shapes)):
        against = (NO_HEADS,)
    return Match(found.in_favour, found.against + against)


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    layer = "transformer.h.#."
    parts = tuple(f"layers.#.attention.{part}.@" for part in ("query", "key", "value"))
    return {
        _WORDS: "embedding.token.weight",
        f"{layer}attn.qkv.@": parts,
        f"{layer}attn.attn.@": ByKeyHead(parts),
        f"{layer}attn.proj.@": "layers.#.attention.output.@",
        f"{layer}mlp.fc_1.@": "layers.#.feed_forward.expand.@",
        f"{layer}mlp.fc_2.@": "layers.#.feed_forward.gate.@",
        f"{layer}mlp.proj.@": "layers.#.feed_forward.contract.@",
        f"{layer}norm_1.weight": "layers.#.attention_residual.norm.weight",
        f"{layer}norm_2.weight": "layers.#.feed_forward_residual.norm.weight",
        "transformer.ln_f.weight": "final_norm.weight",
        "lm_head.@": "output.@",
    }


def _stacked(shapes: Shapes) -> str:
    return next(name for name in _STACKED if shapes.has(f"transformer.h.#.{name}.weight"))


def _columns(shapes: Shapes) -> tuple[int, int]:
    """Columns of all heads' queries, which the output projection reads, and of all heads' keys."""
    queries = (shapes.of.get(f"{_FIRST}attn.proj.weight") or (0,))[-1]
    rows = (shapes.of.get(f"{_FIRST}{_stacked(shapes)}.weight") or (0,))[0]
    return queries, (rows - queries) // 2 if (rows - queries) % 2 == 0 else 0


def _names(shapes: Shapes) -> LlamaNames:
    return LlamaNames(_WORDS, f"transformer.h.#.{_stacked(shapes)}", "transformer.h.#.mlp.fc_1", "lm_head", _columns(shapes))


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    return asked(shapes, _names(shapes), told, None, embed_scale())


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    return described(shapes, _names(shapes), answers, "rotary", answers.embed_scale)


LITGPT = Layout(
    name="lit-gpt",
    title="lit-gpt",
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    starts=("source",),
)
