"""Key mapping: assigns foreign tensors to our network. Each name is matched, unexpected, missing or misshapen."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.checkpoints.layouts.base import ByKeyHead, Rules, Shapes, renamed
from model.requests.network import ModelSpec
from model.transformer.build import needed

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Placement:
    """The result for each name.

    Attributes:
        ours: our names for each foreign name; several lie below each other in the tensor, or each is a copy.
        groups: number of key heads by whose groups a tensor is ordered, where it is.
        unexpected: foreign names without a place in the network.
        missing: our names without a foreign tensor.
        misshapen: foreign names with a wrong shape, and a phrase that describes it.
    """

    ours: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, int]
    unexpected: tuple[str, ...]
    missing: tuple[str, ...]
    misshapen: Mapping[str, str]


def place_tensors(shapes: Shapes, rules: Rules, spec: ModelSpec, left_over: Collection[str] = ()) -> Placement:
    """Compares names and shapes with the network's; reads no numbers.

    Args:
        left_over: foreign names that no attention map depends on: they are no part of the result.
    """
    network = needed(spec)
    state, tables = network.state_dict(), dict(network.named_buffers())
    sizes = {name: tuple(tensor.shape) for name, tensor in (state | tables).items()}
    names = renamed(shapes, rules)
    ours = {theirs: parts for theirs, parts in names.items() if parts and all(part in sizes for part in parts)}
    # names of ours that share their tensor with another one, such as a tied output layer, need none of their own
    tied = dict(network.named_parameters(remove_duplicate=False)).keys() - dict(network.named_parameters()).keys()
    placed = {part for parts in ours.values() for part in parts}
    misshapen = {}
    for theirs, parts in ours.items():
        whole = (sum(sizes[part][0] for part in parts), *sizes[parts[0]][1:])
        if not (_fits(shapes.of[theirs], whole) or all(_fits(shapes.of[theirs], sizes[part]) for part in parts)):
            misshapen[theirs] = f"{theirs} is {list(shapes.of[theirs])}, not {list(whole)}"
    key_heads = spec.writer.attention.key_heads or spec.writer.attention.heads
    return Placement(
        ours,
        {theirs: key_heads for theirs, parts in ours.items() if isinstance(parts, ByKeyHead)},
        tuple(theirs for theirs in shapes.of if theirs not in ours and theirs not in left_over),
        tuple(name for name in state if name not in placed and name not in tied),
        misshapen,
    )


def _fits(theirs: tuple[int, ...], ours: tuple[int, ...]) -> bool:
    """Whether two shapes are the same, axes of length 1 aside."""
    return theirs == ours or ([n for n in theirs if n != 1] == [n for n in ours if n != 1] and math.prod(theirs) == math.prod(ours))


def fill(network: nn.Module, tensors: Mapping[str, Tensor], placement: Placement) -> None:
    """Copies the tensors into the network, position tables included, so that the network computes as it was trained."""
    state = network.state_dict() | dict(network.named_buffers())
    with torch.no_grad():
        for theirs, parts in placement.ours.items():
            # as large as one of ours: each gets a copy; else ours lie below each other in it
            whole = tensors[theirs].numel() == state[parts[0]].numel()
            rows = [len(state[part]) for part in parts]
            values = [tensors[theirs]] * len(parts) if whole else _cut(tensors[theirs], rows, placement.groups.get(theirs, 1))
            for part, value in zip(parts, values, strict=True):
                state[part].copy_(value.reshape(state[part].shape))


def _cut(whole: Tensor, rows: Sequence[int], groups: int) -> list[Tensor]:
    """Parts of so many rows each, which lie below each other in every one of the groups."""
    parts = whole.unflatten(0, (groups, -1)).split([count // groups for count in rows], dim=1)  # [group, row of a part, …]
    return [part.flatten(0, 1) for part in parts]
