"""Checkpoint folders: whole again after a round trip; anything else in one of the three files is one sentence."""

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from model.checkpoints import native
from model.errors import CheckpointError, DamagedFile, HeadlightError, MissingFile, ShapeMismatch
from model.requests.network import to_json
from tests.examples import examples
from tests.networks import TRANSLATORS, VARIANTS, save_checkpoint, translator

CPU = torch.device("cpu")
FILES = ("model.safetensors", "spec.json", "tokenizer.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that can be loaded. Tests Do not change its config."""
    folder = tmp_path_factory.mktemp("checkpoints") / "whole"
    save_checkpoint(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def change(path: Path, edit: Callable[[Any], object]) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    edit(data)
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_network_comes_back_as_it_was_but_for_float16(name: str, tmp_path: Path) -> None:
    built = save_checkpoint(tmp_path / "a", VARIANTS[name])
    loaded = native.load(tmp_path / "a", CPU)
    assert loaded.info.spec == VARIANTS[name]
    assert not loaded.network.training
    state = loaded.network.state_dict()
    assert state.keys() == built.state_dict().keys()
    for key, value in built.state_dict().items():
        assert state[key].dtype == torch.float32
        assert torch.equal(state[key], value.half().float()), key
    assert {value.dtype for value in load_file(tmp_path / "a" / "model.safetensors").values()} == {torch.float16}
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(FILES)


def test_tokenizers_and_description_come_back(whole: Path) -> None:
    loaded = native.load(whole, CPU)
    assert loaded.tokenizers["source"].encode("w4 w5 x", "source").ids == (2, 4, 5, 0, 3)
    assert loaded.tokenizers["target"].size == 10
    info = loaded.info
    assert (info.name, info.title, info.summary, info.examples) == ("tiny", "Tiny", "Random weights.", ("w4 w5.",))
    assert info.languages == {"source": "German", "target": "English"}
    assert info.data == {"source": "{split}.de", "target": "{split}.en"}
    assert native.read_info(whole) == info


def test_a_tied_output_is_tied_again(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, VARIANTS["modern, tied"])
    state = native.load(tmp_path, CPU).network.state_dict(keep_vars=True)
    assert state["output.weight"] is state["decoder.embedding.token.weight"]
    assert state["output.weight"].is_contiguous()  # a table is read row by row


def test_weights_that_a_step_multiplies_are_stored_column_by_column(whole: Path) -> None:
    network = native.load(whole, CPU).network
    linear = [module.weight for module in network.modules() if isinstance(module, torch.nn.Linear)]
    assert linear
    assert all(weight.t().is_contiguous() for weight in linear)
    assert all(module.weight.is_contiguous() for module in network.modules() if isinstance(module, torch.nn.Embedding))


def test_the_fingerprint_follows_every_file(folder: Path) -> None:
    seen = {native.fingerprint(folder)}
    assert native.load(folder, CPU).fingerprint in seen
    for name in FILES:
        (folder / name).write_bytes((folder / name).read_bytes() + b" ")
        seen.add(native.fingerprint(folder))
    assert len(seen) == 4
    assert all(len(digest) == 64 for digest in seen)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_those_that_are_needed(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(MissingFile) as caught:
        native.load(folder, CPU)
    assert str(caught.value) == (
        f"{folder / name} is missing. Needed: model.safetensors, spec.json, tokenizer.json. "
        "Restore the file or choose another folder."
    )
    (folder / name).mkdir()
    with pytest.raises(MissingFile):
        native.load(folder, CPU)


def test_a_missing_folder_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        native.load(tmp_path / "nowhere", CPU)


def halves(name: str) -> Iterator[bytes]:
    yield b""
    yield b"\x00" * 100
    yield b"[" * 200_000
    yield b"[]"
    yield b"{}"
    yield b"null"
    yield '{"a": "ä"}'.encode("latin-1")
    yield struct.pack("<Q", 2**62) + b"{}"
    yield struct.pack("<Q", 2) + b"{}" + b"\0" * 7
    yield b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R."


@pytest.mark.parametrize("damage", range(len(list(halves("")))))
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(folder: Path, name: str, damage: int) -> None:
    (folder / name).write_bytes(list(halves(name))[damage])
    with pytest.raises(CheckpointError) as caught:
        native.load(folder, CPU)
    assert str(caught.value).startswith(str(folder / name))
    with suppress(CheckpointError):
        native.inspect(folder)


@settings(max_examples=examples(40))
@given(st.sampled_from(FILES), st.data())
def test_any_bytes_in_any_file_give_a_network_or_a_sentence(whole: Path, name: str, data: st.DataObject) -> None:
    path = whole / name
    good = path.read_bytes()
    damaged = bytearray(good)
    if data.draw(st.booleans()):
        damaged = bytearray(data.draw(st.binary(max_size=100)))
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(0, len(good) - 1) | st.integers(0, min(len(good), 900) - 1))
            damaged[place] = data.draw(st.integers(0, 255))
    try:
        path.write_bytes(damaged)
        for act in (native.load, lambda folder, _: native.inspect(folder)):
            with suppress(HeadlightError):
                act(whole, CPU)
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda s: s.update(format=2), "it has the format 2, and this version reads 1"),
        (lambda s: s.pop("format"), "it has the format None, and this version reads 1"),
        (lambda s: s.pop("title"), "spec.json.title: “None” is not accepted; allowed: a string"),
        (lambda s: s.update(title=3), "spec.json.title: “3” is not accepted; allowed: a string"),
        (lambda s: s.update(examples="w4"), "spec.json.examples: “w4” is not accepted; allowed: a list; each item: a string"),
        (
            lambda s: s.update(languages=["German"]),
            "spec.json.languages: “['German']” is not accepted; allowed: names with their values",
        ),
        (lambda s: s.update(more=1), "spec.json has no field “more”; allowed: name, title"),
        (
            lambda s: s["spec"]["decoder"].update(d_model=True),
            "spec.json.spec.decoder.d_model: “True” is not accepted; allowed: a whole number",
        ),
        (
            lambda s: s["spec"]["decoder"].update(d_model=2**40),
            "spec.json.spec.decoder.d_model: “1099511627776” is not accepted; allowed: a whole number",
        ),
        (
            lambda s: s["spec"].update(dropout=7),
            "spec.json.spec.dropout: “7.0” is not accepted; allowed: a number from 0.0 to 0.99",
        ),
        (lambda s: s["spec"].update(suppressed=[99]), "suppressed[0]: “99” is not accepted; allowed: a number below 10"),
    ],
)
def test_a_description_that_does_not_fit_is_refused_in_words(folder: Path, edit: Callable[[Any], object], sentence: str) -> None:
    change(folder / "spec.json", edit)
    with pytest.raises(DamagedFile) as caught:
        native.load(folder, CPU)
    assert str(caught.value).startswith(f"{folder / 'spec.json'} cannot be read: {sentence}")


