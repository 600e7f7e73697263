"""Inputs of networks without an embedding: float features, drawn at random or given, and the patches of images."""

import torch
from torch import Tensor

from model.errors import BadSetting, DoesNotFit, phrase
from model.spec.external import AnyStack, ForeignImage, ForeignStack
from model.spec.inputs import Features, RandomFeatures
from model.trace.types import Tokens

NO_EMBEDDING = phrase("numbers, because this network has no embedding for words or ids; “POSITIONS SEED” draws random ones")


def asked(name: str, text: str) -> RandomFeatures:
    """The random features that "POSITIONS SEED" asks for.

    Raises:
        BadSetting: the text is something else.
    """
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
    widths = {len(row) for row in given.rows}
    if widths != {width}:
        found = ", ".join(map(str, sorted(widths))) or "0"
        reason = phrase("each position must have {width:,} numbers, and found were: {found}", width=width, found=found)
        raise DoesNotFit(name=name, reason=reason)
    rows = torch.tensor(given.rows, dtype=torch.float32)
    if not rows.isfinite().all():
        raise DoesNotFit(name=name, reason=phrase("some of its numbers are NaN or infinite"))
    return rows


def image_of(stack: AnyStack) -> ForeignImage | None:
    """The images that a stack reads; None: it reads something else."""
    return stack.image if isinstance(stack, ForeignStack) else None


def positions_of(name: str, patches: Tensor, image: ForeignImage) -> tuple[Tokens, Tensor]:
    """The strip of an image, and [position, number]: rows of 0, which are not read, for what the network adds, then the patches.

    Args:
        patches: [patch, number].

    Raises:
        DoesNotFit: the network reads another number of patches.
    """
    if len(patches) != image.patches:
        reason = phrase(
            "it has {found:,} rows, and this network reads exactly {rows:,} rows of {width:,} numbers",
            found=len(patches),
            rows=image.patches,
            width=image.width,
        )
        raise DoesNotFit(name=name, reason=reason)
    special = (True,) * len(image.added) + (False,) * image.patches
    tokens = Tokens(name, (), image.names, special=special, unknown=(False,) * len(special))
    return tokens, torch.cat([patches.new_zeros(len(image.added), image.width), patches])
