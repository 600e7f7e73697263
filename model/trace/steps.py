"""The steps of decoding: what was chosen in each, and from what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A token that could be generated next, with its natural log-probability under the model."""

    id: int
    text: str
    log_probability: float


@dataclass(frozen=True)
class Step:
    """One step of decoding, or one forced target token.

    Attributes:
        index: from 0; step i reads position i and generates position i + 1 of the strip (a language model starts after its prompt).
        chosen: the token that was generated.
        candidates: the most likely tokens, best first.
        computed: the rows (query positions) that this step added, as (first, one past the last).
    """

    index: int
    chosen: Candidate
    candidates: tuple[Candidate, ...]
    computed: tuple[int, int]
