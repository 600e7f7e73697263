"""The options of `run` and `explain` are the fields of RunRequest and Decoding; what they take, and what they say, is as before."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from model.__main__ import cli, main
from model.cli import options
from model.errors import BadSetting
from model.requests.request import Decoding, RunRequest, described_fields, option
from model.requests.validation import Between

OF_BOTH = Path(__file__).with_name("run_options.help.txt")
"""What `run --help` and `explain --help` say of the options that are made of fields."""


def said(name: str) -> str:
    return click.Context(cli.commands[name], info_name=name, terminal_width=78).get_help()


@pytest.mark.parametrize("name", ["run", "explain"])
def test_help_lists_the_options_of_a_run_as_they_are_written_down(name: str) -> None:
    assert OF_BOTH.read_text(encoding="utf-8") in said(name)


def test_every_field_that_can_be_told_has_an_option_and_no_option_is_without_one() -> None:
    told = {each.name for kind in (RunRequest, Decoding) for each, _own in described_fields(kind)}
    assert {re.sub("_(ids|features|turns|image|sound)$", "", name) for name in options.RUN_OPTIONS} == told


@pytest.mark.parametrize("each", ["max_length", "beam_size", "hypothesis", "temperature", "top_k", "top_p", "seed", "method"])
def test_an_option_that_is_left_out_is_the_fields_default(each: str) -> None:
    parameters = {parameter.name: parameter for parameter in cli.commands["run"].params}
    assert parameters[each].default == getattr(Decoding(), each)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--max-length", "1001"], "max_length: “1001” is not accepted. Allowed: from 0 to 1,000."),
        (["--top-p", "0"], "top_p: “0.0” is not accepted. Allowed: a number above 0, at most 1."),
        (["--top-k", "-1"], "top_k: “-1” is not accepted. Allowed: a number of tokens; 0: all."),
        (
            ["--seed", str(2**63)],
            f"seed: “{2**63}” is not accepted. Allowed: a whole number from 0, below 2^63.",
        ),
        (["--beam-size", "x"], "Invalid value for '--beam-size': 'x' is not a valid integer."),
        (["--temperature", "x"], "Invalid value for '--temperature': 'x' is not a valid float."),
        (["--source-valid", "1.5"], "Invalid value for '--source-valid': '1.5' is not a valid integer."),
        (["--decode", "x"], "Invalid value for '--decode': 'x' is not one of 'greedy', 'sample', 'beam'."),
        (["--precision", "x"], "Invalid value for '--precision': 'x' is not one of 'float32', 'bfloat16', 'float16'."),
        (
            ["--source-ids", "2"],
            "--source: “several forms” is not accepted. Allowed: --source, --source-ids, --source-features",
        ),
        (["--target-ids", "x"], "--target-ids: “x” is not accepted. Allowed: whole numbers with commas between, such as 2,5,3"),
    ],
    ids=str,
)
def test_what_cannot_be_taken_is_refused_in_the_sentences_of_before(
    given: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "nowhere", "--source", "x", "--out", "nowhere.trace.safetensors", *given]) in (1, 2)
    assert capsys.readouterr().err.startswith(sentence)


def test_a_field_with_an_option_is_all_that_a_new_option_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Longer(Decoding):
        least_length: int = field(default=3, metadata=option("tokens written at least", Between(1, 9)))

    each, own = next((each, own) for each, own in described_fields(Longer) if each.name == "least_length")
    asked: list[int] = []
    command = click.command("x")(options._options(each, own)["least_length"](lambda least_length: asked.append(least_length)))
    command.main(["--least-length", "5"], standalone_mode=False)
    command.main([], standalone_mode=False)
    assert asked == [5, 3]
    with pytest.raises(BadSetting, match=r"^least_length: “12” is not accepted. Allowed: from 1 to 9"):
        Longer(least_length=12)
