"""Bad input: each gives a picture or one clear sentence, token text is never markup, and the session goes on."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.conftest import SPEC
from tests.app.visiting import PAGES, Visitor
from tests.networks import save_checkpoint

EMPTY = r"The (source text|forced target) is empty\. Type at least one word.*\."
TOO_LONG = r"The (source text|target) has 6,000 characters, but the limit is 1,600\. Shorten it\."

SENTENCES = {
    "": EMPTY,
    "   \t\n ": EMPTY,
    "\u00a0\u3000\u2003": EMPTY,
    "w4 " * 2000: TOO_LONG,
}
"""What is refused, and the sentence that says why."""

PICTURES = [
    "w4",
    "neither of these is known",
    "der der der",
    "w4 w4 w4 w4 w4 w4",
    "😀 👩‍👩‍👧 🏳️‍🌈",
    "你好世界",
    "مرحبا بالعالم",
    "שלום w4 עולם",
    "e\u0301\u0302\u0303 \u0301",
    "a\x00b",
    "\x00",
    "\x01\x07\x1b[31m\x7f",
    "\u202ew4\u202c \u200b\ufeff",
    "\ufffe \U0010ffff",
    "</script><img src=x onerror=alert(1)>",
    "<b>bold</b>",
    "$x$ $$y$$",
    "**b** _i_ `c` ~~s~~ # h",
    ":red[x] :material/home: :smile:",
    "[a](http://example.org) ![b](http://example.org/b.png)",
    "<pad> <sos> <eos> <unk>",
    "{words} {0} %s",
    "a" * 1000,
]
"""What is drawn."""

TOGETHER = [" ".join(PICTURES[begin::5]) for begin in range(5)]
"""The same in five sentences, for pages other than Explore."""


def says_nothing_but_text(visitor: Visitor) -> None:
    """No element takes HTML, but for the style sheet and the SVG of the page itself."""
    for group in (visitor.app.markdown, visitor.app.caption):
        for element in group:
            assert not element.allow_html, element.value


def ends_well(visitor: Visitor, sentence: str | None) -> None:
    """A picture and no complaint; or, where a sentence is expected, that and at most the picture before it."""
    if sentence is None:
        assert visitor.problems == []
        assert visitor.drawn
    else:
        assert len(visitor.problems) == 1
        assert re.fullmatch(sentence, visitor.problems[0])
        assert visitor.stale or not visitor.drawn
    says_nothing_but_text(visitor)


def goes_on(visitor: Visitor) -> None:
    visitor.type("target", "")
    visitor.type("text", "w4 w5 w6")
    ends_well(visitor, None)


@pytest.mark.parametrize("field", ["text", "target"])
def test_whatever_is_typed_is_drawn(stocked: Path, field: str, subtests: pytest.Subtests) -> None:
    visitor = Visitor()
    for text in PICTURES:
        with subtests.test(text=ascii(text)):
            visitor.type(field, text)
            ends_well(visitor, None)
    goes_on(visitor)


@pytest.mark.parametrize(("text", "sentence"), SENTENCES.items(), ids=["empty", "blank", "wide blanks", "2,000 words"])
def test_what_cannot_run_is_refused_in_one_sentence(stocked: Path, text: str, sentence: str) -> None:
    visitor = Visitor()
    visitor.type("text", text)
    ends_well(visitor, sentence)
    goes_on(visitor)
    visitor.type("target", text)
    ends_well(visitor, sentence if text else None)
    goes_on(visitor)


@pytest.mark.parametrize("text", ["", "w4 " * 2000])
def test_the_last_picture_stays_below_the_sentence_that_refuses_a_text(stocked: Path, text: str) -> None:
    visitor = Visitor(text="w4 w5")
    assert not visitor.stale
    visitor.type("text", text)
    assert visitor.stale
    assert [word for word in visitor.tokens("source") if word.startswith("w")] == ["w4", "w5"]
    ends_well(visitor, SENTENCES[text])
    goes_on(visitor)
    assert not visitor.stale


@pytest.mark.parametrize("name", PAGES[1:])
def test_every_other_page_takes_the_same(stocked: Path, name: str) -> None:
    visitor = Visitor(name)
    for text in TOGETHER:
        visitor.type("text", text)
        assert visitor.view.text == text
        ends_well(visitor, None)
    for text in ("", "w4 " * 2000):
        visitor.type("text", text)
        ends_well(visitor, SENTENCES[text])
    goes_on(visitor)


def test_words_that_the_model_does_not_know_are_named(stocked: Path) -> None:
    visitor = Visitor()
    visitor.type("text", "w4 **fremd** w5 $x$")
    said = " ".join(caption.value for caption in visitor.app.caption)
    assert r"vocabulary" in said
    assert r"fremd" in said
    assert "**fremd**" not in said
    assert "$x$" not in said


def test_a_text_too_long_for_a_link_runs_but_its_link_says_so(shelf: Path) -> None:
    reads_more = replace(SPEC.stacks["encoder"], max_positions=400)
    save_checkpoint(shelf / "more", replace(SPEC, encoder=reads_more))
    visitor = Visitor()
    visitor.type("text", "a" * 5000)
    ends_well(visitor, None)
    copied = Visitor(**visitor.url)
    assert copied.drawn
    assert len(copied.problems) == 1
    assert "at most 4000 characters" in copied.problems[0]


def test_no_box_of_a_sentence_drops_what_is_too_long(stocked: Path) -> None:
    visitor = Visitor("compare", against="text=w4")
    assert [box.proto.max_chars for box in visitor.app.text_input] == [0] * 4
    visitor.type("text", "w4 " * 2000)
    ends_well(visitor, TOO_LONG)
    assert visitor.app.text_input(key="widget:text").value == "w4 " * 2000


def test_a_link_with_a_text_too_long_to_be_split_into_tokens_is_refused_in_one_sentence_and_stays_whole(stocked: Path) -> None:
    for field in ("text", "target"):
        visitor = Visitor(**{"text": "w4", field: "w4 " * 1000})
        ends_well(visitor, r"The (source text|target) has 3,000 characters, but the limit is 1,600. .*")
        visitor.choose("precision", "float32")  # every box is sent along
        assert getattr(visitor.view, field) == "w4 " * 1000
        goes_on(visitor)
