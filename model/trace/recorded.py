"""Facts about a recorded program in a trace: a network that this project does not know, recorded while it ran (docs/record.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from model.errors import BadSetting, phrase


@dataclass(frozen=True)
class RecordedSite:
    """Where the attention of one site was computed, and how its weights were obtained.

    Attributes:
        module: path of the module that computed it, as `named_modules` names it; empty: code outside any module.
        origin: `computed`: the program computed these weights; `recomputed`: a fused kernel ran, which never holds weights, so they
            were computed again from its queries, keys, mask and scale.
        operation: the operation that weighed the values, such as `aten.bmm`.
        difference: largest absolute difference between recomputed weights · values and what the kernel returned; None: nothing to
            compare, since the program computed the weights, or since the kernel drew random numbers for dropout.
        batch: length of the batch axis from which the example was taken.
    """

    module: str
    origin: Literal["computed", "recomputed"]
    operation: str
    difference: float | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            BadSetting: a value is not allowed.
        """
        if self.difference is not None and self.difference < 0:
            raise BadSetting(name="difference", found=self.difference, allowed=phrase("a number from 0, or NaN"))
        if self.batch < 1:
            raise BadSetting(name="batch", found=self.batch, allowed=phrase("a whole number from 1"))


@dataclass(frozen=True)
class Recorded:
    """That a trace is the recording of a program, and of which part of its run.

    Attributes:
        program: the script, or the class of the recorded model.
        torch: version of PyTorch that ran it.
        calls: the recorded calls of the model, counted from 0, as START:STOP.
        example: index of the recorded example on the batch axis, counted from 0.
        given: the strips whose token texts were given; the texts of other strips are positions, counted from 1.
        sites: the sites, by the text form of Site.
    """

    program: str
    torch: str
    calls: str
    example: int
    given: tuple[str, ...]
    sites: Mapping[str, RecordedSite]
