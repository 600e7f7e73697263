"""Layouts as tables: the role of each pattern of names, as in a layout file, and what is asked about such a network.

A layout file (model/requests/layout_file.py) and the tables in translators.py and language_models.py are read in the same way:
roles tell which tensor becomes which of ours, sizes come from the tensors of roles, and the rest from facts and answers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from model.checkpoints.layouts import questions
from model.checkpoints.layouts.base import (
    ByKeyHead,
    Layout,
    Match,
    MissingTensor,
    Rules,
    Shapes,
    attention,
    grouped_attention,
    model_spec,
    requires,
)
from model.errors import Words
from model.requests.layout_file import BEHIND, GROUPED, LAYER, STACKED, LayoutFile, Network, filled, in_layers
from model.requests.network import ModelSpec, OutputSpec, Positions, StackSpec
from model.transformer.positions import FAIRSEQ_FIRST

_PLACES = {
    "embedding": "embedding.token",
    "positions": "embedding.positions",
    "query": "{attention}.query",
    "key": "{attention}.key",
    "value": "{attention}.value",
    "output": "{attention}.output",
    "attention norm": "{residual}.norm",
    "cross query": "cross_attention.query",
    "cross key": "cross_attention.key",
    "cross value": "cross_attention.value",
    "cross output": "cross_attention.output",
    "cross norm": "cross_residual.norm",
    "feed-forward in": "feed_forward.expand",
    "feed-forward gate": "feed_forward.gate",
    "feed-forward out": "feed_forward.contract",
    "feed-forward norm": "feed_forward_residual.norm",
    "final norm": "final_norm",
    "vocabulary": "output",
}
"""Our name of the tensor with a role, inside its layer or its stack."""

_STACKS = ("encoder ", "decoder ")


@dataclass(frozen=True)
class RoleTable:
    """What a program's tensors are, and what is asked about its networks.

    Attributes:
        network: the kind of network.
        roles: the role of the tensors that a pattern matches, as in a layout file; `@` may follow any letter.
        asks: the questions in their order, or functions that make them of sizes and settings.
        facts: answers that the program's code fixes unless a user says otherwise.
        fixed: answers that are not asked for.
        always: roles that each file has, without the stack: where their tensor is missing, the file is incomplete.
        table: the kind of positional encoding whose table a file holds.
        grouped: whether heads may share keys; None: shapes tell.
    """

    network: Network
    roles: Mapping[str, str]
    asks: "tuple[questions.Question | Asks, ...]"
    facts: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    table: Positions = "learned"
    grouped: bool | None = False

    @property
    def stacks(self) -> tuple[str, ...]:
        """The prefix of the roles of each stack."""
        return _STACKS if self.network == "translator" else ("",)

    def patterns(self, role: str) -> list[str]:
        """The patterns of the tensors with a role, as `Rules` has them."""
        return [
            pattern.replace(LAYER, "#").replace("@", "weight")
            for pattern, role_of_pattern in self.roles.items()
            if role_of_pattern == role
        ]


class Sizes:
    """Sizes of a file's tensors by role, in the first layer."""

    def __init__(self, table: RoleTable, shapes: Shapes) -> None:
        self.table, self._shapes = table, shapes
        self._names = filled(table.roles, shapes.of)
        self._roles = {role for role, _layer in self._names}

    def has(self, role: str) -> bool:
        """Whether a tensor has the role, or must have it."""
        return role in self._roles or _split(role)[1] in self.table.always

    def of(self, role: str, axis: int) -> int:
        """The size of one axis of the role's tensor."""
        return self._shapes.size(self._name(role), axis)

    def _name(self, role: str, layer: int = 0) -> str:
        expected = [pattern.replace("#", str(layer)) for pattern in self.table.patterns(role)]
        return self._names.get((role, layer), (*expected, role)[0])

    def query(self, stack: str) -> str:
        """The role of the tensor with a stack's queries, alone or with its keys and values."""
        every = [f"{stack}{role}" for role in ("query", STACKED, GROUPED) if f"{stack}{role}" in self.table.roles.values()]
        return next((role for role in every if role in self._roles), every[0])

    def queries(self, stack: str) -> int:
        """Columns of all heads' queries."""
        role = self.query(stack)
        if role == f"{stack}query":
            return self.of(role, 0)
        # in a tensor with queries, keys and values, only the width of the stream tells how many rows are queries
        return self.of(f"{stack}embedding" if self.table.grouped is False else f"{stack}output", 1)

    def keys(self, stack: str) -> int:
        """Columns of all heads' keys; 0: those of a stacked tensor and its values would differ."""
        role = self.query(stack)
        if role == f"{stack}query":
            return self.of(f"{stack}key", 0)
        # keys and values have equally many rows
        rest = self.of(role, 0) - self.queries(stack)
        return 0 if rest % 2 else rest // 2

    def grouped(self, stack: str) -> bool:
        """Whether heads may share keys."""
        return self.queries(stack) != self.keys(stack) if self.table.grouped is None else self.table.grouped

    def layers(self, stack: str) -> int:
        """The number of layers, counted from 0.

        Raises:
            MissingTensor: one between them is missing.
        """
        query = self.query(stack)
        numbers = {layer for role, layer in self._names if role == query}
        for number in range(len(numbers)):
            if number not in numbers:
                raise MissingTensor(self._name(query, number))
        return len(numbers)

    def rows(self, stack: str) -> int:
        """The number of positions in a stack's table, whose other axes are its width and perhaps a batch of one.

        Raises:
            MissingTensor: there is no such table.
        """
        name = self._name(f"{stack}positions")
        if not (rows := max(self._shapes.of.get(name, ())[:-1], default=0)):
            raise MissingTensor(name)
        return rows - FAIRSEQ_FIRST if self.table.table == "learned-from-2" else rows

    def has_table(self, stack: str) -> bool:
        """Whether a file holds the table of a stack's positions."""
        return f"{stack}positions" in self._roles


