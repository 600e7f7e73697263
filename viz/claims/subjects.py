"""What a claim is about: tokens, heads, the subject and the run, as docs/lectures.md describes them; frozen values."""

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Named:
    """A token named by its text: `"a"#2` is the second token "a".

    Attributes:
        text: the text, as the app shows it.
        number: which of the tokens with this text, counted from 1; 0: not said, so there must be only one.
        after: of a row: the text is that of the token it reads; otherwise a decoder's row is named by the token it writes.
    """

    text: str
    number: int = 0
    after: bool = False


Token: TypeAlias = int | Named
"""A token of a strip, or the row of one: an index, counted from 0, or its text."""


@dataclass(frozen=True)
class Head:
    """A head.

    Attributes:
        site: text form of its site; empty: the site of the step's view.
        number: counted from 0; -1: the head of the step's view.
    """

    site: str = ""
    number: int = -1


@dataclass(frozen=True)
class Subject:
    """The subject of a claim or a question; docs/lectures.md lists all kinds.

    Attributes:
        kind: its first word, such as `weight` or `output`.
        name: a measure, a part of a sum, or the text of a token whose probability is asked for.
        head: a head.
        query, key: a row and a column.
        at: the step of decoding: an index, or the token that is written in it.
        number: of `lens`: the layer; of `loss`: the position of the first token that counts. From 0. Of `why`: 1 for a part of the
            key, 0 for one of the query. Of `kept` tokens, of `wavelength` the pair, of `distance` positions, of `reach` layers.
    """

    kind: str
    name: str = ""
    head: Head = Head()
    query: Token | None = None
    key: Token | None = None
    at: Token | None = None
    number: int = 0


@dataclass(frozen=True)
class Scope:
    """Which run of a step a claim is about: by default the run of its view.

    Attributes:
        side: B: side B of Compare; plain: the run without edits; empty: the run itself.
        edits: text form of edits that are made in addition; empty: none.
        snapshot: the training step of a snapshot of the model; -1: the model itself.
        change: the number under the edits minus the one without; both runs read what was written without them.
    """

    side: Literal["", "B", "plain"] = ""
    edits: str = ""
    snapshot: int = -1
    change: bool = False
