"""Search for state dicts, the tables of named tensors, in the contents of a file."""

from collections.abc import Iterator
from typing import Any

from model.errors import NoWeights, NumpyArrays, Phrase, UnsoundFile, WholeObject, phrase
from model.safe_loading import allowed_names, limits
from model.safe_loading.inert_values import Inert, Named, Tensor
from model.safe_loading.plan import OtherEntry, printable

FEW = 16
"""Longest list whose items may be state dicts; longer lists are data."""

OPTIMIZER = "torch.optim"

ARRAYS = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct", "numpy._core.numeric._frombuffer")
"""What a pickle makes an array of NumPy with."""


class Search:
    """Searches nested dicts. A dict of tensors, at least one with `axes` axes or more, is a candidate.

    Attributes:
        tables: the candidates by the keys that lead to them, joined by dots.
        others: everything else.
        objects: classes of pickled networks that were found.
    """

    def __init__(self, axes: int, path: str) -> None:
        self.tables: dict[str, dict[str, Tensor]] = {}
        self.others: list[OtherEntry] = []
        self.objects: list[str] = []
        self._axes = axes
        self._path = path
        self._seen: set[int] = set()

    def look(self, node: Any, name: str = "", depth: int = 0) -> None:
        """Sorts `node`, found under `name`, and everything in it.

        Raises:
            UnsoundFile: two tables have the same name.
        """
        if isinstance(node, Inert) and node.is_module:
            self.objects.append(node.kind)
        # A file may name one table a million times: what was looked through is not listed again, or small files take hours.
        is_known = id(node) in self._seen
        entries = None if is_known or depth > limits.MAX_DEPTH else _entries(node)
        if entries is None or isinstance(node, Inert):
            self._note(node, name, is_known)
        if entries is None:
            return
        self._seen.add(id(node))
        tensors = {key: value for key, value in entries if type(key) is str and isinstance(value, Tensor)}
        # a table may hold other things beside its tensors, which are looked through as well
        is_table = any(len(tensor.shape) >= self._axes for tensor in tensors.values())
        if is_table and self.tables.setdefault(name, tensors) is not tensors:
            raise UnsoundFile(path=self._path, detail=phrase("two of its tables are called {name}", name=repr(name)))
        for key, value in entries:
            if not (is_table and type(key) is str and isinstance(value, Tensor)):
                self.look(value, f"{name}.{printable(_key_text(key))}".removeprefix("."), depth + 1)

    def _note(self, node: Any, name: str, is_known: bool) -> None:
        if len(self.others) < limits.MAX_OTHER_ENTRIES:
            self.others.append(_other_entry(node, name, is_known))
            if _is_optimizer(node):
                self._seen.add(id(node))


def find(root: Any, path: str) -> tuple[dict[str, dict[str, Tensor]], list[OtherEntry]]:
    """State dicts in `root`, by the keys that lead to them ("" is `root` itself), and the other entries.

    A dict without any matrix is an other entry, unless there is nothing else: weights contain a matrix.

    Raises:
        WholeObject: there is an object of some class instead of a state dict.
        NumpyArrays, NoWeights: there is neither.
        UnsoundFile: two state dicts have the same name.
    """
    # first tables with a matrix, as weights have; without any, whatever holds tensors
    for axes in (2, 0):
        search = Search(axes, path)
        search.look(root)
        if search.tables:
            return search.tables, search.others
    if isinstance(root, Inert):
        search.objects.append(root.kind)
    if search.objects:
        raise WholeObject(path=path, found=printable(search.objects[0]))
    if arrays := [entry.name for entry in search.others if entry.kind in ARRAYS]:
        raise NumpyArrays(path=path, names=", ".join(arrays[:3]) + (", …" if len(arrays) > 3 else ""))
    raise NoWeights(path=path, found=_summary(root))


def _entries(node: Any) -> list[tuple[Any, Any]] | None:
    """The entries of `node`; None: it is not searched. An optimizer's tensors are not weights."""
    if isinstance(node, dict):
        return None if _is_optimizer(node) else list(node.items())
    if isinstance(node, list | tuple) and len(node) <= FEW:
        return list(enumerate(node))
    if isinstance(node, Inert) and not node.is_module:
        attributes = node.state if isinstance(node.state, dict) else {}
        return [*node.items.items(), *attributes.items()]
    return None


def _is_optimizer(node: Any) -> bool:
    return isinstance(node, dict) and "state" in node and "param_groups" in node


def _other_entry(node: Any, name: str, is_known: bool) -> OtherEntry:
    """What `node` is; the bytes of an optimizer are counted under its first name."""
    if isinstance(node, Tensor):
        return OtherEntry(name, "torch.Tensor", size=_size(node))
    if _is_optimizer(node):
        return OtherEntry(name, OPTIMIZER, size=0 if is_known else sum(map(_size, _tensors_of_optimizer(node))))
    if isinstance(node, Inert | Named):
        return OtherEntry(name, printable(node.kind if isinstance(node, Inert) else node.name))
    value = printable(node, 200) if isinstance(node, str) else node
    is_plain = isinstance(value, str | float | bool) or (isinstance(value, int) and abs(value) < 2**63)
    return OtherEntry(name, type(node).__name__, value if is_plain else None)


def _tensors_of_optimizer(node: dict[Any, Any]) -> Iterator[Tensor]:
    state = node["state"]
    for of_parameter in state.values() if isinstance(state, dict) else ():
        if isinstance(of_parameter, dict):
            yield from (value for value in of_parameter.values() if isinstance(value, Tensor))


def _size(tensor: Tensor) -> int:
    """Bytes of the tensor's storage."""
    count = tensor.storage.count
    return count * allowed_names.item_size(tensor.storage.dtype) if 0 <= count < 2**48 else 0


def _key_text(key: Any) -> str:
    return str(key) if isinstance(key, str | float | bool) or (isinstance(key, int) and abs(key) < 2**63) else "?"


def _summary(root: Any) -> Phrase:
    if isinstance(root, Tensor):
        return phrase("one tensor without a name")
    if isinstance(root, dict) and root:
        first = [f"{printable(_key_text(key), 40)} ({_type_name(value)})" for key, value in list(root.items())[:5]]
        return phrase("a table of other things: {names}", names=", ".join(first))
    return phrase("a value of the type {name}", name=_type_name(root))


def _type_name(node: Any) -> str:
    """The type of a value, as Python calls it: one that was not made has the name of its class."""
    return printable(node.kind if isinstance(node, Inert) else node.name if isinstance(node, Named) else type(node).__name__)
