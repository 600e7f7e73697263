"""Labels of tokens, rows and axes, in one place so that a token has the same label in every picture.

Token text is data and only ever shown as plain text: control characters become visible, blanks get a sign, right-to-left runs are
isolated so that they cannot reorder the text around them.
"""

import math
import re
import string
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, wraps
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

from model.requests.edits import Silence
from model.requests.request import RunRequest
from model.sharing.caches import ComputedOnce, LruCache, once_for_each
from model.trace.steps import Step
from model.trace.types import Attention, Site, Tokens, Trace
from viz.i18n import translate
from viz.i18n.translate import _

MaskForm: TypeAlias = Literal["boolean", "additive"]

CACHE_BYTES = 1 << 20
"""Byte limit of each function's cache of texts and results: a few thousand tokens."""

_ENTRY = 300  # bytes of a cache entry in addition to its texts

_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"


def remembered(convert: Callable[[str], str]) -> Callable[[str], str]:
    """Adds an LRU cache bounded in bytes to `convert`: a token may be a whole line of text.

    What is shown of a text is hardly ever smaller than the text, so twice its bytes count for both.
    """
    cache: ComputedOnce[str, str] = ComputedOnce(LruCache(CACHE_BYTES, lambda shown: 2 * sys.getsizeof(shown) + _ENTRY))

    @wraps(convert)
    def remembering(text: str) -> str:
        return cache.get(text, lambda: convert(text))

    return remembering


@remembered
def plain(text: str) -> str:
    """`text` with invisible characters made visible: line breaks as ↵, other controls as pictures, blanks as ␣, formatting
    characters as U+XXXX, and so what joins characters where there is nothing to join.

    A text that begins with a combining mark gets ◌ as a base, or the mark would combine with the text before it.
    """
    piece = _PIECE if text.startswith(_PIECE) else ""
    if _ALL_JOINERS.fullmatch(text, len(piece)):
        return piece + "".join(f"U+{ord(c):04X}" for c in text[len(piece) :])
    carrier = "◌" if text and unicodedata.category(text[0]).startswith("M") else ""
    return carrier + "".join(_visible(c) for c in text)


_PIECE = "##"
"""Begins a piece that continues a word."""

_ALL_JOINERS = re.compile("[\u200c\u200d\ufe0e\ufe0f]+")
"""Joiners of letters and of emoji, and what chooses between emoji and sign: alone they would be an empty chip."""


def _visible(character: str) -> str:
    code = ord(character)
    if character == "\n":
        return "↵"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if character.isspace():
        return "␣"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") and code not in (0x200C, 0x200D):
        return f"U+{code:04X}"
    return character


@remembered
def markdown(text: str) -> str:
    """Escapes `text` for Streamlit's Markdown: no emphasis, formula, color, link, emoji name or HTML.

    Streamlit looks for addresses, arrows and names such as `:streamlit:` after escapes are undone, so these are broken up with an
    invisible joiner.
    """
    parts = ["".join(c if c == " " else _visible(c) for c in part) for part in _ISOLATED.split(_PERCENT.sub(" ", text))]
    visible = "".join(_ISOLATE + part + _END_ISOLATE if place % 2 else part for place, part in enumerate(parts))
    return _MARKUP.sub(r"\\\g<0>", _READ_AFTER_ESCAPES.sub("\u2060", visible))


_ISOLATED = re.compile(f"{_ISOLATE}([^{_ISOLATE}{_END_ISOLATE}]*){_END_ISOLATE}")
_PERCENT = re.compile("(?<=[0-9])\u00a0(?=%)")
"""The blank of a German number in percent, which is none of a token's."""
_READ_AFTER_ESCAPES = re.compile(r"(?=://|@)|(?<=www)(?=\.)|(?<=:)(?=[\w+-]+:)|(?<=[<-])(?=[->])|(?<=[<>~])(?==)", re.IGNORECASE)
_MARKUP = re.compile(f"[{re.escape(string.punctuation)}]")


@remembered
def word(text: str) -> str:
    """A token inside other text: `plain`, and isolated if it has right-to-left characters: it reorders nothing around it."""
    return isolated(plain(text))


