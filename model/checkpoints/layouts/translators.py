"""Translators: one table for each program, with the role of each of its tensors.

Documents 000, 002 and 004 are those of docs/references.md.
"""

from collections.abc import Mapping
from dataclasses import replace

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, attention, model_spec
from model.checkpoints.layouts.questions import (
    Answers,
    Question,
    activation,
    causal,
    decode_positions,
    embed_scale,
    head_dim,
    heads,
    id_,
    norm_order,
)
from model.checkpoints.layouts.role_tables import RoleTable, Sizes, decoding, heads_of_all, layout, padding, texts
from model.errors import phrase
from model.requests.network import ModelSpec, StackSpec

_ASKED = (padding, decoding, norm_order(), activation(), embed_scale(), texts)
_ALWAYS = ("vocabulary", "attention norm bias", "feed-forward in bias")
_BOTH = ("source", "target")


def _in_both(
    rows: Mapping[str, str], encoder: str = "encoder.layers.{layer}.", decoder: str = "decoder.layers.{layer}."
) -> dict[str, str]:
    """Rows that hold in the encoder and in the decoder, under these prefixes."""
    prefixes = {"encoder": encoder, "decoder": decoder}
    return {f"{prefix}{name}": f"{stack} {role}" for stack, prefix in prefixes.items() for name, role in rows.items()}


def _attention(names: str, before: str = "") -> dict[str, str]:
    """The four maps of an attention, from a pattern with their names in parentheses; `before` stands before their roles."""
    first, maps, last = names.replace("(", ")").split(")")
    roles = ("query", "key", "value", "output")
    return {f"{first}{name}{last}": f"{before}{role}" for name, role in zip(maps.split("|"), roles, strict=True)}


ANNOTATED = layout(
    RoleTable(
        "translator",
        roles={
            "src_embed.0.lut.weight": "encoder embedding",
            "tgt_embed.0.lut.weight": "decoder embedding",
            "src_embed.1.pe": "encoder positions",
            "tgt_embed.1.pe": "decoder positions",
            **_in_both(_attention("self_attn.linears.(0|1|2|3).@")),
            **_attention("decoder.layers.{layer}.src_attn.linears.(0|1|2|3).@", "decoder cross "),
            **_in_both({"feed_forward.w_1.@": "feed-forward in", "feed_forward.w_2.@": "feed-forward out"}),
            **_in_both({"sublayer.0.norm.a_2": "attention norm", "sublayer.0.norm.b_2": "attention norm bias"}),
            "encoder.layers.{layer}.sublayer.1.norm.a_2": "encoder feed-forward norm",
            "encoder.layers.{layer}.sublayer.1.norm.b_2": "encoder feed-forward norm bias",
            "decoder.layers.{layer}.sublayer.1.norm.a_2": "decoder cross norm",
            "decoder.layers.{layer}.sublayer.1.norm.b_2": "decoder cross norm bias",
            "decoder.layers.{layer}.sublayer.2.norm.a_2": "decoder feed-forward norm",
            "decoder.layers.{layer}.sublayer.2.norm.b_2": "decoder feed-forward norm bias",
            **_in_both({"norm.a_2": "final norm", "norm.b_2": "final norm bias"}, "encoder.", "decoder."),
            "generator.proj.@": "vocabulary",
        },
        asks=(heads_of_all, *_ASKED),
        facts={"norm_order": "pre", "activation": "relu", "embed_scale": "sqrt"},
        fixed={"norm": "unbiased"},
        always=(*_ALWAYS, "final norm"),
        table="sinusoidal",
    ),
    name="annotated",
    title=phrase("The Annotated Transformer"),
    needs=("encoder query", "decoder cross query", "encoder final norm"),
    starts=_BOTH,
    ends=_BOTH,
)

_D2L_FUTURE = phrase(
    "Whether positions of a given target are prevented from attending to later ones. The program does so only in training; "
    "what it generates itself does not change."
)


