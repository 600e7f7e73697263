"""A network of the transformers library, loaded and ready to run."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch

from model.errors import CannotSurvey, Words, phrase
from model.huggingface.images import ImageReader
from model.huggingface.network import AnyForeign, ForeignNetwork, WholeNetwork
from model.huggingface.sounds import SoundReader
from model.requests.external import ForeignSpec
from model.requests.request import Decoding
from model.tokenizers.words import Tokenizer


@dataclass(frozen=True)
class ForeignInfo:
    """Facts about an external network.

    Attributes:
        name, title, summary, languages, examples, example_labels: as in checkpoints.Info.
        spec: the network.
        sampling: how its authors have it sample; None: they do not say.
    """

    name: str
    title: str
    summary: Words
    languages: Mapping[str, str]
    examples: tuple[str, ...]
    spec: ForeignSpec
    example_labels: tuple[str, ...] = ()
    sampling: Decoding | None = None

    @property
    def own_examples(self) -> bool:
        """Whether its authors chose the examples."""
        return False


@dataclass(frozen=True)
class Foreign:
    """An external network, ready to run.

    Attributes:
        info: facts about it.
        network: on its device, in the precision of its file unless float32 was asked for.
        tokenizers: by strip.
        fingerprint: SHA-256 of its files.
        notes: remarks on its arithmetic for viewers, a sentence each.
        folder: where its survey may lie; None: it was not read from a folder.
        images: makes of an image what it reads; None: it reads something else.
        sounds: the same of a sound.
    """

    info: ForeignInfo
    network: AnyForeign | WholeNetwork
    tokenizers: Mapping[str, Tokenizer]
    fingerprint: str
    notes: tuple[Words, ...] = ()
    folder: Path | None = None
    images: ImageReader | None = None
    sounds: SoundReader | None = None

    @property
    def converts(self) -> bool:
        """Whether its weights can be converted to other number types: the library may need some of its numbers in float32."""
        return False

    @cached_property
    def parameters(self) -> int:
        """The number of weights."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def untrained(self) -> "Foreign":
        """The same with new random weights, the same ones every time: what the network's form alone makes of a text.

        Raises:
            CannotSurvey: it is known how to run the network, but not how it is built.
        """
        network = self.network
        if not isinstance(network, ForeignNetwork):
            raise CannotSurvey(
                reason=phrase("this network is recorded as a whole, so it cannot be built again without its weights")
            )
        device = next(iter(network.parameters())).device
        # the random numbers of the caller stay as they were
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            library = type(network.library)(deepcopy(network.library.config))
            return replace(self, network=network.with_library(library.to(device).eval()))
