"""Networks of the transformers library run in the precision in which their weights are stored, or in float32 if asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.checkpoints import loader
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import BadSetting
from model.features.what_if.questions import Heads
from model.huggingface import checks
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignNetwork
from model.requests.edits import read_edits
from model.requests.request import Decoding, RunRequest
from tests.recorded_folders import SOURCE, saved

pytestmark = pytest.mark.slow  # the transformers library

CPU = torch.device("cpu")
NAMES = ("llama", "gemma2", "gpt_oss", "falcon")
"""One with a row, two that are found by a short run, and one that is only recorded."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders whose weights are stored in bfloat16."""
    shelf = tmp_path_factory.mktemp("stored")
    for name in NAMES:
        own: Any = saved(shelf / name, name)[0]
        own.to(torch.bfloat16).save_pretrained(shelf / name)
    return shelf


def library_s(folder: Path, dtype: torch.dtype) -> Any:
    """The library's own network of a folder, and its result for SOURCE."""
    from transformers import AutoModelForCausalLM

    library: Any = AutoModelForCausalLM
    own = library.from_pretrained(folder, dtype=dtype, attn_implementation="eager", local_files_only=True).eval()
    with torch.inference_mode():
        return own, own(torch.tensor([SOURCE]), output_attentions=True, use_cache=False)


def asked(name: str, **more: Any) -> RunRequest:
    return RunRequest(name, SOURCE, decoding=Decoding(max_length=0), **more)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_it_computes_what_the_library_computes_in_that_precision(shelf: Path, name: str) -> None:
    engine = LocalEngine(shelf, CPU)
    for precision, dtype in ((None, torch.bfloat16), ("float32", torch.float32)):
        _own, wanted = library_s(shelf / name, dtype)
        trace = engine.ask(Run(asked(name, precision=precision)))
        said = str(dtype).removeprefix("torch.")
        assert (trace.model["dtype"], trace.request["precision"]) == (said, said)
        assert any(str(note).endswith(f"its own eager attention, in {said}.") for note in trace.model["notes"])
        for attention, own in zip(trace.attention.values(), wanted.attentions, strict=True):
            np.testing.assert_array_equal(attention.weights, own[0].float().numpy())
        assert trace.logits is not None
        np.testing.assert_array_equal(trace.logits, wanted.logits[0].float().numpy())


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_its_weights_take_no_more_memory_than_in_the_library(shelf: Path, name: str) -> None:
    own, _wanted = library_s(shelf / name, torch.bfloat16)
    found = loader.load(shelf / name, {}, CPU)
    assert isinstance(found, Foreign)
    assert isinstance(found.network, ForeignNetwork)
    sizes = [sum(tensor.nbytes for tensor in network.parameters()) for network in (found.network, own)]
    assert sizes[0] == sizes[1]
    in_float32 = loader.load(shelf / name, {}, CPU, precision="float32")
    assert sum(tensor.nbytes for tensor in in_float32.network.parameters()) > 1.8 * sizes[0]


def test_what_is_only_recorded_runs_in_float32(shelf: Path) -> None:
    trace = LocalEngine(shelf, CPU).ask(Run(asked("falcon")))
    _own, wanted = library_s(shelf / "falcon", torch.float32)
    assert trace.model["dtype"] == "float32"
    for attention, own in zip(trace.attention.values(), wanted.attentions, strict=True):
        np.testing.assert_allclose(attention.weights, own[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("edit", ["silence site=decoder.0.1.self head=1", "sharpen site=decoder.0.1.self factor=3"])
def test_edits_and_what_heads_matter_are_those_of_float32_but_for_rounding(shelf: Path, edit: str) -> None:
    engine = LocalEngine(shelf, CPU)
    low, full, plain = (
        engine.ask(Run(asked("llama", precision=precision, edits=edits))).logits
        for precision, edits in ((None, read_edits(edit)), ("float32", read_edits(edit)), ("float32", ()))
    )
    assert low is not None
    assert full is not None
    assert plain is not None
    assert np.linalg.norm(low - full) < 0.2 * np.linalg.norm(full - plain)
    effects, wanted = (engine.ask(Heads(asked("llama", precision=precision))).without for precision in (None, "float32"))
    assert effects is not None
    assert wanted is not None
    np.testing.assert_allclose(effects.sum(axis=1), wanted.sum(axis=1), atol=0.1 * np.abs(wanted.sum(axis=1)).max())


def test_runs_in_each_precision_are_kept_apart_and_stay(shelf: Path) -> None:
    engine = LocalEngine(shelf, CPU)
    full = engine.ask(Run(asked("llama", precision="float32")))
    low = engine.ask(Run(asked("llama")))
    assert low is not full
    assert engine.ask(Run(asked("llama"))) is low
    assert engine.ask(Run(asked("llama", precision="bfloat16"))) is low
    assert engine.ask(Run(asked("llama", precision="float32"))) is full
    assert LocalEngine(shelf, CPU, precision="float32").ask(Run(asked("llama"))).model["dtype"] == "float32"


def test_a_third_precision_is_refused_and_so_is_float32_that_does_not_fit(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalEngine(shelf, CPU)
    with pytest.raises(BadSetting, match="Allowed: bfloat16, in which the weights of this model are stored, or float32"):
        engine.ask(Run(asked("llama", precision="float16")))
    monkeypatch.setattr(checks, "free_bytes", lambda: 1000.0)
    with pytest.raises(BadSetting, match="Allowed: bfloat16, as its file has them: in float32 its weights take"):
        engine.ask(Run(asked("gemma2", precision="float32")))
    assert engine.ask(Run(asked("gemma2"))).model["dtype"] == "bfloat16"
