"""A known language model beside the transformers library in the same process: opening, feeding, decoding, memory."""

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.recording import ROOT
from benchmarks.timing import Row, in_turns
from model import known_models
from model.checkpoints import loader
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.sharing.system_memory import give_back
from model.trace.types import Trace
from viz.canvas.scenes import attention

os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is imported: it must not use the network

MODEL = "smollm2"
LENGTHS = (12, 100, 500)
HELD = (100, 500)
"""Lengths whose memory is measured: that of fewer tokens is less than a process has in reserve."""

WRITTEN = 50
CPU = torch.device("cpu")
OPENING, DECODING, PICTURE = "opening", f"{WRITTEN} tokens written, everything recorded", "first picture of 100 tokens"


def feeding(length: int) -> str:
    """The case of a fed text."""
    return f"{length} tokens fed"


def memory(length: int) -> str:
    """The case of the memory of a fed text."""
    return f"{length} tokens fed, memory"


def measure(repeats: int, folder: Path | None = None) -> Iterator[Row]:
    """SmolLM2 as a folder, with half of the cores, as the app uses; the baseline of each ratio is what the library alone does.

    Args:
        folder: another folder of a language model; None: SmolLM2, which is fetched where it is missing, in float32.
    """
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    with tempfile.TemporaryDirectory() as room:
        folder = folder or saved(Path(room))
        gc.collect()
        gc.freeze()  # as app.py does: to collect all that is imported takes 280 ms, in whichever turn it falls
        try:
            yield from _measured(repeats, folder)
        finally:
            gc.unfreeze()


def _measured(repeats: int, folder: Path) -> Iterator[Row]:
    yield from _beside("the library opens network and tokenizer", OPENING, partial(opened, folder), lambda: load(folder), repeats)
    library, ours = opened(folder), load(folder)
    for length in LENGTHS:
        ids = text(length, library.config.vocab_size)
        other = f"{length} tokens, the library, with its maps"
        yield from _beside(other, feeding(length), partial(fed, library, ids), partial(recorded, ours, ids), 3 * repeats)
    ids = text(100, library.config.vocab_size)
    yield from _beside(
        "100 tokens once more, the library", PICTURE, partial(fed, library, ids), lambda: drawn(recorded(ours, ids)), repeats
    )
    ids = text(12, library.config.vocab_size)
    other = f"{WRITTEN} tokens written by the library, nothing recorded"
    yield from _beside(other, DECODING, partial(written, library, ids), partial(recorded, ours, ids, WRITTEN), repeats)
    for length in HELD:
        sizes = {name: _taken(folder, name, length) for name in ("fed", "recorded")}
        note = f"{sizes['recorded'] / 1e6:,.0f} MB; the library with its maps {sizes['fed'] / 1e6:,.0f} MB"
        yield Row(memory(length), float("nan"), sizes["recorded"] / max(1, sizes["fed"]), note)


def _beside(other: str, case: str, library: Callable[[], object], ours: Callable[[], object], repeats: int) -> Iterator[Row]:
    rows = in_turns({other: library, case: ours}, repeats)
    yield from (replace(row, note="of the library" if row.ratio else "") for row in rows)


# --- What is compared -----------------------------------------------------------------------------------------------------


def saved(room: Path) -> Path:
    """The model as a folder of safetensors in float32, as the library saves what it reads from the GGUF file."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = next(known_models.fetch(MODEL).glob("*.gguf"))
    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    config = read.config
    del config.quantization_config  # what is saved is dequantized
    plain = type(read)(config)
    plain.load_state_dict(read.state_dict())
    plain.save_pretrained(room)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(room)
    return room


def opened(folder: Path) -> Any:
    """The library's network, with eager attention, and its tokenizer, which is not kept."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    AutoTokenizer.from_pretrained(folder)
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()


def load(folder: Path) -> Any:
    """Our network of a folder."""
    return loader.load(folder, {}, CPU)


def text(length: int, vocab: int) -> tuple[int, ...]:
    """Ids of a text without special tokens."""
    drawn_ids = torch.randint(vocab // 50, vocab, (length,), generator=torch.Generator().manual_seed(length))
    return tuple(drawn_ids.tolist())


def fed(library: Any, ids: tuple[int, ...]) -> Any:
    """The library's forward pass, with its maps."""
    with torch.inference_mode():
        return library(torch.tensor([ids]), output_attentions=True, use_cache=False)


def written(library: Any, ids: tuple[int, ...]) -> Any:
    """What the library generates greedily; no end token ends it."""
    given = torch.tensor([ids])
    library.generation_config.eos_token_id = None
    return library.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=WRITTEN, do_sample=False, pad_token_id=0)


def recorded(ours: Any, ids: tuple[int, ...], most: int = 0) -> Trace:
    """Our run of the same ids, which may write `most` tokens; no end token ends it."""
    spec = replace(ours.info.spec, end_id=None)
    endless = replace(ours, info=replace(ours.info, spec=spec))
    return run(endless, RunRequest(MODEL, ids, decoding=Decoding(max_length=most)), CPU, "cpu")


def drawn(trace: Trace) -> object:
    """What the browser is sent for the overview of all heads."""
    return attention.atlas(trace, next(iter(trace.attention)), 0, 0)


def _taken(folder: Path, name: str, length: int) -> int:
    """Most bytes by which a new process grows while a text is fed, once the network is open and has run."""
    script = f"from benchmarks.known import take; from pathlib import Path; print(take(Path({str(folder)!r}), {name!r}, {length}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def take(folder: Path, name: str, length: int) -> int:
    """The peak of resident memory while a text is fed, less the memory before, in bytes. What is returned is still held. Linux."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    network, feed = (opened(folder), fed) if name == "fed" else (load(folder), recorded)
    vocab = network.config.vocab_size if name == "fed" else network.info.spec.writer.vocab
    feed(network, text(8, vocab))
    give_back()  # else what a process keeps in reserve after opening would hide a part
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from now on
    before = _resident("VmRSS")
    held = feed(network, text(length, vocab))
    taken = _resident("VmHWM") - before
    del held
    return taken


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
