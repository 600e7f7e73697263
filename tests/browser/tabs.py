"""One tab for all tests of a process: Chromium keeps compiled scripts per tab, so a new tab takes two to three times as long."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlparse

from playwright.sync_api import BrowserContext, Dialog, Error, Page

from tests.browser.patience import OFTEN_MS, PATIENCE_MS
from viz.session.visits import COOKIE

HOSTS = ("127.0.0.1", "localhost")
VIEWPORT: Any = {"width": 1280, "height": 720}
MEDIA: Any = {"color_scheme": "light", "reduced_motion": "no-preference", "forced_colors": "none"}
BLANK = "about:blank"
NOT_UNDONE = ("once", "route_web_socket")
"""Methods of a page whose effect cannot be undone here: the tab is closed after a test that called one."""

UNDONE = ("add_init_script", "expose_binding", "expose_function")
"""Methods of a page that return how their effect is undone."""


WITHIN = """async (url) => {
  const page = document.documentElement.dataset;
  const ran = () => document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]") && !("headlightLive" in page);
  const asked = () => fetch("/_stcore/health", { cache: "no-store" }).catch(() => {});
  for (let calm = 0, begun = performance.now(); calm < 2 && performance.now() < begun + 60_000; ) {
    await asked(); // by then the server knows of what was clicked before
    calm = ran() ? calm + 1 : 0;
  }
  document.activeElement.blur();
  document.querySelector("[data-testid=stMain]").scrollTop = 0;
  const run = (globalThis.headlightRun = { seen: false });
  const runs = new MutationObserver(() => { runs.disconnect(); run.seen = true; });
  setTimeout(() => (run.seen = true), 1000); // a busy tab hears of begin and end at once, and shows neither
  runs.observe(document.body, { attributeFilter: ["data-test-script-state"], subtree: true });
  history.pushState(null, "", url);
  dispatchEvent(new PopStateEvent("popstate"));
}"""
"""Opens a link of the app that a tab shows, where nothing is loaded and compiled again, and notes when its script runs.

What the page before was still asked for is over by then: its script would write its own link into the address bar, and be taken for
that of the page that is opened.
"""


class SharedTab:
    """The tab. A test gets it as a new one would be: blank, with the usual size, and without storage.

    Args:
        profile: where it is opened.

    Attributes:
        noise: what a page should not do, of the test that has the tab: errors, dialogs and requests of foreign hosts.
    """

    def __init__(self, profile: BrowserContext) -> None:
        self._profile = profile
        self._page: Page | None = None
        self._changed = False
        self._usual = set[str]()
        self._listeners: list[tuple[Any, Any]] = []
        self._disposables: list[Any] = []
        self.noise: list[str] = []

    def lend(self, stays: bool) -> Page:
        """The tab for a test.

        Args:
            stays: whether the page of the test before may still be there.
        """
        page = self._page = self._page or self._opened()
        if page.url != BLANK and not stays:
            forget(page)
        page.context.add_cookies([{"name": COOKIE, "value": "", "url": f"http://{host}"} for host in HOSTS])  # no new visitor
        self._changed = False
        self.noise.clear()
        self._usual = {"set_viewport_size", "emulate_media"}
        if not stays:
            self.settle()
        return page

    def settle(self) -> None:
        """Gives the tab its usual size and scheme where its test has not chosen others.

        A page that stays would be drawn once more for the usual ones, and again for those of the test.
        """
        if self._page and "set_viewport_size" in self._usual:
            self._page.set_viewport_size(VIEWPORT)
        if self._page and "emulate_media" in self._usual:
            self._page.emulate_media()

    def take_back(self, whole: bool, stays: bool) -> None:
        """Puts the tab away after a test, and with it all that the test has opened or stored.

        Args:
            whole: whether the test passed; the tab of another is closed.
            stays: whether the next test may go on from the page.
        """
        if not whole or self._changed:
            self._page = None
        page = self._page or self._profile.new_page()
        page.unroute_all(behavior="ignoreErrors")
        while self._page and self._listeners:
            page.remove_listener(*self._listeners.pop())
        self._listeners.clear()
        while self._disposables:
            with suppress(Error):  # of a tab that is closed
                self._disposables.pop().close()
        for other in self._profile.pages:
            if other != page:
                other.close()
        if self._page is None or not stays:
            forget(page)
        if self._page is None:
            page.close()

    def _opened(self) -> Page:
        page = self._profile.new_page()
        page.on("console", lambda message: self.noise.append(f"console: {message.text}") if message.type == "error" else None)
        page.on("pageerror", lambda error: self.noise.append(f"thrown: {error}"))
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self.noise.append(f"foreign: {request.url}") if _foreign(request.url) else None)
        listen = page.on

        def listened(event: Any, handler: Any) -> None:
            self._listeners.append((event, handler))
            listen(event, handler)

        size, emulate = page.set_viewport_size, page.emulate_media

        def chosen_size(viewport: Any) -> None:
            self._usual.discard("set_viewport_size")
            size(viewport)

        def chosen_media(**media: Any) -> None:
            usual = MEDIA if "emulate_media" in self._usual else {}
            self._usual.discard("emulate_media")
            emulate(**{**usual, **media})

        for name, method in {"on": listened, "set_viewport_size": chosen_size, "emulate_media": chosen_media}.items():
            setattr(page, name, method)
        for name in NOT_UNDONE:
            setattr(page, name, self._noted(getattr(page, name)))
        for name in UNDONE:
            setattr(page, name, self._kept(getattr(page, name)))
        return page

    def _dismiss(self, dialog: Dialog) -> None:
        self.noise.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _noted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            self._changed = True
            return method(*positional, **named)

        return call

    def _kept(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            self._disposables.append(method(*positional, **named))
            return self._disposables[-1]

        return call


def go(page: Page, url: str, slow: bool) -> None:
    """Opens a link. Where the tab shows a page of the same server, the app goes there by itself, as with the browser's Back.

    Args:
        slow: whether the script takes several frames, and is waited for until it runs. A quick one has run before a frame shows it.
    """
    page.mouse.move(0, 0)
    if urlparse(page.url)[:2] == urlparse(url)[:2]:
        page.evaluate(WITHIN, url)
        if slow:
            page.wait_for_function("() => headlightRun.seen", polling=OFTEN_MS, timeout=PATIENCE_MS)
    else:
        page.goto(url, wait_until="domcontentloaded")


def forget(page: Page) -> None:
    """Leaves a tab blank, and a profile without what anybody has stored: whoever comes next is somebody else."""
    with suppress(Error):  # of a page that never was anywhere
        page.evaluate("sessionStorage.clear()")
    page.goto(BLANK)
    page.mouse.move(0, 0)
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "local_storage,indexeddb"})
    session.detach()
    page.context.clear_cookies()


def _foreign(url: str) -> bool:
    return url.startswith("http") and urlparse(url).hostname not in HOSTS
