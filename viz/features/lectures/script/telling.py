"""What is wrong with the words of a question: they say its answer, or name its row by a word that is in several rows."""

import re
from collections.abc import Iterator

from viz.claims.runs import StepRuns, row
from viz.features.lectures.script.answers import Answer, answer
from viz.features.lectures.script.lecture import Problem, Question, Step
from viz.i18n.translate import _
from viz.labels import tokens

DECIMALS = range(1, 5)
"""Numbers of decimals to which an answer may be said."""


def spoiler_problems(runs: StepRuns, step: Step) -> list[Problem]:
    """The problems of a question that the run answers.

    Raises:
        HeadlightError: the run cannot answer it.
    """
    asked = step.question
    assert asked is not None, "the step asks something"
    result = answer(runs, asked)
    visible = " ".join((step.title, asked.prompt, step.words))
    problems = [
        _("the heading, the question or the text gives away the answer: {answer}", answer=words)
        for words in _given_away(asked, result, visible)
    ]
    problems += [
        _("“{text}” occurs in several rows: {rows}; name the whole row, {row}", text=text, rows=", ".join(rows), row=whole)
        for text, rows, whole in _several_rows(runs, asked)
    ]
    return [Problem(asked.line, problem) for problem in problems]


def _given_away(asked: Question, result: Answer, visible: str) -> Iterator[str]:
    """The answer as the words have it. Words that name wrong options beside the right one do not tell."""
    if result.number is not None:
        written = re.sub(r"(?<=\d),(?=\d)", ".", visible.replace("{,}", ".").replace("−", "-"))
        forms = {f"{result.number:.{digits}f}" for digits in DECIMALS} - {"0.0"}
        whole = {f"{result.number:.0f}"} if result.number == round(result.number) else set[str]()
        yield from dict.fromkeys(number for number in re.findall(r"-?\d+(?:\.\d+)?", written) if number in forms | whole)
        return
    words = [text for text in dict.fromkeys(result.options) if any(map(str.isalnum, text))]
    named = [text for text in words if re.search(rf"(?<![\w-]){re.escape(text)}(?!\w)", visible, re.IGNORECASE)]
    if asked.kind != "head" and named == [result.options[result.right]]:
        yield f"“{named[0]}”"


def _several_rows(runs: StepRuns, asked: Question) -> Iterator[tuple[str, list[str], str]]:
    """Words that the question emphasizes or quotes and that are in several rows, with these rows and the label of the right one."""
    if asked.subject.query is None:
        return
    trace = runs.run(asked.scope)
    attention, _head = runs.attention(trace, asked.subject.head)
    labels = tokens.queries(trace, attention)
    whole = labels[row(trace, attention, asked.subject.query)]
    if " → " not in whole or whole in asked.prompt:
        return
    for text in whole.split(" → "):
        rows = [label for label in labels if text in label.split(" → ")]
        if len(rows) > 1 and re.search(rf"[*_“„「]{re.escape(text)}[*_”“」]", asked.prompt):
            yield text, rows, whole
