"""Recurrent decoders, which read the encoder's outputs once for each word: one map for each head, with one row for each step."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import headlight
from model.trace.serialization import from_bytes

WIDTH, WORDS = 8, 20
SOURCE, TARGET = list("abcde"), list("wxyz")


class Additive(nn.Module):
    """Bahdanau's scores: v · tanh(W q + U k)."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u, self.v = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = self.v(torch.tanh(self.w(query) + self.u(keys)))[..., 0]
        return scores.softmax(1)


class Behind(nn.Module):
    """The same with query and keys behind each other, a repeated vector v and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.v = nn.Linear(2 * WIDTH, WIDTH), nn.Parameter(torch.randn(WIDTH))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        energy = torch.tanh(self.w(torch.cat([query.repeat(1, keys.shape[1], 1), keys], 2))).transpose(1, 2)
        scores = torch.bmm(self.v.repeat(len(keys), 1)[:, None], energy)[:, 0]
        return scores.masked_fill(torch.zeros(scores.shape, dtype=torch.bool), -1e10).softmax(1)


class Dot(nn.Module):
    """Luong's scores: a product."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.bmm(query, keys.transpose(1, 2))[:, 0].softmax(1)


class Summed(nn.Module):
    """The same, multiplied and summed."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return (query * keys).sum(2).softmax(1)


class General(Summed):
    """Luong's scores with a projection of the keys."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(WIDTH, WIDTH)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query, self.w(keys))


class Translator(nn.Module):
    """Encoder and decoder are recurrent; `fed`: the context is fed into the decoder, whose state before it asks."""

    def __init__(self, weigh: type[nn.Module], cell: type[nn.GRU] | type[nn.LSTM], fed: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.weigh, self.fed = nn.Embedding(WORDS, WIDTH), weigh(), fed
        self.encoder: nn.Module = cell(WIDTH, WIDTH, batch_first=True)
        self.decoder = cell(2 * WIDTH if fed else WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(2 * WIDTH, WORDS)
        self.weights: list[Tensor] = []

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        keys, state = self.encoder(self.embedding(source))
        return keys, state

    def step(self, word: Tensor, state: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        read = self.embedding(word)
        if self.fed:
            query = (state[0] if isinstance(self.decoder, nn.LSTM) else state).transpose(0, 1)
        else:
            query, state = self.decoder(read, state)
        self.weights.append(self.weigh(query, keys))
        context = self.weights[-1][:, None] @ keys
        if self.fed:
            query, state = self.decoder(torch.cat([read, context], 2), state)
        return self.out(torch.cat([query, context], 2)), state

    def forward(self, source: Tensor, target: Tensor, greedy: bool = False) -> None:
        (keys, state), word = self.encode(source), target[:, :1]
        for step in range(1, 1 + target.shape[1]):
            logits, state = self.step(word, state, keys)
            word = logits.argmax(-1) if greedy else target[:, step : step + 1]


class ByTransformer(Translator):
    """The encoder is a Transformer, and the decoder begins with the mean of its outputs."""

    def __init__(self, weigh: type[nn.Module]) -> None:
        super().__init__(weigh, nn.GRU, fed=True)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 2, WIDTH, batch_first=True)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        keys = self.encoder(self.embedding(source))
        return keys, keys.mean(1)[None]


class Part(nn.Module):
    """A method of another module that is called as a module of its own."""

    def __init__(self, whole: Translator, name: str) -> None:
        super().__init__()
        self.whole, self.name = whole, name

    def forward(self, *args: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = getattr(self.whole, self.name)(*args)
        return found


def ids(count: int) -> Tensor:
    return torch.randint(WORDS, (2, count), generator=torch.Generator().manual_seed(count))


def strips(recording: headlight.Recording) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts of the rows and of the keys of the only site."""
    trace = from_bytes(recording.to_bytes())
    (site,) = trace.attention.values()
    return trace.tokens[site.query_tokens].texts, trace.tokens[site.key_tokens].texts


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("cell", [nn.GRU, nn.LSTM])
@pytest.mark.parametrize("weigh", [Additive, Behind, Dot, Summed, General])
def test_the_steps_are_rows_of_one_map(weigh: type[nn.Module], cell: type[nn.GRU], fed: bool, greedy: bool) -> None:
    """Each was a site with one row, labeled 1, and additive attention of the kind unknown."""
    model = Translator(weigh, cell, fed).eval()
    with torch.no_grad(), headlight.record(model, SOURCE, TARGET, example=1) as recording:
        model(ids(5), ids(4), greedy)
    (site,) = recording.sites
    assert (site.name, site.shape) == ("decoder.0.0.cross", (1, 4, 5))
    np.testing.assert_allclose(site.written()[0], torch.stack(model.weights, 1)[1].numpy(), rtol=0, atol=1e-6)
    assert strips(recording) == (tuple(TARGET), tuple(SOURCE))


@pytest.mark.parametrize(("target", "rows"), [(TARGET, TARGET), (None, None), (list("uvwxyz"), None)])
def test_a_decoder_that_is_called_once_for_each_word(target: list[str] | None, rows: list[str] | None) -> None:
    model = Translator(Additive, nn.GRU, fed=True).eval()
    encode, step = Part(model, "encode"), Part(model, "step")
    with torch.no_grad(), headlight.record(None, SOURCE, target) as recording:
        (keys, state), word = encode(ids(5)), torch.zeros(2, 1, dtype=torch.long)
        for _step in range(4):
            logits, state = step(word, state, keys)
            word = logits.argmax(-1)
    assert recording.sites[0].shape == (1, 4, 5)
    assert strips(recording) == (tuple(rows or [f"step {number}" for number in (1, 2, 3, 4)]), tuple(SOURCE))


@pytest.mark.parametrize("weigh", [Additive, Behind, Dot, Summed, General])
def test_a_recurrent_decoder_that_begins_with_the_mean_of_what_it_reads(weigh: type[nn.Module]) -> None:
    """Its first question is computed from the keys alone."""
    model = ByTransformer(weigh).eval()
    with torch.no_grad(), headlight.record(model) as recording:
        model(ids(5), ids(4))
    assert [(site.name, site.shape) for site in recording.sites] == [
        ("encoder.0.0.self", (2, 5, 5)),
        ("decoder.0.0.cross", (1, 4, 5)),
    ]
    np.testing.assert_allclose(recording.sites[1].written()[0], torch.stack(model.weights, 1)[0].numpy(), rtol=0, atol=1e-6)


def test_two_texts_are_two_maps() -> None:
    model = Translator(Dot, nn.GRU, fed=True).eval()
    with torch.no_grad(), headlight.record(model) as recording:
        model(ids(5), ids(4))
        model(ids(5), ids(3))
    assert [site.shape for site in recording.sites] == [(1, 4, 5), (1, 3, 5)]
