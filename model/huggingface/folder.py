"""Files of a Hugging Face folder: settings and weights, read by `safe_loading`. Nothing in it is executed."""

import hashlib
import json
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import Tensor

from model.errors import CheckpointError, DamagedFile, MissingFile, Phrase, UnsupportedModel, Words, phrase
from model.huggingface.families import FAMILIES, TOWERS, Family, Kind
from model.inspection.report import TensorInfo
from model.inspection.wrappers import Reading
from model.safe_loading.reader import NotFinite, StoredTensors, read_tensors

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer.json"
PREPARATION = ("preprocessor_config.json", "processor_config.json")
"""Files that say how an image or a sound is prepared."""

VOCABULARY_FILES = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "target.spm",
)
"""Files of a tokenizer beside tokenizer.json, or without it."""

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""Weight files and their indexes; the first that exists is used."""

ADAPTER = "adapter_config.json"
"""What the library peft saves beside an adapter."""

LONGEST = 2**26
"""Most bytes of a JSON file."""

MOST_SHARDS = 200
"""Most weight files of one folder."""

SNAPSHOTS, CACHED = "snapshots", "models--"
"""A Hub's cache has a model in models--ORG--NAME/snapshots/COMMIT."""

FOREIGN_CODE = "auto_map"
"""The setting that names Python files of the folder. They are never run."""

_CHANGING = ("custom_pipelines", "attn_implementation", "_attn_implementation", "experts_implementation")
_FORM = (
    *("dtype", "torch_dtype", "use_bfloat16", "chunk_size_feed_forward", "gradient_checkpointing"),
    *("return_dict", "use_return_dict", "return_dict_in_generate", "output_attentions", "output_hidden_states", "torchscript"),
)
_LABELS = ("num_labels", "id2label", "label2id")
_NOT_TAKEN = (FOREIGN_CODE, *_CHANGING, *_FORM, *_LABELS)
"""Settings that the library does not get: those of the form of what it returns, and of how it computes the same numbers, are given
here with each call. It would write a table of all labels, of which no network here makes use."""


@dataclass(frozen=True)
class Weights:
    """The tensors of a folder's weight files.

    Attributes:
        tensors: by name; perhaps each is read only when it is asked for.
        shapes: a tensor of the same shape and dtype for each, of which nothing needs to be read.
        broken: names of those that were read and have numbers that are not finite.
        removed: names of wrappers that the names in the file have and these do not.
    """

    tensors: Mapping[str, Tensor]
    shapes: Mapping[str, Tensor]
    broken: tuple[str, ...] = ()
    removed: str = ""

    @property
    def dtype(self) -> torch.dtype:
        """The number type of most numbers, in which the network runs: bfloat16 or float16; for any other type float32."""
        counts = Counter[torch.dtype]()
        for tensor in self.shapes.values():
            counts[tensor.dtype] += tensor.numel()
        # a few norms in float32 among bfloat16 weights do not make it a float32 network
        most = max(counts, key=counts.__getitem__, default=torch.float32)
        return most if most in (torch.bfloat16, torch.float16) else torch.float32

    def read_as(self, reading: Reading) -> "Weights":
        """The same tensors under names without wrappers."""
        names = reading.names
        broken = tuple(name for name, stored in names.items() if stored in self.broken)
        shapes = {name: self.shapes[stored] for name, stored in names.items()}
        return Weights(_Renamed(self.tensors, names), shapes, broken, reading.removed)


class _Renamed(Mapping[str, Tensor]):
    """Tensors under other names, each still read when it is asked for."""

    def __init__(self, tensors: Mapping[str, Tensor], names: Mapping[str, str]) -> None:
        self._tensors, self._names = tensors, names

    def __getitem__(self, name: str) -> Tensor:
        """A tensor by its name here."""
        return self._tensors[self._names[name]]

    def __iter__(self) -> Iterator[str]:
        """The names here."""
        return iter(self._names)

    def __len__(self) -> int:
        """The number of tensors."""
        return len(self._names)


