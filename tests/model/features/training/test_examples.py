"""The label of every bundled example is true: a run of the example shows what the label says."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from model.checkpoints import native
from model.engine.local import CHECKPOINTS
from model.errors import BadSetting
from model.features.training import recipes
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.requests.snapshots import at_step
from model.trace.types import Array, Site, Trace
from tests.runs import CPU

pytestmark = pytest.mark.slow  # every bundled checkpoint

GERMAN, FILM, CHINESE = "multi30k-de-en", "multi30k-de-en-film", "tatoeba-en-zh"
ENGLISH, DIGITS, REPEATED, CAPTIONS = "wikitext2-lm", "reverse-digits", "induction", "captions-lm"


@cache
def loaded(name: str, step: int | None = None) -> native.Checkpoint:
    folder = CHECKPOINTS / name
    if step is None:
        return native.load(folder, CPU)
    return native.load(folder, CPU, f"snapshots/{step:06}.safetensors")


def ran(name: str, text: str, step: int | None = None, **decoding: Any) -> Trace:
    asked = RunRequest(name if step is None else at_step(name, step), text, decoding=Decoding(**decoding))
    with torch.inference_mode():
        return run(loaded(name, step), asked, CPU, "cpu")


class Head:
    """One head of a run, asked by words."""

    def __init__(self, trace: Trace, site: str, head: int) -> None:
        found = trace.at(Site.parse(site))
        self.weights: Array = found.head(head)
        self.keys = trace.tokens[found.key_tokens].texts
        self.written = trace.tokens[found.query_tokens].texts[1:]

    def row(self, written: str) -> int:
        """The row that generated a token."""
        return self.written.index(written)

    def on(self, written: str, key: str) -> float:
        """The weight of the row that generated `written` on `key`."""
        return float(self.weights[self.row(written), self.keys.index(key)])

    def reads(self) -> list[str]:
        """The key with the largest weight, row by row."""
        return [self.keys[place] for place in self.weights.argmax(1)]


def columns(head: Head, written: Sequence[str]) -> list[int]:
    """Columns of the largest weights in the rows that generated these tokens."""
    return [int(head.weights[head.row(word)].argmax()) for word in written]


def the_lines_cross(text: str) -> None:
    head = Head(ran(GERMAN, text), "decoder.0.2.cross", 0)
    found = {("old", "alter"): 1.00, ("plays", "spielt"): 0.98, ("park", "park"): 0.99, ("guitar", "gitarre"): 0.96}
    assert {pair: round(head.on(*pair), 2) for pair in found} == found
    assert columns(head, ("old", "plays", "park")) == [head.keys.index(key) for key in ("alter", "spielt", "park")]
    assert head.keys.index("park") < head.keys.index("spielt") < head.keys.index("alter")


def the_owner_first(text: str) -> None:
    head = Head(ran(GERMAN, text), "decoder.0.2.cross", 1)
    assert head.row("girl") < head.row("'s") < head.row("bike")
    assert head.keys.index("fahrrad") < head.keys.index("mädchens")
    assert min(head.on("girl", "mädchens"), head.on("bike", "fahrrad")) > 0.7


def the_particle(text: str) -> None:
    head = Head(ran(GERMAN, text), "decoder.0.2.cross", 3)
    assert head.keys[-3] == "entlang"
    assert round(head.on("down", "entlang"), 2) == 0.93


def in_pieces(text: str) -> None:
    head = Head(ran(GERMAN, text), "decoder.0.2.cross", 3)
    assert head.keys[-4:-2] == ("leder", "##tasche")
    assert min(head.on("leather", "leder"), head.on("bag", "##tasche")) > 0.7


def read_fifth(text: str) -> None:
    head = Head(ran(GERMAN, text), "decoder.0.2.cross", 0)
    assert head.keys[-3:] == ("spielen", ".", "<eos>")
    assert head.row("playing") == 4
    assert head.reads()[4] == "spielen"


def beam_is_likelier(text: str) -> None:
    def total(method: str) -> float:
        return sum(step.chosen.log_probability or 0 for step in ran(GERMAN, text, method=method).steps)

    assert total("beam") > total("greedy") + 1


def from_a_to_this(text: str) -> None:
    early = ran(FILM, text, step=21, max_length=6).tokens["target"].texts
    assert set(early[1:]) == {"a"}
    assert ran(FILM, text).tokens["target"].texts[1:4] == ("a", "small", "dog")


def straight(text: str) -> None:
    head = Head(ran(FILM, text), "decoder.0.1.cross", 0)
    found = columns(head, ("two", "children", "are", "sitting", "on", "a", "bench"))
    assert found == sorted(found)
    assert head.weights[:7].max(1).min() > 0.9


def two_from_one(text: str) -> None:
    head = Head(ran(FILM, text), "decoder.0.1.cross", 0)
    assert min(head.on("is", "fährt"), head.on("riding", "fährt")) > 0.7


def than_first(text: str) -> None:
    head = Head(ran(CHINESE, text), "decoder.0.1.cross", 1)
    assert head.reads()[:4] == ["he", "than", "me", "taller"]
    assert head.weights[:4].max(1).min() > 0.6


def mostly_rests(text: str) -> None:
    head = Head(ran(CHINESE, text), "decoder.0.1.cross", 0)
    assert head.weights[:, head.keys.index("<eos>")].mean() > 0.5
    assert round(head.on("候", "<eos>"), 2) == 0.99


def three_from_one(text: str) -> None:
    head = Head(ran(CHINESE, text), "decoder.0.1.cross", 1)
    assert all(head.on(written, "library") > 0.8 for written in "图书馆")


def reads_no_word(text: str) -> None:
    assert Head(ran(CHINESE, text), "decoder.0.1.cross", 1).on("吗", "<eos>") > 0.9


def four_characters(text: str) -> None:
    assert ran(CHINESE, text).tokens["target"].texts[1:-1] == tuple("联系我们。")


def looks_at(word: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        trace = ran(ENGLISH, text, max_length=1)
        last = len(text.split())
        found = trace.at(Site.parse("decoder.0.0.self"))
        keys = trace.tokens["source"].texts
        row = keys.index(text.split()[-1].lower(), last - 1)
        assert [keys[found.head(head)[row].argmax()] for head in range(found.heads)] == [word] * found.heads

    return check


def reads(site: str, heads: Sequence[int], word: str) -> Callable[[str], None]:
    """The last word of the caption has most of its weight on `word` in these heads."""

    def check(text: str) -> None:
        trace = ran(CAPTIONS, text, max_length=1)
        found = trace.at(Site.parse(site))
        keys = trace.tokens["source"].texts
        row = len(text.split()) - 1
        assert keys[row] == text.split()[-1]
        for head in heads:
            assert keys[found.head(head)[row].argmax()] == word
            assert found.head(head)[row].max() > 0.9

    return check


def expects_grass(text: str) -> None:
    best = max(ran(CAPTIONS, text, max_length=1).steps[-1].candidates, key=lambda one: one.log_probability)
    assert best.text == "grass"


def is_in_pieces(text: str) -> None:
    assert ran(CAPTIONS, text, max_length=1).tokens["source"].texts[5:7] == ("birth", "##day")


def expects_the(text: str) -> None:
    best = max(ran(ENGLISH, text, max_length=1).steps[-1].candidates, key=lambda one: one.log_probability)
    assert best.text == "the"


def unsure(text: str) -> None:
    best = max(one.log_probability for one in ran(ENGLISH, text, max_length=1).steps[-1].candidates)
    assert np.exp(best) < 0.11


def matches(wrong: int) -> Callable[[str], None]:
    def check(text: str) -> None:
        trace = ran(DIGITS, text)
        assert "".join(trace.tokens["target"].texts[1:-1]) == text[::-1]
        head = Head(trace, "decoder.0.0.cross", 0)
        expected = [head.keys.index(text[0]) + place for place in reversed(range(len(text)))]
        assert np.sum(head.weights.argmax(1)[: len(text)] != expected) == wrong

    return check


def looks_up(expected: str, least: float) -> Callable[[str], None]:
    """The continuation, and how probable its first word is."""

    def check(text: str) -> None:
        trace = ran(REPEATED, text, max_length=len(expected.split()))
        assert " ".join(step.chosen.text for step in trace.steps) == expected
        assert np.exp(trace.steps[0].chosen.log_probability) > least

    return check


CLAIMS: dict[str, list[Callable[[str], None]]] = {
    GERMAN: [the_lines_cross, the_owner_first, the_particle, in_pieces, read_fifth, beam_is_likelier],
    FILM: [from_a_to_this, straight, two_from_one],
    CHINESE: [than_first, mostly_rests, three_from_one, reads_no_word, four_characters],
    ENGLISH: [looks_at("film"), looks_at("century"), expects_the, unsure, looks_at("born")],
    CAPTIONS: [
        reads("decoder.0.2.self", [1], "shirt"),
        expects_grass,
        reads("decoder.0.2.self", [1, 2, 3, 5], "holding"),
        reads("decoder.0.1.self", [1, 2], "people"),
        is_in_pieces,
    ],
    REPEATED: [
        looks_up("potter rain key", 0.8),
        looks_up("sun egg red boat sun egg red boat", 0.6),
        looks_up("potter cat lamp dog pen", 0.8),
    ],
    DIGITS: [matches(wrong=0), matches(wrong=1), matches(wrong=0)],
}
"""What shows that the label of each example is true, in the order of the examples."""


@pytest.mark.parametrize("name", CLAIMS)
def test_each_example_shows_what_its_label_says(name: str, subtests: pytest.Subtests) -> None:
    info = loaded(name).info
    for example, label, check in zip(info.examples, info.example_labels, CLAIMS[name], strict=True):
        with subtests.test(example=example, label=label):
            assert 4 <= len(label.split()) <= 7
            check(example)


def test_every_bundled_model_has_labels() -> None:
    assert set(CLAIMS) == {folder.name for folder in CHECKPOINTS.iterdir() if folder.is_dir()}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_recipe_has_the_examples_of_its_checkpoint(name: str) -> None:
    recipe, info = recipes.load(name), native.read_info(CHECKPOINTS / name)
    assert (recipe.examples, recipe.example_labels) == (info.examples, info.example_labels)


def test_labels_that_are_not_one_per_example_are_refused() -> None:
    with pytest.raises(BadSetting) as caught:
        native.check_labels(("a", "b"), ("first",))
    assert str(caught.value).startswith("example_labels cannot be used: there are 1 of them for 2 examples")
