"""Compare on made-up runs: two sides, what changed, and a sentence for whatever cannot be compared."""

import math
import re
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.engine.api import Describe, ModelInfo, Texts
from model.errors import BadSetting, UnknownModel
from model.features.what_if.questions import Heads
from model.features.what_if.results import Head, HeadEffects
from model.requests.edits import Silence
from model.requests.questions import Question
from model.requests.request import RunRequest
from model.trace.types import Trace
from tests import traces
from tests.pages import MadeUpEngine, figures, open_view, words
from tests.viz.test_views_explore import decoded
from viz.canvas.wire.transport import unpack
from viz.features.compare import view as compare_view
from viz.labels import edits

CROSS = "decoder.0.1.cross"
SILENCED = f"silence={CROSS}:1"


@dataclass
class TwoRuns(MadeUpEngine):
    """Answers a request that equals the first side's with `trace`, any other with `second` (or its error)."""

    trace: Trace = field(default_factory=lambda: traces.translation(layers=2, heads=2))
    second: Trace | Exception = field(default_factory=lambda: traces.translation(layers=2, heads=2, seed=1))
    others: tuple[str, ...] = ("other",)
    vocabularies: dict[str, str] = field(default_factory=dict)

    def models(self) -> tuple[ModelInfo, ...]:
        (own,) = super().models()
        own = replace(own, examples=("zwei hunde", "ein kind"))
        return (own, *(replace(own, name=name, title=f"The {name} one") for name in self.others))

    def run(self, request: RunRequest) -> Trace:
        if len(self.asked) == 1 and isinstance(self.second, Exception):
            raise self.second
        assert isinstance(self.second, Trace)
        return self.second

    def texts(self, question: Texts) -> tuple[str, ...]:
        return tuple(f"{self.vocabularies.get(question.model, '')}{id_}" for id_ in question.ids)


class OfTheHub(TwoRuns):
    """An engine that knows a model by its name on the Hub, and says its commit."""

    def answer(self, question: Question[Any]) -> Any:
        if isinstance(question, Describe) and question.model == "hub:gpt2":
            return replace(self.models()[0], name="hub:openai-community/gpt2@607a30d", title="openai-community/gpt2")
        return super().answer(question)


def said(app: AppTest) -> str:
    return words(app).replace("\\", "")


def maps(app: AppTest) -> list[dict]:  # type: ignore[type-arg]  # as plotly reads them
    """The figures that are heatmaps."""
    return [figure for figure in figures(app) if figure["data"][0]["type"] == "heatmap"]


def rows(app: AppTest, strip: str) -> list[list[str]]:
    """The two rows of an aligned strip: [token] only on the first side, *token* only on the second, · a gap."""
    language = {"source": "German", "target": "English"}[strip]
    (body,) = [part.proto.body for part in app.get("html") if f'<p class="small">{language}</p>' in part.proto.body]
    columns = re.findall(r"<div>(<span.*?)</div>", body)
    marked = [re.sub(r"<del>(.*?)</del>", r"[\1]", re.sub(r"<strong>(.*?)</strong>", r"*\1*", column)) for column in columns]
    cells = [re.findall(r"<span[^>]*>(.*?)</span>", column) for column in marked]
    return [[unescape(re.sub("</?bdi>", "", pair[side])) for pair in cells] for side in (0, 1)]


def drawings(app: AppTest) -> list[tuple[dict, dict]]:  # type: ignore[type-arg]  # headers as they are
    return [unpack(found.proto.bytes) for found in app.get("bidi_component")]


def open_compare(engine: TwoRuns, **query: str) -> AppTest:
    return open_view("compare", engine, False, **{"model": "made-up", "text": "zwei hunde"} | query)


