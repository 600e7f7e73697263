"""Lectures as text: what is read, what is refused, and in which line."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import BadLecture
from viz.claims.line_parser import Unreadable
from viz.claims.subjects import Head, Named, Scope, Subject
from viz.features.lectures.script import claims, draft, library, parser
from viz.features.lectures.script.lecture import Lecture

FRONT = "---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: multi30k-de-en, reverse-digits\n---\n"
PIECES = [
    "\n---\n",
    "\n",
    "```\n",
    "view: /explore?",
    "expect: ",
    "point: ",
    "question: ",
    "answer: ",
    "option: ",
    '"a"',
    " → ",
    "head ",
    "4 ",
    "weight ",
    "output ",
    "= ",
    "with {",
    "} ",
    "snapshot ",
    "change ",
    ": ",
    "#",
    "# ",
    "\\ud800",
    "{",
    '"',
    "&edit=",
    "silence site=",
]
VIEW = "view: /explore?text=Ein+Hund.&head=3"


def read(*steps: str) -> Lecture:
    return parser.read(FRONT + "\n---\n".join(steps), "test.en")


def test_a_step_has_words_a_view_points_notes_and_a_question() -> None:
    found = read(
        f"# First\n## Lines\nSome *words*.\n\n{VIEW}\n"
        'point: cell after "<sos>" → "hund"#2 — look here\nnote: one\n  two\nnote: three\n'
        'question: Which?\nanswer: key head 4 "dog"\nexpect: output contains "dog"',
        f"{VIEW}\nMore.",
    )
    step = found.steps[0]
    assert (found.title, found.language, found.minutes, found.models) == ("T", "en", 5, ("multi30k-de-en", "reverse-digits"))
    assert (step.chapter, step.title, step.words, step.page, step.view.head) == ("First", "Lines", "Some *words*.", "explore", 3)
    assert step.view.model == "multi30k-de-en"
    assert (step.points[0].query, step.points[0].key) == (Named("<sos>", after=True), Named("hund", 2))
    assert (step.points[0].note, step.notes) == ("look here", "one two\n\nthree")
    assert step.question is not None
    assert step.question.subject == Subject("key", head=Head("", 4), query=Named("dog"))
    assert found.steps[1].chapter == "First"
    assert found.chapters == (("First", 0),)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("no front matter", 1, "first line must be ---"),
        ("---\ntitle: T\n", 1, "first line must be ---"),
        ("---\ntitle: T\nlanguage: en\nminutes: 5\n---\nwords", 5, "missing at the top of the file: models"),
        (FRONT.replace("minutes: 5", "minutes: soon") + "words", 1, "minutes must be a whole number"),
        (FRONT.replace("minutes: 5", "colour: red") + "words", 4, "colour: red"),
        (FRONT, 7, "the file has no steps"),
        (FRONT + "words\n---\n" * 1000, 1007, "too many steps: 1,?000; the limit is 500"),
    ],
)
def test_what_is_no_lecture_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(BadLecture, match=reason) as caught:
        parser.read(text, "x.en")
    assert caught.value.fields["line"] == line


@pytest.mark.parametrize(
    ("step", "line", "said"),
    [
        ("words alone", 7, "exactly one view: line; found: 0"),
        (f"{VIEW}\n{VIEW}", 8, "found: 2"),
        ("view: /nowhere?head=1", 7, "is not a page of the app"),
        ("view: javascript:alert(1)", 7, "is not a page of the app"),
        ("view: //[", 7, "is not a link"),
        ("view: /explore?head=-4", 7, "sets head to"),
        ("view: /explore?colour=red", 7, "unknown parameter “colour”"),
        (f"{VIEW}\nexpects: x", 8, "“expects:” is not an instruction"),
        (f"{VIEW}\nexpect: colour > 1", 8, "“colour” is not one of"),
        (f'{VIEW}\nexpect: weight head 1 "a" → > 1', 8, "column"),
        (f'{VIEW}\nexpect: output > "a"', 8, "“>” is not one of"),
        (f"{VIEW}\nexpect: log-probability = much", 8, "is not a number"),
        (f'{VIEW}\nexpect: with {{forbid nonsense=1}}: output = "a"', 8, "nonsense"),
        (f'{VIEW}\nexpect: change: output = "a"', 8, "change needs a number"),
        (f"{VIEW}\npoint: nose", 8, "“nose” is not one of"),
        (f"{VIEW}\nquestion: Why?", 8, "one answer: line"),
        (f"{VIEW}\nquestion: Why?\nanswer: output", 9, "at least two option: lines"),
        (f"{VIEW}\nquestion: Why?\nanswer: entropy 3", 9, "a question can ask for"),
    ],
)
def test_a_broken_line_is_named_and_left_out(step: str, line: int, said: str) -> None:
    found = read(step, VIEW)
    assert [problem.line for problem in found.problems][:1] == [line]
    assert said in found.problems[0].sentence
    assert len(found.steps) == 2


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a `<b>` <b> ``<i> ` <i>`` <i>", "a `<b>` \\<b> ``<i> ` <i>`` \\<i>"),
        ("` <b>", "` \\<b>"),
        ("`` <b> `", "`` \\<b> `"),
        ("`" * 200_000 + "<b>", "`" * 200_000 + "\\<b>"),
        ("` `` " * 50_000, "` `` " * 50_000),
    ],
    ids=["spans", "open", "unequal", "long", "many"],
)
def test_only_code_keeps_its_tags_and_time_is_linear(words: str, shown: str) -> None:
    assert parser.harmless(words) == shown


@settings(max_examples=25)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=25))
def test_any_text_is_a_lecture_or_refused_in_a_sentence(pieces: list[str]) -> None:
    with suppress(BadLecture):
        found = parser.read(FRONT + "".join(pieces), "x.en")
        assert [step.number for step in found.steps] == list(range(len(found.steps)))
        parts = draft.parts_of(FRONT + "".join(pieces))
        assert len(parts.steps) == len(found.steps)


@pytest.mark.parametrize("link", ["/?head=3", "http://127.0.0.1:8501/?head=3", "http://127.0.0.1:8501/explore?head=3", "?head=3"])
def test_a_link_may_be_copied_from_the_address_bar(link: str) -> None:
    step = read(f"view: {link}").steps[0]
    assert (step.page, step.view.head) == ("explore", 3)


def test_script_in_the_markdown_is_text() -> None:
    words = (
        read(f"{VIEW}\n<script>alert(1)</script> `<sos>` a < b $x < y$\n\n```\n<b>\n---\nview: x\n```\n<img src=x>").steps[0].words
    )
    assert "\\<script>alert(1)\\</script> `<sos>` a < b $x < y$" in words
    assert "```\n<b>\n---\nview: x\n```" in words
    assert "\\<img" in words


def test_scopes_come_before_a_subject() -> None:
    claim = claims.claim('change with {silence site=decoder.0.2.cross head=0,4}: probability "an" at 0 < -0.3', 1)
    assert claim.scope == Scope(edits="silence site=decoder.0.2.cross head=0,4", change=True)
    assert (claim.subject, claim.relation, claim.value) == (Subject("probability", "an", at=0), "<", "-0.3")
    assert claims.claim("snapshot 53: loss from 3 > 1", 1).scope == Scope(snapshot=53)
    with pytest.raises(Unreadable, match="“:” is expected"):
        claims.claim('B output = "a"', 1)


def test_a_file_of_the_own_folder_replaces_a_bundled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "attention.en.md").write_text(FRONT + VIEW, encoding="utf-8")
    (tmp_path / "no text.md").write_bytes(b"\xff")
    monkeypatch.setenv(library.VARIABLE, str(tmp_path))
    assert library.load("attention.en").title == "T"
    assert "no text" not in library.files()
    with pytest.raises(BadLecture, match="there is no such file"):
        library.load("../attention.en")


@pytest.mark.parametrize(("data", "said"), [(b"\xff", "not UTF-8"), (b"a" * (2**20 + 1), "larger than 1 MB")])
def test_what_is_no_text_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(BadLecture, match=said):
        parser.decode(data, "x")


def test_no_words_of_a_bundled_lecture_name_a_shade() -> None:
    """A phone in the dark scheme drew the largest weights bright, and the words said that they are dark."""
    shade = re.compile(r"\b(?:dark|bright|light) cells?\b|dunkle|helle Zelle|[深浅淺]色", re.IGNORECASE)
    for path in sorted((Path(__file__).parents[4] / "lectures").glob("*.md")):
        assert shade.findall(path.read_text(encoding="utf-8")) == [], path.name
