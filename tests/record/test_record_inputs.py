"""Which tokens rows and keys have: those of the input whose positions they are, never those of one that is as long."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import headlight
from model.trace.serialization import from_bytes

SOURCE, TARGET = list("abcd"), list("wxyz")


def strips(recording: headlight.Recording) -> list[tuple[str, str]]:
    """The texts of rows and keys of each site, without spaces."""
    trace = from_bytes(recording.to_bytes())
    return [
        ("".join(trace.tokens[s.query_tokens].texts), "".join(trace.tokens[s.key_tokens].texts)) for s in trace.attention.values()
    ]


def encoder() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)


class TextAndImage(nn.Module):
    """Two towers, of which that of the image runs first; as many patches as words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.patches, self.text, self.image = nn.Embedding(9, 8), nn.Conv2d(3, 8, 2, 2), encoder(), encoder()

    def forward(self, ids: Tensor, pixels: Tensor) -> None:
        self.image(self.patches(pixels).flatten(2).mT)
        self.text(self.words(ids))


class Latents(nn.Module):
    """Learned vectors, as many as words, read the text and then each other."""

    def __init__(self) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(1, 4, 8))
        self.text, self.reads, self.inner = encoder(), nn.MultiheadAttention(8, 2, batch_first=True), encoder()

    def forward(self, x: Tensor) -> None:
        text = self.text(x)
        self.inner(self.reads(self.latents.expand(len(x), -1, -1), text, text)[0])


class TwoSources(nn.Module):
    """A decoder that reads two encoders of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = encoder(), encoder()
        self.decoder = nn.TransformerDecoderLayer(8, 2, 8, batch_first=True)

    def forward(self, one: Tensor, other: Tensor, target: Tensor) -> None:
        self.decoder(self.decoder(target, self.first(one)), self.second(other))


def test_patches_as_many_as_words_do_not_have_the_words() -> None:
    model = TextAndImage().eval()
    with torch.no_grad(), headlight.record(model, SOURCE) as recording:
        model(torch.tensor([[1, 2, 3, 4]]), torch.randn(1, 3, 4, 4))
    assert strips(recording) == [("1234", "1234"), ("abcd", "abcd")]
    (note,) = from_bytes(recording.to_bytes()).model["notes"]
    assert str(note).startswith("source_tokens name the tokens of one input each.")


def test_latents_as_many_as_words_do_not_have_the_words() -> None:
    model = Latents().eval()
    with torch.no_grad(), headlight.record(model, SOURCE) as recording:
        model(torch.randn(2, 4, 8))
    assert strips(recording) == [("abcd", "abcd"), ("1234", "abcd"), ("1234", "1234")]


def test_a_second_encoder_does_not_have_the_words_of_the_first() -> None:
    model = TwoSources().eval()
    with torch.no_grad(), headlight.record(model, SOURCE, TARGET) as recording:
        model(*torch.randn(3, 1, 4, 8))
    ours, other = ("abcd", "abcd"), ("1234", "1234")
    assert strips(recording) == [ours, ("wxyz", "wxyz"), ("wxyz", "abcd"), other, ("wxyz", "wxyz"), ("wxyz", "1234")]


class Window(nn.Module):
    """Causal self-attention that reads four keys, and whose cache holds the last three."""

    def __init__(self, forget: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.project, self.out, self.forget = nn.Embedding(9, 8), nn.Linear(8, 24), nn.Linear(8, 8), forget
        self.cache: tuple[Tensor, Tensor] | None = None

    def forward(self, ids: Tensor) -> None:
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.project(self.words(ids)).chunk(3, -1))
        if self.cache is not None:
            k, v = (torch.cat(pair, 2) for pair in zip(self.cache, (k, v), strict=True))
        self.cache = self.forget(k), self.forget(v)
        distance = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2] - torch.arange(k.shape[2])
        scores = (q @ k.mT).masked_fill((distance < 0) | (distance > 3), -torch.inf)
        self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


FORGETS: dict[str, Callable[[Tensor], Tensor]] = {
    "a slice": lambda held: held[:, :, -3:],
    "narrow": lambda held: held.narrow(2, max(0, held.shape[2] - 3), min(3, held.shape[2])),
    "a split": lambda held: held.split([max(0, held.shape[2] - 3), min(3, held.shape[2])], 2)[1],
    "an index": lambda held: held[:, :, torch.arange(max(0, held.shape[2] - 3), held.shape[2])],
    "nothing": lambda held: held,
}


@pytest.mark.parametrize("prompt", [2, 4, 6])
@pytest.mark.parametrize("forget", FORGETS)
def test_a_cache_without_its_oldest_keys_is_one_map(forget: str, prompt: int) -> None:
    """Its steps were apart, and keys 2 to 5 had the tokens 1 to 4."""
    ids, tokens = torch.tensor([[1, 5, 2, 7, 3, 6, 8, 4]]), list("abcdefgh")
    model, whole = Window(FORGETS[forget]), Window(FORGETS["nothing"])
    with torch.no_grad(), headlight.record(model, tokens, keep=["qkv"]) as recording:
        for start, stop in ((0, prompt), *((step, step + 1) for step in range(prompt, 8))):
            model(ids[:, start:stop])
    with torch.no_grad(), headlight.record(whole, keep=["qkv"]) as at_once:
        whole(ids)
    (site,), (expected,) = recording.sites, at_once.sites
    np.testing.assert_allclose(site.written(), expected.written(), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(site.mask, expected.mask)
    for name in ("k", "v"):
        np.testing.assert_allclose(getattr(site, name), getattr(expected, name), rtol=0, atol=1e-6)
    assert strips(recording) == [("abcdefgh", "abcdefgh")]


@pytest.mark.parametrize("forget", ["a slice", "narrow", "a split"])
def test_the_keys_of_a_later_step_do_not_have_the_first_tokens(forget: str) -> None:
    model = Window(FORGETS[forget])
    with torch.no_grad(), headlight.record(model, SOURCE, calls="4") as recording:
        for step in range(6):
            model(torch.tensor([[1, 5, 2, 7, 3, 6]])[:, step : step + 1])
    assert strips(recording) == [("1", "1234")]


def mistral() -> Any:
    from transformers import MistralConfig, MistralForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 50, "pad_token_id": 0}
    return MistralForCausalLM(MistralConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, sliding_window=4))


def gemma3() -> Any:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 50, "pad_token_id": 0, "head_dim": 8}
    layers = ["sliding_attention", "full_attention"]
    return Gemma3ForCausalLM(
        Gemma3TextConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, sliding_window=4, layer_types=layers)
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [mistral, gemma3])
def test_a_window_of_the_library_is_one_map(make: Callable[[], Any]) -> None:
    """What it generates beyond its window, against its eager weights of the whole text."""
    torch.manual_seed(0)
    model, tokens = make().eval(), list("abcdefgh")
    options: dict[str, Any] = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": None}
    with torch.no_grad(), headlight.record(model, tokens) as recording:
        text = model.generate(torch.tensor([[5, 6, 7, 8]]), **options)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(text[:, :-1], output_attentions=True).attentions
    for site, expected in zip(recording.sites, weights, strict=True):
        np.testing.assert_allclose(site.written(), expected[0].numpy(), rtol=0, atol=1e-6)
    assert strips(recording) == [("abcdefgh", "abcdefgh")] * 2
