"""What a layout is: how one family of programs names its weights, what those names tell, and what they leave open.

A layout is a value. It sees names and shapes alone, never numbers, and infers nothing from a ratio of shapes: what names and shapes
do not tell is a Question, asked of whoever has the file.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from model.checkpoints.layouts.questions import Answers, Question, heads_differ
from model.spec.network import AttentionSpec, ModelSpec, OutputSpec, StackSpec

Rules: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Their names -> ours. `#` stands for a layer's number and `@` for weight or bias, in both. Several of ours share their tensor in
equal parts along its first axis, or where one is as large as theirs, each is a
copy; () is a tensor behind the network, which no map depends on."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern).replace(r"\#", "(0|[1-9][0-9]{0,3})").replace("@", "(weight|bias)")
    return re.compile(escaped)


class MissingTensor(LookupError):
    """A tensor that a layout needs to say what the network is. `args[0]` is its name."""


@dataclass(frozen=True)
class Shapes:
    """Names and shapes of a file's tensors."""

    of: Mapping[str, tuple[int, ...]]

    def has(self, pattern: str) -> bool:
        """Whether a name fits the pattern."""
        return any(_compiled(pattern).fullmatch(name) for name in self.of)

    def size(self, name: str, axis: int) -> int:
        """How long one axis of a tensor is.

        Raises:
            MissingTensor: there is no such tensor, or it has no such axis.
        """
        shape = self.of.get(name, ())
        if not -len(shape) <= axis < len(shape) or not shape[axis]:
            raise MissingTensor(name)
        return shape[axis]

    def layers(self, pattern: str) -> int:
        """How many layers the names that fit number, from 0 without a gap.

        Raises:
            MissingTensor: one is left out.
        """
        found = {int(match[1]) for name in self.of if (match := _compiled(pattern).fullmatch(name))}
        for number in range(len(found)):
            if number not in found:
                raise MissingTensor(pattern.replace("#", str(number)))
        return len(found)


def renamed(shapes: Shapes, rules: Rules) -> dict[str, tuple[str, ...]]:
    """Our names for each of their names that a rule covers."""
    found: dict[str, tuple[str, ...]] = {}
    for name in shapes.of:
        for pattern, ours in rules.items():
            if match := _compiled(pattern).fullmatch(name):
                parts = (ours,) if isinstance(ours, str) else ours
                found[name] = tuple(_filled(part, match.groups()) for part in parts)
                break
    return found


def _filled(ours: str, groups: tuple[str, ...]) -> str:
    """`ours` with the layer's number and weight or bias put in."""
    number = next((group for group in groups if group.isdigit()), "")
    kind = next((group for group in groups if not group.isdigit()), "")
    return ours.replace("#", number).replace("@", kind)


@dataclass(frozen=True)
class Match:
    """Evidence that a file is of a layout, and evidence that it is not, each a list of short phrases."""

    in_favour: tuple[str, ...]
    against: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.against


def requires(*patterns: str) -> Callable[[Shapes], Match]:
    """A `match` that wants a name for each pattern."""

    def match(shapes: Shapes) -> Match:
        there = [pattern for pattern in patterns if shapes.has(pattern)]
        return Match(
            tuple(f"has {pattern}" for pattern in there), tuple(f"lacks {pattern}" for pattern in patterns if pattern not in there)
        )

    return match


@dataclass(frozen=True)
class Layout:
    """One family of programs.

    Attributes:
        name: what `--set layout=` takes.
        title: for people.
        match: whether the names are of this family.
        rules: names, theirs -> ours; may depend on what is there and on what was told.
        ask: what the names and shapes leave open, given what was told already.
        read: the network, given the answers.
        notes: what a viewer should know of how these networks compute, a sentence each.
        starts, ends: strips whose typed texts get a start or an end token.
    """

    name: str
    title: str
    match: Callable[[Shapes], Match]
    rules: Callable[[Shapes, Mapping[str, str]], Rules]
    ask: Callable[[Shapes, Mapping[str, str]], tuple[Question, ...]]
    read: Callable[[Shapes, Answers], ModelSpec]
    notes: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


def attention(answers: Answers, heads: str, width: int, bias: bool) -> AttentionSpec:
    """Attention whose heads share `width` columns.

    Args:
        heads: the question that tells how many.

    Raises:
        BadSetting: a head_dim was told that these heads do not have.
    """
    count = answers.number(heads)
    head_dim = width // count
    told = answers.optional_number("head_dim")
    if told is not None and told != head_dim:
        raise heads_differ(heads, count, told, width)
    return AttentionSpec(count, head_dim, bias)


def model_spec(answers: Answers, encoder: StackSpec | None, decoder: StackSpec | None, output: OutputSpec | None) -> ModelSpec:
    """The network of these stacks and the special ids that were told. An id that was not told, or never asked for, is None."""
    return ModelSpec(
        decoder,
        encoder,
        output,
        pad_id=answers.optional_number("source_pad_id" if encoder is None or decoder is None else "target_pad_id"),
        source_pad_id=answers.optional_number("source_pad_id"),
        start_id=answers.optional_number("bos_id"),
        end_id=answers.optional_number("eos_id"),
        unk_id=answers.optional_number("unk_id"),
    )
