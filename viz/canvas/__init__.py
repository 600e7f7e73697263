"""Our own drawings, Streamlit components (v2) of plain JavaScript, without a build: token strips, atlas, film, lines, step player,
map of the network, cells of a stage, tree of a beam search.

Python builds a scene of bytes (`viz.canvas.scenes`), the browser draws it; hover, zoom and stepping never ask the server. Each
function mounts one drawing. What a person chooses in it is told to `chosen` before the script runs for it, as fields of
`viz.links.View`, so that one run draws what was chosen.

Where things are, for tests and other tools (everything stands in the component's shadow root; CSS locators pierce it):

- `.hl[data-drawing=strips|atlas|changes|film|lines|player|network|cells|tree]` is a drawing; `changes` is an atlas of differences.
  Its `data-layout` is JSON with rectangles in CSS pixels, counted from the drawing's own top left corner: for the atlas a list of
  `{site, head, x, y, width, height, row, column, rows, columns}`, one for each head (the opened one alone while one is open).
  `rows` and `columns` say how many cells are shown, `row` and `column` the first of them (with a fraction where it is zoomed). The
  middle of cell [query, key] is at `x + (key - column + 0.5) * width / columns`, `y + (query - row + 0.5) * height / rows`. For
  player and cells the same for their map, for the lines a list of `{side, index, x, y}`.
- `.hl .readout` says what is under the pointer or the keyboard's focus, in words and as `data-site`, `data-head`, `data-query`,
  `data-key`, `data-weight` (absent where nothing is).
- `.chip[data-position]` is a token; `data-row` is the query row it stands for, `data-probability` what it was written with.
- The player carries `data-step` and `data-head`; a candidate is `.candidate[data-probability]`, the chosen one `.chosen`.
- In the tree of a beam search a node is `.node[data-place]`, one that can be shown has `data-rank`, the one shown `aria-current`.
- The film is an atlas that carries `data-snapshot`, the step of the snapshot shown; its tokens are `.fed .chip` and `.own .chip`.
- The map of the network carries `data-stage`; a stage on it is `.segment[data-stage]`, the one where one is `.segment.now`.

Drawings on one page tell each other what is pointed at by the event `headlight:query` on the document: `detail` is
`{queryStrip, query, keyStrip, key}`, with nulls for what is not.

May import: model.errors, model.trace, viz.labels, viz.links, viz.readings, viz.texts, viz.theme.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import streamlit as st

from model.errors import UnknownSite
from model.trace.stages import Stage
from model.trace.types import Site, Trace
from viz.canvas.assets import BASE, OF_AN_ATLAS, OF_STRIPS, read
from viz.canvas.scenes import attention
from viz.canvas.scenes import cells as cells_scene
from viz.canvas.scenes import changes as changes_scene
from viz.canvas.scenes import film as film_scene
from viz.canvas.scenes import network as network_scene
from viz.canvas.scenes import tree as tree_scene
from viz.readings.changes import Change
from viz.readings.training import Course, Frame


class Chosen(Protocol):
    """Takes what a person chose in a drawing."""

    def __call__(self, **fields: str | int) -> None:
        """What was chosen, by field of `viz.links.View`; positions counted from 0."""


def fields_of(selection: Mapping[str, Any]) -> dict[str, str | int]:
    """The fields of `viz.links.View` in what a browser reported; what a drawing would not report is left out.

    Whether the run has the place is not known here.
    """
    site, stage = selection.get("site"), selection.get("stage")
    found: dict[str, str | int] = {"site": site} if isinstance(site, str) and _is_site(site) else {}
    if isinstance(stage, str) and len(stage) < _LONGEST_STAGE:
        found["stage"] = stage
    numbers = {name: selection.get(name) for name in ("head", "query", "key", "step", "hypothesis", "snapshot")}
    return found | {name: value for name, value in numbers.items() if type(value) is int and value >= -1}


_LONGEST_STAGE = 80


def _is_site(text: str) -> bool:
    try:
        return str(Site.parse(text)) == text
    except UnknownSite:
        return False


_STRIPS = st.components.v2.component(
    "headlight.strips", css=read("common.css", "chips.css"), js=read(*BASE, *OF_STRIPS, "strips_standalone.js")
)
_ATLAS = st.components.v2.component(
    "headlight.atlas",
    css=read("common.css", "atlas.css"),
    js=read(*BASE, *OF_AN_ATLAS, "atlas_standalone.js"),
)
_FILM = st.components.v2.component(
    "headlight.film",
    css=read("common.css", "atlas.css", "chips.css", "player.css", "film.css"),
    js=read(*BASE, *OF_AN_ATLAS, "chips.js", "transport.js", "film.js"),
)
_LINES = st.components.v2.component("headlight.lines", css=read("common.css"), js=read(*BASE, "touch.js", "lines.js"))
_PLAYER = st.components.v2.component(
    "headlight.player",
    css=read("common.css", "chips.css", "player.css"),
    js=read(*BASE, "touch.js", "chips.js", "paint.js", "heatmap.js", "transport.js", "player.js"),
)
_NETWORK = st.components.v2.component(
    "headlight.network", css=read("common.css", "player.css", "network.css"), js=read(*BASE, "transport.js", "network.js")
)
_TREE = st.components.v2.component("headlight.tree", css=read("common.css", "tree.css"), js=read(*BASE, "tree.js"))
_CELLS = st.components.v2.component(
    "headlight.cells", css=read("common.css"), js=read(*BASE, "touch.js", "paint.js", "heatmap.js", "cells.js")
)


def strips(trace: Trace, site: Site, query: int, *, key: str, chosen: Chosen) -> None:
    """The token strips: each written token with its probability, and on hover or focus the alternatives.

    Args:
        site: whose query rows can be selected.
        query: the selected row; -1: none.
        key: stable name of this drawing on the page.
    """
    _mount(_STRIPS, attention.strips(trace, site, query), key, chosen)


def atlas(trace: Trace, site: Site, head: int, query: int, *, key: str, chosen: Chosen) -> None:
    """Every head of every site at one glance; a click selects a head, a double click opens it large.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_ATLAS, attention.atlas(trace, site, head, query), key, chosen)


