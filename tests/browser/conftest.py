"""A real Chromium and real servers, for tests that see pages as a visitor does.

`serve(script)` starts a Streamlit script on a free port and gives its address; `watched` is a page that fails its test if anything
was written to the console as an error, anything threw, or anything was asked of a foreign host.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks.browsers import FLAGS
from tests.browser.patience import PATIENCE_MS, expect
from tests.browser.servers import APP, SharedServer, free_port, started
from tests.browser.tabs import SharedTab, go
from tests.browser.visits import drawn, rest
from tests.patience import HANG_S

DRAWINGS = Path(__file__).with_name("canvas_app.py")

NUMBERS = count()
"""Of the pages of drawings that were opened: each has drawings of its own."""

UNHURRIED = "--js-flags=--no-opt --no-maglev"
"""Scripts run as they are compiled at first: optimizing them takes longer than it saves on pages that are open for seconds."""

Serve = Callable[[Path], str]


def chromium() -> str:
    """The path of a Chromium. Without one the test is skipped, or fails where a skip would hide it (in CI).

    That without a window comes first: it is the same engine, and takes an eighth less time.
    """
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    sentence = "No Chromium was found: install one (on Debian `apt-get install chromium`) to run the tests in tests/browser."
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": chromium(), "args": [*FLAGS, UNHURRIED]}


@pytest.fixture(scope="session")
def base_url() -> str | None:
    """Takes the place of a plugin's fixture, whose manner of definition pytest 9 warns about."""
    return None


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory, app_server: SharedServer) -> Iterator[Serve]:
    """Starts Streamlit scripts, each once; ends them with the session. The app itself is started once for all processes."""
    running: dict[Path, str] = {}
    own: list[subprocess.Popen[bytes]] = []

    def start(script: Path) -> str:
        if script == APP:
            running[script] = running.get(script) or app_server.address()
        elif script not in running:
            running[script], process = started(script, free_port(), tmp_path_factory.mktemp("served"))
            own.append(process)
        return running[script]

    yield start
    for process in own:
        process.kill()  # it would end by itself two seconds after it was asked to
        process.wait(timeout=HANG_S)


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """One browser profile for all tests of a process: its cache holds Streamlit's scripts, so pages open a third faster."""
    context = browser.new_context()
    context.add_init_script(f"globalThis.headlightPatience = {PATIENCE_MS}")  # of scripts with the server, tests.test_patience
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
    tab.take_back(whole=called is not None and called.passed, stays=_stays(request))


@pytest.fixture
def page(request: pytest.FixtureRequest, context: BrowserContext, tab: SharedTab) -> Page:
    """The tab of this process, as good as new."""
    return tab.lend(stays=_stays(request))


def _stays(request: pytest.FixtureRequest) -> bool:
    """Whether a test goes on from the page of the test before, which takes a third of the time of loading one."""
    return bool({"within", "drawings"} & set(request.fixturenames))


@pytest.fixture
def within(watched: Page, tab: SharedTab) -> Callable[[str], Page]:
    """Opens a page of the app by its link, within the page that the test before has left, and waits until it is drawn."""

    def opened(url: str) -> Page:
        tab.settle()
        go(watched, url, slow=True)
        return drawn(watched)

    return opened


@pytest.fixture
def drawings(watched: Page, tab: SharedTab, serve: Serve) -> Callable[[str], Page]:
    """Opens the page of drawings with a query, within the page that the test before has left, and waits until it is drawn."""

    def opened(query: str) -> Page:
        number = next(NUMBERS)
        tab.settle()
        go(watched, f"{serve(DRAWINGS)}/?{query}&number={number}", slow=False)
        expect(watched.get_by_text(f"page {number}", exact=True)).to_be_visible()
        rest(watched, drawn=".hl[data-layout], .hl .chip")
        return watched

    return opened


@pytest.fixture
def watched(page: Page, tab: SharedTab) -> Iterator[Page]:
    """A page that must stay quiet. It is patient: a busy machine is no fault of the page."""
    page.set_default_timeout(PATIENCE_MS)
    yield page
    assert tab.noise == []


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A phone beside the tab."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    context.close()
