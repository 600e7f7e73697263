"""The same examples in every run, on every machine, however busy it is."""

import pytest
from hypothesis import settings

settings.register_profile("headlight", deadline=None, derandomize=True, max_examples=60, database=None)
settings.load_profile("headlight")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright keeps an event loop running in this thread, beside which no other can be started."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