class Measured(TwoRuns):
    """An engine that says how much each head matters: the last one most, of those before the last site the third."""

    def answer(self, question: Question[Any]) -> Any:
        if not isinstance(question, Heads):
            return super().answer(question)
        heads = tuple(Head(str(site), head) for site, one in self.trace.attention.items() for head in range(one.heads))
        without = np.zeros((len(heads), 2))
        without[2], without[-1] = -1.0, -9.0
        sites = tuple(dict.fromkeys(head.site for head in heads))
        return HeadEffects(("a", "b"), (1, 2), 1, np.zeros(2), heads, sites, without=without)


@pytest.mark.parametrize(
    ("engine", "silenced", "words"),
    [(Measured(), "encoder.0.1.self:0", "the head that this output needs most"), (TwoRuns(), f"{CROSS}:0", "without one head")],
    ids=["measured", "cannot be measured"],
)
def test_before_a_difference_is_chosen_one_head_is_silenced_as_an_example(engine: TwoRuns, silenced: str, words: str) -> None:
    app = open_compare(engine)
    (request,) = engine.asked
    site, _colon, head = silenced.rpartition(":")
    assert request.edits == (Silence(site, (int(head),)),)
    assert words in said(app)
    assert f"silenced heads: none → “{edits.heads(silenced)}”." in said(app)
    assert "against" not in app.query_params
    choice = app.multiselect(key="second:silence")
    assert choice.value == [], "the first own choice replaces the example"
    assert choice.proto.placeholder == edits.heads(silenced)
    assert len(drawings(app)) == 3


def test_without_a_difference_the_first_side_is_shown_and_the_page_says_what_to_do() -> None:
    engine = TwoRuns()
    app = open_compare(engine, against="decode=greedy")
    assert "Both sides are identical so far" in said(app)
    assert len(drawings(app)) == 1
    assert engine.asked == []


def test_both_sides_their_difference_and_the_ranking_are_drawn() -> None:
    engine = TwoRuns()
    app = open_compare(engine, site=CROSS, head="1", against=SILENCED)
    (request,) = engine.asked
    assert request.edits == (Silence(CROSS, (1,)),)
    assert isinstance(engine.second, Trace)
    first, second = engine.trace.at(CROSS).weights[1], engine.second.at(CROSS).weights[1]
    shown = [decoded(figure["data"][0]["z"]) for figure in maps(app)]
    assert shown[0] == pytest.approx(first)
    assert shown[1] == pytest.approx(second)
    apart = second.astype(float) - first
    assert shown[2] == pytest.approx(np.where(abs(apart) <= 1e-5, 0, apart))
    share = np.abs(second.astype(float) - first).sum(axis=-1).mean() / 2
    assert f"On average, {share:.1%} of each row’s weight moved (rows compared: 12)." in said(app)
    overviews = [unpack(blobs["overview"].tobytes())[0] for _header, blobs in drawings(app)]
    assert ["signed" in overview for overview in overviews] == [False, False, True]
    (ranking,) = [frame.value for frame in app.dataframe if "moved" in frame.value.columns]
    assert len(ranking) == 12
    assert ranking["moved"].is_monotonic_decreasing
    assert ranking.loc[(CROSS, 1), "moved"] == pytest.approx(share, abs=1e-4)
    assert "silenced heads: none → “Cross-attention, layer 2, head 2”" in said(app)
    assert "It does not say how much the output changed" in said(app)


def test_outputs_are_aligned_and_told_apart_without_colour() -> None:
    engine = TwoRuns(second=traces.translation(target="<sos> two old dogs play a ball in snow . <eos>".split(), layers=2, heads=2))
    app = open_compare(engine, against="decode=beam")
    text = said(app)
    assert rows(app, "target") == [
        "<sos> two [young] dogs play [with] a ball in [the] snow . <eos>".split(),
        "<sos> two *old* dogs play · a ball in · snow . <eos>".split(),
    ]
    table = app.dataframe[0].value
    assert table["comparison"].value_counts().to_dict() == {"same": 10, "deleted": 2, "replaced": 1}
    assert isinstance(engine.second, Trace)
    for side, trace in (("A", engine.trace), ("B", engine.second)):
        numbers = table[f"log-probability ({side})"].dropna().to_list()
        given = [step.chosen.log_probability for step in trace.steps]
        assert numbers == pytest.approx(given, abs=1e-4)
        assert f"−{-sum(given):.3f} on side {side}" in text


