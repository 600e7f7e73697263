"""Records of a training: one row for each epoch in curve.csv and in TensorBoard, and snapshots of the weights."""

import csv
from collections.abc import Mapping
from pathlib import Path

from tensorboardX import SummaryWriter
from torch import Tensor

from model.checkpoints.native import save_weights

COLUMNS = ("epoch", "step", "train_loss", "validation_loss", "validation_ppl", "learning_rate", "tokens_per_second", "seconds")
"""Columns of curve.csv. Losses are in nats per target token (training with label smoothing and dropout, validation without)."""

SNAPSHOTS, FIRST, COUNT = "snapshots", 512, 14


def board(out: Path, writes: bool) -> SummaryWriter:
    """The TensorBoard writer of OUT/logs; with `writes` False it discards everything."""
    return SummaryWriter(str(out / "logs"), write_to_disk=writes)


def log(out: Path, events: SummaryWriter, row: tuple[int, *tuple[float, ...]]) -> None:
    """Adds one epoch's row. Rows of this and later epochs, left by a training that was killed or by an older one, are replaced."""
    path = out / "curve.csv"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    before = {str(epoch) for epoch in range(1, row[0])}
    kept = [earlier for earlier in csv.reader(lines) if earlier and earlier[0] in before]
    fresh = path.with_suffix(".part")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *kept, row])
    fresh.replace(path)
    for name, value in zip(COLUMNS[1:], row[1:], strict=True):
        events.add_scalar(name, value, row[0])
    events.flush()


def snapshot_steps(total: int) -> frozenset[int]:
    """The steps, out of `total`, after which a snapshot is saved: 0, then at ever longer intervals up to the last.

    They form a geometric sequence from total / 512 to total.
    """
    return frozenset({0, *(max(1, round(total / FIRST ** (1 - i / (COUNT - 2)))) for i in range(COUNT - 1))})


def keep_snapshot(out: Path, step: int, weights: Mapping[str, Tensor]) -> None:
    """Saves a snapshot, the weights after `step` updates: OUT/snapshots/NNNNNN.safetensors, float16.

    The first snapshot of a training deletes those of an older training.
    """
    folder = out / SNAPSHOTS
    folder.mkdir(parents=True, exist_ok=True)
    if step == 0:
        for old in folder.glob("[0-9]" * 6 + ".safetensors"):
            old.unlink()
    save_weights(folder / f"{step:06}.safetensors", weights)
