"""A fresh tab of a real Chromium: when it stood painted, and what it was made of."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from playwright.sync_api import Error, Page, WebSocket

from benchmarks import peers
from benchmarks.browsers import Browser
from benchmarks.servers import HERE

PAINTED = (HERE / "painted.js").read_text(encoding="utf-8")

ATLAS = ".hl[data-drawing=atlas][data-layout]"
"""What is there once our drawing is."""

QUIET = 2
"""Seconds that a tab has beyond those of the picture: for a second nothing must change in it, and it has to be asked."""

_SIZES = """() => {
    const sum = (entries) => entries.reduce((total, { encodedBodySize }) => total + encodedBodySize, 0);
    const fetched = performance.getEntriesByType("resource");
    return [painted, arrived, sum(fetched.filter(({ name }) => name.includes("/headlight/"))), sum(fetched)];
}"""


@dataclass(frozen=True)
class Visit:
    """One tab.

    Attributes:
        seconds: from the navigation to the frame after the last change.
        drawing: the part of it from the last byte on.
        data: bytes of the drawing: what came by our route and over the socket.
        others: bytes of everything else that was fetched, the page itself left out.
    """

    seconds: float
    drawing: float
    data: int
    others: int


@contextmanager
def tab(browser: Browser, *scripts: str) -> Iterator[Page]:
    """A fresh tab that has nothing in its cache and reaches nothing but this machine."""
    context = browser.context()
    try:
        page = context.new_page()
        page.set_default_timeout(1000 * peers.SECONDS)
        for script in (PAINTED, *scripts):
            page.add_init_script(script)
        peers.answer_for_the_network(page)
        yield page
    finally:
        with suppress(Error):  # a browser that was cut has none to close
            context.close()


def heard(page: Page) -> Callable[[], int]:
    """Counts the bytes that come over the sockets that a page opens from now on."""
    sizes: list[int] = []

    def listen(opened: WebSocket) -> None:
        opened.on("framereceived", lambda payload: sizes.append(len(payload)))

    page.on("websocket", listen)
    return lambda: sum(sizes)


def visit(browser: Browser, address: str, there: str = "body") -> Visit:
    """Opens a page in a fresh tab, until `there` is there and nothing changes any more.

    Raises:
        TooMuch: it takes more than a peer may, or the tab gives up.
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
