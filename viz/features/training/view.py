"""The URL parameters of the page Training."""

from dataclasses import dataclass

from viz.url import parsers as values
from viz.url.parsers import parameter

MEASURES = ("entropy", "near_diagonal", "antidiagonal", "similarity")
"""Measures of a head that are drawn over the snapshots; docs/readings.md defines each."""


@dataclass(frozen=True, kw_only=True)
class TrainingView:
    """What the page Training shows; the snapshot -1 is the first one."""

    snapshot: int = parameter(
        -1,
        "snapshot",
        "the snapshot that Training shows: the step after which it was kept",
        values.whole(-1),
        reset_by="model",
        reported=True,
    )
    measure: str = parameter(
        "entropy", "measure", f"what Training draws of every head: {', '.join(MEASURES)}; see readings.md", values.choice(*MEASURES)
    )
