"""Slots for opening files: given back whatever happened."""

import pytest

from model.engine import opening_slots
from model.engine.opening_slots import OpeningSlots
from model.errors import TookTooLong


def test_slots_are_given_back_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening_slots, "SLOT_SECONDS", 0.01)
    slots = OpeningSlots(1)
    with pytest.raises(KeyError), slots:
        raise KeyError
    with slots, pytest.raises(TookTooLong), slots:
        pass
    with slots:
        pass
