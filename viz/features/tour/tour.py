"""The tour: five scenes of Explore, one after the other, from the tokens to a change; then all heads. Keys go on, back and out."""

from dataclasses import replace
from functools import partial
from html import escape

import streamlit as st

from viz import canvas
from viz.canvas.scenes import overlay
from viz.features.tour import first_scene
from viz.i18n.translate import _, _n
from viz.session import visits
from viz.session.state import TOUR, Page, page_at, update
from viz.views.explore import reading
from viz.views.step import cell_dialog
from viz.widgets.cards import by_pointer

STEPS, _PRESSED = 5, "tour-keys"

_KEYS = st.components.v2.component(
    "headlight.tour",
    html="<span hidden></span>",
    js="""
const ACTS = { ArrowRight: 1, " ": 1, ArrowLeft: -1, Escape: 0 }; // how many steps a key goes; 0 leaves
const TAKES_KEYS = "input, textarea, select, [contenteditable=true], [role=application], [role=listbox], nav";
const lives = new WeakMap();

// Reports a key of ACTS that is pressed where nothing else takes it.
export default ({ parentElement, setTriggerValue }) => {
  lives.get(parentElement)?.abort();
  const life = new AbortController();
  lives.set(parentElement, life);
  const act = (event) => {
    if (!(event.key in ACTS) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (document.querySelector("[role=dialog]")) return; // it has its own keys
    const taken = event.key === " " ? `button, a, ${TAKES_KEYS}` : event.key === "Escape" ? "" : TAKES_KEYS;
    if (taken && event.composedPath().some((node) => node.matches?.(taken))) return;
    event.preventDefault();
    event.stopPropagation();
    setTriggerValue("pressed", ACTS[event.key]);
  };
  document.addEventListener("keydown", act, { signal: life.signal, capture: true });
  return () => life.abort();
};
""",
)


def begin() -> None:
    """Shows the first step from now on; for callbacks."""
    st.session_state[TOUR] = 0


def help_button() -> None:
    """Draws the button of the sidebar that begins the tour, on Explore."""
    if st.sidebar.button(_("Help: a tour in five steps"), icon=":material/help:", key="tour-help"):
        begin()
        st.switch_page(page_at("explore"))


def leave() -> None:
    """Ends the tour; for callbacks."""
    st.session_state.pop(TOUR, None)
    update(key=-1)


def show_all_heads(page: Page) -> None:
    """Ends the tour and the first picture: the page shows all heads from its next run on, and the one that was seen is selected."""
    leave()
    visits.leave_first_picture()
    update(site=str(page.attention.site), head=_head(page))


def show(page: Page) -> None:
    """Draws the current step: its words, its buttons and its picture. After the last one come all heads."""
    at = int(st.session_state[TOUR])
    if at >= STEPS:
        show_all_heads(page)
        st.rerun()
    title, sentence = _texts(page)[at]
    with st.container(key="first-picture", gap="small"):
        fields = {"step": at + 1, "steps": STEPS}
        keys = _("Step {step} of {steps}. → or Space: next; ←: back; Escape: leave the tour.", **fields)
        st.html(by_pointer(keys, _("step {step} of {steps}", **fields)))
        st.html(f"<h1>{title}</h1><p>{sentence}</p>")
        with st.container(horizontal=True, key="tour-buttons"):
            st.button(_("Back"), key="tour-back", disabled=at == 0, on_click=_go, args=(at - 1,))
            forward = _("Next") if at + 1 < STEPS else all_heads(page)
            st.button(forward, key="tour-next", on_click=_go, args=(at + 1,))
            st.button(_("Leave the tour"), key="tour-leave", type="tertiary", on_click=leave)
        _draw(page, at)  # below the buttons, which stay where they are from step to step
        _KEYS(key=_PRESSED, on_pressed_change=partial(_press, at), height="content")


def all_heads(page: Page) -> str:
    """The words of the button that shows all heads."""
    heads = sum(attention.heads for attention in page.trace.attention.values())
    return _n("Show all of it: {count} head", "Show all {count} heads", heads, count=heads)


