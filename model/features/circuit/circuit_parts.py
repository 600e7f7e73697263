"""What each head used of the parts that it read, and how far two heads' matrices compose (docs/circuit.md).

Sources: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", for composition and for the copying score by
eigenvalues.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from model.checkpoints.loader import AnyNetwork
from model.errors import BadSetting, EditedCell, phrase
from model.features.circuit.anatomy import Affine, Anatomy, Heads, Stack, float64
from model.features.circuit.circuits import SIDES, CircuitGraph, Side
from model.features.circuit.score_parts import difference, ran, refuse_changed_scores, tolerance
from model.features.circuit.stream import ResidualStream, Term
from model.features.circuit.sums import Part
from model.features.what_if.results import Head
from model.requests.edits import replaces_context
from model.requests.request import RunRequest
from model.trace.progress import OnCount, ignore_count
from model.trace.types import Array, Attention, Trace


def circuit(network: AnyNetwork, trace: Trace, on_count: OnCount = ignore_count, row: int | None = None) -> CircuitGraph:
    """What each head of a run used of each part that it read.

    Args:
        network: the network of the run, before its edits.
        trace: the run, which keeps everything.
        on_count: called with the number of heads done, and of all heads.
        row: as in `Circuit`.

    Raises:
        BadSetting: the run has no such row.
        NotTakenApart: the network's maps are not known.
        NotRecorded: the run did not keep what is needed.
    """
    anatomy = ran(network, trace)
    _check_row(trace, row)
    stream = ResidualStream(trace, anatomy.stacks)
    # Many later heads read the same earlier head; the cache makes its products once.
    copies, earlier = _copying(anatomy, stream, trace), cache(lambda site, head: _inner_products(stream, site, head))
    heads = [Head(str(site), head) for site, attention in trace.attention.items() for head in range(attention.heads)]
    rows = list[tuple[_Side, ...]]()
    on_count(0, len(heads))
    # A run may hold NaN or infinite numbers, for instance after an edit. They go into the result as they are, without
    # warnings.
    with np.errstate(all="ignore"):
        for done, head in enumerate(heads, start=1):
            rows.append(_of_head(stream, trace, trace.at(head.site), head.head, earlier, row))
            on_count(done, len(heads))
    # The keys of a dictionary are a list without repeats that remembers its order: the columns of the arrays below.
    parts = tuple(dict.fromkeys(part for row in rows for side in row for part in side.used))
    places = {part: column for column, part in enumerate(parts)}
    # NaN and not 0: a head that does not read a part is something else than one that reads it and uses nothing of it.
    used, composition = (np.full((len(SIDES), len(heads), len(parts)), np.nan) for _ in range(2))
    for row, sides in enumerate(rows):
        for number, side in enumerate(sides):
            for part, value in side.used.items():
                used[number, row, places[part]] = value
            for part, value in side.composed.items():
                composition[number, row, places[part]] = value
    # Three numbers of each side, of which each becomes an array [side, head] of its own.
    numbers = np.array([[(side.total, side.difference, side.tolerance) for side in row] for row in rows])  # [head, side, 3]
    total, differ, allowed = (numbers[..., index].T.copy() for index in range(3))
    chance = np.array([stream.stacks[head.site.partition(".")[0]].width ** -0.5 for head in heads])
    copying = np.array([copies.get((head.site, head.head), np.nan) for head in heads])
    return CircuitGraph(tuple(heads), parts, used, total, differ, allowed, composition, chance, copying)


@dataclass(frozen=True)
class _Side:
    """The queries, keys or values of one head: what each part adds, and how far the matrices of heads compose."""

    used: dict[Part, float]
    composed: dict[Part, float]
    total: float
    difference: float
    tolerance: float


def _check_row(trace: Trace, row: int | None) -> None:
    """Refuses a row that the stack that writes does not have."""
    if row is None:
        return
    # Sites of one stack can have different numbers of rows, since those of a memory are source positions.
    rows = max(len(attention.mask) for site, attention in trace.attention.items() if site.stack == _writer(trace))
    if not 0 <= row < rows:
        raise BadSetting(name="row", found=row, allowed=phrase("a number from 0 to {last}", last=rows - 1))


def _writer(trace: Trace) -> str:
    """The stack that writes; an encoder alone is read as it stands."""
    stacks = {site.stack for site in trace.attention}
    return "decoder" if "decoder" in stacks else next(iter(stacks))


def _of_head(
    stream: ResidualStream,
    trace: Trace,
    attention: Attention,
    head: int,
    earlier: Callable[[str, int], tuple[Array, Array]],
    row: int | None,
) -> tuple[_Side, ...]:
    """The three sides of a head, in the order of SIDES.

    Args:
        earlier: `_inner_products` of an earlier head.
    """
    stack = stream.stacks[attention.site.stack]
    maps = stack.sublayers[stack.index(str(attention.site))].heads
    assert maps is not None
    # A single row is one of the stack that writes. An encoder's heads have other rows, so all of theirs count.
    heads, weighed = maps(), _weighed(trace, attention, head, row if attention.site.stack == _writer(trace) else None)
    # The output matrix reads the contexts of all heads side by side: this head's are its columns.
    output = heads.output.weight[:, head * (width := weighed.context.shape[1]) : (head + 1) * width]  # [model, head_dim]
    # What a query meets is a key, and a key a query; what a value meets is the output matrix. So this is the matrix
    # that continues what an earlier head put into the side.
    factors = {"query": heads.weight("key", head), "key": heads.weight("query", head), "value": output.T}
    sides = list[_Side]()
    for side in SIDES:
        # The number of a side is a sum over rows of reading · vector. That is linear in the vector, so each part has
        # its summand.
        reading, total = weighed.reading(side, heads.scale, output)
        projection: Affine = getattr(heads, side)(head)
        # `read` goes back from the head; the other way round, the parts come in the order in which the run wrote
        # them.
        terms = [*stream.read(attention.site, side, projection.weight, np.arange(len(reading)))][::-1]
        written = [term for term in terms if term.part.kind == "head"]
        # Norms of products need only this small matrix, never one of the size of the model (see `_composition`).
        later = factors[side] @ factors[side].T  # [head_dim, head_dim]
        composed = {term.part: _composition(term, later, *earlier(term.part.place, term.part.head)) for term in written}
        bias = np.zeros(1) if projection.bias is None else projection.bias
        whole = np.broadcast_to(bias, reading.shape)  # [row, head_dim]; of all parts, where a norm has its spread
        # A norm of queries or keys divides by the spread of the whole, so all parts are added up first.
        if side in heads.norms:
            whole = sum((term.value for term in terms), whole)
        used = {term.part: _sum(heads, side, reading, term.value, whole) for term in terms}
        if projection.bias is not None:
            added = np.broadcast_to(bias, reading.shape)
            used[Part("projection-bias", str(attention.site), head)] = _sum(heads, side, reading, added, whole)
        values = np.array(list(used.values()))
        off = difference(float(values.sum()), total)
        sides.append(_Side(used, composed, total, off, tolerance(trace, values, total)))
    return tuple(sides)


def _sum(heads: Heads, side: Side, reading: Array, vectors: Array, whole: Array) -> float:
    """The sum over the rows of reading · vector, both [row, head_dim]; queries and keys as they are compared."""
    # Queries and keys are compared after their norm and rotation; values are never rotated.
    if side != "value":
        vectors = heads.compared(side, vectors[None], whole, 0)[0]
    return float(np.vdot(reading, vectors))


@dataclass(frozen=True, eq=False)
class _Weighed:
    """What one head did in a run.

    Attributes:
        query: [query, head_dim]; key: [key, head_dim]; context: [query, head_dim], 0 in rows that do not count, as their weights.
        weights: [query, key].
        excess: [query, key], weight minus that of an even row, divided by the number of rows that count; 0 in all others.
        scores: [query, key]; NaN where the run computed none.
        changed: whether an edit replaced its context, or multiplied its scores: its sums are then not known.
    """

    query: Array
    key: Array
    context: Array
    weights: Array
    excess: Array
    scores: Array | None
    changed: tuple[bool, bool]

    def reading(self, side: Side, scale: float, output: Array) -> tuple[Array, float]:
        """What queries, keys or values are multiplied by, [row, head_dim], and the number that all products add up to."""
        if side == "value":
            # The head's output is O c, and a part's share is measured along it. The inner product of O c and O v is c
            # · (Oᵀ O) · v, so vectors as wide as the model are not needed.
            along = self.context @ (output.T @ output)  # [query, head_dim]
            size = float((along * self.context).sum())
            # A key's value goes to every query by its weight: the sum is over queries. Divided by ‖O c‖², the parts
            # add up to 1.
            return self.weights.T @ along / size, np.nan if self.changed[0] or not size else 1.0
        # The lift is the sum of excess · score over all cells, and a score is query · key. So a query is multiplied
        # by the sum of keys, each by its excess, and a key by such a sum of queries.
        reading = scale * (self.excess @ self.key if side == "query" else self.excess.T @ self.query)
        # A score that the run did not compute is NaN. It needs a number even where its excess is 0, since 0 · NaN is
        # NaN.
        products = scale * self.query @ self.key.T
        scores = products if self.scores is None else np.where(np.isnan(self.scores), products, self.scores)
        return reading, np.nan if self.changed[1] else float((self.excess * scores).sum())


def _weighed(trace: Trace, attention: Attention, head: int, row: int | None) -> _Weighed:
    site = str(attention.site)
    arrays = (attention.q, attention.k, attention.context, attention.weights)
    # Copies in float64: what is set to 0 below stays as it was in the trace.
    query, key, context, weights = (np.asarray(array[head]).astype(np.float64) for array in arrays if array is not None)
    allowed = np.asarray(attention.mask)
    counts = allowed.sum(axis=1, keepdims=True)
    # The softmax of a single key is 1 whatever its score: such a row has nothing to explain.
    choice = counts[:, 0] > 1
    if row is not None:
        others = np.arange(len(weights)) != row
        choice &= ~others
        weights[others] = context[others] = 0.0
    # Each row of this adds up to 0, so a number that all scores of a row share cancels, as it does in the softmax.
    # `maximum` only avoids a division by 0: rows without any allowed key are left out by `choice`.
    excess = np.where(choice[:, None], weights - allowed / np.maximum(counts, 1), 0.0) / max(1, int(choice.sum()))
    scores = None if attention.scores is None else np.asarray(attention.scores[head]).astype(np.float64)
    replaced = any(replaces_context(edit, site, head) for edit in RunRequest.edits_in(trace.request))
    try:
        refuse_changed_scores(trace, site, head)
    except EditedCell:
        return _Weighed(query, key, context, weights, excess, scores, (replaced, True))
    return _Weighed(query, key, context, weights, excess, scores, (replaced, False))


# --- From the weights alone ------------------------------------------------------------------------------------------------------


def _inner_products(stream: ResidualStream, site: str, head: int) -> tuple[Array, Array]:
    """Oᵀ O and V Vᵀ, [head_dim, head_dim], of a head's output matrix O [model, head_dim] and value matrix V [head_dim, model]."""
    stack = stream.stacks[site.partition(".")[0]]
    heads = stack.sublayers[stack.index(site)].heads
    assert heads is not None
    value = heads().value(head).weight
    output = heads().output.weight[:, head * len(value) : (head + 1) * len(value)]
    return output.T @ output, value @ value.T


