"""Files of toolkits, compared with the forward pass of each toolkit written anew here, in plain torch and from its own names."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from model.checkpoints.layouts.loading import load
from model.errors import UnknownLayout
from model.inference.run import run
from model.spec.inputs import Given
from model.spec.request import KEEP, Decoding, RunRequest
from model.trace.types import Array, Trace
from tests.toolkits import HEADS, SOURCE, TARGET, WIDTH, OpenNMT, State, fairseq_state, joey_state, mapped, normed, onmt_state

pytestmark = pytest.mark.usefixtures("read_by_torch")
CPU = torch.device("cpu")


def traced(folder: Path, state: object, settings: dict[str, str], source: Given, target: Given | None = None) -> Trace:
    torch.save(state, folder / "weights.pt")
    checkpoint = load(folder / "weights.pt", settings, CPU)
    return run(checkpoint, RunRequest("x", source, target, Decoding(max_length=0), keep=KEEP), CPU, "cpu")


def assert_same(found: Array | None, wanted: Tensor) -> None:
    assert found is not None
    torch.testing.assert_close(torch.from_numpy(found.copy()), wanted, rtol=0, atol=1e-5)


class Joey:
    """JoeyNMT's Transformer, as its pages `transformer_layers.py`, `encoders.py` and `decoders.py` compute it."""

    def __init__(self, state: State, first: bool, scale: bool) -> None:
        self.state, self.first, self.scale = state, first, scale

    def attend(self, name: str, x: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
        q, k, v = (mapped(self.state, f"{name}.{part}_layer", y) for part, y in (("q", x), ("k", memory), ("v", memory)))
        wide = WIDTH // HEADS
        found = []
        for own in (slice(head * wide, (head + 1) * wide) for head in range(HEADS)):
            scores = (q[:, own] / math.sqrt(wide)) @ k[:, own].T
            found.append(scores.masked_fill(~allowed, -math.inf).softmax(-1) @ v[:, own])
        return mapped(self.state, f"{name}.output_layer", torch.cat(found, dim=-1))

    def norm(self, name: str, x: Tensor, here: bool) -> Tensor:
        return normed(self.state, name, x, 1e-6) if here else x

    def feed_forward(self, name: str, x: Tensor) -> Tensor:
        inner = mapped(self.state, f"{name}.pwff_layer.0", self.norm(f"{name}.layer_norm", x, self.first)).relu()
        return self.norm(f"{name}.layer_norm", mapped(self.state, f"{name}.pwff_layer.3", inner) + x, not self.first)

    def embed(self, side: str, stack: str, ids: tuple[int, ...]) -> Tensor:
        x = self.state[f"{side}_embed.lut.weight"][list(ids)] * (math.sqrt(WIDTH) if self.scale else 1.0)
        return x + self.state[f"{stack}.pe.pe"][0, : len(ids)]

    def sublayer(self, norm_name: str, attention: str, x: Tensor, memory: Tensor | None, allowed: Tensor) -> Tensor:
        inside = self.norm(norm_name, x, self.first)
        y = self.attend(attention, inside, inside if memory is None else memory, allowed) + x
        return self.norm(norm_name, y, not self.first)

    def __call__(self, source: tuple[int, ...], target: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        x, y = self.embed("src", "encoder", source), self.embed("trg", "decoder", target)
        everything = torch.ones(len(source), len(source), dtype=torch.bool)
        for layer in ("encoder.layers.0", "encoder.layers.1"):
            x = self.sublayer(f"{layer}.layer_norm", f"{layer}.src_src_att", x, None, everything)
            x = self.feed_forward(f"{layer}.feed_forward", x)
        memory = self.norm("encoder.layer_norm", x, self.first)
        past = torch.ones(len(target), len(target), dtype=torch.bool).tril()
        across = torch.ones(len(target), len(source), dtype=torch.bool)
        layer = "decoder.layers.0"
        y = self.sublayer(f"{layer}.x_layer_norm", f"{layer}.trg_trg_att", y, None, past)
        y = self.sublayer(f"{layer}.dec_layer_norm", f"{layer}.src_trg_att", y, memory, across)
        y = self.norm("decoder.layer_norm", self.feed_forward(f"{layer}.feed_forward", y), self.first)
        return memory, y @ self.state["decoder.output_layer.weight"].T


@pytest.mark.parametrize("first", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("scale", [True, False], ids=["scaled", "unscaled"])
def test_joeynmt(tmp_path: Path, first: bool, scale: bool) -> None:
    state = joey_state(first)
    told = {"n_heads": str(HEADS), "pad_id": "1", "norm_order": "pre" if first else "post"}
    told["embed_scale"] = "sqrt" if scale else "none"
    trace = traced(tmp_path, {"steps": 7, "model_state": state}, told, SOURCE, TARGET)
    memory, logits = Joey(state, first, scale)(SOURCE, TARGET)
    assert_same(trace.stages["encoder/final"], memory)
    assert_same(trace.logits, logits)


def test_joeynmt_norms_add_less_to_the_variance_than_those_of_torch(tmp_path: Path) -> None:
    state = joey_state(True)
    state["src_embed.lut.weight"] *= 1e-3
    state["encoder.pe.pe"] = torch.zeros_like(state["encoder.pe.pe"])
    told = {"n_heads": str(HEADS), "pad_id": "1", "norm_order": "pre", "embed_scale": "none"}
    trace = traced(tmp_path, state, told, SOURCE, TARGET)
    wanted = normed(state, "encoder.layers.0.layer_norm", state["src_embed.lut.weight"][list(SOURCE)], 1e-6)
    assert_same(trace.stages["encoder.0.0.self/normed"], wanted)
    other = normed(state, "encoder.layers.0.layer_norm", state["src_embed.lut.weight"][list(SOURCE)], 1e-5)
    assert (wanted - other).abs().max() > 0.1, "the test would not see the difference"
    assert trace.model["spec"]["encoder"]["norm_epsilon"] == 1e-6


def test_a_joeynmt_file_with_a_tensor_more_is_refused(tmp_path: Path) -> None:
    torch.save(joey_state(True) | {"encoder.layers.0.adapter.weight": torch.zeros(3)}, tmp_path / "weights.pt")
    with pytest.raises(UnknownLayout, match=r"nearest|closest"):
        load(tmp_path / "weights.pt", {"n_heads": "3"}, CPU)


class Fairseq:
    """fairseq's Transformer, as its pages `transformer_layer.py`, `multihead_attention.py` and `sinusoidal_positional_embedding.py`
    compute it, for sentences without padding.
    """

    def __init__(self, state: State, first: bool, learned: bool) -> None:
        self.state, self.first, self.learned = state, first, learned

    def positions(self, stack: str, count: int) -> Tensor:
        numbers = torch.arange(2, 2 + count)  # padding has the id 1, and positions count on from it
        if self.learned:
            return self.state[f"{stack}.embed_positions.weight"][numbers]
        half = WIDTH // 2
        waves = [math.exp(column * -math.log(10000) / (half - 1)) for column in range(half)]
        rows = [[wave(number * each) for wave in (math.sin, math.cos) for each in waves] for number in numbers.tolist()]
        return torch.tensor(rows)

    def embed(self, stack: str, ids: tuple[int, ...]) -> Tensor:
        return math.sqrt(WIDTH) * self.state[f"{stack}.embed_tokens.weight"][list(ids)] + self.positions(stack, len(ids))

    def attend(self, name: str, x: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
        wide = WIDTH // HEADS
        q = mapped(self.state, f"{name}.q_proj", x) * wide**-0.5
        k, v = mapped(self.state, f"{name}.k_proj", memory), mapped(self.state, f"{name}.v_proj", memory)
        q, k, v = (each.view(-1, HEADS, wide).transpose(0, 1) for each in (q, k, v))
        weights = torch.bmm(q, k.transpose(1, 2)).masked_fill(~allowed, -math.inf).softmax(-1)
        return mapped(self.state, f"{name}.out_proj", torch.bmm(weights, v).transpose(0, 1).reshape(-1, WIDTH))

    def around(self, name: str, x: Tensor, inside: Callable[[Tensor], Tensor]) -> Tensor:
        if self.first:
            return x + inside(normed(self.state, name, x, 1e-5))
        return normed(self.state, name, x + inside(x), 1e-5)

    def layer(self, name: str, x: Tensor, allowed: Tensor, memory: Tensor | None = None) -> Tensor:
        x = self.around(f"{name}.self_attn_layer_norm", x, lambda y: self.attend(f"{name}.self_attn", y, y, allowed))
        if memory is not None:
            all_ = torch.ones(len(x), len(memory), dtype=torch.bool)
            x = self.around(f"{name}.encoder_attn_layer_norm", x, lambda y: self.attend(f"{name}.encoder_attn", y, memory, all_))
        network = lambda y: mapped(self.state, f"{name}.fc2", mapped(self.state, f"{name}.fc1", y).relu())  # noqa: E731
        return self.around(f"{name}.final_layer_norm", x, network)

    def end(self, stack: str, x: Tensor) -> Tensor:
        return normed(self.state, f"{stack}.layer_norm", x, 1e-5) if self.first else x

    def __call__(self, source: tuple[int, ...], target: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        x, y = self.embed("encoder", source), self.embed("decoder", target)
        for number in range(2):
            x = self.layer(f"encoder.layers.{number}", x, torch.ones(len(source), len(source), dtype=torch.bool))
        memory = self.end("encoder", x)
        past = torch.ones(len(target), len(target), dtype=torch.bool).tril()
        last = self.end("decoder", self.layer("decoder.layers.0", y, past, memory))
        output = self.state.get("decoder.output_projection.weight", self.state["decoder.embed_tokens.weight"])
        return memory, last @ output.T


@pytest.mark.parametrize("first", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("learned", [True, False], ids=["learned", "waves"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_fairseq(tmp_path: Path, first: bool, learned: bool, tied: bool) -> None:
    state = fairseq_state(first, learned, tied)
    told = {"n_heads": str(HEADS), "activation": "relu", "embed_scale": "sqrt"}
    trace = traced(tmp_path, {"model": state, "optimizer_history": []}, told, SOURCE, TARGET)
    memory, logits = Fairseq(state, first, learned)(SOURCE, TARGET)
    assert_same(trace.stages["encoder/final"], memory)
    assert_same(trace.logits, logits)
    assert (trace.model["spec"]["start_id"], trace.model["spec"]["end_id"], trace.model["spec"]["pad_id"]) == (2, 2, 1)


def test_positions_of_fairseq_go_on_from_step_to_step(tmp_path: Path) -> None:
    torch.save(fairseq_state(True, True), tmp_path / "weights.pt")
    checkpoint = load(tmp_path / "weights.pt", {"n_heads": "3", "activation": "relu", "embed_scale": "sqrt"}, CPU)
    decoded = run(checkpoint, RunRequest("x", SOURCE, None, Decoding(max_length=5)), CPU, "cpu")
    written = decoded.tokens["target"].ids
    fed = run(checkpoint, RunRequest("x", SOURCE, written[: len(decoded.positions["decoder"])], Decoding(max_length=0)), CPU, "cpu")
    assert_same(decoded.positions["decoder"], torch.from_numpy(fed.positions["decoder"].copy()))
    assert_same(decoded.logits, torch.from_numpy(fed.logits.copy() if fed.logits is not None else np.zeros(0)))


@pytest.mark.parametrize("apart", [True, False], ids=["generator apart", "generator within"])
def test_opennmt(tmp_path: Path, apart: bool) -> None:
    state, generator = onmt_state()
    whole = {f"generator.{name}": tensor for name, tensor in generator.items()}
    saved = {"model": state, "generator": generator} if apart else {"model": state | whole}
    trace = traced(tmp_path, {**saved, "optim": None}, {"n_heads": str(HEADS)}, SOURCE, TARGET)
    memory, logits = OpenNMT(state, generator)(SOURCE, TARGET)
    assert_same(trace.stages["encoder/final"], memory)
    assert_same(trace.logits, logits)
    spec = trace.model["spec"]
    assert (spec["start_id"], spec["end_id"], spec["pad_id"], spec["unk_id"]) == (2, 3, 1, 0)
    assert spec["encoder"]["norm_epsilon"] == 1e-6


def test_an_opennmt_file_with_relative_positions_is_refused(tmp_path: Path) -> None:
    state, generator = onmt_state()
    more = {"encoder.transformer.0.self_attn.relative_positions_embeddings.weight": torch.zeros(41, 4)}
    torch.save({"model": state | more, "generator": generator}, tmp_path / "weights.pt")
    with pytest.raises(UnknownLayout, match=r"closest is opennmt. .*relative_positions_embeddings.weight has no place"):
        load(tmp_path / "weights.pt", {"n_heads": "3"}, CPU)
