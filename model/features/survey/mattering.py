"""How much each head matters over the texts of a survey: what their targets lose without it. No torch.

In each text each head is silenced by itself (`heads` of what_if, "without"). A text's number is the mean over the tokens of
its target, so that every text weighs the same, as in a survey.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from model.errors import InputError
from model.features.survey.questions import MeasureTexts, Text, none_ran
from model.features.what_if.questions import Heads
from model.features.what_if.results import HeadEffects
from model.trace.types import Array


@dataclass(frozen=True, eq=False)
class Matters:
    """How much each head matters, as far as it was measured.

    Attributes:
        heads: site and number of each, as in the survey.
        asked: number of texts.
        done: texts that were read.
        count: those of them that could be measured.
        mean: [head], the log-probability in nats that a token of the target loses where the head is silenced, mean over texts.
        squares: [head], the sum of squared differences from it (Welford 1962).
    """

    heads: tuple[tuple[str, int], ...]
    asked: int
    done: int
    count: int
    mean: Array
    squares: Array

    @property
    def error(self) -> Array:
        """[head], the standard error of the mean; NaN for fewer than two texts."""
        if self.count < 2:
            return np.full(len(self.heads), np.nan)
        return np.asarray(np.sqrt(self.squares / (self.count - 1) / self.count))

    @property
    def steps(self) -> tuple[int, int]:
        """Texts read so far, and of all."""
        return self.done, self.asked

    @property
    def finished(self) -> bool:
        """Whether all texts were read."""
        return self.done == self.asked


def not_measured(heads: Sequence[tuple[str, int]], texts: int) -> Matters:
    """Nothing of so many texts."""
    return Matters(tuple(heads), texts, 0, 0, np.zeros(len(heads)), np.zeros(len(heads)))


def measured_on(
    ask: Callable[[Heads], HeadEffects], question: MeasureTexts, encoder: bool, texts: Sequence[Text], matters: Matters
) -> Iterator[Matters]:
    """How much heads matter after each further text. Texts that cannot be run are left out and counted as read.

    Args:
        ask: answers a question, as an engine does.
        question: the model, its settings and its edits, which hold in every run.
        encoder: whether the network has one; a language model has none.
        texts: all of them.
        matters: how far it has come.

    Raises:
        CannotSurvey: no text could be run.
        HeadlightError: whatever the engine refuses.
    """
    # One text that cannot be run is no reason to stop; if none can, the first error says why.
    problem: InputError | None = None
    for text in texts[matters.done :]:
        try:
            effects = ask(Heads(text.request(question, question.edits, encoder), measures=("without",)))
        except InputError as error:
            problem = problem or error
            matters = replace(matters, done=matters.done + 1)
        else:
            matters = _with(matters, effects)
        yield matters
    if problem is not None and not matters.count:
        raise none_ran(matters.asked, [problem.to_json()])


def _with(matters: Matters, effects: HeadEffects) -> Matters:
    """One more text; heads that the answer does not know lose nothing that is known."""
    assert effects.without is not None
    losses = {(head.site, head.head): -float(changes.mean()) for head, changes in zip(effects.heads, effects.without, strict=True)}
    values = np.array([losses.get(head, np.nan) for head in matters.heads])
    # Welford's way of adding one value to a mean and a sum of squares, which needs no text that came before.
    count, apart = matters.count + 1, values - matters.mean
    mean = matters.mean + apart / count
    return replace(matters, done=matters.done + 1, count=count, mean=mean, squares=matters.squares + apart * (values - mean))


def to_json(matters: Matters) -> dict[str, Any]:
    """The numbers as JSON values; heads are in the order of the survey."""
    numbers = {name: [None if np.isnan(x) else float(x) for x in getattr(matters, name)] for name in ("mean", "squares")}
    return {"asked": matters.asked, "done": matters.done, "count": matters.count, **numbers}


def from_json(entries: dict[str, Any], heads: Sequence[tuple[str, int]]) -> Matters:
    """Reads what `to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    mean, squares = (np.array(entries[name], np.float64).reshape(len(heads)) for name in ("mean", "squares"))
    return Matters(tuple(heads), int(entries["asked"]), int(entries["done"]), int(entries["count"]), mean, squares)