@dataclass(frozen=True)
class Folder:
    """A folder with a network of the transformers library, not yet validated. A GGUF file stands for one, too (`GgufFolder`).

    Attributes:
        path: the folder.
        config: contents of config.json.
        generation: contents of generation_config.json, else of config.json: both use the same names.
        family: module names of its architecture; None: it has no row in FAMILIES.
        kind: its stacks; `encoder` for an architecture without a row, until the library says them (`library.kind_of`).
    """

    path: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    family: Family | None
    kind: Kind

    @property
    def model_type(self) -> str:
        """The architecture's name."""
        return str(self.config["model_type"])

    @property
    def safe_config(self) -> dict[str, Any]:
        """The settings without those that name code, change the arithmetic or size what is not run."""
        return _taken(self.config)

    @property
    def settings(self) -> Path:
        """The file that holds the settings."""
        return self.path / CONFIG

    @property
    def what(self) -> Phrase:
        """What is opened, a sentence."""
        name, kind = name_of(self.path), self.model_type
        return phrase("{name}: a folder of the transformers library, architecture {model_type}.", name=name, model_type=kind)

    @property
    def notes(self) -> tuple[Words, ...]:
        """Notes on what of its numbers is used, or on how they are stored, a sentence each."""
        images_alone = phrase(
            "This folder holds a network of images and one of texts. Neither attends to the other; the one of images is shown."
        )
        return (images_alone,) if self.model_type in TOWERS else ()

    @property
    def vocabulary(self) -> Path:
        """The file of the tokenizer."""
        return self.path.resolve() / TOKENIZER

    @property
    def rules(self) -> dict[str, Any] | None:
        """Arguments for the tokenizer process; None: the folder has no tokenizer.json.

        What lies beside that file may change its ids, so then the library's own class reads the folder.
        """
        if not self.vocabulary.is_file():
            return None
        rules: dict[str, Any] = {"path": str(self.vocabulary)}
        return rules | {"beside": str(self.vocabulary.parent), "config": self.safe_config} if self.settles_ids else rules

    def preparation(self, part: str) -> dict[str, Any] | None:
        """The settings that say how an image or a sound is prepared; None: the folder has none.

        Args:
            part: their name in the file that newer versions of the library write.

        Raises:
            DamagedFile: their file cannot be read.
        """
        older, newer = (self.path / name for name in PREPARATION)
        if older.is_file():
            return read_json(older)
        if not newer.is_file():
            return None
        settings = read_json(newer).get(part)
        return dict(settings) if isinstance(settings, Mapping) else {}

    @property
    def settles_ids(self) -> bool:
        """Whether files of a tokenizer lie here that the library reads beside tokenizer.json, or without it."""
        return any((self.path / name).is_file() for name in VOCABULARY_FILES)

    def unsupported(self, reason: Words | tuple[Words, ...]) -> CheckpointError:
        """The error about a network that does not run here."""
        return UnsupportedModel(path=self.path, reason=reason)

    def as_stored(self, info: TensorInfo) -> TensorInfo:
        """A tensor of the network as it is in the file."""
        return info

    def weights(self) -> Weights:
        """All tensors, read at once.

        Raises:
            CheckpointError: a file is missing, damaged or unsafe.
        """
        tensors, broken = dict[str, Tensor](), list[str]()
        for path in self.weight_files():
            opened = read_tensors(path)
            # a .bin file may hold its table inside another one, as trainers save it
            name = "" if "" in opened.candidates else next(iter(opened.candidates))
            tensors |= opened.candidates[name]
            problems = [problem.fields for problem in opened.problems if isinstance(problem, NotFinite)]
            broken += [str(fields["tensor"]) for fields in problems if fields["candidate"] == name]
        return Weights(tensors, tensors, tuple(broken))

    def stored(self) -> Weights:
        """All tensors, each read when it is asked for.

        Raises:
            CheckpointError: as for `weights`.
        """
        files = [StoredTensors(path) for path in self.weight_files()]
        # shapes without bytes: an inspection builds its network of these
        stand_ins = {name: tensor for file in files for name, tensor in file.stand_ins().items()}
        return Weights(ChainMap(*reversed(files)), stand_ins)  # type: ignore[arg-type]  # it is only read

    def weight_files(self) -> list[Path]:
        """The weight files, all in this folder.

        Raises:
            MissingFile, DamagedFile: there are none, or their list cannot be used.
        """
        return weight_files(self.path)

    def fingerprint(self) -> str:
        """SHA-256 over the files that decide what the network computes, in hexadecimal."""
        digest = hashlib.sha256()
        for path in (*(self.path / name for name in (CONFIG, GENERATION, TOKENIZER, *VOCABULARY_FILES)), *self.weight_files()):
            if path.is_file():
                with path.open("rb") as file:
                    hashlib.file_digest(file, lambda: digest)  # in pieces: the whole would take as much memory again
        return digest.hexdigest()


