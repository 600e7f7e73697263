"""The tokens that are given to the recorder: what tokenizers give is taken, anything else refused before the program runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headlight
from model.trace.serialization import from_bytes


def texts_of(given: Any, example: int = 0) -> tuple[str, ...]:
    """The texts of the source in the file, as it is opened again."""
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad(), headlight.record(layer, given, example=example) as recording:
        layer(*[torch.ones(2, 3, 8)] * 3)
    trace = from_bytes(recording.to_bytes())
    assert [own.key_tokens for own in trace.attention.values()] == ["source"]
    return trace.tokens["source"].texts


class Encoding:
    """As the tokenizers library returns it."""

    tokens = ("A", "dog", "runs")


class Batch(dict[str, Any]):
    """As the transformers library returns it."""

    encodings = (Encoding, type("", (), {"tokens": ["A", "cat", "[PAD]"]}))


IDS = [5, 17, 2]


@pytest.mark.parametrize(
    ("given", "example", "expected"),
    [
        ([b"A", " caf\u00e9".encode(), b"\xc3"], 0, "A| caf\u00e9|\ufffd"),
        (["A", "\ud83d", "x"], 0, "A|?|x"),
        (IDS, 0, "5|17|2"),
        (tuple(np.int32(each) for each in IDS), 0, "5|17|2"),
        (np.array(IDS), 0, "5|17|2"),
        (np.array(["A", "dog", "x"]), 0, "A|dog|x"),
        (torch.tensor(IDS), 0, "5|17|2"),
        ([torch.tensor(each) for each in IDS], 0, "5|17|2"),
        (torch.tensor([IDS]), 1, "5|17|2"),
        (torch.tensor([[1, 2, 3], IDS]), 1, "5|17|2"),
        ([["A", "dog", "x"], ["A", "cat", "y"]], 1, "A|cat|y"),
        ({"input_ids": torch.tensor([[1, 2, 3], IDS])}, 1, "5|17|2"),
        (Batch(input_ids=[IDS, IDS]), 1, "A|cat|[PAD]"),
        (Encoding, 0, "A|dog|runs"),
        (map(str, IDS), 0, "5|17|2"),
    ],
)
def test_what_tokenizers_give_is_taken(given: Any, example: int, expected: str) -> None:
    """Most of it was lost when the recording was saved, after the program had run."""
    assert texts_of(given, example) == tuple(expected.split("|"))


@pytest.mark.slow
@pytest.mark.parametrize("tensors", [None, "pt"])
def test_a_tokenizer_of_the_library(tensors: str | None) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "dog": 2, "runs": 3}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    encoded = PreTrainedTokenizerFast(tokenizer_object=words)(["a dog runs", "runs a cat"], return_tensors=tensors)
    assert texts_of(encoded, 1) == ("runs", "a", "[UNK]")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("A dog runs", "'A dog runs'"),
        (b"A dog", "b'A dog'"),
        (["A", None, "x"], "None (at position 2)"),
        ([0.5, 1], "0.5 (at position 1)"),
        ([True, 1], "True (at position 1)"),
        (torch.tensor(3), "3"),
        (torch.ones(1, 1, 1), "[1.0] (at position 1)"),
        (np.ones(2), "1.0 (at position 1)"),
        ({"A", "dog"}, "{"),
        ({"ids": IDS}, "None"),
        (3, "3"),
        ([["A"], "x"], "['A'] (at position 1)"),
    ],
)
@pytest.mark.parametrize("strip", ["source_tokens", "target_tokens"])
def test_anything_else_is_refused_before_the_run(given: Any, found: str, strip: str) -> None:
    with pytest.raises(ValueError, match=f"^{strip} takes a list with one text or id for each position, not ") as refused:
        headlight.record(**{strip: given})
    assert f", not {found}" in str(refused.value)
    assert str(refused.value).endswith(".")


def test_a_batch_without_the_example_is_refused_before_the_run() -> None:
    with pytest.raises(ValueError, match=r"its batch of 2 has no example 2 \(from 0\)"):
        headlight.record(source_tokens=[["A"], ["B"]], example=2)


def test_other_arguments_that_json_does_not_know_are_written() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    options: Any = {"example": np.int64(1), "program": Path("train.py"), "limit": 1e9}
    with torch.no_grad(), headlight.record(layer, **options) as recording:
        layer(*[torch.ones(2, 3, 8)] * 3)
    told = from_bytes(recording.to_bytes()).recorded
    assert told is not None
    assert (told.example, told.program) == (1, "train.py")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("padded", [1, 0])
def test_an_example_that_is_all_padding_has_no_token(padded: int) -> None:
    """It was an error of the recorder: max(): Expected reduction dim to be specified."""
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1).eval()
    padding = torch.tensor([[False, False, True], [False, False, False]])
    padding[padded] = True
    with torch.no_grad(), headlight.record(stack, example=padded) as recording:
        stack(torch.ones(2, 3, 8), src_key_padding_mask=padding)
    assert not recording.sites
    assert list(recording.missing) == ["attention/layers.0"]
    assert recording.missing["attention/layers.0"].endswith(f": {headlight.EMPTY}")


@pytest.mark.parametrize("floor", [-1e9, float("-inf")])
def test_an_example_whose_keys_are_all_hidden_is_noted(floor: float) -> None:
    class Masked(nn.Module):
        def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = (x @ x.mT).masked_fill(padding[:, None], floor).softmax(-1).nan_to_num(0.0) @ x
            return found

    padding = torch.tensor([[False, False, True], [True, True, True]])
    for example in (0, 1):
        with headlight.record(example=example) as recording:
            Masked()(torch.ones(2, 3, 4), padding)
        hidden = [note.fields for note in recording.notes if "example" in note.fields]
        assert hidden == [{"example": 1, "count": 1}] * example
        assert from_bytes(recording.to_bytes()).attention


@pytest.mark.parametrize("count", [3, 4])
def test_a_decoder_alone_has_the_tokens_of_the_target(count: int) -> None:
    """Where both were as long, its rows had the source's tokens; elsewhere numbers."""
    torch.manual_seed(0)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8, batch_first=True), 2).eval()
    source, target = list("wxyz"), list("abcd")[:count]
    with torch.no_grad(), headlight.record(decoder, source, target) as recording:
        decoder(torch.randn(1, count, 8), torch.randn(1, 4, 8))
    trace = from_bytes(recording.to_bytes())
    assert [str(site) for site in trace.attention] == [f"decoder.0.{n}.{kind}" for n in (0, 1) for kind in ("self", "cross")]
    strips = [(own.query_tokens, own.key_tokens) for own in trace.attention.values()]
    assert strips == [("target", "target"), ("target", "source")] * 2
    assert (trace.tokens["source"].texts, trace.tokens["target"].texts) == (tuple(source), tuple(target))


def test_a_model_beside_a_decoder_alone_is_no_decoder() -> None:
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8, batch_first=True), 1).eval()
    beside = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad(), headlight.record() as recording:
        decoder(torch.randn(1, 3, 8), torch.randn(1, 4, 8))
        beside(*[torch.randn(1, 5, 8)] * 3)
    assert [site.name for site in recording.sites] == ["decoder.0.0.self", "decoder.0.0.cross", "program.0.0.self"]
