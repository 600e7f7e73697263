"""Questions about Llama-like networks: grouped queries, rotary positions, the norms' ε."""

from collections.abc import Mapping

from model.checkpoints.layouts.questions import Question, divisors


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
        "n_heads": f"Cuts {queries} columns of queries and {keys} columns of keys into heads: another number gives other maps.",
        "key_heads": "The number of heads of keys and values, which several heads may share: another way to tell n_heads.",
        "head_dim": "The width of a head: another way to tell how many there are.",
    }
    defaults = {name: None if known is None else values[known] for name, values in fitting.items()}
    return tuple(
        Question(name, words, tuple(fitting[name]), default=defaults[name], needed=name == "n_heads")
        for name, words in consequences.items()
    )


def rotary_base() -> Question:
    """The base of rotary positions, as programs call it: rope_theta."""
    consequence = "The base of rotary positions (rope_theta): 10000 in llama2.c and Llama 1 and 2, 500000 in Llama 3."
    return Question("rotary_base", consequence, highest=10**9)


def variant() -> Question:
    """Whether the network has none of the options that leave no trace in names and shapes; there is one answer that can be run."""
    consequence = (
        "Names and shapes do not show scaled rotary waves (Llama 3.1 and later), norms that multiply by 1 + weight (Gemma) or "
        "windows of attention (Mistral 7B v0.1). The maps would be wrong for those. Answer plain if the network has none of them."
    )
    return Question("variant", consequence, ("plain",))


def norm_epsilon() -> Question:
    """What a norm adds before it takes the root."""
    consequence = "What norms add before they take the root: 1e-05 in llama2.c and Llama 2 and 3, 1e-06 in Llama 1."
    return Question("norm_epsilon", consequence, ("1e-05", "1e-06", "1e-08", "1e-12"))


def max_positions(default: int) -> Question:
    """The longest input where no table bounds it."""
    consequence = "The longest input that is run; rotary positions have no table that would end."
    return Question("max_positions", consequence, highest=2**17, default=str(default))
