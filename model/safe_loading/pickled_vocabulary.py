"""Vocabularies in pickles, as torchtext and torch.save write them: the texts are found in what the pickle machine describes.

Nothing is executed. The pickle is interpreted in the sandbox, which returns plain JSON values, in the forms that vocabulary files
have: a list of texts, a table token -> id or id -> token, or a table of these under their names.
"""

from io import BytesIO
from typing import Any, BinaryIO

from model.errors import OverLimit, phrase
from model.safe_loading import limits
from model.safe_loading.file_type import LEGACY, ZIP
from model.safe_loading.inert_values import Inert
from model.safe_loading.pickle_machine import Machine
from model.safe_loading.torch_legacy import read_stream
from model.safe_loading.torch_zip import read_archive

COMPILED = "torchtext._torchtext.Vocab"
"""Class of the vocabulary within a vocabulary of torchtext from 0.9 on; its state: version, numbers, texts, tensors."""

DEPTH = 3
"""Nesting depth to which vocabularies are searched for: an object in a table, and its own table of texts."""

FEW = 64
"""Most entries of a table of vocabularies."""

MOST = 5_000_000
"""Most entries that are looked at, those of a table that is named twice counted twice."""

UNUSED = "freqs"
"""Attribute of torchtext's older vocabularies that looks like a table of ids: how often each text was seen."""


def find(file: BinaryIO, size: int, path: str) -> Any:
    """The vocabulary in a pickle, as JSON values; None: there is none of a known form.

    Raises:
        CheckpointError: it is unsafe or damaged, or beyond the limits.
    """
    head = file.read(32)
    file.seek(0)
    if head.startswith(ZIP):
        root = read_archive(file, size, path)[0]
    elif LEGACY in head:
        root = read_stream(file, size, path)[0]
    else:
        root = Machine(path).follow(BytesIO(file.read(limits.MAX_HEADER)))
    return Texts(path).of(root)


class Texts:
    """Looks for texts in the values of one pickle, which may name one table again and again."""

    def __init__(self, path: str) -> None:
        self._path, self._left = path, MOST

    def of(self, node: Any, depth: int = 0) -> Any:
        """The texts in a value of the pickle machine; None: there are none.

        Raises:
            OverLimit: there is too much to look at.
        """
        if isinstance(node, list | tuple | dict):
            self._left -= len(node)
        if self._left < 0:
            raise OverLimit(path=self._path, reason=phrase("it has more than {most:,} entries", most=MOST))
        match node:
            case Inert(kind=kind, state=(_, _, [*_] as texts, *_)) if kind == COMPILED:
                return self.of(texts, depth)
            case Inert(state=dict() as attributes):
                return self.of(attributes, depth)
            case [_, *_] if all(type(text) is str for text in node):
                return node
            case dict() if node and _is_table(node):
                return node
            case dict() if depth < DEPTH and len(node) <= FEW:
                inner = {key: self.of(value, depth + 1) for key, value in node.items() if type(key) is str and key != UNUSED}
                return {key: value for key, value in inner.items() if value is not None} or None
        return None


def _is_table(node: dict[Any, Any]) -> bool:
    """Whether a table leads from tokens to ids, or from ids to tokens."""
    kinds = {(type(key), type(value)) for key, value in node.items()}
    return kinds in ({(str, int)}, {(int, str)})
