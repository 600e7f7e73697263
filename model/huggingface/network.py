"""Networks of the transformers library, with the methods that a run calls on our own: source_mask, encode, decode."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from inspect import signature
from itertools import product
from typing import Any, Literal, Self, TypeAlias

import torch
from torch import Tensor, nn

from model.errors import CannotChange, NoArithmetic, Words, phrase
from model.huggingface import images, sounds
from model.huggingface.attention import Watch
from model.huggingface.hooks import register
from model.huggingface.places import MORE_THAN_PRODUCTS, Places, encoder_of
from model.requests.external import ForeignImage, ForeignSound, ForeignSpec
from model.trace.types import Site
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask, padding_mask, valid_mask
from model.transformer.networks import Changeable, Encodes, Runnable, RunsWhole, Translates, Writes


class Past(KVCache):
    """The library's cache of one decode.

    Args:
        library: the library's own; None: the run reads everything in one pass, and nothing is kept.
    """

    def __init__(self, library: Any) -> None:
        super().__init__()
        self.library = library

    def select(self, rows: Tensor) -> None:
        """Keeps the batch rows `rows`, in that order."""
        self.library.reorder_cache(rows)


class LibraryHolder(Runnable):
    """Owner of a network of the library: passes on its device and its tensors.

    Attributes:
        library: the library's network.
    """

    library: nn.Module

    def to(self, device: torch.device) -> Self:
        """This object, its network moved to a device."""
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

    def tables(self) -> dict[str, Tensor]:
        """The positional encodings by stack, as far as they are known: [position, model]."""
        return {}


class WholeNetwork(LibraryHolder, RunsWhole):
    """A network of the library that is called as a whole."""


class ForeignNetwork(LibraryHolder, Changeable):
    """Base class of the three kinds of networks.

    Args:
        library: the library's network, its weights loaded.
        places: where its parts are.
        spec: what is known of it.
        new_past: makes the library's cache of one decode.
        windowed: whether its masks hide more than padding and the future, or may do so.
    """

    def __init__(
        self, library: nn.Module, places: Places, spec: ForeignSpec, new_past: Callable[[], Any], windowed: bool = False
    ) -> None:
        self.library = library
        self.spec = spec
        self.places = places
        self.fuses = places.products
        self.feed_forwards = places.feed_forwards
        self._new_past = new_past
        self._windowed = windowed
        self._takes = signature(library.forward).parameters
        # hooks stay as long as the network; they do nothing unless a watched call goes on in their thread
        self._handles = register(library, places)

    def release(self) -> None:
        """Takes its hooks away: the library's network is used without it."""
        for handle in self._handles:
            handle.remove()

    def with_library(self, library: nn.Module) -> Self:
        """The same with another network of the same configuration."""
        # hooks belong to modules, so another network needs its own
        return type(self)(library, self.places.moved(self.library, library), self.spec, self._new_past, self._windowed)

    def new_cache(self, decodes: bool = True) -> Past:
        """The library's cache of one run; one that keeps nothing where everything is read in one pass."""
        return Past(self._new_past() if decodes else None)

    def tables(self) -> dict[str, Tensor]:
        """The positional encodings by stack, all positions that it has: [position, model]."""
        tables = {}
        for stack, module in self.places.tables.items():
            rows: Tensor = module.weight if isinstance(module, nn.Embedding) else module.get_buffer("weights")
            tables[f"positions/{stack}"] = rows[self._first_position :]
        return tables

    def position_rows(self, stack: str) -> Tensor:
        """The positional encodings that are added to the embeddings of a stack, all that there are: [position, model].

        Raises:
            CannotChange: none are added, or it is not known where.
        """
        rows = self.tables().get(f"positions/{stack}")
        if rows is None:
            self.refuse([f"positions/{stack}"])
        assert rows is not None
        return rows

    def with_swapped_layers(self, stack: str, a: int, b: int, name: str) -> Self:
        """Refused: the library's network is used as it is.

        Raises:
            CannotChange: always.
        """
        raise CannotChange(name=name, reason=phrase("the transformers library does not expose the order of its layers"))

    def value_of_scores(self) -> Literal["scores", "q"]:
        """The queries, since the library returns no scores.

        Raises:
            CannotChange: its scores are more than products of queries and keys.
        """
        if not self.places.products:
            raise CannotChange(name="attention/*/scores", reason=MORE_THAN_PRODUCTS)
        return "q"

    def added(self) -> dict[str, Tensor]:
        """The positional encodings by stack that no run records: [position, model]."""
        parameters = {stack: self.library.get_parameter(name) for stack, name in self.places.added.items()}
        return {f"positions/{stack}": table.reshape(-1, table.shape[-1]) for stack, table in parameters.items()}

    @property
    def _first_position(self) -> int:
        """The row of a table that the first token gets: after the padding's row, if the table has one."""
        return self.places.offset if self.places.offset is not None else (self.spec.pad_id or 0) + 1

    def scale_and_output(self, site: Site) -> tuple[float, Tensor]:
        """The scale of a site's scores, and its output projection [model, head · head_dim].

        Raises:
            UnknownTensor: a score of this architecture is more than a product.
        """
        if not self.places.products:
            raise NoArithmetic(site=site, reason=MORE_THAN_PRODUCTS)
        output = self.places.outputs.get(site)
        if output is None:
            raise NoArithmetic(site=site, reason=NO_OUTPUT)
        weight = output.get_parameter("weight").detach()
        return self.scale(site), weight if isinstance(output, nn.Linear) else weight.T

    def scale(self, site: Site) -> float:
        """The factor of a site's products of queries and keys."""
        measured = self.places.scales.get(site)
        scale: Any = self.places.module(site).scaling if measured is None else measured
        return float(scale)

    def missing(self) -> dict[str, Words]:
        """The tensors that a trace of it cannot hold, with the reasons."""
        added = {
            "rotary": phrase("no positions are added: queries and keys are rotated by their positions"),
            "relative": phrase("no positions are added: scores get a number for each distance"),
            "unknown": phrase("for this architecture it is not known where positions enter"),
        }
        why = added.get(self.places.positions)
        tables: dict[str, Words] = {f"positions/{stack}": why for stack in self.spec.stacks if why}
        # where the projection of a context was not recognized, its output cannot be recorded
        without = {site for sites in self.places.sites.values() for site in sites} - self.places.outputs.keys()
        outputs: dict[str, Words] = {f"attention/{site}/output": NO_OUTPUT for site in sorted(without)}
        stages = SOME_STAGES if self.places.feed_forwards else NO_STAGES
        return {"attention/*/scores": NO_SCORES, "stages": stages} | tables | outputs

    def _watch(self, run: Run, stack: str, ids: Tensor, start: int, padding: Mapping[str, Tensor]) -> Watch:
        self.refuse(run.interventions)
        sites_of_stack = {module: sites for module, sites in self.places.sites.items() if sites[0].stack == stack}
        return Watch(replace(run, start=start), sites_of_stack, len(ids), {} if self._windowed else padding)

    def refuse(self, interventions: Iterable[str]) -> None:
        """Refuses interventions in values that the library does not expose.

        Raises:
            CannotChange: the values of one of these names cannot be changed here.
        """
        why = self.missing() | {"attention/*/mask_*": PARTS_OF_MASKS}
        recorded = {f"stages/{sublayer}/output" for sublayer in self.places.feed_forwards}
        # a pattern stands for a value, and for everything below it: `stages` for `stages/…/output`
        for name, pattern in product(set(interventions) - recorded, why):
            if fnmatch(name, pattern) or name.startswith(f"{pattern}/"):
                raise CannotChange(name=name, reason=why[pattern])


