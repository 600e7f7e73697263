"""A class over its routes: who may steer, what students see, what is counted, and what goes on after a restart."""

import asyncio
import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.decks import SLIDES, ReadyDeck, opened
from viz.features.lectures.classroom import join_codes
from viz.features.lectures.classroom.classroom import Classroom, InvalidCommand
from viz.features.lectures.classroom.event_feed import EventFeed, end_streams_at_exit
from viz.features.lectures.classroom.join_codes import hashed, read_code
from viz.features.lectures.classroom.registry import Registry
from viz.features.lectures.classroom.routes import DEVICE, KEY, ClassRoutes, EventStream, counts
from viz.features.lectures.classroom.store import Store, read, written


class Held:
    """A server with one class, which its lecturer holds."""

    def __init__(self, client: TestClient, registry: Registry) -> None:
        self.client, self.registry = client, registry
        found = client.post("/class", json={"lecture": "plain"}).json()
        self.code, self.key = found["code"], found["key"]
        room = registry.find(self.code)
        assert room is not None
        self.room = room
        client.cookies.clear()

    def post(self, what: str, body: Any, **cookies: str) -> Any:
        headers = {"cookie": "; ".join(f"{name.replace('_', '-')}={value}" for name, value in cookies.items())}
        return self.client.post(f"/class/{self.code}/{what}", json=body, headers=headers)

    def steer(self, **order: Any) -> int:
        return int(self.post("steer", order, **{KEY: self.key}).status_code)

    def joined(self) -> str:
        """Name of a new device, as the server sets its cookie."""
        name = join_codes.new_token()
        self.room.devices.add(hashed(name))
        return name

    def answer(self, device: str, value: Any, step: Any = 1) -> str:
        found = self.post("answer", {"step": step, "value": value}, **{DEVICE: device}).json()
        return str(found.get("outcome", found.get("sentence")))

    def seen(self, lecturer: bool = False, kind: str = "step") -> dict[str, Any]:
        """The newest event of a kind."""
        return newest(self.room.lecturers if lecturer else self.room.students, kind)


def newest(feed: EventFeed, kind: str) -> dict[str, Any]:
    _number, body = feed._latest[kind]
    found: dict[str, Any] = json.loads(body.decode().partition("data: ")[2])
    return found


@contextmanager
def serving(folder: Path) -> Iterator[Held]:
    registry = Registry(opened, Store(folder))
    with TestClient(Starlette(routes=ClassRoutes(registry).all())) as client:
        yield Held(client, registry)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    with serving(tmp_path) as found:
        yield found


def test_a_forged_order_of_a_student_changes_nothing(held: Held) -> None:
    assert held.post("steer", {"step": 2}).status_code == 403
    assert held.post("steer", {"step": 2}, **{KEY: "forged"}).status_code == 403
    assert held.post("steer", {"step": 2}, **{DEVICE: held.joined()}).status_code == 403
    assert held.client.get(f"/class/{held.code}/answers.csv").status_code == 403
    assert held.client.get(f"/class/{held.code}/lecturer").status_code == 403
    assert held.client.get(f"/class/{held.code}/qr.svg?origin=http://h").status_code == 403
    assert held.post("close", {}).status_code == 403
    assert held.seen()["step"] == 0


def test_the_lecturer_steers_and_the_students_see_it(held: Held) -> None:
    assert held.steer(step=2) == 200
    assert held.seen()["title"] == "How much?"
    assert held.steer(step=0, choice={"site": "decoder.0.0.cross", "head": 3, "evil": "x"}) == 200
    assert held.seen()["choice"] == {"site": "decoder.0.0.cross", "head": 3}
    pointed = {"queryStrip": "target", "query": 2, "keyStrip": None, "key": None}
    assert held.steer(pointer=pointed) == 200
    assert held.seen(kind="pointer") == {"queryStrip": "target", "query": 2}
    assert held.steer(black=True) == 200
    assert held.seen() == {"step": 0, "black": True}


def test_students_never_get_the_notes_of_the_speaker(held: Held) -> None:
    assert "Say this." not in json.dumps(held.seen())
    assert held.seen(lecturer=True)["notes"] == "<p>Say this.</p>"


