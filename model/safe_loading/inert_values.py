"""What stands on the stack while a pickle is followed: plain Python values, and these instead of everything else. None of them does
anything."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A class or function that the pickle names, "module.name". It is not imported."""

    name: str


@dataclass(slots=True, eq=False)
class Inert:
    """An object that loading the pickle would have made, and what it would have been made of.

    Attributes:
        kind: name of its class.
        arguments: what its class would have been called with.
        items: its entries, if it was given some as a table or a list.
        state: its attributes.
    """

    kind: str
    arguments: Any = ()
    items: dict[Any, Any] = field(default_factory=dict)
    state: Any = None

    @property
    def is_module(self) -> bool:
        """Whether it is a whole network: torch keeps these tables on every module."""
        return isinstance(self.state, dict) and ("_modules" in self.state or "_parameters" in self.state)


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """Numbers kept outside the pickle. `dtype` is None where the tensor says it, and `count` then counts bytes."""

    key: str
    dtype: str | None
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A view of a storage, as the pickle describes it: nothing of it has been checked."""

    storage: Storage
    dtype: str
    offset: Any
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
