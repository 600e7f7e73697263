"""Controls of Compare: how the second side differs from the first side."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from model.engine.api import Describe, Engine, ModelInfo, Models
from model.errors import HeadlightError
from model.features.what_if.questions import Heads
from model.features.what_if.results import Head
from model.trace.types import Site
from viz.features.compare.view import CompareView, differences, differing, second_side
from viz.i18n.translate import _
from viz.labels import edits, tokens
from viz.session.state import Page, get_view_state, opened, remember, update
from viz.url import links
from viz.url.view_state import ViewState
from viz.widgets import sidebar
from viz.widgets.cards import card, say

MOST_MEASURED = 100
"""Most heads that are silenced one after the other to find the example: more would keep who opens the page waiting."""

_KIND, _REFUSED = "widget:against", "against:refused"


def control(page: Page, example: str) -> None:
    """Draws the choice of what is compared, then its fields. The link keeps both.

    Args:
        example: the head that side B has silenced as an example, "" after the first own choice, which replaces it.
    """
    kinds = {"model": _("another model"), "sentence": _("another sentence"), "settings": _("other settings")}
    if page.info.recorded:
        kinds = {"model": _("another recorded run")}
    with card("against", "content"):
        fields = differences(page.view.of(CompareView).against)
        kind = "sentence" if {"text", "target"} & fields.keys() else "settings"
        st.session_state[_KIND] = kind = "model" if page.info.recorded or "model" in fields else kind
        st.segmented_control(
            _("Compare with"),
            list(kinds),
            format_func=kinds.__getitem__,
            required=True,
            key=_KIND,
            on_change=partial(_begin, page.engine, page.info),
        )
        if kind == "settings":
            _settings(page, second_side(page.view), example)
        else:
            {"model": _model, "sentence": _sentence}[kind](page, second_side(page.view))
        if refused := st.session_state.pop(_REFUSED, ""):
            say(refused)


def pinned(page: Page) -> Page:
    """The page with the name of side B that names its commit, as that of side A does: the link keeps it."""
    second = second_side(page.view)
    if second.model in (page.view.model, *(info.name for info in page.engine.ask(Models()).models)):
        return page
    try:
        info = page.engine.ask(Describe(second.model, second.parsed_settings()))
    except HeadlightError:
        return page  # side B says why
    remember(info)
    before = page.view.of(CompareView).against
    against = differing(**differences(before) | {"model": info.name})
    if against != before:
        update(against=against)
    return replace(page, view=page.view.changed(against=against))


def feed(page: Page) -> None:
    """Draws the switch that lets both sides read the tokens of the first side."""
    key = "widget:feed"
    st.session_state[key] = page.view.of(CompareView).feed == "first"
    st.toggle(
        _("Both sides read the tokens that side A generated"),
        help=_("Otherwise each side continues from its own output, and nothing after the first different word can be compared."),
        key=key,
        on_change=lambda: update(feed="first" if st.session_state[key] else ""),
    )


def _begin(engine: Engine, info: ModelInfo) -> None:
    """Resets side B for another kind of difference. Callbacks are kept as long as the session, so they get no trace."""
    others, text = _others(engine, info), get_view_state()[0].text
    begun: dict[str, dict[str, Any]] = {
        "model": {"model": next(iter(others), info.name)},
        "sentence": {"text": next((example for example in info.examples if example != text), text or "")},
        "settings": {},
    }
    update(against=differing(**begun[st.session_state[_KIND]]))


def _others(engine: Engine, info: ModelInfo) -> dict[str, str]:
    """Titles by name of what the model can be compared with: others of the list, and others that this session opened."""
    known = (*engine.ask(Models()).models, *opened())
    comparable = {other.name: other.title for other in known if not other.problem and other.recorded == info.recorded}
    titles = list(comparable.values())
    others = {name: title for name, title in comparable.items() if name != info.name}
    return {name: title if titles.count(title) == 1 else f"{title} ({name})" for name, title in others.items()}


def _tied(second: ViewState, field: str) -> dict[str, Any]:
    """Keyword arguments that bind a widget to one field of the second side."""
    key = f"second:{field}"
    st.session_state[key] = getattr(second, field)

    return {"key": key, "on_change": lambda: _differ(field, st.session_state[key])}


def _differ(field: str, value: object) -> None:
    """Sets a field of the second side, unless a link could not hold it."""
    before = differences(get_view_state()[0].of(CompareView).against)
    asked, problems = links.read({"against": differing(**before | {field: value})})
    if problems:
        st.session_state[_REFUSED] = _("Side B does not accept this: {problem}", problem=problems[0])
    else:
        update(against=asked.of(CompareView).against)


def _model(page: Page, second: ViewState) -> None:
    titles = _others(page.engine, page.info)
    if not titles and page.info.recorded:
        st.caption(_("There is no other recorded run yet. Open a second trace on the Checkpoint page, then come back."))
    elif not titles:
        st.caption(_("There is no other model yet. Put a second checkpoint folder into checkpoints/ and reload."))
    names = list(dict.fromkeys([*titles, second.model]))
    st.selectbox(_("Model of side B"), names, format_func=lambda n: titles.get(n, n), **_tied(second, "model"))


def _sentence(page: Page, second: ViewState) -> None:
    language = page.info.languages.get("source", page.info.title)
    st.text_input(
        _("Sentence of side B ({language})", language=language),
        **_tied(second, "text"),
    )
    if page.info.translates:
        language = page.info.languages.get("target", page.info.title)
        st.text_input(
            _("Forced target of side B ({language})", language=language),
            **_tied(second, "target"),
        )


def _settings(page: Page, second: ViewState, example: str) -> None:
    """Draws decoding, silenced heads, and the settings of a model whose file leaves questions open: folded, above what differs."""
    with st.expander(_("Settings of side B"), icon=":material/tune:"):
        decoding, heads = st.columns(2, gap="large")
    with decoding:
        sidebar.decoding(page.info, second, lambda field: _tied(second, field))
        sidebar.precision(_tied(second, "precision"))
    with heads:
        _silence(page, second, example)
        if second.settings:
            st.text_input(
                _("Settings the file does not contain (NAME=VALUE, separated by spaces)"),
                **_tied(second, "settings"),
            )


def _silence(page: Page, second: ViewState, example: str) -> None:
    """Draws the choice of heads that are silenced on the second side."""
    every_head = [f"{site}:{head}" for site, attention in page.trace.attention.items() for head in range(attention.heads)]
    key = "second:silence"
    st.session_state[key] = [head for head in second.silence.split() if head in every_head]

    st.multiselect(
        _("Heads silenced on side B"),
        every_head,
        format_func=edits.heads,
        placeholder=edits.heads(example) or _("none"),
        key=key,
        on_change=lambda: _differ("silence", " ".join(st.session_state[key])),
    )
    with st.container(horizontal=True):
        for name, (label, heads) in _gestures(page, every_head).items():
            together = " ".join(dict.fromkeys([*second.silence.split(), *heads]))
            if together != second.silence:
                st.button(label, key=f"silence-{name}", on_click=_differ, args=("silence", together))


def example(page: Page) -> tuple[str, str]:
    """The head that side B has silenced before anything is chosen, as in `ViewState.silence`, and the sentence that says so.

    It is the one without which the output is least likely, of those whose silencing can change a map: none comes after the last
    site. Both are empty where no head can be silenced.
    """
    if page.info.recorded or page.info.spec.get("recorded"):
        return "", ""
    if head := _most_needed(page):
        words = _(
            "An example: side B runs without the head that this output needs most (of those before the last attention layer). "
            "Choose above what should be different."
        )
        return f"{head.site}:{head.head}", words
    words = _("An example: side B runs without one head. Choose above what should be different.")
    return f"{page.attention.site}:{page.head}", words


def _most_needed(page: Page) -> Head | None:
    """The head before the last site whose silencing lowers the log-probability of the output most; None where that is not known."""
    if sum(attention.heads for attention in page.trace.attention.values()) > MOST_MEASURED:
        return None
    try:
        effects = page.engine.ask(Heads(page.view.request(), ("without",)))
    except HeadlightError:
        return None
    assert effects.without is not None
    cost = dict(zip(effects.heads, np.nansum(effects.without, axis=1), strict=True))
    return min((head for head in effects.heads if head.site != effects.sites[-1]), key=cost.__getitem__, default=None)


def _gestures(page: Page, all_heads: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    """Heads that one click silences in addition: the label and the heads, by name."""
    site, head = page.attention.site, page.head
    of_site = [f"{site}:{other}" for other in range(page.attention.heads)]
    sites = [other for other in page.trace.attention if (other.stack, other.kind) == (site.stack, site.kind)]
    kind = [name for name in all_heads if Site.parse(name.rpartition(":")[0]) in sites]
    others = [name for name in of_site if name != of_site[head]]
    fields = {"kind": tokens.kind(site.stack, site.kind), "count": len(kind)}
    return {
        "selected": (_("Silence: {head}", head=tokens.site(site, head)), [of_site[head]]),
        "others": (_("Silence all other heads of this layer ({count})", count=len(others)), others),
        "layer": (_("Silence the whole layer: {site} (heads: {count})", site=tokens.site(site), count=len(of_site)), of_site),
        "kind": (_("Silence this kind of attention: {kind} (heads: {count})", **fields), kind),
    }