SPEC_PATHS = [("encoder", name) for name in to_json(VARIANTS["paper"])["encoder"]] + [("decoder", "attention"), ("output", "tied")]


@settings(max_examples=examples(40))
@given(
    st.sampled_from(SPEC_PATHS),
    st.integers(-1, 2**17) | st.booleans() | st.none() | st.sampled_from(["none", "memory", "attention"]),
)
def test_any_value_in_a_spec_gives_a_network_or_a_sentence(whole: Path, path: tuple[str, str], value: Any) -> None:
    good = (whole / "spec.json").read_text(encoding="utf-8")
    try:
        change(whole / "spec.json", lambda s: s["spec"][path[0]].update({path[1]: value}))
        with suppress(HeadlightError):
            native.load(whole, CPU)
    finally:
        (whole / "spec.json").write_text(good, encoding="utf-8")


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (
            lambda t: t.pop("target"),
            "tokenizer: “None” is not accepted; allowed: an object with the fields split, vocabulary, framed",
        ),
        (
            lambda t: t.update(source=3),
            "tokenizer: “3” is not accepted; allowed: an object with the fields split, vocabulary, framed",
        ),
        (
            lambda t: t["source"].update(split="spacy-xx"),
            "tokenizer.split: “spacy-xx” is not accepted; allowed: spacy-de, spacy-en, words",
        ),
        (lambda t: t["source"].update(vocabulary=None), "tokenizer.vocabulary: “None” is not accepted; allowed: a list"),
        (lambda t: t["source"]["vocabulary"].append("more"), "it has 12 entries, and the network has 11 ids"),
        (lambda t: t["target"]["vocabulary"].pop(), "it has 9 entries, and the network has 10 ids"),
    ],
)
def test_tokenizers_that_do_not_fit_are_refused_in_words(folder: Path, edit: Callable[[Any], object], sentence: str) -> None:
    change(folder / "tokenizer.json", edit)
    with pytest.raises(DamagedFile) as caught:
        native.load(folder, CPU)
    assert str(caught.value).startswith(str(folder / "tokenizer.json"))
    assert f" cannot be read: {sentence}" in str(caught.value)


