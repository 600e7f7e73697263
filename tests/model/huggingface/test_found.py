"""Architectures without a row whose attention goes through the library's interface: found, edited, measured and explained.

Each edit is compared with a test's own attention function and hooks (tests/own_hooks.py).
"""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.checkpoints import loader
from model.errors import CannotChange, NoArithmetic
from model.features.what_if.answers import answer
from model.features.what_if.example import forced_run
from model.features.what_if.questions import Heads, Words
from model.huggingface.families import Kind
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignNetwork
from model.huggingface.recorded.network import RecordedNetwork
from model.inference.cell import explain_cell
from model.inference.resources import Resources
from model.inference.run import run
from model.requests.edits import read_edits
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import Array, Trace
from tests import own_hooks
from tests.changeable import SITES, expected
from tests.recorded_folders import SOURCE, TARGET, saved

CPU = torch.device("cpu")
NAMED = (
    "gemma2 gemma3_text phi3 mixtral gpt_oss qwen3_moe deepseek_v2 deepseek_v3 albert modernbert blenderbot umt5 encoder-decoder"
).split()
"""Those that each edit is tried in. `python -m tests.changeable` tries all of them."""

BENT = ("gemma2", "gpt_oss", "umt5")
"""Those whose scores are more than products: they have a soft cap, a sink, or a number for each distance."""

Opened = tuple[str, Any, Kind, Foreign]


@pytest.fixture(scope="module", params=NAMED)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """A folder, opened here, and the network that was saved in it."""
    folder = tmp_path_factory.mktemp(request.param)
    own, kind = saved(folder, request.param)
    opened = loader.load(folder, {}, CPU)
    assert isinstance(opened, Foreign)
    assert isinstance(opened.network, ForeignNetwork)
    return request.param, own, kind, opened


def traced(found: Opened, text: str = "", **more: Any) -> Trace:
    _name, _own, kind, opened = found
    asked: dict[str, Any] = {
        "decoding": Decoding(max_length=0),
        "keep": ("hidden",),
        "target": TARGET if kind == "both" else None,
    } | more
    return run(opened, RunRequest("tiny", SOURCE, edits=read_edits(text), **asked), CPU, "CPU")


def last(found: Opened, trace: Trace) -> Array:
    """The logits, or an encoder's states after its last layer."""
    states = trace.logits if trace.logits is not None else trace.hidden[list(trace.hidden)[-1]]
    assert states is not None
    return states


def own(found: Opened) -> torch.Tensor:
    """The same of the library's network, as it is changed now."""
    return expected(found[1], found[2])


def assert_close(one: Array, other: torch.Tensor) -> None:
    np.testing.assert_allclose(one, other.numpy(), rtol=0, atol=1e-6 * max(1.0, float(other.abs().max())))


def test_without_edits_its_numbers_are_the_library_s(found: Opened) -> None:
    assert_close(last(found, traced(found)), own(found))


def test_each_edit_of_attention_is_the_one_of_a_function_of_one_s_own(found: Opened) -> None:
    name, network, kind, _opened = found
    number, site = SITES[kind]
    plain = last(found, traced(found))
    for text, changing in own_hooks.attention_edits(number, site).items():
        if text.startswith("sharpen") and name in BENT:
            with pytest.raises(CannotChange, match="more than products"):
                traced(found, text)
            continue
        with own_hooks.changed(network, changing):
            wanted = own(found)
        edited = last(found, traced(found, text))
        assert_close(edited, wanted)
        assert np.abs(edited - plain).max() > 1e-4, text


def test_a_skipped_layer_is_the_one_of_a_hook_of_one_s_own(found: Opened) -> None:
    name, network, kind, _opened = found
    if name == "albert":
        pytest.skip("its one layer runs twice, and a plain hook would skip both turns")
    stack = "encoder" if kind == "encoder" else "decoder"
    handle = own_hooks.layers(network, kind == "both")[1].register_forward_hook(own_hooks.its_input, with_kwargs=True)
    wanted = own(found)
    handle.remove()
    assert_close(last(found, traced(found, f"skip-layer stack={stack} layer=1")), wanted)


