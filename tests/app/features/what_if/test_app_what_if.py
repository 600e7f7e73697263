"""The page What if on networks with random weights: what it answers, its chips, undo and redo, and every kind of network."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.features.what_if.questions import Heads
from model.requests.edits import read_edits
from model.requests.request import Decoding, RunRequest
from tests.app.test_app_pages import save_language_model
from tests.app.visiting import Visitor
from tests.held import HeldEngine
from tests.networks import LANGUAGE_MODELS, VARIANTS, save_checkpoint
from viz.features.what_if import importance_heads
from viz.features.what_if.edit_list import EditList
from viz.session import state

CPU = torch.device("cpu")
EDIT = "silence site=decoder.0.1.cross head=0,1"
TEXT = "w4 w5 w6"


def html(visitor: Visitor) -> str:
    return "\n".join(unescape(element.proto.body) for element in visitor.app.get("html") if "<style>" not in element.proto.body)


def chips(visitor: Visitor) -> list[str]:
    return [box.label.replace("\\", "") for box in visitor.app.checkbox if (box.key or "").startswith("edit-on-")]


def tick(visitor: Visitor, key: str) -> None:
    box = visitor.app.checkbox(key=key)
    box.set_value(not box.value)
    visitor._run()


def measure(visitor: Visitor, what: str) -> None:
    visitor.app.session_state["matters:chosen"] = what
    visitor._run()


def test_a_chip_says_that_a_later_edit_wins_where_both_name_the_same_cells(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, edit="forbid site=decoder.0.1.cross key=1; allow site=decoder.0.1.cross key=1,2")
    said = [caption.value for caption in visitor.app.caption if "the later one wins" in caption.value]
    assert len(said) == 1
    tick(visitor, "edit-on-1")
    assert not any("the later one wins" in caption.value for caption in visitor.app.caption)


def test_both_questions_are_answered_with_the_numbers_of_runs_made_here(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, edit=EDIT)
    engine = LocalEngine(stocked, torch.device("cpu"))
    before = engine.ask(Run(RunRequest("tiny", TEXT)))
    now = engine.ask(Run(RunRequest("tiny", TEXT, edits=read_edits(EDIT))))
    assert visitor.problems == []
    said = html(visitor)
    for trace in (before, now):
        for token in trace.tokens["target"].texts[1:]:
            assert token in said
    ids = before.tokens["target"].ids
    runs = (RunRequest("tiny", TEXT, ids[:-1], edits=edits) for edits in ((), read_edits(EDIT)))
    logits = [torch.tensor(engine.ask(Run(request)).logits).double().log_softmax(dim=-1) for request in runs]
    first, last = (one.gather(1, torch.tensor(ids[1:])[:, None])[:, 0] for one in logits)
    for one, other in zip(first.exp(), last.exp(), strict=True):
        assert f"{one:.3f} → {other:.3f}" in said
    total = f"{float((last - first).sum()):+.2f}".replace("-", "−")
    assert f"(change {total} nats)" in said
    assert visitor.scene("atlas")["silenced"] == ["decoder.0.1.cross/0", "decoder.0.1.cross/1"]


def test_it_begins_with_an_edit_and_other_pages_stay_unchanged(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT)
    assert chips(visitor)
    assert "This is an example" in html(visitor)
    assert "edit" not in visitor.url
    visitor.go("explore")
    assert not [text for text in visitor.app.markdown if "Experiment" in text.value]


def test_chips_are_switched_off_moved_removed_undone_and_redone_and_the_link_says_so(stocked: Path) -> None:
    second = "silence site=encoder.0.0.self head=1"
    visitor = Visitor("whatif", text=TEXT, edit=f"{EDIT}; {second}")
    assert chips(visitor) == [
        "Cross-attention, layer 2, heads 1, 2: silenced",
        "Encoder self-attention, layer 1, head 2: silenced",
    ]
    tick(visitor, "edit-on-1")
    assert visitor.url["off"] == "1"
    assert visitor.scene("atlas")["silenced"] == ["decoder.0.1.cross/0", "decoder.0.1.cross/1"]
    visitor.press("edit-up-1")
    assert visitor.url["edit"] == f"{second}; {EDIT}"
    assert visitor.url["off"] == "0"
    visitor.press("edits-undo")
    assert visitor.url["edit"] == f"{EDIT}; {second}"
    visitor.press("edits-redo")
    assert visitor.url["off"] == "0"
    visitor.press("edit-remove-1")
    visitor.press("edit-remove-0")
    assert chips(visitor) == []
    assert visitor.url["off"] == "all"
    assert "What does the model generate with the edits?" not in html(visitor)
    visitor.press("edits-undo")
    assert visitor.url["edit"] == second


def test_the_form_makes_an_edit(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, off="all")
    visitor.open("edit-form")
    visitor.app.selectbox(key="form:kind").set_value("silence")
    visitor._run()
    visitor.app.selectbox(key="form:place").set_value("encoder.0.0.self")
    visitor._run()
    visitor.press("form:add")
    assert visitor.url["edit"] == "silence site=encoder.0.0.self"


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ("silence site=decoder.0.9.cross", "decoder.0.9.cross"),
        ("silence site=decoder.0.1.cross head=7", "7"),
    ],
)
def test_an_edit_of_what_is_not_there_is_said_and_can_be_taken_back(stocked: Path, edit: str, problem: str) -> None:
    visitor = Visitor("whatif", text=TEXT, edit=edit)
    assert len(visitor.problems) == 1
    assert problem in visitor.problems[0]
    visitor.press("edit-remove-0")
    assert visitor.problems == []


def test_a_fed_language_model_reads_what_it_wrote(shelf: Path) -> None:
    save_language_model(shelf / "lm", VARIANTS[LANGUAGE_MODELS[0]])
    edit = "silence site=decoder.0.0.self head=0"
    visitor = Visitor("whatif", text="w4 w5", edit=edit, decode="greedy", max="4")
    engine = LocalEngine(shelf, torch.device("cpu"))
    wrote = engine.ask(Run(RunRequest("lm", "w4 w5", decoding=Decoding(max_length=4))))
    ids, first = wrote.tokens["source"].ids, wrote.steps[0].computed[1]
    fed = RunRequest("lm", ids[:-1], decoding=Decoding(max_length=0), edits=read_edits(edit))
    logits: Any = engine.ask(Run(fed)).logits
    shares = np.exp(logits[first - 1 :].astype(float))
    shares /= shares.sum(axis=1, keepdims=True)
    said = html(visitor)
    for row, id_ in enumerate(ids[first:]):
        assert f"→ {shares[row, id_]:.3f}" in said


@pytest.mark.parametrize("variant", ["two passes", "uneven", *LANGUAGE_MODELS])
def test_every_kind_of_network_is_drawn(shelf: Path, variant: str) -> None:
    if variant in LANGUAGE_MODELS:
        save_language_model(shelf / "net", VARIANTS[variant])
    else:
        save_checkpoint(shelf / "net", VARIANTS[variant])
    visitor = Visitor("whatif", text=TEXT)
    assert visitor.problems == []
    assert visitor.drawn >= 2


def test_what_matters_is_measured_when_it_is_asked_for(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, off="all")
    engine = LocalEngine(stocked, torch.device("cpu"))
    before = engine.ask(Run(RunRequest("tiny", TEXT)))
    measure(visitor, "heads")
    table = next(frame.value for frame in visitor.app.dataframe if "without" in frame.value)
    ids = before.tokens["target"].ids

    def total(edit: str) -> float:
        run = engine.ask(Run(RunRequest("tiny", TEXT, ids[:-1], edits=read_edits(edit))))
        logits = torch.tensor(run.logits).double().log_softmax(dim=-1)
        return float(logits.gather(1, torch.tensor(ids[1:])[:, None]).sum())

    for (site, head), row in table.iterrows():
        assert row["without"] == pytest.approx(total(f"silence site={site} head={head}") - total(""), abs=1e-4)
    measure(visitor, "prune")
    visitor.app.slider(key="matters:prune:at").set_value(2)
    visitor._run()
    assert len(EditList.of(visitor.view).edits) in (1, 2)
    measure(visitor, "edges")
    assert "Click or tap to hide that key from the query above" in " ".join(caption.value for caption in visitor.app.caption)
    assert visitor.problems == []


def test_what_matters_silences_by_the_mean_if_that_is_chosen_and_names_the_way(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, off="all")
    engine = LocalEngine(stocked, torch.device("cpu"))
    measure(visitor, "heads")
    ways: list[tuple[Literal["zeros", "mean"], str]] = [
        ("zeros", "A silenced head gives zeros."),
        ("mean", "gives the mean of its output"),
    ]
    for by, words in ways:
        visitor.app.session_state["matters:by"] = by
        visitor._run()
        assert words in " ".join(caption.value for caption in visitor.app.caption).replace("\\", "")
        table = next(frame.value for frame in visitor.app.dataframe if "without" in frame.value)
        found = engine.ask(Heads(RunRequest("tiny", TEXT), by=by))
        assert found.without is not None
        np.testing.assert_allclose(table["without"], found.without.sum(axis=1), atol=1e-4)
    assert visitor.problems == []


def test_what_a_share_costs_is_told_before_it_is_measured_where_it_takes_long(
    stocked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importance_heads, "COSTLY", 5)
    visitor = Visitor("whatif", text=TEXT, off="all")
    measure(visitor, "heads")
    (table,) = (frame.value for frame in visitor.app.dataframe if "without" in frame.value)
    assert "share" not in table
    visitor.app.session_state["matters:measure"] = "share"
    visitor._run()
    heads = [attention.heads for attention in LocalEngine(stocked, CPU).ask(Run(RunRequest("tiny", TEXT))).attention.values()]
    copies = Heads(RunRequest("tiny", TEXT)).copies(heads)
    assert any(f"for the Shapley values: {copies:,}." in info.value for info in visitor.app.info)
    assert not any("share" in frame.value for frame in visitor.app.dataframe)
    visitor.app.button(key="matters:share").click()
    visitor._run()
    (table,) = (frame.value for frame in visitor.app.dataframe if "without" in frame.value)
    assert table["share"].notna().all()
    assert visitor.problems == []


def test_while_a_run_with_edits_is_slow_the_page_keeps_what_it_showed(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = HeldEngine(stocked)
    monkeypatch.setattr(state, "open_engine", lambda: engine)
    state.the_engine.clear()
    visitor = Visitor("whatif", text=TEXT, edit=EDIT)
    shown = html(visitor)
    engine.go.clear()
    visitor.app.checkbox(key="edit-on-0").set_value(False)
    visitor.app.run()
    visitor.app.session_state["view"] = replace(visitor.view, edits="silence site=encoder.0.0.self head=0", off="")
    visitor.app.run()
    assert visitor.waits
    assert visitor.scene("atlas")["silenced"] == ["decoder.0.1.cross/0", "decoder.0.1.cross/1"], "the last picture stays"
    assert html(visitor).count('class="pairs"') == shown.count('class="pairs"') == 1
    engine.go.set()
    while visitor.waits:
        visitor.app.run()
    assert visitor.scene("atlas")["silenced"] == ["encoder.0.0.self/0"]
    state.the_engine.clear()


def test_a_number_that_is_too_large_is_one_sentence(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, edit="sharpen factor=1e300")
    assert len(visitor.problems) == 1, visitor.problems
    visitor.press("edit-remove-0")
    assert visitor.problems == []


SAID_AND_GOES_ON = {
    "a token that is not there": ("forbid kind=cross key=klavier", "source has no token “klavier”"),
    "NaN by sharpening too far": ("sharpen kind=cross factor=1e25; sharpen kind=cross factor=1e25", "too large for float32"),
    "a row that is never written": (
        "forbid site=decoder.0.1.self query=50",
        "has 40 tokens, counted from 0, and none is number 50",
    ),
    "a patch from a shorter run": ('patch value=hidden stack=encoder source="w4"', "5 tokens here and 3 rows in the second run"),
    "weights of a shorter run": (
        'patch value=weights kind=cross at=1 source="w4"',
        "rows of weights have 3 keys in the second run",
    ),
}
"""Links, and what the page says of each."""


@pytest.mark.parametrize(("edit", "problem"), SAID_AND_GOES_ON.values(), ids=SAID_AND_GOES_ON)
def test_an_edit_that_cannot_be_made_is_one_sentence_and_the_page_goes_on(stocked: Path, edit: str, problem: str) -> None:
    visitor = Visitor("whatif", text=TEXT, edit=edit)
    assert len(visitor.problems) == 1, visitor.problems
    assert problem in visitor.problems[0]
    for place in range(len(chips(visitor))):
        tick(visitor, f"edit-on-{place}")
    assert visitor.problems == []
    assert visitor.drawn >= 2


def test_a_sentence_about_the_link_stays_while_the_run_with_edits_is_slow(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = HeldEngine(stocked)
    monkeypatch.setattr(state, "open_engine", lambda: engine)
    state.the_engine.clear()
    visitor = Visitor("whatif", text=TEXT, edit=EDIT)
    engine.go.clear()
    visitor.app.query_params["edit"] = "; ".join(["silence site=decoder.0.1.cross head=0"] * 500)
    visitor.app.run()
    assert visitor.waits
    engine.go.set()
    while visitor.waits:
        visitor.app.run()
    assert len(visitor.problems) == 1, "it went when the answer came"
    assert "at most 4000 characters" in visitor.problems[0]
    assert len(chips(visitor)) == 1, "the example"
    state.the_engine.clear()


def test_words_are_measured_beside_attention(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, off="all")
    measure(visitor, "words")
    assert visitor.problems == []
    assert "Attention is not explanation" in " ".join(text.value for text in visitor.app.markdown)
    assert [frame for frame in visitor.app.dataframe if "attention rollout" in frame.value.columns]


def test_integrated_gradients_that_are_not_found_say_why_on_the_page(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.features.what_if.gradients.MOST_POINTS", 24)  # both parts, and their halves
    monkeypatch.setattr("model.features.what_if.gradients.TOLERANCE", 1e-9)
    visitor = Visitor("whatif", text=TEXT, off="all")
    measure(visitor, "words")
    measure(visitor, "words")
    assert visitor.problems == []
    said = " ".join(caption.value for caption in visitor.app.caption)
    assert "Integrated gradients were not found for" in said
    assert "Integrated gradients sum to" not in said
    assert not [frame for frame in visitor.app.dataframe if "integrated gradients" in frame.value.columns]


def test_the_first_edit_of_ones_own_replaces_the_example(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT)
    (example,) = chips(visitor)
    visitor.open("edit-form")
    visitor.app.selectbox(key="form:kind").set_value("no-positions")
    visitor._run()
    visitor.press("form:add")
    assert visitor.url["edit"] == "no-positions stack=encoder"
    visitor.press("edits-undo")
    assert chips(visitor) == [example]
    tick(visitor, "edit-on-0")
    assert chips(visitor) == [example]
    assert visitor.url["off"] == "0"


def test_what_changed_most_is_selected_and_strong_and_a_kind_of_attention_without_a_change_is_not_drawn(stocked: Path) -> None:
    visitor = Visitor("whatif", text=TEXT, edit="forbid site=decoder.0.1.cross head=1 key=w5")
    (changed,) = [scene for scene in visitor.scenes("atlas") if "marks" not in scene]
    assert (changed["selection"]["site"], changed["selection"]["head"]) == ("decoder.0.1.cross", 1)
    said = [text for caption in visitor.app.caption if "than the rounding error in" in (text := caption.value.replace("\\", ""))]
    assert said == ["No weight changed by more than the rounding error in: Encoder self-attention, Decoder self-attention."]
    rows = re.findall(r'<tr class="(\w*)"><th scope="row"><bdi>(.*?)</bdi>.*?</td><td>.*?</i></span>(.*?)</td></tr>', html(visitor))
    strong = [float(number) for kind, _token, number in rows if kind]
    assert strong == [max(float(number) for _kind, _token, number in rows)]
