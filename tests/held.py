"""An engine that can be made to wait, for tests of what a page does meanwhile."""

import threading
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from model.engine.api import Inspect, Run
from model.engine.local import LocalEngine
from model.engine.scheduling.scheduler import Scheduler
from model.inference import batching
from model.inference.calls import Call
from model.requests.questions import Answer, Question
from tests.patience import HANG_S
from tests.runs import CPU


class HeldEngine(LocalEngine):
    """A real engine that computes nothing while `go` is not set, but `left` more batches; notes what it was asked to run.

    It guesses no tokens, so that each batch of a decode writes one.
    """

    def __init__(self, folder: Path) -> None:
        self.go, self.left, self.asked = threading.Event(), 0, list[object]()
        self.go.set()
        super().__init__(folder, CPU, scheduler=Scheduler(together=self._together))

    def _together(self, group: Sequence[Call]) -> Sequence[Tensor | Exception]:
        if not self.go.is_set() and self.left:
            self.left -= 1
        else:
            assert self.go.wait(HANG_S)
        return batching.together(group)

    def ask(self, question: Question[Answer]) -> Answer:
        if isinstance(question, Run):
            self.asked.append(question.request.source)
            self.runtime._drafts.forget()
        if isinstance(question, Inspect):
            assert self.go.wait(HANG_S)
        return super().ask(question)
