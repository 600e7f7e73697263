"""The lectures of this machine: those of `lectures/` and those of the folder HEADLIGHT_LECTURES."""

import os
import re
from pathlib import Path

from model.engine.api import Engine, Models
from model.errors import BadLecture, StillOpening
from viz.features.lectures.script import parser
from viz.features.lectures.script.lecture import Lecture
from viz.i18n.translate import _

BUNDLED = Path(__file__).parents[4] / "lectures"
VARIABLE = "HEADLIGHT_LECTURES"
MOST_FILES = 200
"""Most lectures of a folder."""

LONGEST_NAME = 80
"""Most characters of a name."""

_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")


def files() -> dict[str, Path]:
    """The files of all lectures by name, such as `attention.en`. A file of the own folder replaces a bundled one of its name."""
    folders = [BUNDLED, *([Path(configured)] if (configured := os.environ.get(VARIABLE)) else [])]
    paths: dict[str, Path] = {}
    for folder in folders:
        paths |= {path.stem: path for path in sorted(folder.glob("*.md"))[:MOST_FILES] if is_name(path.stem)}
    return paths


def is_name(name: str) -> bool:
    """Whether a lecture can have this name: letters, digits, - and _, with dots between them."""
    return _NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME


def load(name: str) -> Lecture:
    """The lecture of a name.

    Raises:
        BadLecture: there is none, or it cannot be read.
    """
    paths = files()
    if name not in paths:
        raise BadLecture(lecture=name[:80], line=1, reason=_("there is no such file; available: {there}", there=", ".join(paths)))
    return open_file(paths[name])


def models_here(lecture: Lecture, engine: Engine) -> frozenset[str]:
    """The models that steps depend on (`needs`, `unless`) and that the engine can run. One that is still being opened is there.

    Raises:
        EngineAway: the engine does not answer.
    """
    asked = {name for step in lecture.steps for name in (*step.needs, *step.unless)}
    infos = engine.ask(Models()).models if asked else ()
    usable = {info.name for info in infos if not info.problem or info.problem.get("error") == StillOpening.__name__}
    return frozenset(asked & usable)


def open_file(path: Path) -> Lecture:
    """The lecture in a file.

    Raises:
        BadLecture: it cannot be read.
    """
    return parser.read(text_of(path), path.stem)


def text_of(path: Path) -> str:
    """The text of a file.

    Raises:
        BadLecture: it cannot be read, is too large, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(parser.LARGEST + 1)
    except OSError as error:
        raise BadLecture(lecture=str(path), line=1, reason=error.strerror or str(error)) from error
    return parser.decode(data, path.stem)
