"""PyTorch's own modules: nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder, alone or inside a model of any names, and
one of their layers on its own.

The parts around them have names that their author chose: embeddings, output layer and table of positions are asked for unless there
is but one candidate. What PyTorch leaves to the caller (masks) or to the constructor (heads, norm order) is asked for as well.

The language model of PyTorch's tutorial is made of them under names that are known: it has a table of its own and comes first.
"""

from collections.abc import Mapping
from dataclasses import replace

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, attention, model_spec
from model.checkpoints.layouts.questions import (
    Answers,
    Question,
    activation,
    causal,
    decoding_ids,
    embed_scale,
    head_dim,
    heads,
    id_,
    norm_order,
    vocabularies,
)
from model.checkpoints.layouts.role_tables import RoleTable, decoding, heads_of_all, layout, texts
from model.checkpoints.layouts.torch_around import EMBEDDINGS, IN_PROJECTION, TABLES, Around, Stacks, find_stacks
from model.errors import Words, phrase
from model.requests.layout_file import STACKED
from model.requests.network import ModelSpec, OutputSpec, StackSpec


def _other_rows(shapes: Shapes) -> Words | None:
    """A classifier of texts may have all of the names: its last layer has other rows than the vocabulary."""
    rows = {shapes.of[name][:1] for name in ("decoder.weight", "encoder.weight") if name in shapes.of}
    return phrase("decoder.weight has a different number of rows from encoder.weight") if len(rows) > 1 else None


_LM_FUTURE = phrase("Whether a position is prevented from attending to later ones (causal mask), as in a language model.")
TORCH_LM = layout(
    RoleTable(
        "language model",
        roles={
            "encoder.weight": "embedding",
            "pos_encoder.pe": "positions",
            "transformer_encoder.layers.{layer}.self_attn.in_proj_@": STACKED,
            "transformer_encoder.layers.{layer}.self_attn.out_proj.@": "output",
            "transformer_encoder.layers.{layer}.linear1.@": "feed-forward in",
            "transformer_encoder.layers.{layer}.linear2.@": "feed-forward out",
            "transformer_encoder.layers.{layer}.norm1.@": "attention norm",
            "transformer_encoder.layers.{layer}.norm2.@": "feed-forward norm",
            "transformer_encoder.norm.@": "final norm",
            "decoder.@": "vocabulary",
        },
        asks=(heads_of_all, causal("true", _LM_FUTURE), norm_order(), activation(), embed_scale(), decoding, texts),
        facts={"norm_order": "post", "activation": "relu", "embed_scale": "sqrt"},
        always=("vocabulary", "attention norm bias", "feed-forward in bias"),
        table="sinusoidal",
    ),
    name="torch-lm",
    title=phrase("Language model of PyTorch’s tutorial (reference document 001)"),
    needs=(STACKED, "positions", "embedding", "vocabulary"),
    objection=_other_rows,
    notes=(phrase("Padding is not masked: this program has no padding mask."),),
)

LONGEST = 4096
"""Positions at most where no table bounds them."""


_ENCODER = {"self_attn": ("attention", "attention_residual")}
_DECODER = {"self_attn": ("self_attention", "self_residual"), "multihead_attn": ("cross_attention", "cross_residual")}
"""The attentions of PyTorch's layers, in the order of their norms: their name -> our names of the attention and its residual."""


def _layer_rules(theirs: str, ours: str, attentions: Mapping[str, tuple[str, str]]) -> Rules:
    """The names of an nn.TransformerEncoderLayer or an nn.TransformerDecoderLayer; both prefixes end in a dot."""
    rules: dict[str, str | tuple[str, ...]] = {
        f"{theirs}linear1.@": f"{ours}feed_forward.expand.@",
        f"{theirs}linear2.@": f"{ours}feed_forward.contract.@",
        f"{theirs}norm{len(attentions) + 1}.@": f"{ours}feed_forward_residual.norm.@",
    }
    # norm1 follows the first attention, norm2 the second, and the last one the feed-forward network
    for i, (their, (our, residual)) in enumerate(attentions.items()):
        rules[f"{theirs}{their}.in_proj_@"] = tuple(f"{ours}{our}.{part}.@" for part in ("query", "key", "value"))
        rules[f"{theirs}{their}.out_proj.@"] = f"{ours}{our}.output.@"
        rules[f"{theirs}norm{i + 1}.@"] = f"{ours}{residual}.norm.@"
    return rules


def _writes(stacks: Stacks, around: Around, settings: Mapping[str, str]) -> bool:
    """Whether an nn.TransformerEncoder without a decoder is a language model: its mask is causal, or there is an output layer."""
    return stacks.decoder is None and (settings.get("causal") == "true" or "output_layer" in around.filled)


def _match(shapes: Shapes) -> Match:
    if TORCH_LM.match(shapes):
        return Match((), (phrase("it has the names of the layout {name}", name=TORCH_LM.name),))
    stacks = find_stacks(shapes)
    if stacks is None:
        return Match((), (phrase("it lacks layers.#.{name}, or has several groups of them", name=IN_PROJECTION),))
    prefixes = [prefix for prefix in (stacks.encoder, stacks.decoder) if prefix is not None]
    return Match(
        tuple(phrase("it has {pattern}", pattern=stacks.layer(prefix) + IN_PROJECTION) for prefix in prefixes),
        (),
    )


