"""LocalEngine: networks in this process, on the best device that it has."""

import os
import threading
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

import torch

from model import exporting, finding, weighing
from model.batching import is_out_of_memory, release
from model.cells import explain_cell
from model.checkpoints import Checkpoint
from model.engine import environment
from model.engine.base import KEEP, Engine, ModelInfo, Precision, RunRequest, Settings
from model.engine.describing import describe
from model.engine.files import WORDS, names_words
from model.engine.kept import Kept
from model.engine.shelf import Shelf
from model.engine.sitting import Sitting
from model.engine.uploads import SENT_WEIGHTS, Uploads
from model.engine.workshop import Workshop
from model.errors import BadSetting, HeadlightError, NoRoom
from model.explain import Explanation
from model.inputs import Reader
from model.inspection import Inspection
from model.precision import lowered, run_in
from model.runner import Runner
from model.trace import Array, Trace

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
CACHE_BYTES = 64 * 2**20
VARIANT_BYTES = 512 * 2**20
MOST_VARIANTS = 64
"""Networks of uploads, of files with settings and of snapshots that are kept loaded: visitors can ask for any number of them."""


class LocalEngine:
    """Runs the checkpoints of one folder. Safe to be used from many threads, whose runs are computed together (workshop.py).

    Args:
        folder: holds a folder for each checkpoint.
        device: where networks compute.
        cache_bytes: bytes of traces that are kept for equal requests.
        variant_bytes: bytes of the networks that are kept of uploads and of files with settings; the last one stays anyway.
        workshop: where runs are computed, not yet started; None: one with the usual limits.
        precision: the number type of runs that ask for none, where the network can be computed in it.
        uploads: where files are kept that somebody sends; None: in this process, for it alone.
    """

    def __init__(
        self,
        folder: Path,
        device: torch.device,
        cache_bytes: int = CACHE_BYTES,
        variant_bytes: int = VARIANT_BYTES,
        workshop: Workshop | None = None,
        precision: Precision = "float32",
        uploads: Uploads | None = None,
    ) -> None:
        self._shelf = Shelf(folder)
        self._device = device
        self._precision = precision
        self._loaded: dict[str, Runner | HeadlightError] = {}
        self._variants: OrderedDict[tuple[str, Settings, Precision], Runner | HeadlightError] = OrderedDict()
        self._inspections: OrderedDict[tuple[str, Settings], Inspection] = OrderedDict()
        self._uploads = uploads or Uploads()
        self._traces = Kept(cache_bytes)
        self._variant_bytes = variant_bytes
        self._lock = threading.RLock()
        self.workshop = (workshop or Workshop()).start()

    @classmethod
    def from_environment(cls, uploads: Uploads | None = None) -> "LocalEngine":
        """The engine of the app. HEADLIGHT_CHECKPOINTS, HEADLIGHT_DEVICE, HEADLIGHT_THREADS and HEADLIGHT_PRECISION, where set,
        choose the folder of checkpoints, the device, the CPU threads and the number type of runs that ask for none.

        Left alone, half of the cores compute: two threads on a busy two-core host can be ten times slower than one.

        Raises:
            BadSetting: a variable holds something else than is allowed.
        """
        torch.set_num_threads(environment.threads() or max(1, (os.cpu_count() or 2) // 2))
        folder = Path(os.environ.get("HEADLIGHT_CHECKPOINTS") or CHECKPOINTS)
        return cls(folder, environment.device(), precision=environment.precision(), uploads=uploads)

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
        return tuple(self.describe(name) for name in self._shelf.names())

    def receive(self, data: bytes, name: str) -> str:
        """Keeps a file that somebody sent; see Uploads.keep.

        Raises:
            CheckpointError: it is no checkpoint, or not a sound one.
        """
        with self._lock:
            return self._uploads.keep(data, name)

    def open_path(self, path: Path) -> str:
        """Offers a file or folder of this machine to whoever knows the name that it gets: a model, or a vocabulary.

        Raises:
            NotACheckpoint: it is not there, or closed to this program.
        """
        return self._uploads.open(path) if path.suffix.lower() in WORDS and path.is_file() else self._shelf.open(path)

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """What a model is, given `settings`.

        Raises:
            UnknownModel: there is no such model.
        """
        with self._lock:
            upload = self._uploads.get(model)
        info = describe(model, upload.name if upload else self._shelf.title(model), self._loaded_with(model, settings))
        return info if upload or info.problem else self._shelf.with_training(info)

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The diagnosis of a model's file or folder.

        Raises:
            HeadlightError: in words, why it cannot be read, or which setting is not allowed.
        """
        with self._lock:
            self._notice(model)
            key = (model, tuple(sorted(settings)))
            if key not in self._inspections:
                self._inspections[key] = self._inspect(model, dict(settings))
            self._inspections.move_to_end(key)
            if len(self._inspections) > MOST_VARIANTS:
                self._inspections.popitem(last=False)
            return self._inspections[key]

    def _inspect(self, model: str, settings: dict[str, str]) -> Inspection:
        if (upload := self._uploads.get(model)) is not None:
            return upload.inspect(settings)
        try:
            return finding.inspect(self._shelf.path(model), settings, self._uploads.texts_of)
        except HeadlightError as error:
            raise self._shelf.without_path(error) from error

    def of(self, session: str) -> Engine:
        """This engine as one session sees it: its newest run counts, an older one that is still on its way is given up."""
        return Sitting(self, session)

    def run(self, request: RunRequest, session: str = "") -> Trace:
        """The trace of one run; the same object again for an equal request, while the cache holds it.

        Raises:
            HeadlightError: in words, why it cannot be run, or why not now.
        """
        found, request = self.checkpoint(request.model, request.settings), self._in_a_precision(request)
        if (trace := self._traces.get(request)) is None:
            lower = self.checkpoint(request.model, request.settings, request.precision)
            trace = self.workshop.do(request, lambda ask: run_in(found, lower, request, self._device, self.device, ask), session)
            self._traces.keep(request, trace)
        return trace

    def _in_a_precision(self, request: RunRequest) -> RunRequest:
        """The request with the number type that it is run in: what it asks for, or the engine's where the network can do that."""
        can = isinstance(self.checkpoint(request.model, request.settings), Checkpoint)
        return replace(request, precision=request.precision or (self._precision if can else "float32"))

    def figures(self) -> dict[str, float]:
        """Requests in the line, runs on their way, and bytes that tensors hold on the device."""
        held = torch.cuda.memory_allocated(self._device) if self._device.type == "cuda" else 0
        return {"waiting": self.workshop.waiting, "running": self.workshop.running, "device_bytes": held}

    def batches(self) -> dict[int, int]:
        """Batches computed, by the number of runs in them."""
        return dict(self.workshop.batches)

    def answers(self) -> bool:
        """It is here."""
        return True

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int, session: str = "") -> Explanation:
        """The arithmetic of one attention cell of a run that keeps everything.

        Raises:
            HeadlightError: in words, why it cannot be run, or which site, head, query or key it does not have.
        """
        request = self._in_a_precision(replace(request, keep=KEEP))
        network = self.checkpoint(request.model, request.settings, request.precision).network
        return explain_cell(network, self.run(request, session), site, head, query, key)

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name, as they are or computed of them; see model/weighing.py.

        Raises:
            UnknownModel, UnknownTensor: there is no such thing.
        """
        network = self.checkpoint(model, settings).network
        return {name: weighing.tensor(network, name).detach().cpu().numpy() for name in names}

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """The model as a folder of our own, zipped.

        Raises:
            HeadlightError: it cannot be loaded.
            CannotExport: a number is not finite.
        """
        return exporting.zipped(self.checkpoint(model, settings))

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """What ids of a strip are called on screen.

        Raises:
            UnknownModel: there is no such model.
            BadSetting: it has no such strip.
            TokenOutOfRange: its vocabulary does not have an id.
        """
        checkpoint = self.checkpoint(model, settings)
        if strip not in checkpoint.tokenizers:
            raise BadSetting(name="strip", found=strip, allowed=" or ".join(checkpoint.tokenizers) or "left out")
        return Reader(checkpoint.tokenizers, self._device).tokens(strip, ids).texts

    def checkpoint(self, name: str, settings: Settings = (), precision: Precision | None = None) -> Runner:
        """The checkpoint called `name`, loaded once for each set of `settings` and each `precision`; None is float32.

        Raises:
            UnknownModel: the folder has none of that name.
            CheckpointError: it cannot be used.
            OpenQuestions: it leaves something open that `settings` do not tell.
            BadSetting: its network cannot be computed in `precision`.
            NoRoom: the device has no room for it.
        """
        loaded = self._loaded_with(name, settings, precision or "float32")
        if isinstance(loaded, HeadlightError):
            raise loaded
        return loaded

    def _loaded_with(self, name: str, settings: Settings, precision: Precision = "float32") -> Runner | HeadlightError:
        """The network, or why there is none. Those of the folder, as they are, stay; of all others, snapshots too, the last few."""
        with self._lock:
            self._notice(name)
            if self._shelf.holds(name) and not settings and precision == "float32":
                if name not in self._loaded:
                    self._loaded[name] = self._try_load(name, ())
                return self._loaded[name]
            key = name, settings, precision
            found = self._variants.pop(key, None) or self._try_load(name, settings, precision)
            sent = name.startswith(SENT_WEIGHTS) or names_words(settings)
            if isinstance(found, NoRoom) or (isinstance(found, HeadlightError) and sent):
                return found  # there may be room the next time, and the vocabulary that was missing
            self._variants[key] = found
            while len(self._variants) > MOST_VARIANTS or (
                len(self._variants) > 1 and sum(map(_nbytes, self._variants.values())) > self._variant_bytes
            ):
                self._variants.popitem(last=False)
            return found

    def _try_load(self, name: str, settings: Settings, precision: Precision = "float32") -> Runner | HeadlightError:
        upload, told, device, texts_of = self._uploads.get(name), dict(settings), self._device, self._uploads.texts_of
        try:
            if precision != "float32":
                return lowered(self.checkpoint(name, settings), precision)
            return upload.load(told, device) if upload else finding.load(self._shelf.path(name), told, device, texts_of)
        except HeadlightError as error:
            return self._shelf.without_path(error)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        release()
        return NoRoom(device=self.device, model=name)

    def _notice(self, name: str) -> None:
        """Forgets everything about a checkpoint whose files are others than before.

        Raises:
            UnknownModel: there is none of that name.
        """
        if self._uploads.get(name) is None and self._shelf.changed(name):
            self._loaded.pop(name, None)
            for key in [key for key in self._variants if key[0] == name]:
                del self._variants[key]
            for inspected in [key for key in self._inspections if key[0] == name]:
                del self._inspections[inspected]
            self._traces.forget(lambda request: request.model == name)


def _nbytes(loaded: Runner | HeadlightError) -> int:
    """What a network takes in memory."""
    if isinstance(loaded, HeadlightError):
        return 0
    return sum(tensor.nbytes for tensor in (*loaded.network.parameters(), *loaded.network.buffers()))
