"""Latent attention: what is kept of each position, and the keys and values that all heads make of it."""

from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Site, Trace


@dataclass(frozen=True, eq=False)
class Latents:
    """The latents of one site.

    Attributes:
        kept: [key, kept], the latent of each position, then the rotated columns that the keys of all heads share.
        rotated: how many columns those are.
        made: [key, head, key_width + value_width], the keys, without the shared columns, and the values of every head.
    """

    kept: Array
    rotated: int
    made: Array


def of_site(trace: Trace, site: Site) -> Latents | None:
    """What a run recorded of a site; None: it has no latents, or they, keys or values were not recorded.

    The shared columns are the last ones of a key (DeepSeek-AI 2024, "DeepSeek-V2", equation 16); the network says how many.
    """
    latents, attention = trace.stages.get(f"{site}/latents"), trace.at(site)
    if latents is None or attention.k is None or attention.v is None:
        return None
    rotated = int(trace.model["spec"][site.stack]["attention"].get("rotated", 0))
    own_columns = attention.k.shape[-1] - rotated
    kept = np.concatenate([latents, attention.k[0, :, own_columns:]], axis=1)
    return Latents(kept, rotated, np.concatenate([attention.k[..., :own_columns], attention.v], axis=2).swapaxes(0, 1))
