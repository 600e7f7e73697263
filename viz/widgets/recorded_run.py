"""Opened traces on screen: what a recorded run is, and what a page says where it would need the network.

A recorded run has no network, so a view of one never asks for another text or setting than the one that ran.
"""

import streamlit as st

from model.trace.recorded import Recorded
from model.trace.types import Site, Trace
from viz.i18n.translate import _, _n, join_sentences, said
from viz.labels import tokens
from viz.labels.images import name_of
from viz.labels.sounds import described
from viz.url import view_state
from viz.url.view_state import ViewState

_TYPED = ("text", "target", "begin", "silence", "edits")

MOST_WORDS = 40
"""Most words of a recorded text that the line above the page quotes."""


def as_it_ran(view: ViewState, problems: list[str]) -> ViewState:
    """A view of a recorded run: without whatever would ask for another run.

    Args:
        problems: gets a sentence if the view asked for another text or for edits.
    """
    default = ViewState(text="")
    if any(getattr(view, field) not in (None, getattr(default, field)) for field in _TYPED):
        problems.append(
            _("This is a recorded run, so the text or the edits of this link were ignored: the run is shown as it was recorded.")
        )
    of_a_run = [parameter for parameter in view_state.all_parameters() if parameter.of_a_run and parameter.field != "model"]
    return view.changed(hypothesis=0, pad_to=0, **{parameter.field: default.value(parameter) for parameter in of_a_run})


def unchangeable() -> str:
    """Sentence of the page What if for a network that the transformers library runs as a whole."""
    return _(
        "The transformers library runs this network as a whole, and its attention is recorded while it runs. So nothing inside "
        "it can be changed, and no head can be silenced. Choose another model."
    )


def about(trace: Trace) -> str:
    """Sentence above every page of a recorded run: what ran, and that nothing else can."""
    if (program := trace.recorded) is not None and trace.of_program:
        fields = {"program": program.program, "torch": program.torch, "calls": program.calls, "example": program.example + 1}
        return _("Recording of the program {program} (PyTorch {torch}, calls {calls}, example {example}).", **fields)
    strip = trace.tokens["source"]
    words = [text for text, special in zip(strip.texts, strip.special, strict=True) if not special]
    text = tokens.line(words[:MOST_WORDS]) + (" …" if len(words) > MOST_WORDS else "")
    if trace.image is not None:
        text = name_of(trace)
    if trace.sound is not None:
        text = described(trace)
    return _("Recorded run of {title}: “{text}”.", title=tokens.model(trace), text=text)


def badge(trace: Trace) -> str:
    """Sentence on the weights that were recomputed since a fused kernel never held them; empty if there are none."""
    sites = (
        {site: recorded for site, recorded in trace.recorded.sites.items() if recorded.origin == "recomputed"}
        if trace.recorded
        else {}
    )
    if not sites or trace.recorded is None:
        return ""
    counts = {"count": len(sites), "all": len(trace.recorded.sites)}
    known = [recorded.difference for recorded in sites.values() if recorded.difference is not None]
    text = _n(
        "A fused kernel ran in {count} of {all} attention layers: its weights were recomputed from queries and keys.",
        "A fused kernel ran in {count} of {all} attention layers: their weights were recomputed from queries and keys.",
        len(sites),
        **counts,
    )
    if not known:
        return join_sentences((text, _("They could not be compared with what the kernel returned, since it applied dropout.")))
    largest = tokens.power_of_ten(max(known, key=lambda value: (value != value, value)))  # NaN counts as the largest
    return join_sentences((text, _("Weights · values differ by at most {largest} from what the kernel returned.", largest=largest)))


def at_site(recorded: Recorded, site: Site) -> str:
    """Sentence on the selected site of a recorded program: module, operation, and how its weights were obtained."""
    attention = recorded.sites[str(site)]
    fields = {"module": attention.module or _("outside any module"), "operation": attention.operation}
    if attention.origin == "computed":
        return _("Module: {module}. The program computed these weights ({operation}).", **fields)
    if attention.difference is None:
        return _("Module: {module}. Recomputed, because weights are not stored by {operation}; not compared.", **fields)
    fields["difference"] = tokens.power_of_ten(attention.difference)
    return _(
        "Module: {module}. Recomputed, because weights are not stored by {operation}; largest difference {difference}.", **fields
    )


def not_recorded(trace: Trace) -> list[str]:
    """The tensors that a recording of a program lacks, with the reasons; tensors that were not asked for do not count."""
    if trace.recorded is None:
        return []
    reasons = {name: why for name, why in trace.missing.items() if trace.of_program or name.startswith("attention/")}
    return [
        _("{name}: {value}", name=name, value=said(why)) for name, why in reasons.items() if not name.startswith("attention/*/")
    ]


def draw_sites(trace: Trace, site: Site, notes: list[str]) -> None:
    """Draws what is known of recorded attention: how weights were obtained, the selected site, notes, and what was not recorded.

    Args:
        notes: sentences that come first.
    """
    selected = [] if trace.recorded is None else [at_site(trace.recorded, site)]
    noted = list(map(said, trace.model.get("notes", ()))) if trace.of_program else []
    st.caption(tokens.markdown(join_sentences(filter(None, [*notes, badge(trace), *selected, *noted]))))
    if lacks := not_recorded(trace):
        with st.expander(_("What was not recorded ({count})", count=len(lacks)), key="not-recorded", on_change="rerun") as part:
            if part.open:
                st.caption("  \n".join(map(tokens.markdown, lacks)))
