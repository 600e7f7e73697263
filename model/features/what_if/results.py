"""Results of attribution: frozen, arrays with named axes. No torch.

Axis names: token (a measured target token), head (all heads of all sites, in the order in which they run), site, step, input (a
token that the network read), key. All log-probabilities are natural (nats). A *change* is the log-probability under an edit minus
the one without it: negative where the edit makes the target less likely. Arrays are float64.

As bytes, arrays are safetensors bit by bit, and all other fields JSON in its metadata.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, TypeVar, get_type_hints

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save

from model.errors import BadSetting, Phrase, WireError, Words
from model.requests.endpoints import ARRAYS, Endpoint, endpoint
from model.requests.validation import read
from model.trace.serialization import tensors_and_metadata
from model.trace.types import Array


@dataclass(frozen=True, order=True)
class Head:
    """One head.

    Attributes:
        site: text form of the Site.
        head: counted from 0.
    """

    site: str
    head: int


@dataclass(frozen=True, eq=False)
class Arrays:
    """What every result is: a frozen dataclass, some of whose fields are arrays."""

    def __post_init__(self) -> None:
        """Makes the arrays read-only."""
        for array in self.arrays().values():
            array.setflags(write=False)

    def arrays(self) -> dict[str, Array]:
        """The arrays by field."""
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, for caches."""
        return sum(array.nbytes for array in self.arrays().values())


@dataclass(frozen=True, eq=False)
class Result(Arrays):
    """The fields of the results of `Attribution`.

    Attributes:
        tokens: texts of the measured target tokens.
        ids: their ids.
        first: position of the first one in its strip: `target`, or `source` of a language model.
        log_probabilities: [token], without any further edit.
    """

    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    first: int
    log_probabilities: Array

    @property
    def total(self) -> float:
        """Log-probability of the whole target."""
        return float(self.log_probabilities.sum())

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; what is not a number is null."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)} | {"log_probability": self.total}


@dataclass(frozen=True, eq=False)
class HeadEffects(Result):
    """Effects of heads: the result of `Heads`.

    Attributes:
        heads: the heads, in the order in which they run.
        sites: the sites, in that order.
        without: [head, token], the change where the head is silenced.
        alone: [head, token], the change where every other head of its site is silenced.
        share: [head, token], its Shapley value: its part of what the heads of its site add. Those of a site sum to minus `none`.
        share_error: [head, token], the standard error of `share`; 0 where it is exact.
        total_share_error: [head], the standard error of a share's sum over the tokens.
        none: [site, token], the change where all heads of the site are silenced.
    Each is None where it was not asked for.
    """

    heads: tuple[Head, ...]
    sites: tuple[str, ...]
    without: Array | None = None
    alone: Array | None = None
    share: Array | None = None
    share_error: Array | None = None
    total_share_error: Array | None = None
    none: Array | None = None

    def to_json(self) -> dict[str, Any]:
        """`heads` lists every head with its numbers, for the whole target and (`…_tokens`) for each token."""
        heads = [self._head(index) for index in range(len(self.heads))]
        sites = [{"site": site} | _numbers("none", self.none, index) for index, site in enumerate(self.sites)]
        shared = {field.name: plain(getattr(self, field.name)) for field in fields(Result)}
        return shared | {"log_probability": self.total, "heads": heads, "sites": sites}

    def _head(self, index: int) -> dict[str, Any]:
        head, errors = self.heads[index], self.total_share_error
        summary: dict[str, Any] = {"site": head.site, "head": head.head}
        for name in ("without", "alone", "share"):
            summary |= _numbers(name, getattr(self, name), index)
        if errors is not None and errors[index] > 0:
            summary["share_error"] = plain(errors[index])
        return summary


@dataclass(frozen=True, eq=False)
class PruneCurve(Result):
    """Heads silenced one after the other.

    Attributes:
        order: the heads, in the order in which they were silenced.
        curve: [step, token], log-probabilities after so many heads were silenced: row 0 is the run itself.
        likeliest: [step, token], ids of the likeliest token at each place, the target before it being forced.
    """

    order: tuple[Head, ...]
    curve: Array
    likeliest: Array

    @property
    def breaks_at(self) -> int | None:
        """How many heads are silenced when a target token is for the first time not the likeliest; None: it never breaks."""
        # `argmax` of booleans is the first True; row 0 is the run itself, where a target that was given need not be the likeliest.
        broken = (self.likeliest != np.array(self.ids)).any(axis=1)
        return int(broken.argmax()) if broken.any() else None

    def to_json(self) -> dict[str, Any]:
        """All fields, with the log-probability of the whole target at each step and `breaks_at`."""
        return super().to_json() | {"totals": plain(self.curve.sum(axis=1)), "breaks_at": self.breaks_at}