def test_hostile_tokens_stay_text() -> None:
    hostile = "<sos> **b** ~~x~~ $x$ :red[x] </script><img> <eos>".split()
    app = open_compare(TwoRuns(second=traces.translation(target=hostile, layers=2, heads=2)), against="decode=beam")
    assert [text for text in rows(app, "target")[1] if text != "·"] == ["<sos>", *(f"*{text}*" for text in hostile[1:-1]), "<eos>"]
    assert not [element for element in app.get("html") if "<img" in element.proto.body]


def test_the_probabilities_of_a_token_are_drawn_with_the_largest_change_first() -> None:
    engine = TwoRuns()
    app = open_compare(engine, against=SILENCED)
    assert isinstance(engine.second, Trace)
    (drawn,) = [figure for figure in figures(app) if len(figure["data"]) == 3]
    _lines, ring, dot = drawn["data"]
    sides = [[math.exp(step.chosen.log_probability) for step in trace.steps] for trace in (engine.trace, engine.second)]
    order = sorted(range(12), key=lambda place: -abs(sides[1][place] - sides[0][place]))
    assert decoded(ring["x"]) == pytest.approx([sides[0][place] for place in order])
    assert decoded(dot["x"]) == pytest.approx([sides[1][place] for place in order])
    assert ring["customdata"] == [traces.ENGLISH[place + 1].replace("<", "&lt;").replace(">", "&gt;") for place in order]
    total = sum(math.log(other) - math.log(one) for one, other in zip(*sides, strict=True))
    assert f"the log-probability of the 12 tokens that both sides have changed by {total:+.4f} in total".replace("-", "−") in (
        said(app).replace("-", "−")
    )


def test_sides_are_named_by_what_differs_and_never_alike() -> None:
    def names(**query: str) -> list[str]:
        app = open_compare(TwoRuns(others=("other", "twin")), **query)
        (found,) = [part.proto.body for part in app.get("html") if 'class="aligned"' in part.proto.body][:1]
        return [unescape(name) for name in re.findall(r"<span [^>]*>(Side [AB]: .*?)</span>", found)]

    assert names(against=SILENCED) == ["Side A: nothing silenced", "Side B: Cross-attention, layer 2, head 2"]
    assert names(against="decode=beam") == ["Side A: greedy", "Side B: beam search"]
    assert names(against="model=other") == ["Side A: German → English", "Side B: The other one"]
    assert names(against="text=ein kind") == ["Side A: “zwei hunde”", "Side B: “ein kind”"]
    heads = f"{CROSS}:0 {CROSS}:1", f"{CROSS}:0 decoder.0.0.cross:1"
    first, second = names(silence=heads[0], against=f"silence={heads[1]}")
    assert first.removeprefix("Side A") != second.removeprefix("Side B"), "both silence two heads"
    long = "x" * 60
    first, second = names(text=f"{long} a", against=f"text={long} b")
    assert first.removeprefix("Side A") != second.removeprefix("Side B"), "they differ at the end"


def test_rounding_fills_no_scale_and_the_effect_on_the_output_is_said() -> None:
    first = traces.translation(layers=2, heads=2)
    steps = tuple(
        replace(step, chosen=replace(step.chosen, log_probability=step.chosen.log_probability - 0.25)) for step in first.steps
    )
    nudged = {site: replace(own, weights=own.weights + np.float32(5e-7)) for site, own in first.attention.items()}
    app = open_compare(TwoRuns(trace=first, second=replace(first, attention=nudged, steps=steps)), site=CROSS, against=SILENCED)
    assert "No attention weight changed by more than the rounding error (1·10⁻⁵): no map changed." in said(app)
    assert said(app).count("the 12 tokens that both sides have changed by −3.0000 in total") == 1
    assert not [o for _h, blobs in drawings(app) if "signed" in (o := unpack(blobs["overview"].tobytes())[0])]
    assert not maps(app), "equal maps are folded"


