"""The anatomy of networks of the transformers library, from the rows of `model.huggingface.families`.

The library runs them; here only their matrices and norms are read. Whether a sum of them is what ran is not assumed: every sum is
compared with what the run recorded.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from model.features.circuit.anatomy import Affine, Anatomy, Heads, Norm, Order, Source, Stack, Sublayer, affine_rows, float64
from model.huggingface.families import FAMILIES, Family
from model.huggingface.network import ForeignNetwork
from model.requests.external import ForeignAttention
from model.trace.types import Array, Site
from model.transformer.positions import Rotation, unrotated


@dataclass(frozen=True)
class LibraryNorm(Norm):
    """A root mean square norm of the library: x / spread · gain. Gemma's learns how far its gain is from 1."""

    @property
    def gain(self) -> Array:
        """[model]."""
        return super().gain + (1 if type(self.module).__name__.startswith("Gemma") else 0)

    @property
    def centered(self) -> bool:
        """Whether it subtracts the mean."""
        return False

    def spread(self, states: Array) -> Array:
        """What it divides states [row, model] by: [row, 1]."""
        # Families of the library name the same small number differently.
        module: Any = self.module
        epsilon = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
        scale: Array = ((states**2).mean(axis=-1, keepdims=True) + epsilon) ** 0.5
        return scale


def library_anatomy(network: ForeignNetwork) -> Anatomy | None:
    """The anatomy of a network of the library; None: no row tells where its parts are."""
    library: Any = network.library
    config = library.config
    family = FAMILIES.get(config.model_type)
    # Where only a short run told the places of attention, norms and the other sublayers are not known.
    if family is None or network.places.found_by_run:
        return None
    reader = _Reader(network, library, family)
    stacks = {name: reader.stack(name) for name in network.spec.stacks}
    output = library.get_output_embeddings() if family.kind != "encoder" else None
    if output is None:
        return Anatomy(stacks, None, None, None)
    # Some families do more to the last state than the output layer does. All of it is linear, so it becomes part of
    # the matrix.
    weight, bias = output.weight, output.bias
    if getattr(config, "scale_decoder_outputs", False):  # T5 multiplies the last state where the table is shared
        weight = weight * library.model_dim**-0.5
    if (added := getattr(library, "final_logits_bias", None)) is not None:
        bias = added[0] if bias is None else bias + added[0]
    if (narrowed := getattr(library.get_decoder(), "project_out", None)) is not None:  # OPT of 350 M
        weight = weight @ narrowed.weight
    rows: Callable[[Sequence[int]], Affine] = partial(affine_rows, weight, bias)
    # A table of another width than the stream's is followed by a further matrix, so it is not what enters the first
    # layer.
    embedding = library.get_input_embeddings().weight
    return Anatomy(stacks, rows, embedding if embedding.shape == weight.shape else None, weight)


KEPT_BYTES = 64 * 2**20
"""Most bytes of output matrices in float64 that one anatomy keeps: those of layers beyond them are made each time they are read."""


