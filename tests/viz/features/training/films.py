"""A made-up film, for tests: runs of one sentence whose weights differ from snapshot to snapshot."""

from dataclasses import replace

from tests import traces
from viz.features.training.metrics import Course, Frame, course
from viz.metrics.teacher_forcing import fed

STEPS = (0, 3, 10, 40, 200)
WHOLE = traces.translation(layers=2, heads=3, seed=9)


def frames() -> list[Frame]:
    """A frame for each of STEPS. Each is fed the target of WHOLE; the first writes two tokens by itself, later ones more."""
    found = []
    for seed, step in enumerate(STEPS):
        run = traces.translation(layers=2, heads=3, seed=seed)
        own = traces.translation(layers=2, heads=3, seed=seed, target=traces.ENGLISH[: 3 + seed])
        found.append(Frame(step, replace(run, tokens=WHOLE.tokens), own))
    return found


def measured() -> Course:
    """The measures of `frames`."""
    return course(frames(), fed(WHOLE).ids)
