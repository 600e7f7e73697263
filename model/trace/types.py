"""Trace: what one run of one example recorded, frozen. `model` makes it and `viz` draws it.

Axis names, used everywhere: head, query, key, position, head_dim, model, hidden, vocab, candidate, step.
Weights are probabilities; scores are logits after scaling and before the mask; log-probabilities are natural.
Layers, heads, positions and steps count from 0 here, from 1 on screen.

This module needs only numpy. `model.trace.serialization` turns a Trace into bytes and back; docs/trace.md describes the file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from model.errors import UnknownHead, UnknownSite, Words, phrase
from model.requests.external import AnySpec
from model.requests.validation import read
from model.trace.beam_tree import Node
from model.trace.lazy_attention import Array as Array
from model.trace.lazy_attention import LazyAttention
from model.trace.recorded import Recorded
from model.trace.steps import Step

SCHEMA = 1
"""Version of a Trace's file format. It grows whenever an old reader would misread a new file."""

Kind: TypeAlias = Literal["self", "cross", "memory", "unknown"]

_COUNTS = {str(count): count for count in range(1000)}
"""Pass and layer numbers by their text: no leading zero, no sign, no digits of other scripts."""

_NODE_BYTES, _CANDIDATE_BYTES = 350, 240  # memory of a Node and of a Candidate, with their texts and numbers

UNWRITTEN = "attention/*/weights"
"""Key in `Trace.missing` of a run whose weights are computed when they are read."""


