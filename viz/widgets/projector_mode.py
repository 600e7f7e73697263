"""Big mode, for a projector: no sidebar, one thing on a screen, large text, and a spot that follows the pointer.

The key P and a button enter and leave it; the link keeps it.
"""

from pathlib import Path

import streamlit as st

from viz.i18n.translate import _
from viz.session.state import get_view_state, update
from viz.url.view_state import ViewState

STYLE = Path(__file__).parent / "projector_mode.css"
KEY = "P"

_SPOT = st.components.v2.component(
    "headlight.spot",
    html="<span hidden></span>",
    js="""
const SIZE = 64;
const lives = new WeakMap();

// Shows a ring under the pointer that the last row sees, until `signal` aborts.
function follow(signal) {
  const spot = document.createElement("div");
  spot.className = "headlight-spot";
  spot.setAttribute("aria-hidden", "true");
  spot.style.cssText = `position: fixed; left: 0; top: 0; width: ${SIZE}px; height: ${SIZE}px; margin: ${-SIZE / 2}px;
    border: 4px solid #f58a3c; border-radius: 50%; background: rgb(245 138 60 / 22%);
    display: none; pointer-events: none; z-index: 1000000;`;
  document.body.append(spot);
  const show = ({ clientX, clientY }) => {
    spot.style.display = "block";
    spot.style.transform = `translate(${clientX}px, ${clientY}px)`;
  };
  document.addEventListener("pointermove", show, { signal, capture: true, passive: true });
  document.documentElement.addEventListener("pointerleave", () => { spot.style.display = "none"; }, { signal });
  signal.addEventListener("abort", () => spot.remove());
}

export default ({ parentElement }) => {
  const mine = lives.get(parentElement);
  const life = !mine || mine.signal.aborted ? new AbortController() : mine;
  if (life !== mine) follow(life.signal);
  lives.set(parentElement, life);
  life.calls = (life.calls ?? 0) + 1;
  const call = life.calls;
  return () => { if (call === life.calls) life.abort(); }; // Streamlit may clean up late, after a newer call
};
""",
)


def style() -> None:
    """Adds the style of big mode, if the state asks for it; comes before everything that is drawn."""
    if get_view_state()[0].big:
        st.html(STYLE)


def switch(view: ViewState) -> None:
    """Draws the button that enters big mode, in the sidebar, or the one that leaves it; the key P presses either."""
    if view.big:
        _SPOT(key="spot", height="content")
        with st.container(key="big"):
            st.button(_("Leave big mode"), key="big-button", shortcut=KEY, on_click=update, kwargs={"big": 0})
    else:
        st.sidebar.button(
            _("Big mode"),
            key="big-button",
            icon=":material/present_to_all:",
            shortcut=KEY,
            help=_("For a projector: no sidebar, one thing at a time, large text."),
            on_click=update,
            kwargs={"big": 1},
        )
