"""Digits, reversed: a task whose attention is known before it is learned. The bundled checkpoint, and a training from nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from model.checkpoints import native
from model.checkpoints.native import Checkpoint
from model.engine.local import CHECKPOINTS
from model.features.training import corpora, recipes
from model.features.training.corpora import Texts
from model.features.training.data import batches, examples
from model.features.training.evaluate import evaluate
from model.features.training.train import train
from model.inference.run import run
from model.requests.request import Decoding, RunRequest

CPU = torch.device("cpu")
BUNDLED = CHECKPOINTS / "reverse-digits"


def unseen(checkpoint: Checkpoint) -> Texts:
    """The test split, none of which was trained on."""
    corpus = corpora.from_json(checkpoint.info.data, "data")
    seen = set(corpus.texts(None, "train"))
    texts = corpus.texts(None, "test")
    assert not seen & set(texts)
    return texts


def share_right(checkpoint: Checkpoint, texts: Texts) -> float:
    """Share of strings reversed without a fault: greedy decoding writes what is likeliest after the true tokens."""
    corpus = corpora.from_json(checkpoint.info.data, "data")
    right = 0
    with torch.inference_mode():
        for batch in batches(examples(corpus, texts, checkpoint.tokenizers), 128):
            wrong = (checkpoint.network(*batch.fed).argmax(-1) != batch.following) & (batch.following != 1)
            right += int((~wrong.any(dim=1)).sum())
    return right / len(texts)


def weight_near_the_antidiagonal(checkpoint: Checkpoint, digits: str) -> float:
    """Mean, over the rows that write a digit, of the cross-attention weight within one position of the digit written."""
    trace = run(checkpoint, RunRequest("reverse-digits", digits), CPU, "cpu")
    (cross,) = (attention for site, attention in trace.attention.items() if site.kind == "cross")
    assert cross.weights.shape[2] == len(digits) + 2  # <sos> first, <eos> last
    rows = [cross.weights[:, query, len(digits) - query - 1 : len(digits) - query + 2].sum(-1) for query in range(len(digits))]
    return float(np.mean(rows))


def assert_reverses(checkpoint: Checkpoint, share: float) -> None:
    """The truth that is known of this task, on strings that were never trained on."""
    texts = unseen(checkpoint)
    assert share_right(checkpoint, texts) >= share
    assert np.mean([weight_near_the_antidiagonal(checkpoint, source) for source, _ in texts[:100]]) >= 0.9


def test_the_bundled_checkpoint_looks_along_the_antidiagonal_and_reverses_what_it_has_not_seen() -> None:
    assert_reverses(native.load(BUNDLED, CPU), 0.99)


def test_a_network_that_has_learned_nothing_does_neither() -> None:
    checkpoint = native.load(BUNDLED, CPU)
    checkpoint.network.load_state_dict(
        {name: value.float() for name, value in load_file(BUNDLED / "snapshots" / "000000.safetensors").items()}
    )
    assert share_right(checkpoint, unseen(checkpoint)) == 0
    assert weight_near_the_antidiagonal(checkpoint, "31415926") < 0.6


def test_evaluation_decodes_what_teacher_forcing_promises(few_strings: None) -> None:
    checkpoint = native.load(BUNDLED, CPU)
    scores = evaluate(checkpoint, None, "val", Decoding(), CPU)
    texts = corpora.from_json(checkpoint.info.data, "data").texts(None, "val")
    assert scores["accuracy"] == pytest.approx(share_right(checkpoint, texts))
    assert scores["parameters"] == sum(p.numel() for p in checkpoint.network.parameters())


def test_the_snapshots_lead_from_the_first_weights_to_the_bundled_ones() -> None:
    files = sorted((BUNDLED / "snapshots").glob("*.safetensors"))
    assert len(files) >= 12
    assert files[0].stem == "000000"
    assert files[-1].read_bytes() == (BUNDLED / "model.safetensors").read_bytes()
    assert all(path.stat().st_size < 300_000 for path in files)


@pytest.mark.slow
def test_it_is_learned_from_nothing(tmp_path: Path) -> None:
    """The bundled recipe on a sixth of its examples, and shorter ones. A network that has learned nothing does neither (above)."""
    recipe = recipes.load("reverse-digits")
    how = recipe.optimisation
    phases = (replace(how.phases[0], epochs=10, learning_rates=(6e-3, 0.0)),)
    small = replace(
        recipe,
        data=recipe.data | {"longest": 6, "strings": 3000},
        optimisation=replace(how, phases=phases, sentences_per_batch=32),
    )
    learned = native.load(train(small, None, tmp_path, CPU), CPU)
    assert_reverses(learned, 0.95)
