"""Inputs: turns a request's text or ids into a token strip and a tensor of ids, and features into a tensor of floats.

Long inputs: whether the weights of a run are written out, or computed when they are read; which logits are computed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isqrt

import torch
from torch import Tensor

from model.checkpoints.loader import Runner
from model.errors import BadChat, BadSetting, DoesNotFit, InputError, MustNotBeSet, TooManyTokens, Words, phrase
from model.inference.features import (
    NO_EMBEDDING,
    Heard,
    PreparesImages,
    PreparesSounds,
    asked,
    hear,
    image_of,
    moments_of,
    positions_of,
    rows_of,
    sound_of,
)
from model.inference.pictures import names_picture, picture
from model.inference.sounds import names_sound
from model.requests.external import AnySpec, AnyStack, ForeignImage, ForeignStack
from model.requests.inputs import POSITIONS, Chat, Features, Given, RandomFeatures
from model.requests.request import RunRequest, check_size
from model.tokenizers.chat import NO_TEMPLATE, ReadsChats, Rendered
from model.tokenizers.words import Tokenizer, check_ids
from model.trace.types import Array, ImageFacts, Tokens, sites
from model.transformer.networks import RunsWhole


@dataclass(frozen=True)
class Input:
    """One input of a network.

    Attributes:
        tokens: its token strip.
        tensor: [1, position] of ids, or [1, position, model] of features.
        unread: number of tokens at the end that are predicted but not read.
        chat: of a conversation: what the chat template made of it.
        image: [row, column, color] of uint8: of an image, what the network reads.
        heard: of a sound, what the network reads.
        sent: of an image: the one that was sent.
        notes: sentences for viewers about how it was read.
    """

    tokens: Tokens
    tensor: Tensor
    unread: int = 0
    chat: Rendered | None = None
    image: Array | None = None
    heard: Heard | None = None
    sent: ImageFacts | None = None
    notes: tuple[Words, ...] = ()

    def __len__(self) -> int:
        """Number of positions."""
        return len(self.tokens)

    def to(self, dtype: torch.dtype) -> "Input":
        """This input with features converted to `dtype`; ids stay as they are."""
        return replace(self, tensor=self.tensor.to(dtype)) if self.tensor.is_floating_point() else self


def valid_positions(request: RunRequest, source: Tokens, spec: AnySpec, device: torch.device) -> Tensor | None:
    """[1], the number of source positions that are not padding; None: all that do not have the padding's id.

    A text has no padding but what the request adds behind it, even if a word of it has the padding's id, such as a typed “[PAD]”.

    Args:
        source: the tokens, padding included.

    Raises:
        BadSetting: there are not so many positions.
    """
    # An explicit number wins; else a text's length without its padding; else the network's own rule, all ids but that of padding.
    valid, size = request.source_valid, len(source)
    if valid is None and isinstance(request.source, str) and source.ids:
        pad_id = spec.source_padding
        words = [position for position, id_ in enumerate(source.ids) if id_ != pad_id]
        valid = max(words, default=-1) + 1 if request.source_pad_to else size
    if valid is None:
        return None
    if not 0 <= valid <= size:
        raise BadSetting(
            name="source_valid",
            found=valid,
            allowed=phrase("a number from 0 to {last:,}, which is the number of source tokens", last=size),
        )
    return torch.tensor([valid], device=device)


@dataclass(frozen=True)
class Inputs:
    """The inputs of one run.

    Attributes:
        source: the source, without padding.
        target: the given target of an encoder-decoder; None: none is given.
    """

    source: Input
    target: Input | None = None

    @property
    def longest(self) -> int:
        """Number of positions of the longer input."""
        return max(len(self.source), len(self.target or ()))

    def to(self, dtype: torch.dtype) -> "Inputs":
        """These inputs with features converted to `dtype`."""
        return Inputs(self.source.to(dtype), None if self.target is None else self.target.to(dtype))


@dataclass(frozen=True)
class Reader:
    """Reads the inputs of one network.

    Attributes:
        tokenizers: tokenizer of each strip; features need none.
        device: device of the network.
        most: limit of positions for models that have more.
        images: makes of an image what the network reads; None: it reads something else.
        sounds: the same of a sound.
    """

    tokenizers: Mapping[str, Tokenizer]
    device: torch.device
    most: int = POSITIONS
    images: PreparesImages | None = None
    sounds: PreparesSounds | None = None

    @classmethod
    def of(cls, runner: Runner, device: torch.device, most: int = POSITIONS) -> "Reader":
        """The reader of a loaded network's inputs."""
        return cls(runner.tokenizers, device, most, runner.images, runner.sounds)

    def inputs(self, request: RunRequest, spec: AnySpec) -> Inputs:
        """The inputs of a run. Tokenizing can take long, so a run and the float32 run that it is compared with share them.

        Raises:
            InputError: as for `read`.
        """
        try:
            # An error about a language model's text speaks of a prompt, since it has no source that is translated.
            source = self.read("source", request.source, spec.encoder or spec.writer)
        except InputError as error:
            if spec.encoder is None and error.fields.get("strip") == "source":  # a language model reads a prompt
                raise error.about("prompt") from error
            raise
        if request.source_valid is not None and image_of(spec.encoder or spec.writer) is not None:
            raise MustNotBeSet(name="source_valid", reason=phrase("an image has no padding"))
        if request.source_valid is not None and sound_of(spec.encoder or spec.writer) is not None:
            raise MustNotBeSet(name="source_valid", reason=phrase("the network masks no part of a sound"))
        if request.begin:
            self._check_begin(request.begin, spec, len(source) if spec.encoder is None else 1 + len(spec.forced))
        if request.target is None or spec.encoder is None or spec.decoder is None:
            return Inputs(source)
        # A typed target gets an end token, which the last row should predict; given ids are taken as they are.
        typed = isinstance(request.target, str) and bool(spec.writer.vocab) and self.tokenizers["target"].ends
        return Inputs(source, self.read("target", request.target, spec.writer, unread=int(typed)))

    def padded(self, source: Input, wanted: int | None, spec: AnySpec) -> Input:
        """The source with padding up to `wanted` positions; None: as it is.

        Raises:
            BadSetting: there is no padding id, or the source cannot have that many positions.
        """
        stack = spec.encoder or spec.writer
        if wanted is None:
            return source
        pad_id = spec.source_padding
        if pad_id is None or not stack.vocab:
            raise MustNotBeSet(name="source_pad_to", reason=phrase("this model has no padding id, or none was specified"))
        if not len(source) <= wanted <= stack.max_positions:
            raise BadSetting(
                name="source_pad_to",
                found=wanted,
                allowed=phrase(
                    "a number from {first:,}, which is the number of source tokens, to {last:,}",
                    first=len(source),
                    last=stack.max_positions,
                ),
            )
        tokens = source.tokens.then(self.tokens("source", (pad_id,) * (wanted - len(source))))
        return Input(tokens, torch.tensor([tokens.ids], device=self.device))

    def read(self, name: str, given: Given, stack: AnyStack, unread: int = 0) -> Input:
        """Converts an input for `stack`.

        Args:
            name: name of the strip, `source` or `target`.
            unread: number of tokens at the end that are predicted but not read.

        Raises:
            InputError: the input is empty, is longer than the stack's positions, or is of a kind that the network cannot read.
        """
        # What is far too long is refused before it is tokenized, which may take seconds.
        allowed, reason = self.room(stack)
        check_size(name, given, allowed + unread, reason)
        # What a text means depends on what the network reads: the name of an image or a sound, random features, or words.
        if isinstance(given, str) and (image := image_of(stack)) is not None and names_picture(given):
            return self._image(name, given.strip(), image)
        if isinstance(given, str) and (of_sound := sound_of(stack)) is not None and names_sound(given):
            assert self.sounds is not None
            heard = hear(name, given.strip(), self.sounds, of_sound)
            return Input(heard.tokens, heard.rows[None].to(self.device), heard=heard, notes=heard.notes)
        if isinstance(given, str) and not stack.vocab:
            given = asked(name, given)
        if isinstance(given, Features | RandomFeatures):
            check_size(name, given, allowed, reason)
            return self._features(name, given, stack)
        if not stack.vocab:
            raise BadSetting(name=name, found=given, allowed=NO_EMBEDDING)
        # From here on the network reads words: turns of a conversation, a text, or ids.
        tokenizer, chat = self.tokenizers[name], None
        if isinstance(given, Chat):
            if name != "source" or not isinstance(tokenizer, ReadsChats):
                raise BadChat(reason=NO_TEMPLATE)
            chat = tokenizer.render(given, name)
            tokens = chat.tokens
        else:
            tokens = tokenizer.encode(given, name) if isinstance(given, str) else self.tokens(name, given)
        if not tokens.ids:
            raise DoesNotFit(name=name, reason=phrase("it holds no ids"))
        if len(tokens) - unread > allowed:
            raise TooManyTokens(found=len(tokens), allowed=allowed + unread, reason=reason, strip="chat" if chat else name)
        return Input(tokens, torch.tensor([tokens.ids], device=self.device), unread, chat)

    def room(self, stack: AnyStack) -> tuple[int, Words]:
        """The number of positions that `stack` may read, and the reason for this limit."""
        # Which limit it is decides what a user can do about it, so each has its own words.
        if self.most < stack.max_positions:
            return self.most, phrase("this server reads no more")
        if stack.positions.startswith("learned"):
            return stack.max_positions, phrase("the model has no more positions")
        if stack.positions == "relative":
            return stack.max_positions, phrase("no more are read here of a model without a table of positions")
        if isinstance(stack, ForeignStack):
            return stack.max_positions, phrase("the model’s own settings, or this program where they say nothing, set this limit")
        return stack.max_positions, phrase("its spec.json, or the layout of its file, sets this limit")

    def tokens(self, name: str, ids: tuple[int, ...]) -> Tokens:
        """The strip of ids, which are used as they are.

        Raises:
            TokenOutOfRange: the vocabulary does not have an id.
        """
        tokenizer = self.tokenizers[name]
        check_ids(name, ids, tokenizer.size)
        return tokenizer.tokens(ids, name)

    def _check_begin(self, begin: tuple[int, ...], spec: AnySpec, prompt: int) -> None:
        """Checks the ids that a decode generates first.

        Args:
            prompt: number of tokens that the writing stack reads before them.
        """
        if spec.decoder is None or spec.output is None:
            raise MustNotBeSet(name="begin", reason=phrase("this network generates nothing"))
        check_ids("begin", begin, self.tokenizers["source" if spec.encoder is None else "target"].size)
        # The decode would stop there, and the ids after it could never be written.
        if early := [id_ for id_ in begin[:-1] if id_ in spec.ends]:
            raise DoesNotFit(name="begin", reason=phrase("the end token {id} occurs before the last id", id=early[0]))
        allowed, reason = self.room(spec.writer)
        if len(begin) > (most := max(0, allowed + 1 - prompt)):  # the last token generated is not read
            raise TooManyTokens(found=len(begin), allowed=most, reason=reason, strip="begin")

    def _features(self, name: str, given: Features | RandomFeatures, stack: AnyStack) -> Input:
        if stack.vocab:
            raise DoesNotFit(
                name=name, reason=phrase("this network reads words through its embedding: give a text or ids instead of features")
            )
        if (image := image_of(stack)) is not None:
            tokens, rows = positions_of(name, rows_of(name, given, image.width), image)
            return Input(tokens, rows[None].to(self.device))
        if (of_sound := sound_of(stack)) is not None:
            rows = rows_of(name, given, of_sound.width)
            return Input(moments_of(name, rows, of_sound, len(rows)), rows[None].to(self.device))
        rows = rows_of(name, given, stack.d_model)
        # Features have no words: their positions are named by numbers from 1, and none is special or unknown.
        texts, no = tuple(str(i + 1) for i in range(len(rows))), (False,) * len(rows)
        return Input(Tokens(name, (), texts, special=no, unknown=no), rows[None].to(self.device))

    def _image(self, name: str, given: str, image: ForeignImage) -> Input:
        """The image of that name, as the network reads it."""
        assert self.images is not None
        sent = picture(given)
        patches, seen = self.images.read(sent.colors, image)
        tokens, rows = positions_of(name, patches, image)
        first = phrase("The file holds {frames:,} images, of which the first was read.", frames=sent.frames)
        notes = (first,) if sent.frames > 1 else ()
        return Input(tokens, rows[None].to(self.device), image=seen, sent=sent.facts, notes=notes)