def _taken(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those of _NOT_TAKEN, on every level: a network may be made of others."""
    return {
        name: _taken(value) if isinstance(value, Mapping) else value for name, value in settings.items() if name not in _NOT_TAKEN
    }


def weight_files(path: Path) -> list[Path]:
    """The weight files of a folder, all in this folder.

    Raises:
        MissingFile, DamagedFile: there are none, or their list cannot be used.
    """
    # safetensors before .bin, a whole file before the index of its parts
    first = next((path / name for name in WEIGHTS if (path / name).is_file()), None)
    if first is None:
        raise MissingFile(path=path / WEIGHTS[0], needed=f"{CONFIG}, {WEIGHTS[0]} | {WEIGHTS[2]}")
    if first.suffix != ".json":
        return [first]
    names = shards(first, read_json(first))
    if missing := [name for name in names if not (path / name).is_file()]:
        raise MissingFile(path=path / missing[0], needed=phrase("every file that {name} lists", name=first.name))
    return [path / name for name in names]


def shards(index: Path, listed: Mapping[str, Any]) -> list[str]:
    """The weight files that the contents of an index list, sorted.

    Raises:
        DamagedFile: it lists none, too many, or files of other folders.
    """
    table = listed.get("weight_map")
    names = sorted({str(name) for name in table.values()}) if isinstance(table, Mapping) else []
    if not names or len(names) > MOST_SHARDS or any(PurePath(name).name != name for name in names):
        raise DamagedFile(
            path=index, detail=phrase("its weight_map lists no files of this folder, or more than {most}", most=MOST_SHARDS)
        )
    return names


def name_of(path: Path) -> str:
    """A folder's name, even if it is `.` or a symlink; of a folder of a Hub's cache the model's name."""
    kept = path.parent.parent.name
    if path.parent.name == SNAPSHOTS and kept.startswith(CACHED):
        return kept.removeprefix(CACHED).replace("--", "/")
    return path.name or path.resolve().name


def is_here(path: Path) -> bool:
    """Whether a path is a folder of the transformers library."""
    return (path / CONFIG).is_file() and not (path / "spec.json").is_file()


def open_folder(path: Path) -> Folder:
    """Reads a folder's settings.

    Raises:
        MissingFile, DamagedFile: its settings cannot be read.
        UnsupportedModel: its architecture or the storage of its weights is not supported.
    """
    config = read_json(path / CONFIG)
    return with_settings(path, config, read_json(path / GENERATION) if (path / GENERATION).is_file() else {})


def with_settings(path: Path, config: Mapping[str, Any], generation: Mapping[str, Any]) -> Folder:
    """The folder of these settings, of which nothing else needs to be there yet.

    Raises:
        UnsupportedModel: as for `open_folder`.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise UnsupportedModel(
            path=path, reason=phrase("its {config} names no architecture: model_type is {kind}", config=CONFIG, kind=repr(kind))
        )
    family = FAMILIES.get(kind)
    if config.get("quantization_config"):
        raise UnsupportedModel(path=path, reason=phrase("its weights are quantized, which is not read here"))
    if family is not None and family.kind == "encoder" and config.get("is_decoder"):
        raise UnsupportedModel(
            path=path,
            reason=phrase("its {kind} uses a causal mask (is_decoder), but here it would attend to every position", kind=kind),
        )
    return Folder(path, config, {**config, **generation}, family, "encoder" if family is None else family.kind)


def _number(table: dict[str, Any]) -> Any:
    """The number that the library writes as a table, as JSON has none that is infinite or NaN; any other table as it is."""
    return float(table["__float__"]) if table.keys() == {"__float__"} and isinstance(table["__float__"], str) else table


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        MissingFile, DamagedFile: there is none.
    """
    if not path.is_file():
        raise MissingFile(path=path, needed=f"{CONFIG}, {WEIGHTS[0]}")
    try:
        if path.stat().st_size > LONGEST:
            raise DamagedFile(path=path, detail=phrase("it is larger than {longest:,} bytes", longest=LONGEST))
        data = json.loads(path.read_text(encoding="utf-8"), object_hook=_number)
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(path=path, detail=f"{type(error).__name__}: {' '.join(str(error).split()[:30])}") from error
    if not isinstance(data, dict):
        raise DamagedFile(path=path, detail=phrase("it holds no JSON object"))
    return data
