"""The trace of a run, made of what its recorder holds: of a finished run, or of one that still decodes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from model.checkpoints.loader import Runner
from model.errors import Words, phrase
from model.inference.edits.edited_run import EditedRun
from model.inference.inputs import Input
from model.inference.recorder import Recorder, attentions
from model.spec.network import to_json
from model.spec.request import RunRequest
from model.trace.beam_tree import Node
from model.trace.progress import Progress
from model.trace.steps import Step
from model.trace.types import CHAT, IMAGE, SOURCE_NOTES, Array, ChatFacts, Tokens, Trace
from model.transformer.networks import RunsWhole

ONE_ROW = phrase("each step computed a row for every source position; the last one, which decides, is kept")

FROM_FLOAT32 = "from_float32"
"""Key in `Trace.model` of the differences of `weights`, `logits` and `probabilities`, each a number or None."""


@dataclass(frozen=True)
class Written:
    """Result of a decode or a forced target.

    Attributes:
        ids: the prompt and the generated tokens; empty for a forced target.
        steps: one for each token, with its candidates.
        lineage: batch row of the shown hypothesis in each decoder step; None: there is one row.
        tree: all hypotheses of a beam search.
        drafted: number of tokens that an earlier text suggested (`Draft`).
        recording: the recorded pass of a network without a row; None: the network handed its attention to the recorder.
    """

    ids: tuple[int, ...] = ()
    steps: Sequence[Step] = ()
    lineage: Sequence[int] | None = None
    tree: tuple[Node, ...] = ()
    drafted: int = 0
    recording: Trace | None = None


@dataclass(frozen=True)
class TraceMaker:
    """Makes traces of one run.

    Attributes:
        checkpoint, request, device_name: what runs, and where.
        recorder: holds the tensors that were recorded so far.
        edited: the edits of the run; None: it has none.
        began: start of the run, by `time.perf_counter`.
        source: what the network reads.
    """

    checkpoint: Runner
    request: RunRequest
    device_name: Words
    recorder: Recorder
    edited: EditedRun | None
    began: float
    source: Input

    def so_far(self, shown: Callable[[tuple[int, ...]], Mapping[str, Tokens]], written: Written) -> Callable[[], Trace]:
        """Makes the trace of what is recorded now, whenever it is called, in any thread, while the run goes on.

        Args:
            shown: the strips, given the ids that were written.
        """
        still, milliseconds = replace(self, recorder=self.recorder.snapshot()), self.milliseconds

        def make() -> Trace:
            with torch.inference_mode():
                return still.trace(shown(written.ids), written, milliseconds)

        return make

    def progress(self, shown: Callable[[tuple[int, ...]], Mapping[str, Tokens]], written: Written, most: int) -> Progress:
        """How far a decode has come that writes at most `most` tokens.

        Args:
            shown: the strips, given the ids that were written.
        """
        chosen = [step.chosen for step in written.steps]
        ids, texts = tuple(each.id for each in chosen), tuple(each.text for each in chosen)
        so_far = None if isinstance(self.checkpoint.network, RunsWhole) else self.so_far(shown, written)
        return Progress(ids, texts, most, time.perf_counter() - self.began, so_far=so_far)

    def _unknown(self, strip: Tokens) -> str:
        """The text of the token that a strip has in place of texts that are not in its vocabulary."""
        return self.checkpoint.tokenizers[strip.name].tokens([strip.ids[strip.unknown.index(True)]], strip.name).texts[0]

    @property
    def milliseconds(self) -> float:
        """Time since the run began."""
        return (time.perf_counter() - self.began) * 1000

    def trace(self, tokens: Mapping[str, Tokens], written: Written, milliseconds: float) -> Trace:
        """The trace of what was recorded so far. Nothing is computed again.

        Args:
            tokens: the strips that were read and written so far.
            milliseconds: how long that took.
        """
        spec = self.checkpoint.info.spec
        # `MemoryLayer` computes a row for each source position when the decoder reads one target token.
        one_row = self.request.target is None and spec.decoder is not None and spec.decoder.wiring == "memory"
        arrays = self.recorder.arrays(written.lineage, one_row)
        network = self.checkpoint.network
        scale = None if isinstance(network, RunsWhole) else network.scale
        found = facts(self.checkpoint, self.request.model, self.device_name, milliseconds)
        found["notes"] += [] if self.edited is None else self.edited.notes()
        found |= {"drafted": written.drafted} if written.drafted else {}
        found["notes"] += self.source.notes
        found |= {SOURCE_NOTES: len(self.source.notes)} if self.source.notes else {}
        if any(any(strip.unknown) for strip in tokens.values()):
            found["unknown"] = {name: self._unknown(strip) for name, strip in tokens.items() if any(strip.unknown)}
        if (chat := self.source.chat) is not None:
            reply = self.checkpoint.tokenizers["source"].text(written.ids[len(chat.tokens) :])
            found[CHAT] = asdict(ChatFacts(chat.template, chat.text, chat.starts, reply))
        if self.source.sent is not None:
            found[IMAGE] = asdict(self.source.sent)
        trace = Trace(
            model=found,
            request=self.request.to_json(),
            tokens=dict(tokens) if self.edited is None else self.edited.shown(tokens),
            attention=attentions(arrays, tokens, {name: stack.attention for name, stack in spec.stacks.items()}, scale),
            positions=_group(arrays, "positions/"),
            embedded=_group(arrays, "embedded/"),
            hidden=_group(arrays, "hidden/"),
            stages=_group(arrays, "stages/"),
            logits=arrays.get("logits"),
            steps=tuple(written.steps),
            tree=written.tree,
            image=self.source.image,
            sound=None if self.source.heard is None else self.source.heard.samples,
            spectrogram=None if self.source.heard is None else self.source.heard.spectrogram,
            missing=self.recorder.missing() | ({"attention/decoder.*/rows": ONE_ROW} if one_row else {}) | network.missing(),
        )
        return trace if written.recording is None else _with_recording(trace, written.recording)


def _with_recording(trace: Trace, found: Trace) -> Trace:
    """A run of a network without a row, with the attention of its recording, and the strips that only the recording has.

    Features have no texts: their strip is the recording's, which counts positions and not rows, unless these are as many.
    """
    own = {name: strip for name, strip in trace.tokens.items() if strip.ids or len(strip) == len(found.tokens.get(name, ()))}
    missing = {name: why for name, why in found.missing.items() if not name.startswith("attention/*/")}
    return replace(
        trace,
        tokens={**found.tokens, **own},
        attention=found.attention,
        recorded=found.recorded,
        missing={**missing, **trace.missing},
    )


def _group(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def differences(lower: Trace, full: Trace) -> dict[str, float | None]:
    """The largest absolute differences between two runs of the same tokens.

    Returns:
        The difference of `weights` over all sites, None if they are computed lazily; of `logits` and of their `probabilities`, None
            if there are none. Each is None, too, if the lower type overflowed.
    """
    pairs = [(own.weights, full.attention[site].weights) for site, own in lower.attention.items()]
    written_out = bool(pairs) and all(isinstance(array, np.ndarray) for pair in pairs for array in pair)
    found: dict[str, float | None] = {"weights": None, "logits": None, "probabilities": None}
    if written_out:
        found["weights"] = float(np.max([_largest(*pair) for pair in pairs]))
    if lower.logits is not None and full.logits is not None:
        found["logits"] = _largest(lower.logits, full.logits)
        if (lower.model["spec"]["output"] or {}).get("softmax") != "batch":  # else each probability is 1
            rows = zip(lower.logits, full.logits, strict=True)  # one row at a time: a vocabulary is large
            found["probabilities"] = float(np.max([_largest(_softmax(ours), _softmax(theirs)) for ours, theirs in rows]))
    return {name: value if value is not None and np.isfinite(value) else None for name, value in found.items()}


def _largest(ours: Array, theirs: Array) -> float:
    with np.errstate(all="ignore"):
        return float(np.abs(ours.astype(np.float64) - theirs).max(initial=0))


def _softmax(logits: Array) -> Array:
    """[vocab], float64."""
    with np.errstate(all="ignore"):  # a run that holds NaN or infinite numbers is compared with them
        exponentials = np.exp(logits.astype(np.float64) - logits.max())
        return np.asarray(exponentials / exponentials.sum())


def facts(checkpoint: Runner, name: str, device: Words, milliseconds: float) -> dict[str, Any]:
    """Trace.model: facts about the network and the machine."""
    info = checkpoint.info
    return {
        "name": name,
        "title": info.title,
        "fingerprint": checkpoint.fingerprint,
        "languages": dict(info.languages),
        "spec": to_json(info.spec),
        "dtype": str(checkpoint.network.dtype).removeprefix("torch."),
        "device": device,
        "milliseconds": round(milliseconds, 3),
        "notes": list(checkpoint.notes),
    }
