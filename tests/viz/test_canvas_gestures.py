"""Edits that a browser reports: what no drawing reports is dropped."""

import pytest

from viz.canvas.edit_events import Gesture, gesture

SITE = "decoder.0.1.cross"


def test_what_drawings_report_is_read() -> None:
    cells = {"act": "forbid", "site": SITE, "head": 1, "queries": [0, 2], "keys": [3, 3]}
    assert gesture(cells) == Gesture("forbid", SITE, 1, (0, 2), (3, 3))
    assert gesture({"act": "silence", "site": SITE, "head": 0}) == Gesture("silence", SITE, 0)
    assert gesture({"act": "hide", "strip": "source", "position": 4}) == Gesture("hide", strip="source", position=4)


@pytest.mark.parametrize(
    "report",
    [
        None,
        {},
        {"act": "delete"},
        {"act": "hide", "strip": "elsewhere", "position": 1},
        {"act": "hide", "strip": "source", "position": -1},
        {"act": "hide", "strip": "source", "position": True},
        {"act": "silence", "site": "here", "head": 0},
        {"act": "silence", "site": SITE, "head": 10**9},
        {"act": "forbid", "site": SITE, "head": 0, "queries": [2, 0], "keys": [0, 0]},
        {"act": "forbid", "site": SITE, "head": 0, "queries": [0], "keys": [0, 0]},
        {"act": "forbid", "site": SITE, "head": 0, "queries": "01", "keys": [0, 0]},
    ],
)
def test_anything_else_is_dropped(report: object) -> None:
    assert gesture(report) is None
