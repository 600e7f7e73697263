"""Drawings: Streamlit components (v2) in plain JavaScript, without a build step: token strips, atlas, film, lines, step player, map
of the network, cells of a stage, tree of a beam search.

Python packs a scene into bytes (`viz.canvas.scenes`), the browser draws it; hover, zoom and stepping never ask the server. Each
function mounts one drawing. When a person chooses something in it, `chosen` is called with fields of ViewState
(viz/url/view_state.py) before the script runs, so that this run already draws the choice.

Where to find things, for tests and other tools (all elements are in the component's shadow root; CSS locators pierce it):

- `.hl[data-drawing=strips|atlas|changes|film|lines|player|network|cells|tree]` is a drawing; `changes` is an atlas of differences.
  Its `data-layout` is JSON with rectangles in CSS pixels, counted from the drawing's own top left corner: for the atlas a list of
  `{site, head, x, y, width, height, row, column, rows, columns}`, one per head (while a head is open, only that one).
  `rows` and `columns` count the visible cells, `row` and `column` are the first of them (with a fraction when zoomed). The middle
  of cell [query, key] is at `x + (key - column + 0.5) * width / columns`, `y + (query - row + 0.5) * height / rows`. Player and
  cells have the same for their heatmap, the lines a list of `{side, index, x, y}`.
- `.hl .readout` describes the cell or token under the pointer or the keyboard's focus, in words and as `data-site`, `data-head`,
  `data-query`, `data-key`, `data-weight` (absent if there is none).
- `.chip[data-position]` is a token; `data-row` is its query row, `data-probability` the probability it was generated with.
- A candidate that a click continues from is a `button.candidate[data-id]`; a token chosen by hand is `.chip.by-hand`.
- The player has `data-step` and `data-head`; a candidate is `.candidate[data-probability]`, the chosen one `.chosen`.
- In the tree of a beam search a node is `.node[data-place]`; one that can be shown has `data-rank`, the shown one `aria-current`.
- The film is an atlas with `data-snapshot`, the step of the current snapshot; its tokens are `.fed .chip` and `.own .chip`.
- The map of the network has `data-stage`; a stage on it is `.segment[data-stage]`, the current one `.segment.now`.

Drawings on one page tell each other what is pointed at with the event `headlight:query` on the document: `detail` is
`{queryStrip, query, keyStrip, key}`, with null for absent fields.

May import: model.errors, model.sharing, model.trace, viz.figures, viz.i18n, viz.labels, viz.metrics, viz.url.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import streamlit as st

from model.errors import UnknownSite
from model.trace.stages import Stage
from model.trace.types import Site, Trace
from viz.canvas.assets import component
from viz.canvas.edit_events import Gesture, gesture
from viz.canvas.scenes import attention
from viz.canvas.scenes import beam_tree as tree_scene
from viz.canvas.scenes import difference as changes_scene
from viz.canvas.scenes import film as film_scene
from viz.canvas.scenes import network as network_scene
from viz.canvas.scenes import player as player_scene
from viz.canvas.scenes.attention import ReadingScene
from viz.metrics.run_difference import Change
from viz.metrics.training_metrics import Course, Frame
from viz.url.view_state import NEW_SENTENCE


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
    found: dict[str, str | int] = {"site": site} if isinstance(site, str) and _is_site(site) else {}
    if isinstance(stage, str) and len(stage) < _LONGEST_STAGE:
        found["stage"] = stage
    if isinstance(begin := selection.get("begin"), str) and _IDS.fullmatch(begin):
        found |= NEW_SENTENCE | {"begin": begin}  # rows and steps are those of another text
    if selection.get("hide") in ("first", "none"):
        found["hide"] = selection["hide"]
    numbers = {name: selection.get(name) for name in ("head", "query", "key", "step", "hypothesis", "snapshot")}
    return found | {name: value for name, value in numbers.items() if type(value) is int and value >= -1}


_LONGEST_STAGE = 80
_IDS = re.compile(r"\d{1,9}(,\d{1,9}){0,999}", re.ASCII)


def _is_site(text: str) -> bool:
    try:
        return str(Site.parse(text)) == text
    except UnknownSite:
        return False


_STRIPS = st.components.v2.component("headlight.strips", **component("Strips"))
_ATLAS = st.components.v2.component("headlight.atlas", **component("Atlas"))
_FILM = st.components.v2.component("headlight.film", **component("Film"))
_LINES = st.components.v2.component("headlight.lines", **component("Lines"))
_PLAYER = st.components.v2.component("headlight.player", **component("Player"))
_NETWORK = st.components.v2.component("headlight.network", **component("Network"))
_TREE = st.components.v2.component("headlight.tree", **component("Tree"))
_CELLS = st.components.v2.component("headlight.cells", **component("Cells"))


DRAWINGS = {"strips": _STRIPS, "atlas": _ATLAS, "cells": _CELLS, "lines": _LINES}
"""The drawings of Explore, which follow what is typed."""


def draw(name: str, scene: bytes, *, key: str, chosen: Chosen) -> None:
    """Mounts a drawing of a scene that exists already.

    Args:
        name: its name in DRAWINGS.
        key: stable name of this drawing on the page.
    """
    _mount(DRAWINGS[name], scene, key, chosen)


def strips(trace: Trace, site: Site, query: int, *, key: str, chosen: Chosen) -> None:
    """Token strips: each generated token with its probability, and on hover or focus the alternatives.

    Args:
        site: the site whose query rows can be selected.
        query: the selected row; -1: none.
        key: stable name of this drawing on the page.
    """
    _mount(_STRIPS, attention.strips(trace, site, query), key, chosen)


def hiding_strips(trace: Trace, site: Site, hidden: Mapping[str, Sequence[int]], *, key: str, edited: Edited) -> None:
    """Token strips in which a click hides a token, or shows it again.

    Args:
        hidden: by strip whose tokens can be hidden, the positions of those that are.
    """
    _mount(_STRIPS, attention.strips(trace, site, -1, hidden), key, _ignored, edited)


def atlas(trace: Trace, site: Site, head: int, query: int, rest: bool = False, *, key: str, chosen: Chosen) -> None:
    """Overview of all heads of all sites; a click selects a head, a double click opens it large.

    Args:
        rest: whether it is the reading without the first token.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_ATLAS, attention.atlas(trace, site, head, query, rest=rest), key, chosen)


