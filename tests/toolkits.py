"""State dicts of toolkits for translation, small and random, by the names that each toolkit gives its tensors; and their network,
written anew from Vaswani et al. 2017 in plain torch, one head after the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

SOURCE, TARGET = (2, 5, 6, 4, 7, 3), (2, 8, 4, 9)
WIDTH, HEADS, HIDDEN = 12, 3, 20
State: TypeAlias = dict[str, Tensor]
Shapes: TypeAlias = dict[str, tuple[int, ...]]
Pair: TypeAlias = tuple[str, str]


def random_state(shapes: Shapes, seed: int = 0) -> State:
    """Every tensor random; gains of norms around 1."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (1.0 if "norm" in name and name.endswith(("weight", "a_2")) else 0.0) + 0.3 * torch.randn(shape, generator=generator)
        for name, shape in shapes.items()
    }


def linear(name: str, rows: int, columns: int) -> Shapes:
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def mapped(state: State, name: str, x: Tensor) -> Tensor:
    """x Wᵀ + b."""
    return x @ state[f"{name}.weight"].T + state.get(f"{name}.bias", torch.zeros(()))


def standard(x: Tensor, epsilon: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + epsilon).sqrt()


def waves(positions: int) -> Tensor:
    """Sine and cosine side by side."""
    table = torch.zeros(positions, WIDTH)
    for position in range(positions):
        for column in range(0, WIDTH, 2):
            angle = position / 10000 ** (column / WIDTH)
            table[position, column], table[position, column + 1] = math.sin(angle), math.cos(angle)
    return table


def fairseq_waves(count: int) -> Tensor:
    """All sines before all cosines; padding has the id 1, and positions count on from it."""
    half = WIDTH // 2
    each = [math.exp(column * -math.log(10000) / (half - 1)) for column in range(half)]
    return torch.tensor([[wave(number * one) for wave in (math.sin, math.cos) for one in each] for number in range(2, 2 + count)])


@dataclass(frozen=True)
class Toolkit:
    """Names of a translator's tensors: first the encoder's, then the decoder's.

    Attributes:
        words, tables: the embeddings, and the tables of positions.
        layers: what stands before a layer's number.
        attentions: of a layer, each with one of `norms`; the norm of the feed-forward network comes last.
        maps: of queries, keys, values and outputs.
        hidden: the two maps of the feed-forward network.
        last: the norms after the stacks.
        normed: what a norm computes before gain and shift.
        begins: the row of a table that is the first position's.
    """

    words: Pair
    tables: Pair
    layers: Pair
    attentions: tuple[tuple[str, ...], tuple[str, ...]]
    maps: tuple[str, str, str, str]
    norms: tuple[tuple[str, ...], tuple[str, ...]]
    hidden: Pair
    last: Pair
    output: str
    output_bias: bool = False
    gain: Pair = ("weight", "bias")
    normed: Callable[[Tensor], Tensor] = lambda x: standard(x, 1e-5)
    begins: int = 0

    def state(self, first: bool = True) -> State:
        """A file of two layers that read and one that writes; `first`: norms come before sublayers."""
        shapes: Shapes = {self.words[0]: (10, WIDTH), self.words[1]: (11, WIDTH)} | linear(self.output, 11, WIDTH)
        norms = list(self.last) if first else []
        for stack, number in ((0, 0), (0, 1), (1, 0)):
            layer = f"{self.layers[stack]}{number}"
            for name in (f"{layer}.{each}.{part}" for each in self.attentions[stack] for part in self.maps):
                shapes |= linear(name, WIDTH, WIDTH)
            shapes |= linear(f"{layer}.{self.hidden[0]}", HIDDEN, WIDTH) | linear(f"{layer}.{self.hidden[1]}", WIDTH, HIDDEN)
            norms += [f"{layer}.{name}" for name in self.norms[stack]]
        shapes |= {f"{name}.{part}": (WIDTH,) for name in norms for part in self.gain}
        return random_state({name: shape for name, shape in shapes.items() if self.output_bias or name != f"{self.output}.bias"})


