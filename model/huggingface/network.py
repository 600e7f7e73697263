"""Networks of the transformers library, with the methods that a run calls on our own: source_mask, encode, decode."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from itertools import product
from typing import Any, Self, TypeAlias

import torch
from torch import Tensor, nn

from model.errors import CannotChange, NoArithmetic, Words, phrase
from model.huggingface import hooks
from model.huggingface.attention import Watch
from model.huggingface.families import Family
from model.spec.external import ForeignSpec
from model.trace.types import Kind, Site
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask, padding_mask, valid_mask


class Past(KVCache):
    """The library's cache of one decode.

    Args:
        library: the library's own.
    """

    def __init__(self, library: Any) -> None:
        super().__init__()
        self.library = library

    def select(self, rows: Tensor) -> None:
        """Keeps the batch rows `rows`, in that order."""
        self.library.reorder_cache(rows)


class LibraryHolder:
    """Owner of a network of the library: passes on its device and its tensors.

    Attributes:
        library: the library's network.
    """

    library: nn.Module

    def to(self, device: torch.device) -> Self:
        """Itself, moved."""
        self.library.to(device)
        return self

    def parameters(self) -> Iterator[nn.Parameter]:
        """Learned numbers."""
        return self.library.parameters()

    def buffers(self) -> Iterator[Tensor]:
        """Other tensors that it holds."""
        return self.library.buffers()

    def state_dict(self) -> Mapping[str, Tensor]:
        """Its tensors by the library's names."""
        return self.library.state_dict()


class ForeignNetwork(LibraryHolder):
    """Base class of the three kinds of networks.

    Args:
        library: the library's network, its weights loaded.
        family: where its parts are.
        spec: what is known of it.
        new_past: makes the library's cache of one decode.
        windowed: whether its masks hide more than padding and the future.
    """

    def __init__(
        self, library: nn.Module, family: Family, spec: ForeignSpec, new_past: Callable[[], Any], windowed: bool = False
    ) -> None:
        self.library = library
        self.spec = spec
        self.family = family
        self._new_past = new_past
        self._windowed = windowed
        self.sites = dict(_sites(library, family))
        self.outputs = {site: _output(library, module, family) for module, site in self.sites.items()}
        self.position_tables = dict(_tables(library, family))
        hooks.register(library, family, self.outputs, self.position_tables)

    def with_library(self, library: nn.Module) -> Self:
        """The same with another network of the same configuration."""
        return type(self)(library, self.family, self.spec, self._new_past, self._windowed)

    def past(self) -> Past:
        """A cache for one decode."""
        return Past(self._new_past())

    def tables(self) -> dict[str, Tensor]:
        """The positional encodings by stack, all positions that it has: [position, model]."""
        found = {}
        for stack, module in self.position_tables.items():
            rows: Tensor = module.weight if isinstance(module, nn.Embedding) else module.get_buffer("weights")
            found[f"positions/{stack}"] = rows[self._first_position :]
        return found

    @property
    def _first_position(self) -> int:
        """The row of a table that the first token gets: after the padding's row, if the table has one."""
        return self.family.offset if self.family.offset is not None else (self.spec.pad_id or 0) + 1

    def scale_and_output(self, site: Site) -> tuple[float, Tensor]:
        """The scale of a site's scores, and its output projection [model, head · head_dim].

        Raises:
            UnknownTensor: a score of this architecture is more than a product.
        """
        if self.family.positions == "relative":
            raise NoArithmetic(
                site=site, reason=phrase("each score holds a learned number for each distance, which is not recorded")
            )
        module = next(module for module, own in self.sites.items() if own == site)
        output = self.outputs[site]
        weight, scale = output.get_parameter("weight").detach(), module.scaling
        assert isinstance(scale, float)
        return scale, weight if isinstance(output, nn.Linear) else weight.T

    def missing(self) -> dict[str, Words]:
        """The tensors that a trace of it cannot hold, with the reasons."""
        added = {
            "rotary": phrase("no positions are added: queries and keys are rotated by their positions"),
            "relative": phrase("no positions are added: scores get a number for each distance"),
        }
        why = added.get(self.family.positions)
        tables: dict[str, Words] = {f"positions/{stack}": why for stack in self.spec.stacks if why}
        return {"attention/*/scores": NO_SCORES, "stages": NO_STAGES} | tables

    def _watch(self, run: Run, stack: str, ids: Tensor, start: int, padding: Mapping[str, Tensor]) -> Watch:
        self.refuse(run.interventions)
        own = {module: site for module, site in self.sites.items() if site.stack == stack}
        return Watch(replace(run, start=start), own, len(ids), {} if self._windowed else padding)

    def refuse(self, interventions: Iterable[str]) -> None:
        """Refuses interventions in values that the library does not expose.

        Raises:
            CannotChange: the values of one of these names cannot be changed here.
        """
        why = self.missing() | {"attention/*/mask_*": PARTS_OF_MASKS}
        if any(getattr(module, "num_key_value_groups", 1) > 1 for module in self.sites):
            why |= {"attention/*/k": SHARED_KEYS, "attention/*/v": SHARED_KEYS}
        for name, pattern in product(interventions, why):
            if fnmatch(name, pattern) or name.startswith(f"{pattern}/"):
                raise CannotChange(name=name, reason=why[pattern])


