"""The same examples in every run, on every machine, however busy it is; and how many processes share the tests."""

import gc
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.entropy import deterministic_PRNG

from model.engine.api import Engine
from model.errors import Phrase
from model.sharing.caches import BUDGET
from tests import app_runs, patience, sandboxes
from tests.browser.servers import APP, SharedServer
from tests.whole_sentences import among_words

# Before torch is imported: two threads wait for each other longer than they compute (12 times, measured on a busy machine).
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A process of tests keeps 256 MiB of traces and networks, not 2 GiB, and frees what it has used: with two it fits a laptop of 8 GB.
os.environ["HEADLIGHT_MEMORY"] = "256"
os.environ["MALLOC_ARENA_MAX"] = "2"  # of the processes that are started from here: threads share what they have freed
BUDGET.most_bytes = float(256 * 2**20)

# What somebody has fetched onto this machine is in no list of models of a test.
os.environ["HF_HOME"] = str(Path(tempfile.gettempdir(), "headlight-tests-without-hub"))
os.environ["HEADLIGHT_MODELS"] = str(Path(tempfile.gettempdir(), "headlight-tests-without-models"))

# Tests start hundreds of processes: what one has compiled the others read, and so does the next run of the suite.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # while tests are collected: nothing that is imported by then is garbage

with deterministic_PRNG():  # hypothesis looks through all objects before its first test: now there are few
    pass

settings.register_profile("headlight", deadline=None, derandomize=True, max_examples=60, database=None)
settings.register_profile("quick", settings.get_profile("headlight"), max_examples=15)
settings.load_profile("headlight")

QUICK = "not slow"
"""The part that a developer runs while working: it tries fewer examples of each property."""

WORKERS = 2
"""Processes for the whole suite. Each imports torch and Streamlit, and may have a Chromium beside it."""

SLOW = ("browser", "cluster", "load", "thorough")
"""Markers of what is slow, too."""

SLOW_PLACES = tuple(
    Path(__file__).parent / name
    for name in (
        "app",
        "load",
        "model/huggingface",
        "model/engine/test_contract.py",
        "model/attribution/test_bundled_effects.py",
        "model/features/training/test_reversal.py",
        "model/features/training/test_train.py",
        "model/test_viewing.py",
        "viz/test_public_limits.py",
        "viz/features/compare/test_views_compare.py",
        "viz/test_views_step.py",
        "viz/test_views_checkpoint_files.py",
    )
)
"""Where whole pages run, networks are trained, libraries take seconds to import, or hosts and people have own processes."""

LONG = (
    "cluster big_mode engines pages room app open_by_name inside cell_dialog checkpoint holding what_if live_bad_input waiting "
    "survey walk first_visit no_english chat leaving_a_page canvas_component canvas_scale live many_heads class cells languages "
    "live_choices compare training search new_visitor circuit label_room recorded_by_keyboard page_keys hidden_answers"
).split()
"""Files of ten seconds and more of computing, the longest first: one process must not wait for another's last file."""

THOROUGH = "thorough"
"""The marker of what the README's test line leaves out: `-m thorough` runs it."""

MARKED = re.compile(r"^pytestmark = (?:\[.*?\]$|.*?$)", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"pytest\.mark\.(\w+)")
"""How a file marks all of its tests."""


