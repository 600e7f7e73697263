"""The address in captions of exports: one that others can open, or none."""

from types import SimpleNamespace

import pytest

from viz import page
from viz.links import View


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
    monkeypatch.setattr("viz.page.st.context", SimpleNamespace(url=url))
    monkeypatch.setattr(page, "current_view", lambda: (View(text="ein hund"), []))
    assert page.address() == captioned
