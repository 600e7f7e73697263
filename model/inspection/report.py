"""Inspection: what a checkpoint is, without running it. The same for a folder of our own and for anybody's file."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file.

    Attributes:
        name: in the file, without the prefix that a wrapper put before all names.
        shape: axes in the file's order.
        dtype: stored type.
        status: `matched`, `unneeded` (left over: no map depends on it), `unexpected` (it has no place here, so the file is not
            run), or `misshapen`.
        becomes: our names for it.
        mean, deviation, norm, lowest, highest: of its finite numbers (deviation: standard, of all of them; norm: Euclidean); None
            where there is none.
        sparsity: the share of its finite numbers that are exactly 0.
        histogram: how many numbers each of 24 bins of one width holds, from the lowest number to the highest; empty where all are
            alike.
        nan, infinite: how many of its numbers are not finite.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    status: str
    becomes: tuple[str, ...] = ()
    mean: float | None = None
    deviation: float | None = None
    norm: float | None = None
    lowest: float | None = None
    highest: float | None = None
    sparsity: float | None = None
    histogram: tuple[int, ...] = ()
    nan: int = 0
    infinite: int = 0


@dataclass(frozen=True)
class Part:
    """A part of the network.

    Attributes:
        stack: `encoder` or `decoder`.
        kind: `embedding`, `positions`, `attention`, `cross_attention`, `feed_forward`, `norms` or `output`.
        parameters: how many numbers it learned; of shared ones the first part has all.
    """

    stack: str
    kind: str
    parameters: int


@dataclass(frozen=True)
class Freshness:
    """Evidence that weights were, or were not, trained since they were drawn.

    Attributes:
        norms: how many there are.
        untouched_norms: of these, whose gains are all exactly 1 and whose biases are all exactly 0, as every program begins.
        matrices: how many were looked at: those of at least 64 numbers.
        fresh_matrices: of these, whose mean, deviation and range are those of an initial draw.
        draws: how many matrices by the draw that they are like, such as `Xavier uniform`.
        untrained: whether all norms are untouched and nine of ten matrices fresh.
    """

    norms: int
    untouched_norms: int
    matrices: int
    fresh_matrices: int
    draws: dict[str, int]
    untrained: bool


@dataclass(frozen=True)
class HeadNote:
    """Something that is odd about a head, seen in its weights alone; biases are not looked at.

    Attributes:
        site: text form of the Site, its first pass.
        head: counted from 0.
        kind: `dead`: the norm of W_V W_O is below a hundredth of the largest at the site; `twin`: its products are nearly
            those of another head of the site.
        product: `value-output` (W_V W_O, what it moves) or `query-key` (W_Q W_Kᵀ, where it looks).
        value: of a dead head its norm, of twins the cosine of their products, at least 0.99.
        other: the other twin's number, which is larger; None for a dead head.
    """

    site: str
    head: int
    kind: str
    product: str
    value: float
    other: int | None = None


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
        origin: where the answer comes from, where nobody gave it with the request and it is not certain: the keys in the file, the
            file of answers beside it, or a vocabulary.
    """

    name: str
    allowed: str
    consequence: str
    needed: bool
    answer: str | None
    choices: tuple[str, ...] = ()
    origin: str = ""


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
        parts: learned numbers by part of the network; empty while it is not known.
        tied: names of matrices that hold the same numbers, a tuple for each group.
        freshness: whether the weights look untrained, and why; None where nothing is matched.
        heads: what is odd about heads; empty also while the network is not known.
        heads_seen: how many heads were looked at for that.
        sites: how many heads each attention site of the network has, in its first pass; empty while it is not known.
        problem: why it cannot be run, the error as JSON values, the same that a run ends with; empty where it can be, or where only
            answers are open.
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
    parts: tuple[Part, ...] = ()
    tied: tuple[tuple[str, ...], ...] = ()
    freshness: Freshness | None = None
    heads: tuple[HeadNote, ...] = ()
    heads_seen: int = 0
    sites: dict[str, int] = field(default_factory=dict)
    problem: dict[str, Any] = field(default_factory=dict)
