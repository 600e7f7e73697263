"""Runs one request: tokenizes its texts, calls the network, decodes or feeds the forced target, and makes the Trace.

In bfloat16 and float16, weights, inputs and all arithmetic use the lower type. A trace stores the recorded numbers as float32,
which holds them exactly; log-probabilities are computed in float32 from the logits. Each such run is compared with a float32 run of
the same tokens (`run_in`).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from model.checkpoints.loader import Runner
from model.errors import MissingSetting, MustNotBeSet, NoStart, Phrase, UnknownHypothesis, Words, phrase
from model.inference.beam_search import BeamMemory, Hypothesis, beam
from model.inference.calls import Ask, Call, Passes, alone
from model.inference.changes import Changes, changes_of
from model.inference.decoding import (
    Choose,
    Draft,
    Read,
    Writer,
    Written,
    certain,
    draft_for,
    forced,
    greedy,
    log_probabilities_of,
    sampler,
    write,
)
from model.inference.inputs import Input, Inputs, Reader, is_fused, needs_weights, only_last_logits, valid_positions
from model.inference.recorded_trace import FROM_FLOAT32, TraceMaker, differences
from model.inference.recorder import Recorder
from model.inference.whole_passes import WholePasses
from model.requests.external import AnySpec
from model.requests.inputs import POSITIONS
from model.requests.request import RunRequest
from model.trace.progress import Report, report_nothing
from model.trace.steps import Step
from model.trace.types import Tokens, Trace
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask
from model.transformer.networks import Encodes, RunsWhole, Translates, Writes


def run(
    checkpoint: Runner,
    request: RunRequest,
    device: torch.device,
    device_name: Words,
    ask: Ask = alone,
    dictated: tuple[int, ...] = (),
    most: int = POSITIONS,
    inputs: Inputs | None = None,
    report: Report = report_nothing,
    earlier: tuple[int, ...] = (),
) -> Trace:
    """Runs one request on one network; its trace, whose arrays have the axes of `AXES` (model/trace/types.py) without [batch].

    Args:
        ask: computes the run's calls of the network: `alone`, or in batches with the calls of other runs.
        dictated: ids that a decode generates instead of its own choice: those of another run, for comparison.
        most: most positions of an input, even if the model has more.
        inputs: the request's inputs if they were tokenized before; None: they are tokenized here.
        report: receives the tokens written so far, after each step of a decode.
        earlier: ids that a run like this one wrote: a decode takes its guesses from them (`Draft`).

    Raises:
        InputError: the text, the ids or a setting cannot be run.
        UnknownSite, UnknownHead: an edit names something that the network does not have.
    """
    # The order matters: edits need the inputs' tokens, the kernel and the recorder need to know what the edits change, and the
    # cache whether the run decodes at all.
    began = time.perf_counter()
    with torch.inference_mode():
        inputs = inputs or Reader.of(checkpoint, device, most).inputs(request, checkpoint.info.spec)
        # How an edit gets a second run, such as the one that a patch takes its values from: the same network, asked the same way.
        traced = partial(run, checkpoint, device=device, device_name=device_name, ask=ask, most=most)
        changes = changes_of(checkpoint, request, inputs, traced)
        # Weights of a long input follow from queries and keys, so they are not written out; of a long prompt one row of logits is.
        fused = is_fused(checkpoint, request, inputs, needs_weights(changes.interventions))
        last_logits = only_last_logits(checkpoint, request, inputs)
        # Where a target is given, or nothing is to be written, one pass reads everything.
        decodes = inputs.target is None and request.decoding.max_length > 0
        recorder, cache = Recorder(request.keep, fused, last_logits), checkpoint.network.new_cache(decodes)
        state = Run(recorder, changes.interventions, cache, fused, last_logits=last_logits)
        # Features are numbers of the network's own type; ids stay as they are.
        inputs = inputs.to(checkpoint.network.dtype)
        maker = TraceMaker(checkpoint, request, device_name, recorder, changes, began, inputs.source)
        draft = draft_for(checkpoint, request, cache, recorder, earlier)
        job = _Job(checkpoint, request, inputs, device, state, cache, recorder, ask, dictated, changes, report, maker, draft)
        tokens, written = job.result()
    if device.type == "cuda":
        # A GPU computes behind Python's back: without waiting, the time in the trace would be that of handing out the work.
        torch.cuda.synchronize(device)
    return maker.trace(tokens, written, maker.milliseconds)


Strips: TypeAlias = Callable[[tuple[int, ...]], dict[str, Tokens]]
"""The strips by name, given the ids that a decode has read or written."""

Reads: TypeAlias = Callable[[Tensor, int], Call]
"""The call that reads ids [row, position] from a position on: its answer is a Read's."""

