"""One request on its way through one network: text to ids, ids to logits, a decode or a given target, and the Trace of it all."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from model import spec
from model.checkpoints import Checkpoint
from model.decoding import Read, Writer, beam, certain, forced, greedy, log_probabilities_of, sampler, write
from model.engine.base import Given, RunRequest
from model.errors import BadSetting
from model.inputs import Input, Reader
from model.interventions import silencer
from model.recording import Recorder, attentions
from model.spec import ModelSpec
from model.trace import Array, Site, Step, Tokens, Trace
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask
from model.transformer.stacks import CausalLM, EncoderAlone, EncoderDecoder


def run(checkpoint: Checkpoint, request: RunRequest, device: torch.device, device_name: str) -> Trace:
    """Runs one request on one network and records it.

    Raises:
        InputError: the text, the ids or a setting cannot be run.
        UnknownSite, UnknownHead: an intervention names something that the network does not have.
    """
    recorder = Recorder(request.keep)
    began = time.perf_counter()
    with torch.inference_mode():
        cache = KVCache()
        job = _Job(checkpoint, request, device, Run(recorder, silencer(checkpoint.info.spec, request.interventions), cache), cache)
        tokens, steps, lineage = job.result()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    milliseconds = (time.perf_counter() - began) * 1000
    one_row = request.target is None and _asks_for_every_row(checkpoint.info.spec)
    arrays = recorder.arrays(lineage, one_row)
    return Trace(
        model=_facts(checkpoint, request.model, device_name, milliseconds),
        request=request.to_json(),
        tokens=tokens,
        attention=attentions(arrays, lambda site, queries: _strips(site, queries, tokens)),
        positions=_group(arrays, "positions/"),
        embedded=_group(arrays, "embedded/"),
        hidden=_group(arrays, "hidden/"),
        stages=_group(arrays, "stages/"),
        logits=arrays.get("logits"),
        steps=tuple(steps),
        missing=recorder.missing() | ({"attention/decoder.*/rows": ONE_ROW} if one_row else {}),
    )


ONE_ROW = "each step computed a row for every source position; the last one, which decides, is kept"

Result: TypeAlias = tuple[dict[str, Tokens], Sequence[Step], Sequence[int] | None]
"""Token strips by name, the steps, and beam search's lineage (None: one hypothesis)."""