@pytest.mark.parametrize(
    "order",
    [{"step": 3}, {"step": -1}, {"step": True}, {"step": "1"}, {"phase": "over"}, {"phase": "closed"}, {"black": 1}, {"x": 1}],
)
def test_an_order_that_no_class_can_do_is_refused_and_the_class_goes_on(held: Held, order: dict[str, Any]) -> None:
    assert held.steer(**order) == 400
    assert held.steer(pointer={"query": -1}) == held.steer(pointer={"keyStrip": 1}) == 400
    assert held.steer(step=1) == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b"[" * 8000, b'{"step": 1e999}', b"\xff\xfe", b"x" * 9000])
def test_a_malformed_message_is_refused_by_its_status(held: Held, body: bytes) -> None:
    headers = {"cookie": f"{KEY}={held.key}", "content-type": "application/json"}
    assert 400 <= held.client.post(f"/class/{held.code}/steer", content=body, headers=headers).status_code < 500
    headers["content-type"] = "text/plain"  # what a form of another site can send
    assert held.client.post(f"/class/{held.code}/steer", content=b'{"step": 1}', headers=headers).status_code == 415
    assert held.seen()["step"] == 0


def test_an_answer_counts_once_for_each_device_and_the_first_stands(held: Held) -> None:
    held.steer(step=1)
    one, other = held.joined(), held.joined()
    assert [held.answer(one, 1), held.answer(one, 2), held.answer(other, 1)] == ["counted", "again", "counted"]
    assert held.room.polls[1].counts() == {"answered": 2, "counts": [0, 2, 0]}
    assert held.room.polls[1].ignored == {"again": 1}
    again = held.post("answer", {"step": 1, "value": 2}, **{DEVICE: one}).json()
    assert again == {"outcome": "again", "value": 1}, "a phone that was loaded again learns which answer counts"


@pytest.mark.parametrize("value", [3, -1, 1.0, "1", None, True, [1], {"a": 1}])
def test_a_malformed_answer_is_counted_as_ignored(held: Held, value: object) -> None:
    held.steer(step=1)
    assert held.answer(held.joined(), value) == "malformed"
    assert held.room.polls[1].ignored["malformed"] == 1


def test_a_late_answer_and_one_to_another_step_are_not_counted(held: Held) -> None:
    held.steer(step=1)
    held.steer(phase="closed")
    assert held.answer(held.joined(), 1) == "late"
    held.steer(step=2)
    assert held.answer(held.joined(), 1) == "late"
    assert [held.answer(held.joined(), 1, step) for step in (0, 99, "1", None)] == ["malformed"] * 4
    assert held.room.polls[1].counts()["answered"] == 0


def test_a_device_that_did_not_join_cannot_answer(held: Held) -> None:
    held.steer(step=1)
    assert "has not joined" in held.answer("made up", 1)


def test_a_number_may_be_any_finite_one(held: Held) -> None:
    held.steer(step=2)
    assert [held.answer(held.joined(), value, 2) for value in (1, 2.5, -3)] == ["counted"] * 3
    assert held.answer(held.joined(), 1e300, 2) == "malformed"
    headers = {"cookie": f"{DEVICE}={held.joined()}", "content-type": "application/json"}
    reply = held.client.post(f"/class/{held.code}/answer", content=b'{"step": 2, "value": NaN}', headers=headers)
    assert reply.json()["outcome"] == "malformed"
    assert sum(bar["count"] for bar in held.room.polls[2].counts()["bars"]) == 3


def test_students_see_view_counts_and_answer_only_when_they_are_told(held: Held) -> None:
    held.steer(step=1)
    device = held.joined()
    held.answer(device, 1)
    held.room.refresh()
    asked = held.seen()
    assert (asked["view"], asked["ahead"], held.seen(kind="counts")) == (None, [], {})
    assert "answer" not in asked["question"]
    assert (asked["words"], asked["points"]) == ("", []), "the words come with the answer"
    assert held.seen(lecturer=True, kind="counts")["counts"] == [0, 1, 0]
    held.steer(phase="closed")
    assert held.seen()["ahead"] == ["view1"]
    assert held.seen(kind="counts")["counts"] == [0, 1, 0]
    held.steer(phase="revealed")
    assert (held.seen()["view"], held.seen()["words"]) == ("view1", "<p>Look.</p>")
    assert held.seen()["question"]["answer"]["right"] == [1]


