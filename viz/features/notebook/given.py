"""A trace out of what people hold in their hands: attention of any kind, and tokens of any kind."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from model.trace.checks import check
from model.trace.recorded import Recorded, RecordedSite
from model.trace.serialization import from_bytes
from model.trace.types import Array, Attention, Tokens, Trace
from viz.features.notebook.layers import Layer, check_rows, layers
from viz.features.notebook.regrouping import Groups, regrouped
from viz.features.notebook.tokens import Texts, joined_text, texts_of, word_numbers

_RUNS = count(1)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How attention is read; `headlight.show` says what each means.

    Attributes:
        strips: the tokens by strip, as they become known.
        named: the strips whose tokens somebody named; those of others are positions.
    """

    tokens: Any = None
    target_tokens: Any = None
    tokenizer: Any = None
    example: int | None = None
    axes: str = ""
    any_sums: bool = False
    words: bool | Sequence[int | None] = False
    special: bool = True
    sentences: str = ""
    sentence_b: int | None = None
    title: str = ""
    strips: dict[str, Texts] = field(default_factory=dict, init=False)
    named: set[str] = field(default_factory=set, init=False)


def trace_of(attention: Any, options: Options) -> Trace:
    """The trace of what was given, as `options` wants it.

    Raises:
        ValueError: something does not fit, or is not known; the sentence names the argument.
        WireError: it is a file that is no trace.
    """
    trace = _finished(attention)
    if trace is None:
        trace = _made(attention, options)
    else:
        options.strips.update({name: _texts(tokens) for name, tokens in trace.tokens.items()})
        options.named.update(options.strips)
    return _as_wanted(trace, options)


def _finished(attention: Any) -> Trace | None:
    """The trace, where a whole one was given: itself, a recording, its bytes or its file; None: it is something else."""
    if isinstance(attention, Trace):
        return attention
    if callable(getattr(attention, "to_bytes", None)) and hasattr(attention, "sites"):  # a Recording; headlight.py is one file
        return from_bytes(attention.to_bytes())
    if isinstance(attention, bytes):
        return _checked(attention)
    if isinstance(attention, str | os.PathLike):
        path = Path(attention)
        if not path.is_file():
            raise ValueError(f"There is no file {path}: attention takes the path of a trace, or arrays.")
        return _checked(path.read_bytes())
    return None


def _checked(data: bytes) -> Trace:
    """The trace in the bytes of a file of anybody."""
    trace = from_bytes(data)
    check(trace)
    return trace


def _texts(tokens: Tokens) -> Texts:
    return Texts(tokens.texts, frozenset(at for at, special in enumerate(tokens.special) if special))


def _made(attention: Any, options: Options) -> Trace:
    """The trace of layers that were found."""
    maps = layers(attention, options.example, options.axes)
    if not options.any_sums:
        check_rows(maps)
    names = {"source": options.tokens, "target": options.target_tokens}
    for name, given in names.items():
        if (texts := texts_of(given, options.tokenizer, options.example or 0, _argument(name))) is not None:
            options.strips[name] = texts
    _add_written(attention, maps, options)
    options.named.update(options.strips)
    sites = {layer.site: _attention(layer, options) for layer in maps}
    title = options.title or "Attention"
    facts = {"name": title, "title": title, "fingerprint": f"shown {next(_RUNS)}", "languages": {}, "spec": {}, "dtype": "float32"}
    recorded = {str(layer.site): RecordedSite(layer.module, "computed", "given") for layer in maps}
    return Trace(
        model=facts | {"device": "", "milliseconds": 0.0, "notes": []},
        request={},
        tokens=_with_source({name: _strip(name, texts) for name, texts in options.strips.items()}),
        attention=sites,
        recorded=Recorded(title, "", "0:1", options.example or 0, tuple(names), recorded),
    )


def _argument(strip: str) -> str:
    """The argument that names the tokens of a strip."""
    return {"source": "tokens", "target": "target_tokens"}.get(strip, strip)


