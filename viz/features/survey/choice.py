"""Which head, and which of its measures, the page Survey shows."""

import numpy as np

from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from viz.features.survey.view import SurveyView
from viz.session.state import Page


def head_of(page: Page, survey: Survey, chosen: bool) -> int:
    """The selected head; where nobody selected one, that with the largest number upwards, among those that have a dot.

    Args:
        chosen: whether somebody selected one.
    """
    heads, selection = survey.statistics.heads, (str(page.attention.site), page.head)
    view = page.view.of(SurveyView)
    across, up = survey.of_heads(view.across), survey.of_heads(view.up)
    drawn = np.isfinite(across) & np.isfinite(up)
    if selection in heads and (chosen or not drawn.any()):
        return heads.index(selection)
    return int(np.argmax(np.where(drawn, up, -np.inf))) if drawn.any() else 0


def measure_of(page: Page, survey: Survey, head: int) -> str:
    """The measure whose spread over the texts is shown: that upwards, else that from left to right, else the first that the head
    has. The empty text: it has none."""
    view = page.view.of(SurveyView)
    names = [name for name in (view.up, view.across, *MEASURES) if name in MEASURES]
    return next((name for name in names if survey.statistics.count[head, list(MEASURES).index(name)]), "")
