"""A network of the transformers library, loaded and ready to run."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.huggingface.network import AnyForeign
from model.spec.external import ForeignSpec
from model.tokenizers.words import Tokenizer


@dataclass(frozen=True)
class ForeignInfo:
    """What is known of a network of another program.

    Attributes:
        name, title, summary, languages, examples: as in checkpoints.Info.
        spec: the network.
    """

    name: str
    title: str
    summary: str
    languages: Mapping[str, str]
    examples: tuple[str, ...]
    spec: ForeignSpec


@dataclass(frozen=True)
class Foreign:
    """A network that another program runs, ready.

    Attributes:
        info: what is known of it.
        network: in float32, on its device.
        tokenizers: by strip.
        fingerprint: SHA-256 of the files that it came from.
        notes: what a viewer should know of how it computes, a sentence each.
    """

    info: ForeignInfo
    network: AnyForeign
    tokenizers: Mapping[str, Tokenizer]
    fingerprint: str
    notes: tuple[str, ...] = ()
