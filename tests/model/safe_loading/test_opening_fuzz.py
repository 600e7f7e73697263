"""Mutated files. HEADLIGHT_FUZZ=5000 opens more of them than the few of every day."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from model.errors import CheckpointError
from model.safe_loading.reader import read_upload
from tests.model.safe_loading.fuzz import MARKER, files, seeds

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
COUNT = int(os.environ.get("HEADLIGHT_FUZZ", "300"))


def test_mutated_files_are_opened_or_refused_and_nothing_else_happens() -> None:
    """In a process of its own, with a limit on its memory and every audit event counted."""
    command = [sys.executable, "-m", "tests.model.safe_loading.fuzz", str(COUNT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout)
    print(outcomes)
    assert sum(outcomes.values()) >= COUNT * 0.9
    assert sum(count for name, count in outcomes.items() if name.startswith("opened as ")) > COUNT * 0.02
    assert {"DamagedFile", "NotACheckpoint", "UnsafeFile", "UnsoundFile"} <= outcomes.keys()


def test_mutated_files_go_the_whole_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Through the other process."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outcomes = Counter[str]()

    @settings(max_examples=max(20, COUNT // 20), suppress_health_check=list(HealthCheck))
    @given(files(seeds()))
    def one(data: bytes) -> None:
        try:
            outcomes[f"opened as {read_upload(data, 'x.pt').format}"] += 1
        except CheckpointError as error:
            outcomes[type(error).__name__] += 1

    one()
    print(dict(outcomes))
    assert len(outcomes) > 3
    assert not MARKER.exists()
    assert list(tmp_path.iterdir()) == []
