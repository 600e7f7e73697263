"""Many visitors at once: a lecture is opened and prepared once, a download is made once, and no thread waits for either."""

import asyncio
import math
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from model.engine.api import Engine
from model.engine.guards.access import AccessLimits
from model.sharing.caches import Budget, LruCache
from tests.flights import at_once
from tests.patience import HANG_S, settled
from viz.features.lectures.presenter import routes
from viz.features.lectures.presenter.deck import LectureDeck, Prepared
from viz.features.lectures.presenter.downloads import KINDS, Downloads, Kind
from viz.features.lectures.presenter.open_lectures import Lectures
from viz.features.lectures.presenter.view_store import PackedView
from viz.features.lectures.script import library, parser
from viz.features.lectures.script.lecture import Lecture
from viz.session import access
from viz.session.patient_engine import NonBlockingEngine

TEXT = """---
title: Two steps
language: en
minutes: 1
models: none
---
## One
view: /explore?text=w4
---
## Two
view: /explore?text=w5
"""
ENGINE = cast(Engine, None)
"""No step runs here."""


class HeldDeck(LectureDeck):
    """A lecture without pictures, of which no step is prepared before `go` is set."""

    def __init__(self, lecture: Lecture) -> None:
        super().__init__(lecture, ENGINE)
        self.go = threading.Event()

    def _prepare(self, step: int) -> Prepared:
        assert self.go.wait(HANG_S)
        return Prepared(None, "", self.slides[step], None)


@pytest.fixture
def deck() -> Iterator[HeldDeck]:
    found = HeldDeck(parser.read(TEXT, "mine.en"))
    yield found
    found.go.set()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The downloads that were made, in order."""
    made = list[str]()

    def making(kind: str) -> Callable[[LectureDeck], bytes]:
        def make(deck: LectureDeck) -> bytes:
            made.append(kind)
            return kind.encode()

        return make

    kinds = {name: Kind(kind.ending, kind.media, making(name), kind.cost) for name, kind in KINDS.items()}
    monkeypatch.setattr(routes, "DOWNLOADS", Downloads(kinds))
    return made


@pytest.fixture
def client(deck: HeldDeck, made: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(routes.LECTURES, "deck", lambda name: deck)
    with TestClient(Starlette(routes=routes.ROUTES, middleware=[Middleware(access.Pace)]), follow_redirects=False) as found:
        yield found


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A public server that forgets nothing."""
    limits = AccessLimits(pace=0.001, burst=60)
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    monkeypatch.setattr(access, "access_limits", lambda: limits)


def test_a_lecture_that_many_open_at_once_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, load, meeting = list[str](), library.load, threading.local()

    def loading(name: str) -> Lecture:
        loads.append(name)
        meeting.meet()
        return load(name)

    def opened(meet: Callable[[], None]) -> LectureDeck:
        meeting.meet = meet
        return lectures.deck("heads-are-born.en")

    monkeypatch.setattr(library, "load", loading)
    lectures = Lectures(lambda name, address: cast(NonBlockingEngine, ENGINE))
    assert len(set(map(id, at_once(8, opened)))) == 1
    assert loads == ["heads-are-born.en"]


def test_the_event_loop_reads_no_file_of_a_lecture(client: TestClient, deck: HeldDeck, monkeypatch: pytest.MonkeyPatch) -> None:
    on_the_loop = list[str]()

    def opened(name: str) -> LectureDeck:
        try:
            asyncio.get_running_loop()
            on_the_loop.append(name)
        except RuntimeError:
            pass
        return deck

    monkeypatch.setattr(routes.LECTURES, "deck", opened)
    for link in ("", "/file", "/handout"):
        client.get(f"/hold/mine.en{link}")
    client.post("/hold/mine.en/view", json={})
    assert on_the_loop == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_download_never_waits_and_is_made_once(client: TestClient, deck: HeldDeck, made: list[str], kind: str) -> None:
    address = f"/hold/mine.en/{kind}"
    for _visitor in range(45):
        page = client.get(address)
        assert (page.status_code, page.headers["retry-after"]) == (202, "1")
        assert "The file is being made" in page.text
    how_far = client.get(address, headers={"Accept": "application/json"})
    assert (how_far.status_code, how_far.json()) == (202, {"prepared": 0, "steps": 2})
    deck.go.set()
    deck.wait()
    found = arrived(client, address)
    assert found.content == kind.encode()
    assert found.headers["content-disposition"] == f'attachment; filename="mine.en.{KINDS[kind].ending}"'
    assert client.get(address).content == kind.encode()
    assert client.get(address, headers={"Accept": "application/json"}).json() == {"prepared": 2, "steps": 2}
    assert made == [kind]


def arrived(client: TestClient, address: str) -> Any:
    """The answer once nothing is made any more: the one thread that makes downloads has ended what was asked before."""
    client.get(address)
    routes.DOWNLOADS._maker.submit(lambda: None).result(HANG_S)
    return client.get(address)


def test_a_lecture_that_is_opened_anew_with_the_same_content_has_its_downloads(made: list[str], deck: HeldDeck) -> None:
    other = HeldDeck(deck.lecture)
    for each in (deck, other):
        each.go.set()
        each.wait()
        routes.DOWNLOADS.get(each, "handout", lambda cost: None)
        routes.DOWNLOADS._maker.submit(lambda: None).result(HANG_S)
    assert made == ["handout"]


