"""The bundled model of repeated words: its heads, and that they are the cause."""

from functools import cache

import numpy as np
import pytest
import torch

from model.checkpoints import native
from model.checkpoints.native import Checkpoint
from model.engine.local import CHECKPOINTS
from model.inference.run import run
from model.requests.edits import Forbid
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array, Trace

BUNDLED = CHECKPOINTS / "induction"
STEPS = sorted(int(path.stem) for path in (BUNDLED / "snapshots").glob("*.safetensors"))
WORDS, BLOCKS = 20, 12
TEXT = "fox moon tea harry potter rain key fox moon tea harry"


@cache
def loaded(step: int) -> Checkpoint:
    return native.load(BUNDLED, torch.device("cpu"), f"snapshots/{step:06}.safetensors")


def of(trace: Trace, layer: int) -> Array:
    """Weights of a layer: [head, query, key]."""
    return list(trace.attention.values())[layer].weights


@cache
def scores(step: int) -> tuple[float, float, float]:
    """Best previous-token score of layer 1, best induction score of layer 2, loss of second copies; blocks of distinct words."""
    checkpoint, chance = loaded(step), np.random.default_rng(5)
    previous, induction, losses = [], [], []
    for _ in range(BLOCKS):
        block = chance.permutation(np.arange(4, checkpoint.tokenizers["source"].size))[:WORDS].tolist()
        trace = run(
            checkpoint, RunRequest("induction", tuple(block * 2), decoding=Decoding(max_length=0)), torch.device("cpu"), "cpu"
        )
        rows = np.arange(WORDS, 2 * WORDS)
        previous.append(of(trace, 0)[:, rows, rows - 1].mean(1))
        induction.append(of(trace, 1)[:, rows, rows - WORDS + 1].mean(1))
        assert trace.logits is not None
        logits = torch.tensor(np.asarray(trace.logits)[rows[:-1]])
        losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor(block[1:])).item())
    return float(np.mean(previous, axis=0).max()), float(np.mean(induction, axis=0).max()), float(np.mean(losses))


def test_the_two_heads_are_born_and_the_loss_of_second_copies_falls() -> None:
    first, last = scores(STEPS[0]), scores(STEPS[-1])
    assert first[0] < 0.1 and first[1] < 0.1 and first[2] > 4  # noqa: PT018  # one sentence about one snapshot
    assert last[0] > 0.45 and last[1] > 0.85 and last[2] < 0.05  # noqa: PT018


def test_the_snapshots_lead_from_the_first_weights_to_the_bundled_ones() -> None:
    files = sorted((BUNDLED / "snapshots").glob("*.safetensors"))
    assert len(files) >= 14
    assert files[0].stem == "000000"
    assert files[-1].read_bytes() == (BUNDLED / "model.safetensors").read_bytes()
    assert all(path.stat().st_size < 200_000 for path in files)


@pytest.mark.parametrize(("site", "query", "key"), [("decoder.0.0.self", 4, 3), ("decoder.0.1.self", 10, 4)])
def test_one_edge_of_either_layer_carries_the_answer(site: str, query: int, key: int) -> None:
    """“potter” looks back at “harry”, and the second “harry” at “potter”: without either, the word is not found."""

    def probability(*edits: Forbid) -> float:
        request = RunRequest("induction", TEXT, decoding=Decoding(max_length=1), edits=edits)
        trace = run(loaded(STEPS[-1]), request, torch.device("cpu"), "cpu")
        assert trace.logits is not None
        logits = torch.tensor(np.asarray(trace.logits)[-1])
        return float(logits.softmax(0)[loaded(STEPS[-1]).tokenizers["source"].encode("potter", "source").ids[0]])

    assert probability() > 0.8
    assert probability(Forbid(site=site, query=(query,), key=(key,))) < 0.02
