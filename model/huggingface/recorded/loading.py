"""Opens the folder of an architecture without a row: finds the class, checks the weights, and records a short run as a probe."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

import headlight
from model.errors import Phrase, Words, phrase
from model.huggingface import fidelity, library
from model.huggingface.chat_templates import sampling_of
from model.huggingface.checks import (
    check_report,
    check_room,
    check_size,
    described,
    notes,
    run_by,
    running_a_short_input,
    said_by_the_library,
)
from model.huggingface.finding import NotFoundError
from model.huggingface.folder import Folder, Weights, name_of
from model.huggingface.images import image_reader, tower, without_pooling
from model.huggingface.loaded import Foreign, ForeignInfo
from model.huggingface.network import AnyForeign, ForeignListener
from model.huggingface.parts import recorded_notes
from model.huggingface.recorded.changing import changeable
from model.huggingface.recorded.inputs import Reads, reads
from model.huggingface.recorded.network import UNCHANGEABLE, RecordedNetwork
from model.huggingface.recorded.probe import looks_back_only, probed
from model.huggingface.recorded.spec import spec_of
from model.huggingface.sizes import check_layers, check_sizes
from model.huggingface.sounds import sound_reader
from model.huggingface.tokenizer import notes as notes_of
from model.huggingface.tokenizer import tokenizers_of
from model.inspection.report import Inspection
from model.spec.external import ForeignImage, ForeignSpec
from model.spec.network import to_json
from model.tokenizers.vocabulary import IdTokenizer
from model.tokenizers.words import Tokenizer

EXAMPLE = "The animal did not cross the street because it was too tired."


@dataclass(frozen=True)
class _Fitted:
    """A network that fits its folder, and what was found about it.

    Attributes:
        folder: with the kind of its architecture.
        config: the library's.
        module: the library's network, with the tensors that it was filled with.
        form: what it reads.
        program: the library's version and class.
        weights: of the file.
        left_over: descriptions of the tensors that the network does not use.
    """

    folder: Folder
    config: Any
    module: nn.Module
    form: Reads
    program: str
    weights: Weights
    left_over: Mapping[str, Phrase]

    @property
    def said(self) -> tuple[Words, ...]:
        """Notes on what it reads and writes."""
        saved_by = ", ".join(map(str, self.config.architectures or ()))
        writes_none = phrase("It was saved by {name}, which has no output layer: it reads a text and writes none.", name=saved_by)
        return (*((self.form.said,) if self.form.said else ()), *((writes_none,) if library.has_no_output(self.config) else ()))

    def network(self, sites: tuple[headlight.Site, ...] = (), why: Words = UNCHANGEABLE) -> RecordedNetwork:
        """It as a network that is run as a whole, with the attention of a probe, or with layers and heads as its settings say.

        Args:
            why: why nothing in it can be changed.
        """
        spec = spec_of(self.folder, self.config, self.module, self.form, self.program, sites)
        return RecordedNetwork(self.module, self.folder.kind, self.form, spec, why)


def load(folder: Folder, device: torch.device, in_float32: bool = False) -> Foreign:
    """The network of a folder, ready to run. Nothing in the folder is executed.

    Args:
        in_float32: whether it runs in float32; else one that can be changed runs in the precision in which its weights are stored.

    Raises:
        CheckpointError: it cannot be used; the error says why.
    """
    with ThreadPoolExecutor(1) as beside:
        hashing, weights = beside.submit(folder.fingerprint), folder.weights()
        fitted, network, notes_ = _probed(_fitted(folder, weights, lambda weights: weights.tensors, in_float32))
        if isinstance(network, RecordedNetwork) and weights.dtype != torch.float32 and not in_float32:
            fitted, network, notes_ = _probed(_fitted(folder, weights, lambda weights: weights.tensors, in_float32=True))
    network, title = network.to(device), name_of(folder.path)
    tokenizers = dict(tokenizers_of(fitted.folder, network.spec))
    notes_ = (*notes_, *notes_of(folder, tokenizers))
    strips = {strip: strip for strip in tokenizers}
    if fitted.form.form != "ids":
        tokenizers.pop("source")
    examples: tuple[str, ...] = ()
    if fitted.form.example:
        examples = (f"{fitted.form.example} 0",)
    elif not isinstance(tokenizers["source"], IdTokenizer):
        examples = fitting(EXAMPLE, tokenizers["source"], network.spec)
    info = ForeignInfo(
        title,
        title,
        (
            phrase("Run by {program}, recorded by what it computes.", program=network.spec.program)
            if isinstance(network, RecordedNetwork)
            else phrase("Run by {program}.", program=network.spec.program)
        ),
        strips,
        examples,
        network.spec,
        sampling=sampling_of(folder),
    )
    encoder = network.spec.encoder
    images = image_reader(folder) if encoder is not None and encoder.image is not None else None
    if images is not None and images.processor is None:
        notes_ = (*notes_, phrase("It accepts no image, only numbers: {reason}.", reason=images.why))
    sounds = sound_reader(folder, network.sound) if isinstance(network, ForeignListener) else None
    if sounds is not None and sounds.extractor is None:
        notes_ = (*notes_, phrase("It accepts no sound, only numbers: {reason}.", reason=sounds.why))
    return Foreign(info, network, tokenizers, hashing.result(), notes_, images=images, sounds=sounds)


def fitting(text: str, reader: Tokenizer, spec: ForeignSpec) -> tuple[str, ...]:
    """An example: as many of the first words of a text as fit the positions, or half of them where the network continues it."""
    words, positions = text.split(), (spec.encoder or spec.writer).max_positions
    room = positions if spec.encoder else positions // 2
    while words and len(reader.encode(" ".join(words), "source")) > room:
        words.pop()
    return (" ".join(words),) if words else ()


def inspect(folder: Folder) -> Inspection:
    """The inspection report of a folder: its network is built from shapes alone and not run, so its attention is not known yet.

    Raises:
        CheckpointError: as for `load`, as far as it can be told without a run.
    """
    fitted = _fitted(folder, folder.stored(), lambda weights: weights.shapes)
    network = fitted.network()
    tokenizers = tokenizers_of(fitted.folder, network.spec)
    tensors, same = described(folder, fitted.weights, fitted.left_over)
    broken = [tensor.name for tensor in tensors if tensor.nan or tensor.infinite]
    found_by_running = phrase(
        "Layers and heads are those that its settings name. Which attention layers a run records, and whether they can be changed, "
        "is found when it is opened and a short input is run."
    )
    return Inspection(
        what=folder.what,
        spec=to_json(network.spec),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        tensors=tensors,
        missing=(),
        tied=same,
        prefix=fitted.weights.removed,
        notes=(
            run_by(fitted.module),
            *fitted.said,
            found_by_running,
            *notes(folder, broken, fitted.left_over),
            *notes_of(folder, tokenizers),
        ),
    )


def _fitted(folder: Folder, weights: Weights, fill: Callable[[Weights], Mapping[str, Tensor]], in_float32: bool = False) -> _Fitted:
    """The network of a folder, filled with its weights, or with what has their shapes alone."""
    folder, config = _described(folder)
    check_layers(folder, len(weights.shapes))
    dtype = torch.float32 if in_float32 else weights.dtype
    check_room(weights, dtype)
    with said_by_the_library(folder):
        outline = library.outline(folder.kind, config)
        form = reads(folder, outline, config)
        check_size(folder, outline, weights.shapes)
        weights = fidelity.without_wrappers(weights, outline)
        module, report = library.filled(folder.kind, config, fill(weights), dtype, library.EAGER)
    program = f"transformers {library.VERSION}, {library.class_name(folder.kind, config)}"
    check_report(folder, program, report)
    left_over = fidelity.left_over(folder, module, set(report["unexpected_keys"]), weights.tensors)
    return _Fitted(folder, config, module, form, program, weights, left_over)


def _probed(fitted: _Fitted) -> tuple[_Fitted, AnyForeign | RecordedNetwork, tuple[Words, ...]]:
    """The network with the attention that a short run of it shows, one that can be changed where that can be; and sentences for
    viewers. What it is of has the kind that the run tells."""
    interface = library.has_interface(fitted.module)
    with running_a_short_input(fitted.folder):
        reads_ahead = fitted.folder.kind == "decoder" and not looks_back_only(fitted.network())
        fitted = replace(fitted, folder=replace(fitted.folder, kind="encoder")) if reads_ahead else fitted
        sites, compared = probed(fitted.folder, fitted.network())
    network: AnyForeign | RecordedNetwork
    try:
        network = changeable(fitted.network(sites), interface, sites)
        about = (_FOUND if interface else _WRITTEN_OUT, *recorded_notes(network))
    except NotFoundError as error:
        network = fitted.network(sites, error.why)
        about = (*_recorded_only(network), _listed(sites))
    ahead = (phrase("Its logits depend on later tokens, too, so no text is generated."),) if reads_ahead else ()
    encoder = network.spec.encoder
    said = fitted.said if encoder is None or encoder.image is None else (_patches(encoder.image),)
    told = notes(fitted.folder, fitted.weights.broken, fitted.left_over)
    return fitted, network, (run_by(fitted.module), *about, *said, *ahead, *compared, *told)


def _described(folder: Folder) -> tuple[Folder, Any]:
    """The folder with the kind of its architecture, and the library's config.

    Raises:
        CheckpointError: the library does not know it, or its settings make no sense.
    """
    if not library.knows(folder.model_type):
        reason = phrase(
            "its architecture is {model_type}, which transformers {version} does not have",
            model_type=repr(folder.model_type),
            version=library.VERSION,
        )
        raise folder.unsupported(reason)
    check_sizes(folder)
    with said_by_the_library(folder):
        whole = library.config_of(folder.model_type, folder.safe_config)
        fidelity.check_settings(folder, whole)
        config = without_pooling(tower(whole))
        kind = library.kind_of(config)
    if kind is None:
        reason = phrase(
            "its architecture is {model_type}, and the library has neither an encoder nor a language model nor an "
            "encoder-decoder class for it",
            model_type=repr(folder.model_type),
        )
        raise folder.unsupported(reason)
    return replace(folder, kind=kind), config


def _patches(image: ForeignImage) -> Phrase:
    """A note on how an image is read."""
    return phrase(
        "Its input is an image of {high} × {wide} patches of {side} × {side} pixels. A patch is named by its row and column; "
        "what the network puts before the patches comes first.",
        high=image.rows,
        wide=image.columns,
        side=image.side,
    )


_FOUND = phrase(
    "Its attention goes through the library’s attention interface, where it is recorded and can be changed; its layers were found "
    "by a short run."
)
_WRITTEN_OUT = phrase(
    "Its attention is recognized by what it computes, two products with a softmax between them, where it is recorded and can be "
    "changed; its layers were found by a short run."
)


def _recorded_only(network: RecordedNetwork) -> Iterator[Words]:
    """Notes on a network that is run as a whole, a sentence each."""
    yield phrase(
        "Its attention was recognized by what was computed, and each attention layer is named by its module. Nothing in it can be "
        "changed: {reason}.",
        reason=network.why,
    )
    if network.kind != "encoder":
        yield phrase(
            "Each token is generated by a pass over all tokens before it. The maps are those of one more pass over all of them."
        )


def _listed(sites: tuple[headlight.Site, ...]) -> Phrase:
    """A note on what a run records."""
    modules = dict.fromkeys(site.module for site in sites)
    more = f", … (+{len(modules) - 8})" if len(modules) > 8 else ""
    where = ", ".join(list(modules)[:8])
    return phrase(
        "A run records weights and masks of each head, and on request queries, keys, values and context, in: {modules}.",
        modules=where + more,
    )
