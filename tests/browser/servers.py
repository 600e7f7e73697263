"""Streamlit servers for browser tests: one of a process, and one that all processes of a test run share."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

from tests.patience import HANG_S

ROOT = Path(__file__).parents[2]
APP = ROOT / "app.py"
HOST = "127.0.0.1"
SAID = "said.txt"
"""What a server writes as errors, in its folder."""


PORTS = count(101 * os.getpid())
"""Whence the ports of a process come: no two processes look for one at the same place."""


def free_port() -> int:
    """A port below those that the system gives to connections: a browser opens hundreds, and one may take a port that was free."""
    while True:
        port = 10_000 + next(PORTS) % 20_000
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def wait_until_healthy(address: str, process: int, folder: Path) -> None:
    """Waits for a server of `begun`; the test fails if it ends, or takes too long."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        if not psutil.pid_exists(process) or psutil.Process(process).status() == psutil.STATUS_ZOMBIE:
            last = (folder / SAID).read_text("utf-8", "replace")[-4000:]
            pytest.fail(f"Streamlit ended before it served {address}:\n{last}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=HANG_S):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.1)
    psutil.Process(process).kill()
    pytest.fail(f"Streamlit did not serve {address} within {HANG_S} s.")


def begun(script: Path, port: int, folder: Path, **variables: str) -> tuple[str, subprocess.Popen[bytes]]:
    """The address and the process of a Streamlit server, which does not answer yet; its errors are written into the folder."""
    options = ["--server.headless=true", f"--server.port={port}", f"--server.address={HOST}"]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *options]
    environment = {**os.environ, "HEADLIGHT_MEMORY": "1024", "PYTHONPATH": str(ROOT), **variables}
    with (folder / SAID).open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=log)
    return f"http://{HOST}:{port}", process


def started(script: Path, port: int, folder: Path, **variables: str) -> tuple[str, subprocess.Popen[bytes]]:
    """The address and the process of a Streamlit server that answers; its errors are written into the folder."""
    address, process = begun(script, port, folder, **variables)
    wait_until_healthy(address, process.pid, folder)
    return address, process


LEFT: list[subprocess.Popen[bytes]] = []
"""Servers that other processes still use: forgotten, they would be reported as running."""


class SharedServer:
    """A server of all processes of a test run: the first that wants it starts it, the last that leaves ends it.

    It takes seconds of computing until a server is started and has loaded the networks that it is asked for.

    Args:
        script: what it serves.
        folder: where the processes leave word for each other.
    """

    def __init__(self, script: Path, folder: Path) -> None:
        self._script, self._folder = script, folder
        self._own: subprocess.Popen[bytes] | None = None
        self._lock, self._note = FileLock(folder / "server.lock"), folder / "server.json"

    def join(self) -> None:
        """Starts the server if it does not run, and does not wait for it."""
        with self._lock:
            note = self._read()
            if not psutil.pid_exists(note["server"]):
                address, self._own = begun(self._script, free_port(), self._folder)
                note = {"server": self._own.pid, "address": address, "users": []}
            self._write(note | {"users": [*note["users"], os.getpid()]})

    def address(self) -> str:
        """Its address, as soon as it answers; after `join`."""
        note = self._read()
        wait_until_healthy(note["address"], note["server"], self._folder)
        return str(note["address"])

    def leave(self) -> None:
        """Ends the server if nobody else uses it."""
        with self._lock:
            note = self._read()
            note["users"].remove(os.getpid())
            self._write(note)
            if not any(map(psutil.pid_exists, note["users"])):
                psutil.Process(note["server"]).kill()
                if self._own:
                    self._own.wait(timeout=HANG_S)
            elif self._own:
                LEFT.append(self._own)

    def _read(self) -> dict[str, Any]:
        return dict(json.loads(self._note.read_text())) if self._note.exists() else {"server": -1, "users": []}

    def _write(self, note: dict[str, Any]) -> None:
        self._note.write_text(json.dumps(note))
