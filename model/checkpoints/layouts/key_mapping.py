"""Key mapping: assigns foreign tensors to our network. Each name is matched, unneeded, unexpected, missing or misshapen."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.checkpoints.layouts.base import Rules, Shapes, renamed
from model.spec.network import ModelSpec
from model.transformer.build import Network, build

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Placement:
    """The result for each name.

    Attributes:
        ours: our names for each foreign name; several split the tensor in equal parts, or each is a copy.
        unneeded: foreign names that attention does not depend on.
        unexpected: foreign names without a place in the network.
        missing: our names without a foreign tensor.
        misshapen: foreign names with a wrong shape, and a phrase that describes it.
    """

    ours: Mapping[str, tuple[str, ...]]
    unneeded: tuple[str, ...]
    unexpected: tuple[str, ...]
    missing: tuple[str, ...]
    misshapen: Mapping[str, str]


def needed(spec: ModelSpec) -> Network:
    """The network of a spec on the meta device: shapes without memory."""
    with torch.device("meta"):
        return build(spec)


def place(shapes: Shapes, rules: Rules, spec: ModelSpec, left_over: Collection[str] = ()) -> Placement:
    """Compares names and shapes with the network's; reads no numbers.

    Args:
        left_over: foreign names that attention does not depend on.
    """
    network = needed(spec)
    state, tables = network.state_dict(), dict(network.named_buffers())
    there = {name: tuple(tensor.shape) for name, tensor in (state | tables).items()}
    names = renamed(shapes, rules)
    ours = {theirs: parts for theirs, parts in names.items() if parts and all(part in there for part in parts)}
    tied = dict(network.named_parameters(remove_duplicate=False)).keys() - dict(network.named_parameters()).keys()
    placed = {part for parts in ours.values() for part in parts}
    misshapen = {}
    for theirs, parts in ours.items():
        if not (_fits(shapes.of[theirs], there[parts[0]], len(parts)) or _fits(shapes.of[theirs], there[parts[0]], 1)):
            wanted = [there[parts[0]][0] * len(parts), *there[parts[0]][1:]]
            misshapen[theirs] = f"{theirs} is {list(shapes.of[theirs])}, not {wanted}"
    return Placement(
        ours,
        tuple(left_over),
        tuple(theirs for theirs in shapes.of if theirs not in ours and theirs not in left_over),
        tuple(name for name in state if name not in placed and name not in tied),
        misshapen,
    )


def _fits(theirs: tuple[int, ...], ours: tuple[int, ...], parts: int) -> bool:
    """Whether `parts` tensors of our shape make up theirs, axes of length 1 aside."""
    whole = (ours[0] * parts, *ours[1:])
    return theirs == whole or (
        [n for n in theirs if n != 1] == [n for n in whole if n != 1] and math.prod(theirs) == math.prod(whole)
    )


def fill(network: nn.Module, tensors: Mapping[str, Tensor], placement: Placement) -> None:
    """Copies the tensors into the network, position tables included, so that the network computes as it was trained."""
    state = network.state_dict() | dict(network.named_buffers())
    with torch.no_grad():
        for theirs, parts in placement.ours.items():
            whole = tensors[theirs].numel() == state[parts[0]].numel()
            values = [tensors[theirs]] * len(parts) if whole else tensors[theirs].chunk(len(parts))
            for part, value in zip(parts, values, strict=True):
                state[part].copy_(value.reshape(state[part].shape))
