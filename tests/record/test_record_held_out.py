"""The comparison with held-out programs tells agreement from disagreement; the programs whose packages are here agree."""

import re

import pytest
import torch
from torch import Tensor, nn

from benchmarks import programs
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
    monkeypatch.setattr(programs, "PROGRAMS", {"one": ("a-package-that-is-not-there", by_hand)})
    assert list(programs.measure(1)) == []
    assert "one: skipped" in capsys.readouterr().err
