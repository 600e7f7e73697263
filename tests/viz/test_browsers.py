"""The oldest browsers that work are those that docs/browsers.md names: they have what the scripts and styles use."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from viz.canvas.assets import BASE, OF_AN_ATLAS, OF_STRIPS

ROOT = Path(__file__).parents[2]
CANVAS = ROOT / "viz" / "canvas" / "frontend"
SAVED = (
    *BASE,
    *OF_STRIPS,
    *OF_AN_ATLAS,
    "page.js",
    "notebook.js",
    "common.css",
    "chips.css",
    "atlas.css",
    "page.css",
    "notebook.css",
)

Versions = tuple[float, float, float]
"""Of Chrome and Edge, of Firefox, of Safari."""

STYLES: dict[str, Versions] = {
    r"@container|container-type": (105, 110, 16),
    r"@layer": (99, 97, 15.4),
    r"@property": (85, 128, 16.4),
    r"@scope": (118, 146, 26.4),
    r"@starting-style": (117, 129, 17.5),
    r":focus-visible": (86, 85, 15.4),
    r":has\(": (105, 121, 15.4),
    r":(is|where)\(": (88, 78, 14),
    r":popover-open": (114, 125, 17),
    r"[{;]\s*&|\n\s*&": (120, 117, 17.2),
    r"accent-color:": (93, 92, 15.4),
    r"anchor-name:|position-anchor:": (125, 147, 26),
    r"aspect-ratio:": (88, 89, 15),
    r"color-mix\(": (111, 113, 16.2),
    r"\d[dsl]v[hw]\b": (108, 101, 15.4),
    r"field-sizing:": (123, 152, 26.2),
    r"\binset(-inline|-block)?:": (87, 66, 14.1),
    r"interpolate-size:": (129, 1000, 1000),
    r"light-dark\(": (123, 120, 17.5),
    r"overscroll-behavior:": (63, 59, 16),
}
"""Features of styles, by how they are written; not those without which a line breaks elsewhere, or a picture is not enlarged."""

SCRIPTS: dict[str, Versions] = {
    r"\?\?=|&&=|\|\|=": (85, 79, 14),
    r"\(\?<[=!]": (62, 78, 16.4),
    r"/[dgimsuy]*v[dgimsuy]*[,;).]": (112, 116, 17),
    r"\.at\(": (92, 90, 15.4),
    r"\.(findLast|findLastIndex)\(": (97, 104, 15.4),
    r"\.replaceAll\(": (85, 77, 13.1),
    r"\.(toSorted|toReversed|toSpliced)\(": (110, 115, 16),
    r"\.(union|intersection|symmetricDifference|isSubsetOf|isSupersetOf)\(": (122, 127, 17),
    r"\.(values|keys|entries)\(\)\.(map|filter|some|find|toArray|reduce)\(": (122, 131, 18.4),
    r"^(const .*= )?await |\n(const .*= )?.*\(await ": (89, 89, 15),
    r"static \{": (94, 93, 16.4),
    r"AbortSignal\.any": (116, 124, 17.4),
    r"AbortSignal\.timeout": (124, 100, 16),
    r"Array\.fromAsync": (121, 115, 16.4),
    r"DecompressionStream|CompressionStream": (80, 113, 16.4),
    r"Intl\.Segmenter": (87, 125, 14.1),
    r"Object\.groupBy|Map\.groupBy": (117, 119, 17.4),
    r"Object\.hasOwn": (93, 92, 15.4),
    r"Promise\.withResolvers": (119, 121, 17.4),
    r"Uint8Array\.fromBase64\(": (140, 133, 18.2),
    r"checkVisibility\(": (105, 106, 17.4),
    r"currentCSSZoom(?! \?\?)": (128, 126, 26.4),
    r"\.inert\b": (102, 112, 15.5),
    r"letterSpacing =": (99, 115, 18.4),
    r"roundRect\(": (99, 112, 16),
    r"showModal\(": (37, 98, 15.4),
    r"\.(showPopover|hidePopover)\(": (114, 125, 17),
    r"structuredClone\(": (98, 94, 15.4),
}
"""Features of scripts, by how they are written where nothing asks whether the browser has them (`node.checkVisibility?.()`)."""

ASKED = ("POPOVERS",)
"""What a line contains that asks first."""

OLD = set(
    """@keyframes @media @font-face ::-moz-progress-bar ::-webkit-details-marker ::-webkit-progress-bar ::-webkit-progress-value
    ::-webkit-slider-runnable-track ::-webkit-slider-thumb ::-moz-range-track ::-moz-range-thumb
    ::after ::backdrop ::before ::marker ::placeholder :active :checked :disabled :empty :enabled :first-child :focus
    :focus-within :host :hover
    :last-child :not :nth-child :nth-last-child :nth-of-type :only-child :root :target
    blur( calc( clamp( cubic-bezier( grayscale( inset( linear-gradient( max( min( minmax( not( nth-child( nth-last-child(
    repeat( rgb(
    rotate( scale( translate( url( var( and( host( format( attr(""".split()
)
"""Rules, pseudo-classes and functions that browsers have had since 2020."""


@cache
def text_of(path: Path) -> str:
    """A file without its comments and without the lines that ask first."""
    code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [re.sub(r"(^|\s)// .*", "", line) for line in code.splitlines()]
    return "\n".join(line for line in lines if not any(word in line for word in ASKED))


def features_of(path: Path) -> dict[str, Versions]:
    """What a file uses of both tables: scripts hold styles, too."""
    tables = STYLES if path.suffix == ".css" else SCRIPTS | {name: STYLES[name] for name in (r":has\(", r":popover-open")}
    return {name: versions for name, versions in tables.items() if re.search(name, text_of(path))}


def oldest(paths: Iterable[Path]) -> Versions:
    """The oldest versions that have what all of these files use."""
    used = [versions for path in paths for versions in features_of(path).values()]
    chrome, firefox, safari = (max(column) for column in zip(*used, strict=True))
    return chrome, firefox, safari


def written(*folders: str) -> list[Path]:
    """The scripts and styles of folders of viz."""
    found = [path for folder in folders for end in ("js", "css") for path in (ROOT / "viz" / folder).rglob(f"*.{end}")]
    return [path for path in found if "vendor" not in path.parts]


PARTS = {
    "a saved page": [CANVAS / name for name in SAVED],
    "lectures, on a projector and on phones": written("canvas/frontend", "features/lectures/presenter/frontend"),
    "the app": written("."),
}


@pytest.mark.parametrize("part", PARTS)
def test_docs_name_the_oldest_browsers_that_have_what_is_used(part: str) -> None:
    row = re.search(rf"^\| {part} \|(.*)\|$", (ROOT / "docs" / "browsers.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert row, part
    assert tuple(float(version) for version in row[1].split("|")) == oldest(PARTS[part]), {
        path.name: features_of(path) for path in PARTS[part] if features_of(path)
    }


def test_the_page_of_saved_pages_names_the_same_browsers() -> None:
    chrome, firefox, safari = (f"{version:g}" for version in oldest(PARTS["a saved page"]))
    words = f"Chrome and Edge from {chrome}, Firefox from {firefox}, Safari from {safari}"
    assert words in (ROOT / "docs" / "page.md").read_text(encoding="utf-8")


def test_styles_use_nothing_whose_age_is_unknown() -> None:
    known = OLD | {"@container", ":focus-visible", ":has", ":is", ":where", "has(", "is(", "where(", "color-mix(", "light-dark("}
    for path in written("."):
        if path.suffix == ".css":
            pseudo = r"(?<=[\w\])*\s,(>+~])::?[a-z-]+(?=[\s,{)(:.\[>])"
            names = {*re.findall(rf"@[a-z-]+|\b[a-z-]+\(|{pseudo}", re.sub(r":\s[^;{}]*;", ";", text_of(path)))}
            values = {*re.findall(r"[a-z-]+\(", text_of(path))}
            assert {name for name in names | values if name not in known} == set(), path.name


def test_a_feature_is_found_where_it_is_used_and_not_where_it_is_asked_for(tmp_path: Path) -> None:
    new, asked = tmp_path / "new.js", tmp_path / "asked.js"
    new.write_text("const sorted = words.toSorted(); // .at(-1)\nif (node.checkVisibility()) {}", encoding="utf-8")
    asked.write_text("const seen = node.checkVisibility?.() ?? true;\nif (POPOVERS) tip.showPopover();", encoding="utf-8")
    assert oldest([new]) == (110, 115, 17.4)
    assert features_of(asked) == {}
