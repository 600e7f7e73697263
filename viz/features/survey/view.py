"""The URL parameters of the page Survey."""

from dataclasses import dataclass

from model.measures.catalogue import MEASURES, OF_HEADS
from viz.url import parsers as values
from viz.url.parsers import parameter

SURVEYED = (*MEASURES, *OF_HEADS)
"""What Survey can draw of every head."""


@dataclass(frozen=True, kw_only=True)
class SurveyView:
    """What the page Survey shows."""

    across: str = parameter(
        "entropy", "x", f"what Survey draws from left to right: {', '.join(SURVEYED)}; see survey.md", values.choice(*SURVEYED)
    )
    up: str = parameter("previous", "y", "what Survey draws from bottom to top: as x", values.choice(*SURVEYED))
    shade: str = parameter("", "color", "what colors Survey's heads: as x; default: their kind", values.choice(*SURVEYED))
    dots: str = parameter("", "size", "matters: Survey's dots are as large as their heads matter", values.choice("matters"))
    beside: str = parameter("", "survey", "the model whose stored survey Survey compares with", values.text, reset_by="model")
