"""Loads or inspects a Hugging Face folder.

There is one way: the library's config and class, the weights by their names in its network, then the places of its parts. These a
row of `families` names, or a short run finds (`recorded.changing`); where it does not, the network is run as a whole and recorded.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

import headlight
from model.errors import CannotRunHere, Phrase, Words, phrase
from model.huggingface import fidelity, library
from model.huggingface.chat_templates import sampling_of
from model.huggingface.checks import (
    check_layers,
    check_report,
    check_room,
    check_size,
    check_sizes,
    described,
    library_errors,
    notes,
    run_by,
)
from model.huggingface.config import spec_of
from model.huggingface.folder import Folder, Weights, name_of
from model.huggingface.images import image_reader, tower, without_pooling
from model.huggingface.loaded import Foreign, ForeignInfo
from model.huggingface.network import NETWORKS, AnyForeign, ForeignListener, ForeignNetwork, ForeignTranslator, ForeignWriter
from model.huggingface.parts import (
    FOUND_BY_RUNNING,
    KNOWN_BY_RUNNING,
    ROTATED,
    WRITTEN_OUT,
    listed_modules,
    parts,
    patches_note,
    recorded_notes,
    recorded_only_notes,
)
from model.huggingface.places import NotFoundError, named
from model.huggingface.recorded.changing import changeable
from model.huggingface.recorded.inputs import TOKEN_IDS, Reads, reads
from model.huggingface.recorded.network import UNCHANGEABLE, RecordedNetwork
from model.huggingface.recorded.probe import looks_back_only, probed
from model.huggingface.recorded.spec import spec_of as spec_of_recorded
from model.huggingface.sounds import sound_reader
from model.huggingface.tokenizer import notes as notes_of
from model.huggingface.tokenizer import tokenizers_of
from model.inspection.report import Inspection
from model.requests.external import ForeignSpec
from model.requests.network import to_json
from model.tokenizers.chat import ReadsChats
from model.tokenizers.vocabulary import IdTokenizer
from model.tokenizers.words import Tokenizer
from model.transformer.attention import Run

EXAMPLE = "The animal did not cross the street because it was too tired."

QUESTIONS = (
    "What is the capital of France?",
    "Translate to German: The dog sleeps under the table.",
    "Name three animals that live in the sea.",
)
"""Examples for a model that chats."""


@dataclass(frozen=True)
class _Fitted:
    """A network of the library that fits its folder.

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
    left_over: dict[str, Phrase]

    @property
    def notes(self) -> tuple[Words, ...]:
        """What it reads and writes, a sentence each."""
        saved_by = ", ".join(map(str, self.config.architectures or ()))
        writes_none = phrase("It was saved by {name}, which has no output layer: it reads a text and writes none.", name=saved_by)
        reads_what = (self.form.note,) if self.form.note else ()
        return (*reads_what, *((writes_none,) if library.has_no_output(self.config) else ()))

    def by_row(self, spec: ForeignSpec) -> AnyForeign:
        """The network whose places the architecture's row names."""
        folder = self.folder
        assert folder.family is not None
        windowed = getattr(self.config, "sliding_window", None) is not None
        places = named(self.module, folder.family)
        return NETWORKS[folder.kind](self.module, places, spec, lambda: library.new_past(folder.kind), windowed)

    def as_a_whole(self, sites: tuple[headlight.Site, ...] = (), why: Words = UNCHANGEABLE) -> RecordedNetwork:
        """The network that is run as a whole, with the attention of a probe, or with layers and heads as its settings say.

        Args:
            sites: the attention of the probe.
            why: why nothing in it can be changed.
        """
        spec = spec_of_recorded(self.folder, self.config, self.module, self.form, self.program, sites)
        return RecordedNetwork(self.module, self.folder.kind, self.form, spec, why)


