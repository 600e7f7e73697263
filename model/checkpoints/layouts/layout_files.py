"""A layout that a person described: a layout file (model/spec/layout_file.py) made into a Layout."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, attention, grouped_attention, model_spec
from model.checkpoints.layouts.llama_like import grouped_heads, norm_epsilon, rotary_base
from model.checkpoints.layouts.questions import (
    Answers,
    Question,
    activation,
    causal,
    decoding_ids,
    embed_scale,
    head_dim,
    heads,
    norm_order,
    padding_ids,
    vocabularies,
)
from model.errors import phrase
from model.spec.layout_file import BEHIND, LAYER, STACKED, LayoutFile, filled, in_layers
from model.spec.network import ROTARY, ModelSpec, OutputSpec, StackSpec

SETTING = "layout_file"
"""The setting that names a layout file."""

LISTED = "custom"
"""The layout of a file whose tensors have no roles yet: it lists their names and shapes, and asks for a layout file."""

LONGEST = 4096
"""Positions at most where no table bounds them."""

_PLACES = {
    "embedding": "embedding.token",
    "positions": "embedding.positions",
    "query": "{own}.query",
    "key": "{own}.key",
    "value": "{own}.value",
    "output": "{own}.output",
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

_UNTABLED = ("sinusoidal", "sinusoidal-column", "sinusoidal-from-2", "rotary", "rotary-pairs", "none")


def layout_of(told: LayoutFile) -> Layout:
    """The layout that a layout file describes."""
    return Layout(
        name=told.name,
        title=phrase("layout file {name}", name=told.name),
        match=lambda shapes: Match((), ()),  # `detect` checks each tensor and its shape
        rules=partial(_rules, told),
        ask=partial(_ask, told),
        read=partial(_read, told),
        notes=(phrase("The layout file {name} says what each tensor is. The maps are right only if it is right.", name=told.name),),
        starts=("source", "target"),
        ends=("source", "target") if told.network == "translator" else (),
        told=told,
    )


def listing() -> Layout:
    """A layout that knows no tensor."""
    asked = Question(SETTING, phrase("Says what each tensor is; the Checkpoint page helps to write one."))
    return Layout(
        name=LISTED,
        title="names and shapes, without a layout",
        match=lambda shapes: Match((), ()),
        rules=lambda shapes, told: {},
        ask=lambda shapes, told: (asked,),
        read=lambda shapes, answers: ModelSpec(None),  # never reached: the question above stays open
    )


def _rules(told: LayoutFile, shapes: Shapes, settings: Mapping[str, str]) -> Rules:
    found: dict[str, str | tuple[str, ...]] = {}
    for pattern, role in told.roles.items():
        parts = tuple(_place(told, part, LAYER in pattern) for part in _parts(role))
        found[pattern.replace(LAYER, "#")] = parts[0] if len(parts) == 1 else parts
    return found


def _parts(role: str) -> tuple[str, ...]:
    """The roles of the parts of a tensor: three of a stacked one."""
    if STACKED not in role:
        return () if role == BEHIND else (role,)
    return tuple(role.replace(STACKED, part) for part in STACKED.split(", "))


def _place(told: LayoutFile, role: str, numbered: bool) -> str:
    """Our name of a role: in layers with `#` for the layer's number, or the only layer's where its name has no number."""
    kind = "bias" if role.endswith(" bias") else "weight"
    stack, part = _split(told, role.removesuffix(" bias"))
    own = "self_attention" if stack == "decoder." and told.network == "translator" else "attention"
    residual = "self_residual" if own == "self_attention" else "attention_residual"
    layer = f"{stack}layers.{'#' if numbered else '0'}." if in_layers(role) else stack
    return f"{layer}{_PLACES[part].format(own=own, residual=residual)}.{kind}"


def _split(told: LayoutFile, role: str) -> tuple[str, str]:
    """Prefix of our names of a role's stack, and the role inside it."""
    if role == "vocabulary":
        return "", role
    if told.network == "translator":
        stack, _, part = role.partition(" ")
        return f"{stack}.", part
    return ("encoder." if told.network == "encoder" else ""), role


def _stacks(told: LayoutFile) -> tuple[str, ...]:
    """The prefix of the roles of each stack."""
    return ("encoder ", "decoder ") if told.network == "translator" else ("",)


class _Sizes:
    """Sizes of tensors by role, in the first layer."""

    def __init__(self, told: LayoutFile, shapes: Shapes) -> None:
        self._shapes, self.names = shapes, filled(told, shapes.of)

    def has(self, role: str) -> bool:
        """Whether a tensor has the role."""
        return (role, 0) in self.names

    def of(self, role: str, axis: int) -> int:
        """The size of one axis of the role's tensor."""
        return self._shapes.size(self.names.get((role, 0), role), axis)

    def columns(self, stack: str) -> tuple[int, int]:
        """Columns of all heads' queries, and of all heads' keys."""
        if self.has(f"{stack}{STACKED}"):
            queries = self.of(f"{stack}output", 1)
            return queries, (self.of(f"{stack}{STACKED}", 0) - queries) // 2
        return self.of(f"{stack}query", 0), self.of(f"{stack}key", 0)

    def biased(self, stack: str) -> bool:
        """Whether the projections of attention add a bias."""
        return self.has(f"{stack}query bias") or self.has(f"{stack}{STACKED} bias")

    def layers(self, stack: str) -> int:
        """The number of layers."""
        return 1 + max(layer for role, layer in self.names if in_layers(role) and role.startswith(stack))


