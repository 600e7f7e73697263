"""Whole passes: a network without a row reads all tokens in each step, since its cache is unknown; one more pass is recorded."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from model.inference.calls import Ask, Call
from model.inference.decoding import Written
from model.inference.inputs import LARGEST
from model.requests.request import RunRequest
from model.trace.types import Tokens, Trace
from model.transformer.attention import Run
from model.transformer.networks import RunsWhole

_KEPT = ("qkv", "context")
"""What a request may keep that a recording can hold, too."""


@dataclass
class WholePasses:
    """The passes of one run.

    Attributes:
        network: the network.
        ask: has a pass computed.
        run: receives the logits of the recorded pass.
        source: [1, position] of ids, or [1, row, number] of features.
        valid: [1, position], 0 at padding; None: there is none.
        fed: the ids [position] that the last pass read, where they are not the source's.
    """

    network: RunsWhole
    ask: Ask
    run: Run
    source: Tensor
    valid: Tensor | None
    fed: Tensor | None = None

    def __post_init__(self) -> None:
        """Checks the number of rows of features.

        Raises:
            BadSetting: the network reads another number.
        """
        self.network.check_rows(self.source)

    def reads(self, ids: Tensor, start: int) -> Call:
        """Logits [row, position, vocab] after each position of `ids` [row, position]; all positions are computed again."""
        self.fed, network = ids[0], self.network
        if network.kind == "decoder":
            return self._call(lambda: network.logits(ids))

        # An encoder-decoder reads its source anew in each pass, once for each hypothesis of a beam search.
        source = self.source.expand(len(ids), *self.source.shape[1:])
        valid = None if self.valid is None else self.valid.expand(len(ids), -1)
        return self._call(lambda: network.logits(source, valid, ids))

    def recorded(self, tokens: dict[str, Tokens], written: Written, request: RunRequest) -> Trace:
        """The recording of a pass over everything that was read.

        Raises:
            RunFailed: no attention was recognized in it.
        """
        kind, recordings = self.network.kind, list[Trace]()
        # A language model reads one text; an encoder-decoder reads its source again, and what it wrote.
        source, valid, target = self.source, self.valid, None
        if kind != "encoder":
            # What was read is what was written, without its last token, which no pass read. Where nothing was written, it is what
            # the last pass was fed.
            assert self.fed is not None
            count = len(written.ids) - (1 if request.decoding.max_length else 0)  # the last token written was not read
            fed = torch.tensor(written.ids[:count], device=self.source.device) if written.ids else self.fed
            source, valid, target = (fed[None], None, None) if kind == "decoder" else (source, valid, fed[None])
        # A recording holds no scores, hidden states and stages: what is asked for beyond its own tensors is named as missing.
        keep = [name for name in request.keep if name in _KEPT]

        # Recorded where all networks compute: a call answers with a tensor, so the trace is handed over beside it.
        def record() -> Tensor:
            result, recording = self.network.recorded_pass(source, valid, target, tokens, keep, LARGEST)
            recordings.append(recording)
            return result

        logits = self.ask(self._call(record))
        if kind != "encoder":
            # The logits are those of the recorded pass; an encoder alone has none.
            self.run.see("logits", logits)
        return recordings[0]

    def _call(self, compute: Callable[[], Tensor]) -> Call:
        """The call of a pass, which is computed where all networks are."""
        return Call(self.network, self.run, self.source, computed_by=compute)