def editable_atlas(
    trace: Trace,
    site: Site,
    head: int,
    query: int,
    marks: attention.Marks,
    rest: bool = False,
    *,
    key: str,
    chosen: Chosen,
    edited: Edited,
) -> None:
    """Atlas whose heads can be silenced, and whose cells can be forbidden, opened and given other weights.

    Args:
        marks: what edits changed, by head.
        rest: whether it is the reading without the first token.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_ATLAS, attention.atlas(trace, site, head, query, marks, rest=rest), key, chosen, edited)


def changes(first: Trace, second: Trace, found: Mapping[Site, Change], site: Site, head: int, *, key: str, chosen: Chosen) -> None:
    """Atlas of the differences between two runs, at the sites that can be compared.

    Args:
        found: the sites that can be compared; at least one.
        site, head: the selected head.
    """
    _mount(_ATLAS, changes_scene.scene(first, second, found, site, head), key, chosen)


def film(
    frames: Sequence[Frame], whole: Trace, measured: Course, place: tuple[Site, int, int], at: int, *, key: str, chosen: Chosen
) -> None:
    """Training film: the atlas at every snapshot of a training; the slider and the keys work in the browser.

    Args:
        frames, whole, measured: as in `film_scene.scene`.
        place: the selected site, head and query row; -1: no row.
        at: the frame to begin with. Later calls for the same film keep the current frame.

    Raises:
        UnknownSite, UnknownHead: the runs have no such site or head.
    """
    _mount(_FILM, film_scene.scene(frames, whole, measured, *place, at), key, chosen)


def lines(trace: Trace, site: Site, head: int, query: int, read: ReadingScene | None = None, *, key: str, chosen: Chosen) -> None:
    """One head as lines between its query tokens (left) and key tokens (right).

    Args:
        read: the reading that the lines show instead of the head's weights.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_LINES, attention.lines(trace, site, head, query, read), key, chosen)


def player(trace: Trace, site: Site, head: int, step: int, *, key: str, chosen: Chosen) -> None:
    """The decoding token by token, at one site: rows appear as tokens are chosen. Stepping happens in the browser.

    Args:
        step: where to begin, counted from 0; -1: at the first step. Later calls for the same run keep the current step.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_PLAYER, player_scene.scene(trace, site, head, step), key, chosen)


def network(trace: Trace, stages: tuple[Stage, ...], titles: dict[str, str], stage: Stage, *, key: str, chosen: Chosen) -> None:
    """Map of the network with the current stage; a click or a key goes to another.

    Args:
        stages: all stages of the run, in order.
        titles: titles of the stages, by name.
        stage: the current one of `stages`.
    """
    _mount(_NETWORK, network_scene.scene(trace, stages, titles, stage), key, chosen)


def cells(trace: Trace, stage: Stage, head: int, opened: tuple[int, int], *, key: str, chosen: Chosen) -> None:
    """Cells of one head at a stage: scores, mask or weights; a click or Enter opens one.

    Args:
        opened: query and key of the cell whose calculation is shown; -1: none.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_CELLS, attention.cells(trace, stage, head, *opened), key, chosen)


def tree(trace: Trace, shown: int, *, key: str, chosen: Chosen) -> None:
    """Tree of a beam search; a click on a hypothesis, or Enter, chooses it.

    Args:
        trace: a run that has a tree.
        shown: rank of the hypothesis that the trace describes.
    """
    _mount(_TREE, tree_scene.scene(trace, shown), key, chosen)


def _mount(component: Any, data: bytes, key: str, chosen: Chosen, edited: Edited | None = None) -> None:
    """Mounts a component and calls `chosen` for every later choice, `edited` for every edit.

    `gone` is a drawing's report that the part cache has evicted a part: the script run that it triggers recreates the part.
    """

    def tell() -> None:
        selection = st.session_state[key].get("selection")
        if isinstance(selection, Mapping) and (fields := fields_of(selection)):
            chosen(**fields)

    def tell_edit() -> None:
        if edited is not None and (found := gesture(st.session_state[key].get("edit"))):
            edited(found)

    component(key=key, data=data, on_selection_change=tell, on_gone_change=_nothing, on_edit_change=tell_edit)


def _ignored(**fields: str | int) -> None:
    """For drawings in which nothing is selected."""


def _nothing() -> None:
    """Streamlit reports a trigger only if it has a callback."""