def _add_written(attention: Any, maps: Sequence[Layer], options: Options) -> None:
    """The tokens that `generate` wrote, of its result's own `sequences`, where a tokenizer is given and no tokens are."""
    written = (any(layer.site.stack == "decoder" for layer in maps) and "target") or "source"
    sequences = getattr(attention, "sequences", None)
    if sequences is not None and options.tokenizer is not None and written not in options.strips:
        texts = texts_of(sequences, options.tokenizer, options.example or 0, "sequences")
        if texts is not None:
            options.strips[written] = texts


def _strip(name: str, texts: Texts) -> Tokens:
    special = tuple(at in texts.special for at in range(len(texts.texts)))
    return Tokens(name, (), texts.texts, special, (False,) * len(special))


def _attention(layer: Layer, options: Options) -> Attention:
    """One layer with the strips of its queries and keys, which are made where nobody named tokens."""
    _heads, queries, keys = layer.weights.shape
    rows, columns = _names(layer, options)
    newest = layer.newest and queries < keys
    if rows == columns and queries != keys and not newest:
        raise ValueError(
            f"Layer {layer.site.layer + 1} has {queries} queries and {keys} keys: give target_tokens= for the queries and tokens= "
            "for the keys. If it is a local window, whose keys are not positions, use headlight.record."
        )
    column_strip = _fitting(columns, keys, layer, options)
    row_strip = _newest(column_strip, queries, keys, options) if newest else _fitting(rows, queries, layer, options)
    return Attention(layer.site, row_strip, column_strip, layer.weights, _mask(layer))


def _names(layer: Layer, options: Options) -> tuple[str, str]:
    """The strips of queries and keys."""
    both = {"source", "target"} <= options.strips.keys()
    # Maps that are not square, of whose tokens nothing is known, are drawn with positions of their own on both sides.
    unnamed = not options.named and not layer.newest and layer.weights.shape[1] != layer.weights.shape[2]
    crosses = layer.site.kind == "cross" or (layer.site.kind == "unknown" and (both or unnamed))
    if crosses:
        return "target", "source"
    return ("target", "target") if layer.site.stack == "decoder" else ("source", "source")


def _fitting(name: str, length: int, layer: Layer, options: Options) -> str:
    """The strip of a name, or one of positions where no tokens were given.

    Raises:
        ValueError: the tokens that were given are not as many as the positions of the maps.
    """
    argument, number = _argument(name), layer.site.layer + 1
    if name in options.named:
        tokens = len(options.strips[name].texts)
        written = tokens == length + 1 and (layer.newest or name == "target")  # the last token was written and never read
        if tokens != length and not written:
            what = "keys" if name == "source" and layer.site.kind == "cross" else "positions"
            raise ValueError(f"{argument} has {tokens} tokens, and layer {number} has {length} {what}: give one for each.")
        return name
    positions = Texts(tuple(str(at + 1) for at in range(length)))
    strip = name if options.strips.setdefault(name, positions) == positions else f"positions-{length}"
    options.strips.setdefault(strip, positions)
    return strip


def _newest(strip: str, queries: int, keys: int, options: Options) -> str:
    """A strip of the last tokens of another: the queries of a step that reads a cache."""
    texts = options.strips[strip]
    name = f"{strip}, last {queries}"
    special = frozenset(at - keys + queries for at in texts.special if keys - queries <= at < keys)
    options.strips.setdefault(name, Texts(texts.texts[keys - queries : keys], special))
    return name


def _mask(layer: Layer) -> Array:
    """Which keys a query may attend to. A triangle in which every head has exactly 0 is that of a causal mask."""
    _heads, queries, keys = layer.weights.shape
    mask = np.ones((queries, keys), bool) if layer.mask is None else layer.mask
    # Of arrays nobody says which keys were hidden. Softmax gives exact zeros to a whole triangle only where a mask did.
    later = np.triu(np.ones((queries, keys), bool), 1 + keys - queries)
    if queries > 1 and layer.site.kind != "cross" and keys >= queries and not layer.weights[:, later].any():
        mask = mask & ~later
    return mask