def _composition(term: Term, later: Array, output: Array, value: Array) -> float:
    """‖L M O V‖ / (‖L M‖ ‖O V‖), Frobenius norms: L M is the later head's matrix with the norms between, O V the earlier head's.

    Args:
        term: what the earlier head wrote, with the map M from the stream to the later head's query, key or value.
        later: Lᵀ L of the later head's other matrix: [head_dim, head_dim].
        output, value: `_inner_products` of the earlier head.
    """
    # The squares of the three norms. ‖A B‖² is the sum of all products of the cells of Aᵀ A and B Bᵀ, which are as
    # small as a head. `term.map` is M O: it begins at the earlier head's context.
    whole = np.vdot(later @ term.map, term.map @ value)
    sizes = np.vdot(later, term.flow.gram) * np.vdot(output, value)
    return float(np.sqrt(whole / sizes)) if sizes > 0 else float("nan")


def copying_scores(network: AnyNetwork, trace: Trace) -> dict[tuple[str, int], float]:
    """The copying score of each head that has one, by site and number, from -1 to 1. They follow from the weights alone.

    Args:
        network: the network of the run.
        trace: any run of it without edits, which keeps everything.

    Raises:
        NotTakenApart: the network's maps are not known.
        NotRecorded: the run did not keep what is needed.
    """
    anatomy = ran(network, trace)
    with np.errstate(all="ignore"):
        return _copying(anatomy, ResidualStream(trace, anatomy.stacks), trace)


