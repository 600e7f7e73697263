"""The engine of a file's own folders, and which architectures are tried each time."""

from pathlib import Path

import pytest

from model.engine.local import LocalEngine
from tests.runs import CPU

ALWAYS = "bert gpt2 llama gemma2 mixtral deepseek_v3 marian t5 bart gpt_neo vit blip whisper".split()
"""One for each way of opening a folder and each kind of input. The others run with `-m thorough`."""

PARAMETERS = ("family", "name", "architecture", "own")
"""Of tests, that say an architecture."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of other architectures as thorough."""
    here = [item for item in items if item.path.parent == Path(__file__).parent and isinstance(item, pytest.Function)]
    if not here:
        return
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    others = {*CONFIG_MAPPING_NAMES}.difference(ALWAYS)
    for item in here:
        chosen = item.callspec.params if hasattr(item, "callspec") else {}
        if others.intersection(str(chosen.get(name)) for name in PARAMETERS):
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="module")
def engine(shelf: Path) -> LocalEngine:
    return LocalEngine(shelf, CPU)
