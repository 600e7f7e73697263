"""The value of a subject in a run: a number or a text. docs/lectures.md defines each subject."""

from collections.abc import Callable, Mapping

import numpy as np

from model.errors import BadClaim
from model.measures.of_run import of_site, weight_on
from model.measures.rows import entropies
from model.trace.steps import Step
from model.trace.types import Array, Trace
from viz.claims.kinds import brought_kinds
from viz.claims.runs import StepRuns, column, row, step_of
from viz.claims.subjects import Scope, Subject
from viz.features.lectures.script import rotary_claims
from viz.i18n.translate import _
from viz.labels import tokens as labels
from viz.metrics import teacher_forcing
from viz.metrics.aggregation import relative_lengths
from viz.metrics.logit_lens import lens, output_names
from viz.metrics.padding import padding_effect
from viz.metrics.teacher_forcing import first_written


def text_of(runs: StepRuns, subject: Subject, scope: Scope) -> str:
    """The value of a subject that is a text.

    Raises:
        HeadlightError: the run is not possible, or has no such head, token or step.
    """
    if brought := brought_kinds().get(subject.kind):
        return str(brought.value(runs, subject, scope))
    trace = runs.run(scope)
    match subject.kind:
        case "output":
            return output(trace)
        case "source":
            return _plain(trace, "source", 0, first_written(trace) if labels.written_strip(trace) == "source" else None)
        case "key":
            attention, head = runs.attention(trace, subject.head)
            weights = attention.head(head)[row(trace, attention, subject.query)]
            return trace.tokens[attention.key_tokens].texts[int(np.argmax(weights))]
        case "mask":
            attention, _head = runs.attention(trace, subject.head)
            open_ = attention.mask[row(trace, attention, subject.query), column(trace, attention, subject.key)]
            return "visible" if open_ else "hidden"
    return _lens(runs, trace, subject)


def number_of(runs: StepRuns, subject: Subject, scope: Scope) -> float:
    """The value of a subject that is a number; with `scope.change`, under the edits minus without.

    Raises:
        HeadlightError: the run is not possible, or has no such head, token or step.
    """
    if brought := brought_kinds().get(subject.kind):
        return float(brought.value(runs, subject, scope))
    if subject.kind == "padding":
        effect = padding_effect(*runs.padded())
        return effect.largest_weight if subject.name == "weight" else effect.largest_difference
    if subject.kind in rotary_claims.OF_PAIRS:
        return rotary_claims.number(runs, subject, scope)
    if scope.change:
        before, now = runs.fed(scope)
        return _NUMBERS[subject.kind](runs, now, subject) - _NUMBERS[subject.kind](runs, before, subject)
    if subject.kind == "loss":
        return _loss(runs, runs.fed(scope)[1], subject)
    if subject.kind == "measure":
        return _measure(runs, subject, scope)
    return _NUMBERS[subject.kind](runs, runs.run(scope), subject)


def output(trace: Trace) -> str:
    """The text that a run generated, without special tokens; tokens are joined by spaces."""
    return _plain(trace, labels.written_strip(trace), first_written(trace), None)


def _plain(trace: Trace, strip: str, start: int, end: int | None) -> str:
    tokens = trace.tokens[strip]
    written = zip(tokens.texts[start:end], tokens.special[start:end], strict=True)
    return " ".join(text for text, special in written if not special)


def distribution(trace: Trace, step: Step) -> Array:
    """Log-probabilities of the row that a step was taken from: [vocab], float64.

    Raises:
        BadClaim: the network writes nothing.
    """
    if trace.logits is None:
        raise BadClaim(reason=_("this network generates nothing"))
    logits = trace.logits[step.computed[1] - 1].astype(np.float64)
    highest = logits.max()
    log_probabilities: Array = logits - highest - np.log(np.exp(logits - highest).sum())
    return log_probabilities


def _id(runs: StepRuns, trace: Trace, text: str) -> int:
    ids = runs.ids(trace)
    if text not in ids:
        raise BadClaim(reason=_("the vocabulary has no token “{text}”", text=text))
    return ids[text]


