"""Visits a page in a new tab of a real Chromium: measures the time until it is painted, and the bytes that it fetched."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from playwright.sync_api import Error, Page, WebSocket

from benchmarks import peers
from benchmarks.browsers import Browser
from benchmarks.servers import HERE

PAINTED = (HERE / "painted.js").read_text(encoding="utf-8")

ATLAS = ".hl[data-drawing=atlas][data-layout]"
"""Selector of our drawing, once it is laid out."""

QUIET = 2
"""Seconds that a tab has in addition to the limit: the page must not change for one second, and is then queried."""

_SIZES = """() => {
    const sum = (entries) => entries.reduce((total, { encodedBodySize }) => total + encodedBodySize, 0);
    const fetched = performance.getEntriesByType("resource");
    return [painted, arrived, sum(fetched.filter(({ name }) => name.includes("/headlight/"))), sum(fetched)];
}"""


@dataclass(frozen=True)
class Visit:
    """The measurements of one tab.

    Attributes:
        seconds: time from the navigation to the frame after the last change.
        drawing: the part of this time after the last byte arrived.
        data: bytes of the drawing, fetched over our route and over the websocket.
        others: bytes of all other requests, without the page itself.
    """

    seconds: float
    drawing: float
    data: int
    others: int


@contextmanager
def tab(browser: Browser, *scripts: str) -> Iterator[Page]:
    """A new tab with an empty cache and no network access except to this machine."""
    context = browser.context()
    try:
        page = context.new_page()
        page.set_default_timeout(1000 * peers.SECONDS)
        for script in (PAINTED, *scripts):
            page.add_init_script(script)
        peers.answer_for_the_network(page)
        yield page
    finally:
        with suppress(Error):  # a browser that was killed has no context to close
            context.close()


def heard(page: Page) -> Callable[[], int]:
    """Counts the bytes that arrive over websockets that the page opens from now on; returns the counter."""
    sizes: list[int] = []

    def listen(opened: WebSocket) -> None:
        opened.on("framereceived", lambda payload: sizes.append(len(payload)))

    page.on("websocket", listen)
    return lambda: sum(sizes)


def visit(browser: Browser, address: str, there: str = "body") -> Visit:
    """Opens a page in a new tab and waits until the selector `there` is present and the page rests.

    Raises:
        TooMuch: it takes longer than a peer may, or the tab fails.
    """
    with browser.cut_after(peers.SECONDS + QUIET), tab(browser) as page:
        socket_bytes = heard(page)
        try:
            page.goto(address, wait_until="commit")
            page.wait_for_selector(there, state="attached")
            rest(page)
            painted, arrived, ours, fetched = page.evaluate(_SIZES)
        except Error as error:
            late = browser.cut or "Timeout" in error.message
            raise peers.TooMuch(f"> {peers.SECONDS} s" if late else "the tab gave up") from error
        return Visit(painted / 1000, (painted - arrived) / 1000, ours + socket_bytes(), fetched - ours)


def rest(page: Page) -> None:
    """Waits until the page has not changed for a second."""
    page.wait_for_function("window.painted !== null", polling=100)
