"""The same examples in every run, on every machine, however busy it is; and how many processes share the tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Before torch is imported: two threads wait for each other longer than they compute (12 times, measured on a busy machine).
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("headlight", deadline=None, derandomize=True, max_examples=60, database=None)
settings.register_profile("quick", settings.get_profile("headlight"), max_examples=15)
settings.load_profile("headlight")

QUICK = "not slow"
"""The part that a developer runs while working: it tries fewer examples of each property."""

WORKERS = 2
"""Processes for the whole suite. Each imports torch and Streamlit, and may have a Chromium beside it."""

SLOW = ("browser", "cluster", "load")
"""Markers of what is slow, too."""

SLOW_PLACES = tuple(
    Path(__file__).parent / name
    for name in (
        "app",
        "load",
        "model/huggingface",
        "model/engine/test_contract.py",
        "model/test_viewing.py",
        "viz/test_views_step.py",
        "viz/test_views_checkpoint_files.py",
    )
)
"""Where the whole script runs, the transformers library is imported, or hosts and people have processes of their own."""


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the number of examples before any test is read."""
    if str(config.option.markexpr) == QUICK:
        settings.load_profile("quick")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Who names files waits for these alone, in one process; so does `-m load`, which measures."""
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and "load" not in str(config.option.markexpr)
    return WORKERS if whole and (os.cpu_count() or 1) >= WORKERS else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright keeps an event loop running in this thread, beside which no other can be started.

    Each worker gets whole files, in this order. What has a browser, a cluster or a load is slow, too.

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
        if any(item.path.is_relative_to(place) for place in SLOW_PLACES) or any(map(item.get_closest_marker, SLOW)):
            item.add_marker(pytest.mark.slow)
