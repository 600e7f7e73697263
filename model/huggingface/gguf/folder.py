"""A GGUF file as a Hugging Face folder: its configuration, its tensors by the library's names, its tokenizer."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from model.errors import CheckpointError, Phrase, UnsupportedGguf, Words, phrase
from model.huggingface.families import FAMILIES
from model.huggingface.folder import Folder, Weights
from model.huggingface.gguf.architectures import ARCHITECTURES, Architecture
from model.huggingface.gguf.config import USED_UP, config_of
from model.huggingface.gguf.vocabulary import tokenizer_json
from model.inspection.report import TensorInfo
from model.safe_loading.gguf import ARCHITECTURE
from model.safe_loading.gguf_tensors import GgufFile
from model.safe_loading.plan import printable
from model.safe_loading.reader import is_finite


class _Restored(Mapping[str, Tensor]):
    """Tensors by the library's names, in float32. Each is read when it is asked for."""

    def __init__(self, file: GgufFile, architecture: Architecture, heads: int, key_heads: int) -> None:
        self._file, self._architecture, self._heads = file, architecture, (heads, key_heads)
        self.stored = {architecture.name(name): name for name in file.header.tensors if name not in USED_UP}

    def __getitem__(self, name: str) -> Tensor:
        """A tensor, read and dequantized now."""
        stored = self.stored[name]
        return self._architecture.restored(stored, self._file.tensor(stored), *self._heads)

    def __iter__(self) -> Iterator[str]:
        """All names."""
        return iter(self.stored)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.stored)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, which is not read for it."""
        stored = self.stored[name]
        empty = torch.empty(self._file.header.tensors[stored].shape, device="meta")
        return tuple(self._architecture.restored(stored, empty, *self._heads).shape)


@dataclass(frozen=True)
class GgufFolder(Folder):
    """A GGUF file that stands for a folder; `path` is the file.

    Attributes:
        file: the file.
        tensors: by the library's names.
    """

    file: GgufFile
    tensors: _Restored

    @property
    def settings(self) -> Path:
        """The file that holds the settings."""
        return self.path

    @property
    def vocabulary(self) -> Path:
        """The file of the tokenizer."""
        return self.path

    @property
    def what(self) -> Phrase:
        """What is opened, a sentence."""
        return phrase("{name}: a GGUF file, architecture {model_type}.", name=self.path.name, model_type=self.model_type)

    @property
    def notes(self) -> tuple[Words, ...]:
        """How the numbers are stored, and what runs."""
        stored = self.file.header.tensors.values()
        kinds = Counter(tensor.kind for tensor in stored)
        numbers = sum(tensor.size * 8 / tensor.bits for tensor in stored)
        return (
            phrase(
                "The weights are stored in {bits:.2f} bits each on average ({kinds}). What runs is the dequantized network: each "
                "weight is the float32 number that its block stands for.",
                bits=sum(tensor.size for tensor in stored) * 8 / numbers,
                kinds=", ".join(f"{kind} × {count}" for kind, count in kinds.most_common()),
            ),
        )

    @property
    def rules(self) -> dict[str, str] | None:
        """Arguments for the tokenizer process; None: the vocabulary is of a kind that is not read here."""
        written = tokenizer_json(self.file.header.settings)
        return None if written is None else {"rules": written}

    def unsupported(self, reason: Words | tuple[Words, ...]) -> CheckpointError:
        """The error about a network that does not run here."""
        return UnsupportedGguf(path=self.path, reason=reason)

    def weights(self) -> Weights:
        """All tensors, read and dequantized at once."""
        tensors = dict(self.tensors)
        return Weights(tensors, tensors, tuple(name for name, tensor in tensors.items() if not is_finite(tensor)))

    def stored(self) -> Weights:
        """All tensors, each read when it is asked for."""
        return Weights(self.tensors, {name: torch.zeros(()).expand(self.tensors.shape(name)) for name in self.tensors})

    def as_stored(self, info: TensorInfo) -> TensorInfo:
        """A tensor of the network as it is in the file."""
        name = self.tensors.stored[info.name]
        tensor = self.file.header.tensors[name]
        return replace(info, name=name, shape=tensor.shape, dtype=tensor.kind, bits=tensor.bits, becomes=(info.name,))

    def fingerprint(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        return self.file.fingerprint()


def open_gguf(file: GgufFile) -> GgufFolder:
    """The folder that a GGUF file stands for.

    Raises:
        UnsupportedGguf: it is a part of a file, its architecture is not one that runs here, or a setting of it is not.
    """
    settings = file.header.settings
    name = settings[ARCHITECTURE]
    # llama.cpp splits large models; each part has a header of its own
    if (parts := settings.get("split.count", 1)) not in (0, 1):
        reason = phrase("it is one of {parts} parts: join them with llama-gguf-split --merge", parts=printable(parts))
        raise UnsupportedGguf(path=file.path, reason=reason)
    if (architecture := ARCHITECTURES.get(name)) is None:
        allowed = ", ".join(ARCHITECTURES)
        reason = phrase("its architecture is {name}, and those that run here are: {allowed}", name=printable(name), allowed=allowed)
        raise UnsupportedGguf(path=file.path, reason=reason)
    config = config_of(file, architecture)
    # rows of queries and keys are reordered by head, so their numbers are needed before any tensor is read
    heads = config.get("num_attention_heads", config.get("n_head", 1))
    tensors = _Restored(file, architecture, heads, config.get("num_key_value_heads", heads))
    family = FAMILIES.get(architecture.model_type)
    kind = "encoder" if family is None else family.kind
    return GgufFolder(Path(file.path), config, config, family, kind, file, tensors)
