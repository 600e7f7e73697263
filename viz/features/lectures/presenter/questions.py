"""The question of a step as a class sees it: what is shown while it is open, its answer, and the view that shows the answer.

While a question is open, its picture is the tokens that it is about, with those that it asks for outlined: no weight, no
probability, and nothing that the run generates if this is what is asked.
"""

from dataclasses import replace

from model.trace.types import Attention, Trace
from viz.claims.runs import StepRuns, column, row, step_of
from viz.features.lectures.classroom.deck import Answer, Layout, Question, Strip
from viz.features.lectures.presenter import markdown
from viz.features.lectures.script import answers
from viz.features.lectures.script import lecture as script
from viz.features.lectures.script.lecture import Step
from viz.i18n.translate import _, language_of
from viz.labels import tokens
from viz.metrics.teacher_forcing import first_written
from viz.url.view_state import ViewState
from viz.views.page_panels import pages_of_steps


def answered(runs: StepRuns, step: Step) -> tuple[Answer, Question]:
    """The answer of the run, and the question with the options that the run gives.

    Raises:
        HeadlightError: the run cannot answer.
    """
    asked = step.question
    assert asked is not None, "the step asks something"
    answer = answers.answer(runs, asked)
    options = answer.options if asked.kind == "output" else tuple(map(tokens.plain, answer.options))  # tokens, else sentences
    question = replace(unanswered(asked), options=options, given=given(runs, asked))
    question = replace(question, layout="tokens") if answer.strip else question
    return Answer(right_options(asked.kind, answer), answer.shares, answer.number), question


def unanswered(asked: script.Question) -> Question:
    """The question without what only its run knows."""
    layout: Layout = "number" if asked.kind == "number" else "list"
    unit, counted = _units().get(asked.subject.kind, ("", False)) if layout == "number" else ("", False)
    return Question(markdown.html(asked.prompt), layout, asked.options, unit=unit, counted=counted)


def _units() -> dict[str, tuple[str, bool]]:
    """By the kind of a number that is asked for, its unit, and whether it counts things."""
    return {
        "kept": (_("bytes"), True),
        "moved": (_("numbers"), True),
        "breaks-at": (_("heads"), True),
        "equal-at": (_("tokens"), True),
        "reach": (_("tokens"), True),
        "share": ("%", False),
    }


CLOSE = 0.1
"""An option is right, too, whose weight is within this share of the largest, as a number within it is."""


def right_options(kind: str, answer: answers.Answer) -> tuple[int, ...]:
    """The right options: of a question for the largest weight all whose weight is close to it."""
    if kind in ("key", "head"):
        least = (1 - CLOSE) * answer.shares[answer.right]
        return tuple(index for index, share in enumerate(answer.shares) if share >= least)
    return (answer.right,) if answer.right >= 0 else ()


def given(runs: StepRuns, asked: script.Question) -> tuple[Strip, ...]:
    """The tokens that a question is about: what the model reads, and of what it generates only what the question may show."""
    subject = asked.subject
    trace = runs.padded()[1] if subject.kind == "padding" else runs.run(asked.scope)
    written = tokens.written_strip(trace)
    counts = {name: len(strip) for name, strip in trace.tokens.items()}
    outlined = dict[str, set[int]]()
    if subject.query is not None or subject.key is not None:
        attention, _head = runs.attention(trace, subject.head)
        if subject.query is not None:
            outlined |= {attention.query_tokens: _of_row(trace, attention, row(trace, attention, subject.query))}
        if subject.key is not None:
            outlined.setdefault(attention.key_tokens, set()).add(column(trace, attention, subject.key))
        elif asked.kind == "key" and attention.key_tokens != attention.query_tokens:
            counts[attention.key_tokens] = 0  # its tokens are the options
    elif subject.kind == "output":
        counts[written] = first_written(trace) if written == "source" else 0
    elif subject.at is not None:
        counts[written] = trace.steps[step_of(trace, subject.at)].computed[1]
    return tuple(
        Strip(language_of(trace, name), tuple(tokens.strip(strip)[: counts[name]]), tuple(sorted(outlined.get(name, ()))))
        for name, strip in trace.tokens.items()
        if counts[name]
    )


def _of_row(trace: Trace, attention: Attention, at: int) -> set[int]:
    """The tokens in the label of a row: a decoder's row reads one and generates the next."""
    generates = attention.site.stack == "decoder" and at + 1 < len(trace.tokens[attention.query_tokens])
    return {at, at + 1} if generates else {at}


def revealed_view(runs: StepRuns, step: Step) -> ViewState:
    """The view of a step with the row that its question asks for selected, so that the answer is seen at once.

    Raises:
        HeadlightError: the run has no such row or head.
    """
    asked, view = step.question, step.view
    page = pages_of_steps().get(step.page)
    if asked is None or asked.subject.query is None or page is None or page.shows_row is None:
        return view
    trace = runs.run(asked.scope)
    attention, head = runs.attention(trace, asked.subject.head)
    if not page.shows_row(view, attention.site):
        return view
    if asked.kind == "head":
        head = answers.answer(runs, asked).right
    return replace(view, site=str(attention.site), head=head, query=row(trace, attention, asked.subject.query))
