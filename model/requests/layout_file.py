"""Layout files: a reader of a weight file says what its tensors are. A JSON file with a role for each pattern of names.

    {"headlight_layout": 1, "name": "ours", "network": "language model", "facts": {"activation": "gelu"},
     "roles": {"words.weight": "embedding", "blocks.{layer}.att.q.weight": "query", …}}

`{layer}` means the layer's number; `.@` at the end is `.weight` and, where there is one, `.bias`. `facts` answer questions as
settings do; what they leave out is asked for. Matrices are [out, in], as torch.nn.Linear stores them. This module needs no torch:
a page checks a layout while it is written.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from model.errors import BadLayoutFile, Phrase, counted, phrase

Network: TypeAlias = Literal["language model", "encoder", "translator"]
Shape: TypeAlias = tuple[int, ...]

VERSION = 1
MOST_BYTES = 2**20
"""Most bytes of a layout file."""

MOST_ROLES, LONGEST_NAME = 2000, 200
LAYER = "{layer}"
BEHIND = "behind the network"
"""The role of a tensor that only reads the last states, such as a classifier's: no attention map depends on it."""

STACKED = "query, key, value"
"""The role of a tensor with queries, keys and values below each other."""

GROUPED = "query, key, value by group"
"""The role of such a tensor where each group of heads that share a key has its queries, its key and its value in turn."""

FACTS = ("norm_order", "norm", "activation", "positions", "rotary_base", "embed_scale", "norm_epsilon", "n_heads", "causal")
"""Settings that `facts` can answer."""

# The letters stand for sizes that a file has to keep: q of all queries, k of all keys, d of the model, m of the
# encoder's output, h of the feed-forward network, v of the vocabulary, p of the positions; c stands for
# cross-attention.
_MAPS = {"query": ("q", "d"), "key": ("k", "d"), "value": ("k", "d"), "output": ("d", "q")}
_MAPS |= dict.fromkeys((STACKED, GROUPED), ("q+k+k", "d"))
_CROSS = {"query": ("cq", "d"), "key": ("ck", "m"), "value": ("ck", "m"), "output": ("d", "cq")}
_WHOLE = {"embedding": ("v", "d"), "positions": ("p", "d")}
_FEED_FORWARD = {"feed-forward in": ("h", "d"), "feed-forward gate": ("h", "d"), "feed-forward out": ("d", "h")}
_NORMS = ("attention norm", "feed-forward norm", "final norm")
_NEEDED = ("embedding", "feed-forward in", "feed-forward out", "output")


