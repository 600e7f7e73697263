"""LocalEngine: networks in this process, on the best device that it has."""

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from model import feature
from model.checkpoints.hub import names
from model.checkpoints.loader import Runner
from model.engine import answers, environment, memory
from model.engine.runtime import Runtime
from model.engine.scheduling.scheduler import Scheduler
from model.engine.sent_files import VOCABULARY_ENDINGS
from model.engine.uploads import Uploads
from model.requests.questions import Answer, ModelQuestion, Question, RunQuestion
from model.requests.request import Precision, Settings
from model.sharing.caches import BUDGET, Budget

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"


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
        self.folder = folder
        self.runtime = Runtime(folder, device, cache_bytes, budget, scheduler or Scheduler(), precision, uploads or Uploads())
        # Features add the answers to their own questions; the engine itself knows none of them.
        self._answers = {**answers.ANSWERS, **feature.answers()}

    @classmethod
    def from_environment(cls, uploads: Uploads | None = None) -> "LocalEngine":
        """The engine of the app. HEADLIGHT_CHECKPOINTS, HEADLIGHT_DEVICE, HEADLIGHT_THREADS, HEADLIGHT_PRECISION,
        HEADLIGHT_MEMORY and HEADLIGHT_HUB, if set, choose the folder of checkpoints, the device, CPU threads, the default
        precision, memory, and what names of the Hub may do.

        Without HEADLIGHT_THREADS, half of the cores compute: two threads on a busy two-core machine can be ten times slower than
        one.

        Raises:
            BadSetting: a variable has a value that is not allowed.
        """
        # Settings are read before anything is loaded, so that a wrong one ends the start with one clear sentence.
        memory.set_budget()
        names.mode()
        torch.set_num_threads(environment.threads() or max(1, (os.cpu_count() or 2) // 2))
        folder = Path(os.environ.get("HEADLIGHT_CHECKPOINTS") or CHECKPOINTS)
        return cls(folder, environment.device(), precision=environment.precision(), uploads=uploads)

    @property
    def scheduler(self) -> Scheduler:
        """What schedules the runs."""
        return self.runtime.scheduler

    def ask(self, question: Question[Answer]) -> Answer:
        """The answer to any question. Runs and results are the same objects again for equal questions, while the caches hold them.

        Raises:
            HeadlightError: what is asked for is not there, cannot be run, or not now.
            TypeError: nobody here answers questions of this class.
        """
        if (answer := self._answers.get(type(question))) is None:
            raise TypeError(f"no such question: {type(question).__name__}")
        return cast(Answer, answer(self.runtime, self._pinned(question)))

    def _pinned(self, question: Question[Any]) -> Question[Any]:
        """The question about a Hub's model with the commit that is in the cache now."""
        store, uploads = self.runtime.store, self.runtime.uploads
        # A name of the Hub may name a branch, which can get a newer commit at any time. From here on the question
        # has the commit, so caches and the trace speak of the same files.
        if isinstance(question, ModelQuestion):
            return replace(question, model=store.pinned(question.model))
        if isinstance(question, RunQuestion):
            if isinstance(source := question.request.source, str) and source.lstrip().startswith(Uploads.SENT):
                uploads.look_for(source)  # another replica may hold the image or the sound that it names
            return replace(question, request=replace(question.request, model=store.pinned(question.request.model)))
        return question

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine, a model or a vocabulary, and returns its name.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
        """
        # A folder may be called `words.json`, too; it is opened as a checkpoint.
        is_vocabulary = path.suffix.lower() in VOCABULARY_ENDINGS and path.is_file()
        return self.runtime.uploads.open(path) if is_vocabulary else self.runtime.store.open(path)

    def checkpoint(self, name: str, settings: Settings = (), precision: Precision | None = None) -> Runner:
        """What runs the model called `name`; see `Runtime.checkpoint`."""
        return self.runtime.checkpoint(name, settings, precision)