def test_a_view_that_answers_an_open_question_is_not_sent_ahead(held: Held) -> None:
    assert held.seen()["ahead"] == []
    held.room.deck.slides = (*SLIDES[:2], SLIDES[0])  # type: ignore[misc]  # a deck of this test, with a view after the question
    held.steer(step=1)
    assert held.seen()["ahead"] == [], "the next view may be of the same run"
    held.steer(phase="closed")
    assert held.seen()["ahead"] == ["view1", "view2"]
    held.steer(step=0)
    assert held.seen()["ahead"] == ["view1"]


def test_codes_are_read_as_they_are_typed_and_cannot_be_guessed(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz.features.lectures.classroom.registry.WRONG_CODES", 20)
    typed = f" {held.code[:4].lower()}-{held.code[4:].lower()} "
    assert read_code(typed) == held.code
    assert read_code("O0Il-1oiL") == "00111011"
    assert read_code("../../etc") == read_code("") == read_code("ÄÖÜ") == ""
    for _guess in range(20):
        assert held.client.post("/class/00000000/answer", json={}).status_code == 404
    assert held.client.post("/class/00000000/answer", json={}).status_code == 429
    assert held.post("steer", {"step": 1}).status_code == 429, "a guesser gets no answer to a right code either"
    assert held.post("steer", {"step": 1}, **{KEY: held.key}).status_code == 200, "who holds the key is no guesser"
    assert held.post("steer", {"step": 1}, **{DEVICE: held.joined()}).status_code == 403, "who has joined stays in the class"


def test_a_class_goes_on_at_its_step_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as held:
        held.steer(step=1)
        device = held.joined()
        held.answer(device, 1)
        held.registry.end()
        content = (tmp_path / f"{held.code}.json").read_text()
        assert not {held.key, device} & set(re.findall(r"[\w-]+", content)), "the file must not hold what admits somebody"

    async def restarted() -> Classroom | None:
        return await Registry(opened, Store(tmp_path)).fetch(held.code)

    room = asyncio.run(restarted())
    assert room is not None
    assert room.step == 1
    assert room.admits(held.key)
    assert room.polls[1].put(hashed(device), 1) == "again"
    assert counts(room)["count"].tolist() == [0, 1, 0]


def test_answers_outlive_a_restart_where_the_options_come_from_a_run_that_is_made_later(tmp_path: Path) -> None:
    with serving(tmp_path) as held:
        held.steer(step=1)
        for value in (1, 1, 2):
            assert held.answer(held.joined(), value) == "counted"
        kept = written(held.room)
    kept["polls"]["1"]["answers"]["of a longer list"] = 7.0
    asks = SLIDES[1].question
    assert asks is not None
    deck = ReadyDeck(slides=[SLIDES[0], replace(SLIDES[1], question=replace(asks, layout="list", options=())), SLIDES[2]])
    room = read(kept, lambda name: deck)
    assert room.answer("late", 1, 0) == "malformed", "nothing can be chosen yet"
    deck.slides = SLIDES
    room.refresh()
    assert counts(room)["count"].tolist() == [0, 2, 1]
    assert newest(room.students, "step")["question"]["options"] == ["ein", "hund", "."]


ADDRESSES = {
    "lo": ["127.0.0.1"],
    "eth0": ["93.184.216.34", "192.168.7.5"],
    "wlan0": ["10.2.0.3", "169.254.1.1"],
    "off": ["10.9.9.9"],
}


@pytest.mark.parametrize(
    ("listens", "visitor", "found"),
    [
        ("0.0.0.0", "127.0.0.1", ["10.2.0.3", "192.168.7.5", "93.184.216.34"]),
        ("", "192.168.7.5", ["10.2.0.3", "192.168.7.5", "93.184.216.34"]),
        ("192.168.7.5", "192.168.7.5", ["192.168.7.5"]),
        ("127.0.0.1", "127.0.0.1", []),
        ("0.0.0.0", "172.17.0.1", []),
    ],
)
def test_the_lecturer_is_offered_the_addresses_that_phones_can_reach(
    held: Held, monkeypatch: pytest.MonkeyPatch, listens: str, visitor: str, found: list[str]
) -> None:
    named = {name: [SimpleNamespace(family=socket.AF_INET, address=one) for one in all_] for name, all_ in ADDRESSES.items()}
    named["eth0"].append(SimpleNamespace(family=socket.AF_INET6, address="fe80::1%eth0"))
    monkeypatch.setattr("psutil.net_if_addrs", lambda: named)
    monkeypatch.setattr("psutil.net_if_stats", lambda: {name: SimpleNamespace(isup=name != "off") for name in named})
    monkeypatch.setattr("streamlit.get_option", lambda name: listens if name == "server.address" else None)
    monkeypatch.setattr("viz.features.lectures.classroom.routes.address_of", lambda request: visitor)
    path, headers = f"/class/{held.code}/addresses", {"cookie": f"{KEY}={held.key}"}
    assert held.client.get(path, headers=headers).json() == {"addresses": found}
    assert held.client.get(path).status_code == 403
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    assert held.client.get(path, headers=headers).json() == {"addresses": []}, "a public server tells nobody what is behind it"


INFINITE = '{"code": "00000000", "key": "", "lecture": "plain", "opened": 0, "step": Infinity, "devices": [], "polls": {}}'


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"lecture": "gone"}', '{"lecture": "plain", "polls": 3}', "\x00", INFINITE, "[" * 200_000]
)
def test_a_damaged_file_of_a_class_is_no_class(tmp_path: Path, content: str) -> None:
    (tmp_path / "00000000.json").write_text(content)

    async def found() -> Classroom | None:
        return await Registry(opened, Store(tmp_path)).fetch("00000000")

    assert asyncio.run(found()) is None


