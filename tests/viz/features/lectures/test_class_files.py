"""Files of classes: a class that was closed never comes back, and a write that fails leaves nothing."""

import asyncio
import errno
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.decks import opened
from tests.patience import HANG_S
from viz.features.lectures.classroom import registry, store
from viz.features.lectures.classroom.classroom import Classroom
from viz.features.lectures.classroom.deck import Deck
from viz.features.lectures.classroom.registry import HeldElsewhere, Registry, TooManyClasses
from viz.features.lectures.classroom.store import LIFE_SECONDS, Store

CODE = "00000000"


class HeldStore(Store):
    """Stops before a file takes its place, until `go` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.written, self.go = threading.Event(), threading.Event()

    def save(self, code: str, content: dict[str, Any], *wanted: Callable[[], bool]) -> bool:
        self.written.set()
        assert self.go.wait(HANG_S)
        return super().save(code, content, *wanted)


def test_a_class_that_is_closed_while_its_file_is_written_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SAVE_SECONDS", 0.0)

    async def closed() -> str:
        files = HeldStore(tmp_path)
        classes = Registry(opened, files)
        room, _key = await classes.open("plain")
        writing = classes._rooms[room.code].writing
        assert writing is not None
        assert await asyncio.to_thread(files.written.wait, 60)
        classes.close(room)
        files.go.set()
        await writing
        assert await classes.fetch(room.code) is None
        return room.code

    code = asyncio.run(closed())
    assert list(tmp_path.iterdir()) == []
    assert Store(tmp_path).load(code, opened) is None


class HeldReads(Store):
    """Stops after a file was read, until `go` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.read, self.go, self.threads = threading.Event(), threading.Event(), list[int]()

    def load(self, code: str, open_deck: Callable[[str], Deck]) -> Classroom | None:
        self.threads.append(threading.get_ident())
        found = super().load(code, open_deck)
        self.read.set()
        assert self.go.wait(HANG_S)
        return found


async def kept_in_a_file(folder: Path) -> str:
    """The code of a class of a process that has ended."""
    ended = Registry(opened, Store(folder))
    room, _key = await ended.open("plain")
    ended.end()
    return room.code


def test_a_class_that_many_look_for_after_a_restart_is_one_class_and_its_file_is_read_elsewhere(tmp_path: Path) -> None:
    async def asked() -> None:
        code, files = await kept_in_a_file(tmp_path), HeldReads(tmp_path)
        files.go.set()
        classes = Registry(opened, files)
        found = await asyncio.gather(*(classes.fetch(code) for _ in range(8)))
        assert found[0] is not None
        assert {id(each) for each in found} == {id(found[0])}
        assert threading.get_ident() not in files.threads

    asyncio.run(asked())


def test_a_class_that_is_closed_while_its_file_is_read_does_not_come_back(tmp_path: Path) -> None:
    async def closed() -> None:
        code, files = await kept_in_a_file(tmp_path), HeldReads(tmp_path)
        classes = Registry(opened, files)
        late = asyncio.ensure_future(classes.fetch(code))
        assert await asyncio.to_thread(files.read.wait, 60)
        room = classes._keep(Store(tmp_path).load(code, opened) or pytest.fail("there is a file"))
        classes.close(room)
        files.go.set()
        assert await late is None
        assert classes._rooms == {}

    asyncio.run(closed())


@pytest.mark.parametrize("failing", ["dump", "replace"])
def test_a_full_disk_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    def full(*args: object) -> None:
        if failing == "dump":
            args[1].write('{"code": ')  # type: ignore[attr-defined]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files = Store(tmp_path)
    files.save(CODE, {"step": 1})
    monkeypatch.setattr("json.dump" if failing == "dump" else "pathlib.Path.replace", full)
    for _ in range(3):
        files.save(CODE, {"step": 2})
    assert [path.name for path in tmp_path.iterdir()] == [f"{CODE}.json"]
    assert json.loads((tmp_path / f"{CODE}.json").read_text()) == {"step": 1}, "the file before stays whole"


def test_a_class_is_held_by_one_process_until_it_ends(tmp_path: Path) -> None:
    """A device would count twice, a closed class come back, and phones follow another class than the lecturer steers."""

    async def adopted() -> None:
        first, second = Registry(opened, Store(tmp_path)), Registry(opened, Store(tmp_path))
        room, _key = await first.open("plain")
        room.go(1)
        Store(tmp_path).save(room.code, store.written(room))
        with pytest.raises(HeldElsewhere):
            await second.fetch(room.code)
        room.go(2)
        first.end()
        taken_over = await second.fetch(room.code)
        assert taken_over is not None
        assert taken_over.step == 2, "what was not written yet is written at the end"
        with pytest.raises(HeldElsewhere):
            await Registry(opened, Store(tmp_path)).fetch(room.code)
        second.close(taken_over)
        assert await Registry(opened, Store(tmp_path)).fetch(room.code) is None

    asyncio.run(adopted())
    assert list(tmp_path.iterdir()) == []


