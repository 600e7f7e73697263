"""Example: one run to be measured, ready to be fed again: what its stacks read, and the target tokens whose probability counts.

`ForcedLogits` and `ForcedStates` are what the network says of these tokens, once the target was fed to copies of the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from model.checkpoints.loader import Runner
from model.errors import CannotMeasure, TooManyTokens, phrase
from model.features.what_if.edits.edited_run import EditedRun
from model.inference.inputs import Reader, valid_positions
from model.inference.run import run
from model.requests.edits import Allow
from model.requests.request import Decoding, RunRequest
from model.trace.types import Tokens, Trace
from model.transformer.attention import Intervention
from model.transformer.networks import RunsWhole


@dataclass(frozen=True, eq=False)
class Example:
    """One run that can be fed again.

    Attributes:
        runner: the network and what it needs.
        device: where it computes.
        source: [1, key], ids or features of an encoder; None: a language model.
        valid: [1], how many of them are no padding; None: those that are not the pad id.
        fed: [1, query], ids that the decoder reads.
        following: [token], the ids whose probability counts.
        first: the row that predicts the first of them.
        strips: token strips by name.
        interventions: the edits of the run.
    """

    runner: Runner
    device: torch.device
    source: Tensor | None
    valid: Tensor | None
    fed: Tensor
    following: Tensor
    first: int
    strips: dict[str, Tokens]
    interventions: dict[str, Intervention]

    @property
    def written(self) -> str:
        """The strip of the measured tokens."""
        return "source" if self.source is None else "target"

    @property
    def measured(self) -> slice:
        """The rows of the decoder that predict the measured tokens."""
        return slice(self.first, self.first + len(self.following))

    @property
    def tokens(self) -> tuple[str, ...]:
        """Texts of the measured tokens."""
        return self.strips[self.written].texts[self.first + 1 :][: len(self.following)]


def forced_run(runner: Runner, request: RunRequest, device: torch.device, most: int) -> tuple[RunRequest, int]:
    """The run whose tokens are measured, and the length of a language model's prompt; 0 elsewhere.

    A target for a language model becomes a part of its source, since it has one strip.

    Raises:
        CannotMeasure: the network writes nothing, or all its probabilities are 1.
        InputError: the text or the ids cannot be read.
    """
    spec = runner.info.spec
    if isinstance(runner.network, RunsWhole):
        raise CannotMeasure(reason=runner.network.why)
    if spec.decoder is None or spec.output is None:
        raise CannotMeasure(reason=phrase("it has no output layer, so no target has a probability"))
    if spec.output.softmax == "batch":
        raise CannotMeasure(reason=phrase("its softmax runs over the examples of a batch, so each probability is 1"))
    if spec.decoder.wiring == "memory":
        raise CannotMeasure(
            reason=phrase("its decoder reads one target token at a time, so a whole target cannot be fed in one pass")
        )
    if spec.encoder is not None:
        return request, 0
    # A language model has one strip. Its target is what it writes after the prompt, or a target that is joined to the prompt here.
    # Where nothing is written, it is the prompt itself, from its second token on.
    reader = Reader(runner.tokenizers, device, most)
    prompt = reader.read("source", request.source, spec.writer).tokens.ids
    if request.target is None:
        return request, len(prompt) if request.decoding.max_length else 1
    given = reader.read("source", request.target, spec.writer).tokens
    typed = isinstance(request.target, str)
    # No second start token.
    start = next((position for position, special in enumerate(given.special) if typed and not special), 0)
    allowed, reason = reader.room(spec.writer)
    if (needed := len(prompt) + len(given) - start) > allowed:
        raise TooManyTokens(found=needed, allowed=allowed, reason=reason, strip="both")
    whole = (*prompt, *given.ids[start:])
    return replace(request, source=whole, target=None, begin=(), decoding=Decoding(max_length=0)), len(prompt)


def example_of(runner: Runner, request: RunRequest, trace: Trace, prompt: int, device: torch.device, most: int) -> Example:
    """The example of a run.

    Args:
        request: the run, as `forced_run` gives it.
        trace: what it recorded.
        prompt: length of a language model's prompt.

    Raises:
        CannotMeasure: the target has no token to be measured.
    """
    strips, spec = dict(trace.tokens), runner.info.spec
    valid = None if spec.encoder is None else valid_positions(request, strips["source"], spec, device)
    written = strips["target" if prompt == 0 else "source"].ids
    first = max(prompt - 1, 0)
    if len(written) < first + 2:
        raise CannotMeasure(reason=phrase("the target has no token after the first one"))
    ids = torch.tensor(written, device=device)
    rows = next(attention.mask.shape[0] for site, attention in trace.attention.items() if site.stack == "decoder")
    # The last token of a strip is predicted and read by nobody, so it is not fed.
    # Unless an edit opened masks: then even it can be looked at, where it was fed.
    opened = any(isinstance(edit, Allow) for edit in request.edits)
    # The edits of the run belong to every copy: exchanged words, swapped layers and interventions are made here, once.
    edited = EditedRun(runner, request, strips, lambda other: run(runner, other, device, str(device), most=most))
    source = None if prompt else _source(runner, request, trace, device, most)
    return Example(
        replace(runner, network=edited.network),  # type: ignore[arg-type]  # of the kind that it was
        device,
        None if source is None else edited.source(source, None),
        valid,
        edited.target(ids[None, :rows] if opened else ids[None, :-1]),
        ids[first + 1 :],
        first,
        strips,
        edited.interventions,
    )


def _source(runner: Runner, request: RunRequest, trace: Trace, device: torch.device, most: int) -> Tensor:
    """[1, key] of ids, padding included, or [1, key, model] of features."""
    if ids := trace.tokens["source"].ids:
        return torch.tensor([ids], device=device)
    features = Reader.of(runner, device, most).inputs(request, runner.info.spec).source
    return features.to(runner.network.dtype).tensor


ROW_CHUNK, VOCAB_CHUNK = 1024, 256
"""Rows, and words of the vocabulary, whose logits are held at once: 1 MiB, which stays in a processor's cache."""

