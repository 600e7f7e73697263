"""Opens the folder of an architecture without a row: finds the class, checks the weights, and records a short run as a probe."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

import headlight
from model.errors import Phrase, Words, phrase
from model.huggingface import fidelity, library
from model.huggingface.chat_templates import sampling_of
from model.huggingface.checks import check_report, check_size, described, name_of, notes, running_a_short_input, said_by_the_library
from model.huggingface.families import FAMILIES
from model.huggingface.folder import Folder, Weights
from model.huggingface.loaded import Foreign, ForeignInfo
from model.huggingface.recorded.inputs import reads
from model.huggingface.recorded.network import NO_ROW, RecordedNetwork
from model.huggingface.recorded.probe import looks_back_only, probed
from model.huggingface.recorded.spec import spec_of
from model.huggingface.sizes import check_sizes
from model.huggingface.tokenizer import tokenizers_of
from model.inspection.report import Inspection
from model.spec.network import to_json
from model.tokenizers.vocabulary import IdTokenizer

EXAMPLE = "The animal did not cross the street because it was too tired."


@dataclass(frozen=True)
class _Opened:
    """A network, and what was found about its folder.

    Attributes:
        network: on the CPU.
        weights: as stored, all of them read.
        left_over: descriptions of the tensors that the network does not use.
        notes: sentences for viewers.
        sites: the attention of the probe.
    """

    network: RecordedNetwork
    weights: Weights
    left_over: Mapping[str, Phrase]
    notes: tuple[Words, ...]
    sites: tuple[headlight.Site, ...]


def load(folder: Folder, device: torch.device) -> Foreign:
    """The network of a folder, ready to run. Nothing in the folder is executed.

    Raises:
        CheckpointError: it cannot be used; the error says why.
    """
    opened = _opened(folder)
    network, title = opened.network.to(device), name_of(folder.path)
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
    return Foreign(info, network, tokenizers, folder.fingerprint(), opened.notes)


def inspect(folder: Folder) -> Inspection:
    """The inspection report of a folder.

    Raises:
        CheckpointError: as for `load`.
    """
    opened = _opened(folder)
    network = opened.network
    tokenizers_of(replace(folder, kind=network.kind), network.spec)
    tensors, same = described(folder, opened.weights, opened.left_over)
    return Inspection(
        what=folder.what,
        spec=to_json(network.spec),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        tensors=tensors,
        missing=(),
        tied=same,
        notes=(*opened.notes, *_listed(opened.sites)),
    )


def _opened(folder: Folder) -> _Opened:
    folder, config = _described(folder)
    weights = folder.weights()
    with said_by_the_library(folder):
        outline = library.outline(folder.kind, config)
        form = reads(folder, outline, config)
        check_size(folder, outline, weights.shapes)
        filled, report = library.filled(folder.kind, config, weights.tensors, library.EAGER)
    program = f"transformers {library.VERSION}, {library.class_name(folder.kind, config)}"
    check_report(folder, program, report)
    left_over = fidelity.left_over(folder, filled, set(report["unexpected_keys"]), weights.tensors)

    def network(sites: tuple[headlight.Site, ...] = ()) -> RecordedNetwork:
        return RecordedNetwork(filled, folder.kind, form, spec_of(folder, config, filled, form, program, sites))

    with running_a_short_input(folder):
        reads_ahead = folder.kind == "decoder" and not looks_back_only(network())
        folder = replace(folder, kind="encoder") if reads_ahead else folder
        sites, compared = probed(folder, network())
    said: tuple[Words, ...] = (*_about(folder, network(), reads_ahead), *compared, *notes(folder, weights.broken, left_over))
    return _Opened(network(sites), weights, left_over, said, sites)


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


def _about(folder: Folder, network: RecordedNetwork, reads_ahead: bool) -> Iterator[Words]:
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
    if reads_ahead:
        yield phrase("Its logits depend on later tokens, too, so no text is generated.")
    if network.reads.said:
        yield network.reads.said


def _listed(sites: tuple[headlight.Site, ...]) -> Iterator[Phrase]:
    """Notes on what a run records, a sentence each."""
    modules = dict.fromkeys(site.module for site in sites)
    more = f", … (+{len(modules) - 8})" if len(modules) > 8 else ""
    where = ", ".join(list(modules)[:8])
    yield phrase(
        "A run records weights and masks of each head, and on request queries, keys, values and context, in: {modules}.",
        modules=where + more,
    )
    yield phrase("A run records nothing else, and nothing can be changed in it: {reason}.", reason=NO_ROW)
