"""An error of the library while it opens or computes is one sentence: on the command line, from an engine, as a value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.models.bloom.modeling_bloom import BloomModel

from model import __main__ as command_line
from model.checkpoints import loader
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import CannotRunHere, RefusedByLibrary, RunFailed, phrase
from model.huggingface.attention import in_one_sentence
from model.requests.request import RunRequest
from tests import folders
from tests.recorded_folders import saved

CPU = torch.device("cpu")
SENTENCE = "This run failed inside a library that it uses: ValueError: five is too many."


def refusing(count: int, true: Callable[..., Any]) -> Callable[..., Any]:
    """A forward function of the library that takes any number of tokens but one."""

    def forward(self: Any, input_ids: Any = None, *given: Any, **named: Any) -> Any:
        if input_ids.shape[1] == count:
            raise ValueError("five is too many")
        return true(self, input_ids, *given, **named)

    return forward


def test_a_run_that_the_library_ends_is_one_sentence_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was a traceback, and an incident number on a page."""
    folders.save(tmp_path / "tiny", "bert")
    monkeypatch.setattr(BertEmbeddings, "forward", refusing(5, BertEmbeddings.forward))
    with pytest.raises(RunFailed) as refused:
        LocalEngine(tmp_path, CPU).ask(Run(RunRequest("tiny", (4, 5, 6, 7, 8))))
    assert str(refused.value).startswith(SENTENCE)
    out = str(tmp_path / "t.trace.safetensors")
    assert command_line.main(["run", str(tmp_path / "tiny"), "--source-ids", "4,5,6,7,8", "--out", out]) != 0
    said = capsys.readouterr().err
    assert SENTENCE in said
    assert "Traceback" not in said
    assert LocalEngine(tmp_path, CPU).ask(Run(RunRequest("tiny", (4, 5, 6)))).tokens["source"].ids == (4, 5, 6)


def test_a_short_input_that_cannot_run_is_no_fault_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.save(tmp_path, "bert")
    monkeypatch.setattr(BertEmbeddings, "forward", refusing(2, BertEmbeddings.forward))
    with pytest.raises(CannotRunHere, match=r"transformers [\d.]+, .* says: ValueError: five is too many\. If a") as refused:
        loader.load(tmp_path, {}, CPU)
    assert "Do not change its config.json" not in str(refused.value)


def test_a_network_without_a_row_ends_in_the_same_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "tiny", "bloom")
    monkeypatch.setattr(BloomModel, "forward", refusing(5, BloomModel.forward))
    with pytest.raises(RunFailed) as refused:
        LocalEngine(tmp_path, CPU).ask(Run(RunRequest("tiny", (4, 5, 6, 7, 8))))
    assert str(refused.value).startswith(SENTENCE)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"hidden_act": "no-such"}, "'no-such'"),
        ({"layer_norm_eps": "1e-12"}, "'layer_norm_eps' expected float, got str"),
        ({"tie_word_embeddings": "yes"}, "'tie_word_embeddings' expected bool"),
        ({"hidden_dropout_prob": "x"}, "'hidden_dropout_prob'"),
    ],
)
def test_a_setting_that_the_library_does_not_take_is_named(changes: dict[str, Any], names: str, tmp_path: Path) -> None:
    """The advice was to restore the file from a backup, which would bring the same setting back."""
    folders.save(tmp_path, "bert")
    folders.change_config(tmp_path, **changes)
    for opens in (lambda: loader.load(tmp_path, {}, CPU), lambda: loader.inspect(tmp_path, {})):
        with pytest.raises(RefusedByLibrary, match=f"says: .*{names}.* correct it in config.json") as refused:
            opens()
        assert "\n" not in str(refused.value)


def test_what_this_program_does_wrong_is_not_said_to_be_the_librarys() -> None:
    with pytest.raises(ValueError, match="no field fills the gap"), in_one_sentence():
        phrase("{gap}")
