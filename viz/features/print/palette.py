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

    def colour(self, shown: str) -> str:
        """A color of the screen, #rrggbb of one of its schemes, in this scheme; another color stays as it is."""
        return _translated(self.scheme).get(shown.lower(), shown)

    def stops(self, shown: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
        """A color scale of the screen, [(place from 0 to 1, color)], in this scheme."""
        colours = tuple(colour for _place, colour in shown)
        for other in (LIGHT, DARK, GRAY):
            for own, one in ((self.scheme.weights, other.weights), (self.scheme.diverging, other.diverging)):
                if colours == one[: len(colours)] and len(colours) > 2:
                    return list(zip((place for place, _colour in shown), own, strict=False))
        return [(place, self.colour(colour)) for place, colour in shown]


def painted(fractions: Array, stops: Sequence[tuple[float, str]]) -> Array:
    """Colors, uint8 [..., 3], of places from 0 to 1 on a color scale, interpolated between its stops."""
    places = [place for place, _colour in stops]
    channels = np.array([rgb(colour) for _place, colour in stops], float)
    mixed = [np.interp(np.clip(fractions, 0, 1), places, channels[:, channel]) for channel in range(3)]
    found: Array = np.rint(np.stack(mixed, axis=-1)).astype(np.uint8)
    return found


def rgb(colour: str) -> tuple[int, int, int]:
    """The channels of #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def hexadecimal(channels: Array) -> str:
    """#rrggbb of three channels."""
    return "#{:02x}{:02x}{:02x}".format(*(int(each) for each in channels[:3]))


def ink_on(colour: str) -> str:
    """Black or white, whichever is read on a color (relative luminance of WCAG 2)."""
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in (c / 255 for c in rgb(colour))]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


@lru_cache(maxsize=8)
def _translated(to: Scheme) -> Mapping[str, str]:
    """The colors of all schemes of the screen, in the scheme `to`. Where a scheme has a color twice, its first use counts."""
    found: dict[str, str] = {}
    for scheme in (LIGHT, DARK, GRAY):
        for shown, own in zip(_listed(scheme), _listed(to), strict=True):
            found.setdefault(shown, own)
    return found


def _listed(scheme: Scheme) -> Iterator[str]:
    """All colors of a scheme, always in the same order: those of text first."""
    named = asdict(scheme)
    order = ("text", "faint", "accent", "second", "line", "masked", "card", "background")
    return chain((named[name] for name in order), scheme.weights, scheme.diverging)
