"""Tensors around PyTorch's stacks in models with any names: embeddings, position tables, the output layer, heads.

Their names are the model author's choice. If several tensors could fill a role, the user is asked.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from model.checkpoints.layouts.base import Rules, Shapes
from model.checkpoints.layouts.questions import Question
from model.errors import phrase
from model.inspection.leftovers import looks_harmless

IN_PROJECTION = "self_attn.in_proj_weight"
EMBEDDINGS = ("source_embedding", "target_embedding")
TABLES = {"source_embedding": "source_positions", "target_embedding": "target_positions"}
"""Settings: the position table that is added to each embedding."""

_SIDES = {"source": r"src|source|enc", "target": r"tgt|trg|target|dec"}
_ROLES = {
    "source_embedding": (_SIDES["source"], phrase("Which tensor is the embedding of the source.")),
    "target_embedding": (_SIDES["target"], phrase("Which tensor is the embedding of the target.")),
    "output_layer": (
        r"out|generator|head|fc|linear|proj|decoder",
        phrase("Which tensor is the map from the last states to the vocabulary."),
    ),
    "source_positions": (
        _SIDES["source"],
        phrase("Which tensor is the table of the source’s positions. none: no positions are added there."),
    ),
    "target_positions": (
        _SIDES["target"],
        phrase("Which tensor is the table of the target’s positions. none: no positions are added there."),
    ),
}
"""Settings that name a tensor, words in a name that suggest it, and a description."""

_HEAD = re.compile(
    r"(?!.*(attn|attention|multi))(((\w+_)?(head|classifier)|classifiers|pooler|score)\.(.*\.)?|cls\..*\.)(weight|bias)",
    re.IGNORECASE,
)
_LAST = re.compile(
    r"(cls|fc|fc_?\d|linear|linear_?\d|out|output|fc_out|output_layer|dense|decoder|generator|logits|predictor)\.(weight|bias)"
)
WAITING = "(what the answers say)"
"""Placeholder for our name of a tensor while its role is open."""


@dataclass(frozen=True)
class Stacks:
    """Prefixes of the encoder's and the decoder's names, ending in a dot or empty; None: there is none.
    A single layer (`lone`) has none."""

    encoder: str | None
    decoder: str | None
    lone: bool = False

    def layer(self, prefix: str | None, number: str = "#") -> str:
        """The prefix of the names of a layer's parts."""
        return "" if self.lone else f"{prefix}layers.{number}."

    @property
    def width(self) -> str:
        """A tensor whose last axis is the model's width."""
        prefix = self.decoder if self.encoder is None else self.encoder
        return f"{self.layer(prefix, '0')}{IN_PROJECTION}"


def find_stacks(shapes: Shapes) -> Stacks | None:
    """The stacks of a file; None: there are none, or several of a kind."""
    if shapes.has(IN_PROJECTION):
        decoder = shapes.has("multihead_attn.in_proj_weight")
        return Stacks(None if decoder else "", "" if decoder else None, lone=True)
    prefixes = [name.removesuffix(f"layers.0.{IN_PROJECTION}") for name in shapes.of if name.endswith(f"layers.0.{IN_PROJECTION}")]
    decoders = [prefix for prefix in prefixes if shapes.has(f"{prefix}layers.#.multihead_attn.in_proj_weight")]
    encoders = [prefix for prefix in prefixes if prefix not in decoders]
    if not prefixes or len(decoders) > 1 or len(encoders) > 1:
        return None
    return Stacks(encoders[0] if encoders else None, decoders[0] if decoders else None)


