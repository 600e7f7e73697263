"""The scenes of Explore's drawings, by the name of the drawing, whoever asks: the page, or the route that follows what is typed."""

import numpy as np

from model.trace.stages import Stage
from viz.canvas.scenes import attention
from viz.canvas.scenes.attention import ReadingScene
from viz.session.state import Page
from viz.views.explore import reading
from viz.views.explore.reading import Shown


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


def selected_head(page: Page, shown: Shown | None) -> dict[str, bytes]:
    """The scenes `lines` and, where the page draws the weights themselves, `cells`; none if there are too many tokens.

    Args:
        shown: the reading of the selected site; None: the weights of the selected head as they ran.
    """
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    if max(page.attention.mask.shape) > reading.LONGEST:
        return {}
    raw = shown is None or reading.is_raw(page, shown)
    read = None if shown is None or raw else _read(page, shown)
    found = {"lines": attention.lines(trace, site, head, query, read, live=True)}
    if raw:
        found["cells"] = attention.cells(trace, Stage(str(site), "weights"), head, query, page.view.key, live=True)
    return found


def _read(page: Page, shown: Shown) -> ReadingScene | None:
    """A reading for the lines; None: it has one number for each row, so the lines show the weights of the selected head."""
    if shown.values.ndim == 1:
        return None
    whole = np.zeros(page.attention.mask.shape)
    whole[:, shown.keys] = shown.values
    return ReadingScene("/".join(reading.file_parts(page, shown)), reading.title(page, shown), whole)
