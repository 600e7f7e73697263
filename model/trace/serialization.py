"""Trace <-> bytes: a safetensors file with one JSON entry. The download, the HTTP answer and the offline replay are the same bytes.

Masks (1 = may be attended to) and images are stored as uint8, ids as int64, everything else as float32. Nothing is pickled, so
reading a file executes nothing.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load, save

from model.errors import BadSetting, Phrase, UnknownSite, WireError, Words, phrase
from model.requests.validation import read
from model.trace.beam_tree import Node
from model.trace.lazy_attention import LazyAttention
from model.trace.recorded import Recorded
from model.trace.steps import Step
from model.trace.types import AXES, SCHEMA, TENSORS_OF_ATTENTION, UNWRITTEN, Array, Attention, Site, Tokens, Trace

ENTRY = "headlight"
"""Key of the metadata entry that holds everything that is not an array."""

SUMS = "sums"
"""Key of the metadata entry that holds sums, where a run was saved with them."""

PHRASES = "phrases"
"""Key, among the facts in a file, of the phrases that its notes and reasons are; these stand there in English, for others."""

DTYPES = {"F32": np.float32, "U8": np.uint8, "I64": np.int64}
"""Number types of a trace, by their names in a safetensors file."""


@dataclass(frozen=True)
class _Strip:
    """Tokens, without their name and ids."""

    texts: tuple[str, ...]
    special: tuple[bool, ...]
    unknown: tuple[bool, ...]


@dataclass(frozen=True)
class _Made:
    """How to compute a site's weights from its queries and keys where the file does not hold them: fields of LazyAttention."""

    scale: float
    empty_rows: Literal["uniform", "zeros"]


@dataclass(frozen=True)
class _Header:
    """Everything that is not an array.

    `sites` holds the strips of each site's queries and keys; `unwritten` lists the sites whose weights are not in the file;
    `recorded` says that a program was recorded.
    """

    schema: int
    model: Mapping[str, Any]
    request: Mapping[str, Any]
    tokens: Mapping[str, _Strip]
    sites: Mapping[str, tuple[str, str]]
    steps: tuple[Step, ...]
    missing: Mapping[str, Words]
    unwritten: Mapping[str, _Made] = field(default_factory=dict)
    tree: tuple[Node, ...] = ()
    recorded: Recorded | None = None


@dataclass(frozen=True)
class _Sums:
    """Sums that a run was saved with, by name."""

    sums: Mapping[str, Mapping[str, Any]]


def written_out(trace: Trace) -> Trace:
    """A trace with lazy weights computed and stored as arrays, for readers that do not compute them from q and k."""
    attention = {site: replace(lazy, weights=np.asarray(lazy.weights)) for site, lazy in trace.attention.items()}
    return replace(trace, attention=attention, missing={n: why for n, why in trace.missing.items() if n != UNWRITTEN})


def to_bytes(trace: Trace) -> bytes:
    """The bytes of the trace's file, `*.trace.safetensors`."""
    header = _Header(
        schema=trace.schema,
        model=_plain(trace),
        request=dict(trace.request),
        tokens={name: _Strip(t.texts, t.special, t.unknown) for name, t in trace.tokens.items()},
        sites={str(site): (a.query_tokens, a.key_tokens) for site, a in trace.attention.items()},
        steps=trace.steps,
        missing={name: str(why) for name, why in trace.missing.items()},
        unwritten={str(site): _Made(w.scale, w.empty_rows) for site, w in _unwritten(trace)},
        tree=trace.tree,
        recorded=trace.recorded,
    )
    # A trace of our own network has no entry `recorded`: files stay readable for programs that do not know it.
    entries = {name: value for name, value in asdict(header).items() if name != "recorded" or value}
    sums = {SUMS: json.dumps(dict(trace.sums), ensure_ascii=False)} if trace.sums else {}
    return save(_arrays(trace), metadata={ENTRY: json.dumps(entries)} | sums)