def test_a_process_waits_for_the_one_that_the_code_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def restarted() -> None:
        monkeypatch.setenv("HEADLIGHT_PROCESS", "1")
        code = await kept_in_a_file(tmp_path)
        monkeypatch.setenv("HEADLIGHT_PROCESS", "2")
        with pytest.raises(HeldElsewhere):
            await Registry(opened, Store(tmp_path)).fetch(code)
        monkeypatch.setenv("HEADLIGHT_PROCESS", "1")
        assert await Registry(opened, Store(tmp_path)).fetch(code) is not None

    asyncio.run(restarted())


def test_a_write_that_failed_is_tried_again_without_another_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "SAVE_SECONDS", 0.0)
    tries = list[str]()
    save = Store.save

    def full_twice(self: Store, code: str, *content: Any) -> bool:
        tries.append(code)
        return len(tries) > 2 and save(self, code, *content)

    async def written() -> str:
        monkeypatch.setattr(Store, "save", full_twice)
        classes = Registry(opened, Store(tmp_path))
        room, _key = await classes.open("plain")
        writing = classes._rooms[room.code].writing
        assert writing is not None
        await writing
        return room.code

    code = asyncio.run(written())
    assert tries == [code] * 3
    assert (tmp_path / f"{code}.json").is_file()


def test_a_class_that_made_room_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may own its file by then."""
    monkeypatch.setattr(registry, "SAVE_SECONDS", 0.0)

    async def put_away() -> str:
        classes = Registry(opened, Store(tmp_path))
        room, _key = await classes.open("plain")
        held = classes._rooms[room.code]
        assert held.dirty
        assert held.writing is not None
        classes._put_away([held], of_address=False)
        Store(tmp_path).save(room.code, {"owner": "another process"})
        await held.writing
        return room.code

    code = asyncio.run(put_away())
    assert json.loads((tmp_path / f"{code}.json").read_text()) == {"owner": "another process"}


def test_each_failure_after_a_success_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings = list[str]()
    monkeypatch.setattr(store._log, "warning", lambda text, *_fields: warnings.append(text))
    files, below = Store(tmp_path / "file"), tmp_path / "file"
    for _ in range(2):
        below.write_text("")
        assert not files.save(CODE, {})
        assert not files.save(CODE, {})
        below.unlink()
        assert files.save(CODE, {})
        (below / f"{CODE}.json").unlink()
        below.rmdir()
    assert len(warnings) == 2
    assert all(text.startswith("Classes cannot be kept in") for text in warnings)


def test_a_few_addresses_cannot_take_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MOST_CLASSES", 7)
    monkeypatch.setattr(registry, "MOST_EACH", 3)
    monkeypatch.setattr(registry, "IDLE_SECONDS", -1.0)  # a class that nobody follows is idle at once

    async def crowded() -> None:
        classes = Registry(opened, Store(tmp_path))
        honest, _key = await classes.open("plain", "10.0.0.9")
        for address in ("10.0.0.1", "10.0.0.2"):
            for _ in range(3):
                room, _key = await classes.open("plain", address)
                room.students.followers = 1
        late, _key = await classes.open("plain", "10.0.0.8")
        assert classes.find(honest.code) is honest, "who has one class keeps it"
        assert classes.find(late.code) is late
        assert len(classes._rooms) == 7
        for number in range(20, 24):
            await classes.open("plain", f"10.0.1.{number}")
        assert max(Counter(classes._openers[code] for code in classes._rooms).values()) == 1
        for held in classes._rooms.values():
            held.room.students.followers = 1
        with pytest.raises(TooManyClasses):
            await classes.open("plain", "10.0.2.1")

    asyncio.run(crowded())


def test_old_files_are_deleted_and_those_of_others_are_not(tmp_path: Path) -> None:
    """HEADLIGHT_CLASSES may name a folder that holds other things, too."""
    kept = {"notes.json", "tmpx", "11111111.json", "11111111.x.part", "22222222.md"}
    for name in {CODE + ".json", CODE + ".abc.part", CODE + ".lock", *kept}:
        path = tmp_path / name
        path.write_text("{}")
        if not name.startswith("1"):
            os.utime(path, (0, time.time() - LIFE_SECONDS - 1))
    Store(tmp_path).clean()
    assert {path.name for path in tmp_path.iterdir()} == kept
