"""What a feature may bring to the app. The core imports no feature: it asks here for what all of them bring together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

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
    """

    path: str
    title: str
    icon: str
    show: Callable[..., None]
    opens_on: Callable[[Any], Any] | None = None
    unedited: bool = False
    needs_run: bool = True


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Everything that one feature brings.

    Attributes:
        pages: its pages, in their order in the navigation.
        parameters: a frozen dataclass whose fields are URL parameters; a page reads them with `ViewState.of`.
        help: the help of its panels by their names: title, sentences, and a page of docs/.
        drawings: the files of its drawings by the name of their JavaScript class.
    """

    pages: tuple[FeaturePage, ...] = ()
    parameters: type | None = None
    help: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    drawings: Mapping[str, DrawingFiles] = field(default_factory=dict)


@cache
def features() -> tuple[Feature, ...]:
    """What the features bring, in the order of viz/features/__init__.py, the only list of their names."""
    names: tuple[str, ...] = import_module("viz.features").FEATURES
    return tuple(import_module(f"viz.features.{name}.feature").FEATURE for name in names)
