"""Runner: a network with everything a run needs. Our networks are Checkpoints; external ones are run by their own program."""

from typing import Any, TypeAlias

import torch

from model.checkpoints.native import Checkpoint
from model.errors import Words, phrase
from model.huggingface.loaded import Foreign
from model.huggingface.network import AnyForeign, ForeignNetwork
from model.huggingface.recorded.network import RecordedNetwork
from model.spec.network import to_json
from model.transformer.build import Network
from model.transformer.cache import KVCache
from model.transformer.stacks import CausalLM, EmbeddingAlone

AnyNetwork: TypeAlias = Network | AnyForeign | RecordedNetwork
Runner: TypeAlias = Checkpoint | Foreign


def cache_of(network: AnyNetwork) -> KVCache:
    """A key-value cache for one decode."""
    return network.past() if isinstance(network, ForeignNetwork) else KVCache()


ROTATED = phrase("no positions are added: queries and keys are rotated by their positions")


def never_recorded(network: AnyNetwork) -> dict[str, Words]:
    """Values that runs of a network never record, by name, with the reason."""
    if isinstance(network, ForeignNetwork | RecordedNetwork):
        return network.missing()
    stacks = {"decoder": network} if isinstance(network, CausalLM) else dict(network.named_children())
    rotated = [name for name, stack in stacks.items() if isinstance(getattr(stack, "embedding", None), EmbeddingAlone)]
    return {f"positions/{name}": ROTATED for name in rotated}


def dtype_of(network: AnyNetwork) -> torch.dtype:
    """The dtype of a network's weights and arithmetic."""
    return next(iter(network.parameters())).dtype


def facts(checkpoint: Runner, name: str, device: Words, milliseconds: float) -> dict[str, Any]:
    """Trace.model: facts about the network and the machine."""
    info = checkpoint.info
    return {
        "name": name,
        "title": info.title,
        "fingerprint": checkpoint.fingerprint,
        "languages": dict(info.languages),
        "spec": to_json(info.spec),
        "dtype": str(dtype_of(checkpoint.network)).removeprefix("torch."),
        "device": device,
        "milliseconds": round(milliseconds, 3),
        "notes": list(checkpoint.notes),
    }
