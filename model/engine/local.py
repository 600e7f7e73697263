"""LocalEngine: networks in this process, on the best device that it has."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, cast

import torch

from model.attribution.answers import Place, answer, taken_apart
from model.attribution.circuit_parts import circuit
from model.attribution.circuits import Circuit, CircuitGraph
from model.attribution.costs import Measures, TimeLengths, WithoutCache
from model.attribution.decode_costs import sizes_of, times_of, without_cache
from model.attribution.example import forced_run
from model.attribution.questions import Attribution
from model.attribution.results import Arrays, Result
from model.attribution.score_parts import kept
from model.attribution.scoring import OnCount
from model.attribution.sums import CellWrites, Why, Writes
from model.checkpoints import export as model_export
from model.checkpoints import tensors as model_tensors
from model.checkpoints.hub import names
from model.checkpoints.loader import Runner, own_precision
from model.checkpoints.surveyed import FILE as SURVEY
from model.checkpoints.surveyed import FILM
from model.engine import environment, memory, offers
from model.engine.api import (
    Batches,
    Describe,
    Explain,
    Export,
    Fetch,
    Find,
    Gauges,
    Healthy,
    Inspect,
    Listing,
    ModelInfo,
    Models,
    Offered,
    Receive,
    Run,
    Tensors,
    Texts,
)
from model.engine.model_cache import Loaded, ModelCache, ModelKey, Outcome
from model.engine.model_list import CheckpointStore, ModelList, Stamp, unusable
from model.engine.scheduling.queue import SESSION
from model.engine.scheduling.scheduler import Scheduler
from model.engine.sent_files import VOCABULARY_ENDINGS
from model.engine.uploads import UPLOAD_PREFIX, Uploads
from model.errors import BadSetting, HeadlightError, TooManyTokens, phrase
from model.inference.calls import Ask
from model.inference.cell import explain_cell
from model.inference.inputs import Reader
from model.inference.run import run_in
from model.sharing.caches import BUDGET, Budget, LruCache
from model.spec.questions import Answer, ModelQuestion, Question, RunQuestion
from model.spec.request import KEEP, Precision, RunRequest, Settings
from model.survey.answers import answer as measure_texts
from model.survey.questions import MeasuredTexts, MeasureTexts, StoredSurvey
from model.survey.reading import HeadRead, ReadHead
from model.survey.reading_answers import answer as read_head
from model.trace.progress import Progress, Report
from model.trace.types import Trace

Found = TypeVar("Found", bound=Arrays)

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"

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


class LocalEngine:
    """Runs the checkpoints of one folder. Thread-safe: runs of many threads are batched (scheduling/scheduler.py).

    Args:
        folder: the folder of checkpoints.
        device: where networks compute.
        cache_bytes: most bytes of traces, besides the budget; 0: none is cached.
        budget: bounds all caches together.
        scheduler: schedules the runs, not yet started; None: one with the default limits.
        precision: default precision of runs, if the network supports it; None: the one in which a network is opened.
        uploads: store of uploaded files; None: one for this process alone.
    """

    def __init__(
        self,
        folder: Path,
        device: torch.device,
        cache_bytes: float = math.inf,
        budget: Budget = BUDGET,
        scheduler: Scheduler | None = None,
        precision: Precision | None = None,
        uploads: Uploads | None = None,
    ) -> None:
        self.folder, self._store = folder, CheckpointStore(folder)
        self._device, self._device_name = device, environment.device_name(device)
        self._precision, self._most_positions = precision, environment.most_positions()
        self._uploads = uploads or Uploads()
        self._models = ModelCache(self._store, self._uploads, device, budget)
        self._list = ModelList(self._describe, self._models.version, self._models.is_weight_file, self._models.forget_gone)
        self._traces: LruCache[VersionedRequest, Trace] = LruCache(cache_bytes, attrgetter("nbytes"), budget=budget, kind="traces")
        self._results: LruCache[VersionedRequest, Arrays] = LruCache(math.inf, attrgetter("nbytes"), budget=budget, kind="results")
        self._usual: LruCache[tuple[str, Settings, Stamp | None], Precision] = LruCache(math.inf, len, MOST_DRAFTS)
        self._drafts: LruCache[tuple[str, ModelKey], tuple[int, ...]] = LruCache(math.inf, len, MOST_DRAFTS)
        self.scheduler = (scheduler or Scheduler()).start()

    @classmethod
    def from_environment(cls, uploads: Uploads | None = None) -> "LocalEngine":
        """The engine of the app. HEADLIGHT_CHECKPOINTS, HEADLIGHT_DEVICE, HEADLIGHT_THREADS, HEADLIGHT_PRECISION,
        HEADLIGHT_MEMORY and HEADLIGHT_HUB, if set, choose the folder of checkpoints, the device, CPU threads, the default
        precision, memory, and what names of the Hub may do.

        The default is half of the cores: two threads on a busy two-core machine can be ten times slower than one.

        Raises:
            BadSetting: a variable has a value that is not allowed.
        """
        memory.set_budget()
        names.mode()
        torch.set_num_threads(environment.threads() or max(1, (os.cpu_count() or 2) // 2))
        folder = Path(os.environ.get("HEADLIGHT_CHECKPOINTS") or CHECKPOINTS)
        return cls(folder, environment.device(), precision=environment.precision(), uploads=uploads)

    def ask(self, question: Question[Answer]) -> Answer:
        """The answer to any question. Runs and results are the same objects again for equal questions, while the caches hold them.

        Raises:
            HeadlightError: what is asked for is not there, cannot be run, or not now.
        """
        pinned: Question[Any] = question  # about a Hub's model with the commit that is in the cache now
        if isinstance(question, ModelQuestion):
            pinned = replace(question, model=self._store.pinned(question.model))
        if isinstance(question, RunQuestion):
            if isinstance(source := question.request.source, str) and source.lstrip().startswith(Uploads.SENT):
                self._uploads.look_for(source)  # another replica may hold the image or the sound that it names
            pinned = replace(question, request=replace(question.request, model=self._store.pinned(question.request.model)))
        return cast(Answer, self._answer(pinned))

    def _answer(self, question: Question[Any]) -> Any:
        match question:
            case Models():  # files of other programs included; one that takes long is listed as still being opened
                return Listing(self._device_name, self._list.infos(self._store.names()))
            case Offered():
                return offers.offered()
            case Find(text):
                return offers.find(text, self._store.holds)
            case Fetch(what):
                return offers.fetch(what)
            case Receive(data, name):
                return self._uploads.keep(data, name)
            case Describe(model, settings):
                return self._describe(model, settings)
            case Inspect(model, settings):
                return self._models.inspection(model, settings)
            case Run(request):
                version = self._models.version(request.model)
                usual = self._usual.get((request.model, request.settings, version))
                known = self._traces.get(VersionedRequest(replace(request, precision=request.precision or usual), version))
                return self._traced(request)[0] if known is None else known  # a cached trace needs no network
            case Explain(request, site, head, query, key):
                trace, runner = self._traced(replace(request, keep=KEEP))
                return explain_cell(runner.network, trace, site, head, query, key)
            case Why(request) | Writes(request) | CellWrites(request):
                trace, runner = kept(self._traced, request)
                return taken_apart(question, runner, trace)
            case Circuit():
                return self._circuit(question)
            case Measures(model, settings):
                return sizes_of(self.checkpoint(model, settings).network)
            case TimeLengths(model, settings):
                own = self.checkpoint(model, settings).network
                return self.scheduler.do(question, lambda ask, report: times_of(own, self._device, ask))
            case WithoutCache(request):
                traced, at = self._traced(request), VersionedRequest(question, self._models.version(request.model))
                return self._measured(at, lambda ask, report: without_cache(*traced, self._device, ask, _counting(report)))
            case Attribution():
                return self._attribute(question)
            case StoredSurvey(model):
                place = self._store.path(model) / (FILM if question.film else SURVEY) if self._store.holds(model) else Path()
                return place.read_bytes() if place.is_file() else b""
            case MeasureTexts() | ReadHead():
                return self._over_texts(question)
            case Tensors(model, settings):
                network = self.checkpoint(model, settings).network
                return {name: model_tensors.tensor(network, name).detach().cpu().numpy() for name in question.names}
            case Export(model, settings):
                return model_export.zipped(self.checkpoint(model, settings))
            case Texts(model, settings):
                tokenizers = self.checkpoint(model, settings).tokenizers
                if question.strip not in tokenizers:
                    raise BadSetting(name="strip", found=question.strip, allowed=", ".join(tokenizers) or "∅")
                return Reader(tokenizers, self._device).tokens(question.strip, question.ids).texts
            case Healthy():  # a dead compute thread is replaced
                return self.scheduler.alive()
            case Gauges():
                held = torch.cuda.memory_allocated(self._device) if self._device.type == "cuda" else 0
                return {"waiting": self.scheduler.waiting, "running": self.scheduler.running, "device_bytes": held}
            case Batches():
                return dict(self.scheduler.batches)
        raise TypeError(f"no such question: {type(question).__name__}")

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine, a model or a vocabulary, and returns its name.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
        """
        return self._uploads.open(path) if path.suffix.lower() in VOCABULARY_ENDINGS and path.is_file() else self._store.open(path)

    def _describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        upload = self._uploads.get(model) if model.startswith(UPLOAD_PREFIX) else None
        found = self._models.info(model, settings)
        if isinstance(found, HeadlightError):
            return unusable(model, upload.name if upload else self._store.title(model), found)
        return found if upload else self._store.with_training(found)

    def _traced(self, request: RunRequest) -> tuple[Trace, Runner]:
        """The trace of a run and the network that ran, cached under the version of the network's files."""
        base = _usable(self._models.network(request.model, request.settings))
        converts = base.runner.converts
        default = self._precision if converts or self._precision == "float32" else None
        self._usual.keep((request.model, request.settings, base.key.version), usual := default or own_precision(base.runner))
        request = replace(request, precision=request.precision or usual)
        lower = _usable(self._models.in_precision(base, request.precision))
        asked = VersionedRequest(request, base.key.version)
        visitor = SESSION.get().page, base.key
        if (trace := self._traces.get(asked)) is None:
            earlier, most = self._drafts.get(visitor) or (), self._most_positions
            runners = base.runner if converts else lower.runner, lower.runner

            def work(ask: Ask, report: Report) -> Trace:
                return run_in(*runners, request, self._device, self._device_name, ask, most, report, earlier)

            self._traces.keep(asked, trace := self.scheduler.do(asked, work))
        if visitor[0]:
            self._drafts.keep(visitor, tuple(step.chosen.id for step in trace.steps))
        return trace, lower.runner

    def _attribute(self, question: Attribution[Any]) -> Result:
        """The result of a question about what something in a run was for."""
        base, most = _usable(self._models.network(question.request.model, question.request.settings)), self._most_positions
        request, prompt = forced_run(base.runner, question.request, self._device, most)
        trace, runner = self._traced(request)
        _check_length(trace)
        about = replace(question.request, precision=trace.request["precision"])
        asked = VersionedRequest(question.about(about), base.key.version)

        def work(ask: Ask, report: Report) -> Result:
            place = Place(self._device, ask, most, environment.batch_bytes(), _counting(report))
            return answer(question, request, prompt, runner, trace, place)

        return self._measured(asked, work)

    def _circuit(self, question: Circuit) -> CircuitGraph:
        """What each head of a run used."""
        trace, runner = kept(self._traced, question.request)
        _check_length(trace)
        version = _usable(self._models.network(question.request.model, question.request.settings)).key.version
        asked = VersionedRequest(replace(question, request=RunRequest.from_json(trace.request)), version)
        return self._measured(asked, lambda ask, report: circuit(runner.network, trace, _counting(report), question.row))

    def _measured(self, asked: VersionedRequest, work: Callable[[Ask, Report], Found]) -> Found:
        """The result of a measurement, which takes its turn among the runs; a cached one where there is one."""
        if (found := self._results.get(asked)) is None:
            self._results.keep(asked, found := self.scheduler.do(asked, work))
        return cast(Found, found)

    def _over_texts(self, question: MeasureTexts | ReadHead) -> MeasuredTexts | HeadRead:
        """The answer about some texts: a batch of a survey, or of the reading of one head."""
        base = _usable(self._models.network(question.model, question.settings))

        def work(ask: Ask, report: Report) -> MeasuredTexts | HeadRead:
            place = Place(self._device, ask, self._most_positions, on_count=_counting(report))
            if isinstance(question, ReadHead):
                return read_head(question, base.runner, place)
            return measure_texts(question, base.runner, place)

        return cast(MeasuredTexts | HeadRead, self.scheduler.do(question, work))

    def checkpoint(self, name: str, settings: Settings = (), precision: Precision | None = None) -> Runner:
        """The checkpoint called `name`, loaded once for each set of `settings` and each `precision`; None: as it is opened.

        Raises:
            UnknownModel: the folder has none of that name.
            CheckpointError: it cannot be used.
            OpenQuestions: `settings` leave a question open.
            BadSetting: the network does not support `precision`.
            NoRoom: the device has not enough memory.
        """
        loaded = _usable(self._models.network(name, settings))
        return _usable(self._models.in_precision(loaded, precision)).runner


def _counting(report: Report) -> OnCount:
    """Reports how much of a measurement is done."""
    began = time.perf_counter()
    return lambda done, of: report(lambda: Progress((), (), of, time.perf_counter() - began, done))


def _check_length(trace: Trace) -> None:
    """Raises TooManyTokens for a run in which this server does not measure what matters."""
    if (longest := max(map(len, trace.tokens.values()))) > (allowed := environment.most_measured()):
        reason = phrase("this server does not measure what matters in longer runs")
        raise TooManyTokens(found=longest, allowed=allowed, reason=reason)


def _usable(found: Outcome) -> Loaded:
    """The loaded network. Raises the error of loading it."""
    if isinstance(found, HeadlightError):
        raise found.with_traceback(None)  # the cached error must not collect the frames of its callers
    return found
