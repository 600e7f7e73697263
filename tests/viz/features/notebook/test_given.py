"""What people hold in their hands is recognized, and what cannot be known is asked for in a sentence that names the argument."""

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import headlight
from model.trace.types import Array, Trace
from viz.features.notebook.given import Options, trace_of
from viz.features.notebook.show import show

rng = np.random.default_rng(1)


def maps(*shape: int) -> Array:
    return rng.dirichlet(np.full(shape[-1], 0.5), shape[:-1]).astype(np.float32)


def weights(trace: Trace, site: str) -> Array:
    return np.asarray(trace.at(site).weights)


W = maps(2, 3, 4, 4)
"""[layer, head, query, key]."""


class Handed:
    """An array of a library that numpy does not know, which only knows dlpack."""

    def __init__(self, array: Array) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


FORMS = {
    "one array": W,
    "a list of layers": list(W),
    "a tuple with a batch of one": tuple(W[:, None]),
    "torch with gradients": [torch.tensor(layer).requires_grad_() for layer in W],
    "dlpack": [Handed(layer) for layer in W],
    "a dict": {"first": W[0], "second": W[1]},
    "a cache": OrderedDict(
        {f"blocks.{n}.attn.hook_pattern": W[n][None] for n in range(2)} | {"blocks.0.hook_resid": maps(1, 4, 8)}
    ),
    "an output": SimpleNamespace(attentions=tuple(W[:, None]), logits=None),
    "a dict like an output": {"attentions": tuple(W[:, None])},
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_same_maps(form: str) -> None:
    trace = trace_of(FORMS[form], Options(tokens=list("abcd")))
    assert [attention.site.layer for attention in trace.attention.values()] == [0, 1]
    for layer, attention in enumerate(trace.attention.values()):
        np.testing.assert_array_equal(attention.weights, W[layer])
        assert trace.tokens[attention.key_tokens].texts == tuple("abcd")


def test_bfloat16_and_other_axes() -> None:
    trace = trace_of([torch.tensor(layer, dtype=torch.bfloat16) for layer in W], Options())
    np.testing.assert_allclose(weights(trace, "program.0.1.unknown"), W[1], atol=4e-3)
    trace = trace_of(W.transpose(2, 3, 1, 0), Options(axes="query key head layer"))
    np.testing.assert_array_equal(weights(trace, "program.0.1.unknown"), W[1])


def test_an_example_of_a_batch() -> None:
    batch = maps(2, 5, 3, 4, 4)
    trace = trace_of(list(batch), Options(example=3, tokens=[list("abcd")] * 3 + [list("wxyz")] + [list("abcd")]))
    np.testing.assert_array_equal(weights(trace, "program.0.1.unknown"), batch[1, 3])
    assert trace.tokens["source"].texts == tuple("wxyz")


def test_queries_and_keys_of_different_tokens() -> None:
    trace = trace_of(maps(1, 2, 3, 5), Options(tokens=list("abcde"), target_tokens=list("xyz")))
    (attention,) = trace.attention.values()
    assert (trace.tokens[attention.query_tokens].texts, trace.tokens[attention.key_tokens].texts) == (tuple("xyz"), tuple("abcde"))


def test_a_recording_is_shown_as_its_maps() -> None:
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 5, 8)
    with headlight.record(layer, source_tokens=list("abcde")) as recording, torch.no_grad():
        _out, expected = layer(x, x, x, average_attn_weights=False)
    (attention,) = show(recording).trace.attention.values()
    np.testing.assert_allclose(attention.weights, expected[0].numpy(), atol=1e-6)


def test_a_triangle_of_zeros_is_a_causal_mask() -> None:
    causal = np.tril(maps(1, 2, 4, 4))
    causal /= causal.sum(-1, keepdims=True)
    (attention,) = trace_of(causal, Options()).attention.values()
    np.testing.assert_array_equal(attention.mask, np.tril(np.ones((4, 4), bool)))
    (attention,) = trace_of(W[:1], Options()).attention.values()
    assert attention.mask.all()


def test_words_are_summed_and_averaged() -> None:
    pieces = ["▁un", "believ", "able", "▁yes"]
    trace = trace_of(W, Options(tokens=pieces, words=True))
    own = weights(trace, "program.0.0.unknown")
    groups = [[0, 1, 2], [3]]
    plain = [[[sum(W[0, h, q, k] for q in qs for k in ks) / len(qs) for ks in groups] for qs in groups] for h in range(3)]
    np.testing.assert_allclose(own, plain, atol=1e-6)
    np.testing.assert_allclose(own.sum(-1), 1, atol=1e-5)
    assert trace.tokens["source"].texts == ("unbelievable", "yes")


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["[CLS]", "em", "##bed", "##ding", "[SEP]"], ["[CLS]", "embedding", "[SEP]"]),
        (["The", "Ġcat", "s", "Ġran"], ["The", "cats", "ran"]),
        (["▁我", "爱", "你", "▁ok"], ["我", "爱", "你", "ok"]),
        (["<s>", "▁a", "b", "</s>"], ["<s>", "ab", "</s>"]),
    ],
)
def test_words_by_the_signs_of_each_vocabulary(pieces: list[str], words: list[str]) -> None:
    trace = trace_of(maps(1, 1, len(pieces), len(pieces)), Options(tokens=pieces, words=True))
    assert list(trace.tokens["source"].texts) == words