NO_OUTPUT = phrase("the projection of its context was not recognized")
NO_SCORES = phrase("the transformers library computes weights in one step and returns no scores")
PARTS_OF_MASKS = phrase("the transformers library combines padding and causality itself, and only their result can be changed")
NO_STAGES = phrase("the transformers library does not expose what it computes between these states")
SOME_STAGES = phrase(
    "of what it computes between these states, the transformers library exposes only what each feed-forward network adds"
)


class ForeignEncoder(ForeignNetwork, Encodes):
    """An encoder that nothing is written from."""

    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """Which source positions are allowed: those that are not padding, or the first `valid` [batch] ones."""
        return Mask(padding_mask(source, self.spec.pad_id) if valid is None else valid_mask(valid, source.shape[1]))

    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, key] of ids -> [batch, key, model]."""
        encoder = encoder_of(self.library) if self.spec.decoder else self.library
        watch = self._watch(run, "encoder", source, 0, {"self": mask.padding})
        states: Tensor = watch(lambda: encoder(input_ids=source, attention_mask=_allowed_keys(mask)))[
            0
        ]  # some classes return a tuple
        return states


class ForeignViewer(ForeignEncoder):
    """An encoder of images: it puts positions of its own, such as a class token, before the patches that it is given."""

    @property
    def image(self) -> ForeignImage:
        """The images that it reads."""
        assert self.spec.encoder is not None
        assert self.spec.encoder.image is not None
        return self.spec.encoder.image

    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """Which source positions are allowed: all of them, since an image has no padding."""
        return Mask(padding_mask(source, None))

    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, key, number] -> [batch, key, model]. The rows of its own positions, which come first, are not read."""
        encoder = encoder_of(self.library) if self.spec.decoder else self.library
        watch = self._watch(run, "encoder", source, 0, {"self": mask.padding})
        states: Tensor = watch(lambda: encoder(pixel_values=images.arranged(source, self.image)))[0]
        return states


