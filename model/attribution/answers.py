"""Answers: the result of any question about one run of one network."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from model.attribution.cell_words import cell_words
from model.attribution.edges import edge_effects
from model.attribution.example import example_of
from model.attribution.heads import head_effects, prune_curve
from model.attribution.logit_parts import logit_sum
from model.attribution.paths import corrupted_request, path_effects
from model.attribution.questions import Attribution, Edges, Heads, Paths, Prune, Words
from model.attribution.results import Result
from model.attribution.score_parts import score_sum
from model.attribution.scoring import BATCH_BYTES, OnCount, Scorer, ignore_count
from model.attribution.sums import CellWords, CellWrites, LogitSum, ScoreSum, Why, Writes
from model.attribution.words import word_effects
from model.checkpoints.loader import Runner
from model.inference.calls import Ask, alone
from model.inference.run import run
from model.spec.inputs import POSITIONS
from model.spec.request import RunRequest
from model.trace.types import Trace


def taken_apart(question: Why | Writes | CellWrites, runner: Runner, trace: Trace) -> ScoreSum | LogitSum | CellWords:
    """A score or a logit of a run as a sum, or what one cell writes.

    Args:
        runner: the network of the run, before its edits.
        trace: the run, which keeps everything.

    Raises:
        InputError: the run has no such cell or token, or its network cannot be taken apart.
    """
    match question:
        case Why():
            return score_sum(runner.network, trace, question)
        case Writes():
            return logit_sum(runner.network, trace, question)
        case CellWrites():
            return cell_words(runner, trace, question)


@dataclass(frozen=True)
class Place:
    """Where and within which limits a question is answered, also one of a survey.

    Attributes:
        device: of the network.
        ask: answers calls of the network.
        most: positions of an input that are read.
        most_bytes: memory of one batch of copies, where a question makes copies.
        on_count: called with the number of copies or texts measured so far, and of all.
    """

    device: torch.device
    ask: Ask = alone
    most: int = POSITIONS
    most_bytes: int = BATCH_BYTES
    on_count: OnCount = ignore_count


def answer(question: Attribution[Any], request: RunRequest, prompt: int, runner: Runner, trace: Trace, place: Place) -> Result:
    """The result of a question.

    Args:
        request, prompt: of `forced_run`.
        trace: the run of `request`.

    Raises:
        CannotMeasure: the network or the target leaves nothing to be measured.
    """
    example = example_of(runner, request, trace, prompt, place.device, place.most)  # no inference tensors: gradients need others
    scorer = Scorer(example, place.ask, place.most_bytes)
    if isinstance(question, Paths):
        corrupted = corrupted_request(question, request, example, prompt, place.most)
        traced = partial(run, runner, device=place.device, device_name=str(place.device), most=place.most)
        with torch.inference_mode():
            return path_effects(question, request, corrupted, traced, scorer, place.on_count)
    with torch.inference_mode():
        match question:
            case Heads():
                return head_effects(question, scorer, place.on_count)
            case Prune():
                return prune_curve(question, scorer, place.on_count)
            case Words():
                return word_effects(scorer, trace, place.on_count)
            case Edges():
                return edge_effects(question, scorer, trace, place.on_count)
    raise TypeError(f"no such question: {type(question).__name__}")
