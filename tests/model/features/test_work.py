"""What a question costs is what it takes: passes and positions are counted while it is answered."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from model.features.circuit.circuits import Circuit, Paths
from model.features.what_if.example import forced_run
from model.features.what_if.questions import Attribution, Edges, Heads, Prune, Words
from model.features.what_if.work import RunShape, price
from model.inference.run import run
from model.requests.inputs import POSITIONS
from model.requests.request import RunRequest
from model.transformer.stacks import CausalLM
from tests.model.features.conftest import answered, asked, tiny
from tests.runs import CPU

LONG = replace(asked(), source="w4 w6 w5 w9 w8 w4", target=(2, 5, 7, 4, 6, 5, 7))


def shape_of(name: str, request: RunRequest) -> RunShape:
    forced, prompt = forced_run(tiny(name), request, CPU, POSITIONS)
    return RunShape.of(tiny(name).info.spec, run(tiny(name), forced, CPU, "cpu"), prompt)


def passes_made(name: str, question: Attribution[Any]) -> float:
    """How often the whole network is passed, forward or backward, by the rows and positions that go through its layers."""
    network: Any = tiny(name).network
    stacks = [network] if isinstance(network, CausalLM) else [network.encoder, network.decoder]
    positions = list[int]()

    def count(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
        positions.append(output[..., 0].numel())
        if output.requires_grad:
            output.register_hook(lambda slope: positions.append(slope[..., 0].numel()))

    hooks = [layer.register_forward_hook(count) for stack in stacks for layer in stack.layers]
    try:
        answered(name, question)
    finally:
        for hook in hooks:
            hook.remove()
    shape = shape_of(name, question.request)
    lengths = (shape.fed,) if isinstance(network, CausalLM) else (shape.source, shape.fed)
    whole = sum(stack.passes * len(stack.layers) * length for stack, length in zip(stacks, lengths, strict=True))
    return sum(positions) / whole


@pytest.mark.parametrize("request_", [asked(), LONG], ids=["short", "long"])
@pytest.mark.parametrize("name", ["paper", "modern language model"])
@pytest.mark.parametrize("kind", ["shares", "without", "prune", "edges", "edges of a site", "words", "paths", "paths to a head"])
def test_the_passes_that_are_foretold_are_those_that_are_made(
    kind: str, name: str, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = "decoder.0.1.self"
    corrupted = str(request_.source).replace("w6", "w7")
    questions: dict[str, Attribution[Any]] = {
        "shares": Heads(request_),
        "without": Heads(request_, ("without", "alone")),
        "prune": Prune(request_),
        "edges": Edges(request_, 2),
        "edges of a site": Edges(request_, 2, site),
        "words": Words(request_),
        "paths": Paths(request_, corrupted),
        "paths to a head": Paths(request_, corrupted, site=site, head=0),
    }
    if kind == "words":  # how many points are needed depends on the network: so many that are not
        monkeypatch.setattr("model.features.what_if.gradients.TOLERANCE", 0.0)
        monkeypatch.setattr("model.features.what_if.gradients.MOST_POINTS", 24)
        monkeypatch.setattr("model.features.what_if.questions.GRADIENT_POINTS", 24)
    foretold = questions[kind].passes(shape_of(name, request_))
    assert 0.5 <= passes_made(name, questions[kind]) / foretold <= 2


def test_longer_texts_and_more_samples_cost_more() -> None:
    short, long = shape_of("paper", asked()), shape_of("paper", LONG)
    assert price(Words(LONG), long).runs > 1.5 * price(Words(asked()), short).runs
    wide = replace(short, heads=dict.fromkeys(short.heads, 12))
    few, many = (price(Heads(asked(), ("share",), permutations), wide).runs for permutations in (32, 1024))
    assert many == pytest.approx(32 * few, rel=0.1)
    assert price(Circuit(asked()), wide).runs > price(Circuit(asked()), short).runs


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        (Heads(LONG), "leave out the shares"),
        (Prune(LONG), "ask for the quick approximation"),
        (Paths(LONG, "w4"), "name the head that the paths lead to"),
        (Words(LONG), r"ask about a run of at most (\d+) tokens"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_question_that_is_too_costly_says_what_would_pass(
    question: Attribution[Any], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.features.what_if.work.RUN", 1)
    shape = shape_of("paper", LONG)
    cost = price(question, shape)
    sentence = str(cost.instead(cost.runs - 1))
    match = re.fullmatch(advice, sentence)
    assert match is not None, sentence
    if match.groups():
        shorter = int(match[1])
        assert shape.positions / 2 < shorter < shape.positions
        assert question.runs(shape.shorter(shorter)) < cost.runs <= question.runs(shape.shorter(shape.positions))
    assert str(cost.instead(0)) == "ask it on a machine of your own"