Asks: TypeAlias = Callable[[Sizes, Mapping[str, str]], tuple[questions.Question, ...]]
"""Makes the questions that a layout leaves open, from the sizes of its tensors and the answers given so far."""


def heads_of_all(sizes: Sizes, settings: Mapping[str, str]) -> tuple[questions.Question, ...]:
    """How many heads each stack has."""
    if sizes.table.network == "translator":
        return questions.heads_of_both(sizes.queries("encoder "), sizes.queries("decoder "), settings)
    queries = sizes.queries("")
    if sizes.grouped(""):
        return questions.grouped_heads(queries, sizes.keys(""), settings)
    return questions.heads("n_heads", queries, settings), questions.head_dim(queries)


def padding(sizes: Sizes, settings: Mapping[str, str]) -> tuple[questions.Question, ...]:
    """The ids of padding."""
    return questions.padding_ids(*(sizes.of(f"{stack}embedding", 0) for stack in sizes.table.stacks))


def decoding(sizes: Sizes, settings: Mapping[str, str]) -> tuple[questions.Question, ...]:
    """The ids that decoding needs."""
    return questions.decoding_ids(sizes.of(f"{sizes.table.stacks[-1]}embedding", 0))


def texts(sizes: Sizes, settings: Mapping[str, str]) -> tuple[questions.Question, ...]:
    """The vocabularies, and how texts are split."""
    return questions.vocabularies(*("source_vocab", "target_vocab")[: len(sizes.table.stacks)])


def layout(
    table: RoleTable,
    name: str,
    title: Words,
    needs: tuple[str, ...] = (),
    objection: Callable[[Shapes], Words | None] = lambda shapes: None,
    notes: tuple[Words, ...] = (),
    starts: tuple[str, ...] = (),
    ends: tuple[str, ...] = (),
    recomputed: tuple[str, ...] = (),
    file: LayoutFile | None = None,
) -> Layout:
    """The layout that a table describes.

    Args:
        needs: roles without which a file is not of this program.
        objection: evidence against it that the roles do not give.
        name, title, notes, starts, ends, recomputed, file: as in `Layout`.
    """
    needed = requires(*(pattern for role in needs for pattern in table.patterns(role)))

    def match(shapes: Shapes) -> Match:
        required = needed(shapes)
        objections = (reason,) if (reason := objection(shapes)) else ()
        if table.grouped and required and not objections and not _fits_heads(Sizes(table, shapes)):
            objections = (questions.NO_HEADS,)
        return Match(required.in_favour, required.against + objections)

    rules = _rules(table)
    ask, read = partial(_ask, table), partial(_read, table)
    return Layout(name, title, match, lambda shapes, settings: rules, ask, read, notes, starts, ends, recomputed, file)


def _fits_heads(sizes: Sizes) -> bool:
    try:
        return bool(questions.head_widths(sizes.queries(""), sizes.keys("")))
    except MissingTensor:
        return True  # `ask` says which tensor it lacks


