"""Questions about what mattered take longer than a run: they say how far they are, can be stopped, and let others go between."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from model.engine.api import Run, SharedEngine
from model.engine.local import LocalEngine
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, CancelToken
from model.features.what_if.questions import Heads, Prune, Words
from model.requests.request import Decoding, RunRequest
from model.trace.progress import LISTENER, Listener, Progress
from tests.hosts import served
from tests.patience import HANG_S, settled
from tests.runs import for_session

REQUEST = RunRequest("tiny", "w4 w5 w6", decoding=Decoding(max_length=4))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_BATCH", "1")


@contextmanager
def heard(listener: Listener, token: CancelToken | None = None) -> Iterator[None]:
    """What this thread asks is heard by `listener`, and `token` can stop it."""
    before, cancel = LISTENER.set(listener), CANCEL_TOKEN.set(token)
    try:
        yield
    finally:
        LISTENER.reset(before)
        CANCEL_TOKEN.reset(cancel)


@pytest.mark.parametrize("question", [Heads(REQUEST), Prune(REQUEST), Words(REQUEST)], ids=lambda each: type(each).__name__)
def test_a_question_says_how_much_is_measured(local: LocalEngine, question: Any) -> None:
    progress: list[Progress] = []
    with heard(progress.append):
        local.ask(question)
    measured = [each for each in progress if each.measured]
    assert measured
    assert [each.done for each in measured] == sorted(each.done for each in measured)
    assert measured[-1].done == measured[-1].most


def test_progress_arrives_over_http(local: LocalEngine) -> None:
    progress: list[Progress] = []
    with served(local) as remote:
        with heard(progress.append, CancelToken()):
            found = remote.ask(Prune(REQUEST))
        assert found.order == local.ask(Prune(REQUEST)).order
    assert all(each.measured <= each.most for each in progress if each.measured)


def stopped(engine: SharedEngine) -> None:
    token = CancelToken()

    def stop(progress: Progress) -> None:
        if progress.measured:
            token.cancel()

    with heard(stop, token), pytest.raises(CallerGone):
        engine.ask(Prune(REQUEST))


def test_a_question_that_nobody_waits_for_ends(local: LocalEngine) -> None:
    stopped(local)
    settled(lambda: not local.scheduler.running)  # the run ends at its next call of the network


def test_others_get_their_turn_while_a_question_is_measured(local: LocalEngine) -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def hold(progress: Progress) -> None:
        if progress.measured:
            begun.set()
            assert go_on.wait(HANG_S)

    def ask() -> None:
        with heard(hold):
            for_session("first", local.ask)(Prune(REQUEST))
        done.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert begun.wait(HANG_S)
    assert for_session("second", local.ask)(Run(RunRequest("tiny", "w7 w8", decoding=Decoding(max_length=2)))).steps
    assert not done.is_set()
    go_on.set()
    asking.join(HANG_S)
    assert done.is_set()