def load(folder: Folder, device: torch.device, in_float32: bool = False) -> Foreign:
    """The network of a folder, ready to run. Nothing in the folder is executed.

    Args:
        folder: the folder, or the GGUF file that stands for one.
        device: where it runs.
        in_float32: whether it runs in float32; else one that can be changed runs in the precision in which its weights are stored.

    Raises:
        CheckpointError, BadSetting: it cannot be used; the error says why.
    """
    folder, config = _with_config(folder)
    network: AnyForeign | RecordedNetwork
    # With a row, the settings alone describe the network, and the tokenizer starts before the weights are read. Without one, a
    # short run tells what the network is, and only then what its tokens stand for.
    with ThreadPoolExecutor(2) as beside:  # a process that starts and a hash of all files take as long as the rest
        hashing = beside.submit(folder.fingerprint)
        if folder.family is not None:
            spec = _spec_by_row(folder, config)
            cutting = beside.submit(tokenizers_of, folder, spec)
            fitted = _fitted(folder, config, folder.weights(), in_float32)
            network, about = fitted.by_row(spec).to(device), _rotation_note(folder)
            _try_two_tokens(network, folder, device)
            tokenizers = cutting.result()
        else:
            weights = folder.weights()
            fitted, network, about = _probed(_fitted(folder, config, weights, in_float32))
            # what can only be recorded runs in float32 (docs/huggingface.md)
            if isinstance(network, RecordedNetwork) and weights.dtype != torch.float32 and not in_float32:
                fitted, network, about = _probed(_fitted(folder, config, weights, in_float32=True))
            network, tokenizers = network.to(device), tokenizers_of(fitted.folder, network.spec)
    about = (run_by(fitted.module), *about, *notes(fitted.folder, fitted.weights.broken, fitted.left_over))
    return _ready(fitted, network, tokenizers, hashing.result(), (*about, *notes_of(folder, tokenizers)))


def _ready(
    fitted: _Fitted,
    network: AnyForeign | RecordedNetwork,
    tokenizers: dict[str, Tokenizer],
    fingerprint: str,
    about: tuple[Words, ...],
) -> Foreign:
    """The opened network with its examples, and with what makes of an image or a sound what it reads."""
    title, folder, strips = name_of(fitted.folder.path), fitted.folder, {strip: strip for strip in tokenizers}
    program = network.spec.program
    summary = phrase("Run by {program}.", program=program)
    if isinstance(network, RecordedNetwork):
        summary = phrase("Run by {program}, recorded by what it computes.", program=program)
    if fitted.form.form == "ids":
        examples = _examples(tokenizers["source"], network.spec)
    else:  # features are typed as a number of rows and a seed, and no vocabulary is needed
        tokenizers = {strip: reader for strip, reader in tokenizers.items() if strip != "source"}
        examples = (f"{fitted.form.example} 0",) if fitted.form.example else ()
    info = ForeignInfo(title, title, summary, strips, examples, network.spec, sampling=sampling_of(folder))
    encoder = network.spec.encoder
    images = image_reader(folder) if encoder is not None and encoder.image is not None else None
    if images is not None and images.processor is None:
        about = (*about, phrase("It accepts no image, only numbers: {reason}.", reason=images.why))
    sounds = sound_reader(folder, network.sound) if isinstance(network, ForeignListener) else None
    if sounds is not None and sounds.extractor is None:
        about = (*about, phrase("It accepts no sound, only numbers: {reason}.", reason=sounds.why))
    return Foreign(info, network, tokenizers, fingerprint, about, images=images, sounds=sounds)


def _examples(reader: Tokenizer, spec: ForeignSpec) -> tuple[str, ...]:
    """Questions for a model that chats; else as many words of a text as fit, or half of them where the network continues it."""
    if isinstance(reader, IdTokenizer):
        return ()
    if isinstance(reader, ReadsChats) and reader.template is not None:
        return QUESTIONS
    words, positions = EXAMPLE.split(), (spec.encoder or spec.writer).max_positions
    room = positions if spec.encoder else positions // 2
    while words and len(reader.encode(" ".join(words), "source")) > room:
        words.pop()
    return (" ".join(words),) if words else ()


def inspect(folder: Folder) -> Inspection:
    """The inspection report of a folder, with what a run records as far as that is known without one.

    The network is built from shapes alone and not run, and the file is read once, one tensor after another.

    Raises:
        CheckpointError, BadSetting: as for `load`.
    """
    folder, config = _with_config(folder)
    spec = None if folder.family is None else _spec_by_row(folder, config)
    fitted = _fitted(folder, config, folder.stored())
    network = fitted.as_a_whole() if spec is None else fitted.by_row(spec)
    tokenizers = tokenizers_of(folder, network.spec)
    tensors, same = described(folder, fitted.weights, fitted.left_over)
    broken = [tensor.name for tensor in tensors if tensor.nan or tensor.infinite]
    return Inspection(
        what=folder.what,
        spec=to_json(network.spec),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        tensors=tensors,
        missing=(),
        parts=parts(network) if isinstance(network, ForeignNetwork) else (),
        tied=same,
        prefix=fitted.weights.removed,
        notes=(
            run_by(fitted.module),
            *((*fitted.notes, KNOWN_BY_RUNNING) if spec is None else _rotation_note(folder)),
            *notes(folder, broken, fitted.left_over),
            *notes_of(folder, tokenizers),
            *(recorded_notes(network) if isinstance(network, ForeignNetwork) else ()),
        ),
    )


