"""A model with a chat template on every page: a conversation is drawn, continued, refused and left."""

import json
from pathlib import Path
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState

from model.requests.inputs import Turn
from tests import chats
from tests.app.visiting import EVERY_PAGE, PAGES, Visitor
from tests.chats import CHATML, NO_SYSTEM
from viz.url.parsers import turns


def told(visitor: Visitor) -> dict[str, Any]:
    """What the conversation's component was told."""
    (part,) = [part for part in visitor.app.get("bidi_component") if part.proto.component_name == "headlight.conversation"]
    found: dict[str, Any] = json.loads(part.proto.json)
    return found


def does(visitor: Visitor, **act: object) -> None:
    """Acts in the component, as its script reports it."""
    (part,) = [part for part in visitor.app.get("bidi_component") if part.proto.component_name == "headlight.conversation"]
    states = visitor.app._tree.get_widget_states()  # AppTest has no way to act on a component
    states.widgets.append(WidgetState(id=part.proto.id, json_value=json.dumps({"said": act})))
    visitor.app._run(states)
    visitor._run()


def test_every_page_draws_a_conversation(shelf: Path) -> None:
    chats.save(shelf / "talks", CHATML)
    visitor = Visitor(model="talks", text="the dog?", max="3")
    for page in EVERY_PAGE:
        visitor.go(page)
        assert visitor.problems == [], page
        assert visitor.drawn or page not in PAGES, page


def test_what_if_begins_with_a_word_of_the_newest_turn_and_not_of_the_template(shelf: Path) -> None:
    chats.save(shelf / "talks", CHATML)
    visitor = Visitor("whatif", model="talks", text="the dog play?", max="3")
    (switch,) = [one for one in visitor.app.checkbox if "hidden" in one.label]
    hidden = switch.label.rpartition("“")[2].rstrip("”").lstrip("␣")
    assert hidden in "the dog play?", switch.label
    assert hidden not in CHATML, "so short a token may be anything, so it must not be one of the template"


def test_what_is_said_next_follows_the_reply_and_the_link_says_all(shelf: Path) -> None:
    chats.save(shelf / "talks", CHATML)
    visitor = Visitor(model="talks", text="the dog?", max="3")
    first = told(visitor)
    assert [turn["text"] for turn in first["turns"]] == ["the dog?"]
    assert visitor.url["chat"] == "[]"
    does(visitor, say="And then?")
    answered = (Turn("user", "the dog?"), *([Turn("assistant", first["reply"])] if first["reply"].strip() else []))
    assert (turns(visitor.view.chat), visitor.view.text) in ((answered, "And then?"), ((), "And then?"))
    assert turns(visitor.url.get("chat", "")) == turns(visitor.view.chat)
    does(visitor, system="Be short.")
    assert told(visitor)["system"] == "Be short."
    does(visitor, raw=True)
    assert told(visitor)["raw"].startswith("<|im_start|>system\nBe short.<|im_end|>\n")
    again = Visitor(**visitor.url)
    assert told(again) == told(visitor)


def test_a_conversation_that_the_template_refuses_is_said_and_can_be_mended(shelf: Path) -> None:
    chats.save(shelf / "talks", NO_SYSTEM)
    visitor = Visitor(model="talks", text="the dog?", max="3")
    does(visitor, system="Be short.")
    assert len(visitor.problems) == 1
    assert "chat template refuses it: “System role not supported”" in visitor.problems[0]
    assert told(visitor)["reply"] == "", "nothing is still to come"
    does(visitor, system="")
    assert visitor.problems == []


def test_a_text_is_continued_where_the_conversation_is_switched_off(shelf: Path) -> None:
    chats.save(shelf / "talks", CHATML)
    visitor = Visitor(model="talks", text="the dog", max="3")
    visitor.app.toggle(key="widget:converses").set_value(False)
    visitor._run()
    assert visitor.url["chat"] == "off"
    assert visitor.tokens("source")[0] != "<|im_start|>"
    visitor.type("text", "a dog")
    assert visitor.problems == []
    visitor.app.toggle(key="widget:converses").set_value(True)
    visitor._run()
    assert visitor.tokens("source")[0] == "<|im_start|>"


def test_the_turns_of_a_link_to_a_model_without_a_template_are_ignored_in_words(shelf: Path) -> None:
    chats.save(shelf / "plain", "")
    visitor = Visitor(model="plain", text="the dog", chat='[["user","Hi"],["assistant","Ho"]]', max="2")
    assert visitor.problems == ["This model has no chat template, so the earlier turns of this link were ignored."]
    assert "chat" not in visitor.url


def test_the_sampling_of_a_file_is_used_and_told_and_greedy_is_one_click(shelf: Path) -> None:
    chats.save(shelf / "talks", CHATML, do_sample=True, temperature=0.6, top_p=0.9)
    visitor = Visitor(model="talks")
    view = visitor.view
    assert (view.method, view.temperature, view.top_k, view.top_p) == ("sample", 0.6, 50, 0.9)
    assert any("temperature 0.60, top k 50, top p 0.90" in caption.value for caption in visitor.app.sidebar.caption)
    visitor.press("greedy")
    assert visitor.view.method == "greedy"
    visitor.press("as-set")
    assert visitor.view.method == "sample"
