"""What `pip install .` makes of this repository: one package, `headlight`. The packages that the app needs are those of
requirements.txt.

    headlight/__init__.py    what `import headlight` gives
    headlight/command.py     the command `headlight`
    headlight/recorder.py    headlight.py, as it is
    headlight/viewer/        what draws a run in a notebook, made of model and viz by viewer.py beside this file
    headlight/app/           app.py, model, viz and the data beside them, as they are

`model` and `viz` are common names: they lie below `headlight/app`, where no import of somebody else's program finds them.
"""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


def pinned(requirements: Path) -> list[str]:
    """The requirements of a file, without its comments."""
    lines = (line.partition("#")[0].strip() for line in requirements.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


class AppRequirements(MetadataHookInterface):
    """The extra `app`: the versions that the tests run with."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the extra to what pyproject.toml says."""
        metadata["optional-dependencies"] = {"app": pinned(Path(self.root) / "requirements.txt")}


class Viewer(BuildHookInterface[Any]):
    """Makes the viewer for the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes it into a folder, which the wheel gets."""
        self.folder = tempfile.TemporaryDirectory()
        runpy.run_path(str(Path(self.root) / "package" / "viewer.py"))["write"](Path(self.folder.name))
        build_data["force_include"][self.folder.name] = "headlight/viewer"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the folder."""
        self.folder.cleanup()
