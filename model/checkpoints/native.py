"""Native checkpoint folders: NAME/{model.safetensors, spec.json, tokenizer.json, CARD.md}. Opening one executes nothing.

Snapshots of a training are NAME/snapshots/NNNNNN.safetensors, the weights after NNNNNN steps.
"""

import csv
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model.checkpoints.diagnosis import diagnosed
from model.errors import BadSetting, CheckpointError, DamagedFile, DoesNotFit, MissingFile, Phrase, ShapeMismatch, Words, phrase
from model.inspection.report import Inspection, TensorInfo
from model.inspection.tensor_stats import each_measured
from model.requests import network as specs
from model.requests.network import ModelSpec
from model.requests.snapshots import Losses
from model.requests.validation import read
from model.tokenizers import vocabulary, words
from model.tokenizers.words import Tokenizer, WordTokenizer
from model.transformer.build import Network, build, needed

WEIGHTS, SPEC, TOKENIZER = "model.safetensors", "spec.json", "tokenizer.json"
"""The files of a checkpoint's folder."""

FORMAT = 1
"""The version of spec.json, which changes when older programs could no longer read it."""

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Number types in which weights may be stored."""


@dataclass(frozen=True)
class Info:
    """Contents of spec.json.

    Attributes:
        name: the folder's name at training time.
        title, summary: one line each, for the list of models.
        languages: languages of the strips `source` and `target`, for axes.
        examples: example sentences.
        data: the training corpus, as in a recipe (model/features/training/corpora.py).
        spec: the network.
        notes: what a viewer should know of how it computes, a sentence each.
        example_labels: what each example shows, in about six words; one per example, or none.
    """

    name: str
    title: str
    summary: Words
    languages: Mapping[str, str]
    examples: tuple[str, ...]
    data: Mapping[str, Any]
    spec: ModelSpec
    notes: tuple[Words, ...] = ()
    example_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks the number of labels.

        Raises:
            BadSetting: there are labels, but not one per example.
        """
        check_labels(self.examples, self.example_labels)

    @property
    def sampling(self) -> None:
        """How its authors let it sample: None, a native folder does not say."""
        return None

    @property
    def own_examples(self) -> bool:
        """Whether its authors chose the examples."""
        return True


@dataclass(frozen=True)
class Checkpoint:
    """A network ready to run.

    Attributes:
        info: facts about it.
        network: in float32, on its device.
        tokenizers: by strip; none for a strip of float features.
        fingerprint: SHA-256 of its files and of the answers given.
        notes: what a viewer should know of how it computes, a sentence each.
        folder: where its survey may lie; None: it was not read from a folder.
    """

    info: Info
    network: Network
    tokenizers: Mapping[str, Tokenizer]
    fingerprint: str
    notes: tuple[Words, ...] = ()
    folder: Path | None = None

    @cached_property
    def parameters(self) -> int:
        """The number of weights."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    @property
    def images(self) -> None:
        """What prepares images: None, it reads none."""
        return None

    @property
    def sounds(self) -> None:
        """What prepares sounds: None, it reads none."""
        return None

    @property
    def converts(self) -> bool:
        """Whether its weights can be converted to other number types."""
        return True

    def untrained(self) -> "Checkpoint":
        """The same with new random weights, the same ones every time: what the network's form alone makes of a text."""
        device = next(iter(self.network.parameters())).device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return replace(self, network=build(self.info.spec).to(device).eval())


def check_labels(examples: tuple[str, ...], labels: tuple[str, ...]) -> None:
    """Checks that there is one label per example, or none at all.

    Raises:
        BadSetting: there are labels, but not one per example.
    """
    if labels and len(labels) != len(examples):
        counts = {"found": len(labels), "count": len(examples)}
        raise DoesNotFit(name="example_labels", reason=phrase("there are {found} of them for {count} examples", **counts))


def save(folder: Path, info: Info, weights: Mapping[str, Tensor], by_strip: Mapping[str, WordTokenizer]) -> None:
    """Writes a checkpoint folder, weights as float16; `by_strip` are its tokenizers."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {strip: words.to_json(tokenizer) for strip, tokenizer in by_strip.items()}
    _write(folder / SPEC, described(info))
    _write(folder / TOKENIZER, json.dumps(written, ensure_ascii=False, separators=(",", ":")) + "\n")
    save_weights(folder / WEIGHTS, weights)


def described(info: Info) -> str:
    """The text of spec.json."""
    data = {
        "format": FORMAT,
        "name": info.name,
        "title": info.title,
        "summary": str(info.summary),
        "languages": dict(info.languages),
        "examples": list(info.examples),
        "example_labels": list(info.example_labels),
        "data": dict(info.data),
        "notes": list(map(str, info.notes)),
        "spec": specs.to_json(info.spec),
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Writes `weights` as float16 safetensors, atomically."""
    fresh = path.with_suffix(".part")
    save_file({name: value.half().contiguous() for name, value in weights.items()}, fresh)
    fresh.replace(path)


