"""What one weighted value writes: weight × value, led through the output matrix, the norms after it and the output layer.

It goes the direct way alone, from the head into the last state of the decoder, with the spreads of all norms as in this run
(docs/why.md). What later layers make of it is no part of it.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from model.checkpoints.loader import AnyNetwork, Runner
from model.errors import CannotMeasure, EditedCell, phrase
from model.features.circuit.score_parts import ran
from model.features.circuit.stream import ResidualStream
from model.features.circuit.sums import CellWords, CellWrites, Part
from model.inference.inputs import Reader
from model.requests.edits import replaces_context, replaces_output
from model.requests.request import RunRequest
from model.trace.cell_arithmetic import check_cell
from model.trace.types import Array, Trace

MOST = 5
"""Tokens that are named on either side."""

ROWS = 4096
"""Rows of the output layer that are made float64 at once: of a model of 4,096 dimensions, 134 MB."""


def cell_words(runner: Runner, trace: Trace, asked: CellWrites) -> CellWords:
    """The tokens that one weighted value pushes up and down.

    Args:
        runner: the network of the run, before its edits, and its vocabulary.
        trace: the run, which keeps everything.

    Raises:
        HeadlightError: as `pushes` says.
    """
    changes = pushes(runner.network, trace, asked)
    # Stable: of tokens that are pushed equally far always the same one comes first.
    order = np.argsort(-changes, kind="stable")
    # The list of what is pushed up must not be filled up with tokens that go down, so it may be shorter than five.
    ids = tuple(id_ for id_ in order[:MOST].tolist() if changes[id_] > 0)
    ids += tuple(id_ for id_ in order[::-1][:MOST].tolist() if changes[id_] < 0)
    strip = "target" if "target" in runner.tokenizers else "source"
    texts = Reader(runner.tokenizers, torch.device("cpu")).tokens(strip, ids).texts
    return CellWords(asked.site, asked.head, asked.query, asked.key, ids, texts, changes[list(ids)])


def pushes(network: AnyNetwork, trace: Trace, asked: CellWrites) -> Array:
    """What one weighted value adds to every logit of its row, less the mean over the vocabulary: [vocab].

    Raises:
        UnknownSite, UnknownHead, BadSetting: the run has no such cell.
        CannotMeasure: the network has no output layer, or nothing leads from this cell directly to a written token.
        NotTakenApart: the network's maps are not known.
        EditedCell: an edit replaced what the head writes.
        NotRecorded: the run did not keep what is needed.
    """
    attention = check_cell(trace, asked.site, asked.head, asked.query, asked.key)
    if trace.model["spec"].get("output") is None:
        raise CannotMeasure(reason=phrase("it has no output layer, so no target has a probability"))
    # After such an edit the weight times the value is not what the head wrote.
    for edit in RunRequest.edits_in(trace.request):
        if replaces_context(edit, asked.site, asked.head) or replaces_output(edit, asked.site):
            raise EditedCell(site=asked.site, head=asked.head, edit=str(edit))
    anatomy = ran(network, trace)
    assert anatomy.unembedding is not None
    stack = anatomy.stacks["decoder"]
    last = len(trace.embedded["decoder"]) - 1
    with np.errstate(all="ignore"):
        stream = ResidualStream(trace, anatomy.stacks)
        # The identity as the map: what is read is the last state itself. The output layer follows below, in pieces,
        # since it is large.
        term = stream.written(Part("head", str(attention.site), asked.head), np.eye(stack.width), min(asked.query, last))
        # None: the way back from the last state does not meet this head, as in an encoder whose output only other
        # heads read. Another row: where the stream goes on from the encoder's output, the row that is met need not be
        # that of the cell.
        if term is None or (attention.weights.shape[1] > 1 and int(term.rows[0]) != asked.query):
            raise CannotMeasure(
                reason=phrase("what this head adds reaches the state that predicts a token only through other heads")
            )
        assert attention.v is not None
        # The head's context is the sum of weight · value over all keys. One summand of it takes the same linear way
        # to the logits.
        weight = float(attention.weights[asked.head, asked.query, asked.key])
        moved = weight * attention.v[asked.head, asked.key].astype(np.float64)
        logits = _logits(anatomy.unembedding, replace(term, written=moved[None]).value[0])
    if not np.isfinite(logits).all():
        raise CannotMeasure(reason=phrase("some of its numbers are NaN or infinite"))
    # A number that all logits have in common changes no probability, so it says nothing of any token.
    return np.asarray(logits - logits.mean())


def _logits(weight: Tensor, state: Array) -> Array:
    """The output layer's weight [vocab, model] times a state [model], in float64."""
    # A few thousand rows at a time: the whole table in float64 could need more memory than the model itself.
    vector = torch.from_numpy(np.ascontiguousarray(state))
    rows = [rows.detach().cpu().double() @ vector for rows in weight.split(ROWS)]
    rotated: Array = torch.cat(rows).numpy()
    return rotated