def changes(first: Trace, second: Trace, found: Mapping[Site, Change], site: Site, head: int, *, key: str, chosen: Chosen) -> None:
    """An atlas of what changed from the first run to the second, where they can be compared.

    Args:
        found: the sites that can be compared; at least one.
        site, head: the selected head.
    """
    _mount(_ATLAS, changes_scene.scene(first, second, found, site, head), key, chosen)


def film(
    frames: Sequence[Frame], whole: Trace, measured: Course, place: tuple[Site, int, int], at: int, *, key: str, chosen: Chosen
) -> None:
    """The atlas at every snapshot of a training; the slider and the keys move in the browser.

    Args:
        frames, whole, measured: as in `film_scene.scene`.
        place: the selected site, head and query row; -1: no row.
        at: the frame to begin with. Later calls for the same film leave the person's frame alone.

    Raises:
        UnknownSite, UnknownHead: the runs have no such site or head.
    """
    _mount(_FILM, film_scene.scene(frames, whole, measured, *place, at), key, chosen)


def lines(trace: Trace, site: Site, head: int, query: int, *, key: str, chosen: Chosen) -> None:
    """One head as lines between its query tokens (left) and key tokens (right).

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_LINES, attention.lines(trace, site, head, query), key, chosen)


def player(trace: Trace, site: Site, head: int, step: int, *, key: str, chosen: Chosen) -> None:
    """The decode token by token, seen from one site: rows appear as tokens are chosen. Stepping happens in the browser.

    Args:
        step: where to begin, counted from 0; -1: at the first step. Later calls for the same run leave the person's step alone.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_PLAYER, attention.player(trace, site, head, step), key, chosen)


def network(trace: Trace, stages: tuple[Stage, ...], titles: dict[str, str], stage: Stage, *, key: str, chosen: Chosen) -> None:
    """The map of the network with the stage where one is; a click or a key goes to another.

    Args:
        stages: the walk of the run.
        titles: what stages are called, by their names.
        stage: one of `stages`.
    """
    _mount(_NETWORK, network_scene.scene(trace, stages, titles, stage), key, chosen)


def cells(trace: Trace, stage: Stage, head: int, opened: tuple[int, int], *, key: str, chosen: Chosen) -> None:
    """The cells of one head at a stage, scores, mask or weights; a click or Enter opens one.

    Args:
        opened: query and key of the cell whose arithmetic is shown; -1: none.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    _mount(_CELLS, cells_scene.scene(trace, stage, head, *opened), key, chosen)


def tree(trace: Trace, shown: int, *, key: str, chosen: Chosen) -> None:
    """The tree of a beam search; a click on a hypothesis, or Enter, asks for it.

    Args:
        trace: a run that has a tree.
        shown: rank of the hypothesis that the run shows.
    """
    _mount(_TREE, tree_scene.scene(trace, shown), key, chosen)


def _mount(component: Any, data: bytes, key: str, chosen: Chosen) -> None:
    """Draws, and has `chosen` told what is chosen from now on.

    `gone` is a drawing's call for a part that the shelf has put away: the script run that it causes has put it back already.
    """

    def tell() -> None:
        selection = st.session_state[key].get("selection")
        if isinstance(selection, Mapping) and (fields := fields_of(selection)):
            chosen(**fields)

    component(key=key, data=data, on_selection_change=tell, on_gone_change=_nothing)


def _nothing() -> None:
    """Streamlit reports a state only where a callback is given."""
