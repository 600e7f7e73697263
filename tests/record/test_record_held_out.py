"""The comparison with held-out programs tells agreement from disagreement; the programs whose packages are here agree."""

import re

import pytest
import torch
from torch import Tensor, nn

from benchmarks import families, programs
from benchmarks.held_out import PROGRAMS, ByHand, by_hand

HERE = [title for title, (package, _make) in PROGRAMS.items() if package == "torch"]
HERE += ["transformers BERT, sdpa", "transformers T5, eager"]


@pytest.mark.parametrize("title", HERE)
def test_a_program_agrees_with_what_its_library_gives(title: str) -> None:
    package, make = PROGRAMS[title]
    note = programs.compared(title, package, make, 1).note
    found = re.search(r"off by (\S+?);", note)
    assert found, note
    assert float(found[1]) < 1e-5


def test_other_weights_are_told() -> None:
    def wrong() -> tuple[nn.Module, object, object]:
        model, call, reference = by_hand()
        return model, call, lambda: [own + 0.5 for own in reference()]

    assert "off by 5e-01" in programs.compared("", "", wrong, 1).note  # type: ignore[arg-type]


def test_a_site_too_few_is_told() -> None:
    class Twice(ByHand):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            super().forward(x)
            return super().forward(x)

    model, x = Twice(), torch.randn(1, 4, 16)
    row = programs.compared("", "here", lambda: (model, lambda: model(x), lambda: [model(x)[1]]), 1)
    assert row.note.startswith("here: 2 of 1 sites")


def test_a_package_that_is_not_there_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(families, "FAMILIES", ())
    monkeypatch.setattr(programs, "PROGRAMS", {"one": ("a-package-that-is-not-there", by_hand)})
    assert [row.note.strip() for row in programs.measure(1)] == ["0 agree within 1e-5."]
    assert "one: skipped" in capsys.readouterr().err


@pytest.mark.parametrize("family", ["albert", "bloom", "gptj", "longformer"])
def test_an_architecture_without_a_row_of_ours_is_compared_with_its_eager_maps(family: str) -> None:
    """Longformer cuts its weights into blocks after the softmax: they are not taken for something else."""
    assert families.compared(family) == ("0 of 2 sites" if family == "longformer" else "")
