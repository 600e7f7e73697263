"""The process that looks into a file: what it cannot do, and what is said when it comes to an end too early."""

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
import torch

from model.errors import DamagedFile, OpeningEnded, OverLimit, UnsafeFile
from model.safe_loading import limits, plan, reader, sandbox, sandbox_process, worker
from model.safe_loading.reader import read_tensors, read_upload
from tests.model.safe_loading.forge import Call, archive, entries_of, saved

resource = pytest.importorskip("resource", reason="only systems with the module resource limit a process: run on Linux or macOS")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux grants a limit on memory: run there")

LINE = 'torch.save(model.state_dict(), "weights.pt")'
HONEST = saved({"weight": torch.arange(6.0).reshape(2, 3)})
BEFORE_MAIN = "from model.safe_loading.sandbox import main"


def running(code: str, data: bytes = HONEST) -> subprocess.CompletedProcess[bytes]:
    """The other process with `code` instead of its work."""
    program = sandbox_process.CHILD.replace("main(path, what)", code)
    command = [sys.executable, "-I", "-S", "-B", "-c", program, str(worker.ROOT), "x.pt", "plan"]
    return subprocess.run(command, input=data, capture_output=True, check=False)


def changed(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """From now on the other process does `code` before its work."""
    assert BEFORE_MAIN in sandbox_process.CHILD
    monkeypatch.setattr(sandbox_process, "CHILD", sandbox_process.CHILD.replace(BEFORE_MAIN, f"{code}; {BEFORE_MAIN}"))


def test_it_has_no_library_at_hand() -> None:
    for library in ("torch", "numpy", "safetensors", "streamlit"):
        assert b"ModuleNotFoundError" in running(f"import {library}").stderr


def test_it_loads_the_standard_library_and_this_package_alone() -> None:
    found = running(r"print(*{name.partition('.')[0] for name in sys.modules})").stdout.decode().split()
    assert set(found) - sys.stdlib_module_names == {"model", "__main__"} - sys.stdlib_module_names


def test_it_can_write_no_file(tmp_path: Path) -> None:
    path = tmp_path / "written"
    code = f"from model.safe_loading.sandbox import limit_this_process as l; l(); f = open({str(path)!r}, 'wb', 0); f.write(b'a')"
    assert b"File too large" in running(code).stderr
    assert path.read_bytes() == b""


@on_linux
def test_a_file_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, "from model.safe_loading import limits; limits.MAX_MEMORY = 60 << 20")
    with pytest.raises(OverLimit) as refused:
        read_upload(archive(b"\x80\x02X\x00\x00\x80\x01" + b"a" * (24 << 20) + b"."), "x.pt")
    assert str(refused.value) == (
        "x.pt exceeds a limit of this machine: inspecting it needs more than 62,914,560 bytes of memory. "
        f"Save the weights alone with {LINE}, "
        "or raise the limit in model/safe_loading/limits.py."
    )


@on_linux
@pytest.mark.skipif("HEADLIGHT_FUZZ" not in os.environ, reason="takes ten seconds: set HEADLIGHT_FUZZ=5000")
def test_the_largest_pickle_that_is_followed_stays_within_its_memory() -> None:
    """A set takes most room for an instruction of one byte."""
    with pytest.raises(OverLimit, match=r"more than .* instructions"):
        read_upload(archive(b"\x80\x04(" + b"\x8f" * limits.MAX_INSTRUCTIONS + b"l."), "x.pt")


def test_a_file_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", 1)
    changed(monkeypatch, "import time; time.sleep(20)")
    with pytest.raises(OverLimit) as refused:
        read_upload(HONEST, "x.pt")
    assert str(refused.value) == (
        "x.pt exceeds a limit of this machine: inspecting it took more than 1 seconds. "
        f"Save the weights alone with {LINE}, or raise the limit in model/safe_loading/limits.py."
    )


@pytest.mark.parametrize(
    ("end", "how"),
    [("os._exit(9)", "exit 9"), ("os.kill(os.getpid(), 9)", "SIGKILL"), ("os.kill(os.getpid(), 15)", "SIGTERM")],
)
def test_a_process_that_is_ended_from_outside_is_said_to_be(monkeypatch: pytest.MonkeyPatch, end: str, how: str) -> None:
    changed(monkeypatch, f"import os; {end}")
    with pytest.raises(OpeningEnded) as refused:
        read_upload(HONEST, "x.pt")
    assert refused.value.fields == {"path": "x.pt", "how": how}


