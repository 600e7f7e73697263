"""Edits: their text form and its inverse, what of them is refused in words, and requests with them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadEdit
from model.requests import edits
from model.requests.edits import (
    EDITS,
    MOST_EDITS,
    Allow,
    Edit,
    Embed,
    Forbid,
    NoPositions,
    Patch,
    SetRow,
    Sharpen,
    ShiftPositions,
    Silence,
    SinusoidalPositions,
    SkipLayer,
    SkipSublayer,
    SwapLayers,
    SwapPositions,
    read_edits,
    write_edits,
)
from model.requests.request import RunRequest
from tests.edits import ANY_EDIT


@given(ANY_EDIT)
def test_an_edit_comes_back_from_its_text(edit: Edit) -> None:
    again = Edit.from_text(str(edit))
    assert again == edit
    assert hash(again) == hash(edit)
    assert str(again) == str(edit)


@given(st.lists(ANY_EDIT, max_size=5).map(tuple))
def test_several_edits_come_back_from_one_text_in_their_order(several: tuple[Edit, ...]) -> None:
    assert read_edits(write_edits(several)) == several


TEXTS: list[tuple[str, Edit]] = [
    ("silence site=decoder.0.2.cross head=0,4,6", Silence("decoder.0.2.cross", (0, 4, 6))),
    ("silence by=sentence kind=cross", Silence(kind="cross", by="sentence")),
    ("forbid kind=cross key=gitarre", Forbid(kind="cross", key=("gitarre",))),
    ("forbid key=4", Forbid(key=(4,))),
    ('forbid key="4"', Forbid(key=("4",))),
    ('forbid key=hund,",",3', Forbid(key=("hund", ",", 3))),
    ("forbid key=5..8,2", Forbid(key=(5, 6, 7, 8, 2))),
    ('forbid key="5..8"', Forbid(key=("5..8",))),
    ("forbid query=0..0 key=1..3", Forbid(query=(0,), key=(1, 2, 3))),
    ("allow stack=decoder kind=self", Allow(stack="decoder", kind="self")),
    (
        "set-row site=decoder.0.2.cross to=numbers numbers=0.5,0.25,1e-3",
        SetRow("decoder.0.2.cross", to="numbers", numbers=(0.5, 0.25, 0.001)),
    ),
    ("set-row kind=cross to=one-hot key=im query=0", SetRow(kind="cross", to="one-hot", key="im", query=(0,))),
    ("sharpen kind=cross factor=0", Sharpen(kind="cross", factor=0.0)),
    ("no-positions stack=encoder", NoPositions("encoder")),
    ("swap-positions stack=encoder a=mann b=frau", SwapPositions("encoder", "mann", "frau")),
    ("shift-positions stack=decoder by=-3", ShiftPositions("decoder", -3)),
    ("sinusoidal-positions stack=encoder", SinusoidalPositions("encoder")),
    ("skip-layer stack=decoder layer=1", SkipLayer("decoder", 1)),
    ("skip-sublayer at=decoder.0.2.feed_forward", SkipSublayer("decoder.0.2.feed_forward")),
    ("swap-layers stack=encoder a=0 b=2", SwapLayers("encoder", 0, 2)),
    ("embed stack=encoder at=mann word=frau", Embed("encoder", "mann", "frau")),
    (
        'patch value=hidden stack=encoder at=hund take=pferd source="Ein Pferd." '
        'under="no-positions stack=encoder; forbid key=\\";\\""',
        Patch(
            value="hidden",
            stack="encoder",
            at=("hund",),
            take=("pferd",),
            source="Ein Pferd.",
            under=(NoPositions("encoder"), Forbid(key=(";",))),
        ),
    ),
]


@pytest.mark.parametrize(("text", "edit"), TEXTS, ids=[text for text, _ in TEXTS])
def test_a_text_names_an_edit(text: str, edit: Edit) -> None:
    assert Edit.from_text(text) == edit
    assert Edit.from_text(str(edit)) == edit


def test_four_and_more_tokens_in_a_row_are_written_as_a_range() -> None:
    assert str(Forbid(key=(3, 4, 5))) == "forbid key=3,4,5"
    assert str(Forbid(key=(3, 4, 5, 6, 9, 8, 20, 21, 22, 23, 24))) == "forbid key=3..6,9,8,20..24"
    assert str(Forbid(key=(-2, -1, 0, 1, 2, 3))) == "forbid key=-2,-1,0..3"
    assert str(Silence("decoder.0.2.cross", (0, 1, 2, 3))) == "silence site=decoder.0.2.cross head=0,1,2,3"
    long = Forbid(key=tuple(range(999_990, 1_000_005)))
    assert Edit.from_text(str(long)) == long


def test_every_kind_of_edit_is_among_the_texts() -> None:
    assert {edit.name for _, edit in TEXTS} == set(EDITS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there is no such edit; there is: forbid, allow, set-row, "),
        ("silense kind=cross", "there is no such edit"),
        ("silence heads=3", "“heads” does not exist here. Available: site, head, stack, kind, by"),
        ("silence name=silence", "“name” does not exist here"),
        ("silence head=3 head=4", "head is given twice"),
        ("silence head=x", "head must be a whole number"),
        ("silence head=-1", "heads are counted from 0"),
        ("silence head=99999999999", "head must be a whole number"),
        ("silence kind=crosss", "kind is not allowed to be “crosss”. Allowed: self, cross, memory"),
        ("silence site=decoder.0.2.cross kind=cross", "site=… already says stack=… and kind=…"),
        ("forbid key=a,,b", "key must be a list separated by commas"),
        ("forbid key=", "key must be a list"),
        ("forbid key=8..5", "key has the range 8..5, which must end after its beginning and hold at most 16,384 tokens"),
        ("forbid key=0..999999", "key has the range 0..999999"),
        ("forbid key=Ein Hund", "“Hund” is not of the form key=value"),
        ('forbid key="a', "key must be a list"),
        ('forbid key="a\\q"', "is not a string in quotes as JSON writes it"),
        ("sharpen factor=nan", "factor must be a number"),
        ("sharpen factor=1e999", "factor must be a number"),
        ("swap-positions stack=encoder a=mann", "a value is missing for: b"),
        ("no-positions", "a value is missing for: stack"),
        ("set-row to=one-hot", "to=one-hot goes with key"),
        ("set-row key=3", "to=one-hot goes with key"),
        ("set-row to=numbers numbers=0,0", "numbers must be 0 or above"),
        ("set-row to=numbers numbers=1,-1", "numbers must be 0 or above"),
        ("patch value=hidden head=1", "hidden does not belong to single heads"),
        ("patch value=hidden kind=cross", "is chosen by stack=… and layer=…"),
        ("patch layer=1", "layer=… goes with value=hidden"),
        ('patch under="patch value=context"', "the second run must not be patched itself"),
        ("patch at=1,2 take=3", "at and take must name equally many tokens"),
    ],
)
def test_a_text_that_is_no_edit_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(BadEdit) as caught:
        Edit.from_text(text)
    assert reason in str(caught.value)


def test_a_quote_that_is_never_closed_is_refused_among_several_edits_too() -> None:
    with pytest.raises(BadEdit, match="key must be a list"):
        read_edits('no-positions stack=encoder; forbid key="')


def test_more_edits_than_a_run_takes_are_refused_in_words() -> None:
    text = "; ".join(["silence kind=cross"] * 500)
    with pytest.raises(BadEdit, match=f"a run takes at most {MOST_EDITS} edits, and there are 500"):
        read_edits(text)
    with pytest.raises(BadEdit, match="at most"):
        RunRequest("m", "x", edits=(Silence(),) * 500)


def test_a_text_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadEdit, match="more than 4,000 characters"):
        Edit.from_text("forbid key=" + "a" * 10_000)


@pytest.mark.parametrize("request_", [RunRequest("m", "x"), RunRequest("m", "x", edits=(Forbid(key=(4,)),))], ids=str)
def test_a_request_comes_back_from_json_with_its_edits(request_: RunRequest) -> None:
    assert RunRequest.from_json(json.loads(json.dumps(request_.to_json()))) == request_


def test_an_edit_is_at_the_sites_and_heads_that_it_names() -> None:
    assert Silence("decoder.0.2.cross", (1,)).covers("decoder.0.2.cross", 1)
    assert not Silence("decoder.0.2.cross", (1,)).covers("decoder.0.2.cross", 0)
    assert not Silence("decoder.0.2.cross").covers("decoder.0.1.cross", 0)
    assert Silence(stack="decoder", kind="self").covers("decoder.0.1.self", 7)
    assert not Silence(stack="decoder", kind="self").covers("encoder.0.1.self", 7)
    assert issubclass(edits.Allow, edits.AtSites)
