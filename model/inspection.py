"""Inspection: what a checkpoint is, without running it. The same for a folder of our own and for anybody's file."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file.

    Attributes:
        name: in the file, without the prefix that a wrapper put before all names.
        shape: axes in the file's order.
        dtype: stored type.
        status: `matched`, `unneeded` (known and not needed), `unexpected` (nothing here uses it), or `misshapen`.
        becomes: our names for it.
        mean, deviation, norm: of its numbers (deviation: standard, of all of them; norm: Euclidean); None where there is none, one
            is not finite, or they are no numbers.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    status: str
    becomes: tuple[str, ...] = ()
    mean: float | None = None
    deviation: float | None = None
    norm: float | None = None


@dataclass(frozen=True)
class Asked:
    """One thing that the file does not tell.

    Attributes:
        name: what `--set` takes.
        allowed: answers, in words.
        consequence: a sentence: what depends on it.
        needed: whether nothing runs without an answer.
        answer: what was told or is certain; None: open.
        choices: the answers, where they can be listed.
    """

    name: str
    allowed: str
    consequence: str
    needed: bool
    answer: str | None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """What a checkpoint is.

    Attributes:
        what: one sentence.
        spec: the network as JSON values; empty while a needed answer is open.
        parameters: learned numbers of that network.
        tensors: what the weights file holds.
        missing: names that the network needs and the file lacks.
        ask: what cannot be known from the files and must be told; empty for a folder of our own.
        layout: name of the layout; empty for a folder of our own.
        in_favour, against: evidence for and against the layout, as phrases.
        notes: what to know of how such networks compute, and of these numbers, a sentence each.
        prefix: what a wrapper put before all names.
        candidate: the keys that lead to these weights in the file.
    """

    what: str
    spec: dict[str, Any]
    parameters: int
    tensors: tuple[TensorInfo, ...]
    missing: tuple[str, ...]
    ask: tuple[Asked, ...] = ()
    layout: str = ""
    in_favour: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    prefix: str = ""
    candidate: str = ""
