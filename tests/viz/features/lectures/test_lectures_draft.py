"""Writing a lecture: its parts, changed one by one, leave everything else as it was."""

from model.requests.edits import write_edits
from viz.features.lectures.script import draft, library, parser
from viz.features.lectures.script.draft import Draft
from viz.url.view_state import ViewState


def test_a_bundled_lecture_comes_back_as_it_was() -> None:
    text = library.text_of(library.files()["attention.en"])
    parts = draft.parts_of(text)
    assert parts.text == text
    assert len(parts.steps) == len(parser.read(text, "x").steps)


def test_steps_are_added_moved_replaced_and_removed() -> None:
    begun = draft.begin("My\nlecture", "de", "m")
    assert begun.front == "title: My lecture\nlanguage: de\nminutes: 15\nmodels: m"
    full = begun.added("a", "m").added("b", "n").added("c", "n")
    assert full.front.endswith("models: m, n")
    assert full.moved(2, -1).steps == ("a", "c", "b")
    assert full.moved(0, -1).steps == full.moved(2, 1).steps == ("a", "b", "c")
    assert full.replaced(1, "x").without(0).steps == ("x", "c")
    assert draft.parts_of(full.text) == full


def test_a_step_shows_its_view_again() -> None:
    view = ViewState(
        model="m", text="Ein Hund & eine Katze; #1", head=3, edits="forbid key=hund; silence site=decoder.0.2.cross", big=1
    )
    text = draft.step_of("explore", view, "Ein Hund", "Words.")
    step = draft.begin("T", "en", "m").added(text, "m").lecture("x").steps[0]
    assert (step.title, step.words, step.page) == ("Ein Hund", "Words.", "explore")
    assert (step.view.text, step.view.head, step.view.big) == ("Ein Hund & eine Katze; #1", 3, 0)
    assert write_edits(step.view.all_edits()) == view.edits


def test_code_and_empty_steps_do_not_disturb_the_parts() -> None:
    text = Draft("title: T\nlanguage: en\nminutes: 1\nmodels: m", ("```\n---\n```\nview: /explore", "view: /step")).text
    assert draft.parts_of(text.replace("\n---\nview: /step", "\n---\n\n---\nview: /step")).steps == (
        "```\n---\n```\nview: /explore",
        "view: /step",
    )