def read_info(folder: Path) -> Info:
    """The Info of a checkpoint folder; the weights are not read.

    Raises:
        MissingFile, DamagedFile: the folder cannot be used.
    """
    data = _read_json(folder, SPEC)
    if (version := data.pop("format", None)) != FORMAT:
        wrong = phrase("it has the format {found}, and this version reads {format}", found=repr(version), format=FORMAT)
        raise DamagedFile(path=folder / SPEC, detail=wrong)
    try:
        return read(Info, data, SPEC)
    except BadSetting as error:
        raise DamagedFile(path=folder / SPEC, detail=_one_line(error)) from error


def load(folder: Path, device: torch.device, weights_file: str = WEIGHTS) -> Checkpoint:
    """Opens a checkpoint folder with the weights in `weights_file`; the network computes in float32, whatever their dtype.

    Raises:
        MissingFile, DamagedFile, ShapeMismatch: the folder cannot be used.
    """
    info = read_info(folder)
    by_strip = _read_tokenizers(folder, info.spec)
    weights = _read_weights(_existing(folder, weights_file), info.spec)
    network = build(info.spec)
    # names and shapes were compared before, so this cannot fail
    network.load_state_dict(weights)
    return Checkpoint(
        info,
        ready(network, device),
        by_strip,
        fingerprint(folder, weights_file),
        info.notes,
        folder if weights_file == WEIGHTS else None,
    )


def ready(network: Network, device: torch.device) -> Network:
    """A network as runs use it: on `device`, without dropout.

    A processor multiplies a matrix and the one row of a decoding step faster if the matrix is stored column by column. So linear
    layers store their weights like that, with the same values and shapes, but for those that are an embedding's table, too.
    """
    tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    for module in network.modules() if device.type == "cpu" else ():
        if isinstance(module, nn.Linear) and id(module.weight) not in tables:
            module.weight.data = module.weight.data.t().contiguous().t()
    return network.to(device).eval()


def _read_tokenizers(folder: Path, spec: ModelSpec) -> dict[str, Tokenizer]:
    """Tokenizers of the strips of ids; vocabulary sizes must equal the network's."""
    data, path = _read_json(folder, TOKENIZER), folder / TOKENIZER
    needed = {strip: stack.vocab for strip, stack in zip(("source", "target"), spec.stacks.values(), strict=False) if stack.vocab}
    try:
        by_strip = {strip: vocabulary.from_json(data.get(strip)) for strip in needed}
    except BadSetting as error:
        raise DamagedFile(path=path, detail=_one_line(error)) from error
    for strip, vocab in needed.items():
        if (size := by_strip[strip].size) != vocab:
            wrong = phrase("it has {found:,} entries, and the network has {ids:,} ids", found=size, ids=vocab)
            raise DamagedFile(path=f"{path} ({strip})", detail=wrong)
    return by_strip


def _read_weights(path: Path, spec: ModelSpec) -> dict[str, Tensor]:
    """The weights in float32, checked against the spec before anything is built."""
    places = needed(spec).state_dict()
    try:
        stored = load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise DamagedFile(path=path, detail=_one_line(error)) from error
    # every difference is an error: a native folder has no tensor too many
    for name in sorted(places.keys() | stored.keys()):
        if name not in stored or name not in places:
            missing = phrase("{name} is missing", name=name)
            raise ShapeMismatch(path=path, detail=missing if name in places else phrase("{name} has no place in it", name=name))
        if stored[name].shape != places[name].shape:
            shapes = {"found": list(stored[name].shape), "needed": list(places[name].shape)}
            raise ShapeMismatch(path=path, detail=phrase("{name} is {found}, not {needed}", name=name, **shapes))
        if stored[name].dtype not in DTYPES or not stored[name].isfinite().all():
            raise DamagedFile(
                path=path, detail=phrase("{name} contains values that are not finite floating-point numbers", name=name)
            )
    return {name: value.float() for name, value in stored.items()}


