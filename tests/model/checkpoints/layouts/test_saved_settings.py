"""What a training program saved beside its weights answers questions, and what was told may not contradict it."""

from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from model.__main__ import main
from model.checkpoints.layouts.loading import inspect, load
from model.checkpoints.layouts.questions import Question, norm_epsilon
from model.checkpoints.layouts.saved_settings import saved_answers
from model.engine.api import Describe, Receive, Run
from model.engine.local import LocalEngine
from model.errors import BadSetting, ContradictsFile
from model.inference.run import run
from model.inspection.report import Inspection
from model.requests.request import RunRequest
from model.safe_loading.plan import OtherEntry
from tests.reference import GOLDEN
from tests.toolkits import fairseq_state, gpt_state, onmt_file, onmt_state

CPU = torch.device("cpu")
WIDTH = 16


def saved(folder: Path, **beside: Any) -> Path:
    """A file as a training program writes it; the opener is the real one, which makes no object of it."""
    torch.save({"model": gpt_state(), **beside}, folder / "ckpt.pt")
    return folder / "ckpt.pt"


def answers(found: Inspection) -> dict[str, tuple[str | None, str]]:
    return {asked.name: (asked.answer, str(asked.origin)) for asked in found.ask}


MODEL_ARGS = {"n_layer": 1, "n_head": 4, "n_embd": WIDTH, "block_size": 9, "bias": False, "vocab_size": None, "dropout": 0.0}


def test_nano_gpt_with_4_heads_inside_accepted_8_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, model_args=MODEL_ARGS, iter_num=7, best_val_loss=torch.tensor(1.5), config={"n_head": 4, "dataset": "x"})
    found = inspect(path, {"activation": "gelu"})
    assert tuple(map(str, answers(found)["n_heads"])) == ("4", "model_args.n_head in the file")
    assert found.spec["decoder"]["attention"]["heads"] == 4
    checkpoint = load(path, {"activation": "gelu"}, CPU)
    trace = run(checkpoint, RunRequest("x", (1, 2)), CPU, "cpu")
    assert trace.at("decoder.0.0.self").heads == 4
    assert "The file itself answers: n_heads=4 (model_args.n_head)." in map(str, trace.model["notes"])
    assert load(path, {"activation": "gelu", "n_heads": "4"}, CPU).info.spec == checkpoint.info.spec
    said = rf"{path} itself says n_heads=4 \(model_args.n_head\), but the answer given is 8. Leave n_heads out"
    for opens in (lambda told: load(path, told, CPU), lambda told: inspect(path, told)):
        with pytest.raises(ContradictsFile, match=said):
            opens({"activation": "gelu", "n_heads": "8"})
    assert main(["inspect", str(path), "--set", "activation=gelu"]) == 0
    assert "--set n_heads=4 from model_args.n_head in the file  (1, 2, 4" in capsys.readouterr().out


def test_answers_in_a_file_beside_may_not_contradict_it_either(tmp_path: Path) -> None:
    path = saved(tmp_path, model_args=MODEL_ARGS)
    (tmp_path / "spec.json").write_text('{"n_heads": 8, "activation": "gelu"}')
    with pytest.raises(ContradictsFile, match="but the answer given is 8"):
        inspect(path, {})
    (tmp_path / "spec.json").write_text('{"activation": "gelu"}')
    assert tuple(map(str, answers(inspect(path, {}))["activation"])) == ("gelu", "the file of answers beside it")


@pytest.mark.parametrize(
    "beside",
    [
        {"hyper_parameters": {"n_head": 4, "activation": "gelu_new"}},
        {"args": Namespace(n_head=4, activation="gelu_tanh", lr=1e-3)},
        {"config": {"model": {"num_heads": 4, "act_fn": "gelu_pytorch_tanh"}}},
        {"hparams": OrderedDict(nhead="4", activation="GELU-tanh")},
        {"n_heads": 4, "activation": "gelu_new"},
    ],
    ids=["Lightning", "argparse", "nested", "texts", "the topmost level"],
)
def test_programs_save_options_in_many_places(beside: dict[str, Any], tmp_path: Path) -> None:
    found = inspect(saved(tmp_path, **beside), {})
    assert {name: answers(found)[name][0] for name in ("n_heads", "activation")} == {"n_heads": "4", "activation": "gelu-tanh"}
    assert found.spec


def test_options_in_the_header_of_safetensors(tmp_path: Path) -> None:
    save_file(gpt_state(), tmp_path / "a.safetensors", {"format": "pt", "n_head": "4"})
    assert answers(inspect(tmp_path / "a.safetensors", {}))["n_heads"][0] == "4"


def test_a_file_that_contradicts_itself_is_asked_about(tmp_path: Path) -> None:
    path = saved(tmp_path, model_args=MODEL_ARGS, config={"n_head": 8})
    found = inspect(path, {"activation": "gelu"})
    assert answers(found)["n_heads"] == (None, "")
    note = "The file gives several values for n_heads, so none was used: 4 (model_args.n_head), 8 (config.n_head)."
    assert note in map(str, found.notes)
    assert load(path, {"activation": "gelu", "n_heads": "8"}, CPU).info.spec.decoder.attention.heads == 8  # type: ignore[union-attr]