@dataclass
class Reference:
    """The network of a file; it returns the encoder's output and the logits of a given target, without padding."""

    kit: Toolkit
    state: State
    first: bool = True
    scale: bool = True

    def norm(self, name: str, x: Tensor, here: bool) -> Tensor:
        gain, shift = (self.state.get(f"{name}.{part}", torch.zeros(())) for part in self.kit.gain)
        return self.kit.normed(x) * gain + shift if here else x

    def around(self, norm: str, x: Tensor, inside: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(norm, x + inside(self.norm(norm, x, self.first)), not self.first)

    def attend(self, name: str, x: Tensor, memory: Tensor, past: bool) -> Tensor:
        q, k, v, output = (f"{name}.{part}" for part in self.kit.maps)
        queries, keys, values = mapped(self.state, q, x), mapped(self.state, k, memory), mapped(self.state, v, memory)
        hidden, found, wide = torch.ones(len(x), len(memory)).triu(1).bool() & past, [], WIDTH // HEADS
        for own in (slice(head * wide, (head + 1) * wide) for head in range(HEADS)):
            scores = (queries[:, own] @ keys[:, own].T / math.sqrt(wide)).masked_fill(hidden, -math.inf)
            found.append(scores.softmax(-1) @ values[:, own])
        return mapped(self.state, output, torch.cat(found, dim=-1))

    def embed(self, stack: int, ids: tuple[int, ...]) -> Tensor:
        table, begin = self.state.get(self.kit.tables[stack]), self.kit.begins
        rows = fairseq_waves(len(ids)) if table is None else table.reshape(-1, WIDTH)[begin : begin + len(ids)]
        return self.state[self.kit.words[stack]][list(ids)] * (math.sqrt(WIDTH) if self.scale else 1.0) + rows

    def layer(self, stack: int, number: int, x: Tensor, memory: Tensor | None = None) -> Tensor:
        before = f"{self.kit.layers[stack]}{number}."
        *norms, last = (before + name for name in self.kit.norms[stack])
        own, *cross = (before + name for name in self.kit.attentions[stack])
        x = self.around(norms[0], x, lambda y: self.attend(own, y, y, past=stack == 1))
        for name in cross:
            assert memory is not None
            x = self.around(norms[1], x, lambda y: self.attend(name, y, memory, past=False))  # noqa: B023
        wide, narrow = (before + name for name in self.kit.hidden)
        return self.around(last, x, lambda y: mapped(self.state, narrow, mapped(self.state, wide, y).relu()))

    def __call__(self, source: tuple[int, ...], target: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        read = self.layer(0, 1, self.layer(0, 0, self.embed(0, source)))
        memory = self.norm(self.kit.last[0], read, self.first)
        last = self.norm(self.kit.last[1], self.layer(1, 0, self.embed(1, target), memory), self.first)
        if f"{self.kit.output}.weight" not in self.state:
            return memory, last @ self.state[self.kit.words[1]].T
        return memory, mapped(self.state, self.kit.output, last)


JOEY = Toolkit(
    words=("src_embed.lut.weight", "trg_embed.lut.weight"),
    tables=("encoder.pe.pe", "decoder.pe.pe"),
    layers=("encoder.layers.", "decoder.layers."),
    attentions=(("src_src_att",), ("trg_trg_att", "src_trg_att")),
    maps=("q_layer", "k_layer", "v_layer", "output_layer"),
    norms=(("layer_norm", "feed_forward.layer_norm"), ("x_layer_norm", "dec_layer_norm", "feed_forward.layer_norm")),
    hidden=("feed_forward.pwff_layer.0", "feed_forward.pwff_layer.3"),
    last=("encoder.layer_norm", "decoder.layer_norm"),
    output="decoder.output_layer",
    normed=lambda x: standard(x, 1e-6),
)
FAIRSEQ = Toolkit(
    words=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),
    tables=("encoder.embed_positions.weight", "decoder.embed_positions.weight"),
    layers=("encoder.layers.", "decoder.layers."),
    attentions=(("self_attn",), ("self_attn", "encoder_attn")),
    maps=("q_proj", "k_proj", "v_proj", "out_proj"),
    norms=(("self_attn_layer_norm", "final_layer_norm"), ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")),
    hidden=("fc1", "fc2"),
    last=("encoder.layer_norm", "decoder.layer_norm"),
    output="decoder.output_projection",
    begins=2,
)
OPENNMT = Toolkit(
    words=("encoder.embeddings.make_embedding.emb_luts.0.weight", "decoder.embeddings.make_embedding.emb_luts.0.weight"),
    tables=("encoder.embeddings.make_embedding.pe.pe", "decoder.embeddings.make_embedding.pe.pe"),
    layers=("encoder.transformer.", "decoder.transformer_layers."),
    attentions=(("self_attn",), ("self_attn", "context_attn")),
    maps=("linear_query", "linear_keys", "linear_values", "final_linear"),
    norms=(("layer_norm", "feed_forward.layer_norm"), ("layer_norm_1", "layer_norm_2", "feed_forward.layer_norm")),
    hidden=("feed_forward.w_1", "feed_forward.w_2"),
    last=("encoder.layer_norm", "decoder.layer_norm"),
    output="generator.0",
    output_bias=True,
    normed=lambda x: standard(x, 1e-6),
)
ANNOTATED = Toolkit(
    words=("src_embed.0.lut.weight", "tgt_embed.0.lut.weight"),
    tables=("src_embed.1.pe", "tgt_embed.1.pe"),
    layers=("encoder.layers.", "decoder.layers."),
    attentions=(("self_attn",), ("self_attn", "src_attn")),
    maps=("linears.0", "linears.1", "linears.2", "linears.3"),
    norms=(("sublayer.0.norm", "sublayer.1.norm"), ("sublayer.0.norm", "sublayer.1.norm", "sublayer.2.norm")),
    hidden=("feed_forward.w_1", "feed_forward.w_2"),
    last=("encoder.norm", "decoder.norm"),
    output="generator.proj",
    output_bias=True,
    gain=("a_2", "b_2"),
    normed=lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6),
)


def joey_state(first: bool) -> State:
    return JOEY.state(first) | {name: waves(50)[None] for name in JOEY.tables}


def annotated_state() -> State:
    """Its tables are no waves: what the file holds is used."""
    return ANNOTATED.state() | random_state(dict.fromkeys(ANNOTATED.tables, (1, 50, WIDTH)), seed=1)


def fairseq_state(first: bool, learned: bool, tied: bool = False) -> State:
    state = FAIRSEQ.state(first) | {f"{stack}.version": torch.tensor([3.0]) for stack in ("encoder", "decoder")}
    if learned:
        state |= random_state(dict.fromkeys(FAIRSEQ.tables, (40, WIDTH)), seed=1)
    else:
        state |= {f"{stack}.embed_positions._float_tensor": torch.zeros(1) for stack in ("encoder", "decoder")}
    return {name: tensor for name, tensor in state.items() if not tied or FAIRSEQ.output not in name}


def onmt_state() -> State:
    return OPENNMT.state() | {name: waves(40)[:, None] for name in OPENNMT.tables}


def onmt_file(state: State, apart: bool = True) -> dict[str, State]:
    """A file of OpenNMT-py; `apart`: the map to the vocabulary has a table of its own."""
    output = {name.removeprefix("generator."): tensor for name, tensor in state.items() if name.startswith("generator.")}
    rest = {name: tensor for name, tensor in state.items() if not name.startswith("generator.")}
    return {"model": rest, "generator": output} if apart else {"model": state}


def gpt_state(width: int = 16) -> State:
    """nanoGPT's names, one layer."""
    block = {"ln_1": (width,), "attn.c_attn": (3 * width, width), "attn.c_proj": (width, width), "ln_2": (width,)}
    block |= {"mlp.c_fc": (20, width), "mlp.c_proj": (width, 20)}
    whole: Shapes = {"wte": (11, width), "wpe": (9, width), "ln_f": (width,)} | {
        f"h.0.{name}": shape for name, shape in block.items()
    }
    return random_state({f"transformer.{name}.weight": shape for name, shape in whole.items()})
