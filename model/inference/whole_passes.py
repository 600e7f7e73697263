"""Whole passes: a network without a row reads all tokens in each step, since its cache is unknown; one more pass is recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import RunFailed, phrase
from model.huggingface.failing import in_one_sentence
from model.huggingface.recorded.network import Pass, RecordedNetwork
from model.huggingface.recorded.sites import trace_of
from model.inference.calls import Ask, Call
from model.inference.inputs import LARGEST
from model.inference.recorded_trace import Written
from model.spec.request import RunRequest
from model.trace.types import Tokens, Trace
from model.transformer.attention import Run

_KEPT = {"qkv": "qkv", "context": "context"}
"""Tensors that a recording can keep, by the names of a request."""


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

    network: RecordedNetwork
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
        self.fed = ids[0]
        if self.network.kind == "decoder":
            return self._call(lambda: self.network(Pass(ids)).logits)

        source = self.source.expand(len(ids), *self.source.shape[1:])
        valid = None if self.valid is None else self.valid.expand(len(ids), -1)
        return self._call(lambda: self.network(Pass(source, valid, ids)).logits)

    def recorded(self, tokens: dict[str, Tokens], written: Written, request: RunRequest) -> Trace:
        """The recording of a pass over everything that was read.

        Raises:
            RunFailed: no attention was recognized in it.
        """
        kind, found = self.network.kind, list[Trace]()
        given = Pass(self.source, self.valid)
        if kind != "encoder":
            assert self.fed is not None
            count = len(written.ids) - (1 if request.decoding.max_length else 0)  # the last token written was not read
            fed = torch.tensor(written.ids[:count], device=self.source.device) if written.ids else self.fed
            given = Pass(fed[None]) if kind == "decoder" else Pass(self.source, self.valid, fed[None])
        texts = {name: _read(strip, given.source if name == "source" else given.target) for name, strip in tokens.items()}
        keep = [name for name in request.keep if name in _KEPT]

        def recorded() -> Tensor:
            out, recording = self.network.recorded(given, texts["source"], texts.get("target"), keep, LARGEST)
            if not recording.sites:
                raise RunFailed(error=phrase("no attention was recognized in what it computed"))
            found.append(trace_of(recording, kind))
            result: Tensor = out[0] if kind == "encoder" else out.logits
            return result

        logits = self.ask(self._call(recorded))
        if kind != "encoder":
            self.run.see("logits", logits)
        return found[0]

    def _call(self, compute: Callable[[], Tensor]) -> Call:
        """The call of a pass, which is computed where all networks are.

        Raises:
            RunFailed: the library raised an error.
        """

        def computed() -> Tensor:
            with in_one_sentence():
                return compute()

        return Call(self.network, self.run, self.source, computed_by=computed)


def _read(strip: Tokens, ids: Tensor | None) -> Sequence[str] | None:
    """Texts of the positions that were read; None: features, whose positions have no texts."""
    if ids is None or ids.is_floating_point():
        return None
    return strip.texts[: ids.shape[1]]
