"""Names that wrappers put into the names of tensors, and the names without them.

torch.compile, FSDP, checkpointed activations and data-parallel training put a module around a network or a layer, and its name
before those of the tensors inside; training programs keep the network in an attribute.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

INSIDE = ("_orig_mod", "_fsdp_wrapped_module", "_fpw_module", "_checkpoint_wrapped_module", "_forward_module")
"""Names that only wrappers have, so that they go wherever they are: of torch.compile, FSDP (two), checkpoint_wrapper and Fabric."""

ANYWHERE = (*INSIDE, "module")
"""The same with the name that DataParallel gives, which a network may have for a part of its own."""

IN_FRONT = ("module", *INSIDE, "model", "net")
"""Names that go from the front, where most tensors have them."""

MOST_REMOVED = 8
"""Most names that are removed from the front, one after the other."""


@dataclass(frozen=True)
class Reading:
    """The names of tensors without some wrappers.

    Attributes:
        names: the name in the file, by that without wrappers.
        removed: what was removed.
    """

    names: Mapping[str, str]
    removed: str = ""

    def without(self, wrappers: Container[str]) -> "Reading | None":
        """The names without these parts, wherever they are; None: there are none, or two tensors would have one name."""
        # The last part is the tensor's own name, such as `weight`; it is no wrapper's.
        parts = dict.fromkeys(part for name in self.names for part in name.split(".")[:-1] if part in wrappers)
        if not parts:
            return None
        return self._renamed(lambda name: ".".join(part for part in name.split(".") if part not in parts), ".".join(parts))

    def without_first(self, any_name: bool) -> "Reading | None":
        """The names without what most of them begin with, where it is a wrapper's; None as for `without`.

        Args:
            any_name: whether it may have any name.
        """
        # More than half of the tensors must begin so: an optimizer's or a loss's tensors may lie beside the network's.
        firsts = Counter(name.partition(".")[0] for name in self.names if "." in name)
        (first, count), *_ = firsts.most_common(1) or [("", 0)]
        if 2 * count <= len(self.names) or not (any_name or first in IN_FRONT):
            return None
        return self._renamed(lambda name: name.removeprefix(f"{first}."), first)

    def _renamed(self, change: Callable[[str], str], removed: str) -> "Reading | None":
        names = {change(name): stored for name, stored in self.names.items()}
        return Reading(names, f"{self.removed}{removed}.") if len(names) == len(self.names) else None


def readings(names: Iterable[str], any_first: bool = False) -> Iterator[Reading]:
    """The names as they are, then with ever fewer wrappers. None in which two tensors would have the same name.

    Args:
        any_first: whether a name that most tensors begin with is taken for a wrapper's, whatever it is.
    """
    reading = Reading({name: name for name in names})
    for _ in range(MOST_REMOVED):
        yield reading
        yield from filter(None, (reading.without(INSIDE), reading.without(ANYWHERE)))
        if (shorter := reading.without_first(any_first)) is None:
            return
        reading = shorter
