"""Names that do not exist here."""

from model.errors.root import HeadlightError


class NotFound(HeadlightError):
    """A name that does not exist here."""


class UnknownModel(NotFound):
    """Fields: asked, there."""

    template = "There is no model {asked!r} here; there is: {there}. Choose one of these."


class UnknownSite(NotFound):
    """Fields: asked, there."""

    template = "There is no attention site {asked!r} in this run; there is: {there}. Choose one of these."


class UnknownHead(NotFound):
    """Fields: asked, site, last. The last is the largest number."""

    template = "There is no head {asked} at {site}, whose heads are numbered from 0 to {last}: choose one of these."


class UnknownHypothesis(NotFound):
    """Fields: asked, there, last. `there` is their number, `last` the largest index."""

    template = "There is no hypothesis {asked}: this search ended with {there}, numbered from 0 to {last}; choose one of these."


class UnknownStage(NotFound):
    """Fields: asked, there."""

    template = "There is no stage {asked!r} in this run; there is: {there}. Choose one of these."


class UnknownTensor(NotFound):
    """Fields: asked, there."""

    template = "There is no tensor {asked!r} here; there is: {there}. Choose one of these."
