"""Our own names in a bare file: a checkpoint folder that lost its spec.json, or a network of `model.transformer` saved by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from model.checkpoints.layouts.base import Layout, Shapes
from model.checkpoints.layouts.questions import LONGEST, Question, activation, embed_scale, norm_order
from model.checkpoints.layouts.role_tables import RoleTable, Sizes, decoding, heads_of_all, layout, our_name, padding, texts
from model.errors import phrase
from model.requests.layout_file import BEHIND, LAYER, STACKED, Network, roles
from model.requests.network import Positions

_PASSES = Question("decoder_passes", phrase("How often the decoder’s layers are applied."), ("1", "2"))


def _ask_positions(sizes: Sizes, settings: Mapping[str, str]) -> tuple[Question, ...]:
    kinds = tuple(kind for kind in get_args(Positions) if kind != "stored")
    asked = Question("positions", phrase("The kind of positional encoding; the file contains no learned one."), kinds)
    return () if all(map(sizes.has_table, sizes.table.stacks)) else (asked,)


def _layout(network: Network, *more: Question) -> Layout:
    every = [role for role in roles(network) if STACKED not in role and "gate" not in role and role != BEHIND]
    nameless = RoleTable(network, roles={}, asks=())
    ours = {role: our_name(nameless, role, f"{LAYER}.@" if f"{role} bias" in every else LAYER) for role in every}
    table = RoleTable(
        network,
        roles={name.replace("#", LAYER): role for role, name in ours.items() if not role.endswith(" bias")},
        asks=(heads_of_all, *more, norm_order(), activation(), embed_scale(), _ask_positions, padding, decoding, texts),
        fixed={"max_positions": str(LONGEST)},
        always=("vocabulary", "attention norm bias"),
    )
    return layout(
        table,
        name="own",
        title=phrase("Headlight’s own names without their spec.json"),
        needs=tuple(f"{stack}{role}" for stack in table.stacks for role in ("embedding", "query")),
        starts=("source", "target"),
        ends=("source", "target"),
    )


_MODEL, _TRANSLATOR = _layout("language model"), _layout("translator", _PASSES)


def _layout_for(shapes: Shapes) -> Layout:
    return _MODEL if shapes.has("layers.#.attention.query.weight") else _TRANSLATOR


NATIVE_NAMES = replace(
    _TRANSLATOR,
    match=lambda shapes: _layout_for(shapes).match(shapes),
    rules=lambda shapes, settings: _layout_for(shapes).rules(shapes, settings),
    ask=lambda shapes, settings: _layout_for(shapes).ask(shapes, settings),
    read=lambda shapes, answers: _layout_for(shapes).read(shapes, answers),
)
