"""The panels of the page Step through: the player, a stage of the computation, and the parts that a link opens."""

import math
from dataclasses import replace

import pandas as pd

from model.engine.api import Run
from model.spec.request import KEEP
from model.trace import stages
from model.trace.stages import OF_CELLS, Stage
from model.trace.types import Site, Trace
from viz.canvas.scenes import attention as scene
from viz.canvas.scenes import beam_tree, matrix, network
from viz.canvas.scenes import player as player_scene
from viz.canvas.wire import parts
from viz.canvas.wire.transport import changed
from viz.feature import panels_of_parts
from viz.i18n.translate import _
from viz.labels import titles, tokens
from viz.panels import Bars, Content, NotDrawable, Panel, Scene, Table
from viz.session.selection import with_trace
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.explore import panels as explore
from viz.views.step import numbers

MOST_COLUMNS = 128
"""Most dimensions of a vector that are drawn."""


def panels(page: Page, link: ViewState) -> list[Panel]:
    """A stage of the computation, the parts that the link opens, or the player, with the tree of a beam search above it."""
    if link.clock == "computation":
        return _stage(page)
    if opened := panels_of_parts("steps", page):
        return opened
    if page.attention.heads * page.attention.mask.size > parts.INLINE * 16:
        return explore.of_run(page)
    data = changed(player_scene.scene(page.trace, page.attention.site, page.head, page.view.step), {}, continues=None)
    player = Panel(
        "player",
        "",
        Scene("Player", data),
        selected={"step": page.view.step, "large": bool(page.view.query >= 0 or page.view.head > 0)},
        paper=lambda: (explore.printed(page, "head"),),
    )
    return [*([tree(page)] if page.trace.tree else []), player]


def shows_row(view: ViewState, site: Site) -> bool:
    """Whether a view shows the selected row of a site: always, but for a stage that is none of that site."""
    return view.clock != "computation" or view.stage.startswith(f"{site}/")


def tree(page: Page, opens: int | None = None) -> Panel:
    """The tree of a beam search.

    Args:
        opens: the node at which it opens; None: it decides.
    """
    data = beam_tree.scene(page.trace, page.view.hypothesis)
    data = data if opens is None else changed(data, {}, opens=opens)
    return Panel("tree", "", Scene("Tree", data), paper=lambda: (explore.printed(page, "tree"),))


def _stage(page: Page) -> list[Panel]:
    """One stage of the computation: its numbers beside the map of the network; of a cell first how it was calculated."""
    trace = page.engine.ask(Run(page.view.request(keep=KEEP)))
    walk = stages.walk(trace)
    stage = stages.find(trace, page.view.stage) if page.view.stage else walk[0]
    if stage.site is not None:
        page = replace(page, view=replace(page.view, site=stage.place))
    page = with_trace(page, trace)
    heading = f"{titles.titles()[stage.name]} · {titles.place(trace, stage, page.head)}"
    selected = {"site": str(page.attention.site), "head": page.head, "query": page.view.query, "key": page.view.key}
    figures = Panel("numbers", heading, _numbers_of(page, trace, stage), width="half", selected=selected)
    plan = Scene("Network", network.scene(trace, walk, titles.titles(), stage))
    drawn = [figures, Panel("network", "", plan, width="half", paper=tuple)]
    if stage.name != "weights" or min(page.view.query, page.view.key) < 0:
        return drawn
    calculated, whole_row = explore.calculation(page, page.view.query, page.view.key)
    return [calculated, figures, whole_row, drawn[1]]


def _numbers_of(page: Page, trace: Trace, stage: Stage) -> Content:
    """What is drawn of a stage."""
    if stage.name == "tokens":
        return Scene("Strips", changed(scene.strips(trace, page.attention.site, -1), {}, continues=None))
    if stage.name == "ids":
        strip = trace.tokens["source" if stage.place == "encoder" or "target" not in trace.tokens else "target"]
        texts = [tokens.token(strip, at) for at in range(len(strip))]
        return Table(pd.DataFrame({_("id"): list(strip.ids)}, index=pd.Index(texts, name=_("token"))))
    if stage.name in OF_CELLS:
        cells = scene.cells(trace, stage, page.head, page.view.query, page.view.key)
        return Scene("Cells", changed(cells, {"hint": "", "hintTouch": ""}))
    if stage.name in ("logits", "probabilities", "chosen"):
        return _of_vocabulary(page, trace)
    array = stages.tensor(trace, stage, page.head)
    if array is None:
        raise NotDrawable(_("No numbers for this stage: this run did not record them."))
    array = array[:, :MOST_COLUMNS]
    columns = [str(number + 1) for number in range(array.shape[1])]
    axes = titles.down(trace, stage), titles.across(stages.AXES[stage.name][1])
    return Scene("Cells", matrix.numbers(array, numbers.row_labels(trace, stage, len(array)), columns, axes))


def _of_vocabulary(page: Page, trace: Trace) -> Bars:
    """The most likely tokens of the selected row, or of the first one that generated a token."""
    if not trace.steps:
        raise NotDrawable(_("This run generated nothing."))
    step = next((one for one in trace.steps if one.computed[1] - 1 == page.view.query), trace.steps[0])
    listed = [*step.candidates, *([] if any(one.id == step.chosen.id for one in step.candidates) else [step.chosen])]
    chosen = next(place for place, one in enumerate(listed) if one.id == step.chosen.id)
    return Bars([tokens.plain(one.text) for one in listed], [math.exp(one.log_probability) for one in listed], chosen)
