"""What a file is, what it leaves open, and every way in which it cannot be used, in one sentence each."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from model.checkpoints.layouts import detect
from model.checkpoints.layouts.detect import LAYOUTS, shapes_of
from model.checkpoints.layouts.loading import inspect, load
from model.errors import (
    BadSetting,
    HeadlightError,
    IncompleteWeights,
    NoStart,
    NoVocabulary,
    OpenQuestions,
    SeveralLayouts,
    UnknownLayout,
    UnknownSite,
)
from model.inference.run import run
from model.requests.edits import Silence
from model.requests.inputs import RandomFeatures
from model.requests.request import KEEP, Decoding, Method, RunRequest
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Array, Site, Trace, sites
from model.transformer.build import build
from tests.networks import VARIANTS, network
from tests.reference import GOLDEN, SETTINGS
from tests.weight_files import CPU, saved

pytestmark = pytest.mark.usefixtures("read_by_torch")
TUTORIAL = {"n_heads": "2", "decoder_passes": "2", "pad_id": "1"}


def weights(name: str) -> dict[str, Tensor]:
    state: dict[str, Tensor] = torch.load(GOLDEN / f"{name}.pt", weights_only=True)
    return dict(state)


def forced(path: Path, settings: dict[str, str], source: Any = (2, 5, 3), target: Any = (2, 7)) -> Trace:
    return run(load(path, settings, CPU), RunRequest("x", source, target, Decoding(max_length=0)), CPU, "cpu")


@pytest.mark.parametrize("name", SETTINGS)
def test_each_golden_file_has_one_layout_and_every_name_is_matched(name: str) -> None:
    shapes = shapes_of(weights(name))
    layouts = {"000": "tutorial", "001": "torch-lm", "002": "tutorial-parts", "003": "shared-head", "004": "d2l"}
    found = inspect(GOLDEN / f"{name}.pt", SETTINGS[name])
    assert found.layout == layouts[name[:3]]
    assert {tensor.status for tensor in found.tensors} == {"matched"}
    assert found.missing == found.against == ()
    assert [layout.name for layout in LAYOUTS if layout.match(shapes)] == [found.layout]
    described = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert found.parameters == described["parameters"]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model_state_dict": state, "optimizer": {"state": {}}},
        lambda state: {f"module.{name}": value for name, value in state.items()},
        lambda state: {"model": {f"_orig_mod.module.{name}": value for name, value in state.items()}},
        lambda state: {"state_dict": {f"net.{name}": value for name, value in state.items()}},
    ],
)
def test_wrappers_are_taken_off(wrap: Any, tmp_path: Path) -> None:
    plain = forced(GOLDEN / "000_tiny_a.pt", TUTORIAL)
    wrapped = forced(saved(tmp_path, wrap(weights("000_tiny_a"))), TUTORIAL)
    assert wrapped.logits is not None
    assert plain.logits is not None
    assert (wrapped.logits == plain.logits).all()


def test_several_tables_are_asked_about(tmp_path: Path) -> None:
    raw = weights("000_tiny_a")
    path = saved(tmp_path, {"model": raw, "ema": {name: value * 0.9 for name, value in raw.items()}})
    with pytest.raises(
        SeveralLayouts, match=r"weights\.pt contains several tables of weights: model, ema\. Choose one with --set candidate=NAME"
    ):
        load(path, TUTORIAL, CPU)
    one, other = (forced(path, TUTORIAL | {"candidate": name}) for name in ("model", "ema"))
    assert one.logits is not None
    assert not (one.logits == other.logits).all()
    with pytest.raises(BadSetting, match=r"candidate: “best” is not accepted. Allowed: model, ema"):
        load(path, TUTORIAL | {"candidate": "best"}, CPU)


def test_two_layouts_that_match_are_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "LAYOUTS", (*LAYOUTS, replace(LAYOUTS[0], name="twin")))
    with pytest.raises(
        SeveralLayouts, match=r"Several layouts fit .*000_tiny_a\.pt: tutorial, twin\. Choose one with --set layout=NAME"
    ):
        load(GOLDEN / "000_tiny_a.pt", TUTORIAL, CPU)
    assert forced(GOLDEN / "000_tiny_a.pt", TUTORIAL | {"layout": "twin"}).logits is not None


def test_no_layout_names_the_nearest_and_the_first_foreign_names(tmp_path: Path) -> None:
    path = saved(tmp_path, weights("004_tiny_a") | {f"adapter.{i}.weight": torch.ones(2, 2) for i in range(5)})
    sentence = r"The closest is d2l\. What does not fit: adapter\.0\.weight, adapter\.1\.weight, adapter\.2\.weight, … \(\+2\)"
    for told in ({}, {"layout": "d2l"}):
        for opens in (lambda settings: load(path, settings, CPU), lambda settings: inspect(path, settings)):
            with pytest.raises(UnknownLayout, match=sentence) as refused:
                opens(SETTINGS["004_tiny_a"] | told)
            assert "layout=" not in str(refused.value)


def test_open_questions_are_named_with_what_to_add() -> None:
    sentence = (
        r"000_tiny_a\.pt \(layout tutorial\) leaves these settings open: "
        r"encoder_heads, decoder_heads, decoder_passes, source_pad_id, target_pad_id\. "
        r"Add --set encoder_heads=1\|2\|4\|8\|16 --set decoder_heads=1\|2\|4\|8\|16 --set decoder_passes=1\|2 "
        r"--set source_pad_id=ID --set target_pad_id=ID"
    )
    with pytest.raises(OpenQuestions, match=sentence):
        load(GOLDEN / "000_tiny_a.pt", {}, CPU)
    found = inspect(GOLDEN / "000_tiny_a.pt", {"n_heads": "2"})
    assert [asked.name for asked in found.ask if asked.needed and asked.answer is None] == [
        "decoder_passes",
        "source_pad_id",
        "target_pad_id",
    ]
    assert all(str(asked.consequence).endswith(".") for asked in found.ask)
    assert found.spec == {}


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"n_heads": "3"}, "encoder_heads: “3” is not accepted. Allowed: 1, 2, 4, 8, 16"),
        ({"n_heads": "two"}, "encoder_heads: “two” is not accepted. Allowed: 1, 2"),
        (
            {"n_heads": "2", "head_dim": "4"},
            "head_dim: “4” is not accepted. Allowed: 8, the width of a head where encoder_heads=2 and there are 16 columns",
        ),
        ({"decoder_passes": "3"}, "decoder_passes: “3” is not accepted. Allowed: 1, 2"),
        ({"pad_id": "28"}, "source_pad_id: “28” is not accepted. Allowed: a whole number from 0 to 27"),
        ({"pad_id": "-1"}, "source_pad_id: “-1” is not accepted. Allowed: a whole number"),
        ({"activation": "tanh"}, "activation: “tanh” is not accepted. Allowed: relu, gelu, gelu-tanh"),
        (
            {"n_head": "2"},
            "tutorial has no field “n_head”. Allowed: encoder_heads, n_heads",
        ),
        ({"layout": "tutorail"}, "layout: “tutorail” is not accepted. Allowed: tutorial, tutorial-parts"),
        ({"source_vocab": "nowhere.json"}, "source_vocab cannot be used: nowhere.json is not a text file that can be read"),
    ],
)
def test_a_wrong_answer_is_one_sentence(told: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        load(GOLDEN / "000_tiny_a.pt", TUTORIAL | told, CPU)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: s.pop("decoder.fc_out.bias"), "no tensor in it becomes output.bias"),
        (
            lambda s: s.pop("encoder.layers.0.self_attention.fc_q.weight"),
            r"it lacks encoder\.layers\.0\.self_attention\.fc_q\.weight",
        ),
        (lambda s: s.pop("decoder.pos_embedding.weight"), r"it lacks decoder\.pos_embedding\.weight"),
        (
            lambda s: s.update({"decoder.fc_out.weight": torch.zeros(26, 15)}),
            r"decoder\.fc_out\.weight is \[26, 15\], not \[26, 16\]",
        ),
        (
            lambda s: s.update({"decoder.fc_out.bias": torch.zeros(26, dtype=torch.int8)}),
            r"decoder\.fc_out\.bias holds numbers of type torch\.int8",
        ),
    ],
)
def test_a_file_that_is_not_whole_is_one_sentence(change: Any, sentence: str, tmp_path: Path) -> None:
    state = weights("000_tiny_a")
    change(state)
    with pytest.raises(IncompleteWeights, match=f"matches the layout tutorial, but cannot be run: {sentence}"):
        load(saved(tmp_path, state), TUTORIAL, CPU)


def test_half_precision_is_loaded_as_float32(tmp_path: Path) -> None:
    path = saved(tmp_path, {name: value.half() for name, value in weights("000_tiny_a").items()})
    checkpoint = load(path, TUTORIAL, CPU)
    assert {value.dtype for value in checkpoint.network.state_dict().values()} == {torch.float32}


def test_answers_beside_the_file_are_read_and_what_is_told_weighs_more(tmp_path: Path) -> None:
    path = saved(tmp_path, weights("000_tiny_a"))
    vocabulary = json.loads((GOLDEN / "000_tiny_a.json").read_text(encoding="utf-8"))["vocab"]
    (tmp_path / "src.json").write_text(json.dumps(vocabulary["src"]), encoding="utf-8")
    (tmp_path / "trg.txt").write_text("\n".join(vocabulary["trg"]) + "\n", encoding="utf-8")
    beside = {
        "n_heads": 2,
        "decoder_passes": 1,
        "source_vocab": "src.json",
        "target_vocab": "trg.txt",
        "tokenizer": "spacy-de,spacy-en",
    }
    (tmp_path / "spec.json").write_text(json.dumps(beside), encoding="utf-8")
    checkpoint = load(path, {"decoder_passes": "2"}, CPU)
    spec = checkpoint.info.spec
    assert spec.decoder is not None
    assert (spec.decoder.passes, spec.pad_id, spec.source_pad_id, spec.start_id, spec.end_id, spec.unk_id) == (2, 1, 1, 2, 3, 0)
    request = RunRequest("x", "Ein Mann läuft im Wald.", decoding=Decoding(max_length=3))
    trace = run(checkpoint, request, CPU, "cpu")
    assert trace.tokens["source"].texts == ("<sos>", "ein", "mann", "läuft", "im", "wald", ".", "<eos>")
    assert trace.tokens["source"].unknown == (False,) * 5 + (True, False, False)
    assert trace.tokens["target"].texts[0] == "<sos>"
    assert load(path, {"decoder_passes": "1"}, CPU).fingerprint != checkpoint.fingerprint


def test_without_a_vocabulary_text_is_refused_and_ids_are_shown() -> None:
    trace = forced(GOLDEN / "000_tiny_a.pt", TUTORIAL)
    assert trace.tokens["source"].texts == ("2", "5", "3")
    with pytest.raises(
        NoVocabulary,
        match=r"“hallo” cannot be read: the file contains weights and no vocabulary\. Give token ids separated by spaces",
    ):
        forced(GOLDEN / "000_tiny_a.pt", TUTORIAL, source="hallo")


@pytest.mark.parametrize(
    ("name", "source", "target", "sentence"),
    [
        (
            "003_tiny_a",
            (2, 4, 8),
            (2, 4),
            "target cannot be used: it has 2 tokens, but this decoder lays its mask over the source",
        ),
        ("003_tiny_a", (2,) * 7, (2,), "The source text has 7 tokens, but the limit is 6"),
        (
            "002_tiny_encoder",
            (2, 5),
            None,
            r"source: “\(2, 5\)” is not accepted. Allowed: numbers, because this network has no embedding",
        ),
        ("000_tiny_a", (2, 28), (2,), "The source has no token with the id 28: its ids run from 0 to 27"),
        ("001_tiny_a", (2, 4), (2,), r"target must not be set: a language model continues its source"),
    ],
)
def test_an_input_that_does_not_fit_is_one_sentence(name: str, source: Any, target: Any, sentence: str) -> None:
    with pytest.raises(HeadlightError, match=sentence):
        forced(GOLDEN / f"{name}.pt", SETTINGS[name], source, target)


def test_decoding_asks_for_the_token_that_it_begins_with() -> None:
    with pytest.raises(NoStart, match=r"The start token for decoding is unknown\. Add --set bos_id=ID, or give the target"):
        run(load(GOLDEN / "000_tiny_a.pt", TUTORIAL, CPU), RunRequest("x", (2, 5, 3)), CPU, "cpu")


@pytest.mark.parametrize("name", ["paper", "language model"])
def test_our_own_names_in_a_bare_file(name: str, tmp_path: Path) -> None:
    built = network(VARIANTS[name])
    told = {"n_heads": "2", "norm_order": "post", "activation": "relu", "embed_scale": "sqrt", "pad_id": "1", "bos_id": "2"}
    told |= {"decoder_passes": "1"} if name == "paper" else {}
    again = load(saved(tmp_path, built.state_dict()), told, CPU)
    assert again.info.spec.stacks == VARIANTS[name].stacks
    assert again.network.state_dict().keys() == build(VARIANTS[name]).state_dict().keys()
    for key, value in again.network.state_dict().items():
        assert torch.equal(value, built.state_dict()[key])


@pytest.mark.parametrize("method", get_args(Method))
def test_the_decoder_that_asks_for_every_row_keeps_the_one_that_decides(method: Method) -> None:
    """Beam search swaps hypotheses; what was computed from the source once follows them."""
    checkpoint = load(GOLDEN / "003_tiny_a.pt", SETTINGS["003_tiny_a"] | {"output_softmax": "vocab"}, CPU)
    request = RunRequest("x", (2, 4, 8, 12, 15, 3), decoding=Decoding(method, max_length=4, beam_size=3), keep=KEEP)
    trace = run(checkpoint, request, CPU, "cpu")
    fed = len(trace.steps)
    assert trace.logits is not None
    assert len(trace.logits) == len(trace.hidden["decoder.0.1"]) == trace.at("decoder.0.1.cross").weights.shape[1] == fed
    assert trace.at("decoder.0.1.memory").weights.shape == (8, 6, 6)
    assert str(trace.missing["attention/decoder.*/rows"]).startswith("each step computed a row for every source position")
    assert [step.chosen.log_probability for step in trace.steps] == pytest.approx(
        [log_softmax(row)[step.chosen.id] for row, step in zip(trace.logits, trace.steps, strict=True)], abs=1e-5
    )
    assert from_bytes(to_bytes(trace)).at("decoder.0.0.memory").key_tokens == "source"


def log_softmax(row: Array) -> Array:
    shifted = row - row.max()
    logarithms: Array = shifted - np.log(np.exp(shifted).sum())
    return logarithms


def test_one_target_token_asks_for_the_rows_of_the_source() -> None:
    trace = forced(GOLDEN / "003_tiny_a.pt", SETTINGS["003_tiny_a"], (2, 4, 8), (2,))
    again = from_bytes(to_bytes(trace))
    assert (again.at("decoder.0.0.cross").query_tokens, again.at("decoder.0.1.cross").query_tokens) == ("target", "source")
    assert "does not attend to the tokens it has generated" in str(again.model["notes"][0])


@pytest.mark.parametrize(
    ("name", "site", "source"),
    [("003_tiny_a", "decoder.0.1.memory", (2, 4, 8)), ("002_tiny_mha", "encoder.0.0.self", RandomFeatures(4))],
)
def test_a_head_of_any_site_can_be_silenced(name: str, site: str, source: Any) -> None:
    checkpoint = load(GOLDEN / f"{name}.pt", SETTINGS[name], CPU)
    target = (2, 4, 8) if name.startswith("003") else None
    request = RunRequest("x", source, target, Decoding(max_length=0), keep=KEEP, edits=(Silence(site, (1,)),))
    context = run(checkpoint, request, CPU, "cpu").at(site).context
    assert context is not None
    assert (context[1] == 0).all()
    assert not (context[0] == 0).any()
    assert Site.parse(site) in sites(checkpoint.info.spec)
    with pytest.raises(UnknownSite, match=site):
        run(checkpoint, replace(request, edits=(Silence("decoder.3.0.self", (1,)),)), CPU, "cpu")
