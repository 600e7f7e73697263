"""Codes of classes: their first character names the process that holds the class, where there are several."""

import pytest

from model.errors import BadSetting
from viz.features.lectures.classroom.join_codes import ALPHABET, new_code, read_code


def test_a_code_begins_with_the_name_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_PROCESS", "2")
    found = {new_code() for _ in range(50)}
    assert {code[0] for code in found} == {"2"}
    assert len(found) == 50
    assert all(read_code(code) == code for code in found)
    monkeypatch.delenv("HEADLIGHT_PROCESS")
    assert len({new_code()[0] for _ in range(200)}) > 10


@pytest.mark.parametrize("asked", ["12", "a", "I", "-", "²"])
def test_another_name_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_PROCESS", asked)
    assert asked not in ALPHABET or len(asked) > 1
    with pytest.raises(BadSetting, match="HEADLIGHT_PROCESS"):
        new_code()