def test_special_tokens_and_padding_are_left_out_and_rows_sum_to_1_again() -> None:
    square = maps(1, 2, 5, 5)
    encoding = {"input_ids": [[2, 7, 8, 3, 0]], "attention_mask": [[1, 1, 1, 1, 0]]}
    tokenizer = SimpleNamespace(
        convert_ids_to_tokens=lambda ids: [{2: "[CLS]", 3: "[SEP]", 0: "[PAD]"}.get(i, f"t{i}") for i in ids],
        all_special_tokens=["[CLS]", "[SEP]", "[PAD]"],
    )
    trace = trace_of(square, Options(tokens=encoding, tokenizer=tokenizer, special=False))
    assert trace.tokens["source"].texts == ("t7", "t8")
    inner = square[0][:, 1:3, 1:3]
    np.testing.assert_allclose(weights(trace, "program.0.0.unknown"), inner / inner.sum(-1, keepdims=True), atol=1e-6)
    trace = trace_of(square, Options(tokens=encoding, tokenizer=tokenizer))
    assert trace.tokens["source"].texts == ("[CLS]", "t7", "t8", "[SEP]")


def test_the_sentences_of_bert_apart() -> None:
    square = maps(1, 2, 5, 5)
    trace = trace_of(square, Options(tokens=list("abcde"), sentences="A>B", sentence_b=2))
    np.testing.assert_array_equal(weights(trace, "program.0.0.unknown"), square[0][:, :2, 2:])
    (attention,) = trace.attention.values()
    assert trace.tokens[attention.query_tokens].texts == ("a", "b")
    assert trace.tokens[attention.key_tokens].texts == ("c", "d", "e")


SCORES = rng.normal(size=(1, 2, 4, 4))
DROPPED = np.where(rng.random((1, 2, 9, 9)) < 0.3, 0, maps(1, 2, 9, 9) / 0.7)
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing": (None, {}, "attn_implementation='eager'"),
    "empty tuple": ((), {}, "headlight.record"),
    "tuple of None": ((None, None), {}, "attn_implementation='eager'"),
    "a number": (3, {}, "attention is int"),
    "a missing file": ("no.trace.safetensors", {}, "There is no file"),
    "scores": (SCORES, {}, "any_sums=True"),
    "dropout": (DROPPED, {}, r"model\.eval\(\)"),
    "transposed": (W.swapaxes(2, 3), {}, "axes="),
    "heads last": (W[0].transpose(1, 2, 0)[None], {}, "axes="),
    "several examples": (list(maps(2, 4, 3, 5, 5)), {}, "example=0 to example=3"),
    "no such example": (list(W[:, None]), {"example": 2}, "example=2"),
    "too few tokens": (W, {"tokens": list("abc")}, "tokens has 3 tokens, and layer 1 has 4 positions"),
    "a text as tokens": (W, {"tokens": "abcd"}, "tokens takes a list"),
    "a set as tokens": (W, {"tokens": set("abcd")}, "tokens takes a list"),
    "floats as tokens": (W, {"tokens": [0.5] * 4}, "tokens takes a text or an id"),
    "a local window": (maps(1, 2, 8, 5), {"tokens": list("abcdefgh")}, "local window"),
    "one axis": (np.ones(4, np.float32), {}, r"shape \(4,\)"),
    "no rows": (np.zeros((1, 2, 0, 0), np.float32), {}, "nothing in it"),
    "texts": (np.array([[["a"]]]), {}, "no array of real numbers"),
    "complex": (W.astype(complex), {}, "no array of real numbers"),
    "layers of different tokens": ([maps(1, 2, 4, 4), maps(1, 2, 5, 5)], {"tokens": list("abcd")}, "layer 2 has 5"),
    "words without signs": (W, {"tokens": list("abcd"), "words": True}, "words=True"),
    "too few words": (W, {"tokens": list("abcd"), "words": [0, 1]}, "words has 2 numbers"),
    "no second sentence": (W, {"tokens": list("abcd"), "sentences": "A>B"}, "sentence_b="),
    "other sentences": (W, {"tokens": list("abcd"), "sentences": "C>A", "sentence_b": 1}, "sentences takes"),
    "nothing left": (W, {"tokens": ["[CLS]", "[SEP]", "[PAD]", "[MASK]"], "special": False}, "Nothing is left"),
    "too large": (np.broadcast_to(np.float16(0), (100, 100, 1000, 1000)), {}, "GiB"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_said_in_one_sentence(case: str) -> None:
    attention, options, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=sentence) as refused:
        show(attention, **options)
    assert len(str(refused.value)) < 320
    assert "\n" not in str(refused.value)


def test_scores_are_shown_on_request() -> None:
    np.testing.assert_allclose(weights(trace_of(SCORES, Options(any_sums=True)), "program.0.0.unknown"), SCORES[0], rtol=1e-6)
