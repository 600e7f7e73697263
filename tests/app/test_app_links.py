"""Links: what a session shows, its link opens; what a link asks for in vain is said, and something is shown all the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.engine.local import LocalEngine
from model.requests.questions import Question
from model.trace.types import Trace
from tests.app.visiting import EVERY_PAGE, PAGES, Visitor
from viz.url.view_state import ViewState, all_parameters

FULL = (
    "model=tiny&text=w5 w6 w7&decode=sample&max=7&begin=5,6&temperature=5.5&top_k=5000&top_p=0.02&seed=9007199254740991&beam=20&"
    "hypothesis=2&precision=bfloat16&site=encoder.0.1.self&head=1&query=2&key=3&cell=why&minus=mean&"
    "trail=encoder.0.0.self:0:1:1 encoder.0.1.self:1:2:3&rival=none&clock=computation&stage=encoder.0.1.self/weights&step=1&"
    "pad=12&silence=decoder.0.1.cross:1&edit=forbid kind=cross key=w5&off=1&lang=en&reading=mean&hide=special&"
    "against=decode=greedy&feed=first&big=1&snapshot=128&measure=near_diagonal&open=numbers heads&picture=lines&x=largest&y=next&"
    "color=entropy&size=matters&overlay=smooth column&share=0.25&row=2&corrupted=w4 w7&survey=tiny"
)
NUMBERS: dict[str, float] = (
    {"raw": 0, "max": 7, "temperature": 5.5, "top_k": 5000, "top_p": 0.02, "seed": 2**53 - 1}
    | {"beam": 20, "hypothesis": 2, "head": 1, "query": 2, "key": 3, "step": 1}
    | {"pad": 12, "big": 1, "snapshot": 128, "share": 0.25, "row": 2}
)
"""A link with every parameter, and the values in the state that are no texts. At their default: settings, target, and what this
model has not: a conversation."""

CROSS = "“Cross-attention, layer 2”"


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_a_copied_link_opens_the_same_view_on_every_page(stocked: Path, name: str) -> None:
    link = dict(each.split("=", 1) for each in FULL.split("&"))
    first = Visitor(name, **link)
    assert first.problems == []
    assert {p.name: first.view.value(p) for p in all_parameters()} == {"set": "", "target": "", "chat": ""} | link | NUMBERS
    assert first.url == link
    second = Visitor(name, **first.url)
    assert (second.view, second.problems) == (first.view, [])


def test_a_link_with_a_target_and_beams_opens_the_same_view(stocked: Path) -> None:
    query = {"model": "tiny", "text": "w5", "target": "w6 w7", "decode": "beam", "beam": "31", "site": "decoder.0.0.self"}
    first = Visitor(**query)
    assert (first.url, first.problems) == (query, [])
    assert Visitor(**first.url).view == first.view


def test_the_link_follows_what_is_chosen(stocked: Path) -> None:
    visitor = Visitor("masks", text="w4 w5")
    visitor.choose("site", "decoder.0.0.self")
    visitor.set("pad_to", 9)
    assert visitor.url == {"model": "tiny", "text": "w4 w5", "site": "decoder.0.0.self", "pad": "9"}
    visitor.type("text", "w7")
    assert visitor.url == {"model": "tiny", "text": "w7", "site": "decoder.0.0.self"}


def test_a_page_keeps_the_state_of_the_page_before(stocked: Path) -> None:
    visitor = Visitor(text="w4 w9", site="encoder.0.0.self", head="1")
    before = visitor.view
    visitor.app.query_params.clear()  # a click in the navigation drops the parameters
    visitor.go("masks")
    assert visitor.view == before
    assert visitor.url["text"] == "w4 w9"


def test_another_link_in_the_same_tab_replaces_the_state(stocked: Path) -> None:
    visitor = Visitor(text="w4 w9", head="1")
    visitor.app.query_params.clear()
    visitor.app.query_params["text"] = "w6"
    visitor.go("explore")
    assert visitor.view == ViewState(model="tiny", text="w6")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"model": "nope"}, "There is no usable model “nope” here. Showing “tiny” instead."),
        ({"model": "../tiny"}, "There is no usable model “../tiny” here. Showing “tiny” instead."),
        ({"site": "decoder.0.8.cross"}, f"This model has no “Cross-attention, layer 9”. Showing {CROSS} instead."),
        ({"site": "decoder.1.0.cross"}, f"This model has no “Cross-attention, pass 2, layer 1”. Showing {CROSS} instead."),
        ({"site": "encoder.0.0.cross"}, f"This model has no “Memory attention, layer 1”. Showing {CROSS} instead."),
        ({"head": "2"}, f"{CROSS} has 2 heads, so head 3 does not exist. Showing head 1."),
        ({"query": "9", "max": "4"}, f"{CROSS} has 4 rows in this run, so row 10 does not exist. No row is selected."),
        ({"query": "1", "key": "9"}, f"{CROSS} has 4 keys in this run, so key 10 does not exist. No cell is opened."),
        (
            {"decode": "beam", "beam": "2", "max": "3", "hypothesis": "40"},
            "There is no hypothesis 41: the search returned 2. Showing the best one.",
        ),
        ({"step": "9", "max": "4"}, "This run has 4 steps, so step 10 does not exist. Starting at the first."),
        (
            {"head": "-1"},
            "The link sets head to “-1”. Allowed: a whole number from 0 to 1,000,000,000. The default is used.",
        ),
        (
            {"top_p": "0"},
            "The link sets top_p to “0”. Allowed: a number from 0.01 to 1. The default is used.",
        ),
        (
            {"decode": "**x**"},
            "The link sets decode to “**x**”. Allowed: greedy, sample, beam. The default is used.",
        ),
        ({"colour": "<img>"}, "This link contains an unknown parameter “colour”, which was ignored."),
        (
            {"silence": "decoder.0.7.cross:0"},
            "This link silences heads that this model does not have (decoder.0.7.cross:0). No head was silenced.",
        ),
        (
            {"silence": "decoder.0.0.cross:5"},
            "This link silences heads that this model does not have (decoder.0.0.cross:5). No head was silenced.",
        ),
    ],
    ids=str,
)
def test_what_a_link_asks_for_in_vain_is_said_once_and_something_is_shown(stocked: Path, query: dict[str, str], said: str) -> None:
    visitor = Visitor(text="w4 w5", **query)
    assert visitor.problems == [said]
    assert visitor.drawn
    assert set(visitor.url) <= {"model", "text", "site", "max", "query", "decode", "beam"}
    visitor.go("step")
    assert visitor.problems == [], "what was said was said"
    assert visitor.drawn


@pytest.mark.parametrize("name", ["explore", "step"])
def test_a_link_opens_a_cell_to_its_arithmetic_until_another_page_is_opened(stocked: Path, name: str) -> None:
    visitor = Visitor(name, text="w4 w5 w6", query="1", key="2")
    said = " ".join(markdown.value for markdown in visitor.app.markdown)
    assert "How this weight was calculated" in said
    assert "recomputed in float64, largest difference" in said
    visitor.go("masks")
    assert "key" not in visitor.url
    visitor.go(name)
    assert "How this weight was calculated" not in " ".join(markdown.value for markdown in visitor.app.markdown)


def test_a_run_without_attention_is_answered_in_a_sentence(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = LocalEngine.ask

    def without_attention(engine: LocalEngine, question: Question[Any]) -> Any:
        found = answer(engine, question)
        return replace(found, attention={}) if isinstance(found, Trace) else found

    monkeypatch.setattr(LocalEngine, "ask", without_attention)
    for name in PAGES:
        assert Visitor(name).problems == ["This run contains no attention, so there is nothing to show here."]


def test_garbage_in_every_parameter_is_said_and_the_defaults_are_shown(stocked: Path) -> None:
    visitor = Visitor(
        **{
            parameter.name: "\x00<img src=x>{"
            for parameter in all_parameters()
            if parameter.name not in ("text", "target", "corrupted", "survey")
        }
    )
    assert len(visitor.problems) == len(all_parameters()) - 4
    assert visitor.drawn
    assert visitor.view == ViewState(model="tiny", text="w4 w5.")


def test_more_padding_than_there_are_positions_is_said(stocked: Path) -> None:
    visitor = Visitor("masks", text="w4 w5", pad="1000")
    assert len(visitor.problems) == 1
    assert "a number from 4, which is the number of source tokens, to 40" in visitor.problems[0]
    assert visitor.drawn
