"""`expect` as Playwright has it, but it looks ten times a second, and for as long as only a page that hangs takes.

Playwright looks twice a second once a quarter of a second has passed, unless its limit is short: so it is asked again and again
with a short limit. A busy machine is no fault of the page, so the whole limit is long.
"""

import time
from collections.abc import Callable
from typing import Any, cast

from playwright.sync_api import Locator
from playwright.sync_api import expect as expect_once
from playwright.sync_api._generated import LocatorAssertions

from tests.patience import HANG_S

PATIENCE_MS = 1000 * HANG_S
SHORT_MS = 2_000
OFTEN_MS = 25


class Patient:
    """The assertions about a locator."""

    def __init__(self, found: Locator) -> None:
        self._assertions = expect_once(found)

    def __getattr__(self, name: str) -> Callable[..., None]:
        holds = getattr(self._assertions, name)

        def assertion(*positional: Any, timeout: float = PATIENCE_MS, **named: Any) -> None:
            __tracebackhide__ = True
            deadline = time.monotonic() + timeout / 1000
            while True:
                try:
                    holds(*positional, timeout=SHORT_MS, **named)
                except AssertionError:
                    if time.monotonic() > deadline:
                        raise
                else:
                    return

        return assertion


def expect(found: Locator) -> LocatorAssertions:
    """What is to become true of a locator."""
    return cast(LocatorAssertions, Patient(found))
