"""Parameter counts of a library network by part, found by module type, since names differ between architectures."""

from collections import Counter

from torch import nn

from model.huggingface.network import ForeignNetwork
from model.inspection.report import Part


def parts(network: ForeignNetwork) -> tuple[Part, ...]:
    """Parameter counts by part, in the network's order; shared parameters count for the first part."""
    output = network.library.get_output_embeddings()  # type: ignore[operator]  # untyped library
    counts: Counter[tuple[str, str]] = Counter()
    seen = set[int]()
    for name, module in network.library.named_modules():
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                counts[_stack(network, name), "output" if module is output else _kind(network, name, module)] += parameter.numel()
    return tuple(Part(stack, kind, count) for (stack, kind), count in counts.items())


def _stack(network: ForeignNetwork, name: str) -> str:
    """The stack of a module; a shared embedding belongs to the first."""
    stacks = list(network.spec.stacks)
    return stacks[-1] if len(stacks) == 1 or "decoder" in name.split(".") or name == "lm_head" else stacks[0]


def _kind(network: ForeignNetwork, name: str, module: nn.Module) -> str:
    """The part that a module with parameters belongs to."""
    if "norm" in type(module).__name__.lower():
        return "norms"
    if module in network.position_tables.values():
        return "positions"
    for attention, site in network.sites.items():
        if module is network.outputs[site] or module in set(attention.modules()):
            return "cross_attention" if site.kind == "cross" else "attention"
    inside = any(name.startswith(f"{network.family.layers.format(stack=stack)}.") for stack in network.family.stacks)
    return "feed_forward" if inside else "embedding"
