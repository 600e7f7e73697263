"""The parts below the masks: their kinds, and attention sinks."""

from viz.features.modern_attention import mask_kinds, sinks
from viz.labels.tokens import MaskForm
from viz.session.state import Page


def draw(page: Page, form: MaskForm) -> None:
    """Draws both of them."""
    mask_kinds.show(page, form)
    sinks.show(page)
