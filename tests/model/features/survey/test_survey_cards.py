"""The cards of the bundled models tell what their surveys hold, and the surveys are of the weights that lie beside them."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints import loader
from model.features.survey import tables
from model.features.survey.texts import OF_MODELS
from model.measures.catalogue import MEASURES, VERSION

SURVEYED = (*OF_MODELS, "captions-lm")
"""The last one is surveyed over the texts of models without a corpus of their own: English captions."""

ROOT = Path(__file__).parents[4] / "checkpoints"
ROW = re.compile(
    r"^\| `((?:en|de)coder\.\d\.\d\.\w+)` \| (\d) \|(?: [\w ]+ \|)? `(\w+)`[^|]*\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", re.M
)


@pytest.mark.parametrize("model", SURVEYED)
def test_a_card_has_the_numbers_of_the_survey(model: str) -> None:
    found = tables.read(ROOT / model / "survey.parquet")
    own, means = found.statistics, [found.baselines[name].mean for name in ("untrained", "shuffled")]
    card = (ROOT / model / "CARD.md").read_text(encoding="utf-8").partition("## What its heads do")[2].partition("\n## ")[0]
    assert f"{own.texts:,} texts" in card
    assert f"{own.tokens:,} tokens" in card
    rows = ROW.findall(card)
    assert rows
    for site, head, measure, *numbers in rows:
        place = own.heads.index((site, int(head))), list(MEASURES).index(measure)
        assert [f"{values[place]:.2f}" for values in (own.mean, *means)] == numbers
    named = {
        (site, head, role.criterion.measure) for (site, head), roles in zip(own.heads, found.roles, strict=True) for role in roles
    }
    told = {(site, int(head), measure) for site, head, measure, *_ in rows}
    assert named == told if named else "None of its" in card


@pytest.mark.slow
@pytest.mark.parametrize("model", SURVEYED)
def test_a_stored_survey_is_of_the_weights_beside_it(model: str) -> None:
    found = tables.read(ROOT / model / "survey.parquet")
    assert found.finished
    assert found.about.version == VERSION
    assert found.copying is not None
    assert np.isfinite(found.copying).any()
    assert found.about.fingerprint == loader.load(ROOT / model, {}, torch.device("cpu")).fingerprint
