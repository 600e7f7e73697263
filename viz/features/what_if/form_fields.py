"""Fields of the form that makes edits: where, which tokens, which layer. Each returns what was chosen."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from model.errors import BadSetting
from model.requests.edits import Token
from model.requests.inputs import POSITIONS
from model.requests.sent_text import whole_number
from model.trace.types import Site, Tokens
from viz.features.what_if.remembered import forget_what_is_gone
from viz.i18n.translate import _
from viz.labels import tokens as labels
from viz.session.state import Page


def choice(name: str, title: str, titles: Mapping[str, str]) -> str:
    """One of several names, shown by their titles."""
    forget_what_is_gone(f"form:{name}", titles)
    found: str = st.selectbox(title, list(titles), format_func=dict(titles).__getitem__, key=f"form:{name}")
    return found


def place(page: Page, with_heads: bool = True) -> dict[str, Any]:
    """Attention sites and heads: the fields `site`, `head`, `stack` and `kind` of an edit, those that are needed."""
    kinds = dict.fromkeys((site.stack, site.kind) for site in page.trace.attention)
    titles = {"": _("everywhere")} | {f"{stack} {kind}": labels.kind(stack, kind) for stack, kind in kinds}
    titles |= {str(site): labels.site(site) for site in page.trace.attention}
    chosen = choice("place", _("Where"), titles)
    found: dict[str, Any] = {"site": chosen} if "." in chosen else dict(zip(("stack", "kind"), chosen.split(), strict=False))
    if found.get("kind") == "cross":
        del found["stack"]
    if with_heads:
        count = heads(page, found)
        forget_what_is_gone("form:head", range(count))
        chosen_heads = st.multiselect(
            _("Heads"),
            range(count),
            format_func=lambda head: _("head {head}", head=head + 1),
            placeholder=_("all"),
            key="form:head",
        )
        found["head"] = tuple(sorted(head for head in chosen_heads if head < count))
    return found


def heads(page: Page, at: Mapping[str, Any]) -> int:
    """How many heads the sites of a place have, at most."""
    return max(attention.heads for site, attention in page.trace.attention.items() if _within(site, at))


def _within(site: Site, at: Mapping[str, Any]) -> bool:
    chosen = at.get("site", ""), at.get("stack", ""), at.get("kind", "")
    return all(not wanted or wanted == own for wanted, own in zip(chosen, (str(site), site.stack, site.kind), strict=True))


def tokens(page: Page, at: Mapping[str, Any], role: str) -> tuple[Token, ...]:
    """Tokens on one side of an edit; none: all."""
    titles = {"query": _("Queries"), "key": _("Keys"), "at": _("Tokens whose values are replaced")}
    there = _there(page, at, role)
    forget_what_is_gone(f"form:{role}", there)
    chosen = st.multiselect(titles[role], list(there), format_func=there.__getitem__, placeholder=_("all"), key=f"form:{role}")
    return tuple(one for one in chosen if one in there)


def token(page: Page, at: Mapping[str, Any], role: str) -> Token:
    """One token."""
    titles = {"key": _("Key"), "a": _("First token"), "b": _("Second token"), "at": _("Token")}
    there = _there(page, at, role)
    forget_what_is_gone(f"form:{role}:one", there)
    usual = min({"a": 1, "b": 2}.get(role, 1), len(there) - 1)
    return st.selectbox(titles[role], list(there), format_func=there.__getitem__, index=usual, key=f"form:{role}:one")


def _there(page: Page, at: Mapping[str, Any], role: str) -> dict[Token, str]:
    """Tokens that can be chosen, with their labels: by position in the one strip that a place has, else by word."""
    names = _strips(page, at, role)
    if len(names) == 1:
        strip: Tokens = page.trace.tokens[names[0]]
        return {position: f"{position + 1} {labels.word(text)}" for position, text in enumerate(strip.texts)}
    return {text: labels.word(text) for name in names for text in page.trace.tokens[name].texts}


def _strips(page: Page, at: Mapping[str, Any], role: str) -> list[str]:
    """The strips that hold the queries or keys of a place."""
    sites = [site for site in page.trace.attention if _within(site, at)]
    ends = [page.trace.attention[site] for site in sites]
    return list(dict.fromkeys(end.key_tokens if role == "key" else end.query_tokens for end in ends))


def stack(page: Page) -> str:
    """Encoder or decoder, those that the network has."""
    there = dict.fromkeys(site.stack for site in page.trace.attention)
    return choice("stack", _("Stack"), {name: labels.stack(name) for name in there})


def layer(page: Page, of: str, name: str, title: str) -> int:
    """One layer of a stack, counted from 0."""
    count = 1 + max(site.layer for site in page.trace.attention if site.stack == of)
    forget_what_is_gone(f"form:layer:{name}", range(count))
    found: int = st.selectbox(title, range(count), format_func=lambda one: str(one + 1), key=f"form:layer:{name}")
    return found


def sublayer(page: Page) -> str:
    """An attention site, or a feed-forward sublayer where the network exposes what it adds."""
    titles: dict[str, str] = {}
    for site in page.trace.attention:
        titles[str(site)] = labels.site(site)
        name = f"{site.stack}.{site.pass_}.{site.layer}.feed_forward"
        if "stages" in page.trace.missing and f"{name}/output" not in page.trace.stages:
            continue
        titles[name] = _("{stack}, layer {layer}: feed-forward", stack=labels.stack(site.stack), layer=site.layer + 1)
    return choice("sublayer", _("Sublayer"), titles)


def numbers() -> tuple[float, ...]:
    """Typed weights, one a key.

    Raises:
        BadSetting: one of them is no number.
    """
    typed = st.text_input(_("Weights, one per key from the first on, separated by spaces"), value="1", key="form:numbers")
    try:
        return tuple(float(one) for one in typed.replace(",", " ").split())
    except ValueError as error:
        raise BadSetting(name="numbers", found=typed[:40], allowed="numbers joined by blanks, such as 0.5 0.5 0") from error


def typed_token(text: str) -> Token:
    """A typed token: a position, counted from 1 as on screen, or a word."""
    position = whole_number(text, 1, POSITIONS)
    return text if position is None else position - 1