def test_a_folder_that_cannot_be_written_does_not_stop_a_class(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving(tmp_path / "file" / "below") as held:
        Store(tmp_path / "file" / "below").save(held.code, {})
        assert held.steer(step=1) == 200


def test_a_class_whose_lecturer_sleeps_stays_at_its_step_and_goes_on_when_the_laptop_wakes(held: Held) -> None:
    held.steer(step=1)
    assert held.room.lecturers.followers == 0, "the laptop sleeps"
    late = held.joined()
    assert held.seen()["step"] == 1
    assert held.answer(late, 1) == "counted"
    assert held.post("steer", {}, **{KEY: "forged"}).status_code == 403
    assert held.post("steer", {}, **{KEY: held.key}).status_code == 200, "a page that wakes asks whether it still steers"
    assert held.seen()["step"] == 1, "asking moves nothing"
    assert held.steer(step=2) == 200


def test_two_lecturers_with_one_key_both_steer(held: Held) -> None:
    assert held.post("key", {"key": "wrong"}).status_code == 403
    second = held.post("key", {"key": held.key})
    assert second.status_code == 204
    assert f"{KEY}={held.key}" in second.headers["set-cookie"]
    assert "HttpOnly" in second.headers["set-cookie"]
    assert f"Path=/class/{held.code}" in second.headers["set-cookie"]
    assert held.steer(step=1) == held.steer(step=1) == 200


def test_an_order_is_answered_by_the_number_of_the_state_that_holds_it(held: Held) -> None:
    """Until that state is there, a lecturer's page is not taken back to one from before: a slow network brings it seconds later."""
    for order in ({"step": 1}, {"black": True}, {"step": 2, "black": False}):
        before = held.seen(lecturer=True)["orders"]
        answer = held.post("steer", order, **{KEY: held.key}).json()
        state = held.seen(lecturer=True)
        assert answer["orders"] == state["orders"] == before + 1
        assert order.items() <= state.items()
    unheard: list[dict[str, Any]] = [{}, {"pointer": {}}]
    for order in unheard:
        assert held.post("steer", order, **{KEY: held.key}).json()["orders"] == state["orders"], "no state follows"


def test_the_qr_picture_leads_to_the_class(held: Held) -> None:
    headers = {"cookie": f"{KEY}={held.key}"}
    picture = held.client.get(f"/class/{held.code}/qr.svg?origin=https://lecture.example", headers=headers)
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.startswith("<svg")
    for origin in (
        "javascript:x",
        "http://[",
        "http://]",
        "http://h:99999999",
        "http://h:²",
        "http://",
        "",
        "%00",
        "http://%5B::1",
    ):
        reply = held.client.get(f"/class/{held.code}/qr.svg?origin={origin}", headers=headers)
        assert reply.status_code == 400, origin


def test_a_thousand_join_and_each_gets_the_present_step_and_the_next() -> None:
    async def attended() -> tuple[list[bytes], int]:
        room = Classroom("0" * 8, hashed("key"), ReadyDeck(), 0.0)
        streams = [room.students.follow() for _ in range(1000)]
        first = [await anext(stream) + await anext(stream) for stream in streams]
        waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0)
        for step in (1, 2, 0, 2):  # faster than anybody reads
            room.go(step)
        later = await asyncio.gather(*waiting)
        assert all(b'"title":"Words"' in one for one in first)
        for stream in streams[:500]:
            await stream.aclose()  # type: ignore[attr-defined]  # an async generator
        return later, room.students.followers

    later, followers = asyncio.run(attended())
    assert all(one.count(b"event: step") == 1 and b'"title":"How much?"' in one for one in later)
    assert followers == 500


