"""A page on made-up runs, for tests of views: an engine without a network, and the page that a script run would make."""

import json
from dataclasses import dataclass, field
from html import unescape
from importlib import import_module
from typing import Any, cast

import numpy as np
from streamlit.testing.v1 import AppTest

from model.engine.api import Describe, Explain, Export, Inspect, Listing, ModelInfo, Models, Receive, Run, Tensors, Texts
from model.errors import BadSetting, CannotMeasure, UnknownModel, UnknownTensor
from model.inspection.report import Inspection
from model.requests.questions import Answer, Question
from model.requests.request import RunRequest
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace
from tests import traces
from tests.patience import HANG_S
from viz.canvas.wire.transport import unpack
from viz.features import FEATURES
from viz.i18n import translate
from viz.session.state import Page, get_view_state, session_language, store_view, sync_url

ENGINES: dict[str, "MadeUpEngine"] = {}
"""Engines by name: a script run by AppTest finds its engine here."""


@dataclass
class MadeUpEngine:
    """Answers with one trace, or its padded form; remembers what it was asked for."""

    trace: Trace = field(default_factory=lambda: traces.translation(layers=1, heads=2))
    spec: dict[str, Any] = field(default_factory=lambda: {"encoder": {"positions": "learned"}, "decoder": {"positions": "learned"}})
    max_source: int = 30
    wobble: float = 1e-6
    asked: list[RunRequest] = field(default_factory=list)
    tables: dict[str, Array] = field(default_factory=dict)

    def ask(self, question: Question[Answer]) -> Answer:
        return cast(Answer, self.answer(question))

    def answer(self, question: Question[Any]) -> Any:
        match question:
            case Models():
                return Listing("nowhere", self.models())
            case Describe():
                known = {info.name: info for info in self.models()}
                if question.model and question.model not in known:
                    raise UnknownModel(asked=question.model, there=", ".join(known))
                return known.get(question.model, self.models()[0])
            case Inspect():
                return Inspection("Made up.", self.spec, 1, (), ())
            case Run(request):
                self.asked.append(request)
                return self.run(request)
            case Tensors():
                return self.tensors(question.names)
            case Texts():
                return self.texts(question)
            case Export():
                return b""
            case Receive():
                raise UnknownModel(asked=question.name, there="made-up")
            case Explain():
                return self.explain(question)
        raise CannotMeasure(reason="this run was made up")

    def models(self) -> tuple[ModelInfo, ...]:
        languages = {"source": "German", "target": "English"}
        return (ModelInfo("made-up", "German → English", "", languages, (), 1, self.spec, self.max_source, 30),)

    def run(self, request: RunRequest) -> Trace:
        count = (request.source_pad_to or 0) - len(self.trace.tokens["source"])
        if request.source_pad_to and not 0 <= count <= self.max_source - len(self.trace.tokens["source"]):
            raise BadSetting(name="source_pad_to", found=request.source_pad_to, allowed=f"from 12 to {self.max_source}")
        return traces.padded(self.trace, count, self.wobble) if count > 0 else self.trace

    def explain(self, question: Explain) -> Explanation:
        raise UnknownTensor(asked=f"attention/{question.site}/q", there="a made-up run without queries")

    def tensors(self, names: tuple[str, ...]) -> dict[str, Array]:
        if inside := [name for name in names if name.startswith(("rotation/", "biases/")) and name not in self.tables]:
            raise UnknownTensor(asked=inside[0], there="a made-up network without positions in attention")
        rng = np.random.default_rng(1)
        made_up = {name: rng.normal(size=(30, 16)).astype(np.float32) for name in names}
        return {name: self.tables.get(name, made_up[name]) for name in names}

    def texts(self, question: Texts) -> tuple[str, ...]:
        return tuple(f"word{id_}" for id_ in question.ids)


def page(engine: MadeUpEngine, dark: bool = False) -> Page:
    """What `viz/main.py` would hand to a view now."""
    view = get_view_state()[0]
    attention = engine.trace.at(view.site) if view.site else list(engine.trace.attention.values())[-1]
    return Page(engine, engine.models()[0], view, engine.trace, attention, view.head, dark)


def run_view(view: str, engine: str, dark: bool = False) -> None:
    """The script of a view's test: draws the page of `viz.views.VIEW`, or of a feature, with an engine of ENGINES."""
    from tests import pages

    pages.show(view, engine, dark)


def show(view: str, engine: str, dark: bool) -> None:
    """What `viz/main.py` does around a view."""
    translate.speak(session_language())
    name = f"viz.{'features' if view in FEATURES else 'views'}.{view}"
    module = import_module(f"{name}.page" if hasattr(import_module(name), "__path__") else name)
    module.show(page(ENGINES[engine], dark))
    store_view(get_view_state()[0])
    sync_url()


def open_view(view: str, engine: MadeUpEngine, dark: bool = False, **query: str) -> AppTest:
    """The page of a view after its first run, opened with a link that has the parameters `query`.

    Raises:
        AssertionError: an exception reached the page.
    """
    ENGINES[view] = engine
    app = AppTest.from_function(run_view, kwargs={"view": view, "engine": view, "dark": dark}, default_timeout=HANG_S)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def figures(app: AppTest) -> list[dict[str, Any]]:
    """The plotly figures of a page, as the browser gets them, from top to bottom."""
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def scenes(app: AppTest) -> dict[str, tuple[dict[str, Any], dict[str, Array]]]:
    """The scenes of the drawings of a page by the drawing's key, header and blobs, from top to bottom."""
    return {part.proto.id.split("-", 2)[2]: unpack(part.proto.bytes) for part in app.get("bidi_component")}


def words(app: AppTest) -> str:
    """Everything that a page says in Markdown, HTML, captions and messages."""
    groups: list[Any] = [app.markdown, app.caption, app.warning, app.info]
    said = [element.value for group in groups for element in group]
    return "\n".join((*said, *(unescape(element.proto.body) for element in app.get("html"))))


def plain_words(app: AppTest) -> str:
    """The same as a reader sees it: without the signs that keep a token from being read as Markdown."""
    return words(app).replace("\\", "")
