"""LocalEngine: networks in this process, on the best device that it has."""

import math
import os
import time
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from model.attribution.answers import Place, answer
from model.attribution.example import forced_run
from model.attribution.questions import Answer, Question
from model.attribution.results import Result
from model.checkpoints import export as model_export
from model.checkpoints import tensors as model_tensors
from model.checkpoints.loaded import Runner
from model.checkpoints.native import Checkpoint
from model.engine import environment, memory
from model.engine.api import ModelInfo
from model.engine.model_cache import Loaded, ModelCache, ModelKey, Outcome
from model.engine.model_info import unusable
from model.engine.model_list import ModelList
from model.engine.scheduling.queue import SESSION
from model.engine.scheduling.scheduler import Scheduler
from model.engine.sent_files import VOCABULARY_ENDINGS
from model.engine.stores import CheckpointStore, Stamp
from model.engine.uploads import Uploads
from model.errors import BadSetting, HeadlightError, TooManyTokens, Words, phrase
from model.inference.calls import Ask
from model.inference.cell import explain_cell
from model.inference.inputs import Reader
from model.inference.precision import run_in
from model.inspection.report import Inspection
from model.sharing.budget import BUDGET, Budget
from model.sharing.lru_cache import LruCache
from model.spec.request import KEEP, Precision, RunRequest, Settings
from model.trace.cell_arithmetic import Explanation
from model.trace.progress import Progress, Report
from model.trace.types import Array, Trace

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
MOST_DRAFTS = 1024
"""Sessions whose newest text is remembered: what the next run of the session guesses from (model/inference/draft.py)."""


@dataclass(frozen=True)
class VersionedRequest:
    """Key of cached and shared results: a request and the version of the files its network was loaded from.

    Attributes:
        request: what was asked, with its precision filled in.
        version: version of the model's files.
    """

    request: RunRequest | Question[Any]
    version: Stamp | None

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.request.model