Result: TypeAlias = tuple[dict[str, Tokens], Written]
"""Token strips by name, and the result of decoding."""


@dataclass(frozen=True)
class _Job:
    """One request with everything that its run needs. One of four methods runs it, by what its network does with the source.

        translate    encode the source once, then read the target: one token after the other, or all of it where it is given
        continue_    read the source, then what is written behind it
        read         encode the source; nothing is written
        record       as the three above, in passes over all tokens, the last of which is recorded

    None of them calls the network: each call is handed to `ask`, which may compute it together with those of other runs.

    Attributes:
        checkpoint, request, inputs, device: what runs, and where.
        run: what the network shows its values to, the changes that are made to them, and the cache.
        cache, recorder: those of `run`.
        ask: computes a call of the network.
        dictated: ids that are written instead of chosen ones; empty: none.
        changes: what the edits of the request change.
        report: is told what is written so far.
        maker: makes the trace.
        draft: guesses what is written.
    """

    checkpoint: Runner
    request: RunRequest
    inputs: Inputs
    device: torch.device
    run: Run
    cache: KVCache
    recorder: Recorder
    ask: Ask
    dictated: tuple[int, ...]
    changes: Changes
    report: Report
    maker: TraceMaker
    draft: Draft

    @property
    def spec(self) -> AnySpec:
        """The spec of the network."""
        return self.checkpoint.info.spec

    @property
    def reader(self) -> Reader:
        """Turns ids into tokens."""
        return Reader(self.checkpoint.tokenizers, self.device)

    def result(self) -> Result:
        """Runs the network that the checkpoint holds."""
        match self.changes.network:
            case Translates() as network:
                return self.translate(network)
            case Writes() as network:
                return self.continue_(network)
            case Encodes() as network:
                return self.read(network)
            case RunsWhole() as network:
                return self.record(network)

    def translate(self, network: Translates) -> Result:
        """Runs an encoder-decoder: encodes the source, then decodes, or feeds the forced target."""
        source = self._source()
        mask = network.source_mask(source.tensor, valid_positions(self.request, source.tokens, self.spec, self.device))
        ids = self.changes.source(source.tensor, mask.padding)
        memory = self.ask(Call(network, self.run, ids, mask))  # once for each source: a decode only reads it

        def reads(target: Tensor, start: int) -> Call:
            beams = Mask(mask.padding.expand(len(target), -1, -1, -1))  # every hypothesis of a beam search reads the same source
            return Call(network, self.run, self.changes.target(target), beams, memory.expand(len(target), -1, -1), start)

        # Without a given target the network writes one; with one it reads it in a single pass, which also predicts each next token.
        if self.inputs.target is None:

            def strips(ids: tuple[int, ...]) -> dict[str, Tokens]:
                return {"source": source.tokens, "target": self.reader.tokens("target", ids)}

            written = self._decode(reads, self._start(), strips, len(source))
            return strips(written.ids), written
        target, steps = self._force(reads, self.inputs.target)
        return {"source": source.tokens, "target": target}, Written(steps=steps)

    def continue_(self, network: Writes) -> Result:
        """Runs a language model: reads the prompt [1, position] and continues it."""
        source = self.inputs.source

        def reads(ids: Tensor, start: int) -> Call:
            return Call(network, self.run, self.changes.target(ids), start=start)

        self._refuse_target(phrase("a language model continues its source"))
        if self.spec.output is None:
            self.ask(reads(source.tensor, 0))
            return {"source": source.tokens}, Written()

        def strips(ids: tuple[int, ...]) -> dict[str, Tokens]:
            return {"source": source.tokens.then(self.reader.tokens("source", ids[len(source) :]))}

        written = self._decode(reads, source.tokens.ids, strips)
        return strips(written.ids), written

    def read(self, network: Encodes) -> Result:
        """Runs an encoder without a decoder; nothing is generated."""
        self._refuse_target(phrase("an encoder alone generates nothing"))
        source = self._source()
        mask = network.source_mask(source.tensor, valid_positions(self.request, source.tokens, self.spec, self.device))
        ids = self.changes.source(source.tensor, mask.padding)
        self.ask(Call(network, self.run, ids, mask))
        return {"source": source.tokens}, Written()

    def record(self, network: RunsWhole) -> Result:
        """Runs a network without a row: decodes or is fed in passes over all tokens, and records one more pass over them."""
        alone = network.kind == "decoder"
        source, target = self.inputs.source if alone else self._source(), self.inputs.target
        valid = valid_positions(self.request, source.tokens, self.spec, self.device)
        # All rows are computed again for each token: such a network keeps its cache to itself, so nothing can be left out.
        passes = WholePasses(network, self.ask, self.run, source.tensor, network.valid(source.tensor, valid))

        def strips(ids: tuple[int, ...]) -> dict[str, Tokens]:
            if alone:
                return {"source": source.tokens.then(self.reader.tokens("source", ids[len(source) :]))}
            return {"source": source.tokens, "target": self.reader.tokens("target", ids)}

        tokens, written = {"source": source.tokens}, Written()
        if target is not None:
            tokens["target"], steps = self._force(passes.reads, target)
            written = Written(steps=steps)
        elif network.kind != "encoder":
            self._refuse_target(phrase("a language model continues its source"))
            written = self._decode(passes.reads, source.tokens.ids if alone else self._start(), strips, 0 if alone else len(source))
            tokens = strips(written.ids)
        else:
            self._refuse_target(phrase("an encoder alone generates nothing"))
        return tokens, replace(written, recording=passes.recorded(tokens, written, self.request))

    def _decode(self, reads: Reads, prompt: tuple[int, ...], strips: Strips, source: int = 0) -> Written:
        """Writes tokens after a prompt, one way or another: none, those of another run, a beam search, or one hypothesis.

        Args:
            reads: makes the call of the network that reads ids from a position on; earlier positions are in the cache.
            prompt: ids that are read before the first token is written: the start token, or a language model's whole source.
            strips: the strips of what is written so far, for whoever watches.
            source: number of positions that the encoder has read; 0: there is no encoder.
        """
        decoding, writer = self.request.decoding, self._writer()
        most = min(decoding.max_length, writer.limit + 1 - len(prompt))  # the last token is written and never read

        def tell(written: Written) -> None:
            self.report(lambda: self.maker.progress(strips, written, most))

        if source:  # the encoder has run: its maps can be shown before the first token
            tell(Written(prompt))
        if not decoding.max_length:  # nothing is to be written: the prompt is still read
            return Written(prompt, forced(self._read(reads), prompt, writer, self.device))
        if self.dictated:  # the float32 run beside a run in lower precision (`run_in`)
            following = iter(self.dictated)
            return self._write(reads, prompt, lambda _: following, len(self.dictated), tell)
        if decoding.method == "beam":
            size, longest = decoding.beam_size, decoding.max_length
            memory = BeamMemory(self.spec, size, len(prompt), source, self.request.keep, self.run.fused)
            memory.refuse_too_many(most)

            def tell_best(best: Hypothesis) -> None:
                tell(Written(best.ids, best.steps, best.lineage))

            # Each step of a search has other rows in its batch; recorder, cache and edits follow by `prune` and `_select`.
            prune, begin, read = self.recorder.prune, self.request.begin, self._read(reads)
            hypotheses, tree = beam(read, self._select, prune, prompt, size, longest, writer, self.device, tell_best, begin)
            if decoding.hypothesis >= len(hypotheses):
                raise UnknownHypothesis(asked=decoding.hypothesis, last=len(hypotheses) - 1)
            best = hypotheses[decoding.hypothesis]
            return Written(best.ids, best.steps, best.lineage, tree)
        choose = sampler(decoding) if decoding.method == "sample" else greedy
        return self._write(reads, prompt, choose, decoding.max_length, tell)

    def _select(self, rows: Tensor) -> None:
        """Keeps the batch rows of the hypotheses that go on, in everything that remembers earlier steps."""
        self.cache.select(rows)
        self.changes.select(rows)

    def _write(
        self, reads: Reads, prompt: tuple[int, ...], choose: Choose, max_length: int, tell: Callable[[Written], None]
    ) -> Written:
        written = Written(prompt)

        def tell_steps(steps: list[Step]) -> None:
            nonlocal written
            # A new value for each step, never a changed one: whoever watches may still read the one before, in another thread.
            ids = (*written.ids, *(step.chosen.id for step in steps))
            tell(written := Written(ids, (*written.steps, *steps), drafted=self.draft.confirmed))

        self.recorder.prompt = len(prompt)  # rows after it are those of guesses, which must look like steps of their own
        # What another run wrote is neither begun anew nor guessed.
        begin, draft = ((), None) if self.dictated else (self.request.begin, self.draft)
        passes = write(prompt, choose, max_length, self._writer(), self.device, begin, draft, tell_steps)

        # Each call names the one that follows it, so that whoever computes need not wait for this thread between two steps.
        if first := Passes(reads, passes).next_call(None):
            self.ask(first)
        return written

    def _read(self, reads: Reads) -> Read:
        return lambda ids, start: self.ask(reads(ids, start))

    def _force(self, reads: Reads, target: Input) -> tuple[Tokens, list[Step]]:
        """Feeds the forced target: a text without its end token, which the last row should predict; ids as given."""
        if self.spec.output is None:
            self.ask(reads(target.tensor, 0))
            return target.tokens, []
        # A typed target ends with the end token, which the last row should predict and which is not read; given ids are all read.
        ids = target.tokens.ids
        fed, last = (ids[:-1], ids[-1]) if target.unread else (ids, None)
        return target.tokens, forced(self._read(reads), fed, self._writer(), self.device, last)

    def _source(self) -> Input:
        return self.reader.padded(self.inputs.source, self.request.source_pad_to, self.spec)

    def _start(self) -> tuple[int, ...]:
        if self.spec.output is None:
            raise MissingSetting(
                name="target",
                needed=phrase("a target to read, because this network has no output layer and generates nothing"),
            )
        if self.spec.start_id is None:
            raise NoStart(setting="bos_id")
        return (self.spec.start_id, *self.spec.forced)

    def _refuse_target(self, reason: Phrase) -> None:
        if self.request.target is not None:
            raise MustNotBeSet(name="target", reason=reason)

    def _writer(self) -> Writer:
        spec = self.spec
        tokenizer = self.checkpoint.tokenizers["source" if spec.encoder is None else "target"]
        normalise = certain if spec.output is not None and spec.output.softmax == "batch" else log_probabilities_of
        last = spec.writer.max_positions
        return Writer(lambda ids: tokenizer.tokens(ids, "").texts, spec.ends, spec.suppressed, last, normalise, spec.opening)


