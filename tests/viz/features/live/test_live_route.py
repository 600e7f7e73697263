"""The live route: who may ask, what is answered, and that nothing wrong is ever drawn."""

import asyncio
import json
import threading
import time
from contextvars import Context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import httpx
import numpy as np
import pytest

from benchmarks.live import drawn_texts
from model.engine.api import Run
from model.engine.guards.access import AccessLimits
from model.engine.scheduling.queue import CANCEL_TOKEN, SESSION, CallerGone, CancelToken, Session
from model.errors import BadSetting, TooManyCharacters
from model.requests.request import RunRequest
from model.sharing.caches import BUDGET
from model.trace.progress import LISTENER, Progress
from model.trace.types import Trace
from tests import traces
from tests.live import HERE, asking, framed, live_session
from tests.pages import MadeUpEngine
from tests.patience import HANG_S, settled
from viz.canvas.wire.transport import unpack
from viz.features.live import route, sessions
from viz.features.live.sessions import BY_TOKEN, LiveSession, Question
from viz.i18n import translate
from viz.session.background_calls import Calls, Pending, Stopped
from viz.session.patient_engine import NonBlockingEngine
from viz.url.view_state import ViewState

WHOLE = traces.translation(layers=2, heads=2)


@dataclass
class Typed(MadeUpEngine):
    """Runs each text at once; the trace says which text it is of. `hold` texts wait until `go` is set."""

    trace: Trace = field(default_factory=lambda: WHOLE)
    go: threading.Event = field(default_factory=threading.Event)
    hold: tuple[str, ...] = ()
    pace: float = 0.01
    sessions: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def run(self, request: RunRequest) -> Trace:
        self.sessions.append(SESSION.get().id)
        text = str(request.source)
        if len(text) > 500:
            raise TooManyCharacters(what="source text", found="501", allowed="500")
        trace = replace(self.trace, request={**self.trace.request, "source": text})
        if text in self.hold:
            self._decode(text, trace)
        return trace

    def _decode(self, text: str, trace: Trace) -> None:
        """Reports the trace as one so far, then waits."""
        listener, token = LISTENER.get(), CANCEL_TOKEN.get()
        assert listener is not None
        assert isinstance(token, CancelToken)
        for count in (1, 2):
            part = replace(trace, steps=trace.steps[:count])
            listener(Progress((4,) * count, ("w",) * count, 9, 0.5, so_far=partial(lambda part: part, part)))
            time.sleep(self.pace)
        while not self.go.wait(0.01):
            if token.cancelled:
                self.cancelled.append(text)
                raise CallerGone


@pytest.fixture
def client() -> httpx.AsyncClient:
    return asking()


def post(client: httpx.AsyncClient, live: LiveSession | None, body: object, headers: Any = None) -> httpx.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    token = live.token if live else "none"

    async def asked() -> httpx.Response:
        return await client.post(f"{route.PATH}/{token}", content=data, headers=HERE if headers is None else headers)

    return asyncio.run(asked())


def test_an_answer_holds_the_scenes_that_the_page_itself_would_draw(client: httpx.AsyncClient) -> None:
    answer = post(client, live_session(Typed()), {"text": "w5 w6"})
    assert answer.status_code == 200
    ((header, scenes),) = framed(answer.content)
    assert (header["text"], header["final"]) == ("w5 w6", True)
    assert set(scenes) == {"strips", "atlas", "cells", "lines"}
    assert {unpack(scene)[0]["live"]["text"] for scene in scenes.values()} == drawn_texts(answer.content) == {"w5 w6"}
    exact = unpack(scenes["cells"])[1]["exact"]
    np.testing.assert_array_equal(exact, WHOLE.at("decoder.0.1.cross").head(0).astype(np.float32))


def test_what_the_model_does_not_know_is_said_while_it_is_typed(client: httpx.AsyncClient) -> None:
    source = WHOLE.tokens["source"]
    unknown = replace(WHOLE, tokens={**WHOLE.tokens, "source": replace(source, unknown=(True,) * len(source))})
    ((header, _scenes),) = framed(post(client, live_session(Typed(trace=unknown)), {"text": "w5 w6"}).content)
    assert header["note"] == "Most of these words are unknown to this model."
    ((header, _scenes),) = framed(post(client, live_session(Typed(trace=unknown)), {"text": None}).content)
    assert header["note"] == "", "the page draws this sentence and says it above"
    ((header, _scenes),) = framed(post(client, live_session(Typed()), {"text": "w5 w6"}).content)
    assert header["note"] == ""