LONG = 256
"""Length of source or target above which the fused kernel is used, unless scores are recorded, or an intervention changes scores,
masks or weights (docs/benchmarks.md measures the cost)."""

LARGEST = 2 << 30
"""Most bytes of weights and scores in one run, and of the logits of what a run is fed."""

LARGEST_PROMPT = 512 << 20
"""Most bytes of a prompt's logits. Above, only those of its last token are computed, which decide the first new one."""


def is_fused(checkpoint: Runner, request: RunRequest, inputs: Inputs, changed: bool) -> bool:
    """Whether the run uses the fused kernel: for long inputs, whose weights are computed from q and k when they are shown.

    Args:
        changed: whether an intervention changes scores, masks or weights.

    Raises:
        TooManyTokens: recorded weights and scores would exceed LARGEST.
    """
    # Padding makes rows and columns as real tokens do.
    longest = max(inputs.longest, request.source_pad_to or 0)
    network = checkpoint.network
    if isinstance(network, RunsWhole) and request.target is None:  # the recorded pass reads all that was written
        grown = len(inputs.source) if network.kind == "decoder" else 0
        longest = max(longest, min(grown + request.decoding.max_length, checkpoint.info.spec.writer.max_positions))
    # A map of each head for each pair of positions: weights, and scores where they are kept.
    scores = network.writes_scores and "scores" in request.keep
    if network.fuses and not scores and not changed:
        return longest > LONG
    heads, bytes_ = sum(sites(checkpoint.info.spec).values()), 8 if scores else 4
    if (needed := bytes_ * heads * longest**2) > LARGEST:
        # The sentence says what would help: fewer tensors, fewer edits, or only a shorter text.
        size = {"heads": heads, "gigabytes": needed / 2**30}
        if scores:
            reason = phrase("scores and weights of {heads:,} heads would take {gigabytes:.1f} GB; without scores, more fit", **size)
        elif changed and network.fuses:
            reason = phrase("weights of {heads:,} heads would take {gigabytes:.1f} GB; more fit where they are not changed", **size)
        else:
            reason = phrase("weights of {heads:,} heads would take {gigabytes:.1f} GB", **size)
        raise TooManyTokens(found=longest, allowed=isqrt(LARGEST // (bytes_ * heads)), reason=reason)
    return False


def only_last_logits(checkpoint: Runner, request: RunRequest, inputs: Inputs) -> bool:
    """Whether a run computes the logits of its prompt's last token alone, because those of all tokens take too much memory.

    Raises:
        TooManyTokens: all logits are needed, since the tokens are fed and not written, and would exceed LARGEST.
    """
    spec = checkpoint.info.spec
    # The strip that logits belong to: a language model's whole text, or a given target.
    fed = inputs.source if spec.encoder is None else inputs.target
    if spec.decoder is None or spec.output is None or fed is None:
        return False
    # A network that writes needs the last row alone; one that is fed, or read as a whole, gives them all.
    of_a_token = 4 * spec.writer.vocab
    needed = of_a_token * len(fed)
    if spec.encoder is None and request.decoding.max_length and not isinstance(checkpoint.network, RunsWhole):
        return needed > LARGEST_PROMPT
    if needed > LARGEST:
        reason = phrase(
            "the logits of all {vocab:,} tokens of the vocabulary, for each position, would take {gigabytes:.1f} GB",
            vocab=spec.writer.vocab,
            gigabytes=needed / 2**30,
        )
        strip = "prompt" if spec.encoder is None else "target"
        raise TooManyTokens(found=len(fed), allowed=LARGEST // of_a_token, reason=reason, strip=strip)
    return False


def needs_weights(interventions: Iterable[str]) -> bool:
    """Whether an intervention needs the weights, which the fused kernel does not compute; then long inputs do not use it."""
    return any(name.rpartition("/")[2] in _WRITTEN_OUT for name in interventions)


_WRITTEN_OUT = ("scores", "mask", "mask_padding", "mask_causal", "weights")
"""The fused kernel never writes scores and weights, and maps made of q and k afterwards know one mask for all heads."""
