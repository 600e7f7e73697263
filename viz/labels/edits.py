"""Edits in words: what each one changes, for chips, banners and messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from model.requests.edits import (
    Allow,
    AtSites,
    Edit,
    Embed,
    Forbid,
    NoPositions,
    Patch,
    SetRow,
    Sharpen,
    ShiftPositions,
    Silence,
    SinusoidalPositions,
    SkipLayer,
    SkipSublayer,
    SwapLayers,
    SwapPositions,
    Token,
)
from model.requests.request import RunRequest
from model.trace.types import Site, Tokens, Trace
from viz.i18n.translate import _, _n, join_clauses, join_list
from viz.labels import tokens
from viz.labels import tokens as labels

MOST_NAMED = 4
"""Most tokens or heads that are named one by one; of more, the number is given."""

Strips = Mapping[str, Tokens]
"""The tokens of a run by strip, so that positions can be called by their words."""


def words(edit: Edit, strips: Strips | None = None) -> str:
    """An edit in one phrase.

    Args:
        strips: the tokens at the positions; None: positions are called by number, counted from 1.
    """
    known = strips or {}
    match edit:
        case Forbid() | Allow():
            return _edges(edit, known)
        case SetRow():
            return _row(edit, known)
        case Silence():
            return _silence(edit)
        case Sharpen():
            return _("{where}: scores × {factor:g}", where=_where(edit), factor=edit.factor)
        case Patch():
            return _patch(edit, known)
        case Embed():
            fields = {"at": _tokens([edit.at], known.get(_strip(edit.stack, known))), "word": edit.word}
            return _("{stack}: {at} with the embedding of “{word}”", stack=labels.stack(edit.stack), **fields)
    return _positions_or_layers(edit, known)


def _edges(edit: Forbid | Allow, strips: Strips) -> str:
    fields = {
        "where": _where(edit),
        "queries": _side(edit.query, edit, strips, "query"),
        "keys": _side(edit.key, edit, strips, "key"),
    }
    allows, anybody = isinstance(edit, Allow), not edit.query
    if allows:
        return (
            _("{where}: allowed: all tokens → {keys}", **fields) if anybody else _("{where}: allowed: {queries} → {keys}", **fields)
        )
    if anybody:
        return _("{where}: hidden from all tokens: {keys}", **fields)
    return _("{where}: hidden from {queries}: {keys}", **fields)


def _row(edit: SetRow, strips: Strips) -> str:
    fields = {"where": _where(edit), "queries": _side(edit.query, edit, strips, "query")}
    if edit.to == "one-hot":
        assert edit.key is not None
        return _("{where}: all weight: {queries} → {key}", key=_side((edit.key,), edit, strips, "key"), **fields)
    if edit.to == "numbers":
        return _("{where}: typed weights: {queries}", **fields)
    if edit.to == "head":
        return _("{where}: weights of head {other}: {queries}", other=(edit.other or 0) + 1, **fields)
    return _("{where}: uniform weights: {queries}", **fields)


def _silence(edit: Silence) -> str:
    where = _where(edit)
    if edit.by == "sentence":
        return _("{where}: replaced by its mean over this sentence", where=where)
    if edit.by == "examples":
        return _("{where}: replaced by its mean over the examples", where=where)
    if edit.by == "survey":
        return _("{where}: replaced by its mean over the texts of the stored survey", where=where)
    return _("{where}: silenced", where=where)


def _patch(edit: Patch, strips: Strips) -> str:
    values = {"weights": _("weights"), "context": _("context"), "output": _("output"), "hidden": _("layer output")}
    fields = {"value": values[edit.value], "where": _where(edit)}
    fields["at"] = _side(edit.at, edit, strips, "query")
    if edit.source is not None:
        return _("{where}: {value} taken from “{sentence}”: {at}", sentence=edit.source, **fields)
    return _("{where}: {value} taken from another run: {at}", **fields)


def _positions_or_layers(edit: Edit, strips: Strips) -> str:
    stack = labels.stack(edit.stack) if hasattr(edit, "stack") else ""
    match edit:
        case NoPositions():
            return _("{stack}: no positions", stack=stack)
        case SwapPositions():
            strip = strips.get(_strip(edit.stack, strips))
            fields = {"a": _tokens([edit.a], strip), "b": _tokens([edit.b], strip)}
            return _("{stack}: positions swapped: {a} ↔ {b}", stack=stack, **fields)
        case ShiftPositions():
            return _("{stack}: positions shifted by {by}", stack=stack, by=edit.by)
        case SinusoidalPositions():
            return _("{stack}: sinusoids as positions", stack=stack)
        case SkipLayer():
            return _("{stack}: layer {layer} skipped", stack=stack, layer=edit.layer + 1)
        case SkipSublayer():
            return _("{place} skipped", place=_sublayer_name(edit.at))
        case SwapLayers():
            return _("{stack}: layers {a} and {b} swapped", stack=stack, a=edit.a + 1, b=edit.b + 1)
    return str(edit)


def _where(edit: AtSites) -> str:
    """The heads of an edit: "Cross-attention, layer 3, head 5"."""
    if edit.site and len(edit.head) == 1:
        return labels.site(Site.parse(edit.site), edit.head[0])
    if edit.site:
        name = labels.site(Site.parse(edit.site))
    elif edit.kind:
        name = labels.kind("encoder" if edit.stack == "encoder" else "decoder", edit.kind)
        name = _("Self-attention") if edit.kind == "self" and not edit.stack else name
    else:
        name = labels.stack(edit.stack) if edit.stack else _("Everywhere")
    if not edit.head:
        return name
    if len(edit.head) > MOST_NAMED:
        return _("{place}, heads: {count}", place=name, count=len(edit.head))
    return _("{place}, heads {heads}", place=name, heads=join_list(str(head + 1) for head in edit.head))


def _sublayer_name(text: str) -> str:
    """The name of a sublayer."""
    stack, _pass, layer, kind = text.split(".")
    if kind == "feed_forward":
        return _("{stack}, layer {layer}: feed-forward", stack=labels.stack(stack), layer=int(layer) + 1)
    return labels.site(Site.parse(text))


def _side(tokens: Sequence[Token], edit: AtSites, strips: Strips, role: str) -> str:
    """The tokens on one side of an edit, or all of them."""
    return _tokens(tokens, strips.get(_strip_of(edit, strips, role))) if tokens else _("all tokens")


def _strip_of(edit: AtSites, strips: Strips, role: str) -> str:
    """The strip that positions on one side of an edit count; empty where it depends on the site."""
    stack, kind = (edit.site.split(".")[0], edit.site.split(".")[-1]) if edit.site else (edit.stack, edit.kind)
    if "target" not in strips:
        return "source"
    if kind == "cross":
        return "target" if role == "query" else "source"
    return {"encoder": "source", "decoder": "target"}.get(stack, "")


def _strip(stack: str, strips: Strips) -> str:
    return "source" if stack == "encoder" or "target" not in strips else "target"


def _tokens(tokens: Sequence[Token], strip: Tokens | None) -> str:
    """Tokens by their words: “alter”, or by number where the words are not known."""
    if len(tokens) > MOST_NAMED:
        return _n("{count} token", "{count} tokens", len(tokens), count=len(tokens))
    return join_list(_token(token, strip) for token in tokens)


def _token(token: Token, strip: Tokens | None) -> str:
    if isinstance(token, str):  # every place that has it
        count = 0 if strip is None else strip.texts.count(token)
        if count > 1:
            return _("every “{token}” ({count})", token=labels.word(token), count=count)
        return _("“{token}”", token=labels.word(token))
    if strip is None or not 0 <= token < len(strip):
        return _("token {number}", number=token + 1)
    word = strip.texts[token]
    if strip.texts.count(word) == 1:
        return _("“{token}”", token=labels.word(word))
    return _("“{token}” ({number})", token=labels.word(word), number=token + 1)


UNALTERED: Mapping[str, Any] = {"silence": "", "edits": "", "off": ""}
"""The fields of `viz.url.view_state.ViewState` that alter a run, at their defaults: what the button of the banner sets."""

MOST_HEADS_NAMED = 3
"""Most heads that the banner names; of more it gives the number."""


def sentence(request: Mapping[str, Any]) -> str:
    """The sentence on what was altered in a run: "Experiment: 3 heads silenced"; empty where nothing was.

    Args:
        request: the run's RunRequest as JSON values: `Trace.request`.
    """
    edits = RunRequest.edits_in(request)
    heads = [
        (edit.site, head) for edit in edits if isinstance(edit, Silence) and edit.site and edit.by == "zeros" for head in edit.head
    ]
    if not edits:
        return ""
    if any(not isinstance(edit, Silence) or edit.by != "zeros" or not (edit.site and edit.head) for edit in edits):
        if len(edits) > MOST_HEADS_NAMED:
            return _n("Experiment: {count} edit", "Experiment: {count} edits", len(edits), count=len(edits))
        return _("Experiment: {edits}", edits=join_clauses(map(words, edits)))
    if len(heads) > MOST_HEADS_NAMED:
        return _("Experiment: heads silenced: {count}", count=len(heads))
    return _("Experiment: silenced: {heads}", heads=join_clauses(tokens.site(Site.parse(site), head) for site, head in heads))


def continued(trace: Trace) -> str:
    """Which token a decode was continued from: "Continued from “dog”"; empty where the model chose all tokens."""
    chosen = tokens.by_hand(trace)
    return _("Continued from “{token}”", token=tokens.word(chosen[-1].chosen.text)) if chosen else ""


def heads(silence: str) -> str:
    """The names of the heads that `viz.url.view_state.ViewState.silence` lists."""
    pairs = (entry.rpartition(":") for entry in silence.split())
    return join_clauses(tokens.site(Site.parse(site), int(head)) for site, _colon, head in pairs)
