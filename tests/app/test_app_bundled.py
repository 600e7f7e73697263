"""Every page with every checkpoint that comes with the app, on the sentence that it opens with."""

import pytest

from model.engine.local import CHECKPOINTS
from tests.app.visiting import PAGES, Visitor

BUNDLED = tuple(sorted(folder.name for folder in CHECKPOINTS.iterdir() if (folder / "spec.json").is_file()))
FILMS = {name for name in BUNDLED if (CHECKPOINTS / name / "snapshots").is_dir()}


def test_there_are_checkpoints_and_films() -> None:
    assert {"multi30k-de-en", "reverse-digits"} <= set(BUNDLED)
    assert "reverse-digits" in FILMS


@pytest.mark.parametrize("model", BUNDLED)
def test_every_page_draws_it(model: str) -> None:
    visitor = Visitor(model=model, max="12")
    for page in PAGES:
        visitor.go(page)
        assert visitor.problems == [], page
        assert visitor.drawn, page
    visitor.go("whatif")
    assert visitor.problems == []
    assert visitor.drawn >= 2, "with its example of an edit and without"
    visitor.go("checkpoint")
    assert visitor.problems == []
    (shares,) = [table.value for table in visitor.app.dataframe if "percent of all" in table.value]
    assert shares["percent of all"].sum() == pytest.approx(1, abs=0.002), "each is rounded to 0.1 %"
    assert f"{shares['parameters'].sum():,}" == next(each.value for each in visitor.app.metric if each.label == "parameters")
    tied = "Counted once, because they are the same numbers: embedding (decoder), output layer (decoder)."
    assert any(caption.value == tied for caption in visitor.app.caption) == (model == "captions-lm")
    visitor.go("training")
    assert visitor.problems == []
    assert visitor.drawn, "a model without snapshots shows the film of another one"
    walk = Visitor("step", model=model, max="12", clock="computation")
    assert walk.problems == []
    assert walk.scene("network")


def test_a_sentence_for_another_model_is_opened_there_in_one_click() -> None:
    visitor = Visitor(model="multi30k-de-en", text="Two children are sitting on a bench.")
    said = [text.value.replace("\\", "") for text in visitor.app.markdown]
    assert any("Most of these words are unknown to this model. “English → Chinese” reads English." in text for text in said)
    visitor.press("open-reader")
    assert (visitor.url["model"], visitor.url["text"]) == ("tatoeba-en-zh", "Two children are sitting on a bench.")
    assert not any("are unknown to this model" in text.value for text in visitor.app.markdown)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("captions-lm", "An end token belongs to it."),
        ("induction", "No start or end token belongs to it."),
        ("multi30k-de-en", "A start token and an end token belong to it."),
    ],
)
def test_inside_says_which_tokens_a_model_adds(model: str, said: str) -> None:
    visitor = Visitor("step", model=model, clock="computation")
    sentences = [text.value.replace("\\", "") for text in visitor.app.markdown]
    assert f"The text is split into tokens. {said}" in sentences


def test_the_film_of_another_model_says_whose_sentence_it_is() -> None:
    visitor = Visitor("training", model="tatoeba-en-zh")
    assert "on its own example" in visitor.app.info[0].value
    assert not any("your sentence" in text.value for text in (*visitor.app.caption, *visitor.app.info))