@dataclass(frozen=True)
class _Reader:
    """Reads one network of the library."""

    network: ForeignNetwork
    library: Any
    family: Family
    kept: dict[Site, Heads] = field(default_factory=dict)

    def stack(self, name: str) -> Stack:
        """One stack."""
        layers, width = self.network.places.layers[name], self.network.spec.stacks[name].d_model
        sublayers = tuple(sublayer for index, layer in enumerate(layers) for sublayer in self._layer(layer, name, index))
        final = self.family.final.format(stack=name)
        module = dict(self.library.named_modules()).get(final) if final else None
        without = self.family.positions in ("rotary", "relative")  # then positions are not added
        enters: Any = "embedding" if without else "sum" if self.family.positions_last else None
        return Stack(name, sublayers, None if module is None else _norm(module), width, enters)

    def _layer(self, layer: nn.Module, stack: str, index: int) -> Iterator[Sublayer]:
        # OPT has models of both orders, and says in its configuration which one it is; in every other family all
        # models are alike.
        post = not getattr(self.library.config, "do_layer_norm_before", not self.family.post)
        order: Order = "post" if post else "pre"
        last, prefix = self.family.last(stack), f"{stack}.0.{index}"
        # The last one is that of the feed-forward network. A stack without cross-attention has one norm fewer before
        # it.
        names = self.family.norms if last == 2 else (self.family.norms[0], self.family.norms[-1])  # without cross-attention's
        norms = [layer.get_submodule(name.format(last=last)) for name in names]
        for kind, norm in zip(("self", "cross"), norms[:-1], strict=False):
            site = Site.parse(f"{prefix}.{kind}")
            yield Sublayer(str(site), order, "stream", _norm(norm), partial(self._heads, site))
        yield Sublayer(f"{prefix}.feed_forward", order, "stream", _norm(norms[-1]), None, prefix)

    def _heads(self, site: Site) -> Heads:
        """The maps of one attention sublayer: kept, or made now."""
        if (heads := self.kept.get(site)) is None:
            heads = self._made(site)
            # A network of many layers would otherwise be held once more, in float64.
            if sum(kept.output.weight.nbytes for kept in (heads, *self.kept.values())) <= KEPT_BYTES:
                self.kept[site] = heads
        return heads

    def _made(self, site: Site) -> Heads:
        spec, module = self.network.spec.stacks[site.stack].attention, self.network.places.module(site)
        scale, output = self.network.scale(site), self.network.places.outputs[site]
        query, key, value = _projections(module, self.family, spec)
        bias = getattr(output, "bias", None)
        source: Source = "memory" if site.kind == "cross" else "normed"
        norms = {side: _norm(getattr(module, name)) for side, name in HEAD_NORMS.items() if hasattr(module, name)}
        return Heads(
            query=partial(_of_head, query, 1),
            key=partial(_of_head, key, spec.heads // spec.key_heads),
            value=partial(_of_head, value, spec.heads // spec.key_heads),
            output=Affine(float64(_weight(output)), None if bias is None else float64(bias)),
            scale=scale,
            rotation=self._rotation(module) if self.family.positions == "rotary" else unrotated,
            queries_from="normed",
            keys_from=source,
            values_from=source,
            norms=norms,
            added=self._added(site) if self.family.positions == "relative" and site.kind == "self" else None,
        )

    def _rotation(self, attention: nn.Module) -> Rotation:
        """The library's rotation: its own tables and its own exchange of the columns of a pair, in float64."""
        tables = next(module for name, module in self.library.named_modules() if name.endswith("rotary_emb"))
        exchange = vars(sys.modules[type(attention).__module__])["rotate_half"]
        like = next(self.library.parameters())

        def rotate(vectors: Tensor, start: int) -> Tensor:
            places = torch.arange(start, start + vectors.shape[-2], device=like.device)[None]
            with torch.inference_mode():
                cos, sin = (table[0].cpu().double() for table in tables(like, places))  # [row, columns that turn]
            # Some families turn only the first columns of a head, as many as their tables have.
            turning, still = vectors[..., : cos.shape[-1]], vectors[..., cos.shape[-1] :]
            return torch.cat((turning * cos + exchange(turning) * sin, still), dim=-1)

        return rotate

    def _added(self, site: Site) -> Callable[[int, int, int], Array]:
        """The numbers that the first layer of a stack learned for distances, and all its layers add to their scores."""
        # Only the first layer has the table, but every layer adds its numbers.
        table: Any = self.network.places.module(Site(site.stack, 0, 0, "self"))

        def added(head: int, query: int, keys: int) -> Array:
            with torch.inference_mode():
                # One row of queries: the one at this position, as if those before it had been read already.
                row: Array = float64(table.compute_bias(1, keys, past_seen_tokens=query)[0, head, 0])
            return row

        return added


HEAD_NORMS: Mapping[str, str] = {"query": "q_norm", "key": "k_norm"}
"""Norms of each head's queries and keys, where an attention module has them."""


def _norm(module: nn.Module) -> Norm:
    return Norm(module) if isinstance(module, nn.LayerNorm) else LibraryNorm(module)


def _weight(module: nn.Module) -> Tensor:
    """[out, in]; GPT-2's maps hold the transpose."""
    weight = module.get_parameter("weight")
    return weight if isinstance(module, nn.Linear) else weight.T


@dataclass(frozen=True)
class _Map:
    """A map to the queries, keys or values of all heads: weight [head · head_dim, model], and its bias."""

    weight: Tensor
    bias: Tensor | None
    width: int


def _projections(module: nn.Module, family: Family, spec: ForeignAttention) -> list[_Map]:
    """The maps to queries, keys and values."""
    # One matrix for queries, keys and values together, or one for each of them.
    linears = [module.get_submodule(name) for name in family.projections]
    maps = [(_weight(linear), getattr(linear, "bias", None)) for linear in linears]
    if len(maps) == 1:
        weight, bias = maps[0]
        maps = [
            (_third(weight, third, linears[0], spec), None if bias is None else _third(bias, third, linears[0], spec))
            for third in range(3)
        ]
    if family.scale is not None:  # OPT scales its queries
        factor: Any = module.scaling
        maps[0] = (maps[0][0] * factor, None if maps[0][1] is None else maps[0][1] * factor)
    return [_Map(weight, bias, spec.head_dim) for weight, bias in maps]


def _third(joint: Tensor, third: int, linear: nn.Module, spec: ForeignAttention) -> Tensor:
    """One third of a map that makes queries, keys and values: GPT-2 stores them one after the other, GPT-NeoX for each head."""
    # The type of the module tells the order: GPT-2's joint map is the library's own Conv1D.
    if isinstance(linear, nn.Linear):
        of_heads: Tensor = joint.view(spec.heads, 3, spec.head_dim, *joint.shape[1:])[:, third]
        return of_heads.flatten(0, 1)
    return joint.chunk(3)[third]


def _of_head(map_: _Map, group: int, head: int) -> Affine:
    """The rows that make one head's vectors; a group of heads may share those of a key head."""
    # Rows of the heads follow one another; heads of a group begin at the same row.
    first = head // group * map_.width
    return affine_rows(map_.weight, map_.bias, range(first, first + map_.width))
