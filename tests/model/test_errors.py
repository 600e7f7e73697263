"""Every error is one sentence that says what was asked, what was found, what is allowed and what to do."""

import json
import pickle
import re
from string import Formatter
from typing import Any

import pytest

from model import errors
from model.errors import HeadlightError


def subclasses(kind: type[HeadlightError]) -> list[type[HeadlightError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in subclasses(child))]


CLASSES = [kind for kind in subclasses(HeadlightError) if kind.__module__.startswith(errors.__name__)]
OWNERS = [kind for kind in CLASSES[1:] if "template" in vars(kind)]

SENTENCES: dict[str, tuple[dict[str, Any], str]] = {
    "TooManyTokens": (
        {"found": 1400, "allowed": 1000, "reason": "the model has no more positions"},
        "The longest text of this run has 1,400 tokens, but the limit is 1,000: the model has no more positions. Shorten it.",
    ),
    "TokenizerTooLarge": (
        {"path": "a/tokenizer.json", "allowed": 2147483648},
        "The tokenizer a/tokenizer.json needed more than the 2,147,483,648 bytes of memory that an external tokenizer "
        "may use, and was stopped. Shorten the text, or give token ids (--source-ids).",
    ),
    "TooLarge": (
        {"found": 2048.0, "allowed": 32.0},
        "The file or request is 2,048.0 MB, and this server accepts at most 32 MB.",
    ),
    "UnknownHead": (
        {"asked": 8, "site": "decoder.0.0.self", "last": 7},
        "There is no head 8 at decoder.0.0.self: its heads are numbered from 0 to 7.",
    ),
}
"""One sentence for each way in which numbers are written."""


def gaps(kind: type[HeadlightError]) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(kind.template) if name is not None}


def example(kind: type[HeadlightError]) -> HeadlightError:
    """An error of a class: a number where its template writes one, a sentence where it ends with one, else the name of the gap."""
    ends = "." if kind.template.endswith("}") else ""
    parts = Formatter().parse(kind.template)
    return kind(**{name: 1234 if form else f"the {name}{ends}" for _, name, form, _ in parts if name is not None})


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn, above = {}, dict[int, str]()
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ((?:│   |    )*)(├── |└── )?([A-Z]\w+)", line):
            depth = len(match[1]) // 4 + bool(match[2])
            above[depth] = match[3]
            drawn[match[3]] = above[depth - 1] if depth else "Exception"
    assert drawn == {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}


@pytest.mark.parametrize("name", SENTENCES)
def test_each_class_says_its_sentence(name: str) -> None:
    fields, sentence = SENTENCES[name]
    error = getattr(errors, name)(**fields)
    assert str(error) == sentence
    assert error.fields == fields


@pytest.mark.parametrize("kind", OWNERS, ids=lambda kind: kind.__name__)
def test_each_class_says_all_of_its_fields_in_sentences(kind: type[HeadlightError]) -> None:
    error = example(kind)
    assert all((f"{value:,}" if isinstance(value, int) else str(value)) in str(error) for value in error.fields.values())
    assert re.fullmatch(r"\S.*[.!?)]", str(error))  # the last thing may be a line to copy
    assert "  " not in str(error)


@pytest.mark.parametrize("kind", OWNERS, ids=lambda kind: kind.__name__)
def test_each_class_owns_a_template_and_lists_its_gaps(kind: type[HeadlightError]) -> None:
    listed = re.search(r"Fields: ((?:\w+, )*\w+)[.,]", kind.__doc__ or "")
    assert set(listed[1].split(", ") if listed else ()) == gaps(kind)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_class_says_something(kind: type[HeadlightError]) -> None:
    assert kind in OWNERS or kind.__subclasses__()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_sentence_is_one_line_whatever_it_quotes(kind: type[HeadlightError]) -> None:
    hostile = "a\nb\r\n\tc\u2028d\x0b{detail}{0}"
    sentence = str(kind(**dict.fromkeys(gaps(kind), hostile)))
    assert len(sentence.splitlines()) == 1
    assert "{detail}{0}" in sentence or not gaps(kind)


OF_STRIPS = [(kind, strip) for kind in OWNERS for strip in kind.of_strip]


@pytest.mark.parametrize(("kind", "strip"), OF_STRIPS, ids=lambda part: getattr(part, "__name__", part))
def test_what_is_said_of_a_strip_has_the_fields_of_its_class_and_is_said_everywhere(kind: type[HeadlightError], strip: str) -> None:
    fields = {**example(kind).fields, "strip": strip}
    for error in (kind(**fields), pickle.loads(pickle.dumps(kind(**fields))), errors.from_json(kind(**fields).to_json())):
        assert str(error) == str(error.on_page) == kind.of_strip[strip].format(**fields)
        assert {name for _, name, _, _ in Formatter().parse(kind.of_strip[strip]) if name is not None} == gaps(kind)
    assert str(kind(**{**fields, "strip": "memory"})) == kind.template.format(**fields), "a strip without a sentence of its own"


ON_SCREEN = [kind for kind in CLASSES if kind.on_screen]


@pytest.mark.parametrize("kind", ON_SCREEN, ids=lambda kind: kind.__name__)
def test_what_a_screen_says_instead_has_no_other_gaps_and_speaks_of_no_command_line(kind: type[HeadlightError]) -> None:
    assert {name for _, name, _, _ in Formatter().parse(kind.on_screen) if name is not None} <= gaps(kind)
    assert "--" not in kind.on_screen


def test_every_sentence_that_speaks_of_the_command_line_has_another_for_screens() -> None:
    assert [kind.__name__ for kind in CLASSES if "--" in kind.template and not kind.on_screen] == []


@pytest.mark.parametrize("kind", OWNERS, ids=lambda kind: kind.__name__)
def test_an_error_comes_back_from_json_and_from_another_process(kind: type[HeadlightError]) -> None:
    error = example(kind)
    for again in (errors.from_json(json.loads(json.dumps(error.to_json()))), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert (str(again), again.fields) == (str(error), error.fields)


def test_every_error_can_be_caught_as_one() -> None:
    assert all(
        issubclass(kind, HeadlightError)
        for kind in vars(errors).values()
        if getattr(kind, "__module__", "").startswith(errors.__name__) and isinstance(kind, type) and kind is not errors.Phrase
    )
