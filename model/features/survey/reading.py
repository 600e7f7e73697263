"""One head in many texts: its maps, queries and keys, as an engine is asked for them, and how they are gathered. No torch.

A survey keeps no map. Who wants to look closer reads one head again in a part of the texts: `plane` draws its queries and keys,
`examples` finds cells by their tokens.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save

from model.errors import CannotSurvey, WireError, phrase
from model.features.survey.questions import Text, none_ran
from model.requests.edits import Edit
from model.requests.questions import ModelQuestion
from model.requests.validation import read as validated
from model.trace.serialization import tensors_and_metadata
from model.trace.types import Array, Tokens

AT_ONCE = 32
"""Most texts of one question, so that another visitor's run waits for no more."""

CHARACTERS = 16_000
"""Most characters of the texts of one question: an answer holds the whole map of each."""

MOST_POINTS = 20_000
"""Queries and keys that are gathered: reading ends with the text that reaches this number."""

MOST_CELLS = 8_000_000
"""Cells of all maps that are gathered, 32 MB: reading ends with the text that reaches this number."""


@dataclass(frozen=True)
class ReadHead(ModelQuestion["HeadRead"]):
    """What does one head do in each of these texts?

    Attributes:
        texts: a few texts.
        site, head: the head.
        edits: changes to make while the network runs.
    """

    texts: tuple[Text, ...] = field(kw_only=True)
    site: str = field(kw_only=True)
    head: int = field(kw_only=True)
    edits: tuple[Edit, ...] = field(default=(), kw_only=True)

    @property
    def cost(self) -> int:
        """One run for each text, batched."""
        return 1 + len(self.texts) // 4


@dataclass(frozen=True, eq=False)
class HeadInText:
    """A head in one text.

    Attributes:
        queries, keys: the tokens of its rows and columns.
        weights: [query, key].
        allowed: [query, key] of bool.
        q, k: [query, head_dim], [key, head_dim], as they were multiplied, turned by rotary positions where the network has these;
            None: the network does not tell them.
    """

    queries: Tokens
    keys: Tokens
    weights: Array
    allowed: Array
    q: Array | None = None
    k: Array | None = None

    @property
    def choice(self) -> Array:
        """[query], whether a row may attend to at least two keys."""
        return np.asarray(self.allowed.sum(axis=1) >= 2)


ARRAYS = ("weights", "allowed", "q", "k")


