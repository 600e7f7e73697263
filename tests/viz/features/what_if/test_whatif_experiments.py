"""The experiments of the page What if give what they gave when they were written down; a retrained model may differ."""

import math
from dataclasses import replace

import pytest

from model.engine.api import Engine, Run
from model.features.what_if.questions import Heads
from model.requests.edits import Allow, Silence
from model.requests.request import Decoding, RunRequest
from viz.features.what_if.examples import of_model

MODELS = ("multi30k-de-en", "tatoeba-en-zh", "reverse-digits")

GAVE = {
    "Cut one edge: does “an” survive?": "a old man playing a guitar in a park .",
    "Three heads that attend to “alter”, silenced": "a old man plays a guitar in the park .",
    "The other five heads silenced instead": "an old man is playing a guitar in a park .",
    "Hide “gitarre” from cross-attention": "an old man plays a accordion in the park .",
    "Hide “hunde” from cross-attention": "two young boys playing with a ball in the snow .",
    "Hide “zaun” from cross-attention": "a dog jumps over a hurdle .",
    "Hide “schnee” from cross-attention: its neighbor still carries it": "two young dogs play with a ball in the snow .",
    "Hide “park” from cross-attention: its neighbor still carries it": "an old man playing a guitar in the park .",
    "Hide “mädchens” from cross-attention: its neighbor still carries it": "a man is fixing a little girl 's bike .",
    "Hide “##tasche” from cross-attention: its neighbor still carries it": "a woman is carrying a leather bag .",
    "Hide “hut” from “trägt” and from cross-attention: “wearing” or “carrying”?": "a child is wearing a hat .",
    "Hide “schnee” from everything": "two young dogs playing with a ball in the background .",
    "Hide “park” from everything": "an old man playing a guitar in the middle of a man .",
    "Hide “mädchens” from everything": "a man is fixing the bike of a small van .",
    "Hide a piece of a word: “##tasche”": "a woman is wearing a leather jacket .",
    "No positions: who chases whom?": "a dog chases a cat .",
    "A decoder without positions": "a cat .",
    "Swap two positions: who pushes whom?": "a woman is pushing a man .",
    "Swap two positions: whose hat is red?": "a man in a blue hat is sitting next to a woman wearing a red hat .",
    "Put a horse in the dog’s place": "a horse is jumping over a fence .",
    "Put drums in the guitar’s place": "an old man is playing the drums in a park .",
    "Put the beach in the snow’s place": "two young dogs play with a ball in the beach .",
    "Take one color from another sentence": "a woman in a blue hat is sitting on a bench .",
    "Another word’s embedding: a piano": "an old man is playing a piano .",
    "All cross-attention silenced: the bare language model": "a man is walking in a field of grass while holding a sign .",
    "All decoder self-attention silenced": " ".join(["an old man playing", *["a man playing"] * 5, "the park ."]),
    "All encoder self-attention silenced": "an old man is playing a guitar in the park .",
    "Only one head of the last cross-attention": "a man is playing a guitar in a park .",
    "Cross-attention attends to everything equally": "a man is playing a saxophone in a park .",
    "Each row of cross-attention attends to one word": "an old man plays a guitar in the park .",
    "The last cross-attention skipped": "a man is playing a guitar in a park .",
    "The first two encoder layers swapped": "the old man is playing a guitar .",
    "Swap two positions: who is taller?": "我 比 他 高 。",
    "Hide one digit": "3 5 6 2 9 5 1 1 3",
    "Swap the positions of two digits": "3 5 6 2 9 5 3 4 1 1",
    "A head of cross-attention silenced": "8 0 6 5 4 2 5 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_each_experiment_writes_what_it_wrote(engine: Engine, model: str) -> None:
    found = {}
    for one in of_model(model):
        trace = engine.ask(Run(RunRequest(model, one.text, edits=one.edits)))
        found[one.title] = " ".join(trace.tokens["target"].texts[1:-1])
    if model == "reverse-digits":
        assert found.pop("Cross-attention attends to everything equally") == "1 3 5 1 5 1 3 5 1"
    assert {title: text for title, text in found.items() if title in GAVE} == {
        title: GAVE[title] for title in found if title in GAVE
    }


def test_every_experiment_with_a_known_result_is_offered() -> None:
    offered = {one.title for model in MODELS for one in of_model(model)}
    assert GAVE.keys() <= offered


def chances(engine: Engine, title: str, step: int) -> list[dict[str, float]]:
    """Probabilities of the words at one step, without the edits of an experiment and with them."""
    one = next(each for each in of_model("multi30k-de-en") if each.title == title)
    runs = [engine.ask(Run(RunRequest("multi30k-de-en", one.text, edits=edits))) for edits in ((), one.edits)]
    return [{c.text: math.exp(c.log_probability) for c in run.steps[step].candidates} for run in runs]


def test_one_edge_of_thousands_halves_the_probability_of_an(engine: Engine) -> None:
    found = chances(engine, "Cut one edge: does “an” survive?", 0)
    assert [each["an"] for each in found] == pytest.approx([0.61, 0.28], abs=0.01)


def test_a_verb_that_cannot_read_its_object_is_in_doubt_between_two_meanings(engine: Engine) -> None:
    found = chances(engine, "Hide “hut” from “trägt” and from cross-attention: “wearing” or “carrying”?", 3)
    assert [each["wearing"] for each in found] == pytest.approx([0.89, 0.49], abs=0.01)
    assert [each["carrying"] for each in found] == pytest.approx([0.07, 0.46], abs=0.01)


def test_no_head_of_the_last_cross_attention_says_old_alone(engine: Engine) -> None:
    text = next(one.text for one in of_model("multi30k-de-en") if one.title.startswith("Only one head"))
    for head in range(8):
        others = Silence(site="decoder.0.2.cross", head=tuple(other for other in range(8) if other != head))
        trace = engine.ask(Run(RunRequest("multi30k-de-en", text, edits=(others,))))
        assert " ".join(trace.tokens["target"].texts[1:-1]) == "a man is playing a guitar in a park .", head


@pytest.mark.parametrize(
    ("model", "text", "lost"),
    [
        ("multi30k-de-en", "Im Park spielt ein alter Mann Gitarre.", (2.5, 5)),
        ("reverse-digits", "3141592653", (0.5, 20)),
        (
            "wikitext2-lm",
            "the film was released in 2007 and the game was released in the united states in the same year",
            (-0.3, 0.3),
        ),
    ],
)
def test_a_model_that_never_saw_the_future_collapses_where_it_is_opened(
    engine: Engine, model: str, text: str, lost: tuple[float, float]
) -> None:
    """In nats a token. Only the language model, whose maps are diffuse, hardly notices."""
    length = 0 if model == "wikitext2-lm" else 14  # a prompt alone is its own target
    question = Heads(RunRequest(model, text, decoding=Decoding(max_length=length)), ("without",))
    opened = replace(question, request=replace(question.request, edits=(Allow(stack="decoder", kind="self"),)))
    before, after = (float(engine.ask(each).log_probabilities.mean()) for each in (question, opened))
    assert lost[0] < before - after < lost[1]
