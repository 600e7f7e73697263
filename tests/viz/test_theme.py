"""Colors can be read: contrast by WCAG 2, order by luminance, and both also by people who lack one kind of cone."""

import itertools
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from viz.figures.theme import ALLOWED, DARK, LIGHT, Scheme, font

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))

Floats = NDArray[np.float64]

EYES: dict[str, Floats] = {
    "all cones": np.eye(3),
    "no red cones": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green cones": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "no blue cones": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
"""What linear RGB becomes for these eyes. Source: Machado, Oliveira and Fernandes 2009, severity 1.0."""

SCHEMES = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
EACH_EYE = pytest.mark.parametrize("eye", EYES)


def linear(colour: str) -> Floats:
    """Linear RGB of #rrggbb, each from 0 to 1. Source: WCAG 2.2, relative luminance."""
    encoded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def luminance(colour: str, eye: str = "all cones") -> float:
    return float(np.array([0.2126, 0.7152, 0.0722]) @ np.clip(EYES[eye] @ linear(colour), 0, 1))


def contrast(first: str, second: str) -> float:
    """From 1 to 21. Source: WCAG 2.2, contrast ratio."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def lab(colour: str, eye: str) -> Floats:
    """CIE 1976 L*a*b* with the white point D65, as these eyes see it."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(to_xyz @ np.clip(EYES[eye] @ linear(colour), 0, 1) / [0.9505, 1.0, 1.089], 0.00886, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(first: str, second: str, eye: str) -> float:
    """Distance in L*a*b*: about 2 is just seen side by side."""
    return float(np.linalg.norm(lab(first, eye) - lab(second, eye)))


def faded(colour: str, behind: str, opacity: float) -> str:
    mixed = [round(opacity * int(colour[i : i + 2], 16) + (1 - opacity) * int(behind[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def test_contrast_of_black_on_white_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@SCHEMES
def test_words_can_be_read_on_what_they_stand_on(colours: Scheme) -> None:
    for words, ground in itertools.product(("text", "faint", "accent", "second"), ("background", "card")):
        assert contrast(getattr(colours, words), getattr(colours, ground)) >= 4.5, (words, ground)


@SCHEMES
def test_captions_can_be_read(colours: Scheme) -> None:
    assert contrast(faded(colours.text, colours.background, 0.6), colours.background) >= 4.5, "Streamlit draws them at 60 % opacity"


def test_no_primary_button_since_its_white_words_cannot_be_read_on_the_dark_scheme() -> None:
    assert contrast("#ffffff", DARK.accent) < 4.5
    found = [path.name for path in (ROOT / "viz").rglob("*.py") if re.search(r"type\s*=\s*[\"']primary", path.read_text("utf-8"))]
    assert found == [], "Streamlit writes white on the accent; use the default button"


@EACH_EYE
@SCHEMES
def test_a_larger_weight_is_never_lighter_nor_darker_the_wrong_way(colours: Scheme, eye: str) -> None:
    steps = np.diff([luminance(stop, eye) for stop in colours.weights])
    assert (np.sign(steps) == (-1 if colours is LIGHT else 1)).all(), steps


@EACH_EYE
@SCHEMES
def test_the_diverging_scale_has_its_extreme_luminance_in_the_middle(colours: Scheme, eye: str) -> None:
    levels = [luminance(stop, eye) for stop in colours.diverging]
    middle = len(levels) // 2
    away = -1 if colours is LIGHT else 1
    assert len(levels) % 2 == 1
    assert (np.sign(np.diff(levels[middle:])) == away).all()
    assert (np.sign(np.diff(levels[middle::-1])) == away).all()


@EACH_EYE
@SCHEMES
def test_neighbours_on_a_scale_look_different(colours: Scheme, eye: str) -> None:
    for scale in (colours.weights, colours.diverging):
        for first, second in itertools.pairwise(scale):
            assert difference(first, second, eye) >= 8, (first, second)


@EACH_EYE
@SCHEMES
def test_the_two_sides_of_the_diverging_scale_look_different(colours: Scheme, eye: str) -> None:
    for negative, positive in zip(colours.diverging, reversed(colours.diverging), strict=True):
        if negative != positive:
            assert difference(negative, positive, eye) >= 20, (negative, positive)


@EACH_EYE
@SCHEMES
def test_what_means_different_things_looks_different(colours: Scheme, eye: str) -> None:
    assert difference(colours.accent, colours.second, eye) >= 30
    assert difference(colours.masked, colours.weights[0], eye) >= 4, "a masked cell and a weight of 0"
    assert difference(colours.text, colours.faint, eye) >= 15


@pytest.mark.parametrize(("name", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_streamlit_gets_the_same_colours(name: str, colours: Scheme) -> None:
    section = dict(CONFIG["theme"][name])
    assert section.pop("sidebar") == {"backgroundColor": colours.background, "secondaryBackgroundColor": colours.card}
    assert section == {
        "primaryColor": colours.accent,
        "backgroundColor": colours.background,
        "secondaryBackgroundColor": colours.card,
        "textColor": colours.text,
        "linkColor": colours.accent,
        "borderColor": colours.line,
        "dataframeBorderColor": colours.line,
    }


def test_cards_on_the_page_have_the_cards_colour() -> None:
    style = (ROOT / "viz" / "widgets" / "page.css").read_text(encoding="utf-8")
    assert f'[class*="st-key-card-"] {{ background: light-dark({LIGHT.card}, {DARK.card});' in style


def test_the_page_follows_the_readers_scheme_and_fetches_no_font() -> None:
    assert not {"base", "font", "codeFont", "headingFont", "fontFaces"} & CONFIG["theme"].keys()


@pytest.mark.parametrize(
    ("section", "option", "value"),
    [
        ("server", "address", "127.0.0.1"),
        ("server", "fileWatcherType", "none"),
        ("server", "maxUploadSize", 128),
        ("server", "showEmailPrompt", False),
        ("runner", "postScriptGC", False),
        ("client", "showErrorDetails", "none"),
        ("client", "toolbarMode", "viewer"),
        ("browser", "gatherUsageStats", False),
    ],
)
def test_streamlit_takes_each_option(section: str, option: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit import config

    monkeypatch.chdir(ROOT)
    assert CONFIG[section][option] == value
    assert f"{section}.{option}" in config.get_config_options(force_reparse=True)
    assert config.get_option(f"{section}.{option}") == value


@SCHEMES
def test_allowed_and_masked_cells_of_a_mask_are_told_apart(colours: Scheme) -> None:
    assert contrast(colours.weights[ALLOWED], colours.masked) >= 3


def test_a_latin_font_comes_before_chinese_ones_where_the_language_is_not_chinese() -> None:
    """In the Chinese font of a machine without our first fonts, the apostrophe of "the speaker’s window" was as wide as a word."""
    for language in ("en", "de"):
        assert font(language).index("DejaVu Sans") < font(language).index("CJK")
    assert "DejaVu" not in font("zh-CN")
