"""Export: the folder opens to the identical run, bit by bit, and asks nothing."""

import io
import json
import math
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from model.__main__ import main
from model.checkpoints import export, loader
from model.checkpoints.loader import Runner
from model.engine.api import Export, Models, Receive, Run
from model.engine.local import LocalEngine
from model.errors import CannotExport, DamagedFile, HeadlightError
from model.inference.run import run
from model.requests.inputs import Given, RandomFeatures
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.serialization import to_bytes
from model.trace.types import Trace
from tests.networks import VARIANTS, save_checkpoint
from tests.reference import GOLDEN, SETTINGS, opened

CPU = torch.device("cpu")
SOURCES: dict[str, Given] = {name: RandomFeatures(4, 1) if name.startswith("002") else (2, 5, 4, 3) for name in SETTINGS}


def written(checkpoint: Runner, folder: Path) -> Path:
    folder.mkdir()
    for name, data in export.files(checkpoint).items():
        (folder / name).write_bytes(data)
    return folder


def traced(checkpoint: Runner, source: Given, target: Given | None) -> Trace:
    return run(checkpoint, RunRequest("x", source, target, Decoding(max_length=4), keep=KEEP), CPU, "cpu")


def arrays(trace: Trace) -> dict[str, bytes]:
    """The bytes of every array of a trace."""
    data = to_bytes(trace)
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {name: body[slice(*each["data_offsets"])] for name, each in header.items() if name != "__metadata__"}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_was_exported_runs_bit_by_bit_as_before(name: str, tmp_path: Path) -> None:
    before = opened(name, tuple(SETTINGS[name].items()))
    folder = written(before, tmp_path / "out")
    after = loader.load(folder, {}, CPU)
    source = SOURCES[name]
    target: Given | None = None if name in ("002_tiny_encoder", "002_tiny_mha") or name.startswith("001") else (2, 5, 4, 6)
    target = RandomFeatures(3, 2) if name == "002_tiny_decoder_layer" else target
    first, second = traced(before, source, target), traced(after, source, target)
    found = arrays(second)
    assert len(found) > 5
    assert found == arrays(first)
    assert second.tokens == first.tokens
    assert after.notes == tuple(map(str, before.notes))
    assert loader.inspect(folder, {}).ask == ()
    assert loader.inspect(folder, {}).missing == ()


@pytest.mark.parametrize("name", ["000_tiny_b", "001_tiny_b", "004_tiny_a"])
def test_it_decodes_as_before(name: str, tmp_path: Path) -> None:
    before = opened(name, tuple((SETTINGS[name] | {"bos_id": "2", "eos_id": "3"}).items()))
    after = loader.load(written(before, tmp_path / "out"), {}, CPU)
    first, second = traced(before, (2, 5, 4, 3), None), traced(after, (2, 5, 4, 3), None)
    assert first.steps
    assert second.steps == first.steps
    assert arrays(second) == arrays(first)


