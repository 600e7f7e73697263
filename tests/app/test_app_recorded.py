"""Opened traces as visitors meet them: every page shows the run that is in the file, or says in one sentence what it lacks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.features.circuit.sums import Why, Writes
from model.requests.request import RunRequest
from model.trace import serialization
from tests import opened
from tests.app.visiting import EVERY_PAGE, Visitor
from tests.runs import CPU
from tests.viz.test_views_explore import head_drawn
from viz.features.compare.view import CompareView

RUN, PROGRAM = serialization.from_bytes(opened.GREEDY.read_bytes()), opened.program()


@pytest.fixture
def filled(shelf: Path) -> Path:
    (shelf / "run.trace.safetensors").write_bytes(opened.file(RUN))
    (shelf / "vit.trace.safetensors").write_bytes(opened.file(PROGRAM))
    (shelf / "bad.trace.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00nonsense")
    return shelf


def said(visitor: Visitor) -> str:
    app = visitor.app
    texts = [element.value for group in (app.caption, app.info, app.markdown, app.warning) for element in group]
    return "\n".join(texts).replace("\\", "")


def uploaded(visitor: Visitor, **files: bytes) -> None:
    """Drops files on the page Checkpoint, together."""
    uploader = next(each for each in visitor.app.file_uploader if (each.key or "").startswith("widget:upload"))
    uploader.set_value([(f"{name}.trace.safetensors", data, "") for name, data in files.items()])
    visitor._run()


def test_a_dropped_trace_is_shown_with_the_numbers_of_its_file(filled: Path) -> None:
    visitor = Visitor("checkpoint")
    uploaded(visitor, mine=opened.GREEDY.read_bytes())
    assert visitor.view.model.startswith("trace-")
    assert "Recorded run of Tiny: “w4 w5 w6”." in said(visitor)
    visitor.press("open-in-explore")
    visitor.go("explore")
    assert np.array_equal(head_drawn(visitor.app)[1], list(RUN.attention.values())[-1].head(0))
    assert visitor.tokens("source") == list(RUN.tokens["source"].texts)


def test_a_link_never_makes_a_recorded_run_show_another_text(filled: Path) -> None:
    visitor = Visitor(model="run.trace.safetensors", text="something else", edit="silence kind=cross", decode="beam")
    assert visitor.problems == [
        "This is a recorded run, so the text or the edits of this link were ignored: the run is shown as it was recorded."
    ]
    assert visitor.url == {"model": "run.trace.safetensors", "text": ""} or "text" not in visitor.url
    assert visitor.tokens("source") == list(RUN.tokens["source"].texts)


def test_a_click_on_another_next_token_keeps_the_run_that_was_recorded(filled: Path) -> None:
    visitor = Visitor(model="run.trace.safetensors")
    visitor.report("strips", begin="5,6")
    assert visitor.tokens("target") == list(RUN.tokens["target"].texts)
    assert "begin" not in visitor.url
    visitor.press("export")
    assert "Download everything (.zip)" in [each.proto.label for each in visitor.app.get("download_button")]


def test_the_search_of_a_recorded_beam_shows_the_hypothesis_that_the_file_holds(shelf: Path) -> None:
    (shelf / "beam.trace.safetensors").write_bytes(opened.stored("beam"))
    visitor = Visitor("step", model="beam.trace.safetensors", hypothesis="1")
    assert not visitor.problems
    assert "it holds the attention of only one hypothesis" in said(visitor)
    assert visitor.scene("tree")
    assert "widget:hypothesis" not in [box.key for box in visitor.app.selectbox]


def test_bad_traces_are_refused_in_words_on_the_page(filled: Path) -> None:
    visitor = Visitor("checkpoint", model="bad.trace.safetensors")
    assert "bad.trace.safetensors is not a trace that can be opened" in visitor.problems[0]
    uploaded(visitor, cut=opened.GREEDY.read_bytes()[:-4])
    assert "cut.trace.safetensors is not a trace that can be opened" in visitor.problems[0]


def test_two_recordings_are_compared_and_a_fused_kernel_has_its_badge(filled: Path) -> None:
    visitor = Visitor("checkpoint")
    uploaded(visitor, one=opened.file(opened.program(seed=1)), two=opened.file(opened.program(seed=2)))
    visitor.go("explore")
    told = said(visitor)
    assert "A fused kernel ran in 1 of 2 attention layers" in told
    assert "differ by at most 3·10⁻⁷ from what the kernel returned" in told
    assert "Module: blocks.1.attn" in told
    first = next(info.name for info in visitor.app.session_state["opened"] if info.title == "one")
    visitor.go("compare")
    assert not visitor.problems
    visitor.app.selectbox(key="second:model").set_value(first)
    visitor._run()
    assert visitor.view.of(CompareView).against == f"model={first}"
    assert not visitor.problems
    assert "What changed in the attention" in said(visitor)


@pytest.mark.parametrize("name", ["run", "vit"])
def test_every_page_shows_an_opened_trace_or_says_that_it_needs_the_network(filled: Path, name: str) -> None:
    visitor = Visitor(model=f"{name}.trace.safetensors")
    for page in EVERY_PAGE:
        visitor.go(page)
        assert not visitor.problems, page
        if page in ("whatif", "training"):
            assert "This needs a network, but a recorded run comes without one" in said(visitor)
        elif (page, name) == ("positions", "vit"):
            assert "This recording holds no positional encodings" in said(visitor)
        elif page != "checkpoint":
            assert visitor.drawn, page
        assert "widget:text" not in [box.key for box in visitor.app.text_input], "a recorded run cannot read another text"
        if page == "step":
            visitor.app.button_group(key="widget:clock").set_value("computation")
            visitor._run()
            assert not visitor.problems


def test_a_page_broke_at_a_site_whose_kind_is_not_known(filled: Path) -> None:
    visitor = Visitor(model="vit.trace.safetensors", site="program.0.0.unknown")
    for page in ("explore", "masks", "step"):
        visitor.go(page)
        assert not visitor.problems, page
        assert visitor.view.site == "program.0.0.unknown", page


def test_an_archive_that_was_saved_with_sums_shows_them(stocked: Path) -> None:
    """What else the network could say is refused; a button leads to the cell and the token that were saved."""
    engine, request = LocalEngine(stocked, CPU), RunRequest("tiny", "w4 w5 w6")
    why, writes = engine.ask(Why(request, "decoder.0.1.cross", 1, 1, 2, "mean")), engine.ask(Writes(request, 1, "runner-up"))
    trace = replace(engine.ask(Run(request)), sums={"why": why.to_json(), "writes": writes.to_json()})
    (stocked / "mine.trace.safetensors").write_bytes(serialization.to_bytes(trace))
    cell = {"site": "decoder.0.1.cross", "head": "0", "query": "0", "key": "0", "cell": "why", "open": "writes"}
    visitor = Visitor("explore", model="mine.trace.safetensors", step="0", **cell)
    assert len(visitor.problems) == 2, "neither this cell nor this token was saved"
    visitor.press("saved-why")
    visitor.press("saved-writes")
    assert visitor.problems == []
    assert {name: visitor.url[name] for name in ("head", "query", "key", "minus")} == {
        "head": "1",
        "query": "1",
        "key": "2",
        "minus": "mean",
    }
    assert "more than the mean of the row" in said(visitor)
    assert f"Why “{writes.text}” and not “{writes.minus_text}”" in said(visitor)
    assert "was made again" not in said(visitor)
    assert not [toggle for toggle in visitor.app.toggle if toggle.key == "writes-totals-shown"]


def test_heads_with_nan_are_named_and_the_others_drawn(shelf: Path) -> None:
    """A head that was masked whole is NaN, and so is every layer after it."""
    first, last = PROGRAM.attention.values()
    weights = first.weights.copy()
    weights[1, 3] = np.nan
    broken = {first.site: replace(first, weights=weights), last.site: replace(last, weights=np.full_like(last.weights, np.nan))}
    model = {**PROGRAM.model, "notes": ("A note of the recorder.",)}
    (shelf / "nan.trace.safetensors").write_bytes(opened.file(replace(PROGRAM, model=model, attention=broken)))
    for site, head, named in ((first.site, 0, False), (first.site, 1, True), (last.site, 0, True)):
        for page in EVERY_PAGE if named else ("explore",):
            visitor = Visitor(page, model="nan.trace.safetensors", site=str(site), head=str(head))
            assert not visitor.app.exception, page
            if page == "explore":
                assert "A note of the recorder." in said(visitor)
                assert ("NaN or infinite weights" in said(visitor)) == named
                np.testing.assert_array_equal(head_drawn(visitor.app)[1], broken[site].head(head))
