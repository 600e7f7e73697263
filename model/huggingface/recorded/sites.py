"""From a recording to the sites of a trace: the same reader that opens recorded files, and the stack that the class tells."""

from dataclasses import replace

import headlight
from model.errors import phrase
from model.huggingface.families import Kind
from model.trace.serialization import from_bytes
from model.trace.types import Site, Trace


def trace_of(recording: headlight.Recording, kind: Kind) -> Trace:
    """The trace of a recording, as if it were opened from its file.

    Of a network with one stack the stack is known by its class; of others the recording says it.
    """
    # through the file's form, so that a recording in memory and one from a file are the same
    read = from_bytes(recording.to_bytes())
    blocks = {
        f"attention/{site.module}": phrase("its input was cut into {batch} blocks; the first one is shown", batch=site.batch)
        for site in recording.sites
        if site.batch > 1
    }
    trace = replace(read, missing={**read.missing, **blocks})
    assert trace.recorded is not None
    if kind == "both":
        return trace
    names = {site: replace(site, stack=kind) if site.stack == "program" else site for site in trace.attention}
    attention = {names[site]: replace(entry, site=names[site]) for site, entry in trace.attention.items()}
    sites = {str(names[Site.parse(text)]): entry for text, entry in trace.recorded.sites.items()}
    return replace(trace, attention=attention, recorded=replace(trace.recorded, sites=sites))


def layers_and_heads(sites: list[headlight.Site], stack: str) -> tuple[int, int]:
    """Attention sublayers of a stack, cross-attention apart, and the most heads of one. At least one of each."""
    of_stack = [site for site in sites if site.stack in (stack, "program")]
    within = [site for site in of_stack if site.kind != "cross"] or of_stack
    return max(1, len(within)), max((site.shape[0] for site in of_stack), default=1)
