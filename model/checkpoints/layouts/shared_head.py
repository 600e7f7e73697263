"""Reference document 003 (docs/references.md): one small matrix for all heads (`query_matrix`).

Its decoder never attends to its own prefix.
"""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Rules, Shapes, model_spec, requires
from model.checkpoints.layouts.questions import (
    Answers,
    Question,
    activation,
    choice,
    decode_positions,
    decoding_ids,
    embed_scale,
    vocabularies,
)
from model.errors import DoesNotFit, phrase
from model.requests.network import AttentionSpec, ModelSpec, OutputSoftmax, OutputSpec, StackSpec

_PARTS = {"query_matrix": "query", "key_matrix": "key", "value_matrix": "value", "out": "output"}


def _attention(theirs: str, ours: str) -> Rules:
    return {f"{theirs}attention.{their}.@": f"{ours}.{our}.@" for their, our in _PARTS.items()}


def _block(theirs: str, ours: str, attention: str, residual: str) -> Rules:
    return {
        **_attention(theirs, f"{ours}{attention}"),
        f"{theirs}norm1.@": f"{ours}{residual}.norm.@",
        f"{theirs}norm2.@": f"{ours}feed_forward_residual.norm.@",
        f"{theirs}feed_forward.0.@": f"{ours}feed_forward.expand.@",
        f"{theirs}feed_forward.2.@": f"{ours}feed_forward.contract.@",
    }


def _rules(shapes: Shapes, settings: Mapping[str, str]) -> Rules:
    decoder = "decoder.layers.#."
    return {
        "encoder.embedding_layer.embed.weight": "encoder.embedding.token.weight",
        "encoder.positional_encoder.pe": "encoder.embedding.positions.table",
        "decoder.word_embedding.weight": "decoder.embedding.token.weight",
        "decoder.position_embedding.pe": "decoder.embedding.positions.table",
        "decoder.fc_out.@": "output.@",
        **_block("encoder.layers.#.", "encoder.layers.#.", "attention", "attention_residual"),
        **_attention(decoder, f"{decoder}memory_attention"),
        f"{decoder}norm.@": f"{decoder}memory_residual.norm.@",
        **_block(f"{decoder}transformer_block.", decoder, "cross_attention", "cross_residual"),
    }


_QUERIES = {
    "encoder": "encoder.layers.0.attention.query_matrix.weight",
    "decoder": "decoder.layers.0.attention.query_matrix.weight",
}
_WORDS = {"encoder": "encoder.embedding_layer.embed.weight", "decoder": "decoder.word_embedding.weight"}
_TABLES = {"encoder": "encoder.positional_encoder.pe", "decoder": "decoder.position_embedding.pe"}
_FORWARD = {
    "encoder": "encoder.layers.0.feed_forward.0.weight",
    "decoder": "decoder.layers.0.transformer_block.feed_forward.0.weight",
}


def _heads(shapes: Shapes, stack: str) -> int:
    """The stream is cut into pieces of the matrix's own width, so their number is no guess.

    Raises:
        BadSetting: the pieces leave a rest.
    """
    width, piece = shapes.size(_WORDS[stack], 1), shapes.size(_QUERIES[stack], 1)
    if width % piece:
        raise DoesNotFit(
            name=_QUERIES[stack],
            reason=phrase(
                "it has {found:,} columns, which do not divide the {width:,} of the residual stream", found=piece, width=width
            ),
        )
    return width // piece


def _ask(shapes: Shapes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    counts = {stack: str(_heads(shapes, stack)) for stack in _WORDS}
    certain = phrase("Only this number of heads fits the matrices in the file.")
    return (
        Question("encoder_heads", certain, (counts["encoder"],), default=counts["encoder"], also=("n_heads",)),
        Question("decoder_heads", certain, (counts["decoder"],), default=counts["decoder"]),
        activation("relu"),
        embed_scale("sqrt"),
        decode_positions("zero"),
        choice(
            "output_softmax",
            phrase(
                "The program’s softmax runs over the batch (batch). With one example, every token then has "
                "probability 1, and the first one is always generated. vocab decodes as was intended."
            ),
            OutputSoftmax,
            "batch",
        ),
        *decoding_ids(shapes.size(_WORDS["decoder"], 0)),
        *vocabularies("source_vocab", "target_vocab"),
    )


def _stack(shapes: Shapes, name: str, answers: Answers) -> StackSpec:
    heads, width = _heads(shapes, name), shapes.size(_WORDS[name], 1)
    return StackSpec(
        vocab=shapes.size(_WORDS[name], 0),
        d_model=width,
        layers=shapes.layers(f"{name}.layers.#.attention.query_matrix.weight"),
        attention=AttentionSpec(heads, width // heads, projections="shared"),
        hidden=shapes.size(_FORWARD[name], 0),
        positions="sinusoidal-column",
        max_positions=shapes.size(_TABLES[name], 1),
        wiring="memory" if name == "decoder" else "standard",
        decode_positions=answers.decode_positions if name == "decoder" else "running",
        **answers.fields(),
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    return model_spec(
        answers,
        _stack(shapes, "encoder", answers),
        _stack(shapes, "decoder", answers),
        OutputSpec(softmax="batch" if answers.text("output_softmax") == "batch" else "vocab"),
    )


SHARED_HEAD = Layout(
    name="shared-head",
    title=phrase("Translator with one small matrix for all heads (reference document 003)"),
    match=requires(
        "encoder.layers.#.attention.query_matrix.weight",
        "decoder.layers.#.transformer_block.attention.query_matrix.weight",
        "decoder.word_embedding.weight",
    ),
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(
        phrase(
            "This decoder does not attend to the tokens it has generated: its masked attention reads the encoder’s "
            "output, and generated tokens are only the queries."
        ),
        phrase("A target must be as long as the source, or one token."),
        phrase("Padding is not masked: this program has no padding mask."),
    ),
)
