"""What a step of a lecture can show besides the weights: readings, calculations, tables, the logit lens, films in the handout."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
import torch

from model.engine.api import Engine, Run
from model.engine.local import CHECKPOINTS, LocalEngine
from model.features.circuit.circuits import Circuit
from model.features.circuit.sums import Why, Writes
from model.features.survey import tables
from model.measures.catalogue import MEASURES
from model.requests.edits import Allow, Silence
from model.requests.request import Decoding, RunRequest
from tests.app.conftest import tiny  # noqa: F401
from tests.known import bundled_engine
from viz.canvas.wire.transport import unpack
from viz.features.lectures.presenter import handout, panels
from viz.features.lectures.presenter.check import not_drawn
from viz.features.lectures.presenter.deck import LectureDeck, about_heads
from viz.features.lectures.presenter.html_pages import FOLDER
from viz.features.lectures.presenter.panels import Picture
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.script import library, parser
from viz.labels import measures
from viz.metrics import heads
from viz.panels import NotDrawable

HEAD = "---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: {model}\n---\n"
CROSS = "text=w4+w5&site=decoder.0.1.cross"


@pytest.fixture(scope="module")
def engine(tiny: Path) -> LocalEngine:  # noqa: F811
    return LocalEngine(tiny.parent, torch.device("cpu"))


def shown(engine: LocalEngine, link: str) -> Picture:
    page, view, problems = parser.parse_link(f"{link}&model=tiny")
    assert problems == []
    return picture(engine, page, view)


def header(found: Picture, scene: str) -> dict[str, Any]:
    return unpack(found.scenes[scene])[0]


@pytest.mark.parametrize("reading", ["mean", "max", "value", "rollout"])
def test_a_reading_of_the_link_is_drawn_before_the_heads(engine: LocalEngine, reading: str) -> None:
    found = shown(engine, f"/explore?{CROSS}&reading={reading}")
    assert [panel.kind for panel in found.panels] == ["Cells", "Strips", "Atlas", "Lines"]
    assert found.panels[0].note, "the reading says what it is"
    assert not found.choice["large"], "the reading is what the link is about"


def test_the_entropy_of_rows_is_drawn_as_bars_and_hidden_keys_are_left_out(engine: LocalEngine) -> None:
    found = shown(engine, f"/explore?{CROSS}&reading=entropy")
    assert found.panels[0].kind == "Bars"
    assert len(header(found, "reading")["values"]) == len(header(found, "reading")["texts"])
    whole, less = shown(engine, f"/explore?{CROSS}&reading=mean"), shown(engine, f"/explore?{CROSS}&hide=special")
    assert len(header(less, "reading")["keys"]) < len(header(whole, "reading")["keys"])


@pytest.mark.parametrize("link", ["/explore?", "/step?clock=computation&stage=decoder.0.1.cross%2Fweights&"])
def test_a_cell_of_the_link_shows_how_its_weight_was_calculated(engine: LocalEngine, link: str) -> None:
    found = shown(engine, f"{link}{CROSS}&query=0&key=1")
    html = header(found, "calculation")["html"]
    assert "<math" in html
    assert "Matches the run" in html
    row = header(found, "row")
    assert row["chosen"] == 1
    assert len(row["columns"]) == len(row["rows"][0]) == 7


def test_the_calculation_of_a_stage_comes_before_its_map(engine: LocalEngine) -> None:
    found = shown(engine, f"/step?clock=computation&stage=decoder.0.1.cross%2Fweights&{CROSS}&query=0&key=1")
    assert [panel.scene for panel in found.panels] == ["calculation", "numbers", "row", "network"]


def overview(found: Picture, scene: str) -> dict[str, Any]:
    return panels.overview_of(found, scene)[0]


def test_what_an_edit_changed_stands_below_the_outputs_and_the_sentence_that_both_read(engine: LocalEngine) -> None:
    found = shown(engine, f"/whatif?{CROSS}&edit=sharpen+kind%3Dcross+factor%3D0")
    assert [panel.scene for panel in found.panels] == ["first", "second", "source", "changes", "likely"]
    strips = [[strip["name"] for strip in header(found, scene)["strips"]] for scene in ("first", "second", "source")]
    assert strips == [["target"], ["target"], ["source"]]
    groups = overview(found, "changes")["groups"]
    assert [one["site"] for one in groups[0]["sites"]] == ["decoder.0.0.cross", "decoder.0.1.cross"]
    other = shown(engine, "/compare?text=w4+w5&against=text%3Dw5+w4")
    assert [panel.scene for panel in other.panels] == ["strips", "second", "first"], "two sentences have no change of weights"
    assert [strip["name"] for strip in header(other, "strips")["strips"]] == ["source", "target"]
    assert header(other, "second")["keys"][1:3] == ["w5", "w4"]


def test_a_silenced_head_of_the_last_layer_changes_no_map_so_the_probabilities_are_shown(engine: LocalEngine) -> None:
    found = shown(engine, f"/whatif?{CROSS}&max=6&edit=silence+site%3Ddecoder.0.1.cross+head%3D1")
    assert [panel.scene for panel in found.panels] == ["first", "second", "source", "likely", "atlas"]
    assert header(found, "atlas")["selection"]["head"] == 1, "the head that is silenced is framed"
    likely = header(found, "likely")
    assert likely["columns"] == ["", "Without the edits", "With the edits"]
    plain = engine.ask(Run(RunRequest("tiny", "w4 w5", decoding=Decoding(max_length=6))))
    words = tuple(plain.tokens["target"].texts[1:])
    silenced = RunRequest("tiny", "w4 w5", target=plain.tokens["target"].ids, edits=(Silence("decoder.0.1.cross", (1,)),))
    logs = [[step.chosen.log_probability for step in run.steps] for run in (plain, engine.ask(Run(silenced)))]
    rows = {(word, f"{before:.3f}", f"{now:.3f}") for word, before, now in zip(words, *np.exp(logs), strict=True)}
    totals = [
        f"{sum(step.chosen.log_probability for step in run.steps):.2f}".replace("-", "−")
        for run in (plain, engine.ask(Run(silenced)))
    ]
    assert likely["rows"][0][1:] == totals
    assert set(map(tuple, likely["rows"][1:])) == rows, "of every word, read by both runs"
    assert any(before != now for _text, before, now in likely["rows"])
    assert "no map changed" in next(panel.note for panel in found.panels if panel.scene == "likely")


def test_runs_that_were_given_what_they_read_are_compared_as_they_ran(engine: LocalEngine) -> None:
    """Fed anew, they would read the end token, too, which a decoder without its causal mask sees."""
    link = "/whatif?text=w4+w5&target=w6+w7+w8"
    likely = header(shown(engine, f"{link}&edit=allow+stack%3Ddecoder+kind%3Dself"), "likely")
    edited = RunRequest("tiny", "w4 w5", "w6 w7 w8", edits=(Allow(stack="decoder", kind="self"),))
    runs = [engine.ask(Run(request)) for request in (replace(edited, edits=()), edited)]
    totals = [sum(step.chosen.log_probability for step in run.steps) for run in runs]
    assert likely["rows"][0][1:] == [f"{total:.2f}".replace("-", "−") for total in totals]


def test_every_row_is_compared_although_the_outputs_differ_from_the_first_word_on() -> None:
    link = "/whatif?model=multi30k-de-en&text=Im+Park+spielt+ein+alter+Mann+Gitarre.&edit=silence+kind%3Dcross"
    page, view, _problems = parser.parse_link(link)
    found = picture(bundled_engine(), page, view)
    outputs = [[one["text"] for one in header(found, name)["strips"][0]["tokens"]] for name in ("first", "second")]
    assert outputs[0][1] != outputs[1][1]
    assert len(overview(found, "changes")["groups"][0]["queries"]) == len(outputs[0]), "every row of what the first run wrote"
    assert len(header(found, "likely")["rows"]) == len(outputs[0]), "each word that was written, and all together"
    assert "Both runs read here what the first one wrote." in next(panel.note for panel in found.panels if panel.scene == "changes")


def test_the_frame_is_on_a_head_that_changed() -> None:
    edit = "forbid+site%3Ddecoder.0.2.cross+head%3D4+query%3D0+key%3Dalter"
    link = f"/whatif?model=multi30k-de-en&text=Im+Park+spielt+ein+alter+Mann+Gitarre.&edit={edit}"
    page, view, _problems = parser.parse_link(link)
    selection = header(picture(bundled_engine(), page, view), "changes")["selection"]
    assert (selection["site"], selection["head"]) == ("decoder.0.2.cross", 4)
    unnamed = link.replace("site%3Ddecoder.0.2.cross+head%3D4+", "kind%3Dcross+")
    page, view, _problems = parser.parse_link(unnamed)
    found = picture(bundled_engine(), page, view)
    framed = header(found, "changes")["selection"]
    codes = panels.overview_of(found, "changes")[1][f"weights/{framed['site']}"][framed["head"]]
    assert (codes != panels.NO_CHANGE).any()


def test_the_tree_of_a_beam_search_opens_where_its_best_hypothesis_leaves_the_other_output() -> None:
    page, view, _problems = parser.parse_link(
        "/compare?model=multi30k-de-en&text=Ein+Hund+bei%C3%9Ft+den+Mann.&against=decode%3Dbeam"
    )
    found = picture(bundled_engine(), page, view)
    tree = header(found, "tree")
    outputs = [[one["text"] for one in header(found, name)["strips"][0]["tokens"]][1:] for name in ("first", "second")]
    differs = next(place for place, pair in enumerate(zip(*outputs, strict=False)) if pair[0] != pair[1])
    opens = next(node for node in tree["nodes"] if node["place"] == tree["opens"])
    assert (opens["column"], opens["text"]) == (differs, outputs[1][differs])
    assert tree["opens"] in tree["shown"]


def test_masks_of_few_tokens_stand_beside_each_other_and_longer_ones_below(engine: LocalEngine) -> None:
    short, long = (shown(engine, f"/masks?{CROSS}&max=6{pad}") for pad in ("", "&pad=18"))
    assert [panel.width for panel in short.panels] == ["half"] * len(short.panels)
    assert long.panels[0].width == "whole"
    assert header(long, "padding")["keys"][-1] == "<pad>"
    (alone,) = shown(engine, f"/masks?{CROSS}&max=6&pad=18&picture=padding").panels
    assert (alone.scene, alone.width) == ("padding", "whole")


def test_the_parts_that_the_link_opens_are_tables(engine: LocalEngine) -> None:
    found = shown(engine, f"/explore?{CROSS}&head=1&open=lens+heads+numbers")
    assert [panel.scene for panel in found.panels[:3]] == ["numbers", "heads", "lens"]
    statistics = header(found, "heads")
    assert len(statistics["rows"]) == 12, "2 heads of 6 sites"
    assert statistics["rows"][statistics["chosen"]][0] == "Cross-attention, layer 2, head 2"
    lens = header(found, "lens")
    assert len(lens["columns"]) == 3, "a column of positions and one for each layer"
    assert [len(row) for row in lens["shades"]] == [2] * len(lens["rows"])


def test_what_stands_on_explore_anyway_is_shown_where_the_link_names_it(engine: LocalEngine) -> None:
    found = shown(engine, f"/explore?{CROSS}&head=1&query=0&key=1&open=facts+alike+products+moved")
    names = ["facts", "alike", "products", "calculation", "moved", "row"]
    assert [panel.scene for panel in found.panels[:6]] == names
    statistics = header(found, "facts")
    assert [title for title, _value in statistics["rows"]] == [measures.titles()[name] for name in heads.SHOWN]
    assert "Mean over the" in found.panels[0].note
    assert len(header(found, "alike")["rows"]) == 3, "the other heads that read the same tokens"
    assert [found.panels[at].kind for at in (2, 4)] == ["Plot", "Plot"]


def test_what_a_language_model_writes_next_is_a_panel_with_its_knobs(bundled: Engine) -> None:
    page, view, _problems = parser.parse_link("/explore?model=captions-lm&text=A+dog&decode=greedy&max=2&open=next")
    found = picture(bundled, page, view)
    assert (found.panels[0].kind, found.panels[0].heading) == ("Next", "What comes next")
    assert header(found, "next")["turned"]
    page, view, _problems = parser.parse_link("/explore?model=reverse-digits&text=12&open=next")
    with pytest.raises(NotDrawable, match="generated nothing"):
        picture(bundled, page, view)


def test_a_formula_and_the_table_of_a_search_are_panels_where_the_link_names_them(engine: LocalEngine) -> None:
    stage = shown(engine, "/step?text=w4+w5&clock=computation&stage=output%2Flogits&query=0&open=formula")
    assert [panel.scene for panel in stage.panels] == ["formula", "numbers", "network"]
    assert "<math" in header(stage, "formula")["html"]
    logits = engine.ask(Run(RunRequest("tiny", "w4 w5"))).logits
    assert logits is not None
    assert header(stage, "numbers")["values"] == np.sort(logits[0])[::-1][: len(header(stage, "numbers")["values"])].tolist()
    search = shown(engine, "/step?text=w4+w5&max=3&decode=beam&beam=2&open=search")
    assert [panel.scene for panel in search.panels] == ["tree", "search", "player"]
    table = header(search, "search")
    assert table["columns"][0] == "step"
    assert {row[-1] for row in table["rows"]} >= {"", "1", "2"}


def test_a_chart_that_lectures_have_no_drawing_for_is_shown_as_print_draws_it_in_both_schemes(engine: LocalEngine) -> None:
    found = shown(engine, "/positions?text=w4+w5&picture=curves")
    assert [(panel.kind, panel.heading) for panel in found.panels] == [("Plot", "Curves")]
    drawn = header(found, found.panels[0].scene)
    assert all(drawn[scheme].startswith("<svg") for scheme in ("light", "dark"))
    assert drawn["light"] != drawn["dark"]
    assert drawn["alt"]


def test_ids_are_shown_as_numbers(engine: LocalEngine) -> None:
    rows = header(shown(engine, "/step?text=w4+w5&clock=computation&stage=encoder%2Fids"), "numbers")["rows"]
    assert all(number.isdigit() for _token, number in rows)


def test_a_link_that_opens_no_part_of_explore_is_named() -> None:
    _page, view, problems = parser.parse_link("/explore?open=lens+all")
    assert view.opened == ""
    assert "numbers, heads" in problems[0]


def test_the_check_names_the_line_of_a_view_that_a_lecture_cannot_show(engine: LocalEngine) -> None:
    steps = ("## One\n\nview: /explore?text=w4", "## Two\n\nview: /checkpoint", "## Three\n\nview: /training?text=w4")
    lecture = parser.read(HEAD.format(model="tiny") + "\n---\n".join(steps), "mine.en")
    found = not_drawn(lecture, engine)
    assert [problem.line for problem in found] == [11, 15]
    assert found[0].sentence == "The checkpoint page cannot be shown inside a lecture."
    assert "No snapshots" in found[1].sentence


def test_a_film_is_followed_by_the_curves_of_its_heads_and_the_loss() -> None:
    engine = bundled_engine()
    link = "/training?model=reverse-digits&text=314&measure=antidiagonal&site=decoder.0.0.cross"
    _page, view, _problems = parser.parse_link(link)
    found = picture(engine, "training", view)
    assert [panel.scene for panel in found.panels] == ["film", "measure", "losses"]
    measure, losses = header(found, "measure"), header(found, "losses")
    assert measure["names"][measure["chosen"]].startswith("Cross-attention, layer 1, head 1")
    line = measure["lines"][measure["chosen"]]
    assert line[0] < 0.6 < line[-1], "the head learns to read backwards"
    assert len(line) == len(measure["steps"]) == len(losses["lines"][0]) == 14
    assert losses["lines"][0][0] > 1 > losses["lines"][0][-1]


def test_a_film_in_the_handout_is_its_head_at_four_snapshots() -> None:
    step = "view: /training?text=314&snapshot=53&site=decoder.0.0.cross\n"
    lecture = parser.read(HEAD.format(model="reverse-digits") + step, "film.en")
    deck = LectureDeck(lecture, bundled_engine())
    deck.wait()
    captions = [figure["caption"] for figure in handout._figures(deck, 0)]
    assert len(captions) == 4
    assert captions[1].startswith("After 53 steps. ") or captions[0].startswith("After 53 steps. ")
    assert captions[-1].startswith("After 2,032 steps. ")


def test_numbers_of_the_pages_are_written_in_the_language_of_the_lecture() -> None:
    for path in FOLDER.glob("*.js"):
        assert not re.search(r"\.(toPrecision|toFixed)\(", path.read_text(encoding="utf-8")), path.name


def test_why_a_cell_has_its_score_and_a_token_was_generated_are_panels(engine: LocalEngine) -> None:
    link = f"/explore?{CROSS}&head=1&query=1&key=2&cell=why&minus=mean&open=writes&step=0&rival=none&max=4"
    found = shown(engine, link)
    assert [panel.kind for panel in found.panels[:2]] == ["Bars", "Table"]
    run = RunRequest("tiny", "w4 w5", decoding=Decoding(max_length=4))
    token, score = engine.ask(Writes(run, 0)), engine.ask(Why(run, "decoder.0.1.cross", 1, 1, 2, "mean"))
    bars, table = header(found, "writes"), header(found, "why")
    assert bars["values"][bars["chosen"]] == pytest.approx(token.logit)
    assert sum(bars["values"][:-1]) == pytest.approx(token.logit)
    assert table["rows"][-1][-1] == f"{score.score:z.2f}".replace("-", "−")
    assert len(table["rows"][0]) == len(table["columns"])
    assert "more than the mean of the row" in found.panels[1].heading


def test_a_circuit_is_a_graph_before_the_heads(engine: LocalEngine) -> None:
    found = shown(engine, f"/circuit?{CROSS}&head=1&share=0.2&max=4")
    assert [panel.kind for panel in found.panels] == ["Circuit", "Strips", "Atlas", "Lines"]
    graph = engine.ask(Circuit(RunRequest("tiny", "w4 w5", decoding=Decoding(max_length=4))))
    drawn = header(found, "circuit")
    assert len(drawn["edges"]) == len([edge for edge in graph.edges(0.2) if edge.part.kind == "head"])
    assert len(drawn["nodes"]) == len(graph.heads)
    assert f"{graph.left_out(0.2):.0%} is not shown" in found.panels[0].note


def test_what_a_cell_writes_is_on_explore_only(engine: LocalEngine) -> None:
    with pytest.raises(NotDrawable, match="on Explore only"):
        shown(engine, f"/explore?{CROSS}&reading=writes")


@pytest.fixture(scope="module")
def bundled() -> Engine:
    return bundled_engine()


def test_a_survey_is_drawn_as_dots_with_the_selected_head_and_the_roles(bundled: Engine) -> None:
    page, view, problems = parser.parse_link("/survey?model=induction&site=decoder.0.1.self&head=1&x=previous&y=induction")
    assert problems == []
    found = picture(bundled, page, view)
    assert [panel.kind for panel in found.panels] == ["Dots", "Table", "Table"]
    own = tables.read(CHECKPOINTS / "induction" / "survey.parquet").statistics
    scene = header(found, "dots")
    dots = sorted(scene["dots"], key=lambda dot: dot["head"])
    columns = [list(MEASURES).index(name) for name in ("previous", "induction")]
    assert np.array([dot["at"] for dot in dots]) == pytest.approx(own.mean[:, columns])
    assert [dot["label"] for dot in dots] == [[], ["previous token"], ["induction"], ["induction"]]
    assert scene["selected"] == 3
    assert header(found, "head")["rows"][0][1] == f"{own.mean[3, 0]:.3f}"
    assert [row[1] for row in header(found, "roles")["rows"]] == ["previous token", "induction", "induction"]


def test_a_head_without_a_measure_has_no_dot(bundled: Engine) -> None:
    page, view, _problems = parser.parse_link("/survey?model=reverse-digits&x=next&y=coverage")
    assert header(picture(bundled, page, view), "dots")["dots"] == []


def test_a_model_without_a_survey_has_no_picture_of_one(engine: LocalEngine) -> None:
    with pytest.raises(NotDrawable, match="no stored survey"):
        shown(engine, "/survey?text=w4")


def test_the_handout_has_the_dots_of_a_survey(bundled: Engine) -> None:
    lecture = parser.read(HEAD.format(model="induction") + "view: /survey?x=previous&y=induction\n", "survey.en")
    deck = LectureDeck(lecture, bundled)
    deck.wait()
    figure = next(figure for figure in handout._figures(deck, 0) if figure["svg"])
    assert figure["svg"].count("<circle") == 5, "a dot for each head, and a ring"
    assert "previous token" in figure["svg"]


@pytest.mark.parametrize("name", sorted(library.files()))
def test_every_claim_about_a_head_points_to_what_it_does_over_many_texts(name: str) -> None:
    engine, spoken = bundled_engine(), library.load(name)
    for step in spoken.steps:
        heads = [each.subject.head for each in step.expects]
        claimed = {(each.site, each.number) for each in heads if each.site and each.number >= 0}
        there = CHECKPOINTS / step.view.model / "survey.parquet"
        links = re.findall(r"\(/survey\?(.*?)\)", about_heads(engine, step))
        told = {(each["site"], int(each["head"])) for each in map(dict, map(parse_qsl, links))}
        assert told == (claimed if there.is_file() and step.page != "survey" else set())
        if told:
            assert told <= set(tables.read(there).statistics.heads)
