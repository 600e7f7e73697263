"""A network of the transformers library without a row: it is called as a whole, and recorded by what it computes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

import headlight
from model.errors import DoesNotFit, RunFailed, Words, phrase
from model.huggingface.attention import in_one_sentence
from model.huggingface.families import Kind
from model.huggingface.network import WholeNetwork
from model.huggingface.places import encoder_of
from model.huggingface.recorded.inputs import Reads
from model.huggingface.recorded.sites import trace_of
from model.requests.external import ForeignSpec
from model.trace.types import Tokens, Trace

UNCHANGEABLE = phrase("the transformers library runs it as a whole, and only what it computed is recorded")


@dataclass(frozen=True)
class Pass:
    """The input of one forward pass.

    Attributes:
        source: [row, position] of ids, or [row, position, number] of features.
        valid: [row, position] of int, 0 at padding; None: there is none.
        target: [row, position], ids that a decoder reads; None: there is none.
    """

    source: Tensor
    valid: Tensor | None = None
    target: Tensor | None = None


class RecordedNetwork(WholeNetwork):
    """A network without a row.

    Args:
        library: the library's network, with its weights and its own eager attention.
        kind: its stacks.
        reads: its input.
        spec: what is known of it.
        why: why nothing in it can be changed.
    """

    def __init__(self, library: nn.Module, kind: Kind, reads: Reads, spec: ForeignSpec, why: Words = UNCHANGEABLE) -> None:
        self.library, self.kind, self.reads, self.spec, self.why = library, kind, reads, spec, why
        # classes differ in the names of their arguments: what `forward` takes is asked, not assumed
        self._takes = signature(library.forward).parameters
        self._encoder = _path_of_encoder(library) if kind == "both" else ""

    def __call__(self, given: Pass, **options: Any) -> Any:
        """The result of the library's forward pass."""
        arguments: dict[str, Any] = {self.reads.argument: self.reads.arranged(given.source)}
        if given.valid is not None:
            arguments["attention_mask"] = given.valid
        if given.target is not None:
            arguments["decoder_input_ids" if "decoder_input_ids" in self._takes else "input_ids"] = given.target
        if "use_cache" in self._takes:
            arguments["use_cache"] = False
        return self.library(**arguments, **options)

    def recorded(
        self,
        given: Pass,
        source: Sequence[str] | None = None,
        target: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        limit: int = 1 << 30,
    ) -> tuple[Any, headlight.Recording]:
        """The result of a forward pass, and its recording.

        Args:
            source, target: texts of the positions.
            keep, limit: as in `headlight.record`.
        """
        recording = headlight.record(self.library, source, target, keep=keep, limit=limit, program=self.spec.program)
        with recording:
            out = self(given)
        self._name_stacks(recording)
        return out, recording

    def logits(self, source: Tensor, valid: Tensor | None = None, target: Tensor | None = None) -> Tensor:
        """Logits [row, position, vocab] of one pass.

        Raises:
            RunFailed: the library raised an error.
        """
        with in_one_sentence():
            logits: Tensor = self(Pass(source, valid, target)).logits
        return logits

    def recorded_pass(
        self,
        source: Tensor,
        valid: Tensor | None,
        target: Tensor | None,
        strips: dict[str, Tokens],
        keep: Sequence[str],
        limit: int,
    ) -> tuple[Tensor, Trace]:
        """The result of one pass, logits or the encoder's states, and the trace of its attention.

        Raises:
            RunFailed: the library raised an error, or no attention was recognized.
        """
        read = {"source": source, "target": target}
        texts = {name: _texts(strip, read[name]) for name, strip in strips.items()}
        with in_one_sentence():
            out, recording = self.recorded(Pass(source, valid, target), texts["source"], texts.get("target"), keep, limit)
            if not recording.sites:
                raise RunFailed(error=phrase("no attention was recognized in what it computed"))
            # an encoder's first result are its last states; all others have logits
            return out[0] if self.kind == "encoder" else out.logits, trace_of(recording, self.kind)

    def _name_stacks(self, recording: headlight.Recording) -> None:
        """Where cross-attention does not tell the stacks of an encoder-decoder, the modules do.

        Any other network is one stack, which attends to nothing but itself, even where it pools its queries or keys.
        """
        counts: Counter[str] = Counter()
        for site in recording.sites:
            if self.kind != "both":
                site.kind = "self" if site.kind == "cross" else site.kind
                site.stack, site.layer = "program", counts[site.kind]
                counts[site.kind] += 1
            elif site.stack == "program":
                site.stack = "encoder" if f"{site.module}.".startswith(self._encoder) else "decoder"

    def valid(self, source: Tensor, count: Tensor | None) -> Tensor | None:
        """[row, position], 0 at the padding of a source: after the first `count` [1] positions, or where the padding id is.

        None if there is no padding, or nothing that could be.
        """
        if count is None and (self.spec.pad_id is None or source.is_floating_point()):
            return None
        positions = torch.arange(source.shape[1], device=source.device)
        allowed = (positions < count)[None] if count is not None else source.ne(self.spec.pad_id or 0)
        return None if bool(allowed.all()) else allowed.long()

    def check_rows(self, source: Tensor) -> None:
        """Refuses features that are not as many as the network reads, such as too few patches for its image.

        Raises:
            DoesNotFit: they are not.
        """
        # 0 positions mean any number
        if source.shape[1] != (self.reads.positions or source.shape[1]):
            reason = phrase(
                "it has {found:,} rows, and this network reads exactly {rows:,} rows of {width:,} numbers",
                found=source.shape[1],
                rows=self.reads.rows,
                width=self.reads.width,
            )
            raise DoesNotFit(name="source", reason=reason)

    def missing(self) -> dict[str, Words]:
        """The tensors that a trace of it cannot hold, with the reasons."""
        absent = ("attention/*/scores", "attention/*/output", "hidden", "embedded", "stages", "positions")
        return dict.fromkeys(absent, self.why)


def _texts(strip: Tokens, ids: Tensor | None) -> Sequence[str] | None:
    """Texts of the positions that were read; None: features, whose positions have no texts."""
    if ids is None or ids.is_floating_point():
        return None
    return strip.texts[: ids.shape[1]]


def _path_of_encoder(library: Any) -> str:
    """Path of the encoder in an encoder-decoder, with a point at its end."""
    encoder = encoder_of(library)
    return next(f"{name}." for name, module in library.named_modules() if module is encoder)
