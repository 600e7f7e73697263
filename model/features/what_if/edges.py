"""Edges: what changes for one target token where a row of attention may not look at a key.

At a site of the decoder the edge leads from the row that predicts the token, at one of the encoder from every row, since no row of
the source belongs to a target token. The mask is closed before the softmax, so the rest of the row is brought to sum 1.
"""

from collections.abc import Iterator

import numpy as np

from model.errors import BadSetting, UnknownSite, phrase
from model.features.what_if.copies import Copies, Edge
from model.features.what_if.questions import Edges
from model.features.what_if.results import EdgeEffects
from model.features.what_if.scoring import Scorer
from model.trace.progress import OnCount, ignore_count
from model.trace.types import Array, Site, Trace, sites


def edge_effects(question: Edges, scorer: Scorer, trace: Trace, on_count: OnCount = ignore_count) -> EdgeEffects:
    """The answer to `question`.

    Args:
        trace: the run, whose masks say which keys are allowed.

    Raises:
        BadSetting: the target has no such token.
        UnknownSite: the network has no such site.
    """
    example = scorer.example
    if question.token >= len(example.following):
        last = len(example.following) - 1
        raise BadSetting(
            name="token",
            found=question.token,
            allowed=phrase("a whole number from 0 to {last}, because the target has no more tokens", last=last),
        )
    # A row of the result is a site, or a head of one; a column is a key. Only keys that the mask allows are measured.
    rows = list(_rows(question, sites(example.runner.info.spec)))
    query = example.first + question.token
    allowed = [_looking(trace, site, query).any(axis=0) for site, _ in rows]
    places = [(row, key) for row, keys in enumerate(allowed) for key in np.flatnonzero(keys).tolist()]
    # One copy for each such cell. In the decoder it closes a single row of the mask, in the encoder the key for every row.
    edges = [Edge(*rows[row], query if rows[row][0].stack == "decoder" else None, key) for row, key in places]
    # The first copy forbids nothing: all changes are differences from its score.
    scores = scorer.score(Copies(sites(example.runner.info.spec), edges=(None, *edges)), on_count)
    widest = max(trace.attention[site].mask.shape[1] for site, _ in rows)
    # Sites have different numbers of keys; NaN fills what a row does not have, and keys that its mask forbids anyway.
    changes, emptied = np.full((len(rows), widest), np.nan), np.zeros((len(rows), widest), bool)
    for (row, key), score in zip(places, scores[1:, question.token], strict=True):
        changes[row, key] = score - scores[0, question.token]
        looking = _looking(trace, rows[row][0], query)
        # True where some row may look at nothing but this key.
        emptied[row, key] = (looking[:, key] & (looking.sum(axis=1) == 1)).any()
    return EdgeEffects(
        tokens=example.tokens,
        ids=tuple(example.following.tolist()),
        first=example.first + 1,
        log_probabilities=scores[0],
        token=question.token,
        sites=tuple(str(site) for site, _ in rows),
        heads=tuple(-1 if head is None else head for _, head in rows),
        strips=tuple(trace.attention[site].key_tokens for site, _ in rows),
        changes=changes,
        emptied=emptied,
    )


def _rows(question: Edges, heads: dict[Site, int]) -> Iterator[tuple[Site, int | None]]:
    """The measured parts: each site, or each head of one."""
    if not question.site:
        yield from ((site, None) for site in heads)
        return
    site = Site.parse(question.site)
    if site not in heads:
        raise UnknownSite(asked=question.site, there=", ".join(map(str, heads)))
    yield from ((site, head) for head in range(heads[site]))


def _looking(trace: Trace, site: Site, query: int) -> Array:
    """[query, key], what the rows in question may look at."""
    mask = trace.attention[site].mask
    return mask[query : query + 1] if site.stack == "decoder" else mask
