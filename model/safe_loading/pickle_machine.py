"""Pickle machine: interprets pickle instructions with inert values. It imports nothing, calls nothing and creates no object.

torch's `weights_only` loader creates the objects of an allow list. This machine creates none: a call becomes a record of its name
and arguments, a tensor becomes a description of its storage and shape. So a file may contain optimizer state and options of any
library beside its weights, and the cost of reading it is bounded by its number of instructions.
"""

import struct
from collections.abc import Iterable, Iterator
from pickletools import anyobject, genops, opcodes
from typing import Any, BinaryIO

from model.errors import DamagedFile, OverLimit, UnsafeFile, UnsoundFile, phrase
from model.safe_loading import allowed_names, limits
from model.safe_loading.inert_values import Inert, Named, Storage, Tensor
from model.safe_loading.plan import printable

PLAIN = frozenset(code.name for code in opcodes if code.arg and not code.stack_before and code.stack_after not in ([], [anyobject]))
"""Instructions that push their argument: numbers, strings and bytes."""

CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
"""Instructions that put one value on the stack. Names are those of Python's pickletools."""

TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
"""Instructions that make a tuple, with the number of its values."""

PUT = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
"""Instructions that remember the topmost value."""

GET = frozenset({"GET", "BINGET", "LONG_BINGET"})
"""Instructions that fetch a remembered value."""

NOTHING = frozenset({"PROTO", "FRAME"})
"""Instructions that change neither stack nor memo."""


class Machine:
    """A stack and a memo. One machine reads all pickles of a file, so that they share the budget of instructions.

    Attributes:
        storages: every storage seen so far, by key.
    """

    def __init__(self, path: str) -> None:
        self.storages: dict[str, Storage] = {}
        self._path = path
        self._left = limits.MAX_INSTRUCTIONS
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def follow(self, stream: BinaryIO) -> Any:
        """The value that one pickle describes; leaves `stream` at its end.

        Raises:
            UnsafeFile: it calls something that weights do not need.
            UnsoundFile: it uses instructions that no checkpoint needs.
            OverLimit: it has too many instructions.
            DamagedFile: its instructions make no sense.
        """
        self._stack, self._marked, self._memo = [], [], {}
        try:
            # the standard library only splits a pickle into instructions; it runs none of them
            for code, argument, _ in genops(stream):
                self._spend(1)
                self._step(code.name, argument)
            return self._stack.pop()
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, RecursionError, struct.error) as error:
            raise DamagedFile(
                path=self._path, detail=phrase("its pickle is invalid near byte {place:,}", place=stream.tell())
            ) from error

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            most = limits.MAX_INSTRUCTIONS
            raise OverLimit(path=self._path, reason=phrase("its pickle has more than {most:,} instructions", most=most))

    def _step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in PLAIN:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name in GET:
            stack.append(self._memo[argument])
        elif name in PUT:
            self._memo[argument] = stack[-1]
        elif name in TUPLES:
            stack.append(tuple(self._take(TUPLES[name])))
        elif name not in NOTHING:
            step = getattr(self, f"_{name.lower()}", None)
            if step is None:
                raise UnsoundFile(path=self._path, detail=phrase("its pickle uses the instruction {name}", name=name))
            step(argument)

    def _take(self, count: int) -> list[Any]:
        """Pops the last `count` values."""
        taken = self._stack[-count:]
        if len(taken) < count:
            raise IndexError("fewer values than it uses")
        del self._stack[-count:]
        return taken

    def _since_mark(self) -> list[Any]:
        values, self._stack = self._stack, self._marked.pop()
        return values

    def _stop(self, _: None) -> None:
        """Leaves the value on the stack for `follow`."""

    def _mark(self, _: None) -> None:
        self._marked.append(self._stack)
        self._stack = []

    def _pop(self, _: None) -> None:
        # as Python's unpickler: with nothing on the stack, it pops a mark
        if self._stack:
            self._stack.pop()
        else:
            self._stack = self._marked.pop()

    def _pop_mark(self, _: None) -> None:
        self._since_mark()

    def _dup(self, _: None) -> None:
        self._stack.append(self._stack[-1])

    def _memoize(self, _: None) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _empty_list(self, _: None) -> None:
        self._stack.append([])

    def _empty_dict(self, _: None) -> None:
        self._stack.append({})

    def _empty_set(self, _: None) -> None:
        self._stack.append(Inert("set"))

    def _list(self, _: None) -> None:
        values = self._since_mark()
        self._stack.append(values)

    def _tuple(self, _: None) -> None:
        values = self._since_mark()
        self._stack.append(tuple(values))

    def _dict(self, _: None) -> None:
        values = self._since_mark()
        self._stack.append({})
        _fill(self._stack[-1], _pairs(values))

    def _frozenset(self, _: None) -> None:
        values = self._since_mark()
        self._stack.append(Inert("frozenset", tuple(values)))

    def _append(self, _: None) -> None:
        _extend(self._stack[-2], self._take(1))

    def _appends(self, _: None) -> None:
        values = self._since_mark()
        _extend(self._stack[-1], values)

    _additems = _appends

    def _setitem(self, _: None) -> None:
        values = self._take(2)
        _fill(self._stack[-1], _pairs(values))

    def _setitems(self, _: None) -> None:
        values = self._since_mark()
        _fill(self._stack[-1], _pairs(values))

    def _global(self, name: str) -> None:
        self._stack.append(_named(*name.split(" ", 1)))

    def _stack_global(self, _: None) -> None:
        self._stack.append(_named(*self._take(2)))

    def _reduce(self, _: None) -> None:
        function, arguments = self._take(2)
        self._stack.append(self._called(function, arguments))

    def _inst(self, name: str) -> None:
        arguments = self._since_mark()
        self._stack.append(self._called(_named(*name.split(" ", 1)), tuple(arguments)))

    def _obj(self, _: None) -> None:
        function, *arguments = self._since_mark()
        self._stack.append(self._called(function, tuple(arguments)))

    def _newobj(self, _: None) -> None:
        kind, arguments = self._take(2)
        self._stack.append(self._made(kind, arguments))

    def _newobj_ex(self, _: None) -> None:
        kind, arguments, _options = self._take(3)
        self._stack.append(self._made(kind, arguments))

    def _build(self, _: None) -> None:
        """Sets attributes. Those of a dict, such as a state dict's `_metadata`, are dropped."""
        (state,) = self._take(1)
        if isinstance(self._stack[-1], Inert):
            self._stack[-1].state = state[0] if isinstance(state, tuple) and len(state) == 2 else state

    def _binpersid(self, _: None) -> None:
        """Pushes a storage; before torch 1.6 also a network's class with its source text."""
        match self._take(1)[0]:
            case ("module", Named() as kind, *_source):
                self._stack.append(kind)
            # torch: its kind, its name in the file, its device, and how many numbers it has
            case ("storage", Named(type_), str(key), str(), int(count), *views) if views in ([], [None]):
                self._stack.append(self._known(Storage(key, allowed_names.storage_dtype(type_), count)))
            case _:
                raise ValueError("a storage is named in an unknown way")

    def _known(self, storage: Storage) -> Storage:
        """The first storage with this key."""
        # tensors may share a storage, which all of them must then describe alike
        known = self.storages.setdefault(storage.key, storage)
        if (known.dtype, known.count) != (storage.dtype, storage.count):
            raise UnsoundFile(
                path=self._path, detail=phrase("its storage {name} is described in two ways", name=printable(storage.key))
            )
        return known

    def _called(self, function: Any, arguments: Any) -> Any:
        """The inert result of `function(*arguments)`."""
        if not isinstance(function, Named) or not isinstance(arguments, tuple):
            raise UnsafeFile(path=self._path, called=phrase("the result of another call"))
        # every call ends here: as a table, a tensor or a record of itself, or as an error
        match function.name, arguments:
            case name, _ if name in allowed_names.TABLES:
                return self._table(arguments)
            case name, _ if name in allowed_names.TENSORS:
                return _tensor(name, arguments)
            case name, (Tensor() as tensor, *_) if name in allowed_names.PARAMETERS:
                return tensor
            case allowed_names.SUBCLASS, (Named() as inner, _, tuple(values), *_):
                return self._called(inner, values)
            case allowed_names.SIZE, (tuple(sizes),):
                return sizes
            case "copyreg._reconstructor", (Named() as kind, *_):
                return Inert(kind.name)
            case name, _ if allowed_names.is_harmless(name):
                return Inert(name, arguments)
        raise UnsafeFile(path=self._path, called=printable(function.name))

    def _made(self, kind: Any, arguments: Any) -> Any:
        """An inert new object of the class `kind`; no function of the file is run."""
        if not isinstance(kind, Named) or not isinstance(arguments, tuple):
            raise UnsafeFile(path=self._path, called=phrase("the result of another call"))
        return {} if kind.name in allowed_names.TABLES else Inert(kind.name, arguments)

    def _table(self, arguments: tuple[Any, ...]) -> dict[Any, Any]:
        """A dict from the pairs or the dict among the arguments; a defaultdict's factory is skipped."""
        table: dict[Any, Any] = {}
        for argument in arguments:
            if isinstance(argument, dict | list):
                self._spend(len(argument))
                _fill(table, argument.items() if isinstance(argument, dict) else argument)
        return table


