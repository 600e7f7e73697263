"""Whole networks against the paper's equations, written a second time: float64, numpy, loops over heads and queries.

The names of the weights are spelled out here, so that a renamed parameter, which would orphan every checkpoint, is noticed too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from model.requests.network import AttentionSpec, ModelSpec, OutputSpec, StackSpec
from model.trace.types import Array
from tests.networks import (
    LANGUAGE_MODELS,
    PAD,
    START,
    TRANSLATORS,
    VARIANTS,
    Notes,
    continue_,
    language_model,
    translate,
    translator,
)

SOURCE = [START, 4, 9, 4, 6, 3, PAD, PAD]
TARGET = [START, 5, 5, 8, PAD, 7]
"""Padding also in the middle: masks follow the ids, not the length."""

TOLERANCE = {torch.float32: 1e-5, torch.float64: 2e-7}
"""float64 networks share the equations' precision but for the table of sinusoids, which is float32."""


@dataclass
class Equations:
    """A network worked out for one example. `seen` gathers what a recorder should be given, without the batch axis."""

    spec: ModelSpec
    weights: dict[str, Array]
    seen: dict[str, Array] = field(default_factory=dict)

    @property
    def output(self) -> OutputSpec:
        assert self.spec.output is not None
        return self.spec.output

    @property
    def encoder(self) -> StackSpec:
        return self.spec.stacks["encoder"]

    @property
    def decoder(self) -> StackSpec:
        return self.spec.stacks["decoder"]

    def translate(self, source: list[int], target: list[int]) -> dict[str, Array]:
        memory_allowed = np.array([id_ != PAD for id_ in source])
        x = self.embed(source, self.encoder, "encoder", "encoder.embedding")
        for pass_ in range(self.encoder.passes):
            for layer in range(self.encoder.layers):
                x = self.encoder_layer(x, memory_allowed, self.encoder, "encoder", pass_, layer, f"encoder.layers.{layer}")
        memory = self.final_norm(x, self.encoder, "encoder.final_norm")
        x = self.embed(target, self.decoder, "decoder", "decoder.embedding")
        for pass_ in range(self.decoder.passes):
            for layer in range(self.decoder.layers):
                x = self.decoder_layer(x, memory, target, memory_allowed, pass_, layer)
        self.logits(self.final_norm(x, self.decoder, "decoder.final_norm"), "decoder.embedding")
        return self.seen

    def continue_(self, ids: list[int]) -> dict[str, Array]:
        x = self.embed(ids, self.decoder, "decoder", "embedding")
        for pass_ in range(self.decoder.passes):
            for layer in range(self.decoder.layers):
                x = self.encoder_layer(x, np.ones(len(ids), bool), self.decoder, "decoder", pass_, layer, f"layers.{layer}", True)
        self.logits(self.final_norm(x, self.decoder, "final_norm"), "embedding")
        return self.seen

    def embed(self, ids: list[int], stack: StackSpec, name: str, path: str) -> Array:
        scale = math.sqrt(stack.d_model) if stack.embed_scale == "sqrt" else 1.0
        rows = np.zeros((len(ids), stack.d_model))
        if stack.positions == "learned":
            rows = self.weights[f"{path}.positions.weight"][: len(ids)]
        if stack.positions == "sinusoidal":
            for position in range(len(ids)):
                for column in range(stack.d_model):
                    angle = position / 10000 ** (2 * (column // 2) / stack.d_model)
                    rows[position, column] = math.cos(angle) if column % 2 else math.sin(angle)
        if not stack.positions.startswith("rotary"):
            self.seen[f"positions/{name}"] = rows
        words = self.weights[f"{path}.token.weight"][ids]
        self.seen |= {f"stages/{name}/embedding": words, f"stages/{name}/scaled": words * scale}
        self.seen[f"embedded/{name}"] = words * scale + rows
        return self.seen[f"embedded/{name}"]

    def encoder_layer(
        self, x: Array, keys: Array, stack: StackSpec, name: str, pass_: int, layer: int, path: str, causal: bool = False
    ) -> Array:
        place = f"{name}.{pass_}.{layer}"

        def self_attention(y: Array) -> Array:
            return self.attention(y, y, keys, causal, stack.attention, f"attention/{place}.self", f"{path}.attention", stack)

        x = self.residual(x, stack, f"{path}.attention_residual", f"{place}.self", self_attention)
        return self.feed_forward(x, stack, path, place)

    def decoder_layer(self, x: Array, memory: Array, target: list[int], memory_allowed: Array, pass_: int, layer: int) -> Array:
        stack, place, path = self.decoder, f"decoder.{pass_}.{layer}", f"decoder.layers.{layer}"
        keys = np.array([id_ != PAD for id_ in target])

        def self_attention(y: Array) -> Array:
            return self.attention(y, y, keys, True, stack.attention, f"attention/{place}.self", f"{path}.self_attention", stack)

        def cross_attention(y: Array) -> Array:
            site = f"attention/{place}.cross"
            return self.attention(y, memory, memory_allowed, False, stack.attention, site, f"{path}.cross_attention")

        x = self.residual(x, stack, f"{path}.self_residual", f"{place}.self", self_attention)
        x = self.residual(x, stack, f"{path}.cross_residual", f"{place}.cross", cross_attention)
        return self.feed_forward(x, stack, path, place)

    def feed_forward(self, x: Array, stack: StackSpec, path: str, place: str) -> Array:
        def two_maps(y: Array) -> Array:
            inner = self.linear(y, f"{path}.feed_forward.expand")
            if stack.activation == "gelu":
                inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
            elif stack.activation == "silu":
                inner = inner / (1 + np.exp(-inner))
            else:
                inner = np.where(inner > 0, inner, 0)
            if stack.gated:
                inner = inner * self.linear(y, f"{path}.feed_forward.gate")
            outer = self.linear(inner, f"{path}.feed_forward.contract")
            self.seen |= {f"stages/{place}.feed_forward/hidden": inner, f"stages/{place}.feed_forward/output": outer}
            return outer

        x = self.residual(x, stack, f"{path}.feed_forward_residual", f"{place}.feed_forward", two_maps)
        self.seen[f"hidden/{place}"] = x
        return x

    def attention(
        self,
        x: Array,
        memory: Array,
        keys: Array,
        causal: bool,
        spec: AttentionSpec,
        site: str,
        path: str,
        turns: StackSpec | None = None,
    ) -> Array:
        q, k, v = self.linear(x, f"{path}.query"), self.linear(memory, f"{path}.key"), self.linear(memory, f"{path}.value")
        if spec.key_heads:
            k, v = (grouped(each, spec.heads, spec.key_heads, spec.head_dim) for each in (k, v))
        if turns is not None and turns.positions.startswith("rotary"):
            q, k = (rotated(each, spec.heads, turns.positions == "rotary-pairs", turns.rotary_base) for each in (q, k))
        columns = [slice(h * spec.head_dim, (h + 1) * spec.head_dim) for h in range(spec.heads)]
        scores = np.zeros((spec.heads, len(x), len(memory)))
        weights, context = scores.copy(), np.zeros((spec.heads, len(x), spec.head_dim))
        for head, own in enumerate(columns):
            for query in range(len(x)):
                for key in range(len(memory)):
                    scores[head, query, key] = q[query, own] @ k[key, own] / math.sqrt(spec.head_dim)
                allowed = keys & ((np.arange(len(memory)) <= query) | (not causal))
                weights[head, query] = softmax(scores[head, query], allowed, spec.empty_rows)
                context[head, query] = sum(weights[head, query, key] * v[key, own] for key in range(len(memory)))
        output = self.linear(np.concatenate(list(context), axis=1), f"{path}.output")
        each = np.tile(keys, (len(x), 1))
        masks = {"mask_padding": each, "mask": np.tril(each) if causal else each}
        masks |= {"mask_causal": np.tril(np.ones_like(each))} if causal else {}
        heads = {name: np.stack([a[:, own] for own in columns]) for name, a in (("q", q), ("k", k), ("v", v))}
        found = {**masks, **heads, "scores": scores, "weights": weights, "context": context, "output": output}
        self.seen |= {f"{site}/{name}": array for name, array in found.items()}
        return output

    def residual(self, x: Array, stack: StackSpec, path: str, place: str, sublayer: Callable[[Array], Array]) -> Array:
        if stack.norm_order == "post":
            total = x + sublayer(x)
            normed = result = self.norm(total, f"{path}.norm", stack)
        else:
            normed = self.norm(x, f"{path}.norm", stack)
            total = result = x + sublayer(normed)
        self.seen |= {f"stages/{place}/residual": total, f"stages/{place}/normed": normed}
        return result

    def final_norm(self, x: Array, stack: StackSpec, path: str) -> Array:
        last = self.norm(x, path, stack) if stack.final_norm else x
        self.seen[f"stages/{'encoder' if path.startswith('encoder') else 'decoder'}/final"] = last
        return last

    def norm(self, x: Array, path: str, stack: StackSpec) -> Array:
        if stack.norm == "rms":
            scaled: Array = x / np.sqrt((x * x).sum(axis=1, keepdims=True) / x.shape[1] + 1e-5)
            return scaled * self.weights[f"{path}.weight"]
        deviation = x - x.mean(axis=1, keepdims=True)
        normed: Array = deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + 1e-5)
        return normed * self.weights[f"{path}.weight"] + self.weights[f"{path}.bias"]

    def linear(self, x: Array, path: str) -> Array:
        product: Array = x @ self.weights[f"{path}.weight"].T
        return product + self.weights[f"{path}.bias"] if f"{path}.bias" in self.weights else product

    def logits(self, x: Array, embedding: str) -> None:
        matrix = self.weights[f"{embedding}.token.weight" if self.output.tied else "output.weight"]
        self.seen["logits"] = x @ matrix.T + (self.weights["output.bias"] if self.output.bias else 0.0)


def grouped(x: Array, heads: int, key_heads: int, width: int) -> Array:
    """The columns of each head's key head side by side."""
    return np.concatenate([x[:, (own := head * key_heads // heads) * width : (own + 1) * width] for head in range(heads)], axis=1)


def rotated(x: Array, heads: int, neighbors: bool, base: float) -> Array:
    """Each pair of columns as a complex number, times e^(i · angle)."""
    turned, width = x.copy(), x.shape[1] // heads
    for head in range(heads):
        for pair in range(width // 2):
            first = head * width + (2 * pair if neighbors else pair)
            second = first + 1 if neighbors else first + width // 2
            for position in range(len(x)):
                angle = position * base ** (-2 * pair / width)
                point = complex(x[position, first], x[position, second]) * complex(math.cos(angle), math.sin(angle))
                turned[position, first], turned[position, second] = point.real, point.imag
    return turned


def softmax(scores: Array, allowed: Array, empty_rows: str) -> Array:
    if not allowed.any():
        return np.full(len(scores), 1 / len(scores) if empty_rows == "uniform" else 0.0)
    exponentials = np.where(allowed, np.exp(scores - scores[allowed].max()), 0.0)
    shared: Array = exponentials / exponentials.sum()
    return shared


def weights_of(built: torch.nn.Module) -> dict[str, Array]:
    return {name: value.double().numpy() for name, value in built.state_dict().items()}


def assert_same(recorded: Notes, seen: dict[str, Array], dtype: torch.dtype) -> None:
    assert recorded.keys() == seen.keys()
    for name, expected in seen.items():
        found = recorded[name][0].numpy()
        if "/mask" in name:
            np.testing.assert_array_equal(found[0], expected, err_msg=name)
        else:
            tolerance = TOLERANCE[dtype]
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", TRANSLATORS)
def test_an_encoder_decoder_records_what_the_equations_give(name: str, dtype: torch.dtype) -> None:
    built = translator(VARIANTS[name]).to(dtype)
    recorded = translate(built, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    assert_same(recorded, Equations(VARIANTS[name], weights_of(built)).translate(SOURCE, TARGET), dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_records_what_the_equations_give(name: str, dtype: torch.dtype) -> None:
    built = language_model(VARIANTS[name]).to(dtype)
    recorded = continue_(built, torch.tensor([TARGET]))
    assert_same(recorded, Equations(VARIANTS[name], weights_of(built)).continue_(TARGET), dtype)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_source_of_nothing_but_padding_gives_the_row_that_the_spec_names_and_never_nan(name: str) -> None:
    spec = VARIANTS[name]
    recorded = translate(translator(spec), torch.full((1, 4), PAD), torch.tensor([[START, 5]]))
    assert spec.encoder is not None
    for site, rows in (("encoder.0.0.self", spec.encoder.attention), ("decoder.0.0.cross", spec.writer.attention)):
        expected = 0.25 if rows.empty_rows == "uniform" else 0.0
        assert (recorded[f"attention/{site}/weights"] == expected).all()
    assert all(value.isfinite().all() for value in recorded.values())
