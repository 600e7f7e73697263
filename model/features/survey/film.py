"""The film of a survey: the same texts measured in every snapshot of a training, so that a role can be seen being born."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet

from model.errors import BadSurvey, phrase
from model.features.survey import tables
from model.features.survey.questions import MeasuredTexts, MeasureTexts, none_ran, part
from model.features.survey.statistics import Statistics, added, empty
from model.features.survey.survey import BATCH, About, begun
from model.features.survey.texts import Texts
from model.measures.catalogue import MEASURES
from model.requests.snapshots import at_step
from model.requests.validation import read as validated
from model.trace.types import Array

ABOUT = b"headlight.film"
COLUMNS = ("count", "mean", "std")


@dataclass(frozen=True, eq=False)
class SurveyFilm:
    """Statistics of the same texts in every snapshot. Axes: step, head (of all sites, in the order in which they ran), measure.

    Attributes:
        about: of what; the fingerprint is that of the last snapshot.
        steps: [step], updates of the weights after which each snapshot was kept.
        heads: site and number of each head.
        count: [step, head, measure], texts in which the measure has a meaning.
        mean, std: [step, head, measure], the mean over these texts and its standard deviation.
    """

    about: About
    steps: tuple[int, ...]
    heads: tuple[tuple[str, int], ...]
    count: Array
    mean: Array
    std: Array


def filmed(
    ask: Callable[[MeasureTexts], MeasuredTexts],
    question: MeasureTexts,
    texts: Texts,
    steps: Sequence[int],
    on_text: Callable[[int], None] = lambda done: None,
) -> SurveyFilm:
    """Measures the texts in every snapshot.

    Args:
        ask: answers a question, as an engine does.
        question: the model, without a step.
        steps: those of its snapshots.
        on_text: called with the number of texts measured so far, in all snapshots.

    Raises:
        CannotSurvey: none of the texts could be run.
        HeadlightError: whatever the engine refuses.
    """
    about, statistics = begun(question, texts).about, list[Statistics]()
    for step in steps:
        so_far, problems = empty({}), list[Mapping[str, Any]]()
        for first in range(0, len(texts.items), BATCH):
            asked = part(replace(question, model=at_step(question.model, step)), texts.items[first : first + BATCH], first)
            measured = ask(asked)
            about = replace(about, fingerprint=measured.fingerprint)
            problems += measured.problems.values()
            if measured.sites:
                so_far = added(so_far if so_far.sites else empty(measured.sites), measured, first)
            on_text(len(statistics) * len(texts.items) + first + len(measured.values))
        if not so_far.texts:
            raise none_ran(len(texts.items), problems)
        statistics.append(so_far)
    arrays = (np.stack([getattr(so_far, name) for so_far in statistics]) for name in ("count", "mean", "deviation"))
    return SurveyFilm(about, tuple(steps), tuple(statistics[-1].heads), *arrays)


def write(film: SurveyFilm, path: Path) -> None:
    """Writes a film as Parquet: one row for each step, head and measure.

    Raises:
        OSError: it cannot be written there.
    """
    rows = [(step, site, head, name) for step in film.steps for site, head in film.heads for name in MEASURES]
    columns = {name: [row[column] for row in rows] for column, name in enumerate(("step", "site", "head", "measure"))}
    table = arrow.table(columns | {name: getattr(film, name).ravel() for name in COLUMNS})
    metadata = {ABOUT: json.dumps(asdict(film.about), ensure_ascii=False)}
    tables.write_whole(table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata}), path)


def from_bytes(data: bytes, name: str) -> SurveyFilm:
    """The film in the bytes of a file of this name.

    Raises:
        BadSurvey: they hold none.
    """
    try:
        table = parquet.read_table(BytesIO(data))
        about = validated(About, json.loads((table.schema.metadata or {})[ABOUT]), "survey.about")
        steps = tuple(dict.fromkeys(map(int, table["step"].to_pylist())))
        heads = tuple(dict.fromkeys(zip(table["site"].to_pylist(), map(int, table["head"].to_pylist()), strict=True)))
        arrays = (table[name].to_numpy().reshape(len(steps), len(heads), len(MEASURES)) for name in COLUMNS)
        return SurveyFilm(about, steps, heads, *arrays)
    except (OSError, arrow.ArrowException, KeyError, ValueError, TypeError) as error:
        raise BadSurvey(file=name, reason=phrase("it is not a survey of snapshots that this version wrote")) from error