@dataclass(frozen=True)
class _Job:
    """One request on its way through a network."""

    checkpoint: Checkpoint
    request: RunRequest
    device: torch.device
    run: Run
    cache: KVCache

    @property
    def spec(self) -> ModelSpec:
        return self.checkpoint.info.spec

    @property
    def reader(self) -> Reader:
        return Reader(self.checkpoint.tokenizers, self.device)

    def result(self) -> Result:
        """What the network makes of the request."""
        match self.checkpoint.network:
            case EncoderDecoder() as network:
                return self.translate(network)
            case CausalLM() as network:
                return self.continue_(network)
            case EncoderAlone() as network:
                return self.read(network)

    def translate(self, network: EncoderDecoder) -> Result:
        """Source and target through an encoder-decoder."""
        source = self._source()
        mask = network.source_mask(source.tensor, self._valid(len(source)))
        memory = network.encode(source.tensor, mask, self.run)

        def read(target: Tensor, start: int) -> Tensor:
            beams = Mask(mask.padding.expand(len(target), -1, -1, -1))
            return network.decode(target, memory.expand(len(target), -1, -1), beams, self.run, start)

        if self.request.target is None:
            ids, steps, lineage = self._decode(read, self._start())
            return {"source": source.tokens, "target": self.reader.tokens("target", ids)}, steps, lineage
        target, steps = self._force(read, self.request.target)
        return {"source": source.tokens, "target": target}, steps, None

    def continue_(self, network: CausalLM) -> Result:
        """A prompt and its continuation through a language model."""
        source = self.reader.read("source", self.request.source, self.spec.writer)

        def read(ids: Tensor, start: int) -> Tensor:
            logits: Tensor = network(ids, self.run, start)
            return logits

        self._refuse_target("a language model continues its source")
        if self.spec.output is None:
            read(source.tensor, 0)
            return {"source": source.tokens}, [], None
        ids, steps, lineage = self._decode(read, source.tokens.ids)
        grown = self.reader.tokens("source", ids[len(source) :])
        return {"source": source.tokens.then(grown)}, steps, lineage

    def read(self, network: EncoderAlone) -> Result:
        """A source through an encoder that nothing is written from."""
        self._refuse_target("an encoder alone writes nothing")
        source = self._source()
        network.encode(source.tensor, network.source_mask(source.tensor, self._valid(len(source))), self.run)
        return {"source": source.tokens}, [], None

    def _decode(self, read: Read, prompt: tuple[int, ...]) -> tuple[tuple[int, ...], Sequence[Step], Sequence[int] | None]:
        decoding, writer = self.request.decoding, self._writer()
        if not decoding.max_length:  # nothing is to be written: the prompt is still read
            return prompt, forced(read, prompt, writer, self.device), None
        if decoding.method == "beam":
            hypotheses = beam(read, self.cache.select, prompt, decoding.beam_size, decoding.max_length, writer, self.device)
            return hypotheses[0].ids, hypotheses[0].steps, hypotheses[0].lineage
        choose = sampler(decoding) if decoding.method == "sample" else greedy
        steps = list(write(read, prompt, choose, decoding.max_length, writer, self.device))
        return (*prompt, *(step.chosen.id for step in steps)), steps, None

    def _force(self, read: Read, given: Given) -> tuple[Tokens, list[Step]]:
        """A typed target is fed without its end token, which is what the last row should write; ids are fed as they are."""
        typed = isinstance(given, str) and self.checkpoint.tokenizers["target"].ends
        target = self.reader.read("target", given, self.spec.writer, unread=int(typed))
        if self.spec.output is None:
            read(target.tensor, 0)
            return target.tokens, []
        ids = target.tokens.ids
        fed, last = (ids[:-1], ids[-1]) if typed else (ids, None)
        return target.tokens, forced(read, fed, self._writer(), self.device, last)

    def _source(self) -> Input:
        """The source with padding up to `source_pad_to` positions."""
        stack, wanted = self.spec.encoder or self.spec.writer, self.request.source_pad_to
        source = self.reader.read("source", self.request.source, stack)
        if wanted is None:
            return source
        pad_id = self.spec.pad_id if self.spec.source_pad_id is None else self.spec.source_pad_id
        if pad_id is None:
            raise BadSetting(name="source_pad_to", found=wanted, allowed="left out: this model has no padding id, or none was told")
        if not len(source) <= wanted <= stack.max_positions:
            raise BadSetting(
                name="source_pad_to", found=wanted, allowed=f"from {len(source)} (the source's tokens) to {stack.max_positions}"
            )
        padding = self.reader.tokens("source", (pad_id,) * (wanted - len(source)))
        padded = source.tokens.then(padding)
        return Input(padded, torch.tensor([padded.ids], device=self.device))

    def _valid(self, size: int) -> Tensor | None:
        valid = self.request.source_valid
        if valid is None:
            return None
        if not 0 <= valid <= size:
            raise BadSetting(name="source_valid", found=valid, allowed=f"from 0 to {size}, the source's tokens")
        return torch.tensor([valid], device=self.device)

    def _start(self) -> tuple[int]:
        if self.spec.output is None:
            raise BadSetting(name="target", found="left out", allowed="given: this network has no output layer to write with")
        if self.spec.start_id is None:
            raise BadSetting(
                name="bos_id", found="not told", allowed="told to decode (--set bos_id=ID), or the target given (--target-ids)"
            )
        return (self.spec.start_id,)

    def _refuse_target(self, reason: str) -> None:
        if self.request.target is not None:
            raise BadSetting(name="target", found=self.request.target, allowed=f"left out: {reason}")

    def _writer(self) -> Writer:
        tokenizer = self.checkpoint.tokenizers["source" if self.spec.encoder is None else "target"]
        normalise = certain if self.spec.output is not None and self.spec.output.softmax == "batch" else log_probabilities_of
        return Writer(
            lambda id_: tokenizer.tokens((id_,), "").texts[0],
            self.spec.end_id,
            self.spec.suppressed,
            self.spec.writer.max_positions,
            normalise,
        )


def _asks_for_every_row(spec_: ModelSpec) -> bool:
    """Whether one target token makes the decoder compute a row for each source position."""
    return spec_.decoder is not None and spec_.decoder.wiring == "memory"


def _strips(site: Site, queries: int, tokens: Mapping[str, Tokens]) -> tuple[str, str]:
    """The strips of a site's queries and keys. More queries than target tokens are rows for the source's positions."""
    target = "target" if "target" in tokens else "source"
    own = "source" if site.stack == "encoder" or site.kind == "memory" or queries > len(tokens[target]) else target
    return own, own if site.kind == "self" else "source"


def _group(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _facts(checkpoint: Checkpoint, name: str, device: str, milliseconds: float) -> dict[str, Any]:
    """Trace.model: facts about the network and the machine."""
    info = checkpoint.info
    return {
        "name": name,
        "title": info.title,
        "fingerprint": checkpoint.fingerprint,
        "languages": dict(info.languages),
        "spec": spec.to_json(info.spec),
        "dtype": "float32",
        "device": device,
        "milliseconds": round(milliseconds, 3),
        "notes": list(checkpoint.notes),
    }
