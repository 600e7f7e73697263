"""The worked experiments of docs/what-if.md: each row's edit is run, and the words and the sum that stand there come out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.engine.api import Engine, Run
from model.requests.edit import read_edits
from model.requests.request import RunRequest

PAGE = (Path(__file__).parents[4] / "docs" / "what-if.md").read_text(encoding="utf-8")
OWN = "the same words"


def rows() -> Iterator[tuple[str, str, str]]:
    """Source, edits and result of each row of the table; a row without a source has that of the row above."""
    part = PAGE.split("## Five experiments")[1].split("```")[0]
    source = ""
    for line in part.splitlines()[4:]:
        if line.startswith("| ") and "---" not in line and not line.startswith("| source"):
            first, edit, result = (cell.strip() for cell in line.strip("|").split(" | "))
            source = first.lstrip("| ") or source
            yield source, edit, result


@pytest.mark.parametrize(("source", "edit", "result"), list(rows()))
def test_a_row_says_what_comes_out(engine: Engine, source: str, edit: str, result: str) -> None:
    text, _, model = source.partition(" (`")
    request = RunRequest(model.rstrip("`)") or "multi30k-de-en", text)
    before = engine.ask(Run(request))
    own = " ".join(before.tokens["target"].texts[1:-1])
    codes = re.findall(r"`([^`]+)`", edit)
    target = own if "its own translation" in edit else None
    after = engine.ask(Run(RunRequest(request.model, text, target=target, edits=read_edits(codes[0]) if codes else ())))
    words = " ".join(after.tokens["target"].texts[1:])
    if target is None:
        said = result.replace("**", "").split(" (")[0].split(": ")[0].split(":")[0].strip()
        for part in (own if said == OWN else said).split("…"):
            assert part.strip() in words
    sums = [float(number.replace("−", "-")) for number in re.findall(r"−\d+\.\d\d", result)]
    if sums:
        assert sum(step.chosen.log_probability for step in after.steps) == pytest.approx(sums[0], abs=0.006)


def test_the_table_has_every_experiment() -> None:
    assert len(list(rows())) == PAGE.split("## Five experiments")[1].split("```")[0].count("\n| ") - 1
