"""Sums: a score and a logit taken apart into what the parts of the residual stream add to them. Questions and results, no torch.

A *part* is a vector that something wrote into the stream: the embedding, the position, each head, each feed-forward network, and
biases. docs/why.md derives both sums. Arrays are float64.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from model.features.what_if.results import Arrays, plain
from model.requests.questions import RunQuestion
from model.requests.validation import Between
from model.trace.types import Array

PartKind: TypeAlias = Literal[
    "embedding", "position", "embedded", "features", "head", "output-bias", "feed-forward", "norm-bias", "edit", "projection-bias"
]
"""What wrote a part of the stream."""

Index: TypeAlias = Annotated[int, Between(0, 2**31)]
Closed: TypeAlias = Literal["", "padding", "future", "edit", "mask"]
"""Why a cell is masked; empty: it is not."""


@dataclass(frozen=True)
class Part:
    """One part of the residual stream.

    Attributes:
        kind: what wrote it:

            - `embedding`, `position`: the token's embedding, scaled, and its positional encoding; `embedded`: both, where the run
              recorded only their sum; `features`: an input of vectors,
            - `head`: one head, weighted values times its part of the output matrix; `output-bias`: the bias of that matrix,
            - `feed-forward`: a feed-forward network, its biases included,
            - `norm-bias`: the bias of a normalization,
            - `edit`: what an edit put there, minus what was computed,
            - `projection-bias`: the bias of the queries or keys themselves, and of the logits.
        place: a stack, an attention site, a feed-forward sublayer (`decoder.0.2.feed_forward`), or `output`.
        head: of a `head`, counted from 0; else -1.
    """

    kind: PartKind
    place: str
    head: int = -1

    def __str__(self) -> str:
        """The part as text, such as `decoder.0.1.self head 0`."""
        if self.kind == "head":
            return f"{self.place} head {self.head}"
        if self.kind == "feed-forward":
            return self.place
        return f"{self.place} {self.kind}"


@dataclass(frozen=True)
class Why(RunQuestion["ScoreSum"]):
    """Why does a query attend to a key: its score as a sum over the parts of both. Indices count from 0.

    The run records everything, whatever `request.keep` says, so that equal requests share it.

    Attributes:
        minus: the sum is of the difference from the score of this key, or from the mean score of the keys that the query may
            attend to.
    """

    site: str
    head: int
    query: int
    key: int
    minus: Index | Literal["mean"] | None = None


@dataclass(frozen=True)
class Writes(RunQuestion["LogitSum"]):
    """What wrote a token: its logit as a sum over the parts of the last state.

    Attributes:
        token: which token of those that the run wrote or was forced to write, counted from 0.
        minus: the sum is of the difference from the logit of the token with this id, or of the likeliest other token.
    """

    token: Index
    minus: Index | Literal["runner-up"] | None = None


@dataclass(frozen=True)
class CellWrites(RunQuestion["CellWords"]):
    """What a weighted value writes: which tokens it makes likelier, and which less likely. Indices count from 0."""

    site: str
    head: int
    query: int
    key: int


@dataclass(frozen=True, eq=False)
class ScoreSum(Arrays):
    """The score of a cell as a sum: the result of `Why`.

    Attributes:
        site, head, query, key, minus: of the question.
        parts_query: parts of the stream that the query was made of.
        parts_key: parts of the stream that the key was made of.
        matrix: [part of the query, part of the key], what each two of them add to the score, or to the difference.
        distance: what a learned number for the distance adds; 0 where the network has none.
        score: sum of the matrix, plus `distance`.
        recorded: the score that the run recorded or, where it recorded none, the product of its query and key in float64.
        scored: whether the run computed this score; False: the key lay in the future of a cached step.
        closed: why the mask hides the key; empty: it does not.
        difference: |score - recorded|, divided by |recorded| where that is above 1.
        tolerance: largest difference that rounding in the run's number type explains.
    """

    site: str
    head: int
    query: int
    key: int
    minus: int | Literal["mean"] | None
    parts_query: tuple[Part, ...]
    parts_key: tuple[Part, ...]
    matrix: Array
    distance: float
    score: float
    recorded: float
    scored: bool
    closed: Closed
    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the sum is the recorded score, up to rounding; False where any number is NaN."""
        return self.difference <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; parts have their `text` and the `sum` of their row or column. NaN becomes null."""
        summary = {field.name: plain(getattr(self, field.name)) for field in fields(self)}
        sides = {"parts_query": self.matrix.sum(axis=1), "parts_key": self.matrix.sum(axis=0)}
        for name, sums in sides.items():
            summary[name] = [
                vars(part) | {"text": str(part), "sum": plain(total)} for part, total in zip(getattr(self, name), sums, strict=True)
            ]
        return summary | {"agrees": self.agrees}


@dataclass(frozen=True, eq=False)
class LogitSum(Arrays):
    """The logit of a token as a sum: the result of `Writes`.

    Attributes:
        token: of the question.
        row: the row of the decoder that wrote it.
        id, text: the token.
        minus, minus_text: id and text of the token whose logit is taken away; None and empty: the sum is of the logit itself.
        parts: parts of the last state; the last one is the bias of the logits, if there is one.
        values: [part], what each adds to the logit, or to the difference.
        keys: [part, key], of a head: what it took from each token, which adds up to its value. NaN for other parts, where there is
            no such key, and for heads whose values an edit replaced.
        strips: for each part the strip of its keys; empty: it is no head.
        logit: sum of the values.
        recorded: the logit that the run recorded, or the difference of two.
        log_sum_exp: logarithm of the sum of all exponentials: the logit minus this is the token's log-probability.
        difference: |logit - recorded|, divided by |recorded| where that is above 1.
        tolerance: largest difference that rounding in the run's number type explains.
    """

    token: int
    row: int
    id: int
    text: str
    minus: int | None
    minus_text: str
    parts: tuple[Part, ...]
    values: Array
    keys: Array
    strips: tuple[str, ...]
    logit: float
    recorded: float
    log_sum_exp: float
    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the sum is the recorded logit, up to rounding; False where any number is NaN."""
        return self.difference <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; each part with its `text`, its `value` and, of a head, its `keys`. NaN becomes null."""
        of_parts = ("parts", "values", "keys", "strips")
        summary = {field.name: plain(getattr(self, field.name)) for field in fields(self) if field.name not in of_parts}
        # Rows of keys are filled up with NaN to the longest one; of each head the part that is its own is written.
        summary["parts"] = [
            vars(part)
            | {"text": str(part), "value": plain(value)}
            | ({"strip": strip, "keys": plain(keys[: _last(keys) + 1])} if strip else {})
            for part, value, keys, strip in zip(self.parts, self.values, self.keys, self.strips, strict=True)
        ]
        return summary | {"agrees": self.agrees}


@dataclass(frozen=True, eq=False)
class CellWords(Arrays):
    """The tokens whose logits one weighted value moves most: the result of `CellWrites`.

    Attributes:
        site, head, query, key: of the question.
        ids, texts: the tokens that it pushes up most, the strongest first, then those that it pushes down most, at most five each;
            none where the weight is 0.
        values: [token], what it adds to each logit, less the mean of that over the vocabulary: a number that all logits have in
            common changes no probability.
    """

    site: str
    head: int
    query: int
    key: int
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    values: Array

    @property
    def up(self) -> list[tuple[str, float]]:
        """The tokens that are pushed up, and how far."""
        return [(text, value) for text, value in zip(self.texts, self.values.tolist(), strict=True) if value > 0]

    @property
    def down(self) -> list[tuple[str, float]]:
        """The tokens that are pushed down, and how far."""
        return [(text, value) for text, value in zip(self.texts, self.values.tolist(), strict=True) if value < 0]


def _last(keys: Array) -> int:
    """Index of the last key of a head; -1: there is none."""
    return int(np.flatnonzero(~np.isnan(keys))[-1]) if not np.isnan(keys).all() else -1
