"""Slots for opening files: given back whatever happened."""

import pytest

from model.engine import shared_uploads
from model.engine.shared_uploads import OpeningSlots
from model.errors import TookTooLong


def test_slots_are_given_back_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_uploads, "SLOT_SECONDS", 0.01)
    slots = OpeningSlots(1)
    with pytest.raises(KeyError), slots:
        raise KeyError
    with slots, pytest.raises(TookTooLong), slots:
        pass
    with slots:
        pass
