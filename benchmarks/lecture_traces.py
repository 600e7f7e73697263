"""The recorded runs that bundled lectures show where a model is not there, made again.

`python -m benchmarks.lecture_traces [NAME …]` writes them to lectures/traces; the README.md there says what each is. SmolLM2 must
be on this machine (`python -m model fetch smollm2`). The others are small networks made here: two with random weights, and a
vision transformer that learns to name digits, which takes a few minutes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import nn

from benchmarks.servers import ROOT
from model.engine.api import Receive, Run
from model.engine.local import LocalEngine
from model.requests.request import Decoding, Keep, RunRequest
from model.trace.serialization import to_bytes
from model.trace.trace_files import ENDING
from model.trace.types import Array, Trace

FOLDER = ROOT / "lectures" / "traces"
SENTENCE = "the old man plays the guitar in the park every day"
SIDE, PATCH = 32, 4
"""Sides of an image and of a patch in pixels."""


SMALL = 1e-3
"""Factor of random weights that should not be seen in a map."""


def trimmed(trace: Trace, title: str, kept: Sequence[str] = ()) -> Trace:
    """What a lecture shows of a run: the weights, and on request some tensors of attention and the latents."""
    dropped: dict[str, Any] = dict.fromkeys({"scores", "q", "k", "v", "context", "output"} - {*kept})
    sites = {site: replace(own, **dropped, weights=np.asarray(own.weights[:], np.float32)) for site, own in trace.attention.items()}
    model = {**trace.model, "title": title}
    stages = {name: own for name, own in trace.stages.items() if name.endswith("/latents")}
    return replace(trace, model=model, attention=sites, logits=None, hidden={}, embedded={}, stages=stages, positions={})


def smollm2() -> Trace:
    """SmolLM2 reads a sentence and continues it by a token."""
    engine = LocalEngine.from_environment()
    decoding = Decoding(max_length=1)
    trace = engine.ask(Run(RunRequest("smollm2", SENTENCE[0].upper() + SENTENCE[1:], decoding=decoding)))
    return trimmed(trace, "SmolLM2 135M Instruct")


def words_folder(network: nn.Module, folder: Path) -> None:
    """Saves a network of the library with a vocabulary of the sentence's words."""
    network.save_pretrained(folder)  # type: ignore[operator]
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(["<unk>", *SENTENCE.split()]))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}), encoding="utf-8")


def run_of(network: nn.Module, title: str, keep: tuple[Keep, ...] = (), tensors: Sequence[str] = ()) -> Trace:
    """The run of a network on the sentence."""
    with TemporaryDirectory() as kept:
        words_folder(network, folder := Path(kept) / "network")
        engine = LocalEngine(Path(kept), torch.device("cpu"))
        trace = engine.ask(Run(RunRequest(folder.name, SENTENCE, decoding=Decoding(max_length=0), keep=keep)))
    return trimmed(trace, title, tensors)


def alibi() -> Trace:
    """BLOOM's architecture with 4 heads, whose queries and keys are made nearly 0, so that the slopes alone are seen."""
    from transformers import BloomConfig, BloomForCausalLM

    torch.manual_seed(0)
    sizes = {"vocab_size": 16, "hidden_size": 32, "n_layer": 1, "n_head": 4}
    network = BloomForCausalLM(BloomConfig(**sizes, bos_token_id=0, eos_token_id=0, pad_token_id=0)).eval()
    with torch.no_grad():
        for name, tensor in network.named_parameters():
            tensor *= SMALL if "query_key_value" in name else 1
    return run_of(network, "ALiBi, random weights")


def sinks() -> Trace:
    """gpt-oss's architecture, whose queries, keys and sinks are made nearly 0. Layer 1 has a window of 4, layer 2 none."""
    from transformers import GptOssConfig, GptOssForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 8, "sliding_window": 4, "max_position_embeddings": 64}
    network = GptOssForCausalLM(GptOssConfig(vocab_size=16, eos_token_id=0, pad_token_id=0, **sizes, **experts)).eval()
    with torch.no_grad():
        for name, tensor in network.named_parameters():
            tensor *= SMALL if name.endswith("sinks") or "q_proj" in name or "k_proj" in name else 1
    return run_of(network, "Learned sinks, random weights")