def test_a_process_without_memory_for_its_answer_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, "raise MemoryError")
    with pytest.raises(OverLimit, match="inspecting it needs more than 1,073,741,824 bytes of memory"):
        read_upload(HONEST, "x.pt")


def test_an_archive_whose_process_is_ended_from_outside_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_process, "UNPACKING", "import os; os.kill(os.getpid(), 9)")
    with TemporaryFile() as file, pytest.raises(OpeningEnded) as refused:
        sandbox_process.unpacked(file, "x.zip")
    assert refused.value.fields == {"path": "x.zip", "how": "SIGKILL"}


def test_it_holds_the_limits_that_are_set() -> None:
    code = (
        "import resource as r; from model.safe_loading.sandbox import limit_this_process as l; l(); "
        "print(*map(r.getrlimit, (9, 0, 1, 4)))"
    )
    if sys.platform != "linux":
        pytest.skip("the numbers of the limits are Linux's: run there")
    memory, seconds = limits.MAX_MEMORY, limits.MAX_SECONDS
    expected = f"({memory}, {memory}) ({seconds}, {seconds}) (0, 0) (0, 0)"
    assert running(code).stdout.decode().strip() == expected


@pytest.mark.skipif(not hasattr(os, "nice"), reason="Windows has no niceness")
def test_a_file_that_takes_long_to_describe_gives_way_to_runs() -> None:
    code = """
import os, time
from model.safe_loading import limits
from model.safe_loading.sandbox import limit_this_process
limit_this_process()
print(os.nice(0))
while time.process_time() < limits.AT_ONCE + 0.5:
    pass
print(os.nice(0))
"""
    before, after = map(int, running(code).stdout.split())
    assert (before, after) == (os.nice(0), min(19, os.nice(0) + limits.NICENESS))


def test_a_plan_is_the_same_after_its_way_between_two_processes() -> None:
    described = sandbox.describe(io.BytesIO(saved({"a": torch.eye(2), "b": 1.5, "c": None, "d": float("inf")})), "x.pt")
    assert plan.from_json(json.loads(plan.to_json(described))) == described


def test_an_upload_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert read_upload(HONEST, "x.pt").size == len(HONEST)
    with pytest.raises(UnsafeFile):
        read_upload(saved({"weight": torch.eye(2), "other": Call(exec, "1")}), "x.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_becomes_shorter_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(HONEST)
    look = reader._describe

    def look_then_cut(file: Any, name: str) -> plan.Plan:
        described = look(file, name)
        path.write_bytes(b"")
        return described

    monkeypatch.setattr(reader, "_describe", look_then_cut)
    with pytest.raises(DamagedFile, match="it became shorter while it was read"):
        read_tensors(path)


def test_numbers_with_a_wrong_checksum_are_refused() -> None:
    (raw,) = (data for name, data in entries_of(HONEST) if name.endswith("/data/0"))
    at = HONEST.index(raw)
    data = HONEST[:at] + b"\x01" + HONEST[at + 1 :]
    with pytest.raises(DamagedFile) as refused:
        read_upload(data, "x.pt")
    assert str(refused.value) == (
        f"x.pt cannot be read: the checksum of the 24 bytes at {at:,} is wrong. Restore it from a backup or save the model again."
    )


def test_only_the_bytes_of_weights_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer's state, twice as large as the weights, costs nothing."""
    read: list[int] = []
    storage = reader._storage

    def noted(file: Any, where: plan.Stored, path: str) -> torch.Tensor:
        read.append(where.size)
        return storage(file, where, path)

    monkeypatch.setattr(reader, "_storage", noted)
    state = {0: {"exp_avg": torch.zeros(1000), "exp_avg_sq": torch.zeros(1000)}}
    read_upload(saved({"model": {"weight": torch.eye(4)}, "optimizer": {"state": state, "param_groups": []}}), "x.pt")
    assert read == [64]
