"""Inspection: the report about a checkpoint that is not run. It is the same for our own folders and for files of other programs."""

from dataclasses import dataclass, field
from typing import Any

from model.errors import Words


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file.

    Attributes:
        name: name in the file, without the prefix that a wrapper put before all names.
        shape: shape in the file.
        dtype: number type in the file.
        status: `matched`, `unneeded` (left over: no map depends on it), `unexpected` (it has no place here, so the file is not
            run), or `misshapen`.
        becomes: names of our parameters that it fills.
        mean, deviation, norm, lowest, highest: of its finite numbers (deviation: standard, of all of them; norm: Euclidean); None
            where there is none.
        sparsity: the share of its finite numbers that are exactly 0.
        histogram: counts in 24 bins of equal width, from the lowest number to the highest; empty where all are equal.
        nan, infinite: counts of its numbers that are not finite.
        bits: bits per number in the file, where it stores them in blocks with scales; what runs are the numbers they stand for.
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
    bits: float | None = None


@dataclass(frozen=True)
class Part:
    """The size of one part of the network.

    Attributes:
        stack: `encoder` or `decoder`.
        kind: `embedding`, `positions`, `attention`, `cross_attention`, `feed_forward`, `norms` or `output`.
        parameters: number of its parameters; a shared parameter counts in the first part that has it.
        shared: later parts that have some of these parameters, too, as stack and kind.
    """

    stack: str
    kind: str
    parameters: int
    shared: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Freshness:
    """Evidence that weights were, or were not, trained since they were initialized.

    Attributes:
        norms: number of norms.
        untouched_norms: number of norms whose gains are exactly 1 and whose biases are exactly 0, as every program initializes
            them.
        matrices: number of matrices examined: those with at least 64 numbers.
        fresh_matrices: number of these whose mean, deviation and range fit an initial distribution.
        draws: number of matrices by the distribution that they fit, such as `Xavier uniform`.
        untrained: whether all norms are untouched and nine of ten matrices are fresh.
    """

    norms: int
    untouched_norms: int
    matrices: int
    fresh_matrices: int
    draws: dict[str, int]
    untrained: bool


@dataclass(frozen=True)
class HeadNote:
    """A note about an unusual head, found in its weights; biases are ignored.

    Attributes:
        site: text form of the Site, its first pass.
        head: counted from 0.
        kind: `dead`: the norm of W_V W_O is below a hundredth of the largest at the site; `twin`: its products are nearly
            those of another head of the site.
        product: `value-output` (W_V W_O, what it writes) or `query-key` (W_Q W_Kᵀ, where it attends).
        value: the norm of a dead head; the cosine of twins' products, at least 0.99.
        other: index of the other twin, which is larger; None for a dead head.
    """

    site: str
    head: int
    kind: str
    product: str
    value: float
    other: int | None = None


@dataclass(frozen=True)
class Asked:
    """A setting that the file does not hold.

    Attributes:
        name: its name, as `--set` takes it.
        allowed: the possible answers, in words.
        consequence: a sentence that says what depends on it.
        needed: whether the model cannot run without an answer.
        answer: the answer that was given or is certain; None: it is open.
        choices: the possible answers, where they can be listed.
        origin: source of an answer that was neither given with the request nor certain: keys in the file, the file of answers
            beside it, or a vocabulary.
        proposal: an answer that suggests itself and is not known to be right; empty: none does.
    """

    name: str
    allowed: Words
    consequence: Words
    needed: bool
    answer: str | None
    choices: tuple[str, ...] = ()
    origin: Words = ""
    proposal: str = ""


@dataclass(frozen=True)
class Inspection:
    """The report about a checkpoint.

    Attributes:
        what: one sentence that describes it.
        spec: the network as JSON values; empty while a needed answer is open.
        parameters: number of parameters of that network.
        tensors: the tensors in the weights file.
        missing: names of tensors that the network needs and the file does not hold.
        ask: settings that the files do not hold; empty for a folder of our own.
        layout: name of the layout; empty for a folder of our own.
        in_favour, against: evidence for and against the layout, as phrases.
        notes: sentences about how such networks compute, and about these numbers.
        prefix: prefix that a wrapper put before all names.
        candidate: the keys that lead to these weights in the file.
        parts: parameters by part of the network; empty while the network is not known.
        tied: groups of names of matrices that hold the same numbers.
        freshness: whether the weights look untrained, and why; None where no tensor is matched.
        heads: notes about unusual heads; also empty while the network is not known.
        heads_seen: number of heads that were examined for these notes.
        sites: number of heads of each attention site, in its first pass; empty while the network is not known.
        problem: the error that a run would end with, as JSON values; empty where the model can run, or where only answers are open.
    """

    what: Words
    spec: dict[str, Any]
    parameters: int
    tensors: tuple[TensorInfo, ...]
    missing: tuple[str, ...]
    ask: tuple[Asked, ...] = ()
    layout: str = ""
    in_favour: tuple[Words, ...] = ()
    against: tuple[Words, ...] = ()
    notes: tuple[Words, ...] = ()
    prefix: str = ""
    candidate: str = ""
    parts: tuple[Part, ...] = ()
    tied: tuple[tuple[str, ...], ...] = ()
    freshness: Freshness | None = None
    heads: tuple[HeadNote, ...] = ()
    heads_seen: int = 0
    sites: dict[str, int] = field(default_factory=dict)
    problem: dict[str, Any] = field(default_factory=dict)
