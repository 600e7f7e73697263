"""Places: which modules of a network of the library are its attention, its layers and its tables of positions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from torch import nn

from model.errors import Phrase, phrase
from model.huggingface.families import Family, Kind
from model.requests.external import ForeignPositions
from model.trace.types import Kind as SiteKind
from model.trace.types import Site

MORE_THAN_PRODUCTS = phrase(
    "its scores are more than products of queries and keys: the library adds numbers to them or transforms them"
)


class NotFoundError(Exception):
    """The places of a network cannot be told.

    Attributes:
        why: the reason, for a sentence that begins elsewhere.
    """

    def __init__(self, why: Phrase) -> None:
        super().__init__(str(why))
        self.why = why


@dataclass(frozen=True, eq=False)
class Places:
    """Where a network computes what a run records and changes.

    A module may run several times in one pass, as the one layer of ALBERT does: it then has as many sites, and its layer is
    listed as often.

    Attributes:
        stacks: names of the stacks, in the order in which they run.
        sites: the sites of each attention module, in the order in which they run.
        outputs: the projection of each site's context; a site where it was not found has none.
        layers: the layers of each stack, in the order in which they run.
        tables: the table of positions of each stack that has one.
        added: the name of a parameter whose rows are added to the vectors of a stack's positions, as a short run told, and which no
            module returns alone: it can be read, but is neither recorded nor changed.
        offset: rows at the start of a table that are not positions; None: up to the padding row.
        positions: the kind of positional encoding.
        products: whether each score is the product of a query and a key, scaled, and nothing else.
        found_by_run: whether a short run told them, and no row.
        scales: the scale of each site's scores, as far as a run told it; else the module says it.
        feed_forwards: the module that makes what a feed-forward sublayer adds to the stream, by the sublayer's name, such as
            `decoder.0.2.feed_forward`; none where no row names them.
        written_out: whether the modules write their attention out, and do not call the library's interface.
    """

    stacks: tuple[str, ...]
    sites: Mapping[nn.Module, tuple[Site, ...]]
    outputs: Mapping[Site, nn.Module]
    layers: Mapping[str, tuple[nn.Module, ...]]
    positions: ForeignPositions
    tables: Mapping[str, nn.Module] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    offset: int | None = 0
    products: bool = True
    found_by_run: bool = False
    scales: Mapping[Site, float] = field(default_factory=dict)
    feed_forwards: Mapping[str, nn.Module] = field(default_factory=dict)
    written_out: bool = False

    def module(self, site: Site) -> nn.Module:
        """The attention module that computes a site."""
        return next(module for module, sites in self.sites.items() if site in sites)

    def moved(self, library: nn.Module, other: nn.Module) -> Self:
        """The same places in another network of the same configuration."""
        names = {module: name for name, module in library.named_modules()}

        def counterpart(module: nn.Module) -> nn.Module:
            return other.get_submodule(names[module])

        return replace(
            self,
            sites={counterpart(module): sites for module, sites in self.sites.items()},
            outputs={site: counterpart(module) for site, module in self.outputs.items()},
            layers={stack: tuple(map(counterpart, sites)) for stack, sites in self.layers.items()},
            tables={stack: counterpart(module) for stack, module in self.tables.items()},
            feed_forwards={name: counterpart(module) for name, module in self.feed_forwards.items()},
        )


def encoder_of(library: Any) -> nn.Module:
    """The encoder of an encoder-decoder."""
    first = library.get_encoder()
    # captioners return themselves unless they are told which of their encoders is meant
    encoder: nn.Module = library.get_encoder(modality="image") if first is library else first
    return encoder


def named(library: nn.Module, family: Family) -> Places:
    """The places that a family's row names."""
    attentions = list(_named_sites(library, family))
    tables = {stack: library.get_submodule(family.table.format(stack=stack)) for stack in family.stacks if family.table}
    layers = {stack: _children(library, family.layers.format(stack=stack)) for stack in family.stacks}
    return Places(
        stacks=family.stacks,
        sites={module: (site,) for module, site in attentions},
        outputs={site: _output(library, module, family) for module, site in attentions},
        layers=layers,
        positions=family.positions,
        tables=tables,
        offset=family.offset,
        products=family.positions != "relative",
        scales={} if family.scale is None else {site: family.scale for _module, site in attentions},
        feed_forwards={
            f"{stack}.0.{index}.feed_forward": layer.get_submodule(family.feed_forward.format(last=family.last(stack)))
            for stack, layers_of_stack in layers.items()
            for index, layer in enumerate(layers_of_stack)
        },
    )


def _children(library: nn.Module, name: str) -> tuple[nn.Module, ...]:
    return tuple(library.get_submodule(name).children())


def _named_sites(library: nn.Module, family: Family) -> Iterator[tuple[nn.Module, Site]]:
    """The attention modules with their sites, in the order in which they run."""
    for stack in family.stacks:
        # the order in which they run: self-attention, then cross-attention, layer by layer
        kinds: dict[SiteKind, str] = {"self": family.attention}
        if family.kind == "both" and stack == "decoder":
            kinds["cross"] = family.cross
        for index, layer in enumerate(_children(library, family.layers.format(stack=stack))):
            yield from ((layer.get_submodule(name), Site(stack, 0, index, kind)) for kind, name in kinds.items())


def _output(library: nn.Module, attention: nn.Module, family: Family) -> nn.Module:
    """The output projection of an attention module: inside of it, or beside."""
    if not family.output.startswith("../"):
        return attention.get_submodule(family.output)
    name = next(name for name, module in library.named_modules() if module is attention)
    return library.get_submodule(f"{name.rpartition('.')[0]}.{family.output.removeprefix('../')}")


def numbered(stacks: Sequence[tuple[str, SiteKind]]) -> list[Site]:
    """The sites of attentions that ran one after the other, each counted within its stack and kind."""
    counts: Counter[tuple[str, SiteKind]] = Counter()
    sites = list[Site]()
    for stack, kind in stacks:
        sites.append(Site(stack, 0, counts[stack, kind], kind))
        counts[stack, kind] += 1
    return sites


def stacks_of(kind: Kind) -> tuple[str, ...]:
    """The stacks of a network, in the order in which they run."""
    return ("encoder", "decoder") if kind == "both" else (kind,)
