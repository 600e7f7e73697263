"""Reference document 000 (docs/references.md), and the tutorial it comes from (`encoder.tok_embedding`, `fc_q`).

A translator with learned positions.
"""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import Answers, Question, translator
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec


def _sublayer(theirs: str, ours: str, norm: str, residual: str) -> Rules:
    return {
        f"{theirs}.fc_q.@": f"{ours}.query.@",
        f"{theirs}.fc_k.@": f"{ours}.key.@",
        f"{theirs}.fc_v.@": f"{ours}.value.@",
        f"{theirs}.fc_o.@": f"{ours}.output.@",
        f"{norm}.@": f"{residual}.norm.@",
    }


def layer_rules(theirs: str, ours: str, decoder: bool) -> Rules:
    """The names of one layer, or with `#` in both prefixes of all layers. Prefixes end in a dot, or are empty."""
    names = {
        f"{theirs}positionwise_feedforward.fc_1.@": f"{ours}feed_forward.expand.@",
        f"{theirs}positionwise_feedforward.fc_2.@": f"{ours}feed_forward.contract.@",
        f"{theirs}ff_layer_norm.@": f"{ours}feed_forward_residual.norm.@",
    }
    own, residual = ("self_attention", "self_residual") if decoder else ("attention", "attention_residual")
    first = _sublayer(f"{theirs}self_attention", f"{ours}{own}", f"{theirs}self_attn_layer_norm", f"{ours}{residual}")
    cross = _sublayer(
        f"{theirs}encoder_attention", f"{ours}cross_attention", f"{theirs}enc_attn_layer_norm", f"{ours}cross_residual"
    )
    return {**names, **first, **(cross if decoder else {})}


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    return {
        "encoder.tok_embedding.weight": "encoder.embedding.token.weight",
        "encoder.pos_embedding.weight": "encoder.embedding.positions.weight",
        "decoder.tok_embedding.weight": "decoder.embedding.token.weight",
        "decoder.pos_embedding.weight": "decoder.embedding.positions.weight",
        "decoder.fc_out.@": "output.@",
        **layer_rules("encoder.layers.#.", "encoder.layers.#.", decoder=False),
        **layer_rules("decoder.layers.#.", "decoder.layers.#.", decoder=True),
    }


def _columns(shapes: Shapes, stack: str) -> int:
    return shapes.size(f"{stack}.layers.0.self_attention.fc_q.weight", 0)


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    columns = {stack: _columns(shapes, stack) for stack in ("encoder", "decoder")}
    vocab = {stack: shapes.size(f"{stack}.tok_embedding.weight", 0) for stack in columns}
    passes = phrase(
        "Two programs use the same names: in one the target passes through the decoder’s layers once, in the other "
        "twice. With the wrong answer everything after the first pass is wrong."
    )
    twice = Question("decoder_passes", passes, ("1", "2"))
    return translator(vocab, columns, told, twice, norms="post", between="relu", scale="sqrt")


def stack(shapes: Shapes, name: str, answers: Answers, passes: int = 1) -> StackSpec:
    """One of the two stacks."""
    return StackSpec(
        vocab=shapes.size(f"{name}.tok_embedding.weight", 0),
        d_model=shapes.size(f"{name}.tok_embedding.weight", 1),
        layers=shapes.layers(f"{name}.layers.#.self_attention.fc_q.weight"),
        attention=attention(
            answers, f"{name}_heads", _columns(shapes, name), shapes.has(f"{name}.layers.0.self_attention.fc_q.bias")
        ),
        hidden=shapes.size(f"{name}.layers.0.positionwise_feedforward.fc_1.weight", 0),
        passes=passes,
        activation=answers.activation,
        norm_order=answers.norm_order,
        max_positions=shapes.size(f"{name}.pos_embedding.weight", 0),
        embed_scale=answers.embed_scale,
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    encoder = stack(shapes, "encoder", answers)
    decoder = stack(shapes, "decoder", answers, answers.number("decoder_passes"))
    return model_spec(answers, encoder, decoder, OutputSpec())


TUTORIAL = Layout(
    name="tutorial",
    title=phrase("Translator of the sequence-to-sequence tutorial (reference document 000)"),
    match=requires(
        "encoder.tok_embedding.weight",
        "encoder.pos_embedding.weight",
        "encoder.layers.#.self_attention.fc_q.weight",
        "decoder.layers.#.encoder_attention.fc_q.weight",
    ),
    rules=_rules,
    ask=_ask,
    read=_read,
    starts=("source", "target"),
    ends=("source", "target"),
)