def _press(at: int) -> None:
    """Goes as far as a key says; a browser may send anything."""
    match st.session_state[_PRESSED].get("pressed"):
        case 0:
            leave()
        case 1 | -1 as steps if at + steps >= 0:
            _go(at + steps)


def _go(step: int) -> None:
    st.session_state[TOUR] = step
    update(key=-1)  # an open calculation belongs to its step


def _texts(page: Page) -> list[tuple[str, str]]:
    """Title and sentence of each step."""
    heads = sum(attention.heads for attention in page.trace.attention.values())
    reads, attends, change = (
        (_("A text becomes tokens"), _("A network reads a text as tokens: words, parts of words, or characters.")),
        _(
            "For each token, a head takes more from some tokens than from others: the wider a line, the more. Here the lines of "
            "“{word}” stand out.",
            word=escape(_emphasized(page)),
        ),
        _("Change a word in the box above and press Enter: the lines follow. On the What if page you can silence heads, too."),
    )
    if overlay.fits(page.trace, page.attention.site):
        reads = _("An image becomes tokens"), _("A network reads an image as patches, each named by its row and column.")
        attends = (
            _("For each generated token, a head takes more from some patches than from others: the stronger the color, the more.")
            if page.attention.site.kind == "cross"
            else _("For each patch, a head takes more from some patches than from others: the stronger the color, the more.")
        )
        change = _("Choose another image above: the colors follow. On the What if page you can hide patches and silence heads.")
    return [
        reads,
        (_("A head attends"), attends),
        (
            _("The same head as a map"),
            _("Each row is a token that attends, each column a token attended to. The weights of a row sum to 1."),
        ),
        (
            _("All heads at once"),
            _n(
                "This network has {count} head. Each small square is the map of one head.",
                "This network has {count} heads. Each small square is the map of one head.",
                heads,
                count=heads,
            ),
        ),
        (_("Now change something"), change),
    ]


def _draw(page: Page, at: int) -> None:
    """Draws the picture of a step, always with the head whose lines are seen best."""
    head = _head(page)
    page = replace(page, head=head)
    if at == 0 and not overlay.fits(page.trace, page.attention.site):
        canvas.draw("strips", reading.overview(page)["strips"], key="tour-strips", chosen=_stays)
    elif at == 2:
        chosen = partial(update, site=str(page.attention.site), head=head)
        canvas.draw("cells", reading.selected_head(page, None)["cells"], key="tour-cells", chosen=chosen)
        if page.view.key >= 0:
            cell_dialog.dialog(page)
    elif at == 3:
        canvas.draw("atlas", reading.overview(page)["atlas"], key="tour-atlas", chosen=update)
    elif at == 0:
        canvas.draw("overlay", overlay.scene(page.trace, page.attention.site, head, -1, ""), key="tour-patches", chosen=_stays)
    else:
        picture(page, head, "tour-lines", emphasized=at == 1)


def _head(page: Page) -> int:
    return first_scene.clearest_head(page.trace, page.attention)


def _emphasized(page: Page) -> str:
    """The word whose lines stand out in the second step."""
    trace, attention = page.trace, page.attention
    return first_scene.rows(trace, attention)[first_scene.inviting_row(trace, attention, _head(page))]


def picture(page: Page, head: int, key: str, emphasized: bool = False) -> None:
    """Draws a head of the page's site: over the image that was read, else as lines between words. A click changes nothing else.

    Args:
        emphasized: whether the lines of one word stand out.
    """
    trace, site = page.trace, page.attention.site
    if overlay.fits(trace, site):
        canvas.draw("overlay", overlay.scene(trace, site, head, -1, "smooth"), key=key, chosen=_stays)
    else:
        canvas.draw("lines", first_scene.scene(trace, page.attention, head, emphasized), key=key, chosen=_stays)


def _stays(**_fields: str | int) -> None:
    """A click on a token only shows its lines."""
