"""A small network of sounds with random weights, beside the library's feature extractor and a tokenizer; sounds to give it."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import nn

from model.trace.types import Array

WORDS = "Ġand Ġso Ġmy Ġfellow Ġamerica ns Ġask Ġnot Ġwhat Ġyour Ġcountry Ġcan Ġdo Ġfor Ġyou Ġthe Ġquick Ġbrown Ġfox Ġover".split()
PIECES = list(dict.fromkeys(word[:end] for word in WORDS for end in range(2, len(word)) if word[:end] not in WORDS))
"""Beginnings of these words, of which a tokenizer makes them."""

FIRST = 256 + len(WORDS) + len(PIECES)
END, START, ENGLISH, GERMAN, TRANSLATE, TRANSCRIBE, NO_TIMES = range(FIRST, FIRST + 7)
SPECIAL = ("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|notimestamps|>")
RATE = 16_000


def tokenizer() -> Tokenizer:
    """A tokenizer as Whisper's: bytes, some words, and what begins a text."""
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(text[:-1], text[-1]) for text in sorted([*PIECES, *WORDS], key=len)]
    made = Tokenizer(models.BPE({text: id_ for id_, text in enumerate([*signs, *WORDS, *PIECES])}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(list(SPECIAL))
    return made


def extractor(seconds: int = 2) -> Any:
    """The library's own feature extractor."""
    from transformers import WhisperFeatureExtractor

    return WhisperFeatureExtractor(chunk_length=seconds)


def saved_listener(folder: Path, seconds: int = 2, several: bool = True, **generation: Any) -> nn.Module:
    """A folder as the library saves a Whisper that reads `seconds` of a sound, its extractor and tokenizer; the network saved.

    Args:
        several: whether it knows several languages.
        generation: changes of its settings of generation; None: left out.
    """
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(7)
    config = WhisperConfig(
        vocab_size=FIRST + len(SPECIAL),
        d_model=32,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=2,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=50 * seconds,
        max_target_positions=40,
        pad_token_id=END,
        bos_token_id=END,
        eos_token_id=END,
        decoder_start_token_id=START,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    made: Any = WhisperForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.15)
    settings = {
        "decoder_start_token_id": START,
        "bos_token_id": END,
        "pad_token_id": END,
        "eos_token_id": END,
        "max_length": 40,
        "alignment_heads": [[1, 2], [2, 0], [2, 3]],
        "no_timestamps_token_id": NO_TIMES,
        "is_multilingual": several,
        "suppress_tokens": [*range(256), *range(256 + len(WORDS), END), *range(START, START + 6)],
        "return_timestamps": False,
        **({"lang_to_id": {"<|en|>": ENGLISH, "<|de|>": GERMAN}} if several else {}),
        **({"forced_decoder_ids": [[1, None], [2, TRANSCRIBE]]} if several else {}),
        **({"task_to_id": {"transcribe": TRANSCRIBE, "translate": TRANSLATE}} if several else {}),
    } | generation
    made.generation_config = GenerationConfig(**{name: value for name, value in settings.items() if value is not None})
    made.save_pretrained(folder)
    extractor(seconds).save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    found: nn.Module = made
    return found


def tones(seconds: float = 1.3, rate: int = RATE, channels: int = 1, seed: int = 0) -> Array:
    """[sample, channel] of float32: tones that come and go, and a little noise."""
    drawn = np.random.default_rng(seed)
    times = np.arange(round(seconds * rate)) / rate
    found = np.zeros((len(times), channels))
    for channel in range(channels):
        for start in np.arange(0, seconds, 0.25):
            tone = np.sin(2 * np.pi * drawn.uniform(150, 3000) * times) * np.exp(-(((times - start - 0.12) / 0.05) ** 2))
            found[:, channel] += drawn.uniform(0.2, 0.5) * tone
    return (found + drawn.normal(0, 0.002, found.shape)).astype(np.float32)


def sound_file(samples: Array, rate: int = RATE, kind: str = "WAV", subtype: str | None = None) -> bytes:
    """The bytes of a sound's file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


def wav(seconds: float = 1.3, seed: int = 0) -> bytes:
    """A WAV file of tones with one channel, at Whisper's rate."""
    return sound_file(tones(seconds, seed=seed))
