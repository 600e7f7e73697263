"""The diagnosis of a checkpoint whose network is known: parameters by part, shared weights, signs of training, unusual heads."""

import re
from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor, nn

from model.checkpoints import head_circuits
from model.errors import phrase
from model.inspection.diagnostics import StackPart, counted_once, freshness, tied
from model.inspection.report import Inspection, Part

MOST_NUMBERS = 200_000_000
"""Most parameters of a network whose heads are compared; a larger one would take minutes."""

_KINDS = (
    (r"norm\.", "norms"),
    (r"embedding\.token\.", "embedding"),
    (r"embedding\.positions\.", "positions"),
    (r"cross_attention\.", "cross_attention"),
    (r"attention\.", "attention"),
    (r"feed_forward\.", "feed_forward"),
    (r"^output\.", "output"),
)


def diagnosed(inspection: Inspection, tensors: Mapping[str, Tensor], network: nn.Module | None) -> Inspection:
    """The inspection with the diagnostics filled in.

    Args:
        tensors: tensors of the file, by the names in the inspection.
        network: the network with these numbers; None: it is not known yet, or the file is incomplete.
    """
    notes = inspection.notes
    # the other diagnostics read each tensor once, comparing heads multiplies all with all
    compared = network is not None and inspection.parameters <= MOST_NUMBERS
    if network is not None and not compared:
        notes += (phrase("Heads are not compared: the network has more than {most:,} parameters.", most=MOST_NUMBERS),)
    sites = {} if network is None else {str(site): attention.heads for site, attention in head_circuits.sites(network).items()}
    return replace(
        inspection,
        notes=notes,
        parts=parts(network) if network is not None else (),
        tied=tied(inspection.tensors, tensors),
        freshness=freshness(inspection.tensors),
        heads=head_circuits.notes(network) if compared and network is not None else (),
        heads_seen=sum(sites.values()) if compared else 0,
        sites=sites,
    )


def parts(network: nn.Module) -> tuple[Part, ...]:
    """Number of parameters by part, in the network's order."""
    return counted_once((_part_of(name), parameter) for name, parameter in network.named_parameters(remove_duplicate=False))


def _part_of(name: str) -> StackPart:
    stack = "encoder" if name.startswith("encoder.") else "decoder"
    return stack, next(kind for pattern, kind in _KINDS if re.search(pattern, name))
