"""Numbers that cards state are computed again."""

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from model.engine.api import Engine, Run
from model.requests.request import RunRequest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LINES = gzip.decompress((ROOT / "model/features/survey/corpora/digits.tsv.gz").read_bytes()).decode().splitlines()[:300]


def weights_near_the_written_digit(engine: Engine, model: str, strings: Iterable[str]) -> list[list[float]]:
    """Of each string, for each digit that is written: the cross-attention weight within one position of that digit."""
    near = list[list[float]]()
    for string in strings:
        trace = engine.ask(Run(RunRequest(model, string, string[::-1])))
        weights = np.asarray(trace.at("decoder.0.0.cross").weights, np.float64)[0]
        last = trace.tokens["source"].special.index(False) + len(string) - 1
        rows = range(min(len(string), len(weights)))
        near.append([float(weights[row, max(last - row - 1, 0) : last - row + 2].sum()) for row in rows])
    return near


def test_the_card_of_reverse_digits_states_what_its_weights_are(engine: Engine) -> None:
    card = " ".join((ROOT / "checkpoints/reverse-digits/CARD.md").read_text("utf-8").split())
    stated = re.search(r"(\S+) % of the cross-attention weight .* single string: (\S+) %\).* first step it was (\S+) %", card)
    assert stated
    strings = [line.split("\t")[0] for line in LINES]
    trained = weights_near_the_written_digit(engine, "reverse-digits", strings)
    untrained = weights_near_the_written_digit(engine, "reverse-digits@000000", strings)
    shares = np.mean(np.concatenate(trained)), min(map(np.mean, trained)), np.mean(np.concatenate(untrained))
    assert [f"{100 * share:.1f}" for share in shares] == list(stated.groups())
