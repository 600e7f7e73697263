"""Scene of the step player: the decoding token by token, at one site."""

from model.errors import UnknownHead
from model.trace.types import Site, Trace
from viz.canvas.scenes.attention import base, continues, strip
from viz.canvas.wire import parts, strings
from viz.labels import alt_text, tokens


def scene(trace: Trace, site: Site, head: int, step: int) -> bytes:
    """The decoding token by token, at one site: part `heads`.

    Raises:
        UnknownSite, UnknownHead: the run has no such place.
    """
    attention = trace.at(site)
    if not 0 <= head < attention.heads:
        raise UnknownHead(asked=head, site=site, last=attention.heads - 1)
    header = {
        **base(trace),
        "texts": strings.player(),
        **parts.axes(trace, attention),
        "site": str(site),
        "names": tokens.head_names(trace, site, range(attention.heads)),
        "strips": [strip(trace, name) for name in trace.tokens],
        "written": tokens.written_strip(trace),
        "continues": continues(trace),
        "decodes": site.stack == "decoder" and bool(trace.steps),
        "head": head,
        "step": step,
        "description": alt_text.head(trace, attention, head),
    }
    return parts.scene(header, {"heads": parts.heads(trace, site)})
