"""Dependencies between words, and which heads attend along them.

Source: Clark et al. 2019, "What Does BERT Look At?", section 4.2: a head predicts the word that another one depends on as the word
on which it has most weight, itself left out; or as the word that has most weight on it. Beside the share of words for which this is
right stands the best fixed offset: the word so many places before or after.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from model.features.survey.trees import Word, parse
from model.measures.words import matrix, words_of
from model.trace.types import Array, Attention, Trace

FARTHEST = 16
"""Fixed offsets are tried up to so many words before and after."""

DIRECTIONS = ("to its governor", "from its governor")
"""The word attends to the one that it depends on; or that one attends to the word."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Words of one relation. Axes: site, head (of all sites), direction (of DIRECTIONS), offset (from -FARTHEST to FARTHEST).

    Attributes:
        words: [site, direction], those that are counted: of which the right word, and another one, may be attended to.
        right: [head, direction], those for which the head predicts the right word.
        offsets: [site, direction, offset], those whose right word is at this offset.
    """

    words: Array
    right: Array
    offsets: Array

    def __add__(self, other: "Counted") -> "Counted":
        """The counts over the texts of both."""
        return Counted(*(getattr(self, counter.name) + getattr(other, counter.name) for counter in fields(self)))


@dataclass(frozen=True, eq=False)
class Relations:
    """Counts of every relation, by its name."""

    by_name: Mapping[str, Counted]

    def __add__(self, other: "Relations") -> "Relations":
        """The counts over the texts of both."""
        counts = dict(self.by_name)
        for name, more in other.by_name.items():
            counts[name] = counts[name] + more if name in counts else more
        return Relations(counts)

    def arrays(self) -> dict[str, Array]:
        """The arrays by name."""
        return {f"{counter.name}/{name}": getattr(of, counter.name) for name, of in self.by_name.items() for counter in fields(of)}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> "Relations":
        """The counts in arrays by name."""
        names = [name.removeprefix("words/") for name in arrays if name.startswith("words/")]
        return cls({name: Counted(*(arrays[f"{counter.name}/{name}"] for counter in fields(Counted))) for name in names})


@dataclass(frozen=True)
class Accuracy:
    """How often one head is right about one relation in one direction.

    Attributes:
        relation: its name.
        direction: one of DIRECTIONS.
        head: number of the head among all.
        words: how many words are counted.
        right: share of these for which the head is right.
        offset: the fixed offset that is right most often, in words.
        baseline: its share.
    """

    relation: str
    direction: str
    head: int
    words: int
    right: float
    offset: int
    baseline: float


def accuracies(relations: Relations, sites: Mapping[str, int], head: int | None = None) -> list[Accuracy]:
    """The accuracy of the best head for each relation and direction, relations with most words first.

    Args:
        sites: with their numbers of heads.
        head: this head instead of the best one.
    """
    # Words are counted for each site, since all of its heads see the same; heads have their own counts of right
    # answers.
    site_of = np.repeat(np.arange(len(sites)), list(sites.values()))
    results = []
    for name, counted in relations.by_name.items():
        for way, direction in enumerate(DIRECTIONS):
            words = counted.words[site_of, way]
            with np.errstate(invalid="ignore", divide="ignore"):
                shares = np.where(words > 0, counted.right[:, way] / words, -1.0)
            best = int(shares.argmax()) if head is None else head
            if not words[best]:
                continue
            # What a head without any grammar could reach: it always points, say, one word to the left.
            offsets = counted.offsets[site_of[best], way]
            offset = int(offsets.argmax())
            baseline = float(offsets[offset] / words[best])
            results.append(Accuracy(name, direction, best, int(words[best]), float(shares[best]), offset - FARTHEST, baseline))
    return sorted(results, key=lambda accuracy: (-accuracy.words, accuracy.relation, accuracy.direction))


def relations_of(trace: Trace, source: str | tuple[int, ...], tree: str) -> Relations | None:
    """The counts of one run; None: its text has no parse, or its tokens do not match the words.

    Args:
        source, tree: of the text.
    """
    words, tokens = parse(tree), trace.tokens.get("source")
    if not words or tokens is None or not isinstance(source, str) or (to := words_of(tokens, source.split())) is None:
        return None
    sites = list(trace.attention.values())
    heads, shape = sum(attention.heads for attention in sites), (len(sites), len(DIRECTIONS))
    counts: dict[str, Counted] = {}
    # All relations of the text get their arrays first, so that each site can add to them; zeros are counts, too.
    for word in words:
        if word.head >= 0 and word.relation not in counts:
            offsets = np.zeros((*shape, 2 * FARTHEST + 1), np.int64)
            counts[word.relation] = Counted(np.zeros(shape, np.int64), np.zeros((heads, len(DIRECTIONS)), np.int64), offsets)
    first = 0
    for number, attention in enumerate(sites):
        if attention.site.kind == "self" and attention.query_tokens == attention.key_tokens == "source":
            _count(attention, to, words, counts, number, first)
        first += attention.heads
    return Relations(counts)


def _count(
    attention: Attention, to: Array, words: tuple[Word, ...], by_relation: Mapping[str, Counted], site: int, first: int
) -> None:
    """Adds the counts of one site.

    Args:
        to: [token], the word of each token.
        site, first: number of the site, and of its first head.
    """
    queries, keys = attention.mask.shape
    # A word may be several tokens. From here on everything is counted in words, as the parse is.
    table, _ = matrix(np.asarray(attention.weights), to[:queries], to[:keys], len(words), len(words))
    mask = np.broadcast_to(np.asarray(attention.mask, bool), (queries, keys))
    allowed = matrix(mask[None].astype(np.float64), to[:queries], to[:keys], len(words), len(words))[0][0] > 0
    # A word is never its own governor, so the weight on itself is not an answer, neither right nor wrong.
    np.fill_diagonal(allowed, False)
    table = np.where(allowed, table, -1.0)
    for way, (weights, possible) in enumerate(((table, allowed), (table.swapaxes(1, 2), allowed.T))):
        predicted = weights.argmax(axis=2)  # [head, word]
        for number, word in enumerate(words):
            # With a single word to choose from, every head would be right.
            if word.head >= 0 and possible[number, word.head] and possible[number].sum() >= 2:
                counts = by_relation[word.relation]
                counts.words[site, way] += 1
                counts.right[first : first + attention.heads, way] += predicted[:, number] == word.head
                if abs(offset := word.head - number) <= FARTHEST:
                    counts.offsets[site, way, offset + FARTHEST] += 1
