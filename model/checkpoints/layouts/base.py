"""Layout: how one family of programs names its weights, what the names tell, and which questions they leave open.

A layout is a value. It sees only names and shapes, never numbers, and infers nothing from a ratio of shapes: what they do not tell
becomes a Question to the user.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from model.checkpoints.layouts.questions import Answers, Question
from model.errors import BadSetting, Words, phrase
from model.requests.layout_file import LayoutFile
from model.requests.network import AttentionSpec, ModelSpec, OutputSpec, StackSpec

Rules: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Their names -> ours. `#` means a layer's number and `@` weight or bias, in both. Several of ours share their tensor:
they lie below each other along its first axis, or where one is as large as theirs, each is a copy; () is a tensor after the
network, which no map depends on."""


class ByKeyHead(tuple[str, ...]):
    """Our names of queries, keys and values that share a tensor group by group: the queries of a group, its key, its value."""

    __slots__ = ()


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # no leading zeros: layer 07 is not layer 7, and two names must not become one
    escaped = re.escape(pattern).replace(r"\#", "(0|[1-9][0-9]{0,3})").replace("@", "(weight|bias)")
    return re.compile(escaped)


class MissingTensor(LookupError):
    """A tensor is missing that a layout needs to describe the network. `args[0]` is its name."""


@dataclass(frozen=True)
class Shapes:
    """Names and shapes of a file's tensors."""

    of: Mapping[str, tuple[int, ...]]

    def has(self, pattern: str) -> bool:
        """Whether a name matches the pattern."""
        return any(_compiled(pattern).fullmatch(name) for name in self.of)

    def size(self, name: str, axis: int) -> int:
        """The size of one axis of a tensor.

        Raises:
            MissingTensor: there is no such tensor, or it has no such axis.
        """
        shape = self.of.get(name, ())
        # a forged file may have a tensor without axes or without numbers
        if not -len(shape) <= axis < len(shape) or not shape[axis]:
            raise MissingTensor(name)
        return shape[axis]

    def layers(self, pattern: str) -> int:
        """Number of layers in the names that match, counted from 0 without gaps.

        Raises:
            MissingTensor: a layer is missing.
        """
        numbers = {int(match[1]) for name in self.of if (match := _compiled(pattern).fullmatch(name))}
        for number in range(len(numbers)):
            if number not in numbers:
                raise MissingTensor(pattern.replace("#", str(number)))
        return len(numbers)


def renamed(shapes: Shapes, rules: Rules) -> dict[str, tuple[str, ...]]:
    """Our names for each foreign name that a rule covers."""
    ours_by_name: dict[str, tuple[str, ...]] = {}
    for name in shapes.of:
        for pattern, ours in rules.items():  # the first rule that fits, so a table lists exceptions before the rule
            if match := _compiled(pattern).fullmatch(name):
                parts = (ours,) if isinstance(ours, str) else ours
                filled = tuple(_filled(part, match.groups()) for part in parts)
                ours_by_name[name] = ByKeyHead(filled) if isinstance(ours, ByKeyHead) else filled
                break
    return ours_by_name


def _filled(ours: str, groups: tuple[str, ...]) -> str:
    """`ours` with layer number and weight or bias filled in."""
    number = next((group for group in groups if group.isdigit()), "")
    kind = next((group for group in groups if not group.isdigit()), "")
    return ours.replace("#", number).replace("@", kind)


@dataclass(frozen=True)
class Match:
    """Evidence for and against a layout, as lists of short phrases."""

    in_favour: tuple[Words, ...]
    against: tuple[Words, ...]

    def __bool__(self) -> bool:
        """Whether there is no evidence against it."""
        return not self.against


def requires(*patterns: str) -> Callable[[Shapes], Match]:
    """A `match` that requires a name for each pattern."""

    def match(shapes: Shapes) -> Match:
        present = [pattern for pattern in patterns if shapes.has(pattern)]
        return Match(
            tuple(phrase("it has {pattern}", pattern=pattern) for pattern in present),
            tuple(phrase("it lacks {pattern}", pattern=pattern) for pattern in patterns if pattern not in present),
        )

    return match


@dataclass(frozen=True)
class Layout:
    """One family of programs.

    Attributes:
        name: its name in `--set layout=`.
        title: shown on screen.
        match: evidence for and against the layout.
        rules: foreign names -> ours; may depend on the file's names and on settings.
        ask: the questions left open, given the settings.
        read: makes the spec from the answers.
        notes: remarks on their arithmetic for viewers, a sentence each.
        starts, ends: strips whose typed texts get a start or an end token.
        file: the layout file that it was made from.
        recomputed: patterns of tensors that their program recomputes and never reads from a file.
    """

    name: str
    title: Words
    match: Callable[[Shapes], Match]
    rules: Callable[[Shapes, Mapping[str, str]], Rules]
    ask: Callable[[Shapes, Mapping[str, str]], tuple[Question, ...]]
    read: Callable[[Shapes, Answers], ModelSpec]
    notes: tuple[Words, ...] = ()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    file: LayoutFile | None = None

    def recomputes(self, name: str) -> bool:
        """Whether their program recomputes this tensor."""
        return any(_compiled(pattern).fullmatch(name) for pattern in self.recomputed)


def attention(answers: Answers, heads: str, width: int, bias: bool) -> AttentionSpec:
    """Attention whose heads share `width` columns.

    Args:
        heads: name of the question about the number of heads.

    Raises:
        BadSetting: the given head_dim contradicts the number of heads.
    """
    count = answers.number(heads)
    head_dim = width // count
    # the number of heads decides; a width that somebody gave as well must fit it
    given_width = answers.optional_number("head_dim")
    if given_width is not None and given_width != head_dim:
        fields = {"name": heads, "count": count, "width": width, "fits": head_dim}
        allowed = phrase("{fits}, the width of a head where {name}={count} and there are {width:,} columns", **fields)
        raise BadSetting(name="head_dim", found=given_width, allowed=allowed)
    return AttentionSpec(count, head_dim, bias)


def grouped_attention(answers: Answers, queries: int, keys: int, bias: bool) -> AttentionSpec:
    """Attention whose heads may share keys and values.

    Args:
        queries, keys: columns of all heads' queries, and of all heads' keys.

    Raises:
        BadSetting: given head_dim, key_heads and n_heads contradict each other.
    """
    count = answers.number("n_heads")
    head_dim = queries // count
    key_heads = keys // head_dim
    for name, fitting in (("head_dim", head_dim), ("key_heads", key_heads)):
        if (given := answers.optional_number(name)) not in (None, fitting):
            allowed = phrase(
                "{found}, which fits n_heads={count} with {queries:,} columns of queries and {keys:,} of keys",
                found=fitting,
                count=count,
                queries=queries,
                keys=keys,
            )
            raise BadSetting(name=name, found=given, allowed=allowed)
    return AttentionSpec(count, head_dim, bias, key_heads=None if key_heads == count else key_heads)


def model_spec(answers: Answers, encoder: StackSpec | None, decoder: StackSpec | None, output: OutputSpec | None) -> ModelSpec:
    """The network of these stacks and the special ids of the answers. Ids without an answer are None."""
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
