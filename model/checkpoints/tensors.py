"""Tensors of a network by name: stored, by head, or computed."""

import re
from collections.abc import Callable

import torch
from torch import Tensor

from model.checkpoints import head_circuits, relative_positions
from model.checkpoints.loader import AnyNetwork
from model.errors import UnknownTensor
from model.huggingface.network import ForeignNetwork
from model.trace.types import Site
from model.transformer.build import Network
from model.transformer.networks import BuiltNetwork
from model.transformer.stacks import Embedding, EmbeddingAlone

NEIGHBOURS = 12
"""Nearest tokens that are listed for one."""

_COMPUTED = re.compile(
    r"positions/(?P<stack>encoder|decoder)"
    r"|heads/(?P<site>[a-z0-9.]+)/(?P<part>query|key|value|output)"
    r"|singular/(?P<of>[a-z0-9.]+)/(?P<product>query-key|value-output)"
    r"|near/(?P<strip>source|target)/(?P<id>[0-9]{1,9})"
)
_IN_ATTENTION = {
    "rotation": relative_positions.rotation,
    "biases": relative_positions.biases,
    "wordless": relative_positions.wordless,
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
    what, _, place = name.partition("/")
    if what in _IN_ATTENTION and (inside := _in_attention(network, what, place)) is not None:
        return inside
    if not isinstance(network, BuiltNetwork):
        more = network.added() if isinstance(network, ForeignNetwork) else {}
        there = network.tables() | more | dict(network.state_dict())
        if name not in there:
            raise UnknownTensor(asked=name, there=", ".join(there))
        return there[name]
    state: dict[str, Tensor] = network.state_dict()
    if name in state:
        return state[name]
    match = _COMPUTED.fullmatch(name)
    found = match and (
        _positions(network, match["stack"])
        or _of_head(network, match["site"] or match["of"], match["part"] or match["product"])
        or _near(network, match["strip"], int(match["id"] or 0))
    )
    if not found:
        raise UnknownTensor(asked=name, there=", ".join((*_FORMS, *state)))
    return found()


def _embeddings(network: Network) -> dict[str, Embedding]:
    found = {name: getattr(stack, "embedding", None) for name, stack in network.stacks().items()}
    return {name: embedding for name, embedding in found.items() if isinstance(embedding, Embedding)}


def _positions(network: Network, stack: str | None) -> Callable[[], Tensor] | None:
    """All positional encodings of a stack: [position, model]."""
    embedding = _embeddings(network).get(stack or "")
    if isinstance(embedding, EmbeddingAlone):
        return None
    return embedding and (lambda: embedding.positions.rows(0, 10**6))


def _in_attention(network: AnyNetwork, what: str, place: str) -> Tensor | None:
    """How positions enter the attention of a site."""
    site = _first_pass(place)
    return _IN_ATTENTION[what](network, Site.parse(site)) if site else None


def _of_head(network: Network, site: str | None, what: str | None) -> Callable[[], Tensor] | None:
    """Projections or singular values of all heads of a site."""
    attention = {str(each): attention for each, attention in head_circuits.sites(network).items()}.get(_first_pass(site))
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


def _near(network: Network, strip: str | None, id_: int) -> Callable[[], Tensor] | None:
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
    cosines[id_] = -2.0
    values, ids = cosines.sort(descending=True, stable=True)
    return torch.stack([ids.double(), values], dim=1)[: min(NEIGHBOURS, len(rows) - 1)]
