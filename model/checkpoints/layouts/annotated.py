"""The Annotated Transformer, Harvard's line-by-line lesson: its own LayerNorm, norms before sublayers (`linears.0`, `a_2`)."""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import Answers, Question, translator
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec

_PARTS = ("query", "key", "value", "output")
_WORDS = {"encoder": "src_embed.0.lut.weight", "decoder": "tgt_embed.0.lut.weight"}
_TABLES = {"encoder": "src_embed.1.pe", "decoder": "tgt_embed.1.pe"}
_SUBLAYERS = {
    "encoder": {"self_attn": "attention"},
    "decoder": {"self_attn": "self_attention", "src_attn": "cross_attention"},
}
_RESIDUALS = {
    "encoder": ("attention_residual", "feed_forward_residual"),
    "decoder": ("self_residual", "cross_residual", "feed_forward_residual"),
}


def _norm(theirs: str, ours: str) -> Rules:
    return {f"{theirs}.a_2": f"{ours}.weight", f"{theirs}.b_2": f"{ours}.bias"}


def _stack_rules(name: str) -> Rules:
    layer = f"{name}.layers.#."
    rules: dict[str, str] = {
        _WORDS[name]: f"{name}.embedding.token.weight",
        _TABLES[name]: f"{name}.embedding.positions.table",
        f"{layer}feed_forward.w_1.@": f"{layer}feed_forward.expand.@",
        f"{layer}feed_forward.w_2.@": f"{layer}feed_forward.contract.@",
    }
    for theirs, ours in _SUBLAYERS[name].items():
        rules |= {f"{layer}{theirs}.linears.{i}.@": f"{layer}{ours}.{part}.@" for i, part in enumerate(_PARTS)}
    norms = [_norm(f"{layer}sublayer.{i}.norm", f"{layer}{residual}.norm") for i, residual in enumerate(_RESIDUALS[name])]
    return {**rules, **{k: v for norm in norms for k, v in norm.items()}, **_norm(f"{name}.norm", f"{name}.final_norm")}


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    return {"generator.proj.@": "output.@", **_stack_rules("encoder"), **_stack_rules("decoder")}


def _columns(shapes: Shapes, stack: str) -> int:
    return shapes.size(f"{stack}.layers.0.self_attn.linears.0.weight", 0)


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    columns = {stack: _columns(shapes, stack) for stack in _WORDS}
    vocab = {stack: shapes.size(name, 0) for stack, name in _WORDS.items()}
    return translator(vocab, columns, told, norms="pre", between="relu", scale="sqrt")


def _stack(shapes: Shapes, name: str, answers: Answers) -> StackSpec:
    first = f"{name}.layers.0.self_attn.linears.0"
    return StackSpec(
        vocab=shapes.size(_WORDS[name], 0),
        d_model=shapes.size(_WORDS[name], 1),
        layers=shapes.layers(f"{name}.layers.#.self_attn.linears.0.weight"),
        attention=attention(answers, f"{name}_heads", _columns(shapes, name), shapes.has(f"{first}.bias")),
        hidden=shapes.size(f"{name}.layers.0.feed_forward.w_1.weight", 0),
        activation=answers.activation,
        norm_order=answers.norm_order,
        norm="unbiased",
        final_norm=True,
        positions="sinusoidal",
        max_positions=shapes.size(_TABLES[name], 1),
        embed_scale=answers.embed_scale,
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    return model_spec(
        answers,
        _stack(shapes, "encoder", answers),
        _stack(shapes, "decoder", answers),
        OutputSpec(bias=shapes.has("generator.proj.bias")),
    )


ANNOTATED = Layout(
    name="annotated",
    title=phrase("The Annotated Transformer"),
    match=requires("encoder.layers.#.self_attn.linears.0.weight", "decoder.layers.#.src_attn.linears.0.weight", "encoder.norm.a_2"),
    rules=_rules,
    ask=_ask,
    read=_read,
    starts=("source", "target"),
    ends=("source", "target"),
)
