"""Logits of a long prompt over a large vocabulary: 8,000 tokens times 250,000 words would be 8 GB."""

from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor

from model.checkpoints import loader
from model.checkpoints.loader import Runner
from model.errors import InputError, TooManyTokens
from model.inference import inputs
from model.inference.batching import batch_key
from model.inference.calls import Call, alone
from model.inference.recorder import Recorder
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from tests.folders import save
from tests.runs import CPU, SPECS, assert_same, checkpoint, traced

PROMPT = (4, 6, 5, 9, 7)


@pytest.fixture(params=["language model", "modern language model", pytest.param("gpt2", marks=pytest.mark.slow)])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    if request.param in SPECS:
        return checkpoint(SPECS[request.param])
    save(tmp_path / "folder", request.param)
    return loader.load(tmp_path / "folder", {}, CPU)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of logits that each call of the network computed."""
    found, record = list[int](), Recorder.__call__

    def counted(self: Recorder, name: str, value: Tensor) -> None:
        if name == "logits":
            found.append(value.shape[1])
        record(self, name, value)

    monkeypatch.setattr(Recorder, "__call__", counted)
    return found


@pytest.mark.parametrize("decoding", [Decoding(max_length=3), Decoding("beam", 3, beam_size=2), Decoding("sample", 3)])
def test_the_logits_of_every_token_of_a_prompt_were_computed_and_held(
    model: Runner, rows: list[int], decoding: Decoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = RunRequest("tiny", PROMPT, decoding=decoding)
    whole = traced(model, asked)
    assert rows[0] == len(PROMPT)
    rows.clear()
    monkeypatch.setattr(inputs, "LARGEST_PROMPT", 4 * model.info.spec.writer.vocab * len(PROMPT) - 1)
    found = traced(model, asked)
    assert rows == [1] * len(rows), "the last row decides the next token"
    assert found.logits is None
    assert str(found.missing["logits"]).startswith("a long prompt and a large vocabulary")
    assert_same(replace(found, missing=whole.missing), replace(whole, logits=None))


def test_a_prompt_that_is_only_read_is_refused_where_its_logits_do_not_fit(model: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = RunRequest("tiny", PROMPT, decoding=Decoding(max_length=0))
    monkeypatch.setattr(inputs, "LARGEST", 4 * model.info.spec.writer.vocab * len(PROMPT))
    assert traced(model, asked).logits is not None
    monkeypatch.setattr(inputs, "LARGEST", 4 * model.info.spec.writer.vocab * len(PROMPT) - 1)
    with pytest.raises(TooManyTokens, match=r"^The prompt has 5 tokens, .* limit is 4: the logits of .* would take 0\.0 GB"):
        traced(model, asked)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("  ", "The prompt is empty. Type at least one word."),
        ("x" * 1601, "The prompt has 1,601 characters, but the limit is 1,600. Shorten it."),
        ((4,) * 17, "The prompt has 17 tokens, but the limit is 16: the model has no more positions. Shorten it."),
        ((99,), "The prompt has no token with the id 99: ids of this vocabulary run from 0 to 16."),
    ],
)
def test_an_error_about_the_prompt_of_a_language_model_calls_it_so(given: str | tuple[int, ...], sentence: str) -> None:
    """It was called the source text, which a language model does not have."""
    with pytest.raises(InputError) as refused:
        traced(checkpoint(SPECS["language model"]), RunRequest("tiny", given))
    assert str(refused.value) == sentence


def test_a_target_that_is_fed_is_refused_where_its_logits_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = checkpoint(SPECS["paper"])
    monkeypatch.setattr(inputs, "LARGEST", 4 * model.info.spec.writer.vocab * 2)
    with pytest.raises(TooManyTokens, match=r"^The target has 3 tokens, but the limit is 2"):
        traced(model, RunRequest("tiny", PROMPT, (4, 5, 6)))


def test_a_prompt_without_room_for_its_logits_is_batched_with_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = checkpoint(SPECS["language model"]), list[Call]()

    def ask(call: Call) -> Tensor:
        calls.append(call)
        return alone(call)

    for most in (inputs.LARGEST_PROMPT, 0):
        monkeypatch.setattr(inputs, "LARGEST_PROMPT", most)
        run(model, RunRequest("tiny", PROMPT, decoding=Decoding(max_length=1)), CPU, "cpu", ask)
    assert [batch_key(call) is None for call in calls] == [False, True]