FEW_LOGITS = 2**16
"""Logits that are held at once where there are few rows: more words a product, since each product costs a call."""


@dataclass(frozen=True, eq=False)
class ForcedLogits:
    """Logits that the network computed by itself.

    Attributes:
        logits: [row, token, vocab], of the rows that predict the measured tokens.
        following: [token], their ids.
    """

    logits: Tensor
    following: Tensor

    def log_probabilities(self) -> Tensor:
        """[row, token]."""
        log_probabilities = self.logits.float().log_softmax(dim=-1)
        return log_probabilities.gather(-1, self.following.expand(len(log_probabilities), -1)[..., None])[..., 0]

    def with_likeliest(self) -> Tensor:
        """[2, row, token]: the log-probabilities, and the ids of the likeliest token at each place."""
        return torch.stack([self.log_probabilities().double(), self.logits.argmax(dim=-1).double()])


@dataclass(frozen=True, eq=False)
class ForcedStates:
    """Last states, from which the logits are computed some words of the vocabulary at a time and summed up at once.

    Without gradients.

    Attributes:
        states: [row, token, model], of the rows that predict the measured tokens.
        output: the output layer.
        following: [token], their ids.
    """

    states: Tensor
    output: nn.Linear
    following: Tensor

    def log_probabilities(self) -> Tensor:
        """[row, token]: the token's own logit minus log Σ exp over all logits."""
        # log Σ exp over all words is that of the parts' own log Σ exp, so all logits never exist at the same time.
        sums = [torch.stack([_log_sum_exp(logits) for logits in self._chunks(states)]).logsumexp(dim=0) for states in self._rows()]
        return self._logit_of_token() - torch.cat(sums).view_as(self.states[..., 0])

    def with_likeliest(self) -> Tensor:
        """[2, row, token]: the log-probabilities, and the ids of the likeliest token at each place, from the same logits."""
        sums, ids = list[Tensor](), list[Tensor]()
        for states in self._rows():
            parts = [(*logits.max(dim=-1), _log_sum_exp(logits)) for logits in self._chunks(states)]
            values, places, sums_of_exp = (torch.stack(part) for part in zip(*parts, strict=True))
            # Of each part its largest logit and its place there; of these the largest, and which part it is in, give the id.
            chunk = values.argmax(dim=0)
            sums.append(sums_of_exp.logsumexp(dim=0))
            ids.append(places.gather(0, chunk[None])[0] + self._words(len(states)) * chunk)
        log_probabilities = self._logit_of_token() - torch.cat(sums).view_as(self.states[..., 0])
        return torch.stack([log_probabilities.double(), torch.cat(ids).view(self.states.shape[:2]).double()])

    def _logit_of_token(self) -> Tensor:
        """[row, token]: the token's own logit."""
        logit = (self.states * self.output.weight[self.following]).sum(dim=-1)
        return (logit if self.output.bias is None else logit + self.output.bias[self.following]).float()

    def _rows(self) -> Iterator[Tensor]:
        """States [row, model], some at a time."""
        yield from self.states.flatten(0, 1).split(ROW_CHUNK)

    def _words(self, rows: int) -> int:
        """How many words' logits are held at once."""
        return min(len(self.output.weight), max(VOCAB_CHUNK, FEW_LOGITS // rows))

    def _chunks(self, states: Tensor) -> Iterator[Tensor]:
        """Logits [row, word] of some words at a time, all in the same memory: fresh memory costs as much as the product."""
        weight, bias, words = self.output.weight, self.output.bias, self._words(len(states))
        # Whoever reads these logits must be done with them before the next part overwrites them.
        held = states.new_empty(len(states) * words)
        for begin in range(0, len(weight), words):
            part = weight[begin : begin + words]
            logits = held[: len(states) * len(part)].view(len(states), len(part))
            if bias is None:
                yield torch.mm(states, part.T, out=logits)
            else:
                yield torch.addmm(bias[begin : begin + words], states, part.T, out=logits)


def _log_sum_exp(logits: Tensor) -> Tensor:
    """log Σ exp [row] of logits [row, word]: a logit minus its logarithmic share, both of the first word. Overwrites `logits`."""
    logits = logits.float()
    # log_softmax(x) = x − log Σ exp, so one word's logit before and after it gives the sum. It is kept before it is overwritten.
    first = logits[:, 0].clone()
    return first - torch.log_softmax(logits, dim=-1, out=logits)[:, 0]