def test_a_download_that_cannot_be_made_says_so(client: TestClient, deck: HeldDeck, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(deck: LectureDeck) -> bytes:
        raise MemoryError

    monkeypatch.setattr(routes, "DOWNLOADS", Downloads({"handout": Kind("pdf", "application/pdf", fail, 1)}))
    deck.go.set()
    deck.wait()
    page = arrived(client, "/hold/mine.en/handout")
    assert (page.status_code, page.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert "This file could not be made" in page.text
    told = client.get("/hold/mine.en/handout", headers={"Accept": "application/json"})
    assert (told.status_code, list(told.json())) == (500, ["sentence"])


def test_a_listener_that_fails_does_not_end_the_preparing(deck: HeldDeck) -> None:
    heard = list[str]()

    def fail() -> None:
        heard.append("failing")
        raise RuntimeError("Event loop is closed")

    deck.listen(fail)
    deck.listen(lambda: heard.append("other"))
    deck.go.set()
    deck.wait()
    assert deck.is_prepared
    assert sorted(heard) == ["failing", "other", "other"], "one that failed is called no more"
    deck.forget(fail)


async def followed(lectures: Lectures, deck: LectureDeck) -> tuple[int, int, bytes]:
    """Numbers of listeners while somebody follows a lecture, and afterwards, and what followers got."""
    follower = cast(AsyncGenerator[bytes], lectures.held(deck).feed.follow())
    got = await anext(follower) + await anext(follower)
    during = len(deck._listeners)
    await follower.aclose()
    return during, len(deck._listeners), got


def test_nobody_listens_to_a_lecture_that_nobody_follows(deck: HeldDeck) -> None:
    lectures = Lectures(lambda name, address: cast(NonBlockingEngine, ENGINE))
    for _time in range(3):
        during, afterwards, got = asyncio.run(followed(lectures, deck))
        assert (during, afterwards) == (1, 0)
        assert b"event: prepared" in got


def test_followers_of_a_lecture_share_one_feed(deck: HeldDeck) -> None:
    async def both() -> bool:
        lectures = Lectures(lambda name, address: cast(NonBlockingEngine, ENGINE))
        held = lectures.held(deck)
        return lectures.held(deck) is held

    assert asyncio.run(both())


@pytest.mark.parametrize("link", ["", "/file", "/handout", "/events"])
def test_a_picture_on_another_site_starts_nothing_and_a_link_there_works(client: TestClient, deck: HeldDeck, link: str) -> None:
    for site in ("cross-site", "same-site"):
        asked = client.get(f"/hold/mine.en{link}", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})
        assert asked.status_code == 403
    assert deck._thread is None, "nothing is prepared"
    if link != "/events":
        followed = client.get(f"/hold/mine.en{link}", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
        assert followed.status_code in (200, 202)


@pytest.mark.usefixtures("strangers")
def test_a_lecture_counts_as_a_run_for_strangers_and_its_steps_once(client: TestClient, deck: HeldDeck) -> None:
    statuses = [client.get("/hold/mine.en").status_code for _ in range(150)]
    assert statuses == [200] * (59 - len(deck.slides)) + [429] * (91 + len(deck.slides))
    assert "Too many requests" in client.get("/hold/mine.en", headers={"Sec-Fetch-Mode": "navigate"}).text


@pytest.mark.usefixtures("strangers")
def test_every_route_counts_for_strangers(client: TestClient) -> None:
    access.access_limits().limit.admit("testclient", cost=58)
    statuses = [client.get("/headlight/view/none").status_code for _ in range(201)]
    assert set(statuses[:199]) == {404}
    assert statuses[-1] == 429
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/_stcore/stream"):
        pass
    assert refused.value.code == 1013


@pytest.mark.usefixtures("strangers")
def test_what_is_expensive_to_make_counts_as_much_once(client: TestClient, deck: HeldDeck, made: list[str]) -> None:
    deck.go.set()
    deck.wait()
    access.access_limits().limit.admit("testclient", cost=18)
    assert client.get("/hold/mine.en/handout").status_code == 202
    assert client.get("/hold/mine.en/file").status_code == 429
    assert client.get("/hold/mine.en/handout").status_code in (200, 202), "asking again costs no more than asking"
    routes.DOWNLOADS._maker.submit(lambda: None).result(HANG_S)
    assert made == ["handout"]


def test_at_home_nobody_is_counted(client: TestClient) -> None:
    assert {client.get("/hold/mine.en").status_code for _ in range(150)} == {200}


def test_prepared_lectures_stay_within_the_byte_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen lectures stayed whatever they held; only other caches gave way."""

    class Drawn(LectureDeck):
        def _prepare(self, step: int) -> Prepared:
            return Prepared(PackedView(bytes(100), f"{self.name} {step}"), "", self.slides[step], None)

    monkeypatch.setattr("viz.features.lectures.presenter.open_lectures.LectureDeck", Drawn)
    monkeypatch.setenv(library.VARIABLE, str(tmp_path))
    shared, names = Budget(1000), [f"mine{number}.en" for number in range(7)]
    for name in names:
        (tmp_path / f"{name}.md").write_text(TEXT, encoding="utf-8")
    lectures = Lectures(lambda name, address: cast(NonBlockingEngine, ENGINE), shared)
    traces: LruCache[str, bytes] = LruCache(math.inf, len, budget=shared)
    traces.keep("older", bytes(200))
    traces.keep("newer", bytes(300))
    decks = [lectures.deck(name) for name in names[:3]]
    for number, deck in enumerate(decks, 1):
        deck.wait()
        settled(lambda held=200 * number: shared.held()["lectures"] == held)  # type: ignore[misc]
    assert traces.kept() == ["newer"], "what was used longest ago gave way, whatever it is"
    for name in names[3:]:
        lectures.deck(name).wait()
    settled(lambda: lectures.deck(names[-1]).nbytes == 200)
    assert sum(shared.held().values()) <= 1000
    assert lectures.deck(names[-1]).is_prepared
    assert lectures.deck(names[0]) is not decks[0], "it was dropped"
    assert decks[0].view(1) == "mine0.en 1", "whoever holds it goes on"
