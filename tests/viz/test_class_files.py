"""Files of classes: a class that was closed never comes back, and a write that fails leaves nothing."""

import asyncio
import errno
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.decks import opened
from viz.lectures.classroom import registry, store
from viz.lectures.classroom.classroom import Classroom
from viz.lectures.classroom.deck import Deck
from viz.lectures.classroom.registry import Registry
from viz.lectures.classroom.store import LIFE_SECONDS, Store

CODE = "00000000"


class HeldStore(Store):
    """Stops before a file takes its place, until `go` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.written, self.go = threading.Event(), threading.Event()

    def save(self, code: str, content: dict[str, Any], *wanted: Callable[[], bool]) -> None:
        self.written.set()
        assert self.go.wait(60)
        super().save(code, content, *wanted)


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
        assert self.go.wait(60)
        return found


async def kept_in_a_file(folder: Path) -> str:
    """The code of a class of a process that has ended."""
    room, _key = await Registry(opened, Store(folder)).open("plain")
    Store(folder).save(room.code, store.written(room))
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


def test_old_files_are_deleted_and_those_of_others_are_not(tmp_path: Path) -> None:
    """HEADLIGHT_CLASSES may name a folder that holds other things, too."""
    kept = {"notes.json", "tmpx", "11111111.json", "11111111.x.part", "22222222.md"}
    for name in {CODE + ".json", CODE + ".abc.part", *kept}:
        path = tmp_path / name
        path.write_text("{}")
        if not name.startswith("1"):
            os.utime(path, (0, time.time() - LIFE_SECONDS - 1))
    Store(tmp_path).clean()
    assert {path.name for path in tmp_path.iterdir()} == kept
