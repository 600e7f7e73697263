"""JoeyNMT, a small toolkit for translation: `src_src_att.k_layer`, `pwff_layer.0`. Its LayerNorms add 10⁻⁶ to the variance."""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import Answers, Question, translator
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec

_EPSILON = 1e-6
_WORDS = {"encoder": "src_embed.lut.weight", "decoder": "trg_embed.lut.weight"}
_ATTENTIONS = {
    "encoder": {"src_src_att": "attention"},
    "decoder": {"trg_trg_att": "self_attention", "src_trg_att": "cross_attention"},
}
_NORMS = {
    "encoder": {"layer_norm": "attention_residual"},
    "decoder": {"x_layer_norm": "self_residual", "dec_layer_norm": "cross_residual"},
}
_MAPS = {"q_layer": "query", "k_layer": "key", "v_layer": "value", "output_layer": "output"}
_FEED_FORWARD = {
    "feed_forward.pwff_layer.0": "feed_forward.expand",
    "feed_forward.pwff_layer.3": "feed_forward.contract",
    "feed_forward.layer_norm": "feed_forward_residual.norm",
}


def _stack_rules(stack: str) -> Rules:
    layer = f"{stack}.layers.#."
    parts = _FEED_FORWARD | {theirs: f"{ours}.norm" for theirs, ours in _NORMS[stack].items()}
    for attention_, name in _ATTENTIONS[stack].items():
        parts |= {f"{attention_}.{theirs}": f"{name}.{ours}" for theirs, ours in _MAPS.items()}
    rules = {f"{layer}{theirs}.@": f"{layer}{ours}.@" for theirs, ours in parts.items()}
    return {
        **rules,
        _WORDS[stack]: f"{stack}.embedding.token.weight",
        f"{stack}.pe.pe": f"{stack}.embedding.positions.table",
        f"{stack}.layer_norm.@": f"{stack}.final_norm.@",
    }


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    return {"decoder.output_layer.weight": "output.weight", **_stack_rules("encoder"), **_stack_rules("decoder")}


def _query(stack: str) -> str:
    return f"{stack}.layers.#.{next(iter(_ATTENTIONS[stack]))}.q_layer.weight"


def _columns(shapes: Shapes, stack: str) -> int:
    return shapes.size(_query(stack).replace("#", "0"), 0)


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    vocab = {stack: shapes.size(name, 0) for stack, name in _WORDS.items()}
    return translator(vocab, {stack: _columns(shapes, stack) for stack in _WORDS}, told, between="relu")


def _stack(shapes: Shapes, stack: str, answers: Answers) -> StackSpec:
    return StackSpec(
        vocab=shapes.size(_WORDS[stack], 0),
        d_model=shapes.size(_WORDS[stack], 1),
        layers=shapes.layers(_query(stack)),
        attention=attention(answers, f"{stack}_heads", _columns(shapes, stack), bias=True),
        hidden=shapes.size(f"{stack}.layers.0.feed_forward.pwff_layer.0.weight", 0),
        activation=answers.activation,
        norm_order=answers.norm_order,
        norm_epsilon=_EPSILON,
        final_norm=shapes.has(f"{stack}.layer_norm.weight"),
        positions="sinusoidal",
        max_positions=shapes.size(f"{stack}.pe.pe", 1),
        embed_scale=answers.embed_scale,
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    encoder, decoder = (_stack(shapes, stack, answers) for stack in _WORDS)
    return model_spec(answers, encoder, decoder, OutputSpec(bias=False))


JOEYNMT = Layout(
    name="joeynmt",
    title="JoeyNMT",
    match=requires(_query("encoder"), "decoder.layers.#.src_trg_att.q_layer.weight", *_WORDS.values()),
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(
        phrase("JoeyNMT can scale its residual connections (alpha, for very deep networks); this reading adds them as they are."),
    ),
    starts=("target",),
    ends=("source", "target"),
)
