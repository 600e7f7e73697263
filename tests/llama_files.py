"""Llama-like files with random weights, and the network written anew from its papers: rotations are products of complex numbers."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tests.toolkits import HIDDEN, State, random_state

WORDS, WIDTH, HEADS, KEY_HEADS, WIDE, LAYERS = 13, 24, 6, 2, 4, 2
IDS = (1, 5, 12, 6, 4, 7, 3, 5)
TOLD = {"rotary_base": "10000", "norm_epsilon": "1e-05", "variant": "plain"}


def meta_state(key_heads: int = KEY_HEADS) -> State:
    """A file by Meta's names."""
    shapes: dict[str, tuple[int, ...]] = {"tok_embeddings.weight": (WORDS, WIDTH), "norm.weight": (WIDTH,)}
    for layer in (f"layers.{number}" for number in range(LAYERS)):
        for name, rows in (("wq", HEADS * WIDE), ("wk", key_heads * WIDE), ("wv", key_heads * WIDE)):
            shapes[f"{layer}.attention.{name}.weight"] = (rows, WIDTH)
        shapes[f"{layer}.attention.wo.weight"] = (WIDTH, HEADS * WIDE)
        shapes |= {f"{layer}.feed_forward.{name}.weight": (HIDDEN, WIDTH) for name in ("w1", "w3")}
        shapes[f"{layer}.feed_forward.w2.weight"] = (WIDTH, HIDDEN)
        shapes |= {f"{layer}.{name}.weight": (WIDTH,) for name in ("attention_norm", "ffn_norm")}
    state = random_state(shapes)
    return state | {"output.weight": state["tok_embeddings.weight"]}


def litgpt_state(stacked: str) -> State:
    """The same numbers by lit-gpt's names; `attn.attn` holds queries, key and value of one group after the other."""
    names = {"tok_embeddings": "transformer.wte", "norm": "transformer.ln_f", "output": "lm_head"}
    parts = {"attention.wo": "attn.proj", "attention_norm": "norm_1", "ffn_norm": "norm_2"}
    parts |= {"feed_forward.w1": "mlp.fc_1", "feed_forward.w3": "mlp.fc_2", "feed_forward.w2": "mlp.proj"}
    state, found = meta_state(), State()
    for ours, theirs in names.items():
        found[f"{theirs}.weight"] = state[f"{ours}.weight"]
    for number in range(LAYERS):
        for ours, theirs in parts.items():
            found[f"transformer.h.{number}.{theirs}.weight"] = state[f"layers.{number}.{ours}.weight"]
        q, k, v = (state[f"layers.{number}.attention.{name}.weight"] for name in ("wq", "wk", "wv"))
        whole = torch.cat([q, k, v])
        if stacked == "attn.attn":
            rows = HEADS // KEY_HEADS * WIDE
            groups = [(q[rows * g : rows * (g + 1)], k[WIDE * g : WIDE * (g + 1)], v[WIDE * g : WIDE * (g + 1)]) for g in (0, 1)]
            whole = torch.cat([part for group in groups for part in group])
        found[f"transformer.h.{number}.{stacked}.weight"] = whole
    return found


@dataclass
class Llama:
    """The network of Touvron et al. 2023, section 2.2, by Meta's names, one head and one position at a time."""

    state: State
    neighbors: bool = True
    base: float = 10000.0
    epsilon: float = 1e-5
    scale: float = 1.0

    def norm(self, name: str, x: Tensor) -> Tensor:
        return x / (x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + self.epsilon).sqrt() * self.state[f"{name}.weight"]

    def turn(self, x: Tensor) -> Tensor:
        """[position, head_dim] of one head: each pair is a complex number."""
        half = WIDE // 2
        first, second = (x[:, 0::2], x[:, 1::2]) if self.neighbors else (x[:, :half], x[:, half:])
        angle = torch.tensor([[p * self.base ** (-2 * i / WIDE) for i in range(half)] for p in range(len(x))], dtype=torch.float64)
        point = torch.complex(first.double(), second.double()) * torch.polar(torch.ones_like(angle), angle)
        joined = [point.real, point.imag]
        return (torch.stack(joined, -1).flatten(1) if self.neighbors else torch.cat(joined, 1)).to(x.dtype)

    def attend(self, name: str, x: Tensor) -> Tensor:
        q, k, v = (x @ self.state[f"{name}.{part}.weight"].T for part in ("wq", "wk", "wv"))
        each = HEADS // (k.shape[1] // WIDE)
        hidden = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        found = []
        for head in range(HEADS):
            own = slice(head * WIDE, (head + 1) * WIDE)
            shared = slice(head // each * WIDE, (head // each + 1) * WIDE)
            scores = self.turn(q[:, own]) @ self.turn(k[:, shared]).T / math.sqrt(WIDE)
            found.append(scores.masked_fill(hidden, -math.inf).softmax(-1) @ v[:, shared])
        return torch.cat(found, -1) @ self.state[f"{name}.wo.weight"].T

    def feed(self, name: str, x: Tensor) -> Tensor:
        inner, gate = (x @ self.state[f"{name}.{part}.weight"].T for part in ("w1", "w3"))
        return (inner * torch.sigmoid(inner) * gate) @ self.state[f"{name}.w2.weight"].T

    def __call__(self, ids: tuple[int, ...]) -> Tensor:
        x = self.state["tok_embeddings.weight"][list(ids)] * self.scale
        for layer in (f"layers.{number}" for number in range(LAYERS)):
            x = x + self.attend(f"{layer}.attention", self.norm(f"{layer}.attention_norm", x))
            x = x + self.feed(f"{layer}.feed_forward", self.norm(f"{layer}.ffn_norm", x))
        return self.norm("norm", x) @ self.state["output.weight"].T