def _plain(trace: Trace) -> dict[str, Any]:
    """The facts of a trace: their words in English, which every program can show, and beside them their phrases."""
    device, notes = trace.model.get("device"), trace.model.get("notes", ())
    facts = dict(trace.model) | ({"notes": list(map(str, notes))} if notes else {})
    facts |= {"device": str(device)} if device else {}
    phrases = dict.fromkeys(words for words in (device, *notes, *trace.missing.values()) if isinstance(words, Phrase))
    return facts | ({PHRASES: [words.to_json() for words in phrases]} if phrases else {})


def _with_phrases(header: dict[str, Any]) -> dict[str, Any]:
    """A header with phrases instead of their English sentences.

    Raises:
        ValueError: there is something else among the phrases.
    """
    if not isinstance(header["model"], dict) or PHRASES not in header["model"]:
        return header
    model = dict(header["model"])
    # By their English sentence, which is what the notes and reasons of the file hold.
    known: dict[str, Words] = {str(known_phrase): known_phrase for known_phrase in map(Phrase.from_json, model.pop(PHRASES))}
    model |= {"notes": [known.get(note, note) for note in model["notes"]]} if "notes" in model else {}
    model |= {"device": known.get(model["device"], model["device"])} if "device" in model else {}
    return header | {"model": model, "missing": {name: known.get(why, why) for name, why in header["missing"].items()}}


def from_bytes(data: bytes) -> Trace:
    """Reads a trace from the bytes of its file.

    Raises:
        WireError: the bytes are not a safetensors file, not a trace, damaged, of another schema, or inconsistent.
    """
    try:
        stored = {name: np.frombuffer(t["data"], DTYPES[t["dtype"]]).reshape(t["shape"]) for name, t in deserialize(data)}
        # The library gives the tensors only; the header is JSON behind eight bytes that hold its length.
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error
    return trace_of(header, stored)


