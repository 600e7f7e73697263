"""The axis of training steps: logarithmic, with an extra place for step 0."""

import math
from collections.abc import Sequence
from typing import Any

from viz.figures.layout import axis
from viz.figures.theme import Scheme
from viz.i18n.translate import _, number


def places(steps: Sequence[int], snapshots: Sequence[int]) -> list[float]:
    """Places of training steps on the logarithmic axis. Step 0, which has no logarithm, is at half of the first later step."""
    return [float(step) or _zero(snapshots) for step in steps]


def _zero(snapshots: Sequence[int]) -> float:
    return min((step for step in snapshots if step > 0), default=1) / 2


def steps_axis(colours: Scheme, snapshots: Sequence[int]) -> dict[str, Any]:
    """The logarithmic axis of training steps, with a place for step 0."""
    first, last = _zero(snapshots), max(*snapshots, 1)
    tens = [10**power for power in range(math.ceil(math.log10(first)), math.floor(math.log10(last)) + 1) if 10**power > 1.3 * first]
    ticks = {"tickvals": [first, *tens], "ticktext": ["0", *(number(ten, ",") for ten in tens)]}
    across = axis(colours, _("training step (log scale)")) | ticks
    return across | {"type": "log", "range": [math.log10(first * 0.8), math.log10(last * 1.25)], "tickmode": "array"}
