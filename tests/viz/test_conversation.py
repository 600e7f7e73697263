"""A conversation in the state of a page: what its link holds, what an act changes, and which run it asks for."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import torch

from model.engine.api import ModelInfo, Run
from model.engine.local import LocalEngine
from model.requests.inputs import Chat, Turn
from model.requests.request import Decoding, RunRequest
from model.tokenizers.chat import ChatTemplate
from tests import chats
from tests.chats import LONG
from viz.features.compare.view import second_side
from viz.features.print.run_archive import ArchivedCell, archive
from viz.url import links
from viz.url.links import DRAWN, NO_TURNS, conversing, opening
from viz.url.parsers import turns, written_turns
from viz.url.view_state import ViewState
from viz.widgets.conversation import changed

BEFORE = written_turns(chats.chat(*LONG).turns[:-1])
VIEW = ViewState(model="m", text=LONG[-1][1], chat=BEFORE, begin="5")


def info(chats_: bool, sampling: Decoding | None = None, positions: int = 99) -> ModelInfo:
    spec: dict[str, Any] = {"encoder": None, "decoder": {"vocab": 9}}
    return ModelInfo("m", "M", "", {}, ("Hi?",), 1, spec, positions, positions, chats=chats_, sampling=sampling)


def test_a_link_holds_the_turns_and_asks_for_their_run() -> None:
    assert links.read(links.write(VIEW)) == (VIEW, [])
    assert VIEW.request().source == chats.chat(*LONG)
    assert replace(VIEW, chat=NO_TURNS).request().source == Chat((Turn("user", LONG[-1][1]),))
    assert replace(VIEW, chat="off").request().source == LONG[-1][1]
    assert replace(VIEW, text=" ").request().source == " ", "an empty sentence is said to be empty, as everywhere"


def test_a_model_with_a_template_converses_and_another_continues_a_text() -> None:
    assert conversing(info(True), ViewState(text="x")).chat == NO_TURNS
    assert conversing(info(True), ViewState(text="x", chat="off")).chat == "off"
    assert conversing(info(False), replace(VIEW, raw=1)) == replace(VIEW, chat="", raw=0)
    assert second_side(VIEW.changed(against="model=other")).chat == ""
    assert second_side(VIEW.changed(against="decode=beam")).chat == BEFORE


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (info(True, Decoding("sample", temperature=0.6, top_k=50, top_p=0.9)), Decoding("sample", 60, 5, 0, 0.6, 50, 0.9)),
        (info(True), Decoding()),
        (info(False), DRAWN),
        (info(False, Decoding("sample", temperature=0.7)), Decoding("sample", DRAWN.max_length, temperature=0.7)),
        (info(False, positions=20), replace(DRAWN, max_length=20)),
        (info(True, positions=20), Decoding(max_length=20)),
    ],
)
def test_a_model_opens_with_the_sampling_of_its_file(asked: ModelInfo, found: Decoding) -> None:
    assert opening(asked, ViewState()).decoding() == found
    assert opening(asked, ViewState(method="beam")).method == "beam"


def test_another_model_does_not_sample_because_the_last_one_did() -> None:
    translator = replace(info(False), spec={"encoder": {}, "decoder": {"vocab": 9}})
    own = info(True, Decoding("sample", temperature=0.6), 30)
    for last in (own, info(False), info(False, positions=20), info(True, positions=20)):
        left = replace(opening(last, ViewState()), text=None)
        assert opening(translator, left, [translator, last]).decoding() == Decoding()
        assert opening(info(False), left, [last]).decoding() == DRAWN
        asked = replace(left, temperature=1.7)
        assert opening(translator, asked, [last]).decoding() == asked.decoding(), "what the visitor chose stays"
    assert opening(translator, ViewState(max_length=5)).max_length == 5, "and what a link says"


USER, SYSTEM = LONG[1], LONG[0]


@pytest.mark.parametrize(
    ("act", "reply", "said", "text"),
    [
        ({"say": "More?"}, "Yes.", (*LONG, ("assistant", "Yes.")), "More?"),
        ({"say": "More?"}, " \n", LONG[:-1], "More?"),
        ({"say": "More?", "anew": True}, "Yes.", (SYSTEM,), "More?"),
        ({"say": "First", "at": 0}, "Yes.", (SYSTEM,), "First"),
        ({"say": "Third", "at": 2}, "Yes.", LONG[:-1], "Third"),
        ({"system": "Be long."}, "Yes.", (("system", "Be long."), *LONG[1:-1]), LONG[-1][1]),
        ({"system": "  "}, "Yes.", LONG[1:-1], LONG[-1][1]),
    ],
)
def test_an_act_changes_the_turns(act: dict[str, Any], reply: str, said: Any, text: str) -> None:
    view = VIEW.changed(**changed(VIEW, act, reply))
    assert turns(view.chat) == tuple(Turn(*each) for each in said)
    assert view.text == text
    assert view.begin == "", "what was chosen for the sentence before does not continue another"


@pytest.mark.parametrize(
    "act",
    [{}, {"say": " "}, {"say": 3}, {"say": "x", "at": 9}, {"say": "x", "at": -1}, {"raw": "1"}, {"system": None}, {"text": "x"}],
)
def test_what_a_browser_makes_up_changes_nothing(act: dict[str, Any]) -> None:
    assert changed(VIEW, act, "Yes.") == {}


def test_a_conversation_of_the_most_turns_takes_no_more() -> None:
    full = replace(VIEW, chat=written_turns([Turn("user", "a"), Turn("assistant", "b")] * 99))
    assert len(turns(full.chat)) == 198
    assert changed(full, {"say": "x"}, "Yes.") == {}
    assert changed(replace(full, chat=written_turns([Turn("user", "a"), Turn("assistant", "b")] * 98)), {"say": "x"}, "Yes.")


def test_the_raw_text_is_a_choice_of_the_link() -> None:
    assert changed(VIEW, {"raw": True}, "") == {"raw": 1}


@pytest.mark.slow
def test_an_archive_holds_the_turns_the_template_and_the_link(tmp_path: Path) -> None:
    chats.save(tmp_path / "talks", chats.CHATML)
    engine = LocalEngine(tmp_path, torch.device("cpu"))
    for view in (
        ViewState(model="talks", text="a", chat=BEFORE, max_length=2),
        ViewState(model="talks", text="a", chat="off", max_length=2),
    ):
        trace = engine.ask(Run(view.request()))
        site = next(iter(trace.attention))
        with zipfile.ZipFile(io.BytesIO(archive(trace, ArchivedCell(site), makers=()))) as packed:
            files = {name.partition("/")[2]: packed.read(name) for name in packed.namelist()}
        assert RunRequest.from_json(json.loads(files["request.json"])) == replace(view.request(), precision="float32")
        link = dict(parse_qsl(urlsplit(files["link.txt"].decode().strip()).query))
        assert links.read(link)[0].request() == view.request()
        assert (ChatTemplate(chats.CHATML).fingerprint in files["model.md"].decode()) == view.chats
