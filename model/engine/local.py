"""LocalEngine: networks in this process, on the best device that it has."""

import os
import threading
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from model import finding
from model.cells import explain_cell
from model.checkpoints import Checkpoint
from model.engine.base import KEEP, ModelInfo, RunRequest, Settings
from model.engine.describing import describe
from model.engine.uploads import Uploads
from model.errors import BadSetting, HeadlightError, UnknownModel, UnknownTensor
from model.explain import Explanation
from model.inspection import Inspection
from model.running import run
from model.trace import Array, Trace
from model.transformer.build import Network
from model.transformer.stacks import CausalLM, Embedding

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
CACHE_BYTES = 256 * 2**20
WEIGHT_FILES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")

MOST_VARIANTS = 8
"""Networks of uploads, and of files with settings, that are kept loaded: visitors can ask for any number of them."""


def best_device(asked: str = "auto") -> torch.device:
    """The device `asked` for: auto (CUDA, then MPS, then CPU), cpu, cuda or mps.

    Raises:
        BadSetting: this machine has no such device.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked == "auto":
        return torch.device(next(name for name, ok in there.items() if ok))
    if not there.get(asked):
        allowed = " or ".join(["auto", *(name for name, ok in there.items() if ok)])
        raise BadSetting(name="device", found=asked, allowed=f"{allowed} on this machine")
    return torch.device(asked)


class LocalEngine:
    """Runs the checkpoints of one folder. Safe to be used from many threads: one run at a time computes.

    Args:
        folder: holds a folder for each checkpoint.
        device: where networks compute.
        cache_bytes: bytes of traces that are kept for equal requests.
    """

    def __init__(self, folder: Path, device: torch.device, cache_bytes: int = CACHE_BYTES) -> None:
        self._folder = folder
        self._device = device
        self._loaded: dict[str, Checkpoint | HeadlightError] = {}
        self._variants: OrderedDict[tuple[str, Settings], Checkpoint | HeadlightError] = OrderedDict()
        self._uploads = Uploads()
        self._traces: OrderedDict[RunRequest, Trace] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._lock = threading.RLock()

    @classmethod
    def from_environment(cls) -> "LocalEngine":
        """The engine of the app. HEADLIGHT_CHECKPOINTS, HEADLIGHT_DEVICE and HEADLIGHT_THREADS, where set, choose the folder of
        checkpoints, the device and the CPU threads.

        Left alone, half of the cores compute: two threads on a busy two-core host can be ten times slower than one.
        """
        torch.set_num_threads(int(os.environ.get("HEADLIGHT_THREADS") or max(1, (os.cpu_count() or 2) // 2)))
        folder = Path(os.environ.get("HEADLIGHT_CHECKPOINTS") or CHECKPOINTS)
        return cls(folder, best_device(os.environ.get("HEADLIGHT_DEVICE") or "auto"))

    @property
    def device(self) -> str:
        """Where it computes, for people."""
        if self._device.type == "cuda":
            return f"CUDA · {torch.cuda.get_device_name(self._device)}"
        if self._device.type == "mps":
            return "MPS"
        threads = torch.get_num_threads()
        return "CPU · 1 thread" if threads == 1 else f"CPU · {threads} threads"

    def models(self) -> tuple[ModelInfo, ...]:
        """The folder's checkpoints by name, files of other programs too; those that cannot be used as they are say why."""
        return tuple(self.describe(name) for name in self._names())

    def receive(self, data: bytes, name: str) -> str:
        """Keeps a file that somebody sent; see Uploads.keep.

        Raises:
            CheckpointError: it is no checkpoint, or not a sound one.
        """
        with self._lock:
            return self._uploads.keep(data, name)

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """What a model is, given `settings`.

        Raises:
            UnknownModel: there is no such model.
        """
        upload = self._uploads.get(model)
        return describe(model, upload.name if upload else model, self._loaded_with(model, settings))

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The diagnosis of a model's file or folder.

        Raises:
            HeadlightError: in words, why it cannot be read, or which setting is not allowed.
        """
        with self._lock:
            if (upload := self._uploads.get(model)) is not None:
                return upload.inspect(dict(settings))
            self._refuse_unknown(model)
            return finding.inspect(self._folder / model, dict(settings))

    def _names(self) -> list[str]:
        there = self._folder.iterdir() if self._folder.is_dir() else ()
        return sorted(path.name for path in there if path.is_dir() or path.suffix in WEIGHT_FILES)

    def run(self, request: RunRequest) -> Trace:
        """The trace of one run; the same object again for an equal request, while the cache holds it.

        Raises:
            HeadlightError: in words, why it cannot be run.
        """
        with self._lock:
            if (trace := self._traces.get(request)) is not None:
                self._traces.move_to_end(request)
                return trace
            checkpoint = self.checkpoint(request.model, request.settings)
            trace = run(checkpoint, request, self._device, self.device)
            self._remember(request, trace)
            return trace

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """The arithmetic of one attention cell of a run that keeps everything.

        Raises:
            HeadlightError: in words, why it cannot be run, or which site, head, query or key it does not have.
        """
        trace = self.run(replace(request, keep=KEEP))
        return explain_cell(self.checkpoint(request.model, request.settings).network, trace, site, head, query, key)

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name: all positions that a stack has, or parameters by their names in the state dict.

        Raises:
            UnknownModel, UnknownTensor: there is no such thing.
        """
        network = self.checkpoint(model, settings).network
        there = _tables(network) | dict(network.state_dict())
        if unknown := [name for name in names if name not in there]:
            raise UnknownTensor(asked=unknown[0], there=", ".join(there))
        return {name: there[name].detach().cpu().numpy() for name in names}

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """What ids of a strip are called on screen.

        Raises:
            UnknownModel: there is no such model.
            TokenOutOfRange: its vocabulary does not have an id.
        """
        return self.checkpoint(model, settings).tokenizers[strip].tokens(ids, strip).texts

    def checkpoint(self, name: str, settings: Settings = ()) -> Checkpoint:
        """The checkpoint called `name`, loaded once for each set of `settings`.

        Raises:
            UnknownModel: the folder has none of that name.
            CheckpointError: it cannot be used.
            OpenQuestions: it leaves something open that `settings` do not tell.
        """
        loaded = self._loaded_with(name, settings)
        if isinstance(loaded, HeadlightError):
            raise loaded
        return loaded

    def _loaded_with(self, name: str, settings: Settings) -> Checkpoint | HeadlightError:
        """The network, or why there is none. Those of the folder, as they are, stay; of all others the last few."""
        with self._lock:
            if self._uploads.get(name) is None:
                self._refuse_unknown(name)
                if not settings:
                    if name not in self._loaded:
                        self._loaded[name] = self._try_load(name, ())
                    return self._loaded[name]
            found = self._variants.pop((name, settings), None) or self._try_load(name, settings)
            self._variants[name, settings] = found
            while len(self._variants) > MOST_VARIANTS:
                self._variants.popitem(last=False)
            return found

    def _try_load(self, name: str, settings: Settings) -> Checkpoint | HeadlightError:
        upload, told = self._uploads.get(name), dict(settings)
        try:
            return upload.load(told, self._device) if upload else finding.load(self._folder / name, told, self._device)
        except HeadlightError as error:
            return error

    def _refuse_unknown(self, name: str) -> None:
        if name not in (there := self._names()):
            raise UnknownModel(asked=name, there=", ".join(there) or "none")

    def _remember(self, request: RunRequest, trace: Trace) -> None:
        self._traces[request] = trace
        while sum(t.nbytes for t in self._traces.values()) > self._cache_bytes:
            self._traces.popitem(last=False)


def _tables(network: Network) -> dict[str, Tensor]:
    """The positional encodings of each stack that reads ids, all positions that it has: [position, model]."""
    stacks = {"decoder": network} if isinstance(network, CausalLM) else dict(network.named_children())
    embeddings = {name: getattr(stack, "embedding", None) for name, stack in stacks.items()}
    return {f"positions/{name}": e.positions.rows(0, 10**6) for name, e in embeddings.items() if isinstance(e, Embedding)}