def test_an_effect_of_minus_zero_was_said_of_runs_that_are_the_same() -> None:
    first = traces.translation(layers=2, heads=2)
    app = open_compare(TwoRuns(trace=first, second=first), site=CROSS, against=SILENCED)
    assert "No probability changed by more than" in said(app)
    assert "Effect on the output" not in said(app)


def test_both_sides_read_the_tokens_of_the_first_side_when_asked() -> None:
    engine = TwoRuns()
    app = open_compare(engine, against=SILENCED)
    app.toggle(key="widget:feed").set_value(True).run()
    assert app.query_params["feed"] == "first"
    ids = engine.trace.tokens["target"].ids
    assert [(asked.target, asked.edits) for asked in engine.asked[-2:]] == [(ids, ()), (ids, (Silence(CROSS, (1,)),))]
    app.toggle(key="widget:feed").set_value(False).run()
    assert "feed" not in app.query_params


def test_a_language_model_reads_what_the_first_side_wrote_after_its_own_prompt() -> None:
    engine = TwoRuns(trace=traces.language_model(prompt=4), second=traces.language_model(prompt=4, seed=1))
    open_compare(engine, against="text=ein kind", feed="first", site="decoder.0.0.self")
    ids = engine.trace.tokens["source"].ids
    assert [(asked.source, asked.target, asked.decoding.max_length) for asked in engine.asked[-2:]] == [(ids, None, 0)] * 2


def test_tokens_of_another_vocabulary_are_not_fed() -> None:
    engine = TwoRuns(vocabularies={"other": "word"})
    text = said(open_compare(engine, against="model=other", feed="first"))
    assert "different vocabularies" in text
    assert [asked.target for asked in engine.asked] == [None]
    engine = TwoRuns()
    assert "different vocabularies" not in said(open_compare(engine, against="model=other", feed="first"))


def test_one_click_silences_a_layer_a_kind_or_all_other_heads() -> None:
    def after(*keys: str) -> set[str]:
        app = open_compare(TwoRuns(), site=CROSS, head="1", against="decode=beam")
        for key in keys:
            app.button(key=f"silence-{key}").click().run()
        return set(compare_view.differences(app.query_params["against"])["silence"].split())

    assert after("others") == {f"{CROSS}:0"}
    assert after("layer") == {f"{CROSS}:0", f"{CROSS}:1"}
    assert after("kind") == {f"decoder.0.{layer}.cross:{head}" for layer in (0, 1) for head in (0, 1)}
    assert after("selected", "others") == after("layer")


def test_sentences_of_unequal_length_are_shown_and_not_subtracted() -> None:
    short = traces.translation(source=traces.GERMAN[:4] + traces.GERMAN[-2:], layers=2, heads=2)
    app = open_compare(TwoRuns(second=short), site=CROSS, against="text=zwei junge hunde.")
    text = said(app)
    assert "Cross-attention, layers 1, 2: not compared, because the tokens of the two sides do not align." in text
    assert "Encoder self-attention, layers 1, 2: not compared" in text
    assert "Decoder self-attention, layers" not in text
    assert "This head cannot be compared; see the reason above." in text
    assert len(maps(app)) == 2