def is_quick(config: pytest.Config) -> bool:
    """Whether the quick part is asked for."""
    return str(config.option.markexpr) == QUICK


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the number of examples before any test is read, and leaves out what is thorough: it has a step of its own in CI.

    Who names a file gets the whole of it. The changed expression reaches the other processes with the options.
    """
    if is_quick(config):
        settings.load_profile("quick")
    elif _names_no_file(config) and THOROUGH not in str(config.option.markexpr):
        config.option.markexpr = " and ".join(f"({part})" for part in (config.option.markexpr, f"not {THOROUGH}") if part)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves files unread of which no test would run: they import what takes seconds (transformers, Playwright, schemathesis)."""
    if not collection_path.match("test_*.py"):
        return None
    text, asked = collection_path.read_text("utf-8"), str(config.option.markexpr)
    marks = MARK.findall(line[0]) if (line := MARKED.search(text)) else []
    if is_quick(config):
        return _in_slow_place(collection_path) or not {*SLOW, "slow"}.isdisjoint(marks) or None
    unread = ("load" in marks and not _measures(config)) or (THOROUGH in marks and asked.endswith(f"(not {THOROUGH})"))
    return unread or (asked == THOROUGH and not _says_thorough(collection_path)) or None


def _says_thorough(path: Path) -> bool:
    """Whether a file of tests, or the conftest.py beside it, marks a test as thorough."""
    return any(f"mark.{THOROUGH}" in file.read_text("utf-8") for file in (path, path.parent / "conftest.py") if file.exists())


def pytest_collection_finish() -> None:
    """Spares what is loaded by now from garbage collections: one takes a second, and tests of what is freed wait for several."""
    app_runs.spare()
    sandboxes.spare()
    patience.lift_program_limits()
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True  # pytest hangs six handlers into each one that does not, for each test
    gc.enable()
    gc.set_threshold(2_000, 10, 30)  # with the usual numbers, collections took a tenth of the tests’ time
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def phrases_in_phrases_are_clauses() -> None:
    """No phrase that a test makes stands among the words of another, by the rule of the calls in viz (test_whole_sentences.py)."""
    checked = Phrase.__post_init__

    def stands_alone(self: Phrase) -> None:
        checked(self)
        for name, value in self.fields.items():
            told = isinstance(value, Phrase | tuple) and among_words(self.template, name)
            assert not told, f"{self.template!r} gets {value} as {name}"

    Phrase.__post_init__ = stands_alone  # type: ignore[method-assign]


@pytest.fixture(scope="session", autouse=True)
def app_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[SharedServer]:
    """The app for browser tests, started before the other tests: it takes seconds, for which both processes would wait."""
    base = tmp_path_factory.getbasetemp()
    server = SharedServer(APP, base if worker_id == "master" else base.parent)
    wanted = any(item.get_closest_marker("browser") for item in request.session.items)
    if wanted:
        server.join()
    yield server
    if wanted:
        server.leave()


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine that the app has, without a screen."""
    from tests.known import bundled_engine

    return bundled_engine()


@cache  # asked for each test
def _in_slow_place(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SLOW_PLACES)


def _turn(item: pytest.Item) -> tuple[bool, int]:
    """Sorts tests without a browser before those with one, and long files before the others of their kind."""
    name, own = item.path.stem.removeprefix("test_"), item.get_closest_marker("browser") is not None
    return own, LONG.index(name) if name in LONG and own == (name != LONG[0]) else len(LONG)


def _names_no_file(config: pytest.Config) -> bool:
    """Whether the whole suite is asked for, or parts of it by marker."""
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def _measures(config: pytest.Config) -> bool:
    """Whether the command line names what measures a class."""
    return "load" in str(config.option.markexpr)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Who names files waits for these alone, in one process; so does `-m load`, which measures."""
    whole = _names_no_file(config) and not _measures(config)
    return WORKERS if whole and (os.cpu_count() or 1) >= WORKERS else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright keeps an event loop running in this thread, beside which no other can be started.

    Each worker gets whole files, in this order. What has a browser, a cluster or a load is slow, too.

    A browser test that fails is tried once more, and the report says so: each rerun is a fault that is not yet understood.
    What measures a class is left out unless the command line names it: its limits mean something on a quiet machine alone.
    """
    if not _measures(config):
        left_out = [item for item in items if item.get_closest_marker("load")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=_turn)
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if _in_slow_place(item.path) or any(map(item.get_closest_marker, SLOW)):
            item.add_marker(pytest.mark.slow)
