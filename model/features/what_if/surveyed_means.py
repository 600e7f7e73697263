"""The mean context vectors in the survey that lies beside a model: what an edit can put in the place of a head."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load

from model.errors import CannotChange, phrase
from model.trace.types import Array, Site

FILE = "survey.parquet"
"""Name of a model's survey in its folder."""

FILM = "survey-film.parquet"
"""Name of the film of a survey over the model's snapshots, in its folder."""

ABOUT, CONTEXTS = b"headlight.survey", b"headlight.contexts"
"""Where the metadata of the file say what it is of, and where they hold the vectors, as safetensors."""


@dataclass(frozen=True, eq=False)
class SurveyedMeans:
    """The mean context vectors over the texts of a survey.

    Attributes:
        texts: name of the texts.
        count: how many there are.
        contexts: by site [head, head_dim]; each text weighs the same.
    """

    texts: str
    count: int
    contexts: Mapping[Site, Array]


def surveyed_means(folder: Path | None, fingerprint: str) -> SurveyedMeans:
    """The mean context vectors of a model.

    Args:
        folder: of the model; None: it has none.
        fingerprint: of its weights.

    Raises:
        CannotChange: there is no survey of these weights, or it holds no vectors.
    """
    path = None if folder is None else folder / FILE
    if path is None or not path.is_file():
        raise CannotChange(name="mean", reason=phrase("this model has no stored survey: make one with python -m model survey"))
    # A tenth of a second, and only for who asks for a survey.
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        metadata = parquet.read_schema(path).metadata
        survey, data = json.loads(metadata[ABOUT]), metadata[CONTEXTS]
        about = survey["about"]
        # means over other weights, or over runs that were edited, would not be this network's
        if about["fingerprint"] != fingerprint or about["edits"]:
            raise CannotChange(name="mean", reason=phrase("the stored survey belongs to other weights, or to edited runs"))
        contexts = {Site.parse(site): array for site, array in load(data).items()}
        return SurveyedMeans(str(about["texts"]), int(survey["texts"]), contexts)
    except (OSError, arrow.ArrowException, SafetensorError, KeyError, ValueError, TypeError) as error:
        reason = phrase("the stored survey contains no mean vectors: make it again with python -m model survey")
        raise CannotChange(name="mean", reason=reason) from error
