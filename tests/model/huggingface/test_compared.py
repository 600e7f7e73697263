"""What is said of architectures without a row when a short run of them is compared with what the library returns."""

import re
from collections import Counter
from pathlib import Path

import pytest
import torch

from model.checkpoints import loader
from model.errors import CannotRunHere
from model.huggingface.loaded import Foreign
from model.trace.types import Trace
from tests.recorded_folders import saved, traced

CPU = torch.device("cpu")
ALIKE = "Recorded maps of a short run differ by at most 0e\\+00 from those that the library itself returns."
SCORES = (
    "The library returns scores under the name of weights. Recorded maps .* differ by at most 0e\\+00 from the softmax of these."
)
NUMBER = "The library returns {own} maps of {site}, and {found} were recorded in a short run, so these were not compared."
SINK = "The weights of a row sum to less than 1 in some of its attention: the rest goes to a sink, .*"
ENCODER = "No attention of its encoder is shown: it is computed in sliding windows .*"
BLOCKS = "The library’s maps of encoder.self have the shape 2 × 4 × 4 × 12, and the recorded ones 4 × 4 × 12, .*"

SAID = {
    "deepseek_v2": (ALIKE,),
    "deepseek_v3": (ALIKE,),
    "gpt_oss": (ALIKE, SINK),
    "funnel": (ALIKE,),
    "led": (ALIKE, ENCODER),
    "longt5": (BLOCKS, ALIKE),
    "squeezebert": (SCORES,),
    "prophetnet": (NUMBER.format(own=2, site="decoder.self", found=4), SCORES),
    "diffllama": (NUMBER.format(own=2, site="decoder.self", found=4),),
    "convbert": (ALIKE,),
}
"""The sentences about the comparison, by architecture."""

KINDS = {
    "deepseek_v2": {"self": 2},
    "deepseek_v3": {"self": 2},
    "funnel": {"self": 5},
    "diffllama": {"self": 4},
    "convbert": {"self": 2},
    "led": {"self": 2, "cross": 2},
    "prophetnet": {"self": 6, "cross": 2},
}
"""How many sites of each kind it has."""

_COMPARES = re.compile(
    r"recorded in a short run|Recorded maps|returns no maps|is something else|and the recorded ones|sum to less|its encoder"
)


@pytest.fixture(scope="module", params=SAID)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Foreign, Trace]:
    """An architecture, its folder opened, and a run."""
    folder = tmp_path_factory.mktemp(request.param)
    _own, kind = saved(folder, request.param)
    found = loader.load(folder, {}, CPU)
    assert isinstance(found, Foreign)
    return request.param, found, traced(found, kind)[0]


def test_each_reason_has_its_sentence(run: tuple[str, Foreign, Trace]) -> None:
    name, found, _trace = run
    said = [str(note) for note in found.notes if _COMPARES.search(str(note))]
    assert len(said) == len(SAID[name]), said
    for sentence, expected in zip(said, SAID[name], strict=True):
        assert re.fullmatch(expected, sentence), sentence


def test_kinds_are_those_of_its_streams(run: tuple[str, Foreign, Trace]) -> None:
    name, _found, trace = run
    assert Counter(site.kind for site in trace.attention) == KINDS.get(name, Counter(site.kind for site in trace.attention))


def test_every_head_is_there(run: tuple[str, Foreign, Trace]) -> None:
    name, _found, trace = run
    heads = {len(attention.weights) for attention in trace.attention.values()}
    assert heads == ({2} if name == "convbert" else {4})


def test_an_input_that_the_library_cannot_run_is_no_damage_to_a_file(tmp_path: Path) -> None:
    saved(tmp_path, "nystromformer")
    with pytest.raises(CannotRunHere, match=r"a short input could not be run in it: transformers .* says: RuntimeError: shape"):
        loader.load(tmp_path, {}, CPU)
