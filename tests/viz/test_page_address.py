"""The address in captions of exports: one that others can open, or none."""

from types import SimpleNamespace

import pytest

from viz.session import state
from viz.url.view_state import ViewState


@pytest.mark.parametrize(
    ("url", "captioned"),
    [
        ("http://127.0.0.1:8501/step", ""),
        ("http://localhost:8501/", ""),
        ("http://[::1]:8501/", ""),
        ("", ""),
        ("https://headlight.example/step?text=old", "https://headlight.example/step?text=ein+hund"),
    ],
)
def test_a_caption_names_no_address_that_means_another_machine_to_each_reader(
    monkeypatch: pytest.MonkeyPatch, url: str, captioned: str
) -> None:
    monkeypatch.setattr("viz.widgets.cards.st.context", SimpleNamespace(url=url))
    monkeypatch.setattr(state, "get_view_state", lambda: (ViewState(text="ein hund"), []))
    assert state.address() == captioned
