"""`run` and `inspect` on a file of each layout: what is written is the trace of that run."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

from model.__main__ import main
from model.checkpoints.layouts.detect import LAYOUTS
from model.checkpoints.layouts.given_answers import parse_settings
from model.checkpoints.loader import locate
from model.cli.options import read_features
from model.engine.api import Models, Run
from model.engine.local import LocalEngine
from model.errors import BadSetting, MissingFile, UnknownModel
from model.requests.inputs import RandomFeatures
from model.requests.request import RunRequest
from model.trace.serialization import from_bytes
from tests.llama_files import litgpt_state, meta_state
from tests.networks import VARIANTS, translator
from tests.reference import GOLDEN, SETTINGS, expected
from tests.toolkits import annotated_state, fairseq_state, gpt_state, joey_state, onmt_state

FEATURES = GOLDEN / "002_tiny_decoder_layer.expected.safetensors"
RUNS = {
    "000_tiny_b": ("--source-ids 2,4,8,27,20,3 --target-ids 2,4,7,25,18", "single.dec.P1.L2.cross_attn", "decoder.1.2.cross"),
    "001_tiny_b": ("--source-ids 6,11,21,6,24,25,16,5 --max-length 0", "lm.L2.attn", "decoder.0.2.self"),
    "002_tiny_decoder_layer": (
        f"--source-features {FEATURES}:nomask.input.enc_src --target-features {FEATURES}:nomask.input.trg",
        "nomask.cross_attn",
        "decoder.0.0.cross",
    ),
    "003_tiny_b": ("--source-ids 7,11,13,19,17 --target-ids 7,11,13,19,17", "b1.dec.L0.encself_attn", "decoder.0.0.memory"),
    "004_tiny_a": ("--source-ids 9,10,3,1,1,1,1,1 --source-valid 3 --max-length 8", "predict0.heatmap", "decoder.0.1.cross"),
}


@pytest.mark.parametrize("name", RUNS)
def test_run_writes_the_trace(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what, key, site = RUNS[name]
    told = [part for item in SETTINGS[name].items() for part in ("--set", "=".join(item))]
    out = tmp_path / "t.trace.safetensors"
    status = main(["run", str(GOLDEN / f"{name}.pt"), *told, *what.split(), "--keep", "all", "--out", str(out)])
    assert (status, capsys.readouterr().err) == (0, "")
    found = load_file(out)[f"attention/{site}/weights"]
    np.testing.assert_allclose(found, expected(name)[key][0], rtol=0, atol=2e-5)
    trace = from_bytes(out.read_bytes())
    assert dict(trace.request["settings"]) == SETTINGS[name]


def made(layout: str) -> dict[str, torch.Tensor]:
    """Random weights of a layout that no reference document has."""
    states: dict[str, Callable[[], dict[str, torch.Tensor]]] = {
        "own": lambda: translator(VARIANTS["paper"]).state_dict(),
        "gpt": gpt_state,
        "torch-transformer": lambda: nn.TransformerEncoderLayer(8, 2, 16).state_dict(),
        "annotated": annotated_state,
        "llama": meta_state,
        "lit-gpt": lambda: litgpt_state("attn.qkv"),
        "joeynmt": lambda: joey_state(first=True),
        "opennmt": onmt_state,
        "fairseq": lambda: fairseq_state(first=True, learned=False),
    }
    return states[layout]()


OTHERS = {
    "own": "n_heads=2 norm_order=post activation=relu embed_scale=sqrt decoder_passes=1 pad_id=1 bos_id=2",
    "gpt": "n_heads=2 activation=gelu",
    "torch-transformer": "n_heads=2 norm_order=post activation=relu causal=false",
    "annotated": "n_heads=3 pad_id=1 bos_id=2",
    "joeynmt": "n_heads=3 norm_order=pre embed_scale=sqrt pad_id=1 bos_id=2",
    "fairseq": "n_heads=3 activation=relu embed_scale=sqrt",
    "llama": "n_heads=6 rotary_base=10000 norm_epsilon=1e-05 variant=plain",
    "lit-gpt": "n_heads=6 rotary_base=10000 norm_epsilon=1e-05 variant=plain activation=silu embed_scale=none",
    "opennmt": "n_heads=3",
}


@pytest.mark.parametrize("layout", OTHERS)
def test_every_other_layout_runs_on_the_command_line(layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(made(layout), tmp_path / "w.pt")
    told = [part for item in OTHERS[layout].split() for part in ("--set", item)]
    source = "--source-features random:5:1" if layout == "torch-transformer" else "--source-ids 2,5,3"
    out = tmp_path / "t.trace.safetensors"
    status = main(["run", str(tmp_path / "w.pt"), *told, *source.split(), "--max-length", "2", "--out", str(out)])
    assert (status, capsys.readouterr().err) == (0, "")
    trace = from_bytes(out.read_bytes())
    assert all(np.allclose(each.weights.sum(-1), 1, atol=1e-5) for each in trace.attention.values())
    assert main(["inspect", str(tmp_path / "w.pt"), *told, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["layout"], found["missing"]) == (layout, [])


def test_every_layout_is_run_here() -> None:
    documents = {"000": "tutorial", "001": "torch-lm", "002": "tutorial-parts", "003": "shared-head", "004": "d2l"}
    assert {documents[name[:3]] for name in RUNS} | OTHERS.keys() == {layout.name for layout in LAYOUTS}


def test_inspect_says_what_is_open_and_leaves_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(GOLDEN / "000_tiny_a.legacy.pt")
    assert main(["inspect", path, "--json", "--set", "n_heads=2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["layout"] == "tutorial"
    assert next(asked["name"] for asked in found["ask"] if asked["needed"] and asked["answer"] is None) == "decoder_passes"
    assert main(["inspect", path]) == 0
    assert "--set decoder_passes=MUST BE ANSWERED  (1, 2)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--source-ids 2", "000_tiny_a.pt (layout tutorial) leaves these settings open: encoder_heads"),
        ("--source-ids 2 --set n_heads", "--set: “n_heads” is not accepted. Allowed: NAME=VALUE"),
        ("--source-ids 2 --source hallo", "--source: “several forms” is not accepted. Allowed: --source, --source-ids"),
        ("", "The source is missing. Needed: --source, --turn, --source-ids, --source-features, --image or --sound"),
    ],
)
def test_an_error_is_one_line_and_leaves_no_file(
    arguments: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t.trace.safetensors"
    assert main(["run", str(GOLDEN / "000_tiny_a.pt"), *arguments.split(), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_whole_object_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = GOLDEN / "004_tiny_a.module-unsafe.pt"
    assert main(["run", str(path), "--source-ids", "2", "--out", str(tmp_path / "t")]) == 1
    assert "contains a whole Python object (__main__.EncoderDecoder)" in capsys.readouterr().err


def test_random_features_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    assert read_features("--source-features", "random:5:7") == RandomFeatures(5, 7)
    (tmp_path / "a.pt").write_bytes((GOLDEN / "002_tiny_mha.pt").read_bytes())
    engine = LocalEngine(tmp_path, torch.device("cpu"), cache_bytes=0)
    request = RunRequest("a.pt", RandomFeatures(5, 7), settings=(("n_heads", "3"),))
    first, again = engine.ask(Run(request)), engine.ask(Run(request))
    other = engine.ask(Run(RunRequest("a.pt", RandomFeatures(5, 8), settings=(("n_heads", "3"),))))
    assert first is not again
    weights = [trace.at("encoder.0.0.self").weights for trace in (first, again, other)]
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-6)
    assert np.abs(weights[0] - weights[2]).max() > 1e-3
    assert RunRequest.from_json(json.loads(json.dumps(asdict(request)))) == request


def test_an_engine_loads_a_file_once_for_each_set_of_settings(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes((GOLDEN / "000_tiny_a.pt").read_bytes())
    engine = LocalEngine(tmp_path, torch.device("cpu"))
    (info,) = engine.ask(Models()).models
    assert info.problem["error"] == "OpenQuestions"
    assert info.problem["fields"]["open"].startswith("encoder_heads")
    once, twice = (tuple({**SETTINGS["000_tiny_a"], "decoder_passes": passes}.items()) for passes in "12")
    assert len(engine.ask(Run(RunRequest("a.pt", (2, 4, 3), (2, 5), settings=once))).attention) == 6
    assert len(engine.ask(Run(RunRequest("a.pt", (2, 4, 3), (2, 5), settings=twice))).attention) == 10
    assert engine.checkpoint("a.pt", tuple(sorted(once))) is engine.checkpoint("a.pt", tuple(sorted(once)))
    with pytest.raises(UnknownModel, match=r"Available: a\.pt"):
        engine.ask(Run(RunRequest("../a.pt", (2,))))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"{FEATURES}:nomask", "Allowed: FILE:TENSOR with one of the tensors"),
        (f"{FEATURES}:masked.input.trg", r"Allowed: one example of the 2: .*masked\.input\.trg\[0\] and so on"),
        (f"{FEATURES}:masked.input.trg[2]", "Allowed: one example of the 2"),
        (f"{FEATURES}:nomask.self_attn", r"of shape \[1, 2, 4, 4\]” is not accepted. Allowed: \[position, model\]"),
        ("nowhere.npy", r"Allowed: FILE\[:TENSOR\[ROW\]\] with a \.safetensors or \.npy file"),
        ("random:0", "positions: “0” is not accepted. Allowed: a whole number from 1"),
    ],
)
def test_features_that_cannot_be_read_are_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        read_features("--source-features", text)


def test_features_from_numpy_files_and_never_pickles(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    read = read_features("--source-features", str(tmp_path / "a.npy"))
    assert not isinstance(read, RandomFeatures)
    assert read.rows == ((0.0, 1.0, 2.0), (3.0, 4.0, 5.0))
    np.save(tmp_path / "b.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(BadSetting, match="ValueError"):
        read_features("--source-features", str(tmp_path / "b.npy"))


@pytest.mark.parametrize("given", [["n_heads"], ["=2"], ["n_heads="], ["a=1", "a=2"]])
def test_settings_have_one_form_and_each_name_comes_once(given: list[str]) -> None:
    with pytest.raises(BadSetting, match="NAME=VALUE, each name once"):
        parse_settings(given)


def test_the_weights_in_a_folder_of_our_own_stand_for_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).touch()
    assert locate(str(folder / "model.safetensors"), tmp_path) == locate("ours", tmp_path) == folder
    (folder / "tokenizer.json").unlink()
    assert locate(str(folder / "model.safetensors"), tmp_path) == folder / "model.safetensors"
    with pytest.raises(MissingFile, match=r"nowhere is missing\. .* a name must be one in "):
        locate("nowhere", tmp_path)


def test_a_run_that_saves_nothing_prints_what_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "reverse-digits", "--source", "1 2 3"]) == 0
    assert capsys.readouterr().out == "321\n"


def test_a_file_with_open_questions_is_not_said_to_have_no_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    path = GOLDEN / "000_tiny_a.pt"
    assert main(["inspect", str(path)]) == 0
    numbers = sum(tensor.numel() for tensor in torch.load(path, weights_only=True).values())
    said = capsys.readouterr().out
    assert f"\n{numbers:,} numbers in 90 tensors; the network is not known yet, nor are its parameters\n" in said
    assert " 0 parameters" not in said