@dataclass(frozen=True, eq=False)
class WordEffects(Result):
    """Effects of inputs on each target token. NaN where an input comes after the token, or a measure is not there (`missing`).

    Attributes:
        inputs: texts of the tokens that were read: those of the strips, one after the other.
        strips: the strip of each input, `source` or `target`.
        positions: its position in that strip.
        unknown: [token, input], the change where the input is replaced by the unknown token.
        padding: [token, input], the change where it is replaced by padding, which the masks hide, too.
        gradient: [token, input], gradient × input: how the log-probability would change with the input's vector, to first order.
        integrated: [token, input], integrated gradients from the baseline to the input; NaN for a token without any (`missing`).
        integrated_change: [token, input], by how much `integrated` is another number with half as many steps.
        difference: [token], log-probability minus that of the baseline: what the integrated gradients of a token sum to.
        residue: [token], what their sum lacks.
        attention: [token, input], weights of the row that wrote the token, the mean over heads and layers, for each strip.
        rollout: [token, input], attention rollout of that row.
        baseline: what every position of the baseline holds: the unknown token, padding, the end token, or zeros.
        missing: measures that are not there, for some or all target tokens, each with the reason.
    """

    inputs: tuple[str, ...]
    strips: tuple[str, ...]
    positions: tuple[int, ...]
    unknown: Array
    padding: Array
    gradient: Array
    integrated: Array
    integrated_change: Array
    difference: Array
    residue: Array
    attention: Array
    rollout: Array
    baseline: str
    missing: Mapping[str, Words]

    @property
    def largest_change(self) -> Array:
        """[token], the largest of `integrated_change`, as a share of the token's largest integrated gradient; NaN where unknown."""
        with np.errstate(all="ignore"):
            sizes = np.fmax.reduce(np.abs(self.integrated), axis=1)
            return np.asarray(np.fmax.reduce(self.integrated_change, axis=1) / sizes)


@dataclass(frozen=True, eq=False)
class EdgeEffects(Result):
    """Effects of forbidden edges of attention on one target token.

    At a site of the decoder the edge leads from the row that wrote the token, at one of the encoder from every row.

    Attributes:
        token: index of the target token among the measured ones.
        sites: the site of each row.
        heads: the head of each row; -1: all heads of the site together.
        strips: the strip of a row's keys, `source` or `target`.
        changes: [row, key], the change of the token's log-probability where the row may not look at the key. NaN where it could
            not anyway, or where there is no such key.
        emptied: [row, key], whether the edit left a query without any key, which the network then treats by its own rule.
    """

    token: int
    sites: tuple[str, ...]
    heads: tuple[int, ...]
    strips: tuple[str, ...]
    changes: Array
    emptied: Array


def plain(value: Any) -> Any:
    """A value as JSON has it: lists for arrays and tuples, None for what is not a finite number."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Phrase):
        return str(value)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return vars(value) if isinstance(value, Head) else value


def _numbers(name: str, array: Array | None, index: int) -> dict[str, Any]:
    """One row of [head or site, token]: its sum, and each token's number."""
    return {} if array is None else {name: plain(array[index].sum()), f"{name}_tokens": plain(array[index])}


Kind = TypeVar("Kind", bound=Arrays)


def to_bytes(result: Arrays) -> bytes:
    """A result as bytes: its arrays, and its other fields as JSON in the metadata."""
    arrays = {name: np.ascontiguousarray(array) for name, array in result.arrays().items()}
    others = {name: value for name, value in asdict(result).items() if name not in arrays}
    return save(arrays, metadata={"headlight": json.dumps(others, ensure_ascii=False)})


def from_bytes(kind: type[Kind], data: bytes) -> Kind:
    """The result in the bytes.

    Raises:
        WireError: they hold none of this kind.
    """
    try:
        arrays, metadata = tensors_and_metadata(data)
        values = {**arrays, **_others(get_type_hints(kind), json.loads(metadata["headlight"]))}
        return kind(**values)
    except (SafetensorError, BadSetting, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


def _others(hints: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The validated fields that are no arrays."""
    return {name: None if value is None else read(hints[name], value, name) for name, value in others.items()}


def endpoints(results: Mapping[Any, type[Arrays]]) -> tuple[Endpoint, ...]:
    """How questions travel that are answered with arrays.

    Args:
        results: the class of the answer by that of the question, whose first line of documentation is the summary.
    """
    return tuple(
        endpoint(question, ARRAYS, (question.__doc__ or "").splitlines()[0], to_bytes, partial(from_bytes, result))
        for question, result in results.items()
    )