def _ask(told: LayoutFile, shapes: Shapes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    known = dict(told.facts) | dict(settings)
    sizes, stacks = _Sizes(told, shapes), _stacks(told)
    vocab = [sizes.of(f"{stack}embedding", 0) for stack in stacks]
    asked = (
        *(question for stack in stacks for question in _heads(sizes, stack, known)),
        *((head_dim(*(sizes.columns(stack)[0] for stack in stacks)),) if len(stacks) > 1 else ()),
        norm_order(),
        _norm(any(sizes.has(f"{stack}attention norm bias") for stack in stacks)),
        norm_epsilon(),
        activation(),
        embed_scale(),
        *_positions(sizes, stacks, known),
        *((causal(None),) if told.network != "encoder" else ()),
        *(padding_ids(*vocab) if told.network != "language model" else ()),
        *decoding_ids(vocab[-1]),
        *(() if told.network == "encoder" or sizes.has("vocabulary") else (_tied(),)),
        *vocabularies(*(f"{name}_vocab" for name, _ in zip(("source", "target"), stacks, strict=False))),
    )
    return tuple(_with_fact(question, told.facts) for question in asked)


def _with_fact(question: Question, facts: Mapping[str, str]) -> Question:
    """A question with the layout file's answer, which a setting may replace."""
    return replace(question, default=question.check(facts[question.name])) if question.name in facts else question


def _heads(sizes: _Sizes, stack: str, known: Mapping[str, str]) -> tuple[Question, ...]:
    queries, keys = sizes.columns(stack)
    if stack:
        return (heads(f"{stack.strip()}_heads", queries, known, also=("n_heads",)),)
    return (heads("n_heads", queries, known), head_dim(queries)) if queries == keys else grouped_heads(queries, keys, known)


def _norm(biased: bool) -> Question:
    kinds = ("standard", "unbiased") if biased else ("rms", "bias-free")
    consequence = (
        "LayerNorm (standard; without a bias: bias-free), LayerNorm with the deviation of a sample (unbiased), or RMSNorm (rms)."
    )
    return Question("norm", consequence, kinds)


def _positions(sizes: _Sizes, stacks: tuple[str, ...], known: Mapping[str, str]) -> tuple[Question, ...]:
    if all(sizes.has(f"{stack}positions") for stack in stacks):
        return ()
    asked = Question("positions", phrase("The kind of positional encoding: no tensor is a table of positions."), _UNTABLED)
    return (asked, rotary_base()) if known.get("positions") in ROTARY else (asked,)


def _tied() -> Question:
    consequence = phrase("No tensor is the output layer: it shares the weights of the embedding (tied), or there is none (none).")
    return Question("output_layer", consequence, ("tied", "none"))


def _read(told: LayoutFile, shapes: Shapes, answers: Answers) -> ModelSpec:
    sizes = _Sizes(told, shapes)
    found = {stack.strip(): _stack(told, sizes, stack, answers) for stack in _stacks(told)}
    if told.network == "encoder":
        return model_spec(answers, found[""], None, None)
    tied = answers.of.get("output_layer")
    output = None if tied == "none" else OutputSpec(tied=tied == "tied", bias=sizes.has("vocabulary bias"))
    return model_spec(answers, found.get("encoder"), found.get("decoder") or found[""], output)


def _stack(told: LayoutFile, sizes: _Sizes, stack: str, answers: Answers) -> StackSpec:
    table = sizes.has(f"{stack}positions")
    queries, keys = sizes.columns(stack)
    if queries == keys:
        own = attention(answers, f"{stack.strip()}_heads" if stack else "n_heads", queries, sizes.biased(stack))
    else:
        own = grouped_attention(answers, queries, keys, sizes.biased(stack))
    return StackSpec(
        vocab=sizes.of(f"{stack}embedding", 0),
        d_model=sizes.of(f"{stack}embedding", 1),
        layers=sizes.layers(stack),
        attention=own,
        hidden=sizes.of(f"{stack}feed-forward in", 0),
        activation=answers.activation,
        bias=sizes.has(f"{stack}feed-forward in bias"),
        gated=sizes.has(f"{stack}feed-forward gate"),
        norm_order=answers.norm_order,
        norm=answers.norm,
        norm_epsilon=float(answers.text("norm_epsilon")),
        final_norm=sizes.has(f"{stack}final norm"),
        positions="learned" if table else answers.positions,
        rotary_base=answers.optional_number("rotary_base") or StackSpec.rotary_base,
        max_positions=sizes.of(f"{stack}positions", 0) if table else LONGEST,
        embed_scale=answers.embed_scale,
        causal=told.network == "encoder" or answers.flag("causal"),
    )