def _named(module: Any, name: Any) -> Named:
    if not isinstance(module, str) or not isinstance(name, str):
        raise ValueError("a global has no name")
    return Named(allowed_names.modern(module, name))


def _pairs(values: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(values[::2], values[1::2], strict=True)


def _fill(target: Any, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Sets entries. Keys that are not plain are compared by identity: hashing nested tuples could take forever."""
    entries = target.items if isinstance(target, Inert) else target
    if not isinstance(entries, dict):
        raise ValueError("entries are set on something that has none")
    for key, value in pairs:
        entries[key if type(key) in (str, int, float, bool) else Inert(type(key).__name__)] = value


def _extend(target: Any, values: list[Any]) -> None:
    if isinstance(target, list):
        target.extend(values)
    elif isinstance(target, Inert):
        target.items.update((Inert("item"), value) for value in values)
    else:
        raise ValueError("something is appended to what is no list")


def _tensor(name: str, arguments: tuple[Any, ...]) -> Tensor | Inert:
    """A tensor; conjugated and negated views, which change the numbers, stay inert."""
    match arguments:
        case (Storage() as storage, offset, tuple(shape), tuple(stride), *rest):
            dtype = storage.dtype
            if name.endswith("_v3"):
                dtype = rest[2].name.removeprefix("torch.") if isinstance(rest[2], Named) else None
            changed = any(isinstance(value, dict) and value for value in rest[2:])
            return Inert(name, arguments) if dtype is None or changed else Tensor(storage, dtype, offset, shape, stride)
    raise ValueError("a tensor is described in an unknown way")
