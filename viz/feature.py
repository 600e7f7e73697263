"""What a feature may bring to the app. The core imports no feature: it asks here for what all of them bring together."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from model.feature import listed

if TYPE_CHECKING:
    from starlette.routing import Route

Place: TypeAlias = Literal["steps", "stage", "masks", "sentence", "run", "sidebar", "help", "picture", "export"]
"""Where a page of the core draws what features bring; `Feature.parts` says what each is given."""

DrawingFiles: TypeAlias = tuple[tuple[str | Path, ...], tuple[str | Path, ...]]
"""The JavaScript files and the CSS files of a drawing: names in viz/canvas/frontend, or whole paths of a feature's own."""


@dataclass(frozen=True, kw_only=True)
class FeaturePage:
    """A page in the navigation.

    Attributes:
        path: the path of its URL.
        title: its name in English, marked with `N_`.
        icon: the name of a Material icon.
        show: draws it, given a `viz.session.state.Page`; without a run, given nothing.
        opens_on: the attention site that it opens on; None: the last cross-attention.
        unedited: whether it gets the run without the view's edits, which it then makes itself.
        needs_run: whether it is drawn from a run, with the sentence box above it.
        panels: what a link to it shows, as of `viz.views.page_panels.PagePanels`; None: it has no panels.
        parts: its parts by their names in a link's `open`: their `viz.panels.Panel`s, given a page and the link.
        pictures: names of its pictures that fill the screen in big mode, as in a link's `picture`.
        about_heads: what it tells of heads, as of PagePanels; None: nothing.
    """

    path: str
    title: str
    icon: str
    show: Callable[..., None]
    opens_on: Callable[[Any], Any] | None = None
    unedited: bool = False
    needs_run: bool = True
    panels: Callable[[Any, Any], list[Any]] | None = None
    parts: Mapping[str, Callable[[Any, Any], Iterable[Any]]] = field(default_factory=dict)
    pictures: tuple[str, ...] = ()
    about_heads: Callable[..., str] | None = None


@dataclass(frozen=True, kw_only=True)
class FoldedPart:
    """A part of Explore that opens below its pictures.

    Attributes:
        name: its name in a link's `open`.
        title: above it, in English, marked with `N_`.
        icon: the name of a Material icon.
        draw: draws it, given the page, while it is open.
        link: a sentence below the statistics of the selected head that leads to it, given the page; empty: there is none.
        panels: what a lecture shows of it, given the page: `viz.panels.Panel`s; None: nothing.
        parts: the same for parts of it, by their own names in a link's `open`.
    """

    name: str
    title: str
    icon: str
    draw: Callable[[Any], None]
    link: Callable[[Any], str] = lambda page: ""
    panels: Callable[[Any], list[Any]] | None = None
    parts: Mapping[str, Callable[[Any], list[Any]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CellPanel:
    """A panel of a cell, beside the one that says how its weight was calculated.

    Attributes:
        name: the value of a link's `cell`.
        title: in English, marked with `N_`.
        draw: draws it, given the page, and the query and the key of the cell.
        reset: fields that closing the cell resets, with their defaults.
        panels: what a lecture shows of it, given the same: `viz.panels.Panel`s; None: how the weight was calculated.
    """

    name: str
    title: str
    draw: Callable[[Any, int, int], None]
    reset: Mapping[str, Any] = field(default_factory=dict)
    panels: Callable[[Any, int, int], list[Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Everything that one feature brings.

    Attributes:
        pages: its pages, in their order in the navigation.
        parts: what it draws in pages of the core, by the place: `steps`, below the steps of a decode, given the page; `stage`,
            below a stage of the computation, given the page and its run; `masks`, below the masks, given the page and how they
            are written; `sentence`, beside the sentence box of Explore; `run`, before each run of Explore, given the model and the
            view; `sidebar`, in the sidebar of a page that has panels, given the path of its URL; `help`, at the end of the sidebar;
            `picture`, beside a picture, given a `viz.panels.Picture`; `export`, below the pictures of Explore, given the page and
            the reading that is shown (`viz.views.explore.reading.SiteReading`).
        instead: draws what a session sees in place of Explore, given the page; False: Explore is drawn.
        folded: parts of Explore that open below its pictures.
        opens: names of parts in a link's `open`, beside those of `folded` and of `pages`.
        panels: what a lecture shows of `parts`, by the place and by the names of `opens`: `viz.panels.Panel`s, given the page.
        cell_panels: panels of a cell.
        cell_words: how the drawing of the selected head asks what its cells write: a `viz.canvas.scenes.attention.Asks`, given the
            page; None where nobody answers.
        saved_sums: sums that an archive of the run keeps, by their names, given the page.
        claims: kinds of claims of lectures by their word: `viz.claims.kinds.ClaimKind`s.
        second_view: the view of side B of a view, for claims about it; a view without one is its own.
        parameters: a frozen dataclass whose fields are URL parameters; a page reads them with `ViewState.of`.
        help: the help of its panels by their names: title, sentences, and a page of docs/.
        drawings: the files of its drawings by the name of their JavaScript class.
        routes: what the server answers for it.
        settings: read its settings when the server starts; each raises an error if its setting is not valid.
        starts: called after that, on the event loop of the server.
        ends: called when the server ends.
    """

    pages: tuple[FeaturePage, ...] = ()
    parts: Mapping[Place, Callable[..., None]] = field(default_factory=dict)
    instead: Callable[[Any], bool] | None = None
    folded: tuple[FoldedPart, ...] = ()
    opens: tuple[str, ...] = ()
    panels: Mapping[str, Mapping[str, Callable[[Any], Iterable[Any]]]] = field(default_factory=dict)
    cell_panels: tuple[CellPanel, ...] = ()
    cell_words: Callable[[Any], Any] | None = None
    saved_sums: Callable[[Any], Mapping[str, Mapping[str, Any]]] | None = None
    claims: Mapping[str, Any] = field(default_factory=dict)
    second_view: Callable[[Any], Any] | None = None
    parameters: type | None = None
    help: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    drawings: Mapping[str, DrawingFiles] = field(default_factory=dict)
    routes: "tuple[Route, ...]" = ()
    settings: tuple[Callable[[], object], ...] = ()
    starts: tuple[Callable[[], object], ...] = ()
    ends: tuple[Callable[[], object], ...] = ()


@cache
def features() -> tuple[Feature, ...]:
    """What the features bring, in the order of viz/features/__init__.py, the only list of their names."""
    names = listed("model.features", "viz.features")
    return tuple(import_module(f"viz.features.{name}.feature").FEATURE for name in names)


def draw_parts(place: Place, *given: Any) -> None:
    """Draws what features bring to a place of a page.

    Args:
        given: what the place gives them, as `Feature.parts` says.
    """
    for feature in features():
        if place in feature.parts:
            feature.parts[place](*given)


def folded_parts() -> tuple[FoldedPart, ...]:
    """The parts of Explore that features bring."""
    return tuple(part for feature in features() for part in feature.folded)


def cell_panels() -> dict[str, CellPanel]:
    """The panels of a cell that features bring, by their names."""
    return {panel.name: panel for feature in features() for panel in feature.cell_panels}


def panels_of_parts(place: Literal["steps", "masks"], page: Any) -> list[Any]:
    """The panels of the parts that a link opens in a place of a page, as `Feature.panels` brings them."""
    opened = page.view.opened.split()
    parts = [(name, part) for feature in features() for name, part in feature.panels.get(place, {}).items()]
    return [panel for name, part in parts if name in opened for panel in part(page)]
