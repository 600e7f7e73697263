"""The panels of the feature Circuit: the graph of all heads, why a cell has its score, and what a token is made of."""

import pandas as pd

from model.features.circuit.sums import Why, Writes
from viz.features.circuit import page as circuit
from viz.features.circuit import why, writes
from viz.i18n.translate import join_sentences
from viz.panels import Bars, NotDrawable, Panel, Scene, Table
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.explore import panels as explore


def panels(page: Page, _link: ViewState) -> list[Panel]:
    """The graph, with the edges of at least the view's share, and the heads.

    Raises:
        HeadlightError: the graph is not known.
    """
    scene, words = circuit.graph(page, page.engine.ask(circuit.question(page)))
    return [Panel("circuit", circuit.title(), Scene("Circuit", scene), words, paper=tuple), *explore.of_run(page)]


def of_score(page: Page, query: int, key: int) -> list[Panel]:
    """The score of a cell as a table: parts of the query × parts of the key, with sums.

    Raises:
        HeadlightError: it is not known.
    """
    score_sum = page.engine.ask(Why(page.view.request(), str(page.attention.site), page.head, query, key, why.compared(page)))
    texts = why.cell_texts(page, score_sum)
    down, across, values = why.with_sums(score_sum)
    frame = pd.DataFrame(values, index=pd.Index(down, name=""), columns=list(across))
    table = Table(frame, len(frame) - 1, decimals=2)
    return [Panel("why", why.title(score_sum, texts), table, join_sentences(why.sentences(score_sum, texts)))]


def of_token(page: Page) -> list[Panel]:
    """The logit of the step's token as bars: the strongest parts, the others, and their sum.

    Raises:
        HeadlightError: it is not known.
        NotDrawable: the run generated no token.
    """
    if reason := writes.reason_against(page):
        raise NotDrawable(reason)
    logit_sum = page.engine.ask(Writes(page.view.request(), writes.token(page), writes.rival(page)))
    names, values = writes.strongest(logit_sum)
    bars = Bars(names, values, len(values) - 1)
    return [Panel("writes", writes.title(logit_sum), bars, writes.meaning(logit_sum))]
