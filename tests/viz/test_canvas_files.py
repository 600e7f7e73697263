"""The JavaScript and CSS of the drawings: what a reader of the page must be able to rely on."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from viz import canvas, features
from viz.canvas import assets
from viz.canvas.scenes import continuations, sound
from viz.canvas.wire import strings
from viz.features.training import texts as training

FOLDER = Path(canvas.__file__).parent / "frontend"
FEATURES = Path(features.__file__).parent
SCRIPTS = sorted((*FOLDER.glob("*.js"), *FEATURES.glob("*/frontend/*.js")))
BY_NAME = {path.name: path for path in SCRIPTS}
USES: dict[str, Callable[[], dict[str, str]]] = {
    "chips.js": strings.strips,
    "atlas.js": strings.atlas,
    "film.js": lambda: strings.atlas() | training.film(),
    "large.js": strings.atlas,
    "paint.js": strings.atlas,
    "lines.js": strings.lines,
    "player.js": strings.player,
    "tree.js": strings.tree,
    "next.js": continuations.texts,
    "sound.js": sound.texts,
    "transport.js": strings.player,
}


FETCHES = {
    "part_fetcher.js": "fetch(address, { signal })",
    "cells.js": "fetch(asked, { signal })",  # the calculation of a cell, from the app's own route
    "circuit.js": "import(new URL(address, location.href).href)",  # a library that lies beside it, from the app
}


def test_no_text_can_become_markup() -> None:
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser")
    assert [path.name for path in SCRIPTS if markup.search(path.read_text(encoding="utf-8"))] == []


def test_nothing_is_fetched_but_parts_of_scenes_from_the_apps_own_route() -> None:
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        text = text.replace(FETCHES.get(path.name, "nothing else"), "")
        assert not re.search(r"https?://|fetch\(|XMLHttpRequest|import\(|^import ", text, re.MULTILINE), path.name


@pytest.mark.parametrize("name", USES)
def test_every_sentence_that_a_script_asks_for_is_there(name: str) -> None:
    asked = set(re.findall(r"\btexts\.(\w+)", BY_NAME[name].read_text(encoding="utf-8")))
    assert asked, f"{name} is said to use sentences and uses none"
    assert asked <= USES[name]().keys()


def test_the_player_has_what_chips_and_maps_ask_for() -> None:
    for name in ("chips.js", "paint.js"):
        asked = set(re.findall(r"\btexts\.(\w+)", BY_NAME[name].read_text(encoding="utf-8")))
        assert asked <= strings.player().keys()


@pytest.mark.parametrize(
    "texts",
    [strings.strips, strings.atlas, training.film, strings.lines, strings.player, strings.tree, continuations.texts, sound.texts],
    ids=lambda texts: texts.__name__,
)
def test_every_sentence_is_asked_for(texts: Callable[[], dict[str, str]]) -> None:
    scripts = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    unused = [name for name in texts() if not re.search(rf"\b{name}\b", scripts)]
    assert unused == []


def test_a_pixel_of_a_style_is_one_of_the_drawing_and_one_of_a_query_for_the_window_is_not() -> None:
    styles = "@media (max-width: 640px) { .a { margin: -4px 1.5px; width: calc(100vh - 180px) } }"
    assert assets.enlarged(styles) == (
        "@media (max-width: 640px) { .a { margin: calc(-4px * var(--headlight-scale, 1)) calc(1.5px * var(--headlight-scale, 1)); "
        "width: calc(100vh - calc(180px * var(--headlight-scale, 1))) } }"
    )


@pytest.mark.parametrize("kind", assets.kinds())
def test_no_length_of_a_drawing_stays_as_it_is_when_the_drawing_is_enlarged(kind: str) -> None:
    """A query for the size of a container counts in letters, which are enlarged: its pixels would be those of the window."""
    styles = re.sub(r"/\*.*?\*/|@media[^{]*|calc\(-?[\d.]+px \* var\(--headlight-scale, 1\)\)", "", assets.component(kind)["css"])
    assert re.findall(r"[^;{]*px", styles) == []


def test_nothing_is_enlarged_by_what_each_browser_understands_otherwise() -> None:
    sources = [
        path
        for ending in ("css", "js", "py", "html")
        for path in FOLDER.parents[1].rglob(f"*.{ending}")
        if "vendor" not in path.parts
    ]
    assert [
        path.name
        for path in sources
        if re.search(r"[\s{;]zoom:\s*[\d.v]|currentCSSZoom|style\.zoom", path.read_text(encoding="utf-8"))
    ] == []
