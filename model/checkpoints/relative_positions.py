"""Positions inside attention: by how much a site turns queries and keys, or what it adds to the scores for each distance."""

import sys
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from model.checkpoints import head_circuits
from model.checkpoints.loader import AnyNetwork
from model.huggingface.network import ForeignNetwork, WholeNetwork
from model.trace.types import Site
from model.transformer.positions import angles, rotary_pairs

FARTHEST = 128
"""Distances before and after a query whose learned numbers are told."""

CHANGING = ("dynamic", "longrope")
"""Scalings of the transformers library with which the angles depend on the length of the text."""


def rotation(network: AnyNetwork, site: Site) -> Tensor | None:
    """The pairs of columns that a site turns by the position: [pair, 3], float64; None: it turns none, or it is not known.

    A row holds the first column of a pair, the second, and the angle in radians by which one position turns the first towards the
    second. Columns that are in no row are not turned (partial rotary positions). Scaled angles (linear, NTK, YaRN, Llama 3) are
    those that the network computes with.

    Source: Su et al. 2021, "RoFormer", equation 15.
    """
    if isinstance(network, WholeNetwork) or site.kind != "self":
        return None
    if isinstance(network, ForeignNetwork):
        return _library_rotation(network, site)
    attention = head_circuits.sites(network).get(site)
    turn = None if attention is None else attention.rotation
    if attention is None or not isinstance(turn, partial):
        return None
    width = attention.query.out_features // attention.heads
    columns = torch.arange(width).reshape((-1, 2) if turn.func is rotary_pairs else (2, -1))
    first, second = columns.unbind(1 if turn.func is rotary_pairs else 0)
    return torch.stack([first.double(), second.double(), angles(1, 1, width, turn.keywords["base"])[0].double()], dim=1)


def _library_rotation(network: ForeignNetwork, site: Site) -> Tensor | None:
    """As `rotation`, from the library's own tables and its own function that exchanges the columns of a pair."""
    places = network.places
    module = next((module for module, own in places.sites.items() if site in own), None)
    exchange = module and getattr(sys.modules[type(module).__module__], "rotate_half", None)
    if exchange is None or places.positions != "rotary" or places.found:
        return None  # in some architectures without a row not every layer turns, or not every column
    config = network.library.config.get_text_config()  # type: ignore[operator, union-attr]  # untyped library
    kind = layers[site.layer] if (layers := getattr(config, "layer_types", None)) else ""
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get(kind, rope).get("rope_type") in CHANGING:
        return None
    tables = {name.rpartition(".")[2]: table for name, table in network.library.named_buffers()}
    waves = tables.get(f"{kind}_inv_freq", tables.get("inv_freq"))  # some architectures have waves of their own in local layers
    if waves is None:
        return None
    numbered = torch.arange(1.0, 2 * len(waves) + 1)
    exchanged = exchange(numbered)  # -b, a where columns a and b are a pair: -5, -6, …, 1, 2, … or -2, 1, -4, 3, …
    first = (exchanged < 0).nonzero()[:, 0]
    second = -exchanged[first] - 1
    return torch.stack([first.double(), second.double(), waves.detach().cpu().double()], dim=1)


def biases(network: AnyNetwork, site: Site) -> Tensor | None:
    """The learned numbers that a site adds to its scores, by distance: [head, distance], float64; None: there are none.

    Distances are those of the key from the query, from -FARTHEST (before it) to FARTHEST (after it). T5's layers share those of the
    first.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", section 2.1.
    """
    if isinstance(network, WholeNetwork):
        return _slopes(network, site)
    if not isinstance(network, ForeignNetwork) or network.places.positions != "relative" or site.kind != "self":
        return None
    modules: dict[Site, Any] = {own: module for module, sites in network.places.sites.items() for own in sites}
    if site not in modules:
        return None
    with torch.inference_mode():
        table: Tensor = modules[replace(site, layer=0)].compute_bias(2 * FARTHEST + 1, 2 * FARTHEST + 1)  # [1, head, query, key]
    return table[0, :, FARTHEST].detach().cpu().double()


def _slopes(network: WholeNetwork, site: Site) -> Tensor | None:
    """What ALiBi adds to the scores of a head: its slope times the distance, as `biases`, from the library's own function.

    Source: Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation".
    """
    library: Any = network.library
    config, file = library.config, sys.modules[type(library).__module__]
    heads = int(getattr(config, "num_attention_heads", 0) or getattr(config, "n_heads", 0))
    if site.kind != "self" or not heads or not getattr(config, "alibi", True):
        return None
    if hasattr(file, "build_alibi_tensor"):  # BLOOM, Falcon
        row = file.build_alibi_tensor(torch.ones(1, 2), heads, torch.float32).reshape(heads, 2)
    elif hasattr(file, "build_mpt_alibi_tensor") and config.attn_config.alibi:
        row = file.build_mpt_alibi_tensor(heads, 2, config.attn_config.alibi_bias_max).reshape(heads, 2)
    else:
        return None
    # a row of one query: what is added grows by the slope with each position of the key
    slopes: Tensor = (row[:, 1] - row[:, 0]).double()
    return slopes[:, None] * torch.arange(-FARTHEST, FARTHEST + 1)


def wordless(network: AnyNetwork, site: Site) -> Tensor | None:
    """What DeBERTa-v2 and -v3 add to scores for a distance, the same for all words: [head, distance], as `biases`; None: nothing.

    Queries and keys are a map of a word, plus a bias. A score gets the products of query and key with one vector each, those of the
    distance. Here no word enters, so query and key are their biases; the library's own function computes the products.

    Source: He et al. 2021, "DeBERTa: Decoding-enhanced BERT with Disentangled Attention", equation 4.
    """
    parts = network.library.modules() if isinstance(network, WholeNetwork) else ()
    encoder: Any = next((part for part in parts if getattr(part, "relative_attention", False) and hasattr(part, "layer")), None)
    attention = encoder and encoder.layer[site.layer].attention.self
    if encoder is None or site.kind != "self" or not hasattr(attention, "disentangled_attention_bias"):
        return None
    kinds = {"c2p", "p2c"} & {*attention.pos_att_type}
    no_words = torch.zeros(1, 2 * FARTHEST + 1, attention.query_proj.in_features).to(attention.query_proj.weight)
    with torch.inference_mode():
        maps = (attention.query_proj, attention.key_proj)
        query, key = (attention.transpose_for_scores(one(no_words), attention.num_attention_heads) for one in maps)
        apart, vectors = encoder.get_rel_pos(no_words), encoder.get_rel_embedding()
        added = attention.disentangled_attention_bias(query, key, apart, vectors, 1 + len(kinds))  # [head, query, key]
    return added[:, FARTHEST].cpu().double() if kinds else None
