"""Tensors of a network by name: stored, by head, or computed; among them how positions enter attention."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from model.checkpoints import head_circuits
from model.checkpoints.loader import AnyNetwork
from model.errors import UnknownTensor
from model.huggingface.network import ForeignNetwork, WholeNetwork
from model.trace.types import Site
from model.transformer.build import Network
from model.transformer.networks import BuiltNetwork
from model.transformer.positions import angles, rotary_pairs
from model.transformer.stacks import Embedding, EmbeddingAlone

# --- How positions enter attention ----------------------------------------------------------------------------------------

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
    # pairs side by side, or a column of the first half with one of the second
    columns = torch.arange(width).reshape((-1, 2) if turn.func is rotary_pairs else (2, -1))
    first, second = columns.unbind(1 if turn.func is rotary_pairs else 0)
    return torch.stack([first.double(), second.double(), angles(1, 1, width, turn.keywords["base"])[0].double()], dim=1)


def _library_rotation(network: ForeignNetwork, site: Site) -> Tensor | None:
    """As `rotation`, from the library's own tables and its own function that exchanges the columns of a pair."""
    places = network.places
    module = next((module for module, computed in places.sites.items() if site in computed), None)
    exchange = module and getattr(sys.modules[type(module).__module__], "rotate_half", None)
    if exchange is None or places.positions != "rotary" or places.found_by_run:
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
    modules: dict[Site, Any] = {computed: module for module, sites in network.places.sites.items() for computed in sites}
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
        query, key = (attention.transpose_for_scores(projection(no_words), attention.num_attention_heads) for projection in maps)
        apart, vectors = encoder.get_rel_pos(no_words), encoder.get_rel_embedding()
        added = attention.disentangled_attention_bias(query, key, apart, vectors, 1 + len(kinds))  # [head, query, key]
    return added[:, FARTHEST].cpu().double() if kinds else None


# --- Tensors by name ------------------------------------------------------------------------------------------------------

NEIGHBOURS = 12
"""Nearest tokens that are listed for one."""

_COMPUTED = re.compile(
    r"positions/(?P<stack>encoder|decoder)"
    r"|heads/(?P<site>[a-z0-9.]+)/(?P<part>query|key|value|output)"
    r"|singular/(?P<of>[a-z0-9.]+)/(?P<product>query-key|value-output)"
    r"|near/(?P<strip>source|target)/(?P<id>[0-9]{1,9})"
)
_IN_ATTENTION = {
    "rotation": rotation,
    "biases": biases,
    "wordless": wordless,
}
_FORMS = (
    "positions/STACK",
    "heads/SITE/PART",
    "singular/SITE/PRODUCT",
    "near/STRIP/ID",
    *(f"{what}/SITE" for what in _IN_ATTENTION),
)


def tensor(network: AnyNetwork, name: str) -> Tensor:
    """A tensor of the network; the names are those of `Engine.tensors`.

    Raises:
        UnknownTensor: there is none of that name.
    """
    what, _, site = name.partition("/")
    # how positions enter attention is also known of some networks that are only recorded
    if what in _IN_ATTENTION and (inside := _positions_in_attention(network, what, site)) is not None:
        return inside
    # another program's network has its own names, and nothing is computed for it by head
    if not isinstance(network, BuiltNetwork):
        more = network.added() if isinstance(network, ForeignNetwork) else {}
        tensors = network.tables() | more | dict(network.state_dict())
        if name not in tensors:
            raise UnknownTensor(asked=name, there=", ".join(tensors))
        return tensors[name]
    state: dict[str, Tensor] = network.state_dict()
    if name in state:
        return state[name]
    match = _COMPUTED.fullmatch(name)
    compute = match and (
        _position_table(network, match["stack"])
        or _head_tensor(network, match["site"] or match["of"], match["part"] or match["product"])
        or _neighbors(network, match["strip"], int(match["id"] or 0))
    )
    if not compute:
        raise UnknownTensor(asked=name, there=", ".join((*_FORMS, *state)))
    return compute()


def _embeddings(network: Network) -> dict[str, Embedding]:
    embeddings = {name: getattr(stack, "embedding", None) for name, stack in network.stacks().items()}
    return {name: embedding for name, embedding in embeddings.items() if isinstance(embedding, Embedding)}


def _position_table(network: Network, stack: str | None) -> Callable[[], Tensor] | None:
    """All positional encodings of a stack: [position, model]."""
    embedding = _embeddings(network).get(stack or "")
    if isinstance(embedding, EmbeddingAlone):
        return None
    return embedding and (lambda: embedding.positions.rows(0, 10**6))


def _positions_in_attention(network: AnyNetwork, what: str, text: str) -> Tensor | None:
    """How positions enter the attention of a site."""
    site = _first_pass(text)
    return _IN_ATTENTION[what](network, Site.parse(site)) if site else None


def _head_tensor(network: Network, site: str | None, what: str | None) -> Callable[[], Tensor] | None:
    """Projections or singular values of all heads of a site."""
    attention = {str(computed): attention for computed, attention in head_circuits.sites(network).items()}.get(_first_pass(site))
    if attention is None or what is None:
        return None
    maps = head_circuits.head_maps(attention)
    if what in maps.products:
        return lambda: head_circuits.singular_values(*maps.products[what])
    return lambda: getattr(maps, what)


def _first_pass(site: str | None) -> str:
    """The site in the first pass: all passes share their weights."""
    match = re.fullmatch(r"(encoder|decoder)\.\d+\.(\d+\.\w+)", site or "")
    return str(Site.parse(f"{match[1]}.0.{match[2]}")) if match else ""


def _neighbors(network: Network, strip: str | None, id_: int) -> Callable[[], Tensor] | None:
    """Ids and cosines of the nearest embeddings, itself excluded: [neighbor, 2]."""
    embeddings = _embeddings(network)
    embedding = embeddings.get("decoder" if strip == "target" or "encoder" not in embeddings else "encoder")
    if strip is None or embedding is None or id_ >= len(embedding.token.weight):
        return None
    return lambda: nearest(embedding.token.weight.detach(), id_)


def nearest(table: Tensor, id_: int) -> Tensor:
    """Ids and cosines of the rows with the highest cosine to one row, descending; zero rows are left out.

    Args:
        table: [vocab, model].

    Returns:
        [neighbor, 2], float64.
    """
    rows = table.cpu().double()
    lengths = rows.norm(dim=1)
    cosines = (rows @ rows[id_] / (lengths * lengths[id_]).clamp(min=1e-300)).nan_to_num(-1.0)
    # itself last, below every cosine
    cosines[id_] = -2.0
    values, ids = cosines.sort(descending=True, stable=True)
    return torch.stack([ids.double(), values], dim=1)[: min(NEIGHBOURS, len(rows) - 1)]
