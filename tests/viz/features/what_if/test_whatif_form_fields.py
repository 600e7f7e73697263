"""Fields of the form of What if: what was typed is read as what was meant, or taken as a word that the error then names."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.traces import encoder
from viz.features.what_if import form_fields
from viz.features.what_if.form_fields import typed_token


@pytest.mark.parametrize(
    ("typed", "token"), [("1", 0), ("12", 11), ("0", "0"), ("-1", "-1"), ("hund", "hund"), ("²", "²"), ("9" * 5000, "9" * 5000)]
)
def test_a_typed_token_is_a_position_or_a_word(typed: str, token: int | str) -> None:
    assert typed_token(typed) == token


@pytest.mark.parametrize(("missing", "offered"), [({}, 4), ({"stages": "the library does not expose them"}, 2)])
def test_a_sublayer_is_offered_only_if_it_can_be_skipped(
    monkeypatch: pytest.MonkeyPatch, missing: dict[str, str], offered: int
) -> None:
    titles = dict[str, str]()
    monkeypatch.setattr(form_fields, "choice", lambda name, label, found: titles.update(found))
    trace = replace(encoder(layers=2, heads=1, tokens=3), missing=missing)
    form_fields.sublayer(SimpleNamespace(trace=trace))  # type: ignore[arg-type]  # of the page, only the trace
    assert len(titles) == offered
    assert ("encoder.0.1.feed_forward" in titles) == (not missing)
