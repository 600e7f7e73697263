"""LocalEngine: networks in this process, on the best device that it has."""

import os
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import torch

from model.checkpoints import export as exporting
from model.checkpoints import tensors as weighing
from model.checkpoints.loaded import Runner
from model.checkpoints.native import Checkpoint
from model.engine import environment
from model.engine.api import Engine, ModelInfo
from model.engine.checkpoint_store import CheckpointStore, Stamp
from model.engine.lru_cache import LruCache
from model.engine.model_cache import Loaded, ModelCache, Outcome
from model.engine.model_info import describe
from model.engine.scheduling.scheduler import Scheduler
from model.engine.sent_files import WORDS
from model.engine.session import SessionEngine
from model.engine.uploads import Uploads
from model.errors import BadSetting, HeadlightError
from model.inference.cell import explain_cell
from model.inference.inputs import Reader
from model.inference.precision import run_in
from model.inspection.report import Inspection
from model.spec.request import KEEP, Precision, RunRequest, Settings
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
CACHE_BYTES = 64 * 2**20
VARIANT_BYTES = 512 * 2**20


@dataclass(frozen=True)
class VersionedRequest:
    """What traces are cached and shared by: equal requests to networks that were loaded from the same files.

    Attributes:
        request: with the precision that it is run in.
        version: of the model's files.
    """

    request: RunRequest
    version: Stamp | None

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.request.model


class LocalEngine:
    """Runs the checkpoints of one folder. Safe to be used from many threads, whose runs are computed together (workshop.py).

    Args:
        folder: holds a folder for each checkpoint.
        device: where networks compute.
        cache_bytes: bytes of traces that are kept for equal requests.
        variant_bytes: bytes of the networks that are kept of uploads, of files with settings and of snapshots; the newest one stays
            anyway.
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
        workshop: Scheduler | None = None,
        precision: Precision = "float32",
        uploads: Uploads | None = None,
    ) -> None:
        self._shelf = CheckpointStore(folder)
        self._device = device
        self._precision = precision
        self._uploads = uploads or Uploads()
        self._models = ModelCache(self._shelf, self._uploads, device, lambda: self.device, variant_bytes)
        self._traces: LruCache[VersionedRequest, Trace] = LruCache(cache_bytes, attrgetter("nbytes"))
        self.workshop = (workshop or Scheduler()).start()

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
        return environment.device_name(self._device)

    def models(self) -> tuple[ModelInfo, ...]:
        """The folder's checkpoints by name, files of other programs too; those that cannot be used as they are say why."""
        return tuple(self.describe(name) for name in self._shelf.names())

    def receive(self, data: bytes, name: str) -> str:
        """Keeps a file that somebody sent; see Uploads.keep.

        Raises:
            CheckpointError: it is no checkpoint, or not a sound one.
        """
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
        upload, found = self._uploads.get(model), self._models.network(model, settings)
        info = describe(
            model, upload.name if upload else self._shelf.title(model), found.runner if isinstance(found, Loaded) else found
        )
        return info if upload or info.problem else self._shelf.with_training(info)

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The diagnosis of a model's file or folder.

        Raises:
            HeadlightError: in words, why it cannot be read, or which setting is not allowed.
        """
        return self._models.inspection(model, settings)

    def of(self, session: str) -> Engine:
        """This engine as one session sees it: its newest run counts, an older one that is still on its way is given up."""
        return SessionEngine(self, session)

    def run(self, request: RunRequest, session: str = "") -> Trace:
        """The trace of one run; the same object again for an equal request, while the cache holds it.

        Raises:
            HeadlightError: in words, why it cannot be run, or why not now.
        """
        likely = replace(request, precision=request.precision or self._precision)
        known = self._traces.get(VersionedRequest(likely, self._models.version(request.model)))
        return self._traced(request, session)[0] if known is None else known  # a known one waits for no network

    def _traced(self, request: RunRequest, session: str) -> tuple[Trace, Runner]:
        """The trace of a run, and the network that ran. A trace is kept under the version of its own network's files."""
        base = _usable(self._models.network(request.model, request.settings))
        default = self._precision if isinstance(base.runner, Checkpoint) else "float32"
        request = replace(request, precision=request.precision or default)
        lower = _usable(self._models.in_precision(base, request.precision or default))
        asked = VersionedRequest(request, base.key.version)
        if (trace := self._traces.get(asked)) is None:
            most = environment.most_positions()
            trace = self.workshop.do(
                asked, lambda ask: run_in(base.runner, lower.runner, request, self._device, self.device, ask, most), session
            )
            self._traces.keep(asked, trace)
        return trace, lower.runner

    def figures(self) -> dict[str, float]:
        """Requests in the line, runs on their way, and bytes that tensors hold on the device."""
        held = torch.cuda.memory_allocated(self._device) if self._device.type == "cuda" else 0
        return {"waiting": self.workshop.waiting, "running": self.workshop.running, "device_bytes": held}

    def batches(self) -> dict[int, int]:
        """Batches computed, by the number of runs in them."""
        return dict(self.workshop.batches)

    def answers(self) -> bool:
        """Whether its compute thread lives; one that does not is replaced."""
        return self.workshop.alive()

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int, session: str = "") -> Explanation:
        """The arithmetic of one attention cell of a run that keeps everything.

        Raises:
            HeadlightError: in words, why it cannot be run, or which site, head, query or key it does not have.
        """
        trace, runner = self._traced(replace(request, keep=KEEP), session)
        return explain_cell(runner.network, trace, site, head, query, key)

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name, as they are or computed of them; see model/checkpoints/tensors.py.

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
        loaded = _usable(self._models.network(name, settings))
        return _usable(self._models.in_precision(loaded, precision or "float32")).runner


def _usable(found: Outcome) -> Loaded:
    """The network.

    Raises:
        HeadlightError: there is none, and why.
    """
    if isinstance(found, HeadlightError):
        raise found
    return found