def _weight(runs: StepRuns, trace: Trace, subject: Subject) -> float:
    attention, head = runs.attention(trace, subject.head)
    return float(attention.head(head)[row(trace, attention, subject.query), column(trace, attention, subject.key)])


def _score(runs: StepRuns, trace: Trace, subject: Subject) -> float:
    attention, head = runs.attention(trace, subject.head)
    if attention.scores is None:
        raise BadClaim(reason=_("the run recorded no scores"))
    return float(attention.scores[head, row(trace, attention, subject.query), column(trace, attention, subject.key)])


def _entropy(runs: StepRuns, trace: Trace, subject: Subject) -> float:
    attention, head = runs.attention(trace, subject.head)
    return float(entropies(attention.head(head)[row(trace, attention, subject.query)]))


def _mean(runs: StepRuns, trace: Trace, subject: Subject) -> float:
    attention, head = runs.attention(trace, subject.head)
    return float(weight_on(trace, attention, [column(trace, attention, subject.key)])[head])


def _value(runs: StepRuns, trace: Trace, subject: Subject) -> float:
    attention, head = runs.attention(trace, subject.head)
    if attention.v is None:
        raise BadClaim(reason=_("the run recorded no values"))
    return float(relative_lengths(attention.v[head])[column(trace, attention, subject.key)])


def _of_head(runs: StepRuns, trace: Trace, subject: Subject, final: Trace | None = None) -> float:
    """A measure of a head in one run.

    Raises:
        BadClaim: it has no meaning there.
    """
    attention, head = runs.attention(trace, subject.head)
    if subject.name == "similarity":
        value = teacher_forcing.similarity(attention, (final or trace).at(attention.site))[head]
    else:
        value = of_site(trace, attention, (subject.name,))[head, 0]
    if np.isnan(value):
        raise BadClaim(reason=_("the measure “{measure}” is not defined for this head", measure=subject.name))
    return float(value)


def _probability(runs: StepRuns, trace: Trace, subject: Subject) -> float:
    log_probabilities = distribution(trace, trace.steps[step_of(trace, subject.at)])
    return float(np.exp(log_probabilities[_id(runs, trace, subject.name)]))


def _rank(runs: StepRuns, trace: Trace, subject: Subject) -> float:
    log_probabilities = distribution(trace, trace.steps[step_of(trace, subject.at)])
    return float((log_probabilities > log_probabilities[_id(runs, trace, subject.name)]).sum() + 1)


def _log_probability(_runs: StepRuns, trace: Trace, _subject: Subject) -> float:
    return float(sum(distribution(trace, step)[step.chosen.id] for step in trace.steps))


def _loss(_runs: StepRuns, trace: Trace, subject: Subject) -> float:
    lost = teacher_forcing.surprise(trace, teacher_forcing.fed(trace).ids)
    return float(lost[max(subject.number - 1, 0) :].mean())


_NUMBERS: Mapping[str, Callable[[StepRuns, Trace, Subject], float]] = {
    "weight": _weight,
    "score": _score,
    "entropy": _entropy,
    "mean": _mean,
    "value": _value,
    "measure": _of_head,
    "probability": _probability,
    "rank": _rank,
    "log-probability": _log_probability,
    "loss": _loss,
}


def _measure(runs: StepRuns, subject: Subject, scope: Scope) -> float:
    """A measure of a head, as Explore and Training show it: all snapshots read what the finished model wrote."""
    if subject.name == "similarity" or scope.snapshot >= 0:
        final, trace = runs.fed(scope)
    else:
        final = trace = runs.run(scope)
    return _of_head(runs, trace, subject, final)


def _lens(runs: StepRuns, trace: Trace, subject: Subject) -> str:
    names = output_names(runs.spec)
    lens_ = lens(trace, runs.spec, runs.tensors(names), count=1)
    if not 0 <= subject.number < len(lens_.layers):
        raise BadClaim(reason=_("there is no layer {layer}: layers are counted from 0", layer=subject.number))
    position = trace.steps[step_of(trace, subject.at)].computed[1] - 1
    id_ = int(lens_.ids[subject.number, position, 0])
    return next(text for text, known in runs.ids(trace).items() if known == id_)
