"""A layout that a person described: a layout file (model/requests/layout_file.py) made into a Layout."""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout, Match
from model.checkpoints.layouts.questions import (
    LONGEST,
    Question,
    activation,
    causal,
    embed_scale,
    norm_epsilon,
    norm_order,
    rotary_base,
)
from model.checkpoints.layouts.role_tables import RoleTable, Sizes, decoding, heads_of_all, layout, padding, texts
from model.errors import phrase
from model.requests.layout_file import LayoutFile
from model.requests.network import ROTARY, ModelSpec

SETTING = "layout_file"
"""The setting that names a layout file."""

LISTED = "custom"
"""The layout of a file whose tensors have no roles yet: it lists their names and shapes, and asks for a layout file."""

_UNTABLED = ("sinusoidal", "sinusoidal-column", "sinusoidal-from-2", "rotary", "rotary-pairs", "none")


def layout_of(file: LayoutFile) -> Layout:
    """The layout that a layout file describes; `detect` checks each tensor and its shape."""
    model, encoder = file.network == "language model", file.network == "encoder"
    table = RoleTable(
        file.network,
        file.roles,
        asks=(
            heads_of_all,
            norm_order(),
            _norm,
            norm_epsilon(),
            activation(),
            embed_scale(),
            _positions,
            *(() if encoder else (causal(None),)),
            *(() if model else (padding,)),
            decoding,
            *(() if encoder else (_tied,)),
            texts,
        ),
        facts=file.facts,
        fixed={"max_positions": str(LONGEST)},
        grouped=None if file.network != "translator" else False,
    )
    return layout(
        table,
        name=file.name,
        title=phrase("layout file {name}", name=file.name),
        notes=(phrase("The layout file {name} says what each tensor is. The maps are right only if it is right.", name=file.name),),
        starts=("source", "target"),
        ends=("source", "target") if file.network == "translator" else (),
        file=file,
    )


def listing() -> Layout:
    """A layout that knows no tensor."""
    asked = Question(SETTING, phrase("Says what each tensor is; the Checkpoint page helps to write one."))
    return Layout(
        name=LISTED,
        title="names and shapes, without a layout",
        match=lambda shapes: Match((), ()),
        rules=lambda shapes, settings: {},
        ask=lambda shapes, settings: (asked,),
        read=lambda shapes, answers: ModelSpec(None),  # never reached: the question above stays open
    )


def _norm(sizes: Sizes, known: Mapping[str, str]) -> tuple[Question, ...]:
    biased = any(sizes.has(f"{stack}attention norm bias") for stack in sizes.table.stacks)
    consequence = (
        "LayerNorm (standard; without a bias: bias-free), LayerNorm with the deviation of a sample (unbiased), or RMSNorm (rms)."
    )
    return (Question("norm", consequence, ("standard", "unbiased") if biased else ("rms", "bias-free")),)


def _positions(sizes: Sizes, known: Mapping[str, str]) -> tuple[Question, ...]:
    if all(map(sizes.has_table, sizes.table.stacks)):
        return ()
    asked = Question("positions", phrase("The kind of positional encoding: no tensor is a table of positions."), _UNTABLED)
    return (asked, rotary_base()) if known.get("positions") in ROTARY else (asked,)


def _tied(sizes: Sizes, known: Mapping[str, str]) -> tuple[Question, ...]:
    consequence = phrase("No tensor is the output layer: it shares the weights of the embedding (tied), or there is none (none).")
    return () if sizes.has("vocabulary") else (Question("output_layer", consequence, ("tied", "none")),)
