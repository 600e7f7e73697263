"""The scenes of Explore's drawings, by the name of the drawing, whoever asks: the page, or the route that follows what is typed."""

import numpy as np

from model.trace.stages import Stage
from viz.canvas.scenes import attention, cells
from viz.canvas.scenes.attention import Read
from viz.page import Page
from viz.views import reading
from viz.views.reading import Shown


def overview(page: Page, writes: bool = False) -> dict[str, bytes]:
    """The scenes `strips` and `atlas`.

    Args:
        page: what is shown.
        writes: whether its run still decodes.
    """
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    return {
        "strips": attention.strips(trace, site, query, live=True),
        "atlas": attention.atlas(trace, site, head, query, live=True, writes=writes),
    }


def selected_head(page: Page, shown: Shown) -> dict[str, bytes]:
    """The scenes `lines` and, where the page draws the weights themselves, `cells`; none if there are too many tokens.

    Args:
        shown: the reading of the selected site.
    """
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    if not reading.fits(page):
        return {}
    found = {"lines": attention.lines(trace, site, head, query, _read(page, shown), live=True)}
    if reading.is_raw(page, shown):
        found["cells"] = cells.scene(trace, Stage(str(site), "weights"), head, query, page.view.key, live=True)
    return found


def _read(page: Page, shown: Shown) -> Read | None:
    """What the lines show; None: the weights of the selected head."""
    if shown.values.ndim == 1 or reading.is_raw(page, shown):
        return None
    whole = np.zeros(page.attention.mask.shape)
    whole[:, shown.keys] = shown.values
    return Read("/".join(reading.file_parts(page, shown)), reading.title(page, shown), whole)
