"""Weights of programs that no layout reads, by the names of their tensors: what a refusal says of them."""

import re
from collections.abc import Iterable, Iterator

from model.checkpoints.layouts.base import Shapes
from model.huggingface.families import FAMILIES, Family

MOST_NAMED = 3
"""Most architectures that a sentence names."""

_ADAPTED = re.compile(r"(.*\.)?(lora_(A|B|embedding_[AB])|ia3_l|prompt_embeddings|adapter_[AB]|hada_w\d_[ab])(\..*)?")
"""Names of what the library peft learns beside a network."""


def holds_adapter(names: Iterable[str]) -> bool:
    """Whether most tensors are those of an adapter."""
    matches = [_ADAPTED.fullmatch(name) is not None for name in names]
    return 2 * sum(matches) > len(matches)


def library_kinds(shapes: Shapes, bare: bool = False) -> tuple[str, ...]:
    """Architectures of the transformers library that name the projections of their first layers like this; empty: none does.

    Args:
        bare: whether to look for the names of a network without what is around it, which tell less: `layers.0.` is anybody's.
    """
    fits = {kind: max(_stacks_there(family, shapes, bare)) for kind, family in FAMILIES.items()}
    kinds = [kind for kind, count in fits.items() if count and count == max(fits.values())]
    return tuple(kinds[:MOST_NAMED]) + (("…",) if kinds[MOST_NAMED:] else ())


def _stacks_there(family: Family, shapes: Shapes, bare: bool) -> Iterator[int]:
    """For each stack, how many there are with their projections up to it: 0 where one is missing."""
    count = 0
    for stack in family.stacks:
        first = f"{family.layers.format(stack=stack)}.0.{family.attention}"
        count += all(_is_there(f"{first}.{name}.weight", shapes, bare) for name in family.projections)
        yield count


def _is_there(name: str, shapes: Shapes, bare: bool) -> bool:
    """Whether a tensor has this name, perhaps with that of the whole network before it, or without its own first part.

    One map to queries, keys and values is called like in GPT-2 by programs that store it the other way round.
    """
    wanted = name.partition(".")[2] if bare else name
    for tensor, shape in shapes.of.items():
        if tensor == wanted or (not bare and tensor.endswith(f".{wanted}")):
            return not name.endswith("c_attn.weight") or (len(shape) == 2 and 3 * shape[0] == shape[1])
    return False
