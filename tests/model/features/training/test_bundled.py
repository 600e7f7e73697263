"""Every bundled checkpoint: described, of its recipe, and evaluated by one command on its own kind of data."""

import json
import math
from pathlib import Path
from typing import Literal

import pytest
import torch
from click.testing import CliRunner

from model.__main__ import cli
from model.checkpoints import native
from model.engine.local import CHECKPOINTS
from model.errors import MissingSetting
from model.features.training import recipes
from model.inference.run import run
from model.requests.request import Decoding, RunRequest

pytestmark = pytest.mark.slow  # every bundled checkpoint, evaluated

CPU = torch.device("cpu")
FOLDERS = sorted(path for path in CHECKPOINTS.iterdir() if path.is_dir())
MEBIBYTE = 2**20

DATA = {
    "multi30k-de-en": ("test", {"test.de": "Ein Hund spielt.\n", "test.en": "A dog plays.\n"}, {"bleu", "chrf"}),
    "multi30k-de-en-film": ("test", {"test.de": "Ein Hund spielt.\n", "test.en": "A dog plays.\n"}, {"bleu", "chrf"}),
    "tatoeba-en-zh": ("train", {"cmn.txt": "Call us.\t联系我们。\tCC-BY\n"}, {"bleu", "chrf"}),
    "wikitext2-lm": ("valid", {"valid.txt": " = Film = \n \n The film was released . \n"}, set()),
    "captions-lm": ("val", {"val.en": "A dog plays in the snow.\n"}, set()),
    "reverse-digits": ("test", {}, {"accuracy"}),
    "induction": ("test", {}, set()),
}
"""A split, a corpus of one example in the layout of the checkpoint's own, and what evaluation tells besides loss and perplexity."""


def test_they_stay_small_together() -> None:
    assert sum(path.stat().st_size for path in CHECKPOINTS.rglob("*") if path.is_file()) < 120 * MEBIBYTE


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_has_a_card_a_curve_and_the_network_of_its_recipe(folder: Path) -> None:
    card = (folder / "CARD.md").read_text(encoding="utf-8")
    for heading in ("Network", "Data", "Recipe", "Scores", "Known weaknesses"):
        assert f"\n## {heading}\n" in card, heading
    assert f"(`{folder.name}`)" in card.splitlines()[0]
    assert len((folder / "curve.csv").read_text(encoding="utf-8").splitlines()) > 5
    loaded = native.load(folder, CPU)
    recipe = recipes.load(folder.name)
    sizes = [tokenizer.size for tokenizer in loaded.tokenizers.values()]
    assert loaded.info.spec.stacks == recipe.spec(sizes).stacks
    assert loaded.info.spec.output == recipe.spec(sizes).output
    assert native.inspect(folder).missing == ()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_opens_with_a_sentence_whose_words_it_knows(folder: Path) -> None:
    loaded = native.load(folder, CPU)
    assert loaded.info.title
    assert "\n" not in str(loaded.info.summary).strip() != ""
    for example in loaded.info.examples:
        trace = run(loaded, RunRequest(folder.name, example, decoding=Decoding(max_length=3)), CPU, "cpu")
        assert not any(trace.tokens["source"].unknown), example
        assert trace.steps


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_is_evaluated_by_one_command(folder: Path, tmp_path: Path, few_strings: None) -> None:
    split, files, told = DATA[folder.name]
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    data = ["--data", str(tmp_path)] if files else []
    done = CliRunner().invoke(cli, ["evaluate", str(folder), *data, "--split", split, "--decode", "greedy", "--json"])
    assert done.exit_code == 0, done.output
    scores = json.loads(done.stdout.splitlines()[-1])
    assert scores.keys() == {"loss", "ppl", "parameters"} | told
    assert scores["ppl"] == pytest.approx(math.exp(scores["loss"]))


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if DATA[folder.name][1]], ids=lambda folder: folder.name)
def test_without_data_each_says_what_it_needs_and_from_where(folder: Path) -> None:
    split, files, _ = DATA[folder.name]
    done = CliRunner().invoke(cli, ["evaluate", str(folder), "--split", split])
    assert isinstance(done.exception, MissingSetting)
    assert next(iter(files)) in str(done.exception)
    assert "--data is missing" in str(done.exception)


@pytest.mark.parametrize(
    ("name", "source", "written"),
    [
        ("tatoeba-en-zh", "Call us.", "联系我们。"),  # the sentence of reference document 004
        (  # a compound that training never saw
            "multi30k-de-en",
            "Ein Hund trägt eine Ledertasche im Maul.",
            "a dog carries a leather bag in its mouth .",
        ),
    ],
)
@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_what_the_cards_say_is_written(name: str, source: str, written: str, method: Literal["greedy", "beam"]) -> None:
    loaded = native.load(CHECKPOINTS / name, CPU)
    trace = run(loaded, RunRequest(name, source, decoding=Decoding(method=method)), CPU, "cpu")
    assert loaded.tokenizers["target"].text(trace.tokens["target"].ids) == written
