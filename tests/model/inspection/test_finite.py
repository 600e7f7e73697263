"""A file whose numbers are not finite runs on the command line with a warning, as the app says so."""

from pathlib import Path

import pytest
import torch

from model.__main__ import main
from tests.reference import GOLDEN, SETTINGS

NAME = "000_tiny_a"
TOLD = [part for item in SETTINGS[NAME].items() for part in ("--set", "=".join(item))]


def all_nan(folder: Path, value: float = torch.nan) -> Path:
    state = torch.load(GOLDEN / f"{NAME}.pt", weights_only=True)
    torch.save({name: torch.full_like(tensor, value) for name, tensor in state.items()}, folder / "a.pt")
    return folder / "a.pt"


def run(path: Path, folder: Path) -> int:
    return main(["run", str(path), *TOLD, "--source-ids", "2,5,3", "--target-ids", "2,7", "--out", str(folder / "t")])


def test_an_all_nan_file_ran_without_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(all_nan(tmp_path), tmp_path) == 0
    assert capsys.readouterr().err == (
        "Warning: This run produced NaN or infinite values, so there is nothing to draw. Weights of the model are not finite "
        "(`inspect` lists them), or so large that a result does not fit into float32.\n"
    )
    assert main(["inspect", str(tmp_path / "a.pt"), *TOLD]) == 0
    said = capsys.readouterr().err
    assert said.startswith("Warning: ")
    assert " NaN and 0 infinite values; " in said
    assert said.endswith("everything computed from them will not be finite either.\n")


def test_weights_that_are_finite_and_too_large_for_the_sums_are_not_called_infinite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(all_nan(tmp_path, 1e30), tmp_path) == 0
    assert "so large that a result does not fit into float32" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "a.pt"), *TOLD]) == 0
    assert "infinite values" not in capsys.readouterr().err


def test_a_finite_file_has_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(GOLDEN / f"{NAME}.pt", tmp_path) == 0
    assert main(["inspect", str(GOLDEN / f"{NAME}.pt"), *TOLD]) == 0
    assert capsys.readouterr().err == ""
