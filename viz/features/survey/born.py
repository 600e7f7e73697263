"""The film of a survey: one measure of every head in the snapshots of a training, with its spread over the texts."""

import numpy as np
import streamlit as st

from model.errors import BadTexts
from model.features.survey.film import SurveyFilm
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.trace.types import Site
from viz.features.survey import figures
from viz.features.survey.stored import stored_film
from viz.i18n.translate import _, error_message, number
from viz.labels import alt_text, tokens
from viz.labels import measures as measure_labels
from viz.session.state import Page
from viz.widgets.cards import chart, heading, say


def film_of(page: Page, measure: str) -> SurveyFilm | None:
    """The film of the model's survey; None: there is none of this measure, or none that can be read."""
    try:
        film = stored_film(page.engine, page.info.name) if page.info.snapshots and measure else None
    except BadTexts as error:
        say(error_message(error))
        return None
    return film if film is not None and len(film.steps) > 1 else None


def draw(page: Page, survey: Survey, film: SurveyFilm, selected: int, measure: str) -> None:
    """Draws the measure that the survey shows of its selected head in every snapshot."""
    column, title = list(MEASURES).index(measure), measure_labels.titles()[measure]
    complete = [row for row in range(len(film.heads)) if film.count[:, row, column].all()]
    if not page.view.big:
        subtitle = _("“{measure}” in every snapshot, mean and standard deviation over the texts", measure=title)
        st.html(heading(_("During training"), subtitle))
    if not complete:
        st.caption(_("No head has this measure in every snapshot."))
        return
    shown_head = survey.statistics.heads[selected]
    film_row = (
        film.heads.index(shown_head) if shown_head in film.heads and film.heads.index(shown_head) in complete else complete[0]
    )
    names = [tokens.site(Site.parse(site), head) for site, head in (film.heads[row] for row in complete)]
    mean, spread = film.mean[:, complete, column], film.std[:, complete, column]
    chosen = complete.index(film_row)
    fastest = int(np.argmax(np.abs(np.diff(mean[:, chosen]))))
    fields: dict[str, object] = {"head": names[chosen], "before": film.steps[fastest], "after": film.steps[fastest + 1]}
    for name, values in (("mean", mean), ("std", spread)):
        fields |= {f"{name}{at}": number(float(values[fastest + at, chosen]), ".2f") for at in (0, 1)}
    fields |= {"count": int(film.count[:, film_row, column].min()), "texts": film.about.texts}
    text = _(
        "{head}: largest change between steps {before:,} and {after:,}, from {mean0} ± {std0} to {mean1} ± "
        "{std1}. Texts: {count:,} ({texts}).",
        **fields,
    )
    st.caption(tokens.markdown(text))
    figure = figures.film(film.steps, mean, spread, names, chosen, title, page.dark)
    words = alt_text.curves([names[chosen]], [list(film.steps)], [mean[:, chosen]])
    chart(figure, (page.trace, title), fills=True, key="survey-film-chart", alt=f"{text} {words}")
