"""The page What if, without a page: the list of edits, gestures, marks, undo, and edits in words."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from model.requests.edits import EDITS, Allow, Edit, Forbid, SetRow, Sharpen, Silence
from model.trace.types import Tokens
from tests import traces
from tests.pages import MadeUpEngine
from viz.canvas.edit_events import Gesture
from viz.features.what_if import drawn_edits
from viz.features.what_if.conflicts import overruled
from viz.features.what_if.edit_list import EditList
from viz.features.what_if.examples import of_any
from viz.features.what_if.undo import History
from viz.features.what_if.word_panels import correlations
from viz.labels.edits import words
from viz.session.state import Page
from viz.url.view_state import ViewState

CROSS = "decoder.0.2.cross"
TRACE = traces.translation()
STRIPS = dict(TRACE.tokens)
SHAPE = (12, 12)
CUT, SHARP, MUTE = Forbid(kind="cross", key=("hunde",)), Sharpen(site=CROSS), Silence(site=CROSS, head=(1,))


def test_edits_go_into_a_view_and_come_back_with_those_that_are_off() -> None:
    edits = EditList((CUT, SHARP, MUTE), frozenset({1}))
    assert EditList.of(replace(ViewState(), **edits.fields())) == edits
    assert edits.active == (CUT, MUTE)
    assert replace(ViewState(), **edits.fields()).request().edits == (CUT, MUTE)


def test_an_empty_list_is_told_from_no_list_at_all() -> None:
    assert EditList().fields() != {"edits": "", "silence": "", "off": ""}
    assert EditList.of(replace(ViewState(), **EditList().fields())) == EditList()


def test_heads_of_an_old_link_are_edits() -> None:
    assert EditList.of(ViewState(silence=f"{CROSS}:1", edits=str(CUT))).edits == (MUTE, CUT)


def test_chips_are_switched_moved_and_removed_with_their_switches() -> None:
    edits = EditList((CUT, SHARP, MUTE), frozenset({1}))
    assert edits.switched(0, False).off == {0, 1}
    assert edits.switched(1, True).off == frozenset()
    assert edits.moved(1, -1) == EditList((SHARP, CUT, MUTE), frozenset({0}))
    assert edits.moved(0, -1) == edits
    assert edits.moved(2, 1) == edits
    assert edits.without(0) == EditList((SHARP, MUTE), frozenset({0}))
    assert edits.with_(CUT).edits[-1] == CUT


OPEN = Allow(site=CROSS, head=(1, 2), key=("hunde", 5))


@pytest.mark.parametrize(
    ("edits", "off", "found"),
    [
        ((CUT, OPEN), (), {0: 1}),
        ((OPEN, CUT), (), {0: 1}),
        ((CUT, OPEN, SHARP, CUT), (), {0: 1, 1: 3}),
        ((CUT, OPEN), (1,), {}),
        ((CUT, CUT), (), {}),
        ((Forbid(site=CROSS, head=(0,), key=("hunde",)), OPEN), (), {}),
        ((Forbid(site=CROSS, key=(4,)), OPEN), (), {}),
        ((Forbid(site=CROSS, query=(1,)), replace(OPEN, query=(2,))), (), {}),
        ((Forbid(site="decoder.0.1.cross"), OPEN), (), {}),
        ((Forbid(), OPEN), (), {0: 1}),
    ],
)
def test_of_two_edits_that_contradict_each_other_the_chip_says_which_wins(
    edits: tuple[Edit, ...], off: tuple[int, ...], found: dict[int, int]
) -> None:
    assert overruled(EditList(edits, frozenset(off)), TRACE) == found


def test_undo_goes_back_and_redo_forward_until_something_new_is_done() -> None:
    past = History()
    past.leave({"edits": "a"})
    past.leave({"edits": "b"})
    assert past.undo({"edits": "c"}) == {"edits": "b"}
    assert past.redo({"edits": "b"}) == {"edits": "c"}
    assert past.undo({"edits": "c"}) == {"edits": "b"}
    assert past.undo({"edits": "b"}) == {"edits": "a"}
    assert past.undo({"edits": "a"}) is None
    past.leave({"edits": "a"})
    assert past.redo({"edits": "d"}) is None


@pytest.mark.parametrize(
    ("made", "edit"),
    [
        (Gesture("forbid", CROSS, 4, (0, 0), (3, 4)), Forbid(site=CROSS, head=(4,), query=(0,), key=(3, 4))),
        (Gesture("forbid", CROSS, 4, (0, 11), (3, 3)), Forbid(site=CROSS, head=(4,), key=(3,))),
        (Gesture("allow", CROSS, 0, (2, 2), (0, 11)), Allow(site=CROSS, head=(0,), query=(2,))),
        (Gesture("onehot", CROSS, 0, (2, 3), (5, 5)), SetRow(site=CROSS, head=(0,), query=(2, 3), to="one-hot", key=5)),
        (Gesture("uniform", CROSS, 0, (2, 2), (0, 11)), SetRow(site=CROSS, head=(0,), query=(2,))),
        (Gesture("silence", CROSS, 1), MUTE),
        (Gesture("hide", strip="source", position=3), Forbid(key=("hunde",))),
        (Gesture("hide", strip="target", position=3), Forbid(stack="decoder", kind="self", key=(3,))),
    ],
)
def test_a_gesture_makes_an_edit_and_once_more_takes_it_back(made: Gesture, edit: Edit) -> None:
    once = drawn_edits.drawn(EditList(), made, STRIPS, SHAPE)
    assert once.edits == (edit,)
    assert drawn_edits.drawn(once, made, STRIPS, SHAPE) == EditList()


def test_silenced_heads_of_a_site_share_a_chip() -> None:
    edits = EditList((MUTE,))
    both = drawn_edits.drawn(edits, Gesture("silence", CROSS, 0), STRIPS, SHAPE)
    assert both.edits == (Silence(site=CROSS, head=(0, 1)),)
    assert drawn_edits.drawn(both, Gesture("silence", CROSS, 1), STRIPS, SHAPE).edits == (Silence(site=CROSS, head=(0,)),)


def test_a_token_whose_text_is_not_its_own_is_hidden_by_its_place_where_that_place_is_meant() -> None:
    start = drawn_edits.hiding(STRIPS, "source", 0)
    assert start == (Forbid(stack="encoder", key=(0,)), Forbid(kind="cross", key=(0,)))
    hidden = drawn_edits.hidden_tokens((*start, Forbid(key=("hunde",))), TRACE)
    assert hidden == {"source": [0, 3], "target": []}
    only = {"source": STRIPS["source"]}
    assert drawn_edits.hiding(only, "source", 0) == (Forbid(key=(0,)),)


def test_closed_and_opened_cells_are_marked() -> None:
    site = next(reversed(list(TRACE.attention)))
    before = TRACE.at(site)
    weights = before.weights.copy()
    weights[4, 0, 3] = 0
    now = replace(TRACE, attention={**TRACE.attention, site: replace(before, weights=weights)})
    assert drawn_edits.marks((CUT,), TRACE, now) == {f"{site}/4": {"cut": [3], "opened": []}}
    assert drawn_edits.marks((SHARP,), TRACE, now) == {}
    own = next(site for site in TRACE.attention if site.stack == "decoder" and site.kind == "self")
    open_ = TRACE.at(own).weights.copy()
    open_[0, 0, 1] = 0.5
    opened = replace(TRACE, attention={**TRACE.attention, own: replace(TRACE.at(own), weights=open_)})
    assert drawn_edits.marks((Allow(),), TRACE, opened) == {f"{own}/0": {"cut": [], "opened": [1]}}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("forbid key=gitarre", "Everywhere: hidden from all tokens: “gitarre”"),
        ("forbid kind=cross key=hunde", "Cross-attention: hidden from all tokens: “hunde”"),
        (
            "forbid site=decoder.0.2.cross head=4 query=0 key=3",
            "Cross-attention, layer 3, head 5: hidden from “<sos>”: “hunde”",
        ),
        ("allow stack=decoder kind=self", "Decoder self-attention: allowed: all tokens → all tokens"),
        ("set-row kind=cross", "Cross-attention: uniform weights: all tokens"),
        ("set-row site=decoder.0.2.cross to=one-hot key=3 query=1", "Cross-attention, layer 3: all weight: “two” → “hunde”"),
        ("silence site=decoder.0.2.cross head=0,4,6", "Cross-attention, layer 3, heads 1, 5, 7: silenced"),
        ("silence stack=encoder by=sentence", "Encoder: replaced by its mean over this sentence"),
        ("sharpen kind=cross factor=0.5", "Cross-attention: scores × 0.5"),
        ("no-positions stack=encoder", "Encoder: no positions"),
        ("swap-positions stack=encoder a=zwei b=3", "Encoder: positions swapped: “zwei” ↔ “hunde”"),
        ("shift-positions stack=decoder by=2", "Decoder: positions shifted by 2"),
        ("sinusoidal-positions stack=decoder", "Decoder: sinusoids as positions"),
        ("skip-layer stack=encoder layer=1", "Encoder: layer 2 skipped"),
        ("skip-sublayer at=decoder.0.2.feed_forward", "Decoder, layer 3: feed-forward skipped"),
        ("swap-layers stack=encoder a=0 b=2", "Encoder: layers 1 and 3 swapped"),
        ("embed stack=encoder at=3 word=katze", "Encoder: “hunde” with the embedding of “katze”"),
        (
            'patch stack=encoder value=hidden at=hunde take=pferd source="Ein Pferd."',
            "Encoder: layer output taken from “Ein Pferd.”: “hunde”",
        ),
    ],
)
def test_an_edit_says_what_it_does(edit: str, said: str) -> None:
    assert words(Edit.from_text(edit), STRIPS) == said


def test_a_word_that_stands_in_several_places_is_named_with_their_number() -> None:
    strip = Tokens("source", (1, 2, 1, 3), ("a", "man", "a", "dog"), (False,) * 4, (False,) * 4)
    assert words(Edit.from_text("forbid kind=self key=a"), {"source": strip}) == (
        "Self-attention: hidden from all tokens: every “a” (2)"
    )


def test_every_kind_of_edit_has_words() -> None:
    needed = {
        "swap-positions": "stack=encoder a=0 b=1", "shift-positions": "stack=encoder by=1", "skip-layer": "stack=encoder layer=0",
        "skip-sublayer": "at=encoder.0.0.self", "swap-layers": "stack=encoder a=0 b=1", "embed": "stack=encoder at=0 word=x",
        "no-positions": "stack=encoder", "sinusoidal-positions": "stack=encoder",
    }  # fmt: skip
    for name in EDITS:
        edit = Edit.from_text(f"{name} {needed.get(name, '')}".strip())
        assert words(edit) != str(edit), name
        assert np.char.isupper(words(edit)[0]), name


def test_methods_are_compared_with_attention_strip_by_strip() -> None:
    table = pd.DataFrame(
        {
            "strip": ["source"] * 3 + ["target"] * 3,
            "unknown": [0.1, -0.2, 0.3, 5.0, 4.0, 3.0],
            "attention": [0.2, 0.3, 0.5, 0.1, 0.2, 0.7],
        }
    )
    found = correlations(table, ["unknown", "attention"])
    assert found.to_numpy().tolist() == [[1.0, -1.0]]


def test_names_of_experiments_had_capitals_inside_them() -> None:
    engine = MadeUpEngine(TRACE)
    titles = [one.title for one in of_any(Page(engine, engine.models()[0], ViewState(), TRACE, TRACE.last_cross(), 0, dark=False))]
    assert "No positions: encoder" in titles
    assert any(title.endswith("hidden from: cross-attention") for title in titles)
    assert [title for title in titles if re.search(r"\s[A-Z]", title)] == []
