"""The Streamlit script: navigation, sidebar, the sentence, the run; then the chosen page draws it."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from model.errors import HeadlightError
from model.trace import Attention, Trace
from viz import sidebar
from viz.links import View
from viz.page import Page, current_view, say, settle, the_engine
from viz.sentence import sentence_box
from viz.texts import _, sentence
from viz.views import explore, masks, positions, step


def main() -> None:
    """One script run."""
    st.set_page_config(page_title="Headlight", page_icon=str(sidebar.ICON), layout="wide")
    prepared: list[Page] = []

    def draws(show: Callable[[Page], None]) -> Callable[[], None]:
        return lambda: [show(page) for page in prepared] and None

    chosen = st.navigation(
        [
            st.Page(draws(explore.show), title=_("Explore"), url_path="explore", icon=":material/grid_view:", default=True),
            st.Page(draws(step.show), title=_("Step through"), url_path="step", icon=":material/step:"),
            st.Page(draws(masks.show), title=_("Masks"), url_path="masks", icon=":material/visibility_off:"),
            st.Page(draws(positions.show), title=_("Positions"), url_path="positions", icon=":material/waves:"),
        ]
    )
    if page := _prepare():
        prepared.append(page)
    chosen.run()


def _prepare() -> Page | None:
    """Everything above a page, and what the page is to draw; None where a sentence says why there is nothing."""
    view, problems = current_view()
    models = the_engine().models()
    usable = [info for info in models if not info.problem]
    problems += [info.problem for info in models if info.problem]
    if not usable:
        problems.append(_("There is no model here that can be used: put a checkpoint folder into checkpoints/ and reload the page."))
    elif view.model not in ("", *(info.name for info in usable)):
        gaps = {"asked": view.model[:40], "shown": usable[0].name}
        problems.append(_("There is no usable model “{asked}” here; “{shown}” is shown instead.", **gaps))
    page = None
    for info in [i for i in usable if i.name == view.model] or usable[:1]:
        view = replace(view, model=info.name, text=info.examples[0] if view.text is None else view.text)
        settle(view)
        sidebar.draw(info, usable, view)
        sentence_box(info)
        try:
            trace = the_engine().run(view.request())
        except HeadlightError as error:
            problems.append(sentence(error))
            continue
        sidebar.status(trace)
        attention, view = _select(trace, view, problems)
        settle(view)
        page = Page(the_engine(), info, view, trace, attention, view.head, dark=st.context.theme.type == "dark")
    for problem in problems:
        say(problem)
    return page


def _select(trace: Trace, view: View, problems: list[str]) -> tuple[Attention, View]:
    """The site, head, row and step that the view asks for, as far as this run has them; what it has not is added to `problems`."""
    attention = (trace.of("decoder", "cross") or tuple(trace.attention.values()))[-1]
    try:
        attention = trace.at(view.site) if view.site else attention
        attention.head(view.head)
    except HeadlightError as error:
        problems.append(sentence(error))
        view = replace(view, head=0)
    rows, steps = attention.weights.shape[1], len(trace.steps)
    if view.query >= rows or view.step >= steps:
        gaps = {"row": view.query + 1, "rows": rows, "step": view.step + 1, "steps": steps}
        problems.append(_("Row {row} or step {step} was asked for, but there are {rows} rows and {steps} steps; none is selected.", **gaps))
        view = replace(view, query=-1, step=-1)
    return attention, replace(view, site=str(attention.site))


main()
