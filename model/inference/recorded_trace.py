"""The trace of a run, made of what its recorder holds: of a finished run, or of one that still decodes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from model.checkpoints.loader import Runner
from model.errors import Words, phrase
from model.inference.changes import Changes
from model.inference.decoding import Written
from model.inference.inputs import Input
from model.inference.recorder import Recorder, attentions
from model.requests.network import to_json
from model.requests.request import RunRequest
from model.trace.progress import Progress
from model.trace.types import CHAT, IMAGE, SOURCE_NOTES, Array, ChatFacts, Tokens, Trace
from model.transformer.networks import RunsWhole

ONE_ROW = phrase("each step computed a row for every source position; the last one, which decides, is kept")

FROM_FLOAT32 = "from_float32"
"""Key in `Trace.model` of the differences of `weights`, `logits` and `probabilities`, each a number or None."""


@dataclass(frozen=True)
class TraceMaker:
    """Makes traces of one run.

    Attributes:
        checkpoint, request, device_name: what runs, and where.
        recorder: holds the tensors that were recorded so far.
        changes: what the edits of the run change.
        began: start of the run, by `time.perf_counter`.
        source: what the network reads.
    """

    checkpoint: Runner
    request: RunRequest
    device_name: Words
    recorder: Recorder
    changes: Changes
    began: float
    source: Input

    def so_far(self, strips_of: Callable[[tuple[int, ...]], Mapping[str, Tokens]], written: Written) -> Callable[[], Trace]:
        """Makes the trace of what is recorded now, whenever it is called, in any thread, while the run goes on.

        Args:
            strips_of: the strips, given the ids that were written.
        """
        # Taken now, while the run waits; the trace is made of it later, and only if somebody wants to see it.
        still, milliseconds = replace(self, recorder=self.recorder.snapshot()), self.milliseconds

        def make() -> Trace:
            with torch.inference_mode():
                return still.trace(strips_of(written.ids), written, milliseconds)

        return make

    def progress(self, strips_of: Callable[[tuple[int, ...]], Mapping[str, Tokens]], written: Written, most: int) -> Progress:
        """How far a decode has come that writes at most `most` tokens.

        Args:
            strips_of: the strips, given the ids that were written.
        """
        chosen = [step.chosen for step in written.steps]
        ids, texts = tuple(token.id for token in chosen), tuple(token.text for token in chosen)
        # Maps of a network that is recorded in one pass at the end cannot be shown before it.
        so_far = None if isinstance(self.checkpoint.network, RunsWhole) else self.so_far(strips_of, written)
        return Progress(ids, texts, most, time.perf_counter() - self.began, so_far=so_far)

    def _facts(self, tokens: Mapping[str, Tokens], written: Written, milliseconds: float) -> dict[str, Any]:
        """Facts about the network, the machine, and what was read."""
        model = facts(self.checkpoint, self.request.model, self.device_name, milliseconds)
        # The notes on the source come last; their number tells which they are.
        model["notes"] += self.changes.notes()
        model |= {"drafted": written.drafted} if written.drafted else {}
        model["notes"] += self.source.notes
        model |= {SOURCE_NOTES: len(self.source.notes)} if self.source.notes else {}
        # A word that the vocabulary lacks is shown with the token that the network read instead: <unk>, or [UNK].
        if any(any(strip.unknown) for strip in tokens.values()):
            model["unknown"] = {name: self._unknown(strip) for name, strip in tokens.items() if any(strip.unknown)}
        if (chat := self.source.chat) is not None:
            # What comes after the chat template's own tokens is the model's answer.
            reply = self.checkpoint.tokenizers["source"].text(written.ids[len(chat.tokens) :])
            model[CHAT] = asdict(ChatFacts(chat.template, chat.text, chat.starts, reply))
        if self.source.sent is not None:
            model[IMAGE] = asdict(self.source.sent)
        return model

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
        # Weights that were not written out are computed from queries and keys, with the network's own factor.
        scale = None if isinstance(network, RunsWhole) else network.scale
        trace = Trace(
            model=self._facts(tokens, written, milliseconds),
            request=self.request.to_json(),
            tokens=self.changes.mark_exchanged_words(tokens),
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


def _with_recording(trace: Trace, recording: Trace) -> Trace:
    """A run of a network without a row, with the attention of its recording, and the strips that only the recording has.

    Features have no texts: their strip is the recording's, which counts positions and not rows, unless these are as many.
    """
    # What was asked (steps, logits, texts) is the run's, what was computed (weights, masks, module names) the recording's.
    read, named = recording.tokens, trace.tokens
    strips = {name: strip for name, strip in named.items() if strip.ids or len(strip) == len(read.get(name, ()))}
    missing = {name: why for name, why in recording.missing.items() if not name.startswith("attention/*/")}
    return replace(
        trace,
        tokens={**read, **strips},
        attention=recording.attention,
        recorded=recording.recorded,
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
    pairs = [(attention.weights, full.attention[site].weights) for site, attention in lower.attention.items()]
    # Weights of a long input are computed when they are read: comparing them would compute all of them twice.
    written_out = bool(pairs) and all(isinstance(array, np.ndarray) for pair in pairs for array in pair)
    largest: dict[str, float | None] = {"weights": None, "logits": None, "probabilities": None}
    if written_out:
        largest["weights"] = float(np.max([_largest(*pair) for pair in pairs]))
    if lower.logits is not None and full.logits is not None:
        largest["logits"] = _largest(lower.logits, full.logits)
        if (lower.model["spec"]["output"] or {}).get("softmax") != "batch":  # else each probability is 1
            rows = zip(lower.logits, full.logits, strict=True)  # one row at a time: a vocabulary is large
            largest["probabilities"] = float(np.max([_largest(_softmax(ours), _softmax(theirs)) for ours, theirs in rows]))
    return {name: value if value is not None and np.isfinite(value) else None for name, value in largest.items()}


def _largest(ours: Array, theirs: Array) -> float:
    with np.errstate(all="ignore"):
        return float(np.abs(ours.astype(np.float64) - theirs).max(initial=0))


def _softmax(logits: Array) -> Array:
    """[vocab], float64."""
    with np.errstate(all="ignore"):  # a run that holds NaN or infinite numbers is compared with them
        # The largest exponent is 0, so nothing overflows.
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