@dataclass(frozen=True, eq=False)
class HeadRead:
    """The answer to ReadHead.

    Attributes:
        fingerprint: of the network's weights.
        texts: the head in each text; None: it could not be run.
        problems: by text, the error for which it could not be run, as JSON values.
    """

    fingerprint: str
    texts: tuple[HeadInText | None, ...]
    problems: Mapping[int, Mapping[str, Any]]

    def to_bytes(self) -> bytes:
        """Arrays bit by bit in safetensors, all other fields as JSON in its metadata."""
        read = {number: text for number, text in enumerate(self.texts) if text is not None}
        arrays = {
            f"{number}/{name}": np.ascontiguousarray(array)
            for number, text in read.items()
            for name in ARRAYS
            if (array := getattr(text, name)) is not None
        }
        tokens = {number: [asdict(text.queries), asdict(text.keys)] for number, text in read.items()}
        others = {"fingerprint": self.fingerprint, "count": len(self.texts), "tokens": tokens, "problems": dict(self.problems)}
        return save(arrays, metadata={"headlight": json.dumps(others)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads what `to_bytes` wrote.

        Raises:
            WireError: the bytes hold something else.
        """
        try:
            arrays, metadata = tensors_and_metadata(data)
            others = json.loads(metadata["headlight"])
            texts = [_unpacked(others["tokens"].get(str(number)), arrays, number) for number in range(int(others["count"]))]
            problems = {int(text): dict(error) for text, error in others["problems"].items()}
            return cls(str(others["fingerprint"]), tuple(texts), problems)
        except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(detail=f"{type(error).__name__}: {error}") from error


def _unpacked(strips: Any, arrays: Mapping[str, Array], number: int) -> HeadInText | None:
    """The head in one text of a reply.

    Raises:
        ValueError: its arrays do not fit its tokens.
    """
    if strips is None:
        return None
    queries, keys = (validated(Tokens, strip, "tokens") for strip in strips)
    text = HeadInText(queries, keys, **{name: arrays.get(f"{number}/{name}") for name in ARRAYS})  # type: ignore[arg-type]
    if text.weights.shape != (len(queries), len(keys)) or text.allowed.shape != text.weights.shape:
        raise ValueError(f"weights of shape {text.weights.shape}")
    return text


@dataclass(frozen=True, eq=False)
class HeadTexts:
    """One head in many texts, as far as it was read.

    Attributes:
        question: the model, the head and the edits; its own texts are empty.
        asked: the texts that are read.
        fingerprint: of the weights; empty before the first answer.
        done: texts that were read, those with problems included.
        places: for each text that was run its place in `asked`.
        texts: the head in each of these.
        problems: the errors of the others, as JSON values, by place.
        full: whether reading ended because enough was gathered.
    """

    question: ReadHead
    asked: tuple[Text, ...]
    fingerprint: str = ""
    done: int = 0
    places: tuple[int, ...] = ()
    texts: tuple[HeadInText, ...] = ()
    problems: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    full: bool = False

    @property
    def finished(self) -> bool:
        """Whether nothing is left to read."""
        return self.full or self.done == len(self.asked)

    @property
    def steps(self) -> tuple[int, int]:
        """Texts read so far, and of all."""
        return self.done, len(self.asked)


def read_on(ask: Callable[[ReadHead], HeadRead], question: ReadHead, texts: Sequence[Text]) -> Iterator[HeadTexts]:
    """The head in the texts after each further batch, until all are read or enough is gathered.

    Args:
        ask: answers a question, as an engine does.
        question: the model, its settings, the head and the edits.

    Raises:
        CannotSurvey: the weights changed in between, or no text could be run.
        HeadlightError: whatever the engine refuses.
    """
    so_far = HeadTexts(replace(question, texts=()), tuple(texts))
    while not so_far.finished:
        so_far = _with(so_far, ask(replace(question, texts=_batch(so_far.asked, so_far.done))))
        yield so_far
    if not so_far.texts:
        raise none_ran(len(so_far.asked), so_far.problems.values())


def _batch(texts: Sequence[Text], first: int) -> tuple[Text, ...]:
    """The next texts: at least one, and no more than fit into one answer."""
    taken, characters = list[Text](), 0
    for text in texts[first : first + AT_ONCE]:
        characters += len(text.source) + len(text.target or "")
        if taken and characters > CHARACTERS:
            break
        taken.append(text)
    return tuple(taken)


def _with(so_far: HeadTexts, answer: HeadRead) -> HeadTexts:
    """One more answer. Texts after the one that fills it are left out."""
    if so_far.fingerprint and so_far.fingerprint != answer.fingerprint:
        raise CannotSurvey(reason=phrase("the weights of the model have changed since the reading began: begin it again"))
    places, texts = list(so_far.places), list(so_far.texts)
    points = sum(len(text.queries) + len(text.keys) for text in texts)
    cells = sum(text.weights.size for text in texts)
    full, done = False, so_far.done
    for text in answer.texts:
        # The first text is always taken, however long it is: else a reading could end with nothing.
        if text is not None and points + len(text.queries) + len(text.keys) > MOST_POINTS and texts:
            full = True
            break
        done += 1
        if text is not None:
            places.append(done - 1)
            texts.append(text)
            points, cells = points + len(text.queries) + len(text.keys), cells + text.weights.size
            if full := points >= MOST_POINTS or cells >= MOST_CELLS:
                break
    problems = {so_far.done + number: error for number, error in answer.problems.items() if so_far.done + number < done}
    return replace(
        so_far,
        fingerprint=answer.fingerprint,
        done=done,
        places=tuple(places),
        texts=tuple(texts),
        problems={**so_far.problems, **problems},
        full=full,
    )
