"""The mean context vectors of every head over a model's own example sentences, computed once for each version of its weights."""

from collections.abc import Callable, Mapping

import numpy as np
from cachetools import LRUCache

from model.checkpoints.loader import Runner
from model.errors import CannotChange, Phrase, phrase
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array, Attention, Site, Trace

_MEANS: LRUCache[tuple[str, str], dict[Site, Array]] = LRUCache(16)
"""By fingerprint and number type; heads times head_dim numbers a site, so 16 models are small."""


def example_means(checkpoint: Runner, dtype: str, traced: Callable[[RunRequest], Trace]) -> dict[Site, Array]:
    """[head, head_dim] by site: the mean over all positions of all examples, each decoded greedily, without edits.

    Args:
        dtype: the number type of the network.
        traced: runs a request.

    Raises:
        CannotChange: the model has no examples.
    """
    examples = checkpoint.info.examples
    if not examples:
        raise CannotChange(name="mean", reason=phrase("this model comes without example sentences"))
    key = checkpoint.fingerprint, dtype
    # Two runs that ask at the same time both compute it, and the second overwrites the first with equal numbers.
    if (means := _MEANS.get(key)) is None:
        asked = [RunRequest(checkpoint.info.title, text, decoding=Decoding(), keep=("context",)) for text in examples]
        traces = [traced(request).attention for request in asked]
        # Every position of every example counts equally: the rows of all are joined before the mean is taken.
        means = {site: np.concatenate([_context(maps, site) for maps in traces], axis=1).mean(axis=1) for site in traces[0]}
        _MEANS[key] = means
    return means


def _context(maps: Mapping[Site, Attention], site: Site) -> Array:
    context = maps[site].context
    assert context is not None, "it is kept"
    return context


def of_what(checkpoint: Runner) -> Phrase:
    """Which sentences the mean over examples is of."""
    # A folder of another program brings no examples: it gets a sentence that is the same for all, and the note says so.
    texts = "; ".join(checkpoint.info.examples)
    if not checkpoint.info.own_examples:
        return phrase(
            "The mean over examples is that of one sentence, the same for every folder, and of what the model writes after it: "
            "{texts}",
            texts=texts,
        )
    return phrase(
        "The mean over examples is that of this model’s own example sentences and of what it writes for them: {texts}", texts=texts
    )
