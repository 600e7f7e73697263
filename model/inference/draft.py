"""Draft: guesses the next tokens of a decode from what an earlier run wrote, so that one pass checks several of them.

While somebody types, each sentence is like the one before, and so is what the network writes. A pass that also reads the guessed
tokens computes a row for each of them, as when a given target is read. Each row chooses its token as a step of its own would.
The first choice that differs from its guess ends the pass, and what was computed from later guesses is forgotten: the same tokens
are written, in fewer passes.

Source: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding", section 2.1. Here an earlier text
takes the place of the smaller network.
"""

from collections.abc import Callable, Sequence

from model.checkpoints.loaded import Runner
from model.checkpoints.native import Checkpoint
from model.inference.recorder import Recorder
from model.spec.request import RunRequest
from model.transformer.cache import KVCache

LONGEST = 16
"""Most tokens that are guessed at once: what a wrong guess costs is limited."""

DOUBTFUL = 8
"""The same for a guess after one that was wrong."""

REPLACED = 4
"""The same for a guess after a token that the earlier text does not have."""

QUICK = 30_000_000
"""Parameters up to which a network reads the prompt with a guess. In a larger one the first token would be seen later."""


class Draft:
    """Guesses for one decode.

    The first guess is the beginning of the earlier text. Later, a place in it fits if the newest two tokens are those before it, or
    else if the newest one is. Of several places the guess begins at the one nearest to where the last guess ended, either way: a
    text that was changed in the middle often goes on as before, and a common word occurs in many places. If no place fits, the
    newest token replaced one of the earlier text, and the guess begins behind that one.

    Args:
        ids: the ids that an earlier run wrote; empty: nothing is guessed.
        forget: drops the newest rows, as many as its argument says, from the cache and the recorder of the decode.
        at_once: whether the prompt is read with a guess.

    Attributes:
        confirmed: number of guessed tokens that were chosen so far.
    """

    def __init__(self, ids: Sequence[int] = (), forget: Callable[[int], None] = lambda count: None, at_once: bool = True) -> None:
        self._ids, self._forget = list(ids), forget
        self._place = self._guessed = self.confirmed = 0
        self._longest, self._begun, self._at_once = LONGEST, False, at_once

    def after(self, written: Sequence[int], most: int) -> list[int]:
        """At most `most` ids that may follow the ids `written`: those that followed the same ids in the earlier text."""
        begun, self._begun, longest = self._begun, True, self._longest
        if begun:
            self._place += 1  # behind the newest token, if the text goes on as the earlier one did
            places = [place + 1 for place, id_ in enumerate(self._ids) if id_ == written[-1]]
            both = [place for place in places if place > 1 and self._ids[place - 2] == written[-2]]
            if places:
                self._place = min(both or places, key=lambda place: abs(place - self._place))
            else:
                longest = min(longest, REPLACED)
        elif not self._at_once:
            return []
        found = self._ids[self._place : self._place + max(0, min(most, longest))]
        self._guessed = len(found)
        return found

    def settle(self, confirmed: int) -> None:
        """Notes that the first `confirmed` of the guessed tokens were chosen, and forgets what was computed from the others."""
        wrong = self._guessed - confirmed
        if wrong:
            self._forget(wrong)
        if self._guessed:
            self._longest = DOUBTFUL if wrong else LONGEST
        self._place += confirmed
        self.confirmed += confirmed
        self._guessed = 0


def draft_for(checkpoint: Runner, request: RunRequest, cache: KVCache, recorder: Recorder, earlier: Sequence[int]) -> Draft:
    """The draft of one decode, given the ids that an earlier run wrote.

    Nothing is guessed where a pass over several tokens computes something else than steps of one token: in networks of other
    libraries, in decoders that are not causal or encode every step at position 0, and in runs with edits.
    """
    if not isinstance(checkpoint, Checkpoint) or request.edits:
        return Draft()
    spec = checkpoint.info.spec
    if spec.writer.wiring == "memory" or not spec.writer.causal or spec.writer.decode_positions != "running":
        return Draft()

    def forget(count: int) -> None:
        cache.forget(count)
        recorder.forget(count)

    guesses = [id_ for id_ in earlier if id_ != spec.end_id]  # the end token is never read
    return Draft(guesses, forget, at_once=checkpoint.parameters <= QUICK)