class Around:
    """The tensors around the stacks.

    Args:
        shapes: names and shapes of the file.
        stacks: its stacks.
        settings: role -> tensor name, or none.
    """

    def __init__(self, shapes: Shapes, stacks: Stacks, settings: Mapping[str, str]) -> None:
        self._shapes, self._stacks, self._settings = shapes, stacks, settings
        self._width = shapes.size(stacks.width, -1)
        inside = tuple(f"{p}{part}" for p in (stacks.encoder, stacks.decoder) if p is not None for part in ("layers.", "norm."))
        names = () if stacks.lone else [n for n in shapes.of if not n.startswith(inside) and not looks_harmless(n)]
        self._outside = tuple(names)
        # an embedding has no bias and an output layer may have one; both have a row for each word of the vocabulary
        wide = [n for n in names if len(shapes.of[n]) == 2 and shapes.of[n][1] == self._width and not _is_table(n)]
        self._unbiased = tuple(n for n in wide if not self.bias_of(n) and not _HEAD.fullmatch(n))
        vocabularies = {shapes.of[n][0] for n in self._unbiased}
        self._writing = tuple(n for n in wide if shapes.of[n][0] in vocabularies)
        self.tables = tuple(n for n in names if _is_table(n) and len(shapes.of[n]) > 1 and shapes.of[n][-1] == self._width)

    @property
    def embeddings(self) -> tuple[str, ...]:
        """The embeddings that the stacks can have."""
        prefixes = (self._stacks.encoder, self._stacks.decoder)
        return tuple(role for role, prefix in zip(EMBEDDINGS, prefixes, strict=True) if prefix is not None)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles to be filled."""
        return (*self.embeddings, "output_layer", *(TABLES[role] for role in self.embeddings if self.tables))

    def bias_of(self, weight: str) -> str:
        """The bias beside a weight; empty: there is none."""
        bias = f"{weight.removesuffix('weight')}bias"
        return bias if bias in self._shapes.of else ""

    def candidates(self, role: str) -> tuple[str, ...]:
        """Tensors that could fill a role: an embedding has no bias, an output layer has as many rows as an embedding."""
        if role in TABLES.values():
            return self.tables
        return self._writing if role == "output_layer" else self._unbiased

    def evident(self, role: str) -> str | None:
        """The only candidate for a role by names and biases; "none": there is no candidate; None: the user must say."""
        candidates = self.candidates(role)
        spoken = [n for n in candidates if re.search(_ROLES[role][0], n, re.IGNORECASE)]
        if not candidates:
            return "none"
        if role in TABLES.values():
            return self._evident_table(spoken)
        if role == "output_layer":
            spoken = [n for n in candidates if self.bias_of(n)] or spoken
        elif len(self.embeddings) == 1:  # one stack: whatever is no output layer
            spoken = [n for n in candidates if n != self.evident("output_layer")]
        return spoken[0] if len(spoken) == 1 else None

    def _evident_table(self, spoken: list[str]) -> str | None:
        """The table whose name suggests one side; one that suggests neither is added on both."""
        of_one_side = [n for n in self.tables if any(re.search(words, n, re.IGNORECASE) for words in _SIDES.values())]
        if len(self.tables) == 1 and (not of_one_side or len(self.embeddings) == 1):
            return self.tables[0]
        return spoken[0] if len(spoken) == 1 else None

    def answer(self, role: str) -> str | None:
        """The given or evident tensor, "none", or None while open."""
        return self._settings.get(role) or self.evident(role)

    @property
    def filled(self) -> dict[str, str]:
        """The tensor of each role that is filled."""
        answers = {role: self.answer(role) for role in self.roles}
        return {role: name for role, name in answers.items() if name is not None and name in self._shapes.of}

    def questions(self) -> tuple[Question, ...]:
        """One for each role that has candidates."""
        return tuple(
            Question(
                role,
                _ROLES[role][1],
                (*self.candidates(role), "none"),
                default=default,
                proposal=self._proposal(role),
            )
            for role in self.roles
            if (default := self.evident(role)) != "none"
        )

    def _proposal(self, role: str) -> str:
        """The only table, for a side that its name does not exclude: `positional_encoding` speaks of no encoder, and many programs
        add one table on both sides."""
        if role not in TABLES.values() or len(self.tables) != 1 or self.evident(role) is not None:
            return ""
        # "enc" in positional_encoding does not mean the encoder
        name = re.sub("encoding", "", self.tables[0], flags=re.IGNORECASE)
        return "" if any(re.search(words, name, re.IGNORECASE) for words in _SIDES.values()) else self.tables[0]

    def rules(self, reads: str, kind: str) -> Rules:
        """Rules for the tensors around the stacks. One tensor may fill several roles, such as a shared embedding.

        Args:
            reads: prefix of our names of the stack that reads the source.
            kind: name of a position table: weight or table.
        """
        filled = self.filled
        stack_of = {"source_embedding": reads, "target_embedding": "decoder."}
        places = {role: f"{stack}embedding.token.weight" for role, stack in stack_of.items()} | {"output_layer": "output.weight"}
        places |= {TABLES[role]: f"{stack}embedding.positions.{kind}" for role, stack in stack_of.items() if role in filled}
        # while a role is open, its candidates count as known: a file is not refused before its question is asked
        rules: dict[str, str | tuple[str, ...]] = dict.fromkeys(self._waiting(), WAITING)
        for tensor in filled.values():
            if our_names := tuple(places[role] for role, name in filled.items() if name == tensor and role in places):
                rules[tensor] = our_names
        if (output := filled.get("output_layer")) and (bias := self.bias_of(output)):
            rules[bias] = "output.bias"
        return dict.fromkeys(self.heads(), ()) | rules

    def _waiting(self) -> tuple[str, ...]:
        """Candidates of open roles: whether they have a place is not known yet."""
        if all(self.answer(role) is not None for role in self.roles):
            return ()
        return tuple(dict.fromkeys(name for role in self.roles for name in self.candidates(role)))

    def heads(self) -> tuple[str, ...]:
        """Tensors after the network, such as a classifier's: attention does not depend on them."""
        return tuple(n for n in self._outside if _HEAD.fullmatch(n) or self._is_last(n))

    def _is_last(self, name: str) -> bool:
        """Whether a layer is named like a last layer, with an output size that no layer of the stacks could read."""
        if not (match := _LAST.fullmatch(name)):
            return False
        shape = self._shapes.of.get(f"{match[1]}.weight", ())
        return len(shape) == 2 and shape[1] == self._width != shape[0] and bool(self.bias_of(f"{match[1]}.weight"))


def _is_table(name: str) -> bool:
    return bool(re.search(r"pos|(^|\.)pe$", name, re.IGNORECASE))