NO_SCORES = phrase("the transformers library computes weights in one step and returns no scores")
PARTS_OF_MASKS = phrase("the transformers library combines padding and causality itself, and only their result can be changed")
SHARED_KEYS = phrase("several heads share one head of keys and values, which would change for all of them")
NO_STAGES = phrase("the transformers library does not expose what it computes between these states")


class ForeignEncoder(ForeignNetwork):
    """An encoder that nothing is written from."""

    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """Which source positions are allowed: those that are not padding, or the first `valid` [batch] ones."""
        return Mask(padding_mask(source, self.spec.pad_id) if valid is None else valid_mask(valid, source.shape[1]))

    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, key] of ids -> [batch, key, model]."""
        encoder = self.library.get_encoder() if self.spec.decoder else self.library  # type: ignore[operator]  # untyped library
        watch = self._watch(run, "encoder", source, 0, {"self": mask.padding})
        states: Tensor = watch(lambda: encoder(input_ids=source, attention_mask=_flat(mask))).last_hidden_state
        return states


class ForeignTranslator(ForeignEncoder):
    """An encoder and a decoder."""

    def decode(self, target: Tensor, memory: Tensor, source_mask: Mask, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits [batch, query, vocab] for the token after each target position from `start` on."""
        assert isinstance(run.cache, Past)
        past = run.cache.library
        everything = torch.ones_like(target, dtype=torch.bool)[:, None, None, :]
        watch = self._watch(run, "decoder", target, start, {"self": everything, "cross": source_mask.padding})
        logits: Tensor = watch(
            lambda: self.library(
                encoder_outputs=(memory,),
                attention_mask=_flat(source_mask),
                decoder_input_ids=target[:, start:],
                past_key_values=past,
                use_cache=True,
            )
        ).logits
        return replace(run, start=start).see("logits", logits)


class ForeignWriter(ForeignNetwork):
    """A language model."""

    def __call__(self, ids: Tensor, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits [batch, query, vocab] for the token after each position from `start` on.

        Padding before a text takes no position: the first token after it has position 0.
        """
        assert isinstance(run.cache, Past)
        past = run.cache.library
        padding = padding_mask(ids, self.spec.pad_id)
        there = padding[:, 0, 0].long()
        positions = (there.cumsum(dim=-1) - 1).clamp(min=0)[:, start:]
        watch = self._watch(run, "decoder", ids, start, {"self": padding})
        logits: Tensor = watch(
            lambda: self.library(
                input_ids=ids[:, start:], attention_mask=there, position_ids=positions, past_key_values=past, use_cache=True
            )
        ).logits
        return replace(run, start=start).see("logits", logits)


AnyForeign: TypeAlias = ForeignEncoder | ForeignTranslator | ForeignWriter
NETWORKS: Mapping[str, type[AnyForeign]] = {"encoder": ForeignEncoder, "both": ForeignTranslator, "decoder": ForeignWriter}


def _flat(mask: Mask) -> Tensor:
    """[batch, key], 1 for each allowed key: the library's form."""
    return mask.padding[:, 0, 0].long()


def _sites(library: nn.Module, family: Family) -> Iterator[tuple[nn.Module, Site]]:
    """The attention modules with their sites, in the order in which they run."""
    for stack in family.stacks:
        kinds: dict[Kind, str] = {"self": family.attention}
        if family.kind == "both" and stack == "decoder":
            kinds["cross"] = family.cross
        for index, layer in enumerate(library.get_submodule(family.layers.format(stack=stack)).children()):
            yield from ((layer.get_submodule(name), Site(stack, 0, index, kind)) for kind, name in kinds.items())


def _output(library: nn.Module, attention: nn.Module, family: Family) -> nn.Module:
    """The output projection of an attention module: inside of it, or beside."""
    if not family.output.startswith("../"):
        return attention.get_submodule(family.output)
    name = next(name for name, module in library.named_modules() if module is attention)
    return library.get_submodule(f"{name.rpartition('.')[0]}.{family.output.removeprefix('../')}")


def _tables(library: nn.Module, family: Family) -> Iterator[tuple[str, nn.Module]]:
    if family.table:
        yield from ((stack, library.get_submodule(family.table.format(stack=stack))) for stack in family.stacks)
