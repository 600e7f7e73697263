"""Inputs that are too large are refused by their size, before anything is split, looked up or drawn."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from model.__main__ import main
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import HeadlightError, TooManyCharacters, TooManyTokens
from model.inference import inputs
from model.inference.inputs import Reader
from model.requests.inputs import POSITIONS, Features, RandomFeatures
from model.requests.network import StackSpec
from model.requests.request import Decoding, Precision, RunRequest, allowed_characters
from model.tokenizers.words import SPECIALS, WordTokenizer
from tests.hosts import behind
from tests.networks import VARIANTS, save_checkpoint
from tests.runs import CPU

STACK: StackSpec = VARIANTS["paper"].stacks["encoder"]
TWO_MEGABYTES = "Hund " * 400_000


class NeverAsked(WordTokenizer):
    def encode(self, *args: Any) -> Any:
        raise AssertionError("a text was split that is too long")

    def tokens(self, *args: Any) -> Any:
        raise AssertionError("ids were looked up that are too many")


READER = Reader({"source": NeverAsked("words", SPECIALS)}, CPU)


@pytest.mark.parametrize("field", ["source", "target"])
@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (TWO_MEGABYTES, TooManyCharacters, "has 2,000,000 characters, but the limit is 262,144. Shorten it"),
        ((4,) * (POSITIONS + 1), TooManyTokens, "has 16,385 tokens, but the limit is 16,384"),
        (Features(((0.0,),) * (POSITIONS + 1)), TooManyTokens, "has 16,385 tokens, but the limit is 16,384"),
    ],
    ids=["text", "ids", "features"],
)
def test_no_run_can_be_described_that_reads_more_than_any_model(
    field: str, given: Any, kind: type[HeadlightError], words: str
) -> None:
    with pytest.raises(kind, match=f"^The {'source text' if field == 'source' else 'target'} {words}"):
        RunRequest(**{"model": "tiny", "source": "w4", field: given})


@pytest.mark.parametrize(("positions", "allowed"), [(16, 1600), (100, 1600), (256, 4096), (10**6, 262_144)])
def test_a_text_is_measured_by_what_the_model_can_read_and_not_split(positions: int, allowed: int) -> None:
    stack = replace(STACK, max_positions=positions)
    assert allowed_characters(positions) == allowed
    with pytest.raises(TooManyCharacters, match=f"has {allowed + 1:,} characters, but the limit is {allowed:,}"):
        READER.read("source", "x" * (allowed + 1), stack)
    with pytest.raises(AssertionError, match="a text was split"):
        READER.read("source", "x" * allowed, stack)


def test_ids_are_counted_and_not_looked_up() -> None:
    with pytest.raises(TooManyTokens, match=r"^The source text has 17 tokens, but the limit is 16"):
        READER.read("source", (4,) * 17, STACK)


@pytest.mark.parametrize("given", ["16384 0", RandomFeatures(16384), Features(((0.0,) * 8,) * 17)], ids=["typed", "asked", "given"])
def test_features_are_counted_and_not_drawn(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "rows_of", lambda *_: pytest.fail("features were drawn that are too many"))
    with pytest.raises(TooManyTokens, match=r"has (16,384|17) tokens, but the limit is 16: "):
        READER.read("source", given, replace(STACK, vocab=0))


def test_the_command_line_and_a_host_say_the_same_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "tiny")
    text = "w4 " * 1000
    options = ["--source", text, "--out", str(tmp_path / "t.trace.safetensors")]
    assert main(["run", str(tmp_path / "tiny"), *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    host = behind(LocalEngine(tmp_path, CPU))
    with pytest.raises(TooManyCharacters) as refused:
        host.ask(Run(RunRequest("tiny", text)))
    assert line == str(refused.value) == "The source text has 3,000 characters, but the limit is 1,600. Shorten it."


@pytest.mark.parametrize("text", ["狗" * 520, "a b c d e f g h " * 65, "w4 " * 520])
def test_a_server_for_strangers_counts_tokens_and_not_characters(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = replace(STACK, max_positions=1000)
    save_checkpoint(tmp_path / "tiny", replace(VARIANTS["paper"], encoder=stack, decoder=stack))

    def opened() -> LocalEngine:
        engine = LocalEngine(tmp_path, CPU)
        object.__setattr__(engine.checkpoint("tiny").tokenizers["source"], "split", "characters" if "狗" in text else "words")
        return engine

    opened().ask(Run(RunRequest("tiny", text, decoding=Decoding(max_length=1))))
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    engine = opened()
    other = f"{text} {text.split()[0]}"
    with pytest.raises(TooManyTokens, match=r"has [0-9,]+ tokens, but the limit is 512: this server reads no more"):
        engine.ask(Run(RunRequest("tiny", other)))
    for request in (RunRequest("tiny", (4,) * 513), RunRequest("tiny", "w4", (2,) + (4,) * 513)):
        with pytest.raises(TooManyTokens, match=r"has 51[34] tokens, but the limit is 51[23]: this server reads no more"):
            engine.ask(Run(request))


@pytest.mark.parametrize(("target", "expected"), [(None, ["source"]), ("w5 w6", ["source", "target"])], ids=["written", "given"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_text_is_tokenised_once_in_a_run_and_the_float32_run_beside_it(
    tmp_path: Path, precision: Precision, target: str | None, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path / "tiny")
    engine, asked, encode = LocalEngine(tmp_path, CPU), list[str](), WordTokenizer.encode

    def counted(self: WordTokenizer, text: str, name: str) -> Any:
        asked.append(name)
        return encode(self, text, name)

    monkeypatch.setattr(WordTokenizer, "encode", counted)
    engine.ask(Run(RunRequest("tiny", "w4 w5", target, precision=precision)))
    assert asked == expected


def test_features_are_rounded_for_the_lower_precision_and_not_for_the_float32_run_beside_it() -> None:
    given = READER.inputs(RunRequest("parts", RandomFeatures(3)), replace(VARIANTS["paper"], encoder=replace(STACK, vocab=0)))
    assert given.to(torch.bfloat16).source.tensor.dtype == torch.bfloat16
    assert given.source.tensor.dtype == torch.float32
    assert given.target is None
