"""The stages of a run, in the order in which they ran: the computation clock.

The walk is read off what the run recorded, so it shows the order that this network has: a pre-norm layer norms before its attention, a
post-norm layer after the sum, and a stack that is applied twice is walked twice. docs/stages.md has a line for each stage name.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model.errors import NotFound
from model.trace import Array, Site, Trace

TEACHING_TEXT = Path(__file__).parent / "transformer"


class UnknownStage(NotFound):
    """Fields: asked, there."""

    template = "There is no stage {asked!r} in this run; there is: {there}. Choose one of these."


@dataclass(frozen=True)
class Stage:
    """One stage of one run.

    Attributes:
        place: where in the network: a stack (`encoder`), a Site (`decoder.0.2.cross`), a feed-forward sublayer
            (`decoder.0.2.feed_forward`), or `output`.
        name: what happens there: one of NAMES.
    """

    place: str
    name: str

    def __str__(self) -> str:
        return f"{self.place}/{self.name}"

    @property
    def site(self) -> Site | None:
        """The attention site that the stage is in; None: in none."""
        return (
            None
            if self.place in ("encoder", "decoder", "output") or self.place.endswith("feed_forward")
            else Site.parse(self.place)
        )


ATTENTION = ("queries", "keys", "values", "scores", "mask", "weights", "context", "output")
OUTPUT = ("logits", "probabilities", "chosen")

CODE = {
    "tokens": ("stacks.py", "Embedding.forward"),
    "embedding": ("stacks.py", "Embedding.forward"),
    "scaled": ("stacks.py", "Embedding.forward"),
    "positioned": ("stacks.py", "Embedding.forward"),
    "normed": ("layers.py", "PostNorm.forward"),
    "queries": ("attention.py", "MultiHeadAttention.forward"),
    "keys": ("attention.py", "MultiHeadAttention.keys_and_values"),
    "values": ("attention.py", "MultiHeadAttention.keys_and_values"),
    "scores": ("attention.py", "attend"),
    "mask": ("masks.py", "additive"),
    "weights": ("attention.py", "softmax_uniform"),
    "context": ("attention.py", "attend"),
    "output": ("attention.py", "MultiHeadAttention.forward"),
    "residual": ("layers.py", "PostNorm.forward"),
    "hidden": ("layers.py", "FeedForward.forward"),
    "contracted": ("layers.py", "FeedForward.forward"),
    "final": ("stacks.py", "Decoder.forward"),
    "logits": ("stacks.py", "EncoderDecoder.decode"),
    "probabilities": ("stacks.py", "EncoderDecoder.decode"),
    "chosen": ("stacks.py", "EncoderDecoder.decode"),
}
"""For each stage name the file and the function of model/transformer/ that computes it."""

NAMES = tuple(CODE)


def walk(trace: Trace) -> tuple[Stage, ...]:
    """All stages of a run that kept everything, first to last."""
    seen: dict[Stage, None] = dict.fromkeys(_through_the_stacks(trace))
    lone = (site for site in map(str, trace.attention) if Stage(site, "weights") not in seen)  # a module without a residual
    seen |= dict.fromkeys(Stage(site, name) for site in lone for name in ATTENTION)
    if trace.logits is not None:
        seen |= dict.fromkeys(Stage("output", name) for name in OUTPUT)
    return tuple(seen)


def _through_the_stacks(trace: Trace) -> Iterator[Stage]:
    for path in trace.stages:
        place, _, name = path.rpartition("/")
        stack = trace.model["spec"].get(place) or {}
        match name:
            case "embedding":
                yield Stage(place, "tokens")
                yield Stage(place, "embedding")
            case "scaled":
                if stack["embed_scale"] == "sqrt":
                    yield Stage(place, "scaled")
                yield Stage(place, "positioned")
            case "residual":
                if not place.endswith("feed_forward"):
                    yield from (Stage(place, part) for part in ATTENTION)
                yield Stage(place, "residual")
            case "final":
                if stack["final_norm"]:
                    yield Stage(place, "final")
            case "output":
                yield Stage(place, "contracted")
            case _:
                yield Stage(place, name)


def find(trace: Trace, text: str) -> Stage:
    """The stage whose text form is `text`.

    Raises:
        UnknownStage: the run has no such stage.
    """
    there = {str(stage): stage for stage in walk(trace)}
    if text not in there:
        raise UnknownStage(asked=text, there=", ".join(there))
    return there[text]


def tensor(trace: Trace, stage: Stage, head: int) -> Array | None:
    """What a stage made, as it was recorded; None: the stage is no tensor (tokens, the token taken, a softmax over the vocabulary).

    Args:
        head: of the attention stages, counted from 0.

    Returns:
        queries [query, head_dim], keys and values [key, head_dim], scores and weights [query, key], mask [query, key] of bool,
        context [query, head_dim], hidden [position, hidden], logits [position, vocab], everything else [position, model].
    """
    if stage.site is not None and stage.name in ATTENTION:
        attention = trace.at(stage.site)
        attention.head(head)
        found: Array | None = getattr(attention, {"queries": "q", "keys": "k", "values": "v"}.get(stage.name, stage.name))
        return found[head] if found is not None and stage.name not in ("mask", "output") else found
    match stage.name:
        case "positioned":
            return trace.embedded.get(stage.place)
        case "contracted":
            return trace.stages.get(f"{stage.place}/output")
        case "logits":
            return trace.logits
    return trace.stages.get(str(stage))


@dataclass(frozen=True)
class Code:
    """Lines of model/transformer/: the file's path, the first line's number, and the text without its docstring."""

    path: str
    first_line: int
    text: str


@cache
def code(name: str) -> Code:
    """The function that computes the stages called `name`, read from its file."""
    file, qualified = CODE[name]
    source = (TEACHING_TEXT / file).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(source)
    for part in qualified.split("."):
        node = next(child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part)
    assert isinstance(node, ast.FunctionDef)
    lines = source.splitlines()
    documentation = node.body[0]
    signature = lines[node.lineno - 1 : documentation.lineno - 1]
    body = lines[documentation.end_lineno or documentation.lineno : node.end_lineno]
    indent = node.col_offset
    return Code(f"model/transformer/{file}", node.lineno, "\n".join(line[indent:] for line in signature + body))
