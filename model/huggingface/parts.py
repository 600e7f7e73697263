"""What an inspection says of a library network: parameter counts by part, found by module type, and what a run records."""

from torch import nn

from model.errors import Words, phrase
from model.huggingface.network import NO_SCORES, ForeignNetwork
from model.inspection.diagnostics import counted_once
from model.inspection.report import Part


def parts(network: ForeignNetwork) -> tuple[Part, ...]:
    """Parameter counts by part, in the network's order; shared parameters count for the first part."""
    output = network.library.get_output_embeddings()  # type: ignore[operator]  # untyped library
    return counted_once(
        ((_stack(network, name), "output" if module is output else _kind(network, name, module)), parameter)
        for name, module in network.library.named_modules()
        for parameter in module.parameters(recurse=False)
    )


def _stack(network: ForeignNetwork, name: str) -> str:
    """The stack of a module; a shared embedding belongs to the first."""
    stacks = list(network.spec.stacks)
    return stacks[-1] if len(stacks) == 1 or "decoder" in name.split(".") or name == "lm_head" else stacks[0]


def _kind(network: ForeignNetwork, name: str, module: nn.Module) -> str:
    """The part that a module with parameters belongs to."""
    if "norm" in type(module).__name__.lower():
        return "norms"
    if module in network.places.tables.values():
        return "positions"
    for attention, sites in network.places.sites.items():
        if module in {network.places.outputs.get(site) for site in sites} or module in set(attention.modules()):
            return "cross_attention" if sites[0].kind == "cross" else "attention"
    inside = any(module in set(layer.modules()) for layers in network.places.layers.values() for layer in layers)
    return "feed_forward" if inside else "embedding"


def recorded_notes(network: ForeignNetwork) -> tuple[Words, ...]:
    """Notes on what a run does and does not record, a sentence each."""
    return (
        phrase(
            "A run records weights, masks, queries, keys, values, context and output of each head, and the states after each layer."
        ),
        *((phrase("A run records the table of positions that is added to the embeddings."),) if network.tables() else ()),
        phrase("A run records no scores: {reason}.", reason=NO_SCORES),
        phrase("A run does not record all stages: {reason}.", reason=network.missing()["stages"]),
        *(
            phrase("A run records no table of positions: {reason}.", reason=why)
            for why in dict.fromkeys(why for name, why in network.missing().items() if name.startswith("positions/"))
        ),
    )
