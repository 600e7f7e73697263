"""One request on its way through one network: text to ids, ids to logits, a decode or a given target, and the Trace of it all."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from model import spec
from model.checkpoints import Checkpoint
from model.decoding import Read, Writer, beam, forced, greedy, sampler, write
from model.engine.base import RunRequest
from model.errors import BadSetting, TokenOutOfRange, TooManyTokens
from model.interventions import silencer
from model.recording import Recorder, attentions
from model.spec import StackSpec
from model.trace import Array, Step, Tokens, Trace
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask
from model.transformer.stacks import CausalLM, EncoderDecoder


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
        tokens, steps, lineage = job.translate() if isinstance(checkpoint.network, EncoderDecoder) else job.continue_()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    milliseconds = (time.perf_counter() - began) * 1000
    arrays = recorder.arrays(lineage)
    target = "target" if "target" in tokens else "source"
    return Trace(
        model=_facts(checkpoint, request.model, device_name, milliseconds),
        request=request.to_json(),
        tokens=tokens,
        attention=attentions(
            arrays,
            {"encoder": "source", "decoder": target},
            {("encoder", "self"): "source", ("decoder", "self"): target, ("decoder", "cross"): "source"},
        ),
        positions=_group(arrays, "positions/"),
        embedded=_group(arrays, "embedded/"),
        hidden=_group(arrays, "hidden/"),
        stages=_group(arrays, "stages/"),
        logits=arrays.get("logits"),
        steps=tuple(steps),
        missing=recorder.missing(),
    )


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

    def translate(self) -> Result:
        """Source and target through an encoder-decoder."""
        network, spec_ = self.checkpoint.network, self.checkpoint.info.spec
        assert isinstance(network, EncoderDecoder)
        assert spec_.encoder is not None
        source = self._padded(self._strip("source", self.request.source, spec_.encoder))
        ids = torch.tensor([source.ids], device=self.device)
        mask = network.source_mask(ids, self._valid(len(source)))
        memory = network.encode(ids, mask, self.run)

        def read(target: Tensor, start: int) -> Tensor:
            beams = Mask(mask.padding.expand(len(target), -1, -1, -1))
            return network.decode(target, memory.expand(len(target), -1, -1), beams, self.run, start)

        if self.request.target is None:
            target_ids, steps, lineage = self._decode(read, (spec_.start_id,))
        else:
            target_ids, steps, lineage = self._force(read, self.request.target)
        tokens = self._tokens("target", target_ids)
        if isinstance(self.request.target, str):
            tokens = self.checkpoint.tokenizers["target"].encode(self.request.target, "target")
        return {"source": source, "target": tokens}, steps, lineage

    def continue_(self) -> Result:
        """A prompt and its continuation through a language model."""
        network = self.checkpoint.network
        assert isinstance(network, CausalLM)
        source = self._strip("source", self.request.source, self.checkpoint.info.spec.decoder)

        def read(ids: Tensor, start: int) -> Tensor:
            logits: Tensor = network(ids, self.run, start)
            return logits

        if self.request.target is not None:
            raise BadSetting(name="target", found=self.request.target, allowed="left out: a language model continues its source")
        ids, steps, lineage = self._decode(read, source.ids)
        grown = self._tokens("source", ids[len(source) :])
        return {"source": _concatenate(source, grown)}, steps, lineage

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

    def _force(self, read: Read, target: str | tuple[int, ...]) -> tuple[tuple[int, ...], list[Step], None]:
        """A typed target is fed without its end token, which is what the last row should write; ids are fed as they are."""
        strip = self._strip("target", target, self.checkpoint.info.spec.decoder, unread=int(isinstance(target, str)))
        fed, last = (strip.ids[:-1], strip.ids[-1]) if isinstance(target, str) else (strip.ids, None)
        return strip.ids, forced(read, fed, self._writer(), self.device, last), None

    def _strip(self, name: str, given: str | tuple[int, ...], stack: StackSpec, unread: int = 0) -> Tokens:
        """The strip of a text or of ids, which must fit the stack's positions."""
        tokens = self.checkpoint.tokenizers[name].encode(given, name) if isinstance(given, str) else self._tokens(name, given)
        if not tokens.ids:
            raise BadSetting(name=f"{name} ids", found="empty", allowed="at least one id")
        if len(tokens) - unread > stack.max_positions:
            reason = "the model has no more positions" if stack.positions == "learned" else "the limit set in its spec"
            raise TooManyTokens(what=f"{name} text", found=len(tokens), allowed=stack.max_positions + unread, reason=reason)
        return tokens

    def _tokens(self, name: str, ids: tuple[int, ...]) -> Tokens:
        tokenizer = self.checkpoint.tokenizers[name]
        for id_ in ids:
            if not 0 <= id_ < tokenizer.size:
                raise TokenOutOfRange(what=name, found=id_, size=tokenizer.size)
        return tokenizer.tokens(ids, name)

    def _padded(self, source: Tokens) -> Tokens:
        """The source with padding up to `source_pad_to` positions."""
        wanted, stack = self.request.source_pad_to, self.checkpoint.info.spec.encoder
        if wanted is None or stack is None:
            return source
        if not len(source) <= wanted <= stack.max_positions:
            raise BadSetting(
                name="source_pad_to", found=wanted, allowed=f"from {len(source)} (the source's tokens) to {stack.max_positions}"
            )
        return _concatenate(source, self._tokens("source", (self.checkpoint.info.spec.pad_id,) * (wanted - len(source))))

    def _valid(self, size: int) -> Tensor | None:
        valid = self.request.source_valid
        if valid is None:
            return None
        if not 0 <= valid <= size:
            raise BadSetting(name="source_valid", found=valid, allowed=f"from 0 to {size}, the source's tokens")
        return torch.tensor([valid], device=self.device)

    def _writer(self) -> Writer:
        spec_ = self.checkpoint.info.spec
        tokenizer = self.checkpoint.tokenizers["source" if spec_.encoder is None else "target"]
        return Writer(
            lambda id_: tokenizer.tokens((id_,), "").texts[0], spec_.end_id, spec_.suppressed, spec_.decoder.max_positions
        )


def _concatenate(first: Tokens, second: Tokens) -> Tokens:
    return Tokens(
        first.name,
        first.ids + second.ids,
        first.texts + second.texts,
        first.special + second.special,
        first.unknown + second.unknown,
    )


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
    }
