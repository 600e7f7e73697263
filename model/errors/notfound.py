"""Names that do not exist here."""

from model.errors.base import HeadlightError, message


class NotFound(HeadlightError):
    """A name that does not exist here."""


class UnknownModel(NotFound):
    """Fields: asked, there."""

    template = message("No model is called “{asked}”. Available: {there}.")


class UnknownSite(NotFound):
    """Fields: asked, there."""

    template = message("This run has no attention layer “{asked}”. Available: {there}.")


class UnknownHead(NotFound):
    """Fields: asked, site, last. The last is the largest number."""

    template = message("There is no head {asked} at {site}: its heads are numbered from 0 to {last}.")


class UnknownHypothesis(NotFound):
    """Fields: asked, last. The last is the largest number."""

    template = message("There is no hypothesis {asked}: those of this beam search are numbered from 0 to {last}.")


class UnknownImage(NotFound):
    """Fields: asked."""

    template = message(
        "The image {asked} is not available: a link names an image but does not contain it. Open the same file again."
    )


class UnknownSound(NotFound):
    """Fields: asked."""

    template = message(
        "The sound {asked} is not available: a link names a sound but does not contain it. Open the same file again."
    )


class UnknownStage(NotFound):
    """Fields: asked, there."""

    template = message("This run has no stage “{asked}”. Available: {there}.")


class UnknownTensor(NotFound):
    """Fields: asked, there."""

    template = message("There is no tensor “{asked}”. Available: {there}.")


class NotRecorded(UnknownTensor):
    """A tensor that a run could have recorded. Fields: asked, reason."""

    template = message("This run does not contain {asked}: {reason}.")


class NotTakenApart(UnknownTensor):
    """The parts that a number is a sum of, where another program ran the network. No fields."""

    template = message(
        "How the layers of this model compute is not known here, so neither are the parts that wrote its scores and logits. Choose "
        "a bundled model, or one of another architecture, such as GPT-2, BERT or Llama."
    )


class NoArithmetic(UnknownTensor):
    """The arithmetic of a cell where a part of it is not known. Fields: site, reason."""

    template = message("The calculation of a cell at {site} is not possible: {reason}.")
