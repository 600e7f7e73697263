"""Runtime: the networks, caches and the scheduler of one process, with which answers are computed."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import torch

from model.checkpoints.loader import Runner, own_precision
from model.engine import environment
from model.engine.api import ModelInfo
from model.engine.charging import Price, charge
from model.engine.model_cache import Loaded, ModelCache, ModelKey, Outcome
from model.engine.model_list import CheckpointStore, ModelList, Stamp, unusable
from model.engine.scheduling.queue import SESSION
from model.engine.scheduling.scheduler import Scheduler
from model.engine.uploads import UPLOAD_PREFIX, Uploads
from model.errors import HeadlightError, TooManyTokens, phrase
from model.inference.calls import Ask
from model.inference.resources import Resources
from model.inference.run import run_in
from model.requests.questions import RunQuestion
from model.requests.request import Precision, RunRequest, Settings
from model.sharing.caches import Budget, LruCache
from model.trace.progress import OnCount, Progress, Report, ignore_count
from model.trace.types import Trace


class Sized(Protocol):
    """A result that a cache can hold."""

    @property
    def nbytes(self) -> int:
        """Its bytes."""


Measured = TypeVar("Measured", bound=Sized)

MOST_DRAFTS = 1024
"""Sessions whose newest text is remembered: what the next run of the session guesses from (model/inference/decoding.py)."""


@dataclass(frozen=True)
class VersionedRequest:
    """Key of cached and shared results: a request and the version of the files its network was loaded from.

    Attributes:
        request: what was asked, with its precision filled in.
        version: version of the model's files.
    """

    request: RunRequest | RunQuestion[Any]
    version: Stamp | None

    @property
    def model(self) -> str:
        """The name of the model."""
        return (self.request if isinstance(self.request, RunRequest) else self.request.request).model


class Runtime:
    """What answers are computed with. Thread-safe: runs of many threads are batched (scheduling/scheduler.py).

    Args:
        folder: the folder of checkpoints.
        device: where networks compute.
        cache_bytes: most bytes of traces, besides the budget; 0: none is cached.
        budget: bounds all caches together.
        scheduler: schedules the runs, not yet started.
        precision: default precision of runs, if the network supports it; None: the one in which a network is opened.
        uploads: store of uploaded files.

    Attributes:
        store: the models that have a file or folder here.
        models: the networks that are open.
        list: what a visitor may choose from.
        most_positions: positions of an input that are read.
    """

    def __init__(
        self,
        folder: Path,
        device: torch.device,
        cache_bytes: float,
        budget: Budget,
        scheduler: Scheduler,
        precision: Precision | None,
        uploads: Uploads,
    ) -> None:
        self.folder, self.store = folder, CheckpointStore(folder)
        self.device, self.device_name = device, environment.device_name(device)
        self.precision, self.most_positions = precision, environment.most_positions()
        self.uploads = uploads
        self.models = ModelCache(self.store, self.uploads, device, budget)
        self.list = ModelList(self.describe, self.models.version, self.models.is_weight_file, self.models.forget_gone)
        # Traces and results are made again where they are dropped, so they share the budget. Neither cache
        # computes: `do` of the scheduler already lets equal requests in flight share one run.
        self._traces: LruCache[VersionedRequest, Trace] = LruCache(cache_bytes, attrgetter("nbytes"), budget=budget, kind="traces")
        self._results: LruCache[VersionedRequest, Sized] = LruCache(math.inf, attrgetter("nbytes"), budget=budget, kind="results")
        # Two small memories: in which precision a model runs where none is asked for, known without its network;
        # and what each session wrote last with each network.
        self._usual: LruCache[tuple[str, Settings, Stamp | None], Precision] = LruCache(math.inf, len, MOST_DRAFTS)
        self._drafts: LruCache[tuple[str, ModelKey], tuple[int, ...]] = LruCache(math.inf, len, MOST_DRAFTS)
        self.scheduler = scheduler.start()

    def version(self, model: str) -> Stamp | None:
        """The version of a model's files."""
        return self.models.version(model)

    def folder_of(self, model: str) -> Path | None:
        """The file or folder of a model; None: it has none here, as an upload."""
        return self.store.path(model) if self.store.holds(model) else None

    def network(self, model: str, settings: Settings = ()) -> Loaded:
        """The network of a model, as it is opened.

        Raises:
            HeadlightError: it cannot be used.
        """
        return usable(self.models.network(model, settings))

    def checkpoint(self, model: str, settings: Settings = (), precision: Precision | None = None) -> Runner:
        """What runs a model, loaded once for each set of `settings` and each `precision`; None: as it is opened.

        Raises:
            UnknownModel: the folder has none of that name.
            CheckpointError: it cannot be used.
            OpenQuestions: `settings` leave a question open.
            BadSetting: the network does not support `precision`.
            NoRoom: the device has not enough memory.
        """
        return usable(self.models.in_precision(self.network(model, settings), precision)).runner

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """Facts about a model, with its `problem` if it cannot be used."""
        upload = self.uploads.get(model) if model.startswith(UPLOAD_PREFIX) else None
        info = self.models.info(model, settings)
        if isinstance(info, HeadlightError):
            return unusable(model, upload.name if upload else self.store.title(model), info)
        return info if upload else self.store.with_training(info)

    def trace(self, request: RunRequest) -> Trace:
        """The trace of a run; a cached one needs no network."""
        # A trace is kept under its full request, precision included. Where none was asked for, the usual one is
        # filled in: so a cached trace is found even if the network itself was dropped from memory.
        version = self.version(request.model)
        usual = self._usual.get((request.model, request.settings, version))
        cached = self._traces.get(VersionedRequest(replace(request, precision=request.precision or usual), version))
        return self.traced(request)[0] if cached is None else cached

    def traced(self, request: RunRequest) -> tuple[Trace, Runner]:
        """The trace of a run and the network that ran, cached under the version of the network's files."""
        # The key has the version of the files that this network was loaded from, not that of the files now: if they
        # are replaced during the run, its trace is not taken for one of the new files.
        base = self.network(request.model, request.settings)
        converts = base.runner.converts
        # The machine's default holds where the network can follow it. One that is bound to its type can still be
        # opened in float32; else it runs as it was opened.
        default = self.precision if converts or self.precision == "float32" else None
        self._usual.keep((request.model, request.settings, base.key.version), usual := default or own_precision(base.runner))
        request = replace(request, precision=request.precision or usual)
        lower = usable(self.models.in_precision(base, request.precision))
        asked = VersionedRequest(request, base.key.version)
        # What is typed on a page and the page's own runs are one visitor here: each guesses from the other's text.
        visitor = SESSION.get().page, base.key
        if (trace := self._traces.get(asked)) is None:
            earlier, most = self._drafts.get(visitor) or (), self.most_positions
            # `run_in` compares the second with the first where they differ. A network that does not convert has no
            # float32 copy in memory to be compared with, so it stands in both places.
            runners = base.runner if converts else lower.runner, lower.runner

            def work(ask: Ask, report: Report) -> Trace:
                return run_in(*runners, request, self.device, self.device_name, ask, most, report, earlier)

            # Several callers of one run all come here with the same object; keeping it twice changes nothing.
            self._traces.keep(asked, trace := self.scheduler.do(asked, work))
        # Without a session nobody knows whose text it is, and it must not be guessed from for somebody else.
        if visitor[0]:
            self._drafts.keep(visitor, tuple(step.chosen.id for step in trace.steps))
        return trace, lower.runner

    def measured(self, asked: VersionedRequest, work: Callable[[Ask, Report], Measured], price: Price) -> Measured:
        """The result of a measurement, which takes its turn among the runs; a cached one where there is one, which costs nothing.

        Raises:
            Refused: the caller of this thread may not have so much computed, or not now.
        """
        if (result := self._results.get(asked)) is None:
            # Only what is really computed costs. The price is taken before the work, so that a caller who may not
            # have it is refused at once.
            charge(price)
            self._results.keep(asked, result := self.scheduler.do(asked, work))
        return cast(Measured, result)

    def resources(self, ask: Ask, on_count: OnCount = ignore_count) -> Resources:
        """What a question about a network is answered with."""
        return Resources(self.device, ask, self.most_positions, environment.batch_bytes(), on_count)

    def device_bytes(self) -> int:
        """Bytes that networks and runs hold on a GPU."""
        return torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else 0

    def check_measured_length(self, trace: Trace) -> None:
        """Lets runs pass in which this server measures what matters.

        Raises:
            TooManyTokens: the run is longer.
        """
        # A run is as long as its longest strip.
        if (longest := max(map(len, trace.tokens.values()))) > (allowed := environment.most_measured()):
            reason = phrase("this server does not measure what matters in longer runs")
            raise TooManyTokens(found=longest, allowed=allowed, reason=reason)


def counting(report: Report) -> OnCount:
    """Reports how much of a measurement is done."""
    began = time.perf_counter()
    # A report takes a function, which makes the progress only where somebody listens.
    return lambda done, of: report(lambda: Progress((), (), of, time.perf_counter() - began, done))


def usable(outcome: Outcome) -> Loaded:
    """The loaded network.

    Raises:
        HeadlightError: that of loading it.
    """
    if isinstance(outcome, HeadlightError):
        raise outcome.with_traceback(None)  # the cached error must not collect the frames of its callers
    return outcome