def test_a_file_that_says_what_its_layout_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ContradictsFile,
        match=r"activation=mish \(args.activation\), which Headlight does not compute for this layout\. Allowed: relu, gelu",
    ):
        inspect(saved(tmp_path, args={"activation": "mish"}), {})
    with pytest.raises(ContradictsFile, match=r"says n_heads=3 .*, but its tensors do not allow that"):
        inspect(saved(tmp_path, args={"n_head": 3}), {})


def test_a_default_of_a_program_gives_way_to_what_the_file_says(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 20)
    torch.save({"state_dict": layer.state_dict(), "hparams": {"norm_first": True, "nhead": 4}}, tmp_path / "a.pt")
    found = inspect(tmp_path / "a.pt", {})
    assert tuple(map(str, answers(found)["norm_order"])) == ("pre", "hparams.norm_first in the file")
    state = torch.load(GOLDEN / "000_tiny_a.pt", weights_only=True)
    options = {"n_heads": 2, "scale_embeddings": False, "src_pad_idx": 1, "trg_pad_idx": 1, "pad_token_id": -100, "epochs": 3}
    torch.save({"state_dict": state, "args": Namespace(**options)}, tmp_path / "b.pt")
    found = inspect(tmp_path / "b.pt", {"decoder_passes": "1"})
    told = {name: answer for name, (answer, _origin) in answers(found).items()}
    assert (told["encoder_heads"], told["decoder_heads"], told["embed_scale"]) == ("2", "2", "none")
    assert (told["source_pad_id"], told["target_pad_id"]) == ("1", "1")
    assert found.spec


@pytest.mark.parametrize(
    ("name", "value", "question"),
    [
        ("optimizer.n_head", 4, ""),
        ("args.n_head", None, ""),
        ("args.n_head", True, ""),
        ("args.n_head", "many", ""),
        ("args.encoder.n_heads", 4, "encoder_heads"),
        ("args.decoder.nhead", 4, "decoder_heads"),
        ("args.ignore_index", -100, ""),
        ("args.pad_idx", -100, ""),
        ("args.embed_scale", 1, ""),
        ("args.norm_first", "False", "norm_order"),
    ],
)
def test_what_counts_as_an_answer(name: str, value: Any, question: str) -> None:
    assert list(saved_answers([OtherEntry(name, type(value).__name__, value)])) == [question][: bool(question)]


def test_an_upload_answers_for_itself_too(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, CPU)
    name = engine.ask(Receive(saved(tmp_path, model_args=MODEL_ARGS | {"activation": "gelu"}).read_bytes(), "ckpt.pt"))
    assert engine.ask(Describe(name)).problem == {}
    assert engine.ask(Run(RunRequest(name, (1, 2)))).at("decoder.0.0.self").heads == 4
    assert engine.ask(Describe(name, (("n_heads", "8"),))).problem["error"] == "ContradictsFile"


class Fields:
    """A class that only the program knows: unpickling it here would fail."""

    def __init__(self) -> None:
        self.vocab = {"<unk>": 0, "<blank>": 1}


@pytest.mark.parametrize("options", ["opt", "cfg.model", "args"])
def test_toolkits_answer_for_themselves_whatever_lies_beside(tmp_path: Path, options: str) -> None:
    told = {"encoder_attention_heads": 3, "decoder_attention_heads": 3, "activation_fn": "gelu", "no_scale_embedding": False}
    opt = Namespace(heads=3, pos_ffn_activation_fn="gelu", model_dtype="fp32")
    saved = {
        "opt": {**onmt_file(onmt_state()), "opt": opt, "vocab": {"src": Fields()}},
        "args": {"model": fairseq_state(True, True), "args": Namespace(**told), "cfg": None},
        "cfg.model": {"model": fairseq_state(True, True), "args": None, "cfg": {"model": Namespace(**told)}},
    }
    torch.save(saved[options], tmp_path / "weights.pt")
    found = answers(inspect(tmp_path / "weights.pt", {}))
    asked = ("encoder_heads", "decoder_heads", "activation", "embed_scale")
    assert [found[name][0] for name in asked] == ["3", "3", "gelu", "sqrt"]


@given(st.sampled_from(["1e-05", "1e-06", "1e-08", "1e-12"]), st.sampled_from(["{:e}", "{:.1e}", "{:.14f}", "{:g}"]))
def test_a_number_is_compared_as_a_number(value: str, form: str) -> None:
    question = norm_epsilon()
    assert question.check(form.format(float(value))) == value
    assert question.check(value.replace("e-0", "e-")) == value


@pytest.mark.parametrize(("typed", "read"), [("7", "7"), ("007", "7"), ("7.0", "7"), ("1e1", "10")])
def test_a_whole_number_may_be_written_in_another_way(typed: str, read: str) -> None:
    assert Question("pad_id", "", highest=10).check(typed) == read


@pytest.mark.parametrize("typed", ["7.5", "-1", "11", "1e400", "nan", "inf", "", "x", "0x7"])
def test_what_is_no_such_number_is_refused(typed: str) -> None:
    with pytest.raises(BadSetting, match="from 0 to 10"):
        Question("pad_id", "", highest=10).check(typed)


def test_an_answer_that_is_the_file_s_number_does_not_contradict_it(tmp_path: Path) -> None:
    inspect(saved(tmp_path, model_args=MODEL_ARGS), {"n_heads": "4.0", "activation": "gelu"})