def _with_config(folder: Folder) -> tuple[Folder, Any]:
    """The folder with the kind of its architecture, and the library's config.

    It loses its row where the class that saved it has other stacks than the row.

    Raises:
        CheckpointError: the library does not know it, or its settings make no sense.
    """
    # in this order: a name that the library knows, sizes that it can build, settings that it reads, a class that we run
    if not library.knows(folder.model_type):
        reason = phrase(
            "its architecture is {model_type}, which transformers {version} does not have",
            model_type=repr(folder.model_type),
            version=library.VERSION,
        )
        raise folder.unsupported(reason)
    check_sizes(folder)
    with library_errors(folder):
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
    # T5's encoder alone, for example, has the settings of T5 but not its decoder
    return replace(folder, family=folder.family if kind == folder.kind else None, kind=kind), config


def _spec_by_row(folder: Folder, config: Any) -> ForeignSpec:
    """What the settings say of a network whose architecture has a row: it is known before any weight is read."""
    assert folder.family is not None
    with library_errors(folder):
        program = f"transformers {library.VERSION}, {library.class_name(folder.kind, config)}"
        return spec_of(folder, folder.family, config, program)


def _fitted(folder: Folder, config: Any, weights: Weights, in_float32: bool = False) -> _Fitted:
    """The network of a folder, filled with its weights, or with what has their shapes alone."""
    check_layers(folder, len(weights.shapes))
    dtype = torch.float32 if in_float32 else weights.dtype
    check_room(weights, dtype)
    with library_errors(folder):
        outline = library.outline(folder.kind, config)
        form = TOKEN_IDS if folder.family is not None else reads(folder, outline, config)
        check_size(folder, outline, weights.shapes)
        # the outline has the names that the library expects, and costs no memory
        weights = fidelity.without_wrappers(weights, outline)
        # without a row, the first run must be the library's own: it is what later ones are compared with
        attention = library.EAGER if folder.family is None else library.RECORDED
        module, report = library.filled(folder.kind, config, weights.shapes, dtype, attention)
    program = f"transformers {library.VERSION}, {library.class_name(folder.kind, config)}"
    check_report(folder, program, report)
    left_over = fidelity.left_over(folder, module, set(report["unexpected_keys"]), weights.tensors)
    return _Fitted(folder, config, module, form, program, weights, left_over)


@torch.inference_mode()
def _try_two_tokens(network: AnyForeign, folder: Folder, device: torch.device) -> None:
    """Runs two tokens, so that a network that cannot run or gives no attention is refused now, not on a page."""
    # two tokens: the smallest input with a map that is not a single 1
    ids = torch.zeros(1, 2, dtype=torch.long, device=device)
    run = Run(cache=network.new_cache())
    with library_errors(folder, CannotRunHere):
        if isinstance(network, ForeignWriter):
            network(ids, run)
            return
        mask = network.source_mask(ids, torch.tensor([2], device=device))
        memory = network.encode(ids, mask, run)
        if isinstance(network, ForeignTranslator):
            network.decode(ids, memory, mask, run)


def _probed(fitted: _Fitted) -> tuple[_Fitted, AnyForeign | RecordedNetwork, tuple[Words, ...]]:
    """The network with the attention that a short run of it shows, one that can be changed where that can be; and sentences for
    viewers. What it is of has the kind that the run tells."""
    interface = library.has_interface(fitted.module)
    with library_errors(fitted.folder, CannotRunHere):
        # a class for language models may fill gaps instead: then later tokens change earlier logits, and nothing is generated
        reads_ahead = fitted.folder.kind == "decoder" and not looks_back_only(fitted.as_a_whole())
        fitted = replace(fitted, folder=replace(fitted.folder, kind="encoder")) if reads_ahead else fitted
        sites, compared = probed(fitted.folder, fitted.as_a_whole())
    network: AnyForeign | RecordedNetwork
    about: tuple[Words, ...]
    try:
        network = changeable(fitted.as_a_whole(sites), interface, sites)
        about = (FOUND_BY_RUNNING if interface else WRITTEN_OUT, *recorded_notes(network))
    except NotFoundError as error:
        network = fitted.as_a_whole(sites, error.why)
        about = (*recorded_only_notes(network.kind, error.why), listed_modules(site.module for site in sites))
    ahead = (phrase("Its logits depend on later tokens, too, so no text is generated."),) if reads_ahead else ()
    encoder = network.spec.encoder
    form_notes = fitted.notes if encoder is None or encoder.image is None else (patches_note(encoder.image),)
    return fitted, network, (*about, *form_notes, *ahead, *compared)


def _rotation_note(folder: Folder) -> tuple[Words, ...]:
    return (ROTATED,) if folder.family is not None and folder.family.positions == "rotary" else ()
