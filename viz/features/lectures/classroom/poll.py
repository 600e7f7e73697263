"""The poll of one question: anonymous answers, one from each device, and their counts."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from viz.features.lectures.classroom.deck import Question

Phase: TypeAlias = Literal["open", "closed", "revealed"]
"""Whether a question takes answers, no longer does, or shows what is right."""

Outcome: TypeAlias = Literal["counted", "again", "late", "malformed", "full"]
"""What became of an answer."""

MOST_DEVICES = 10_000
"""Most devices that may answer one question."""

LARGEST = 1e12
"""Largest number that is accepted as an answer, and the smallest is its negative."""

BARS = 12
"""Most bars in which answered numbers are counted."""


@dataclass
class Poll:
    """Answers to one question.

    Attributes:
        question: the question.
        phase: `open` while answers are counted; then `closed`, then `revealed`.
        answers: by hash of the device: index of an option, or a number.
        ignored: number of answers that were not counted, by reason.
    """

    question: Question
    phase: Phase = "open"
    answers: dict[str, float] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)

    def put(self, device: str, value: object) -> Outcome:
        """Counts an answer, or says why not: the first answer of a device stands.

        Args:
            device: hash of the device's name.
            value: what the device sent: index of an option, or a number.
        """
        outcome = self._outcome(device, value)
        if outcome == "counted":
            self.answers[device] = float(value)  # type: ignore[arg-type]  # _outcome has checked it
        else:
            self.ignored[outcome] += 1
        return outcome

    def _outcome(self, device: str, value: object) -> Outcome:
        if isinstance(value, bool) or not isinstance(value, int | float) or not self._accepts(value):
            return "malformed"
        if self.phase != "open":
            return "late"
        if device in self.answers:
            return "again"
        return "full" if len(self.answers) >= MOST_DEVICES else "counted"

    def _accepts(self, value: int | float) -> bool:
        if self.question.layout == "number":
            return -LARGEST <= value <= LARGEST  # false for NaN
        return isinstance(value, int) and 0 <= value < len(self.question.options)

    def offer(self, question: Question) -> None:
        """Takes the question with the options that its run gave. Answers that name none of them are dropped."""
        self.question = question
        if question.options:
            self.answers = {device: value for device, value in self.answers.items() if self._accepts(int(value))}

    def counts(self) -> dict[str, Any]:
        """Number of answers in all, and of each option; of numbers, the bars of a histogram."""
        if self.question.layout == "number":
            return {"answered": len(self.answers), "bars": _bars(list(self.answers.values()))}
        counts = Counter(map(int, self.answers.values()))
        return {"answered": len(self.answers), "counts": [counts[index] for index in range(len(self.question.options))]}


def _bars(numbers: list[float]) -> list[dict[str, float]]:
    """A histogram with bars of equal width: its number of bars is the square root of that of the numbers, at most BARS."""
    if not numbers:
        return []
    lowest, highest = min(numbers), max(numbers)
    bars = max(1, min(BARS, math.isqrt(len(numbers)))) if highest > lowest else 1
    width = (highest - lowest) / bars
    counts = Counter(min(bars - 1, int((number - lowest) / width)) if width else 0 for number in numbers)
    return [{"from": lowest + bar * width, "to": lowest + (bar + 1) * width, "count": counts[bar]} for bar in range(bars)]