OUTPUT = "output.weight"


@pytest.mark.parametrize(
    ("edit", "kind", "detail"),
    [
        (lambda w: w.pop(OUTPUT), ShapeMismatch, "output.weight is missing"),
        (lambda w: w.update(extra=torch.zeros(1)), ShapeMismatch, "extra has no place in it"),
        (lambda w: w.update({OUTPUT: torch.zeros(10, 9)}), ShapeMismatch, r"output.weight is \[10, 9\], not \[10, 8\]"),
        (
            lambda w: w.update({OUTPUT: torch.zeros(10, 8, dtype=torch.int32)}),
            DamagedFile,
            "output.weight contains values that",
        ),
        (
            lambda w: w.update({OUTPUT: torch.zeros(10, 8, dtype=torch.complex64)}),
            DamagedFile,
            "output.weight contains values that",
        ),
        (
            lambda w: w.update({OUTPUT: torch.full((10, 8), torch.nan)}),
            DamagedFile,
            "output.weight contains values that",
        ),
        (
            lambda w: w.update({OUTPUT: torch.full((10, 8), torch.inf)}),
            DamagedFile,
            "output.weight contains values that",
        ),
    ],
)
def test_other_weights_are_refused_in_words(
    folder: Path, edit: Callable[[Any], object], kind: type[Exception], detail: str
) -> None:
    weights = load_file(folder / "model.safetensors")
    edit(weights)
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(kind, match=detail):
        native.load(folder, CPU)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_weights_of_other_precisions_load_too(folder: Path, dtype: torch.dtype) -> None:
    weights = {name: value.to(dtype) for name, value in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors")
    assert {value.dtype for value in native.load(folder, CPU).network.state_dict().values()} == {torch.float32}


def test_a_huge_spec_beside_small_weights_is_refused_before_memory_is_taken(folder: Path) -> None:
    change(folder / "spec.json", lambda s: s["spec"]["decoder"].update(d_model=2**16, hidden=2**24))
    with pytest.raises(ShapeMismatch):
        native.load(folder, CPU)


def test_inspect_lists_every_tensor_and_what_is_missing(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights[OUTPUT]
    save_file(weights | {"extra": torch.zeros(2, 3)}, folder / "model.safetensors")
    found = native.inspect(folder)
    assert found.missing == (OUTPUT,)
    assert {t.name: t.status for t in found.tensors} == {**dict.fromkeys(weights, "matched"), "extra": "unexpected"}
    assert {(t.shape, t.dtype) for t in found.tensors if t.name == "extra"} == {((2, 3), "F32")}
    assert found.parameters == sum(p.numel() for p in translator(VARIANTS["paper"]).parameters())
    assert found.ask == ()
    assert "encoder-decoder" in str(found.what)
