"""Folders of architectures without a row, small and with random weights, each beside the library's own eager maps."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.families import small_config
from model.checkpoints import loader
from model.huggingface import library, sounds
from model.huggingface.families import Kind
from model.huggingface.images import arranged
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignListener, ForeignViewer
from model.huggingface.recorded.network import RecordedNetwork
from model.inference.run import run
from model.requests.inputs import Given, RandomFeatures
from model.requests.request import Decoding, RunRequest
from model.trace.types import Attention, Trace
from tests.foreign_files import Case

CPU = torch.device("cpu")
SOURCE, TARGET = (4, 6, 5, 8, 9, 11, 13, 15), (2, 7, 10, 11)
QUICK = ("gemma2", "gpt_neo", "deberta", "blenderbot", "whisper", "vit", "mamba")
"""Those that the suite runs; `python -m tests.foreign` runs all."""

RECORDED = (
    "gemma2 gemma3_text granite cohere phi phi3 falcon bloom gpt_neo gptj codegen mixtral olmo2 stablelm starcoder2 smollm3 xglm "
    "glm biogpt mamba albert deberta deberta-v2 mpnet modernbert big_bird xlnet funnel roformer esm longformer led blenderbot "
    "plbart umt5 longt5 fsmt encoder-decoder whisper vit dinov2 wav2vec2 clip deepseek_v2 deepseek_v3 squeezebert nystromformer"
).split()


def saved(folder: Path, name: str) -> tuple[nn.Module, Kind]:
    """A folder as the library saves it, the network that was saved, and its stacks."""
    config = _pair() if name == "encoder-decoder" else small_config(name)
    kind = library.kind_of(config)
    assert kind is not None
    torch.manual_seed(5)
    made = library._class_of(kind, config)._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    made.save_pretrained(folder)
    return made, kind


def saved_deberta(folder: Path) -> Any:
    """A folder of DeBERTa-v3's kind, with vectors for distances in buckets; `small_config` has none."""
    from transformers import DebertaV2Config, DebertaV2Model

    torch.manual_seed(5)
    sizes = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    distances = {"relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True}
    more = {"pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "max_position_embeddings": 64}
    made: Any = DebertaV2Model(DebertaV2Config(**sizes, **distances, **more)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    made.save_pretrained(folder)
    return made


def _pair() -> Any:
    """The config of an encoder and a decoder of different architectures in one network."""
    from transformers import EncoderDecoderConfig

    config = EncoderDecoderConfig.from_encoder_decoder_configs(small_config("bert"), small_config("roberta"))
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    return config


def case(name: str) -> Case:
    """One architecture: the largest difference of its maps, or its refusal."""

    def measure(folder: Path) -> float:
        own, kind = saved(folder, name)
        found = loader.load(folder, {}, CPU)
        assert isinstance(found, Foreign)
        trace, inputs = traced(found, kind)
        with torch.inference_mode():
            read = getattr(own, "vision_model", own)  # of a folder of images and texts, only the images are
            return max(_differences(trace, kind, read(**inputs, output_attentions=True)))

    title = {"led": "`led`, its decoder", "encoder-decoder": "`encoder-decoder` of `bert` and `roberta`"}.get(name, f"`{name}`")
    return Case(title, measure, name in QUICK)


def traced(found: Foreign, kind: Kind) -> tuple[Trace, dict[str, Tensor]]:
    """A run of a folder, a target fed to a decoder, and the same input for the library."""
    network: Any = found.network
    given: Given = SOURCE
    inputs = {"input_ids": torch.tensor([SOURCE])}
    if isinstance(network, RecordedNetwork) and network.reads.form != "ids":
        rows = network.reads.example
        given = RandomFeatures(rows)
        drawn = torch.randn(1, rows, network.reads.width, generator=torch.Generator().manual_seed(0))
        inputs = {network.reads.argument: network.reads.arranged(drawn)}
    if isinstance(network, ForeignListener):
        sound = network.sound
        given = RandomFeatures(sound.positions)
        drawn = torch.randn(1, sound.positions, sound.width, generator=torch.Generator().manual_seed(0))
        inputs = {"input_features": sounds.arranged(drawn, sound)}
    if isinstance(network, ForeignViewer):
        image = network.image
        given = RandomFeatures(image.patches)
        drawn = torch.randn(1, image.patches, image.width, generator=torch.Generator().manual_seed(0))
        inputs = {"pixel_values": arranged(drawn, image)}
    if kind == "both":
        inputs["decoder_input_ids"] = torch.tensor([TARGET])
        inputs["use_cache"] = False  # type: ignore[assignment]  # with a cache, fsmt reads one token at a time, without a causal mask
    request = RunRequest("tiny", given, TARGET if kind == "both" else None, Decoding(max_length=0), keep=("qkv", "context"))
    return run(found, request, CPU, "CPU"), inputs


def _differences(trace: Trace, kind: Kind, wanted: Any) -> Iterable[float]:
    for sites, maps in _pairs(trace, kind, wanted):
        if not sites:  # named under `missing`
            continue
        assert len(sites) == len(maps), (len(sites), len(maps))
        for attention, own in zip(sites, maps, strict=True):
            first = own[0] if own.dim() == 4 else own.flatten(0, -4)[0]  # the first block of a map in blocks
            weights = first if torch.allclose(first.sum(-1), torch.ones(()), atol=1e-3) else first.softmax(-1)  # some are scores
            yield float((torch.from_numpy(attention.weights.copy()) - weights).abs().max())
    if trace.logits is not None:
        yield float((torch.from_numpy(trace.logits.copy()) - wanted.logits[0]).abs().max())


def _pairs(trace: Trace, kind: Kind, wanted: Any) -> Iterable[tuple[list[Attention], list[Tensor]]]:
    sites = list(trace.attention.values())
    if kind != "both":
        return [(sites, list(wanted.attentions))]
    crosses = [site for site in sites if site.site.kind == "cross"]
    stacks = [[site for site in sites if site.site.stack == name and site.site.kind != "cross"] for name in ("encoder", "decoder")]
    names = ("encoder_attentions", "decoder_attentions", "cross_attentions")
    return [(own, list(getattr(wanted, name))) for own, name in zip((*stacks, crosses), names, strict=True)]


CASES = tuple(map(case, RECORDED))
