"""Leftover tensors: those of a file that no part of the network uses. A few kinds are harmless; any other one is an error.

A tensor is harmless only if its name is one that programs give to such tensors and its numbers fit the name. A buffer called `mask`
that hides all but a window would change what is computed, so it is not harmless.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import Phrase, phrase


@dataclass(frozen=True)
class Harmless:
    """A kind of tensor that does not change attention.

    Attributes:
        what: name of the kind, for viewers.
        names: pattern of the whole name of such a tensor.
        fits: whether a tensor's numbers are of this kind.
    """

    what: Phrase
    names: re.Pattern[str]
    fits: Callable[[Tensor], bool]


def is_causal_mask(tensor: Tensor) -> bool:
    """Whether a tensor [query, key] is a causal mask or hides nothing: one value up to the diagonal, one value after it."""
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or not tensor.numel():
        return False
    # True, 0 or 1, 0 or -inf: which value means what differs from program to program, so only where the values change is compared.
    seen = torch.ones(tensor.shape[-2:], dtype=torch.bool).tril()
    return all(_is_constant(tensor[..., part]) for part in (seen, ~seen))


def _is_constant(values: Tensor) -> bool:
    return not values.numel() or bool((values == values.flatten()[0]).all())


def _is_one_number(tensor: Tensor) -> bool:
    return tensor.numel() == 1


def _is_mask(tensor: Tensor) -> bool:
    return _is_one_number(tensor) or is_causal_mask(tensor)


def _counts_up(tensor: Tensor) -> bool:
    """Whether a tensor holds 0, 1, 2 … in each row."""
    whole = not (tensor.is_floating_point() or tensor.is_complex()) and tensor.dim() > 0
    return whole and bool((tensor == torch.arange(tensor.shape[-1])).all())


def _is_zero(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.any()


def _is_anything(tensor: Tensor) -> bool:
    return True


HARMLESS = tuple(
    Harmless(what, re.compile(names, re.IGNORECASE), fits)
    for what, names, fits in (
        (
            phrase("a counter"),
            r"(.*\.)?(n_averaged|num_updates|(global_|_)?step(_count)?s?|epochs?|iterations?|iter_num|version|_float_tensor|ema_decay)",
            _is_one_number,
        ),
        (phrase("a mask"), r"(.*[._])?(mask|masked_bias|tril|triu)|(.*\.)?(attn|attention)\.bias", _is_mask),
        (phrase("the numbers of the positions"), r"(.*[._])?(position_ids|pos_ids)", _counts_up),
        (phrase("segment ids that are all 0"), r"(.*[._])?token_type_ids", _is_zero),
        (
            phrase("part of the loss"),
            r"(.*\.)?(criterion|crit|loss|loss_fn|loss_func|loss_function|\w+_loss|\w+_criterion)(\..*)?|(.*\.)?(class|loss)_weights?",
            _is_anything,
        ),
        (phrase("part of a metric"), r"(\w+_)?(metrics?|accuracy|perplexity|bleu)(\..*)?", _is_anything),
    )
)
"""All harmless kinds. A rotary cache is not among them: in a network that is not known to rotate queries and keys, it says that
queries and keys are rotated after all."""


BEHIND = phrase("an output head after the network")
"""A further kind, which layouts and families recognize by its place: a head that reads the last hidden states."""


RECOMPUTED = phrase("recomputed by the program that saved it")
"""A further kind, which layouts recognize by its name: their program computes such a tensor when it starts."""


def what_is(name: str, tensor: Tensor) -> Phrase | None:
    """The kind of a leftover tensor, if it is harmless; None: it is not known to be."""
    return next((kind.what for kind in HARMLESS if kind.names.fullmatch(name) and kind.fits(tensor)), None)


def looks_harmless(name: str) -> bool:
    """Whether a tensor's name is one of a harmless kind; its numbers are not read."""
    return any(kind.names.fullmatch(name) for kind in HARMLESS)


def noted(left_over: Mapping[str, Phrase]) -> tuple[Phrase, ...]:
    """Notes for viewers about leftover tensors, one for each kind.

    Args:
        left_over: the kind of each leftover tensor, by its name.
    """
    kinds: dict[Phrase, list[str]] = {}
    for name, what in left_over.items():
        kinds.setdefault(what, []).append(name)
    return tuple(
        phrase(
            "Not used, because no attention map depends on it: {names}. What it is: {what}.", names=shortened(names, 8), what=what
        )
        for what, names in kinds.items()
    )


def shortened(names: Iterable[str], most: int = 3) -> str:
    """The first few names, and the number of the others."""
    listed = list(names)
    more = f", … (+{len(listed) - most})" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
