"""Sessions share threads: a call is for the session that made it, and for nobody once it has ended."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import pytest

from model.engine.api import Run, Texts
from model.engine.local import LocalEngine
from model.engine.scheduling.queue import SESSION, Session, in_session
from model.errors import Superseded
from model.requests.questions import Answer, Question
from model.requests.request import RunRequest
from tests.held import HeldEngine
from tests.hosts import served
from tests.patience import HANG_S
from tests.runs import CPU
from viz.session.patient_engine import NonBlockingEngine

MINE, YOURS = Session("mine", "192.0.2.7"), Session("yours", "192.0.2.8")


class NotingEngine(LocalEngine):
    """Notes for whom it was asked, and in which thread."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, CPU)
        self.noted = list[tuple[str, Session]]()
        self.threads = set[int]()

    def ask(self, question: Question[Answer]) -> Answer:
        if isinstance(question, Run | Texts):
            what = str(question.request.source) if isinstance(question, Run) else question.strip
            self.noted.append((what, SESSION.get()))
            self.threads.add(threading.get_ident())
        return super().ask(question)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as found:
        yield found


def test_two_sessions_in_the_same_threads_are_never_taken_for_each_other(folder: Path, pool: ThreadPoolExecutor) -> None:
    engine = NotingEngine(folder)
    mine, yours = NonBlockingEngine(engine, MINE), NonBlockingEngine(engine, YOURS)
    asked = [
        pool.submit(each.ask, Run(RunRequest("tiny", f"{'w4' if each is mine else 'w5'} w{6 + i % 4}")))
        for i, each in zip(range(40), cycle((mine, yours, yours)), strict=False)
    ]
    for each in asked:
        try:
            each.result(HANG_S)
        except Superseded:  # by the next one of its own session
            continue
    assert {(what[:2], session) for what, session in engine.noted} == {("w4", MINE), ("w5", YOURS)}
    assert len(engine.noted) == 40
    assert 1 <= len(engine.threads) <= 2
    assert {pool.submit(SESSION.get).result(HANG_S) for _ in range(4)} == {Session()}, "a thread that has answered is nobody's"


def test_a_run_was_not_superseded_by_another_session_in_a_thread_that_had_served_its_own(
    folder: Path, pool: ThreadPoolExecutor
) -> None:
    engine = HeldEngine(folder)
    mine, yours = NonBlockingEngine(engine, MINE), NonBlockingEngine(engine, YOURS)
    both = threading.Barrier(2)
    for each in [pool.submit(lambda: (both.wait(HANG_S), mine.ask(Texts("tiny", strip="source", ids=(4,))))) for _ in range(2)]:
        each.result(HANG_S)
    engine.go.clear()
    older = pool.submit(mine.ask, Run(RunRequest("tiny", "w4")))
    while not engine.scheduler.running:
        assert not older.done()
    other = pool.submit(yours.ask, Run(RunRequest("tiny", "w5")))
    while engine.scheduler.running + engine.scheduler.waiting < 2:
        assert not older.done()
    newer = ThreadPoolExecutor(1).submit(mine.ask, Run(RunRequest("tiny", "w6")))
    with pytest.raises(Superseded):
        older.result(HANG_S)
    engine.go.set()
    assert other.result(HANG_S).tokens["source"].texts[1] == "w5"
    assert newer.result(HANG_S).tokens["source"].texts[1] == "w6"


def test_a_session_ends_with_its_call_even_if_it_fails() -> None:
    with pytest.raises(KeyError, match="yours"), in_session(MINE), in_session(YOURS):
        raise KeyError(SESSION.get())
    assert SESSION.get() == Session()


def test_a_host_takes_the_requests_of_one_connection_for_those_of_their_own_sessions(folder: Path) -> None:
    engine = NotingEngine(folder)
    with served(engine) as remote:
        for number, session in zip(range(9), cycle((MINE, YOURS, Session())), strict=False):
            with in_session(session):
                remote.ask(Texts("tiny", strip="source", ids=(number,)))
        assert [session.id for _, session in engine.noted] == ["mine", "yours", ""] * 3
        assert {session.client for _, session in engine.noted} == {""}, "the address is for the host's access limits"
        body = b'{"model": "tiny", "strip": "source", "ids": [4], "settings": []}'
        assert remote._client.post("/v1/texts", content=body).is_success
        assert engine.noted[-1] == ("source", Session())
