"""What stands in place of Explore: the first picture of a new visitor, or a step of the tour."""

from viz.canvas.scenes import overlay
from viz.features.tour import first_picture, tour
from viz.session.state import Page, instead_of_explore
from viz.views.explore import reading


def instead(page: Page) -> bool:
    """Draws it; False: there is nothing to draw, or this run has no such picture."""
    page_instead = instead_of_explore()
    if page_instead == "tour" and reading.fits(page):
        tour.show(page)
        return True
    if page_instead == "first" and (reading.fits(page) or overlay.fits(page.trace, page.attention.site)):
        first_picture.show(page)
        return True
    return False
