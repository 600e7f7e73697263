"""The worked examples of docs/why.md and docs/circuit.md: each command is run, and the lines that stand below it come out."""

import re
import shlex
from pathlib import Path

import pytest

from model.__main__ import main

DOCS = Path(__file__).parents[3] / "docs"
PAGES = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("why.md", "circuit.md"))
EXAMPLES = re.findall(r"```\npython -m model ([^\n]+)\n```\n\n```\n(.*?)```", PAGES, re.DOTALL)


def test_there_are_four_examples() -> None:
    assert [command.split()[0] for command, _ in EXAMPLES] == ["why", "writes", "circuit", "paths"]


@pytest.mark.parametrize(("command", "lines"), EXAMPLES, ids=["why", "writes", "circuit", "paths"])
def test_an_example_prints_what_the_page_shows(command: str, lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*shlex.split(command), "--device", "cpu"]) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in lines.splitlines():  # in this order, others between them
        there = next((own for own in printed if without_numbers(own) == without_numbers(line)), None)
        assert there is not None, line
        assert numbers(there) == pytest.approx(numbers(line), abs=2e-4)


def without_numbers(line: str) -> str:
    return " ".join(re.sub(r"-?\d+\.\d+", "#", line).split())


def numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+(?!\.\d)(?![\w.])", re.sub(r"\w+\.\d+\.\d+\.\w+", "", line))]
