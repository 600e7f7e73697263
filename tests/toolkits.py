"""State dicts of toolkits, small and random, by the names that each toolkit gives its tensors."""

import math

import torch
from torch import Tensor

SOURCE, TARGET = (2, 5, 6, 4, 7, 3), (2, 8, 4, 9)
WIDTH, HEADS, HIDDEN = 12, 3, 20
State = dict[str, Tensor]


def random_state(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> State:
    """Every tensor random; gains of norms around 1."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (1.0 if "norm" in name and name.endswith("weight") else 0.0) + 0.3 * torch.randn(shape, generator=generator)
        for name, shape in shapes.items()
    }


def linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


def mapped(state: State, name: str, x: Tensor) -> Tensor:
    """x Wᵀ + b."""
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def normed(state: State, name: str, x: Tensor, epsilon: float) -> Tensor:
    """LayerNorm, written out."""
    deviation = (x.var(-1, keepdim=True, unbiased=False) + epsilon).sqrt()
    return (x - x.mean(-1, keepdim=True)) / deviation * state[f"{name}.weight"] + state[f"{name}.bias"]


def waves(positions: int) -> Tensor:
    """Sine and cosine side by side."""
    table = torch.zeros(positions, WIDTH)
    for position in range(positions):
        for column in range(0, WIDTH, 2):
            angle = position / 10000 ** (column / WIDTH)
            table[position, column], table[position, column + 1] = math.sin(angle), math.cos(angle)
    return table


# --- JoeyNMT -----------------------------------------------------------------------------------------------------------

JOEY_ATTENTIONS = {"encoder": ("src_src_att",), "decoder": ("trg_trg_att", "src_trg_att")}
JOEY_NORMS = {"encoder": ("layer_norm",), "decoder": ("x_layer_norm", "dec_layer_norm")}


def joey_state(first: bool) -> State:
    shapes: dict[str, tuple[int, ...]] = {"src_embed.lut.weight": (10, WIDTH), "trg_embed.lut.weight": (11, WIDTH)}
    for stack, layers in (("encoder", 2), ("decoder", 1)):
        for layer in (f"{stack}.layers.{number}" for number in range(layers)):
            for attention in JOEY_ATTENTIONS[stack]:
                for part in ("k_layer", "v_layer", "q_layer", "output_layer"):
                    shapes |= linear(f"{layer}.{attention}.{part}", WIDTH, WIDTH)
            shapes |= linear(f"{layer}.feed_forward.pwff_layer.0", HIDDEN, WIDTH)
            shapes |= linear(f"{layer}.feed_forward.pwff_layer.3", WIDTH, HIDDEN)
            for name in (*JOEY_NORMS[stack], "feed_forward.layer_norm"):
                shapes |= norm(f"{layer}.{name}")
        shapes |= norm(f"{stack}.layer_norm") if first else {}
    shapes["decoder.output_layer.weight"] = (11, WIDTH)
    table = waves(50)[None]
    return random_state(shapes) | {"encoder.pe.pe": table, "decoder.pe.pe": table.clone()}


FAIRSEQ_ATTENTIONS = {"encoder": ("self_attn",), "decoder": ("self_attn", "encoder_attn")}


def fairseq_state(first: bool, learned: bool, tied: bool = False) -> State:
    """A file of fairseq: two layers that read, one that writes."""
    shapes: dict[str, tuple[int, ...]] = {"encoder.embed_tokens.weight": (10, WIDTH), "decoder.embed_tokens.weight": (11, WIDTH)}
    for stack, layers in (("encoder", 2), ("decoder", 1)):
        for layer in (f"{stack}.layers.{number}" for number in range(layers)):
            for attention in FAIRSEQ_ATTENTIONS[stack]:
                shapes |= norm(f"{layer}.{attention}_layer_norm")
                for part in ("k_proj", "v_proj", "q_proj", "out_proj"):
                    shapes |= linear(f"{layer}.{attention}.{part}", WIDTH, WIDTH)
            shapes |= linear(f"{layer}.fc1", HIDDEN, WIDTH) | linear(f"{layer}.fc2", WIDTH, HIDDEN)
            shapes |= norm(f"{layer}.final_layer_norm")
        shapes |= norm(f"{stack}.layer_norm") if first else {}
        shapes |= {f"{stack}.embed_positions.weight": (40, WIDTH)} if learned else {}
    shapes |= {} if tied else {"decoder.output_projection.weight": (11, WIDTH)}
    counters = {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}
    if not learned:
        counters |= {f"{stack}.embed_positions._float_tensor": torch.zeros(1) for stack in ("encoder", "decoder")}
    return random_state(shapes) | counters
