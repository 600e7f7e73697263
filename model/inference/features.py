"""Inputs of networks without an embedding: float features, drawn at random or given, patches of images, frames of sounds."""

from dataclasses import dataclass
from math import ceil
from typing import Protocol

import torch
from torch import Tensor

from model.errors import BadSetting, DoesNotFit, Words, phrase
from model.inference.sounds import sound
from model.requests.external import AnyStack, ForeignImage, ForeignSound, ForeignStack
from model.requests.inputs import Features, RandomFeatures
from model.trace.types import Array, Tokens

NO_EMBEDDING = phrase("numbers, because this network has no embedding for words or ids; “POSITIONS SEED” draws random ones")


def asked(name: str, text: str) -> RandomFeatures:
    """The random features that "POSITIONS SEED" asks for.

    Raises:
        BadSetting: the text is something else.
    """
    # Nineteen digits and more would not fit into the generator's 64-bit seed.
    typed = text.replace(",", " ").split()
    if len(typed) != 2 or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in typed):
        raise BadSetting(name=name, found=text[:80], allowed=NO_EMBEDDING)
    return RandomFeatures(int(typed[0]), int(typed[1]))


def rows_of(name: str, given: Features | RandomFeatures, width: int) -> Tensor:
    """[position, model]

    Raises:
        DoesNotFit: a row has another width, or a number is not finite.
    """
    if isinstance(given, RandomFeatures):
        return torch.randn(given.positions, width, generator=torch.Generator().manual_seed(given.seed))
    # All rows at once: the sentence then names every width that occurs, not only the first wrong one.
    widths = {len(row) for row in given.rows}
    if widths != {width}:
        given_widths = ", ".join(map(str, sorted(widths))) or "0"
        reason = phrase("each position must have {width:,} numbers, and found were: {found}", width=width, found=given_widths)
        raise DoesNotFit(name=name, reason=reason)
    rows = torch.tensor(given.rows, dtype=torch.float32)
    if not rows.isfinite().all():
        raise DoesNotFit(name=name, reason=phrase("some of its numbers are NaN or infinite"))
    return rows


def image_of(stack: AnyStack) -> ForeignImage | None:
    """The images that a stack reads; None: it reads something else."""
    return stack.image if isinstance(stack, ForeignStack) else None


def sound_of(stack: AnyStack) -> ForeignSound | None:
    """The sounds that a stack reads; None: it reads something else."""
    return stack.sound if isinstance(stack, ForeignStack) else None


def moments_of(name: str, rows: Tensor, read: ForeignSound, heard: int) -> Tokens:
    """The strip of a sound: the second at which each position begins. Those of the silence after it are marked as special.

    Args:
        rows: [position, number], what the network reads.
        heard: number of positions that the sound fills.

    Raises:
        DoesNotFit: the network reads another number of positions.
    """
    _check_rows(name, rows, read.positions, read.width)
    # Special tokens can be left out of maps: most of a short sound is the silence that fills it up.
    silent = (False,) * heard + (True,) * (read.positions - heard)
    return Tokens(name, (), read.names, special=silent, unknown=(False,) * read.positions)


def positions_of(name: str, patches: Tensor, image: ForeignImage) -> tuple[Tokens, Tensor]:
    """The strip of an image, and [position, number]: rows of 0, which are not read, for what the network adds, then the patches.

    Args:
        patches: [patch, number].

    Raises:
        DoesNotFit: the network reads another number of patches.
    """
    _check_rows(name, patches, image.patches, image.width)
    # An image network puts tokens of its own before the patches, such as [CLS]; they belong to no part of the image.
    special = (True,) * len(image.added) + (False,) * image.patches
    tokens = Tokens(name, (), image.names, special=special, unknown=(False,) * len(special))
    return tokens, torch.cat([patches.new_zeros(len(image.added), image.width), patches])


def _check_rows(name: str, rows: Tensor, needed: int, width: int) -> None:
    if len(rows) != needed:
        reason = phrase(
            "it has {found:,} rows, and this network reads exactly {rows:,} rows of {width:,} numbers",
            found=len(rows),
            rows=needed,
            width=width,
        )
        raise DoesNotFit(name=name, reason=reason)


class PreparesImages(Protocol):
    """Makes of an image what a network reads."""

    def read(self, colors: Array, image: ForeignImage) -> tuple[Tensor, Array]:
        """[patch, number], and [row, column, color] of uint8: what is left of an image [row, column, color]."""


class PreparesSounds(Protocol):
    """Makes of a sound what a network reads."""

    @property
    def rate(self) -> int:
        """Samples a second that it reads."""

    @property
    def most(self) -> int:
        """Most samples that it reads of a sound."""

    def read(self, samples: Array) -> Tensor:
        """The spectrogram [band, frame] of samples [sample]."""

    def rows(self, spectrogram: Tensor, sound: ForeignSound) -> Tensor:
        """[position, number]: the frames of a spectrogram that become one position."""


@dataclass(frozen=True, eq=False)
class Heard:
    """What a network reads of a sound.

    Attributes:
        tokens: the strip of its positions.
        rows: [position, number]: the frames of the spectrogram that become one position.
        samples: [sample], at the network's rate, without the silence that fills a short sound up.
        spectrogram: [band, frame], that silence included.
        notes: sentences for viewers about how it was read.
    """

    tokens: Tokens
    rows: Tensor
    samples: Array
    spectrogram: Array
    notes: tuple[Words, ...]


def hear(name: str, given: str, reader: PreparesSounds, read: ForeignSound) -> Heard:
    """What a network reads of the sound of that name.

    Args:
        name: name of the strip.
        reader: prepares the sound.
        read: what the network reads.

    Raises:
        UnknownSound: it is not here, or was dropped.
        DoesNotFit: the folder does not say how to prepare a sound.
    """
    sent, rate = sound(given), reader.rate
    # At the network's rate first, so that `most` counts the samples that it reads.
    samples = sent.at(rate)[: reader.most]
    spectrogram = reader.read(samples)
    rows = reader.rows(spectrogram, read)
    # Positions that begin while the sound lasts; the others hold the silence behind it.
    filled = min(read.positions, ceil(len(samples) / (read.joined * read.hop)))
    notes: list[Words] = []
    if sent.channels > 1:
        notes.append(phrase("The file holds {channels} channels, whose mean was read.", channels=sent.channels))
    if sent.seconds * rate > reader.most:
        notes.append(
            phrase(
                "The sound lasts {all:.1f} s, of which the first {most:,} s were read.", all=sent.seconds, most=reader.most // rate
            )
        )
    return Heard(moments_of(name, rows, read, filled), rows, samples, spectrogram.numpy(), tuple(notes))
