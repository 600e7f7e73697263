"""What the diagnosis of a file says about whether it was trained."""

from model.inspection.report import Freshness
from viz.views.checkpoint_diagnosis import evidence


def seen(untouched: int, fresh: int, untrained: bool) -> Freshness:
    return Freshness(15, untouched, 19, fresh, {}, untrained)


def test_trained_weights_that_resemble_their_draw_say_why_that_is_no_contradiction() -> None:
    told = evidence(seen(untouched=0, fresh=14, untrained=False))
    assert any(sentence.startswith("14 of 19 matrices") for sentence in told)
    assert told[-1].startswith("That is no contradiction: training often keeps the mean and spread of a matrix.")


def test_nothing_is_explained_where_nothing_seems_to_contradict() -> None:
    for found in (seen(untouched=15, fresh=19, untrained=True), seen(untouched=0, fresh=0, untrained=False)):
        assert not any("contradiction" in sentence for sentence in evidence(found))
