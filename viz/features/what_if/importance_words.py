"""Words: what a target token depended on, by several methods side by side, and beside them where attention looked."""

import streamlit as st

from model.features.what_if.questions import Words
from viz.features.what_if import word_panels as panels
from viz.features.what_if.importance_run import request, token_choice
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import download, drawn_panels


def draw(page: Page) -> None:
    """Draws the methods for one target token."""
    effects = page.engine.ask(Words(request(page)))
    token = token_choice(effects, "words", whole=False) or 0
    drawn_panels.draw(page, panels.of_methods(page, effects, token), "matters-words")
    drawn_panels.draw(page, panels.of_agreement(effects, token), "matters-words-ranks")
    for sentence in panels.about_agreement(page, effects, token):
        st.caption(tokens.markdown(sentence))
    _what_attention_is_not()
    numbers = panels.of_numbers(effects, token)
    with st.expander(numbers.title, icon=":material/table:"):
        drawn_panels.draw_content(page, numbers, numbers.name)
        download.csv(panels.by_input(effects, token), page.trace, "words", effects.tokens[token], key="matters-words-csv")


def _what_attention_is_not() -> None:
    st.markdown(
        _(
            "**Attention is not explanation.** A weight says how much of a key’s value went into one head, not what the output "
            "needed it for: values can be short, other heads can carry the same word, and later layers can ignore it. Jain and "
            "Wallace (2019) found that attention often disagrees with other measures of importance, and that very different "
            "weights can give the same output. Wiegreffe and Pinter (2019) answer that this depends on what one calls an "
            "explanation: weights that were trained with the model are not arbitrary. So compare, as above, and test with an edit."
        )
    )
