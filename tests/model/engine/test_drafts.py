"""An engine drafts with what the same session's last run of the same network wrote."""

from pathlib import Path

import pytest

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.engine.scheduling.queue import NOBODY, Session, in_session
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace
from tests.networks import save_checkpoint
from tests.runs import CPU, assert_same

MINE, YOURS = Session("mine"), Session("yours")


@pytest.fixture
def engine(tmp_path: Path) -> LocalEngine:
    for seed, name in enumerate(("one", "other")):
        save_checkpoint(tmp_path / name, seed=seed)
    return LocalEngine(tmp_path, CPU, cache_bytes=0)


def ran(engine: LocalEngine, session: Session, model: str = "one", source: str = "w4 w6 w5", seed: int = 3) -> Trace:
    """A long sampled text: the same for the same seed and source."""
    with in_session(session):
        return engine.ask(Run(RunRequest(model, source, decoding=Decoding("sample", max_length=12, seed=seed, temperature=3.0))))


def test_the_next_run_of_a_session_is_drafted_and_shows_the_same(engine: LocalEngine) -> None:
    first, second = ran(engine, MINE), ran(engine, MINE)
    assert len(first.steps) > 5
    assert "drafted" not in first.model
    assert second.model["drafted"] > 2
    assert_same(second, first)


def test_a_page_and_what_is_typed_on_it_draft_for_each_other(engine: LocalEngine) -> None:
    ran(engine, MINE)
    assert ran(engine, MINE.typing).model["drafted"] > 2
    ran(engine, YOURS.typing)
    assert ran(engine, YOURS).model["drafted"] > 2


def test_no_other_session_no_other_model_and_nobody_is_drafted_with_it(engine: LocalEngine) -> None:
    ran(engine, MINE)
    for session, model in ((YOURS, "one"), (Session("mine/yours"), "one"), (MINE, "other"), (NOBODY, "one"), (NOBODY, "one")):
        assert "drafted" not in ran(engine, session, model).model


def test_weights_that_were_replaced_are_not_drafted_with_the_text_of_the_older_ones(engine: LocalEngine, tmp_path: Path) -> None:
    ran(engine, MINE)
    save_checkpoint(tmp_path / "one", seed=5)
    assert "drafted" not in ran(engine, MINE).model
