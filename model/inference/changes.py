"""What a run changes in its network: nothing, unless its request has edits, which a feature makes."""

from collections.abc import Callable, Mapping

from torch import Tensor

from model.checkpoints.loader import AnyNetwork, Runner
from model.errors import CannotChange, Phrase, phrase
from model.feature import attribute, features
from model.inference.inputs import Inputs
from model.requests.request import RunRequest
from model.trace.types import Tokens, Trace
from model.transformer.attention import Intervention

Traced = Callable[[RunRequest], Trace]
"""Runs a request on the network of the run."""


class Changes:
    """The changes of one run; of this class, none.

    Attributes:
        network: what runs.
        interventions: functions of values that the network shows to `Run.see`, by the names of the values.
    """

    def __init__(self, network: AnyNetwork) -> None:
        self.network = network
        self.interventions: dict[str, Intervention] = {}

    def source(self, ids: Tensor, padding: Tensor | None) -> Tensor:
        """The ids [row, position] that the encoder reads.

        Args:
            padding: [batch, 1, 1, position] of bool, True where there is no padding.
        """
        return ids

    def target(self, ids: Tensor) -> Tensor:
        """The ids [row, position] that the decoder reads."""
        return ids

    def select(self, rows: Tensor) -> None:
        """Keeps batch rows of what the changes remember, as the cache does."""

    def notes(self) -> list[Phrase]:
        """Sentences about the changes."""
        return []

    def mark_exchanged_words(self, strips: Mapping[str, Tokens]) -> dict[str, Tokens]:
        """The strips of the trace, with the words that other words were exchanged for."""
        return dict(strips)


def changes_of(checkpoint: Runner, request: RunRequest, inputs: Inputs, traced: Traced) -> Changes:
    """The changes of a run that begins.

    Args:
        inputs: its inputs, without the padding that it asks for.
        traced: makes the other runs that edits need.

    Raises:
        HeadlightError: an edit cannot be made in this network, or no feature makes edits.
    """
    if not request.edits:
        return Changes(checkpoint.network)
    makers = [feature.edits for feature in features() if feature.edits]
    if not makers:
        reason = phrase("the feature that makes edits was taken out of this copy of Headlight")
        raise CannotChange(name=str(request.edits[0]), reason=reason)
    changes: Changes = attribute(makers[0])(checkpoint, request, inputs, traced)
    return changes