def latents() -> Trace:
    """DeepSeek-V3's architecture with 4 heads: of each token and layer it keeps a latent of 8 numbers and 4 rotated ones."""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}
    widths = {"kv_lora_rank": 8, "q_lora_rank": None, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}
    config = DeepseekV3Config(vocab_size=16, eos_token_id=0, pad_token_id=0, first_k_dense_replace=2, **sizes, **widths)
    network = DeepseekV3ForCausalLM(config).eval()
    with torch.no_grad():
        for name, tensor in network.named_parameters():
            tensor *= 8 if "proj" in name and "self_attn" in name else 1
    return run_of(network, "Latent attention, random weights", ("qkv", "stages"), ("k", "v"))


def train(network: nn.Module, steps: int, loss: Callable[[], torch.Tensor]) -> None:
    """Trains a network, and leaves it ready to be used.

    Args:
        loss: of the next batch.
    """
    optimizer = torch.optim.AdamW(network.train().parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for step in range(steps):
        optimizer.zero_grad()
        (found := loss()).backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            click.echo(f"step {step + 1}: loss {found.item():.3f}")
    network.eval()


def digit_image(rng: np.random.Generator, digit: int) -> Array:
    """A digit somewhere on a gray, noisy ground: [row, column, color] of uint8."""
    image = Image.new("L", (SIDE, SIDE), int(rng.integers(20, 60)))
    font = ImageFont.load_default(size=float(rng.integers(15, 20)))
    left, top = rng.integers(0, SIDE - 12), rng.integers(-3, SIDE - 19)
    ImageDraw.Draw(image).text((int(left), int(top)), str(digit), fill=int(rng.integers(190, 256)), font=font)
    gray = np.clip(np.asarray(image, np.float64) + rng.normal(0, 12, (SIDE, SIDE)), 0, 255).astype(np.uint8)
    return np.repeat(gray[..., None], 3, axis=2)


def pixels(images: Array) -> torch.Tensor:
    """Images as the network reads them: [image, color, row, column]."""
    return torch.from_numpy((images.astype(np.float32) / 255 - 0.5) / 0.5).permute(0, 3, 1, 2)


def trained_vision(steps: int = 900) -> nn.Module:
    """A vision transformer that names the digit in an image; prints how many of 1,000 new ones are right."""
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    sizes = {
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "image_size": SIDE,
        "patch_size": PATCH,
    }
    network: nn.Module = ViTForImageClassification(ViTConfig(**sizes, num_labels=10, hidden_dropout_prob=0.0))

    def loss() -> torch.Tensor:
        digits = rng.integers(0, 10, 48)
        images = np.stack([digit_image(rng, int(digit)) for digit in digits])
        return nn.functional.cross_entropy(network(pixels(images)).logits, torch.from_numpy(digits))

    train(network, steps, loss)
    digits = rng.integers(0, 10, 1000)
    with torch.no_grad():
        found = network(pixels(np.stack([digit_image(rng, int(digit)) for digit in digits]))).logits.argmax(-1).numpy()
    click.echo(f"digits named right, of 1,000 new images: {int((found == digits).sum())}")
    return network


def vision() -> Trace:
    """The vision transformer reads an image with a digit."""
    network = trained_vision()
    image = digit_image(np.random.default_rng(7), 7)
    with TemporaryDirectory() as kept:
        folder = Path(kept) / "network"
        network.save_pretrained(folder)  # type: ignore[operator]
        size = {"height": SIDE, "width": SIDE}
        processor = {
            "image_processor_type": "ViTImageProcessor",
            "do_resize": True,
            "size": size,
            "do_rescale": True,
            "do_normalize": True,
        }
        processor |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2, "rescale_factor": 1 / 255}
        (folder / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")
        file = Path(kept) / "digit.png"
        Image.fromarray(image).save(file)
        engine = LocalEngine(Path(kept), torch.device("cpu"))
        name = engine.ask(Receive(file.read_bytes(), "digit.png"))
        trace = engine.ask(Run(RunRequest(folder.name, name)))
    return trimmed(trace, "Vision transformer for digits")


NOTES = dict(zip(["do", "re", "mi", "fa", "so", "la", "ti"], (0, 2, 4, 5, 7, 9, 11), strict=True))
"""Semitones of each note above the first."""

BEGIN, END, NO_TIMES = range(len(NOTES), len(NOTES) + 3)
LONGEST_TUNE, SECONDS, RATE = 5, 2, 16_000


def tune(rng: np.random.Generator, notes: Sequence[str] = ()) -> tuple[Array, list[str]]:
    """Some notes one after the other, with pauses: [sample] of float32, and their names.

    Args:
        notes: which ones; empty: drawn.
    """
    named = list(notes) or [str(note) for note in rng.choice(list(NOTES), int(rng.integers(2, LONGEST_TUNE + 1)))]
    found, at = np.zeros(SECONDS * RATE), float(rng.uniform(0.02, 0.15))
    for note in named:
        times = np.arange(int(rng.uniform(0.18, 0.3) * RATE)) / RATE
        pitch = 523.25 * 2 ** (NOTES[note] / 12)
        begin = int(at * RATE)
        envelope = np.minimum(1, 40 * times) * np.minimum(1, 40 * times[::-1]) * rng.uniform(0.3, 0.6)
        found[begin : begin + len(times)] += (np.sin(2 * np.pi * pitch * times) * envelope)[: len(found) - begin]
        at += times[-1] + float(rng.uniform(0.03, 0.09))
    return (found + rng.normal(0, 0.003, len(found))).astype(np.float32), named


def trained_listener(extractor: Any, steps: int = 2000) -> Any:
    """A Whisper that writes the names of notes; prints how many of 500 new tunes it names right."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    layers = {"encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 4}
    ids = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), END) | {"decoder_start_token_id": BEGIN}
    config = WhisperConfig(
        vocab_size=len(NOTES) + 3,
        d_model=48,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        max_source_positions=50 * SECONDS,
        max_target_positions=16,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **layers,
        **ids,
    )
    network = WhisperForConditionalGeneration._from_config(config, attn_implementation="eager")
    names = list(NOTES)

    def batch(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        tunes = [tune(rng) for _ in range(count)]
        read = extractor([sound for sound, _notes in tunes], sampling_rate=RATE, return_tensors="pt")["input_features"]
        rows = [[BEGIN, NO_TIMES, *map(names.index, notes), *[END] * (LONGEST_TUNE + 1 - len(notes))] for _sound, notes in tunes]
        return read, torch.tensor(rows)

    stored = cycle([batch(32) for _ in range(100)])

    def loss() -> torch.Tensor:
        read, rows = next(stored)
        logits = network(input_features=read, decoder_input_ids=rows[:, :-1]).logits[:, 1:]
        return nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 2:].flatten())

    train(network, steps, loss)
    read, rows = batch(500)
    with torch.no_grad():
        found = network(input_features=read, decoder_input_ids=rows[:, :-1]).logits[:, 1:].argmax(-1)
    click.echo(f"tunes named right, of 500 new ones: {int((found == rows[:, 2:]).all(dim=1).sum())}")
    return network


def sound() -> Trace:
    """The Whisper reads a tune of five notes and writes their names."""
    import soundfile
    from transformers import GenerationConfig, WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(chunk_length=SECONDS)
    network = trained_listener(extractor)
    ids = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), END) | {"decoder_start_token_id": BEGIN}
    network.generation_config = GenerationConfig(max_length=16, no_timestamps_token_id=NO_TIMES, is_multilingual=False, **ids)
    vocabulary = {
        name: place
        for place, name in enumerate(
            [*(f"Ġ{note}" for note in NOTES), "<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>"]
        )
    }
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([name for name in vocabulary if name.startswith("<")])
    samples, _notes = tune(np.random.default_rng(3), ["do", "mi", "so", "mi", "re"])
    with TemporaryDirectory() as held:
        folder = Path(held) / "network"
        network.save_pretrained(folder)
        extractor.save_pretrained(folder)
        tokenizer.save(str(folder / "tokenizer.json"))
        named = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "bos_token": "<|startoftranscript|>"}
        (folder / "tokenizer_config.json").write_text(json.dumps(named), encoding="utf-8")
        file = Path(held) / "tune.wav"
        soundfile.write(file, samples[: int(1.8 * RATE)], RATE)
        engine = LocalEngine(Path(held), torch.device("cpu"))
        name = engine.ask(Receive(file.read_bytes(), "tune.wav"))
        trace = engine.ask(Run(RunRequest(folder.name, name)))
    return trimmed(trace, "Whisper for notes")


MADE: Mapping[str, Callable[[], Trace]] = {
    "smollm2": smollm2,
    "alibi": alibi,
    "sinks": sinks,
    "latents": latents,
    "vision": vision,
    "sound": sound,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(MADE)))
def main(names: tuple[str, ...]) -> None:
    """Makes the traces NAMES, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or MADE:
        data = to_bytes(MADE[name]())
        (FOLDER / f"{name}{ENDING}").write_bytes(data)
        click.echo(f"{name}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
