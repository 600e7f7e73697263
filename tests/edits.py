"""Hypothesis strategies of edits: any valid one of every kind."""

from hypothesis import strategies as st

from model.requests.edits import (
    Allow,
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
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["4", "-1", "01", ",", ";", "=", '"', "a b"]
)
_INDEX = st.integers(0, 10**9)
_TOKEN = _INDEX | _TEXT
_TOKENS = st.lists(_TOKEN, max_size=3).map(tuple)
_HEADS = st.lists(_INDEX, max_size=3).map(tuple)
_STACK = st.sampled_from(["encoder", "decoder"])
_FINITE = st.floats(allow_nan=False, allow_infinity=False)
_PLACES = st.fixed_dictionaries({"site": _TEXT.filter(bool), "head": _HEADS}) | st.fixed_dictionaries(
    {"head": _HEADS, "stack": st.just("") | _STACK, "kind": st.sampled_from(["", "self", "cross", "memory"])}
)
_EDGES = st.fixed_dictionaries({"query": _TOKENS, "key": _TOKENS})
_NUMBERS = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=4).map(tuple)
_ROWS = (
    st.just({"to": "uniform"})
    | st.fixed_dictionaries({"to": st.just("one-hot"), "key": _TOKEN})
    | st.fixed_dictionaries(
        {"to": st.just("numbers"), "numbers": st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=4).map(tuple)}
    )
    | st.fixed_dictionaries({"to": st.just("head"), "other": _INDEX})
)
_SIMPLE: st.SearchStrategy[Edit] = st.one_of(
    st.builds(lambda at, edges: Forbid(**at, **edges), _PLACES, _EDGES),
    st.builds(lambda at, edges: Allow(**at, **edges), _PLACES, _EDGES),
    st.builds(lambda at, to, query: SetRow(**at, **to, query=query), _PLACES, _ROWS, _TOKENS),
    st.builds(lambda at, by: Silence(**at, by=by), _PLACES, st.sampled_from(["zeros", "sentence", "examples"])),
    st.builds(lambda at, factor: Sharpen(**at, factor=factor), _PLACES, _FINITE),
    st.builds(NoPositions, _STACK),
    st.builds(SwapPositions, _STACK, _TOKEN, _TOKEN),
    st.builds(ShiftPositions, _STACK, st.integers(-99, 99)),
    st.builds(SinusoidalPositions, _STACK),
    st.builds(SkipLayer, _STACK, _INDEX),
    st.builds(SkipSublayer, _TEXT),
    st.builds(SwapLayers, _STACK, _INDEX, _INDEX),
    st.builds(Embed, _STACK, _TOKEN, _TOKEN),
)
_SECOND = st.fixed_dictionaries(
    {"source": st.none() | _TEXT, "target": st.none() | _TEXT, "under": st.lists(_SIMPLE, max_size=2).map(tuple)}
)
_HIDDEN = st.fixed_dictionaries({"value": st.just("hidden"), "stack": _STACK, "layer": _HEADS})
_PATCHES: st.SearchStrategy[Edit] = st.one_of(
    st.builds(lambda at, second, where: Patch(**at, **second, at=where, take=where[::-1]), _PLACES, _SECOND, _TOKENS),
    st.builds(lambda hidden, second, where: Patch(**hidden, **second, at=where), _HIDDEN, _SECOND, _TOKENS),
)
ANY_EDIT: st.SearchStrategy[Edit] = _SIMPLE | _PATCHES