def _copying(anatomy: Anatomy, stream: ResidualStream, trace: Trace) -> dict[tuple[str, int], float]:
    """Σ Re λ / Σ |λ| of the matrix [vocab, vocab] from the token that a head reads to the logits, for the decoder's self-attention.

    Its eigenvalues other than 0 are those of a matrix [head_dim, head_dim] with the factors in another order.
    """
    embedding, output = anatomy.embedding, anatomy.unembedding
    # "The same token" has a meaning only where what is read and what is written are of one vocabulary.
    if embedding is None or output is None or len(embedding) != len(output) or "decoder" not in stream.stacks:
        return {}
    stack: Stack = stream.stacks["decoder"]
    # Summed over the vocabulary: a matrix [vocab, vocab] would fit into no memory.
    shared = float64(embedding).T @ float64(output)  # [model, model]
    # The last state as each head's context moves it. A term's map leaves out the spreads of the norms, which would
    # scale all eigenvalues alike and cancel in the ratio; so any row will do, here the first.
    written = {
        (term.part.place, term.part.head): term.map
        for term in [*stream.last(np.eye(stack.width), np.zeros(1, np.int64))][::-1]
        if term.columns is not None
    }
    numbers = dict[tuple[str, int], float]()
    for (name, head), end in written.items():
        site = trace.at(name).site
        if site.stack != "decoder" or site.kind != "self":
            continue
        heads = stack.sublayers[stack.index(name)].heads
        assert heads is not None
        terms = stream.read(site, "value", heads().value(head).weight, np.zeros(1, np.int64))
        # From the token's embedding to this head's value, through the norm before the head.
        begin = next((term.flow.map for term in terms if term.part.kind in ("embedding", "embedded")), None)
        if begin is not None:
            values = np.linalg.eigvals(begin @ shared @ end) if np.isfinite(begin).all() else np.full(1, np.nan)
            # An eigenvalue with a positive real part: a token that is read makes itself likelier. With a negative
            # one, less likely.
            size = np.abs(values).sum()
            numbers[name, head] = float(values.real.sum() / size) if size > 0 else float("nan")
    return numbers