def run_in(
    runner: Runner,
    lower: Runner,
    request: RunRequest,
    device: torch.device,
    device_name: Words,
    ask: Ask = alone,
    most: int = POSITIONS,
    report: Report = report_nothing,
    earlier: tuple[int, ...] = (),
) -> Trace:
    """Runs `lower`, made of `runner` by `lowered`, and adds the differences from a float32 run of the same tokens to the trace.

    A network of another program that was opened in a lower precision is not in memory in float32, too, and not compared.

    Args:
        most: limit of positions for models that have more.
        report: receives the tokens written so far.
        earlier: ids that a run like this one wrote. They are used in float32 alone: the rounding of lower types differs more
            between a pass over several tokens and steps of one.

    Raises:
        HeadlightError: as `run`.
    """
    inputs = Reader.of(runner, device, most).inputs(request, runner.info.spec)
    if lower is runner or not runner.converts:
        return run(lower, request, device, device_name, ask, inputs=inputs, report=report, earlier=earlier)
    # First in the lower type, freely. Then in float32 the same tokens: another choice in the middle would compare two different
    # texts.
    trace = run(lower, request, device, device_name, ask, inputs=inputs, report=report)
    written = tuple(step.chosen.id for step in trace.steps)
    beside = run(runner, replace(request, keep=()), device, device_name, ask, written, inputs=inputs)
    return replace(trace, model={**trace.model, FROM_FLOAT32: differences(trace, beside)})
