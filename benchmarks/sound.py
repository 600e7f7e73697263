"""A sound beside the transformers library in the same process: prepared, fed and recorded; words written; their times."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.timing import Row, in_turns
from model.checkpoints import loader
from model.huggingface.loaded import Foreign
from model.inference import sounds
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace
from viz.metrics import word_times

RATE = 16_000
FED, WRITTEN = 24, 40
"""Tokens that a decoder is fed, and that it writes."""

CPU = torch.device("cpu")
FEEDING, WRITING, TIMES = f"30 s of sound, {FED} tokens fed", f"30 s of sound, {WRITTEN} tokens written", "times of the words"
SIZES: dict[str, int] = {}
"""Settings of the network, where they are not those of the smallest published Whisper, with random weights."""


def measure(repeats: int) -> Iterator[Row]:
    """A random Whisper of the smallest published size, with half of the cores, as the app uses. The library runs fused."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    with tempfile.TemporaryDirectory() as room:
        folder = saved(Path(room))
        library, prepare, ours = opened(folder), extractor(folder), loader.load(folder, {}, CPU)
        assert isinstance(ours, Foreign)
        heard = noise()
        cases = {
            f"{FEEDING}, by the library": partial(fed, library, prepare, heard),
            FEEDING: partial(recorded, ours, sent(heard)),
        }
        yield from (replace(row, note="of the library" if row.ratio else "") for row in in_turns(cases, repeats))
        cases = {
            f"{WRITING}, by the library": partial(written, library, prepare, heard),
            WRITING: partial(recorded, ours, sent(heard), WRITTEN),
        }
        yield from (replace(row, note="of the library" if row.ratio else "") for row in in_turns(cases, repeats))
        trace = recorded(ours, sent(heard))
        cases = {TIMES: lambda: word_times.words(trace, ((1, 0), (2, 1)), trace.spectrogram.shape[1] // 2, 0.02, 7)}  # type: ignore[union-attr,dict-item]
        yield from (replace(row, note=f"of {FED} tokens, by two heads over all positions") for row in in_turns(cases, repeats))


def saved(room: Path) -> Path:
    """A folder as the library saves a network and its extractor."""
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    config = WhisperConfig(**SIZES)
    made = WhisperForConditionalGeneration(config)
    made.generation_config = GenerationConfig(decoder_start_token_id=config.decoder_start_token_id, pad_token_id=0, max_length=400)
    made.save_pretrained(room)
    from transformers import WhisperFeatureExtractor

    WhisperFeatureExtractor(chunk_length=config.max_source_positions // 50).save_pretrained(room)
    return room


def opened(folder: Path) -> Any:
    """The library's network with its fused attention, which returns no maps."""
    from transformers import WhisperForConditionalGeneration

    return WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="sdpa").eval()


def extractor(folder: Path) -> Any:
    """The library's feature extractor of a folder."""
    from transformers import WhisperFeatureExtractor

    return WhisperFeatureExtractor.from_pretrained(folder)


def noise() -> np.ndarray[Any, np.dtype[np.float32]]:
    """[sample] of 30 s."""
    return np.random.default_rng(0).normal(0, 0.1, 30 * RATE).astype(np.float32)


def sent(samples: np.ndarray[Any, np.dtype[np.float32]]) -> str:
    """The name of a sound that is kept as if it had been sent: its file is opened once, before any run."""
    name = f"{sounds.EXAMPLE[:-1]}1"
    sounds._KEPT.keep(name, sounds.Sound(samples, RATE, 1))
    return name


def ids(count: int, vocab: int, start: int) -> list[int]:
    """A start token and others."""
    return [start, *(3 + place % (vocab - 8) for place in range(count - 1))]


def fed(library: Any, prepare: Any, samples: Any) -> Any:
    """The library's pass over a sound that it prepares, and over tokens."""
    config = library.config
    features = prepare(samples, sampling_rate=RATE, return_tensors="pt")["input_features"]
    given = torch.tensor([ids(FED, config.vocab_size, config.decoder_start_token_id)])
    with torch.inference_mode():
        return library(input_features=features, decoder_input_ids=given, use_cache=False)


def written(library: Any, prepare: Any, samples: Any) -> Any:
    """What the library generates greedily of a sound that it prepares; no end token ends it."""
    features = prepare(samples, sampling_rate=RATE, return_tensors="pt")["input_features"]
    library.generation_config.eos_token_id = None
    return library.generate(features, max_new_tokens=WRITTEN, do_sample=False)


def recorded(ours: Foreign, source: str, most: int = 0) -> Trace:
    """Our run of the same sound and tokens, or one that writes `most` tokens; no end token ends it."""
    spec = replace(ours.info.spec, end_id=None, more_ends=())
    endless = replace(ours, info=replace(ours.info, spec=spec))
    target = None if most else tuple(ids(FED, spec.writer.vocab, spec.start_id or 0))
    return run(endless, RunRequest("whisper", source, target, Decoding(max_length=most)), CPU, "cpu")
