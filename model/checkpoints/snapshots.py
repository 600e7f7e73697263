"""Snapshots of a training: NAME/snapshots/NNNNNN.safetensors, the weights of a native folder after NNNNNN steps."""

import csv
import re
from pathlib import Path

from model.checkpoints.native import SPEC, TOKENIZER
from model.spec.snapshots import Losses

FOLDER, CURVE = "snapshots", "curve.csv"
_NAME = re.compile(r"[0-9]{6,12}", re.ASCII)


def steps(folder: Path) -> tuple[int, ...]:
    """Training steps with a snapshot, sorted; empty if the folder has none."""
    found = (folder / FOLDER).glob("*.safetensors")
    return tuple(sorted(int(file.stem) for file in found if _NAME.fullmatch(file.stem)))


def path(folder: Path, step: int) -> Path:
    """The path of a step's snapshot."""
    return folder / FOLDER / f"{step:06}.safetensors"


def folder_of(file: Path) -> Path | None:
    """The checkpoint folder of the snapshot `file`; None: it is not a snapshot."""
    folder = file.parent.parent
    return folder if file.parent.name == FOLDER and (folder / SPEC).is_file() else None


def files(folder: Path, file: Path) -> list[Path]:
    """The files of the snapshot `file`: its weights, and the folder's spec and tokenizer."""
    return [file, folder / SPEC, folder / TOKENIZER]


def losses(folder: Path) -> tuple[Losses, ...]:
    """The rows of the folder's curve.csv; empty if it is missing or unreadable."""
    try:
        with (folder / CURVE).open(encoding="utf-8", newline="") as file:
            rows = [
                Losses(int(row["step"]), float(row["train_loss"]), float(row["validation_loss"])) for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        return ()
    return tuple(rows)
