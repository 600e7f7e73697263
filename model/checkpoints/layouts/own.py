"""Our own names in a bare file: a checkpoint folder that lost its spec.json, or a network of `model.transformer` saved by hand."""

from collections.abc import Mapping
from typing import get_args

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, attention, model_spec, requires
from model.checkpoints.layouts.questions import (
    Answers,
    Question,
    activation,
    decoding_ids,
    embed_scale,
    head_dim,
    heads,
    norm_order,
    padding_ids,
    vocabularies,
)
from model.errors import phrase
from model.spec.network import ModelSpec, OutputSpec, Positions, StackSpec

LONGEST = 4096
"""Most positions without a learned position table."""

_FIRST = {"encoder": "attention", "decoder": "self_attention", "": "attention"}


def _stacks(shapes: Shapes) -> tuple[str, ...]:
    """Prefixes of the stacks; empty for a language model."""
    return ("",) if shapes.has("layers.#.attention.query.weight") else ("encoder", "decoder")


def _at(stack: str, name: str) -> str:
    return f"{stack}.{name}".removeprefix(".")


def _match(shapes: Shapes) -> Match:
    needed = [
        name
        for stack in _stacks(shapes)
        for name in (_at(stack, "embedding.token.weight"), _at(stack, f"layers.#.{_FIRST[stack]}.query.weight"))
    ]
    return requires(*needed)(shapes)


_ATTENTIONS = ("attention", "self_attention", "cross_attention")
_RESIDUALS = ("attention_residual", "self_residual", "cross_residual", "feed_forward_residual")


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    parts = [f"{name}.{part}.@" for name in _ATTENTIONS for part in ("query", "key", "value", "output")]
    parts += [f"{name}.norm.@" for name in _RESIDUALS] + ["feed_forward.expand.@", "feed_forward.contract.@"]
    names = [f"layers.#.{part}" for part in parts]
    names += ["embedding.token.weight", "embedding.positions.weight", "final_norm.@"]
    return {"output.@": "output.@"} | {_at(stack, name): _at(stack, name) for stack in _stacks(shapes) for name in names}


def _columns(shapes: Shapes, stack: str) -> int:
    return shapes.size(_at(stack, f"layers.0.{_FIRST[stack]}.query.weight"), 0)


def _heads_of(stack: str) -> str:
    return f"{stack}_heads" if stack else "n_heads"


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    stacks = _stacks(shapes)
    columns = {stack: _columns(shapes, stack) for stack in stacks}
    vocab = {stack: shapes.size(_at(stack, "embedding.token.weight"), 0) for stack in stacks}
    also = ("n_heads",) if len(stacks) > 1 else ()
    kinds = tuple(kind for kind in get_args(Positions) if kind != "stored")
    waves = Question("positions", phrase("The kind of positional encoding; the file contains no learned one."), kinds)
    return (
        *(heads(_heads_of(stack), columns[stack], told, also) for stack in stacks),
        head_dim(*columns.values()),
        *(
            (Question("decoder_passes", phrase("How often the decoder’s layers are applied."), ("1", "2")),)
            if len(stacks) > 1
            else ()
        ),
        norm_order(),
        activation(),
        embed_scale(),
        *(() if all(_learned(shapes, stack) for stack in stacks) else (waves,)),
        *padding_ids(*vocab.values()),
        *decoding_ids(vocab[stacks[-1]]),
        *vocabularies(*(f"{name}_vocab" for name, _ in zip(("source", "target"), stacks, strict=False))),
    )


def _learned(shapes: Shapes, stack: str) -> bool:
    return shapes.has(_at(stack, "embedding.positions.weight"))


def _stack(shapes: Shapes, stack: str, answers: Answers) -> StackSpec:
    first = f"layers.0.{_FIRST[stack]}.query"
    learned = _learned(shapes, stack)
    return StackSpec(
        vocab=shapes.size(_at(stack, "embedding.token.weight"), 0),
        d_model=shapes.size(_at(stack, "embedding.token.weight"), 1),
        layers=shapes.layers(_at(stack, f"layers.#.{_FIRST[stack]}.query.weight")),
        attention=attention(answers, _heads_of(stack), _columns(shapes, stack), shapes.has(_at(stack, f"{first}.bias"))),
        hidden=shapes.size(_at(stack, "layers.0.feed_forward.expand.weight"), 0),
        passes=answers.optional_number("decoder_passes") or 1 if stack == "decoder" else 1,
        activation=answers.activation,
        bias=shapes.has(_at(stack, "layers.0.feed_forward.expand.bias")),
        norm_order=answers.norm_order,
        final_norm=shapes.has(_at(stack, "final_norm.weight")),
        positions="learned" if learned else answers.positions,
        max_positions=shapes.size(_at(stack, "embedding.positions.weight"), 0) if learned else LONGEST,
        embed_scale=answers.embed_scale,
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    stacks = [_stack(shapes, stack, answers) for stack in _stacks(shapes)]
    encoder = stacks[0] if len(stacks) > 1 else None
    return model_spec(answers, encoder, stacks[-1], OutputSpec(bias=shapes.has("output.bias")))


OWN = Layout(
    name="own",
    title=phrase("Headlight’s own names without their spec.json"),
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    starts=("source", "target"),
    ends=("source", "target"),
)
