"""For tests of refusals: what must not happen meanwhile."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.safe_loading import reader
from tests.model.safe_loading.refused import MARKER


@pytest.fixture
def nothing_is_read_or_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Fails where a weight's bytes are read, a file stays behind or a payload has run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(reader, "_storage", lambda *_: pytest.fail("bytes of a refused file were read"))
    MARKER.unlink(missing_ok=True)
    yield
    assert list(tmp_path.iterdir()) == []
    assert not MARKER.exists()