def test_a_patch_brings_the_context_of_another_run(found: Opened) -> None:
    _name, network, kind, _opened = found
    number, site = SITES[kind]
    kept = own_hooks.Changing(number)
    other = tuple(reversed(SOURCE))
    with own_hooks.changed(network, kept):
        own_hooks.call(network, other, TARGET if kind == "both" else None)
    with own_hooks.changed(network, own_hooks.Changing(number, context=lambda _: kept.kept[0])):
        wanted = own(found)
    typed = " ".join(map(str, other))
    assert_close(last(found, traced(found, f'patch value=context site={site} source="{typed}"')), wanted)


def test_a_decode_with_its_cache_is_edited_as_its_text_in_one_call(found: Opened) -> None:
    _name, network, kind, _opened = found
    if kind == "encoder":
        pytest.skip("it writes nothing")
    number, site = SITES[kind]
    for text, changing in own_hooks.attention_edits(number, site).items():
        if not text.startswith("silence"):
            continue
        trace = traced(found, text, decoding=Decoding(max_length=3), target=None)
        ids = trace.tokens["target" if kind == "both" else "source"].ids
        assert trace.logits is not None
        read = ids[: len(trace.logits)]
        with own_hooks.changed(network, changing):
            wanted = own_hooks.call(network, SOURCE, read) if kind == "both" else own_hooks.call(network, read)
        np.testing.assert_allclose(trace.logits, wanted.numpy(), rtol=0, atol=1e-5 * max(1.0, float(wanted.abs().max())))


def test_what_each_head_matters_is_the_change_under_its_silence(found: Opened) -> None:
    _name, network, kind, opened = found
    if kind == "encoder":
        pytest.skip("it has no probabilities")
    request = RunRequest("tiny", SOURCE, TARGET if kind == "both" else None, Decoding(max_length=0))
    given, prompt = forced_run(opened, request, CPU, 64)
    trace = run(opened, given, CPU, "CPU")
    effects: Any = answer(Heads(given, ("without",)), given, prompt, opened, trace, Resources(CPU))
    number, site = SITES[kind]
    silence = own_hooks.attention_edits(number, site)[f"silence site={site} head=1"]

    def log_probabilities() -> torch.Tensor:
        read = TARGET if kind == "both" else SOURCE
        logits = own(found).log_softmax(-1)
        return torch.stack([logits[row, id_] for row, id_ in enumerate(read[1:])])

    base = log_probabilities()
    with own_hooks.changed(network, silence):
        without = log_probabilities()
    index = [str(head.site) for head in effects.heads].index(site) + 1
    np.testing.assert_allclose(effects.without[index], (without - base).numpy(), atol=2e-5)
    words: Any = answer(Words(given), given, prompt, opened, trace, Resources(CPU))
    assert np.isfinite(np.tril(words.gradient)).any()
    sums, reached = words.integrated.copy(), ~np.isnan(words.integrated).all(axis=1)
    np.testing.assert_allclose(np.nansum(sums[reached], axis=1), words.difference[reached], rtol=0.02, atol=1e-4)


def test_a_cell_is_explained_where_its_score_is_a_product(found: Opened) -> None:
    name, _own, kind, opened = found
    site = SITES[kind][1]
    trace = traced(found, keep=tuple(each for each in KEEP if each not in ("scores", "stages")))
    if name in BENT:
        with pytest.raises(NoArithmetic, match="more than products"):
            explain_cell(opened.network, trace, site, 1, 3, 2)
        return
    explained = explain_cell(opened.network, trace, site, 1, 3, 2)
    assert abs(explained.weight - trace.at(site).weights[1, 3, 2]) < 1e-5


def test_what_does_not_go_through_the_interface_says_so(tmp_path: Path) -> None:
    saved(tmp_path, "gpt_neo")
    opened = loader.load(tmp_path, {}, CPU)
    assert isinstance(opened.network, RecordedNetwork)
    with pytest.raises(CannotChange, match="does not go through the library’s attention interface"):
        run(opened, RunRequest("tiny", SOURCE, edits=read_edits("silence site=decoder.0.0.self")), CPU, "CPU")


def test_new_weights_run_at_the_same_places(found: Opened) -> None:
    _name, _own, kind, opened = found
    network: Any = opened.network
    torch.manual_seed(1)
    other = network.with_library(type(network.library)(deepcopy(network.library.config)).eval())
    plain = traced(found)
    new = traced((found[0], found[1], kind, replace(opened, network=other)))
    assert list(new.attention) == list(plain.attention)
    assert not np.allclose(last(found, new), last(found, plain))
