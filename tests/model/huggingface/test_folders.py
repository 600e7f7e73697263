"""Folders as they should not be, each refused in a sentence with nothing executed; and what is said of sound ones."""

import ast
import json
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model import __main__ as command_line
from model.checkpoints import loader
from model.engine.api import Inspect, Models, Run, Tensors
from model.engine.local import LocalEngine
from model.errors import BadSetting, DamagedFile, HeadlightError
from model.huggingface.folder import open_folder
from model.inference.run import run
from model.requests.request import KEEP, RunRequest
from model.tokenizers.subwords.writing import BYTES
from model.trace import serialization, source_lines, stages
from tests import folders

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "tiny-bert"
    folders.save(path, "bert")
    folders.word_pieces().save(str(path / "tokenizer.json"))
    return path


class Payload:
    """A pickle that would write a file if it were opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.path), "w")


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Payload(folder / "opened")}, folder / "pytorch_model.bin")


def _elsewhere(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    _text("model.safetensors.index.json", json.dumps({"weight_map": {"a": "../tiny-bert/model.safetensors"}}))(folder)


def _without(name: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        save_file({key: value for key, value in weights.items() if key != name}, folder / "model.safetensors")

    return spoil


def _with(name: str, value: torch.Tensor) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        save_file(load_file(folder / "model.safetensors") | {name: value}, folder / "model.safetensors")

    return spoil


def _config(**changes: object) -> Callable[[Path], None]:
    return lambda folder: folders.change_config(folder, **changes)


def _text(name: str, text: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).write_text(text)

    return spoil


QUERY = "encoder.layer.1.attention.self.query.weight"
SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "config.json is missing. Needed: config.json, model"),
    "no JSON": (_text("config.json", "{"), "config.json cannot be read"),
    "another architecture": (
        _config(model_type="mamba", architectures=None),
        r"MambaForCausalLM\): it lacks backbone.* it has embeddings.LayerNorm.bias, .* instead\. Use the config.json",
    ),
    "an unknown architecture": (
        _config(model_type="no-such"),
        "its architecture is 'no-such', which transformers .* does not have",
    ),
    "no architecture": (_config(model_type=None), "names no architecture: model_type is None"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
    "pickled weights": (_pickled, "Opening .* would call a function: .*. Nothing was called, and the file was not opened"),
    "a missing tensor": (_without(QUERY), f"it lacks {QUERY}"),
    "a tensor of another shape": (_with(QUERY, torch.zeros(3, 24)), r"query.weight is \[3, 24\], not \[24, 24\]"),
    "absurd width": (_config(hidden_size=60_000, intermediate_size=10**7), "network of [0-9,]+ parameters, but the weights"),
    "absurd vocabulary": (_config(vocab_size=10**12), "vocab_size is 1,000,000,000,000, not a whole number up to 16,777,216"),
    "absurd depth": (_config(num_hidden_layers=10**9), "num_hidden_layers is 1,000,000,000, not a whole number up to 1,000"),
    "a size that is no number": (_config(hidden_size="wide"), "transformers .* says: .*'hidden_size' expected int"),
    "heads that do not divide": (_config(num_attention_heads=5), r"says: ValueError: The hidden size .* If this names a setting"),
    "quantised": (_config(quantization_config={"quant_method": "gptq"}), "its weights are quantized, which is not read here"),
    "a decoder's switch": (
        _config(is_decoder=True),
        "uses a causal mask \\(is_decoder\\), but here it would attend to every position",
    ),
    "a damaged tokenizer": (_text("tokenizer.json", "{}"), "tokenizer.json cannot be read"),
    "a tokenizer that is no JSON": (_text("tokenizer.json", "\x00"), "tokenizer.json cannot be read"),
    "a list of files elsewhere": (_elsewhere, "lists no files of this folder"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_folder_is_refused_in_one_sentence(bert: Path, tmp_path: Path, name: str) -> None:
    spoil, sentence = SPOILT[name]
    folder = shutil.copytree(bert, tmp_path / "spoilt")
    spoil(folder)
    before = sorted(folder.iterdir())
    with pytest.raises(HeadlightError, match=sentence) as refused:
        loader.load(folder, {}, CPU)
    assert "\n" not in str(refused.value)
    assert sorted(folder.iterdir()) == before


def test_code_of_the_folder_is_not_run(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "coded")
    (folder / "modeling_own.py").write_text(f"open({str(folder / 'opened')!r}, 'w')\nclass Own: pass\n")
    folders.change_config(folder, auto_map={"AutoModel": "modeling_own.Own", "AutoConfig": "modeling_own.Own"})
    found = loader.load(folder, {}, CPU)
    assert any("auto_map" in str(note) for note in found.notes)
    assert not (folder / "opened").exists()


def test_weights_in_a_pickle_of_tensors_are_the_same(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "old")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    both = [loader.load(path, {}, CPU).network.state_dict() for path in (bert, folder)]
    assert both[0].keys() == both[1].keys()
    assert all(torch.equal(both[0][name], both[1][name]) for name in both[0])


def test_weights_in_several_files(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "sharded")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    files = {name: f"model-{int(name > names[9])}.safetensors" for name in names}
    for file in set(files.values()):
        save_file({name: weights[name] for name in names if files[name] == file}, folder / file)
    _text("model.safetensors.index.json", json.dumps({"weight_map": files}))(folder)
    assert loader.inspect(folder, {}).parameters == loader.inspect(bert, {}).parameters


def test_inspect_says_how_large_a_network_is(bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["inspect", str(bert)]) == 0
    assert "\nencoder: layers × heads 2 × 3, width 24, ids 40, positions up to 20\n" in capsys.readouterr().out


def test_inspect_says_what_is_recorded(bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["inspect", str(bert), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["what"] == "tiny-bert: a folder of the transformers library, architecture bert."
    unused = {tensor["name"] for tensor in found["tensors"] if tensor["status"] == "unneeded"}
    assert unused == {"pooler.dense.weight", "pooler.dense.bias"}
    assert any(note.startswith("A run records weights") for note in found["notes"])
    assert any(note.startswith("A run records no scores") for note in found["notes"])


@pytest.mark.parametrize(
    ("family", "own"),
    [
        ("bert", {"embedding": (40 + 2) * 24, "positions": 20 * 24, "attention": 2 * 4 * (24 * 24 + 24), "norms": 5 * 48}),
        ("t5", {"embedding": 40 * 24, "cross_attention": 3 * 4 * 24 * 18}),
        ("gpt2", {"embedding": 40 * 24, "positions": 20 * 24, "norms": 5 * 48}),
    ],
)
def test_parts_are_told_by_what_modules_are(tmp_path: Path, family: str, own: dict[str, int]) -> None:
    folders.save(tmp_path / family, family)
    found = loader.inspect(tmp_path / family, {})
    assert sum(part.parameters for part in found.parts) == found.parameters
    kinds = {part.kind: sum(p.parameters for p in found.parts if p.kind == part.kind) for part in found.parts}
    assert kinds | own == kinds


@pytest.mark.parametrize(("family", "first"), [("t5", "encoder.0.0.self"), ("bert", "encoder")])
def test_the_walk_has_what_the_library_showed_and_no_lines_of_ours(tmp_path: Path, family: str, first: str) -> None:
    folders.save(tmp_path / family, family)
    found = loader.load(tmp_path / family, {}, CPU)
    trace = run(found, RunRequest("x", (4, 5), target=(2, 6) if family == "t5" else None, keep=KEEP), CPU, "CPU")
    walked = stages.walk(trace)
    assert walked[2].place == first
    for stage in walked:
        own = stages.path(stage)
        there = stages.recorded(trace, stage) is not None
        assert there or not own or stages.why_missing(trace, stage) or stage.name in ("mask", "logits"), str(stage)
        assert source_lines.code(trace, stage) is None or stage.name in ("probabilities", "chosen")


def test_the_command_line_runs_and_explains_a_folder(bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "t.trace.safetensors"
    assert command_line.main(["run", str(bert), "--source", "the dog", "--keep", "all", "--out", str(out)]) == 0
    assert serialization.from_bytes(out.read_bytes()).tokens["source"].texts == ("[CLS]", "the", "dog", "[SEP]")
    cell = ["--site", "encoder.0.1.self", "--head", "2", "--query", "1", "--key", "2"]
    assert command_line.main(["explain", str(bert), "--source", "the dog", *cell]) == 0
    assert re.search(r"agrees +yes", capsys.readouterr().out)


def test_the_command_line_prints_a_text_and_not_its_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pieces = folders.byte_pairs()
    folders.save(tmp_path, "gpt2", vocab_size=pieces.get_vocab_size(), eos_token_id=3)
    pieces.save(str(tmp_path / "tokenizer.json"))
    assert command_line.main(["run", str(tmp_path), "--source", "The dog, the  doge", "--max-length", "0"]) == 0
    assert capsys.readouterr().out == "The dog, the  doge\n"


@pytest.mark.parametrize(
    ("family", "sentence"), [*((name, "agrees") for name in ("gpt2", "llama", "marian", "opt")), ("t5", "more than products")]
)
def test_explain_where_a_score_is_a_product(tmp_path: Path, capsys: pytest.CaptureFixture[str], family: str, sentence: str) -> None:
    folders.save(tmp_path / family, family)
    site = "decoder.0.0.self"
    asked = ["explain", str(tmp_path / family), "--source-ids", "4,5,6", "--max-length", "2", "--site", site]
    command_line.main([*asked, "--head", "1", "--query", "1", "--key", "0"])
    said = capsys.readouterr()
    assert sentence in said.out + said.err


def test_the_engine_offers_a_folder_with_all_it_needs(bert: Path) -> None:
    engine = LocalEngine(bert.parent, CPU)
    (info,) = engine.ask(Models()).models
    assert (info.name, info.reads, info.max_source, info.problem) == ("tiny-bert", "words", 20, {})
    trace = engine.ask(Run(RunRequest("tiny-bert", "the dogs play", keep=KEEP)))
    assert engine.ask(Run(RunRequest("tiny-bert", "the dogs play", keep=KEEP))) is trace
    table = engine.ask(Tensors("tiny-bert", names=("positions/encoder",)))["positions/encoder"]
    np.testing.assert_array_equal(trace.positions["encoder"], table[:5])
    assert str(engine.ask(Inspect("tiny-bert")).what).startswith("tiny-bert")
    assert serialization.from_bytes(serialization.to_bytes(trace)).missing == trace.missing


def test_only_float32_is_computed_in_and_another_type_is_refused_in_words(bert: Path) -> None:
    engine = LocalEngine(bert.parent, CPU, precision="bfloat16")
    assert engine.ask(Run(RunRequest("tiny-bert", "the cat"))).model["dtype"] == "float32"
    with pytest.raises(BadSetting, match=r"precision: “float16” is not accepted. Allowed: float32 for a model that the transf"):
        engine.ask(Run(RunRequest("tiny-bert", "the cat", precision="float16")))


def test_the_library_is_imported_when_a_folder_is_opened_and_not_before() -> None:
    root = Path(loader.__file__).parents[1]
    at_once = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and re.search(r"transformers|huggingface import .*(library|loading|fidelity)", ast.unparse(node))
    }
    expected = {"fidelity.py", "library.py", "loading.py", "recorded/changing.py"}
    assert at_once == {f"huggingface/{name}" for name in expected}


def test_two_networks_are_not_built_at_the_same_time_because_the_library_replaces_its_own_functions_meanwhile(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from model.huggingface import library  # here, because it imports the library

    true, inside, begun, second = library._class_of, list[bool](), list[str](), threading.Event()

    class Watched:
        """The library's class, which says how it is used."""

        def __init__(self, real: Any) -> None:
            self._real = real

        def __call__(self, *args: Any, **options: Any) -> Any:
            return self._real(*args, **options)

        def from_pretrained(self, *args: Any, **options: Any) -> Any:
            begun.append("")
            if len(begun) == 1:
                second.wait(0.5)  # the other thread's chance to come in
            else:
                second.set()
            inside.append(second.is_set())
            return self._real.from_pretrained(*args, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

    monkeypatch.setattr(library, "_class_of", lambda *which: Watched(true(*which)))
    with ThreadPoolExecutor(2) as pool:
        loaded = list(pool.map(lambda path: loader.load(path, {}, CPU), (bert, shutil.copytree(bert, tmp_path / "other"))))
    assert inside == [False, True], "the second one came in while the first one was there"
    assert [each.info.name for each in loaded] == ["tiny-bert", "other"]


def test_every_byte_has_a_sign() -> None:
    assert sorted(BYTES.values()) == list(range(256))


ENORMOUS = {"num_hidden_layers": 10**9, "block_repeats": [900, 900, 2000], "local_radius": 10**6, "vocab_size": 10**9}


@pytest.mark.parametrize("name", ENORMOUS)
def test_an_enormous_setting_is_refused_before_the_library_sees_it(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from model.huggingface import library  # here, because it imports the library

    def config_of(*given: object) -> None:
        raise AssertionError("the library makes lists as long as some numbers, before it makes a network")

    monkeypatch.setattr(library, "config_of", config_of)
    folder = shutil.copytree(bert, tmp_path / "enormous")
    folders.change_config(folder, **{name: ENORMOUS[name]})
    for opened in (lambda: loader.load(folder, {}, CPU), lambda: loader.inspect(folder, {})):
        with pytest.raises(DamagedFile, match=rf"{name} is [\d,]+, not a whole number up to"):
            opened()


def test_labels_are_not_handed_to_the_library_which_writes_a_table_of_them(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "labels")
    labels = {"num_labels": 10**9, "id2label": {"0": "a"}, "label2id": {"a": 0}}
    folders.change_config(folder, **labels, text_config=labels | {"hidden_size": 24})
    taken = open_folder(folder).safe_config
    assert taken.keys().isdisjoint(labels)
    assert taken["text_config"] == {"hidden_size": 24}
    assert loader.inspect(folder, {}).parameters == loader.inspect(bert, {}).parameters
    assert loader.load(folder, {}, CPU).info.spec == loader.load(bert, {}, CPU).info.spec


def test_a_number_by_which_nothing_grows_may_be_any(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "free")
    folders.change_config(folder, max_length=10**9)
    assert loader.inspect(folder, {}).parameters
