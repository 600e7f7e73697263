"""Snapshots of a training: NAME/snapshots/NNNNNN.safetensors, the weights of a checkpoint folder of our own after NNNNNN steps."""

import csv
import re
from pathlib import Path

from model.checkpoints.native import SPEC, TOKENIZER
from model.spec.snapshots import Losses

FOLDER, CURVE = "snapshots", "curve.csv"
_NAME = re.compile(r"[0-9]{6,12}", re.ASCII)


def steps(folder: Path) -> tuple[int, ...]:
    """After how many updates of the weights a snapshot was kept, in order; none where the folder has none."""
    found = (folder / FOLDER).glob("*.safetensors")
    return tuple(sorted(int(file.stem) for file in found if _NAME.fullmatch(file.stem)))


def path(folder: Path, step: int) -> Path:
    """Where the snapshot of a step is."""
    return folder / FOLDER / f"{step:06}.safetensors"


def folder_of(file: Path) -> Path | None:
    """The checkpoint folder whose snapshot is `file`; None: it is no snapshot."""
    folder = file.parent.parent
    return folder if file.parent.name == FOLDER and (folder / SPEC).is_file() else None


def files(folder: Path, file: Path) -> list[Path]:
    """The files that the snapshot `file` of a checkpoint folder is made of: its weights, and the folder's spec and tokenizer."""
    return [file, folder / SPEC, folder / TOKENIZER]


def losses(folder: Path) -> tuple[Losses, ...]:
    """The rows of the folder's curve.csv; none where there is none, or none that can be read."""
    try:
        with (folder / CURVE).open(encoding="utf-8", newline="") as file:
            rows = [
                Losses(int(row["step"]), float(row["train_loss"]), float(row["validation_loss"])) for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        return ()
    return tuple(rows)