def tensors_and_metadata(data: bytes) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors of a safetensors file in memory, and its metadata, which the library reads from files on a disk alone.

    Raises:
        SafetensorError, KeyError, TypeError, ValueError: the bytes are no such file, or have no metadata.
    """
    tensors = load(data)
    metadata: dict[str, str] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    return tensors, metadata


def trace_of(file_header: Any, stored: dict[str, Array]) -> Trace:
    """The trace in the parts of a safetensors file.

    Args:
        file_header: the JSON at the beginning of the file.
        stored: its tensors.

    Raises:
        WireError: they are no trace, or one of another schema, or inconsistent.
    """
    try:
        header = json.loads(file_header["__metadata__"][ENTRY])
        schema, sums = header["schema"], json.loads(file_header["__metadata__"].get(SUMS, "{}"))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error
    if type(schema) is not int or schema != SCHEMA:  # True == 1 == 1.0 in Python
        raise WireError(
            detail=phrase("its schema is {schema}, this version reads {schema_2}", schema=repr(schema), schema_2=SCHEMA)
        )
    try:
        return _trace(read(_Header, _with_phrases(header), "header"), stored, read(_Sums, {SUMS: sums}, SUMS).sums)
    except (BadSetting, UnknownSite, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise WireError(detail=phrase("its parts do not fit together: {error}", error=error)) from error


def _unwritten(trace: Trace) -> Iterator[tuple[Site, LazyAttention]]:
    for site, attention in trace.attention.items():
        weights: object = attention.weights
        if isinstance(weights, LazyAttention):
            yield site, weights


def _arrays(trace: Trace) -> dict[str, Array]:
    arrays: dict[str, Array] = {f"ids/{name}": np.asarray(t.ids, np.int64) for name, t in trace.tokens.items()}
    for site, attention in trace.attention.items():
        for name in TENSORS_OF_ATTENTION:
            if isinstance(array := getattr(attention, name), np.ndarray):
                arrays[f"attention/{site}/{name}"] = array.astype(np.uint8 if name.startswith("mask") else np.float32)
    for group in ("positions", "embedded", "hidden", "stages"):
        arrays |= {f"{group}/{name}": a.astype(np.float32) for name, a in getattr(trace, group).items()}
    if trace.logits is not None:
        arrays["logits"] = trace.logits.astype(np.float32)
    if trace.image is not None:
        arrays["image"] = trace.image.astype(np.uint8)
    for name in ("sound", "spectrogram"):
        if (array := getattr(trace, name)) is not None:
            arrays[name] = array.astype(np.float32)
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _trace(header: _Header, stored: dict[str, Array], sums: Mapping[str, Mapping[str, Any]]) -> Trace:
    """Builds the trace. Every array is taken out of `stored`, so one that is left over does not belong into a trace."""
    tokens = {name: _tokens(name, strip, stored) for name, strip in header.tokens.items()}
    attention = {
        (site := Site.parse(text)): _attention(site, strips, tokens, stored, header.unwritten.get(text))
        for text, strips in header.sites.items()
    }
    trace = Trace(
        model=header.model,
        request=header.request,
        tokens=tokens,
        attention=attention,
        positions=_group("positions", stored),
        embedded=_group("embedded", stored),
        hidden=_group("hidden", stored),
        stages=_group("stages", stored),
        logits=_take("logits", np.float32, 2, stored) if "logits" in stored else None,
        steps=header.steps,
        tree=header.tree,
        missing=header.missing,
        recorded=header.recorded,
        sums=sums,
        image=_take("image", np.uint8, 3, stored) if "image" in stored else None,
        sound=_take("sound", np.float32, 1, stored) if "sound" in stored else None,
        spectrogram=_take("spectrogram", np.float32, 2, stored) if "spectrogram" in stored else None,
    )
    if header.recorded and header.recorded.sites.keys() != header.sites.keys():
        raise ValueError("the sites under recorded are not the sites of the trace")
    if any(node.parent >= index for index, node in enumerate(trace.tree)):
        raise ValueError("a node of the tree stands before the one that it continues")
    if stored:
        raise ValueError(f"no place for {', '.join(stored)}")
    return trace


def _take(name: str, dtype: type[np.generic], dims: int, stored: dict[str, Array]) -> Array:
    array = stored.pop(name)
    if array.dtype != dtype or array.ndim != dims:
        raise ValueError(f"{name} is {array.dtype} with {array.ndim} axes, not {dtype.__name__} with {dims}")
    return array


def _tokens(name: str, strip: _Strip, stored: dict[str, Array]) -> Tokens:
    ids = _take(f"ids/{name}", np.int64, 1, stored).tolist()
    if len({len(strip.texts), len(strip.special), len(strip.unknown), len(ids) or len(strip.texts)}) > 1:
        raise ValueError(f"the strip {name} has parts of unequal length")
    return Tokens(name, tuple(ids), strip.texts, strip.special, strip.unknown)


def _attention(
    site: Site,
    strips: tuple[str, str],
    tokens: dict[str, Tokens],
    stored: dict[str, Array],
    made: _Made | None,
) -> Attention:
    tensors, sizes = dict[str, Array](), dict[str, int]()
    for name, axes in AXES.items():
        if (path := f"attention/{site}/{name}") in stored:
            array = _take(path, np.uint8 if name.startswith("mask") else np.float32, len(axes), stored)
            # The first tensor with an axis sets its size, and every other one must agree.
            if any(sizes.setdefault(axis, size) != size for axis, size in zip(axes, array.shape, strict=True)):
                raise ValueError(f"{path} has the shape {array.shape} beside {sizes}")
            tensors[name] = array.astype(bool) if name.startswith("mask") else array
    # Weights that were not written out are computed of queries and keys, so these must be there instead.
    needed = {"weights", "mask"} if made is None else {"q", "k", "mask"}
    if not needed <= tensors.keys():
        raise ValueError(f"{site} lacks one of {', '.join(sorted(needed))}")
    query_tokens, key_tokens = strips
    if sizes["query"] > len(tokens[query_tokens]) or sizes["key"] > len(tokens[key_tokens]):
        raise ValueError(f"{site} has more queries or keys than there are tokens")
    if made is not None:
        tensors["weights"] = LazyAttention(tensors["q"], tensors["k"], tensors["mask"], made.scale, made.empty_rows).array
    return Attention(site, query_tokens, key_tokens, **tensors)


def _group(group: str, stored: dict[str, Array]) -> dict[str, Array]:
    names = [name for name in stored if name.startswith(f"{group}/")]
    return {name.removeprefix(f"{group}/"): _take(name, np.float32, 2, stored) for name in names}
