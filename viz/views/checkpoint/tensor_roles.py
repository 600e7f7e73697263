"""Roles on the page Checkpoint: where no known layout fits a file, a reader says what each tensor is and saves that as a layout."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

import streamlit as st

from model.engine.api import Engine, Inspect, Receive
from model.engine.sent_files import LAYOUT_ENDING
from model.errors import BadLayoutFile, HeadlightError, Phrase, Words
from model.inspection.report import Inspection
from model.requests.layout_file import BEHIND, LayoutFile, Network, Shape, mistakes, pattern_of, roles
from viz.i18n.translate import N_, _, current, error_message, said, translated
from viz.labels import tokens
from viz.session.state import get_view_state, update
from viz.url.parsers import settings_text
from viz.url.view_state import ViewState
from viz.widgets.cards import say

SETTING = "layout_file"
_LISTED = ("layout", "custom")
_MOST_SAID = 6
"""Most mistakes that are listed at once."""

_LONGEST = 60
"""Most letters of a pattern in a row."""


def show(engine: Engine, model: str, view: ViewState) -> None:
    """Draws the table of names with a role to choose for each, and what is wrong with the choice."""
    try:
        inspection = engine.ask(
            Inspect(model, (_LISTED, *((name, value) for name, value in view.parsed_settings() if name == "candidate")))
        )
    except HeadlightError as error:
        say(error_message(error))
        return
    st.markdown("**" + _("Assign roles") + "**")
    st.caption(
        _(
            "No known layout fits, so the roles of these tensors are not known, and Headlight does not guess them. If you know the "
            "program, choose a role for each: names and shapes are checked at once, and everything else is asked for afterwards. "
            "Matrices are [out, in], as torch.nn.Linear stores them."
        )
    )
    network, which, name = _head(model)
    layout = LayoutFile(name, network, _rows(model, inspection, network, which))
    shapes = {tensor.name: tensor.shape for tensor in inspection.tensors}
    wrong = mistakes(layout, shapes, [tensor.name for tensor in inspection.tensors if tensor.status == "unneeded"])
    _result(wrong)
    with st.container(horizontal=True):
        st.download_button(
            _("Save layout file"),
            layout.to_json(),
            file_name=f"{layout.name}{LAYOUT_ENDING}",
            mime="application/json",
            icon=":material/download:",
            help=_("A small file that others can open together with weights of the same program."),
            disabled=not layout.roles,
            on_click="ignore",
            key="save-layout",
        )
        st.button(_("Use this layout"), disabled=bool(wrong), on_click=_use, args=(engine, layout), key="use-layout")


def use_sent(sent: Mapping[str, str]) -> None:
    """Takes layout files that were opened: the last one becomes the layout of the model.

    Args:
        sent: file names, by the engine's names.
    """
    for sent_name in list(sent)[-1:]:
        settings = {name: value for name, value in get_view_state()[0].parsed_settings() if name != "layout"}
        update(settings=settings_text(settings | {SETTING: sent_name}))


def is_layout(name: str) -> bool:
    """Whether a file is called like a layout file."""
    return name.lower().endswith(LAYOUT_ENDING)


def _head(model: str) -> tuple[Network, int, str]:
    """Draws what concerns all tensors: the kind of network, which number is the layer's, and the layout's name."""
    kinds = {"language model": _("a language model"), "encoder": _("an encoder"), "translator": _("an encoder-decoder")}
    numbers = {0: _("the first number in a name"), 1: _("the second number in a name"), -1: _("the last number in a name")}
    left, middle, right = st.columns(3)
    network = left.selectbox(_("Kind of network"), get_args(Network), format_func=kinds.__getitem__, key=f"roles-network:{model}")
    which = middle.selectbox(
        _("The layer number is taken from"), list(numbers), format_func=numbers.__getitem__, key=f"roles-layer:{model}"
    )
    typed = right.text_input(_("Name of the layout"), "my-program", max_chars=80, key=f"roles-name:{model}")
    name = "".join(letter for letter in typed if letter.isalnum() or letter in " ._-").strip()
    return network, which, name or "my-program"


def _rows(model: str, inspection: Inspection, network: Network, which: int) -> dict[str, str]:
    """Draws a row for each pattern of names, with its shape and the choice of its role; returns the chosen roles."""
    patterns: dict[str, list[Shape]] = {}
    for tensor in inspection.tensors:
        if tensor.status != "unneeded":
            patterns.setdefault(pattern_of(tensor.name, which), []).append(tensor.shape)
    axes, chosen = roles(network), dict[str, str]()
    for pattern, shapes in patterns.items():
        name, size, role = st.columns([5, 3, 4], vertical_alignment="center")
        name.markdown(f"`{tokens.plain(_shortened(pattern))}`")
        size.markdown(_size(shapes))
        fitting = [part_name for part_name, letters in axes.items() if part_name == BEHIND or len(letters) == len(shapes[0])]
        key = f"role:{model}:{network}:{pattern}"
        label = _("Role of {pattern}", pattern=tokens.plain(pattern))
        if answer := role.selectbox(label, fitting, None, _role, placeholder=_("choose …"), label_visibility="collapsed", key=key):
            chosen[pattern] = answer
    return chosen


_PARTS = (
    N_("embedding"),
    N_("positions"),
    N_("vocabulary"),
    N_("query"),
    N_("key"),
    N_("value"),
    N_("output"),
    N_("query, key, value"),
    N_("query, key, value by group"),
    N_("cross query"),
    N_("cross key"),
    N_("cross value"),
    N_("cross output"),
    N_("attention norm"),
    N_("cross norm"),
    N_("feed-forward in"),
    N_("feed-forward gate"),
    N_("feed-forward out"),
    N_("feed-forward norm"),
    N_("final norm"),
    N_("behind the network"),
)
"""The parts of a role, without the stack and "bias"."""


_ROLES = ("role", "owner")
"""Fields of a mistake that hold a role."""


def _role(role: str) -> str:
    """A role, as layout files write it; in another language than English with what it is beside it."""
    if current() == "en":
        return role
    stack, rest = next(
        ((stack_, role.removeprefix(f"{stack_} ")) for stack_ in ("encoder", "decoder") if role.startswith(f"{stack_} ")),
        ("", role),
    )
    part = rest.removesuffix(" bias")
    name = translated(part) if part in _PARTS else part
    if part != rest:
        name = _("{part}, bias", part=name)
    return f"{tokens.stack(stack)} · {name} ({role})" if stack else f"{name} ({role})"


def _shortened(pattern: str) -> str:
    return pattern if len(pattern) <= _LONGEST else f"…{pattern[-_LONGEST:]}"


def _size(shapes: Sequence[Shape]) -> str:
    """The shape of the tensors of a pattern, and how many there are."""
    first = " × ".join(map(str, shapes[0])) or "1"
    several = "" if len(set(shapes)) == 1 else " …"
    return f"{first}{several}" if len(shapes) == 1 else f"{first}{several} ({len(shapes)})"


def _result(wrong: Sequence[BadLayoutFile]) -> None:
    """Draws the result of the check: a sentence for each mistake."""
    if not wrong:
        st.info(_("Every tensor has a role, and the shapes fit."), icon=":material/check:")
        return
    lines = [f"- {tokens.markdown(_mistake(mistake.detail))}" for mistake in wrong[:_MOST_SAID]]
    if (more := len(wrong) - _MOST_SAID) > 0:
        lines.append("- " + _("and {count} more", count=more))
    st.info("\n".join(lines))


def _mistake(detail: Words) -> str:
    """A mistake in the current language, and so are the roles in it."""
    if isinstance(detail, Phrase):
        fields = {name: _role(str(value)) if name in _ROLES else value for name, value in detail.fields.items()}
        return said(replace(detail, fields=fields))
    return detail


def _use(engine: Engine, layout: LayoutFile) -> None:
    """Sends the layout to the engine and reads the file by it; the questions that it leaves open come next."""
    name = engine.ask(Receive(layout.to_json().encode(), f"{layout.name}{LAYOUT_ENDING}"))
    use_sent({name: layout.name})
