"""Batches of a measurement take a moment each, whatever the network, and their sizes change no number."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from model.features.circuit.circuits import Paths
from model.features.what_if import answers
from model.features.what_if.pace import GROWTH, MOMENT, Pace
from model.features.what_if.questions import Attribution, Edges, Heads, Prune, Words
from model.features.what_if.scoring import Scorer
from model.inference.calls import Call, alone
from model.transformer.stacks import EncoderDecoder
from tests.model.features.conftest import answered, asked, tiny


@dataclass
class Slow:
    """A processor on which every pass of a layer takes so many seconds for each row and position; its clock stands still else."""

    seconds: float
    now: float = 0.0
    took: list[float] = field(default_factory=list)

    def ask(self, call: Call) -> torch.Tensor:
        began = self.now
        answer = alone(call)
        if call.gives_way:
            self.took.append(self.now - began)
        return answer

    def watching(self, layer: torch.nn.Module) -> Any:
        def count(_module: Any, given: Any, output: torch.Tensor) -> None:
            self.now += self.seconds * output.shape[0] * output.shape[1]
            if output.requires_grad:  # a backward pass takes as long again for each token
                output.register_hook(lambda _slope: setattr(self, "now", self.now + self.seconds * output[..., 0].numel()))

        return layer.register_forward_hook(count)


def paced(question: Attribution[Any], seconds: float, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[float]]:
    """The answer on a slow processor, and the seconds of each call of the compute thread."""
    slow, network = Slow(seconds), tiny("paper").network
    assert isinstance(network, EncoderDecoder)
    hooks = [slow.watching(layer) for stack in (network.encoder, network.decoder) for layer in stack.layers]
    monkeypatch.setattr("model.features.what_if.pace.OPERATIONS_AT_FIRST", 0)
    monkeypatch.setattr("model.features.what_if.gradients.TOLERANCE", 0.2)  # a few points are enough
    monkeypatch.setattr(answers, "Scorer", lambda example, ask, most: Scorer(example, ask, most, lambda: slow.now))
    try:
        return answered("paper", question, ask=slow.ask), slow.took
    finally:
        for hook in hooks:
            hook.remove()


@pytest.mark.parametrize(
    "question",
    [Heads(asked()), Prune(asked(), every=False), Words(asked()), Edges(asked(), 1), Paths(asked(), "w4 w7 w5 w9")],
    ids=lambda question: type(question).__name__,
)
def test_no_call_takes_longer_than_a_moment_and_the_numbers_stay(
    question: Attribution[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast, few = paced(question, 0.0, monkeypatch)
    slow, many = paced(question, 2e-3, monkeypatch)
    assert len(many) > len(few)
    assert max(many) <= 0.25
    for name, array in fast.arrays().items():
        np.testing.assert_allclose(getattr(slow, name), array, atol=1e-4, err_msg=name)


def test_a_batch_is_sized_by_the_one_before() -> None:
    now = 0.0

    def took(seconds: float) -> Callable[[], None]:
        def compute() -> None:
            nonlocal now
            now += seconds

        return compute

    pace = Pace(operations=1e8, clock=lambda: now)
    assert pace.whole(128) == 4, "the first one by the size of the network"
    pace.timed(4, took(0.04))
    assert pace.whole(128) == int(4 * MOMENT / 0.04)
    pace.timed(10, took(0.001))
    assert pace.whole(1000) == 10 * GROWTH
    pace.timed(100, took(60.0))
    assert pace.whole(128) == 1, "at least one, however long it takes"
    assert Pace(operations=1e12).whole(128) == 1