def test_a_follower_who_takes_no_bytes_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz.features.lectures.classroom.routes.SEND_SECONDS", 0.01)
    feed = EventFeed()
    feed.send("step", {"step": 0})

    async def dead(message: object) -> None:
        await asyncio.Event().wait()

    async def silent() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    asyncio.run(EventStream(feed)({"type": "http"}, silent, dead))
    assert feed.followers == 0


def test_ten_thousand_answers_are_counted_without_being_told_one_by_one() -> None:
    async def flooded() -> tuple[int, int]:
        room = Classroom("0" * 8, hashed("key"), ReadyDeck(), 0.0, step=1)
        before = room.lecturers._number
        for number in range(10_050):
            room.answer(f"device {number}", 1, number % 3)
        while newest(room.lecturers, "counts")["answered"] < 10_000:
            await asyncio.sleep(0.01)
        return room.lecturers._number - before, newest(room.lecturers, "counts")["answered"]

    told, answered = asyncio.run(flooded())
    assert answered == 10_000
    assert told < 10


def test_an_unknown_lecture_opens_no_class(held: Held) -> None:
    assert held.client.post("/class", json={"lecture": "none"}).status_code == 404


def test_a_class_refuses_a_view_that_is_no_name() -> None:
    async def steered() -> None:
        Classroom("0" * 8, hashed("key"), ReadyDeck(), 0.0).apply_command({"view": "x" * 65})

    with pytest.raises(InvalidCommand):
        asyncio.run(steered())


def test_a_server_that_is_stopped_does_not_wait_for_its_followers() -> None:
    told: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: told.append(number)) for number in (signal.SIGINT, signal.SIGTERM)
    }

    async def followed() -> list[bytes]:
        feed = EventFeed()
        end_streams_at_exit()
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            return [each async for each in feed.follow()]

    try:
        assert len(asyncio.run(followed())) == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert told == [signal.SIGTERM], "what handled the signal before still does"


def test_the_speaker_knows_the_answer_and_the_words_of_an_open_question_and_nobody_else(held: Held) -> None:
    assert held.steer(step=1) == 200
    speaker, student = held.seen(lecturer=True), held.seen()
    assert (speaker["told"], speaker["known"]["right"]) == (SLIDES[1].words, [1])
    assert speaker["question"]["phase"] == "open"
    assert not {"told", "known", "notes"} & student.keys()
    assert student["words"] == ""