class LocalEngine:
    """Runs the checkpoints of one folder. Thread-safe: runs of many threads are batched (scheduling/scheduler.py).

    Args:
        folder: the folder of checkpoints.
        device: where networks compute.
        cache_bytes: most bytes of traces, besides the budget; 0: none is cached.
        budget: bounds all caches together.
        scheduler: schedules the runs, not yet started; None: one with the default limits.
        precision: default precision of runs, if the network supports it.
        uploads: store of uploaded files; None: one for this process alone.
    """

    def __init__(
        self,
        folder: Path,
        device: torch.device,
        cache_bytes: float = math.inf,
        budget: Budget = BUDGET,
        scheduler: Scheduler | None = None,
        precision: Precision = "float32",
        uploads: Uploads | None = None,
    ) -> None:
        self.folder, self._store = folder, CheckpointStore(folder)
        self._device = device
        self._precision, self._most_positions = precision, environment.most_positions()
        self._uploads = uploads or Uploads()
        self._models = ModelCache(self._store, self._uploads, device, budget)
        self._list = ModelList(self.describe, self._models.version, self._models.is_weight_file, self._models.forget_gone)
        self._traces: LruCache[VersionedRequest, Trace] = LruCache(cache_bytes, attrgetter("nbytes"), budget=budget, kind="traces")
        self._results: LruCache[VersionedRequest, Result] = LruCache(math.inf, attrgetter("nbytes"), budget=budget, kind="results")
        self._drafts: LruCache[tuple[str, ModelKey], tuple[int, ...]] = LruCache(math.inf, len, MOST_DRAFTS)
        self.scheduler = (scheduler or Scheduler()).start()

    @classmethod
    def from_environment(cls, uploads: Uploads | None = None) -> "LocalEngine":
        """The engine of the app. HEADLIGHT_CHECKPOINTS, HEADLIGHT_DEVICE, HEADLIGHT_THREADS, HEADLIGHT_PRECISION and
        HEADLIGHT_MEMORY, if set, choose the folder of checkpoints, the device, CPU threads, the default precision and memory.

        The default is half of the cores: two threads on a busy two-core machine can be ten times slower than one.

        Raises:
            BadSetting: a variable has a value that is not allowed.
        """
        memory.set_budget()
        torch.set_num_threads(environment.threads() or max(1, (os.cpu_count() or 2) // 2))
        folder = Path(os.environ.get("HEADLIGHT_CHECKPOINTS") or CHECKPOINTS)
        return cls(folder, environment.device(), precision=environment.precision(), uploads=uploads)

    @property
    def device(self) -> Words:
        """The device as shown on screen."""
        return environment.device_name(self._device)

    def models(self) -> tuple[ModelInfo, ...]:
        """The folder's checkpoints, sorted by name, files of other programs included; unusable ones have a `problem`.

        A file that takes long is listed as one that is still being opened.
        """
        return self._list.infos(self._store.names())

    def receive(self, data: bytes, name: str) -> str:
        """Keeps an uploaded file; see Uploads.keep.

        Raises:
            CheckpointError: it is not a checkpoint, or unsafe or damaged.
        """
        return self._uploads.keep(data, name)

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine, a model or a vocabulary, and returns its name.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
        """
        return self._uploads.open(path) if path.suffix.lower() in VOCABULARY_ENDINGS and path.is_file() else self._store.open(path)

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """Facts about a model, given `settings`.

        Raises:
            UnknownModel: there is no such model.
        """
        upload, found = self._uploads.get(model), self._models.info(model, settings)
        if isinstance(found, HeadlightError):
            return unusable(model, upload.name if upload else self._store.title(model), found)
        return found if upload else self._store.with_training(found)

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The inspection report of a model's file or folder.

        Raises:
            HeadlightError: it cannot be read, or a setting is not allowed.
        """
        return self._models.inspection(model, settings)

    def run(self, request: RunRequest) -> Trace:
        """The trace of one run; the same object again for an equal request, while the cache holds it.

        Raises:
            HeadlightError: it cannot be run, or not now.
        """
        likely = replace(request, precision=request.precision or self._precision)
        known = self._traces.get(VersionedRequest(likely, self._models.version(request.model)))
        return self._traced(request)[0] if known is None else known  # a cached trace needs no network

    def _traced(self, request: RunRequest) -> tuple[Trace, Runner]:
        """The trace of a run and the network that ran, cached under the version of the network's files."""
        base = _usable(self._models.network(request.model, request.settings))
        default = self._precision if isinstance(base.runner, Checkpoint) else "float32"
        request = replace(request, precision=request.precision or default)
        lower = _usable(self._models.in_precision(base, request.precision or default))
        asked = VersionedRequest(request, base.key.version)
        visitor = SESSION.get().page, base.key
        if (trace := self._traces.get(asked)) is None:
            earlier, most, runners = self._drafts.get(visitor) or (), self._most_positions, (base.runner, lower.runner)

            def work(ask: Ask, report: Report) -> Trace:
                return run_in(*runners, request, self._device, self.device, ask, most, report, earlier)

            self._traces.keep(asked, trace := self.scheduler.do(asked, work))
        if visitor[0]:
            self._drafts.keep(visitor, tuple(step.chosen.id for step in trace.steps))
        return trace, lower.runner

    def gauges(self) -> dict[str, float]:
        """Prometheus gauges: requests in the queue, running runs, and bytes of tensors on the device."""
        held = torch.cuda.memory_allocated(self._device) if self._device.type == "cuda" else 0
        return {"waiting": self.scheduler.waiting, "running": self.scheduler.running, "device_bytes": held}

    def batches(self) -> dict[int, int]:
        """Number of batches computed, by the number of runs in a batch."""
        return dict(self.scheduler.batches)

    def is_healthy(self) -> bool:
        """Whether the compute thread is alive; a dead one is replaced."""
        return self.scheduler.alive()

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """The arithmetic of one attention cell of a run that records everything.

        Raises:
            HeadlightError: it cannot be run, or has no such site, head, query or key.
        """
        trace, runner = self._traced(replace(request, keep=KEEP))
        return explain_cell(runner.network, trace, site, head, query, key)

    def attribute(self, question: Question[Answer]) -> Answer:
        """The result of a question about a run; the same object again for an equal question, while the cache holds it.

        Raises:
            CannotMeasure: the network or the target leaves nothing to be measured.
            TooManyTokens: the run is longer than this server measures.
            HeadlightError: it cannot be run, or not now.
        """
        base, most = _usable(self._models.network(question.model, question.request.settings)), self._most_positions
        request, prompt = forced_run(base.runner, question.request, self._device, most)
        trace, runner = self._traced(request)
        if (longest := max(map(len, trace.tokens.values()))) > (allowed := environment.most_measured()):
            reason = phrase("this server measures what matters in no longer runs")
            raise TooManyTokens(found=longest, allowed=allowed, reason=reason)
        about = replace(question.request, precision=trace.request["precision"])
        asked = VersionedRequest(question.about(about), base.key.version)
        if (found := self._results.get(asked)) is None:

            def work(ask: Ask, report: Report) -> Result:
                began = time.perf_counter()

                def on_count(done: int, of: int) -> None:
                    if done:
                        report(lambda: Progress((), (), of, time.perf_counter() - began, done))

                place = Place(self._device, ask, most, environment.batch_bytes(), on_count)
                return answer(question, request, prompt, runner, trace, place)

            found = self.scheduler.do(asked, work)
            self._results.keep(asked, found)
        return found  # type: ignore[return-value]  # the kind of result that the question says

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name, stored or computed; see model/checkpoints/tensors.py.

        Raises:
            UnknownModel, UnknownTensor: there is none of that name.
        """
        network = self.checkpoint(model, settings).network
        return {name: model_tensors.tensor(network, name).detach().cpu().numpy() for name in names}

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """The model as a zip archive of a native checkpoint folder.

        Raises:
            HeadlightError: it cannot be loaded.
            CannotExport: a number is not finite.
        """
        return model_export.zipped(self.checkpoint(model, settings))

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """The texts of token ids of a strip, as shown on screen.

        Raises:
            UnknownModel: there is no such model.
            BadSetting: it has no such strip.
            TokenOutOfRange: an id is not in its vocabulary.
        """
        checkpoint = self.checkpoint(model, settings)
        if strip not in checkpoint.tokenizers:
            raise BadSetting(name="strip", found=strip, allowed=", ".join(checkpoint.tokenizers) or "∅")
        return Reader(checkpoint.tokenizers, self._device).tokens(strip, ids).texts

    def checkpoint(self, name: str, settings: Settings = (), precision: Precision | None = None) -> Runner:
        """The checkpoint called `name`, loaded once for each set of `settings` and each `precision`; None is float32.

        Raises:
            UnknownModel: the folder has none of that name.
            CheckpointError: it cannot be used.
            OpenQuestions: `settings` leave a question open.
            BadSetting: the network does not support `precision`.
            NoRoom: the device has not enough memory.
        """
        loaded = _usable(self._models.network(name, settings))
        return _usable(self._models.in_precision(loaded, precision or "float32")).runner


def _usable(found: Outcome) -> Loaded:
    """The loaded network.

    Raises:
        HeadlightError: the error of loading it.
    """
    if isinstance(found, HeadlightError):
        raise found.with_traceback(None)  # the cached error must not collect the frames of its callers
    return found
