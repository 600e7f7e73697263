"""Copies that join in the layer where they begin to differ are those of the whole network, and what they share is computed once."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from model.features.what_if import layerwise
from model.features.what_if.copies import Copies, Edge
from model.features.what_if.example import Example, example_of, forced_run
from model.features.what_if.scoring import Scorer
from model.features.what_if.scoring import forced as through_the_whole_network
from model.inference.calls import alone
from model.inference.run import run
from model.requests.edits import read_edits
from model.requests.inputs import POSITIONS
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array, sites
from model.transformer.layers import CrossAttentionLayer, SelfAttentionLayer
from tests.runs import CPU, SPECS, checkpoint

NAMES = ("paper", "modern, tied", "two passes", "uneven", "language model", "modern language model")


def example(name: str, edits: str = "") -> Example:
    runner = checkpoint(SPECS[name])
    asked = RunRequest("tiny", "w4 w6 w5 w9", decoding=Decoding(max_length=4), edits=read_edits(edits))
    request, prompt = forced_run(runner, asked, CPU, POSITIONS)
    return example_of(runner, request, run(runner, request, CPU, "cpu"), prompt, CPU, POSITIONS)


def some(own: Example, count: int, seed: int = 0) -> Copies:
    """Copies with random heads silenced, some heads in all of them; one copy silences no more than these."""
    there = sites(own.runner.info.spec)
    draw = np.random.default_rng(seed)
    silenced = draw.random((count, sum(there.values()))) < draw.random((count, 1)) / 2
    silenced[0] = False
    return Copies(there, silenced=silenced | (draw.random(sum(there.values())) < 0.2))


def edges(own: Example) -> Copies:
    there = sites(own.runner.info.spec)
    first, *_, last = there
    return Copies(there, edges=(None, Edge(last, None, None, 0), Edge(first, 1, None, 1), Edge(last, 0, 0, 0)))


def assert_whole(own: Example, scorer: Scorer, copies: Copies) -> None:
    with torch.inference_mode():
        wanted = through_the_whole_network(own, copies)
        np.testing.assert_allclose(scorer.score(copies), wanted.log_probabilities().numpy(), atol=1e-5)
        scores, ids = scorer.score_with_likeliest(copies)
        np.testing.assert_allclose(scores, wanted.log_probabilities().numpy(), atol=1e-5)
        np.testing.assert_array_equal(ids, wanted.logits.argmax(dim=-1).numpy())


@pytest.fixture(params=[1, 1000], ids=["a call for any two", "one call a layer"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """From how many copies on a call of their own is worth it; and small pieces of the output layer."""
    monkeypatch.setattr(layerwise, "WORTH_A_CALL", request.param)
    monkeypatch.setattr(layerwise, "WORTH_A_PASS", request.param)
    monkeypatch.setattr("model.features.what_if.example.ROW_CHUNK", 5)
    monkeypatch.setattr("model.features.what_if.example.VOCAB_CHUNK", 3)
    monkeypatch.setattr("model.features.what_if.example.FEW_LOGITS", 9)


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("edited", ["", "sharpen factor=0.5; silence head=0"])
@pytest.mark.parametrize("name", NAMES)
def test_copies_that_join_late_are_those_of_the_whole_network(name: str, edited: str) -> None:
    own = example(name, edited)
    scorer = Scorer(own, alone)
    for seed, count in enumerate((9, 1, 2, 7)):
        assert_whole(own, scorer, some(own, count, seed))
    assert_whole(own, scorer, edges(own))


@pytest.mark.parametrize("edit", ["skip-layer stack=decoder layer=0", 'patch value=hidden source="w5 w5 w5 w5"'])
def test_an_edit_that_looks_at_the_whole_batch_goes_through_the_whole_network_and_was_refused(edit: str) -> None:
    own = example("paper", edit)
    assert not layerwise.Layerwise.can(own, some(own, 3))
    assert_whole(own, Scorer(own, alone), some(own, 5))


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Rows that went through layers, by stack."""
    found = Counter[str]()

    def counted(kind: Any, forward: Callable[..., Any]) -> None:
        def count(self: Any, x: torch.Tensor, *others: Any) -> Any:
            found[next(each for each in others if isinstance(each, str))] += len(x)
            return forward(self, x, *others)

        monkeypatch.setattr(kind, "forward", count)

    for kind in (SelfAttentionLayer, CrossAttentionLayer):
        counted(kind, kind.forward)
    return found


def silent(own: Example, *heads: int) -> Array:
    found = np.zeros(sum(sites(own.runner.info.spec).values()), bool)
    found[list(heads)] = True
    return found


@torch.inference_mode()
def test_layers_in_front_of_the_first_difference_were_computed_for_every_copy(applied: Counter[str]) -> None:
    own = example("paper")
    there, layers = sites(own.runner.info.spec), own.runner.info.spec.writer.layers
    last = sum(there.values()) - 1
    scorer = Scorer(own, alone)
    applied.clear()
    scorer.score(Copies(there, silenced=np.stack([silent(own, last), silent(own)])))
    assert applied == {"encoder": own.runner.info.spec.stacks["encoder"].layers, "decoder": layers}, "what both share joins too"
    applied.clear()
    scorer.score(Copies(there, silenced=np.stack([silent(own, last, last - 1), silent(own, last - 1)])))
    assert applied == {"decoder": 1}, "a search begins in the last layer: what is in front of it is known"