def _rules(shapes: Shapes, settings: Mapping[str, str]) -> Rules:
    if (stacks := find_stacks(shapes)) is None:
        return {}
    around = Around(shapes, stacks, settings)
    # a language model made of encoder layers is a decoder here
    reads, number = "" if _writes(stacks, around, settings) else "encoder.", "0" if stacks.lone else "#"
    rules: dict[str, str | tuple[str, ...]] = {}
    if stacks.encoder is not None:
        rules |= _layer_rules(stacks.layer(stacks.encoder), f"{reads}layers.{number}.", _ENCODER)
        rules[f"{stacks.encoder}norm.@"] = f"{reads}final_norm.@"
    if stacks.decoder is not None:
        rules |= _layer_rules(stacks.layer(stacks.decoder), f"decoder.layers.{number}.", _DECODER)
        rules[f"{stacks.decoder}norm.@"] = "decoder.final_norm.@"
    return {**rules, **around.rules(reads, "weight" if _positions(around, settings) == "learned" else "table")}


def _positions(around: Around, settings: Mapping[str, str]) -> str | None:
    """The kind of positional encoding; a table that is a parameter was learned, a buffer holds sinusoids."""
    learned = any(table.endswith("weight") for table in around.tables)
    return settings.get("positions") or (None if not around.tables else "learned" if learned else "sinusoidal")


def _ask(shapes: Shapes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    stacks = find_stacks(shapes)
    if stacks is None:
        return ()
    width, around = shapes.size(stacks.width, -1), Around(shapes, stacks, settings)
    future = phrase(
        "Whether a position is prevented from attending to later ones (causal mask; in a decoder: to its own later positions). In "
        "PyTorch, the caller passes the mask."
    )
    return (
        heads("n_heads", width, settings),
        head_dim(width),
        norm_order(),
        activation(),
        causal(None, future),
        *around.questions(),
        *_about_words(shapes, around, settings),
    )


def _about_words(shapes: Shapes, around: Around, settings: Mapping[str, str]) -> tuple[Question, ...]:
    """Questions of a model that reads ids."""
    filled = around.filled
    embeddings = {role: shapes.size(filled[role], 0) for role in EMBEDDINGS if role in filled}
    if not embeddings:
        return ()
    vocab = list(embeddings.values())[-1]
    waves = phrase("The kind of positional encoding; a table in the file is used as it is.")
    padding = phrase("Positions with this id are masked (padding mask); without it, none are.")
    asked = {"source_embedding": ("source_pad_id", "source_vocab"), "target_embedding": ("target_pad_id", "target_vocab")}
    names = [asked[role] for role in embeddings]  # a decoder without an encoder reads a target, whatever it attends to
    return (
        embed_scale(),
        Question("positions", waves, ("learned", "sinusoidal", "none"), default=_positions(around, settings)),
        *(id_(name, size, padding, also=("pad_id",)) for (name, _), size in zip(names, embeddings.values(), strict=True)),
        *decoding_ids(vocab),
        *vocabularies(*(name for _, name in names)),
    )


def _stack(shapes: Shapes, stacks: Stacks, prefix: str, role: str, around: Around, answers: Answers) -> StackSpec:
    width = shapes.size(stacks.width, -1)
    embedding, table = around.filled.get(role), around.filled.get(TABLES[role])
    # a table is [position, model], perhaps with a batch of one before or between
    rows = next(size for size in shapes.of[table] if size != 1) if table else LONGEST
    first = stacks.layer(prefix, "0")
    return StackSpec(
        vocab=shapes.size(embedding, 0) if embedding else 0,
        d_model=width,
        layers=1 if stacks.lone else shapes.layers(f"{stacks.layer(prefix)}{IN_PROJECTION}"),
        attention=attention(answers, "n_heads", width, shapes.has(f"{first}self_attn.in_proj_bias")),
        hidden=shapes.size(f"{first}linear1.weight", 0),
        bias=shapes.has(f"{first}linear1.bias"),
        norm="standard" if shapes.has(f"{first}norm1.bias") else "bias-free",
        final_norm=shapes.has(f"{prefix}norm.weight"),
        positions=answers.positions if embedding and (table or not around.tables) else "none",
        max_positions=rows,
        **answers.fields() | ({} if embedding else {"embed_scale": "none"}),
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    prefixes = find_stacks(shapes)
    assert prefixes is not None
    around = Around(shapes, prefixes, answers.of)
    stacks = {
        name: _stack(shapes, prefixes, prefix, role, around, answers)
        for name, prefix, role in zip(("encoder", "decoder"), (prefixes.encoder, prefixes.decoder), EMBEDDINGS, strict=True)
        if prefix is not None
    }
    encoder, decoder = stacks.get("encoder"), stacks.get("decoder")
    if encoder is None and decoder is not None:  # a decoder alone looks at features in place of an encoder's output
        encoder = replace(decoder, vocab=0, layers=0, final_norm=False, positions="none")
    elif _writes(prefixes, around, answers.of):
        encoder, decoder = None, encoder
    output = around.filled.get("output_layer") if decoder is not None and decoder.vocab else None
    return model_spec(answers, encoder, decoder, OutputSpec(bias=bool(around.bias_of(output))) if output else None)


TORCH_TRANSFORMER = Layout(
    name="torch-transformer",
    title=phrase("PyTorch’s nn.Transformer, nn.TransformerEncoder or nn.TransformerDecoder, or a layer of these"),
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(phrase("In PyTorch the caller passes the masks: the masks of this run follow your answers."),),
    starts=("source", "target"),
    ends=("source", "target"),
)
