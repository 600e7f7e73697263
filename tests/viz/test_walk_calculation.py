"""The sentences of the calculation of one weight."""

from types import SimpleNamespace
from typing import cast

import pytest

from model.trace.cell_arithmetic import Explanation
from viz.views.step import cell_panels


@pytest.mark.parametrize(("part", "said"), [(-0.0002, "supplies 0.0%"), (0.25, "supplies 25.0%"), (-0.25, "supplies −25.0%")])
def test_a_share_that_rounds_to_zero_has_no_sign(part: float, said: str) -> None:
    """The page said "supplies −0.0%"."""
    found = cast(Explanation, SimpleNamespace(share=part, moved=[0.5], key=0))
    (line,) = cell_panels.share(found)
    assert said in " ".join(str(value) for value in vars(line).values())
