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


ONMT_LAYERS = {"encoder": "encoder.transformer", "decoder": "decoder.transformer_layers"}
ONMT_ATTENTIONS = {"encoder": ("self_attn",), "decoder": ("self_attn", "context_attn")}
ONMT_NORMS = {"encoder": ("layer_norm",), "decoder": ("layer_norm_1", "layer_norm_2")}


def onmt_state() -> tuple[State, State]:
    """A file of OpenNMT-py: two layers that read, one that writes; and the map to the vocabulary, which has a table of its own."""
    shapes: dict[str, tuple[int, ...]] = {}
    for stack, layers, words in (("encoder", 2, 10), ("decoder", 1, 11)):
        shapes[f"{stack}.embeddings.make_embedding.emb_luts.0.weight"] = (words, WIDTH)
        for layer in (f"{ONMT_LAYERS[stack]}.{number}" for number in range(layers)):
            for attention in ONMT_ATTENTIONS[stack]:
                for part in ("linear_keys", "linear_values", "linear_query", "final_linear"):
                    shapes |= linear(f"{layer}.{attention}.{part}", WIDTH, WIDTH)
            shapes |= linear(f"{layer}.feed_forward.w_1", HIDDEN, WIDTH) | linear(f"{layer}.feed_forward.w_2", WIDTH, HIDDEN)
            for name in (*ONMT_NORMS[stack], "feed_forward.layer_norm"):
                shapes |= norm(f"{layer}.{name}")
        shapes |= norm(f"{stack}.layer_norm")
    tables = {f"{stack}.embeddings.make_embedding.pe.pe": waves(40)[:, None] for stack in ONMT_LAYERS}
    return random_state(shapes) | tables, random_state(linear("0", 11, WIDTH), seed=1)


class OpenNMT:
    """OpenNMT-py's Transformer, as its modules `multi_headed_attn.py`, `position_ffn.py` and `transformer.py` compute it."""

    def __init__(self, state: State, generator: State) -> None:
        self.state, self.generator = state, generator

    def norm(self, name: str, x: Tensor) -> Tensor:
        return normed(self.state, name, x, 1e-6)

    def attend(self, name: str, x: Tensor, memory: Tensor, past: bool) -> Tensor:
        wide = WIDTH // HEADS
        names = [f"{name}.linear_{part}" for part in ("query", "keys", "values")]
        q, k, v = (mapped(self.state, each, y) for each, y in zip(names, (x, memory, memory), strict=True))
        q, k, v = (each.view(-1, HEADS, wide).transpose(0, 1) for each in (q / math.sqrt(wide), k, v))
        hidden = torch.ones(len(x), len(memory), dtype=torch.bool).triu(1) & past
        weights = (q @ k.transpose(1, 2)).masked_fill(hidden, -1e18).softmax(-1)
        return mapped(self.state, f"{name}.final_linear", (weights @ v).transpose(0, 1).reshape(-1, WIDTH))

    def feed(self, name: str, x: Tensor) -> Tensor:
        inner = mapped(self.state, f"{name}.w_1", self.norm(f"{name}.layer_norm", x)).relu()
        return mapped(self.state, f"{name}.w_2", inner) + x

    def embed(self, stack: str, ids: tuple[int, ...]) -> Tensor:
        name = f"{stack}.embeddings.make_embedding"
        return self.state[f"{name}.emb_luts.0.weight"][list(ids)] * math.sqrt(WIDTH) + self.state[f"{name}.pe.pe"][: len(ids), 0]

    def __call__(self, source: tuple[int, ...], target: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        x, y = self.embed("encoder", source), self.embed("decoder", target)
        for layer in ("encoder.transformer.0", "encoder.transformer.1"):
            inside = self.norm(f"{layer}.layer_norm", x)
            x = self.feed(f"{layer}.feed_forward", self.attend(f"{layer}.self_attn", inside, inside, past=False) + x)
        memory, layer = self.norm("encoder.layer_norm", x), "decoder.transformer_layers.0"
        inside = self.norm(f"{layer}.layer_norm_1", y)
        y = self.attend(f"{layer}.self_attn", inside, inside, past=True) + y
        y = self.attend(f"{layer}.context_attn", self.norm(f"{layer}.layer_norm_2", y), memory, past=False) + y
        last = self.norm("decoder.layer_norm", self.feed(f"{layer}.feed_forward", y))
        return memory, mapped(self.generator, "0", last)
