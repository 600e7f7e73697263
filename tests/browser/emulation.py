"""Another screen or language in the tab that tests share: a new context would load and compile all scripts again."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page

from tests.browser.tabs import VIEWPORT


@contextmanager
def another_screen(page: Page, width: int, height: int, ratio: float) -> Iterator[None]:
    """A window of so many CSS pixels on a screen of so many pixels to one of them. Open the page inside."""
    page.set_viewport_size(VIEWPORT)
    session = page.context.new_cdp_session(page)
    screen = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": False}
    session.send("Emulation.setDeviceMetricsOverride", screen)
    yield
    session.send("Emulation.clearDeviceMetricsOverride")
    session.detach()
    page.set_viewport_size({"width": width, "height": height + 1})  # another size: what the tab had before comes back with it


@contextmanager
def another_language(page: Page, tag: str) -> Iterator[None]:
    """A browser whose reader prefers this language. Open the page inside."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setUserAgentOverride", {"userAgent": page.evaluate("navigator.userAgent"), "acceptLanguage": tag})
    session.send("Emulation.setLocaleOverride", {"locale": tag})
    yield
    session.send("Emulation.setLocaleOverride", {})
    session.send("Emulation.setUserAgentOverride", {"userAgent": ""})
    session.detach()
    page.goto("about:blank")


@contextmanager
def a_phone(page: Page, width: int = 390, height: int = 844) -> Iterator[None]:
    """A window without mouse and keyboard, used with fingers. Open the page inside."""
    page.emulate_media()
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    features = [{"name": "hover", "value": "none"}, {"name": "pointer", "value": "coarse"}]
    session.send("Emulation.setEmulatedMedia", {"features": features})
    with another_screen(page, width, height, 1):
        yield
    session.send("Emulation.setEmulatedMedia", {"features": []})
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    session.detach()


def touch(page: Page, *path: tuple[float, float]) -> None:
    """A finger goes down at the first place, along the others, and up."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    for kind, (x, y) in zip(("touchStart", *["touchMove"] * (len(path) - 1)), path, strict=True):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()