def test_live_pictures_speak_the_sessions_language_after_a_rerun_of_a_fragment_that_has_said_nothing_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live = LiveSession(Calls())
    monkeypatch.setattr(sessions, "my_live", lambda: live)
    monkeypatch.setattr(sessions, "my_engine", lambda: NonBlockingEngine(Typed(), Session("me")))
    monkeypatch.setattr("streamlit.runtime.scriptrunner.get_script_run_ctx", lambda **_: True)
    monkeypatch.setattr("streamlit.session_state", {translate._SESSION: "de"})
    Context().run(sessions.attend, Typed().models()[0], ViewState(model="made-up"))
    monkeypatch.undo()  # a route works for no session
    assert live.page is not None
    assert live.page.context.run(translate.current) == "de"


def test_a_choice_on_the_page_is_kept_and_a_row_of_the_old_sentence_is_not(client: httpx.AsyncClient) -> None:
    engine = Typed()
    live = live_session(engine, site="encoder.0.0.self", head=1, query=2, hypothesis=3, temperature=0.5)
    ((_header, scenes),) = framed(post(client, live, {"text": "w5"}).content)
    assert unpack(scenes["atlas"])[0]["selection"] == {"site": "encoder.0.0.self", "head": 1, "query": -1}
    assert (engine.asked[0].source, engine.asked[0].decoding.temperature, engine.asked[0].decoding.hypothesis) == ("w5", 0.5, 0)
    ((_header, scenes),) = framed(post(client, live, {"text": None}).content)
    assert unpack(scenes["atlas"])[0]["selection"]["query"] == 2, "the page's own sentence keeps the chosen row"


