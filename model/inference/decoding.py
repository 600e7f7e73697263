"""Decoding: loops that write a target token by token and make a Step for each.

They have the network read ids from a position on and get the logits after each; earlier positions are in the cache. Greedy
decoding, sampling and teacher forcing follow one hypothesis; `beam_search.py` follows several.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import TypeAlias

import torch
from torch import Tensor

from model.checkpoints.loader import Runner
from model.inference.recorder import Recorder
from model.requests.request import Decoding, RunRequest
from model.trace.beam_tree import Node
from model.trace.steps import Candidate, Step
from model.trace.types import Trace
from model.transformer.cache import KVCache

Read: TypeAlias = Callable[[Tensor, int], Tensor]
"""ids [batch, position], first position to compute -> logits [batch, query, vocab]."""

Choose: TypeAlias = Callable[[Tensor], Iterator[int]]
"""Log-probabilities [query, vocab] -> the token that each row chooses; a row chooses only when its token is asked for."""

CANDIDATES = 8
"""Number of likeliest tokens in a Step."""


TOGETHER = 4
"""Rows of a forced target whose log-probabilities are computed at once."""


def log_probabilities_of(logits: Tensor) -> Tensor:
    """Natural log-probabilities of logits [..., vocab], as float32 on the CPU."""
    # Float32 first: in a type of two bytes, two likely tokens would often get the same log-probability, and the choice would be
    # chance.
    return logits.float().log_softmax(dim=-1).cpu()


def certain(logits: Tensor) -> Tensor:
    """Log-probabilities [..., vocab] under a softmax over the batch axis: with one example, each probability is 1.

    Reference document 003 computes this (docs/references.md).
    """
    # log 1 = 0 for every token, whatever the logits are: which token is written follows from the rule for equally likely ones.
    return torch.zeros_like(logits, dtype=torch.float32, device="cpu")


@dataclass(frozen=True)
class Writer:
    """Everything that decoding needs, except for the network.

    Attributes:
        texts_of: returns the texts of ids.
        ends: ids of the tokens that end a text.
        suppressed: ids that are never chosen.
        limit: number of positions in the stack, and so the most tokens that it can read.
        normalise: turns logits [..., vocab] into natural log-probabilities, float32 on the CPU.
        opening: ids of which each of the first tokens is one.
    """

    texts_of: Callable[[Sequence[int]], Sequence[str]]
    ends: tuple[int, ...]
    suppressed: tuple[int, ...]
    limit: int
    normalise: Callable[[Tensor], Tensor] = log_probabilities_of
    opening: tuple[tuple[int, ...], ...] = ()

    def allowed(self, log_probabilities: Tensor, index: int) -> Tensor:
        """[row, vocab] with -inf for the ids that may not be token `index` of what is written."""
        # A network may demand a certain beginning (a language token, for example): then nothing else may be chosen there.
        if index < len(self.opening):  # networks that have one are not given guesses: all rows are of this token
            return only(log_probabilities, self.opening[index])
        return log_probabilities.index_fill(-1, self._never, -torch.inf) if self.suppressed else log_probabilities

    @cached_property
    def _never(self) -> Tensor:
        """`suppressed` as a tensor: made once, and not for each token."""
        return torch.tensor(self.suppressed, dtype=torch.int64)

    def steps(
        self, indices: Iterable[int], chosen: Sequence[int], log_probabilities: Tensor, computed: Iterable[tuple[int, int]]
    ) -> list[Step]:
        """The Steps of rows that each chose a token, given the model's `log_probabilities` [row, vocab].

        Args:
            indices, chosen, computed: for each row, the index of its step, its token, and the positions computed for it.
        """
        # One array of ids and one of numbers, each read at once: reading them one by one would take longer than the step.
        likeliest = log_probabilities.topk(min(CANDIDATES, log_probabilities.shape[-1]))
        tokens = torch.tensor(chosen, dtype=torch.int64)[:, None]
        ids = torch.cat([tokens, likeliest.indices], dim=1).tolist()  # [row, 1 + candidate]: the token comes first
        values = torch.cat([log_probabilities.gather(1, tokens), likeliest.values], dim=1).tolist()
        texts = iter(self.texts_of([id_ for row in ids for id_ in row]))
        steps: list[Step] = []
        for index, places, row, of_row in zip(indices, computed, ids, values, strict=False):  # indices may go on for ever
            taken, *candidates = map(Candidate, row, texts, of_row)
            steps.append(Step(index, taken, tuple(candidates), places))
        return steps


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


def forced(read: Read, ids: Sequence[int], writer: Writer, device: torch.device, last: int | None = None) -> list[Step]:
    """Teacher forcing: the network reads all of `ids` at once, and each step's token is the next one in `ids`.

    Args:
        last: one more token, which is predicted but not read (the end token of a typed target).
    """
    logits = read(torch.tensor([list(ids)], device=device), 0)[0]  # [query, vocab]
    # Row i of the logits predicts token i + 1. The last row predicts `last`, if there is one; else nobody asks what it predicts.
    following = [*ids[1:], *([] if last is None else [last])]
    steps = list[Step]()
    for start in range(0, len(following), TOGETHER):  # a second array of the size of all logits would take long to fill
        rows = following[start : start + TOGETHER]
        computed = [(i, i + 1) for i in range(start, start + len(rows))]
        steps += writer.steps(count(start), rows, writer.normalise(logits[start : start + len(rows)]), computed)
    return steps


def greedy(log_probabilities: Tensor) -> Iterator[int]:
    """The likeliest token of each row, given log-probabilities [query, vocab]; the first of equally likely ones."""
    return iter(log_probabilities.argmax(dim=-1).tolist())


def sampler(decoding: Decoding) -> Choose:
    """A function that samples tokens: divides logits by the temperature, keeps the top k, then the smallest set that holds top_p.

    Nothing can be sampled where logits are NaN: the token is then `greedy`'s, so that the run ends and can be inspected.

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1, for top-p.
    """
    generator = torch.Generator().manual_seed(decoding.seed)

    def sample(log_probabilities: Tensor) -> int:
        # A softmax with one NaN is NaN everywhere, and torch refuses to draw from that.
        if log_probabilities.isnan().any():
            return next(greedy(log_probabilities[None]))
        # Sorted by probability, so that top_k and top_p each keep a beginning of the list; equally likely tokens keep their order.
        probabilities, order = (log_probabilities / decoding.temperature).softmax(dim=-1).sort(descending=True, stable=True)
        if decoding.top_k:
            probabilities[decoding.top_k :] = 0
        # What top_k left is a distribution again before top_p measures it: the two filters work one after the other.
        probabilities /= probabilities.sum()
        before = probabilities.cumsum(0) - probabilities  # [vocab], the probability of all likelier tokens together
        # The token that crosses top_p is kept, so at least the most likely one is.
        probabilities[before >= decoding.top_p] = 0
        return int(order[torch.multinomial(probabilities, 1, generator=generator)])

    return lambda log_probabilities: map(sample, log_probabilities)


LONGEST = 16
"""Most tokens that are guessed at once: what a wrong guess costs is limited."""

DOUBTFUL = 8
"""The same for a guess after one that was wrong."""

REPLACED = 4
"""The same for a guess after a token that the earlier text does not have."""

QUICK = 30_000_000
"""Parameters up to which a network reads the prompt with a guess. In a larger one the first token would be seen later."""


class Draft:
    """Guesses for one decode: the next tokens, from what an earlier run wrote, so that one pass checks several of them.

    While somebody types, each sentence is like the one before, and so is what the network writes. A pass that also reads the
    guessed tokens computes a row for each of them, as when a given target is read. Each row chooses its token as a step of its own
    would. The first choice that differs from its guess ends the pass, and what was computed from later guesses is forgotten: the
    same tokens are written, in fewer passes.

    The first guess is the beginning of the earlier text. Later, a place in it fits if the newest two tokens are those before it, or
    else if the newest one is. Of several places the guess begins at the one nearest to where the last guess ended, either way: a
    text that was changed in the middle often goes on as before, and a common word occurs in many places. If no place fits, the
    newest token replaced one of the earlier text, and the guess begins behind that one.

    Args:
        ids: the ids that an earlier run wrote; empty: nothing is guessed.
        forget: drops the newest rows, as many as its argument says, from the cache and the recorder of the decode.
        at_once: whether the prompt is read with a guess.

    Attributes:
        confirmed: number of guessed tokens that were chosen so far.

    Source: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding", section 2.1. Here an earlier text
        takes the place of the smaller network.
    """

    def __init__(self, ids: Sequence[int] = (), forget: Callable[[int], None] = lambda count: None, at_once: bool = True) -> None:
        self._ids, self._forget = list(ids), forget
        self._next = self._guessed = self.confirmed = 0
        # How many tokens the next guess may have, whether a guess was made, and whether the first one may be made before anything
        # is written.
        self._longest, self._begun, self._at_once = LONGEST, False, at_once

    def after(self, written: Sequence[int], most: int) -> list[int]:
        """At most `most` ids that may follow the ids `written`: those that followed the same ids in the earlier text."""
        # The guess begins behind the newest token, where the earlier text has it; of several places, at the nearest to the last.
        begun, self._begun, longest = self._begun, True, self._longest
        if begun:
            self._next += 1  # behind the newest token, if the text goes on as the earlier one did
            # Each place behind a token like the newest one; and those of them where the token before fits, too.
            places = [index + 1 for index, id_ in enumerate(self._ids) if id_ == written[-1]]
            both = [index for index in places if index > 1 and self._ids[index - 2] == written[-2]]
            if places:
                self._next = min(both or places, key=lambda index: abs(index - self._next))
            else:
                # Nothing in the earlier text is like the newest token: it took the place of another one, and `_next` is the place
                # behind that.
                longest = min(longest, REPLACED)
        elif not self._at_once:
            return []
        guess = self._ids[self._next : self._next + max(0, min(most, longest))]
        # `settle` compares with it how many of these were chosen.
        self._guessed = len(guess)
        return guess

    def settle(self, confirmed: int) -> None:
        """Notes that the first `confirmed` of the guessed tokens were chosen, and forgets what was computed from the others."""
        wrong = self._guessed - confirmed
        if wrong:
            self._forget(wrong)
        if self._guessed:
            # A text that was just left is often left again: guess less until a whole guess is right.
            self._longest = DOUBTFUL if wrong else LONGEST
        self._next += confirmed
        self.confirmed += confirmed
        self._guessed = 0


def draft_for(checkpoint: Runner, request: RunRequest, cache: KVCache, recorder: Recorder, earlier: Sequence[int]) -> Draft:
    """The draft of one decode, given the ids that an earlier run wrote.

    Nothing is guessed where a pass over several tokens computes something else than steps of one token: in networks of other
    libraries, in decoders that are not causal or encode every step at position 0, and in runs with edits.
    """
    spec = checkpoint.info.spec
    # With edits, a row may depend on those that were read with it (a mean over earlier rows): wrong guesses would count.
    if request.edits or not spec.steps_agree:
        return Draft()

    def forget(count: int) -> None:
        cache.forget(count)
        recorder.forget(count)

    guesses = [id_ for id_ in earlier if id_ != spec.end_id]  # the end token is never read
    return Draft(guesses, forget, at_once=checkpoint.parameters <= QUICK)


def write(
    prompt: Sequence[int],
    choose: Choose,
    max_length: int,
    writer: Writer,
    device: torch.device,
    begin: Sequence[int] = (),
    draft: Draft | None = None,
    on_steps: Callable[[list[Step]], None] = lambda steps: None,
) -> Generator[tuple[Tensor, int], Tensor, None]:
    """Follows one hypothesis: reads the new tokens, chooses the next one, appends it; until the end token or a limit of length.

    Args:
        begin: the first tokens, which are not chosen.
        draft: guesses tokens that are read in one pass with the newest one; None: each pass writes one token.
        on_steps: called after each pass with its steps.

    Yields:
        What to read, the arguments of a Read; its logits are to be sent. So the loop needs no thread that waits for them.
    """
    # `ids` is all text so far, `start` the first position that is not in the cache yet, `written` the number of tokens after the
    # prompt.
    ids, start, written, draft = list(prompt), 0, 0, draft or Draft()
    while written < max_length:
        # One pass reads the newest token and what is guessed to follow it: a row of logits for each.
        guess = draft.after(ids, min(max_length - written - 1, writer.limit - len(ids)))
        logits = (yield torch.tensor([ids + guess], device=device), start)[0, -1 - len(guess) :]  # [1 + guessed, vocab]
        log_probabilities, given = writer.normalise(logits), begin[written:]
        choices = chain(given, choose(writer.allowed(log_probabilities, written)[len(given) :]))
        # A row is valid as long as all tokens before it were guessed right. The row of the first wrong guess tells the right token.
        # Choices are drawn one by one, since `choose` may be random: a row whose guess turns out wrong must not use up a random
        # number.
        chosen: list[int] = []
        for guessed, token in zip([*guess, None], choices, strict=False):
            chosen.append(token)
            if token != guessed or token in writer.ends:  # the rows after it were computed from tokens that were not written
                break
        # The first of these steps computed all positions from `start` on (the prompt, in the first pass), each further one a single
        # position.
        ends = range(len(ids), len(ids) + len(chosen))
        steps = writer.steps(count(written), chosen, log_probabilities[: len(chosen)], zip([start, *ends], ends, strict=False))
        # The newest token itself was not read: the next pass begins with it.
        start = ends[-1]
        ids += chosen
        draft.settle(len(chosen) - 1)
        written += len(chosen)
        on_steps(steps)
        # The stack has no position left for the newest token, which then ends the text like an end token.
        if ids[-1] in writer.ends or len(ids) > writer.limit:
            return


def only(log_probabilities: Tensor, ids: Sequence[int]) -> Tensor:
    """A copy of [..., vocab] in which all ids but these have log-probability -inf."""
    places = torch.tensor(ids, dtype=torch.int64)
    # Start from “nothing is allowed” and copy the few allowed numbers into it.
    nothing = torch.full_like(log_probabilities, -torch.inf)
    return nothing.index_copy(-1, places, log_probabilities.index_select(-1, places))
