"""What a page selects in a run, without a script: the page on another run, or with what a run has of a link's selection."""

from dataclasses import replace

from model.trace.types import Site, Trace
from viz.session.state import Page
from viz.url.view_state import ViewState


def selected(page: Page, view: ViewState) -> Page:
    """The page with what this run has of the site, head and row that `view` asks for."""
    asked = Site.parse(view.site) if view.site else page.attention.site
    attention = page.trace.attention.get(asked, page.attention)
    head = view.head if view.head < attention.heads else 0
    _heads, rows, keys = attention.weights.shape
    query = view.query if view.query < rows else -1
    view = replace(view, site=str(attention.site), head=head, query=query, key=view.key if view.key < keys else -1)
    return replace(page, view=view, attention=attention, head=head)


def with_trace(page: Page, trace: Trace) -> Page:
    """The page on another run of the same view."""
    return selected(replace(page, trace=trace, attention=trace.last_cross()), page.view)