def line(texts: Iterable[str]) -> str:
    """Several tokens as one line inside other text, a blank between each two."""
    return isolated(" ".join(map(plain, texts)))


@remembered
def isolated(text: str) -> str:
    """`text` with directional isolates around it if it has right-to-left characters; the sign of a piece stays on its left, where
    the piece before it stands.
    """
    if text.startswith(_PIECE):
        return _PIECE + isolated(text.removeprefix(_PIECE))
    right_to_left = any(unicodedata.bidirectional(c) in ("R", "AL", "RLE", "RLO", "RLI") for c in text)
    return _ISOLATE + text + _END_ISOLATE if right_to_left else text


LONGEST = 24
"""Most characters of a token in a label; tooltips and tables show the whole text."""


def token(tokens: Tokens, index: int, longest: int | None = LONGEST) -> str:
    """The label of one token, at most `longest` characters; unknown tokens are marked."""
    text = tokens.texts[index]
    if longest is None:
        text = word(text)
    else:
        text = plain(text[: longest + 1])  # one character more, to detect a longer text
        text = isolated(text if len(text) <= longest else text[: longest - 1] + "…")
    return f"{text} [unk]" if tokens.unknown[index] and not _WRITTEN_UNKNOWN.fullmatch(tokens.texts[index]) else text


_WRITTEN_UNKNOWN = re.compile(r"[\[<]unk[\]>]", re.IGNORECASE)
"""A token that says itself that it is unknown, as a model writes it."""

_STRIPS: WeakKeyDictionary[Tokens, dict[int | None, tuple[str, ...]]] = WeakKeyDictionary()
"""Labels of strips by their longest label: each drawing of a run asks for them several times."""


def strip(tokens: Tokens, longest: int | None = LONGEST) -> list[str]:
    """The labels of all tokens of a strip. Short ones of tokens that are one emoji together show it and the number of the part."""
    known = _STRIPS.setdefault(tokens, {})
    if longest not in known:
        names = [token(tokens, i, longest) for i in range(len(tokens))]
        for first, (count, text) in joined(tokens.texts).items() if longest is not None else ():
            for part in range(count):
                mark = " [unk]" if tokens.unknown[first + part] else ""
                names[first + part] = f"{text.strip()} {part + 1}/{count}{mark}"
        known[longest] = tuple(names)
    return list(known[longest])


def keys(trace: Trace, attention: Attention, longest: int | None = LONGEST) -> list[str]:
    """The labels of a site's keys."""
    return strip(trace.tokens[attention.key_tokens], longest)[: attention.weights.shape[2]]


def queries(trace: Trace, attention: Attention, longest: int | None = LONGEST) -> list[str]:
    """The labels of a site's queries.

    A decoder's row reads one token and generates the next one: its label names both, "young → dogs". Of a recorded program it
    is not known what a row generates.
    """
    labels = strip(trace.tokens[attention.query_tokens], longest)
    count = attention.weights.shape[1]
    if attention.site.stack == "encoder" or trace.of_program:
        return labels[:count]
    return [f"{read} → {labels[i + 1]}" if i + 1 < len(labels) else read for i, read in enumerate(labels[:count])]


def compared(
    first: tuple[Trace, Attention], second: tuple[Trace, Attention], rows: Iterable[int], count: int, longest: int | None = LONGEST
) -> tuple[list[str], list[str]]:
    """The labels of queries and keys that are compared in two runs; if their texts differ, both: "hund / kind".

    Args:
        first, second: each run and its site.
        rows: indices of the queries.
        count: number of keys, from the first on.
        longest: most characters of a token.
    """
    own, other = queries(*first, longest), queries(*second, longest)
    across = zip(keys(*first, longest)[:count], keys(*second, longest)[:count], strict=True)
    return [_either(own[row], other[row]) for row in rows], [_either(*pair) for pair in across]


def _either(one: str, other: str) -> str:
    return one if one == other else f"{one} / {other}"


def model(trace: Trace) -> str:
    """Title of the model that ran, or its name where it has none."""
    return str(trace.model.get("title") or trace.model.get("name") or "")


