"""The panels of the page Step through: the player, a stage of the computation, and the parts that a link opens."""

from dataclasses import replace

import pandas as pd

from model.engine.api import Run
from model.requests.request import KEEP
from model.trace import stages
from model.trace.beam_tree import path
from model.trace.types import Site, Trace
from viz.canvas.scenes import attention, beam_tree, network
from viz.canvas.wire import parts
from viz.canvas.wire.transport import changed
from viz.feature import panels_of_parts
from viz.i18n.translate import _
from viz.labels import titles, tokens
from viz.panels import Panel, Scene, Table
from viz.session.state import Page, with_trace
from viz.url.view_state import ViewState
from viz.views.explore import panels as explore
from viz.views.step import cell_panels, stage_panels


def panels(page: Page, link: ViewState) -> list[Panel]:
    """A stage of the computation, the parts that the link opens, or the player, with the tree of a beam search above it."""
    if link.clock == "computation":
        return _stage(page)
    if opened := panels_of_parts("steps", page):
        return opened
    if page.attention.heads * page.attention.mask.size > parts.INLINE * 16:
        return explore.of_run(page)
    search = [tree(page)] if page.trace.tree else []
    if search and "search" in page.view.opened.split():
        search.append(of_search(page.trace))
    return [*search, of_player(page)]


def shows_row(view: ViewState, site: Site) -> bool:
    """Whether a view shows the selected row of a site: always, but for a stage that is none of that site."""
    return view.clock != "computation" or view.stage.startswith(f"{site}/")


def of_player(page: Page) -> Panel:
    """The decoding, step by step. On a page a candidate continues the text; in a lecture it does not."""
    data = attention.player(page.trace, page.attention.site, page.head, page.view.step)
    return Panel(
        "player",
        "",
        Scene("Player", changed(data, {}, continues=None)),
        selected={"step": page.view.step, "large": bool(page.view.query >= 0 or page.view.head > 0)},
        on_page=lambda: Scene("Player", data),
        paper=lambda: (explore.printed(page, "head"),),
    )


def tree(page: Page, opens: int | None = None) -> Panel:
    """The tree of a beam search. A recorded run holds one hypothesis, which is then the one that is marked.

    Args:
        opens: the node at which it opens; None: it decides.
    """
    decoding = page.trace.request.get("decoding") or {}
    hypothesis = int(decoding.get("hypothesis", 0)) if page.info.recorded else page.view.hypothesis
    data = beam_tree.scene(page.trace, hypothesis)
    data = data if opens is None else changed(data, {}, opens=opens)
    return Panel("tree", "", Scene("Tree", data), paper=lambda: (explore.printed(page, "tree"),))


def of_search(trace: Trace) -> Panel:
    """All nodes of the tree in search order: texts so far, log-probabilities, fate and rank."""
    frame = table_of_search(trace)
    steps = frame.set_index(_("step"))
    ranks = [str(node.rank + 1) if node.rank >= 0 else "" for node in trace.tree]
    title = _("The search as a table")
    return Panel(
        "search", title, Table(steps.assign(**{_("hypothesis"): ranks})), on_page=lambda: Table(frame, decimals=4, named=False)
    )


def table_of_search(trace: Trace) -> pd.DataFrame:
    """Table of all nodes of the tree in search order: texts so far, log-probabilities, fate and rank."""
    fates = {"kept": _("kept"), "finished": _("finished"), "pruned": _("pruned")}
    rows = [
        {
            _("step"): node.step + 1,
            _("hypothesis so far"): text_of_hypothesis(trace, node.parent),
            _("token"): tokens.word(node.text),
            _("log-probability"): node.log_probability,
            _("total"): node.total,
            _("per token"): node.mean,
            _("outcome"): fates[node.fate],
            _("hypothesis"): node.rank + 1 if node.rank >= 0 else None,
        }
        for node in trace.tree
    ]
    return pd.DataFrame(rows).astype({_("hypothesis"): "Int64"})


def text_of_hypothesis(trace: Trace, node: int) -> str:
    """What a hypothesis wrote up to a node of the tree."""
    return tokens.line(trace.tree[index].text for index in path(trace.tree, node))


def _stage(page: Page) -> list[Panel]:
    """One stage of the computation: its numbers beside the map of the network; of a cell first how it was calculated."""
    trace = page.engine.ask(Run(page.view.request(keep=KEEP)))
    walk = stages.walk(trace)
    stage = stages.find(trace, page.view.stage) if page.view.stage else walk[0]
    if stage.site is not None:
        page = replace(page, view=replace(page.view, site=stage.place))
    page, opened = with_trace(page, trace), page.view.opened.split()
    selected = {"site": str(page.attention.site), "head": page.head, "query": page.view.query, "key": page.view.key}
    picture = replace(stage_panels.of_stage(page, trace, stage), about="", selected=selected)
    plan = Scene("Network", network.scene(trace, walk, titles.titles(), stage))
    pictures = [picture, Panel("network", "", plan, width="half", paper=tuple)]
    formula = [stage_panels.of_formula(page, trace, stage)] if "formula" in opened else []
    if stage.name != "weights" or min(page.view.query, page.view.key) < 0:
        return [*formula, *pictures]
    *calculated, whole_row = cell_panels.calculation(page, page.view.query, page.view.key)
    return [*formula, *calculated, picture, whole_row, pictures[1]]
