"""From what a request gives to what a network reads: text or ids to a strip and a tensor of ids, features to a tensor of floats."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.errors import BadSetting, TokenOutOfRange, TooManyTokens
from model.spec.external import AnySpec, AnyStack
from model.spec.inputs import POSITIONS, Features, Given, RandomFeatures, check_size
from model.spec.request import RunRequest
from model.tokenizers.words import Tokenizer
from model.trace.types import Tokens


@dataclass(frozen=True)
class Input:
    """One input of a network.

    Attributes:
        tokens: its strip.
        tensor: [1, position] of ids, or [1, position, model] of features.
        unread: how many of the last tokens are compared with what is written, and not read.
    """

    tokens: Tokens
    tensor: Tensor
    unread: int = 0

    def __len__(self) -> int:
        return len(self.tokens)

    def to(self, dtype: torch.dtype) -> "Input":
        """With features as numbers of `dtype`; ids stay as they are."""
        return replace(self, tensor=self.tensor.to(dtype)) if self.tensor.is_floating_point() else self


@dataclass(frozen=True)
class Inputs:
    """The inputs of one run.

    Attributes:
        source: without padding.
        target: the given target of an encoder-decoder; None: there is none.
    """

    source: Input
    target: Input | None = None

    @property
    def longest(self) -> int:
        """Positions of the longer one."""
        return max(len(self.source), len(self.target or ()))

    def to(self, dtype: torch.dtype) -> "Inputs":
        """With features as numbers of `dtype`."""
        return Inputs(self.source.to(dtype), None if self.target is None else self.target.to(dtype))


@dataclass(frozen=True)
class Reader:
    """Reads the inputs of one network.

    Attributes:
        tokenizers: by strip; features need none.
        device: where the network computes.
        most: positions of an input that are read here, of models that have more.
    """

    tokenizers: Mapping[str, Tokenizer]
    device: torch.device
    most: int = POSITIONS

    def inputs(self, request: RunRequest, spec: AnySpec) -> Inputs:
        """The inputs of a run. To cut a text can take long: a run and the float32 run beside it share them.

        Raises:
            InputError: as for `read`.
        """
        source = self.read("source", request.source, spec.encoder or spec.writer)
        if request.target is None or spec.encoder is None or spec.decoder is None:
            return Inputs(source)
        typed = isinstance(request.target, str) and bool(spec.writer.vocab) and self.tokenizers["target"].ends
        return Inputs(source, self.read("target", request.target, spec.writer, unread=int(typed)))

    def read(self, name: str, given: Given, stack: AnyStack, unread: int = 0) -> Input:
        """What `given` is for `stack`.

        Args:
            name: of the strip, `source` or `target`.
            unread: how many of the last tokens are compared and not read.

        Raises:
            InputError: it is empty, does not fit the stack's positions, or is of a kind that the network does not read.
        """
        allowed, reason = self.room(stack)
        check_size(name, given, allowed + unread, reason)
        if isinstance(given, str) and not stack.vocab:
            given = _asked(name, given)
        if isinstance(given, Features | RandomFeatures):
            check_size(name, given, allowed, reason)
            return self._features(name, given, stack)
        if not stack.vocab:
            raise BadSetting(name=name, found=given, allowed=_NO_EMBEDDING)
        tokens = self.tokenizers[name].encode(given, name) if isinstance(given, str) else self.tokens(name, given)
        if not tokens.ids:
            raise BadSetting(name=f"{name} ids", found="empty", allowed="at least one id")
        if len(tokens) - unread > allowed:
            raise TooManyTokens(what=f"{name} text", found=len(tokens), allowed=allowed + unread, reason=reason)
        return Input(tokens, torch.tensor([tokens.ids], device=self.device), unread)

    def room(self, stack: AnyStack) -> tuple[int, str]:
        """How many positions of `stack` may be read, and why no more."""
        if self.most < stack.max_positions:
            return self.most, "the limit of this server"
        return (
            stack.max_positions,
            "the model has no more positions" if stack.positions == "learned" else "the limit set in its spec",
        )

    def tokens(self, name: str, ids: tuple[int, ...]) -> Tokens:
        """The strip of ids as they are.

        Raises:
            TokenOutOfRange: the vocabulary does not have one of them.
        """
        tokenizer = self.tokenizers[name]
        for id_ in ids:
            if not 0 <= id_ < tokenizer.size:
                raise TokenOutOfRange(what=name, found=id_, last=f"{tokenizer.size - 1:,}")
        return tokenizer.tokens(ids, name)

    def _features(self, name: str, given: Features | RandomFeatures, stack: AnyStack) -> Input:
        if stack.vocab:
            raise BadSetting(name=name, found="features", allowed="a text or ids: this network reads words through its embedding")
        rows = _draw(given, stack.d_model) if isinstance(given, RandomFeatures) else _rows(name, given, stack.d_model)
        texts, no = tuple(str(i + 1) for i in range(len(rows))), (False,) * len(rows)
        return Input(Tokens(name, (), texts, special=no, unknown=no), rows[None].to(self.device))


_NO_EMBEDDING = "features: this network has no embedding that could read words or ids; two numbers draw some, POSITIONS SEED"


def _asked(name: str, text: str) -> RandomFeatures:
    """The random features that "POSITIONS SEED" asks for."""
    typed = text.replace(",", " ").split()
    if len(typed) != 2 or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in typed):
        raise BadSetting(name=name, found=text[:80], allowed=_NO_EMBEDDING)
    return RandomFeatures(int(typed[0]), int(typed[1]))


def _draw(given: RandomFeatures, width: int) -> Tensor:
    return torch.randn(given.positions, width, generator=torch.Generator().manual_seed(given.seed))


def _rows(name: str, given: Features, width: int) -> Tensor:
    """[position, model]"""
    widths = {len(row) for row in given.rows}
    if widths != {width}:
        found = " and ".join(map(str, sorted(widths))) or "no"
        raise BadSetting(
            name=f"{name} features", found=f"rows of {found} numbers", allowed=f"rows of {width} numbers, one a position"
        )
    rows = torch.tensor(given.rows, dtype=torch.float32)
    if not rows.isfinite().all():
        raise BadSetting(name=f"{name} features", found="NaN or infinite", allowed="finite numbers")
    return rows