class ForeignTranslator(ForeignEncoder, Translates):
    """An encoder and a decoder."""

    def decode(self, target: Tensor, memory: Tensor, source_mask: Mask, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits [batch, query, vocab] for the token after each target position from `start` on."""
        past = run.cache.library if isinstance(run.cache, Past) else None
        everything = padding_mask(target, None)
        watch = self._watch(run, "decoder", target, start, {"self": everything, "cross": source_mask.padding})
        logits: Tensor = watch(lambda: self._written(target[:, start:], memory, source_mask, past)).logits
        return replace(run, start=start).see("logits", logits)

    def _written(self, target: Tensor, memory: Tensor, source_mask: Mask, past: Any) -> Any:
        """The library's result for target positions, of which `past` holds those before."""
        return self.library(
            encoder_outputs=(memory,),
            attention_mask=_allowed_keys(source_mask),
            decoder_input_ids=target,
            past_key_values=past,
            use_cache=past is not None,
        )


class ForeignListener(ForeignTranslator):
    """An encoder of sounds and a decoder. The encoder joins the frames that it is given, and masks none of them."""

    @property
    def sound(self) -> ForeignSound:
        """The sounds that it reads."""
        assert self.spec.encoder is not None
        assert self.spec.encoder.sound is not None
        return self.spec.encoder.sound

    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """Which source positions are allowed: all of them, also those of the silence that fills a short sound up."""
        return Mask(padding_mask(source, None))

    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, key, number] -> [batch, key, model]: a row holds the frames that become one position."""
        encoder = encoder_of(self.library)
        watch = self._watch(run, "encoder", source, 0, {"self": mask.padding})
        states: Tensor = watch(lambda: encoder(input_features=sounds.arranged(source, self.sound)))[0]
        return states


class ForeignCaptioner(ForeignViewer, ForeignTranslator):
    """An encoder of images and a decoder that attends to their patches."""

    def _written(self, target: Tensor, memory: Tensor, source_mask: Mask, past: Any) -> Any:
        """The library's result for target positions. BLIP's class takes no states of its encoder, but its decoder does."""
        if "encoder_outputs" in self._takes:
            return super()._written(target, memory, source_mask, past)
        decoder: Any = self.library.text_decoder
        return decoder(input_ids=target, encoder_hidden_states=memory, past_key_values=past, use_cache=past is not None)


class ForeignWriter(ForeignNetwork, Writes):
    """A language model."""

    def __call__(self, ids: Tensor, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits [batch, query, vocab] for the token after each position from `start` on.

        No token is padding, whatever its id: each was typed or written. A folder may name one of its words as padding.
        """
        past = run.cache.library if isinstance(run.cache, Past) else None
        everything = padding_mask(ids, None)
        # given with the ids, since a step with a cache begins in the middle
        positions = torch.arange(start, ids.shape[1], device=ids.device).expand(len(ids), -1)
        watch = self._watch(run, "decoder", ids, start, {"self": everything})
        given = {"position_ids": positions} if "position_ids" in self._takes else {}
        logits: Tensor = watch(
            lambda: self.library(
                input_ids=ids[:, start:],
                attention_mask=everything[:, 0, 0].long(),
                past_key_values=past,
                use_cache=past is not None,
                **given,
            )
        ).logits
        return replace(run, start=start).see("logits", logits)


AnyForeign: TypeAlias = ForeignEncoder | ForeignViewer | ForeignTranslator | ForeignWriter
NETWORKS: Mapping[str, type[AnyForeign]] = {"encoder": ForeignEncoder, "both": ForeignTranslator, "decoder": ForeignWriter}


def _allowed_keys(mask: Mask) -> Tensor:
    """[batch, key], 1 for each allowed key: the library's form."""
    return mask.padding[:, 0, 0].long()
