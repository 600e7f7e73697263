"""Names that do not exist here."""

from model.errors.root import HeadlightError


class NotFound(HeadlightError):
    """A name that does not exist here."""


class UnknownModel(NotFound):
    """Fields: asked, there."""

    template = "No model is called “{asked}”. Available: {there}."


class UnknownSite(NotFound):
    """Fields: asked, there."""

    template = "This run has no attention layer “{asked}”. Available: {there}."


class UnknownHead(NotFound):
    """Fields: asked, site, last. The last is the largest number."""

    template = "There is no head {asked} at {site}: its heads are numbered from 0 to {last}."


class UnknownHypothesis(NotFound):
    """Fields: asked, last. The last is the largest number."""

    template = "There is no hypothesis {asked}: those of this beam search are numbered from 0 to {last}."


class UnknownStage(NotFound):
    """Fields: asked, there."""

    template = "This run has no stage “{asked}”. Available: {there}."


class UnknownTensor(NotFound):
    """Fields: asked, there."""

    template = "There is no tensor “{asked}”. Available: {there}."
