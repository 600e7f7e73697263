"""Runner: a network ready to run, with all that a run needs beside it. Ours are Checkpoints; others their own program runs."""

from dataclasses import asdict
from typing import Any, TypeAlias

import torch

from model.checkpoints.native import Checkpoint
from model.huggingface.loaded import Foreign
from model.huggingface.network import AnyForeign, ForeignNetwork
from model.transformer.build import Network
from model.transformer.cache import KVCache

AnyNetwork: TypeAlias = Network | AnyForeign
Runner: TypeAlias = Checkpoint | Foreign


def cache_of(network: AnyNetwork) -> KVCache:
    """What remembers keys and values during one decode."""
    return network.past() if isinstance(network, ForeignNetwork) else KVCache()


def never_recorded(network: AnyNetwork) -> dict[str, str]:
    """What no run of a network records, by name, and why."""
    return network.missing() if isinstance(network, ForeignNetwork) else {}


def dtype_of(network: AnyNetwork) -> torch.dtype:
    """The number type that a network computes in: that of its weights."""
    return next(iter(network.parameters())).dtype


def facts(checkpoint: Runner, name: str, device: str, milliseconds: float) -> dict[str, Any]:
    """Trace.model: facts about the network and the machine."""
    info = checkpoint.info
    return {
        "name": name,
        "title": info.title,
        "fingerprint": checkpoint.fingerprint,
        "languages": dict(info.languages),
        "spec": asdict(info.spec),
        "dtype": str(dtype_of(checkpoint.network)).removeprefix("torch."),
        "device": device,
        "milliseconds": round(milliseconds, 3),
        "notes": list(checkpoint.notes),
    }
