"""The worked examples of docs/why.md and docs/circuit.md: each command is run, and the lines that stand below it come out."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from model.__main__ import main
from model.engine.api import Engine, Run
from model.requests.request import Decoding, RunRequest

DOCS = Path(__file__).parents[4] / "docs"
PAGES = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("why.md", "circuit.md"))
EXAMPLES = re.findall(r"```\npython -m model ([^\n]+)\n```\n\n```\n(.*?)```", PAGES, re.DOTALL)


def test_there_are_five_examples() -> None:
    assert [command.split()[0] for command, _ in EXAMPLES] == ["why", "writes", "circuit", "circuit", "paths"]


@pytest.mark.parametrize(("command", "lines"), EXAMPLES, ids=["why", "writes", "circuit", "row", "paths"])
def test_an_example_prints_what_the_page_shows(command: str, lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*shlex.split(command), "--device", "cpu"]) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in lines.splitlines():  # in this order, others between them
        there = next((own for own in printed if without_numbers(own) == without_numbers(line)), None)
        assert there is not None, line
        assert numbers(there) == pytest.approx(numbers(line), abs=2e-4)


def test_the_head_that_looks_at_the_token_before_is_the_one_that_the_page_names(engine: Engine) -> None:
    """“Head 0 is not the head that attends to the token before: its mean weight there is 0.24, that of head 1 is 0.51.”"""
    text = "fox moon tea harry potter rain key fox moon tea harry"
    trace = engine.ask(Run(RunRequest("induction", text, decoding=Decoding(max_length=1))))
    weights = np.asarray(trace.at("decoder.0.0.self").weights, np.float64)
    before = [float(np.mean([head[row, row - 1] for row in range(1, len(head))])) for head in weights]
    sentence = re.search(r"its mean weight there is (\S+), that of head 1 is (\S+)\.", PAGES)
    assert sentence
    assert [f"{mean:.2f}" for mean in before] == [sentence[1], sentence[2]]


def without_numbers(line: str) -> str:
    return " ".join(re.sub(r"-?\d+\.\d+", "#", line).split())


def numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+(?!\.\d)(?![\w.])", re.sub(r"\w+\.\d+\.\d+\.\w+", "", line))]
