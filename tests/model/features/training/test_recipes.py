"""Recipes: read whole and checked before anything is trained."""

from collections.abc import Callable
from pathlib import Path

import pytest

from model.errors import BadSetting, UnknownModel
from model.features.training import recipes
from model.features.training.corpora import Parallel
from model.features.training.recipes import Side
from model.requests.network import AttentionSpec, StackSpec

BUNDLED = sorted(path.stem for path in recipes.FOLDER.glob("*.toml"))


def test_the_bundled_recipe_is_the_reference_architecture_with_one_pass() -> None:
    recipe = recipes.load("multi30k-de-en")
    assert recipe.name == "multi30k-de-en"
    german = Side("German", "spacy-de", pieces=7853, skipped_joins=0.1)
    assert recipe.sides == {"source": german, "target": Side("English", "spacy-en", 2)}
    assert recipe.corpus == Parallel("{split}.de", "{split}.en", "train", "val", recipe.data["origin"])
    spec = recipe.spec([7853, 5893])
    attention = AttentionSpec(heads=8, head_dim=32)
    stack = StackSpec(vocab=7853, d_model=256, layers=3, attention=attention, hidden=512, max_positions=100)
    assert spec.encoder == stack
    assert spec.decoder == StackSpec(vocab=5893, d_model=256, layers=3, attention=attention, hidden=512, max_positions=100)
    assert spec.suppressed == (0, 1, 2)
    assert spec.dropout == recipe.optimisation.phases[-1].dropout


@pytest.mark.parametrize("name", BUNDLED)
def test_every_bundled_recipe_loads_by_name_and_by_path(name: str) -> None:
    assert recipes.load(name) == recipes.load(str(recipes.FOLDER / f"{name}.toml"))
    assert recipes.load(name).examples


def test_the_description_of_the_checkpoint_is_that_of_the_recipe() -> None:
    recipe = recipes.load("multi30k-de-en")
    info = recipe.info([11, 12])
    assert (info.name, info.title, info.summary, info.examples) == (recipe.name, recipe.title, recipe.summary, recipe.examples)
    assert info.languages == {"source": "German", "target": "English"}
    assert info.data == recipe.data
    assert info.spec == recipe.spec([11, 12])


@pytest.mark.parametrize("name", ["nothing", "nothing.toml", "", "../recipes"])
def test_an_unknown_recipe_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        recipes.load(name)
    assert str(caught.value) == f"No model is called “{name}”. Available: the recipes {', '.join(BUNDLED)}."


def written(tmp_path: Path, edit: Callable[[str], str]) -> str:
    text = (recipes.FOLDER / "multi30k-de-en.toml").read_text(encoding="utf-8")
    changed = edit(text)
    assert changed != text
    path = tmp_path / "mine.toml"
    path.write_text(changed, encoding="utf-8")
    return str(path)


def value(line: str) -> Callable[[str], str]:
    """Replaces the line of the same name."""
    name = line.split(" = ")[0]

    def edit(text: str) -> str:
        return "".join(line + "\n" if old.startswith(f"{name} = ") else old for old in text.splitlines(keepends=True))

    return edit


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (value("seed = -1"), "recipe mine.toml.optimisation.seed: “-1” is not accepted. Allowed: a whole number from 0"),
        (
            value('precision = "float8"'),
            "recipe mine.toml.optimisation.precision: “float8” is not accepted. Allowed: float32, bfloat16",
        ),
        (
            value("epochs = 0"),
            "recipe mine.toml.optimisation.phases[0].epochs: “0” is not accepted. Allowed: a whole number from 1",
        ),
        (
            value("sentences_per_batch = 0"),
            "recipe mine.toml.optimisation.sentences_per_batch: “0” is not accepted. Allowed: a whole number",
        ),
        (
            value("warmup_steps = 0"),
            "recipe mine.toml.optimisation.warmup_steps: “0” is not accepted. Allowed: a whole number from 1",
        ),
        (
            value("learning_rates = [1.0e-4]"),
            "learning_rates: “[0.0001]” is not accepted. Allowed: two: at the beginning and at the end",
        ),
        (
            value("average = 1.0"),
            "recipe mine.toml.optimisation.average: “1.0” is not accepted. Allowed: a number from 0.0 to 0.999999",
        ),
        (
            value("dropout = 1"),
            "recipe mine.toml.optimisation.phases[0].dropout: “1.0” is not accepted. Allowed: a number from 0.0 to 0.99",
        ),
        (value("patience = true"), "recipe mine.toml.optimisation.patience: “True” is not accepted. Allowed: a whole number"),
        (
            value('split = "spacy-xx"'),
            "recipe mine.toml.source.split: “spacy-xx” is not accepted. Allowed: spacy-de, spacy-en, words",
        ),
        (value("pieces = -1"), "recipe mine.toml.source.pieces: “-1” is not accepted. Allowed: a whole number from 0 to 1,000,000"),
        (value("pieces = 0"), "skipped_joins: “0.1” is not accepted. Allowed: left out where no pieces are learned"),
        (value("pieces = 900\nmin_freq = 3"), "min_freq: “3” is not accepted. Allowed: left out where pieces are learned"),
        (
            value('dropout = 0.1\nkeeps = "first"'),
            "recipe mine.toml.optimisation.phases[0].keeps: “first” is not accepted. Allowed: best, last",
        ),
        (value("train = 3"), "recipe mine.data.train: “3” is not accepted. Allowed: a string"),
        (value("d_model = 0"), "spec.decoder.d_model: “0” is not accepted. Allowed: a whole number from 1"),
        (
            lambda text: text.replace("hidden", "hiden"),
            "spec.decoder has no field “hiden”. Allowed: vocab, d_model",
        ),
        (
            lambda text: text.replace("[source]", "[parts]"),
            "recipe mine.toml has no field “parts”. Allowed: name, title",
        ),
        (
            lambda text: text.replace("title = ", "titel = "),
            "recipe mine.toml has no field “titel”. Allowed: name, title",
        ),
        (lambda text: text.replace("[source]", "[source"), "recipe mine.toml: “Expected ']' at the end"),
    ],
)
def test_a_recipe_that_does_not_fit_is_refused_in_words(tmp_path: Path, edit: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        recipes.load(written(tmp_path, edit))
    assert str(caught.value).startswith(sentence)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes("title = 'Übung'".encode("latin-1"))
    with pytest.raises(BadSetting, match=r"^recipe mine\.toml: “'utf-8' codec .*” is not accepted\. Allowed: a TOML file"):
        recipes.load(str(tmp_path / "mine.toml"))


def test_the_learning_rate_goes_from_phase_to_phase_in_straight_lines() -> None:
    how = recipes.load("multi30k-de-en").optimisation
    assert how.epochs == sum(phase.epochs for phase in how.phases)
    first = 0
    for phase in how.phases:
        begin, end = phase.learning_rates
        middle = (2 * first + phase.epochs) / 2
        assert how.learning_rate(int(middle * 100), 100) == pytest.approx((begin + end) / 2, rel=0.02)
        assert how.phase(first) == phase
        first += phase.epochs
    assert how.learning_rate(0, 100) == pytest.approx(how.phases[0].learning_rates[0] / how.warmup_steps)
    assert how.learning_rate(first * 100 + 7, 100) == how.phases[-1].learning_rates[1]
