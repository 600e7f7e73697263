"""Runs of the training film: each snapshot with the same source and target, and freely; one after the other, with progress."""

import math
from dataclasses import replace

import streamlit as st

from model.engine.api import ModelInfo, Run
from model.errors import HeadlightError
from model.requests.request import Decoding, RunRequest
from model.requests.snapshots import at_step
from viz.features.training.metrics import Frame
from viz.i18n.translate import _, error_message
from viz.session.background_calls import Pending
from viz.session.state import Page, update
from viz.url.view_state import another_model

MOST_FRAMES = 48
"""Most snapshots shown; of more, some are left out, and a sentence says so."""

SPARE = 8
"""Tokens that a snapshot may generate beyond the target's length: an untrained network would never end."""


MOST_CELLS = 2**24
"""Most weights of all snapshots together that are sent to the browser, a byte each."""


def too_long(page: Page) -> str:
    """Why there is no film of this sentence; empty if there is one."""
    count = len(_shown(page.info.snapshots))
    cells = count * sum(math.prod(attention.weights.shape) for attention in page.trace.attention.values())
    if cells <= MOST_CELLS:
        return ""
    fields = {"millions": cells / 1e6, "most": MOST_CELLS / 1e6}
    return _(
        "The training film of this sentence would need {millions:.0f} million weights, but the limit is {most:.0f} million. "
        "Shorten the sentence.",
        **fields,
    )


def frames(page: Page) -> tuple[list[Frame], list[str]]:
    """The frames, and a sentence for each snapshot that failed to run. Equal requests come from the engine's cache."""
    steps = _shown(page.info.snapshots)
    done, problems = list[Frame](), list[str]()
    if len(steps) < len(page.info.snapshots):
        fields = {"shown": len(steps), "count": len(page.info.snapshots)}
        problems.append(_("This training has {count} snapshots; {shown} of them are shown, evenly spaced.", **fields))
    for number, step in enumerate(steps):
        try:
            done.append(_frame(page, step))
        except Pending:
            fields = {"number": number + 1, "count": len(steps)}
            st.progress(number / len(steps), text=_("Running snapshot {number} of {count} …", **fields))
            raise
        except HeadlightError as error:
            reason = error_message(error)
            problems.append(_("The snapshot at step {step:,} was skipped. {reason}", step=step, reason=reason))
    return done, problems


def _shown(steps: tuple[int, ...]) -> tuple[int, ...]:
    every = math.ceil(len(steps) / MOST_FRAMES)
    return tuple(dict.fromkeys((*steps[::every], *steps[-1:])))


def _frame(page: Page, step: int) -> Frame:
    """One snapshot with the tokens of the page's run, and freely."""
    name = at_step(page.info.name, step)
    request = replace(page.view.request(), model=name)
    if page.trace.logits is None:
        return Frame(step, page.engine.ask(Run(request)), None)
    return Frame(step, page.engine.ask(Run(_fed(page, request))), page.engine.ask(Run(_free(page, request))))


def _fed(page: Page, request: RunRequest) -> RunRequest:
    """Request to run on exactly the tokens of the finished model's run. A language model reads them as its source."""
    assert page.trace.logits is not None
    rows, nothing = len(page.trace.logits), Decoding(max_length=0)
    if "target" in page.trace.tokens:
        return replace(request, target=page.trace.tokens["target"].ids[:rows], decoding=nothing, begin=())
    return replace(request, source=page.trace.tokens["source"].ids[:rows], decoding=nothing, begin=())


def _free(page: Page, request: RunRequest) -> RunRequest:
    """Request to run without a target, with greedy decoding."""
    strip = page.trace.tokens.get("target")
    written = len(strip) if strip else max(len(page.trace.steps), 1)
    return replace(request, target=None, begin=(), decoding=Decoding(max_length=min(written + SPARE, page.info.max_target, 1000)))


def switch(info: ModelInfo, text: str | None = None, **fields: str | int) -> None:
    """Switches to the film of another model.

    Args:
        text: the sentence; None: the model's first example.
        fields: what was chosen in its film, as fields of `viz.url.view_state.ViewState`.
    """
    update(model=info.name, **{**another_model(), "text": text, **fields})
