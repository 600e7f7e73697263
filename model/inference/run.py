"""One request on its way through one network: text to ids, ids to logits, a decode or a given target, and the Trace of it all."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import TypeAlias

import torch
from torch import Tensor

from model.checkpoints.loaded import Runner, cache_of, dtype_of, facts, never_recorded
from model.errors import BadSetting, NoStart, TooManyTokens, UnknownHypothesis
from model.huggingface.network import ForeignEncoder, ForeignNetwork, ForeignTranslator, ForeignWriter
from model.inference.batching import Ask, Call, alone
from model.inference.beam_memory import BeamMemory
from model.inference.decoding import Read, Writer, beam, certain, forced, greedy, log_probabilities_of, sampler, write
from model.inference.inputs import Input, Inputs, Reader
from model.inference.interventions import interventions_of, needs_weights, sites
from model.inference.recorder import Recorder, attentions
from model.spec.external import AnySpec
from model.spec.inputs import POSITIONS
from model.spec.request import RunRequest
from model.trace.beam_tree import Node
from model.trace.types import Array, Step, Tokens, Trace
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask
from model.transformer.stacks import CausalLM, EncoderAlone, EncoderDecoder


def run(
    checkpoint: Runner,
    request: RunRequest,
    device: torch.device,
    device_name: str,
    ask: Ask = alone,
    dictated: tuple[int, ...] = (),
    most: int = POSITIONS,
    inputs: Inputs | None = None,
) -> Trace:
    """Runs one request on one network and records it.

    Args:
        ask: answers what the run asks of its network, by itself or together with what other runs ask.
        dictated: what a decode writes instead of what the network would choose: another run's tokens, to be compared with it.
        most: positions of an input that are read, of models that have more.
        inputs: what the request gives, where it was read before; None: it is read here.

    Raises:
        InputError: the text, the ids or a setting cannot be run.
        UnknownSite, UnknownHead: an intervention names something that the network does not have.
    """
    began = time.perf_counter()
    with torch.inference_mode():
        inputs = inputs or Reader(checkpoint.tokenizers, device, most).inputs(request, checkpoint.info.spec)
        interventions = interventions_of(checkpoint.info.spec, request.edits)
        fused = _is_fused(checkpoint, request, inputs, needs_weights(interventions))
        recorder, cache = Recorder(request.keep, fused), cache_of(checkpoint.network)
        run = Run(recorder, interventions, cache, fused)
        job = _Job(checkpoint, request, inputs.to(dtype_of(checkpoint.network)), device, run, cache, recorder, ask, dictated)
        tokens, written = job.result()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    milliseconds = (time.perf_counter() - began) * 1000
    one_row = request.target is None and _asks_for_every_row(checkpoint.info.spec)
    arrays = recorder.arrays(written.lineage, one_row)
    return Trace(
        model=facts(checkpoint, request.model, device_name, milliseconds),
        request=request.to_json(),
        tokens=tokens,
        attention=attentions(arrays, tokens, {name: stack.attention for name, stack in checkpoint.info.spec.stacks.items()}),
        positions=_group(arrays, "positions/"),
        embedded=_group(arrays, "embedded/"),
        hidden=_group(arrays, "hidden/"),
        stages=_group(arrays, "stages/"),
        logits=arrays.get("logits"),
        steps=tuple(written.steps),
        tree=written.tree,
        missing=recorder.missing()
        | ({"attention/decoder.*/rows": ONE_ROW} if one_row else {})
        | never_recorded(checkpoint.network),
    )


LONG = 256
"""Positions of source or target above which weights are not written out, unless scores are asked for, or an intervention changes
scores, masks or weights: docs/benchmarks.md measures what writing them costs."""

LARGEST = 2 << 30
"""Bytes of weights and scores that one run may keep."""

ONE_ROW = "each step computed a row for every source position; the last one, which decides, is kept"


@dataclass(frozen=True)
class Written:
    """What a decode wrote, or was given to write.

    Attributes:
        ids: the prompt and what follows it; empty where they were given.
        steps: one for each token.
        lineage: the batch row in each decoder step; None: one hypothesis was followed.
        tree: of beam search.
    """

    ids: tuple[int, ...] = ()
    steps: Sequence[Step] = ()
    lineage: Sequence[int] | None = None
    tree: tuple[Node, ...] = ()


Result: TypeAlias = tuple[dict[str, Tokens], Written]
"""Token strips by name, and what was written."""


@dataclass(frozen=True)
class _Job:
    """One request on its way through a network."""

    checkpoint: Runner
    request: RunRequest
    inputs: Inputs
    device: torch.device
    run: Run
    cache: KVCache
    recorder: Recorder
    ask: Ask
    dictated: tuple[int, ...]

    @property
    def spec(self) -> AnySpec:
        return self.checkpoint.info.spec

    @property
    def reader(self) -> Reader:
        return Reader(self.checkpoint.tokenizers, self.device)

    def result(self) -> Result:
        """What the network makes of the request."""
        match self.checkpoint.network:
            case EncoderDecoder() | ForeignTranslator() as network:
                return self.translate(network)
            case CausalLM() | ForeignWriter() as network:
                return self.continue_(network)
            case EncoderAlone() | ForeignEncoder() as network:
                return self.read(network)

    def translate(self, network: EncoderDecoder | ForeignTranslator) -> Result:
        """Source and target through an encoder-decoder."""
        source = self._source()
        mask = network.source_mask(source.tensor, self._valid(len(source)))
        memory = self.ask(Call(network, self.run, source.tensor, mask))

        def read(target: Tensor, start: int) -> Tensor:
            beams = Mask(mask.padding.expand(len(target), -1, -1, -1))
            return self.ask(Call(network, self.run, target, beams, memory.expand(len(target), -1, -1), start))

        if self.inputs.target is None:
            found = self._decode(read, self._start(), len(source))
            tokens = {"source": source.tokens, "target": self.reader.tokens("target", found.ids)}
            return tokens, found
        target, steps = self._force(read, self.inputs.target)
        return {"source": source.tokens, "target": target}, Written(steps=steps)

    def continue_(self, network: CausalLM | ForeignWriter) -> Result:
        """A prompt and its continuation through a language model."""
        source = self.inputs.source

        def read(ids: Tensor, start: int) -> Tensor:
            return self.ask(Call(network, self.run, ids, start=start))

        self._refuse_target("a language model continues its source")
        if self.spec.output is None:
            read(source.tensor, 0)
            return {"source": source.tokens}, Written()
        found = self._decode(read, source.tokens.ids)
        grown = self.reader.tokens("source", found.ids[len(source) :])
        return {"source": source.tokens.then(grown)}, found

    def read(self, network: EncoderAlone | ForeignEncoder) -> Result:
        """A source through an encoder that nothing is written from."""
        self._refuse_target("an encoder alone writes nothing")
        source = self._source()
        mask = network.source_mask(source.tensor, self._valid(len(source)))
        self.ask(Call(network, self.run, source.tensor, mask))
        return {"source": source.tokens}, Written()

    def _decode(self, read: Read, prompt: tuple[int, ...], source: int = 0) -> Written:
        decoding, writer = self.request.decoding, self._writer()
        if not decoding.max_length:  # nothing is to be written: the prompt is still read
            return Written(prompt, forced(read, prompt, writer, self.device))
        if self.dictated:
            following = iter(self.dictated)
            return self._write(read, prompt, lambda _: next(following), len(self.dictated))
        if decoding.method == "beam":
            size, longest = decoding.beam_size, decoding.max_length
            memory = BeamMemory(self.spec, size, len(prompt), source, self.request.keep, self.run.fused)
            memory.refuse_too_many(min(longest, writer.limit + 1 - len(prompt)))
            found, tree = beam(read, self.cache.select, self.recorder.prune, prompt, size, longest, writer, self.device)
            if decoding.hypothesis >= len(found):
                raise UnknownHypothesis(asked=decoding.hypothesis, last=len(found) - 1)
            shown = found[decoding.hypothesis]
            return Written(shown.ids, shown.steps, shown.lineage, tree)
        choose = sampler(decoding) if decoding.method == "sample" else greedy
        return self._write(read, prompt, choose, decoding.max_length)

    def _write(self, read: Read, prompt: tuple[int, ...], choose: Callable[[Tensor], int], max_length: int) -> Written:
        steps = list(write(read, prompt, choose, max_length, self._writer(), self.device))
        return Written((*prompt, *(step.chosen.id for step in steps)), steps)

    def _force(self, read: Read, target: Input) -> tuple[Tokens, list[Step]]:
        """A typed target is fed without its end token, which is what the last row should write; ids are fed as they are."""
        if self.spec.output is None:
            read(target.tensor, 0)
            return target.tokens, []
        ids = target.tokens.ids
        fed, last = (ids[:-1], ids[-1]) if target.unread else (ids, None)
        return target.tokens, forced(read, fed, self._writer(), self.device, last)

    def _source(self) -> Input:
        """The source with padding up to `source_pad_to` positions."""
        stack, wanted, source = self.spec.encoder or self.spec.writer, self.request.source_pad_to, self.inputs.source
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

    def _start(self) -> tuple[int, ...]:
        if self.spec.output is None:
            raise BadSetting(name="target", found="left out", allowed="given: this network has no output layer to write with")
        if self.spec.start_id is None:
            raise NoStart(setting="bos_id")
        return (self.spec.start_id, *self.spec.forced)

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


def _is_fused(checkpoint: Runner, request: RunRequest, inputs: Inputs, changed: bool) -> bool:
    """Whether an input is so long that its weights are computed when they are looked at.

    Args:
        changed: whether an intervention needs them written out.

    Raises:
        TooManyTokens: what is to be kept of it would be more than LARGEST.
    """
    longest = max(inputs.longest, request.source_pad_to or 0)
    ours = not isinstance(checkpoint.network, ForeignNetwork)  # the library's attention writes weights out, and scores never
    scores = ours and "scores" in request.keep
    if ours and not scores and not changed:
        return longest > LONG
    heads, bytes_ = sum(sites(checkpoint.info.spec).values()), 8 if scores else 4
    if (needed := bytes_ * heads * longest**2) > LARGEST:
        what, hint = ("scores and weights", "; more fit where no scores are kept") if scores else ("weights", "")
        hint = "; more fit where they are not changed" if changed and ours else hint
        reason = f"{what} of {heads} heads would take {needed / 2**30:.1f} GB{hint}"
        raise TooManyTokens(what="input", found=longest, allowed=isqrt(LARGEST // (bytes_ * heads)), reason=reason)
    return False


def _asks_for_every_row(spec_: AnySpec) -> bool:
    """Whether one target token makes the decoder compute a row for each source position."""
    return spec_.decoder is not None and spec_.decoder.wiring == "memory"


def _group(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
