"""Colors of a figure for print: a scheme, and the colors of the screen turned into those of the scheme."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np

from model.trace.types import Array
from viz.features.print.options import Colours
from viz.figures.theme import DARK, GRAY, LIGHT, Scheme

SCHEMES: Mapping[Colours, Scheme] = {
    "light": replace(LIGHT, background="#ffffff", card="#ffffff"),
    "dark": DARK,
    "grayscale": GRAY,
}


@dataclass(frozen=True)
class Palette:
    """The colors of one figure."""

    scheme: Scheme

    @classmethod
    def of(cls, colours: Colours) -> "Palette":
        """The palette of a scheme."""
        return cls(SCHEMES[colours])

    def colour(self, colour: str) -> str:
        """A color of the screen, #rrggbb of one of its schemes, in this scheme; another color stays as it is."""
        return _translated(self.scheme).get(colour.lower(), colour)

    def stops(self, stops: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
        """A color scale of the screen, [(place from 0 to 1, color)], in this scheme."""
        colours = tuple(colour for _position, colour in stops)
        for other in (LIGHT, DARK, GRAY):
            for colours_here, theirs in ((self.scheme.weights, other.weights), (self.scheme.diverging, other.diverging)):
                if colours == theirs[: len(colours)] and len(colours) > 2:
                    return list(zip((position for position, _colour in stops), colours_here, strict=False))
        return [(position, self.colour(colour)) for position, colour in stops]


def painted(fractions: Array, stops: Sequence[tuple[float, str]]) -> Array:
    """Colors, uint8 [..., 3], of places from 0 to 1 on a color scale, interpolated between its stops."""
    places = [position for position, _colour in stops]
    channels = np.array([rgb(colour) for _position, colour in stops], float)
    mixed = [np.interp(np.clip(fractions, 0, 1), places, channels[:, channel]) for channel in range(3)]
    channels_: Array = np.rint(np.stack(mixed, axis=-1)).astype(np.uint8)
    return channels_


def rgb(colour: str) -> tuple[int, int, int]:
    """The channels of #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def hexadecimal(channels: Array) -> str:
    """#rrggbb of three channels."""
    return "#{:02x}{:02x}{:02x}".format(*(int(channel) for channel in channels[:3]))


def ink_on(colour: str) -> str:
    """Black or white, whichever is read on a color (relative luminance of WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (channel / 255 for channel in rgb(colour))]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


@lru_cache(maxsize=8)
def _translated(to: Scheme) -> Mapping[str, str]:
    """The colors of all schemes of the screen, in the scheme `to`. Where a scheme has a color twice, its first use counts."""
    translated: dict[str, str] = {}
    for scheme in (LIGHT, DARK, GRAY):
        for screen, paper in zip(_listed(scheme), _listed(to), strict=True):
            translated.setdefault(screen, paper)
    return translated


def _listed(scheme: Scheme) -> Iterator[str]:
    """All colors of a scheme, always in the same order: those of text first."""
    named = asdict(scheme)
    order = ("text", "faint", "accent", "second", "line", "masked", "card", "background")
    return chain((named[name] for name in order), scheme.weights, scheme.diverging)
