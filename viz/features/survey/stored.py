"""The surveys that lie in the folders of models."""

import streamlit as st

from model.engine.api import Engine
from model.features.survey import film, tables
from model.features.survey.film import SurveyFilm
from model.features.survey.questions import StoredSurvey
from model.features.survey.survey import Survey


def stored(engine: Engine, model: str) -> Survey | None:
    """The survey in a model's folder; None: there is none.

    Raises:
        BadTexts: it cannot be read.
    """
    data = engine.ask(StoredSurvey(model))
    return read(data, "survey.parquet") if data else None


def stored_film(engine: Engine, model: str) -> SurveyFilm | None:
    """The film of a survey in a model's folder; None: there is none.

    Raises:
        BadTexts: it cannot be read.
    """
    data = engine.ask(StoredSurvey(model, film=True))
    return film.from_bytes(data, "survey-film.parquet") if data else None


@st.cache_resource(max_entries=8, show_spinner=False)
def read(data: bytes, name: str) -> Survey:
    """The survey in a file of this name, read once.

    Raises:
        BadSurvey: it holds none.
    """
    return tables.from_bytes(data, name)
