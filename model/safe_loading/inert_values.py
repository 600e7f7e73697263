"""Inert values on the pickle machine's stack: they replace everything that is not a plain Python value, and have no
behavior."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A class or function that the pickle names, "module.name". It is not imported."""

    name: str


@dataclass(slots=True, eq=False)
class Inert:
    """An object that unpickling would create, and its ingredients.

    Attributes:
        kind: name of its class.
        arguments: the arguments of the call to its class.
        items: its entries, if it is filled like a dict or list.
        state: its attributes.
    """

    kind: str
    arguments: Any = ()
    items: dict[Any, Any] = field(default_factory=dict)
    state: Any = None

    @property
    def is_module(self) -> bool:
        """Whether it is an nn.Module: every module has these dicts."""
        return isinstance(self.state, dict) and ("_modules" in self.state or "_parameters" in self.state)


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """A storage outside the pickle. `dtype` is None for untyped storages, whose `count` is in bytes."""

    key: str
    dtype: str | None
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A view of a storage as the pickle describes it, not validated."""

    storage: Storage
    dtype: str
    offset: Any
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
