"""Fields of the form of What if: what was typed is read as what was meant, or taken as a word that the error then names."""

import pytest

from viz.whatif.form_fields import typed_token


@pytest.mark.parametrize(
    ("typed", "token"), [("1", 0), ("12", 11), ("0", "0"), ("-1", "-1"), ("hund", "hund"), ("²", "²"), ("9" * 5000, "9" * 5000)]
)
def test_a_typed_token_is_a_position_or_a_word(typed: str, token: int | str) -> None:
    assert typed_token(typed) == token
