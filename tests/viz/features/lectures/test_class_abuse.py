"""Classes on a public server before a visitor who means harm: nobody else's class suffers."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from model.engine.guards.access import AccessLimits
from tests.decks import opened
from viz.features.lectures.classroom import registry
from viz.features.lectures.classroom.join_codes import hashed, new_code
from viz.features.lectures.classroom.registry import MOST_CLASSES, MOST_EACH, Registry
from viz.features.lectures.classroom.routes import DEVICE, KEY, ClassRoutes
from viz.features.lectures.classroom.store import Store

EVIL, LECTURER = "192.0.2.66", "192.0.2.7"


class Public:
    """A public server with classes; each request comes from an address of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registry = Registry(opened, Store(folder))
        self.client = TestClient(Starlette(routes=ClassRoutes(self.registry).all()))
        self.now = 0.0
        monkeypatch.setattr(registry, "time", SimpleNamespace(monotonic=lambda: self.now, time=time.time))
        monkeypatch.setattr(registry, "SAVE_SECONDS", 0.0)

    def post(self, address: str, path: str, body: object, cookie: str = "") -> tuple[int, dict[str, str]]:
        """Status and content of the answer."""
        self.client.cookies.clear()
        reply = self.client.post(path, json=body, headers={"x-forwarded-for": address, "cookie": cookie})
        return reply.status_code, reply.json() if reply.content else {}

    def opened(self, address: str) -> tuple[int, dict[str, str]]:
        return self.post(address, "/class", {"lecture": "plain"})


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Public]:
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    monkeypatch.setattr("viz.session.access.access_limits", lambda: LIMITS)
    found = Public(tmp_path, monkeypatch)
    with found.client:
        yield found


LIMITS = AccessLimits(pace=1e6, burst=1e6, proxies=1)


def test_one_visitor_cannot_take_the_places_of_all_classes(public: Public) -> None:
    _status, first = public.opened(LECTURER)
    answers = [public.opened(EVIL) for _ in range(MOST_CLASSES)]
    assert [status for status, _ in answers] == [200] * MOST_EACH + [429] * (MOST_CLASSES - MOST_EACH)
    assert answers[-1][1] == {"sentence": "Too many classes are open from your network. Close one that is no longer needed."}
    assert public.opened(LECTURER)[0] == 200, "another address has a bound of its own"
    steered = f"/class/{first['code']}/steer"
    assert public.post(LECTURER, steered, {"step": 1}, f"{KEY}={first['key']}")[0] == 200


def test_classes_that_nobody_follows_make_room_and_come_back_by_their_code(public: Public) -> None:
    many = [public.opened(f"198.51.100.{n}")[1] for n in range(MOST_CLASSES)]
    assert public.opened(LECTURER)[0] == 503, "each of them was just opened"
    followed = public.registry.find(many[0]["code"])
    assert followed is not None
    followed.students.followers = 1
    public.now += registry.IDLE_SECONDS + 1
    wait_for_files(public)
    assert public.opened(LECTURER)[0] == 200
    assert len(public.registry._rooms) == MOST_CLASSES
    assert many[0]["code"] in public.registry._rooms, "somebody follows it"
    assert many[1]["code"] not in public.registry._rooms, "the one that was not used for longest made room"
    steered = f"/class/{many[1]['code']}/steer"
    assert public.post("198.51.100.1", steered, {"step": 1}, f"{KEY}={many[1]['key']}")[0] == 200
    assert len(public.registry._rooms) == MOST_CLASSES


def test_classes_that_come_back_count_for_who_opened_them(public: Public) -> None:
    codes = []
    for _round in range(MOST_CLASSES // MOST_EACH):
        codes += [public.opened(EVIL)[1]["code"] for _ in range(MOST_EACH)]
        public.now += registry.IDLE_SECONDS + 1
        wait_for_files(public)
    for code in codes:
        public.post(EVIL, f"/class/{code}/answer", {})
    assert len(public.registry._rooms) == MOST_EACH


def wait_for_files(public: Public) -> None:
    """Until each class is in its file."""

    async def written() -> None:
        for found in public.registry._rooms.values():
            if found.writing is not None:
                await found.writing

    assert public.client.portal is not None
    public.client.portal.call(written)


def test_three_hundred_students_of_one_address_join_though_each_fourth_mistypes(public: Public) -> None:
    _status, room = public.opened(LECTURER)
    key, statuses = f"{KEY}={room['key']}", list[int]()
    for number in range(300):
        if number % 4 == 0:
            assert public.post(LECTURER, f"/class/{new_code()}/answer", {})[0] == 404
        statuses.append(public.post(LECTURER, f"/class/{room['code']}/answer", {"step": 1, "value": 1})[0])
        assert public.post(LECTURER, f"/class/{room['code']}/steer", {}, key)[0] == 200
    assert statuses == [403] * 300, "found; this device has not joined yet"


def test_who_holds_the_key_or_joined_is_never_stopped_by_wrong_codes_of_the_network(
    public: Public, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "WRONG_CODES", 3)
    _status, room = public.opened(LECTURER)
    path, key = f"/class/{room['code']}", f"{KEY}={room['key']}"
    held = public.registry.find(room["code"])
    assert held is not None
    held.devices.add(hashed("device"))
    for _ in range(5):
        public.post(LECTURER, f"/class/{new_code()}/answer", {})
    assert public.post(LECTURER, f"{path}/steer", {"step": 1}, key)[0] == 200
    assert public.post(LECTURER, f"{path}/answer", {"step": 1, "value": 1}, f"{DEVICE}=device")[0] == 200
    assert public.post(LECTURER, f"{path}/key", {"key": room["key"]})[0] == 204, "a second device of the lecturer"
    for get in ("answers.csv", "qr.svg?origin=http://here"):
        reply = public.client.get(f"{path}/{get}", headers={"x-forwarded-for": LECTURER, "cookie": key})
        assert reply.status_code == 200
    assert public.post(LECTURER, f"{path}/steer", {"step": 2}, f"{KEY}=guessed")[0] == 429
    assert public.post(LECTURER, f"{path}/steer", {"step": 2})[0] == 429, "a guesser is not told that a code was right"
