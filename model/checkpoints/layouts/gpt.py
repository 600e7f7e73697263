"""minGPT and nanoGPT: a causal language model with norms before its sublayers (`transformer.h.0.attn.c_attn`)."""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import Answers, Question, activation, decoding_ids, head_dim, heads, vocabularies
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec

_FIRST = "transformer.h.0."
_needs = requires("transformer.wte.weight", "transformer.wpe.weight", "transformer.h.#.attn.c_attn.weight")


def _match(shapes: Shapes) -> Match:
    """The names are those of Hugging Face's GPT-2 too, which stores its matrices [in, out]: their shapes tell."""
    found = _needs(shapes)
    rows, *columns = shapes.of.get(f"{_FIRST}attn.c_attn.weight", (0,))
    if not found or (columns and rows == 3 * columns[0]):
        return found
    turned = phrase("it stores {first}attn.c_attn.weight as [in, out], as Hugging Face does", first=_FIRST)
    return Match(found.in_favour, (turned,))


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    layer = "transformer.h.#."
    return {
        "transformer.wte.weight": "embedding.token.weight",
        "transformer.wpe.weight": "embedding.positions.weight",
        f"{layer}attn.c_attn.@": tuple(f"layers.#.attention.{part}.@" for part in ("query", "key", "value")),
        f"{layer}attn.c_proj.@": "layers.#.attention.output.@",
        f"{layer}ln_1.@": "layers.#.attention_residual.norm.@",
        f"{layer}ln_2.@": "layers.#.feed_forward_residual.norm.@",
        f"{layer}mlp.c_fc.@": "layers.#.feed_forward.expand.@",
        f"{layer}mlp.c_proj.@": "layers.#.feed_forward.contract.@",
        "transformer.ln_f.@": "final_norm.@",
        "lm_head.@": "output.@",
    }


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    width = shapes.size("transformer.wte.weight", 1)
    return (
        heads("n_heads", width, told),
        head_dim(width),
        activation(),
        *decoding_ids(shapes.size("transformer.wte.weight", 0)),
        *vocabularies("source_vocab"),
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    width = shapes.size("transformer.wte.weight", 1)
    stack = StackSpec(
        vocab=shapes.size("transformer.wte.weight", 0),
        d_model=width,
        layers=shapes.layers("transformer.h.#.attn.c_attn.weight"),
        attention=attention(answers, "n_heads", width, shapes.has(f"{_FIRST}attn.c_attn.bias")),
        hidden=shapes.size(f"{_FIRST}mlp.c_fc.weight", 0),
        activation=answers.activation,
        bias=shapes.has(f"{_FIRST}mlp.c_fc.bias"),
        norm_order="pre",
        norm="standard" if shapes.has(f"{_FIRST}ln_1.bias") else "bias-free",
        final_norm=True,
        max_positions=shapes.size("transformer.wpe.weight", 0),
        embed_scale="none",
    )
    return model_spec(answers, None, stack, OutputSpec(tied=not shapes.has("lm_head.weight"), bias=shapes.has("lm_head.bias")))


GPT = Layout(
    name="gpt",
    title=phrase("minGPT or nanoGPT"),
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(phrase("minGPT’s activation is gelu-tanh; nanoGPT’s is gelu, in its first versions gelu-tanh."),),
)
