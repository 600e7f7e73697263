"""Our own drawings: Streamlit components (v2) in plain JavaScript, without a build step.

They are token strips, atlas, film, lines, step player, map of the network, cells of a stage, tree of a beam search, bars of the
next tokens, weights over an image, a sound over time, and dots of a survey.

Python packs a *scene* into bytes (`viz.canvas.scenes`), `draw` mounts it, and the browser draws it; hover, zoom and stepping never
ask the server. When a person chooses something in a drawing, Streamlit runs the script again. Before it does, `chosen` is called
with fields of `ViewState` (viz/url/view_state.py), so that this run already draws the choice.

Where to find things, for tests and other tools (all elements are in the component's shadow root; CSS locators pierce it):

`.hl` is the root element of a drawing; every other class below lies inside one.

- `.hl[data-drawing=strips|atlas|changes|film|lines|player|network|cells|tree|circuit|next|overlay|sound|dots]` is a drawing;
  `changes` is an atlas of differences.
  Its `data-layout` is JSON with rectangles in CSS pixels, counted from the drawing's own top left corner: for the atlas a list of
  `{site, head, x, y, width, height, row, column, rows, columns}`, one per head (while a head is open, only that one).
  `rows` and `columns` count the visible cells, `row` and `column` are the first of them (with a fraction when zoomed). The middle
  of cell [query, key] is at `x + (key - column + 0.5) * width / columns`, `y + (query - row + 0.5) * height / rows`. Player and
  cells have the same for their heatmap, the lines a list of `{side, index, x, y}`,
  the circuit of `{site, head, x, y}`, the dots of `{head, x, y}`, and the overlay one rectangle whose cells are the patches of its
  image.
- `.hl .readout` describes the cell or token under the pointer or the keyboard's focus, in words and as `data-site`, `data-head`,
  `data-query`, `data-key`, `data-weight` (absent if there is none).
- `.chip[data-position]` is a token; `data-row` is its query row, `data-probability` the probability it was generated with.
- A candidate that a click continues from is a `button.candidate[data-id]`; a token chosen by hand is `.chip.by-hand`.
- The player has `data-step` and `data-head`; a candidate is `.candidate[data-probability]`, the chosen one `.chosen`.
- In the tree of a beam search a node is `.node[data-place]`; one that can be shown has `data-rank`, the shown one `aria-current`.
- The film is an atlas with `data-snapshot`, the step of the current snapshot; its tokens are `.fed .chip` and `.own .chip`.
- The sound has `data-now`, the second that plays, and the rectangle of its map as an atlas of one head.
- The map of the network has `data-stage`; a stage on it is `.segment[data-stage]`, the current one `.segment.now`.
  Where a token moves beside it, `data-come` says how far the stage has come, from 0 to 1, and `data-layout` has a rectangle for
  each shape with its `stage`, `row`, `rows` and `columns`; `.film` records what plays.

Drawings on one page tell each other what is pointed at with the event `headlight:query` on the document: `detail` is
`{queryStrip, query, keyStrip, key}`, with null for absent fields.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import streamlit as st

from model.errors import UnknownSite
from model.trace.types import Site
from viz.canvas.assets import component, kinds
from viz.canvas.edit_events import Gesture, gesture
from viz.url.parsers import OVERLAYS
from viz.url.view_state import new_sentence, reported


class Edited(Protocol):
    """Callback for an edit that a person made in a drawing."""

    def __call__(self, edit: Gesture) -> None:
        """Receives the edit."""


class Chosen(Protocol):
    """Callback for what a person chose in a drawing."""

    def __call__(self, **fields: str | int) -> None:
        """Receives the choice as fields of `viz.url.view_state.ViewState`; positions count from 0."""


def fields_of(selection: Mapping[str, Any]) -> dict[str, str | int]:
    """Fields of `viz.url.view_state.ViewState` from a browser's report; everything that no drawing reports is dropped.

    Does not check that the run has these sites, heads and positions.
    """
    site, stage = selection.get("site"), selection.get("stage")
    changes: dict[str, str | int] = {"site": site} if isinstance(site, str) and _is_site(site) else {}
    if isinstance(stage, str) and len(stage) < _LONGEST_STAGE:
        changes["stage"] = stage
    if isinstance(begin := selection.get("begin"), str) and _IDS.fullmatch(begin):
        changes |= new_sentence() | {"begin": begin}  # rows and steps are those of another text
    if selection.get("hide") in ("first", "none"):
        changes["hide"] = selection["hide"]
    if isinstance(overlay := selection.get("overlay"), str) and set(overlay.split()) <= set(OVERLAYS):
        changes["overlay"] = overlay
    numbers = {name: selection.get(name) for name in reported()}
    return changes | {name: value for name, value in numbers.items() if type(value) is int and value >= -1}


_LONGEST_STAGE = 80
_IDS = re.compile(r"\d{1,9}(,\d{1,9}){0,999}", re.ASCII)


def _is_site(text: str) -> bool:
    try:
        return str(Site.parse(text)) == text
    except UnknownSite:
        return False


@cache
def _components() -> Mapping[str, Callable[..., object]]:
    """The Streamlit component of each kind of drawing."""
    return {kind.lower(): st.components.v2.component(f"headlight.{kind.lower()}", **component(kind)) for kind in kinds()}


def draw(
    name: str,
    scene: bytes,
    *,
    key: str,
    chosen: Chosen | None = None,
    edited: Edited | None = None,
    keeps: Sequence[str] = (),
) -> None:
    """Mounts a drawing of a scene.

    `gone` is a drawing's report that the part cache has evicted a part: the script run that it triggers recreates the part.

    Args:
        name: the name of its kind in small letters; an atlas of differences is an atlas.
        key: stable name of this drawing on the page.
        chosen: is called for every later choice; None: nothing is chosen in it.
        edited: is called for every edit; None: it takes none.
        keeps: names of what else it reports, which `st.session_state[key]` then has.
    """

    def tell() -> None:
        selection = st.session_state[key].get("selection")
        if chosen is not None and isinstance(selection, Mapping) and (fields := fields_of(selection)):
            chosen(**fields)

    def tell_edit() -> None:
        if edited is not None and (performed := gesture(st.session_state[key].get("edit"))):
            edited(performed)

    # Streamlit reports a trigger only if it has a callback, even one that does nothing.
    reports: dict[str, Any] = {} if edited is None else {"on_edit_change": tell_edit}
    reports |= {f"on_{kept}_change": lambda: None for kept in keeps}
    _components()[name](key=key, data=scene, on_selection_change=tell, on_gone_change=lambda: None, **reports)


def painted(key: str) -> bool:
    """Whether the browser has painted the drawing `key`, which reports it, since the page was opened."""
    return bool((st.session_state.get(key) or {}).get("painted"))
