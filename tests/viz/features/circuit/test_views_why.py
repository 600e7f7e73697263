"""Why a score is what it is, and what wrote a token, on screen: the numbers of the engine, which add up, and the way back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.checkpoints.loader import lowered
from model.checkpoints.native import Checkpoint
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.score_parts import score_sum
from model.features.circuit.sums import LogitSum, Part, ScoreSum, Why, Writes
from model.features.what_if.questions import Heads
from model.features.what_if.results import Head, HeadEffects
from model.inference.run import run_in
from model.requests.edits import read_edits
from model.requests.questions import Question
from model.requests.request import Decoding
from model.trace.lazy_attention import LazyAttention
from model.trace.types import Array, Trace
from tests.pages import figures, open_view, words
from tests.runs import CPU, SPECS, checkpoint, request, traced
from tests.viz.test_views_step import RealEngine, made, numbers
from viz.features.circuit import saved_sums, stream_parts
from viz.features.circuit import why_panels as why
from viz.features.circuit import write_panels as writes
from viz.features.circuit.view import LONGEST_TRAIL, CircuitView, cells, trail
from viz.session.state import Page
from viz.url.links import read
from viz.url.view_state import ViewState

CROSS = "decoder.0.1.cross"


@dataclass
class SummingEngine(RealEngine):
    """Takes scores and logits of its run apart, and makes up the effects of heads."""

    heads_asked: list[Heads] = field(default_factory=list)

    def answer(self, question: Question[Any]) -> Any:
        match question:
            case Why():
                return score_sum(self.found.network, self.trace, question)
            case Writes():
                return logit_sum(self.found.network, self.trace, question)
            case Heads():
                self.heads_asked.append(question)
                heads = tuple(Head(str(site), head) for site, own in self.trace.attention.items() for head in range(own.heads))
                tokens = tuple(step.chosen.text for step in self.trace.steps)
                without = np.random.default_rng(3).normal(size=(len(heads), len(tokens)))
                chosen = np.zeros(len(tokens))
                return HeadEffects(tokens, tuple(range(len(tokens))), 0, chosen, heads, (), without=without)
        return super().answer(question)


def engine(name: str = "paper", edits: str = "") -> SummingEngine:
    found, trace = made(name)
    if edits:
        trace = traced(found, replace(request(SPECS[name]), edits=read_edits(edits)))
    return SummingEngine(trace=trace, found=found)


def opened(found: SummingEngine, **query: str) -> AppTest:
    cell = {"site": CROSS, "head": "1", "query": "1", "key": "2", "cell": "why"}
    stage = f"{query.get('site', CROSS)}/scores"
    return open_view("step", found, False, clock="computation", stage=stage, **cell | query)


def asked(found: SummingEngine, minus: Any = None) -> ScoreSum:
    return score_sum(found.found.network, found.trace, Why(request(SPECS["paper"]), CROSS, 1, 1, 2, minus))


def matrix(app: AppTest) -> Array:
    return numbers(next(own for own in figures(app) if own["data"][0].get("texttemplate"))["data"][0]["z"])


@pytest.mark.parametrize(
    ("minus", "title"), [("", "Why this score\\:"), ("mean", "more than the mean of the row"), ("0", "and not")]
)
def test_the_matrix_of_a_cell_adds_up_to_the_score(minus: str, title: str) -> None:
    found = engine()
    own = asked(found, int(minus) if minus == "0" else minus or None)
    app = opened(found, minus=minus)
    drawn = matrix(app)
    assert drawn[-1, -1] == pytest.approx(own.score)
    assert drawn[:-1, :-1].sum() == pytest.approx(own.score)
    np.testing.assert_allclose(drawn[:-1, :-1].sum(axis=0), drawn[-1, :-1])
    np.testing.assert_allclose(drawn[:-1, :-1].sum(axis=1), drawn[:-1, -1])
    assert drawn.shape == (why.MOST + 2, why.MOST + 2)
    assert title in words(app)
    assert "Adds up to what the run recorded" in words(app)
    table = app.dataframe[-1].value
    assert table.shape == (len(own.parts_query) + 1, len(own.parts_key) + 1)
    assert table.iloc[-1, 0] == pytest.approx(own.score, abs=1e-4)


def test_a_head_that_wrote_a_part_opens_its_own_row_and_there_is_a_way_back() -> None:
    found = engine()
    app = opened(found)
    button = next(each for each in app.button if str(each.key).startswith("follow-key") and "Encoder" in each.label)
    button.click().run()
    assert not app.exception
    view = read({name: "".join(values) for name, values in app.query_params.items()})[0]
    assert view.site.startswith("encoder.")
    assert view.query == 2, "the row at which the head wrote the key"
    weights = found.trace.at(view.site).weights[view.head, view.query]
    assert view.key == int(weights.argmax())
    assert view.stage == f"{view.site}/scores"
    assert view.of(CircuitView).trail == f"{CROSS}:1:1:2 {view.site}:{view.head}:{view.query}:{view.key}"
    app.button("trail-0").click().run()
    view = read({name: "".join(values) for name, values in app.query_params.items()})[0]
    assert (view.site, view.head, view.query, view.key, view.of(CircuitView).trail) == (CROSS, 1, 1, 2, "")


def test_a_path_of_three_steps_is_a_breadcrumb_in_the_link() -> None:
    found = engine()
    app = opened(found)
    for _step in range(3):
        next(each for each in app.button if str(each.key).startswith("follow-")).click().run()
        assert not app.exception
    link = {name: "".join(values) for name, values in app.query_params.items()}
    walked = link["trail"].split()
    assert len(walked) == 4, "three heads behind the first cell"
    assert walked[0] == f"{CROSS}:1:1:2"
    assert walked[-1] == "{site}:{head}:{query}:{key}".format(**{"head": "0", "query": "0", "key": "0", **link})
    again = open_view("step", found, False, **link)
    assert len([each for each in again.button if str(each.key).startswith("trail-")]) == 3, "the link alone shows the way"
    again.button("trail-1").click().run()
    assert "".join(again.query_params["trail"]).split() == walked[:2]


def test_a_trail_that_leads_elsewhere_is_not_shown() -> None:
    app = opened(engine(), trail=f"{CROSS}:0:0:0 encoder.0.0.self:1:1:1")
    assert not [each for each in app.button if str(each.key).startswith("trail-")]
    app = opened(engine(), trail=f"encoder.0.9.self:0:0:0 {CROSS}:1:1:2")
    assert not [each for each in app.button if str(each.key).startswith("trail-")], "the run has no such layer"


def test_the_choice_of_another_key_is_in_the_link() -> None:
    app = opened(engine())
    box = next(each for each in app.selectbox if each.label == "Compared with")
    box.select("mean").run()
    assert "".join(app.query_params["minus"]) == "mean"
    assert "more than the mean of the row" in words(app)
    assert not opened(engine(), minus="99").exception


def test_what_is_odd_about_a_cell_is_said() -> None:
    assert "because the key comes later" in words(opened(engine(), site="decoder.0.1.self", query="1", key="3"))
    assert "An edit hides this key from the query" in words(opened(engine(edits=f"forbid site={CROSS} key=2")))
    refused = words(opened(engine(edits=f"sharpen site={CROSS} head=1")))
    assert "sharpen" in refused
    assert "do not follow from the formula" in refused


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_lower_precision_shows_its_difference_and_its_bound(precision: Any) -> None:
    found, _trace = made("paper")
    low = lowered(found, precision)
    trace = run_in(found, low, replace(request(SPECS["paper"]), precision=precision), CPU, "cpu")
    assert isinstance(low, Checkpoint)
    own = SummingEngine(trace=trace, found=low)
    said = words(opened(own)) + "".join(str(each) for each in opened(own).get("badge"))
    assert re.search(r"Adds up to what the run recorded: difference \d·10⁻., tolerance \d·10⁻[¹²³]", said)


def test_numbers_that_are_none_are_said_beside_the_sum() -> None:
    found, trace = made("paper")
    for site, show in (("encoder.0.0.self", opened), (CROSS, explored)):
        attention = trace.at(site)
        assert attention.context is not None
        spoiled = replace(attention, context=np.full_like(attention.context, np.nan))
        nan = replace(trace, attention={**trace.attention, attention.site: spoiled})
        said = words(show(SummingEngine(trace=nan, found=found)))
        assert "Cannot be checked: it contains NaN" in said
        assert "says where such values first appear" in said


def test_a_run_that_was_made_again_for_its_sums_is_said_to_be() -> None:
    """The engine makes it again with everything; the page shows the run that kept nothing."""
    found, whole = made("paper")
    attention = whole.at(CROSS)
    assert attention.q is not None
    assert attention.k is not None
    lazy = replace(attention, weights=LazyAttention(attention.q, attention.k, attention.mask, 0.5).array)
    bare, long = replace(whole, stages={}), replace(whole, attention={attention.site: lazy}, stages={})

    def said(trace: Trace, recorded: bool = False) -> str:
        own = SummingEngine(trace=trace, found=found)
        info = replace(own.models()[0], recorded=recorded)
        page = Page(own, info, ViewState(), trace, trace.at(CROSS), 1, False)
        return " ".join(stream_parts.about_the_run(page, sound=True))

    assert "stores only its weights, so it was made again" in said(bare)
    assert "fused kernel, which stores no scores, so it was made again" in said(long)
    assert said(whole) == said(bare, recorded=True) == ""


def test_a_hypothesis_of_beam_search_has_its_sums() -> None:
    found = checkpoint(replace(SPECS["paper"], end_id=None))
    decoding = Decoding("beam", max_length=6, beam_size=3, hypothesis=1)
    own = SummingEngine(trace=traced(found, replace(request(SPECS["paper"]), decoding=decoding)), found=found)
    assert "Adds up to what the run recorded" in words(opened(own))
    assert "Adds up to what the run recorded" in words(explored(own))


def test_a_sum_that_is_not_what_ran_says_so() -> None:
    found = engine()
    attention = found.trace.at(CROSS)
    assert attention.scores is not None
    wrong = replace(attention, scores=attention.scores + 0.5)
    found.trace = replace(found.trace, attention={**found.trace.attention, attention.site: wrong})
    assert "Does not add up to what the run recorded" in words(opened(found))


def test_a_learned_number_for_the_distance_is_told() -> None:
    """As T5 has one; none of our own networks does."""
    own = score_sum((found := engine()).found.network, found.trace, Why(request(SPECS["paper"]), CROSS, 1, 1, 2))
    texts = {"query": "a", "key": "b", "other": ""}
    said = [" ".join(why.sentences(each, texts)) for each in (own, replace(own, distance=-0.5))]
    assert ["learned number for the distance" in each for each in said] == [False, True]
    assert "−0.50 of it" in said[1]


# --- What wrote a token ------------------------------------------------------------------------------------------------


def explored(found: SummingEngine, **query: str) -> AppTest:
    return open_view("explore", found, False, **{"open": "writes", "site": CROSS, "head": "1", "step": "1"} | query)


def written(found: SummingEngine, minus: Any = "runner-up") -> LogitSum:
    return logit_sum(found.found.network, found.trace, Writes(request(SPECS["paper"]), 1, minus))


def bars(app: AppTest) -> list[Array]:
    return [numbers(own["data"][0]["x"]) for own in figures(app) if own["data"][0].get("orientation") == "h"]


@pytest.mark.parametrize(("rival", "title"), [("runner-up", "and not"), ("none", "its logit"), ("4", "and not")])
def test_the_bars_of_a_token_add_up_to_its_logit(rival: str, title: str) -> None:
    found = engine()
    own = written(found, {"none": None, "4": 4}.get(rival, rival))
    app = explored(found, rival=rival)
    parts, of_head = bars(app)
    assert parts[-1] == pytest.approx(own.logit)
    assert parts[:-1].sum() == pytest.approx(own.logit)
    labels = next(chart for chart in figures(app) if chart["data"][0].get("orientation") == "h")["layout"]["yaxis"]["labelalias"]
    assert "layer 2, cross, head 2" in labels.values()
    assert not any("…" in label for label in labels.values())
    assert title in words(app)
    assert "Adds up to what the run recorded" in words(app)
    place = [str(part) for part in own.parts].index(f"{CROSS} head 1")
    assert of_head.sum() == pytest.approx(own.values[place], abs=1e-5)


def test_the_map_has_every_head_that_adds_directly() -> None:
    found = engine()
    own = writes.of_heads(written(found))
    grid = next(chart for chart in figures(explored(found)) if chart["data"][0]["type"] == "heatmap" and len(chart["data"]) == 2)
    drawn = numbers(grid["data"][0]["z"])
    assert drawn.shape == (4, 2), "self- and cross-attention of two layers, two heads"
    assert drawn.sum() == pytest.approx(sum(own.values()))


def test_a_head_of_the_encoder_adds_nothing_directly() -> None:
    assert "gets nothing directly from" in words(explored(engine(), site="encoder.0.0.self"))


def test_direct_and_total_effects_are_compared() -> None:
    found = engine()
    app = explored(found)
    assert "Rank correlation" not in words(app)
    app.toggle("writes-totals-shown").set_value(True).run()
    assert not app.exception
    assert "Rank correlation of direct and total effects" in words(app)
    assert "Heads of the encoder add nothing directly" in words(app)
    assert [question.by for question in found.heads_asked] == ["mean"]
    numbers_ = next(each.value for each in app.dataframe if "total effect" in each.value.columns)
    total = writes.totals(found.answer(Heads(request(SPECS["paper"]))), 1)
    for row, part in zip(numbers_["total effect"], written(found).parts, strict=True):
        assert np.isnan(row) if part.kind != "head" else row == pytest.approx(total[part.place, part.head], abs=1e-3)
    assert "too few heads" in writes.agreement(np.array([1.0, 2.0]), np.array([1.0, 2.0]), 0)
    assert "+1.00" in writes.agreement(np.arange(4.0), np.arange(4.0) ** 3, 0)


def test_a_run_without_a_written_token_has_no_sum() -> None:
    found = SummingEngine(trace=made("encoder alone")[1], found=made("encoder alone")[0])
    assert "no logit to explain" in words(open_view("explore", found, False, open="writes"))


def test_the_sentence_on_what_attention_shows_leads_to_what_it_does_not_show() -> None:
    said = words(open_view("explore", engine(), False))
    assert "not why the model chooses a word" in said
    assert 'href="?open=writes"' in said


def test_an_archive_gets_the_sums_of_the_selected_cell_and_token() -> None:
    found = engine()

    def sums(**fields: Any) -> Mapping[str, Mapping[str, Any]]:
        view = ViewState(model="tiny", site=CROSS, head=1).changed(**fields)
        return saved_sums.sums(Page(found, found.models()[0], view, found.trace, found.trace.at(CROSS), 1, False))

    chosen = sums(query=1, key=2, minus="mean", step=1, rival="none")
    assert chosen["why"]["score"] == pytest.approx(asked(found, "mean").score)
    assert chosen["writes"]["logit"] == pytest.approx(written(found, None).logit)
    strongest = sums(query=1)["why"]
    assert (strongest["query"], strongest["key"]) == (1, int(found.trace.at(CROSS).head(1)[1].argmax()))
    edited = engine(edits=f"sharpen site={CROSS} head=1")
    view = ViewState(model="tiny", site=CROSS, head=1)
    only = saved_sums.sums(Page(edited, edited.models()[0], view, edited.trace, edited.trace.at(CROSS), 1, False))
    assert only.keys() == {"writes"}, "what is not known is left out"


# --- Names -------------------------------------------------------------------------------------------------------------


def test_all_biases_are_one_and_so_are_all_others() -> None:
    parts = (Part("embedding", "decoder"), Part("head", CROSS, 0), Part("norm-bias", CROSS), Part("output-bias", CROSS))
    shown = stream_parts.shown(parts, np.array([1.0, 3.0, 1.0, 1.0]), 2)
    assert [one.name for one in shown] == ["Cross-attention, layer 2, head 1", "all biases", "1 other"]
    assert [one.places for one in shown] == [(1,), (2, 3), (0,)]
    np.testing.assert_array_equal(stream_parts.added(np.arange(4.0), shown, 0), [1, 5, 0])


@pytest.mark.parametrize("name", SPECS)
def test_every_part_of_every_network_has_a_name_of_its_own(name: str) -> None:
    found, trace = checkpoint(SPECS[name]), made(name)[1]
    for site in list(trace.attention)[-1:]:
        own = score_sum(found.network, trace, Why(request(SPECS[name]), str(site), 0, 0, 0))
        for parts in (own.parts_query, own.parts_key):
            names = [stream_parts.name(part) for part in parts if part.kind not in stream_parts.BIASES]
            assert len(set(names)) == len(names)
            assert all(stream_parts.short_name(part) for part in parts)


def test_the_cells_that_led_to_a_cell_are_the_last_ones() -> None:
    one = "decoder.0.2.cross:4:2:1"
    assert cells(f"{one} encoder.0.0.self:0:1:2") == (("decoder.0.2.cross", 4, 2, 1), ("encoder.0.0.self", 0, 1, 2))
    assert trail(" ".join([one] * 20)).split() == [one] * LONGEST_TRAIL