def inspect(folder: Path, weights_file: str = WEIGHTS) -> Inspection:
    """The inspection report of a checkpoint folder with the weights in `weights_file`, without running it.

    Raises:
        MissingFile, DamagedFile: the folder cannot be read.
    """
    info = read_info(folder)
    path, network = _existing(folder, weights_file), needed(info.spec)
    places = network.state_dict()
    try:
        with safe_open(path, framework="pt") as file:
            # shapes and types without the numbers, which are then read one tensor after another
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
            infos = {
                name: TensorInfo(name, tuple(s.get_shape()), s.get_dtype(), "matched" if name in places else "unexpected")
                for name, s in slices.items()
            }
            tensors = tuple(each_measured(infos, file.get_tensor))
    except (SafetensorError, OSError, ValueError) as error:
        raise DamagedFile(path=path, detail=_one_line(error)) from error
    about = {"title": Phrase(info.title.replace("{", "{{").replace("}", "}}")), "format": FORMAT}  # bundled ones have a translation
    kinds = {
        "encoder": phrase("A Headlight checkpoint folder (format {format}) with an encoder: {title}.", **about),
        "decoder": phrase("A Headlight checkpoint folder (format {format}) with a language model: {title}.", **about),
    }
    both = phrase("A Headlight checkpoint folder (format {format}) with an encoder-decoder: {title}.", **about)
    inspection = Inspection(
        what=kinds.get("".join(info.spec.stacks), both),
        spec=specs.to_json(info.spec),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        tensors=tensors,
        missing=tuple(sorted(places.keys() - {t.name for t in tensors})),
        notes=info.notes,
    )
    return diagnosed(inspection, load_file(path), _network_of(path, info.spec))


def _network_of(path: Path, spec: ModelSpec) -> Network | None:
    """The network with the weights in `path`; None: they are incomplete."""
    try:
        weights = _read_weights(path, spec)
    except CheckpointError:
        return None
    network = build(spec)
    network.load_state_dict(weights)
    return network


def fingerprint(folder: Path, weights_file: str = WEIGHTS) -> str:
    """SHA-256 over the files that decide what the network computes, in hexadecimal."""
    digest = hashlib.sha256()
    for name in (SPEC, TOKENIZER, weights_file):
        digest.update(_existing(folder, name).read_bytes())
    return digest.hexdigest()


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise MissingFile(path=path, needed=f"{WEIGHTS}, {SPEC}, {TOKENIZER}")
    return path


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    path = _existing(folder, name)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(path=path, detail=_one_line(error)) from error
    if not isinstance(data, dict):
        raise DamagedFile(path=path, detail=phrase("it holds no JSON object"))
    return data


def _write(path: Path, text: str) -> None:
    fresh = path.with_suffix(".part")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _one_line(error: Exception) -> Words:
    """The error as one line."""
    return error.inside if isinstance(error, BadSetting) else f"{type(error).__name__}: {' '.join(str(error).split()[:30])}"


SNAPSHOTS, CURVE = "snapshots", "curve.csv"
_SNAPSHOT = re.compile(r"([0-9]{6,12})\.safetensors", re.ASCII)


def snapshot_steps(folder: Path) -> tuple[int, ...]:
    """Training steps with a snapshot, sorted; empty if the folder has none."""
    try:
        matches = [_SNAPSHOT.fullmatch(file.name) for file in (folder / SNAPSHOTS).iterdir()]
    except OSError:
        return ()
    return tuple(sorted(int(name[1]) for name in matches if name))


def snapshot_path(folder: Path, step: int) -> Path:
    """The path of a step's snapshot."""
    return folder / SNAPSHOTS / f"{step:06}.safetensors"


def folder_of_snapshot(file: Path) -> Path | None:
    """The checkpoint folder of the snapshot `file`; None: it is not a snapshot."""
    folder = file.parent.parent
    return folder if file.parent.name == SNAPSHOTS and (folder / SPEC).is_file() else None


def snapshot_files(folder: Path, file: Path) -> list[Path]:
    """The files of the snapshot `file`: its weights, and the folder's spec and tokenizer."""
    return [file, folder / SPEC, folder / TOKENIZER]


def losses(folder: Path) -> tuple[Losses, ...]:
    """The rows of the folder's curve.csv; empty if it is missing or unreadable."""
    try:
        status = (file := folder / CURVE).stat()
    except OSError:
        return ()
    return _losses(file, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)


@lru_cache(maxsize=256)
def _losses(path: Path, *_version: int) -> tuple[Losses, ...]:
    """The rows of a file, of one version of it: each list of models has them."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                Losses(int(row["step"]), float(row["train_loss"]), float(row["validation_loss"])) for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        return ()
    return tuple(rows)
