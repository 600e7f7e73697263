"""What a cell writes, as a drawing asks for it: the numbers of the engine in words, and errors as sentences."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.applications import Starlette

from model.engine.api import ModelInfo
from model.engine.scheduling.queue import SESSION, Session
from model.features.circuit.cell_words import cell_words
from model.features.circuit.sums import CellWords, CellWrites
from model.requests.edits import read_edits
from model.requests.questions import Question
from model.trace.types import Array
from tests.pages import open_view, words
from tests.runs import SPECS, request, traced
from tests.viz.test_views_step import RealEngine, made
from viz.canvas.wire.transport import unpack
from viz.features.circuit.cell_words import said as cell_words_said
from viz.i18n.translate import number
from viz.session import cell_route
from viz.session.patient_engine import CachedEngine, NonBlockingEngine
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.explore import reading

CROSS = "decoder.0.1.cross"


@dataclass
class WritingEngine(RealEngine):
    """Says what the cells of its run write, and notes in which session it was asked."""

    sessions: list[str] = field(default_factory=list)

    def models(self) -> tuple[ModelInfo, ...]:
        spec = self.trace.model["spec"]
        return (replace(super().models()[0], spec=spec, recorded=False),)

    def answer(self, question: Question[Any]) -> Any:
        if isinstance(question, CellWrites):
            self.sessions.append(SESSION.get().id)
            return cell_words(self.found, self.trace, question)
        return super().answer(question)


def engine(edits: str = "", name: str = "paper") -> WritingEngine:
    found, trace = made(name)
    if edits:
        trace = traced(found, replace(request(SPECS[name]), edits=read_edits(edits)))
    return WritingEngine(trace=trace, found=found)


def page(found: WritingEngine, site: str = CROSS, head: int = 1, waits: bool = False) -> Page:
    kind = CachedEngine if waits else NonBlockingEngine
    session = Session(f"visitor-{id(found)}", "192.0.2.1")
    view = ViewState(model="tiny", text="w4 w5 w6", site=site, head=head, reading="writes")
    return Page(kind(found, session), found.models()[0], view, found.trace, found.trace.at(site), head, False)


def drawn(shown: Page) -> tuple[dict[str, Any], dict[str, Array]]:
    """The scene of the selected head's cells."""
    return unpack(reading.selected_head(shown, reading.of_page(shown))["cells"])


def asked(address: str) -> httpx.Response:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app=Starlette(routes=[cell_route.ROUTE]))
        async with httpx.AsyncClient(transport=transport, base_url="http://headlight") as client:
            return await client.get(address)

    return asyncio.run(get())


def test_a_cell_says_the_tokens_that_the_engine_names() -> None:
    found = engine()
    header, blobs = drawn(page(found))
    assert blobs["exact"].shape == found.trace.at(CROSS).weights.shape[1:]
    answer = asked(f"{header['writes']}?query=1&key=2")
    expected = cell_words(found.found, found.trace, CellWrites(page(found).view.request(), CROSS, 1, 1, 2))
    form = "+.2f" if abs(expected.values).max() >= 0.1 else "+.4f"
    assert answer.json() == {
        "up": [[text, number(value, form)] for text, value in expected.up],
        "down": [[text, number(value, form)] for text, value in expected.down],
    }
    assert answer.json()["up"]
    assert answer.headers["cache-control"] == "no-store"
    assert found.sessions == [f"visitor-{id(found)}/cell"], "it never replaces a run of the page"


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ((1.5, 0.104, -0.2), ["+1.50", "+0.10", "−0.20"]),
        ((1.5, 0.004, -2e-6), ["+1.50", "+4·10⁻³", "−2·10⁻⁶"]),
        ((0.0123, 0.0004, -0.05), ["+0.0123", "+0.0004", "−0.0500"]),
    ],
)
def test_a_number_that_is_not_0_is_not_written_as_0(values: tuple[float, ...], written: list[str]) -> None:
    found = CellWords(CROSS, 0, 0, 0, (1, 2, 3), ("a", "b", "c"), np.array(values))
    said = cell_words_said(found)
    assert [text for _token, text in (*said["up"], *said["down"])] == written


def test_equal_pages_get_equal_scenes_and_other_heads_other_addresses() -> None:
    found = engine()
    address = drawn(page(found))[0]["writes"]
    assert drawn(page(found))[0]["writes"] == address
    assert drawn(page(found, head=0))[0]["writes"] != address
    assert "writes" not in drawn(page(found, waits=True))[0], "a page that waits runs nothing"


@pytest.mark.parametrize("place", ["query=1", "query=1&key=-1", "query=1&key=x", "query=1&key=99999999999", ""])
def test_a_question_that_names_no_cell_is_refused(place: str) -> None:
    address = drawn(page(engine()))[0]["writes"]
    assert asked(f"{address}?{place}").status_code == 400
    assert asked(f"{cell_route.PATH}/somebody?query=1&key=1").status_code == 404


def test_what_cannot_be_known_is_one_sentence() -> None:
    own = engine()
    address = drawn(page(own))[0]["writes"]
    assert "a number from 0 to" in asked(f"{address}?query=1&key=999").json()["error"]
    edited = engine(f"skip-sublayer at={CROSS}")  # each lives on: a session is named by its engine
    assert "skip-sublayer" in asked(f"{drawn(page(edited))[0]['writes']}?query=1&key=2").json()["error"]
    whole = engine()
    masked = drawn(page(whole, "decoder.0.0.self"))[0]["writes"]
    assert asked(f"{masked}?query=0&key=2").json() == {"error": "The weight is 0, so this cell adds nothing."}


def test_heads_that_write_no_token_say_so_and_show_their_weights() -> None:
    found = engine()
    assert "What it writes" in words(open_view("explore", found, site=CROSS, reading="writes"))
    said = words(open_view("explore", found, site="encoder.0.0.self", reading="writes"))
    assert "A head of the encoder writes no token directly" in said
    assert "Showing the weights of the selected head instead" in said
    silent = engine(name="encoder alone")
    site = str(next(iter(silent.trace.attention)))
    assert "This model generates no tokens" in words(open_view("explore", silent, site=site, reading="writes"))


def test_a_chosen_cell_opens_no_calculation() -> None:
    app = open_view("explore", engine(), site=CROSS, head="1", query="1", key="2", reading="writes")
    assert not [each for each in app.get("segmented_control") if "panel shows" in str(each)]
    assert "".join(app.query_params["key"]) == "2"
    app.selectbox(key="widget:reading").set_value("head").run()
    assert "key" not in app.query_params, "another view does not open its calculation by itself"