def test_what_is_compared_of_sides_with_other_words_and_heads_is_said() -> None:
    source, target = [*traces.GERMAN], [*traces.ENGLISH[:5], "the", "<eos>"]
    source[3] = "katzen"
    second = traces.translation(source=source, target=target, layers=2, heads=3)
    text = said(open_compare(TwoRuns(second=second), site=CROSS, against="model=other"))
    assert "compared position by position" in text
    assert "Cross-attention: only the first 5 of 12 (A) and 6 (B) rows can be compared" in text
    assert "Cross-attention: number of heads 2 on side A, 3 on side B; only heads that both sides have are compared." in text
    assert "model: “made-up”" not in text
    assert "model: “German → English” → “The other one”" in text


@pytest.mark.parametrize(
    ("error", "against", "sentence"),
    [
        (UnknownModel(asked="gone", there="made-up"), "model=gone", "gone"),
        (BadSetting(name="source", found="", allowed="something"), "text=", "source"),
    ],
)
def test_a_second_side_that_cannot_run_is_told_and_the_first_is_still_shown(error: Exception, against: str, sentence: str) -> None:
    app = open_compare(TwoRuns(second=error), against=against)
    (warning,) = [found.value.replace("\\", "") for found in app.warning]
    assert warning.startswith("Side B cannot be run: ")
    assert sentence in warning
    assert len(drawings(app)) == 1


def test_a_run_without_any_common_site_says_so_for_each_kind() -> None:
    app = open_compare(TwoRuns(second=traces.encoder_only(layers=2, heads=2)), against="model=other")
    text = said(app)
    assert "Cross-attention, layers 1, 2: only on side A" in text
    assert "Only side A has “target” tokens." in text
    alone = TwoRuns(trace=traces.encoder_only(), second=traces.language_model())
    app = open_compare(alone, site="encoder.0.0.self", against="model=other")
    assert "Side B has no such head." in said(app)
    assert len(drawings(app)) == 2
    assert not [frame for frame in app.dataframe if "moved" in frame.value.columns]


def test_the_control_writes_the_link() -> None:
    app = open_compare(TwoRuns(), site=CROSS, head="1")
    assert app.button(key="silence-selected").label.replace("\\", "") == "Silence: Cross-attention, layer 2, head 2"
    app.button(key="silence-selected").click().run()
    assert app.query_params["against"] == SILENCED
    app.selectbox(key="second:method").set_value("beam").run()
    app.slider(key="second:beam_size").set_value(3).run()
    assert app.query_params["against"] == f"decode=beam&beam=3&{SILENCED}"
    app.multiselect(key="second:silence").set_value([]).run()
    app.segmented_control(key="widget:against").set_value("sentence").run()
    assert app.query_params["against"] == "text=ein kind"
    app.text_input(key="second:text").set_value("a & b, 100 %").run()
    assert app.query_params["against"] == "text=a %26 b, 100 %25"
    app.segmented_control(key="widget:against").set_value("model").run()
    assert app.query_params["against"] == "model=other"
    app.segmented_control(key="widget:against").set_value("settings").run()
    assert "against" not in app.query_params
    assert not app.exception


def test_the_link_names_the_commit_of_side_b_and_the_side_is_offered_from_then_on() -> None:
    app = open_view("compare", OfTheHub(), against="model=hub:gpt2")
    pinned = "hub:openai-community/gpt2@607a30d"
    assert app.query_params["against"] == f"model={pinned}"
    assert app.selectbox(key="second:model").value == pinned
    assert "openai-community/gpt2" in app.selectbox(key="second:model").options


def test_a_text_too_long_for_a_link_changes_nothing_and_is_said() -> None:
    app = open_compare(TwoRuns(), against="text=ein kind")
    app.text_input(key="second:text").set_value("%" * 1500).run()  # three characters each, where a link holds what differs
    assert app.query_params["against"] == "text=ein kind"
    assert [found.value.startswith("Side B does not accept this") for found in app.warning] == [True]


def test_a_lone_model_is_told_that_there_is_no_other() -> None:
    app = open_compare(TwoRuns(others=()), against="model=made-up")
    assert "There is no other model yet" in said(app)
    assert "Both sides are identical so far" in said(app)
