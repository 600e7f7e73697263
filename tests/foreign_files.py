"""Files of other programs, small and with random weights, each beside the numbers that its own modules compute."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from model.checkpoints.layouts.loading import load
from model.inference.run import run
from model.requests.inputs import Features
from model.requests.request import Decoding, RunRequest
from tests.llama_files import IDS, Llama, litgpt_state, meta_state
from tests.llama_files import TOLD as LLAMA_TOLD
from tests.reference import GOLDEN, SETTINGS
from tests.toolkits import HEADS, OPENNMT, SOURCE, TARGET, WIDTH, Reference, onmt_file, onmt_state
from tests.weight_files import CPU, saved

WORDS, LONGEST = 11, 16
TOLD = {"n_heads": "3", "norm_order": "post", "activation": "relu", "causal": "true", "embed_scale": "none"}


@dataclass(frozen=True)
class Case:
    """A file or folder that is tried.

    Attributes:
        name: what it is.
        measure: makes it in a folder and returns the largest difference between our numbers and its own program's; raises a
            HeadlightError where it is refused.
        quick: whether the suite tries it; otherwise only `python -m tests.foreign` does.
    """

    name: str
    measure: Callable[[Path], float]
    quick: bool = True


def shaken(makes: Callable[[], nn.Module]) -> nn.Module:
    """A new module with every parameter random, norms and biases included, and the same ones each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = makes()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def triangle(count: int) -> Tensor:
    return nn.Transformer.generate_square_subsequent_mask(count)


