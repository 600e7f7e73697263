"""The part cache: parts are named by their content, never change, and are evicted when there is no room."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from model.trace.types import Site
from tests import traces
from tests.flights import at_once
from viz.canvas import routes
from viz.canvas.scenes import attention
from viz.canvas.wire import overviews, parts
from viz.canvas.wire.transport import PART_CACHE, Blob, PartCache, unpack

SELF = Site("encoder", 0, 1, "self")


@pytest.fixture
def empty() -> Iterator[None]:
    """The part cache of the process, emptied of what other tests left in it."""
    PART_CACHE.clear()
    yield
    PART_CACHE.clear()


@pytest.fixture
def server(empty: None) -> TestClient:
    return TestClient(Starlette(routes=[routes.PARTS]))


def test_a_name_stands_for_the_content() -> None:
    assert Blob(b"one").name == Blob(b"one").name != Blob(b"two").name
    assert len(Blob(b"").name) == 32


def test_a_cached_part_is_not_made_again() -> None:
    made: list[str] = []

    def make() -> Blob:
        made.append("once")
        return Blob(b"abc")

    own = PartCache(100)
    assert own.get_or_make("key", make) is own.get_or_make("key", make)
    assert made == ["once"]
    assert own.piece(Blob(b"abc").name, "whole") == b"abc"


def test_a_part_that_many_ask_for_at_once_is_made_once() -> None:
    made, own = list[str](), PartCache(100)

    def make(meet: Callable[[], None]) -> Blob:
        made.append("once")
        meet()
        return Blob(b"abc")

    found = at_once(8, lambda meet: own.get_or_make("key", lambda: make(meet)))
    assert made == ["once"]
    assert len(set(map(id, found))) == 1


def test_what_was_used_longest_ago_makes_room() -> None:
    own = PartCache(limit=250)
    for letter in "abc":
        own.get_or_make(letter, lambda letter=letter: Blob(letter.encode() * 100))  # type: ignore[misc]
        own.piece(Blob(b"a" * 100).name, "whole")
    assert own.nbytes == 200
    assert own.piece(Blob(b"a" * 100).name, "whole") is not None
    assert own.piece(Blob(b"b" * 100).name, "whole") is None


def test_the_newest_stays_even_where_it_is_too_large() -> None:
    own = PartCache(limit=10)
    own.get_or_make("small", lambda: Blob(b"x"))
    own.get_or_make("large", lambda: Blob(b"y" * 99))
    assert own.piece(Blob(b"y" * 99).name, "whole") == b"y" * 99
    assert own.piece(Blob(b"x").name, "whole") is None
    own.get_or_make("next", lambda: Blob(b"z"))
    assert own.nbytes == 1


def test_equal_content_under_two_keys_is_held_once_and_served_as_long_as_either_is_drawn() -> None:
    own = PartCache(limit=20)
    name = own.get_or_make("one", lambda: Blob(b"x" * 8)).name
    own.get_or_make("two", lambda: Blob(b"x" * 8))
    assert own.nbytes == 8
    own.get_or_make("other", lambda: Blob(b"y" * 8))
    own.get_or_make("one", lambda: Blob(b"x" * 8))
    own.get_or_make("another", lambda: Blob(b"z" * 8))
    assert own.piece(name, "whole") == b"x" * 8


def test_a_part_that_was_put_away_under_one_key_is_served_again_once_it_is_drawn_under_another() -> None:
    own = PartCache(limit=30)
    name = own.get_or_make("older", lambda: Blob(b"x" * 8)).name
    own.get_or_make("newer", lambda: Blob(b"x" * 8))
    for letter in "abcd":
        own.get_or_make("older", lambda: Blob(b"x" * 8))
        own.get_or_make(letter, lambda letter=letter: Blob(letter.encode() * 10))  # type: ignore[misc]
    assert own.get_or_make("older", lambda: Blob(b"x" * 8)).name == name
    assert own.piece(name, "whole") == b"x" * 8, "a script run keeps the part, so the browser must get it"


def test_the_route_serves_bytes_that_never_change_and_are_not_compressed(server: TestClient) -> None:
    part = PART_CACHE.get_or_make("key", lambda: Blob(bytes(5000)))
    answer = server.get(f"/headlight/{part.name}/whole", headers={"accept-encoding": "gzip"})
    assert (answer.status_code, answer.content) == (200, bytes(5000))
    assert answer.headers["etag"] == f'"{part.name}/whole"'
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "identity"


def test_a_browser_that_has_the_bytes_is_told_so_even_where_they_are_gone(server: TestClient) -> None:
    part = PART_CACHE.get_or_make("key", lambda: Blob(b"abc"))
    tag = server.get(f"/headlight/{part.name}/whole").headers["etag"]
    PART_CACHE.clear()
    again = server.get(f"/headlight/{part.name}/whole", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert server.get(f"/headlight/{part.name}/whole").status_code == 404


@pytest.mark.parametrize("path", ["none/whole", "{name}/other", "{name}/../{name}/whole/x", "{name}/exact/0/0/0"])
def test_what_is_not_there_is_not_found_and_not_remembered(server: TestClient, path: str) -> None:
    part = PART_CACHE.get_or_make("key", lambda: Blob(b"abc"))
    answer = server.get(f"/headlight/{path.format(name=part.name)}")
    assert (answer.status_code, answer.headers["cache-control"]) == (404, "no-store")


def test_a_large_part_travels_by_route_and_comes_back_with_the_next_scene(server: TestClient) -> None:
    trace = traces.encoder(2, 3, 200)

    def fetched() -> bytes:
        header, blobs = unpack(attention.atlas(trace, SELF, 1, -1))
        assert not blobs, "what is large must not travel in the scene"
        answer = server.get(f"{header['partsAddress']}/{header['parts']['exact']['name']}/whole")
        assert answer.status_code == 200
        return answer.content

    before = fetched()
    np.testing.assert_array_equal(unpack(before)[1]["exact"], trace.at(SELF).head(1))
    PART_CACHE.clear()
    assert fetched() == before


def test_drawing_again_reads_no_weights(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = traces.encoder(2, 3, 200)
    first = attention.atlas(trace, SELF, 1, -1), attention.lines(trace, SELF, 1, -1), attention.player(trace, SELF, 1, -1)
    for module, name in ((overviews, "_made"), (overviews, "encode"), (parts, "_exact"), (parts, "encode")):
        monkeypatch.setattr(module, name, None)
    assert (
        attention.atlas(trace, SELF, 1, -1),
        attention.lines(trace, SELF, 1, -1),
        attention.player(trace, SELF, 1, -1),
    ) == first
    assert sum(map(len, first)) < 64_000


def test_runs_are_told_apart_by_more_than_their_request() -> None:
    one, other = traces.translation(seed=0), traces.translation(seed=1)
    assert parts.run_key(one) == parts.run_key(traces.translation(seed=0)) != parts.run_key(other)
