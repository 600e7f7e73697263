"""Language models: one table for each program, with the role of each of its tensors."""

from model.checkpoints.layouts.base import Shapes
from model.checkpoints.layouts.questions import (
    LONGEST,
    activation,
    embed_scale,
    max_positions,
    norm_epsilon,
    rotary_base,
    variant,
)
from model.checkpoints.layouts.role_tables import RoleTable, decoding, heads_of_all, layout, texts
from model.errors import Words, phrase
from model.requests.layout_file import GROUPED, STACKED


def _gpt_turned(shapes: Shapes) -> Words | None:
    """The names are those of Hugging Face's GPT-2 too, which stores its matrices [in, out]: their shapes tell."""
    # minGPT stores [3 · model, model], Hugging Face [model, 3 · model]
    rows, *columns = shapes.of.get("transformer.h.0.attn.c_attn.weight", (0,))
    if not columns or rows == 3 * columns[0]:
        return None
    return phrase("it stores {first}attn.c_attn.weight as [in, out], as Hugging Face does", first="transformer.h.0.")


GPT = layout(
    RoleTable(
        "language model",
        roles={
            "transformer.wte.weight": "embedding",
            "transformer.wpe.weight": "positions",
            "transformer.h.{layer}.attn.c_attn.@": STACKED,
            "transformer.h.{layer}.attn.c_proj.@": "output",
            "transformer.h.{layer}.ln_1.@": "attention norm",
            "transformer.h.{layer}.ln_2.@": "feed-forward norm",
            "transformer.h.{layer}.mlp.c_fc.@": "feed-forward in",
            "transformer.h.{layer}.mlp.c_proj.@": "feed-forward out",
            "transformer.ln_f.@": "final norm",
            "lm_head.@": "vocabulary",
        },
        asks=(heads_of_all, activation(), decoding, texts),
        fixed={"norm_order": "pre", "embed_scale": "none"},
        always=("final norm",),
    ),
    name="gpt",
    title=phrase("minGPT or nanoGPT"),
    needs=("embedding", "positions", STACKED),
    objection=_gpt_turned,
    notes=(phrase("minGPT’s activation is gelu-tanh; nanoGPT’s is gelu, in its first versions gelu-tanh."),),
)

_LLAMA_LIKE = (rotary_base(), variant(), norm_epsilon(), max_positions(LONGEST), decoding, texts)
_RMS = {"norm_order": "pre", "norm": "rms", "embed_scale": "none"}

LLAMA = layout(
    RoleTable(
        "language model",
        roles={
            "tok_embeddings.weight": "embedding",
            "layers.{layer}.attention.wq.@": "query",
            "layers.{layer}.attention.wk.@": "key",
            "layers.{layer}.attention.wv.@": "value",
            "layers.{layer}.attention.wo.@": "output",
            "layers.{layer}.feed_forward.w1.@": "feed-forward in",
            "layers.{layer}.feed_forward.w2.@": "feed-forward out",
            "layers.{layer}.feed_forward.w3.@": "feed-forward gate",
            "layers.{layer}.attention_norm.weight": "attention norm",
            "layers.{layer}.ffn_norm.weight": "feed-forward norm",
            "norm.weight": "final norm",
            "output.weight": "vocabulary",
        },
        asks=(heads_of_all, activation("silu"), *_LLAMA_LIKE),
        fixed={**_RMS, "positions": "rotary-pairs"},  # a column turns with its neighbor
        always=("final norm", "feed-forward gate"),
        grouped=True,
    ),
    name="llama",
    title=phrase("Llama by Meta’s names, as in llama2.c"),
    needs=("embedding", "query", "attention norm", "feed-forward gate"),
    starts=("source",),
    recomputed=("rope.freqs",),
)


def _litgpt_stacked(shapes: Shapes) -> Words | None:
    variants = [name for name in ("qkv", "attn") if shapes.has(f"transformer.h.#.attn.{name}.weight")]
    if len(variants) == 1:
        return None
    return phrase("it has both attn.qkv and attn.attn") if variants else phrase("it lacks attn.qkv and attn.attn")


LITGPT = layout(
    RoleTable(
        "language model",
        roles={
            "transformer.wte.weight": "embedding",
            "transformer.h.{layer}.attn.qkv.@": STACKED,
            "transformer.h.{layer}.attn.attn.@": GROUPED,  # in versions before 0.5.4
            "transformer.h.{layer}.attn.proj.@": "output",
            "transformer.h.{layer}.mlp.fc_1.@": "feed-forward in",
            "transformer.h.{layer}.mlp.fc_2.@": "feed-forward gate",
            "transformer.h.{layer}.mlp.proj.@": "feed-forward out",
            "transformer.h.{layer}.norm_1.weight": "attention norm",
            "transformer.h.{layer}.norm_2.weight": "feed-forward norm",
            "transformer.ln_f.weight": "final norm",
            "lm_head.@": "vocabulary",
        },
        asks=(heads_of_all, activation(), embed_scale(), *_LLAMA_LIKE),
        fixed={**_RMS, "positions": "rotary"},  # a column turns with the one half a head away
        always=("final norm", "feed-forward gate"),
        grouped=True,
    ),
    name="lit-gpt",
    title="lit-gpt",
    needs=("embedding", "attention norm", "feed-forward in", "feed-forward gate"),
    objection=_litgpt_stacked,
    starts=("source",),
)
