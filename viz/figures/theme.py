"""All colors of the app: a light and a dark scheme. Scales have one hue, so that people with red-green blindness can read them."""

from dataclasses import asdict, dataclass

_LATIN = '"Source Sans", "Source Sans 3", "Segoe UI", "Helvetica Neue", "Noto Sans"'
_LATIN_OF_SYSTEMS = '"Arial", "Liberation Sans", "DejaVu Sans"'
_SIMPLIFIED = '"PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC"'
_TRADITIONAL = '"PingFang TC", "Microsoft JhengHei", "Noto Sans CJK TC", "Noto Sans TC"'


def font(language: str) -> str:
    """Font stack for pictures: Streamlit's font, then system fonts; Chinese characters in the forms of the language.

    Where the language is not Chinese, a Latin font always comes first: in a Chinese one an apostrophe is as wide as a character.
    """
    latin = _LATIN if language.startswith("zh") else f"{_LATIN}, {_LATIN_OF_SYSTEMS}"
    return f"{latin}, {_TRADITIONAL if language == 'zh-TW' else _SIMPLIFIED}, sans-serif"


@dataclass(frozen=True)
class Scheme:
    """The colors of one scheme, as #rrggbb.

    Attributes:
        background, card: background of the page, and of the cards on it.
        line: rules and borders.
        text, faint: text, and secondary text.
        accent: selected elements.
        second: a second series beside the accent, which differs in lightness, too.
        masked: masked cells.
        weights: stops of the sequential scale from 0 to 1, evenly spaced.
        diverging: stops of the scale from -1 over 0 to 1.
    """

    background: str
    card: str
    line: str
    text: str
    faint: str
    accent: str
    second: str
    masked: str
    weights: tuple[str, ...]
    diverging: tuple[str, ...]


LIGHT = Scheme(
    background="#fcfbf9",
    card="#ffffff",
    line="#e3e0db",
    text="#101820",
    faint="#5f6b7a",
    accent="#a84d08",
    second="#1d5f8a",
    masked="#eceae6",
    weights=("#fffaf5", "#fee6ce", "#fdbe85", "#f58a3c", "#d4600f", "#9a3c05", "#5e2003"),
    diverging=("#0b4f79", "#4b8fb8", "#b5d3e6", "#fbf8f4", "#f9cf9f", "#d8752a", "#7c2d03"),
)

DARK = Scheme(
    background="#11151c",
    card="#191e27",
    line="#2d3440",
    text="#eceef2",
    faint="#9aa5b4",
    accent="#f59e4b",
    second="#7cc0ec",
    masked="#262c36",
    weights=("#1d1f26", "#3d2a1f", "#6b3d1c", "#a55a20", "#de8638", "#f8b878", "#fff0dd"),
    diverging=("#9bd3f5", "#4a90bd", "#234b66", "#1d1f26", "#6b3d1c", "#d0792f", "#ffd3a6"),
)

GRAY = Scheme(
    background="#ffffff",
    card="#ffffff",
    line="#d4d4d4",
    text="#000000",
    faint="#4d4d4d",
    accent="#000000",
    second="#7d7d7d",
    masked="#ffffff",
    weights=("#ebebeb", "#d2d2d2", "#b0b0b0", "#858585", "#5a5a5a", "#303030", "#000000"),
    diverging=("#000000", "#333333", "#666666", "#999999", "#bbbbbb", "#dcdcdc", "#f7f7f7"),
)
"""For print without color. Masked cells are white as paper, a weight of 0 is a light gray; below 0 is darker, above 0 lighter."""

ALLOWED = 4
"""The stop of `weights` that allowed cells of a mask have: its contrast to masked cells is at least 3 : 1, light and dark."""

SCHEMES = {"light": asdict(LIGHT), "dark": asdict(DARK)}
"""Both schemes as plain dictionaries, for the headers of drawings."""


def scheme(dark: bool) -> Scheme:
    """The colors for a dark or a light page."""
    return DARK if dark else LIGHT