def _with_biases(weights: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Each weight's axes, and its bias's after it."""
    return {name: axes for role, axes_ in weights.items() for name, axes in ((role, axes_), (f"{role} bias", axes_[:1]))}


def _of_a_stack(cross: bool) -> dict[str, tuple[str, ...]]:
    crossing = {f"cross {role}": axes for role, axes in _CROSS.items()} if cross else {}
    norms = dict.fromkeys((*_NORMS, *(("cross norm",) if cross else ())), ("d",))
    return _WHOLE | _with_biases({**_MAPS, **crossing, **_FEED_FORWARD, **norms})


def roles(network: Network) -> dict[str, tuple[str, ...]]:
    """The roles of a network's tensors, each with letters for its axes: axes with one letter have one size."""
    if network != "translator":
        of_stack = _of_a_stack(cross=False)
        return of_stack | (_with_biases({"vocabulary": ("v", "d")}) if network == "language model" else {}) | {BEHIND: ()}
    both = {
        f"{stack} {role}": tuple(f"{stack} {letter}" for letter in axes)
        for stack in ("encoder", "decoder")
        for role, axes in _of_a_stack(cross=stack == "decoder").items()
    }
    vocabulary = _with_biases({"vocabulary": ("decoder v", "decoder d")})
    return both | vocabulary | {BEHIND: ()}


def in_layers(role: str) -> bool:
    """Whether each layer has a tensor of this role."""
    last = role.removeprefix("encoder ").removeprefix("decoder ").removesuffix(" bias")
    return last not in (*_WHOLE, "final norm", "vocabulary", BEHIND)


@dataclass(frozen=True)
class LayoutFile:
    """A layout that a person described.

    Attributes:
        name: its name.
        network: the kind of network.
        roles: the role of the tensors that a pattern matches, by pattern.
        facts: answers that hold for each file of this program, by setting.
    """

    name: str
    network: Network
    roles: Mapping[str, str]
    facts: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The file."""
        data = {"headlight_layout": VERSION, "name": self.name, "network": self.network, "facts": dict(self.facts)}
        return json.dumps({**data, "roles": dict(self.roles)}, ensure_ascii=False, indent=2)


def parse(content: bytes, path: str) -> LayoutFile:
    """Reads a layout file.

    Args:
        path: its name, for errors.

    Raises:
        BadLayoutFile: it is none; the sentence says why.
    """
    try:
        return _read(content)
    except _Wrong as wrong:
        raise BadLayoutFile(path=path, detail=wrong.args[0]) from wrong


class _Wrong(Exception):
    """Why a file is no layout, as a phrase."""


def _read(content: bytes) -> LayoutFile:
    if len(content) > MOST_BYTES:
        raise _Wrong(phrase("it has {count:,} bytes, and at most {most:,} are read", count=len(content), most=MOST_BYTES))
    try:
        data = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise _Wrong(phrase("it is not a JSON file")) from error
    if not isinstance(data, dict) or data.get("headlight_layout") != VERSION:
        raise _Wrong(phrase('it does not say "headlight_layout": {version}', version=VERSION))
    if other := sorted(set(data) - {"headlight_layout", "name", "network", "facts", "roles"}):
        raise _Wrong(phrase("it has a field “{other}”, which no layout has", other=other[0][:80]))
    if not isinstance(name := data.get("name"), str) or not re.fullmatch(r"[\w .-]{1,80}", name):
        raise _Wrong(phrase("its name must have 1 to 80 letters, digits, spaces, dots and hyphens"))
    network: Network | None = next((kind for kind in get_args(Network) if kind == data.get("network")), None)
    if network is None:
        raise _Wrong(phrase("its network is not {names}", names=", ".join(get_args(Network))))
    return LayoutFile(name, network, _roles_in(data.get("roles"), network), _facts_in(data.get("facts", {})))


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict[str, Any]()
    for name, value in pairs:
        if name in entries:
            raise _Wrong(phrase("“{double}” occurs in it twice", double=name[:80]))
        entries[name] = value
    return entries


def _roles_in(entries: Any, network: Network) -> dict[str, str]:
    if not isinstance(entries, dict) or not entries or len(entries) > MOST_ROLES:
        raise _Wrong(phrase("it has no table of 1 to {most:,} roles", most=MOST_ROLES))
    for pattern, role in entries.items():
        stem = pattern.removesuffix(".@")
        if not pattern or len(pattern) > LONGEST_NAME or pattern.count(LAYER) > 1 or set("#@") & set(stem):
            raise _Wrong(phrase("“{pattern}” is not a name with at most one {layer} in it", pattern=pattern[:80], layer=LAYER))
        needed = [role] if stem == pattern else [role, f"{role} bias"]
        if not isinstance(role, str) or not roles(network).keys() >= set(needed):
            raise _Wrong(phrase("“{name}” is not a role of the network “{network}”", name=str(needed[-1])[:80], network=network))
    return entries


def _facts_in(facts: Any) -> dict[str, str]:
    if not isinstance(facts, dict):
        raise _Wrong(phrase("its facts are not a table"))
    for name, value in facts.items():
        if name not in FACTS or not isinstance(value, str | int | float) or len(str(value)) > 40:
            words = phrase(
                "its fact “{name}” is not one of {names}, or has no plain value", name=str(name)[:80], names=", ".join(FACTS)
            )
            raise _Wrong(words)
    return {name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in facts.items()}


# --- Patterns -----------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<=\.)(0|[1-9][0-9]{0,3})(?=\.)")


def pattern_of(name: str, which: int = 0) -> str:
    """The pattern of a tensor's name: one of the numbers between dots becomes the layer's.

    Args:
        which: which of the numbers, counted from 0; -1: the last one. A name without that number is its own pattern.
    """
    numbers = list(_NUMBER.finditer(f".{name}"))
    if not -len(numbers) <= which < len(numbers):
        return name
    start, end = numbers[which].span()
    return f"{name[: start - 1]}{LAYER}{name[end - 1 :]}"


def matching(pattern: str, names: Iterable[str]) -> dict[str, int | None]:
    """The names that a pattern matches, each with its layer's number; None: the pattern has none."""
    # Everything but the layer's number is taken literally: names are full of dots, which mean any character
    # elsewhere.
    before, has_layer, after = pattern.partition(LAYER)
    shape = re.compile(f"{re.escape(before)}(0|[1-9][0-9]{{0,3}}){re.escape(after)}" if has_layer else re.escape(pattern))
    matches = {name: shape.fullmatch(name) for name in names}
    return {name: int(match[1]) if has_layer else None for name, match in matches.items() if match}


# --- The check ----------------------------------------------------------------------------------------------------------


def mistakes(layout: LayoutFile, shapes: Mapping[str, Shape], harmless: Iterable[str] = (), path: str = "") -> list[BadLayoutFile]:
    """The mistakes of a layout for a file, an error for each; empty: each tensor has a role, and the shapes fit.

    Args:
        shapes: of the file's tensors, by name.
        harmless: tensors that may stay without a role.
        path: the layout file's name, for the sentences.
    """
    return [BadLayoutFile(path=path or layout.name, detail=problem) for problem in _problems(layout, shapes, frozenset(harmless))]


def filled(patterns: Mapping[str, str], names: Collection[str]) -> dict[tuple[str, int], str]:
    """The tensor of each role in each layer; what a network has once counts as layer 0.

    Args:
        patterns: the role of each pattern.
    """
    every = ((role, name, layer) for spelled, role in _spelled(patterns, names) for name, layer in matching(spelled, names).items())
    return {(role, layer or 0): name for role, name, layer in every}


def _spelled(patterns: Mapping[str, str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """The patterns and their roles with `@` spelled out: weight, and bias if a name has it."""
    for pattern, role in patterns.items():
        yield pattern.replace("@", "weight"), role
        if "@" in pattern and matching(bias := pattern.replace("@", "bias"), names):
            yield bias, f"{role} bias"


def _problems(layout: LayoutFile, shapes: Mapping[str, Shape], harmless: frozenset[str]) -> Iterator[Phrase]:
    owner, name_of = dict[str, str](), dict[tuple[str, int], str]()
    for pattern, role in _spelled(layout.roles, shapes):
        matches = matching(pattern, shapes)
        if not matches:
            yield phrase("no tensor is called “{pattern}”", pattern=pattern)
        if LAYER in pattern and not in_layers(role):
            fields = {"pattern": pattern, "role": role, "layer": LAYER}
            yield phrase(
                "“{pattern}” has the role “{role}”, which a network has only once, so its name must not have {layer}", **fields
            )
        for name, number in matches.items():
            layer = number or 0
            if name in owner:
                yield phrase("“{name}” has two roles, “{owner}” and “{role}”", name=name, owner=owner[name], role=role)
            elif role != BEHIND and (other := name_of.get((role, layer))):
                twice = {"name": name, "other": other, "role": role, "layer": layer}
                yield phrase("“{name}” and “{other}” both have the role “{role}” in layer {layer}", **twice)
            owner[name], name_of[role, layer] = role, name
    if left := [name for name in shapes if name not in owner and name not in harmless]:
        yield counted(
            "the tensor “{name}” has no role", "{count:,} tensors have no role; the first is “{name}”", len(left), name=left[0]
        )
    # Roles first, then shapes: which shape a tensor needs follows from its role.
    yield from _missing(layout.network, name_of)
    yield from _misshapen(roles(layout.network), name_of, shapes)


def _missing(network: Network, placed: Mapping[tuple[str, int], str]) -> Iterator[Phrase]:
    """Roles that no tensor has, and layers that lack what another layer has."""
    roles_ = {role for role, _layer in placed}
    for stack in ("encoder ", "decoder ") if network == "translator" else ("",):
        parts = ("query", "key", "value") if roles_.isdisjoint((f"{stack}{STACKED}", f"{stack}{GROUPED}")) else ()
        crossing = ("cross query", "cross key", "cross value", "cross output") if stack == "decoder " else ()
        for role in (*_NEEDED, *parts, *crossing):
            if f"{stack}{role}" not in roles_:
                yield phrase("no tensor has the role “{role}”", role=f"{stack}{role}")
        of_layers = {(role, layer) for role, layer in placed if in_layers(role) and role.startswith(stack)}
        layers = 1 + max((layer for _role, layer in of_layers), default=-1)
        for role in dict.fromkeys(role for role, _layer in of_layers):
            if lacking := [layer for layer in range(layers) if (role, layer) not in of_layers]:
                yield phrase("layer {layer} has no tensor with the role “{role}”", layer=lacking[0], role=role)


def _misshapen(
    axes: Mapping[str, tuple[str, ...]], placed: Mapping[tuple[str, int], str], shapes: Mapping[str, Shape]
) -> Iterator[Phrase]:
    """Tensors whose shape does not fit the tensors before them."""
    sizes, first = dict[str, int](), dict[str, str]()
    for (role, _layer), name in sorted(
        placed.items(), key=lambda placed_role: (list(axes).index(placed_role[0][0]), placed_role[0][1])
    ):
        letters, shape = axes[role], shapes[name]
        if role == BEHIND or "+" in "".join(letters[:1]):
            continue
        if len(shape) != len(letters):
            axes_ = {"found": len(shape), "needed": len(letters)}
            yield phrase("“{name}” has {found} axes, and its role “{role}” needs {needed}", name=name, role=role, **axes_)
            continue
        for letter, size in zip(letters, shape, strict=True):
            letter = "encoder d" if letter == "decoder m" else letter
            if sizes.setdefault(letter, size) != size:
                other = first[letter]
                fields = {"name": name, "shape": list(shape), "role": role, "other": other, "needed": list(shapes[other])}
                yield phrase(
                    "“{name}” has the shape {shape}, which does not fit its role “{role}” beside “{other}” with the shape {needed}",
                    **fields,
                )
                break
            first.setdefault(letter, name)