def listens(trace: Trace) -> bool:
    """Whether a run has read frames of a sound: its source tokens are moments, too many to be listed."""
    encoder = (trace.model.get("spec") or {}).get("encoder")
    return bool(encoder and encoder.get("sound"))


def written_strip(trace: Trace) -> str:
    """The strip that decoding generates: a language model's only one, else the target."""
    return "target" if "target" in trace.tokens else "source"


def stream(trace: Trace, site: Site, role: str) -> str:
    """The tokens on an axis: "decoder (English)". `role` is `query` or `key`."""
    attention = trace.at(site)
    name = attention.query_tokens if role == "query" else attention.key_tokens
    if site.stack == "program":
        return translate.language_of(trace, name)
    from_decoder = site.stack == "decoder" and not (role == "key" and site.kind in ("cross", "memory"))
    return stream_of(from_decoder, translate.language_of(trace, name))


def stream_of(from_decoder: bool, language: str) -> str:
    """The tokens of a stack: "decoder (English)"."""
    return _("decoder ({language})", language=language) if from_decoder else _("encoder ({language})", language=language)


def query_axis(trace: Trace, site: Site) -> str:
    """The title of the query axis: "query: decoder (English)"."""
    return _("query: {stream}", stream=stream(trace, site, "query"))


def key_axis(trace: Trace, site: Site) -> str:
    """The title of the key axis: "key: encoder (German)"."""
    return _("key: {stream}", stream=stream(trace, site, "key"))


def stack(name: str) -> str:
    """The name of a stack."""
    return {"encoder": _("Encoder"), "program": _("Program")}.get(name, _("Decoder"))


def kind(stack: str, kind_: str) -> str:
    """The name of a group of sites: "Cross-attention"."""
    return {
        ("encoder", "self"): _("Encoder self-attention"),
        ("decoder", "self"): _("Decoder self-attention"),
        ("decoder", "cross"): _("Cross-attention"),
        ("program", "self"): _("Self-attention"),
        ("program", "cross"): _("Cross-attention"),
        (stack, "unknown"): _("Attention"),
    }.get((stack, kind_), _("Memory attention"))


def site(site: Site, head: int | None = None) -> str:
    """The name of a site, counted from 1: "Cross-attention, layer 3, head 5".

    Args:
        site: the site.
        head: its head, counted from 0; None: the whole site.
    """
    return _site(translate.current(), site, head)


@lru_cache(4096)
def _site(_language: str, site: Site, head: int | None) -> str:
    gaps = {"kind": kind(site.stack, site.kind), "layer": site.layer + 1, "pass_": site.pass_ + 1}
    if head is None:
        return _("{kind}, layer {layer}", **gaps) if site.pass_ == 0 else _("{kind}, pass {pass_}, layer {layer}", **gaps)
    if site.pass_ == 0:
        return _("{kind}, layer {layer}, head {head}", head=head + 1, **gaps)
    return _("{kind}, pass {pass_}, layer {layer}, head {head}", head=head + 1, **gaps)


def heads_of_a_key(trace: Trace, site: Site) -> int:
    """How many heads of a site share a head of keys and values, each group side by side (grouped queries); 1: each has its own."""
    spec = trace.model.get("spec") or {}
    own = (spec.get(site.stack) or {}).get("attention") or {}
    heads, keys = own.get("heads"), own.get("key_heads")
    return heads // keys if heads and keys and trace.at(site).heads == heads else 1


@once_for_each  # each drawing of a run asks for it for every head
def silenced(trace: Trace) -> frozenset[tuple[str, int]]:
    """The heads that were silenced in a run: text form of the Site, and head counted from 0."""
    silences = [edit for edit in RunRequest.edits_in(trace.request) if isinstance(edit, Silence)]
    places = ((str(site), head) for site, own in trace.attention.items() for head in range(own.heads) if silences)
    return frozenset(place for place in places if any(edit.covers(*place) for edit in silences))


def head_name(trace: Trace, at: Site, head: int) -> str:
    """The name of a head, with its module if nothing is known of its layer. It says so if the head was silenced in this run."""
    return head_names(trace, at, (head,))[0]


