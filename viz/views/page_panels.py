"""The panels of every page: what a link to it shows without the page's controls. Lectures know pages from here alone."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from model.engine.api import Engine
from model.trace.types import Site, Trace
from viz.feature import features
from viz.i18n.translate import _
from viz.panels import NotDrawable, Panel
from viz.session.state import Page
from viz.url.links import SiteSelector
from viz.url.view_state import ViewState
from viz.views import mask_panels, position_panels
from viz.views.explore import panels as explore
from viz.views.step import panels as step


@dataclass(frozen=True)
class PagePanels:
    """The panels of one page.

    Attributes:
        panels: those of the page's run and a link; raises NotDrawable or a HeadlightError where there are none.
        parts: parts of the page by their names in a link's `open`; a link that opens one shows it in the place of `panels`.
        opens_on: the attention site that the page opens on.
        unedited: whether it gets the run without the view's edits, which it then makes itself.
        shows_row: whether a view of it shows the selected row of a site; None: none does.
        about_heads: what it tells of heads, in Markdown, given a model, and of each head the measure of interest; None: nothing.
    """

    panels: Callable[[Page, ViewState], list[Panel]]
    opens_on: SiteSelector = Trace.last_cross
    unedited: bool = False
    shows_row: Callable[[ViewState, Site], bool] | None = None
    about_heads: Callable[[Engine, str, Mapping[tuple[str, int], str]], str] | None = None
    parts: Mapping[str, Callable[[Page, ViewState], Iterable[Panel]]] = field(default_factory=dict)

    def of(self, page: Page, link: ViewState) -> list[Panel]:
        """The parts that a link opens; else the panels of the page. Errors as of `panels`."""
        opened = [part for name, part in self.parts.items() if name in page.view.opened.split()]
        return [panel for part in opened for panel in part(page, link)] if opened else self.panels(page, link)


_OF_THE_CORE: Mapping[str, PagePanels | None] = {
    "explore": PagePanels(explore.panels, shows_row=lambda _view, _site: True),
    "step": PagePanels(step.panels, shows_row=step.shows_row),
    "masks": PagePanels(mask_panels.panels, mask_panels.opens_on),
    "positions": PagePanels(position_panels.panels),
    "checkpoint": None,
}


@cache
def pages_of_steps() -> Mapping[str, PagePanels | None]:
    """What a step of a lecture can link to, by the path of a page's URL: the first one where a link names none. None: a page
    without panels.
    """
    brought = {
        page.path: PagePanels(
            page.panels, page.opens_on or Trace.last_cross, page.unedited, about_heads=page.about_heads, parts=page.parts
        )
        for feature in features()
        for page in feature.pages
        if page.panels is not None
    }
    return {**_OF_THE_CORE, **brought}


def panels_of(path: str) -> PagePanels:
    """The panels of a page.

    Raises:
        NotDrawable: it has none.
    """
    pages = pages_of_steps()
    if (page := pages.get(path or next(iter(pages)))) is None:
        raise NotDrawable(_("The {page} page cannot be shown inside a lecture.", page=path))
    return page


def about_heads(engine: Engine, path: str, model: str, heads: Mapping[tuple[str, int], str]) -> list[str]:
    """What other pages than `path` tell of heads, in Markdown; arguments as for `PagePanels.about_heads`."""
    others = [page.about_heads for name, page in pages_of_steps().items() if page is not None and page.about_heads and name != path]
    return [text for tell in others if (text := tell(engine, model, heads))]
