"""For tests of evaluation: few strings, since each is written token by token."""

from pathlib import Path

import pytest

from model.features.training.corpora import Reversal, Texts


@pytest.fixture
def few_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits are drawn as ever, and 60 strings of a split are taken."""
    whole = Reversal.texts

    def first(self: Reversal, folder: Path | None, split: str) -> Texts:
        return whole(self, folder, split)[:60]

    monkeypatch.setattr(Reversal, "texts", first)
