"""Llama-like networks, whatever their tensors are called: what is asked about them, and the network that the answers describe.

A causal language model with rotary positions, RMSNorm before its sublayers, gated feed-forward networks and grouped queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from model.checkpoints.layouts.base import Shapes, grouped_attention, model_spec
from model.checkpoints.layouts.questions import Answers, Question, activation, decoding_ids, divisors, vocabularies
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, StackSpec

LONGEST = 4096
"""Positions at most where nothing bounds them."""

NO_HEADS = phrase("the sizes of its queries and keys fit no number of heads")
"""Evidence against a layout with grouped queries."""


def head_widths(queries: int, keys: int) -> tuple[int, ...]:
    """The widths that a head can have: even, and each head of keys is shared by equally many heads of queries.

    Args:
        queries, keys: columns of all heads' queries, and of all heads' keys.
    """
    if not keys or queries % keys:
        return ()
    return tuple(int(width) for width in divisors(keys) if int(width) % 2 == 0 and queries // int(width) <= 1000)


def grouped_heads(queries: int, keys: int, told: Mapping[str, str]) -> tuple[Question, ...]:
    """The number of heads where several may share keys and values; one of three answers gives the others.

    Args:
        queries, keys: columns of all heads' queries, and of all heads' keys.
        told: settings, of which n_heads, key_heads and head_dim count.
    """
    widths = head_widths(queries, keys)
    fitting = {
        "n_heads": [str(queries // width) for width in widths],
        "key_heads": [str(keys // width) for width in widths],
        "head_dim": [str(width) for width in widths],
    }
    known = next((values.index(told[name]) for name, values in fitting.items() if told.get(name) in values), None)
    consequences = {
        "n_heads": phrase(
            "Splits {queries:,} columns of queries and {keys:,} columns of keys into heads. A wrong number gives wrong maps.",
            queries=queries,
            keys=keys,
        ),
        "key_heads": phrase(
            "The number of key and value heads, which several query heads may share. It can be given instead of n_heads."
        ),
        "head_dim": phrase("The width of a head. It can be given instead of the number of heads."),
    }
    defaults = {name: None if known is None else values[known] for name, values in fitting.items()}
    return tuple(
        Question(name, words, tuple(fitting[name]), default=defaults[name], needed=name == "n_heads")
        for name, words in consequences.items()
    )


def rotary_base() -> Question:
    """The base of rotary positions, as programs call it: rope_theta."""
    consequence = phrase("The base of rotary positions (rope_theta): 10000 in llama2.c and Llama 1 and 2, 500000 in Llama 3.")
    return Question("rotary_base", consequence, highest=10**9)


def variant() -> Question:
    """Whether the network has none of the options that leave no trace in names and shapes; there is one answer that can be run."""
    consequence = phrase(
        "Names and shapes do not show scaled rotary positions (Llama 3.1 and later), normalization by 1 + weight "
        "(Gemma) or sliding windows (Mistral 7B v0.1). The maps would be wrong for those. Answer plain if the "
        "network has none of them."
    )
    return Question("variant", consequence, ("plain",))


def norm_epsilon() -> Question:
    """The ε of the normalization, added before the root."""
    consequence = phrase("ε of the normalization, added before the root: 1e-05 in llama2.c and Llama 2 and 3, 1e-06 in Llama 1.")
    return Question("norm_epsilon", consequence, ("1e-05", "1e-06", "1e-08", "1e-12"))


def max_positions(default: int) -> Question:
    """The longest input where no table bounds it."""
    consequence = phrase("The longest input that may run. Rotary positions set no limit themselves.")
    return Question("max_positions", consequence, highest=2**17, default=str(default))


@dataclass(frozen=True)
class LlamaNames:
    """A program's names for the tensors of a Llama-like network, with its stacked projections distinguished.

    Attributes:
        words: the table of token embeddings.
        attention: prefix of a projection of queries in each layer, `#` for the layer's number.
        expand: prefix of the feed-forward network's first projection.
        output: prefix of the projection to logits; where it is missing, the table is used.
        columns: columns of all heads' queries, and of all heads' keys.
    """

    words: str
    attention: str
    expand: str
    output: str
    columns: tuple[int, int]


def asked(shapes: Shapes, names: LlamaNames, told: Mapping[str, str], usual: str | None, *more: Question) -> tuple[Question, ...]:
    """The questions about a Llama-like network.

    Args:
        usual: the activation that these programs use; None: they use several.
        more: questions of this program alone.
    """
    return (
        *grouped_heads(*names.columns, told),
        activation(usual),
        *more,
        rotary_base(),
        variant(),
        norm_epsilon(),
        max_positions(LONGEST),
        *decoding_ids(shapes.size(names.words, 0)),
        *vocabularies("source_vocab"),
    )


def described(
    shapes: Shapes,
    names: LlamaNames,
    answers: Answers,
    positions: Literal["rotary", "rotary-pairs"],
    embed_scale: Literal["none", "sqrt"] = "none",
) -> ModelSpec:
    """The network that names, sizes and answers describe.

    Raises:
        BadSetting: answers contradict each other.
    """

    def has_bias(prefix: str) -> bool:
        return shapes.has(f"{prefix.replace('#', '0')}.bias")

    stack = StackSpec(
        vocab=shapes.size(names.words, 0),
        d_model=shapes.size(names.words, 1),
        layers=shapes.layers(f"{names.attention}.weight"),
        attention=grouped_attention(answers, *names.columns, has_bias(names.attention)),
        hidden=shapes.size(f"{names.expand.replace('#', '0')}.weight", 0),
        activation=answers.activation,
        bias=has_bias(names.expand),
        gated=True,
        norm_order="pre",
        norm="rms",
        norm_epsilon=float(answers.text("norm_epsilon")),
        final_norm=True,
        positions=positions,
        rotary_base=answers.number("rotary_base"),
        max_positions=answers.number("max_positions"),
        embed_scale=embed_scale,
    )
    output = OutputSpec(tied=not shapes.has(f"{names.output}.weight"), bias=has_bias(names.output))
    return model_spec(answers, None, stack, output)