def head_names(trace: Trace, at: Site, heads: Iterable[int]) -> list[str]:
    """The names of several heads of a site, as `head_name`."""
    module = trace.module(at) if at.stack == "program" else ""  # elsewhere stack and layer say where it is
    of, own = f" · {module}" if module else "", str(at)
    quiet = {head for place, head in silenced(trace) if place == own}
    names = [(head, site(at, head) + of) for head in heads]
    return [_("{head} (silenced)", head=name) if head in quiet else name for head, name in names]


def by_hand(trace: Trace) -> tuple[Step, ...]:
    """The steps whose tokens the request chose, not the model."""
    return trace.steps[: len(trace.request.get("begin", ()))]


def mask_signs(form: MaskForm) -> tuple[tuple[str, str], tuple[str, str]]:
    """The sign in a masked cell of a mask and in an allowed one, each with what a legend says of it."""
    no, yes = ("✗", "✓") if form == "boolean" else ("−∞", "0")
    return (no, _("{sign}  masked", sign=no)), (yes, _("{sign}  allowed", sign=yes))


def number(value: float, form: str) -> str:
    """A number for the screen, with a minus sign instead of a hyphen.

    Args:
        value: the number.
        form: its format specification, such as ".3f".
    """
    return translate.number(value, form)


def power_of_ten(value: float) -> str:
    """A small number in scientific notation: 3·10⁻⁷."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    digits, exponent = translate.localized(f"{value:.0e}").split("e")
    return f"{digits}·10{str(int(exponent)).translate(_RAISED)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


MOST_PARTS = 16
"""Most tokens of one character. The longest joined emoji in use have 10 characters, each at most 4 bytes."""

_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_JOINER, _SKIN = "\u200d", range(0x1F3FB, 0x1F400)
_CHOOSERS = ("\ufe0e", "\ufe0f")  # whether the sign before is drawn as text or as an emoji


def joined(texts: Sequence[str]) -> dict[int, tuple[int, str]]:
    """The runs of at least two tokens that are one character: by first token, how many there are, and the character.

    Such a character is an emoji in several bytes, which byte-level vocabularies show as `\\xf0\\x9f`, or several emoji
    joined to one.

    Args:
        texts: the tokens' texts, bytes that are no character by themselves as `\\xNN`.
    """
    units = list(_characters(texts))
    merged: list[tuple[int, int, str]] = []
    for first, count, text in units:
        if merged and _joins(merged[-1][2], text.removeprefix(_PIECE)):
            begin, before, so_far = merged.pop()
            merged.append((begin, before + count, so_far + text.removeprefix(_PIECE)))
        else:
            merged.append((first, count, text))
    return {first: (count, text) for first, count, text in merged if count > 1}


def _characters(texts: Sequence[str]) -> list[tuple[int, int, str]]:
    """First token, number of tokens and text of each smallest run whose bytes are whole characters."""
    found, at = list[tuple[int, int, str]](), 0
    while at < len(texts):
        count, text = 1, texts[at]
        if _ESCAPED.search(text):
            held = b""
            for longer in range(1, min(MOST_PARTS, len(texts) - at) + 1):
                held += _bytes(texts[at + longer - 1].removeprefix(_PIECE) if longer > 1 else text)
                try:
                    count, text = longer, held.decode("utf-8")
                    break
                except UnicodeDecodeError:
                    continue
        found.append((at, count, text))
        at += count
    return found


def _bytes(text: str) -> bytes:
    parts = _ESCAPED.split(text)  # text, two digits, text, two digits, text
    return b"".join(bytes.fromhex(part) if place % 2 else part.encode("utf-8", "surrogatepass") for place, part in enumerate(parts))


def _joins(before: str, after: str) -> bool:
    """Whether two texts are drawn as one emoji."""
    if (
        not before
        or not after
        or unicodedata.category(before.rstrip("".join((_JOINER, *_CHOOSERS)))[-1:] or " ") not in ("So", "Sk")
    ):
        return False
    return before.endswith(_JOINER) or after.startswith((_JOINER, *_CHOOSERS)) or ord(after[0]) in _SKIN
