"""A real Chromium and real servers, for tests that see pages as a visitor does.

`serve(script)` starts a Streamlit script on a free port and gives its address; `watched` is a page that fails its test if anything
was written to the console as an error, anything threw, or anything was asked of a foreign host.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks.browsers import FLAGS
from tests.browser.patience import PATIENCE_MS
from tests.browser.tabs import SharedTab

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
SECONDS_TO_START = 300

LONGEST_FIRST = (
    "test_pages.py",
    "test_app.py",
    "test_canvas_component.py",
    "test_what_if.py",
    "test_big_mode.py",
    "test_live.py",
    "test_no_english.py",
    "test_canvas_scale.py",
    "test_waiting.py",
    "test_live_bad_input.py",
    "test_checkpoint.py",
)
"""A process gets whole files, in this order: a long one at the end would keep the other process waiting."""

Serve = Callable[[Path], str]


@pytest.hookimpl(tryfirst=True)  # tests/conftest.py then puts what needs a browser behind everything else
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first."""
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def chromium() -> str:
    """The path of a Chromium. Without one the test is skipped, or fails where a skip would hide it (in CI)."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    sentence = "No Chromium was found: install one (on Debian `apt-get install chromium`) to run the tests in tests/browser."
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": chromium(), "args": FLAGS}


@pytest.fixture(scope="session")
def base_url() -> str | None:
    """Takes the place of a plugin's fixture, whose manner of definition pytest 9 warns about."""
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(address: str, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            last = said.read_text("utf-8", "replace")[-4000:]
            pytest.fail(f"Streamlit ended with {process.returncode} before it served {address}:\n{last}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.1)
    process.kill()
    pytest.fail(f"Streamlit did not serve {address} within {SECONDS_TO_START} s.")


def started(script: Path, port: int, folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    """The address and the process of a Streamlit server that answers; what it writes as an error is kept in the folder."""
    options = ["--server.headless=true", f"--server.port={port}", f"--server.address={HOST}"]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = folder / "said.txt"
    with said.open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=log)
    address = f"http://{HOST}:{port}"
    _wait_until_healthy(address, process, said)
    return address, process


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts Streamlit scripts, each once; ends them with the session. One that ended while it started is started again."""
    running: dict[Path, tuple[str, subprocess.Popen[bytes]]] = {}

    def start(script: Path) -> str:
        if script not in running:
            running[script] = started(script, free_port(), tmp_path_factory.mktemp("served"))
        return running[script][0]

    yield start
    for _address, process in running.values():
        process.terminate()
        process.wait(timeout=120)


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """One browser profile for all tests of a process: its cache holds Streamlit's scripts, so pages open a third faster."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture(scope="session")
def tab(profile: BrowserContext) -> SharedTab:
    return SharedTab(profile)


@pytest.fixture
def context(request: pytest.FixtureRequest, profile: BrowserContext, tab: SharedTab) -> Iterator[BrowserContext]:
    """The profile, which each test leaves without pages, cookies, storage and offline mode. Replaces the plugin's fixture."""
    yield profile
    profile.set_offline(False)
    called = getattr(request.node, "rep_call", None)
    tab.take_back(whole=called is not None and called.passed)


@pytest.fixture
def page(context: BrowserContext, tab: SharedTab) -> Page:
    """The tab of this process, as good as new."""
    return tab.lend()


@pytest.fixture
def watched(page: Page, tab: SharedTab) -> Iterator[Page]:
    """A page that must stay quiet. It is patient: a busy machine is no fault of the page."""
    page.set_default_timeout(PATIENCE_MS)
    yield page
    assert tab.noise == []
