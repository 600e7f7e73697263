"""Attention rollout: how far each input token is the origin of a stream's state, if heads were alike and weights all that counted.

A stream's state after some sublayers is followed back to the tokens that were put in. An attention sublayer inside a residual
connection is taken to make half of what it reads through attention, and to keep half of what was there:

    encoder     R ← ½ (W̄ + I) R                       from R = I
    decoder     T ← ½ (W̄ + I) T,  S ← ½ (W̄ + I) S     self-attention, from T = I and S = 0
                T ← ½ T,          S ← ½ (C̄ R + S)     cross-attention

W̄ and C̄ are a site's weights, averaged over its heads; R [source, source] is the encoder's rollout, T [target, target] and
S [target, source] are what a decoder's state owes to its own tokens and to the source's. The newest factor is at the left. A
stack without residual connections has W̄ in place of ½ (W̄ + I). Each row of R, and of T and S together, sums to 1 where the rows of
the weights do.

Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3, for self-attention. The paper has no
cross-attention: its two lines are the same rule, with the encoder's output in the place of what is read.
"""

from collections.abc import Iterable

import numpy as np

from model.trace.types import Array, Attention, Site, Trace


def can_be_rolled_out(trace: Trace, site: Site) -> bool:
    """Whether each attention before `site` adds to the stream that asks: not where a decoder lets the encoder's output ask."""
    return site.stack == "encoder" or all(other.kind != "memory" for other in trace.attention)


def rollout(trace: Trace, site: Site, bare: Iterable[str] = ()) -> Array:
    """The rollout after the attention at `site`, back to the tokens that are the site's keys.

    Args:
        trace: the run.
        site: one of its sites, which `can_be_rolled_out`: R for an encoder's, T for a decoder's self-attention, S for its
            cross-attention.
        bare: stacks without residual connections.

    Returns:
        [query, key], float64.

    Raises:
        UnknownSite: the run has no such site.
    """
    last = list(trace.attention).index(trace.at(site).site)
    ran = list(trace.attention.values())[: last + 1]
    source = _from_source([a for a in ran if a.site.stack == "encoder"], "encoder" in bare)
    if site.stack == "encoder" and source is not None:
        return source
    to_target, to_source = _from_target([a for a in ran if a.site.stack == "decoder"], source, "decoder" in bare)
    return to_source if site.kind == "cross" else to_target


def origins(trace: Trace) -> tuple[Array, Array]:
    """T [target, target] and S [target, source] after the last layer of a decoder; S has no columns where there is no encoder."""
    ran = list(trace.attention.values())
    source = _from_source([a for a in ran if a.site.stack == "encoder"], bare=False)
    return _from_target([a for a in ran if a.site.stack == "decoder"], source, bare=False)


def _from_source(ran: list[Attention], bare: bool) -> Array | None:
    """R after the encoder's sites that ran; None: there is none."""
    shares = None
    for attention in ran:
        step = _step(attention, bare)
        shares = step if shares is None else step @ shares
    return shares


def _from_target(ran: list[Attention], source: Array | None, bare: bool) -> tuple[Array, Array]:
    """T and S after the decoder's sites that ran, given R (None: the source goes into cross-attention as it is)."""
    rows = ran[0].weights.shape[1]
    keys = next((a.weights.shape[2] for a in ran if a.site.kind == "cross"), 0)
    to_target, to_source = np.eye(rows), np.zeros((rows, keys))
    for attention in ran:
        if attention.site.kind == "self":
            step = _step(attention, bare)
            to_target, to_source = step @ to_target, step @ to_source
        else:
            # Half of the stream stays what it was, the other half comes from the source, by way of what the encoder made of it.
            weights = attention.weights.mean(axis=0, dtype=np.float64)
            to_target, to_source = to_target / 2, (to_source + (weights if source is None else weights @ source)) / 2
    return to_target, to_source


def _step(attention: Attention, bare: bool) -> Array:
    """½ (W̄ + I), or W̄: [query, key] of a self-attention."""
    weights: Array = attention.weights.mean(axis=0, dtype=np.float64)
    return weights if bare else (weights + np.eye(len(weights))) / 2
