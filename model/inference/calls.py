"""Calls of networks: what a run asks for at a time, and how it is computed by itself."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TypeAlias

from torch import Tensor

from model.transformer.attention import Run
from model.transformer.masks import Mask
from model.transformer.networks import Encodes, Runnable, Translates, Writes


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a network.

    Attributes:
        network: the network to call.
        run: recorder, interventions and cache of the calling run.
        ids: [row, position] of ids, or [row, position, model] of features: the source, or the target so far.
        source_mask: which source positions may be attended to; None: `ids` are the only input.
        memory: [row, key, model], the encoder's output; None: the call is one of the encoder, or of a language model.
        start: first position to compute; earlier ones are in the run's cache.
        computed_by: computes the result instead of one forward pass; such a call is never batched.
        then: given the result, returns the run's next call, which goes on without waking the run's thread; it must return at once.
            None, or a None that it returns: the run's thread gets the result.
        gives_way: whether calls of runs are computed before it: it is one of many of a measurement.
    """

    network: Runnable
    run: Run
    ids: Tensor
    source_mask: Mask | None = None
    memory: Tensor | None = None
    start: int = 0
    computed_by: Callable[[], Tensor] | None = None
    then: Callable[[Tensor], "Call | None"] | None = None
    gives_way: bool = False

    @property
    def queries(self) -> int:
        """Number of positions to compute."""
        return self.ids.shape[1] - self.start

    @property
    def source_keys(self) -> int:
        """Number of keys of cross-attention; 0: the call has none."""
        return 0 if self.memory is None else self.memory.shape[1]


@dataclass(frozen=True)
class Passes:
    """The calls of one decode, each of which follows from the answer to the one before.

    A function that named itself as the next one would be a reference cycle: what it holds, all tensors of the run, would stay in
    memory until Python looks for such cycles.

    Attributes:
        read: the call that reads ids [row, position] from a position on.
        passes: yields what to read, and is sent the logits.
    """

    read: Callable[[Tensor, int], Call]
    passes: Generator[tuple[Tensor, int], Tensor, None]

    def next_call(self, logits: Tensor | None) -> Call | None:
        """The call after the one that answered `logits`, or the first one; None: the decode has ended."""
        try:
            # Sending None starts the generator; each later send hands in the logits that it waits for and returns what it wants to
            # read next.
            return replace(self.read(*self.passes.send(logits)), then=self.next_call)  # type: ignore[arg-type]  # None begins it
        except StopIteration:
            return None


Ask: TypeAlias = Callable[[Call], Tensor]
"""Answers a call: the encoder's output [row, position, model], or logits [row, query, vocab]; of calls that follow each other, the
last one."""


def alone(call: Call) -> Tensor:
    """Computes a call and those that follow it, each by itself; returns the last result.

    Raises:
        TypeError: the network has no such call.
    """
    while True:
        answer = computed(call)
        # A step of a decode names the next one; the last names none, and its answer is that of all.
        following = None if call.then is None else call.then(answer)
        if following is None:
            return answer
        call = following


def computed(call: Call) -> Tensor:
    """Computes one call by itself: [row, position, model] of an encoder, [row, query, vocab] of a decoder.

    Raises:
        TypeError: the network has no such call.
    """
    if call.computed_by is not None:
        return call.computed_by()
    # Without a memory, a network with an encoder is called to make one.
    # One of three questions: the logits of a language model, those of a decoder over an encoder's output, or an encoder's output.
    match call.network:
        case Writes() as network:
            answer: Tensor = network(call.ids, call.run, call.start)
            return answer
        case Translates() as network if call.memory is not None and call.source_mask is not None:
            return network.decode(call.ids, call.memory, call.source_mask, call.run, call.start)
        case Encodes() as network if call.source_mask is not None:
            return network.encode(call.ids, call.source_mask, call.run)
    raise TypeError(f"no such call of {type(call.network).__name__}")