@pytest.mark.parametrize("variant", ["paper", "modern, tied", "two passes"])
def test_a_folder_of_our_own_comes_back_as_it_is(variant: str, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a", VARIANTS[variant])
    before = loader.load(tmp_path / "a", {}, CPU)
    after = loader.load(written(before, tmp_path / "b"), {}, CPU)
    assert arrays(traced(after, "w4 w5", None)) == arrays(traced(before, "w4 w5", None))
    with safe_open(tmp_path / "b" / "model.safetensors", "np") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118  # not a mapping
    assert after.tokenizers == before.tokenizers


def test_a_vocabulary_goes_along(tmp_path: Path) -> None:
    words = ["<unk>", "<pad>", "<sos>", "<eos>", *(f"wort{i}" for i in range(24))]
    (tmp_path / "words.txt").write_text("\n".join(words), encoding="utf-8")
    told = SETTINGS["000_tiny_a"] | {"source_vocab": str(tmp_path / "words.txt")}
    before = loader.load(GOLDEN / "000_tiny_a.pt", told, CPU)
    after = loader.load(written(before, tmp_path / "out"), {}, CPU)
    assert traced(after, "wort3 nichts wort5", None).tokens == traced(before, "wort3 nichts wort5", None).tokens
    assert traced(after, "wort3", None).tokens["source"].texts == ("<sos>", "wort3", "<eos>")


def test_a_table_of_positions_of_the_files_own_is_not_lost(tmp_path: Path) -> None:
    state = torch.load(GOLDEN / "001_tiny_a.pt", weights_only=True)
    state["pos_encoder.pe"] = torch.randn(state["pos_encoder.pe"].shape, generator=torch.Generator().manual_seed(1))
    torch.save(state, tmp_path / "odd.pt")
    before = loader.load(tmp_path / "odd.pt", {"n_heads": "2"}, CPU)
    after = loader.load(written(before, tmp_path / "out"), {}, CPU)
    assert after.info.spec.writer.positions == "stored"
    positions = traced(after, (2, 5, 4), None).positions["decoder"]
    np.testing.assert_array_equal(positions[:3], state["pos_encoder.pe"][:3, 0].numpy())
    assert sum(p.numel() for p in after.network.parameters()) == sum(p.numel() for p in before.network.parameters())


def test_numbers_that_are_not_finite_are_refused_in_a_sentence(tmp_path: Path) -> None:
    state = torch.load(GOLDEN / "001_tiny_a.pt", weights_only=True)
    state["decoder.bias"][0] = math.nan
    torch.save(state, tmp_path / "nan.pt")
    loaded = loader.load(tmp_path / "nan.pt", {"n_heads": "2"}, CPU)
    with pytest.raises(CannotExport, match=r"output\.bias holds numbers that are not finite"):
        export.files(loaded)


def test_an_engine_exports_a_zip_that_unpacks_to_a_checkpoint(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, CPU)
    name = engine.ask(Receive((GOLDEN / "000_tiny_a.pt").read_bytes(), "../my model (1).pt"))
    settings = tuple(SETTINGS["000_tiny_a"].items())
    with zipfile.ZipFile(io.BytesIO(engine.ask(Export(name, settings)))) as archive:
        assert sorted(archive.namelist()) == [f"my_model_1/{each}" for each in ("model.safetensors", "spec.json", "tokenizer.json")]
        archive.extractall(tmp_path)
    assert "my_model_1" in [info.name for info in engine.ask(Models()).models if not info.problem]
    before = engine.ask(Run(RunRequest(name, "2 4 5 3", settings=settings)))
    assert arrays(engine.ask(Run(RunRequest("my_model_1", "2 4 5 3")))) == arrays(before)


def test_the_command_line_exports_and_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [part for item in SETTINGS["000_tiny_a"].items() for part in ("--set", "=".join(item))]
    assert main(["export", str(GOLDEN / "000_tiny_a.pt"), *told, "--out", str(tmp_path / "out")]) == 0
    source = ["--source-ids", "2,5,3", "--out"]
    assert main(["run", str(tmp_path / "out"), *source, str(tmp_path / "b.trace.safetensors")]) == 0
    assert main(["run", str(GOLDEN / "000_tiny_a.pt"), *told, *source, str(tmp_path / "a.trace.safetensors")]) == 0
    capsys.readouterr()
    assert main(["export", str(GOLDEN / "000_tiny_a.pt"), *told, "--out", str(tmp_path / "out")]) == 1
    assert "Allowed: a folder that is not there yet (File exists)" in capsys.readouterr().err
    assert main(["export", str(GOLDEN / "000_tiny_a.pt"), "--out", str(tmp_path / "other")]) == 1
    assert "leaves these settings open: encoder_heads" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "text",
    [
        '{"source": {"specials": 3}, "target": {}}',
        '{"source": {"specials": {}, "size": 28, "more": 1}, "target": null}',
        '{"source": {"specials": {}, "vocabulary": ["a"], "split": "eval", "starts": true, "ends": true}}',
        '{"source": {"specials": {"pad": "x"}, "size": 28}}',
        '{"source": {"specials": {}, "size": 27}, "target": {"specials": {}, "size": 26}}',
    ],
)
def test_tokenizers_that_do_not_fit_are_refused_in_words(text: str, tmp_path: Path) -> None:
    folder = written(opened("000_tiny_a", tuple(SETTINGS["000_tiny_a"].items())), tmp_path / "out")
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    with pytest.raises(DamagedFile) as caught:
        loader.load(folder, {}, CPU)
    assert isinstance(caught.value, HeadlightError)
    assert "tokenizer.json" in str(caught.value)
