"""Settings of a GGUF file, each checked where it is asked for, and refused where nothing asks for it."""

import math
from typing import Any

from model.errors import UnsupportedGguf, phrase
from model.safe_loading.gguf import ARCHITECTURE
from model.safe_loading.gguf_tensors import GgufFile
from model.safe_loading.plan import printable

_UNREAD = (
    "vocab_size",
    "tensor_data_layout",
    "pooling_type",
    "rope.scaling.finetuned",
    "classifier.output_labels",
    "rope.dimension_count",
)
"""Settings that change nothing here, or that tensors tell: the vocabulary's size is that of the embedding."""

_NEUTRAL: tuple[Any, ...] = (0, "", "none", [])


class Settings:
    """Settings of one architecture; each that is asked for is noted.

    Args:
        file: the file.

    Attributes:
        architecture: its name, before each of these settings.
    """

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        self.architecture = str(file.header.settings[ARCHITECTURE])
        # each setting that is asked for is crossed off; `check_rest` looks at what remains
        self._known = {f"{self.architecture}.{name}" for name in _UNREAD}

    def get(self, name: str) -> Any:
        """A setting; None: there is none. A list of one value for each layer is that value, if all are the same."""
        full = f"{self.architecture}.{name}"
        self._known.add(full)
        value = self.file.header.settings.get(full)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            return value[0]
        return value

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number above 0.

        Raises:
            UnsupportedGguf: it is missing without a default, differs between layers, or is none.
        """
        value = self.get(name)
        number = default if value is None else value
        if type(number) is not int or number < 1:
            raise self.refused(name, number)
        return number

    def real(self, name: str, default: float | None = None) -> float:
        """A number, finite and above 0.

        Raises:
            UnsupportedGguf: as for `whole`.
        """
        value = self.get(name)
        number = default if value is None else value
        if not isinstance(number, int | float) or not math.isfinite(number) or number <= 0:
            raise self.refused(name, number)
        return float(number)

    def refused(self, name: str, value: Any) -> UnsupportedGguf:
        """The error about a value that no such network has."""
        full = f"{self.architecture}.{name}"
        if value is None:
            return UnsupportedGguf(path=self.file.path, reason=phrase("its setting {name} is missing", name=full))
        reason = phrase("its setting {name} is {found}, which is not read here", name=full, found=printable(value))
        return UnsupportedGguf(path=self.file.path, reason=reason)

    def check_rest(self) -> None:
        """Refuses settings of the architecture that nothing asked for, unless they change nothing.

        Raises:
            UnsupportedGguf: there is one.
        """
        for full, value in self.file.header.settings.items():
            if full.startswith(f"{self.architecture}.") and full not in self._known and value not in _NEUTRAL:
                raise self.refused(full.removeprefix(f"{self.architecture}."), value)

    def has(self, tensor: str) -> bool:
        """Whether the file has a tensor."""
        return tensor in self.file.header.tensors