def test_a_choice_is_drawn_before_the_script_knows_it(client: httpx.AsyncClient) -> None:
    engine = Typed()
    live = live_session(engine, query=2, method="sample")
    change = {"seed": "7", "temperature": "0.5", "silence": "encoder.0.0.self:1"}
    assert post(client, live, {"text": None, "change": change}).status_code == 200
    asked = engine.asked[-1]
    assert (asked.source, asked.decoding.seed, asked.decoding.temperature) == ("w4", 7, 0.5)
    assert [str(edit) for edit in asked.edits] == ["silence site=encoder.0.0.self head=1"]
    others: list[object] = [[], {"seed": 7}, {"seed": "-1"}, {"temperature": "nan"}, {"silence": "nowhere:1"}, {"model": "other"}]
    for wrong in others:
        assert post(client, live, {"text": None, "change": wrong}).status_code == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**HERE, "sec-fetch-site": "cross-site"}, 403),
        ({**HERE, "sec-fetch-site": "same-site"}, 403),
        ({**HERE, "sec-fetch-site": "none"}, 403),
        ({"content-type": "application/json", "origin": "http://evil.example"}, 403),
        ({"content-type": "application/json", "origin": "null"}, 403),
        ({"content-type": "application/json", "origin": "http://["}, 403),
        ({"content-type": "application/json", "origin": "http://here:99999999"}, 403),
        ({"content-type": "application/json", "origin": "", "host": ""}, 403),
        ({"content-type": "application/json"}, 403),
        ({"content-type": "application/json", "origin": "http://here"}, 200),
        ({"content-type": "text/plain", "origin": "http://here"}, 415),
        ({"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_only_a_page_of_the_app_may_ask(client: httpx.AsyncClient, headers: dict[str, str], status: int) -> None:
    engine = Typed()
    assert post(client, live_session(engine), {"text": "w5"}, headers).status_code == status
    assert len(engine.asked) == (status == 200)


def test_without_a_session_nothing_is_answered(client: httpx.AsyncClient) -> None:
    assert post(client, None, {"text": "w5"}).status_code == 404
    assert post(client, LiveSession(Calls()), {"text": "w5"}).status_code == 404, "a session that has shown no page"
    gone = live_session(Typed())
    token = gone.token
    del gone
    assert token not in BY_TOKEN, "a session that has ended keeps nothing"
    assert len({LiveSession(Calls()).token for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"w5"', {"text": 5}, {"text": ["w5"]}, {}, {"text": "w5", "model": "other"}, b"\xff\xfe", b"[" * 100_000],
)
def test_a_question_of_another_form_is_refused(client: httpx.AsyncClient, body: object) -> None:
    engine = Typed()
    assert post(client, live_session(engine), body).status_code == 400
    assert engine.asked == []


def test_a_pasted_book_is_refused_in_words_and_a_library_is_not_read(client: httpx.AsyncClient) -> None:
    live = live_session(Typed())
    ((header, scenes),) = framed(post(client, live, {"text": "x" * 100_000}).content)
    assert "500" in header["error"]
    assert scenes == {}
    assert post(client, live, b'{"text": "' + b"x" * route.BODY + b'"}').status_code == 413


def test_an_unforeseen_error_is_a_sentence_without_its_text(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Typed()
    monkeypatch.setattr(engine, "run", lambda request: 1 / 0)
    ((header, _scenes),) = framed(post(client, live_session(engine), {"text": "w5"}).content)
    assert "incident" in header["error"]
    assert "zero" not in header["error"]


def test_the_pace_of_the_app_holds(client: httpx.AsyncClient) -> None:
    engine = Typed()
    live = live_session(engine)
    assert live.page is not None
    patient = replace(live.page.engine, limits=AccessLimits(pace=0.001, burst=3))
    live.page = replace(live.page, engine=patient)
    errors = [framed(post(client, live, {"text": f"w{n}"}).content)[0][0].get("error", "") for n in range(5)]
    assert [bool(error) for error in errors] == [False, False, False, True, True]
    assert "Too many requests" in errors[-1]


def test_a_run_that_writes_is_drawn_while_it_writes(client: httpx.AsyncClient) -> None:
    engine = Typed(hold=("w5",))
    threading.Timer(0.6, engine.go.set).start()
    frames = framed(post(client, live_session(engine), {"text": "w5"}).content)
    assert len(frames) >= 2
    for header, scenes in frames[:-1]:
        assert not header["final"]
        shown = unpack(scenes["strips"])[0]["strips"][1]["tokens"]
        assert header["progress"]["written"] == sum("probability" in token for token in shown) == 2
        assert set(scenes) == {"strips", "atlas", "cells", "lines"}
        assert unpack(scenes["atlas"])[0]["writes"], "a map of a single cell is left blank"
    assert frames[-1][0]["final"]
    assert not unpack(frames[-1][1]["atlas"])[0]["writes"]
    assert frames[-1][0]["progress"] is None


def test_a_quick_run_is_drawn_once_and_the_first_token_of_a_slow_one_at_once(client: httpx.AsyncClient) -> None:
    quick, slow = Typed(hold=("w5",)), Typed(hold=("w5",), pace=route.FIRST_SECONDS)
    threading.Timer(route.FIRST_SECONDS / 4, quick.go.set).start()
    ((header, _scenes),) = framed(post(client, live_session(quick), {"text": "w5"}).content)
    assert header["final"]
    slow.go.set()
    frames = framed(post(client, live_session(slow), {"text": "w5"}).content)
    assert [header["progress"] and header["progress"]["written"] for header, _scenes in frames] == [1, 2, None]


def asked_at_once(
    client: httpx.AsyncClient, questions: list[tuple[LiveSession, str, float]]
) -> list[list[tuple[dict[str, Any], Any]]]:
    """The frames of questions of several sessions, each begun after so many seconds."""

    async def one(live: LiveSession, text: str, after: float) -> bytes:
        await asyncio.sleep(after)
        return (
            await client.post(f"{route.PATH}/{live.token}", json={"text": text}, headers={"sec-fetch-site": "same-origin"})
        ).content

    async def every() -> list[bytes]:
        return await asyncio.gather(*(one(*question) for question in questions))

    return [framed(data) for data in asyncio.run(every())]


def test_a_newer_question_of_a_session_ends_the_older_one_and_no_others(client: httpx.AsyncClient) -> None:
    engine = Typed(hold=("w5", "w6"))
    mine, other = live_session(engine, "mine"), live_session(engine, "other")
    threading.Timer(1.0, engine.go.set).start()
    old, elsewhere, new = asked_at_once(client, [(mine, "w5", 0), (other, "w6", 0), (mine, "w7", 0.3)])
    assert old[-1][0].get("stopped")
    assert engine.cancelled == ["w5"]
    assert (new[-1][0]["text"], elsewhere[-1][0]["text"]) == ("w7", "w6")
    assert elsewhere[-1][0]["final"]
    assert not elsewhere[-1][0].get("stopped")
    assert set(engine.sessions) == {"mine/live", "other/live"}


@pytest.mark.slow
def test_thirty_people_who_type_at_once_get_their_own_pictures(client: httpx.AsyncClient) -> None:
    engine = Typed()
    people = [live_session(engine, f"person {n}") for n in range(30)]
    questions = [(live, f"w{n} w{turn}", 0.02 * turn) for turn in range(3) for n, live in enumerate(people)]
    for (_live, text, _after), frames in zip(questions, asked_at_once(client, questions), strict=True):
        header, scenes = frames[-1]
        assert header["text"] == text
        assert header.get("stopped") or {unpack(scene)[0]["live"]["text"] for scene in scenes.values()} == {text}


@pytest.mark.slow
def test_a_minute_of_typing_leaves_nothing_behind(client: httpx.AsyncClient) -> None:
    live, before = live_session(Typed()), threading.active_count()
    for n in range(200):
        post(client, live, {"text": f"w{n}"})
    settled(lambda: threading.active_count() <= before + 4)
    assert sum(BUDGET.held().values()) <= BUDGET.most_bytes


def test_who_leaves_ends_the_run_and_stop_keeps_what_was_written() -> None:
    engine = Typed(hold=("w5",))
    live = live_session(engine)
    page = live.page
    assert page is not None
    question, request = Question("w5"), page.of(Question("w5")).request()
    run = Run(request)

    async def leave() -> None:
        left = asyncio.get_running_loop().create_future()
        async for _frame in route.frames(live, page, question, run, left):
            left.set_result(None)

    asyncio.run(leave())
    settled(lambda: bool(engine.cancelled))
    assert engine.cancelled == ["w5"]
    key = live.ask(page, run).key
    with pytest.raises(Pending):  # the page's script asks for the same run
        live.calls.ask(key, lambda: engine.run(request), time.monotonic() + 0.01)
    theirs = live.calls._pending[key]
    settled(lambda: theirs.feed.newest is not None and theirs.feed.newest.done >= 2)
    live.calls.stop()
    with pytest.raises(Stopped) as stopped:
        live.calls.ask(key, lambda: engine.run(request), 0.0)
    assert stopped.value.trace is not None
    assert len(stopped.value.trace.steps) == 2


def test_stop_ends_the_run_and_the_script_shows_what_it_had_written(client: httpx.AsyncClient) -> None:
    engine = Typed(hold=("w5",))
    live = live_session(engine)
    path, headers = f"{route.PATH}/{live.token}", {"sec-fetch-site": "same-origin"}

    async def stopped() -> bytes:
        asking = asyncio.create_task(client.post(path, json={"text": "w5"}, headers=headers))
        while not (engine.asked and live.calls._live and (newest := live.calls._live.feed.newest) and newest.done == 2):
            await asyncio.sleep(0.01)
        assert (await client.delete(path)).status_code == 403
        assert not asking.done()
        assert (await client.delete(path, headers=headers)).status_code == 204
        return (await asking).content

    assert framed(asyncio.run(stopped()))[-1][0].get("stopped")
    request = engine.asked[0]
    with pytest.raises(Stopped) as found:
        live.calls.ask(Run(request), lambda: engine.ask(Run(request)), time.monotonic() + HANG_S)
    assert found.value.trace is not None
    assert len(found.value.trace.steps) == 2
    assert len(engine.asked) == 1, "the script does not run it again"


def test_a_text_that_no_run_takes_is_answered_by_a_sentence_and_nothing_of_it_is_logged(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Typed()
    answer = post(client, live_session(engine), {"text": "secret" * 50_000})
    ((header, scenes),) = framed(answer.content)
    assert (header["error"], header["final"], scenes) == (
        "The source text has 300,000 characters, but the limit is 262,144. Shorten it.",
        True,
        {},
    )
    assert engine.asked == []
    assert "secret" not in caplog.text


def test_the_pause_is_a_setting_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessions.pause_ms() == 120
    for asked, pause in (("", 120), ("0", 0), ("300", 300), ("10000", 10_000)):
        monkeypatch.setenv("HEADLIGHT_LIVE", asked)
        assert sessions.pause_ms() == pause
    for asked in ("-1", "1.5", "fast", "10001", "9" * 50, "²"):
        monkeypatch.setenv("HEADLIGHT_LIVE", asked)
        with pytest.raises(BadSetting, match="HEADLIGHT_LIVE"):
            sessions.pause_ms()
