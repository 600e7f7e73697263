"""Opens the folder of an architecture without a row: finds the class, checks the weights, and records a short run as a probe."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

import headlight
from model.errors import Phrase, Words, phrase
from model.huggingface import fidelity, library
from model.huggingface.chat_templates import sampling_of
from model.huggingface.checks import check_report, check_size, described, notes, running_a_short_input, said_by_the_library
from model.huggingface.families import FAMILIES
from model.huggingface.folder import Folder, Weights, name_of
from model.huggingface.loaded import Foreign, ForeignInfo
from model.huggingface.recorded.inputs import Reads, reads
from model.huggingface.recorded.network import NO_ROW, RecordedNetwork
from model.huggingface.recorded.probe import looks_back_only, probed
from model.huggingface.recorded.spec import spec_of
from model.huggingface.sizes import check_layers, check_sizes
from model.huggingface.tokenizer import tokenizers_of
from model.inspection.report import Inspection
from model.spec.network import to_json
from model.tokenizers.vocabulary import IdTokenizer

_NOT_CHANGED = phrase("A run records nothing else, and nothing can be changed in it: {reason}.", reason=NO_ROW)

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

    def network(self, sites: tuple[headlight.Site, ...] = ()) -> RecordedNetwork:
        """It as a network that runs here, with the attention of a probe, or with layers and heads as its settings say."""
        spec = spec_of(self.folder, self.config, self.module, self.form, self.program, sites)
        return RecordedNetwork(self.module, self.folder.kind, self.form, spec)


def load(folder: Folder, device: torch.device) -> Foreign:
    """The network of a folder, ready to run. Nothing in the folder is executed.

    Raises:
        CheckpointError: it cannot be used; the error says why.
    """
    network, notes_ = _probed(_fitted(folder, folder.weights(), lambda weights: weights.tensors))
    network, title = network.to(device), name_of(folder.path)
    tokenizers = dict(tokenizers_of(replace(folder, kind=network.kind), network.spec))
    strips = {strip: strip for strip in tokenizers}
    if network.reads.form != "ids":
        tokenizers.pop("source")
    examples: tuple[str, ...] = ()
    if network.reads.example:
        examples = (f"{network.reads.example} 0",)
    elif not isinstance(tokenizers["source"], IdTokenizer):
        examples = (EXAMPLE,)
    info = ForeignInfo(
        title,
        title,
        phrase("Run by {program}, recorded by what it computes.", program=network.spec.program),
        strips,
        examples,
        network.spec,
        sampling=sampling_of(folder),
    )
    return Foreign(info, network, tokenizers, folder.fingerprint(), notes_)


def inspect(folder: Folder) -> Inspection:
    """The inspection report of a folder: its network is built from shapes alone and not run, so its attention is not known yet.

    Raises:
        CheckpointError: as for `load`, as far as it can be told without a run.
    """
    fitted = _fitted(folder, folder.stored(), lambda weights: weights.shapes)
    network = fitted.network()
    tokenizers_of(fitted.folder, network.spec)
    tensors, same = described(folder, fitted.weights, fitted.left_over)
    broken = [tensor.name for tensor in tensors if tensor.nan or tensor.infinite]
    found_by_running = phrase(
        "Layers and heads are those that its settings name. Which attention layers a run records is found when it is opened and "
        "a short input is run."
    )
    return Inspection(
        what=folder.what,
        spec=to_json(network.spec),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        tensors=tensors,
        missing=(),
        tied=same,
        notes=(*_about(fitted.folder, network), found_by_running, *notes(folder, broken, fitted.left_over), _NOT_CHANGED),
    )


def _fitted(folder: Folder, weights: Weights, fill: Callable[[Weights], Mapping[str, Tensor]]) -> _Fitted:
    """The network of a folder, filled with its weights, or with what has their shapes alone."""
    folder, config = _described(folder)
    check_layers(folder, len(weights.shapes))
    with said_by_the_library(folder):
        outline = library.outline(folder.kind, config)
        form = reads(folder, outline, config)
        check_size(folder, outline, weights.shapes)
        module, report = library.filled(folder.kind, config, fill(weights), library.EAGER)
    program = f"transformers {library.VERSION}, {library.class_name(folder.kind, config)}"
    check_report(folder, program, report)
    left_over = fidelity.left_over(folder, module, set(report["unexpected_keys"]), weights.tensors)
    return _Fitted(folder, config, module, form, program, weights, left_over)


def _probed(fitted: _Fitted) -> tuple[RecordedNetwork, tuple[Words, ...]]:
    """The network with the attention that a short run of it shows, and sentences for viewers."""
    with running_a_short_input(fitted.folder):
        reads_ahead = fitted.folder.kind == "decoder" and not looks_back_only(fitted.network())
        fitted = replace(fitted, folder=replace(fitted.folder, kind="encoder")) if reads_ahead else fitted
        sites, compared = probed(fitted.folder, fitted.network())
    ahead = (phrase("Its logits depend on later tokens, too, so no text is generated."),) if reads_ahead else ()
    network, told = fitted.network(sites), notes(fitted.folder, fitted.weights.broken, fitted.left_over)
    return network, (*_about(fitted.folder, network), *ahead, *compared, *told, _listed(sites), _NOT_CHANGED)


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
        config = library.config_of(folder.model_type, folder.safe_config)
        fidelity.check_settings(folder, config)
        kind = library.kind_of(config)
    if kind is None:
        reason = phrase(
            "its architecture is {model_type}, and the library has neither an encoder nor a language model nor an "
            "encoder-decoder class for it",
            model_type=repr(folder.model_type),
        )
        raise folder.unsupported(reason)
    return replace(folder, kind=kind), config


def _about(folder: Folder, network: RecordedNetwork) -> Iterator[Words]:
    """Notes on the network, a sentence each."""
    yield phrase("The network is run by the transformers library, with its own eager attention, in float32.")
    yield (
        phrase(
            "Its architecture, {model_type}, is not among the {count} whose modules Headlight knows. Attention was "
            "recognized by what was computed, and each attention layer is named by its module.",
            model_type=folder.model_type,
            count=len(FAMILIES),
        )
    )
    if network.kind != "encoder":
        yield phrase(
            "Each token is generated by a pass over all tokens before it. The maps are those of one more pass over all of them."
        )
    if network.reads.said:
        yield network.reads.said


def _listed(sites: tuple[headlight.Site, ...]) -> Phrase:
    """A note on what a run records."""
    modules = dict.fromkeys(site.module for site in sites)
    more = f", … (+{len(modules) - 8})" if len(modules) > 8 else ""
    where = ", ".join(list(modules)[:8])
    return phrase(
        "A run records weights and masks of each head, and on request queries, keys, values and context, in: {modules}.",
        modules=where + more,
    )
