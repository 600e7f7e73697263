"""Claims about what a head does over many texts: the numbers of the survey that lies beside the step's model."""

from collections.abc import Callable, Mapping

from model.errors import BadClaim
from model.features.survey import tables
from model.features.survey.questions import StoredSurvey
from model.features.survey.roles import CRITERIA
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from viz.claims.kinds import ClaimKind, head, one_of
from viz.claims.line_parser import Parts
from viz.claims.runs import StepRuns
from viz.claims.subjects import Scope, Subject
from viz.i18n.translate import _


def surveyed(runs: StepRuns) -> Survey:
    """The stored survey of a step's model.

    Raises:
        BadClaim: there is none, or it is of other weights.
        BadTexts: it cannot be read.
    """
    data = runs.engine.ask(StoredSurvey(runs.view.model))
    if not data:
        raise BadClaim(reason=_("there is no stored survey of the model “{model}”", model=runs.view.model))
    survey = tables.from_bytes(data, "survey.parquet")
    if survey.about.fingerprint != runs.run().model.get("fingerprint"):
        raise BadClaim(reason=_("the stored survey of the model “{model}” belongs to other weights", model=runs.view.model))
    return survey


def number(runs: StepRuns, subject: Subject, scope: Scope) -> float:
    """The value of a subject over many texts.

    Raises:
        BadClaim: there is no such survey or head, the measure has no meaning there, or a scope asks for another run.
    """
    survey, row = _placed(runs, subject, scope)
    value = _NUMBERS[subject.kind](survey, row, subject.name)
    if value != value:
        raise BadClaim(reason=_("the measure “{measure}” is not defined for this head", measure=subject.name))
    return value


def roles(runs: StepRuns, subject: Subject, scope: Scope) -> str:
    """The names of the roles of a head, joined by commas; empty: it has none.

    Raises:
        BadClaim: as for `number`.
    """
    survey, row = _placed(runs, subject, scope)
    return ", ".join(role.criterion.role for role in survey.roles[row])


def _placed(runs: StepRuns, subject: Subject, scope: Scope) -> tuple[Survey, int]:
    """The survey, and the place of the head in it."""
    if scope != Scope():
        raise BadClaim(reason=_("a survey describes the model as it is: write no scope before it"))
    survey, trace = surveyed(runs), runs.run()
    attention, number_of_head = runs.attention(trace, subject.head)
    heads = survey.statistics.heads
    if (selection := (str(attention.site), number_of_head)) not in heads:
        raise BadClaim(reason=_("the survey has no head {head} in {site}", head=number_of_head, site=selection[0]))
    return survey, heads.index(selection)


def _mean(survey: Survey, row: int, measure: str) -> float:
    column = list(MEASURES).index(measure)
    return float(survey.statistics.mean[row, column]) if survey.statistics.count[row, column] else float("nan")


def _share(survey: Survey, row: int, measure: str) -> float:
    """Of 100 texts, those in which the measure reaches the threshold of its role."""
    cross = survey.statistics.heads[row][0].rpartition(".")[2] == "cross"
    criterion = next((other for other in CRITERIA if other.measure == measure and other.cross in (None, cross)), None)
    if criterion is None:
        known = ", ".join(dict.fromkeys(other.measure for other in CRITERIA if other.cross in (None, cross)))
        raise BadClaim(
            reason=_("no role uses the measure “{measure}” there; measures with roles: {there}", measure=measure, there=known)
        )
    return 100 * survey.statistics.share_above(row, measure, criterion.threshold)


_NUMBERS: Mapping[str, Callable[[Survey, int, str], float]] = {"survey": _mean, "share": _share}


def _measure(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=one_of(parts, _("measure"), tuple(MEASURES)), head=parts.head())


CLAIMS = {
    "survey": ClaimKind(_measure, number),
    "share": ClaimKind(_measure, number),
    "roles": ClaimKind(head, roles, is_text=True),
}
"""As `viz.feature.Feature.claims`."""
