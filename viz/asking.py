"""Models that can run once somebody answers the questions that their files leave open."""

from collections.abc import Sequence

from model.engine.api import ModelInfo
from model.errors import EngineAway, UnknownModel
from viz import sidebar
from viz.links import View
from viz.page import my_engine, settle
from viz.views import checkpoint_questions


def asked_here(view: View) -> bool:
    """Draws the open questions of the model that `view` names; returns False if there are none."""
    try:
        asked = my_engine().describe(view.model, view.parsed_settings()) if view.model else None
    except (UnknownModel, EngineAway):  # while the host is away, its last list of models is known
        return False
    if asked is None or not _waits(asked):
        return False
    settle(view)
    sidebar.models({asked.name: asked.title} | {each.name: each.title for each in my_engine().models() if not each.problem})
    checkpoint_questions.ask_here(my_engine(), view)
    return True


def name_others(others: Sequence[ModelInfo]) -> None:
    """Lists in the sidebar the models that cannot be used as they are."""
    waiting = [each.name for each in others if _waits(each)]
    sidebar.waiting(waiting, [each.name for each in others if each.name not in waiting])


def _waits(info: ModelInfo) -> bool:
    return info.problem.get("error") == "OpenQuestions"