def _rules(table: RoleTable) -> Rules:
    rules: dict[str, str | tuple[str, ...]] = {}
    for pattern, role in table.roles.items():
        # queries, keys and values in one tensor: below each other, or group by group where heads share keys
        stacked = next((stack_kind for stack_kind in (GROUPED, STACKED) if stack_kind in role), None)
        parts = [role.replace(stacked, part) for part in STACKED.split(", ")] if stacked else [role][: role != BEHIND]
        places = tuple(our_name(table, part, pattern) for part in parts)
        ours = ByKeyHead(places) if stacked == GROUPED else places
        rules[pattern.replace(LAYER, "#")] = places[0] if len(places) == 1 else ours
    return rules


def our_name(table: RoleTable, role: str, pattern: str) -> str:
    """Our name of a role's tensor: in layers with `#` for the number, or the only layer's where the pattern has no number."""
    kind = "@" if "@" in pattern else "bias" if role.endswith(" bias") else "weight"
    stack, part = _split(role.removesuffix(" bias"))
    if part == "positions" and not table.table.startswith("learned"):
        kind = "table"
    attention_name, residual = ("self_attention", "self_residual") if stack == "decoder" else ("attention", "attention_residual")
    # the output layer belongs to no stack
    before = f"{stack or ('encoder' if table.network == 'encoder' else '')}.".removeprefix(".") if part != "vocabulary" else ""
    layer = f"layers.{'#' if LAYER in pattern else '0'}." if in_layers(role) else ""
    return f"{before}{layer}{_PLACES[part].format(attention=attention_name, residual=residual)}.{kind}"


def _split(role: str) -> tuple[str, str]:
    """A role's stack, and the role inside it."""
    stack = next((stack for stack in _STACKS if role.startswith(stack)), "")
    return stack.strip(), role.removeprefix(stack)


def _ask(table: RoleTable, shapes: Shapes, settings: Mapping[str, str]) -> tuple[questions.Question, ...]:
    sizes, known = Sizes(table, shapes), {**table.facts, **settings}
    asked = [question for ask in table.asks for question in ((ask,) if isinstance(ask, questions.Question) else ask(sizes, known))]
    return tuple(  # a fact answers its question, unless a setting says otherwise
        replace(question, default=question.check(table.facts[question.name])) if question.name in table.facts else question
        for question in asked
    )


def _read(table: RoleTable, shapes: Shapes, answers: questions.Answers) -> ModelSpec:
    sizes, known = Sizes(table, shapes), {**table.fixed, **answers.of}
    stacks = {stack.strip(): _stack(sizes, stack, answers, known) for stack in table.stacks}
    if table.network == "encoder":
        return model_spec(answers, stacks[""], None, None)
    output = OutputSpec(tied=not sizes.has("vocabulary"), bias=sizes.has("vocabulary bias"))
    no_output = known.get("output_layer") == "none"
    return model_spec(answers, stacks.get("encoder"), stacks.get("decoder") or stacks[""], None if no_output else output)


def _stack(sizes: Sizes, stack: str, answers: questions.Answers, known: Mapping[str, str]) -> StackSpec:
    values = questions.Answers(known).fields()
    values.setdefault("norm", "standard" if sizes.has(f"{stack}attention norm bias") else "bias-free")
    # a table in the file decides; without one the answer does, and where nothing was asked the file lacks its table
    if sizes.has_table(stack) or "positions" not in known:
        values |= {"positions": sizes.table.table, "max_positions": sizes.rows(stack)}
    else:
        values["positions"] = known["positions"]
    if stack == "decoder ":
        values |= {"passes": int(known.get("decoder_passes", 1)), "decode_positions": known.get("decode_positions", "running")}
    queries, bias = sizes.queries(stack), sizes.has(f"{sizes.query(stack)} bias")
    return StackSpec(
        vocab=sizes.of(f"{stack}embedding", 0),
        d_model=sizes.of(f"{stack}embedding", 1),
        layers=sizes.layers(stack),
        attention=grouped_attention(answers, queries, sizes.keys(stack), bias)
        if sizes.grouped(stack)
        else attention(answers, f"{stack.strip()}_heads" if stack else "n_heads", queries, bias),
        hidden=sizes.of(f"{stack}feed-forward in", 0),
        bias=sizes.has(f"{stack}feed-forward in bias"),
        gated=sizes.has(f"{stack}feed-forward gate"),
        final_norm=sizes.has(f"{stack}final norm"),
        **values,
    )
