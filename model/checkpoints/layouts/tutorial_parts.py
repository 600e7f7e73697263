"""Reference document 002 (docs/references.md): parts of the translator of 000 on their own.

They read float features and generate no words.
"""

from collections.abc import Mapping
from dataclasses import replace

from model.checkpoints.layouts.base import Layout, Match, Rules, Shapes, attention, model_spec
from model.checkpoints.layouts.questions import Answers, Question, activation, causal, head_dim, heads, norm_order
from model.checkpoints.layouts.translators import TUTORIAL
from model.errors import phrase
from model.requests.network import ModelSpec, StackSpec

LONGEST = 4096
"""Positions at most: features have no table of positions that would bound them."""


def _prefix(shapes: Shapes) -> str:
    """The prefix of the names of the first layer's parts."""
    return "layers.0." if shapes.has("layers.#.self_attention.fc_q.weight") else ""


def _is_module(shapes: Shapes) -> bool:
    return shapes.has("fc_q.weight")


def _is_decoder(shapes: Shapes) -> bool:
    return shapes.has(f"{_prefix(shapes)}encoder_attention.fc_q.weight")


def _match(shapes: Shapes) -> Match:
    names = ("layers.#.self_attention.fc_q.weight", "self_attention.fc_q.weight", "fc_q.weight")
    present = tuple(name for name in names if shapes.has(name))
    return Match(
        tuple(phrase("it has {pattern}", pattern=name) for name in present),
        () if present else (phrase("it lacks {pattern}", pattern=", ".join(names)),),
    )


def _rules(shapes: Shapes, settings: Mapping[str, str]) -> Rules:
    if _is_module(shapes):
        places = {"q": "query", "k": "key", "v": "value", "o": "output"}
        return {f"fc_{theirs}.@": f"encoder.layers.0.attention.{ours}.@" for theirs, ours in places.items()}
    theirs, number = ("layers.#.", "#") if _prefix(shapes) else ("", "0")
    whole = f"{'decoder' if _is_decoder(shapes) else 'encoder'}.layers.#."
    rules = {
        name: ours for name, ours in TUTORIAL.rules(shapes, settings).items() if name.startswith(whole) and isinstance(ours, str)
    }
    return {name.replace(whole, theirs): ours.replace("#", number) for name, ours in rules.items()}


def _query(shapes: Shapes) -> str:
    return "fc_q.weight" if _is_module(shapes) else f"{_prefix(shapes)}self_attention.fc_q.weight"


def _ask(shapes: Shapes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    columns = shapes.size(_query(shapes), 0)
    cut = (heads("n_heads", columns, settings), head_dim(columns))
    if _is_module(shapes):
        return cut
    future = causal(
        "false",
        phrase(
            "Whether a target position is prevented from attending to later ones (causal mask). The tutorial’s code "
            "does not prevent it in this layer."
        ),
    )
    return (*cut, norm_order("post"), activation("relu"), *((future,) if _is_decoder(shapes) else ()))


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    query = _query(shapes)
    width = shapes.size(query, 1)
    attention_alone = StackSpec(
        vocab=0,
        d_model=width,
        layers=shapes.layers("layers.#.self_attention.fc_q.weight") or 1,
        attention=attention(answers, "n_heads", shapes.size(query, 0), shapes.has(query.replace("weight", "bias"))),
        hidden=0,
        wiring="attention",
        positions="none",
        max_positions=LONGEST,
    )
    if _is_module(shapes):
        return model_spec(answers, attention_alone, None, None)
    hidden = shapes.size(f"{_prefix(shapes)}positionwise_feedforward.fc_1.weight", 0)
    whole = replace(attention_alone, wiring="standard", hidden=hidden, **answers.fields())
    if not _is_decoder(shapes):
        return model_spec(answers, whole, None, None)
    # a decoder layer attends to features in place of an encoder's output: an encoder without layers passes them on
    return model_spec(answers, replace(whole, layers=0, causal=True), whole, None)


TUTORIAL_PARTS = Layout(
    name="tutorial-parts",
    title=phrase("Layers or an attention module of the sequence-to-sequence tutorial (reference document 002)"),
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=(phrase("These are parts of a translator: they read float features instead of words and generate no words."),),
)
