"""What a run computed is freed with its trace: nothing of it is part of a reference cycle, which only garbage collection frees."""

import gc
import threading
import weakref
from collections.abc import Iterator
from contextvars import Context

import pytest

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.requests.edits import read_edits
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.progress import LISTENER, ProgressFeed
from model.transformer.cache import KVCache
from model.transformer.networks import BuiltNetwork
from tests.networks import save_checkpoint
from tests.patience import HANG_S
from tests.runs import CPU

GREEDY = RunRequest("tiny", "w4 w6 w5", decoding=Decoding(max_length=5))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine:
    """An engine whose network is loaded, and which keeps no run."""
    folder = tmp_path_factory.mktemp("models")
    save_checkpoint(folder / "tiny")
    engine = LocalEngine(folder, CPU, cache_bytes=0)
    engine.ask(Run(GREEDY))
    return engine


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile."""
    gc.disable()
    yield
    gc.enable()


def edited(text: str) -> RunRequest:
    return RunRequest("tiny", "w4 w6 w5", decoding=Decoding(max_length=5), edits=read_edits(text))


REQUESTS = {
    "greedy": GREEDY,
    "sampled": RunRequest("tiny", "w4 w6 w5", decoding=Decoding("sample", max_length=5)),
    "beam": RunRequest("tiny", "w4 w6 w5", decoding=Decoding("beam", max_length=5, beam_size=2)),
    "forced": RunRequest("tiny", "w4 w6 w5", target="w4 w5"),
    "everything kept": RunRequest("tiny", "w4 w6 w5", decoding=Decoding(max_length=5), keep=KEEP),
    "a mean": edited("silence stack=encoder head=0 by=sentence"),
    "a uniform row": edited("set-row stack=decoder kind=cross to=uniform"),
    "a word": edited("embed stack=encoder at=1 word=w7"),
    "a patch": edited('patch stack=encoder value=context head=0 source="w5 w6 w4"'),
    "a layer": edited("skip-layer stack=encoder layer=0"),
}


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("listening", [False, True])
@pytest.mark.parametrize("name", REQUESTS)
def test_keys_and_values_of_a_run_are_freed_without_garbage_collection(
    engine: LocalEngine, name: str, listening: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[KVCache]] = []
    freed: list[threading.Event] = []

    def watched(network: BuiltNetwork, decodes: bool = True) -> KVCache:
        freed.append(event := threading.Event())
        made.append(weakref.ref(cache := KVCache(), lambda _: event.set()))
        return cache

    monkeypatch.setattr(BuiltNetwork, "new_cache", watched)
    feed = ProgressFeed()
    Context().run(lambda: (LISTENER.set(feed.put if listening else None), engine.ask(Run(REQUESTS[name]))))
    feed.end()
    assert freed, "the run made no cache to watch"
    assert all(event.wait(HANG_S) for event in freed), "something still refers to what the run computed"
