"""What an engine is asked for a survey, and its answer: the measures of some texts. No torch."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save

from model.errors import NoTextRan, WireError, from_json
from model.features.survey.agreement import Compared
from model.features.survey.relations import Relations
from model.measures.catalogue import MEASURES, VERSION
from model.measures.word_alignment import Gold, read_links
from model.requests.edits import Edit
from model.requests.questions import ModelQuestion
from model.requests.request import Decoding, Keep, RunRequest
from model.trace.serialization import tensors_and_metadata
from model.trace.types import Array

Variant: TypeAlias = Literal["as it is", "shuffled", "untrained", "repeated", "compared"]
"""What is measured: the maps of the network; the same maps with each row's weights in random order; those of the network with
random parameters instead of its own; as many texts of random tokens in a block that comes twice; or nothing of each head, but how
alike the maps of heads are, and what their weights copy."""


@dataclass(frozen=True)
class Text:
    """One text of a survey.

    Attributes:
        source: the source as text or ids; for a language model the whole text.
        target: the target to feed to a decoder; None: it decodes one.
        links: the alignment of its words, as `alignment.read_links` reads it; empty: nobody typed one.
        tree: the parse of the source, PART:HEAD:RELATION for each word with spaces between, heads counted from 1, 0 for the root;
            empty: there is none.
    """

    source: str | tuple[int, ...]
    target: str | tuple[int, ...] | None = None
    links: str = ""
    tree: str = ""

    def __repr__(self) -> str:
        """The fields that are there. Surveys are kept by a hash of this text, so texts without a parse keep the one they had."""
        tree = f", tree={self.tree!r}" if self.tree else ""
        return f"Text(source={self.source!r}, target={self.target!r}, links={self.links!r}{tree})"

    @property
    def gold(self) -> Gold | None:
        """The alignment; None: there is none.

        Raises:
            ValueError: a link leads to a word that is not there.
        """
        if not (self.links and isinstance(self.source, str) and isinstance(self.target, str)):
            return None
        return read_links(self.source, self.target, self.links)

    def request(
        self, question: ModelQuestion[Any], edits: tuple[Edit, ...], encoder: bool, keep: tuple[Keep, ...] = ()
    ) -> RunRequest:
        """The run of this text. A language model reads the text and writes nothing.

        Args:
            question: says the model and its settings.
            edits: changes to make while the network runs.
            encoder: whether the network has one; a language model has none.
        """
        target, decoding = (self.target, Decoding()) if encoder else (None, Decoding(max_length=0))
        return RunRequest(question.model, self.source, target, decoding, keep=keep, edits=edits, settings=question.settings)


@dataclass(frozen=True)
class MeasureTexts(ModelQuestion["MeasuredTexts"]):
    """What does each head do in each of these texts?

    Attributes:
        texts: a few texts: a survey asks for one batch of them after the other.
        first: number of the first one in the survey: the seed of what is random about it.
        variant: what runs.
        edits: changes to make while the network runs.
        version: version of the measures that the asker expects.
    """

    texts: tuple[Text, ...] = field(kw_only=True)
    first: int = field(default=0, kw_only=True)
    variant: Variant = field(default="as it is", kw_only=True)
    edits: tuple[Edit, ...] = field(default=(), kw_only=True)
    version: int = field(default=VERSION, kw_only=True)

    @property
    def cost(self) -> int:
        """One run for each text, batched."""
        return 1 + len(self.texts) // 4


@dataclass(frozen=True)
class StoredSurvey(ModelQuestion[bytes]):
    """The survey that lies in the model's folder, as the bytes of its Parquet file; empty if there is none.

    Attributes:
        film: whether the film over its snapshots is meant instead.
    """

    film: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class MeasuredTexts:
    """The answer to MeasureTexts.

    Attributes:
        fingerprint: of the network's weights.
        sites: the sites in the order in which they ran, with their numbers of heads.
        values: [text, head, measure], heads of all sites, measures in the order of MEASURES; NaN where one has no meaning, and in
            all of a text that could not be run.
        tokens: [text], number of tokens read and written.
        problems: by text, the error for which it could not be run, as JSON values.
        contexts: by site [head, head_dim], the sum over texts of the mean over rows of the context vectors, where they are known.
        compared: the sums of the variant `compared`; None: nothing was compared.
        relations: counts along the dependencies of parsed texts; None: no text has a parse.
        copying: [head], the copying scores of the weights, NaN where there is none; only with the first texts of the variant
            `compared`.
    """

    fingerprint: str
    sites: Mapping[str, int]
    values: Array
    tokens: Array
    problems: Mapping[int, Mapping[str, Any]]
    contexts: Mapping[str, Array] = field(default_factory=dict)
    compared: Compared | None = None
    relations: Relations | None = None
    copying: Array | None = None

    def to_bytes(self) -> bytes:
        """Arrays bit by bit in safetensors, all other fields as JSON in its metadata."""
        others = {"fingerprint": self.fingerprint, "sites": dict(self.sites), "problems": dict(self.problems)}
        contexts = {f"contexts/{site}": array for site, array in self.contexts.items()}
        contexts |= {f"compared/{name}": array for name, array in (self.compared.arrays() if self.compared else {}).items()}
        contexts |= {f"relations/{name}": array for name, array in (self.relations.arrays() if self.relations else {}).items()}
        contexts |= {} if self.copying is None else {"copying": self.copying}
        return save({"values": self.values, "tokens": self.tokens, **contexts}, metadata={"headlight": json.dumps(others)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads what `to_bytes` wrote.

        Raises:
            WireError: the bytes hold something else.
        """
        try:
            arrays, metadata = tensors_and_metadata(data)
            others = json.loads(metadata["headlight"])
            values, tokens = arrays["values"], arrays["tokens"]
            sites = {str(name): int(heads) for name, heads in others["sites"].items()}
            if values.shape[1:] != (sum(sites.values()), len(MEASURES)) or tokens.shape != values.shape[:1]:
                raise ValueError(f"values of shape {values.shape}")
            problems = {int(text): dict(error) for text, error in others["problems"].items()}
            contexts = {site: arrays[f"contexts/{site}"] for site in sites if f"contexts/{site}" in arrays}
            pairs = {name.removeprefix("compared/"): array for name, array in arrays.items() if name.startswith("compared/")}
            compared = Compared.of(pairs) if pairs else None
            counts = {name.removeprefix("relations/"): array for name, array in arrays.items() if name.startswith("relations/")}
            relations = Relations.of(counts) if counts else None
            copying = arrays.get("copying")
            return cls(str(others["fingerprint"]), sites, values, tokens, problems, contexts, compared, relations, copying)
        except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(detail=f"{type(error).__name__}: {error}") from error


def part(question: MeasureTexts, texts: tuple[Text, ...], first: int) -> MeasureTexts:
    """The same question about other texts."""
    return replace(question, texts=texts, first=first)


def none_ran(count: int, problems: Iterable[Mapping[str, Any]]) -> NoTextRan:
    """What is raised where none of so many texts could be run.

    Args:
        problems: their errors as JSON values, that of the first text first.
    """
    return NoTextRan(count=count, problem=from_json(next(iter(problems))).on_page)


def no_values(texts: int, heads: int) -> Array:
    """[text, head, measure] of texts that were not measured."""
    return np.full((texts, heads, len(MEASURES)), np.nan, np.float32)


def plain(value: Any) -> Any:
    """A number as JSON has it: None where it is not finite."""
    return None if not np.isfinite(value) else float(value)
