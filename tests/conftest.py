"""The same examples in every run, on every machine, however busy it is."""

import pytest
from hypothesis import settings

settings.register_profile("headlight", deadline=None, derandomize=True, max_examples=60, database=None)
settings.load_profile("headlight")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright keeps an event loop running in this thread, beside which no other can be started.

    One that fails is tried once more, and the report says so: a machine that stalls for half a minute is no fault of the page.
    What measures a class is left out unless the command line names it: its limits mean something on a quiet machine alone.
    """
    if "load" not in str(config.option.markexpr):
        left_out = [item for item in items if item.get_closest_marker("load")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))
