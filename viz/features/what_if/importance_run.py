"""Parts that all measurements of the page What if share: the run that they are about, and the target token that is measured."""

from dataclasses import replace

import streamlit as st

from model.features.what_if.results import Result
from model.requests.request import RunRequest
from model.trace.types import Array
from viz.features.what_if.remembered import forget_what_is_gone
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session.state import Page


def request(page: Page) -> RunRequest:
    """The run without edits."""
    return replace(page.view.request(), edits=())


def token_choice(result: Result, name: str, whole: bool = True) -> int | None:
    """Draws the choice of a target token; None: the whole target.

    Args:
        name: of the widget.
        whole: whether the whole target can be chosen.
    """
    titles: dict[int, str] = {-1: _("the whole target")} if whole else {}
    titles |= {index: f"{index + 1} {tokens.word(token)}" for index, token in enumerate(result.tokens)}
    key = token_key(name)
    forget_what_is_gone(key, titles)
    chosen = st.selectbox(_("Target token"), list(titles), format_func=titles.__getitem__, key=key)
    return None if chosen is None or chosen < 0 else int(chosen)


def token_key(name: str) -> str:
    """The key of the widget that chooses a target token."""
    return f"matters:token:{name}"


def of_token(numbers: Array, token: int | None) -> Array:
    """The numbers of one target token, or their sum: [..., token] -> [...]."""
    amounts: Array = numbers.sum(axis=-1) if token is None else numbers[..., token]
    return amounts
