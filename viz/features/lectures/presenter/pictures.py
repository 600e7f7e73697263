"""From a view to its picture: the panels that its page shows of it, without the page's controls."""

from collections.abc import Sequence
from typing import Any

from model.engine.api import Engine
from viz.features.lectures.presenter.headless_page import headless_page
from viz.features.lectures.presenter.panels import Picture, PicturePanel
from viz.features.lectures.presenter.scenes import scene_of
from viz.panels import Panel, Scene
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.page_panels import panels_of


def picture(engine: Engine, path: str, view: ViewState) -> Picture:
    """The picture of a view; arguments and errors as for `page_and_panels`."""
    return pictured(*page_and_panels(engine, path, view))


def page_and_panels(engine: Engine, path: str, view: ViewState) -> tuple[Page, list[Panel]]:
    """The page of a view, and the panels that it shows of it.

    Args:
        path: URL path of the page.
        view: the state in its link.

    Raises:
        HeadlightError: the run is not possible.
        NotDrawable: this page, or this run, has no picture.
    """
    drawn = panels_of(path)
    page = headless_page(engine, view, drawn.opens_on, drawn.unedited)
    return page, drawn.of(page, view)


def pictured(page: Page, panels: Sequence[Panel]) -> Picture:
    """Panels of a page as a picture."""
    choice: dict[str, Any] = {"site": str(page.attention.site), "head": page.head, "query": page.view.query, "key": page.view.key}
    choice |= {"large": False}
    listed, scenes, pieces = list[PicturePanel](), dict[str, bytes](), dict[str, bytes]()
    for panel in panels:
        kind, scenes[panel.name] = scene_of(panel.content)
        follows = isinstance(panel.content, Scene) and panel.content.follows
        listed.append(PicturePanel(kind, panel.name, panel.title, panel.note, panel.width, panel.fills, follows))
        pieces |= panel.content.pieces if isinstance(panel.content, Scene) else {}
        choice |= panel.selected
    return Picture(listed, scenes, pieces, choice)
