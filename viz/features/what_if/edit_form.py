"""A plain form that makes every kind of edit, for the keyboard, for touch, and for what no gesture makes."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from model.errors import HeadlightError
from model.requests.edits import EDITS, Edit
from viz.features.what_if import form_fields as fields
from viz.features.what_if.undo import change_edits
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets.cards import say

_REFUSED = "whatif:refused"


def draw(page: Page) -> None:
    """Draws the form; its button adds the edit at the end of the list."""
    titles = {name: title for name, title in _titles().items() if name in EDITS}
    name = st.selectbox(_("Kind of edit"), list(titles), format_func=titles.__getitem__, key="form:kind")
    try:
        made = EDITS[name](**_FIELDS[name](page))
    except HeadlightError as error:
        made = None
        st.session_state[_REFUSED] = error_message(error)
    if refused := st.session_state.pop(_REFUSED, ""):
        say(refused)
    if made is not None:
        st.caption(tokens.markdown(_("As text, for links and the command line: {edit}", edit=made)))
    st.button(_("Add this edit"), icon=":material/add:", key="form:add", disabled=made is None, on_click=_add, args=(made,))


def _add(made: Edit) -> None:
    change_edits(lambda edits: edits.with_(made))


def _titles() -> dict[str, str]:
    """Descriptions of the kinds of edits, by name."""
    return {
        "forbid": _("Hide keys from queries"),
        "allow": _("Open: queries may attend to keys, even masked ones"),
        "set-row": _("Give rows other weights"),
        "silence": _("Silence heads"),
        "sharpen": _("Sharpen or flatten heads: scores times a factor"),
        "no-positions": _("Remove the positions"),
        "swap-positions": _("Swap the positions of two tokens"),
        "shift-positions": _("Shift all positions"),
        "sinusoidal-positions": _("Use sinusoids as positions"),
        "skip-layer": _("Skip a layer"),
        "skip-sublayer": _("Skip a sublayer"),
        "swap-layers": _("Swap two layers"),
        "embed": _("Give a token another word’s embedding"),
        "patch": _("Patch: take values from another run"),
    }


def _edges(page: Page) -> dict[str, Any]:
    place = fields.place(page)
    return place | {"query": fields.tokens(page, place, "query"), "key": fields.tokens(page, place, "key")}


def _row(page: Page) -> dict[str, Any]:
    place = fields.place(page)
    to = fields.choice("to", _("New weights"), {
        "uniform": _("uniform: the same for every allowed key"),
        "one-hot": _("one-hot: all on one key"),
        "numbers": _("typed numbers, scaled to sum to 1"),
        "head": _("those of another head"),
    })  # fmt: skip
    found = place | {"query": fields.tokens(page, place, "query"), "to": to}
    if to == "one-hot":
        found["key"] = fields.token(page, place, "key")
    if to == "numbers":
        found["numbers"] = fields.numbers()
    if to == "head":
        found["other"] = int(st.number_input(_("Head to copy"), 1, fields.heads(page, place), key="form:other")) - 1
    return found


def _silence(page: Page) -> dict[str, Any]:
    by = fields.choice("by", _("Replaced by"), {
        "zeros": _("zeros"),
        "sentence": _("its mean over this sentence"),
        "examples": _("its mean over example sentences"),
        "survey": _("its mean over the texts of the stored survey"),
    })  # fmt: skip
    return fields.place(page) | {"by": by}


def _sharpen(page: Page) -> dict[str, Any]:
    found = fields.place(page)
    return found | {"factor": st.number_input(_("Factor: above 1 sharper, below 1 flatter"), value=2.0, key="form:factor")}


def _stack(page: Page) -> dict[str, Any]:
    return {"stack": fields.stack(page)}


def _two_tokens(page: Page) -> dict[str, Any]:
    found = _stack(page)
    return found | {name: fields.token(page, found, name) for name in ("a", "b")}


def _shift(page: Page) -> dict[str, Any]:
    return _stack(page) | {"by": int(st.number_input(_("Shift by (positions)"), value=1, step=1, key="form:by"))}


def _layer(page: Page) -> dict[str, Any]:
    found = _stack(page)
    return found | {"layer": fields.layer(page, found["stack"], "layer", _("Layer"))}


def _two_layers(page: Page) -> dict[str, Any]:
    found = _stack(page)
    titles = {"a": _("First layer"), "b": _("Second layer")}
    return found | {name: fields.layer(page, found["stack"], name, title) for name, title in titles.items()}


def _embed(page: Page) -> dict[str, Any]:
    found = _stack(page)
    return found | {
        "at": fields.token(page, found, "at"),
        "word": st.text_input(_("Word whose embedding the token gets"), key="form:word"),
    }


def _patch(page: Page) -> dict[str, Any]:
    value = fields.choice("value", _("Values"), {
        "hidden": _("output of layers"),
        "output": _("output of attention sublayers"),
        "context": _("context vectors of heads"),
        "weights": _("weights of heads"),
    })  # fmt: skip
    found: dict[str, Any] = _stack(page) if value == "hidden" else fields.place(page, with_heads=value != "output")
    found |= {"value": value, "at": fields.tokens(page, found, "at")}
    source = st.text_input(_("Sentence of the other run (empty: the same)"), key="form:source")
    take = st.text_input(
        _("Tokens of the other run, in the same order, separated by spaces (empty: the same positions)"), key="form:take"
    )
    return found | ({"source": source} if source else {}) | {"take": tuple(fields.typed_token(one) for one in take.split())}


_FIELDS: Mapping[str, Callable[[Page], dict[str, Any]]] = {
    "forbid": _edges,
    "allow": _edges,
    "set-row": _row,
    "silence": _silence,
    "sharpen": _sharpen,
    "no-positions": _stack,
    "swap-positions": _two_tokens,
    "shift-positions": _shift,
    "sinusoidal-positions": _stack,
    "skip-layer": _layer,
    "skip-sublayer": lambda page: {"at": fields.sublayer(page)},
    "swap-layers": _two_layers,
    "embed": _embed,
    "patch": _patch,
}
