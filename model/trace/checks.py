"""Checks of a trace that came from a file: its numbers must be what a run can have computed, and its facts what pages read."""

import math
from collections.abc import Mapping
from typing import Any, Literal, NoReturn

import numpy as np

from model.errors import BadSetting, HeadlightError, WireError, Words, phrase
from model.requests.edits import Allow, Forbid, Patch, SetRow
from model.requests.external import AnySpec, ForeignImage, ForeignSound
from model.requests.request import RunRequest
from model.requests.validation import read
from model.trace.lazy_attention import LazyAttention
from model.trace.types import SOURCE_NOTES, Array, Attention, Tokens, Trace, chat_of, image_facts

SUM = {"float32": 1e-3, "bfloat16": 5e-2, "float16": 1e-2}
"""Largest deviation of a row's sum from 1 that rounding explains, by number type."""

FORBIDDEN = 1e-4
"""Largest weight on a key that the mask forbids: additive masks of about −10 and less are masks."""

SINKS = phrase(
    "The weights of a row sum to less than 1 in some of its attention: the rest goes to a sink, a "
    "learned number that is not a token."
)
"""The note of a run whose rows may sum to less than 1."""

MOST_HEADS = 20_000
"""Most heads of a trace; a page draws all of them."""

DEEPEST = 32
"""Most levels of nested values in the header."""

_FACTS: Mapping[str, Any] = {
    "name": str,
    "title": str,
    "fingerprint": str,
    "languages": Mapping[str, str],
    "spec": AnySpec,
    "dtype": Literal["float32", "bfloat16", "float16"],
    "device": Words,
    "milliseconds": float,
    "notes": tuple[Words, ...],
    "from_float32": Mapping[str, float | None],
    SOURCE_NOTES: int,
}
"""Types of the facts that pages read; all but `spec` and the last two may not be missing. Others are kept as they are."""


def check(trace: Trace) -> None:
    """Checks a trace.

    Raises:
        WireError: a number or fact cannot be what a run recorded; the message says which.
    """
    # Facts first: what follows reads the spec, the request and the tokens.
    _check_facts(trace)
    _check_steps(trace)
    if not trace.attention:
        _refuse("it holds no attention")
    if (heads := sum(attention.heads for attention in trace.attention.values())) > MOST_HEADS:
        _refuse(f"it has {heads:,} heads; at most {MOST_HEADS:,} are drawn")
    replaced, sinks = _weights_replaced(trace), str(SINKS) in map(str, trace.model.get("notes", ()))
    for attention in trace.attention.values():
        _check_masks(attention)
        # Of a recorded program any numbers are possible; of a network of ours or of a library they follow from each other.
        if trace.recorded is None:
            _check_numbers(attention)
            _check_weights(attention, SUM[trace.model["dtype"]], sinks)
        if not replaced:
            _check_forbidden(attention)
    for group in ("positions", "embedded", "hidden", "stages"):
        for name, array in getattr(trace, group).items():
            _check_finite(array, f"{group}/{name}")
    if trace.logits is not None:
        _check_finite(trace.logits, "logits")
    if trace.image is not None:
        _check_image(trace)
    if trace.sound is not None or trace.spectrogram is not None:
        _check_sound(trace)


def _refuse(detail: Words) -> NoReturn:
    raise WireError(detail=detail)


def _check_image(trace: Trace) -> None:
    """Checks that an image has the size of the patches that its network reads, and the source a token for each of them."""
    encoder = {} if trace.of_program else trace.model["spec"].get("encoder") or {}
    if not encoder.get("image"):
        _refuse("it holds an image, and its network reads none")
    image = read(ForeignImage, encoder["image"], "header.model.spec.encoder.image")
    if trace.image is None or trace.image.shape != (image.rows * image.side, image.columns * image.side, 3):
        _refuse("its image is not of the size that its network reads")
    if trace.tokens["source"].texts != image.names:
        _refuse("its tokens are not the patches of its image")


def _check_sound(trace: Trace) -> None:
    """Checks that a sound and its spectrogram are of the sizes that its network reads, and the source a token for each position."""
    encoder = {} if trace.of_program else trace.model["spec"].get("encoder") or {}
    if not encoder.get("sound"):
        _refuse("it holds a sound, and its network reads none")
    sound = read(ForeignSound, encoder["sound"], "header.model.spec.encoder.sound")
    frames = sound.positions * sound.joined
    if trace.spectrogram is None or trace.spectrogram.shape != (sound.bands, frames):
        _refuse("its spectrogram is not of the size that its network reads")
    if trace.sound is None or not 0 < len(trace.sound) <= frames * sound.hop:
        _refuse("its sound is not of a length that its network reads")
    for name in ("sound", "spectrogram"):
        _check_finite(getattr(trace, name), name)
    if trace.tokens["source"].texts != sound.names:
        _refuse("its tokens are not the moments of its sound")


def _check_facts(trace: Trace) -> None:
    """Checks the types of what pages read from the header."""
    if max(map(_depth, (trace.model, trace.request, trace.missing))) > DEEPEST:
        _refuse(f"its header is nested more than {DEEPEST} levels deep")
    if "source" not in trace.tokens:
        _refuse("it has no tokens called source")
    try:
        for name, kind in _FACTS.items():
            if name == "spec" and not trace.model.get(name):
                continue  # a recorded program has none
            if name in trace.model or name not in ("spec", "from_float32", "languages", "notes", SOURCE_NOTES):
                read(kind, trace.model.get(name), f"header.model.{name}")
        # Turns begin one after the other; the same start twice would be an empty turn.
        if (chat := chat_of(trace)) is not None and sorted({0, *chat.starts}) != list(dict.fromkeys((0, *chat.starts))):
            _refuse("the turns of its conversation are in no order")
        if image_facts(trace) is not None and trace.image is None:
            _refuse("it says what image it read, and holds none")
        request = None if trace.of_program else RunRequest.from_json(trace.request)
    # The reason alone: the sentence around it speaks of the file, not of a setting that somebody chose.
    except BadSetting as error:
        _refuse(error.inside)
    except HeadlightError as error:
        _refuse(error.on_page)
    if not math.isfinite(trace.model["milliseconds"]):
        _refuse("its duration is not a number")
    if request and trace.tree and request.decoding.hypothesis > max(node.rank for node in trace.tree):
        _refuse("its beam search has no such hypothesis")
    if trace.of_program and (trace.request or trace.steps or trace.tree):
        _refuse("it is the recording of a program and has a request, steps or a beam search")
    if trace.recorded and not trace.of_program and not trace.model["spec"].get("recorded"):
        _refuse("its attention was recorded, and its network is one that hands it out itself")


def _depth(value: Any, level: int = 0) -> int:
    """Levels of nested lists and mappings; counts no further than one above DEEPEST."""
    if level > DEEPEST or not isinstance(value, Mapping | list | tuple):
        return level
    return max((_depth(part, level + 1) for part in (value.values() if isinstance(value, Mapping) else value)), default=level)


def _check_steps(trace: Trace) -> None:
    """Checks that each step wrote a token that is there, and that all log-probabilities can be some."""
    written: Tokens = trace.tokens.get("target", trace.tokens["source"])
    for number, step in enumerate(trace.steps):
        first, last = step.computed
        if step.index != number or not 0 <= first < last <= len(written):
            _refuse(f"step {number} does not fit its tokens")
        if any(not candidate.log_probability <= 1e-3 for candidate in (step.chosen, *step.candidates)):  # also where it is NaN
            _refuse(f"step {number} has a log-probability that is no number up to 0")
    if any(not math.isfinite(node.total + node.log_probability) for node in trace.tree):
        _refuse("a log-probability of its beam search is not finite")


def _weights_replaced(trace: Trace) -> bool:
    """Whether an edit gave the run weights, or a mask of its own to a head, which need not follow from the mask."""
    edits = RunRequest.edits_in(trace.request)
    return any(isinstance(edit, SetRow | Patch | Forbid | Allow) for edit in edits)


def _check_masks(attention: Attention) -> None:
    if not attention.heads or not attention.mask.size:
        _refuse(f"{attention.site} has no heads, queries or keys")
    for name in ("mask_padding", "mask_causal"):
        part: Array | None = getattr(attention, name)
        if part is not None and part.shape != attention.mask.shape:
            _refuse(f"{attention.site}/{name} has another shape than the mask")


def _check_numbers(attention: Attention) -> None:
    """Checks that q, k, v, context and output are finite, and scores where they were computed."""
    for name in ("q", "k", "v", "context", "output"):
        if (array := getattr(attention, name)) is not None:
            _check_finite(array, f"attention/{attention.site}/{name}")
    if attention.scores is not None:
        for scores in attention.scores:
            if not np.isfinite(scores[attention.mask]).all():
                _refuse(f"attention/{attention.site}/scores holds NaN or infinite numbers at keys that the mask allows")


def _check_finite(array: Array, name: str) -> None:
    if not all(np.isfinite(part).all() for part in array):  # part by part: a large array is mapped, not in memory
        _refuse(f"{name} holds NaN or infinite numbers")


def _check_weights(attention: Attention, tolerance: float, sinks: bool) -> None:
    """Checks head by head that weights are probabilities; their sum is less than 1 only with sinks.

    A recorded program may weigh its values by any numbers: those that are no probabilities are named (model/trace/unusual.py).
    """
    weights: object = attention.weights
    if isinstance(weights, LazyAttention):
        if not math.isfinite(weights.scale):
            _refuse(f"the scale of {attention.site} is not finite")
        return  # they follow from q, k and the mask
    looks = attention.mask.any(axis=-1)
    for head, of_head in enumerate(attention.weights):
        where = f"head {head} of {attention.site}"
        if not np.isfinite(of_head).all():
            _refuse(f"the weights of {where} hold NaN or infinite numbers")
        if of_head.min() < -tolerance or of_head.max() > 1 + tolerance:
            _refuse(f"the weights of {where} lie between {of_head.min():.3g} and {of_head.max():.3g}, not between 0 and 1")
        sums = of_head.sum(axis=-1, dtype=np.float64)
        # With a sink a row may sum to less than 1, never to more.
        if (off := (np.maximum(sums - 1, 0) if sinks else np.abs(sums - 1)) * looks).max() > tolerance:
            _refuse(f"row {off.argmax()} of {where} sums to {sums[off.argmax()]:.4g}, not to 1")


def _check_forbidden(attention: Attention) -> None:
    """Checks head by head that keys which the mask forbids have no weight, except in rows that may look at none."""
    weights: object = attention.weights
    if isinstance(weights, LazyAttention):
        return
    # Rows without any allowed key are left out: what they become is the network's choice (`empty_rows`).
    forbidden = ~attention.mask & attention.mask.any(axis=-1, keepdims=True)
    for head, of_head in enumerate(attention.weights):
        if (wrong := float(np.nan_to_num(of_head[forbidden]).max(initial=0))) > FORBIDDEN:
            _refuse(f"head {head} of {attention.site} puts a weight of {wrong:.3g} on a key that its mask forbids")
