"""`python -m tests.changeable` edits every architecture of CHANGEABLE, and tells how far each edit is from hooks of one's own."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from model.checkpoints import loader
from model.huggingface.families import Kind
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignNetwork
from model.inference.run import run
from model.requests.edits import read_edits
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array
from tests import own_hooks
from tests.recorded_folders import SOURCE, TARGET, saved

CHANGEABLE = (
    "albert apertus arcee aria_text biogpt bitnet blenderbot blenderbot-small clip_text_model cohere cohere2 ctrl cwm "
    "data2vec-text deepseek_v2 deepseek_v3 encoder-decoder ernie ernie4_5 esm eurobert exaone4 flex_olmo gemma2 gemma3_text "
    "glm glm4 glm4_moe gpt_bigcode gpt_oss granite granitemoe granitemoeshared helium hunyuan_v1_dense hunyuan_v1_moe jais2 "
    "jetmoe layoutlm lfm2 llama4_text markuplm minimax_m2 ministral ministral3 mixtral mobilebert modernbert "
    "modernbert-decoder moshi nanochat nemotron nomic_bert olmo olmo2 olmo3 olmoe persimmon phi phi3 phimoe plbart qwen3_moe "
    "qwen3_vl_text roberta-prelayernorm seed_oss smollm3 solar_open splinter stablelm starcoder2 umt5 vaultgemma "
    "xlm-roberta-xl "
).split()
"""Architectures without a row in which edits are made."""

SITES = {"encoder": (1, "encoder.0.1.self"), "decoder": (1, "decoder.0.1.self"), "both": (5, "decoder.0.1.cross")}
"""By kind, the how-many-th attention of a call an edit is at, and its name."""


def differences(own: Any, kind: Kind, opened: Foreign) -> Iterator[tuple[str, float]]:
    """Each edit that is not refused, and the largest difference from the same by a function of one's own."""
    number, site = SITES[kind]
    places = opened.network.places if isinstance(opened.network, ForeignNetwork) else None
    assert places is not None, f"{opened.info.title}: {opened.network.why}"  # type: ignore[union-attr]  # a RecordedNetwork
    for text, changing in own_hooks.attention_edits(number, site).items():
        if text.startswith("sharpen") and not places.products:
            continue
        with own_hooks.changed(own, changing):
            wanted = expected(own, kind)
        yield text, _largest(traced(opened, kind, text), wanted)


def traced(opened: Foreign, kind: Kind, text: str) -> Array:
    """Logits of an edited run; of an encoder the states after its last layer."""
    target = TARGET if kind == "both" else None
    request = RunRequest("tiny", SOURCE, target, Decoding(max_length=0), keep=("hidden",), edits=read_edits(text))
    trace = run(opened, request, torch.device("cpu"), "CPU")
    return trace.logits if trace.logits is not None else trace.hidden[list(trace.hidden)[-1]]


def expected(own: nn.Module, kind: Kind) -> torch.Tensor:
    """The same of the library's network, as it is changed now."""
    target = TARGET if kind == "both" else None
    end = own_hooks.layers(own, False)[-1] if kind == "encoder" else None
    return own_hooks.ends(lambda: own_hooks.call(own, SOURCE, target), end)


def _largest(found: Array, wanted: torch.Tensor) -> float:
    return float(np.abs(found - wanted.numpy()).max() / max(1.0, float(wanted.abs().max())))


def main() -> None:
    """Prints one line for each architecture."""
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or CHANGEABLE:
        with TemporaryDirectory() as room:
            own, kind = saved(Path(room), name)
            opened = loader.load(Path(room), {}, torch.device("cpu"))
            assert isinstance(opened, Foreign)
            found = dict(differences(own, kind, opened))
        print(f"{name}: {len(found)} edits, largest difference {max(found.values()):.0e}", flush=True)


if __name__ == "__main__":
    main()