def _as_wanted(trace: Trace, options: Options) -> Trace:
    """The trace without what was to be left out, and with words in place of pieces."""
    # Left out, joined and divided positions are one change of the finished trace, whatever it was made of.
    left_out = {name: _left_out(name, options) for name in trace.tokens}
    parts = _sentences(options)
    if not any(left_out.values()) and options.words is False and not parts:
        return trace
    used = {name for attention in trace.attention.values() for name in (attention.query_tokens, attention.key_tokens)}
    rows, keys = ({name: _groups(name, left_out[name], part, options) for name in used} for part in (parts or ("", "")))
    made = regrouped(trace, rows, keys, to_one=any(left_out.values()))
    return replace(made, tokens=_with_source(made.tokens))


def _with_source(strips: Mapping[str, Tokens]) -> dict[str, Tokens]:
    """Strips with one called `source`, which every trace has."""
    return dict(strips) if "source" in strips else {"source": Tokens("source", (), (), (), ())} | dict(strips)


def _left_out(name: str, options: Options) -> frozenset[int]:
    texts = options.strips.get(name, Texts(()))
    return texts.padding | (frozenset() if options.special else texts.special)


def _sentences(options: Options) -> tuple[str, str] | None:
    """The sentences of queries and keys, A or B; None: both.

    Raises:
        ValueError: it is another text.
    """
    if not options.sentences:
        return None
    first, arrow, second = options.sentences.replace("→", ">").partition(">")
    if not arrow or {first.strip(), second.strip()} > {"A", "B"} or not {first.strip(), second.strip()} <= {"A", "B"}:
        raise ValueError(f"sentences takes 'A>B' (from A to B), 'A>A', 'B>A' or 'B>B', not {options.sentences!r}.")
    return first.strip(), second.strip()


def _groups(name: str, left_out: frozenset[int], sentence: str, options: Options) -> Groups:
    """What becomes of a strip: its positions but those that are left out, of one sentence or of both, as words or as they are."""
    texts = options.strips[name]
    kept = [at for at in range(len(texts.texts)) if at not in left_out and _is_in(at, sentence, texts, options)]
    groups = [[at] for at in kept]
    if options.words is not False:
        groups = _words(kept, _numbers(name, texts, options))
    pieces = [[texts.texts[at] for at in group] for group in groups]
    labels = tuple(texts[0] if options.words is False else joined_text(texts) for texts in pieces)
    special = tuple(all(at in texts.special for at in group) for group in groups)
    strip = f"{name}, sentence {sentence}" if sentence else name
    return Groups(strip, labels, special, tuple(map(tuple, groups)))


def _is_in(at: int, sentence: str, texts: Texts, options: Options) -> bool:
    """Whether a position is in a sentence.

    Raises:
        ValueError: nothing says where the second one begins.
    """
    if not sentence:
        return True
    if options.sentence_b is None and not texts.segments:
        raise ValueError("sentences= needs to know where sentence B begins: give sentence_b=, or tokens= with token_type_ids.")
    second = bool(texts.segments[at]) if options.sentence_b is None else at >= options.sentence_b
    return second == (sentence == "B")


def _numbers(name: str, texts: Texts, options: Options) -> Sequence[int | None]:
    """Of each token the number of its word."""
    if isinstance(options.words, bool):
        return list(range(len(texts.texts))) if name not in options.named else word_numbers(texts, _argument(name))
    if len(options.words) != len(texts.texts):
        raise ValueError(f"words has {len(options.words)} numbers, and {_argument(name)} has {len(texts.texts)} tokens.")
    return options.words


def _words(kept: Sequence[int], numbers: Sequence[int | None]) -> list[list[int]]:
    """Positions by word; a token without a word is one of its own."""
    groups = list[list[int]]()
    for at in kept:
        if groups and numbers[at] is not None and numbers[at] == numbers[groups[-1][-1]]:
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups
