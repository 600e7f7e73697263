"""Scene of a sound: its spectrogram, the words with their times, and a head's attention over it, on one axis of time."""

import struct
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from cachetools import cached

from model.trace.types import Array, Attention, Site, Trace
from viz.canvas.scenes.attention import base
from viz.canvas.wire import parts
from viz.canvas.wire.transport import PART_CACHE, Blob, pack
from viz.i18n.translate import _
from viz.labels import alt_text
from viz.labels import tokens as labels
from viz.labels.sounds import Hearing, hearing
from viz.metrics import word_times
from viz.metrics.word_times import Word

MOST_ROWS, MOST_COLUMNS = 256, 768
"""Most rows and columns of the map that travel; of more, blocks with their largest weight."""


@dataclass(frozen=True)
class Timed:
    """The words of a run with their times.

    Attributes:
        words: the words.
        heads: layer and head of each cross-attention that told them.
        named: whether the model's folder names these heads; else the selected one tells them.
    """

    words: tuple[Word, ...]
    heads: tuple[tuple[int, int], ...]
    named: bool


def over_sound(trace: Trace, site: Site) -> Attention:
    """The site whose keys are moments of the sound: the one asked for, or the last cross-attention."""
    asked = trace.at(site)
    return asked if asked.key_tokens == "source" else trace.last_cross()


@cached(WeakKeyDictionary(), key=lambda trace: trace)
def _by_heads(trace: Trace) -> dict[tuple[tuple[int, int], ...], tuple[Word, ...]]:
    """Words by the heads that told them: a run's are asked for at each script run."""
    return {}


def timed(trace: Trace, heard: Hearing, site: Site, head: int) -> Timed:
    """The words of a run, by the heads that its folder names or else by the selected one."""
    spec = trace.model["spec"]
    named = tuple((int(layer), int(number)) for layer, number in spec.get("alignment", ()))
    chosen = over_sound(trace, site).site
    heads = named or (((chosen.layer, head),) if chosen.kind == "cross" else ())
    held = _by_heads(trace)
    if heads not in held:
        held[heads] = word_times.words(trace, heads, heard.heard, heard.read.step, int(spec.get("median", 7)))
    return Timed(held[heads], heads, bool(named))


def texts() -> dict[str, str]:
    """Texts of the drawing; the browser fills their {gaps}."""
    fields = {name: f"{{{name}}}" for name in ("head", "query", "time", "weight", "beyond")}
    of_word = {name: f"{{{name}}}" for name in ("word", *_TIMES)}
    return {
        "label": _("The sound over time: spectrogram, words, and the attention of {head}", head=fields["head"]),
        "spectrogram": _("Spectrogram"),
        "high": _("high"),
        "low": _("low"),
        "words": _("Words"),
        "seconds": _("Time in seconds"),
        "cell": _("“{query}” attends to {time} s with weight {weight}; the silence after the sound gets {beyond}", **fields),
        "block": _(
            "“{query}” attends to {time} s with weight {weight} at most; the silence after the sound gets {beyond}", **fields
        ),
        "word": _(
            "“{word}”: {start} to {end} s; largest mean weight at {largest} s; spread evenly, it would begin at {even} s", **of_word
        ),
        "moment": _("{time} s", time=fields["time"]),
        "largest": _("largest weight: {weight}", weight=fields["weight"]),
        "hint": _("Click to play from there; click a word to hear it. Arrow keys choose a row and a moment, Enter plays."),
        "hintTouch": _("Tap to play from there; tap a word to hear it."),
    }


def scene(trace: Trace, site: Site, head: int, query: int) -> bytes:
    """The sound of a run.

    Parts: `spectrogram` with the blob `codes` uint8 [band, position], from the lowest band up; `map` with `weights` float32 [row,
    column], blocks of `block` rows and positions; `wav` with `bytes` uint8, the sound as a file.

    Args:
        site, head, query: what is selected; a site that looks elsewhere is replaced by the last cross-attention.
    """
    heard = hearing(trace)
    assert heard is not None, "the page asks only for runs that have read a sound"
    attention = over_sound(trace, site)
    head = min(head, attention.heads - 1)
    weights = np.asarray(attention.head(head), np.float32)
    within, beyond = weights[:, : heard.heard], weights[:, heard.heard :].sum(axis=1)
    if attention.site.kind != "cross":
        within, beyond = within[: heard.heard], beyond[: heard.heard]
    down, across = -(-len(within) // MOST_ROWS), -(-heard.heard // MOST_COLUMNS)
    words = timed(trace, heard, attention.site, head)
    rows = labels.queries(trace, attention)[: len(within)]
    header = {
        **base(trace),
        "texts": texts(),
        "name": labels.head_name(trace, attention.site, head),
        "site": str(attention.site),
        "head": head,
        "query": query if 0 <= query < len(within) and attention.site == site else -1,
        "queryStrip": attention.query_tokens,
        "seconds": heard.seconds,
        "step": heard.read.step,
        "rows": rows,
        "block": [down, across],
        "beyond": [round(float(share), 4) for share in beyond],
        "words": [
            {"text": labels.word(word.text), "rows": word.rows, **{name: round(getattr(word, name), 3) for name in _TIMES}}
            for word in words.words
        ],
        "description": alt_text.head(trace, attention, head),
    }
    key = f"{parts.run_key(trace)}/sound"
    pooled = parts.pool(within, down, across)
    return parts.scene(
        header,
        {
            "spectrogram": PART_CACHE.get_or_make(f"{key}/spectrogram", lambda: Blob(pack({}, {"codes": shades(trace, heard)}))),
            "map": PART_CACHE.get_or_make(f"{key}/{attention.site}/{head}", lambda: Blob(pack({}, {"weights": pooled}))),
            "wav": PART_CACHE.get_or_make(f"{key}/wav", lambda: Blob(pack({}, {"bytes": wav(trace.sound, heard.read.rate)}))),
        },
    )


_TIMES = ("start", "end", "largest", "even")


def shades(trace: Trace, heard: Hearing) -> Array:
    """[band, position] of uint8: the spectrogram where there is sound, from its least energy, 0, to its most."""
    assert trace.spectrogram is not None
    joined = heard.read.joined
    frames = trace.spectrogram[:, : heard.heard * joined]
    energy = frames.reshape(len(frames), heard.heard, joined).max(axis=-1)
    least, most = float(energy.min()), float(energy.max())
    return np.asarray(np.rint(255 * (energy - least) / ((most - least) or 1)), np.uint8)


def wav(samples: Array | None, rate: int) -> Array:
    """The bytes of a WAV file of 16 bits with one channel, which every browser plays, as uint8."""
    assert samples is not None
    data = np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    head = struct.pack(
        "<4sI8sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVEfmt ", 16, 1, 1, rate, 2 * rate, 2, 16, b"data", len(data)
    )
    return np.frombuffer(head + data, np.uint8)