class Translator(nn.Module):
    """nn.Transformer with embeddings, tables of positions and an output layer, some of them shared."""

    def __init__(self, tables: int = 2, shared: bool = False, tied: bool = False, first: bool = False, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.transformer = nn.Transformer(WIDTH, HEADS, 2, 1, 20, 0.0, batch_first=True, norm_first=first)
        self.src_emb = nn.Embedding(WORDS, WIDTH)
        self.tgt_emb = self.src_emb if shared else nn.Embedding(WORDS, WIDTH)
        self.generator = nn.Linear(WIDTH, WORDS)
        if tied:
            self.generator.weight = self.tgt_emb.weight
        if tables == 1:
            self.position_table = nn.Embedding(LONGEST, WIDTH)
        if tables == 2:
            self.src_pos, self.tgt_pos = nn.Embedding(LONGEST, WIDTH), nn.Embedding(LONGEST + 4, WIDTH)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x, y = self.src_emb(source) * self.scale, self.tgt_emb(target) * self.scale
        one = getattr(self, "position_table", None)
        for table, states in ((getattr(self, "src_pos", one), x), (getattr(self, "tgt_pos", one), y)):
            if table is not None:
                states += table.weight[: states.shape[1]]
        logits: Tensor = self.generator(self.transformer(x, y, tgt_mask=triangle(target.shape[1])))
        return logits


class Reader(nn.Module):
    """nn.TransformerEncoder with an embedding and a table; `parts` are whatever else its author put into the module."""

    def __init__(self, first: bool = False, **parts: nn.Module) -> None:
        super().__init__()
        self.embedding, self.pos_embedding = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 20, 0.0, batch_first=True, norm_first=first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        states: Tensor = self.encoder(self.embedding(source) + self.pos_embedding.weight[: source.shape[1]], mask=mask)
        return states


class Block(nn.Module):
    """A layer of nanoGPT (bias-free) or minGPT."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, bias=bias), nn.LayerNorm(WIDTH, bias=bias)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.c_attn, self.attn.c_proj = nn.Linear(WIDTH, 3 * WIDTH, bias), nn.Linear(WIDTH, WIDTH, bias)
        self.mlp.c_fc, self.mlp.c_proj = nn.Linear(WIDTH, 20, bias), nn.Linear(20, WIDTH, bias)
        self.tanh = bias

    def forward(self, x: Tensor) -> Tensor:
        attn: Any = self.attn
        mlp: Any = self.mlp
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in attn.c_attn(self.ln_1(x)).split(WIDTH, dim=-1))
        x = x + attn.c_proj(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        inner = nn.functional.gelu(mlp.c_fc(self.ln_2(x)), approximate="tanh" if self.tanh else "none")
        added: Tensor = mlp.c_proj(inner)
        return x + added


class GPT(nn.Module):
    """nanoGPT or minGPT, its output tied to its embedding."""

    def __init__(self, bias: bool = False) -> None:
        super().__init__()
        parts = {"wte": nn.Embedding(WORDS, WIDTH), "wpe": nn.Embedding(LONGEST, WIDTH)}
        self.transformer = nn.ModuleDict(
            {**parts, "h": nn.ModuleList(Block(bias) for _ in range(2)), "ln_f": nn.LayerNorm(WIDTH, bias=bias)}
        )
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)
        self.lm_head.weight = parts["wte"].weight

    def forward(self, ids: Tensor) -> Tensor:
        whole: Any = self.transformer
        x = whole.wte(ids) + whole.wpe.weight[: ids.shape[1]]
        for block in whole.h:
            x = block(x)
        logits: Tensor = self.lm_head(whole.ln_f(x))
        return logits


Change = Callable[[dict[str, Tensor]], Any]
"""What a program makes of a state dict when it saves it."""


def plainly(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return state


def _difference(found: Any, wanted: Tensor) -> float:
    assert found.shape == tuple(wanted.shape)
    return float((torch.from_numpy(found.copy()) - wanted.detach()).abs().max())


def translation(name: str, makes: Callable[[], nn.Module], told: Mapping[str, str] = {}, saves: Change = plainly) -> Case:
    """A translator, whose logits for a given target are compared."""

    def measure(folder: Path) -> float:
        theirs = shaken(makes)
        path = saved(folder, saves(theirs.state_dict()))
        trace = run(load(path, TOLD | dict(told), CPU), RunRequest("x", SOURCE, TARGET, Decoding(max_length=0)), CPU, "cpu")
        return _difference(trace.logits, theirs(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0])

    return Case(name, measure)


def reading(name: str, makes: Callable[[], nn.Module], told: Mapping[str, str] = {}, saves: Change = plainly) -> Case:
    """An encoder, whose last states are compared."""
    asked = TOLD | {"causal": "false", "output_layer": "none"} | dict(told)

    def measure(folder: Path) -> float:
        theirs = shaken(makes)
        path = saved(folder, saves(theirs.state_dict()))
        request = RunRequest("x", SOURCE, decoding=Decoding(max_length=0), keep=("hidden",))
        return _difference(
            run(load(path, asked, CPU), request, CPU, "cpu").hidden["encoder.0.1"], theirs(torch.tensor([SOURCE]))[0]
        )

    return Case(name, measure)


def writing(name: str, makes: Callable[[], nn.Module], told: Mapping[str, str], saves: Change = plainly) -> Case:
    """A language model, whose logits of a prompt are compared."""

    def measure(folder: Path) -> float:
        theirs = shaken(makes)
        path = saved(folder, saves(theirs.state_dict()))
        trace = run(load(path, told, CPU), RunRequest("x", SOURCE, decoding=Decoding(max_length=0)), CPU, "cpu")
        return _difference(trace.logits, theirs(torch.tensor([SOURCE]))[0])

    return Case(name, measure)


def features(name: str, makes: Callable[[], nn.Module], told: Mapping[str, str], decoder: bool) -> Case:
    """Modules that read features: a stack or a layer alone."""
    x = [torch.randn(1, count, WIDTH, generator=torch.Generator().manual_seed(count)) for count in (6, 4)]
    given = [Features(tuple(map(tuple, rows[0].tolist()))) for rows in x]

    def measure(folder: Path) -> float:
        theirs = shaken(makes)
        path = saved(folder, theirs.state_dict())
        request = RunRequest("x", given[0], given[1] if decoder else None, Decoding(max_length=0), keep=("hidden",))
        found = list(run(load(path, TOLD_ALONE | dict(told), CPU), request, CPU, "cpu").hidden.values())[-1]
        return _difference(found, (theirs(x[1], x[0], tgt_mask=triangle(4)) if decoder else theirs(x[0]))[0])

    return Case(name, measure)


TOLD_ALONE = {name: TOLD[name] for name in ("n_heads", "norm_order", "activation")} | {"causal": "true"}


def refused(name: str, made: Callable[[], Any], told: Mapping[str, str] = TOLD) -> Case:
    """A file that is not run."""

    def measure(folder: Path) -> float:
        load(saved(folder, made()), told, CPU)
        raise AssertionError(f"{name} was opened")

    return Case(name, measure)


def _with(**tensors: Tensor) -> Change:
    return lambda state: state | {name.replace("__", "."): tensor for name, tensor in tensors.items()}


def _module(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"module.{name}": tensor for name, tensor in state.items()}


def _without_head(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if name != "lm_head.weight"}


def _golden(name: str) -> dict[str, Tensor]:
    state: dict[str, Tensor] = torch.load(GOLDEN / f"{name}.pt", weights_only=True)
    return dict(state)


_LAYOUT = {"layout": "torch-transformer", "output_layer": "none"}


def _encoder_layer() -> nn.Module:
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 20, 0.0, batch_first=True)


def _decoder_layer() -> nn.TransformerDecoderLayer:
    return nn.TransformerDecoderLayer(WIDTH, HEADS, 20, 0.0, batch_first=True)


def llama(name: str, state: dict[str, Tensor], like: Llama, told: Mapping[str, str], **beside: Any) -> Case:
    """A Llama-like file, whose logits of a prompt are compared."""

    def measure(folder: Path) -> float:
        path = saved(folder, {"model": state, **beside})
        trace = run(load(path, LLAMA_TOLD | dict(told), CPU), RunRequest("x", IDS, decoding=Decoding(max_length=0)), CPU, "cpu")
        return _difference(trace.logits, like(IDS))

    return Case(name, measure)


def opennmt(name: str, apart: bool) -> Case:
    """A file of OpenNMT-py, whose logits for a given target are compared."""

    def measure(folder: Path) -> float:
        state = onmt_state()
        path = saved(folder, onmt_file(state, apart) | {"opt": Namespace(heads=3)})
        trace = run(load(path, {}, CPU), RunRequest("x", SOURCE, TARGET, Decoding(max_length=0)), CPU, "cpu")
        return _difference(trace.logits, Reference(OPENNMT, state)(SOURCE, TARGET)[1])

    return Case(name, measure)


_LITGPT = {"n_heads": "6", "activation": "silu", "embed_scale": "none"}

FILES: tuple[Case, ...] = (
    translation("`nn.Transformer`, a table of positions on each side", lambda: Translator()),
    translation("the same, norms before sublayers", lambda: Translator(first=True), {"norm_order": "pre"}),
    translation("the same, one table for both sides", lambda: Translator(tables=1)),
    translation("the same, no table", lambda: Translator(tables=0), {"positions": "none"}),
    translation("the same, output tied to the target's embedding", lambda: Translator(tied=True)),
    translation(
        "the same, one embedding for source and target",
        lambda: Translator(shared=True),
        {"source_embedding": "src_emb.weight", "target_embedding": "src_emb.weight"},
        lambda state: {name: tensor for name, tensor in state.items() if not name.startswith("tgt_emb")},
    ),
    translation("saved in data-parallel training", lambda: Translator(), saves=_module),
    translation(
        "saved by `torch.compile` in a checkpoint",
        lambda: Translator(),
        saves=lambda s: {"model": {f"_orig_mod.{n}": t for n, t in s.items()}},
    ),
    translation(
        "saved by Lightning, with its options",
        lambda: Translator(),
        saves=lambda s: {"state_dict": s, "hyper_parameters": {"nhead": 3}},
    ),
    translation("a mask of the future beside it", lambda: Translator(), saves=_with(tgt_mask=triangle(20))),
    translation("weights of the loss beside it", lambda: Translator(), saves=_with(criterion__weight=torch.ones(WORDS))),
    reading("`nn.TransformerEncoder` with an embedding", lambda: Reader()),
    reading("that encoder, norms before sublayers", lambda: Reader(first=True), {"norm_order": "pre"}),
    reading("a classifier of texts: `classifier`", lambda: Reader(classifier=nn.Linear(WIDTH, 4))),
    reading("a classifier of texts: `fc`", lambda: Reader(fc=nn.Linear(WIDTH, 2))),
    reading(
        "a deep head behind an encoder",
        lambda: Reader(head=nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2))),
    ),
    reading("`AveragedModel`", lambda: Reader(), saves=lambda s: _module(s) | {"n_averaged": torch.tensor(3)}),
    features("`nn.TransformerEncoderLayer` alone", _encoder_layer, {"causal": "false"}, decoder=False),
    features("`nn.TransformerDecoderLayer` alone", _decoder_layer, {}, decoder=True),
    features("`nn.TransformerDecoder` alone", lambda: nn.TransformerDecoder(_decoder_layer(), 2), {}, decoder=True),
    writing(
        "nanoGPT, `model_args` inside", lambda: GPT(), {"activation": "gelu"}, lambda s: {"model": s, "model_args": {"n_head": 3}}
    ),
    writing(
        "nanoGPT, options of `argparse` inside",
        lambda: GPT(),
        {},
        lambda s: {"model": s, "args": Namespace(n_head=3, activation="gelu")},
    ),
    writing("nanoGPT, its tied output left out", lambda: GPT(), {"n_heads": "3", "activation": "gelu"}, _without_head),
    writing(
        "minGPT, causal masks as buffers",
        lambda: GPT(bias=True),
        {"n_heads": "3", "activation": "gelu-tanh"},
        _with(transformer__h__0__attn__bias=torch.ones(1, 1, LONGEST, LONGEST).tril()),
    ),
    llama("llama2.c, `model_args` inside", meta_state(), Llama(meta_state()), {}, model_args={"n_heads": 6, "n_kv_heads": 2}),
    llama("Llama by Meta's names, each head its own keys", meta_state(6), Llama(meta_state(6)), {"n_heads": "6"}),
    llama("lit-gpt, `attn.qkv`", litgpt_state("attn.qkv"), Llama(meta_state(), neighbors=False), _LITGPT),
    llama("lit-gpt before 0.5.4, `attn.attn`", litgpt_state("attn.attn"), Llama(meta_state(), neighbors=False), _LITGPT),
    opennmt("OpenNMT-py, `generator` and `opt` beside `model`", apart=True),
    opennmt("OpenNMT-py, `generator` within", apart=False),
    refused("a norm behind the embedding", lambda: Reader(emb_norm=nn.LayerNorm(WIDTH)).state_dict(), TOLD | _LAYOUT),
    refused(
        "segments",
        lambda: Translator(tables=0).state_dict() | {"seg.weight": torch.ones(2, WIDTH)},
        TOLD | {"layout": "torch-transformer"},
    ),
    refused("a map before the encoder", lambda: Reader(input_proj=nn.Linear(WIDTH, WIDTH)).state_dict(), TOLD | _LAYOUT),
    refused("a learned gate of each head", lambda: Reader(head_gates=nn.Embedding(2, HEADS)).state_dict(), TOLD | _LAYOUT),
    refused("rotary waves", lambda: Reader().state_dict() | {"rotary_emb.inv_freq": torch.ones(2)}, TOLD | _LAYOUT),
    refused(
        "a mask that hides a window", lambda: Reader().state_dict() | {"mask": torch.ones(8, 8).tril().triu(-2)}, TOLD | _LAYOUT
    ),
    refused("positions that begin at 2", lambda: Reader().state_dict() | {"position_ids": torch.arange(2, 18)}, TOLD | _LAYOUT),
    refused(
        "an adapter in each layer",
        lambda: _golden("004_tiny_a") | {"adapter.0.weight": torch.ones(2, 2)},
        SETTINGS["004_tiny_a"] | {"layout": "d2l"},
    ),
    refused(
        "a tensor is missing",
        lambda: {n: t for n, t in _golden("000_tiny_a").items() if n != "decoder.fc_out.bias"},
        SETTINGS["000_tiny_a"],
    ),
    refused(
        "4 heads told, 3 in the file",
        lambda: {"model": GPT().state_dict(), "model_args": {"n_head": 3}},
        {"n_heads": "4", "activation": "gelu"},
    ),
    refused(
        "an activation that is not known here",
        lambda: {"model": GPT().state_dict(), "args": {"activation": "mish"}},
        {"n_heads": "3"},
    ),
    refused("a network for images", lambda: {"conv1.weight": torch.ones(4, 3, 7, 7), "fc.weight": torch.ones(10, 4)}, {}),
)