@dataclass(frozen=True, order=True)
class Site:
    """One application of an attention sublayer: which stack, which pass through it, which layer, which kind.

    The text form is `stack.pass.layer.kind`, for instance `decoder.1.0.cross`. A stack applied twice has passes 0 and 1.
    `memory` is attention of the encoder's output on itself inside a decoder layer.

    In the recording of a program the stack is `program` where it is not known, `pass_` is the call of the program, `layer` is the
    site's place in the order in which the sites of a stack ran, and the kind is `unknown` where it is not known.
    """

    stack: str
    pass_: int
    layer: int
    kind: Kind

    def __str__(self) -> str:
        """The site as text, `stack.pass.layer.kind`; `parse` reads it."""
        return f"{self.stack}.{self.pass_}.{self.layer}.{self.kind}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The Site that `text` names.

        Raises:
            UnknownSite: `text` is not of the form stack.pass.layer.kind.
        """
        match text.split("."):
            case [
                ("encoder" | "decoder" | "program") as stack,
                pass_,
                layer,
                ("self" | "cross" | "memory" | "unknown") as kind,
            ] if pass_ in _COUNTS and layer in _COUNTS:
                return cls(stack, _COUNTS[pass_], _COUNTS[layer], kind)
        raise UnknownSite(asked=text, there=phrase("names of the form stack.pass.layer.kind, such as encoder.0.0.self"))


def sites(spec: AnySpec) -> dict[Site, int]:
    """Every attention site of a network, in the order in which they run, with its number of heads."""
    heads: dict[Site, int] = {}
    for name, stack in spec.stacks.items():
        # A decoder with the wiring `memory` reads the encoder's output where others read their own text.
        first: Kind = "memory" if stack.wiring == "memory" and name == "decoder" else "self"
        kinds: tuple[Kind, ...] = (first, "cross") if name == "decoder" and spec.encoder is not None else (first,)
        # The order in which they run: a whole pass after the other, in it layer by layer, in a layer self before cross.
        places = product(range(stack.passes), range(stack.layers), kinds)
        heads |= {Site(name, pass_, layer, kind): stack.attention.heads for pass_, layer, kind in places}
    return heads


_PARTS_OF_TOKENS = ("ids", "texts", "special", "unknown")


@dataclass(frozen=True)
class Tokens:
    """One strip of tokens.

    Attributes:
        name: `source` or `target`; in the recording of a program also others, for sites with other numbers of positions.
        ids: ids that the network was given, one for each token. Empty for an input of float features, and in a recording.
        texts: texts that are shown: each token as typed, even where the vocabulary does not have it.
        special: True for tokens that stand for no text (start, end, padding).
        unknown: True where the vocabulary does not have the text, so that the network was given the unknown token instead.
    """

    name: str
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    special: tuple[bool, ...]
    unknown: tuple[bool, ...]

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.texts)

    def then(self, other: Self) -> Self:
        """This strip followed by the tokens of `other`."""
        return replace(self, **{part: getattr(self, part) + getattr(other, part) for part in _PARTS_OF_TOKENS})

    def first(self, count: int) -> Self:
        """The first tokens of this strip."""
        return replace(self, **{part: getattr(self, part)[:count] for part in _PARTS_OF_TOKENS})


@dataclass(frozen=True, eq=False)
class Attention:
    """The recorded tensors of one attention site.

    Shapes:
        weights: [head, query, key], probabilities: each row sums to 1 where any key is allowed. For a long input this is a
            LazyAttention, which is used like an array and computes weights from q and k when they are read.
        mask: [query, key] of bool, True where the query may attend to the key.
        mask_padding, mask_causal: [query, key], the parts that `mask` was combined from; None where the site has no such part.
        scores: [head, query, key], after scaling, before the mask. NaN where a cached step never computed them.
        q: [head, query, head_dim]; k, v: [head, key, head_dim].
        context: [head, query, head_dim], the weighted values.
        output: [query, model], heads joined and projected.
    """

    site: Site
    query_tokens: str
    key_tokens: str
    weights: Array
    mask: Array
    mask_padding: Array | None = None
    mask_causal: Array | None = None
    scores: Array | None = None
    q: Array | None = None
    k: Array | None = None
    v: Array | None = None
    context: Array | None = None
    output: Array | None = None

    @property
    def heads(self) -> int:
        """How many heads this site has."""
        return int(self.weights.shape[0])

    def head(self, index: int) -> Array:
        """Weights [query, key] of one head.

        Raises:
            UnknownHead: there is no such head here.
        """
        if not 0 <= index < self.heads:
            raise UnknownHead(asked=index, site=self.site, last=self.heads - 1)
        weights: Array = self.weights[index]
        return weights


AXES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "weights": ("head", "query", "key"),
        "mask": ("query", "key"),
        "mask_padding": ("query", "key"),
        "mask_causal": ("query", "key"),
        "scores": ("head", "query", "key"),
        "q": ("head", "query", "head_dim"),
        "k": ("head", "key", "head_dim"),
        "v": ("head", "key", "head_dim of v"),
        "context": ("head", "query", "head_dim of v"),
        "output": ("query", "model"),
    }
)
"""The axes of each array of an Attention: axes with equal names have equal sizes."""

TENSORS_OF_ATTENTION = tuple(AXES)
"""Names of the arrays of an Attention, in the order of the file."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Everything that one run recorded: the contract between `model`, which makes it, and `viz`, which draws it.

    Attributes:
        schema: version of the file format.
        model: facts about the network and the machine (name, title, fingerprint, spec, languages, device, dtype, milliseconds, and
            `notes`: sentences that a viewer should know about how it computes).
        request: the RunRequest, as plain JSON values.
        tokens: strips by name, `source` and (for an encoder-decoder) `target`; a recording may have others. The last target token
            may be one that was written and not read: then there are fewer query rows than tokens.
        attention: the tensors of each site, in the order in which the sites ran.
        positions: [position, model] by stack (`encoder`, `decoder`), the positional encodings that were added.
        embedded: [position, model] by stack, the embeddings after positions were added.
        hidden: [position, model] by `stack.pass.layer`, the residual stream after each layer.
        stages: the stages between these, by `PLACE/STAGE`: `STACK/embedding`, `STACK/scaled`, `STACK/final` (after the final norm),
            `SITE/residual` and `SITE/normed` around an attention sublayer, and for the feed-forward sublayer called
            `stack.pass.layer.feed_forward` its `hidden` [position, hidden], `output`, `residual`, `normed`; else [position, model].
        logits: [position, vocab], one row for each target position fed (for a language model: source position).
        steps: the steps of decoding, one for each token written.
        tree: all continuations that a beam search considered (model/trace/beam_tree.py); the rest of the trace shows the
            hypothesis that was asked for.
        missing: why something was not recorded, by the name it would have.
        image: [row, column, color] of uint8: of an image, what the network read, resized and cropped; None: it read something else.
        sound: [sample], from -1 to 1: of a sound, what the network heard, at its own rate, without the silence that fills it up.
        spectrogram: [band, frame]: what it read of that sound, the silence included.
        recorded: what `headlight.py` recorded; None: the network itself recorded its attention. The recording of a program has no
            request, spec, logits or steps; the run of a library's network without a row has them.
        sums: why a score and a token are what they are (docs/why.md), as JSON values, where they were saved with the run: `why` and
            `writes`, each at most once.
    """

    model: Mapping[str, Any]
    request: Mapping[str, Any]
    tokens: Mapping[str, Tokens]
    attention: Mapping[Site, Attention]
    positions: Mapping[str, Array] = field(default_factory=dict)
    embedded: Mapping[str, Array] = field(default_factory=dict)
    hidden: Mapping[str, Array] = field(default_factory=dict)
    stages: Mapping[str, Array] = field(default_factory=dict)
    logits: Array | None = None
    steps: tuple[Step, ...] = ()
    tree: tuple[Node, ...] = ()
    missing: Mapping[str, Words] = field(default_factory=dict)
    recorded: Recorded | None = None
    schema: int = SCHEMA
    image: Array | None = None
    sound: Array | None = None
    spectrogram: Array | None = None
    sums: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Makes the arrays and the mappings read-only, so that no reader can change what ran."""
        # The dataclass is frozen, so that its fields are set past it; arrays may still be views of a mapped file.
        for name in ("model", "request", "tokens", "attention", "positions", "embedded", "hidden", "stages", "missing", "sums"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        for array in self.arrays():
            array.setflags(write=False)

    def arrays(self) -> Iterable[Array]:
        """All arrays of the trace."""
        for attention in self.attention.values():
            yield from (a for name in TENSORS_OF_ATTENTION if isinstance(a := getattr(attention, name), np.ndarray))
        for group in (self.positions, self.embedded, self.hidden, self.stages):
            yield from group.values()
        yield from (array for array in (self.logits, self.image, self.sound, self.spectrogram) if array is not None)

    @property
    def nbytes(self) -> int:
        """Size in memory, for caches. Broadcast rows and shared masks count once. A beam of 32 can have 22 MB of nodes."""
        # By address, so that a mask that all layers share counts once; an axis with stride 0 repeats the same memory.
        held: dict[int, int] = {
            array.__array_interface__["data"][0]: array.itemsize
            * prod(size for size, stride in zip(array.shape, array.strides, strict=True) if stride)
            for array in self.arrays()
        }
        candidates = sum(1 + len(step.candidates) for step in self.steps)
        return sum(held.values()) + _NODE_BYTES * len(self.tree) + _CANDIDATE_BYTES * candidates

    @property
    def of_program(self) -> bool:
        """Whether it is the recording of a program, of which nothing else is known."""
        return self.recorded is not None and not self.model.get("spec")

    @property
    def is_finite(self) -> bool:
        """Whether the last numbers are finite: NaN and infinity spread to them. No lazy weights are computed for this.

        Of a recorded program, what it computed is shown and named, head by head.
        """
        if self.of_program:
            return True
        # Without logits the last attention is the end of the computation; of lazy weights, the queries and keys are.
        last = [attention.weights for attention in self.attention.values()][-1:] if self.logits is None else [self.logits]
        ends = [end for values in last for end in ((values.q, values.k) if isinstance(values, LazyAttention) else (values,))]
        return all(bool(np.isfinite(end).all()) for end in ends)

    def last_cross(self) -> Attention:
        """The last cross-attention of the run, or its last site: what most pages open on."""
        return (self.of("decoder", "cross") or tuple(self.attention.values()))[-1]

    def at(self, site: Site | str) -> Attention:
        """The recorded tensors of one site.

        Raises:
            UnknownSite: this run has no such site; the message lists its sites.
        """
        wanted = Site.parse(site) if isinstance(site, str) else site
        if wanted not in self.attention:
            raise UnknownSite(asked=str(wanted), there=", ".join(map(str, self.attention)))
        return self.attention[wanted]

    def module(self, site: Site | str) -> str:
        """Path of the module that computed a site in a recorded program; empty where there is none."""
        recorded_site = self.recorded.sites.get(str(site)) if self.recorded else None
        return recorded_site.module if recorded_site else ""

    def of(self, stack: str, kind: Kind) -> tuple[Attention, ...]:
        """The sites of one stack and kind, in the order in which they ran."""
        return tuple(a for s, a in self.attention.items() if s.stack == stack and s.kind == kind)


CHAT = "chat"
"""Key in `Trace.model` of what it says of a conversation."""


@dataclass(frozen=True)
class ChatFacts:
    """The conversation of a run.

    Attributes:
        template: SHA-256 of the chat template, in hexadecimal.
        text: the prompt that the template made of the turns.
        starts: the first token of each turn and of the reply; empty where the template does not write turn after turn.
        reply: the text that the model wrote, without special tokens.
    """

    template: str
    text: str
    starts: tuple[int, ...]
    reply: str


IMAGE = "image"
"""Key in `Trace.model` of what it says of an image that was read."""


@dataclass(frozen=True)
class ImageFacts:
    """The image of a run, as it was sent.

    Attributes:
        name: of its file; empty: it is the example that is drawn here.
        width, height: in pixels, before it was resized and cropped.
    """

    name: str
    width: int
    height: int


def image_facts(trace: Trace) -> ImageFacts | None:
    """The facts about the image of a trace; None: there is no image.

    Raises:
        BadSetting: the fact has another form.
    """
    entry = trace.model.get(IMAGE)
    return None if entry is None else read(ImageFacts, entry, f"header.model.{IMAGE}")


SOURCE_NOTES = "source_notes"


def source_notes(trace: Trace) -> Sequence[Words]:
    """Sentences about how the image or the sound of a run was read: the last ones of its notes."""
    notes: Sequence[Words] = trace.model.get("notes", ())
    return notes[len(notes) - trace.model.get(SOURCE_NOTES, 0) :]


def chat_of(trace: Trace) -> ChatFacts | None:
    """The conversation of a trace; None: its input was of another form.

    Raises:
        BadSetting: the fact has another form.
    """
    entry = trace.model.get(CHAT)
    return None if entry is None else read(ChatFacts, entry, f"header.model.{CHAT}")
