"""What mattered in the bundled models: every one can be asked, and what is known of one sentence comes out again."""

from typing import Any

import numpy as np
import pytest

from model.checkpoints import loader
from model.engine.local import CHECKPOINTS
from model.features.what_if.copies import Copies
from model.features.what_if.pace import Pace
from model.features.what_if.questions import Edges, Heads, Words
from model.features.what_if.scoring import Scorer
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array, sites
from tests.model.features.conftest import answered
from tests.runs import CPU

SENTENCES = {
    "multi30k-de-en": "Zwei junge Hunde spielen mit einem Ball im Schnee.",
    "multi30k-de-en-film": "Ein Hund spielt im Schnee.",
    "reverse-digits": "1 2 3",
    "tatoeba-en-zh": "I love you.",
    "induction": "fox moon tea fox moon",
    "wikitext2-lm": "the game was released in",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_every_bundled_model_can_be_asked(name: str) -> None:
    runner = loader.load(loader.locate(name, CHECKPOINTS), {}, CPU)
    request = RunRequest(name, SENTENCES[name], decoding=Decoding(max_length=14))
    heads = answered(runner, Heads(request, ("without", "alone")))
    assert len(heads.heads) == sum(sites(runner.info.spec).values())
    assert np.isfinite(heads.without).all()
    edges = answered(runner, Edges(request, 0))
    assert np.isfinite(edges.changes).any(axis=1).all()
    if name == "multi30k-de-en":
        assert heads.tokens[:3] == ("two", "young", "dogs")
        assert 0.05 < np.abs(heads.without.sum(axis=1)).max() <= 0.1, "no head alone changes the translation by more than 0.1"
        last = [row for row, head in enumerate(heads.heads) if head.site == "decoder.0.2.cross"]
        assert heads.alone[last].sum(axis=1).max() < -1, "but one head of the last cross-attention alone is not enough"


def test_integrated_gradients_of_a_bundled_model_are_complete_within_one_percent() -> None:
    runner = loader.load(loader.locate("tatoeba-en-zh", CHECKPOINTS), {}, CPU)
    found = answered(runner, Words(RunRequest("tatoeba-en-zh", SENTENCES["tatoeba-en-zh"], decoding=Decoding(max_length=8))))
    assert np.abs(found.residue / found.difference).max() <= 0.01


def test_many_heads_and_long_inputs_are_split_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    batch = Scorer._batch

    def counted(self: Scorer, copies: Copies, passes: Array, read: Any) -> Array:
        sizes.append(len(copies))
        return batch(self, copies, passes, read)

    monkeypatch.setattr(Pace, "units", lambda self: np.inf)
    monkeypatch.setattr(Scorer, "_batch", counted)
    runner = loader.load(loader.locate("reverse-digits", CHECKPOINTS), {}, CPU)
    long = RunRequest("reverse-digits", " ".join("0123456789" * 2))
    answered(runner, Edges(long, 0), most_bytes=1 << 20)
    few = max(sizes)
    sizes.clear()
    answered(runner, Edges(long, 0), most_bytes=4 << 20)
    assert 3 * few <= max(sizes) <= 5 * few
