"""A small page with some or all of our drawings: `?show=atlas,lines&case=long&query=3&number=1`. For browser tests.

With `fails` it has an error that nobody foresaw.
"""

import re
from dataclasses import replace
from functools import cache

import streamlit as st

from model.trace.beam_tree import Node
from model.trace.types import Site, Trace
from tests import traces
from viz import canvas
from viz.canvas.scenes import attention, beam_tree, overlay, sound
from viz.canvas.scenes import attention as scenes

LONG = [f"wort{i}" if i % 5 else "donaudampfschifffahrtsgesellschaft"[: 6 + i] for i in range(40)]
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "$x$",
    "**b**",
    ":red[x]",
    "\x00\x07",
    "👩‍👩‍👧",
    "你好世界",
    "مرحبا",
    "e\u0301\u0302\u0303",
    "a" * 300,
]

SIGNS = ["sport", "##tasche", " the", "▁the", "Ġthe", "\\xf0\\x9f", "\n"]
"""Tokens that begin with a sign of their vocabulary, but for the first; and one of two bytes of a character."""

ENDS = (("a", -0.5), ("b", -1.0), ("c", -2.0))
"""Hypotheses of a beam search."""


@cache
def made(case: str) -> Trace:
    """The trace that a case shows. `12x12x512`: an encoder of so many layers, heads and tokens."""
    if (size := re.fullmatch(r"(\d+)x(\d+)x(\d+)", case)) is not None:
        return traces.encoder(*map(int, size.groups()))
    match case:
        case "long":
            return traces.translation(["<sos>", *LONG, "<eos>"], ["<sos>", *LONG[::-1], "<eos>"])
        case "hostile":
            trace = traces.translation(["<sos>", *HOSTILE, "<eos>"], ["<sos>", *HOSTILE, "<eos>"])
            strips = {n: replace(t, unknown=(False, *(True for _ in HOSTILE), False)) for n, t in trace.tokens.items()}
            return replace(trace, tokens=strips)
        case "signs":
            return traces.translation(["<sos>", *SIGNS, "<eos>"], ["<sos>", "bag", "<eos>"], layers=1, heads=1)
        case "language":
            return traces.language_model()
        case "encoder":
            return traces.encoder_only()
        case "heard":
            return traces.heard()
        case "single":
            return traces.translation(["<sos>"], ["<sos>", "<eos>"], layers=1, heads=1)
        case "image":
            return traces.of_an_image(gray=100)
        case "caption":
            return traces.of_a_caption(gray=100)
        case "twice":
            return traces.twice()
    return traces.translation()


def main() -> None:
    """Draws what the URL asks for, and writes what was chosen. For another URL all drawings are new."""
    ask = st.query_params.to_dict()
    if "fails" in ask:
        raise RuntimeError("a secret of the server")
    trace = made(ask.get("case", ""))
    last = [a for a in trace.attention if a.kind == "cross"] or list(trace.attention)
    state = st.session_state
    for name in ("site", "head", "query", "step", "runs", "hypothesis", "overlay", "made") if state.get("asked") != ask else ():
        state.pop(name, None)  # not what a drawing of the last URL still reports
    state.asked, number = ask, ask.get("number", "")
    state.setdefault("site", ask.get("site", str(last[-1])))
    state.setdefault("head", int(ask.get("head", "0")))
    state.setdefault("query", int(ask.get("query", "-1")))
    state.setdefault("step", int(ask.get("step", "-1")))
    state.runs = state.get("runs", 0) + 1
    site, show = Site.parse(state.site), ask.get("show", "strips,atlas,lines,player").split(",")
    if "strips" in show:
        canvas.draw("strips", scenes.strips(trace, site, state.query), key=f"strips{number}", chosen=choose)
    if "atlas" in show:
        canvas.draw("atlas", scenes.atlas(trace, site, state.head, state.query), key=f"atlas{number}", chosen=choose)
    if "lines" in show:
        canvas.draw("lines", scenes.lines(trace, site, state.head, state.query), key=f"lines{number}", chosen=choose)
    if "overlay" in show:
        words, hidden = state.setdefault("overlay", ""), (7, 8)
        scene = overlay.scene(trace, site, state.head, state.query, words, hidden=hidden, hides="hides" in ask)
        canvas.draw("overlay", scene, key=f"overlay{number}", chosen=choose, edited=lambda edit: state.update(made=edit))
        st.text(f"made {state.get('made')}")
    if "sound" in show:
        canvas.draw("sound", sound.scene(trace, site, state.head, state.query), key=f"sound{number}", chosen=choose)
    if "player" in show:
        canvas.draw("player", attention.player(trace, site, state.head, state.step), key=f"player{number}", chosen=choose)
    if "table" in show:
        signed = st.column_config.NumberColumn(format="localized", step=0.001)
        st.dataframe({"difference": [-0.5, -1234.5]}, column_config={"difference": signed})
    if "tree" in show:  # each script run has another one, whose numbers differ in their last digits, as other runs' would
        scene = beam_tree.scene(searched(trace, 1e-6 * state.runs), state.setdefault("hypothesis", 0))
        canvas.draw("tree", scene, key=f"tree{number}", chosen=choose)
    st.text_input("a text field", key=f"field{number}")
    st.text(f"chosen {state.site} head {state.head} query {state.query} step {state.step} runs {state.runs}")
    st.text(f"page {number}")


def searched(trace: Trace, off: float) -> Trace:
    """With a beam search that ended with three hypotheses of one token."""
    tree = [Node(0, -1, place, text, total + off, total + off, "finished", place) for place, (text, total) in enumerate(ENDS)]
    return replace(trace, tree=tuple(tree))


def choose(**fields: str | int) -> None:
    """Lets the state follow."""
    if fields.get("site", st.session_state.site) != st.session_state.site:
        st.session_state.query = -1
    st.session_state.update(fields)


if __name__ == "__main__":
    st.set_page_config(layout="wide")
    main()