def _d2l_padding(sizes: Sizes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    words = phrase("Source positions with this id are masked if no valid length is given.")
    return (id_("source_pad_id", sizes.of("encoder embedding", 0), words, also=("pad_id",)),)


D2L = layout(
    RoleTable(
        "translator",
        roles={
            **_in_both({"embedding.weight": "embedding"}, "encoder.", "decoder."),
            **_attention("encoder.blks.block{layer}.attention.W_(q|k|v|o).@", "encoder "),
            **_attention("decoder.blks.block{layer}.attention1.W_(q|k|v|o).@", "decoder "),
            **_attention("decoder.blks.block{layer}.attention2.W_(q|k|v|o).@", "decoder cross "),
            **_in_both(
                {"addnorm1.ln.@": "attention norm", "ffn.dense1.@": "feed-forward in", "ffn.dense2.@": "feed-forward out"},
                "encoder.blks.block{layer}.",
                "decoder.blks.block{layer}.",
            ),
            "encoder.blks.block{layer}.addnorm2.ln.@": "encoder feed-forward norm",
            "decoder.blks.block{layer}.addnorm2.ln.@": "decoder cross norm",
            "decoder.blks.block{layer}.addnorm3.ln.@": "decoder feed-forward norm",
            "decoder.dense.@": "vocabulary",
        },
        asks=(heads_of_all, causal("false", _D2L_FUTURE), decode_positions("zero"), _d2l_padding, decoding, *_ASKED[3:]),
        facts={"activation": "relu", "embed_scale": "sqrt"},
        fixed={"positions": "sinusoidal", "max_positions": "1000"},  # the length of the table that the program works out
        always=_ALWAYS,
    ),
    name="d2l",
    title=phrase("Translator of the course “Dive into Deep Learning” (reference document 004)"),
    needs=("encoder query", "decoder query", "vocabulary"),
    notes=(phrase("Padding in a target is not masked: this program uses valid lengths for the source only."),),
    starts=("target",),
    ends=_BOTH,
)

FAIRSEQ = layout(
    RoleTable(
        "translator",
        roles={
            **_in_both(
                {"embed_tokens.weight": "embedding", "embed_positions.weight": "positions", "layer_norm.@": "final norm"},
                "encoder.",
                "decoder.",
            ),
            **_in_both(
                {
                    **_attention("self_attn.(q|k|v|out)_proj.@"),
                    "self_attn_layer_norm.@": "attention norm",
                    "fc1.@": "feed-forward in",
                    "fc2.@": "feed-forward out",
                    "final_layer_norm.@": "feed-forward norm",
                }
            ),
            **_attention("decoder.layers.{layer}.encoder_attn.(q|k|v|out)_proj.@", "decoder cross "),
            "decoder.layers.{layer}.encoder_attn_layer_norm.@": "decoder cross norm",
            "decoder.output_projection.weight": "vocabulary",
            "decoder.embed_out": "vocabulary",
        },
        asks=(
            heads_of_all,
            padding,
            decoding,
            # a stack has one norm more only if it is pre-norm
            lambda sizes, settings: (norm_order("pre" if sizes.has("encoder final norm") else "post"),),
            *_ASKED[3:],
        ),
        # its dictionary fixes the ids of special tokens; decoding begins with the token that ends
        facts={"source_pad_id": "1", "target_pad_id": "1", "bos_id": "2", "eos_id": "2", "unk_id": "3"},
        fixed={"positions": "sinusoidal-from-2", "max_positions": "1024"},
        always=("query bias", *_ALWAYS[1:]),
        table="learned-from-2",
    ),
    name="fairseq",
    title="fairseq",
    needs=("encoder query", "decoder cross query", "encoder embedding"),
    notes=(phrase("fairseq begins a target with the end token, and counts positions from 2."),),
    starts=("target",),
    ends=("source",),
)

JOEYNMT = layout(
    RoleTable(
        "translator",
        roles={
            "src_embed.lut.weight": "encoder embedding",
            "trg_embed.lut.weight": "decoder embedding",
            **_in_both({"pe.pe": "positions", "layer_norm.@": "final norm"}, "encoder.", "decoder."),
            **_attention("encoder.layers.{layer}.src_src_att.(q|k|v|output)_layer.@", "encoder "),
            **_attention("decoder.layers.{layer}.trg_trg_att.(q|k|v|output)_layer.@", "decoder "),
            **_attention("decoder.layers.{layer}.src_trg_att.(q|k|v|output)_layer.@", "decoder cross "),
            "encoder.layers.{layer}.layer_norm.@": "encoder attention norm",
            "decoder.layers.{layer}.x_layer_norm.@": "decoder attention norm",
            "decoder.layers.{layer}.dec_layer_norm.@": "decoder cross norm",
            **_in_both(
                {
                    "feed_forward.pwff_layer.0.@": "feed-forward in",
                    "feed_forward.pwff_layer.3.@": "feed-forward out",
                    "feed_forward.layer_norm.@": "feed-forward norm",
                }
            ),
            "decoder.output_layer.weight": "vocabulary",
        },
        asks=(heads_of_all, *_ASKED),
        facts={"activation": "relu"},
        fixed={"norm_epsilon": "1e-06"},
        always=("query bias", *_ALWAYS),
        table="sinusoidal",
    ),
    name="joeynmt",
    title="JoeyNMT",
    needs=("encoder query", "decoder cross query", "encoder embedding", "decoder embedding"),
    notes=(phrase("JoeyNMT can scale its residual connections (alpha, for very deep networks); Headlight adds them as they are."),),
    starts=("target",),
    ends=_BOTH,
)


def _opennmt_scale(sizes: Sizes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    """Its positional encoding scales the embeddings."""
    return (embed_scale("sqrt" if any(map(sizes.has_table, sizes.table.stacks)) else None),)


OPENNMT = layout(
    RoleTable(
        "translator",
        roles={
            **_in_both(
                {
                    "embeddings.make_embedding.emb_luts.0.weight": "embedding",
                    "embeddings.make_embedding.pe.pe": "positions",
                    "layer_norm.@": "final norm",
                },
                "encoder.",
                "decoder.",
            ),
            **_in_both(
                {
                    **_attention("self_attn.(linear_query|linear_keys|linear_values|final_linear).@"),
                    "feed_forward.w_1.@": "feed-forward in",
                    "feed_forward.w_2.@": "feed-forward out",
                    "feed_forward.layer_norm.@": "feed-forward norm",
                },
                "encoder.transformer.{layer}.",
                "decoder.transformer_layers.{layer}.",
            ),
            **_attention(
                "decoder.transformer_layers.{layer}.context_attn.(linear_query|linear_keys|linear_values|final_linear).@",
                "decoder cross ",
            ),
            "encoder.transformer.{layer}.layer_norm.@": "encoder attention norm",
            "decoder.transformer_layers.{layer}.layer_norm_1.@": "decoder attention norm",
            "decoder.transformer_layers.{layer}.layer_norm_2.@": "decoder cross norm",
            "generator.0.@": "vocabulary",  # with its softmax in a sequence, from version 3 on alone
            "generator.@": "vocabulary",
        },
        asks=(heads_of_all, *_ASKED[:4], _opennmt_scale, texts),
        facts={
            "source_pad_id": "1",
            "target_pad_id": "1",
            "bos_id": "2",
            "eos_id": "3",
            "unk_id": "0",
            "norm_order": "pre",
            "activation": "relu",
        },
        fixed={"norm_epsilon": "1e-06", "positions": "none", "max_positions": "5000"},  # as long as the program's own tables
        always=("vocabulary", "final norm", "attention norm bias"),
        table="sinusoidal",
    ),
    name="opennmt",
    title="OpenNMT-py",
    needs=("encoder query", "decoder cross query", "encoder embedding", "decoder embedding"),
    notes=(
        phrase(
            "A file without tables of positions was trained without positions, or with relative ones. Headlight does "
            "not run relative positions."
        ),
    ),
    starts=("target",),
    ends=("target",),
)

_TWICE = phrase(
    "Two programs use the same names: in one the target passes through the decoder’s layers once, in the other "
    "twice. With the wrong answer everything after the first pass is wrong."
)
TUTORIAL = layout(
    RoleTable(
        "translator",
        roles={
            **_in_both({"tok_embedding.weight": "embedding", "pos_embedding.weight": "positions"}, "encoder.", "decoder."),
            **_in_both(
                {
                    "positionwise_feedforward.fc_1.@": "feed-forward in",
                    "positionwise_feedforward.fc_2.@": "feed-forward out",
                    "ff_layer_norm.@": "feed-forward norm",
                    **_attention("self_attention.fc_(q|k|v|o).@"),
                    "self_attn_layer_norm.@": "attention norm",
                }
            ),
            **_attention("decoder.layers.{layer}.encoder_attention.fc_(q|k|v|o).@", "decoder cross "),
            "decoder.layers.{layer}.enc_attn_layer_norm.@": "decoder cross norm",
            "decoder.fc_out.@": "vocabulary",
        },
        asks=(heads_of_all, Question("decoder_passes", _TWICE, ("1", "2")), *_ASKED),
        facts={"norm_order": "post", "activation": "relu", "embed_scale": "sqrt"},
        always=(*_ALWAYS, "vocabulary bias"),
    ),
    name="tutorial",
    title=phrase("Translator of the sequence-to-sequence tutorial (reference document 000)"),
    needs=("encoder embedding", "encoder positions", "encoder query", "decoder cross query"),
    starts=_BOTH,
    ends=_BOTH,
)


# --- Reference document 002: parts of the translator of 000 on their own, which read float features and generate no words ---

LONGEST = 4096
"""Positions at most: features have no table of positions that would bound them."""


def _layer_prefix(shapes: Shapes) -> str:
    """The prefix of the names of the first layer's parts."""
    return "layers.0." if shapes.has("layers.#.self_attention.fc_q.weight") else ""


def _is_module(shapes: Shapes) -> bool:
    return shapes.has("fc_q.weight")


def _is_decoder(shapes: Shapes) -> bool:
    return shapes.has(f"{_layer_prefix(shapes)}encoder_attention.fc_q.weight")


def _match_parts(shapes: Shapes) -> Match:
    names = ("layers.#.self_attention.fc_q.weight", "self_attention.fc_q.weight", "fc_q.weight")
    present = tuple(name for name in names if shapes.has(name))
    return Match(
        tuple(phrase("it has {pattern}", pattern=name) for name in present),
        () if present else (phrase("it lacks {pattern}", pattern=", ".join(names)),),
    )


def _rules_of_parts(shapes: Shapes, settings: Mapping[str, str]) -> Rules:
    if _is_module(shapes):
        places = {"q": "query", "k": "key", "v": "value", "o": "output"}
        return {f"fc_{theirs}.@": f"encoder.layers.0.attention.{ours}.@" for theirs, ours in places.items()}
    theirs, number = ("layers.#.", "#") if _layer_prefix(shapes) else ("", "0")
    whole = f"{'decoder' if _is_decoder(shapes) else 'encoder'}.layers.#."
    rules = {
        name: ours for name, ours in TUTORIAL.rules(shapes, settings).items() if name.startswith(whole) and isinstance(ours, str)
    }
    return {name.replace(whole, theirs): ours.replace("#", number) for name, ours in rules.items()}


def _query_name(shapes: Shapes) -> str:
    return "fc_q.weight" if _is_module(shapes) else f"{_layer_prefix(shapes)}self_attention.fc_q.weight"


def _ask_about_parts(shapes: Shapes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    columns = shapes.size(_query_name(shapes), 0)
    cut = (heads("n_heads", columns, settings), head_dim(columns))
    if _is_module(shapes):
        return cut
    future = causal(
        "false",
        phrase(
            "Whether a target position is prevented from attending to later ones (causal mask). The tutorial’s code "
            "does not prevent it in this layer."
        ),
    )
    return (*cut, norm_order("post"), activation("relu"), *((future,) if _is_decoder(shapes) else ()))


def _read_parts(shapes: Shapes, answers: Answers) -> ModelSpec:
    query = _query_name(shapes)
    width = shapes.size(query, 1)
    attention_alone = StackSpec(
        vocab=0,
        d_model=width,
        layers=shapes.layers("layers.#.self_attention.fc_q.weight") or 1,
        attention=attention(answers, "n_heads", shapes.size(query, 0), shapes.has(query.replace("weight", "bias"))),
        hidden=0,
        wiring="attention",
        positions="none",
        max_positions=LONGEST,
    )
    if _is_module(shapes):
        return model_spec(answers, attention_alone, None, None)
    hidden = shapes.size(f"{_layer_prefix(shapes)}positionwise_feedforward.fc_1.weight", 0)
    whole = replace(attention_alone, wiring="standard", hidden=hidden, **answers.fields())
    if not _is_decoder(shapes):
        return model_spec(answers, whole, None, None)
    # a decoder layer attends to features in place of an encoder's output: an encoder without layers passes them on
    return model_spec(answers, replace(whole, layers=0, causal=True), whole, None)


TUTORIAL_PARTS = Layout(
    name="tutorial-parts",
    title=phrase("Layers or an attention module of the sequence-to-sequence tutorial (reference document 002)"),
    match=_match_parts,
    rules=_rules_of_parts,
    ask=_ask_about_parts,
    read=_read_parts,
    notes=(phrase("These are parts of a translator: they read float features instead of words and generate no words."),),
)
