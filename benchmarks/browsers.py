"""A real Chromium with a watchdog: a page that computes forever answers no call and cannot be closed, so its process is killed."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
from playwright.sync_api import BrowserContext, BrowserType, Error, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

CLOSING = 10
"""Seconds after which a browser that does not close is killed."""


class NoBrowser(Exception):
    """There is no Chromium on this machine."""


def chromium() -> str:
    """The path of a Chromium or Chrome.

    Raises:
        NoBrowser: there is none.
    """
    names = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
    if found := next(filter(None, map(shutil.which, names)), None):
        return found
    raise NoBrowser(
        "What a browser shows was not measured: no Chromium or Chrome was found; install one, for instance `apt install chromium`."
    )


class Browser:
    """A Chromium process. After it was killed, the next context starts a new process.

    Args:
        kind: Playwright's browser type, which starts it.

    Attributes:
        cut: whether the process was killed by the watchdog.

    Raises:
        NoBrowser: there is no Chromium here.
    """

    def __init__(self, kind: BrowserType) -> None:
        self._kind = kind
        self._start()

    def _start(self) -> None:
        self._running = self._kind.launch(executable_path=chromium(), args=FLAGS)
        processes = self._running.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        self._process = psutil.Process(next(one["id"] for one in processes if one["type"] == "browser"))
        self.cut = False

    def context(self) -> BrowserContext:
        """A window of 1440 × 900 with an empty cache."""
        if self.cut:
            self._start()
        return self._running.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)  # else a page may not be asked

    @contextmanager
    def cut_after(self, seconds: float) -> Iterator[None]:
        """Kills the browser if the body of `with` takes longer; calls that wait for it then fail with Playwright's `Error`."""
        watch = threading.Timer(seconds, self._cut)
        watch.start()
        try:
            yield
        finally:
            watch.cancel()
            watch.join()

    def _cut(self) -> None:
        self.cut = True
        for process in (*self._process.children(recursive=True), self._process):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def close(self) -> None:
        """Closes the browser, or kills it if it does not close in time."""
        with self.cut_after(CLOSING), suppress(Error):
            self._running.close()


@contextmanager
def browsing() -> Iterator[Browser]:
    """Starts a browser, and closes it at the end.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    with sync_playwright() as playwright:
        browser = Browser(playwright.chromium)
        try:
            yield browser
        finally:
            browser.close()
