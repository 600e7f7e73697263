"""The logit of a token, taken apart into an exact sum over the parts of the last state of the residual stream (docs/why.md)."""

from collections.abc import Sequence

import numpy as np

from model.checkpoints.loader import AnyNetwork
from model.errors import BadSetting, CannotMeasure, NotRecorded, phrase
from model.features.circuit.score_parts import difference, ran, tolerance
from model.features.circuit.stream import ResidualStream, Term
from model.features.circuit.sums import LogitSum, Part, Writes
from model.requests.edits import replaces_context
from model.requests.request import RunRequest
from model.trace.types import Array, Trace


def logit_sum(network: AnyNetwork, trace: Trace, asked: Writes) -> LogitSum:
    """The logit of a token as a sum. Arguments and errors as for `score_sum`.

    Raises:
        CannotMeasure: the network has no output layer.
        NotTakenApart: its maps are not known.
        NotRecorded: the run did not keep what is needed.
        BadSetting: the run wrote no such token, or the vocabulary has no such id.
    """
    steps = trace.steps
    if not steps or trace.model["spec"].get("output") is None:
        raise CannotMeasure(reason=phrase("it has no output layer, so no target has a probability"))
    if not 0 <= asked.token < len(steps):
        raise BadSetting(name="token", found=asked.token, allowed=phrase("a number from 0 to {last}", last=len(steps) - 1))
    if trace.logits is None:
        raise NotRecorded(asked="logits", reason=trace.missing.get("logits", "—"))
    step = steps[asked.token]
    # A step may compute several rows (the first one reads the whole prompt): the last of them chose the token.
    row, id_ = step.computed[1] - 1, step.chosen.id
    logits = trace.logits[row].astype(np.float64)
    other = _other(asked, logits, id_)
    anatomy = ran(network, trace)
    assert anatomy.output is not None
    read = anatomy.output([id_] if other is None else [id_, other])
    # A difference of two logits is one product, with the difference of both rows: so it is taken apart like a single
    # logit.
    direction = read.weight[0] - (read.weight[1] if other is not None else 0)  # [model]
    stream = ResidualStream(trace, anatomy.stacks)
    with np.errstate(all="ignore"):
        # A map with a single row, for a single position: each part gives one number. The stream is followed back from
        # the end, so the list is turned round into the order of the run.
        terms = stream.last(direction[None], np.array([row]))
        summands = [(term.part, float(term.value[0, 0]), *_taken(trace, term)) for term in terms][::-1]
        parts, values = [part for part, *_rest in summands], [value for _part, value, *_rest in summands]
        keys, strips = _by_key([by_key for *_rest, by_key, _strip in summands]), [strip for *_rest, strip in summands]
        if read.bias is not None:
            parts.append(Part("projection-bias", "output"))
            values.append(float(read.bias[0] - (read.bias[1] if other is not None else 0)))
        # The sum is float64, so what differs from the recorded logit is the rounding of the run itself.
        added = np.array(values)
        recorded = float(logits[id_] - (logits[other] if other is not None else 0))
        total = float(added.sum())
        rounded = np.append(added, logits[id_] if other is None else logits[[id_, other]])  # a difference has both errors
        most = logits.max()
        # The largest logit is taken out first: the exponential of a large logit would be infinite.
        log_sum_exp = float(most + np.log(np.exp(logits - most).sum()))
    return LogitSum(
        asked.token,
        row,
        id_,
        step.chosen.text,
        other,
        _text(trace, other),
        tuple(parts),
        added,
        # The bias of the logits is the last part and has no keys: a row of NaN is appended for it.
        np.pad(keys, ((0, len(parts) - len(keys)), (0, 0)), constant_values=np.nan),
        (*strips, *[""] * (len(parts) - len(strips))),
        total,
        recorded,
        log_sum_exp,
        difference(total, recorded),
        tolerance(trace, rounded, recorded),
    )


def _other(asked: Writes, logits: Array, id_: int) -> int | None:
    """The id of the token whose logit is taken away."""
    if asked.minus == "runner-up":
        # The chosen token need not be the likeliest one, as where the target was given: then the likeliest is the
        # other one.
        order = np.argsort(-logits, kind="stable")
        return int(order[0] if order[0] != id_ else order[1])
    if asked.minus is not None and asked.minus >= len(logits):
        raise BadSetting(name="minus", found=asked.minus, allowed=phrase("a number from 0 to {last}", last=len(logits) - 1))
    return asked.minus


def _taken(trace: Trace, term: Term) -> tuple[Array, str]:
    """What a head took from each key, [key], and their strip; nothing of a part that is no head.

    The context is the weighted sum of the values, unless an edit replaced it: then nothing is said of keys.
    """
    site, head = term.part.place, term.part.head
    if term.part.kind != "head":
        return np.zeros(0), ""
    attention = trace.at(site)
    assert attention.v is not None
    # A single row stands for all positions where a target of one token meets a memory.
    query = int(term.rows[0]) if attention.weights.shape[1] > 1 else 0
    weights = attention.weights[head, query].astype(np.float64)  # [key]
    # The way to the logit is linear: what holds for the context holds for each summand of it, weight · value. So this
    # adds up to the head's value. The matrix product runs over the head's numbers and leaves one number for each key.
    contributions = term.factor[0, 0] * weights * (attention.v[head].astype(np.float64) @ term.map[0])
    if any(replaces_context(edit, site, head) for edit in RunRequest.edits_in(trace.request)):
        contributions = np.full(len(contributions), np.nan)
    return contributions, attention.key_tokens if len(contributions) else ""


def _by_key(rows: Sequence[Array]) -> Array:
    """Rows of several lengths as one array [part, key]; NaN where a row has no more keys."""
    # NaN and not 0: no key is something else than a key of which nothing was taken.
    keys = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
    for number, row in enumerate(rows):
        keys[number, : len(row)] = row
    return keys


def _text(trace: Trace, id_: int | None) -> str:
    """The text of an id where the run has it, else the id."""
    if id_ is None:
        return ""
    candidates = (candidate for step in trace.steps for candidate in (step.chosen, *step.candidates))
    return next((candidate.text for candidate in candidates if candidate.id == id_), f"#{id_}")
